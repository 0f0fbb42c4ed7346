// The same memory seen with its dimensions in another order.
#pragma once

#include "kernel.h"

namespace emu {

template <class Order>
Dims permuted(const Dims& dims, const Order& order) {
    Dims out;
    for (auto axis : order) out.push(dims[int(axis)]);
    return out;
}

// Dimension i of the result is dimension order[i] of t.
template <class Order>
Tensor permuted(Tensor t, const Order& order) {
    t.strides = permuted(t.strides, order);
    t.dims = permuted(t.dims, order);
    return t;
}
inline Tensor permuted(const Tensor& t, std::initializer_list<int> order) {
    return permuted<std::initializer_list<int>>(t, order);
}

// Formats that keep channels last, seen with channels after the samples.
inline bool channels_last(const Tensor& t) { return t.format == ACL_FORMAT_NHWC || t.format == ACL_FORMAT_NDHWC; }
inline Tensor channels_first(const Tensor& t) {
    if (!channels_last(t)) return t;
    std::vector<int> order{0, t.rank() - 1};
    for (int i = 1; i < t.rank() - 1; ++i) order.push_back(i);
    return permuted(t, order);
}

}  // namespace emu
