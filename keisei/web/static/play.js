// The play page: the form of a new game, or the table that the address names; a reload goes on with the table.
import { api, begin, element } from "/static/shell.js";
import { Board } from "/static/board.js";
import { Position } from "/static/position.js";
import { newGameForm } from "/static/new_game_form.js";
import { PlayTable } from "/static/play_table.js";

const main = document.getElementById("main");
let table = null;

async function show(shell) {
  table?.leave();
  table = null;
  const id = location.pathname.split("/")[2];
  if (!id) return showForm(shell);
  try {
    showTable(shell, await api(`/api/tables/${id}`));
  } catch (error) {
    if (error.status !== 404) {
      shell.tell(error.message);
      return;
    }
    history.replaceState(null, "", "/play");
    showForm(shell);
    shell.tell(shell.t("play.table gone"));
  }
}

function showForm(shell) {
  const asked = new URLSearchParams(location.search),
    game = asked.get("game"),
    sfen = asked.get("sfen");
  const host = element("div", { class: "board-host" });
  const form = newGameForm(shell, game ? { game, ply: Number(asked.get("ply") ?? 0) } : { sfen }, started => {
    history.pushState(null, "", `/play/${started.id}`);
    showTable(shell, started);
  });
  const side = element("aside", { class: "side" }, form);
  main.replaceChildren(element("section", { class: "stage" }, host), side);
  const board = new Board(host, shell);
  board.show(new Position());
  if (game)
    api(`/api/games/${game}`).then(
      record =>
        board.show(
          record.moves
            .slice(0, Number(asked.get("ply") ?? 0))
            .reduce((position, move) => position.play(move), new Position(record.sfen)),
        ),
      error => shell.tell(error.message),
    );
  const turn = () => board.turn(form.elements.side.value === "white");
  form.addEventListener("change", turn);
  turn();
  offerOldTable(shell, side);
}

// The game that this browser was in the middle of.
async function offerOldTable({ t }, side) {
  const id = localStorage.getItem("keisei.table");
  const old = id && (await api(`/api/tables/${encodeURIComponent(id)}`).catch(() => null)); // it has ended: nothing to offer
  if (old && (old.state === "yours" || old.state === "thinking"))
    side.prepend(
      element(
        "a",
        { class: "card", id: "go-on", href: `/play/${old.id}` },
        t("play.continue", { opponent: old.opponent.name, moves: old.moves.length }),
      ),
    );
}

function showTable(shell, started) {
  table = new PlayTable(main, shell, started, {
    onNewGame: () => {
      history.pushState(null, "", "/play");
      show(shell);
    },
  });
}

const shell = await begin("play");
addEventListener("popstate", () => show(shell));
await show(shell);
