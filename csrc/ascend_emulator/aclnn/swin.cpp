// Windows of an image as bytes: the norm and the products before attention, and attention itself.
//
// The facts have dtypes and the ranks of attention only; the formulas are those of the functions' public descriptions.
// Bytes are round(x * quantScale + quantOffset), products of bytes get a whole bias and are multiplied by a packed scale.
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// One number for all columns, or one for each.
void plan_columns(const Plan& p, const char* name, int64_t columns) {
    if (!p.has(name)) return;
    int64_t n = p.tensor(name).numel();
    p.require(n == columns || n == 1, "%s has shape %s, expected %lld elements or one", name, text(p.tensor(name).dims).c_str(), wide(columns));
}

Values columns_of(const Run& r, const char* name, int64_t columns, double otherwise) {
    if (!r.has(name)) return Values(size_t(columns), otherwise);
    Values v = read_scale(r, r.tensor(name));
    return v.size() == 1 ? Values(size_t(columns), v[0]) : v;
}

// -- the norm, then queries, keys and values by window -----------------------------------------------------------------------
struct Windows {
    int64_t batch, places, width, heads, size, high, wide, rows, columns;  // an image of high x wide in windows of rows x columns
    int64_t count() const { return batch * (high / rows) * (wide / columns); }
    // The place in the image of a place in a window.
    int64_t source(int64_t window, int64_t place) const {
        int64_t across = wide / columns, down = high / rows;
        int64_t image = window / (across * down), row = window / across % down * rows + place / columns;
        return image * places + row * wide + window % across * columns + place % columns;
    }
};

Windows windows(const Call& c) {
    const Dims& x = c.tensor("x").dims;
    return {x[0], x[1], x[2], c.integer("headNum"), c.integer("seqLength"), c.integer("oriHeight"), c.integer("oriWeight"), c.integer("hWinSize"), c.integer("wWinSize")};
}

void plan_layer(Plan& p) {
    p.require(p.tensor("x").rank() == 3, "x has shape %s, expected 3 dimensions", text(p.tensor("x").dims).c_str());
    for (const char* name : {"headNum", "seqLength", "oriHeight", "oriWeight", "hWinSize", "wWinSize"})
        p.require(p.integer(name) > 0 && p.integer(name) <= 1 << 20, "%s is %lld", name, wide(p.integer(name)));
    Windows s = windows(p);
    p.require(s.high * s.wide == s.places, "x has %lld places, oriHeight and oriWeight say %lld", wide(s.places), wide(s.high * s.wide));
    p.require(s.high % s.rows == 0 && s.wide % s.columns == 0, "windows of %lld x %lld do not fill %lld x %lld", wide(s.rows), wide(s.columns), wide(s.high), wide(s.wide));
    p.require(s.heads * s.size == s.width, "headNum %lld and seqLength %lld do not make %lld", wide(s.heads), wide(s.size), wide(s.width));
    for (const char* name : {"gamma", "beta"}) p.shape(name, {s.width});
    p.shape("weight", p.flag("weightTranspose") ? Dims{3 * s.width, s.width} : Dims{s.width, 3 * s.width});
    for (const char* name : {"quantScale", "quantOffset"}) plan_columns(p, name, s.width);
    for (const char* name : {"bias", "dequantScale"}) plan_columns(p, name, 3 * s.width);
    for (const char* name : {"queryOutputOut", "keyOutputOut", "valueOutputOut"}) p.shape(name, {s.count(), s.heads, s.rows * s.columns, s.size});
}

Values normed(const Run& r, const Windows& s) {
    auto x = r.read<double>(r.tensor("x")), gamma = r.read<double>(r.tensor("gamma")), beta = r.read<double>(r.tensor("beta"));
    Values scale = columns_of(r, "quantScale", s.width, 1), offset = columns_of(r, "quantOffset", s.width, 0);
    for (int64_t row = 0; row < s.batch * s.places; ++row) {
        double* v = x.data() + row * s.width;
        double mean = 0, square = 0;
        for (int64_t k = 0; k < s.width; ++k) mean += v[k] / double(s.width);
        for (int64_t k = 0; k < s.width; ++k) square += (v[k] - mean) * (v[k] - mean) / double(s.width);
        double factor = 1 / std::sqrt(square + r.real("epsilon"));
        for (int64_t k = 0; k < s.width; ++k) {
            size_t at = size_t(k);
            v[k] = ((v[k] - mean) * factor * gamma[at] + beta[at]) * scale[at] + offset[at];
        }
    }
    return within(x, ACL_INT8);
}

void run_layer(Run& r) {
    Windows s = windows(r);
    Values x = normed(r, s), w = r.read<double>(r.tensor("weight"));
    Values bias = columns_of(r, "bias", 3 * s.width, 0), scale = columns_of(r, "dequantScale", 3 * s.width, 1);
    bool turned = r.flag("weightTranspose");
    int64_t area = s.rows * s.columns, part = 0;
    for (const char* name : {"queryOutputOut", "keyOutputOut", "valueOutputOut"}) {
        Values out;
        for (int64_t window = 0; window < s.count(); ++window)
            for (int64_t column = part * s.width; column < (part + 1) * s.width; column += s.size)
                for (int64_t place = 0; place < area; ++place) {
                    const double* row = x.data() + s.source(window, place) * s.width;
                    for (int64_t j = column; j < column + s.size; ++j) {
                        double sum = bias[size_t(j)];
                        for (int64_t k = 0; k < s.width; ++k) sum += row[k] * w[size_t(turned ? j * s.width + k : k * 3 * s.width + j)];
                        out.push_back(sum * scale[size_t(j)]);
                    }
                }
        r.write(r.tensor(name), out);
        ++part;
    }
}

// -- softmax(dequant(q @ k^T) + masks), quantized, @ v -----------------------------------------------------------------------
Tensor turned(Tensor t, bool flag) {
    if (flag) std::swap(t.dims[2], t.dims[3]), std::swap(t.strides[2], t.strides[3]);
    return t;
}

void plan_score(Plan& p) {
    Tensor q = turned(p.tensor("query"), p.flag("queryTranspose")), k = turned(p.tensor("key"), p.flag("keyTranspose"));
    Tensor v = turned(p.tensor("value"), p.flag("valueTranspose"));
    p.require(k.dims == v.dims && q.dims[0] == k.dims[0] && q.dims[1] == k.dims[1] && q.dims[3] == k.dims[3], "query, key and value have shapes %s, %s, %s",
              text(q.dims).c_str(), text(k.dims).c_str(), text(v.dims).c_str());
    p.shape("out", q.dims);
    int64_t keys = k.dims[2], axis = p.integer("softmaxAxes");
    p.require(axis == -1 || axis == 3, "softmaxAxes is %lld, expected -1", wide(axis));
    for (const char* name : {"scaleQuant", "scaleDequant1", "biasQuantOptional", "biasDequant1Optional"}) plan_columns(p, name, keys);
    for (const char* name : {"scaleDequant2", "biasDequant2Optional"}) plan_columns(p, name, q.dims[3]);
    Dims whole{q.dims[0], q.dims[1], q.dims[2], keys}, both;
    for (const char* name : {"paddingMask1Optional", "paddingMask2Optional"}) {
        if (!p.has(name)) continue;
        const Dims& mask = p.tensor(name).dims;
        bool windows = mask.n == 4 && mask[0] > 0 && whole[0] % mask[0] == 0;  // one for each window of an image
        Dims seen = whole;
        if (windows) seen[0] = mask[0];
        p.require(broadcast(mask, seen, &both) && both == seen, "%s has shape %s for scores %s", name, text(mask).c_str(), text(whole).c_str());
    }
}

// A mask of fewer windows repeats.
Values mask_of(const Run& r, const char* name, const Dims& whole) {
    Values out(size_t(whole.product()), 0);
    if (!r.has(name)) return out;
    const Dims& mask = r.tensor(name).dims;
    Dims seen = whole;
    if (mask.n == 4 && mask[0] > 0) seen[0] = mask[0];
    Values given = r.read<double>(r.tensor(name), seen);
    for (size_t i = 0; i < out.size(); ++i) out[i] = given[i % given.size()];
    return out;
}

void run_score(Run& r) {
    Tensor q = turned(r.tensor("query"), r.flag("queryTranspose"));
    auto x = r.read<double>(q), k = r.read<double>(turned(r.tensor("key"), r.flag("keyTranspose"))), v = r.read<double>(turned(r.tensor("value"), r.flag("valueTranspose")));
    int64_t heads = q.dims[0] * q.dims[1], rows = q.dims[2], size = q.dims[3], keys = int64_t(k.size()) / std::max<int64_t>(heads * size, 1);
    Values scale = columns_of(r, "scaleQuant", keys, 1), shift = columns_of(r, "biasQuantOptional", keys, 0);
    Values first = columns_of(r, "scaleDequant1", keys, 1), whole = columns_of(r, "biasDequant1Optional", keys, 0);
    Values last = columns_of(r, "scaleDequant2", size, 1), added = columns_of(r, "biasDequant2Optional", size, 0), out;
    Dims dims{q.dims[0], q.dims[1], rows, keys};
    Values mask = mask_of(r, "paddingMask1Optional", dims), second = mask_of(r, "paddingMask2Optional", dims);
    for (int64_t row = 0; row < heads * rows; ++row) {
        const double *head = k.data() + row / rows * keys * size, *held = v.data() + row / rows * keys * size;
        Values score;
        double most = -INFINITY, total = 0;
        for (int64_t j = 0; j < keys; ++j) {
            double sum = whole[size_t(j)];
            for (int64_t d = 0; d < size; ++d) sum += x[size_t(row * size + d)] * head[j * size + d];
            score.push_back(sum * first[size_t(j)] + mask[size_t(row * keys + j)] + second[size_t(row * keys + j)]);
            most = std::fmax(most, score.back());
        }
        for (double& s : score) total += s = std::exp(s - most);
        for (size_t j = 0; j < score.size(); ++j) score[j] = score[j] / total * scale[j] + shift[j];
        score = within(score, ACL_INT8);
        for (int64_t d = 0; d < size; ++d) {
            double sum = added[size_t(d)];
            for (int64_t j = 0; j < keys; ++j) sum += score[size_t(j)] * held[j * size + d];
            out.push_back(sum * last[size_t(d)]);
        }
    }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnSwinTransformerLnQkvQuant, plan_layer, run_layer)
ACLNN(aclnnSwinAttentionScoreQuant, plan_score, run_score)
