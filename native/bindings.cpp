// The Python module keisei._native: only converts arguments, results and exceptions.
#include "bindings.h"

#include <array>

#include "perft.h"

namespace keisei {

std::string_view utf8(nb::handle text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data) return {data, size_t(size)};
    PyErr_Clear();
    throw NotationFault("text contains a lone surrogate (half a unicode character)");
}

// One Python object for each move ever passed to Python, so that a list of moves allocates no items.
// They live as long as the process, so they still exist for games played while Python shuts down.
static std::array<PyObject*, 1 << 16> move_objects{};

nb::object move_object(Move m) {
    PyObject*& slot = move_objects[m.code()];
    if (!slot) slot = nb::cast(m).release().ptr();
    return nb::borrow(slot);
}

bool is_move(nb::handle object) { return object.type().is(nb::type<Move>()) && nb::inst_ready(object); }

nb::list move_list(const Move* begin, size_t size) {
    nb::list list = nb::steal<nb::list>(PyList_New(Py_ssize_t(size)));
    if (!list.is_valid()) nb::raise_python_error();
    for (size_t i = 0; i < size; ++i) PyList_SET_ITEM(list.ptr(), Py_ssize_t(i), move_object(begin[i]).release().ptr());
    return list;
}

Rules to_rules(std::optional<int> max_moves, std::string_view declaration) {
    if (max_moves && (*max_moves < 1 || *max_moves > UNLIMITED))
        raise_value_error("max_moves is " + std::to_string(*max_moves) + ", expected 1 to " + std::to_string(UNLIMITED) +
                          ", or None");
    for (int d = 0; d < 4; ++d)
        if (declaration == DECLARATION_NAMES[d]) return {max_moves.value_or(UNLIMITED), Declaration(d)};
    raise_value_error("declaration is '" + shown(declaration) + "', expected '27', '24', 'try' or 'off'");
}

Kings to_kings(std::string_view name) {
    for (int k = 0; k < 2; ++k)
        if (name == KINGS_NAMES[k]) return Kings(k);
    raise_value_error("kings is '" + shown(name) + "', expected 'both' or 'defender'");
}

void need_both_kings(const std::string& name, const Position& position) {
    if (const auto fault = missing_king(position)) throw RulesFault(name + ": " + *fault + ": " + to_sfen(position));
}

nb::object max_moves_object(int max_moves) { return max_moves == UNLIMITED ? nb::none() : nb::cast(max_moves); }

nb::tuple outcome_tuple(const Outcome& outcome) {
    const nb::object winner = outcome.winner ? nb::object(nb::int_(int(*outcome.winner))) : nb::none();
    const std::string_view reason = reason_text(outcome.reason);
    return nb::make_tuple(winner, nb::str(reason.data(), reason.size()));
}

namespace {

Move to_move(nb::handle move, const Game& game) {
    if (is_move(move)) return *nb::inst_ptr<Move>(move);
    if (!PyUnicode_Check(move.ptr())) throw nb::type_error("push takes a Move or its USI text");
    Result<Move> read = parse_usi(utf8(move));
    if (!read.ok()) raise({Error::SYNTAX, read.error().message + " in position " + to_sfen(game.position())});
    return read.value();
}

void init_game(Game* self, std::optional<nb::str> sfen, std::optional<int> max_moves, std::string_view declaration,
               std::string_view kings) {
    Rules rules = to_rules(max_moves, declaration);
    rules.kings = to_kings(kings);
    new (self) Game(unwrap(parse_sfen(sfen ? utf8(*sfen) : START_SFEN, rules.kings)), rules);
}

nb::object piece_at(const Game& game, nb::str square) {
    const std::string name = piece_name(game.position().piece_on(unwrap(parse_square(utf8(square)))));
    return name.empty() ? nb::none() : nb::object(nb::str(name.c_str()));
}

nb::dict hand_counts(const Game& game, int color) {
    if (color != BLACK && color != WHITE) throw nb::value_error("color: expected 0 (black) or 1 (white)");
    nb::dict counts;
    for (int t = ROOK; t >= PAWN; --t)
        if (const int n = game.position().hand(Color(color)).count(PieceType(t)))
            counts[nb::str(std::string(1, piece_letter(PieceType(t))).c_str())] = n;
    return counts;
}

uint64_t count_from(Position pos, int depth, bool write_last) {
    if (depth < 0 || depth > MAX_PERFT_DEPTH)
        raise_value_error("depth is " + std::to_string(depth) + ", expected 0 to " + std::to_string(MAX_PERFT_DEPTH));
    CtrlC stop;
    uint64_t nodes = 0;
    without_gil([&] { nodes = write_last ? perft<true>(pos, depth, stop) : perft(pos, depth, stop); });
    stop.rethrow();
    return nodes;
}

uint64_t count_sequences(nb::str sfen, int depth, bool write_last, std::string_view kings) {
    return count_from(unwrap(parse_sfen(utf8(sfen), to_kings(kings))), depth, write_last);
}

void bind_errors(nb::module_& m) {
    nb::exception<NotationFault> notation(m, "NotationError", PyExc_ValueError);
    nb::exception<RulesFault> rules(m, "RulesError", PyExc_ValueError);
    notation.attr("__doc__") = "A text that cannot be parsed.";
    rules.attr("__doc__") = "A move, or a well-formed text, that breaks the rules of shogi.";
    notation.attr("__module__") = rules.attr("__module__") = "keisei.shogi";  // where users import them from
}

void bind_move(nb::module_& m) {
    nb::class_<Move>(m, "Move", nb::is_final(), "A move; str(move) is its USI text.")
        .def_static("from_usi", [](nb::str text) { return move_object(unwrap(parse_usi(utf8(text)))); }, "text"_a,
                    "Parse a USI move such as 7g7f, 8h2b+ or P*5e.")
        .def_prop_ro("from_square", [](Move mv) -> nb::object {
            return mv.is_drop() ? nb::none() : nb::cast(square_name(mv.from()));
        }, "The square moved from, such as '7g'; None for a drop.")
        .def_prop_ro("to_square", [](Move mv) { return square_name(mv.to()); }, "The square moved to, such as '7f'.")
        .def_prop_ro("promotes", &Move::is_promotion, "True if the piece promotes.")
        .def_prop_ro("dropped", [](Move mv) -> nb::object {
            return mv.is_drop() ? nb::cast(std::string(1, piece_letter(mv.dropped()))) : nb::none();
        }, "The letter of the dropped piece, P L N S G B or R; None for a board move.")
        .def("__str__", [](Move mv) { return to_usi(mv); })
        .def("__repr__", [](Move mv) { return "Move.from_usi('" + to_usi(mv) + "')"; })
        .def("__hash__", [](Move mv) { return mv.code(); })
        .def("__eq__", [](Move mv, nb::handle other) { return is_move(other) && *nb::inst_ptr<Move>(other) == mv; },
             nb::arg("other").none())
        .def("__getstate__", [](Move mv) { return to_usi(mv); })
        .def("__setstate__", [](Move* self, nb::str text) { new (self) Move(unwrap(parse_usi(utf8(text)))); });
}

void bind_game(nb::module_& m) {
    nb::class_<Game>(m, "Game", "A game of shogi; keisei.shogi.ShogiGame adds words and drawings.")
        .def("__init__", &init_game, "sfen"_a = nb::none(), nb::kw_only(), "max_moves"_a.none() = 512,
             "declaration"_a = "27", "kings"_a = "both")
        .def("__init__", [](Game* self, const Game& other) { new (self) Game(other); }, "other"_a)
        .def("legal_moves", [](const Game& g) {
            const MoveList& list = g.legal_moves();
            return move_list(list.moves, size_t(list.size));
        }, "Return all legal moves; none once the game is over.")
        .def("push", [](Game& g, nb::handle move) {
            if (const auto error = g.push(to_move(move, g))) raise(*error);
        }, "move"_a.none(), "Play a legal move, given as a Move or as its USI text.")
        .def("pop", [](Game& g) {
            if (g.moves_played() == 0) throw nb::index_error("no move to take back");
            nb::object last = move_object(g.move(g.moves_played() - 1));
            g.pop();
            return last;
        }, "Take back and return the last move; any declaration or resignation goes with it.")
        .def("is_check", &Game::in_check, "Return whether the side to move is in check.")
        .def("can_declare", &Game::can_declare, "Return whether the side to move may now declare a win by points.")
        .def("declare", [](Game& g) { if (const auto error = g.declare()) raise(*error); },
             "Declare a win for the side to move.")
        .def("resign", [](Game& g) { if (const auto error = g.resign()) raise(*error); }, "Resign for the side to move.")
        .def("sfen", [](const Game& g) { return to_sfen(g.position()); }, "Return the position as SFEN.")
        .def("piece_at", &piece_at, "square"_a, "Return the piece on a square ('7g') in SFEN letters ('P', '+r'), or None.")
        .def("hand", &hand_counts, "color"_a, "Return the pieces in hand with their counts, such as {'R': 1, 'P': 3}.")
        .def_prop_ro("start_sfen", [](const Game& g) { return to_sfen(g.start()); }, "The starting position of this game.")
        .def_prop_ro("ply", [](const Game& g) { return g.position().ply(); },
                     "Moves played since move number 1, including those before this game's starting position.")
        .def_prop_ro("max_moves", [](const Game& g) { return max_moves_object(g.rules().max_moves); },
                     "The ply at which the game is a draw; None for no limit.")
        .def_prop_ro("declaration", [](const Game& g) { return DECLARATION_NAMES[int(g.rules().declaration)]; },
                     "The declaration rule: '27', '24', 'try' or 'off'.")
        .def_prop_ro("kings", [](const Game& g) { return KINGS_NAMES[int(g.rules().kings)]; },
                     "Who must have a king at the start: 'both', or 'defender', the side not to move.")
        .def_prop_ro("history", [](const Game& g) {
            nb::list moves;
            for (int i = 0; i < g.moves_played(); ++i) moves.append(move_object(g.move(i)));
            return moves;
        }, "The moves of this game, first to last.")
        .def_prop_ro("earlier_occurrences", &Game::earlier_occurrences, "Earlier occurrences of this position: 0 to 3.")
        .def_prop_ro("key", [](const Game& g) { return g.position().key(); }, "64-bit hash of board, hands and side.")
        .def("computed_key", [](const Game& g) { return g.position().computed_key(); }, "Compute the key anew, for tests.")
        .def_prop_ro("_turn", [](const Game& g) { return int(g.position().side()); })
        .def("_outcome", [](const Game& g) -> nb::object {
            const std::optional<Outcome> end = g.outcome();
            return end ? nb::object(outcome_tuple(*end)) : nb::none();
        })
        .def("__sizeof__", &Game::bytes);
}

}  // namespace
}  // namespace keisei

using namespace keisei;

NB_MODULE(_native, m) {
    m.doc() = "The rules of shogi in C++; use them through keisei.shogi.";
    nb::set_leak_warnings(false);  // the move objects are meant to stay
    m.attr("START_SFEN") = nb::str(START_SFEN.data(), START_SFEN.size());
    bind_errors(m);
    bind_move(m);
    bind_game(m);
    bind_encoding(m);
    bind_vector(m);
    bind_search(m);
    bind_tree(m);
    bind_self_play(m);
    bind_tower(m);
    m.def("perft", &count_sequences, "sfen"_a, "depth"_a, "write_last"_a = false, nb::kw_only(), "kings"_a = "both");
    m.def("perft", [](const Game& g, int depth) { return count_from(g.position(), depth, false); }, "game"_a, "depth"_a);
}
