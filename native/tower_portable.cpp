// Plain C++: what every machine can run.
#define KEISEI_WIDTH 4
#define KEISEI_KERNELS "portable"
#include "tower_simd.h"

namespace keisei {

const TowerKernels& portable_kernels() { return KERNELS; }

}  // namespace keisei
