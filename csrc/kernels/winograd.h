// Convolution of 3 x 3 places, one apart, by Winograd's algorithm: see winograd.cpp.
#pragma once
#include "common.h"

#pragma GCC visibility push(hidden)
namespace mt {

template <class A> struct Winograd {
    int64_t images, channels, rows;  // rows: channels of the result
    int64_t in_h, in_w, out_h, out_w, pad_h, pad_w;
    const A* x;
    int64_t x_image;  // from one image to the next; planes lie side by side
    const A* weight;
    int64_t w_row, w_channel;  // from one to the next; the nine taps lie side by side
    bool flipped;              // the last tap first
    const A* bias;             // of each row, or null
    A* out;
    int64_t out_image;
    // Whether it is quicker so: enough channels and places for what the transforms cost.
    bool worthwhile() const;
    // False where a result is not finite: infinities do not pass the transforms, so all of it has to be computed anew.
    bool run() const;
};

}  // namespace mt
#pragma GCC visibility pop
