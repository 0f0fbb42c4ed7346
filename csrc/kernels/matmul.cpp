// Matrix products. Small ones of float32 and float64 run in a register-blocked kernel that reads the operands where they
// are, large ones in packed panels (gemm.h), few long rows as dot products; large complex ones are four real ones,
// integers and small complex ones a plain loop. Dtypes without a kernel are widened (float16, bfloat16, float8 to
// float32, narrow integers to int32) and narrowed once at the end; large float16 and bfloat16 as they are packed.
// Invariant: a sum over k runs in the same order whatever the threads, and integers wrap.
//
// Matrices are storage, offset, (row stride, column stride) in elements; all have the dtype `code`. alpha and beta are
// numbers. With beta 0 the old values are not read. `out` may be None: a new storage, whose dense layout the strides
// describe. It is returned. One argument more, behind beta, says which factors are conjugated: 1 a, 2 b, 3 both.
//   gemm(a, aoff, astrides, b, boff, bstrides, out|None, ooff, ostrides, code, m, n, k, alpha, beta)
//       out = beta * out + alpha * a @ b
//   addmm(c, coff, cstrides, a, aoff, astrides, b, boff, bstrides, out|None, ooff, ostrides, code, m, n, k, alpha,
//         beta)
//       out = beta * c + alpha * a @ b; c may be broadcast (stride 0)
//   bgemm(a, aoff, astrides, b, boff, bstrides, out|None, ooff, ostrides, code, batch, m, n, k, alpha, beta)
//       strides: (batch, row, column)
#include "arithmetic.h"
#include "complex_vectors.h"
#include "cpu.h"
#include "gemm.h"
#include "lanes.h"
#include "matmul.h"

#include <algorithm>

namespace mt {
namespace {

using Call = ProductCall;

template <class A> struct Matrix {
    A* data;
    int64_t rs, cs;
    MT_INLINE A& at(int64_t i, int64_t j) const { return data[i * rs + j * cs]; }
    Matrix transposed() const { return {data, cs, rs}; }
};

template <class A> struct Product {
    Matrix<const A> a, b, c;  // c: what beta multiplies
    Matrix<A> out;
    int64_t m, n, k;
    A alpha, beta;
    bool flip = false, mirrored = false;  // a, and the sums, are conjugated: a conj(b) is conj(conj(a) b)
    Product transposed() const {
        return {b.transposed(), a.transposed(), c.transposed(), out.transposed(), n, m, k, alpha, beta};
    }
};

// ---------------------------------------------------------------- float32 and float64

// 32-byte vectors: one register with AVX, two without.
template <class A> struct Vec;
template <> struct Vec<float> {
    typedef float t __attribute__((vector_size(32)));
    typedef float loose __attribute__((vector_size(32), aligned(4), may_alias));
};
template <> struct Vec<double> {
    typedef double t __attribute__((vector_size(32)));
    typedef double loose __attribute__((vector_size(32), aligned(8), may_alias));
};
template <class A> constexpr int LANES = 32 / sizeof(A);
constexpr int MR = 6;  // rows of a block: 6 x 2 sums, 2 of b and one of a fill 15 of 16 registers

// tile[i][.] = sum over p of a[i, p] * b[p, .] for M rows and NV vectors of columns, each of BYTES.
template <class A, int BYTES, int M, int NV>
MT_INLINE void block(const A* a, int64_t ars, int64_t acs, const A* b, int64_t brs, int64_t k, A* tile) {
    using V = typename mt::Vec<A, BYTES>::t;
    using L = typename mt::Vec<A, BYTES>::loose;
    constexpr int LANES = mt::Vec<A, BYTES>::LANES;
    V sum[M][NV];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) sum[i][v] = V{};
    for (int64_t p = 0; p < k; ++p) {
        V row[NV];
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) row[v] = *reinterpret_cast<const L*>(b + v * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) {
            const A x = a[i * ars];
#pragma GCC unroll 8
            for (int v = 0; v < NV; ++v) sum[i][v] += x * row[v];
        }
        a += acs;
        b += brs;
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) *reinterpret_cast<L*>(tile + (i * NV + v) * LANES) = sum[i][v];
}

template <class A, int BYTES, int NV>
MT_INLINE void blocks(int rows, const A* a, int64_t ars, int64_t acs, const A* b, int64_t brs, int64_t k, A* tile) {
    switch (rows) {
        case 1: block<A, BYTES, 1, NV>(a, ars, acs, b, brs, k, tile); return;
        case 2: block<A, BYTES, 2, NV>(a, ars, acs, b, brs, k, tile); return;
        case 3: block<A, BYTES, 3, NV>(a, ars, acs, b, brs, k, tile); return;
        case 4: block<A, BYTES, 4, NV>(a, ars, acs, b, brs, k, tile); return;
        case 5: block<A, BYTES, 5, NV>(a, ars, acs, b, brs, k, tile); return;
        default: block<A, BYTES, 6, NV>(a, ars, acs, b, brs, k, tile); return;
    }
}

// Where a block of sums goes: out = beta * c + alpha * tile.
template <class A>
MT_INLINE void store(const Product<A>& p, int64_t i0, int64_t j0, int64_t rows, int64_t columns, const A* tile,
                     int64_t width) {
    for (int64_t i = 0; i < rows; ++i, tile += width) {
        A* o = &p.out.at(i0 + i, j0);
        const A* c = &p.c.at(i0 + i, j0);
        if (p.beta == 0)
            for (int64_t j = 0; j < columns; ++j) o[j * p.out.cs] = p.alpha * tile[j];
        else
            for (int64_t j = 0; j < columns; ++j) o[j * p.out.cs] = p.alpha * tile[j] + p.beta * c[j * p.c.cs];
    }
}

// One strip of NV vectors of columns. `panel` has room for k rows of it.
template <class A, int BYTES, int NV>
MT_INLINE void strip(const Product<A>& p, int64_t j0, int64_t columns, A* panel) {
    constexpr int WIDTH = NV * BYTES / int(sizeof(A));
    const A* b = panel;
    int64_t brs = WIDTH;
    // Full strips of dense rows are read where they are, unless the rows lie far apart and are read often.
    if (columns == WIDTH && p.b.cs == 1 && (p.m <= 2 * MR || p.b.rs <= 256)) {
        b = p.b.data + j0;
        brs = p.b.rs;
    } else {
        for (int64_t r = 0; r < p.k; ++r) {
            const A* from = &p.b.at(r, j0);
            A* to = panel + r * WIDTH;
            if (columns == WIDTH && p.b.cs == 1) {
                for (int j = 0; j < WIDTH; ++j) to[j] = from[j];
            } else {
                for (int j = 0; j < WIDTH; ++j) to[j] = 0;
                for (int64_t j = 0; j < columns; ++j) to[j] = from[j * p.b.cs];
            }
        }
    }
    A tile[MR * WIDTH];
    for (int64_t i = 0; i < p.m; i += MR) {
        const int rows = int(std::min<int64_t>(MR, p.m - i));
        blocks<A, BYTES, NV>(rows, p.a.data + i * p.a.rs, p.a.rs, p.a.cs, b, brs, p.k, tile);
        store(p, i, j0, rows, columns, tile, WIDTH);
    }
}

template <class A, int BYTES> MT_INLINE void strips(const Product<A>& p, A* panel) {
    constexpr int64_t NARROW = BYTES / int(sizeof(A)), WIDE = 2 * NARROW;
    int64_t j = 0;
    for (; p.n - j > NARROW; j += WIDE) strip<A, BYTES, 2>(p, j, std::min(WIDE, p.n - j), panel);
    if (j < p.n) strip<A, BYTES, 1>(p, j, p.n - j, panel);
}
template <class A> MT_CLONES void multiply_narrow(const Product<A>& p, A* panel) { strips<A, 32>(p, panel); }
#if MT_HAS_LEVELS
template <class A> MT_AVX512 void multiply_wide(const Product<A>& p, A* panel) { strips<A, 64>(p, panel); }
#endif
// Columns that do not fill half of a wide vector are left to narrow ones.
template <class A> void multiply_blocked(const Product<A>& p, A* panel) {
#if MT_HAS_LEVELS
    if (cpu_level == AVX512 && p.n > LANES<A>) return multiply_wide(p, panel);
#endif
    multiply_narrow(p, panel);
}

template <class A> MT_INLINE A dot_dense(const A* a, const A* b, int64_t k) {
    return sum_of<A>(k, MT_EACH(i) { return a[i] * b[i]; });
}
// M rows of a with W columns of b, all dense along k: the vectors run along k.
template <class A, int M, int W>
MT_INLINE void dots(const A* a, int64_t ars, const A* b, int64_t bcs, int64_t k, A* tile, int64_t width) {
    using V = typename Vec<A>::t;
    using L = typename Vec<A>::loose;
    V sum[M][W];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < W; ++j) sum[i][j] = V{};
    int64_t p = 0;
    for (; p + LANES<A> <= k; p += LANES<A>) {
        V y[W];
#pragma GCC unroll 4
        for (int j = 0; j < W; ++j) y[j] = *reinterpret_cast<const L*>(b + j * bcs + p);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
            const V x = *reinterpret_cast<const L*>(a + i * ars + p);
#pragma GCC unroll 4
            for (int j = 0; j < W; ++j) sum[i][j] += x * y[j];
        }
    }
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < W; ++j) {
            A part[LANES<A>];
            *reinterpret_cast<L*>(part) = sum[i][j];
            A total = fold_parts<LANES<A>>(part, Plus<A>());
            for (int64_t q = p; q < k; ++q) total += a[i * ars + q] * b[j * bcs + q];
            tile[i * width + j] = total;
        }
}
template <class A, int W>
MT_INLINE void dot_rows(const Product<A>& p, int64_t j, int64_t i, int64_t rows, A* tile) {
    const A* a = p.a.data + i * p.a.rs;
    const A* b = p.b.data + j * p.b.cs;
    if (rows == 3) dots<A, 3, W>(a, p.a.rs, b, p.b.cs, p.k, tile, W);
    else if (rows == 2) dots<A, 2, W>(a, p.a.rs, b, p.b.cs, p.k, tile, W);
    else dots<A, 1, W>(a, p.a.rs, b, p.b.cs, p.k, tile, W);
    store(p, i, j, rows, W, tile, W);
}
// Few rows of a and columns of b that are dense along k: nothing is packed, b is read once.
template <class A> MT_CLONES void multiply_dots(const Product<A>& p) {
    A tile[12];
    int64_t j = 0;
    for (; j + 4 <= p.n; j += 4)
        for (int64_t i = 0; i < p.m; i += 3) dot_rows<A, 4>(p, j, i, std::min<int64_t>(3, p.m - i), tile);
    for (; j < p.n; ++j)
        for (int64_t i = 0; i < p.m; i += 3) dot_rows<A, 1>(p, j, i, std::min<int64_t>(3, p.m - i), tile);
}

// Rows times a b with dense rows: whole stretches of b's rows are scaled and added, four rows at a time.
template <class A> MT_CLONES void multiply_axpy(const Product<A>& p) {
    constexpr int64_t WIDTH = 512;
    A sum[WIDTH];
    for (int64_t t = 0, strips = ceil_div(p.n, WIDTH); t < p.m * strips; ++t) {
        const int64_t i = t / strips, j0 = t % strips * WIDTH, w = std::min(WIDTH, p.n - j0);
        for (int64_t j = 0; j < w; ++j) sum[j] = 0;
        int64_t r = 0;
        for (; r + 4 <= p.k; r += 4) {
            const A x0 = p.a.at(i, r), x1 = p.a.at(i, r + 1), x2 = p.a.at(i, r + 2), x3 = p.a.at(i, r + 3);
            const A* b0 = &p.b.at(r, j0);
            const A *b1 = b0 + p.b.rs, *b2 = b1 + p.b.rs, *b3 = b2 + p.b.rs;
            for (int64_t j = 0; j < w; ++j) sum[j] += (x0 * b0[j] + x1 * b1[j]) + (x2 * b2[j] + x3 * b3[j]);
        }
        for (; r < p.k; ++r) {
            const A x = p.a.at(i, r);
            const A* b = &p.b.at(r, j0);
            for (int64_t j = 0; j < w; ++j) sum[j] += x * b[j];
        }
        store(p, i, j0, 1, w, sum, w);
    }
}

// Sums of few terms: M rows of results in registers, for what counts is how they are written.
constexpr int64_t SHORT = 8;
template <class A, int M> MT_INLINE void short_rows(const Product<A>& p, int64_t i) {
    using V = typename mt::Vec<A, 64>::t;
    using L = typename mt::Vec<A, 64>::loose;
    constexpr int64_t WIDTH = mt::Vec<A, 64>::LANES;
    A x[M][SHORT];
    for (int m = 0; m < M; ++m)
        for (int64_t r = 0; r < p.k; ++r) x[m][r] = p.a.at(i + m, r);
    int64_t j = 0;
    for (; j + WIDTH <= p.n && (p.beta == 0 || p.c.cs == 1); j += WIDTH) {
        V sum[M];
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) sum[m] = V{};
        for (int64_t r = 0; r < p.k; ++r) {
            const V y = *reinterpret_cast<const L*>(p.b.data + r * p.b.rs + j);
#pragma GCC unroll 4
            for (int m = 0; m < M; ++m) sum[m] += x[m][r] * y;
        }
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            V v = p.alpha * sum[m];
            if (p.beta != 0) v += p.beta * V(*reinterpret_cast<const L*>(p.c.data + (i + m) * p.c.rs + j));
            *reinterpret_cast<L*>(p.out.data + (i + m) * p.out.rs + j) = v;
        }
    }
    for (; j < p.n; ++j)
        for (int m = 0; m < M; ++m) {
            A sum = 0;
            for (int64_t r = 0; r < p.k; ++r) sum += x[m][r] * p.b.at(r, j);
            store(p, i + m, j, 1, 1, &sum, 1);
        }
}
template <class A> void multiply_short(const Product<A>& given) {
    Product<A> p = given;
    Row<A> rows(p.b.cs == 1 ? 0 : checked_mul(p.k, p.n));
    if (p.b.cs != 1) {  // b is small beside the results: its rows made dense
        for (int64_t r = 0; r < p.k; ++r)
            for (int64_t j = 0; j < p.n; ++j) rows.get()[r * p.n + j] = given.b.at(r, j);
        p.b = {rows.get(), p.n, 1};
    }
    at_level(MT_BODY {
        int64_t i = 0;
        for (; i + 4 <= p.m; i += 4) short_rows<A, 4>(p, i);
        for (; i < p.m; ++i) short_rows<A, 1>(p, i);
    });
}

constexpr int64_t LARGE = 112 * 112 * 112;    // multiplications from which packing pays
constexpr int64_t LARGE_CAST = 48 * 48 * 48;  // the same where a smaller product casts whole operands
// Rows up to which dot products are as quick as packed panels: the longer the sums, the less it costs to end them.
MT_INLINE int64_t few_for(int64_t k) { return k >= 512 ? 32 : k >= 256 ? 24 : 12; }

template <class A> bool few_rows(const Product<A>& p) {
    return p.m <= few_for(p.k) && p.a.cs == 1 && p.b.rs == 1 && p.k >= 4 * LANES<A> && p.m <= p.n;
}
template <class A> bool is_large(const Product<A>& p) {
    return p.m > 4 && p.n > 4 && saturated_mul(p.m * p.n, p.k) > LARGE && !few_rows(p) && !few_rows(p.transposed());
}
template <class A> void multiply_large(const Product<A>& p) {
    constexpr int code = CodeOf<A>::value;
    const Source a{reinterpret_cast<const char*>(p.a.data), code, p.a.rs, p.a.cs};
    const Source b{reinterpret_cast<const char*>(p.b.data), code, p.b.rs, p.b.cs};
    gemm_packed<A>(a, b, p.m, p.n, p.k, {p.out.data, p.out.rs, p.out.cs, p.c.data, p.c.rs, p.c.cs, p.alpha, p.beta});
}

// How a product is computed: decided for the whole, so that its parts are summed alike in every thread.
enum class Way { PACKED, DOTS, AXPY, SHORT, BLOCKED };
struct Plan {
    Way way;
    bool turned;  // as the transposed product
};
template <class A> Plan plan_of(const Product<A>& p) {
    if (p.k <= SHORT && p.m > (p.b.cs == 1 ? 1 : 16) && p.n >= 64 && p.out.cs == 1) return {Way::SHORT, false};
    // Results are written along their dense dimension.
    if (is_large(p)) return {Way::PACKED, p.out.cs != 1 && p.out.rs == 1};
    const bool short_k = p.a.cs == 1 && p.b.rs == 1 && (p.m == 1 || p.n == 1);
    if (few_rows(p) || (short_k && p.m == 1)) return {Way::DOTS, false};
    if (few_rows(p.transposed()) || short_k) return {Way::DOTS, true};
    if (p.m == 1 && p.b.cs == 1 && p.n >= 64) return {Way::AXPY, false};
    if (p.n == 1 && p.a.rs == 1 && p.m >= 64) return {Way::AXPY, true};
    // Vectors run along n: a single column, or columns of b that are dense in a only, are better off transposed.
    return {Way::BLOCKED, p.m > 1 && (p.n == 1 || (p.b.cs != 1 && p.a.rs == 1 && p.a.cs != 1))};
}

template <class A> void multiply_float(const Product<A>& given, const Plan& plan) {
    const Product<A> p = plan.turned ? given.transposed() : given;
    if (plan.way == Way::PACKED) return multiply_large(p);
    if (plan.way == Way::DOTS) return multiply_dots(p);
    if (plan.way == Way::SHORT) return multiply_short(p);
    // Long sums in blocks, which round better than one run.
    const int64_t depth = block_depth(p.k);
    Row<A> panel(plan.way == Way::BLOCKED ? checked_mul(depth, 4 * LANES<A>) : 0);
    Product<A> q = p;
    int64_t done = 0;
    do {
        q.k = std::min(depth, p.k - done);
        if (plan.way == Way::AXPY) multiply_axpy(q);
        else multiply_blocked(q, panel.get());
        done += q.k;
        q.a.data = p.a.data + done * p.a.cs;
        q.b.data = p.b.data + done * p.b.rs;
        q.c = {p.out.data, p.out.rs, p.out.cs};
        q.beta = 1;
    } while (done < p.k);
}

// ---------------------------------------------------------------- complex numbers and integers

template <class A> MT_INLINE void finish_row(const Product<A>& p, int64_t i, int64_t j0, int64_t w, A* sum) {
    if constexpr (IsComplex<A>::value)
        for (int64_t j = 0; p.mirrored && j < w; ++j) sum[j].im = -sum[j].im;
    for (int64_t j = 0; j < w; ++j) sum[j] = times(p.alpha, sum[j]);
    if (!is_zero(p.beta))
        for (int64_t j = 0; j < w; ++j) sum[j] = plus(sum[j], times(p.beta, p.c.at(i, j0 + j)));
    for (int64_t j = 0; j < w; ++j) p.out.at(i, j0 + j) = sum[j];
}
// Results [j0, j0 + w) of one row.
template <class A> MT_INLINE void plain_row(const Product<A>& p, int64_t i, int64_t j0, int64_t w) {
    constexpr int64_t WIDTH = 64;
    A sum[WIDTH] = {};
    for (int64_t r = 0; r < p.k; ++r) {
        A x = p.a.at(i, r);
        if constexpr (IsComplex<A>::value) x.im = p.flip ? -x.im : x.im;
        const A* b = &p.b.at(r, j0);
        if (p.b.cs == 1)
            for (int64_t j = 0; j < w; ++j) sum[j] = plus(sum[j], times(x, b[j]));
        else
            for (int64_t j = 0; j < w; ++j) sum[j] = plus(sum[j], times(x, b[j * p.b.cs]));
    }
    finish_row(p, i, j0, w, sum);
}
// M rows of integers, by vectors of neighbouring columns.
template <int M, class A> MT_INLINE void plain_block(const Product<A>& p, int64_t i, int64_t j0) {
    using V = typename mt::Vec<A, 64>::t;
    using L = typename mt::Vec<A, 64>::loose;
    constexpr int64_t LANES = mt::Vec<A, 64>::LANES;
    V sum[M][2] = {};
    for (int64_t r = 0; r < p.k; ++r) {
        const A* b = &p.b.at(r, j0);
        const V left = *reinterpret_cast<const L*>(b), right = *reinterpret_cast<const L*>(b + LANES);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            const A x = p.a.at(i + m, r);
            sum[m][0] += x * left;
            sum[m][1] += x * right;
        }
    }
    for (int m = 0; m < M; ++m) {
        A row[2 * LANES];
        std::memcpy(row, sum[m], sizeof row);
        finish_row(p, i + m, j0, 2 * LANES, row);
    }
}
template <class A> void multiply_plain(const Product<A>& p) {
    at_level(MT_BODY {
        int64_t j = 0;
        if constexpr (std::is_integral<A>::value) {
            if (p.n == 1 && p.a.cs == 1 && p.b.rs == 1) {
                for (int64_t i = 0; i < p.m; ++i) {
                    A sum = dot_dense(p.a.data + i * p.a.rs, p.b.data, p.k);
                    finish_row(p, i, 0, 1, &sum);
                }
                return;
            }
            constexpr int64_t STEP = 2 * mt::Vec<A, 64>::LANES;
            for (; p.b.cs == 1 && j + STEP <= p.n; j += STEP) {
                int64_t i = 0;
                for (; i + 4 <= p.m; i += 4) plain_block<4>(p, i, j);
                for (; i < p.m; ++i) plain_block<1>(p, i, j);
            }
        }
        for (; j < p.n; j += 64)
            for (int64_t i = 0; i < p.m; ++i) plain_row(p, i, j, std::min<int64_t>(64, p.n - j));
    });
}

template <class A> void multiply_serial(const Product<A>& p, const Plan& plan) {
    if constexpr (std::is_floating_point<A>::value) multiply_float(p, plan);
    else multiply_plain(p);
}

// ---------------------------------------------------------------- calls

template <class A> void multiply_all(const Product<A>& p, const Call& call) {
    constexpr int64_t WORK = 1 << 18;  // multiplications one thread should at least get
    const int64_t each = std::max<int64_t>(1, saturated_mul(p.m * p.n, std::max<int64_t>(1, p.k)));
    Plan plan{Way::BLOCKED, false};
    if constexpr (std::is_floating_point<A>::value) plan = plan_of(p);
    // Packed products hand their blocks out to the threads themselves.
    const bool shares = plan.way == Way::PACKED && call.batch < 2 * num_threads();
    if (shares || call.batch > 1) {
        const int64_t grain = shares ? call.batch : std::max<int64_t>(1, WORK / each);
        parallel_for(call.batch, grain, [&](int64_t begin, int64_t end) {
            Product<A> q = p;
            for (int64_t i = begin; i < end; ++i) {
                q.a.data = p.a.data + i * call.a.stride[0];
                q.b.data = p.b.data + i * call.b.stride[0];
                q.c.data = p.c.data + i * call.c->stride[0];
                q.out.data = p.out.data + i * call.out.stride[0];
                multiply_serial(q, plan);
            }
        });
        return;
    }
    const bool by_rows = p.m >= p.n;
    const int64_t size = by_rows ? p.m : p.n, share = WORK / std::max<int64_t>(1, each / size);
    parallel_for(size, std::max<int64_t>(by_rows ? 4 * MR : 64, share), [&](int64_t begin, int64_t end) {
        Product<A> q = p;
        (by_rows ? q.m : q.n) = end - begin;
        q.a.data += by_rows ? begin * q.a.rs : 0;
        q.b.data += by_rows ? 0 : begin * q.b.cs;
        q.c.data += begin * (by_rows ? q.c.rs : q.c.cs);
        q.out.data += begin * (by_rows ? q.out.rs : q.out.cs);
        multiply_serial(q, plan);
    });
}

// The real and the imaginary parts of a matrix, each without gaps.
template <class R> struct Parts {
    Matrix<const R> part[2];
    Parts(const Operand& op, int64_t i, int64_t rows, int64_t columns, R* room) {
        const Complex<R>* from = op.as<Complex<R>>() + i * op.stride[0];
        const bool turned = op.stride[2] != 1 && op.stride[1] == 1;  // dense columns stay columns
        const int64_t outer = turned ? columns : rows, inner = turned ? rows : columns;
        const int64_t far = op.stride[turned ? 2 : 1], near = op.stride[turned ? 1 : 2];
        R *re = room, *im = room + rows * columns;
        at_level(MT_BODY {
            for (int64_t o = 0; o < outer; ++o) {
                const Complex<R>* line = from + o * far;
                R *MT_RESTRICT a = re + o * inner, *MT_RESTRICT b = im + o * inner;
                if (near == 1)
                    for (int64_t q = 0; q < inner; ++q) a[q] = line[q].re, b[q] = line[q].im;
                else
                    for (int64_t q = 0; q < inner; ++q) a[q] = line[q * near].re, b[q] = line[q * near].im;
            }
        });
        for (int k = 0; k < 2; ++k) part[k] = {k ? im : re, turned ? 1 : inner, turned ? inner : 1};
    }
};

// Sums of real and of imaginary parts of one product: dense planes, the imaginary one behind the real one.
template <class R> void multiply_parts(const Call& call, const Parts<R>& a, const Parts<R>& b, R* out) {
    for (int im = 0; im < 2; ++im) {
        R* to = out + im * call.m * call.n;
        // re re - im im, and re im + im re
        for (int second = 0; second < 2; ++second) {
            const bool turned = (second && call.conjugated & 1) != ((second ^ im) && call.conjugated & 2);
            const Product<R> p{a.part[second],  b.part[second ^ im],
                               {to, call.n, 1}, {to, call.n, 1},
                               call.m,          call.n,
                               call.k,          (second && !im) != turned ? R(-1) : R(1),
                               R(second)};
            multiply_float(p, plan_of(p));
        }
    }
}
template <class R> void multiply_complex(const Call& call, int code) {
    using A = Complex<R>;
    constexpr int64_t WORK = 1 << 16;
    const A alpha = number_as<A>(call.alpha, code), beta = number_as<A>(call.beta, code);
    const GilRelease unlocked(GIL_THRESHOLD + 1);
    const int64_t one = checked_mul(call.m, call.k), two = checked_mul(call.k, call.n),
                  each = checked_mul(call.m, call.n);
    const int64_t room = checked_mul(2, checked_add(checked_add(one, two), each));
    const bool plain = alpha.re == 1 && alpha.im == 0 && is_zero(beta);
    const int64_t work = std::max<int64_t>(1, saturated_mul(each, call.k));
    parallel_for(call.batch, std::max<int64_t>(1, WORK / work), [&](int64_t begin, int64_t end) {
        const Scratch memory(room, sizeof(R));
        R* sums = memory.as<R>() + 2 * (one + two);
        for (int64_t i = begin; i < end; ++i) {
            const Parts<R> a(call.a, i, call.m, call.k, memory.as<R>());
            const Parts<R> b(call.b, i, call.k, call.n, memory.as<R>() + 2 * one);
            multiply_parts<R>(call, a, b, sums);
            at_level(MT_BODY {
                for (int64_t r = 0; r < call.m; ++r) {
                    auto row = [&](const Operand& op) { return op.as<A>() + i * op.stride[0] + r * op.stride[1]; };
                    const R *re = sums + r * call.n, *im = re + each;
                    A* to = row(call.out);
                    const A* old = row(*call.c);
                    if (plain && call.out.stride[2] == 1) {
                        for (int64_t j = 0; j < call.n; ++j) to[j] = A{re[j], im[j]};
                        continue;
                    }
                    for (int64_t j = 0; j < call.n; ++j) {
                        A v{re[j], im[j]};
                        if (!plain) v = times(alpha, v);
                        if (!is_zero(beta)) v = plus(v, times(beta, old[j * call.c->stride[2]]));
                        to[j * call.out.stride[2]] = v;
                    }
                }
            });
        }
    });
}

// The dtype a product is computed in.
// clang-format off: a table
int kernel_code(int code, const char* name) {
    switch (code) {
        case F32: case F64: case C64: case C128: case I32: case I64: return code;
        case F16: case BF16: case F8E5M2: case F8E4M3FN: case F8E5M2FNUZ: case F8E4M3FNUZ: return F32;
        case U8: case I8: case I16: return I32;
        default: fail_dtype(name, code);
    }
}
// clang-format on

// A is the type of the sums: unsigned for integers, which wrap.
template <class A> void multiply_as(const Call& call, int code) {
    auto matrix = [](const Operand& op) { return Matrix<A>{op.as<A>(), op.stride[1], op.stride[2]}; };
    auto input = [](const Operand& op) { return Matrix<const A>{op.as<A>(), op.stride[1], op.stride[2]}; };
    const Product<A> p{input(call.a),
                       input(call.b),
                       input(*call.c),
                       matrix(call.out),
                       call.m,
                       call.n,
                       call.k,
                       number_as<A>(call.alpha, code),
                       number_as<A>(call.beta, code),
                       call.conjugated % 3 != 0,
                       call.conjugated > 1};
    GilRelease unlocked(saturated_mul(call.batch * call.m * call.n, std::max<int64_t>(1, call.k)) / 8);
    multiply_all(p, call);
}

bool is_large(const Call& call, int64_t least) {
    return call.m > 4 && call.n > 4 && saturated_mul(call.m * call.n, call.k) > least;
}

// A vector on one side.
template <class R> void multiply_complex_vector(const Call& call, int code) {
    using A = Complex<R>;
    const bool right = call.n == 1;  // else the left factor is the vector, and the product is taken transposed
    const Operand &a = right ? call.a : call.b, &x = right ? call.b : call.a;
    const int at = right ? 1 : 2;
    const A alpha = number_as<A>(call.alpha, code), beta = number_as<A>(call.beta, code);
    const int64_t m = right ? call.m : call.n;
    const GilRelease unlocked(saturated_mul(call.batch * m, call.k));
    const Scratch room(m, sizeof(A));
    for (int64_t i = 0; i < call.batch; ++i) {
        const ComplexVector<R> v{a.as<const A>() + i * a.stride[0],
                                 a.stride[at],
                                 a.stride[3 - at],
                                 x.as<const A>() + i * x.stride[0],
                                 x.stride[at],
                                 m,
                                 call.k,
                                 (call.conjugated & (right ? 1 : 2)) != 0,
                                 (call.conjugated & (right ? 2 : 1)) != 0};
        multiply_vector(v, room.as<A>());
        A* to = call.out.as<A>() + i * call.out.stride[0];
        const A* old = call.c->as<const A>() + i * call.c->stride[0];
        for (int64_t j = 0; j < m; ++j) {
            A sum = times(alpha, room.as<A>()[j]);
            if (!is_zero(beta)) sum = plus(sum, times(beta, old[j * call.c->stride[at]]));
            to[j * call.out.stride[at]] = sum;
        }
    }
}

void multiply(const Call& call, int code) {
    constexpr int64_t LONG = 64;  // products of a vector from which it is worth to be made real
    const bool vector = (call.m == 1 || call.n == 1) && call.k > 1 && saturated_mul(call.m * call.n, call.k) > LONG;
    if (code == C64 && vector) return multiply_complex_vector<float>(call, code);
    if (code == C128 && vector) return multiply_complex_vector<double>(call, code);
    constexpr int64_t LARGE_COMPLEX = 10 * 10 * 10;  // multiplications from which taking parts apart pays
    if (code == C64 && is_large(call, LARGE_COMPLEX)) return multiply_complex<float>(call, code);
    if (code == C128 && is_large(call, LARGE_COMPLEX)) return multiply_complex<double>(call, code);
    switch (code) {
        case F32: return multiply_as<float>(call, code);
        case F64: return multiply_as<double>(call, code);
        case C64: return multiply_as<Complex<float>>(call, code);
        case C128: return multiply_as<Complex<double>>(call, code);
        case I32: return multiply_as<uint32_t>(call, code);
        default: return multiply_as<uint64_t>(call, code);
    }
}

void run(const Call& call, const char* name) {
    const int code = kernel_code(call.out.code, name);
    if (call.batch * call.m * call.n == 0) return;
    if (code == call.out.code) {
        // The plain loop runs along the rows of b; the blocked one packs what it needs by itself.
        if (call.b.stride[2] == 1 || call.m < 4 || code == F32 || code == F64) return multiply(call, code);
        const Widened rows(call.b, call.batch, call.k, call.n, code, true);
        Call dense = call;
        dense.b = rows.self;
        return multiply(dense, code);
    }
    alignas(16) char beta[16];
    number_into(call.beta, C128, beta);
    const Complex<double> b = *reinterpret_cast<const Complex<double>*>(beta);
    if (multiply_halves_in_place(call, b.re)) return;
    constexpr int64_t LARGE_PAIRS = 20 * 20 * 20;
    if (call.out.code == BF16 && is_large(call, cpu_has_bf16 ? LARGE_PAIRS : LARGE_CAST))
        return multiply_halves(call, b.re);
    if (call.out.code == F16 && is_large(call, LARGE_CAST)) return multiply_halves(call, b.re);
    Call wide = call;
    const Widened a(call.a, call.batch, call.m, call.k, code, true), w(call.b, call.batch, call.k, call.n, code, true);
    const Widened c(*call.c, call.batch, call.m, call.n, code, b.re != 0 || b.im != 0);
    wide.a = a.self, wide.b = w.self, wide.c = &c.self, wide.out = c.self;
    multiply(wide, code);
    c.write_to(call.out);
}

// A matrix, or a batch of them: 3 arguments and the common code. A single one gets a batch stride of 0.
void lift(Operand& op, bool batched) {
    if (batched) return;
    op.stride[2] = op.stride[1], op.stride[1] = op.stride[0], op.stride[0] = 0;
}
void parse_matrix(PyObject* const* args, PyObject* code, const Shape& shape, Operand& op) {
    PyObject* operand[4] = {args[0], args[1], args[2], code};
    parse_operand(operand, shape, op);
    expect_room_for(checked_bytes(shape.numel, ITEMSIZE[op.code]));
    lift(op, shape.ndim == 3);
}
PyObject* parse_result(PyObject* const* args, PyObject* code, const Shape& shape, Operand& op) {
    PyObject* operand[4] = {args[0], args[1], args[2], code};
    PyObject* out = parse_output(operand, shape, op);
    lift(op, shape.ndim == 3);
    return out;
}

// Which factors are conjugated: what may stand behind the `count` arguments of a call, one of which is the dtype.
int parse_conjugated(const char* name, PyObject* const* args, Py_ssize_t nargs, Py_ssize_t count, int code) {
    if (nargs == count) return 0;
    expect_args(name, nargs, count + 1);
    const int64_t which = as_int(args[count]), dtype = as_code(args[code]);
    if (which < 0 || which > 3 || (which && dtype != C64 && dtype != C128)) fail_dtype(name, int(dtype));
    return int(which);
}

PyObject* gemm(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        Call call;
        call.conjugated = parse_conjugated("gemm", args, nargs, 15, 9);
        call.batch = 1;
        call.m = parse_count(args[10]), call.n = parse_count(args[11]), call.k = parse_count(args[12]);
        call.alpha = args[13], call.beta = args[14];
        Shape shape;
        set_shape(shape, {call.m, call.k});
        parse_matrix(args, args[9], shape, call.a);
        set_shape(shape, {call.k, call.n});
        parse_matrix(args + 3, args[9], shape, call.b);
        set_shape(shape, {call.m, call.n});
        Ref out(parse_result(args + 6, args[9], shape, call.out));
        call.c = &call.out;
        run(call, "addmm_impl_cpu_");
        return out.release();
    });
}

PyObject* addmm(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        Call call;
        call.conjugated = parse_conjugated("addmm", args, nargs, 18, 12);
        call.batch = 1;
        call.m = parse_count(args[13]), call.n = parse_count(args[14]), call.k = parse_count(args[15]);
        call.alpha = args[16], call.beta = args[17];
        Shape shape;
        set_shape(shape, {call.m, call.k});
        parse_matrix(args + 3, args[12], shape, call.a);
        set_shape(shape, {call.k, call.n});
        parse_matrix(args + 6, args[12], shape, call.b);
        set_shape(shape, {call.m, call.n});
        Operand c;
        parse_matrix(args, args[12], shape, c);
        call.c = &c;
        Ref out(parse_result(args + 9, args[12], shape, call.out));
        run(call, "addmm_impl_cpu_");
        return out.release();
    });
}

PyObject* bgemm(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        Call call;
        call.conjugated = parse_conjugated("bgemm", args, nargs, 16, 9);
        call.batch = parse_count(args[10]);
        call.m = parse_count(args[11]), call.n = parse_count(args[12]), call.k = parse_count(args[13]);
        call.alpha = args[14], call.beta = args[15];
        Shape shape;
        set_shape(shape, {call.batch, call.m, call.k});
        parse_matrix(args, args[9], shape, call.a);
        set_shape(shape, {call.batch, call.k, call.n});
        parse_matrix(args + 3, args[9], shape, call.b);
        set_shape(shape, {call.batch, call.m, call.n});
        Ref out(parse_result(args + 6, args[9], shape, call.out));
        call.c = &call.out;
        run(call, "bmm");
        return out.release();
    });
}

}  // namespace
}  // namespace mt

using namespace mt;

PyMethodDef matmul_methods[] = {
    MT_METHOD("gemm", gemm, "gemm(a, aoff, astrides, b.., out.., code, m, n, k, alpha, beta)."),
    MT_METHOD("addmm", addmm, "addmm(c, coff, cstrides, a.., b.., out.., code, m, n, k, alpha, beta)."),
    MT_METHOD("bgemm", bgemm, "bgemm(a, aoff, astrides, b.., out.., code, batch, m, n, k, alpha, beta)."),
    {nullptr, nullptr, 0, nullptr}};
extern const mt::IntConstant matmul_constants[] = {{nullptr, 0}};
