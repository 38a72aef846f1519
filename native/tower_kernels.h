// The inner loops of the network, as a table of functions for one instruction set.
//
// Boards are stored square by square with the channels of a square together, [81][c], or with a border of zeros,
// [11][11][c]; c is a multiple of `width`, and the channels that a network does not have are 0. A 9×9 board is cut into
// 3×3 tiles. Winograd's F(3×3, 3×3) turns the 5×5 squares around a tile into 25 numbers, multiplies each by the weights'
// 25 numbers, and turns 25 sums into the tile's 9 results: 25 multiplications instead of 81 (docs/network.md).
//
// (The functions here are static: each instruction set must have its own copies.)
//
// A row is a tile: 9 for each position. Every row goes through the same instructions, whatever its neighbours are, so a
// position's result is the same to the bit in every batch.
#pragma once

#include <cstddef>

namespace keisei {

constexpr int BOARD = 81, BORDERED = 11 * 11, TILES = 9, POINTS = 25;
constexpr int BLOCK = 8;            // positions that go through the network together
constexpr int ROW_STEP = 12;        // rows are padded to a multiple of this
constexpr int BLOCK_ROWS = TILES * BLOCK;
static_assert(BLOCK_ROWS % ROW_STEP == 0);

static constexpr int padded_rows(int positions) { return (TILES * positions + ROW_STEP - 1) / ROW_STEP * ROW_STEP; }

// Floats from one of the 25 matrices of a block to the next. Not a multiple of 4 KiB, or they would share cache sets.
static constexpr size_t point_stride(int c) { return size_t(BLOCK_ROWS) * size_t(c) + 16; }

// The groups of a group normalisation: `channels` real ones in `groups` groups, stored as c.
struct NormShape {
    int c, channels, groups;
};

struct TowerKernels {
    const char* name;
    int width;  // floats in a vector

    // v[25][rows][c] from n bordered boards.
    void (*input_tiles)(const float* boards, int n, int c, float* v);
    // The same backwards: adds to n bordered boards what v's gradient says about them.
    void (*input_tiles_back)(const float* v, int n, int c, float* boards);
    // n boards [81][c] from m[25][rows][c], plus a bias [c] if it is not null; or added to what is there.
    void (*output_tiles)(const float* m, int n, int c, const float* bias, float* boards);
    void (*output_tiles_add)(const float* m, int n, int c, float* boards);
    // The same backwards: m's gradient from that of n boards [81][c].
    void (*output_tiles_back)(const float* boards, int n, int c, float* m);

    // out[rows][n] = a[rows][k] · b, with b in panels (see panel_columns): rows is a multiple of ROW_STEP, and a has `lda`
    // floats a row.
    void (*multiply)(const float* a, size_t lda, const float* b, int rows, int k, int n, float* out);
    // out[k][n] += aᵀ[k][rows] · b[rows][n].
    void (*multiply_transposed_add)(const float* a, const float* b, int rows, int k, int n, float* out);

    // Group normalisation and ReLU of a board [81][c]. y: [81][c], or bordered; statistics: [2][c], each channel's mean
    // and 1 / standard deviation.
    void (*normalize)(const float* x, NormShape shape, const float* gamma, const float* beta, bool bordered,
                      float* y, float* statistics);
    // Backwards: adds to dx [81][c], dgamma [c] and dbeta [c]; scratch: [2][c].
    void (*normalize_back)(const float* x, NormShape shape, const float* gamma, const float* beta,
                           const float* statistics, const float* dy, bool bordered, float* dx, float* dgamma,
                           float* dbeta, float* scratch);

    // Sums over a board [81][c], for each channel.
    void (*sum)(const float* board, int c, float* sums);
    void (*largest)(const float* board, int c, float* largest);
    void (*sum_products)(const float* a, const float* b, int c, float* sums);  // of two boards
    // Adds to d_board what the gradients of each channel's mean and maximum say about it. As in torch, squares that share
    // the maximum share its gradient.
    void (*pool_back)(const float* board, const float* most, const float* d_mean, const float* d_most, int c,
                      float* d_board);
    // a[i] · b[i] summed over n, and to[i] += factor · from[i]; n is a multiple of width.
    float (*dot)(const float* a, const float* b, int n);
    void (*add_scaled)(float factor, const float* from, int n, float* to);
    // to[i] = exp(from[i]) for from[i] ≤ 0; n is a multiple of width; both may be the same.
    void (*exponentials)(const float* from, int n, float* to);
    // to [81][c] += scale [c] · from [81][c] + shift [c]
    void (*scale_add)(const float* from, const float* scale, const float* shift, int c, float* to);
};

// Columns of b in one panel of `multiply`: 2 vectors, in the last panel perhaps 1. A panel is [k][columns].
static constexpr int panel_columns(int width) { return 2 * width; }

const TowerKernels& portable_kernels();
#if defined(KEISEI_X86_KERNELS)  // by CMakeLists.txt, where it compiles them
const TowerKernels& avx2_kernels();
const TowerKernels& avx512_kernels();
#endif

// The i-th that this machine can run, the fastest first; null after the last.
const TowerKernels* usable_kernels(int i);

}  // namespace keisei
