// Blocks of numbers that share a scale: the power of two that a block of small floats is divided by, and rows in blocks.
#pragma once

#include "quantize.h"

namespace emu {

constexpr int64_t kBlock = 32;

inline int top_exponent(int dtype) {
    int exponent;
    std::frexp(narrow_largest(dtype), &exponent);
    return exponent - 1;
}

// `most`: what stands for the type's largest number.
inline double block_scale(double largest, int dtype, int64_t algorithm, double most) {
    if (largest == 0) return std::ldexp(1.0, -127);
    if (!std::isfinite(largest)) return NAN;
    int exponent;
    if (algorithm == 0) {
        std::frexp(largest, &exponent);
        exponent -= 1 + top_exponent(dtype);
    } else {
        double fraction = std::frexp(largest / most, &exponent);
        if (fraction == 0.5) --exponent;
    }
    return std::ldexp(1.0, std::max(exponent, -127));
}

inline double block_scale(double largest, int dtype, int64_t algorithm) { return block_scale(largest, dtype, algorithm, narrow_largest(dtype)); }

// The scales of blocks stand in pairs.
inline Dims scale_dims(Dims dims, int64_t axis, int64_t block = kBlock) {
    int64_t length = dims[int(axis)], blocks = length / block + (length % block != 0);
    dims[int(axis)] = (blocks + 1) / 2;
    dims.push(2);
    return dims;
}

// How many scales a row has room for: of powers of two one for each 32 numbers, maybe in pairs, of others one for each
// `block`. 0 where neither fits `have`.
inline int64_t scale_places(int64_t length, int64_t have, bool exponents, int64_t block) {
    int64_t needed = (length + (exponents ? kBlock : block) - 1) / (exponents ? kBlock : block);
    return have == needed || (exponents && have == needed + needed % 2) ? have : 0;
}

// Blocks of a row: `length` numbers, `block` to a scale, room for `places` scales in each row.
struct RowBlocks {
    int64_t length, block, places;
    int dtype;              // of the numbers
    double top;             // what the largest number of a block becomes
    bool exponents, whole;  // scales are of FLOAT8_E8M0; others are rounded up to powers of two
    int64_t algorithm = 0;  // of exponents

    double scale(double largest) const {
        if (exponents) return block_scale(largest, dtype, algorithm);
        double out = largest / top;
        return whole && out > 0 ? std::exp2(std::ceil(std::log2(out))) : out;
    }
    // Divides the rows by their scales, which are returned.
    std::vector<double> divide(std::vector<double>& x) const {
        std::vector<double> scales;
        for (size_t row = 0; row < x.size(); row += size_t(length)) {
            for (int64_t from = 0; from < length; from += block) {
                double largest = 0;
                int64_t to = std::min(from + block, length);
                for (int64_t k = from; k < to; ++k) largest = std::fmax(largest, std::fabs(x[row + size_t(k)]));
                scales.push_back(scale(largest));
                for (int64_t k = from; k < to; ++k) x[row + size_t(k)] = scales.back() > 0 ? x[row + size_t(k)] / scales.back() : 0;
            }
            scales.resize((row / size_t(length) + 1) * size_t(places), exponents ? std::ldexp(1.0, -127) : 0);
        }
        return scales;
    }
};

}  // namespace emu
