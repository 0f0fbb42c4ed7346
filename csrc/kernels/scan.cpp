// Kernels that put the elements of a lane in relation to each other: running sums and products, sorting (in the table
// of index.cpp). Invariant: a lane is worked on by one thread, from its first element to its last.
//
// An operand is 4 arguments: storage, offset, strides, code; `out`, `values` and `indices` may be None.
//   cumsum(a.., out|None.., shape, dim, ccode, op) -> out
//       op: 0 sum, 1 product. a is cast to ccode first, the result has dtype ccode. Accumulates as PyTorch does:
//       float32 in double, float16 and bfloat16 in float32, integers in 64 bits.
//   cumulative_extreme(a.., values.., indices.., shape, dim, largest)      the largest or smallest so far, and its place
//   sort(a.., values|None.., indices|None.., shape, dim, descending) -> (values, indices)
//   topk(a.., values.., indices.., shape, dim, k, largest)       in order; of equal elements the first; shape: of a
//       always stable; NaN counts as larger than every number; -0 equals 0; indices: int64. Not for complex or float8.
#include "select.h"

#include <algorithm>

namespace mt {
namespace {

// ---------------------------------------------------------------- running sums and products

// The type PyTorch accumulates in.
// clang-format off: a table
template <class T> struct ScanAcc { using t = uint64_t; };
template <> struct ScanAcc<float> { using t = double; };
template <> struct ScanAcc<double> { using t = double; };
template <> struct ScanAcc<Half> { using t = float; };
template <> struct ScanAcc<BFloat16> { using t = float; };
template <> struct ScanAcc<Complex<float>> { using t = Complex<double>; };
template <> struct ScanAcc<Complex<double>> { using t = Complex<double>; };
// clang-format on

// Sums and products of integers wrap: those of signed ones are those of unsigned ones.
template <class T, bool = std::is_integral<T>::value> struct Wrapped {
    using t = T;
};
template <class T> struct Wrapped<T, true> {
    using t = typename std::make_unsigned<T>::type;
};

template <class A, bool PRODUCT> MT_INLINE A join(A a, A b) {
    if constexpr (!IsComplex<A>::value) return PRODUCT ? a * b : a + b;
    else if constexpr (PRODUCT) return A{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else return A{a.re + b.re, a.im + b.im};
}
template <class T> MT_INLINE typename ScanAcc<T>::t to_acc(T x) {
    using A = typename ScanAcc<T>::t;
    if constexpr (IsComplex<T>::value) return A{x.re, x.im};
    else return (A)widen(x);
}
template <class A, bool PRODUCT> MT_INLINE A neutral() {
    if constexpr (IsComplex<A>::value) return A{PRODUCT ? 1.0 : 0.0, 0.0};
    else return A(PRODUCT ? 1 : 0);
}

// COUNT lanes in step: each waits for its own last sum only.
template <class T, bool PRODUCT, int COUNT>
void scan_lanes(char* o, int64_t os, int64_t onext, const char* a, int64_t as, int64_t anext, int64_t n) {
    using A = typename ScanAcc<T>::t;
    A acc[COUNT];
    for (int j = 0; j < COUNT; ++j) acc[j] = neutral<A, PRODUCT>();
    for (int64_t i = 0; i < n; ++i)
        for (int j = 0; j < COUNT; ++j) {
            acc[j] = join<A, PRODUCT>(acc[j], to_acc(*reinterpret_cast<const T*>(a + i * as + j * anext)));
            *reinterpret_cast<T*>(o + i * os + j * onext) = convert<T>(acc[j]);
        }
}

constexpr int WIDE = 512;  // columns at once: one pass over memory in long runs
// w <= WIDE dense columns.
template <class T, bool PRODUCT>
MT_CLONES void scan_columns(char* op, int64_t os, const char* ap, int64_t as, int64_t n, int64_t w) {
    using A = typename ScanAcc<T>::t;
    A acc[WIDE];
    for (int64_t j = 0; j < w; ++j) acc[j] = neutral<A, PRODUCT>();
    for (int64_t i = 0; i < n; ++i) {
        T* o = reinterpret_cast<T*>(op + i * os);
        const T* a = reinterpret_cast<const T*>(ap + i * as);
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) {
            acc[j] = join<A, PRODUCT>(acc[j], to_acc(a[j]));
            o[j] = convert<T>(acc[j]);
        }
    }
}

// Up to four dense lanes of two-byte floats: they become float32 and come back by vectors, a stretch at a time.
template <class T, bool PRODUCT>
MT_CLONES void scan_stretches(char* op, int64_t onext, const char* ap, int64_t anext, int64_t n, int count) {
    constexpr int64_t STRETCH = 256;
    float value[4][STRETCH], acc[4];
    for (int j = 0; j < 4; ++j) acc[j] = neutral<float, PRODUCT>();
    for (int64_t at = 0; at < n; at += STRETCH) {
        const int64_t m = n - at < STRETCH ? n - at : STRETCH;
        for (int j = 0; j < count; ++j) {
            const T* a = reinterpret_cast<const T*>(ap + j * anext) + at;
            for (int64_t i = 0; i < m; ++i) value[j][i] = to_acc(a[i]);
        }
        if (count == 4) {
            for (int64_t i = 0; i < m; ++i)
                for (int j = 0; j < 4; ++j) value[j][i] = acc[j] = join<float, PRODUCT>(acc[j], value[j][i]);
        } else {
            for (int j = 0; j < count; ++j)
                for (int64_t i = 0; i < m; ++i) value[j][i] = acc[j] = join<float, PRODUCT>(acc[j], value[j][i]);
        }
        for (int j = 0; j < count; ++j) {
            T* o = reinterpret_cast<T*>(op + j * onext) + at;
            for (int64_t i = 0; i < m; ++i) o[i] = convert<T>(value[j][i]);
        }
    }
}

template <class T, bool PRODUCT> void scan_run(const Lanes<2>& lanes) {
    const int64_t n = lanes.length, os = lanes.step[0], as = lanes.step[1];
    const int64_t onext = lanes.loop.step[0][0], anext = lanes.loop.step[1][0];
    run_rows(lanes.loop, lane_grain(n, 1), [&](char* const* p, int64_t count) {
        if (lanes.columns && count >= 8 && n > 1) {
            for (int64_t j = 0; j < count; j += WIDE)
                scan_columns<T, PRODUCT>(p[0] + j * onext, os, p[1] + j * anext, as, n,
                                         std::min<int64_t>(WIDE, count - j));
            return;
        }
        int64_t j = 0;
        if constexpr (std::is_same<typename ScanAcc<T>::t, float>::value) {
            if (as == (int64_t)sizeof(T) && os == (int64_t)sizeof(T)) {
                for (; j < count; j += 4)
                    scan_stretches<T, PRODUCT>(p[0] + j * onext, onext, p[1] + j * anext, anext, n,
                                               (int)std::min<int64_t>(4, count - j));
                return;
            }
        }
        for (; j + 4 <= count; j += 4)
            scan_lanes<T, PRODUCT, 4>(p[0] + j * onext, os, onext, p[1] + j * anext, as, anext, n);
        for (; j < count; ++j) scan_lanes<T, PRODUCT, 1>(p[0] + j * onext, os, 0, p[1] + j * anext, as, 0, n);
    });
}

// ---------------------------------------------------------------- the largest so far

// Of equal elements the last takes the place; a NaN stays, until the next one.
template <class T, bool LARGEST, class A> MT_INLINE bool takes(A x, A best) {
    return (x != x) | ((best == best) & (LARGEST ? x >= best : x <= best));
}
// A lane by itself: new ones are rare, or come one after the other; a branch does not wait for the last.
template <class T, bool LARGEST>
void extreme_lane(char* v, int64_t vs, char* o, int64_t os, const char* a, int64_t as, int64_t n) {
    T best = *reinterpret_cast<const T*>(a);
    auto wide = widen(best);
    int64_t at = 0;
    for (int64_t i = 0; i < n; ++i) {
        const T x = *reinterpret_cast<const T*>(a + i * as);
        if (takes<T, LARGEST>(widen(x), wide)) best = x, wide = widen(x), at = i;
        *reinterpret_cast<T*>(v + i * vs) = best;
        *reinterpret_cast<int64_t*>(o + i * os) = at;
    }
}
// w <= WIDE dense columns.
template <class T, bool LARGEST>
MT_CLONES void extreme_columns(char* vp, int64_t vs, char* ip, int64_t is, const char* ap, int64_t as, int64_t n,
                               int64_t w) {
    using A = decltype(widen(T()));
    A best[WIDE];
    int64_t at[WIDE];
    for (int64_t j = 0; j < w; ++j) best[j] = widen(reinterpret_cast<const T*>(ap)[j]), at[j] = 0;
    for (int64_t i = 0; i < n; ++i) {
        T* v = reinterpret_cast<T*>(vp + i * vs);
        int64_t* o = reinterpret_cast<int64_t*>(ip + i * is);
        const T* a = reinterpret_cast<const T*>(ap + i * as);
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) {
            const A x = widen(a[j]);
            const bool wins = takes<T, LARGEST>(x, best[j]);
            best[j] = wins ? x : best[j];
            at[j] = wins ? i : at[j];
            v[j] = convert<T>(best[j]);
            o[j] = at[j];
        }
    }
}
template <class T, bool LARGEST> void extreme_run(const Lanes<3>& lanes) {
    const int64_t n = lanes.length;
    const int64_t next[3] = {lanes.loop.step[0][0], lanes.loop.step[1][0], lanes.loop.step[2][0]};
    run_rows(lanes.loop, lane_grain(n, 2), [&](char* const* p, int64_t count) {
        int64_t j = 0;
        if (lanes.columns && count >= 8 && n > 1) {
            for (; j < count; j += WIDE)
                extreme_columns<T, LARGEST>(p[0] + j * next[0], lanes.step[0], p[1] + j * next[1], lanes.step[1],
                                            p[2] + j * next[2], lanes.step[2], n, std::min<int64_t>(WIDE, count - j));
            return;
        }
        for (; j < count; ++j)
            extreme_lane<T, LARGEST>(p[0] + j * next[0], lanes.step[0], p[1] + j * next[1], lanes.step[1],
                                     p[2] + j * next[2], lanes.step[2], n);
    });
}

// ---------------------------------------------------------------- sorting

// Key and position; narrow keys share one integer with it.
struct Wide {
    uint64_t key, position;
    bool operator<(const Wide& o) const { return key < o.key || (key == o.key && position < o.position); }
};
MT_INLINE uint64_t digit_of(uint64_t entry, int byte) { return (entry >> (32 + 8 * byte)) & 255; }
MT_INLINE uint64_t digit_of(const Wide& entry, int byte) { return (entry.key >> (8 * byte)) & 255; }

template <class E, class K> MT_INLINE E entry_of(K key, int64_t position) {
    if constexpr (sizeof(K) < 8) return (uint64_t)key << 32 | (uint64_t)position;
    else return Wide{key, (uint64_t)position};
}
MT_INLINE int64_t position_in(uint64_t entry) { return (int64_t)(entry & 0xffffffffu); }
MT_INLINE int64_t position_in(const Wide& entry) { return (int64_t)entry.position; }
template <class K, class E> MT_INLINE K key_in(const E& entry) {
    if constexpr (sizeof(K) < 8) return K(entry >> 32);
    else return entry.key;
}

// Least significant digit first, which is stable. Returns where the result is: `from` or `to`.
template <class E> E* radix_sort(E* from, E* to, int64_t n, int bytes) {
    uint64_t count[8][256] = {};
    for (int64_t i = 0; i < n; ++i)
        for (int b = 0; b < bytes; ++b) ++count[b][digit_of(from[i], b)];
    for (int b = 0; b < bytes; ++b) {
        if (count[b][digit_of(from[0], b)] == (uint64_t)n) continue;  // all the same
        uint64_t at = 0;
        for (uint64_t& c : count[b]) {
            const uint64_t here = c;
            c = at;
            at += here;
        }
        for (int64_t i = 0; i < n; ++i) to[count[b][digit_of(from[i], b)]++] = from[i];
        std::swap(from, to);
    }
    return from;
}

// Entries differ in their position, so any order of them is stable. Returns where it is: `entries` or `spare`, which is
// used by many.
constexpr int64_t FEW = 256;
template <class E> MT_NOINLINE E* in_order(E* entries, E* spare, int64_t n, int bytes) {
    if (n > FEW) return radix_sort(entries, spare, n, bytes);
    std::sort(entries, entries + n);
    return entries;
}

template <class T> void sort_lane(char* v, int64_t vs, char* x, int64_t xs, const char* a, int64_t as, int64_t n,
                                  bool descending) {
    using K = decltype(key_of(T()));
    using E = typename std::conditional<(sizeof(K) < 8), uint64_t, Wide>::type;
    Row<T> values(n);
    Row<E> entries(n), spare(n > FEW ? n : 0);
    for (int64_t i = 0; i < n; ++i) {
        const T value = *reinterpret_cast<const T*>(a + i * as);
        values.get()[i] = value;
        const K key = descending ? K(~key_of(value)) : key_of(value);
        entries.get()[i] = entry_of<E>(key, i);
    }
    const E* sorted = in_order(entries.get(), spare.get(), n, sizeof(K));
    for (int64_t i = 0; i < n; ++i) {
        const int64_t position = position_in(sorted[i]);
        *reinterpret_cast<T*>(v + i * vs) = values.get()[position];
        *reinterpret_cast<int64_t*>(x + i * xs) = position;
    }
}

template <class T> void sort_run(const Lanes<3>& lanes, bool descending) {
    run_rows(lanes.loop, lane_grain(lanes.length, 16), [&](char* const* p, int64_t count) {
        for (int64_t j = 0; j < count; ++j)
            sort_lane<T>(p[0] + j * lanes.loop.step[0][0], lanes.step[0], p[1] + j * lanes.loop.step[1][0],
                         lanes.step[1], p[2] + j * lanes.loop.step[2][0], lanes.step[2], lanes.length, descending);
    });
}

// The k smallest entries in order. A few of them are kept in order, more in a heap; the worst tells which keys are worth
// a look.
template <class E, class K> void smallest(const K* keys, int64_t n, E* best, int64_t k) {
    const bool ordered = k <= 16;
    for (int64_t i = 0; i < k; ++i) best[i] = entry_of<E>(keys[i], i);
    if (ordered) std::sort(best, best + k);
    else std::make_heap(best, best + k);
    const E& last = best[ordered ? k - 1 : 0];
    K worst = key_in<K>(last);
    constexpr int64_t STEP = 32;
    for (int64_t at = k; at < n; at += STEP) {
        const int64_t end = n - at < STEP ? n : at + STEP;
        int seen = 0;
        if (end - at == STEP)
            for (int64_t i = 0; i < STEP; ++i) seen |= keys[at + i] < worst;
        else seen = 1;
        for (int64_t i = at; seen && i < end; ++i) {
            if (keys[i] >= worst) continue;  // of equals, the first
            const E entry = entry_of<E>(keys[i], i);
            if (ordered) {
                int64_t j = k - 1;
                for (; j > 0 && entry < best[j - 1]; --j) best[j] = best[j - 1];
                best[j] = entry;
            } else {
                std::pop_heap(best, best + k);
                best[k - 1] = entry;
                std::push_heap(best, best + k);
            }
            worst = key_in<K>(last);
        }
    }
    if (!ordered) std::sort_heap(best, best + k);
}

// The k smallest entries as they stand, of equals the first ones. There is room for one more.
template <class E, class K> MT_INLINE void collect(const K* keys, int64_t n, E* best, int64_t k) {
    const K last = kth_key(keys, n, k - 1);
    int64_t left = k - (last == 0 ? 0 : count_upto(keys, n, K(last - 1)));
    for (int64_t i = 0, found = 0; i < n && found < k; ++i) {
        // Written in any case, kept where it belongs.
        best[found] = entry_of<E>(keys[i], i);
        const bool equal = (keys[i] == last) & (left > 0);
        left -= equal;
        found += equal | (keys[i] < last);
    }
}

// The k smallest of all keys in order, in `entries` or `spare`. The code is one for all dtypes with keys of a width.
template <class E, class K>
MT_NOINLINE E* first_in_order(const K* keys, int64_t n, E* entries, E* spare, int64_t k, int bytes, bool few) {
    if (few) {
        at_level(MT_BODY { smallest<E, K>(keys, n, entries, k); });
        return entries;
    }
    at_level(MT_BODY { collect<E, K>(keys, n, entries, k); });
    return in_order(entries, spare, k, bytes);
}

template <class T> void topk_lane(char* v, int64_t vs, char* x, int64_t xs, const char* a, int64_t as, int64_t n,
                                  int64_t k, bool largest) {
    using Plain = decltype(key_of(T()));
    using K = Counted<Plain>;
    using E = typename std::conditional<(sizeof(K) < 8), uint64_t, Wide>::type;
    Row<K> keys(n);
    K* key = keys.get();
    const K flip = largest ? Plain(~Plain(0)) : Plain(0);
    at_level(MT_BODY {
        if (as == (int64_t)sizeof(T))
            for (int64_t i = 0; i < n; ++i) key[i] = K(key_of(reinterpret_cast<const T*>(a)[i]) ^ flip);
        else
            for (int64_t i = 0; i < n; ++i) key[i] = K(key_of(*reinterpret_cast<const T*>(a + i * as)) ^ flip);
    });
    // A heap for few of many; otherwise the last of them is found first, and what is not behind it is sorted.
    const bool few = k <= 16 || k <= n / 512;
    Row<E> entries(k + 1), spare(!few && k > FEW ? k : 0);
    const E* sorted = first_in_order<E, K>(key, n, entries.get(), spare.get(), k, sizeof(Plain), few);
    for (int64_t i = 0; i < k; ++i) {
        const int64_t position = position_in(sorted[i]);
        *reinterpret_cast<T*>(v + i * vs) = *reinterpret_cast<const T*>(a + position * as);
        *reinterpret_cast<int64_t*>(x + i * xs) = position;
    }
}

}  // namespace

PyObject* cumsum(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cumsum", nargs, 12);
        Shape shape;
        parse_shape(args[8], shape);
        const int dim = parse_dim(args[9], shape);
        const int code = as_code(args[10]);
        const int64_t op = as_int(args[11]);
        if (op != 0 && op != 1) fail(PyExc_ValueError, "op must be 0 or 1, got %lld", (long long)op);
        const char* name = op ? "cumprod_out_cpu" : "cumsum_out_cpu";
        if (code == BOOL) fail_dtype(name, code);
        Operand a, o;
        parse_operand(args, shape, a);
        Ref out(parse_output(args + 4, shape, o));
        expect_code(op ? "cumprod" : "cumsum", o.code, code);
        dispatch_arithmetic(code, name, [&](auto t) {
            using T = decltype(t);
            if constexpr (!std::is_same<T, Bool>::value) {
                if (shape.numel == 0) return;
                GilRelease unlocked(shape.numel);
                if (a.code != code) {
                    copy_tensor(shape, o.data, o.stride, o.code, a.data, a.stride, a.code);
                    a = o;
                }
                Lanes<2> lanes;
                lanes_of(lanes, shape, dim, {&o, &a});
                if (op) scan_run<typename Wrapped<T>::t, true>(lanes);
                else scan_run<typename Wrapped<T>::t, false>(lanes);
            }
        });
        return out.release();
    });
}

PyObject* sort(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("sort", nargs, 15);
        Shape shape;
        parse_shape(args[12], shape);
        const int dim = parse_dim(args[13], shape);
        const bool descending = as_bool(args[14]);
        if (shape.ndim && shape.dim[dim] > (int64_t)0xffffffffu)
            fail(PyExc_RuntimeError, "sort: %lld elements along a dimension are too many", (long long)shape.dim[dim]);
        Operand a, v, x;
        parse_operand(args, shape, a);
        Ref values(parse_output(args + 4, shape, v)), indices(parse_output(args + 8, shape, x));
        expect_code("sort", v.code, a.code);
        expect_code("sort", x.code, I64);
        dispatch_sortable(a.code, [&](auto t) {
            if (shape.numel == 0) return;
            Lanes<3> lanes;
            lanes_of(lanes, shape, dim, {&v, &x, &a});
            GilRelease unlocked(shape.numel);
            sort_run<decltype(t)>(lanes, descending);
        });
        return PyTuple_Pack(2, values.get(), indices.get());
    });
}

PyObject* topk(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("topk", nargs, 16);
        Shape shape, kept;
        parse_shape(args[12], shape);
        const int dim = parse_dim(args[13], shape);
        const int64_t k = parse_count(args[14]), n = shape.ndim ? shape.dim[dim] : 1;
        const bool largest = as_bool(args[15]);
        if (n > (int64_t)0xffffffffu)
            fail(PyExc_RuntimeError, "topk: %lld elements along a dimension are too many", (long long)n);
        if (k > n) fail(PyExc_RuntimeError, "topk: %lld elements of %lld", (long long)k, (long long)n);
        kept = shape;
        if (kept.ndim) kept.dim[dim] = k;
        kept.numel = shape.ndim ? checked_numel(kept.dim, kept.ndim) : k;
        Operand a, v, x;
        parse_operand(args, shape, a);
        parse_operand(args + 4, kept, v);
        parse_operand(args + 8, kept, x);
        expect_code("topk", v.code, a.code);
        expect_code("topk", x.code, I64);
        dispatch_sortable(a.code, [&](auto t) {
            using T = decltype(t);
            if (kept.numel == 0) return;
            Lanes<3> lanes;
            lanes_of(lanes, shape, dim, {&v, &x, &a});
            GilRelease unlocked(shape.numel);
            run_rows(lanes.loop, lane_grain(n, 4), [&](char* const* p, int64_t count) {
                const int64_t (&next)[3][MAXD] = lanes.loop.step;
                for (int64_t j = 0; j < count; ++j)
                    topk_lane<T>(p[0] + j * next[0][0], lanes.step[0], p[1] + j * next[1][0], lanes.step[1],
                                 p[2] + j * next[2][0], lanes.step[2], n, k, largest);
            });
        });
        Py_RETURN_NONE;
    });
}

PyObject* cumulative_extreme(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cumulative_extreme", nargs, 15);
        Shape shape;
        parse_shape(args[12], shape);
        const int dim = parse_dim(args[13], shape);
        const bool largest = as_bool(args[14]);
        Operand a, v, x;
        parse_operand(args, shape, a);
        parse_operand(args + 4, shape, v);
        parse_operand(args + 8, shape, x);
        expect_code("cumulative_extreme", v.code, a.code);
        expect_code("cumulative_extreme", x.code, I64);
        dispatch_sortable(a.code, [&](auto t) {
            using T = decltype(t);
            if (shape.numel == 0) return;
            Lanes<3> lanes;
            lanes_of(lanes, shape, dim, {&v, &x, &a});
            GilRelease unlocked(shape.numel);
            if (largest) extreme_run<T, true>(lanes);
            else extreme_run<T, false>(lanes);
        });
        Py_RETURN_NONE;
    });
}

}  // namespace mt
