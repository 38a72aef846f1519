// Lets a person choose a legal move on a board: two presses, by mouse, touch or keyboard; asks where a piece may promote.
import { element } from "/static/shell.js";
import { HAND_ORDER, isDrop, promotes, toSquare } from "/static/position.js";
import { pieceIcon } from "/static/pieces.js";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class MoveChooser {
  // `attach` binds the board's presses: the board is made with onPress: at => chooser.press(at).
  constructor(board, { t, onMove }) {
    Object.assign(this, { board, t, onMove, legal: [], chosen: null });
    board.host.addEventListener("keydown", event => this.#key(event));
  }

  // The legal moves (USI) of the position shown; none while it is not the person's turn.
  allow(legal) {
    this.legal = legal;
    this.cancel();
  }

  cancel() {
    this.dialog?.remove();
    this.#choose(null);
  }

  press(at) {
    const moves = this.#from(this.chosen).filter(move => toSquare(move) === at);
    if (moves.length) this.#decide(moves);
    else this.#choose(at !== this.chosen && this.#from(at).length ? at : null);
  }

  // Choose a piece in hand by its letter; returns whether there is one to drop.
  chooseFromHand(letter) {
    const at = `${letter.toUpperCase()}*`;
    if (!HAND_ORDER.includes(at[0]) || letter.length !== 1 || !this.#from(at).length) return false;
    this.#choose(at);
    this.board.focus();
    return true;
  }

  #from(at) {
    return at ? this.legal.filter(move => move.slice(0, 2) === at) : [];
  }

  #choose(at) {
    this.chosen = at;
    this.board.mark({
      movable: new Set(this.legal.map(move => move.slice(0, 2))),
      chosen: at,
      destinations: new Set(this.#from(at).map(toSquare)),
    });
  }

  // Moves of one piece to one square: there are two where it may promote and need not.
  #decide(moves) {
    if (moves.length === 1) this.#play(moves[0]);
    else this.#askPromotion([...moves].sort((one, other) => promotes(other) - promotes(one)));
  }

  #play(move) {
    this.legal = [];
    this.cancel();
    this.onMove(move);
  }

  #askPromotion(moves) {
    const { t, board } = this,
      piece = board.position.squares.get(this.chosen),
      square = toSquare(moves[0]);
    const answer = move => {
      this.dialog.remove();
      this.board.focus(square);
      this.#play(move);
    };
    const buttons = moves.map(move => {
      const shown = promotes(move) ? `+${piece}` : piece;
      return element(
        "button",
        {
          class: "plain",
          "data-move": move,
          "aria-label": t(promotes(move) ? "board.promote" : "board.do not promote", {
            kind: t(`board.kind ${shown.toUpperCase()}`),
          }),
          onclick: () => answer(move),
        },
        pieceIcon(shown, board.turned),
        element("span", null, t(promotes(move) ? "board.promote short" : "board.do not promote short")),
      );
    });
    this.dialog = element(
      "dialog",
      {
        class: "promotion",
        "aria-label": t("board.promotion"),
        oncancel: () => {
          this.cancel();
          board.focus(square);
        },
        onclick: event => event.target === this.dialog && this.cancel(),
        onkeydown: event => event.key in STEPS && buttons.find(button => button !== document.activeElement).focus(),
      },
      buttons,
    );
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.#placeDialog(board.rectangleOf(square));
    buttons[0].focus();
  }

  // Over the square the piece goes to, within the window.
  #placeDialog(square) {
    const { width, height } = this.dialog.getBoundingClientRect(),
      margin = 8;
    const within = (value, size, room) => Math.max(margin, Math.min(room - size - margin, value));
    this.dialog.style.setProperty("left", `${within(square.left + square.width / 2 - width / 2, width, innerWidth)}px`);
    this.dialog.style.setProperty(
      "top",
      `${within(square.top + square.height / 2 - height / 2, height, innerHeight)}px`,
    );
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target.dataset?.at,
      step = STEPS[event.key];
    if (step && at) this.board.focus(isDrop(at) ? this.board.current : this.board.neighbour(at, ...step));
    else if ((event.key === "Enter" || event.key === " ") && at) this.press(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
