// Arithmetic of two-byte floats without a block of float32 between: widened, computed and rounded in registers.
// Invariant: each result is that of float32 arithmetic, rounded once, as the general way gives it.
#include "cpu.h"
#include "pointwise.h"

#if MT_HAS_LEVELS
#include <immintrin.h>
#endif

namespace mt {
namespace {

// clang-format off: a table
struct Add { template <class T> static MT_INLINE T run(T a, T b) { return a + b; } };
struct Sub { template <class T> static MT_INLINE T run(T a, T b) { return a - b; } };
struct Mul { template <class T> static MT_INLINE T run(T a, T b) { return a * b; } };
struct Div { template <class T> static MT_INLINE T run(T a, T b) { return a / b; } };
// clang-format on

template <class Op> void bf16_range(char* out, const char* a, const char* b, int64_t n, Params&) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    const uint16_t *x = reinterpret_cast<const uint16_t*>(a), *y = reinterpret_cast<const uint16_t*>(b);
    at_level(MT_BODY {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = float_to_bf16(Op::run(bf16_to_float(x[i]), bf16_to_float(y[i])));
    });
}

#if MT_HAS_LEVELS
template <class Op> MT_AVX2 void half_vectors(uint16_t* o, const uint16_t* x, const uint16_t* y, int64_t n) {
    auto load = [](const uint16_t* p) __attribute__((always_inline, target("arch=x86-64-v3"))) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    };
    for (int64_t i = 0; i < n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i),
                         _mm256_cvtps_ph(Op::run(load(x + i), load(y + i)), _MM_FROUND_TO_NEAREST_INT));
}
#endif

template <class Op> void half_range(char* out, const char* a, const char* b, int64_t n, Params&) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    const uint16_t *x = reinterpret_cast<const uint16_t*>(a), *y = reinterpret_cast<const uint16_t*>(b);
#if MT_HAS_LEVELS
    if (cpu_level >= AVX2) {
        const int64_t whole = n / 8 * 8;
        half_vectors<Op>(o, x, y, whole);
        o += whole, x += whole, y += whole, n -= whole;
    }
#endif
    for (int64_t i = 0; i < n; ++i) o[i] = float_to_half(Op::run(half_to_float(x[i]), half_to_float(y[i])));
}

template <class Op> BinaryKernel both(int code) {
    return {code == F16 ? half_range<Op> : bf16_range<Op>, nullptr, nullptr, code};
}

}  // namespace

// The kernel of an operator on operands that all have this two-byte dtype, or one without loops.
BinaryKernel half_kernel(int64_t op, int code) {
    switch (op) {
        case OP_ADD: return both<Add>(code);
        case OP_SUB: return both<Sub>(code);
        case OP_MUL: return both<Mul>(code);
        case OP_DIV: return both<Div>(code);
        default: return {};
    }
}

}  // namespace mt
