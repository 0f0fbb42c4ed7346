// Operands of products whose blocks have scales of their own.
//
// The facts have dtypes and ranks; the layouts are those of the functions' public descriptions. Scales of FLOAT8_E8M0 belong
// to 32 numbers of the inner dimension and stand in pairs: the operand's shape with a pair for each 64 of the inner
// dimension, then 2. Scales of FLOAT belong to squares: the operand's shape divided, rounded up, by the square's.
#pragma once

#include "kernel.h"
#include "microscaled.h"

namespace emu {

constexpr int64_t kPair = 2 * kBlock;

inline int64_t parts_of(int64_t n, int64_t part) { return n / part + (n % part != 0); }

inline bool in_pairs(const Tensor& scale) { return scale.dtype == ACL_FLOAT8_E8M0 && scale.rank() >= 3 && scale.dims.back() == 2; }

// The shape of the pairs of one matrix, whose inner dimension is 0 or 1.
inline Dims pair_dims(int64_t rows, int64_t columns, int inner) {
    return inner == 0 ? Dims{parts_of(rows, kPair), columns, 2} : Dims{rows, parts_of(columns, kPair), 2};
}

// `scale` has one such shape for all matrices, or one for each of `batches`.
inline void plan_pairs(const Plan& p, const char* name, const Dims& matrix, int inner, int64_t batches) {
    const Dims &have = p.tensor(name).dims, want = pair_dims(matrix[matrix.n - 2], matrix.back(), inner);
    bool fits = have.n >= 3 && (have.product() == want.product() || have.product() == batches * want.product());
    for (int i = 0; fits && i < 3; ++i) fits = have[have.n - 3 + i] == want[i];
    p.require(fits, "%s has shape %s, expected %s", name, text(have).c_str(), text(want).c_str());
}

// Multiplies matrices (rows, columns), one after the other, by their scales.
inline void scale_pairs(std::vector<double>& x, const std::vector<double>& scales, int64_t rows, int64_t columns, int inner) {
    int64_t one = pair_dims(rows, columns, inner).product(), pairs = parts_of(columns, kPair);
    int64_t batches = one > 0 ? int64_t(scales.size()) / one : 0;
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t row = int64_t(i) / columns % rows, column = int64_t(i) % columns, batch = batches > 1 ? int64_t(i) / (rows * columns) : 0;
        int64_t at = inner == 0 ? (row / kPair * columns + column) * 2 + row / kBlock % 2 : (row * pairs + column / kPair) * 2 + column / kBlock % 2;
        x[i] *= scales[size_t(batch * one + at)];
    }
}

// Scales of squares of height x width.
inline void plan_squares(const Plan& p, const char* name, const Dims& matrix, int64_t height, int64_t width, int64_t batches) {
    const Dims& have = p.tensor(name).dims;
    p.require(height > 0 && width > 0, "groupSize names squares of %lld x %lld", static_cast<long long>(height), static_cast<long long>(width));
    int64_t rows = parts_of(matrix[matrix.n - 2], height), columns = parts_of(matrix.back(), width);
    bool fits = have.n >= 2 && have[have.n - 2] == rows && have.back() == columns && (have.product() == rows * columns || have.product() == batches * rows * columns);
    p.require(fits, "%s has shape %s, expected (%lld, %lld)", name, text(have).c_str(), static_cast<long long>(rows), static_cast<long long>(columns));
}

inline void scale_squares(std::vector<double>& x, const std::vector<double>& scales, int64_t rows, int64_t columns, int64_t height, int64_t width) {
    int64_t across = parts_of(columns, width), one = parts_of(rows, height) * across, batches = one > 0 ? int64_t(scales.size()) / one : 0;
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t row = int64_t(i) / columns % rows, column = int64_t(i) % columns, batch = batches > 1 ? int64_t(i) / (rows * columns) : 0;
        x[i] *= scales[size_t(batch * one + row / height * across + column / width)];
    }
}

}  // namespace emu
