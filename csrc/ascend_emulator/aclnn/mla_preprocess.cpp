// What precedes attention with latent keys and values, in one product of all that goes down.
//
// The facts have dtypes and shapes; the formulas are those of the function's public description:
//   x = rms_norm(input) * gamma0 + beta0, where doRmsNorm; down = x @ wdqkv^T: the latent keys, their rotated part, the query;
//   the latent keys are normed by gamma2 into kvCacheOut, the next columns are rotated into krCacheOut;
//   query = rms_norm(rest) * gamma1 + beta1, @ wuq^T: of each head the first columns go through wuk, the rest are rotated.
// Weights of INT8 (quantMode 0): their operand is round(x / quantScale + quantOffset), their product (sum + bias) * deScale.
// By token (quantMode 1): the operand is stretched to INT8 by row, and the product multiplied by the row's scale too.
// The rotation takes halves: y = x * cos + turned(x) * sin.
// Caches hold latent and rotated columns in one row (cacheMode 0), apart (1), or apart in blocks of the matrix unit: a page has
// runs of 32 bytes, the places of each run beside each other (3), latent columns and queries of INT8 as round(x / ctkvScale) and
// round(x / qNopeScale), the latter one number for each head (2).
#include "optional.h"
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

struct Sizes {
    int64_t tokens, in, query, heads, nope, rope, latent;
    int64_t down() const { return latent + rope + query; }
    int64_t head() const { return nope + rope; }
};

Sizes sizes(const Call& c) {
    const Dims &x = c.tensor("input").dims, &up = c.tensor("wuk").dims;
    Sizes s{x[0], x[1], c.tensor("gamma1").numel(), up[0], up[1], c.tensor("cos").dims.back(), up[2]};
    return s;
}

enum Mode { kFixed = 0, kRows = 1, kPlain = 3 };

int64_t mode(const Call& c) { return c.tensor("wdqkv").dtype == ACL_INT8 ? c.integer("quantMode") : kPlain; }

enum Cache { kJoined = 0, kApart = 1, kBytes = 2, kBlocks = 3 };

bool is_apart(const Call& c) { return c.integer("cacheMode") != kJoined; }
bool in_blocks(const Call& c) { return c.integer("cacheMode") >= kBytes; }
int64_t run_of(const Tensor& t) { return 32 / int64_t(size_of(t.dtype)); }

// Weights that are given as the blocks of the matrix unit, or as rows.
void plan_weight(const Plan& p, const char* name, int64_t rows, int64_t inner) {
    const Tensor& w = p.tensor(name);
    int64_t run = run_of(w);
    bool rowed = w.rank() == 2 && w.dims[0] == rows && w.dims[1] == inner;
    bool blocks = w.rank() == 4 && w.dims[0] == 1 && w.dims[1] * run == inner && w.dims[2] == rows && w.dims[3] == run;
    p.require(rowed || blocks, "%s has shape %s, expected %lld rows of %lld", name, text(w.dims).c_str(), wide(rows), wide(inner));
}

Values weight(const Run& r, const char* name) {
    const Tensor& w = r.tensor(name);
    Values x = r.read<double>(w);
    if (w.rank() == 2) return x;
    Values out(x.size());
    int64_t runs = w.dims[1], rows = w.dims[2], run = w.dims[3];
    for (int64_t i = 0; i < runs; ++i)
        for (int64_t j = 0; j < rows; ++j) std::copy_n(x.begin() + (i * rows + j) * run, run, out.begin() + (j * runs + i) * run);
    return out;
}

void plan_numbers(const Plan& p, const Sizes& s) {
    int64_t m = mode(p), cache = p.integer("cacheMode");
    p.require(m == kFixed || m == kRows || m == kPlain, "quantMode is %lld; the emulator computes 0 and 1", wide(m));
    p.require(cache >= kJoined && cache <= kBlocks, "cacheMode is %lld, expected 0 to 3", wide(cache));
    p.require((p.tensor("wuq").dtype == ACL_INT8) == (m != kPlain), "wuq has dtype %s, wdqkv %s", dtype_name(p.tensor("wuq").dtype), dtype_name(p.tensor("wdqkv").dtype));
    for (const char* name : {"transposeWdq", "transposeWuq", "transposeWuk"}) p.require(p.flag(name), "%s must be true", name);
    for (const char* name : {"qRotaryCoeff", "kRotaryCoeff"}) p.require(p.integer(name) == 2, "%s is %lld, expected 2", name, wide(p.integer(name)));
    p.require(p.integer("qRopeDim") == s.rope && p.integer("kRopeDim") == s.rope, "qRopeDim is %lld, kRopeDim %lld, cos has %lld columns", wide(p.integer("qRopeDim")),
              wide(p.integer("kRopeDim")), wide(s.rope));
    auto need = [&](const char* name, int64_t n) { p.require(p.tensor(name).numel() == n, "%s has shape %s, expected %lld elements", name, text(p.tensor(name).dims).c_str(), wide(n)); };
    if (m == kPlain) return;
    need("deScale0", s.down()), need("deScale1", s.heads * s.head());
    if (m == kRows) return;
    for (const char* name : {"quantScale0", "quantOffset0", "quantScale1", "quantOffset1"}) need(name, 1);
    need("bias0", s.down()), need("bias1", s.heads * s.head());
}

void plan_before(Plan& p) {
    p.require(p.tensor("input").rank() == 2 && p.tensor("wuk").rank() == 3, "input has shape %s, wuk %s", text(p.tensor("input").dims).c_str(), text(p.tensor("wuk").dims).c_str());
    Sizes s = sizes(p);
    plan_numbers(p, s);
    plan_weight(p, "wdqkv", s.down(), s.in);
    plan_weight(p, "wuq", s.heads * s.head(), s.query);
    auto need = [&](const char* name, int64_t n) { p.require(p.tensor(name).numel() == n, "%s has shape %s, expected %lld elements", name, text(p.tensor(name).dims).c_str(), wide(n)); };
    if (p.flag("doRmsNorm")) need("gamma0", s.in), need("beta0", s.in);
    need("gamma1", s.query), need("beta1", s.query), need("gamma2", s.latent), need("slotMapping", s.tokens);
    for (const char* name : {"cos", "sin"}) need(name, s.tokens * s.rope);
    p.require(s.rope % 2 == 0, "cos has an odd last size");
    bool apart = is_apart(p), bytes = p.integer("cacheMode") == kBytes;
    p.require(!apart || (p.has("kvCacheRope") && p.has("qRopeOut") && p.has("krCacheOut")), "kvCacheRope, qRopeOut and krCacheOut are needed where cacheMode is %lld",
              wide(p.integer("cacheMode")));
    int64_t row = apart ? s.latent : s.latent + s.rope;
    auto cache = [&](const char* name, int64_t columns, int dtype) {
        const Tensor& t = p.tensor(name);
        bool fits = in_blocks(p) ? t.rank() == 4 && t.dims[2] > 0 && t.dims[3] == run_of(t) && t.dims[1] * t.dims[3] == columns : t.rank() > 0 && t.dims.back() == columns;
        p.require(fits && t.dtype == dtype, "%s has shape %s and dtype %s", name, text(t.dims).c_str(), dtype_name(t.dtype));
    };
    int held = bytes ? int(ACL_INT8) : p.tensor("input").dtype;
    for (const char* name : {"kvCache", "kvCacheOut"}) cache(name, row, held);
    p.require(p.tensor("qOut").dtype == held, "qOut has dtype %s, kvCache %s", dtype_name(p.tensor("qOut").dtype), dtype_name(held));
    if (bytes) need("ctkvScale", 1), need("qNopeScale", s.heads);
    p.same_shape("kvCache", "kvCacheOut");
    need("qOut", s.tokens * s.heads * row);
    if (given(p, "qDownOut") && p.flag("qDownOutFlag")) need("qDownOut", s.tokens * s.query);
    if (!apart) return;
    p.same_shape("kvCacheRope", "krCacheOut");
    need("qRopeOut", s.tokens * s.heads * s.rope);
    cache("krCacheOut", s.rope, p.tensor("input").dtype);
}

void norm(double* row, const Values& gamma, const Values& beta, double epsilon) {
    double square = 0;
    for (size_t k = 0; k < gamma.size(); ++k) square += row[k] * row[k];
    double factor = 1 / std::sqrt(square / double(gamma.size()) + epsilon);
    for (size_t k = 0; k < gamma.size(); ++k) row[k] = row[k] * factor * gamma[k] + (beta.empty() ? 0 : beta[k]);
}

struct Names {
    const char *weight, *scale, *offset, *factor, *bias;
};
constexpr Names kDown{"wdqkv", "quantScale0", "quantOffset0", "deScale0", "bias0"}, kUp{"wuq", "quantScale1", "quantOffset1", "deScale1", "bias1"};

// x @ weight^T, in bytes where the weight has them.
Values product(const Run& r, Values x, int64_t inner, int64_t columns, const Names& n) {
    int64_t m = mode(r), rows = int64_t(x.size()) / inner;
    Values by_row(size_t(rows), 1), w = weight(r, n.weight), factor(size_t(columns), 1), bias(size_t(columns), 0);
    if (m == kFixed) {
        double scale = r.read<double>(r.tensor(n.scale))[0], offset = r.read<double>(r.tensor(n.offset))[0];
        for (double& v : x) v = v / scale + offset;
        x = within(x, ACL_INT8);
        bias = r.read<double>(r.tensor(n.bias));
    } else if (m == kRows) {
        for (int64_t i = 0; i < rows; ++i) {
            double most = 0;
            for (int64_t k = 0; k < inner; ++k) most = std::fmax(most, std::fabs(x[size_t(i * inner + k)]));
            by_row[size_t(i)] = most > 0 ? most / 127 : 1;
            for (int64_t k = 0; k < inner; ++k) x[size_t(i * inner + k)] = std::nearbyint(x[size_t(i * inner + k)] / by_row[size_t(i)]);
        }
    }
    if (m != kPlain) factor = read_scale(r, r.tensor(n.factor));
    Values y;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            double sum = bias[size_t(j)];
            for (int64_t k = 0; k < inner; ++k) sum += x[size_t(i * inner + k)] * w[size_t(j * inner + k)];
            y.push_back(sum * factor[size_t(j)] * by_row[size_t(i)]);
        }
    return y;
}

Values rotated(const double* x, const double* sin, const double* cos, int64_t n) {
    Values out;
    for (int64_t k = 0; k < n; ++k) out.push_back(x[k] * cos[k] + (k < n / 2 ? -x[k + n / 2] : x[k - n / 2]) * sin[k]);
    return out;
}

// A row into its slot of a cache.
template <class Row>
void put(Values& held, const Tensor& cache, bool blocks, int64_t slot, const Row& row, int64_t n, int64_t width, int64_t first) {
    int64_t places = blocks ? cache.dims[2] : 1, run = blocks ? cache.dims[3] : width;
    for (int64_t j = 0; j < n; ++j) {
        int64_t column = first + j;
        held[size_t(slot / places * places * width + (column / run * places + slot % places) * run + column % run)] = row[j];
    }
}

// The caches that are written are those that are given, with the new rows.
void keep(const Run& r, const Sizes& s, Values& down, const Values& sin, const Values& cos) {
    bool apart = is_apart(r), blocks = in_blocks(r), bytes = r.integer("cacheMode") == kBytes;
    int64_t row = apart ? s.latent : s.latent + s.rope;
    double scale = bytes ? r.read<double>(r.tensor("ctkvScale"))[0] : 1;
    Values kv = r.read<double>(r.tensor("kvCache")), kr, gamma = r.read<double>(r.tensor("gamma2"));
    if (apart) kr = r.read<double>(r.tensor("kvCacheRope"));
    auto slots = r.read<int64_t>(r.tensor("slotMapping"));
    int64_t room = int64_t(kv.size()) / row;
    if (apart) room = std::min(room, int64_t(kr.size()) / s.rope);
    for (int64_t t = 0; t < s.tokens; ++t) {
        int64_t slot = slots[size_t(t)];
        if (slot < 0) continue;  // a token that is not kept
        if (slot >= room) fault("slotMapping holds %lld, the caches have %lld slots", wide(slot), wide(room));
        double* from = down.data() + t * s.down();
        norm(from, gamma, {}, r.real("epsilon"));
        Values turned = rotated(from + s.latent, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope);
        Values latent(from, from + s.latent);
        if (bytes) {
            for (double& v : latent) v /= scale;
            latent = within(latent, ACL_INT8);
        }
        put(kv, r.tensor("kvCacheOut"), blocks, slot, latent, s.latent, row, 0);
        if (apart) put(kr, r.tensor("krCacheOut"), blocks, slot, turned, s.rope, s.rope, 0);
        else put(kv, r.tensor("kvCacheOut"), blocks, slot, turned, s.rope, row, s.latent);
    }
    r.write(r.tensor("kvCacheOut"), kv);
    if (apart) r.write(r.tensor("krCacheOut"), kr);
}

void run_before(Run& r) {
    Sizes s = sizes(r);
    auto x = r.read<double>(r.tensor("input")), sin = r.read<double>(r.tensor("sin")), cos = r.read<double>(r.tensor("cos"));
    if (r.flag("doRmsNorm")) {
        Values gamma = r.read<double>(r.tensor("gamma0")), beta = r.read<double>(r.tensor("beta0"));
        for (int64_t t = 0; t < s.tokens; ++t) norm(x.data() + t * s.in, gamma, beta, r.real("epsilon"));
    }
    Values down = product(r, x, s.in, s.down(), kDown), query, gamma = r.read<double>(r.tensor("gamma1")), beta = r.read<double>(r.tensor("beta1"));
    for (int64_t t = 0; t < s.tokens; ++t) {
        double* row = down.data() + t * s.down() + s.latent + s.rope;
        norm(row, gamma, beta, r.real("epsilon"));
        query.insert(query.end(), row, row + s.query);
    }
    if (given(r, "qDownOut") && r.flag("qDownOutFlag")) r.write(r.tensor("qDownOut"), query);
    Values up = product(r, query, s.query, s.heads * s.head(), kUp), keys = r.read<double>(r.tensor("wuk")), out, ropes;
    bool apart = is_apart(r), bytes = r.integer("cacheMode") == kBytes;
    Values head_scale(size_t(s.heads), 1);
    if (bytes) head_scale = r.read<double>(r.tensor("qNopeScale"));
    for (int64_t i = 0; i < s.tokens * s.heads; ++i) {
        const double* head = up.data() + i * s.head();
        int64_t h = i % s.heads, t = i / s.heads;
        for (int64_t j = 0; j < s.latent; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < s.nope; ++k) sum += head[k] * keys[size_t((h * s.nope + k) * s.latent + j)];
            out.push_back(sum / head_scale[size_t(h)]);
        }
        Values turned = rotated(head + s.nope, sin.data() + t * s.rope, cos.data() + t * s.rope, s.rope), &to = apart ? ropes : out;
        to.insert(to.end(), turned.begin(), turned.end());
    }
    r.write(r.tensor("qOut"), bytes ? within(out, ACL_INT8) : out);
    if (apart) r.write(r.tensor("qRopeOut"), ropes);
    keep(r, s, down, sin, cos);
}

}  // namespace

ACLNN(aclnnMlaPreprocess, plan_before, run_before)
ACLNN(aclnnMlaPreprocessV2, plan_before, run_before)
