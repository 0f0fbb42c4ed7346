// Attention to chosen keys: which keys a query looks at, and attention to them; and connections between parallel streams of
// hidden states.
//
// The formulas are not in the facts; they are the ones of the functions' public descriptions. Masks: sparseMode 0 has none,
// 3 lets query i of n see the keys up to m - n + i of m.
#include "chosen_keys.h"

using namespace emu;
using namespace emu::chosen;

namespace {

void plan_lengths(const Plan& p, const char* queries, const char* keys) {
    p.require(!given(p, "blockTableOptional") || given(p, keys), "%s is needed beside blockTableOptional", keys);
    const Tensor& q = p.tensor("query");
    p.require(q.rank() == 3 || q.rank() == 4, "query has shape %s", text(q.dims).c_str());
    p.require(q.rank() == 4 || given(p, queries), "%s is needed where sequences are packed", queries);
}

void plan_modes(const Plan& p) {
    p.require(p.integer("sparseMode") == 0 || p.integer("sparseMode") == 3, "sparseMode is %lld; expected 0 or 3", wide(p.integer("sparseMode")));
    for (const char* name : {"layoutQueryOptional", "layoutKeyOptional", "layoutKvOptional"}) {
        if (!has_parameter(p, name)) continue;
        std::string l = layout(p, name);
        p.require(l == "BSND" || l == "TND" || (l == "PA_BSND" && std::strcmp(name, "layoutQueryOptional") != 0), "%s is \"%s\"", name, l.c_str());
    }
}

// -- which keys --------------------------------------------------------------------------------------------------------------
// score = sum over heads of weight * relu(query . key); the best sparseCount of them, best first, then -1. Where both are
// small numbers the scales of a query's head and of a key are factors of the product.
void plan_indexer(Plan& p) {
    plan_modes(p);
    need_elements(p, {"key"});
    plan_lengths(p, "actualSeqLengthsQueryOptional", "actualSeqLengthsKeyOptional");
    Rows q = rows(p.tensor("query"));
    const Tensor& key = p.tensor("key");
    p.require(key.rank() == 3 || key.rank() == 4, "key has shape %s", text(key.dims).c_str());
    Rows k = rows(key);
    p.require(k.heads == 1 && k.width == q.width, "query has shape %s, key %s", text(p.tensor("query").dims).c_str(), text(key.dims).c_str());
    p.require(p.tensor("weights").numel() == q.batch * q.length * q.heads, "weights has shape %s", text(p.tensor("weights").dims).c_str());
    p.require(p.integer("sparseCount") > 0, "sparseCount is %lld", wide(p.integer("sparseCount")));
    Dims want = p.tensor("query").dims;
    want[want.n - 2] = 1, want[want.n - 1] = p.integer("sparseCount");
    if (has_parameter(p, "queryDequantScale")) {
        for (const char* name : {"queryQuantMode", "keyQuantMode"})
            p.require(p.integer(name) == 0, "%s is %lld, expected 0 (a scale for each token and head)", name, wide(p.integer(name)));
        p.require(p.tensor("queryDequantScale").numel() == q.batch * q.length * q.heads, "queryDequantScale has shape %s", text(p.tensor("queryDequantScale").dims).c_str());
        p.require(p.tensor("keyDequantScale").numel() == k.batch * k.length, "keyDequantScale has shape %s", text(p.tensor("keyDequantScale").dims).c_str());
        p.shape("out", want);
        return;
    }
    p.shape("sparseIndicesOut", want);
    if (p.flag("returnValues")) p.shape("sparseValuesOut", want);
}

void run_indexer(Run& r) {
    Rows q = rows(r.tensor("query")), k = rows(r.tensor("key"));
    auto x = r.read<double>(r.tensor("query")), y = r.read<double>(r.tensor("key")), w = r.read<double>(r.tensor("weights"));
    bool quantized = has_parameter(r, "queryDequantScale");
    Values key_scale;
    if (quantized) {
        auto scale = r.read<double>(r.tensor("queryDequantScale"));
        for (size_t i = 0; i < w.size(); ++i) w[i] *= scale[i];
        key_scale = r.read<double>(r.tensor("keyDequantScale"));
    }
    int64_t count = r.integer("sparseCount");
    Pages paged = pages(r, k);
    std::vector<int64_t> indices(size_t(q.batch * q.length * count), -1);
    Values values(indices.size(), -INFINITY);
    for (const Span& s : spans(r, q, k, !paged.table.empty(), "actualSeqLengthsQueryOptional", "actualSeqLengthsKeyOptional"))
        for (int64_t i = 0; i < s.queries; ++i) {
            std::vector<std::pair<double, int64_t>> scores;
            int64_t row = s.query + i, last = std::min(visible(r.integer("sparseMode"), s, i), s.keys);
            for (int64_t j = 0; j < last; ++j) {
                int64_t place = paged.row(s, j);
                const double* key = y.data() + place * k.width;
                double score = 0;
                for (int64_t h = 0; h < q.heads; ++h) {
                    double dot = 0;
                    for (int64_t d = 0; d < q.width; ++d) dot += x[size_t((row * q.heads + h) * q.width + d)] * key[d];
                    score += w[size_t(row * q.heads + h)] * std::fmax(dot, 0);
                }
                scores.emplace_back(quantized ? -score * key_scale[size_t(place)] : -score, j);
            }
            std::sort(scores.begin(), scores.end());
            for (int64_t n = 0; n < std::min(count, int64_t(scores.size())); ++n) {
                indices[size_t(row * count + n)] = scores[size_t(n)].second;
                values[size_t(row * count + n)] = -scores[size_t(n)].first;
            }
        }
    if (quantized) return r.write(r.tensor("out"), indices);
    r.write(r.tensor("sparseIndicesOut"), indices);
    if (r.flag("returnValues")) r.write(r.tensor("sparseValuesOut"), values);
}

// The second version: packed rows by where they begin, keys that stand for cmpRatio each, places moved by a number.
void plan_later_indexer(Plan& p) {
    for (const char* name : {"q", "k"}) p.require(p.tensor(name).rank() == 3 || p.tensor(name).rank() == 4, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    std::string lq = p.string("layoutQ"), lk = p.string("layoutK");
    Rows q = rows(p.tensor("q")), k = rows(p.tensor("k"));
    p.require(lq == (q.packed ? "TND" : "BSND"), "layoutQ is \"%s\", q has %d dimensions", lq.c_str(), p.tensor("q").rank());
    p.require(lk == "PA_BBND" ? !k.packed : lk == (k.packed ? "TND" : "BSND"), "layoutK is \"%s\", k has %d dimensions", lk.c_str(), p.tensor("k").rank());
    p.require((lk == "PA_BBND") == p.has("blockTableOptional"), "blockTableOptional belongs to PA_BBND");
    p.require(k.heads == 1 && k.width == q.width, "q has shape %s, k %s", text(p.tensor("q").dims).c_str(), text(p.tensor("k").dims).c_str());
    p.require(p.tensor("w").numel() == q.batch * q.length * q.heads, "w has shape %s", text(p.tensor("w").dims).c_str());
    p.require(q.packed ? p.has("cuSeqlensQOptional") && !p.has("sequsedQOptional") : !p.has("cuSeqlensQOptional"), "cuSeqlensQOptional belongs to packed queries, alone");
    p.require(lk == "TND" ? p.has("cuSeqlensKOptional") && !p.has("sequsedKOptional") : !p.has("cuSeqlensKOptional"), "cuSeqlensKOptional belongs to packed keys, alone");
    p.require(lk != "PA_BBND" || p.has("sequsedKOptional"), "sequsedKOptional is needed where keys are in pages");
    p.require(p.integer("maskMode") == 0 || p.integer("maskMode") == 3, "maskMode is %lld, expected 0 or 3", wide(p.integer("maskMode")));
    p.require(p.integer("cmpRatio") >= 1 && p.integer("cmpRatio") <= INT32_MAX && p.integer("topk") > 0, "cmpRatio is %lld, topk %lld", wide(p.integer("cmpRatio")), wide(p.integer("topk")));
    Dims want = p.tensor("q").dims;
    want[want.n - 2] = 1, want[want.n - 1] = p.integer("topk");
    p.shape("sparseIndices", want);
    if (p.integer("returnValue") == 0) return;
    p.require(p.has("sparseValues"), "returnValue is set and sparseValues is null");
    p.shape("sparseValues", want);
}

void run_later_indexer(Run& r) {
    Rows q = rows(r.tensor("q")), k = rows(r.tensor("k"));
    auto x = r.read<double>(r.tensor("q")), y = r.read<double>(r.tensor("k")), w = r.read<double>(r.tensor("w"));
    int64_t count = r.integer("topk"), ratio = r.integer("cmpRatio");
    Pages paged = pages(r, k);
    auto all = spans(r, q, k, !paged.table.empty(), q.packed ? "cuSeqlensQOptional" : "sequsedQOptional", k.packed ? "cuSeqlensKOptional" : "sequsedKOptional");
    auto residual = lengths(r, "cmpResidualKOptional"), moved = lengths(r, "outputIdxOffsetOptional");
    for (const auto* list : {&residual, &moved})
        if (!list->empty() && list->size() != all.size()) fault("a list has %zu elements for %zu sequences", list->size(), all.size());
    std::vector<int64_t> indices(size_t(q.batch * q.length * count), -1);
    Values values(indices.size(), -INFINITY);
    for (const Span& s : all)
        for (int64_t i = 0; i < s.queries; ++i) {
            int64_t row = s.query + i, whole = s.keys * ratio + (residual.empty() ? 0 : residual[size_t(s.batch)]);
            int64_t last = r.integer("maskMode") == 3 ? std::min(std::max<int64_t>(whole - s.queries + i + 1, 0) / ratio, s.keys) : s.keys;
            std::vector<std::pair<double, int64_t>> scores;
            for (int64_t j = 0; j < last; ++j) {
                double score = 0;
                for (int64_t h = 0; h < q.heads; ++h) {
                    double dot = 0;
                    for (int64_t d = 0; d < q.width; ++d) dot += x[size_t((row * q.heads + h) * q.width + d)] * y[size_t(paged.row(s, j) * k.width + d)];
                    score += w[size_t(row * q.heads + h)] * std::fmax(dot, 0);
                }
                scores.emplace_back(-score, j);
            }
            std::sort(scores.begin(), scores.end());
            for (int64_t n = 0; n < std::min(count, int64_t(scores.size())); ++n) {
                indices[size_t(row * count + n)] = scores[size_t(n)].second + (moved.empty() ? 0 : moved[size_t(s.batch)]);
                values[size_t(row * count + n)] = -scores[size_t(n)].first;
            }
        }
    r.write(r.tensor("sparseIndices"), indices);
    if (r.integer("returnValue") != 0) r.write(r.tensor("sparseValues"), values);
}

// -- attention to them -------------------------------------------------------------------------------------------------------
struct Picked {
    Values out, top, sum;
};

// `indices`: for each query row and head of the keys, `count` blocks of `block` keys; -1 ends them.
Picked attend(const Run& r, const std::vector<Span>& all, const Rows& q, const Rows& k, int64_t value_width, const std::vector<int64_t>& indices, int64_t count,
              int64_t block, const Pages& paged) {
    auto x = r.read<double>(r.tensor("query")), y = r.read<double>(r.tensor("key")), v = r.read<double>(r.tensor("value"));
    Values xr, yr;
    int64_t turned = 0;
    if (given(r, "queryRopeOptional")) {
        xr = r.read<double>(r.tensor("queryRopeOptional")), yr = r.read<double>(r.tensor("keyRopeOptional"));
        turned = r.tensor("queryRopeOptional").dims.back();
    }
    int64_t per = q.heads / k.heads, mode = r.integer("sparseMode");
    Picked p{Values(size_t(q.batch * q.length * q.heads * value_width), 0), Values(size_t(q.batch * q.length * q.heads), 0), {}};
    p.sum = p.top;
    for (const Span& s : all)
        for (int64_t i = 0; i < s.queries; ++i)
            for (int64_t h = 0; h < q.heads; ++h) {
                int64_t row = s.query + i, at = row * q.heads + h, last = std::min(visible(mode, s, i), s.keys);
                const int64_t* chosen = indices.data() + (row * k.heads + h / per) * count;
                std::vector<int64_t> places;
                Values logits;
                double top = -INFINITY;
                for (int64_t n = 0; n < count && chosen[n] >= 0; ++n)
                    for (int64_t j = chosen[n] * block; j < std::min((chosen[n] + 1) * block, last); ++j) {
                        int64_t place = paged.row(s, j) * k.heads + h / per;
                        double dot = 0;
                        for (int64_t d = 0; d < q.width; ++d) dot += x[size_t(at * q.width + d)] * y[size_t(place * k.width + d)];
                        for (int64_t d = 0; d < turned; ++d) dot += xr[size_t(at * turned + d)] * yr[size_t(place * turned + d)];
                        places.push_back(place), logits.push_back(dot * r.real("scaleValue"));
                        top = std::fmax(top, logits.back());
                    }
                double sum = 0;
                for (double& l : logits) l = std::exp(l - top), sum += l;
                for (size_t n = 0; n < places.size(); ++n)
                    for (int64_t d = 0; d < value_width; ++d) p.out[size_t(at * value_width + d)] += logits[n] / sum * v[size_t(places[n] * value_width + d)];
                p.top[size_t(at)] = places.empty() ? 0 : top, p.sum[size_t(at)] = sum;
            }
    return p;
}

void plan_heads(const Plan& p, const Rows& q, const Rows& k) {
    p.require(k.heads > 0 && q.heads % k.heads == 0 && q.width == k.width, "query has shape %s, key %s", text(p.tensor("query").dims).c_str(),
              text(p.tensor("key").dims).c_str());
    Dims pair = p.tensor("value").dims, key = p.tensor("key").dims;
    pair.n = pair.n > 0 ? pair.n - 1 : 0, key.n = key.n > 0 ? key.n - 1 : 0;
    p.require(pair == key, "key has shape %s, value %s", text(p.tensor("key").dims).c_str(), text(p.tensor("value").dims).c_str());
    Dims want = p.tensor("query").dims;
    want[want.n - 1] = p.tensor("value").dims.back();
    p.shape("attentionOut", want);
}

void plan_sparse(Plan& p) {
    plan_modes(p);
    plan_lengths(p, "actualSeqLengthsQueryOptional", "actualSeqLengthsKvOptional");
    p.require(p.tensor("key").rank() == 3 || p.tensor("key").rank() == 4, "key has shape %s", text(p.tensor("key").dims).c_str());
    Rows q = rows(p.tensor("query")), k = rows(p.tensor("key"));
    plan_heads(p, q, k);
    if (p.flag("returnSoftmaxLse"))
        for (const char* name : {"softmaxMax", "softmaxSum"}) {
            p.require(p.has(name), "returnSoftmaxLse is true and %s is null", name);
            p.require(p.tensor(name).dtype == ACL_FLOAT, "%s has dtype %s, expected FLOAT", name, dtype_name(p.tensor(name).dtype));
            p.shape(name, statistics(q, k));
        }
    p.require(p.integer("sparseBlockSizeOptional") >= 1 && p.integer("sparseBlockSizeOptional") <= INT32_MAX, "sparseBlockSizeOptional is %lld", wide(p.integer("sparseBlockSizeOptional")));
    p.require(given(p, "queryRopeOptional") == given(p, "keyRopeOptional"), "queryRopeOptional and keyRopeOptional belong together");
    const Dims& chosen = p.tensor("sparseIndices").dims;
    p.require(chosen.product() == q.batch * q.length * k.heads * chosen.back(), "sparseIndices has shape %s", text(chosen).c_str());
    if (given(p, "queryRopeOptional")) {
        int64_t width = p.tensor("queryRopeOptional").dims.back();
        p.require(p.tensor("queryRopeOptional").numel() == q.batch * q.length * q.heads * width &&
                      p.tensor("keyRopeOptional").numel() == k.batch * k.length * k.heads * width,
                  "queryRopeOptional has shape %s, keyRopeOptional %s", text(p.tensor("queryRopeOptional").dims).c_str(),
                  text(p.tensor("keyRopeOptional").dims).c_str());
    }
}

void run_sparse(Run& r) {
    Rows q = rows(r.tensor("query")), k = rows(r.tensor("key"));
    Pages paged = pages(r, k);
    auto all = spans(r, q, k, !paged.table.empty(), "actualSeqLengthsQueryOptional", "actualSeqLengthsKvOptional");
    Picked p = attend(r, all, q, k, r.tensor("value").dims.back(), r.read<int64_t>(r.tensor("sparseIndices")), r.tensor("sparseIndices").dims.back(),
                      r.integer("sparseBlockSizeOptional"), paged);
    r.write(r.tensor("attentionOut"), p.out);
    if (!r.flag("returnSoftmaxLse")) return;
    for (const char* name : {"softmaxMax", "softmaxSum"}) {
        const Values& from = name[7] == 'M' ? p.top : p.sum;
        Values to(from.size());
        for (int64_t row = 0; row < q.batch * q.length; ++row)
            for (int64_t h = 0; h < q.heads; ++h) to[statistic(q, k, row, h)] = from[size_t(row * q.heads + h)];
        r.write(r.tensor(name), to);
    }
}

// Packed sequences only; maxima and sums are written eight times each.
void plan_selected(Plan& p) {
    Rows q = rows(p.tensor("query")), k = rows(p.tensor("key"));
    p.require(p.string("inputLayout") == "TND" && p.tensor("query").rank() == 3 && p.tensor("key").rank() == 3, "inputLayout is \"%s\"; the emulator computes TND",
              p.string("inputLayout").c_str());
    p.require(!p.ints("actualSeqQLenOptional").empty() && p.ints("actualSeqQLenOptional").size() == p.ints("actualSeqKvLenOptional").size(),
              "actualSeqQLenOptional and actualSeqKvLenOptional must be given, of one length");
    plan_heads(p, q, k);
    p.require(p.integer("sparseMode") == 0 || p.integer("sparseMode") == 3, "sparseMode is %lld; the emulator computes 0 and 3", wide(p.integer("sparseMode")));
    p.require(!p.has("attenMaskOptional") || p.integer("sparseMode") == 3, "attenMaskOptional belongs to sparseMode 3");
    p.require(p.integer("headNum") == q.heads, "headNum is %lld, query has %lld", wide(p.integer("headNum")), wide(q.heads));
    p.require(p.integer("selectedBlockSize") >= 1 && p.integer("selectedBlockSize") <= INT32_MAX, "selectedBlockSize is %lld", wide(p.integer("selectedBlockSize")));
    p.shape("topkIndices", {q.length, k.heads, p.integer("selectedBlockCount")});
    for (const char* name : {"softmaxMaxOut", "softmaxSumOut"}) p.shape(name, {q.length, q.heads, 8});
}

void run_selected(Run& r) {
    Rows q = rows(r.tensor("query")), k = rows(r.tensor("key"));
    auto all = spans(r, q, k, false, "actualSeqQLenOptional", "actualSeqKvLenOptional");
    Picked p = attend(r, all, q, k, r.tensor("value").dims.back(), r.read<int64_t>(r.tensor("topkIndices")), r.integer("selectedBlockCount"),
                      r.integer("selectedBlockSize"), Pages());
    r.write(r.tensor("attentionOut"), p.out);
    auto eight = [](const Values& x) {
        Values out;
        for (double v : x) out.insert(out.end(), 8, v);
        return out;
    };
    r.write(r.tensor("softmaxMaxOut"), eight(p.top));
    r.write(r.tensor("softmaxSumOut"), eight(p.sum));
}

// -- parallel streams --------------------------------------------------------------------------------------------------------
// out[n] = sum over m of hRes[m][n] * x[m] + hPost[n] * hOut
void plan_streams(Plan& p) {
    const Dims& x = p.tensor("x").dims;
    p.require(x.n == 3 || x.n == 4, "x has shape %s", text(x).c_str());
    Dims square = x, flat = x, line = x;
    square[x.n - 1] = x[x.n - 2];
    flat[x.n - 2] = x[x.n - 1], --flat.n, --line.n;
    p.shape("hRes", square);
    p.shape("hOut", flat);
    p.shape("hPost", line);
    if (has_parameter(p, "gradOutput")) {
        p.shape("gradOutput", x), p.shape("gradX", x), p.shape("gradHres", square);
        p.shape("gradHout", flat), p.shape("gradHpost", line);
    } else {
        p.shape("out", x);
    }
}

// f(token, n, m, d) for every product of hRes and x.
template <class F>
void each_product(const Dims& x, F f) {
    int64_t n = x[x.n - 2], d = x[x.n - 1], tokens = x.product() / std::max<int64_t>(n * d, 1);
    for (int64_t t = 0; t < tokens; ++t)
        for (int64_t to = 0; to < n; ++to)
            for (int64_t from = 0; from < n; ++from)
                for (int64_t k = 0; k < d; ++k)
                    f(size_t((t * n + from) * n + to), size_t((t * n + from) * d + k), size_t((t * n + to) * d + k), size_t(t * n + to), size_t(t * d + k), from == 0);
}

void run_streams(Run& r) {
    auto x = r.read<double>(r.tensor("x")), res = r.read<double>(r.tensor("hRes")), h = r.read<double>(r.tensor("hOut")), post = r.read<double>(r.tensor("hPost"));
    Values out(x.size(), 0);
    each_product(r.tensor("x").dims, [&](size_t w, size_t from, size_t to, size_t n, size_t d, bool first) {
        out[to] += res[w] * x[from] + (first ? post[n] * h[d] : 0);
    });
    r.write(r.tensor("out"), out);
}

void run_streams_backward(Run& r) {
    auto x = r.read<double>(r.tensor("x")), res = r.read<double>(r.tensor("hRes")), h = r.read<double>(r.tensor("hOut")), post = r.read<double>(r.tensor("hPost"));
    auto g = r.read<double>(r.tensor("gradOutput"));
    Values gx(x.size(), 0), gres(res.size(), 0), gh(h.size(), 0), gpost(post.size(), 0);
    each_product(r.tensor("x").dims, [&](size_t w, size_t from, size_t to, size_t n, size_t d, bool first) {
        gx[from] += res[w] * g[to];
        gres[w] += x[from] * g[to];
        if (first) gh[d] += post[n] * g[to], gpost[n] += h[d] * g[to];
    });
    r.write(r.tensor("gradX"), gx);
    r.write(r.tensor("gradHres"), gres);
    r.write(r.tensor("gradHout"), gh);
    r.write(r.tensor("gradHpost"), gpost);
}

}  // namespace

ACLNN(aclnnLightningIndexer, plan_indexer, run_indexer)
ACLNN(aclnnLightningIndexerV2, plan_later_indexer, run_later_indexer)
ACLNN(aclnnQuantLightningIndexer, plan_indexer, run_indexer, NARROW)
ACLNN(aclnnSparseFlashAttention, plan_sparse, run_sparse)
ACLNN(aclnnNsaSelectedAttention, plan_selected, run_selected)
ACLNN(aclnnMhcPost, plan_streams, run_streams)
ACLNN(aclnnMhcPostBackward, plan_streams, run_streams_backward)
