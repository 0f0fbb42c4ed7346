// What functions that only move elements share: walks over coordinates, copies by a map of places, checked indices.
#pragma once

#include <algorithm>

#include "kernel.h"

namespace emu {

// f(i, place) for each element of a shape in row-major order; place holds its coordinates.
template <class F>
void each_place(const Dims& dims, F f) {
    int64_t total = dims.product();
    Dims place;
    place.n = dims.n;
    for (int64_t i = 0; i < total; ++i) {
        f(i, static_cast<const Dims&>(place));
        for (int d = dims.n - 1; d >= 0; --d) {
            if (++place[d] < dims[d]) break;
            place[d] = 0;
        }
    }
}

// The row-major position of coordinates.
inline int64_t position(const Dims& dims, const Dims& place) {
    int64_t at = 0;
    for (int d = 0; d < dims.n; ++d) at = at * dims[d] + place[d];
    return at;
}

constexpr int64_t kNowhere = -1;

// out[place] = in[source(place)], or `fill` where source answers kNowhere.
template <class F>
void copy_from(const Run& r, const Tensor& in, const Tensor& out, F source, const Scalar* fill = nullptr) {
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(in);
        std::vector<T> y(size_t(out.numel()), fill ? fill->as<T>() : zero);
        each_place(out.dims, [&](int64_t i, const Dims& place) {
            int64_t from = source(place);
            if (from != kNowhere) y[size_t(i)] = x[size_t(from)];
        });
        r.write(out, y);
    });
}

// The gradient of such a copy: in[target(place)] += grad[place].
template <class F>
void add_back(const Run& r, const Tensor& grad, const Tensor& in, F target) {
    by_category(category(in.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto g = r.read<T>(grad);
        std::vector<T> x(size_t(in.numel()));
        each_place(grad.dims, [&](int64_t i, const Dims& place) {
            int64_t to = target(place);
            if (to != kNowhere) x[size_t(to)] += g[size_t(i)];
        });
        r.write(in, x);
    });
}

// An index read from device memory; out of range is a device fault.
inline int64_t checked_index(int64_t index, int64_t size, const char* what = "index") {
    if (index < 0 || index >= size)
        fault("%s %lld is out of range [0, %lld)", what, static_cast<long long>(index), static_cast<long long>(size));
    return index;
}

// The same where negative indices count from the end.
inline int64_t wrapped_index(int64_t index, int64_t size, const char* what = "index") {
    if (index < -size || index >= size)
        fault("%s %lld is out of range [-%lld, %lld)", what, static_cast<long long>(index),
              static_cast<long long>(size), static_cast<long long>(size));
    return index < 0 ? index + size : index;
}

// A shape whose axis is replaced by others.
inline Dims replaced(const Dims& dims, int64_t axis, const Dims& by) {
    Dims out;
    for (int d = 0; d < dims.n; ++d) {
        if (d != axis) out.push(dims[d]);
        else
            for (int64_t size : by) out.push(size);
    }
    return out;
}

// The same shape with another size of one axis.
inline Dims resized(Dims dims, int64_t axis, int64_t size) {
    dims[int(axis)] = size;
    return dims;
}

// Part of an axis: `count` elements from `start`, `step` apart.
struct Cut {
    int64_t start = 0, step = 1, count = 0;
};

// As Python cuts a sequence of that size with a positive step.
inline Cut cut_of(int64_t size, int64_t start, int64_t end, int64_t step) {
    auto clamp = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    int64_t from = clamp(start), to = clamp(end);
    return {from, step, to > from ? (to - from + step - 1) / step : 0};
}

inline std::vector<Cut> whole(const Dims& dims) {
    std::vector<Cut> cuts;
    for (int64_t size : dims) cuts.push_back({0, 1, size});
    return cuts;
}

inline Dims counts(const std::vector<Cut>& cuts) {
    Dims out;
    for (const Cut& cut : cuts) out.push(cut.count);
    return out;
}

// Where a place of the part is in the whole.
inline int64_t position(const Dims& dims, const std::vector<Cut>& cuts, Dims place) {
    for (int d = 0; d < place.n; ++d) place[d] = cuts[size_t(d)].start + place[d] * cuts[size_t(d)].step;
    return position(dims, place);
}

// Indices whose last axis holds coordinates of leading axes of a tensor: the shape of what they name.
inline Dims plan_rows(Plan& p, const Tensor& of, const char* indices) {
    const Dims& rows = p.tensor(indices).dims;
    p.require(rows.n >= 1 && rows.back() <= of.rank(), "%s has shape %s: its last size must be at most %d", indices,
              text(rows).c_str(), of.rank());
    Dims shape;
    for (int d = 0; d + 1 < rows.n; ++d) shape.push(rows[d]);
    for (int d = int(rows.back()); d < of.rank(); ++d) shape.push(of.dims[d]);
    return shape;
}

// out[.., index.., ..] = self[.., index[index..], ..]
inline void plan_select(Plan& p, const char* self, const char* index, int64_t axis, const char* out) {
    p.shape(out, replaced(p.tensor(self).dims, axis, p.tensor(index).dims));
}

inline void run_select(Run& r, const char* self, const char* index, int64_t axis, const char* out) {
    const Tensor& x = r.tensor(self);
    Lines lines(x.dims, axis);
    auto picks = r.read<int64_t>(r.tensor(index));
    for (int64_t pick : picks) checked_index(pick, lines.length);
    by_category(category(x.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto values = r.read<T>(x);
        std::vector<T> y;
        y.reserve(size_t(r.tensor(out).numel()));
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t pick : picks) {
                auto from = values.begin() + lines.at(o, pick, 0);
                y.insert(y.end(), from, from + lines.inner);
            }
        r.write(r.tensor(out), y);
    });
}

}  // namespace emu
