// What reductions share: the axes, the shape of the result, and a walk over the lines that are reduced.
#pragma once

#include <algorithm>
#include <limits>

#include "kernel.h"

namespace emu {

// The axes a checked list names; an empty list means every axis.
inline std::vector<int> axes_of(const std::vector<int64_t>& given, int rank) {
    std::vector<int> out;
    for (int64_t axis : given) out.push_back(int(wrap(axis, rank == 0 ? 1 : rank)));
    if (out.empty())
        for (int i = 0; i < rank; ++i) out.push_back(i);
    std::sort(out.begin(), out.end());
    return out;
}

inline std::vector<int> axis_of(int64_t given, int rank) { return axes_of({given}, rank); }

// Positions of the elements spanned by some axes, relative to the first, in row-major order.
inline std::vector<int64_t> offsets_along(const Dims& dims, const std::vector<int>& axes, bool named) {
    Dims strides = contiguous_strides(dims);
    std::vector<int64_t> out{0};
    for (int d = 0; d < dims.n; ++d) {
        if ((std::find(axes.begin(), axes.end(), d) != axes.end()) != named) continue;
        std::vector<int64_t> next;
        next.reserve(out.size() * size_t(std::max<int64_t>(dims[d], 0)));
        for (int64_t base : out)
            for (int64_t k = 0; k < dims[d]; ++k) next.push_back(base + k * strides[d]);
        out.swap(next);
    }
    return out;
}

// f(i, line): for each element i of the reduced result, the values that are reduced to it.
template <class T, class F>
void each_line(const std::vector<T>& x, const Dims& dims, const std::vector<int>& axes, F f) {
    std::vector<int64_t> kept = offsets_along(dims, axes, false), gone = offsets_along(dims, axes, true);
    std::vector<T> line(gone.size());
    for (size_t o = 0; o < kept.size(); ++o) {
        for (size_t k = 0; k < gone.size(); ++k) line[k] = x[size_t(kept[o] + gone[k])];
        f(o, line);
    }
}

// y[i] = f(line)
template <class Y, class T, class F>
std::vector<Y> reduce(const std::vector<T>& x, const Dims& dims, const std::vector<int>& axes, F f) {
    std::vector<Y> y(size_t(reduced(dims, axes, false).product()));
    each_line(x, dims, axes, [&](size_t o, const std::vector<T>& line) { y[o] = f(line); });
    return y;
}

template <class T>
bool is_nan(T x) {
    return x != x;
}

// The order of max and sort: a NaN is above every number.
template <class T>
bool above(T a, T b) {
    return a > b || (is_nan(a) && !is_nan(b));
}

// Where the greatest (or least) value of a line is first found; a NaN wins either way, as in PyTorch.
template <class T>
size_t extreme_at(const std::vector<T>& line, bool greatest) {
    size_t best = 0;
    for (size_t k = 1; k < line.size() && !is_nan(line[best]); ++k)
        if (is_nan(line[k]) || (greatest ? line[k] > line[best] : line[k] < line[best])) best = k;
    return best;
}

template <class T>
T extreme(const std::vector<T>& line, bool greatest) {
    return line[extreme_at(line, greatest)];
}

// Out holds one element, of shape () or (1).
inline void plan_one_element(Plan& p, const char* out) {
    const Tensor& t = p.tensor(out);
    p.require(t.rank() <= 1 && t.numel() == 1, "%s has shape %s, expected one element", out, text(t.dims).c_str());
}

// Checks the axes and the shape of the result; returns the axes.
inline std::vector<int> plan_axes(Plan& p, const char* self, const char* dims, const char* keep, const char* out) {
    const Dims& shape = p.tensor(self).dims;
    std::vector<int> axes = p.axes(dims, shape.n);
    p.shape(out, reduced(shape, axes, p.flag(keep)));
    return axes;
}

inline std::vector<int> plan_axis(Plan& p, const char* self, const char* dim, const char* keep, const char* out) {
    const Dims& shape = p.tensor(self).dims;
    std::vector<int> axes{int(p.axis(dim, shape.n))};
    p.shape(out, reduced(shape, axes, p.flag(keep)));
    return axes;
}

// A reduction without a neutral element needs something to reduce, unless its result is empty too.
inline void plan_not_empty(Plan& p, const char* self, const std::vector<int>& axes) {
    const Dims& shape = p.tensor(self).dims;
    if (reduced(shape, axes, false).product() == 0) return;
    p.require(shape.product() != 0, "%s has shape %s: nothing to reduce", self, text(shape).c_str());
}

// The dtype argument is the dtype of the result.
inline void plan_result_dtype(Plan& p, const char* dtype, const char* out) {
    p.require(p.dtype(dtype) == p.tensor(out).dtype, "%s is %s, expected the dtype of %s, %s", dtype,
              dtype_name(p.dtype(dtype)), out, dtype_name(p.tensor(out).dtype));
}

// Temporaries of a reduction in many cores.
constexpr uint64_t kReduceWorkspace = 32 * 1024;

}  // namespace emu
