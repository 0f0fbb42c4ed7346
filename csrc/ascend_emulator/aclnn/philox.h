// Random bits: Philox 4x32 with ten rounds, keyed by the seed, counting the element and the offset. The same seed and
// offset give the same numbers, whatever ran before; the vendor does not document his own stream.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "numbers.h"

namespace emu {

struct Philox {
    uint64_t seed, offset;

    std::array<uint32_t, 4> block(uint64_t element) const {
        std::array<uint32_t, 4> c = {uint32_t(element), uint32_t(element >> 32), uint32_t(offset),
                                     uint32_t(offset >> 32)};
        uint32_t a = uint32_t(seed), b = uint32_t(seed >> 32);
        for (int round = 0; round < 10; ++round) {
            uint64_t p = uint64_t(0xD2511F53) * c[0], q = uint64_t(0xCD9E8D57) * c[2];
            c = {uint32_t(q >> 32) ^ c[1] ^ a, uint32_t(q), uint32_t(p >> 32) ^ c[3] ^ b, uint32_t(p)};
            a += 0x9E3779B9;
            b += 0xBB67AE85;
        }
        return c;
    }
    uint64_t bits(uint64_t element) const {
        auto c = block(element);
        return uint64_t(c[0]) << 32 | c[1];
    }
    // In [0, 1), a multiple of 2^-24, so that FLOAT holds it.
    double uniform(uint64_t element) const { return double(block(element)[0] >> 8) / 16777216.0; }
    // In (0, 1).
    double open_uniform(uint64_t element) const { return (double(bits(element) >> 12) + 0.5) / 4503599627370496.0; }
    double normal(uint64_t element) const {
        auto c = block(element);
        double u = (double(c[0]) + 0.5) / 4294967296.0, w = double(c[1]) / 4294967296.0;
        return std::sqrt(-2 * std::log(u)) * std::cos(2 * kPi * w);
    }
    // 0, ..., count - 1; count 0 stands for 2^64.
    uint64_t below(uint64_t element, uint64_t count) const { return count ? bits(element) % count : bits(element); }
};

}  // namespace emu
