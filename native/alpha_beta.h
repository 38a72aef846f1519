// Players that know nothing but the rules and the value of the pieces: a search, and one that looks no move ahead.
//
// What the search finds is defined without it (tests/search/test_alpha_beta.py says it again in Python), for the side
// to move, after h moves from the position asked about:
//
//   value(game, depth)       WIN_SCORE - h if the game is over and won, the negative of it if lost, 0 if drawn;
//                            WIN_SCORE - h if the side to move may declare, and h > 0;
//                            quiet(position, quiet_plies) if depth is 0;
//                            otherwise the greatest -value(game after the move, depth - 1) of all legal moves.
//   quiet(position, plies)   the balance of material or, if plies > 0 and it is more, the greatest
//                            -quiet(position after the move, plies - 1) of all legal captures and promotions.
//
// Ends of the game are looked for down to depth 0, by the rules and with the history of the game; beyond it only
// material counts. Who may declare at once need not ask for a move.
#pragma once

#include <functional>

#include "game.h"

namespace keisei {

// In pawns: none, P L N S G B R K, +P +L +N +S, none, +B +R. A piece in hand is worth its face. The same stand in
// keisei/core/material.py.
constexpr int PIECE_VALUES[PIECE_TYPE_SLOTS] = {0, 1, 3, 4, 5, 6, 8, 10, 0, 7, 6, 6, 6, 0, 10, 12};

constexpr int WIN_SCORE = 100'000;  // far above all pieces together
constexpr int MAX_SEARCH_DEPTH = 6;
constexpr int MAX_QUIET_PLIES = 8;

struct Choice {
    Move move;
    int score = 0;  // the value of the game at the depth asked for
};

// How far to look: depth 1 to MAX_SEARCH_DEPTH, quiet_plies 0 to MAX_QUIET_PLIES.
struct SearchLimits {
    int depth = 1;
    int quiet_plies = 6;
};

// One of the best moves, drawn evenly by the seed. The game must not be over. `stop` is asked every millisecond or so;
// once it says true the choice is worth nothing.
Choice alpha_beta(const Game& game, SearchLimits limits, uint64_t seed, const std::function<bool()>& stop);

// A move that wins at once, otherwise one after which the balance of material is best, whatever the reply; drawn evenly
// by the seed. The game must not be over.
Move material_move(const Game& game, uint64_t seed);

}  // namespace keisei
