// Element types: sizes, names, the vendor's promotion rules, and conversion between memory and the three types kernels
// compute in (double, int64_t, std::complex<double>).
//
// Computing in double and rounding once gives the correctly rounded result of + - * / and sqrt in every narrower type,
// and is at least as precise as the float32 accumulation the documents ask of FLOAT16 and BF16.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>

#include "acl.h"
#include "narrow.h"

namespace emu {

using Complex = std::complex<double>;

enum class Category { Integer, Real, Complex };

inline size_t size_of(int dtype) {
    switch (dtype) {
        case ACL_INT8:
        case ACL_UINT8:
        case ACL_BOOL: return 1;
        case ACL_FLOAT16:
        case ACL_BF16:
        case ACL_INT16:
        case ACL_UINT16: return 2;
        case ACL_FLOAT:
        case ACL_INT32:
        case ACL_UINT32:
        case ACL_COMPLEX32: return 4;
        case ACL_INT64:
        case ACL_UINT64:
        case ACL_DOUBLE:
        case ACL_COMPLEX64: return 8;
        case ACL_COMPLEX128: return 16;
        case ACL_HIFLOAT8:
        case ACL_FLOAT8_E5M2:
        case ACL_FLOAT8_E4M3FN:
        case ACL_FLOAT8_E8M0: return 1;
        default: return 0;
    }
}

// Types whose values every kernel can read and write.
inline bool computable(int dtype) { return size_of(dtype) != 0 && (dtype < ACL_HIFLOAT8 || dtype > ACL_FLOAT8_E8M0); }

// Whole bytes that hold so many elements, two of four bits in each.
inline int64_t bytes_for(int dtype, int64_t elements) {
    return is_half_byte(dtype) ? (elements + 1) / 2 : elements * int64_t(size_of(dtype));
}

const char* dtype_name(int dtype);

inline bool is_complex(int dtype) {
    return dtype == ACL_COMPLEX32 || dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128;
}
inline bool is_real(int dtype) {
    return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_DOUBLE;
}
inline bool is_integer(int dtype) { return computable(dtype) && !is_complex(dtype) && !is_real(dtype); }
inline bool is_unsigned_wide(int dtype) { return dtype == ACL_UINT16 || dtype == ACL_UINT32 || dtype == ACL_UINT64; }

inline Category category(int dtype) {
    if (is_complex(dtype)) return Category::Complex;
    return is_real(dtype) || is_narrow_float(dtype) ? Category::Real : Category::Integer;
}

// ACL_DT_UNDEFINED where the vendor's tables have no entry.
int promote(int a, int b);
int promote_scalar(int tensor, int scalar);
bool castable(int from, int to);

// -- 16-bit floats ---------------------------------------------------------------------------------------------------
inline float half_to_float(uint16_t h) {
    uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff, bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000 | mantissa << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    } else {
        float value = std::ldexp(float(mantissa), -24);
        return sign ? -value : value;
    }
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// Round to nearest even at `digits` bits of significand, with the least normal exponent `low` and overflow past `top`.
inline double round_to(double x, int digits, int low, double top) {
    if (!std::isfinite(x) || x == 0) return x;
    int exponent;
    std::frexp(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
    int unit = (exponent < low ? low : exponent) - digits;
    double scaled = std::nearbyint(std::ldexp(x, -unit));
    double rounded = std::ldexp(scaled, unit);
    return std::fabs(rounded) > top ? std::copysign(INFINITY, x) : rounded;
}

inline uint16_t double_to_half(double x) {
    float value = float(round_to(x, 11, -13, 65504.0));
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint16_t sign = uint16_t(bits >> 16 & 0x8000);
    if (std::isnan(value)) return sign | 0x7e00;
    if (std::isinf(value)) return sign | 0x7c00;
    int exponent = int(bits >> 23 & 255) - 127;
    if (exponent < -14) return sign | uint16_t(std::ldexp(std::fabs(value), 24));
    return sign | uint16_t((exponent + 15) << 10) | uint16_t(bits >> 13 & 0x3ff);
}

inline float bf16_to_float(uint16_t h) {
    uint32_t bits = uint32_t(h) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline uint16_t double_to_bf16(double x) {
    if (std::isnan(x)) return 0x7fc0;
    float value = float(round_to(x, 8, -125, 3.3895313892515355e38));
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return uint16_t(bits >> 16);
}

// -- conversion ------------------------------------------------------------------------------------------------------
// float -> integer saturates where C++ leaves it undefined; NaN gives 0.
inline int64_t to_integer(double x) {
    if (std::isnan(x)) return 0;
    if (x >= 9.2233720368547758e18) return x < 1.8446744073709552e19 ? int64_t(uint64_t(x)) : INT64_MAX;
    if (x <= -9.2233720368547758e18) return INT64_MIN;
    return int64_t(x);
}

template <class To, class From>
inline To convert(From x) {
    if constexpr (std::is_same_v<To, From>) return x;
    else if constexpr (std::is_same_v<To, Complex>) return Complex(double(x), 0);
    else if constexpr (std::is_same_v<From, Complex>) return convert<To, double>(x.real());
    else if constexpr (std::is_same_v<To, int64_t> && std::is_floating_point_v<From>) return to_integer(double(x));
    else return To(x);
}

template <class T>
inline T load(const unsigned char* p, int dtype) {
    auto raw = [p](auto value) {
        std::memcpy(&value, p, sizeof value);
        return value;
    };
    switch (dtype) {
        case ACL_FLOAT: return convert<T>(double(raw(float{})));
        case ACL_DOUBLE: return convert<T>(raw(double{}));
        case ACL_FLOAT16: return convert<T>(double(half_to_float(raw(uint16_t{}))));
        case ACL_BF16: return convert<T>(double(bf16_to_float(raw(uint16_t{}))));
        case ACL_INT8: return convert<T>(int64_t(raw(int8_t{})));
        case ACL_UINT8: return convert<T>(int64_t(raw(uint8_t{})));
        case ACL_INT16: return convert<T>(int64_t(raw(int16_t{})));
        case ACL_UINT16: return convert<T>(int64_t(raw(uint16_t{})));
        case ACL_INT32: return convert<T>(int64_t(raw(int32_t{})));
        case ACL_UINT32: return convert<T>(int64_t(raw(uint32_t{})));
        case ACL_INT64: return convert<T>(raw(int64_t{}));
        case ACL_UINT64:  // int64_t keeps the bits, the others the value
            if constexpr (std::is_same_v<T, int64_t>) return int64_t(raw(uint64_t{}));
            else return convert<T>(double(raw(uint64_t{})));
        case ACL_BOOL: return convert<T>(int64_t(raw(uint8_t{}) != 0));
        case ACL_COMPLEX64: {
            float part[2];
            std::memcpy(part, p, 8);
            return convert<T>(Complex(part[0], part[1]));
        }
        case ACL_COMPLEX128: {
            double part[2];
            std::memcpy(part, p, 16);
            return convert<T>(Complex(part[0], part[1]));
        }
        case ACL_COMPLEX32: {
            uint16_t part[2];
            std::memcpy(part, p, 4);
            return convert<T>(Complex(half_to_float(part[0]), half_to_float(part[1])));
        }
        default: return is_narrow(dtype) ? convert<T>(narrow_value(dtype, *p)) : T{};
    }
}

template <class T>
inline void store(unsigned char* p, int dtype, T x) {
    auto raw = [p](auto value) { std::memcpy(p, &value, sizeof value); };
    switch (dtype) {
        case ACL_FLOAT: raw(float(convert<double>(x))); break;
        case ACL_DOUBLE: raw(convert<double>(x)); break;
        case ACL_FLOAT16: raw(double_to_half(convert<double>(x))); break;
        case ACL_BF16: raw(double_to_bf16(convert<double>(x))); break;
        case ACL_INT8: raw(int8_t(convert<int64_t>(x))); break;
        case ACL_UINT8: raw(uint8_t(convert<int64_t>(x))); break;
        case ACL_INT16: raw(int16_t(convert<int64_t>(x))); break;
        case ACL_UINT16: raw(uint16_t(convert<int64_t>(x))); break;
        case ACL_INT32: raw(int32_t(convert<int64_t>(x))); break;
        case ACL_UINT32: raw(uint32_t(convert<int64_t>(x))); break;
        case ACL_INT64: raw(convert<int64_t>(x)); break;
        case ACL_UINT64: raw(uint64_t(convert<int64_t>(x))); break;
        case ACL_BOOL: raw(uint8_t(x != T{})); break;
        case ACL_COMPLEX64: {
            Complex c = convert<Complex>(x);
            float part[2] = {float(c.real()), float(c.imag())};
            std::memcpy(p, part, 8);
            break;
        }
        case ACL_COMPLEX128: {
            Complex c = convert<Complex>(x);
            double part[2] = {c.real(), c.imag()};
            std::memcpy(p, part, 16);
            break;
        }
        case ACL_COMPLEX32: {
            Complex c = convert<Complex>(x);
            uint16_t part[2] = {double_to_half(c.real()), double_to_half(c.imag())};
            std::memcpy(p, part, 4);
            break;
        }
        default:
            if (is_narrow(dtype)) *p = narrow_code(dtype, convert<double>(x));
            break;
    }
}

}  // namespace emu
