// The kernels, written once for vectors of KEISEI_WIDTH floats. Each file that includes this is compiled for another
// instruction set, so everything here is in an unnamed namespace and nothing inline comes from another header: the linker
// would keep one copy of such a function for all, perhaps one that this machine cannot run.
#include <stddef.h>

#include "tower_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(KEISEI_NEON)
#include <arm_neon.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 12")
#endif

namespace keisei {
namespace {

constexpr int W = KEISEI_WIDTH;
typedef float Vec __attribute__((vector_size(4 * W)));
typedef float InMemory __attribute__((vector_size(4 * W), may_alias, aligned(4)));  // arrays may begin anywhere
typedef int Ints __attribute__((vector_size(4 * W)));

inline Vec load(const float* from) { return *reinterpret_cast<const InMemory*>(from); }
inline void store(float* to, Vec v) { *reinterpret_cast<InMemory*>(to) = v; }

// a * b + c: in one rounding where the instruction set can, everywhere or nowhere.
inline Vec fused(Vec a, Vec b, Vec c) {
#if KEISEI_WIDTH == 16
    return Vec(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif KEISEI_WIDTH == 8
    return Vec(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#elif defined(KEISEI_NEON)
    return Vec(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
#else
    return a * b + c;
#endif
}
inline Vec all(float x) {
#if KEISEI_WIDTH == 16
    return Vec(_mm512_set1_ps(x));
#elif KEISEI_WIDTH == 8
    return Vec(_mm256_set1_ps(x));
#else
    return Vec{x, x, x, x};
#endif
}
inline Vec positive(Vec v) { return v < 0.0f ? Vec{} : v; }  // NaN stays NaN, as in torch
inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }
// 1 / standard deviation. NaN for a variance beyond float32, where 0 would hide that everything is lost.
inline float inverse_deviation(float variance) { return 1 / __builtin_sqrtf(variance + 1e-5f) + 0 * variance; }

// Winograd's transforms of a line, at the points 0, 1, -1, 2 and infinity (docs/network.md), and their transposes, which
// carry gradients back. d: a line with a step of s; o: the result with a step of t.
inline void input_line(const Vec* d, int s, Vec* o, int t) {
    const Vec two = all(2), b = d[s], c = d[2 * s], e = d[3 * s], eb = e - b;
    o[0] = fused(two, d[0] - c, eb);
    o[t] = fused(-two, b, e - c);
    o[2 * t] = fused(all(-3), c, fused(two, b, e));
    o[3 * t] = eb;
    o[4 * t] = fused(-two, eb, d[4 * s] - c);
}
inline void input_line_back(const Vec* d, int s, Vec* o, int t) {
    const Vec two = all(2), a = d[0], b = d[s], c = d[2 * s], e = d[3 * s], f = d[4 * s];
    o[0] = two * a;
    o[t] = fused(two, (c - b) + f, -a) - e;
    o[2 * t] = fused(-two, a, -b) + fused(all(-3), c, -f);
    o[3 * t] = fused(-two, f, (a + b) + (c + e));
    o[4 * t] = f;
}
inline void output_line(const Vec* d, int s, Vec* o, int t) {
    const Vec b = d[s], c = d[2 * s], e = d[3 * s], sum = b + c;
    o[0] = (d[0] + sum) + e;
    o[t] = fused(all(2), e, b - c);
    o[2 * t] = fused(all(4), e, sum) + d[4 * s];
}
inline void output_line_back(const Vec* d, int s, Vec* o, int t) {
    const Vec a = d[0], b = d[s], c = d[2 * s], ends = a + c;
    o[0] = a;
    o[t] = ends + b;
    o[2 * t] = ends - b;
    o[3 * t] = fused(all(4), c, fused(all(2), b, a));
    o[4 * t] = c;
}

// Calls work(square, row) for each tile and each vector of channels of n boards of side × side squares: where the tile
// begins in the boards, and in a matrix.
template <class Work>
inline void for_tiles(int n, size_t c, size_t side, Work work) {
    for (size_t row = 0; row < size_t(TILES * n); ++row) {
        const size_t tile = row % TILES, y = tile / 3 * 3, x = tile % 3 * 3;
        const size_t square = (row / TILES * side + y) * side + x;
        for (size_t channel = 0; channel < c; channel += W) work(square * c + channel, row * c + channel);
    }
}

void input_tiles(const float* boards, int n, int channels, float* v) {
    const size_t c = size_t(channels), stride = point_stride(channels);
    for_tiles(n, c, 11, [=](size_t square, size_t row) {
        Vec line[5], half[25], done[5];
UNROLL
        for (size_t x = 0; x < 5; ++x) {
UNROLL
            for (size_t y = 0; y < 5; ++y) line[y] = load(boards + square + (y * 11 + x) * c);
            input_line(line, 1, half + x, 5);
        }
UNROLL
        for (size_t y = 0; y < 5; ++y) {
            input_line(half + 5 * y, 1, done, 1);
UNROLL
            for (size_t x = 0; x < 5; ++x) store(v + row + (5 * y + x) * stride, done[x]);
        }
    });
}

void input_tiles_back(const float* v, int n, int channels, float* boards) {
    const size_t c = size_t(channels), stride = point_stride(channels);
    for_tiles(n, c, 11, [=](size_t square, size_t row) {
        Vec line[5], half[25], done[5];
UNROLL
        for (size_t x = 0; x < 5; ++x) {
UNROLL
            for (size_t y = 0; y < 5; ++y) line[y] = load(v + row + (5 * y + x) * stride);
            input_line_back(line, 1, half + x, 5);
        }
UNROLL
        for (size_t y = 0; y < 5; ++y) {
            input_line_back(half + 5 * y, 1, done, 1);
UNROLL
            for (size_t x = 0; x < 5; ++x) {
                float* to = boards + square + (y * 11 + x) * c;
                store(to, load(to) + done[x]);
            }
        }
    });
}

template <bool ADD>
inline void output_tiles_of(const float* m, int n, int channels, const float* bias, float* boards) {
    const size_t c = size_t(channels), stride = point_stride(channels);
    for_tiles(n, c, 9, [=](size_t square, size_t row) {
        Vec line[5], half[15], done[3];
UNROLL
        for (size_t x = 0; x < 5; ++x) {
UNROLL
            for (size_t y = 0; y < 5; ++y) line[y] = load(m + row + (5 * y + x) * stride);
            output_line(line, 1, half + x, 5);
        }
        const Vec plus = bias ? load(bias + row % c) : Vec{};
UNROLL
        for (size_t y = 0; y < 3; ++y) {
            output_line(half + 5 * y, 1, done, 1);
UNROLL
            for (size_t x = 0; x < 3; ++x) {
                float* to = boards + square + (y * 9 + x) * c;
                store(to, done[x] + (ADD ? load(to) : plus));
            }
        }
    });
}
void output_tiles(const float* m, int n, int c, const float* bias, float* boards) {
    output_tiles_of<false>(m, n, c, bias, boards);
}
void output_tiles_add(const float* m, int n, int c, float* boards) {
    output_tiles_of<true>(m, n, c, nullptr, boards);
}

void output_tiles_back(const float* boards, int n, int channels, float* m) {
    const size_t c = size_t(channels), stride = point_stride(channels);
    for_tiles(n, c, 9, [=](size_t square, size_t row) {
        Vec line[3], half[15], done[5];
UNROLL
        for (size_t x = 0; x < 3; ++x) {
UNROLL
            for (size_t y = 0; y < 3; ++y) line[y] = load(boards + square + (y * 9 + x) * c);
            output_line_back(line, 1, half + x, 3);
        }
UNROLL
        for (size_t y = 0; y < 5; ++y) {
            output_line_back(half + 3 * y, 1, done, 1);
UNROLL
            for (size_t x = 0; x < 5; ++x) store(m + row + (5 * y + x) * stride, done[x]);
        }
    });
}

// As many sums as there are registers for: 16 vector registers, 32 with AVX-512 and on ARM.
#if KEISEI_WIDTH == 16 || defined(__aarch64__)
constexpr int ROWS = 12;
#else
constexpr int ROWS = KEISEI_WIDTH == 8 ? 6 : 4;
#endif
constexpr int COLUMNS = KEISEI_WIDTH == 16 ? 8 : 4;
static_assert(ROW_STEP % ROWS == 0 && W % COLUMNS == 0);

// out[R][V vectors] = a[R][k] · b[k][V vectors], or added to what is there. Steps of a: `row` from one of the R to the
// next, `deep` along k; of b: `next` along k.
template <int R, int V, bool ADD>
inline void product(const float* a, size_t row, size_t deep, const float* b, size_t next, size_t k, float* out,
                    size_t out_row) {
    Vec sums[R][V];
UNROLL
    for (size_t i = 0; i < R; ++i)
UNROLL
        for (size_t j = 0; j < V; ++j) sums[i][j] = Vec{};
    for (size_t p = 0; p < k; ++p, a += deep, b += next) {
        Vec right[V];
UNROLL
        for (size_t j = 0; j < V; ++j) right[j] = load(b + j * W);
UNROLL
        for (size_t i = 0; i < R; ++i) {
            const Vec left = all(a[i * row]);
UNROLL
            for (size_t j = 0; j < V; ++j) sums[i][j] = fused(left, right[j], sums[i][j]);
        }
    }
UNROLL
    for (size_t i = 0; i < R; ++i)
UNROLL
        for (size_t j = 0; j < V; ++j) {
            float* to = out + i * out_row + j * W;
            store(to, ADD ? load(to) + sums[i][j] : sums[i][j]);
        }
}

void multiply(const float* a, size_t lda, const float* b, int rows, int k, int n, float* out) {
    const size_t height = size_t(rows), depth = size_t(k), width = size_t(n);
    size_t column = 0;
    for (; column + 2 * W <= width; column += 2 * W, b += depth * 2 * W)
        for (size_t r = 0; r < height; r += ROWS)
            product<ROWS, 2, false>(a + r * lda, lda, 1, b, 2 * W, depth, out + r * width + column, width);
    if (column < width)
        for (size_t r = 0; r < height; r += ROWS)
            product<ROWS, 1, false>(a + r * lda, lda, 1, b, W, depth, out + r * width + column, width);
}

void multiply_transposed_add(const float* a, const float* b, int rows, int k, int n, float* out) {
    const size_t height = size_t(k), depth = size_t(rows), width = size_t(n);
    for (size_t r = 0; r < height; r += COLUMNS) {
        size_t column = 0;
        for (; column + 2 * W <= width; column += 2 * W)
            product<COLUMNS, 2, true>(a + r, 1, height, b + column, width, depth, out + r * width + column, width);
        if (column < width)
            product<COLUMNS, 1, true>(a + r, 1, height, b + column, width, depth, out + r * width + column, width);
    }
}

// Calls work(square of [81], square of the other board) for each square.
template <class Work>
inline void for_squares(bool bordered, Work work) {
    for (size_t y = 0; y < 9; ++y)
        for (size_t x = 0; x < 9; ++x) work(9 * y + x, bordered ? 11 * y + x + 12 : 9 * y + x);
}

// Sets each channel to the mean over its group of sums over a board.
inline void means_of_groups(NormShape shape, float* sums) {
    const int size = shape.channels / shape.groups;
    for (int group = 0; group < shape.groups; ++group) {
        float* begin = sums + group * size;
        float sum = 0;
        for (int i = 0; i < size; ++i) sum += begin[i];
        for (int i = 0; i < size; ++i) begin[i] = sum / float(BOARD * size);
    }
}

// For each vector of channels, the sum over the board of term(square, channel): three sums, to overlap their latencies.
template <class Term>
inline void sum_over_board(int channels, float* sums, Term term) {
    const size_t c = size_t(channels);
    for (size_t channel = 0; channel < c; channel += W) {
        Vec s0{}, s1{}, s2{};
        for (size_t i = channel; i < BOARD * c; i += 3 * c) {
            s0 += term(i, channel);
            s1 += term(i + c, channel);
            s2 += term(i + 2 * c, channel);
        }
        store(sums + channel, (s0 + s1) + s2);
    }
}

void normalize(const float* x, NormShape shape, const float* gamma, const float* beta, bool bordered, float* y,
               float* statistics) {
    const size_t c = size_t(shape.c), channels = size_t(shape.channels);
    float *mean = statistics, *inverse = statistics + c;
    sum_over_board(shape.c, mean, [=](size_t i, size_t) { return load(x + i); });
    means_of_groups(shape, mean);
    // Around the mean, in a second pass: squares of large values would cancel.
    sum_over_board(shape.c, inverse, [=](size_t i, size_t channel) {
        const Vec away = load(x + i) - load(mean + channel);
        return away * away;
    });
    means_of_groups(shape, inverse);
    for (size_t i = 0; i < channels; ++i) inverse[i] = inverse_deviation(inverse[i]);
    for_squares(bordered, [=](size_t from, size_t to) {
        for (size_t channel = 0; channel < c; channel += W) {
            const Vec scale = load(gamma + channel) * load(inverse + channel);
            const Vec away = load(x + from * c + channel) - load(mean + channel);
            store(y + to * c + channel, positive(fused(away, scale, load(beta + channel))));
        }
    });
}

void normalize_back(const float* x, NormShape shape, const float* gamma, const float* beta, const float* statistics,
                    const float* dy, bool bordered, float* dx, float* dgamma, float* dbeta, float* scratch) {
    const size_t c = size_t(shape.c);
    const float *mean = statistics, *inverse = statistics + c;
    float *sum = scratch, *product = scratch + c;  // over the board, of the gradient and of gradient · normalised
    for (size_t channel = 0; channel < c; channel += W) {
        const Vec middle = load(mean + channel), inv = load(inverse + channel);
        const Vec g = load(gamma + channel), b = load(beta + channel);
        Vec s{}, p{};
        for_squares(bordered, [&](size_t from, size_t to) {
            const Vec away = load(x + from * c + channel) - middle;
            const Vec gradient = fused(away, g * inv, b) > 0.0f ? load(dy + to * c + channel) : Vec{};
            s += gradient;
            p = fused(gradient, away * inv, p);
        });
        store(dbeta + channel, load(dbeta + channel) + s);
        store(dgamma + channel, load(dgamma + channel) + p);
        store(sum + channel, s * g);
        store(product + channel, p * g);
    }
    means_of_groups(shape, sum);
    means_of_groups(shape, product);
    for (size_t channel = 0; channel < c; channel += W) {
        const Vec middle = load(mean + channel), inv = load(inverse + channel);
        const Vec g = load(gamma + channel), b = load(beta + channel);
        const Vec s = load(sum + channel), p = load(product + channel);
        for_squares(bordered, [&](size_t from, size_t to) {
            const Vec away = load(x + from * c + channel) - middle;
            const Vec gradient = fused(away, g * inv, b) > 0.0f ? load(dy + to * c + channel) : Vec{};
            const Vec inner = fused(gradient, g, -s) - away * inv * p;
            float* at = dx + from * c + channel;
            store(at, fused(inv, inner, load(at)));
        });
    }
}

void sum(const float* board, int c, float* sums) {
    sum_over_board(c, sums, [=](size_t i, size_t) { return load(board + i); });
}
void sum_products(const float* a, const float* b, int c, float* sums) {
    sum_over_board(c, sums, [=](size_t i, size_t) { return load(a + i) * load(b + i); });
}
void largest(const float* board, int channels, float* result) {
    const size_t c = size_t(channels);
    for (size_t channel = 0; channel < c; channel += W) {
        Vec most = load(board + channel);
        for (size_t i = c + channel; i < BOARD * c; i += c) most = larger(load(board + i), most);
        store(result + channel, most);
    }
}
void pool_back(const float* board, const float* most, const float* d_mean, const float* d_most, int channels, float* to) {
    const size_t c = size_t(channels);
    for (size_t channel = 0; channel < c; channel += W) {
        const Vec top = load(most + channel), mean = load(d_mean + channel) / float(BOARD);
        Vec shared{};
        for (size_t i = channel; i < BOARD * c; i += c) shared += load(board + i) == top ? all(1) : Vec{};
        const Vec share = load(d_most + channel) / shared;
        for (size_t i = channel; i < BOARD * c; i += c)
            store(to + i, load(to + i) + (mean + (load(board + i) == top ? share : Vec{})));
    }
}
float dot(const float* a, const float* b, int n) {
    Vec s{};
    for (int i = 0; i < n; i += W) s = fused(load(a + i), load(b + i), s);
    float total = 0;
    for (int i = 0; i < W; ++i) total += s[i];
    return total;
}
// By e^x = 2^n · e^r with |r| ≤ ln 2 / 2, and Taylor's series to r^7: an error of less than 2 units in the last place.
// The same on every machine with these kernels, unlike the C library's.
void exponentials(const float* from, int n, float* to) {
    for (int i = 0; i < n; i += W) {
        Vec x = load(from + i);
        const auto tiny = x < -87.0f;
        x = tiny ? all(-87) : x;
        // Adding 1.5 · 2^23 rounds to a whole number, which is then in the low bits.
        const Vec magic = all(12582912.0f), shifted = fused(x, all(1.44269504f), magic), whole = shifted - magic;
        const Vec r = fused(whole, all(2.12194440e-4f), fused(whole, all(-0.693359375f), x));
        Vec sum = fused(r, all(1 / 5040.0f), all(1 / 720.0f));
        sum = fused(sum, r, all(1 / 120.0f));
        sum = fused(sum, r, all(1 / 24.0f));
        sum = fused(sum, r, all(1 / 6.0f));
        sum = fused(sum, r, all(0.5f));
        sum = fused(fused(sum, r, all(1)), r, all(1));
        const Ints power = (Ints(shifted) - 0x4B400000 + 127) << 23;
        store(to + i, tiny ? Vec{} : sum * Vec(power));
    }
}
void add_scaled(float factor, const float* from, int n, float* to) {
    const Vec f = all(factor);
    for (int i = 0; i < n; i += W) store(to + i, fused(f, load(from + i), load(to + i)));
}
void scale_add(const float* from, const float* scale, const float* shift, int channels, float* to) {
    const size_t c = size_t(channels);
    for (size_t i = 0; i < BOARD * c; i += c)
        for (size_t channel = 0; channel < c; channel += W) {
            const Vec moved = fused(load(from + i + channel), load(scale + channel), load(shift + channel));
            store(to + i + channel, load(to + i + channel) + moved);
        }
}

constexpr TowerKernels KERNELS = {
    KEISEI_KERNELS, W, input_tiles, input_tiles_back, output_tiles, output_tiles_add, output_tiles_back,
    multiply, multiply_transposed_add, normalize, normalize_back, sum, largest, sum_products, pool_back, dot, add_scaled,
    exponentials, scale_add,
};

}  // namespace
}  // namespace keisei
