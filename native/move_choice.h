// Probabilities over the legal moves, and a choice among them by chance.
#pragma once

#include <cstdint>

#include "tower_kernels.h"

namespace keisei {

// The legal moves of N positions and their logits: those of position i from offsets[i] to offsets[i + 1] - 1.
struct MoveLogits {
    int positions = 0;
    const int32_t* offsets = nullptr;  // [N + 1], at least one move a position
    const float* logits = nullptr;     // [M]
};

// Writes the probability of each move, [M].
void write_probabilities(const MoveLogits& moves, const TowerKernels& kernels, float* probabilities);

// Chooses a move in each position by a number in [0, 1): columns [N], counted from the position's first move, and the
// logarithms of their probabilities [N]. A temperature below 1 sharpens the choice; 0 takes the first of the most probable,
// with its probability at temperature 1. A move of probability 0 is never chosen.
void choose_moves(const MoveLogits& moves, const double* chances, float temperature, const TowerKernels& kernels,
                  int32_t* columns, float* log_probabilities);

}  // namespace keisei
