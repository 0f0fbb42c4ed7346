// What the matrix unit does to its operands, and products of matrices.
//
// cubeMathType: 0 keeps FLOAT, 1 lets it lose precision, 2 computes in FLOAT16, 3 in HFLOAT32. Only 910B has a unit for
// FLOAT; there 1 means HFLOAT32, on the other chips FLOAT16. Sums are exact enough in double for all of them.
#pragma once

#include "kernel.h"

// The rest is built for a quick compilation; products of matrices are where programs spend their time.
#if defined(__GNUC__) && !defined(__clang__)
#define EMU_VECTORIZED __attribute__((optimize("O3")))
#else
#define EMU_VECTORIZED
#endif

namespace emu {

// Refuses what the unit of this chip cannot do with operands that promote to `dtype`.
void plan_cube(const Plan& p, int dtype, int64_t cube_math_type);
// The dtype two operands promote to, checked for the unit: no BF16 beside another type.
int plan_cube(const Plan& p, const Tensor& a, const Tensor& b, int64_t cube_math_type);
// The values as the unit sees them: rounded to the type it computes in.
void cube_round(std::vector<double>& values, int dtype, int64_t cube_math_type);

// A product of (batches of) matrices as torch.matmul sees it; vectors are matrices of one row or one column.
struct Product {
    int64_t batch = 1, rows = 1, inner = 1, columns = 1;
    std::vector<int64_t> first, second;  // for each product of the batch, the place of its operands
    Dims out;
};
// False when the shapes do not fit.
bool product_of(const Dims& a, const Dims& b, Product* out);

// row += factor * other
template <class T>
EMU_VECTORIZED void add_multiple(T* __restrict row, T factor, const T* other, int64_t n) {
    for (int64_t j = 0; j < n; ++j) row[j] += factor * other[j];
}

template <class T>
std::vector<T> multiply(const Product& p, const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> out(size_t(p.batch * p.rows * p.columns));
    for (int64_t n = 0; n < p.batch; ++n) {
        const T* x = a.data() + p.first[size_t(n)] * p.rows * p.inner;
        const T* y = b.data() + p.second[size_t(n)] * p.inner * p.columns;
        T* z = out.data() + n * p.rows * p.columns;
        for (int64_t i = 0; i < p.rows; ++i)
            for (int64_t k = 0; k < p.inner; ++k)
                add_multiple(z + i * p.columns, x[i * p.inner + k], y + k * p.columns, p.columns);
    }
    return out;
}

}  // namespace emu
