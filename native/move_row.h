// The legal moves of one position with their weights in a softmax. For move_choice and the losses.
#pragma once

#include <algorithm>

#include "move_choice.h"
#include "types.h"

namespace keisei {

constexpr float NEVER = -1e9f;  // not minus infinity, which would give NaN

class MoveRow {
public:
    explicit MoveRow(const TowerKernels& kernels) : kernels_(kernels) {}

    int size() const { return size_; }
    float exponent(int i) const { return exponents_[i]; }   // at most 0
    float weight(int i) const { return weights_[i]; }       // its exponential
    double total() const { return total_; }

    void read(const MoveLogits& moves, int position, float temperature) {
        const float* logits = moves.logits + moves.offsets[position];
        size_ = moves.offsets[position + 1] - moves.offsets[position];
        const float best = *std::max_element(logits, logits + size_);
        for (int i = 0; i < size_; ++i) exponents_[i] = std::max((logits[i] - best) / temperature, NEVER);
        const int padded = (size_ + kernels_.width - 1) / kernels_.width * kernels_.width;
        std::fill(exponents_ + size_, exponents_ + padded, NEVER);
        kernels_.exponentials(exponents_, padded, weights_);
        total_ = 0;
        for (int i = 0; i < size_; ++i) total_ += double(weights_[i]);
    }

    // The first move at which the sum of weights exceeds this share of the total.
    int at(double share) const {
        const double target = share * total_;
        double sum = 0;
        int last = 0;
        for (int i = 0; i < size_; ++i) {
            if (weights_[i] == 0) continue;
            sum += double(weights_[i]);
            last = i;
            if (sum > target) break;
        }
        return last;
    }

private:
    const TowerKernels& kernels_;
    int size_ = 0;
    double total_ = 0;
    alignas(64) float exponents_[MAX_LEGAL_MOVES + 16];
    alignas(64) float weights_[MAX_LEGAL_MOVES + 16];
};

}  // namespace keisei
