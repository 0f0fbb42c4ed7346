// What becomes of launches, records and waits while a stream is captured; which calls are refused meanwhile.
#include "capture.h"

#include <algorithm>
#include <thread>

#include "codes.h"
#include "handles.h"
#include "state.h"

namespace emu {

struct Group {
    std::weak_ptr<Model> model;
    std::vector<std::shared_ptr<Slot>> slots;
};

struct Capture {
    std::shared_ptr<Model> model;
    void* handle = nullptr;  // of the model
    CaptureMode mode = CaptureMode::global;
    std::thread::id thread;
    std::vector<Stream*> members;                // by branch; a stream leaves the capture before it goes
    std::vector<Clock> reached;                  // by branch: what its next task comes after
    std::vector<std::shared_ptr<Group>> groups;  // by branch: the open one
    int broken = 0;
    std::string why;

    void invalidate(int code, const std::string& text) {
        if (broken != 0) return;
        broken = code;
        why = text;
    }
};

// What a stream's launches become: nodes of a capture, or the tasks of an update.
struct Diversion {
    std::shared_ptr<Capture> capture;
    size_t branch = 0;
    std::shared_ptr<Group> group;  // of an update
    std::vector<Task> tasks;
};

namespace {

struct Captures {
    std::mutex lock;  // guards every capture and every stream's diversion
    std::vector<std::shared_ptr<Capture>> active;
    std::atomic<size_t> count{0};
};

Captures& captures() {
    static Captures* all = new Captures;  // streams may go after static objects have gone
    return *all;
}

thread_local CaptureMode this_mode = CaptureMode::global;

const std::shared_ptr<Capture>& capture_of(const Stream& stream) {
    static const std::shared_ptr<Capture> none;
    return stream.diversion == nullptr ? none : stream.diversion->capture;
}

int refuse_broken(const Capture& capture, const char* by) {
    return reject(capture.broken, "%s: the capture is invalid since %s", by, capture.why.c_str());
}

// The valid capture that a stream is part of.
int find_capture(const Stream& stream, const char* by, std::shared_ptr<Capture>* capture) {
    *capture = capture_of(stream);
    if (*capture == nullptr) {
        return reject(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "%s: stream %d is not captured", by, stream.id);
    }
    return (*capture)->broken != 0 ? refuse_broken(**capture, by) : 0;
}

void set_diversion(Stream& stream, std::shared_ptr<Diversion> diversion) {
    stream.diverted.store(diversion != nullptr, std::memory_order_release);
    stream.diversion = std::move(diversion);
}

void leave(const std::shared_ptr<Capture>& capture) {
    Captures& all = captures();
    for (Stream* member : capture->members) set_diversion(*member, nullptr);
    capture->members.clear();
    {
        std::lock_guard<std::mutex> guard(capture->model->lock);
        capture->model->capturing = false;
    }
    all.active.erase(std::remove(all.active.begin(), all.active.end(), capture), all.active.end());
    all.count.store(all.active.size());
}

int refuse_locked(Stream& stream, const char* by) {
    const auto& capture = capture_of(stream);
    if (capture == nullptr) return 0;
    capture->invalidate(ACL_ERROR_RT_STREAM_CAPTURED, std::string(by) + " was called for a stream that is captured");
    return reject(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %d is being captured; the capture is invalid now", by,
                  stream.id);
}

void join(const std::shared_ptr<Capture>& capture, Stream& stream) {
    auto diversion = std::make_shared<Diversion>();
    diversion->capture = capture;
    diversion->branch = capture->members.size();
    capture->members.push_back(&stream);
    capture->reached.emplace_back();
    capture->groups.emplace_back();
    capture->model->branches = capture->members.size();
    set_diversion(stream, std::move(diversion));
}

void add_task(Capture& capture, size_t branch, Task& task) {
    auto slot = std::make_shared<Slot>();
    slot->task = std::make_shared<const Task>(std::move(task));
    if (capture.groups[branch] != nullptr) capture.groups[branch]->slots.push_back(slot);
    capture.model->nodes.push_back(Node{Node::task, branch, slot});
    capture.reached[branch][branch]++;
}

// "" or what was not joined: every task must come before the end of the first stream.
std::string unjoined(const Capture& capture) {
    for (size_t branch = 1; branch < capture.members.size(); branch++) {
        auto own = capture.reached[branch].find(branch);
        if (own == capture.reached[branch].end()) continue;
        auto seen = capture.reached[0].find(branch);
        if (seen == capture.reached[0].end() || seen->second < own->second) {
            return "stream " + std::to_string(capture.members[branch]->id) +
                   " has tasks that no event leads back to the stream where the capture began";
        }
    }
    return "";
}

// Why a capture cannot end here; 0 when it can.
int check_end(const std::shared_ptr<Capture>& capture, size_t branch, const Stream& stream, const char* by) {
    if (branch != 0) {
        return reject(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %d joined the capture that stream %d began", by,
                      stream.id, capture->members[0]->id);
    }
    if (capture->mode != CaptureMode::relaxed && capture->thread != std::this_thread::get_id()) {
        return reject(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "%s: only a RELAXED capture may end on another thread",
                      by);
    }
    return 0;
}

}  // namespace

// -- what streams, events and copies ask -----------------------------------------------------------------------------

bool divert(const std::shared_ptr<Stream>& stream, Task& task, int* code) {
    std::lock_guard<std::mutex> guard(captures().lock);
    if (stream->diversion == nullptr) return false;
    *code = 0;
    Diversion& to = *stream->diversion;
    if (to.capture == nullptr) to.tasks.push_back(std::move(task));
    else if (to.capture->broken != 0) *code = refuse_broken(*to.capture, task.name.c_str());
    else add_task(*to.capture, to.branch, task);
    return true;
}

int refuse_captured(Stream& stream, const char* by) {
    if (!stream.diverted.load(std::memory_order_acquire)) return 0;
    std::lock_guard<std::mutex> guard(captures().lock);
    return refuse_locked(stream, by);
}

int refuse_captured_device(int device, const char* by) {
    if (captures().count.load() == 0) return 0;
    for (const auto& stream : streams_of(nullptr, device)) {
        if (int code = refuse_captured(*stream, by)) return code;
    }
    return 0;
}

int refuse_unsafe(const char* by) {
    Captures& all = captures();
    if (all.count.load() == 0 || this_mode == CaptureMode::relaxed) return 0;
    std::lock_guard<std::mutex> guard(all.lock);
    for (const auto& capture : all.active) {
        bool mine = capture->thread == std::this_thread::get_id();
        bool forbidden = capture->mode == CaptureMode::global ? mine || this_mode == CaptureMode::global
                                                              : mine && capture->mode == CaptureMode::of_thread;
        if (!forbidden) continue;
        capture->invalidate(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, std::string(by) + " was called meanwhile");
        return reject(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                      "%s: not while stream %d is captured in mode %s; the capture is invalid now", by,
                      capture->members[0]->id, capture->mode == CaptureMode::global ? "GLOBAL" : "THREAD_LOCAL");
    }
    return 0;
}

bool is_captured(const Stream& stream) {
    if (!stream.diverted.load(std::memory_order_acquire)) return false;
    std::lock_guard<std::mutex> guard(captures().lock);
    return capture_of(stream) != nullptr;
}

std::shared_ptr<Passage> capture_record(Stream& stream, int* code) {
    *code = 0;
    if (!stream.diverted.load(std::memory_order_acquire)) return nullptr;
    std::lock_guard<std::mutex> guard(captures().lock);
    const auto& capture = capture_of(stream);
    if (capture == nullptr) return nullptr;
    if (capture->broken != 0) {
        *code = refuse_broken(*capture, "aclrtRecordEvent");
        return nullptr;
    }
    size_t branch = stream.diversion->branch;
    auto passage = std::make_shared<Passage>();
    passage->capture = capture;
    passage->mark = capture->model->marks++;
    passage->after = capture->reached[branch];
    capture->model->nodes.push_back(Node{Node::record, branch, nullptr, passage->mark});
    return passage;
}

bool capture_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Passage>& passage, int* code) {
    const char* by = "aclrtStreamWaitEvent";
    *code = 0;
    if (passage == nullptr && !stream->diverted.load(std::memory_order_acquire)) return false;
    std::lock_guard<std::mutex> guard(captures().lock);
    std::shared_ptr<Capture> here = capture_of(*stream);
    std::shared_ptr<Capture> there = passage == nullptr ? nullptr : passage->capture.lock();
    if (passage == nullptr && here == nullptr) return false;
    auto fail = [&](int why, const char* text) {
        for (const auto& capture : {here, there}) {
            if (capture != nullptr) capture->invalidate(why, std::string(by) + ": " + text);
        }
        *code = reject(why, "%s: %s", by, text);
        return true;
    };
    if (passage == nullptr) {
        return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY, "a captured stream waits for an event that was not captured");
    }
    if (there == nullptr || there->members.empty()) {
        return fail(ACL_ERROR_RT_EVENT_CAPTURED, "the event was recorded in a capture that is over; record it anew");
    }
    if (there->broken != 0) {
        *code = refuse_broken(*there, by);
        return true;
    }
    if (here != nullptr && here != there) {
        return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY, "the event is of another capture than the stream's");
    }
    if (here == nullptr) {
        if (stream->diversion != nullptr) {
            return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a stream that updates a task group cannot join a capture");
        }
        if (stream->is_default) {
            return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "the default stream cannot join a capture");
        }
        join(there, *stream);
    }
    size_t branch = stream->diversion->branch;
    for (const auto& [other, tasks] : passage->after) {
        uint64_t& reached = there->reached[branch][other];
        reached = std::max(reached, tasks);
    }
    there->model->nodes.push_back(Node{Node::wait, branch, nullptr, passage->mark});
    return true;
}

int refuse_passage(const std::shared_ptr<Passage>& passage, const char* by) {
    if (passage == nullptr) return 0;
    std::lock_guard<std::mutex> guard(captures().lock);
    if (std::shared_ptr<Capture> capture = passage->capture.lock()) {
        capture->invalidate(ACL_ERROR_RT_EVENT_CAPTURED, std::string(by) + " was called for a captured event");
    }
    return reject(ACL_ERROR_RT_EVENT_CAPTURED, "%s: the event was recorded in a capture, not on the device", by);
}

void forget_capture(Stream& stream) {
    if (!stream.diverted.load(std::memory_order_acquire)) return;
    std::lock_guard<std::mutex> guard(captures().lock);
    if (std::shared_ptr<Capture> capture = capture_of(stream)) leave(capture);
    else set_diversion(stream, nullptr);
}

// -- the functions behind aclmdlRICapture* ---------------------------------------------------------------------------

int begin_capture(void* handle, int mode) {
    const char* by = "aclmdlRICaptureBegin";
    if (mode < 0 || mode > 2) return reject(ACL_ERROR_INVALID_PARAM, "%s: no mode %d", by, mode);
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    if (stream->is_default) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: the default stream cannot be captured", by);
    }
    Captures& all = captures();
    std::lock_guard<std::mutex> guard(all.lock);
    if (stream->diversion != nullptr) {
        return reject(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %d is being captured or updates a task group", by,
                      stream->id);
    }
    auto capture = std::make_shared<Capture>();
    capture->model = std::make_shared<Model>(stream->context);
    capture->handle = handles().create(Kind::model, by, capture->model);
    if (capture->handle == nullptr) return finish(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    capture->mode = static_cast<CaptureMode>(mode);
    capture->thread = std::this_thread::get_id();
    join(capture, *stream);
    all.active.push_back(capture);
    all.count.store(all.active.size());
    return 0;
}

int capture_info(void* handle, int* status, void** model) {
    const char* by = "aclmdlRICaptureGetInfo";
    if (status == nullptr || model == nullptr) {
        return reject(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", by, status == nullptr ? "status" : "modelRI");
    }
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    std::lock_guard<std::mutex> guard(captures().lock);
    const auto& capture = capture_of(*stream);
    CaptureStatus answer = CaptureStatus::none;
    if (capture != nullptr) answer = capture->broken != 0 ? CaptureStatus::invalidated : CaptureStatus::active;
    *status = static_cast<int>(answer);
    *model = capture == nullptr ? nullptr : capture->handle;
    return 0;
}

int end_capture(void* handle, void** model) {
    const char* by = "aclmdlRICaptureEnd";
    if (model == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: modelRI is NULL", by);
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    std::shared_ptr<Capture> capture;
    {
        std::lock_guard<std::mutex> guard(captures().lock);
        capture = capture_of(*stream);
        if (capture == nullptr) {
            return reject(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "%s: stream %d is not captured", by, stream->id);
        }
        if (int code = check_end(capture, stream->diversion->branch, *stream, by)) return code;
        *model = nullptr;
        std::string loose = unjoined(*capture);
        if (!loose.empty()) capture->invalidate(ACL_ERROR_RT_STREAM_UNJOINED, loose);
        bool open =
            std::any_of(capture->groups.begin(), capture->groups.end(), [](const auto& g) { return g != nullptr; });
        if (open) capture->invalidate(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a task group was not ended");
        leave(capture);
    }
    if (capture->broken != 0) {
        destroy_model(capture->handle);
        return refuse_broken(*capture, by);
    }
    *model = capture->handle;
    return 0;
}

int exchange_mode(int* mode) {
    const char* by = "aclmdlRICaptureThreadExchangeMode";
    if (mode == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: mode is NULL", by);
    if (*mode < 0 || *mode > 2) return reject(ACL_ERROR_INVALID_PARAM, "%s: no mode %d", by, *mode);
    CaptureMode before = this_mode;
    this_mode = static_cast<CaptureMode>(*mode);
    *mode = static_cast<int>(before);
    return 0;
}

// -- task groups -----------------------------------------------------------------------------------------------------

int begin_group(void* handle) {
    const char* by = "aclmdlRICaptureTaskGrpBegin";
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    std::lock_guard<std::mutex> guard(captures().lock);
    std::shared_ptr<Capture> capture;
    if (int code = find_capture(*stream, by, &capture)) return code;
    auto& open = capture->groups[stream->diversion->branch];
    if (open != nullptr) return reject(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: a task group is open already", by);
    open = std::make_shared<Group>();
    open->model = capture->model;
    return 0;
}

int end_group(void* handle, void** group) {
    const char* by = "aclmdlRICaptureTaskGrpEnd";
    if (group == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", by);
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    std::lock_guard<std::mutex> guard(captures().lock);
    std::shared_ptr<Capture> capture;
    if (int code = find_capture(*stream, by, &capture)) return code;
    auto& open = capture->groups[stream->diversion->branch];
    if (open == nullptr) return reject(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: no task group is open", by);
    void* made = handles().create(Kind::task_group, by, open, true);
    if (made == nullptr) return finish(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
    capture->model->groups.push_back(made);
    open = nullptr;
    *group = made;
    return 0;
}

int begin_update(void* handle, void* group) {
    const char* by = "aclmdlRICaptureTaskUpdateBegin";
    if (group == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL", by);
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    std::shared_ptr<Group> found = handles().find<Group>(Kind::task_group, group, by);
    if (found == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    std::lock_guard<std::mutex> guard(captures().lock);
    if (int code = refuse_locked(*stream, by)) return code;
    if (stream->diversion != nullptr) {
        return reject(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %d updates a task group already", by, stream->id);
    }
    std::shared_ptr<Model> model = found->model.lock();
    if (model == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    if (model->capturing) return reject(ACL_ERROR_RT_MODEL_CAPTURED, "%s: the model is being captured", by);
    auto diversion = std::make_shared<Diversion>();
    diversion->group = found;
    set_diversion(*stream, std::move(diversion));
    return 0;
}

int end_update(void* handle) {
    const char* by = "aclmdlRICaptureTaskUpdateEnd";
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    std::shared_ptr<Diversion> update;
    {
        std::lock_guard<std::mutex> guard(captures().lock);
        if (stream->diversion == nullptr || stream->diversion->group == nullptr) {
            return reject(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: no update was begun on stream %d", by, stream->id);
        }
        update = stream->diversion;
        set_diversion(*stream, nullptr);
    }
    const auto& slots = update->group->slots;
    if (update->tasks.size() != slots.size()) {
        return reject(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: the group has %zu tasks, the update %zu", by,
                      slots.size(), update->tasks.size());
    }
    for (size_t i = 0; i < slots.size(); i++) {
        std::string before = slots[i]->now()->name;
        if (before == update->tasks[i].name) continue;
        return reject(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: task %zu of the group is %s, the update has %s", by, i,
                      before.c_str(), update->tasks[i].name.c_str());
    }
    Task task;
    task.name = by;
    task.run = [update] {
        for (size_t i = 0; i < update->tasks.size(); i++) {
            Slot& slot = *update->group->slots[i];
            std::lock_guard<std::mutex> guard(slot.lock);
            slot.task = std::make_shared<const Task>(update->tasks[i]);
        }
    };
    return launch(handle, std::move(task));
}

}  // namespace emu
