// Network input and output from the mover's point of view: planes, action indices, and positions packed into bytes.
// docs/shogi.md is the reference; a change here is a new version of the encoding.
#pragma once

#include <bit>

#include "game.h"

namespace keisei {

constexpr int PLANES = 46;
constexpr int PIECE_PLANES = 42;  // the first ones: pieces on the board and in hand
constexpr int OBSERVATION_SIZE = PLANES * SQUARES;

constexpr int HAND_TYPES = 7;  // P L N S G B R
constexpr int BOARD_ACTIONS = SQUARES * (SQUARES - 1) * 2;
constexpr int ACTIONS = BOARD_ACTIONS + SQUARES * HAND_TYPES;
static_assert(ACTIONS == 13527);

// A position as sent between processes and stored for learning. Little-endian, no padding.
struct PackedPosition {
    uint32_t ply;
    uint32_t max_moves;
    uint8_t hands[2][HAND_TYPES];  // Black's, White's
    uint8_t flags;                 // bit 0: White to move, bit 1: in check, bits 2 and 3: earlier occurrences
    Piece board[SQUARES];          // as Position numbers the squares
};
static_assert(sizeof(PackedPosition) == 104 && std::endian::native == std::endian::little);

// Packs the position of a game, or one without a history.
PackedPosition pack(const Game& game);
PackedPosition pack(const Position& pos, int max_moves);

// Unpacks a position from untrusted bytes; an error if no game could continue from it.
Result<Position> unpack(const PackedPosition& packed);

// Writes the planes, OBSERVATION_SIZE floats; the bytes must be a valid position.
void write_planes(const PackedPosition& packed, float* out);

// Converts a move to its index for the side that makes it, and back; an index is 0 to ACTIONS - 1.
int action_of(Move m, Color mover);
Move move_of(int action, Color mover);

// Writes one index for each move, in the order of the list.
void write_actions(const MoveList& list, Color mover, int32_t* out);

// Writes ACTIONS bytes, 1 for the moves in the list.
void write_mask(const MoveList& list, Color mover, bool* out);

}  // namespace keisei
