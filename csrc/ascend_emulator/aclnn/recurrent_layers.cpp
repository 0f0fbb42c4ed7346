// Whole recurrent layers: LSTM and GRU over a sequence, several layers, both directions. Gates are in PyTorch's order:
// input, forget, candidate, output; reset, update, new.
#include "activation.h"
#include "view.h"

using namespace emu;

namespace {

using Matrix = std::vector<double>;

struct Weights {
    Matrix input, hidden, input_bias, hidden_bias;  // biases are empty where there are none
};

// out (n, rows) = x (n, inner) @ w (rows, inner)^T + bias
Matrix product(const double* x, int64_t n, int64_t inner, const Matrix& w, const Matrix& bias) {
    int64_t rows = int64_t(w.size()) / inner;
    Matrix out(size_t(n * rows));
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < rows; ++j) {
            double sum = bias.empty() ? 0 : bias[size_t(j)];
            for (int64_t k = 0; k < inner; ++k) sum += x[i * inner + k] * w[size_t(j * inner + k)];
            out[size_t(i * rows + j)] = sum;
        }
    return out;
}

struct Layer {
    int64_t steps, batch, inner, size;
    bool reverse;
};

// What a layer leaves behind at each step, (steps, batch, size) each; in the order of time whatever the direction.
struct Trace {
    std::vector<Matrix> gates;  // i, g, f, o; or r, z, n, hn
    Matrix h, c, tanh_c;
    Matrix last_h, last_c;
};

template <class F>
void each_step(const Layer& l, F f) {
    for (int64_t s = 0; s < l.steps; ++s) f(l.reverse ? l.steps - 1 - s : s);
}

Trace lstm(const Layer& l, const Matrix& x, Matrix h, Matrix c, const Weights& w) {
    size_t plane = size_t(l.batch * l.size);
    Trace t{std::vector<Matrix>(4, Matrix(plane * size_t(l.steps))), Matrix(plane * size_t(l.steps)),
            Matrix(plane * size_t(l.steps)), Matrix(plane * size_t(l.steps)), {}, {}};
    each_step(l, [&](int64_t s) {
        auto a = product(x.data() + s * l.batch * l.inner, l.batch, l.inner, w.input, w.input_bias);
        auto b = product(h.data(), l.batch, l.size, w.hidden, w.hidden_bias);
        for (int64_t n = 0; n < l.batch; ++n)
            for (int64_t k = 0; k < l.size; ++k) {
                auto gate = [&](int64_t part) {
                    size_t at = size_t((n * 4 + part) * l.size + k);
                    return a[at] + b[at];
                };
                double i = sigmoid(gate(0)), f = sigmoid(gate(1)), g = std::tanh(gate(2)), o = sigmoid(gate(3));
                size_t at = size_t(n * l.size + k), whole = size_t(s) * plane + at;
                c[at] = f * c[at] + i * g;
                double squashed = std::tanh(c[at]);
                h[at] = o * squashed;
                double values[] = {i, g, f, o};
                for (int part = 0; part < 4; ++part) t.gates[size_t(part)][whole] = values[part];
                t.h[whole] = h[at], t.c[whole] = c[at], t.tanh_c[whole] = squashed;
            }
    });
    t.last_h = h, t.last_c = c;
    return t;
}

Trace gru(const Layer& l, const Matrix& x, Matrix h, const Weights& w) {
    size_t plane = size_t(l.batch * l.size);
    Trace t{std::vector<Matrix>(4, Matrix(plane * size_t(l.steps))), Matrix(plane * size_t(l.steps)), {}, {}, {}, {}};
    each_step(l, [&](int64_t s) {
        auto a = product(x.data() + s * l.batch * l.inner, l.batch, l.inner, w.input, w.input_bias);
        auto b = product(h.data(), l.batch, l.size, w.hidden, w.hidden_bias);
        for (int64_t n = 0; n < l.batch; ++n)
            for (int64_t k = 0; k < l.size; ++k) {
                size_t row = size_t(n * 3 * l.size + k), third = size_t(l.size);
                double r = sigmoid(a[row] + b[row]), z = sigmoid(a[row + third] + b[row + third]);
                double hn = b[row + 2 * third], fresh = std::tanh(a[row + 2 * third] + r * hn);
                size_t at = size_t(n * l.size + k), whole = size_t(s) * plane + at;
                h[at] = (1 - z) * fresh + z * h[at];
                double values[] = {r, z, fresh, hn};
                for (int part = 0; part < 4; ++part) t.gates[size_t(part)][whole] = values[part];
                t.h[whole] = h[at];
            }
    });
    t.last_h = h;
    return t;
}

// (steps, batch, a) and (steps, batch, b) side by side.
Matrix joined(const Matrix& a, const Matrix& b, int64_t size) {
    Matrix out;
    for (size_t i = 0; i < a.size(); i += size_t(size)) {
        out.insert(out.end(), a.begin() + i, a.begin() + i + size);
        out.insert(out.end(), b.begin() + i, b.begin() + i + size);
    }
    return out;
}

Tensor steps_first(const Tensor& t, bool batch_first) { return batch_first ? permuted(t, {1, 0, 2}) : t; }

// -- LSTM and GRU: a list of weights, four (two without bias) for each layer and direction ---------------------------
struct Network {
    int64_t directions, layers, per, gates;
    bool batch_first;
    const char* flag;
};

Network network(const Call& c, const char* direction, int64_t gates) {
    bool both = c.flag(direction);
    return {both ? 2 : 1, c.integer("numLayers"), c.flag("hasBias") ? 4 : 2, gates, c.flag("batchFirst"), direction};
}

void plan_network(const Plan& p, const Network& n) {
    const auto& params = p.tensors("params");
    p.require(!p.has("batchSizes"), "batchSizes: packed sequences are not computed by the emulator");
    p.require(n.layers >= 1, "numLayers is %lld, expected >= 1", static_cast<long long>(n.layers));
    p.require(!p.flag("train") || p.real("dropout") == 0, "dropout is %g; the emulator computes 0", p.real("dropout"));
    p.require(int64_t(params.size()) == n.layers * n.directions * n.per, "params has %zu tensors, expected %lld",
              params.size(), static_cast<long long>(n.layers * n.directions * n.per));
    Dims x = steps_first(p.tensor("input"), n.batch_first).dims;
    p.require(x.n == 3, "input has %d dimensions, expected 3", x.n);
    p.require(params[1].rank() == 2, "the second of params must be a matrix");
    int64_t size = params[1].dims[1];
    for (size_t i = 0; i < params.size(); ++i) {
        int64_t layer = int64_t(i) / (n.per * n.directions), which = int64_t(i) % n.per;
        int64_t inner = which == 1 ? size : layer == 0 ? x[2] : size * n.directions;
        Dims want = which < 2 ? Dims{n.gates * size, inner} : Dims{n.gates * size};
        p.require(params[i].dims == want, "params %zu has shape %s, expected %s", i, text(params[i].dims).c_str(),
                  text(want).c_str());
    }
    Dims out{x[0], x[1], size * n.directions};
    Dims got = steps_first(p.tensor("output"), n.batch_first).dims;
    p.require(got == out, "output has shape %s, expected %s", text(got).c_str(), text(out).c_str());
    p.shape("hy", {n.layers * n.directions, x[1], size});
}

Weights weights(const Run& r, size_t first, int64_t per) {
    const auto& params = r.tensors("params");
    Weights w{r.read<double>(params[first]), r.read<double>(params[first + 1]), {}, {}};
    if (per == 4) w.input_bias = r.read<double>(params[first + 2]), w.hidden_bias = r.read<double>(params[first + 3]);
    return w;
}

Matrix state(const Run& r, const Tensor* t, int64_t i, size_t plane) {
    if (t == nullptr) return Matrix(plane);
    auto all = r.read<double>(*t);
    return {all.begin() + i * int64_t(plane), all.begin() + (i + 1) * int64_t(plane)};
}

// Runs every layer and direction; f(index, trace) sees what each leaves.
template <class Run1, class F>
Matrix run_network(const Run& r, const Network& n, Run1 one, F f) {
    Tensor input = steps_first(r.tensor("input"), n.batch_first);
    Matrix x = r.read<double>(input);
    int64_t inner = input.dims[2], size = r.tensors("params")[1].dims[1];
    for (int64_t layer = 0; layer < n.layers; ++layer) {
        Matrix y;
        for (int64_t d = 0; d < n.directions; ++d) {
            int64_t i = layer * n.directions + d;
            Trace t = one(Layer{input.dims[0], input.dims[1], inner, size, d == 1}, x, i,
                          weights(r, size_t(i * n.per), n.per));
            y = d == 0 ? t.h : joined(y, t.h, size);
            f(size_t(i), t);
        }
        x.swap(y);
        inner = size * n.directions;
    }
    return x;
}

void write_all(const Run& r, const char* name, size_t i, const Matrix& values) {
    if (r.has(name) && i < r.tensors(name).size()) r.write(r.tensors(name)[i], values);
}

void plan_traces(const Plan& p, const Network& n, std::initializer_list<const char*> names) {
    Dims x = steps_first(p.tensor("input"), n.batch_first).dims;
    Dims want{x[0], x[1], p.tensors("params")[1].dims[1]};
    for (const char* name : names) {
        if (!p.has(name)) continue;
        for (const Tensor& t : p.tensors(name))
            p.require(t.dims == want, "a tensor of %s has shape %s, expected %s", name, text(t.dims).c_str(),
                      text(want).c_str());
    }
}

void plan_lstm(Plan& p) {
    Network n = network(p, "bidirectional", 4);
    plan_network(p, n);
    p.same_shape("hy", "cy");
    if (p.has("hx")) {
        p.require(p.tensors("hx").size() == 2, "hx has %zu tensors, expected 2", p.tensors("hx").size());
        for (const Tensor& t : p.tensors("hx"))
            p.require(t.dims == p.tensor("hy").dims, "a tensor of hx has shape %s", text(t.dims).c_str());
    }
    if (p.flag("train")) plan_traces(p, n, {"iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut"});
}

void run_lstm(Run& r) {
    Network n = network(r, "bidirectional", 4);
    Matrix hy, cy;
    const Tensor* h0 = r.has("hx") ? &r.tensors("hx")[0] : nullptr;
    const Tensor* c0 = r.has("hx") ? &r.tensors("hx")[1] : nullptr;
    auto one = [&](const Layer& l, const Matrix& x, int64_t i, const Weights& w) {
        size_t plane = size_t(l.batch * l.size);
        return lstm(l, x, state(r, h0, i, plane), state(r, c0, i, plane), w);
    };
    Matrix y = run_network(r, n, one, [&](size_t i, const Trace& t) {
        hy.insert(hy.end(), t.last_h.begin(), t.last_h.end());
        cy.insert(cy.end(), t.last_c.begin(), t.last_c.end());
        if (!r.flag("train")) return;
        const char* names[] = {"iOut", "jOut", "fOut", "oOut"};
        for (size_t part = 0; part < 4; ++part) write_all(r, names[part], i, t.gates[part]);
        write_all(r, "hOut", i, t.h);
        write_all(r, "cOut", i, t.c);
        write_all(r, "tanhCOut", i, t.tanh_c);
    });
    r.write(steps_first(r.tensor("output"), n.batch_first), y);
    r.write(r.tensor("hy"), hy);
    r.write(r.tensor("cy"), cy);
}

void plan_gru(Plan& p) {
    Network n = network(p, "bidirection", 3);
    plan_network(p, n);
    if (p.has("hx")) p.same_shape("hy", "hx");
    if (p.flag("train")) plan_traces(p, n, {"rOut", "zOut", "nOut", "hnOut", "hOut"});
}

void run_gru(Run& r) {
    Network n = network(r, "bidirection", 3);
    Matrix hy;
    const Tensor* h0 = r.has("hx") ? &r.tensor("hx") : nullptr;
    auto one = [&](const Layer& l, const Matrix& x, int64_t i, const Weights& w) {
        return gru(l, x, state(r, h0, i, size_t(l.batch * l.size)), w);
    };
    Matrix y = run_network(r, n, one, [&](size_t i, const Trace& t) {
        hy.insert(hy.end(), t.last_h.begin(), t.last_h.end());
        if (!r.flag("train")) return;
        const char* names[] = {"rOut", "zOut", "nOut", "hnOut"};
        for (size_t part = 0; part < 4; ++part) write_all(r, names[part], i, t.gates[part]);
        write_all(r, "hOut", i, t.h);
    });
    r.write(steps_first(r.tensor("output"), n.batch_first), y);
    r.write(r.tensor("hy"), hy);
}

// -- one layer with named weights ------------------------------------------------------------------------------------
void plan_named(Plan& p) {
    Dims x = steps_first(p.tensor("x"), p.flag("batchFirst")).dims;
    int64_t directions = p.flag("bidirection") ? 2 : 1, size = p.tensor("wHh").dims[1];
    p.require(p.integer("numLayers") == 1, "numLayers is %lld; the emulator computes 1",
              static_cast<long long>(p.integer("numLayers")));
    if (p.function->count == 20) p.require(!p.flag("packed"), "packed sequences are not computed by the emulator");
    p.shape("wIh", {4 * size, x[2]});
    p.shape("wHh", {4 * size, size});
    auto needed = [&](const char* name, const Dims& want) {
        p.require(p.has(name), "%s is needed", name);
        p.shape(name, want);
    };
    if (p.flag("isbias"))
        for (const char* name : {"bIhOptional", "bHhOptional"}) needed(name, {4 * size});
    if (directions == 2) {
        needed("wIhReverseOptional", {4 * size, x[2]});
        needed("wHhReverseOptional", {4 * size, size});
        if (p.flag("isbias"))
            for (const char* name : {"bIhReverseOptional", "bHhReverseOptional"}) needed(name, {4 * size});
    }
    for (const char* name : {"initH", "initC", "outputHOut", "outputCOut"}) p.shape(name, {directions, x[1], size});
    Dims got = steps_first(p.tensor("yOut"), p.flag("batchFirst")).dims, want{x[0], x[1], directions * size};
    p.require(got == want, "yOut has shape %s, expected %s", text(got).c_str(), text(want).c_str());
}

void run_named(Run& r) {
    bool batch_first = r.flag("batchFirst");
    Tensor input = steps_first(r.tensor("x"), batch_first);
    Matrix x = r.read<double>(input), y, hy, cy;
    int64_t size = r.tensor("wHh").dims[1];
    size_t plane = size_t(input.dims[1] * size);
    for (int64_t d = 0; d < (r.flag("bidirection") ? 2 : 1); ++d) {
        auto read = [&](const char* forward, const char* backward) {
            return r.read<double>(r.tensor(d == 0 ? forward : backward));
        };
        Weights w{read("wIh", "wIhReverseOptional"), read("wHh", "wHhReverseOptional"), {}, {}};
        if (r.flag("isbias")) {
            w.input_bias = read("bIhOptional", "bIhReverseOptional");
            w.hidden_bias = read("bHhOptional", "bHhReverseOptional");
        }
        Trace t = lstm({input.dims[0], input.dims[1], input.dims[2], size, d == 1}, x,
                       state(r, &r.tensor("initH"), d, plane), state(r, &r.tensor("initC"), d, plane), w);
        y = d == 0 ? t.h : joined(y, t.h, size);
        hy.insert(hy.end(), t.last_h.begin(), t.last_h.end());
        cy.insert(cy.end(), t.last_c.begin(), t.last_c.end());
    }
    r.write(steps_first(r.tensor("yOut"), batch_first), y);
    r.write(r.tensor("outputHOut"), hy);
    r.write(r.tensor("outputCOut"), cy);
}

}  // namespace

ACLNN(aclnnLSTM, plan_lstm, run_lstm)
ACLNN(aclnnGRU, plan_gru, run_gru)
ACLNN(aclnnBidirectionLSTM, plan_named, run_named)
ACLNN(aclnnBidirectionLSTMV2, plan_named, run_named)
