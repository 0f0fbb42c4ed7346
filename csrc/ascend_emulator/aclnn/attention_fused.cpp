// Attention for inference: prompts, decoding, and both in one; packed sequences, keys in pages, rotary parts of query and key
// apart, a score that stands for no key, small numbers, blocks of keys that are chosen.
//
// The facts give shapes and dtypes only. Scores are scale * (query key^T + rotary query key^T) + shift; shifts by distance are
// minus the distance of query and key, or its root, times a number of the head (pseType 2 and 3).
//   Keys and values of smaller numbers than queries: (number + offset) * scale, by antiquantMode 0 of a channel (or one for
// all), 1 of a token, 2 of a head, 3 of both, 4 and 5 of a token (and head) where keys are in pages.
//   Queries, keys and values of small numbers: scores times deqScale1; their exponentials times quantScale1 are rounded to
// INT8, and what they come to is multiplied by deqScale2. With dequantScaleQuery, a number for each query and head, queries
// are multiplied by it and keys and values are as above. Results of INT8 are x * quantScale2 + quantOffset2.
//   sabi lists, for each block of queries of a head, the blocks of keys that it sees; 65535 is none. Blocks are blockShape
// (queries, keys), 128 by 128 where it is null.
#include <cmath>

#include "inference.h"
#include "quantize.h"

using namespace emu;
using namespace emu::inference;

namespace {

bool is_small(int dtype) { return dtype == ACL_INT8 || dtype == ACL_INT32 || is_narrow(dtype); }

std::vector<Tensor> numbers(const Call& c, const char* name) {
    std::vector<Tensor> out = held(c, name);
    for (Tensor& t : out) t = half_bytes(t);
    return out;
}

Problem problem_of(const Call& c) { return problem(c, numbers(c, "key"), numbers(c, "value")); }

// -- (number + offset) * scale -----------------------------------------------------------------------------------------------
enum Each : int64_t { kChannel = 0, kToken = 1, kHead = 2, kTokenAndHead = 3, kPagedToken = 4, kPagedTokenAndHead = 5 };

struct Opened {
    const char *scale, *offset;  // null: none
    int64_t mode, part, parts;   // of keys and values in one tensor: which half
};

// Scales of keys or of values, in tensors of their own or in one for both.
Opened opened(const Call& c, bool values) {
    const char* own = passed(c, {values ? "valueAntiquantScale" : "keyAntiquantScale"});
    if (own != nullptr)
        return {own, passed(c, {values ? "valueAntiquantOffset" : "keyAntiquantOffset"}), number(c, values ? "valueAntiquantMode" : "keyAntiquantMode", 0), 0, 1};
    return {passed(c, {"antiquantScale"}), passed(c, {"antiquantOffset"}), number(c, "antiquantMode", 0), values, 2};
}

int64_t expected(const Opened& o, const Problem& s, const Where& w, const Tensor& t) {
    int64_t tokens = t.rank() > 0 ? t.dims.back() : 0, many = w.block > 0 ? w.dims[0] * w.block : 0;
    switch (o.mode) {
        case kChannel: return s.kv_heads * w.size;
        case kToken: return s.batch * tokens;
        case kHead: return s.kv_heads;
        case kTokenAndHead: return s.batch * s.kv_heads * tokens;
        case kPagedToken: return many;
        default: return many * s.kv_heads;
    }
}

void plan_opened(const Plan& p, const Problem& s, bool values) {
    Opened o = opened(p, values);
    const Where& w = values ? s.v : s.k;
    p.require(o.scale != nullptr, "%s of small numbers need antiquantScale", values ? "values" : "keys");
    p.require(o.mode >= kChannel && o.mode <= kPagedTokenAndHead, "the mode of %s is %lld; the emulator computes 0 to 5", o.scale, wide(o.mode));
    const Tensor& t = p.tensor(o.scale);
    int64_t n = t.numel() / o.parts, want = expected(o, s, w, t);
    p.require(t.numel() == n * o.parts && (n == want || (o.mode == kChannel && n == 1)), "%s has shape %s, mode %lld has %lld elements", o.scale, text(t.dims).c_str(), wide(o.mode), wide(want * o.parts));
    if (o.mode == kToken || o.mode == kTokenAndHead)
        for (int64_t keys : s.keys) p.require(keys <= t.dims.back(), "%s has shape %s for %lld keys", o.scale, text(t.dims).c_str(), wide(keys));
    if (o.offset != nullptr) p.same_shape(o.scale, o.offset);
}

struct Opening {
    Opened by;
    Values scale, offset;
    int64_t tokens = 0, heads = 1, size = 1;

    Opening(const Run& r, const Problem& s, bool values) : by(opened(r, values)), heads(s.kv_heads), size(values ? s.value_size : s.size) {
        if (by.scale == nullptr || !is_small(numbers(r, values ? "value" : "key")[0].dtype)) return;
        tokens = r.tensor(by.scale).dims.back();
        scale = half(r, by.scale);
        if (by.offset != nullptr) offset = half(r, by.offset);
    }
    bool closed() const { return scale.empty(); }
    // Opens the numbers of one head at one place.
    void operator()(const Where& w, int64_t b, int64_t h, int64_t s, double* x) const {
        size_t step = scale.size() > 1 && by.mode == kChannel ? 1 : 0, at = scale.size() == 1 ? 0 : place(w, b, h, s);
        for (int64_t d = 0; d < size; ++d, at += step) x[d] = (x[d] + (offset.empty() ? 0 : offset[at])) * scale[at];
    }

private:
    Values half(const Run& r, const char* name) const {
        Values all = r.read<double>(r.tensor(name));
        size_t n = all.size() / size_t(by.parts), from = n * size_t(by.part);
        return Values(all.begin() + int64_t(from), all.begin() + int64_t(from + n));
    }
    size_t place(const Where& w, int64_t b, int64_t h, int64_t s) const {
        switch (by.mode) {
            case kChannel: return size_t(h * size);
            case kToken: return size_t(b * tokens + s);
            case kHead: return size_t(h);
            case kTokenAndHead: return size_t((b * heads + h) * tokens + s);
            case kPagedToken: return size_t(w.page(b, s) * w.block + s % w.block);
            default: return size_t((w.page(b, s) * heads + h) * w.block + s % w.block);
        }
    }
};

// -- small queries, small results --------------------------------------------------------------------------------------------
constexpr std::initializer_list<const char*> kScores = {"deqScale1", "dequantScale1"}, kWeights = {"quantScale1"}, kSums = {"deqScale2", "dequantScale2"};

// Scores, weights and sums have a scale each; otherwise queries have one.
bool in_three_steps(const Call& c) { return c.tensor("query").dtype == ACL_INT8 && passed(c, {"dequantScaleQuery"}) == nullptr; }

double single(const Run& r, std::initializer_list<const char*> names) { return read_scale(r, r.tensor(passed(r, names)))[0]; }

void plan_numbers(const Plan& p, const Problem& s) {
    const Tensor &q = p.tensor("query"), &out = p.tensor("attentionOut");
    auto ks = numbers(p, "key"), vs = numbers(p, "value");
    for (const auto* all : {&ks, &vs})
        for (const Tensor& t : *all) p.require(t.dtype == ks[0].dtype, "all keys and values must have the same dtype");
    bool small_queries = is_small(q.dtype), small_keys = is_small(ks[0].dtype), three = in_three_steps(p);
    p.require(small_keys || q.dtype == ks[0].dtype, "query, key and value must have the same dtype, or keys and values that of smaller numbers");
    p.require(!small_queries || small_keys, "query has dtype %s, key %s", dtype_name(q.dtype), dtype_name(ks[0].dtype));
    const char* of_queries = passed(p, {"dequantScaleQuery"});
    p.require(of_queries == nullptr || small_queries, "%s belongs to queries of small numbers", of_queries);
    if (of_queries != nullptr) p.require(p.tensor(of_queries).numel() == q.numel() / std::max<int64_t>(s.size, 1), "%s has shape %s for queries of %s", of_queries, text(p.tensor(of_queries).dims).c_str(), text(q.dims).c_str());
    p.require(!small_queries || three || of_queries != nullptr, "query has dtype %s, which needs dequantScaleQuery", dtype_name(q.dtype));
    for (auto names : {kScores, kWeights, kSums}) {
        const char* name = passed(p, names);
        p.require(three == (name != nullptr), "%s belongs to queries of INT8 without a scale of their own", *names.begin());
        if (three) p.require(p.tensor(name).numel() == 1, "%s has shape %s, expected one element", name, text(p.tensor(name).dims).c_str());
    }
    if (three) p.require(ks[0].dtype == ACL_INT8, "query has dtype INT8, key %s", dtype_name(ks[0].dtype));
    for (bool values : {false, true}) {
        if (small_keys && !three) plan_opened(p, s, values);
        else p.require(opened(p, values).scale == nullptr, "%s belongs to keys of smaller numbers than the queries", opened(p, values).scale);
    }
    const char *scale = passed(p, {"quantScale2"}), *offset = passed(p, {"quantOffset2"});
    p.require(is_small(out.dtype) || small_queries || out.dtype == q.dtype, "query has dtype %s, attentionOut %s", dtype_name(q.dtype), dtype_name(out.dtype));
    p.require(is_small(out.dtype) == (scale != nullptr), "quantScale2 belongs to results of small numbers");
    p.require(offset == nullptr || scale != nullptr, "quantOffset2 belongs to results of small numbers");
    for (const char* name : {scale, offset}) {
        if (name == nullptr) continue;
        int64_t n = p.tensor(name).numel();
        p.require(n == 1 || n == s.heads * s.value_size, "%s has shape %s for %lld heads of %lld", name, text(p.tensor(name).dims).c_str(), wide(s.heads), wide(s.value_size));
    }
}

// Of a value of head h: x * quantScale2 + quantOffset2.
struct Closing {
    Values scale, offset;
    int64_t size;

    Closing(const Run& r, const Problem& s) : size(s.value_size) {
        if (const char* name = passed(r, {"quantScale2"})) scale = read_scale(r, r.tensor(name));
        if (const char* name = passed(r, {"quantOffset2"})) offset = r.read<double>(r.tensor(name));
    }
    double operator()(int64_t h, int64_t d, double x) const {
        if (scale.empty()) return x;
        auto of = [&](const Values& all) { return all[all.size() == 1 ? 0 : size_t(h * size + d)]; };
        return x * of(scale) + (offset.empty() ? 0 : of(offset));
    }
};

// -- what is hidden ----------------------------------------------------------------------------------------------------------
enum SparseMode : int64_t { kDefault = 0, kAll = 1, kLeftUp = 2, kRightDown = 3, kBand = 4 };
constexpr int64_t kCompressed = 2048;

int64_t most(const std::vector<int64_t>& lengths) {
    int64_t out = 0;
    for (int64_t n : lengths) out = std::max(out, n);
    return out;
}

// A mask as (sample, head, query, key). With one query a matrix may have a row for each sample.
Dims planes(const Dims& m, const Problem& s) {
    if (m.n == 4) return m;
    if (m.n == 3) return {m[0], 1, m[1], m[2]};
    if (m.n == 2 && m[0] == s.batch && s.batch > 1 && most(s.queries) <= 1) return {m[0], 1, 1, m[1]};
    return m.n == 2 ? Dims{1, 1, m[0], m[1]} : Dims{1, 1, 1, m.n == 1 ? m[0] : 0};
}

void plan_covers(const Plan& p, const char* name, const Problem& s) {
    Dims m = planes(p.tensor(name).dims, s);
    int64_t keys = most(s.keys) + s.prefix, queries = most(s.queries);
    bool fits = (m[0] == 1 || m[0] == s.batch) && (m[1] == 1 || m[1] == s.heads) && (m[2] == 1 || m[2] >= queries) && (m[3] == 1 || m[3] >= keys);
    p.require(fits, "%s has shape %s, which does not cover %lld by %lld scores", name, text(p.tensor(name).dims).c_str(), wide(queries), wide(keys));
}

void plan_masks(const Plan& p, const Problem& s) {
    int64_t mode = number(p, "sparseMode", kDefault);
    const char* mask = passed(p, {"attenMask"});
    p.require(mode >= kDefault && mode <= kBand, "sparseMode is %lld; the emulator computes 0 to 4", wide(mode));
    p.require(mode == kDefault || mask != nullptr, "sparseMode %lld needs attenMask", wide(mode));
    if (mask != nullptr && mode >= kLeftUp) {
        const Dims& m = p.tensor(mask).dims;
        p.require(m.n >= 2 && m.back() == kCompressed && m[m.n - 2] == kCompressed, "%s has shape %s, sparseMode %lld needs (2048, 2048)", mask, text(m).c_str(), wide(mode));
    } else if (mask != nullptr) {
        plan_covers(p, mask, s);
    }
    int64_t type = number(p, "pseType", 0);
    const char* shift = passed(p, {"pseShift"});
    p.require(type == 0 || type == 2 || type == 3, "pseType is %lld, expected 0, 2 or 3", wide(type));
    p.require(type == 0 || shift != nullptr, "pseType %lld needs pseShift", wide(type));
    if (type != 0) p.require(p.tensor(shift).numel() == s.heads || p.tensor(shift).numel() == s.batch * s.heads, "%s has shape %s, expected a number of each head", shift, text(p.tensor(shift).dims).c_str());
    else if (shift != nullptr) plan_covers(p, shift, s);
    for (const char* base : {"qStartIdx", "kvStartIdx"}) p.require(integers(p, {base}).size() <= 1, "%s has more than one element", base);
    if (named(p, {"sabi"}) == nullptr || !p.has("sabi")) return;
    const Dims& d = p.tensor("sabi").dims;
    auto shape = integers(p, {"blockShape"});
    p.require(shape.empty() || (shape.size() == 2 && shape[0] > 0 && shape[1] > 0), "blockShape must hold two sizes");
    int64_t rows = (most(s.queries) + (shape.empty() ? 128 : shape[0]) - 1) / (shape.empty() ? 128 : shape[0]);
    p.require(d.n == 4 && d[0] == s.batch && d[1] == s.heads && d[2] >= rows, "sabi has shape %s for %lld blocks of queries", text(d).c_str(), wide(rows));
}

// Numbers of scores, over samples and heads that share them.
struct Plane {
    Values values;
    Dims dims;

    Plane(const Run& r, const char* name, const Problem& s) {
        if (name == nullptr) return;
        dims = planes(r.tensor(name).dims, s), values = r.read<double>(r.tensor(name));
    }
    double operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
        int64_t at[] = {b, h, i, j}, place = 0;
        for (int k = 0; k < 4; ++k) place = place * dims[k] + (dims[k] == 1 ? 0 : at[k]);
        return values[size_t(place)];
    }
};

struct Hidden {
    Plane mask;
    int64_t mode, before, after;
    std::vector<int64_t> chosen;  // blocks of keys, for each block of queries
    Dims lists;
    int64_t height = 128, width = 128;

    Hidden(const Run& r, const Problem& s)
        : mask(r, number(r, "sparseMode", kDefault) >= kLeftUp ? nullptr : passed(r, {"attenMask"}), s), mode(number(r, "sparseMode", kDefault)),
          before(number(r, "preTokens", INT32_MAX)), after(number(r, "nextTokens", INT32_MAX)) {
        const char* sabi = passed(r, {"sabi"});
        if (sabi == nullptr) return;
        chosen = r.read<int64_t>(r.tensor(sabi)), lists = r.tensor(sabi).dims;
        auto shape = integers(r, {"blockShape"});
        if (!shape.empty()) height = shape[0], width = shape[1];
    }
    bool operator()(int64_t b, int64_t h, int64_t i, int64_t j, int64_t queries, int64_t keys) const {
        if (!chosen.empty()) {
            auto from = chosen.begin() + ((b * lists[1] + h) * lists[2] + i / height) * lists[3];
            if (std::find(from, from + lists[3], j / width) == from + lists[3]) return true;
        }
        int64_t distance = j - i, shifted = distance - (keys - queries);
        if (mode == kLeftUp) return distance > 0;
        if (mode == kRightDown) return shifted > 0;
        if (mode == kBand) return shifted > after || -shifted > before;
        if (mask.values.empty()) return false;
        if (mode == kDefault && (distance > after || -distance > before)) return true;
        return mask(b, h, i, j) != 0;
    }
};

// -- plan --------------------------------------------------------------------------------------------------------------------
Dims result_dims(const std::string& layout, const Problem& s, int64_t queries) {
    if (layout == "BSH") return {s.batch, queries, s.heads * s.value_size};
    if (layout == "BSND") return {s.batch, queries, s.heads, s.value_size};
    if (layout == "BNSD") return {s.batch, s.heads, queries, s.value_size};
    if (layout == "NBSD") return {s.heads, s.batch, queries, s.value_size};
    return layout == "NTD" ? Dims{s.heads, queries, s.value_size} : Dims{queries, s.heads, s.value_size};
}

constexpr std::initializer_list<const char*> kQueryRope = {"queryRope", "query_rope"}, kKeyRope = {"keyRope", "key_rope"};

void plan_rope(const Plan& p, const Problem& s, const std::string& layout) {
    const char *q = passed(p, kQueryRope), *k = passed(p, kKeyRope);
    p.require((q != nullptr) == (k != nullptr), "queryRope and keyRope go together");
    if (q == nullptr) return;
    p.require(s.k.samples.empty() && s.prefix == 0, "queryRope and keyRope do not go with keys of single samples or a prefix");
    Dims a = p.tensor("query").dims, b = numbers(p, "key")[0].dims;
    const Dims &x = p.tensor(q).dims, &y = p.tensor(k).dims;
    p.require(x.n == a.n && y.n == b.n, "%s has shape %s", q, text(x).c_str());
    a[a.n - 1] = x.back(), b[b.n - 1] = y.back();
    bool flat = layout == "BSH", pages = b.n == 3 && s.k.block > 0;
    int64_t one = flat ? x.back() / s.heads : x.back(), two = flat || pages ? y.back() / s.kv_heads : y.back();
    p.require(x == a && y == b && one == two && one > 0, "%s has shape %s, %s %s", q, text(x).c_str(), k, text(y).c_str());
}

void plan_fused(Plan& p) {
    const char* rope = passed(p, {"keyRopeAntiquantScale"});
    p.require(rope == nullptr, "%s is not computed by the emulator: the documents state no formula for it", rope);
    Problem s = problem_of(p);
    plan_numbers(p, s);
    const std::string layout = layout_in(p);
    const Tensor& q = p.tensor("query");
    int64_t queries = is_packed(layout) ? q.dims[tokens_axis(layout)] : sequence(q.dims, layout);
    p.shape("attentionOut", result_dims(layout_out(p), s, queries));
    if (has_parameter(p, "softmaxLseFlag") && p.flag("softmaxLseFlag")) p.shape("softmaxLse", is_packed(layout) ? Dims{queries, s.heads, 1} : Dims{s.batch, s.heads, queries, 1});
    plan_masks(p, s);
    plan_rope(p, s, layout);
    if (const char* sink = passed(p, {"learnableSink"})) p.shape(sink, {s.heads});
    for (const char* base : {"queryPaddingSize", "kvPaddingSize"}) {
        const char* name = passed(p, {base});
        if (name == nullptr) continue;
        p.require(p.tensor(name).numel() == 1, "%s has shape %s, expected one element", name, text(p.tensor(name).dims).c_str());
        p.require(!is_packed(layout) && s.k.block == 0, "%s does not go with packed sequences or pages", name);
    }
    p.workspace = 1 << 20;
}

// -- run ---------------------------------------------------------------------------------------------------------------------
// Sequences that end before padding on the right begin where is left.
void shift_left(const Run& r, const char* base, const std::vector<int64_t>& lengths, const std::string& layout, std::initializer_list<Where*> all) {
    const char* name = passed(r, {base});
    if (name == nullptr) return;
    int64_t pad = r.read<int64_t>(r.tensor(name))[0];
    std::vector<int64_t> left;
    const Where& w = **all.begin();
    for (size_t b = 0; b < lengths.size(); ++b) {
        left.push_back(sequence(w.samples.empty() ? w.dims : w.samples[b].second, layout) - lengths[b] - pad);
        if (pad < 0 || left.back() < 0) fault("%s holds %lld, which leaves no room for %lld", name, wide(pad), wide(lengths[b]));
    }
    for (Where* each : all) each->left = left;
}

// Keys or values of a sample: those in front of all, then its own.
struct Rows {
    const Where &own, &first;
    Values values, front;
    int64_t prefix;
    Opening open;

    Rows(const Run& r, const Problem& s, bool of_values)
        : own(of_values ? s.v : s.k), first(of_values ? s.first_v : s.first_k), prefix(s.prefix), open(r, s, of_values) {
        for (const Tensor& t : numbers(r, of_values ? "value" : "key")) {
            Values part = r.read<double>(t);
            values.insert(values.end(), part.begin(), part.end());
        }
        const char* name = passed(r, {of_values ? "valueSharedPrefix" : "keySharedPrefix"});
        if (name != nullptr) front = r.read<double>(r.tensor(name));
    }
    // The numbers of one key, one behind the other; `room` holds those that are to be opened.
    const double* row(int64_t b, int64_t h, int64_t j, Values& room) const {
        if (j < prefix) return front.data() + first(0, h, j, 0);
        const double* from = values.data() + own(b, h, j - prefix, 0);
        if (open.closed()) return from;
        room.assign(from, from + own.size);
        open(own, b, h, j - prefix, room.data());
        return room.data();
    }
};

struct Attention {
    const Run& r;
    Problem s;
    Values q, of_queries, q2, k2, shift_by_head, sink;
    Where at_q2, at_k2;
    int64_t type, start = 0;
    double scores = 1, weights = 0, sums = 1;  // of small numbers; weights of 0: not rounded

    explicit Attention(const Run& run) : r(run), s(problem_of(run)), type(number(run, "pseType", 0)) {
        if (const char* table = passed(r, kTable)) s.k.table = s.v.table = r.read<int64_t>(r.tensor(table));
        const std::string layout = layout_in(r);
        shift_left(r, "queryPaddingSize", s.queries, layout, {&s.q});
        shift_left(r, "kvPaddingSize", s.keys, layout, {&s.k, &s.v});
        q = r.read<double>(r.tensor("query"));
        if (const char* name = passed(r, {"dequantScaleQuery"})) of_queries = r.read<double>(r.tensor(name));
        if (in_three_steps(r)) scores = single(r, kScores), weights = single(r, kWeights), sums = single(r, kSums);
        if (const char* name = passed(r, kQueryRope)) {
            const char* key = passed(r, kKeyRope);
            at_q2 = like(s.q, r.tensor(name)), at_k2 = like(s.k, r.tensor(key));
            q2 = r.read<double>(r.tensor(name)), k2 = r.read<double>(r.tensor(key));
        }
        if (type != 0) shift_by_head = r.read<double>(r.tensor(passed(r, {"pseShift"})));
        auto first = integers(r, {"qStartIdx"}), second = integers(r, {"kvStartIdx"});
        start = (first.empty() ? 0 : first[0]) - (second.empty() ? 0 : second[0]);
        if (const char* name = passed(r, {"learnableSink"})) sink = r.read<double>(r.tensor(name));
    }
    double score(const Rows& keys, const Plane& shift, int64_t b, int64_t h, int64_t i, int64_t j, Values& room) const {
        int64_t other = h / (s.heads / s.kv_heads);
        const double *x = q.data() + s.q(b, h, i, 0), *y = keys.row(b, other, j, room);
        double dot = 0;
        for (int64_t d = 0; d < s.size; ++d) dot += x[d] * y[d];
        dot *= scores;
        if (!of_queries.empty()) dot *= of_queries[s.q(b, h, i, 0) / size_t(s.size)];
        if (!q2.empty()) {
            const double *x2 = q2.data() + at_q2(b, h, i, 0), *y2 = k2.data() + at_k2(b, other, j, 0);
            for (int64_t d = 0; d < at_q2.size; ++d) dot += x2[d] * y2[d];
        }
        dot *= r.real("scaleValue");
        if (!shift.values.empty()) return dot + shift(b, h, i, j);
        if (shift_by_head.empty()) return dot;
        double apart = std::fabs(double(start + i - j));
        return dot - (type == 3 ? std::sqrt(apart) : apart) * shift_by_head[size_t((int64_t(shift_by_head.size()) == s.heads ? 0 : b * s.heads) + h)];
    }
};

void run_fused(Run& r) {
    Attention a(r);
    const Problem& s = a.s;
    Rows keys(r, s, false), values(r, s, true);
    Hidden hidden(r, s);
    Plane shift(r, a.type == 0 ? passed(r, {"pseShift"}) : nullptr, s);
    Closing close(r, s);
    const Tensor& to = r.tensor("attentionOut");
    Where at_out = s.q;
    at_out.layout = layout_out(r), at_out.dims = to.dims, at_out.size = s.value_size;
    bool packed = is_packed(layout_in(r)), wanted = has_parameter(r, "softmaxLseFlag") && r.flag("softmaxLseFlag");
    Values room, out(size_t(to.numel()), 0), logs(wanted ? size_t(r.tensor("softmaxLse").numel()) : 0, INFINITY);
    for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.heads; ++h)
            for (int64_t i = 0; i < s.queries[size_t(b)]; ++i) {
                int64_t many = s.keys[size_t(b)] + s.prefix, other = h / (s.heads / s.kv_heads);
                Values x;
                double top = a.sink.empty() ? -INFINITY : a.sink[size_t(h)], sum = 0;
                for (int64_t j = 0; j < many; ++j) {
                    x.push_back(hidden(b, h, i, j, s.queries[size_t(b)], many) ? -INFINITY : a.score(keys, shift, b, h, i, j, room));
                    top = std::fmax(top, x.back());
                }
                if (!a.sink.empty()) sum = std::exp(a.sink[size_t(h)] - top);
                for (double& e : x) {
                    e = top == -INFINITY ? 0 : std::exp(e - top), sum += e;
                    if (a.weights != 0) e = std::fmin(std::fmax(std::nearbyint(e * a.weights), -128), 127);
                }
                double* result = out.data() + at_out(b, h, i, 0);
                for (int64_t j = 0; j < many; ++j) {
                    if (x[size_t(j)] == 0) continue;
                    const double* y = values.row(b, other, j, room);
                    for (int64_t d = 0; d < s.value_size; ++d) result[d] += x[size_t(j)] * y[d];
                }
                for (int64_t d = 0; d < s.value_size && sum != 0; ++d) result[d] = close(h, d, result[d] * a.sums / sum);
                if (!wanted) continue;
                size_t row = packed ? size_t((s.q.starts[size_t(b)] + i) * s.heads + h)
                                    : size_t((b * s.heads + h) * r.tensor("softmaxLse").dims[2] + i + (s.q.left.empty() ? 0 : s.q.left[size_t(b)]));
                logs[row] = sum == 0 ? INFINITY : top + std::log(sum);
            }
    r.write(to, is_small(to.dtype) ? within(out, to.dtype) : out);
    if (wanted) r.write(r.tensor("softmaxLse"), logs);
}

}  // namespace

ACLNN(aclnnPromptFlashAttention, plan_fused, run_fused)
ACLNN(aclnnPromptFlashAttentionV2, plan_fused, run_fused, NARROW)
ACLNN(aclnnPromptFlashAttentionV3, plan_fused, run_fused, NARROW)
ACLNN(aclnnIncreFlashAttention, plan_fused, run_fused)
ACLNN(aclnnIncreFlashAttentionV2, plan_fused, run_fused, NARROW)
ACLNN(aclnnIncreFlashAttentionV3, plan_fused, run_fused, NARROW)
ACLNN(aclnnIncreFlashAttentionV4, plan_fused, run_fused, NARROW)
ACLNN(aclnnFusedInferAttentionScore, plan_fused, run_fused, NARROW)
ACLNN(aclnnFusedInferAttentionScoreV2, plan_fused, run_fused, NARROW)
ACLNN(aclnnFusedInferAttentionScoreV3, plan_fused, run_fused, NARROW)
ACLNN(aclnnFusedInferAttentionScoreV4, plan_fused, run_fused, NARROW)
ACLNN(aclnnFusedInferAttentionScoreV5, plan_fused, run_fused, NARROW)
ACLNN(aclnnInnerFusedInferAttentionScore, plan_fused, run_fused, NARROW)
ACLNN(aclnnBlitzSparseAttention, plan_fused, run_fused, NARROW)
