// Products of complex matrices and vectors: see complex_vectors.cpp.
#pragma once
#include "common.h"

#pragma GCC visibility push(hidden)
namespace mt {

// a: m x k; x: of k elements. What is conjugated is read so.
template <class R> struct ComplexVector {
    const Complex<R>* a;
    int64_t rs, cs;
    const Complex<R>* x;
    int64_t xs, m, k;
    bool flip_a, flip_x;
};
// sums[i] = the sum over k of a[i, .] * x
template <class R> void multiply_vector(const ComplexVector<R>& v, Complex<R>* sums);

}  // namespace mt
#pragma GCC visibility pop
