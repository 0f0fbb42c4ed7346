// The power of two that a block of small floats is divided by.
#pragma once

#include "quantize.h"

namespace emu {

constexpr int64_t kBlock = 32;

inline int top_exponent(int dtype) {
    int exponent;
    std::frexp(narrow_largest(dtype), &exponent);
    return exponent - 1;
}

inline double block_scale(double largest, int dtype, int64_t algorithm) {
    if (largest == 0) return std::ldexp(1.0, -127);
    if (!std::isfinite(largest)) return NAN;
    int exponent;
    if (algorithm == 0) {
        std::frexp(largest, &exponent);
        exponent -= 1 + top_exponent(dtype);
    } else {
        double fraction = std::frexp(largest / narrow_largest(dtype), &exponent);
        if (fraction == 0.5) --exponent;
    }
    return std::ldexp(1.0, std::max(exponent, -127));
}

}  // namespace emu
