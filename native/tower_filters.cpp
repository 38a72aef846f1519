#include "tower_workspace.h"

namespace keisei {

// A line of a filter at the points 0, 1, -1, 2 and infinity.
static constexpr float FILTER[5][3] = {
    {1 / 2.0f, 0, 0},
    {-1 / 2.0f, -1 / 2.0f, -1 / 2.0f},
    {-1 / 6.0f, 1 / 6.0f, -1 / 6.0f},
    {1 / 6.0f, 1 / 3.0f, 2 / 3.0f},
    {0, 0, 1},
};

void transform_filters(const float* filters, size_t n, float* to, float* half) {
    for (size_t a = 0; a < 5; ++a)
        for (size_t x = 0; x < 3; ++x)
            for (size_t i = 0; i < n; ++i)
                half[(3 * a + x) * n + i] = FILTER[a][0] * filters[x * n + i] + FILTER[a][1] * filters[(3 + x) * n + i] +
                                            FILTER[a][2] * filters[(6 + x) * n + i];
    for (size_t a = 0; a < 5; ++a)
        for (size_t b = 0; b < 5; ++b)
            for (size_t i = 0; i < n; ++i)
                to[(5 * a + b) * n + i] = FILTER[b][0] * half[3 * a * n + i] + FILTER[b][1] * half[(3 * a + 1) * n + i] +
                                          FILTER[b][2] * half[(3 * a + 2) * n + i];
}

void transform_filters_back(const float* points, size_t n, float* to, float* half) {
    for (size_t y = 0; y < 3; ++y)
        for (size_t b = 0; b < 5; ++b)
            for (size_t i = 0; i < n; ++i) {
                float sum = 0;
                for (size_t a = 0; a < 5; ++a) sum += FILTER[a][y] * points[(5 * a + b) * n + i];
                half[(5 * y + b) * n + i] = sum;
            }
    for (size_t y = 0; y < 3; ++y)
        for (size_t x = 0; x < 3; ++x)
            for (size_t i = 0; i < n; ++i) {
                float sum = 0;
                for (size_t b = 0; b < 5; ++b) sum += FILTER[b][x] * half[(5 * y + b) * n + i];
                to[(3 * y + x) * n + i] = sum;
            }
}

}  // namespace keisei
