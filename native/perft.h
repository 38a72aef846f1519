// Perft: the number of move sequences of a given length, the yardstick of every move generator.
#pragma once

#include "movegen.h"

namespace keisei {

// The greatest depth, far beyond what finishes in a lifetime; the recursion needs a frame for each ply.
constexpr int MAX_PERFT_DEPTH = 100;

// `stop` is called after each subtree of this depth (milliseconds); once it returns true, the count is cut short.
constexpr int POLL_DEPTH = 4;

// The last ply is counted, not played; its moves are listed, as a search would do, only on request.
// The position is left unchanged.
template <bool WriteLast = false, class Stop>
uint64_t perft(Position& pos, int depth, Stop& stop) {
    if (depth == 0) return 1;
    if (depth == 1 && !WriteLast) return uint64_t(count_legal(pos));
    MoveList list;
    generate_legal(pos, list);
    if (depth == 1) return uint64_t(list.size);
    uint64_t nodes = 0;
    for (Move m : list) {
        Undo undo;
        pos.do_move(m, undo);
        nodes += perft<WriteLast>(pos, depth - 1, stop);
        pos.undo_move(m, undo);
        if (depth > POLL_DEPTH && stop()) break;
    }
    return nodes;
}

}  // namespace keisei
