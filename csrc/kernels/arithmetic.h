// Sums and products of numbers that may be complex, for loops over both.
#pragma once
#include "common.h"

namespace mt {

template <class A> MT_INLINE A plus(A a, A b) {
    if constexpr (IsComplex<A>::value) return A{a.re + b.re, a.im + b.im};
    else return a + b;
}
template <class A> MT_INLINE A times(A a, A b) {
    if constexpr (IsComplex<A>::value) return A{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else return a * b;
}
template <class A> MT_INLINE bool is_zero(A a) {
    if constexpr (IsComplex<A>::value) return a.re == 0 && a.im == 0;
    else return a == 0;
}

}  // namespace mt
