// Cells of recurrent networks after their matrix products (in the table of nn.cpp). float32 and float64.
// Invariant: every operand is dense, of one dtype, and was measured against `rows` and `width` before it is read; a row
// of gates holds them side by side in PyTorch's order (LSTM: input, forget, candidate, output; GRU: reset, update,
// candidate). Results do not depend on the number of threads: rows are independent.
//
// An operand is 4 arguments: storage, offset, strides (not read), code.
//   lstm_cell(input_gates.., hidden_gates.., cx.., input_bias|None.., hidden_bias|None.., hy.., cy.., workspace.., rows,
//             width)                                                   workspace: the activated gates
//   lstm_cell_backward(grad_hy|None.., grad_cy|None.., cx.., cy.., workspace.., gates.., dcx.., rows, width)
//   gru_cell(input_gates.., hidden_gates.., hx.., input_bias|None.., hidden_bias|None.., hy.., workspace.., rows, width)
//             workspace: reset, update, candidate, hx, the candidate's share of the old state
//   gru_cell_backward(grad_hy.., workspace.., input_gates.., hidden_gates.., dhx.., rows, width)
#include "lanes.h"
#include "math_core.h"

#include <algorithm>

namespace mt {
namespace {

// What one gate of one row is made of; a bias that is not there is a row of zeros.
template <class A>
MT_CLONES void lstm_rows(const A* x, const A* h, const A* cx, const A* bx, const A* bh, A* hy, A* cy, A* ws,
                         int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += 4 * n, h += 4 * n, ws += 4 * n, cx += n, cy += n, hy += n) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            const A in = sigmoid_v(x[i] + h[i] + bx[i] + bh[i]);
            const A forget = sigmoid_v(x[n + i] + h[n + i] + bx[n + i] + bh[n + i]);
            ws[i] = in;
            ws[n + i] = forget;
        }
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            const A fresh = tanh_v(x[2 * n + i] + h[2 * n + i] + bx[2 * n + i] + bh[2 * n + i]);
            const A out = sigmoid_v(x[3 * n + i] + h[3 * n + i] + bx[3 * n + i] + bh[3 * n + i]);
            ws[2 * n + i] = fresh;
            ws[3 * n + i] = out;
        }
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            const A c = ws[n + i] * cx[i] + ws[i] * ws[2 * n + i];
            cy[i] = c;
            hy[i] = tanh_v(c) * ws[3 * n + i];
        }
    }
}

template <class A>
MT_CLONES void lstm_backward_rows(const A* dhy, const A* dcy, const A* cx, const A* cy, const A* ws, A* gates, A* dcx,
                                  int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, ws += 4 * n, gates += 4 * n, cx += n, cy += n, dcx += n) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            const A in = ws[i], forget = ws[n + i], fresh = ws[2 * n + i], out = ws[3 * n + i];
            const A bent = tanh_v(cy[i]);
            const A dh = dhy ? dhy[i] : A(0), dc = (dcy ? dcy[i] : A(0)) + dh * out * (A(1) - bent * bent);
            gates[i] = dc * fresh * in * (A(1) - in);
            gates[n + i] = dc * cx[i] * forget * (A(1) - forget);
            gates[2 * n + i] = dc * in * (A(1) - fresh * fresh);
            gates[3 * n + i] = dh * bent * out * (A(1) - out);
            dcx[i] = dc * forget;
        }
        if (dhy) dhy += n;
        if (dcy) dcy += n;
    }
}

template <class A>
MT_CLONES void gru_rows(const A* x, const A* h, const A* hx, const A* bx, const A* bh, A* hy, A* ws, int64_t rows,
                        int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += 3 * n, h += 3 * n, ws += 5 * n, hx += n, hy += n) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            ws[i] = sigmoid_v(x[i] + bx[i] + h[i] + bh[i]);
            ws[n + i] = sigmoid_v(x[n + i] + bx[n + i] + h[n + i] + bh[n + i]);
        }
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            const A share = h[2 * n + i] + bh[2 * n + i];
            const A fresh = tanh_v(x[2 * n + i] + bx[2 * n + i] + ws[i] * share);
            ws[2 * n + i] = fresh;
            ws[3 * n + i] = hx[i];
            ws[4 * n + i] = share;
            hy[i] = (hx[i] - fresh) * ws[n + i] + fresh;
        }
    }
}

template <class A>
MT_CLONES void gru_backward_rows(const A* dhy, const A* ws, A* x, A* h, A* dhx, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, dhy += n, ws += 5 * n, x += 3 * n, h += 3 * n, dhx += n) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
            const A reset = ws[i], update = ws[n + i], fresh = ws[2 * n + i], hx = ws[3 * n + i], share = ws[4 * n + i];
            const A dn = dhy[i] * (A(1) - update) * (A(1) - fresh * fresh);
            const A du = dhy[i] * (hx - fresh) * update * (A(1) - update);
            const A dr = dn * share * reset * (A(1) - reset);
            x[i] = h[i] = dr;
            x[n + i] = h[n + i] = du;
            x[2 * n + i] = dn;
            h[2 * n + i] = dn * reset;
            dhx[i] = dhy[i] * update;
        }
    }
}

// The operands of a cell, one after the other among the arguments.
class Operands {
public:
    Operands(const char* name, PyObject* const* args) : name_(name), args_(args) {}

    void need(int64_t numel, Operand& op) {
        parse_dense(args_ + at_, numel, op);
        check(op);
    }
    bool want(int64_t numel, Operand& op) {
        const bool given = parse_dense_or_none(args_ + at_, numel, op);
        if (given) check(op);
        else at_ += 4;
        return given;
    }
    int code() const { return code_; }

private:
    void check(const Operand& op) {
        if (code_ < 0) code_ = op.code;
        expect_code(name_, op.code, code_);
        at_ += 4;
    }
    const char* name_;
    PyObject* const* args_;
    int at_ = 0, code_ = -1;
};

template <class F> void dispatch_wide(int code, const char* op, F&& f) {
    if (code == F32) f(float());
    else if (code == F64) f(double());
    else fail_dtype(op, code);
}

// A bias, or as many zeros.
template <class A> const A* bias_or_zeros(bool given, const Operand& op, int64_t n, Row<A>& room) {
    if (given) return op.as<A>();
    std::fill_n(room.get(), n, A(0));
    return room.get();
}

}  // namespace

PyObject* lstm_cell(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("lstm_cell", nargs, 34);
        const int64_t rows = parse_count(args[32]), n = parse_count(args[33]);
        const int64_t state = checked_mul(rows, n), all = checked_mul(state, 4), wide = checked_mul(n, 4);
        Operand x, h, cx, bx, bh, hy, cy, ws;
        Operands given("lstm_cell", args);
        given.need(all, x), given.need(all, h), given.need(state, cx);
        const bool has_bx = given.want(wide, bx), has_bh = given.want(wide, bh);
        given.need(state, hy), given.need(state, cy), given.need(all, ws);
        dispatch_wide(given.code(), "lstm_cell", [&](auto t) {
            using A = decltype(t);
            Row<A> first(has_bx ? 0 : wide), second(has_bh ? 0 : wide);
            const A *b0 = bias_or_zeros(has_bx, bx, wide, first), *b1 = bias_or_zeros(has_bh, bh, wide, second);
            GilRelease unlocked(all);
            parallel_for(rows, lane_grain(wide, 8), [&](int64_t begin, int64_t end) {
                lstm_rows<A>(x.as<A>() + begin * wide, h.as<A>() + begin * wide, cx.as<A>() + begin * n, b0, b1,
                             hy.as<A>() + begin * n, cy.as<A>() + begin * n, ws.as<A>() + begin * wide, end - begin, n);
            });
        });
        Py_RETURN_NONE;
    });
}

PyObject* lstm_cell_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("lstm_cell_backward", nargs, 30);
        const int64_t rows = parse_count(args[28]), n = parse_count(args[29]);
        const int64_t state = checked_mul(rows, n), all = checked_mul(state, 4), wide = checked_mul(n, 4);
        Operand dhy, dcy, cx, cy, ws, gates, dcx;
        Operands given("lstm_cell_backward", args);
        const bool has_dhy = given.want(state, dhy), has_dcy = given.want(state, dcy);
        given.need(state, cx), given.need(state, cy), given.need(all, ws);
        given.need(all, gates), given.need(state, dcx);
        dispatch_wide(given.code(), "lstm_cell_backward", [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(all);
            parallel_for(rows, lane_grain(wide, 8), [&](int64_t begin, int64_t end) {
                lstm_backward_rows<A>(has_dhy ? dhy.as<A>() + begin * n : nullptr,
                                      has_dcy ? dcy.as<A>() + begin * n : nullptr, cx.as<A>() + begin * n,
                                      cy.as<A>() + begin * n, ws.as<A>() + begin * wide, gates.as<A>() + begin * wide,
                                      dcx.as<A>() + begin * n, end - begin, n);
            });
        });
        Py_RETURN_NONE;
    });
}

PyObject* gru_cell(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("gru_cell", nargs, 30);
        const int64_t rows = parse_count(args[28]), n = parse_count(args[29]);
        const int64_t state = checked_mul(rows, n), all = checked_mul(state, 3), wide = checked_mul(n, 3);
        const int64_t kept = checked_mul(state, 5);
        Operand x, h, hx, bx, bh, hy, ws;
        Operands given("gru_cell", args);
        given.need(all, x), given.need(all, h), given.need(state, hx);
        const bool has_bx = given.want(wide, bx), has_bh = given.want(wide, bh);
        given.need(state, hy), given.need(kept, ws);
        dispatch_wide(given.code(), "gru_cell", [&](auto t) {
            using A = decltype(t);
            Row<A> first(has_bx ? 0 : wide), second(has_bh ? 0 : wide);
            const A *b0 = bias_or_zeros(has_bx, bx, wide, first), *b1 = bias_or_zeros(has_bh, bh, wide, second);
            GilRelease unlocked(kept);
            parallel_for(rows, lane_grain(wide, 8), [&](int64_t begin, int64_t end) {
                gru_rows<A>(x.as<A>() + begin * wide, h.as<A>() + begin * wide, hx.as<A>() + begin * n, b0, b1,
                            hy.as<A>() + begin * n, ws.as<A>() + begin * 5 * n, end - begin, n);
            });
        });
        Py_RETURN_NONE;
    });
}

PyObject* gru_cell_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("gru_cell_backward", nargs, 22);
        const int64_t rows = parse_count(args[20]), n = parse_count(args[21]);
        const int64_t state = checked_mul(rows, n), all = checked_mul(state, 3), kept = checked_mul(state, 5);
        Operand dhy, ws, x, h, dhx;
        Operands given("gru_cell_backward", args);
        given.need(state, dhy), given.need(kept, ws), given.need(all, x), given.need(all, h), given.need(state, dhx);
        dispatch_wide(given.code(), "gru_cell_backward", [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(kept);
            parallel_for(rows, lane_grain(5 * n, 4), [&](int64_t begin, int64_t end) {
                gru_backward_rows<A>(dhy.as<A>() + begin * n, ws.as<A>() + begin * 5 * n, x.as<A>() + begin * 3 * n,
                                     h.as<A>() + begin * 3 * n, dhx.as<A>() + begin * n, end - begin, n);
            });
        });
        Py_RETURN_NONE;
    });
}

}  // namespace mt
