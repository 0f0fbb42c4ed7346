// Attention of small floats whose blocks of tokens have scales of their own.
//
// The facts have dtypes and ranks; the formula is that of the function's public description:
//   out = (small(softmax(q * dScaleQ @ (k * dScaleK)^T * scaleValue) * pScale) @ (v * dScaleV)) / pScale
// A scale belongs to 128 queries, and to 256 keys (or 128, as its shape says), of one head. Statistics of a query are its
// largest score and the sum of exponentials, stored as often as their last dimension says. A mask of sparseMode 0 hides where
// it is not 0; 2 and 3 hide what is behind the diagonal that begins at the first, or ends at the last, token.
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

void plan_scaled(Plan& p) {
    const std::string& layout = p.string("inputLayout");
    p.require(layout == "BNSD" || layout == "BSND", "inputLayout is \"%s\", expected BNSD or BSND", layout.c_str());
    Dims q = by_head(p.tensor("query"), layout).dims, k = by_head(p.tensor("key"), layout).dims, v = by_head(p.tensor("value"), layout).dims;
    p.require(k == v && q[0] == k[0] && q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0, "query, key and value have shapes %s, %s, %s", text(q).c_str(), text(k).c_str(), text(v).c_str());
    p.require(p.integer("headNum") == q[1], "headNum is %lld, query has %lld heads", wide(p.integer("headNum")), wide(q[1]));
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
    p.same_shape("query", "attentionOutOut");
    for (const char* name : {"softmaxMaxOut", "softmaxSumOut"}) {
        const Dims& d = p.tensor(name).dims;
        p.require(d.n == 4 && d[0] == q[0] && d[1] == q[1] && d[2] == q[2] && (d[3] == 1 || d[3] == 8), "%s has shape %s", name, text(d).c_str());
    }
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

void run_scaled(Run& r) {
    const std::string& layout = r.string("inputLayout");
    Tensor to = by_head(r.tensor("attentionOutOut"), layout);
    Dims q = to.dims, k = by_head(r.tensor("key"), layout).dims;
    Values x = scaled(r, "query", "dScaleQ", layout, kQueryBlock), keys = scaled(r, "key", "dScaleK", layout, kKeyBlock), held = scaled(r, "value", "dScaleV", layout, kKeyBlock);
    double factor = r.read<double>(r.tensor("pScale"))[0];
    int64_t mode = r.integer("sparseMode"), rows = q[2], columns = k[2], width = q[3], shared = q[1] / k[1];
    Values mask, out, top, total;
    if (r.has("attenMaskOptional") && mode == kGiven) mask = r.read<double>(r.tensor("attenMaskOptional"), {q[0], q[1], rows, columns});
    int small = r.tensor("query").dtype;
    for (int64_t line = 0; line < q[0] * q[1] * rows; ++line) {
        int64_t head = line / rows, row = line % rows, from = (head / q[1] * k[1] + head % q[1] / shared) * columns;
        Values score;
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < columns; ++j) {
            double s = 0;
            for (int64_t d = 0; d < width; ++d) s += x[size_t(line * width + d)] * keys[size_t((from + j) * width + d)];
            bool hidden = !mask.empty() && mask[size_t(line * columns + j)] != 0;
            if (mode != kGiven) hidden = j > row + (mode == kRightDown ? columns - rows : 0);
            score.push_back(hidden ? -INFINITY : s * r.real("scaleValue"));
            most = std::fmax(most, score.back());
        }
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

}  // namespace

ACLNN(aclnnQuantFlashAttentionScore, plan_scaled, run_scaled, NARROW)
