#include "attacks.h"

#include <algorithm>
#include <initializer_list>

namespace keisei {
namespace {

struct Step {
    int file, rank;  // towards higher files (Black's left), towards higher ranks (Black's side)
};

constexpr Step DIRECTION_STEP[8] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}, {0, -1}, {-1, 0}, {-1, -1}, {-1, 1}};

bool on_board(int file, int rank) { return file >= 0 && file < 9 && rank >= 0 && rank < 9; }

// The squares one step away, the steps given as Black makes them.
Bitboard steps(Color c, Square s, std::initializer_list<Step> moves) {
    Bitboard result;
    for (Step step : moves) {
        const int sign = c == BLACK ? 1 : -1;
        const int file = file_of(s) + sign * step.file, rank = rank_of(s) + sign * step.rank;
        if (on_board(file, rank)) result |= Bitboard::of(make_square(file, rank));
    }
    return result;
}

AttackTables make_tables() {
    AttackTables t{};
    std::fill_n(&t.direction[0][0], sizeof t.direction, uint8_t(NO_DIRECTION));
    for (int i = 0; i < SQUARES; ++i) {
        const Square s = Square(i);
        t.square[s] = Bitboard::of(s);
        for (Color c : {BLACK, WHITE}) {
            t.pawn[c][s] = steps(c, s, {{0, -1}});
            t.knight[c][s] = steps(c, s, {{-1, -2}, {1, -2}});
            t.silver[c][s] = steps(c, s, {{-1, -1}, {0, -1}, {1, -1}, {-1, 1}, {1, 1}});
            t.gold[c][s] = steps(c, s, {{-1, -1}, {0, -1}, {1, -1}, {-1, 0}, {1, 0}, {0, 1}});
        }
        t.king[s] = t.silver[BLACK][s] | t.gold[BLACK][s];
        for (int d = 0; d < 8; ++d) {
            int file = file_of(s), rank = rank_of(s);
            while (on_board(file += DIRECTION_STEP[d].file, rank += DIRECTION_STEP[d].rank)) {
                const Square other = make_square(file, rank);
                t.ray[d][s] |= Bitboard::of(other);
                t.direction[s][other] = uint8_t(d);
            }
        }
        t.cross[s] = t.ray[NORTH][s] | t.ray[SOUTH][s] | t.ray[EAST][s] | t.ray[WEST][s];
        t.diagonals[s] = t.ray[NORTH_EAST][s] | t.ray[SOUTH_EAST][s] | t.ray[NORTH_WEST][s] | t.ray[SOUTH_WEST][s];
    }
    return t;
}

}  // namespace

const AttackTables tables = make_tables();

}  // namespace keisei
