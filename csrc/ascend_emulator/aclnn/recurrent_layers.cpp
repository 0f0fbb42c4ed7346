// Whole recurrent layers: LSTM and GRU over a sequence, several layers, both directions. Gates are in PyTorch's order:
// input, forget, candidate, output; reset, update, new.
//
// Sequences of several lengths come with the number of those that reach each step, as PyTorch packs them: the longest
// first. Of two dimensions, a tensor holds the rows of each step behind those of the step before; of three, a place for
// every sequence at every step, those beyond a sequence's end are not read and are zero in results. The facts tell the
// numbers' dtype and count; that they mean this is the common description.
#include <numeric>

#include "activation.h"
#include "optional.h"
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

// How many sequences reach each step; empty: all reach the end.
using Counts = std::vector<int64_t>;

struct Layer {
    int64_t steps, batch, inner, size;
    bool reverse;
    const Counts& counts;

    int64_t at(int64_t step) const { return step < 0 || step >= steps ? 0 : counts.empty() ? batch : counts[size_t(step)]; }
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
        for (int64_t n = 0; n < l.at(s); ++n)
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
        for (int64_t n = 0; n < l.at(s); ++n)
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

Tensor steps_first(const Tensor& t, bool batch_first) { return batch_first && t.rank() == 3 ? permuted(t, {1, 0, 2}) : t; }

// -- sequences of several lengths -------------------------------------------------------------------------------------
struct Sequences {
    int64_t steps, batch, inner;
    int64_t rows;  // of a packed tensor; -1: a place for every sequence at every step
    Counts counts = {};

    Dims dims(int64_t width) const { return rows < 0 ? Dims{steps, batch, width} : Dims{rows, width}; }
};

// `state`: the tensor that has a row for each sequence in its second dimension.
Sequences sequences(const Call& c, const Tensor& input, const char* counts, const Tensor& state, bool batch_first) {
    Dims x = steps_first(input, batch_first).dims;
    bool several = given(c, counts);
    if (x.n != 3 && !(several && x.n == 2)) refuse(ACLNN_ERR_PARAM_INVALID, "input has %d dimensions, expected 3%s", x.n, several ? " or 2" : "");
    if (state.rank() != 3) refuse(ACLNN_ERR_PARAM_INVALID, "the states have shape %s, expected 3 dimensions", text(state.dims).c_str());
    if (!several) return {x[0], x[1], x[2], -1};
    const Tensor& t = c.tensor(counts);
    bool fits = t.rank() == 1 && t.dims[0] > 0 && is_integer(t.dtype) && (x.n == 2 || t.dims[0] == x[0]);
    if (!fits) refuse(ACLNN_ERR_PARAM_INVALID, "%s has shape %s for an input of shape %s", counts, text(t.dims).c_str(), text(x).c_str());
    if (x.n == 2) return {t.dims[0], state.dims[1], x[1], x[0]};
    return {x[0], x[1], x[2], -1};
}

void read_counts(const Run& r, Sequences& s, const char* name) {
    if (!given(r, name)) return;
    s.counts = r.read<int64_t>(r.tensor(name));
    int64_t most = s.batch;
    for (int64_t n : s.counts) {
        if (n < 1 || n > most) fault("%s: %s has %lld after %lld", r.function->name, name, static_cast<long long>(n), static_cast<long long>(most));
        most = n;
    }
    int64_t all = std::accumulate(s.counts.begin(), s.counts.end(), int64_t{0});
    if (s.rows >= 0 && all != s.rows)
        fault("%s: %s counts %lld rows, there are %lld", r.function->name, name, static_cast<long long>(all), static_cast<long long>(s.rows));
}

// A place for every sequence at every step, and back.
Matrix read_steps(const Run& r, const Tensor& t, const Sequences& s, bool batch_first = false) {
    Matrix values = r.read<double>(steps_first(t, batch_first));
    if (s.rows < 0) return values;
    int64_t width = t.dims[1], from = 0;
    Matrix out(size_t(s.steps * s.batch * width));
    for (int64_t step = 0; step < s.steps; from += s.counts[size_t(step)] * width, ++step)
        std::copy_n(values.begin() + from, s.counts[size_t(step)] * width, out.begin() + step * s.batch * width);
    return out;
}

void write_steps(const Run& r, const Tensor& t, const Sequences& s, const Matrix& values, bool batch_first = false) {
    if (s.rows < 0) return r.write(steps_first(t, batch_first), values);
    int64_t width = t.dims[1];
    Matrix out;
    for (int64_t step = 0; step < s.steps; ++step) {
        auto from = values.begin() + step * s.batch * width;
        out.insert(out.end(), from, from + s.counts[size_t(step)] * width);
    }
    r.write(t, out);
}

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
    p.require(n.layers >= 1, "numLayers is %lld, expected >= 1", static_cast<long long>(n.layers));
    p.require(p.real("dropout") >= 0 && p.real("dropout") <= 1, "dropout is %g, expected 0 to 1", p.real("dropout"));
    p.require(!p.flag("train") || p.real("dropout") == 0, "dropout is %g; the emulator computes 0: the function has neither a seed nor a mask", p.real("dropout"));
    p.require(int64_t(params.size()) == n.layers * n.directions * n.per, "params has %zu tensors, expected %lld",
              params.size(), static_cast<long long>(n.layers * n.directions * n.per));
    Sequences s = sequences(p, p.tensor("input"), "batchSizes", p.tensor("hy"), n.batch_first);
    p.require(params[1].rank() == 2, "the second of params must be a matrix");
    int64_t size = params[1].dims[1];
    for (size_t i = 0; i < params.size(); ++i) {
        int64_t layer = int64_t(i) / (n.per * n.directions), which = int64_t(i) % n.per;
        int64_t inner = which == 1 ? size : layer == 0 ? s.inner : size * n.directions;
        Dims want = which < 2 ? Dims{n.gates * size, inner} : Dims{n.gates * size};
        p.require(params[i].dims == want, "params %zu has shape %s, expected %s", i, text(params[i].dims).c_str(),
                  text(want).c_str());
    }
    Dims out = s.dims(size * n.directions), got = steps_first(p.tensor("output"), n.batch_first).dims;
    p.require(got == out, "output has shape %s, expected %s", text(got).c_str(), text(out).c_str());
    p.shape("hy", {n.layers * n.directions, s.batch, size});
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
void run_network(const Run& r, const Network& n, Run1 one, F f) {
    Sequences s = sequences(r, r.tensor("input"), "batchSizes", r.tensor("hy"), n.batch_first);
    read_counts(r, s, "batchSizes");
    Matrix x = read_steps(r, r.tensor("input"), s, n.batch_first);
    int64_t inner = s.inner, size = r.tensors("params")[1].dims[1];
    for (int64_t layer = 0; layer < n.layers; ++layer) {
        Matrix y;
        for (int64_t d = 0; d < n.directions; ++d) {
            int64_t i = layer * n.directions + d;
            Trace t = one(Layer{s.steps, s.batch, inner, size, d == 1, s.counts}, x, i,
                          weights(r, size_t(i * n.per), n.per));
            y = d == 0 ? t.h : joined(y, t.h, size);
            f(size_t(i), t, s);
        }
        x.swap(y);
        inner = size * n.directions;
    }
    write_steps(r, r.tensor("output"), s, x, n.batch_first);
}

void write_all(const Run& r, const char* name, size_t i, const Sequences& s, const Matrix& values) {
    if (r.has(name) && i < r.tensors(name).size()) write_steps(r, r.tensors(name)[i], s, values);
}

void plan_traces(const Plan& p, const Network& n, std::initializer_list<const char*> names) {
    Dims want = sequences(p, p.tensor("input"), "batchSizes", p.tensor("hy"), n.batch_first).dims(p.tensors("params")[1].dims[1]);
    for (const char* name : names) {
        if (!p.has(name)) continue;
        for (const Tensor& t : p.tensors(name))
            p.require(t.dims == want, "a tensor of %s has shape %s, expected %s", name, text(t.dims).c_str(),
                      text(want).c_str());
    }
}

void plan_lstm(Plan& p) {
    need_elements(p, {"params"});
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
    run_network(r, n, one, [&](size_t i, const Trace& t, const Sequences& s) {
        hy.insert(hy.end(), t.last_h.begin(), t.last_h.end());
        cy.insert(cy.end(), t.last_c.begin(), t.last_c.end());
        if (!r.flag("train")) return;
        const char* names[] = {"iOut", "jOut", "fOut", "oOut"};
        for (size_t part = 0; part < 4; ++part) write_all(r, names[part], i, s, t.gates[part]);
        write_all(r, "hOut", i, s, t.h);
        write_all(r, "cOut", i, s, t.c);
        write_all(r, "tanhCOut", i, s, t.tanh_c);
    });
    r.write(r.tensor("hy"), hy);
    r.write(r.tensor("cy"), cy);
}

void plan_gru(Plan& p) {
    need_elements(p, {"params"});
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
    run_network(r, n, one, [&](size_t i, const Trace& t, const Sequences& s) {
        hy.insert(hy.end(), t.last_h.begin(), t.last_h.end());
        if (!r.flag("train")) return;
        const char* names[] = {"rOut", "zOut", "nOut", "hnOut"};
        for (size_t part = 0; part < 4; ++part) write_all(r, names[part], i, s, t.gates[part]);
        write_all(r, "hOut", i, s, t.h);
    });
    r.write(r.tensor("hy"), hy);
}

// -- one layer with named weights ------------------------------------------------------------------------------------
// The later version has a flag that says whether the counts are looked at.
const char* counts_of(const Call& c) { return has_parameter(c, "packed") && c.flag("packed") ? "batchSizeOptional" : ""; }

void plan_named(Plan& p) {
    need_elements(p, {"wIh", "wHh"});
    Sequences s = sequences(p, p.tensor("x"), counts_of(p), p.tensor("initH"), p.flag("batchFirst"));
    int64_t directions = p.flag("bidirection") ? 2 : 1, size = p.tensor("wHh").dims[1];
    p.require(p.integer("numLayers") == 1, "numLayers is %lld; the weights are those of one layer",
              static_cast<long long>(p.integer("numLayers")));
    p.shape("wIh", {4 * size, s.inner});
    p.shape("wHh", {4 * size, size});
    auto needed = [&](const char* name, const Dims& want) {
        p.require(p.has(name), "%s is needed", name);
        p.shape(name, want);
    };
    if (p.flag("isbias"))
        for (const char* name : {"bIhOptional", "bHhOptional"}) needed(name, {4 * size});
    if (directions == 2) {
        needed("wIhReverseOptional", {4 * size, s.inner});
        needed("wHhReverseOptional", {4 * size, size});
        if (p.flag("isbias"))
            for (const char* name : {"bIhReverseOptional", "bHhReverseOptional"}) needed(name, {4 * size});
    }
    for (const char* name : {"initH", "initC", "outputHOut", "outputCOut"}) p.shape(name, {directions, s.batch, size});
    Dims got = steps_first(p.tensor("yOut"), p.flag("batchFirst")).dims, want = s.dims(directions * size);
    p.require(got == want, "yOut has shape %s, expected %s", text(got).c_str(), text(want).c_str());
}

void run_named(Run& r) {
    bool batch_first = r.flag("batchFirst");
    Sequences s = sequences(r, r.tensor("x"), counts_of(r), r.tensor("initH"), batch_first);
    read_counts(r, s, counts_of(r));
    Matrix x = read_steps(r, r.tensor("x"), s, batch_first), y, hy, cy;
    int64_t size = r.tensor("wHh").dims[1];
    size_t plane = size_t(s.batch * size);
    for (int64_t d = 0; d < (r.flag("bidirection") ? 2 : 1); ++d) {
        auto read = [&](const char* forward, const char* backward) {
            return r.read<double>(r.tensor(d == 0 ? forward : backward));
        };
        Weights w{read("wIh", "wIhReverseOptional"), read("wHh", "wHhReverseOptional"), {}, {}};
        if (r.flag("isbias")) {
            w.input_bias = read("bIhOptional", "bIhReverseOptional");
            w.hidden_bias = read("bHhOptional", "bHhReverseOptional");
        }
        Trace t = lstm({s.steps, s.batch, s.inner, size, d == 1, s.counts}, x,
                       state(r, &r.tensor("initH"), d, plane), state(r, &r.tensor("initC"), d, plane), w);
        y = d == 0 ? t.h : joined(y, t.h, size);
        hy.insert(hy.end(), t.last_h.begin(), t.last_h.end());
        cy.insert(cy.end(), t.last_c.begin(), t.last_c.end());
    }
    write_steps(r, r.tensor("yOut"), s, y, batch_first);
    r.write(r.tensor("outputHOut"), hy);
    r.write(r.tensor("outputCOut"), cy);
}

// -- gradients, from what the layers left behind ---------------------------------------------------------------------
// What belongs to one layer and direction, read from the lists.
struct Left {
    Layer layer;
    Weights w;
    Matrix h, first_h, c, tanh_c, first_c;
    std::vector<Matrix> gates;  // i, g, f, o; or r, z, n, hn
};

struct Slopes {
    Matrix x, h, c;              // of the input, of the first states
    Weights w;
};

// dst (rows, inner) += g (n, rows)^T @ x (n, inner)
void add_outer(Matrix& dst, const double* g, const double* x, int64_t n, int64_t rows, int64_t inner) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < rows; ++j)
            for (int64_t k = 0; k < inner; ++k) dst[size_t(j * inner + k)] += g[i * rows + j] * x[i * inner + k];
}

// (n, rows) @ w (rows, inner)
Matrix through(const Matrix& g, const Matrix& w, int64_t n, int64_t rows) {
    int64_t inner = int64_t(w.size()) / rows;
    Matrix out(size_t(n * inner), 0);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < rows; ++j)
            for (int64_t k = 0; k < inner; ++k) out[size_t(i * inner + k)] += g[size_t(i * rows + j)] * w[size_t(j * inner + k)];
    return out;
}

void add_rows(Matrix& dst, const Matrix& g) {
    for (size_t i = 0; i < g.size() && !dst.empty(); ++i) dst[i % dst.size()] += g[i];
}

// One step against time. `dh`, `dc`: slopes of the states, replaced by those of the states before.
using Step = void (*)(const Left& l, size_t at, double before_h, double before_c, double& dh, double& dc, double* input,
                      double* hidden);

void lstm_step(const Left& l, size_t at, double, double before_c, double& dh, double& dc, double* input, double* hidden) {
    double i = l.gates[0][at], g = l.gates[1][at], f = l.gates[2][at], o = l.gates[3][at], t = l.tanh_c[at];
    double slope = dh * o * (1 - t * t) + dc;
    double parts[] = {slope * g * i * (1 - i), slope * before_c * f * (1 - f), slope * i * (1 - g * g), dh * t * o * (1 - o)};
    for (int part = 0; part < 4; ++part) input[part] = hidden[part] = parts[part];
    dc = slope * f;
    dh = 0;
}

void gru_step(const Left& l, size_t at, double before_h, double, double& dh, double&, double* input, double* hidden) {
    double r = l.gates[0][at], z = l.gates[1][at], n = l.gates[2][at], hn = l.gates[3][at];
    double fresh = dh * (1 - z) * (1 - n * n);
    input[0] = hidden[0] = fresh * hn * r * (1 - r);
    input[1] = hidden[1] = dh * (before_h - n) * z * (1 - z);
    input[2] = fresh;
    hidden[2] = fresh * r;
    dh *= z;
}

Slopes backward(const Left& l, const Matrix& x, const Matrix& dy, Matrix dh, Matrix dc, int64_t gates, Step step) {
    int64_t batch = l.layer.batch, size = l.layer.size, rows = gates * size, inner = l.layer.inner;
    size_t plane = size_t(batch * size);
    Slopes out{Matrix(x.size(), 0), {}, {}, {Matrix(l.w.input.size(), 0), Matrix(l.w.hidden.size(), 0),
                                            Matrix(l.w.input_bias.size(), 0), Matrix(l.w.hidden_bias.size(), 0)}};
    dc.resize(plane, 0);
    for (int64_t n = l.layer.steps - 1; n >= 0; --n) {
        int64_t s = l.layer.reverse ? l.layer.steps - 1 - n : n, earlier = l.layer.reverse ? s + 1 : s - 1;
        // A sequence that is not there a step earlier begins here.
        auto before = [&](const Matrix& all, Matrix start) {
            if (all.empty()) return Matrix(plane, 0);
            if (int64_t there = l.layer.at(earlier) * size) std::copy_n(all.begin() + earlier * int64_t(plane), there, start.begin());
            return start;
        };
        Matrix h = before(l.h, l.first_h), c = before(l.c, l.first_c);
        Matrix gi(size_t(batch * rows), 0), gh(size_t(batch * rows), 0);
        for (int64_t b = 0; b < l.layer.at(s); ++b)
            for (int64_t k = 0; k < size; ++k) {
                size_t at = size_t(b * size + k), whole = size_t(s) * plane + at;
                double input[4] = {}, hidden[4] = {};
                dh[at] += dy[whole];
                step(l, whole, h[at], c[at], dh[at], dc[at], input, hidden);
                for (int64_t part = 0; part < gates; ++part) {
                    gi[size_t((b * gates + part) * size + k)] = input[part];
                    gh[size_t((b * gates + part) * size + k)] = hidden[part];
                }
            }
        add_outer(out.w.input, gi.data(), x.data() + s * batch * inner, l.layer.at(s), rows, inner);
        add_outer(out.w.hidden, gh.data(), h.data(), l.layer.at(s), rows, size);
        add_rows(out.w.input_bias, gi);
        add_rows(out.w.hidden_bias, gh);
        Matrix dx = through(gi, l.w.input, batch, rows), back = through(gh, l.w.hidden, batch, rows);
        std::copy(dx.begin(), dx.end(), out.x.begin() + s * batch * inner);
        for (size_t i = 0; i < plane; ++i) dh[i] += back[i];
    }
    out.h = dh, out.c = dc;
    return out;
}

// Columns [first, first + size) of rows of `width`.
Matrix columns(const Matrix& x, int64_t width, int64_t first, int64_t size) {
    Matrix out;
    for (size_t row = 0; row < x.size(); row += size_t(width))
        out.insert(out.end(), x.begin() + int64_t(row) + first, x.begin() + int64_t(row) + first + size);
    return out;
}

void plan_backward(const Plan& p, const Network& n, std::initializer_list<const char*> lists, const char* counts) {
    const auto& params = p.tensors("params");
    p.require(n.layers >= 1 && int64_t(params.size()) == n.layers * n.directions * n.per && params[1].rank() == 2,
              "params has %zu tensors, expected %lld", params.size(),
              static_cast<long long>(n.layers * n.directions * n.per));
    Sequences s = sequences(p, p.tensor("input"), counts, p.tensor("dh"), n.batch_first);
    int64_t size = params[1].dims[1];
    for (size_t i = 0; i < params.size(); ++i) {
        int64_t layer = int64_t(i) / (n.per * n.directions), which = int64_t(i) % n.per;
        int64_t inner = which == 1 ? size : layer == 0 ? s.inner : size * n.directions;
        Dims want = which < 2 ? Dims{n.gates * size, inner} : Dims{n.gates * size};
        p.require(params[i].dims == want, "params %zu has shape %s, expected %s", i, text(params[i].dims).c_str(),
                  text(want).c_str());
    }
    Dims y = steps_first(p.tensor("dy"), n.batch_first).dims, state{n.layers * n.directions, s.batch, size};
    p.require(y == s.dims(size * n.directions), "dy has shape %s", text(y).c_str());
    p.shape("dh", state);
    for (const char* name : lists) {
        const auto& list = p.tensors(name);
        p.require(int64_t(list.size()) == n.layers * n.directions, "%s has %zu tensors, expected %lld", name, list.size(),
                  static_cast<long long>(n.layers * n.directions));
        for (const Tensor& t : list)
            p.require(t.dims == s.dims(size), "a tensor of %s has shape %s", name, text(t.dims).c_str());
    }
    p.same_shape("input", "dxOut");
    p.shape("dhPrevOut", state);
    const auto& out = p.tensors("dparamsOut");
    p.require(out.size() == params.size(), "dparamsOut has %zu tensors, expected %zu", out.size(), params.size());
    for (size_t i = 0; i < out.size(); ++i)
        p.require(out[i].dims == params[i].dims, "dparamsOut %zu has shape %s, expected %s", i, text(out[i].dims).c_str(),
                  text(params[i].dims).c_str());
}

template <class F>
void run_backward(Run& r, const Network& n, const char* counts, Step step, F left) {
    Sequences all = sequences(r, r.tensor("input"), counts, r.tensor("dh"), n.batch_first);
    read_counts(r, all, counts);
    int64_t size = r.tensors("params")[1].dims[1];
    size_t plane = size_t(all.batch * size);
    bool cells = n.gates == 4;
    Matrix dy = read_steps(r, r.tensor("dy"), all, n.batch_first);
    Matrix all_h(size_t(n.layers * n.directions) * plane), all_c(all_h.size());
    for (int64_t layer = n.layers - 1; layer >= 0; --layer) {
        int64_t inner = layer == 0 ? all.inner : size * n.directions;
        Matrix x, dx;
        if (layer == 0) x = read_steps(r, r.tensor("input"), all, n.batch_first);
        else
            for (int64_t d = 0; d < n.directions; ++d) {
                Matrix h = read_steps(r, r.tensors("h")[size_t((layer - 1) * n.directions + d)], all);
                x = d == 0 ? h : joined(x, h, size);
            }
        dx.assign(x.size(), 0);
        for (int64_t d = 0; d < n.directions; ++d) {
            int64_t i = layer * n.directions + d;
            Left l = left(size_t(i), Layer{all.steps, all.batch, inner, size, d == 1, all.counts}, all, plane);
            Matrix dc = cells ? state(r, &r.tensor("dc"), i, plane) : Matrix(plane, 0);
            Slopes s = backward(l, x, columns(dy, size * n.directions, d * size, size), state(r, &r.tensor("dh"), i, plane),
                                dc, n.gates, step);
            for (size_t k = 0; k < dx.size(); ++k) dx[k] += s.x[k];
            std::copy(s.h.begin(), s.h.end(), all_h.begin() + i * int64_t(plane));
            std::copy(s.c.begin(), s.c.end(), all_c.begin() + i * int64_t(plane));
            const Matrix* parts[] = {&s.w.input, &s.w.hidden, &s.w.input_bias, &s.w.hidden_bias};
            for (int64_t part = 0; part < n.per; ++part)
                r.write(r.tensors("dparamsOut")[size_t(i * n.per + part)], *parts[part]);
        }
        dy.swap(dx);
    }
    write_steps(r, r.tensor("dxOut"), all, dy, n.batch_first);
    r.write(r.tensor("dhPrevOut"), all_h);
    if (cells) r.write(r.tensor("dcPrevOut"), all_c);
}

void plan_lstm_backward(Plan& p) {
    Network n = network(p, "bidirectional", 4);
    plan_backward(p, n, {"i", "g", "f", "o", "h", "c", "tanhc"}, "batchSizesOptional");
    p.same_shape("dh", "dc");
    p.same_shape("dh", "dcPrevOut");
    p.require(p.real("dropout") == 0, "dropout is %g; the emulator computes 0: the function has neither a seed nor a mask", p.real("dropout"));
    p.require(p.tensors("hx").size() == 2, "hx has %zu tensors, expected 2", p.tensors("hx").size());
    for (const Tensor& t : p.tensors("hx"))
        p.require(t.dims == p.tensor("dh").dims, "a tensor of hx has shape %s", text(t.dims).c_str());
}

void run_lstm_backward(Run& r) {
    Network n = network(r, "bidirectional", 4);
    run_backward(r, n, "batchSizesOptional", lstm_step, [&](size_t i, const Layer& layer, const Sequences& s, size_t plane) {
        auto one = [&](const char* name) { return read_steps(r, r.tensors(name)[i], s); };
        const auto& hx = r.tensors("hx");
        return Left{layer, weights(r, i * size_t(n.per), n.per), one("h"), state(r, &hx[0], int64_t(i), plane), one("c"),
                    one("tanhc"), state(r, &hx[1], int64_t(i), plane), {one("i"), one("g"), one("f"), one("o")}};
    });
}

void plan_gru_backward(Plan& p) {
    Network n = network(p, "bidirection", 3);
    plan_backward(p, n, {"r", "z", "n", "hn", "h"}, "batchSizes");
    p.same_shape("dh", "hx");
}

void run_gru_backward(Run& r) {
    Network n = network(r, "bidirection", 3);
    run_backward(r, n, "batchSizes", gru_step, [&](size_t i, const Layer& layer, const Sequences& s, size_t plane) {
        auto one = [&](const char* name) { return read_steps(r, r.tensors(name)[i], s); };
        return Left{layer, weights(r, i * size_t(n.per), n.per), one("h"), state(r, &r.tensor("hx"), int64_t(i), plane),
                    {}, {}, {}, {one("r"), one("z"), one("n"), one("hn")}};
    });
}

}  // namespace

ACLNN(aclnnLSTM, plan_lstm, run_lstm)
ACLNN(aclnnGRU, plan_gru, run_gru)
ACLNN(aclnnBidirectionLSTM, plan_named, run_named)
ACLNN(aclnnBidirectionLSTMV2, plan_named, run_named)
ACLNN(aclnnLstmBackward, plan_lstm_backward, run_lstm_backward)
ACLNN(aclnnGRUBackward, plan_gru_backward, run_gru_backward)
