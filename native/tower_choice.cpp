// Which kernels this machine can run.
#include "tower_kernels.h"

namespace keisei {

const TowerKernels* usable_kernels(int i) {
    const TowerKernels* found[3] = {};
    int count = 0;
#if defined(KEISEI_X86_KERNELS)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) found[count++] = &avx512_kernels();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found[count++] = &avx2_kernels();
#endif
    found[count++] = &portable_kernels();
    return i < count ? found[i] : nullptr;
}

}  // namespace keisei
