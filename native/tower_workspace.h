// Shared by the files of Tower: sizes, and what a thread works with.
#pragma once

#include <algorithm>

#include "encode.h"
#include "tower.h"

namespace keisei {

constexpr int LABEL_PLANES = 27;
constexpr int NARROW = 8, FEATURES = NARROW * BOARD;  // before the linear head
constexpr int VECTOR = 16;                            // floats of the longest vector
constexpr int FEATURE_ROW = (FEATURES + VECTOR - 1) / VECTOR * VECTOR;
constexpr float EPSILON = 1e-5f;

template <class T> constexpr T rounded_up(T n, T step) { return (n + step - 1) / step * step; }

constexpr int blocks_of(int positions) { return (positions + BLOCK - 1) / BLOCK; }

// Where part p of 0 … count begins, of `parts` parts.
constexpr int part_begin(int p, int parts, int count) { return int(int64_t(count) * p / parts); }

inline float relu(float x) { return x < 0 ? 0 : x; }  // NaN stays NaN

// to[25] = the 25 numbers of each of n filters [9]; half: [15]. And backwards, from their gradients. Arrays are [·][n].
void transform_filters(const float* filters, size_t n, float* to, float* half);
void transform_filters_back(const float* points, size_t n, float* to, float* half);

struct Tower::Workspace {
    Workspace(int channels, int planes_stored, int value_hidden, int excitation)
        : c(size_t(channels)),
          wide(size_t(rounded_up(std::max(value_hidden, excitation), VECTOR))),
          v(POINTS * point_stride(std::max(channels, planes_stored))),
          m(POINTS * point_stride(channels)),
          planes(size_t(BLOCK) * BORDERED * size_t(planes_stored)),
          bordered(size_t(BLOCK) * BORDERED * c),
          x(size_t(BLOCK) * BOARD * c),
          z(x.size()),
          features(FEATURE_ROW),
          channels_(size_t(2 * BLOCK + 11) * c),
          hidden_(3 * wide) {}

    const size_t c, wide;
    Floats v, m;              // 25 matrices each
    Floats planes, bordered;  // boards with a border, which stays 0
    Floats x, z;              // boards
    Floats features;          // of the linear head
    float inverse_deviation = 0;
    float pieces[PIECE_PLANES] = {};  // in each of these planes of the input
    // Only for gradients, and so made by the first of them: boards, with a border and without.
    Floats d_bordered, d_z;

    void prepare_gradients() {
        if (d_z.size()) return;
        d_bordered = Floats(bordered.size());
        d_z = Floats(x.size());
    }

    float* hidden(size_t i) const { return hidden_.data() + i * wide; }
    // One number for each channel.
    float* statistics(size_t position) const { return channel(2 * position); }  // two
    float* pooled() const { return channel(2 * BLOCK); }                         // two
    float* d_pooled() const { return channel(2 * BLOCK + 2); }                   // two
    float* mean() const { return channel(2 * BLOCK + 4); }
    float* d_mean() const { return channel(2 * BLOCK + 5); }
    float* scale() const { return channel(2 * BLOCK + 6); }
    float* d_scale() const { return channel(2 * BLOCK + 7); }
    const float* zeros() const { return channel(2 * BLOCK + 8); }
    float* scratch() const { return channel(2 * BLOCK + 9); }  // two

private:
    float* channel(size_t i) const { return channels_.data() + i * c; }
    Floats channels_, hidden_;
};

// Calls work(first, end, workspace) once for each thread, with its part of 0 … count.
template <class Work>
void Tower::for_threads(int count, Work&& work) {
    const int threads = team_.size();
    team_.run(threads, [&](int first, int end) {
        for (int t = first; t < end; ++t)
            work(part_begin(t, threads, count), part_begin(t + 1, threads, count), *workspaces_[size_t(t)]);
    });
}

}  // namespace keisei
