// What reading images and volumes at places between their elements, and its gradients, share (grid.cpp,
// grid_backward.cpp). Invariant: a place is clamped to the plane before it becomes an index, so nothing outside is read;
// where zeros surround the plane, such an element counts as 0.
#pragma once
#include "cpu.h"
#include "lanes.h"
#include "windows.h"

#include <algorithm>

#pragma GCC visibility push(hidden)
namespace mt {
namespace grid {

constexpr int64_t PLACES = 128;  // whose indices and weights are worked out at a time, then used for every channel
constexpr int CORNERS = 16;
constexpr int64_t LONGEST = 1 << 23;  // of a plane's dimension: places along it are exact in float32
enum Mode { LINEAR = 0, NEAREST = 1, CUBIC = 2 };
enum Around { ZEROS = 0, BORDER = 1, REFLECTION = 2 };

struct Job {
    int64_t images, channels;
    Triple in, out;
    int rank, mode, around;
    bool align;
    bool paired;                                                                // corners may be read as pairs
    int64_t size(int d) const { return d == 0 ? in.w : d == 1 ? in.h : in.d; }  // in the grid's order
    // Whether corners are read as pairs: it takes some channels to be worth while.
    bool in_pairs() const { return paired && mode == LINEAR && rank == 2 && in.w > 1 && channels > 2; }
    int corners() const { return mode == NEAREST ? 1 : mode == CUBIC ? 16 : 1 << rank; }
};

// The arguments images, channels, in, out, rank, mode, padding, align.
inline Job parse_job(PyObject* const* args, bool paired) {
    const Job j{parse_count(args[0]), parse_count(args[1]), parse_sizes(args[2]),
                parse_sizes(args[3]), (int)as_int(args[4]), (int)as_int(args[5]),
                (int)as_int(args[6]), as_int(args[7]) != 0, paired};
    if (j.rank < 2 || j.rank > 3 || j.mode < 0 || j.mode > 2 || j.around < 0 || j.around > 2 ||
        (j.mode == CUBIC && j.rank != 2) || (j.rank == 2 && (j.in.d != 1 || j.out.d != 1)) || j.in.size() == 0 ||
        j.in.size() > INT32_MAX || std::max(std::max(j.in.d, j.in.h), j.in.w) > LONGEST)
        fail(PyExc_ValueError, "grid_sample: a mode that does not exist");
    return j;
}

// Selects instead of branches: loops over places become vectors.
template <class A> MT_INLINE A unnormalised(A at, A n, bool align) {
    return align ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
}
// Between two edges, given as twice their place.
template <class A> MT_INLINE A reflect(A at, A low, A high) {
    const A span = (high - low) / 2, start = low / 2, distance = std::fabs(at - start);
    const A flips = std::floor(distance / span), extra = distance - flips * span;
    const A half = flips * A(0.5), inside = std::floor(half) == half ? extra : span - extra;
    return low == high ? at * A(0) : inside + start;
}
template <class A> MT_INLINE A settle(A at, A n, int around, bool align) {
    if (around == ZEROS) return at;
    if (around == REFLECTION) at = align ? reflect(at, A(0), 2 * (n - 1)) : reflect(at, A(-1), 2 * n - 1);
    at = at > A(0) ? at : A(0);  // what is no number counts as the first place
    return at > n - 1 ? n - 1 : at;
}
// The index of a whole place along a dimension, -1 where it counts as zero.
template <class A> MT_INLINE int32_t index_of(A at, A n, int around) {
    const bool inside = (at >= A(0)) & (at <= n - 1);
    A safe = at > A(0) ? at : A(0);
    safe = safe > n - 1 ? n - 1 : safe;
    const int32_t index = (int32_t)safe;
    return inside | (around != ZEROS) ? index : -1;
}
template <class A> MT_INLINE void cubic_weights(A t, A* w0, A* w1, A* w2, A* w3) {
    const A a = A(-0.75), s = t + 1, r = 1 - t, q = 2 - t;
    *w0 = ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
    *w1 = ((a + 2) * t - (a + 3)) * t * t + 1;
    *w2 = ((a + 2) * r - (a + 3)) * r * r + 1;
    *w3 = ((a * q - 5 * a) * q + 8 * a) * q - 4 * a;
}

// What each channel needs to know of some places: elements by corner, and weights. Of cubic ones, of columns and rows.
template <class A> struct Places {
    int32_t index[CORNERS][PLACES];
    A weight[CORNERS][PLACES];
    // By dimension, in the grid's order: the place, and indices along the dimension of what is read there.
    A at[3][PLACES], whole[3][PLACES];
    int32_t along[3][4][PLACES];
    // Of a linear image: two elements side by side of each of its two rows, and the weights of all four. A corner that is
    // outside, or an element that is none of the corners, is masked.
    using Bits = typename std::conditional<sizeof(A) == 4, int32_t, int64_t>::type;
    int32_t row[2][PLACES];
    A quad[PLACES][4];
    Bits mask[PLACES][4];
    // Of a cubic one: whether its sixteen elements are there, four rows of four.
    bool whole_rows[PLACES];

    MT_INLINE void find(const Job& j, const A* grid, int64_t count) {
        const int taps = j.mode == NEAREST ? 1 : j.mode == CUBIC ? 4 : 2;
        for (int d = 0; d < j.rank; ++d) {
            const A n = A(j.size(d));
            A *to = at[d], *low = whole[d];
            for (int64_t i = 0; i < count; ++i) to[i] = unnormalised(grid[i * j.rank + d], n, j.align);
            if (j.mode != CUBIC && j.around != ZEROS)
                for (int64_t i = 0; i < count; ++i) to[i] = settle(to[i], n, j.around, j.align);
            if (j.mode == NEAREST)
                for (int64_t i = 0; i < count; ++i) low[i] = std::nearbyint(to[i]);
            else
                for (int64_t i = 0; i < count; ++i) low[i] = std::floor(to[i]);
            for (int k = 0; k < taps; ++k) {
                const A step = j.mode == CUBIC ? A(k - 1) : A(k);
                int32_t* place = along[d][k];
                if (j.mode == CUBIC)
                    for (int64_t i = 0; i < count; ++i)
                        place[i] = index_of(settle(low[i] + step, n, j.around, j.align), n, j.around);
                else
                    for (int64_t i = 0; i < count; ++i) place[i] = index_of(low[i] + step, n, j.around);
            }
        }
        if (j.mode == CUBIC) join_cubic(j, count);
        else join(j, count);
        if (j.in_pairs()) pair(j, count);
    }

private:
    // The last dimension of the grid is the first of the plane.
    MT_INLINE void join(const Job& j, int64_t count) {
        for (int c = 0; c < j.corners(); ++c) {
            int32_t* flat = index[c];
            A* factor = weight[c];
            for (int d = j.rank - 1; d >= 0; --d) {
                const bool next = c >> d & 1, first = d == j.rank - 1;
                const int32_t n = (int32_t)j.size(d), *place = along[d][next];
                const A *p = at[d], *low = whole[d];
                for (int64_t i = 0; i < count; ++i) {
                    const int32_t before = first ? 0 : flat[i], here = before * n + place[i];
                    flat[i] = (before < 0) | (place[i] < 0) ? -1 : here;
                    const A t = p[i] - low[i], part = next ? t : 1 - t;
                    factor[i] = first ? part : factor[i] * part;
                }
            }
            // In a volume corners infinitely far outside are left out; in an image they make what they make.
            if (j.rank == 3 && j.around == ZEROS)
                for (int64_t i = 0; i < count; ++i) factor[i] = factor[i] - factor[i] == 0 ? factor[i] : A(0);
        }
    }
    MT_INLINE void pair(const Job& j, int64_t count) {
        const int32_t n = (int32_t)j.in.w;
        for (int64_t i = 0; i < count; ++i) {
            const int32_t left = along[0][0][i], right = along[0][1][i], top = along[1][0][i], bottom = along[1][1][i];
            // What is beyond the last element counts as 0 even where places are settled inside.
            const bool has_left = left >= 0, has_right = (right >= 0) & (right != left);
            const bool has_top = top >= 0, has_bottom = (bottom >= 0) & (bottom != top);
            const int32_t first = has_left ? left : has_right ? right - 1 : 0;
            const int32_t base = std::max(0, std::min(first, n - 2));
            const bool moved = first != base;           // by one: the pair has one of the corners
            const bool later = moved & (first > base);  // the left corner is the pair's second element
            row[0][i] = (has_top ? top : 0) * n + base;
            row[1][i] = (has_bottom ? bottom : 0) * n + base;
            const bool one = later ? false : moved ? has_right : has_left, two = later ? has_left : !moved & has_right;
            for (int r = 0; r < 2; ++r) {
                const bool there = r ? has_bottom : has_top;
                const A l = weight[2 * r][i], h = weight[2 * r + 1][i];
                quad[i][2 * r] = later ? h : moved ? h : l;
                quad[i][2 * r + 1] = moved ? l : h;
                mask[i][2 * r] = there & one ? Bits(-1) : Bits(0);
                mask[i][2 * r + 1] = there & two ? Bits(-1) : Bits(0);
            }
        }
    }
    MT_INLINE void join_cubic(const Job& j, int64_t count) {
        for (int d = 0; d < 2; ++d) {
            A(*w)[PLACES] = weight + 4 * d;
            for (int64_t i = 0; i < count; ++i)
                cubic_weights(at[d][i] - whole[d][i], w[0] + i, w[1] + i, w[2] + i, w[3] + i);
        }
        const int32_t n = (int32_t)j.in.w;
        for (int c = 0; c < CORNERS; ++c) {
            const int32_t *x = along[0][c % 4], *y = along[1][c / 4];
            for (int64_t i = 0; i < count; ++i) index[c][i] = (x[i] < 0) | (y[i] < 0) ? -1 : y[i] * n + x[i];
        }
        for (int64_t i = 0; i < count; ++i) {
            const int32_t x = along[0][0][i];
            bool fine = (x >= 0) & (along[0][1][i] == x + 1) & (along[0][2][i] == x + 2) & (along[0][3][i] == x + 3);
            for (int r = 0; r < 4; ++r) fine &= along[1][r][i] >= 0;
            whole_rows[i] = fine;
        }
    }
};

template <class A> MT_INLINE A element(const A* plane, int32_t index) {
    const A v = plane[index < 0 ? 0 : index];
    return index < 0 ? A(0) : v;
}

}  // namespace grid
}  // namespace mt
#pragma GCC visibility pop
