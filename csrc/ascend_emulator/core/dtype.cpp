#include "dtype.h"

namespace emu {

const char* dtype_name(int dtype) {
    switch (dtype) {
        case ACL_FLOAT: return "FLOAT";
        case ACL_FLOAT16: return "FLOAT16";
        case ACL_INT8: return "INT8";
        case ACL_INT32: return "INT32";
        case ACL_UINT8: return "UINT8";
        case ACL_INT16: return "INT16";
        case ACL_UINT16: return "UINT16";
        case ACL_UINT32: return "UINT32";
        case ACL_INT64: return "INT64";
        case ACL_UINT64: return "UINT64";
        case ACL_DOUBLE: return "DOUBLE";
        case ACL_BOOL: return "BOOL";
        case ACL_STRING: return "STRING";
        case ACL_COMPLEX64: return "COMPLEX64";
        case ACL_COMPLEX128: return "COMPLEX128";
        case ACL_BF16: return "BF16";
        case ACL_INT4: return "INT4";
        case ACL_UINT1: return "UINT1";
        case ACL_COMPLEX32: return "COMPLEX32";
        case ACL_HIFLOAT8: return "HIFLOAT8";
        case ACL_FLOAT8_E5M2: return "FLOAT8_E5M2";
        case ACL_FLOAT8_E4M3FN: return "FLOAT8_E4M3FN";
        case ACL_FLOAT8_E8M0: return "FLOAT8_E8M0";
        case ACL_FLOAT6_E3M2: return "FLOAT6_E3M2";
        case ACL_FLOAT6_E2M3: return "FLOAT6_E2M3";
        case ACL_FLOAT4_E2M1: return "FLOAT4_E2M1";
        case ACL_FLOAT4_E1M2: return "FLOAT4_E1M2";
        default: return "UNDEFINED";
    }
}

namespace {

// Signed integers by width; bool below all of them.
int width_rank(int dtype) {
    switch (dtype) {
        case ACL_BOOL: return 0;
        case ACL_UINT8:
        case ACL_INT8: return 1;
        case ACL_INT16: return 2;
        case ACL_INT32: return 3;
        default: return 4;
    }
}

int complex_of(int real) {
    switch (real) {
        case ACL_DOUBLE: return ACL_COMPLEX128;
        case ACL_FLOAT: return ACL_COMPLEX64;
        default: return ACL_COMPLEX32;
    }
}

int complex_rank(int dtype) { return dtype == ACL_COMPLEX32 ? 0 : dtype == ACL_COMPLEX64 ? 1 : 2; }

int promote_real(int a, int b) {
    if (a == b) return a;
    if (a == ACL_DOUBLE || b == ACL_DOUBLE) return ACL_DOUBLE;
    return ACL_FLOAT;  // float with a 16-bit type, or the two 16-bit types with each other
}

int promote_integer(int a, int b) {
    if (a == b) return a;
    if (width_rank(a) == 1 && width_rank(b) == 1) return ACL_INT16;
    return width_rank(a) > width_rank(b) ? a : b;
}

}  // namespace

int promote(int a, int b) {
    if (a == b) return a;
    if (!computable(a) || !computable(b) || is_unsigned_wide(a) || is_unsigned_wide(b)) return ACL_DT_UNDEFINED;
    if (is_complex(a) || is_complex(b)) {
        int x = is_complex(a) ? a : is_real(a) ? complex_of(a) : b;
        int y = is_complex(b) ? b : is_real(b) ? complex_of(b) : a;
        return complex_rank(x) > complex_rank(y) ? x : y;
    }
    if (is_real(a) && is_real(b)) return promote_real(a, b);
    if (is_real(a)) return a;
    if (is_real(b)) return b;
    return promote_integer(a, b);
}

int promote_scalar(int tensor, int scalar) {
    if (!computable(tensor) || !computable(scalar)) return ACL_DT_UNDEFINED;
    if (is_complex(scalar)) {
        if (is_complex(tensor)) return tensor;
        return tensor == ACL_FLOAT16  ? int(ACL_COMPLEX32)
               : tensor == ACL_DOUBLE ? int(ACL_COMPLEX128)
                                      : int(ACL_COMPLEX64);
    }
    if (is_complex(tensor)) return scalar == ACL_DOUBLE && tensor != ACL_COMPLEX128 ? int(ACL_COMPLEX128) : tensor;
    if (is_real(tensor)) return tensor;
    if (is_real(scalar)) return is_unsigned_wide(tensor) ? int(ACL_DT_UNDEFINED) : int(ACL_FLOAT);
    if (tensor == ACL_BOOL) return is_unsigned_wide(scalar) ? int(ACL_DT_UNDEFINED) : scalar;
    return tensor;
}

bool castable(int from, int to) {
    if (from == to) return true;
    if (!computable(from) || !computable(to)) return false;
    if (to == ACL_BOOL) return false;
    if (is_complex(from)) return is_complex(to) || is_real(to);
    return true;
}

}  // namespace emu
