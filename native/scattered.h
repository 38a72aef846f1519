// Positions unlike those of ordinary games: all forty pieces, at random.
#pragma once

#include <optional>

#include "position.h"
#include "random.h"

namespace keisei {

// Returns a position with the whole set of pieces scattered at random, either side to move, nobody in check. Kings are
// anywhere, in the enemy's camp as often as in their own, and half of the pieces stand near their king; none to half of
// the others are in hand. Nothing, rarely, if no attempt gave such a position.
std::optional<Position> scattered_position(RandomStream& random);

}  // namespace keisei
