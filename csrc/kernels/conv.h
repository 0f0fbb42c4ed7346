// What the ways of convolving share: copies of planes, and forms of sums over them. See conv.cpp.
// Invariant: a copy has zeros around what it copies, and is long enough for every place that a window reaches and for
// whole vectors behind the last; so no loop asks whether it is inside.
#pragma once
#include "cpu.h"
#include "gemm.h"
#include "vectors.h"
#include "windows.h"

#include <algorithm>
#include <vector>

#pragma GCC visibility push(hidden)
namespace mt {

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

// How planes are copied: the copy's element (z, y, x) is the plane's (z - low.z, ...), or zero. Rows and columns are
// sorted by their remainders, so that places of a strided window lie side by side: each pair of remainders has `lines`
// lines of `columns`.
struct Padded {
    Triple in, low, size;
    int64_t split_h, lines, split, columns;
    int64_t part() const { return lines * columns; }
    int64_t slice() const { return split_h * split * part(); }
    int64_t plane() const { return size.d * slice(); }
    int64_t at(int64_t z, int64_t y, int64_t x) const {
        return z * slice() + (y % split_h * split + x % split) * part() + y / split_h * columns + x / split;
    }
};

// Of a plain convolution.
inline Padded padded_input(const Window& v) {
    const Triple reach{(v.out.d - 1) * v.stride.d + (v.kernel.d - 1) * v.dilation.d + 1,
                       (v.out.h - 1) * v.stride.h + (v.kernel.h - 1) * v.dilation.h + 1,
                       (v.out.w - 1) * v.stride.w + (v.kernel.w - 1) * v.dilation.w + 1};
    return {
        v.in, v.padding, reach, v.stride.h, ceil_div(reach.h, v.stride.h), v.stride.w, ceil_div(reach.w, v.stride.w)};
}
// Of the gradient of the input: windows reach from the first input place to the last.
inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }
inline void settle_gradient(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                            int64_t& low, int64_t& size) {
    low = std::max<int64_t>(0, -floor_div(padding - (kernel - 1) * dilation, stride));
    size = low + std::max(out, (in - 1 + padding) / stride + 1);
}
inline Padded padded_gradient(const Window& v) {
    Padded p{v.out, {}, {}, 1, 0, 1, 0};
    settle_gradient(v.in.d, v.out.d, v.kernel.d, v.stride.d, v.padding.d, v.dilation.d, p.low.d, p.size.d);
    settle_gradient(v.in.h, v.out.h, v.kernel.h, v.stride.h, v.padding.h, v.dilation.h, p.low.h, p.size.h);
    settle_gradient(v.in.w, v.out.w, v.kernel.w, v.stride.w, v.padding.w, v.dilation.w, p.low.w, p.size.w);
    p.lines = p.size.h, p.columns = p.size.w;
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

constexpr int64_t SLACK = 64;      // elements behind a copy: vectors read past the last place
constexpr int64_t FEW_ROWS = 3;    // rows of a group up to which each is summed by itself ...
constexpr int64_t FEW_TAPS = 128;  // ... where k is no more than this: it is read anew for every few places

// Planes in memory that copies are made of. Two-byte floats are widened, or two planes of a group are copied as one,
// whose elements are pairs: what the CPU's own products of bfloat16 take.
struct Planes {
    const char* data;
    int code;
    int64_t groups, channels;  // channels: of a group
    bool pairs;
    int64_t copied() const { return pairs ? ceil_div(channels, 2) : channels; }
    const char* at(int64_t image, int64_t group, int64_t channel, int64_t size) const {
        return data + ((image * groups + group) * channels + channel) * size * ITEMSIZE[code];
    }
};

// The places of plane `plane` of a group's copy that lie inside, in rows [first, last) of the copy; all others are left
// as they are. E: what a copy is made of: float, double, or uint16_t for bfloat16 as it is.
template <class E>
void copy_plane(const Planes& from, int64_t image, int64_t group, int64_t plane, E* to, const Padded& v, int64_t first,
                int64_t last);

// Sums to where they belong, `step` elements apart, in the dtype of the result.
template <class A> MT_INLINE void put_line(char* to, int code, int64_t step, const A* sums, int64_t n) {
    if (code == BF16) {
        BFloat16* line = reinterpret_cast<BFloat16*>(to);
        if (step == 1)
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) line[i] = convert<BFloat16>(sums[i]);
        else
            for (int64_t i = 0; i < n; ++i) line[i * step] = convert<BFloat16>(sums[i]);
    } else if (code == F16) {
        Half* line = reinterpret_cast<Half*>(to);
        for (int64_t i = 0; i < n; ++i) line[i * step] = convert<Half>(sums[i]);
    } else if (step == 1) {
        copy_bytes(to, reinterpret_cast<const char*>(sums), n * (int64_t)sizeof(A));
    } else {
        A* line = reinterpret_cast<A*>(to);
        for (int64_t i = 0; i < n; ++i) line[i * step] = sums[i];
    }
}

// Taps of a form that stand one below the other, for places whose windows share rows: block b (channel and depth), row
// i, column e of a window are at base[b] + row[i] + column[e].
struct Shared {
    std::vector<int64_t> base, row, column;
    int64_t high = 0, step = 1;  // rows of taps, and rows from one place to the next; 0: not shared
    bool flipped = false;        // the last row of taps first
};

// k of the blocks that a sum is made of. Short sums of gradients in shorter ones: PyTorch adds them tap by tap, which rounds
// better.
inline int64_t sum_depth(int64_t k, bool pairs, bool gradient) {
    const int64_t most = pairs || !gradient ? KC : k <= 128 ? 32 : k <= KC ? 64 : KC;
    return k <= most ? k : ceil_div(ceil_div(k, ceil_div(k, most)), 8) * 8;
}

// One form of sums, for all groups: over k of weight[row][k] * copy[offset[k] + place].
template <class A> struct Form {
    Grid grid;
    Pitch from, to;               // of the copy and of the result
    std::vector<int64_t> offset;  // of each k in a group's copy
    int64_t groups, rows;         // rows: results of a group
    int64_t group_from, row_to;   // group's planes in the copy; row's plane in the result
    const A* copy;
    char* out;
    int code;       // of the result
    const A* bias;  // of all rows, or null
    bool gradient, pairs;
    Shared shared;
    int64_t reach;  // rows of the copy that the windows of one place reach
    int64_t k() const { return (int64_t)offset.size(); }
    int64_t depth() const { return sum_depth(k(), pairs, gradient); }
    char* at(int64_t element) const { return out + element * ITEMSIZE[code]; }
};
inline bool by_rows(int64_t rows, int64_t k) { return rows <= FEW_ROWS && k <= FEW_TAPS; }

// The weights of a form, by group, row and k. Of pairs, which are bfloat16, `second` is the place of the other one, or
// -1; where they are those of all channels in order, `taps` of each, that number says so.
template <class A> struct Weights {
    const A* data;
    const uint16_t* narrow;
    int64_t group, row;
    std::vector<int64_t> place, second;
    int64_t taps = 0;
    A at(int64_t g, int64_t r, size_t k) const { return data[g * group + r * row + place[k]]; }
};

// A stretch of places side by side: `start` counts from the beginning of a panel or block.
struct Run {
    int64_t start, length, from, to;
};

// Each row by itself: all forms of a group over one copy of its planes.
template <class A>
void sum_rows(const std::vector<Form<A>>& forms, const std::vector<Weights<A>>& weights, const Planes& from,
              int64_t images, const Padded& p);
template <class A>
void weight_rows(const Form<A>& f, const Planes& grad, const Planes& from, int64_t images, const Padded& p, A* out);

// Where each plane is by itself: groups of one plane, each of which `times` results are made of (1 for the gradient of
// the input). The functions are false, with nothing written, where the CPU or the shapes are not for them.
struct EachPlane {
    int64_t images, groups, times;
    const Window& v;
    const float *weight, *bias;
};
bool planes_forward(const EachPlane& e, const Dense& x, const Dense& out);
bool planes_input(const EachPlane& e, const Dense& grad, const Dense& out);
bool planes_weight(const EachPlane& e, const Dense& grad, const Dense& x, float* out);

// As products of packed panels.
template <class A> void sum_panels(const Form<A>& f, const Weights<A>& w);
// E: float or double, or uint16_t for pairs of bfloat16 (then A is float); copy: of E.
template <class A, class E> void weight_panels(const Form<A>& f, const E* copy, const Planes& grad, A* out);

}  // namespace mt
#pragma GCC visibility pop
