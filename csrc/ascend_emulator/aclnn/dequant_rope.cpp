// Queries, keys and values of a whole product: scaled back, rotated, and the last two written into caches of INT8.
//
// The facts have dtypes and ranks; the formulas are those of the function's public description. Columns of x are the heads of
// queries, keys and values, in the sizes of sizeSplits. A sum of INT32 is x * weightScale * activationScale, bias before it
// where it is INT32 and after it otherwise. y = x * cos + turned(x) * sin, turned takes halves; values are not rotated.
// Caches hold round(x / scale + offset). Contiguous caches have a row of places for each batch, which indices says the first
// of; in pages indices names the place of each token.
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

struct Split {
    int64_t batch, length, size, columns[3];
    int64_t tokens() const { return batch * length; }
    int64_t all() const { return columns[0] + columns[1] + columns[2]; }
};

Split split(const Call& c) {
    const Dims& x = c.tensor("x").dims;
    const auto& sizes = c.ints("sizeSplits");
    return {x[0], x.n == 3 ? x[1] : 1, c.tensor("cos").dims.back(), {sizes[0], sizes[1], sizes[2]}};
}

bool in_pages(const Call& c) { return c.has("cacheModeOptional") && c.string("cacheModeOptional") == "page"; }

struct Cached {
    const char *cache, *scale, *offset, *out;
    int which;
};
constexpr Cached kCaches[] = {{"kCacheRef", "scaleK", "offsetKOptional", "kOut", 1}, {"vCacheRef", "scaleV", "offsetVOptional", "vOut", 2}};

void plan_words(const Plan& p) {
    auto need = [&](const char* name, std::initializer_list<const char*> words) {
        if (!p.has(name) || p.string(name).empty()) return;
        for (const char* word : words)
            if (p.string(name) == word) return;
        p.require(false, "%s is \"%s\", expected %s", name, p.string(name).c_str(), *words.begin());
    };
    need("quantModeOptional", {"static"});
    need("layoutOptional", {"BSND"});
    need("cacheModeOptional", {"contiguous", "page"});
}

void plan_factors(const Plan& p, const Split& s) {
    bool whole = p.tensor("x").dtype == ACL_INT32;
    p.require(whole == p.has("weightScaleOptional"), "weightScaleOptional belongs to an x of INT32");
    auto need = [&](const char* name, int64_t n) {
        if (p.has(name)) p.require(whole && p.tensor(name).numel() == n, "%s has shape %s beside x %s", name, text(p.tensor(name).dims).c_str(), text(p.tensor("x").dims).c_str());
    };
    need("weightScaleOptional", s.all());
    need("activationScaleOptional", s.tokens());
    need("biasOptional", s.all());
}

void plan_rope(Plan& p) {
    plan_words(p);
    p.require(p.ints("sizeSplits").size() == 3, "sizeSplits needs 3 elements, it has %zu", p.ints("sizeSplits").size());
    Split s = split(p);
    p.require(s.size > 0 && s.size % 2 == 0, "cos has shape %s", text(p.tensor("cos").dims).c_str());
    for (int64_t n : s.columns) p.require(n > 0 && n <= p.tensor("x").dims.back() && n % s.size == 0, "sizeSplits holds %lld, heads have %lld", wide(n), wide(s.size));
    p.require(s.all() == p.tensor("x").dims.back(), "sizeSplits makes %lld, x has shape %s", wide(s.all()), text(p.tensor("x").dims).c_str());
    for (const char* name : {"cos", "sin"}) p.require(p.tensor(name).numel() == s.tokens() * s.size && p.tensor(name).dims.back() == s.size, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    plan_factors(p, s);
    int64_t slots = in_pages(p) ? s.tokens() : s.batch;
    p.require(p.tensor("indices").numel() == slots, "indices has shape %s, expected %lld elements", text(p.tensor("indices").dims).c_str(), wide(slots));
    auto heads = [&](const char* name, int64_t columns) {
        const Dims& d = p.tensor(name).dims;
        p.require(p.tensor(name).numel() == s.tokens() * columns && d.back() == s.size, "%s has shape %s", name, text(d).c_str());
        p.require(p.tensor(name).dtype == p.tensor("cos").dtype, "%s has dtype %s, cos %s", name, dtype_name(p.tensor(name).dtype), dtype_name(p.tensor("cos").dtype));
    };
    heads("qOut", s.columns[0]);
    for (const Cached& c : kCaches) {
        int64_t columns = s.columns[c.which];
        const Dims& d = p.tensor(c.cache).dims;
        bool rows = d.n == 4 ? d[2] * d[3] == columns && d[3] == s.size : d.n == 3 && d[2] == columns;
        if (in_pages(p) && d.n == 2) rows = d[1] == columns;
        p.require(rows && (in_pages(p) || d[0] >= s.batch), "%s has shape %s for rows of %lld", c.cache, text(d).c_str(), wide(columns));
        for (const char* name : {c.scale, c.offset})
            if (p.has(name)) p.require(p.tensor(name).numel() == columns, "%s has shape %s, expected %lld elements", name, text(p.tensor(name).dims).c_str(), wide(columns));
        if (p.flag("kvOutput")) {
            if (!p.has(c.out)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null: kvOutput asks for it", c.out);
            heads(c.out, columns);
        }
    }
}

Values scaled_back(const Run& r, const Split& s) {
    auto x = r.read<double>(r.tensor("x"));
    if (!r.has("weightScaleOptional")) return x;
    auto part = [&](const char* name, double otherwise, int64_t n) { return r.has(name) ? r.read<double>(r.tensor(name)) : Values(size_t(n), otherwise); };
    Values columns = part("weightScaleOptional", 1, s.all()), rows = part("activationScaleOptional", 1, s.tokens()), bias = part("biasOptional", 0, s.all());
    bool whole = r.has("biasOptional") && r.tensor("biasOptional").dtype == ACL_INT32;
    size_t width = size_t(s.all());
    for (size_t i = 0; i < x.size(); ++i) {
        double factor = columns[i % width] * rows[i / width], added = bias[i % width];
        x[i] = whole ? (x[i] + added) * factor : x[i] * factor + added;
    }
    return x;
}

void keep(const Run& r, const Split& s, const Cached& c, Values x) {
    size_t width = size_t(s.columns[c.which]);
    Values scale = r.read<double>(r.tensor(c.scale)), offset(width, 0), cache = r.read<double>(r.tensor(c.cache));
    if (r.has(c.offset)) offset = r.read<double>(r.tensor(c.offset));
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] / scale[i % width] + offset[i % width];
    x = within(x, ACL_INT8);
    auto indices = r.read<int64_t>(r.tensor("indices"));
    const Dims& d = r.tensor(c.cache).dims;
    for (int64_t t = 0; t < s.tokens(); ++t) {
        int64_t slot = in_pages(r) ? indices[size_t(t)] : indices[size_t(t / s.length)];
        if (slot < 0) continue;  // a token that is not kept
        if (!in_pages(r)) slot += t % s.length;
        int64_t room = in_pages(r) ? d.product() / int64_t(width) : d[1];
        if (slot >= room) fault("indices reaches place %lld, %s has %lld", wide(slot), c.cache, wide(room));
        if (!in_pages(r)) slot += t / s.length * d[1];
        std::copy_n(x.begin() + t * int64_t(width), width, cache.begin() + slot * int64_t(width));
    }
    r.write(r.tensor(c.cache), cache);
}

void run_rope(Run& r) {
    Split s = split(r);
    Values x = scaled_back(r, s), cos = r.read<double>(r.tensor("cos")), sin = r.read<double>(r.tensor("sin")), parts[3];
    int64_t half = s.size / 2, first = 0;
    for (int which = 0; which < 3; first += s.columns[which++])
        for (int64_t t = 0; t < s.tokens(); ++t) {
            const double* row = x.data() + t * s.all() + first;
            for (int64_t j = 0; j < s.columns[which]; ++j) {
                int64_t d = j % s.size, at = t * s.size + d;
                double other = d < half ? -row[j + half] : row[j - half];
                parts[which].push_back(which == 2 ? row[j] : row[j] * cos[size_t(at)] + other * sin[size_t(at)]);
            }
        }
    r.write(r.tensor("qOut"), parts[0]);
    for (const Cached& c : kCaches) {
        if (r.flag("kvOutput")) r.write(r.tensor(c.out), parts[c.which]);
        keep(r, s, c, parts[c.which]);
    }
}

}  // namespace

ACLNN(aclnnDequantRopeQuantKvcache, plan_rope, run_rope)
