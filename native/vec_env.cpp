#include "vec_env.h"

#include <algorithm>
#include <cstring>

#include "random.h"
#include "scattered.h"
#include "sfen.h"

namespace keisei {
namespace {

// Returns how the game ended, after declaring a win for the side to move if it may.
std::optional<Outcome> decided(Game& game) {
    if (game.can_declare()) (void)game.declare();
    return game.outcome();
}

// Writes and reads bytes, little-endian; reading past the end is reported.
constexpr std::string_view MAGIC = "keisei games 3\n", OLDER = "keisei games 2\n";  // without scattered_share

class ByteWriter {
public:
    template <class T>
    void put(const T& value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::string bytes;
};

class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
    template <class T>
    bool get(T& value) {
        if (bytes_.size() < sizeof value) return false;
        std::memcpy(&value, bytes_.data(), sizeof value);
        bytes_.remove_prefix(sizeof value);
        return true;
    }
    size_t left() const { return bytes_.size(); }

private:
    std::string_view bytes_;
};

uint64_t checksum(std::string_view bytes) {  // FNV-1a
    uint64_t sum = 0xcbf29ce484222325;
    for (char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return sum;
}

Error damaged(const std::string& what) { return {Error::SYNTAX, "bad saved games: " + what}; }

}  // namespace

VectorGames::VectorGames(GamePlan plan, int threads)
    : plan_(std::move(plan)), team_(std::min(threads, plan_.slots)), legal_counts_(size_t(plan_.slots)),
      legal_offsets_(size_t(plan_.slots) + 1) {
    slots_.reserve(size_t(plan_.slots));
    for (int i = 0; i < plan_.slots; ++i) slots_.push_back(Slot{Game(plan_.starts[0], plan_.rules), 0, plan_.starts[0]});
    restart(plan_.seed, plan_.first_number);
}

void VectorGames::restart(uint64_t seed, uint64_t first_number) {
    plan_.seed = seed;
    plan_.first_number = first_number;
    finished_.clear();
    team_.run(plan_.slots, [this](int first, int end) {
        for (int i = first; i < end; ++i) {
            slots_[size_t(i)].number = plan_.first_number + uint64_t(i);
            begin(slots_[size_t(i)]);
        }
    });
}

void VectorGames::set_late_starts(std::vector<Position> late_starts, uint32_t share) {
    plan_.late_starts = std::move(late_starts);
    plan_.late_share = share;
}

std::optional<Error> VectorGames::flaw(const GamePlan& plan) {
    if (const auto error = flaw(plan.starts, plan.rules)) return error;
    return flaw(plan.late_starts, plan.rules);
}

std::optional<Error> VectorGames::flaw(const std::vector<Position>& starts, const Rules& rules) {
    for (const Position& start : starts) {
        Game game(start, rules);
        if (const auto end = decided(game))
            return Error{Error::RULES, "a game cannot start from " + to_sfen(start) + ": it is over, " +
                                           std::string(reason_text(end->reason))};
    }
    return std::nullopt;
}

void VectorGames::begin(Slot& slot) const {
    RandomStream random(plan_.seed, slot.number);
    const auto draw = [&random](const std::vector<Position>& from) {
        return from[from.size() > 1 ? random.below(uint32_t(from.size())) : 0];
    };
    slot.late = !plan_.late_starts.empty() && random.bits() < plan_.late_share;
    Game& game = slot.game;
    slot.opening = 0;
    if (!slot.late && plan_.scattered_share && random.bits() < plan_.scattered_share) {
        if (const auto scattered = scattered_position(random)) {
            slot.start = *scattered;
            game.restart(slot.start);
            if (!decided(game)) return;
        }
    }
    slot.start = draw(slot.late ? plan_.late_starts : plan_.starts);
    game.restart(slot.start);
    if (slot.late) return;
    for (; slot.opening < plan_.random_plies; ++slot.opening) {
        const MoveList& legal = game.legal_moves();
        game.push_legal(legal.moves[random.below(uint32_t(legal.size))]);
        if (decided(game)) {  // an opening never ends a game: it is cut short
            game.pop();
            break;
        }
    }
}

bool VectorGames::choose(Slot& slot, int32_t action) const {
    if (action < 0 || action >= ACTIONS) return false;
    slot.chosen = move_of(action, slot.game.position().side());
    return slot.game.legal_moves().contains(slot.chosen);
}

Error VectorGames::illegal(int i, int32_t action) const {
    const Position& position = game(i).position();
    const bool exists = action >= 0 && action < ACTIONS;
    const std::string meaning = exists ? " (" + to_usi(move_of(action, position.side())) + ")"
                                       : ", expected 0 to " + std::to_string(ACTIONS - 1);
    return {Error::RULES, "illegal action " + std::to_string(action) + meaning + " in slot " + std::to_string(i) +
                              ", game " + std::to_string(number(i)) + ", position " + to_sfen(position)};
}

void VectorGames::play(Slot& slot, int i, const Results& results) const {
    Game& game = slot.game;
    const Color mover = game.position().side();
    game.push_legal(slot.chosen);
    const std::optional<Outcome> end = decided(game);
    slot.ended = end.has_value();
    if (results.ended) results.ended[i] = slot.ended;
    if (results.rewards) results.rewards[i] = !end || !end->winner ? 0 : *end->winner == mover ? 1 : -1;
    if (!end) return;

    FinishedGame& finished = slot.finished;
    finished.slot = i;
    finished.number = slot.number;
    finished.outcome = *end;
    finished.opening = slot.opening;
    finished.final_position = pack(game);
    finished.late = slot.late;
    finished.start = slot.start;
    finished.moves.clear();
    for (int ply = 0; ply < game.moves_played(); ++ply) finished.moves.push_back(game.move(ply));
    slot.number += plan_.stride;
    begin(slot);
}

void VectorGames::see(const Game& game, int i, const Observations& out) {
    if (out.packed || out.planes) {
        const PackedPosition packed = pack(game);
        if (out.packed) std::memcpy(out.packed + size_t(i) * sizeof packed, &packed, sizeof packed);
        if (out.planes) write_planes(packed, out.planes + size_t(i) * OBSERVATION_SIZE);
    }
    const MoveList& legal = game.legal_moves();
    legal_counts_[size_t(i)] = legal.size;
    if (out.mask) write_mask(legal, game.position().side(), out.mask + size_t(i) * ACTIONS);
}

void VectorGames::write_legal(const Observations& out) {
    if (!out.offsets || !out.actions) return;
    for (size_t i = 0; i < legal_counts_.size(); ++i) legal_offsets_[i + 1] = legal_offsets_[i] + legal_counts_[i];
    std::copy(legal_offsets_.begin(), legal_offsets_.end(), out.offsets);
    team_.run(plan_.slots, [&](int first, int end) {
        int32_t* actions = out.actions + legal_offsets_[size_t(first)];
        for (int i = first; i < end; ++i) {
            const MoveList& legal = game(i).legal_moves();
            write_actions(legal, game(i).position().side(), actions);
            actions += legal.size;
        }
    });
}

void VectorGames::observe(const Observations& out) {
    team_.run(plan_.slots, [&](int first, int end) {
        for (int i = first; i < end; ++i) see(game(i), i, out);
    });
    write_legal(out);
}

std::optional<Error> VectorGames::step(const int32_t* actions, const Results& results, const Observations& out) {
    std::atomic<int> first_illegal{plan_.slots};
    const std::vector<int32_t> given(actions, actions + plan_.slots);  // the caller may change its array meanwhile
    team_.run(plan_.slots, [&](int first, int end) {
        for (int i = first; i < end; ++i)
            if (!choose(slots_[size_t(i)], given[size_t(i)])) lower(first_illegal, i);
    });
    if (first_illegal < plan_.slots) return illegal(first_illegal, given[size_t(first_illegal)]);

    std::atomic<bool> any_ended{false};
    team_.run(plan_.slots, [&](int first, int end) {
        const Results results_here = results;  // avoids repeated reads from the other thread's stack
        const Observations out_here = out;
        for (int i = first; i < end; ++i) {
            Slot& slot = slots_[size_t(i)];
            play(slot, i, results_here);
            see(slot.game, i, out_here);
            if (slot.ended) any_ended = true;
        }
    });
    write_legal(out);

    finished_.clear();
    if (any_ended)
        for (const Slot& slot : slots_)
            if (slot.ended) finished_.push_back(slot.finished);
    return std::nullopt;
}

std::string VectorGames::save() const {
    ByteWriter out;
    out.bytes = MAGIC;
    out.put(int32_t(plan_.slots));
    out.put(int32_t(plan_.rules.max_moves));
    out.put(plan_.rules.declaration);
    out.put(plan_.seed);
    out.put(plan_.first_number);
    out.put(plan_.stride);
    out.put(int32_t(plan_.random_plies));
    out.put(uint32_t(plan_.starts.size()));
    for (const Position& start : plan_.starts) out.put(pack(start, plan_.rules.max_moves));
    out.put(plan_.scattered_share);
    out.put(plan_.late_share);
    out.put(uint32_t(plan_.late_starts.size()));
    for (const Position& start : plan_.late_starts) out.put(pack(start, plan_.rules.max_moves));
    for (const Slot& slot : slots_) {
        out.put(slot.number);
        out.put(pack(slot.start, plan_.rules.max_moves));
        out.put(slot.late);
        out.put(int32_t(slot.opening));
        out.put(uint32_t(slot.game.moves_played()));
        for (int i = 0; i < slot.game.moves_played(); ++i) out.put(slot.game.move(i).code());
    }
    out.put(checksum(out.bytes));
    return std::move(out.bytes);
}

Result<std::unique_ptr<VectorGames>> VectorGames::restore(std::string_view bytes, int threads) {
    const bool older = bytes.starts_with(OLDER);
    if (!older && !bytes.starts_with(MAGIC)) return damaged("not in the format of this version");
    if (bytes.size() < MAGIC.size() + sizeof(uint64_t)) return damaged("too short");
    uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
    bytes.remove_suffix(sizeof sum);
    if (sum != checksum(bytes)) return damaged("the checksum is wrong");
    ByteReader in(bytes.substr(MAGIC.size()));

    GamePlan plan;
    int32_t slots = 0, max_moves = 0, random_plies = 0;
    uint8_t declaration = 0;
    uint32_t starts = 0, late_starts = 0;
    if (!in.get(slots) || !in.get(max_moves) || !in.get(declaration) || !in.get(plan.seed) || !in.get(plan.first_number) ||
        !in.get(plan.stride) || !in.get(random_plies) || !in.get(starts))
        return damaged("too short");
    // Each slot and each start takes some bytes, which limits their numbers.
    constexpr size_t SLOT_BYTES = sizeof(uint64_t) + sizeof(PackedPosition) + 1 + sizeof(int32_t) + sizeof(uint32_t);
    if (slots < 1 || slots > MAX_SLOTS || size_t(slots) > in.left() / SLOT_BYTES || starts < 1 ||
        starts > in.left() / sizeof(PackedPosition) || max_moves < 1 || max_moves > UNLIMITED ||
        declaration > uint8_t(Declaration::TRY) || random_plies < 0)
        return damaged("invalid settings");
    plan.slots = slots;
    plan.rules = {max_moves, Declaration(declaration)};
    const auto read_positions = [&in](uint32_t count, std::vector<Position>& to) -> std::optional<Error> {
        for (uint32_t i = 0; i < count; ++i) {
            PackedPosition packed;
            if (!in.get(packed)) return damaged("too short");
            Result<Position> position = unpack(packed);
            if (!position.ok()) return damaged(position.error().message);
            to.push_back(position.value());
        }
        return std::nullopt;
    };
    if (const auto error = read_positions(starts, plan.starts)) return *error;
    if (!older && !in.get(plan.scattered_share)) return damaged("too short");
    if (!in.get(plan.late_share) || !in.get(late_starts)) return damaged("too short");
    if (const auto error = read_positions(late_starts, plan.late_starts)) return *error;
    if (const auto error = flaw(plan)) return damaged(error->message);

    // No opening is played for games that are about to be replaced.
    auto games = std::make_unique<VectorGames>(plan, threads);
    games->plan_.random_plies = random_plies;
    for (Slot& slot : games->slots_) {
        int32_t opening = 0;
        uint32_t moves = 0;
        uint8_t late = 0;
        std::vector<Position> start;
        if (!in.get(slot.number)) return damaged("too short");
        if (const auto error = read_positions(1, start)) return *error;
        if (!in.get(late) || !in.get(opening) || !in.get(moves)) return damaged("too short");
        if (late > 1 || opening < 0 || uint32_t(opening) > moves) return damaged("invalid slot");
        slot.opening = opening;
        slot.late = late;
        slot.start = start[0];
        slot.game.restart(slot.start);
        for (uint32_t i = 0; i < moves; ++i) {
            uint16_t code = 0;
            if (!in.get(code)) return damaged("too short");
            if (!slot.game.legal_moves().contains(Move(code))) return damaged("illegal move");
            slot.game.push_legal(Move(code));
        }
        if (decided(slot.game)) return damaged("a finished game");
    }
    if (in.left()) return damaged("extra bytes at the end");
    return games;
}

}  // namespace keisei
