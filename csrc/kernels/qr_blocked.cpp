// Orthogonal factors of larger matrices, one after the other: columns of a panel are reflected one by one, everything
// beside it by products of blocks (gemm.h), which have the threads.
//
// Invariant: signs are LAPACK's, as in orthogonal.cpp. Only finite matrices whose squares stay in range are served; of any
// other in the batch False is answered, and the caller takes another way for all of them. Panels depend on the shapes
// alone. Operands are row-major and without gaps: storage, offset; one code serves all.
//   qr_blocked(count, m, n, code, a(2), k, q(2)|None, r(2)) -> bool        q: m x k, r: k x n, k at least min(m, n)
#include "cpu.h"
#include "gemm.h"
#include "lanes.h"
#include "linear.h"

#include <algorithm>
#include <cmath>

using namespace mt;

extern PyMethodDef qr_blocked_methods[];  // no other file needs to know

namespace {

constexpr int64_t PANEL = 32;

// c = a b, or c -= a b.
template <class A>
void multiply(const A* a, int64_t ars, int64_t acs, const A* b, int64_t brs, A* c, int64_t crs, int64_t m, int64_t n,
              int64_t k, bool subtract) {
    if (m == 0 || n == 0) return;
    constexpr int code = CodeOf<A>::value;
    gemm_packed<A>({reinterpret_cast<const char*>(a), code, ars, acs}, {reinterpret_cast<const char*>(b), code, brs, 1},
                   m, n, k, {c, crs, 1, c, crs, 1, subtract ? A(-1) : A(1), subtract ? A(1) : A(0)});
}

template <class A> MT_INLINE A dot(const A* x, const A* y, int64_t n) {
    return sum_of<A>(n, MT_EACH(i) { return x[i] * y[i]; });
}

// One matrix: m x n, whose first min(m, n) columns are reflected.
template <class A> class Factors {
public:
    Factors(int64_t m, int64_t n)
        : m_(m), n_(n), k_(std::min(m, n)), panels_(checked_mul(k_, checked_add(m, PANEL)), sizeof(A)) {}

    // Leaves R in the upper triangle of w.
    void factor(A* w) {
        for (int64_t c = 0; c < k_; c += PANEL) {
            const int64_t rows = m_ - c, wide = std::min(PANEL, k_ - c);
            A *v = vectors(c), *t = triangle(c);
            at_level(MT_BODY {
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < wide; ++j) v[j * rows + i] = w[(c + i) * n_ + c + j];
                for (int64_t j = 0; j < wide; ++j) reflect(v, t, rows, wide, j, w + c * (n_ + 1));
            });
            update(c, w + c * n_ + c + wide, n_, n_ - c - wide, true);
        }
    }
    // The first `columns` columns of the product of the reflections: q is m x columns.
    void orthogonal(A* q, int64_t columns) {
        std::fill_n(q, m_ * columns, A(0));
        for (int64_t i = 0; i < std::min(m_, columns); ++i) q[i * (columns + 1)] = A(1);
        for (int64_t c = (k_ - 1) / PANEL * PANEL; c >= 0; c -= PANEL)
            update(c, q + c * (columns + 1), columns, columns - c, false);
    }

private:
    const int64_t m_, n_, k_;
    const Scratch panels_;

    // Of the panel that begins at column c: its reflections as rows of m - c, and the triangle that joins them.
    A* vectors(int64_t c) const { return panels_.template as<A>() + c * (m_ + PANEL); }
    A* triangle(int64_t c) const { return vectors(c) + std::min(PANEL, k_ - c) * m_; }

    // Column j of a panel; what becomes of it above and on the diagonal goes to `out`.
    MT_INLINE void reflect(A* v, A* t, int64_t rows, int64_t wide, int64_t j, A* out) const {
        A* x = v + j * rows;
        for (int64_t i = 0; i < j; ++i) out[i * n_ + j] = x[i], x[i] = A(0);
        const A first = x[j], below = dot(x + j + 1, x + j + 1, rows - j - 1);
        const A beta = below == 0 ? first : -std::copysign(std::sqrt(first * first + below), first);
        const A tau = below == 0 ? A(0) : (beta - first) / beta, by = below == 0 ? A(0) : 1 / (first - beta);
        out[j * n_ + j] = beta;
        x[j] = A(1);
        for (int64_t i = j + 1; i < rows; ++i) x[i] *= by;
        for (int64_t l = j + 1; l < wide && tau != 0; ++l) {
            A* y = v + l * rows;
            const A sum = tau * dot(x + j, y + j, rows - j);
#pragma GCC ivdep
            for (int64_t i = j; i < rows; ++i) y[i] -= sum * x[i];
        }
        A together[PANEL];
        for (int64_t l = 0; l < j; ++l) together[l] = dot(v + l * rows + j, x + j, rows - j);
        for (int64_t i = 0; i < wide; ++i) {
            A sum = 0;
            for (int64_t l = i; l < j; ++l) sum += t[i * PANEL + l] * together[l];
            t[i * PANEL + j] = i < j ? -tau * sum : i == j ? tau : A(0);
        }
    }

    // c -= V T' V' c, or with T for T'.
    void update(int64_t first, A* c, int64_t step, int64_t columns, bool turned) const {
        const int64_t rows = m_ - first, wide = std::min(PANEL, k_ - first);
        if (columns <= 0) return;
        const A *v = vectors(first), *t = triangle(first);
        const Scratch room(checked_mul(2 * wide, columns), sizeof(A));
        A *one = room.as<A>(), *two = one + wide * columns;
        multiply(v, rows, int64_t(1), (const A*)c, step, one, columns, wide, columns, rows, false);
        multiply(t, turned ? 1 : PANEL, turned ? PANEL : 1, (const A*)one, columns, two, columns, wide, columns, wide,
                 false);
        multiply(v, int64_t(1), rows, (const A*)two, columns, c, step, rows, columns, wide, true);
    }
};

// Whether sums of squares of the elements stay in range.
template <class A> bool in_range(const A* x, int64_t count) {
    constexpr A LARGE = std::is_same<A, float>::value ? A(1e15) : A(1e140);
    A most = 0, sum = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(x[i])), sum += x[i] * A(0);
    return sum == 0 && most <= LARGE && (most == 0 || most >= 1 / LARGE);
}

PyObject* qr_blocked(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("qr_blocked", nargs, 11);
        const int64_t count = as_int(args[0]), m = as_int(args[1]), n = as_int(args[2]), k = as_int(args[6]);
        const int code = as_code(args[3]), item = ITEMSIZE[code];
        if (count < 0 || m < 1 || n < 1 || k < std::min(m, n) || k > m)
            fail(PyExc_ValueError, "qr_blocked() expects matrices and columns");
        if (code != F32 && code != F64) fail(PyExc_ValueError, "matrices of float or double are expected");
        const int64_t size = checked_mul(m, n), tall = checked_mul(m, k), wide = checked_mul(k, n);
        const char* a = parse_memory(args + 4, checked_mul(count, size), item);
        char* q = args[7] == Py_None ? nullptr : parse_memory(args + 7, checked_mul(count, tall), item);
        char* r = parse_memory(args + 9, checked_mul(count, wide), item);
        const auto run = [&](auto type) {
            using A = decltype(type);
            const A* from = reinterpret_cast<const A*>(a);
            if (!in_range(from, count * size)) return false;
            Factors<A> f(m, n);
            const Scratch room(size, sizeof(A));
            A* w = room.as<A>();
            for (int64_t i = 0; i < count; ++i) {
                std::copy_n(from + i * size, size, w);
                f.factor(w);
                if (q) f.orthogonal(reinterpret_cast<A*>(q) + i * tall, k);
                A* to = reinterpret_cast<A*>(r) + i * wide;
                for (int64_t row = 0; row < k; ++row) {
                    const int64_t above = std::min(row, n);
                    std::fill_n(to + row * n, above, A(0));
                    std::copy_n(w + row * n + above, n - above, to + row * n + above);
                }
            }
            return true;
        };
        GilRelease unlocked(saturated_mul(count, saturated_mul(size, std::min(m, n))));
        return PyBool_FromLong(code == F32 ? run(float()) : run(double()));
    });
}

}  // namespace

PyMethodDef qr_blocked_methods[] = {
    MT_METHOD("qr_blocked", qr_blocked, "Q and R of larger matrices; False where one is not finite."),
    {nullptr, nullptr, 0, nullptr}};
