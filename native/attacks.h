// Where pieces attack: tables for steps and rays, and sliding attacks through an occupied board.
#pragma once

#include "bitboard.h"

namespace keisei {

// Four directions of ascending square numbers, then their opposites in the same order.
enum Direction : uint8_t {
    SOUTH, WEST, SOUTH_WEST, NORTH_WEST,   // +1 +9 +10 +8
    NORTH, EAST, NORTH_EAST, SOUTH_EAST,   // -1 -9 -10 -8
    NO_DIRECTION
};
constexpr Direction opposite(Direction d) { return Direction(d ^ 4); }
constexpr Direction forward(Color c) { return c == BLACK ? NORTH : SOUTH; }

// NO_SQUARE has its own, empty row, so that lookups for a missing king need no special case.
struct AttackTables {
    static constexpr int ROWS = SQUARES + 1;
    Bitboard square[ROWS];
    Bitboard pawn[2][ROWS], knight[2][ROWS], silver[2][ROWS], gold[2][ROWS], king[ROWS];
    Bitboard ray[9][ROWS];                 // by direction, without the square itself; the ninth is empty
    Bitboard cross[ROWS], diagonals[ROWS];  // a rook's and a bishop's rays on an empty board
    uint8_t direction[ROWS][ROWS];         // from one square towards another, NO_DIRECTION if not on a line
};
extern const AttackTables tables;

inline Bitboard bit(Square s) { return tables.square[s]; }
inline Direction direction(Square from, Square to) { return Direction(tables.direction[from][to]); }

// All squares from `origin` through `other` to the edge; empty if they share no line.
inline Bitboard ray_through(Square origin, Square other) { return tables.ray[direction(origin, other)][origin]; }

// The squares strictly between two squares on a line; empty if they share none.
inline Bitboard between(Square a, Square b) {
    const Direction d = direction(a, b);
    if (d == NO_DIRECTION) return {};
    return tables.ray[d][a] & tables.ray[opposite(d)][b];
}

// The ray up to and including the first occupied square.
template <Direction D>
inline Bitboard slide(Square s, Bitboard occupied) {
    const Bitboard ray = tables.ray[D][s];
    const Bitboard blockers = ray & occupied;
    if constexpr (D < NORTH) {
        const uint128 b = blockers.bits();
        return ray & Bitboard(b ^ (b - 1));  // no blocker: b - 1 is all ones
    } else {
        // Square 0 stands in for "no blocker": its rays in the falling directions are empty.
        return ray.without(tables.ray[D][Bitboard(blockers.lo() | 1, blockers.hi()).last()]);
    }
}

inline Bitboard lance_attacks(Color c, Square s, Bitboard occupied) {
    return c == BLACK ? slide<NORTH>(s, occupied) : slide<SOUTH>(s, occupied);
}
inline Bitboard bishop_attacks(Square s, Bitboard occupied) {
    return slide<SOUTH_WEST>(s, occupied) | slide<NORTH_WEST>(s, occupied) | slide<NORTH_EAST>(s, occupied) |
           slide<SOUTH_EAST>(s, occupied);
}
inline Bitboard rook_attacks(Square s, Bitboard occupied) {
    return slide<SOUTH>(s, occupied) | slide<WEST>(s, occupied) | slide<NORTH>(s, occupied) | slide<EAST>(s, occupied);
}

// The squares that a piece of type T on s attacks (pawns are moved all at once, kings one square at a time).
template <PieceType T>
inline Bitboard attacks(Color c, Square s, Bitboard occupied) {
    if constexpr (T == LANCE) return lance_attacks(c, s, occupied);
    else if constexpr (T == KNIGHT) return tables.knight[c][s];
    else if constexpr (T == SILVER) return tables.silver[c][s];
    else if constexpr (T == GOLD_LIKE) return tables.gold[c][s];
    else if constexpr (T == BISHOP) return bishop_attacks(s, occupied);
    else if constexpr (T == ROOK) return rook_attacks(s, occupied);
    else if constexpr (T == HORSE) return bishop_attacks(s, occupied) | tables.king[s];
    else {
        static_assert(T == DRAGON);
        return rook_attacks(s, occupied) | tables.king[s];
    }
}

}  // namespace keisei
