// Products of small floats whose blocks have scales of their own (block_scales.h): added in place, in groups, permuted, with
// scales of two levels, activated and quantized again; and of weights in bytes.
//
// The facts have dtypes and ranks; which scale belongs to which numbers is as the functions' public descriptions say.
#include "activation.h"
#include "block_scales.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

Tensor turned(Tensor t, bool swaps) {
    if (swaps) std::swap(t.dims[0], t.dims[1]), std::swap(t.strides[0], t.strides[1]);
    return t;
}

// The scales of a matrix that may be given the other way around, as the matrix is multiplied.
Values turned_pairs(const Run& r, const char* name, bool swaps) {
    Tensor t = r.tensor(name);
    return r.read<double>(turned(t, swaps));
}

// -- yRef += (x1 * scale1) @ (x2 * scale2) -----------------------------------------------------------------------------------
void plan_added(Plan& p) {
    Tensor a = turned(p.tensor("x1"), p.flag("transposeX1")), b = turned(p.tensor("x2"), p.flag("transposeX2"));
    p.require(a.dims[1] == b.dims[0], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    p.shape("yRef", {a.dims[0], b.dims[1]});
    int64_t size = p.integer("groupSize");
    if (!in_pairs(p.tensor("x2Scale"))) {
        p.require(size == 0, "groupSize is %lld, one scale for all has 0", wide(size));
        for (const char* name : {"x1ScaleOptional", "x2Scale"})
            if (p.has(name)) p.require(p.tensor(name).numel() == 1, "%s has shape %s, expected one number or pairs", name, text(p.tensor(name).dims).c_str());
        return;
    }
    p.require(p.has("x1ScaleOptional") && in_pairs(p.tensor("x1ScaleOptional")), "x1ScaleOptional must be in pairs as x2Scale is");
    p.require(size == 0 || (size & 0xFFFF) == kBlock, "groupSize is %lld, pairs belong to groups of 32", wide(size));
    plan_pairs(p, "x1ScaleOptional", p.tensor("x1").dims, p.flag("transposeX1") ? 0 : 1, 1);
    plan_pairs(p, "x2Scale", p.tensor("x2").dims, p.flag("transposeX2") ? 1 : 0, 1);
}

void run_added(Run& r) {
    Tensor a = turned(r.tensor("x1"), r.flag("transposeX1")), b = turned(r.tensor("x2"), r.flag("transposeX2"));
    auto x = r.read<double>(a), w = r.read<double>(b), y = r.read<double>(r.tensor("yRef"));
    double factor = 1;
    int64_t inner = a.dims[1], n = b.dims[1];
    if (in_pairs(r.tensor("x2Scale"))) {
        scale_pairs(x, turned_pairs(r, "x1ScaleOptional", r.flag("transposeX1")), a.dims[0], inner, 1);
        scale_pairs(w, turned_pairs(r, "x2Scale", r.flag("transposeX2")), inner, n, 0);
    } else {
        factor = r.read<double>(r.tensor("x2Scale"))[0] * (r.has("x1ScaleOptional") ? r.read<double>(r.tensor("x1ScaleOptional"))[0] : 1);
    }
    for (int64_t i = 0; i < a.dims[0]; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < n; ++j) y[size_t(i * n + j)] += x[size_t(i * inner + k)] * w[size_t(k * n + j)] * factor;
    r.write(r.tensor("yRef"), y);
}

// -- yRef[g] += (x1[:, g] * scale1) @ (x2[g] * scale2), groups of the inner dimension -------------------------------------------
// Scales are one number for each group (of x1) and one for each group or each of its columns (of x2), or pairs: those of a
// group begin at its first number / 64 plus its place, so that groups share none.
void plan_grouped(Plan& p) {
    const Dims &a = p.tensor("x1").dims, &b = p.tensor("x2").dims;
    int64_t groups = p.tensor("groupList").numel();
    p.require(a.n == 2 && b.n == 2 && a[1] == b[0], "shapes %s and %s cannot be multiplied", text(a).c_str(), text(b).c_str());
    p.require(p.tensor("groupList").rank() == 1 && groups > 0, "groupList has shape %s", text(p.tensor("groupList").dims).c_str());
    plan_number(p, "groupListType", 1);
    p.shape("yRef", {groups, a[0], b[1]});
    int64_t size = p.integer("groupSize"), pairs = a[1] / kPair + groups;
    if (p.tensor("scale2").dtype == ACL_FLOAT8_E8M0) {
        p.require(size == 0 || (size & 0xFFFF) == kBlock, "groupSize is %lld, pairs belong to groups of 32", wide(size));
        p.require(p.has("scale1Optional"), "scale1Optional must be in pairs as scale2 is");
        p.shape("scale1Optional", {pairs, a[0], 2});
        return p.shape("scale2", {pairs, b[1], 2});
    }
    p.require(size == 0, "groupSize is %lld, scales of whole groups have 0", wide(size));
    int64_t n = p.tensor("scale2").numel();
    p.require(n == groups || n == groups * b[1], "scale2 has shape %s for %lld groups of %lld columns", text(p.tensor("scale2").dims).c_str(), wide(groups), wide(b[1]));
    if (p.has("scale1Optional")) p.require(p.tensor("scale1Optional").numel() == groups, "scale1Optional has shape %s for %lld groups", text(p.tensor("scale1Optional").dims).c_str(), wide(groups));
}

void run_grouped(Run& r) {
    const Dims &a = r.tensor("x1").dims, &b = r.tensor("x2").dims;
    auto x = r.read<double>(r.tensor("x1")), w = r.read<double>(r.tensor("x2")), y = r.read<double>(r.tensor("yRef")), second = r.read<double>(r.tensor("scale2"));
    auto ends = r.read<int64_t>(r.tensor("groupList"));
    int64_t rows = a[0], inner = a[1], n = b[1], groups = int64_t(ends.size()), from = 0;
    bool pairs = r.tensor("scale2").dtype == ACL_FLOAT8_E8M0, by_column = int64_t(second.size()) == groups * n && n != 1;
    Values first(size_t(groups), 1);
    if (r.has("scale1Optional")) first = r.read<double>(r.tensor("scale1Optional"));
    if (r.integer("groupListType") == 1)
        for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    for (int64_t g = 0; g < groups; ++g) {
        int64_t to = ends[size_t(g)];
        if (to < from || to > inner) fault("groupList goes from %lld to %lld, x1 has %lld columns", wide(from), wide(to), wide(inner));
        for (int64_t k = from; k < to; ++k) {
            int64_t pair = from / kPair + g + (k - from) / kPair, which = (k - from) / kBlock % 2;
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t j = 0; j < n; ++j) {
                    double factor = pairs ? first[size_t((pair * rows + i) * 2 + which)] * second[size_t((pair * n + j) * 2 + which)]
                                          : first[size_t(g)] * second[size_t(by_column ? g * n + j : g)];
                    y[size_t((g * rows + i) * n + j)] += x[size_t(i * inner + k)] * w[size_t(k * n + j)] * factor;
                }
        }
        from = to;
    }
    r.write(r.tensor("yRef"), y);
}

// -- batches of products whose operands and result are permuted -----------------------------------------------------------------
// Scales are numbers of the result's rows (x1Scale) and columns (x2Scale), or pairs, in the order of their operand.
std::vector<int64_t> order_of(const Call& c, const char* name) {
    return c.has(name) && !c.ints(name).empty() ? c.ints(name) : std::vector<int64_t>{0, 1, 2};
}

Tensor permuted(Tensor t, const std::vector<int64_t>& order) {
    Tensor out = t;
    for (int i = 0; i < 3; ++i) out.dims[i] = t.dims[int(order[size_t(i)])], out.strides[i] = t.strides[int(order[size_t(i)])];
    return out;
}

void plan_permuted(Plan& p) {
    p.require(p.tensor("x1").rank() == 3 && p.tensor("x2").rank() == 3, "x1 has shape %s, x2 %s", text(p.tensor("x1").dims).c_str(), text(p.tensor("x2").dims).c_str());
    for (const char* name : {"permX1", "permX2", "permY"}) {
        auto order = order_of(p, name), sorted = order;
        std::sort(sorted.begin(), sorted.end());
        p.require(sorted == std::vector<int64_t>({0, 1, 2}), "%s must hold 0, 1 and 2", name);
    }
    p.require(!p.has("bias"), "bias must be null");
    p.require(p.has("x1Scale") && p.has("x2Scale"), "x1Scale and x2Scale are needed");
    p.require(p.integer("batchSplitFactor") == 1, "batchSplitFactor is %lld, expected 1", wide(p.integer("batchSplitFactor")));
    p.require(p.integer("dtype") == p.tensor("out").dtype, "dtype is %lld, out has dtype %s", wide(p.integer("dtype")), dtype_name(p.tensor("out").dtype));
    Tensor a = permuted(p.tensor("x1"), order_of(p, "permX1")), b = permuted(p.tensor("x2"), order_of(p, "permX2"));
    p.require(a.dims[0] == b.dims[0] && a.dims[2] == b.dims[1], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    Dims y{a.dims[0], a.dims[1], b.dims[2]}, want = y;
    auto order = order_of(p, "permY");
    for (int i = 0; i < 3; ++i) want[i] = y[int(order[size_t(i)])];
    p.shape("out", want);
    if (!in_pairs(p.tensor("x2Scale"))) {
        int64_t rows = p.tensor("x1Scale").numel(), columns = p.tensor("x2Scale").numel();
        p.require((rows == y[1] || rows == 1) && (columns == y[2] || columns == 1), "x1Scale has shape %s, x2Scale %s", text(p.tensor("x1Scale").dims).c_str(),
                  text(p.tensor("x2Scale").dims).c_str());
        return;
    }
    p.require(p.integer("groupSize") == 0 || (p.integer("groupSize") & 0xFFFF) == kBlock, "groupSize is %lld, pairs belong to groups of 32", wide(p.integer("groupSize")));
    auto need = [&](const char* name, const char* operand, const char* perm, int inner) {
        Dims pairs = p.tensor(operand).dims;
        int at = int(order_of(p, perm)[size_t(inner)]);
        pairs[at] = parts_of(pairs[at], kPair);
        pairs.push(2);
        p.shape(name, pairs);
    };
    need("x1Scale", "x1", "permX1", 2), need("x2Scale", "x2", "permX2", 1);
}

void run_permuted(Run& r) {
    Tensor a = permuted(r.tensor("x1"), order_of(r, "permX1")), b = permuted(r.tensor("x2"), order_of(r, "permX2"));
    auto x = r.read<double>(a), w = r.read<double>(b);
    int64_t batch = a.dims[0], rows = a.dims[1], inner = a.dims[2], n = b.dims[2];
    Values by_row{1}, by_column{1}, y(size_t(batch * rows * n), 0), out;
    if (in_pairs(r.tensor("x2Scale"))) {
        scale_pairs(x, r.read<double>(permuted(r.tensor("x1Scale"), order_of(r, "permX1"))), rows, inner, 1);
        scale_pairs(w, r.read<double>(permuted(r.tensor("x2Scale"), order_of(r, "permX2"))), inner, n, 0);
    } else {
        by_row = r.read<double>(r.tensor("x1Scale")), by_column = r.read<double>(r.tensor("x2Scale"));
    }
    for (int64_t z = 0; z < batch; ++z)
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (int64_t k = 0; k < inner; ++k) sum += x[size_t((z * rows + i) * inner + k)] * w[size_t((z * inner + k) * n + j)];
                y[size_t((z * rows + i) * n + j)] = sum * by_row[by_row.size() == 1 ? 0 : size_t(i)] * by_column[by_column.size() == 1 ? 0 : size_t(j)];
            }
    auto order = order_of(r, "permY");
    int64_t steps[3] = {rows * n, n, 1};
    const Dims& d = r.tensor("out").dims;
    for (int64_t i = 0; i < d[0]; ++i)
        for (int64_t j = 0; j < d[1]; ++j)
            for (int64_t k = 0; k < d[2]; ++k) out.push_back(y[size_t(i * steps[order[0]] + j * steps[order[1]] + k * steps[order[2]])]);
    r.write(r.tensor("out"), out);
}

// -- two levels of scales: FLOAT for each 512 of the inner dimension, within them pairs ---------------------------------------------
constexpr int64_t kOuterBlock = 512;

void plan_two_levels(Plan& p) {
    Tensor a = turned(p.tensor("x1"), p.flag("transposeX1")), b = turned(p.tensor("x2"), p.flag("transposeX2"));
    p.require(a.rank() == 2 && b.rank() == 2 && a.dims[1] == b.dims[0], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    p.require(!p.flag("transposeX1") && p.flag("transposeX2"), "transposeX1 must be false, transposeX2 true");
    p.require(p.integer("level0GroupSize") == kOuterBlock && p.integer("level1GroupSize") == kBlock, "groups of %lld and %lld, expected 512 and 32", wide(p.integer("level0GroupSize")),
              wide(p.integer("level1GroupSize")));
    int64_t rows = a.dims[0], inner = a.dims[1], n = b.dims[1], outer = parts_of(inner, kOuterBlock);
    p.shape("x1Level0Scale", {rows, outer});
    p.shape("x2Level0Scale", {outer, n});
    p.shape("x1Level1Scale", {rows, parts_of(inner, kPair), 2});
    p.shape("x2Level1Scale", {n, parts_of(inner, kPair), 2});
    if (p.has("optionalBias")) p.shape("optionalBias", {n});
    p.shape("out", {rows, n});
}

void run_two_levels(Run& r) {
    Tensor b = turned(r.tensor("x2"), true);
    auto x = r.read<double>(r.tensor("x1")), w = r.read<double>(b);
    int64_t rows = r.tensor("x1").dims[0], inner = r.tensor("x1").dims[1], n = b.dims[1];
    scale_pairs(x, r.read<double>(r.tensor("x1Level1Scale")), rows, inner, 1);
    scale_pairs(w, turned_pairs(r, "x2Level1Scale", true), inner, n, 0);
    scale_squares(x, r.read<double>(r.tensor("x1Level0Scale")), rows, inner, 1, kOuterBlock);
    scale_squares(w, r.read<double>(r.tensor("x2Level0Scale")), inner, n, kOuterBlock, 1);
    Values bias(size_t(n), 0), out;
    if (r.has("optionalBias")) bias = r.read<double>(r.tensor("optionalBias"));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = bias[size_t(j)];
            for (int64_t k = 0; k < inner; ++k) sum += x[size_t(i * inner + k)] * w[size_t(k * n + j)];
            out.push_back(sum);
        }
    r.write(r.tensor("out"), out);
}

// -- act((x1 * scale1) @ (x2 * scale2) + bias), in blocks of 32 with scales of their own ---------------------------------------------
// The facts do not name the activations; these are the names that fused products of the same library have.
double activated(double x, const std::string& kind) {
    if (kind == "relu") return x > 0 || std::isnan(x) ? x : 0;
    if (kind == "silu" || kind == "swish") return silu(x);
    if (kind == "gelu_tanh") return gelu_tanh(x);
    return kind == "gelu" || kind == "gelu_erf" ? gelu(x) : x;
}

void plan_activated(Plan& p) {
    static const char* const kinds[] = {"", "none", "relu", "silu", "swish", "gelu", "gelu_erf", "gelu_tanh"};
    const std::string &kind = p.string("activationType"), &mode = p.string("quantMode");
    p.require(std::any_of(std::begin(kinds), std::end(kinds), [&](const char* k) { return kind == k; }), "activationType is \"%s\"; the emulator computes relu, silu, gelu_erf, gelu_tanh",
              kind.c_str());
    p.require(mode.empty() || mode == "mx", "quantMode is \"%s\", expected mx", mode.c_str());
    if (p.has("roundMode")) p.require(p.string("roundMode").empty() || p.string("roundMode") == "rint", "roundMode is \"%s\", expected rint", p.string("roundMode").c_str());
    plan_number(p, "scaleAlg", 1);
    p.require(p.real("dstTypeMax") == 0, "dstTypeMax: the emulator computes 0");
    p.require(p.tensor("x1").rank() == 2 && p.tensor("x2").rank() == 2, "x1 has shape %s, x2 %s, expected matrices", text(p.tensor("x1").dims).c_str(), text(p.tensor("x2").dims).c_str());
    Tensor a = turned(p.tensor("x1"), p.flag("transposeX1")), b = turned(p.tensor("x2"), p.flag("transposeX2"));
    p.require(a.dims[1] == b.dims[0], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    int64_t size = p.integer("groupSize");
    p.require(size == 0 || (size & 0xFFFF) == kBlock, "groupSize is %lld, pairs belong to groups of 32", wide(size));
    p.require(p.has("x1ScaleOptional") && in_pairs(p.tensor("x1ScaleOptional")) && in_pairs(p.tensor("x2Scale")), "x1ScaleOptional and x2Scale must be in pairs");
    plan_pairs(p, "x1ScaleOptional", p.tensor("x1").dims, p.flag("transposeX1") ? 0 : 1, 1);
    plan_pairs(p, "x2Scale", p.tensor("x2").dims, p.flag("transposeX2") ? 1 : 0, 1);
    if (p.has("biasOptional")) p.require(p.tensor("biasOptional").numel() == b.dims[1], "biasOptional has shape %s", text(p.tensor("biasOptional").dims).c_str());
    Dims y{a.dims[0], b.dims[1]};
    p.shape("yOut", y);
    p.shape("yScaleOut", scale_dims(y, 1));
}

void run_activated(Run& r) {
    Tensor a = turned(r.tensor("x1"), r.flag("transposeX1")), b = turned(r.tensor("x2"), r.flag("transposeX2"));
    auto x = r.read<double>(a), w = r.read<double>(b);
    int64_t rows = a.dims[0], inner = a.dims[1], n = b.dims[1];
    scale_pairs(x, turned_pairs(r, "x1ScaleOptional", r.flag("transposeX1")), rows, inner, 1);
    scale_pairs(w, turned_pairs(r, "x2Scale", r.flag("transposeX2")), inner, n, 0);
    Values bias(size_t(n), 0), y;
    if (r.has("biasOptional")) bias = r.read<double>(r.tensor("biasOptional"));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = bias[size_t(j)];
            for (int64_t k = 0; k < inner; ++k) sum += x[size_t(i * inner + k)] * w[size_t(k * n + j)];
            y.push_back(activated(sum, r.string("activationType")));
        }
    int dtype = r.tensor("yOut").dtype;
    RowBlocks blocks{n, kBlock, parts_of(n, kPair) * 2, dtype, narrow_largest(dtype), true, false, r.integer("scaleAlg")};
    auto scales = blocks.divide(y);
    r.write(r.tensor("yOut"), y);
    r.write(r.tensor("yScaleOut"), scales);
}

// -- x1 @ ((x2 + offset) * scale) + bias, weights of INT8 ------------------------------------------------------------------------
// Offset and scale are tensors with a number for each column or one for all, or the two numbers. diagonalMatrix, deqOffset and
// deqScale are what the matrix unit needs to do this itself; they do not change the result.
void plan_weights(Plan& p) {
    Tensor a = turned(p.tensor("x1"), p.flag("transposeX1")), b = turned(p.tensor("x2"), p.flag("transposeX2"));
    p.require(a.dims[1] == b.dims[0], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    p.shape("out", {a.dims[0], b.dims[1]});
    for (const char* name : {"addOffset", "mulScale", "bias"}) {
        if (!p.has(name)) continue;
        int64_t n = p.tensor(name).numel();
        p.require(n == b.dims[1] || n == 1, "%s has shape %s, expected %lld elements or one", name, text(p.tensor(name).dims).c_str(), wide(b.dims[1]));
    }
}

void run_weights(Run& r) {
    Tensor a = turned(r.tensor("x1"), r.flag("transposeX1")), b = turned(r.tensor("x2"), r.flag("transposeX2"));
    auto x = r.read<double>(a), w = r.read<double>(b);
    int64_t rows = a.dims[0], inner = a.dims[1], n = b.dims[1];
    auto part = [&](const char* name, double otherwise) {
        Values v = r.has(name) ? r.read<double>(r.tensor(name)) : Values{otherwise};
        return v.size() == 1 ? Values(size_t(n), v[0]) : v;
    };
    Values offset = part("addOffset", r.real("antiquantOffset")), scale = part("mulScale", r.real("antiquantScale")), bias = part("bias", 0), out;
    for (size_t i = 0; i < w.size(); ++i) w[i] = (w[i] + offset[i % size_t(n)]) * scale[i % size_t(n)];
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = bias[size_t(j)];
            for (int64_t k = 0; k < inner; ++k) sum += x[size_t(i * inner + k)] * w[size_t(k * n + j)];
            out.push_back(sum);
        }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnDualLevelQuantMatmulWeightNz, plan_two_levels, run_two_levels, NARROW)
ACLNN(aclnnWeightQuantBatchMatmul, plan_weights, run_weights)
ACLNN(aclnnQuantBatchMatmulInplaceAdd, plan_added, run_added, NARROW)
ACLNN(aclnnQuantGroupedMatmulInplaceAdd, plan_grouped, run_grouped, NARROW)
ACLNN(aclnnTransposeQuantBatchMatMul, plan_permuted, run_permuted, NARROW)
ACLNN(aclnnTransposeQuantBatchMatMulWeightNz, plan_permuted, run_permuted, NARROW)
ACLNN(aclnnQuantMatmulActivationQuantWeightNz, plan_activated, run_activated, NARROW)
