// How elements of a reduction are folded. Invariant: a step is the same function of numbers and of vectors, unless it
// compares.
#pragma once
#include "common.h"

namespace mt {

// clang-format off: a table
template <class T> struct Traits { using acc = T; using wide = T; };  // acc: of a run; wide: of all runs
template <> struct Traits<float> { using acc = float; using wide = double; };
template <> struct Traits<Complex<float>> { using acc = Complex<float>; using wide = Complex<double>; };
// clang-format on
template <class T> MT_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> MT_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class D, class S> MT_INLINE D widened(S x) {
    if constexpr (IsComplex<S>::value) return D{(decltype(D::re))x.re, (decltype(D::re))x.im};
    else return (D)x;
}
// clang-format off: a table
template <class T> struct Wrapping { using t = T; };  // signed overflow must not be undefined
template <> struct Wrapping<int32_t> { using t = uint32_t; };
template <> struct Wrapping<int64_t> { using t = uint64_t; };
// clang-format on

// How elements are folded: `of` is what one counts for, `run` joins two such numbers.
struct Plain {
    static constexpr bool SUMS = false;
    template <class T> static MT_INLINE T of(T x) { return x; }
};
struct SumStep : Plain {
    static constexpr bool SUMS = true;
    template <class T> using Element = typename Wrapping<T>::t;
    template <class T> using Wide = typename Traits<Element<T>>::wide;
    template <class T> static constexpr T start() { return T{}; }
    template <class T> static MT_INLINE T run(T a, T x) { return a + x; }
};
struct AbsStep : SumStep {
    template <class T> static MT_INLINE T of(T x) { return x < 0 ? -x : x; }
};
struct SquareStep : SumStep {
    template <class T> static MT_INLINE T of(T x) { return x * x; }
};
struct NumberStep : SumStep {
    static constexpr bool SUMS = false;
    template <class T> static MT_INLINE T of(T x) { return x == x ? x : T(0); }
};
struct ProdStep : Plain {
    template <class T> using Element = typename Wrapping<T>::t;
    template <class T> using Wide = Element<T>;
    template <class T> static constexpr T start() {
        if constexpr (IsComplex<T>::value) return T{1, 0};
        else return T(1);
    }
    template <class T> static MT_INLINE T run(T a, T x) { return a * x; }
};
struct MaxStep : Plain {
    template <class T> using Element = T;
    template <class T> using Wide = T;
    template <class T> static constexpr T start() {
        using Limits = std::numeric_limits<T>;
        return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    }
    template <class T> static MT_INLINE T run(T a, T x) {
        const T r = x > a ? x : a;
        return x != x ? x : r;  // NaN wins and stays
    }
};
struct MinStep : Plain {
    template <class T> using Element = T;
    template <class T> using Wide = T;
    template <class T> static constexpr T start() {
        using Limits = std::numeric_limits<T>;
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
    }
    template <class T> static MT_INLINE T run(T a, T x) {
        const T r = x < a ? x : a;
        return x != x ? x : r;
    }
};

}  // namespace mt
