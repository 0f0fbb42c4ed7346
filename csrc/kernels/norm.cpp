// Moments of rows and columns: layer norm, variance and standard deviation (in the table of nn.cpp). float32, float64,
// float16, bfloat16; the last two are widened to float32 and rounded once at the store.
// Invariant: moments are taken over batches that depend on the shape only and merged in order in double, so results do
// not depend on the number of threads, and are as good as a sum in double.
//
// An operand is 4 arguments: storage, offset, strides, code. Where it says [dense] the elements lie one after the other
// and the strides are not read. `out` may be None: a new storage is made. Functions with an `out` return it.
//   layer_norm(x.. [dense], weight|None.. [dense], bias|None.. [dense], out.. [dense], mean|None.. [dense],
//              rstd|None.. [dense], outer, inner, eps)                              mean, rstd: None = not wanted
//   layer_norm_backward(grad.. [dense], x.. [dense], mean.. [dense], rstd.. [dense], weight|None.. [dense],
//                       dx|None.. [dense], dweight|None.. [dense], dbias|None.. [dense], outer, inner) -> None
//   var(a.., out.., mean|None.., shape, correction, take_sqrt)
//       strides of out and mean have one entry per dimension of `shape`, 0 where it is reduced
#include "cpu.h"
#include "lanes.h"
#include "moments.h"
#include "vectors.h"

#include <algorithm>

namespace mt {
namespace {

template <class A> MT_CLONES void moments_of(Moments* all, const A* x, int64_t n) { add_row(*all, x, n); }

// ---------------------------------------------------------------- layer norm

// Mean and squared distances of a row that is one batch: as add_batch, with everything inlined.
template <class A> MT_INLINE void short_row(const A* x, int64_t n, double& mean, double& m2) {
    auto plus = [](auto p, auto q) __attribute__((always_inline)) { return p + q; };
    const A middle = fold_dense(x, n, A(0), plus, plus) / (A)n;
    const A first =
        fold_dense(x, n, A(0), [&](auto p, auto q) __attribute__((always_inline)) { return p + (q - middle); }, plus);
    const A second = fold_dense(
        x, n, A(0), [&](auto p, auto q) __attribute__((always_inline)) { return p + (q - middle) * (q - middle); },
        plus);
    const double rest = (double)first / (double)n;
    mean = (double)middle + rest;
    m2 = (double)second - rest * rest * (double)n;
}

template <class A>
void layer_norm_rows(const A* x, const A* weight, const A* bias, A* y, A* means, A* rstds, int64_t rows, int64_t n,
                     double eps) {
    at_level(MT_BODY {
        for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
            Moments m;
            if (n <= BATCH) short_row(x, n, m.mean, m.m2);
            else add_row(m, x, n);
            const A mean = (A)m.mean;
            const A rstd = (A)(1.0 / std::sqrt(m.m2 / (double)n + eps));
            if (means) means[r] = mean;
            if (rstds) rstds[r] = rstd;
            if (weight && bias) {
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
            } else if (weight) {
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i];
            } else {
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
                if (bias)
                    for (int64_t i = 0; i < n; ++i) y[i] += bias[i];
            }
        }
    });
}

// dweight and dbias are added to; null pointers: not wanted.
template <class A>
MT_CLONES void layer_norm_backward_rows(const A* g, const A* x, const A* means, const A* rstds, const A* weight, A* dx,
                                        A* dweight, A* dbias, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, g += n, x += n) {
        const A mean = means[r], rstd = rstds[r];
        if (dweight)
            for (int64_t i = 0; i < n; ++i) dweight[i] += g[i] * ((x[i] - mean) * rstd);
        if (dbias)
            for (int64_t i = 0; i < n; ++i) dbias[i] += g[i];
        if (!dx) continue;
        A first, second;
        auto times_hat = [&](int64_t i, A v) __attribute__((always_inline)) { return v * ((x[i] - mean) * rstd); };
        if (weight) {
            two_sums_of<A>(n, MT_EACH(i) { return g[i] * weight[i]; }, times_hat, first, second);
            first /= (A)n, second /= (A)n;
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) dx[i] = rstd * (g[i] * weight[i] - first - (x[i] - mean) * rstd * second);
        } else {
            two_sums_of<A>(n, MT_EACH(i) { return g[i]; }, times_hat, first, second);
            first /= (A)n, second /= (A)n;
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) dx[i] = rstd * (g[i] - first - (x[i] - mean) * rstd * second);
        }
        dx += n;
    }
}

// A dense operand as an array of A: in place when it already is one, else through `room`.
template <class A> A* as_acc(const Operand& op, int64_t n, Row<A>& room, bool read) {
    if (op.code == CodeOf<A>::value) return op.as<A>();
    if (read) cast_strided(room.bytes(), sizeof(A), CodeOf<A>::value, op.data, op.itemsize, op.code, n);
    return room.get();
}
template <class A> void from_acc(const Operand& op, int64_t n, const A* values) {
    if ((const char*)values != op.data)
        cast_strided(op.data, op.itemsize, op.code, (const char*)values, sizeof(A), CodeOf<A>::value, n);
}

// Rows of n two-byte floats that are widened at once.
MT_INLINE int64_t rows_together(int64_t n) { return std::max<int64_t>(1, 2048 / std::max<int64_t>(1, n)); }

// ---------------------------------------------------------------- variance

constexpr int WIDE = 256;  // columns at once, and
constexpr int DEEP = 64;   // rows of them: what is read twice stays in cache

struct ColumnMoments {
    double n = 0;
    double mean[WIDE], m2[WIDE];
};

// Adds `rows` rows of w columns, row i at base + offset[i].
template <class A>
MT_CLONES void add_columns(ColumnMoments& all, const char* base, const int64_t* offset, int64_t rows, int64_t w) {
    A mean[WIDE], first[WIDE], second[WIDE];
    for (int64_t j = 0; j < w; ++j) mean[j] = first[j] = second[j] = 0;
    for (int64_t i = 0; i < rows; ++i) {
        const A* x = reinterpret_cast<const A*>(base + offset[i]);
        for (int64_t j = 0; j < w; ++j) mean[j] += x[j];
    }
    for (int64_t j = 0; j < w; ++j) mean[j] /= (A)rows;
    for (int64_t i = 0; i < rows; ++i) {
        const A* x = reinterpret_cast<const A*>(base + offset[i]);
        for (int64_t j = 0; j < w; ++j) {
            const A d = x[j] - mean[j];
            first[j] += d;
            second[j] += d * d;
        }
    }
    // Moments::merge, for columns that all have the same count.
    const double count = (double)rows, sum = all.n + count, share = count / sum, cross = all.n * share;
    if (all.n == 0)
        for (int64_t j = 0; j < w; ++j) all.mean[j] = all.m2[j] = 0;
    for (int64_t j = 0; j < w; ++j) {
        const double rest = (double)first[j] / count, delta = (double)mean[j] + rest - all.mean[j];
        all.m2[j] += (double)second[j] - rest * rest * count + delta * delta * cross;
        all.mean[j] += delta * share;
    }
    all.n = sum;
}

struct VarJob {
    Loop<3> kept;     // out, mean, a
    Loop<1> reduced;  // a, from any start
    int64_t count;    // elements reduced into one
    double correction;
    bool root, with_mean;

    template <class T> void store(const Moments& m, char* out, char* mean) const {
        using A = acc_t<T>;
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double v = m.n == 0 ? nan : m.variance(correction);
        *reinterpret_cast<T*>(out) = convert<T>((A)(root ? std::sqrt(v) : v));
        if (with_mean) *reinterpret_cast<T*>(mean) = convert<T>((A)(m.n == 0 ? nan : m.mean));
    }
};

template <class T> void var_lane(const VarJob& job, const char* a, Moments& m) {
    using A = acc_t<T>;
    const Loop<1>& r = job.reduced;
    const int64_t run = r.dim[0], step = r.step[0][0];
    Cursor<1> at(r, 1, 0);
    const char* origin = r.ptr[0];
    if (std::is_same<A, T>::value && step == (int64_t)sizeof(T) && (run >= PARTS || r.ndim == 1)) {
        for (int64_t i = 0; i < job.count; i += run, at.next())
            moments_of<A>(&m, reinterpret_cast<const A*>(a + (at.ptr[0] - origin)), run);
        return;
    }
    // Anything else is brought into a dense row first.
    A row[1024];
    int64_t filled = 0;
    for (int64_t i = 0; i < job.count; i += run, at.next())
        for (int64_t j = 0; j < run;) {
            const int64_t n = std::min<int64_t>(1024 - filled, run - j);
            const char* from = a + (at.ptr[0] - origin) + j * step;
            if (n < 8)
                for (int64_t k = 0; k < n; ++k)
                    row[filled + k] = (A)widen(*reinterpret_cast<const T*>(from + k * step));
            else load_row<T>(row + filled, from, step, n);
            filled += n;
            j += n;
            if (filled == 1024) {
                moments_of<A>(&m, row, filled);
                filled = 0;
            }
        }
    if (filled) moments_of<A>(&m, row, filled);
}

// w <= WIDE lanes that lie side by side.
template <class T> void var_columns(const VarJob& job, const char* a, int64_t w, char* out, char* mean) {
    using A = acc_t<T>;
    ColumnMoments all;
    int64_t offset[DEEP];
    Row<A> room(std::is_same<A, T>::value ? 0 : DEEP * w);
    Cursor<1> at(job.reduced, 0, 0);
    const char* origin = job.reduced.ptr[0];
    for (int64_t i = 0; i < job.count; i += DEEP) {
        const int64_t rows = std::min<int64_t>(DEEP, job.count - i);
        for (int64_t k = 0; k < rows; ++k, at.next()) offset[k] = at.ptr[0] - origin;
        if constexpr (!std::is_same<A, T>::value)
            for (int64_t k = 0; k < rows; ++k) {
                load_row<T>(room.get() + k * w, a + offset[k], sizeof(T), w);
                offset[k] = k * w * (int64_t)sizeof(A);
            }
        add_columns<A>(all, std::is_same<A, T>::value ? a : room.bytes(), offset, rows, w);
    }
    for (int64_t j = 0; j < w; ++j) {
        Moments m;
        m.n = all.n, m.mean = all.mean[j], m.m2 = all.m2[j];
        job.store<T>(m, out + j * job.kept.step[0][0], mean + j * job.kept.step[1][0]);
    }
}

template <class T> void var_run(const VarJob& job) {
    using A = acc_t<T>;
    constexpr bool native = std::is_same<A, T>::value;
    const int64_t count = job.count;
    const Loop<1>& r = job.reduced;
    constexpr int64_t PART = 1 << 16;
    if (native && job.kept.numel == 1 && r.ndim == 1 && r.step[0][0] == (int64_t)sizeof(T) && count > 2 * PART) {
        // One long row: parts of fixed length, merged in order.
        const int64_t parts = ceil_div(count, PART);
        Scratch room(parts, sizeof(Moments));
        Moments* m = room.as<Moments>();
        const A* x = reinterpret_cast<const A*>(job.kept.ptr[2]);
        parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                m[i] = Moments();
                moments_of<A>(&m[i], x + i * PART, std::min(PART, count - i * PART));
            }
        });
        for (int64_t i = 1; i < parts; ++i) m[0].merge(m[i].n, m[i].mean, m[i].m2);
        job.store<T>(m[0], job.kept.ptr[0], job.kept.ptr[1]);
        return;
    }
    const int64_t onext = job.kept.step[0][0], mnext = job.kept.step[1][0], next = job.kept.step[2][0];
    const bool rows = r.step[0][0] == (int64_t)sizeof(T) && r.dim[0] >= PARTS;
    run_rows(job.kept, lane_grain(count, 1), [&](char* const* p, int64_t lanes) {
        if (!rows && next == (int64_t)sizeof(T) && lanes >= 8) {
            for (int64_t j = 0; j < lanes; j += WIDE)
                var_columns<T>(job, p[2] + j * next, std::min<int64_t>(WIDE, lanes - j), p[0] + j * onext,
                               p[1] + j * mnext);
            return;
        }
        for (int64_t j = 0; j < lanes; ++j) {
            Moments m;
            var_lane<T>(job, p[2] + j * next, m);
            job.store<T>(m, p[0] + j * onext, p[1] + j * mnext);
        }
    });
}

}  // namespace

PyObject* layer_norm(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("layer_norm", nargs, 27);
        const int64_t rows = parse_count(args[24]), n = parse_count(args[25]);
        const double eps = as_double(args[26]);
        const int64_t numel = checked_mul(rows, n);
        Operand x, w, b, o, mean, rstd;
        parse_dense(args, numel, x);
        const bool has_w = parse_dense_or_none(args + 4, n, w), has_b = parse_dense_or_none(args + 8, n, b);
        const bool has_mean = parse_dense_or_none(args + 16, rows, mean);
        const bool has_rstd = parse_dense_or_none(args + 20, rows, rstd);
        Ref out(parse_dense_output(args + 12, numel, o));
        expect_code("layer_norm", o.code, x.code);
        dispatch_float(x.code, "LayerNormKernelImpl", [&](auto t) {
            using T = decltype(t);
            using A = acc_t<T>;
            Row<A> wroom(has_w ? n : 0), broom(has_b ? n : 0), mroom(has_mean ? rows : 0), rroom(has_rstd ? rows : 0);
            const A* weight = has_w ? as_acc<A>(w, n, wroom, true) : nullptr;
            const A* bias = has_b ? as_acc<A>(b, n, broom, true) : nullptr;
            A* means = has_mean ? as_acc<A>(mean, rows, mroom, false) : nullptr;
            A* rstds = has_rstd ? as_acc<A>(rstd, rows, rroom, false) : nullptr;
            GilRelease unlocked(numel);
            parallel_for(rows, lane_grain(n, 1), [&](int64_t begin, int64_t end) {
                if constexpr (std::is_same<A, T>::value) {
                    layer_norm_rows<A>(x.as<A>() + begin * n, weight, bias, o.as<A>() + begin * n,
                                       means ? means + begin : nullptr, rstds ? rstds + begin : nullptr, end - begin, n,
                                       eps);
                } else {
                    const int64_t most = rows_together(n);
                    Row<A> tile(most * n);
                    for (int64_t i = begin; i < end; i += most) {
                        const int64_t count = std::min(most, end - i);
                        load_row<T>(tile.get(), (char*)(x.as<T>() + i * n), sizeof(T), count * n);
                        layer_norm_rows<A>(tile.get(), weight, bias, tile.get(), means ? means + i : nullptr,
                                           rstds ? rstds + i : nullptr, count, n, eps);
                        store_row<T>((char*)(o.as<T>() + i * n), sizeof(T), tile.get(), count * n);
                    }
                }
            });
            if (has_mean) from_acc(mean, rows, means);
            if (has_rstd) from_acc(rstd, rows, rstds);
        });
        return out.release();
    });
}

PyObject* layer_norm_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("layer_norm_backward", nargs, 34);
        const int64_t rows = parse_count(args[32]), n = parse_count(args[33]);
        const int64_t numel = checked_mul(rows, n);
        Operand g, x, mean, rstd, w, dx, dw, db;
        parse_dense(args, numel, g);
        parse_dense(args + 4, numel, x);
        parse_dense(args + 8, rows, mean);
        parse_dense(args + 12, rows, rstd);
        const bool has_w = parse_dense_or_none(args + 16, n, w);
        const bool has_dx = parse_dense_or_none(args + 20, numel, dx);
        const bool has_dw = parse_dense_or_none(args + 24, n, dw), has_db = parse_dense_or_none(args + 28, n, db);
        expect_code("layer_norm_backward", g.code, x.code);
        if (has_dx) expect_code("layer_norm_backward", dx.code, x.code);
        dispatch_float(x.code, "LayerNormBackwardKernelImpl", [&](auto t) {
            using T = decltype(t);
            using A = acc_t<T>;
            Row<A> wroom(has_w ? n : 0), mroom(rows), rroom(rows), dwroom(has_dw ? n : 0), dbroom(has_db ? n : 0);
            const A* weight = has_w ? as_acc<A>(w, n, wroom, true) : nullptr;
            const A* means = as_acc<A>(mean, rows, mroom, true);
            const A* rstds = as_acc<A>(rstd, rows, rroom, true);
            A* dweight = has_dw ? as_acc<A>(dw, n, dwroom, false) : nullptr;
            A* dbias = has_db ? as_acc<A>(db, n, dbroom, false) : nullptr;
            GilRelease unlocked(numel);
            // Rows are cut into blocks that depend on the shape only; each has its own sums, added up in order.
            const int64_t block = std::max<int64_t>(lane_grain(n, 1), ceil_div(rows, 32));
            const int64_t blocks = ceil_div(rows, block);
            const int64_t sums = blocks > 1 ? blocks - 1 : 0;
            Scratch parts(checked_numel({sums, n, has_dw + has_db}), sizeof(A));
            A* dw_parts = parts.as<A>();
            A* db_parts = parts.as<A>() + (has_dw ? sums * n : 0);
            if (has_dw) std::fill_n(dweight, n, A(0));
            if (has_db) std::fill_n(dbias, n, A(0));
            std::fill_n(parts.as<A>(), sums * n * (has_dw + has_db), A(0));
            parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t row = i * block, stop = std::min(row + block, rows);
                    A* dws = !has_dw ? nullptr : i ? dw_parts + (i - 1) * n : dweight;
                    A* dbs = !has_db ? nullptr : i ? db_parts + (i - 1) * n : dbias;
                    if constexpr (std::is_same<A, T>::value) {
                        layer_norm_backward_rows<A>(g.as<A>() + row * n, x.as<A>() + row * n, means + row, rstds + row,
                                                    weight, has_dx ? dx.as<A>() + row * n : nullptr, dws, dbs,
                                                    stop - row, n);
                    } else {
                        const int64_t most = rows_together(n);
                        Row<A> gtile(most * n), xtile(most * n);
                        for (int64_t r = row; r < stop; r += most) {
                            const int64_t count = std::min(most, stop - r);
                            load_row<T>(gtile.get(), (char*)(g.as<T>() + r * n), sizeof(T), count * n);
                            load_row<T>(xtile.get(), (char*)(x.as<T>() + r * n), sizeof(T), count * n);
                            layer_norm_backward_rows<A>(gtile.get(), xtile.get(), means + r, rstds + r, weight,
                                                        has_dx ? xtile.get() : nullptr, dws, dbs, count, n);
                            if (has_dx) store_row<T>((char*)(dx.as<T>() + r * n), sizeof(T), xtile.get(), count * n);
                        }
                    }
                }
            });
            for (int64_t i = 0; i < sums; ++i) {
                if (has_dw)
                    for (int64_t j = 0; j < n; ++j) dweight[j] += dw_parts[i * n + j];
                if (has_db)
                    for (int64_t j = 0; j < n; ++j) dbias[j] += db_parts[i * n + j];
            }
            if (has_dw) from_acc(dw, n, dweight);
            if (has_db) from_acc(db, n, dbias);
        });
        Py_RETURN_NONE;
    });
}

PyObject* var(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("var", nargs, 15);
        Shape shape, kept, reduced;
        parse_shape(args[12], shape);
        expect_time_for(shape.numel);
        VarJob job;
        job.correction = as_double(args[13]);
        job.root = as_bool(args[14]);
        job.with_mean = args[8] != Py_None;
        Operand a, o, mean;
        parse_operand(args, shape, a);
        // Which dimensions are reduced is known only from the strides of the result.
        int64_t ostride[MAXD];
        parse_ints(args[6], shape.ndim, ostride);
        kept.ndim = reduced.ndim = shape.ndim;
        for (int i = 0; i < shape.ndim; ++i) {
            kept.dim[i] = ostride[i] ? shape.dim[i] : 1;
            reduced.dim[i] = ostride[i] ? 1 : shape.dim[i];
        }
        kept.numel = checked_numel(kept.dim, kept.ndim);
        Ref out(parse_output(args + 4, kept, o));
        if (job.with_mean) parse_operand(args + 8, kept, mean);
        else mean = o;
        expect_code("var", o.code, a.code);
        expect_code("var", mean.code, a.code);
        if (kept.numel == 0) return out.release();
        job.count = reduced.numel = checked_numel(reduced.dim, reduced.ndim);
        loop_begin(job.kept, kept);
        loop_operand(job.kept, 0, o.data, kept, o.stride, o.itemsize);
        loop_operand(job.kept, 1, mean.data, kept, mean.stride, mean.itemsize);
        loop_operand(job.kept, 2, a.data, kept, a.stride, a.itemsize);
        loop_finish(job.kept);
        loop_begin(job.reduced, reduced);
        loop_operand(job.reduced, 0, a.data, reduced, a.stride, a.itemsize);
        loop_finish(job.reduced);
        dispatch_float(a.code, "std_cpu", [&](auto t) {
            GilRelease unlocked(shape.numel);
            var_run<decltype(t)>(job);
        });
        return out.release();
    });
}

}  // namespace mt
