// Operands of pointwise loops that are read again and again where they lie scattered: a channel's bias out of a larger
// tensor, added to images whose channels lie side by side. They are copied once.
// Invariant: a copy has as many elements as the operand's own shape, which is a small part of the loop's.
#pragma once
#include "pointwise_loop.h"

namespace mt {

// How many elements an operand has that is read again and again and lies scattered along rows; 0 where it does not.
template <int N> int64_t repeated(const Loop<N + 1>& loop, int k, int itemsize) {
    const int64_t step = std::abs(loop.step[k][0]);
    if (step == 0 || step == itemsize) return 0;
    int64_t own = 1;
    for (int d = 0; d < loop.ndim; ++d)
        if (loop.step[k][d] != 0) own *= loop.dim[d];
    return own <= loop.numel / 8 ? own : 0;
}
// The loop over a dense copy of such an operand.
template <int N> Loop<N + 1> over_copy(const Loop<N + 1>& loop, int k, int itemsize, int code, char* copy) {
    Loop<N + 1> dense = loop;
    Shape shape;
    int64_t from[MAXD], to[MAXD], next = 1;
    shape.ndim = 0;
    for (int d = loop.ndim - 1; d >= 0; --d)
        if (loop.step[k][d] != 0) {
            from[shape.ndim] = loop.step[k][d] / itemsize;
            shape.dim[shape.ndim++] = loop.dim[d];
        }
    shape.numel = checked_numel(shape.dim, shape.ndim);
    dense_strides(shape, to);
    for (int d = 0; d < loop.ndim; ++d)
        if (loop.step[k][d] != 0) {
            dense.step[k][d] = next * itemsize;
            next *= loop.dim[d];
        }
    copy_tensor(shape, copy, to, code, loop.ptr[k], from, code);
    dense.ptr[k] = copy;
    return dense;
}

}  // namespace mt
