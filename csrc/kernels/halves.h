// Sums of two-byte floats in registers: float16 by the processor's own conversion, which the compiler does not use in loops
// that it makes vectors of.
// Invariant: elements are joined in float, and float totals of at most a thousand of them in double by the caller.
#pragma once
#include "cpu.h"
#include "vectors.h"

#if MT_HAS_LEVELS
#include <immintrin.h>

#pragma GCC visibility push(hidden)
namespace mt {

using Wide16 = Vec<float, 64>::t;
using Wide8 = Vec<float, 32>::t;
using Double8 = Vec<double, 64>::t;

// 16 elements, or the first ones of them and zeros.
template <class S> MT_INLINE MT_AVX512 Wide16 widened16(__m256i x) {
    if constexpr (std::is_same<S, Half>::value) return (Wide16)_mm512_maskz_cvtph_ps(0xffff, x);
    else return (Wide16)_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, x), 16);
}
template <class S> MT_INLINE MT_AVX512 Wide16 halves16(const S* x) {
    return widened16<S>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
template <class S> MT_INLINE MT_AVX512 Wide16 halves16(const S* x, int64_t n) {
    return widened16<S>(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), x));
}
template <class S> MT_INLINE MT_AVX2 Wide8 halves8(const S* x) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    if constexpr (std::is_same<S, Half>::value) return (Wide8)_mm256_cvtph_ps(bits);
    else return (Wide8)_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
}

// 16 floats rounded, as `convert` rounds them.
template <class S> MT_INLINE MT_AVX512 __m256i narrowed16(Wide16 v) {
    if constexpr (std::is_same<S, Half>::value) {
        return _mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0);
    } else {
        using U = Vec<uint32_t, 64>::t;
        const U u = (U)v, r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
        const U bits = (u & 0x7fffffffu) > 0x7f800000u ? U{} + 0x7fc0u : r;
        return _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)bits);
    }
}
// n floats, `factor` times, rounded.
template <class S> MT_INLINE MT_AVX512 void put_halves16(S* to, const float* from, int64_t n, float factor) {
    for (int64_t q = 0; q < n; q += 16) {
        const __mmask16 mask = __mmask16(n - q >= 16 ? 0xffff : (1u << (n - q)) - 1);
        const Wide16 v = (Wide16)_mm512_maskz_loadu_ps(mask, from + q) * factor;
        _mm256_mask_storeu_epi16(to + q, mask, narrowed16<S>(v));
    }
}

#if __GNUC__ >= 10
#define MT_PAIRS __attribute__((target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")))
// n floats to bfloat16 by the CPU's own rounding, which takes subnormal numbers for 0: for sums that its own products have
// made, which have none.
MT_INLINE MT_PAIRS void put_sums16(BFloat16* to, const float* from, int64_t n) {
    for (int64_t q = 0; q < n; q += 16) {
        const __mmask16 mask = __mmask16(n - q >= 16 ? 0xffff : (1u << (n - q)) - 1);
        _mm256_mask_storeu_epi16(to + q, mask, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + q)));
    }
}
#endif

// n elements.
template <class Step, class S> MT_AVX512 MT_NOINLINE float sum_halves_avx512(const S* x, int64_t n) {
    Wide16 a{}, b{}, c{}, d{};
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        a += Step::of(halves16(x + i));
        b += Step::of(halves16(x + i + 16));
        c += Step::of(halves16(x + i + 32));
        d += Step::of(halves16(x + i + 48));
    }
    for (; i + 16 <= n; i += 16) a += Step::of(halves16(x + i));
    if (i < n) b += Step::of(halves16(x + i, n - i));
    return fold_lanes((a + b) + (c + d), [](auto p, auto q) __attribute__((always_inline)) { return p + q; });
}
template <class Step, class S> MT_AVX2 MT_NOINLINE float sum_halves_avx2(const S* x, int64_t n) {
    Wide8 a{}, b{}, c{}, d{};
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        a += Step::of(halves8(x + i));
        b += Step::of(halves8(x + i + 8));
        c += Step::of(halves8(x + i + 16));
        d += Step::of(halves8(x + i + 24));
    }
    for (; i + 8 <= n; i += 8) a += Step::of(halves8(x + i));
    const Wide8 all = (a + b) + (c + d);
    float total = ((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]));
    for (; i < n; ++i) total += Step::of((float)widen(x[i]));
    return total;
}

// 16 rows of w elements, `step` apart, added to w numbers.
template <class Step, class S>
MT_AVX512 MT_NOINLINE void add_halves_avx512(const S* x, int64_t step, int64_t w, double* to) {
    int64_t j = 0;
    for (; j + 16 <= w; j += 16) {
        Wide16 a{}, b{};
        for (int64_t r = 0; r < 16; r += 2) {
            a += Step::of(halves16(x + r * step + j));
            b += Step::of(halves16(x + (r + 1) * step + j));
        }
        const Wide16 sum = a + b;
        using Loose = typename Vec<double, 64>::loose;
        Loose* at = reinterpret_cast<Loose*>(to + j);
        at[0] += __builtin_convertvector(__builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7), Double8);
        at[1] += __builtin_convertvector(__builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15), Double8);
    }
    if (j == w) return;
    Wide16 a{};
    for (int64_t r = 0; r < 16; ++r) a += Step::of(halves16(x + r * step + j, w - j));
    for (int64_t k = 0; j + k < w; ++k) to[j + k] += (double)a[k];
}
template <class Step, class S>
MT_AVX2 MT_NOINLINE void add_halves_avx2(const S* x, int64_t step, int64_t w, double* to) {
    int64_t j = 0;
    for (; j + 8 <= w; j += 8) {
        Wide8 a{}, b{};
        for (int64_t r = 0; r < 16; r += 2) {
            a += Step::of(halves8(x + r * step + j));
            b += Step::of(halves8(x + (r + 1) * step + j));
        }
        const Wide8 sum = a + b;
        for (int64_t k = 0; k < 8; ++k) to[j + k] += (double)sum[k];
    }
    for (; j < w; ++j) {
        float sum = 0;
        for (int64_t r = 0; r < 16; ++r) sum += Step::of((float)widen(x[r * step + j]));
        to[j] += (double)sum;
    }
}

}  // namespace mt
#pragma GCC visibility pop
#endif
