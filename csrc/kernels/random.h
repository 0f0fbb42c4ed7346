// The state of a generator of random numbers, and the numbers that every distribution is made of.
// Invariant: a state is the 5056 bytes that PyTorch's Generator.get_state() gives.
#ifndef MT_RANDOM_H
#define MT_RANDOM_H
#include "common.h"

#include <algorithm>

namespace mt {

constexpr int N = 624, M = 397;
constexpr double TWO_PI = 6.283185307179586476925286766559;

struct State {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next;
    uint64_t words[N];
    // The second number of a pair waits here; the other two places belong to an older way of keeping it.
    double unused_x, cached_normal, unused_rho;
    int32_t has_cached_normal;
    int32_t pad;
    float cached_float_normal;
    bool has_cached_float;
};
static_assert(sizeof(State) == 5056, "PyTorch's states have 5056 bytes");

void refill(State& s);  // random.cpp

MT_INLINE uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}
MT_INLINE uint32_t next32(State& s) {
    if (--s.left == 0) refill(s);
    return temper((uint32_t)s.words[s.next++]);
}
// The next n numbers of next32.
void next_words(State& s, uint32_t* out, int64_t n);
MT_INLINE uint64_t next64(State& s) {
    const uint64_t high = next32(s);
    return (high << 32) | next32(s);
}

// Bits of a uniform number in [0, 1): narrow types are drawn as float and rounded.
template <class T> struct Digits {
    static constexpr int value = 24;
    using acc = float;
};
template <> struct Digits<double> {
    static constexpr int value = 53;
    using acc = double;
};
template <class T> MT_INLINE typename Digits<T>::acc unit(State& s) {
    using A = typename Digits<T>::acc;
    constexpr int digits = Digits<T>::value;
    constexpr uint64_t mask = ((uint64_t)1 << digits) - 1;
    constexpr A scale = (A)1 / (A)((uint64_t)1 << digits);
    if constexpr (std::is_same<T, double>::value) return (A)(next64(s) & mask) * scale;
    else return (A)(next32(s) & mask) * scale;
}

// One normal number; they come in pairs, and the second one waits in the state.
inline double next_normal(State& s) {
    if (s.has_cached_normal) {
        const double waiting = s.cached_normal;
        s.has_cached_normal = 0;
        s.cached_normal = 0;
        return waiting;
    }
    const double u1 = unit<double>(s), u2 = unit<double>(s);
    const double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = TWO_PI * u1;
    s.cached_normal = r * std::sin(theta);
    s.has_cached_normal = 1;
    return r * std::cos(theta);
}

inline State& as_state(PyObject* o, bool check = true) {
    StorageObject* s = as_storage(o);
    if (s->nbytes != (Py_ssize_t)sizeof(State))
        fail(PyExc_RuntimeError, "expected a generator state of %zu bytes, got %zd", sizeof(State), s->nbytes);
    State& state = *reinterpret_cast<State*>(s->ptr);
    // The bytes may come from the user. `next` counts up as `left` counts down, so it stays inside `words`.
    const bool valid = state.seeded == 1 && state.left > 0 && state.left <= N && state.next <= (uint64_t)N &&
                       (uint64_t)state.left + state.next <= (uint64_t)N + 1;
    if (MT_UNLIKELY(check && !valid)) fail(PyExc_RuntimeError, "Invalid mt19937 state");
    return state;
}

// The strides of dense memory whose dimensions are in the order of the operand's: numbers are drawn in that order.
inline void dense_like(const Shape& shape, const Operand& o, int64_t* dense) {
    int order[MAXD];
    for (int i = 0; i < shape.ndim; ++i) order[i] = i;
    std::stable_sort(order, order + shape.ndim, [&](int a, int b) { return o.stride[a] > o.stride[b]; });
    int64_t step = 1;
    for (int i = shape.ndim - 1; i >= 0; --i) {
        dense[order[i]] = step;
        step = wrapping_mul(step, shape.dim[order[i]]);  // fits unless another size is 0
    }
}

}  // namespace mt
#endif
