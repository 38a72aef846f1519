// The encodings and the vector of games for Python. Works on the caller's arrays, without the GIL.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "bindings_array.h"
#include "bindings_games.h"

namespace keisei {
namespace {

constexpr Py_ssize_t PACKED_BYTES = sizeof(PackedPosition);

Color to_color(int color) {
    if (color != BLACK && color != WHITE)
        raise_value_error("turn is " + std::to_string(color) + ", expected 0 (black) or 1 (white)");
    return Color(color);
}

using PackedRows = Array<uint8_t>;

PackedPosition row_of(const PackedRows& packed, int row) {
    PackedPosition position;  // a copy: the caller's bytes may be unaligned
    std::memcpy(&position, packed.data() + size_t(row) * sizeof position, sizeof position);
    return position;
}

// Calls work(packed position, position, row) for each row; it returns false for a bad row, and the first is reported.
// Each row is read only once, because another of the caller's threads may be writing to it.
template <class Work>
void for_positions(const PackedRows& packed, int threads, Work&& work) {
    checked("threads", threads, 1);
    std::atomic<int> bad{INT_MAX};
    without_gil([&] {
        ThreadTeam team(std::min(threads, std::max(packed.rows(), 1)));
        team.run(packed.rows(), [&](int first, int end) {
            for (int row = first; row < end; ++row) {
                const PackedPosition bytes = row_of(packed, row);
                Result<Position> position = unpack(bytes);
                if (position.ok() && work(bytes, position.value(), row)) continue;
                lower(bad, row);
                return;
            }
        });
    });
    if (bad == INT_MAX) return;
    const Result<Position> position = unpack(row_of(packed, bad));
    throw RulesFault("row " + std::to_string(bad) + " of packed: " +
                     (position.ok() ? "legal actions do not match the offsets" : position.error().message));
}

void pack_games(nb::list games, nb::handle out) {
    const PackedRows rows(out, "out", {Py_ssize_t(games.size()), PACKED_BYTES}, true);
    uint8_t* to = rows.data();
    for (nb::handle item : games) {
        if (!nb::isinstance<Game>(item) || !nb::inst_ready(item)) throw nb::type_error("games must be ShogiGames");
        const Game& game = *nb::inst_ptr<Game>(item);
        need_both_kings("games[" + std::to_string((to - rows.data()) / PACKED_BYTES) + "]", game.position());
        const PackedPosition packed = pack(game);
        std::memcpy(to, &packed, sizeof packed);
        to += sizeof packed;
    }
}

std::vector<Position> read_sfens(nb::list texts, const std::string& name) {
    std::vector<Position> positions;
    for (nb::handle text : texts) {
        const std::string place = name + "[" + std::to_string(positions.size()) + "]: ";
        if (!PyUnicode_Check(text.ptr())) throw nb::type_error((place + "expected an SFEN text").c_str());
        Result<Position> position = parse_sfen(utf8(text));
        if (!position.ok()) raise({position.error().kind, place + position.error().message});
        positions.push_back(position.value());
    }
    return positions;
}

void pack_sfens(nb::list sfens, std::optional<int> max_moves, nb::handle out) {
    const PackedRows rows(out, "out", {Py_ssize_t(sfens.size()), PACKED_BYTES}, true);
    const Rules rules = to_rules(max_moves, "off");
    uint8_t* to = rows.data();
    for (const Position& position : read_sfens(sfens, "sfens")) {
        const PackedPosition packed = pack(position, rules.max_moves);
        std::memcpy(to, &packed, sizeof packed);
        to += sizeof packed;
    }
}

nb::list unpack_sfens(nb::handle packed, int threads) {
    const PackedRows rows(packed, "packed", {ANY, PACKED_BYTES}, false);
    std::vector<std::string> sfens(size_t(rows.rows()));
    for_positions(rows, threads, [&](const PackedPosition&, const Position& position, int row) {
        sfens[size_t(row)] = to_sfen(position);
        return true;
    });
    nb::list list;
    for (const std::string& sfen : sfens) list.append(nb::cast(sfen));
    return list;
}

void encode_planes(nb::handle packed, nb::handle out, int threads) {
    const PackedRows rows(packed, "packed", {ANY, PACKED_BYTES}, false);
    const Array<float> planes(out, "out", {rows.rows(), PLANES, 9, 9}, true);
    for_positions(rows, threads, [&](const PackedPosition& position, const Position&, int row) {
        write_planes(position, planes.data() + size_t(row) * OBSERVATION_SIZE);
        return true;
    });
}

void legal_offsets(nb::handle packed, nb::handle offsets, int threads) {
    const PackedRows rows(packed, "packed", {ANY, PACKED_BYTES}, false);
    const Array<int32_t> ends(offsets, "offsets", {rows.rows() + 1}, true);
    for_positions(rows, threads, [&](const PackedPosition&, const Position& position, int row) {
        ends.data()[row + 1] = count_legal(position);
        return true;
    });
    ends.data()[0] = 0;
    for (int row = 0; row < rows.rows(); ++row) {
        if (ends.data()[row] > INT_MAX - MAX_LEGAL_MOVES) raise_value_error("too many positions for 32-bit offsets");
        ends.data()[row + 1] += ends.data()[row];
    }
}

void legal_actions(nb::handle packed, nb::handle offsets, nb::handle actions, int threads) {
    const PackedRows rows(packed, "packed", {ANY, PACKED_BYTES}, false);
    const Array<int32_t> starts(offsets, "offsets", {rows.rows() + 1}, false);
    const Array<int32_t> out(actions, "actions", {ANY}, true);
    for_positions(rows, threads, [&](const PackedPosition&, const Position& position, int row) {
        const int32_t begin = starts.data()[row], end = starts.data()[row + 1];
        MoveList list;
        generate_legal(position, list);
        if (begin < 0 || end > out.rows() || end - int64_t(begin) != list.size || (row == 0 && begin != 0)) return false;
        write_actions(list, position.side(), out.data() + begin);
        return true;
    });
}

void legal_mask(nb::handle packed, nb::handle out, int threads) {
    const PackedRows rows(packed, "packed", {ANY, PACKED_BYTES}, false);
    const Array<bool> mask(out, "out", {rows.rows(), ACTIONS}, true);
    for_positions(rows, threads, [&](const PackedPosition&, const Position& position, int row) {
        MoveList list;
        generate_legal(position, list);
        write_mask(list, position.side(), mask.data() + size_t(row) * ACTIONS);
        return true;
    });
}

int action_of_move(nb::handle move, int turn) {
    if (!is_move(move) && !PyUnicode_Check(move.ptr())) throw nb::type_error("move must be a Move or its USI text");
    return action_of(is_move(move) ? *nb::inst_ptr<Move>(move) : unwrap(parse_usi(utf8(move))), to_color(turn));
}

nb::object move_of_action(int64_t action, int turn) {
    if (action < 0 || action >= ACTIONS)
        raise_value_error("action is " + std::to_string(action) + ", expected 0 to " + std::to_string(ACTIONS - 1));
    return move_object(move_of(int(action), to_color(turn)));
}

using Use = SharedGames::Use;

// A share of games in units of 2^-32.
uint32_t share_bits(const std::string& name, double share) {
    if (!(share >= 0 && share <= 1)) raise_value_error(name + " is " + std::to_string(share) + ", expected 0 to 1");
    return uint32_t(std::min(share * 0x1p32, 0x1p32 - 1));
}

void init_games(SharedGames* self, int count, int threads, uint64_t seed, std::optional<int> max_moves,
                std::string_view declaration, std::optional<nb::list> starts, int random_plies, double scattered_share,
                uint64_t first_number, std::optional<uint64_t> stride) {
    GamePlan plan;
    plan.slots = checked("count", count, 1, MAX_SLOTS);
    plan.rules = to_rules(max_moves, declaration);
    plan.seed = seed;
    plan.first_number = first_number;
    plan.stride = stride.value_or(uint64_t(count));
    plan.random_plies = checked("random_plies", random_plies, 0);
    plan.scattered_share = share_bits("scattered_share", scattered_share);
    plan.starts = starts ? read_sfens(*starts, "starts") : std::vector<Position>{unwrap(parse_sfen(START_SFEN))};
    if (plan.starts.empty()) raise_value_error("starts is empty, expected at least one SFEN");
    checked("threads", threads, 1);
    std::optional<Error> error;
    std::unique_ptr<VectorGames> games;
    without_gil([&] {
        error = VectorGames::flaw(plan);
        if (!error) games = std::make_unique<VectorGames>(std::move(plan), threads);
    });
    if (error) raise(*error);
    new (self) SharedGames(std::move(games));
}

void restore_games(SharedGames* self, nb::bytes saved, int threads) {
    checked("threads", threads, 1);
    std::optional<Result<std::unique_ptr<VectorGames>>> games;
    without_gil([&] { games.emplace(VectorGames::restore({saved.c_str(), saved.size()}, threads)); });
    new (self) SharedGames(unwrap(std::move(*games)));
}

nb::bytes save_games(SharedGames& self) {
    const Use games(self);
    std::string bytes;
    without_gil([&] { bytes = games->save(); });
    return nb::bytes(bytes.data(), bytes.size());
}

// All the arrays that a step or an observation can fill.
struct Arrays {
    Array<uint8_t> packed;
    Array<float> planes;
    Array<int32_t> offsets, actions;
    Array<bool> mask;

    Arrays(int n, nb::handle packed_, nb::handle planes_, nb::handle offsets_, nb::handle actions_, nb::handle mask_)
        : packed(packed_, "packed", {n, PACKED_BYTES}, true), planes(planes_, "planes", {n, PLANES, 9, 9}, true),
          offsets(offsets_, "offsets", {n + 1}, true), actions(actions_, "actions", {Py_ssize_t(n) * MAX_LEGAL_MOVES}, true),
          mask(mask_, "mask", {n, ACTIONS}, true) {
        if (!offsets.data() != !actions.data()) raise_value_error("expected both offsets and actions, or neither");
    }
    Observations pointers() const { return {packed.data(), planes.data(), offsets.data(), actions.data(), mask.data()}; }
};

nb::tuple finished_tuple(const FinishedGame& game) {
    return nb::make_tuple(game.slot, game.number, outcome_tuple(game.outcome), game.opening, game.late, to_sfen(game.start),
                          move_list(game.moves.data(), game.moves.size()),
                          nb::bytes(reinterpret_cast<const char*>(&game.final_position), sizeof game.final_position));
}

nb::list step_games(SharedGames& self, nb::handle chosen, nb::handle rewards, nb::handle ended, nb::handle packed,
                    nb::handle planes, nb::handle offsets, nb::handle actions, nb::handle mask) {
    const Use games(self);
    const int n = games->slots();
    const Array<int32_t> choice(chosen, "chosen actions", {n}, false);
    const Array<float> reward(rewards, "rewards", {n}, true);
    const Array<bool> end(ended, "ended", {n}, true);
    const Arrays arrays(n, packed, planes, offsets, actions, mask);
    std::optional<Error> error;
    self.change([&] { error = games->step(choice.data(), {reward.data(), end.data()}, arrays.pointers()); });
    if (error) raise(*error);
    nb::list finished;
    for (const FinishedGame& game : games->finished()) finished.append(finished_tuple(game));
    return finished;
}

void observe_games(SharedGames& self, nb::handle packed, nb::handle planes, nb::handle offsets, nb::handle actions,
                   nb::handle mask) {
    const Use games(self);
    const Arrays arrays(games->slots(), packed, planes, offsets, actions, mask);
    without_gil([&] { games->observe(arrays.pointers()); });
}

void set_late_starts(SharedGames& self, nb::list sfens, double share) {
    const Use games(self);
    const uint32_t bits = share_bits("share", share);
    std::vector<Position> starts = read_sfens(sfens, "late starts");
    std::optional<Error> error;
    without_gil([&] {
        error = VectorGames::flaw(starts, self.rules());
        if (!error) games->set_late_starts(std::move(starts), bits);
    });
    if (error) raise(*error);
}

Game copy_game(SharedGames& self, int slot) {
    const Use games(self);
    if (slot < 0 || slot >= games->slots())
        throw nb::index_error(("slot is " + std::to_string(slot) + ", expected 0 to " + std::to_string(games->slots() - 1)).c_str());
    return games->game(slot);
}

}  // namespace

void bind_encoding(nb::module_& m) {
    m.attr("PLANES") = PLANES;
    m.attr("ACTIONS") = ACTIONS;
    m.attr("PACKED_BYTES") = int(PACKED_BYTES);
    m.attr("MAX_LEGAL_ACTIONS") = MAX_LEGAL_MOVES;
    m.def("action_of", &action_of_move, "move"_a, "turn"_a);
    m.def("move_of", &move_of_action, "action"_a, "turn"_a);
    m.def("pack_games", &pack_games, "games"_a, "out"_a);
    m.def("pack_sfens", &pack_sfens, "sfens"_a, "max_moves"_a.none(), "out"_a);
    m.def("unpack_sfens", &unpack_sfens, "packed"_a, "threads"_a);
    m.def("encode_planes", &encode_planes, "packed"_a, "out"_a, "threads"_a);
    m.def("legal_offsets", &legal_offsets, "packed"_a, "offsets"_a, "threads"_a);
    m.def("legal_actions", &legal_actions, "packed"_a, "offsets"_a, "actions"_a, "threads"_a);
    m.def("legal_mask", &legal_mask, "packed"_a, "out"_a, "threads"_a);
}

void bind_vector(nb::module_& m) {
    nb::class_<SharedGames>(m, "VectorGames", "Many games at once; use it through keisei.shogi.vector.VectorGames.")
        .def("__init__", &init_games, "count"_a, nb::kw_only(), "threads"_a, "seed"_a, "max_moves"_a.none(), "declaration"_a,
             "starts"_a.none(), "random_plies"_a, "scattered_share"_a, "first_number"_a, "stride"_a.none())
        .def("__init__", &restore_games, "saved"_a, nb::kw_only(), "threads"_a)
        .def("__len__", &SharedGames::slots)
        .def("_step", &step_games, "chosen"_a, "rewards"_a.none(), "ended"_a.none(), "packed"_a.none(), "planes"_a.none(),
             "offsets"_a.none(), "actions"_a.none(), "mask"_a.none())
        .def("_observe", &observe_games, "packed"_a.none(), "planes"_a.none(), "offsets"_a.none(), "actions"_a.none(),
             "mask"_a.none())
        .def("_copy_game", &copy_game, "slot"_a)
        .def("_set_late_starts", &set_late_starts, "sfens"_a, "share"_a)
        .def("_restart", [](SharedGames& self, uint64_t seed, uint64_t first_number) {
            const Use games(self);
            self.change([&] { games->restart(seed, first_number); });
        }, "seed"_a, "first_number"_a)
        .def("save", &save_games, "Return all games as bytes; VectorGames.restore() continues exactly from here.")
        .def_prop_ro("numbers", [](SharedGames& self) {
            const Use games(self);
            nb::list numbers;
            for (int i = 0; i < games->slots(); ++i) numbers.append(nb::int_(games->number(i)));
            return numbers;
        }, "The number of each slot's game.")
        .def_prop_ro("threads", &SharedGames::threads, "The number of threads.")
        .def_prop_ro("seed", [](SharedGames& self) { return Use(self)->plan().seed; }, "The seed of the starts.")
        .def_prop_ro("max_moves", [](const SharedGames& self) { return max_moves_object(self.rules().max_moves); },
                     "The ply at which a game is a draw; None for no limit.")
        .def_prop_ro("declaration", [](const SharedGames& self) {
            return DECLARATION_NAMES[int(self.rules().declaration)];
        }, "The declaration rule: '27', '24', 'try' or 'off'.");
}

}  // namespace keisei
