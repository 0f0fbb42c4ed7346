// Products of matrices with what follows them fused, and losses over a vocabulary that is spread over devices.
//
// The facts give shapes and dtypes only; the formulas are written at each kernel.
#include "optional.h"
#include "activation.h"
#include "moving.h"
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// (rows, inner) @ (inner, columns), or with the second matrix stored transposed.
Values product(const Values& x, const Values& w, int64_t rows, int64_t inner, int64_t columns, bool transposed = false) {
    Values out(size_t(rows * columns), 0);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < columns; ++j)
                out[size_t(i * columns + j)] +=
                    x[size_t(i * inner + k)] * w[size_t(transposed ? j * inner + k : k * columns + j)];
    return out;
}

int64_t rows_of(const Dims& d) { return Dims(d.begin(), uint64_t(d.n - 1)).product(); }

// -- C = alpha A B + beta C, elements alike: C + alpha A * B ----------------------------------------------------------
// The names say "elements": products are of elements, cOut = beta * c + alpha * a * b.
double number(const Run& r, const char* name, bool scalar) {
    return scalar ? r.scalar(name).as<double>() : r.read<double>(r.tensor(name))[0];
}

template <bool scalar>
void run_elements(Run& r) {
    auto a = r.read<double>(r.tensor("a")), b = r.read<double>(r.tensor("b")), c = r.read<double>(r.tensor("c"));
    double alpha = number(r, "alpha", scalar), beta = number(r, "beta", scalar);
    for (size_t i = 0; i < c.size(); ++i) c[i] = beta * c[i] + alpha * a[i] * b[i];
    r.write(r.tensor("cOut"), c);
}

template <bool scalar>
void plan_elements(Plan& p) {
    for (const char* name : {"b", "c", "cOut"}) {
        p.same_shape("a", name);
        p.same_dtype("a", name);
    }
    if constexpr (!scalar)
        for (const char* name : {"alpha", "beta"})
            p.require(p.tensor(name).numel() == 1, "%s has shape %s, expected one element", name,
                      text(p.tensor(name).dims).c_str());
}

// -- y = act(x1 @ x2 + bias), or with x3 added or multiplied -----------------------------------------------------------
double activated(double x, const std::string& kind) {
    if (kind == "relu") return std::fmax(x, 0);
    if (kind == "gelu_erf") return gelu(x);
    if (kind == "gelu_tanh") return gelu_tanh(x);
    return x;
}

void plan_fused(Plan& p) {
    const Dims &a = p.tensor("x1").dims, &b = p.tensor("x2").dims;
    const std::string& kind = p.string("fusedOpType");
    bool third = kind == "add" || kind == "mul";
    p.require(kind.empty() || kind == "relu" || kind == "gelu_erf" || kind == "gelu_tanh" || kind == "16cast32" || third,
              "fusedOpType is \"%s\"; the emulator computes add, mul, relu, gelu_erf, gelu_tanh", kind.c_str());
    p.require(a.n == 2 && b.n == 2 && a[1] == b[0], "x1 has shape %s, x2 %s", text(a).c_str(), text(b).c_str());
    p.same_dtype("x1", "x2");
    p.shape("y", {a[0], b[1]});
    p.require(p.has("x3") == third, third ? "fusedOpType needs x3" : "x3 belongs to add and mul");
    if (third) p.shape("x3", {a[0], b[1]});
    if (p.has("bias"))
        p.require(p.tensor("bias").numel() == b[1], "bias has shape %s", text(p.tensor("bias").dims).c_str());
    int64_t cube = p.integer("cubeMathType");
    p.require(cube >= 0 && cube <= 3, "cubeMathType is %lld, expected 0 to 3", wide(cube));
}

void run_fused(Run& r) {
    const Dims& d = r.tensor("y").dims;
    const std::string& kind = r.string("fusedOpType");
    auto y = product(r.read<double>(r.tensor("x1")), r.read<double>(r.tensor("x2")), d[0], r.tensor("x1").dims[1], d[1]);
    Values bias(size_t(d[1]), 0), other;
    if (r.has("bias")) bias = r.read<double>(r.tensor("bias"));
    if (r.has("x3")) other = r.read<double>(r.tensor("x3"));
    for (size_t i = 0; i < y.size(); ++i) {
        y[i] = activated(y[i] + bias[i % size_t(d[1])], kind);
        if (kind == "add") y[i] += other[i];
        if (kind == "mul") y[i] *= other[i];
    }
    r.write(r.tensor("y"), y);
}

// gelu(x @ weight^T + bias), as a linear layer holds its weight; approximate 0 is exact, 1 tanh.
void plan_gelu(Plan& p) {
    const Dims &x = p.tensor("x").dims, &w = p.tensor("weight").dims;
    p.require(x.n >= 2 && w.n == 2 && x.back() == w[1], "x has shape %s, weight %s", text(x).c_str(), text(w).c_str());
    p.shape("bias", {w[0]});
    Dims want = x;
    want[want.n - 1] = w[0];
    p.shape("y", want);
    p.require(p.integer("approximate") == 0 || p.integer("approximate") == 1, "approximate is %lld, expected 0 or 1",
              wide(p.integer("approximate")));
}

void run_gelu(Run& r) {
    const Dims &x = r.tensor("x").dims, &w = r.tensor("weight").dims;
    auto y = product(r.read<double>(r.tensor("x")), r.read<double>(r.tensor("weight")), rows_of(x), w[1], w[0], true);
    auto bias = r.read<double>(r.tensor("bias"));
    bool tanh = r.integer("approximate") == 1;
    for (size_t i = 0; i < y.size(); ++i) {
        double v = y[i] + bias[i % bias.size()];
        y[i] = tanh ? gelu_tanh(v) : gelu(v);
    }
    r.write(r.tensor("y"), y);
}

// down(silu(gate(x)) * up(x)): both of the first two products in one matrix, gate first.
void plan_mlp(Plan& p) {
    const Dims &x = p.tensor("x").dims, &up = p.tensor("gateUpWeight").dims, &down = p.tensor("downWeight").dims;
    p.require(x.n == 2 && up.n == 2 && down.n == 2 && up[0] == x[1] && up[1] % 2 == 0 && down[0] == up[1] / 2,
              "x has shape %s, gateUpWeight %s, downWeight %s", text(x).c_str(), text(up).c_str(), text(down).c_str());
    p.shape("y", {x[0], down[1]});
    int64_t cube = p.integer("cubeMathType");
    p.require(cube >= 0 && cube <= 3, "cubeMathType is %lld, expected 0 to 3", wide(cube));
}

void run_mlp(Run& r) {
    const Dims &x = r.tensor("x").dims, &up = r.tensor("gateUpWeight").dims, &down = r.tensor("downWeight").dims;
    auto both = product(r.read<double>(r.tensor("x")), r.read<double>(r.tensor("gateUpWeight")), x[0], x[1], up[1]);
    Values inner;
    for (int64_t i = 0; i < x[0]; ++i)
        for (int64_t k = 0; k < down[0]; ++k)
            inner.push_back(silu(both[size_t(i * up[1] + k)]) * both[size_t(i * up[1] + down[0] + k)]);
    r.write(r.tensor("y"), product(inner, r.read<double>(r.tensor("downWeight")), x[0], down[0], down[1]));
}

// A matrix of FLOAT as the sum of two of BF16: x @ (high + low * scale).
void plan_split(Plan& p) {
    const Dims &x = p.tensor("x").dims, &w = p.tensor("wHigh").dims;
    p.same_shape("wHigh", "wLow");
    p.require(x[1] == w[0], "x has shape %s, wHigh %s", text(x).c_str(), text(w).c_str());
    p.shape("y", {x[0], w[1]});
    p.require(p.integer("yDtype") == ACL_FLOAT, "yDtype is %lld, expected 0 (FLOAT)", wide(p.integer("yDtype")));
}

void run_split(Run& r) {
    const Dims &x = r.tensor("x").dims, &w = r.tensor("wHigh").dims;
    auto high = r.read<double>(r.tensor("wHigh")), low = r.read<double>(r.tensor("wLow"));
    for (size_t i = 0; i < high.size(); ++i) high[i] += low[i] * r.real("wLowScale");
    r.write(r.tensor("y"), product(r.read<double>(r.tensor("x")), high, x[0], w[0], w[1]));
}

// -- adapters: y[:, offset : offset + size] += scale * (x @ A^T) @ B^T of the adapter of each row --------------------------
void plan_lora(Plan& p) {
    const Dims &y = p.tensor("y").dims, &x = p.tensor("x").dims, &b = p.tensor("weightB").dims;
    int64_t layer = p.integer("layerIdx"), from = p.integer("yOffset"), size = p.integer("ySliceSize");
    p.require(layer >= 0 && layer < b[1], "layerIdx is %lld of %lld", wide(layer), wide(b[1]));
    p.require(from >= 0 && size > 0 && from + size <= y[1] && b[2] == size,
              "yOffset is %lld and ySliceSize %lld; y has shape %s, weightB %s", wide(from), wide(size), text(y).c_str(),
              text(b).c_str());
    p.require(x[0] == y[0], "x has shape %s, y %s", text(x).c_str(), text(y).c_str());
    p.shape("indices", {x[0]});
    p.same_shape("y", "out");
    if (p.has("weightAOptional")) p.shape("weightAOptional", {b[0], b[1], b[3], x[1]});
    else p.require(x[1] == b[3], "x has shape %s, weightB %s", text(x).c_str(), text(b).c_str());
}

void run_lora(Run& r) {
    const Dims &d = r.tensor("y").dims, &b = r.tensor("weightB").dims;
    auto y = r.read<double>(r.tensor("y")), x = r.read<double>(r.tensor("x")), wb = r.read<double>(r.tensor("weightB"));
    auto which = r.read<int64_t>(r.tensor("indices"));
    int64_t layer = r.integer("layerIdx"), inner = r.tensor("x").dims[1], rank = b[3], from = r.integer("yOffset");
    Values wa;
    if (r.has("weightAOptional")) wa = r.read<double>(r.tensor("weightAOptional"));
    for (int64_t i = 0; i < d[0]; ++i) {
        if (which[size_t(i)] < 0) continue;  // no adapter
        int64_t at = checked_index(which[size_t(i)], b[0], "indices") * b[1] + layer;
        Values z(x.begin() + i * inner, x.begin() + (i + 1) * inner);
        if (r.has("weightAOptional")) {
            Values small(size_t(rank), 0);
            for (int64_t k = 0; k < rank; ++k)
                for (int64_t j = 0; j < inner; ++j) small[size_t(k)] += z[size_t(j)] * wa[size_t((at * rank + k) * inner + j)];
            z.swap(small);
        }
        for (int64_t j = 0; j < b[2]; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < rank; ++k) sum += z[size_t(k)] * wb[size_t((at * b[2] + j) * rank + k)];
            y[size_t(i * d[1] + from + j)] += r.real("scale") * sum;
        }
    }
    r.write(r.tensor("out"), y);
}

// -- rows of floats times INT8: the rows become INT8 on the way ---------------------------------------------------------
// The weight is (.., columns, inner); transposeWeight says that it is not.
void plan_dequant(Plan& p, bool groups) {
    const Dims &x = p.tensor("x").dims, &w = p.tensor("weight").dims;
    int skip = groups ? 1 : 0;
    p.require(w.n == 2 + skip, "weight has shape %s; the emulator computes the format ND", text(w).c_str());
    bool turned = p.flag("transposeWeight");
    int64_t inner = w[turned ? skip + 1 : skip], columns = w[turned ? skip : skip + 1];
    p.require(inner == x[1], "x has shape %s, weight %s", text(x).c_str(), text(w).c_str());
    p.shape("weightScale", groups ? Dims{w[0], columns} : Dims{columns});
    if (groups) p.shape("groupList", {w[0]});
    p.shape("out", {x[0], columns});
    const std::string& mode = p.string("xQuantMode");
    p.require(mode == "pertoken" || mode == "pertensor", "xQuantMode is \"%s\", expected pertoken or pertensor", mode.c_str());
    for (const char* name : {"biasOptional", "xOffsetOptional"}) p.require(!p.has(name), "%s is reserved and must be null", name);
    if (p.has("smoothScaleOptional")) p.shape("smoothScaleOptional", {x[1]});
    p.require(mode == "pertoken" || p.has("xScaleOptional"), "pertensor needs xScaleOptional");
    if (p.has("xScaleOptional")) p.shape("xScaleOptional", {mode == "pertensor" ? 1 : x[0]});
}

void run_dequant(Run& r, bool groups) {
    const Dims &d = r.tensor("x").dims, &w = r.tensor("weight").dims;
    int64_t columns = r.tensor("out").dims[1], inner = d[1];
    bool turned = r.flag("transposeWeight");
    auto x = r.read<double>(r.tensor("x")), weight = r.read<double>(r.tensor("weight")), scale = read_scale(r, r.tensor("weightScale"));
    Values smooth(size_t(inner), 1), given;
    if (r.has("smoothScaleOptional")) smooth = r.read<double>(r.tensor("smoothScaleOptional"));
    if (r.has("xScaleOptional")) given = r.read<double>(r.tensor("xScaleOptional"));
    std::vector<int64_t> ends{d[0]};
    if (groups) ends = r.read<int64_t>(r.tensor("groupList"));
    auto of = groups_of(ends, d[0]);
    Values out(size_t(d[0] * columns), 0);
    for (int64_t i = 0; i < d[0]; ++i) {
        if (of[size_t(i)] < 0) continue;
        Values row;
        double largest = 0;
        for (int64_t k = 0; k < inner; ++k) {
            row.push_back(x[size_t(i * inner + k)] * smooth[size_t(k)]);
            largest = std::fmax(largest, std::fabs(row.back()));
        }
        double step = given.empty() ? largest / 127 : given[given.size() == 1 ? 0 : size_t(i)];
        for (double& v : row) v = step > 0 ? v / step : 0;
        row = within(row, ACL_INT8);
        const double* matrix = weight.data() + (groups ? of[size_t(i)] * w[1] * w[2] : 0);
        for (int64_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < inner; ++k) sum += row[size_t(k)] * matrix[turned ? j * inner + k : k * columns + j];
            out[size_t(i * columns + j)] = sum * step * scale[size_t((groups ? of[size_t(i)] * columns : 0) + j)];
        }
    }
    r.write(r.tensor("out"), out);
}

// -- losses over a spread vocabulary -----------------------------------------------------------------------------------
// This device has the words [vocabStartIndex, vocabEndIndex]; a target elsewhere is masked and counts as word 0.
void plan_online(Plan& p) {
    const Dims &x = p.tensor("input").dims, &w = p.tensor("weight").dims;
    p.require(x[1] == w[1], "input has shape %s, weight %s", text(x).c_str(), text(w).c_str());
    p.same_dtype("input", "weight");
    p.same_dtype("target", "maskedTargetOut");
    p.shape("target", {x[0]});
    for (const char* name : {"logitsMaxLocalOut", "sumExpLogitsLocalOut", "predictedLogitsLocalOut", "maskedTargetOut"})
        p.shape(name, {x[0]});
    p.shape("targetMaskOut", {(x[0] + 7) / 8});
    if (p.has("vocabParallelLogitsOutOptional")) p.shape("vocabParallelLogitsOutOptional", {x[0], w[0]});
    p.require(p.integer("vocabStartIndex") >= 0 && p.integer("vocabEndIndex") >= p.integer("vocabStartIndex"),
              "vocabEndIndex is below vocabStartIndex");
}

void run_online(Run& r) {
    const Dims &d = r.tensor("input").dims, &w = r.tensor("weight").dims;
    auto y = product(r.read<double>(r.tensor("input")), r.read<double>(r.tensor("weight")), d[0], d[1], w[0], true);
    auto target = r.read<int64_t>(r.tensor("target"));
    int64_t first = r.integer("vocabStartIndex"), last = r.integer("vocabEndIndex");
    Values tops, sums, picked;
    std::vector<int64_t> mask(size_t((d[0] + 7) / 8), 0);
    for (int64_t i = 0; i < d[0]; ++i) {
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < w[0]; ++j) top = std::fmax(top, y[size_t(i * w[0] + j)]);
        for (int64_t j = 0; j < w[0]; ++j) sum += std::exp(y[size_t(i * w[0] + j)] - top);
        int64_t& t = target[size_t(i)];
        bool outside = t < first || t > last;
        if (outside) mask[size_t(i / 8)] |= int64_t(1) << (i % 8);
        t = outside ? 0 : t - first;
        picked.push_back(outside ? 0 : y[size_t(i * w[0] + checked_index(t, w[0], "target"))]);
        tops.push_back(top);
        sums.push_back(sum);
    }
    r.write(r.tensor("logitsMaxLocalOut"), tops);
    r.write(r.tensor("sumExpLogitsLocalOut"), sums);
    r.write(r.tensor("predictedLogitsLocalOut"), picked);
    r.write(r.tensor("targetMaskOut"), mask);
    r.write(r.tensor("maskedTargetOut"), target);
    if (r.has("vocabParallelLogitsOutOptional")) r.write(r.tensor("vocabParallelLogitsOutOptional"), y);
}

// loss = log(sum of exponentials) - predicted logit; the softmax of the logits beside it.
void plan_max_sum(Plan& p) {
    for (const char* name : {"sumExpLogits", "predictedLogits", "lossOut"}) p.same_shape("logitsMax", name);
    p.require(p.real("labelSmoothing") == 0, "labelSmoothing is %g, expected 0", p.real("labelSmoothing"));
    for (const char* name : {"inputOptional", "weightOptional"}) p.require(!p.has(name), "%s is reserved and must be null", name);
    p.require(p.has("vocabParallelLogitsOptional") == p.has("softMaxOutOptional"),
              "vocabParallelLogitsOptional and softMaxOutOptional go together");
    if (!p.has("softMaxOutOptional")) return;
    p.same_shape("vocabParallelLogitsOptional", "softMaxOutOptional");
    p.require(p.tensor("softMaxOutOptional").dims[0] == p.tensor("logitsMax").numel(), "softMaxOutOptional has shape %s",
              text(p.tensor("softMaxOutOptional").dims).c_str());
}

void run_max_sum(Run& r) {
    auto top = r.read<double>(r.tensor("logitsMax")), sum = r.read<double>(r.tensor("sumExpLogits"));
    auto loss = r.read<double>(r.tensor("predictedLogits"));
    for (size_t i = 0; i < loss.size(); ++i) loss[i] = std::log(sum[i]) - loss[i];
    r.write(r.tensor("lossOut"), loss);
    if (!r.has("softMaxOutOptional")) return;
    auto x = r.read<double>(r.tensor("vocabParallelLogitsOptional"));
    size_t length = size_t(r.tensor("softMaxOutOptional").dims[1]);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::exp(x[i] - top[i / length]) / sum[i / length];
    r.write(r.tensor("softMaxOutOptional"), x);
}

// The slopes of the loss: those of the logits are grad * (softmax - one at the target, unless it is masked).
void plan_linear_grad(Plan& p) {
    const Dims &x = p.tensor("input").dims, &w = p.tensor("weight").dims;
    p.require(x[1] == w[1], "input has shape %s, weight %s", text(x).c_str(), text(w).c_str());
    for (const char* name : {"grad", "maskedTarget"}) p.shape(name, {x[0]});
    p.shape("targetMask", {(x[0] + 7) / 8});
    p.require(p.real("labelSmoothing") == 0, "labelSmoothing is %g, expected 0", p.real("labelSmoothing"));
    bool given = p.has("softmaxOptional");
    p.require(given || (p.has("logitsMaxOptional") && p.has("sumExpLogitsOptional")),
              "softmaxOptional, or logitsMaxOptional and sumExpLogitsOptional, are needed");
    if (given) p.shape("softmaxOptional", {x[0], w[0]});
    else
        for (const char* name : {"logitsMaxOptional", "sumExpLogitsOptional"}) p.shape(name, {x[0]});
    p.same_shape("input", "inputGradOut");
    p.same_shape("weight", "weightGradOut");
}

void run_linear_grad(Run& r) {
    const Dims &d = r.tensor("input").dims, &w = r.tensor("weight").dims;
    auto x = r.read<double>(r.tensor("input")), weight = r.read<double>(r.tensor("weight")), g = r.read<double>(r.tensor("grad"));
    auto mask = r.read<int64_t>(r.tensor("targetMask")), target = r.read<int64_t>(r.tensor("maskedTarget"));
    Values soft;
    if (r.has("softmaxOptional")) soft = r.read<double>(r.tensor("softmaxOptional"));
    else {
        soft = product(x, weight, d[0], d[1], w[0], true);
        auto top = r.read<double>(r.tensor("logitsMaxOptional")), sum = r.read<double>(r.tensor("sumExpLogitsOptional"));
        for (size_t i = 0; i < soft.size(); ++i) soft[i] = std::exp(soft[i] - top[i / size_t(w[0])]) / sum[i / size_t(w[0])];
    }
    for (int64_t i = 0; i < d[0]; ++i) {
        bool outside = mask[size_t(i / 8)] >> (i % 8) & 1;
        if (!outside) soft[size_t(i * w[0] + checked_index(target[size_t(i)], w[0], "maskedTarget"))] -= 1;
        for (int64_t j = 0; j < w[0]; ++j) soft[size_t(i * w[0] + j)] *= g[size_t(i)];
    }
    Values dw(weight.size());
    for (int64_t i = 0; i < d[0]; ++i)
        for (int64_t j = 0; j < w[0]; ++j)
            for (int64_t k = 0; k < d[1]; ++k) dw[size_t(j * d[1] + k)] += soft[size_t(i * w[0] + j)] * x[size_t(i * d[1] + k)];
    r.write(r.tensor("inputGradOut"), product(soft, weight, d[0], w[0], d[1]));
    r.write(r.tensor("weightGradOut"), dw);
}

// -- sampling ------------------------------------------------------------------------------------------------------------
// The k largest, of these the smallest set of probability p; of its softmax, divided by q, the largest is taken.
void plan_sample(Plan& p) {
    const Dims& d = p.tensor("logits").dims;
    for (const char* name : {"topK", "topP", "logitsSelectIdx"}) p.shape(name, {d[0]});
    need_elements(p, {"logits"});
    p.same_dtype("logits", "topP");
    if (p.has("q")) p.same_shape("logits", "q");
    auto like_logits = [&](const char* name) {
        p.require(p.has(name) && p.tensor(name).numel() == d.product(), "%s must have the elements of logits, %s", name, text(d).c_str());
    };
    if (p.flag("isNeedLogits")) like_logits("logitsTopKPSelect");
    if (!has_parameter(p, "minPs")) return;
    if (p.has("minPs")) p.require(p.tensor("minPs").numel() == d[0], "minPs has shape %s, logits %s", text(p.tensor("minPs").dims).c_str(), text(d).c_str());
    if (p.flag("isNeedSampleResult")) like_logits("logitsIdx"), like_logits("logitsSortMasked");
}

// The second version: numbers that are chances already, chances below a share of the largest are dropped, and the sorted
// numbers with their places; the documents do not say what stands at dropped places, here -infinity.
void run_sample(Run& r) {
    const Dims& d = r.tensor("logits").dims;
    bool later = has_parameter(r, "minPs"), chances = later && !r.flag("inputIsLogits"), sorted = later && r.flag("isNeedSampleResult");
    auto given_numbers = r.read<double>(r.tensor("logits")), share = r.read<double>(r.tensor("topP"));
    auto most = r.read<int64_t>(r.tensor("topK"));
    Values q, least, x = given_numbers, kept(x.size(), -INFINITY), in_order(x.size(), -INFINITY);
    for (double& v : x) v = chances ? std::log(v) : v;
    if (r.has("q")) q = r.read<double>(r.tensor("q"));
    if (later && r.has("minPs")) least = r.read<double>(r.tensor("minPs"));
    std::vector<int64_t> picked, places(x.size());
    for (int64_t row = 0; row < d[0]; ++row) {
        const double* line = x.data() + row * d[1];
        std::vector<int64_t> order(static_cast<size_t>(d[1]));
        for (int64_t i = 0; i < d[1]; ++i) order[size_t(i)] = i;
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return line[a] > line[b]; });
        int64_t k = most[size_t(row)] <= 0 ? d[1] : std::min(most[size_t(row)], d[1]), used = 0;
        double sum = 0, before = 0;
        for (int64_t i = 0; i < k; ++i) sum += std::exp(line[order[size_t(i)]] - line[order[0]]);
        for (; used < k && (used == 0 || before < share[size_t(row)]); ++used)
            before += std::exp(line[order[size_t(used)]] - line[order[0]]) / sum;
        while (!least.empty() && used > 1 && std::exp(line[order[size_t(used - 1)]] - line[order[0]]) < least[size_t(row)]) --used;
        std::copy(order.begin(), order.end(), places.begin() + row * d[1]);
        int64_t best = order[0];
        double high = -INFINITY, total = 0;
        for (int64_t i = 0; i < used; ++i) total += std::exp(line[order[size_t(i)]] - line[order[0]]);
        for (int64_t i = 0; i < used; ++i) {
            int64_t at = order[size_t(i)];
            kept[size_t(row * d[1] + at)] = in_order[size_t(row * d[1] + i)] = given_numbers[size_t(row * d[1] + at)];
            double chance = std::exp(line[at] - line[order[0]]) / total;
            if (!q.empty()) chance /= q[size_t(row * d[1] + at)] + r.real("eps");
            if (chance > high) high = chance, best = at;
        }
        picked.push_back(best);
    }
    r.write(r.tensor("logitsSelectIdx"), picked);
    if (r.flag("isNeedLogits")) r.write(r.tensor("logitsTopKPSelect"), kept);
    if (!sorted) return;
    r.write(r.tensor("logitsIdx"), places);
    r.write(r.tensor("logitsSortMasked"), in_order);
}

}  // namespace

ACLNN(aclnnAddMatMatElements, plan_elements<true>, run_elements<true>)
ACLNN(aclnnAddMatMatElementsPlus, plan_elements<false>, run_elements<false>)
ACLNN(aclnnFusedMatmul, plan_fused, run_fused)
ACLNN(aclnnFusedMatmulGelu, plan_gelu, run_gelu)
ACLNN(aclnnSwigluGatedMlp, plan_mlp, run_mlp)
ACLNN(aclnnMatmulEmuSplitWeight, plan_split, run_split)
ACLNN(aclnnAddLora, plan_lora, run_lora)
ACLNN(aclnnQuantMatmulDequant, PLAN { plan_dequant(p, false); }, RUN { run_dequant(r, false); })
ACLNN(aclnnQuantGroupedMatmulDequantWeightNZ, PLAN { plan_dequant(p, true); }, RUN { run_dequant(r, true); })
ACLNN(aclnnQuantGroupedMatmulDequant, PLAN { plan_dequant(p, true); }, RUN { run_dequant(r, true); })
ACLNN(aclnnFusedLinearOnlineMaxSum, plan_online, run_online)
ACLNN(aclnnFusedCrossEntropyLossWithMaxSum, plan_max_sum, run_max_sum)
ACLNN(aclnnFusedLinearCrossEntropyLossGrad, plan_linear_grad, run_linear_grad)
ACLNN(aclnnTopKTopPSample, plan_sample, run_sample)
ACLNN(aclnnTopKTopPSampleV2, plan_sample, run_sample)
