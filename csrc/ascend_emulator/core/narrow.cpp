#include "narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace emu {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Sign, exponent, significand; exponent 0 holds the numbers below the normal ones.
double binary_value(int code, int exponent_bits, int digits, int bias) {
    int exponent = code >> digits & ((1 << exponent_bits) - 1), rest = code & ((1 << digits) - 1);
    double size = exponent == 0 ? std::ldexp(rest, 1 - bias - digits)
                                : std::ldexp(rest + (1 << digits), exponent - bias - digits);
    return code >> (exponent_bits + digits) & 1 ? -size : size;
}

// Huawei's format: bits behind the sign say how many bits the exponent has, which is sign and magnitude with a hidden 1.
double hif8_value(int code) {
    int body = code & 127;
    if (body == 0) return code & 128 ? kNan : 0;
    double size;
    if (body < 8) {
        size = std::ldexp(1.0, body - 23);
    } else {
        int width = body >= 96 ? 4 : body >= 64 ? 3 : body >= 32 ? 2 : body >= 16 ? 1 : 0;
        int digits = width >= 2 ? 5 - width : 3;
        int field = body >> digits & ((1 << width) - 1), exponent = 0;
        if (width > 0) {
            int magnitude = (field & ((1 << (width - 1)) - 1)) | 1 << (width - 1);
            exponent = field >> (width - 1) ? -magnitude : magnitude;
        }
        size = exponent == 15 && (body & 1)
                   ? INFINITY
                   : std::ldexp((body & ((1 << digits) - 1)) + (1 << digits), exponent - digits);
    }
    return code & 128 ? -size : size;
}

double value_of(int dtype, int code) {
    switch (dtype) {
        case ACL_INT4: return code < 8 ? code : code - 16;
        case ACL_FLOAT4_E2M1: return binary_value(code, 2, 1, 1);
        case ACL_FLOAT4_E1M2: return binary_value(code, 1, 2, 1);
        case ACL_FLOAT8_E4M3FN: return (code & 127) == 127 ? kNan : binary_value(code, 4, 3, 7);
        case ACL_FLOAT8_E5M2:
            if ((code & 124) == 124) return code & 3 ? kNan : code & 128 ? -INFINITY : INFINITY;
            return binary_value(code, 5, 2, 15);
        case ACL_FLOAT8_E8M0: return code == 255 ? kNan : std::ldexp(1.0, code - 127);
        default: return hif8_value(code);
    }
}

struct Table {
    std::vector<double> values;                      // by code
    std::vector<std::pair<double, uint8_t>> sorted;  // finite ones
    uint8_t nan = 0, minus_zero = 0;

    explicit Table(int dtype) {
        int count = is_half_byte(dtype) ? 16 : 256;
        for (int code = 0; code < count; ++code) {
            values.push_back(value_of(dtype, code));
            bool negative_zero = values.back() == 0 && std::signbit(values.back());
            if (std::isfinite(values.back()) && !negative_zero) sorted.emplace_back(values.back(), uint8_t(code));
            if (std::isnan(values.back())) nan = uint8_t(code);
            if (negative_zero) minus_zero = uint8_t(code);
        }
        std::sort(sorted.begin(), sorted.end());
    }
};

const Table& table(int dtype) {
    static const Table int4(ACL_INT4), e2m1(ACL_FLOAT4_E2M1), e1m2(ACL_FLOAT4_E1M2), e4m3(ACL_FLOAT8_E4M3FN);
    static const Table e5m2(ACL_FLOAT8_E5M2), e8m0(ACL_FLOAT8_E8M0), hif8(ACL_HIFLOAT8);
    switch (dtype) {
        case ACL_INT4: return int4;
        case ACL_FLOAT4_E2M1: return e2m1;
        case ACL_FLOAT4_E1M2: return e1m2;
        case ACL_FLOAT8_E4M3FN: return e4m3;
        case ACL_FLOAT8_E5M2: return e5m2;
        case ACL_FLOAT8_E8M0: return e8m0;
        default: return hif8;
    }
}

}  // namespace

double narrow_value(int dtype, uint8_t code) {
    const Table& t = table(dtype);
    return t.values[code % t.values.size()];
}

uint8_t narrow_code(int dtype, double x) {
    const Table& t = table(dtype);
    if (std::isnan(x)) return t.nan;
    if (x == 0 && std::signbit(x)) return t.minus_zero;
    auto above = std::lower_bound(t.sorted.begin(), t.sorted.end(), std::make_pair(x, uint8_t(0)));
    if (above == t.sorted.end()) return t.sorted.back().second;
    if (above == t.sorted.begin() || above->first == x) return above->second;
    auto below = above - 1;
    double up = above->first - x, down = x - below->first;
    if (up != down) return up < down ? above->second : below->second;
    if (dtype == ACL_HIFLOAT8) return x > 0 ? above->second : below->second;
    return above->second % 2 == 0 ? above->second : below->second;
}

double narrow_floor(int dtype, double x) {
    const auto& all = table(dtype).sorted;
    if (std::isnan(x)) return x;
    auto above = std::upper_bound(all.begin(), all.end(), std::make_pair(x, uint8_t(255)));
    return above == all.begin() ? above->first : (above - 1)->first;
}

double narrow_away(int dtype, double x) {
    double size = std::fabs(x), below = narrow_floor(dtype, size);
    const auto& all = table(dtype).sorted;
    auto above = std::upper_bound(all.begin(), all.end(), std::make_pair(below, uint8_t(255)));
    double nearest = above == all.end() || !(size - below >= above->first - size) ? below : above->first;
    return std::copysign(nearest, x);
}

double narrow_largest(int dtype) { return table(dtype).sorted.back().first; }

}  // namespace emu
