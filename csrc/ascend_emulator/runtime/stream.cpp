// Streams, their configurations, callbacks and failures.
#include "core/streams.h"

#include <atomic>
#include <cstring>

#include "core/callbacks.h"
#include "core/copies.h"
#include "core/handles.h"
#include "runtime/runtime.h"

namespace {

struct StreamConfig {
    void* work = nullptr;
    size_t work_bytes = 0;
    size_t flag = 0;
    uint32_t priority = 0;
};

}  // namespace

extern "C" {

EMU_API aclError aclrtCreateStream(aclrtStream* stream) {
    ENTER();
    return emu::create_stream(stream, 0, 0, __func__);
}

EMU_API aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
    ENTER();
    return emu::create_stream(stream, priority, flag, __func__);
}

EMU_API void* aclrtCreateStreamConfigHandle() {
    if (emu::enter(__func__) != 0) return nullptr;
    return emu::handles().create(emu::Kind::stream_config, __func__, std::make_shared<StreamConfig>());
}

// Attributes: work address 0, work size 1, flag 2, priority 3.
EMU_API aclError aclrtSetStreamConfigOpt(void* handle, int attr, const void* attrValue, size_t valueSize) {
    ENTER();
    REFUSE_NULL(handle);
    REFUSE_NULL(attrValue);
    auto config = emu::handles().find<StreamConfig>(emu::Kind::stream_config, handle, __func__);
    if (config == nullptr) return emu::finish(ACL_ERROR_RT_INVALID_HANDLE);
    void* const fields[] = {&config->work, &config->work_bytes, &config->flag, &config->priority};
    const size_t sizes[] = {sizeof(void*), sizeof(size_t), sizeof(size_t), sizeof(uint32_t)};
    if (attr < 0 || attr > 3)
        return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtSetStreamConfigOpt: no attribute %d", attr);
    if (valueSize != sizes[attr]) {
        return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtSetStreamConfigOpt: attribute %d has %zu bytes, got %zu",
                           attr, sizes[attr], valueSize);
    }
    memcpy(fields[attr], attrValue, valueSize);
    return 0;
}

EMU_API aclError aclrtCreateStreamV2(aclrtStream* stream, const void* handle) {
    ENTER();
    REFUSE_NULL(handle);
    auto config = emu::handles().find<StreamConfig>(emu::Kind::stream_config, handle, __func__);
    if (config == nullptr) return emu::finish(ACL_ERROR_RT_INVALID_HANDLE);
    return emu::create_stream(stream, config->priority, static_cast<uint32_t>(config->flag), __func__);
}

EMU_API aclError aclrtDestroyStreamConfigHandle(void* handle) {
    int fault = 0;
    if (int code = emu::enter_release(__func__, &fault)) return code;
    REFUSE_NULL(handle);
    auto config = emu::handles().destroy<StreamConfig>(emu::Kind::stream_config, handle, __func__);
    return emu::finish(config == nullptr ? ACL_ERROR_RT_INVALID_HANDLE : fault);
}

EMU_API aclError aclrtDestroyStream(aclrtStream stream) { RELEASE(emu::destroy_stream(stream, false, __func__)); }
EMU_API aclError aclrtDestroyStreamForce(aclrtStream stream) { RELEASE(emu::destroy_stream(stream, true, __func__)); }

EMU_API aclError aclrtSynchronizeStream(aclrtStream stream) {
    ENTER();
    return emu::synchronize_stream(stream, -1, __func__);
}

EMU_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    ENTER();
    return emu::synchronize_stream(stream, timeout, __func__);
}

EMU_API aclError aclrtStreamQuery(aclrtStream stream, int* status) {
    ENTER();
    return emu::query_stream(stream, status);
}

EMU_API aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
    ENTER();
    return emu::stream_id(stream, streamId);
}

EMU_API aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    ENTER();
    return emu::set_failure_mode(stream, mode);
}

EMU_API aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
    ENTER();
    return emu::overflow_switch(stream, &flag, true);
}

EMU_API aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
    ENTER();
    return emu::overflow_switch(stream, flag, false);
}

EMU_API aclError aclrtStreamAbort(aclrtStream stream) {
    ENTER();
    return emu::abort_stream(stream);
}

// Tasks here end by themselves: the limits are accepted and never reached.
EMU_API aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
    ENTER();
    (void)timeout;
    return emu::require_context();
}

EMU_API aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
    ENTER();
    (void)timeout;
    return emu::require_context();
}

// -- callbacks -------------------------------------------------------------------------------------------------------

EMU_API aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
    ENTER();
    return emu::subscribe(emu::Reports::callbacks, threadId, stream, __func__);
}

EMU_API aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
    ENTER();
    return emu::unsubscribe(emu::Reports::callbacks, threadId, stream, __func__);
}

EMU_API aclError aclrtProcessReport(int32_t timeout) {
    ENTER();
    return emu::process(emu::Reports::callbacks, timeout, __func__);
}

EMU_API aclError aclrtLaunchCallback(void (*fn)(void*), void* userData, int blockType, aclrtStream stream) {
    ENTER();
    return emu::launch_callback(fn, userData, blockType, stream);
}

EMU_API aclError aclrtLaunchHostFunc(aclrtStream stream, void (*fn)(void*), void* args) {
    ENTER();
    return emu::launch_host_function(stream, fn, args);
}

EMU_API aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
    ENTER();
    return emu::subscribe(emu::Reports::host_functions, hostFuncThreadId, exeStream, __func__);
}

EMU_API aclError aclrtProcessHostFunc(int32_t timeout) {
    ENTER();
    return emu::process(emu::Reports::host_functions, timeout, __func__);
}

EMU_API aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
    ENTER();
    return emu::unsubscribe(emu::Reports::host_functions, hostFuncThreadId, exeStream, __func__);
}

EMU_API aclError aclrtSetExceptionInfoCallback(void (*callback)(void*)) {
    ENTER();
    return emu::set_exception_callback(callback);
}

// Called by a client inside its exception callback, so they are not counted.
EMU_API uint32_t aclrtGetErrorCodeFromExceptionInfo(const emu::ExceptionInfo* info) {
    return info == nullptr ? UINT32_MAX : info->code;
}
EMU_API uint32_t aclrtGetTaskIdFromExceptionInfo(const emu::ExceptionInfo* info) {
    return info == nullptr ? UINT32_MAX : info->task;
}
EMU_API uint32_t aclrtGetStreamIdFromExceptionInfo(const emu::ExceptionInfo* info) {
    return info == nullptr ? UINT32_MAX : info->stream;
}
EMU_API uint32_t aclrtGetThreadIdFromExceptionInfo(const emu::ExceptionInfo* info) {
    return info == nullptr ? UINT32_MAX : info->thread;
}
EMU_API uint32_t aclrtGetDeviceIdFromExceptionInfo(const emu::ExceptionInfo* info) {
    return info == nullptr ? UINT32_MAX : info->device;
}

// -- overflow --------------------------------------------------------------------------------------------------------

EMU_API aclError aclrtSetDeviceSatMode(int mode) {
    ENTER();
    if (mode < 0 || mode > 1) return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtSetDeviceSatMode: no mode %d", mode);
    if (int code = emu::require_context()) return code;
    if (mode == 0) {
        return emu::reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "aclrtSetDeviceSatMode: kernels here compute with infinities "
                           "and NaN; saturation is not emulated");
    }
    return 0;
}

EMU_API aclError aclrtGetDeviceSatMode(int* mode) {
    ENTER();
    REFUSE_NULL(mode);
    if (int code = emu::require_context()) return code;
    *mode = 1;  // infinities and NaN
    return 0;
}

EMU_API aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
    ENTER();
    return emu::overflow_status(outputAddr, outputSize, stream);
}

EMU_API aclError aclrtResetOverflowStatus(aclrtStream stream) {
    ENTER();
    return emu::check_stream(stream, __func__);  // nothing is ever flagged, so nothing is to be reset
}

}  // extern "C"
