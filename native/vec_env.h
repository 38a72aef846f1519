// Many games at once: one call plays a move in each of them, detects the ends of games, starts the next ones and writes
// what the players see into the caller's arrays. The results do not depend on the number of threads.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "encode.h"
#include "threads.h"

namespace keisei {

// More slots could have more legal actions than 32-bit offsets can number.
constexpr int MAX_SLOTS = INT32_MAX / MAX_LEGAL_MOVES;

// Which games are played. The j-th game of slot i has the number first_number + i + j * stride, and the random choices
// at its start depend only on (seed, number).
struct GamePlan {
    int slots = 1;
    Rules rules;
    uint64_t seed = 0;
    uint64_t first_number = 0;
    uint64_t stride = 1;
    std::vector<Position> starts;  // one is drawn for each game; at least one, and none that is already decided
    int random_plies = 0;          // random moves before the players take over
    // A share of the games, in units of 2^-32, starts from one of these instead, without random moves.
    std::vector<Position> late_starts;
    uint32_t late_share = 0;
    uint32_t scattered_share = 0;  // of the others: from a scattered position of its own, without random moves
};

// A complete finished game.
struct FinishedGame {
    int slot = 0;
    uint64_t number = 0;
    Outcome outcome{};
    int opening = 0;  // random moves at its start
    bool late = false;  // began from one of the late starts
    PackedPosition final_position{};
    Position start;
    std::vector<Move> moves;  // including the opening
};

// Where to write for N slots; null is skipped.
struct Observations {
    uint8_t* packed = nullptr;   // N * sizeof(PackedPosition), of any alignment
    float* planes = nullptr;     // N * OBSERVATION_SIZE
    int32_t* offsets = nullptr;  // N + 1: the legal actions of slot i are actions[offsets[i]] to [offsets[i + 1] - 1]
    int32_t* actions = nullptr;  // N * MAX_LEGAL_MOVES, of which offsets[N] are written
    bool* mask = nullptr;        // N * ACTIONS
};
struct Results {
    float* rewards = nullptr;  // N: 1, 0 or -1 for the player who has just moved
    bool* ended = nullptr;     // N: the game is over, and the observation is the start of the next one
};

class VectorGames {
public:
    // The plan must be valid: see flaw().
    VectorGames(GamePlan plan, int threads);

    // What is wrong with a plan, as a message for the user; nothing if it is valid. There must be starts.
    static std::optional<Error> flaw(const GamePlan& plan);
    static std::optional<Error> flaw(const std::vector<Position>& starts, const Rules& rules);

    // Starts new games in every slot, as a plan with this seed and first number would.
    void restart(uint64_t seed, uint64_t first_number);

    const GamePlan& plan() const { return plan_; }
    int slots() const { return plan_.slots; }
    int threads() const { return team_.size(); }
    const Game& game(int slot) const { return slots_[size_t(slot)].game; }
    uint64_t number(int slot) const { return slots_[size_t(slot)].number; }

    // Replaces the late starts for all games to come. Like the starts, none may be already decided: see flaw().
    void set_late_starts(std::vector<Position> late_starts, uint32_t share);

    // Writes what the players to move see in all slots.
    void observe(const Observations& out);

    // Plays one action in each slot. An illegal action is an error, and then nothing is played in any slot.
    // A side that may declare a win after its opponent's move does so.
    std::optional<Error> step(const int32_t* actions, const Results& results, const Observations& out);

    // The games that ended in the last step, by slot; valid until the next step.
    const std::vector<FinishedGame>& finished() const { return finished_; }

    // Saves everything that determines the future; restore() accepts untrusted bytes.
    std::string save() const;
    static Result<std::unique_ptr<VectorGames>> restore(std::string_view bytes, int threads);

private:
    struct Slot {
        Game game;
        uint64_t number;
        Position start;
        int opening = 0;
        bool late = false;
        Move chosen{};
        bool ended = false;
        FinishedGame finished{};  // if ended
    };

    void begin(Slot& slot) const;
    bool choose(Slot& slot, int32_t action) const;
    void play(Slot& slot, int i, const Results& results) const;
    void see(const Game& game, int i, const Observations& out);
    void write_legal(const Observations& out);
    Error illegal(int i, int32_t action) const;

    GamePlan plan_;
    ThreadTeam team_;
    std::vector<Slot> slots_;
    // The number of legal actions of each slot, and their offsets. Kept apart from the slots, each of which stays in
    // the cache of its own core, and from the caller's arrays, which may change at any time.
    std::vector<int32_t> legal_counts_, legal_offsets_;
    std::vector<FinishedGame> finished_;
};

}  // namespace keisei
