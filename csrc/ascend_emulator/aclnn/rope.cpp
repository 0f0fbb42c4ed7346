// Rotary position embedding: pairs of elements turned by an angle.
#include "optional.h"

using namespace emu;

namespace {

// Partners are half a head away, next to each other, a quarter away within each half; or next to each other, and come apart
// into halves before they are turned.
enum Mode : int64_t { kHalf = 0, kInterleave = 1, kQuarter = 2, kApart = 3 };

// The partner of element d of a head, and its sign: x * cos + sign * partner * sin.
int64_t partner(int64_t d, int64_t size, int64_t mode) {
    if (mode == kInterleave) return d % 2 ? d - 1 : d + 1;
    if (mode == kQuarter) return d / (size / 4) % 2 ? d - size / 4 : d + size / 4;
    return d < size / 2 ? d + size / 2 : d - size / 2;
}
double sign(int64_t d, int64_t size, int64_t mode) {
    if (mode == kQuarter) return d / (size / 4) % 2 ? 1 : -1;
    return (mode == kInterleave ? d % 2 == 0 : d < size / 2) ? -1 : 1;
}

std::vector<double> rotated(const std::vector<double>& x, int64_t size, int64_t mode) {
    std::vector<double> y(x.size());
    for (int64_t i = 0; i < int64_t(x.size()); ++i) {
        int64_t d = i % size;
        y[size_t(i)] = sign(d, size, mode) * x[size_t(i - d + partner(d, size, mode))];
    }
    return y;
}

// Where element k of a head stands when pairs have come apart.
int64_t apart_place(int64_t k, int64_t size) { return k % 2 * (size / 2) + k / 2; }

std::vector<double> apart(const std::vector<double>& x, int64_t size) {
    std::vector<double> out(x.size());
    for (int64_t i = 0; i < int64_t(x.size()); ++i) out[size_t(i - i % size + apart_place(i % size, size))] = x[size_t(i)];
    return out;
}

std::vector<double> together(const std::vector<double>& x, int64_t size) {
    std::vector<double> out(x.size());
    for (int64_t i = 0; i < int64_t(x.size()); ++i) out[size_t(i)] = x[size_t(i - i % size + apart_place(i % size, size))];
    return out;
}

void plan_angles(const Plan& p, const Tensor& x) {
    p.require(x.rank() > 0 && x.dims.back() % 2 == 0, "the last dimension has %lld elements, expected an even number",
              static_cast<long long>(x.rank() ? x.dims.back() : 0));
    p.same_shape("cos", "sin");
    Dims both;
    const Dims& c = p.tensor("cos").dims;
    p.require(c.n == x.rank() && broadcast(c, x.dims, &both) && both == x.dims && c.back() == x.dims.back(),
              "cos has shape %s, which does not broadcast to %s", text(c).c_str(), text(x.dims).c_str());
}

void plan_mode(const Plan& p) {
    p.require(p.integer("mode") >= kHalf && p.integer("mode") <= kApart, "mode is %lld, expected 0 to 3", static_cast<long long>(p.integer("mode")));
    int64_t size = p.input().rank() ? p.input().dims.back() : 0;
    p.require(p.integer("mode") != kQuarter || size % 4 == 0, "the last dimension has %lld elements, which are no quarters", static_cast<long long>(size));
}

void turn(Run& r, const Tensor& from, const Tensor& to, int64_t mode) {
    auto x = r.read<double>(from);
    if (mode == kApart) x = apart(x, from.dims.back());
    auto y = rotated(x, from.dims.back(), mode);
    auto cos = r.read<double>(r.tensor("cos"), from.dims), sin = r.read<double>(r.tensor("sin"), from.dims);
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * cos[i] + y[i] * sin[i];
    r.write(to, x);
}

void plan_rotary(Plan& p) {
    plan_mode(p);
    plan_angles(p, p.tensor("x"));
    p.same_shape("x", "out");
}

void plan_rotary_grad(Plan& p) {
    plan_mode(p);
    plan_angles(p, p.tensor("dy"));
    if (p.has("xOptional")) p.same_shape("dy", "xOptional");
    p.same_shape("dy", "dxOut");
    if (!p.has("xOptional")) return;  // without it only dx is computed
    for (const char* name : {"dcosOut", "dsinOut"}) {
        if (!p.has(name)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null where xOptional is given", name);
        p.same_shape("cos", name);
    }
}

// The sum of x over what `small` was repeated along.
std::vector<double> summed(const std::vector<double>& x, const Dims& dims, const Dims& small) {
    std::vector<double> out(size_t(small.product()));
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t rest = int64_t(i), at = 0, step = 1;
        for (int d = dims.n - 1; d >= 0; --d) {
            int64_t place = rest % dims[d];
            rest /= dims[d];
            if (small[d] != 1) at += place * step;
            step *= small[d];
        }
        out[size_t(at)] += x[i];
    }
    return out;
}

void run_rotary_grad(Run& r) {
    const Dims &dims = r.tensor("dy").dims, &small = r.tensor("cos").dims;
    int64_t mode = r.integer("mode");
    auto dy = r.read<double>(r.tensor("dy"));
    auto cos = r.read<double>(r.tensor("cos"), dims), sin = r.read<double>(r.tensor("sin"), dims);
    std::vector<double> dx(dy.size()), through(dy.size());
    for (size_t i = 0; i < dy.size(); ++i) through[i] = dy[i] * sin[i];
    auto back = rotated(through, dims.back(), mode);  // the transpose of the rotation is its negative
    for (size_t i = 0; i < dy.size(); ++i) dx[i] = dy[i] * cos[i] - back[i];
    if (mode == kApart) dx = together(dx, dims.back());
    r.write(r.tensor("dxOut"), dx);
    if (!r.has("xOptional")) return;
    auto x = r.read<double>(r.tensor("xOptional"));
    if (mode == kApart) x = apart(x, dims.back());
    auto y = rotated(x, dims.back(), mode);
    for (size_t i = 0; i < dy.size(); ++i) {
        x[i] *= dy[i];
        y[i] *= dy[i];
    }
    r.write(r.tensor("dcosOut"), summed(x, dims, small));
    r.write(r.tensor("dsinOut"), summed(y, dims, small));
}

void plan_apply(Plan& p) {
    int64_t layout = p.integer("layout");
    bool later = has_parameter(p, "rotaryMode");
    p.require(layout == 1 || layout == 4 || (later && (layout == 2 || layout == 3)), "layout is %lld, expected 1 (BSND), 4 (TND), of later versions 2 (SBND), 3 (BNSD)",
              static_cast<long long>(layout));
    for (const char* name : {"queryRef", "keyRef"}) {
        const Tensor& x = p.tensor(name);
        p.require(x.rank() == (layout == 4 ? 3 : 4), "%s has %d dimensions, which layout %lld does not have", name,
                  x.rank(), static_cast<long long>(layout));
        p.require(x.dims.back() == 64 || x.dims.back() == 128,
                  "the last dimension has %lld elements, expected 64 or 128", static_cast<long long>(x.dims.back()));
        plan_angles(p, x);
    }
    for (const char* name : {"keyRef", "cos", "sin"}) p.same_dtype("queryRef", name);
}

void run_apply(Run& r, int64_t mode) {
    for (const char* name : {"queryRef", "keyRef"}) turn(r, r.tensor(name), r.tensor(name), mode);
}

}  // namespace

ACLNN(aclnnRotaryPositionEmbedding, plan_rotary, RUN { turn(r, r.tensor("x"), r.tensor("out"), r.integer("mode")); })
ACLNN(aclnnRotaryPositionEmbeddingGrad, plan_rotary_grad, run_rotary_grad)
ACLNN(aclnnApplyRotaryPosEmb, plan_apply, RUN { run_apply(r, kHalf); })
ACLNN(aclnnApplyRotaryPosEmbV2,
      PLAN {
          const std::string& mode = p.string("rotaryMode");
          p.require(mode == "half" || mode == "interleave" || mode == "quarter", "rotaryMode is \"%s\", expected half, interleave or quarter", mode.c_str());
          plan_apply(p);
      },
      RUN {
          const std::string& mode = r.string("rotaryMode");
          run_apply(r, mode == "half" ? kHalf : mode == "quarter" ? kQuarter : kInterleave);
      })
ACLNN(aclnnInterleaveRope, PLAN { plan_angles(p, p.tensor("x")); p.same_shape("x", "out"); },
      RUN { turn(r, r.tensor("x"), r.tensor("out"), kApart); })
