// Convolution as products of packed panels (gemm.h), packed straight from the copy of the planes; where a group has few
// rows the copy is read where it is. See conv.h.
// Invariant: each sum runs over k, or for weights over places, in blocks that depend on the shapes alone.
#include "caches.h"
#include "conv.h"
#include "tiles.h"

namespace mt {
namespace {

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

template <class A> const Engine<A>& engine_for(int64_t rows, bool pairs) {
    if constexpr (std::is_same<A, float>::value)
        if (pairs) return *pair_engine(rows);
    return engine<A>(rows);
}

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

// One panel of weights that do not lie side by side.
template <class A>
void gather_weights(const Weights<A>& w, const A* from, int64_t lines, int mr, int64_t p, int64_t k, A* to) {
    for (int64_t q = 0; q < k; ++q, to += mr) {
        const A* at = from + w.place[(size_t)(p + q)];
        for (int64_t i = 0; i < lines; ++i) to[i] = at[i * w.row];
        for (int64_t i = lines; i < mr; ++i) to[i] = 0;
    }
}

// A row of pairs: those of two channels with the same tap.
template <class A> MT_INLINE void pair_row(const Weights<A>& w, const uint16_t* from, uint32_t* to) {
    const int64_t k = (int64_t)w.place.size(), taps = w.taps;
    for (int64_t q = 0; taps > 0 && q < k; q += taps) {
        const uint16_t *low = from + 2 * q, *high = low + taps;
        const bool two = w.second[(size_t)q] >= 0;
#pragma GCC ivdep
        for (int64_t t = 0; t < taps; ++t) to[q + t] = uint32_t(low[t]) | (two ? uint32_t(high[t]) << 16 : 0u);
    }
    for (int64_t q = 0; taps == 0 && q < k; ++q) {
        const int64_t other = w.second[(size_t)q];
        to[q] = uint32_t(from[w.place[(size_t)q]]) | (other < 0 ? 0u : uint32_t(from[other]) << 16);
    }
}

// The weights of all groups as panels: by group, block of k, panel of rows.
template <class A> void pack_weights(const Engine<A>& e, const Form<A>& f, const Weights<A>& w, A* packed) {
    const int64_t k = f.k(), depth = f.depth(), panels = ceil_div(f.rows, e.mr), padded = panels * e.mr;
    bool dense = !f.pairs;
    for (size_t p = 1; p < w.place.size() && dense; ++p) dense = w.place[p] == w.place[0] + (int64_t)p;
    const int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, k * e.mr));
    parallel_for(f.groups * panels, grain, [&](int64_t begin, int64_t end) {
        const Scratch room(f.pairs ? checked_mul(e.mr, k) : 0, sizeof(uint32_t));
        for (int64_t t = begin; t < end; ++t) {
            const int64_t group = t / panels, first = t % panels * e.mr,
                          lines = std::min<int64_t>(e.mr, f.rows - first);
            const int64_t start = group * w.group + first * w.row;
            if (f.pairs)
                at_level(MT_BODY {
                    for (int64_t i = 0; i < lines; ++i)
                        pair_row(w, w.narrow + start + i * w.row, room.as<uint32_t>() + i * k);
                });
            for (int64_t p = 0; p < k; p += depth) {
                const int64_t kb = std::min(depth, k - p);
                A* to = packed + (group * k + p) * padded + first * kb;
                if (f.pairs) e.pack(to, e.mr, room.as<A>() + p, k, 1, lines, kb);
                else if (dense) e.pack(to, e.mr, w.data + start + w.place[0] + p, w.row, 1, lines, kb);
                else gather_weights(w, w.data + start, lines, e.mr, p, kb, to);
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
    bool dense = f.to.x == 1 && f.code == CodeOf<A>::value;
    for (size_t r = 1; r < runs.size() && dense; ++r) dense = runs[r].to == runs[r - 1].to + runs[r - 1].length;
    const int64_t out = group * f.rows * f.row_to;
    const A* bias = f.bias ? f.bias + group * f.rows : nullptr;
    A* const first = dense ? reinterpret_cast<A*>(f.at(out + runs[0].to)) : sums;
    const Sink<A> to{first, dense ? f.row_to : count, 1, bias, 1, 0, A(1), A(bias ? 1 : 0)};
    for (int64_t p = 0; p < k; p += depth) {
        const int64_t kb = std::min(depth, k - p);
        const Run* run = runs.data();
        const Run* const last = run + runs.size();
        for (int64_t j = 0; j < count; j += e.nr) {
            const Run* next = run;
            while (next != last && next->start < j + e.nr) ++next;
            pack_places(e.nr, panels, f.copy + group * f.group_from, f.offset.data() + p, kb, run, next);
            run = next;
            Sink<A> part = to;
            part.out += j;
            multiply_panels(e, packed + (group * k + p) * padded, f.rows, panels, std::min<int64_t>(e.nr, count - j),
                            kb, part, p == 0);
        }
    }
    if (dense) return;
    at_level(MT_BODY {
        for (int64_t row = 0; row < f.rows; ++row)
            for (const Run& r : runs)
                put_line(f.at(out + row * f.row_to + r.to), f.code, f.to.x, sums + row * count + r.start, r.length);
    });
}

// How the places of a form are cut into pieces of work.
struct Cut {
    int64_t width, blocks, images, plane, places;
    bool across;  // blocks run across images
    int64_t pieces(int64_t groups) const { return checked_numel({groups, images, blocks}); }
};
template <class A> Cut cut_of(const Form<A>& f, int nr) {
    // Places of a block: its panels stay in the second cache. Where planes are small it runs across images.
    const int64_t plane = f.grid.z * f.grid.y * f.grid.x, places = f.grid.size();
    const int64_t fit = caches.second / 4 / (KC * (int64_t)sizeof(A));
    const int64_t most = std::max<int64_t>(1, std::min<int64_t>(1024, fit) / nr) * nr,
                  least = std::min<int64_t>(most, 4 * nr);
    const bool across = plane < 2 * most && f.grid.n > 1;
    const int64_t stretch = across ? places : plane;
    int64_t width = std::min(most, ceil_div(stretch, nr) * nr);
    const int64_t all = f.groups * ceil_div(places, width), want = 4 * num_threads();
    if (num_threads() > 1 && all < want)
        width = std::min(width, std::max(least, ceil_div(ceil_div(width * all, want), nr) * nr));
    return {width, ceil_div(stretch, width), across ? 1 : f.grid.n, plane, places, across};
}

template <class A> void sum_packed(const Engine<A>& e, const Form<A>& f, const A* packed) {
    const int64_t k = f.k(), depth = f.depth();
    const Cut cut = cut_of(f, e.nr);
    const int64_t work = saturated_mul(saturated_mul(cut.width, f.rows), k);
    parallel_for(cut.pieces(f.groups), std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(depth * e.nr + SLACK + f.rows * cut.width, sizeof(A));
                     std::vector<Run> runs;
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t group = t / (cut.images * cut.blocks), image = t / cut.blocks % cut.images;
                         const int64_t first = image * cut.plane + t % cut.blocks * cut.width;
                         const int64_t stop =
                             std::min(first + cut.width, cut.across ? cut.places : (image + 1) * cut.plane);
                         block_of_places(e, f, packed, group, first, stop, room.as<A>(),
                                         room.as<A>() + depth * e.nr + SLACK, runs);
                     }
                 });
}

// Few rows are not worth panels: the places of a plane are summed as they lie in the copy, with those between the end of
// a row and the beginning of the next, which nobody wants.
template <class A> bool lies_side_by_side(const Engine<A>& e, const Form<A>& f) {
    const int64_t stretch = (f.grid.y - 1) * f.from.y + f.grid.x;
    return f.rows <= 4 * e.mr && f.k() >= 32 && ceil_div(stretch, e.nr) * 4 <= 5 * ceil_div(f.grid.y * f.grid.x, e.nr);
}

// Places [begin, end) of a plane, counted in the copy.
template <class A>
void sum_stretch(const Engine<A>& e, const Form<A>& f, const A* packed, int64_t group, int64_t n, int64_t z,
                 int64_t begin, int64_t end, A* sums) {
    const int64_t k = f.k(), depth = f.depth(), padded = ceil_div(f.rows, e.mr) * e.mr;
    const int64_t count = ceil_div(end - begin, e.nr) * e.nr, pitch = f.from.y;
    const A* bias = f.bias ? f.bias + group * f.rows : nullptr;
    const A* from = f.copy + group * f.group_from + f.from.at(n, z, 0, 0) + begin;
    const Sink<A> to{sums, count, 1, bias, 1, 0, A(1), A(bias ? 1 : 0)};
    for (int64_t j = 0; j < count; j += e.nr)
        for (int64_t p = 0; p < k; p += depth) {
            const int64_t kb = std::min(depth, k - p);
            for (int64_t i = 0; i < f.rows; i += e.mr)
                sink_tile(e, packed + (group * k + p) * padded + i * kb, from + j, kb, to, i, j,
                          std::min<int64_t>(e.mr, f.rows - i), e.nr, p == 0, f.offset.data() + p);
        }
    at_level(MT_BODY {
        for (int64_t row = 0; row < f.rows; ++row)
            for (int64_t y = begin / pitch; y * pitch < end; ++y) {
                const int64_t x0 = std::max<int64_t>(0, begin - y * pitch), x1 = std::min(f.grid.x, end - y * pitch);
                if (x0 < x1)
                    put_line(f.at((group * f.rows + row) * f.row_to + f.to.at(n, z, y, x0)), f.code, f.to.x,
                             sums + row * count + y * pitch + x0 - begin, x1 - x0);
            }
    });
}

template <class A> void sum_in_place(const Engine<A>& e, const Form<A>& f, const A* packed) {
    const Grid& g = f.grid;
    const int64_t stretch = (g.y - 1) * f.from.y + g.x, planes = checked_numel({f.groups, g.n, g.z});
    const int64_t most = 8 * e.nr;
    int64_t width = std::min(most, ceil_div(stretch, e.nr) * e.nr);
    if (num_threads() > 1 && planes * ceil_div(stretch, width) < 4 * num_threads())
        width = std::min<int64_t>(width, 2 * e.nr);
    const int64_t blocks = ceil_div(stretch, width), work = saturated_mul(saturated_mul(width, f.rows), f.k());
    parallel_for(checked_mul(planes, blocks), std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch sums(f.rows * width, sizeof(A));
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t b = t % blocks, z = t / blocks % g.z, n = t / blocks / g.z % g.n;
                         sum_stretch(e, f, packed, t / blocks / g.z / g.n, n, z, b * width,
                                     std::min(stretch, (b + 1) * width), sums.as<A>());
                     }
                 });
}

// ---------------------------------------------------------------- pairs of bfloat16 by tiles

int64_t in_steps(int64_t words) { return ceil_div(words, EDGE) * EDGE; }

// Rows of words along k, zeros behind the last row and k: what is read as tiles where it lies.
void order_rows(const Form<float>& f, const Weights<float>& w, uint32_t* packed) {
    const int64_t k = f.k(), words = in_steps(k), padded = in_steps(f.rows);
    parallel_for(f.groups * padded, std::max<int64_t>(1, GRAIN / words), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t t = begin; t < end; ++t) {
                const int64_t group = t / padded, row = t % padded;
                uint32_t* to = packed + t * words;
                if (row < f.rows) pair_row(w, w.narrow + group * w.group + row * w.row, to);
                std::fill(to + (row < f.rows ? k : 0), to + words, 0u);
            }
        });
    });
}

// A block of places of one group: panels of words along k by places are packed, and multiplied by all rows.
void block_in_tiles(const Form<float>& f, const uint32_t* packed, int64_t group, int64_t begin, int64_t end,
                    float* panel, float* sums, std::vector<Run>& runs) {
    const int64_t k = f.k(), words = in_steps(k), padded = in_steps(f.rows), count = end - begin;
    find_runs(f.grid, f.from, f.to, begin, end, SPAN, runs);
    const float* bias = f.bias ? f.bias + group * f.rows : nullptr;
    const Sink<float> to{sums, count, 1, bias, 1, 0, 1.0f, bias ? 1.0f : 0.0f};
    const uint32_t* rows = packed + group * padded * words;
    const Run* run = runs.data();
    const Run* const last = run + runs.size();
    alignas(64) float made[SPAN * SPAN];
    for (int64_t j = 0; j < count; j += SPAN) {
        const Run* next = run;
        while (next != last && next->start < j + SPAN) ++next;
        pack_places(int(SPAN), panel, f.copy + group * f.group_from, f.offset.data(), k, run, next);
        run = next;
        std::fill(panel + k * SPAN, panel + words * SPAN, 0.0f);
        const int64_t width = std::min(SPAN, count - j);
        for (int64_t i = 0; i < f.rows; i += SPAN) {
            const int64_t height = std::min(SPAN, f.rows - i);
            tile_products({rows + i * words, words * 4, EDGE * 4, EDGE * words * 4},
                          {panel, SPAN * 4, EDGE * SPAN * 4, EDGE * 4}, words / EDGE, height > EDGE, width > EDGE,
                          made);
            sink_sums(made, int(SPAN), to, i, j, height, width, true, true);
        }
    }
    const int64_t out = group * f.rows * f.row_to;
    at_level(MT_BODY {
        for (int64_t row = 0; row < f.rows; ++row)
            for (const Run& r : runs)
                put_line(f.at(out + row * f.row_to + r.to), f.code, f.to.x, sums + row * count + r.start, r.length);
    });
}

// Whether they are used: not for sums so short that most of a tile is empty.
template <class A> bool by_tiles(const Form<A>& f) { return f.pairs && f.k() >= 8 && has_tiles(); }

void sum_in_tiles(const Form<float>& f, const Weights<float>& w) {
    const int64_t words = in_steps(f.k());
    const Scratch packed(checked_numel({f.groups, words, in_steps(f.rows)}), sizeof(uint32_t));
    order_rows(f, w, packed.as<uint32_t>());
    const Cut cut = cut_of(f, int(SPAN));
    const int64_t work = saturated_mul(saturated_mul(cut.width, f.rows), words), panel = words * SPAN + SLACK;
    parallel_for(cut.pieces(f.groups), std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(checked_add(panel, checked_mul(f.rows, cut.width)), sizeof(float));
                     std::vector<Run> runs;
                     const Tiles tiles;
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t group = t / (cut.images * cut.blocks), image = t / cut.blocks % cut.images;
                         const int64_t first = image * cut.plane + t % cut.blocks * cut.width;
                         const int64_t stop =
                             std::min(first + cut.width, cut.across ? cut.places : (image + 1) * cut.plane);
                         block_in_tiles(f, packed.as<uint32_t>(), group, first, stop, room.as<float>(),
                                        room.as<float>() + panel, runs);
                     }
                 });
}

}  // namespace

template <class A> void sum_panels(const Form<A>& f, const Weights<A>& w) {
    if constexpr (std::is_same<A, float>::value)
        if (by_tiles(f)) return sum_in_tiles(f, w);
    const Engine<A>& e = engine_for<A>(f.rows, f.pairs);
    const Scratch packed(checked_numel({f.groups, f.k(), ceil_div(f.rows, e.mr) * e.mr}), sizeof(A));
    pack_weights(e, f, w, packed.as<A>());
    if (lies_side_by_side(e, f)) sum_in_place(e, f, packed.as<A>());
    else sum_packed(e, f, packed.as<A>());
}

// ---------------------------------------------------------------- the gradient of the weights

namespace {

// A line of places, with whole vectors: up to one vector behind a stretch is spoilt.
template <class E> MT_INLINE void copy_runs(E* to, const E* from, const std::vector<Run>& runs) {
    constexpr int LANES = 32 / sizeof(E);
    for (const Run& r : runs) {
        const E* at = from + r.from;
        E* line = to + r.start;
        for (int64_t i = 0; i < r.length; i += LANES) __builtin_memcpy(line + i, at + i, LANES * sizeof(E));
    }
}
// A line of the gradient, which has nothing behind its last place.
template <class E> MT_INLINE void gather_line(E* to, const char* from, int code, const std::vector<Run>& runs) {
    for (const Run& r : runs) {
        E* line = to + r.start;
        if (std::is_same<E, uint16_t>::value || code == CodeOf<float>::value || code == CodeOf<double>::value) {
            copy_bytes(reinterpret_cast<char*>(line), from + r.to * (int64_t)sizeof(E), r.length * (int64_t)sizeof(E));
        } else if constexpr (!std::is_same<E, uint16_t>::value) {
            const uint16_t* at = reinterpret_cast<const uint16_t*>(from) + r.to;
            if (code == BF16)
                for (int64_t i = 0; i < r.length; ++i) line[i] = convert<E>(BFloat16{at[i]});
            else
                for (int64_t i = 0; i < r.length; ++i) line[i] = convert<E>(Half{at[i]});
        }
    }
}

// Lines of places as they are packed: E, two of which make a pair where E is half of A.
template <class A, class E> struct Lines {
    static constexpr int64_t EACH = sizeof(A) / sizeof(E);
    int64_t places, depth, stride, blocks;  // depth: places of a block
    explicit Lines(int64_t places_)
        : places(places_), depth(EACH * block_depth(ceil_div(places_, EACH))), stride(depth + 32),
          blocks(ceil_div(places_, depth)) {}
    int64_t rows(int64_t count) const { return ceil_div(count, EACH); }  // of a panel
    // `count` places of some lines: what is missing to a pair is zero.
    void pack(const Engine<A>& e, A* panel, int width, E* lines, int64_t number, int64_t count) const {
        for (int64_t l = 0; l < number && count % EACH; ++l) lines[l * stride + count] = 0;
        e.pack(panel, width, reinterpret_cast<const A*>(lines), stride / EACH, 1, number, rows(count));
    }
};

// The gradient's panels, for every block of places: by group, block, panel of rows.
template <class A, class E>
void pack_gradient(const Engine<A>& e, const Form<A>& f, const Planes& grad, const Lines<A, E>& l, A* packed) {
    const int64_t padded = ceil_div(f.rows, e.mr) * e.mr, all = l.rows(l.depth) * l.blocks;
    parallel_for(f.groups * l.blocks, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, l.depth * f.rows)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(e.mr * l.stride, sizeof(E));
                     std::vector<Run> runs;
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t group = t / l.blocks, first = t % l.blocks * l.depth;
                         const int64_t count = std::min(l.depth, l.places - first), kb = l.rows(count);
                         find_runs(f.grid, f.from, f.to, first, first + count, l.places, runs);
                         for (int64_t i = 0; i < f.rows; i += e.mr) {
                             const int64_t lines = std::min<int64_t>(e.mr, f.rows - i);
                             at_level(MT_BODY {
                                 for (int64_t q = 0; q < lines; ++q)
                                     gather_line(room.as<E>() + q * l.stride,
                                                 grad.data + (group * f.rows + i + q) * f.row_to * ITEMSIZE[grad.code],
                                                 grad.code, runs);
                             });
                             A* to = packed + (group * all + t % l.blocks * l.rows(l.depth)) * padded + i * kb;
                             l.pack(e, to, e.mr, room.as<E>(), lines, count);
                         }
                     }
                 });
}

// Parts of the places that are summed by themselves, in order: enough pieces of work where weights are few.
int64_t parts_of(int64_t panels, int64_t blocks) {
    constexpr int64_t PIECES = 64, BLOCKS = 8;
    return std::max<int64_t>(1, std::min(PIECES / std::max<int64_t>(1, panels), blocks / BLOCKS));
}

// out[row][k] += sums over the places, of bfloat16 by tiles: lines of the gradient by lines of the copy.
void weigh_in_tiles(const Form<float>& f, const uint16_t* copy, const Planes& grad, float* out) {
    constexpr int64_t STEP = 2 * EDGE, PLACES = 1024;  // places of a tile, and of a block
    const int64_t places = f.grid.size(), k = f.k(), blocks = ceil_div(places, PLACES);
    const int64_t depth = ceil_div(ceil_div(places, blocks), STEP) * STEP, line = depth + SLACK;
    const int64_t high = in_steps(f.rows), panels = ceil_div(k, SPAN), parts = parts_of(f.groups * panels, blocks);
    const int64_t share = ceil_div(blocks, parts), size = checked_numel({f.groups, f.rows, k});
    const Scratch partial(parts > 1 ? checked_mul(parts, size) : 0, sizeof(float));
    if (parts > 1) std::fill_n(partial.as<float>(), parts * size, 0.0f);
    // Columns of a piece of work: the lines of the gradient are gathered once for them.
    const int64_t pieces = std::min(panels, num_threads() == 1 ? 1 : 4 * (int64_t)num_threads());
    const int64_t wide = ceil_div(panels, pieces);
    parallel_for(parts * f.groups * pieces, 1, [&](int64_t begin, int64_t end) {
        const Scratch room(checked_mul(high + SPAN, line) * 2 + depth / 2 * SPAN * 4, 1);
        uint16_t *rows = room.as<uint16_t>(), *lines = rows + high * line;
        uint32_t* panel = reinterpret_cast<uint32_t*>(lines + SPAN * line);
        alignas(64) float made[SPAN * SPAN];
        std::vector<Run> runs;
        const Tiles tiles;
        for (int64_t t = begin; t < end; ++t) {
            const int64_t piece = t % pieces, group = t / pieces % f.groups, part = t / pieces / f.groups;
            float* const to = (parts > 1 ? partial.as<float>() + part * size : out) + group * f.rows * k;
            for (int64_t b = part * share; b < std::min(blocks, (part + 1) * share); ++b) {
                const int64_t first = b * depth, count = std::min(depth, places - first);
                if (count <= 0) break;
                const int64_t whole = ceil_div(count, STEP) * STEP;
                find_runs(f.grid, f.from, f.to, first, first + count, places, runs);
                at_level(MT_BODY {
                    for (int64_t i = 0; i < high; ++i) {
                        uint16_t* at = rows + i * line;
                        if (i < f.rows)
                            gather_line(at, grad.data + (group * f.rows + i) * f.row_to * 2, grad.code, runs);
                        std::fill(at + (i < f.rows ? count : 0), at + whole, uint16_t(0));
                    }
                });
                for (int64_t p = piece * wide * SPAN; p < std::min(k, (piece + 1) * wide * SPAN); p += SPAN) {
                    const int64_t columns = std::min(SPAN, k - p);
                    at_level(MT_BODY {
                        for (int64_t q = 0; q < columns; ++q) {
                            uint16_t* at = lines + q * line;
                            copy_runs(at, copy + group * f.group_from + f.offset[(size_t)(p + q)], runs);
                            std::fill(at + count, at + whole, uint16_t(0));
                        }
                    });
                    pack_words(panel, lines, line, columns, whole / 2);
                    const Sink<float> sink{to + p, k, 1, nullptr, 0, 0, 1.0f, 0.0f};
                    for (int64_t i = 0; i < f.rows; i += SPAN) {
                        const int64_t height = std::min(SPAN, f.rows - i);
                        tile_products({rows + i * line, line * 2, STEP * 2, EDGE * line * 2},
                                      {panel, SPAN * 4, EDGE * SPAN * 4, EDGE * 4}, whole / STEP, height > EDGE,
                                      columns > EDGE, made);
                        sink_sums(made, int(SPAN), sink, i, 0, height, columns, false, false);
                    }
                }
            }
        }
    });
    for (int64_t part = 0; part < parts && parts > 1; ++part)
        for (int64_t i = 0; i < size; ++i) out[i] += partial.as<float>()[part * size + i];
}

}  // namespace

// out[row][k] += sums over the places: panels of the gradient times panels of the copy, both turned as they are packed.
template <class A, class E> void weight_panels(const Form<A>& f, const E* copy, const Planes& grad, A* out) {
    if constexpr (sizeof(E) != sizeof(A))
        if (f.rows >= 8 && f.grid.size() >= EDGE && has_tiles()) return weigh_in_tiles(f, copy, grad, out);
    const Engine<A>& e = engine_for<A>(f.rows, sizeof(E) != sizeof(A));
    const Lines<A, E> l(f.grid.size());
    const int64_t k = f.k(), padded = ceil_div(f.rows, e.mr) * e.mr, all = l.rows(l.depth) * l.blocks;
    const Scratch packed(checked_numel({f.groups, all, padded}), sizeof(A));
    pack_gradient(e, f, grad, l, packed.as<A>());
    const int64_t panels = ceil_div(k, e.nr), parts = parts_of(f.groups * panels, l.blocks);
    const int64_t share = ceil_div(l.blocks, parts), size = checked_numel({f.groups, f.rows, k});
    const Scratch partial(parts > 1 ? checked_mul(parts, size) : 0, sizeof(A));
    if (parts > 1) std::fill_n(partial.as<A>(), parts * size, A(0));
    const int64_t work = saturated_mul(saturated_mul(l.places / parts, f.rows), e.nr);
    parallel_for(parts * f.groups * panels, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch room(
                         e.nr * l.stride * (int64_t)sizeof(E) + (e.nr * l.rows(l.depth) + SLACK) * (int64_t)sizeof(A),
                         1);
                     A* panel = room.as<A>();
                     E* lines = reinterpret_cast<E*>(panel + e.nr * l.rows(l.depth) + SLACK);
                     std::vector<Run> runs;
                     for (int64_t t = begin, next = 0; t < end; t = next) {
                         // Panels of one part of the places, block by block: the gradient's stays in the cache.
                         const int64_t part = t / (f.groups * panels);
                         next = std::min(end, (part + 1) * f.groups * panels);
                         A* to = parts > 1 ? partial.as<A>() + part * size : out;
                         for (int64_t b = part * share; b < std::min(l.blocks, (part + 1) * share); ++b) {
                             const int64_t first = b * l.depth, count = std::min(l.depth, l.places - first);
                             find_runs(f.grid, f.from, f.to, first, first + count, l.places, runs);
                             for (int64_t s = t; s < next; ++s) {
                                 const int64_t group = s / panels % f.groups, p = s % panels * e.nr;
                                 const int64_t columns = std::min<int64_t>(e.nr, k - p);
                                 at_level(MT_BODY {
                                     for (int64_t q = 0; q < columns; ++q)
                                         copy_runs(lines + q * l.stride,
                                                   copy + group * f.group_from + f.offset[(size_t)(p + q)], runs);
                                 });
                                 l.pack(e, panel, e.nr, lines, columns, count);
                                 const Sink<A> sink{to + group * f.rows * k + p, k, 1, nullptr, 0, 0, A(1), A(0)};
                                 multiply_panels(e, packed.as<A>() + (group * all + b * l.rows(l.depth)) * padded,
                                                 f.rows, panel, columns, l.rows(count), sink, false);
                             }
                         }
                     }
                 });
    for (int64_t part = 0; part < parts && parts > 1; ++part)
        for (int64_t i = 0; i < size; ++i) out[i] += partial.as<A>()[part * size + i];
}

template void sum_panels(const Form<float>&, const Weights<float>&);
template void sum_panels(const Form<double>&, const Weights<double>&);
template void weight_panels(const Form<float>&, const float*, const Planes&, float*);
template void weight_panels(const Form<double>&, const double*, const Planes&, double*);
template void weight_panels(const Form<float>&, const uint16_t*, const Planes&, float*);

}  // namespace mt
