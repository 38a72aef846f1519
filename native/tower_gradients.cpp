#include <algorithm>
#include <cstring>

#include "tower_workspace.h"

namespace keisei {

// A batch is cut into this many parts, whatever the number of threads: each sums its gradients, and the parts' sums are
// added in order. Fewer where a network is so wide that they would take too much memory.
static constexpr int MOST_PARTS = 8;
static constexpr size_t PARTS_FLOATS = size_t(64) << 20;

struct Tower::Gradients {
    const TowerInput& input;
    const float* kept;
    const float* d_logits;
    const float* d_values;
    float* d_weights;
};

void Tower::gradients(const TowerInput& input, const float* kept, const float* d_logits, const float* d_values,
                      float* d_weights) {
    const Gradients to{input, kept, d_logits, d_values, d_weights};
    const int total = input.positions, groups = blocks_of(total);
    const size_t board = board_floats(), filters = filter_floats();
    const int parts = std::clamp(groups, 1, int(std::clamp<size_t>(PARTS_FLOATS / (2 * filters + padded_), 1, MOST_PARTS)));
    const auto cleared = [](Floats& floats, size_t size) {
        if (floats.size() < size) floats = Floats(size);
        std::fill_n(floats.data(), size, 0.0f);
    };
    cleared(d_boards_, size_t(total) * board);
    cleared(part_sums_, size_t(parts) * padded_);
    if (part_filters_.size() < size_t(parts) * 2 * filters) part_filters_ = Floats(size_t(parts) * 2 * filters);
    if (shape_.linear_head) cleared(features_, size_t(total) * 2 * FEATURE_ROW);

    // Calls work(first, n, part, workspace) for each block of positions.
    const auto for_blocks = [&](auto&& work) {
        for_threads(parts, [&](int first_part, int end, Workspace& workspace) {
            workspace.prepare_gradients();
            for (int part = first_part; part < end; ++part) {
                std::fill_n(part_filters_.data() + size_t(part) * 2 * filters, 2 * filters, 0.0f);
                for (int i = part_begin(part, parts, groups); i < part_begin(part + 1, parts, groups); ++i)
                    work(i * BLOCK, std::min(BLOCK, total - i * BLOCK), size_t(part), workspace);
            }
        });
    };
    for_blocks([&](int first, int n, size_t part, Workspace& work) {
        for (int i = first; i < first + n; ++i) heads_back(to, i, part, work);
    });
    for (size_t block = blocks_.size(); block-- > 0;) {
        for_blocks([&](int first, int n, size_t part, Workspace& work) { block_back(to, block, first, n, part, work); });
        filters_back(blocks_[block].conv1, part_filters_.data(), parts, d_weights);
        filters_back(blocks_[block].conv2, part_filters_.data() + filters, parts, d_weights);
    }
    for_blocks([&](int first, int n, size_t part, Workspace& work) {
        const float* d_out = d_boards_.data() + size_t(first) * board;
        put_planes(input, first, n, work);
        for (size_t i = 0; i < size_t(n); ++i) {
            kernels_->sum(d_out + i * board, c_, work.mean());
            kernels_->add_scaled(1, work.mean(), c_, part_sums_.data() + part * padded_ + stem_bias_);
        }
        convolve_back(stem_, work.planes.data(), d_out, n, part_filters_.data() + part * 2 * filters, false, work);
    });
    filters_back(stem_, part_filters_.data(), parts, d_weights);

    for (const Field& field : fields_)
        for (size_t row = 0; row < size_t(field.rows); ++row)
            for (size_t column = 0; column < size_t(field.columns); ++column) {
                float sum = 0;
                for (size_t part = 0; part < size_t(parts); ++part)
                    sum += part_sums_.data()[part * padded_ + field.padded + row * field.padded_row + column];
                d_weights[field.flat + row * field.flat_row + column] = sum;
            }
    if (shape_.linear_head) linear_back(to);
}

void Tower::heads_back(const Gradients& to, int position, size_t part, Workspace& work) {
    const size_t board = board_floats();
    const float* x = to.kept + ((boards_kept() - 1) * size_t(to.input.positions) + size_t(position)) * board;
    float *sums = part_sums_.data() + part * padded_, *y = work.z.data(), *dy = work.d_z.data();
    const float *gamma = weights_at(norm_.gamma), *beta = weights_at(norm_.beta);
    kernels_->normalize(x, norm_shape(), gamma, beta, false, y, work.statistics(0));
    std::fill_n(dy, board, 0.0f);
    policy_back(to, position, y, sums, dy);
    const float* planes = to.input.planes + size_t(position) * PLANES * BOARD;
    value_back(to.d_values[position], y, planes, sums, dy, work);
    kernels_->normalize_back(x, norm_shape(), gamma, beta, work.statistics(0), dy, false,
                             d_boards_.data() + size_t(position) * board, sums + norm_.gamma, sums + norm_.beta,
                             work.scratch());
}

void Tower::policy_back(const Gradients& to, int position, const float* board, float* sums, float* d_board) {
    const TowerKernels& k = *kernels_;
    const size_t c = size_t(c_);
    const auto back = [&](float gradient, size_t plane, size_t square) {
        sums[policy_bias_ + plane] += gradient;
        k.add_scaled(gradient, board + square * c, c_, sums + policy_ + plane * c);
        k.add_scaled(gradient, weights_at(policy_) + plane * c, c_, d_board + square * c);
    };
    const int32_t begin = to.input.offsets[position], end = to.input.offsets[position + 1];
    if (!shape_.linear_head) {
        for (int32_t i = begin; i < end; ++i)
            back(to.d_logits[i], size_t(to.input.moves[i]) / BOARD, size_t(to.input.moves[i]) % BOARD);
        return;
    }
    float* features = features_.data() + size_t(position) * 2 * FEATURE_ROW;
    float* d_features = features + FEATURE_ROW;
    narrow(board, features);
    for (int32_t i = begin; i < end; ++i)
        k.add_scaled(to.d_logits[i], linear_.data() + size_t(to.input.moves[i]) * FEATURE_ROW, FEATURE_ROW, d_features);
    for (size_t i = 0; i < FEATURES; ++i)
        if (features[i] > 0) back(d_features[i], i / BOARD, i % BOARD);
}

// The rows of actions, for some columns in each thread: every sum goes through the positions in order.
void Tower::linear_back(const Gradients& to) {
    float *rows = to.d_weights + linear_flat_, *bias = rows + size_t(ACTIONS) * FEATURES;
    std::fill_n(rows, size_t(ACTIONS) * (FEATURES + 1), 0.0f);
    const int32_t* offsets = to.input.offsets;
    for (int32_t i = 0; i < offsets[to.input.positions]; ++i) bias[to.input.moves[i]] += to.d_logits[i];
    team_.run(FEATURES, [&](int first, int end) {
        for (size_t position = 0; position < size_t(to.input.positions); ++position) {
            const float* features = features_.data() + position * 2 * FEATURE_ROW;
            for (int32_t i = offsets[position]; i < offsets[position + 1]; ++i) {
                float* row = rows + size_t(to.input.moves[i]) * FEATURES;
                for (int column = first; column < end; ++column) row[column] += to.d_logits[i] * features[column];
            }
        }
    });
}

void Tower::value_back(float d_value, const float* board, const float* planes, float* sums, float* d_board,
                       Workspace& work) const {
    const TowerKernels& k = *kernels_;
    const size_t wide = size_t(shape_.value_hidden), row = 2 * size_t(c_);
    const float value = value_of(board, planes, work), d_out = d_value * (1 - value * value);
    const float *pooled = work.pooled(), *normal = work.hidden(0), *active = work.hidden(1);
    float *d_normal = work.hidden(2), *d_pooled = work.d_pooled();
    sums[out_bias_] += d_out;
    for (size_t i = 0; shape_.pieces && i < PIECE_PLANES; ++i) sums[pieces_ + i] += d_out * work.pieces[i];
    float sum = 0, product = 0;
    for (size_t i = 0; i < wide; ++i) {
        sums[out_ + i] += d_out * active[i];
        const float d = active[i] > 0 ? d_out * weights_at(out_)[i] : 0;
        sums[value_beta_ + i] += d;
        sums[value_gamma_ + i] += d * normal[i];
        d_normal[i] = d * weights_at(value_gamma_)[i];
        sum += d_normal[i];
        product += d_normal[i] * normal[i];
    }
    std::fill_n(d_pooled, row, 0.0f);
    for (size_t i = 0; i < wide; ++i) {
        const float d = work.inverse_deviation * (d_normal[i] - sum / float(wide) - normal[i] * product / float(wide));
        sums[hidden_bias_ + i] += d;
        k.add_scaled(d, pooled, int(row), sums + hidden_ + i * row);
        k.add_scaled(d, weights_at(hidden_) + i * row, int(row), d_pooled);
    }
    k.pool_back(board, pooled + c_, d_pooled, d_pooled + c_, c_, d_board);
}

// d_board = the gradient of the board that is scaled.
void Tower::excitation_back(const Excitation& weights, const float* board, const float* d_out, float* sums,
                            float* d_board, Workspace& work) const {
    const TowerKernels& k = *kernels_;
    const size_t c = size_t(c_), row = size_t(weights.row);
    excite(weights, board, work);
    const float *scale = work.scale(), *mean = work.mean(), *squeezed = work.hidden(0);
    float *d_scale = work.d_scale(), *d_mean = work.d_mean(), *d_squeezed = work.hidden(1);
    k.sum_products(d_out, board, c_, d_scale);
    std::fill_n(d_mean, c, 0.0f);
    std::fill_n(d_squeezed, row, 0.0f);
    for (size_t i = 0; i < size_t(shape_.channels); ++i) {
        const float d = d_scale[i] * scale[i] * (1 - scale[i] / 2);
        sums[weights.excite_bias + i] += d;
        k.add_scaled(d, squeezed, weights.row, sums + weights.excite + i * row);
        k.add_scaled(d, weights_at(weights.excite) + i * row, weights.row, d_squeezed);
    }
    for (size_t i = 0; i < size_t(shape_.excitation); ++i) {
        if (!(squeezed[i] > 0)) continue;
        sums[weights.squeeze_bias + i] += d_squeezed[i];
        k.add_scaled(d_squeezed[i], mean, c_, sums + weights.squeeze + i * c);
        k.add_scaled(d_squeezed[i], weights_at(weights.squeeze) + i * c, c_, d_mean);
    }
    for (size_t i = 0; i < c; ++i) d_mean[i] /= BOARD;
    std::fill_n(d_board, BOARD * c, 0.0f);
    k.scale_add(d_out, scale, d_mean, c_, d_board);
}

// From the gradient of a block's result to that of its input, both in d_boards.
void Tower::block_back(const Gradients& to, size_t number, int first, int n, size_t part, Workspace& work) {
    const Block& block = blocks_[number];
    const size_t board = board_floats(), layer = size_t(to.input.positions) * board;
    const float* x = to.kept + number * size_t(boards_a_block()) * layer + size_t(first) * board;
    const float *z = x + layer, *excited = z + layer;
    float *dx = d_boards_.data() + size_t(first) * board, *dz = work.d_z.data();
    float* sums = part_sums_.data() + part * padded_;
    float* d_filters = part_filters_.data() + part * 2 * filter_floats();
    const float* d_out = dx;
    if (shape_.excitation) {
        for (size_t i = 0; i < size_t(n); ++i)
            excitation_back(block.excitation, excited + i * board, dx + i * board, sums, dz + i * board, work);
        d_out = dz;
    }
    normalize(block.norm2, z, n, work);
    convolve_back(block.conv2, work.bordered.data(), d_out, n, d_filters + filter_floats(), true, work);
    std::fill_n(dz, size_t(n) * board, 0.0f);
    normalize_back(block.norm2, z, n, sums, dz, work);
    normalize(block.norm1, x, n, work);
    convolve_back(block.conv1, work.bordered.data(), dz, n, d_filters, true, work);
    normalize_back(block.norm1, x, n, sums, dx, work);
}

// Adds to d_boards, given d_bordered and the statistics that normalize() left.
void Tower::normalize_back(const Norm& norm, const float* boards, int n, float* sums, float* d_boards,
                           Workspace& work) const {
    for (size_t i = 0; i < size_t(n); ++i)
        kernels_->normalize_back(boards + i * board_floats(), norm_shape(), weights_at(norm.gamma), weights_at(norm.beta),
                                 work.statistics(i), work.d_bordered.data() + i * BORDERED * size_t(c_), true,
                                 d_boards + i * board_floats(), sums + norm.gamma, sums + norm.beta, work.scratch());
}

// Adds to the filters' gradient, as 25 matrices; d_bordered becomes the gradient of the input if it is wanted.
void Tower::convolve_back(const Conv& conv, const float* bordered, const float* d_out, int n, float* d_filters,
                          bool with_input, Workspace& work) const {
    const TowerKernels& k = *kernels_;
    const size_t c = size_t(c_), stored = size_t(conv.stored);
    k.input_tiles(bordered, n, conv.stored, work.v.data());
    k.output_tiles_back(d_out, n, c_, work.m.data());
    for (size_t point = 0; point < POINTS; ++point) {
        float* v = work.v.data() + point * point_stride(conv.stored);
        const float* m = work.m.data() + point * point_stride(c_);
        k.multiply_transposed_add(v, m, TILES * n, conv.stored, c_, d_filters + point * stored * c);
        if (with_input)
            k.multiply(m, c, conv.back.data() + point * size_t(shape_.channels) * stored, padded_rows(n),
                       shape_.channels, conv.stored, v);
    }
    if (!with_input) return;
    std::fill_n(work.d_bordered.data(), size_t(n) * BORDERED * c, 0.0f);
    k.input_tiles_back(work.v.data(), n, conv.stored, work.d_bordered.data());
}

// From the parts' 25 matrices to the gradient of the filters.
void Tower::filters_back(const Conv& conv, const float* filters, int parts, float* d_weights) {
    const size_t c = size_t(c_), matrix = size_t(conv.stored) * c, step = 2 * filter_floats();
    for_threads(conv.in, [&](int first, int end, Workspace& work) {
        float *points = work.m.data(), *half = points + POINTS * c, *done = half + 15 * c;
        for (size_t in = size_t(first); in < size_t(end); ++in) {
            std::fill_n(points, POINTS * c, 0.0f);
            for (size_t part = 0; part < size_t(parts); ++part)
                for (size_t point = 0; point < POINTS; ++point) {
                    const float* from = filters + part * step + point * matrix + in * c;
                    for (size_t i = 0; i < c; ++i) points[point * c + i] += from[i];
                }
            transform_filters_back(points, c, done, half);
            for (size_t out = 0; out < size_t(shape_.channels); ++out)
                for (size_t i = 0; i < 9; ++i)
                    d_weights[conv.flat + (out * size_t(conv.in) + in) * 9 + i] = done[i * c + out];
        }
    });
}

}  // namespace keisei
