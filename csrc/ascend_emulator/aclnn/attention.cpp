// Attention: softmax(scale * query key^T, shifted and masked) value, with its gradients.
//
// Every layout is seen as (batch, heads, sequence, size of a head) through strides; key and value may have fewer heads
// than query, each then serves a group of its heads. The facts name the ways to shift scores and the sink without their
// formulas: a shift of type 2 or 3 is minus the distance of query and key, or its root, times a number of the head; a sink
// is one more score, whose value is zero. With a prefix (sparseMode 5 and 6) a query sees the first keys of its sample besides
// those up to its own place from the end: 5 has a whole mask that says so, 6 a compressed one (3072, 2048) and the numbers.
#include <cmath>

#include "attention_training.h"
#include "optional.h"
#include "view.h"

using namespace emu;

namespace {

// -- layouts ---------------------------------------------------------------------------------------------------------
// Splits the last dimension into (heads, size).
Tensor split_heads(Tensor t, int64_t heads) {
    int last = t.rank() - 1;
    int64_t size = t.dims[last] / heads, stride = t.strides[last];
    t.dims[last] = heads;
    t.strides[last] = stride * size;
    t.dims.push(size);
    t.strides.push(stride);
    return t;
}

int layout_rank(const std::string& layout) {
    if (layout == "BSH" || layout == "SBH") return 3;
    return layout == "BSND" || layout == "BNSD" ? 4 : 0;
}

Tensor as_heads(const Tensor& t, const std::string& layout, int64_t heads) {
    if (layout == "BSH") return permuted(split_heads(t, heads), {0, 2, 1, 3});
    if (layout == "SBH") return permuted(split_heads(t, heads), {1, 2, 0, 3});
    if (layout == "BSND") return permuted(t, {0, 2, 1, 3});
    return t;
}

struct Shape {
    int64_t batch, heads, kv_heads, queries, keys, size, value_size;

    int64_t group() const { return heads / kv_heads; }
    Dims scores() const { return {batch, heads, queries, keys}; }
    size_t row(int64_t b, int64_t h, int64_t i) const { return size_t((b * heads + h) * queries + i); }
    size_t kv_row(int64_t b, int64_t h, int64_t j) const { return size_t((b * kv_heads + h / group()) * keys + j); }
};

// Heads of key and value: stated, or from the size of a head where the layout hides them.
int64_t kv_heads(const Tensor& q, const Tensor& k, const std::string& layout, int64_t heads, int64_t stated) {
    if (stated > 0) return stated;
    if (layout == "BSND") return k.dims[2];
    if (layout == "BNSD") return k.dims[1];
    int64_t size = q.dims.back() / heads;
    return size && k.dims.back() % size == 0 ? k.dims.back() / size : heads;
}

struct Views {
    Tensor q, k, v;
    Shape shape;
};

Views views(const Tensor& q, const Tensor& k, const Tensor& v, const std::string& layout, int64_t heads,
            int64_t stated) {
    auto require = [](bool holds, const char* what) {
        if (!holds) refuse(ACLNN_ERR_PARAM_INVALID, "%s", what);
    };
    int rank = layout_rank(layout);
    require(rank != 0, "inputLayout must be BSH, SBH, BSND or BNSD");
    require(q.rank() == rank && k.rank() == rank && v.rank() == rank,
            "query, key and value do not have the rank of inputLayout");
    require(heads > 0 && (rank == 4 || q.dims.back() % heads == 0), "the number of heads does not fit query");
    int64_t few = kv_heads(q, k, layout, heads, stated);
    require(few > 0 && heads % few == 0, "the heads of key and value must divide those of query");
    require(rank == 4 || (k.dims.back() % few == 0 && v.dims.back() % few == 0),
            "the number of heads does not fit key or value");
    Views out{as_heads(q, layout, heads), as_heads(k, layout, few), as_heads(v, layout, few), {}};
    const Dims &a = out.q.dims, &b = out.k.dims, &c = out.v.dims;
    require(a[1] == heads && b[1] == few && c[1] == few, "the number of heads does not fit");
    require(a[0] == b[0] && b[0] == c[0] && b[2] == c[2] && a[3] == b[3],
            "the shapes of query, key and value do not fit");
    require(q.dtype == k.dtype && q.dtype == v.dtype, "query, key and value must have the same dtype");
    out.shape = {a[0], heads, few, a[2], b[2], a[3], c[3]};
    return out;
}

// -- masks -----------------------------------------------------------------------------------------------------------
enum SparseMode : int64_t { kDefault = 0, kAll = 1, kLeftUp = 2, kRightDown = 3, kBand = 4, kPrefix = 5, kShortPrefix = 6 };
constexpr int64_t kCompressed = 2048, kPrefixed = 3072;

struct Hidden {
    std::vector<int64_t> mask;        // of every score; empty: none
    std::vector<int64_t> row, column; // of the compressed matrix
    int64_t mode = kDefault, before = INT32_MAX, after = INT32_MAX;
    bool banded = false;
    std::vector<int64_t> prefix;      // keys that all queries of a sample see

    // The compressed matrix tells by distance from its diagonal.
    bool beyond(int64_t distance) const {
        distance = std::min(std::max(distance, 1 - kCompressed), kCompressed - 1);
        return (distance >= 0 ? row[size_t(distance)] : column[size_t(-distance)]) != 0;
    }
    bool operator()(const Shape& s, int64_t b, int64_t h, int64_t i, int64_t j) const {
        int64_t distance = j - i, shifted = distance - (s.keys - s.queries);
        switch (mode) {
            case kLeftUp: return beyond(distance);
            case kRightDown: return beyond(shifted);
            case kBand: return beyond(shifted - after) || !beyond(shifted + before + 1);
            case kShortPrefix: return j >= prefix[size_t(b)] && beyond(shifted);
            default: break;
        }
        if (banded && (distance > after || -distance > before)) return true;
        return !mask.empty() && mask[s.row(b, h, i) * size_t(s.keys) + size_t(j)] != 0;
    }
};

Dims first_line(const Tensor& t, bool column) {
    Dims d;
    for (int i = 0; i < t.rank() - 2; ++i) d.push(1);
    d.push(column ? kCompressed : 1);
    d.push(column ? 1 : kCompressed);
    return d;
}

Hidden hidden(const Run& r, const char* mask, const Shape& s, int64_t mode) {
    Hidden out;
    out.mode = mode;
    out.before = r.integer("preTokens");
    out.after = r.integer("nextTokens");
    if (!r.has(mask)) return out;
    Tensor t = r.tensor(mask);
    if (mode == kShortPrefix) out.prefix = r.ints("prefixOptional");
    if (mode >= kLeftUp && mode != kPrefix) {
        for (bool column : {false, true}) {
            Tensor line = t;
            line.dims = first_line(t, column);
            (column ? out.column : out.row) = r.read<int64_t>(line);
        }
    } else {
        out.banded = mode == kDefault;
        out.mask = r.read<int64_t>(t, s.scores());
    }
    return out;
}

void plan_broadcast(const Plan& p, const char* name, const Dims& to) {
    if (!p.has(name)) return;
    Dims both;
    const Dims& d = p.tensor(name).dims;
    p.require(broadcast(d, to, &both) && both == to, "%s has shape %s, which does not broadcast to %s", name,
              text(d).c_str(), text(to).c_str());
}

void plan_hidden(const Plan& p, const char* mask, const Shape& s, int64_t mode) {
    p.require(mode >= kDefault && mode <= kShortPrefix, "sparseMode is %lld; the emulator computes 0 to 6",
              static_cast<long long>(mode));
    p.require(mode == kDefault || p.has(mask), "sparseMode %lld needs %s", static_cast<long long>(mode), mask);
    if (mode >= kPrefix) {
        const auto& prefix = p.ints("prefixOptional");
        p.require(int64_t(prefix.size()) == s.batch, "prefixOptional has %zu elements for %lld samples", prefix.size(),
                  static_cast<long long>(s.batch));
        for (int64_t n : prefix)
            p.require(n >= 0 && n <= s.keys, "prefixOptional holds %lld of %lld keys", static_cast<long long>(n),
                      static_cast<long long>(s.keys));
    }
    if (mode < kLeftUp || mode == kPrefix) return plan_broadcast(p, mask, s.scores());
    const Dims& d = p.tensor(mask).dims;
    int64_t rows = mode == kShortPrefix ? kPrefixed : kCompressed;
    p.require(d.n >= 2 && d[d.n - 1] == kCompressed && d[d.n - 2] == rows && d.product() == kCompressed * rows,
              "%s has shape %s, sparseMode %lld needs the compressed (%lld, 2048)", mask, text(d).c_str(),
              static_cast<long long>(mode), static_cast<long long>(rows));
}

// -- the training pair -----------------------------------------------------------------------------------------------
constexpr int64_t kCopies = 8;  // the statistics of a row are stored that many times

// What is added to the scores: numbers that are given, after the scores were scaled or before; or minus the distance of
// query and key, or its root, times a number of each head.
enum Shift : int64_t { kAfter = 0, kBefore = 1, kDistance = 2, kRoot = 3 };

int64_t shift_type(const Call& c) { return has_parameter(c, "pseType") ? c.integer("pseType") : int64_t(kBefore); }

bool by_distance(const Call& c) { return shift_type(c) == kDistance || shift_type(c) == kRoot; }

int64_t first_or_zero(const Call& c, const char* name) {
    return has_parameter(c, name) && !c.ints(name).empty() ? c.ints(name)[0] : 0;
}

// A score of each head that stands for no key.
const char* sink_name(const Call& c) {
    for (const char* name : {"sinkOptional", "sinkInOptional"})
        if (has_parameter(c, name)) return name;
    return nullptr;
}

bool has_sink(const Call& c) { return sink_name(c) != nullptr && c.has(sink_name(c)); }

Shape plan_training(const Plan& p, const char* key, const char* shift) {
    Views v = views(p.tensor("query"), p.tensor(key), p.tensor("value"), p.string("inputLayout"), p.integer("headNum"),
                    0);
    const Shape& s = v.shape;
    double keep = p.real("keepProb");
    p.require(keep > 0 && keep <= 1, "keepProb is %g, expected (0, 1]", keep);
    p.require(!p.has("paddingMaskOptional"), "paddingMaskOptional is reserved and must be null");
    int64_t precise = p.integer("innerPrecise");
    p.require(precise >= 0 && precise <= 3, "innerPrecise is %lld, expected 0 to 3", static_cast<long long>(precise));
    if (by_distance(p)) {
        const Dims& d = p.tensor(shift).dims;
        p.require(d == Dims({s.heads}) || d == Dims({s.batch, s.heads}), "%s has shape %s, expected a number of each head",
                  shift, text(d).c_str());
    } else {
        if (p.has(shift)) p.same_dtype("query", shift);
        plan_broadcast(p, shift, s.scores());
    }
    if (has_sink(p)) p.shape(sink_name(p), {s.heads});
    // Modes without a prefix do not look at prefixOptional.
    plan_hidden(p, "attenMaskOptional", s, p.integer("sparseMode"));
    if (p.has("dropMaskOptional")) {
        int64_t bytes = (s.scores().product() + 127) / 128 * 16;
        p.require(p.tensor("dropMaskOptional").numel() >= bytes, "dropMaskOptional has %lld bytes, expected %lld",
                  static_cast<long long>(p.tensor("dropMaskOptional").numel()), static_cast<long long>(bytes));
    }
    return s;
}

struct Training {
    Views views;
    std::vector<double> q, k, v, shift, sink;
    int64_t type, start;  // of the shift; how far the first query is behind the first key
    Hidden hide;
    std::vector<int64_t> keep;
    double scale, probability;

    Training(const Run& r, const char* key, const char* pse)
        : views(::views(r.tensor("query"), r.tensor(key), r.tensor("value"), r.string("inputLayout"),
                        r.integer("headNum"), 0)),
          q(r.read<double>(views.q)), k(r.read<double>(views.k)), v(r.read<double>(views.v)), type(shift_type(r)),
          start(first_or_zero(r, "qStartIdxOptional") - first_or_zero(r, "kvStartIdxOptional")),
          hide(hidden(r, "attenMaskOptional", views.shape, r.integer("sparseMode"))), scale(r.real("scaleValue")),
          probability(r.real("keepProb")) {
        if (by_distance(r)) shift = r.read<double>(r.tensor(pse), {views.shape.batch, views.shape.heads});
        else if (r.has(pse)) shift = r.read<double>(r.tensor(pse), views.shape.scores());
        if (has_sink(r)) sink = r.read<double>(r.tensor(sink_name(r)));
        if (r.has("dropMaskOptional")) keep = r.read<int64_t>(r.tensor("dropMaskOptional"));
    }
    // What dropout multiplies a probability with.
    double dropout(size_t score) const {
        if (keep.empty() || probability == 1) return 1;
        return keep[score / 8] >> (score % 8) & 1 ? 1 / probability : 0;
    }
    double shifted(double dot, int64_t b, int64_t h, int64_t i, int64_t j) const {
        const Shape& s = views.shape;
        if (shift.empty()) return dot * scale;
        if (type == kDistance || type == kRoot) {
            double distance = std::fabs(double(start + i - j));
            return dot * scale - (type == kRoot ? std::sqrt(distance) : distance) * shift[size_t(b * s.heads + h)];
        }
        double given = shift[s.row(b, h, i) * size_t(s.keys) + size_t(j)];
        return type == kAfter ? dot * scale + given : (dot + given) * scale;
    }
    // The scores of one query; masked ones are -infinity.
    std::vector<double> scores(int64_t b, int64_t h, int64_t i) const {
        const Shape& s = views.shape;
        std::vector<double> out;
        size_t row = s.row(b, h, i);
        for (int64_t j = 0; j < s.keys; ++j) {
            if (hide(s, b, h, i, j)) {
                out.push_back(-INFINITY);
                continue;
            }
            double dot = 0;
            for (int64_t d = 0; d < s.size; ++d)
                dot += q[row * size_t(s.size) + size_t(d)] * k[s.kv_row(b, h, j) * size_t(s.size) + size_t(d)];
            out.push_back(shifted(dot, b, h, i, j));
        }
        return out;
    }
};

template <class F>
void each_query(const Shape& s, F f) {
    for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.heads; ++h)
            for (int64_t i = 0; i < s.queries; ++i) f(b, h, i);
}

void plan_score(Plan& p) {
    Shape s = plan_training(p, "key", "realShiftOptional");
    for (const char* name : {"softmaxMaxOut", "softmaxSumOut"}) p.shape(name, {s.batch, s.heads, s.queries, kCopies});
    Tensor out = p.tensor("attentionOutOut");
    const std::string& layout = p.string("inputLayout");
    Dims want{s.batch, s.heads, s.queries, s.value_size};
    p.require(out.rank() == layout_rank(layout) && out.numel() == want.product() &&
                  as_heads(out, layout, s.heads).dims == want,
              "attentionOutOut has shape %s, which does not fit", text(out.dims).c_str());
    p.same_dtype("query", "attentionOutOut");
    p.workspace = uint64_t(s.batch * s.heads * s.queries) * 64 + (1 << 20);
}

void run_score(Run& r) {
    Training t(r, "key", "realShiftOptional");
    const Shape& s = t.views.shape;
    std::vector<double> out(size_t(s.batch * s.heads * s.queries * s.value_size)), tops, sums;
    each_query(s, [&](int64_t b, int64_t h, int64_t i) {
        auto x = t.scores(b, h, i);
        double top = -INFINITY, sum = 0;
        for (double v : x) top = std::max(top, v);
        if (!t.sink.empty()) top = std::max(top, t.sink[size_t(h)]);
        for (double& v : x) v = top == -INFINITY ? 0 : std::exp(v - top), sum += v;
        if (!t.sink.empty()) sum += std::exp(t.sink[size_t(h)] - top);
        size_t row = s.row(b, h, i);
        for (int64_t j = 0; j < s.keys; ++j) {
            double weight = sum == 0 ? 0 : x[size_t(j)] / sum * t.dropout(row * size_t(s.keys) + size_t(j));
            for (int64_t d = 0; d < s.value_size; ++d)
                out[row * size_t(s.value_size) + size_t(d)] +=
                    weight * t.v[s.kv_row(b, h, j) * size_t(s.value_size) + size_t(d)];
        }
        tops.insert(tops.end(), kCopies, top);
        sums.insert(sums.end(), kCopies, sum);
    });
    r.write(r.tensor("softmaxMaxOut"), tops);
    r.write(r.tensor("softmaxSumOut"), sums);
    r.write(as_heads(r.tensor("attentionOutOut"), r.string("inputLayout"), s.heads), out);
}

void plan_score_grad(Plan& p) {
    Shape s = plan_training(p, "keyIn", "pseShiftOptional");
    for (const char* name : {"softmaxMaxOptional", "softmaxSumOptional"}) {
        p.require(p.has(name), "%s is needed", name);
        p.shape(name, {s.batch, s.heads, s.queries, kCopies});
    }
    p.require(p.has("attentionInOptional"), "attentionInOptional is needed");
    p.same_shape("dy", "attentionInOptional");
    p.same_dtype("query", "dy");
    p.same_shape("query", "dqOut");
    p.same_shape("keyIn", "dkOut");
    p.same_shape("value", "dvOut");
    if (has_sink(p)) {
        p.require(p.has("dsinkOut"), "%s needs dsinkOut", sink_name(p));
        p.shape("dsinkOut", {s.heads});
    }
    p.workspace = uint64_t(p.tensor("query").numel() + p.tensor("keyIn").numel() + p.tensor("value").numel()) * 4;
}

void run_score_grad(Run& r) {
    Training t(r, "keyIn", "pseShiftOptional");
    const Shape& s = t.views.shape;
    const std::string& layout = r.string("inputLayout");
    auto dy = r.read<double>(as_heads(r.tensor("dy"), layout, s.heads));
    auto out = r.read<double>(as_heads(r.tensor("attentionInOptional"), layout, s.heads));
    auto tops = r.read<double>(r.tensor("softmaxMaxOptional")), sums = r.read<double>(r.tensor("softmaxSumOptional"));
    std::vector<double> dq(t.q.size()), dk(t.k.size()), dv(t.v.size()), dsink(t.sink.size());
    each_query(s, [&](int64_t b, int64_t h, int64_t i) {
        size_t row = s.row(b, h, i);
        double top = tops[row * kCopies], sum = sums[row * kCopies], along = 0;
        if (sum == 0) return;
        auto x = t.scores(b, h, i);
        for (int64_t d = 0; d < s.value_size; ++d) {
            size_t at = row * size_t(s.value_size) + size_t(d);
            along += dy[at] * out[at];
        }
        if (!dsink.empty()) dsink[size_t(h)] -= std::exp(t.sink[size_t(h)] - top) / sum * along;
        for (int64_t j = 0; j < s.keys; ++j) {
            if (x[size_t(j)] == -INFINITY) continue;
            double weight = std::exp(x[size_t(j)] - top) / sum, dp = 0;
            double kept = t.dropout(row * size_t(s.keys) + size_t(j));
            size_t other = s.kv_row(b, h, j);
            for (int64_t d = 0; d < s.value_size; ++d) {
                double g = dy[row * size_t(s.value_size) + size_t(d)];
                dp += g * t.v[other * size_t(s.value_size) + size_t(d)];
                dv[other * size_t(s.value_size) + size_t(d)] += weight * kept * g;
            }
            double ds = weight * (dp * kept - along) * t.scale;
            for (int64_t d = 0; d < s.size; ++d) {
                dq[row * size_t(s.size) + size_t(d)] += ds * t.k[other * size_t(s.size) + size_t(d)];
                dk[other * size_t(s.size) + size_t(d)] += ds * t.q[row * size_t(s.size) + size_t(d)];
            }
        }
    });
    r.write(as_heads(r.tensor("dqOut"), layout, s.heads), dq);
    r.write(as_heads(r.tensor("dkOut"), layout, s.kv_heads), dk);
    r.write(as_heads(r.tensor("dvOut"), layout, s.kv_heads), dv);
    if (!dsink.empty()) r.write(r.tensor("dsinkOut"), dsink);
}

// The second version adds ways to shift the scores; where queries and keys begin counts for those by distance only.
void plan_second(const Plan& p, const char* shift) {
    int64_t type = p.integer("pseType");
    p.require(type >= kAfter && type <= kRoot, "pseType is %lld, expected 0 to 3", static_cast<long long>(type));
    p.require(!by_distance(p) || p.has(shift), "pseType %lld needs %s", static_cast<long long>(type), shift);
    for (const char* name : {"qStartIdxOptional", "kvStartIdxOptional"})
        p.require(p.ints(name).size() <= 1, "%s has %zu elements, expected one", name, p.ints(name).size());
}

bool is_packed(const Call& c) { return c.string("inputLayout") == "TND"; }

// The fourth version adds rotary parts, scales of 8-bit floats, a dtype and a layout of the results.
void plan_fourth(const Plan& p, const char* layout, std::initializer_list<const char*> refused) {
    for (const char* name : refused) p.require(!p.has(name), "%s is not computed by the emulator: the documents state no formula for it", name);
    p.require(!p.has(layout) || p.string(layout).empty(), "%s is \"%s\"; the layout of the scores of padded sequences has no name: it must be empty", layout, p.string(layout).c_str());
}

}  // namespace

ACLNN(aclnnFlashAttentionScore, plan_score, run_score)
ACLNN(aclnnFlashAttentionScoreGrad, plan_score_grad, run_score_grad)
ACLNN(aclnnFlashAttentionScoreV2, PLAN { plan_second(p, "realShiftOptional"); plan_score(p); }, run_score)
ACLNN(aclnnFlashAttentionScoreGradV2, PLAN { plan_second(p, "pseShiftOptional"); plan_score_grad(p); }, run_score_grad)
// The third version adds a score that stands for no key.
ACLNN(aclnnFlashAttentionScoreV3, PLAN { plan_second(p, "realShiftOptional"); plan_score(p); }, run_score)
ACLNN(aclnnFlashAttentionScoreGradV3, PLAN { plan_second(p, "pseShiftOptional"); plan_score_grad(p); }, run_score_grad)
ACLNN(aclnnFlashAttentionScoreV4,
      PLAN {
          if (is_packed(p)) return plan_packed_score(p);
          plan_fourth(p, "softmaxOutLayout",
                      {"queryRopeOptional", "keyRopeOptional", "dScaleQOptional", "dScaleKOptional", "dScaleVOptional"});
          p.require(p.real("keepProb") == 1 || p.has("dropMaskOptional"), "keepProb below 1 needs dropMaskOptional");
          plan_second(p, "realShiftOptional");
          plan_score(p);
      },
      RUN { is_packed(r) ? run_packed_score(r) : run_score(r); })
ACLNN(aclnnFlashAttentionScoreGradV4,
      PLAN {
          if (is_packed(p)) return plan_packed_grad(p);
          plan_fourth(p, "softmaxInLayout",
                      {"queryRopeOptional", "keyRopeOptional", "dScaleQOptional", "dScaleKOptional", "dScaleVOptional",
                       "dScaleDyOptional", "dScaleOOptional"});
          p.require(p.real("keepProb") == 1 || p.has("dropMaskOptional"), "keepProb below 1 needs dropMaskOptional");
          plan_second(p, "pseShiftOptional");
          plan_score_grad(p);
      },
      RUN { is_packed(r) ? run_packed_grad(r) : run_score_grad(r); })
