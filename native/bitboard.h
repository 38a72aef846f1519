// A set of squares: bit s of 128 is square s, so a file is nine neighbouring bits.
#pragma once

#include <bit>
#include <cstdint>

#include "types.h"

namespace keisei {

__extension__ typedef unsigned __int128 uint128;

class Bitboard {
public:
    constexpr Bitboard() = default;
    constexpr Bitboard(uint64_t lo, uint64_t hi) : lo_(lo), hi_(hi) {}
    constexpr explicit Bitboard(uint128 bits) : lo_(uint64_t(bits)), hi_(uint64_t(bits >> 64)) {}
    static constexpr Bitboard of(Square s) { return Bitboard(uint128(1) << s); }

    constexpr uint128 bits() const { return uint128(hi_) << 64 | lo_; }
    constexpr uint64_t lo() const { return lo_; }
    constexpr uint64_t hi() const { return hi_; }
    constexpr explicit operator bool() const { return (lo_ | hi_) != 0; }
    constexpr bool test(Square s) const { return s < 64 ? lo_ >> s & 1 : hi_ >> (s - 64) & 1; }
    constexpr int count() const { return std::popcount(lo_) + std::popcount(hi_); }
    constexpr bool more_than_one() const { return lo_ && hi_ ? true : (lo_ & (lo_ - 1)) || (hi_ & (hi_ - 1)); }
    // For both the set must not be empty.
    constexpr Square first() const { return Square(lo_ ? std::countr_zero(lo_) : 64 + std::countr_zero(hi_)); }
    constexpr Square last() const { return Square(hi_ ? 127 - std::countl_zero(hi_) : 63 - std::countl_zero(lo_)); }

    constexpr Bitboard operator&(Bitboard o) const { return {lo_ & o.lo_, hi_ & o.hi_}; }
    constexpr Bitboard operator|(Bitboard o) const { return {lo_ | o.lo_, hi_ | o.hi_}; }
    constexpr Bitboard operator^(Bitboard o) const { return {lo_ ^ o.lo_, hi_ ^ o.hi_}; }
    constexpr Bitboard without(Bitboard o) const { return {lo_ & ~o.lo_, hi_ & ~o.hi_}; }
    constexpr Bitboard& operator&=(Bitboard o) { return *this = *this & o; }
    constexpr Bitboard& operator|=(Bitboard o) { return *this = *this | o; }
    constexpr Bitboard& operator^=(Bitboard o) { return *this = *this ^ o; }
    constexpr bool operator==(const Bitboard&) const = default;

private:
    uint64_t lo_ = 0, hi_ = 0;
};

// Calls visit(square) for every square in the set, in ascending order.
template <class Visit>
inline void for_each(Bitboard b, Visit&& visit) {
    for (uint64_t lo = b.lo(); lo; lo &= lo - 1) visit(Square(std::countr_zero(lo)));
    for (uint64_t hi = b.hi(); hi; hi &= hi - 1) visit(Square(64 + std::countr_zero(hi)));
}

constexpr uint128 FILE_1 = 0x1ff;                                                          // ranks a to i of one file
constexpr uint128 RANK_A = uint128(1) | uint128(1) << 9 | uint128(1) << 18 | uint128(1) << 27 | uint128(1) << 36 |
                           uint128(1) << 45 | uint128(1) << 54 | uint128(1) << 63 | uint128(1) << 72;
constexpr Bitboard ALL_SQUARES{(uint128(1) << SQUARES) - 1};

// The ranks first … last (from 0) as Black sees them; for White, the same ranks counted from the other side.
constexpr Bitboard ranks(Color c, int first, int last) {
    uint128 bits = 0;
    for (int r = first; r <= last; ++r) bits |= RANK_A << (c == BLACK ? r : 8 - r);
    return Bitboard(bits);
}

constexpr Bitboard PROMOTION_ZONE[2] = {ranks(BLACK, 0, 2), ranks(WHITE, 0, 2)};
constexpr Bitboard LAST_RANK[2] = {ranks(BLACK, 0, 0), ranks(WHITE, 0, 0)};
constexpr Bitboard LAST_TWO_RANKS[2] = {ranks(BLACK, 0, 1), ranks(WHITE, 0, 1)};

// Squares on which a piece of this type could never move again.
constexpr Bitboard dead_ranks(Color c, PieceType t) {
    if (t == PAWN || t == LANCE) return LAST_RANK[c];
    if (t == KNIGHT) return LAST_TWO_RANKS[c];
    return {};
}

// All squares on files without any of these pawns. A file is a 9-bit field: adding 0xff to its lower
// eight bits carries into the top one unless they are all zero.
constexpr Bitboard files_without(Bitboard pawns) {
    constexpr uint128 TOP = RANK_A << 8;
    constexpr uint128 LOW = ALL_SQUARES.bits() & ~TOP;
    const uint128 p = pawns.bits();
    const uint128 free = TOP & ~(((p & LOW) + LOW) | p);
    return Bitboard(free | (free - (free >> 8)));
}

}  // namespace keisei
