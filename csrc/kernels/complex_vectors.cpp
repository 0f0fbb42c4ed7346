// Products of complex matrices and vectors, as real ones: rows that are dense are real rows of twice the length, dense
// columns real columns.
// Invariant: a sum runs in an order that depends on the shapes and the layout alone.
#include "complex_vectors.h"
#include "cpu.h"
#include "lanes.h"

#include <algorithm>

namespace mt {
namespace {

constexpr int64_t GRAIN_PRODUCTS = 1 << 16;
constexpr int64_t WIDTH = 256;  // results of dense columns that are summed at a time
constexpr int64_t DEPTH = 256;  // terms of a run; long sums are made of several, which round better

// re, im: x as it meets the elements of a row, for the real and the imaginary part of a result.
template <class R> MT_INLINE void sum_dense_row(const R* a, const R* re, const R* im, int64_t n, Complex<R>& sum) {
    sum.re = sum_of<R>(n, MT_EACH(i) { return a[i] * re[i]; });
    sum.im = sum_of<R>(n, MT_EACH(i) { return a[i] * im[i]; });
}

// Results [begin, end) of dense columns.
template <class R>
MT_INLINE void sum_columns(const ComplexVector<R>& v, const R* x, int64_t begin, int64_t end, Complex<R>* sums) {
    const int64_t n = 2 * (end - begin);
    R whole[2][2 * WIDTH] = {};
    for (int64_t first = 0; first < v.k; first += DEPTH) {
        R one[2 * WIDTH] = {}, two[2 * WIDTH] = {};  // a times the real and the imaginary parts of x
        const int64_t last = std::min(v.k, first + DEPTH);
        int64_t p = first;
        for (; p + 2 <= last; p += 2) {
            const R* a = reinterpret_cast<const R*>(v.a + begin + p * v.cs);
            const R* b = reinterpret_cast<const R*>(v.a + begin + (p + 1) * v.cs);
            const R ar = x[2 * p], ai = x[2 * p + 1], br = x[2 * p + 2], bi = x[2 * p + 3];
            for (int64_t i = 0; i < n; ++i) {
                one[i] += ar * a[i] + br * b[i];
                two[i] += ai * a[i] + bi * b[i];
            }
        }
        for (; p < last; ++p) {
            const R* a = reinterpret_cast<const R*>(v.a + begin + p * v.cs);
            for (int64_t i = 0; i < n; ++i) one[i] += x[2 * p] * a[i], two[i] += x[2 * p + 1] * a[i];
        }
        for (int64_t i = 0; i < n; ++i) whole[0][i] += one[i], whole[1][i] += two[i];
    }
    const R sign = v.flip_a ? R(-1) : R(1);
    for (int64_t i = 0; i < end - begin; ++i) {
        sums[begin + i].re = whole[0][2 * i] - sign * whole[1][2 * i + 1];
        sums[begin + i].im = sign * whole[0][2 * i + 1] + whole[1][2 * i];
    }
}

}  // namespace

template <class R> void multiply_vector(const ComplexVector<R>& v, Complex<R>* sums) {
    const bool columns = v.rs == 1 && v.cs != 1;
    const Scratch room(checked_mul(4, v.k), sizeof(R));
    R *re = room.as<R>(), *im = re + 2 * v.k;
    const R sign = v.flip_a ? R(-1) : R(1);
    for (int64_t p = 0; p < v.k; ++p) {
        const Complex<R> x = v.x[p * v.xs];
        const R other = v.flip_x ? -x.im : x.im;
        re[2 * p] = x.re, re[2 * p + 1] = columns ? other : -sign * other;
        im[2 * p] = other, im[2 * p + 1] = sign * x.re;
    }
    const int64_t grain = std::max<int64_t>(1, GRAIN_PRODUCTS / std::max<int64_t>(1, v.k));
    if (columns) {
        const int64_t strips = ceil_div(v.m, WIDTH);
        parallel_for(strips, std::max<int64_t>(1, grain / WIDTH), [&](int64_t begin, int64_t end) {
            at_level(MT_BODY {
                for (int64_t s = begin; s < end; ++s)
                    sum_columns(v, re, s * WIDTH, std::min(v.m, (s + 1) * WIDTH), sums);
            });
        });
        return;
    }
    parallel_for(v.m, grain, [&](int64_t begin, int64_t end) {
        const Scratch line(v.cs == 1 ? 0 : checked_mul(2, v.k), sizeof(R));
        at_level(MT_BODY {
            for (int64_t i = begin; i < end; ++i) {
                const Complex<R>* row = v.a + i * v.rs;
                if (v.cs != 1) {
                    for (int64_t p = 0; p < v.k; ++p) line.as<Complex<R>>()[p] = row[p * v.cs];
                    row = line.as<Complex<R>>();
                }
                sum_dense_row(reinterpret_cast<const R*>(row), (const R*)re, (const R*)im, 2 * v.k, sums[i]);
            }
        });
    });
}
template void multiply_vector(const ComplexVector<float>&, Complex<float>*);
template void multiply_vector(const ComplexVector<double>&, Complex<double>*);

}  // namespace mt
