// PUCT search: one tree per game, with the leaves of all trees handed out for evaluation in one batch.
// A game's result depends only on that game, the settings and the evaluations of its own leaves.
#pragma once

#include <memory>
#include <vector>

#include "encode.h"
#include "threads.h"

namespace keisei {

// More nodes could have more edges than 32 bits can number.
constexpr int MAX_TREE_NODES = 4'000'000;

struct TreeSettings {
    double c_puct = 1.5;   // the weight of priors against values
    double fpu = 0.25;     // an untried move has its position's value minus fpu * sqrt(sum of the tried moves' priors)
    int leaves = 8;        // handed out per tree at once
    int max_nodes = 500'000;
    // A game of maximum length is worth this times tanh(lead in pawns / 10), as in training; 0 makes it a draw.
    double length_reward = 0;
    // A position below the root that has occurred before counts as a draw, not only when it occurs for the fourth time:
    // otherwise a search sees no draw before it is a few moves away.
    bool repetition_draws = false;
};

// Sequential halving at the root (Danihelka et al., "Policy improvement by planning with Gumbel", 2022): a few moves are
// chosen by prior and noise and get the same number of visits, then the better half of them as many again, and so on.
// Good moves are found with few visits, and with noise the chosen one is a sample from an improved policy.
struct HalvingPlan {
    int candidates = 0;  // moves to begin with; 0 means PUCT at the root, as everywhere else
    int visits = 0;      // of the root, its own evaluation included; the search ends there
    double c_visit = 50, c_scale = 0.5;  // a difference d in value is worth d * (c_visit + most visits) * c_scale in logits
    std::vector<float> noise;            // for each legal move, added to the logarithm of its prior; empty is none
};

// The effect of a search on a move that it tried: what to add to its logit.
struct Gain {
    int move = 0;  // which of the root's legal moves, in their order
    float gain = 0;
};
constexpr float MOST_GAIN = 6;  // either way: beyond that, a softmax hardly changes any more

struct Decision {
    int move = 0;  // which of the root's legal moves
    double value = 0;
    double surprise = 0;  // the divergence of the policy with the gains from the priors; 0 without priors
    std::vector<Gain> gains;
};

// A move at the root and the search's results for it, from the point of view of the side to move at the root.
struct TreeLine {
    Move move;
    int visits = 0;
    double value = 0;
    float prior = 0;
    int mate = 0;          // plies to a proven win, negative for a proven loss; 0 if nothing is proven
    std::vector<Move> pv;  // starts with the move
};

// The tree of one game. Values are for the side to move at a node, so the sign changes from ply to ply.
class Tree {
public:
    // The game must not be over. Declaring a win at the root is up to the caller: a move is searched in any case.
    Tree(const Game& game, const TreeSettings& settings, HalvingPlan plan = {});

    int visits() const { return nodes_[ROOT].visits; }
    int size() const { return int(nodes_.size()) - 1; }
    bool answered() const { return nodes_[ROOT].result != Verdict::OPEN || visits() > 0; }
    // Is the search complete: enough visits, a proof, or no room left?
    bool finished(int visits_wanted) const;

    // Collects leaves, unless some are still waiting for their evaluation.
    void collect(int visits_wanted);
    int leaf_count() const { return int(leaves_.size()); }
    int legal_count(int leaf) const { return nodes_[leaves_[size_t(leaf)].node].edge_count; }
    // OBSERVATION_SIZE floats, and legal_count() actions.
    void write_leaf(int leaf, float* planes, int32_t* actions) const;

    // Takes the evaluations of all leaves: the priors of each leaf's actions in turn, and a value for each leaf.
    void expand(const float* priors, const float* values);

    // Returns at most this many moves, best first.
    std::vector<TreeLine> lines(int count) const;

    // The tree of the game after these moves, with everything that is known of it; null if that is nothing, or if leaves
    // are waiting for their evaluation.
    std::unique_ptr<Tree> after(const std::vector<Move>& moves) const;

    // For self-play. The root must have been answered.
    bool won() const { return nodes_[ROOT].result == Verdict::WIN; }
    const Move& move(int i) const { return (begin_edges(nodes_[ROOT]) + i)->move; }
    float prior(int i) const { return (begin_edges(nodes_[ROOT]) + i)->prior; }
    float own_value() const { return nodes_[ROOT].own_value; }
    // The move that a cumulative sum of the priors, to the power 1 / temperature, reaches at this share of their total.
    int sampled(double share, double temperature) const;
    Decision decision() const;

    // The network's answer for a position: priors in the order of its legal moves, and its value.
    struct Answer {
        std::vector<float> priors;
        float value = 0;
    };
    std::optional<Answer> answer_after(int move) const;  // if the search has one
    void answer_root(const Answer& answer);              // nothing may have been collected

private:
    // For the side to move. A draw is never proven, only reached at the end of a game.
    enum class Verdict : uint8_t { OPEN, WIN, LOSS, DRAW };
    enum class State : uint8_t { NEW, WAITING, EXPANDED };

    struct Node {
        double value_sum = 0;
        uint32_t parent = NONE;
        uint32_t edges = 0;  // the first of them
        int32_t visits = 0;
        uint16_t edge_count = 0;
        uint16_t passing = 0;  // leaves waiting at or below this node: each is a virtual loss for the side that moved here
        uint16_t plies = 0;    // to the proven end
        Verdict result = Verdict::OPEN;
        State state = State::NEW;
        float own_value = 0;  // by its own evaluation, or by the end of the game if that is no win
    };
    static_assert(sizeof(Node) == 32);

    struct Edge {
        uint32_t child = NONE;
        float prior = 0;
        Move move;
    };
    static_assert(sizeof(Edge) == 12);

    // Edges in blocks: a node's edges are contiguous, and none ever moves.
    class EdgeArena {
    public:
        uint32_t allocate(int count);
        Edge* at(uint32_t i) const { return blocks_[i / BLOCK].get() + i % BLOCK; }

    private:
        static constexpr uint32_t BLOCK = 1 << 12;
        std::vector<std::unique_ptr<Edge[]>> blocks_;
        uint32_t used_ = 0;
    };

    struct Leaf {
        uint32_t node;
        PackedPosition position;
    };

    static constexpr uint32_t NONE = UINT32_MAX;
    static constexpr uint32_t LOST = 0;  // one node for all positions lost for the side to move
    static constexpr uint32_t ROOT = 1;

    Edge* begin_edges(const Node& node) const { return edges_.at(node.edges); }
    Edge* end_edges(const Node& node) const { return begin_edges(node) + node.edge_count; }
    void add_edges(Node& node, const Move* moves, int count);
    void find_wins_at_root();
    void judge(Node& node);
    bool simulate();
    Edge& choose(const Node& node) const;
    Edge& choose_at_root() const;
    double child_value(const Edge& edge) const;
    bool is_tried(const Edge& edge) const;
    double mixed_value() const;
    double root_score(const Edge& edge, double mixed, double scale) const;
    double scale_of_values() const;
    Edge* find_edge(const Node& node, Move move) const;
    void graft(const Tree& other, uint32_t root);
    void wait(uint32_t leaf);
    void back_up(uint32_t from, double value);
    void prove(Node& node) const;
    int mate_of(const Edge& edge) const;
    std::vector<Edge> ranked(const Node& node) const;
    bool better(const Edge& a, const Edge& b) const;
    std::vector<Move> pv_from(const Edge& edge) const;

    Game game_;  // at the root, except during a simulation
    TreeSettings settings_;
    HalvingPlan plan_;
    std::vector<int> halving_;  // for each visit after the first, how many the chosen candidate has had
    std::vector<Node> nodes_;
    EdgeArena edges_;
    std::vector<Leaf> leaves_;
    bool full_ = false;
};

// The trees of many games.
class Forest {
public:
    Forest(const std::vector<const Game*>& games, const TreeSettings& settings, int threads,
           const HalvingPlan& plan = {});

    // Replaces a tree by its part after these moves; returns whether anything was known of that.
    bool advance(int i, const std::vector<Move>& moves);

    // Replaces all trees, each by what `make` returns; called by several threads.
    void renew(const std::function<std::unique_ptr<Tree>(size_t)>& make);

    // Room for so many trees, to be filled by renew().
    Forest(int trees, const TreeSettings& settings, int threads);

    const TreeSettings& settings() const { return settings_; }
    int size() const { return int(trees_.size()); }
    const Tree& tree(int i) const { return *trees_[size_t(i)]; }
    int most_rows() const { return size() * settings_.leaves; }
    int rows() const { return rows_.back(); }
    int actions() const { return actions_.back(); }
    bool answered() const;
    bool finished(int visits) const;

    // Selects leaves in all trees that have fewer visits, and writes rows() planes, rows() + 1 offsets into the
    // actions, and the actions. Until expand() has received their evaluations, the leaves stay the same. There may be
    // none before the search is finished.
    void select(int visits);
    void write(float* planes, int32_t* offsets, int32_t* actions);

    // Takes actions() priors and rows() values; if one is invalid, returns an error and changes nothing.
    std::optional<Error> expand(const float* priors, const float* values);

private:
    void for_trees(const std::function<void(size_t)>& job);

    TreeSettings settings_;
    ThreadTeam team_;
    std::vector<std::unique_ptr<Tree>> trees_;
    std::vector<int> rows_, actions_;  // cumulative over the trees, the total last
};

}  // namespace keisei
