// Range kernels for complex64 and complex128, PyTorch's formulas over the C++ library's complex functions.
#include "math_core.h"
#include "pointwise_range.h"

#include <complex>

namespace mt {
namespace {

template <class T> MT_INLINE std::complex<T> lib(Complex<T> z) { return {z.re, z.im}; }
template <class T> MT_INLINE Complex<T> own(std::complex<T> z) { return {z.real(), z.imag()}; }
template <class T> MT_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> MT_INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> MT_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Scaled by the larger part of the divisor, so that intermediate squares do not overflow.
template <class T> MT_INLINE Complex<T> operator/(Complex<T> a, Complex<T> b) {
    const T ar = std::fabs(b.re), ai = std::fabs(b.im);
    if (ar == 0 && ai == 0) return {a.re / ar, a.im / ai};
    const bool wide = ar >= ai;
    const T ratio = wide ? b.im / b.re : b.re / b.im;
    const T scale = T(1) / (wide ? b.re + b.im * ratio : b.re * ratio + b.im);
    return wide ? Complex<T>{(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale}
                : Complex<T>{(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T> MT_INLINE bool zero(Complex<T> z) { return z.re == 0 && z.im == 0; }
template <class T> MT_INLINE T magnitude(Complex<T> z) { return std::hypot(z.re, z.im); }

template <class Op, class T, class R> void range(char* out, const char* a, int64_t n, Params&) {
    R* o = reinterpret_cast<R*>(out);
    const Complex<T>* x = reinterpret_cast<const Complex<T>*>(a);
    for (int64_t i = 0; i < n; ++i) o[i] = (R)Op::run(x[i]);
}
// For what becomes vectors; the functions of the C library do not.
template <class Op, class T, class R> MT_INLINE void vector_range(char* out, const char* a, int64_t n, Params&) {
    R* o = reinterpret_cast<R*>(out);
    const Complex<T>* x = reinterpret_cast<const Complex<T>*>(a);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = Op::run(x[i]);
}
#define MT_COMPLEX(name, expression) \
    struct name { \
        template <class T> static MT_INLINE auto run(Complex<T> z) { return expression; } \
    };
MT_COMPLEX(Neg, (Complex<T>{-z.re, -z.im}))
MT_COMPLEX(Conj, (Complex<T>{z.re, -z.im}))
MT_COMPLEX(Positive, z)
MT_COMPLEX(Abs, magnitude(z))
MT_COMPLEX(Angle, atan2_v(z.im, z.re))
MT_COMPLEX(Square, z* z)
MT_COMPLEX(Reciprocal, (Complex<T>{T(1), T(0)} / z))
MT_COMPLEX(Sqrt, own(std::sqrt(lib(z))))
MT_COMPLEX(Rsqrt, (Complex<T>{T(1), T(0)} / own(std::sqrt(lib(z)))))
MT_COMPLEX(Exp, own(std::exp(lib(z))))
MT_COMPLEX(Exp2, own(std::exp(lib(z) * T(0.69314718055994530942))))
MT_COMPLEX(Log, own(std::log(lib(z))))
MT_COMPLEX(Log2, own(std::log(lib(z)) / T(0.69314718055994530942)))
MT_COMPLEX(Log10, own(std::log10(lib(z))))
MT_COMPLEX(Sin, own(std::sin(lib(z))))
MT_COMPLEX(Cos, own(std::cos(lib(z))))
MT_COMPLEX(Tan, own(std::tan(lib(z))))
MT_COMPLEX(Asin, own(std::asin(lib(z))))
MT_COMPLEX(Acos, own(std::acos(lib(z))))
MT_COMPLEX(Atan, own(std::atan(lib(z))))
MT_COMPLEX(Sinh, own(std::sinh(lib(z))))
MT_COMPLEX(Cosh, own(std::cosh(lib(z))))
MT_COMPLEX(Tanh, own(std::tanh(lib(z))))
MT_COMPLEX(Asinh, own(std::asinh(lib(z))))
MT_COMPLEX(Acosh, own(std::acosh(lib(z))))
MT_COMPLEX(Atanh, own(std::atanh(lib(z))))
MT_COMPLEX(LogicalNot, (uint8_t)zero(z))
MT_COMPLEX(IsNan, (uint8_t)((z.re != z.re) | (z.im != z.im)))
MT_COMPLEX(IsInf, (uint8_t)(std::isinf(z.re) | std::isinf(z.im)))
MT_COMPLEX(IsFinite, (uint8_t)(std::isfinite(z.re) & std::isfinite(z.im)))
struct Expm1 {
    // Real part without cancellation near zero: e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2).
    template <class T> static Complex<T> run(Complex<T> z) {
        const T x = std::expm1(z.re), s = std::sin(z.im / 2), e = std::exp(z.re);
        return {x * std::cos(z.im) - 2 * s * s, e * std::sin(z.im)};
    }
};
struct Log1p {
    template <class T> static Complex<T> run(Complex<T> z) {
        const T theta = std::atan2(z.im, z.re + T(1));
        const T r = magnitude(Complex<T>{z.re + T(1), z.im});
        // Near 1 the logarithm of the magnitude cancels: |1 + z|^2 - 1 = x (x + 2) + y^2.
        if (magnitude(z) < T(0.5)) return {std::log1p(z.re * (z.re + T(2)) + z.im * z.im) / T(2), theta};
        return {std::log(r), theta};
    }
};
struct Sigmoid {
    template <class T> static Complex<T> run(Complex<T> z) {
        const Complex<T> one{T(1), T(0)};
        return one / (one + own(std::exp(lib(Complex<T>{-z.re, -z.im}))));
    }
};
struct Silu {
    template <class T> static Complex<T> run(Complex<T> z) {
        return z / (Complex<T>{T(1), T(0)} + own(std::exp(lib(Complex<T>{-z.re, -z.im}))));
    }
};
struct Sgn {
    template <class T> static Complex<T> run(Complex<T> z) {
        const T r = magnitude(z);
        return r == 0 ? Complex<T>{T(0), T(0)} : Complex<T>{z.re / r, z.im / r};
    }
};
struct Sinc {
    template <class T> static Complex<T> run(Complex<T> z) {
        if (zero(z)) return {T(1), T(0)};
        const std::complex<T> p = lib(z) * T(3.14159265358979323846);
        return own(std::sin(p) / p);
    }
};

// PyTorch adds alpha * b whatever alpha is: an infinite part of b gives a NaN in the other part.
MT_BINARY(Add, (T{a.re + (b.re - 0 * b.im), a.im + (b.im + 0 * b.re)}))
MT_BINARY(Sub, (T{a.re + (-b.re - 0 * b.im), a.im + (-b.im + 0 * b.re)}))
MT_BINARY(Mul, a* b)
MT_BINARY(Div, a / b)
MT_BINARY(Eq, (a.re == b.re) & (a.im == b.im))
MT_BINARY(Ne, (a.re != b.re) | (a.im != b.im))
MT_BINARY(And, !zero(a) & !zero(b))
MT_BINARY(Or, !zero(a) | !zero(b))
MT_BINARY(Xor, zero(a) != zero(b))
struct Pow : Stateless {
    using Stateless::Stateless;
    template <class C> C run(C a, C b) const {
        if (zero(b)) return C{1, 0};
        if (b.re == 2 && b.im == 0) return a * a;
        return own(std::pow(lib(a), lib(b)));
    }
};
struct Xlogy : Stateless {
    using Stateless::Stateless;
    template <class C> C run(C a, C b) const {
        if (b.re != b.re || b.im != b.im) return b;
        return zero(a) ? C{0, 0} : a * own(std::log(lib(b)));
    }
};
// The gradient formulas conjugate the saved value.
MT_BINARY(SigmoidBackward, a*(T{b.re * (1 - b.re) + b.im * b.im, -(b.im - 2 * b.re * b.im)}))
MT_BINARY(TanhBackward, a*(T{1 - (b.re * b.re - b.im * b.im), 2 * b.re * b.im}))

struct SiluBackward : Stateless {
    using Stateless::Stateless;
    template <class C> C run(C g, C x) const {
        const C one{1, 0}, s = one / (one + own(std::exp(lib(C{-x.re, -x.im}))));
        return g * s * (one + x * (one - s));
    }
};

template <class C> struct AddAlpha : Stateless {
    const C alpha;
    AddAlpha(const Params& p, C x) : Stateless(p, x), alpha(p.get<C>()) {}
    MT_INLINE C run(C a, C b) const { return a + alpha * b; }
};
template <class C> struct AddCMul {
    const C alpha;
    AddCMul(const Params& p, C) : alpha(p.get<C>()) {}
    MT_INLINE C run(C a, C b, C c) const { return a + alpha * b * c; }
};
template <class C> struct AddCDiv {
    const C alpha;
    AddCDiv(const Params& p, C) : alpha(p.get<C>()) {}
    MT_INLINE C run(C a, C b, C c) const { return a + alpha * b / c; }
};
template <class C> struct Lerp {
    Lerp(const Params&, C) {}
    MT_INLINE C run(C a, C b, C w) const { return magnitude(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (C{1, 0} - w); }
};

template <class Op, class T> void unary(int op) {
    kernels.unary[op][NativeOf<Complex<T>>::value] = {range<Op, T, Complex<T>>, CodeOf<Complex<T>>::value};
}
template <class Op, class T> void real_result(int op) {
    kernels.unary[op][NativeOf<Complex<T>>::value] = {range<Op, T, T>, CodeOf<T>::value};
}
template <class Op, class T> void predicate(int op) {
    kernels.unary[op][NativeOf<Complex<T>>::value] = {range<Op, T, uint8_t>, BOOL};
}

template <class T> void register_type() {
    using C = Complex<T>;
    // clang-format off: a table
    unary<Neg, T>(OP_NEG); unary<Conj, T>(OP_CONJ); unary<Positive, T>(OP_POSITIVE); unary<Square, T>(OP_SQUARE);
    unary<Reciprocal, T>(OP_RECIPROCAL); unary<Sqrt, T>(OP_SQRT); unary<Rsqrt, T>(OP_RSQRT); unary<Exp, T>(OP_EXP);
    unary<Exp2, T>(OP_EXP2); unary<Expm1, T>(OP_EXPM1); unary<Log, T>(OP_LOG); unary<Log2, T>(OP_LOG2);
    unary<Log10, T>(OP_LOG10); unary<Log1p, T>(OP_LOG1P); unary<Sin, T>(OP_SIN); unary<Cos, T>(OP_COS);
    unary<Tan, T>(OP_TAN); unary<Asin, T>(OP_ASIN); unary<Acos, T>(OP_ACOS); unary<Atan, T>(OP_ATAN);
    unary<Sinh, T>(OP_SINH); unary<Cosh, T>(OP_COSH); unary<Tanh, T>(OP_TANH); unary<Asinh, T>(OP_ASINH);
    unary<Acosh, T>(OP_ACOSH); unary<Atanh, T>(OP_ATANH); unary<Sigmoid, T>(OP_SIGMOID); unary<Silu, T>(OP_SILU);
    unary<Sgn, T>(OP_SGN); unary<Sinc, T>(OP_SINC);
    real_result<Abs, T>(OP_ABS); real_result<Abs, T>(OP_REAL_ABS); real_result<Angle, T>(OP_ANGLE);
    kernels.unary[OP_ANGLE][NativeOf<C>::value].fn = leveled<vector_range<Angle, T, T>>();
    kernels.unary[OP_RECIPROCAL][NativeOf<C>::value].fn = leveled<vector_range<Reciprocal, T, C>>();
    predicate<LogicalNot, T>(OP_LOGICAL_NOT); predicate<IsNan, T>(OP_ISNAN); predicate<IsInf, T>(OP_ISINF);
    predicate<IsFinite, T>(OP_ISFINITE);
    enter_hot<Add, C>(OP_ADD); enter_hot<Sub, C>(OP_SUB); enter_hot<Mul, C>(OP_MUL); enter_cold<Div, C>(OP_DIV);
    enter_cold<AddAlpha<C>, C>(OP_ADD_ALPHA); enter_cold<Pow, C>(OP_POW); enter_cold<Xlogy, C>(OP_XLOGY);
    enter_cold<SigmoidBackward, C>(OP_SIGMOID_BACKWARD); enter_cold<TanhBackward, C>(OP_TANH_BACKWARD);
    enter_cold<SiluBackward, C>(OP_SILU_BACKWARD);
    enter_compare<Eq, C>(OP_EQ); enter_compare<Ne, C>(OP_NE); enter_compare<And, C>(OP_LOGICAL_AND);
    enter_compare<Or, C>(OP_LOGICAL_OR); enter_compare<Xor, C>(OP_LOGICAL_XOR);
    enter_ternary<AddCMul<C>, C>(OP_ADDCMUL); enter_ternary<AddCDiv<C>, C>(OP_ADDCDIV);
    enter_ternary<Lerp<C>, C>(OP_LERP);
    // clang-format on
}

}  // namespace

void register_complex() {
    register_type<float>();
    register_type<double>();
}

}  // namespace mt
