// Mates: in one move, and by checks that do not end until the mate.
#pragma once

#include <functional>
#include <vector>

#include "game.h"

namespace keisei {

// One of these legal moves that mates at once.
std::optional<Move> mate_in_one(Position pos, const MoveList& legal);

struct MateLimits {
    int64_t max_nodes = 1'000'000;  // positions that are looked into; each takes about 100 bytes
    std::function<bool()> stop;     // asked every few hundred positions
};

struct MateAnswer {
    enum Kind : uint8_t {
        MATE,     // forced: `line` is one way, the defender choosing a longest of the replies that were found
        NO_MATE,  // for certain: no sequence of checks forces a mate
        UNKNOWN   // the limits came first, or the proof that there is none would take too much room
    } kind = UNKNOWN;
    std::vector<Move> line;
};

// Can the side to move force mate, giving check with every move? The game must not be over. The line need not be the
// shortest. Perpetual check is no mate, nor is a game that ends before it by the rules of repetition or try; where the
// mate that was found would come after the maximum length, the answer is UNKNOWN.
MateAnswer find_mate(const Game& game, const MateLimits& limits);

}  // namespace keisei
