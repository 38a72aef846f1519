// Many games at once: one call plays a move in each of them, decides what has ended, begins the next games and writes
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
// of its beginning depend on (seed, number) alone.
struct GamePlan {
    int slots = 1;
    Rules rules;
    uint64_t seed = 0;
    uint64_t first_number = 0;
    uint64_t stride = 1;
    std::vector<Position> starts;  // one is drawn for each game; at least one, and none with its game over
    int random_plies = 0;          // played at random before the players begin
    // A share of the games, in 2^-32, begins from one of these instead, and without random moves.
    std::vector<Position> late_starts;
    uint32_t late_share = 0;
};

// A game that has ended, all of it.
struct FinishedGame {
    int slot = 0;
    uint64_t number = 0;
    Outcome outcome{};
    int opening = 0;  // random moves at its beginning
    bool late = false;  // began from one of the late starts
    PackedPosition final_position{};
    Position start;
    std::vector<Move> moves;  // the opening's too
};

// Where to write; what is null is not wanted. N slots.
struct Observations {
    uint8_t* packed = nullptr;   // N * sizeof(PackedPosition), at any address
    float* planes = nullptr;     // N * OBSERVATION_SIZE
    int32_t* offsets = nullptr;  // N + 1: the legal actions of slot i are actions[offsets[i]] to [offsets[i + 1] - 1]
    int32_t* actions = nullptr;  // N * MAX_LEGAL_MOVES, of which offsets[N] are written
    bool* mask = nullptr;        // N * ACTIONS
};
struct Results {
    float* rewards = nullptr;  // N: 1, 0 or -1 for the player who has moved
    bool* ended = nullptr;     // N: the game is over, and what is seen is the next game's beginning
};

class VectorGames {
public:
    // The plan must be possible: see flaw().
    VectorGames(GamePlan plan, int threads);

    // What is impossible in a plan, for the user; nothing if all is well. There must be starts.
    static std::optional<Error> flaw(const GamePlan& plan);
    static std::optional<Error> flaw(const std::vector<Position>& starts, const Rules& rules);

    // Begins anew in every slot, as another plan that differs in seed and first number would.
    void restart(uint64_t seed, uint64_t first_number);

    const GamePlan& plan() const { return plan_; }
    int slots() const { return plan_.slots; }
    int threads() const { return team_.size(); }
    const Game& game(int slot) const { return slots_[size_t(slot)].game; }
    uint64_t number(int slot) const { return slots_[size_t(slot)].number; }

    // Other late starts, from the next beginning on. Like the starts, none may have its game over: see flaw().
    void set_late_starts(std::vector<Position> late_starts, uint32_t share);

    // What the players of all slots see now.
    void observe(const Observations& out);

    // Plays one action in each slot. An action that is not legal is an error, and then nothing was played anywhere.
    // A side that may declare a win, after the other's move, does so.
    std::optional<Error> step(const int32_t* actions, const Results& results, const Observations& out);

    // The games that the last step ended, by slot; valid until the next step.
    const std::vector<FinishedGame>& finished() const { return finished_; }

    // Everything that determines the future, and the games again from it; the bytes may be anything.
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
    // How many legal actions a slot has, and where they begin: apart from the slots, each of which stays in the cache of
    // the core that plays it, and apart from the caller's arrays, with which anything may happen meanwhile.
    std::vector<int32_t> legal_counts_, legal_offsets_;
    std::vector<FinishedGame> finished_;
};

}  // namespace keisei
