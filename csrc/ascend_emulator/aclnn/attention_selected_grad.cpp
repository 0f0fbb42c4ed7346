// What flows back through attention to chosen keys.
//
// Softmax is rebuilt from the saved maxima and sums; the documents have shapes only. A value that is not given is the key.
#include "chosen_keys.h"

using namespace emu;
using namespace emu::chosen;

namespace {

// The names a function has for what all of them have.
struct Names {
    const char *indices, *g, *out, *query_lengths, *key_lengths, *dq, *dk, *dv;
    bool eight;  // statistics are written eight times each, by row and head
};

constexpr Names kSelected{"topkIndices", "attentionOutGrad", "attentionOut", "actualSeqQLenOptional", "actualSeqKvLenOptional", "dqOut", "dkOut", "dvOut", true};
constexpr Names kSparse{"sparseIndices", "dOut", "out", "actualSeqLengthsQueryOptional", "actualSeqLengthsKvOptional", "dQueryOut", "dKeyOut", "dValueOut", false};

int64_t block(const Call& c) { return c.integer(has_parameter(c, "sparseBlockSize") ? "sparseBlockSize" : "selectedBlockSize"); }

size_t saved(const Names& n, const Rows& q, const Rows& k, int64_t row, int64_t h) {
    return n.eight ? size_t((row * q.heads + h) * 8) : statistic(q, k, row, h);
}

void plan_grad(Plan& p, const Names& n) {
    for (const char* name : {"query", "key"})
        p.require(p.tensor(name).rank() == 3 || p.tensor(name).rank() == 4, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    Rows q = rows(p.tensor("query")), k = rows(p.tensor("key"));
    p.require(q.packed == k.packed && k.heads > 0 && q.heads % k.heads == 0 && q.width == k.width && q.batch == k.batch, "query has shape %s, key %s",
              text(p.tensor("query").dims).c_str(), text(p.tensor("key").dims).c_str());
    std::string given_layout = has_parameter(p, "inputLayout") ? p.string("inputLayout") : layout(p, "layoutOptional");
    p.require(given_layout == (q.packed ? "TND" : "BSND"), "the layout is \"%s\", query has %d dimensions", given_layout.c_str(), p.tensor("query").rank());
    p.require(!q.packed || (given(p, n.query_lengths) && given(p, n.key_lengths)), "%s and %s are needed where sequences are packed", n.query_lengths, n.key_lengths);
    p.require(p.integer("sparseMode") == 0 || p.integer("sparseMode") == 3, "sparseMode is %lld, expected 0 or 3", wide(p.integer("sparseMode")));
    p.require(block(p) >= 1 && block(p) <= INT32_MAX, "the blocks have %lld keys", wide(block(p)));
    const Tensor& v = p.has("value") ? p.tensor("value") : p.tensor("key");
    Dims pair = v.dims, key = p.tensor("key").dims, out = p.tensor("query").dims;
    out[out.n - 1] = pair.back();
    --pair.n, --key.n;
    p.require(pair == key, "key has shape %s, value %s", text(p.tensor("key").dims).c_str(), text(v.dims).c_str());
    p.shape(n.g, out);
    p.shape(n.out, out);
    const Dims& chosen = p.tensor(n.indices).dims;
    p.require(chosen.n > 0 && chosen.product() == q.batch * q.length * k.heads * chosen.back(), "%s has shape %s", n.indices, text(chosen).c_str());
    for (const char* name : {"softmaxMax", "softmaxSum"}) {
        if (n.eight) p.shape(name, {q.length, q.heads, 8});
        else p.shape(name, statistics(q, k));
    }
    p.same_shape("query", n.dq);
    p.same_shape("key", n.dk);
    if (p.has("value")) p.same_shape("value", n.dv);
    if (!given(p, "queryRopeOptional") && !given(p, "keyRopeOptional")) return;
    p.require(given(p, "queryRopeOptional") && given(p, "keyRopeOptional"), "queryRopeOptional and keyRopeOptional belong together");
    Dims turned = p.tensor("query").dims, turned_key = p.tensor("key").dims;
    turned[turned.n - 1] = turned_key[turned_key.n - 1] = p.tensor("queryRopeOptional").dims.back();
    p.shape("queryRopeOptional", turned), p.shape("keyRopeOptional", turned_key);
    p.require(p.has("dQueryRopeOutOptional") && p.has("dKeyRopeOutOptional"), "the gradients of the rotated parts are null");
    p.shape("dQueryRopeOutOptional", turned), p.shape("dKeyRopeOutOptional", turned_key);
}

// Products of rows of one width, and what flows back to both.
struct Part {
    Values x, y, dx, dy;
    int64_t width = 0;

    void read(const Run& r, const char* query, const char* key) {
        x = r.read<double>(r.tensor(query)), y = r.read<double>(r.tensor(key));
        dx.resize(x.size()), dy.resize(y.size());
        width = r.tensor(query).dims.back();
    }
    double dot(int64_t i, int64_t j) const {
        double sum = 0;
        for (int64_t d = 0; d < width; ++d) sum += x[size_t(i * width + d)] * y[size_t(j * width + d)];
        return sum;
    }
    void back(int64_t i, int64_t j, double by) {
        for (int64_t d = 0; d < width; ++d) {
            dx[size_t(i * width + d)] += by * y[size_t(j * width + d)];
            dy[size_t(j * width + d)] += by * x[size_t(i * width + d)];
        }
    }
};

void run_grad(Run& r, const Names& n) {
    Rows q = rows(r.tensor("query")), k = rows(r.tensor("key"));
    Part plain, turned;
    plain.read(r, "query", "key");
    if (given(r, "queryRopeOptional")) turned.read(r, "queryRopeOptional", "keyRopeOptional");
    auto v = r.has("value") ? r.read<double>(r.tensor("value")) : plain.y;
    auto g = r.read<double>(r.tensor(n.g)), out = r.read<double>(r.tensor(n.out));
    auto top = r.read<double>(r.tensor("softmaxMax")), sum = r.read<double>(r.tensor("softmaxSum"));
    auto indices = r.read<int64_t>(r.tensor(n.indices));
    int64_t count = r.tensor(n.indices).dims.back(), size = block(r), per = q.heads / k.heads, wide_v = r.tensor(n.out).dims.back();
    double scale = r.real("scaleValue");
    Values dv(v.size(), 0);
    auto one = [&](const Span& s, int64_t i, int64_t h) {
        int64_t row = s.query + i, at = row * q.heads + h, last = std::min(visible(r.integer("sparseMode"), s, i), s.keys);
        size_t place = saved(n, q, k, row, h);
        double along = 0;
        for (int64_t d = 0; d < wide_v; ++d) along += g[size_t(at * wide_v + d)] * out[size_t(at * wide_v + d)];
        const int64_t* chosen = indices.data() + (row * k.heads + h / per) * count;
        for (int64_t c = 0; c < count && chosen[c] >= 0; ++c)
            for (int64_t j = chosen[c] * size; j < std::min((chosen[c] + 1) * size, last); ++j) {
                int64_t to = (s.key + j) * k.heads + h / per;
                double logit = scale * (plain.dot(at, to) + turned.dot(at, to));
                double weight = std::exp(logit - top[place]) / sum[place], dp = 0;
                for (int64_t d = 0; d < wide_v; ++d) {
                    dp += g[size_t(at * wide_v + d)] * v[size_t(to * wide_v + d)];
                    dv[size_t(to * wide_v + d)] += weight * g[size_t(at * wide_v + d)];
                }
                plain.back(at, to, weight * (dp - along) * scale);
                turned.back(at, to, weight * (dp - along) * scale);
            }
    };
    for (const Span& s : spans(r, q, k, false, n.query_lengths, n.key_lengths))
        for (int64_t i = 0; i < s.queries; ++i)
            for (int64_t h = 0; h < q.heads; ++h) one(s, i, h);
    if (!r.has("value"))
        for (size_t i = 0; i < dv.size(); ++i) plain.dy[i] += dv[i];
    r.write(r.tensor(n.dq), plain.dx);
    r.write(r.tensor(n.dk), plain.dy);
    if (r.has("value")) r.write(r.tensor(n.dv), dv);
    if (turned.width == 0) return;
    r.write(r.tensor("dQueryRopeOutOptional"), turned.dx);
    r.write(r.tensor("dKeyRopeOutOptional"), turned.dy);
}

// -- the score that chooses: sum over heads of weight * relu(query . key) ----------------------------------------------------
struct Scored {
    const char *query, *key, *weights, *indices, *query_lengths, *key_lengths, *dq, *dk, *dw;
};

constexpr Scored kIndexer{"query", "key", "weights", "sparseIndices", "actualSeqQLenOptional", "actualSeqKvLenOptional", "dqOut", "dkOut", "dweightsOut"};
constexpr Scored kLoss{"queryIndex", "keyIndex", "weights", "sparseIndices", "actualSeqLengthsQuery", "actualSeqLengthsKey", "dQueryIndex", "dKeyIndex", "dWeights"};
constexpr Scored kLater{"q", "k", "w", "sparseIndices", "cuSeqLensQOptional", "cuSeqLensKOptional", "dq", "dk", "dw"};

void plan_scored(const Plan& p, const Scored& n) {
    for (const char* name : {n.query, n.key})
        p.require(p.tensor(name).rank() == 3 || p.tensor(name).rank() == 4, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    Rows q = rows(p.tensor(n.query)), k = rows(p.tensor(n.key));
    p.require(q.packed == k.packed && k.heads == 1 && q.width == k.width && q.batch == k.batch, "%s has shape %s, %s %s; the keys have one head", n.query,
              text(p.tensor(n.query).dims).c_str(), n.key, text(p.tensor(n.key).dims).c_str());
    p.require(!q.packed || (given(p, n.query_lengths) && given(p, n.key_lengths)), "%s and %s are needed where sequences are packed", n.query_lengths, n.key_lengths);
    for (const char* name : {"inputLayout", "layout", "layoutQ", "layoutK"})
        if (has_parameter(p, name))
            p.require(p.string(name) == (q.packed ? "TND" : "BSND"), "%s is \"%s\", %s has %d dimensions", name, p.string(name).c_str(), n.query, p.tensor(n.query).rank());
    for (const char* name : {"sparseMode", "maskMode"})
        if (has_parameter(p, name)) p.require(p.integer(name) == 0 || p.integer(name) == 3, "%s is %lld, expected 0 or 3", name, wide(p.integer(name)));
    p.require(p.tensor(n.weights).numel() == q.batch * q.length * q.heads, "%s has shape %s", n.weights, text(p.tensor(n.weights).dims).c_str());
    const Dims& chosen = p.tensor(n.indices).dims;
    p.require(chosen.n > 0 && chosen.product() == q.batch * q.length * chosen.back(), "%s has shape %s", n.indices, text(chosen).c_str());
    p.same_shape(n.query, n.dq);
    p.same_shape(n.key, n.dk);
    p.same_shape(n.weights, n.dw);
}

struct Scores {
    Part part;
    Values w, dw;
    int64_t heads;

    Scores(const Run& r, const Scored& n) : w(r.read<double>(r.tensor(n.weights))), dw(w.size(), 0), heads(rows(r.tensor(n.query)).heads) { part.read(r, n.query, n.key); }
    double of(int64_t row, int64_t key) const {
        double sum = 0;
        for (int64_t h = 0; h < heads; ++h) sum += w[size_t(row * heads + h)] * std::fmax(part.dot(row * heads + h, key), 0);
        return sum;
    }
    void back(int64_t row, int64_t key, double by) {
        for (int64_t h = 0; h < heads; ++h) {
            double dot = part.dot(row * heads + h, key);
            if (dot <= 0) continue;
            dw[size_t(row * heads + h)] += by * dot;
            part.back(row * heads + h, key, by * w[size_t(row * heads + h)]);
        }
    }
    void write(const Run& r, const Scored& n) const {
        r.write(r.tensor(n.dq), part.dx);
        r.write(r.tensor(n.dk), part.dy);
        r.write(r.tensor(n.dw), dw);
    }
};

// f(sequence, which query of it, row, places among the chosen, keys there)
template <class F>
void each_choice(const Run& r, const Scored& n, F f) {
    Rows q = rows(r.tensor(n.query)), k = rows(r.tensor(n.key));
    auto indices = r.read<int64_t>(r.tensor(n.indices));
    int64_t count = r.tensor(n.indices).dims.back(), mode = r.integer(has_parameter(r, "maskMode") ? "maskMode" : "sparseMode");
    for (const Span& s : spans(r, q, k, false, n.query_lengths, n.key_lengths))
        for (int64_t i = 0; i < s.queries; ++i) {
            int64_t row = s.query + i, last = std::min(visible(mode, s, i), s.keys);
            std::vector<std::pair<int64_t, int64_t>> picked;
            for (int64_t c = 0; c < count && indices[size_t(row * count + c)] >= 0; ++c) {
                int64_t j = indices[size_t(row * count + c)];
                if (j >= s.keys) fault("%s holds %lld, the sequence has %lld keys", n.indices, wide(j), wide(s.keys));
                if (j < last) picked.emplace_back(row * count + c, s.key + j);
            }
            f(s, i, row, picked);
        }
}

void plan_indexer(Plan& p) {
    plan_scored(p, kIndexer);
    p.require(p.integer("headNum") == rows(p.tensor("query")).heads, "headNum is %lld, query has shape %s", wide(p.integer("headNum")), text(p.tensor("query").dims).c_str());
    p.require(p.tensor("dy").numel() == p.tensor("sparseIndices").numel(), "dy has shape %s, sparseIndices %s", text(p.tensor("dy").dims).c_str(),
              text(p.tensor("sparseIndices").dims).c_str());
}

void run_indexer(Run& r) {
    Scores scores(r, kIndexer);
    auto dy = r.read<double>(r.tensor("dy"));
    each_choice(r, kIndexer, [&](const Span&, int64_t, int64_t row, const auto& picked) {
        for (auto [place, key] : picked) scores.back(row, key, dy[size_t(place)]);
    });
    scores.write(r, kIndexer);
}

// -- the score is taught by attention: loss = sum of p * log(p / softmax(score)), p the weights of attention, all heads as one --
struct Taught {
    Values student;
    double loss = 0;
};

// teacher(sequence, row, picked) gives p.
template <class F>
Taught teach(const Run& r, const Scored& n, Scores& scores, F teacher) {
    Taught out{Values(size_t(r.tensor(n.indices).numel()), 0)};
    each_choice(r, n, [&](const Span& s, int64_t i, int64_t row, const auto& picked) {
        Values p = teacher(s, i, row, picked), x;
        double top = -INFINITY, sum = 0;
        for (auto [place, key] : picked) x.push_back(scores.of(row, key)), top = std::fmax(top, x.back());
        for (double& e : x) e = std::exp(e - top), sum += e;
        for (size_t c = 0; c < picked.size(); ++c) {
            double student = x[c] / sum;
            out.student[size_t(picked[c].first)] = student;
            if (p[c] > 0) out.loss += p[c] * std::log(p[c] / student);
            scores.back(row, picked[c].second, student - p[c]);
        }
    });
    return out;
}

void plan_loss(Plan& p) {
    plan_scored(p, kLoss);
    need_elements(p, {"key"});
    Rows q = rows(p.tensor("query")), k = rows(p.tensor("key")), index = rows(p.tensor("queryIndex"));
    p.require(q.packed == index.packed && q.batch == index.batch && q.length == index.length && k.heads == 1 && q.width == k.width,
              "query has shape %s, key %s, queryIndex %s", text(p.tensor("query").dims).c_str(), text(p.tensor("key").dims).c_str(), text(p.tensor("queryIndex").dims).c_str());
    for (const char* name : {"softmaxMax", "softmaxSum"}) p.shape(name, statistics(q, k));
    p.shape("loss", {1});
    p.require(p.has("queryRope") == p.has("keyRope"), "queryRope and keyRope belong together");
    if (!p.has("queryRope")) return;
    Dims turned = p.tensor("query").dims, turned_key = p.tensor("key").dims;
    turned[turned.n - 1] = turned_key[turned_key.n - 1] = p.tensor("queryRope").dims.back();
    p.shape("queryRope", turned), p.shape("keyRope", turned_key);
}

void run_loss(Run& r) {
    Scores scores(r, kLoss);
    Rows q = rows(r.tensor("query")), k = rows(r.tensor("key"));
    Part plain, turned;
    plain.read(r, "query", "key");
    if (r.has("queryRope")) turned.read(r, "queryRope", "keyRope");
    auto top = r.read<double>(r.tensor("softmaxMax")), sum = r.read<double>(r.tensor("softmaxSum"));
    Taught taught = teach(r, kLoss, scores, [&](const Span&, int64_t, int64_t row, const auto& picked) {
        Values p;
        for (auto [place, key] : picked) {
            double all = 0;
            for (int64_t h = 0; h < q.heads; ++h) {
                size_t at = statistic(q, k, row, h);
                double logit = r.real("scaleValue") * (plain.dot(row * q.heads + h, key) + turned.dot(row * q.heads + h, key));
                all += std::exp(logit - top[at]) / sum[at];
            }
            p.push_back(all / double(q.heads));
        }
        return p;
    });
    scores.write(r, kLoss);
    r.write(r.tensor("loss"), Values{taught.loss});
}

void plan_later_loss(Plan& p) {
    plan_scored(p, kLater);
    p.require(p.integer("cmpRatio") == 1 || p.integer("maskMode") == 0, "cmpRatio is %lld; the emulator computes 1 where maskMode is 3", wide(p.integer("cmpRatio")));
    for (const char* name : {"seqUsedQOptional", "seqUsedKOptional", "cmpResidualKOptional"}) p.require(!p.has(name), "%s is not computed by the emulator: the documents state no formula for it", name);
    p.same_shape("sparseIndices", "attnSoftmaxL1Norm");
    p.same_shape("attnSoftmaxL1Norm", "softmaxOut");
}

void run_later_loss(Run& r) {
    Scores scores(r, kLater);
    auto teacher = r.read<double>(r.tensor("attnSoftmaxL1Norm"));
    Taught taught = teach(r, kLater, scores, [&](const Span&, int64_t, int64_t, const auto& picked) {
        Values p;
        for (auto [place, key] : picked) p.push_back(teacher[size_t(place)]);
        return p;
    });
    scores.write(r, kLater);
    r.write(r.tensor("softmaxOut"), taught.student);
}

}  // namespace

ACLNN(aclnnNsaSelectedAttentionGrad,
      PLAN {
          plan_grad(p, kSelected);
          p.require(p.tensor("query").rank() == 3, "query has %d dimensions, expected 3 (TND)", p.tensor("query").rank());
          p.require(p.integer("headNum") == p.tensor("query").dims[1], "headNum is %lld, query has %lld", wide(p.integer("headNum")), wide(p.tensor("query").dims[1]));
          p.require(p.integer("selectedBlockCount") == p.tensor("topkIndices").dims.back(), "selectedBlockCount is %lld, topkIndices has shape %s",
                    wide(p.integer("selectedBlockCount")), text(p.tensor("topkIndices").dims).c_str());
          p.require(!p.has("attenMaskOptional") || p.integer("sparseMode") == 3, "attenMaskOptional belongs to sparseMode 3");
      },
      RUN { run_grad(r, kSelected); })
ACLNN(aclnnSparseFlashAttentionGrad, PLAN { plan_grad(p, kSparse); }, RUN { run_grad(r, kSparse); })
ACLNN(aclnnLightningIndexerGrad, plan_indexer, run_indexer)
ACLNN(aclnnSparseLightningIndexerGradKLLoss, plan_loss, run_loss)
ACLNN(aclnnSparseLightningIndexerKLLossGrad, plan_later_loss, run_later_loss)
