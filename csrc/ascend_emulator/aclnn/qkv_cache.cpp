// Queries, keys and values of one product: norms and rotation of the first two, the write of the last two into pages.
//
// The facts have shapes and types; the meaning is that of the function's public description. Rows of qkv are the heads of
// queries, then of keys, then of values. y = x * cos + turned(x) * sin, turned takes halves. Pages are (block, width / c, row,
// c): the numbers of a row in pieces of c. Where a cache holds INT8 its numbers are x / scale + offset.
#include "optional.h"
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

struct Parts {
    int64_t tokens, size, heads[3];
    int64_t all() const { return heads[0] + heads[1] + heads[2]; }
};

Parts parts(const Call& c) {
    const auto &shape = c.ints("qkvSize"), &heads = c.ints("headNums");
    return {shape[0] * shape[1], shape[3], {heads[0], heads[1], heads[2]}};
}

struct Cached {
    const char *cache, *scale, *offset, *before;
    int which;
};
constexpr Cached kCaches[] = {{"kCache", "kScaleOptional", "kOffsetOptional", "kOutBeforeQuant", 1}, {"vCache", "vScaleOptional", "vOffsetOptional", "vOutBeforeQuant", 2}};

void plan_qkv(Plan& p) {
    const auto &shape = p.ints("qkvSize"), &heads = p.ints("headNums");
    p.require(shape.size() == 4 && heads.size() == 3, "qkvSize needs 4 elements and headNums 3");
    for (int64_t n : shape) p.require(n > 0 && n <= 1 << 20, "qkvSize holds %lld", wide(n));
    for (int64_t n : heads) p.require(n > 0 && n <= 1 << 20, "headNums holds %lld", wide(n));
    Parts s = parts(p);
    p.require(shape[2] == s.all() && s.size % 2 == 0, "qkvSize says %lld heads of %lld, headNums %lld", wide(shape[2]), wide(s.size), wide(s.all()));
    p.shape("qkv", {s.tokens, s.all() * s.size});
    for (const char* name : {"qGamma", "kGamma"}) p.shape(name, {s.size});
    for (const char* name : {"cos", "sin"}) p.shape(name, {s.tokens, s.size});
    p.require(p.has("index") && p.has("qOut") && p.has("kCache") && p.has("vCache"), "index, qOut, kCache and vCache are needed");
    p.shape("index", {s.tokens});
    p.shape("qOut", {s.tokens, s.heads[0] * s.size});
    const std::string mode = p.has("cacheModeOptional") ? p.string("cacheModeOptional") : "PA_NZ";
    p.require(mode == "PA_NZ" || mode.empty(), "cacheModeOptional is \"%s\", expected PA_NZ", mode.c_str());
    for (const char* name : {"qGamma", "kGamma", "cos", "sin", "qOut"}) p.same_dtype("qkv", name);
    if (p.has("qOutBeforeQuant")) p.shape("qOutBeforeQuant", {s.tokens, s.heads[0] * s.size});
    for (const Cached& c : kCaches) {
        const Dims& d = p.tensor(c.cache).dims;
        int64_t width = s.heads[c.which] * s.size;
        p.require(d[1] * d[3] == width, "%s has shape %s for rows of %lld", c.cache, text(d).c_str(), wide(width));
        bool bytes = p.tensor(c.cache).dtype == ACL_INT8;
        p.require(bytes || p.tensor(c.cache).dtype == p.tensor("qkv").dtype, "%s has dtype %s", c.cache, dtype_name(p.tensor(c.cache).dtype));
        p.require(bytes == p.has(c.scale), "%s belongs to a cache of INT8", c.scale);
        if (bytes) p.shape(c.scale, {s.heads[c.which], s.size});
        p.require(!p.has(c.offset) || bytes, "%s belongs to a cache of INT8", c.offset);
        if (p.has(c.offset)) p.shape(c.offset, {s.heads[c.which], s.size});
        if (p.has(c.before)) p.shape(c.before, {s.tokens, width});
    }
}

// The heads of one part, normed and turned where gamma is given.
Values part_of(const Run& r, const Parts& s, int which, const char* gamma_name) {
    auto x = r.read<double>(r.tensor("qkv")), cos = r.read<double>(r.tensor("cos")), sin = r.read<double>(r.tensor("sin"));
    Values gamma, out;
    if (gamma_name) gamma = r.read<double>(r.tensor(gamma_name));
    int64_t first = which == 0 ? 0 : which == 1 ? s.heads[0] : s.heads[0] + s.heads[1];
    for (int64_t t = 0; t < s.tokens; ++t)
        for (int64_t h = 0; h < s.heads[which]; ++h) {
            Values row(x.begin() + (t * s.all() + first + h) * s.size, x.begin() + (t * s.all() + first + h + 1) * s.size);
            double square = 0;
            for (double v : row) square += v * v;
            double factor = 1 / std::sqrt(square / double(s.size) + r.real("epsilon"));
            for (size_t d = 0; d < gamma.size(); ++d) row[d] *= factor * gamma[d];
            for (int64_t d = 0; d < s.size; ++d) {
                int64_t half = s.size / 2;
                double other = d < half ? -row[size_t(d + half)] : row[size_t(d - half)];
                out.push_back(gamma_name ? row[size_t(d)] * cos[size_t(t * s.size + d)] + other * sin[size_t(t * s.size + d)] : row[size_t(d)]);
            }
        }
    return out;
}

void run_qkv(Run& r) {
    Parts s = parts(r);
    Values q = part_of(r, s, 0, "qGamma");
    r.write(r.tensor("qOut"), q);
    if (r.has("qOutBeforeQuant")) r.write(r.tensor("qOutBeforeQuant"), q);
    auto slots = r.read<int64_t>(r.tensor("index"));
    for (const Cached& c : kCaches) {
        Values x = part_of(r, s, c.which, c.which == 1 ? "kGamma" : nullptr);
        if (r.has(c.before)) r.write(r.tensor(c.before), x);
        size_t width = size_t(s.heads[c.which] * s.size);
        if (r.has(c.scale)) {
            Values scale = r.read<double>(r.tensor(c.scale)), offset(width, 0);
            if (r.has(c.offset)) offset = r.read<double>(r.tensor(c.offset));
            for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] / scale[i % width] + offset[i % width];
            x = within(x, ACL_INT8);
        }
        const Dims& d = r.tensor(c.cache).dims;
        auto cache = r.read<double>(r.tensor(c.cache));
        for (int64_t t = 0; t < s.tokens; ++t) {
            int64_t slot = slots[size_t(t)];
            if (slot < 0) continue;  // a token that is not kept
            if (slot >= d[0] * d[2]) fault("index holds %lld, %s has %lld places", wide(slot), c.cache, wide(d[0] * d[2]));
            for (int64_t k = 0; k < int64_t(width); ++k)
                cache[size_t(((slot / d[2] * d[1] + k / d[3]) * d[2] + slot % d[2]) * d[3] + k % d[3])] = x[size_t(t) * width + size_t(k)];
        }
        r.write(r.tensor(c.cache), cache);
    }
}

// -- x1 @ x2 + bias in bytes, by a scale and an offset of the matrix unit ------------------------------------------------------
Tensor turned(Tensor t, bool flag) {
    if (flag) std::swap(t.dims[0], t.dims[1]), std::swap(t.strides[0], t.strides[1]);
    return t;
}

void plan_bytes(Plan& p) {
    Tensor a = turned(p.tensor("x1"), p.flag("transposeX1")), b = turned(p.tensor("x2"), p.flag("transposeX2"));
    p.require(a.dims[1] == b.dims[0], "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    p.shape("out", {a.dims[0], b.dims[1]});
    int64_t n = p.tensor("quantParam").numel();
    p.require(n == 1 || n >= b.dims[1], "quantParam has %lld elements, expected 1 or %lld", wide(n), wide(b.dims[1]));
    if (p.has("bias")) p.shape("bias", {b.dims[1]});
}

void run_bytes(Run& r) {
    Tensor a = turned(r.tensor("x1"), r.flag("transposeX1")), b = turned(r.tensor("x2"), r.flag("transposeX2"));
    auto x = r.read<double>(a), w = r.read<double>(b), scale = read_scale(r, r.tensor("quantParam"));
    auto bits = r.read<int64_t>(r.tensor("quantParam"));
    int64_t rows = a.dims[0], inner = a.dims[1], columns = b.dims[1];
    Values bias(size_t(columns), 0), y;
    if (r.has("bias")) bias = r.read<double>(r.tensor("bias"));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            double sum = bias[size_t(j)];
            for (int64_t k = 0; k < inner; ++k) sum += x[size_t(i * inner + k)] * w[size_t(k * columns + j)];
            size_t at = scale.size() == 1 ? 0 : size_t(j);
            int64_t offset = bits[at] >> 37 & 0x1FF;  // nine bits with a sign
            y.push_back(sum * scale[at] + double(offset >= 256 ? offset - 512 : offset));
        }
    r.write(r.tensor("out"), within(y, ACL_INT8));
}

}  // namespace

ACLNN(aclnnQkvRmsNormRopeCache, plan_qkv, run_qkv)
ACLNN(aclnnBatchMatmulQuant, plan_bytes, run_bytes)
