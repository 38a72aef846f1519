#include "movegen.h"

namespace keisei {
namespace {

// What to do with the generated moves: list all, list some, or count them.
class Writer {
public:
    static constexpr bool DROPS = true;
    explicit Writer(MoveList& list) : list_(list), end_(list.moves) {}
    ~Writer() { list_.size = int(end_ - list_.moves); }

    void board_moves(Square from, Bitboard targets, bool promote) {
        const uint16_t base = Move::board(from, 0, promote).code();
        for_each(targets, [&](Square to) { *end_++ = Move(base | to); });
    }
    void pawn_moves(Color us, Bitboard targets, bool promote) {
        const int back = us == BLACK ? 1 : -1;
        for_each(targets, [&](Square to) { *end_++ = Move::board(Square(to + back), to, promote); });
    }
    void drops(PieceType t, Bitboard targets) {
        const uint16_t base = Move::drop(t, 0).code();
        for_each(targets, [&](Square to) { *end_++ = Move(base | to); });
    }

private:
    MoveList& list_;
    Move* end_;
};

class TacticalWriter {
public:
    static constexpr bool DROPS = false;
    TacticalWriter(const Position& pos, MoveList& list) : writer_(list), enemies_(pos.pieces(~pos.side())) {}

    void board_moves(Square from, Bitboard targets, bool promote) {
        writer_.board_moves(from, promote ? targets : targets & enemies_, promote);
    }
    void pawn_moves(Color us, Bitboard targets, bool promote) {
        writer_.pawn_moves(us, promote ? targets : targets & enemies_, promote);
    }

private:
    Writer writer_;
    const Bitboard enemies_;
};

class Counter {
public:
    static constexpr bool DROPS = true;
    void board_moves(Square, Bitboard targets, bool) { count_ += targets.count(); }
    void pawn_moves(Color, Bitboard targets, bool) { count_ += targets.count(); }
    void drops(PieceType, Bitboard targets) { count_ += targets.count(); }
    int count() const { return count_; }

private:
    int count_ = 0;
};

struct KingLines {
    Bitboard checkers;  // enemy pieces that give check
    Bitboard pinned;    // own pieces that may only move on their line with the king
};

template <Color Us>
KingLines king_lines(const Position& pos) {
    constexpr Color Them = ~Us;
    const Square king = pos.king(Us);
    const Bitboard occupied = pos.occupied();
    KingLines lines;
    lines.checkers = pos.steppers_to(king, Them);
    const Bitboard snipers = (tables.cross[king] & (pos.pieces(Them, ROOK) | pos.pieces(Them, DRAGON))) |
                             (tables.diagonals[king] & (pos.pieces(Them, BISHOP) | pos.pieces(Them, HORSE))) |
                             (tables.ray[forward(Us)][king] & pos.pieces(Them, LANCE));
    for_each(snipers, [&](Square sniper) {
        const Bitboard blockers = between(king, sniper) & occupied;
        if (!blockers) lines.checkers |= bit(sniper);
        else if (!blockers.more_than_one()) lines.pinned |= blockers & pos.pieces(Us);
    });
    return lines;
}

// Would our pawn, dropped on s in front of the enemy king, be mate? The drop itself is known to be legal.
template <Color Us>
bool is_pawn_drop_mate(const Position& pos, Square s) {
    constexpr Color Them = ~Us;
    const Square king = pos.king(Them);
    const Bitboard occupied = pos.occupied() | bit(s);

    // Another piece takes the pawn without opening a line to its king. (None of their pawns or lances reaches s: they
    // would have to come from or through the king's own square.)
    const Bitboard capturers =
        pos.steppers_to(s, Them) |
        (bishop_attacks(s, occupied) & (pos.pieces(Them, BISHOP) | pos.pieces(Them, HORSE))) |
        (rook_attacks(s, occupied) & (pos.pieces(Them, ROOK) | pos.pieces(Them, DRAGON)));
    bool mate = true;
    for_each(capturers, [&](Square from) {
        if (mate && !pos.attacked_by_slider(king, Us, occupied ^ bit(from))) mate = false;
    });
    if (!mate) return false;

    // The king goes somewhere else, or takes the pawn.
    const Bitboard without_king = occupied ^ bit(king);
    for_each(tables.king[king].without(pos.pieces(Them)), [&](Square to) {
        if (mate && !pos.attacked(to, Us, without_king)) mate = false;
    });
    return mate;
}

template <Color Us, class Sink>
void king_moves(const Position& pos, Sink& sink) {
    const Square king = pos.king(Us);
    const Bitboard without_king = pos.occupied() ^ bit(king);
    Bitboard safe;
    for_each(tables.king[king].without(pos.pieces(Us)), [&](Square to) {
        if (!pos.attacked(to, ~Us, without_king)) safe |= bit(to);
    });
    sink.board_moves(king, safe, false);
}

// Moves of the pieces of one type (pawns and kings have their own functions).
template <Color Us, PieceType T, class Sink>
void piece_moves(const Position& pos, Bitboard targets, Bitboard pinned, Sink& sink) {
    const Bitboard occupied = pos.occupied();
    for_each(pos.pieces(Us, T), [&](Square from) {
        Bitboard to = attacks<T>(Us, from, occupied) & targets;
        if (pinned.test(from)) to &= ray_through(pos.king(Us), from);
        if constexpr (can_promote(T)) {
            sink.board_moves(from, PROMOTION_ZONE[Us].test(from) ? to : to & PROMOTION_ZONE[Us], true);
            to = to.without(dead_ranks(Us, T));
        }
        sink.board_moves(from, to, false);
    });
}

template <Color Us>
Bitboard pushed(Bitboard pawns) {
    return Bitboard(Us == BLACK ? pawns.bits() >> 1 : pawns.bits() << 1);
}

template <Color Us, class Sink>
void pawn_moves(const Position& pos, Bitboard targets, Bitboard pinned, Sink& sink) {
    const Bitboard pawns = pos.pieces(Us, PAWN);
    // A pinned pawn moves only if its line with the king is the file.
    const Square king = pos.king(Us);
    const Bitboard file = tables.ray[NORTH][king] | tables.ray[SOUTH][king];
    const Bitboard to = pushed<Us>(pawns.without(pinned.without(file))) & targets;
    sink.pawn_moves(Us, to & PROMOTION_ZONE[Us], true);
    sink.pawn_moves(Us, to.without(LAST_RANK[Us]), false);
}

template <Color Us, class Sink>
void drops(const Position& pos, Bitboard targets, Sink& sink) {
    const Hand hand = pos.hand(Us);
    if (hand.empty()) return;
    if (hand.count(PAWN)) {
        Bitboard to = targets.without(LAST_RANK[Us]) & files_without(pos.pieces(Us, PAWN));
        const Bitboard check = tables.pawn[~Us][pos.king(~Us)] & to;
        if (check && is_pawn_drop_mate<Us>(pos, check.first())) to ^= check;
        sink.drops(PAWN, to);
    }
    if (hand.count(LANCE)) sink.drops(LANCE, targets.without(LAST_RANK[Us]));
    if (hand.count(KNIGHT)) sink.drops(KNIGHT, targets.without(LAST_TWO_RANKS[Us]));
    if (hand.count(SILVER)) sink.drops(SILVER, targets);
    if (hand.count(GOLD)) sink.drops(GOLD, targets);
    if (hand.count(BISHOP)) sink.drops(BISHOP, targets);
    if (hand.count(ROOK)) sink.drops(ROOK, targets);
}

template <Color Us, class Sink>
void generate(const Position& pos, Sink& sink) {
    const KingLines lines = king_lines<Us>(pos);
    king_moves<Us>(pos, sink);
    if (lines.checkers.more_than_one()) return;

    Bitboard move_targets = ALL_SQUARES.without(pos.pieces(Us));
    Bitboard drop_targets = ALL_SQUARES.without(pos.occupied());
    if (lines.checkers) {  // capture the checker or block
        drop_targets = between(pos.king(Us), lines.checkers.first());
        move_targets = drop_targets | lines.checkers;
    }
    pawn_moves<Us>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, LANCE>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, KNIGHT>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, SILVER>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, GOLD_LIKE>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, BISHOP>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, ROOK>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, HORSE>(pos, move_targets, lines.pinned, sink);
    piece_moves<Us, DRAGON>(pos, move_targets, lines.pinned, sink);
    if constexpr (Sink::DROPS) drops<Us>(pos, drop_targets, sink);
}

template <class Sink>
void generate(const Position& pos, Sink& sink) {
    if (pos.side() == BLACK) generate<BLACK>(pos, sink);
    else generate<WHITE>(pos, sink);
}

}  // namespace

void generate_legal(const Position& pos, MoveList& list) {
    Writer writer(list);
    generate(pos, writer);
}

void generate_tactical(const Position& pos, MoveList& list) {
    TacticalWriter writer(pos, list);
    generate(pos, writer);
}

int count_legal(const Position& pos) {
    Counter counter;
    generate(pos, counter);
    return counter.count();
}

}  // namespace keisei
