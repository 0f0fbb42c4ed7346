// Initialisation, messages, versions, what the chip can do, halves.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/contexts.h"
#include "runtime/runtime.h"

namespace {

struct aclCANNPackageVersion {
    char version[128], majorVersion[64], minorVersion[64], releaseVersion[64], patchVersion[64], reserved[128];
};
static_assert(sizeof(aclCANNPackageVersion) == 512, "the documented size");

// "8.5.0" or "8.1.RC1" into its parts.
void split_version(char* major, char* minor, char* rest) {
    const char* text = emu::cann_version().c_str();
    major[0] = minor[0] = rest[0] = '\0';
    sscanf(text, "%15[^.].%15[^.].%15s", major, minor, rest);
}

const char* const kPackages[] = {"CANN", "runtime", "compiler", "hccl", "toolkit", "opp", "opp_kernel", "driver"};

bool is_package(const char* name) {
    for (const char* package : kPackages) {
        if (strcasecmp(name, package) == 0) return true;
    }
    return false;
}

float half_to_float(uint16_t half) {
    uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
    float value;
    if (exponent == 0) {
        value = static_cast<float>(fraction) * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    uint32_t bits =
        exponent == 31 ? sign | 0x7f800000 | fraction << 13 : sign | (exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t float_to_half(float value) {  // rounds to nearest, ties to even
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    uint32_t size = bits & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size >= 0x477ff000) return sign | 0x7c00;
    if (size < 0x38800000) {  // subnormal: the float addition does the rounding
        float tiny;
        memcpy(&tiny, &size, sizeof tiny);
        tiny += 0.5f;
        memcpy(&size, &tiny, sizeof size);
        return static_cast<uint16_t>(sign | (size - 0x3f000000));
    }
    size += 0xc8000fff + ((size >> 13) & 1);
    return static_cast<uint16_t>(sign | size >> 13);
}

}  // namespace

extern "C" {

EMU_API aclError aclInit(const char* configPath) {
    ENTER();
    return emu::initialise(configPath);
}

EMU_API aclError aclFinalize() { RELEASE(emu::finalise("aclFinalize")); }

EMU_API aclError aclFinalizeReference(uint64_t* refCount) { RELEASE(emu::finalise_reference(refCount)); }

// Not counted: a client asks only after a failure, and the answer must not fail too.
EMU_API const char* aclGetRecentErrMsg() { return emu::recent_message(); }

EMU_API aclError aclrtPeekAtLastError(int level) {
    if (level != 0) return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtPeekAtLastError: level must be 0 (thread)");
    return emu::last_error(false);
}

EMU_API aclError aclrtGetLastError(int level) {
    if (level != 0) return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtGetLastError: level must be 0 (thread)");
    return emu::last_error(true);
}

EMU_API aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
    ENTER();
    REFUSE_NULL(majorVersion);
    REFUSE_NULL(minorVersion);
    REFUSE_NULL(patchVersion);
    *majorVersion = 1;
    *minorVersion = 15;
    *patchVersion = 0;
    return 0;
}

EMU_API aclError aclsysGetCANNVersion(int name, aclCANNPackageVersion* version) {
    ENTER();
    REFUSE_NULL(version);
    if (name < 0 || name > 7) return emu::reject(ACL_ERROR_INVALID_PARAM, "aclsysGetCANNVersion: no package %d", name);
    memset(version, 0, sizeof *version);
    snprintf(version->version, sizeof version->version, "%s", emu::cann_version().c_str());
    split_version(version->majorVersion, version->minorVersion, version->releaseVersion);
    return 0;
}

EMU_API aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
    ENTER();
    REFUSE_NULL(pkgName);
    REFUSE_NULL(versionStr);
    if (!is_package(pkgName))
        return emu::reject(ACL_ERROR_INVALID_PARAM, "aclsysGetVersionStr: no package %s", pkgName);
    strcpy(versionStr, emu::cann_version().c_str());
    return 0;
}

EMU_API aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
    ENTER();
    REFUSE_NULL(pkgName);
    REFUSE_NULL(versionNum);
    if (!is_package(pkgName))
        return emu::reject(ACL_ERROR_INVALID_PARAM, "aclsysGetVersionNum: no package %s", pkgName);
    char major[64], minor[64], rest[64];
    split_version(major, minor, rest);
    *versionNum = atoi(major) * 10000000 + atoi(minor) * 100000 + atoi(rest) * 1000;
    return 0;
}

EMU_API const char* aclrtGetSocName() {
    if (emu::enter(__func__) != 0) return nullptr;
    return emu::device_count() == 0 ? nullptr : emu::chip_profile().soc;
}

EMU_API aclError aclGetCannAttribute(int cannAttr, int32_t* value) {
    ENTER();
    REFUSE_NULL(value);
    const emu::ChipProfile& chip = emu::chip_profile();
    switch (cannAttr) {
        case 0: *value = chip.inf_nan; return 0;
        case 1: *value = chip.bf16; return 0;
        case 2: *value = chip.jit_compile; return 0;
        default: return emu::reject(ACL_ERROR_INVALID_PARAM, "aclGetCannAttribute: no attribute %d", cannAttr);
    }
}

EMU_API aclError aclGetCannAttributeList(const int** cannAttrList, size_t* num) {
    ENTER();
    REFUSE_NULL(cannAttrList);
    REFUSE_NULL(num);
    static const int attributes[] = {0, 1, 2};
    *cannAttrList = attributes;
    *num = 3;
    return 0;
}

EMU_API aclError aclGetDeviceCapability(uint32_t deviceId, int deviceInfo, int64_t* value) {
    ENTER();
    REFUSE_NULL(value);
    if (int code = emu::check_device(static_cast<int>(deviceId), __func__)) return code;
    const emu::ChipProfile& chip = emu::chip_profile();
    switch (deviceInfo) {
        case 0: *value = chip.ai_cores; return 0;
        case 1: *value = chip.vector_cores; return 0;
        case 2: *value = chip.l2_bytes; return 0;
        default: return emu::reject(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability: no information %d", deviceInfo);
    }
}

EMU_API aclError aclrtGetDeviceInfo(uint32_t deviceId, int attr, int64_t* value) {
    ENTER();
    REFUSE_NULL(value);
    if (int code = emu::check_device(static_cast<int>(deviceId), __func__)) return code;
    return emu::reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                       "aclrtGetDeviceInfo: attribute %d is not emulated; "
                       "aclGetDeviceCapability tells cores and cache",
                       attr);
}

EMU_API size_t aclDataTypeSize(aclDataType dataType) {
    switch (dataType) {
        case ACL_INT8:
        case ACL_UINT8:
        case ACL_BOOL:
        case ACL_HIFLOAT8:
        case ACL_FLOAT8_E5M2:
        case ACL_FLOAT8_E4M3FN:
        case ACL_FLOAT8_E8M0: return 1;
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
        default: return 0;
    }
}

EMU_API float aclFloat16ToFloat(uint16_t value) { return half_to_float(value); }
EMU_API uint16_t aclFloatToFloat16(float value) { return float_to_half(value); }

EMU_API aclError aclrtGetSysParamOpt(int opt, int64_t* value) {
    ENTER();
    return emu::get_option(false, opt, value);
}

EMU_API aclError aclrtSetSysParamOpt(int opt, int64_t value) {
    ENTER();
    return emu::set_option(false, opt, value);
}

EMU_API aclError aclrtCtxGetSysParamOpt(int opt, int64_t* value) {
    ENTER();
    return emu::get_option(true, opt, value);
}

EMU_API aclError aclrtCtxSetSysParamOpt(int opt, int64_t value) {
    ENTER();
    return emu::set_option(true, opt, value);
}

}  // extern "C"
