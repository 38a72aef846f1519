// Depth-first proof-number search (Nagai's df-pn) with weak proof numbers (the largest of a sum instead of the sum, as
// positions meet again), over a table of all positions that were looked into.
//
// A position that stands on the path already counts as a failure of the attacker. Who mates needs no repetition, so a
// proof is a proof on every path. A disproof may hold on its own path only (the graph-history problem); therefore one is
// believed only when the positions that it rests on form a whole that the attacker cannot leave: see stands().
#include "mate.h"

#include <algorithm>
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
constexpr int MAX_DEPTH = 1000;  // plies of recursion, of which each has a frame of a few hundred bytes
constexpr int STOP_INTERVAL = 256;

// How far a position is from being decided: for the side to move, and then against it. Won: 0 and INFINITE.
struct Numbers {
    uint32_t to_win = 1, to_lose = 1;
    bool won() const { return to_win == 0; }
    bool lost() const { return to_lose == 0; }
};
constexpr Numbers WON{0, INFINITE}, LOST{INFINITE, 0};

struct Entry {
    Numbers numbers;
    uint16_t length = 0;  // plies to the mate, where the attacker has won
    bool on_path = false;
};

// A move and the position behind it; first is what is thought of it until it is in the table.
struct Child {
    Move move;
    uint64_t key;
    Numbers first;
    bool fixed = false;  // decided without the table: mate, or an end that is none
};

class MateSearch {
public:
    MateSearch(const Game& game, const MateLimits& limits)
        : limits_(limits), pos_(game.position()), attacker_(pos_.side()),
          try_rule_(game.rules().declaration == Declaration::TRY) {
        Game past = game;
        for (std::unordered_map<uint64_t, int> times; ; past.pop()) {
            if (++times[past.position().key()] == 3) worn_out_.insert(past.position().key());
            if (past.moves_played() == 0) break;
        }
    }

    MateAnswer answer(int max_plies) {
        while (!stopped_) {
            search(INFINITE, INFINITE, 0);
            const Numbers root = table_[pos_.key()].numbers;
            if (root.won()) {
                std::vector<Move> line = mating_line();
                if (int(line.size()) > max_plies) break;
                return {MateAnswer::MATE, std::move(line), nodes_};
            }
            if (root.lost() && stands()) return {MateAnswer::NO_MATE, {}, nodes_};
        }
        return {MateAnswer::UNKNOWN, {}, nodes_};
    }

private:
    bool attacking() const { return pos_.side() == attacker_; }
    Numbers failure() const { return attacking() ? LOST : WON; }  // of the attacker, for the side to move

    void count_node() {
        if (++nodes_ > limits_.max_nodes) stopped_ = true;
        else if (nodes_ % STOP_INTERVAL == 0 && limits_.stop && limits_.stop()) stopped_ = true;
    }

    // The game is over here, or as good as over, without a mate.
    bool is_dead_end() const {
        if (worn_out_.contains(pos_.key())) return true;
        return try_rule_ && (pos_.king(BLACK) == TRY_SQUARE[BLACK] || pos_.king(WHITE) == TRY_SQUARE[WHITE]);
    }

    // The attacker's checks, or the defender's replies.
    std::vector<Child> children() {
        MoveList legal;
        generate_legal(pos_, legal);
        std::vector<Child> found;
        const bool checks_only = attacking();
        for (Move m : legal) {
            Undo undo;
            pos_.do_move(m, undo);
            if (!checks_only || pos_.in_check()) {
                Child child{m, pos_.key(), {}};
                const int replies = checks_only ? count_legal(pos_) : 1;
                if (replies == 0) child.first = LOST;
                else if (is_dead_end()) child.first = failure();
                else child.first.to_lose = uint32_t(replies);
                child.fixed = child.first.won() || child.first.lost();
                found.push_back(child);
            }
            pos_.undo_move(m, undo);
        }
        return found;
    }

    const Entry* known(const Child& child) const {
        const auto found = child.fixed ? table_.end() : table_.find(child.key);
        return found == table_.end() ? nullptr : &found->second;
    }

    // As the child's side to move sees it, which is not the one to move now.
    Numbers numbers_of(const Child& child) const {
        const Entry* entry = known(child);
        if (!entry) return child.first;
        if (entry->on_path) return attacking() ? WON : LOST;
        return entry->numbers;
    }
    int length_of(const Child& child) const {
        const Entry* entry = known(child);
        return entry ? entry->length : 0;
    }

    struct Summary {
        Numbers numbers{INFINITE, 0};
        size_t best = 0;
        uint32_t second = INFINITE;  // the next best child's to_lose
        uint32_t open = 0;           // children that the other side has not won
    };

    Summary summary(const std::vector<Child>& children) const {
        Summary sum;
        uint32_t hardest = 0;
        for (size_t i = 0; i < children.size(); ++i) {
            const Numbers child = numbers_of(children[i]);
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
        sum.numbers.to_lose = hardest == INFINITE ? INFINITE : sum.open ? std::min(hardest + sum.open - 1, INFINITE - 1) : 0;
        return sum;
    }

    // Looks into the position until one of its numbers reaches its limit.
    void search(uint32_t limit_to_win, uint32_t limit_to_lose, int depth) {
        count_node();
        if (depth > MAX_DEPTH) stopped_ = true;
        if (stopped_) return;
        Entry& entry = table_[pos_.key()];  // stays in its place
        entry.on_path = true;
        const std::vector<Child> all = children();
        while (true) {
            const Summary sum = summary(all);
            if (!stopped_) entry.numbers = sum.numbers;
            if (stopped_ || sum.numbers.to_win >= limit_to_win || sum.numbers.to_lose >= limit_to_lose) break;
            Undo undo;
            const Move move = all[sum.best].move;
            pos_.do_move(move, undo);
            search(limit_to_lose - sum.open + 1, std::min(limit_to_win, sum.second + 1), depth + 1);
            pos_.undo_move(move, undo);
        }
        entry.on_path = false;
        if (attacking() ? entry.numbers.won() : entry.numbers.lost()) entry.length = uint16_t(best_length(all) + 1);
    }

    // Of a won position: the attacker's shortest way, the defender's longest.
    int best_length(const std::vector<Child>& children) const {
        int best = -1;
        for (const Child& child : children) {
            if (attacking() && !numbers_of(child).lost()) continue;
            const int length = length_of(child);
            if (best < 0 || (attacking() ? length < best : length > best)) best = length;
        }
        return best;
    }

    std::vector<Move> mating_line() {
        std::vector<Move> line;
        std::vector<Undo> undos;
        for (std::vector<Child> all = children(); !all.empty(); all = children()) {
            const int wanted = best_length(all);
            const auto chosen = std::find_if(all.begin(), all.end(), [&](const Child& child) {
                return (!attacking() || numbers_of(child).lost()) && length_of(child) == wanted;
            });
            line.push_back(chosen->move);
            pos_.do_move(chosen->move, undos.emplace_back());
        }
        for (size_t i = line.size(); i-- > 0;) pos_.undo_move(line[i], undos[i]);
        return line;
    }

    // Does the disproof of the root rest on nothing but disproofs? From every position that it uses, each check must
    // have a reply to another one of them: then the attacker goes round among them for ever. What does not rest so is
    // forgotten, and the search goes on.
    bool stands() {
        const Position root = pos_;
        bool sound = false;
        while (!sound && !stopped_ && table_[root.key()].numbers.lost()) {
            sound = true;
            std::unordered_set<uint64_t> seen{root.key()};
            std::vector<Position> open{root};
            while (!open.empty() && !stopped_) {
                count_node();
                pos_ = open.back();
                open.pop_back();
                if (rests(seen, open)) continue;
                table_[pos_.key()].numbers = Numbers{};
                sound = false;
            }
        }
        pos_ = root;
        return sound && !stopped_ && table_[root.key()].numbers.lost();
    }

    // Has each check a reply that leads to a disproved position? New ones of these are to be looked at too.
    bool rests(std::unordered_set<uint64_t>& seen, std::vector<Position>& open) {
        bool all_answered = true;
        for (const Child& check : children()) {
            if (check.first.lost()) return false;
            if (check.fixed) continue;
            Undo undo;
            pos_.do_move(check.move, undo);
            const std::vector<Child> replies = children();
            const auto good = std::find_if(replies.begin(), replies.end(), [&](const Child& reply) {
                return numbers_of(reply).lost();
            });
            const bool found = good != replies.end();
            if (found && !good->fixed && seen.insert(good->key).second) {
                Undo inner;
                pos_.do_move(good->move, inner);
                open.push_back(pos_);
                pos_.undo_move(good->move, inner);
            }
            if (!found) table_[check.key].numbers = Numbers{};
            all_answered &= found;
            pos_.undo_move(check.move, undo);
        }
        return all_answered;
    }

    const MateLimits& limits_;
    Position pos_;
    const Color attacker_;
    const bool try_rule_;
    std::unordered_set<uint64_t> worn_out_;  // stood three times already: once more ends the game
    std::unordered_map<uint64_t, Entry> table_;
    int64_t nodes_ = 0;
    bool stopped_ = false;
};

}  // namespace

MateAnswer find_mate(const Game& game, const MateLimits& limits) {
    return MateSearch(game, limits).answer(game.rules().max_moves - game.position().ply());
}

}  // namespace keisei
