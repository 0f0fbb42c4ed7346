// Arithmetic on sizes. Invariant: a size, extent or number of bytes that memory is measured with is never a product or a
// sum that has wrapped; what does not fit 64 bits is PyTorch's error.
//
//   checked_*    the exact result, or an error
//   saturated_*  the largest number instead: for estimates of work, which only decide about threads
//   wrapping_*   for strides of dimensions that have at most one element: they may be anything and are not used
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace mt {

// RuntimeError "Storage size calculation overflowed with sizes=[2, 3]"
[[noreturn]] void fail_sizes(const int64_t* size, int n);

[[gnu::always_inline]] inline int64_t checked_mul(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_expect(__builtin_mul_overflow(a, b, &product), 0)) {
        const int64_t sizes[2] = {a, b};
        fail_sizes(sizes, 2);
    }
    return product;
}

[[gnu::always_inline]] inline int64_t checked_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_expect(__builtin_add_overflow(a, b, &sum), 0)) {
        const int64_t sizes[2] = {a, b};
        fail_sizes(sizes, 2);
    }
    return sum;
}

// The product of sizes, none of which is negative. One zero makes it zero, whatever the others multiply to.
inline int64_t checked_numel(const int64_t* size, int n) {
    int64_t numel = 1;
    bool overflow = false, empty = false;
    for (int i = 0; i < n; ++i) {
        overflow |= __builtin_mul_overflow(numel, size[i], &numel);
        empty |= size[i] == 0;
    }
    if (__builtin_expect(empty, 0)) return 0;
    if (__builtin_expect(overflow, 0)) fail_sizes(size, n);
    return numel;
}
inline int64_t checked_numel(std::initializer_list<int64_t> sizes) {
    return checked_numel(sizes.begin(), int(sizes.size()));
}

// `count` items of `itemsize` bytes.
[[gnu::always_inline]] inline size_t checked_bytes(int64_t count, int64_t itemsize) {
    int64_t bytes;
    if (__builtin_expect(__builtin_mul_overflow(count, itemsize, &bytes) || bytes < 0, 0)) fail_sizes(&count, 1);
    return (size_t)bytes;
}

// Factors that are not negative.
[[gnu::always_inline]] inline int64_t saturated_mul(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}
[[gnu::always_inline]] inline int64_t saturated_add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

[[gnu::always_inline]] inline int64_t wrapping_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

// a / b rounded up, for a >= 0 and b > 0.
[[gnu::always_inline]] inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

}  // namespace mt
