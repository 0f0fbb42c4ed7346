// What the CPU has, chosen once when the module is loaded, and kernels compiled for each such level.
// Invariant: a level is never above what the CPU has; MINDTORCH_CPU=baseline|avx2|avx512 only lowers it. Loops marked
// MT_CLONES are chosen by the loader instead, from the same CPU, and know no switch.
//
//   at_level(MT_BODY { ... });     the body compiled for each level, the chosen one run. Everything that it calls must
//                                  be MT_INLINE: a function that is not inlined is compiled for the baseline.
#pragma once
#include "common.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MT_HAS_LEVELS 1
#define MT_AVX2 __attribute__((target("arch=x86-64-v3")))
#define MT_AVX512 __attribute__((target("arch=x86-64-v4,prefer-vector-width=512")))
#else
#define MT_HAS_LEVELS 0
#define MT_AVX2
#define MT_AVX512
#endif

#pragma GCC visibility push(hidden)
namespace mt {

enum Level : int { BASELINE = 0, AVX2 = 1, AVX512 = 2 };
extern const Level cpu_level;
extern const bool cpu_has_bf16;  // beside AVX512: products of bfloat16; not where MINDTORCH_CPU names a level

#define MT_BODY [&]() __attribute__((always_inline))

template <class F> MT_NOINLINE void at_baseline(F& f) { f(); }
#if MT_HAS_LEVELS
template <class F> MT_NOINLINE MT_AVX2 void at_avx2(F& f) { f(); }
template <class F> MT_NOINLINE MT_AVX512 void at_avx512(F& f) { f(); }
template <class F> MT_INLINE void at_level(F&& f) {
    switch (cpu_level) {
        case AVX512: return at_avx512(f);
        case AVX2: return at_avx2(f);
        default: return at_baseline(f);
    }
}
#else
template <class F> MT_INLINE void at_level(F&& f) { at_baseline(f); }
#endif

}  // namespace mt
#pragma GCC visibility pop
