// Attention in which each block of queries looks at some blocks of keys, and what flows back through it.
//
// The facts give shapes and dtypes only. Which blocks are looked at: blockSparseMaskOptional (B, heads, blocks of queries,
// blocks of keys) where not 0, or the first selectNumIdx of selectIdx for each block of queries and head. The documents do
// not say whether lengths of packed sequences are counts or running ends: counts are those that sum to all rows, ends those
// whose last is all rows. maskType 0 is computed, no mask inside a block.
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

struct Sequence {
    int64_t query, queries, key, keys, first_block;
};

// TND or BNSD.
struct Shape {
    bool packed;
    int64_t batch, heads, length, width;
    int64_t row(int64_t b, int64_t start, int64_t i, int64_t h) const { return packed ? (start + i) * heads + h : (b * heads + h) * length + i; }
};

Shape shape_of(const Tensor& t) {
    const Dims& d = t.dims;
    if (d.n == 3) return {true, 1, d[1], d[0], d[2]};
    return {false, d[0], d[1], d[2], d[3]};
}

std::vector<int64_t> counts(const Plan& p, const Shape& s, const char* name) {
    std::vector<int64_t> given = p.ints(name);
    if (!s.packed) {
        if (given.empty()) return std::vector<int64_t>(size_t(s.batch), s.length);
        p.require(int64_t(given.size()) == s.batch, "%s has %zu elements for %lld sequences", name, given.size(), wide(s.batch));
        for (int64_t n : given) p.require(n >= 0 && n <= s.length, "%s holds %lld", name, wide(n));
        return given;
    }
    if (given.empty()) return {s.length};
    int64_t sum = 0, before = 0;
    for (int64_t n : given) {
        p.require(n >= 0 && n <= s.length, "%s holds %lld, there are %lld rows", name, wide(n), wide(s.length));
        sum += n;
    }
    if (sum == s.length) return given;
    p.require(given.back() == s.length, "%s ends at %lld, there are %lld rows", name, wide(given.back()), wide(s.length));
    for (int64_t& n : given) {
        p.require(n >= before, "%s falls", name);
        n -= before, before += n;
    }
    return given;
}

const char* shape_name(const Call& c) { return has_parameter(c, "blockShape") ? "blockShape" : "blockShapeOptional"; }

std::pair<int64_t, int64_t> block_shape(const Call& c) {
    const auto& given = c.ints(shape_name(c));
    return given.empty() ? std::make_pair(int64_t(128), int64_t(128)) : std::make_pair(given[0], given[1]);
}

int64_t up(int64_t n, int64_t by) { return n / by + (n % by != 0); }

std::vector<Sequence> sequences(const Plan& p) {
    Shape q = shape_of(p.tensor("query")), k = shape_of(p.tensor("key"));
    auto queries = counts(p, q, "actualSeqLengthsOptional"), keys = counts(p, k, "actualSeqLengthsKvOptional");
    p.require(queries.size() == keys.size(), "there are %zu sequences of queries and %zu of keys", queries.size(), keys.size());
    std::vector<Sequence> out;
    Sequence s{0, 0, 0, 0, 0};
    for (size_t b = 0; b < queries.size(); ++b) {
        s.queries = queries[b], s.keys = keys[b];
        out.push_back(s);
        s.query += s.queries, s.key += s.keys, s.first_block += up(s.queries, block_shape(p).first);
    }
    return out;
}

Plan planned(const Call& c) {
    Plan p;
    static_cast<Call&>(p) = c;
    return p;
}

void plan_blocks(Plan& p) {
    for (const char* name : {"qInputLayout", "kvInputLayout"}) {
        const std::string& layout = p.string(name);
        const Tensor& t = p.tensor(name[0] == 'q' ? "query" : "key");
        p.require((layout == "TND" && t.rank() == 3) || (layout == "BNSD" && t.rank() == 4), "%s is \"%s\"; expected TND of 3 dimensions or BNSD of 4", name,
                  layout.c_str());
    }
    Shape q = shape_of(p.tensor("query")), k = shape_of(p.tensor("key"));
    p.require(q.packed == k.packed && q.width == k.width && q.batch == k.batch && k.heads > 0 && q.heads % k.heads == 0, "query has shape %s, key %s",
              text(p.tensor("query").dims).c_str(), text(p.tensor("key").dims).c_str());
    p.require(p.integer("numKeyValueHeads") == k.heads, "numKeyValueHeads is %lld, key has %lld", wide(p.integer("numKeyValueHeads")), wide(k.heads));
    p.same_shape("key", "value");
    p.require(p.integer("maskType") == 0, "maskType is %lld, expected 0", wide(p.integer("maskType")));
    for (const char* name : {"attenMaskOptional", "blockTableOptional", "qDequantScaleOptional", "kDequantScaleOptional", "vDequantScaleOptional"})
        p.require(!given(p, name), "%s is reserved", name);
    const auto& shape = p.ints(shape_name(p));
    p.require(shape.empty() || (shape.size() == 2 && shape[0] > 0 && shape[1] > 0 && shape[0] <= INT32_MAX && shape[1] <= INT32_MAX), "%s needs two positive elements", shape_name(p));
    auto all = sequences(p);
    auto [rows, columns] = block_shape(p);
    if (has_parameter(p, "selectIdx")) {
        int64_t blocks = all.back().first_block + up(all.back().queries, rows);
        const Dims& d = p.tensor("selectIdx").dims;
        p.require(d[0] == blocks && d[1] == q.heads, "selectIdx has shape %s, expected (%lld, %lld, ..)", text(d).c_str(), wide(blocks), wide(q.heads));
        p.shape("selectNumIdx", {d[0], d[1]});
    } else if (given(p, "blockSparseMaskOptional")) {
        int64_t most = 0, most_keys = 0;
        for (const Sequence& s : all) most = std::max(most, up(s.queries, rows)), most_keys = std::max(most_keys, up(s.keys, columns));
        const Dims& d = p.tensor("blockSparseMaskOptional").dims;
        p.require(d.n == 4 && d[0] == int64_t(all.size()) && d[1] == q.heads && d[2] >= most && d[3] >= most_keys,
                  "blockSparseMaskOptional has shape %s, expected (%zu, %lld, %lld, %lld)", text(d).c_str(), all.size(), wide(q.heads), wide(most), wide(most_keys));
    }
}

bool wants_log(const Call& c) { return has_parameter(c, "softmaxLseFlag") ? c.integer("softmaxLseFlag") != 0 : given(c, "softmaxLseOptional"); }

Dims log_dims(const Call& c) {
    Dims d = c.tensor("query").dims;
    d[d.n - 1] = 1;
    return d;
}

void plan_attention(Plan& p) {
    plan_blocks(p);
    p.same_shape("query", "attentionOut");
    for (const char* name : {"key", "value", "attentionOut"}) p.same_dtype("query", name);
    if (has_parameter(p, "softmaxLseFlag")) {
        int64_t flag = p.integer("softmaxLseFlag");
        p.require(flag == 0 || flag == 1, "softmaxLseFlag is %lld, expected 0 or 1", wide(flag));
    }
    if (!wants_log(p)) return;
    p.require(p.has("softmaxLseOptional"), "softmaxLseFlag is 1 and softmaxLseOptional is null");
    p.shape("softmaxLseOptional", log_dims(p));
}

// The blocks of keys that a block of queries of a head looks at, in the order of their numbers.
struct Choice {
    std::vector<int64_t> mask, numbers, how_many;
    Dims dims;

    explicit Choice(const Run& r) {
        if (has_parameter(r, "selectIdx")) {
            numbers = r.read<int64_t>(r.tensor("selectIdx")), how_many = r.read<int64_t>(r.tensor("selectNumIdx"));
            dims = r.tensor("selectIdx").dims;
        } else if (given(r, "blockSparseMaskOptional")) {
            mask = r.read<int64_t>(r.tensor("blockSparseMaskOptional"));
            dims = r.tensor("blockSparseMaskOptional").dims;
        }
    }
    std::vector<int64_t> of(int64_t batch, int64_t head, int64_t block, int64_t first, int64_t blocks) const {
        std::vector<int64_t> out;
        if (!how_many.empty()) {
            int64_t place = (first + block) * dims[1] + head, n = how_many[size_t(place)];
            if (n < 0 || n > dims[2]) fault("selectNumIdx holds %lld, selectIdx has room for %lld", wide(n), wide(dims[2]));
            for (int64_t i = 0; i < n; ++i) {
                int64_t at = numbers[size_t(place * dims[2] + i)];
                if (at < 0 || at >= blocks) fault("selectIdx holds %lld, there are %lld blocks of keys", wide(at), wide(blocks));
                out.push_back(at);
            }
            return out;
        }
        for (int64_t i = 0; i < blocks; ++i)
            if (mask.empty() || mask[size_t(((batch * dims[1] + head) * dims[2] + block) * dims[3] + i)] != 0) out.push_back(i);
        return out;
    }
};

// f(row of the query, rows of the keys, their logits)
template <class F>
void each_query(const Run& r, const Values& x, const Values& y, F f) {
    Shape q = shape_of(r.tensor("query")), k = shape_of(r.tensor("key"));
    auto [rows, columns] = block_shape(r);
    Choice choice(r);
    auto all = sequences(planned(r));
    for (int64_t b = 0; b < int64_t(all.size()); ++b) {
        const Sequence& s = all[size_t(b)];
        for (int64_t h = 0; h < q.heads; ++h)
            for (int64_t i = 0; i < s.queries; ++i) {
                int64_t row = q.row(b, s.query, i, h);
                std::vector<int64_t> places;
                Values logits;
                for (int64_t block : choice.of(b, h, i / rows, s.first_block, up(s.keys, columns)))
                    for (int64_t j = block * columns; j < std::min((block + 1) * columns, s.keys); ++j) {
                        int64_t place = k.row(b, s.key, j, h / (q.heads / k.heads));
                        double dot = 0;
                        for (int64_t d = 0; d < q.width; ++d) dot += x[size_t(row * q.width + d)] * y[size_t(place * q.width + d)];
                        places.push_back(place), logits.push_back(dot * r.real("scaleValue"));
                    }
                f(row, places, logits);
            }
    }
}

void run_attention(Run& r) {
    auto x = r.read<double>(r.tensor("query")), y = r.read<double>(r.tensor("key")), v = r.read<double>(r.tensor("value"));
    int64_t width = r.tensor("query").dims.back();
    Values out(x.size(), 0), logs(size_t(log_dims(r).product()), INFINITY);
    each_query(r, x, y, [&](int64_t row, const std::vector<int64_t>& places, Values& logits) {
        double top = -INFINITY, sum = 0;
        for (double l : logits) top = std::fmax(top, l);
        for (double& l : logits) l = std::exp(l - top), sum += l;
        for (size_t n = 0; n < places.size(); ++n)
            for (int64_t d = 0; d < width; ++d) out[size_t(row * width + d)] += logits[n] / sum * v[size_t(places[n] * width + d)];
        if (!places.empty()) logs[size_t(row)] = top + std::log(sum);
    });
    r.write(r.tensor("attentionOut"), out);
    if (wants_log(r)) r.write(r.tensor("softmaxLseOptional"), logs);
}

void plan_grad(Plan& p) {
    plan_blocks(p);
    for (const char* name : {"dout", "attentionOut", "dq"}) p.same_shape("query", name);
    for (const char* name : {"dk", "dv"}) p.same_shape("key", name);
    p.shape("softmaxLse", log_dims(p));
    p.require(p.tensor("softmaxLse").dtype == ACL_FLOAT, "softmaxLse has dtype %s, expected FLOAT", dtype_name(p.tensor("softmaxLse").dtype));
    p.require(p.tensor("query").dtype == ACL_FLOAT16 || p.tensor("query").dtype == ACL_BF16, "query has dtype %s, expected FLOAT16 or BF16",
              dtype_name(p.tensor("query").dtype));
    for (const char* name : {"dout", "key", "value", "attentionOut", "dq", "dk", "dv"}) p.same_dtype("query", name);
}

void run_grad(Run& r) {
    auto x = r.read<double>(r.tensor("query")), y = r.read<double>(r.tensor("key")), v = r.read<double>(r.tensor("value"));
    auto g = r.read<double>(r.tensor("dout")), out = r.read<double>(r.tensor("attentionOut")), logs = r.read<double>(r.tensor("softmaxLse"));
    int64_t width = r.tensor("query").dims.back();
    double scale = r.real("scaleValue");
    Values dq(x.size(), 0), dk(y.size(), 0), dv(v.size(), 0);
    each_query(r, x, y, [&](int64_t row, const std::vector<int64_t>& places, const Values& logits) {
        size_t at = size_t(row * width);
        double along = 0;
        for (int64_t d = 0; d < width; ++d) along += g[at + size_t(d)] * out[at + size_t(d)];
        for (size_t n = 0; n < places.size(); ++n) {
            size_t to = size_t(places[n] * width);
            double weight = std::exp(logits[n] - logs[size_t(row)]), dp = 0;
            for (size_t d = 0; d < size_t(width); ++d) dp += g[at + d] * v[to + d], dv[to + d] += weight * g[at + d];
            double ds = weight * (dp - along) * scale;
            for (size_t d = 0; d < size_t(width); ++d) dq[at + d] += ds * y[to + d], dk[to + d] += ds * x[at + d];
        }
    });
    r.write(r.tensor("dq"), dq);
    r.write(r.tensor("dk"), dk);
    r.write(r.tensor("dv"), dv);
}

}  // namespace

ACLNN(aclnnBlockSparseAttention, plan_attention, run_attention)
ACLNN(aclnnBlockSparseAttentionV2, plan_attention, run_attention)
ACLNN(aclnnRainFusionAttention, plan_attention, run_attention)
ACLNN(aclnnBlockSparseAttentionGrad, plan_grad, run_grad)
