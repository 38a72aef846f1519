// Two searches take turns over one table of positions, each with twice the nodes of its last turn.
//
// ProofSearch is Nagai's depth-first proof-number search (df-pn) with weak proof numbers (the maximum instead of the
// sum, because lines transpose). A position already on the path counts as a failure for the attacker. A mate needs no
// repetition, so a proof holds on every path; a disproof may hold only on its own path (the graph-history interaction
// problem), and is only a hint.
//
// Fortress finds disproofs: sets of positions in which each check has a reply that leads back into the set.
#include "mate.h"

#include <algorithm>
#include <deque>
#include <memory_resource>
#include <unordered_map>
#include <unordered_set>

namespace keisei {

std::optional<Move> mate_in_one(Position pos, const MoveList& legal) {
    for (Move m : legal) {
        Undo undo;
        pos.do_move(m, undo);
        const bool mate = pos.in_check() && count_legal(pos) == 0;
        pos.undo_move(m, undo);
        if (mate) return m;
    }
    return std::nullopt;
}

namespace {

constexpr uint32_t INFINITE = 1u << 30;
constexpr int MAX_DEPTH = 500;  // plies: longer chases lead nowhere, and the recursion needs a limit
constexpr int STOP_INTERVAL = 256;
constexpr int64_t FIRST_TURN = 2000;  // nodes
constexpr size_t MAX_PLACES = 30'000;  // in a fortress, about 1.5 KB each

// How far a position is from being decided, for and against the side to move. Won: 0 and INFINITE.
struct Numbers {
    uint32_t to_win = 1, to_lose = 1;
    bool won() const { return to_win == 0; }
    bool lost() const { return to_lose == 0; }
};
constexpr Numbers WON{0, INFINITE}, LOST{INFINITE, 0};

struct Entry {
    Numbers numbers;
    uint16_t length = 0;  // plies to the mate, if the attacker has won
    bool on_path = false;
};

// All expanded positions. In many parts, so that none takes long to grow, and freed as a whole: time limits must be
// kept.
class Table {
public:
    Entry& operator[](uint64_t key) { return parts_[key % PARTS][key]; }  // the reference stays valid
    const Entry* find(uint64_t key) const {
        const auto& part = parts_[key % PARTS];
        const auto found = part.find(key);
        return found == part.end() ? nullptr : &found->second;
    }

private:
    // Not a power of two, because the parts take their buckets from the same key.
    static constexpr size_t PARTS = 1021;
    std::pmr::monotonic_buffer_resource memory_;
    std::pmr::vector<std::pmr::unordered_map<uint64_t, Entry>> parts_{PARTS, &memory_};
};

// A move and the position it leads to; `first` is its estimate until it is in the table.
struct Child {
    Move move;
    uint64_t key;
    Numbers first;
    bool fixed = false;  // decided without the table: mate, or an end without mate
};

// What both searches share: the position, the rules that end a game, the table, and the limits.
class Board {
public:
    Board(const Game& game, const MateLimits& limits)
        : pos(game.position()), limits_(limits), attacker_(pos.side()),
          try_rule_(game.rules().declaration == Declaration::TRY) {
        Game past = game;
        for (std::unordered_map<uint64_t, int> times; ; past.pop()) {
            if (++times[past.position().key()] == 3) worn_out_.insert(past.position().key());
            if (past.moves_played() == 0) break;
        }
    }

    bool attacking() const { return pos.side() == attacker_; }
    bool stopped() const { return stopped_; }

    // Starts a turn of this many nodes; spend() counts one, and is false once the turn or the search is over.
    void begin_turn(int64_t nodes) { turn_end_ = nodes_ + std::min(nodes, limits_.max_nodes - nodes_); }
    bool in_turn() const { return !stopped_ && nodes_ < turn_end_; }
    bool spend() {
        if (nodes_ >= limits_.max_nodes) stopped_ = true;
        if (!in_turn()) return false;
        if (++nodes_ % STOP_INTERVAL == 0 && limits_.stop && limits_.stop()) stopped_ = true;
        return !stopped_;
    }

    // The attacker's checks, or the defender's replies.
    std::vector<Child> children() {
        MoveList legal;
        generate_legal(pos, legal);
        std::vector<Child> found;
        const bool checks_only = attacking();
        for (Move m : legal) {
            Undo undo;
            pos.do_move(m, undo);
            if (!checks_only || pos.in_check()) {
                Child child{m, pos.key(), {}};
                const int replies = checks_only ? count_legal(pos) : 1;
                if (replies == 0) child.first = LOST;
                else if (is_dead_end()) child.first = attacking() ? LOST : WON;
                else child.first.to_lose = uint32_t(replies);
                child.fixed = child.first.won() || child.first.lost();
                found.push_back(child);
            }
            pos.undo_move(m, undo);
        }
        return found;
    }

    // A child's numbers, for the side to move there.
    Numbers numbers_of(const Child& child) const {
        const Entry* entry = known(child);
        if (!entry) return child.first;
        if (entry->on_path) return attacking() ? WON : LOST;
        return entry->numbers;
    }
    // Is the attacker's mate after this move proven?
    bool mated(const Child& child) const { return attacking() ? numbers_of(child).lost() : numbers_of(child).won(); }

    // Plies to a mate that is proven after all replies (the longest) or after some checks (the shortest).
    int length(const std::vector<Child>& children) const {
        int best = -1;
        for (const Child& child : children) {
            if (!mated(child)) continue;
            const int there = length_of(child);
            if (best < 0 || (attacking() ? there < best : there > best)) best = there;
        }
        return best + 1;
    }

    // One line from here to the proven mate.
    std::vector<Move> mating_line() {
        std::vector<Move> line;
        std::vector<Undo> undos;
        for (std::vector<Child> all = children(); !all.empty(); all = children()) {
            const int left = length(all) - 1;
            const auto chosen = std::find_if(all.begin(), all.end(), [&](const Child& child) {
                return mated(child) && length_of(child) == left;
            });
            line.push_back(chosen->move);
            pos.do_move(chosen->move, undos.emplace_back());
        }
        for (size_t i = line.size(); i-- > 0;) pos.undo_move(line[i], undos[i]);
        return line;
    }

    Position pos;
    Table table;

private:
    // The game is over here, or as good as over, without mate.
    bool is_dead_end() const {
        if (worn_out_.contains(pos.key())) return true;
        return try_rule_ && (pos.king(BLACK) == TRY_SQUARE[BLACK] || pos.king(WHITE) == TRY_SQUARE[WHITE]);
    }
    const Entry* known(const Child& child) const {
        return child.fixed ? nullptr : table.find(child.key);
    }
    int length_of(const Child& child) const {
        const Entry* entry = known(child);
        return entry ? entry->length : 0;
    }

    const MateLimits& limits_;
    const Color attacker_;
    const bool try_rule_;
    std::unordered_set<uint64_t> worn_out_;  // occurred three times: the fourth ends the game
    int64_t nodes_ = 0, turn_end_ = 0;
    bool stopped_ = false;
};

class ProofSearch {
public:
    explicit ProofSearch(Board& board) : board_(board) {}

    // Searches the position until one of its numbers reaches its limit, or the turn is over.
    void search(uint32_t limit_to_win = INFINITE, uint32_t limit_to_lose = INFINITE, int depth = 0) {
        if (!board_.spend()) return;
        Entry& entry = board_.table[board_.pos.key()];
        if (depth == MAX_DEPTH) {
            entry.numbers = board_.attacking() ? LOST : WON;  // a hint, like every disproof here
            return;
        }
        entry.on_path = true;
        const std::vector<Child> children = board_.children();
        while (true) {
            const Summary sum = summary(children);
            entry.numbers = sum.numbers;
            if (sum.numbers.to_win >= limit_to_win || sum.numbers.to_lose >= limit_to_lose || !board_.in_turn()) break;
            Undo undo;
            const Move move = children[sum.best].move;
            board_.pos.do_move(move, undo);
            // A quarter more than the second-best child's, to avoid switching at every step.
            search(limit_to_lose - sum.open + 1, std::min(limit_to_win, sum.second + 1 + sum.second / 4), depth + 1);
            board_.pos.undo_move(move, undo);
        }
        entry.on_path = false;
        const bool mated = board_.attacking() ? entry.numbers.won() : entry.numbers.lost();
        if (mated) entry.length = uint16_t(board_.length(children));
    }

private:
    struct Summary {
        Numbers numbers{INFINITE, 0};
        size_t best = 0;
        uint32_t second = INFINITE;  // the second-best child's to_lose
        uint32_t open = 0;           // children that the other side has not won
    };

    Summary summary(const std::vector<Child>& children) const {
        Summary sum;
        uint32_t hardest = 0;
        for (size_t i = 0; i < children.size(); ++i) {
            const Numbers child = board_.numbers_of(children[i]);
            if (child.to_lose < sum.numbers.to_win) {
                sum.second = sum.numbers.to_win;
                sum.numbers.to_win = child.to_lose;
                sum.best = i;
            } else {
                sum.second = std::min(sum.second, child.to_lose);
            }
            hardest = std::max(hardest, child.to_win);
            sum.open += child.to_win > 0;
        }
        const uint32_t sum_to_lose = sum.open ? hardest + sum.open - 1 : 0;
        sum.numbers.to_lose = hardest == INFINITE ? INFINITE : std::min(sum_to_lose, INFINITE - 1);
        return sum;
    }

    Board& board_;
};

// The defender plans one reply to each check; once that is proven to be mated, it plans the next one. When all
// positions that the planned replies lead to have been examined, the attacker can only go round in circles among them.
class Fortress {
public:
    explicit Fortress(Board& board) : board_(board), root_(board.pos) {
        place_of_board();
        queue_.push_back(ROOT);
    }

    // Builds until the fortress is closed (true), the root is won, the turn is over, or the fortress is too large.
    bool holds() {
        while (!queue_.empty() && !places_[ROOT].won && !too_large() && board_.spend()) {
            const size_t at = queue_.front();
            queue_.pop_front();
            places_[at].queued = false;
            if (at == ROOT || is_used(at)) look_at(at);
        }
        board_.pos = root_;
        return queue_.empty() && !places_[ROOT].won;
    }
    bool too_large() const { return places_.size() > MAX_PLACES; }

private:
    static constexpr size_t ROOT = 0;

    struct Check {
        Move move;
        std::vector<Move> replies;  // that may hold; the last one is planned
        size_t leads_to = ROOT;     // with that reply
    };
    struct User {
        size_t place, check;
    };
    // A position with the attacker to move.
    struct Place {
        Position pos;
        std::vector<Check> checks;
        std::vector<User> users;  // checks whose planned reply leads, or led, here
        bool looked_at = false, queued = false, won = false;
    };

    size_t place_of_board() {
        const auto [found, is_new] = index_.try_emplace(board_.pos.key(), places_.size());
        if (is_new) places_.push_back(Place{board_.pos, {}, {}});
        return found->second;
    }

    bool has_in_mind(const User& user, size_t at) const {
        const Place& place = places_[user.place];
        return !place.won && place.checks[user.check].leads_to == at;
    }
    bool is_used(size_t at) const {
        const std::vector<User>& users = places_[at].users;
        return std::any_of(users.begin(), users.end(), [&](const User& user) { return has_in_mind(user, at); });
    }

    void look_at(size_t at) {
        places_[at].looked_at = true;
        board_.pos = places_[at].pos;
        std::vector<Check> checks;
        for (const Child& child : board_.children()) {
            if (board_.mated(child)) return win(at);
            if (!child.fixed) prepare(child.move, checks);
        }
        places_[at].checks = std::move(checks);
        for (size_t i = 0; i < places_[at].checks.size(); ++i)
            if (!think_again(at, i)) return win(at);
    }

    // Adds a check with its replies, the other search's favourites last; adds nothing if a reply ends the game.
    void prepare(Move move, std::vector<Check>& checks) {
        Undo undo;
        board_.pos.do_move(move, undo);
        std::vector<Child> replies = board_.children();
        board_.pos.undo_move(move, undo);
        if (std::any_of(replies.begin(), replies.end(), [](const Child& reply) { return reply.fixed; })) return;
        std::stable_partition(replies.begin(), replies.end(),
                              [&](const Child& reply) { return !board_.numbers_of(reply).lost(); });
        Check check{move, {}};
        for (const Child& reply : replies) check.replies.push_back(reply.move);
        checks.push_back(std::move(check));
    }

    // Finds a reply to a check that is not mated; if there is none, stores the mate in the table and returns false.
    bool think_again(size_t at, size_t i) {
        Undo undo;
        while (!places_[at].checks[i].replies.empty()) {
            Check& check = places_[at].checks[i];
            board_.pos = places_[at].pos;
            board_.pos.do_move(check.move, undo);
            board_.pos.do_move(check.replies.back(), undo);
            const Entry* known = board_.table.find(board_.pos.key());
            if (!known || !known->numbers.won()) {
                const size_t to = check.leads_to = place_of_board();
                Place& place = places_[to];
                place.users.push_back({at, i});
                if (!place.looked_at && !place.queued) queue_.push_back(to);
                place.queued = !place.looked_at;
                return true;
            }
            check.replies.pop_back();
        }
        board_.pos = places_[at].pos;
        board_.pos.do_move(places_[at].checks[i].move, undo);
        enter(LOST);
        return false;
    }

    // Stores the board's position as decided by its children.
    void enter(Numbers numbers) {
        const int length = board_.length(board_.children());
        board_.table[board_.pos.key()] = Entry{numbers, uint16_t(length), false};
    }

    // Marks a place as won by the attacker, and any others that follow.
    void win(size_t first) {
        std::vector<size_t> won{first};
        while (!won.empty()) {
            const size_t at = won.back();
            won.pop_back();
            if (places_[at].won) continue;
            places_[at].won = true;
            board_.pos = places_[at].pos;
            enter(WON);
            for (size_t i = 0; i < places_[at].users.size(); ++i) {
                const User user = places_[at].users[i];
                if (has_in_mind(user, at) && !think_again(user.place, user.check)) won.push_back(user.place);
            }
        }
    }

    Board& board_;
    const Position root_;
    std::deque<Place> places_;  // references stay valid
    std::unordered_map<uint64_t, size_t> index_;
    std::deque<size_t> queue_;
};

}  // namespace

MateAnswer find_mate(const Game& game, const MateLimits& limits) {
    Board board(game, limits);
    const Entry& root = board.table[board.pos.key()];
    bool too_large = false;
    for (int64_t turn = FIRST_TURN; !board.stopped() && !root.numbers.won(); turn *= 2) {
        board.begin_turn(turn);
        if (!root.numbers.lost()) ProofSearch(board).search();
        if (root.numbers.won() || (too_large && !root.numbers.lost())) continue;
        board.begin_turn(root.numbers.lost() ? limits.max_nodes : turn / 2);
        Fortress fortress(board);
        if (fortress.holds()) return {MateAnswer::NO_MATE, {}};
        too_large = fortress.too_large();
        if (too_large && root.numbers.lost()) break;  // and the hints cannot get any better
    }
    if (!root.numbers.won()) return {MateAnswer::UNKNOWN, {}};
    std::vector<Move> line = board.mating_line();
    const bool in_time = int(line.size()) <= game.rules().max_moves - game.position().ply();
    if (!in_time) return {MateAnswer::UNKNOWN, {}};
    return {MateAnswer::MATE, std::move(line)};
}

}  // namespace keisei
