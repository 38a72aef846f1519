#include "scattered.h"

#include <algorithm>

#include "sfen.h"

namespace keisei {
namespace {

constexpr int ATTEMPTS = 200;  // about one in six succeeds
constexpr int TRIES = 8;       // to find a square for a piece; then it goes to the hand
constexpr int NEAR = 2;        // files and ranks from its king

Square any_square(RandomStream& random) { return Square(random.below(SQUARES)); }

// A square of the 5 x 5 around another, moved onto the board at its edges.
Square square_near(Square s, RandomStream& random) {
    const auto moved = [&random](int from) { return std::clamp(from + int(random.below(2 * NEAR + 1)) - NEAR, 0, 8); };
    const int file = moved(file_of(s));
    return make_square(file, moved(rank_of(s)));
}

// How many ranks a piece of this colour is from the far edge.
int ranks_ahead(Color c, Square s) { return c == BLACK ? rank_of(s) : 8 - rank_of(s); }

bool may_stand(const Position& pos, Color c, PieceType t, Square s) {
    if (pos.piece_on(s) != NO_PIECE || ranks_ahead(c, s) < (t == KNIGHT ? 2 : t == PAWN || t == LANCE ? 1 : 0)) return false;
    if (t != PAWN) return true;
    for (int rank = 0; rank < 9; ++rank)
        if (pos.piece_on(make_square(file_of(s), rank)) == make_piece(c, PAWN)) return false;
    return true;
}

void place(Position& pos, Color c, PieceType t, RandomStream& random) {
    const bool near = random.below(2);
    for (int i = 0; i < TRIES; ++i) {
        const Square s = near ? square_near(pos.king(c), random) : any_square(random);
        // Most promote where they can; some have come back.
        const bool promote = can_promote(t) && random.below(8) < (ranks_ahead(c, s) < 3 ? 4u : 1u);
        const PieceType kind = promote ? promoted(t) : t;
        if (!may_stand(pos, c, kind, s)) continue;
        pos.put(s, make_piece(c, kind));
        return;
    }
    pos.add_to_hand(c, t);
}

Position attempt(RandomStream& random) {
    Position pos;
    for (Color c : {BLACK, WHITE}) {
        Square s = any_square(random);
        while (pos.piece_on(s) != NO_PIECE) s = any_square(random);
        pos.put(s, make_piece(c, KING));
    }
    const uint32_t in_hand = random.below(3);  // quarters of the pieces
    for (int i = PAWN; i <= ROOK; ++i) {
        const PieceType t = PieceType(i);
        for (int n = 0; n < SET_COUNT[t]; ++n) {
            const Color c = Color(random.below(2));
            if (random.below(4) < in_hand) pos.add_to_hand(c, t);
            else place(pos, c, t, random);
        }
    }
    pos.set_side(Color(random.below(2)));
    pos.refresh();
    return pos;
}

}  // namespace

std::optional<Position> scattered_position(RandomStream& random) {
    for (int i = 0; i < ATTEMPTS; ++i) {
        const Position pos = attempt(random);
        if (!broken_rule(pos) && !pos.in_check()) return pos;
    }
    return std::nullopt;
}

}  // namespace keisei
