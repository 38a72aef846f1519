#include "ppo_loss.h"

#include <algorithm>
#include <cmath>

#include "move_row.h"

namespace keisei {

namespace {

struct ValueLoss {
    double loss, gradient;
};

// (value - target)², or where clipping the value's change gives a larger one, that.
ValueLoss value_loss(double value, double old_value, double target, double clip) {
    const double error = value - target, plain = error * error;
    if (clip == 0) return {plain, 2 * error};
    const double near = old_value + std::clamp(value - old_value, -clip, clip);
    const double clipped = (near - target) * (near - target);
    if (std::abs(value - old_value) <= clip || plain > clipped) return {plain, 2 * error};
    // At equality torch.max, like the mean of both sides, takes half of each; the clipped side's gradient is 0.
    return {std::max(plain, clipped), plain == clipped ? error : 0.0};
}

}  // namespace

PpoSums ppo_gradients(const MoveLogits& moves, const float* values, const PlayedMoves& played, const PpoSettings& settings,
                      const TowerKernels& kernels, float* d_logits, float* d_values) {
    const double scale = 1.0 / settings.minibatch;
    MoveRow row(kernels);
    PpoSums sums;
    for (int i = 0; i < moves.positions; ++i) {
        row.read(moves, i, 1);
        const double log_total = std::log(row.total()), inverse_total = 1 / row.total();
        const int column = played.columns[i];
        // Rounded as when the move was chosen, so that the same weights give a ratio of exactly 1.
        const double log_prob = double(float(double(row.exponent(column)) - log_total));
        const double log_ratio = log_prob - double(played.log_probs[i]), ratio = std::exp(log_ratio);
        const double advantage = double(played.advantages[i]);
        const double plain = advantage * ratio;
        const double clipped = advantage * std::clamp(ratio, 1 - settings.clip, 1 + settings.clip);
        const double d_log_prob = plain <= clipped ? -plain * scale : 0;

        double entropy = 0;
        for (int k = 0; k < row.size(); ++k)
            entropy -= double(row.weight(k)) * inverse_total * (double(row.exponent(k)) - log_total);
        float* d_row = d_logits + moves.offsets[i];
        for (int k = 0; k < row.size(); ++k) {
            const double probability = double(row.weight(k)) * inverse_total;
            const double of_entropy = settings.entropy_coef * scale * (double(row.exponent(k)) - log_total + entropy);
            d_row[k] = float(probability * (of_entropy - d_log_prob));
        }
        d_row[column] += float(d_log_prob);

        const ValueLoss value = value_loss(double(values[i]), double(played.old_values[i]), double(played.returns[i]),
                                           settings.value_clip);
        d_values[i] = float(settings.value_coef * scale * value.gradient);
        sums.policy_loss -= (plain <= clipped ? plain : clipped) * scale;
        sums.value_loss += value.loss * scale;
        sums.entropy += entropy * scale;
        sums.approx_kl += (ratio - 1 - log_ratio) * scale;
        sums.clip_fraction += std::abs(ratio - 1) > settings.clip ? scale : 0;
    }
    return sums;
}

}  // namespace keisei
