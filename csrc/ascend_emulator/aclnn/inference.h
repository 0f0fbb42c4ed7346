// Where the queries, keys and values of attention for inference are: layouts, packed sequences, pages, tensors of single
// samples, padding on the left, keys that all samples have in front.
#pragma once

#include <algorithm>

#include "moving.h"
#include "optional.h"

namespace emu::inference {

using Values = std::vector<double>;

inline long long wide(int64_t x) { return static_cast<long long>(x); }

// The name that a function has for an argument: some versions call an optional one ...Optional. Null: it has none of these.
inline const char* named(const Call& c, std::initializer_list<const char*> bases) {
    for (const char* base : bases)
        for (int i = 0; i < c.function->count; ++i) {
            const char* name = c.function->parameters[i].name;
            size_t n = std::strlen(base);
            if (std::strncmp(name, base, n) == 0 && (name[n] == 0 || std::strcmp(name + n, "Optional") == 0)) return name;
        }
    return nullptr;
}

// The same, null where the argument is.
inline const char* passed(const Call& c, std::initializer_list<const char*> bases) {
    const char* name = named(c, bases);
    return name != nullptr && c.has(name) ? name : nullptr;
}

inline int64_t number(const Call& c, const char* name, int64_t otherwise) { return has_parameter(c, name) ? c.integer(name) : otherwise; }

inline std::vector<int64_t> integers(const Call& c, std::initializer_list<const char*> bases) {
    const char* name = passed(c, bases);
    return name != nullptr ? c.ints(name) : std::vector<int64_t>();
}

// One query for each sample: lengths are those of the keys.
inline bool decodes(const Call& c) { return named(c, {"actualSeqLengthsKv"}) == nullptr && !has_parameter(c, "preTokens"); }

// The first prompts have one list of lengths for queries and keys, which goes beyond the shorter of them.
inline bool one_length(const Call& c) { return named(c, {"actualSeqLengthsKv"}) == nullptr && !decodes(c); }

inline std::vector<int64_t> query_lengths(const Call& c) { return decodes(c) ? std::vector<int64_t>() : integers(c, {"actualSeqLengths"}); }
inline std::vector<int64_t> key_lengths(const Call& c) { return integers(c, {"actualSeqLengthsKv", "actualSeqLengths"}); }

constexpr std::initializer_list<const char*> kTable = {"blockTable", "blocktable"};

// Keys or values: one tensor, or one for each sample.
inline std::vector<Tensor> held(const Call& c, const char* name) {
    for (int i = 0; i < c.function->count; ++i)
        if (std::strcmp(c.function->parameters[i].name, name) == 0 && c.function->parameters[i].role == Role::tensors) return c.tensors(name);
    return {c.tensor(name)};
}

// -- layouts -----------------------------------------------------------------------------------------------------------------
// "A" is the layout of all tensors, "A_B" has the results in B. The facts have no list of them; these are the ones of the
// function's public description. None at all is BSH.
inline bool known(const std::string& layout) {
    static const char* const all[] = {"BSH",      "BSND",      "BNSD",      "TND", "BNSD_BSND", "BSH_BNSD", "BSND_BNSD",
                                      "BSH_NBSD", "BSND_NBSD", "BNSD_NBSD", "NTD", "TND_NTD",   "NTD_TND"};
    return std::any_of(std::begin(all), std::end(all), [&](const char* name) { return layout == name; });
}

inline std::string layouts(const Call& c) { return c.has("inputLayout") && !c.string("inputLayout").empty() ? c.string("inputLayout") : "BSH"; }

inline std::string layout_in(const Call& c) { return layouts(c).substr(0, layouts(c).find('_')); }

inline std::string layout_out(const Call& c) {
    const std::string both = layouts(c);
    size_t cut = both.find('_');
    return cut == std::string::npos ? both : both.substr(cut + 1);
}

inline bool is_packed(const std::string& layout) { return layout == "TND" || layout == "NTD"; }
inline int heads_axis(const std::string& layout) { return layout == "NTD" ? 0 : layout == "TND" || layout == "BNSD" ? 1 : 2; }
inline int tokens_axis(const std::string& layout) { return layout == "NTD" ? 1 : 0; }  // of packed ones
inline int64_t sequence(const Dims& d, const std::string& layout) { return layout == "BNSD" ? d[2] : d[1]; }

// Where element d of head h at place s of sample b is.
struct Where {
    std::string layout;
    Dims dims;
    int64_t heads = 1, size = 1, block = 0;
    std::vector<int64_t> starts, table;              // of packed sequences; of pages
    int64_t per_sample = 0;
    std::vector<std::pair<int64_t, Dims>> samples;   // of tensors of single samples: where they begin
    std::vector<int64_t> left;                       // places before the first, of each sample

    int64_t page(int64_t b, int64_t s) const { return checked_index(table[size_t(b * per_sample + s / block)], dims[0], "blockTable"); }

    size_t operator()(int64_t b, int64_t h, int64_t s, int64_t d) const {
        if (block > 0) {
            int64_t place = s % block;
            return size_t(dims.n == 3 ? (page(b, s) * block + place) * heads * size + h * size + d
                                      : ((page(b, s) * heads + h) * block + place) * size + d);
        }
        if (!left.empty()) s += left[size_t(b)];
        if (!samples.empty()) return size_t(samples[size_t(b)].first) + within(samples[size_t(b)].second, 0, h, s, d);
        return within(dims, b, h, s, d);
    }

private:
    size_t within(const Dims& in, int64_t b, int64_t h, int64_t s, int64_t d) const {
        if (layout == "TND") return size_t(((starts[size_t(b)] + s) * heads + h) * size + d);
        if (layout == "NTD") return size_t((h * in[1] + starts[size_t(b)] + s) * size + d);
        if (layout == "NBSD") return size_t(((h * in[1] + b) * in[2] + s) * size + d);
        if (layout == "BNSD") return size_t(((b * heads + h) * in[2] + s) * size + d);
        return size_t((b * in[1] + s) * heads * size + h * size + d);  // BSH, BSND
    }
};

inline Where where(const Tensor& t, const std::string& layout, int64_t heads) {
    Where w;
    w.layout = layout;
    w.dims = t.dims;
    w.heads = heads;
    w.size = layout == "BSH" ? t.dims.back() / std::max<int64_t>(heads, 1) : t.dims.back();
    return w;
}

// The same places of a tensor whose heads have another size.
inline Where like(const Where& w, const Tensor& t) {
    Where out = w;
    out.dims = t.dims;
    out.size = w.layout == "BSH" ? t.dims.back() / w.heads : t.dims.back();
    return out;
}

// Ends of packed sequences to starts and lengths.
inline void unpack(const std::vector<int64_t>& ends, std::vector<int64_t>* starts, std::vector<int64_t>* lengths) {
    int64_t at = 0;
    for (int64_t end : ends) {
        starts->push_back(at);
        lengths->push_back(end - at);
        at = end;
    }
}

#define NEED(holds, ...)                                            \
    do {                                                            \
        if (!(holds)) refuse(ACLNN_ERR_PARAM_INVALID, __VA_ARGS__); \
    } while (false)

// -- the problem -------------------------------------------------------------------------------------------------------------
struct Problem {
    int64_t batch, heads, kv_heads, size, value_size;
    std::vector<int64_t> queries, keys;  // of each sample
    int64_t prefix = 0;                  // keys that all samples have in front
    Where q, k, v, first_k, first_v;
};

inline void need_lengths(const char* what, const std::vector<int64_t>& lengths, int64_t most) {
    for (int64_t n : lengths) NEED(n >= 0 && n <= most, "a length of %s is %lld, there are %lld", what, wide(n), wide(most));
}

inline void need_heads(const char* name, const Tensor& t, const std::string& layout, int64_t heads) {
    bool fits = t.rank() == (layout == "BSH" || is_packed(layout) ? 3 : 4);
    NEED(fits, "%s has shape %s, which %s does not have", name, text(t.dims).c_str(), layout.c_str());
    fits = layout == "BSH" ? t.dims[2] % heads == 0 : t.dims[heads_axis(layout)] == heads;
    NEED(fits, "%s has shape %s for %lld heads", name, text(t.dims).c_str(), wide(heads));
}

inline void problem_of_queries(const Call& c, const Tensor& q, const std::string& layout, Problem& p) {
    need_heads("query", q, layout, p.heads);
    p.q = where(q, layout, p.heads);
    auto lengths = query_lengths(c);
    if (is_packed(layout)) {
        NEED(!lengths.empty() && lengths.back() == q.dims[tokens_axis(layout)], "actualSeqLengths must end at %lld", wide(q.dims[tokens_axis(layout)]));
        unpack(lengths, &p.q.starts, &p.queries);
        p.batch = int64_t(lengths.size());
        return need_lengths("queries", p.queries, lengths.back());
    }
    p.batch = q.dims[0];
    int64_t all = sequence(q.dims, layout);
    NEED(!decodes(c) || all == 1, "query has %lld positions, expected 1", wide(all));
    NEED(lengths.size() <= 1 || int64_t(lengths.size()) == p.batch, "actualSeqLengths has %zu elements", lengths.size());
    for (int64_t b = 0; b < p.batch; ++b) {
        int64_t n = lengths.empty() ? all : lengths[lengths.size() == 1 ? 0 : size_t(b)];
        p.queries.push_back(one_length(c) ? std::min(n, all) : n);
    }
    need_lengths("queries", p.queries, all);
}

inline void problem_in_pages(const Call& c, const Tensor& k, const Tensor& v, Problem& p) {
    const Dims& t = c.tensor(passed(c, kTable)).dims;
    auto lengths = key_lengths(c);
    int64_t block = number(c, "blockSize", 0);
    NEED(block > 0, "pages need blockSize");
    NEED(t.n == 2 && t[0] == p.batch && int64_t(lengths.size()) == p.batch, "pages need a row and a length for each of %lld samples", wide(p.batch));
    NEED(k.rank() == v.rank() && (k.rank() == 3 ? k.dims[1] == block && v.dims[1] == block && k.dims[2] % p.kv_heads == 0 && v.dims[2] % p.kv_heads == 0
                                                : k.rank() == 4 && k.dims[1] == p.kv_heads && k.dims[2] == block && v.dims[1] == p.kv_heads && v.dims[2] == block) &&
             v.dims[0] == k.dims[0],
         "key has shape %s and value %s, which pages of %lld do not have", text(k.dims).c_str(), text(v.dims).c_str(), wide(block));
    for (Where* w : {&p.k, &p.v}) {
        *w = where(w == &p.k ? k : v, k.rank() == 3 ? "BSH" : "BNSD", p.kv_heads);
        w->block = block;
        w->per_sample = t[1];
    }
    p.keys = lengths;
    need_lengths("keys", p.keys, t[1] * block);
}

inline void problem_of_keys(const Call& c, const std::vector<Tensor>& ks, const std::vector<Tensor>& vs, const std::string& layout, Problem& p) {
    bool single = ks.size() > 1;
    auto lengths = key_lengths(c);
    NEED(ks.size() == vs.size() && (!single || (int64_t(ks.size()) == p.batch && !is_packed(layout))), "there are %zu keys and %zu values for %lld samples", ks.size(), vs.size(), wide(p.batch));
    for (const Tensor& t : ks) need_heads("key", t, layout, p.kv_heads);
    for (const Tensor& t : vs) need_heads("value", t, layout, p.kv_heads);
    p.k = where(ks[0], layout, p.kv_heads), p.v = where(vs[0], layout, p.kv_heads);
    if (is_packed(layout)) {
        int axis = tokens_axis(layout);
        NEED(lengths.size() == p.queries.size() && lengths.back() == ks[0].dims[axis] && vs[0].dims[axis] == ks[0].dims[axis], "actualSeqLengthsKv must end at %lld", wide(ks[0].dims[axis]));
        unpack(lengths, &p.k.starts, &p.keys);
        p.v.starts = p.k.starts;
        return need_lengths("keys", p.keys, lengths.back());
    }
    NEED(lengths.size() <= 1 || int64_t(lengths.size()) == p.batch, "there are %zu lengths of keys for %lld samples", lengths.size(), wide(p.batch));
    int64_t k_at = 0, v_at = 0;
    for (int64_t b = 0; b < p.batch; ++b) {
        const Tensor &k = ks[single ? size_t(b) : 0], &v = vs[single ? size_t(b) : 0];
        int64_t all = sequence(k.dims, layout);
        NEED(k.dims[0] == (single ? 1 : p.batch) && v.dims[0] == k.dims[0] && sequence(v.dims, layout) == all && k.dims.back() == ks[0].dims.back() && v.dims.back() == vs[0].dims.back(),
             "the shapes of query, key %s and value %s do not fit", text(k.dims).c_str(), text(v.dims).c_str());
        int64_t n = lengths.empty() ? all : lengths[lengths.size() == 1 ? 0 : size_t(b)];
        p.keys.push_back(one_length(c) ? std::min(n, all) : n);
        need_lengths("keys", {p.keys.back()}, all);
        if (!single) continue;
        p.k.samples.emplace_back(k_at, k.dims), p.v.samples.emplace_back(v_at, v.dims);
        k_at += k.numel(), v_at += v.numel();
    }
}

// Keys and values of all samples, before those of each.
inline void problem_of_prefix(const Call& c, const std::string& layout, Problem& p) {
    const char *k = passed(c, {"keySharedPrefix"}), *v = passed(c, {"valueSharedPrefix"});
    NEED((k != nullptr) == (v != nullptr), "keySharedPrefix and valueSharedPrefix go together");
    if (k == nullptr) return;
    NEED(!is_packed(layout) && p.k.block == 0, "keySharedPrefix does not go with packed sequences or pages");
    const Tensor &first = c.tensor(k), &second = c.tensor(v);
    for (const Tensor* t : {&first, &second}) need_heads("keySharedPrefix", *t, layout, p.kv_heads);
    int64_t all = sequence(first.dims, layout);
    p.first_k = where(first, layout, p.kv_heads), p.first_v = where(second, layout, p.kv_heads);
    NEED(first.dims[0] == 1 && second.dims[0] == 1 && sequence(second.dims, layout) == all && p.first_k.size == p.k.size && p.first_v.size == p.v.size,
         "keySharedPrefix has shape %s, valueSharedPrefix %s", text(first.dims).c_str(), text(second.dims).c_str());
    auto used = integers(c, {"actualSharedPrefixLen"});
    NEED(used.size() <= 1, "actualSharedPrefixLen has %zu elements, expected 1", used.size());
    p.prefix = used.empty() ? all : used[0];
    need_lengths("the shared prefix", {p.prefix}, all);
}

// `ks` and `vs` have one element for each number.
inline Problem problem(const Call& c, const std::vector<Tensor>& ks, const std::vector<Tensor>& vs) {
    NEED(!ks.empty() && !vs.empty(), "key and value must not be empty");
    NEED(known(layouts(c)), "inputLayout is \"%s\", which is none", layouts(c).c_str());
    const std::string layout = layout_in(c);
    Problem p;
    p.heads = c.integer("numHeads");
    p.kv_heads = c.integer("numKeyValueHeads") > 0 ? c.integer("numKeyValueHeads") : p.heads;
    NEED(p.heads > 0 && p.heads % p.kv_heads == 0, "numHeads is %lld, numKeyValueHeads %lld", wide(p.heads), wide(p.kv_heads));
    problem_of_queries(c, c.tensor("query"), layout, p);
    if (passed(c, kTable) != nullptr) {
        NEED(ks.size() == 1 && vs.size() == 1, "pages are one tensor of keys and one of values");
        problem_in_pages(c, ks[0], vs[0], p);
    } else {
        problem_of_keys(c, ks, vs, layout, p);
    }
    problem_of_prefix(c, layout, p);
    p.size = p.q.size, p.value_size = p.v.size;
    NEED(p.k.size == p.size, "query has heads of %lld, key of %lld", wide(p.size), wide(p.k.size));
    return p;
}

}  // namespace emu::inference
