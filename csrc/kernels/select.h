// Keys that order as elements do, and the k-th smallest of a lane of them.
// Invariant: a key is found by counting how many are not above a bound, so that time does not depend on their order.
#pragma once
#include "cpu.h"
#include "lanes.h"

#include <algorithm>

#pragma GCC visibility push(hidden)
namespace mt {

// A key is an unsigned integer that orders as the element does; NaN is the largest, -0 equals 0.
template <class K> MT_INLINE K float_key(K bits, K infinity) {
    constexpr K sign = K(1) << (sizeof(K) * 8 - 1);
    const K magnitude = bits & K(~sign);
    if (magnitude > infinity) return K(~K(0));
    if (magnitude == 0) return sign;
    return bits & sign ? K(~bits) : K(bits | sign);
}
MT_INLINE uint32_t key_of(float x) { return float_key<uint32_t>(bits_of(x), 0x7f800000u); }
MT_INLINE uint64_t key_of(double x) { return float_key<uint64_t>(bits_of(x), 0x7ff0000000000000ull); }
MT_INLINE uint16_t key_of(Half x) { return float_key<uint16_t>(x.bits, 0x7c00); }
MT_INLINE uint16_t key_of(BFloat16 x) { return float_key<uint16_t>(x.bits, 0x7f80); }
MT_INLINE uint8_t key_of(Bool x) { return x.v != 0; }
template <class T> MT_INLINE typename std::make_unsigned<T>::type key_of(T x) {
    using K = typename std::make_unsigned<T>::type;
    return std::is_signed<T>::value ? K(K(x) ^ (K(1) << (sizeof(K) * 8 - 1))) : K(x);
}

// What keys are counted in: bytes are widened, so that there are no counters of a byte.
template <class K> using Counted = typename std::conditional<sizeof(K) == 1, uint16_t, K>::type;

// How many keys are at most `limit`. Counted in their own type, which makes vectors of it.
template <class K> MT_INLINE int64_t count_upto(const K* keys, int64_t n, K limit) {
    constexpr int64_t MOST = sizeof(K) == 2 ? 1 << 15 : 1 << 20;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += MOST) {
        const int64_t end = n - i < MOST ? n : i + MOST;
        K count = 0;
        for (int64_t j = i; j < end; ++j) count = K(count + K(keys[j] <= limit));
        total += (int64_t)count;
    }
    return total;
}

// The k-th smallest of digits, from 0, by halving their range. There is room for PAD more of them, which is written to.
constexpr int64_t PAD = 64;
MT_INLINE uint16_t kth_digit(uint16_t* digits, int64_t n, int64_t k) {
    uint16_t low = 0xffff, high = 0;
    for (int64_t i = 0; i < n; ++i) {
        low = digits[i] < low ? digits[i] : low;
        high = digits[i] > high ? digits[i] : high;
    }
    // What fills up the last vector is above every bound that is asked for.
    const int64_t whole = (n + PAD - 1) / PAD * PAD;
    for (int64_t i = n; i < whole; ++i) digits[i] = 0xffff;
    while (low < high) {
        const uint16_t middle = uint16_t(low + (high - low) / 2);
        if (count_upto(digits, whole, middle) > k) high = middle;
        else low = uint16_t(middle + 1);
    }
    return low;
}

// The k-th smallest key, by 16 bits at a time: after each step those are left that begin alike.
template <class K> MT_INLINE K kth_key(const K* keys, int64_t n, int64_t k) {
    constexpr int64_t FEW = 12;
    const Row<uint16_t> row(n + PAD);
    const Row<K> alike(sizeof(K) > 2 ? n + 1 : 0);
    uint16_t* digits = row.get();
    for (int shift = 8 * (int)sizeof(K) - 16;; shift -= 16) {
        if (n <= FEW) break;
        for (int64_t i = 0; i < n; ++i) digits[i] = uint16_t(keys[i] >> shift);
        const uint16_t digit = kth_digit(digits, n, k);
        if (digit > 0) k -= count_upto(digits, n, uint16_t(digit - 1));
        if constexpr (sizeof(K) == 2) return digit;
        // Written in any case, kept where it is one of them. Also in place: what is written has been read.
        int64_t found = 0;
        for (int64_t i = 0; i < n; ++i) {
            alike.get()[found] = keys[i];
            found += digits[i] == digit;
        }
        keys = alike.get();
        n = found;
        if (shift == 0) return keys[0];
    }
    for (int64_t i = 0; i < n; ++i) {
        int64_t less = 0, equal = 0;
        for (int64_t j = 0; j < n; ++j) {
            less += keys[j] < keys[i];
            equal += keys[j] == keys[i];
        }
        if (less <= k && k < less + equal) return keys[i];
    }
    return keys[0];
}

// Where the nth key (from 0) of this value stands; it is there.
template <class K> MT_INLINE int64_t place_of_key(const K* keys, int64_t n, K value, int64_t nth) {
    constexpr int64_t STEP = 64;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        K count = 0;
        for (int64_t j = 0; j < STEP; ++j) count = K(count + K(keys[i + j] == value));
        if ((int64_t)count > nth) break;
        nth -= (int64_t)count;
    }
    for (; i < n - 1; ++i)
        if (keys[i] == value && nth-- == 0) break;
    return i;
}

template <class F> void dispatch_sortable(int code, F&& f) {
    switch (code) {
        case U16: f(uint16_t()); return;
        case U32: f(uint32_t()); return;
        case U64: f(uint64_t()); return;
        case C64:
        case C128: fail(PyExc_RuntimeError, " Sort does not support complex dtypes on CPU");
        default:
            dispatch_arithmetic(code, "sorting_kernel_method_name", [&](auto t) {
                if constexpr (!IsComplex<decltype(t)>::value) f(t);
            });
    }
}

}  // namespace mt
#pragma GCC visibility pop
