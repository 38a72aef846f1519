// The network of keisei/core/models/res_tower.py on the CPU, forwards and backwards: a residual tower with a policy and a
// value head. The results are torch's but for rounding. A position's result depends on that position and the weights
// alone, and gradients do not depend on the number of threads: to the bit, with the same kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "threads.h"
#include "tower_kernels.h"

namespace keisei {

struct TowerShape {
    int blocks = 3;
    int channels = 32;
    int groups = 4;      // of normalisation; divides channels
    int excitation = 0;  // width of squeeze-and-excitation, 0 for none
    int value_hidden = 64;
    bool pieces = false;       // the value head sees the numbers of pieces too
    bool linear_head = false;  // a logit for each of the 13,527 actions instead of 27 × 81 labels
};

// Zeros at first, aligned for vectors.
class Floats {
public:
    explicit Floats(size_t size = 0);
    float* data() const { return data_.get(); }
    size_t size() const { return size_; }

private:
    struct Free {
        void operator()(float* data) const;
    };
    std::unique_ptr<float[], Free> data_;
    size_t size_ = 0;
};

// N positions, and the logits that are wanted of each: those with the indices moves[offsets[i]] to moves[offsets[i + 1] - 1].
struct TowerInput {
    int positions = 0;
    const float* planes = nullptr;     // [N][46][81]
    const int32_t* offsets = nullptr;  // [N + 1]
    const int32_t* moves = nullptr;    // [M], each from 0 to logits() - 1
};

class Tower {
public:
    Tower(TowerShape shape, const TowerKernels& kernels, int threads);
    ~Tower();

    const TowerShape& shape() const { return shape_; }
    const TowerKernels& kernels() const { return *kernels_; }
    int threads() const { return team_.size(); }
    int logits() const;                                // of a position
    size_t parameters() const { return parameters_; }  // floats of all weights
    size_t memory_of(int positions) const;             // floats that evaluate() keeps for gradients()

    // Takes the weights, in the order of the network's state_dict; `learning`: gradients() will be asked for.
    void load(const float* weights, bool learning);
    bool can_learn() const { return can_learn_; }  // whether the weights were loaded for gradients()

    // Writes logits [M] and values [N]. `kept`, if not null, gets what gradients() needs.
    void evaluate(const TowerInput& input, float* logits, float* values, float* kept);

    // Writes the gradients of all weights, given those of the logits [M] and values [N], after evaluate() of the same
    // input and load(weights, true).
    void gradients(const TowerInput& input, const float* kept, const float* d_logits, const float* d_values,
                   float* d_weights);

private:
    // Weights other than those of 3 × 3 convolutions: where their rows are in the flat array, and here.
    struct Field {
        size_t flat, flat_row, padded, padded_row;
        int rows, columns;
    };
    struct Norm {
        size_t gamma, beta;
    };
    struct Conv {
        size_t flat;
        int in, stored;  // channels of the input, as many as there are and as they are stored
        Floats panels;   // 25 matrices in × out
        Floats back;     // 25 matrices out × in
    };
    struct Excitation {
        size_t squeeze, squeeze_bias, excite, excite_bias;
        int row;  // floats in a row of excite
    };
    struct Block {
        Norm norm1, norm2;
        Conv conv1, conv2;
        Excitation excitation;
    };
    struct Workspace;
    struct Gradients;

    size_t add(int rows, int columns, int padded_row);
    Norm add_norm();
    Conv add_conv(int in);
    void add_value_head();
    void prepare(Conv& conv, const float* weights, bool learning);

    const float* weights_at(size_t offset) const { return weights_.data() + offset; }
    NormShape norm_shape() const { return {c_, shape_.channels, shape_.groups}; }
    size_t board_floats() const { return BOARD * size_t(c_); }
    size_t filter_floats() const { return POINTS * size_t(stem_.stored > c_ ? stem_.stored : c_) * size_t(c_); }
    int boards_a_block() const { return shape_.excitation ? 3 : 2; }  // that are kept
    size_t boards_kept() const { return 1 + blocks_.size() * size_t(boards_a_block()); }

    template <class Work> void for_threads(int count, Work&& work);
    void put_planes(const TowerInput& input, int first, int n, Workspace& work) const;
    void normalize(const Norm& norm, const float* boards, int n, Workspace& work) const;
    void convolve(const Conv& conv, const float* bordered, int n, Workspace& work) const;
    void excite(const Excitation& weights, const float* board, Workspace& work) const;
    void evaluate_block(const TowerInput& input, int first, int n, float* kept, Workspace& work) const;
    void evaluate_heads(const TowerInput& input, int position, const float* x, float* logits, float* values,
                        Workspace& work) const;
    void narrow(const float* board, float* features) const;
    float value_of(const float* board, const float* planes, Workspace& work) const;

    void heads_back(const Gradients& to, int position, size_t part, Workspace& work);
    void policy_back(const Gradients& to, int position, const float* board, float* sums, float* d_board);
    void value_back(float d_value, const float* board, const float* planes, float* sums, float* d_board,
                    Workspace& work) const;
    void excitation_back(const Excitation& weights, const float* board, const float* d_out, float* sums, float* d_board,
                         Workspace& work) const;
    void block_back(const Gradients& to, size_t block, int first, int n, size_t part, Workspace& work);
    void normalize_back(const Norm& norm, const float* boards, int n, float* sums, float* d_boards, Workspace& work) const;
    void convolve_back(const Conv& conv, const float* bordered, const float* d_out, int n, float* d_filters,
                       bool with_input, Workspace& work) const;
    void filters_back(const Conv& conv, const float* filters, int parts, float* d_weights);
    void linear_back(const Gradients& to);

    const TowerShape shape_;
    const TowerKernels* const kernels_;
    const int c_;  // channels as stored: a multiple of the kernels' width
    ThreadTeam team_;

    size_t parameters_ = 0, padded_ = 0;  // floats so far, of the flat array and here
    std::vector<Field> fields_;
    Conv stem_;
    size_t stem_bias_;
    std::vector<Block> blocks_;
    Norm norm_;
    size_t policy_, policy_bias_;  // [27][c], or [8][c] before the linear layer
    size_t linear_flat_ = 0;
    size_t hidden_, hidden_bias_, value_gamma_, value_beta_, out_, out_bias_, pieces_ = 0;

    Floats weights_, linear_;
    bool can_learn_ = false;
    std::vector<std::unique_ptr<Workspace>> workspaces_;  // one for each thread
    Floats d_boards_, part_sums_, part_filters_, features_;  // of gradients(), kept from call to call
};

}  // namespace keisei
