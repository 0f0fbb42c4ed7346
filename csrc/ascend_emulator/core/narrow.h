// Element types of 8 and of 4 bits that only some kernels compute with: each is a table of at most 256 values.
#pragma once

#include <cstdint>

#include "acl.h"

namespace emu {

inline bool is_half_byte(int dtype) {
    return dtype == ACL_INT4 || dtype == ACL_FLOAT4_E2M1 || dtype == ACL_FLOAT4_E1M2;
}
inline bool is_narrow_float(int dtype) {
    return (dtype >= ACL_HIFLOAT8 && dtype <= ACL_FLOAT8_E8M0) || dtype == ACL_FLOAT4_E2M1 || dtype == ACL_FLOAT4_E1M2;
}
inline bool is_narrow(int dtype) { return dtype == ACL_INT4 || is_narrow_float(dtype); }

// The value of a code, and the code of the nearest value: halves to even (HIFLOAT8: away from zero), what is beyond the
// largest becomes the largest.
double narrow_value(int dtype, uint8_t code);
uint8_t narrow_code(int dtype, double x);
// The largest value not above x, and the nearest one, halves away from zero; the least and the largest where there is none.
double narrow_floor(int dtype, double x);
double narrow_away(int dtype, double x);
// The largest finite value.
double narrow_largest(int dtype);

}  // namespace emu
