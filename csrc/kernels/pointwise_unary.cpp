// Unary range kernels for float32 and float64.
#include "math_core.h"
#include "pointwise.h"

namespace mt {
namespace {

// An operator is a struct with run(x); with `slow(x)` and `needs_slow(x)` for arguments its fast formula does not
// cover. A block that holds one such argument is done wholly by slow().
template <class Op, class T, class = void> struct HasSlow : std::false_type {};
template <class Op, class T>
struct HasSlow<Op, T, decltype((void)Op::needs_slow(T()))> : std::true_type {};

template <class Op, class T, class R> MT_INLINE void range(char* out, const char* a, int64_t n, Params&) {
    R* o = reinterpret_cast<R*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    if constexpr (HasSlow<Op, T>::value) {
        constexpr int64_t STEP = 256;
        for (int64_t at = 0; at < n; at += STEP) {
            const int64_t end = n - at < STEP ? n : at + STEP;
            int slow = 0;
            for (int64_t i = at; i < end; ++i) slow |= Op::needs_slow(x[i]);
            if (MT_UNLIKELY(slow)) {
                for (int64_t i = at; i < end; ++i) o[i] = Op::slow(x[i]);
            } else {
#pragma GCC ivdep
                for (int64_t i = at; i < end; ++i) o[i] = Op::run(x[i]);
            }
        }
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = Op::run(x[i]);
    }
}

#define MT_OP(name, expression) \
    struct name { \
        template <class T> static MT_INLINE T run(T x) { return expression; } \
    };
// float32 by an own formula, float64 by the C library.
#define MT_OP2(name, own, libm) \
    struct name { \
        static MT_INLINE float run(float x) { return own; } \
        static MT_INLINE double run(double x) { return libm; } \
    };
#define MT_OP_TRIG(name, own, libm) \
    struct name { \
        template <class T> static MT_INLINE T run(T x) { return own; } \
        template <class T> static MT_INLINE bool needs_slow(T x) { return std::fabs(x) > TRIG_LIMIT; } \
        template <class T> static MT_INLINE T slow(T x_) { \
            const double x = x_; \
            return (T)(libm); \
        } \
    };
#define MT_PREDICATE(name, expression) \
    struct name { \
        template <class T> static MT_INLINE uint8_t run(T x) { return (uint8_t)(expression); } \
    };

// The operators that are one expression, under their own names.
namespace listed {
MT_UNARY_EXPRESSIONS(MT_OP)
MT_UNARY_EXPRESSION_PAIRS(MT_OP2)
}  // namespace listed

MT_OP(Abs, std::fabs(x))
MT_OP(Sign, T(T(0) < x) - T(x < T(0)))
MT_OP_TRIG(Sin, sin_v(x), std::sin(x))
MT_OP_TRIG(Cos, cos_v(x), std::cos(x))
MT_OP_TRIG(Tan, tan_v(x), std::tan(x))
MT_OP(Positive, x)
MT_PREDICATE(LogicalNot, x == T(0))
MT_PREDICATE(IsNan, x != x)
MT_PREDICATE(IsInf, std::fabs(x) == std::numeric_limits<T>::infinity())
MT_PREDICATE(IsFinite, std::fabs(x) < std::numeric_limits<T>::infinity())
struct SignBit {
    static MT_INLINE uint8_t run(float x) { return (uint8_t)(bits_of(x) >> 31); }
    static MT_INLINE uint8_t run(double x) { return (uint8_t)(bits_of(x) >> 63); }
};

struct Lgamma {
    static MT_INLINE float run(float x) { return lgamma_positive(x); }
    static MT_INLINE float slow(float x) { return lgamma_any(x); }
    static MT_INLINE bool needs_slow(float x) { return x < 0.0f; }
    static double run(double x) {
        int sign;  // the reentrant form: the plain one writes the global `signgam`
        return lgamma_r(x, &sign);
    }
    static double slow(double x) { return run(x); }
    static MT_INLINE bool needs_slow(double) { return false; }
};

struct Digamma {
    static double run(double x) {
        if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
        double result = 0;
        if (x < 0) {
            if (x == std::trunc(x)) return std::numeric_limits<double>::quiet_NaN();
            double whole;
            const double fraction = std::modf(x, &whole);
            result = -3.14159265358979323846 / std::tan(3.14159265358979323846 * fraction);
            x = 1 - x;
        }
        while (x < 10) {
            result -= 1 / x;
            x += 1;
        }
        if (x == 10) return result + 2.25175258906672110764;
        double tail = 0;
        if (x < 1.0e17) {
            static const double A[] = {8.33333333333333333333e-2, -2.10927960927960927961e-2,
                                       7.57575757575757575758e-3, -4.16666666666666666667e-3,
                                       3.96825396825396825397e-3, -8.33333333333333333333e-3,
                                       8.33333333333333333333e-2};
            const double z = 1.0 / (x * x);
            double p = A[0];
            for (int i = 1; i < 7; ++i) p = p * z + A[i];
            tail = z * p;
        }
        return result + std::log(x) - 0.5 / x - tail;
    }
    static float run(float x) { return (float)run((double)x); }
};

template <class Op> void enter(int op) {
    kernels.unary[op][N_F32] = {leveled<range<Op, float, float>>(), F32};
    kernels.unary[op][N_F64] = {leveled<range<Op, double, double>>(), F64};
}
template <class Op> void enter_predicate(int op) {
    kernels.unary[op][N_F32] = {leveled<range<Op, float, uint8_t>>(), BOOL};
    kernels.unary[op][N_F64] = {leveled<range<Op, double, uint8_t>>(), BOOL};
}

}  // namespace

void register_unary_float() {
#define MT_ENTER(name, ...) enter<listed::name>(OP_##name);
    // clang-format off: a table
    MT_UNARY_EXPRESSIONS(MT_ENTER) MT_UNARY_EXPRESSION_PAIRS(MT_ENTER)
#undef MT_ENTER
    enter<Abs>(OP_ABS); enter<Abs>(OP_REAL_ABS); enter<Sign>(OP_SIGN); enter<Sign>(OP_SGN); enter<Sin>(OP_SIN);
    enter<Cos>(OP_COS); enter<Tan>(OP_TAN); enter<Positive>(OP_POSITIVE); enter<Positive>(OP_CONJ);
    enter<Lgamma>(OP_LGAMMA); enter<Digamma>(OP_DIGAMMA);
    enter_predicate<LogicalNot>(OP_LOGICAL_NOT); enter_predicate<IsNan>(OP_ISNAN); enter_predicate<IsInf>(OP_ISINF);
    enter_predicate<IsFinite>(OP_ISFINITE); enter_predicate<SignBit>(OP_SIGNBIT);
    // clang-format on
}

}  // namespace mt
