// Images and volumes read at places between their elements (grid_sample), float32 and float64.
// Invariant: operands are dense. A place is clamped to the plane before it becomes an index, so nothing outside is read;
// where zeros surround the plane, such an element counts as 0.
//
//   grid_sample(x.., grid.., out.., images, channels, in, out, rank, mode, padding, align)
//       an operand: storage, offset, code; in, out: (depth, height, width); grid: [image][out place][rank], x first.
//       mode: 0 linear, 1 nearest, 2 cubic (images only); padding: 0 zeros, 1 border, 2 reflection
#include "cpu.h"
#include "lanes.h"
#include "windows.h"

#include <algorithm>

namespace mt {
namespace {

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
    int64_t size(int d) const { return d == 0 ? in.w : d == 1 ? in.h : in.d; }  // in the grid's order
    // Whether corners are read as pairs: it takes some channels to be worth while.
    bool in_pairs() const { return mode == LINEAR && rank == 2 && in.w > 1 && channels > 2; }
    int corners() const { return mode == NEAREST ? 1 : mode == CUBIC ? 16 : 1 << rank; }
};

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
template <class A, int N> MT_INLINE void sum_corners(const Places<A>& p, const A* plane, int64_t count, A* to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
        A sum = element(plane, p.index[0][i]) * p.weight[0][i];
#pragma GCC unroll 8
        for (int c = 1; c < N; ++c) sum += element(plane, p.index[c][i]) * p.weight[c][i];
        to[i] = sum;
    }
}
// The four corners of an image's place are read as two pairs: gathering them one by one takes more than twice as long.
template <class A> MT_INLINE void sum_pairs(const Places<A>& p, const A* plane, int64_t count, A* to) {
    typedef A Two __attribute__((vector_size(2 * sizeof(A)), aligned(alignof(A)), may_alias));
    typedef A Four __attribute__((vector_size(4 * sizeof(A))));
    typedef A Loose __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    typedef typename Places<A>::Bits Mask __attribute__((vector_size(4 * sizeof(A))));
    typedef typename Places<A>::Bits LooseMask
        __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    auto four = [&](int64_t i) __attribute__((always_inline)) -> Four {
        const Two top = *reinterpret_cast<const Two*>(plane + p.row[0][i]);
        const Two bottom = *reinterpret_cast<const Two*>(plane + p.row[1][i]);
        const Mask mask = *reinterpret_cast<const LooseMask*>(p.mask[i]);
        return (Four)((Mask)Four(__builtin_shufflevector(top, bottom, 0, 1, 2, 3)) & mask) *
               Four(*reinterpret_cast<const Loose*>(p.quad[i]));
    };
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        Four part[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) part[k] = four(i + k);
        const Four a = __builtin_shufflevector(part[0], part[1], 0, 4, 1, 5) +
                       __builtin_shufflevector(part[0], part[1], 2, 6, 3, 7);
        const Four b = __builtin_shufflevector(part[2], part[3], 0, 4, 1, 5) +
                       __builtin_shufflevector(part[2], part[3], 2, 6, 3, 7);
        *reinterpret_cast<Loose*>(to + i) =
            __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    }
    for (; i < count; ++i) {
        const Four part = four(i);
        to[i] = (part[0] + part[2]) + (part[1] + part[3]);
    }
}
template <class A> MT_INLINE void sum_cubic(const Places<A>& p, const A* plane, int64_t count, A* to) {
    typedef A Four __attribute__((vector_size(4 * sizeof(A))));
    typedef A Loose __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    for (int64_t i = 0; i < count; ++i) {
        Four total{};
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
            Four line;
            if (MT_LIKELY(p.whole_rows[i])) line = *reinterpret_cast<const Loose*>(plane + p.index[4 * r][i]);
            else
                for (int c = 0; c < 4; ++c) line[c] = element(plane, p.index[4 * r + c][i]);
            total += line * p.weight[4 + r][i];
        }
        const Four across{p.weight[0][i], p.weight[1][i], p.weight[2][i], p.weight[3][i]}, all = total * across;
        to[i] = (all[0] + all[1]) + (all[2] + all[3]);
    }
}
// One element of each place. Not by gathering, which takes longer: the compiler is told nothing of the index.
template <class A> MT_INLINE void take_nearest(const Places<A>& p, const A* plane, int64_t count, A* to) {
    for (int64_t i = 0; i < count; ++i) {
        int32_t index = p.index[0][i];
        __asm__("" : "+r"(index));
        to[i] = element(plane, index);
    }
}

template <class A> void sample(const Job& j, const A* x, const A* grid, A* out) {
    const int64_t all = j.out.size(), plane = j.in.size(), blocks = ceil_div(all, PLACES);
    const int64_t work = saturated_mul(PLACES * j.corners(), j.channels + 8);
    parallel_for(checked_mul(j.images, blocks), std::max<int64_t>(1, GRAIN / work), [&](int64_t begin, int64_t end) {
        const Scratch room(1, sizeof(Places<A>));
        Places<A>& p = *room.as<Places<A>>();
        for (int64_t t = begin; t < end; ++t) {
            const int64_t image = t / blocks, first = t % blocks * PLACES, count = std::min(PLACES, all - first);
            at_level(MT_BODY {
                p.find(j, grid + (image * all + first) * j.rank, count);
                for (int64_t c = 0; c < j.channels; ++c) {
                    const A* from = x + (image * j.channels + c) * plane;
                    A* to = out + (image * j.channels + c) * all + first;
                    switch (j.mode == CUBIC ? 0 : j.corners()) {
                        case 0: sum_cubic(p, from, count, to); break;
                        case 1: take_nearest(p, from, count, to); break;
                        case 4:
                            if (j.in_pairs()) sum_pairs(p, from, count, to);
                            else sum_corners<A, 4>(p, from, count, to);
                            break;
                        default: sum_corners<A, 8>(p, from, count, to); break;
                    }
                }
            });
        }
    });
}

PyObject* grid_sample(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("grid_sample", nargs, 17);
        const Job j{parse_count(args[9]),  parse_count(args[10]), parse_sizes(args[11]), parse_sizes(args[12]),
                    (int)as_int(args[13]), (int)as_int(args[14]), (int)as_int(args[15]), as_int(args[16]) != 0};
        if (j.rank < 2 || j.rank > 3 || j.mode < 0 || j.mode > 2 || j.around < 0 || j.around > 2 ||
            (j.mode == CUBIC && j.rank != 2) || (j.rank == 2 && (j.in.d != 1 || j.out.d != 1)) || j.in.size() == 0 ||
            j.in.size() > INT32_MAX || std::max(std::max(j.in.d, j.in.h), j.in.w) > LONGEST)
            fail(PyExc_ValueError, "grid_sample: a mode that does not exist");
        const int64_t planes = checked_mul(j.images, j.channels);
        const Dense x = parse_dense(args, checked_mul(planes, j.in.size()));
        const Dense grid = parse_dense(args + 3, checked_numel({j.images, j.out.size(), j.rank}));
        const Dense o = parse_dense(args + 6, checked_mul(planes, j.out.size()));
        if (x.code != grid.code || x.code != o.code) fail(PyExc_ValueError, "grid_sample: operands of two dtypes");
        if (x.code != F32 && x.code != F64) fail_dtype("grid_sample", x.code);
        GilRelease unlocked(saturated_mul(planes, j.out.size()));
        if (x.code == F32) sample(j, x.as<const float>(), grid.as<const float>(), o.as<float>());
        else sample(j, x.as<const double>(), grid.as<const double>(), o.as<double>());
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
PyMethodDef grid_methods[] = {MT_METHOD("grid_sample", grid_sample, "Images read at the places of a grid."),
                              {nullptr, nullptr, 0, nullptr}};
