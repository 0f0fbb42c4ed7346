// What functions of mixtures of experts share: the best of a row, the order of pairs by expert, rows moved by place.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel.h"

namespace emu {

// The places of the k largest of a row, larger ones first, earlier ones first among equals.
inline std::vector<int64_t> largest(const double* row, int64_t size, int64_t k) {
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    order.resize(size_t(k));
    return order;
}

inline void softmax_row(double* row, int64_t size) {
    double top = *std::max_element(row, row + size), sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += row[i] = std::exp(row[i] - top);
    for (int64_t i = 0; i < size; ++i) row[i] /= sum;
}

inline std::vector<int64_t> order_of(const std::vector<int64_t>& keys) {
    std::vector<int64_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return keys[size_t(a)] < keys[size_t(b)]; });
    return order;
}

inline std::vector<int64_t> inverse_of(const std::vector<int64_t>& order) {
    std::vector<int64_t> out(order.size());
    for (size_t i = 0; i < order.size(); ++i) out[size_t(order[i])] = int64_t(i);
    return out;
}

// Writes row source(i) of `from` to row i of `to`, zeros where that is negative.
template <class F>
void write_rows(const Run& r, const Tensor& from, const Tensor& to, F source) {
    auto x = r.read<double>(from);
    int64_t length = from.dims.back(), rows = length > 0 ? to.numel() / length : 0;
    std::vector<double> y(size_t(to.numel()));
    for (int64_t i = 0; i < rows; ++i) {
        int64_t at = source(i);
        if (at >= 0) std::copy_n(x.begin() + at * length, length, y.begin() + i * length);
    }
    r.write(to, y);
}

}  // namespace emu
