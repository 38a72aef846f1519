// PPO's loss over the legal moves, and its gradients: Schulman et al., 2017, equations 7 and 9.
#pragma once

#include "move_choice.h"

namespace keisei {

// What is known of N moves that were played. All but columns are [N] floats.
struct PlayedMoves {
    const int32_t* columns = nullptr;  // which of its position's legal moves was played, counted from 0
    const float* log_probs = nullptr;  // of the move, when it was chosen
    const float* old_values = nullptr;
    const float* advantages = nullptr;
    const float* returns = nullptr;
};

struct PpoSettings {
    int minibatch = 1;  // moves in the whole minibatch, of which these may be a part: the loss is its mean
    double clip = 0.2;
    double value_clip = 0;  // 0 is none
    double value_coef = 0.5;
    double entropy_coef = 0;
};

// These moves' part of the minibatch's means.
struct PpoSums {
    double policy_loss = 0, value_loss = 0, entropy = 0, approx_kl = 0, clip_fraction = 0;
};

// Writes the gradients of the loss for the logits [M] and the values [N], given both, and returns its parts.
PpoSums ppo_gradients(const MoveLogits& moves, const float* values, const PlayedMoves& played, const PpoSettings& settings,
                      const TowerKernels& kernels, float* d_logits, float* d_values);

}  // namespace keisei
