#include "position.h"

#include "random.h"

namespace keisei {
namespace {

// Random numbers for each fact about a position; the key of a position is the xor of its facts.
struct Zobrist {
    uint64_t piece[32][SQUARES];
    uint64_t hand[2][8][19];
    uint64_t white_to_move;
};

constexpr Zobrist make_zobrist() {
    Zobrist z{};
    uint64_t state = 20260101;
    for (auto& row : z.piece)
        for (auto& k : row) k = splitmix64(state);
    for (auto& color : z.hand)
        for (auto& type : color)
            for (int n = 1; n < 19; ++n) type[n] = splitmix64(state);  // an empty hand adds nothing
    z.white_to_move = splitmix64(state);
    return z;
}

constexpr Zobrist zobrist = make_zobrist();

}  // namespace

void Position::toggle(Square s, Piece p) {
    const Bitboard b = bit(s);
    const PieceType t = type_of(p);
    by_color_[color_of(p)] ^= b;
    by_type_[t] ^= b;
    by_type_[moves_like_gold(t) ? GOLD_LIKE : NO_PIECE_TYPE] ^= b;  // slot 0 is never read
    key_ ^= zobrist.piece[p][s];
}

void Position::put(Square s, Piece p) {
    toggle(s, p);
    board_[s] = p;
    if (type_of(p) == KING) kings_[color_of(p)] = s;
}

void Position::do_move(Move m, Undo& undo) {
    const Color us = side_;
    const Square to = m.to();
    undo.key = key_;
    undo.captured = NO_PIECE;
    if (m.is_drop()) {
        const PieceType t = m.dropped();
        const int n = hands_[us].count(t);
        key_ ^= zobrist.hand[us][t][n] ^ zobrist.hand[us][t][n - 1];
        hands_[us].remove(t);
        const Piece p = make_piece(us, t);
        toggle(to, p);
        board_[to] = p;
    } else {
        const Square from = m.from();
        const Piece moved = board_[from];
        const Piece captured = board_[to];
        if (captured != NO_PIECE) {
            undo.captured = captured;
            toggle(to, captured);
            const PieceType t = unpromoted(type_of(captured));
            const int n = hands_[us].count(t);
            key_ ^= zobrist.hand[us][t][n] ^ zobrist.hand[us][t][n + 1];
            hands_[us].add(t);
        }
        toggle(from, moved);
        board_[from] = NO_PIECE;
        const Piece placed = m.is_promotion() ? Piece(moved | PROMOTED) : moved;
        toggle(to, placed);
        board_[to] = placed;
        if (type_of(placed) == KING) kings_[us] = to;
    }
    key_ ^= zobrist.white_to_move;
    side_ = ~us;
    ++ply_;
}

void Position::undo_move(Move m, const Undo& undo) {
    const Color us = ~side_;
    const Square to = m.to();
    const Piece placed = board_[to];
    toggle(to, placed);
    if (m.is_drop()) {
        hands_[us].add(m.dropped());
        board_[to] = NO_PIECE;
    } else {
        const Square from = m.from();
        const Piece moved = m.is_promotion() ? Piece(placed & ~PROMOTED) : placed;
        toggle(from, moved);
        board_[from] = moved;
        board_[to] = undo.captured;
        if (undo.captured != NO_PIECE) {
            toggle(to, undo.captured);
            hands_[us].remove(unpromoted(type_of(undo.captured)));
        }
        if (type_of(moved) == KING) kings_[us] = from;
    }
    key_ = undo.key;
    side_ = us;
    --ply_;
}

bool Position::attacked_by_slider(Square s, Color by, Bitboard occupied) const {
    const Bitboard sliders = by_color_[by] & (((by_type_[ROOK] | by_type_[DRAGON]) & tables.cross[s]) |
                                              ((by_type_[BISHOP] | by_type_[HORSE]) & tables.diagonals[s]) |
                                              (by_type_[LANCE] & tables.ray[forward(~by)][s]));
    for (uint64_t lo = sliders.lo(); lo; lo &= lo - 1)
        if (!(between(s, Square(std::countr_zero(lo))) & occupied)) return true;
    for (uint64_t hi = sliders.hi(); hi; hi &= hi - 1)
        if (!(between(s, Square(64 + std::countr_zero(hi))) & occupied)) return true;
    return false;
}

bool Position::attacked(Square s, Color by, Bitboard occupied) const {
    return steppers_to(s, by) || tables.king[s].test(kings_[by]) || attacked_by_slider(s, by, occupied);
}

uint64_t Position::computed_key() const {
    uint64_t key = side_ == WHITE ? zobrist.white_to_move : 0;
    for (int s = 0; s < SQUARES; ++s)
        if (board_[s] != NO_PIECE) key ^= zobrist.piece[board_[s]][s];
    for (Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= ROOK; ++t) key ^= zobrist.hand[c][t][hands_[c].count(PieceType(t))];
    return key;
}

}  // namespace keisei
