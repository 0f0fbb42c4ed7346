// A layer of a recurrent network in one direction, all steps in one call, and its gradient. float32 and float64.
// Invariant: operands are dense, of one dtype, and measured before they are read; weights are packed once for all steps.
// Beside float32, the weight of a forward call may be a two-byte float: where the CPU multiplies bfloat16, such products
// are of that weight and of states rounded to it; elsewhere it is widened.
// Each sum runs over k in blocks that depend on k alone, so results do not depend on the number of threads.
//
// An operand is 3 arguments: storage, offset, code. Gates stand side by side in PyTorch's order (cells.cpp).
//   recurrent(gates.., hx.., cx|None.., weight.., bias|None.., out.., cells|None.., kept|None.., kind, steps, rows, width,
//             reverse, keeps)
//       gates [steps][rows][g * width]: the input's share, with its bias (and the state's, but for a GRU's, which is
//       `bias`); out, cells [steps][rows][width]; kept [steps][rows][4 * width], what the gradient of LSTM and GRU wants
//       (GRU: reset, update, candidate, the state's share of it), or unless `keeps` that of one step
//   recurrent_backward(grad_out.., grad_cell|None.., hx.., cx|None.., weight.., out.., cells|None.., kept.., dgates..,
//                      dstate|None.., dhx.., dcx|None.., kind, steps, rows, width, reverse)
//       dstate: the gradient of the state's share of the gates, where it differs from dgates (GRU)
#include "gemm.h"
#include "halves.h"
#include "lanes.h"
#include "math_core.h"
#include "tiles.h"
#include "windows.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace mt {
namespace {

enum Kind : int { TANH = 0, RELU = 1, LSTM = 2, GRU = 3 };

struct Layer {
    Kind kind;
    int64_t steps, rows, width;
    bool reverse;
    explicit Layer(PyObject* const* args)
        : kind(Kind(as_int(args[0]))), steps(parse_count(args[1])), rows(parse_count(args[2])),
          width(parse_count(args[3])), reverse(as_bool(args[4])) {
        if (kind < TANH || kind > GRU || steps < 1) fail(PyExc_ValueError, "recurrent: no such layer");
    }
    int64_t gates() const { return kind == LSTM ? 4 : kind == GRU ? 3 : 1; }
    int64_t state() const { return checked_mul(rows, width); }
    int64_t all(int64_t parts) const { return checked_numel({steps, rows, parts, width}); }
    int64_t at(int64_t step) const { return reverse ? steps - 1 - step : step; }
};

// Lines of a matrix as panels of `nr`, for every block of k.
template <class A> class Lines {
public:
    Lines(const Engine<A>& e, const A* from, int64_t lines, int64_t k, int64_t line_stride, int64_t k_stride)
        : e_(e), lines_(lines), k_(k), padded_(ceil_div(lines, e.nr) * e.nr),
          room_(new Scratch(checked_mul(padded_, k), sizeof(A))) {
        const int64_t depth = block_depth(k);
        for (int64_t p = 0; p < k; p += depth)
            for (int64_t l = 0; l < lines; l += e.nr) {
                const int64_t kb = std::min(depth, k - p);
                e.pack(room_->template as<A>() + p * padded_ + l * kb, e.nr, from + l * line_stride + p * k_stride,
                       line_stride, k_stride, std::min<int64_t>(e.nr, lines - l), kb);
            }
    }
    int64_t panels() const { return padded_ / e_.nr; }
    // to = rows (packed) times the lines of panel j
    void multiply(const A* rows, int64_t m, int64_t j, const Sink<A>& to) const {
        const int64_t depth = block_depth(k_), tall = ceil_div(m, e_.mr) * e_.mr, first = j * e_.nr;
        for (int64_t p = 0; p < k_; p += depth) {
            const int64_t kb = std::min(depth, k_ - p);
            multiply_panels(e_, rows + p * tall, m, room_->template as<A>() + p * padded_ + first * kb,
                            std::min<int64_t>(e_.nr, lines_ - first), kb, to, p == 0);
        }
    }

private:
    const Engine<A>& e_;
    int64_t lines_, k_, padded_;
    std::unique_ptr<Scratch> room_;
};

// m rows of k elements as panels of `mr`, for every block of k.
template <class A> void pack_rows(const Engine<A>& e, const A* from, int64_t m, int64_t k, A* to) {
    const int64_t depth = block_depth(k), tall = ceil_div(m, e.mr) * e.mr;
    for (int64_t p = 0; p < k; p += depth)
        for (int64_t i = 0; i < m; i += e.mr) {
            const int64_t kb = std::min(depth, k - p);
            e.pack(to + p * tall + i * kb, e.mr, from + i * k + p, k, 1, std::min<int64_t>(e.mr, m - i), kb);
        }
}

template <class F> void for_panels(const Layer& v, int64_t panels, int nr, int64_t k, F&& f) {
    const int64_t work = saturated_mul(saturated_mul(v.rows, nr), k);
    parallel_for(panels, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) f(j);
    });
}

// The state's share of all gates, for the units of one panel: sums[gate][row][unit], `units` apart from row to row.
template <class A> class Shares {
public:
    Shares(int units, int64_t panels) : units(units), panels(panels) {}
    virtual ~Shares() = default;
    virtual void take(const A* state) = 0;  // of the step before
    virtual void multiply(int64_t panel, A* sums) const = 0;
    const int units;
    const int64_t panels;
};

template <class A> class WideShares : public Shares<A> {
public:
    WideShares(const Layer& v, const Engine<A>& e, const A* weight)
        : Shares<A>(e.nr, ceil_div(v.width, e.nr)), v_(v), e_(e),
          packed_(checked_mul(ceil_div(v.rows, e.mr) * e.mr, v.width), sizeof(A)) {
        const int64_t n = v.width;
        for (int64_t q = 0; q < v.gates(); ++q) lines_.emplace_back(e, weight + q * n * n, n, n, n, 1);
    }
    void take(const A* state) override { pack_rows(e_, state, v_.rows, v_.width, packed_.template as<A>()); }
    void multiply(int64_t panel, A* sums) const override {
        for (const Lines<A>& each : lines_) {
            each.multiply(packed_.template as<A>(), v_.rows, panel, Sink<A>{sums, e_.nr, 1, nullptr, 0, 0, A(1), A(0)});
            sums += v_.rows * e_.nr;
        }
    }

private:
    const Layer& v_;
    const Engine<A>& e_;
    const Scratch packed_;
    std::vector<Lines<A>> lines_;
};

#if MT_HAS_TILES
MT_PAIRS MT_NOINLINE void round_states(BFloat16* to, int64_t pitch, const float* from, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) put_sums16(to + r * pitch, from + r * n, n);
}

// Of bfloat16: by tiles, or by pairs. Both want words of two elements along k, and the same panels of weights.
class HalfShares : public Shares<float> {
public:
    static bool fits(const Layer& v) { return cpu_has_bf16 && v.width % 2 == 0; }
    HalfShares(const Layer& v, const uint16_t* weight)
        : Shares<float>(int(SPAN), ceil_div(v.width, SPAN)), v_(v), e_(*pair_engine(v.rows)), tiles_(has_tiles()),
          words_(ceil_div(v.width, 2 * EDGE) * EDGE), tall_(ceil_div(v.rows, EDGE) * EDGE),
          weights_(checked_numel({v.gates(), panels, SPAN, words_}), sizeof(uint32_t)),
          states_(checked_numel({tall_, words_}), sizeof(uint32_t)),
          packed_(tiles_ ? 0 : checked_mul(ceil_div(v.rows, e_.mr) * e_.mr, words_), sizeof(float)) {
        const int64_t n = v.width;
        uint32_t* to = weights_.as<uint32_t>();
        std::fill_n(states_.as<uint32_t>(), tall_ * words_, 0u);
        for (int64_t q = 0; q < v.gates(); ++q)
            for (int64_t j = 0; j < panels; ++j, to += SPAN * words_) {
                const int64_t first = j * SPAN;
                pack_words(to, weight + (q * n + first) * n, n, std::min(SPAN, n - first), n / 2);
                std::fill_n(to + n / 2 * SPAN, (words_ - n / 2) * SPAN, 0u);
            }
    }
    void take(const float* state) override {
        round_states(states_.as<BFloat16>(), 2 * words_, state, v_.rows, v_.width);
        if (!tiles_) pack_rows(e_, (const float*)states_.as<float>(), v_.rows, words_, packed_.as<float>());
    }
    void multiply(int64_t panel, float* sums) const override {
        const Tiles held(tiles_);
        const int64_t units = std::min(SPAN, v_.width - panel * SPAN);
        for (int64_t q = 0; q < v_.gates(); ++q, sums += v_.rows * SPAN) {
            const uint32_t* weight = weights_.as<uint32_t>() + (q * panels + panel) * SPAN * words_;
            const Sink<float> to{sums, SPAN, 1, nullptr, 0, 0, 1.0f, 0.0f};
            if (tiles_) by_tiles(weight, units, to);
            else by_pairs(reinterpret_cast<const float*>(weight), units, to);
        }
    }

private:
    void by_tiles(const uint32_t* weight, int64_t units, const Sink<float>& to) const {
        alignas(64) float part[SPAN * SPAN];
        for (int64_t p = 0; p < words_; p += DEEP)
            for (int64_t i = 0; i < v_.rows; i += SPAN) {
                const int64_t count = std::min(SPAN, v_.rows - i), row = words_ * 4;
                const Lay a{states_.as<uint32_t>() + i * words_ + p, row, EDGE * 4, EDGE * row};
                const Lay b{weight + p * SPAN, SPAN * 4, EDGE * SPAN * 4, EDGE * 4};
                tile_products(a, b, std::min(DEEP, words_ - p) / EDGE, count > EDGE, units > EDGE, part);
                sink_sums(part, int(SPAN), to, i, 0, count, units, p == 0, false);
            }
    }
    void by_pairs(const float* weight, int64_t units, const Sink<float>& to) const {
        const int64_t depth = block_depth(words_), tall = ceil_div(v_.rows, e_.mr) * e_.mr;
        for (int64_t p = 0; p < words_; p += depth)
            multiply_panels(e_, packed_.as<float>() + p * tall, v_.rows, weight + p * SPAN, units,
                            std::min(depth, words_ - p), to, p == 0);
    }

    const Layer& v_;
    const Engine<float>& e_;
    const bool tiles_;
    const int64_t words_, tall_;
    const Scratch weights_, states_, packed_;
};
#endif

// ---------------------------------------------------------------- forward

// One step's memory.
template <class A> struct Step {
    const A *x, *h, *c, *bias;  // x: gates of the input; h, c: the state before
    A *out, *cell, *kept;
};

// The state's share of each gate, for some units of all rows: [gate][row][unit]. Rows of whole layers may lie a power of
// two apart, which few places of a cache serve.
template <class A> struct Share {
    const A* sums;
    int64_t rows, units;
    const A* of(int64_t gate, int64_t row) const { return sums + (gate * rows + row) * units; }
};

// Units [a, b) of one row.
template <class A> MT_INLINE void lstm_units(const Step<A>& s, const Share<A>& h, int64_t r, int64_t n, int64_t a,
                                             int64_t b) {
    const A *x = s.x + r * 4 * n + a, *before = s.c + r * n + a;
    const A *h0 = h.of(0, r), *h1 = h.of(1, r), *h2 = h.of(2, r), *h3 = h.of(3, r);
    A *in = s.kept + r * 4 * n + a, *forget = in + n, *fresh = in + 2 * n, *gate = in + 3 * n;
    A *cell = s.cell + r * n + a, *out = s.out + r * n + a;
#pragma GCC ivdep
    for (int64_t i = 0; i < b - a; ++i) {
        in[i] = sigmoid_v(x[i] + h0[i]);
        forget[i] = sigmoid_v(x[n + i] + h1[i]);
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < b - a; ++i) {
        fresh[i] = tanh_v(x[2 * n + i] + h2[i]);
        gate[i] = sigmoid_v(x[3 * n + i] + h3[i]);
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < b - a; ++i) {
        const A c = forget[i] * before[i] + in[i] * fresh[i];
        cell[i] = c;
        out[i] = tanh_v(c) * gate[i];
    }
}
template <class A> MT_INLINE void gru_units(const Step<A>& s, const Share<A>& h, int64_t r, int64_t n, int64_t a,
                                            int64_t b) {
    const A *x = s.x + r * 3 * n + a, *before = s.h + r * n + a, *bias = s.bias ? s.bias + a : nullptr;
    const A *h0 = h.of(0, r), *h1 = h.of(1, r), *h2 = h.of(2, r);
    A *reset = s.kept + r * 4 * n + a, *update = reset + n, *fresh = reset + 2 * n, *share = reset + 3 * n;
    A* out = s.out + r * n + a;
#pragma GCC ivdep
    for (int64_t i = 0; i < b - a; ++i) {
        reset[i] = sigmoid_v(x[i] + (h0[i] + (bias ? bias[i] : A(0))));
        update[i] = sigmoid_v(x[n + i] + (h1[i] + (bias ? bias[n + i] : A(0))));
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < b - a; ++i) {
        share[i] = h2[i] + (bias ? bias[2 * n + i] : A(0));
        fresh[i] = tanh_v(x[2 * n + i] + reset[i] * share[i]);
        out[i] = (before[i] - fresh[i]) * update[i] + fresh[i];
    }
}
template <class A> MT_INLINE void plain_units(const Step<A>& s, const Share<A>& h, bool relu, int64_t r, int64_t n,
                                              int64_t a, int64_t b) {
    const A *x = s.x + r * n + a, *h0 = h.of(0, r);
    A* out = s.out + r * n + a;
    if (relu)
        for (int64_t i = 0; i < b - a; ++i) out[i] = x[i] + h0[i] <= 0 ? A(0) : x[i] + h0[i];
    else
#pragma GCC ivdep
        for (int64_t i = 0; i < b - a; ++i) out[i] = tanh_v(x[i] + h0[i]);
}

template <class A> void run(const Layer& v, const A* gates, const A* hx, const A* cx, Shares<A>& weight, const A* bias,
                            A* out, A* cells, A* kept, bool keeps) {
    const int64_t n = v.width, g = v.gates(), state = v.state(), units = weight.units;
    const Scratch shares(checked_numel({weight.panels, units, g, v.rows}), sizeof(A));
    for (int64_t s = 0; s < v.steps; ++s) {
        const int64_t t = v.at(s), before = s == 0 ? 0 : v.at(s - 1);
        Step<A> step{gates + t * g * state,
                     s == 0 ? hx : out + before * state,
                     nullptr,
                     bias,
                     out + t * state,
                     nullptr,
                     kept ? kept + (keeps ? t * 4 * state : 0) : nullptr};
        if (v.kind == LSTM) step.c = s == 0 ? cx : cells + before * state, step.cell = cells + t * state;
        weight.take(step.h);
        for_panels(v, weight.panels, int(units), g * n, [&](int64_t j) {
            const int64_t a = j * units, b = std::min(a + units, n);
            A* sums = shares.as<A>() + j * g * v.rows * units;
            weight.multiply(j, sums);
            const Share<A> share{sums, v.rows, units};
            at_level(MT_BODY {
                for (int64_t r = 0; r < v.rows; ++r) {
                    if (v.kind == LSTM) lstm_units(step, share, r, n, a, b);
                    else if (v.kind == GRU) gru_units(step, share, r, n, a, b);
                    else plain_units(step, share, v.kind == RELU, r, n, a, b);
                }
            });
        });
    }
}

// ---------------------------------------------------------------- the gradient

template <class A> struct Slopes {
    const A *grad, *h, *c, *out, *cell, *kept;
    A *dh, *dc;  // of the state behind this step; dc becomes that before
    A *dx, *ds;  // of the input's and of the state's gates
};

template <class A> MT_INLINE void lstm_slopes(const Slopes<A>& s, int64_t row, int64_t n) {
    const A *in = s.kept + row * 4 * n, *forget = in + n, *fresh = in + 2 * n, *gate = in + 3 * n;
    const A *grad = s.grad + row * n, *before = s.c + row * n, *cell = s.cell + row * n;
    A *dh = s.dh + row * n, *dc = s.dc + row * n, *dx = s.dx + row * 4 * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        const A bent = tanh_v(cell[i]), up = dh[i] + grad[i];
        const A down = dc[i] + up * gate[i] * (A(1) - bent * bent);
        dx[i] = down * fresh[i] * in[i] * (A(1) - in[i]);
        dx[n + i] = down * before[i] * forget[i] * (A(1) - forget[i]);
        dx[2 * n + i] = down * in[i] * (A(1) - fresh[i] * fresh[i]);
        dx[3 * n + i] = up * bent * gate[i] * (A(1) - gate[i]);
        dc[i] = down * forget[i];
    }
}
// dh becomes the part of the gradient that does not go through the gates.
template <class A> MT_INLINE void gru_slopes(const Slopes<A>& s, int64_t row, int64_t n) {
    const A *reset = s.kept + row * 4 * n, *update = reset + n, *fresh = reset + 2 * n, *share = reset + 3 * n;
    const A *grad = s.grad + row * n, *before = s.h + row * n;
    A *dh = s.dh + row * n, *dx = s.dx + row * 3 * n, *ds = s.ds + row * 3 * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        const A up = dh[i] + grad[i];
        const A dn = up * (A(1) - update[i]) * (A(1) - fresh[i] * fresh[i]);
        const A du = up * (before[i] - fresh[i]) * update[i] * (A(1) - update[i]);
        const A dr = dn * share[i] * reset[i] * (A(1) - reset[i]);
        dx[i] = ds[i] = dr;
        dx[n + i] = ds[n + i] = du;
        dx[2 * n + i] = dn;
        ds[2 * n + i] = dn * reset[i];
        dh[i] = up * update[i];
    }
}
template <class A> MT_INLINE void plain_slopes(const Slopes<A>& s, bool relu, int64_t row, int64_t n) {
    const A *grad = s.grad + row * n, *out = s.out + row * n, *dh = s.dh + row * n;
    A* dx = s.dx + row * n;
    if (relu)
        for (int64_t i = 0; i < n; ++i) dx[i] = out[i] <= 0 ? A(0) : dh[i] + grad[i];
    else
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) dx[i] = (dh[i] + grad[i]) * (A(1) - out[i] * out[i]);
}

template <class A> void run_back(const Layer& v, const Slopes<A>& all, const A* hx, const A* cx, const A* weight) {
    const int64_t n = v.width, g = v.gates(), state = v.state();
    const Engine<A>& e = engine<A>(v.rows);
    const Lines<A> lines(e, weight, n, g * n, 1, n);
    const Scratch packed(checked_mul(ceil_div(v.rows, e.mr) * e.mr, g * n), sizeof(A));
    for (int64_t s = v.steps - 1; s >= 0; --s) {
        const int64_t t = v.at(s), before = s == 0 ? 0 : v.at(s - 1);
        const Slopes<A> step{all.grad + t * state,
                             s == 0 ? hx : all.out + before * state,
                             v.kind != LSTM ? nullptr
                             : s == 0       ? cx
                                            : all.cell + before * state,
                             all.out + t * state,
                             v.kind == LSTM ? all.cell + t * state : nullptr,
                             all.kept ? all.kept + t * 4 * state : nullptr,
                             all.dh,
                             all.dc,
                             all.dx + t * g * state,
                             v.kind == GRU ? all.ds + t * g * state : all.dx + t * g * state};
        parallel_for(v.rows, lane_grain(g * n, 8), [&](int64_t begin, int64_t end) {
            at_level(MT_BODY {
                for (int64_t r = begin; r < end; ++r) {
                    if (v.kind == LSTM) lstm_slopes(step, r, n);
                    else if (v.kind == GRU) gru_slopes(step, r, n);
                    else plain_slopes(step, v.kind == RELU, r, n);
                }
            });
        });
        pack_rows(e, (const A*)step.ds, v.rows, g * n, packed.as<A>());
        for_panels(v, lines.panels(), e.nr, g * n, [&](int64_t j) {
            A* to = all.dh + j * e.nr;
            lines.multiply(packed.as<A>(), v.rows, j, Sink<A>{to, n, 1, to, n, 1, A(1), A(v.kind == GRU ? 1 : 0)});
        });
    }
}

// ---------------------------------------------------------------- calls

// Operands one after the other, all of one dtype.
class Given {
public:
    explicit Given(PyObject* const* args) : args_(args) {}
    Dense need(int64_t numel) {
        const Dense d = parse_dense(args_, numel);
        if (code_ < 0) code_ = d.code;
        if (d.code != code_) fail(PyExc_ValueError, "recurrent: operands of two dtypes");
        args_ += 3;
        return d;
    }
    Dense want(int64_t numel, bool there) {
        if (there) return need(numel);
        if (args_[0] != Py_None) fail(PyExc_ValueError, "recurrent: an operand that this kind has not");
        args_ += 3;
        return {nullptr, code_};
    }
    // One that may be a two-byte float beside float32.
    Dense need_or_narrow(int64_t numel) {
        const Dense d = parse_dense(args_, numel);
        if (d.code != code_ && !(code_ == F32 && (d.code == BF16 || d.code == F16)))
            fail(PyExc_ValueError, "recurrent: operands of two dtypes");
        args_ += 3;
        return d;
    }
    bool none() const { return args_[0] == Py_None; }
    int code() const { return code_; }

private:
    PyObject* const* args_;
    int code_ = -1;
};

template <class F> void dispatch_wide(int code, F&& f) {
    if (code == F32) f(float());
    else if (code == F64) f(double());
    else fail_dtype("recurrent", code);
}

// How the CPU multiplies this weight.
template <class A> std::unique_ptr<Shares<A>> shares_of(const Layer& v, const Dense& weight) {
    const Engine<A>& e = engine<A>(v.rows);
    if constexpr (std::is_same<A, float>::value)
        if (weight.code != F32) {
#if MT_HAS_TILES
            if (weight.code == BF16 && HalfShares::fits(v))
                return std::make_unique<HalfShares>(v, weight.as<const uint16_t>());
#endif
            const int64_t numel = checked_numel({v.gates(), v.width, v.width});
            const Scratch wide(numel, sizeof(A));
            cast_block(wide.as<char>(), F32, weight.data, weight.code, numel);
            return std::make_unique<WideShares<A>>(v, e, (const A*)wide.as<A>());
        }
    return std::make_unique<WideShares<A>>(v, e, weight.as<const A>());
}

PyObject* recurrent(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("recurrent", nargs, 30);
        const Layer v(args + 24);
        const bool keeps = as_bool(args[29]);
        const int64_t g = checked_mul(v.gates(), v.width);
        Given given(args);
        const Dense gates = given.need(v.all(v.gates())), hx = given.need(v.state());
        const Dense cx = given.want(v.state(), v.kind == LSTM), weight = given.need_or_narrow(checked_mul(g, v.width));
        const Dense bias = given.want(g, v.kind == GRU && !given.none()), out = given.need(v.all(1));
        const Dense cells = given.want(v.all(1), v.kind == LSTM);
        const bool gated = v.kind == LSTM || v.kind == GRU;
        const Dense kept = given.want(keeps ? v.all(4) : checked_mul(v.state(), 4), gated);
        if (v.state() == 0) fail(PyExc_ValueError, "recurrent: no rows or no units");
        dispatch_wide(given.code(), [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(saturated_mul(v.all(1), g));
            const std::unique_ptr<Shares<A>> shares = shares_of<A>(v, weight);
            run(v, gates.as<const A>(), hx.as<const A>(), cx.as<const A>(), *shares, bias.as<const A>(), out.as<A>(),
                cells.as<A>(), kept.as<A>(), keeps);
        });
        Py_RETURN_NONE;
    });
}

PyObject* recurrent_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("recurrent_backward", nargs, 41);
        const Layer v(args + 36);
        const bool cell = v.kind == LSTM;
        const int64_t g = checked_mul(v.gates(), v.width), state = v.state();
        Given given(args);
        const Dense grad = given.need(v.all(1)), dcell = given.want(state, cell && !given.none());
        const Dense hx = given.need(state), cx = given.want(state, cell), weight = given.need(checked_mul(g, v.width));
        const Dense out = given.need(v.all(1)), cells = given.want(v.all(1), cell);
        const Dense kept = given.want(v.all(4), v.kind == LSTM || v.kind == GRU);
        const Dense dx = given.need(v.all(v.gates())), ds = given.want(v.all(v.gates()), v.kind == GRU);
        const Dense dh = given.need(state), dc = given.want(state, cell);
        if (state == 0) fail(PyExc_ValueError, "recurrent_backward: no rows or no units");
        dispatch_wide(given.code(), [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(saturated_mul(v.all(1), g));
            std::fill_n(dh.as<A>(), state, A(0));
            if (cell && dcell.data) std::copy_n(dcell.as<A>(), state, dc.as<A>());
            else if (cell) std::fill_n(dc.as<A>(), state, A(0));
            const Slopes<A> all{grad.as<const A>(), nullptr,    nullptr,    out.as<const A>(), cells.as<const A>(),
                                kept.as<const A>(), dh.as<A>(), dc.as<A>(), dx.as<A>(),        ds.as<A>()};
            run_back(v, all, hx.as<const A>(), cx.as<const A>(), weight.as<const A>());
        });
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef recurrent_methods[];  // no other file needs to know
PyMethodDef recurrent_methods[] = {
    MT_METHOD("recurrent", recurrent, "A layer of a recurrent network in one direction."),
    MT_METHOD("recurrent_backward", recurrent_backward, "Its gradient."),
    {nullptr, nullptr, 0, nullptr}};
