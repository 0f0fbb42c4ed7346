// Distances between rows, and cross products.
#include <cmath>

#include "kernel.h"

using namespace emu;

namespace {

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// The p-norm of a - b.
double distance(const double* a, const double* b, int64_t n, double p) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        double d = std::fabs(a[i] - b[i]);
        if (p == 0) sum += d != 0;
        else if (std::isinf(p)) sum = d > sum || std::isnan(d) ? d : sum;
        else sum += p == 1 ? d : p == 2 ? d * d : std::pow(d, p);
    }
    return p == 0 || p == 1 || std::isinf(p) ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

// The derivative of the distance by one element of a, given that element's difference.
double slope(double difference, double total, double p) {
    if (p == 0 || total == 0) return 0;
    if (p == 1) return sign(difference);
    if (std::isinf(p)) return std::fabs(difference) == total ? sign(difference) : 0;
    if (p == 2) return difference / total;
    return difference == 0 ? 0 : sign(difference) * std::pow(std::fabs(difference) / total, p - 1);
}

void plan_p(const Plan& p) {
    double given = p.real("p");
    p.require(given >= 0, "p is %g, expected 0 or more", given);
}

Dims batch_of(const Dims& d) { return Dims(d.v.data(), uint64_t(d.n - 2)); }

struct Pairs {
    Dims first, second, out;
    int64_t batch = 1, rows = 0, others = 0, length = 0;
};

bool pairs_of(const Dims& a, const Dims& b, Pairs* s) {
    Dims batch;
    if (a.n < 2 || b.n < 2 || a.back() != b.back() || !broadcast(batch_of(a), batch_of(b), &batch)) return false;
    s->batch = batch.product();
    s->rows = a[a.n - 2];
    s->others = b[b.n - 2];
    s->length = a.back();
    s->first = s->second = s->out = batch;
    for (int64_t size : {s->rows, s->length}) s->first.push(size);
    for (int64_t size : {s->others, s->length}) s->second.push(size);
    for (int64_t size : {s->rows, s->others}) s->out.push(size);
    return true;
}

Pairs plan_pairs(const Plan& p) {
    plan_p(p);
    Pairs s;
    const Dims &a = p.tensor("x1").dims, &b = p.tensor("x2").dims;
    p.require(pairs_of(a, b, &s), "x1 and x2 have shapes %s and %s, which do not fit", text(a).c_str(),
              text(b).c_str());
    return s;
}

void plan_cdist(Plan& p) {
    Pairs s = plan_pairs(p);
    int64_t mode = p.integer("compute_mode");
    p.require(mode >= 0 && mode <= 2, "compute_mode is %lld, expected 0, 1 or 2", static_cast<long long>(mode));
    p.shape("out", s.out);
}

void run_cdist(Run& r) {
    Pairs s;
    pairs_of(r.tensor("x1").dims, r.tensor("x2").dims, &s);
    auto a = r.read<double>(r.tensor("x1"), s.first), b = r.read<double>(r.tensor("x2"), s.second);
    std::vector<double> out;
    for (int64_t n = 0; n < s.batch; ++n)
        for (int64_t i = 0; i < s.rows; ++i)
            for (int64_t j = 0; j < s.others; ++j)
                out.push_back(distance(a.data() + (n * s.rows + i) * s.length, b.data() + (n * s.others + j) * s.length,
                                       s.length, r.real("p")));
    r.write(r.tensor("out"), out);
}

void plan_cdist_backward(Plan& p) {
    Pairs s = plan_pairs(p);
    for (const char* name : {"x1", "x2", "cdist", "out"}) p.same_dtype("grad", name);
    for (const char* name : {"grad", "cdist"}) p.shape(name, s.out);
    p.require(p.tensor("x1").dims == s.first, "x1 has shape %s, expected %s", text(p.tensor("x1").dims).c_str(),
              text(s.first).c_str());
    p.shape("out", s.first);
}

void run_cdist_backward(Run& r) {
    Pairs s;
    pairs_of(r.tensor("x1").dims, r.tensor("x2").dims, &s);
    auto a = r.read<double>(r.tensor("x1")), b = r.read<double>(r.tensor("x2"), s.second);
    auto g = r.read<double>(r.tensor("grad")), d = r.read<double>(r.tensor("cdist"));
    std::vector<double> out(a.size());
    double p = r.real("p");
    for (int64_t n = 0; n < s.batch; ++n)
        for (int64_t i = 0; i < s.rows; ++i)
            for (int64_t j = 0; j < s.others; ++j) {
                size_t row = size_t((n * s.rows + i) * s.length), other = size_t((n * s.others + j) * s.length);
                size_t pair = size_t((n * s.rows + i) * s.others + j);
                // Which difference is the greatest: the distance that was stored is rounded, none may equal it.
                double total = std::isinf(p) ? distance(&a[row], &b[other], s.length, p) : d[pair];
                for (size_t k = 0; k < size_t(s.length); ++k)
                    out[row + k] += g[pair] * slope(a[row + k] - b[other + k], total, p);
            }
    r.write(r.tensor("out"), out);
}

void plan_pdist(Plan& p) {
    plan_p(p);
    int64_t n = p.tensor("self").dims[0];
    p.shape("out", {n * (n - 1) / 2});
    p.same_dtype("self", "out");
}

void run_pdist(Run& r) {
    const Dims& d = r.tensor("self").dims;
    auto x = r.read<double>(r.tensor("self"));
    std::vector<double> out;
    for (int64_t i = 0; i < d[0]; ++i)
        for (int64_t j = i + 1; j < d[0]; ++j)
            out.push_back(distance(x.data() + i * d[1], x.data() + j * d[1], d[1], r.real("p")));
    r.write(r.tensor("out"), out);
}

// -- LinalgCross -----------------------------------------------------------------------------------------------------
void plan_cross(Plan& p) {
    const Tensor &a = p.tensor("self"), &b = p.tensor("other");
    Dims shape = broadcast_all(p, {&a.dims, &b.dims});
    int64_t axis = p.axis("dim", shape.n);
    p.require(a.rank() == b.rank() && shape.n > 0 && a.dims[int(axis)] == 3 && b.dims[int(axis)] == 3,
              "self and other have shapes %s and %s, expected 3 elements along dim %lld", text(a.dims).c_str(),
              text(b.dims).c_str(), static_cast<long long>(axis));
    p.shape("out", shape);
    int dtype = promote(a.dtype, b.dtype);
    p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of self and other do not promote");
    p.casts(dtype, "out");
}

void run_cross(Run& r) {
    const Tensor &a = r.tensor("self"), &b = r.tensor("other"), &out = r.tensor("out");
    Lines lines(out.dims, wrap(r.integer("dim"), out.rank()));
    by_category(category(promote(a.dtype, b.dtype)), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(a, out.dims), y = r.read<T>(b, out.dims);
        std::vector<T> z(x.size());
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t i = 0; i < lines.inner; ++i)
                for (int64_t k = 0; k < 3; ++k) {
                    size_t next = size_t(lines.at(o, (k + 1) % 3, i)), after = size_t(lines.at(o, (k + 2) % 3, i));
                    z[size_t(lines.at(o, k, i))] = x[next] * y[after] - x[after] * y[next];
                }
        r.write(out, z);
    });
}

}  // namespace

ACLNN(aclnnCdist, plan_cdist, run_cdist)
ACLNN(aclnnCdistBackward, plan_cdist_backward, run_cdist_backward)
ACLNN(aclnnPdist, plan_pdist, run_pdist)
ACLNN(aclnnLinalgCross, plan_cross, run_cross)
