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
// NaN wins.
struct Maximum { template <class T> static MT_INLINE T run(T a, T b) { return (a > b) | (a != a) ? a : b; } };
struct Minimum { template <class T> static MT_INLINE T run(T a, T b) { return (a < b) | (a != a) ? a : b; } };
struct Square { template <class T> static MT_INLINE T run(T a) { return a * a; } };
struct Reciprocal { template <class T> static MT_INLINE T run(T a) { return 1.0f / a; } };
struct Cube { template <class T> static MT_INLINE T run(T a) { return a * a * a; } };
struct Relu { template <class T> static MT_INLINE T run(T a) { return a < 0.0f ? T{} : a; } };
struct AddCMul { template <class T> static MT_INLINE T run(T a, T b, T c, T by) { return a + by * b * c; } };
struct AddCDiv { template <class T> static MT_INLINE T run(T a, T b, T c, T by) { return a + by * b / c; } };
// clang-format on
// Both bounds are numbers, or both NaN.
struct Clamp {
    template <class T> static MT_INLINE T run(T a, T lo, T hi) {
        const T m = a <= lo ? lo : a;
        const T r = m >= hi ? hi : m;
        return (lo != lo) ? lo : r;
    }
};
// From the nearer end, so that weight 1 gives exactly b.
struct Lerp {
    template <class T> static MT_INLINE T run(T a, T b, T w) {
        return (w < 0.5f) & (w > -0.5f) ? a + w * (b - a) : b - (b - a) * (1.0f - w);
    }
};
#if MT_HAS_LEVELS
#define MT_HALF_ROUNDING(name, scalar, mode) \
    struct name { \
        static MT_INLINE float run(float a) { return scalar(a); } \
        static MT_INLINE MT_AVX2 __m256 run(__m256 a) { return mode; } \
    };
#else
#define MT_HALF_ROUNDING(name, scalar, mode) \
    struct name { \
        static MT_INLINE float run(float a) { return scalar(a); } \
    };
#endif
MT_HALF_ROUNDING(Sqrt, std::sqrt, _mm256_sqrt_ps(a))
MT_HALF_ROUNDING(Rsqrt, 1.0f / std::sqrt, _mm256_set1_ps(1.0f) / _mm256_sqrt_ps(a))
MT_HALF_ROUNDING(Floor, std::floor, _mm256_floor_ps(a))
MT_HALF_ROUNDING(Ceil, std::ceil, _mm256_ceil_ps(a))
MT_HALF_ROUNDING(Round, std::nearbyint, _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
MT_HALF_ROUNDING(Trunc, std::trunc, _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
#undef MT_HALF_ROUNDING

// How an operand is seen: an array of two-byte floats, or one float32.
struct Array {
    const uint16_t* at;
    explicit MT_INLINE Array(const char* p) : at(reinterpret_cast<const uint16_t*>(p)) {}
    MT_INLINE float bf16(int64_t i) const { return bf16_to_float(at[i]); }
    MT_INLINE float half(int64_t i) const { return half_to_float(at[i]); }
#if MT_HAS_LEVELS
    MT_INLINE MT_AVX2 __m256 halves(int64_t i) const {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i)));
    }
#endif
};
struct Number {
    float value;
    explicit MT_INLINE Number(const char* p) { std::memcpy(&value, p, sizeof value); }
    MT_INLINE float bf16(int64_t) const { return value; }
    MT_INLINE float half(int64_t) const { return value; }
#if MT_HAS_LEVELS
    MT_INLINE MT_AVX2 __m256 halves(int64_t) const { return _mm256_set1_ps(value); }
#endif
};

template <class Op, class... X> void bf16_range(uint16_t* o, int64_t n, X... x) {
    at_level(MT_BODY {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = float_to_bf16(Op::run(x.bf16(i)...));
    });
}
#if MT_HAS_LEVELS
template <class Op, class... X> MT_AVX2 void half_vectors(uint16_t* o, int64_t n, X... x) {
    for (int64_t i = 0; i < n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i),
                         _mm256_cvtps_ph(Op::run(x.halves(i)...), _MM_FROUND_TO_NEAREST_INT));
}
#endif
template <class Op, class... X> void half_range(uint16_t* o, int64_t n, X... x) {
    int64_t i = 0;
#if MT_HAS_LEVELS
    if (cpu_level >= AVX2) {
        i = n / 8 * 8;
        half_vectors<Op>(o, i, x...);
    }
#endif
    for (; i < n; ++i) o[i] = float_to_half(Op::run(x.half(i)...));
}

template <class Op, int CODE, class A, class B>
void two(char* out, const char* a, const char* b, int64_t n, Params&) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    if constexpr (CODE == F16) half_range<Op>(o, n, A(a), B(b));
    else bf16_range<Op>(o, n, A(a), B(b));
}
template <class Op, int CODE> void one(char* out, const char* a, int64_t n, Params&) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    if constexpr (CODE == F16) half_range<Op>(o, n, Array(a));
    else bf16_range<Op>(o, n, Array(a));
}

template <class Op, int CODE, class... X> MT_INLINE void many(char* out, int64_t n, X... x) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    if constexpr (CODE == F16) half_range<Op>(o, n, x...);
    else bf16_range<Op>(o, n, x...);
}
template <class Op, int CODE>
void three(char* out, const char* a, const char* b, const char* c, int64_t n, Params& p) {
    many<Op, CODE>(out, n, Array(a), Array(b), Array(c), Number(p.alpha));
}
template <int CODE> void lerp(char* out, const char* a, const char* b, const char* w, int64_t n, Params&) {
    many<Lerp, CODE>(out, n, Array(a), Array(b), Array(w));
}
template <int CODE> void lerp_by(char* out, const char* a, const char* b, int64_t n, Params& p) {
    many<Lerp, CODE>(out, n, Array(a), Array(b), Number(p.alpha));
}
template <int CODE> void clamp(char* out, const char* a, int64_t n, Params& p) {
    Number lo(p.alpha), hi(p.alpha + sizeof(float));
    if (lo.value != lo.value) hi = lo;
    if (hi.value != hi.value) lo = hi;
    many<Clamp, CODE>(out, n, Array(a), lo, hi);
}

// sin and cos in float32, which is exact enough for two-byte floats; of arguments up to WAVE_LIMIT, for which what a multiple of
// pi / 2 leaves is exact. A block with a larger one is computed as float32 are.
constexpr float WAVE_LIMIT = 64.0f;
template <bool COS> MT_INLINE float wave(float x) {
    constexpr float MAGIC = 12582912.0f;  // adding it rounds to a whole number, which then stands in the low bits
    const float t = x * 0.636619772f + MAGIC, k = t - MAGIC;
    const float r = ((x - k * 1.5703125f) - k * 4.837512969970703e-4f) - k * 7.54978995489188e-8f, z = r * r;
    float s = 2.718311493989822e-6f * z - 1.9839334836096632e-4f;
    s = s * z + 8.333293858894632e-3f;
    s = r + r * z * (s * z - 0.16666654611f);
    float c = 2.443315711809948e-5f * z - 1.388731625493765e-3f;
    c = 1.0f - 0.5f * z + z * z * (c * z + 4.166664568298827e-2f);
    const uint32_t q = bits_of(t) + (COS ? 1u : 0u);
    const float v = float_of(bits_of(q & 1 ? c : s) ^ ((q & 2) << 30));
    return !COS && x == 0.0f ? x : v;
}
template <int CODE, bool COS> void waves(char* out, const char* a, int64_t n, Params& p) {
    constexpr int64_t BATCH = 512;
    float room[BATCH];
    char* block = reinterpret_cast<char*>(room);
    for (int64_t at = 0; at < n; at += BATCH) {
        const int64_t m = n - at < BATCH ? n - at : BATCH;
        cast_block(block, F32, a + 2 * at, CODE, m);
        int outside = 0;
        at_level(MT_BODY {
            for (int64_t i = 0; i < m; ++i) outside |= !(std::fabs(room[i]) <= WAVE_LIMIT);
            if (outside) return;
#pragma GCC ivdep
            for (int64_t i = 0; i < m; ++i) room[i] = wave<COS>(room[i]);
        });
        if (outside) kernels.unary[COS ? OP_COS : OP_SIN][N_F32].fn(block, block, m, p);
        cast_block(out + 2 * at, CODE, block, F32, m);
    }
}

// What only looks at bits is the same for both dtypes.
#define MT_HALF_BITS(name, expression) \
    void name(char* out, const char* a, int64_t n, Params&) { \
        uint16_t* o = reinterpret_cast<uint16_t*>(out); \
        const uint16_t* p = reinterpret_cast<const uint16_t*>(a); \
        at_level(MT_BODY { \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) { \
                const uint16_t x = p[i]; \
                o[i] = (uint16_t)(expression); \
            } \
        }); \
    }
MT_HALF_BITS(negate, x ^ 0x8000u)
MT_HALF_BITS(magnitude, x & 0x7fffu)
#undef MT_HALF_BITS
void copysign_range(char* out, const char* a, const char* b, int64_t n, Params&) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    const uint16_t *x = reinterpret_cast<const uint16_t*>(a), *y = reinterpret_cast<const uint16_t*>(b);
    at_level(MT_BODY {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = (uint16_t)((x[i] & 0x7fffu) | (y[i] & 0x8000u));
    });
}

template <class Op, int CODE> BinaryKernel kernel() {
    return {two<Op, CODE, Array, Array>, two<Op, CODE, Array, Number>, two<Op, CODE, Number, Array>, CODE};
}
template <class Op> BinaryKernel both(int code) { return code == F16 ? kernel<Op, F16>() : kernel<Op, BF16>(); }
template <class Op> UnaryFn each(int code) { return code == F16 ? one<Op, F16> : one<Op, BF16>; }

}  // namespace

// The kernel of an operator on operands that all have this two-byte dtype, or one without loops. One operand may be a
// float32 number.
BinaryKernel half_kernel(int64_t op, int code) {
    switch (op) {
        case OP_ADD: return both<Add>(code);
        case OP_SUB: return both<Sub>(code);
        case OP_MUL: return both<Mul>(code);
        case OP_DIV: return both<Div>(code);
        case OP_MAXIMUM: return both<Maximum>(code);
        case OP_MINIMUM: return both<Minimum>(code);
        case OP_COPYSIGN: return {copysign_range, nullptr, nullptr, code};
        default: return {};
    }
}
// The same of three operands, and of two and a weight that the parameters hold.
TernaryFn half_ternary(int64_t op, int code) {
    switch (op) {
        case OP_ADDCMUL: return code == F16 ? three<AddCMul, F16> : three<AddCMul, BF16>;
        case OP_ADDCDIV: return code == F16 ? three<AddCDiv, F16> : three<AddCDiv, BF16>;
        case OP_LERP: return code == F16 ? lerp<F16> : lerp<BF16>;
        default: return nullptr;
    }
}
BinaryFn half_lerp(int code) { return code == F16 ? lerp_by<F16> : lerp_by<BF16>; }
// Between two float32 that the parameters hold.
UnaryFn half_clamp(int code) { return code == F16 ? clamp<F16> : clamp<BF16>; }
// Powers that need no logarithm.
UnaryFn half_power(double exponent, int code) {
    if (exponent == 2) return each<Square>(code);
    if (exponent == 3) return each<Cube>(code);
    if (exponent == 0.5) return each<Sqrt>(code);
    if (exponent == -1) return each<Reciprocal>(code);
    return nullptr;
}
UnaryFn half_unary(int64_t op, int code) {
    switch (op) {
        case OP_NEG: return negate;
        case OP_ABS: return magnitude;
        case OP_SQUARE: return each<Square>(code);
        case OP_RECIPROCAL: return each<Reciprocal>(code);
        case OP_RELU: return each<Relu>(code);
        case OP_SQRT: return each<Sqrt>(code);
        case OP_RSQRT: return each<Rsqrt>(code);
        case OP_FLOOR: return each<Floor>(code);
        case OP_CEIL: return each<Ceil>(code);
        case OP_ROUND: return each<Round>(code);
        case OP_TRUNC: return each<Trunc>(code);
        case OP_SIN: return code == F16 ? waves<F16, false> : waves<BF16, false>;
        case OP_COS: return code == F16 ? waves<F16, true> : waves<BF16, true>;
        default: return nullptr;
    }
}

}  // namespace mt
