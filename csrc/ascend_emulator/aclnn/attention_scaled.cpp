// Attention of small floats whose blocks of tokens have scales of their own.
//
// The facts have dtypes and ranks; the formula is that of the function's public description:
//   out = (small(softmax(q * dScaleQ @ (k * dScaleK)^T * scaleValue) * pScale) @ (v * dScaleV)) / pScale
// A scale belongs to 128 queries, and to 256 keys (or 128, as its shape says), of one head. Statistics of a query are its
// largest score and the sum of exponentials, stored as often as their last dimension says. A mask of sparseMode 0 hides where
// it is not 0; 2 and 3 hide what is behind the diagonal that begins at the first, or ends at the last, token. Back, with p the
// softmax, of which small(p * pScale) / pScale goes on, and g = dy * dScaleDy: ds = p * (g @ (v * dScaleV)^T - sum(g * out)),
// of which small(ds * dsScale) / dsScale goes on; dq = ds @ (k * dScaleK), dk = ds^T @ (q * dScaleQ), both times scaleValue,
// dv = p^T @ g. Results have the dtype of their tensors, which outDtype repeats.
#include "kernel.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

constexpr int64_t kQueryBlock = 128, kKeyBlock = 256;
enum Sparse { kGiven = 0, kLeftUp = 2, kRightDown = 3 };

// (batch, heads, tokens, width), wherever the layout has them.
Tensor by_head(Tensor t, const std::string& layout) {
    if (layout == "BSND") std::swap(t.dims[1], t.dims[2]), std::swap(t.strides[1], t.strides[2]);
    return t;
}

int64_t blocks_of(int64_t tokens, int64_t block) { return (tokens + block - 1) / block; }

// How many tokens a scale belongs to; 0 where its shape fits neither.
int64_t block_of(const Tensor& scale, const Dims& d, int64_t first) {
    for (int64_t block : {first, kQueryBlock})
        if (scale.dims == Dims{d[0], d[1], blocks_of(d[2], block), 1}) return block;
    return 0;
}

// `k`: the name of the keys. What both ways have in common.
std::pair<Dims, Dims> plan_operands(const Plan& p, const char* k_name) {
    const std::string& layout = p.string("inputLayout");
    p.require(layout == "BNSD" || layout == "BSND", "inputLayout is \"%s\", expected BNSD or BSND", layout.c_str());
    p.require(p.tensor("query").rank() == 4 && p.tensor(k_name).rank() == 4 && p.tensor("value").rank() == 4, "query, %s and value need 4 dimensions", k_name);
    Dims q = by_head(p.tensor("query"), layout).dims, k = by_head(p.tensor(k_name), layout).dims, v = by_head(p.tensor("value"), layout).dims;
    p.require(k == v && q[0] == k[0] && q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0, "query, key and value have shapes %s, %s, %s", text(q).c_str(), text(k).c_str(), text(v).c_str());
    p.require(p.integer("headNum") == q[1], "headNum is %lld, query has %lld heads", wide(p.integer("headNum")), wide(q[1]));
    p.require(is_narrow(p.tensor("query").dtype), "query has dtype %s, expected 8-bit floats", dtype_name(p.tensor("query").dtype));
    p.require(block_of(p.tensor("dScaleQ"), q, kQueryBlock) > 0, "dScaleQ has shape %s for %s", text(p.tensor("dScaleQ").dims).c_str(), text(q).c_str());
    for (const char* name : {"dScaleK", "dScaleV"}) p.require(block_of(p.tensor(name), k, kKeyBlock) > 0, "%s has shape %s for %s", name, text(p.tensor(name).dims).c_str(), text(k).c_str());
    p.require(p.tensor("pScale").numel() == 1, "pScale has shape %s, expected one number", text(p.tensor("pScale").dims).c_str());
    int64_t mode = p.integer("sparseMode");
    p.require(mode == kGiven || mode == kLeftUp || mode == kRightDown, "sparseMode is %lld; the emulator computes 0, 2 and 3", wide(mode));
    if (p.has("attenMaskOptional")) {
        const Dims& m = p.tensor("attenMaskOptional").dims;
        Dims scores{q[0], q[1], q[2], k[2]}, both;
        p.require(mode != kGiven || (broadcast(m, scores, &both) && both == scores), "attenMaskOptional has shape %s for scores %s", text(m).c_str(), text(scores).c_str());
    }
    return {q, k};
}

void plan_statistics(const Plan& p, const Dims& q, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const Dims& d = p.tensor(name).dims;
        p.require(d.n == 4 && d[0] == q[0] && d[1] == q[1] && d[2] == q[2] && (d[3] == 1 || d[3] == 8), "%s has shape %s", name, text(d).c_str());
    }
}

void plan_scaled(Plan& p) {
    auto [q, k] = plan_operands(p, "key");
    p.same_shape("query", "attentionOutOut");
    plan_statistics(p, q, {"softmaxMaxOut", "softmaxSumOut"});
}

// The tokens of each head times their scales.
Values scaled(const Run& r, const char* name, const char* scale_name, const std::string& layout, int64_t first) {
    Tensor t = by_head(r.tensor(name), layout);
    Values x = r.read<double>(t), scale = r.read<double>(r.tensor(scale_name));
    int64_t block = block_of(r.tensor(scale_name), t.dims, first), tokens = t.dims[2], width = t.dims[3], blocks = blocks_of(tokens, block);
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t row = int64_t(i) / width;
        x[i] *= scale[size_t(row / tokens * blocks + row % tokens / block)];
    }
    return x;
}

// The scores of a query, of all heads and samples in one row; -infinity where hidden.
struct Scores {
    const Values &q, &k;
    Values mask;
    int64_t mode, heads, shared, rows, columns, width;
    double scale;

    Scores(const Run& r, const Dims& of_q, const Dims& of_k, const Values& query, const Values& key)
        : q(query), k(key), mode(r.integer("sparseMode")), heads(of_q[1]), shared(of_q[1] / of_k[1]), rows(of_q[2]), columns(of_k[2]), width(of_q[3]), scale(r.real("scaleValue")) {
        if (r.has("attenMaskOptional") && mode == kGiven) mask = r.read<double>(r.tensor("attenMaskOptional"), {of_q[0], heads, rows, columns});
    }
    int64_t first_key(int64_t line) const {
        int64_t head = line / rows;
        return (head / heads * (heads / shared) + head % heads / shared) * columns;
    }
    Values operator()(int64_t line) const {
        Values out;
        int64_t row = line % rows, from = first_key(line);
        for (int64_t j = 0; j < columns; ++j) {
            double s = 0;
            for (int64_t d = 0; d < width; ++d) s += q[size_t(line * width + d)] * k[size_t((from + j) * width + d)];
            bool hidden = !mask.empty() && mask[size_t(line * columns + j)] != 0;
            if (mode != kGiven) hidden = j > row + (mode == kRightDown ? columns - rows : 0);
            out.push_back(hidden ? -INFINITY : s * scale);
        }
        return out;
    }
};

void run_scaled(Run& r) {
    const std::string& layout = r.string("inputLayout");
    Tensor to = by_head(r.tensor("attentionOutOut"), layout);
    Dims q = to.dims, k = by_head(r.tensor("key"), layout).dims;
    Values x = scaled(r, "query", "dScaleQ", layout, kQueryBlock), keys = scaled(r, "key", "dScaleK", layout, kKeyBlock), held = scaled(r, "value", "dScaleV", layout, kKeyBlock);
    double factor = r.read<double>(r.tensor("pScale"))[0];
    Scores scores(r, q, k, x, keys);
    int64_t rows = q[2], columns = k[2], width = q[3];
    Values out, top, total;
    int small = r.tensor("query").dtype;
    for (int64_t line = 0; line < q[0] * q[1] * rows; ++line) {
        int64_t from = scores.first_key(line);
        double most = -INFINITY, sum = 0;
        Values score = scores(line);
        for (double s : score) most = std::fmax(most, s);
        for (double& s : score) sum += s = std::isinf(s) ? 0 : std::exp(s - most);
        for (double& s : score) s = sum > 0 ? narrow_value(small, narrow_code(small, s / sum * factor)) : 0;
        for (int64_t d = 0; d < width; ++d) {
            double s = 0;
            for (int64_t j = 0; j < columns; ++j) s += score[size_t(j)] * held[size_t((from + j) * width + d)];
            out.push_back(s / factor);
        }
        for (int64_t i = 0; i < r.tensor("softmaxMaxOut").dims[3]; ++i) top.push_back(most);
        for (int64_t i = 0; i < r.tensor("softmaxSumOut").dims[3]; ++i) total.push_back(sum);
    }
    r.write(to, out);
    r.write(r.tensor("softmaxMaxOut"), top);
    r.write(r.tensor("softmaxSumOut"), total);
}

// -- back --------------------------------------------------------------------------------------------------------------------
void plan_scaled_back(Plan& p) {
    auto [q, k] = plan_operands(p, "keyIn");
    for (const char* name : {"dy", "attentionIn", "dqOut"}) p.same_shape("query", name);
    for (const char* name : {"dkOut", "dvOut"}) p.same_shape("keyIn", name);
    plan_statistics(p, q, {"softmaxMax", "softmaxSum"});
    p.require(block_of(p.tensor("dScaleDy"), q, kQueryBlock) > 0, "dScaleDy has shape %s for %s", text(p.tensor("dScaleDy").dims).c_str(), text(q).c_str());
    p.require(p.tensor("dsScale").numel() == 1, "dsScale has shape %s, expected one number", text(p.tensor("dsScale").dims).c_str());
    for (const char* name : {"dqOut", "dkOut", "dvOut"}) p.require(is_real(p.tensor(name).dtype), "%s has dtype %s", name, dtype_name(p.tensor(name).dtype));
}

void run_scaled_back(Run& r) {
    const std::string& layout = r.string("inputLayout");
    Tensor to_q = by_head(r.tensor("dqOut"), layout), to_k = by_head(r.tensor("dkOut"), layout), to_v = by_head(r.tensor("dvOut"), layout);
    Dims q = to_q.dims, k = to_k.dims;
    Values x = scaled(r, "query", "dScaleQ", layout, kQueryBlock), keys = scaled(r, "keyIn", "dScaleK", layout, kKeyBlock), held = scaled(r, "value", "dScaleV", layout, kKeyBlock);
    Values g = scaled(r, "dy", "dScaleDy", layout, kQueryBlock), out = r.read<double>(by_head(r.tensor("attentionIn"), layout));
    Values tops = r.read<double>(r.tensor("softmaxMax")), sums = r.read<double>(r.tensor("softmaxSum"));
    int64_t copies[] = {r.tensor("softmaxMax").dims[3], r.tensor("softmaxSum").dims[3]};
    double by_p = r.read<double>(r.tensor("pScale"))[0], by_ds = r.read<double>(r.tensor("dsScale"))[0], scale = r.real("scaleValue");
    int small = r.tensor("query").dtype;
    auto as_small = [&](double v, double by) { return narrow_value(small, narrow_code(small, v * by)) / by; };
    Scores scores(r, q, k, x, keys);
    int64_t rows = q[2], columns = k[2], width = q[3];
    Values dq(x.size(), 0), dk(keys.size(), 0), dv(held.size(), 0);
    for (int64_t line = 0; line < q[0] * q[1] * rows; ++line) {
        int64_t from = scores.first_key(line);
        Values score = scores(line);
        double along = 0;
        for (int64_t d = 0; d < width; ++d) along += g[size_t(line * width + d)] * out[size_t(line * width + d)];
        for (int64_t j = 0; j < columns; ++j) {
            if (std::isinf(score[size_t(j)])) continue;
            double p = std::exp(score[size_t(j)] - tops[size_t(line * copies[0])]) / sums[size_t(line * copies[1])], dp = 0, passed = as_small(p, by_p);
            for (int64_t d = 0; d < width; ++d) dp += g[size_t(line * width + d)] * held[size_t((from + j) * width + d)];
            double ds = as_small(p * (dp - along), by_ds) * scale;
            for (int64_t d = 0; d < width; ++d) {
                dq[size_t(line * width + d)] += ds * keys[size_t((from + j) * width + d)];
                dk[size_t((from + j) * width + d)] += ds * x[size_t(line * width + d)];
                dv[size_t((from + j) * width + d)] += passed * g[size_t(line * width + d)];
            }
        }
    }
    r.write(to_q, dq);
    r.write(to_k, dk);
    r.write(to_v, dv);
}

}  // namespace

ACLNN(aclnnQuantFlashAttentionScore, plan_scaled, run_scaled, NARROW)
ACLNN(aclnnQuantFlashAttentionScoreGrad, plan_scaled_back, run_scaled_back, NARROW)
