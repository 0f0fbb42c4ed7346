// A number of 16 bits for host code: what programs fill tensors of ACL_FLOAT16 with.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace op {

struct fp16_t {
    uint16_t val = 0;

    fp16_t() = default;
    template <class T>
    fp16_t(T x) : val(from_float(static_cast<float>(x))) {}
    static fp16_t from_bits(uint16_t bits) {
        fp16_t out;
        out.val = bits;
        return out;
    }
    operator float() const { return to_float(val); }
    float toFloat() const { return to_float(val); }
    fp16_t& operator+=(fp16_t x) { return *this = fp16_t(float(*this) + float(x)); }
    fp16_t& operator-=(fp16_t x) { return *this = fp16_t(float(*this) - float(x)); }
    fp16_t& operator*=(fp16_t x) { return *this = fp16_t(float(*this) * float(x)); }
    fp16_t& operator/=(fp16_t x) { return *this = fp16_t(float(*this) / float(x)); }

private:
    static float to_float(uint16_t bits) {
        int exponent = bits >> 10 & 31, fraction = bits & 1023;
        float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(float(fraction), -24)
                                     : std::ldexp(float(fraction + 1024), exponent - 25);
        return bits & 0x8000 ? -size : size;
    }
    // To the nearest, halves to even.
    static uint16_t from_float(float x) {
        uint16_t sign = std::signbit(x) ? 0x8000 : 0;
        if (std::isnan(x)) return sign | 0x7e00;
        double size = std::fabs(double(x));
        if (size >= 65520) return sign | 0x7c00;
        if (size == 0) return sign;
        int exponent;
        std::frexp(size, &exponent);
        int unit = (exponent < -13 ? -13 : exponent) - 11;
        long steps = long(std::nearbyint(std::ldexp(size, -unit)));  // at most 2048
        if (unit == -24) return sign | uint16_t(steps);
        if (steps == 2048) steps = 1024, ++unit;
        return sign | uint16_t((unit + 25) << 10) | uint16_t(steps - 1024);
    }
};

}  // namespace op
