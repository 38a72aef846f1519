// AVX-512: some x86-64 since 2017.
#define KEISEI_WIDTH 16
#define KEISEI_KERNELS "avx512"
#include "tower_simd.h"

namespace keisei {

const TowerKernels& avx512_kernels() { return KERNELS; }

}  // namespace keisei
