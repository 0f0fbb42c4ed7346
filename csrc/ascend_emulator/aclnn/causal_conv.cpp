// Convolutions of sequences, a kernel for each channel, that see what came before: y[t] = sum over k of w[k] * x[t - K + 1 + k].
// What came before the first token is the state of the sequence, its last inputs, which the function moves on.
//
// The facts have shapes and types; the meaning is that of the published kernels of state-space models: queryStartLoc holds
// where packed sequences begin, cacheIndices which state each has, initialStateMode whether it is read (not 0). States longer
// than K - 1 use their last places. Guessed tokens and states in blocks are refused.
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// The first of these names that the function has.
const char* one_of(const Call& c, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (has_parameter(c, name)) return name;
    return "";
}
const char* states_name(const Call& c) { return one_of(c, {"convStatesRef", "convStates"}); }
const char* starts_name(const Call& c) { return one_of(c, {"queryStartLocOptional", "queryStartLoc"}); }
const char* places_name(const Call& c) { return one_of(c, {"cacheIndicesOptional", "cacheIndices"}); }
const char* mode_name(const Call& c) { return one_of(c, {"initialStateModeOptional", "initialStateMode"}); }
const char* bias_name(const Call& c) { return one_of(c, {"biasOptional", "bias"}); }
const char* nobody_name(const Call& c) { return one_of(c, {"nullBlockId", "padSlotId"}); }

bool with_silu(const Call& c) {
    if (has_parameter(c, "activationMode")) return c.integer("activationMode") == 1;
    return c.has("activation") && (c.string("activation") == "silu" || c.string("activation") == "swish");
}

int64_t sequences(const Call& c) {
    if (c.tensor("x").rank() == 3) return c.tensor("x").dims[0];
    return given(c, starts_name(c)) ? c.tensor(starts_name(c)).numel() - 1 : c.tensor("x").dims[0];
}

void plan_causal(Plan& p) {
    const Dims &x = p.tensor("x").dims, &w = p.tensor("weight").dims, &s = p.tensor(states_name(p)).dims;
    int64_t width = x.back(), many = sequences(p);
    p.require(w[1] == width && w[0] >= 1, "weight has shape %s, x %s", text(w).c_str(), text(x).c_str());
    p.require(s[2] == width && s[1] >= w[0] - 1, "%s has shape %s for a kernel of %lld", states_name(p), text(s).c_str(), wide(w[0]));
    p.require(x.n == 2 || !given(p, starts_name(p)), "%s belongs to an x of 2 dimensions", starts_name(p));
    p.require(many >= 0, "%s is empty", starts_name(p));
    if (given(p, places_name(p))) p.shape(places_name(p), {many});
    else p.require(s[0] >= many, "%s has shape %s for %lld sequences", states_name(p), text(s).c_str(), wide(many));
    if (*mode_name(p) && given(p, mode_name(p))) p.shape(mode_name(p), {many});
    if (given(p, bias_name(p))) p.shape(bias_name(p), {width});
    for (const char* name : {"numAcceptedTokens", "numAcceptedTokensOptional", "numComputedTokens", "numComputedTokensOptional", "blockIdxFirstScheduledToken",
                             "blockIdxFirstScheduledTokenOptional", "blockIdxLastScheduledToken", "blockIdxLastScheduledTokenOptional", "initialStateIdx", "initialStateIdxOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator: the documents state no formula for it", name);
    if (has_parameter(p, "activation")) {
        const std::string how = p.has("activation") ? p.string("activation") : "";
        p.require(how.empty() || how == "none" || how == "silu" || how == "swish", "activation is \"%s\", expected none, silu or swish", how.c_str());
    } else {
        for (const char* name : {"activationMode", "residualConnection", "runMode"})
            p.require(p.integer(name) == 0 || p.integer(name) == 1, "%s is %lld, expected 0 or 1", name, wide(p.integer(name)));
        p.require(p.integer("convMode") == 0, "convMode is %lld, expected 0", wide(p.integer("convMode")));
    }
    if (has_parameter(p, "y")) p.same_shape("x", "y");
}

void run_causal(Run& r) {
    const Dims &d = r.tensor("x").dims, &s = r.tensor(states_name(r)).dims;
    auto x = r.read<double>(r.tensor("x")), w = r.read<double>(r.tensor("weight")), states = r.read<double>(r.tensor(states_name(r)));
    int64_t width = d.back(), kernel = r.tensor("weight").dims[0], many = sequences(r), tokens = d.product() / std::max<int64_t>(width, 1);
    std::vector<int64_t> starts, places, modes(size_t(many), 1);
    if (given(r, starts_name(r))) starts = r.read<int64_t>(r.tensor(starts_name(r)));
    else
        for (int64_t b = 0; b <= many; ++b) starts.push_back(b * (d.n == 3 ? d[1] : 1));
    if (given(r, places_name(r))) places = r.read<int64_t>(r.tensor(places_name(r)));
    else
        for (int64_t b = 0; b < many; ++b) places.push_back(b);
    if (*mode_name(r) && given(r, mode_name(r))) modes = r.read<int64_t>(r.tensor(mode_name(r)));
    Values bias(size_t(width), 0), y = x;
    if (given(r, bias_name(r))) bias = r.read<double>(r.tensor(bias_name(r)));
    bool silu = with_silu(r), added = has_parameter(r, "residualConnection") && r.integer("residualConnection") == 1;
    for (int64_t b = 0; b < many; ++b) {
        int64_t first = starts[size_t(b)], last = starts[size_t(b + 1)], place = places[size_t(b)];
        if (first < 0 || last < first || last > tokens) fault("%s: a sequence from %lld to %lld of %lld tokens", starts_name(r), wide(first), wide(last), wide(tokens));
        if (place == r.integer(nobody_name(r))) continue;
        if (place < 0 || place >= s[0]) fault("%s holds %lld, there are %lld states", places_name(r), wide(place), wide(s[0]));
        for (int64_t c = 0; c < width; ++c) {
            Values line;
            for (int64_t k = 0; k < s[1]; ++k) line.push_back(modes[size_t(b)] != 0 ? states[size_t((place * s[1] + k) * width + c)] : 0);
            for (int64_t t = first; t < last; ++t) {
                line.push_back(x[size_t(t * width + c)]);
                double sum = bias[size_t(c)];
                for (int64_t k = 0; k < kernel; ++k) sum += w[size_t(k * width + c)] * line[line.size() - size_t(kernel - k)];
                if (silu) sum /= 1 + std::exp(-sum);
                y[size_t(t * width + c)] = sum + (added ? x[size_t(t * width + c)] : 0);
            }
            for (int64_t k = 0; k < s[1]; ++k) states[size_t((place * s[1] + k) * width + c)] = line[line.size() - size_t(s[1] - k)];
        }
    }
    r.write(r.tensor(has_parameter(r, "y") ? "y" : "x"), y);
    r.write(r.tensor(states_name(r)), states);
}

// -- whole sequences without states, (tokens, samples, channels) ------------------------------------------------------------
// What a mask of (samples, tokens) leaves out is 0 in the result. The facts have ranks only; the order of the dimensions is
// that of the function's public description.
struct Masked {
    Dims d;
    int64_t kernel;
    Values w, mask;

    explicit Masked(const Run& r) : d(r.tensor("x").dims), kernel(r.tensor("weight").dims[0]), w(r.read<double>(r.tensor("weight"))) {
        if (r.has("maskOptional")) mask = r.read<double>(r.tensor("maskOptional"));
    }
    bool kept(int64_t token, int64_t sample) const { return mask.empty() || mask[size_t(sample * d[0] + token)] != 0; }
    size_t at(int64_t token, int64_t sample, int64_t channel) const { return size_t((token * d[1] + sample) * d[2] + channel); }

    // f(place in y, place in x, place in the weights) for every product of the convolution.
    template <class F>
    void each(F f) const {
        for (int64_t t = 0; t < d[0]; ++t)
            for (int64_t b = 0; b < d[1]; ++b)
                for (int64_t k = 0; kept(t, b) && k < kernel; ++k)
                    for (int64_t c = 0, from = t - kernel + 1 + k; from >= 0 && c < d[2]; ++c) f(at(t, b, c), at(from, b, c), size_t(k * d[2] + c));
    }
};

void plan_masked(Plan& p) {
    const Dims &d = p.tensor("x").dims, &w = p.tensor("weight").dims;
    p.require(w[0] >= 1 && w[1] == d[2], "weight has shape %s, x %s", text(w).c_str(), text(d).c_str());
    if (p.has("maskOptional")) p.shape("maskOptional", {d[1], d[0]});
}

}  // namespace

ACLNN(aclnnMaskedCausalConv1d,
      PLAN {
          plan_masked(p);
          p.same_shape("x", "out");
      },
      RUN {
          Masked m(r);
          auto x = r.read<double>(r.tensor("x"));
          Values y(x.size(), 0);
          m.each([&](size_t to, size_t from, size_t w) { y[to] += x[from] * m.w[w]; });
          r.write(r.tensor("out"), y);
      })
ACLNN(aclnnMaskedCausalConv1dBackward,
      PLAN {
          plan_masked(p);
          for (const char* name : {"gradY", "gradXOut"}) p.same_shape("x", name);
          p.same_shape("weight", "gradWeightOut");
      },
      RUN {
          Masked m(r);
          auto x = r.read<double>(r.tensor("x")), g = r.read<double>(r.tensor("gradY"));
          Values of_x(x.size(), 0), of_w(m.w.size(), 0);
          m.each([&](size_t to, size_t from, size_t w) {
              of_x[from] += g[to] * m.w[w];
              of_w[w] += g[to] * x[from];
          });
          r.write(r.tensor("gradXOut"), of_x);
          r.write(r.tensor("gradWeightOut"), of_w);
      })
ACLNN(aclnnCausalConv1dFn, plan_causal, run_causal)
ACLNN(aclnnCausalConv1dUpdate, plan_causal, run_causal)
ACLNN(aclnnFusedCausalConv1d, plan_causal, run_causal)
ACLNN(aclnnInplaceFusedCausalConv1d, plan_causal, run_causal)
