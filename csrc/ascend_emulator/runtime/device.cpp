// Devices, contexts, peers.
#include <unistd.h>

#include "core/contexts.h"
#include "core/memory.h"
#include "core/streams.h"
#include "runtime/runtime.h"

namespace {

struct aclrtUtilizationInfo {
    int32_t cubeUtilization, vectorUtilization, aicpuUtilization, memoryUtilization;
    void* utilizationExtend;
};

}  // namespace

extern "C" {

EMU_API aclError aclrtSetDevice(int32_t deviceId) {
    ENTER();
    return emu::set_device(deviceId);
}

EMU_API aclError aclrtResetDevice(int32_t deviceId) { RELEASE(emu::reset_device(deviceId, false)); }
EMU_API aclError aclrtResetDeviceForce(int32_t deviceId) { RELEASE(emu::reset_device(deviceId, true)); }

EMU_API aclError aclrtGetDevice(int32_t* deviceId) {
    ENTER();
    return emu::get_device(deviceId);
}

EMU_API aclError aclrtGetDeviceCount(uint32_t* count) {
    ENTER();
    REFUSE_NULL(count);
    *count = static_cast<uint32_t>(emu::device_count());
    return 0;
}

EMU_API aclError aclrtGetRunMode(int* runMode) {
    ENTER();
    REFUSE_NULL(runMode);
    *runMode = 1;  // on the host
    return 0;
}

EMU_API aclError aclrtSynchronizeDevice() {
    ENTER();
    return emu::synchronize_device(-1, __func__);
}

EMU_API aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    ENTER();
    return emu::synchronize_device(timeout, __func__);
}

EMU_API aclError aclrtSetTsDevice(int tsId) {
    ENTER();
    if (tsId != 0) return emu::reject(ACL_ERROR_INVALID_PARAM, "aclrtSetTsDevice: only task scheduler 0 is there");
    return 0;
}

EMU_API aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
    ENTER();
    REFUSE_NULL(utilizationInfo);
    if (int code = emu::check_device(deviceId, __func__)) return code;
    utilizationInfo->cubeUtilization = utilizationInfo->vectorUtilization = emu::device_busy(deviceId) ? 100 : 0;
    utilizationInfo->aicpuUtilization = 0;
    utilizationInfo->memoryUtilization = static_cast<int32_t>(emu::live_bytes(deviceId) * 100 / emu::settings().memory);
    return 0;
}

EMU_API aclError aclrtQueryDeviceStatus(int32_t deviceId, int* deviceStatus) {
    ENTER();
    REFUSE_NULL(deviceStatus);
    if (int code = emu::check_device(deviceId, __func__)) return code;
    *deviceStatus = emu::device_lost(deviceId) ? 1 : 0;  // abnormal, normal
    return 0;
}

EMU_API aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
    ENTER();
    (void)timeout;  // what runs here always comes to an end
    return emu::abort_device(deviceId);
}

EMU_API aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
    ENTER();
    return emu::primary_state(deviceId, flags, active);
}

EMU_API aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
    ENTER();
    if (leastPriority != nullptr) *leastPriority = 7;
    if (greatestPriority != nullptr) *greatestPriority = 0;
    return 0;
}

EMU_API aclError aclrtDeviceGetBareTgid(int32_t* pid) {
    ENTER();
    REFUSE_NULL(pid);
    *pid = static_cast<int32_t>(getpid());
    return 0;
}

EMU_API aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
    ENTER();
    return emu::create_context(context, deviceId);
}

EMU_API aclError aclrtDestroyContext(aclrtContext context) { RELEASE(emu::destroy_context(context)); }

EMU_API aclError aclrtSetCurrentContext(aclrtContext context) {
    ENTER();
    return emu::set_current_context(context);
}

EMU_API aclError aclrtGetCurrentContext(aclrtContext* context) {
    ENTER();
    return emu::get_current_context(context);
}

EMU_API aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
    ENTER();
    REFUSE_NULL(stream);
    if (int code = emu::require_context()) return code;
    *stream = emu::current_context()->default_stream;
    return 0;
}

EMU_API aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    ENTER();
    return emu::can_access_peer(canAccessPeer, deviceId, peerDeviceId);
}

EMU_API aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    ENTER();
    return emu::enable_peer(peerDeviceId, flags, true);
}

EMU_API aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    ENTER();
    return emu::enable_peer(peerDeviceId, 0, false);
}

EMU_API aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
    ENTER();
    return emu::peer_status(deviceId, peerDeviceId, status);
}

}  // extern "C"
