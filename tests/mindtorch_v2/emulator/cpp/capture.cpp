// Programs about graph capture: models, branches, task groups, and what is refused while a stream is captured.
#include "acl/acl_mdl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_nonzero.h"
#include "ascend_emulator.h"
#include "harness.h"

namespace {

constexpr auto GLOBAL = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
constexpr auto RELAXED = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;

struct Event {
    aclrtEvent handle = nullptr;
    explicit Event(uint32_t flags = ACL_EVENT_SYNC) { CHECK(aclrtCreateEventWithFlag(&handle, flags)); }
    ~Event() { CHECK(aclrtDestroyEvent(handle)); }
    operator aclrtEvent() const { return handle; }
};

// Both phases without a wait. The functions used here need no workspace for contiguous tensors.
int add(const Tensor& a, const Tensor& b, const Tensor& out, aclrtStream stream) {
    float one = 1;
    aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnAddGetWorkspaceSize(a.handle, b.handle, alpha, out.handle, &size, &executor));
    EXPECT(size == 0);
    int code = aclnnAdd(nullptr, 0, executor, stream);
    CHECK(aclDestroyScalar(alpha));
    return code;
}

int exponential(const Tensor& a, const Tensor& out, aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnExpGetWorkspaceSize(a.handle, out.handle, &size, &executor));
    EXPECT(size == 0);
    return aclnnExp(nullptr, 0, executor, stream);
}

aclmdlRICaptureStatus status_of(aclrtStream stream) {
    aclmdlRICaptureStatus status;
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureGetInfo(stream, &status, &model));
    EXPECT((model != nullptr) == (status != ACL_MODEL_RI_CAPTURE_STATUS_NONE));
    return status;
}

// Ends a capture that must not have become a model: `code` is why.
void ends_with(aclrtStream stream, int code) {
    EXPECT(status_of(stream) == ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    aclmdlRI model = &code;
    EXPECT(aclmdlRICaptureEnd(stream, &model) == code);
    EXPECT(model == nullptr);
    EXPECT(status_of(stream) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
}

bool says(const char* word, const char* another = "") {
    std::string text = recent();  // asking forgets it
    return text.find(word) != std::string::npos && text.find(another) != std::string::npos;
}

}  // namespace

PROGRAM(a_captured_launch_runs_when_the_model_does) {
    Tensor a({2}, ACL_FLOAT, {1, 2}), sum({2}, ACL_FLOAT, {10, 20});
    Stream stream;
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    EXPECT(status_of(stream) == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    Tensor out({2}, ACL_FLOAT);
    CHECK(add(a, sum, out, stream));
    CHECK(aclrtMemcpyAsync(sum.memory, 8, out.memory, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureEnd(stream, &model));
    EXPECT(status_of(stream) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    stream.wait();
    EXPECT(sum.values()[0] == 10);
    for (int i = 0; i < 3; i++) CHECK(aclmdlRIExecuteAsync(model, stream));
    stream.wait();
    EXPECT(sum.values()[0] == 13 && sum.values()[1] == 26);
    CHECK(aclmdlRIExecute(model, -1));
    CHECK(aclmdlRIExecuteAsync(model, nullptr));
    CHECK(aclrtSynchronizeStream(nullptr));
    EXPECT(sum.values()[0] == 15 && sum.values()[1] == 30);
    CHECK(aclmdlRIDebugPrint(model));
    CHECK(aclmdlRIDestroy(model));
    EXPECT(aclmdlRIExecuteAsync(model, stream) == ACL_ERROR_RT_INVALID_HANDLE);
    ascendEmulatorClearViolations();
}

PROGRAM(a_stream_joins_by_an_event) {
    Tensor a({1}, ACL_FLOAT, {1}), left({1}, ACL_FLOAT, {0}), right({1}, ACL_FLOAT, {0}), out({1}, ACL_FLOAT, {0});
    Stream stream, side;
    Event fork, join;
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    CHECK(aclrtRecordEvent(fork, stream));
    CHECK(aclrtStreamWaitEvent(side, fork));
    EXPECT(status_of(side) == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    CHECK(exponential(a, left, stream));
    CHECK(add(a, a, right, side));
    CHECK(aclrtRecordEvent(join, side));
    CHECK(aclrtStreamWaitEvent(stream, join));
    CHECK(add(left, right, out, stream));
    aclmdlRI model = nullptr;
    EXPECT(aclmdlRICaptureEnd(side, &model) == ACL_ERROR_RT_STREAM_CAPTURED);
    CHECK(aclmdlRICaptureEnd(stream, &model));
    EXPECT(status_of(side) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    for (int i = 0; i < 20; i++) CHECK(aclmdlRIExecuteAsync(model, stream));
    stream.wait();
    EXPECT(out.values()[0] > 4.71 && out.values()[0] < 4.72);
    EXPECT(aclrtSynchronizeEvent(join) == ACL_ERROR_RT_EVENT_CAPTURED);
    EXPECT(aclrtStreamWaitEvent(side, join) == ACL_ERROR_RT_EVENT_CAPTURED);
    CHECK(aclrtRecordEvent(join, side));
    CHECK(aclrtSynchronizeEvent(join));
    CHECK(aclmdlRIDestroy(model));
}

PROGRAM(a_branch_that_nobody_joins) {
    Tensor a({1}, ACL_FLOAT, {1}), out({1}, ACL_FLOAT, {0});
    Stream stream, side;
    Event fork;
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    CHECK(aclrtRecordEvent(fork, stream));
    CHECK(aclrtStreamWaitEvent(side, fork));
    CHECK(exponential(a, out, side));
    aclmdlRI model = nullptr;
    EXPECT(aclmdlRICaptureEnd(stream, &model) == ACL_ERROR_RT_STREAM_UNJOINED);
    EXPECT(model == nullptr);
    side.wait();
}

PROGRAM(an_event_from_outside) {
    Stream stream, side;
    Event event;
    CHECK(aclrtRecordEvent(event, side));
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    EXPECT(aclrtStreamWaitEvent(stream, event) == ACL_ERROR_RT_CAPTURE_DEPENDENCY);
    ends_with(stream, ACL_ERROR_RT_CAPTURE_DEPENDENCY);
}

PROGRAM(the_default_stream_stays_outside) {
    Stream stream;
    Event event;
    EXPECT(aclmdlRICaptureBegin(nullptr, GLOBAL) == ACL_ERROR_RT_PARAM_INVALID);
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    CHECK(aclrtRecordEvent(event, stream));
    EXPECT(aclrtStreamWaitEvent(nullptr, event) == ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
    ends_with(stream, ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
}

PROGRAM(a_captured_stream_is_not_waited_for) {
    Tensor x({2}, ACL_INT32, {0, 3}), out({2, 1}, ACL_INT64);
    Stream stream, side;
    aclrtStreamStatus idle;
    Event event;
    aclrtEventRecordedStatus recorded;
    const std::vector<std::pair<int, std::function<int()>>> calls = {
        {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtSynchronizeStream(stream); }},
        {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtSynchronizeStreamWithTimeout(stream, 10); }},
        {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtSynchronizeDevice(); }},
        {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtStreamQuery(stream, &idle); }},
        {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtStreamAbort(stream); }},
        {ACL_ERROR_RT_STREAM_CAPTURED, [&] { return aclrtDestroyStream(stream); }},
        {ACL_ERROR_RT_EVENT_CAPTURED, [&] { return aclrtQueryEventStatus(event, &recorded); }},
        {ACL_ERROR_RT_EVENT_CAPTURED, [&] { return aclrtSynchronizeEvent(event); }},
        {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, [&] { return aclrtMemset(x.memory, 8, 0, 8); }},
        {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
         [&] { return aclrtMemcpy(out.memory, 8, x.memory, 8, ACL_MEMCPY_DEVICE_TO_DEVICE); }},
    };
    for (const auto& [code, call] : calls) {
        CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
        CHECK(aclrtRecordEvent(event, stream));
        EXPECT(call() == code);
        EXPECT(aclrtMemsetAsync(x.memory, 8, 0, 8, stream) == code);  // refused with the same reason
        EXPECT(says("invalid since"));
        ends_with(stream, code);
    }
    char pageable[8];
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    EXPECT(aclrtMemcpyAsync(pageable, 8, x.memory, 8, ACL_MEMCPY_DEVICE_TO_HOST, stream) ==
           ACL_ERROR_RT_STREAM_CAPTURED);
    ends_with(stream, ACL_ERROR_RT_STREAM_CAPTURED);
}

PROGRAM(a_size_from_data_is_not_captured) {
    Tensor x({3}, ACL_INT32, {0, 3, 4}), out({3, 1}, ACL_INT64);
    Stream stream;
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnNonzeroGetWorkspaceSize(x.handle, out.handle, &size, &executor));
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    void* workspace = nullptr;
    if (size) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT(aclnnNonzero(workspace, size, executor, stream) == ACL_ERROR_RT_STREAM_CAPTURED);
    ends_with(stream, ACL_ERROR_RT_STREAM_CAPTURED);
    if (workspace) CHECK(aclrtFree(workspace));
}

PROGRAM(a_mode_says_what_is_unsafe) {
    Tensor x({2}, ACL_INT32, {0, 3});
    Stream stream;
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, RELAXED));
    CHECK(aclrtMemset(x.memory, 8, 0, 8));
    CHECK(aclmdlRICaptureEnd(stream, &model));
    CHECK(aclmdlRIDestroy(model));
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    aclmdlRICaptureMode mode = RELAXED;
    CHECK(aclmdlRICaptureThreadExchangeMode(&mode));
    EXPECT(mode == GLOBAL);
    CHECK(aclrtMemset(x.memory, 8, 0, 8));
    CHECK(aclmdlRICaptureThreadExchangeMode(&mode));
    EXPECT(mode == RELAXED);
    CHECK(aclmdlRICaptureEnd(stream, &model));
    CHECK(aclmdlRIDestroy(model));
}

PROGRAM(wrong_order_of_calls) {
    Stream stream;
    aclmdlRI model = nullptr;
    EXPECT(aclmdlRICaptureEnd(stream, &model) == ACL_ERROR_RT_STREAM_NOT_CAPTURED);
    EXPECT(aclmdlRICaptureBegin(stream, static_cast<aclmdlRICaptureMode>(7)) == ACL_ERROR_INVALID_PARAM);
    EXPECT(aclmdlRICaptureTaskGrpBegin(stream) == ACL_ERROR_RT_STREAM_NOT_CAPTURED);
    EXPECT(aclmdlRICaptureTaskUpdateEnd(stream) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    EXPECT(aclmdlRICaptureBegin(stream, GLOBAL) == ACL_ERROR_RT_STREAM_CAPTURED);
    aclmdlRICaptureStatus status;
    CHECK(aclmdlRICaptureGetInfo(stream, &status, &model));
    EXPECT(aclmdlRIExecuteAsync(model, nullptr) == ACL_ERROR_RT_MODEL_CAPTURED);
    EXPECT(aclmdlRIDestroy(model) == ACL_ERROR_RT_MODEL_CAPTURED);
    CHECK(aclmdlRICaptureEnd(stream, &model));
    EXPECT(aclmdlRIExecute(model, 0) == ACL_ERROR_INVALID_PARAM);
    CHECK(aclmdlRIDestroy(model));
    EXPECT(aclmdlRIDestroy(nullptr) == ACL_ERROR_INVALID_PARAM);
}

PROGRAM(a_task_group_is_updated) {
    Tensor a({1}, ACL_FLOAT, {1}), b({1}, ACL_FLOAT, {2}), c({1}, ACL_FLOAT, {30}), out({1}, ACL_FLOAT, {0});
    Stream stream, other;
    aclmdlRI model = nullptr;
    aclrtTaskGrp group = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    CHECK(aclmdlRICaptureTaskGrpBegin(stream));
    EXPECT(aclmdlRICaptureTaskGrpBegin(stream) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK(add(a, b, out, stream));
    CHECK(aclmdlRICaptureTaskGrpEnd(stream, &group));
    EXPECT(aclmdlRICaptureTaskGrpEnd(stream, &group) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK(aclmdlRICaptureEnd(stream, &model));
    CHECK(aclmdlRIExecute(model, -1));
    EXPECT(out.values()[0] == 3);
    CHECK(aclmdlRICaptureTaskUpdateBegin(other, group));
    EXPECT(aclmdlRICaptureTaskUpdateBegin(other, group) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK(add(a, c, out, other));
    CHECK(aclmdlRICaptureTaskUpdateEnd(other));
    other.wait();
    EXPECT(out.values()[0] == 3);
    CHECK(aclmdlRIExecute(model, -1));
    EXPECT(out.values()[0] == 31);
    CHECK(aclmdlRICaptureTaskUpdateBegin(other, group));
    CHECK(exponential(a, out, other));
    EXPECT(aclmdlRICaptureTaskUpdateEnd(other) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    EXPECT(says("aclnnAdd", "aclnnExp"));
    CHECK(aclmdlRICaptureTaskUpdateBegin(other, group));
    EXPECT(aclmdlRICaptureTaskUpdateEnd(other) == ACL_ERROR_STREAM_TASK_GROUP_STATUS);
    CHECK(aclmdlRIDestroy(model));
    EXPECT(aclmdlRICaptureTaskUpdateBegin(other, group) == ACL_ERROR_RT_INVALID_HANDLE);
    ascendEmulatorClearViolations();
}

PROGRAM(an_event_of_the_outside_holds_a_model) {
    Tensor a({1}, ACL_FLOAT, {1}), b({1}, ACL_FLOAT, {2}), c({1}, ACL_FLOAT, {30}), out({1}, ACL_FLOAT, {0});
    Stream stream, other;
    Event ready(ACL_EVENT_EXTERNAL);
    aclmdlRI model = nullptr;
    aclrtTaskGrp group = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    CHECK(aclrtStreamWaitEvent(stream, ready));
    CHECK(aclrtResetEvent(ready, stream));
    CHECK(aclmdlRICaptureTaskGrpBegin(stream));
    CHECK(add(a, b, out, stream));
    CHECK(aclmdlRICaptureTaskGrpEnd(stream, &group));
    CHECK(aclmdlRICaptureEnd(stream, &model));
    for (int i = 0; i < 3; i++) {
        CHECK(aclmdlRIExecuteAsync(model, stream));
        CHECK(aclmdlRICaptureTaskUpdateBegin(other, group));
        CHECK(add(c, i % 2 ? a : b, out, other));
        CHECK(aclmdlRICaptureTaskUpdateEnd(other));
        EXPECT(aclrtSynchronizeStreamWithTimeout(stream, 5) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
        EXPECT(aclmdlRIDestroy(model) == ACL_ERROR_RT_PARAM_INVALID);
        CHECK(aclrtRecordEvent(ready, other));
        stream.wait();
        EXPECT(out.values()[0] == (i % 2 ? 31 : 32));
    }
    CHECK(aclmdlRIDestroy(model));
    ascendEmulatorClearViolations();
}

PROGRAM(a_task_of_a_model_fails) {
    Tensor a({1}, ACL_FLOAT, {1}), out({1}, ACL_FLOAT, {0});
    Stream stream, side;
    Event fork, join;
    aclmdlRI model = nullptr;
    CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
    CHECK(aclrtRecordEvent(fork, stream));
    CHECK(aclrtStreamWaitEvent(side, fork));
    CHECK(ascendEmulatorSetFault("aclnnExp:1:507015:async"));
    CHECK(exponential(a, out, side));
    CHECK(aclrtRecordEvent(join, side));
    CHECK(aclrtStreamWaitEvent(stream, join));
    CHECK(aclmdlRICaptureEnd(stream, &model));
    CHECK(aclmdlRIExecuteAsync(model, stream));
    EXPECT(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_AICORE_EXCEPTION);
    EXPECT(says("aclnnExp"));
    EXPECT(aclmdlRIExecute(model, 1000) == ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK(aclmdlRIDestroy(model));
    ascendEmulatorClearFaults();
}

PROGRAM(memory_freed_before_the_run) {
    Tensor a({1}, ACL_FLOAT, {1});
    Stream stream;
    aclmdlRI model = nullptr;
    {
        Tensor out({1}, ACL_FLOAT, {0});
        CHECK(aclmdlRICaptureBegin(stream, GLOBAL));
        CHECK(exponential(a, out, stream));
        CHECK(aclmdlRICaptureEnd(stream, &model));
    }
    CHECK(aclmdlRIExecuteAsync(model, stream));
    EXPECT(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_AICORE_EXCEPTION);
    EXPECT(says("freed"));
    CHECK(aclmdlRIDestroy(model));
    ascendEmulatorClearViolations();
}

MAIN
