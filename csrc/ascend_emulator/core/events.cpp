// Events: record, wait, query, measure.
#include "events.h"

#include <chrono>

#include "capture.h"
#include "codes.h"
#include "handles.h"
#include "state.h"
#include "streams.h"

namespace emu {

namespace {

struct Event {
    uint32_t flags = 0;
    bool extended = false;
    int device = 0;
    uint32_t id = 0;
    std::atomic<int> waits{0};   // queued aclrtStreamWaitEvent that have not come to an end
    std::mutex lock;             // guards what follows
    std::shared_ptr<Mark> mark;  // the last record; null: never recorded, or reset

    std::shared_ptr<Mark> last() {
        std::lock_guard<std::mutex> guard(lock);
        return mark;
    }
};

std::atomic<uint32_t> next_id{0};

int find_event(void* handle, const char* by, std::shared_ptr<Event>* event) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: event is NULL", by);
    *event = handles().find<Event>(Kind::event, handle, by);
    return *event == nullptr ? finish(ACL_ERROR_RT_INVALID_HANDLE) : 0;
}

int refuse_extended(const Event& event, const char* by) {
    if (!event.extended) return 0;
    violation("extended-event", "%s was called with an event of aclrtCreateEventExWithFlag", by);
    return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: events of aclrtCreateEventExWithFlag must not be used here", by);
}

// The time of a passed mark, or the code that says why there is none.
int time_of(void* handle, const char* by, uint64_t* nanos) {
    std::shared_ptr<Event> event;
    if (int code = find_event(handle, by, &event)) return code;
    if ((event->flags & ACL_EVENT_TIME_LINE) == 0) {
        return reject(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "%s: the event was made without ACL_EVENT_TIME_LINE", by);
    }
    std::shared_ptr<Mark> mark = event->last();
    if (mark == nullptr) return reject(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "%s: the event was never recorded", by);
    if (int code = refuse_passage(mark->captured, by)) return code;
    std::lock_guard<std::mutex> guard(mark->lock);
    if (!mark->passed) return reject(ACL_ERROR_RT_EVENT_NOT_COMPLETE, "%s: the event is not complete", by);
    *nanos = mark->nanos;
    return 0;
}

// An event made for the outside of captures: a captured record, wait or reset of it happens anew in each run.
bool lives_outside(const Event& event, const Stream& stream) {
    return (event.flags & ACL_EVENT_EXTERNAL) != 0 && is_captured(stream);
}

void set_mark(Event& event, std::shared_ptr<Mark> mark) {
    std::lock_guard<std::mutex> guard(event.lock);
    event.mark = std::move(mark);
}

Task outside_record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
    Task task;
    task.name = "aclrtRecordEvent";
    task.run = [event, where = std::weak_ptr<Stream>(stream)] {
        auto mark = std::make_shared<Mark>();
        mark->stream = where;
        mark->pass();
        set_mark(*event, std::move(mark));
    };
    return task;
}

Task outside_wait(const std::shared_ptr<Event>& event) {
    Task task;
    task.name = "aclrtStreamWaitEvent";
    task.run = [event] {
        for (;;) {  // for a record that may still be to come
            std::shared_ptr<Mark> mark = event->last();
            if (worker_abandoned() || (mark != nullptr && mark->is_passed())) return;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    };
    return task;
}

}  // namespace

void Mark::pass() {
    {
        std::lock_guard<std::mutex> guard(lock);
        auto now = std::chrono::steady_clock::now().time_since_epoch();
        nanos = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
        passed = true;
    }
    passed_cv.notify_all();
}

bool Mark::is_passed() {
    std::lock_guard<std::mutex> guard(lock);
    return passed;
}

// Short sleeps, because whoever gives up has no way to wake us.
bool Mark::wait(const std::atomic<bool>& give_up) {
    std::unique_lock<std::mutex> guard(lock);
    while (!passed) {
        if (give_up.load()) return false;
        passed_cv.wait_for(guard, std::chrono::milliseconds(2));
    }
    return true;
}

int create_event(void** handle, uint32_t flags, bool extended, const char* by) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: event is NULL", by);
    if ((flags & ~ACL_EVENT_ALL_FLAGS) != 0 || flags == 0) {
        return reject(ACL_ERROR_INVALID_PARAM,
                      "%s: flags 0x%x are none of SYNC 1, CAPTURE_STREAM_PROGRESS 2, TIME_LINE 8, "
                      "DEVICE_USE_ONLY 0x10, EXTERNAL 0x20, IPC 0x40",
                      by, flags);
    }
    if (int code = require_context()) return code;
    if (handles().live_count(Kind::event) >= chip_profile().max_events) {
        return reject(ACL_ERROR_RT_NO_EVENT_RESOURCE, "%s: at most %llu events on this chip", by,
                      static_cast<unsigned long long>(chip_profile().max_events));
    }
    auto event = std::make_shared<Event>();
    event->flags = flags;
    event->extended = extended;
    event->device = current_context()->device;
    event->id = next_id.fetch_add(1);
    *handle = handles().create(Kind::event, by, event);
    return *handle == nullptr ? finish(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL) : 0;
}

int destroy_event(void* handle) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtDestroyEvent: event is NULL");
    int code = require_context();
    if (code != 0 && code != ACL_ERROR_RT_LOST_HEARTBEAT) return code;
    if (handles().destroy<Event>(Kind::event, handle, "aclrtDestroyEvent") == nullptr) {
        return finish(ACL_ERROR_RT_INVALID_HANDLE);
    }
    return code;
}

int record_event(void* handle, void* stream) {
    const char* by = "aclrtRecordEvent";
    std::shared_ptr<Event> event;
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    if (int code = find_event(handle, by, &event)) return code;
    if (event->device != where->device) {
        return reject(ACL_ERROR_RT_STREAM_CONTEXT, "%s: the event is of device %d, the stream of device %d", by,
                      event->device, where->device);
    }
    if (lives_outside(*event, *where)) return launch(stream, outside_record(event, where));
    auto mark = std::make_shared<Mark>();
    mark->stream = where;
    int code = 0;
    mark->captured = capture_record(*where, &code);
    if (code != 0) return code;
    set_mark(*event, mark);
    if (mark->captured != nullptr) return 0;
    Task task;
    task.name = by;
    task.run = [mark] { mark->pass(); };
    where->push(std::move(task), [mark] { mark->pass(); }, &mark->number);
    return 0;
}

int reset_event(void* handle, void* stream) {
    const char* by = "aclrtResetEvent";
    std::shared_ptr<Event> event;
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    if (int code = find_event(handle, by, &event)) return code;
    if (int code = refuse_extended(*event, by)) return code;
    Task task;
    task.name = by;
    if (lives_outside(*event, *where)) {
        task.run = [event] { set_mark(*event, nullptr); };
        return launch(stream, std::move(task));
    }
    std::shared_ptr<Mark> mark = event->last();
    if (mark != nullptr && mark->captured != nullptr) {  // in the order of the client's calls: nothing runs yet
        set_mark(*event, nullptr);
        return 0;
    }
    if (int code = refuse_captured(*where, by)) return code;
    task.run = [event, mark] {
        std::lock_guard<std::mutex> guard(event->lock);
        if (event->mark == mark) event->mark = nullptr;
    };
    where->push(std::move(task));
    return 0;
}

int stream_wait_event(void* stream, void* handle) {
    const char* by = "aclrtStreamWaitEvent";
    std::shared_ptr<Event> event;
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    if (int code = find_event(handle, by, &event)) return code;
    if ((event->flags & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL)) == 0) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: the event was made without ACL_EVENT_SYNC", by);
    }
    if (lives_outside(*event, *where)) return launch(stream, outside_wait(event));
    std::shared_ptr<Mark> mark = event->last();
    int code = 0;
    if (capture_wait(where, mark == nullptr ? nullptr : mark->captured, &code)) return code;
    if (mark == nullptr) {
        if (event->extended) return 0;
        violation("wait-before-record", "%s waits for an event that was never recorded", by);
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: the event was never recorded", by);
    }
    event->waits.fetch_add(1);
    Task task;
    task.name = by;
    Stream* waiting = where.get();  // a stream outlives its tasks
    task.run = [event, mark, waiting] {
        mark->wait(waiting->abandoned);
        event->waits.fetch_sub(1);
    };
    where->push(std::move(task), [event] { event->waits.fetch_sub(1); });
    return 0;
}

int query_event(void* handle, bool* complete, const char* by, bool plain_only) {
    if (complete == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: status is NULL", by);
    if (int code = require_context()) return code;
    std::shared_ptr<Event> event;
    if (int code = find_event(handle, by, &event)) return code;
    if (plain_only) {
        if (int code = refuse_extended(*event, by)) return code;
    }
    std::shared_ptr<Mark> mark = event->last();
    if (mark != nullptr) {
        if (int code = refuse_passage(mark->captured, by)) return code;
    }
    *complete = mark == nullptr ? event->extended : mark->is_passed();
    return 0;
}

int query_event_waits(void* handle, bool* complete) {
    const char* by = "aclrtQueryEventWaitStatus";
    if (int code = require_context()) return code;
    std::shared_ptr<Event> event;
    if (int code = find_event(handle, by, &event)) return code;
    if (int code = refuse_extended(*event, by)) return code;
    *complete = event->waits.load() == 0;
    return 0;
}

int synchronize_event(void* handle, int timeout, const char* by) {
    if (timeout < -1) return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: timeout is -1 or more, got %d", by, timeout);
    if (int code = require_context()) return code;
    std::shared_ptr<Event> event;
    if (int code = find_event(handle, by, &event)) return code;
    std::shared_ptr<Mark> mark = event->last();
    if (mark == nullptr) {
        if (event->extended) return 0;
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: the event was never recorded; hardware would wait for ever", by);
    }
    if (int code = refuse_passage(mark->captured, by)) return code;
    {
        std::unique_lock<std::mutex> guard(mark->lock);
        auto over = [&mark] { return mark->passed; };
        if (timeout < 0) {
            mark->passed_cv.wait(guard, over);
        } else if (!mark->passed_cv.wait_for(guard, std::chrono::milliseconds(timeout), over)) {
            return reject(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "%s: not complete after %d ms", by, timeout);
        }
    }
    if (device_lost(event->device)) {
        return reject(ACL_ERROR_RT_LOST_HEARTBEAT, "%s: device %d is lost (no heartbeat)", by, event->device);
    }
    std::shared_ptr<Stream> stream = mark->stream.lock();
    return stream == nullptr ? 0 : stream->take_failure(mark->number.load());
}

int event_elapsed(float* ms, void* start, void* end) {
    const char* by = "aclrtEventElapsedTime";
    if (ms == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: ms is NULL", by);
    if (int code = require_context()) return code;
    uint64_t from = 0, to = 0;
    if (int code = time_of(start, by, &from)) return code;
    if (int code = time_of(end, by, &to)) return code;
    if (to < from) {
        return reject(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "%s: the end event passed before the start event", by);
    }
    *ms = static_cast<float>(static_cast<double>(to - from) * 1e-6);
    return 0;
}

int event_timestamp(void* handle, uint64_t* micros) {
    const char* by = "aclrtEventGetTimestamp";
    if (micros == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: timestamp is NULL", by);
    if (int code = require_context()) return code;
    uint64_t nanos = 0;
    if (int code = time_of(handle, by, &nanos)) return code;
    *micros = nanos / 1000;
    return 0;
}

int event_id(void* handle, uint32_t* id) {
    if (id == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtGetEventId: eventId is NULL");
    std::shared_ptr<Event> event;
    if (int code = find_event(handle, "aclrtGetEventId", &event)) return code;
    *id = event->id;
    return 0;
}

}  // namespace emu
