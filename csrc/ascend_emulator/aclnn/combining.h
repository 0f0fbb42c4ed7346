// What a scattered value does to the one already there; the first six are the codes of `reduce`.
#pragma once

#include "kernel.h"

namespace emu {

enum Reduce { kReplace, kAdd, kMultiply, kMax, kMin, kMean, kDivide };

// Integers divide towards zero; by zero they give 0, where hardware promises nothing.
template <class T>
T divided(T a, T b) {
    if constexpr (std::is_same_v<T, int64_t>) return b == 0 ? 0 : a / b;
    else return a / b;
}

template <class T>
T combined(int64_t how, T old, T value) {
    switch (how) {
        case kAdd: case kMean: return old + value;
        case kMultiply: return old * value;
        case kDivide: return divided(old, value);
        default: break;
    }
    if constexpr (!std::is_same_v<T, Complex>) {
        if (how == kMax) return old != old || old > value ? old : value;
        if (how == kMin) return old != old || old < value ? old : value;
    }
    return value;
}

}  // namespace emu
