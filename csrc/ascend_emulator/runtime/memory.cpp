// Memory: device, pinned, virtual; copies and fills.
#include "core/memory.h"

#include "core/contexts.h"
#include "core/copies.h"
#include "core/streams.h"
#include "runtime/runtime.h"

namespace {

struct aclrtMallocAttribute {
    int attr;
    union {
        uint16_t moduleId;
        uint32_t deviceId;
        uint8_t rsv[8];
    } value;
};

struct aclrtMallocConfig {
    aclrtMallocAttribute* attrs;
    size_t numAttrs;
};

struct aclrtPhysicalMemProp {
    int handleType, allocationType, memAttr;
    struct {
        uint32_t id;
        int type;
    } location;
    uint64_t reserve;
};

int allocate(void** devPtr, size_t size, bool pad, const char* by) {
    return emu::device_malloc(devPtr, size, pad && emu::chip_profile().extra_pad, by);
}

// The attributes are a module id (a label) and a device, which must be the current one.
int check_config(const aclrtMallocConfig* cfg, const char* by) {
    if (cfg == nullptr) return 0;
    for (size_t i = 0; i < cfg->numAttrs; i++) {
        const aclrtMallocAttribute& attribute = cfg->attrs[i];
        if (attribute.attr == 1) continue;
        if (attribute.attr == 2) {
            if (int code = emu::require_context()) return code;
            if (attribute.value.deviceId == static_cast<uint32_t>(emu::current_context()->device)) continue;
            return emu::reject(ACL_ERROR_RT_INVALID_DEVICEID, "%s: device %u is not the current device", by,
                               attribute.value.deviceId);
        }
        return emu::reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: attribute %d is not emulated", by, attribute.attr);
    }
    return 0;
}

int other_process(const char* by) {
    return emu::reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                       "%s: memory of one process is not shared with another in the "
                       "emulator",
                       by);
}

int check_range(const void* devPtr, size_t size, const char* by) {
    if (devPtr == nullptr || size == 0)
        return emu::reject(ACL_ERROR_INVALID_PARAM, "%s: devPtr is NULL or size is 0", by);
    if (emu::live(reinterpret_cast<uint64_t>(devPtr), size)) return 0;
    return emu::reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p, %zu bytes, is not in a live allocation", by, devPtr, size);
}

}  // namespace

extern "C" {

EMU_API aclError aclrtMalloc(void** devPtr, size_t size, int policy) {
    ENTER();
    (void)policy;  // every policy is served from the same pages, as the documents allow
    return allocate(devPtr, size, true, __func__);
}

EMU_API aclError aclrtMallocAlign32(void** devPtr, size_t size, int policy) {
    ENTER();
    (void)policy;
    return allocate(devPtr, size, false, __func__);
}

EMU_API aclError aclrtMallocCached(void** devPtr, size_t size, int policy) {
    ENTER();
    (void)policy;
    return allocate(devPtr, size, true, __func__);
}

EMU_API aclError aclrtMallocWithCfg(void** devPtr, size_t size, int policy, aclrtMallocConfig* cfg) {
    ENTER();
    (void)policy;
    if (int code = check_config(cfg, __func__)) return code;
    return allocate(devPtr, size, true, __func__);
}

EMU_API aclError aclrtFree(void* devPtr) { RELEASE(emu::device_free(devPtr, __func__)); }

EMU_API aclError aclrtFreeWithDevSync(void* devPtr) {
    int fault = 0;
    if (int code = emu::enter_release(__func__, &fault)) return code;
    int waited = emu::synchronize_device(-1, __func__);
    int freed = emu::device_free(devPtr, __func__);
    if (fault != 0) return emu::finish(fault);
    return freed != 0 ? freed : waited;
}

EMU_API aclError aclrtMallocHost(void** hostPtr, size_t size) {
    ENTER();
    return emu::host_malloc(hostPtr, size, __func__);
}

EMU_API aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
    ENTER();
    if (int code = check_config(cfg, __func__)) return code;
    return emu::host_malloc(ptr, size, __func__);
}

EMU_API aclError aclrtFreeHost(void* hostPtr) { RELEASE(emu::host_free(hostPtr)); }

EMU_API aclError aclrtHostRegister(void* ptr, uint64_t size, int type, void** devPtr) {
    ENTER();
    return emu::host_register(ptr, size, type, devPtr);
}

EMU_API aclError aclrtHostUnregister(void* ptr) { RELEASE(emu::host_unregister(ptr)); }

EMU_API aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
    ENTER();
    REFUSE_NULL(ptr);
    REFUSE_NULL(attributes);
    if (int code = emu::require_context()) return code;
    emu::Where where = emu::classify(ptr);
    *attributes = aclrtPtrAttributes{};
    attributes->type = where.place == emu::Place::device   ? ACL_MEM_LOCATION_TYPE_DEVICE
                       : where.place == emu::Place::pinned ? ACL_MEM_LOCATION_TYPE_HOST
                                                           : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    attributes->id = where.device > 0 ? static_cast<uint32_t>(where.device) : 0;
    attributes->pageSize = static_cast<uint32_t>(where.page);
    return 0;
}

EMU_API aclError aclrtGetMemInfo(int attr, size_t* free, size_t* total) {
    ENTER();
    return emu::memory_info(attr, free, total);
}

EMU_API aclError aclrtMemFlush(void* devPtr, size_t size) {
    ENTER();
    return check_range(devPtr, size, __func__);
}

EMU_API aclError aclrtMemInvalidate(void* devPtr, size_t size) {
    ENTER();
    return check_range(devPtr, size, __func__);
}

// -- copies ----------------------------------------------------------------------------------------------------------

EMU_API aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, int kind) {
    ENTER();
    return emu::copy_now(dst, destMax, src, count, kind);
}

EMU_API aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, int kind,
                                  aclrtStream stream) {
    ENTER();
    return emu::copy_on_stream(dst, destMax, src, count, kind, stream, __func__);
}

EMU_API aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count, int kind,
                                               aclrtStream stream) {
    ENTER();
    return emu::copy_on_stream(dst, destMax, src, count, kind, stream, __func__);
}

EMU_API aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                               int kind) {
    ENTER();
    return emu::copy_rows(dst, dpitch, src, spitch, width, height, kind, false, nullptr);
}

EMU_API aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                                    size_t height, int kind, aclrtStream stream) {
    ENTER();
    return emu::copy_rows(dst, dpitch, src, spitch, width, height, kind, true, stream);
}

EMU_API aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
    ENTER();
    return emu::fill_now(devPtr, maxCount, value, count);
}

EMU_API aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    ENTER();
    return emu::fill_on_stream(devPtr, maxCount, value, count, stream);
}

// -- virtual memory --------------------------------------------------------------------------------------------------

EMU_API aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr, uint64_t flags) {
    ENTER();
    return emu::reserve_address(virPtr, size, alignment, expectPtr, flags);
}

EMU_API aclError aclrtReleaseMemAddress(void* virPtr) { RELEASE(emu::release_address(virPtr)); }

EMU_API aclError aclrtMallocPhysical(void** handle, size_t size, const aclrtPhysicalMemProp* prop, uint64_t flags) {
    ENTER();
    REFUSE_NULL(prop);
    if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
        return emu::reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtMallocPhysical: only device memory is emulated");
    }
    return emu::malloc_physical(handle, size, static_cast<int>(prop->location.id), flags);
}

EMU_API aclError aclrtFreePhysical(void* handle) { RELEASE(emu::free_physical(handle)); }

EMU_API aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, void* handle, uint64_t flags) {
    ENTER();
    return emu::map_memory(virPtr, size, offset, handle, flags);
}

EMU_API aclError aclrtUnmapMem(void* virPtr) { RELEASE(emu::unmap_memory(virPtr)); }

EMU_API aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop, int option, size_t* granularity) {
    ENTER();
    REFUSE_NULL(prop);
    REFUSE_NULL(granularity);
    if (option < 0 || option > 1) {
        return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtMemGetAllocationGranularity: no option %d", option);
    }
    *granularity = emu::kPhysicalGranularity;
    return 0;
}

EMU_API aclError aclrtMemExportToShareableHandle(void*, int, uint64_t, uint64_t*) {
    ENTER();
    return other_process(__func__);
}

EMU_API aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t, void**) {
    ENTER();
    return other_process(__func__);
}

EMU_API aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t*, size_t) {
    ENTER();
    return other_process(__func__);
}

EMU_API aclError aclrtIpcMemGetExportKey(void*, size_t, char*, size_t, uint64_t) {
    ENTER();
    return other_process(__func__);
}

EMU_API aclError aclrtIpcMemImportByKey(void**, const char*, uint64_t) {
    ENTER();
    return other_process(__func__);
}

EMU_API aclError aclrtIpcMemSetImportPid(const char*, int32_t*, size_t) {
    ENTER();
    return other_process(__func__);
}

EMU_API aclError aclrtIpcMemClose(const char*) {
    ENTER();
    return other_process(__func__);
}

}  // extern "C"
