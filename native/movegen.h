// Legal moves of a position, as a list or as a number.
#pragma once

#include "position.h"

namespace keisei {

// A list without allocation; the capacity holds every position that exists.
struct MoveList {
    Move moves[MAX_LEGAL_MOVES];
    int size = 0;

    const Move* begin() const { return moves; }
    const Move* end() const { return moves + size; }
    bool contains(Move m) const {
        bool found = false;  // no early end: compilers then compare eight moves at a time
        for (Move other : *this) found |= other == m;
        return found;
    }
};

// All legal moves, promotions and optional non-promotions alike, in an order fixed for a position.
void generate_legal(const Position& pos, MoveList& list);

// Those of them that capture or promote.
void generate_tactical(const Position& pos, MoveList& list);

// How many there are, without writing them down.
int count_legal(const Position& pos);

}  // namespace keisei
