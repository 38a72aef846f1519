// Players that know only the rules and the values of the pieces: a search, and one that does not look ahead.
//
// The search must find what these definitions say (tests/search/test_alpha_beta.py has them in Python). Values are for
// the side to move, h moves after the root:
//
//   value(game, depth)       WIN_SCORE - h if the game is over and won, its negative if lost, 0 if drawn;
//                            WIN_SCORE - h if the side to move may declare, and h > 0;
//                            quiet(position, quiet_plies) if depth is 0;
//                            otherwise the greatest -value(game after the move, depth - 1) of all legal moves.
//   quiet(position, plies)   the balance of material or, if plies > 0 and it is more, the greatest
//                            -quiet(position after the move, plies - 1) of all legal captures and promotions.
//
// Down to depth 0 the search detects the end of the game by the full rules, history included; beyond that only material
// counts. A caller that may declare at the root should do so instead of asking for a move.
#pragma once

#include <functional>

#include "game.h"

namespace keisei {

// In pawns: none, P L N S G B R K, +P +L +N +S, none, +B +R. A piece in hand counts as unpromoted. The same
// values are in keisei/core/material.py.
constexpr int PIECE_VALUES[PIECE_TYPE_SLOTS] = {0, 1, 3, 4, 5, 6, 8, 10, 0, 7, 6, 6, 6, 0, 10, 12};

// The material advantage of the side to move, in pawns, hands included.
int material_balance(const Position& pos);

constexpr int WIN_SCORE = 100'000;  // far above all the pieces together
constexpr int MAX_SEARCH_DEPTH = 6;
constexpr int MAX_QUIET_PLIES = 8;

struct Choice {
    Move move;
    int score = 0;  // the value of the game at the depth asked for
};

// Search limits: depth 1 to MAX_SEARCH_DEPTH, quiet_plies 0 to MAX_QUIET_PLIES.
struct SearchLimits {
    int depth = 1;
    int quiet_plies = 6;
};

// Returns one of the best moves, drawn uniformly by the seed. The game must not be over. `stop` is called every
// millisecond or so; once it returns true, the choice is meaningless.
Choice alpha_beta(const Game& game, SearchLimits limits, uint64_t seed, const std::function<bool()>& stop);

// Returns a move that wins at once, otherwise one that leaves the best material balance, ignoring replies; ties are
// drawn uniformly by the seed. The game must not be over.
Move material_move(const Game& game, uint64_t seed);

}  // namespace keisei
