// Legal moves of a position, as a list or as a number.
#pragma once

#include "position.h"

namespace keisei {

// A list without allocation; its capacity is enough for every possible position.
struct MoveList {
    Move moves[MAX_LEGAL_MOVES];
    int size = 0;

    const Move* begin() const { return moves; }
    const Move* end() const { return moves + size; }
    bool contains(Move m) const {
        bool found = false;  // no early exit: compilers then compare eight moves at a time
        for (Move other : *this) found |= other == m;
        return found;
    }
};

// All legal moves, including optional non-promotions, in an order that depends only on the position.
void generate_legal(const Position& pos, MoveList& list);

// Only the legal moves that capture or promote.
void generate_tactical(const Position& pos, MoveList& list);

// The number of legal moves, without listing them.
int count_legal(const Position& pos);

}  // namespace keisei
