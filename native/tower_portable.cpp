// Vectors of 4 floats: what every machine can run. ARM multiplies and adds in one rounding, so its results have a name of
// their own.
#define KEISEI_WIDTH 4
#if defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#define KEISEI_NEON
#define KEISEI_KERNELS "neon"
#else
#define KEISEI_KERNELS "portable"
#endif
#include "tower_simd.h"

namespace keisei {

const TowerKernels& portable_kernels() { return KERNELS; }

}  // namespace keisei
