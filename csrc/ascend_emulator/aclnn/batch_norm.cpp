// Batch normalization: over all samples and places of each channel; and its parts, for statistics of several devices.
#include "norm.h"

using namespace emu;

namespace {

// f(index, channel) for each element.
struct Channels {
    int64_t samples = 1, channels = 1, places = 1;
    explicit Channels(const Tensor& t) {
        bool last = t.format == ACL_FORMAT_NHWC || t.format == ACL_FORMAT_NDHWC;
        int axis = last ? t.rank() - 1 : 1;
        for (int i = 0; i < t.rank(); ++i) (i < axis ? samples : i == axis ? channels : places) *= t.dims[i];
    }
    int64_t count() const { return samples * places; }
    size_t of(size_t i) const { return i / size_t(places) % size_t(channels); }
};

// Documents ask for the format that belongs to the rank, and list ND among the formats; the operators look at it only where
// there are 5 dimensions and more.
void plan_format(const Plan& p, const char* name) {
    const Tensor& t = p.tensor(name);
    bool plain = t.format == ACL_FORMAT_ND;
    if (plain && t.rank() < 5) return;
    p.require(plain == (t.rank() > 5), "%s has %d dimensions and format %s", name, t.rank(),
              plain ? "ND; NC, NCL, NCHW or NCDHW is needed" : "that is not ND");
}

void plan_vectors(const Plan& p, int64_t channels, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (p.has(name)) p.shape(name, {channels});
}

struct Statistics {
    std::vector<double> mean, variance;  // biased
};

Statistics statistics(const std::vector<double>& x, const Channels& c) {
    Statistics s{std::vector<double>(size_t(c.channels)), std::vector<double>(size_t(c.channels))};
    for (size_t i = 0; i < x.size(); ++i) s.mean[c.of(i)] += x[i] / double(c.count());
    for (size_t i = 0; i < x.size(); ++i) {
        double d = x[i] - s.mean[c.of(i)];
        s.variance[c.of(i)] += d * d / double(c.count());
    }
    return s;
}

std::vector<double> inverse_roots(const std::vector<double>& variance, double eps) {
    std::vector<double> out;
    for (double v : variance) out.push_back(inverse_root(v, eps));
    return out;
}

std::vector<double> vector_or(const Run& r, const char* name, size_t n, double value) {
    return r.has(name) ? r.read<double>(r.tensor(name)) : std::vector<double>(n, value);
}

// running = (1 - momentum) * running + momentum * seen, where given.
void blend(const Run& r, const char* name, const std::vector<double>& seen, double momentum) {
    if (!r.has(name)) return;
    auto running = r.read<double>(r.tensor(name));
    for (size_t i = 0; i < running.size(); ++i) running[i] = (1 - momentum) * running[i] + momentum * seen[i];
    r.write(r.tensor(name), running);
}

std::vector<double> unbiased(std::vector<double> variance, double count) {
    for (double& v : variance) v *= count / (count - 1);
    return variance;
}

// -- BatchNorm -------------------------------------------------------------------------------------------------------
void plan_batch_norm(Plan& p) {
    const Tensor& input = p.tensor("input");
    plan_format(p, "input");
    Channels c(input);
    plan_vectors(p, c.channels, {"weight", "bias", "runningMean", "runningVar"});
    p.same_shape("input", "output");
    if (p.flag("training")) {
        plan_vectors(p, c.channels, {"saveMean", "saveInvstd"});
        p.require(c.count() > 1 || input.numel() == 0, "training needs more than one value per channel, got shape %s",
                  text(input.dims).c_str());
    } else {
        p.require(p.has("runningMean") && p.has("runningVar"),
                  "runningMean and runningVar are needed when not training");
    }
    p.workspace = 16 * uint64_t(c.channels);
}

void run_batch_norm(Run& r) {
    const Tensor& input = r.tensor("input");
    Channels c(input);
    auto x = r.read<double>(input);
    if (x.empty()) return;
    Statistics s;
    double eps = r.real("eps");
    if (r.flag("training")) {
        s = statistics(x, c);
        blend(r, "runningMean", s.mean, r.real("momentum"));
        blend(r, "runningVar", unbiased(s.variance, double(c.count())), r.real("momentum"));
        r.write(r.tensor("saveMean"), s.mean);
        r.write(r.tensor("saveInvstd"), inverse_roots(s.variance, eps));
    } else {
        s = {r.read<double>(r.tensor("runningMean")), r.read<double>(r.tensor("runningVar"))};
    }
    auto invstd = inverse_roots(s.variance, eps);
    auto w = vector_or(r, "weight", s.mean.size(), 1), b = vector_or(r, "bias", s.mean.size(), 0);
    for (size_t i = 0; i < x.size(); ++i) {
        size_t k = c.of(i);
        x[i] = (x[i] - s.mean[k]) * invstd[k] * w[k] + b[k];
    }
    r.write(r.tensor("output"), x);
}

void plan_batch_norm_backward(Plan& p) {
    plan_format(p, "input");
    plan_format(p, "gradOut");
    Channels c(p.tensor("input"));
    plan_mask(p, "outputMask", {"gradInput", "gradWeight", "gradBias"});
    plan_vectors(p, c.channels, {"weight", "runningMean", "runningVar"});
    if (p.flag("training")) {
        for (const char* name : {"saveMean", "saveInvstd"}) p.shape(name, {c.channels});
    } else {
        for (const char* name : {"runningMean", "runningVar"}) p.shape(name, {c.channels});
    }
    p.same_shape("input", "gradOut");
    if (p.ints("outputMask")[0]) p.same_shape("input", "gradInput");
    if (p.ints("outputMask")[1]) p.shape("gradWeight", {c.channels});
    if (p.ints("outputMask")[2]) p.shape("gradBias", {c.channels});
    p.workspace = 16 * uint64_t(c.channels);
}

struct Sums {
    std::vector<double> dy, dy_centred;  // of dy, and of dy * (x - mean)
};

Sums sums(const std::vector<double>& dy, const std::vector<double>& x, const std::vector<double>& mean,
          const Channels& c) {
    Sums s{std::vector<double>(mean.size()), std::vector<double>(mean.size())};
    for (size_t i = 0; i < dy.size(); ++i) {
        size_t k = c.of(i);
        s.dy[k] += dy[i];
        s.dy_centred[k] += dy[i] * (x[i] - mean[k]);
    }
    return s;
}

// dy becomes the gradient of the input.
void input_gradient(std::vector<double>& dy, const std::vector<double>& x, const std::vector<double>& mean,
                    const std::vector<double>& invstd, const std::vector<double>& w, const Sums& s, double count,
                    const Channels& c) {
    for (size_t i = 0; i < dy.size(); ++i) {
        size_t k = c.of(i);
        double slope = invstd[k] * invstd[k] * s.dy_centred[k] / count;
        dy[i] = (dy[i] - s.dy[k] / count - (x[i] - mean[k]) * slope) * invstd[k] * w[k];
    }
}

std::vector<double> weight_gradient(const Sums& s, const std::vector<double>& invstd) {
    std::vector<double> out = s.dy_centred;
    for (size_t k = 0; k < out.size(); ++k) out[k] *= invstd[k];
    return out;
}

void run_batch_norm_backward(Run& r) {
    Channels c(r.tensor("input"));
    bool training = r.flag("training");
    auto dy = r.read<double>(r.tensor("gradOut")), x = r.read<double>(r.tensor("input"));
    auto mean = r.read<double>(r.tensor(training ? "saveMean" : "runningMean"));
    auto invstd = training ? r.read<double>(r.tensor("saveInvstd"))
                           : inverse_roots(r.read<double>(r.tensor("runningVar")), r.real("eps"));
    auto w = vector_or(r, "weight", mean.size(), 1);
    Sums s = sums(dy, x, mean, c);
    const auto& mask = r.ints("outputMask");
    if (mask[1]) r.write(r.tensor("gradWeight"), weight_gradient(s, invstd));
    if (mask[2]) r.write(r.tensor("gradBias"), s.dy);
    if (!mask[0]) return;
    if (training) input_gradient(dy, x, mean, invstd, w, s, double(c.count()), c);
    else
        for (size_t i = 0; i < dy.size(); ++i) dy[i] *= invstd[c.of(i)] * w[c.of(i)];
    r.write(r.tensor("gradInput"), dy);
}

// -- parts -----------------------------------------------------------------------------------------------------------
void run_stats(Run& r) {
    Statistics s = statistics(r.read<double>(r.tensor("input")), Channels(r.tensor("input")));
    r.write(r.tensor("mean"), s.mean);
    r.write(r.tensor("invstd"), inverse_roots(s.variance, r.real("eps")));
}

void plan_elemt(Plan& p) {
    plan_format(p, "input");
    plan_vectors(p, p.tensor("input").dims[1], {"weight", "bias", "mean", "invstd"});
    for (const char* name : {"weight", "bias", "mean", "invstd"})
        if (p.has(name)) p.same_dtype("input", name);
    p.same_shape("input", "output");
}

void run_elemt(Run& r) {
    Channels c(r.tensor("input"));
    auto x = r.read<double>(r.tensor("input"));
    size_t n = size_t(c.channels);
    auto mean = vector_or(r, "mean", n, 0), invstd = vector_or(r, "invstd", n, 1);
    auto w = vector_or(r, "weight", n, 1), b = vector_or(r, "bias", n, 0);
    for (size_t i = 0; i < x.size(); ++i) {
        size_t k = c.of(i);
        x[i] = (x[i] - mean[k]) * invstd[k] * w[k] + b[k];
    }
    r.write(r.tensor("output"), x);
}

void plan_elemt_backward(Plan& p) {
    plan_vectors(p, p.tensor("input").dims[1], {"mean", "invstd", "weight", "sumDy", "sumDyXmu"});
    p.same_shape("input", "gradOut");
    p.same_shape("input", "gradInput");
}

void run_elemt_backward(Run& r) {
    Channels c(r.tensor("input"));
    auto dy = r.read<double>(r.tensor("gradOut"));
    auto mean = r.read<double>(r.tensor("mean"));
    double count = 0;
    for (double n : r.read<double>(r.tensor("counter"))) count += n;
    Sums s{r.read<double>(r.tensor("sumDy")), r.read<double>(r.tensor("sumDyXmu"))};
    input_gradient(dy, r.read<double>(r.tensor("input")), mean, r.read<double>(r.tensor("invstd")),
                   vector_or(r, "weight", mean.size(), 1), s, count, c);
    r.write(r.tensor("gradInput"), dy);
}

void plan_reduce_backward(Plan& p) {
    p.same_shape("input", "gradOut");
    plan_vectors(p, p.tensor("input").dims[1],
                 {"mean", "invstd", "weight", "sumDy", "sumDyXmu", "gradWeight", "gradBias"});
    auto needed = [&p](bool asked, const char* name) {
        if (asked && !p.has(name)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null: it is asked for", name);
    };
    needed(p.flag("inputG"), "sumDy");
    needed(p.flag("inputG"), "sumDyXmu");
    needed(p.flag("weightG"), "gradWeight");
    needed(p.flag("biasG"), "gradBias");
}

void run_reduce_backward(Run& r) {
    Channels c(r.tensor("input"));
    auto mean = r.read<double>(r.tensor("mean"));
    Sums s = sums(r.read<double>(r.tensor("gradOut")), r.read<double>(r.tensor("input")), mean, c);
    if (r.flag("inputG")) {
        r.write(r.tensor("sumDy"), s.dy);
        r.write(r.tensor("sumDyXmu"), s.dy_centred);
    }
    if (r.flag("weightG")) r.write(r.tensor("gradWeight"), weight_gradient(s, r.read<double>(r.tensor("invstd"))));
    if (r.flag("biasG")) r.write(r.tensor("gradBias"), s.dy);
}

void run_reduce(Run& r) {
    Channels c(r.tensor("x"));
    std::vector<double> sum(size_t(c.channels)), squares(size_t(c.channels));
    auto x = r.read<double>(r.tensor("x"));
    for (size_t i = 0; i < x.size(); ++i) {
        sum[c.of(i)] += x[i];
        squares[c.of(i)] += x[i] * x[i];
    }
    r.write(r.tensor("sum"), sum);
    r.write(r.tensor("squareSum"), squares);
}

// -- statistics of several devices -----------------------------------------------------------------------------------
void plan_gather(Plan& p) {
    const Dims& d = p.tensor("mean").dims;
    p.shape("invstd", d);
    p.shape("counts", {d[0]});
    plan_vectors(p, d[1], {"runningMean", "runningVar", "meanAll", "invstdAll"});
}

void run_gather(Run& r) {
    const Dims& d = r.tensor("mean").dims;
    auto mean = r.read<double>(r.tensor("mean")), invstd = r.read<double>(r.tensor("invstd"));
    auto counts = r.read<double>(r.tensor("counts"));
    double eps = r.real("eps"), total = 0;
    for (double n : counts) total += n;
    Statistics s{std::vector<double>(size_t(d[1])), std::vector<double>(size_t(d[1]))};
    for (size_t i = 0; i < mean.size(); ++i) s.mean[i % size_t(d[1])] += mean[i] * counts[i / size_t(d[1])] / total;
    for (size_t i = 0; i < mean.size(); ++i) {
        size_t k = i % size_t(d[1]);
        double variance = 1 / (invstd[i] * invstd[i]) - eps, apart = mean[i] - s.mean[k];
        s.variance[k] += (variance + apart * apart) * counts[i / size_t(d[1])] / total;
    }
    r.write(r.tensor("meanAll"), s.mean);
    r.write(r.tensor("invstdAll"), inverse_roots(s.variance, eps));
    blend(r, "runningMean", s.mean, r.real("momentum"));
    blend(r, "runningVar", unbiased(s.variance, total), r.real("momentum"));
}

void plan_sync(Plan& p) {
    const Dims& d = p.tensor("totalSum").dims;
    p.shape("totalSquareSum", d);
    p.shape("sampleCount", {d[0]});
    for (const char* name : {"mean", "variance"}) p.same_dtype("totalSum", name);
    p.same_dtype("batchMean", "batchInvstd");
    plan_vectors(p, d[1], {"mean", "variance", "batchMean", "batchInvstd"});
}

void run_sync(Run& r) {
    const Dims& d = r.tensor("totalSum").dims;
    auto sum = r.read<double>(r.tensor("totalSum")), squares = r.read<double>(r.tensor("totalSquareSum"));
    double total = 0;
    for (double n : r.read<double>(r.tensor("sampleCount"))) total += n;
    Statistics s{std::vector<double>(size_t(d[1])), std::vector<double>(size_t(d[1]))};
    for (size_t i = 0; i < sum.size(); ++i) {
        s.mean[i % size_t(d[1])] += sum[i] / total;
        s.variance[i % size_t(d[1])] += squares[i] / total;
    }
    for (size_t k = 0; k < s.mean.size(); ++k) s.variance[k] -= s.mean[k] * s.mean[k];
    r.write(r.tensor("batchMean"), s.mean);
    r.write(r.tensor("batchInvstd"), inverse_roots(s.variance, r.real("eps")));
    blend(r, "mean", s.mean, r.real("momentum"));
    blend(r, "variance", unbiased(s.variance, total), r.real("momentum"));
}

}  // namespace

ACLNN(aclnnBatchNorm, plan_batch_norm, run_batch_norm)
ACLNN(aclnnBatchNormBackward, plan_batch_norm_backward, run_batch_norm_backward)
ACLNN(aclnnBatchNormStats, PLAN { plan_vectors(p, p.tensor("input").dims[1], {"mean", "invstd"}); }, run_stats)
ACLNN(aclnnBatchNormElemt, plan_elemt, run_elemt)
ACLNN(aclnnBatchNormElemtBackward, plan_elemt_backward, run_elemt_backward)
ACLNN(aclnnBatchNormReduce, PLAN { plan_vectors(p, p.tensor("x").dims[1], {"sum", "squareSum"}); }, run_reduce)
ACLNN(aclnnBatchNormReduceBackward, plan_reduce_backward, run_reduce_backward)
ACLNN(aclnnBatchNormGatherStatsWithCounts, plan_gather, run_gather)
ACLNN(aclnnSyncBatchNormGatherStats, plan_sync, run_sync)
