// The upper half of a float for host code: what programs fill tensors of ACL_BF16 with.
#pragma once

#include <cstdint>
#include <cstring>

namespace op {

struct bfloat16 {
    uint16_t value = 0;

    bfloat16() = default;
    template <class T>
    bfloat16(T x) : value(from_float(static_cast<float>(x))) {}
    static bfloat16 from_bits(uint16_t bits) {
        bfloat16 out;
        out.value = bits;
        return out;
    }
    operator float() const {
        uint32_t bits = uint32_t(value) << 16;
        float out;
        std::memcpy(&out, &bits, sizeof out);
        return out;
    }
    bfloat16& operator+=(bfloat16 x) { return *this = bfloat16(float(*this) + float(x)); }
    bfloat16& operator-=(bfloat16 x) { return *this = bfloat16(float(*this) - float(x)); }
    bfloat16& operator*=(bfloat16 x) { return *this = bfloat16(float(*this) * float(x)); }
    bfloat16& operator/=(bfloat16 x) { return *this = bfloat16(float(*this) / float(x)); }

private:
    // To the nearest, halves to even.
    static uint16_t from_float(float x) {
        uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);
        return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
    }
};

}  // namespace op
