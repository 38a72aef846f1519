// Mates: in one move, and by continuous checks.
#pragma once

#include <functional>
#include <vector>

#include "game.h"

namespace keisei {

// Returns one of these legal moves that mates at once.
std::optional<Move> mate_in_one(Position pos, const MoveList& legal);

struct MateLimits {
    int64_t max_nodes = 1'000'000;  // positions to expand; each takes about 100 bytes
    std::function<bool()> stop;     // called every few hundred positions
};

struct MateAnswer {
    enum Kind : uint8_t {
        MATE,     // forced: `line` is one way; the defender plays one of the longest replies found
        NO_MATE,  // proven: no sequence of checks forces mate
        UNKNOWN   // a limit was reached, or a proof that there is none would take too much memory
    } kind = UNKNOWN;
    std::vector<Move> line;
};

// Can the side to move force mate, giving check with every move? The game must not be over. The line need not be the
// shortest. Perpetual check is not mate, nor is a line that repetition or the try rule ends first; if the mate found
// would come after the maximum length, the answer is UNKNOWN.
MateAnswer find_mate(const Game& game, const MateLimits& limits);

}  // namespace keisei
