// Attention by other shapes: blocks of keys compressed to one, triangles of pairs, parts joined along a ring, and the gated
// delta rule, a recurrent form of linear attention.
//
// The facts give shapes and dtypes only; the formulas are written at each kernel.
#include <cmath>

#include "moving.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// -- compressed blocks: out[n] = sum over the places s of a block of weight[s] * input[first + n * stride + s] --------
struct Blocks {
    int64_t block, stride, heads, size;
    std::vector<std::pair<int64_t, int64_t>> sequences;  // start, length

    static int64_t count(int64_t length, int64_t block, int64_t stride) {
        return length < block ? 0 : (length - block) / stride + 1;
    }
    int64_t total() const {
        int64_t out = 0;
        for (auto [start, length] : sequences) out += count(length, block, stride);
        return out;
    }
    // f(first token of the block, which block)
    template <class F>
    void each(F f) const {
        int64_t n = 0;
        for (auto [start, length] : sequences)
            for (int64_t i = 0; i < count(length, block, stride); ++i) f(start + i * stride, n++);
    }
};

Blocks blocks(const Call& c, const char* lengths) {
    const Dims& d = c.tensor("input").dims;
    Blocks b{c.integer("compressBlockSize"), c.integer("compressStride"), d[1], d[2], {}};
    const auto& ends = c.ints(lengths);
    int64_t at = 0;
    for (int64_t end : ends) b.sequences.emplace_back(at, end - at), at = end;
    if (ends.empty()) b.sequences.emplace_back(0, d[0]);
    return b;
}

void plan_sizes(const Plan& p, const char* layout, const char* lengths) {
    const Dims& d = p.tensor("input").dims;
    int64_t block = p.integer("compressBlockSize"), stride = p.integer("compressStride");
    p.require(block > 0 && block % 16 == 0 && stride > 0 && stride % 16 == 0 && stride <= block,
              "compressBlockSize is %lld and compressStride %lld; both are multiples of 16, the stride not above the block",
              wide(block), wide(stride));
    p.require(p.integer("actSeqLenType") == 0, "actSeqLenType is %lld, expected 0 (ends)", wide(p.integer("actSeqLenType")));
    p.require(!p.has(layout) || p.string(layout) == "TND", "%s must be TND", layout);
    p.shape("weight", {block, d[1]});
    p.same_dtype("input", "weight");
    int64_t at = 0;
    for (int64_t end : p.ints(lengths)) {
        p.require(end >= at && end <= d[0], "%s must rise up to %lld", lengths, wide(d[0]));
        at = end;
    }
}

void run_compress(Run& r) {
    Blocks b = blocks(r, "actSeqLenOptional");
    auto x = r.read<double>(r.tensor("input")), w = r.read<double>(r.tensor("weight"));
    Values out(size_t(r.tensor("output").numel()), 0);
    b.each([&](int64_t first, int64_t n) {
        for (int64_t s = 0; s < b.block; ++s)
            for (int64_t h = 0; h < b.heads; ++h)
                for (int64_t d = 0; d < b.size; ++d)
                    out[size_t((n * b.heads + h) * b.size + d)] +=
                        w[size_t(s * b.heads + h)] * x[size_t(((first + s) * b.heads + h) * b.size + d)];
    });
    r.write(r.tensor("output"), out);
}

void run_compress_grad(Run& r) {
    Blocks b = blocks(r, "actSeqLenOptionalOptional");
    auto x = r.read<double>(r.tensor("input")), w = r.read<double>(r.tensor("weight")), g = r.read<double>(r.tensor("outputGrad"));
    Values dx(x.size()), dw(w.size());
    b.each([&](int64_t first, int64_t n) {
        for (int64_t s = 0; s < b.block; ++s)
            for (int64_t h = 0; h < b.heads; ++h)
                for (int64_t d = 0; d < b.size; ++d) {
                    size_t from = size_t((n * b.heads + h) * b.size + d), to = size_t(((first + s) * b.heads + h) * b.size + d);
                    dx[to] += w[size_t(s * b.heads + h)] * g[from];
                    dw[size_t(s * b.heads + h)] += x[to] * g[from];
                }
    });
    r.write(r.tensor("inputGradOut"), dx);
    r.write(r.tensor("weightGradOut"), dw);
}

// -- parts along a ring, tokens first ---------------------------------------------------------------------------------
bool packed(const Call& c) { return c.has("inputLayoutOptional") && c.string("inputLayoutOptional") == "TND"; }

void plan_ring(Plan& p) {
    const Dims &d = p.tensor("prevAttnOut").dims, &s = p.tensor("prevSoftmaxMax").dims;
    std::string layout = p.has("inputLayoutOptional") ? p.string("inputLayoutOptional") : "";
    if (layout.empty()) layout = "SBH";
    p.require(layout == "SBH" || layout == "TND", "inputLayoutOptional is \"%s\", expected SBH or TND", layout.c_str());
    if (layout == "TND") {
        const std::string inner = given(p, "inputSoftmaxLayoutOptional") ? p.string("inputSoftmaxLayoutOptional") : "";
        p.require(inner.empty() || inner == "TND", "inputSoftmaxLayoutOptional is \"%s\"; the emulator computes TND", inner.c_str());
        p.require(d.n == 3 && s == Dims({d[0], d[1], 8}), "prevAttnOut has shape %s, prevSoftmaxMax %s", text(d).c_str(),
                  text(s).c_str());
    } else {
        p.require(d.n == 3 && s.n == 4 && s[0] == d[1] && s[2] == d[0] && s[3] == 8 && s[1] > 0 && d[2] % s[1] == 0,
                  "prevAttnOut has shape %s, prevSoftmaxMax %s", text(d).c_str(), text(s).c_str());
    }
    for (const char* name : {"curAttnOut", "attnOutOut"}) p.same_shape("prevAttnOut", name);
    for (const char* name : {"prevSoftmaxSum", "curSoftmaxMax", "curSoftmaxSum", "softmaxMaxOut", "softmaxSumOut"})
        p.same_shape("prevSoftmaxMax", name);
}

void run_ring(Run& r) {
    const Dims &d = r.tensor("prevAttnOut").dims, &s = r.tensor("prevSoftmaxMax").dims;
    auto x = r.read<double>(r.tensor("prevAttnOut")), y = r.read<double>(r.tensor("curAttnOut"));
    auto top = r.read<double>(r.tensor("prevSoftmaxMax")), other_top = r.read<double>(r.tensor("curSoftmaxMax"));
    auto sum = r.read<double>(r.tensor("prevSoftmaxSum")), other_sum = r.read<double>(r.tensor("curSoftmaxSum"));
    Values share(top.size());
    for (size_t i = 0; i < top.size(); ++i) {
        double both = std::fmax(top[i], other_top[i]);
        double a = sum[i] * std::exp(top[i] - both), b = other_sum[i] * std::exp(other_top[i] - both);
        top[i] = both, sum[i] = a + b, share[i] = a / (a + b);
    }
    for (int64_t i = 0; i < int64_t(x.size()); ++i) {
        int64_t row;
        if (packed(r)) row = i / d[2];
        else {
            int64_t h = i % d[2] / (d[2] / s[1]), b = i / d[2] % d[1], t = i / d[2] / d[1];
            row = (b * s[1] + h) * s[2] + t;
        }
        double part = share[size_t(row * 8)];
        x[size_t(i)] = x[size_t(i)] * part + y[size_t(i)] * (1 - part);
    }
    r.write(r.tensor("attnOutOut"), x);
    r.write(r.tensor("softmaxMaxOut"), top);
    r.write(r.tensor("softmaxSumOut"), sum);
}

// -- triangles: the score of (n, m) and k is q[n,m] . (k1[n,k] + k2[k,m]), its value v1[n,k] + v2[k,m] -----------------
struct Triangle {
    int64_t outer, heads, n, m, k, size;  // outer: samples times heads
    size_t pair(int64_t o, int64_t i, int64_t j) const { return size_t((o * n + i) * m + j); }
    size_t first(int64_t o, int64_t i, int64_t t) const { return size_t((o * n + i) * k + t); }
    size_t second(int64_t o, int64_t t, int64_t j) const { return size_t((o * k + t) * m + j); }
};

Triangle triangle(const Call& c) {
    const Dims &q = c.tensor("query").dims, &k = c.tensor("key1").dims;
    return {q[0] * q[1], q[1], q[2], q[3], k[3], q[4]};
}

void plan_triangle(const Plan& p) {
    const Dims &q = p.tensor("query").dims, &k = p.tensor("key1").dims;
    p.require(q.n == 5 && k.n == 5, "query has shape %s, key1 %s; both have 5 dimensions", text(q).c_str(), text(k).c_str());
    for (const char* name : {"key1", "value1"}) p.shape(name, {q[0], q[1], q[2], k[3], q[4]});
    for (const char* name : {"key2", "value2"}) p.shape(name, {q[0], q[1], k[3], q[3], q[4]});
    if (p.has("attenMaskOptional")) p.shape("attenMaskOptional", {q[0], 1, q[2], 1, k[3]});
    for (const char* name : {"key1", "value1", "key2", "value2"}) p.same_dtype("query", name);
}

// f(o, n, m, scores of every k); hidden ones are -infinity.
template <class F>
void each_pair(const Run& r, const Triangle& t, const Values& q, const Values& k1, const Values& k2, double scale, F f) {
    std::vector<int64_t> mask;
    if (r.has("attenMaskOptional")) mask = r.read<int64_t>(r.tensor("attenMaskOptional"));
    size_t size = size_t(t.size);
    for (int64_t o = 0; o < t.outer; ++o)
        for (int64_t i = 0; i < t.n; ++i)
            for (int64_t j = 0; j < t.m; ++j) {
                Values x;
                for (int64_t l = 0; l < t.k; ++l) {
                    double dot = 0;
                    for (size_t d = 0; d < size; ++d)
                        dot += q[t.pair(o, i, j) * size + d] * (k1[t.first(o, i, l) * size + d] + k2[t.second(o, l, j) * size + d]);
                    bool hidden = !mask.empty() && mask[size_t((o / t.heads * t.n + i) * t.k + l)];
                    x.push_back(hidden ? -INFINITY : dot * scale);
                }
                f(o, i, j, x);
            }
}

void run_triangle(Run& r) {
    Triangle t = triangle(r);
    auto q = r.read<double>(r.tensor("query")), k1 = r.read<double>(r.tensor("key1")), k2 = r.read<double>(r.tensor("key2"));
    auto v1 = r.read<double>(r.tensor("value1")), v2 = r.read<double>(r.tensor("value2"));
    size_t size = size_t(t.size);
    Values out(q.size()), tops, sums;
    each_pair(r, t, q, k1, k2, r.real("scaleValueOptional"), [&](int64_t o, int64_t i, int64_t j, Values& x) {
        double top = -INFINITY, sum = 0;
        for (double e : x) top = std::fmax(top, e);
        for (double& e : x) e = top == -INFINITY ? 0 : std::exp(e - top), sum += e;
        for (int64_t l = 0; l < t.k && sum != 0; ++l)
            for (size_t d = 0; d < size; ++d)
                out[t.pair(o, i, j) * size + d] +=
                    x[size_t(l)] / sum * (v1[t.first(o, i, l) * size + d] + v2[t.second(o, l, j) * size + d]);
        tops.insert(tops.end(), 8, top);
        sums.insert(sums.end(), 8, sum);
    });
    r.write(r.tensor("softmaxMaxOut"), tops);
    r.write(r.tensor("softmaxSumOut"), sums);
    r.write(r.tensor("attentionOutOut"), out);
}

void run_triangle_grad(Run& r) {
    Triangle t = triangle(r);
    auto q = r.read<double>(r.tensor("query")), k1 = r.read<double>(r.tensor("key1")), k2 = r.read<double>(r.tensor("key2"));
    auto v1 = r.read<double>(r.tensor("value1")), v2 = r.read<double>(r.tensor("value2")), dy = r.read<double>(r.tensor("dy"));
    auto out = r.read<double>(r.tensor("attentionIn"));
    auto tops = r.read<double>(r.tensor("softmaxMax")), sums = r.read<double>(r.tensor("softmaxSum"));
    size_t size = size_t(t.size);
    Values dq(q.size()), dk1(k1.size()), dk2(k2.size()), dv1(v1.size()), dv2(v2.size());
    double scale = r.real("scaleValue");
    each_pair(r, t, q, k1, k2, scale, [&](int64_t o, int64_t i, int64_t j, Values& x) {
        size_t at = t.pair(o, i, j) * size, row = t.pair(o, i, j) * 8;
        double along = 0;
        for (size_t d = 0; d < size; ++d) along += dy[at + d] * out[at + d];
        for (int64_t l = 0; l < t.k; ++l) {
            if (x[size_t(l)] == -INFINITY || sums[row] == 0) continue;
            size_t one = t.first(o, i, l) * size, two = t.second(o, l, j) * size;
            double weight = std::exp(x[size_t(l)] - tops[row]) / sums[row], dp = 0;
            for (size_t d = 0; d < size; ++d) {
                dp += dy[at + d] * (v1[one + d] + v2[two + d]);
                dv1[one + d] += weight * dy[at + d];
                dv2[two + d] += weight * dy[at + d];
            }
            double ds = weight * (dp - along) * scale;
            for (size_t d = 0; d < size; ++d) {
                dq[at + d] += ds * (k1[one + d] + k2[two + d]);
                dk1[one + d] += ds * q[at + d];
                dk2[two + d] += ds * q[at + d];
            }
        }
    });
    r.write(r.tensor("dqOut"), dq);
    r.write(r.tensor("dk1Out"), dk1);
    r.write(r.tensor("dv1Out"), dv1);
    r.write(r.tensor("dk2Out"), dk2);
    r.write(r.tensor("dv2Out"), dv2);
}

// -- the gated delta rule: S <- exp(g) S; S <- S + beta (v - S k) k^T; out = S (scale q) --------------------------------
struct Rule {
    int64_t heads, value_heads, size, value_size;
    Values q, k, v, beta, g, gk;
    double scale;

    explicit Rule(const Run& r, const char* gate)
        : heads(r.tensor("query").dims[1]), value_heads(r.tensor("value").dims[1]), size(r.tensor("query").dims[2]),
          value_size(r.tensor("value").dims[2]), q(r.read<double>(r.tensor("query"))), k(r.read<double>(r.tensor("key"))),
          v(r.read<double>(r.tensor("value"))), beta(r.read<double>(r.tensor("beta"))), scale(r.real("scaleValue")) {
        if (r.has(gate)) g = r.read<double>(r.tensor(gate));
    }
    // One token of one head: the state is (value_size, size).
    void step(int64_t t, int64_t h, double* state, double* out) const {
        const double* key = k.data() + (t * heads + h / (value_heads / heads)) * size;
        const double* query = q.data() + (t * heads + h / (value_heads / heads)) * size;
        size_t at = size_t(t * value_heads + h);
        double decay = g.empty() ? 1 : std::exp(g[at]);
        for (int64_t i = 0; i < value_size; ++i) {
            double* row = state + i * size;
            double held = 0, result = 0;
            for (int64_t d = 0; d < size; ++d) {
                row[d] *= decay * (gk.empty() ? 1 : std::exp(gk[at * size_t(size) + size_t(d)]));
                held += row[d] * key[d];
            }
            double change = beta[at] * (v[at * size_t(value_size) + size_t(i)] - held);
            for (int64_t d = 0; d < size; ++d) {
                row[d] += change * key[d];
                result += row[d] * query[d] * scale;
            }
            out[i] = result;
        }
    }
};

void plan_rule(const Plan& p, const char* gate, const char* state) {
    const Dims &q = p.tensor("query").dims, &v = p.tensor("value").dims, &s = p.tensor(state).dims;
    p.require(q.n == 3 && v.n == 3 && v[0] == q[0] && q[1] > 0 && v[1] % q[1] == 0, "query has shape %s, value %s",
              text(q).c_str(), text(v).c_str());
    p.same_shape("query", "key");
    p.shape("beta", {v[0], v[1]});
    if (p.has(gate)) p.shape(gate, {v[0], v[1]});
    p.require(s.n == 4 && s[1] == v[1] && s[2] == v[2] && s[3] == q[2], "%s has shape %s, expected (.., %lld, %lld, %lld)",
              state, text(s).c_str(), wide(v[1]), wide(v[2]), wide(q[2]));
    p.same_shape("value", "out");
    p.require(p.tensor("actualSeqLengths").rank() == 1, "actualSeqLengths must have one dimension");
}

void check_total(const std::vector<int64_t>& lengths, int64_t tokens) {
    int64_t total = 0;
    for (int64_t n : lengths) {
        if (n < 0) fault("actualSeqLengths holds %lld", wide(n));
        total += n;
    }
    if (total > tokens) fault("actualSeqLengths counts %lld tokens, there are %lld", wide(total), wide(tokens));
}

// Each token leaves its state at a place of its own; a sequence begins with the state of its last accepted token.
void run_recurrent(Run& r) {
    Rule rule(r, "g");
    if (r.has("gk")) rule.gk = r.read<double>(r.tensor("gk"));
    auto states = r.read<double>(r.tensor("stateRef"));
    auto lengths = r.read<int64_t>(r.tensor("actualSeqLengths")), places = r.read<int64_t>(r.tensor("ssmStateIndices"));
    std::vector<int64_t> accepted(lengths.size(), 1);
    if (r.has("numAcceptedTokens")) accepted = r.read<int64_t>(r.tensor("numAcceptedTokens"));
    check_total(lengths, r.tensor("query").dims[0]);
    int64_t each = rule.value_size * rule.size, many = r.tensor("stateRef").dims[0], first = 0;
    for (int64_t place : places) checked_index(place, many, "ssmStateIndices");
    Values out(rule.v.size());
    for (size_t b = 0; b < lengths.size(); first += lengths[b], ++b) {
        if (lengths[b] == 0) continue;
        int64_t from = places[size_t(first + checked_index(accepted[b] - 1, lengths[b], "numAcceptedTokens - 1"))];
        for (int64_t h = 0; h < rule.value_heads; ++h) {
            auto begin = states.begin() + (from * rule.value_heads + h) * each;
            Values state(begin, begin + each);
            for (int64_t t = first; t < first + lengths[b]; ++t) {
                rule.step(t, h, state.data(), out.data() + (t * rule.value_heads + h) * rule.value_size);
                std::copy(state.begin(), state.end(), states.begin() + (places[size_t(t)] * rule.value_heads + h) * each);
            }
        }
    }
    r.write(r.tensor("out"), out);
    r.write(r.tensor("stateRef"), states);
}

void run_chunks(Run& r) {
    Rule rule(r, "gOptional");
    auto states = r.read<double>(r.tensor("initialState"));
    auto lengths = r.read<int64_t>(r.tensor("actualSeqLengths"));
    check_total(lengths, r.tensor("query").dims[0]);
    int64_t each = rule.value_size * rule.size, first = 0;
    Values out(rule.v.size());
    for (size_t b = 0; b < lengths.size(); first += lengths[b], ++b)
        for (int64_t h = 0; h < rule.value_heads; ++h)
            for (int64_t t = first; t < first + lengths[b]; ++t)
                rule.step(t, h, states.data() + (int64_t(b) * rule.value_heads + h) * each,
                          out.data() + (t * rule.value_heads + h) * rule.value_size);
    r.write(r.tensor("out"), out);
    r.write(r.tensor("finalState"), states);
}

}  // namespace

ACLNN(aclnnNsaCompress,
      PLAN {
          plan_sizes(p, "layoutOptional", "actSeqLenOptional");
          Blocks b = blocks(p, "actSeqLenOptional");
          p.shape("output", {b.total(), b.heads, b.size});
      },
      run_compress)
ACLNN(aclnnNsaCompressGrad,
      PLAN {
          plan_sizes(p, "layoutOptionalOptional", "actSeqLenOptionalOptional");
          Blocks b = blocks(p, "actSeqLenOptionalOptional");
          p.shape("outputGrad", {b.total(), b.heads, b.size});
          p.same_shape("input", "inputGradOut");
          p.same_shape("weight", "weightGradOut");
      },
      run_compress_grad)
ACLNN(aclnnRingAttentionUpdate, plan_ring, run_ring)
ACLNN(aclnnRingAttentionUpdateV2, plan_ring, run_ring)
ACLNN(aclnnFusedFloydAttention,
      PLAN {
          plan_triangle(p);
          const Dims& q = p.tensor("query").dims;
          for (const char* name : {"softmaxMaxOut", "softmaxSumOut"}) p.shape(name, {q[0], q[1], q[2], q[3], 8});
          p.same_shape("query", "attentionOutOut");
      },
      run_triangle)
ACLNN(aclnnFusedFloydAttentionGrad,
      PLAN {
          plan_triangle(p);
          const Dims& q = p.tensor("query").dims;
          for (const char* name : {"softmaxMax", "softmaxSum"}) p.shape(name, {q[0], q[1], q[2], q[3], 8});
          for (const char* name : {"dy", "attentionIn", "dqOut"}) p.same_shape("query", name);
          for (const char* name : {"dk1Out", "dv1Out"}) p.same_shape("key1", name);
          for (const char* name : {"dk2Out", "dv2Out"}) p.same_shape("key2", name);
      },
      run_triangle_grad)
ACLNN(aclnnRecurrentGatedDeltaRule,
      PLAN {
          plan_rule(p, "g", "stateRef");
          const Dims &q = p.tensor("query").dims, &v = p.tensor("value").dims;
          if (p.has("gk")) p.shape("gk", {v[0], v[1], q[2]});
          p.shape("ssmStateIndices", {q[0]});
          if (p.has("numAcceptedTokens")) p.same_shape("actualSeqLengths", "numAcceptedTokens");
      },
      run_recurrent)
ACLNN(aclnnChunkGatedDeltaRule,
      PLAN {
          plan_rule(p, "gOptional", "initialState");
          p.same_shape("initialState", "finalState");
          p.require(p.tensor("initialState").dims[0] == p.tensor("actualSeqLengths").numel(),
                    "initialState has shape %s for %lld sequences", text(p.tensor("initialState").dims).c_str(),
                    wide(p.tensor("actualSeqLengths").numel()));
      },
      run_chunks)
