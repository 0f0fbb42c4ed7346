// Attention to keys of one or two sources (all keys, or a window of them and compressed ones), packed, padded or in pages, with
// sinks; what flows back; and the scores that choose compressed keys.
//
// The facts of these functions have shapes and types at most. Masks, from the bottom right corner: 0 none, 3 a query sees the
// keys up to its own, 4 those from winLeft before it to winRight behind it (negative: all). Of compressed keys a query sees
// those whose cmpRatio keys it sees all; there may be keys that are not compressed yet (cmpResidualKv). A sink is a logit that
// has no value. Places that hold -1 choose nothing, whatever topkValueMode says, which is not described; schedules are not looked
// into. The logarithms of the sums stand by head and query, those of packed queries by query and head.
#include "chosen_keys.h"
#include "view.h"

using namespace emu;
using namespace emu::chosen;

namespace {

std::string layout_of(const Call& c, std::initializer_list<const char*> names, const char* usual) {
    for (const char* name : names)
        if (given(c, name) && !c.string(name).empty()) return c.string(name);
    return usual;
}

bool heads_first(const std::string& layout) { return layout == "BNSD" || layout == "PA_BNBD"; }
bool in_pages(const std::string& layout) { return layout.compare(0, 3, "PA_") == 0; }

// Rows by heads, whatever the layout.
Tensor arranged(const Tensor& t, const std::string& layout) { return heads_first(layout) ? permuted(t, {0, 2, 1, 3}) : t; }

// The names that a function has for what all of them have, of one source.
struct Names {
    const char *key, *value, *indices, *many, *table, *ends, *used, *mode, *left, *right;
    bool compressed;
};

constexpr Names kAll{"k", "v", "", "", "blockTableOptional", "cuSeqlensKvOptional", "sequsedKvOptional", "maskMode", "winLeft", "winRight", false};
constexpr Names kOriginal{"oriKvOptional", "oriKvOptional", "oriSparseIndicesOptional", "oriTopkLengthOptional", "oriBlockTableOptional", "cuSeqlensOriKvOptional",
                          "sequsedOriKvOptional", "oriMaskMode", "oriWinLeft", "oriWinRight", false};
constexpr Names kCompressed{"cmpKvOptional", "cmpKvOptional", "cmpSparseIndicesOptional", "cmpTopkLengthOptional", "cmpBlockTableOptional", "cuSeqlensCmpKvOptional",
                            "sequsedCmpKvOptional", "cmpMaskMode", "", "", true};

const char* query_name(const Call& c) { return has_parameter(c, "query") ? "query" : "q"; }
const char* scale_name(const Call& c) { return has_parameter(c, "scaleValue") ? "scaleValue" : "softmaxScale"; }
std::string query_layout(const Call& c) { return layout_of(c, {"layoutQ", "layoutQOptional"}, "BSND"); }
std::string out_layout(const Call& c) { return layout_of(c, {"layoutOut"}, query_layout(c).c_str()); }
std::string key_layout(const Call& c) { return layout_of(c, {"layoutKv", "layoutKvOptional"}, "BSND"); }

std::vector<Names> sources(const Call& c) {
    if (has_parameter(c, "k")) return {kAll};
    std::vector<Names> out;
    for (const Names& n : {kOriginal, kCompressed})
        if (c.has(n.key) && c.tensor(n.key).numel() > 0) out.push_back(n);
    return out;
}

void plan_layouts(const Plan& p) {
    std::string q = query_layout(p), k = key_layout(p);
    p.require(q == "BSND" || q == "BNSD" || q == "TND", "the queries' layout is \"%s\"", q.c_str());
    p.require(k == "BSND" || k == "BNSD" || k == "TND" || k == "PA_BBND" || k == "PA_BNBD", "the keys' layout is \"%s\"", k.c_str());
    p.require(p.tensor(query_name(p)).rank() == (q == "TND" ? 3 : 4), "%s has shape %s, its layout is %s", query_name(p), text(p.tensor(query_name(p)).dims).c_str(), q.c_str());
    p.require(q != "TND" || given(p, "cuSeqlensQOptional"), "cuSeqlensQOptional is needed where queries are packed");
    p.require((q == "TND") == (k == "TND") || in_pages(k), "the layouts are %s and %s", q.c_str(), k.c_str());
    p.require(q == "TND" || !given(p, "cuSeqlensQOptional"), "cuSeqlensQOptional belongs to packed queries");
    if (has_parameter(p, "topkValueMode")) {
        int64_t mode = p.integer("topkValueMode");
        p.require(mode == 0 || mode == 1, "topkValueMode is %lld, expected 0 or 1", wide(mode));
    }
}

void plan_source(const Plan& p, const Names& n, const Rows& q) {
    std::string layout = key_layout(p);
    const Tensor& key = p.tensor(n.key);
    p.require(key.rank() == (layout == "TND" ? 3 : 4), "%s has shape %s, its layout is %s", n.key, text(key.dims).c_str(), layout.c_str());
    Rows k = rows(arranged(key, layout));
    p.require(k.width == q.width && k.heads > 0 && q.heads % k.heads == 0, "%s has shape %s for %lld heads of %lld", n.key, text(key.dims).c_str(), wide(q.heads), wide(q.width));
    p.require(layout != "TND" || given(p, n.ends), "%s is needed where keys are packed", n.ends);
    p.require(layout == "TND" || !given(p, n.ends), "%s belongs to packed keys", n.ends);
    p.require(in_pages(layout) == given(p, n.table), "%s belongs to keys in pages", n.table);
    p.require(!in_pages(layout) || given(p, n.used), "%s is needed where keys are in pages", n.used);
    int64_t mode = p.integer(n.mode);
    p.require(mode == 0 || mode == 3 || (mode == 4 && !n.compressed), "%s is %lld; the emulator computes 0, 3 and, of whole keys, 4", n.mode, wide(mode));
    if (n.compressed) p.require(p.integer("cmpRatio") >= 1 && p.integer("cmpRatio") <= INT32_MAX, "cmpRatio is %lld", wide(p.integer("cmpRatio")));
    if (!given(p, n.indices)) return;
    const Dims& chosen = p.tensor(n.indices).dims;
    p.require(chosen.n > 0 && chosen.product() == q.batch * q.length * k.heads * chosen.back(), "%s has shape %s", n.indices, text(chosen).c_str());
    if (given(p, n.many)) p.require(p.tensor(n.many).numel() == q.batch * q.length * k.heads, "%s has shape %s", n.many, text(p.tensor(n.many).dims).c_str());
}

Rows plan_sources(const Plan& p) {
    plan_layouts(p);
    Rows q = rows(arranged(p.tensor(query_name(p)), query_layout(p)));
    auto all = sources(p);
    p.require(!all.empty(), "oriKvOptional or cmpKvOptional is needed");
    for (const Names& n : all) plan_source(p, n, q);
    if (given(p, "sinksOptional")) p.shape("sinksOptional", {q.heads});
    return q;
}

// -- what a query sees -------------------------------------------------------------------------------------------------------
struct Source {
    Names names;
    Rows k;
    Values key, value, dkey;
    int64_t value_width;
    Pages pages;
    std::vector<Span> spans;
    std::vector<int64_t> indices, many, residual;
    int64_t count = 0, mode, left = -1, right = -1, ratio = 1;
    Values along;  // weights of the chosen, all heads of a key together

    Source(const Run& r, const Names& n, const Rows& q) : names(n), mode(r.integer(n.mode)) {
        std::string layout = key_layout(r);
        Tensor keys = arranged(r.tensor(n.key), layout), values = arranged(r.tensor(n.value), layout);
        k = rows(keys);
        key = r.read<double>(keys), value = r.read<double>(values), value_width = values.dims.back();
        dkey.resize(key.size());
        if (given(r, n.table)) {
            pages.table = r.read<int64_t>(r.tensor(n.table));
            pages.per_batch = r.tensor(n.table).dims.back(), pages.size = k.length, pages.blocks = k.batch;
        }
        spans = chosen::spans(r, q, k, !pages.table.empty(), q.packed ? "cuSeqlensQOptional" : "sequsedQOptional", k.packed ? n.ends : n.used);
        clip(r, q.packed ? "sequsedQOptional" : "", &Span::queries);
        clip(r, k.packed ? n.used : "", &Span::keys);
        if (mode == 4) left = std::min<int64_t>(r.integer(n.left), INT32_MAX), right = std::min<int64_t>(r.integer(n.right), INT32_MAX);
        if (n.compressed) ratio = r.integer("cmpRatio");
        if (n.compressed && given(r, "cmpResidualKvOptional")) {
            residual = r.read<int64_t>(r.tensor("cmpResidualKvOptional"));
            if (residual.size() != spans.size()) fault("cmpResidualKvOptional has %zu elements for %zu sequences", residual.size(), spans.size());
        }
        if (!given(r, n.indices)) return;
        indices = r.read<int64_t>(r.tensor(n.indices)), count = r.tensor(n.indices).dims.back();
        along.resize(indices.size());
        if (given(r, n.many)) many = r.read<int64_t>(r.tensor(n.many));
    }
    // Of packed rows fewer may be used than there are.
    void clip(const Run& r, const char* name, int64_t Span::*what) {
        auto used = lengths(r, name);
        if (!used.empty() && used.size() != spans.size()) fault("%s has %zu elements for %zu sequences", name, used.size(), spans.size());
        for (size_t b = 0; b < used.size(); ++b) {
            if (used[b] < 0 || used[b] > spans[b].*what) fault("%s holds %lld of %lld rows", name, wide(used[b]), wide(spans[b].*what));
            spans[b].*what = used[b];
        }
    }
    // The keys of head `h` that query `i` of a sequence sees: places in `key`, and among the chosen (or -1).
    void seen(const Span& s, int64_t i, int64_t h, std::vector<std::pair<int64_t, int64_t>>* out) const {
        int64_t whole = s.keys * ratio + (residual.empty() ? 0 : residual[size_t(s.batch)]), own = whole - s.queries + i;
        int64_t first = mode == 4 && left >= 0 ? std::max<int64_t>(own - left, 0) : 0, last = s.keys;
        if (mode == 3) last = std::min(last, std::max<int64_t>(own + 1, 0) / ratio);
        if (mode == 4 && right >= 0) last = std::min(last, own + right + 1);
        auto add = [&](int64_t j, int64_t place) {
            if (j >= first && j < last) out->emplace_back(pages.row(s, j) * k.heads + h, place);
        };
        if (indices.empty()) {
            for (int64_t j = first; j < last; ++j) add(j, -1);
            return;
        }
        int64_t row = (s.query + i) * k.heads + h, use = many.empty() ? count : std::min(std::max<int64_t>(many[size_t(row)], 0), count);
        for (int64_t c = 0; c < use; ++c)
            if (indices[size_t(row * count + c)] >= 0) add(indices[size_t(row * count + c)], row * count + c);
    }
};

struct Look {
    Source* from;
    int64_t key, place;
    double logit;
};

// f(row of the query times heads plus head, head, what it sees)
template <class F>
void each_query(const Run& r, const Rows& q, const Values& x, std::vector<Source>& all, F f) {
    double scale = r.real(scale_name(r));
    for (size_t b = 0; b < all[0].spans.size(); ++b)
        for (int64_t i = 0; i < all[0].spans[b].queries; ++i)
            for (int64_t h = 0; h < q.heads; ++h) {
                std::vector<Look> looks;
                int64_t at = (all[0].spans[b].query + i) * q.heads + h;
                for (Source& s : all) {
                    std::vector<std::pair<int64_t, int64_t>> found;
                    s.seen(s.spans.at(b), i, h / (q.heads / s.k.heads), &found);
                    for (auto [key, place] : found) {
                        double dot = 0;
                        for (int64_t d = 0; d < q.width; ++d) dot += x[size_t(at * q.width + d)] * s.key[size_t(key * q.width + d)];
                        looks.push_back({&s, key, place, dot * scale});
                    }
                }
                f(at, h, looks);
            }
}

std::vector<Source> read_sources(const Run& r, const Rows& q) {
    std::vector<Source> out;
    for (const Names& n : sources(r)) out.emplace_back(r, n, q);
    for (const Source& s : out)
        if (s.spans.size() != out[0].spans.size()) fault("there are %zu and %zu sequences", out[0].spans.size(), s.spans.size());
    return out;
}

Dims log_dims(const Rows& q) { return q.packed ? Dims({q.length, q.heads, 1}) : Dims({q.batch, q.heads, q.length, 1}); }
size_t log_place(const Rows& q, int64_t at) {
    int64_t row = at / q.heads;
    return q.packed ? size_t(at) : size_t((row / q.length * q.heads + at % q.heads) * q.length + row % q.length);
}

const char* out_name(const Call& c) { return has_parameter(c, "attnOut") ? "attnOut" : "attnOutOut"; }
const char* log_name(const Call& c) {
    return has_parameter(c, "softmaxLse") ? "softmaxLse" : has_parameter(c, "softmaxLseOptional") ? "softmaxLseOptional" : "softmaxLseOutOptional";
}
bool wants_log(const Call& c) { return has_parameter(c, "k") ? c.integer("returnSoftmaxLse") != 0 : c.flag("returnSoftmaxLse"); }

void plan_forward(Plan& p) {
    Rows q = plan_sources(p);
    std::string layout = out_layout(p);
    p.require((layout == "TND") == q.packed && (q.packed || layout == "BSND" || layout == "BNSD"), "layoutOut is \"%s\", layoutQ \"%s\"; packed results belong to packed queries", layout.c_str(),
              query_layout(p).c_str());
    Dims want = arranged(p.tensor(query_name(p)), query_layout(p)).dims;
    want[want.n - 1] = p.tensor(sources(p)[0].value).dims.back();
    if (heads_first(layout)) std::swap(want[1], want[2]);
    p.shape(out_name(p), want);
    if (has_parameter(p, "k")) {
        Dims value = p.tensor("v").dims;
        value[value.n - 1] = p.tensor("k").dims.back();
        p.require(value == p.tensor("k").dims, "k has shape %s, v %s", text(p.tensor("k").dims).c_str(), text(p.tensor("v").dims).c_str());
        p.require(!p.has("attnMaskOptional") || p.integer("maskMode") != 0, "attnMaskOptional belongs to maskMode 3 and 4");
        for (const char* name : {"q", "k", "v", "attnOut"})
            p.require(p.tensor(name).dtype == p.tensor("q").dtype && is_real(p.tensor("q").dtype), "%s has dtype %s", name, dtype_name(p.tensor(name).dtype));
    }
    if (!wants_log(p)) return;
    p.require(p.has(log_name(p)), "returnSoftmaxLse is set and %s is null", log_name(p));
    p.require(p.tensor(log_name(p)).numel() == log_dims(q).product(), "%s has shape %s, expected the elements of %s", log_name(p), text(p.tensor(log_name(p)).dims).c_str(),
              text(log_dims(q)).c_str());
}

void run_forward(Run& r) {
    Tensor query = arranged(r.tensor(query_name(r)), query_layout(r)), to = arranged(r.tensor(out_name(r)), out_layout(r));
    Rows q = rows(query);
    auto x = r.read<double>(query);
    auto all = read_sources(r, q);
    Values sinks, out(size_t(to.numel()), 0), logs(size_t(log_dims(q).product()), INFINITY);
    if (given(r, "sinksOptional")) sinks = r.read<double>(r.tensor("sinksOptional"));
    int64_t width = to.dims.back();
    each_query(r, q, x, all, [&](int64_t at, int64_t h, std::vector<Look>& looks) {
        double top = sinks.empty() ? -INFINITY : sinks[size_t(h)], sum = 0;
        for (const Look& l : looks) top = std::fmax(top, l.logit);
        if (!sinks.empty()) sum = std::exp(sinks[size_t(h)] - top);
        for (Look& l : looks) l.logit = std::exp(l.logit - top), sum += l.logit;
        for (const Look& l : looks)
            for (int64_t d = 0; d < width; ++d) out[size_t(at * width + d)] += l.logit / sum * l.from->value[size_t(l.key * width + d)];
        if (sum > 0) logs[log_place(q, at)] = top + std::log(sum);
    });
    r.write(to, out);
    if (wants_log(r)) r.write(r.tensor(log_name(r)), logs);
}

// -- back: keys are values ---------------------------------------------------------------------------------------------------
void plan_backward(Plan& p) {
    Rows q = plan_sources(p);
    for (const char* name : {"dOut", "out", "dQueryOut"}) p.same_shape("query", name);
    p.require(p.tensor("lse").numel() == log_dims(q).product(), "lse has shape %s, expected the elements of %s", text(p.tensor("lse").dims).c_str(), text(log_dims(q)).c_str());
    for (const Names& n : sources(p)) {
        const char *d = n.compressed ? "dCmpKvOutOptional" : "dOriKvOutOptional", *weights = n.compressed ? "cmpSoftmaxL1NormOptional" : "oriSoftmaxL1NormOptional";
        p.require(p.has(d), "%s is null", d);
        p.same_shape(n.key, d);
        if (!p.has(weights)) continue;
        p.require(p.has(n.indices), "%s needs %s", weights, n.indices);
        p.same_shape(n.indices, weights);
    }
    if (p.has("sinksOptional")) {
        p.require(p.has("dSinksOutOptional"), "dSinksOutOptional is null");
        p.same_shape("sinksOptional", "dSinksOutOptional");
    }
}

void run_backward(Run& r) {
    Rows q = rows(r.tensor("query"));
    auto x = r.read<double>(r.tensor("query")), g = r.read<double>(r.tensor("dOut")), out = r.read<double>(r.tensor("out")), logs = r.read<double>(r.tensor("lse"));
    auto all = read_sources(r, q);
    Values dx(x.size(), 0), sinks, dsinks;
    if (r.has("sinksOptional")) sinks = r.read<double>(r.tensor("sinksOptional")), dsinks.resize(sinks.size());
    double scale = r.real("scaleValue");
    size_t width = size_t(q.width);
    each_query(r, q, x, all, [&](int64_t at, int64_t h, std::vector<Look>& looks) {
        size_t row = size_t(at) * width;
        double along = 0, log = logs[log_place(q, at)];
        for (size_t d = 0; d < width; ++d) along += g[row + d] * out[row + d];
        if (!sinks.empty()) dsinks[size_t(h)] -= std::exp(sinks[size_t(h)] - log) * along;
        for (const Look& l : looks) {
            size_t key = size_t(l.key) * width;
            double weight = std::exp(l.logit - log), dp = 0;
            for (size_t d = 0; d < width; ++d) dp += g[row + d] * l.from->key[key + d];
            double ds = weight * (dp - along) * scale;
            for (size_t d = 0; d < width; ++d) {
                dx[row + d] += ds * l.from->key[key + d];
                l.from->dkey[key + d] += ds * x[row + d] + weight * g[row + d];
            }
            if (l.place >= 0) l.from->along[size_t(l.place)] += weight / double(q.heads / l.from->k.heads);
        }
    });
    r.write(r.tensor("dQueryOut"), dx);
    for (const Source& s : all) {
        r.write(r.tensor(s.names.compressed ? "dCmpKvOutOptional" : "dOriKvOutOptional"), s.dkey);
        const char* weights = s.names.compressed ? "cmpSoftmaxL1NormOptional" : "oriSoftmaxL1NormOptional";
        if (r.has(weights)) r.write(r.tensor(weights), s.along);
    }
    if (!sinks.empty()) r.write(r.tensor("dSinksOutOptional"), dsinks);
}

}  // namespace

ACLNN(aclnnFlashAttn, plan_forward, run_forward)
ACLNN(aclnnInnerFlashAttn, plan_forward, run_forward)
ACLNN(aclnnSparseFlashMla, plan_forward, run_forward)
ACLNN(aclnnSparseFlashMlaGrad, plan_backward, run_backward)
