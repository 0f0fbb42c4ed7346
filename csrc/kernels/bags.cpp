// Sums over rows of a table, and distances between rows. float32, float64; bags also float16 and bfloat16, which are added
// in float32 and rounded once.
// Invariant: each result is computed by one thread in an order of its own, so results do not depend on their number. Every
// index is compared with the table's size where it is read.
//
// An operand is 3 arguments: storage, offset, code; dense.
//   bag_rows(weight.., indices.., starts.., scale|None.., out.., where.., sizes.., n, bags, rows, width, mean, padding)
//       -> whether all went well: starts do not fall and stay within n, indices lie in the table. If not, results are void.
//       indices, starts, where, sizes: int64. padding: a row that is in no bag, or -1
//   pair_distances(x.., out.., rows, width, p)                        all pairs of rows i < j; p: 0, 1, 2, inf
//   pair_distances_backward(grad.., x.., distances.., dx.., rows, width, p)                    p: 1, 2
//   cross_distances(a.., b.., out.., batch, rows, columns, width, p)  each row of a with each row of b
#include "cpu.h"
#include "halves.h"
#include "lanes.h"
#include "vectors.h"
#include "windows.h"

#include <algorithm>
#include <atomic>

namespace mt {
namespace {

// ---------------------------------------------------------------- bags

struct Bags {
    int64_t n, bags, rows, width;
    bool mean;
    int64_t padding;
    const int64_t *indices, *starts;
    int64_t *where, *sizes;
    std::atomic<bool> fine{true};

    explicit Bags(PyObject* const* args)
        : n(parse_count(args[0])), bags(parse_count(args[1])), rows(parse_count(args[2])), width(parse_count(args[3])),
          mean(as_bool(args[4])), padding(as_int(args[5])) {}
};

constexpr int64_t COLUMNS = 64;  // held in registers while a bag's rows are added
constexpr int64_t AHEAD = 8;     // rows that are asked for before they are needed

template <class T, class A>
MT_INLINE void add_row_to(A* sum, const T* row, int64_t n, A by) {
    for (int64_t i = 0; i < n; ++i) sum[i] += (A)widen(row[i]) * by;
}

// The row of the i-th index, once it has been compared with the table's size; the one a little later is asked for.
template <class T>
MT_INLINE const T* row_at(const Bags& b, const T* weight, int64_t i, int64_t c, int64_t w, int64_t& row) {
    constexpr int64_t LINE = 64 / (int64_t)sizeof(T);
    row = read_once(b.indices + i);
    if (MT_UNLIKELY((uint64_t)row >= (uint64_t)b.rows)) return nullptr;
    if (i + AHEAD < b.n) {
        const int64_t next = read_once(b.indices + i + AHEAD);
        if ((uint64_t)next < (uint64_t)b.rows)
            for (int64_t j = 0; j < w; j += LINE) __builtin_prefetch(weight + next * b.width + c + j);
    }
    return weight + row * b.width + c;
}

// W columns of one bag, in registers.
template <int64_t W, class A>
MT_INLINE bool sum_columns(const Bags& b, const A* weight, const A* scale, int64_t begin, int64_t end, A share, A* out,
                           int64_t c) {
    constexpr int64_t L = Vec<A, 64>::LANES;
    constexpr int N = W / L;
    using V = typename Vec<A, 64>::t;
    using Loose = typename Vec<A, 64>::loose;
    V sum[N] = {};
    for (int64_t i = begin; i < end; ++i) {
        int64_t row;
        const A* from = row_at(b, weight, i, c, W, row);
        if (MT_UNLIKELY(!from)) return false;
        if (row == b.padding) continue;
        const A by = scale ? scale[i] : A(1);
#pragma GCC unroll 8
        for (int k = 0; k < N; ++k) sum[k] += *reinterpret_cast<const Loose*>(from + k * L) * by;
    }
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) *reinterpret_cast<Loose*>(out + c + k * L) = b.mean ? sum[k] / share : sum[k];
    return true;
}

#if MT_HAS_LEVELS
// At most COLUMNS columns of two-byte floats, in registers.
template <class T> MT_AVX512 MT_NOINLINE bool sum_half_columns(const Bags& b, const T* weight, const T* scale,
                                                               int64_t begin, int64_t end, float share, T* out,
                                                               int64_t c) {
    constexpr int N = COLUMNS / 16;
    const int64_t w = std::min(COLUMNS, b.width - c);
    __mmask16 mask[N];
    for (int64_t k = 0; k < N; ++k)
        mask[k] = (__mmask16)((1u << std::max<int64_t>(0, std::min<int64_t>(16, w - 16 * k))) - 1);
    Wide16 sum[N] = {};
    for (int64_t i = begin; i < end; ++i) {
        int64_t row;
        const T* from = row_at(b, weight, i, c, w, row);
        if (MT_UNLIKELY(!from)) return false;
        if (row == b.padding) continue;
        const float by = scale ? (float)widen(scale[i]) : 1.0f;
#pragma GCC unroll 4
        for (int k = 0; k < N; ++k) sum[k] += widened16<T>(_mm256_maskz_loadu_epi16(mask[k], from + 16 * k)) * by;
    }
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
        _mm256_mask_storeu_epi16(out + c + 16 * k, mask[k], narrowed16<T>(b.mean ? sum[k] / share : sum[k]));
    return true;
}
#endif

// One bag; its indices have been looked at by the caller and are read, and compared, again.
template <class T, class A>
MT_INLINE bool sum_bag(const Bags& b, const T* weight, const T* scale, int64_t begin, int64_t end, int64_t count,
                       T* out) {
    const A share = (A)std::max<int64_t>(1, count);
    int64_t c = 0;
    if constexpr (std::is_same<T, A>::value) {
        for (; c + COLUMNS <= b.width; c += COLUMNS)
            if (!sum_columns<COLUMNS>(b, weight, scale, begin, end, share, out, c)) return false;
        for (; c + 16 <= b.width; c += 16)
            if (!sum_columns<16>(b, weight, scale, begin, end, share, out, c)) return false;
    }
#if MT_HAS_LEVELS
    if constexpr (is_small_float<T>)
        for (; cpu_level >= AVX512 && c < b.width; c += COLUMNS)
            if (!sum_half_columns(b, weight, scale, begin, end, share, out, c)) return false;
#endif
    for (; c < b.width; c += COLUMNS) {
        const int64_t w = std::min(COLUMNS, b.width - c);
        A sum[COLUMNS] = {};
        for (int64_t i = begin; i < end; ++i) {
            int64_t row;
            const T* from = row_at(b, weight, i, c, w, row);
            if (MT_UNLIKELY(!from)) return false;
            if (row == b.padding) continue;
            const A by = scale ? (A)widen(scale[i]) : A(1);
            if (w == COLUMNS) add_row_to(sum, from, COLUMNS, by);
            else add_row_to(sum, from, w, by);
        }
        for (int64_t j = 0; j < w; ++j) out[c + j] = convert<T>(b.mean ? sum[j] / share : sum[j]);
    }
    return true;
}

template <class T> void run_bags(Bags& b, const T* weight, const T* scale, T* out) {
    using A = acc_t<T>;
    const int64_t each = saturated_mul(ceil_div(b.n, std::max<int64_t>(1, b.bags)), b.width);
    parallel_for(b.bags, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each)), [&](int64_t first, int64_t last) {
        bool fine = true;
        at_level(MT_BODY {
            for (int64_t k = first; k < last; ++k) {
                const int64_t begin = read_once(b.starts + k), end = k + 1 < b.bags ? read_once(b.starts + k + 1) : b.n;
                if (begin < 0 || begin > end || end > b.n) {
                    fine = false;
                    return;
                }
                int64_t count = end - begin;
                std::fill_n(b.where + begin, end - begin, k);
                for (int64_t i = begin; b.padding >= 0 && i < end; ++i) count -= read_once(b.indices + i) == b.padding;
                b.sizes[k] = count;
                fine &= sum_bag<T, A>(b, weight, scale, begin, end, count, out + k * b.width);
            }
        });
        if (!fine) b.fine = false;
    });
}

PyObject* bag_rows(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("bag_rows", nargs, 27);
        Bags b(args + 21);
        const Dense weight = parse_dense(args, checked_mul(b.rows, b.width));
        const Dense indices = parse_dense(args + 3, b.n), starts = parse_dense(args + 6, b.bags);
        const bool scaled = args[9] != Py_None;
        const Dense scale = scaled ? parse_dense(args + 9, b.n) : weight;
        const Dense out = parse_dense(args + 12, checked_mul(b.bags, b.width));
        const Dense where = parse_dense(args + 15, b.n), sizes = parse_dense(args + 18, b.bags);
        for (const Dense& d : {indices, starts, where, sizes}) expect_code("bag_rows", d.code, I64);
        for (const Dense& d : {scale, out}) expect_code("bag_rows", d.code, weight.code);
        b.indices = indices.as<int64_t>(), b.starts = starts.as<int64_t>();
        b.where = where.as<int64_t>(), b.sizes = sizes.as<int64_t>();
        // Rows before the first start would be in no bag.
        if (b.bags == 0 || read_once(b.starts) != 0) Py_RETURN_FALSE;
        dispatch_float(weight.code, "embedding_bag", [&](auto t) {
            using T = decltype(t);
            GilRelease unlocked(saturated_mul(b.n, b.width));
            run_bags<T>(b, weight.as<T>(), scaled ? scale.as<T>() : nullptr, out.as<T>());
        });
        return PyBool_FromLong(b.fine);
    });
}

// ---------------------------------------------------------------- distances

enum Kind : int { COUNT, ABSOLUTE, EUCLID, LARGEST, GREATEST };  // GREATEST: as LARGEST, without what is no number

Kind parse_kind(PyObject* o) {
    const double p = as_double(o);
    if (p == 0) return COUNT;
    if (p == 1) return ABSOLUTE;
    if (p == 2) return EUCLID;
    if (std::isinf(p) && p > 0) return LARGEST;
    fail(PyExc_ValueError, "distances of p = %g have no kernel", p);
}

// The bits of a vector of floats.
template <class V> using Bits =
    typename Vec<std::conditional_t<sizeof(std::declval<V>()[0]) == 4, uint32_t, uint64_t>, sizeof(V)>::t;

// How a difference counts, and how two such are joined: for numbers and for vectors of them.
template <Kind KIND> struct Step {
    template <class V> static MT_INLINE V of(V d) {
        if constexpr (KIND == COUNT) return d != d ? d : d != 0 ? V{} + 1 : V{};
        else if constexpr (KIND == EUCLID) return d * d;
        else if constexpr (!std::is_floating_point<V>::value) return (V)((Bits<V>)d << 1 >> 1);
        else return d < 0 ? -d : d;
    }
    template <class V> static MT_INLINE V join(V a, V b) {
        // Numbers without a sign are ordered as their bits are, and what is no number comes last.
        if constexpr (KIND == LARGEST && !std::is_floating_point<V>::value) return (Bits<V>)b > (Bits<V>)a ? b : a;
        else if constexpr (KIND == LARGEST) return b != b ? b : (b > a ? b : a);
        else if constexpr (KIND == GREATEST) return b > a ? b : a;
        else return a + b;
    }
};

template <Kind KIND, class A> MT_INLINE A distance(const A* a, const A* b, int64_t n) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int LANES = Vec<A, 64>::LANES;
    auto step = [&](int64_t i) __attribute__((always_inline)) {
        return Step<KIND>::of(V(*reinterpret_cast<const L*>(a + i)) - V(*reinterpret_cast<const L*>(b + i)));
    };
    V first{}, second{};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        first = Step<KIND>::join(first, step(i));
        second = Step<KIND>::join(second, step(i + LANES));
    }
    if (i + LANES <= n) {
        first = Step<KIND>::join(first, step(i));
        i += LANES;
    }
    A total = fold_lanes(Step<KIND>::join(first, second),
                         [](auto p, auto q) __attribute__((always_inline)) { return Step<KIND>::join(p, q); });
    for (; i < n; ++i) total = Step<KIND>::join(total, Step<KIND>::of(A(a[i] - b[i])));
    return KIND == EUCLID ? std::sqrt(total) : total;
}

// f(kind known to the compiler, a number of the dtype)
template <class F> void dispatch_distance(Kind kind, int code, F&& f) {
    auto typed = [&](auto t) {
        switch (kind) {
            case COUNT: return f(std::integral_constant<Kind, COUNT>(), t);
            case ABSOLUTE: return f(std::integral_constant<Kind, ABSOLUTE>(), t);
            case EUCLID: return f(std::integral_constant<Kind, EUCLID>(), t);
            case LARGEST: return f(std::integral_constant<Kind, LARGEST>(), t);
            default: return f(std::integral_constant<Kind, GREATEST>(), t);
        }
    };
    if (code == F32) typed(float());
    else if (code == F64) typed(double());
    else fail_dtype("distances", code);
}

MT_INLINE int64_t pair_count(int64_t rows) {
    return rows < 2 ? 0 : rows % 2 ? checked_mul(rows, (rows - 1) / 2) : checked_mul(rows / 2, rows - 1);
}
// The number of the pair (i, j), i < j.
MT_INLINE int64_t pair_at(int64_t i, int64_t j, int64_t rows) { return i * (2 * rows - i - 1) / 2 + j - i - 1; }

PyObject* pair_distances(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pair_distances", nargs, 9);
        const int64_t rows = parse_count(args[6]), width = parse_count(args[7]), pairs = pair_count(rows);
        const Kind kind = parse_kind(args[8]);
        const Dense x = parse_dense(args, checked_mul(rows, width)), o = parse_dense(args + 3, pairs);
        expect_code("pair_distances", o.code, x.code);
        dispatch_distance(kind, x.code, [&](auto known, auto t) {
            using A = decltype(t);
            GilRelease unlocked(saturated_mul(pairs, width));
            parallel_for(pairs, lane_grain(width, 1), [&](int64_t begin, int64_t end) {
                int64_t i = 0;
                while (pair_at(i + 1, i + 2, rows) <= begin && i + 2 < rows) ++i;
                at_level(MT_BODY {
                    for (int64_t k = begin; k < end; ++i) {
                        const int64_t from = i + 1 + k - pair_at(i, i + 1, rows);
                        for (int64_t j = from; j < rows && k < end; ++j, ++k)
                            o.as<A>()[k] =
                                distance<decltype(known)::value>(x.as<A>() + i * width, x.as<A>() + j * width, width);
                    }
                });
            });
        });
        Py_RETURN_NONE;
    });
}

// The gradient of row i: every other row is a partner, whichever of the two comes first.
template <bool EUCLIDEAN, class A>
MT_INLINE void pull_row(const A* g, const A* x, const A* distances, A* dx, int64_t i, int64_t rows, int64_t width) {
    std::fill_n(dx, width, A(0));
    const A* self = x + i * width;
    for (int64_t j = 0; j < rows; ++j) {
        if (j == i) continue;
        const int64_t k = i < j ? pair_at(i, j, rows) : pair_at(j, i, rows);
        const A* other = x + j * width;
        if (EUCLIDEAN) {
            const A by = distances[k] == A(0) ? A(0) : g[k] / distances[k];
            for (int64_t c = 0; c < width; ++c) dx[c] += by * (self[c] - other[c]);
        } else {
            for (int64_t c = 0; c < width; ++c) {
                const A d = self[c] - other[c];
                dx[c] += d > 0 ? g[k] : d < 0 ? -g[k] : d * 0;
            }
        }
    }
}

PyObject* pair_distances_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pair_distances_backward", nargs, 15);
        const int64_t rows = parse_count(args[12]), width = parse_count(args[13]), pairs = pair_count(rows);
        const Kind kind = parse_kind(args[14]);
        if (kind != ABSOLUTE && kind != EUCLID) fail(PyExc_ValueError, "pair_distances_backward: p must be 1 or 2");
        const Dense g = parse_dense(args, pairs), x = parse_dense(args + 3, checked_mul(rows, width));
        const Dense distances = parse_dense(args + 6, pairs), dx = parse_dense(args + 9, checked_mul(rows, width));
        for (const Dense& d : {g, distances, dx}) expect_code("pair_distances_backward", d.code, x.code);
        auto run = [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(saturated_mul(pairs, width));
            parallel_for(rows, lane_grain(saturated_mul(rows, width), 1), [&](int64_t begin, int64_t end) {
                at_level(MT_BODY {
                    for (int64_t i = begin; i < end; ++i) {
                        A* to = dx.as<A>() + i * width;
                        if (kind == EUCLID) pull_row<true>(g.as<A>(), x.as<A>(), distances.as<A>(), to, i, rows, width);
                        else pull_row<false>(g.as<A>(), x.as<A>(), distances.as<A>(), to, i, rows, width);
                    }
                });
            });
        };
        if (x.code == F32) run(float());
        else if (x.code == F64) run(double());
        else fail_dtype("distances", x.code);
        Py_RETURN_NONE;
    });
}

PyObject* cross_distances(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cross_distances", nargs, 14);
        const int64_t batch = parse_count(args[9]), rows = parse_count(args[10]), columns = parse_count(args[11]);
        const int64_t width = parse_count(args[12]), lines = checked_mul(batch, rows);
        const Kind given = parse_kind(args[13]), kind = given == LARGEST ? GREATEST : given;
        const Dense a = parse_dense(args, checked_mul(lines, width));
        const Dense b = parse_dense(args + 3, checked_numel({batch, columns, width}));
        const Dense o = parse_dense(args + 6, checked_mul(lines, columns));
        for (const Dense& d : {b, o}) expect_code("cross_distances", d.code, a.code);
        dispatch_distance(kind, a.code, [&](auto known, auto t) {
            using A = decltype(t);
            GilRelease unlocked(saturated_mul(lines, saturated_mul(columns, width)));
            parallel_for(lines, lane_grain(saturated_mul(columns, width), 1), [&](int64_t begin, int64_t end) {
                at_level(MT_BODY {
                    for (int64_t i = begin; i < end; ++i) {
                        const A* row = a.as<A>() + i * width;
                        const A* others = b.as<A>() + i / rows * columns * width;
                        for (int64_t j = 0; j < columns; ++j)
                            o.as<A>()[i * columns + j] =
                                distance<decltype(known)::value>(row, others + j * width, width);
                    }
                });
            });
        });
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef bags_methods[];  // no other file needs to know
PyMethodDef bags_methods[] = {
    MT_METHOD("bag_rows", bag_rows, "Sums or means of rows of a table, bag by bag."),
    MT_METHOD("pair_distances", pair_distances, "Distances of all pairs of rows."),
    MT_METHOD("pair_distances_backward", pair_distances_backward, "The gradient of pair_distances."),
    MT_METHOD("cross_distances", cross_distances, "Distances of the rows of two matrices."),
    {nullptr, nullptr, 0, nullptr}};
