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
    Tree(const Game& game, const TreeSettings& settings);

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
        static constexpr uint32_t BLOCK = 1 << 14;
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
    void wait(uint32_t leaf);
    void back_up(uint32_t from, double value);
    void prove(Node& node) const;
    int mate_of(const Edge& edge) const;
    std::vector<Edge> ranked(const Node& node) const;
    bool better(const Edge& a, const Edge& b) const;
    std::vector<Move> pv_from(const Edge& edge) const;

    Game game_;  // at the root, except during a simulation
    TreeSettings settings_;
    std::vector<Node> nodes_;
    EdgeArena edges_;
    std::vector<Leaf> leaves_;
    bool full_ = false;
};

// The trees of many games.
class Forest {
public:
    Forest(const std::vector<const Game*>& games, const TreeSettings& settings, int threads);

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
