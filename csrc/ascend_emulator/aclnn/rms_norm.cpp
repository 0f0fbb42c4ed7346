// Root mean square normalization, alone or after an addition.
#include "norm.h"

using namespace emu;

namespace {

// The rows end where gamma begins: gamma spans the trailing dimensions.
void plan_rms(const Plan& p, const char* x, std::initializer_list<const char*> same) {
    const Dims &dims = p.tensor(x).dims, &tail = p.tensor("gamma").dims;
    p.require(tail.n >= 1 && ends_with(dims, tail), "gamma has shape %s, which is not the end of %s",
              text(tail).c_str(), text(dims).c_str());
    for (const char* name : same) p.same_shape(x, name);
    if (settings().chip == Chip::k310P)
        p.require(dims.back() * int64_t(size_of(p.tensor(x).dtype)) >= 32,
                  "the last dimension has %lld elements, this chip (310P) needs 32 bytes",
                  static_cast<long long>(dims.back()));
}

void plan_rstd(const Plan& p, const char* x) {
    p.shape("rstdOut", statistics_shape(p.tensor(x).dims, p.tensor("gamma").rank()));
}

// x becomes x / rms(x) * (offset + gamma); answers 1 / rms of each row.
std::vector<double> rms(const Run& r, std::vector<double>& x, const Dims& dims, double offset) {
    auto gamma = r.read<double>(r.tensor("gamma"));
    int64_t rows = leading(dims, r.tensor("gamma").rank()), length = int64_t(gamma.size());
    std::vector<double> rstd;
    for (int64_t i = 0; i < rows; ++i) {
        double* row = x.data() + i * length;
        double squares = 0;
        for (int64_t k = 0; k < length; ++k) squares += row[k] * row[k];
        rstd.push_back(inverse_root(squares / double(length), r.real("epsilon")));
        for (int64_t k = 0; k < length; ++k) row[k] *= rstd.back() * (offset + gamma[size_t(k)]);
    }
    return rstd;
}

void plan_rms_norm(Plan& p) {
    plan_rms(p, "x", {"yOut"});
    plan_rstd(p, "x");
}

template <int offset>
void run_rms_norm(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    auto rstd = rms(r, x, r.tensor("x").dims, offset);
    r.write(r.tensor("yOut"), x);
    r.write(r.tensor("rstdOut"), rstd);
}

void plan_rms_norm_grad(Plan& p) {
    plan_rms(p, "x", {"dy", "dxOut"});
    p.same_shape("gamma", "dgammaOut");
    int64_t rows = leading(p.tensor("x").dims, p.tensor("gamma").rank());
    p.require(p.tensor("rstd").numel() == rows, "rstd has shape %s, expected %lld elements, one per row",
              text(p.tensor("rstd").dims).c_str(), static_cast<long long>(rows));
}

void run_rms_norm_grad(Run& r) {
    auto dy = r.read<double>(r.tensor("dy")), x = r.read<double>(r.tensor("x"));
    auto rstd = r.read<double>(r.tensor("rstd")), gamma = r.read<double>(r.tensor("gamma"));
    size_t length = gamma.size();
    std::vector<double> dgamma(length), dx(x.size());
    for (size_t row = 0; row < rstd.size(); ++row) {
        double product = 0;
        for (size_t k = 0; k < length; ++k) {
            size_t i = row * length + k;
            double normalized = x[i] * rstd[row];
            dgamma[k] += dy[i] * normalized;
            product += dy[i] * gamma[k] * normalized;
        }
        for (size_t k = 0; k < length; ++k) {
            size_t i = row * length + k;
            dx[i] = rstd[row] * (dy[i] * gamma[k] - x[i] * rstd[row] * product / double(length));
        }
    }
    r.write(r.tensor("dxOut"), dx);
    r.write(r.tensor("dgammaOut"), dgamma);
}

// -- of a sum --------------------------------------------------------------------------------------------------------
std::vector<double> sum_of(const Run& r, const Tensor& a, const Tensor& b) {
    auto x = r.read<double>(a), y = r.read<double>(b);
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
}

void plan_add(Plan& p) {
    plan_rms(p, "x1", {"x2", "yOut"});
    p.same_dtype("x1", "gamma");
    p.same_dtype("x1", "x2");
    for (const char* name : {"rstdOut", "xOut"})
        if (!p.has(name)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null", name);
    p.same_shape("x1", "xOut");
    plan_rstd(p, "x1");
}

void run_add(Run& r) {
    auto x = sum_of(r, r.tensor("x1"), r.tensor("x2"));
    r.write(r.tensor("xOut"), x);
    auto rstd = rms(r, x, r.tensor("x1").dims, 0);
    r.write(r.tensor("yOut"), x);
    r.write(r.tensor("rstdOut"), rstd);
}

void plan_add_cast(Plan& p) {
    plan_rms(p, "x1", {"x2", "y1Out", "y2Out", "xOut"});
    p.same_dtype("x1", "gamma");
    p.same_dtype("x1", "x2");
    plan_rstd(p, "x1");
}

void run_add_cast(Run& r) {
    auto x = sum_of(r, r.tensor("x1"), r.tensor("x2"));
    r.write(r.tensor("xOut"), x);
    auto rstd = rms(r, x, r.tensor("x1").dims, 0);
    r.write(r.tensor("y1Out"), x);
    r.write(r.tensor("y2Out"), x);
    r.write(r.tensor("rstdOut"), rstd);
}

void plan_add_in_place(Plan& p) {
    plan_rms(p, "x1Ref", {"x2Ref"});
    plan_rstd(p, "x1Ref");
}

// x1 receives the normalized sum, x2 the sum.
void run_add_in_place(Run& r) {
    const Tensor &a = r.tensor("x1Ref"), &b = r.tensor("x2Ref");
    auto x = sum_of(r, a, b);
    r.write(b, x);
    auto rstd = rms(r, x, a.dims, 0);
    r.write(a, x);
    r.write(r.tensor("rstdOut"), rstd);
}

}  // namespace

ACLNN(aclnnRmsNorm, plan_rms_norm, run_rms_norm<0>)
ACLNN(aclnnGemmaRmsNorm, PLAN { p.same_dtype("x", "gamma"); plan_rms_norm(p); }, run_rms_norm<1>)
ACLNN(aclnnRmsNormGrad, plan_rms_norm_grad, run_rms_norm_grad)
ACLNN(aclnnAddRmsNorm, plan_add, run_add)
ACLNN(aclnnAddRmsNormCast, plan_add_cast, run_add_cast)
ACLNN(aclnnInplaceAddRmsNorm, plan_add_in_place, run_add_in_place)
