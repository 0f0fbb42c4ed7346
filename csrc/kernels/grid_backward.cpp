// Gradients of images and volumes read at places between their elements.
// Invariant: operands are dense. What a plane gets is summed by one thread in the order of the places, and what a place
// gets in the order of the channels, so results do not depend on the number of threads.
//
//   grid_sample_backward(grad.., x.., grid.., dx|None.., dgrid|None.., images, channels, in, out, rank, mode, padding, align)
//       the operands and numbers of grid_sample; grad is of the result
#include "grid.h"

namespace mt {
namespace {

using namespace grid;

template <class A> struct Slopes {
    Places<A> p;
    A slope[3][CORNERS][PLACES];  // by dimension of the grid: what a corner's weight changes by
    A factor[3][PLACES];          // of the place, by its normalised one
    A sum[3][PLACES];
};

// How much a settled place moves with the place.
template <class A> MT_INLINE A moved(A at, A n, int around, bool align) {
    A sign = 1;
    if (around == REFLECTION) {
        const A low = align ? A(0) : A(-1), high = align ? 2 * (n - 1) : 2 * n - 1;
        const A span = (high - low) / 2, from = at - low / 2, distance = std::fabs(from);
        const A flips = std::floor(distance / span), half = flips * A(0.5);
        sign = (std::floor(half) == half) == (from >= A(0)) ? A(1) : A(-1);
        sign = low == high ? A(0) : sign;
        at = reflect(at, low, high);
    }
    return (at > A(0)) & (at < n - 1) ? sign : A(0);
}

template <class A> MT_INLINE void cubic_slopes(A t, A* w0, A* w1, A* w2, A* w3) {
    const A a = A(-0.75), s = t + 1, r = 1 - t, q = 2 - t;
    *w0 = (3 * a * s - 10 * a) * s + 8 * a;
    *w1 = (3 * (a + 2) * t - 2 * (a + 3)) * t;
    *w2 = -(3 * (a + 2) * r - 2 * (a + 3)) * r;
    *w3 = -((3 * a * q - 10 * a) * q + 8 * a);
}

template <class A> MT_INLINE void find_slopes(Slopes<A>& s, const Job& j, const A* places, int64_t count) {
    for (int d = 0; d < j.rank; ++d) {
        const A n = A(j.size(d)), by = (j.align ? n - 1 : n) / 2;
        for (int64_t i = 0; i < count; ++i) s.factor[d][i] = by;
        if (j.mode == LINEAR && j.around != ZEROS)
            for (int64_t i = 0; i < count; ++i)
                s.factor[d][i] *= moved(unnormalised(places[i * j.rank + d], n, j.align), n, j.around, j.align);
        if (j.mode == CUBIC)
            for (int64_t i = 0; i < count; ++i)
                cubic_slopes(s.p.at[d][i] - s.p.whole[d][i], s.slope[d][0] + i, s.slope[d][1] + i, s.slope[d][2] + i,
                             s.slope[d][3] + i);
    }
    if (j.mode != LINEAR) return;
    for (int d = 0; d < j.rank; ++d)
        for (int c = 0; c < j.corners(); ++c) {
            A* to = s.slope[d][c];
            for (int64_t i = 0; i < count; ++i) to[i] = c >> d & 1 ? A(1) : A(-1);
            for (int e = 0; e < j.rank; ++e) {
                const bool next = c >> e & 1;
                const A *at = s.p.at[e], *low = s.p.whole[e];
                if (e == d) continue;
                for (int64_t i = 0; i < count; ++i) {
                    const A t = at[i] - low[i];
                    to[i] *= next ? t : 1 - t;
                }
            }
        }
}

// What the elements of a plane get from some places.
template <class A, int N> MT_INLINE void spread(const Places<A>& p, const A* grad, int64_t count, A* plane) {
    for (int64_t i = 0; i < count; ++i)
#pragma GCC unroll 8
        for (int c = 0; c < N; ++c) {
            const int32_t index = p.index[c][i];
            if (index >= 0) plane[index] += N == 1 ? grad[i] : grad[i] * p.weight[c][i];
        }
}
template <class A> MT_INLINE void spread_cubic(const Places<A>& p, const A* grad, int64_t count, A* plane) {
    typedef A Four __attribute__((vector_size(4 * sizeof(A))));
    typedef A Loose __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    for (int64_t i = 0; i < count; ++i) {
        const Four across{p.weight[0][i], p.weight[1][i], p.weight[2][i], p.weight[3][i]};
        for (int r = 0; r < 4; ++r) {
            const Four line = across * (p.weight[4 + r][i] * grad[i]);
            if (MT_LIKELY(p.whole_rows[i])) {
                Loose* to = reinterpret_cast<Loose*>(plane + p.index[4 * r][i]);
                *to = *to + line;
            } else
                for (int c = 0; c < 4; ++c)
                    if (p.index[4 * r + c][i] >= 0) plane[p.index[4 * r + c][i]] += line[c];
        }
    }
}

// What some places get from a plane.
template <class A, int N, int RANK>
MT_INLINE void climb(Slopes<A>& s, const A* plane, const A* grad, int64_t count) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
        A sum[RANK] = {};
#pragma GCC unroll 8
        for (int c = 0; c < N; ++c) {
            const A v = element(plane, s.p.index[c][i]);
#pragma GCC unroll 3
            for (int d = 0; d < RANK; ++d) sum[d] += v * s.slope[d][c][i];
        }
#pragma GCC unroll 3
        for (int d = 0; d < RANK; ++d) s.sum[d][i] += sum[d] * grad[i];
    }
}
template <class A> MT_INLINE void climb_cubic(Slopes<A>& s, const A* plane, const A* grad, int64_t count) {
    typedef A Four __attribute__((vector_size(4 * sizeof(A))));
    typedef A Loose __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    const Places<A>& p = s.p;
    for (int64_t i = 0; i < count; ++i) {
        Four down{}, steep{};
        for (int r = 0; r < 4; ++r) {
            Four line = {};
            if (MT_LIKELY(p.whole_rows[i])) line = *reinterpret_cast<const Loose*>(plane + p.index[4 * r][i]);
            else
                for (int c = 0; c < 4; ++c) line[c] = element(plane, p.index[4 * r + c][i]);
            down += line * p.weight[4 + r][i];
            steep += line * s.slope[1][r][i];
        }
        const Four x = down * Four{s.slope[0][0][i], s.slope[0][1][i], s.slope[0][2][i], s.slope[0][3][i]};
        const Four y = steep * Four{p.weight[0][i], p.weight[1][i], p.weight[2][i], p.weight[3][i]};
        s.sum[0][i] += ((x[0] + x[1]) + (x[2] + x[3])) * grad[i];
        s.sum[1][i] += ((y[0] + y[1]) + (y[2] + y[3])) * grad[i];
    }
}

constexpr int64_t TOGETHER = 16;  // channels that places are found for once

template <class A> void input_gradient(const Job& j, const A* grad, const A* grid, A* dx) {
    const int64_t all = j.out.size(), plane = j.in.size(), parts = ceil_div(j.channels, TOGETHER);
    parallel_for(checked_mul(j.images, parts), 1, [&](int64_t begin, int64_t end) {
        const Scratch room(1, sizeof(Places<A>));
        Places<A>& p = *room.as<Places<A>>();
        for (int64_t t = begin; t < end; ++t) {
            const int64_t image = t / parts, first = t % parts * TOGETHER,
                          last = std::min(first + TOGETHER, j.channels);
            std::fill(dx + (image * j.channels + first) * plane, dx + (image * j.channels + last) * plane, A(0));
            for (int64_t at = 0; at < all; at += PLACES) {
                const int64_t count = std::min(PLACES, all - at);
                at_level(MT_BODY {
                    p.find(j, grid + (image * all + at) * j.rank, count);
                    for (int64_t c = first; c < last; ++c) {
                        const A* from = grad + (image * j.channels + c) * all + at;
                        A* to = dx + (image * j.channels + c) * plane;
                        switch (j.mode == CUBIC ? 0 : j.corners()) {
                            case 0: spread_cubic(p, from, count, to); break;
                            case 1: spread<A, 1>(p, from, count, to); break;
                            case 4: spread<A, 4>(p, from, count, to); break;
                            default: spread<A, 8>(p, from, count, to); break;
                        }
                    }
                });
            }
        }
    });
}

template <class A> void grid_gradient(const Job& j, const A* grad, const A* x, const A* grid, A* dgrid) {
    const int64_t all = j.out.size(), plane = j.in.size(), blocks = ceil_div(all, PLACES);
    const int64_t work = saturated_mul(PLACES * j.corners(), j.channels + 8);
    parallel_for(checked_mul(j.images, blocks), std::max<int64_t>(1, GRAIN / work), [&](int64_t begin, int64_t end) {
        const Scratch room(1, sizeof(Slopes<A>));
        Slopes<A>& s = *room.as<Slopes<A>>();
        for (int64_t t = begin; t < end; ++t) {
            const int64_t image = t / blocks, first = t % blocks * PLACES, count = std::min(PLACES, all - first);
            const A* places = grid + (image * all + first) * j.rank;
            A* to = dgrid + (image * all + first) * j.rank;
            at_level(MT_BODY {
                s.p.find(j, places, count);
                find_slopes(s, j, places, count);
                for (int d = 0; d < j.rank; ++d)
                    for (int64_t i = 0; i < count; ++i) s.sum[d][i] = 0;
                for (int64_t c = 0; c < j.channels; ++c) {
                    const A* from = x + (image * j.channels + c) * plane;
                    const A* g = grad + (image * j.channels + c) * all + first;
                    if (j.mode == CUBIC) climb_cubic(s, from, g, count);
                    else if (j.rank == 2) climb<A, 4, 2>(s, from, g, count);
                    else climb<A, 8, 3>(s, from, g, count);
                }
                for (int d = 0; d < j.rank; ++d)
                    for (int64_t i = 0; i < count; ++i) to[i * j.rank + d] = s.sum[d][i] * s.factor[d][i];
            });
        }
    });
}

PyObject* grid_sample_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("grid_sample_backward", nargs, 23);
        const Job j = parse_job(args + 15, false);
        const int64_t planes = checked_mul(j.images, j.channels), places = checked_mul(j.images, j.out.size());
        const int64_t sizes[] = {checked_mul(planes, j.out.size()), checked_mul(planes, j.in.size()),
                                 checked_mul(places, j.rank), checked_mul(planes, j.in.size()),
                                 checked_mul(places, j.rank)};
        Dense given[5] = {};
        for (int k = 0; k < 5; ++k) {
            given[k] = {nullptr, given[0].code};
            if (k >= 3 && args[3 * k] == Py_None) continue;
            given[k] = parse_dense(args + 3 * k, sizes[k]);
            if (given[k].code != given[0].code) fail(PyExc_ValueError, "grid_sample_backward: operands of two dtypes");
        }
        if (given[0].code != F32 && given[0].code != F64) fail_dtype("grid_sample_backward", given[0].code);
        const bool wants_dx = given[3].data && sizes[3] > 0, wants_dgrid = given[4].data && sizes[4] > 0;
        GilRelease unlocked(saturated_mul(planes, j.out.size()));
        auto run = [&](auto t) {
            using A = decltype(t);
            const A *g = given[0].as<const A>(), *x = given[1].as<const A>(), *grid = given[2].as<const A>();
            if (wants_dx) input_gradient(j, g, grid, given[3].as<A>());
            if (wants_dgrid && j.mode == NEAREST) std::fill_n(given[4].as<A>(), sizes[4], A(0));
            else if (wants_dgrid) grid_gradient(j, g, x, grid, given[4].as<A>());
        };
        if (given[0].code == F32) run(float());
        else run(double());
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
PyMethodDef grid_backward_methods[] = {
    MT_METHOD("grid_sample_backward", grid_sample_backward, "Gradients of images read at the places of a grid."),
    {nullptr, nullptr, 0, nullptr}};
