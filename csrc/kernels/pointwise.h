// The pointwise operators: their numbers, the types they are computed in, and where their range kernels are found.
// Invariant: a range kernel sees contiguous blocks (or one value for a broadcast operand) of one native type; layouts
// and other dtypes are the business of pointwise.cpp.
#pragma once
#include "cpu.h"

// clang-format off
// Operators whose kernels for floats are one expression of `x`, or of `a` and `b`, all of type T: an entry is all there
// is of one. Kernels for integers and complex numbers are entered by pointwise_integer.cpp and pointwise_complex.cpp.
#define MT_UNARY_EXPRESSIONS(X) \
    X(NEG, -x) \
    X(SQRT, std::sqrt(x)) \
    X(RSQRT, T(1) / std::sqrt(x)) \
    X(SQUARE, x * x) \
    X(EXP, exp_v(x)) \
    X(LOG, log_v(x)) \
    X(TANH, tanh_v(x)) \
    X(FLOOR, std::floor(x)) \
    X(CEIL, std::ceil(x)) \
    X(ROUND, std::nearbyint(x)) \
    X(TRUNC, std::trunc(x)) \
    X(FRAC, x - std::trunc(x)) \
    X(RECIPROCAL, T(1) / x) \
    X(RELU, x < T(0) ? T(0) : x) /* NaN stays */ \
    X(SIGMOID, sigmoid_v(x)) \
    X(GELU, gelu_v(x)) \
    X(GELU_TANH, gelu_tanh_v(x)) \
    X(SILU, silu_v(x)) \
    X(ERF, erf_v(x)) \
    X(ERFINV, erfinv_v(x)) \
    X(ANGLE, x != x ? x : (x < T(0) ? T(3.14159265358979323846) : T(0))) \
    X(SINC, x == T(0) ? T(1) : std::sin(T(3.14159265358979323846) * x) / (T(3.14159265358979323846) * x))
// The same where float32 has a formula of its own, and float64 another, or the C library's.
#define MT_UNARY_EXPRESSION_PAIRS(X) \
    X(EXP2, exp2_v(x), exp2_v(x)) \
    X(ERFC, erfc_v(x), std::erfc(x)) \
    X(EXPM1, expm1_v(x), expm1_v(x)) \
    X(LOG2, log2_v(x), log2_v(x)) \
    X(LOG10, log10_v(x), log10_v(x)) \
    X(LOG1P, log1p_v(x), log1p_v(x)) \
    X(ASIN, asin_v(x), std::asin(x)) \
    X(ACOS, acos_v(x), std::acos(x)) \
    X(ATAN, atan_v(x), std::atan(x)) \
    X(SINH, sinh_v(x), sinh_v(x)) \
    X(COSH, cosh_v(x), cosh_v(x)) \
    X(ASINH, asinh_v(x), std::asinh(x)) \
    X(ACOSH, acosh_v(x), std::acosh(x)) \
    X(ATANH, atanh_v(x), std::atanh(x))
#define MT_BINARY_EXPRESSIONS(X) \
    X(TRUNC_DIV, std::trunc(a / b)) \
    X(FMAX, (a >= b || b != b) ? a : b) /* NaN loses */ \
    X(FMIN, (a <= b || b != b) ? a : b) \
    X(ATAN2, atan2_v(a, b)) \
    X(HYPOT, hypot_v(a, b)) \
    X(COPYSIGN, std::copysign(a, b)) \
    X(NEXTAFTER, nextafter_v(a, b)) \
    X(HEAVISIDE, a == T(0) ? b : T(a > T(0))) \
    X(LOGADDEXP, logaddexp_v(a, b)) \
    X(LOGADDEXP2, logaddexp2_v(a, b)) \
    X(SIGMOID_BACKWARD, a * (T(1) - b) * b) \
    X(TANH_BACKWARD, a * (T(1) - b * b))

// Activation functions: they may take up to three numbers beside their operands.
#define MT_ACTIVATION_OPS(X) \
    X(LEAKY_RELU) X(ELU) X(SOFTPLUS) X(LOG_SIGMOID) X(MISH) X(HARDSIGMOID) X(HARDSWISH) X(HARDSHRINK) X(SOFTSHRINK) \
    X(THRESHOLD) X(NAN_TO_NUM)
#define MT_ACTIVATION_BACKWARD_OPS(X) \
    X(LEAKY_RELU_BACKWARD) X(ELU_BACKWARD) X(ELU_BACKWARD_OF_RESULT) X(SOFTPLUS_BACKWARD) X(LOG_SIGMOID_BACKWARD) \
    X(MISH_BACKWARD) X(HARDSIGMOID_BACKWARD) X(HARDSWISH_BACKWARD) X(HARDTANH_BACKWARD) X(SHRINK_BACKWARD) \
    X(SMOOTH_L1) X(HUBER) X(ENTROPY) X(ENTROPY_OF_LOGITS)

// Special functions (special.cpp).
#define MT_SPECIAL_UNARY_OPS(X) \
    X(BESSEL_J0) X(BESSEL_J1) X(BESSEL_Y0) X(BESSEL_Y1) X(SPHERICAL_BESSEL_J0) X(ERFCX) X(LOG_NDTR) X(NDTRI) X(ENTR) \
    X(LOGIT)
#define MT_SPECIAL_BINARY_OPS(X) \
    X(ZETA) X(POLYGAMMA) X(XLOG1PY) X(LDEXP) X(CHEBYSHEV_POLYNOMIAL_T) X(CHEBYSHEV_POLYNOMIAL_U) \
    X(CHEBYSHEV_POLYNOMIAL_V) X(CHEBYSHEV_POLYNOMIAL_W) X(SHIFTED_CHEBYSHEV_POLYNOMIAL_T) \
    X(SHIFTED_CHEBYSHEV_POLYNOMIAL_U) X(SHIFTED_CHEBYSHEV_POLYNOMIAL_V) X(SHIFTED_CHEBYSHEV_POLYNOMIAL_W) \
    X(HERMITE_POLYNOMIAL_H) X(HERMITE_POLYNOMIAL_HE) X(LAGUERRE_POLYNOMIAL_L) X(LEGENDRE_POLYNOMIAL_P)

// All operators: those above, and those with more to say, whose kernels have names in the files of their types.
#define MT_UNARY_OPS(X) \
    X(ABS) X(SIGN) X(SGN) X(SIN) X(COS) X(TAN) X(LOGICAL_NOT) X(BITWISE_NOT) X(ISNAN) X(ISINF) X(ISFINITE) \
    X(SIGNBIT) X(POSITIVE) X(CONJ) X(REAL_ABS) X(LGAMMA) X(DIGAMMA) \
    MT_ACTIVATION_OPS(X) MT_UNARY_EXPRESSIONS(X) MT_UNARY_EXPRESSION_PAIRS(X) MT_SPECIAL_UNARY_OPS(X)
#define MT_BINARY_OPS(X) \
    X(ADD) X(SUB) X(MUL) X(DIV) X(FLOOR_DIV) X(REMAINDER) X(FMOD) X(POW) X(MAXIMUM) X(MINIMUM) X(EQ) X(NE) X(LT) \
    X(LE) X(GT) X(GE) X(LOGICAL_AND) X(LOGICAL_OR) X(LOGICAL_XOR) X(BITWISE_AND) X(BITWISE_OR) X(BITWISE_XOR) \
    X(LSHIFT) X(RSHIFT) X(GCD) X(LCM) X(XLOGY) X(PRELU) X(THRESHOLD_BACKWARD) X(GELU_BACKWARD) X(GELU_TANH_BACKWARD) X(SILU_BACKWARD) \
    MT_ACTIVATION_BACKWARD_OPS(X) MT_BINARY_EXPRESSIONS(X) MT_SPECIAL_BINARY_OPS(X)
#define MT_TERNARY_OPS(X) X(WHERE) X(ADDCMUL) X(ADDCDIV) X(LERP) X(CLAMP)
// clang-format on

namespace mt {

// Numbers are distinct over the three kinds, so that passing an operator to the wrong entry is noticed.
// clang-format off: a table
enum PointwiseOp : int {
#define MT_ENUM(name, ...) OP_##name,
    MT_UNARY_OPS(MT_ENUM) UNARY_END, BINARY_BEGIN = 100, BINARY_BEFORE = BINARY_BEGIN - 1, MT_BINARY_OPS(MT_ENUM)
    // Chosen by binary(), not by callers: a + alpha * b for ADD and SUB when alpha is not 1; TRUNC_DIV of small floats.
    OP_ADD_ALPHA, OP_TRUNC_DIV_HALF, OP_TRUNC_DIV_BFLOAT16, BINARY_END,
    TERNARY_BEGIN = 200, TERNARY_BEFORE = TERNARY_BEGIN - 1, MT_TERNARY_OPS(MT_ENUM) TERNARY_END,
#undef MT_ENUM
};
// clang-format on
constexpr int NUM_UNARY = UNARY_END, NUM_BINARY = BINARY_END - BINARY_BEGIN, NUM_TERNARY = TERNARY_END - TERNARY_BEGIN;

// The types in which kernels are instantiated. uint16 is computed in int32, uint32 in int64, both exact up to the
// truncation at the store; small floats in float32; bool as the bytes 0 and 1.
enum Native : int { N_U8, N_I8, N_I16, N_I32, N_I64, N_U64, N_F32, N_F64, N_C64, N_C128, NUM_NATIVE };
constexpr int NATIVE_CODE[NUM_NATIVE] = {U8, I8, I16, I32, I64, U64, F32, F64, C64, C128};
constexpr Native native_of(int code) {
    constexpr Native table[NUM_CODES] = {N_U8, N_I8,  N_I16, N_I32, N_I64, N_F32, N_F32, N_F64, N_F64, N_C64, N_C128,
                                         N_U8, N_F32, N_F32, N_F32, N_I32, N_I64, N_U64, N_F32, N_F32, N_F32, N_C64};
    return table[code];
}
template <class T> struct NativeOf;
// clang-format off: a table
template <> struct NativeOf<uint8_t> { static constexpr Native value = N_U8; };
template <> struct NativeOf<int8_t> { static constexpr Native value = N_I8; };
template <> struct NativeOf<int16_t> { static constexpr Native value = N_I16; };
template <> struct NativeOf<int32_t> { static constexpr Native value = N_I32; };
template <> struct NativeOf<int64_t> { static constexpr Native value = N_I64; };
template <> struct NativeOf<uint64_t> { static constexpr Native value = N_U64; };
template <> struct NativeOf<float> { static constexpr Native value = N_F32; };
template <> struct NativeOf<double> { static constexpr Native value = N_F64; };
template <> struct NativeOf<Complex<float>> { static constexpr Native value = N_C64; };
template <> struct NativeOf<Complex<double>> { static constexpr Native value = N_C128; };
// clang-format on

// What a kernel needs beside its operands, and what it reports.
struct Params {
    alignas(16) char alpha[16];  // in the native type
    double numbers[3] = {};      // of an activation function
    bool zero_division = false;  // set by integer division; all writers write the same value
    template <class T> MT_INLINE T get() const {
        T v;
        std::memcpy(&v, alpha, sizeof v);
        return v;
    }
};

using UnaryFn = void (*)(char* out, const char* a, int64_t n, Params& p);
using BinaryFn = void (*)(char* out, const char* a, const char* b, int64_t n, Params& p);
using TernaryFn = void (*)(char* out, const char* a, const char* b, const char* c, int64_t n, Params& p);

// `result` is the code of the block a kernel writes. Null functions: the operator does not exist for the type.
struct UnaryKernel {
    UnaryFn fn = nullptr;
    int result = 0;
};
struct BinaryKernel {
    BinaryFn vv = nullptr;
    BinaryFn vs = nullptr, sv = nullptr;  // second/first operand is one value; null: expand it into a block
    int result = 0;
};
struct TernaryKernel {
    TernaryFn fn = nullptr;
    int result = 0;
};

struct KernelTables {
    UnaryKernel unary[NUM_UNARY][NUM_NATIVE];
    BinaryKernel binary[NUM_BINARY][NUM_NATIVE];
    TernaryKernel ternary[NUM_TERNARY][NUM_NATIVE];
};
extern KernelTables kernels;

// Each file enters its share of the tables.
void register_unary_float();
void register_binary_float();
void register_special();
void register_activations();
void register_integer();
void register_complex();

const char* op_name(int op);  // PyTorch's name of the kernel, for errors

}  // namespace mt
