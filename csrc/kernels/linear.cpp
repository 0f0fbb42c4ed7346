// Factors, inverses, determinants and solutions of many small matrices: one call for a batch, where LAPACK would be called
// once for each.
//
// Invariant: only regular, finite matrices are served; of any other in the batch False is answered, and the caller takes
// another way for all of them. Rows are exchanged as LAPACK exchanges them: the first largest of a column is the pivot.
// Operands are row-major and without gaps: storage, offset; one code serves all. Everything is computed in double.
#include "cpu.h"
#include "linear.h"

#include <algorithm>
#include <atomic>

using namespace mt;

extern PyMethodDef linear_methods[];  // no other file needs to know

namespace {

constexpr int64_t MOST = 64;  // rows of a matrix; larger ones are LAPACK's

// ---------------------------------------------------------------- one matrix

// a = P L U in place; false where a pivot is zero or no number. pivots: the row that was exchanged with row k.
MT_INLINE bool factor(double* MT_RESTRICT a, int64_t n, int32_t* pivots) {
    for (int64_t k = 0; k < n; ++k) {
        int64_t best = k;
        double most = std::fabs(a[k * n + k]);
        for (int64_t i = k + 1; i < n; ++i) {
            const double size = std::fabs(a[i * n + k]);
            if (size > most) most = size, best = i;
        }
        pivots[k] = (int32_t)best;
        if (!(most > 0 && most <= std::numeric_limits<double>::max())) return false;
        if (best != k) std::swap_ranges(a + k * n, a + k * n + n, a + best * n);
        const double *top = a + k * n, pivot = top[k];
        for (int64_t i = k + 1; i < n; ++i) {
            double* row = a + i * n;
            const double by = row[k] /= pivot;
#pragma GCC ivdep
            for (int64_t j = k + 1; j < n; ++j) row[j] -= by * top[j];
        }
    }
    return true;
}

// Row i of x, of w columns, without what rows [begin, end) take from it, divided by the diagonal unless that is ones.
template <class A>
MT_INLINE void divide_row(const A* a, int64_t n, double* MT_RESTRICT x, int64_t w, bool unit, int64_t i, int64_t begin,
                          int64_t end) {
    double* to = x + i * w;
    for (int64_t k = begin; k < end; ++k) {
        const double by = (double)a[i * n + k], *from = x + k * w;
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) to[j] -= by * from[j];
    }
    if (!unit)
        for (int64_t j = 0; j < w; ++j) to[j] /= (double)a[i * n + i];
}
template <class A> MT_INLINE void divide_by(const A* a, int64_t n, double* x, int64_t w, bool upper, bool unit) {
    if (upper)
        for (int64_t i = n - 1; i >= 0; --i) divide_row(a, n, x, w, unit, i, i + 1, n);
    else
        for (int64_t i = 0; i < n; ++i) divide_row(a, n, x, w, unit, i, 0, i);
}
// x of w columns is divided by the upper triangle, or by the lower one. Few columns are best known to the compiler.
template <class A> MT_INLINE void divide(const A* a, int64_t n, double* x, int64_t w, bool upper, bool unit) {
    if (w == 1) divide_by(a, n, x, 1, upper, unit);
    else if (w == 4) divide_by(a, n, x, 4, upper, unit);
    else divide_by(a, n, x, w, upper, unit);
}

// The lower factor of a, whose upper triangle is zeros, in its place; false where it has none.
MT_INLINE bool cholesky_factor(double* MT_RESTRICT a, int64_t n) {
    double column[MOST];
    for (int64_t k = 0; k < n; ++k) {
        const double square = a[k * n + k];
        if (!(square > 0 && square <= std::numeric_limits<double>::max())) return false;
        const double pivot = std::sqrt(square);
        a[k * n + k] = pivot;
        for (int64_t i = k + 1; i < n; ++i) column[i] = a[i * n + k] /= pivot;
        for (int64_t i = k + 1; i < n; ++i) {
            double* row = a + i * n;
            const double by = column[i];
#pragma GCC ivdep
            for (int64_t j = k + 1; j <= i; ++j) row[j] -= by * column[j];
        }
    }
    return true;
}

// ---------------------------------------------------------------- batches

struct Batch {
    int64_t count, n;
    int code;
};

Batch parse_batch(PyObject* const* args) {
    const Batch b{as_int(args[0]), as_int(args[1]), as_code(args[2])};
    if (b.count < 0 || b.n < 1 || b.n > MOST) fail(PyExc_ValueError, "small matrices are expected");
    if (b.code != F32 && b.code != F64) fail(PyExc_ValueError, "matrices of float or double are expected");
    return b;
}

// f(type, i) for each matrix, in the threads; whether it was true of all.
template <class F> bool each(const Batch& b, int64_t work, F&& f) {
    std::atomic<bool> fine{true};
    const int64_t cost = std::max<int64_t>(1, saturated_mul(b.n * b.n, work));
    GilRelease unlocked(saturated_mul(b.count, cost));
    const auto run = [&](auto type) {
        parallel_for(b.count, std::max<int64_t>(1, GRAIN / cost), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end && fine.load(std::memory_order_relaxed); ++i)
                if (!f(type, i)) fine = false;
        });
    };
    if (b.code == F32) run(float());
    else run(double());
    return fine;
}

// lu_small(count, n, code, a(2), lu(2), pivots(2) of int32, counted from 1)
PyObject* lu_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("lu_small", nargs, 9);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, size = checked_mul(n, n), all = checked_mul(b.count, size);
        char *a = parse_memory(args + 3, all, ITEMSIZE[b.code]), *lu = parse_memory(args + 5, all, ITEMSIZE[b.code]);
        int32_t* pivots = reinterpret_cast<int32_t*>(parse_memory(args + 7, checked_mul(b.count, n), 4));
        return PyBool_FromLong(each(b, n, [&](auto type, int64_t i) {
            using A = decltype(type);
            const A* from = reinterpret_cast<const A*>(a) + i * size;
            int32_t* places = pivots + i * n;
            double f[MOST * MOST];
            bool fine = false;
            std::copy(from, from + size, f);
            at_level(MT_BODY { fine = factor(f, n, places); });
            std::copy(f, f + size, reinterpret_cast<A*>(lu) + i * size);
            for (int64_t k = 0; fine && k < n; ++k) ++places[k];
            return fine;
        }));
    });
}

// solve_small(count, n, code, a(2), b(2), x(2), width, lu(2), pivots(2)): a x = b, with the factors of a; b None: of ones on
// the diagonal; lu and pivots None: they are not wanted
PyObject* solve_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("solve_small", nargs, 14);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, w = as_int(args[9]), size = checked_mul(n, n);
        if (w < 0) fail(PyExc_ValueError, "solve_small() expects columns");
        const int64_t all = checked_mul(b.count, size), wide = checked_mul(n, w), sides = checked_mul(b.count, wide);
        const bool identity = args[5] == Py_None, kept = args[10] != Py_None;
        if (identity && w != n) fail(PyExc_ValueError, "solve_small() expects columns");
        const char* a = parse_memory(args + 3, all, ITEMSIZE[b.code]);
        const char* right = identity ? nullptr : parse_memory(args + 5, sides, ITEMSIZE[b.code]);
        char* x = parse_memory(args + 7, sides, ITEMSIZE[b.code]);
        char* lu = kept ? parse_memory(args + 10, all, ITEMSIZE[b.code]) : nullptr;
        char* places = kept ? parse_memory(args + 12, checked_mul(b.count, n), 4) : nullptr;
        return PyBool_FromLong(each(b, saturated_add(n, w), [&](auto type, int64_t i) {
            using A = decltype(type);
            double f[MOST * MOST];
            int32_t pivots[MOST];
            const Scratch room(wide, sizeof(double));
            double* sum = room.as<double>();
            const A* from = reinterpret_cast<const A*>(a) + i * size;
            bool fine = false;
            std::copy(from, from + size, f);
            at_level(MT_BODY {
                fine = factor(f, n, pivots);
                if (fine) {
                    if (identity)
                        for (int64_t k = 0; k < n * n; ++k) sum[k] = (double)(k % (n + 1) == 0);
                    else std::copy_n(reinterpret_cast<const A*>(right) + i * wide, wide, sum);
                    for (int64_t k = 0; k < n; ++k)
                        if (pivots[k] != k) std::swap_ranges(sum + k * w, sum + k * w + w, sum + pivots[k] * w);
                    divide(f, n, sum, w, false, true);
                    divide(f, n, sum, w, true, false);
                    std::copy_n(sum, wide, reinterpret_cast<A*>(x) + i * wide);
                }
            });
            if (kept) std::copy_n(f, size, reinterpret_cast<A*>(lu) + i * size);
            for (int64_t k = 0; kept && fine && k < n; ++k)
                reinterpret_cast<int32_t*>(places)[i * n + k] = pivots[k] + 1;
            return fine;
        }));
    });
}

// det_small(count, n, code, a(2), out(2), log(2)): the product of the pivots; where log is wanted, the sign of the product and
// the logarithm of its size
PyObject* det_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("det_small", nargs, 9);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, size = checked_mul(n, n);
        const char* a = parse_memory(args + 3, checked_mul(b.count, size), ITEMSIZE[b.code]);
        char* out = parse_memory(args + 5, b.count, ITEMSIZE[b.code]);
        char* logs = args[7] == Py_None ? nullptr : parse_memory(args + 7, b.count, ITEMSIZE[b.code]);
        return PyBool_FromLong(each(b, n, [&](auto type, int64_t i) {
            using A = decltype(type);
            double f[MOST * MOST];
            int32_t pivots[MOST];
            const A* from = reinterpret_cast<const A*>(a) + i * size;
            std::copy(from, from + size, f);
            bool fine = false;
            at_level(MT_BODY { fine = factor(f, n, pivots); });
            double product = 1, log = 0, sign = 1;
            for (int64_t k = 0; fine && k < n; ++k) {
                const double pivot = pivots[k] == k ? f[k * n + k] : -f[k * n + k];
                product *= pivot;
                if (logs == nullptr) continue;
                log += std::log(std::fabs(pivot));
                sign = pivot < 0 ? -sign : sign;
            }
            reinterpret_cast<A*>(out)[i] = (A)(logs ? sign : product);
            if (logs) reinterpret_cast<A*>(logs)[i] = (A)log;
            return fine;
        }));
    });
}

// cholesky_small(count, n, code, a(2), out(2)): the lower factor of the lower triangle
PyObject* cholesky_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cholesky_small", nargs, 7);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, size = checked_mul(n, n), all = checked_mul(b.count, size);
        const char* a = parse_memory(args + 3, all, ITEMSIZE[b.code]);
        char* out = parse_memory(args + 5, all, ITEMSIZE[b.code]);
        return PyBool_FromLong(each(b, n, [&](auto type, int64_t i) {
            using A = decltype(type);
            const A* from = reinterpret_cast<const A*>(a) + i * size;
            double f[MOST * MOST];
            for (int64_t r = 0; r < n; ++r)
                for (int64_t k = 0; k < n; ++k) f[r * n + k] = k <= r ? (double)from[r * n + k] : 0.0;
            bool fine = false;
            at_level(MT_BODY { fine = cholesky_factor(f, n); });
            std::copy(f, f + size, reinterpret_cast<A*>(out) + i * size);
            return fine;
        }));
    });
}

// triangular_small(count, n, code, a(2), x(2), width, upper, unit): x, which holds the right side, is divided by a
PyObject* triangular_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("triangular_small", nargs, 10);
        const Batch b = parse_batch(args);
        const int64_t n = b.n, w = as_int(args[7]), size = checked_mul(n, n);
        if (w < 0) fail(PyExc_ValueError, "triangular_small() expects columns");
        const int64_t wide = checked_mul(n, w);
        const char* a = parse_memory(args + 3, checked_mul(b.count, size), ITEMSIZE[b.code]);
        char* x = parse_memory(args + 5, checked_mul(b.count, wide), ITEMSIZE[b.code]);
        const bool upper = as_bool(args[8]), unit = as_bool(args[9]);
        each(b, w, [&](auto type, int64_t i) {
            using A = decltype(type);
            const A* from = reinterpret_cast<const A*>(a) + i * size;
            A* to = reinterpret_cast<A*>(x) + i * wide;
            const Scratch room(wide, sizeof(double));
            double* sum = room.as<double>();
            at_level(MT_BODY {
                std::copy_n(to, wide, sum);
                divide(from, n, sum, w, upper, unit);
                std::copy_n(sum, wide, to);
            });
            return true;
        });
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef linear_methods[] = {
    MT_METHOD("lu_small", lu_small, "P L U of each matrix; False where one is singular or not finite."),
    MT_METHOD("solve_small", solve_small, "Solutions, or inverses; False where a matrix is singular or not finite."),
    MT_METHOD("det_small", det_small, "Determinants; False where a matrix is singular or not finite."),
    MT_METHOD("cholesky_small", cholesky_small, "Lower factors; False where a matrix is not positive definite."),
    MT_METHOD("triangular_small", triangular_small, "Divides by triangles."),
    {nullptr, nullptr, 0, nullptr}};
