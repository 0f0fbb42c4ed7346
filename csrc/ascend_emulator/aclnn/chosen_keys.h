// Attention to chosen keys: where the rows of sequences are, packed, padded or in pages, and which of them a query may see.
#pragma once

#include "optional.h"

namespace emu::chosen {

using Values = std::vector<double>;

inline long long wide(int64_t x) { return static_cast<long long>(x); }

// Sequences of queries and keys of one batch element: where their rows begin, how many there are.
struct Span {
    int64_t query, queries, batch, key, keys;
};

inline std::string layout(const Call& c, const char* name) { return given(c, name) && !c.string(name).empty() ? c.string(name) : "BSND"; }

// (B, S, N, D) or (T, N, D)
struct Rows {
    int64_t batch, length, heads, width;
    bool packed;
};

inline Rows rows(const Tensor& t) {
    if (t.rank() == 3) return {1, t.dims[0], t.dims[1], t.dims[2], true};
    return {t.dims[0], t.dims[1], t.dims[2], t.dims[3], false};
}

// What a list of lengths holds; lists called cu... begin with a 0 that says nothing.
inline std::vector<int64_t> lengths(const Run& r, const char* name) {
    for (int i = 0; i < r.function->count; ++i)
        if (std::strcmp(r.function->parameters[i].name, name) == 0 && r.values[size_t(i)].given) {
            auto list = r.function->parameters[i].role == Role::tensor ? r.read<int64_t>(r.tensor(name)) : r.ints(name);
            if (std::strncmp(name, "cu", 2) == 0 && !list.empty()) list.erase(list.begin());
            return list;
        }
    return {};
}

// Lengths of packed rows are running ends; those of padded rows are counts.
inline std::vector<Span> spans(const Run& r, const Rows& q, const Rows& k, bool paged, const char* of_queries, const char* of_keys) {
    auto queries = lengths(r, of_queries), keys = lengths(r, of_keys);
    int64_t batch = q.packed ? std::max<int64_t>(int64_t(queries.size()), 1) : q.batch;
    std::vector<Span> out;
    for (int64_t b = 0; b < batch; ++b) {
        auto at = [&](const std::vector<int64_t>& list, bool ends, int64_t all, int64_t* begin, int64_t* count) {
            if (list.empty()) {
                *begin = ends ? 0 : b * all, *count = all;
            } else {
                if (int64_t(list.size()) <= b) fault("there are %zu lengths for %lld sequences", list.size(), wide(batch));
                *begin = ends ? (b ? list[size_t(b - 1)] : 0) : b * all;
                *count = ends ? list[size_t(b)] - *begin : list[size_t(b)];
            }
            if (*count < 0 || *begin < 0) fault("a sequence has %lld rows", wide(*count));
        };
        Span s{0, 0, b, 0, 0};
        at(queries, q.packed, q.length, &s.query, &s.queries);
        at(keys, k.packed && !paged, k.length, &s.key, &s.keys);
        if (s.query + s.queries > q.batch * q.length) fault("the lengths of the queries go beyond their rows");
        if (!paged && s.key + s.keys > k.batch * k.length) fault("the lengths of the keys go beyond their rows");
        out.push_back(s);
    }
    return out;
}

// The row of key `i` of a sequence: in place, or in the block its table names.
struct Pages {
    std::vector<int64_t> table;
    int64_t per_batch = 0, size = 1, blocks = 0;

    int64_t row(const Span& s, int64_t i) const {
        if (table.empty()) return s.key + i;
        int64_t place = s.batch * per_batch + i / size;
        if (i / size >= per_batch || place >= int64_t(table.size())) fault("blockTable has no block for key %lld", wide(i));
        int64_t block = table[size_t(place)];
        if (block < 0 || block >= blocks) fault("blockTable holds %lld, there are %lld blocks", wide(block), wide(blocks));
        return block * size + i % size;
    }
};

inline Pages pages(const Run& r, const Rows& k) {
    Pages p;
    if (!given(r, "blockTableOptional")) return p;
    p.table = r.read<int64_t>(r.tensor("blockTableOptional"));
    p.per_batch = r.tensor("blockTableOptional").dims.back();
    p.size = k.length, p.blocks = k.batch;
    return p;
}

// Maxima and sums of rows, by heads of the keys.
inline Dims statistics(const Rows& q, const Rows& k) {
    int64_t per = q.heads / k.heads;
    return q.packed ? Dims({k.heads, q.length, per}) : Dims({q.batch, k.heads, q.length, per});
}

inline size_t statistic(const Rows& q, const Rows& k, int64_t row, int64_t h) {
    int64_t per = q.heads / k.heads;
    return size_t(((row / q.length * k.heads + h / per) * q.length + row % q.length) * per + h % per);
}

inline int64_t visible(int64_t mode, const Span& s, int64_t i) { return mode == 3 ? std::max<int64_t>(s.keys - s.queries + i + 1, 0) : s.keys; }

}  // namespace emu::chosen
