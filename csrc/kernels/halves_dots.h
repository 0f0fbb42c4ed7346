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

}  // namespace mt
#pragma GCC visibility pop
