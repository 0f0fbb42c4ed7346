// Convolution where a group has one or few rows (depthwise): each row is summed by itself, over a copy of the group's
// planes that one thread makes and uses while it is in the cache. See conv.h.
// Invariant: a place is summed over k in one order, whichever vectors and bands of rows it falls into.
#include "caches.h"
#include "conv.h"
#include "lanes.h"

namespace mt {
namespace {

template <class A> using V8 = typename Vec<A, 32>::t;
template <class A> using L8 = typename Vec<A, 32>::loose;
template <class A> constexpr int LANES = Vec<A, 32>::LANES;

// Sums of any taps. V vectors of places in each of R rows: as many sums as it takes to keep the units busy while one
// waits for the other.
template <class A> struct AnyTaps {
    const int64_t* offset;
    int64_t k, from_row;
    const A* w;
    A start;
    template <int R, int V> MT_INLINE void sum(const A* from, A* to, int64_t to_row) const {
        V8<A> sum[R][V];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) sum[r][v] = V8<A>{} + start;
        for (int64_t p = 0; p < k; ++p) {
            const A* at = from + offset[p];
            const A x = w[p];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < V; ++v)
                    sum[r][v] += x * V8<A>(*reinterpret_cast<const L8<A>*>(at + r * from_row + v * LANES<A>));
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) *reinterpret_cast<L8<A>*>(to + r * to_row + v * LANES<A>) = sum[r][v];
    }
};

// Sums of H rows of taps, S rows of the copy from one place to the next: a vector is read once for all rows of places
// that it belongs to.
template <class A, int H, int S> struct SharedTaps {
    const Shared& s;
    const A* w;  // by block, row, column of taps; the rows in the order of the copy's
    A start;
    template <int R, int V> MT_INLINE void sum(const A* from, A* to, int64_t to_row) const {
        constexpr int ROWS = (R - 1) * S + H;
        const int64_t wide = (int64_t)s.column.size();
        V8<A> sum[R][V];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) sum[r][v] = V8<A>{} + start;
        for (size_t b = 0; b < s.base.size(); ++b)
            for (int64_t e = 0; e < wide; ++e) {
                const A* at = from + s.base[b] + s.column[(size_t)e];
                const A* by = w + (int64_t)b * H * wide + e;
                V8<A> tap[H];
#pragma GCC unroll 8
                for (int h = 0; h < H; ++h) tap[h] = V8<A>{} + by[h * wide];
#pragma GCC unroll 16
                for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
                    for (int v = 0; v < V; ++v) {
                        const V8<A> x = *reinterpret_cast<const L8<A>*>(at + s.row[(size_t)i] + v * LANES<A>);
#pragma GCC unroll 4
                        for (int r = 0; r < R; ++r)
                            if (i - r * S >= 0 && i - r * S < H) sum[r][v] += tap[i - r * S] * x;
                    }
            }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) *reinterpret_cast<L8<A>*>(to + r * to_row + v * LANES<A>) = sum[r][v];
    }
};

// R rows of n places, side by side in `to`. The last vectors are written over a part of their neighbours; rows shorter
// than a vector have room behind them.
template <int R, class A, class K> MT_INLINE void sum_lines(const K& taps, const A* from, A* to, int64_t to_row,
                                                            int64_t n) {
    constexpr int W = LANES<A>;
    int64_t x = 0;
    // One place where two vectors are summed, and one where one is: the code of each kind of taps is long.
    for (; n >= 2 * W && n - x > W; x += 2 * W) {
        const int64_t at = std::min(x, n - 2 * W);
        taps.template sum<R, 2>(from + at, to + at, to_row);
    }
    for (; x < n; x += W) {
        const int64_t at = x + W <= n || n < W ? x : n - W;
        taps.template sum<R, 1>(from + at, to + at, to_row);
    }
}

// Rows [first, last) of one plane.
template <class A, class K>
MT_INLINE void sum_band(const Form<A>& f, const K& taps, const A* from, int64_t element, int64_t first, int64_t last,
                        A* room) {
    const Grid& g = f.grid;
    const bool direct = f.code == CodeOf<A>::value && f.to.x == 1 && g.x >= LANES<A>;
    const int64_t pitch = direct ? f.to.y : ceil_div(g.x, LANES<A>) * LANES<A>;
    auto several = [&](auto rows, int64_t y) __attribute__((always_inline)) {
        constexpr int R = decltype(rows)::value;
        char* out = f.at(element + y * f.to.y);
        A* to = direct ? reinterpret_cast<A*>(out) : room;
        sum_lines<R>(taps, from + y * f.from.y, to, pitch, g.x);
        if (direct) return;
        for (int r = 0; r < R; ++r)
            put_line(out + r * f.to.y * ITEMSIZE[f.code], f.code, f.to.x, room + r * pitch, g.x);
    };
    if (last - first < 4) {
        for (int64_t y = first; y < last; ++y) several(std::integral_constant<int, 1>(), y);
        return;
    }
    for (int64_t y = first; y < last; y += 4) several(std::integral_constant<int, 4>(), std::min(y, last - 4));
}

template <class A>
MT_INLINE void sum_plane(const Form<A>& f, const A* from, const A* w, A start, int64_t element, int64_t first,
                         int64_t last, A* room) {
    const auto by = [&](const auto& taps)
                        __attribute__((always_inline)) { sum_band(f, taps, from, element, first, last, room); };
    if constexpr (std::is_same<A, float>::value) {
        switch (f.shared.high * 10 + f.shared.step) {
            case 31: return by(SharedTaps<A, 3, 1>{f.shared, w, start});
            case 51: return by(SharedTaps<A, 5, 1>{f.shared, w, start});
            case 71: return by(SharedTaps<A, 7, 1>{f.shared, w, start});
            case 32: return by(SharedTaps<A, 3, 2>{f.shared, w, start});
            case 52: return by(SharedTaps<A, 5, 2>{f.shared, w, start});
            default: break;
        }
    }
    by(AnyTaps<A>{f.offset.data(), f.k(), f.from.y, w, start});
}

// The weights of one row in the order that they are used in.
template <class A> void order_weights(const Form<A>& f, const Weights<A>& weights, int64_t group, int64_t r, A* w) {
    const int64_t k = f.k(), high = f.shared.high, wide = (int64_t)f.shared.column.size();
    for (int64_t p = 0; p < k; ++p) {
        int64_t to = p;
        if (f.shared.flipped && high > 0) to = p - p / wide % high * wide + (high - 1 - p / wide % high) * wide;
        w[to] = weights.at(group, r, (size_t)p);
    }
}

// Rows of places that one thread copies and sums at a time: as many as fill a part of the second cache.
int64_t band_of(const Grid& g, int64_t row_bytes) {
    const int64_t rows = std::max<int64_t>(16, caches.second / 4 / std::max<int64_t>(1, row_bytes));
    return std::min(g.y, rows);
}

}  // namespace

template <class A>
void sum_rows(const std::vector<Form<A>>& forms, const std::vector<Weights<A>>& weights, const Planes& from,
              int64_t images, const Padded& p) {
    int64_t most = 0, work = 0, wide = 0;
    for (const Form<A>& f : forms) {
        most = std::max(most, f.grid.y), wide = std::max(wide, f.grid.x);
        work = saturated_add(work, saturated_mul(saturated_mul(f.grid.z * f.grid.y * f.grid.x, f.k() + 2), f.rows));
    }
    const int64_t groups = from.groups, planes = from.copied(), copy = checked_mul(planes, p.plane());
    const int64_t band = band_of({1, 1, most, 1}, saturated_mul(copy / std::max<int64_t>(1, p.size.h), sizeof(A)));
    const int64_t bands = ceil_div(most, band), each = work / bands;
    const int64_t room = checked_add(checked_add(copy, SLACK), checked_add(4 * wide + 32, FEW_TAPS));
    parallel_for(checked_numel({images, groups, bands}), std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each / 8)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch memory(room, sizeof(A));
                     A *planes_at = memory.as<A>(), *lines = planes_at + copy + SLACK, *w = lines + 4 * wide + 32;
                     std::fill_n(planes_at, copy + SLACK, A(0));
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t b = t % bands, group = t / bands % groups, n = t / bands / groups;
                         const int64_t y0 = b * band;
                         int64_t low = p.size.h, high = 0;
                         for (const Form<A>& f : forms) {
                             const int64_t y1 = std::min(f.grid.y, y0 + band);
                             if (y0 >= y1) continue;
                             low = std::min(low, y0 * p.split_h), high = std::max(high, (y1 - 1) * p.split_h + f.reach);
                         }
                         for (int64_t c = 0; c < planes; ++c)
                             copy_plane(from, n, group, c, planes_at + c * p.plane(), p, low, high);
                         for (size_t i = 0; i < forms.size(); ++i) {
                             const Form<A>& f = forms[i];
                             const int64_t y1 = std::min(f.grid.y, y0 + band);
                             for (int64_t r = 0; r < f.rows && y0 < y1; ++r) {
                                 order_weights(f, weights[i], group, r, w);
                                 const int64_t row = group * f.rows + r;
                                 const A start = f.bias ? f.bias[row] : A(0);
                                 at_level(MT_BODY {
                                     for (int64_t z = 0; z < f.grid.z; ++z)
                                         sum_plane(f, (const A*)planes_at + z * f.from.z, (const A*)w, start,
                                                   n * f.to.n + row * f.row_to + z * f.to.z, y0, y1, lines);
                                 });
                             }
                         }
                     }
                 });
}

// ---------------------------------------------------------------- the gradient of the weights

namespace {

// A few k at a time: sums of gradient * copy over the places of one plane, in vectors along the width. The gradient's
// lines are `pitch` apart and end in zeros.
template <class A, int T>
MT_INLINE void dot_places(const Form<A>& f, const A* grad, int64_t pitch, const A* from, const int64_t* offset,
                          A* out) {
    using Bits = typename std::conditional<sizeof(A) == 4, int32_t, int64_t>::type;
    typedef Bits Mask __attribute__((vector_size(32)));
    const Grid& g = f.grid;
    const int64_t whole = g.x / LANES<A> * LANES<A>;
    Mask mask{};
    for (int i = 0; i < LANES<A>; ++i) mask[i] = i < g.x - whole ? Bits(-1) : Bits(0);
    for (int64_t z = 0; z < g.z; ++z) {
        V8<A> sum[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) sum[t] = V8<A>{};
        for (int64_t y = 0; y < g.y; ++y) {
            const A* a = from + f.from.at(0, z, y, 0);
            const A* b = grad + (z * g.y + y) * pitch;
            for (int64_t x = 0; x < whole; x += LANES<A>) {
                const V8<A> v = *reinterpret_cast<const L8<A>*>(b + x);
#pragma GCC unroll 16
                for (int t = 0; t < T; ++t) sum[t] += v * V8<A>(*reinterpret_cast<const L8<A>*>(a + offset[t] + x));
            }
            if (whole < g.x) {  // what lies behind the last place takes no part, whatever it is
                const V8<A> v = *reinterpret_cast<const L8<A>*>(b + whole);
#pragma GCC unroll 16
                for (int t = 0; t < T; ++t) {
                    const V8<A> x = *reinterpret_cast<const L8<A>*>(a + offset[t] + whole);
                    sum[t] += v * (V8<A>)((Mask)x & mask);
                }
            }
        }
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) {
            A part[LANES<A>];
            *reinterpret_cast<L8<A>*>(part) = sum[t];
            out[t] += fold_parts<LANES<A>>(part, Plus<A>());
        }
    }
}

}  // namespace

template <class A>
void weight_rows(const Form<A>& f, const Planes& grad, const Planes& from, int64_t images, const Padded& p, A* out) {
    const int64_t k = f.k(), planes = from.copied(), copy = checked_mul(planes, p.plane());
    const int64_t pitch = ceil_div(f.grid.x, LANES<A>) * LANES<A>, lines = f.grid.z * f.grid.y;
    const int64_t each = saturated_mul(saturated_mul(images, lines * f.grid.x), k);
    // The gradient's plane, each line with zeros behind it.
    const Padded spread{{1, lines, f.grid.x}, {0, 0, 0}, {1, lines, pitch}, 1, lines, 1, pitch};
    const int64_t room = checked_add(checked_add(copy, SLACK), checked_mul(lines, pitch));
    parallel_for(f.groups * f.rows, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each / 8)),
                 [&](int64_t begin, int64_t end) {
                     const Scratch memory(room, sizeof(A));
                     A *copied = memory.as<A>(), *given = copied + copy + SLACK;
                     std::fill_n(copied, room, A(0));
                     for (int64_t r = begin; r < end; ++r)
                         for (int64_t n = 0; n < images; ++n) {
                             const int64_t group = r / f.rows;
                             A* sums = out + r * k;
                             if (n == 0) std::fill_n(sums, k, A(0));
                             for (int64_t c = 0; c < planes; ++c)
                                 copy_plane(from, n, group, c, copied + c * p.plane(), p, 0, p.size.h);
                             copy_plane(grad, n, group, r % f.rows, given, spread, 0, lines);
                             at_level(MT_BODY {
                                 int64_t q = 0;
                                 for (; q + 9 <= k; q += 9)
                                     dot_places<A, 9>(f, given, pitch, copied, f.offset.data() + q, sums + q);
                                 for (; q + 3 <= k; q += 3)
                                     dot_places<A, 3>(f, given, pitch, copied, f.offset.data() + q, sums + q);
                                 for (; q < k; ++q)
                                     dot_places<A, 1>(f, given, pitch, copied, f.offset.data() + q, sums + q);
                             });
                         }
                 });
}

template void sum_rows(const std::vector<Form<float>>&, const std::vector<Weights<float>>&, const Planes&, int64_t,
                       const Padded&);
template void sum_rows(const std::vector<Form<double>>&, const std::vector<Weights<double>>&, const Planes&, int64_t,
                       const Padded&);
template void weight_rows(const Form<float>&, const Planes&, const Planes&, int64_t, const Padded&, float*);
template void weight_rows(const Form<double>&, const Planes&, const Planes&, int64_t, const Padded&, double*);

}  // namespace mt
