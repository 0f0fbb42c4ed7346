// What the CPU has, chosen once when the module is loaded, and kernels compiled for each such level.
// Invariant: a level is never above what the CPU has; MINDTORCH_CPU=baseline|avx2|avx512 only lowers it. Loops marked
// MT_CLONES are chosen by the loader instead, from the same CPU, and know no switch.
//
//   at_level(MT_BODY { ... });     the body compiled for each level, the chosen one run. Everything that it calls must
//                                  be MT_INLINE: a function that is not inlined is compiled for the baseline.
//   leveled<function>()            the same for an MT_INLINE function: the address of the chosen one, also for tables
//                                  that are filled while the module is loaded
//   run_leveled<function>(...)     and a call of it
//
// The baseline is for CPUs without AVX2, none of which is new: where there are levels it is compiled for size, which
// makes it a third smaller. A loop there is fast only if it is written by vectors.
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
#if MT_HAS_LEVELS && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MT_SMALL __attribute__((optimize("Os")))
#else
#define MT_SMALL
#endif

#pragma GCC visibility push(hidden)
namespace mt {

enum Level : int { BASELINE = 0, AVX2 = 1, AVX512 = 2 };
extern const Level cpu_level;
Level level_of_cpu();            // the same, also while the module is loaded
extern const bool cpu_has_bf16;  // beside AVX512: products of bfloat16; not where MINDTORCH_CPU names a level

#define MT_BODY [&]() __attribute__((always_inline))

template <class F> MT_NOINLINE MT_SMALL void at_baseline(F& f) { f(); }
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

template <auto Body> struct Leveled;
template <class R, class... A, R (*Body)(A...)> struct Leveled<Body> {
    static MT_SMALL R baseline(A... a) { return Body(a...); }
#if MT_HAS_LEVELS
    static MT_AVX2 R avx2(A... a) { return Body(a...); }
    static MT_AVX512 R avx512(A... a) { return Body(a...); }
    static MT_INLINE auto at(Level level) { return level == AVX512 ? avx512 : level == AVX2 ? avx2 : baseline; }
#else
    static MT_INLINE auto at(Level) { return baseline; }
#endif
};
template <auto Body> auto leveled() { return Leveled<Body>::at(level_of_cpu()); }
template <auto Body, class... A> MT_INLINE auto run_leveled(A... a) { return Leveled<Body>::at(cpu_level)(a...); }

}  // namespace mt
#pragma GCC visibility pop
