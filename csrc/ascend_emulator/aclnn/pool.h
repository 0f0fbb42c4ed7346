// Windows that pooling moves over the last one to three dimensions.
#pragma once

#include <vector>

#include "kernel.h"
#include "view.h"

namespace emu {

// The part of one dimension that a window covers: start, start + step, ... below stop, all inside the input.
struct Window {
    int64_t start = 0, stop = 1, step = 1;
    int64_t padded = 1;  // how many places it has with the padding
    int64_t first = 0;   // which place of the kernel `start` is
};

struct Windows {
    int64_t planes = 1;
    int64_t in[3] = {1, 1, 1};
    std::vector<Window> axis[3] = {{Window()}, {Window()}, {Window()}};

    int64_t in_plane() const { return in[0] * in[1] * in[2]; }
    int64_t out_plane() const { return int64_t(axis[0].size() * axis[1].size() * axis[2].size()); }

    // f(which output of a plane, its window along each dimension)
    template <class F>
    void each(F f) const {
        int64_t at = 0;
        for (const Window& z : axis[0])
            for (const Window& y : axis[1])
                for (const Window& x : axis[2]) f(at++, z, y, x);
    }
    // f(place in the input's plane) for each place a window covers
    template <class F>
    void inside(const Window& z, const Window& y, const Window& x, F f) const {
        for (int64_t a = z.start; a < z.stop; a += z.step)
            for (int64_t b = y.start; b < y.stop; b += y.step)
                for (int64_t c = x.start; c < x.stop; c += x.step) f((a * in[1] + b) * in[2] + c);
    }
};

struct PoolAttributes {
    std::vector<int64_t> kernel, stride, padding, dilation;
    bool ceil = false;
};

// `spatial` last dimensions are pooled; *out is the shape of the result. 161002 when the attributes do not fit.
Windows windows(const Dims& in, int spatial, const PoolAttributes& attributes, Dims* out);
Windows adaptive_windows(const Dims& in, int spatial, const std::vector<int64_t>& sizes, Dims* out);

// The greatest of each window, and where it is in the plane; NaN counts as the greatest, the first of equals wins.
struct Greatest {
    std::vector<double> values;
    std::vector<int64_t> places;
};
Greatest greatest(const Windows& w, const std::vector<double>& x);

}  // namespace emu
