// A position: board, hands, side to move and ply, with do/undo and an incremental hash. No history.
#pragma once

#include "attacks.h"

namespace keisei {

// Who must have a king: both sides, or, as in mate problems, only the side that is not to move.
enum class Kings : uint8_t { BOTH, DEFENDER };

// What undo needs besides the move itself.
struct Undo {
    uint64_t key;
    Piece captured;
};

class Position {
public:
    // An empty board; sfen.h fills positions.
    Position() = default;

    Color side() const { return side_; }
    int ply() const { return ply_; }  // moves since move number 1
    uint64_t key() const { return key_; }
    uint64_t computed_key() const;  // the same from scratch, for tests
    Piece piece_on(Square s) const { return board_[s]; }
    const Piece* board() const { return board_; }  // all squares
    Hand hand(Color c) const { return hands_[c]; }
    Square king(Color c) const { return kings_[c]; }  // NO_SQUARE if there is none
    Bitboard pieces(Color c) const { return by_color_[c]; }
    Bitboard pieces(Color c, PieceType t) const { return by_color_[c] & by_type_[t]; }
    Bitboard occupied() const { return by_color_[BLACK] | by_color_[WHITE]; }

    // The move must be legal.
    void do_move(Move m, Undo& undo);
    void undo_move(Move m, const Undo& undo);

    // The pieces of this colour, except its king, that attack a square with a step or a jump.
    Bitboard steppers_to(Square s, Color by) const {
        // Their piece attacks s exactly if a piece of ours of the same kind on s would attack it.
        const Color us = ~by;
        return by_color_[by] &
               ((tables.pawn[us][s] & by_type_[PAWN]) | (tables.knight[us][s] & by_type_[KNIGHT]) |
                (tables.silver[us][s] & by_type_[SILVER]) | (tables.gold[us][s] & by_type_[GOLD_LIKE]) |
                (tables.king[s] & (by_type_[HORSE] | by_type_[DRAGON])));
    }

    // Is a square attacked by this colour, given these occupied squares?
    bool attacked(Square s, Color by, Bitboard occupied) const;
    bool attacked_by_slider(Square s, Color by, Bitboard occupied) const;
    bool in_check() const { return attacked(kings_[side_], ~side_, occupied()); }

    // Set-up, for parsers only: the key is not valid until refresh().
    void put(Square s, Piece p);
    void add_to_hand(Color c, PieceType t) { hands_[c].add(t); }
    void set_side(Color c) { side_ = c; }
    void set_ply(int ply) { ply_ = ply; }
    void refresh() { key_ = computed_key(); }

private:
    void toggle(Square s, Piece p);

    Bitboard by_color_[2];
    Bitboard by_type_[PIECE_TYPE_SLOTS];
    Hand hands_[2];
    uint64_t key_ = 0;
    int32_t ply_ = 0;
    Color side_ = BLACK;
    Square kings_[2] = {NO_SQUARE, NO_SQUARE};
    Piece board_[SQUARES] = {};
};

static_assert(sizeof(Position) == 400);  // docs/engine.md says so

}  // namespace keisei
