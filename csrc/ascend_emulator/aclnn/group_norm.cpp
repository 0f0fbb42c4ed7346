// Group normalization, with an activation after it or not, and instance normalization.
#include "norm.h"
#include "view.h"

using namespace emu;

namespace {

// self as (samples, channels, places); a row is one group of channels of one sample.
struct Groups {
    int64_t samples, channels, places, groups;
    int64_t rows() const { return samples * groups; }
    size_t channel(size_t i) const { return i / size_t(places) % size_t(channels); }
};

Groups groups_of(const Dims& d, int64_t groups) {
    int64_t places = 1;
    for (int i = 2; i < d.n; ++i) places *= d[i];
    return {d[0], d[1], places, groups};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Normalizes x and applies gamma and beta where given; `scale` is that of x * sigmoid(scale * x), 0 for no activation.
Moments group_norm(const Run& r, std::vector<double>& x, const Groups& g, double eps, const char* gamma,
                   const char* beta, double scale) {
    Moments m = moments(x, g.rows(), eps);
    normalize(x, m.mean, m.rstd);
    std::vector<double> weight, bias;
    if (r.has(gamma)) weight = r.read<double>(r.tensor(gamma));
    if (r.has(beta)) bias = r.read<double>(r.tensor(beta));
    for (size_t i = 0; i < x.size(); ++i) {
        if (!weight.empty()) x[i] *= weight[g.channel(i)];
        if (!bias.empty()) x[i] += bias[g.channel(i)];
        if (scale != 0) x[i] *= sigmoid(scale * x[i]);
    }
    return m;
}

Groups plan_groups(const Plan& p, const Tensor& x, int64_t groups, std::initializer_list<const char*> per_channel,
                   std::initializer_list<const char*> statistics) {
    p.require(x.rank() >= 2, "the input has %d dimensions, expected 2 or more", x.rank());
    p.require(groups > 0 && x.dims[1] % groups == 0, "%lld channels cannot be split into %lld groups",
              static_cast<long long>(x.dims[1]), static_cast<long long>(groups));
    for (const char* name : per_channel)
        if (p.has(name)) p.shape(name, {x.dims[1]});
    for (const char* name : statistics) p.shape(name, {x.dims[0], groups});
    return groups_of(x.dims, groups);
}

void plan_sizes(const Plan& p, const Tensor& x, const Groups& g) {
    p.require(p.integer("N") == g.samples && p.integer("C") == g.channels && p.integer("HxW") == g.places,
              "N, C, HxW are %lld, %lld, %lld; the input has shape %s", static_cast<long long>(p.integer("N")),
              static_cast<long long>(p.integer("C")), static_cast<long long>(p.integer("HxW")), text(x.dims).c_str());
}

void same_dtypes(const Plan& p, const char* as, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (p.has(name)) p.same_dtype(as, name);
}

void plan_group_norm(Plan& p) {
    const Tensor& self = p.tensor("self");
    Groups g = plan_groups(p, self, p.integer("group"), {"gamma", "beta"}, {"meanOut", "rstdOut"});
    plan_sizes(p, self, g);
    same_dtypes(p, "self", {"gamma", "beta", "meanOut", "rstdOut"});
    p.same_shape("self", "out");
}

void plan_group_norm_silu(Plan& p) {
    plan_groups(p, p.tensor("self"), p.integer("group"), {"gamma", "beta"}, {"meanOut", "rstdOut"});
    same_dtypes(p, "self", {"gamma", "beta", "out", "meanOut", "rstdOut"});
    p.same_shape("self", "out");
}

void run_group_norm(Run& r, double scale) {
    const Tensor& self = r.tensor("self");
    auto x = r.read<double>(self);
    Moments m = group_norm(r, x, groups_of(self.dims, r.integer("group")), r.real("eps"), "gamma", "beta", scale);
    r.write(r.tensor("out"), x);
    r.write(r.tensor("meanOut"), m.mean);
    r.write(r.tensor("rstdOut"), m.rstd);
}

void plan_format(const Plan& p) {
    if (p.has("dataFormatOptional"))
        p.require(p.string("dataFormatOptional") == "NCHW", "dataFormatOptional is \"%s\", expected \"NCHW\"",
                  p.string("dataFormatOptional").c_str());
}

void plan_group_norm_swish(Plan& p) {
    plan_format(p);
    plan_groups(p, p.tensor("x"), p.integer("numGroups"), {"gamma", "beta"}, {"meanOut", "rstdOut"});
    same_dtypes(p, "gamma", {"beta", "meanOut", "rstdOut"});
    p.same_dtype("x", "gamma");
    p.same_shape("x", "yOut");
}

void run_group_norm_swish(Run& r) {
    const Tensor& self = r.tensor("x");
    auto x = r.read<double>(self);
    Moments m = group_norm(r, x, groups_of(self.dims, r.integer("numGroups")), r.real("eps"), "gamma", "beta",
                           r.flag("activateSwish") ? r.real("swishScale") : 0);
    r.write(r.tensor("yOut"), x);
    r.write(r.tensor("meanOut"), m.mean);
    r.write(r.tensor("rstdOut"), m.rstd);
}

// -- backward --------------------------------------------------------------------------------------------------------
struct Gradients {
    std::vector<double> input, gamma, beta;
};

// `normalized` is x after normalization; gamma empty for none.
Gradients backward(std::vector<double> dy, const std::vector<double>& normalized, const std::vector<double>& rstd,
                   const std::vector<double>& gamma, const Groups& g) {
    Gradients out;
    out.gamma.resize(size_t(g.channels));
    out.beta.resize(size_t(g.channels));
    for (size_t i = 0; i < dy.size(); ++i) {
        size_t c = g.channel(i);
        out.gamma[c] += dy[i] * normalized[i];
        out.beta[c] += dy[i];
        if (!gamma.empty()) dy[i] *= gamma[c];
    }
    out.input = normalize_backward(dy, normalized, rstd);
    return out;
}

void plan_group_norm_backward(Plan& p) {
    const Tensor& x = p.tensor("input");
    Groups g = plan_groups(p, x, p.integer("group"), {"gamma"}, {"mean", "rstd"});
    plan_sizes(p, x, g);
    plan_mask(p, "outputMask", {"gradInput", "gradGammaOut", "gradBetaOut"});
    same_dtypes(p, "input", {"gradOut", "gradInput"});
    same_dtypes(p, "mean", {"rstd", "gamma", "gradGammaOut"});
    p.same_shape("input", "gradOut");
    if (p.ints("outputMask")[0]) p.same_shape("input", "gradInput");
    if (p.ints("outputMask")[1]) p.shape("gradGammaOut", {g.channels});
    if (p.ints("outputMask")[2]) p.shape("gradBetaOut", {g.channels});
    p.workspace = 16 * uint64_t(g.samples * g.channels);
}

void run_group_norm_backward(Run& r) {
    auto x = r.read<double>(r.tensor("input")), rstd = r.read<double>(r.tensor("rstd"));
    normalize(x, r.read<double>(r.tensor("mean")), rstd);
    std::vector<double> gamma;
    if (r.has("gamma")) gamma = r.read<double>(r.tensor("gamma"));
    Gradients g = backward(r.read<double>(r.tensor("gradOut")), x, rstd, gamma,
                           groups_of(r.tensor("input").dims, r.integer("group")));
    const auto& mask = r.ints("outputMask");
    if (mask[0]) r.write(r.tensor("gradInput"), g.input);
    if (mask[1]) r.write(r.tensor("gradGammaOut"), g.gamma);
    if (mask[2]) r.write(r.tensor("gradBetaOut"), g.beta);
}

void plan_group_norm_swish_grad(Plan& p) {
    plan_format(p);
    const Tensor& x = p.tensor("x");
    plan_groups(p, x, p.integer("numGroups"), {"gamma", "beta", "dgammaOut", "dbetaOut"}, {"mean", "rstd"});
    same_dtypes(p, "gamma", {"mean", "rstd"});
    p.same_shape("x", "dy");
    p.same_shape("x", "dxOut");
}

void run_group_norm_swish_grad(Run& r) {
    Groups groups = groups_of(r.tensor("x").dims, r.integer("numGroups"));
    auto x = r.read<double>(r.tensor("x")), rstd = r.read<double>(r.tensor("rstd")),
        dy = r.read<double>(r.tensor("dy"));
    auto gamma = r.read<double>(r.tensor("gamma")), beta = r.read<double>(r.tensor("beta"));
    normalize(x, r.read<double>(r.tensor("mean")), rstd);
    double scale = r.real("swishScale");
    for (size_t i = 0; i < dy.size(); ++i) {
        size_t c = groups.channel(i);
        double z = x[i] * gamma[c] + beta[c], s = sigmoid(scale * z);
        dy[i] *= s + scale * z * s * (1 - s);
    }
    Gradients g = backward(dy, x, rstd, gamma, groups);
    r.write(r.tensor("dxOut"), g.input);
    if (r.flag("dgammaIsRequire")) r.write(r.tensor("dgammaOut"), g.gamma);
    if (r.flag("dbetaIsRequire")) r.write(r.tensor("dbetaOut"), g.beta);
}

// -- InstanceNorm ----------------------------------------------------------------------------------------------------
bool is_nhwc(const Call& c) { return c.string("dataFormat") == "NHWC"; }

void plan_instance_norm(Plan& p) {
    p.require(settings().chip == Chip::k310P, "supported on 310P only, this chip is %s", chip_name(settings().chip));
    p.require(is_nhwc(p) || p.string("dataFormat") == "NCHW", "dataFormat is \"%s\", expected \"NHWC\" or \"NCHW\"",
              p.string("dataFormat").c_str());
    const Dims& d = p.tensor("x").dims;
    int64_t channels = is_nhwc(p) ? d[3] : d[1];
    for (const char* name : {"gamma", "beta"}) p.shape(name, {channels});
    for (const char* name : {"mean", "variance"})
        p.shape(name, is_nhwc(p) ? Dims{d[0], 1, 1, channels} : Dims{d[0], channels, 1, 1});
    same_dtypes(p, "x", {"gamma", "beta", "mean", "variance", "y"});
    p.same_shape("x", "y");
}

void run_instance_norm(Run& r) {
    Tensor in = r.tensor("x"), out = r.tensor("y");
    if (is_nhwc(r)) in = permuted(in, {0, 3, 1, 2}), out = permuted(out, {0, 3, 1, 2});
    auto x = r.read<double>(in);
    Moments m = group_norm(r, x, groups_of(in.dims, in.dims[1]), r.real("eps"), "gamma", "beta", 0);
    r.write(out, x);
    r.write(r.tensor("mean"), m.mean);
    r.write(r.tensor("variance"), m.variance);
}

}  // namespace

ACLNN(aclnnGroupNorm, plan_group_norm, RUN { run_group_norm(r, 0); })
ACLNN(aclnnGroupNormSilu, plan_group_norm_silu, RUN { run_group_norm(r, 1); })
ACLNN(aclnnGroupNormSiluV2, plan_group_norm_silu, RUN { run_group_norm(r, r.flag("activateSilu") ? 1 : 0); })
ACLNN(aclnnGroupNormSwish, plan_group_norm_swish, run_group_norm_swish)
ACLNN(aclnnGroupNormBackward, plan_group_norm_backward, run_group_norm_backward)
ACLNN(aclnnGroupNormSwishGrad, plan_group_norm_swish_grad, run_group_norm_swish_grad)
ACLNN(aclnnInstanceNorm, plan_instance_norm, run_instance_norm)
