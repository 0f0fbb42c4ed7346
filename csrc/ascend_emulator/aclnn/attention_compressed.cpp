// Attention to blocks of keys that were compressed to one each, the blocks of whole keys it finds important, attention to
// those when a model answers, and the compression of the newest block into a cache.
//
// The formulas are those of the paper on natively trainable sparse attention, which the functions' descriptions cite; the
// facts have shapes and types. l, d, l' are the sizes of a compressed block, of the step between two and of a selected block:
//   importance[j] = sum over m < l'/d and n < l/d of p[l'/d * j - m - n], p the weights of attention to the compressed keys,
//   summed over the heads that share a key; places outside have none. The selectBlockCount most important, best first.
// Where topkMaskOptional is true a block is not chosen before any other. Fewer blocks than asked for are followed by -1.
#include "chosen_keys.h"

using namespace emu;
using namespace emu::chosen;

namespace {

struct Sizes {
    int64_t block, step, selected, count;
};

Sizes sizes(const Call& c) {
    return {c.integer("compressBlockSize"), c.integer(has_parameter(c, "compressStride") ? "compressStride" : "compressBlockStride"), c.integer("selectBlockSize"),
            c.integer("selectBlockCount")};
}

void plan_sizes(const Plan& p) {
    Sizes z = sizes(p);
    p.require(z.step > 0 && z.block >= z.step && z.block % z.step == 0 && z.selected >= z.block && z.selected % z.step == 0,
              "a compressed block has %lld keys, a step %lld, a selected block %lld; the step divides both, the selected block is not smaller", wide(z.block), wide(z.step),
              wide(z.selected));
    p.require(z.selected <= 65536, "a selected block has %lld keys, expected at most 65536", wide(z.selected));
    p.require(z.count > 0, "selectBlockCount is %lld", wide(z.count));
}

// p: weights of one query, for every compressed key; out: the chosen blocks.
std::vector<int64_t> choose(const Values& p, const Sizes& z, int64_t blocks, const int64_t* hidden) {
    std::vector<std::pair<double, int64_t>> found;
    for (int64_t j = 0; j < blocks; ++j) {
        double sum = 0;
        for (int64_t m = 0; m < z.selected / z.step; ++m)
            for (int64_t n = 0; n < z.block / z.step; ++n) {
                int64_t at = z.selected / z.step * j - m - n;
                if (at >= 0 && at < int64_t(p.size())) sum += p[size_t(at)];
            }
        found.emplace_back(hidden != nullptr && hidden[j] ? INFINITY : -sum, j);
    }
    std::sort(found.begin(), found.end());
    std::vector<int64_t> out(size_t(z.count), -1);
    for (size_t n = 0; n < std::min(out.size(), found.size()); ++n) out[n] = found[n].second;
    return out;
}

struct Found {
    Values out, top, sum;
    std::vector<int64_t> chosen;
};

struct Hidden {
    std::vector<int64_t> of;
    int64_t columns = 0;
    void read(const Run& r, const char* name) {
        if (!given(r, name)) return;
        of = r.read<int64_t>(r.tensor(name));
        columns = r.tensor(name).dims.back();
    }
    const int64_t* row(int64_t i, int64_t keys, const char* name) const {
        if (of.empty()) return nullptr;
        if (i >= int64_t(of.size()) / columns || keys > columns) fault("%s has no place for query %lld and %lld keys", name, wide(i), wide(keys));
        return of.data() + i * columns;
    }
};

// selected: how many whole keys each sequence has.
Found attend(const Run& r, const Rows& q, const Rows& k, int64_t value_width, const std::vector<Span>& all, const Pages& paged, const std::vector<int64_t>& selected,
             const char* mask, const char* top_mask) {
    auto x = r.read<double>(r.tensor("query")), y = r.read<double>(r.tensor("key")), v = r.read<double>(r.tensor("value"));
    Hidden hidden, never;
    hidden.read(r, mask), never.read(r, top_mask);
    Sizes z = sizes(r);
    int64_t tokens = q.batch * q.length, per = q.heads / k.heads;
    Found f{Values(size_t(tokens * q.heads * value_width), 0), Values(size_t(tokens * q.heads), 0), {}, std::vector<int64_t>(size_t(tokens * k.heads * z.count), -1)};
    f.sum = f.top;
    for (const Span& s : all)
        for (int64_t i = 0; i < s.queries; ++i)
            for (int64_t group = 0; group < k.heads; ++group) {
                Values shared(size_t(s.keys), 0);
                const int64_t* not_seen = hidden.row(i, s.keys, mask);
                for (int64_t h = group * per; h < (group + 1) * per; ++h) {
                    int64_t at = (s.query + i) * q.heads + h;
                    Values p(size_t(s.keys), -INFINITY);
                    double top = -INFINITY, sum = 0;
                    for (int64_t j = 0; j < s.keys; ++j) {
                        if (not_seen != nullptr && not_seen[j]) continue;
                        int64_t place = paged.row(s, j) * k.heads + group;
                        double dot = 0;
                        for (int64_t d = 0; d < q.width; ++d) dot += x[size_t(at * q.width + d)] * y[size_t(place * k.width + d)];
                        p[size_t(j)] = dot * r.real("scaleValue"), top = std::fmax(top, p[size_t(j)]);
                    }
                    for (double& e : p) e = top == -INFINITY ? 0 : std::exp(e - top), sum += e;
                    for (int64_t j = 0; j < s.keys && sum != 0; ++j) {
                        int64_t place = paged.row(s, j) * k.heads + group;
                        shared[size_t(j)] += p[size_t(j)] / sum;
                        for (int64_t d = 0; d < value_width; ++d) f.out[size_t(at * value_width + d)] += p[size_t(j)] / sum * v[size_t(place * value_width + d)];
                    }
                    f.top[size_t(at)] = sum == 0 ? 0 : top, f.sum[size_t(at)] = sum;
                }
                int64_t blocks = (selected[size_t(s.batch)] + z.selected - 1) / z.selected;
                auto best = choose(shared, z, blocks, never.row(i, blocks, top_mask));
                std::copy(best.begin(), best.end(), f.chosen.begin() + ((s.query + i) * k.heads + group) * z.count);
            }
    return f;
}

void plan_training(Plan& p) {
    plan_sizes(p);
    p.require(p.string("inputLayout") == "TND" && p.tensor("query").rank() == 3 && p.tensor("key").rank() == 3 && p.tensor("value").rank() == 3,
              "inputLayout is \"%s\", expected TND with 3 dimensions", p.string("inputLayout").c_str());
    Rows q = rows(p.tensor("query")), k = rows(p.tensor("key"));
    p.require(k.heads > 0 && q.heads % k.heads == 0 && q.width == k.width, "query has shape %s, key %s", text(p.tensor("query").dims).c_str(), text(p.tensor("key").dims).c_str());
    int64_t width = p.tensor("value").dims[2];
    p.shape("value", {k.length, k.heads, width});
    p.require(p.integer("headNum") == q.heads, "headNum is %lld, query has %lld", wide(p.integer("headNum")), wide(q.heads));
    p.require(p.integer("sparseMode") == 0 || p.integer("sparseMode") == 1, "sparseMode is %lld, expected 0 or 1", wide(p.integer("sparseMode")));
    size_t n = p.ints("actualSeqQLenOptional").size();
    p.require(n > 0 && n == p.ints("actualCmpSeqKvLenOptional").size() && n == p.ints("actualSelSeqKvLenOptional").size(),
              "actualSeqQLenOptional, actualCmpSeqKvLenOptional and actualSelSeqKvLenOptional must be given, of one length");
    p.shape("attentionOutOut", {q.length, q.heads, width});
    for (const char* name : {"softmaxMaxOut", "softmaxSumOut"}) p.shape(name, {q.length, q.heads, 8});
    p.shape("topkIndicesOut", {q.length, k.heads, p.integer("selectBlockCount")});
}

void run_training(Run& r) {
    Rows q = rows(r.tensor("query")), k = rows(r.tensor("key"));
    std::vector<int64_t> selected = r.ints("actualSelSeqKvLenOptional");
    for (size_t b = selected.size(); b-- > 1;) selected[b] -= selected[b - 1];
    for (int64_t n : selected)
        if (n < 0) fault("actualSelSeqKvLenOptional falls");
    auto all = spans(r, q, k, false, "actualSeqQLenOptional", "actualCmpSeqKvLenOptional");
    Found f = attend(r, q, k, r.tensor("value").dims[2], all, Pages(), selected, "attenMaskOptional", "topkMaskOptional");
    auto eight = [](const Values& x) {
        Values out;
        for (double v : x) out.insert(out.end(), 8, v);
        return out;
    };
    r.write(r.tensor("attentionOutOut"), f.out);
    r.write(r.tensor("softmaxMaxOut"), eight(f.top));
    r.write(r.tensor("softmaxSumOut"), eight(f.sum));
    r.write(r.tensor("topkIndicesOut"), f.chosen);
}

// -- answering: keys in pages (blocks, page, heads * size); lengths are counts, those of packed queries may be running ends -------
Rows paged_rows(const Call& c, const char* name) {
    const Dims& d = c.tensor(name).dims;
    int64_t heads = c.integer("numKeyValueHeads");
    return d.n == 4 ? Rows{d[0], d[1], d[2], d[3], false} : Rows{d[0], d[1], heads, d[2] / heads, false};
}

void plan_pages(const Plan& p, const char* page) {
    int64_t heads = p.integer("numKeyValueHeads");
    p.require(heads > 0 && p.integer("numHeads") > 0 && p.integer("numHeads") % heads == 0, "numHeads is %lld, numKeyValueHeads %lld", wide(p.integer("numHeads")), wide(heads));
    for (const char* name : {"key", "value"}) {
        const Dims& d = p.tensor(name).dims;
        p.require((d.n == 4 && d[2] == heads) || (d.n == 3 && d[2] % heads == 0), "%s has shape %s for %lld heads", name, text(d).c_str(), wide(heads));
        p.require(d[1] == p.integer(page), "%s has shape %s, %s is %lld", name, text(d).c_str(), page, wide(p.integer(page)));
    }
    const Tensor& q = p.tensor("query");
    p.require(q.rank() == 3 || q.rank() == 4, "query has shape %s", text(q.dims).c_str());
    Rows x = rows(q), k = paged_rows(p, "key"), v = paged_rows(p, "value");
    std::string l = layout(p, "layoutOptional");
    p.require((l == "TND" && x.packed) || (l == "BSND" && !x.packed), "layoutOptional is \"%s\", query has %d dimensions", l.c_str(), q.rank());
    p.require(x.heads == p.integer("numHeads") && x.width == k.width && k.batch == v.batch, "query has shape %s, key %s, value %s", text(q.dims).c_str(),
              text(p.tensor("key").dims).c_str(), text(p.tensor("value").dims).c_str());
    p.require(p.has("blockTableOptional") && p.tensor("blockTableOptional").rank() == 2, "blockTableOptional is needed");
    p.require(p.integer("sparseMode") == 0, "sparseMode is %lld, expected 0", wide(p.integer("sparseMode")));
    Dims out = q.dims;
    out[out.n - 1] = v.width;
    p.shape("output", out);
}

std::vector<Span> answering(const Run& r, const Rows& q, const char* of_keys) {
    std::vector<int64_t> queries = r.ints("actualQSeqLenOptional"), keys = r.ints(of_keys);
    int64_t sum = 0, batch = r.tensor("blockTableOptional").dims[0];
    for (int64_t n : queries) sum += n;
    bool ends = q.packed && !queries.empty() && sum != q.length;
    if (queries.empty()) queries.assign(size_t(batch), q.packed ? q.length / std::max<int64_t>(batch, 1) : q.length);
    if (int64_t(queries.size()) != batch || int64_t(keys.size()) != batch)
        fault("there are %zu lengths of queries and %zu of keys for %lld sequences", queries.size(), keys.size(), wide(batch));
    std::vector<Span> out;
    int64_t at = 0;
    for (int64_t b = 0; b < batch; ++b) {
        int64_t n = ends ? queries[size_t(b)] - at : queries[size_t(b)], first = q.packed ? at : b * q.length;
        if (n < 0 || keys[size_t(b)] < 0 || n > q.length || first + n > q.batch * q.length) fault("a sequence has %lld queries and %lld keys", wide(n), wide(keys[size_t(b)]));
        out.push_back({first, n, b, 0, keys[size_t(b)]});
        at += n;
    }
    return out;
}

void plan_answer(Plan& p) {
    plan_sizes(p);
    plan_pages(p, "pageBlockSize");
    p.require(!p.ints("actualCmpKvSeqLenOptional").empty() && !p.ints("actualSelKvSeqLenOptional").empty(), "actualCmpKvSeqLenOptional and actualSelKvSeqLenOptional are needed");
    p.require(p.ints("actualCmpKvSeqLenOptional").size() == p.ints("actualSelKvSeqLenOptional").size(), "actualCmpKvSeqLenOptional and actualSelKvSeqLenOptional differ in length");
    Dims chosen = p.tensor("query").dims;
    chosen[chosen.n - 2] = p.integer("numKeyValueHeads"), chosen[chosen.n - 1] = p.integer("selectBlockCount");
    p.shape("topKOutput", chosen);
}

void run_answer(Run& r) {
    Rows q = rows(r.tensor("query")), k = paged_rows(r, "key");
    auto all = answering(r, q, "actualCmpKvSeqLenOptional");
    Found f = attend(r, q, k, paged_rows(r, "value").width, all, pages(r, k), r.ints("actualSelKvSeqLenOptional"), "attentionMaskOptional", "topKMaskOptional");
    r.write(r.tensor("output"), f.out);
    r.write(r.tensor("topKOutput"), f.chosen);
}

void plan_selected_answer(Plan& p) {
    plan_pages(p, "pageBlockSize");
    p.require(!p.has("attenMaskOptional"), "attenMaskOptional is reserved");
    p.require(!p.ints("actualKvSeqLenOptional").empty(), "actualKvSeqLenOptional is needed");
    p.require(p.integer("selectBlockSize") >= 1 && p.integer("selectBlockSize") <= INT32_MAX, "selectBlockSize is %lld", wide(p.integer("selectBlockSize")));
    Dims chosen = p.tensor("query").dims;
    chosen[chosen.n - 2] = p.integer("numKeyValueHeads"), chosen[chosen.n - 1] = p.integer("selectBlockCount");
    p.require(p.tensor("topkIndices").numel() == chosen.product(), "topkIndices has shape %s, expected %s", text(p.tensor("topkIndices").dims).c_str(), text(chosen).c_str());
}

void run_selected_answer(Run& r) {
    Rows q = rows(r.tensor("query")), k = paged_rows(r, "key");
    int64_t width = paged_rows(r, "value").width, count = r.integer("selectBlockCount"), size = r.integer("selectBlockSize"), per = q.heads / k.heads;
    auto x = r.read<double>(r.tensor("query")), y = r.read<double>(r.tensor("key")), v = r.read<double>(r.tensor("value"));
    auto indices = r.read<int64_t>(r.tensor("topkIndices"));
    Pages paged = pages(r, k);
    Values out(size_t(r.tensor("output").numel()), 0);
    for (const Span& s : answering(r, q, "actualKvSeqLenOptional"))
        for (int64_t i = 0; i < s.queries * q.heads; ++i) {
            int64_t at = s.query * q.heads + i, head = at % q.heads / per;
            const int64_t* chosen = indices.data() + (at / q.heads * k.heads + head) * count;
            std::vector<int64_t> places;
            Values p;
            double top = -INFINITY, sum = 0;
            for (int64_t c = 0; c < count && chosen[c] >= 0; ++c)
                for (int64_t j = chosen[c] * size; j < std::min((chosen[c] + 1) * size, s.keys); ++j) {
                    int64_t place = paged.row(s, j) * k.heads + head;
                    double dot = 0;
                    for (int64_t d = 0; d < q.width; ++d) dot += x[size_t(at * q.width + d)] * y[size_t(place * k.width + d)];
                    places.push_back(place), p.push_back(dot * r.real("scaleValue")), top = std::fmax(top, p.back());
                }
            for (double& e : p) e = std::exp(e - top), sum += e;
            for (size_t n = 0; n < places.size(); ++n)
                for (int64_t d = 0; d < width; ++d) out[size_t(at * width + d)] += p[n] / sum * v[size_t(places[n] * width + d)];
        }
    r.write(r.tensor("output"), out);
}

// -- the newest block of each sequence, where it is complete ------------------------------------------------------------------
void plan_newest(Plan& p) {
    const Dims& x = p.tensor("input").dims;
    const std::string layout = p.has("layoutOptional") ? p.string("layoutOptional") : "";
    p.require(layout.empty() || layout == "TND", "layoutOptional is \"%s\", expected TND", layout.c_str());
    p.require(x.n == 4 || x.n == 3, "input has shape %s", text(x).c_str());
    p.require((x.n == 4) == p.has("blockTableOptional"), "blockTableOptional belongs to an input of 4 dimensions");
    int64_t heads = x[x.n - 2], size = x[x.n - 1], block = p.integer("compressBlockSize"), step = p.integer("compressStride");
    p.require(block > 0 && step > 0 && block >= step, "compressBlockSize is %lld, compressStride %lld", wide(block), wide(step));
    p.require(x.n == 3 || x[1] == p.integer("pageBlockSize"), "input has shape %s, pageBlockSize is %lld", text(x).c_str(), wide(p.integer("pageBlockSize")));
    p.require(p.integer("actSeqLenType") == 1, "actSeqLenType is %lld, expected 1 (counts)", wide(p.integer("actSeqLenType")));
    p.shape("weight", {block, heads});
    p.require(p.tensor("slotMapping").rank() == 1 && int64_t(p.ints("actSeqLenOptional").size()) == p.tensor("slotMapping").numel(),
              "slotMapping has shape %s for %zu sequences", text(p.tensor("slotMapping").dims).c_str(), p.ints("actSeqLenOptional").size());
    const Dims& cache = p.tensor("outputCache").dims;
    p.require(cache.n == 3 && cache[1] == heads && cache[2] == size, "outputCache has shape %s, expected (.., %lld, %lld)", text(cache).c_str(), wide(heads), wide(size));
    for (const char* name : {"weight", "outputCache"}) p.same_dtype("input", name);
}

void run_newest(Run& r) {
    const Dims& d = r.tensor("input").dims;
    Rows k = d.n == 4 ? Rows{d[0], d[1], d[2], d[3], false} : Rows{1, d[0], d[1], d[2], true};
    auto x = r.read<double>(r.tensor("input")), w = r.read<double>(r.tensor("weight")), cache = r.read<double>(r.tensor("outputCache"));
    auto slots = r.read<int64_t>(r.tensor("slotMapping"));
    Pages paged = pages(r, k);
    int64_t block = r.integer("compressBlockSize"), step = r.integer("compressStride"), room = r.tensor("outputCache").dims[0], at = 0;
    for (size_t b = 0; b < slots.size(); ++b) {
        int64_t n = r.ints("actSeqLenOptional")[b], slot = slots[b];
        Span s{0, 0, int64_t(b), paged.table.empty() ? at : 0, n};
        at += n;
        if (n < 0 || (paged.table.empty() && at > d[0])) fault("actSeqLenOptional holds %lld", wide(n));
        if (n < block || (n - block) % step != 0) continue;
        if (slot < 0 || slot >= room) fault("slotMapping holds %lld, outputCache has %lld places", wide(slot), wide(room));
        for (int64_t i = 0; i < k.heads * k.width; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < block; ++j) sum += w[size_t(j * k.heads + i / k.width)] * x[size_t(paged.row(s, n - block + j) * k.heads * k.width + i)];
            cache[size_t(slot * k.heads * k.width + i)] = sum;
        }
    }
    r.write(r.tensor("outputCache"), cache);
}

}  // namespace

ACLNN(aclnnNsaCompressAttention, plan_training, run_training)
ACLNN(aclnnNsaCompressAttentionInfer, plan_answer, run_answer)
ACLNN(aclnnNsaSelectedAttentionInfer, plan_selected_answer, run_selected_answer)
ACLNN(aclnnNsaCompressWithCache, plan_newest, run_newest)
