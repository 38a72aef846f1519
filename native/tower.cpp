#include "tower.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tower_workspace.h"

namespace keisei {

Floats::Floats(size_t size) : size_(size) {
    if (!size) return;
    constexpr size_t ALIGNMENT = 64;
    const size_t bytes = (size * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    data_.reset(static_cast<float*>(std::aligned_alloc(ALIGNMENT, bytes)));
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, bytes);
}
void Floats::Free::operator()(float* data) const { std::free(data); }

// Members are listed in the order of the network's state_dict, in which they are described.
Tower::Tower(TowerShape shape, const TowerKernels& kernels, int threads)
    : shape_(shape), kernels_(&kernels), c_(rounded_up(shape.channels, kernels.width)), team_(threads) {
    const int channels = shape.channels, wide = shape.excitation;
    stem_ = add_conv(PLANES);
    stem_bias_ = add(1, channels, c_);
    for (int i = 0; i < shape.blocks; ++i) {
        Block& block = blocks_.emplace_back();
        block.norm1 = add_norm();
        block.conv1 = add_conv(channels);
        block.norm2 = add_norm();
        block.conv2 = add_conv(channels);
        if (!wide) continue;
        const int row = rounded_up(wide, VECTOR);
        Excitation& excitation = block.excitation;
        excitation.row = row;
        excitation.squeeze = add(wide, channels, c_);
        excitation.squeeze_bias = add(1, wide, row);
        excitation.excite = add(channels, wide, row);
        excitation.excite_bias = add(1, channels, c_);
    }
    norm_ = add_norm();
    const int planes = shape.linear_head ? NARROW : LABEL_PLANES;
    policy_ = add(planes, channels, c_);
    policy_bias_ = add(1, planes, planes);
    linear_flat_ = parameters_;
    if (shape.linear_head) {
        parameters_ += size_t(ACTIONS) * (FEATURES + 1);
        linear_ = Floats(size_t(ACTIONS) * (FEATURE_ROW + 1));
    }
    add_value_head();
    weights_ = Floats(padded_);
    for (int i = 0; i < threads; ++i)
        workspaces_.push_back(std::make_unique<Workspace>(c_, stem_.stored, shape.value_hidden, shape.excitation));
}
Tower::~Tower() = default;

// Describes a matrix that comes next in the flat array; returns where it is here.
size_t Tower::add(int rows, int columns, int padded_row) {
    const size_t padded = padded_;
    fields_.push_back({parameters_, size_t(columns), padded, size_t(padded_row), rows, columns});
    parameters_ += size_t(rows) * size_t(columns);
    padded_ += rounded_up(size_t(rows) * size_t(padded_row), size_t(VECTOR));
    return padded;
}

Tower::Norm Tower::add_norm() {
    const size_t gamma = add(1, shape_.channels, c_);
    return {gamma, add(1, shape_.channels, c_)};
}

Tower::Conv Tower::add_conv(int in) {
    Conv conv{parameters_, in, rounded_up(in, kernels_->width), Floats(POINTS * size_t(in) * size_t(c_)), Floats()};
    parameters_ += size_t(shape_.channels) * size_t(in) * 9;
    return conv;
}

void Tower::add_value_head() {
    const int channels = shape_.channels, hidden = shape_.value_hidden;
    // A row has the weights of the means, then those of the maxima.
    const size_t flat = parameters_;
    hidden_ = padded_;
    for (size_t half = 0; half < 2; ++half)
        fields_.push_back({flat + half * size_t(channels), 2 * size_t(channels), hidden_ + half * size_t(c_),
                           2 * size_t(c_), hidden, channels});
    parameters_ += size_t(hidden) * 2 * size_t(channels);
    padded_ += rounded_up(size_t(hidden) * 2 * size_t(c_), size_t(VECTOR));
    hidden_bias_ = add(1, hidden, hidden);
    value_gamma_ = add(1, hidden, hidden);
    value_beta_ = add(1, hidden, hidden);
    out_ = add(1, hidden, hidden);
    out_bias_ = add(1, 1, 1);
    if (shape_.pieces) pieces_ = add(1, PIECE_PLANES, PIECE_PLANES);
}

int Tower::logits() const { return shape_.linear_head ? ACTIONS : LABEL_PLANES * BOARD; }

size_t Tower::memory_of(int positions) const { return boards_kept() * size_t(positions) * board_floats(); }

void Tower::load(const float* weights, bool learning) {
    can_learn_ = learning;
    for (const Field& field : fields_)
        for (size_t row = 0; row < size_t(field.rows); ++row)
            std::copy_n(weights + field.flat + row * field.flat_row, field.columns,
                        weights_.data() + field.padded + row * field.padded_row);
    prepare(stem_, weights, false);
    for (Block& block : blocks_) {
        prepare(block.conv1, weights, learning);
        prepare(block.conv2, weights, learning);
    }
    if (!shape_.linear_head) return;
    for (size_t action = 0; action < ACTIONS; ++action)
        std::copy_n(weights + linear_flat_ + action * FEATURES, FEATURES, linear_.data() + action * FEATURE_ROW);
    std::copy_n(weights + linear_flat_ + size_t(ACTIONS) * FEATURES, ACTIONS, linear_.data() + size_t(ACTIONS) * FEATURE_ROW);
}

// Makes the 25 matrices of a convolution, in panels of columns, see TowerKernels::multiply.
void Tower::prepare(Conv& conv, const float* weights, bool learning) {
    const int panel = panel_columns(kernels_->width);
    const size_t n = size_t(shape_.channels), depth = size_t(conv.in);
    const size_t matrix = depth * size_t(c_), back_matrix = n * size_t(conv.stored);
    if (learning && !conv.back.size()) conv.back = Floats(POINTS * back_matrix);
    for_threads(conv.in, [&](int first, int end, Workspace& work) {
        float *filters = work.m.data(), *points = filters + 9 * n, *half = points + POINTS * n;
        for (int in = first; in < end; ++in) {
            for (size_t out = 0; out < n; ++out)
                for (size_t i = 0; i < 9; ++i)
                    filters[i * n + out] = weights[conv.flat + (out * depth + size_t(in)) * 9 + i];
            transform_filters(filters, n, points, half);
            for (size_t point = 0; point < POINTS; ++point)
                for (int begin = 0; begin < shape_.channels; begin += panel)
                    std::copy_n(points + point * n + begin, std::min(panel, shape_.channels - begin),
                                conv.panels.data() + point * matrix + size_t(begin) * depth +
                                    size_t(in) * size_t(std::min(panel, c_ - begin)));
            if (!learning) continue;
            const int begin = in / panel * panel;
            const size_t row = size_t(std::min(panel, conv.stored - begin));
            for (size_t point = 0; point < POINTS; ++point) {
                float* to = conv.back.data() + point * back_matrix + size_t(begin) * n + size_t(in - begin);
                for (size_t out = 0; out < n; ++out) to[out * row] = points[point * n + out];
            }
        }
    });
}

void Tower::evaluate(const TowerInput& input, float* logits, float* values, float* kept) {
    // In half blocks, which leave no row unused either, where whole ones would not be enough for all threads.
    const int size = blocks_of(input.positions) < threads() ? BLOCK / 2 : BLOCK;
    for_threads((input.positions + size - 1) / size, [&](int first_block, int end, Workspace& work) {
        for (int block = first_block; block < end; ++block) {
            const int first = block * size, n = std::min(size, input.positions - first);
            evaluate_block(input, first, n, kept, work);
            for (int i = 0; i < n; ++i)
                evaluate_heads(input, first + i, work.x.data() + size_t(i) * board_floats(), logits, values, work);
        }
    });
}

// x becomes the board before the last normalisation.
void Tower::evaluate_block(const TowerInput& input, int first, int n, float* kept, Workspace& work) const {
    const TowerKernels& k = *kernels_;
    const size_t board = board_floats(), layer = size_t(input.positions) * board;
    if (kept) kept += size_t(first) * board;
    const auto keep = [&](const Floats& boards) {
        if (!kept) return;
        std::copy_n(boards.data(), size_t(n) * board, kept);
        kept += layer;
    };
    put_planes(input, first, n, work);
    convolve(stem_, work.planes.data(), n, work);
    k.output_tiles(work.m.data(), n, c_, weights_at(stem_bias_), work.x.data());
    keep(work.x);
    for (const Block& block : blocks_) {
        normalize(block.norm1, work.x.data(), n, work);
        convolve(block.conv1, work.bordered.data(), n, work);
        k.output_tiles(work.m.data(), n, c_, nullptr, work.z.data());
        keep(work.z);
        normalize(block.norm2, work.z.data(), n, work);
        convolve(block.conv2, work.bordered.data(), n, work);
        if (shape_.excitation) {
            k.output_tiles(work.m.data(), n, c_, nullptr, work.z.data());
            keep(work.z);
            for (size_t i = 0; i < size_t(n); ++i) {
                excite(block.excitation, work.z.data() + i * board, work);
                k.scale_add(work.z.data() + i * board, work.scale(), work.zeros(), c_, work.x.data() + i * board);
            }
        } else {
            k.output_tiles_add(work.m.data(), n, c_, work.x.data());
        }
        keep(work.x);
    }
}

// The planes as bordered boards.
void Tower::put_planes(const TowerInput& input, int first, int n, Workspace& work) const {
    const size_t c = size_t(stem_.stored);
    for (size_t i = 0; i < size_t(n); ++i) {
        const float* from = input.planes + (size_t(first) + i) * PLANES * BOARD;
        float* to = work.planes.data() + (i * BORDERED + 12) * c;
        for (size_t plane = 0; plane < PLANES; ++plane)
            for (size_t y = 0; y < 9; ++y)
                for (size_t x = 0; x < 9; ++x) to[(y * 11 + x) * c + plane] = from[plane * BOARD + y * 9 + x];
    }
}

// bordered = relu(norm(boards)); the statistics of each board are kept.
void Tower::normalize(const Norm& norm, const float* boards, int n, Workspace& work) const {
    for (size_t i = 0; i < size_t(n); ++i)
        kernels_->normalize(boards + i * board_floats(), norm_shape(), weights_at(norm.gamma), weights_at(norm.beta), true,
                            work.bordered.data() + i * BORDERED * size_t(c_), work.statistics(i));
}

// m = the 25 products.
void Tower::convolve(const Conv& conv, const float* bordered, int n, Workspace& work) const {
    kernels_->input_tiles(bordered, n, conv.stored, work.v.data());
    for (size_t point = 0; point < POINTS; ++point)
        kernels_->multiply(work.v.data() + point * point_stride(conv.stored), size_t(conv.stored),
                           conv.panels.data() + point * size_t(conv.in) * size_t(c_), padded_rows(n), conv.in, c_,
                           work.m.data() + point * point_stride(c_));
}

// Each channel's scale, from 0 to 2; also its mean and the squeezed layer.
void Tower::excite(const Excitation& weights, const float* board, Workspace& work) const {
    const TowerKernels& k = *kernels_;
    float *mean = work.mean(), *squeezed = work.hidden(0), *scale = work.scale();
    k.sum(board, c_, mean);
    for (int i = 0; i < c_; ++i) mean[i] /= BOARD;
    for (int i = 0; i < shape_.excitation; ++i) {
        const float sum = k.dot(mean, weights_at(weights.squeeze) + size_t(i) * size_t(c_), c_);
        squeezed[i] = relu(sum + weights_at(weights.squeeze_bias)[i]);
    }
    std::fill(squeezed + shape_.excitation, squeezed + weights.row, 0.0f);
    for (int i = 0; i < shape_.channels; ++i) {
        const float sum = k.dot(squeezed, weights_at(weights.excite) + size_t(i) * size_t(weights.row), weights.row);
        scale[i] = sum + weights_at(weights.excite_bias)[i];
    }
    // 2 / (1 + e^-x), with no exponential of a positive number.
    float* exponential = work.d_mean();  // not in use yet
    for (int i = 0; i < c_; ++i) exponential[i] = -std::fabs(scale[i]);
    k.exponentials(exponential, c_, exponential);
    for (int i = 0; i < shape_.channels; ++i)
        scale[i] = 2 * (scale[i] < 0 ? exponential[i] : 1) / (1 + exponential[i]);
}

void Tower::evaluate_heads(const TowerInput& input, int position, const float* x, float* logits, float* values,
                           Workspace& work) const {
    const TowerKernels& k = *kernels_;
    const size_t c = size_t(c_);
    float* board = work.z.data();
    k.normalize(x, norm_shape(), weights_at(norm_.gamma), weights_at(norm_.beta), false, board, work.statistics(0));
    values[position] = value_of(board, input.planes + size_t(position) * PLANES * BOARD, work);
    if (shape_.linear_head) narrow(board, work.features.data());
    for (int32_t i = input.offsets[position]; i < input.offsets[position + 1]; ++i) {
        const size_t move = size_t(input.moves[i]);
        if (shape_.linear_head)
            logits[i] = k.dot(work.features.data(), linear_.data() + move * FEATURE_ROW, FEATURE_ROW) +
                        linear_.data()[size_t(ACTIONS) * FEATURE_ROW + move];
        else
            logits[i] = k.dot(board + move % BOARD * c, weights_at(policy_) + move / BOARD * c, c_) +
                        weights_at(policy_bias_)[move / BOARD];
    }
}

// The 8 planes that the linear head looks at.
void Tower::narrow(const float* board, float* features) const {
    const size_t c = size_t(c_);
    for (size_t plane = 0; plane < NARROW; ++plane)
        for (size_t square = 0; square < BOARD; ++square)
            features[plane * BOARD + square] =
                relu(kernels_->dot(board + square * c, weights_at(policy_) + plane * c, c_) + weights_at(policy_bias_)[plane]);
}

// Not the C library's, whose last bits differ from machine to machine.
static float hyperbolic_tangent(float x, const TowerKernels& kernels) {
    alignas(64) float exponential[VECTOR] = {};
    exponential[0] = -2 * std::fabs(x);
    kernels.exponentials(exponential, kernels.width, exponential);
    return std::copysign((1 - exponential[0]) / (1 + exponential[0]), x);
}

// The number of pieces in each plane that has pieces. One of pieces in hand has the share of its kind on every square.
static void count_pieces(const float* planes, float* counts) {
    constexpr int ON_BOARD = 28;
    constexpr float OF_A_KIND[] = {18, 4, 4, 4, 4, 2, 2};
    for (int plane = 0; plane < PIECE_PLANES; ++plane, planes += BOARD) {
        float columns[9] = {}, sum = 0;
        for (int row = 0; row < 9; ++row)
            for (int column = 0; column < 9; ++column) columns[column] += planes[row * 9 + column];
        for (const float column : columns) sum += column;
        counts[plane] = plane < ON_BOARD ? sum : sum / BOARD * OF_A_KIND[(plane - ON_BOARD) % 7];
    }
}

// Leaves the means and maxima of the board, the hidden layer after normalisation and after ReLU, and 1 / its deviation.
float Tower::value_of(const float* board, const float* planes, Workspace& work) const {
    const TowerKernels& k = *kernels_;
    const size_t wide = size_t(shape_.value_hidden);
    float *pooled = work.pooled(), *normal = work.hidden(0), *active = work.hidden(1);
    k.sum(board, c_, pooled);
    for (int i = 0; i < c_; ++i) pooled[i] /= BOARD;
    k.largest(board, c_, pooled + c_);
    float sum = 0, squares = 0, out = weights_at(out_bias_)[0];
    for (size_t i = 0; i < wide; ++i) {
        normal[i] = k.dot(pooled, weights_at(hidden_) + i * 2 * size_t(c_), 2 * c_) + weights_at(hidden_bias_)[i];
        sum += normal[i];
    }
    const float mean = sum / float(wide);
    for (size_t i = 0; i < wide; ++i) squares += (normal[i] - mean) * (normal[i] - mean);
    const float variance = squares / float(wide);
    work.inverse_deviation = 1 / std::sqrt(variance + EPSILON) + 0 * variance;  // NaN rather than 0
    for (size_t i = 0; i < wide; ++i) {
        normal[i] = (normal[i] - mean) * work.inverse_deviation;
        active[i] = relu(normal[i] * weights_at(value_gamma_)[i] + weights_at(value_beta_)[i]);
        out += active[i] * weights_at(out_)[i];
    }
    if (shape_.pieces) {
        count_pieces(planes, work.pieces);
        for (int i = 0; i < PIECE_PLANES; ++i) out += work.pieces[i] * weights_at(pieces_)[i];
    }
    return hyperbolic_tangent(out, k);
}

}  // namespace keisei
