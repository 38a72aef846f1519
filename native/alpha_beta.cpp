#include "alpha_beta.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "random.h"

namespace keisei {
namespace {

constexpr int INFINITE = WIN_SCORE + 1;
constexpr uint64_t NODES_BETWEEN_STOPS = 1024;

// The immediate gain of a move: the captured piece, which also goes into hand, and a promotion.
int gain(const Position& pos, Move m) {
    if (m.is_drop()) return 0;
    const PieceType taken = type_of(pos.piece_on(m.to()));
    int won = PIECE_VALUES[taken] + PIECE_VALUES[unpromoted(taken)];
    if (m.is_promotion()) {
        const PieceType t = type_of(pos.piece_on(m.from()));
        won += PIECE_VALUES[promoted(t)] - PIECE_VALUES[t];
    }
    return won;
}

PieceType mover(const Position& pos, Move m) { return m.is_drop() ? m.dropped() : type_of(pos.piece_on(m.from())); }

struct RatedMove {
    Move move;
    int gain;
    int rank;  // the highest is tried first
};

struct RatedList {
    RatedMove moves[MAX_LEGAL_MOVES];
    int size = 0;

    // Moves the best remaining move to place i: after a cutoff the rest need not be sorted.
    RatedMove& take(int i) {
        int best = i;
        for (int j = i + 1; j < size; ++j)
            if (moves[j].rank > moves[best].rank) best = j;
        std::swap(moves[i], moves[best]);
        return moves[i];
    }
};

// Fail-soft: a value outside alpha to beta is a valid bound. There is no transposition table: because of the repetition
// rules, the value of a position depends on how it was reached.
class Search {
public:
    Search(const Game& game, SearchLimits limits, const std::function<bool()>& stop)
        : game_(game), limits_(limits), stop_(stop) {}

    Choice choose(uint64_t seed);

private:
    // Move ordering, from the top: gains, by victim and then attacker; killers; the rest by history.
    static constexpr int GAINS = 1 << 28, KILLER = 1 << 27, MOST_HISTORY = 1 << 26;

    int value(int depth, int height, int balance, int alpha, int beta);
    int after(const RatedMove& m, int depth, int height, int balance, int alpha, int beta);
    int quiet(Position& pos, int balance, int plies, int alpha, int beta);
    void rate(const MoveList& list, int height);
    void reward(Move m, int depth, int height);
    int& history(Move m) {
        return history_[game_.position().side()][mover(game_.position(), m)][m.to()];
    }

    Game game_;
    const SearchLimits limits_;
    const std::function<bool()>& stop_;
    bool stopped_ = false;
    uint64_t nodes_ = 0;
    RatedList lists_[MAX_SEARCH_DEPTH];  // by height
    MoveList tactical_;
    RatedList quiet_lists_[MAX_QUIET_PLIES + 1];  // by plies left
    Move killers_[MAX_SEARCH_DEPTH][2];             // quiet moves that caused cutoffs at this height
    int history_[2][PIECE_TYPE_SLOTS][SQUARES]{};  // cutoff score of a quiet move of this piece to this square
};

void Search::rate(const MoveList& list, int height) {
    const Position& pos = game_.position();
    RatedList& rated = lists_[height];
    rated.size = list.size;
    for (int i = 0; i < list.size; ++i) {
        const Move m = list.moves[i];
        const int won = gain(pos, m);
        int rank = history(m);
        if (won > 0) rank = GAINS + won * 16 - PIECE_VALUES[mover(pos, m)];
        else if (m == killers_[height][0]) rank = KILLER + 1;
        else if (m == killers_[height][1]) rank = KILLER;
        rated.moves[i] = {m, won, rank};
    }
}

// A quiet move has refuted the move before it; it may do so again elsewhere.
void Search::reward(Move m, int depth, int height) {
    if (killers_[height][0] != m) {
        killers_[height][1] = killers_[height][0];
        killers_[height][0] = m;
    }
    int& merit = history(m);
    merit = std::min(merit + depth * depth, MOST_HISTORY);
}

// The value of a move for its mover.
int Search::after(const RatedMove& m, int depth, int height, int balance, int alpha, int beta) {
    game_.push_legal(m.move);
    const int result = -value(depth - 1, height + 1, -(balance + m.gain), -beta, -alpha);
    game_.pop();
    return result;
}

int Search::value(int depth, int height, int balance, int alpha, int beta) {
    if (++nodes_ % NODES_BETWEEN_STOPS == 0 && stop_()) stopped_ = true;
    if (stopped_) return 0;
    if (const auto end = game_.outcome()) {
        if (!end->winner) return 0;
        return *end->winner == game_.position().side() ? WIN_SCORE - height : height - WIN_SCORE;
    }
    if (game_.can_declare()) return WIN_SCORE - height;
    if (depth == 0) {
        if (balance >= beta) return balance;
        Position pos = game_.position();
        return quiet(pos, balance, limits_.quiet_plies, alpha, beta);
    }
    rate(game_.legal_moves(), height);
    RatedList& list = lists_[height];
    int best = -INFINITE;
    for (int i = 0; i < list.size && !stopped_; ++i) {
        const RatedMove m = list.take(i);
        best = std::max(best, after(m, depth, height, balance, std::max(alpha, best), beta));
        if (best < beta) continue;
        if (m.gain == 0) reward(m.move, depth, height);
        break;
    }
    return best;
}

int Search::quiet(Position& pos, int balance, int plies, int alpha, int beta) {
    int best = balance;
    if (plies == 0 || best >= beta) return best;
    generate_tactical(pos, tactical_);
    RatedList& list = quiet_lists_[plies];
    list.size = tactical_.size;
    for (int i = 0; i < list.size; ++i) {
        const Move m = tactical_.moves[i];
        const int won = gain(pos, m);
        list.moves[i] = {m, won, won * 16 - PIECE_VALUES[mover(pos, m)]};
    }
    for (int i = 0; i < list.size && best < beta; ++i) {
        const RatedMove m = list.take(i);
        alpha = std::max(alpha, best);
        // The opponent may stand pat, so the move wins no more than its gain; later moves gain no more.
        if (balance + m.gain <= alpha) return std::max(best, balance + m.gain);
        Undo undo;
        ++nodes_;
        pos.do_move(m.move, undo);
        best = std::max(best, -quiet(pos, -(balance + m.gain), plies - 1, -beta, -alpha));
        pos.undo_move(m.move, undo);
    }
    return best;
}

Choice Search::choose(uint64_t seed) {
    const int balance = material_balance(game_.position());
    rate(game_.legal_moves(), 0);
    std::vector<RatedMove> moves(lists_[0].moves, lists_[0].moves + lists_[0].size);
    const auto by_rank = [](const RatedMove& a, const RatedMove& b) { return a.rank > b.rank; };
    int best = 0;
    for (int d = 1; d <= limits_.depth; ++d) {  // a shallow search orders the moves for the next one
        std::stable_sort(moves.begin(), moves.end(), by_rank);
        best = -INFINITE;
        for (RatedMove& m : moves) {
            m.rank = after(m, d, 0, balance, best, INFINITE);
            best = std::max(best, m.rank);
        }
    }
    // A rank above all earlier ones is an exact value, any other an upper bound. Of the moves that may be best, take
    // the first, in random order, that is.
    RandomStream random(seed, 0);
    for (size_t left = moves.size(); left > 0 && !stopped_; --left) {
        std::swap(moves[left - 1], moves[random.below(uint32_t(left))]);
        const RatedMove& m = moves[left - 1];
        if (m.rank >= best && after(m, limits_.depth, 0, balance, best - 1, best) >= best) return {m.move, best};
    }
    return {moves[0].move, best};  // stopped
}

}  // namespace

int material_balance(const Position& pos) {
    int balance[2] = {0, 0};
    for (Color c : {BLACK, WHITE}) {
        for_each(pos.pieces(c), [&](Square s) { balance[c] += PIECE_VALUES[type_of(pos.piece_on(s))]; });
        for (int t = PAWN; t <= ROOK; ++t) balance[c] += PIECE_VALUES[t] * pos.hand(c).count(PieceType(t));
    }
    return balance[pos.side()] - balance[~pos.side()];
}

Choice alpha_beta(const Game& game, SearchLimits limits, uint64_t seed, const std::function<bool()>& stop) {
    return std::make_unique<Search>(game, limits, stop)->choose(seed);  // too large for the stack of a thread
}

Move material_move(const Game& game, uint64_t seed) {
    Game copy(game);
    const MoveList legal = copy.legal_moves();
    const Color us = copy.position().side();
    std::vector<Move> best;
    int most = -1;
    for (Move m : legal) {
        int won = gain(copy.position(), m);
        copy.push_legal(m);
        const auto end = copy.outcome();
        if (end && end->winner == us) won = WIN_SCORE;
        copy.pop();
        if (won < most) continue;
        if (won > most) best.clear();
        most = won;
        best.push_back(m);
    }
    return best[RandomStream(seed, 0).below(uint32_t(best.size()))];
}

}  // namespace keisei
