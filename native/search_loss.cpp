#include "search_loss.h"

#include <algorithm>
#include <cmath>

#include "move_row.h"

namespace keisei {

SearchSums search_gradients(const MoveLogits& moves, const float* values, const SearchedMoves& searched,
                            const SearchLossSettings& settings, const TowerKernels& kernels, float* d_logits,
                            float* d_values) {
    const double scale = 1.0 / settings.minibatch, policy_scale = 1.0 / std::max(settings.targets, 1);
    MoveRow row(kernels);
    SearchSums sums;
    double targets[MAX_LEGAL_MOVES];
    for (int i = 0; i < moves.positions; ++i) {
        row.read(moves, i, 1);
        const double log_total = std::log(row.total()), inverse_total = 1 / row.total();
        const auto log_prob = [&](int k) { return double(row.exponent(k)) - log_total; };
        double entropy = 0;
        for (int k = 0; k < row.size(); ++k) {
            targets[k] = double(row.weight(k)) * inverse_total;
            entropy -= targets[k] * log_prob(k);
        }

        const int16_t* tried = searched.tried + size_t(i) * size_t(searched.candidates);
        const float* gains = searched.gains + size_t(i) * size_t(searched.candidates);
        const bool has_target = searched.candidates > 0 && tried[0] >= 0;
        if (has_target) {
            const int32_t* legal = searched.legal + moves.offsets[i];
            double total = 1;
            for (int c = 0; c < searched.candidates && tried[c] >= 0; ++c) {
                const int k = int(std::find(legal, legal + row.size(), int32_t(tried[c])) - legal);
                if (k == row.size()) {
                    sums.bad_row = i;
                    return sums;
                }
                const double with_gain = targets[k] * std::exp(double(gains[c]));
                total += with_gain - targets[k];
                targets[k] = with_gain;
            }
            int best = 0, best_target = 0;
            for (int k = 0; k < row.size(); ++k) {
                targets[k] /= total;
                if (row.exponent(k) > row.exponent(best)) best = k;
                if (targets[k] > targets[best_target]) best_target = k;
                if (targets[k] <= 0) continue;
                sums.policy_loss -= policy_scale * targets[k] * log_prob(k);
                sums.divergence += policy_scale * targets[k] * (std::log(targets[k]) - log_prob(k));
            }
            sums.agreement += best == best_target ? policy_scale : 0;
        }

        float* d_row = d_logits + moves.offsets[i];
        for (int k = 0; k < row.size(); ++k) {
            const double probability = double(row.weight(k)) * inverse_total;
            const double of_entropy = settings.entropy_coef * scale * probability * (log_prob(k) + entropy);
            d_row[k] = float(of_entropy + (has_target ? policy_scale * (probability - targets[k]) : 0.0));
        }
        const double error = double(values[i]) - double(searched.returns[i]), weight = double(searched.weights[i]);
        d_values[i] = float(settings.value_coef * scale * weight * 2 * error);
        sums.value_loss += scale * weight * error * error;
        sums.entropy += scale * entropy;
    }
    return sums;
}

}  // namespace keisei
