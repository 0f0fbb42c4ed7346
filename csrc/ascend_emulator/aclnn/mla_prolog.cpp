// What precedes attention with latent keys and values: both projections with their norms, the rotation, and the write into
// the caches. Weights, tokens, caches and queries are BF16 or INT8.
//
// The formulas are not in the facts; they are the ones of the function's public description:
//   query = split(rms_norm(x @ weightDq) @ weightUqQr): the first D of a head go through weightUk, the rest are rotated;
//   x @ weightDkvKr: the first Hckv are normed into kvCacheRef, the rest are rotated into krCacheRef.
// Caches: slots by token (PA_BSND), in runs of 32 bytes (PA_NZ), by page (PA_BLK_..: the index names, for each page that a
// sequence fills, the page; sequences of packed tokens end where actualSeqLen says), or in the order of the tokens (BSND, TND).
// kvCacheQuantMode 3 keeps a row of bytes for each token: the normed part by tiles, each over its largest number times
// kNopeClipAlpha; then the turned part in BF16; then the tiles' scales in FLOAT.
// The rotation takes halves of even and odd places: y = x * cos + turned(x) * sin, pairs (2i, 2i + 1) first put into halves.
#include <numeric>

#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

const char* index_name(const Call& c) { return has_parameter(c, "cacheIndexOptional") ? "cacheIndexOptional" : "cacheIndex"; }

struct Sizes {
    int64_t tokens, in, query, heads, nope, rope, latent;
};

Sizes sizes(const Call& c) {
    const Dims &x = c.tensor("tokenX").dims, &up = c.tensor("weightUk").dims;
    Sizes s{x.product() / std::max<int64_t>(x.back(), 1), x.back(), c.tensor("weightDq").dims[1], up[0], up[1], 0, up[2]};
    s.rope = c.tensor("ropeSin").dims.back();
    return s;
}

std::string cache_mode(const Call& c) {
    std::string mode = given(c, "cacheModeOptional") ? c.string("cacheModeOptional") : "";
    return mode.empty() || mode == "BNSD" ? "PA_BSND" : mode;
}

bool by_page(const Call& c) { return cache_mode(c) == "PA_BLK_BSND" || cache_mode(c) == "PA_BLK_NZ"; }
bool in_runs(const Call& c) { return cache_mode(c) == "PA_NZ" || cache_mode(c) == "PA_BLK_NZ"; }
bool in_tiles(const Call& c) { return has_parameter(c, "kvCacheQuantMode") && c.integer("kvCacheQuantMode") == 3; }

// Weights of INT8: those of the query's second product alone, whose operand is then stretched to INT8 by row (after
// smoothing), or all, with tokens of INT8 that have a scale each. Caches of INT8 hold round(x * scale), the scale one number
// or one for each column. The facts name dtypes and scales only, this is how they are commonly described.
bool is_small(const Call& c, const char* name) { return c.tensor(name).dtype == ACL_INT8; }

void plan_scale(const Plan& p, const char* name, bool needed, int64_t count, bool one) {
    if (!p.has(name)) return p.require(!needed, "%s is needed with INT8", name);
    int64_t n = p.tensor(name).numel();
    p.require(needed, "%s belongs to INT8", name);
    p.require(n == count || (one && n == 1), "%s has shape %s, expected %lld elements", name, text(p.tensor(name).dims).c_str(), wide(count));
}

void plan_query_mode(const Plan& p) {
    if (has_parameter(p, "queryQuantMode"))
        p.require(p.integer("queryQuantMode") == int64_t(is_small(p, "queryOut")), "queryQuantMode is %lld, queryOut has dtype %s", wide(p.integer("queryQuantMode")), dtype_name(p.tensor("queryOut").dtype));
}

int64_t tile_bytes(const Call& c, const Sizes& s) { return s.latent + 2 * s.rope + 4 * (s.latent / c.integer("tileSize")); }

void plan_tiles(const Plan& p, const Sizes& s) {
    int64_t tile = p.integer("tileSize");
    p.require(tile > 0 && s.latent % tile == 0, "tileSize is %lld for rows of %lld", wide(tile), wide(s.latent));
    for (const char* name : {"ckvkrRepoMode", "quantScaleRepoMode"}) p.require(p.integer(name) == 1, "%s is %lld; tiles, turned parts and scales stand in one row: 1", name, wide(p.integer(name)));
    const Tensor& cache = p.tensor("kvCacheRef");
    p.require(cache.dtype == ACL_INT8 || cache.dtype == ACL_FLOAT8_E4M3FN || cache.dtype == ACL_HIFLOAT8, "kvCacheRef has dtype %s, expected one of a byte", dtype_name(cache.dtype));
    p.require(cache.dims.back() == tile_bytes(p, s), "kvCacheRef has shape %s, a row has %lld bytes", text(cache.dims).c_str(), wide(tile_bytes(p, s)));
    p.require(p.tensor("krCacheRef").numel() == 0, "krCacheRef has shape %s; it is empty where ckvkrRepoMode is 1", text(p.tensor("krCacheRef").dims).c_str());
    if (given(p, "kNopeClipAlphaOptional")) p.require(p.tensor("kNopeClipAlphaOptional").numel() == 1, "kNopeClipAlphaOptional must have one element");
    plan_query_mode(p);
}

void plan_small(const Plan& p, const Sizes& s) {
    bool whole = is_small(p, "tokenX"), second = is_small(p, "weightUqQr");
    for (const char* name : {"tokenX", "weightDq", "weightUqQr", "weightDkvKr", "kvCacheRef", "krCacheRef"})
        p.require((in_tiles(p) && name[0] == 'k') || is_small(p, name) || p.tensor(name).dtype == ACL_BF16, "%s has dtype %s; products are computed of BF16 and INT8, of small floats the layout of the scales is not documented", name, dtype_name(p.tensor(name).dtype));
    p.require(is_small(p, "queryOut") || p.tensor("queryOut").dtype == ACL_BF16, "queryOut has dtype %s, expected BF16 or INT8: of small floats the layout of the scales is not documented", dtype_name(p.tensor("queryOut").dtype));
    for (const char* name : {"weightDq", "weightDkvKr"}) p.require(is_small(p, name) == whole, "%s has dtype %s beside tokenX", name, dtype_name(p.tensor(name).dtype));
    p.require(!whole || second, "weightUqQr must have dtype INT8 where tokenX has");
    plan_scale(p, "dequantScaleXOptional", whole, s.tokens, false);
    plan_scale(p, "dequantScaleWDqOptional", whole, s.query, false);
    plan_scale(p, "dequantScaleWDkvKrOptional", whole, s.latent + s.rope, false);
    plan_scale(p, "dequantScaleWUqQrOptional", second, s.heads * (s.nope + s.rope), false);
    if (p.has("smoothScalesCqOptional")) plan_scale(p, "smoothScalesCqOptional", second, s.query, true);
    plan_scale(p, "quantScaleCkvOptional", is_small(p, "kvCacheRef") && !in_tiles(p), s.latent, true);
    plan_scale(p, "quantScaleCkrOptional", is_small(p, "krCacheRef") && !in_tiles(p), s.rope, true);
    if (has_parameter(p, "weightQuantMode"))
        p.require(p.integer("weightQuantMode") == (whole ? 2 : second ? 1 : 0), "weightQuantMode is %lld, which the dtypes do not fit", wide(p.integer("weightQuantMode")));
    if (has_parameter(p, "kvCacheQuantMode")) {
        int64_t mode = p.integer("kvCacheQuantMode");
        p.require(mode >= 0 && mode <= 3, "kvCacheQuantMode is %lld, expected 0 (none), 1 (one scale), 2 (a scale for each column) or 3 (one for each tile)", wide(mode));
        if (mode == 3) return plan_tiles(p, s);
        p.require((mode > 0) == is_small(p, "kvCacheRef"), "kvCacheQuantMode is %lld, kvCacheRef has dtype %s", wide(mode), dtype_name(p.tensor("kvCacheRef").dtype));
        if (mode > 0) plan_scale(p, "quantScaleCkvOptional", true, mode == 1 ? 1 : s.latent, false);
    }
    plan_query_mode(p);
}

// Some results are called ...Optional in one version and not in another.
std::string result_name(const Call& c, const char* name) { return has_parameter(c, name) ? name : std::string(name) + "Optional"; }

bool asks_for_norm(const Call& c) {
    return has_parameter(c, "queryNormFlag") ? c.flag("queryNormFlag") : given(c, result_name(c, "queryNormOut").c_str());
}

// Queries of INT8 have a scale for each head of a token. The normed rows before the query's second product are a result
// where they are asked for, in the numbers of that product, with a scale for each token where these are INT8.
void plan_results(const Plan& p, const Sizes& s) {
    auto needed = [&](const char* plain, int64_t count) {
        std::string name = result_name(p, plain);
        p.require(given(p, name.c_str()) && p.tensor(name.c_str()).numel() == count, "%s must have %lld elements", name.c_str(), wide(count));
    };
    if (is_small(p, "queryOut")) needed("dequantScaleQNopeOut", s.tokens * s.heads);
    if (!asks_for_norm(p)) return;
    needed("queryNormOut", s.tokens * s.query);
    int64_t dtype = p.tensor(result_name(p, "queryNormOut").c_str()).dtype;
    p.require(dtype == p.tensor("weightUqQr").dtype, "queryNormOut has dtype %s, weightUqQr %s", dtype_name(int(dtype)), dtype_name(p.tensor("weightUqQr").dtype));
    if (is_small(p, "weightUqQr")) needed("dequantScaleQNormOut", s.tokens);
}

// Caches that are no pages hold the tokens in their order.
bool in_order(const Call& c) { return has_parameter(c, "cacheIndexOptional") && (cache_mode(c) == "BSND" || cache_mode(c) == "TND"); }

// In pages of the matrix unit's blocks the columns stand in runs of 32 bytes, the places of a page beside each other.
int64_t run_of(const Tensor& cache) { return 32 / int64_t(size_of(cache.dtype)); }

void plan_caches(const Plan& p, const Sizes& s) {
    const Tensor &kv = p.tensor("kvCacheRef"), &kr = p.tensor("krCacheRef");
    p.require(in_order(p) || by_page(p) || cache_mode(p) == "PA_BSND" || cache_mode(p) == "PA_NZ",
              "cacheModeOptional is \"%s\"; there are PA_BSND, PA_NZ, PA_BLK_BSND, PA_BLK_NZ and, without an index, BSND and TND", cache_mode(p).c_str());
    p.require(by_page(p) || !given(p, "actualSeqLenOptional"), "actualSeqLenOptional belongs to PA_BLK_BSND and PA_BLK_NZ");
    p.require(!in_tiles(p) || !in_runs(p), "rows of tiles, turned parts and scales do not stand in runs: cacheModeOptional is \"%s\"", cache_mode(p).c_str());
    int64_t width = in_tiles(p) ? tile_bytes(p, s) : s.latent;
    p.require(kv.dims.back() == width && (in_tiles(p) || kr.dims.back() == s.rope), "kvCacheRef has shape %s, krCacheRef %s", text(kv.dims).c_str(), text(kr.dims).c_str());
    for (const Tensor* cache : {&kv, &kr})
        if ((in_runs(p) || by_page(p)) && cache->numel() > 0)
            p.require(cache->rank() == 4 && cache->dims[2] == 1 && cache->dims[1] == kv.dims[1] && (!in_runs(p) || cache->dims[3] % run_of(*cache) == 0),
                      "a cache has shape %s, expected (pages, places, 1, %s)", text(cache->dims).c_str(), in_runs(p) ? "whole runs of 32 bytes" : "a row");
    if (in_order(p))
        return p.require(!p.has(index_name(p)) && kv.numel() == s.tokens * width && (in_tiles(p) || kr.numel() == s.tokens * s.rope), "caches in the order of %lld tokens have shapes %s and %s",
                         wide(s.tokens), text(kv.dims).c_str(), text(kr.dims).c_str());
    p.require(p.has(index_name(p)), "%s is needed where caches are in pages", index_name(p));
    int64_t have = p.tensor(index_name(p)).numel();
    if (!by_page(p)) return p.require(have == s.tokens, "%s must name a slot for each of %lld tokens", index_name(p), wide(s.tokens));
    const Dims& x = p.tensor("tokenX").dims;
    p.require(x.n == 3 || given(p, "actualSeqLenOptional"), "actualSeqLenOptional is needed where packed tokens go into pages");
    if (x.n == 3 && !given(p, "actualSeqLenOptional")) {
        int64_t pages = (x[1] + kv.dims[1] - 1) / kv.dims[1];
        p.require(have == x[0] * pages, "%s must name %lld pages for each of %lld sequences", index_name(p), wide(pages), wide(x[0]));
    }
}

void plan_prolog(Plan& p) {
    p.require(p.tensor("weightUk").rank() == 3 && p.tensor("weightDq").rank() == 2, "weightUk has shape %s, weightDq %s",
              text(p.tensor("weightUk").dims).c_str(), text(p.tensor("weightDq").dims).c_str());
    need_elements(p, {"weightDq", "weightUqQr", "weightUk", "weightDkvKr", "kvCacheRef"});
    if (!in_tiles(p)) need_elements(p, {"krCacheRef"});
    Sizes s = sizes(p);
    plan_small(p, s);
    plan_results(p, s);
    p.require(!given(p, "kNopeClipAlphaOptional") || in_tiles(p), "kNopeClipAlphaOptional belongs to kvCacheQuantMode 3");
    for (const char* name : {"ckvkrRepoMode", "quantScaleRepoMode"})
        if (has_parameter(p, name)) p.require(p.integer(name) == int64_t(in_tiles(p)), "%s is %lld; it is 1 where kvCacheQuantMode is 3, and 0 elsewhere", name, wide(p.integer(name)));
    plan_caches(p, s);
    p.shape("weightDq", {s.in, s.query});
    p.shape("weightUqQr", {s.query, s.heads * (s.nope + s.rope)});
    p.shape("weightDkvKr", {s.in, s.latent + s.rope});
    p.require(p.tensor("rmsnormGammaCq").numel() == s.query && p.tensor("rmsnormGammaCkv").numel() == s.latent, "the norms' gammas have %lld and %lld elements",
              wide(p.tensor("rmsnormGammaCq").numel()), wide(p.tensor("rmsnormGammaCkv").numel()));
    p.require(s.rope % 2 == 0, "ropeSin has an odd last size");
    for (const char* name : {"ropeSin", "ropeCos"}) p.require(p.tensor(name).numel() == s.tokens * s.rope, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    p.require(p.tensor("queryOut").numel() == s.tokens * s.heads * s.latent && p.tensor("queryOut").dims.back() == s.latent, "queryOut has shape %s",
              text(p.tensor("queryOut").dims).c_str());
    p.require(p.tensor("queryRopeOut").numel() == s.tokens * s.heads * s.rope && p.tensor("queryRopeOut").dims.back() == s.rope, "queryRopeOut has shape %s",
              text(p.tensor("queryRopeOut").dims).c_str());
}

Values product(const Values& x, const Values& w, int64_t inner, int64_t columns) {
    Values y(x.size() / size_t(inner) * size_t(columns), 0);
    for (int64_t i = 0; i < int64_t(x.size()) / inner; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < columns; ++j) y[size_t(i * columns + j)] += x[size_t(i * inner + k)] * w[size_t(k * columns + j)];
    return y;
}

void norm(double* row, const Values& gamma, double epsilon) {
    double square = 0;
    for (size_t k = 0; k < gamma.size(); ++k) square += row[k] * row[k];
    double factor = 1 / std::sqrt(square / double(gamma.size()) + epsilon);
    for (size_t k = 0; k < gamma.size(); ++k) row[k] *= factor * gamma[k];
}

Values rotated(const double* x, const double* sin, const double* cos, int64_t n) {
    Values apart, out;
    for (int64_t k = 0; k < n; k += 2) apart.push_back(x[k]);
    for (int64_t k = 1; k < n; k += 2) apart.push_back(x[k]);
    for (int64_t k = 0; k < n; ++k) {
        double turned = k < n / 2 ? -apart[size_t(k + n / 2)] : apart[size_t(k - n / 2)];
        out.push_back(apart[size_t(k)] * cos[k] + turned * sin[k]);
    }
    return out;
}

Values numbers(const Run& r, const char* name) { return r.has(name) ? r.read<double>(r.tensor(name)) : Values(); }

// Rows times their scales, columns times theirs.
void rescale(Values& y, const Values& rows, const Values& columns) {
    for (size_t i = 0; i < y.size() && !columns.empty(); ++i) y[i] *= columns[i % columns.size()] * (rows.empty() ? 1 : rows[i / columns.size()]);
}

// Rows stretched to the range of INT8; their scales.
Values stretch(Values& x, int64_t width, const Values& smooth) {
    for (size_t i = 0; i < x.size() && !smooth.empty(); ++i) x[i] *= smooth[smooth.size() == 1 ? 0 : i % size_t(width)];
    Values scales;
    for (size_t row = 0; row < x.size(); row += size_t(width)) {
        double most = 0;
        for (int64_t k = 0; k < width; ++k) most = std::fmax(most, std::fabs(x[row + size_t(k)]));
        scales.push_back(most > 0 ? most / 127 : 1);
        for (int64_t k = 0; k < width; ++k) x[row + size_t(k)] = std::nearbyint(x[row + size_t(k)] / scales.back());
    }
    return scales;
}

// A row into its slot of a cache.
void keep(Values& held, const Tensor& cache, bool blocks, int64_t slot, const double* row, int64_t n, const Values& scale) {
    int64_t places = blocks ? cache.dims[1] : 1, run = blocks ? run_of(cache) : n;
    double* page = held.data() + slot / places * places * n;
    for (int64_t j = 0; j < n; ++j) {
        double value = scale.empty() ? row[j] : std::nearbyint(row[j] * scale[scale.size() == 1 ? 0 : size_t(j)]);
        if (!scale.empty()) value = std::fmin(std::fmax(value, -128.0), 127.0);
        page[(j / run * places + slot % places) * run + j % run] = value;
    }
}

// The slot of each token, -1 for those that are not kept.
std::vector<int64_t> slots_of(const Run& r, const Sizes& s) {
    std::vector<int64_t> slots(size_t(s.tokens));
    if (in_order(r)) {
        std::iota(slots.begin(), slots.end(), 0);
        return slots;
    }
    auto index = r.read<int64_t>(r.tensor(index_name(r)));
    if (!by_page(r)) return index;
    const Dims& x = r.tensor("tokenX").dims;
    int64_t places = r.tensor("kvCacheRef").dims[1], from = 0;
    std::vector<int64_t> ends;
    if (given(r, "actualSeqLenOptional")) ends = r.read<int64_t>(r.tensor("actualSeqLenOptional"));
    else
        for (int64_t b = 0; b < x[0]; ++b) ends.push_back((b + 1) * x[1]);
    size_t page = 0;
    for (int64_t end : ends) {
        if (end < from || end > s.tokens) fault("actualSeqLenOptional: a sequence ends at %lld of %lld tokens, behind %lld", wide(end), wide(s.tokens), wide(from));
        for (int64_t t = from; t < end; ++t) {
            size_t at = page + size_t((t - from) / places);
            if (at >= index.size()) fault("%s has %zu pages, the sequences fill more", index_name(r), index.size());
            slots[size_t(t)] = index[at] < 0 ? -1 : index[at] * places + (t - from) % places;
        }
        page += size_t((end - from + places - 1) / places);
        from = end;
    }
    std::fill(slots.begin() + from, slots.end(), -1);
    return slots;
}

// The bytes of a row of tiles.
std::vector<double> tiled(const Run& r, const Sizes& s, const double* latent, const Values& turned) {
    int64_t tile = r.integer("tileSize");
    int dtype = r.tensor("kvCacheRef").dtype;
    double alpha = has_parameter(r, "kNopeClipAlpha") ? r.real("kNopeClipAlpha") : given(r, "kNopeClipAlphaOptional") ? r.read<double>(r.tensor("kNopeClipAlphaOptional"))[0] : 1;
    Values bytes, scales;
    for (int64_t from = 0; from < s.latent; from += tile) {
        double most = 0;
        for (int64_t k = from; k < from + tile; ++k) most = std::fmax(most, std::fabs(latent[k]));
        double scale = most * alpha / (dtype == ACL_INT8 ? 127 : narrow_largest(dtype));
        scales.push_back(scale);
        for (int64_t k = from; k < from + tile; ++k) {
            double x = scale > 0 ? latent[k] / scale : 0;
            bytes.push_back(dtype == ACL_INT8 ? std::fmin(std::fmax(std::nearbyint(x), -127.0), 127.0) : double(int8_t(narrow_code(dtype, x))));
        }
    }
    auto add = [&](auto number, double x, int as) {
        store<double>(reinterpret_cast<unsigned char*>(&number), as, x);
        for (size_t i = 0; i < sizeof number; ++i) bytes.push_back(double(int8_t(reinterpret_cast<unsigned char*>(&number)[i])));
    };
    for (double x : turned) add(uint16_t{}, x, ACL_BF16);
    for (double x : scales) add(float{}, x, ACL_FLOAT);
    return bytes;
}

void run_prolog(Run& r) {
    Sizes s = sizes(r);
    auto x = r.read<double>(r.tensor("tokenX"));
    Values token_scale = numbers(r, "dequantScaleXOptional");
    auto sin = r.read<double>(r.tensor("ropeSin")), cos = r.read<double>(r.tensor("ropeCos"));
    auto down = product(x, r.read<double>(r.tensor("weightDq")), s.in, s.query);
    rescale(down, token_scale, numbers(r, "dequantScaleWDqOptional"));
    auto gamma = r.read<double>(r.tensor("rmsnormGammaCq"));
    for (int64_t t = 0; t < s.tokens; ++t) norm(down.data() + t * s.query, gamma, r.real("rmsnormEpsilonCq"));
    Values stretched;
    if (is_small(r, "weightUqQr")) stretched = stretch(down, s.query, numbers(r, "smoothScalesCqOptional"));
    if (asks_for_norm(r)) {
        r.write(r.tensor(result_name(r, "queryNormOut").c_str()), down);
        if (!stretched.empty()) r.write(r.tensor(result_name(r, "dequantScaleQNormOut").c_str()), stretched);
    }
    auto up = product(down, r.read<double>(r.tensor("weightUqQr")), s.query, s.heads * (s.nope + s.rope));
    rescale(up, stretched, numbers(r, "dequantScaleWUqQrOptional"));
    auto keys = r.read<double>(r.tensor("weightUk"));
    double query_scale = has_parameter(r, "qcQrScale") ? r.real("qcQrScale") : 1, key_scale = has_parameter(r, "kcScale") ? r.real("kcScale") : 1;
    Values query, turned;
    for (int64_t t = 0; t < s.tokens; ++t)
        for (int64_t h = 0; h < s.heads; ++h) {
            double* head = up.data() + (t * s.heads + h) * (s.nope + s.rope);
            for (int64_t k = 0; k < s.nope + s.rope; ++k) head[k] *= query_scale;
            for (int64_t j = 0; j < s.latent; ++j) {
                double sum = 0;
                for (int64_t k = 0; k < s.nope; ++k) sum += head[k] * keys[size_t((h * s.nope + k) * s.latent + j)];
                query.push_back(sum);
            }
            Values part = rotated(head + s.nope, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope);
            turned.insert(turned.end(), part.begin(), part.end());
        }
    if (is_small(r, "queryOut")) r.write(r.tensor(result_name(r, "dequantScaleQNopeOut").c_str()), stretch(query, s.latent, {}));
    r.write(r.tensor("queryOut"), query);
    r.write(r.tensor("queryRopeOut"), turned);
    auto latent = product(x, r.read<double>(r.tensor("weightDkvKr")), s.in, s.latent + s.rope);
    rescale(latent, token_scale, numbers(r, "dequantScaleWDkvKrOptional"));
    auto latent_gamma = r.read<double>(r.tensor("rmsnormGammaCkv"));
    bool blocks = in_runs(r);
    Values kv_scale = numbers(r, "quantScaleCkvOptional"), kr_scale = numbers(r, "quantScaleCkrOptional");
    std::vector<int64_t> slots = slots_of(r, s);
    Tensor cache = r.tensor("kvCacheRef");
    if (in_tiles(r)) cache.dtype = ACL_INT8;
    auto kv = r.read<double>(cache), kr = r.read<double>(r.tensor("krCacheRef"));
    int64_t room = int64_t(kv.size()) / cache.dims.back(), rope_room = in_tiles(r) ? room : int64_t(kr.size()) / s.rope;
    for (int64_t t = 0; t < s.tokens; ++t) {
        int64_t slot = slots[size_t(t)];
        if (slot == -1) continue;  // a token that is not kept
        if (slot < 0 || slot >= room || slot >= rope_room) fault("%s holds %lld, the caches have %lld slots", index_name(r), wide(slot), wide(std::min(room, rope_room)));
        double* row = latent.data() + t * (s.latent + s.rope);
        norm(row, latent_gamma, r.real("rmsnormEpsilonCkv"));
        for (int64_t j = 0; j < s.latent; ++j) row[j] *= key_scale;
        if (in_tiles(r)) {
            Values bytes = tiled(r, s, row, rotated(row + s.latent, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope));
            keep(kv, cache, false, slot, bytes.data(), int64_t(bytes.size()), {});
            continue;
        }
        keep(kv, r.tensor("kvCacheRef"), blocks, slot, row, s.latent, kv_scale);
        Values part = rotated(row + s.latent, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope);
        keep(kr, r.tensor("krCacheRef"), blocks, slot, part.data(), s.rope, kr_scale);
    }
    r.write(cache, kv);
    r.write(r.tensor("krCacheRef"), kr);
}

}  // namespace

ACLNN(aclnnMlaProlog, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV2, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV3, plan_prolog, run_prolog, NARROW)
ACLNN(aclnnMlaPrologV2WeightNz, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV3WeightNz, plan_prolog, run_prolog, NARROW)
