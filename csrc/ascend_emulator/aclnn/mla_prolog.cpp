// What precedes attention with latent keys and values: both projections with their norms, the rotation, and the write into
// the caches. Computed where tokens and weights are BF16; scales of quantization are refused.
//
// The formulas are not in the facts; they are the ones of the function's public description:
//   query = split(rms_norm(x @ weightDq) @ weightUqQr): the first D of a head go through weightUk, the rest are rotated;
//   x @ weightDkvKr: the first Hckv are normed into kvCacheRef, the rest are rotated into krCacheRef.
// The rotation takes halves of even and odd places: y = x * cos + turned(x) * sin, pairs (2i, 2i + 1) first put into halves.
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

bool by_slots(const Call& c) {
    std::string mode = given(c, "cacheModeOptional") ? c.string("cacheModeOptional") : "PA_BSND";
    return mode == "PA_BSND" || mode == "BNSD" || mode.empty();
}

void plan_prolog(Plan& p) {
    p.require(p.tensor("weightUk").rank() == 3 && p.tensor("weightDq").rank() == 2, "weightUk has shape %s, weightDq %s",
              text(p.tensor("weightUk").dims).c_str(), text(p.tensor("weightDq").dims).c_str());
    Sizes s = sizes(p);
    for (const char* name : {"tokenX", "weightDq", "weightUqQr", "weightDkvKr", "queryOut", "kvCacheRef"})
        p.require(p.tensor(name).dtype == ACL_BF16, "%s has dtype %s; the emulator computes BF16", name, dtype_name(p.tensor(name).dtype));
    for (const char* name : {"dequantScaleXOptional", "dequantScaleWDqOptional", "dequantScaleWUqQrOptional", "dequantScaleWDkvKrOptional",
                             "quantScaleCkvOptional", "quantScaleCkrOptional", "smoothScalesCqOptional", "kNopeClipAlphaOptional", "actualSeqLenOptional",
                             "queryNormOutOptional", "dequantScaleQNormOutOptional", "dequantScaleQNopeOutOptional", "queryNormOut", "dequantScaleQNormOut",
                             "dequantScaleQNopeOut"})
        p.require(!given(p, name), "%s is not computed by the emulator", name);
    for (const char* name : {"weightQuantMode", "kvCacheQuantMode", "queryQuantMode", "ckvkrRepoMode", "quantScaleRepoMode"})
        p.require(!has_parameter(p, name) || p.integer(name) == 0, "%s: the emulator computes 0", name);
    p.require(!has_parameter(p, "queryNormFlag") || !p.flag("queryNormFlag"), "queryNormFlag: the emulator computes false");
    p.require(by_slots(p), "cacheModeOptional is \"%s\"; the emulator computes PA_BSND", p.string("cacheModeOptional").c_str());
    p.shape("weightDq", {s.in, s.query});
    p.shape("weightUqQr", {s.query, s.heads * (s.nope + s.rope)});
    p.shape("weightDkvKr", {s.in, s.latent + s.rope});
    p.require(p.tensor("rmsnormGammaCq").numel() == s.query && p.tensor("rmsnormGammaCkv").numel() == s.latent, "the norms' gammas have %lld and %lld elements",
              wide(p.tensor("rmsnormGammaCq").numel()), wide(p.tensor("rmsnormGammaCkv").numel()));
    p.require(s.rope % 2 == 0, "ropeSin has an odd last size");
    for (const char* name : {"ropeSin", "ropeCos"}) p.require(p.tensor(name).numel() == s.tokens * s.rope, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    p.require(p.has(index_name(p)) && p.tensor(index_name(p)).numel() == s.tokens, "%s must name a slot for each of %lld tokens", index_name(p), wide(s.tokens));
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

void run_prolog(Run& r) {
    Sizes s = sizes(r);
    auto x = r.read<double>(r.tensor("tokenX"));
    auto sin = r.read<double>(r.tensor("ropeSin")), cos = r.read<double>(r.tensor("ropeCos"));
    auto down = product(x, r.read<double>(r.tensor("weightDq")), s.in, s.query);
    auto gamma = r.read<double>(r.tensor("rmsnormGammaCq"));
    for (int64_t t = 0; t < s.tokens; ++t) norm(down.data() + t * s.query, gamma, r.real("rmsnormEpsilonCq"));
    auto up = product(down, r.read<double>(r.tensor("weightUqQr")), s.query, s.heads * (s.nope + s.rope));
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
    r.write(r.tensor("queryOut"), query);
    r.write(r.tensor("queryRopeOut"), turned);
    auto latent = product(x, r.read<double>(r.tensor("weightDkvKr")), s.in, s.latent + s.rope);
    auto latent_gamma = r.read<double>(r.tensor("rmsnormGammaCkv"));
    auto slots = r.read<int64_t>(r.tensor(index_name(r)));
    auto kv = r.read<double>(r.tensor("kvCacheRef")), kr = r.read<double>(r.tensor("krCacheRef"));
    int64_t room = int64_t(kv.size()) / s.latent, rope_room = int64_t(kr.size()) / s.rope;
    for (int64_t t = 0; t < s.tokens; ++t) {
        int64_t slot = slots[size_t(t)];
        if (slot == -1) continue;  // a token that is not kept
        if (slot < 0 || slot >= room || slot >= rope_room) fault("%s holds %lld, the caches have %lld slots", index_name(r), wide(slot), wide(std::min(room, rope_room)));
        double* row = latent.data() + t * (s.latent + s.rope);
        norm(row, latent_gamma, r.real("rmsnormEpsilonCkv"));
        for (int64_t j = 0; j < s.latent; ++j) kv[size_t(slot * s.latent + j)] = row[j] * key_scale;
        Values part = rotated(row + s.latent, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope);
        std::copy(part.begin(), part.end(), kr.begin() + slot * s.rope);
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
