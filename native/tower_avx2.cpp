// AVX2 and FMA: x86-64 since 2013.
#define KEISEI_WIDTH 8
#define KEISEI_KERNELS "avx2"
#include "tower_simd.h"

namespace keisei {

const TowerKernels& avx2_kernels() { return KERNELS; }

}  // namespace keisei
