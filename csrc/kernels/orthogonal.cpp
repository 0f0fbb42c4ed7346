// Orthogonal factors, spectra and parts of factors of many small matrices, and cross products.
//
// Invariant: signs are LAPACK's: a reflection makes the diagonal of R have the sign opposite to the column's first element,
// and a column that is zero below the diagonal is left alone. Only finite matrices are served; of any other in the batch
// False is answered, and the caller takes another way for all of them. Operands are row-major and without gaps: storage,
// offset; one code serves all. Everything is computed in double.
//   qr_small(count, m, n, code, a(2), k, q(2)|None, r(2)) -> bool        q: m x k, r: k x n, k at least min(m, n)
//   spectrum_small(count, m, n, code, a(2), out(2), symmetric) -> bool
//       symmetric: eigenvalues of the lower triangle, rising; otherwise singular values, falling
//   unpack_small(count, m, n, code, lu(2), pivots(2), p(2)|None, l(2), u(2)) -> bool        False: a pivot is no row
//   cross3(a(4), b(4), out(4), shape) -> None      strided operands of one code, float or double; the dimension of three is
//       the last of `shape`
#include "lanes.h"
#include "linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mt;

extern PyMethodDef orthogonal_methods[];  // no other file needs to know

namespace {

constexpr int64_t MOST = 32;  // rows and columns of a matrix; larger ones are LAPACK's

struct Batch {
    int64_t count, m, n;
    int code;
    int64_t small() const { return std::min(m, n); }
    int64_t all(int64_t rows, int64_t columns) const { return checked_mul(count, rows * columns); }
};
Batch parse_matrices(PyObject* const* args) {
    const Batch b{as_int(args[0]), as_int(args[1]), as_int(args[2]), as_code(args[3])};
    if (b.count < 0 || b.m < 1 || b.n < 1 || b.m > MOST || b.n > MOST)
        fail(PyExc_ValueError, "small matrices are expected");
    if (b.code != F32 && b.code != F64) fail(PyExc_ValueError, "matrices of float or double are expected");
    return b;
}

// f(type, i) for each matrix; whether it was true of all.
template <class F> bool each(const Batch& b, F&& f) {
    const auto run = [&](auto type) {
        for (int64_t i = 0; i < b.count; ++i)
            if (!f(type, i)) return false;
        return true;
    };
    GilRelease unlocked(saturated_mul(b.count, b.m * b.n * b.small()));
    return b.code == F32 ? run(float()) : run(double());
}

template <class A> bool read_finite(const A* from, int64_t count, double* to) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        to[i] = (double)from[i];
        sum += std::fabs(to[i]);
    }
    return sum <= std::numeric_limits<double>::max();
}

// ---------------------------------------------------------------- reflections

// Makes a (m x n) upper triangular by reflections I - tau v v'; v, whose first element is one, stays below the diagonal.
void reflect(double* a, int64_t m, int64_t n, double* taus) {
    for (int64_t k = 0; k < std::min(m, n); ++k) {
        double below = 0;
        for (int64_t i = k + 1; i < m; ++i) below += a[i * n + k] * a[i * n + k];
        taus[k] = 0;
        if (below == 0) continue;
        const double first = a[k * n + k], beta = -std::copysign(std::sqrt(first * first + below), first);
        taus[k] = (beta - first) / beta;
        for (int64_t i = k + 1; i < m; ++i) a[i * n + k] /= first - beta;
        a[k * n + k] = beta;
        for (int64_t j = k + 1; j < n; ++j) {
            double sum = a[k * n + j];
            for (int64_t i = k + 1; i < m; ++i) sum += a[i * n + k] * a[i * n + j];
            sum *= taus[k];
            a[k * n + j] -= sum;
            for (int64_t i = k + 1; i < m; ++i) a[i * n + j] -= sum * a[i * n + k];
        }
    }
}

// The first `columns` columns of the product of the reflections.
template <class A> void product(const double* a, int64_t m, int64_t n, const double* taus, int64_t columns, A* out) {
    double q[MOST * MOST];
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < columns; ++j) q[i * columns + j] = i == j;
    for (int64_t k = std::min(m, n) - 1; k >= 0; --k) {
        if (taus[k] == 0) continue;
        for (int64_t j = 0; j < columns; ++j) {
            double sum = q[k * columns + j];
            for (int64_t i = k + 1; i < m; ++i) sum += a[i * n + k] * q[i * columns + j];
            sum *= taus[k];
            q[k * columns + j] -= sum;
            for (int64_t i = k + 1; i < m; ++i) q[i * columns + j] -= sum * a[i * n + k];
        }
    }
    for (int64_t i = 0; i < m * columns; ++i) out[i] = (A)q[i];
}

PyObject* qr_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("qr_small", nargs, 11);
        const Batch b = parse_matrices(args);
        const int64_t m = b.m, n = b.n, k = as_int(args[6]), item = ITEMSIZE[b.code];
        if (k < b.small() || k > m) fail(PyExc_ValueError, "qr_small() expects columns");
        const char* a = parse_memory(args + 4, b.all(m, n), item);
        char* q = args[7] == Py_None ? nullptr : parse_memory(args + 7, b.all(m, k), item);
        char* r = parse_memory(args + 9, b.all(k, n), item);
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            double f[MOST * MOST], taus[MOST];
            if (!read_finite(reinterpret_cast<const A*>(a) + i * m * n, m * n, f)) return false;
            reflect(f, m, n, taus);
            if (q) product(f, m, n, taus, k, reinterpret_cast<A*>(q) + i * m * k);
            A* to = reinterpret_cast<A*>(r) + i * k * n;
            for (int64_t row = 0; row < k; ++row)
                for (int64_t c = 0; c < n; ++c) to[row * n + c] = c >= row ? (A)f[row * n + c] : A(0);
            return true;
        }));
    });
}

// ---------------------------------------------------------------- spectra

constexpr int SWEEPS = 40;

// Eigenvalues of a symmetric matrix by rotations that each make a pair of elements zero; false if they do not end.
bool eigenvalues(double* a, int64_t n, double* values) {
    double total = 0;
    for (int64_t i = 0; i < n * n; ++i) total += a[i] * a[i];
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        double off = 0;
        for (int64_t p = 0; p < n; ++p)
            for (int64_t q = p + 1; q < n; ++q) off += a[p * n + q] * a[p * n + q];
        if (off <= total * 1e-34) {
            for (int64_t i = 0; i < n; ++i) values[i] = a[i * n + i];
            std::sort(values, values + n);
            return true;
        }
        for (int64_t p = 0; p < n; ++p)
            for (int64_t q = p + 1; q < n; ++q) {
                const double apq = a[p * n + q], app = a[p * n + p], aqq = a[q * n + q];
                if (apq == 0) continue;
                const double theta = (aqq - app) / (2 * apq);
                const double t = std::copysign(1.0, theta) / (std::fabs(theta) + std::sqrt(1 + theta * theta));
                const double c = 1 / std::sqrt(1 + t * t), s = t * c;
                for (int64_t i = 0; i < n; ++i) {
                    const double x = a[i * n + p], y = a[i * n + q];
                    a[i * n + p] = c * x - s * y;
                    a[i * n + q] = s * x + c * y;
                }
                for (int64_t i = 0; i < n; ++i) {
                    const double x = a[p * n + i], y = a[q * n + i];
                    a[p * n + i] = c * x - s * y;
                    a[q * n + i] = s * x + c * y;
                }
                a[p * n + q] = a[q * n + p] = 0;
                // What the rotation makes of the diagonal, with one rounding instead of several.
                a[p * n + p] = app - t * apq;
                a[q * n + q] = aqq + t * apq;
            }
    }
    return false;
}

// Singular values: rotations make the `count` rows of `length` orthogonal; their lengths are the values.
bool singular_values(double* a, int64_t count, int64_t length, double* values) {
    const auto dot = [&](int64_t p, int64_t q) {
        double sum = 0;
        for (int64_t i = 0; i < length; ++i) sum += a[p * length + i] * a[q * length + i];
        return sum;
    };
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        bool done = true;
        for (int64_t p = 0; p < count; ++p)
            for (int64_t q = p + 1; q < count; ++q) {
                const double pp = dot(p, p), qq = dot(q, q), pq = dot(p, q);
                if (std::fabs(pq) <= 1e-16 * std::sqrt(pp) * std::sqrt(qq)) continue;
                done = false;
                const double zeta = (qq - pp) / (2 * pq);
                const double t = std::copysign(1.0, zeta) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
                const double c = 1 / std::sqrt(1 + t * t), s = t * c;
                for (int64_t i = 0; i < length; ++i) {
                    const double x = a[p * length + i], y = a[q * length + i];
                    a[p * length + i] = c * x - s * y;
                    a[q * length + i] = s * x + c * y;
                }
            }
        if (done) {
            for (int64_t i = 0; i < count; ++i) values[i] = std::sqrt(dot(i, i));
            std::sort(values, values + count, [](double x, double y) { return x > y; });
            return true;
        }
    }
    return false;
}

PyObject* spectrum_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("spectrum_small", nargs, 9);
        const Batch b = parse_matrices(args);
        const int64_t m = b.m, n = b.n, k = b.small(), item = ITEMSIZE[b.code];
        const char* a = parse_memory(args + 4, b.all(m, n), item);
        char* out = parse_memory(args + 6, b.all(k, 1), item);
        const bool symmetric = as_bool(args[8]);
        if (symmetric && m != n) fail(PyExc_ValueError, "spectrum_small() expects square matrices");
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            double given[MOST * MOST], f[MOST * MOST], values[MOST];
            if (!read_finite(reinterpret_cast<const A*>(a) + i * m * n, m * n, given)) return false;
            // Squares of very large or very small elements would leave the range.
            double most = 0;
            for (int64_t e = 0; e < m * n; ++e) most = std::max(most, std::fabs(given[e]));
            if (most != 0 && (most > 1e100 || most < 1e-100)) return false;
            bool fine;
            if (symmetric) {
                for (int64_t r = 0; r < n; ++r)
                    for (int64_t c = 0; c <= r; ++c) f[r * n + c] = f[c * n + r] = given[r * n + c];
                fine = eigenvalues(f, n, values);
            } else if (m <= n) {
                fine = singular_values(given, m, n, values);
            } else {
                for (int64_t r = 0; r < m; ++r)
                    for (int64_t c = 0; c < n; ++c) f[c * m + r] = given[r * n + c];
                fine = singular_values(f, n, m, values);
            }
            for (int64_t e = 0; fine && e < k; ++e) reinterpret_cast<A*>(out)[i * k + e] = (A)values[e];
            return fine;
        }));
    });
}

// ---------------------------------------------------------------- parts of factors

PyObject* unpack_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("unpack_small", nargs, 14);
        const Batch b = parse_matrices(args);
        const int64_t m = b.m, n = b.n, k = b.small(), item = ITEMSIZE[b.code];
        const char* lu = parse_memory(args + 4, b.all(m, n), item);
        const char* pivots = parse_memory(args + 6, b.all(k, 1), 4);
        char* p = args[8] == Py_None ? nullptr : parse_memory(args + 8, b.all(m, m), item);
        char *l = parse_memory(args + 10, b.all(m, k), item), *u = parse_memory(args + 12, b.all(k, n), item);
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            const A* from = reinterpret_cast<const A*>(lu) + i * m * n;
            A *lower = reinterpret_cast<A*>(l) + i * m * k, *upper = reinterpret_cast<A*>(u) + i * k * n;
            for (int64_t r = 0; r < m; ++r)
                for (int64_t c = 0; c < n; ++c) {
                    const A x = from[r * n + c];
                    if (c < k) lower[r * k + c] = c < r ? x : A(c == r);
                    if (r < k) upper[r * n + c] = c >= r ? x : A(0);
                }
            if (!p) return true;
            int64_t order[MOST];
            for (int64_t r = 0; r < m; ++r) order[r] = r;
            for (int64_t r = 0; r < k; ++r) {
                const int64_t at = (int64_t)reinterpret_cast<const int32_t*>(pivots)[i * k + r] - 1;
                if (at < 0 || at >= m) return false;
                std::swap(order[r], order[at]);
            }
            A* to = reinterpret_cast<A*>(p) + i * m * m;
            std::fill(to, to + m * m, A(0));
            for (int64_t r = 0; r < m; ++r) to[order[r] * m + r] = A(1);
            return true;
        }));
    });
}

// ---------------------------------------------------------------- cross products

PyObject* cross3(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cross3", nargs, 13);
        Shape shape;
        Operand a, b, o;
        parse_shape(args[12], shape);
        parse_operand(args, shape, a);
        parse_operand(args + 4, shape, b);
        parse_operand(args + 8, shape, o);
        const int last = shape.ndim - 1;
        if (last < 0 || shape.dim[last] != 3) fail(PyExc_ValueError, "cross3() expects a last dimension of three");
        if ((a.code != F32 && a.code != F64) || b.code != a.code || o.code != a.code)
            fail(PyExc_ValueError, "cross3() expects float or double");
        if (shape.numel == 0) Py_RETURN_NONE;
        Shape outer = shape;
        outer.dim[last] = 1;
        outer.numel = shape.numel / 3;
        const int64_t item = a.itemsize, as = a.stride[last] * item, bs = b.stride[last] * item,
                      os = o.stride[last] * item;
        Loop<3> loop;
        loop_begin(loop, outer);
        loop_operand(loop, 0, a.data, outer, a.stride, item);
        loop_operand(loop, 1, b.data, outer, b.stride, item);
        loop_operand(loop, 2, o.data, outer, o.stride, item);
        loop_finish(loop);
        GilRelease unlocked(shape.numel);
        const auto run = [&](auto type) {
            using T = decltype(type);
            run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
                for (int64_t i = 0; i < n; ++i) {
                    const char *x = p[0] + i * loop.step[0][0], *y = p[1] + i * loop.step[1][0];
                    char* to = p[2] + i * loop.step[2][0];
                    const auto at = [](const char* from) { return *reinterpret_cast<const T*>(from); };
                    const T a0 = at(x), a1 = at(x + as), a2 = at(x + 2 * as);
                    const T b0 = at(y), b1 = at(y + bs), b2 = at(y + 2 * bs);
                    *reinterpret_cast<T*>(to) = a1 * b2 - a2 * b1;
                    *reinterpret_cast<T*>(to + os) = a2 * b0 - a0 * b2;
                    *reinterpret_cast<T*>(to + 2 * os) = a0 * b1 - a1 * b0;
                }
            });
        };
        if (a.code == F32) run(float());
        else run(double());
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef orthogonal_methods[] = {
    MT_METHOD("qr_small", qr_small, "Q and R of each matrix; False where one is not finite."),
    MT_METHOD("spectrum_small", spectrum_small, "Eigenvalues or singular values; False where a matrix is not finite."),
    MT_METHOD("unpack_small", unpack_small, "P, L and U of factors; False where a pivot is no row."),
    MT_METHOD("cross3", cross3, "Cross products along the last dimension."),
    {nullptr, nullptr, 0, nullptr}};
