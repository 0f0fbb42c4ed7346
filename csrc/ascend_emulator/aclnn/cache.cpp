// Caches of keys and values in pages, written and read by slots; rotary embeddings by position; steps of decoding.
//
// The facts give shapes and dtypes only; slots and both layouts are as the functions are commonly described. A slot is
// page * size of a page + place in the page; a negative slot is left out.
// Pages are (pages, places, heads, size), cacheMode "Norm", or "PA_NZ": (pages, columns / width, places, width), where a
// column is an element of all heads of a token.
#include <cmath>
#include <numeric>

#include "moving.h"
#include "norm.h"
#include "optional.h"
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;
using Places = std::vector<int64_t>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// The bytes of a tensor: moving does not ask what they mean.
template <class F>
void by_bits(const Tensor& t, F f) {
    by_category(category(t.dtype), f);
}

bool in_blocks(const Call& c, const char* name) { return given(c, name) && c.string(name) == "PA_NZ"; }

void plan_mode(const Plan& p, const char* name) {
    if (!p.has(name)) return;
    const std::string& mode = p.string(name);
    p.require(mode.empty() || mode == "Norm" || mode == "PA_NZ", "%s is \"%s\", expected Norm or PA_NZ", name, mode.c_str());
}

// Where the parts of a token stand in a cache: runs of `width` elements, `step` apart.
struct Pages {
    int64_t many, places, row, width;

    Pages(const Dims& c, bool blocks) : many(c[0]), places(blocks ? c[2] : c[1]), row(blocks ? c[1] * c[3] : c[2] * c[3]), width(blocks ? c[3] : row) {}
    int64_t at(int64_t slot, int64_t column) const {
        return slot / places * places * row + (column / width * places + slot % places) * width + column % width;
    }
};

// -- tokens (.., heads, size) into pages -------------------------------------------------------------------------------
// Keys (batch, length, heads, size) go to a cache whose pages hold one head: of each sample and head the last
// compressLens tokens before seqLens stand in a row from the slot of the two. The facts have ranks only; this is how a
// cache with a window for each head is commonly described.
bool in_windows(const Call& c, const char* from) { return c.tensor(from).rank() == 4; }

void plan_windows(const Plan& p, const char* from, const char* to, bool blocks) {
    const Dims &x = p.tensor(from).dims, &c = p.tensor(to).dims;
    p.require(!blocks && c.n == 4 && c[1] > 0 && c[2] == 1 && c[3] == x[3], "%s has shape %s, %s %s", from, text(x).c_str(), to, text(c).c_str());
    p.same_dtype(from, to);
    auto count = [&](const char* name, int64_t n) {
        p.require(p.has(name) && p.tensor(name).numel() == n, "%s must have %lld elements", name, wide(n));
    };
    for (const char* name : {"slotMapping", "compressLensOptional"}) count(name, x[0] * x[2]);
    count("seqLensOptional", x[0]);
    p.require(!p.has("compressSeqOffsetOptional"), "compressSeqOffsetOptional is not computed by the emulator: the documents state no formula for it");
}

void run_windows(const Run& r, const char* from, const char* to) {
    const Tensor &x = r.tensor(from), &cache = r.tensor(to);
    const Dims& d = x.dims;
    auto slots = r.read<int64_t>(r.tensor("slotMapping")), kept = r.read<int64_t>(r.tensor("compressLensOptional"));
    auto lengths = r.read<int64_t>(r.tensor("seqLensOptional"));
    int64_t places = cache.dims[0] * cache.dims[1];
    by_bits(x, [&](auto zero) {
        using T = decltype(zero);
        auto values = r.read<T>(x), held = r.read<T>(cache);
        for (int64_t i = 0; i < int64_t(slots.size()); ++i) {
            int64_t b = i / d[2], h = i % d[2], n = kept[size_t(i)], end = lengths[size_t(b)], slot = slots[size_t(i)];
            if (slot < 0) continue;
            if (end < 0 || end > d[1]) fault("seqLensOptional holds %lld, %s has length %lld", wide(end), from, wide(d[1]));
            if (n < 0 || n > end || slot > places - n) fault("compressLensOptional holds %lld of %lld tokens, for slot %lld of %lld", wide(n), wide(end), wide(slot), wide(places));
            for (int64_t t = 0; t < n; ++t)
                std::copy_n(values.begin() + ((b * d[1] + end - n + t) * d[2] + h) * d[3], d[3], held.begin() + (slot + t) * d[3]);
        }
        r.write(cache, held);
    });
}

void plan_scatter(const Plan& p, const char* from, const char* to, bool blocks) {
    const Dims &x = p.tensor(from).dims, &c = p.tensor(to).dims;
    if (in_windows(p, from)) return plan_windows(p, from, to, blocks);
    bool fits = x.n == 3 && c.n == 4 && (blocks ? c[1] * c[3] == x[1] * x[2] : c[2] == x[1] && c[3] == x[2]);
    p.require(fits, "%s has shape %s, %s %s", from, text(x).c_str(), to, text(c).c_str());
    p.shape("slotMapping", {x[0]});
    p.same_dtype(from, to);
    for (const char* name : {"compressLensOptional", "compressSeqOffsetOptional", "seqLensOptional"})
        p.require(!given(p, name), "%s belongs to keys of 4 dimensions", name);
}

void scatter(const Run& r, const char* from, const char* to, bool blocks) {
    if (in_windows(r, from)) return run_windows(r, from, to);
    const Tensor &x = r.tensor(from), &cache = r.tensor(to);
    auto slots = r.read<int64_t>(r.tensor("slotMapping"));
    Pages pages(cache.dims, blocks);
    by_bits(x, [&](auto zero) {
        using T = decltype(zero);
        auto values = r.read<T>(x), held = r.read<T>(cache);
        for (size_t i = 0; i < slots.size(); ++i) {
            if (slots[i] < 0) continue;
            int64_t slot = checked_index(slots[i], pages.many * pages.places, "slotMapping");
            for (int64_t c = 0; c < pages.row; c += pages.width)
                std::copy_n(values.begin() + int64_t(i) * pages.row + c, pages.width, held.begin() + pages.at(slot, c));
        }
        r.write(cache, held);
    });
}

// The same of keys with a factor for each head. The facts have ranks only: pages are (places, heads, size), or with the
// layout BNSD (heads, places, size), and a factor stands where its head does, in pages whose last size is 1.
struct Layout {
    Dims page;
    bool heads_first;

    explicit Layout(const Call& c) : page(c.tensor("keyCacheRef").dims), heads_first(given(c, "cacheLayoutOptional") && c.string("cacheLayoutOptional") == "BNSD") {}
    int64_t places() const { return page[heads_first ? 2 : 1]; }
    int64_t heads() const { return page[heads_first ? 1 : 2]; }
    int64_t at(int64_t slot, int64_t head) const {
        int64_t first = slot / places(), place = slot % places();
        return heads_first ? (first * heads() + head) * places() + place : (first * places() + place) * heads() + head;
    }
};

void plan_scaled_scatter(Plan& p) {
    if (p.has("cacheLayoutOptional")) {
        const std::string& name = p.string("cacheLayoutOptional");
        p.require(name.empty() || name == "BSND" || name == "BNSD", "cacheLayoutOptional is \"%s\", expected BSND or BNSD", name.c_str());
    }
    Layout l(p);
    const Dims& x = p.tensor("key").dims;
    p.shape("slotMapping", {x[0]});
    for (auto [from, to] : {std::pair{"key", "keyCacheRef"}, {"value", "valueCacheRef"}}) {
        const Dims &d = p.tensor(from).dims, &c = p.tensor(to).dims;
        bool fits = d[0] == x[0] && d[1] == l.heads() && c[0] == l.page[0] && c[1] == l.page[1] && c[2] == l.page[2] && c[3] == d[2];
        p.require(fits, "%s has shape %s, %s %s", from, text(d).c_str(), to, text(c).c_str());
    }
    p.shape("keyScale", {x[0], x[1]});
    p.shape("keyScaleCacheRef", {l.page[0], l.page[1], l.page[2], 1});
}

void run_scaled_scatter(Run& r) {
    Layout l(r);
    auto slots = r.read<int64_t>(r.tensor("slotMapping"));
    for (auto [from, to] : {std::pair{"key", "keyCacheRef"}, {"value", "valueCacheRef"}, {"keyScale", "keyScaleCacheRef"}}) {
        auto values = r.read<double>(r.tensor(from)), held = r.read<double>(r.tensor(to));
        int64_t size = r.tensor(to).dims[3], heads = l.heads();
        for (size_t i = 0; i < slots.size(); ++i) {
            if (slots[i] < 0) continue;
            int64_t slot = checked_index(slots[i], l.page[0] * l.places(), "slotMapping");
            for (int64_t h = 0; h < heads; ++h)
                std::copy_n(values.begin() + (int64_t(i) * heads + h) * size, size, held.begin() + l.at(slot, h) * size);
        }
        r.write(r.tensor(to), held);
    }
}

// -- and back: the tokens of every sequence, one behind the other --------------------------------------------------------
void plan_gather(Plan& p) {
    const Dims& t = p.tensor("blockTables").dims;
    plan_mode(p, "cacheMode");
    need_elements(p, {"keyCache", "valueCache"});
    int64_t lengths = p.tensor("seqLens").numel();
    p.require(lengths == t[0] + (p.flag("isSeqLensCumsum") ? 1 : 0), "seqLens has %lld elements for %lld sequences",
              wide(lengths), wide(t[0]));
    for (auto [cache, out] : {std::pair{"keyCache", "keyRef"}, {"valueCache", "valueRef"}}) {
        const Dims &c = p.tensor(cache).dims, &x = p.tensor(out).dims;
        bool fits = x.n >= 2 && (in_blocks(p, "cacheMode") ? x.product() == x[0] * c[1] * c[3] : x.n == 3 && x[1] == c[2] && x[2] == c[3]);
        p.require(fits, "%s has shape %s, %s %s", cache, text(c).c_str(), out, text(x).c_str());
    }
    if (p.has("seqOffsetOptional")) p.shape("seqOffsetOptional", {t[0]});
}

void run_gather(Run& r) {
    const Dims& t = r.tensor("blockTables").dims;
    auto table = r.read<int64_t>(r.tensor("blockTables")), lengths = r.read<int64_t>(r.tensor("seqLens"));
    if (r.flag("isSeqLensCumsum")) {
        for (size_t i = 0; i + 1 < lengths.size(); ++i) lengths[i] = lengths[i + 1] - lengths[i];
        lengths.pop_back();
    }
    Places offsets(lengths.size(), 0);
    if (r.has("seqOffsetOptional")) offsets = r.read<int64_t>(r.tensor("seqOffsetOptional"));
    for (auto [from, to] : {std::pair{"keyCache", "keyRef"}, {"valueCache", "valueRef"}}) {
        const Tensor &cache = r.tensor(from), &out = r.tensor(to);
        Pages pages(cache.dims, in_blocks(r, "cacheMode"));
        int64_t block = pages.places, at = 0;
        by_bits(cache, [&](auto zero) {
            using T = decltype(zero);
            auto held = r.read<T>(cache), y = r.read<T>(out);
            for (size_t b = 0; b < lengths.size(); ++b)
                for (int64_t i = 0; i < lengths[b]; ++i, ++at) {
                    int64_t place = i + offsets[b];
                    int64_t page = table[size_t(int64_t(b) * t[1] + checked_index(place / block, t[1], "a page of a sequence"))];
                    page = checked_index(page, cache.dims[0], "blockTables");
                    if (at >= out.dims[0]) fault("%s has %lld rows, the sequences have more", to, wide(out.dims[0]));
                    for (int64_t c = 0; c < pages.row; c += pages.width)
                        std::copy_n(held.begin() + pages.at(page * block + place % block, c), pages.width, y.begin() + at * pages.row + c);
                }
            r.write(out, y);
        });
    }
}

// -- quantized updates: self[b, .., index[b] + i, ..] = round(update / scale + zero) along an axis -------------------------
// An index of two columns gives b, too.
void plan_quant_scatter(Plan& p) {
    const Dims &x = p.tensor("selfRef").dims, &u = p.tensor("updates").dims;
    int64_t axis = p.axis("axis", x.n), quant = p.axis("quantAxis", x.n);
    need_bytes(p, "selfRef");
    p.require(u.n == x.n && axis > 0 && u[0] <= x[0], "updates has shape %s, selfRef %s, axis %lld", text(u).c_str(),
              text(x).c_str(), wide(axis));
    for (int i = 1; i < x.n; ++i)
        p.require(i == axis ? u[i] <= x[i] : u[i] == x[i], "updates has shape %s, selfRef %s", text(u).c_str(), text(x).c_str());
    p.shape("indices", p.tensor("indices").rank() == 2 ? Dims{u[0], 2} : Dims{u[0]});
    p.require(quant == x.n - 1, "quantAxis is %lld; expected the last", wide(p.integer("quantAxis")));
    for (const char* name : {"quantScales", "quantZeroPoints"})
        if (p.has(name))
            p.require(p.tensor(name).numel() == x.back(), "%s has shape %s, expected %lld elements", name,
                      text(p.tensor(name).dims).c_str(), wide(x.back()));
    p.require(p.integer("reduction") == 1, "reduction is %lld, expected 1 (update)", wide(p.integer("reduction")));
}

void run_quant_scatter(Run& r) {
    const Dims &x = r.tensor("selfRef").dims, &u = r.tensor("updates").dims;
    int axis = int(wrap(r.integer("axis"), x.n));
    auto held = r.read<double>(r.tensor("selfRef")), y = r.read<double>(r.tensor("updates"));
    auto at = r.read<int64_t>(r.tensor("indices"));
    auto scale = r.read<double>(r.tensor("quantScales"));
    Values zero(scale.size(), 0);
    if (r.has("quantZeroPoints")) zero = r.read<double>(r.tensor("quantZeroPoints"));
    for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] / scale[i % scale.size()] + zero[i % scale.size()];
    y = within(y, r.tensor("selfRef").dtype, given(r, "roundMode") ? r.string("roundMode") : "rint");
    bool pairs = r.tensor("indices").rank() == 2;
    each_place(u, [&](int64_t i, const Dims& place) {
        Dims to = place;
        size_t row = size_t(place[0]);
        if (pairs) to[0] = checked_index(at[2 * row], x[0], "indices");
        to[axis] = checked_index(to[axis] + at[pairs ? 2 * row + 1 : row], x[axis], "indices");
        held[size_t(position(x, to))] = y[size_t(i)];
    });
    r.write(r.tensor("selfRef"), held);
}

// A list of tensors, one for each sample: var[b][.., index[b] + i, ..] = updates[b]; a sample whose mask is 0 stays.
void plan_list(Plan& p) {
    const auto& list = p.tensors("varRef");
    const Dims& u = p.tensor("updates").dims;
    p.require(!list.empty() && int64_t(list.size()) == u[0], "varRef has %zu tensors, updates shape %s", list.size(),
              text(u).c_str());
    int64_t axis = p.axis(p.integer("axis"), list[0].rank(), "axis");
    for (const Tensor& t : list) {
        p.require(t.rank() + 1 == u.n && t.dtype == p.tensor("updates").dtype, "a tensor of varRef has shape %s, updates %s",
                  text(t.dims).c_str(), text(u).c_str());
        for (int i = 0; i < t.rank(); ++i)
            p.require(i == axis ? u[i + 1] <= t.dims[i] : u[i + 1] == t.dims[i], "a tensor of varRef has shape %s, updates %s",
                      text(t.dims).c_str(), text(u).c_str());
    }
    const Dims& at = p.tensor("indice").dims;
    p.require(at == Dims({u[0]}) || at == Dims({u[0], 2}), "indice has shape %s for %lld samples", text(at).c_str(), wide(u[0]));
    if (p.has("maskOptional")) p.shape("maskOptional", {u[0]});
    p.require(!p.has("reduceOptional") || p.string("reduceOptional") == "update", "reduceOptional is \"%s\", expected update",
              p.has("reduceOptional") ? p.string("reduceOptional").c_str() : "");
}

void run_list(Run& r) {
    const auto& list = r.tensors("varRef");
    const Dims& u = r.tensor("updates").dims;
    auto at = r.read<int64_t>(r.tensor("indice"));
    bool ranges = r.tensor("indice").rank() == 2;
    Places mask(list.size(), 1);
    if (r.has("maskOptional")) mask = r.read<int64_t>(r.tensor("maskOptional"));
    Dims one(u.v.data() + 1, uint64_t(u.n - 1));
    int axis = int(wrap(r.integer("axis"), one.n));
    by_category(category(r.tensor("updates").dtype), [&](auto zero) {
        using T = decltype(zero);
        auto values = r.read<T>(r.tensor("updates"));
        for (size_t b = 0; b < list.size(); ++b) {
            if (mask[b] == 0) continue;
            auto held = r.read<T>(list[b]);
            int64_t first = at[ranges ? 2 * b : b], count = ranges ? at[2 * b + 1] : one[axis];
            each_place(one, [&](int64_t i, const Dims& place) {
                if (place[axis] >= count) return;
                Dims to = place;
                to[axis] = checked_index(to[axis] + first, list[b].dims[axis], "indice");
                held[size_t(position(list[b].dims, to))] = values[size_t(int64_t(b) * one.product() + i)];
            });
            r.write(list[b], held);
        }
    });
}

// -- rotary embeddings -----------------------------------------------------------------------------------------------------
// A row of the cache is cosines, then sines, of half as many angles; they turn the first elements of each head.
// With positions of several kinds (time, height, width) mropeSection says how many angles, in turn, each kind gives; no
// parts, or parts of nothing, are one kind. The facts name the argument only, this is how it is commonly described.
std::vector<int64_t> kinds_of_angles(const Call& c) {
    std::vector<int64_t> parts = c.ints("mropeSection");
    bool none = std::all_of(parts.begin(), parts.end(), [](int64_t n) { return n == 0; });
    if (none) return {};
    for (int64_t n : parts)
        if (n < 0) refuse(ACLNN_ERR_PARAM_INVALID, "mropeSection holds %lld", wide(n));
    return parts;
}

// cacheMode 1 of the second version: the kinds take turns, angle by angle, each until it has as many as its part; the angles that
// are left belong to the first. The facts name the argument only, this is how rotations of three kinds are commonly interleaved.
std::vector<int64_t> kinds_in_turns(const std::vector<int64_t>& sections, int64_t angles) {
    std::vector<int64_t> kind(size_t(angles), 0);
    int64_t count = int64_t(sections.size());
    for (int64_t i = 0; i < angles && count > 0; ++i)
        if (i / count < sections[size_t(i % count)]) kind[size_t(i)] = i % count;
    return kind;
}

void plan_turns(const Plan& p) {
    int64_t mode = p.integer("cacheMode"), angles = p.tensor("cosSinCache").dims[1] / 2;
    p.require(mode == 0 || mode == 1, "cacheMode is %lld, expected 0 or 1", wide(mode));
    auto sections = kinds_of_angles(p);
    if (mode == 0 || sections.empty()) return;
    p.require(sections.size() == 3, "mropeSection has %zu parts, expected 3 for cacheMode 1", sections.size());
    auto kind = kinds_in_turns(sections, angles);
    for (int64_t k = 0; k < 3; ++k)
        p.require(std::count(kind.begin(), kind.end(), k) == sections[size_t(k)], "mropeSection gives kind %lld %lld of %lld angles, too many to take turns",
                  wide(k), wide(sections[size_t(k)]), wide(angles));
}

void plan_positions(Plan& p) {
    const Dims &q = p.tensor("queryIn").dims, &k = p.tensor("keyIn").dims, &c = p.tensor("cosSinCache").dims;
    int64_t head = p.integer("headSize");
    p.require(head > 0 && q[1] % head == 0 && k[1] % head == 0 && k[0] == q[0], "queryIn has shape %s, keyIn %s, headSize %lld",
              text(q).c_str(), text(k).c_str(), wide(head));
    p.require(c[1] % 2 == 0 && c[1] <= head, "cosSinCache has shape %s for heads of %lld", text(c).c_str(), wide(head));
    auto sections = kinds_of_angles(p);
    p.require(sections.empty() || std::accumulate(sections.begin(), sections.end(), int64_t(0)) == c[1] / 2,
              "mropeSection has %zu parts that do not sum to half of cosSinCache's rows, %lld", sections.size(), wide(c[1] / 2));
    p.shape("positions", sections.empty() ? Dims{q[0]} : Dims{int64_t(sections.size()), q[0]});
    p.same_shape("queryIn", "queryOut");
    p.same_shape("keyIn", "keyOut");
    for (const char* name : {"keyIn", "cosSinCache", "queryOut", "keyOut"}) p.same_dtype("queryIn", name);
}

void run_positions(Run& r, bool in_turns) {
    const Dims& c = r.tensor("cosSinCache").dims;
    auto cache = r.read<double>(r.tensor("cosSinCache"));
    auto at = r.read<int64_t>(r.tensor("positions"));
    int64_t head = r.integer("headSize"), half = c[1] / 2;
    bool halves = r.flag("isNeoxStyle");
    std::vector<int64_t> kind(size_t(half), 0);  // of each angle
    auto sections = kinds_of_angles(r);
    if (in_turns) kind = kinds_in_turns(sections, half);
    for (size_t k = 0, i = 0; k < sections.size() && !in_turns; ++k)
        for (int64_t n = 0; n < sections[k]; ++n) kind[i++] = int64_t(k);
    int64_t tokens = r.tensor("queryIn").dims[0];
    for (auto [from, to] : {std::pair{"queryIn", "queryOut"}, {"keyIn", "keyOut"}}) {
        auto x = r.read<double>(r.tensor(from)), y = x;
        int64_t width = r.tensor(from).dims[1];
        for (int64_t t = 0; t < tokens; ++t) {
            for (int64_t h = 0; h < width / head; ++h)
                for (int64_t i = 0; i < half; ++i) {
                    int64_t place = checked_index(at[size_t(kind[size_t(i)] * tokens + t)], c[0], "positions");
                    const double* row = cache.data() + place * c[1];
                    size_t start = size_t(t * width + h * head), a = start + size_t(halves ? i : 2 * i);
                    size_t b = start + size_t(halves ? i + half : 2 * i + 1);
                    y[a] = x[a] * row[i] - x[b] * row[half + i];
                    y[b] = x[b] * row[i] + x[a] * row[half + i];
                }
        }
        r.write(r.tensor(to), y);
    }
}

// x * cos + (x @ rotate) * sin
void plan_matrix(Plan& p) {
    const Dims &x = p.tensor("x").dims, &c = p.tensor("cos").dims;
    Dims both;
    p.same_shape("cos", "sin");
    p.require(c.n == x.n && broadcast(c, x, &both) && both == x, "cos has shape %s, x %s", text(c).c_str(), text(x).c_str());
    p.shape("rotate", {x.back(), x.back()});
    p.same_shape("x", "out");
    int64_t mode = p.integer("mode");
    p.require(mode >= 0 && mode <= 3, "mode is %lld, expected 0 to 3", wide(mode));
}

void run_matrix(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto x = r.read<double>(r.tensor("x")), m = r.read<double>(r.tensor("rotate"));
    auto cos = r.read<double>(r.tensor("cos"), d), sin = r.read<double>(r.tensor("sin"), d);
    int64_t size = d.back();
    Values y(x.size());
    for (int64_t i = 0; i < int64_t(x.size()); ++i) {
        double turned = 0;
        for (int64_t k = 0; k < size; ++k) turned += x[size_t(i / size * size + k)] * m[size_t(k * size + i % size)];
        y[size_t(i)] = x[size_t(i)] * cos[size_t(i)] + turned * sin[size_t(i)];
    }
    r.write(r.tensor("out"), y);
}

// Elements [first, last) of each head are turned: halves (mode 0) or pairs (1).
void plan_partial(Plan& p) {
    const Dims &x = p.tensor("xRef").dims, &c = p.tensor("cos").dims;
    const auto& slice = p.ints("partialSlice");
    int64_t mode = p.integer("rotary_mode");
    p.require(slice.size() == 2 && slice[0] >= 0 && slice[0] < slice[1] && slice[1] <= x.back() && (slice[1] - slice[0]) % 2 == 0,
              "partialSlice is not an even part of [0, %lld)", wide(x.back()));
    p.require(mode == 0 || mode == 1, "rotary_mode is %lld; the emulator computes 0 (half) and 1 (interleave)", wide(mode));
    Dims part = x, both;
    part[part.n - 1] = slice[1] - slice[0];
    p.same_shape("cos", "sin");
    p.require(broadcast(c, part, &both) && both == part && c.back() == part.back(), "cos has shape %s, the part %s",
              text(c).c_str(), text(part).c_str());
    for (const char* name : {"cos", "sin"}) p.same_dtype("xRef", name);
}

void run_partial(Run& r) {
    const Dims& d = r.tensor("xRef").dims;
    const auto& slice = r.ints("partialSlice");
    Dims part = d;
    int64_t size = part[part.n - 1] = slice[1] - slice[0];
    auto x = r.read<double>(r.tensor("xRef")), y = x;
    auto cos = r.read<double>(r.tensor("cos"), part), sin = r.read<double>(r.tensor("sin"), part);
    bool pairs = r.integer("rotary_mode") == 1;
    for (int64_t row = 0; row < int64_t(x.size()) / d.back(); ++row)
        for (int64_t i = 0; i < size; ++i) {
            bool first = pairs ? i % 2 == 0 : i < size / 2;
            int64_t other = pairs ? (first ? i + 1 : i - 1) : (first ? i + size / 2 : i - size / 2);
            size_t at = size_t(row * d.back() + slice[0]), angle = size_t(row * size + i);
            y[at + size_t(i)] = x[at + size_t(i)] * cos[angle] + (first ? -1 : 1) * x[at + size_t(other)] * sin[angle];
        }
    r.write(r.tensor("xRef"), y);
}

// -- keys and values of latent attention: RMS norm of the first part, rotary embedding of the rest ------------------------
// Pairs come apart before they are turned as halves. The caches hold (.., places, ..) by slot. Modes: Norm has a cache for
// each sequence; PA (also PA_BNSD) has pages (pages, places, 1, size) and a slot for each token; with NZ the columns of a
// page stand in runs of 32 bytes, the places of a page beside each other; with BLK `index` has, for each page that a
// sequence fills, where it begins. INT8 caches hold round(x * scale + offset). The facts name modes and scales only, this
// is how they are commonly described.
struct Latent {
    bool pages, blocks, by_page;

    explicit Latent(const Call& c) {
        std::string mode = c.has("cacheModeOptional") ? c.string("cacheModeOptional") : "Norm";
        pages = mode.rfind("PA", 0) == 0;
        by_page = mode.rfind("PA_BLK", 0) == 0;
        blocks = mode == "PA_NZ" || mode == "PA_BLK_NZ";
    }
};

constexpr struct Part {
    const char *cache, *scale, *offset, *out;
} kTurned{"kCacheRef", "kRopeScaleOptional", "kRopeOffsetOptional", "kRopeOut"},
    kLatent{"ckvCacheRef", "cKvScaleOptional", "cKvOffsetOptional", "cKvOut"};

void plan_part(const Plan& p, const Part& part, int64_t size, const Latent& how) {
    const Tensor& cache = p.tensor(part.cache);
    const Dims& kv = p.tensor("kv").dims;
    p.require(cache.dims[3] == size, "%s has shape %s for rows of %lld", part.cache, text(cache.dims).c_str(), wide(size));
    if (how.pages)
        p.require(cache.dims[2] == 1 && cache.dims[1] > 0, "%s has shape %s, expected (pages, places, 1, %lld)", part.cache,
                  text(cache.dims).c_str(), wide(size));
    else
        p.require(cache.dims[0] == kv[0] && cache.dims[1] == 1, "%s has shape %s", part.cache, text(cache.dims).c_str());
    p.require(!how.blocks || size % (32 / int64_t(size_of(cache.dtype))) == 0, "%s: rows of %lld are no whole runs of 32 bytes",
              part.cache, wide(size));
    if (!p.has(part.scale)) {
        p.same_dtype("kv", part.cache);
        p.require(!p.has(part.offset), "%s belongs to %s", part.offset, part.scale);
    } else
        need_bytes(p, part.cache);
    for (const char* name : {part.scale, part.offset})
        if (p.has(name))
            p.require(p.tensor(name).numel() == size || p.tensor(name).numel() == 1, "%s has shape %s for rows of %lld", name,
                      text(p.tensor(name).dims).c_str(), wide(size));
    if (p.flag("isOutputKv")) p.shape(part.out, {kv[0], 1, kv[2], size});
}

void plan_latent(Plan& p) {
    const Dims& kv = p.tensor("kv").dims;
    const std::string mode = p.has("cacheModeOptional") ? p.string("cacheModeOptional") : "Norm";
    static const char* const known[] = {"Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"};
    p.require(std::any_of(std::begin(known), std::end(known), [&](const char* k) { return mode == k; }),
              "cacheModeOptional is \"%s\", expected Norm, PA, PA_BNSD, PA_NZ, PA_BLK_BNSD or PA_BLK_NZ", mode.c_str());
    int64_t latent = p.tensor("gamma").numel(), turned = kv[3] - latent;
    Latent how(p);
    p.require(kv[1] == 1 && turned > 0 && turned % 2 == 0, "kv has shape %s, gamma %lld elements", text(kv).c_str(), wide(latent));
    if (!p.has("sin")) refuse(ACLNN_ERR_PARAM_NULLPTR, "sin must not be null");
    for (const char* name : {"cos", "sin"}) p.shape(name, {kv[0], 1, kv[2], turned});
    plan_part(p, kTurned, turned, how);
    plan_part(p, kLatent, latent, how);
    need_elements(p, {"kCacheRef", "ckvCacheRef"});
    int64_t places = p.tensor("kCacheRef").dims[1];
    p.require(!how.pages || p.tensor("ckvCacheRef").dims[1] == places, "kCacheRef and ckvCacheRef have pages of one size");
    int64_t entries = how.by_page ? kv[0] * ((kv[2] + places - 1) / places) : kv[0] * kv[2];
    if (how.pages) p.require(p.tensor("index").numel() == entries, "index has shape %s, expected %lld", text(p.tensor("index").dims).c_str(), wide(entries));
    else p.shape("index", {kv[0], kv[2]});
}

// Rows (batch * tokens, size) into a cache.
void write_part(const Run& r, const Part& part, const Values& rows, int64_t size, const Latent& how) {
    const Tensor& cache = r.tensor(part.cache);
    Values held = r.read<double>(cache), values = rows;
    auto index = r.read<int64_t>(r.tensor("index"));
    int64_t tokens = r.tensor("kv").dims[2], places = how.pages ? cache.dims[1] : cache.dims[2];
    int64_t run = how.blocks ? 32 / int64_t(size_of(cache.dtype)) : size;
    int64_t room = how.pages ? cache.dims[0] * places : places, per = (tokens + places - 1) / places;
    if (r.has(part.scale)) {
        Values scale = r.read<double>(r.tensor(part.scale)), offset(1, 0);
        if (r.has(part.offset)) offset = r.read<double>(r.tensor(part.offset));
        for (size_t i = 0; i < values.size(); ++i) {
            size_t column = i % size_t(size);
            values[i] = values[i] * scale[scale.size() == 1 ? 0 : column] + offset[offset.size() == 1 ? 0 : column];
        }
        values = within(values, cache.dtype);
    }
    for (int64_t i = 0; i < int64_t(values.size()) / size; ++i) {
        int64_t b = i / tokens, t = i % tokens, given = index[size_t(how.by_page ? b * per + t / places : i)];
        if (given < 0) continue;
        int64_t slot = how.by_page ? given / places * places + t % places : given;
        slot = checked_index(slot, room, "index") + (how.pages ? 0 : b * places);
        int64_t page = slot / places * places * size, place = slot % places;
        for (int64_t c = 0; c < size; ++c)
            held[size_t(page + (c / run * places + place) * run + c % run)] = values[size_t(i * size + c)];
    }
    r.write(cache, held);
    if (r.flag("isOutputKv")) r.write(r.tensor(part.out), rows);
}

void run_latent(Run& r) {
    const Dims& d = r.tensor("kv").dims;
    auto x = r.read<double>(r.tensor("kv")), gamma = r.read<double>(r.tensor("gamma"));
    auto cos = r.read<double>(r.tensor("cos")), sin = r.read<double>(r.tensor("sin"));
    int64_t latent = int64_t(gamma.size()), turned = d[3] - latent, rows = d[0] * d[2];
    Values ks, cs;
    for (int64_t i = 0; i < rows; ++i) {
        const double* row = x.data() + i * d[3];
        double squares = 0;
        for (int64_t j = 0; j < latent; ++j) squares += row[j] * row[j];
        double inverse = inverse_root(squares / double(latent), r.real("epsilon"));
        for (int64_t j = 0; j < latent; ++j) cs.push_back(row[j] * inverse * gamma[size_t(j)]);
        for (int64_t j = 0; j < turned; ++j) {
            int64_t half = turned / 2;
            double mine = j < half ? row[latent + 2 * j] : row[latent + 2 * (j - half) + 1];
            double other = j < half ? -row[latent + 2 * j + 1] : row[latent + 2 * (j - half)];
            ks.push_back(mine * cos[size_t(i * turned + j)] + other * sin[size_t(i * turned + j)]);
        }
    }
    Latent how(r);
    write_part(r, kTurned, ks, turned, how);
    write_part(r, kLatent, cs, latent, how);
}

// -- one step of decoding: the sampled tokens become the next input, places move on -----------------------------------------
void plan_step(Plan& p) {
    int64_t queries = p.integer("numQueries"), all = p.integer("numSeqs"), block = p.integer("blockSize");
    p.require(queries > 0 && queries <= all && block > 0, "numQueries is %lld of numSeqs %lld, blockSize %lld", wide(queries),
              wide(all), wide(block));
    for (const char* name : {"inputTokens", "seqLens", "slotMapping"})
        p.require(p.tensor(name).numel() >= queries, "%s has shape %s for %lld queries", name, text(p.tensor(name).dims).c_str(),
                  wide(queries));
    p.require(p.tensor("sampledTokenIds").numel() == queries, "sampledTokenIds has shape %s",
              text(p.tensor("sampledTokenIds").dims).c_str());
    p.require(p.tensor("inputPositions").numel() >= queries && p.tensor("blockTables").dims[0] >= queries,
              "inputPositions has shape %s, blockTables %s", text(p.tensor("inputPositions").dims).c_str(),
              text(p.tensor("blockTables").dims).c_str());
}

void run_step(Run& r) {
    auto tokens = r.read<int64_t>(r.tensor("inputTokens")), sampled = r.read<int64_t>(r.tensor("sampledTokenIds"));
    auto at = r.read<int64_t>(r.tensor("inputPositions")), lengths = r.read<int64_t>(r.tensor("seqLens"));
    auto slots = r.read<int64_t>(r.tensor("slotMapping")), table = r.read<int64_t>(r.tensor("blockTables"));
    int64_t block = r.integer("blockSize"), per = r.tensor("blockTables").dims[1];
    for (int64_t i = 0; i < r.integer("numQueries"); ++i) {
        int64_t place = lengths[size_t(i)];
        tokens[size_t(i)] = sampled[size_t(i)];
        at[size_t(i)] = place;
        lengths[size_t(i)] = place + 1;
        int64_t page = table[size_t(i * per + checked_index(place / block, per, "a page of a sequence"))];
        slots[size_t(i)] = page * block + place % block;
    }
    r.write(r.tensor("inputTokens"), tokens);
    r.write(r.tensor("inputPositions"), at);
    r.write(r.tensor("seqLens"), lengths);
    r.write(r.tensor("slotMapping"), slots);
}

// The second version: a sequence has a token and those that were guessed behind it. The last accepted of the sampled tokens
// and the next guesses become the input; places move on by what was accepted and one. The facts have shapes only.
void plan_guessed(Plan& p) {
    int64_t all = p.integer("numSeqs"), block = p.integer("blockSize");
    p.require(all > 0 && p.integer("numQueries") == all && block > 0, "numQueries is %lld of numSeqs %lld, blockSize %lld", wide(p.integer("numQueries")), wide(all), wide(block));
    const Dims& guesses = p.tensor("specToken").dims;
    int64_t each = guesses[1] + 1;
    p.shape("specToken", {all, guesses[1]});
    for (const char* name : {"inputTokens", "sampledTokenIds"})
        p.require(p.tensor(name).numel() == all * each, "%s has shape %s for %lld sequences of %lld tokens", name, text(p.tensor(name).dims).c_str(), wide(all), wide(each));
    for (const char* name : {"inputPositions", "seqLens", "slotMapping"}) p.shape(name, {all * each});
    p.shape("acceptedNum", {all});
    p.require(p.tensor("blockTables").dims[0] >= all, "blockTables has shape %s", text(p.tensor("blockTables").dims).c_str());
}

void run_guessed(Run& r) {
    auto tokens = r.read<int64_t>(r.tensor("inputTokens")), sampled = r.read<int64_t>(r.tensor("sampledTokenIds")), guesses = r.read<int64_t>(r.tensor("specToken"));
    auto at = r.read<int64_t>(r.tensor("inputPositions")), lengths = r.read<int64_t>(r.tensor("seqLens")), slots = r.read<int64_t>(r.tensor("slotMapping"));
    auto table = r.read<int64_t>(r.tensor("blockTables")), accepted = r.read<int64_t>(r.tensor("acceptedNum"));
    int64_t each = r.tensor("specToken").dims[1] + 1, block = r.integer("blockSize"), per = r.tensor("blockTables").dims[1];
    for (int64_t i = 0; i < r.integer("numSeqs") * each; ++i) {
        int64_t row = i / each, last = checked_index(accepted[size_t(row)], each, "acceptedNum");
        tokens[size_t(i)] = i % each == 0 ? sampled[size_t(row * each + last)] : guesses[size_t(row * (each - 1) + i % each - 1)];
        int64_t place = at[size_t(i)] += last + 1;
        lengths[size_t(i)] = place + 1;
        int64_t page = table[size_t(row * per + checked_index(place < 0 ? -1 : place / block, per, "a page of a sequence"))];
        slots[size_t(i)] = page * block + place % block;
    }
    r.write(r.tensor("inputTokens"), tokens);
    r.write(r.tensor("inputPositions"), at);
    r.write(r.tensor("seqLens"), lengths);
    r.write(r.tensor("slotMapping"), slots);
}

}  // namespace

ACLNN(aclnnScatterPaKvCache,
      PLAN {
          plan_mode(p, "cacheModeOptional");
          const std::string mode = p.has("scatterModeOptional") ? p.string("scatterModeOptional") : "None";
          const char* known = in_windows(p, "key") ? "Alibi" : "None";
          p.require(mode == "None" || mode.empty() || mode == known, "scatterModeOptional is \"%s\"; the emulator computes %s (of Rope and Omni the documents do not state which keys are kept)", mode.c_str(), known);
          for (const char* name : {"stridesOptional", "offsetsOptional"})
              for (int64_t v : p.ints(name)) p.require(v == (name[0] == 's' ? 1 : 0), "%s holds %lld; the emulator computes strides of 1 and offsets of 0", name, wide(v));
          plan_scatter(p, "key", "keyCacheRef", in_blocks(p, "cacheModeOptional"));
          plan_scatter(p, "value", "valueCacheRef", in_blocks(p, "cacheModeOptional"));
      },
      RUN {
          scatter(r, "key", "keyCacheRef", in_blocks(r, "cacheModeOptional"));
          scatter(r, "value", "valueCacheRef", in_blocks(r, "cacheModeOptional"));
      },
      NARROW)
ACLNN(aclnnScatterPaCache,
      PLAN {
          plan_mode(p, "cacheMode");
          plan_scatter(p, "key", "keyCacheRef", in_blocks(p, "cacheMode"));
      },
      RUN { scatter(r, "key", "keyCacheRef", in_blocks(r, "cacheMode")); }, NARROW)
ACLNN(aclnnScatterPaKvCacheWithKScale, plan_scaled_scatter, run_scaled_scatter, NARROW)
ACLNN(aclnnGatherPaKvCache, plan_gather, run_gather, NARROW)
ACLNN(aclnnInplaceQuantScatter, plan_quant_scatter, run_quant_scatter)
ACLNN(aclnnInplaceQuantScatterV2,
      PLAN {
          const std::string& mode = p.string("roundMode");
          int dtype = p.tensor("selfRef").dtype;
          // Small floats are rounded to the nearest; of HIFLOAT8 the word is another.
          bool known = mode == "floor" || mode == "ceil" || mode == "trunc";
          p.require(mode == "rint" || (dtype == ACL_INT8 && known) || (dtype == ACL_HIFLOAT8 && mode == "round"), "roundMode is \"%s\" for %s", mode.c_str(),
                    dtype_name(dtype));
          plan_quant_scatter(p);
      },
      run_quant_scatter, NARROW)
ACLNN(aclnnScatterList, plan_list, run_list)
ACLNN(aclnnRopeWithSinCosCache, plan_positions, RUN { run_positions(r, false); })
ACLNN(aclnnRopeWithSinCosCacheV2,
      PLAN {
          plan_positions(p);
          plan_turns(p);
      },
      RUN { run_positions(r, r.integer("cacheMode") == 1); })
ACLNN(aclnnRotaryPositionEmbeddingV2, plan_matrix, run_matrix)
ACLNN(aclnnInplacePartialRotaryMul, plan_partial, run_partial)
ACLNN(aclnnKvRmsNormRopeCache, plan_latent, run_latent, NARROW)
ACLNN(aclnnKvRmsNormRopeCacheV2,
      PLAN {
          p.require(!p.has("vOptional"), "vOptional is not computed by the emulator: the documents state no formula for it");
          plan_latent(p);
      },
      run_latent, NARROW)
ACLNN(aclnnAdvanceStep, plan_step, run_step)
ACLNN(aclnnAdvanceStepV2, plan_guessed, run_guessed)
