// Self-play that searches: for the next move of many games at once, a search in some of them and a sample of the policy
// in the others. Everything random depends on (seed, game number, ply), so it does not matter who plays a game.
#pragma once

#include "tree.h"
#include "vec_env.h"

namespace keisei {

struct SelfPlaySearchSettings {
    double share = 0.25;  // of the moves that are searched
    double temperature = 1;  // of the moves that are sampled
    int simulations = 16;  // after the root's own evaluation
    int candidates = 8;
    double c_visit = 50, c_scale = 0.5;
    TreeSettings tree;
};

// Where to write what was decided for N games; tried and gains have room for `candidates` moves of each.
struct Decisions {
    int32_t* actions = nullptr;
    float* log_probs = nullptr;  // of the actions, by the network; 0 where it was not asked
    float* values = nullptr;     // of the positions, by the search if there was one
    float* surprise = nullptr;   // the divergence of the policy with the gains from the policy without
    int16_t* tried = nullptr;    // actions that the search tried, then -1
    float* gains = nullptr;      // what it would add to their logits
};

// For one set of the network's weights: what it said of a position is used again at the next move.
class SelfPlaySearch {
public:
    SelfPlaySearch(const SelfPlaySearchSettings& settings, int games, int threads);

    const SelfPlaySearchSettings& settings() const { return settings_; }
    int games() const { return forest_.size(); }
    Forest& forest() { return forest_; }

    // Begins to decide the next moves. The games must be the same ones as before, and as many as games().
    void begin(const VectorGames& games);

    // The search is over: writes what to play.
    bool has_begun() const { return begun_; }
    bool finished() const { return forest_.finished(INT32_MAX); }
    void decide(const VectorGames& games, const Decisions& out);

private:
    struct Slot {
        bool searched = false;
        double chance = 0;  // picks the move if there is no search
        uint64_t number = 0;
        int ply = -1;       // at which `known` is the network's answer
        std::optional<Tree::Answer> known;
    };

    SelfPlaySearchSettings settings_;
    Forest forest_;
    std::vector<Slot> slots_;
    bool begun_ = false;
};

}  // namespace keisei
