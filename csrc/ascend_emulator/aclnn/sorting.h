// The order of values: NaN above everything, UINT64 above INT64's range.
#pragma once

#include <algorithm>
#include <numeric>

#include "reducing.h"

namespace emu {

// Values in a form whose order is that of their dtype; the same function turns them back.
template <class T>
void orderly(std::vector<T>& x, int dtype) {
    if constexpr (std::is_same_v<T, int64_t>)
        if (dtype == ACL_UINT64)
            for (auto& v : x) v ^= INT64_MIN;
}

template <class T>
std::vector<T> read_ordered(const Run& r, const Tensor& t) {
    auto x = r.read<T>(t);
    orderly(x, t.dtype);
    return x;
}

template <class T>
void write_ordered(const Run& r, const Tensor& t, std::vector<T> x) {
    orderly(x, t.dtype);
    r.write(t, x);
}

// The places of a line's values in order; equal values keep theirs.
template <class T>
std::vector<int64_t> order_of(const std::vector<T>& line, bool descending) {
    std::vector<int64_t> places(line.size());
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
        T x = line[size_t(a)], y = line[size_t(b)];
        return descending ? above(x, y) : above(y, x);
    });
    return places;
}

}  // namespace emu
