// Keys of an indexer, quantized on their way into pages.
//
// The facts have dtypes, and the shapes of x (tokens, width) and of slotMapping (tokens). What is computed: a row times xScale
// becomes small floats, at slot page * places + place of a cache (pages, places, .., width); a negative slot is left out. Its
// scales stand at the same slot, as many as the cache of scales has room for: powers of two for each 32 numbers
// (FLOAT8_E8M0), in pairs where there is one more, or the largest number of an equal part over the type's largest (FLOAT),
// rounded up to a power of two where roundScale is set. The dtypes say which; the numbers of quantMode are not in the facts.
#include "microscaled.h"

using namespace emu;

namespace {

long long wide(int64_t x) { return static_cast<long long>(x); }

struct Slots {
    int64_t width, many, places;  // numbers of a row; slots; scales of a slot
};

Slots slots(const Call& c) {
    const Dims &x = c.tensor("x").dims, &cache = c.tensor("cacheRef").dims;
    int64_t width = x.n == 2 ? x[1] : 0, many = width > 0 ? cache.product() / width : 0;
    return {width, many, many > 0 ? c.tensor("cacheScaleRef").numel() / many : 0};
}

RowBlocks blocks(const Call& c) {
    Slots s = slots(c);
    int dtype = c.tensor("cacheRef").dtype;
    bool exponents = c.tensor("cacheScaleRef").dtype == ACL_FLOAT8_E8M0;
    return {s.width, exponents ? kBlock : s.width / s.places, s.places, dtype, narrow_largest(dtype), exponents, c.flag("roundScale")};
}

void plan_indexer(Plan& p) {
    const Dims &x = p.tensor("x").dims, &cache = p.tensor("cacheRef").dims;
    int dtype = p.tensor("cacheRef").dtype;
    p.require(is_narrow_float(dtype), "cacheRef has dtype %s, which does not say what its bytes are; the emulator computes small floats", dtype_name(dtype));
    p.require(x.n == 2 && x[1] > 0, "x has shape %s, expected (tokens, width)", text(x).c_str());
    p.shape("slotMapping", {x[0]});
    p.require(cache.n >= 3 && cache.back() == x[1] && cache.product() > 0, "cacheRef has shape %s for rows of %lld", text(cache).c_str(), wide(x[1]));
    Slots s = slots(p);
    const Dims& scales = p.tensor("cacheScaleRef").dims;
    int64_t needed = (x[1] + kBlock - 1) / kBlock;
    bool fits = scales.n > 0 && s.places > 0 && s.places * s.many == scales.product();
    if (p.tensor("cacheScaleRef").dtype == ACL_FLOAT8_E8M0) fits = fits && (s.places == needed || s.places == needed + needed % 2);
    else fits = fits && x[1] % s.places == 0;
    p.require(fits, "cacheScaleRef has shape %s for %lld slots of %lld numbers", text(scales).c_str(), wide(s.many), wide(x[1]));
}

void run_indexer(Run& r) {
    Slots s = slots(r);
    auto x = r.read<double>(r.tensor("x")), cache = r.read<double>(r.tensor("cacheRef")), held = r.read<double>(r.tensor("cacheScaleRef"));
    auto to = r.read<int64_t>(r.tensor("slotMapping"));
    for (double& v : x) v *= r.real("xScale");
    auto scales = blocks(r).divide(x);
    for (size_t i = 0; i < to.size(); ++i) {
        if (to[i] < 0) continue;
        if (to[i] >= s.many) fault("slotMapping holds %lld, cacheRef has %lld slots", wide(to[i]), wide(s.many));
        std::copy_n(x.begin() + int64_t(i) * s.width, s.width, cache.begin() + to[i] * s.width);
        std::copy_n(scales.begin() + int64_t(i) * s.places, s.places, held.begin() + to[i] * s.places);
    }
    r.write(r.tensor("cacheRef"), cache);
    r.write(r.tensor("cacheScaleRef"), held);
}

}  // namespace

ACLNN(aclnnIndexerQuantCache, plan_indexer, run_indexer, NARROW)
