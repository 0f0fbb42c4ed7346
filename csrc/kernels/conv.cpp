// Convolution and its gradients in float32 and float64, of one to three dimensions, strided, dilated, in groups.
// Invariant: what a kernel reads of the planes is a copy with zeros around it (`Padded`), long enough for every place
// that a window reaches and for whole vectors behind the last; so no loop asks whether it is inside. Each sum runs in
// an order that depends on the shapes alone.
//
// Every case is one form: sums over k of weight[row][k] * copy[offset[k] + place], for all places of a grid that lie
// side by side in the copy. Strides of the width are made so by sorting the copy's columns by their remainder; the
// gradient of the input, whose places at a distance of one stride see the same taps, is one such form for each
// remainder. Where a group has several rows the sums are products of packed panels (gemm.h), packed straight from the
// copy; where it has one or few, each row is summed by itself.
//
// Operands are dense: storage, offset, code. Triples are tuples of three ints (depth, height, width).
//   conv(x.., weight.., bias.., out.., images, groups, channels, results, in, out, kernel, stride, padding, dilation)
//       channels and results: of one group; bias None: no bias
//   conv_input(grad.., weight.., None, 0, 0, dx.., the same)        the gradient of x; a transposed convolution
//   conv_weight(grad.., x.., None, 0, 0, dweight.., the same)
// They return False, with nothing written, for shapes whose copies would be out of proportion.
#include "gemm.h"
#include "lanes.h"
#include "windows.h"
#include "winograd.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

// Places of a result, or a part of them: images, then planes of three dimensions.
struct Grid {
    int64_t n, z, y, x;
    int64_t size() const { return n * z * y * x; }
};
// What lies between neighbours of a grid in memory.
struct Pitch {
    int64_t n, z, y, x;
    int64_t at(int64_t n_, int64_t z_, int64_t y_, int64_t x_) const { return n_ * n + z_ * z + y_ * y + x_ * x; }
};

// How planes are copied: the copy's element (z, y, x) is the plane's (z - low.z, ...), or zero. Columns are sorted by
// their remainder by `split`, `columns` of each.
struct Padded {
    Triple in, low, size;
    int64_t split, columns;
    int64_t row() const { return split * columns; }
    int64_t plane() const { return size.d * size.h * row(); }
};

constexpr int64_t SLACK = 64;            // elements behind a copy: vectors read past the last place
constexpr int64_t COPY_BYTES = 1 << 24;  // of images that are copied at a time, unless one is larger
constexpr int64_t FEW_ROWS = 3;          // rows of a group up to which each is summed by itself ...
constexpr int64_t FEW_TAPS = 128;        // ... where k is no more than this: it is read anew for every few places

template <class A> MT_INLINE void copy_plane(const A* from, A* to, const Padded& v) {
    for (int64_t z = 0; z < v.size.d; ++z)
        for (int64_t y = 0; y < v.size.h; ++y, to += v.row()) {
            const int64_t a = z - v.low.d, b = y - v.low.h;
            if (a < 0 || a >= v.in.d || b < 0 || b >= v.in.h) {
                std::fill(to, to + v.row(), A(0));
                continue;
            }
            const A* row = from + (a * v.in.h + b) * v.in.w;
            for (int64_t s = 0; s < v.split; ++s) {
                // Column c of this remainder is the row's element c * split + s - low.
                A* line = to + s * v.columns;
                const int64_t first = s - v.low.w;
                int64_t begin = first >= 0 ? 0 : ceil_div(-first, v.split);
                int64_t end = v.in.w > first ? ceil_div(v.in.w - first, v.split) : 0;
                begin = std::min(begin, v.columns);
                end = std::max(begin, std::min(end, v.columns));
                std::fill(line, line + begin, A(0));
                if (v.split == 1) std::copy(row + first + begin, row + first + end, line + begin);
                else if (v.split == 2)
                    for (int64_t c = begin; c < end; ++c) line[c] = row[c * 2 + first];
                else
                    for (int64_t c = begin; c < end; ++c) line[c] = row[c * v.split + first];
                std::fill(line + end, line + v.columns, A(0));
            }
        }
}

// A stretch of places side by side: `start` counts from the beginning of a panel or block.
struct Run {
    int64_t start, length, from, to;
};

// The stretches of places [begin, end), cut where a row ends and every `width` places.
void find_runs(const Grid& g, const Pitch& from, const Pitch& to, int64_t begin, int64_t end, int64_t width,
               std::vector<Run>& runs) {
    runs.clear();
    int64_t x = begin % g.x, rest = begin / g.x;
    int64_t y = rest % g.y;
    rest /= g.y;
    int64_t z = rest % g.z, n = rest / g.z;
    for (int64_t at = begin; at < end;) {
        const int64_t left = width - (at - begin) % width;
        const int64_t length = std::min(std::min(g.x - x, end - at), left);
        runs.push_back({at - begin, length, from.at(n, z, y, x), to.at(n, z, y, x)});
        at += length;
        x += length;
        if (x < g.x) continue;
        x = 0;
        if (++y < g.y) continue;
        y = 0;
        if (++z < g.z) continue;
        z = 0;
        ++n;
    }
}

// One form of sums, for all groups.
template <class A> struct Form {
    Grid grid;
    Pitch from, to;               // of the copy and of the result
    std::vector<int64_t> offset;  // of each k in a group's copy
    int64_t groups, rows;         // rows: results of a group
    int64_t group_from, row_to;   // group's planes in the copy; row's plane in the result
    const A* copy;
    A* out;
    const A* bias;  // of all rows, or null
    int64_t k() const { return (int64_t)offset.size(); }
    // k of a packed block. Short sums of gradients in shorter ones: PyTorch adds them tap by tap, which rounds better.
    bool gradient;
    int64_t depth() const {
        const int64_t most = gradient && k() <= 128 ? 32 : gradient && k() <= KC ? 64 : KC;
        return k() <= most ? k() : ceil_div(ceil_div(k(), ceil_div(k(), most)), 8) * 8;
    }
    bool by_rows() const { return rows <= FEW_ROWS && k() <= FEW_TAPS; }
};

// The weights of a form, by group, row and k.
template <class A> struct Weights {
    const A* data;
    int64_t group, row;
    std::vector<int64_t> place;  // of each k
    A at(int64_t g, int64_t r, size_t k) const { return data[g * group + r * row + place[k]]; }
};

// ---------------------------------------------------------------- each row by itself

// V vectors of places in each of R rows: as many sums as it takes to keep the units busy while one waits for the other.
template <class A, int R, int V>
MT_INLINE void sum_vectors(const A* from, int64_t from_row, const int64_t* offset, const A* w, int64_t k, A start,
                           A* to, int64_t to_row) {
    typedef A Vector __attribute__((vector_size(32)));
    typedef A Loose __attribute__((vector_size(32), aligned(alignof(A)), may_alias));
    constexpr int LANES = 32 / sizeof(A);
    Vector sum[R][V];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[r][v] = Vector{} + start;
    for (int64_t p = 0; p < k; ++p) {
        const A* at = from + offset[p];
        const A x = w[p];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v)
                sum[r][v] += x * Vector(*reinterpret_cast<const Loose*>(at + r * from_row + v * LANES));
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) *reinterpret_cast<Loose*>(to + r * to_row + v * LANES) = sum[r][v];
}

// R rows of n places. Whole vectors are written where they belong, the last ones over a part of their neighbours; only
// rows shorter than a vector, or with gaps, go by way of `edge`, and vectors run past their last place in what they read.
template <class A, int R>
MT_INLINE void sum_lines(const A* from, int64_t from_row, const int64_t* offset, const A* w, int64_t k, A start, A* to,
                         int64_t to_row, int64_t step, int64_t n) {
    constexpr int LANES = 32 / sizeof(A), MOST = R == 1 ? 4 : 2;
    if (step == 1 && n >= LANES) {
        int64_t x = 0;
        for (; x + MOST * LANES <= n; x += MOST * LANES)
            sum_vectors<A, R, MOST>(from + x, from_row, offset, w, k, start, to + x, to_row);
        if (MOST == 4 && x + 2 * LANES <= n) {
            sum_vectors<A, R, 2>(from + x, from_row, offset, w, k, start, to + x, to_row);
            x += 2 * LANES;
        }
        if (n - x > LANES && n >= 2 * LANES) {
            x = n - 2 * LANES;
            sum_vectors<A, R, 2>(from + x, from_row, offset, w, k, start, to + x, to_row);
            return;
        }
        for (; x < n; x += LANES) {
            const int64_t at = x + LANES <= n ? x : n - LANES;
            sum_vectors<A, R, 1>(from + at, from_row, offset, w, k, start, to + at, to_row);
        }
        return;
    }
    A edge[R * 2 * LANES];
    for (int64_t x = 0; x < n; x += 2 * LANES) {
        const int64_t left = n - x;
        if (left > LANES) sum_vectors<A, R, 2>(from + x, from_row, offset, w, k, start, edge, 2 * LANES);
        else sum_vectors<A, R, 1>(from + x, from_row, offset, w, k, start, edge, 2 * LANES);
        const int64_t count = left < 2 * LANES ? left : 2 * LANES;
        for (int r = 0; r < R; ++r)
            for (int64_t i = 0; i < count; ++i) to[r * to_row + (x + i) * step] = edge[r * 2 * LANES + i];
    }
}

template <class A> void sum_rows(const Form<A>& f, const Weights<A>& weights) {
    const Grid& g = f.grid;
    const int64_t each = saturated_mul(g.z * g.y * g.x, f.k() + 2);
    parallel_for(checked_numel({g.n, f.groups, f.rows}), std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each / 4)),
                 [&](int64_t begin, int64_t end) {
                     std::vector<A> w(f.offset.size());
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t r = t % f.rows, group = t / f.rows % f.groups, n = t / f.rows / f.groups;
                         for (size_t p = 0; p < w.size(); ++p) w[p] = weights.at(group, r, p);
                         const int64_t row = group * f.rows + r;
                         const A start = f.bias ? f.bias[row] : A(0);
                         const A* from = f.copy + group * f.group_from;
                         A* to = f.out + row * f.row_to;
                         at_level(MT_BODY {
                             for (int64_t z = 0; z < g.z; ++z) {
                                 int64_t y = 0;
                                 for (; y + 4 <= g.y; y += 4)
                                     sum_lines<A, 4>(from + f.from.at(n, z, y, 0), f.from.y, f.offset.data(), w.data(),
                                                     f.k(), start, to + f.to.at(n, z, y, 0), f.to.y, f.to.x, g.x);
                                 for (; y < g.y; ++y)
                                     sum_lines<A, 1>(from + f.from.at(n, z, y, 0), f.from.y, f.offset.data(), w.data(),
                                                     f.k(), start, to + f.to.at(n, z, y, 0), f.to.y, f.to.x, g.x);
                             }
                         });
                     }
                 });
}

// ---------------------------------------------------------------- products of packed panels

// k rows of NR places from the copy; a stretch is copied with whole vectors, and what it spoils is written after it.
template <class A, int NR>
MT_INLINE void pack_runs(A* panel, const A* from, const int64_t* offset, int64_t k, const Run* run, const Run* last) {
    if (run + 1 == last) {
        for (int64_t p = 0; p < k; ++p, panel += NR) {
            const A* at = from + run->from + offset[p];
            __builtin_memcpy(panel, at, NR * sizeof(A));
        }
        return;
    }
    const int64_t base = run->start;
    for (int64_t p = 0; p < k; ++p, panel += NR)
        for (const Run* r = run; r != last; ++r) {
            const A* at = from + r->from + offset[p];
            A* to = panel + (r->start - base);
            __builtin_memcpy(to, at, NR * sizeof(A));
        }
}
template <class A>
void pack_places(int nr, A* panel, const A* from, const int64_t* offset, int64_t k, const Run* run, const Run* last) {
    at_level(MT_BODY {
        if (nr == 16) pack_runs<A, 16>(panel, from, offset, k, run, last);
        else if (nr == 8) pack_runs<A, 8>(panel, from, offset, k, run, last);
        else if (nr == 32) pack_runs<A, 32>(panel, from, offset, k, run, last);
        else pack_runs<A, 4>(panel, from, offset, k, run, last);
    });
}

// The weights of all groups as panels: by group, block of k, panel of rows.
template <class A> void pack_weights(const Engine<A>& e, const Form<A>& f, const Weights<A>& w, A* packed) {
    const int64_t k = f.k(), depth = f.depth(), panels = ceil_div(f.rows, e.mr), padded = panels * e.mr;
    bool dense = true;
    for (size_t p = 1; p < w.place.size(); ++p) dense &= w.place[p] == w.place[0] + (int64_t)p;
    const int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, k * e.mr));
    parallel_for(f.groups * panels, grain, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t group = t / panels, first = t % panels * e.mr,
                          lines = std::min<int64_t>(e.mr, f.rows - first);
            for (int64_t p = 0; p < k; p += depth) {
                const int64_t kb = std::min(depth, k - p);
                A* to = packed + (group * k + p) * padded + first * kb;
                const A* from = w.data + group * w.group + first * w.row;
                if (dense) {
                    e.pack(to, e.mr, from + w.place[0] + p, w.row, 1, lines, kb);
                    continue;
                }
                for (int64_t q = 0; q < kb; ++q, to += e.mr) {
                    const A* at = from + w.place[(size_t)(p + q)];
                    for (int64_t i = 0; i < lines; ++i) to[i] = at[i * w.row];
                    for (int64_t i = lines; i < e.mr; ++i) to[i] = 0;
                }
            }
        }
    });
}

// A block of places of one group. Sums go to the result where its places lie side by side, else by way of `sums`.
template <class A>
void block_of_places(const Engine<A>& e, const Form<A>& f, const A* packed, int64_t group, int64_t begin, int64_t end,
                     A* panels, A* sums, std::vector<Run>& runs) {
    const int64_t k = f.k(), depth = f.depth(), padded = ceil_div(f.rows, e.mr) * e.mr, count = end - begin;
    find_runs(f.grid, f.from, f.to, begin, end, e.nr, runs);
    bool dense = f.to.x == 1;
    for (size_t r = 1; r < runs.size() && dense; ++r) dense = runs[r].to == runs[r - 1].to + runs[r - 1].length;
    A* out = f.out + group * f.rows * f.row_to;
    const A* bias = f.bias ? f.bias + group * f.rows : nullptr;
    const Sink<A> to{dense ? out + runs[0].to : sums, dense ? f.row_to : count, 1, bias, 1, 0, A(1), A(bias ? 1 : 0)};
    // Few rows are not worth a panel whose places lie side by side.
    const bool in_place = f.rows <= 4 * e.mr;
    for (int64_t p = 0; p < k; p += depth) {
        const int64_t kb = std::min(depth, k - p);
        const Run* run = runs.data();
        const Run* const last = run + runs.size();
        for (int64_t j = 0; j < count; j += e.nr) {
            const Run* next = run;
            while (next != last && next->start < j + e.nr) ++next;
            const A* from = f.copy + group * f.group_from;
            if (in_place && run + 1 == next) {
                for (int64_t i = 0; i < f.rows; i += e.mr)
                    sink_tile(e, packed + (group * k + p) * padded + i * kb, from + run->from, kb, to, i, j,
                              std::min<int64_t>(e.mr, f.rows - i), std::min<int64_t>(e.nr, count - j), p == 0,
                              f.offset.data() + p);
                run = next;
                continue;
            }
            pack_places(e.nr, panels, from, f.offset.data() + p, kb, run, next);
            run = next;
            Sink<A> part = to;
            part.out += j;
            multiply_panels(e, packed + (group * k + p) * padded, f.rows, panels, std::min<int64_t>(e.nr, count - j),
                            kb, part, p == 0);
        }
    }
    if (dense) return;
    for (int64_t row = 0; row < f.rows; ++row)
        for (const Run& r : runs) {
            const A* from = sums + row * count + r.start;
            A* at = out + row * f.row_to + r.to;
            for (int64_t i = 0; i < r.length; ++i) at[i * f.to.x] = from[i];
        }
}

template <class A> void sum_panels(const Form<A>& f, const Weights<A>& w) {
    const Engine<A>& e = engine<A>(f.rows);
    const int64_t k = f.k(), depth = f.depth(), padded = ceil_div(f.rows, e.mr) * e.mr;
    const Scratch packed(checked_numel({f.groups, k, padded}), sizeof(A));
    pack_weights(e, f, w, packed.as<A>());
    // Places of a block: its panels stay in the second cache. Where planes are small it runs across images.
    const int64_t plane = f.grid.z * f.grid.y * f.grid.x, places = f.grid.size();
    const int64_t most = std::max<int64_t>(1, 256 / e.nr) * e.nr, least = 4 * e.nr;
    const bool across = plane < 2 * most && f.grid.n > 1;
    const int64_t stretch = across ? places : plane;
    int64_t width = std::min(most, ceil_div(stretch, e.nr) * e.nr);
    const int64_t blocks_of_all = f.groups * ceil_div(places, width), want = 4 * num_threads();
    if (num_threads() > 1 && blocks_of_all < want)
        width = std::min(width, std::max(least, ceil_div(ceil_div(width * blocks_of_all, want), e.nr) * e.nr));
    const int64_t blocks = ceil_div(stretch, width), images = across ? 1 : f.grid.n;
    const int64_t work = saturated_mul(saturated_mul(width, f.rows), k);
    parallel_for(f.groups * images * blocks, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(depth * e.nr + SLACK + f.rows * width, sizeof(A));
                     std::vector<Run> runs;
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t group = t / (images * blocks), image = t / blocks % images;
                         const int64_t first = image * plane + t % blocks * width;
                         const int64_t stop = std::min(first + width, across ? places : (image + 1) * plane);
                         block_of_places(e, f, packed.as<A>(), group, first, stop, room.as<A>(),
                                         room.as<A>() + depth * e.nr + SLACK, runs);
                     }
                 });
}

template <class A> void run_form(const Form<A>& f, const Weights<A>& w) {
    if (f.by_rows()) sum_rows(f, w);
    else sum_panels(f, w);
}

// ---------------------------------------------------------------- the gradient of the weights

// A few k at a time for one row: sums of gradient * copy over all places, in vectors along the width.
template <class A, int T>
MT_INLINE void dot_places(const Form<A>& f, const A* grad, const A* from, const int64_t* offset, A* out) {
    typedef A Vector __attribute__((vector_size(32)));
    typedef A Loose __attribute__((vector_size(32), aligned(alignof(A)), may_alias));
    constexpr int LANES = 32 / sizeof(A);
    const Grid& g = f.grid;
    A total[T] = {};
    for (int64_t n = 0; n < g.n; ++n)
        for (int64_t z = 0; z < g.z; ++z) {
            Vector sum[T];
            A rest[T] = {};
#pragma GCC unroll 16
            for (int t = 0; t < T; ++t) sum[t] = Vector{};
            for (int64_t y = 0; y < g.y; ++y) {
                const A* a = from + f.from.at(n, z, y, 0);
                const A* b = grad + f.to.at(n, z, y, 0);
                int64_t x = 0;
                for (; x + LANES <= g.x; x += LANES) {
                    const Vector v = *reinterpret_cast<const Loose*>(b + x);
#pragma GCC unroll 16
                    for (int t = 0; t < T; ++t)
                        sum[t] += v * Vector(*reinterpret_cast<const Loose*>(a + offset[t] + x));
                }
                for (; x < g.x; ++x)
                    for (int t = 0; t < T; ++t) rest[t] += b[x] * a[offset[t] + x];
            }
#pragma GCC unroll 16
            for (int t = 0; t < T; ++t) {
                A part[LANES];
                *reinterpret_cast<Loose*>(part) = sum[t];
                total[t] += fold_parts<LANES>(part, Plus<A>()) + rest[t];
            }
        }
    for (int t = 0; t < T; ++t) out[t] += total[t];
}
template <class A> void weight_rows(const Form<A>& f, const A* grad, A* out) {
    const int64_t k = f.k();
    const int64_t each = saturated_mul(f.grid.size(), k);
    parallel_for(f.groups * f.rows, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each / 4)),
                 [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end; ++r) {
                         const A* g = grad + r * f.row_to;
                         const A* from = f.copy + r / f.rows * f.group_from;
                         at_level(MT_BODY {
                             int64_t p = 0;
                             for (; p + 9 <= k; p += 9)
                                 dot_places<A, 9>(f, g, from, f.offset.data() + p, out + r * k + p);
                             for (; p + 3 <= k; p += 3)
                                 dot_places<A, 3>(f, g, from, f.offset.data() + p, out + r * k + p);
                             for (; p < k; ++p) dot_places<A, 1>(f, g, from, f.offset.data() + p, out + r * k + p);
                         });
                     }
                 });
}

// A line of places, with whole vectors: up to one vector behind a stretch is spoilt.
template <class A> MT_INLINE void copy_runs(A* to, const A* from, const std::vector<Run>& runs) {
    constexpr int LANES = 32 / sizeof(A);
    for (const Run& r : runs) {
        const A* at = from + r.from;
        A* line = to + r.start;
        for (int64_t i = 0; i < r.length; i += LANES) __builtin_memcpy(line + i, at + i, LANES * sizeof(A));
    }
}

// out[row][k] += sums over the places: panels of the gradient times panels of the copy, both turned as they are packed.
template <class A> void weight_panels(const Form<A>& f, const A* grad, A* out) {
    const Engine<A>& e = engine<A>(f.rows);
    const int64_t k = f.k(), places = f.grid.size(), depth = block_depth(places), stride = depth + 16;
    const int64_t blocks = ceil_div(places, depth), padded = ceil_div(f.rows, e.mr) * e.mr;
    // The gradient's panels, for every block of places.
    const Scratch packed(checked_numel({f.groups, places, padded}), sizeof(A));
    parallel_for(f.groups * blocks, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, depth * f.rows)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(e.mr * stride, sizeof(A));
                     std::vector<Run> runs;
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t group = t / blocks, first = t % blocks * depth;
                         const int64_t kb = std::min(depth, places - first);
                         find_runs(f.grid, f.from, f.to, first, first + kb, places, runs);
                         for (int64_t i = 0; i < f.rows; i += e.mr) {
                             const int64_t lines = std::min<int64_t>(e.mr, f.rows - i);
                             for (int64_t l = 0; l < lines; ++l)
                                 for (const Run& r : runs) {
                                     const A* row = grad + (group * f.rows + i + l) * f.row_to + r.to;
                                     std::copy(row, row + r.length, room.as<A>() + l * stride + r.start);
                                 }
                             A* to = packed.as<A>() + (group * places + first) * padded + i * kb;
                             e.pack(to, e.mr, room.as<A>(), stride, 1, lines, kb);
                         }
                     }
                 });
    const int64_t panels = ceil_div(k, e.nr);
    const int64_t work = saturated_mul(saturated_mul(places, f.rows), e.nr);
    parallel_for(f.groups * panels, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(e.nr * stride + e.nr * depth + SLACK, sizeof(A));
                     A* lines = room.as<A>();
                     A* panel = lines + e.nr * stride;
                     std::vector<Run> runs;
                     for (int64_t b = 0; b < blocks; ++b) {
                         const int64_t first = b * depth, kb = std::min(depth, places - first);
                         find_runs(f.grid, f.from, f.to, first, first + kb, places, runs);
                         for (int64_t t = begin; t < end; ++t) {
                             const int64_t group = t / panels, p = t % panels * e.nr;
                             const int64_t columns = std::min<int64_t>(e.nr, k - p);
                             at_level(MT_BODY {
                                 for (int64_t l = 0; l < columns; ++l)
                                     copy_runs(lines + l * stride,
                                               f.copy + group * f.group_from + f.offset[(size_t)(p + l)], runs);
                             });
                             e.pack(panel, e.nr, lines, stride, 1, columns, kb);
                             const Sink<A> to{out + group * f.rows * k + p, k, 1, nullptr, 0, 0, A(1), A(0)};
                             multiply_panels(e, packed.as<A>() + (group * places + first) * padded, f.rows, panel,
                                             columns, kb, to, false);
                         }
                     }
                 });
}

// ---------------------------------------------------------------- calls

struct Call {
    int64_t images, groups, channels, results;
    Window v;
    explicit Call(PyObject* const* args)
        : images(parse_count(args[0])), groups(parse_count(args[1])), channels(parse_count(args[2])),
          results(parse_count(args[3])), v(args + 4) {
        if (groups < 1 || v.kernel.size() < 1) fail(PyExc_ValueError, "a convolution without groups or kernel");
    }
    int64_t in_numel() const { return checked_numel({images, groups, channels, v.in.size()}); }
    int64_t out_numel() const { return checked_numel({images, groups, results, v.out.size()}); }
    int64_t weight_numel() const { return checked_numel({groups, results, channels, v.kernel.size()}); }
    bool empty() const { return in_numel() == 0 || out_numel() == 0 || weight_numel() == 0; }
};

// Whether a copied plane is in proportion to what is read and written.
bool in_proportion(const Padded& p, const Triple& a, const Triple& b, const Triple& kernel) {
    const int64_t copied = saturated_mul(saturated_mul(p.size.d, p.size.h), saturated_mul(p.split, p.columns));
    const int64_t given = saturated_add(a.size(), saturated_mul(b.size(), kernel.size()));
    return copied <= saturated_mul(4, given);
}

// Of a plain convolution.
Padded padded_input(const Window& v) {
    const Triple reach{(v.out.d - 1) * v.stride.d + (v.kernel.d - 1) * v.dilation.d + 1,
                       (v.out.h - 1) * v.stride.h + (v.kernel.h - 1) * v.dilation.h + 1,
                       (v.out.w - 1) * v.stride.w + (v.kernel.w - 1) * v.dilation.w + 1};
    return {v.in, v.padding, reach, v.stride.w, ceil_div(reach.w, v.stride.w)};
}
std::vector<int64_t> input_offsets(const Window& v, const Padded& p, int64_t channels) {
    std::vector<int64_t> offset;
    offset.reserve((size_t)(channels * v.kernel.size()));
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t a = 0; a < v.kernel.d; ++a)
            for (int64_t b = 0; b < v.kernel.h; ++b)
                for (int64_t e = 0; e < v.kernel.w; ++e) {
                    const int64_t x = e * v.dilation.w;
                    offset.push_back(c * p.plane() + (a * v.dilation.d * p.size.h + b * v.dilation.h) * p.row() +
                                     x % p.split * p.columns + x / p.split);
                }
    return offset;
}

// Calls f(first image, number of images, their copies) for as many images at a time as fit.
template <class A, class F> void with_copies(const A* x, int64_t images, int64_t planes, const Padded& p, F&& f) {
    const int64_t image = checked_mul(planes, p.plane());
    const int64_t step =
        std::max<int64_t>(1, std::min(images, COPY_BYTES / int64_t(sizeof(A)) / std::max<int64_t>(1, image)));
    const Scratch room(checked_add(checked_mul(step, image), SLACK), sizeof(A));
    A* copy = room.as<A>();
    std::fill(copy + step * image, copy + step * image + SLACK, A(0));
    for (int64_t first = 0; first < images; first += step) {
        const int64_t count = std::min(step, images - first);
        parallel_for(count * planes, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, p.plane())),
                     [&](int64_t begin, int64_t end) {
                         at_level(MT_BODY {
                             for (int64_t i = begin; i < end; ++i)
                                 copy_plane(x + (first * planes + i) * p.in.size(), copy + i * p.plane(), p);
                         });
                     });
        f(first, count, copy);
    }
}

// The form of a plain convolution, but for `grid.n`, `copy`, `out` and `bias`.
template <class A> Form<A> plain_form(const Call& c, const Padded& p) {
    const Window& v = c.v;
    Form<A> f{};
    f.grid = {0, v.out.d, v.out.h, v.out.w};
    f.from = {c.groups * c.channels * p.plane(), v.stride.d * p.size.h * p.row(), v.stride.h * p.row(), 1};
    f.to = {c.groups * c.results * v.out.size(), v.out.h * v.out.w, v.out.w, 1};
    f.offset = input_offsets(v, p, c.channels);
    f.groups = c.groups, f.rows = c.results;
    f.group_from = c.channels * p.plane(), f.row_to = v.out.size();
    return f;
}

// Whether all of it was computed by Winograd's algorithm: 3 x 3 places, one apart. `back`: the gradient of the input, which
// is the same with weights turned around.
template <class A> bool by_winograd(const Call& c, const A* x, const A* weight, const A* bias, A* out, bool back) {
    const Window& v = c.v;
    if (v.in.d != 1 || v.out.d != 1 || v.kernel.d != 1 || v.kernel.h != 3 || v.kernel.w != 3 || v.stride.h != 1 ||
        v.stride.w != 1 || v.dilation.h != 1 || v.dilation.w != 1 || v.padding.d != 0 || v.padding.h > 2 ||
        v.padding.w > 2)
        return false;
    const Triple &from = back ? v.out : v.in, &to = back ? v.in : v.out;
    const int64_t k = back ? c.results : c.channels, rows = back ? c.channels : c.results;
    const int64_t taps = 9, weights = c.results * c.channels * taps;
    for (int64_t g = 0; g < c.groups; ++g) {
        const Winograd<A> part{c.images,
                               k,
                               rows,
                               from.h,
                               from.w,
                               to.h,
                               to.w,
                               back ? 2 - v.padding.h : v.padding.h,
                               back ? 2 - v.padding.w : v.padding.w,
                               x + g * k * from.size(),
                               c.groups * k * from.size(),
                               weight + g * weights,
                               back ? taps : c.channels * taps,
                               back ? c.channels * taps : taps,
                               back,
                               bias ? bias + g * rows : nullptr,
                               out + g * rows * to.size(),
                               c.groups * rows * to.size()};
        if (!part.worthwhile() || !part.run()) return false;
    }
    return true;
}

template <class A> void forward(const Call& c, const Padded& p, const A* x, const A* weight, const A* bias, A* out) {
    if (by_winograd(c, x, weight, bias, out, false)) return;
    Form<A> f = plain_form<A>(c, p);
    const int64_t k = f.k();
    Weights<A> w{weight, c.results * k, k, std::vector<int64_t>((size_t)k)};
    for (int64_t i = 0; i < k; ++i) w.place[(size_t)i] = i;
    f.bias = bias;
    with_copies(x, c.images, c.groups * c.channels, p, [&](int64_t first, int64_t count, const A* copy) {
        f.grid.n = count, f.copy = copy, f.out = out + first * f.to.n;
        run_form(f, w);
    });
}

template <class A> void weight_gradient(const Call& c, const Padded& p, const A* grad, const A* x, A* out) {
    Form<A> f = plain_form<A>(c, p);
    std::fill(out, out + c.weight_numel(), A(0));
    with_copies(x, c.images, c.groups * c.channels, p, [&](int64_t first, int64_t count, const A* copy) {
        f.grid.n = count, f.copy = copy;
        const A* g = grad + first * f.to.n;
        if (f.by_rows()) weight_rows(f, g, out);
        else weight_panels(f, g, out);
    });
}

// Of the gradient of the input: windows reach from the first input place to the last.
int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }
void settle_gradient(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                     int64_t& low, int64_t& size) {
    low = std::max<int64_t>(0, -floor_div(padding - (kernel - 1) * dilation, stride));
    size = low + std::max(out, (in - 1 + padding) / stride + 1);
}
Padded padded_gradient(const Window& v) {
    Padded p{v.out, {}, {}, 1, 0};
    settle_gradient(v.in.d, v.out.d, v.kernel.d, v.stride.d, v.padding.d, v.dilation.d, p.low.d, p.size.d);
    settle_gradient(v.in.h, v.out.h, v.kernel.h, v.stride.h, v.padding.h, v.dilation.h, p.low.h, p.size.h);
    settle_gradient(v.in.w, v.out.w, v.kernel.w, v.stride.w, v.padding.w, v.dilation.w, p.low.w, p.size.w);
    p.columns = p.size.w;
    return p;
}

// The taps that reach the input places with this remainder, and how far their results lie.
struct Taps {
    std::vector<int64_t> tap, shift;
    Taps(int64_t remainder, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, int64_t low) {
        for (int64_t e = 0; e < kernel; ++e) {
            const int64_t at = remainder + padding - e * dilation;
            if (at - floor_div(at, stride) * stride == 0) {
                tap.push_back(e);
                shift.push_back(floor_div(at, stride) + low);
            }
        }
    }
};

template <class A>
void input_remainder(const Call& c, const Padded& p, const Triple& at, const A* weight, const A* bias, Form<A>& f) {
    const Window& v = c.v;
    const Taps z(at.d, v.kernel.d, v.stride.d, v.padding.d, v.dilation.d, p.low.d);
    const Taps y(at.h, v.kernel.h, v.stride.h, v.padding.h, v.dilation.h, p.low.h);
    const Taps x(at.w, v.kernel.w, v.stride.w, v.padding.w, v.dilation.w, p.low.w);
    f.offset.clear();
    Weights<A> w{weight, c.results * c.channels * v.kernel.size(), v.kernel.size(), {}};
    for (int64_t o = 0; o < c.results; ++o)
        for (size_t i = 0; i < z.tap.size(); ++i)
            for (size_t j = 0; j < y.tap.size(); ++j)
                for (size_t l = 0; l < x.tap.size(); ++l) {
                    f.offset.push_back(o * p.plane() + (z.shift[i] * p.size.h + y.shift[j]) * p.row() + x.shift[l]);
                    w.place.push_back(o * c.channels * v.kernel.size() +
                                      (z.tap[i] * v.kernel.h + y.tap[j]) * v.kernel.w + x.tap[l]);
                }
    f.bias = bias;
    if (f.offset.empty()) sum_rows(f, w);
    else run_form(f, w);
}

template <class A> void input_gradient(const Call& c, const Padded& p, const A* grad, const A* weight, const A* bias,
                                       A* out) {
    if (by_winograd(c, grad, weight, bias, out, true)) return;
    const Window& v = c.v;
    Form<A> f{};
    f.from = {c.groups * c.results * p.plane(), p.size.h * p.row(), p.row(), 1};
    f.to = {c.groups * c.channels * v.in.size(), v.stride.d * v.in.h * v.in.w, v.stride.h * v.in.w, v.stride.w};
    f.groups = c.groups, f.rows = c.channels, f.gradient = true;
    f.group_from = c.results * p.plane(), f.row_to = v.in.size();
    with_copies(grad, c.images, c.groups * c.results, p, [&](int64_t first, int64_t count, const A* copy) {
        for (int64_t z = 0; z < std::min(v.stride.d, v.in.d); ++z)
            for (int64_t y = 0; y < std::min(v.stride.h, v.in.h); ++y)
                for (int64_t x = 0; x < std::min(v.stride.w, v.in.w); ++x) {
                    f.grid = {count, ceil_div(v.in.d - z, v.stride.d), ceil_div(v.in.h - y, v.stride.h),
                              ceil_div(v.in.w - x, v.stride.w)};
                    f.copy = copy;
                    f.out = out + first * f.to.n + (z * v.in.h + y) * v.in.w + x;
                    input_remainder(c, p, {z, y, x}, weight, bias, f);
                }
    });
}

enum class Kind { FORWARD, INPUT, WEIGHT };

template <Kind KIND> PyObject* convolve(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    expect_args(name, nargs, 22);
    const Call c(args + 12);
    const int64_t in = c.in_numel(), out = c.out_numel(), weight = c.weight_numel();
    const Dense a = parse_dense(args, KIND == Kind::FORWARD ? in : out);
    const Dense b = parse_dense(args + 3, KIND == Kind::WEIGHT ? in : weight);
    const bool biased = args[6] != Py_None;
    const int64_t rows = checked_mul(c.groups, KIND == Kind::INPUT ? c.channels : c.results);
    const Dense bias = biased ? parse_dense(args + 6, rows) : Dense{nullptr, a.code};
    const Dense o = parse_dense(args + 9, KIND == Kind::FORWARD ? out : KIND == Kind::INPUT ? in : weight);
    if (a.code != b.code || a.code != o.code || a.code != bias.code)
        fail(PyExc_ValueError, "%s: operands of two dtypes", name);
    if (a.code != F32 && a.code != F64) fail_dtype(name, a.code);
    if (KIND == Kind::WEIGHT && biased) fail(PyExc_ValueError, "%s: a gradient with a bias", name);
    if (c.empty()) Py_RETURN_FALSE;
    const Padded p = KIND == Kind::INPUT ? padded_gradient(c.v) : padded_input(c.v);
    if (!in_proportion(p, c.v.in, c.v.out, c.v.kernel)) Py_RETURN_FALSE;
    auto run = [&](auto t) {
        using A = decltype(t);
        GilRelease unlocked(saturated_mul(out, c.channels * c.v.kernel.size()));
        if (KIND == Kind::FORWARD) forward(c, p, a.as<const A>(), b.as<const A>(), bias.as<const A>(), o.as<A>());
        else if (KIND == Kind::INPUT)
            input_gradient(c, p, a.as<const A>(), b.as<const A>(), bias.as<const A>(), o.as<A>());
        else weight_gradient(c, p, a.as<const A>(), b.as<const A>(), o.as<A>());
    };
    if (a.code == F32) run(float());
    else run(double());
    Py_RETURN_TRUE;
}

PyObject* conv(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return convolve<Kind::FORWARD>("conv", args, nargs); });
}
PyObject* conv_input(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return convolve<Kind::INPUT>("conv_input", args, nargs); });
}
PyObject* conv_weight(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return convolve<Kind::WEIGHT>("conv_weight", args, nargs); });
}

// plane_sums(x.., out.., images, channels, places): the sum of each channel
PyObject* plane_sums(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("plane_sums", nargs, 9);
        const int64_t images = parse_count(args[6]), channels = parse_count(args[7]), places = parse_count(args[8]);
        const int64_t numel = checked_numel({images, channels, places});
        const Dense x = parse_dense(args, numel), o = parse_dense(args + 3, channels);
        if (x.code != o.code) fail(PyExc_ValueError, "plane_sums: operands of two dtypes");
        if (x.code != F32 && x.code != F64) fail_dtype("plane_sums", x.code);
        auto run = [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(numel);
            const int64_t each = numel / std::max<int64_t>(1, channels);
            parallel_for(channels, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each)),
                         [&](int64_t begin, int64_t end) {
                             for (int64_t c = begin; c < end; ++c) {
                                 A total = 0;
                                 at_level(MT_BODY {
                                     for (int64_t n = 0; n < images; ++n) {
                                         const A* plane = x.as<A>() + (n * channels + c) * places;
                                         total += sum_of<A>(places, MT_EACH(i) { return plane[i]; });
                                     }
                                 });
                                 o.as<A>()[c] = total;
                             }
                         });
        };
        if (x.code == F32) run(float());
        else run(double());
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef conv_methods[];  // no other file needs to know
PyMethodDef conv_methods[] = {MT_METHOD("conv", conv, "Convolution."),
                              MT_METHOD("conv_input", conv_input, "Convolution: the gradient of its input."),
                              MT_METHOD("conv_weight", conv_weight, "Convolution: the gradient of its weights."),
                              MT_METHOD("plane_sums", plane_sums, "The sum of each channel."),
                              {nullptr, nullptr, 0, nullptr}};
