// The cell of a long short-term memory, after its matrix products. Gates are input, forget, candidate, output.
#include <cmath>

#include "kernel.h"

using namespace emu;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void plan_cell(Plan& p) {
    const Dims& d = p.tensor("cx").dims;
    p.require(d.n == 2, "cx has %d dimensions, expected 2", d.n);
    Dims gates{d[0], 4 * d[1]};
    for (const char* name : {"inputGates", "hiddenGates", "storageOut"}) p.shape(name, gates);
    for (const char* name : {"inputBiasOptional", "hiddenBiasOptional"})
        if (p.has(name)) p.shape(name, {4 * d[1]});
    p.require(p.has("inputBiasOptional") == p.has("hiddenBiasOptional"), "either both biases are given or none");
    for (const char* name : {"hyOut", "cyOut"}) p.shape(name, d);
    for (const char* name : {"inputGates", "hiddenGates", "hyOut", "cyOut", "storageOut"}) p.same_dtype("cx", name);
}

void run_cell(Run& r) {
    const Dims& d = r.tensor("cx").dims;
    int64_t rows = d[0], size = d[1];
    auto gates = r.read<double>(r.tensor("inputGates")), hidden = r.read<double>(r.tensor("hiddenGates"));
    auto cell = r.read<double>(r.tensor("cx"));
    for (size_t i = 0; i < gates.size(); ++i) gates[i] += hidden[i];
    for (const char* name : {"inputBiasOptional", "hiddenBiasOptional"}) {
        if (!r.has(name)) continue;
        auto bias = r.read<double>(r.tensor(name));
        for (size_t i = 0; i < gates.size(); ++i) gates[i] += bias[i % bias.size()];
    }
    std::vector<double> h(cell.size());
    for (int64_t n = 0; n < rows; ++n)
        for (int64_t k = 0; k < size; ++k) {
            double* g = gates.data() + n * 4 * size + k;
            size_t at = size_t(n * size + k);
            for (int part : {0, 1, 3}) g[part * size] = sigmoid(g[part * size]);
            g[2 * size] = std::tanh(g[2 * size]);
            cell[at] = g[size] * cell[at] + g[0] * g[2 * size];
            h[at] = g[3 * size] * std::tanh(cell[at]);
        }
    r.write(r.tensor("hyOut"), h);
    r.write(r.tensor("cyOut"), cell);
    r.write(r.tensor("storageOut"), gates);
}

void plan_cell_backward(Plan& p) {
    const Dims& d = p.tensor("cx").dims;
    p.require(d.n == 2, "cx has %d dimensions, expected 2", d.n);
    p.require(p.has("gradHyOptional") || p.has("gradCOptional"), "gradHyOptional or gradCOptional is needed");
    for (const char* name : {"gradHyOptional", "gradCOptional"})
        if (p.has(name)) p.shape(name, d);
    for (const char* name : {"cy", "gradCxOut"}) p.shape(name, d);
    for (const char* name : {"storage", "gradGatesOut"}) p.shape(name, {d[0], 4 * d[1]});
    if (p.flag("hasBias")) p.shape("gradBiasOut", {4 * d[1]});
}

void run_cell_backward(Run& r) {
    const Dims& d = r.tensor("cx").dims;
    int64_t rows = d[0], size = d[1];
    auto before = r.read<double>(r.tensor("cx")), after = r.read<double>(r.tensor("cy"));
    auto gates = r.read<double>(r.tensor("storage"));
    auto given = [&](const char* name) {
        return r.has(name) ? r.read<double>(r.tensor(name)) : std::vector<double>(before.size());
    };
    auto dh = given("gradHyOptional"), dc = given("gradCOptional");
    std::vector<double> out(gates.size()), bias(size_t(4 * size));
    for (int64_t n = 0; n < rows; ++n)
        for (int64_t k = 0; k < size; ++k) {
            size_t at = size_t(n * size + k);
            const double* g = gates.data() + n * 4 * size + k;
            double i = g[0], f = g[size], c = g[2 * size], o = g[3 * size], t = std::tanh(after[at]);
            double total = dc[at] + dh[at] * o * (1 - t * t);
            double slopes[] = {total * c * i * (1 - i), total * before[at] * f * (1 - f), total * i * (1 - c * c),
                               dh[at] * t * o * (1 - o)};
            for (int64_t part = 0; part < 4; ++part) {
                out[size_t(n * 4 * size + part * size + k)] = slopes[part];
                bias[size_t(part * size + k)] += slopes[part];
            }
            dc[at] = total * f;
        }
    r.write(r.tensor("gradGatesOut"), out);
    r.write(r.tensor("gradCxOut"), dc);
    if (r.flag("hasBias")) r.write(r.tensor("gradBiasOut"), bias);
}

}  // namespace

ACLNN(aclnnThnnFusedLstmCell, plan_cell, run_cell)
ACLNN(aclnnThnnFusedLstmCellBackward, plan_cell_backward, run_cell_backward)
