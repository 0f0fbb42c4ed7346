// Softmax and the negative log likelihood, and the table of the network kernels. float32, float64, float16, bfloat16:
// the last two are widened to float32 row by row and rounded once at the store.
// Invariant: results do not depend on the number of threads.
//
// An operand is 4 arguments: storage, offset, strides, code. Where it says [dense] the elements lie one after the other
// and the strides are not read. `out` may be None: a new storage is made. Functions with an `out` return it.
//   softmax(log, a.., out.., shape, dim)
//   logsumexp(a.., out.., shape, dim)                                              out: without dim
//   softmax_backward(log, grad.., y.., out.., shape, dim)                          y: the forward's result
//   nll_loss(logp.., target.., weight|None.. [dense], out.., total_weight.. [dense], n, c, reduction, ignore_index)
//       strides of logp: (row, class); of target: (row,); of out: (row,) for reduction 0, else (). reduction: 0 none,
//       1 mean, 2 sum. target: int64 or uint8.
//   nll_loss_backward(grad.., target.., weight|None.. [dense], total_weight.. [dense], out.., n, c, reduction,
//                     ignore_index)                                       out: strides (row, class), all written
#include "lanes.h"
#include "math_core.h"

#include <algorithm>

namespace mt {
namespace {

// ---------------------------------------------------------------- pieces of rows

// NaN is passed over: it comes back through exp(x - max).
template <class A> MT_INLINE A max_of(const A* x, int64_t n) {
    return fold_of(
        -std::numeric_limits<A>::infinity(), n, MT_EACH(i) { return x[i]; },
        [](A a, A b) __attribute__((always_inline)) { return b > a ? b : a; });
}

MT_INLINE float exp_negative(float x) { return exp_fast(x); }
MT_INLINE double exp_negative(double x) { return exp_v(x); }

// Sum of exp(x - max); with STORE the terms are kept in e, which may be x.
template <bool STORE, class A> MT_INLINE A exp_sum(const A* x, int64_t n, A max, A* e) {
    constexpr int V = 16;
    if (n < V / 2) {
        A sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            const A v = exp_negative(x[i] - max);
            if (STORE) e[i] = v;
            sum += v;
        }
        return sum;
    }
    A s[V] = {};
    int64_t i = 0;
    for (; i + V <= n; i += V)
        for (int j = 0; j < V; ++j) {
            const A v = exp_negative(x[i + j] - max);
            if (STORE) e[i + j] = v;
            s[j] += v;
        }
    if (i < n) {
        // The rest is padded: one vector of exp costs less than a few scalar ones.
        A t[V];
        for (int j = 0; j < V; ++j) t[j] = -std::numeric_limits<A>::infinity();
        for (int j = 0; i + j < n; ++j) t[j] = x[i + j] - max;
        for (int j = 0; j < V; ++j) {
            t[j] = exp_negative(t[j]);
            s[j] += t[j];
        }
        if (STORE)
            for (int j = 0; i + j < n; ++j) e[i + j] = t[j];
    }
    return fold_parts<V>(s, Plus<A>());
}

// ---------------------------------------------------------------- softmax

// Steps in bytes, here and below.
template <class A, bool LOG>
MT_CLONES void softmax_rows(const char* xp, int64_t xs, char* yp, int64_t ys, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
        const A* x = reinterpret_cast<const A*>(xp + r * xs);
        A* y = reinterpret_cast<A*>(yp + r * ys);
        const A max = max_of(x, n);
        if constexpr (LOG) {
            const A shift = std::log(exp_sum<false>(x, n, max, (A*)nullptr));
            for (int64_t i = 0; i < n; ++i) y[i] = x[i] - max - shift;
        } else {
            const A sum = exp_sum<true>(x, n, max, y);
            for (int64_t i = 0; i < n; ++i) y[i] = y[i] / sum;
        }
    }
}

// w <= TILE lanes side by side, n elements each.
template <class A, bool LOG>
MT_CLONES void softmax_columns(const char* xp, int64_t xs, char* yp, int64_t ys, int64_t w, int64_t n) {
    A max[TILE], sum[TILE];
    for (int64_t j = 0; j < w; ++j) max[j] = -std::numeric_limits<A>::infinity(), sum[j] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const A* x = reinterpret_cast<const A*>(xp + i * xs);
        for (int64_t j = 0; j < w; ++j) max[j] = x[j] > max[j] ? x[j] : max[j];
    }
    for (int64_t i = 0; i < n; ++i) {
        const A* x = reinterpret_cast<const A*>(xp + i * xs);
        A* y = reinterpret_cast<A*>(yp + i * ys);
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) {
            const A e = exp_negative(x[j] - max[j]);
            sum[j] += e;
            if (!LOG) y[j] = e;
        }
    }
    if (LOG)
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) sum[j] = log_v(sum[j]);
    for (int64_t i = 0; i < n; ++i) {
        const A* x = reinterpret_cast<const A*>(xp + i * xs);
        A* y = reinterpret_cast<A*>(yp + i * ys);
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) y[j] = LOG ? x[j] - max[j] - sum[j] : y[j] / sum[j];
    }
}

template <class A, bool LOG>
MT_CLONES void softmax_backward_rows(const char* gp, int64_t gs, const char* yp, int64_t ys, char* dp, int64_t ds,
                                     int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
        const A* g = reinterpret_cast<const A*>(gp + r * gs);
        const A* y = reinterpret_cast<const A*>(yp + r * ys);
        A* d = reinterpret_cast<A*>(dp + r * ds);
        const A sum = sum_of<A>(n, MT_EACH(i) { return LOG ? g[i] : g[i] * y[i]; });
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) d[i] = LOG ? g[i] - exp_v(y[i]) * sum : (g[i] - sum) * y[i];
    }
}

template <class A, bool LOG>
MT_CLONES void softmax_backward_columns(const char* gp, int64_t gs, const char* yp, int64_t ys, char* dp, int64_t ds,
                                        int64_t w, int64_t n) {
    A sum[TILE];
    for (int64_t j = 0; j < w; ++j) sum[j] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const A* g = reinterpret_cast<const A*>(gp + i * gs);
        const A* y = reinterpret_cast<const A*>(yp + i * ys);
        for (int64_t j = 0; j < w; ++j) sum[j] += LOG ? g[j] : g[j] * y[j];
    }
    for (int64_t i = 0; i < n; ++i) {
        const A* g = reinterpret_cast<const A*>(gp + i * gs);
        const A* y = reinterpret_cast<const A*>(yp + i * ys);
        A* d = reinterpret_cast<A*>(dp + i * ds);
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) d[j] = LOG ? g[j] - exp_v(y[j]) * sum[j] : (g[j] - sum[j]) * y[j];
    }
}

const char* softmax_name(bool log, bool last) {
    if (log) return last ? "log_softmax_lastdim_kernel_impl" : "log_softmax_kernel_impl";
    return last ? "softmax_lastdim_kernel_impl" : "softmax_kernel_impl";
}

// Many rows of at most SHORT_ROW elements are turned into columns: vectors then hold elements of as many rows, and one
// row alone would hardly fill one. Which way is taken depends on the shape only.
constexpr int64_t SHORT_ROW = 32;
constexpr int64_t TOGETHER = 2048;  // elements of two-byte rows that are widened at once
template <int N> MT_INLINE bool turns(const Lanes<N>& lanes) {
    return lanes.unit && lanes.length > 1 && lanes.length <= SHORT_ROW && lanes.loop.numel >= TILE;
}

// Adjoining rows of n elements, `next` bytes apart, in their accumulation type and back.
template <class T> void load_many(acc_t<T>* to, const char* x, int64_t next, int64_t rows, int64_t n) {
    if (next == n * (int64_t)sizeof(T)) load_row<T>(to, x, sizeof(T), rows * n);
    else load_rows<T>(to, x, next, rows, n);
}
template <class T> void store_many(char* y, int64_t next, const acc_t<T>* from, int64_t rows, int64_t n) {
    if (next == n * (int64_t)sizeof(T)) store_row<T>(y, sizeof(T), from, rows * n);
    else store_rows<T>(y, next, from, rows, n);
}
// w <= TILE rows as columns of a dense tile, and back. `room` is as large as the tile.
template <class T> void load_turned(acc_t<T>* tile, acc_t<T>* room, const char* x, int64_t next, int64_t w, int64_t n) {
    using A = acc_t<T>;
    if constexpr (!std::is_same<A, T>::value) {
        load_many<T>(room, x, next, w, n);
        x = reinterpret_cast<const char*>(room);
        next = n * (int64_t)sizeof(A);
    }
    gather_tile(reinterpret_cast<char*>(tile), x, next, sizeof(A), w, n, sizeof(A));
}
template <class T>
void store_turned(char* y, int64_t next, const acc_t<T>* tile, acc_t<T>* room, int64_t w, int64_t n) {
    using A = acc_t<T>;
    const bool direct = std::is_same<A, T>::value && next == n * (int64_t)sizeof(A);
    gather_tile(direct ? y : reinterpret_cast<char*>(room), reinterpret_cast<const char*>(tile), w * (int64_t)sizeof(A),
                sizeof(A), n, w, sizeof(A));
    if (!direct) store_many<T>(y, next, room, w, n);
}

template <class T, bool LOG>
void softmax_turned(const char* x, int64_t xnext, char* y, int64_t ynext, int64_t rows, int64_t n) {
    using A = acc_t<T>;
    A tile[TILE * SHORT_ROW], room[TILE * SHORT_ROW];
    for (int64_t j = 0; j < rows; j += TILE) {
        const int64_t w = std::min<int64_t>(TILE, rows - j), step = w * (int64_t)sizeof(A);
        load_turned<T>(tile, room, x + j * xnext, xnext, w, n);
        softmax_columns<A, LOG>((char*)tile, step, (char*)tile, step, w, n);
        store_turned<T>(y + j * ynext, ynext, tile, room, w, n);
    }
}
template <class T, bool LOG>
void softmax_backward_turned(const char* g, int64_t gnext, const char* y, int64_t ynext, char* d, int64_t dnext,
                             int64_t rows, int64_t n) {
    using A = acc_t<T>;
    A gtile[TILE * SHORT_ROW], ytile[TILE * SHORT_ROW], room[TILE * SHORT_ROW];
    for (int64_t j = 0; j < rows; j += TILE) {
        const int64_t w = std::min<int64_t>(TILE, rows - j), step = w * (int64_t)sizeof(A);
        load_turned<T>(gtile, room, g + j * gnext, gnext, w, n);
        load_turned<T>(ytile, room, y + j * ynext, ynext, w, n);
        softmax_backward_columns<A, LOG>((char*)gtile, step, (char*)ytile, step, (char*)gtile, step, w, n);
        store_turned<T>(d + j * dnext, dnext, gtile, room, w, n);
    }
}

template <class T, bool LOG> void softmax_run(const Lanes<2>& lanes) {
    using A = acc_t<T>;
    constexpr bool native = std::is_same<A, T>::value;
    const int64_t n = lanes.length, xs = lanes.step[1], ys = lanes.step[0];
    const int64_t xnext = lanes.loop.step[1][0], ynext = lanes.loop.step[0][0];
    const bool turned = turns(lanes);
    run_rows(lanes.loop, lane_grain(n, 4), [&](char* const* p, int64_t count) {
        char *y = p[0], *x = p[1];
        if (turned) {
            softmax_turned<T, LOG>(x, xnext, y, ynext, count, n);
        } else if (native && lanes.unit) {
            softmax_rows<A, LOG>(x, xnext, y, ynext, count, n);
        } else if (lanes.columns && count >= 8) {
            Row<A> tile(native ? 0 : checked_mul(TILE, n));
            for (int64_t j = 0; j < count; j += TILE) {
                const int64_t w = std::min<int64_t>(TILE, count - j), ts = w * (int64_t)sizeof(A);
                if (native) {
                    softmax_columns<A, LOG>(x + j * xnext, xs, y + j * ynext, ys, w, n);
                    continue;
                }
                load_rows<T>(tile.get(), x + j * xnext, xs, n, w);
                softmax_columns<A, LOG>(tile.bytes(), ts, tile.bytes(), ts, w, n);
                store_rows<T>(y + j * ynext, ys, tile.get(), n, w);
            }
        } else if (lanes.unit) {
            const int64_t most = std::max<int64_t>(1, TOGETHER / n), step = n * (int64_t)sizeof(A);
            Row<A> tile(most * n);
            for (int64_t j = 0; j < count; j += most) {
                const int64_t rows = std::min(most, count - j);
                load_many<T>(tile.get(), x + j * xnext, xnext, rows, n);
                softmax_rows<A, LOG>(tile.bytes(), step, tile.bytes(), step, rows, n);
                store_many<T>(y + j * ynext, ynext, tile.get(), rows, n);
            }
        } else {
            Row<A> row(n);
            for (int64_t j = 0; j < count; ++j, x += xnext, y += ynext) {
                load_row<T>(row.get(), x, xs, n);
                softmax_rows<A, LOG>(row.bytes(), 0, row.bytes(), 0, 1, n);
                store_row<T>(y, ys, row.get(), n);
            }
        }
    });
}

template <class T, bool LOG> void softmax_backward_run(const Lanes<3>& lanes) {
    using A = acc_t<T>;
    constexpr bool native = std::is_same<A, T>::value;
    const int64_t n = lanes.length, ds = lanes.step[0], gs = lanes.step[1], ys = lanes.step[2];
    const int64_t dnext = lanes.loop.step[0][0], gnext = lanes.loop.step[1][0], ynext = lanes.loop.step[2][0];
    const bool turned = turns(lanes);
    run_rows(lanes.loop, lane_grain(n, LOG ? 4 : 1), [&](char* const* p, int64_t count) {
        char *d = p[0], *g = p[1], *y = p[2];
        if (turned) {
            softmax_backward_turned<T, LOG>(g, gnext, y, ynext, d, dnext, count, n);
        } else if (native && lanes.unit) {
            softmax_backward_rows<A, LOG>(g, gnext, y, ynext, d, dnext, count, n);
        } else if (lanes.columns && count >= 8) {
            Row<A> gtile(native ? 0 : checked_mul(TILE, n)), ytile(native ? 0 : checked_mul(TILE, n));
            for (int64_t j = 0; j < count; j += TILE) {
                const int64_t w = std::min<int64_t>(TILE, count - j), ts = w * (int64_t)sizeof(A);
                if (native) {
                    softmax_backward_columns<A, LOG>(g + j * gnext, gs, y + j * ynext, ys, d + j * dnext, ds, w, n);
                    continue;
                }
                load_rows<T>(gtile.get(), g + j * gnext, gs, n, w);
                load_rows<T>(ytile.get(), y + j * ynext, ys, n, w);
                softmax_backward_columns<A, LOG>(gtile.bytes(), ts, ytile.bytes(), ts, gtile.bytes(), ts, w, n);
                store_rows<T>(d + j * dnext, ds, gtile.get(), n, w);
            }
        } else if (lanes.unit) {
            const int64_t most = std::max<int64_t>(1, TOGETHER / n), step = n * (int64_t)sizeof(A);
            Row<A> gtile(most * n), ytile(most * n);
            for (int64_t j = 0; j < count; j += most) {
                const int64_t rows = std::min(most, count - j);
                load_many<T>(gtile.get(), g + j * gnext, gnext, rows, n);
                load_many<T>(ytile.get(), y + j * ynext, ynext, rows, n);
                softmax_backward_rows<A, LOG>(gtile.bytes(), step, ytile.bytes(), step, gtile.bytes(), step, rows, n);
                store_many<T>(d + j * dnext, dnext, gtile.get(), rows, n);
            }
        } else {
            Row<A> grow(n), yrow(n);
            for (int64_t j = 0; j < count; ++j, g += gnext, y += ynext, d += dnext) {
                load_row<T>(grow.get(), g, gs, n);
                load_row<T>(yrow.get(), y, ys, n);
                softmax_backward_rows<A, LOG>(grow.bytes(), 0, yrow.bytes(), 0, grow.bytes(), 0, 1, n);
                store_row<T>(d, ds, grow.get(), n);
            }
        }
    });
}

PyObject* softmax(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("softmax", nargs, 11);
        const bool log = as_bool(args[0]);
        Shape shape;
        parse_shape(args[9], shape);
        const int dim = parse_dim(args[10], shape);
        Operand a, o;
        parse_operand(args + 1, shape, a);
        Ref out(parse_output(args + 5, shape, o));
        expect_code("softmax", o.code, a.code);
        const char* name = softmax_name(log, dim >= shape.ndim - 1);
        dispatch_float(a.code, name, [&](auto t) {
            if (shape.numel == 0) return;
            using T = decltype(t);
            Lanes<2> lanes;
            lanes_of(lanes, shape, dim, {&o, &a});
            GilRelease unlocked(shape.numel);
            if (log) softmax_run<T, true>(lanes);
            else softmax_run<T, false>(lanes);
        });
        return out.release();
    });
}

// ---------------------------------------------------------------- logsumexp

// Where the greatest is infinite, or nothing is greater than minus infinity, the sum is that, unless there is a NaN.
template <class A> MT_INLINE A log_sum(const A* x, int64_t n) {
    const A max = max_of(x, n);
    if (MT_LIKELY(std::fabs(max) < std::numeric_limits<A>::infinity()))
        return std::log(exp_sum<false>(x, n, max, (A*)nullptr)) + max;
    for (int64_t i = 0; i < n; ++i)
        if (x[i] != x[i]) return x[i];
    return max;
}

template <class A> MT_CLONES void log_sum_rows(const char* xp, int64_t xs, char* yp, int64_t ys, int64_t rows,
                                               int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
        *reinterpret_cast<A*>(yp + r * ys) = log_sum(reinterpret_cast<const A*>(xp + r * xs), n);
}

// w <= TILE lanes side by side, n elements each.
template <class A> MT_CLONES void log_sum_columns(const char* xp, int64_t xs, A* y, int64_t w, int64_t n) {
    A max[TILE], sum[TILE];
    for (int64_t j = 0; j < w; ++j) max[j] = -std::numeric_limits<A>::infinity(), sum[j] = 0;
    for (int64_t i = 0; i < n; ++i) {
        const A* x = reinterpret_cast<const A*>(xp + i * xs);
        for (int64_t j = 0; j < w; ++j) max[j] = x[j] > max[j] ? x[j] : max[j];
    }
    for (int64_t j = 0; j < w; ++j) max[j] = std::fabs(max[j]) < std::numeric_limits<A>::infinity() ? max[j] : A(0);
    for (int64_t i = 0; i < n; ++i) {
        const A* x = reinterpret_cast<const A*>(xp + i * xs);
        for (int64_t j = 0; j < w; ++j) sum[j] += exp_v(x[j] - max[j]);
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < w; ++j) y[j] = log_v(sum[j]) + max[j];
}

template <class T> void log_sum_run(const Lanes<2>& lanes) {
    using A = acc_t<T>;
    constexpr bool native = std::is_same<A, T>::value;
    const int64_t n = lanes.length, xs = lanes.step[1];
    const int64_t xnext = lanes.loop.step[1][0], ynext = lanes.loop.step[0][0];
    run_rows(lanes.loop, lane_grain(n, 4), [&](char* const* p, int64_t count) {
        char *y = p[0], *x = p[1];
        if (native && xs == (int64_t)sizeof(T)) {
            log_sum_rows<A>(x, xnext, y, ynext, count, n);
        } else if (native && lanes.columns && count >= 8) {
            for (int64_t j = 0; j < count; j += TILE)
                log_sum_columns<A>(x + j * xnext, xs, reinterpret_cast<A*>(y + j * ynext),
                                   std::min<int64_t>(TILE, count - j), n);
        } else {
            Row<A> row(n);
            A sum;
            for (int64_t j = 0; j < count; ++j, x += xnext, y += ynext) {
                load_row<T>(row.get(), x, xs, n);
                log_sum_rows<A>(row.bytes(), 0, reinterpret_cast<char*>(&sum), 0, 1, n);
                store_row<T>(y, sizeof(T), &sum, 1);
            }
        }
    });
}

PyObject* logsumexp(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("logsumexp", nargs, 10);
        Shape shape, rest;
        parse_shape(args[8], shape);
        const int dim = parse_dim(args[9], shape);
        Operand a, o;
        parse_operand(args, shape, a);
        if (shape.numel == 0 || shape.ndim == 0) fail(PyExc_ValueError, "logsumexp: there is nothing to sum over");
        rest.ndim = shape.ndim - 1;
        rest.numel = shape.numel / shape.dim[dim];
        for (int i = 0; i < rest.ndim; ++i) rest.dim[i] = shape.dim[i < dim ? i : i + 1];
        Ref out(parse_output(args + 4, rest, o));
        expect_code("logsumexp", o.code, a.code);
        // Every element of a lane stands for the one that is written.
        for (int i = shape.ndim - 1; i > dim; --i) o.stride[i] = o.stride[i - 1];
        o.stride[dim] = 0;
        dispatch_float(a.code, "logsumexp", [&](auto t) {
            Lanes<2> lanes;
            lanes_of(lanes, shape, dim, {&o, &a});
            GilRelease unlocked(shape.numel);
            log_sum_run<decltype(t)>(lanes);
        });
        return out.release();
    });
}

PyObject* softmax_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("softmax_backward", nargs, 15);
        const bool log = as_bool(args[0]);
        Shape shape;
        parse_shape(args[13], shape);
        const int dim = parse_dim(args[14], shape);
        Operand g, y, o;
        parse_operand(args + 1, shape, g);
        parse_operand(args + 5, shape, y);
        Ref out(parse_output(args + 9, shape, o));
        expect_code("softmax_backward", g.code, y.code);
        expect_code("softmax_backward", o.code, y.code);
        dispatch_float(y.code, softmax_name(log, dim >= shape.ndim - 1), [&](auto t) {
            if (shape.numel == 0) return;
            using T = decltype(t);
            Lanes<3> lanes;
            lanes_of(lanes, shape, dim, {&o, &g, &y});
            GilRelease unlocked(shape.numel);
            if (log) softmax_backward_run<T, true>(lanes);
            else softmax_backward_run<T, false>(lanes);
        });
        return out.release();
    });
}

// ---------------------------------------------------------------- negative log likelihood

enum Reduction { NONE = 0, MEAN = 1, SUM = 2 };

Reduction parse_reduction(PyObject* o) {
    const int64_t r = as_int(o);
    if (r < 0 || r > 2) fail(PyExc_ValueError, "reduction must be 0, 1 or 2, got %lld", (long long)r);
    return (Reduction)r;
}

// Targets of either dtype as int64, checked against the number of classes: all of them before anything is written, and
// again where each is used, because another thread may write to their memory meanwhile.
class Targets {
public:
    Targets(const Operand& op, int64_t n, int64_t classes, int64_t ignore)
        : room_(op.code == I64 ? 0 : n), classes_(classes), ignore_(ignore) {
        if (op.code != I64 && op.code != U8)
            fail(PyExc_RuntimeError, "expected target dtype to be Long or Byte, but got %s", CODE_NAME[op.code]);
        data = op.as<int64_t>();
        step = op.stride[0];
        if (op.code == U8) {
            cast_strided((char*)room_.get(), 8, I64, op.data, op.stride[0], U8, n);
            data = room_.get();
            step = 1;
        }
        for (int64_t i = 0; i < n; ++i) (*this)[i];
    }
    MT_INLINE int64_t operator[](int64_t i) const {
        const int64_t t = read_once(data + i * step);
        if (MT_UNLIKELY((uint64_t)t >= (uint64_t)classes_ && t != ignore_))
            fail(PyExc_IndexError, "Target %lld is out of bounds.", (long long)t);
        return t;
    }

private:
    Row<int64_t> room_;
    int64_t classes_, ignore_;
    const int64_t* data;
    int64_t step;
};

// Rows of scores: n of them, or (images, places) where classes lie between the two; and where the score of a class is.
struct Scores {
    int64_t images = 1, places, n, classes;
    Shape shape;
    Scores(PyObject* rows, PyObject* count) : places(0), n(0), classes(parse_count(count)) {
        if (PyTuple_Check(rows)) {
            if (PyTuple_GET_SIZE(rows) != 2) fail(PyExc_ValueError, "nll_loss: rows are a number or a pair");
            images = parse_count(PyTuple_GET_ITEM(rows, 0));
            places = parse_count(PyTuple_GET_ITEM(rows, 1));
            n = checked_mul(images, places);
            set_shape(shape, {images, places, classes});
        } else {
            n = places = parse_count(rows);
            set_shape(shape, {n, classes});
        }
    }
    // f(row, where its scores begin, how far apart they are)
    template <class F> MT_INLINE void each(const Operand& op, F&& f) const {
        const bool whole = shape.ndim == 2;
        const int64_t image = whole ? 0 : op.stride[0], place = op.stride[whole ? 0 : 1],
                      step = op.stride[whole ? 1 : 2];
        for (int64_t k = 0, i = 0; k < images; ++k)
            for (int64_t j = 0; j < places; ++j, ++i) f(i, k * image + j * place, step);
    }
};

PyObject* nll_loss(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("nll_loss", nargs, 24);
        const Scores scores(args[20], args[21]);
        const int64_t n = scores.n, c = scores.classes;
        const Reduction reduction = parse_reduction(args[22]);
        const int64_t ignore = as_int(args[23]);
        const Shape& matrix = scores.shape;
        Shape rows, result;
        set_shape(rows, {n});
        if (reduction == NONE) set_shape(result, {n});
        else set_shape(result, {});
        Operand logp, target, weight, o, total_weight;
        parse_operand(args, matrix, logp);
        parse_operand(args + 4, rows, target);
        const bool weighted = parse_dense_or_none(args + 8, c, weight);
        parse_dense(args + 16, 1, total_weight);
        if (weighted) expect_code("nll_loss", weight.code, logp.code);
        expect_code("nll_loss", total_weight.code, logp.code);
        const Targets targets(target, n, c, ignore);
        Ref out(parse_output(args + 12, result, o));
        expect_code("nll_loss", o.code, logp.code);
        dispatch_float(logp.code, "nll_loss_out_frame", [&](auto t) {
            using T = decltype(t);
            const T* x = logp.as<T>();
            double sum = 0, weights = 0;
            scores.each(logp, [&](int64_t i, int64_t at, int64_t step) __attribute__((always_inline)) {
                const int64_t cls = targets[i];
                double loss = 0;
                if (cls != ignore) {
                    const double w = weighted ? (double)widen(weight.as<T>()[cls]) : 1.0;
                    loss = -(double)widen(x[at + cls * step]) * w;
                    sum += loss;
                    weights += w;
                }
                if (reduction == NONE) o.as<T>()[i * o.stride[0]] = convert<T>((acc_t<T>)loss);
            });
            if (reduction == NONE) weights = 0;  // as PyTorch reports it
            else *o.as<T>() = convert<T>((acc_t<T>)(reduction == MEAN ? sum / weights : sum));
            *total_weight.as<T>() = convert<T>((acc_t<T>)weights);
        });
        return out.release();
    });
}

PyObject* nll_loss_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("nll_loss_backward", nargs, 24);
        const Scores scores(args[20], args[21]);
        const int64_t n = scores.n, c = scores.classes;
        const Reduction reduction = parse_reduction(args[22]);
        const int64_t ignore = as_int(args[23]);
        const Shape& matrix = scores.shape;
        Shape rows, incoming;
        set_shape(rows, {n});
        if (reduction == NONE) set_shape(incoming, {n});
        else set_shape(incoming, {});
        Operand grad, target, weight, total_weight, o;
        parse_operand(args, incoming, grad);
        parse_operand(args + 4, rows, target);
        const bool weighted = parse_dense_or_none(args + 8, c, weight);
        parse_dense(args + 12, 1, total_weight);
        const Targets targets(target, n, c, ignore);
        Ref out(parse_output(args + 16, matrix, o));
        if (weighted) expect_code("nll_loss_backward", weight.code, o.code);
        expect_code("nll_loss_backward", grad.code, o.code);
        expect_code("nll_loss_backward", total_weight.code, o.code);
        dispatch_float(o.code, "nll_loss_backward_out_frame", [&](auto t) {
            using T = decltype(t);
            using A = acc_t<T>;
            GilRelease unlocked(matrix.numel);
            alignas(16) const char zero[16] = {};
            fill_tensor(matrix, o.data, o.stride, o.itemsize, zero);
            const A whole = (A)widen(*total_weight.as<T>());
            scores.each(o, [&](int64_t i, int64_t at, int64_t step) __attribute__((always_inline)) {
                const int64_t cls = targets[i];
                if (cls == ignore) return;
                A g = -(A)widen(grad.as<T>()[reduction == NONE ? i * grad.stride[0] : 0]);
                if (reduction == MEAN) g = g / whole;
                if (weighted) g = g * (A)widen(weight.as<T>()[cls]);
                o.as<T>()[at + cls * step] = convert<T>(g);
            });
        });
        return out.release();
    });
}

}  // namespace

// norm.cpp
PyObject* layer_norm(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* layer_norm_backward(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* var(PyObject*, PyObject* const*, Py_ssize_t);
// cells.cpp
PyObject* lstm_cell(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* lstm_cell_backward(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* gru_cell(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* gru_cell_backward(PyObject*, PyObject* const*, Py_ssize_t);
}  // namespace mt

using namespace mt;

PyMethodDef nn_methods[] = {
    MT_METHOD("softmax", softmax, "softmax(log, a.., out.., shape, dim): softmax or its logarithm along dim."),
    MT_METHOD("logsumexp", logsumexp, "logsumexp(a.., out.., shape, dim): along dim, which the result does not have."),
    MT_METHOD("softmax_backward", softmax_backward, "softmax_backward(log, grad.., y.., out.., shape, dim)."),
    MT_METHOD("layer_norm", layer_norm,
              "layer_norm(x.., weight|None.., bias|None.., out.., mean|None.., rstd|None.., outer, inner, eps)."),
    MT_METHOD("layer_norm_backward", layer_norm_backward,
              "layer_norm_backward(grad.., x.., mean.., rstd.., weight|None.., dx|None.., dweight|None.., "
              "dbias|None.., outer, inner)."),
    MT_METHOD("nll_loss", nll_loss,
              "nll_loss(logp.., target.., weight|None.., out.., total_weight.., n, c, reduction, ignore_index)."),
    MT_METHOD("nll_loss_backward", nll_loss_backward,
              "nll_loss_backward(grad.., target.., weight|None.., total_weight.., out.., n, c, reduction, "
              "ignore_index)."),
    MT_METHOD("lstm_cell", lstm_cell,
              "lstm_cell(input_gates.., hidden_gates.., cx.., input_bias|None.., hidden_bias|None.., hy.., cy.., "
              "workspace.., rows, width)."),
    MT_METHOD(
        "lstm_cell_backward", lstm_cell_backward,
        "lstm_cell_backward(grad_hy|None.., grad_cy|None.., cx.., cy.., workspace.., gates.., dcx.., rows, width)."),
    MT_METHOD("gru_cell", gru_cell,
              "gru_cell(input_gates.., hidden_gates.., hx.., input_bias|None.., hidden_bias|None.., hy.., workspace.., "
              "rows, width)."),
    MT_METHOD("gru_cell_backward", gru_cell_backward,
              "gru_cell_backward(grad_hy.., workspace.., input_gates.., hidden_gates.., dhx.., rows, width)."),
    MT_METHOD("var", var, "var(a.., out.., mean|None.., shape, correction, take_sqrt): variance or deviation."),
    {nullptr, nullptr, 0, nullptr}};
extern const mt::IntConstant nn_constants[] = {{nullptr, 0}};
