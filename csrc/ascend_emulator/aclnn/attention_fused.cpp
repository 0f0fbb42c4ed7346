// Fused attention for inference, second version and later: prompts and decoding, packed sequences, keys in pages, rotary
// parts of query and key apart, a score that stands for no key.
//
// The facts give shapes and dtypes only. Scores are scale * (query key^T + rotary query key^T) + shift. Quantization,
// shared prefixes and padding on the left are refused.
#include <cmath>

#include "moving.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// Where element d of head h at place s of sample b is.
struct Where {
    std::string layout;
    Dims dims;
    int64_t heads = 1, size = 1, block = 0;
    std::vector<int64_t> starts, table;  // of packed sequences; of pages
    int64_t per_sample = 0;

    size_t operator()(int64_t b, int64_t h, int64_t s, int64_t d) const {
        if (block > 0) {
            int64_t page = checked_index(table[size_t(b * per_sample + s / block)], dims[0], "blockTableOptional");
            int64_t place = s % block;
            return size_t(dims.n == 3 ? (page * block + place) * heads * size + h * size + d
                                      : ((page * heads + h) * block + place) * size + d);
        }
        if (layout == "TND") return size_t(((starts[size_t(b)] + s) * heads + h) * size + d);
        if (layout == "NTD") return size_t((h * dims[1] + starts[size_t(b)] + s) * size + d);
        if (layout == "NBSD") return size_t(((h * dims[1] + b) * dims[2] + s) * size + d);
        if (layout == "BNSD") return size_t(((b * heads + h) * dims[2] + s) * size + d);
        return size_t((b * dims[1] + s) * heads * size + h * size + d);  // BSH, BSND
    }
};

struct Problem {
    int64_t batch, heads, kv_heads, size, value_size;
    std::vector<int64_t> queries, keys;  // of each sample
    Where q, k, v;
};

// "A" is the layout of all tensors, "A_B" has the results in B. The facts have no list of them; these are the ones of the
// function's public description.
bool known(const std::string& layout) {
    static const char* const all[] = {"BSH",      "BSND",      "BNSD",      "TND", "BNSD_BSND", "BSH_BNSD", "BSND_BNSD",
                                      "BSH_NBSD", "BSND_NBSD", "BNSD_NBSD", "NTD", "TND_NTD",   "NTD_TND"};
    return std::any_of(std::begin(all), std::end(all), [&](const char* name) { return layout == name; });
}

std::string layout_in(const Call& c) { return c.string("inputLayout").substr(0, c.string("inputLayout").find('_')); }

std::string layout_out(const Call& c) {
    const std::string& both = c.string("inputLayout");
    size_t cut = both.find('_');
    return cut == std::string::npos ? both : both.substr(cut + 1);
}

bool is_packed(const std::string& layout) { return layout == "TND" || layout == "NTD"; }

int heads_axis(const std::string& layout) { return layout == "NTD" ? 0 : layout == "TND" || layout == "BNSD" ? 1 : 2; }

int tokens_axis(const std::string& layout) { return layout == "NTD" ? 1 : 0; }  // of packed ones

int64_t sequence(const Dims& d, const std::string& layout) { return layout == "BNSD" ? d[2] : d[1]; }

Where where(const Tensor& t, const std::string& layout, int64_t heads) {
    Where w;
    w.layout = layout;
    w.dims = t.dims;
    w.heads = heads;
    w.size = layout == "BSH" ? t.dims.back() / std::max<int64_t>(heads, 1) : t.dims.back();
    return w;
}

// Ends of packed sequences to starts and lengths.
void unpack(const std::vector<int64_t>& ends, std::vector<int64_t>* starts, std::vector<int64_t>* lengths) {
    int64_t at = 0;
    for (int64_t end : ends) {
        starts->push_back(at);
        lengths->push_back(end - at);
        at = end;
    }
}

#define NEED(holds, ...)                                              \
    do {                                                              \
        if (!(holds)) refuse(ACLNN_ERR_PARAM_INVALID, __VA_ARGS__);   \
    } while (false)

Problem problem(const Call& c) {
    const auto &ks = c.tensors("key"), &vs = c.tensors("value");
    NEED(ks.size() == 1 && vs.size() == 1, "key and value need one tensor each in the emulator");
    const Tensor &q = c.tensor("query"), &k = ks[0], &v = vs[0];
    NEED(known(c.string("inputLayout")), "inputLayout is \"%s\", which is none", c.string("inputLayout").c_str());
    const std::string layout = layout_in(c);
    int rank = layout == "BSH" || is_packed(layout) ? 3 : 4, axis = heads_axis(layout), tokens = tokens_axis(layout);
    NEED(q.rank() == rank, "query has shape %s, which %s does not have", text(q.dims).c_str(), layout.c_str());
    Problem p;
    p.heads = c.integer("numHeads");
    p.kv_heads = c.integer("numKeyValueHeads") > 0 ? c.integer("numKeyValueHeads") : p.heads;
    NEED(p.heads > 0 && p.heads % p.kv_heads == 0, "numHeads is %lld, numKeyValueHeads %lld", wide(p.heads), wide(p.kv_heads));
    NEED(layout != "BSH" || q.dims[2] % p.heads == 0, "query has shape %s for %lld heads", text(q.dims).c_str(), wide(p.heads));
    NEED(layout == "BSH" || q.dims[axis] == p.heads, "query has shape %s for %lld heads",
         text(q.dims).c_str(), wide(p.heads));
    p.q = where(q, layout, p.heads);
    const auto &ql = c.ints("actualSeqLengthsOptional"), &kl = c.ints("actualSeqLengthsKvOptional");
    if (is_packed(layout)) {
        NEED(!ql.empty() && ql.back() == q.dims[tokens], "actualSeqLengthsOptional must end at %lld", wide(q.dims[tokens]));
        unpack(ql, &p.q.starts, &p.queries);
        p.batch = int64_t(ql.size());
    } else {
        p.batch = q.dims[0];
        NEED(ql.size() <= 1 || int64_t(ql.size()) == p.batch, "actualSeqLengthsOptional has %zu elements", ql.size());
        for (int64_t b = 0; b < p.batch; ++b)
            p.queries.push_back(ql.empty() ? sequence(q.dims, layout) : ql[ql.size() == 1 ? 0 : size_t(b)]);
    }
    bool paged = c.has("blockTableOptional");
    if (paged) {
        const Dims& t = c.tensor("blockTableOptional").dims;
        int64_t block = c.integer("blockSize");
        NEED(block > 0, "blockTableOptional needs blockSize");
        NEED(t[0] == p.batch && int64_t(kl.size()) == p.batch, "pages need a row and a length for each of %lld samples",
             wide(p.batch));
        NEED(k.rank() == v.rank() && (k.rank() == 3 ? k.dims[1] == block && k.dims[2] % p.kv_heads == 0 && v.dims[2] % p.kv_heads == 0
                                                    : k.rank() == 4 && k.dims[1] == p.kv_heads && k.dims[2] == block),
             "key has shape %s, which pages of %lld do not have", text(k.dims).c_str(), wide(block));
        for (Where* w : {&p.k, &p.v}) {
            *w = where(w == &p.k ? k : v, k.rank() == 3 ? "BSH" : "BNSD", p.kv_heads);
            w->block = block;
            w->per_sample = t[1];
        }
        p.keys = kl;
        for (int64_t n : kl) NEED(n >= 0 && n <= t[1] * block, "a length of keys is outside its pages");
    } else {
        NEED(k.rank() == rank && v.rank() == rank, "key has shape %s, which %s does not have", text(k.dims).c_str(),
             layout.c_str());
        p.k = where(k, layout, p.kv_heads), p.v = where(v, layout, p.kv_heads);
        NEED(layout == "BSH" ? k.dims[2] % p.kv_heads == 0 && v.dims[2] % p.kv_heads == 0
                             : k.dims[axis] == p.kv_heads && v.dims[axis] == p.kv_heads,
             "key has shape %s for %lld heads", text(k.dims).c_str(), wide(p.kv_heads));
        if (is_packed(layout)) {
            NEED(kl.size() == ql.size() && kl.back() == k.dims[tokens] && v.dims[tokens] == k.dims[tokens],
                 "actualSeqLengthsKvOptional must end at %lld", wide(k.dims[tokens]));
            unpack(kl, &p.k.starts, &p.keys);
            p.v.starts = p.k.starts;
        } else {
            NEED(k.dims[0] == p.batch && v.dims[0] == p.batch && sequence(k.dims, layout) == sequence(v.dims, layout),
                 "the shapes of query %s, key %s and value %s do not fit", text(q.dims).c_str(), text(k.dims).c_str(),
                 text(v.dims).c_str());
            for (int64_t b = 0; b < p.batch; ++b)
                p.keys.push_back(kl.empty() ? sequence(k.dims, layout) : kl[kl.size() == 1 ? 0 : size_t(b)]);
            for (int64_t n : p.keys) NEED(n >= 0 && n <= sequence(k.dims, layout), "a length of keys is outside key");
        }
    }
    if (!is_packed(layout))
        for (int64_t n : p.queries) NEED(n >= 0 && n <= sequence(q.dims, layout), "a length of queries is outside query");
    p.size = p.q.size, p.value_size = p.v.size;
    NEED(p.k.size == p.size, "query has heads of %lld, key of %lld", wide(p.size), wide(p.k.size));
    return p;
}

enum SparseMode : int64_t { kDefault = 0, kAll = 1, kLeftUp = 2, kRightDown = 3, kBand = 4 };
constexpr int64_t kCompressed = 2048;

int64_t most(const std::vector<int64_t>& lengths) {
    int64_t out = 0;
    for (int64_t n : lengths) out = std::max(out, n);
    return out;
}

Dims result_dims(const std::string& layout, const Problem& s, int64_t queries) {
    if (layout == "BSH") return {s.batch, queries, s.heads * s.value_size};
    if (layout == "BSND") return {s.batch, queries, s.heads, s.value_size};
    if (layout == "BNSD") return {s.batch, s.heads, queries, s.value_size};
    if (layout == "NBSD") return {s.heads, s.batch, queries, s.value_size};
    return layout == "NTD" ? Dims{s.heads, queries, s.value_size} : Dims{queries, s.heads, s.value_size};
}

void plan_fused(Plan& p) {
    static const char* const names[] = {
        "deqScale1Optional", "quantScale1Optional", "deqScale2Optional", "quantScale2Optional", "quantOffset2Optional",
        "antiquantScaleOptional", "antiquantOffsetOptional", "queryPaddingSizeOptional", "kvPaddingSizeOptional",
        "keyAntiquantScaleOptional", "keyAntiquantOffsetOptional", "valueAntiquantScaleOptional",
        "valueAntiquantOffsetOptional", "keySharedPrefixOptional", "valueSharedPrefixOptional",
        "keyRopeAntiquantScaleOptional", "dequantScaleQueryOptional",
    };
    for (const char* name : names) p.require(!given(p, name), "%s is not computed by the emulator", name);
    for (const char* name : {"actualSharedPrefixLenOptional", "qStartIdxOptional", "kvStartIdxOptional"})
        if (has_parameter(p, name)) p.require(p.ints(name).empty(), "%s is not computed by the emulator", name);
    if (has_parameter(p, "pseType"))
        p.require(p.integer("pseType") == 0, "pseType is %lld; the emulator computes 0", wide(p.integer("pseType")));
    const Tensor& q = p.tensor("query");
    p.require(q.dtype == ACL_FLOAT16 || q.dtype == ACL_BF16, "query has dtype %s; the emulator computes FLOAT16 and BF16",
              dtype_name(q.dtype));
    Problem s = problem(p);
    p.require(p.tensors("key")[0].dtype == q.dtype && p.tensors("value")[0].dtype == q.dtype,
              "query, key and value must have the same dtype");
    const std::string layout = layout_in(p);
    int64_t queries = is_packed(layout) ? q.dims[tokens_axis(layout)] : sequence(q.dims, layout);
    p.shape("attentionOut", result_dims(layout_out(p), s, queries));
    p.same_dtype("query", "attentionOut");
    if (p.flag("softmaxLseFlag"))
        p.shape("softmaxLse", is_packed(layout) ? Dims{queries, s.heads, 1} : Dims{s.batch, s.heads, queries, 1});
    int64_t mode = p.integer("sparseMode");
    p.require(mode >= kDefault && mode <= kBand, "sparseMode is %lld; the emulator computes 0 to 4", wide(mode));
    if (p.has("attenMaskOptional")) {
        const Dims& m = p.tensor("attenMaskOptional").dims;
        p.require(m.n >= 2, "attenMaskOptional has shape %s", text(m).c_str());
        if (mode >= kLeftUp)
            p.require(m.back() == kCompressed && m[m.n - 2] == kCompressed,
                      "attenMaskOptional has shape %s, sparseMode %lld needs (2048, 2048)", text(m).c_str(), wide(mode));
        else
            p.require(m.back() >= most(s.keys) && m[m.n - 2] >= most(s.queries) &&
                          (m.n == 2 || m[0] == 1 || m[0] == s.batch) && (m.n < 4 || m[1] == 1),
                      "attenMaskOptional has shape %s, which does not cover the scores", text(m).c_str());
    } else {
        p.require(mode == kDefault, "sparseMode %lld needs attenMaskOptional", wide(mode));
    }
    if (p.has("pseShiftOptional")) {
        const Dims& m = p.tensor("pseShiftOptional").dims;
        p.require((m[0] == 1 || m[0] == s.batch) && m[1] == s.heads && m[2] >= most(s.queries) && m[3] >= most(s.keys),
                  "pseShiftOptional has shape %s, which does not cover the scores", text(m).c_str());
    }
    if (has_parameter(p, "queryRopeOptional")) {
        p.require(p.has("queryRopeOptional") == p.has("keyRopeOptional"), "queryRopeOptional and keyRopeOptional go together");
        if (p.has("queryRopeOptional")) {
            Dims a = q.dims, b = p.tensors("key")[0].dims;
            const Dims &x = p.tensor("queryRopeOptional").dims, &y = p.tensor("keyRopeOptional").dims;
            p.require(x.n == a.n && y.n == b.n, "queryRopeOptional has shape %s", text(x).c_str());
            a[a.n - 1] = x.back(), b[b.n - 1] = y.back();
            bool flat = layout == "BSH", pages = b.n == 3 && p.has("blockTableOptional");
            int64_t one = flat ? x.back() / s.heads : x.back(), two = flat || pages ? y.back() / s.kv_heads : y.back();
            p.require(x == a && y == b && one == two && one > 0, "queryRopeOptional has shape %s, keyRopeOptional %s",
                      text(x).c_str(), text(y).c_str());
        }
    }
    if (given(p, "learnableSinkOptional")) p.shape("learnableSinkOptional", {s.heads});
    p.workspace = 1 << 20;
}

struct Mask {
    std::vector<int64_t> values;
    Dims dims;
    int64_t mode, before, after;

    explicit Mask(const Run& r)
        : mode(r.integer("sparseMode")), before(r.integer("preTokens")), after(r.integer("nextTokens")) {
        if (!r.has("attenMaskOptional") || mode >= kLeftUp) return;
        dims = r.tensor("attenMaskOptional").dims;
        values = r.read<int64_t>(r.tensor("attenMaskOptional"));
    }
    bool operator()(int64_t b, int64_t i, int64_t j, int64_t queries, int64_t keys) const {
        int64_t distance = j - i, shifted = distance - (keys - queries);
        if (mode == kLeftUp) return distance > 0;
        if (mode == kRightDown) return shifted > 0;
        if (mode == kBand) return shifted > after || -shifted > before;
        if (values.empty()) return false;
        if (mode == kDefault && (distance > after || -distance > before)) return true;
        int64_t plane = dims.n == 2 || dims[0] == 1 ? 0 : b;
        return values[size_t((plane * dims[dims.n - 2] + i) * dims.back() + j)] != 0;
    }
};

Where like(const Where& w, const Tensor& t) {
    Where out = w;
    out.dims = t.dims;
    out.size = w.layout == "BSH" ? t.dims.back() / w.heads : t.dims.back();
    return out;
}

void run_fused(Run& r) {
    Problem s = problem(r);
    if (r.has("blockTableOptional")) s.k.table = s.v.table = r.read<int64_t>(r.tensor("blockTableOptional"));
    auto q = r.read<double>(r.tensor("query")), k = r.read<double>(r.tensors("key")[0]), v = r.read<double>(r.tensors("value")[0]);
    bool turned = given(r, "queryRopeOptional");
    Values q2, k2, shift, sink;
    Where at_q2, at_k2;
    if (turned) {
        at_q2 = like(s.q, r.tensor("queryRopeOptional")), at_k2 = like(s.k, r.tensor("keyRopeOptional"));
        q2 = r.read<double>(r.tensor("queryRopeOptional")), k2 = r.read<double>(r.tensor("keyRopeOptional"));
    }
    if (r.has("pseShiftOptional")) shift = r.read<double>(r.tensor("pseShiftOptional"));
    if (given(r, "learnableSinkOptional")) sink = r.read<double>(r.tensor("learnableSinkOptional"));
    Mask hidden(r);
    const Tensor& to = r.tensor("attentionOut");
    Where at_out = s.q;
    at_out.layout = layout_out(r), at_out.dims = to.dims, at_out.size = s.value_size;
    bool packed = is_packed(layout_in(r)), wanted = r.flag("softmaxLseFlag");
    Values out(size_t(to.numel()), 0), logs(wanted ? size_t(r.tensor("softmaxLse").numel()) : 0, INFINITY);
    for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.heads; ++h)
            for (int64_t i = 0; i < s.queries[size_t(b)]; ++i) {
                int64_t keys = s.keys[size_t(b)], other = h / (s.heads / s.kv_heads);
                Values x;
                double top = sink.empty() ? -INFINITY : sink[size_t(h)], sum = 0;
                for (int64_t j = 0; j < keys; ++j) {
                    if (hidden(b, i, j, s.queries[size_t(b)], keys)) {
                        x.push_back(-INFINITY);
                        continue;
                    }
                    double dot = 0;
                    for (int64_t d = 0; d < s.size; ++d) dot += q[s.q(b, h, i, d)] * k[s.k(b, other, j, d)];
                    for (int64_t d = 0; turned && d < at_q2.size; ++d) dot += q2[at_q2(b, h, i, d)] * k2[at_k2(b, other, j, d)];
                    dot *= r.real("scaleValue");
                    if (!shift.empty()) {
                        const Dims& m = r.tensor("pseShiftOptional").dims;
                        dot += shift[size_t((((m[0] == 1 ? 0 : b) * m[1] + h) * m[2] + i) * m[3] + j)];
                    }
                    x.push_back(dot);
                    top = std::fmax(top, dot);
                }
                if (!sink.empty()) sum = std::exp(sink[size_t(h)] - top);
                for (double& e : x) e = top == -INFINITY ? 0 : std::exp(e - top), sum += e;
                for (int64_t j = 0; j < keys && sum != 0; ++j)
                    for (int64_t d = 0; d < s.value_size; ++d)
                        out[at_out(b, h, i, d)] += x[size_t(j)] / sum * v[s.v(b, other, j, d)];
                if (!wanted) continue;
                size_t row = packed ? size_t((s.q.starts[size_t(b)] + i) * s.heads + h)
                                    : size_t((b * s.heads + h) * r.tensor("softmaxLse").dims[2] + i);
                logs[row] = sum == 0 ? INFINITY : top + std::log(sum);
            }
    r.write(to, out);
    if (wanted) r.write(r.tensor("softmaxLse"), logs);
}

}  // namespace

ACLNN(aclnnFusedInferAttentionScoreV2, plan_fused, run_fused)
ACLNN(aclnnFusedInferAttentionScoreV3, plan_fused, run_fused)
ACLNN(aclnnFusedInferAttentionScoreV4, plan_fused, run_fused)
ACLNN(aclnnFusedInferAttentionScoreV5, plan_fused, run_fused)
