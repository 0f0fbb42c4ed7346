// Attention by scaled dot products, in blocks of queries and keys: scores never exist for all pairs at once. Invariant:
// how queries and keys are cut depends on the shape alone and each block belongs to one thread, so results are the same
// for any number of threads. A query that sees nothing gets zeros.
//
// Sizes: batch, heads of queries, heads of keys (which divide them), queries, keys, width of keys, width of values.
#include "caches.h"
#include "gemm.h"
#include "halves.h"
#include "halves_dots.h"
#include "lanes.h"
#include "math_core.h"
#include "tiles.h"

#include <algorithm>

namespace mt {
namespace {

constexpr int64_t KEYS = 384;    // of one block: sums over keys run in such blocks
constexpr int64_t QUERIES = 96;  // the same of gradients, which are sums over queries
constexpr int64_t FEW = 4;       // up to so many queries of a head of keys, memory is what counts
// Of a forward block: its scores and a block of keys fit the second cache.
inline int64_t block_queries() {
    const int64_t rows = caches.second / 7 / (KEYS * (int64_t)sizeof(float));
    return std::max<int64_t>(32, std::min<int64_t>(256, rows / 8 * 8));
}

MT_INLINE float exp_below(float x) { return exp_fast(x); }
MT_INLINE double exp_below(double x) { return exp_v(x); }

struct Job {
    int64_t batch, heads, key_heads, queries, keys, width, value_width;
    Operand q, k, v, mask;
    bool has_mask, causal;
    double scale;

    int64_t group() const { return heads / key_heads; }
    // Keys that the first `end` queries may see.
    int64_t seen(int64_t end) const { return causal ? std::min(keys, end) : keys; }
    Source rows(const Operand& t, int64_t b, int64_t h, int64_t from) const {
        return {t.data + (b * t.stride[0] + h * t.stride[1] + from * t.stride[2]) * t.itemsize, t.code, t.stride[2],
                t.stride[3]};
    }
};
Source transposed(const Source& s) { return {s.data, s.code, s.cs, s.rs}; }
template <class A> Source block(const A* data, int64_t rs) {
    return {reinterpret_cast<const char*>(data), CodeOf<A>::value, rs, 1};
}
template <class A> Sink<A> into(A* out, int64_t rs, double alpha, bool add) {
    return {out, rs, 1, out, rs, 1, A(alpha), add ? A(1) : A(0)};
}

// A row of the mask, in A: what is added to scores, or what a mask of bools says.
template <class A> void read_mask(const Operand& m, const char* from, int64_t columns, A* room) {
    constexpr A inf = std::numeric_limits<A>::infinity();
    if (m.code != BOOL) {
        cast_strided((char*)room, sizeof(A), CodeOf<A>::value, from, m.stride[3] * m.itemsize, m.code, columns);
        return;
    }
    at_level(MT_BODY {
        if (m.stride[3] == 1)
            for (int64_t c = 0; c < columns; ++c) room[c] = from[c] ? A(0) : -inf;
        else
            for (int64_t c = 0; c < columns; ++c) room[c] = from[c * m.stride[3]] ? A(0) : -inf;
    });
}

// What hides scores: the mask, and keys behind the query. scores: rows x columns from query i and key j.
template <class A>
void hide(const Job& job, int64_t b, int64_t h, int64_t i, int64_t j, int64_t rows, int64_t columns, A* scores,
          int64_t step, A* room) {
    constexpr A inf = std::numeric_limits<A>::infinity();
    const Operand& m = job.mask;
    const bool picks = job.has_mask && m.code == BOOL;
    for (int64_t r = 0; r < rows; ++r) {
        A* row = scores + r * step;
        if (job.has_mask && (r == 0 || m.stride[2] != 0))  // else it is the same for all queries
            read_mask(
                m, m.data + (b * m.stride[0] + h * m.stride[1] + (i + r) * m.stride[2] + j * m.stride[3]) * m.itemsize,
                columns, room);
        at_level(MT_BODY {
            if (picks)
                for (int64_t c = 0; c < columns; ++c) row[c] = room[c] == A(0) ? row[c] : -inf;
            else if (job.has_mask)
                for (int64_t c = 0; c < columns; ++c) row[c] += room[c];
            for (int64_t c = std::max<int64_t>(0, job.causal ? i + r + 1 - j : columns); c < columns; ++c)
                row[c] = -inf;
        });
    }
}

// Weights as a factor of the next product. Where tiles multiply them they are rounded to bfloat16, each row in its place.
#if MT_HAS_TILES
MT_PAIRS MT_NOINLINE void round_rows(float* rows, int64_t count, int64_t columns) {
    for (int64_t r = 0; r < count; ++r)
        put_sums16(reinterpret_cast<BFloat16*>(rows + r * columns), rows + r * columns, columns);
}
#endif
template <class A> Source factor(const Job& job, A* weights, int64_t rows, int64_t columns) {
#if MT_HAS_TILES
    if constexpr (std::is_same<A, float>::value)
        if (job.q.code == BF16 && has_tiles()) {
            round_rows(weights, rows, columns);
            return {reinterpret_cast<const char*>(weights), BF16, 2 * columns, 1};
        }
#endif
    (void)job, (void)rows;
    return block(weights, columns);
}

// One step of the running softmax: scores become weights; `top` and `total` of each row are brought up to date, and
// sums of values made so far are brought to the new top.
template <class A>
void weigh(A* scores, int64_t step, int64_t rows, int64_t columns, A* top, A* total, A* sums, int64_t width) {
    constexpr A inf = std::numeric_limits<A>::infinity();
    at_level(MT_BODY {
        for (int64_t r = 0; r < rows; ++r) {
            A* row = scores + r * step;
            const A high = fold_of(
                -inf, columns, MT_EACH(c) { return row[c]; },
                [](A a, A x) __attribute__((always_inline)) { return x > a ? x : a; });
            const A next = high > top[r] ? high : top[r];
            const A base = next == -inf ? A(0) : next, shrink = top[r] == -inf ? A(0) : exp_below(top[r] - base);
            const A added = sum_of<A>(columns, MT_EACH(c) { return row[c] = exp_below(row[c] - base); });
            total[r] = total[r] * shrink + added;
            top[r] = next;
            if (shrink != A(1))
                for (int64_t c = 0; c < width; ++c) sums[r * width + c] *= shrink;
        }
    });
}

template <class A> struct Results {
    Operand* out;
    A* log_sums;  // of each query, or null
};

// sums over totals, to the result of queries [i, i + rows).
template <class A>
void finish(const Job& job, const Results<A>& to, int64_t b, int64_t h, int64_t i, int64_t rows, const A* top,
            const A* total, A* sums) {
    constexpr A inf = std::numeric_limits<A>::infinity();
    const int64_t width = job.value_width, first = (b * job.heads + h) * job.queries + i;
    for (int64_t r = 0; r < rows; ++r) {
        const A inverse = total[r] == A(0) ? A(0) : A(1) / total[r];
        at_level(MT_BODY {
            for (int64_t c = 0; c < width; ++c) sums[r * width + c] *= inverse;
        });
        if (to.log_sums) to.log_sums[first + r] = total[r] == A(0) ? -inf : top[r] + std::log(total[r]);
        cast_strided(to.out->data + (first + r) * width * to.out->itemsize, to.out->itemsize, to.out->code,
                     (char*)(sums + r * width), sizeof(A), CodeOf<A>::value, width);
    }
}

// Queries [i, i + rows) of one head.
template <class A>
void forward_block(const Job& job, const Results<A>& to, int64_t b, int64_t h, int64_t i, int64_t rows, A* room) {
    const int64_t g = h / job.group(), width = job.value_width, end = job.seen(i + rows);
    const int64_t most = block_queries();
    A *scores = room, *sums = scores + most * KEYS, *top = sums + most * width, *total = top + most;
    A* row = total + most;
    std::fill_n(sums, rows * width, A(0));
    std::fill_n(top, rows, -std::numeric_limits<A>::infinity());
    std::fill_n(total, rows, A(0));
    const Source q = job.rows(job.q, b, h, i);
    for (int64_t j = 0; j < end; j += KEYS) {
        const int64_t columns = std::min(KEYS, end - j);
        gemm_block(q, transposed(job.rows(job.k, b, g, j)), rows, columns, job.width,
                   into(scores, columns, job.scale, false));
        if (job.has_mask || (job.causal && j + columns > i + 1))
            hide(job, b, h, i, j, rows, columns, scores, columns, row);
        weigh(scores, columns, rows, columns, top, total, sums, width);
        gemm_block(factor(job, scores, rows, columns), job.rows(job.v, b, g, j), rows, width, columns,
                   into(sums, width, 1, true));
    }
    finish(job, to, b, h, i, rows, top, total, sums);
}

// A query times a key: two vectors of sums, which is as much as most widths fill.
template <class A> MT_INLINE A dot_short(const A* x, const A* y, int64_t n) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int64_t LANES = Vec<A, 64>::LANES;
    V a{}, b{};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a += V(*reinterpret_cast<const L*>(x + i)) * V(*reinterpret_cast<const L*>(y + i));
        b += V(*reinterpret_cast<const L*>(x + i + LANES)) * V(*reinterpret_cast<const L*>(y + i + LANES));
    }
    if (i + LANES <= n) {
        a += V(*reinterpret_cast<const L*>(x + i)) * V(*reinterpret_cast<const L*>(y + i));
        i += LANES;
    }
    A total = fold_lanes(V(a + b), [](auto p, auto q) __attribute__((always_inline)) { return p + q; });
    for (; i < n; ++i) total += x[i] * y[i];
    return total;
}

// A block of rows in A: where it lies, or widened.
template <class A> const A* widened_rows(const Source& from, int64_t rows, int64_t width, A* room, int64_t& step) {
    step = from.rs;
    if (from.code == CodeOf<A>::value) return reinterpret_cast<const A*>(from.data);
    step = width;
    if (from.rs == width) {
        cast_block((char*)room, CodeOf<A>::value, from.data, from.code, rows * width);
        return room;
    }
    for (int64_t r = 0; r < rows; ++r)
        cast_block((char*)(room + r * width), CodeOf<A>::value, from.data + r * from.rs * ITEMSIZE[from.code],
                   from.code, width);
    return room;
}

// Scores of rows of queries with a block of keys.
template <class A>
void score(const A* queries, const Source& k, int64_t rows, int64_t columns, int64_t width, A scale, A* scores,
           A* wide) {
    int64_t step;
    const A* const key = widened_rows(k, columns, width, wide, step);
    at_level(MT_BODY {
        for (int64_t c = 0; c < columns; ++c)
            for (int64_t r = 0; r < rows; ++r)
                scores[r * columns + c] = scale * dot_short(queries + r * width, key + c * step, width);
    });
}

// A block of values, weighed, to the sums of rows.
template <class A>
void add_values(const A* scores, const Source& v, int64_t rows, int64_t columns, int64_t values, A* sums, A* wide) {
    int64_t value_step;
    const A* const value = widened_rows(v, columns, values, wide, value_step);
    at_level(MT_BODY {
        for (int64_t r = 0; r < rows; ++r) {
            A* MT_RESTRICT sum = sums + r * values;
            const A* weight = scores + r * columns;
            int64_t c = 0;
            for (; c + 8 <= columns; c += 8) {
                const A *v0 = value + c * value_step, *v1 = v0 + value_step, *v2 = v1 + value_step;
                const A* v3 = v2 + value_step;
                const A *v4 = v3 + value_step, *v5 = v4 + value_step, *v6 = v5 + value_step;
                const A* v7 = v6 + value_step;
                const A w0 = weight[c], w1 = weight[c + 1], w2 = weight[c + 2], w3 = weight[c + 3];
                const A w4 = weight[c + 4], w5 = weight[c + 5], w6 = weight[c + 6], w7 = weight[c + 7];
#pragma GCC ivdep
                for (int64_t d = 0; d < values; ++d)
                    sum[d] += ((w0 * v0[d] + w1 * v1[d]) + (w2 * v2[d] + w3 * v3[d])) +
                              ((w4 * v4[d] + w5 * v5[d]) + (w6 * v6[d] + w7 * v7[d]));
            }
            for (; c < columns; ++c)
                for (int64_t d = 0; d < values; ++d) sum[d] += weight[c] * value[c * value_step + d];
        }
    });
}

// All queries of one head of keys, when they are few: keys and values are read once, where they lie.
template <class A> void forward_few(const Job& job, const Results<A>& to, int64_t b, int64_t g, A* room) {
    const int64_t group = job.group(), rows = group * job.queries, width = job.width, values = job.value_width;
    A *scores = room, *sums = scores + rows * KEYS, *top = sums + rows * values, *total = top + rows;
    A *row = total + rows, *queries = row + KEYS, *wide = queries + rows * width;
    const bool halves = std::is_same<A, float>::value && has_half_rows(job.k.code);
    const Source lying{(const char*)queries, job.q.code, width, 1};
    std::fill_n(sums, rows * values, A(0));
    std::fill_n(top, rows, -std::numeric_limits<A>::infinity());
    std::fill_n(total, rows, A(0));
    for (int64_t r = 0; r < rows; ++r) {
        const Source q = job.rows(job.q, b, g * group + r / job.queries, r % job.queries);
        const int64_t size = ITEMSIZE[q.code];
        const int code = halves ? q.code : CodeOf<A>::value;
        cast_strided((char*)queries + r * width * ITEMSIZE[code], ITEMSIZE[code], code, q.data, q.cs * size, q.code,
                     width);
    }
    const int64_t end = job.seen(job.queries);
    for (int64_t j = 0; j < end; j += KEYS) {
        const int64_t columns = std::min(KEYS, end - j);
        const Source k = job.rows(job.k, b, g, j), v = job.rows(job.v, b, g, j);
        if constexpr (std::is_same<A, float>::value)
            if (halves) dot_half_rows(lying, k, rows, columns, width, A(job.scale), scores);
        if (!halves) score(queries, k, rows, columns, width, A(job.scale), scores, wide);
        for (int64_t h = 0; h < group && (job.has_mask || job.causal); ++h)
            hide(job, b, g * group + h, 0, j, job.queries, columns, scores + h * job.queries * columns, columns, row);
        weigh(scores, columns, rows, columns, top, total, sums, values);
        if constexpr (std::is_same<A, float>::value)
            if (halves) add_half_rows(scores, v, rows, values, columns, sums);
        if (!halves) add_values(scores, v, rows, columns, values, sums, wide);
    }
    for (int64_t h = 0; h < group; ++h) {
        const int64_t r = h * job.queries;
        finish(job, to, b, g * group + h, 0, job.queries, top + r, total + r, sums + r * values);
    }
}

template <class A> void forward(const Job& job, const Results<A>& to) {
    const int64_t rows = job.group() * job.queries;
    const bool dense = job.k.stride[3] == 1 && job.v.stride[3] == 1;
    if (rows <= FEW && dense) {
        const int64_t wide = job.k.code == CodeOf<A>::value ? 0 : std::max(job.width, job.value_width);
        const int64_t room =
            checked_add(checked_mul(rows, KEYS + job.value_width + 2 + job.width), checked_mul(KEYS, wide + 1));
        const int64_t work = saturated_mul(saturated_mul(job.keys, job.width + job.value_width), rows);
        parallel_for(checked_mul(job.batch, job.key_heads), std::max<int64_t>(1, GRAIN / (work + 1)),
                     [&](int64_t begin, int64_t end) {
                         const Scratch memory(room, sizeof(A));
                         for (int64_t t = begin; t < end; ++t)
                             forward_few(job, to, t / job.key_heads, t % job.key_heads, memory.as<A>());
                     });
        return;
    }
    const int64_t most = block_queries(), blocks = ceil_div(job.queries, most),
                  room = checked_add(most * (KEYS + 2) + KEYS, checked_mul(most, job.value_width));
    const int64_t work =
        saturated_mul(saturated_mul(std::min(most, job.queries), job.keys), job.width + job.value_width) / 4;
    parallel_for(checked_numel({job.batch, job.heads, blocks}), std::max<int64_t>(1, GRAIN / (work + 1)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch memory(room, sizeof(A));
                     const Tiles tiles(job.q.code == BF16);
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t i = t % blocks * most, head = t / blocks;
                         forward_block(job, to, head / job.heads, head % job.heads, i, std::min(most, job.queries - i),
                                       memory.as<A>());
                     }
                 });
}

// ---------------------------------------------------------------- gradients

template <class A> struct Gradients {
    Operand grad, out;  // of the result, and the result
    const A* log_sums;
    A *q, *k, *v;  // dense, in A; those of keys and values are zeros to begin with
};

// One head of keys: the queries that look at it in order, so that sums of keys and values have one order.
template <class A> void backward_head(const Job& job, const Gradients<A>& to, int64_t b, int64_t g, A* room) {
    const int64_t width = job.width, values = job.value_width, group = job.group();
    A *weights = room, *slopes = weights + QUERIES * KEYS, *dots = slopes + QUERIES * KEYS, *row = dots + QUERIES;
    A *gradient = row + KEYS, *result = gradient + values;
    for (int64_t h = g * group; h < (g + 1) * group; ++h)
        for (int64_t i = 0; i < job.queries; i += QUERIES) {
            const int64_t rows = std::min(QUERIES, job.queries - i), end = job.seen(i + rows);
            const int64_t first = (b * job.heads + h) * job.queries + i;
            const Source q = job.rows(job.q, b, h, i), grad = job.rows(to.grad, b, h, i);
            for (int64_t r = 0; r < rows; ++r) {
                const Source go = job.rows(to.grad, b, h, i + r), o = job.rows(to.out, b, h, i + r);
                cast_strided((char*)gradient, sizeof(A), CodeOf<A>::value, go.data, go.cs * ITEMSIZE[go.code], go.code,
                             values);
                cast_strided((char*)result, sizeof(A), CodeOf<A>::value, o.data, o.cs * ITEMSIZE[o.code], o.code,
                             values);
                dots[r] = sum_of<A>(values, MT_EACH(d) { return gradient[d] * result[d]; });
            }
            A* dq = to.q + first * width;
            std::fill_n(dq, rows * width, A(0));
            for (int64_t j = 0; j < end; j += KEYS) {
                const int64_t columns = std::min(KEYS, end - j);
                const Source k = job.rows(job.k, b, g, j), v = job.rows(job.v, b, g, j);
                gemm_block(q, transposed(k), rows, columns, width, into(weights, columns, job.scale, false));
                if (job.has_mask || (job.causal && j + columns > i + 1))
                    hide(job, b, h, i, j, rows, columns, weights, columns, row);
                gemm_block(grad, transposed(v), rows, columns, values, into(slopes, columns, 1, false));
                const A* log_sums = to.log_sums + first;
                const A scale = A(job.scale);
                at_level(MT_BODY {
                    for (int64_t r = 0; r < rows; ++r) {
                        A *w = weights + r * columns, *s = slopes + r * columns;
                        const A sum = log_sums[r], dot = dots[r];
                        const bool nothing = sum == -std::numeric_limits<A>::infinity();
                        const A base = nothing ? A(0) : sum;
#pragma GCC ivdep
                        for (int64_t c = 0; c < columns; ++c) {
                            const A p = exp_below(w[c] - base);
                            w[c] = p;
                            s[c] = p * (s[c] - dot) * scale;
                        }
                    }
                });
                const int64_t head = b * job.key_heads + g;
                const Source p = factor(job, weights, rows, columns), s = factor(job, slopes, rows, columns);
                gemm_block(transposed(p), grad, columns, values, rows,
                           into(to.v + (head * job.keys + j) * values, values, 1, true));
                gemm_block(transposed(s), q, columns, width, rows,
                           into(to.k + (head * job.keys + j) * width, width, 1, true));
                gemm_block(s, k, rows, width, columns, into(dq, width, 1, true));
            }
        }
}

template <class A> void backward(const Job& job, const Gradients<A>& to) {
    const int64_t room = checked_add(QUERIES * (2 * KEYS + 1) + KEYS, checked_mul(2, job.value_width));
    const int64_t work =
        saturated_mul(saturated_mul(saturated_mul(job.queries, job.keys), job.group()), job.width + job.value_width) /
        2;
    parallel_for(checked_mul(job.batch, job.key_heads), std::max<int64_t>(1, GRAIN / (work + 1)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch memory(room, sizeof(A));
                     const Tiles tiles(job.q.code == BF16);
                     for (int64_t t = begin; t < end; ++t)
                         backward_head(job, to, t / job.key_heads, t % job.key_heads, memory.as<A>());
                 });
}

// args: seven sizes, whether only earlier keys are seen, scale; q, k, v, mask (or None), each storage, offset, strides,
// code. Returns how many were read.
int parse_job(PyObject* const* args, Job& job) {
    int64_t* const sizes[] = {&job.batch, &job.heads, &job.key_heads,  &job.queries,
                              &job.keys,  &job.width, &job.value_width};
    for (int i = 0; i < 7; ++i) {
        *sizes[i] = parse_count(args[i]);
        if (*sizes[i] == 0) fail(PyExc_ValueError, "attention: sizes must not be 0");
    }
    if (job.heads % job.key_heads) fail(PyExc_ValueError, "attention: heads of keys must divide heads of queries");
    job.causal = as_bool(args[7]);
    job.scale = as_double(args[8]);
    Shape shape;
    set_shape(shape, {job.batch, job.heads, job.queries, job.width});
    parse_operand(args + 9, shape, job.q);
    set_shape(shape, {job.batch, job.key_heads, job.keys, job.width});
    parse_operand(args + 13, shape, job.k);
    set_shape(shape, {job.batch, job.key_heads, job.keys, job.value_width});
    parse_operand(args + 17, shape, job.v);
    expect_code("attention", job.k.code, job.q.code);
    expect_code("attention", job.v.code, job.q.code);
    job.has_mask = args[21] != Py_None;
    if (job.has_mask) {
        set_shape(shape, {job.batch, job.heads, job.queries, job.keys});
        parse_operand(args + 21, shape, job.mask);
    }
    expect_time_for(saturated_mul(saturated_mul(job.batch, job.heads), saturated_mul(job.queries, job.keys)));
    return 25;
}

int64_t work_of(const Job& job) {
    return saturated_mul(saturated_mul(saturated_mul(job.batch, job.heads), saturated_mul(job.queries, job.keys)),
                         job.width);
}

}  // namespace

PyObject* attention(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("attention", nargs, 33);
        Job job;
        const int at = parse_job(args, job);
        const int64_t queries = checked_numel({job.batch, job.heads, job.queries});
        Operand out, log_sums;
        parse_dense(args + at, checked_mul(queries, job.value_width), out);
        expect_code("attention", out.code, job.q.code);
        const bool has_sums = parse_dense_or_none(args + at + 4, queries, log_sums);
        dispatch_float(job.q.code, "flash_attention", [&](auto t) {
            using A = acc_t<decltype(t)>;
            if (has_sums) expect_code("attention", log_sums.code, CodeOf<A>::value);
            GilRelease unlocked(work_of(job));
            forward<A>(job, {&out, has_sums ? log_sums.as<A>() : nullptr});
        });
        Py_RETURN_NONE;
    });
}

PyObject* attention_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("attention_backward", nargs, 49);
        Job job;
        const int at = parse_job(args, job);
        const int64_t queries = checked_numel({job.batch, job.heads, job.queries});
        const int64_t keys = checked_numel({job.batch, job.key_heads, job.keys});
        Operand grad, out, log_sums, dq, dk, dv;
        Shape shape;
        set_shape(shape, {job.batch, job.heads, job.queries, job.value_width});
        parse_operand(args + at, shape, grad);
        parse_operand(args + at + 4, shape, out);
        parse_dense(args + at + 8, queries, log_sums);
        parse_dense(args + at + 12, checked_mul(queries, job.width), dq);
        parse_dense(args + at + 16, checked_mul(keys, job.width), dk);
        parse_dense(args + at + 20, checked_mul(keys, job.value_width), dv);
        expect_code("attention_backward", grad.code, job.q.code);
        expect_code("attention_backward", out.code, job.q.code);
        dispatch_float(job.q.code, "flash_attention_backward", [&](auto t) {
            using A = acc_t<decltype(t)>;
            for (const Operand* each : {&log_sums, &dq, &dk, &dv})
                expect_code("attention_backward", each->code, CodeOf<A>::value);
            GilRelease unlocked(work_of(job));
            std::fill_n(dk.as<A>(), keys * job.width, A(0));
            std::fill_n(dv.as<A>(), keys * job.value_width, A(0));
            backward<A>(job, {grad, out, log_sums.as<A>(), dq.as<A>(), dk.as<A>(), dv.as<A>()});
        });
        Py_RETURN_NONE;
    });
}

}  // namespace mt

extern PyMethodDef attention_methods[];  // no other file needs to know
PyMethodDef attention_methods[] = {
    MT_METHOD("attention", mt::attention,
              "attention(batch, heads, key_heads, queries, keys, width, value_width, causal, scale, q.., k.., v.., "
              "mask.., out.., log_sums..)"),
    MT_METHOD("attention_backward", mt::attention_backward,
              "attention_backward(the same up to mask.., grad.., out.., log_sums.., dq.., dk.., dv..)"),
    {nullptr, nullptr, 0, nullptr}};
