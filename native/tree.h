// Search with PUCT: a tree for each of many games, whose leaves are given out to be evaluated all in one batch.
// What becomes of a game depends on nothing but that game, the settings and the evaluations of its own leaves.
#pragma once

#include <memory>
#include <vector>

#include "encode.h"
#include "threads.h"

namespace keisei {

// More nodes could have more edges than 32 bits can number.
constexpr int MAX_TREE_NODES = 4'000'000;

struct TreeSettings {
    double c_puct = 1.5;   // how much a prior counts against a value
    double fpu = 0.25;     // a move not tried counts as its position's value, less this by the share of priors tried
    int leaves = 8;        // that a tree gives out at once
    int max_nodes = 500'000;
};

// A move at the root, and what the search found about it; for the side to move at the root.
struct TreeLine {
    Move move;
    int visits = 0;
    double value = 0;
    float prior = 0;
    int mate = 0;          // plies to a proven win, negative: to a proven loss; 0: nothing is proven
    std::vector<Move> pv;  // begins with the move
};

// The tree of one game. Values are those of a node's side to move and change their sign from ply to ply.
class Tree {
public:
    // The game must not be over. That its side to move could declare a win is left to the caller: a move is searched.
    Tree(const Game& game, const TreeSettings& settings);

    int visits() const { return nodes_[ROOT].visits; }
    int size() const { return int(nodes_.size()) - 1; }
    bool answered() const { return nodes_[ROOT].result != Verdict::OPEN || visits() > 0; }
    // Is there nothing left to do: so many visits, a proof, or no room?
    bool finished(int visits_wanted) const;

    // Collects leaves, unless there are some that wait for their evaluation.
    void collect(int visits_wanted);
    int leaf_count() const { return int(leaves_.size()); }
    int legal_count(int leaf) const { return nodes_[leaves_[size_t(leaf)].node].edge_count; }
    // OBSERVATION_SIZE floats, and legal_count() actions.
    void write_leaf(int leaf, float* planes, int32_t* actions) const;

    // The evaluations of all leaves: the priors of each one's actions in turn, and a value for each.
    void expand(const float* priors, const float* values);

    // The best moves, at most so many, the best first.
    std::vector<TreeLine> lines(int count) const;

private:
    // For the side to move. A draw is never proven, only found at the end of a game.
    enum class Verdict : uint8_t { OPEN, WIN, LOSS, DRAW };
    enum class State : uint8_t { NEW, WAITING, EXPANDED };

    struct Node {
        double value_sum = 0;
        uint32_t parent = NONE;
        uint32_t edges = 0;  // the first of them
        int32_t visits = 0;
        uint16_t edge_count = 0;
        uint16_t passing = 0;  // leaves at or below this node that wait: each is a loss for the side that came here
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

    // Edges in blocks: those of a node lie side by side, and none is ever moved.
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
    static constexpr uint32_t LOST = 0;  // one node for all positions in which the side to move has lost
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

    Game game_;  // at the root, but while a simulation walks
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

    // Chooses leaves in all trees that have fewer visits, and writes them down: rows() positions, their planes, the
    // offsets of their actions (rows() + 1), and the actions. Until expand() has been given their evaluations, they
    // are the same leaves again. There may be none although the search is not finished.
    void select(int visits);
    void write(float* planes, int32_t* offsets, int32_t* actions);

    // actions() priors and rows() values; an error, and nothing has changed, if one cannot be.
    std::optional<Error> expand(const float* priors, const float* values);

private:
    void for_trees(const std::function<void(size_t)>& job);

    TreeSettings settings_;
    ThreadTeam team_;
    std::vector<std::unique_ptr<Tree>> trees_;
    std::vector<int> rows_, actions_;  // of the trees before each one, and of all
};

}  // namespace keisei
