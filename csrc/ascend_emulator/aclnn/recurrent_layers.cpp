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
    p.require(p.real("dropout") >= 0 && p.real("dropout") <= 1, "dropout is %g, expected 0 to 1", p.real("dropout"));
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
        bool first = n == 0;
        auto before = [&](const Matrix& all, const Matrix& start) {
            if (all.empty()) return Matrix(plane, 0);
            if (first) return start;
            return Matrix(all.begin() + earlier * int64_t(plane), all.begin() + (earlier + 1) * int64_t(plane));
        };
        Matrix h = before(l.h, l.first_h), c = before(l.c, l.first_c);
        Matrix gi(size_t(batch * rows), 0), gh(size_t(batch * rows), 0);
        for (int64_t b = 0; b < batch; ++b)
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
        add_outer(out.w.input, gi.data(), x.data() + s * batch * inner, batch, rows, inner);
        add_outer(out.w.hidden, gh.data(), h.data(), batch, rows, size);
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

void plan_backward(const Plan& p, const Network& n, std::initializer_list<const char*> lists, const char* packed) {
    const auto& params = p.tensors("params");
    p.require(!p.has(packed), "%s: packed sequences are not computed by the emulator", packed);
    p.require(n.layers >= 1 && int64_t(params.size()) == n.layers * n.directions * n.per && params[1].rank() == 2,
              "params has %zu tensors, expected %lld", params.size(),
              static_cast<long long>(n.layers * n.directions * n.per));
    Dims x = steps_first(p.tensor("input"), n.batch_first).dims;
    p.require(x.n == 3, "input has %d dimensions, expected 3", x.n);
    int64_t size = params[1].dims[1];
    for (size_t i = 0; i < params.size(); ++i) {
        int64_t layer = int64_t(i) / (n.per * n.directions), which = int64_t(i) % n.per;
        int64_t inner = which == 1 ? size : layer == 0 ? x[2] : size * n.directions;
        Dims want = which < 2 ? Dims{n.gates * size, inner} : Dims{n.gates * size};
        p.require(params[i].dims == want, "params %zu has shape %s, expected %s", i, text(params[i].dims).c_str(),
                  text(want).c_str());
    }
    Dims y = steps_first(p.tensor("dy"), n.batch_first).dims, state{n.layers * n.directions, x[1], size};
    p.require(y == Dims({x[0], x[1], size * n.directions}), "dy has shape %s", text(y).c_str());
    p.shape("dh", state);
    for (const char* name : lists) {
        const auto& list = p.tensors(name);
        p.require(int64_t(list.size()) == n.layers * n.directions, "%s has %zu tensors, expected %lld", name, list.size(),
                  static_cast<long long>(n.layers * n.directions));
        for (const Tensor& t : list)
            p.require(t.dims == Dims({x[0], x[1], size}), "a tensor of %s has shape %s", name, text(t.dims).c_str());
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
void run_backward(Run& r, const Network& n, Step step, F left) {
    Tensor input = steps_first(r.tensor("input"), n.batch_first);
    int64_t size = r.tensors("params")[1].dims[1], steps = input.dims[0], batch = input.dims[1];
    size_t plane = size_t(batch * size);
    bool cells = n.gates == 4;
    Matrix dy = r.read<double>(steps_first(r.tensor("dy"), n.batch_first));
    Matrix all_h(size_t(n.layers * n.directions) * plane), all_c(all_h.size());
    for (int64_t layer = n.layers - 1; layer >= 0; --layer) {
        int64_t inner = layer == 0 ? input.dims[2] : size * n.directions;
        Matrix x, dx;
        if (layer == 0) x = r.read<double>(input);
        else
            for (int64_t d = 0; d < n.directions; ++d) {
                Matrix h = r.read<double>(r.tensors("h")[size_t((layer - 1) * n.directions + d)]);
                x = d == 0 ? h : joined(x, h, size);
            }
        dx.assign(x.size(), 0);
        for (int64_t d = 0; d < n.directions; ++d) {
            int64_t i = layer * n.directions + d;
            Left l = left(size_t(i), Layer{steps, batch, inner, size, d == 1}, plane);
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
    r.write(steps_first(r.tensor("dxOut"), n.batch_first), dy);
    r.write(r.tensor("dhPrevOut"), all_h);
    if (cells) r.write(r.tensor("dcPrevOut"), all_c);
}

void plan_lstm_backward(Plan& p) {
    Network n = network(p, "bidirectional", 4);
    plan_backward(p, n, {"i", "g", "f", "o", "h", "c", "tanhc"}, "batchSizesOptional");
    p.same_shape("dh", "dc");
    p.same_shape("dh", "dcPrevOut");
    p.require(p.real("dropout") == 0, "dropout is %g; the emulator computes 0", p.real("dropout"));
    p.require(p.tensors("hx").size() == 2, "hx has %zu tensors, expected 2", p.tensors("hx").size());
    for (const Tensor& t : p.tensors("hx"))
        p.require(t.dims == p.tensor("dh").dims, "a tensor of hx has shape %s", text(t.dims).c_str());
}

void run_lstm_backward(Run& r) {
    Network n = network(r, "bidirectional", 4);
    run_backward(r, n, lstm_step, [&](size_t i, const Layer& layer, size_t plane) {
        auto one = [&](const char* name) { return r.read<double>(r.tensors(name)[i]); };
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
    run_backward(r, n, gru_step, [&](size_t i, const Layer& layer, size_t plane) {
        auto one = [&](const char* name) { return r.read<double>(r.tensors(name)[i]); };
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
