// Orthogonal factors, spectra and parts of factors of many small matrices, and cross products.
//
// Invariant: signs are LAPACK's: a reflection makes the diagonal of R have the sign opposite to the column's first element,
// and a column that is zero below the diagonal is left alone. Only finite matrices are served; of any other in the batch
// False is answered, and the caller takes another way for all of them. Operands are row-major and without gaps: storage,
// offset; one code serves all. Everything is computed in double.
//   qr_small(count, m, n, code, a(2), k, q(2)|None, r(2)) -> bool        q: m x k, r: k x n, k at least min(m, n)
//   lstsq_small(count, m, n, code, a(2), b(2), x(2), width, most) -> bool
//       b: m x width, x: n x width, m at least n; False where the condition of a matrix is above `most`
//   spectrum_small(count, m, n, code, a(2), out(2), symmetric) -> bool
//       symmetric: eigenvalues of the lower triangle, rising; otherwise singular values, falling
//   unpack_lu(count, m, n, code, lu(2), pivots(2), p(2)|None, l(2), u(2)) -> bool        False: a pivot is no row
//   cross3(a(4), b(4), out(4), shape) -> None      strided operands of one code, float or double; the dimension of three is
//       the last of `shape`
#include "cpu.h"
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
Batch parse_matrices(PyObject* const* args, int64_t most = MOST) {
    const Batch b{as_int(args[0]), as_int(args[1]), as_int(args[2]), as_code(args[3])};
    if (b.count < 0 || b.m < 1 || b.n < 1 || b.m > most || b.n > most)
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

// ---------------------------------------------------------------- least squares

// Whether the triangle of r (n x n, rows n apart) is far from singular.
bool is_regular(const double* r, int64_t n, double most) {
    double inverse[MOST * MOST], size = 0, other = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
        const double pivot = r[i * n + i];
        if (pivot == 0) return false;
        for (int64_t j = i; j < n; ++j) {
            double sum = i == j;
            for (int64_t k = i + 1; k <= j; ++k) sum -= r[i * n + k] * inverse[k * n + j];
            inverse[i * n + j] = sum / pivot;
            size += r[i * n + j] * r[i * n + j], other += inverse[i * n + j] * inverse[i * n + j];
        }
    }
    return std::sqrt(size) * std::sqrt(other) < most;
}

PyObject* lstsq_small(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("lstsq_small", nargs, 12);
        const Batch b = parse_matrices(args);
        const int64_t m = b.m, n = b.n, w = as_int(args[10]), item = ITEMSIZE[b.code];
        const double most = as_double(args[11]);
        if (m < n || w < 1) fail(PyExc_ValueError, "lstsq_small() expects rows and columns");
        const char* a = parse_memory(args + 4, b.all(m, n), item);
        const char* right = parse_memory(args + 6, checked_mul(b.count, checked_mul(m, w)), item);
        char* x = parse_memory(args + 8, checked_mul(b.count, checked_mul(n, w)), item);
        const Scratch room(checked_mul(m, w), sizeof(double));
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            double f[MOST * MOST], taus[MOST], *y = room.as<double>();
            if (!read_finite(reinterpret_cast<const A*>(a) + i * m * n, m * n, f)) return false;
            if (!read_finite(reinterpret_cast<const A*>(right) + i * m * w, m * w, y)) return false;
            reflect(f, m, n, taus);
            if (!is_regular(f, n, most)) return false;
            A* to = reinterpret_cast<A*>(x) + i * n * w;
            for (int64_t c = 0; c < w; ++c) {
                for (int64_t k = 0; k < n; ++k) {
                    double sum = y[k * w + c];
                    for (int64_t r = k + 1; r < m; ++r) sum += f[r * n + k] * y[r * w + c];
                    sum *= taus[k];
                    y[k * w + c] -= sum;
                    for (int64_t r = k + 1; r < m; ++r) y[r * w + c] -= sum * f[r * n + k];
                }
                for (int64_t k = n - 1; k >= 0; --k) {
                    double sum = y[k * w + c];
                    for (int64_t j = k + 1; j < n; ++j) sum -= f[k * n + j] * y[j * w + c];
                    y[k * w + c] = sum / f[k * n + k];
                    to[k * w + c] = (A)y[k * w + c];
                }
            }
            return true;
        }));
    });
}

// ---------------------------------------------------------------- spectra

constexpr int STEPS = 60;  // most of them until an eigenvalue is found

// What neglected elements may be, beside the largest: results are rounded to A.
template <class A> constexpr double SMALL = std::is_same<A, float>::value ? 1e-11 : 1e-16;

// x (n elements, `step` apart) becomes beta e1 by I - tau v v'. v begins with one; answers beta.
MT_INLINE double reflection(const double* x, int64_t step, int64_t n, double* v, double& tau) {
    double below = 0;
    for (int64_t i = 1; i < n; ++i) v[i] = x[i * step], below += v[i] * v[i];
    v[0] = 1, tau = 0;
    const double first = x[0];
    if (below == 0) return first;
    const double beta = -std::copysign(std::sqrt(first * first + below), first), by = 1 / (first - beta);
    tau = (beta - first) / beta;
    for (int64_t i = 1; i < n; ++i) v[i] *= by;
    return beta;
}

// A symmetric matrix by reflections from both sides: what is left is its diagonal d and what lies beside it, e.
MT_INLINE void make_tridiagonal(double* a, int64_t n, double* d, double* e) {
    double v[MOST], w[MOST];
    for (int64_t k = 0; k + 1 < n; ++k) {
        const int64_t rest = n - k - 1;
        double* const block = a + (k + 1) * (n + 1);
        double tau;
        d[k] = a[k * (n + 1)];
        e[k] = reflection(a + (k + 1) * n + k, n, rest, v, tau);
        if (tau == 0) continue;
        double half = 0;
        for (int64_t i = 0; i < rest; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < rest; ++j) sum += block[i * n + j] * v[j];
            w[i] = tau * sum, half += w[i] * v[i];
        }
        half *= tau / 2;
        for (int64_t i = 0; i < rest; ++i) w[i] -= half * v[i];
        for (int64_t i = 0; i < rest; ++i)
            for (int64_t j = 0; j < rest; ++j) block[i * n + j] -= v[i] * w[j] + w[i] * v[j];
    }
    d[n - 1] = a[n * n - 1];
}

// A matrix of m >= n rows by reflections from both sides: its diagonal d and what lies above it, e.
MT_INLINE void make_bidiagonal(double* a, int64_t m, int64_t n, double* d, double* e) {
    double v[MOST], w[MOST];
    for (int64_t k = 0; k < n; ++k) {
        const int64_t rows = m - k, rest = n - k - 1;
        double* const block = a + k * n + k + 1;
        double tau;
        d[k] = reflection(a + k * (n + 1), n, rows, v, tau);
        if (rest == 0) continue;
        for (int64_t j = 0; j < rest; ++j) w[j] = 0;
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < rest; ++j) w[j] += v[i] * block[i * n + j];
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < rest; ++j) block[i * n + j] -= tau * v[i] * w[j];
        e[k] = reflection(block, 1, rest, v, tau);
        for (int64_t i = 1; i < rows; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < rest; ++j) sum += block[i * n + j] * v[j];
            for (int64_t j = 0; j < rest; ++j) block[i * n + j] -= tau * sum * v[j];
        }
    }
}

// The eigenvalues of [[a, b], [b, c]], in a and c: the larger one has no cancellation, and from it the other has none.
MT_INLINE void values_of_two(double& a, double b, double& c) {
    const double sum = a + c, root = std::hypot(a - c, 2 * b);
    if (sum == 0) {
        a = root / 2, c = -a;
        return;
    }
    const double more = std::fabs(a) > std::fabs(c) ? a : c, less = std::fabs(a) > std::fabs(c) ? c : a;
    const double first = (sum + std::copysign(root, sum)) / 2;
    a = first, c = more / first * less - b / first * b;
}

// The eigenvalues of a symmetric matrix of three diagonals, in d: rotations with shifts chase what is beside the diagonal
// away, from its end up. e: one element fewer than d, and one of room. False if they do not end.
MT_INLINE bool tridiagonal_values(double* d, double* e, int64_t n, double small) {
    double most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(d[i]) + (i + 1 < n ? std::fabs(e[i]) : 0));
    small *= most;
    e[n - 1] = 0;
    for (int64_t l = 0; l < n; ++l)
        for (int step = 0;; ++step) {
            int64_t end = l;
            while (end + 1 < n && std::fabs(e[end]) > small) ++end;
            if (end == l) break;
            if (end == l + 1) {
                values_of_two(d[l], e[l], d[end]), e[l] = 0;
                break;
            }
            if (step == STEPS) return false;
            // The shift: the eigenvalue of the first two rows that is nearer to the first.
            const double slope = (d[l + 1] - d[l]) / (2 * e[l]);
            double g = d[end] - d[l] + e[l] / (slope + std::copysign(std::sqrt(slope * slope + 1), slope));
            double sine = 1, cosine = 1, moved = 0;
            int64_t i = end - 1;
            for (; i >= l; --i) {
                const double f = sine * e[i], b = cosine * e[i], size = std::sqrt(f * f + g * g);
                e[i + 1] = size;
                if (size == 0) break;
                sine = f / size, cosine = g / size;
                g = d[i + 1] - moved;
                const double both = (d[i] - g) * sine + 2 * cosine * b;
                moved = sine * both;
                d[i + 1] = g + moved;
                g = cosine * both - b;
            }
            if (i >= l) {
                d[i + 1] -= moved, e[end] = 0;
                continue;
            }
            d[l] -= moved, e[l] = g, e[end] = 0;
        }
    return true;
}

// Rising.
MT_INLINE bool eigenvalues(double* a, int64_t n, double* values, double small) {
    double e[MOST];
    make_tridiagonal(a, n, values, e);
    if (!tridiagonal_values(values, e, n, small)) return false;
    std::sort(values, values + n);
    return true;
}

// Falling. They are the eigenvalues that are not negative of the matrix with the two diagonals in turns beside zeros.
MT_INLINE bool singular_values(double* a, int64_t m, int64_t n, double* values, double small) {
    double d[MOST], e[MOST], zeros[2 * MOST] = {}, beside[2 * MOST];
    make_bidiagonal(a, m, n, d, e);
    for (int64_t k = 0; k < n; ++k) beside[2 * k] = d[k], beside[2 * k + 1] = k + 1 < n ? e[k] : 0;
    if (!tridiagonal_values(zeros, beside, 2 * n, small)) return false;
    std::sort(zeros, zeros + 2 * n, [](double x, double y) { return x > y; });
    for (int64_t k = 0; k < n; ++k) values[k] = std::max(0.0, zeros[k]);
    return true;
}

// The same for floats, whose squares are exact in double: roots of the eigenvalues of a product of the matrix and itself.
// What that loses is less than a float's rounding of the largest. `rows`: of the m lines of n that are multiplied.
MT_INLINE bool singular_roots(const double* a, int64_t m, int64_t n, bool rows, double* values) {
    double squares[MOST * MOST];
    const int64_t k = rows ? m : n, length = rows ? n : m, step = rows ? 1 : n, line = rows ? n : 1;
    if (k < 1 || k > MOST) return false;
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < length; ++p) sum += a[i * line + p * step] * a[j * line + p * step];
            squares[i * k + j] = squares[j * k + i] = sum;
        }
    if (!eigenvalues(squares, k, values, SMALL<double>)) return false;
    std::reverse(values, values + k);
    for (int64_t i = 0; i < k; ++i) values[i] = std::sqrt(std::max(0.0, values[i]));
    return true;
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
            bool fine = false;
            at_level(MT_BODY {
                if (symmetric) {
                    for (int64_t r = 0; r < n; ++r)
                        for (int64_t c = 0; c <= r; ++c) f[r * n + c] = f[c * n + r] = given[r * n + c];
                    fine = eigenvalues(f, n, values, SMALL<A>);
                } else if (std::is_same<A, float>::value) {
                    fine = singular_roots(given, m, n, m < n, values);
                } else if (m >= n) {
                    fine = singular_values(given, m, n, values, SMALL<A>);
                } else {
                    for (int64_t r = 0; r < m; ++r)
                        for (int64_t c = 0; c < n; ++c) f[c * m + r] = given[r * n + c];
                    fine = singular_values(f, n, m, values, SMALL<A>);
                }
            });
            for (int64_t e = 0; fine && e < k; ++e) reinterpret_cast<A*>(out)[i * k + e] = (A)values[e];
            return fine;
        }));
    });
}

// ---------------------------------------------------------------- parts of factors

PyObject* unpack_lu(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("unpack_lu", nargs, 14);
        const Batch b = parse_matrices(args, std::numeric_limits<int32_t>::max());
        const int64_t m = b.m, n = b.n, k = b.small(), item = ITEMSIZE[b.code];
        const char* lu = parse_memory(args + 4, b.all(m, n), item);
        const char* pivots = parse_memory(args + 6, b.all(k, 1), 4);
        char* p = args[8] == Py_None ? nullptr : parse_memory(args + 8, b.all(m, m), item);
        char *l = parse_memory(args + 10, b.all(m, k), item), *u = parse_memory(args + 12, b.all(k, n), item);
        return PyBool_FromLong(each(b, [&](auto type, int64_t i) {
            using A = decltype(type);
            const A* from = reinterpret_cast<const A*>(lu) + i * m * n;
            A *lower = reinterpret_cast<A*>(l) + i * m * k, *upper = reinterpret_cast<A*>(u) + i * k * n;
            for (int64_t r = 0; r < m; ++r) {
                const int64_t below = std::min(r, k), above = std::min(r, n);
                const A* row = from + r * n;
                std::copy(row, row + below, lower + r * k);
                std::fill(lower + r * k + below, lower + (r + 1) * k, A(0));
                if (r < k) lower[r * k + r] = A(1);
                else continue;
                std::fill(upper + r * n, upper + r * n + above, A(0));
                std::copy(row + above, row + n, upper + r * n + above);
            }
            if (!p) return true;
            const Scratch room(m, sizeof(int64_t));
            int64_t* const order = room.as<int64_t>();
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
    MT_METHOD("lstsq_small", lstsq_small, "Least squares; False where a matrix is not far from singular."),
    MT_METHOD("spectrum_small", spectrum_small, "Eigenvalues or singular values; False where a matrix is not finite."),
    MT_METHOD("unpack_lu", unpack_lu, "P, L and U of factors; False where a pivot is no row."),
    MT_METHOD("cross3", cross3, "Cross products along the last dimension."),
    {nullptr, nullptr, 0, nullptr}};
