// The vendor's types, enums and codes, as its documents give them.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

typedef int aclError;
typedef int32_t aclnnStatus;
typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

struct aclTensor;
struct aclScalar;
struct aclIntArray;
struct aclFloatArray;
struct aclBoolArray;
struct aclTensorList;
struct aclScalarList;
struct aclOpExecutor;

enum aclDataType : int {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT16 = 6,
    ACL_UINT16 = 7,
    ACL_UINT32 = 8,
    ACL_INT64 = 9,
    ACL_UINT64 = 10,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_STRING = 13,
    ACL_COMPLEX64 = 16,
    ACL_COMPLEX128 = 17,
    ACL_BF16 = 27,
    ACL_INT4 = 29,
    ACL_UINT1 = 30,
    ACL_COMPLEX32 = 33,
    ACL_HIFLOAT8 = 34,
    ACL_FLOAT8_E5M2 = 35,
    ACL_FLOAT8_E4M3FN = 36,
    ACL_FLOAT8_E8M0 = 37,
    ACL_FLOAT6_E3M2 = 38,
    ACL_FLOAT6_E2M3 = 39,
    ACL_FLOAT4_E2M1 = 40,
    ACL_FLOAT4_E1M2 = 41,
};

enum aclFormat : int {
    ACL_FORMAT_UNDEFINED = -1,
    ACL_FORMAT_NCHW = 0,
    ACL_FORMAT_NHWC = 1,
    ACL_FORMAT_ND = 2,
    ACL_FORMAT_NC1HWC0 = 3,
    ACL_FORMAT_FRACTAL_Z = 4,
    ACL_FORMAT_HWCN = 16,
    ACL_FORMAT_NDHWC = 27,
    ACL_FORMAT_FRACTAL_NZ = 29,
    ACL_FORMAT_NCDHW = 30,
    ACL_FORMAT_NC = 35,
    ACL_FORMAT_NCL = 47,
    ACL_FORMAT_FRACTAL_NZ_C0_16 = 50,
    ACL_FORMAT_FRACTAL_NZ_C0_32 = 51,
    ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
    ACL_FORMAT_FRACTAL_NZ_C0_4 = 53,
    ACL_FORMAT_FRACTAL_NZ_C0_8 = 54,
};

}  // extern "C"

// Codes used by more than one part.
constexpr int ACL_SUCCESS = 0;
constexpr int ACL_ERROR_INVALID_PARAM = 100000;
constexpr int ACL_ERROR_UNINITIALIZE = 100001;
constexpr int ACL_ERROR_REPEAT_INITIALIZE = 100002;
constexpr int ACL_ERROR_REPEAT_FINALIZE = 100037;
constexpr int ACL_ERROR_RT_PARAM_INVALID = 107000;
constexpr int ACL_ERROR_RT_INVALID_DEVICEID = 107001;
constexpr int ACL_ERROR_RT_CONTEXT_NULL = 107002;
constexpr int ACL_ERROR_RT_STREAM_CONTEXT = 107003;
constexpr int ACL_ERROR_RT_INVALID_HANDLE = 107017;
constexpr int ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000;
constexpr int ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;
constexpr int ACL_ERROR_RT_AICORE_EXCEPTION = 507015;
constexpr int ACL_ERROR_RT_LOST_HEARTBEAT = 507010;

constexpr int ACLNN_ERR_PARAM_NULLPTR = 161001;
constexpr int ACLNN_ERR_PARAM_INVALID = 161002;
constexpr int ACLNN_ERR_RUNTIME_ERROR = 361001;
constexpr int ACLNN_ERR_INNER = 561000;
constexpr int ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101;
constexpr int ACLNN_ERR_INNER_NULLPTR = 561103;
