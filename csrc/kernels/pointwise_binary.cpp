// Binary and ternary range kernels for float32 and float64.
#include "math_core.h"
#include "pointwise_range.h"

namespace mt {
namespace {

// The operators that are one expression, under their own names.
namespace listed {
MT_BINARY_EXPRESSIONS(MT_BINARY)
}  // namespace listed

MT_BINARY(Add, a + b)
MT_BINARY(Sub, a - b)
MT_BINARY(Mul, a* b)
MT_BINARY(Div, a / b)
MT_BINARY(Maximum, (a > b || a != a) ? a : b)  // NaN wins
MT_BINARY(Minimum, (a < b || a != a) ? a : b)
MT_BINARY(Prelu, a > T(0) ? a : a * b)
MT_BINARY(Eq, a == b)
MT_BINARY(Ne, a != b)
MT_BINARY(Lt, a < b)
MT_BINARY(Le, a <= b)
MT_BINARY(Gt, a > b)
MT_BINARY(Ge, a >= b)
MT_BINARY(And, (a != T(0)) & (b != T(0)))
MT_BINARY(Or, (a != T(0)) | (b != T(0)))
MT_BINARY(Xor, (a != T(0)) != (b != T(0)))

struct AddAlpha : Stateless {
    double wide;
    float narrow;
    AddAlpha(const Params& p, float) : Stateless(p, 0.0f), wide(0), narrow(p.get<float>()) {}
    AddAlpha(const Params& p, double) : Stateless(p, 0.0f), wide(p.get<double>()), narrow(0) {}
    MT_INLINE float run(float a, float b) const { return a + narrow * b; }
    MT_INLINE double run(double a, double b) const { return a + wide * b; }
};

struct ThresholdBackward : Stateless {
    double wide;
    float narrow;
    ThresholdBackward(const Params& p, float) : Stateless(p, 0.0f), wide(0), narrow(p.get<float>()) {}
    ThresholdBackward(const Params& p, double) : Stateless(p, 0.0f), wide(p.get<double>()), narrow(0) {}
    MT_INLINE float run(float g, float x) const { return x <= narrow ? 0.0f : g; }
    MT_INLINE double run(double g, double x) const { return x <= wide ? 0.0 : g; }
};

// fmod and what is built on it: by the quotient where that is small enough, by the library otherwise. That of two float32 is
// taken in double.
template <class Derived> struct Modulo : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE bool needs_slow(T a, T b) const {
        const double q = std::fabs((double)a / (double)b);
        return !(q < (sizeof(T) == 4 ? FMOD_LIMIT : FMOD_LIMIT_WIDE));
    }
    template <class T> MT_INLINE T slow(T a, T b) const { return Derived::from(a, b, std::fmod(a, b)); }
    MT_INLINE double run(double a, double b) const { return Derived::from(a, b, fmod_wide(a, b)); }
    MT_INLINE float run(float a, float b) const {
        const double x = a, y = b;
        return Derived::from(a, b, (float)fmod_v(x, y, x / y));
    }
};
struct Fmod : Modulo<Fmod> {
    using Modulo::Modulo;
    template <class T> static MT_INLINE T from(T, T, T mod) { return mod; }
};
struct Remainder : Modulo<Remainder> {
    using Modulo::Modulo;
    template <class T> static MT_INLINE T from(T, T b, T mod) {
        return ((mod != T(0)) & ((b < T(0)) != (mod < T(0)))) ? mod + b : mod;
    }
};
struct FloorDiv : Modulo<FloorDiv> {
    using Modulo::Modulo;
    template <class T> static MT_INLINE T from(T a, T b, T mod) {
        T q = (a - mod) / b;
        q = ((mod != T(0)) & ((b < T(0)) != (mod < T(0)))) ? q - T(1) : q;
        const T whole = std::floor(q);
        const T near = q - whole > T(0.5) ? whole + T(1) : whole;
        const T r = q == T(0) ? std::copysign(T(0), a / b) : near;
        return b == T(0) ? a / b : r;
    }
};

// float64, where squares neither overflow nor vanish; by the library otherwise.
struct HypotWide : Stateless {
    using Stateless::Stateless;
    MT_INLINE bool needs_slow(double a, double b) const {
        const double x = std::fabs(a), y = std::fabs(b), most = x > y ? x : y;
        return !((most > 1e-140) & (most < 1e150) & (y == y) & (x == x));
    }
    MT_INLINE double slow(double a, double b) const { return std::hypot(a, b); }
    MT_INLINE double run(double a, double b) const { return hypot_wide(a, b); }
};

// PyTorch rounds the quotient to the narrow type before it truncates.
struct TruncDivHalf : Stateless {
    using Stateless::Stateless;
    MT_INLINE float run(float a, float b) const { return std::trunc(half_to_float(float_to_half(a / b))); }
};
struct TruncDivBFloat16 : Stateless {
    using Stateless::Stateless;
    MT_INLINE float run(float a, float b) const { return std::trunc(bf16_to_float(float_to_bf16(a / b))); }
};

struct Pow : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T a, T b) const { return pow_v(a, b); }
};

// A constant exponent is mostly one of these.
template <class T> MT_INLINE void pow_vs(char* out, const char* a, const char* b, int64_t n, Params&) {
    T* o = reinterpret_cast<T*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    const T y = *reinterpret_cast<const T*>(b);
#define MT_POW_CASE(exponent, expression) \
    if (y == T(exponent)) { \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) o[i] = expression; \
        return; \
    }
    MT_POW_CASE(2, x[i] * x[i])
    MT_POW_CASE(0.5, std::sqrt(x[i]))
    MT_POW_CASE(3, x[i] * x[i] * x[i])
    MT_POW_CASE(-1, T(1) / x[i])
    MT_POW_CASE(-2, T(1) / (x[i] * x[i]))
    MT_POW_CASE(-0.5, T(1) / std::sqrt(x[i]))
    MT_POW_CASE(1, x[i])
#undef MT_POW_CASE
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = pow_v(x[i], y);
}

struct Xlogy : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T a, T b) const {
        const T r = a * log_v(b);
        return b != b ? b : (a == T(0) ? T(0) : r);
    }
};

struct GeluBackward : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T g, T x) const {
        const T cdf = T(0.5) * twice_cdf(x);
        const T pdf = exp_v(x * x * T(-0.5)) * T(0.39894228040143267794);  // 1 / sqrt(2 pi)
        return g * (cdf + x * pdf);
    }
};

struct GeluTanhBackward : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T g, T x) const {
        const T x2 = x * x;
        const T t = tanh_v(T(GELU_BETA) * (x + T(GELU_KAPPA) * (x2 * x)));
        const T left = T(0.5) * (T(1) + t);
        const T right = T(0.5) * x * (T(1) - t * t) * (T(GELU_BETA) * (T(1) + T(3 * GELU_KAPPA) * x2));
        return g * (left + right);
    }
};

struct SiluBackward : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T g, T x) const {
        const T s = sigmoid_v(x);
        return g * (s * (T(1) + x * (T(1) - s)));
    }
};

// ---------------------------------------------------------------- ternary

template <class T> struct AddCMul {
    const T alpha;
    AddCMul(const Params& p, T) : alpha(p.get<T>()) {}
    MT_INLINE T run(T a, T b, T c) const { return a + alpha * b * c; }
};
template <class T> struct AddCDiv {
    const T alpha;
    AddCDiv(const Params& p, T) : alpha(p.get<T>()) {}
    MT_INLINE T run(T a, T b, T c) const { return a + alpha * b / c; }
};
template <class T> struct Lerp {
    Lerp(const Params&, T) {}
    // From the nearer end, so that weight 1 gives exactly b.
    MT_INLINE T run(T a, T b, T w) const { return std::fabs(w) < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w); }
};
template <class T> struct Clamp {
    Clamp(const Params&, T) {}
    MT_INLINE T run(T x, T lo, T hi) const {
        const T m = (x > lo || x != x) ? x : lo;  // NaN wins at every step
        return (m < hi || m != m) ? m : hi;
    }
};

template <template <class, class> class, class> struct Unused;

template <class Op> void hot(int op) {
    enter_hot<Op, float>(op);
    enter_hot<Op, double>(op);
}
template <class Op> void cold(int op) {
    enter_cold<Op, float>(op);
    enter_cold<Op, double>(op);
}
template <class Op> void compare(int op) {
    enter_compare<Op, float>(op);
    enter_compare<Op, double>(op);
}

}  // namespace

void register_binary_float() {
#define MT_ENTER(name, ...) cold<listed::name>(OP_##name);
    MT_BINARY_EXPRESSIONS(MT_ENTER)
#undef MT_ENTER
    // clang-format off: a table
    enter_cold<HypotWide, double>(OP_HYPOT);
    hot<Add>(OP_ADD); hot<Sub>(OP_SUB); hot<Mul>(OP_MUL); hot<Div>(OP_DIV); hot<AddAlpha>(OP_ADD_ALPHA);
    hot<Maximum>(OP_MAXIMUM); hot<Minimum>(OP_MINIMUM); hot<Prelu>(OP_PRELU);
    cold<FloorDiv>(OP_FLOOR_DIV); cold<Remainder>(OP_REMAINDER); cold<Fmod>(OP_FMOD); cold<Xlogy>(OP_XLOGY);
    cold<Pow>(OP_POW);
    kernels.binary[OP_POW - BINARY_BEGIN][N_F32].vs = leveled<pow_vs<float>>();
    kernels.binary[OP_POW - BINARY_BEGIN][N_F64].vs = leveled<pow_vs<double>>();
    cold<ThresholdBackward>(OP_THRESHOLD_BACKWARD); cold<GeluBackward>(OP_GELU_BACKWARD);
    cold<GeluTanhBackward>(OP_GELU_TANH_BACKWARD); cold<SiluBackward>(OP_SILU_BACKWARD);
    enter_cold<TruncDivHalf, float>(OP_TRUNC_DIV_HALF); enter_cold<TruncDivBFloat16, float>(OP_TRUNC_DIV_BFLOAT16);
    compare<Eq>(OP_EQ); compare<Ne>(OP_NE); compare<Lt>(OP_LT); compare<Le>(OP_LE); compare<Gt>(OP_GT);
    compare<Ge>(OP_GE); compare<And>(OP_LOGICAL_AND); compare<Or>(OP_LOGICAL_OR); compare<Xor>(OP_LOGICAL_XOR);
    enter_ternary<AddCMul<float>, float>(OP_ADDCMUL); enter_ternary<AddCMul<double>, double>(OP_ADDCMUL);
    enter_ternary<AddCDiv<float>, float>(OP_ADDCDIV); enter_ternary<AddCDiv<double>, double>(OP_ADDCDIV);
    enter_ternary<Lerp<float>, float>(OP_LERP); enter_ternary<Lerp<double>, double>(OP_LERP);
    enter_ternary<Clamp<float>, float>(OP_CLAMP); enter_ternary<Clamp<double>, double>(OP_CLAMP);
    // clang-format on
}

}  // namespace mt
