// Products of two-byte floats that are not worth packing: see halves_dots.cpp.
#pragma once
#include "gemm.h"

#pragma GCC visibility push(hidden)
namespace mt {

// out = alpha * a @ b + beta * c, all of one dtype, float16 or bfloat16. out: written, in spite of its type.
struct HalfProduct {
    Source a, b, c, out;
    int64_t m, n, k;
    float alpha, beta;
};
// Whether it is such a product, and the CPU is for it; then the other function computes it, with every thread of the pool.
bool has_half_dots(const HalfProduct& h);
void multiply_half_dots(const HalfProduct& h);

// Whether this CPU reads rows of two-byte floats where they lie, by the two functions below, in the thread that calls them.
bool has_half_rows(int code);
// sums[i * n + j] = scale * row i of a by row j of b, of k elements side by side.
void dot_half_rows(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, float scale, float* sums);
// sums[i * n + j] += weights[i * k + p] * b[p, j], summed over p; rows of b are dense, and k is short.
void add_half_rows(const float* weights, const Source& b, int64_t m, int64_t n, int64_t k, float* sums);

}  // namespace mt
#pragma GCC visibility pop
