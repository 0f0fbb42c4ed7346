// Normalized rows that become small integers, and gradients of normalizations by other names.
//
// The facts give shapes and dtypes only. Formulas here are those of the plain functions, followed by the quantization of
// AscendQuant (x * scale + offset, or x / scale + offset where divMode is set) or of DynamicQuant (a scale for each row).
// Results are INT8; packed 4-bit and 8-bit float results are refused.
#include "activation.h"
#include "norm.h"
#include "optional.h"
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

void need_count(const Plan& p, const char* name, int64_t count) {
    if (!p.has(name)) return;
    p.require(p.tensor(name).numel() == count, "%s has shape %s, expected %lld elements", name,
              text(p.tensor(name).dims).c_str(), static_cast<long long>(count));
}

Values read_or(const Run& r, const char* name, int64_t count, double missing) {
    return r.has(name) ? r.read<double>(r.tensor(name)) : Values(size_t(count), missing);
}

// A value for each column, or one for all.
double pick(const Values& x, size_t column) { return x[x.size() == 1 ? 0 : column]; }

void affine(Values& x, const Values& gamma, const Values& beta) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * gamma[i % gamma.size()] + beta[i % beta.size()];
}

Values layer_norm(Values x, const Values& gamma, const Values& beta, double eps) {
    Moments m = moments(x, gamma.empty() ? 0 : int64_t(x.size() / gamma.size()), eps);
    normalize(x, m.mean, m.rstd);
    affine(x, gamma, beta);
    return x;
}

// x / rms(x) * gamma + beta; the inverse of each row's root goes into `rstd`.
Values rms_norm(Values x, const Values& gamma, const Values& beta, double eps, Values* rstd = nullptr) {
    size_t length = gamma.size();
    for (size_t row = 0; row < x.size(); row += length) {
        double squares = 0;
        for (size_t k = 0; k < length; ++k) squares += x[row + k] * x[row + k];
        double inverse = inverse_root(squares / double(length), eps);
        if (rstd) rstd->push_back(inverse);
        for (size_t k = 0; k < length; ++k) x[row + k] = x[row + k] * inverse * gamma[k] + beta[k];
    }
    return x;
}

Values read_sum(const Run& r, double first = 1) {
    auto x = r.read<double>(r.tensor("x1")), y = r.read<double>(r.tensor("x2"));
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * first + y[i];
    return x;
}

// -- LayerNormQuant: quantMode 0 with given scales, 1 with found ones -------------------------------------------------
void plan_layer(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    int64_t length = d.back(), mode = p.integer("quantMode");
    p.require(mode == 0 || mode == 1, "quantMode is %lld, expected 0 (static) or 1 (dynamic)",
              static_cast<long long>(mode));
    for (const char* name : {"gammma", "beta"}) need_count(p, name, length);
    p.same_shape("x", "res");
    if (p.has("zeroPointsOptional")) p.same_shape("scale", "zeroPointsOptional");
    int64_t scales = p.tensor("scale").numel();
    p.require(mode == 1 || scales == 1 || scales == length, "scale has %lld elements, expected 1 or %lld",
              static_cast<long long>(scales), static_cast<long long>(length));
    if (mode == 1) p.shape("scaleOut", without_last(d));
}

void run_layer(Run& r) {
    int64_t length = r.tensor("x").dims.back();
    auto x = layer_norm(r.read<double>(r.tensor("x")), read_or(r, "gammma", length, 1), read_or(r, "beta", length, 0),
                        r.real("epsilon"));
    if (r.integer("quantMode") == 1) return write_dynamic(r, x, length, "res", "scaleOut");
    auto scale = r.read<double>(r.tensor("scale")), zero = read_or(r, "zeroPointsOptional", 1, 0);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = x[i] * pick(scale, i % size_t(length)) + pick(zero, i % size_t(length));
    r.write(r.tensor("res"), within(x, r.tensor("res").dtype));
}

// -- AddLayerNormQuant: one or two results, each with scales of its own -----------------------------------------------
constexpr const char* kScales[] = {"scales1Optional", "scales2Optional"};
constexpr const char* kZeros[] = {"zeroPoints1Optional", "zeroPoints2Optional"};
constexpr const char* kResults[] = {"y1Out", "y2Out"};
constexpr const char* kFound[] = {"outScales1Out", "outScales2Out"};

void plan_add_layer(Plan& p) {
    const Dims& d = p.tensor("x1").dims;
    const std::string& mode = p.string("quantMode");
    bool dynamic = mode == "dynamic";
    p.require(dynamic || mode == "static", "quantMode is \"%s\", expected dynamic or static", mode.c_str());
    p.same_shape("x1", "x2");
    p.same_shape("gamma", "beta");
    need_count(p, "gamma", d.back());
    if (p.has("biasOptional")) {
        const Dims& b = p.tensor("biasOptional").dims;
        p.require(b == d || b.product() == d.back(), "biasOptional has shape %s, x1 %s", text(b).c_str(),
                  text(d).c_str());
    }
    p.same_shape("x1", "y1Out");
    if (p.flag("additionalOutput")) p.same_shape("x1", "xOut");
    if (given(p, "layernormRes")) p.same_shape("x1", "layernormRes");
    p.require(dynamic || p.has(kScales[0]), "static quantization needs scales1Optional");
    for (int which = 0; which < 2; ++which) {
        need_count(p, kScales[which], d.back());
        need_count(p, kZeros[which], d.back());
        if (which == 1 && !p.has(kScales[1])) continue;
        p.same_shape("x1", kResults[which]);
        if (dynamic) p.shape(kFound[which], without_last(d));
    }
}

void run_add_layer(Run& r) {
    int64_t length = r.tensor("x1").dims.back();
    auto x = read_sum(r);
    if (r.has("biasOptional")) {
        auto bias = r.read<double>(r.tensor("biasOptional"));
        for (size_t i = 0; i < x.size(); ++i) x[i] += bias[i % bias.size()];
    }
    if (r.flag("additionalOutput")) r.write(r.tensor("xOut"), x);
    x = layer_norm(x, r.read<double>(r.tensor("gamma")), r.read<double>(r.tensor("beta")), r.real("epsilon"));
    if (given(r, "layernormRes")) r.write(r.tensor("layernormRes"), x);
    bool dynamic = r.string("quantMode") == "dynamic";
    for (int which = 0; which < 2; ++which) {
        if (which == 1 && !r.has(kScales[1])) continue;
        Values y = x;
        if (dynamic) {
            smooth(r, y, length, kScales[which], nullptr);
            write_dynamic(r, y, length, kResults[which], kFound[which]);
            continue;
        }
        auto scale = r.read<double>(r.tensor(kScales[which])), zero = read_or(r, kZeros[which], length, 0);
        for (size_t i = 0; i < y.size(); ++i) {
            double s = scale[i % scale.size()];
            y[i] = (r.flag("divMode") ? y[i] / s : y[i] * s) + zero[i % zero.size()];
        }
        r.write(r.tensor(kResults[which]), within(y, r.tensor(kResults[which]).dtype));
    }
}

// -- AdaLayerNorm: a scale and a shift for each sample ---------------------------------------------------------------
// (samples, rows of a sample, length): scale and shift have a row for each sample, for each row, or one for all.
struct Samples {
    int64_t samples, rows, length;
};

Samples samples_of(const Dims& d) {
    Samples s{d.n > 2 ? d[0] : 1, 1, d.back()};
    s.rows = s.samples && s.length ? d.product() / (s.samples * s.length) : 0;
    return s;
}

// Which row of a tensor of `count` elements belongs to a row of x.
int64_t owner(const Samples& s, int64_t row, int64_t count) {
    if (count == s.length) return 0;
    return count == s.samples * s.length ? row / s.rows : row;
}

void plan_ada_part(const Plan& p, const char* name, const Samples& s) {
    int64_t count = p.tensor(name).numel();
    p.require(count == s.length || count == s.samples * s.length || count == s.samples * s.rows * s.length,
              "%s has shape %s, which does not fit", name, text(p.tensor(name).dims).c_str());
}

void plan_ada_quant(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    need_bytes(p, "out");
    p.same_shape("x", "out");
    for (const char* name : {"scale", "shift"}) plan_ada_part(p, name, samples_of(d));
    for (const char* name : {"weightOptional", "biasOptional", "smoothScalesOptional"}) need_count(p, name, d.back());
    p.require(p.string("quantMode") == "dynamic", "quantMode is \"%s\"; expected dynamic", p.string("quantMode").c_str());
    p.shape("quantScale", without_last(d));
    p.require(!p.has("quantOffsetOptional"), "quantOffsetOptional is reserved and must be null");
}

void run_ada_quant(Run& r) {
    Samples s = samples_of(r.tensor("x").dims);
    auto x = layer_norm(r.read<double>(r.tensor("x")), read_or(r, "weightOptional", s.length, 1),
                        read_or(r, "biasOptional", s.length, 0), r.real("epsilon"));
    auto scale = r.read<double>(r.tensor("scale")), shift = r.read<double>(r.tensor("shift"));
    for (int64_t i = 0; i < int64_t(x.size()); ++i) {
        int64_t row = i / s.length, k = i % s.length;
        x[size_t(i)] = x[size_t(i)] * (1 + scale[size_t(owner(s, row, int64_t(scale.size())) * s.length + k)]) +
                       shift[size_t(owner(s, row, int64_t(shift.size())) * s.length + k)];
    }
    smooth(r, x, s.length, "smoothScalesOptional", nullptr);
    write_dynamic(r, x, s.length, "out", "quantScale");
}

void plan_ada_grad(Plan& p) {
    const Dims& d = p.tensor("input").dims;
    const auto& shape = p.ints("normalizedShape");
    p.require(shape.size() == 1 && shape[0] == d.back(), "normalizedShape must be the last size, %lld",
              static_cast<long long>(d.back()));
    p.same_shape("input", "gradOut");
    p.same_shape("rstd", "mean");
    need_count(p, "rstd", d.product() / std::max<int64_t>(d.back(), 1));
    for (const char* name : {"scale", "shift"}) plan_ada_part(p, name, samples_of(d));
    for (const char* name : {"weightOptional", "biasOptional", "gradWeightOut", "gradBiasOut"})
        need_count(p, name, d.back());
    if (p.has("gradInputOut")) p.same_shape("input", "gradInputOut");
    if (p.has("gradScaleOut")) p.same_shape("scale", "gradScaleOut");
    if (p.has("gradShiftOut")) p.same_shape("shift", "gradShiftOut");
}

void run_ada_grad(Run& r) {
    Samples s = samples_of(r.tensor("input").dims);
    auto x = r.read<double>(r.tensor("input")), g = r.read<double>(r.tensor("gradOut"));
    auto mean = r.read<double>(r.tensor("mean")), rstd = r.read<double>(r.tensor("rstd"));
    auto scale = r.read<double>(r.tensor("scale"));
    int64_t shifts = r.tensor("shift").numel();
    auto w = read_or(r, "weightOptional", s.length, 1), b = read_or(r, "biasOptional", s.length, 0);
    normalize(x, mean, rstd);
    Values dscale(scale.size()), dshift(static_cast<size_t>(shifts)), dw(w.size()), db(w.size());
    for (int64_t i = 0; i < int64_t(x.size()); ++i) {
        int64_t row = i / s.length, k = i % s.length;
        size_t at = size_t(owner(s, row, int64_t(scale.size())) * s.length + k);
        dscale[at] += g[size_t(i)] * (x[size_t(i)] * w[size_t(k)] + b[size_t(k)]);
        dshift[size_t(owner(s, row, shifts) * s.length + k)] += g[size_t(i)];
        double inner = g[size_t(i)] * (1 + scale[at]);
        dw[size_t(k)] += inner * x[size_t(i)];
        db[size_t(k)] += inner;
        g[size_t(i)] = inner * w[size_t(k)];
    }
    if (r.has("gradInputOut")) r.write(r.tensor("gradInputOut"), normalize_backward(g, x, rstd));
    if (r.has("gradScaleOut")) r.write(r.tensor("gradScaleOut"), dscale);
    if (r.has("gradShiftOut")) r.write(r.tensor("gradShiftOut"), dshift);
    if (r.has("gradWeightOut")) r.write(r.tensor("gradWeightOut"), dw);
    if (r.has("gradBiasOut")) r.write(r.tensor("gradBiasOut"), db);
}

// -- RMS norms -------------------------------------------------------------------------------------------------------
void plan_add_dynamic(Plan& p) {
    const Dims& d = p.tensor("x1").dims;
    p.same_shape("x1", "x2");
    p.same_shape("x1", "xOut");
    for (const char* name : {"gamma", "smoothScale1Optional", "smoothScale2Optional", "betaOptional"})
        need_count(p, name, d.back());
    const auto& mask = p.ints("outputMask");
    p.require(mask.empty() || mask.size() == 2, "outputMask has %zu elements, expected 2", mask.size());
    bool first = mask.empty() || mask[0], second = mask.empty() ? p.has("smoothScale2Optional") : mask[1];
    p.require(first || second, "outputMask asks for nothing");
    for (auto [wanted, y, scale] : {std::tuple{first, "y1Out", "scale1Out"}, {second, "y2Out", "scale2Out"}}) {
        if (!wanted) continue;
        need_small(p, "x1", y);
        p.shape(scale, without_last(d));
    }
}

void run_add_dynamic(Run& r) {
    int64_t length = r.tensor("x1").dims.back();
    auto x = read_sum(r);
    r.write(r.tensor("xOut"), x);
    x = rms_norm(x, r.read<double>(r.tensor("gamma")), read_or(r, "betaOptional", length, 0), r.real("epsilon"));
    const auto& mask = r.ints("outputMask");
    if (mask.empty() || mask[0]) {
        auto y = x;
        smooth(r, y, length, "smoothScale1Optional", nullptr);
        write_dynamic(r, y, length, "y1Out", "scale1Out");
    }
    if (mask.empty() ? !r.has("smoothScale2Optional") : !mask[1]) return;
    smooth(r, x, length, "smoothScale2Optional", nullptr);
    write_dynamic(r, x, length, "y2Out", "scale2Out");
}

void plan_rms_quant(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    need_small(p, "x", "y");
    for (const char* name : {"gamma", "beta"}) need_count(p, name, d.back());
    int64_t scales = p.tensor("scale").numel();
    p.require(scales == 1 || scales == d.back(), "scale has %lld elements, expected 1 or %lld",
              static_cast<long long>(scales), static_cast<long long>(d.back()));
    if (p.has("offset")) p.same_shape("scale", "offset");
    if (p.flag("outputRstd")) need_count(p, "rstd", d.product() / std::max<int64_t>(d.back(), 1));
}

void run_rms_quant(Run& r) {
    int64_t length = r.tensor("x").dims.back();
    Values rstd, scale = r.read<double>(r.tensor("scale")), offset = read_or(r, "offset", 1, 0);
    auto x = rms_norm(r.read<double>(r.tensor("x")), r.read<double>(r.tensor("gamma")), read_or(r, "beta", length, 0),
                      r.real("epsilon"), &rstd);
    for (size_t i = 0; i < x.size(); ++i) {
        double s = pick(scale, i % size_t(length));
        x[i] = (r.flag("divMode") ? x[i] / s : x[i] * s) + pick(offset, i % size_t(length));
    }
    Tensor y = half_bytes(r.tensor("y"));
    r.write(y, within(x, y.dtype));
    if (r.flag("outputRstd")) r.write(r.tensor("rstd"), rstd);
}

void plan_rms_grad(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    need_bytes(p, "dxOut");
    p.same_shape("dy", "x");
    p.same_shape("dy", "dxOut");
    need_count(p, "gamma", d.back());
    p.same_shape("gamma", "dgammaOut");
    need_count(p, "rstd", d.product() / std::max<int64_t>(d.back(), 1));
    p.require(p.string("quantMode") == "static", "quantMode is \"%s\"; expected static", p.string("quantMode").c_str());
    need_count(p, "scalesX", 1);
    need_count(p, "offsetXOptional", 1);
}

void run_rms_grad(Run& r) {
    auto dy = r.read<double>(r.tensor("dy")), x = r.read<double>(r.tensor("x"));
    auto rstd = r.read<double>(r.tensor("rstd")), gamma = r.read<double>(r.tensor("gamma"));
    size_t length = gamma.size();
    Values dgamma(length);
    for (size_t row = 0; row < rstd.size(); ++row) {
        double along = 0;
        for (size_t k = 0; k < length; ++k) {
            size_t i = row * length + k;
            x[i] *= rstd[row];
            dgamma[k] += dy[i] * x[i];
            dy[i] *= gamma[k];
            along += dy[i] * x[i] / double(length);
        }
        for (size_t k = 0; k < length; ++k) dy[row * length + k] = (dy[row * length + k] - x[row * length + k] * along) * rstd[row];
    }
    double scale = r.read<double>(r.tensor("scalesX"))[0], offset = read_or(r, "offsetXOptional", 1, 0)[0];
    for (double& v : dy) v = (r.flag("divMode") ? v / scale : v * scale) + offset;
    r.write(r.tensor("dxOut"), within(dy, r.tensor("dxOut").dtype));
    r.write(r.tensor("dgammaOut"), dgamma);
}

// y = rms_norm(x1 * scale + x2)
void plan_fused_add(Plan& p) {
    const Dims& d = p.tensor("x1").dims;
    for (const char* name : {"x2", "yOut", "xOut"}) p.same_shape("x1", name);
    p.require(ends_with(d, p.tensor("gamma").dims), "gamma has shape %s, which does not end %s",
              text(p.tensor("gamma").dims).c_str(), text(d).c_str());
    need_count(p, "rstdOut", d.product() / std::max<int64_t>(p.tensor("gamma").numel(), 1));
}

void run_fused_add(Run& r) {
    auto x = read_sum(r, r.real("scale"));
    auto gamma = r.read<double>(r.tensor("gamma"));
    Values rstd;
    r.write(r.tensor("xOut"), x);
    r.write(r.tensor("yOut"), rms_norm(x, gamma, Values(gamma.size(), 0), r.real("epsilon"), &rstd));
    r.write(r.tensor("rstdOut"), rstd);
}

// -- groups and channels ---------------------------------------------------------------------------------------------
void plan_group(Plan& p) {
    const Dims& d = p.tensor("self").dims;
    int64_t groups = p.integer("group");
    p.require(d.n >= 2 && groups > 0 && d[1] % groups == 0, "self has shape %s, which %lld groups do not divide",
              text(d).c_str(), static_cast<long long>(groups));
    p.same_shape("self", "out");
    for (const char* name : {"gamma", "beta"}) need_count(p, name, d[1]);
    for (const char* name : {"meanOut", "rstdOut"}) p.shape(name, {d[0], groups});
    int64_t scales = p.tensor("quantScale").numel();
    p.require(scales == 1 || scales == d[1], "quantScale has %lld elements, expected 1 or %lld",
              static_cast<long long>(scales), static_cast<long long>(d[1]));
}

void run_group(Run& r) {
    const Dims& d = r.tensor("self").dims;
    auto x = r.read<double>(r.tensor("self"));
    int64_t groups = r.integer("group"), inner = d.product() / std::max<int64_t>(d[0] * d[1], 1);
    Moments m = moments(x, d[0] * groups, r.real("eps"));
    normalize(x, m.mean, m.rstd);
    auto gamma = read_or(r, "gamma", d[1], 1), beta = read_or(r, "beta", d[1], 0);
    auto scale = r.read<double>(r.tensor("quantScale"));
    for (size_t i = 0; i < x.size(); ++i) {
        size_t c = i / size_t(inner) % size_t(d[1]);
        double y = x[i] * gamma[c] + beta[c];
        x[i] = (r.flag("activateSilu") ? silu(y) : y) / pick(scale, c);
    }
    r.write(r.tensor("out"), within(x, r.tensor("out").dtype));
    r.write(r.tensor("meanOut"), m.mean);
    r.write(r.tensor("rstdOut"), m.rstd);
}

// gamma has the shape of x here.
void plan_group_grad(Plan& p) {
    const Dims &d = p.tensor("x").dims, &m = p.tensor("mean").dims;
    for (const char* name : {"dy", "gamma", "dx"}) p.same_shape("x", name);
    p.same_shape("mean", "rstd");
    p.require(m[0] == d[0] && m[1] > 0 && d[1] % m[1] == 0, "mean has shape %s, x %s", text(m).c_str(), text(d).c_str());
}

void run_group_grad(Run& r) {
    auto x = r.read<double>(r.tensor("x")), dy = r.read<double>(r.tensor("dy")), gamma = r.read<double>(r.tensor("gamma"));
    auto mean = r.read<double>(r.tensor("mean")), rstd = r.read<double>(r.tensor("rstd"));
    normalize(x, mean, rstd);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] *= gamma[i];
    r.write(r.tensor("dx"), normalize_backward(dy, x, rstd));
}

void plan_channels(Plan& p) {
    const Dims& d = p.tensor("input").dims;
    p.same_shape("input", "output");
    p.same_dtype("input", "output");
    for (const char* name : {"mean", "var", "weight", "bias"}) need_count(p, name, d[1]);
}

void run_channels(Run& r) {
    const Dims& d = r.tensor("input").dims;
    auto x = r.read<double>(r.tensor("input")), mean = r.read<double>(r.tensor("mean")), var = r.read<double>(r.tensor("var"));
    auto weight = read_or(r, "weight", d[1], 1), bias = read_or(r, "bias", d[1], 0);
    double in = r.scalar("inputScale").as<double>(), out = r.scalar("outputScale").as<double>();
    double in_zero = r.scalar("inputZeroPoint").as<double>(), out_zero = r.scalar("outputZeroPoint").as<double>();
    for (size_t i = 0; i < x.size(); ++i) {
        size_t c = i / size_t(d[2] * d[3]) % size_t(d[1]);
        double real = (x[i] - in_zero) * in;
        real = (real - mean[c]) * inverse_root(var[c], r.real("epsilon")) * weight[c] + bias[c];
        x[i] = std::nearbyint(real / out) + out_zero;
    }
    r.write(r.tensor("output"), within(x, r.tensor("output").dtype));
}

// -- BatchNorm's gradients; `version` chooses an implementation only --------------------------------------------------
void plan_batch_grad(Plan& p) {
    const Dims& d = p.tensor("input").dims;
    p.same_shape("input", "gradOut");
    for (const char* name : {"weight", "runningMean", "runningVar", "saveMean", "saveInvstd"}) need_count(p, name, d[1]);
    plan_mask(p, "outputMask", {"gradInput", "gradWeight", "gradBias"});
    const auto& mask = p.ints("outputMask");
    if (mask[0]) p.same_shape("input", "gradInput");
    if (mask[1]) p.shape("gradWeight", {d[1]});
    if (mask[2]) p.shape("gradBias", {d[1]});
    bool training = p.flag("training");
    for (const char* name : {training ? "saveMean" : "runningMean", training ? "saveInvstd" : "runningVar"})
        if (!p.has(name)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null", name);
}

void run_batch_grad(Run& r) {
    const Dims& d = r.tensor("input").dims;
    bool training = r.flag("training");
    auto g = r.read<double>(r.tensor("gradOut")), x = r.read<double>(r.tensor("input"));
    auto weight = read_or(r, "weight", d[1], 1), mean = r.read<double>(r.tensor(training ? "saveMean" : "runningMean"));
    auto rstd = r.read<double>(r.tensor(training ? "saveInvstd" : "runningVar"));
    if (!training)
        for (double& v : rstd) v = inverse_root(v, r.real("eps"));
    int64_t inner = 1;
    for (int i = 2; i < d.n; ++i) inner *= d[i];
    double count = double(d[0] * inner);
    Values sum(size_t(d[1]), 0), dot(size_t(d[1]), 0);
    auto channel = [&](size_t i) { return i / size_t(inner) % size_t(d[1]); };
    for (size_t i = 0; i < x.size(); ++i) {
        size_t c = channel(i);
        x[i] = (x[i] - mean[c]) * rstd[c];
        sum[c] += g[i];
        dot[c] += g[i] * x[i];
    }
    const auto& mask = r.ints("outputMask");
    if (mask[1]) r.write(r.tensor("gradWeight"), dot);
    if (mask[2]) r.write(r.tensor("gradBias"), sum);
    for (size_t i = 0; i < x.size(); ++i) {
        size_t c = channel(i);
        double through = training ? g[i] - (sum[c] + x[i] * dot[c]) / count : g[i];
        x[i] = through * rstd[c] * weight[c];
    }
    if (mask[0]) r.write(r.tensor("gradInput"), x);
}

}  // namespace

ACLNN(aclnnLayerNormQuant, plan_layer, run_layer)
ACLNN(aclnnAddLayerNormQuant, plan_add_layer, run_add_layer)
ACLNN(aclnnAddLayerNormQuantV2, plan_add_layer, run_add_layer)
ACLNN(aclnnAdaLayerNormQuant, plan_ada_quant, run_ada_quant, NARROW)
ACLNN(aclnnAdaLayerNormBackward, plan_ada_grad, run_ada_grad)
ACLNN(aclnnAddRmsNormDynamicQuantV2, plan_add_dynamic, run_add_dynamic, NARROW)
ACLNN(aclnnRmsNormQuantV3, plan_rms_quant, run_rms_quant, NARROW)
ACLNN(aclnnRmsNormGradQuant, plan_rms_grad, run_rms_grad, NARROW)
ACLNN(aclnnFusedAddRmsNorm, plan_fused_add, run_fused_add)
ACLNN(aclnnGroupNormSiluQuant, plan_group, run_group)
ACLNN(aclnnGroupNormalizationGrad, plan_group_grad, run_group_grad)
ACLNN(aclnnQuantizedBatchNorm, plan_channels, run_channels)
ACLNN(aclnnFastBatchNormBackward, plan_batch_grad, run_batch_grad)
