// Heads of queries, keys and values and those of an encoder beside them: normalised, put one behind the other, turned by
// position.
//
// The facts have shapes and types. The numbers of the modes are those of the function's public description: a norm is 0
// none, 1 LayerNorm, 2 LayerNorm with weight and bias, 3 RmsNorm, 4 RmsNorm with weight; partners of a rotation are 0
// none, 1 next to each other, 2 half a head apart; the encoder's tokens come 0 behind, 1 in front. The first tokens of
// what was put together are turned, as many as the angles have rows.
#include <cmath>

#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;
enum Norm : int64_t { kNone = 0, kLayer = 1, kLayerAffine = 2, kRms = 3, kRmsAffine = 4 };
enum Rope : int64_t { kStill = 0, kNeighbours = 1, kHalves = 2 };

long long wide(int64_t x) { return static_cast<long long>(x); }

bool affine(int64_t norm) { return norm == kLayerAffine || norm == kRmsAffine; }
bool centred(int64_t norm) { return norm == kLayer || norm == kLayerAffine; }

// The names of one of the tensors: "Query" gives query, encoderQuery, normQuery..., normAddedQuery....
struct Names {
    std::string own, encoder, norm, added;
    explicit Names(const char* word)
        : own(std::string(1, char(std::tolower(word[0]))) + (word + 1)),
          encoder(std::string("encoder") + word),
          norm(std::string("norm") + word),
          added(std::string("normAdded") + word) {}
};

struct Side {  // of one source: the tokens of its own or the encoder's
    std::string x, names;
    int64_t norm;
};

std::vector<Side> sides(const Call& c, const char* word) {
    Names n(word);
    bool value = n.own == "value";
    std::vector<Side> out{{n.own, n.norm, value ? kNone : c.integer("normType")}};
    if (given(c, n.encoder.c_str()) || (value && given(c, "gradEncoderValue"))) {
        Side added{n.encoder, n.added, value ? kNone : c.integer("normAddedType")};
        if (c.integer("concatOrder") == 1) out.insert(out.begin(), added);
        else out.push_back(added);
    }
    return out;
}

// (batch, tokens, heads, size) of a side; of values the backward function has the gradients only.
Dims dims_of(const Call& c, const Side& s) {
    if (has_parameter(c, s.x.c_str())) return c.tensor(s.x.c_str()).dims;
    std::string gradient = "grad" + std::string(1, char(std::toupper(s.x[0]))) + s.x.substr(1);
    return c.tensor(gradient.c_str()).dims;
}

void plan_modes(const Plan& p) {
    for (const char* name : {"normType", "normAddedType"})
        p.require(p.integer(name) >= kNone && p.integer(name) <= kRmsAffine, "%s is %lld, expected 0 to 4", name, wide(p.integer(name)));
    p.require(p.integer("ropeType") >= kStill && p.integer("ropeType") <= kHalves, "ropeType is %lld, expected 0 to 2", wide(p.integer("ropeType")));
    p.require(p.integer("concatOrder") == 0 || p.integer("concatOrder") == 1, "concatOrder is %lld, expected 0 or 1", wide(p.integer("concatOrder")));
    if (p.integer("ropeType") == kStill) return;
    for (const char* name : {"ropeSin", "ropeCos"}) p.require(p.has(name), "ropeType is %lld and %s is null", wide(p.integer("ropeType")), name);
    p.same_shape("ropeSin", "ropeCos");
    const Dims& d = p.tensor("ropeSin").dims;
    p.require(d.n == 2 && d[1] == p.tensor("query").dims.back() && d[1] % 2 == 0, "ropeSin has shape %s for heads of %lld", text(d).c_str(),
              wide(p.tensor("query").dims.back()));
}

// What is put together of a word must have this name and shape.
void plan_together(const Plan& p, const char* word, const char* name) {
    Dims whole;
    for (const Side& s : sides(p, word)) {
        Dims d = dims_of(p, s);
        p.require(d.n == 4, "%s has %d dimensions, expected 4", s.x.c_str(), d.n);
        if (whole.n == 0) whole = {d[0], d[2], 0, d[3]};
        p.require(d[0] == whole[0] && d[2] == whole[1] && d[3] == whole[3], "%s has shape %s", s.x.c_str(), text(d).c_str());
        whole[2] += d[1];
        if (affine(s.norm)) {
            p.require(given(p, (s.names + "Weight").c_str()), "%sWeight is null", s.names.c_str());
            p.shape((s.names + "Weight").c_str(), {d[3]});
        }
        if (given(p, (s.names + "Bias").c_str())) p.shape((s.names + "Bias").c_str(), {d[3]});
    }
    p.shape(name, whole);
    if (p.integer("ropeType") != kStill && std::string(word) != "Value")
        p.require(p.tensor("ropeSin").dims[0] <= whole[2], "ropeSin has %lld rows for %lld tokens", wide(p.tensor("ropeSin").dims[0]), wide(whole[2]));
}

// A statistic has a number for each head of each token, whichever way it is shaped.
void plan_statistic(const Plan& p, const Side& s, const char* which, bool needed) {
    std::string name = s.names + which;
    if (!has_parameter(p, name.c_str())) return;
    if (!given(p, name.c_str())) {
        p.require(!needed, "%s is null", name.c_str());
        return;
    }
    Dims d = dims_of(p, s);
    p.require(!needed || p.tensor(name.c_str()).numel() == d[0] * d[1] * d[2], "%s has shape %s for %s %s", name.c_str(),
              text(p.tensor(name.c_str()).dims).c_str(), s.x.c_str(), text(d).c_str());
}

struct Turn {
    Values sin, cos;
    int64_t rows = 0, size = 0, mode = kStill;

    explicit Turn(const Run& r) : mode(r.integer("ropeType")) {
        if (mode == kStill) return;
        sin = r.read<double>(r.tensor("ropeSin")), cos = r.read<double>(r.tensor("ropeCos"));
        rows = r.tensor("ropeSin").dims[0], size = r.tensor("ropeSin").dims[1];
    }
    int64_t partner(int64_t d) const {
        if (mode == kNeighbours) return d ^ 1;
        return d < size / 2 ? d + size / 2 : d - size / 2;
    }
    double sign(int64_t d) const { return (mode == kNeighbours ? d % 2 == 0 : d < size / 2) ? -1 : 1; }
    double forward(const double* x, int64_t row, int64_t d) const {
        if (mode == kStill || row >= rows) return x[d];
        size_t at = size_t(row * size + d);
        return x[d] * cos[at] + sign(d) * x[partner(d)] * sin[at];
    }
    double backward(const double* g, int64_t row, int64_t d) const {
        if (mode == kStill || row >= rows) return g[d];
        int64_t other = partner(d);
        return g[d] * cos[size_t(row * size + d)] + sign(other) * g[other] * sin[size_t(row * size + other)];
    }
};

struct Statistics {
    Values mean, rstd;
};

Values parameter(const Run& r, const std::string& name, int64_t size, double otherwise, bool used) {
    if (!used || !given(r, name.c_str())) return Values(size_t(size), otherwise);
    return r.read<double>(r.tensor(name.c_str()));
}

Statistics statistics(const Values& x, int64_t size, int64_t norm, double eps) {
    Statistics found;
    for (size_t at = 0; at < x.size(); at += size_t(size)) {
        double mean = 0, square = 0;
        for (int64_t d = 0; d < size && centred(norm); ++d) mean += x[at + size_t(d)] / double(size);
        for (int64_t d = 0; d < size; ++d) square += std::pow(x[at + size_t(d)] - mean, 2) / double(size);
        found.mean.push_back(mean);
        found.rstd.push_back(norm == kNone ? 1 : 1 / std::sqrt(square + eps));
    }
    return found;
}

void forward(const Run& r, const char* word, const char* name, bool turns) {
    const Dims& whole = r.tensor(name).dims;
    Values out(size_t(whole.product()));
    Turn turn(r);
    if (!turns) turn.mode = kStill;
    int64_t heads = whole[1], all = whole[2], size = whole[3], first = 0;
    for (const Side& s : sides(r, word)) {
        auto x = r.read<double>(r.tensor(s.x.c_str()));
        int64_t tokens = dims_of(r, s)[1];
        Statistics found = statistics(x, size, s.norm, r.real("eps"));
        Values weight = parameter(r, s.names + "Weight", size, 1, affine(s.norm)), bias = parameter(r, s.names + "Bias", size, 0, s.norm == kLayerAffine);
        Values line(static_cast<size_t>(size));
        for (int64_t i = 0; i * size < int64_t(x.size()); ++i) {
            int64_t head = i % heads, token = i / heads % tokens, batch = i / heads / tokens, row = first + token;
            for (int64_t d = 0; d < size; ++d)
                line[size_t(d)] = (x[size_t(i * size + d)] - found.mean[size_t(i)]) * found.rstd[size_t(i)] * weight[size_t(d)] + bias[size_t(d)];
            double* to = out.data() + ((batch * heads + head) * all + row) * size;
            for (int64_t d = 0; d < size; ++d) to[d] = turn.forward(line.data(), row, d);
        }
        for (auto [which, values] : {std::pair{"Mean", &found.mean}, {"Rstd", &found.rstd}}) {
            std::string statistic = s.names + which;
            bool kept = s.norm != kNone && (values == &found.rstd || centred(s.norm));
            if (r.flag("isTraining") && kept && given(r, statistic.c_str())) r.write(r.tensor(statistic.c_str()), *values);
        }
        first += tokens;
    }
    r.write(r.tensor(name), out);
}

std::string gradient_of(const std::string& name) { return "grad" + std::string(1, char(std::toupper(name[0]))) + name.substr(1); }

void backward(const Run& r, const char* word, const char* name, bool turns) {
    const Dims& whole = r.tensor(name).dims;
    auto g = r.read<double>(r.tensor(name));
    Turn turn(r);
    if (!turns) turn.mode = kStill;
    int64_t heads = whole[1], all = whole[2], size = whole[3], first = 0;
    for (const Side& s : sides(r, word)) {
        int64_t tokens = dims_of(r, s)[1], many = whole[0] * tokens * heads;
        Values x, mean(size_t(many), 0), rstd(size_t(many), 1);
        if (s.norm != kNone) {
            x = r.read<double>(r.tensor(s.x.c_str()));
            if (centred(s.norm)) mean = r.read<double>(r.tensor((s.names + "Mean").c_str()));
            rstd = r.read<double>(r.tensor((s.names + "Rstd").c_str()));
        }
        Values weight = parameter(r, s.names + "Weight", size, 1, affine(s.norm));
        Values out(size_t(many * size)), of_weight(size_t(size), 0), of_bias(size_t(size), 0), line(static_cast<size_t>(size)), hat(size_t(size), 0);
        for (int64_t i = 0; i < many; ++i) {
            int64_t head = i % heads, token = i / heads % tokens, batch = i / heads / tokens, row = first + token;
            const double* from = g.data() + ((batch * heads + head) * all + row) * size;
            double sum = 0, product = 0;
            for (int64_t d = 0; d < size; ++d) {
                double back = turn.backward(from, row, d);
                if (s.norm != kNone) hat[size_t(d)] = (x[size_t(i * size + d)] - mean[size_t(i)]) * rstd[size_t(i)];
                of_weight[size_t(d)] += back * hat[size_t(d)];
                of_bias[size_t(d)] += back;
                line[size_t(d)] = back * weight[size_t(d)];
                sum += line[size_t(d)] / double(size);
                product += line[size_t(d)] * hat[size_t(d)] / double(size);
            }
            for (int64_t d = 0; d < size; ++d) {
                double v = line[size_t(d)];
                if (s.norm != kNone) v = (v - (centred(s.norm) ? sum : 0) - hat[size_t(d)] * product) * rstd[size_t(i)];
                out[size_t(i * size + d)] = v;
            }
        }
        r.write(r.tensor(gradient_of(s.x).c_str()), out);
        for (auto [which, values, used] : {std::tuple{"Weight", &of_weight, affine(s.norm)}, {"Bias", &of_bias, s.norm == kLayerAffine}}) {
            std::string gradient = gradient_of(s.names + which);
            if (used && given(r, gradient.c_str())) r.write(r.tensor(gradient.c_str()), *values);
        }
        first += tokens;
    }
}

void plan_gradients(const Plan& p, const char* word, const char* name) {
    plan_together(p, word, name);
    for (const Side& s : sides(p, word)) {
        std::string gradient = gradient_of(s.x);
        p.require(given(p, gradient.c_str()), "%s is null", gradient.c_str());
        p.shape(gradient.c_str(), dims_of(p, s));
        plan_statistic(p, s, "Rstd", s.norm != kNone);
        plan_statistic(p, s, "Mean", centred(s.norm));
        for (const char* which : {"Weight", "Bias"}) {
            std::string of = gradient_of(s.names + which);
            if (affine(s.norm) && given(p, of.c_str())) p.shape(of.c_str(), {dims_of(p, s).back()});
        }
    }
}

}  // namespace

ACLNN(aclnnNormRopeConcat,
      PLAN {
          plan_modes(p);
          for (const char* word : {"Query", "Key", "Value"}) {
              plan_together(p, word, (Names(word).own + "Output").c_str());
              p.same_dtype(Names(word).own.c_str(), (Names(word).own + "Output").c_str());
              for (const Side& s : sides(p, word)) {
                  bool kept = p.flag("isTraining") && s.norm != kNone;
                  plan_statistic(p, s, "Rstd", kept);
                  plan_statistic(p, s, "Mean", kept && centred(s.norm));
              }
          }
      },
      RUN {
          forward(r, "Query", "queryOutput", true);
          forward(r, "Key", "keyOutput", true);
          forward(r, "Value", "valueOutput", false);
      })
ACLNN(aclnnNormRopeConcatBackward,
      PLAN {
          plan_modes(p);
          plan_gradients(p, "Query", "gradQueryOutput");
          plan_gradients(p, "Key", "gradKeyOutput");
          plan_gradients(p, "Value", "gradValueOutput");
      },
      RUN {
          backward(r, "Query", "gradQueryOutput", true);
          backward(r, "Key", "gradKeyOutput", true);
          backward(r, "Value", "gradValueOutput", false);
      })
