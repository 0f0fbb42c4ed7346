// Factors, inverses, determinants and solutions of larger matrices, one after the other: blocks of a matrix are factored
// by plain loops, everything else is a product of blocks by the engine of gemm.h, which has the threads.
//
// Invariant: only regular, finite matrices are served; of any other in the batch False is answered, and the caller takes
// another way for all of them. Rows are exchanged as LAPACK exchanges them: the first largest of a column is the pivot.
// Blocks depend on the shapes alone. Operands are row-major and without gaps: storage, offset; one code serves all.
#include "cpu.h"
#include "linear.h"
#include "gemm.h"
#include "lanes.h"

#include <algorithm>
#include <vector>

using namespace mt;

extern PyMethodDef linear_blocked_methods[];  // no other file needs to know

namespace {

constexpr int64_t BLOCK = 48;   // rows of a diagonal block
constexpr int64_t STRIP = 512;  // columns that are divided at a time: BLOCK rows of them stay in the second cache
constexpr int64_t FEW = 8;      // columns of a right side up to which each is a vector by itself

template <class A> bool is_pivot(A size) { return size > 0 && size <= std::numeric_limits<A>::max(); }

// c -= a b for row-major blocks with these distances between rows; b: transposed where it says so.
template <class A>
void subtract(const A* a, int64_t as, const A* b, int64_t bs, bool turned, A* c, int64_t cs, int64_t m, int64_t n,
              int64_t k) {
    if (m == 0 || n == 0 || k == 0) return;
    constexpr int code = CodeOf<A>::value;
    gemm_packed<A>({reinterpret_cast<const char*>(a), code, as, 1},
                   {reinterpret_cast<const char*>(b), code, turned ? 1 : bs, turned ? bs : 1}, m, n, k,
                   {c, cs, 1, c, cs, 1, A(-1), A(1)});
}

// ---------------------------------------------------------------- triangles

// Rows of x, w columns wide and xs apart, divided by a diagonal block of `rows` rows.
template <class A>
void divide_block(const A* a, int64_t as, int64_t rows, A* x, int64_t xs, int64_t w, bool upper, bool unit) {
    at_level(MT_BODY {
        for (int64_t j0 = 0; j0 < w; j0 += STRIP) {
            const int64_t n = std::min(STRIP, w - j0);
            for (int64_t t = 0; t < rows; ++t) {
                const int64_t i = upper ? rows - 1 - t : t;
                A* MT_RESTRICT to = x + i * xs + j0;
                for (int64_t s = 0; s < t; ++s) {
                    const int64_t k = upper ? rows - 1 - s : s;
                    const A by = a[i * as + k], *from = x + k * xs + j0;
#pragma GCC ivdep
                    for (int64_t j = 0; j < n; ++j) to[j] -= by * from[j];
                }
                if (!unit)
                    for (int64_t j = 0; j < n; ++j) to[j] /= a[i * as + i];
            }
        }
    });
}
// One vector, by dot products with the rows of a.
template <class A> void divide_vector(const A* a, int64_t n, A* x, bool upper, bool unit) {
    at_level(MT_BODY {
        for (int64_t t = 0; t < n; ++t) {
            const int64_t i = upper ? n - 1 - t : t, first = upper ? i + 1 : 0;
            const A *row = a + i * n + first, *known = x + first;
            const A sum = x[i] - sum_of<A>(t, MT_EACH(k) { return row[k] * known[k]; });
            x[i] = unit ? sum : sum / a[i * n + i];
        }
    });
}
// x, of w columns side by side, is divided by the triangle of a.
template <class A> void divide(const A* a, int64_t n, A* x, int64_t w, bool upper, bool unit) {
    if (w < FEW) {
        std::vector<A> column((size_t)n);
        for (int64_t j = 0; j < w; ++j) {
            for (int64_t i = 0; i < n; ++i) column[(size_t)i] = x[i * w + j];
            divide_vector(a, n, column.data(), upper, unit);
            for (int64_t i = 0; i < n; ++i) x[i * w + j] = column[(size_t)i];
        }
        return;
    }
    const int64_t blocks = ceil_div(n, BLOCK);
    for (int64_t t = 0; t < blocks; ++t) {
        const int64_t first = (upper ? blocks - 1 - t : t) * BLOCK, rows = std::min(BLOCK, n - first);
        const int64_t known = upper ? first + rows : 0, count = upper ? n - known : first;
        subtract(a + first * n + known, n, x + known * w, w, false, x + first * w, w, rows, w, count);
        divide_block(a + first * n + first, n, rows, x + first * w, w, w, upper, unit);
    }
}

// ---------------------------------------------------------------- factors

// Columns [first, first + width) of a = P L U, rows from `first` on; rows are exchanged as a whole.
template <class A> bool factor_panel(A* a, int64_t n, int64_t first, int64_t width, int32_t* pivots) {
    bool fine = true;
    at_level(MT_BODY {
        for (int64_t k = first; k < first + width && fine; ++k) {
            int64_t best = k;
            A most = std::fabs(a[k * n + k]);
            for (int64_t i = k + 1; i < n; ++i) {
                const A size = std::fabs(a[i * n + k]);
                if (size > most) most = size, best = i;
            }
            pivots[k] = (int32_t)best;
            fine = is_pivot(most);
            if (!fine) break;
            if (best != k) std::swap_ranges(a + k * n, a + k * n + n, a + best * n);
            const A *top = a + k * n, pivot = top[k];
            for (int64_t i = k + 1; i < n; ++i) {
                A* MT_RESTRICT row = a + i * n;
                const A by = row[k] /= pivot;
#pragma GCC ivdep
                for (int64_t j = k + 1; j < first + width; ++j) row[j] -= by * top[j];
            }
        }
    });
    return fine;
}
// a = P L U in its place; pivots: the row that was exchanged with row k. false where a pivot is zero or no number.
template <class A> bool factor(A* a, int64_t n, int32_t* pivots) {
    for (int64_t k = 0; k < n; k += BLOCK) {
        const int64_t width = std::min(BLOCK, n - k), rest = n - k - width;
        if (!factor_panel(a, n, k, width, pivots)) return false;
        if (rest == 0) continue;
        A *right = a + k * n + k + width, *below = a + (k + width) * n + k;
        divide_block(a + k * n + k, n, width, right, n, rest, false, true);
        subtract(below, n, right, n, false, below + width, n, rest, rest, width);
    }
    return true;
}

// The lower factor of a diagonal block.
template <class A> MT_INLINE bool cholesky_block(A* a, int64_t n, int64_t rows) {
    for (int64_t k = 0; k < rows; ++k) {
        if (!is_pivot(a[k * n + k])) return false;
        const A pivot = std::sqrt(a[k * n + k]);
        a[k * n + k] = pivot;
        A column[BLOCK];
        for (int64_t i = k + 1; i < rows; ++i) column[i] = a[i * n + k] /= pivot;
        for (int64_t i = k + 1; i < rows; ++i) {
            A* MT_RESTRICT row = a + i * n;
            const A by = column[i];
#pragma GCC ivdep
            for (int64_t j = k + 1; j <= i; ++j) row[j] -= by * column[j];
        }
    }
    return true;
}
// The lower factor of the lower triangle in its place; the upper one is not read. false where there is none.
template <class A> bool cholesky_factor(A* a, int64_t n) {
    constexpr int64_t WIDE = 4 * BLOCK;  // columns of what is left that are brought up to date at a time
    const Scratch room(checked_mul(BLOCK, n), sizeof(A));
    A* turned = room.as<A>();
    for (int64_t k = 0; k < n; k += BLOCK) {
        const int64_t width = std::min(BLOCK, n - k), rest = n - k - width;
        bool fine = false;
        at_level(MT_BODY { fine = cholesky_block(a + k * n + k, n, width); });
        if (!fine) return false;
        // What is below, transposed, so that it is divided along its rows.
        A* below = a + (k + width) * n + k;
        for (int64_t i = 0; i < rest; ++i)
            for (int64_t j = 0; j < width; ++j) turned[j * rest + i] = below[i * n + j];
        divide_block(a + k * n + k, n, width, turned, rest, rest, false, false);
        for (int64_t i = 0; i < rest; ++i)
            for (int64_t j = 0; j < width; ++j) below[i * n + j] = turned[j * rest + i];
        for (int64_t j = 0; j < rest; j += WIDE)
            subtract(below + j * n, n, turned + j, rest, false, below + j * n + width + j, n, rest - j,
                     std::min(WIDE, rest - j), width);
    }
    return true;
}

// ---------------------------------------------------------------- calls

struct Batch {
    int64_t count, n;
    int code;
    int64_t size() const { return checked_mul(n, n); }
    int64_t all() const { return checked_mul(count, size()); }
};
Batch parse_batch(PyObject* const* args) {
    const Batch b{as_int(args[0]), as_int(args[1]), as_code(args[2])};
    if (b.count < 0 || b.n < 1 || b.n > std::numeric_limits<int32_t>::max())
        fail(PyExc_ValueError, "matrices are expected");
    if (b.code != F32 && b.code != F64) fail(PyExc_ValueError, "matrices of float or double are expected");
    return b;
}
// f(type, i) for each matrix until it is false of one; whether it was true of all.
template <class F> bool each(const Batch& b, F&& f) {
    const GilRelease unlocked(GIL_THRESHOLD + 1);
    for (int64_t i = 0; i < b.count; ++i)
        if (!(b.code == F32 ? f(float(), i) : f(double(), i))) return false;
    return true;
}

// lu_blocked(count, n, code, a(2), lu(2), pivots(2) of int32, counted from 1)
PyObject* lu_blocked(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("lu_blocked", nargs, 9);
        const Batch b = parse_batch(args);
        const int64_t size = b.size();
        const char* a = parse_memory(args + 3, b.all(), ITEMSIZE[b.code]);
        char* lu = parse_memory(args + 5, b.all(), ITEMSIZE[b.code]);
        int32_t* pivots = reinterpret_cast<int32_t*>(parse_memory(args + 7, checked_mul(b.count, b.n), 4));
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            A* to = reinterpret_cast<A*>(lu) + i * size;
            std::copy_n(reinterpret_cast<const A*>(a) + i * size, size, to);
            if (!factor(to, b.n, pivots + i * b.n)) return false;
            for (int64_t k = 0; k < b.n; ++k) ++pivots[i * b.n + k];
            return true;
        }));
    });
}

// solve_blocked(count, n, code, a(2), b(2), x(2), width, lu(2), pivots(2)): a x = b, with the factors of a; b None: of ones
// on the diagonal; lu and pivots None: they are not wanted
PyObject* solve_blocked(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("solve_blocked", nargs, 14);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, w = as_int(args[9]), size = b.size();
        const bool identity = args[5] == Py_None, kept = args[10] != Py_None;
        if (w < 0 || (identity && w != n)) fail(PyExc_ValueError, "solve_blocked() expects columns");
        const int64_t wide = checked_mul(n, w), sides = checked_mul(b.count, wide);
        const char* a = parse_memory(args + 3, b.all(), ITEMSIZE[b.code]);
        const char* right = identity ? nullptr : parse_memory(args + 5, sides, ITEMSIZE[b.code]);
        char* x = parse_memory(args + 7, sides, ITEMSIZE[b.code]);
        char* lu = kept ? parse_memory(args + 10, b.all(), ITEMSIZE[b.code]) : nullptr;
        char* places = kept ? parse_memory(args + 12, checked_mul(b.count, n), 4) : nullptr;
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            const Scratch room(kept ? 0 : size, sizeof(A));
            A *f = kept ? reinterpret_cast<A*>(lu) + i * size : room.as<A>(), *to = reinterpret_cast<A*>(x) + i * wide;
            std::copy_n(reinterpret_cast<const A*>(a) + i * size, size, f);
            std::vector<int32_t> pivots((size_t)n);
            if (!factor(f, n, pivots.data())) return false;
            if (identity) {
                std::fill_n(to, wide, A(0));
                for (int64_t k = 0; k < n; ++k) to[k * (n + 1)] = A(1);
            } else {
                std::copy_n(reinterpret_cast<const A*>(right) + i * wide, wide, to);
            }
            for (int64_t k = 0; k < n; ++k) {
                const int64_t other = pivots[(size_t)k];
                if (other != k) std::swap_ranges(to + k * w, to + k * w + w, to + other * w);
                if (kept) reinterpret_cast<int32_t*>(places)[i * n + k] = (int32_t)other + 1;
            }
            divide(f, n, to, w, false, true);
            divide(f, n, to, w, true, false);
            return true;
        }));
    });
}

// det_blocked(count, n, code, a(2), out(2), log(2)): the product of the pivots; where log is wanted, the sign of the product
// and the logarithm of its size
PyObject* det_blocked(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("det_blocked", nargs, 9);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, size = b.size();
        const char* a = parse_memory(args + 3, b.all(), ITEMSIZE[b.code]);
        char* out = parse_memory(args + 5, b.count, ITEMSIZE[b.code]);
        char* logs = args[7] == Py_None ? nullptr : parse_memory(args + 7, b.count, ITEMSIZE[b.code]);
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            const Scratch room(size, sizeof(A));
            A* f = room.as<A>();
            std::copy_n(reinterpret_cast<const A*>(a) + i * size, size, f);
            std::vector<int32_t> pivots((size_t)n);
            if (!factor(f, n, pivots.data())) return false;
            double product = 1, log = 0, sign = 1;
            for (int64_t k = 0; k < n; ++k) {
                const double size_of = (double)f[k * n + k], pivot = pivots[(size_t)k] == k ? size_of : -size_of;
                product *= pivot;
                if (logs) log += std::log(std::fabs(pivot));
                sign = pivot < 0 ? -sign : sign;
            }
            reinterpret_cast<A*>(out)[i] = (A)(logs ? sign : product);
            if (logs) reinterpret_cast<A*>(logs)[i] = (A)log;
            return true;
        }));
    });
}

// cholesky_blocked(count, n, code, a(2), out(2)): the lower factor of the lower triangle
PyObject* cholesky_blocked(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cholesky_blocked", nargs, 7);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, size = b.size();
        const char* a = parse_memory(args + 3, b.all(), ITEMSIZE[b.code]);
        char* out = parse_memory(args + 5, b.all(), ITEMSIZE[b.code]);
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            A* to = reinterpret_cast<A*>(out) + i * size;
            std::copy_n(reinterpret_cast<const A*>(a) + i * size, size, to);
            if (!cholesky_factor(to, n)) return false;
            for (int64_t r = 0; r < n; ++r) std::fill(to + r * n + r + 1, to + (r + 1) * n, A(0));
            return true;
        }));
    });
}

// triangular_blocked(count, n, code, a(2), x(2), width, upper, unit): x, which holds the right side, is divided by a
PyObject* triangular_blocked(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("triangular_blocked", nargs, 10);
        const Batch b = parse_batch(args);
        const int64_t w = as_int(args[7]), size = b.size();
        if (w < 0) fail(PyExc_ValueError, "triangular_blocked() expects columns");
        const int64_t wide = checked_mul(b.n, w);
        const char* a = parse_memory(args + 3, b.all(), ITEMSIZE[b.code]);
        char* x = parse_memory(args + 5, checked_mul(b.count, wide), ITEMSIZE[b.code]);
        const bool upper = as_bool(args[8]), unit = as_bool(args[9]);
        each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            divide(reinterpret_cast<const A*>(a) + i * size, b.n, reinterpret_cast<A*>(x) + i * wide, w, upper, unit);
            return true;
        });
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef linear_blocked_methods[] = {
    MT_METHOD("lu_blocked", lu_blocked, "P L U of each matrix; False where one is singular or not finite."),
    MT_METHOD("solve_blocked", solve_blocked, "Solutions, or inverses; False where one is singular or not finite."),
    MT_METHOD("det_blocked", det_blocked, "Determinants; False where a matrix is singular or not finite."),
    MT_METHOD("cholesky_blocked", cholesky_blocked, "Lower factors; False where one is not positive definite."),
    MT_METHOD("triangular_blocked", triangular_blocked, "Divides by triangles."),
    {nullptr, nullptr, 0, nullptr}};
