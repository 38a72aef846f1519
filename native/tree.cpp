#include "tree.h"

#include <algorithm>
#include <cmath>

#include "alpha_beta.h"
#include "mate.h"

namespace keisei {
namespace {

// AlphaZero's formula: c_puct grows with the logarithm of the visits once there are many.
constexpr double GROWTH_BASE = 19652;

// A prior of 0 would have no logarithm.
constexpr double LEAST_PRIOR = 1e-9;

double value_of(bool win) { return win ? 1 : -1; }

// Sequential halving as a list: for each visit, how many visits the candidate that gets it has had before. Half of the
// candidates drop out by themselves: they are never the best of those with so many visits.
std::vector<int> halving(int candidates, int visits) {
    std::vector<int> sequence;
    if (candidates <= 1) {
        for (int i = 0; i < visits; ++i) sequence.push_back(i);
        return sequence;
    }
    const int rounds = int(std::ceil(std::log2(double(candidates))));
    std::vector<int> had(size_t(candidates), 0);
    while (int(sequence.size()) < visits) {
        const int each = std::max(1, visits / (rounds * candidates));
        for (int i = 0; i < each; ++i)
            for (int k = 0; k < candidates; ++k) sequence.push_back(had[size_t(k)]++);
        candidates = std::max(2, candidates / 2);
    }
    sequence.resize(size_t(visits));
    return sequence;
}

}  // namespace

uint32_t Tree::EdgeArena::allocate(int count) {
    const uint32_t room = uint32_t(blocks_.size()) * BLOCK - used_;
    if (room < uint32_t(count)) {
        used_ = uint32_t(blocks_.size()) * BLOCK;
        blocks_.push_back(std::make_unique<Edge[]>(BLOCK));
    }
    const uint32_t first = used_;
    used_ += uint32_t(count);
    return first;
}

Tree::Tree(const Game& game, const TreeSettings& settings, HalvingPlan plan)
    : game_(game), settings_(settings), plan_(std::move(plan)), nodes_(2) {
    nodes_[LOST].result = Verdict::LOSS;
    const MoveList& legal = game_.legal_moves();
    add_edges(nodes_[ROOT], legal.moves, legal.size);
    if (plan_.candidates) halving_ = halving(std::min({plan_.candidates, legal.size, plan_.visits - 1}), plan_.visits - 1);
    find_wins_at_root();
}

void Tree::add_edges(Node& node, const Move* moves, int count) {
    node.edges = edges_.allocate(count);
    node.edge_count = uint16_t(count);
    Edge* edge = begin_edges(node);
    for (int i = 0; i < count; ++i) edge[i] = Edge{NONE, 1.0f / float(count), moves[i]};
}

// Tries every move at the root, so that no immediate win is missed: mate, stalemate, a try, perpetual check by the
// opponent.
void Tree::find_wins_at_root() {
    Node& root = nodes_[ROOT];
    const Color us = game_.position().side();
    for (Edge* edge = begin_edges(root); edge != end_edges(root); ++edge) {
        game_.push_legal(edge->move);
        const std::optional<Outcome> end = game_.outcome();
        game_.pop();
        if (!end || end->winner != us) continue;
        edge->child = LOST;
        root.result = Verdict::WIN;
        root.plies = 1;
    }
}

// Classifies the position of a new node: over, won at once, or in need of an evaluation.
void Tree::judge(Node& node) {
    const Color us = game_.position().side();
    if (const std::optional<Outcome> end = game_.outcome()) {
        node.result = !end->winner ? Verdict::DRAW : *end->winner == us ? Verdict::WIN : Verdict::LOSS;
        if (end->reason == Reason::MAXIMUM_LENGTH && settings_.length_reward > 0)
            node.own_value = float(settings_.length_reward * std::tanh(material_balance(game_.position()) / 10.0));
        return;
    }
    if (game_.can_declare()) {
        node.result = Verdict::WIN;
        node.plies = 1;  // as if the declaration were a move
        return;
    }
    const MoveList& legal = game_.legal_moves();
    if (const std::optional<Move> mate = mate_in_one(game_.position(), legal)) {
        add_edges(node, &*mate, 1);
        begin_edges(node)->child = LOST;
        node.result = Verdict::WIN;
        node.plies = 1;
        return;
    }
    if (settings_.repetition_draws && game_.goes_round()) {
        node.result = Verdict::DRAW;
        return;
    }
    add_edges(node, legal.moves, legal.size);
}

bool Tree::finished(int visits_wanted) const {
    if (plan_.visits) visits_wanted = std::min(visits_wanted, plan_.visits);
    return nodes_[ROOT].result != Verdict::OPEN || full_ || visits() >= visits_wanted;
}

void Tree::collect(int visits_wanted) {
    if (!leaves_.empty()) return;
    if (plan_.visits) visits_wanted = std::min(visits_wanted, plan_.visits);
    for (int i = 0; i < settings_.leaves && !finished(visits_wanted - leaf_count()); ++i)
        if (!simulate()) break;
}

// Walks from the root to the end of the game or to a new leaf. False if that leaf is already waiting or memory is full.
bool Tree::simulate() {
    uint32_t at = ROOT;
    int depth = 0;
    bool done = false;
    while (true) {
        if (nodes_[at].result != Verdict::OPEN) {
            const Verdict result = nodes_[at].result;
            back_up(at, result == Verdict::DRAW ? double(nodes_[at].own_value) : value_of(result == Verdict::WIN));
            done = true;
            break;
        }
        if (nodes_[at].state == State::WAITING) break;
        if (nodes_[at].state == State::NEW) {
            wait(at);
            done = true;
            break;
        }
        Edge& edge = at == ROOT && plan_.candidates ? choose_at_root() : choose(nodes_[at]);
        const bool is_new = edge.child == NONE;
        if (is_new && size() >= settings_.max_nodes) {
            full_ = true;
            break;
        }
        game_.push_legal(edge.move);
        ++depth;
        if (is_new) {
            edge.child = uint32_t(nodes_.size());
            nodes_.emplace_back().parent = at;
            judge(nodes_.back());
        }
        at = edge.child;
    }
    for (; depth > 0; --depth) game_.pop();
    return done;
}

// Returns the edge with the highest value plus exploration, the first among equals. Moves proven to lose are skipped:
// there are others, or the node would be proven.
Tree::Edge& Tree::choose(const Node& node) const {
    const double visits = node.visits + node.passing;
    const double growth = std::log((1 + visits + GROWTH_BASE) / GROWTH_BASE);
    const double scale = (settings_.c_puct + growth) * std::sqrt(visits);
    double tried = 0, best_score = -INFINITY;
    Edge *best = nullptr, *untried = nullptr;
    for (Edge* edge = begin_edges(node); edge != end_edges(node); ++edge) {
        if (edge->child == NONE) {
            if (!untried || edge->prior > untried->prior) untried = edge;
            continue;
        }
        tried += double(edge->prior);
        const Node& child = nodes_[edge->child];
        if (child.result == Verdict::WIN) continue;
        const double n = child.visits + child.passing;
        const double score = (-child.value_sum - child.passing) / n + scale * double(edge->prior) / (1 + n);
        if (score > best_score) {
            best_score = score;
            best = edge;
        }
    }
    if (!untried) return *best;
    const double urgency = node.value_sum / node.visits - settings_.fpu * std::sqrt(tried);
    const double score = urgency + scale * double(untried->prior);
    return score > best_score || (score == best_score && untried < best) ? *untried : *best;
}

// The value of a tried move for the side that makes it.
double Tree::child_value(const Edge& edge) const {
    const Node& child = nodes_[edge.child];
    if (child.result == Verdict::WIN || child.result == Verdict::LOSS) return value_of(child.result == Verdict::LOSS);
    return -child.value_sum / child.visits;
}

bool Tree::is_tried(const Edge& edge) const {
    return edge.child != NONE && (nodes_[edge.child].visits || nodes_[edge.child].result == Verdict::LOSS);
}

// What an untried move of the root is worth: the network's value of the root and, for each visit, the mean of the tried
// moves' values by prior.
double Tree::mixed_value() const {
    const Node& root = nodes_[ROOT];
    double weighted = 0, tried = 0;
    int visits = 0;
    for (const Edge* edge = begin_edges(root); edge != end_edges(root); ++edge) {
        if (!is_tried(*edge)) continue;
        const double prior = std::max(double(edge->prior), LEAST_PRIOR);
        weighted += prior * child_value(*edge);
        tried += prior;
        visits += nodes_[edge->child].visits;
    }
    return visits ? (double(root.own_value) + visits * (weighted / tried)) / (1 + visits) : double(root.own_value);
}

// How many logits a difference of 1 in value is worth.
double Tree::scale_of_values() const {
    const Node& root = nodes_[ROOT];
    int most = 0;
    for (const Edge* edge = begin_edges(root); edge != end_edges(root); ++edge)
        if (edge->child != NONE) most = std::max(most, nodes_[edge->child].visits);
    return (plan_.c_visit + most) * plan_.c_scale;
}

double Tree::root_score(const Edge& edge, double mixed, double scale) const {
    const size_t i = size_t(&edge - begin_edges(nodes_[ROOT]));
    const double noise = plan_.noise.empty() ? 0 : double(plan_.noise[i]);
    const double value = is_tried(edge) ? child_value(edge) : mixed;
    return std::log(std::max(double(edge.prior), LEAST_PRIOR)) + noise + scale * value;
}

// The best of the moves that have had as many visits as the plan says.
Tree::Edge& Tree::choose_at_root() const {
    const Node& root = nodes_[ROOT];
    const size_t turn = size_t(root.visits - 1 + root.passing);
    const int wanted = halving_[std::min(turn, halving_.size() - 1)];
    const double mixed = mixed_value(), scale = scale_of_values();
    double best_score = -INFINITY, any_score = -INFINITY;
    Edge *best = nullptr, *any = nullptr;
    for (Edge* edge = begin_edges(root); edge != end_edges(root); ++edge) {
        const int visits = edge->child == NONE ? 0 : nodes_[edge->child].visits + nodes_[edge->child].passing;
        const double score = root_score(*edge, mixed, scale);
        if (visits == wanted && score > best_score) {
            best_score = score;
            best = edge;
        }
        if (score > any_score) {
            any_score = score;
            any = edge;
        }
    }
    return best ? *best : *any;
}

int Tree::sampled(double share, double temperature) const {
    const Node& root = nodes_[ROOT];
    const Edge* edges = begin_edges(root);
    float most = 0;
    for (int i = 0; i < root.edge_count; ++i) most = std::max(most, edges[i].prior);
    const auto weight = [&](int i) {
        // Divided by the largest, so that not all of them can underflow.
        return temperature == 1 ? double(edges[i].prior) : std::pow(double(edges[i].prior) / double(most), 1 / temperature);
    };
    double total = 0, sum = 0;
    for (int i = 0; i < root.edge_count; ++i) total += weight(i);
    int last = 0;
    for (int i = 0; i < root.edge_count; ++i) {
        if (edges[i].prior == 0) continue;
        sum += weight(i);
        last = i;
        if (sum > share * total) break;
    }
    return last;
}

// Proven wins come first and proven losses last; of the others, the best by score of those with the most visits.
Decision Tree::decision() const {
    const Node& root = nodes_[ROOT];
    const Edge* edges = begin_edges(root);
    const double mixed = mixed_value(), scale = scale_of_values();
    Decision found;
    found.value = root.result == Verdict::OPEN ? root.value_sum / root.visits : value_of(won());
    int most = 0, best = 0;
    for (int i = 0; i < root.edge_count; ++i)
        if (edges[i].child != NONE && mate_of(edges[i]) == 0) most = std::max(most, nodes_[edges[i].child].visits);
    const auto rank = [&](int i) {
        const int mate = mate_of(edges[i]);
        const int visits = edges[i].child == NONE ? 0 : nodes_[edges[i].child].visits;
        return mate > 0 ? 3 : mate < 0 ? 0 : visits == most ? 2 : 1;
    };
    for (int i = 1; i < root.edge_count; ++i) {
        const int a = rank(i), b = rank(best);
        bool better = root_score(edges[i], mixed, scale) > root_score(edges[best], mixed, scale);
        if (a == b && (a == 3 || a == 0)) better = mate_of(edges[i]) < mate_of(edges[best]);
        if (a > b || (a == b && better)) best = i;
    }
    found.move = best;
    for (int i = 0; i < root.edge_count; ++i) {
        if (!is_tried(edges[i])) continue;
        const float gain = float(scale * (child_value(edges[i]) - mixed));
        found.gains.push_back({i, mate_of(edges[i]) > 0 ? MOST_GAIN : std::clamp(gain, -MOST_GAIN, MOST_GAIN)});
    }
    if (root.visits) {
        double total = 0, weighted = 0, tried = 0;
        for (int i = 0; i < root.edge_count; ++i) total += double(edges[i].prior);
        for (const Gain& gain : found.gains) {
            const double weight = double(edges[gain.move].prior) * std::exp(double(gain.gain));
            weighted += weight * double(gain.gain);
            tried += weight - double(edges[gain.move].prior);
        }
        const double with_gains = total + tried;
        found.surprise = weighted / with_gains - std::log(with_gains / total);
    }
    return found;
}

std::optional<Tree::Answer> Tree::answer_after(int move) const {
    const Edge& edge = begin_edges(nodes_[ROOT])[move];
    if (edge.child == NONE || nodes_[edge.child].state != State::EXPANDED) return std::nullopt;
    const Node& child = nodes_[edge.child];
    Answer answer{{}, child.own_value};
    for (const Edge* reply = begin_edges(child); reply != end_edges(child); ++reply) answer.priors.push_back(reply->prior);
    return answer;
}

void Tree::answer_root(const Answer& answer) {
    wait(ROOT);
    expand(answer.priors.data(), &answer.value);
}

Tree::Edge* Tree::find_edge(const Node& node, Move move) const {
    Edge* found = std::find_if(begin_edges(node), end_edges(node), [&](const Edge& edge) { return edge.move == move; });
    return found == end_edges(node) ? nullptr : found;
}

std::unique_ptr<Tree> Tree::after(const std::vector<Move>& moves) const {
    if (!leaves_.empty()) return nullptr;
    Game game(game_);
    uint32_t at = ROOT;
    for (const Move move : moves) {
        const Edge* edge = find_edge(nodes_[at], move);
        if (!edge || edge->child == NONE || edge->child == LOST) return nullptr;
        game.push_legal(move);
        at = edge->child;
    }
    if (nodes_[at].state != State::EXPANDED || game.outcome()) return nullptr;
    auto tree = std::make_unique<Tree>(game, settings_);
    if (tree->nodes_[ROOT].edge_count != nodes_[at].edge_count) return nullptr;
    tree->graft(*this, at);
    return tree;
}

// Copies what another tree has at and below a node to the root. Its edges are known already, and which of them win.
void Tree::graft(const Tree& other, uint32_t root) {
    struct Copy {
        uint32_t from, to;
    };
    std::vector<Copy> copies{{root, ROOT}};
    for (size_t next = 0; next < copies.size(); ++next) {
        const auto [from, to] = copies[next];
        const Node& old = other.nodes_[from];
        Node node = old;
        node.parent = nodes_[to].parent;
        if (to == ROOT) {
            node.edges = nodes_[ROOT].edges;
            if (nodes_[ROOT].result == Verdict::WIN) {
                node.result = Verdict::WIN;
                node.plies = nodes_[ROOT].plies;
            }
        } else if (old.edge_count) {
            node.edges = edges_.allocate(old.edge_count);
            std::copy(other.begin_edges(old), other.end_edges(old), edges_.at(node.edges));
        }
        nodes_[to] = node;
        if (!node.edge_count) continue;
        const Edge* old_edge = other.begin_edges(old);
        for (Edge* edge = edges_.at(node.edges); old_edge != other.end_edges(old); ++old_edge, ++edge) {
            edge->prior = old_edge->prior;
            if (old_edge->child == NONE || old_edge->child == LOST || (to == ROOT && edge->child == LOST)) continue;
            edge->child = uint32_t(nodes_.size());
            nodes_.emplace_back().parent = to;
            copies.push_back({old_edge->child, edge->child});
        }
    }
}

void Tree::wait(uint32_t leaf) {
    nodes_[leaf].state = State::WAITING;
    leaves_.push_back({leaf, pack(game_)});
    for (uint32_t at = leaf; at != NONE; at = nodes_[at].parent) ++nodes_[at].passing;
}

// Adds a visit with this value to a node and all its ancestors, and propagates proofs.
void Tree::back_up(uint32_t from, double value) {
    bool child_proven = false;
    for (uint32_t at = from; at != NONE; at = nodes_[at].parent, value = -value) {
        Node& node = nodes_[at];
        if (child_proven) prove(node);
        child_proven = node.result == Verdict::WIN || node.result == Verdict::LOSS;
        ++node.visits;
        node.value_sum += value;
    }
}

// A win if a move leaves the other side lost (the quickest counts), a loss if all moves leave it won (the longest).
void Tree::prove(Node& node) const {
    int quickest = UINT16_MAX, longest = 0;
    bool wins = false, loses = true;
    for (const Edge* edge = begin_edges(node); edge != end_edges(node); ++edge) {
        const Verdict result = edge->child == NONE ? Verdict::OPEN : nodes_[edge->child].result;
        loses &= result == Verdict::WIN;
        if (result == Verdict::LOSS) {
            wins = true;
            quickest = std::min(quickest, nodes_[edge->child].plies + 1);
        }
        if (result == Verdict::WIN) longest = std::max(longest, nodes_[edge->child].plies + 1);
    }
    if (!wins && !loses) return;
    node.result = wins ? Verdict::WIN : Verdict::LOSS;
    node.plies = uint16_t(wins ? quickest : std::min(longest, UINT16_MAX - 1));
}

void Tree::write_leaf(int leaf, float* planes, int32_t* actions) const {
    const Leaf& waiting = leaves_[size_t(leaf)];
    write_planes(waiting.position, planes);
    const Color mover = Color(waiting.position.flags & 1);
    const Node& node = nodes_[waiting.node];
    for (const Edge* edge = begin_edges(node); edge != end_edges(node); ++edge)
        *actions++ = action_of(edge->move, mover);
}

void Tree::expand(const float* priors, const float* values) {
    for (const Leaf& leaf : leaves_) {
        Node& node = nodes_[leaf.node];
        for (Edge* edge = begin_edges(node); edge != end_edges(node); ++edge) edge->prior = *priors++;
        node.state = State::EXPANDED;
        node.own_value = *values;
        for (uint32_t at = leaf.node; at != NONE; at = nodes_[at].parent) --nodes_[at].passing;
        back_up(leaf.node, double(*values++));
    }
    leaves_.clear();
}

int Tree::mate_of(const Edge& edge) const {
    if (edge.child == NONE) return 0;
    const Node& child = nodes_[edge.child];
    if (child.result == Verdict::LOSS) return child.plies + 1;
    if (child.result == Verdict::WIN) return -(child.plies + 1);
    return 0;
}

// Proven wins, the quickest first; then the most visited; then proven losses, the longest first.
bool Tree::better(const Edge& a, const Edge& b) const {
    const auto rank = [](int mate) { return mate > 0 ? 2 : mate == 0 ? 1 : 0; };
    const int mate_a = mate_of(a), mate_b = mate_of(b);
    if (rank(mate_a) != rank(mate_b)) return rank(mate_a) > rank(mate_b);
    if (mate_a != mate_b) return mate_a < mate_b;
    const int visits_a = a.child == NONE ? 0 : nodes_[a.child].visits;
    const int visits_b = b.child == NONE ? 0 : nodes_[b.child].visits;
    if (visits_a != visits_b) return visits_a > visits_b;
    return a.prior > b.prior;
}

std::vector<Tree::Edge> Tree::ranked(const Node& node) const {
    std::vector<Edge> edges(begin_edges(node), end_edges(node));
    std::stable_sort(edges.begin(), edges.end(), [this](const Edge& a, const Edge& b) { return better(a, b); });
    return edges;
}

std::vector<Move> Tree::pv_from(const Edge& edge) const {
    std::vector<Move> pv{edge.move};
    uint32_t at = edge.child;
    while (at != NONE && nodes_[at].edge_count > 0) {
        const Node& node = nodes_[at];
        const Edge* best = begin_edges(node);
        for (const Edge* other = best + 1; other != end_edges(node); ++other)
            if (better(*other, *best)) best = other;
        if (best->child == NONE) break;  // no move was tried
        pv.push_back(best->move);
        at = best->child;
    }
    return pv;
}

std::vector<TreeLine> Tree::lines(int count) const {
    const Node& root = nodes_[ROOT];
    std::vector<TreeLine> lines;
    std::vector<Edge> edges = ranked(root);
    if (plan_.candidates && answered()) {
        const Move best = move(decision().move);
        const auto at = std::find_if(edges.begin(), edges.end(), [&](const Edge& edge) { return edge.move == best; });
        std::rotate(edges.begin(), at, at + 1);
    }
    for (const Edge& edge : edges) {
        if (int(lines.size()) == count) break;
        TreeLine line{edge.move, 0, 0, edge.prior, mate_of(edge), pv_from(edge)};
        if (root.visits) line.value = root.value_sum / root.visits;
        if (edge.child != NONE) {
            const Node& child = nodes_[edge.child];
            line.visits = child.visits;
            if (child.visits) line.value = 0 - child.value_sum / child.visits;  // never -0
        }
        if (line.mate) line.value = value_of(line.mate > 0);
        lines.push_back(std::move(line));
    }
    return lines;
}

Forest::Forest(int trees, const TreeSettings& settings, int threads)
    : settings_(settings), team_(std::clamp(threads, 1, std::max(trees, 1))), trees_(size_t(trees)),
      rows_(size_t(trees) + 1), actions_(size_t(trees) + 1) {}

Forest::Forest(const std::vector<const Game*>& games, const TreeSettings& settings, int threads, const HalvingPlan& plan)
    : Forest(int(games.size()), settings, threads) {
    renew([&](size_t i) { return std::make_unique<Tree>(*games[i], settings_, plan); });
}

bool Forest::advance(int i, const std::vector<Move>& moves) {
    std::unique_ptr<Tree> after = trees_[size_t(i)]->after(moves);
    if (!after) return false;
    trees_[size_t(i)] = std::move(after);
    return true;
}

void Forest::renew(const std::function<std::unique_ptr<Tree>(size_t)>& make) {
    for_trees([&](size_t i) { trees_[i] = make(i); });
    std::fill(rows_.begin(), rows_.end(), 0);
    std::fill(actions_.begin(), actions_.end(), 0);
}

void Forest::for_trees(const std::function<void(size_t)>& job) {
    team_.run(size(), [&job](int first, int end) {
        for (int i = first; i < end; ++i) job(size_t(i));
    });
}

bool Forest::answered() const {
    return std::all_of(trees_.begin(), trees_.end(), [](const auto& tree) { return tree->answered(); });
}

bool Forest::finished(int visits) const {
    return std::all_of(trees_.begin(), trees_.end(), [visits](const auto& tree) { return tree->finished(visits); });
}

void Forest::select(int visits) {
    for_trees([&](size_t i) { trees_[i]->collect(visits); });
    for (size_t i = 0; i < trees_.size(); ++i) {
        rows_[i + 1] = rows_[i] + trees_[i]->leaf_count();
        actions_[i + 1] = actions_[i];
        for (int leaf = 0; leaf < trees_[i]->leaf_count(); ++leaf) actions_[i + 1] += trees_[i]->legal_count(leaf);
    }
}

void Forest::write(float* planes, int32_t* offsets, int32_t* actions) {
    for_trees([&](size_t i) {
        int action = actions_[i];
        for (int leaf = 0; leaf < trees_[i]->leaf_count(); ++leaf) {
            const size_t row = size_t(rows_[i] + leaf);
            offsets[row] = action;
            trees_[i]->write_leaf(leaf, planes + row * OBSERVATION_SIZE, actions + action);
            action += trees_[i]->legal_count(leaf);
        }
    });
    offsets[rows()] = this->actions();
}

std::optional<Error> Forest::expand(const float* priors_given, const float* values_given) {
    // Copies, so that the values checked are the values used, even if the caller changes its arrays meanwhile.
    const std::vector<float> priors(priors_given, priors_given + actions());
    const std::vector<float> values(values_given, values_given + rows());
    for (size_t i = 0; i < priors.size(); ++i)
        if (!(priors[i] >= 0 && std::isfinite(priors[i])))
            return Error{Error::RULES, "priors[" + std::to_string(i) + "] is " + std::to_string(priors[i]) +
                                           ", expected a finite number, at least 0"};
    for (size_t i = 0; i < values.size(); ++i)
        if (!(values[i] >= -1 && values[i] <= 1))
            return Error{Error::RULES, "values[" + std::to_string(i) + "] is " + std::to_string(values[i]) +
                                           ", expected -1 to 1"};
    for_trees([&](size_t i) { trees_[i]->expand(priors.data() + actions_[i], values.data() + rows_[i]); });
    std::fill(rows_.begin(), rows_.end(), 0);
    std::fill(actions_.begin(), actions_.end(), 0);
    return std::nullopt;
}

}  // namespace keisei
