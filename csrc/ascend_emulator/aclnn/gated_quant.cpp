// Gated rows with bounds, groups and weights, and gated rows that become small integers.
//
// The facts give shapes and dtypes only. What is computed: silu(a) * b of the two halves a, b of the last axis, as SwiGlu;
// a bound keeps a <= limit and b within [-limit, limit]; a weight multiplies a row's result; rows beyond the groups stay
// as they are. Results of quantization are INT8; those of SwigluGroupQuant are small floats in blocks, whose scales are powers
// of two for each 32 (FLOAT8_E8M0) or, for each blockSize (128 where it is 0), the largest number over the type's largest. The
// facts do not say which quantMode stands for which of these: the dtype of the scales does.
#include "gating.h"
#include "microscaled.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

Dims halved(const Plan& p, const char* name) {
    Dims d = p.tensor(name).dims;
    p.require(d.n >= 1 && d.back() % 2 == 0, "%s has shape %s; its last dimension must be even", name, text(d).c_str());
    d[d.n - 1] /= 2;
    return d;
}

int64_t rows_of(const Dims& d) { return d.back() ? d.product() / d.back() : 0; }

// How many rows the groups count together; all without groups.
int64_t counted_rows(const Run& r, int64_t rows) {
    if (!r.has("groupIndexOptional")) return rows;
    int64_t counted = 0;
    for (int64_t n : r.read<int64_t>(r.tensor("groupIndexOptional"))) counted += n;
    return std::clamp<int64_t>(counted, 0, rows);
}

// -- groups of rows with weights -------------------------------------------------------------------------------------
void plan_weighted(const Plan& p, const char* x) {
    if (!p.has("weightOptional")) return;
    int64_t rows = rows_of(p.tensor(x).dims), got = p.tensor("weightOptional").numel();
    p.require(got == rows, "weightOptional has %lld elements, expected one for each of %lld rows",
              static_cast<long long>(got), static_cast<long long>(rows));
}

// The rows that groups count.
Values group_rows(const Run& r) {
    const Dims& d = r.tensor("x").dims;
    int64_t half = d.back() / 2, rows = rows_of(d), used = counted_rows(r, rows);
    auto x = r.read<double>(r.tensor("x"));
    Values weight(size_t(rows), 1), y;
    if (r.has("weightOptional")) weight = r.read<double>(r.tensor("weightOptional"));
    Bounds bounds{r.real("clampLimit")};
    for (int64_t i = 0; i < used; ++i)
        for (int64_t k = 0; k < half; ++k)
            y.push_back(silu(bounds.gate(x[size_t(2 * i * half + k)])) *
                        bounds.linear(x[size_t((2 * i + 1) * half + k)]) * weight[size_t(i)]);
    return y;
}

// What is behind these values stays as it is.
void write_first(const Run& r, const char* name, const Values& first) {
    auto all = r.read<double>(r.tensor(name));
    std::copy(first.begin(), first.end(), all.begin());
    r.write(r.tensor(name), all);
}

void run_group(Run& r) { write_first(r, "out", group_rows(r)); }

// -- and small floats in blocks --------------------------------------------------------------------------------------
RowBlocks group_blocks(const Call& c) {
    int64_t half = c.tensor("x").dims.back() / 2, block = c.integer("blockSize");
    bool exponents = c.tensor("yScaleOut").dtype == ACL_FLOAT8_E8M0;
    if (block == 0) block = exponents ? kBlock : 128;
    int64_t blocks = block > 0 ? (half + block - 1) / block : 0;
    if (exponents && c.tensor("yScaleOut").rank() == c.tensor("x").rank() + 1) blocks += blocks % 2;
    return {half, block, blocks, c.tensor("yOut").dtype, block_top(c), exponents, c.flag("roundScale")};
}

void plan_group_quant(Plan& p) {
    Dims half = halved(p, "x"), scales = half;
    plan_weighted(p, "x");
    p.require(!p.has("scaleOptional"), "scaleOptional is not computed by the emulator: the documents state no formula for it");
    need_stated(p, "dstType", "yOut");
    p.shape("yOut", half);
    RowBlocks b = group_blocks(p);
    p.require(b.block > 0, "blockSize is %lld, expected a positive number, or 0 for the usual one", static_cast<long long>(p.integer("blockSize")));
    p.require(!b.exponents || b.block == kBlock, "blockSize is %lld, scales of FLOAT8_E8M0 belong to 32 numbers", static_cast<long long>(b.block));
    scales[half.n - 1] = b.places;
    p.shape("yScaleOut", p.tensor("yScaleOut").rank() == half.n + 1 && b.exponents ? scale_dims(half, half.n - 1) : scales);
    if (p.flag("outputOrigin")) p.shape("yOriginOut", half), p.same_dtype("x", "yOriginOut");
}

void run_group_quant(Run& r) {
    Values y = group_rows(r);
    if (r.flag("outputOrigin")) write_first(r, "yOriginOut", y);
    Values scales = group_blocks(r).divide(y);
    write_first(r, "yOut", y);
    write_first(r, "yScaleOut", scales);
}

void plan_group_grad(Plan& p) {
    Dims half = halved(p, "x");
    p.shape("gradY", half);
    p.same_shape("x", "gradXOut");
    plan_weighted(p, "x");
    if (p.has("yOriginOptional")) p.shape("yOriginOptional", half);
    if (p.has("gradWeightOutOptional")) {
        p.require(p.has("weightOptional"), "gradWeightOutOptional needs weightOptional");
        p.same_shape("weightOptional", "gradWeightOutOptional");
    }
}

void run_group_grad(Run& r) {
    const Dims& d = r.tensor("x").dims;
    int64_t half = d.back() / 2, rows = rows_of(d), used = counted_rows(r, rows);
    auto x = r.read<double>(r.tensor("x")), g = r.read<double>(r.tensor("gradY"));
    auto dx = r.read<double>(r.tensor("gradXOut"));
    bool weighted = r.has("weightOptional"), wanted = r.has("gradWeightOutOptional");
    Values weight(size_t(rows), 1), dw(size_t(rows), 0);
    if (weighted) weight = r.read<double>(r.tensor("weightOptional"));
    if (wanted) dw = r.read<double>(r.tensor("gradWeightOutOptional"));
    Bounds bounds{r.real("clampLimit")};
    for (int64_t i = 0; i < used; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < half; ++k) {
            size_t at = size_t(2 * i * half + k), other = at + size_t(half);
            double a = bounds.gate(x[at]), b = bounds.linear(x[other]), slope = g[size_t(i * half + k)];
            sum += slope * silu(a) * b;
            slope *= weight[size_t(i)];
            dx[at] = slope * b * silu_slope(a) * bounds.gate_slope(x[at]);
            dx[other] = slope * silu(a) * bounds.linear_slope(x[other]);
        }
        dw[size_t(i)] = sum;
    }
    r.write(r.tensor("gradXOut"), dx);
    if (wanted) r.write(r.tensor("gradWeightOutOptional"), dw);
}

// -- bounds, a slope and a bias --------------------------------------------------------------------------------------
struct Places {
    Lines whole;
    bool interleaved;
    int64_t half() const { return whole.length / 2; }
    size_t gate(int64_t o, int64_t j, int64_t i) const { return size_t(whole.at(o, interleaved ? 2 * j : j, i)); }
    size_t linear(int64_t o, int64_t j, int64_t i) const {
        return size_t(whole.at(o, interleaved ? 2 * j + 1 : j + half(), i));
    }
    size_t out(int64_t o, int64_t j, int64_t i) const { return size_t((o * half() + j) * whole.inner + i); }
};

Places places(const Run& r) {
    const Dims& d = r.tensor("x").dims;
    return {Lines(d, wrap(r.integer("dim"), d.n)), r.flag("interleaved")};
}

Dims plan_clipped(const Plan& p) {
    const Tensor& x = p.tensor("x");
    int64_t axis = p.axis("dim", x.rank());
    p.require(x.rank() > 0 && x.dims[int(axis)] % 2 == 0, "x has shape %s, expected an even size at axis %lld",
              text(x.dims).c_str(), static_cast<long long>(axis));
    p.require(p.real("limit") > 0, "limit is %g, expected > 0", p.real("limit"));
    Dims d = x.dims;
    d[int(axis)] /= 2;
    return d;
}

void run_clipped(Run& r) {
    Places at = places(r);
    auto x = r.read<double>(r.tensor("x")), y = r.read<double>(r.tensor("out"));
    Bounds bounds{r.real("limit")};
    double alpha = r.real("alpha"), bias = r.real("bias");
    int64_t used = counted_rows(r, at.whole.outer);
    for (int64_t o = 0; o < used; ++o)
        for (int64_t j = 0; j < at.half(); ++j)
            for (int64_t i = 0; i < at.whole.inner; ++i) {
                double a = bounds.gate(x[at.gate(o, j, i)]), b = bounds.linear(x[at.linear(o, j, i)]);
                y[at.out(o, j, i)] = a * sigmoid(alpha * a) * (b + bias);
            }
    r.write(r.tensor("out"), y);
}

void run_clipped_grad(Run& r) {
    Places at = places(r);
    auto x = r.read<double>(r.tensor("x")), g = r.read<double>(r.tensor("gradY"));
    auto dx = r.read<double>(r.tensor("gradXOut"));
    Bounds bounds{r.real("limit")};
    double alpha = r.real("alpha"), bias = r.real("bias");
    int64_t used = counted_rows(r, at.whole.outer);
    for (int64_t o = 0; o < used; ++o)
        for (int64_t j = 0; j < at.half(); ++j)
            for (int64_t i = 0; i < at.whole.inner; ++i) {
                double raw_a = x[at.gate(o, j, i)], raw_b = x[at.linear(o, j, i)], slope = g[at.out(o, j, i)];
                double a = bounds.gate(raw_a), b = bounds.linear(raw_b), s = sigmoid(alpha * a);
                dx[at.gate(o, j, i)] = slope * (b + bias) * (s + alpha * a * s * (1 - s)) * bounds.gate_slope(raw_a);
                dx[at.linear(o, j, i)] = slope * a * s * bounds.linear_slope(raw_b);
            }
    r.write(r.tensor("gradXOut"), dx);
}

// -- to small integers -----------------------------------------------------------------------------------------------
bool is_dynamic(const Plan& p) {
    const std::string mode = p.has("quantModeOptional") && !p.string("quantModeOptional").empty() ? p.string("quantModeOptional") : "static";
    p.require(mode == "dynamic" || mode == "static", "quantModeOptional is \"%s\", expected dynamic or static",
              mode.c_str());
    return mode == "dynamic";
}
bool is_dynamic(const Run& r) { return r.has("quantModeOptional") && r.string("quantModeOptional") == "dynamic"; }

// Ends of groups from ends (0) or counts (1).
std::vector<int64_t> ends_of(const Run& r, int64_t rows, int64_t type) {
    if (!r.has("groupIndexOptional")) return {rows};
    auto ends = r.read<int64_t>(r.tensor("groupIndexOptional"));
    if (type == 1)
        for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    return ends;
}

// A row of factors for each group, one for all, or one number for each group.
double factor(const Values& all, int64_t group, size_t column, int64_t length) {
    if (all.size() == 1) return all[0];
    if (int64_t(all.size()) <= group) return 1;
    if (int64_t(all.size()) % length != 0) return all[size_t(group)];
    return all[size_t(int64_t(all.size()) == length ? 0 : group * length) + column];
}

void write_quantized(const Run& r, Values y, int64_t half, const char* scale, const char* offset, int64_t group_type) {
    int64_t rows = int64_t(y.size()) / std::max<int64_t>(half, 1);
    auto groups = groups_of(ends_of(r, rows, group_type), rows);
    Values factors{1}, shifts{0};
    if (r.has(scale)) factors = r.read<double>(r.tensor(scale));
    if (r.has(offset)) shifts = r.read<double>(r.tensor(offset));
    bool dynamic = is_dynamic(r);
    for (size_t i = 0; i < y.size(); ++i) {
        int64_t group = groups[i / size_t(half)];
        if (group < 0) {
            y[i] = 0;
            continue;
        }
        y[i] *= factor(factors, group, i % size_t(half), half);
        if (!dynamic) y[i] += shifts.size() == 1 ? shifts[0] : factor(shifts, group, i % size_t(half), half);
    }
    if (dynamic) write_dynamic(r, y, half, "yOut", "scaleOut");
    else r.write(r.tensor("yOut"), within(y, r.tensor("yOut").dtype));
}

int64_t group_count(const Call& c) { return c.has("groupIndexOptional") ? c.tensor("groupIndexOptional").numel() : 1; }

void plan_quant(const Plan& p, const char* scale, const char* offset) {
    Dims half = halved(p, "x");
    need_bytes(p, "yOut");
    p.shape("yOut", half);
    bool dynamic = is_dynamic(p);
    p.require(dynamic || p.has(scale), "static quantization needs %s", scale);
    if (dynamic) p.shape("scaleOut", without_last(half));
    for (const char* name : {scale, offset}) {
        if (!p.has(name)) continue;
        int64_t n = p.tensor(name).numel(), groups = group_count(p), length = half.back();
        p.require(n == 1 || n == groups || n == length || n == groups * length, "%s has shape %s, which does not fit", name,
                  text(p.tensor(name).dims).c_str());
    }
}

// The first version has ends of groups and INT8 only.
int64_t group_type(const Call& c) { return has_parameter(c, "groupListType") ? c.integer("groupListType") : 0; }

void plan_swiglu(Plan& p) {
    plan_quant(p, "smoothScalesOptional", "offsetsOptional");
    int64_t type = group_type(p);
    p.require(type == 0 || type == 1, "groupListType is %lld, expected 0 or 1", static_cast<long long>(type));
    if (has_parameter(p, "dstType")) need_stated(p, "dstType", "yOut");
    p.require(!p.has("offsetsOptional") || p.has("smoothScalesOptional"), "offsetsOptional needs smoothScalesOptional");
}

void run_swiglu(Run& r) {
    int64_t half = r.tensor("x").dims.back() / 2;
    write_quantized(r, gated(r.read<double>(r.tensor("x")), half, r.flag("activateLeft")), half, "smoothScalesOptional",
                    "offsetsOptional", group_type(r));
}

// INT32 stands for x * weightScale * activationScale (+ bias, before the scales where it is INT32 too).
template <bool again>
void plan_dequant(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    plan_quant(p, "quantScaleOptional", "quantOffsetOptional");
    bool whole = p.tensor("x").dtype == ACL_INT32;
    p.require(whole == p.has("weightScaleOptional"), whole ? "INT32 needs weightScaleOptional"
                                                           : "weightScaleOptional belongs to INT32");
    if (whole) {
        int64_t n = p.tensor("weightScaleOptional").numel();
        p.require(n == d.back() || n == group_count(p) * d.back(), "weightScaleOptional has shape %s, x %s",
                  text(p.tensor("weightScaleOptional").dims).c_str(), text(d).c_str());
    }
    if (p.has("activationScaleOptional"))
        p.require(p.tensor("activationScaleOptional").numel() == rows_of(d), "activationScaleOptional has shape %s, x %s",
                  text(p.tensor("activationScaleOptional").dims).c_str(), text(d).c_str());
    if (p.has("biasOptional")) {
        int64_t n = p.tensor("biasOptional").numel();
        p.require(n == d.back() || n == group_count(p) * d.back(), "biasOptional has shape %s", text(p.tensor("biasOptional").dims).c_str());
    }
    if constexpr (again) {
        need_stated(p, "dstType", "yOut");
        const std::string round = p.has("roundModeOptional") ? p.string("roundModeOptional") : "";
        p.require(round.empty() || round == "rint", "roundModeOptional is \"%s\"; the emulator computes rint", round.c_str());
        plan_gate_mode(p, d.n);
    }
}

void run_dequant(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto x = r.read<double>(r.tensor("x"));
    size_t length = size_t(d.back());
    int64_t rows = rows_of(d);
    auto groups = groups_of(ends_of(r, rows, 1), rows);
    Values weight{1}, active(size_t(rows), 1), bias{0};
    if (r.has("weightScaleOptional")) weight = r.read<double>(r.tensor("weightScaleOptional"));
    if (r.has("activationScaleOptional")) active = r.read<double>(r.tensor("activationScaleOptional"));
    if (r.has("biasOptional")) bias = r.read<double>(r.tensor("biasOptional"));
    bool early = r.has("biasOptional") && r.tensor("biasOptional").dtype == ACL_INT32;
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t group = std::max<int64_t>(groups[i / length], 0);
        double by = factor(weight, group, i % length, int64_t(length)) * active[i / length];
        double add = factor(bias, group, i % length, int64_t(length));
        if (!r.has("biasOptional")) add = 0;
        x[i] = early ? (x[i] + add) * by : x[i] * by + add;
    }
    write_quantized(r, gated_by_mode(r, x, int64_t(length / 2)), int64_t(length / 2), "quantScaleOptional",
                    "quantOffsetOptional", 1);
}

void plan_gelu(Plan& p) {
    const Dims& d = p.tensor("self").dims;
    const std::string &how = p.string("approximate"), &mode = p.string("quantMode"), &round = p.string("roundMode");
    need_bytes(p, "y");
    p.same_shape("self", "y");
    p.require(how == "none" || how == "tanh", "approximate is \"%s\", expected none or tanh", how.c_str());
    p.require(mode == "static" || mode == "dynamic", "quantMode is \"%s\", expected static or dynamic", mode.c_str());
    p.require(round == "rint", "roundMode is \"%s\"; the emulator computes rint", round.c_str());
    need_stated(p, "dstType", "y");
    p.require(mode == "dynamic" || p.has("inputScaleOptional"), "static quantization needs inputScaleOptional");
    for (const char* name : {"inputScaleOptional", "inputOffsetOptional"}) {
        if (!p.has(name)) continue;
        int64_t n = p.tensor(name).numel();
        p.require(n == 1 || n == d.back(), "%s has shape %s, expected 1 or %lld elements", name,
                  text(p.tensor(name).dims).c_str(), static_cast<long long>(d.back()));
    }
    if (mode == "dynamic") p.shape("outScaleOptional", without_last(d));
}

void run_gelu(Run& r) {
    auto x = r.read<double>(r.tensor("self"));
    size_t length = size_t(r.tensor("self").dims.back());
    bool dynamic = r.string("quantMode") == "dynamic", tanh = r.string("approximate") == "tanh";
    Values scale{1}, offset{0};
    if (r.has("inputScaleOptional")) scale = r.read<double>(r.tensor("inputScaleOptional"));
    if (r.has("inputOffsetOptional")) offset = r.read<double>(r.tensor("inputOffsetOptional"));
    for (size_t i = 0; i < x.size(); ++i) {
        x[i] = (tanh ? gelu_tanh(x[i]) : gelu(x[i])) * scale[scale.size() == 1 ? 0 : i % length];
        if (!dynamic) x[i] += offset[offset.size() == 1 ? 0 : i % length];
    }
    if (dynamic) write_dynamic(r, x, int64_t(length), "y", "outScaleOptional");
    else r.write(r.tensor("y"), within(x, r.tensor("y").dtype));
}

}  // namespace

ACLNN(aclnnSwigluGroup, PLAN { p.shape("out", halved(p, "x")); plan_weighted(p, "x"); }, run_group)
ACLNN(aclnnSwigluGroupGrad, plan_group_grad, run_group_grad)
ACLNN(aclnnSwigluGroupQuantGrad, plan_group_grad, run_group_grad)
ACLNN(aclnnSwigluGroupQuant, plan_group_quant, run_group_quant, NARROW)
ACLNN(aclnnClippedSwigluV2,
      PLAN {
          int64_t mode = p.integer("clampMode");
          p.require(mode == 0, "clampMode is %lld; the emulator computes 0", static_cast<long long>(mode));
          p.shape("out", plan_clipped(p));
      },
      run_clipped)
ACLNN(aclnnClippedSwigluGrad, PLAN { p.shape("gradY", plan_clipped(p)); p.same_shape("x", "gradXOut"); }, run_clipped_grad)
ACLNN(aclnnSwigluClamp, PLAN { p.shape("y", halved(p, "x")); p.same_dtype("x", "y"); }, RUN {
    int64_t half = r.tensor("x").dims.back() / 2;
    r.write(r.tensor("y"), gated(r.read<double>(r.tensor("x")), half, true, r.real("limit")));
})
ACLNN(aclnnSwiGluQuant, plan_swiglu, run_swiglu)
ACLNN(aclnnSwiGluQuantV2, plan_swiglu, run_swiglu, NARROW)
ACLNN(aclnnDequantSwigluQuant, plan_dequant<false>, run_dequant, NARROW)
ACLNN(aclnnDequantSwigluQuantV2, plan_dequant<true>, run_dequant, NARROW)
ACLNN(aclnnGeluQuant, plan_gelu, run_gelu, NARROW)
