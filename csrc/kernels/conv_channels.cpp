// Convolution of images with channels last, and the gradient of its input: products of places by results. The channels of
// a place lie side by side, so nothing is packed but the weights: a tile reads its places where they are. float32,
// float16 and bfloat16, whose pairs of channels are what the CPU's own products take.
// Invariant: each sum runs over taps, then channels, in blocks that depend on the shapes alone. What windows reach
// outside is zeros of a copy; without padding and of a dtype that is read as it is, images are not copied.
//
// Operands are dense; images have channels last. Triples as in conv.cpp.
//   conv_channels(x.., weight.., bias.., out.., last, images, groups, channels, results, in, out, kernel, stride,
//                 padding, dilation)
//       channels and results: of one group; last: whether the weights have their channels last, too
//   conv_input_channels(grad.., weight.., None, 0, 0, dx.., the same)
// They return False, with nothing written, for shapes and dtypes that are not for them.
#include "caches.h"
#include "conv.h"
#include "halves.h"
#include "lanes.h"
#include "tiles.h"

namespace mt {
namespace {

constexpr int MOST_PLACES = 14;          // of a tile
constexpr int64_t TILES = 16;            // of places that are summed one after the other
constexpr int64_t COPY_BYTES = 1 << 24;  // of images that are copied at a time, unless one is larger

// M places by NV vectors of results: to[i][.] = start + sums, or added. Element p of place i is from[i][offset[p]]; rows
// of w are NR apart. PAIRS: elements are pairs of bfloat16.
template <int BYTES, int M, int NV, int NR> MT_INLINE void places_of(const float* const* from, const int64_t* offset,
                                                                     int64_t k, const float* w, float* const* to,
                                                                     const float* start) {
    using V = typename Vec<float, BYTES>::t;
    using L = typename Vec<float, BYTES>::loose;
    constexpr int LANES = Vec<float, BYTES>::LANES;
    V sum[M][NV];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = V{};
    for (int64_t p = 0; p < k; ++p, w += NR) {
        const int64_t at = offset[p];
        V row[NV];
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) row[v] = *reinterpret_cast<const L*>(w + v * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            const float x = from[i][at];
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sum[i][v] += x * row[v];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            L* at = reinterpret_cast<L*>(to[i] + v * LANES);
            *at = sum[i][v] + (start ? V(*reinterpret_cast<const L*>(start + v * LANES)) : V(*at));
        }
}

#if MT_HAS_LEVELS && __GNUC__ >= 10
template <int M, int NV> MT_PAIRS void pairs_of(const float* const* from, const int64_t* offset, int64_t k,
                                                const float* w, float* const* to, const float* start) {
    typedef float V __attribute__((vector_size(64)));
    V sum[M][NV];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = V{};
    for (int64_t p = 0; p < k; ++p, w += 32) {
        const int64_t at = offset[p];
        __m512bh row[NV];
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) row[v] = (__m512bh)_mm512_loadu_ps(w + 16 * v);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i) {
            const __m512bh x = (__m512bh)_mm512_set1_ps(from[i][at]);
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sum[i][v] = (V)_mm512_dpbf16_ps((__m512)sum[i][v], x, row[v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            float* at = to[i] + 16 * v;
            _mm512_storeu_ps(at, (__m512)((V)_mm512_loadu_ps(start ? start + 16 * v : at) + sum[i][v]));
        }
}
#endif

using Tile = void (*)(const float* const* from, const int64_t* offset, int64_t k, const float* w, float* const* to,
                      const float* start);
struct Kit {
    int places, lanes;
    Tile wide, narrow;  // two vectors of results, and one
};
#define MT_TILES(NAME, TARGET, BYTES, M) \
    template <int NV> TARGET void tile_##NAME(const float* const* from, const int64_t* offset, int64_t k, \
                                              const float* w, float* const* to, const float* start) { \
        places_of<BYTES, M, NV, BYTES / 2>(from, offset, k, w, to, start); \
    } \
    constexpr Kit TILES_##NAME = {M, BYTES / 4, tile_##NAME<2>, tile_##NAME<1>};

MT_TILES(baseline, , 16, 4)
#if MT_HAS_LEVELS
MT_TILES(avx2, MT_AVX2, 32, 6)
MT_TILES(avx512, MT_AVX512, 64, 14)
#if __GNUC__ >= 10
constexpr Kit TILES_pairs = {14, 16, pairs_of<14, 2>, pairs_of<14, 1>};
#endif
#endif

const Kit& tiles_for(bool pairs) {
#if MT_HAS_LEVELS
#if __GNUC__ >= 10
    if (pairs) return TILES_pairs;
#endif
    if (cpu_level == AVX512) return TILES_avx512;
    if (cpu_level == AVX2) return TILES_avx2;
#endif
    (void)pairs;
    return TILES_baseline;
}

// ---------------------------------------------------------------- calls

struct Call {
    bool last;
    int64_t images, groups, channels, results;
    Window v;
    explicit Call(PyObject* const* args)
        : last(as_int(args[0]) != 0), images(parse_count(args[1])), groups(parse_count(args[2])),
          channels(parse_count(args[3])), results(parse_count(args[4])), v(args + 5) {
        if (groups < 1 || v.kernel.size() < 1) fail(PyExc_ValueError, "a convolution without groups or kernel");
    }
    int64_t in_numel() const { return checked_numel({images, groups, channels, v.in.size()}); }
    int64_t out_numel() const { return checked_numel({images, groups, results, v.out.size()}); }
    int64_t weight_numel() const { return checked_numel({groups, results, channels, v.kernel.size()}); }
};

// Weights as one of the two convolutions uses them: by row (a result of it), channel (of what it reads) and tap.
struct Used {
    const Dense& given;
    int64_t group, row, channel, tap;
};

// Places that see the same taps, `shift` elements from each; `at`: which ones they are.
struct Part {
    Grid grid;
    Pitch from, to;  // in places
    int64_t out;     // the first one in the result
    std::vector<int64_t> shift, at;
};

// The images that are read: as they are, or a copy.
struct Images {
    const Dense& given;
    Triple size, low, padded;
    int64_t images, groups, channels;  // channels: of a group
    bool pairs;
    int64_t words() const { return pairs ? ceil_div(channels, 2) : channels; }
    int64_t pitch() const { return groups * words(); }  // from place to place, in floats
    bool as_is() const {
        const bool whole =
            low.d == 0 && low.h == 0 && low.w == 0 && padded.d == size.d && padded.h == size.h && padded.w == size.w;
        return whole && (pairs ? channels % 2 == 0 : given.code == F32);
    }
    int64_t image() const { return checked_mul(padded.size(), pitch()); }
};

// n places of an image, side by side.
void copy_places(const Images& m, const char* from, int64_t n, float* to) {
    const int64_t all = m.groups * m.channels;
    if (!m.pairs) return cast_block(reinterpret_cast<char*>(to), F32, from, m.given.code, n * all);
    if (m.channels % 2 == 0) {
        std::memcpy(to, from, (size_t)(n * all * 2));
        return;
    }
    const uint16_t* x = reinterpret_cast<const uint16_t*>(from);
    uint16_t* out = reinterpret_cast<uint16_t*>(to);
    for (int64_t i = 0; i < n * m.groups; ++i, out += m.words() * 2) {
        for (int64_t c = 0; c < m.channels; ++c) out[c] = x[i * m.channels + c];
        out[m.channels] = 0;
    }
}

// Images [first, first + count) with zeros around them.
void copy_images(const Images& m, int64_t first, int64_t count, float* to) {
    const int64_t rows = checked_numel({count, m.padded.d, m.padded.h}), pitch = m.pitch(), row = m.padded.w * pitch;
    const int64_t place = m.groups * m.channels * ITEMSIZE[m.given.code];
    const int64_t begin = std::min(m.low.w, m.padded.w), wide = std::min(m.size.w, m.padded.w - begin);
    parallel_for(rows, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, row)), [&](int64_t from, int64_t end) {
        for (int64_t r = from; r < end; ++r) {
            const int64_t y = r % m.padded.h - m.low.h, z = r / m.padded.h % m.padded.d - m.low.d;
            const int64_t n = first + r / m.padded.h / m.padded.d;
            float* at = to + r * row;
            if (y < 0 || y >= m.size.h || z < 0 || z >= m.size.d) {
                std::fill_n(at, row, 0.0f);
                continue;
            }
            std::fill_n(at, begin * pitch, 0.0f);
            copy_places(m, m.given.data + ((n * m.size.d + z) * m.size.h + y) * m.size.w * place, wide,
                        at + begin * pitch);
            std::fill_n(at + (begin + wide) * pitch, row - (begin + wide) * pitch, 0.0f);
        }
    });
}

// The weights of `lines` rows: lines of k elements, taps first. E: float, or uint16_t for pairs.
template <class E> void order_weights(const Used& w, const Part& part, int64_t group, int64_t first, int64_t lines,
                                      int64_t channels, int64_t width, E* to) {
    const E* from = w.given.as<const E>() + group * w.group + first * w.row;
    const int64_t taps = (int64_t)part.at.size(), k = taps * width;
    if (width != channels) std::fill_n(to, lines * k, E(0));
    if (w.row < w.channel) {  // rows are nearer in memory than channels
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t line = 0; line < lines; ++line) {
                const E* x = from + line * w.row + c * w.channel;
                E* out = to + line * k + c;
                for (int64_t t = 0; t < taps; ++t) out[t * width] = x[part.at[(size_t)t] * w.tap];
            }
        return;
    }
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t t = 0; t < taps; ++t) {
            const E* x = from + line * w.row + part.at[(size_t)t] * w.tap;
            E* out = to + line * k + t * width;
            if (w.channel == 1) std::copy_n(x, channels, out);
            else
                for (int64_t c = 0; c < channels; ++c) out[c] = x[c * w.channel];
        }
}

#if MT_HAS_LEVELS
template <class S>
MT_AVX512 void narrow_rows(const float* const* rows, const int64_t* to, int64_t count, int64_t columns, S* out) {
    for (int64_t i = 0; i < count; ++i) put_halves16(out + to[i], rows[i], columns, 1.0f);
}
bool narrows(const float* const* rows, const int64_t* to, int64_t count, int64_t columns, const Dense& out,
             int64_t first) {
    if (cpu_level != AVX512 || out.code == F32) return false;
    if (out.code == BF16) narrow_rows(rows, to, count, columns, out.as<BFloat16>() + first);
    else narrow_rows(rows, to, count, columns, out.as<Half>() + first);
    return true;
}
#else
bool narrows(const float* const*, const int64_t*, int64_t, int64_t, const Dense&, int64_t) { return false; }
#endif

// One of the two convolutions, for all parts.
class Sums {
public:
    Sums(const Images& from, const Used& w, int64_t rows, const float* bias, const Dense& out, bool gradient)
        : from_(from), w_(w), rows_(rows), bias_(bias), out_(out), gradient_(gradient), tiles_(tiles_for(from.pairs)),
          in_tiles_(from.pairs && has_tiles()), nr_(2 * tiles_.lanes), panels_(ceil_div(rows, nr_)) {}

    void run(const std::vector<Part>& parts) {
        std::vector<int64_t> start{0};
        for (const Part& part : parts)
            start.push_back(checked_add(start.back(), checked_numel({from_.groups, panels_, nr_, deep(k_of(part))})));
        const Scratch packed(start.back(), sizeof(float));
        for (size_t i = 0; i < parts.size(); ++i) pack(parts[i], packed.as<float>() + start[i]);
        const int64_t image = from_.image();
        const bool copied = !from_.as_is();
        const int64_t step =
            copied ? std::max<int64_t>(1, std::min(from_.images, COPY_BYTES / 4 / std::max<int64_t>(1, image)))
                   : from_.images;
        int64_t apart = 1;  // places between two that are read side by side
        for (const Part& part : parts) apart = std::max(apart, part.from.x);
        const int64_t slack = in_tiles_ ? checked_numel({2 * SPAN, apart, from_.pitch()}) : 0;
        const Scratch room(copied ? checked_add(checked_mul(step, image), slack) : 0, sizeof(float));
        for (int64_t first = 0; first < from_.images; first += step) {
            const int64_t count = std::min(step, from_.images - first);
            if (copied) copy_images(from_, first, count, room.as<float>());
            const float* base = copied ? room.as<const float>() : reinterpret_cast<const float*>(from_.given.data);
            for (size_t i = 0; i < parts.size(); ++i) {
                Part part = parts[i];
                part.grid.n = count, part.out += first * part.to.n;
                if (in_tiles_ && copied && even(part)) sum_even(part, packed.as<float>() + start[i], base);
                else if (in_tiles_) sum_in_tiles(part, packed.as<float>() + start[i], base);
                else sum_part(part, packed.as<float>() + start[i], base);
            }
        }
    }

private:
    const Images& from_;
    const Used& w_;
    const int64_t rows_;
    const float* bias_;
    const Dense& out_;
    const bool gradient_;
    const Kit& tiles_;
    const bool in_tiles_;  // those of the CPU, which take words of four bytes along k by 16
    const int64_t nr_, panels_;

    int64_t k_of(const Part& part) const { return checked_mul((int64_t)part.at.size(), from_.words()); }

    int64_t deep(int64_t k) const { return in_tiles_ ? ceil_div(k, EDGE) * EDGE : k; }

    // Panels of the weights: by group, panel of rows, k.
    void pack(const Part& part, float* packed) const {
        const int64_t k = k_of(part), each = from_.pairs ? 2 : 1, width = from_.words() * each;
        if (k == 0) return;
        const int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, k * nr_));
        // Rows that lie as they are used: taps in order, channels side by side.
        bool ordered = w_.channel == 1 && width == from_.channels && w_.row == k * each;
        for (size_t t = 0; t < part.at.size() && ordered; ++t) ordered = part.at[t] * w_.tap == (int64_t)t * width;
        parallel_for(from_.groups * panels_, grain, [&](int64_t begin, int64_t end) {
            const Scratch room(ordered ? 0 : checked_mul(nr_, k), sizeof(float));
            for (int64_t t = begin; t < end; ++t) {
                const int64_t first = t % panels_ * nr_, lines = std::min(nr_, rows_ - first);
                float* const to = packed + t * nr_ * deep(k);
                std::fill(to + nr_ * k, to + nr_ * deep(k), 0.0f);
                if (ordered) {
                    const int64_t start = t / panels_ * w_.group + first * w_.row;
                    engine<float>(1).pack(to, int(nr_), w_.given.as<const float>() + start / each, w_.row / each, 1,
                                          lines, k);
                    continue;
                }
                if (from_.pairs)
                    order_weights(w_, part, t / panels_, first, lines, from_.channels, width, room.as<uint16_t>());
                else order_weights(w_, part, t / panels_, first, lines, from_.channels, width, room.as<float>());
                engine<float>(1).pack(to, int(nr_), room.as<float>(), k, 1, lines, k);
            }
        });
    }

    void sum_part(const Part& part, const float* packed, const float* base) const {
        const int64_t places = part.grid.size(), k = k_of(part), words = from_.words(), pitch = from_.pitch();
        std::vector<int64_t> offset;
        offset.reserve((size_t)k);
        for (const int64_t shift : part.shift)
            for (int64_t c = 0; c < words; ++c) offset.push_back(shift * pitch + c);
        // Places that are summed together, and panels: enough pieces for every thread.
        const int64_t m = tiles_.places, want = num_threads() == 1 ? 1 : 3 * num_threads();
        const int64_t chunk = std::min(TILES * m, std::max<int64_t>(m, ceil_div(ceil_div(places, want), m) * m));
        const int64_t chunks = ceil_div(places, chunk);
        const int64_t across =
            std::min(panels_, std::max<int64_t>(1, want / std::max<int64_t>(1, chunks * from_.groups)));
        const int64_t share = ceil_div(panels_, across);
        const int64_t work = saturated_mul(saturated_mul(chunk, share * nr_), k);
        parallel_for(checked_numel({from_.groups, chunks, across}),
                     std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
                         Chunk c(*this, part, base, offset, chunk);
                         for (int64_t t = begin; t < end; ++t) {
                             const int64_t j = t % across * share, group = t / across / chunks;
                             const int64_t first = t / across % chunks * chunk;
                             c.find(first, std::min(places, first + chunk), group);
                             for (int64_t panel = j; panel < std::min(panels_, j + share); ++panel)
                                 c.sum(packed + (group * panels_ + panel) * nr_ * k, panel);
                         }
                     });
    }

    // Words side by side in an image, and where they stand among those of a place.
    struct Stretch {
        int64_t from, to, length;
    };
    std::vector<Stretch> stretches_of(const Part& part) const {
        std::vector<Stretch> all;
        const int64_t words = from_.words();
        for (size_t t = 0; t < part.shift.size(); ++t) {
            const int64_t at = part.shift[t] * from_.pitch();
            if (!all.empty() && all.back().from + all.back().length == at) all.back().length += words;
            else all.push_back({at, (int64_t)t * words, words});
        }
        return all;
    }

    // The words of a place along k, and zeros behind them.
    static void gather(const float* const* from, int64_t count, const std::vector<Stretch>& stretches, int64_t k,
                       int64_t deep, float* to) {
        bool whole = true;
        for (const Stretch& s : stretches) whole &= s.length % EDGE == 0;
        at_level(MT_BODY {
            for (int64_t i = 0; i < count; ++i, to += deep) {
                for (const Stretch& s : stretches) {
                    const float* at = from[i] + s.from;
                    if (whole)
                        for (int64_t q = 0; q < s.length; q += EDGE) std::memcpy(to + s.to + q, at + q, EDGE * 4);
                    else
                        copy_bytes(reinterpret_cast<char*>(to + s.to), reinterpret_cast<const char*>(at), s.length * 4);
                }
                for (int64_t q = k; q < deep; ++q) to[q] = 0;
            }
        });
    }

    // The same as sum_part, by tiles: words of each place are gathered, unless they lie in rows of tiles already.
    void sum_in_tiles(const Part& part, const float* packed, const float* base) const {
        const int64_t places = part.grid.size(), k = k_of(part), depth = deep(k);
        const std::vector<Stretch> stretches = stretches_of(part);
        const int64_t fit = caches.second / 2 / std::max<int64_t>(1, depth * 4) / SPAN * SPAN;
        const int64_t want = num_threads() == 1 ? 1 : 3 * num_threads();
        const int64_t chunk = std::max(SPAN, std::min({16 * SPAN, fit, ceil_div(ceil_div(places, want), SPAN) * SPAN}));
        const int64_t chunks = ceil_div(places, chunk);
        const int64_t across =
            std::min(panels_, std::max<int64_t>(1, want / std::max<int64_t>(1, chunks * from_.groups)));
        const int64_t share = ceil_div(panels_, across), work = saturated_mul(saturated_mul(chunk, share * nr_), depth);
        parallel_for(checked_numel({from_.groups, chunks, across}),
                     std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
                         Chunk c(*this, part, base, stretches, chunk, depth);
                         const Tiles tiles;
                         for (int64_t t = begin; t < end; ++t) {
                             const int64_t j = t % across * share, group = t / across / chunks,
                                           first = t / across % chunks * chunk;
                             c.find(first, std::min(places, first + chunk), group);
                             c.gather_rows();
                             for (int64_t panel = j; panel < std::min(panels_, j + share); ++panel)
                                 c.sum_tiles(packed + (group * panels_ + panel) * nr_ * depth, panel);
                         }
                     });
    }

    // Whether all places of a plane, with those that stand between two rows of them, are equally far apart, and few of
    // them are not wanted. Then rows of tiles are read where they lie.
    static int64_t across_rows(const Part& part) { return part.from.y / part.from.x; }
    static int64_t stretch_of(const Part& part) { return (part.grid.y - 1) * across_rows(part) + part.grid.x; }
    bool even(const Part& part) const {
        if (from_.words() % EDGE != 0 || part.from.y % part.from.x != 0 || part.shift.empty()) return false;
        return 5 * ceil_div(stretch_of(part), EDGE) * EDGE <= 7 * part.grid.x * part.grid.y;
    }
    void sum_even(const Part& part, const float* packed, const float* base) const {
        const int64_t depth = k_of(part), pitch = from_.pitch(), words = from_.words(), steps = depth / EDGE;
        std::vector<int64_t> at;  // of the tiles of a place along k, in bytes
        for (const int64_t shift : part.shift)
            for (int64_t c = 0; c < words; c += EDGE) at.push_back((shift * pitch + c) * 4);
        const int64_t stretch = stretch_of(part), row = across_rows(part), planes = part.grid.n * part.grid.z;
        const int64_t chunk = std::min(16 * SPAN, ceil_div(stretch, SPAN) * SPAN), chunks = ceil_div(stretch, chunk);
        const int64_t want = num_threads() == 1 ? 1 : 3 * num_threads();
        const int64_t across =
            std::min(panels_, std::max<int64_t>(1, want / std::max<int64_t>(1, planes * chunks * from_.groups)));
        const int64_t share = ceil_div(panels_, across), work = saturated_mul(saturated_mul(chunk, share * nr_), depth);
        parallel_for(
            checked_numel({from_.groups, planes, chunks, across}), std::max<int64_t>(1, (1 << 20) / work),
            [&](int64_t begin, int64_t end) {
                alignas(64) float sums[SPAN * SPAN];
                const Tiles tiles;
                for (int64_t t = begin; t < end; ++t) {
                    const int64_t j = t % across * share, first = t / across % chunks * chunk;
                    const int64_t plane = t / across / chunks % planes, group = t / across / chunks / planes;
                    const int64_t z = plane % part.grid.z, n = plane / part.grid.z,
                                  last = std::min(stretch, first + chunk);
                    const float* from = base + part.from.at(n, z, 0, 0) * pitch + group * words;
                    for (int64_t panel = j; panel < std::min(panels_, j + share); ++panel)
                        for (int64_t q = first; q < last; q += SPAN) {
                            const int64_t height = std::min(SPAN, last - q), begins = panel * nr_;
                            const int64_t columns = std::min(nr_, rows_ - begins), far = part.from.x * pitch * 4;
                            tile_products(
                                {from + q * part.from.x * pitch, far, 0, EDGE * far}, at.data(),
                                {packed + (group * panels_ + panel) * nr_ * depth, SPAN * 4, EDGE * SPAN * 4, EDGE * 4},
                                steps, height > EDGE, columns > EDGE, sums);
                            const float* lines[SPAN];
                            int64_t to[SPAN], wanted = 0;
                            for (int64_t r = 0; r < height; ++r) {
                                const int64_t y = (q + r) / row, x = (q + r) % row;
                                if (x >= part.grid.x) continue;
                                lines[wanted] = sums + r * SPAN;
                                to[wanted++] = ((part.out + part.to.at(n, z, y, x)) * from_.groups + group) * rows_;
                            }
                            add_bias(group, begins, height, columns, sums);
                            narrows(lines, to, wanted, columns, out_, begins);
                        }
                }
            });
    }
    void add_bias(int64_t group, int64_t first, int64_t height, int64_t columns, float* sums) const {
        if (!bias_) return;
        const float* bias = bias_ + group * rows_ + first;
        at_level(MT_BODY {
            for (int64_t r = 0; r < height; ++r)
                for (int64_t q = 0; q < columns; ++q) sums[r * SPAN + q] += bias[q];
        });
    }

    // Some places of one group, in one thread.
    class Chunk {
    public:
        Chunk(const Sums& s, const Part& part, const float* base, const std::vector<int64_t>& offset, int64_t most)
            : s_(s), part_(part), base_(base), offset_(&offset), stretches_(nullptr), most_(most), depth_(0),
              room_(checked_mul(most + MOST_PLACES + 1, s.nr_), sizeof(float)) {
            make_room();
        }
        Chunk(const Sums& s, const Part& part, const float* base, const std::vector<Stretch>& stretches, int64_t most,
              int64_t depth)
            : s_(s), part_(part), base_(base), offset_(nullptr), stretches_(&stretches), most_(most), depth_(depth),
              room_(checked_mul(most, depth), sizeof(float)) {
            make_room();
        }
        void make_room() {
            const int64_t most = most_;
            from_.resize((size_t)(most + MOST_PLACES)), to_.resize((size_t)(most + MOST_PLACES));
            rows_.resize((size_t)(most + MOST_PLACES));
        }
        void find(int64_t first, int64_t last, int64_t group) {
            count_ = last - first, group_ = group;
            const Grid& g = part_.grid;
            const int64_t pitch = s_.from_.pitch();
            int64_t x = first % g.x, y = first / g.x % g.y, z = first / g.x / g.y % g.z, n = first / g.x / g.y / g.z;
            for (int64_t i = 0; i < count_; ++i) {
                from_[(size_t)i] = base_ + part_.from.at(n, z, y, x) * pitch + group * s_.from_.words();
                to_[(size_t)i] = (part_.out + part_.to.at(n, z, y, x)) * s_.from_.groups * s_.rows_ + group * s_.rows_;
                if (++x < g.x) continue;
                x = 0;
                if (++y < g.y) continue;
                y = 0;
                if (++z < g.z) continue;
                z = 0, ++n;
            }
            for (int64_t i = count_; i < count_ + MOST_PLACES; ++i) from_[(size_t)i] = from_[0];
        }
        void sum(const float* packed, int64_t panel) {
            const int64_t first = panel * s_.nr_, columns = std::min(s_.nr_, s_.rows_ - first), m = s_.tiles_.places;
            const bool narrow = columns <= s_.tiles_.lanes;
            const bool direct = s_.out_.code == F32 && columns == (narrow ? s_.tiles_.lanes : s_.nr_);
            const Tile tile = narrow ? s_.tiles_.narrow : s_.tiles_.wide;
            float* const dump = room_.as<float>() + most_ * s_.nr_;
            float* const start = dump + MOST_PLACES * s_.nr_;  // the bias of this panel
            std::fill_n(start, s_.nr_, 0.0f);
            if (s_.bias_) std::copy_n(s_.bias_ + group_ * s_.rows_ + first, columns, start);
            for (int64_t i = 0; i < count_ + MOST_PLACES; ++i)
                rows_[(size_t)i] = i >= count_ ? dump
                                   : direct    ? s_.out_.as<float>() + to_[(size_t)i] + first
                                               : room_.as<float>() + i * s_.nr_;
            const int64_t k = (int64_t)offset_->size(),
                          depth = std::max<int64_t>(1, sum_depth(k, s_.from_.pairs, s_.gradient_));
            for (int64_t p = 0; p == 0 || p < k; p += depth)
                for (int64_t i = 0; i < count_; i += m)
                    tile(from_.data() + i, offset_->data() + p, std::min(depth, k - p), packed + p * s_.nr_,
                         rows_.data() + i, p == 0 ? start : nullptr);
            if (direct) return;
            const Dense& out = s_.out_;
            if (narrows(rows_.data(), to_.data(), count_, columns, out, first)) return;
            at_level(MT_BODY {
                for (int64_t i = 0; i < count_; ++i)
                    put_line(out.data + (to_[(size_t)i] + first) * ITEMSIZE[out.code], out.code, 1,
                             (const float*)rows_[(size_t)i], columns);
            });
        }

        // Rows of tiles: the first `lying_` places are read where they lie.
        void gather_rows() {
            const int64_t k = s_.k_of(part_);
            lying_ = 0, pitch_ = count_ > 1 ? from_[1] - from_[0] : 0;
            if (stretches_->size() == 1 && k == depth_) {
                int64_t same = 1;
                while (same < count_ && from_[(size_t)same] - from_[(size_t)same - 1] == pitch_) ++same;
                lying_ = same / SPAN * SPAN;
            }
            gather(from_.data() + lying_, count_ - lying_, *stretches_, k, depth_, room_.as<float>() + lying_ * depth_);
        }
        void sum_tiles(const float* packed, int64_t panel) {
            const int64_t first = panel * s_.nr_, columns = std::min(s_.nr_, s_.rows_ - first), k = depth_;
            alignas(64) float sums[SPAN * SPAN];
            const float* rows[SPAN];
            for (int64_t r = 0; r < SPAN; ++r) rows[r] = sums + r * SPAN;
            for (int64_t i = 0; i < count_; i += SPAN) {
                const int64_t height = std::min(SPAN, count_ - i);
                const Lay left = i < lying_ ? Lay{from_[(size_t)i] + stretches_->front().from, pitch_ * 4, EDGE * 4,
                                                  EDGE * pitch_ * 4}
                                            : Lay{room_.as<float>() + i * k, k * 4, EDGE * 4, EDGE * k * 4};
                tile_products(left, {packed, SPAN * 4, EDGE * SPAN * 4, EDGE * 4}, k / EDGE, height > EDGE,
                              columns > EDGE, sums);
                s_.add_bias(group_, first, height, columns, sums);
                narrows(rows, to_.data() + i, height, columns, s_.out_, first);
            }
        }

    private:
        const Sums& s_;
        const Part& part_;
        const float* base_;
        const std::vector<int64_t>* const offset_;
        const std::vector<Stretch>* const stretches_;
        const int64_t most_, depth_;
        int64_t count_ = 0, group_ = 0, lying_ = 0, pitch_ = 0;
        const Scratch room_;
        std::vector<const float*> from_;
        std::vector<int64_t> to_;
        std::vector<float*> rows_;
    };
};

Pitch dense_pitch(const Triple& size) { return {size.size(), size.h * size.w, size.w, 1}; }

// Of a plain convolution: all places at once.
Part plain_part(const Call& c, const Triple& padded) {
    const Window& v = c.v;
    const Pitch from = dense_pitch(padded);
    Part part{{0, v.out.d, v.out.h, v.out.w},
              {from.n, from.z * v.stride.d, from.y * v.stride.h, v.stride.w},
              dense_pitch(v.out),
              0,
              {},
              {}};
    for (int64_t a = 0; a < v.kernel.d; ++a)
        for (int64_t b = 0; b < v.kernel.h; ++b)
            for (int64_t e = 0; e < v.kernel.w; ++e) {
                part.shift.push_back(from.at(0, a * v.dilation.d, b * v.dilation.h, e * v.dilation.w));
                part.at.push_back((a * v.kernel.h + b) * v.kernel.w + e);
            }
    return part;
}

// Of the gradient of the input: one part for each remainder of the strides.
std::vector<Part> input_parts(const Call& c, const Padded& p) {
    const Window& v = c.v;
    const Pitch from = dense_pitch(p.size), to = dense_pitch(v.in);
    std::vector<Part> parts;
    for (int64_t z = 0; z < std::min(v.stride.d, v.in.d); ++z)
        for (int64_t y = 0; y < std::min(v.stride.h, v.in.h); ++y)
            for (int64_t x = 0; x < std::min(v.stride.w, v.in.w); ++x) {
                Part part{{0, ceil_div(v.in.d - z, v.stride.d), ceil_div(v.in.h - y, v.stride.h),
                           ceil_div(v.in.w - x, v.stride.w)},
                          from,
                          {to.n, to.z * v.stride.d, to.y * v.stride.h, v.stride.w},
                          to.at(0, z, y, x),
                          {},
                          {}};
                const Taps a(z, v.kernel.d, v.stride.d, v.padding.d, v.dilation.d, p.low.d);
                const Taps b(y, v.kernel.h, v.stride.h, v.padding.h, v.dilation.h, p.low.h);
                const Taps e(x, v.kernel.w, v.stride.w, v.padding.w, v.dilation.w, p.low.w);
                for (size_t i = 0; i < a.tap.size(); ++i)
                    for (size_t j = 0; j < b.tap.size(); ++j)
                        for (size_t l = 0; l < e.tap.size(); ++l) {
                            part.shift.push_back(from.at(0, a.shift[i], b.shift[j], e.shift[l]));
                            part.at.push_back((a.tap[i] * v.kernel.h + b.tap[j]) * v.kernel.w + e.tap[l]);
                        }
                parts.push_back(std::move(part));
            }
    return parts;
}

// Whether a copy is in proportion to what is read and written.
bool in_proportion(const Triple& copied, const Triple& a, const Triple& b, const Triple& kernel) {
    const int64_t places = saturated_mul(copied.d, saturated_mul(copied.h, copied.w));
    return places <= saturated_mul(4, saturated_add(a.size(), saturated_mul(b.size(), kernel.size())));
}

// A whole operand in float.
class Wide {
public:
    Wide(const Dense& given, int64_t numel, bool wanted)
        : room_(wanted ? numel : 0, sizeof(float)), made_{room_.as<char>(), F32} {
        if (wanted) cast_block(made_.data, F32, given.data, given.code, numel);
        else made_ = given;
    }
    const Dense& get() const { return made_; }

private:
    Scratch room_;
    Dense made_;
};

template <bool INPUT> bool compute(const Call& c, const Dense& x, const Dense& weight, const Dense& bias,
                                   const Dense& out) {
    const Window& v = c.v;
    const int64_t taps = v.kernel.size(), read = INPUT ? c.results : c.channels, rows = INPUT ? c.channels : c.results;
    const bool pairs = x.code == BF16 && pair_engine(1) && (read % 2 == 0 || c.groups == 1);
    const Padded p = INPUT ? padded_gradient(v) : padded_input(v);
    const Triple size = INPUT ? v.out : v.in;
    // Places that nothing reads may lie behind the last one that is.
    const Triple padded{std::max(p.size.d, p.low.d + size.d), std::max(p.size.h, p.low.h + size.h),
                        std::max(p.size.w, p.low.w + size.w)};
    if (!in_proportion(padded, v.in, v.out, v.kernel)) return false;
    GilRelease unlocked(saturated_mul(c.out_numel(), c.channels * taps));
    const Wide used(weight, c.weight_numel(), !pairs && weight.code != F32);
    const Wide added(bias, bias.data ? c.groups * rows : 0, bias.data && bias.code != F32);
    const int64_t tap = c.last ? c.channels : 1, channel = c.last ? 1 : taps, result = c.channels * taps;
    const Used w{used.get(), c.results * result, INPUT ? channel : result, INPUT ? result : channel, tap};
    const Images images{x, size, p.low, padded, c.images, c.groups, read, pairs};
    Sums sums(images, w, rows, bias.data ? added.get().template as<const float>() : nullptr, out, INPUT);
    Padded whole = p;
    whole.size = padded;
    sums.run(INPUT ? input_parts(c, whole) : std::vector<Part>{plain_part(c, padded)});
    return true;
}

template <bool INPUT> PyObject* convolve(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args(name, nargs, 23);
        const Call c(args + 12);
        const int64_t in = c.in_numel(), out = c.out_numel(), weight = c.weight_numel();
        const Dense a = parse_dense(args, INPUT ? out : in), b = parse_dense(args + 3, weight);
        const bool biased = args[6] != Py_None;
        const int64_t rows = checked_mul(c.groups, INPUT ? c.channels : c.results);
        const Dense bias = biased ? parse_dense(args + 6, rows) : Dense{nullptr, a.code};
        const Dense o = parse_dense(args + 9, INPUT ? in : out);
        if (a.code != b.code || a.code != o.code || a.code != bias.code)
            fail(PyExc_ValueError, "%s: operands of two dtypes", name);
        if (a.code != F32 && a.code != F16 && a.code != BF16) fail_dtype(name, a.code);
        if (in == 0 || out == 0 || weight == 0) Py_RETURN_FALSE;
        if (compute<INPUT>(c, a, b, bias, o)) Py_RETURN_TRUE;
        Py_RETURN_FALSE;
    });
}

PyObject* conv_channels(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return convolve<false>("conv_channels", args, nargs);
}
PyObject* conv_input_channels(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return convolve<true>("conv_input_channels", args, nargs);
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef conv_channels_methods[];  // no other file needs to know
PyMethodDef conv_channels_methods[] = {
    MT_METHOD("conv_channels", conv_channels, "Convolution, channels last."),
    MT_METHOD("conv_input_channels", conv_input_channels, "The gradient of its input."),
    {nullptr, nullptr, 0, nullptr}};
