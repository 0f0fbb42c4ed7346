// Functions that belong to no family: a doubly stochastic matrix, masked windows, an optimizer
// with a running average, diagonals.
#include <cmath>

#include "norm.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

// -- rows and columns in turn are scaled to equal sums, until the scales no longer move -------------------------------
void run_sinkhorn(Run& r) {
    const Dims& d = r.tensor("cost").dims;
    auto x = r.read<double>(r.tensor("cost"));
    double tolerance = r.has("tol") ? r.scalar("tol").as<double>() : 1e-4, error = INFINITY;
    constexpr double tiny = 1e-8;
    constexpr int most = 10000;
    Values rows(size_t(d[0]), 1), columns(size_t(d[1]), 1);
    for (double& v : x) v = std::exp(v);
    for (int step = 0; error > tolerance && step < most; ++step) {
        for (int64_t i = 0; i < d[0]; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < d[1]; ++j) sum += columns[size_t(j)] * x[size_t(i * d[1] + j)];
            rows[size_t(i)] = 1 / double(d[0]) / (sum + tiny);
        }
        error = 0;
        for (int64_t j = 0; j < d[1]; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < d[0]; ++i) sum += rows[size_t(i)] * x[size_t(i * d[1] + j)];
            double fresh = 1 / double(d[1]) / (sum + tiny);
            error += std::fabs(fresh - columns[size_t(j)]) / double(d[1]);
            columns[size_t(j)] = fresh;
        }
    }
    for (size_t i = 0; i < x.size(); ++i) x[i] *= rows[i / size_t(d[1])] * columns[i % size_t(d[1])];
    r.write(r.tensor("p"), x);
}

// -- softmax of windows: (batch, windows, heads, s1, s2) --------------------------------------------------------------
// A mask has no heads, a bias no windows; missing dimensions are 1.
Dims seen_as(const Dims& small, int whole, int left_out) {
    Dims out;
    int64_t kept[8];
    int n = 0;
    for (int i = 0; i < small.n; ++i)
        if (!(small.n == whole && i == left_out)) kept[n++] = small[i];
    for (int i = 0; i < whole; ++i) out.push(1);
    int at = whole - 1;
    for (int i = n; i-- > 0; --at) {
        if (at == left_out) --at;
        if (at >= 0) out[at] = kept[i];
    }
    return out;
}

// Four dimensions hold (batch * windows, heads, s1, s2); the mask says how many windows there are.
Dims windows_of(const Call& c) {
    const Dims& d = c.tensor("x").dims;
    if (d.n == 5) return d;
    int64_t window = d[2] * d[3], many = c.has("attenMaskOptional") && window > 0 ? c.tensor("attenMaskOptional").numel() / window : 1;
    return many > 0 && d[0] % many == 0 ? Dims({d[0] / many, many, d[1], d[2], d[3]}) : Dims({d[0], 1, d[1], d[2], d[3]});
}

Tensor as_seen(const Call& c, const char* name, int left_out) {
    Tensor t = c.tensor(name);
    t.dims = seen_as(t.dims, 5, left_out);
    t.strides = contiguous_strides(t.dims);
    return t;
}

constexpr int kWindows = 1, kHeads = 2;

void plan_windows(Plan& p) {
    int rank = p.tensor("x").rank();
    p.require(rank == 4 || rank == 5, "x has %d dimensions, expected 4 or 5", rank);
    Dims d = windows_of(p);
    plan_number(p, "innerPrecisionMode", 1);
    p.same_shape("x", "out");
    auto fits = [&](const char* name, int left_out) {
        p.require(p.tensor(name).rank() >= 3 && p.tensor(name).rank() <= 5 && p.tensor(name).contiguous(),
                  "%s has shape %s", name, text(p.tensor(name).dims).c_str());
        Dims both, seen = seen_as(p.tensor(name).dims, 5, left_out);
        p.require(seen.product() == p.tensor(name).numel() && broadcast(seen, d, &both) && both == d,
                  "%s has shape %s, which does not fit %s", name, text(p.tensor(name).dims).c_str(), text(d).c_str());
    };
    if (p.has("attenMaskOptional")) fits("attenMaskOptional", kHeads);
    fits("relativePosBias", kWindows);
}

void run_windows(Run& r) {
    Dims d = windows_of(r);
    auto x = r.read<double>(r.tensor("x")), bias = r.read<double>(as_seen(r, "relativePosBias", kWindows), d);
    Values mask(x.size(), 0);
    if (r.has("attenMaskOptional")) mask = r.read<double>(as_seen(r, "attenMaskOptional", kHeads), d);
    size_t length = size_t(d.back());
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * r.real("scaleValue") + mask[i] + bias[i];
    for (size_t row = 0; row < x.size(); row += length) {
        double top = -INFINITY, sum = 0;
        for (size_t k = row; k < row + length; ++k) top = std::fmax(top, x[k]);
        for (size_t k = row; k < row + length; ++k) sum += x[k] = std::exp(x[k] - top);
        for (size_t k = row; k < row + length; ++k) x[k] /= sum;
    }
    r.write(r.tensor("out"), x);
}

// -- Adam with a running average of the parameters --------------------------------------------------------------------
void run_average(Run& r) {
    auto g = r.read<double>(r.tensor("grad")), x = r.read<double>(r.tensor("varRef"));
    auto m = r.read<double>(r.tensor("mRef"));
    auto v = r.read<double>(r.tensor("vRef")), s = r.read<double>(r.tensor("sRef"));
    double step = r.read<double>(r.tensor("step"))[0], beta1 = r.real("beta1"), beta2 = r.real("beta2");
    bool corrects = r.flag("biasCorrection"), decoupled = r.integer("mode") == 1;
    double first = corrects ? 1 - std::pow(beta1, step) : 1, second = corrects ? 1 - std::pow(beta2, step) : 1;
    double decay = r.real("weightDecay"), ema = r.real("emaDecay");
    for (size_t i = 0; i < x.size(); ++i) {
        double slope = g[i] + (decoupled ? 0 : decay * x[i]);
        m[i] = beta1 * m[i] + (1 - beta1) * slope;
        v[i] = beta2 * v[i] + (1 - beta2) * slope * slope;
        double update = m[i] / first / (std::sqrt(v[i] / second) + r.real("eps")) + (decoupled ? decay * x[i] : 0);
        x[i] -= r.real("lr") * update;
        s[i] = ema * s[i] + (1 - ema) * x[i];
    }
    r.write(r.tensor("varRef"), x);
    r.write(r.tensor("mRef"), m);
    r.write(r.tensor("vRef"), v);
    r.write(r.tensor("sRef"), s);
}

// -- the diagonal of (a, b, ..., a, b, ...) ---------------------------------------------------------------------------
void plan_diagonal(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.require(d.n >= 2 && d.n % 2 == 0, "x has %d dimensions, expected an even number", d.n);
    Dims half = d;
    half.n /= 2;
    for (int i = 0; i < half.n; ++i)
        p.require(d[i] == d[half.n + i], "x has shape %s; its halves must be equal", text(d).c_str());
    p.shape("y", half);
    p.same_dtype("x", "y");
}

void run_diagonal(Run& r) {
    int64_t n = r.tensor("y").numel();
    by_category(category(r.tensor("x").dtype), [&](auto zero) {
        auto x = r.read<decltype(zero)>(r.tensor("x"));
        decltype(x) y;
        for (int64_t i = 0; i < n; ++i) y.push_back(x[size_t(i * n + i)]);
        r.write(r.tensor("y"), y);
    });
}

}  // namespace

ACLNN(aclnnSinkhorn,
      PLAN {
          p.require(p.tensor("cost").rank() == 2, "cost has %d dimensions, expected 2", p.tensor("cost").rank());
          p.same_shape("cost", "p");
      },
      run_sinkhorn)
ACLNN(aclnnMaskedSoftmaxWithRelPosBias, plan_windows, run_windows)
ACLNN(aclnnApplyFusedEmaAdam,
      PLAN {
          for (const char* name : {"varRef", "mRef", "vRef", "sRef"}) {
              p.same_shape("grad", name);
              p.same_dtype("grad", name);
          }
          p.require(p.tensor("step").numel() == 1, "step must have one element");
          p.require(p.integer("mode") == 0 || p.integer("mode") == 1, "mode must be 0 or 1");
      },
      run_average)
ACLNN(aclnnDiagPart, plan_diagonal, run_diagonal)
// As LogSoftmax, in the experimental library's own name.
ACLNN(aclnnLogSoftmaxV2,
      PLAN {
          p.same_shape("self", "out");
          p.axis("dim", p.tensor("self").rank());
      },
      RUN {
          const Dims& d = r.tensor("self").dims;
          auto x = r.read<double>(r.tensor("self"));
          Lines lines(d, wrap(r.integer("dim"), std::max(d.n, 1)));
          for (int64_t o = 0; o < lines.outer; ++o)
              for (int64_t i = 0; i < lines.inner; ++i) {
                  double top = -INFINITY, sum = 0;
                  for (int64_t k = 0; k < lines.length; ++k) top = std::fmax(top, x[size_t(lines.at(o, k, i))]);
                  for (int64_t k = 0; k < lines.length; ++k) sum += std::exp(x[size_t(lines.at(o, k, i))] - top);
                  for (int64_t k = 0; k < lines.length; ++k) x[size_t(lines.at(o, k, i))] -= top + std::log(sum);
              }
          r.write(r.tensor("out"), x);
      })
// MseLoss without a reduction: the squares themselves.
ACLNN(aclnnMseLossOut,
      PLAN {
          int64_t reduction = p.integer("reduction");
          p.require(reduction == 0, "reduction is %lld, expected 0", static_cast<long long>(reduction));
          p.shape("out", broadcast_all(p, {&p.tensor("self").dims, &p.tensor("target").dims}));
          p.casts(promote(p.tensor("self").dtype, p.tensor("target").dtype), "out");
      },
      RUN {
          const Dims& d = r.tensor("out").dims;
          auto x = r.read<double>(r.tensor("self"), d), t = r.read<double>(r.tensor("target"), d);
          for (size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - t[i]) * (x[i] - t[i]);
          r.write(r.tensor("out"), x);
      })
