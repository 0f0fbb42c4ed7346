// Programs about the runtime: streams, events, memory, executors, errors, faults.
#include <atomic>
#include <thread>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_nonzero.h"
#include "ascend_emulator.h"
#include "harness.h"

namespace {

aclScalar* number(float x) { return aclCreateScalar(&x, ACL_FLOAT); }

int phase1_of_add(const aclTensor* a, const aclTensor* b, aclTensor* out) {
    aclScalar* alpha = number(1);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    int code = aclnnAddGetWorkspaceSize(a, b, alpha, out, &size, &executor);
    if (code == 0) CHECK(aclDestroyAclOpExecutor(executor));
    CHECK(aclDestroyScalar(alpha));
    return code;
}

}  // namespace

PROGRAM(device_is_there) {
    uint32_t count = 0;
    CHECK(aclrtGetDeviceCount(&count));
    EXPECT(count == 1);
    EXPECT(std::string(aclrtGetSocName()).rfind("Ascend", 0) == 0);
    int32_t device = -1;
    CHECK(aclrtGetDevice(&device));
    EXPECT(device == 0);
}

PROGRAM(unknown_device) { EXPECT(aclrtSetDevice(99) == ACL_ERROR_RT_INVALID_DEVICEID); }

PROGRAM(memory_goes_there_and_back) {
    int sent[4] = {1, 2, 3, 4}, got[4] = {};
    void* device = nullptr;
    CHECK(aclrtMalloc(&device, sizeof sent, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK(aclrtMemcpy(device, sizeof sent, sent, sizeof sent, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(aclrtMemcpy(got, sizeof got, device, sizeof got, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(std::memcmp(sent, got, sizeof got) == 0);
    CHECK(aclrtFree(device));
}

PROGRAM(memory_is_freed_once) {
    void* device = nullptr;
    CHECK(aclrtMalloc(&device, 16, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtFree(device));
    EXPECT(aclrtFree(device) != 0);
    EXPECT(std::strlen(recent()) > 0);
    ascendEmulatorClearViolations();
}

PROGRAM(memory_of_no_bytes) {
    void* device = nullptr;
    EXPECT(aclrtMalloc(&device, 0, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
}

PROGRAM(copies_are_bounded) {
    char host[8] = {};
    void* device = nullptr;
    CHECK(aclrtMalloc(&device, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT(aclrtMemcpy(device, 4, host, 8, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);
    CHECK(aclrtFree(device));
}

PROGRAM(memory_is_set) {
    unsigned char got[8];
    void* device = nullptr;
    CHECK(aclrtMalloc(&device, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemset(device, 8, 0x11, 8));
    CHECK(aclrtMemcpy(got, 8, device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    for (unsigned char byte : got) EXPECT(byte == 0x11);
    CHECK(aclrtFree(device));
}

PROGRAM(pinned_memory_is_copied_late) {
    void *host = nullptr, *device = nullptr;
    Stream stream;
    CHECK(aclrtMallocHost(&host, 64));
    CHECK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    std::memset(host, 7, 64);
    CHECK(aclrtMemcpyAsync(device, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(aclrtMemsetAsync(device, 64, 9, 32, stream));
    CHECK(aclrtMemcpyAsync(host, 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    stream.wait();
    EXPECT(static_cast<char*>(host)[0] == 9 && static_cast<char*>(host)[63] == 7);
    CHECK(aclrtFree(device));
    CHECK(aclrtFreeHost(host));
}

PROGRAM(there_is_less_memory_after_an_allocation) {
    size_t before = 0, after = 0, total = 0;
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
    void* device = nullptr;
    CHECK(aclrtMalloc(&device, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
    EXPECT(before - after >= 1 << 20 && total >= before);
    CHECK(aclrtFree(device));
}

PROGRAM(out_of_memory) {
    void* device = nullptr;
    EXPECT(aclrtMalloc(&device, size_t(1) << 40, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION);
}

PROGRAM(an_event_orders_two_streams) {
    Stream first, second;
    aclrtEvent event = nullptr;
    void* device = nullptr;
    unsigned char got[4];
    CHECK(aclrtCreateEvent(&event));
    CHECK(aclrtMalloc(&device, 4, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(ascendEmulatorSlowStream(first.handle, 2000));
    CHECK(aclrtMemsetAsync(device, 4, 1, 4, first));
    CHECK(aclrtRecordEvent(event, first));
    CHECK(aclrtStreamWaitEvent(second, event));
    CHECK(aclrtMemsetAsync(device, 4, 2, 4, second));
    second.wait();
    CHECK(aclrtMemcpy(got, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(got[0] == 2);
    first.wait();
    CHECK(aclrtFree(device));
    CHECK(aclrtDestroyEvent(event));
}

PROGRAM(events_measure_time) {
    Stream stream;
    aclrtEvent begin = nullptr, end = nullptr;
    CHECK(aclrtCreateEventWithFlag(&begin, ACL_EVENT_TIME_LINE));
    CHECK(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE));
    CHECK(ascendEmulatorSlowStream(stream.handle, 3000));
    CHECK(aclrtRecordEvent(begin, stream));
    CHECK(aclrtRecordEvent(end, stream));
    stream.wait();
    float ms = 0;
    CHECK(aclrtEventElapsedTime(&ms, begin, end));
    EXPECT(ms >= 1);
    CHECK(aclrtDestroyEvent(begin));
    CHECK(aclrtDestroyEvent(end));
}

PROGRAM(a_stream_is_asked) {
    Stream stream;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    stream.wait();
    CHECK(aclrtStreamQuery(stream, &status));
    EXPECT(status == ACL_STREAM_STATUS_COMPLETE);
}

PROGRAM(a_stream_is_destroyed_once) {
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtDestroyStream(stream));
    EXPECT(aclrtDestroyStream(stream) != 0);
    ascendEmulatorClearViolations();
}

PROGRAM(a_function_of_the_host_runs_in_order) {
    Stream stream;
    static std::atomic<int> seen{0};
    CHECK(aclrtLaunchHostFunc(stream, [](void* x) { seen = *static_cast<int*>(x); }, new int(42)));
    stream.wait();
    EXPECT(seen == 42);
}

PROGRAM(a_thread_needs_a_context) {
    int without = 0, with = 0;
    aclrtContext context = nullptr;
    CHECK(aclrtGetCurrentContext(&context));
    std::thread([&] {
        aclrtStream stream = nullptr;
        without = aclrtCreateStream(&stream);
        CHECK(aclrtSetCurrentContext(context));
        with = aclrtCreateStream(&stream);
        CHECK(aclrtDestroyStream(stream));
    }).join();
    EXPECT(without == ACL_ERROR_RT_CONTEXT_NULL && with == 0);
}

PROGRAM(shapes_are_checked_first) {
    Tensor a({2, 3}, ACL_FLOAT), b({4}, ACL_FLOAT), out({2, 3}, ACL_FLOAT);
    EXPECT(phase1_of_add(a.handle, b.handle, out.handle) == ACLNN_ERR_PARAM_INVALID);
    EXPECT(std::strstr(recent(), "broadcast") != nullptr);
}

PROGRAM(null_is_refused) {
    Tensor a({2}, ACL_FLOAT), out({2}, ACL_FLOAT);
    EXPECT(phase1_of_add(a.handle, nullptr, out.handle) == ACLNN_ERR_PARAM_NULLPTR);
}

PROGRAM(a_destroyed_tensor_is_told) {
    Tensor a({2}, ACL_FLOAT), b({2}, ACL_FLOAT), out({2}, ACL_FLOAT);
    aclTensor* gone = b.handle;
    CHECK(aclDestroyTensor(gone));
    b.handle = nullptr;
    EXPECT(phase1_of_add(a.handle, gone, out.handle) != 0);
    ascendEmulatorClearViolations();
}

PROGRAM(an_executor_runs_once) {
    Tensor a({2}, ACL_FLOAT, {0, 1}), out({2}, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnExpGetWorkspaceSize(a.handle, out.handle, &size, &executor));
    CHECK(launch(aclnnExp, size, executor));
    EXPECT(launch(aclnnExp, size, executor) != 0);
    ascendEmulatorClearViolations();
}

PROGRAM(a_repeatable_executor_runs_often) {
    Tensor a({2}, ACL_FLOAT, {0, 1}), b({2}, ACL_FLOAT, {2, 3}), out({2}, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnExpGetWorkspaceSize(a.handle, out.handle, &size, &executor));
    CHECK(aclSetAclOpExecutorRepeatable(executor));
    CHECK(launch(aclnnExp, size, executor));
    CHECK(aclSetInputTensorAddr(executor, 0, a.handle, b.memory));
    CHECK(launch(aclnnExp, size, executor));
    out.print("a_repeatable_executor_runs_often");
    CHECK(aclDestroyAclOpExecutor(executor));
}

PROGRAM(a_size_that_depends_on_data) {
    Tensor x({5}, ACL_INT32, {0, 3, 0, 4, 5}), out({5, 1}, ACL_INT64);
    RUN(aclnnNonzero, x.handle, out.handle);
    int64_t* dims = nullptr;
    uint64_t rank = 0;
    CHECK(aclGetViewShape(out.handle, &dims, &rank));
    EXPECT(rank == 2 && dims[0] == 3 && dims[1] == 1);
    delete[] dims;
}

PROGRAM(a_fault_is_injected) {
    void* device = nullptr;
    CHECK(ascendEmulatorSetFault("aclrtMalloc:2:207001"));
    CHECK(aclrtMalloc(&device, 16, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtFree(device));
    EXPECT(aclrtMalloc(&device, 16, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION);
    ascendEmulatorClearFaults();
}

PROGRAM(a_fault_shows_at_the_next_wait) {
    Tensor a({2}, ACL_FLOAT, {0, 1}), out({2}, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(ascendEmulatorSetFault("aclnnExp:1:507015:async"));
    CHECK(aclnnExpGetWorkspaceSize(a.handle, out.handle, &size, &executor));
    EXPECT(launch(aclnnExp, size, executor) == ACL_ERROR_RT_AICORE_EXCEPTION);
    ascendEmulatorClearFaults();
}

PROGRAM(a_missing_wait_is_seen) {
    Tensor a({2}, ACL_FLOAT, {0, 1}), out({2}, ACL_FLOAT, {7, 7});
    Stream stream;
    CHECK(ascendEmulatorSlowStream(stream.handle, 50000));
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnExpGetWorkspaceSize(a.handle, out.handle, &size, &executor));
    CHECK(aclnnExp(nullptr, 0, executor, stream));
    EXPECT(out.values()[0] == 7);
    stream.wait();
    EXPECT(out.values()[0] == 1);
}

MAIN

PROGRAM(a_buffer_knows_its_address_and_size) {
    int first = 0, second = 0;
    aclDataBuffer* buffer = aclCreateDataBuffer(&first, sizeof first);
    EXPECT(buffer != nullptr);
    EXPECT(aclGetDataBufferAddr(buffer) == &first && aclGetDataBufferSizeV2(buffer) == sizeof first);
    CHECK(aclUpdateDataBuffer(buffer, &second, size_t(5) << 32));
    EXPECT(aclGetDataBufferAddr(buffer) == &second && aclGetDataBufferSizeV2(buffer) == size_t(5) << 32);
    EXPECT(aclGetDataBufferSize(buffer) == 0);
    CHECK(aclDestroyDataBuffer(buffer));
    EXPECT(aclDestroyDataBuffer(buffer) == ACL_ERROR_INVALID_PARAM);
    EXPECT(aclUpdateDataBuffer(buffer, &first, 4) == ACL_ERROR_INVALID_PARAM);
    EXPECT(aclGetDataBufferAddr(buffer) == nullptr && aclGetDataBufferSize(nullptr) == 0);
    EXPECT(aclDestroyDataBuffer(nullptr) == ACL_ERROR_INVALID_PARAM);
}
