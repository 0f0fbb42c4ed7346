// How parallel streams of hidden states are read, written and mixed: weights found from the streams themselves, and mixtures
// made doubly stochastic; and what flows back.
//
// The formulas are those of the published description of manifold-constrained hyper-connections; the facts have shapes.
//   mix = (x * gamma) phi^T over all n * D numbers of a token, scaled = mix / rms(x);
//   pre = sigmoid(alpha0 scaled + bias) + hcEps, post = 2 sigmoid(alpha1 scaled + bias), res = alpha2 scaled + bias;
//   hIn = sum of pre * x.
// Sinkhorn begins with softmax of the rows plus eps and the columns divided by their sums plus eps; each further iteration
// divides rows and columns. Kept for the way back: softmax and then each quotient, and the divisors (of softmax, the sums of
// exponentials). Rows of what is kept may be longer than n; the rest is 0.
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// -- doubly stochastic -------------------------------------------------------------------------------------------------------
struct Kept {
    Values quotients, divisors;  // [2 * iterations][token][row of n]
};

// In place; x is (tokens, n, n).
Kept sinkhorn(Values& x, int64_t n, int64_t iterations, double eps) {
    Kept kept;
    size_t tokens = x.size() / size_t(n * n);
    for (int64_t step = 0; step < 2 * iterations; ++step) {
        bool columns = step % 2 == 1;
        for (size_t t = 0; t < tokens; ++t)
            for (int64_t i = 0; i < n; ++i) {
                auto at = [&](int64_t j) { return t * size_t(n * n) + size_t(columns ? j * n + i : i * n + j); };
                double top = -INFINITY, sum = 0;
                for (int64_t j = 0; j < n && step == 0; ++j) top = std::fmax(top, x[at(j)]);
                for (int64_t j = 0; j < n; ++j) {
                    if (step == 0) x[at(j)] = std::exp(x[at(j)] - top);
                    sum += x[at(j)];
                }
                if (step > 0) sum += eps;
                for (int64_t j = 0; j < n; ++j) x[at(j)] /= sum;
                kept.divisors.push_back(sum);
            }
        kept.quotients.insert(kept.quotients.end(), x.begin(), x.end());
        if (step == 0)
            for (double& v : x) v += eps;
    }
    return kept;
}

Values sinkhorn_back(Values g, const Kept& kept, int64_t n) {
    size_t tokens = g.size() / size_t(n * n), steps = kept.quotients.size() / std::max<size_t>(g.size(), 1);
    for (size_t step = steps; step-- > 0;)
        for (size_t t = 0; t < tokens; ++t)
            for (int64_t i = 0; i < n; ++i) {
                auto at = [&](int64_t j) { return t * size_t(n * n) + size_t(step % 2 == 1 ? j * n + i : i * n + j); };
                const double* y = kept.quotients.data() + step * g.size();
                double along = 0;
                for (int64_t j = 0; j < n; ++j) along += g[at(j)] * y[at(j)];
                double divisor = kept.divisors[(step * tokens + t) * size_t(n) + size_t(i)];
                for (int64_t j = 0; j < n; ++j) g[at(j)] = step == 0 ? y[at(j)] * (g[at(j)] - along) : (g[at(j)] - along) / divisor;
            }
    return g;
}

// How long rows of what is kept are; 0 where the tensor does not fit.
int64_t row_of(const Tensor& t, int64_t rows, int64_t n) { return rows > 0 && t.numel() % rows == 0 && t.numel() / rows >= n ? t.numel() / rows : 0; }

void plan_kept(const Plan& p, const char* norm, const char* sum, int64_t iterations, int64_t tokens, int64_t n) {
    p.require(p.has(norm) == p.has(sum), "%s and %s belong together", norm, sum);
    if (!p.has(norm)) return;
    p.require(row_of(p.tensor(norm), 2 * iterations * tokens * n, n) != 0, "%s has shape %s for %lld iterations", norm, text(p.tensor(norm).dims).c_str(), wide(iterations));
    p.require(row_of(p.tensor(sum), 2 * iterations * tokens, n) != 0, "%s has shape %s for %lld iterations", sum, text(p.tensor(sum).dims).c_str(), wide(iterations));
}

void write_rows(const Run& r, const char* name, const Values& x, int64_t n) {
    int64_t rows = int64_t(x.size()) / n, row = r.tensor(name).numel() / std::max<int64_t>(rows, 1);
    Values out(size_t(rows * row), 0);
    for (int64_t i = 0; i < rows * n; ++i) out[size_t(i / n * row + i % n)] = x[size_t(i)];
    r.write(r.tensor(name), out);
}

Values read_rows(const Run& r, const char* name, int64_t rows, int64_t n) {
    auto x = r.read<double>(r.tensor(name));
    int64_t row = int64_t(x.size()) / std::max<int64_t>(rows, 1);
    Values out;
    for (int64_t i = 0; i < rows * n; ++i) out.push_back(x[size_t(i / n * row + i % n)]);
    return out;
}

Kept read_kept(const Run& r, int64_t iterations, int64_t tokens, int64_t n) {
    return {read_rows(r, "normOut", 2 * iterations * tokens * n, n), read_rows(r, "sumOut", 2 * iterations * tokens, n)};
}

void plan_sinkhorn(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.require((d.n == 3 || d.n == 4) && d[d.n - 1] == d[d.n - 2] && d.back() > 0, "x has shape %s", text(d).c_str());
    p.require(p.integer("numIters") >= 1 && p.integer("numIters") <= 100, "numIters is %lld, expected 1 to 100", wide(p.integer("numIters")));
    p.same_shape("x", "output");
    plan_kept(p, "normOut", "sumOut", p.integer("numIters"), d.product() / (d.back() * d.back()), d.back());
}

void run_sinkhorn(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    int64_t n = r.tensor("x").dims.back();
    Kept kept = sinkhorn(x, n, r.integer("numIters"), r.real("eps"));
    r.write(r.tensor("output"), x);
    if (!r.has("normOut")) return;
    write_rows(r, "normOut", kept.quotients, n);
    write_rows(r, "sumOut", kept.divisors, n);
}

// The number of iterations is told by the size of what was kept: rows of n, or of 8 where those do not divide it.
int64_t iterations_of(const Tensor& sums, int64_t tokens, int64_t n) {
    for (int64_t row : {n, int64_t(8)})
        if (tokens > 0 && row >= n && sums.numel() % (2 * tokens * row) == 0) return sums.numel() / (2 * tokens * row);
    return 0;
}

void plan_sinkhorn_back(Plan& p) {
    const Dims& d = p.tensor("gradOutput").dims;
    p.require((d.n == 3 || d.n == 4) && d[d.n - 1] == d[d.n - 2] && d.back() > 0, "gradOutput has shape %s", text(d).c_str());
    int64_t n = d.back(), tokens = d.product() / (n * n), iterations = iterations_of(p.tensor("sumOut"), tokens, n);
    p.require(iterations > 0, "sumOut has shape %s", text(p.tensor("sumOut").dims).c_str());
    plan_kept(p, "normOut", "sumOut", iterations, tokens, n);
    p.same_shape("gradOutput", "out");
}

void run_sinkhorn_back(Run& r) {
    auto g = r.read<double>(r.tensor("gradOutput"));
    int64_t n = r.tensor("gradOutput").dims.back(), tokens = int64_t(g.size()) / (n * n);
    Kept kept = read_kept(r, iterations_of(r.tensor("sumOut"), tokens, n), tokens, n);
    r.write(r.tensor("out"), sinkhorn_back(g, kept, n));
}

// -- the weights of a token --------------------------------------------------------------------------------------------------
struct Streams {
    int64_t tokens, n, width;
    int64_t all() const { return n * width; }
    int64_t weights() const { return n * n + 2 * n; }
    int64_t kind(int64_t j) const { return j < n ? 0 : j < 2 * n ? 1 : 2; }
};

Streams streams(const Tensor& x) {
    const Dims& d = x.dims;
    return {d.product() / std::max<int64_t>(d[d.n - 1] * d[d.n - 2], 1), d[d.n - 2], d[d.n - 1]};
}

const char* gamma_name(const Call& c) { return has_parameter(c, "gammaOptional") ? "gammaOptional" : "gamma"; }

Streams plan_streams(const Plan& p) {
    const Dims& x = p.tensor("x").dims;
    p.require(x.n == 3 || x.n == 4, "x has shape %s", text(x).c_str());
    Streams s = streams(p.tensor("x"));
    p.shape("phi", {s.weights(), s.all()});
    p.shape("alpha", {3});
    if (has_parameter(p, "bias")) p.shape("bias", {s.weights()});
    if (given(p, gamma_name(p))) p.shape(gamma_name(p), {s.n, s.width});
    return s;
}

Dims per_token(const Call& c, std::initializer_list<int64_t> more) {
    Dims d = c.tensor("x").dims;
    d.n -= 2;
    for (int64_t size : more) d.push(size);
    return d;
}

void same_size(const Plan& p, const char* name, const Dims& want) {
    if (!given(p, name)) return;
    p.require(p.tensor(name).numel() == want.product(), "%s has shape %s, expected the elements of %s", name, text(p.tensor(name).dims).c_str(), text(want).c_str());
}

void plan_pre(Plan& p) {
    Streams s = plan_streams(p);
    bool mixed = has_parameter(p, "numIters");
    p.shape(mixed ? "hin" : "hIn", per_token(p, {s.width}));
    p.shape("hPost", per_token(p, {s.n}));
    same_size(p, "hRes", per_token(p, {s.n, s.n}));
    for (const char* name : {"hPre", "hPreOptional"}) same_size(p, name, per_token(p, {s.n}));
    for (const char* name : {"hMixOptional", "hcBeforeNorm"}) same_size(p, name, per_token(p, {s.weights()}));
    for (const char* name : {"invRms", "invRmsOptional"}) same_size(p, name, per_token(p, {}));
    if (!mixed) return;
    p.require(p.integer("hcMult") == s.n, "hcMult is %lld, x has shape %s", wide(p.integer("hcMult")), text(p.tensor("x").dims).c_str());
    p.require(p.integer("numIters") >= 1 && p.integer("numIters") <= 100, "numIters is %lld, expected 1 to 100", wide(p.integer("numIters")));
    if (p.flag("needBackward"))
        for (const char* name : {"hPre", "hcBeforeNorm", "invRms", "sumOut", "normOut"}) p.require(p.has(name), "needBackward is true and %s is null", name);
    plan_kept(p, "normOut", "sumOut", p.integer("numIters"), s.tokens, s.n);
}

void write_if(const Run& r, const char* name, const Values& x) {
    if (given(r, name)) r.write(r.tensor(name), x);
}

void run_pre(Run& r) {
    Streams s = streams(r.tensor("x"));
    auto x = r.read<double>(r.tensor("x")), phi = r.read<double>(r.tensor("phi")), alpha = r.read<double>(r.tensor("alpha")), bias = r.read<double>(r.tensor("bias"));
    Values gamma(size_t(s.all()), 1), pre, post, res, inverse, mixes, in(size_t(s.tokens * s.width), 0);
    if (given(r, gamma_name(r))) gamma = r.read<double>(r.tensor(gamma_name(r)));
    for (int64_t t = 0; t < s.tokens; ++t) {
        const double* row = x.data() + t * s.all();
        double square = 0;
        for (int64_t k = 0; k < s.all(); ++k) square += row[k] * row[k];
        inverse.push_back(1 / std::sqrt(square / double(s.all()) + r.real("normEps")));
        for (int64_t j = 0; j < s.weights(); ++j) {
            double mix = 0;
            for (int64_t k = 0; k < s.all(); ++k) mix += row[k] * gamma[size_t(k)] * phi[size_t(j * s.all() + k)];
            mixes.push_back(mix);
            double z = alpha[size_t(s.kind(j))] * mix * inverse.back() + bias[size_t(j)];
            if (s.kind(j) == 0) pre.push_back(sigmoid(z) + r.real("hcEps"));
            else if (s.kind(j) == 1) post.push_back(2 * sigmoid(z));
            else res.push_back(z);
        }
        for (int64_t k = 0; k < s.all(); ++k) in[size_t(t * s.width + k % s.width)] += pre[size_t(t * s.n + k / s.width)] * row[k];
    }
    if (has_parameter(r, "numIters")) {
        Kept kept = sinkhorn(res, s.n, r.integer("numIters"), r.real("hcEps"));
        if (r.has("normOut")) write_rows(r, "normOut", kept.quotients, s.n), write_rows(r, "sumOut", kept.divisors, s.n);
    }
    r.write(r.tensor(has_parameter(r, "hin") ? "hin" : "hIn"), in);
    r.write(r.tensor("hPost"), post);
    r.write(r.tensor("hRes"), res);
    for (const char* name : {"hPre", "hPreOptional"}) write_if(r, name, pre);
    for (const char* name : {"hMixOptional", "hcBeforeNorm"}) write_if(r, name, mixes);
    for (const char* name : {"invRms", "invRmsOptional"}) write_if(r, name, inverse);
}

void plan_pre_back(Plan& p) {
    Streams s = plan_streams(p);
    bool mixed = has_parameter(p, "normOut");
    p.shape(mixed ? "gradHin" : "gradHIn", per_token(p, {s.width}));
    p.shape("gradHPost", per_token(p, {s.n}));
    same_size(p, "gradHRes", per_token(p, {s.n, s.n}));
    for (const char* name : {"hPre", "hPost"}) same_size(p, name, per_token(p, {s.n}));
    for (const char* name : {"hMix", "hcBeforeNorm"}) same_size(p, name, per_token(p, {s.weights()}));
    same_size(p, "invRms", per_token(p, {}));
    same_size(p, "gradXPostOptional", p.tensor("x").dims);
    p.same_shape("x", "gradX");
    p.same_shape("phi", "gradPhi");
    p.shape("gradAlpha", {3});
    p.shape("gradBias", {s.weights()});
    if (given(p, "gradGamma")) p.shape("gradGamma", {s.n, s.width});
    if (!mixed) return;
    int64_t iterations = iterations_of(p.tensor("sumOut"), s.tokens, s.n);
    p.require(iterations > 0, "sumOut has shape %s", text(p.tensor("sumOut").dims).c_str());
    plan_kept(p, "normOut", "sumOut", iterations, s.tokens, s.n);
}

void run_pre_back(Run& r) {
    Streams s = streams(r.tensor("x"));
    bool mixed = has_parameter(r, "normOut");
    auto x = r.read<double>(r.tensor("x")), phi = r.read<double>(r.tensor("phi")), alpha = r.read<double>(r.tensor("alpha"));
    auto g_in = r.read<double>(r.tensor(mixed ? "gradHin" : "gradHIn")), g_post = r.read<double>(r.tensor("gradHPost")), g_res = r.read<double>(r.tensor("gradHRes"));
    auto inverse = r.read<double>(r.tensor("invRms")), mixes = r.read<double>(r.tensor(mixed ? "hcBeforeNorm" : "hMix")), pre = r.read<double>(r.tensor("hPre"));
    Values gamma(size_t(s.all()), 1), bias, post, dx(x.size(), 0), dphi(phi.size(), 0), dalpha(3, 0), dbias(size_t(s.weights()), 0), dgamma(gamma.size(), 0);
    if (given(r, "gamma")) gamma = r.read<double>(r.tensor("gamma"));
    if (mixed) {
        bias = r.read<double>(r.tensor("bias"));
        g_res = sinkhorn_back(g_res, read_kept(r, iterations_of(r.tensor("sumOut"), s.tokens, s.n), s.tokens, s.n), s.n);
    } else {
        post = r.read<double>(r.tensor("hPost"));
    }
    if (given(r, "gradXPostOptional")) dx = r.read<double>(r.tensor("gradXPostOptional"));
    for (int64_t t = 0; t < s.tokens; ++t) {
        const double *row = x.data() + t * s.all(), *mix = mixes.data() + t * s.weights();
        double *to = dx.data() + t * s.all(), inv = inverse[size_t(t)], dinv = 0;
        Values dmix;
        for (int64_t j = 0; j < s.weights(); ++j) {
            double g = 0, part = 0;
            if (s.kind(j) == 0) {
                for (int64_t d = 0; d < s.width; ++d) part += g_in[size_t(t * s.width + d)] * row[j * s.width + d];
                double y = pre[size_t(t * s.n + j)] - r.real("hcEps");
                g = part * y * (1 - y);
            } else if (s.kind(j) == 1) {
                double y = mixed ? sigmoid(alpha[1] * mix[j] * inv + bias[size_t(j)]) : post[size_t(t * s.n + j - s.n)] / 2;
                g = 2 * g_post[size_t(t * s.n + j - s.n)] * y * (1 - y);
            } else {
                g = g_res[size_t(t * s.n * s.n + j - 2 * s.n)];
            }
            dbias[size_t(j)] += g;
            dalpha[size_t(s.kind(j))] += g * mix[j] * inv;
            double back = g * alpha[size_t(s.kind(j))];
            dinv += back * mix[j];
            dmix.push_back(back * inv);
        }
        for (int64_t k = 0; k < s.all(); ++k) {
            double through = 0;
            for (int64_t j = 0; j < s.weights(); ++j) {
                through += dmix[size_t(j)] * phi[size_t(j * s.all() + k)];
                dphi[size_t(j * s.all() + k)] += dmix[size_t(j)] * row[k] * gamma[size_t(k)];
            }
            dgamma[size_t(k)] += through * row[k];
            to[k] += through * gamma[size_t(k)] - dinv * inv * inv * inv * row[k] / double(s.all()) + pre[size_t(t * s.n + k / s.width)] * g_in[size_t(t * s.width + k % s.width)];
        }
    }
    r.write(r.tensor("gradX"), dx);
    r.write(r.tensor("gradPhi"), dphi);
    r.write(r.tensor("gradAlpha"), dalpha);
    r.write(r.tensor("gradBias"), dbias);
    write_if(r, "gradGamma", dgamma);
}

}  // namespace

ACLNN(aclnnMhcSinkhorn, plan_sinkhorn, run_sinkhorn)
ACLNN(aclnnMhcSinkhornBackward, plan_sinkhorn_back, run_sinkhorn_back)
ACLNN(aclnnMhcPre, plan_pre, run_pre)
ACLNN(aclnnMhcPreBackward, plan_pre_back, run_pre_back)
ACLNN(aclnnMhcPreSinkhorn, plan_pre, run_pre)
ACLNN(aclnnMhcPreSinkhornBackward, plan_pre_back, run_pre_back)
