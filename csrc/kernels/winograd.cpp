// Convolution of 3 x 3 places in tiles of 2 x 2 results (Winograd's F(2 x 2, 3 x 3)): 16 products of a transformed tile
// with transformed weights do the work of 36. Sums over channels are products of matrices, one for each of the 16 places
// of a transformed tile, by the engine of gemm.h.
// Invariant: each sum over channels is made of blocks of DEPTH in order, whatever the caches and the threads are. Short
// blocks are what keeps errors at those of the plain sum, of nine times as many terms.
//
// Tiles are counted over all images, a block of them at a time. In memory, for one place q of 16:
//   weights  [q][panel of mr rows][channel][mr]     made once
//   tiles    [q][panel of nr tiles][channel][nr]    of one block: these stay in the second cache
//   sums     [q][row][tile]                         of one block and some panels of rows
#include "winograd.h"
#include "caches.h"
#include "gemm.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace mt {
namespace {

constexpr int64_t DEPTH = 32;
constexpr int PLACES = 16;
constexpr int64_t CHUNK = 4;  // panels of rows whose sums are kept at a time, if weights stay in the caches
constexpr int LINE = 80;      // elements of a line of two tiles more than the widest panel has

// A stretch of tiles side by side in one row of tiles, within a panel.
struct Stretch {
    int64_t column, length, image, y, x;
};

// A row of the input from column `first` on, as its even and its odd places; zeros outside of it.
template <class A, int W> MT_INLINE void split_row(const A* row, int64_t width, int64_t first, A* even, A* odd) {
    A line[LINE];
    const A* from = line;
    constexpr int64_t COUNT = 2 * W + 2;
    if (row && first >= 0 && first + COUNT <= width) from = row + first;
    else {
        std::fill(line, line + COUNT, A(0));
        if (row) {
            const int64_t begin = std::max<int64_t>(0, -first), end = std::min<int64_t>(COUNT, width - first);
            for (int64_t i = begin; i < end; ++i) line[i] = row[first + i];
        }
    }
#pragma GCC ivdep
    for (int i = 0; i <= W; ++i) {
        even[i] = from[2 * i];
        odd[i] = from[2 * i + 1];
    }
}

// W tiles side by side, transformed; `to` has room for W elements at each of the 16 places, which are `step` apart.
template <class A, int W>
MT_INLINE void transform_tiles(const Winograd<A>& c, const A* plane, int64_t ty, int64_t tx, A* to, int64_t step) {
    A even[4][W + 1], odd[4][W + 1], part[4][4][W];
    for (int r = 0; r < 4; ++r) {
        const int64_t y = 2 * ty + r - c.pad_h;
        split_row<A, W>(y >= 0 && y < c.in_h ? plane + y * c.in_w : nullptr, c.in_w, 2 * tx - c.pad_w, even[r], odd[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC ivdep
        for (int i = 0; i < W; ++i) {
            part[r][0][i] = even[r][i] - even[r][i + 1];
            part[r][1][i] = odd[r][i] + even[r][i + 1];
            part[r][2][i] = even[r][i + 1] - odd[r][i];
            part[r][3][i] = odd[r][i] - odd[r][i + 1];
        }
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
        A *a = to + q * step, *b = to + (4 + q) * step, *d = to + (8 + q) * step, *e = to + (12 + q) * step;
#pragma GCC ivdep
        for (int i = 0; i < W; ++i) {
            a[i] = part[0][q][i] - part[2][q][i];
            b[i] = part[1][q][i] + part[2][q][i];
            d[i] = part[2][q][i] - part[1][q][i];
            e[i] = part[1][q][i] - part[3][q][i];
        }
    }
}

// The widths that tiles are transformed in: what a stretch writes behind its last tile is written again after it.
template <class A>
MT_INLINE void transform_stretch(const Winograd<A>& c, const A* plane, const Stretch& s, A* to, int64_t step) {
    if (s.length <= 4) transform_tiles<A, 4>(c, plane, s.y, s.x, to, step);
    else if (s.length <= 8) transform_tiles<A, 8>(c, plane, s.y, s.x, to, step);
    else if (s.length <= 16) transform_tiles<A, 16>(c, plane, s.y, s.x, to, step);
    else transform_tiles<A, 32>(c, plane, s.y, s.x, to, step);
}

// One row of results: the sums of a block, transformed back, as two lines of twice as many elements. Returns whether
// one of them is infinite or not a number.
template <class A> MT_INLINE bool transform_sums(const A* sums, int64_t step, int64_t count, A bias, A* line) {
    using Bits = decltype(bits_of(A()));
    const Bits exponent = bits_of(std::numeric_limits<A>::infinity());
    Bits bad = 0;
    A *first = line, *second = line + 2 * count;
#pragma GCC ivdep
    for (int64_t t = 0; t < count; ++t) {
        A up[4], down[4];
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) {
            const A a = sums[q * step + t], b = sums[(4 + q) * step + t], d = sums[(8 + q) * step + t],
                    e = sums[(12 + q) * step + t];
            up[q] = a + b + d;
            down[q] = b - d - e;
        }
        const A y0 = up[0] + up[1] + up[2] + bias, y1 = up[1] - up[2] - up[3] + bias;
        const A y2 = down[0] + down[1] + down[2] + bias, y3 = down[1] - down[2] - down[3] + bias;
        first[2 * t] = y0;
        first[2 * t + 1] = y1;
        second[2 * t] = y2;
        second[2 * t + 1] = y3;
        bad |= Bits((bits_of(y0) & exponent) == exponent) | Bits((bits_of(y1) & exponent) == exponent) |
               Bits((bits_of(y2) & exponent) == exponent) | Bits((bits_of(y3) & exponent) == exponent);
    }
    return bad != 0;
}

// The nine taps of each row of a panel, transformed. `to`: the first place of the panel; places are `step` apart.
template <class A>
MT_INLINE void transform_weights(const Winograd<A>& c, int64_t first, int64_t lines, int mr, A* to, int64_t step) {
    constexpr int WIDE = 16;
    for (int64_t k = 0; k < c.channels; ++k, to += mr) {
        A tap[9][WIDE] = {}, part[4][3][WIDE], done[WIDE];
        for (int64_t i = 0; i < lines; ++i) {
            const A* w = c.weight + (first + i) * c.w_row + k * c.w_channel;
#pragma GCC unroll 9
            for (int t = 0; t < 9; ++t) tap[t][i] = w[c.flipped ? 8 - t : t];
        }
#pragma GCC unroll 3
        for (int e = 0; e < 3; ++e)
            for (int i = 0; i < WIDE; ++i) {
                const A ends = tap[e][i] + tap[6 + e][i];
                part[0][e][i] = tap[e][i];
                part[1][e][i] = A(0.5) * (ends + tap[3 + e][i]);
                part[2][e][i] = A(0.5) * (ends - tap[3 + e][i]);
                part[3][e][i] = tap[6 + e][i];
            }
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
            for (int q = 0; q < 4; ++q) {
                for (int i = 0; i < WIDE; ++i) {
                    const A a = part[r][0][i], b = part[r][1][i], d = part[r][2][i];
                    done[i] = q == 0 ? a : q == 3 ? d : A(0.5) * (q == 1 ? (a + d) + b : (a + d) - b);
                }
                A* at = to + (4 * r + q) * step;
                // Whole vectors: what is behind the panel's last row is written again with the next channels.
                if ((c.channels - k) * mr >= WIDE)
                    for (int i = 0; i < WIDE; ++i) at[i] = done[i];
                else
                    for (int i = 0; i < mr; ++i) at[i] = done[i];
            }
    }
}

template <class A> class Runner {
public:
    explicit Runner(const Winograd<A>& c)
        : c(c), e(engine<A>(c.rows)), down(ceil_div(c.out_h, 2)), across(ceil_div(c.out_w, 2)),
          tiles(checked_numel({c.images, down, across})), panels(ceil_div(c.rows, e.mr)),
          w_step(checked_numel({panels, e.mr, c.channels})) {
        // Half of the second cache for the tiles of a block.
        const int64_t fit = caches.second / 2 / (PLACES * c.channels * int64_t(sizeof(A)));
        width = std::max<int64_t>(1, std::min<int64_t>(fit, 512) / e.nr) * e.nr;
        // Weights that leave the caches are read once for many tiles, and each of their 16 places for all rows.
        const bool large = w_step * int64_t(sizeof(A)) * PLACES > 4 * caches.second;
        if (large) width = std::max<int64_t>(width, ceil_div(128, e.nr) * e.nr);
        chunk = large ? panels : std::min(panels, CHUNK);
        width = std::min(width, ceil_div(tiles, e.nr) * e.nr);
        blocks = ceil_div(tiles, width);
        // With few blocks threads also share out the rows, and transform the same tiles.
        const int64_t want = num_threads() == 1 ? 1 : 3 * num_threads();
        parts = std::max<int64_t>(1, std::min(ceil_div(want, blocks), panels / CHUNK));
    }
    bool run() {
        const Scratch room(checked_mul(PLACES, w_step), sizeof(A));
        weights = room.as<A>();
        parallel_for(panels, std::max<int64_t>(1, GRAIN / (c.channels * PLACES * e.mr)),
                     [&](int64_t begin, int64_t end) {
                         at_level(MT_BODY {
                             for (int64_t p = begin; p < end; ++p)
                                 transform_weights(c, p * e.mr, std::min<int64_t>(e.mr, c.rows - p * e.mr), e.mr,
                                                   weights + p * e.mr * c.channels, w_step);
                         });
                     });
        const int64_t share = ceil_div(panels, parts);
        parallel_for(blocks * parts, 1, [&](int64_t begin, int64_t end) {
            const int64_t v_step = width * c.channels + 64, m_step = std::min(chunk, share) * e.mr * width;
            const Scratch own(PLACES * (v_step + m_step) + 4 * width, sizeof(A));
            A *v = own.as<A>(), *m = v + PLACES * v_step, *line = m + PLACES * m_step;
            std::vector<Stretch> stretches;
            int64_t made = -1;
            for (int64_t t = begin; t < end && finite; ++t) {
                const int64_t first = t / parts * width, count = std::min(width, tiles - first);
                if (made != t / parts) {
                    find_stretches(first, count, stretches);
                    make_tiles(stretches, count, v, v_step);
                    made = t / parts;
                }
                const int64_t p0 = t % parts * share;
                for (int64_t p = p0; p < std::min(panels, p0 + share); p += chunk) {
                    const int64_t some = std::min(chunk, std::min(panels, p0 + share) - p);
                    multiply(v, v_step, count, p, some, m, m_step);
                    write(stretches, count, p * e.mr, std::min(some * e.mr, c.rows - p * e.mr), m, m_step, line);
                }
            }
        });
        return finite;
    }

private:
    const Winograd<A>& c;
    const Engine<A>& e;
    const int64_t down, across, tiles, panels, w_step;
    int64_t width, chunk, blocks, parts;
    A* weights = nullptr;
    std::atomic<bool> finite{true};

    void find_stretches(int64_t first, int64_t count, std::vector<Stretch>& found) const {
        found.clear();
        for (int64_t t = 0; t < count;) {
            const int64_t at = first + t, x = at % across, y = at / across % down, image = at / across / down;
            const int64_t length = std::min(std::min(across - x, count - t), e.nr - t % e.nr);
            found.push_back({t, length, image, y, x});
            t += length;
        }
    }
    // Panel by panel and channel by channel, so that what a stretch writes too much comes before what belongs there.
    void make_tiles(const std::vector<Stretch>& stretches, int64_t count, A* v, int64_t step) const {
        const int64_t plane = c.in_h * c.in_w;
        if (count % e.nr)  // what lies behind the last tile is multiplied too
            for (int q = 0; q < PLACES; ++q) {
                A* last = v + q * step + count / e.nr * e.nr * c.channels;
                std::fill(last, last + e.nr * c.channels, A(0));
            }
        at_level(MT_BODY {
            for (size_t begin = 0, end = 0; begin < stretches.size(); begin = end) {
                const int64_t panel = stretches[begin].column / e.nr;
                while (end < stretches.size() && stretches[end].column / e.nr == panel) ++end;
                for (int64_t k = 0; k < c.channels; ++k)
                    for (size_t s = begin; s < end; ++s)
                        transform_stretch(c, c.x + stretches[s].image * c.x_image + k * plane, stretches[s],
                                          v + panel * e.nr * c.channels + k * e.nr + stretches[s].column % e.nr, step);
            }
        });
    }
    void multiply(const A* v, int64_t v_step, int64_t count, int64_t panel, int64_t some, A* m, int64_t m_step) const {
        for (int q = 0; q < PLACES; ++q)
            for (int64_t j = 0; j < count; j += e.nr)
                for (int64_t i = 0; i < some; ++i) {
                    const A* a = weights + q * w_step + (panel + i) * e.mr * c.channels;
                    const A* b = v + q * v_step + j * c.channels;
                    A* to = m + q * m_step + i * e.mr * width + j;
                    for (int64_t p = 0; p < c.channels; p += DEPTH) {
                        const int64_t k = std::min(DEPTH, c.channels - p);
                        if (2 * (count - j) <= e.nr) e.narrow(a + p * e.mr, b + p * e.nr, k, to, width, A(1), p > 0);
                        else e.tile(a + p * e.mr, b + p * e.nr, k, to, width, A(1), p > 0);
                    }
                }
    }
    void write(const std::vector<Stretch>& stretches, int64_t count, int64_t row, int64_t rows, const A* m,
               int64_t m_step, A* line) {
        const int64_t plane = c.out_h * c.out_w;
        bool bad = false;
        at_level(MT_BODY {
            for (int64_t r = 0; r < rows; ++r) {
                bad |= transform_sums(m + r * width, m_step, count, c.bias ? c.bias[row + r] : A(0), line);
                for (const Stretch& s : stretches) {
                    const int64_t wide = std::min(2 * s.length, c.out_w - 2 * s.x);
                    A* to = c.out + s.image * c.out_image + (row + r) * plane + 2 * s.y * c.out_w + 2 * s.x;
                    const A* from = line + 2 * s.column;
                    for (int64_t i = 0; i < wide; ++i) to[i] = from[i];
                    if (2 * s.y + 1 >= c.out_h) continue;
                    to += c.out_w, from += 2 * count;
                    for (int64_t i = 0; i < wide; ++i) to[i] = from[i];
                }
            }
        });
        if (bad) finite = false;
    }
};

}  // namespace

template <class A> bool Winograd<A>::worthwhile() const {
    const int64_t tiles = saturated_mul(images, saturated_mul(ceil_div(out_h, 2), ceil_div(out_w, 2)));
    return channels >= 24 && rows >= 24 && tiles >= 24 && out_h >= 2 && out_w >= 2 && std::max(pad_h, pad_w) <= 2 &&
           channels <= (1 << 16) && rows <= (1 << 16);
}
template <class A> bool Winograd<A>::run() const { return Runner<A>(*this).run(); }
template struct Winograd<float>;
template struct Winograd<double>;

}  // namespace mt
