// Attention of sequences of different lengths packed behind each other (layout TND), its gradients, and the joining of
// attentions over parts of the keys.
//
// Masks are none, the compressed causal ones (sparseMode 2 and 3) or one matrix for all sequences; prefixes are refused.
// Scores of a sequence stand by head, query and key, those of the next sequence behind them: so do shifts that are given, and
// the bits of a mask for dropout. Shifts by distance are those of attention.cpp. Later versions keep the rotary part of query and key apart, add a score that stands for no key
// (a "sink" for each head), and can store statistics with tokens first; the facts say nothing of how a sink enters: as
// one more score, whose value is zero.
#include <cmath>

#include "attention_training.h"
#include "optional.h"

using namespace emu;

namespace {

constexpr int64_t kCopies = 8;  // the statistics of a row are stored that many times
constexpr int64_t kCompressed = 2048;
enum SparseMode : int64_t { kPlain = 0, kAll = 1, kLeftUp = 2, kRightDown = 3, kBand = 4 };

struct Packed {
    int64_t heads, kv_heads, size, value_size;
    std::vector<int64_t> q_ends, k_ends;
    bool tokens_first = false;
    int64_t turned = 0;  // the size of the rotary part
    std::vector<double> q_turned, k_turned, sink, shift;
    std::vector<int64_t> keep;           // bits of the scores that dropout keeps
    double probability = 1;
    int64_t type = 1, start = 0;         // of the shift; how far the first query is behind the first key

    // What dropout multiplies the weight of a score with.
    double dropout(int64_t score) const { return keep.empty() ? 1 : keep[size_t(score / 8)] >> (score % 8) & 1 ? 1 / probability : 0; }

    // `score`: its number; i, j: the places of query and key in their sequence.
    double shifted(double dot, double scale, size_t sequence, int64_t h, int64_t i, int64_t j, int64_t score) const {
        if (shift.empty()) return dot * scale;
        if (type < 2) return type == 0 ? dot * scale + shift[size_t(score)] : (dot + shift[size_t(score)]) * scale;
        double apart = std::fabs(double(start + i - j)), slope = shift[int64_t(shift.size()) == heads ? size_t(h) : sequence * size_t(heads) + size_t(h)];
        return dot * scale - (type == 3 ? std::sqrt(apart) : apart) * slope;
    }

    size_t q_at(int64_t t, int64_t h, int64_t d) const { return size_t((t * heads + h) * size + d); }
    size_t k_at(int64_t t, int64_t h, int64_t d) const {
        return size_t((t * kv_heads + h / (heads / kv_heads)) * size + d);
    }
    size_t v_at(int64_t t, int64_t h, int64_t d) const {
        return size_t((t * kv_heads + h / (heads / kv_heads)) * value_size + d);
    }
    size_t out_at(int64_t t, int64_t h, int64_t d) const { return size_t((t * heads + h) * value_size + d); }
    size_t row(int64_t t, int64_t h) const {
        return size_t(tokens_first ? t * heads + h : h * q_ends.back() + t) * kCopies;
    }
    size_t q2_at(int64_t t, int64_t h, int64_t d) const { return size_t((t * heads + h) * turned + d); }
    size_t k2_at(int64_t t, int64_t h, int64_t d) const {
        return size_t((t * kv_heads + h / (heads / kv_heads)) * turned + d);
    }
};

void plan_ends(const Plan& p, const char* name, int64_t total) {
    const auto& ends = p.ints(name);
    p.require(!ends.empty() && ends[0] >= 0 && ends.back() == total, "%s must end at %lld", name, static_cast<long long>(total));
    for (size_t i = 1; i < ends.size(); ++i) p.require(ends[i] >= ends[i - 1], "%s must not fall", name);
}

int64_t longest(const std::vector<int64_t>& ends) {
    int64_t most = 0, from = 0;
    for (int64_t end : ends) most = std::max(most, end - from), from = end;
    return most;
}

// The names of what later versions have.
struct Names {
    const char *key, *query_turned, *key_turned, *sink, *layout, *shift;
};

Names names(const Call& c) {
    bool back = has_parameter(c, "keyIn");
    Names n = back ? Names{"keyIn", "queryRope", "keyInRope", "sinkInOptional", "softmaxInLayout", "pseShiftOptional"}
                   : Names{"key", "queryRope", "keyRope", "sinkOptional", "softmaxOutLayout", "realShiftOptional"};
    if (has_parameter(c, "queryRopeOptional")) n.query_turned = "queryRopeOptional", n.key_turned = "keyRopeOptional";
    return n;
}

bool tokens_first(const Call& c, const Names& n) { return given(c, n.layout) && c.string(n.layout) == "same_as_input"; }

int64_t shift_type(const Call& c) { return has_parameter(c, "pseType") ? c.integer("pseType") : 1; }

int64_t first_or_zero(const Call& c, const char* name) { return has_parameter(c, name) && !c.ints(name).empty() ? c.ints(name)[0] : 0; }

// The scores of all sequences.
int64_t scores_of(const Call& c, int64_t heads) {
    const auto &q = c.ints("actualSeqQLenOptional"), &k = c.ints("actualSeqKvLenOptional");
    int64_t all = 0;
    for (size_t b = 0; b < q.size(); ++b) all += heads * (q[b] - (b ? q[b - 1] : 0)) * (k[b] - (b ? k[b - 1] : 0));
    return all;
}

Packed packed(const Run& r, const Names& n) {
    const Dims &q = r.tensor("query").dims, &k = r.tensor(n.key).dims, &v = r.tensor("value").dims;
    Packed s{q[1], k[1], q[2], v[2], r.ints("actualSeqQLenOptional"), r.ints("actualSeqKvLenOptional")};
    s.tokens_first = tokens_first(r, n);
    if (given(r, n.query_turned)) {
        s.turned = r.tensor(n.query_turned).dims[2];
        s.q_turned = r.read<double>(r.tensor(n.query_turned));
        s.k_turned = r.read<double>(r.tensor(n.key_turned));
    }
    if (given(r, n.sink)) s.sink = r.read<double>(r.tensor(n.sink));
    if (r.has(n.shift)) s.shift = r.read<double>(r.tensor(n.shift));
    s.type = shift_type(r), s.start = first_or_zero(r, "qStartIdxOptional") - first_or_zero(r, "kvStartIdxOptional");
    s.probability = r.real("keepProb");
    if (r.has("dropMaskOptional") && s.probability < 1) s.keep = r.read<int64_t>(r.tensor("dropMaskOptional"));
    return s;
}

void plan_later(const Plan& p, const Names& n) {
    const Dims &q = p.tensor("query").dims, &k = p.tensor(n.key).dims;
    if (given(p, n.layout)) {
        const std::string& layout = p.string(n.layout);
        p.require(layout.empty() || layout == "same_as_input", "%s is \"%s\", expected same_as_input", n.layout,
                  layout.c_str());
    }
    p.require(given(p, n.query_turned) == given(p, n.key_turned), "%s and %s go together", n.query_turned, n.key_turned);
    if (given(p, n.query_turned)) {
        int64_t size = p.tensor(n.query_turned).dims.back();
        p.shape(n.query_turned, {q[0], q[1], size});
        p.shape(n.key_turned, {k[0], k[1], size});
    }
    if (given(p, n.sink)) p.shape(n.sink, {q[1]});
}

// Shifts and dropout, where the shapes of the operands fit.
void plan_scores(const Plan& p, const Names& n) {
    int64_t heads = p.tensor("query").dims[1], all = scores_of(p, heads), type = shift_type(p);
    p.require(type >= 0 && type <= 3, "pseType is %lld, expected 0 to 3", static_cast<long long>(type));
    p.require(type < 2 || p.has(n.shift), "pseType %lld needs %s", static_cast<long long>(type), n.shift);
    if (p.has(n.shift)) {
        int64_t have = p.tensor(n.shift).numel(), samples = int64_t(p.ints("actualSeqQLenOptional").size());
        p.require(type < 2 ? have == all : have == heads || have == samples * heads, "%s has shape %s for %lld scores of %lld heads; the emulator computes whole shifts", n.shift,
                  text(p.tensor(n.shift).dims).c_str(), static_cast<long long>(all), static_cast<long long>(heads));
    }
    for (const char* name : {"qStartIdxOptional", "kvStartIdxOptional"})
        if (has_parameter(p, name)) p.require(p.ints(name).size() <= 1, "%s has %zu elements, expected one", name, p.ints(name).size());
    double keep = p.real("keepProb");
    p.require(keep > 0 && keep <= 1, "keepProb is %g, expected (0, 1]", keep);
    p.require(keep == 1 || p.has("dropMaskOptional"), "keepProb below 1 needs dropMaskOptional");
    if (p.has("dropMaskOptional")) p.require(p.tensor("dropMaskOptional").numel() >= (all + 7) / 8, "dropMaskOptional has %lld bytes for %lld scores", static_cast<long long>(p.tensor("dropMaskOptional").numel()), static_cast<long long>(all));
    p.require(!p.has("paddingMaskOptional"), "paddingMaskOptional is reserved and must be null");
    for (const char* name : {"dScaleQOptional", "dScaleKOptional", "dScaleVOptional", "dScaleDyOptional", "dScaleOOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator: the documents state no formula for it", name);
}

Dims statistics(const Plan& p, const Names& n) {
    const Dims& q = p.tensor("query").dims;
    return tokens_first(p, n) ? Dims{q[0], q[1], kCopies} : Dims{q[1], q[0], kCopies};
}

void plan_packed(const Plan& p, const Names& n) {
    const char* key = n.key;
    const Dims &q = p.tensor("query").dims, &k = p.tensor(key).dims, &v = p.tensor("value").dims;
    p.require(p.string("inputLayout") == "TND", "inputLayout is \"%s\", expected TND", p.string("inputLayout").c_str());
    p.require(q.n == 3 && k.n == 3 && v.n == 3, "query, key and value must have 3 dimensions");
    p.require(q[1] == p.integer("headNum") && k[1] > 0 && q[1] % k[1] == 0 && v[1] == k[1] && q[2] == k[2] &&
                  k[0] == v[0],
              "the shapes of query %s, key %s and value %s do not fit", text(q).c_str(), text(k).c_str(),
              text(v).c_str());
    p.same_dtype("query", key);
    p.same_dtype("query", "value");
    plan_ends(p, "actualSeqQLenOptional", q[0]);
    plan_ends(p, "actualSeqKvLenOptional", k[0]);
    p.require(p.ints("actualSeqQLenOptional").size() == p.ints("actualSeqKvLenOptional").size(),
              "there are as many sequences of queries as of keys");
    plan_scores(p, n);
    int64_t mode = p.integer("sparseMode");
    p.require(mode >= kPlain && mode <= kBand, "sparseMode is %lld; the emulator computes 0 to 4", static_cast<long long>(mode));
    if (!p.has("attenMaskOptional")) return p.require(mode == kPlain, "this sparseMode needs attenMaskOptional");
    const Dims& m = p.tensor("attenMaskOptional").dims;
    p.require(m.n >= 2, "attenMaskOptional has shape %s", text(m).c_str());
    if (mode >= kLeftUp)
        return p.require(m.n == 2 && m[0] == kCompressed && m[1] == kCompressed,
                         "attenMaskOptional has shape %s, this sparseMode needs (2048, 2048)", text(m).c_str());
    int64_t rows = longest(p.ints("actualSeqQLenOptional")), columns = longest(p.ints("actualSeqKvLenOptional"));
    p.require(m[m.n - 2] >= rows && m[m.n - 1] >= columns, "attenMaskOptional has shape %s, a sequence has %lld queries or %lld keys", text(m).c_str(),
              static_cast<long long>(rows), static_cast<long long>(columns));
}

// Which scores are hidden: by the compressed matrix, by distance; by a whole one, by place, and by distance too where it
// is not said to be all.
struct Mask {
    std::vector<int64_t> values;
    int64_t columns = 0, mode = kPlain, before, after;

    Mask(const Run& r) : mode(r.integer("sparseMode")), before(r.integer("preTokens")), after(r.integer("nextTokens")) {
        if (!r.has("attenMaskOptional") || mode >= kLeftUp) return;
        const Tensor& t = r.tensor("attenMaskOptional");
        Tensor last = t;
        last.dims = {t.dims[t.rank() - 2], t.dims[t.rank() - 1]};
        last.strides = {t.strides[t.rank() - 2], t.strides[t.rank() - 1]};
        values = r.read<int64_t>(last);
        columns = last.dims[1];
    }
    bool operator()(int64_t i, int64_t j, int64_t queries, int64_t keys) const {
        if (mode == kLeftUp) return j > i;
        if (mode == kRightDown) return j > i + keys - queries;
        int64_t distance = j - i, shifted = distance - (keys - queries);
        if (mode == kBand) return shifted > after || -shifted > before;
        if (values.empty()) return false;
        return values[size_t(i * columns + j)] != 0 || (mode == kPlain && (distance > after || -distance > before));
    }
};

// f(query, first key, head, scores, number of the first score): scores are -infinity where hidden.
template <class F>
void each_row(const Run& r, const Packed& s, const std::vector<double>& q, const std::vector<double>& k, F f) {
    Mask hidden(r);
    int64_t before = 0;
    for (size_t b = 0; b < s.q_ends.size(); ++b) {
        int64_t q0 = b ? s.q_ends[b - 1] : 0, k0 = b ? s.k_ends[b - 1] : 0;
        int64_t queries = s.q_ends[b] - q0, keys = s.k_ends[b] - k0;
        for (int64_t i = 0; i < queries; ++i)
            for (int64_t h = 0; h < s.heads; ++h) {
                std::vector<double> scores;
                int64_t number = before + (h * queries + i) * keys;
                for (int64_t j = 0; j < keys; ++j) {
                    double dot = 0;
                    for (int64_t d = 0; d < s.size; ++d) dot += q[s.q_at(q0 + i, h, d)] * k[s.k_at(k0 + j, h, d)];
                    for (int64_t d = 0; d < s.turned; ++d)
                        dot += s.q_turned[s.q2_at(q0 + i, h, d)] * s.k_turned[s.k2_at(k0 + j, h, d)];
                    scores.push_back(hidden(i, j, queries, keys) ? -INFINITY : s.shifted(dot, r.real("scaleValue"), b, h, i, j, number + j));
                }
                f(q0 + i, k0, h, scores, number);
            }
        before += s.heads * queries * keys;
    }
}

void plan_score(Plan& p) {
    Names n = names(p);
    plan_packed(p, n);
    plan_later(p, n);
    const Dims &q = p.tensor("query").dims, &v = p.tensor("value").dims;
    for (const char* name : {"softmaxMaxOut", "softmaxSumOut"}) p.shape(name, statistics(p, n));
    p.shape("attentionOutOut", {q[0], q[1], v[2]});
    p.same_dtype("query", "attentionOutOut");
    p.workspace = 1 << 20;
}

void run_score(Run& r) {
    Packed s = packed(r, names(r));
    auto q = r.read<double>(r.tensor("query")), k = r.read<double>(r.tensor("key")), v = r.read<double>(r.tensor("value"));
    std::vector<double> out(size_t(r.tensor("attentionOutOut").numel()), 0);
    std::vector<double> tops(size_t(r.tensor("softmaxMaxOut").numel()), 0), sums(tops);
    each_row(r, s, q, k, [&](int64_t i, int64_t first, int64_t h, std::vector<double>& x, int64_t number) {
        double top = s.sink.empty() ? -INFINITY : s.sink[size_t(h)], sum = 0;
        for (double e : x) top = std::fmax(top, e);
        if (!s.sink.empty()) sum = std::exp(s.sink[size_t(h)] - top);
        for (double& e : x) e = top == -INFINITY ? 0 : std::exp(e - top), sum += e;
        for (size_t j = 0; j < x.size() && sum != 0; ++j)
            for (int64_t d = 0; d < s.value_size; ++d)
                out[s.out_at(i, h, d)] += x[j] / sum * s.dropout(number + int64_t(j)) * v[s.v_at(first + int64_t(j), h, d)];
        std::fill_n(tops.begin() + int64_t(s.row(i, h)), kCopies, top);
        std::fill_n(sums.begin() + int64_t(s.row(i, h)), kCopies, sum);
    });
    r.write(r.tensor("softmaxMaxOut"), tops);
    r.write(r.tensor("softmaxSumOut"), sums);
    r.write(r.tensor("attentionOutOut"), out);
}

void plan_grad(Plan& p) {
    Names n = names(p);
    plan_packed(p, n);
    plan_later(p, n);
    const Dims& q = p.tensor("query").dims;
    for (const char* name : {"softmaxMaxOptional", "softmaxSumOptional"}) {
        p.require(p.has(name), "%s is needed", name);
        p.shape(name, statistics(p, n));
    }
    p.require(p.has("attentionInOptional"), "attentionInOptional is needed");
    p.shape("dy", {q[0], q[1], p.tensor("value").dims[2]});
    p.same_shape("dy", "attentionInOptional");
    p.same_shape("query", "dqOut");
    p.same_shape("keyIn", "dkOut");
    p.same_shape("value", "dvOut");
    if (given(p, n.query_turned)) {
        p.same_shape(n.query_turned, "dqRopeOut");
        p.same_shape(n.key_turned, "dkRopeOut");
    }
    if (given(p, "sinkInOptional")) p.same_shape("sinkInOptional", "dsinkOut");
    p.workspace = 1 << 20;
}

void run_grad(Run& r) {
    Packed s = packed(r, names(r));
    auto q = r.read<double>(r.tensor("query")), k = r.read<double>(r.tensor("keyIn"));
    auto v = r.read<double>(r.tensor("value")), dy = r.read<double>(r.tensor("dy"));
    auto out = r.read<double>(r.tensor("attentionInOptional"));
    auto tops = r.read<double>(r.tensor("softmaxMaxOptional")), sums = r.read<double>(r.tensor("softmaxSumOptional"));
    std::vector<double> dq(q.size()), dk(k.size()), dv(v.size());
    std::vector<double> dq2(s.q_turned.size()), dk2(s.k_turned.size()), dsink(s.sink.size());
    each_row(r, s, q, k, [&](int64_t i, int64_t first, int64_t h, std::vector<double>& x, int64_t number) {
        double along = 0, sum = sums[s.row(i, h)];
        for (int64_t d = 0; d < s.value_size; ++d) along += dy[s.out_at(i, h, d)] * out[s.out_at(i, h, d)];
        if (!s.sink.empty() && sum != 0)
            dsink[size_t(h)] -= std::exp(s.sink[size_t(h)] - tops[s.row(i, h)]) / sum * along;
        for (size_t j = 0; j < x.size() && sum != 0; ++j) {
            if (x[j] == -INFINITY) continue;
            double weight = std::exp(x[j] - tops[s.row(i, h)]) / sum, dp = 0;
            int64_t t = first + int64_t(j);
            for (int64_t d = 0; d < s.value_size; ++d) {
                dp += dy[s.out_at(i, h, d)] * v[s.v_at(t, h, d)];
                dv[s.v_at(t, h, d)] += weight * s.dropout(number + int64_t(j)) * dy[s.out_at(i, h, d)];
            }
            dp *= s.dropout(number + int64_t(j));
            double ds = weight * (dp - along) * r.real("scaleValue");
            for (int64_t d = 0; d < s.size; ++d) {
                dq[s.q_at(i, h, d)] += ds * k[s.k_at(t, h, d)];
                dk[s.k_at(t, h, d)] += ds * q[s.q_at(i, h, d)];
            }
            for (int64_t d = 0; d < s.turned; ++d) {
                dq2[s.q2_at(i, h, d)] += ds * s.k_turned[s.k2_at(t, h, d)];
                dk2[s.k2_at(t, h, d)] += ds * s.q_turned[s.q2_at(i, h, d)];
            }
        }
    });
    r.write(r.tensor("dqOut"), dq);
    r.write(r.tensor("dkOut"), dk);
    r.write(r.tensor("dvOut"), dv);
    if (s.turned > 0) {
        r.write(r.tensor("dqRopeOut"), dq2);
        r.write(r.tensor("dkRopeOut"), dk2);
    }
    if (!s.sink.empty()) r.write(r.tensor("dsinkOut"), dsink);
}

// -- attentions over parts of the keys -------------------------------------------------------------------------------
void plan_update(Plan& p) {
    const auto &lse = p.tensors("lse"), &parts = p.tensors("localOut");
    p.require(!lse.empty() && lse.size() == parts.size(), "lse has %zu tensors and localOut %zu", lse.size(), parts.size());
    p.require(p.integer("updateType") == 0 || p.integer("updateType") == 1, "updateType must be 0 or 1");
    const Dims& d = p.tensor("out").dims;
    for (size_t i = 0; i < lse.size(); ++i)
        p.require(parts[i].dims == d && d.n == 2 && lse[i].dims == Dims({d[0]}), "lse %zu has shape %s, localOut %s", i,
                  text(lse[i].dims).c_str(), text(parts[i].dims).c_str());
    if (p.integer("updateType") == 1) {
        p.require(p.has("lseOut"), "updateType 1 needs lseOut");
        p.shape("lseOut", {d[0]});
    }
}

void run_update(Run& r) {
    const auto &lse = r.tensors("lse"), &parts = r.tensors("localOut");
    const Dims& d = r.tensor("out").dims;
    std::vector<std::vector<double>> logs;
    std::vector<double> top(size_t(d[0]), -INFINITY), sum(size_t(d[0]), 0), out(size_t(d.product()), 0);
    for (const Tensor& t : lse) {
        logs.push_back(r.read<double>(t));
        for (size_t i = 0; i < top.size(); ++i) top[i] = std::fmax(top[i], logs.back()[i]);
    }
    for (const auto& log : logs)
        for (size_t i = 0; i < top.size(); ++i) sum[i] += std::exp(log[i] - top[i]);
    for (size_t n = 0; n < parts.size(); ++n) {
        auto x = r.read<double>(parts[n]);
        for (size_t i = 0; i < x.size(); ++i) {
            size_t row = i / size_t(d[1]);
            out[i] += x[i] * std::exp(logs[n][row] - top[row]) / sum[row];
        }
    }
    r.write(r.tensor("out"), out);
    if (r.integer("updateType") == 0) return;
    for (size_t i = 0; i < top.size(); ++i) top[i] += std::log(sum[i]);
    r.write(r.tensor("lseOut"), top);
}

}  // namespace

void emu::plan_packed_score(Plan& p) { plan_score(p); }
void emu::run_packed_score(Run& r) { run_score(r); }
void emu::plan_packed_grad(Plan& p) { plan_grad(p); }
void emu::run_packed_grad(Run& r) { run_grad(r); }

ACLNN(aclnnFlashAttentionVarLenScore, plan_score, run_score)
ACLNN(aclnnFlashAttentionVarLenScoreV2, plan_score, run_score)
ACLNN(aclnnFlashAttentionUnpaddingScoreGrad, plan_grad, run_grad)
ACLNN(aclnnFlashAttentionUnpaddingScoreGradV2, plan_grad, run_grad)
ACLNN(aclnnFlashAttentionVarLenScoreV3, plan_score, run_score)
ACLNN(aclnnFlashAttentionVarLenScoreV4, plan_score, run_score)
ACLNN(aclnnFlashAttentionVarLenScoreV5, plan_score, run_score)
ACLNN(aclnnFlashAttentionUnpaddingScoreGradV3, plan_grad, run_grad)
ACLNN(aclnnFlashAttentionUnpaddingScoreGradV4, plan_grad, run_grad)
ACLNN(aclnnFlashAttentionUnpaddingScoreGradV5, plan_grad, run_grad)
ACLNN(aclnnAttentionUpdate, plan_update, run_update)
