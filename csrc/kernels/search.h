// What searching and counting share: element types, the order with NaN last, places in sorted rows.
//
// Invariant: operands are row-major and without gaps (`require_dense`); what another thread writes meanwhile may change
// an answer, and never where memory is touched.
#pragma once
#include "cpu.h"

#include <algorithm>

#pragma GCC visibility push(hidden)
namespace mt {

// Runs f(T*) for the element type of a code; false for types that are not searched here.
template <class F> bool with_type(int code, F&& f) {
    switch (code) {
        case U8: f(static_cast<uint8_t*>(nullptr)); return true;
        case I8: f(static_cast<int8_t*>(nullptr)); return true;
        case I16: f(static_cast<int16_t*>(nullptr)); return true;
        case I32: f(static_cast<int32_t*>(nullptr)); return true;
        case I64: f(static_cast<int64_t*>(nullptr)); return true;
        case F32: f(static_cast<float*>(nullptr)); return true;
        case F64: f(static_cast<double*>(nullptr)); return true;
        default: return false;
    }
}

inline void require_dense(const char* name, const Shape& shape, const Operand& op) {
    if (shape.numel > 1 && !is_contiguous(shape, op)) fail(PyExc_ValueError, "%s() expects rows without gaps", name);
}

// n elements in one run.
inline Shape run_of(int64_t n) {
    if (n < 0) fail(PyExc_ValueError, "a size that is not negative is expected");
    return Shape{1, n, {n}};
}

template <class T> MT_INLINE bool is_nan(T v) { return v != v; }

// NaN stands behind everything.
template <class T> MT_INLINE bool before(T a, T b) { return a < b || (!is_nan(a) && is_nan(b)); }

// Where a value stands in a row of n: PyTorch's steps and comparisons, also for NaN and rows that are not sorted.
template <class T> int64_t place_of(const T* row, int64_t n, T value, bool right) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (right ? !(row[middle] > value) : !(row[middle] >= value)) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Whether any search in the row gives the same.
template <class T> bool is_sorted(const T* row, int64_t n) {
    bool sorted = n == 0 || !is_nan(row[0]);
    for (int64_t i = 1; i < n; ++i) sorted &= row[i - 1] <= row[i];
    return sorted;
}

// The same for values of a sorted row. Several searches go side by side, because each step of one waits for memory; none
// of them branches. Not for vectors, whose gathered loads are slower than that.
constexpr int SEARCHES = 8;
template <bool RIGHT, class T> void places_of(const T* row, int64_t n, const T* values, int64_t* found) {
    const T* at[SEARCHES];
    for (int j = 0; j < SEARCHES; ++j) at[j] = row;
    const auto behind = [](T here, T value) { return RIGHT ? !(here > value) : !(here >= value); };
    int64_t left = n;
    for (; left > 1; left -= left / 2) {
        const int64_t half = left / 2;
        for (int j = 0; j < SEARCHES; ++j) at[j] += half & -(int64_t)behind(at[j][half - 1], values[j]);
    }
    for (int j = 0; j < SEARCHES; ++j) found[j] = (at[j] - row) + (left > 0 && behind(at[j][0], values[j]));
}

}  // namespace mt
#pragma GCC visibility pop
