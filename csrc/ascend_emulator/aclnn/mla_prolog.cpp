// What precedes attention with latent keys and values: both projections with their norms, the rotation, and the write into
// the caches. Weights, tokens, caches and queries are BF16 or INT8.
//
// The formulas are not in the facts; they are the ones of the function's public description:
//   query = split(rms_norm(x @ weightDq) @ weightUqQr): the first D of a head go through weightUk, the rest are rotated;
//   x @ weightDkvKr: the first Hckv are normed into kvCacheRef, the rest are rotated into krCacheRef.
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

void plan_small(const Plan& p, const Sizes& s) {
    bool whole = is_small(p, "tokenX"), second = is_small(p, "weightUqQr");
    for (const char* name : {"tokenX", "weightDq", "weightUqQr", "weightDkvKr", "kvCacheRef", "krCacheRef"})
        p.require(is_small(p, name) || p.tensor(name).dtype == ACL_BF16, "%s has dtype %s; the emulator computes BF16 and INT8", name, dtype_name(p.tensor(name).dtype));
    p.require(is_small(p, "queryOut") || p.tensor("queryOut").dtype == ACL_BF16, "queryOut has dtype %s; the emulator computes BF16 and INT8", dtype_name(p.tensor("queryOut").dtype));
    for (const char* name : {"weightDq", "weightDkvKr"}) p.require(is_small(p, name) == whole, "%s has dtype %s beside tokenX", name, dtype_name(p.tensor(name).dtype));
    p.require(!whole || second, "weightUqQr must have dtype INT8 where tokenX has");
    plan_scale(p, "dequantScaleXOptional", whole, s.tokens, false);
    plan_scale(p, "dequantScaleWDqOptional", whole, s.query, false);
    plan_scale(p, "dequantScaleWDkvKrOptional", whole, s.latent + s.rope, false);
    plan_scale(p, "dequantScaleWUqQrOptional", second, s.heads * (s.nope + s.rope), false);
    if (p.has("smoothScalesCqOptional")) plan_scale(p, "smoothScalesCqOptional", second, s.query, true);
    plan_scale(p, "quantScaleCkvOptional", is_small(p, "kvCacheRef"), s.latent, true);
    plan_scale(p, "quantScaleCkrOptional", is_small(p, "krCacheRef"), s.rope, true);
    if (has_parameter(p, "weightQuantMode"))
        p.require(p.integer("weightQuantMode") == (whole ? 2 : second ? 1 : 0), "weightQuantMode is %lld, which the dtypes do not fit", wide(p.integer("weightQuantMode")));
    if (has_parameter(p, "kvCacheQuantMode")) {
        int64_t mode = p.integer("kvCacheQuantMode");
        p.require(mode >= 0 && mode <= 2, "kvCacheQuantMode is %lld; the emulator computes 0 (none), 1 (one scale) and 2 (a scale for each column)", wide(mode));
        p.require((mode > 0) == is_small(p, "kvCacheRef"), "kvCacheQuantMode is %lld, kvCacheRef has dtype %s", wide(mode), dtype_name(p.tensor("kvCacheRef").dtype));
        if (mode > 0) plan_scale(p, "quantScaleCkvOptional", true, mode == 1 ? 1 : s.latent, false);
    }
    if (has_parameter(p, "queryQuantMode"))
        p.require(p.integer("queryQuantMode") == int64_t(is_small(p, "queryOut")), "queryQuantMode is %lld, queryOut has dtype %s", wide(p.integer("queryQuantMode")), dtype_name(p.tensor("queryOut").dtype));
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

void plan_prolog(Plan& p) {
    p.require(p.tensor("weightUk").rank() == 3 && p.tensor("weightDq").rank() == 2, "weightUk has shape %s, weightDq %s",
              text(p.tensor("weightUk").dims).c_str(), text(p.tensor("weightDq").dims).c_str());
    Sizes s = sizes(p);
    plan_small(p, s);
    plan_results(p, s);
    for (const char* name : {"kNopeClipAlphaOptional", "actualSeqLenOptional"}) p.require(!given(p, name), "%s is not computed by the emulator", name);
    for (const char* name : {"ckvkrRepoMode", "quantScaleRepoMode"})
        p.require(!has_parameter(p, name) || p.integer(name) == 0, "%s: the emulator computes 0", name);
    p.require(in_order(p) || cache_mode(p) == "PA_BSND" || cache_mode(p) == "PA_NZ", "cacheModeOptional is \"%s\"; the emulator computes PA_BSND, PA_NZ and, without an index, BSND and TND",
              cache_mode(p).c_str());
    for (const char* name : {"kvCacheRef", "krCacheRef"})
        if (cache_mode(p) == "PA_NZ") {
            const Tensor& cache = p.tensor(name);
            p.require(cache.rank() == 4 && cache.dims[2] == 1 && cache.dims[1] > 0 && cache.dims[3] % run_of(cache) == 0, "%s has shape %s, expected (pages, places, 1, whole runs of 32 bytes)",
                      name, text(cache.dims).c_str());
        }
    p.shape("weightDq", {s.in, s.query});
    p.shape("weightUqQr", {s.query, s.heads * (s.nope + s.rope)});
    p.shape("weightDkvKr", {s.in, s.latent + s.rope});
    p.require(p.tensor("rmsnormGammaCq").numel() == s.query && p.tensor("rmsnormGammaCkv").numel() == s.latent, "the norms' gammas have %lld and %lld elements",
              wide(p.tensor("rmsnormGammaCq").numel()), wide(p.tensor("rmsnormGammaCkv").numel()));
    p.require(s.rope % 2 == 0, "ropeSin has an odd last size");
    for (const char* name : {"ropeSin", "ropeCos"}) p.require(p.tensor(name).numel() == s.tokens * s.rope, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    if (in_order(p))
        p.require(!p.has(index_name(p)) && p.tensor("kvCacheRef").numel() == s.tokens * s.latent && p.tensor("krCacheRef").numel() == s.tokens * s.rope,
                  "caches in the order of %lld tokens have shapes %s and %s", wide(s.tokens), text(p.tensor("kvCacheRef").dims).c_str(), text(p.tensor("krCacheRef").dims).c_str());
    else p.require(p.has(index_name(p)) && p.tensor(index_name(p)).numel() == s.tokens, "%s must name a slot for each of %lld tokens", index_name(p), wide(s.tokens));
    p.require(p.tensor("kvCacheRef").dims.back() == s.latent && p.tensor("krCacheRef").dims.back() == s.rope, "kvCacheRef has shape %s, krCacheRef %s",
              text(p.tensor("kvCacheRef").dims).c_str(), text(p.tensor("krCacheRef").dims).c_str());
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
    bool blocks = cache_mode(r) == "PA_NZ";
    Values kv_scale = numbers(r, "quantScaleCkvOptional"), kr_scale = numbers(r, "quantScaleCkrOptional");
    std::vector<int64_t> slots(size_t(s.tokens));
    if (in_order(r)) std::iota(slots.begin(), slots.end(), 0);
    else slots = r.read<int64_t>(r.tensor(index_name(r)));
    auto kv = r.read<double>(r.tensor("kvCacheRef")), kr = r.read<double>(r.tensor("krCacheRef"));
    int64_t room = int64_t(kv.size()) / s.latent, rope_room = int64_t(kr.size()) / s.rope;
    for (int64_t t = 0; t < s.tokens; ++t) {
        int64_t slot = slots[size_t(t)];
        if (slot == -1) continue;  // a token that is not kept
        if (slot < 0 || slot >= room || slot >= rope_room) fault("%s holds %lld, the caches have %lld slots", index_name(r), wide(slot), wide(std::min(room, rope_room)));
        double* row = latent.data() + t * (s.latent + s.rope);
        norm(row, latent_gamma, r.real("rmsnormEpsilonCkv"));
        for (int64_t j = 0; j < s.latent; ++j) row[j] *= key_scale;
        keep(kv, r.tensor("kvCacheRef"), blocks, slot, row, s.latent, kv_scale);
        Values part = rotated(row + s.latent, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope);
        keep(kr, r.tensor("krCacheRef"), blocks, slot, part.data(), s.rope, kr_scale);
    }
    r.write(r.tensor("kvCacheRef"), kv);
    r.write(r.tensor("krCacheRef"), kr);
}

}  // namespace

ACLNN(aclnnMlaProlog, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV2, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV3, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV2WeightNz, plan_prolog, run_prolog)
ACLNN(aclnnMlaPrologV3WeightNz, plan_prolog, run_prolog)
