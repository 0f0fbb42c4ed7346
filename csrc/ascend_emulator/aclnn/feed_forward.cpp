// Feed-forward networks: two products around an activation, with matrices of their own for each expert. Computed for
// floats; quantized networks are refused.
#include "activation.h"
#include "kernel.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

// The third version calls optional arguments so.
std::string named(const Call& c, const char* name) {
    std::string longer = std::string(name) + "Optional";
    for (int i = 0; i < c.function->count; ++i)
        if (longer == c.function->parameters[i].name) return longer;
    return name;
}

bool gated(const std::string& activation) {
    return activation == "geglu" || activation == "swiglu" || activation == "reglu";
}

double applied(double x, const std::string& a) {
    if (a == "relu" || a == "reglu") return std::fmax(x, 0);
    if (a == "silu" || a == "swiglu") return silu(x);
    return a == "fastgelu" ? fast_gelu(x) : gelu_tanh(x);
}

int64_t expert_count(const Call& c) {
    const Dims& w = c.tensor("weight1").dims;
    return w.n == 3 ? w[0] : 1;
}

void plan_network(Plan& p) {
    const Dims &x = p.tensor("x").dims, &a = p.tensor("weight1").dims, &b = p.tensor("weight2").dims;
    const std::string& activation = p.string("activation");
    static const char* const known[] = {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"};
    p.require(std::any_of(std::begin(known), std::end(known), [&](const char* k) { return activation == k; }),
              "activation is \"%s\"; there are relu, gelu, fastgelu, silu, geglu, swiglu, reglu", activation.c_str());
    p.require(is_real(p.tensor("x").dtype), "x has dtype %s; the emulator computes floats",
              dtype_name(p.tensor("x").dtype));
    for (const char* name : {"scale", "offset", "deqScale1", "deqScale2", "antiquantScale1", "antiquantScale2",
                             "antiquantOffset1", "antiquantOffset2"})
        p.require(!p.has(named(p, name).c_str()), "%s is not computed by the emulator", name);
    p.require(a.n == b.n && (a.n == 2 || (a.n == 3 && a[0] == b[0])), "weight1 %s and weight2 %s do not fit",
              text(a).c_str(), text(b).c_str());
    int64_t hidden = a.back() / (gated(activation) ? 2 : 1);
    p.require(x.back() == a[a.n - 2] && hidden == b[b.n - 2] && (!gated(activation) || a.back() % 2 == 0),
              "x %s, weight1 %s and weight2 %s do not fit", text(x).c_str(), text(a).c_str(), text(b).c_str());
    Dims want = x;
    want[want.n - 1] = b.back();
    p.shape("y", want);
    p.require(a.n == 2 || p.has(named(p, "expertTokens").c_str()), "experts need expertTokens");
    int64_t experts = expert_count(p);
    for (const char* name : {"bias1", "bias2"}) {
        std::string given = named(p, name);
        if (!p.has(given.c_str())) continue;
        int64_t n = p.tensor(given.c_str()).numel(), columns = std::strcmp(name, "bias1") == 0 ? a.back() : b.back();
        p.require(n == experts * columns, "%s has %lld elements, expected %lld", given.c_str(),
                  static_cast<long long>(n), static_cast<long long>(experts * columns));
    }
}

// Where the rows of each expert end.
std::vector<int64_t> expert_ends(const Run& r, int64_t rows) {
    std::string name = named(r, "expertTokens");
    if (!r.has(name.c_str())) return {rows};
    std::vector<int64_t> tokens;
    for (int i = 0; i < r.function->count; ++i)
        if (name == r.function->parameters[i].name)
            tokens = r.function->parameters[i].role == Role::tensor ? r.read<int64_t>(r.tensor(name.c_str()))
                                                                    : r.ints(name.c_str());
    bool ends = std::string(r.function->name) != "aclnnFFN" && r.flag("tokensIndexFlag");
    if (!ends)
        for (size_t i = 1; i < tokens.size(); ++i) tokens[i] += tokens[i - 1];
    if (int64_t(tokens.size()) != expert_count(r) || tokens.back() > rows) fault("expertTokens do not fit");
    return tokens;
}

// out += x @ w + bias, for one row
void product(const double* x, const double* w, const double* bias, int64_t inner, int64_t columns, double* out) {
    for (int64_t j = 0; j < columns; ++j) out[j] = bias ? bias[j] : 0;
    for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = 0; j < columns; ++j) out[j] += x[k] * w[k * columns + j];
}

void run_network(Run& r) {
    const Dims &a = r.tensor("weight1").dims, &b = r.tensor("weight2").dims;
    auto x = r.read<double>(r.tensor("x")), w1 = r.read<double>(r.tensor("weight1")), w2 = r.read<double>(r.tensor("weight2"));
    Values bias1, bias2;
    std::string first = named(r, "bias1"), second = named(r, "bias2");
    if (r.has(first.c_str())) bias1 = r.read<double>(r.tensor(first.c_str()));
    if (r.has(second.c_str())) bias2 = r.read<double>(r.tensor(second.c_str()));
    const std::string& activation = r.string("activation");
    int64_t inner = a[a.n - 2], middle = a.back(), hidden = b[b.n - 2], columns = b.back();
    int64_t rows = int64_t(x.size()) / inner, row = 0;
    Values y(size_t(rows * columns), 0), z(static_cast<size_t>(middle));
    auto ends = expert_ends(r, rows);
    for (int64_t e = 0; e < int64_t(ends.size()); ++e)
        for (; row < ends[size_t(e)]; ++row) {
            product(x.data() + row * inner, w1.data() + e * inner * middle,
                    bias1.empty() ? nullptr : bias1.data() + e * middle, inner, middle, z.data());
            for (int64_t k = 0; k < hidden; ++k) {
                z[size_t(k)] = applied(z[size_t(k)], activation);
                if (gated(activation)) z[size_t(k)] *= z[size_t(hidden + k)];
            }
            product(z.data(), w2.data() + e * hidden * columns, bias2.empty() ? nullptr : bias2.data() + e * columns,
                    hidden, columns, y.data() + row * columns);
        }
    r.write(r.tensor("y"), y);
}

}  // namespace

ACLNN(aclnnFFN, plan_network, run_network)
ACLNN(aclnnFFNV2, plan_network, run_network)
ACLNN(aclnnFFNV3, plan_network, run_network)
