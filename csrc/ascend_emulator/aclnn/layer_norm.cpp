// Layer normalization, alone or after an addition, and what flows back through it.
#include "norm.h"

using namespace emu;

namespace {

void writes(const Run& r, const char* name, const std::vector<double>& values) {
    if (r.has(name)) r.write(r.tensor(name), values);
}

// -- LayerNorm -------------------------------------------------------------------------------------------------------
int plan_normalized(const Plan& p, const Tensor& input) {
    const auto& given = p.ints("normalizedShape");
    Dims tail(given.data(), given.size());
    p.require(tail.n >= 1 && ends_with(input.dims, tail), "normalizedShape %s is not the end of the input's shape %s",
              text(tail).c_str(), text(input.dims).c_str());
    for (const char* name : {"weightOptional", "biasOptional"}) {
        if (!p.has(name)) continue;
        p.shape(name, tail);
        p.same_dtype("input", name);
    }
    return tail.n;
}

void plan_layer_norm(Plan& p) {
    const Tensor& input = p.tensor("input");
    int inner = plan_normalized(p, input);
    p.same_shape("input", "out");
    p.same_dtype("input", "out");
    for (const char* name : {"meanOutOptional", "rstdOutOptional"}) {
        if (!p.has(name)) continue;
        p.shape(name, statistics_shape(input.dims, inner));
        int dtype = p.tensor(name).dtype;
        p.require(dtype == input.dtype || dtype == ACL_FLOAT, "%s has dtype %s, expected FLOAT or that of input, %s",
                  name, dtype_name(dtype), dtype_name(input.dtype));
    }
    p.workspace = 32 * uint64_t(leading(input.dims, inner));
}

void affine(const Run& r, std::vector<double>& x, const char* weight, const char* bias) {
    if (r.has(weight)) {
        auto w = r.read<double>(r.tensor(weight));
        for (size_t i = 0; i < x.size(); ++i) x[i] *= w[i % w.size()];
    }
    if (r.has(bias)) {
        auto b = r.read<double>(r.tensor(bias));
        for (size_t i = 0; i < x.size(); ++i) x[i] += b[i % b.size()];
    }
}

void run_layer_norm(Run& r) {
    const Tensor& input = r.tensor("input");
    auto x = r.read<double>(input);
    Moments m = moments(x, leading(input.dims, int(r.ints("normalizedShape").size())), r.real("eps"));
    normalize(x, m.mean, m.rstd);
    affine(r, x, "weightOptional", "biasOptional");
    r.write(r.tensor("out"), x);
    writes(r, "meanOutOptional", m.mean);
    writes(r, "rstdOutOptional", m.rstd);
}

// -- backward --------------------------------------------------------------------------------------------------------
struct Gradients {
    std::vector<double> input, gamma, beta;
};

Gradients backward(const std::vector<double>& dy, std::vector<double> x, const std::vector<double>& mean,
                   const std::vector<double>& rstd, const std::vector<double>* gamma, int64_t columns) {
    normalize(x, mean, rstd);
    size_t length = size_t(columns);
    Gradients g;
    g.gamma.resize(length);
    g.beta.resize(length);
    std::vector<double> scaled = dy;
    for (size_t i = 0; i < dy.size(); ++i) {
        g.gamma[i % length] += dy[i] * x[i];
        g.beta[i % length] += dy[i];
        if (gamma) scaled[i] *= (*gamma)[i % length];
    }
    g.input = normalize_backward(scaled, x, rstd);
    return g;
}

void plan_layer_norm_backward(Plan& p) {
    const Tensor& input = p.tensor("input");
    int inner = plan_normalized(p, input);
    p.same_shape("input", "gradOut");
    for (const char* name : {"mean", "rstd"}) {
        p.shape(name, statistics_shape(input.dims, inner));
        p.require(size_of(p.tensor(name).dtype) >= size_of(input.dtype), "%s has dtype %s, narrower than input's %s",
                  name, dtype_name(p.tensor(name).dtype), dtype_name(input.dtype));
    }
    plan_mask(p, "outputMask", {"gradInputOut", "gradWeightOut", "gradBiasOut"});
    const auto& given = p.ints("normalizedShape");
    Dims tail(given.data(), given.size());
    if (p.ints("outputMask")[0]) p.same_shape("input", "gradInputOut");
    if (p.ints("outputMask")[1]) p.shape("gradWeightOut", tail);
    if (p.ints("outputMask")[2]) p.shape("gradBiasOut", tail);
    p.workspace = 2 * 4 * uint64_t(tail.product());
}

void run_layer_norm_backward(Run& r) {
    std::vector<double> weight;
    if (r.has("weightOptional")) weight = r.read<double>(r.tensor("weightOptional"));
    Gradients g = backward(r.read<double>(r.tensor("gradOut")), r.read<double>(r.tensor("input")),
                           r.read<double>(r.tensor("mean")), r.read<double>(r.tensor("rstd")),
                           r.has("weightOptional") ? &weight : nullptr, Dims(r.ints("normalizedShape").data(), r.ints("normalizedShape").size()).product());
    const auto& mask = r.ints("outputMask");
    if (mask[0]) r.write(r.tensor("gradInputOut"), g.input);
    if (mask[1]) r.write(r.tensor("gradWeightOut"), g.gamma);
    if (mask[2]) r.write(r.tensor("gradBiasOut"), g.beta);
}

// -- gamma and beta span the trailing dimensions ---------------------------------------------------------------------
int plan_gamma(const Plan& p, const Tensor& x, const char* gamma) {
    const Dims& tail = p.tensor(gamma).dims;
    p.require(ends_with(x.dims, tail), "%s has shape %s, which is not the end of %s", gamma, text(tail).c_str(),
              text(x.dims).c_str());
    return tail.n;
}

void plan_statistics(const Plan& p, const Tensor& x, int inner, std::initializer_list<const char*> names) {
    for (const char* name : names) p.shape(name, statistics_shape(x.dims, inner));
}

void plan_add_layer_norm(Plan& p) {
    const Tensor& x = p.tensor("x1");
    int inner = plan_gamma(p, x, "gamma");
    p.same_shape("gamma", "beta");
    for (const char* name : {"x2", "yOut"}) p.same_shape("x1", name);
    if (p.flag("additionalOutput") || p.has("xOut")) p.same_shape("x1", "xOut");
    if (p.has("biasOptional"))
        p.require(p.tensor("biasOptional").dims == x.dims || p.tensor("biasOptional").dims == p.tensor("gamma").dims,
                  "biasOptional has shape %s, expected that of x1 or of gamma",
                  text(p.tensor("biasOptional").dims).c_str());
    plan_statistics(p, x, inner, {"meanOut", "rstdOut"});
}

std::vector<double> sum_of(const Run& r, const char* a, const char* b, double factor = 1) {
    auto x = r.read<double>(r.tensor(a)), y = r.read<double>(r.tensor(b));
    for (size_t i = 0; i < x.size(); ++i) x[i] = factor * x[i] + y[i];
    return x;
}

void run_add_layer_norm(Run& r) {
    const Tensor& first = r.tensor("x1");
    auto x = sum_of(r, "x1", "x2");
    if (r.has("biasOptional")) {
        auto bias = r.read<double>(r.tensor("biasOptional"), first.dims);
        for (size_t i = 0; i < x.size(); ++i) x[i] += bias[i];
    }
    if (r.flag("additionalOutput")) r.write(r.tensor("xOut"), x);
    Moments m = moments(x, leading(first.dims, r.tensor("gamma").rank()), r.real("epsilon"));
    normalize(x, m.mean, m.rstd);
    affine(r, x, "gamma", "beta");
    r.write(r.tensor("yOut"), x);
    r.write(r.tensor("meanOut"), m.mean);
    r.write(r.tensor("rstdOut"), m.rstd);
}

void plan_add_layer_norm_grad(Plan& p) {
    const Tensor& dy = p.tensor("dy");
    int inner = plan_gamma(p, dy, "gamma");
    p.same_dtype("dy", "gamma");
    for (const char* name : {"x1", "x2", "dxOut"}) p.same_shape("dy", name);
    if (p.has("dsumOptional")) p.same_shape("dy", "dsumOptional");
    for (const char* name : {"dgammaOut", "dbetaOut"}) p.same_shape("gamma", name);
    plan_statistics(p, dy, inner, {"mean", "rstd"});
}

Gradients gamma_gradients(const Run& r, std::vector<double> x) {
    auto gamma = r.read<double>(r.tensor("gamma"));
    return backward(r.read<double>(r.tensor("dy")), std::move(x), r.read<double>(r.tensor("mean")),
                    r.read<double>(r.tensor("rstd")), &gamma, int64_t(gamma.size()));
}

void run_add_layer_norm_grad(Run& r) {
    Gradients g = gamma_gradients(r, sum_of(r, "x1", "x2"));
    if (r.has("dsumOptional")) {
        auto extra = r.read<double>(r.tensor("dsumOptional"));
        for (size_t i = 0; i < extra.size(); ++i) g.input[i] += extra[i];
    }
    r.write(r.tensor("dxOut"), g.input);
    r.write(r.tensor("dgammaOut"), g.gamma);
    r.write(r.tensor("dbetaOut"), g.beta);
}

// -- DeepNorm: the layer norm of alpha * x + gx ----------------------------------------------------------------------
void plan_deep_norm(Plan& p) {
    const Tensor& x = p.tensor("x");
    int inner = plan_gamma(p, x, "gamma");
    p.same_shape("gamma", "beta");
    for (const char* name : {"gx", "gamma", "beta", "yOut"}) p.same_dtype("x", name);
    for (const char* name : {"gx", "yOut"}) p.same_shape("x", name);
    plan_statistics(p, x, inner, {"meanOut", "rstdOut"});
}

void run_deep_norm(Run& r) {
    auto x = sum_of(r, "x", "gx", r.real("alpha"));
    Moments m = moments(x, leading(r.tensor("x").dims, r.tensor("gamma").rank()), r.real("epsilon"));
    normalize(x, m.mean, m.rstd);
    affine(r, x, "gamma", "beta");
    r.write(r.tensor("yOut"), x);
    r.write(r.tensor("meanOut"), m.mean);
    r.write(r.tensor("rstdOut"), m.rstd);
}

void plan_deep_norm_grad(Plan& p) {
    const Tensor& x = p.tensor("x");
    int inner = plan_gamma(p, x, "gamma");
    for (const char* name : {"dy", "gx", "dxOut", "dgxOut"}) p.same_shape("x", name);
    for (const char* name : {"dbetaOut", "dgammaOut"}) p.same_shape("gamma", name);
    p.same_dtype("x", "gamma");
    plan_statistics(p, x, inner, {"mean", "rstd"});
}

void run_deep_norm_grad(Run& r) {
    Gradients g = gamma_gradients(r, sum_of(r, "x", "gx", r.real("alpha")));
    r.write(r.tensor("dgxOut"), g.input);
    for (double& v : g.input) v *= r.real("alpha");
    r.write(r.tensor("dxOut"), g.input);
    r.write(r.tensor("dgammaOut"), g.gamma);
    r.write(r.tensor("dbetaOut"), g.beta);
}

}  // namespace

ACLNN(aclnnLayerNorm, plan_layer_norm, run_layer_norm)
ACLNN(aclnnFastLayerNorm, plan_layer_norm, run_layer_norm)
ACLNN(aclnnLayerNormWithImplMode, PLAN {
    p.require(p.integer("implMode") >= 0 && p.integer("implMode") <= 2, "implMode is %lld, expected 0, 1 or 2",
              static_cast<long long>(p.integer("implMode")));
    plan_layer_norm(p);
}, run_layer_norm)
ACLNN(aclnnLayerNormBackward, plan_layer_norm_backward, run_layer_norm_backward)
ACLNN(aclnnAddLayerNorm, plan_add_layer_norm, run_add_layer_norm)
ACLNN(aclnnAddLayerNormGrad, plan_add_layer_norm_grad, run_add_layer_norm_grad)
ACLNN(aclnnDeepNorm, plan_deep_norm, run_deep_norm)
ACLNN(aclnnDeepNormGrad, plan_deep_norm_grad, run_deep_norm_grad)
