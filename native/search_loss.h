// The loss of a policy that learns from searches, over the legal moves, and its gradients.
#pragma once

#include "move_choice.h"

namespace keisei {

// What is known of N moves that were played.
struct SearchedMoves {
    const int32_t* legal = nullptr;   // the actions of the legal moves, in the order of the logits
    const int16_t* tried = nullptr;   // [N, candidates]: the actions that a search has tried, then -1
    const float* gains = nullptr;     // [N, candidates]: what to add to their logits
    const float* returns = nullptr;   // [N]
    const float* weights = nullptr;   // [N], in the value loss
    int candidates = 1;
};

struct SearchLossSettings {
    int minibatch = 1;  // moves in the whole minibatch, of which these may be a part: the loss is its mean
    int targets = 1;    // of these, how many have been searched: the policy loss is their mean
    double value_coef = 1;
    double entropy_coef = 0;
};

// These moves' part of the minibatch's means; divergence and agreement of the searched ones.
struct SearchSums {
    double policy_loss = 0, value_loss = 0, entropy = 0, divergence = 0, agreement = 0;
    int bad_row = -1;  // a move with a tried action that is illegal
};

// Writes the gradients of the loss for the logits [M] and the values [N], given both, and returns its parts. The target
// of a searched move is the softmax of its logits with the gains added; it counts as a constant.
SearchSums search_gradients(const MoveLogits& moves, const float* values, const SearchedMoves& searched,
                            const SearchLossSettings& settings, const TowerKernels& kernels, float* d_logits,
                            float* d_values);

}  // namespace keisei
