// Events. The three queries answer with enums of opposite senses; here is where that happens.
#include "core/events.h"

#include "runtime/runtime.h"

extern "C" {

EMU_API aclError aclrtCreateEvent(aclrtEvent* event) {
    ENTER();
    uint32_t all = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;
    return emu::create_event(event, all, false, __func__);
}

EMU_API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
    ENTER();
    return emu::create_event(event, flag, false, __func__);
}

EMU_API aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
    ENTER();
    return emu::create_event(event, flag, true, __func__);
}

EMU_API aclError aclrtDestroyEvent(aclrtEvent event) { RELEASE(emu::destroy_event(event)); }

EMU_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    ENTER();
    return emu::record_event(event, stream);
}

EMU_API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    ENTER();
    return emu::reset_event(event, stream);
}

EMU_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    ENTER();
    return emu::stream_wait_event(stream, event);
}

EMU_API aclError aclrtQueryEvent(aclrtEvent event, int* status) {
    ENTER();
    REFUSE_NULL(status);
    bool complete = false;
    if (int code = emu::query_event(event, &complete, __func__, true)) return code;
    *status = complete ? 0 : 1;  // COMPLETE 0, NOT_READY 1
    return 0;
}

EMU_API aclError aclrtQueryEventStatus(aclrtEvent event, int* status) {
    ENTER();
    REFUSE_NULL(status);
    bool complete = false;
    if (int code = emu::query_event(event, &complete, __func__, false)) return code;
    *status = complete ? 1 : 0;  // NOT_READY 0, COMPLETE 1
    return 0;
}

EMU_API aclError aclrtQueryEventWaitStatus(aclrtEvent event, int* status) {
    ENTER();
    REFUSE_NULL(status);
    bool complete = false;
    if (int code = emu::query_event_waits(event, &complete)) return code;
    *status = complete ? 0 : 1;  // COMPLETE 0, NOT_READY 1
    return 0;
}

EMU_API aclError aclrtSynchronizeEvent(aclrtEvent event) {
    ENTER();
    return emu::synchronize_event(event, -1, __func__);
}

EMU_API aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    ENTER();
    return emu::synchronize_event(event, timeout, __func__);
}

EMU_API aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    ENTER();
    return emu::event_elapsed(ms, startEvent, endEvent);
}

EMU_API aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
    ENTER();
    return emu::event_timestamp(event, timestamp);
}

EMU_API aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
    ENTER();
    return emu::event_id(event, eventId);
}

}  // extern "C"
