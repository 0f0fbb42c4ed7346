// Functions of newer documents that are small variations of others.
#include <algorithm>
#include <numeric>

#include "activation.h"
#include "norm.h"

using namespace emu;

namespace {

void plan_same(const Plan& p, const char* first, std::initializer_list<const char*> names) {
    for (const char* name : names) p.same_shape(first, name);
}

// -- an outer product, added -----------------------------------------------------------------------------------------
void plan_addr(Plan& p, const char* self, const char* out) {
    const Dims &a = p.tensor("vec1").dims, &b = p.tensor("vec2").dims;
    p.require(a.n == 1 && b.n == 1, "vec1 and vec2 must have 1 dimension");
    Dims want{a[0], b[0]}, both;
    p.require(broadcast(p.tensor(self).dims, want, &both) && both == want, "%s does not broadcast to %s", self,
              text(want).c_str());
    p.shape(out, want);
}

void run_addr(Run& r, const char* self, const char* out) {
    const Dims& d = r.tensor(out).dims;
    auto x = r.read<double>(r.tensor(self), d), a = r.read<double>(r.tensor("vec1")), b = r.read<double>(r.tensor("vec2"));
    double beta = r.has("betaOptional") ? r.scalar("betaOptional").as<double>() : 1;
    double alpha = r.has("alphaOptional") ? r.scalar("alphaOptional").as<double>() : 1;
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = (beta == 0 ? 0 : beta * x[i]) + alpha * a[i / b.size()] * b[i % b.size()];
    r.write(r.tensor(out), x);
}

// -- bits ------------------------------------------------------------------------------------------------------------
// Eight signs in a byte, the first one lowest; the last byte is filled up with 0.
void run_pack(Run& r) {
    auto x = r.read<double>(r.tensor("self"));
    std::vector<int64_t> out((x.size() + 7) / 8, 0);
    for (size_t i = 0; i < x.size(); ++i) out[i / 8] |= int64_t(x[i] >= 0) << i % 8;
    r.write(r.tensor("out"), out);
}

void run_unpack(Run& r) {
    auto x = r.read<int64_t>(r.tensor("self"));
    std::vector<double> out;
    for (int64_t byte : x)
        for (int bit = 0; bit < 8; ++bit) out.push_back(byte >> bit & 1 ? 1 : -1);
    r.write(r.tensor("out"), out);
}

// -- sums of segments: out[i][j] = exp(x[j + 1] + ... + x[i]), 0 above the diagonal ----------------------------------
void plan_segments(Plan& p, const char* x, const char* out) {
    Dims want = p.tensor(x).dims;
    want.push(want.back());
    p.shape(out, want);
}

void run_segments(Run& r) {
    auto x = r.read<double>(r.tensor("self"));
    size_t n = size_t(r.tensor("self").dims.back());
    std::vector<double> out(x.size() * n, 0);
    for (size_t row = 0; row < x.size() / n; ++row)
        for (size_t i = 0; i < n; ++i) {
            double sum = 0;
            for (size_t j = i + 1; j-- > 0;) {
                out[(row * n + i) * n + j] = std::exp(sum);
                sum += x[row * n + j];
            }
        }
    r.write(r.tensor("out"), out);
}

void run_segments_backward(Run& r) {
    auto g = r.read<double>(r.tensor("gradOutput")), y = r.read<double>(r.tensor("gradSelf"));
    size_t n = size_t(r.tensor("gradInput").dims.back());
    std::vector<double> dx(g.size() / n, 0);
    for (size_t row = 0; row < dx.size() / n; ++row)
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j <= i; ++j) {
                double flow = g[(row * n + i) * n + j] * y[(row * n + i) * n + j];
                for (size_t k = j + 1; k <= i; ++k) dx[row * n + k] += flow;
            }
    r.write(r.tensor("gradInput"), dx);
}

// -- rows shifted and scaled per sample ------------------------------------------------------------------------------
Tensor per_sample(Tensor t, const Dims& dims) {  // (B, H) or (B, 1, H) seen beside (B, S, H)
    if (t.rank() == dims.n) return t;
    Dims shape{t.dims[0]}, strides{t.strides[0]};
    for (int i = 0; i < dims.n - t.rank(); ++i) shape.push(1), strides.push(0);
    for (int i = 1; i < t.rank(); ++i) shape.push(t.dims[i]), strides.push(t.strides[i]);
    t.dims = shape, t.strides = strides;
    return t;
}

void plan_per_sample(const Plan& p, const char* x, const char* name) {
    if (!p.has(name)) return;
    const Dims& d = p.tensor(x).dims;
    const Tensor& t = p.tensor(name);
    Dims both;
    p.require(t.rank() >= 2 && t.rank() <= d.n && broadcast(per_sample(t, d).dims, d, &both) && both == d,
              "%s has shape %s, which does not fit %s", name, text(t.dims).c_str(), text(d).c_str());
}

std::vector<double> read_per_sample(const Run& r, const char* name, const Dims& d, double missing) {
    if (!r.has(name)) return std::vector<double>(size_t(d.product()), missing);
    return r.read<double>(per_sample(r.tensor(name), d), d);
}

void plan_modulate(Plan& p) {
    p.require(p.tensor("self").rank() == 3, "self has %d dimensions, expected 3", p.tensor("self").rank());
    p.same_shape("self", "out");
    for (const char* name : {"scaleOptional", "shiftOptional"}) plan_per_sample(p, "self", name);
}

void run_modulate(Run& r) {
    const Dims& d = r.tensor("self").dims;
    auto x = r.read<double>(r.tensor("self")), scale = read_per_sample(r, "scaleOptional", d, 0);
    auto shift = read_per_sample(r, "shiftOptional", d, 0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * (1 + scale[i]) + shift[i];
    r.write(r.tensor("out"), x);
}

void plan_ada(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.same_shape("x", "out");
    for (const char* name : {"scale", "shift"}) plan_per_sample(p, "x", name);
    for (const char* name : {"weightOptional", "biasOptional"})
        if (p.has(name)) p.shape(name, {d.back()});
    if (p.function->count < 9) return;
    for (const char* name : {"meanOutOptional", "rstdOutOptional"})
        if (p.has(name)) p.shape(name, statistics_shape(d, 1));
}

void run_ada(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto x = r.read<double>(r.tensor("x"));
    size_t length = size_t(d.back());
    Moments m = moments(x, d.product() > 0 ? int64_t(x.size() / length) : Dims(d.begin(), uint64_t(d.n - 1)).product(), r.real("epsilon"));
    normalize(x, m.mean, m.rstd);
    std::vector<double> w(length, 1), b(length, 0);
    if (r.has("weightOptional")) w = r.read<double>(r.tensor("weightOptional"));
    if (r.has("biasOptional")) b = r.read<double>(r.tensor("biasOptional"));
    auto scale = read_per_sample(r, "scale", d, 0), shift = read_per_sample(r, "shift", d, 0);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = (x[i] * w[i % length] + b[i % length]) * (1 + scale[i]) + shift[i];
    r.write(r.tensor("out"), x);
    if (r.function->count < 9) return;
    if (r.has("meanOutOptional")) r.write(r.tensor("meanOutOptional"), m.mean);
    if (r.has("rstdOutOptional")) r.write(r.tensor("rstdOutOptional"), m.rstd);
}

// -- sampling --------------------------------------------------------------------------------------------------------
void plan_top(Plan& p) {
    const Dims& d = p.tensor("logits").dims;
    p.same_shape("logits", "out");
    for (const char* name : {"p", "k"})
        if (p.has(name)) p.shape(name, {d[0]});
    p.same_dtype("logits", "out");
}

// What is below the k-th largest becomes -infinity; then what lies below the smallest set of probability p.
void run_top(Run& r) {
    const Dims& d = r.tensor("logits").dims;
    auto x = r.read<double>(r.tensor("logits"));
    size_t size = size_t(d[1]);
    std::vector<double> share(size_t(d[0]), 1);
    std::vector<int64_t> most(size_t(d[0]), d[1]);
    if (r.has("p")) share = r.read<double>(r.tensor("p"));
    if (r.has("k")) most = r.read<int64_t>(r.tensor("k"));
    for (size_t row = 0; row < most.size(); ++row) {
        double* line = x.data() + row * size;
        std::vector<size_t> order(size);
        std::iota(order.begin(), order.end(), size_t(0));
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return line[a] < line[b]; });
        int64_t k = std::min<int64_t>(std::max<int64_t>(most[row], 1), d[1]);
        double least = line[order[size - size_t(k)]];
        for (size_t i = 0; i < size; ++i)
            if (line[i] < least) line[i] = -INFINITY;
        double top = line[order.back()], sum = 0, below = 0;
        for (size_t i = 0; i < size; ++i) sum += std::exp(line[i] - top);
        for (size_t i = 0; i + 1 < size; ++i) {  // from the least on; the largest always stays
            below += std::exp(line[order[i]] - top) / sum;
            if (below <= 1 - share[row]) line[order[i]] = -INFINITY;
        }
    }
    r.write(r.tensor("out"), x);
}

// -- query, key and value of one product -----------------------------------------------------------------------------
void plan_qkv(Plan& p) {
    const Dims& d = p.tensor("qkv").dims;
    int64_t heads = p.integer("numHeads");
    p.require(heads > 0 && d[2] % (3 * heads) == 0, "qkv has shape %s, which %lld heads do not divide", text(d).c_str(),
              static_cast<long long>(heads));
    p.shape("qkvBias", {d[2]});
    for (const char* name : {"qOut", "kOut", "vOut"}) p.shape(name, {d[0], heads, d[1], d[2] / (3 * heads)});
}

void run_qkv(Run& r) {
    const Dims& d = r.tensor("qkv").dims;
    auto x = r.read<double>(r.tensor("qkv")), bias = r.read<double>(r.tensor("qkvBias"));
    int64_t heads = r.integer("numHeads"), size = d[2] / (3 * heads);
    const char* names[] = {"qOut", "kOut", "vOut"};
    for (int64_t part = 0; part < 3; ++part) {
        std::vector<double> y;
        double scale = part == 0 ? 1 / std::sqrt(double(size)) : 1;
        for (int64_t b = 0; b < d[0]; ++b)
            for (int64_t h = 0; h < heads; ++h)
                for (int64_t t = 0; t < d[1]; ++t)
                    for (int64_t k = 0; k < size; ++k) {
                        int64_t column = (part * heads + h) * size + k;
                        y.push_back((x[size_t((b * d[1] + t) * d[2] + column)] + bias[size_t(column)]) * scale);
                    }
        r.write(r.tensor(names[part]), y);
    }
}

// -- distances -------------------------------------------------------------------------------------------------------
void run_pairs(Run& r) {
    const Dims& d = r.tensor("self").dims;
    auto x = r.read<double>(r.tensor("self"));
    double order = r.scalar("pScalar").as<double>();
    std::vector<double> out;
    for (int64_t i = 0; i < d[0]; ++i)
        for (int64_t j = i + 1; j < d[0]; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < d[1]; ++k) {
                double apart = std::fabs(x[size_t(i * d[1] + k)] - x[size_t(j * d[1] + k)]);
                if (std::isinf(order)) sum = std::fmax(sum, apart);
                else sum += order == 0 ? double(apart != 0) : std::pow(apart, order);
            }
            out.push_back(std::isinf(order) || order == 0 ? sum : std::pow(sum, 1 / order));
        }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnAddrV2, PLAN { plan_addr(p, "self", "out"); }, RUN { run_addr(r, "self", "out"); })
ACLNN(aclnnInplaceAddrV2, PLAN { plan_addr(p, "selfRef", "selfRef"); }, RUN { run_addr(r, "selfRef", "selfRef"); })
ACLNN(aclnnSignBitsPack,
      PLAN {
          int64_t rows = p.integer("size"), bytes = (p.tensor("self").numel() + 7) / 8;
          p.require(rows > 0 && bytes % rows == 0, "size is %lld for %lld bytes", static_cast<long long>(rows),
                    static_cast<long long>(bytes));
          p.shape("out", {rows, bytes / rows});
      },
      run_pack)
ACLNN(aclnnSignBitsUnpack,
      PLAN {
          int64_t rows = p.integer("size"), signs = p.tensor("self").numel() * 8;
          p.require(rows > 0 && signs % rows == 0, "size is %lld for %lld signs", static_cast<long long>(rows),
                    static_cast<long long>(signs));
          p.shape("out", {rows, signs / rows});
          p.require(p.dtype("dtype") == p.tensor("out").dtype, "dtype is not that of out");
      },
      run_unpack)
ACLNN(aclnnExpSegsum, PLAN { plan_segments(p, "self", "out"); p.same_dtype("self", "out"); }, run_segments)
ACLNN(aclnnExpSegsumBackward,
      PLAN { plan_segments(p, "gradInput", "gradOutput"); plan_same(p, "gradOutput", {"gradSelf"}); },
      run_segments_backward)
ACLNN(aclnnModulate, plan_modulate, run_modulate)
ACLNN(aclnnAdaLayerNorm, plan_ada, run_ada)
ACLNN(aclnnAdaLayerNormV2, plan_ada, run_ada)
ACLNN(aclnnApplyTopKTopP, plan_top, run_top)
ACLNN(aclnnTransformBiasRescaleQkv, plan_qkv, run_qkv)
ACLNN(aclnnPdistForward,
      PLAN {
          int64_t n = p.tensor("self").dims[0];
          p.shape("out", {n * (n - 1) / 2});
          p.require(p.scalar("pScalar").as<double>() >= 0, "pScalar must not be negative");
      },
      run_pairs)
