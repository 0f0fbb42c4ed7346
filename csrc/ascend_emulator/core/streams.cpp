// Streams: the worker of each, launching, waiting, failing, abandoning.
#include "streams.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "capture.h"
#include "codes.h"
#include "handles.h"
#include "state.h"

namespace emu {

namespace {

constexpr size_t kDeepest = 65536;  // as on hardware a launch into a full queue waits

struct Entry {
    std::shared_ptr<Stream> stream;
    void* handle;
};

struct Streams {
    std::mutex lock;
    std::vector<Entry> all;
    int next_id = 0;
};

thread_local int this_worker_device = -1;
thread_local const std::atomic<bool>* this_worker_abandoned = nullptr;

Streams& streams() {
    static Streams* all = new Streams;
    return *all;
}

// A thread that takes none of the process's signals: handlers belong to the client's threads.
template <class F>
std::thread quiet_thread(F&& body) {
    sigset_t everything, before;
    sigfillset(&everything);
    for (int sync : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&everything, sync);
    pthread_sigmask(SIG_SETMASK, &everything, &before);
    std::thread thread(std::forward<F>(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

uint64_t scramble(uint64_t value) {  // splitmix64
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

bool overlap(const std::vector<Range>& ranges, uint64_t begin, uint64_t bytes) {
    for (const Range& range : ranges) {
        if (range.begin < begin + bytes && begin < range.begin + range.bytes) return true;
    }
    return false;
}

// Null when there is no handle left.
void* add_stream(const std::shared_ptr<Context>& context, uint32_t priority, uint32_t flags, const char* by, bool own) {
    Streams& all = streams();
    std::lock_guard<std::mutex> guard(all.lock);
    auto made = std::make_shared<Stream>(context, all.next_id++, priority, flags);
    made->is_default = own;
    void* handle = handles().create(Kind::stream, by, made, own);
    if (handle != nullptr) all.all.push_back(Entry{made, handle});
    return handle;
}

void remove_stream(const Stream* stream) {
    Streams& all = streams();
    std::lock_guard<std::mutex> guard(all.lock);
    all.all.erase(std::remove_if(all.all.begin(), all.all.end(),
                                 [stream](const Entry& entry) { return entry.stream.get() == stream; }),
                  all.all.end());
}

}  // namespace

Stream::Stream(std::shared_ptr<Context> owner, int number, uint32_t urgency, uint32_t options)
    : context(std::move(owner)), id(number), device(context->device), priority(urgency), flags(options) {}

Stream::~Stream() { close(); }

uint64_t Stream::push(Task task, std::function<void()> dropped, std::atomic<uint64_t>* told) {
    std::unique_lock<std::mutex> guard(lock_);
    if (queue_.size() >= kDeepest) done_.wait(guard, [this] { return queue_.size() < kDeepest; });
    if (stop_) {  // destroyed by another thread in this very moment
        guard.unlock();
        if (dropped) dropped();
        return 0;
    }
    uint64_t number = ++submitted_;
    if (told != nullptr) told->store(number);
    Work work;
    work.task = std::move(task);
    work.number = number;
    work.call = current_call();
    work.dropped = std::move(dropped);
    queue_.push_back(std::move(work));
    if (!worker_.joinable()) worker_ = quiet_thread([this] { loop(); });
    guard.unlock();
    wake_.notify_one();
    return number;
}

void Stream::loop() {
    this_worker_device = device;
    this_worker_abandoned = &abandoned;
    std::unique_lock<std::mutex> guard(lock_);
    for (;;) {
        wake_.wait(guard, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        running_ = std::move(queue_.front());
        queue_.pop_front();
        busy_ = true;
        guard.unlock();
        run();
        // What the task holds goes before it counts as done: after a synchronisation nothing of it is left.
        running_.task.run = nullptr;
        running_.dropped = nullptr;
        guard.lock();
        busy_ = false;
        completed_ = queue_.empty() ? submitted_ : queue_.front().number - 1;
        done_.notify_all();
    }
}

void Stream::run() {
    pause(running_.number);
    if (device_lost(device) || context->failed.load(std::memory_order_relaxed) != 0) {
        if (running_.dropped) running_.dropped();
        return;
    }
    try {
        running_.task.run();
    } catch (const DeviceFault& fault) { fail(fault.code, fault.text); } catch (const std::exception& problem) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, problem.what());
    }
}

void Stream::pause(uint64_t number) {
    uint64_t micros = slow.load(std::memory_order_relaxed);
    if (uint64_t seed = delay_seed.load(std::memory_order_relaxed)) {
        uint64_t dice = scramble(seed ^ scramble((static_cast<uint64_t>(id) << 40) ^ number));
        micros += dice % 16 == 0 ? 500 + (dice >> 8) % 1500 : (dice >> 8) % 100;
    }
    if (micros > 0) std::this_thread::sleep_for(std::chrono::microseconds(micros));
}

std::string Stream::label(const Work& work) const {
    return work.task.name + " (call " + std::to_string(work.call) + ", task " + std::to_string(work.number) +
           " of stream " + std::to_string(id) + " on device " + std::to_string(device) + ")";
}

void Stream::fail(int code, const std::string& text) {
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (failure_.code != 0) {
            failure_.more++;
        } else {
            failure_.code = code;
            failure_.number = running_.number;
            failure_.text = label(running_) + " failed with " + std::to_string(code) + ": " + text;
        }
    }
    if (failure_mode.load() == 1) context->failed.store(code);
    call_exception_callback(ExceptionInfo{static_cast<uint32_t>(running_.number), static_cast<uint32_t>(id),
                                          static_cast<uint32_t>(pthread_self()), static_cast<uint32_t>(device),
                                          static_cast<uint32_t>(code)});
}

int Stream::wait_for(uint64_t number, int timeout, int timeout_code) {
    std::unique_lock<std::mutex> guard(lock_);
    uint64_t before = aborts_;
    auto over = [this, number, before] { return completed_ >= number || aborts_ != before; };
    if (timeout < 0) {
        done_.wait(guard, over);
    } else if (!done_.wait_for(guard, std::chrono::milliseconds(timeout), over)) {
        return timeout_code;
    }
    return aborts_ != before ? abort_code_ : 0;
}

uint64_t Stream::last() {
    std::lock_guard<std::mutex> guard(lock_);
    return submitted_;
}

bool Stream::idle() {
    std::lock_guard<std::mutex> guard(lock_);
    return completed_ == submitted_;
}

size_t Stream::depth() {
    std::lock_guard<std::mutex> guard(lock_);
    return queue_.size() + (busy_ ? 1 : 0);
}

int Stream::take_failure(uint64_t number) {
    Failure failure;
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (failure_.code == 0 || failure_.number > number) return 0;
        std::swap(failure, failure_);
    }
    if (failure.more > 0) failure.text += " (and " + std::to_string(failure.more) + " later failures)";
    return reject(failure.code, "%s", failure.text.c_str());
}

void Stream::abandon(int code, int limit) {
    std::deque<Work> dropped;
    std::unique_lock<std::mutex> guard(lock_);
    dropped.swap(queue_);
    aborts_++;
    abort_code_ = code;
    abandoned.store(true);
    if (!busy_) completed_ = submitted_;
    done_.notify_all();
    guard.unlock();
    for (Work& work : dropped) {
        if (work.dropped) work.dropped();
    }
    dropped.clear();
    guard.lock();
    auto free = [this] { return !busy_; };
    if (limit < 0) done_.wait(guard, free);
    else done_.wait_for(guard, std::chrono::milliseconds(limit), free);
    abandoned.store(false);
}

void Stream::close() {
    {
        std::lock_guard<std::mutex> guard(lock_);
        stop_ = true;
        if (closed_) return;
        closed_ = true;
    }
    wake_.notify_all();
    if (worker_.joinable()) worker_.join();
}

std::string Stream::needs(uint64_t begin, uint64_t bytes) {
    std::lock_guard<std::mutex> guard(lock_);
    if (busy_ && overlap(running_.task.ranges, begin, bytes)) return label(running_) + ", running,";
    for (const Work& work : queue_) {
        if (overlap(work.task.ranges, begin, bytes)) return label(work) + ", queued,";
    }
    return "";
}

// -- what the rest of the core asks ----------------------------------------------------------------------------------

std::vector<std::shared_ptr<Stream>> streams_of(const Context* context, int device) {
    Streams& all = streams();
    std::lock_guard<std::mutex> guard(all.lock);
    std::vector<std::shared_ptr<Stream>> found;
    for (const Entry& entry : all.all) {
        bool mine =
            context != nullptr ? entry.stream->context.get() == context : device < 0 || entry.stream->device == device;
        if (mine) found.push_back(entry.stream);
    }
    return found;
}

std::string task_that_needs(uint64_t begin, uint64_t bytes) {
    for (const auto& stream : streams_of(nullptr, -1)) {
        std::string task = stream->needs(begin, bytes);
        if (!task.empty()) return task;
    }
    return "";
}

int worker_device() { return this_worker_device; }
bool worker_abandoned() { return this_worker_abandoned != nullptr && this_worker_abandoned->load(); }

void quiet_at_exit() {
    struct Guard {
        ~Guard() {
            if (forked()) return;
            for (const auto& stream : streams_of(nullptr, -1)) stream->abandon(ACL_ERROR_RT_STREAM_ABORT, 1000);
        }
    };
    static Guard guard;
}

void* make_default_stream(const std::shared_ptr<Context>& context) {
    return add_stream(context, 0, 0, "the context", true);
}

std::shared_ptr<Stream> add_hidden_stream(const std::shared_ptr<Context>& context) {
    Streams& all = streams();
    std::lock_guard<std::mutex> guard(all.lock);
    all.all.push_back(Entry{std::make_shared<Stream>(context, all.next_id++, 0, 0), nullptr});
    return all.all.back().stream;
}

void drop_hidden_stream(const std::shared_ptr<Stream>& stream) {
    stream->close();
    remove_stream(stream.get());
}

void close_streams(const Context* context, const char* by) {
    std::vector<Entry> mine;
    {
        Streams& all = streams();
        std::lock_guard<std::mutex> guard(all.lock);
        for (const Entry& entry : all.all) {
            if (entry.stream->context.get() == context) mine.push_back(entry);
        }
    }
    for (const Entry& entry : mine) {
        entry.stream->wait_for(entry.stream->last(), -1, 0);
        forget_capture(*entry.stream);
        bool leaked = entry.handle != nullptr && entry.handle != context->default_stream;
        if (leaked) keep_leaks({handles().describe(entry.handle)});
        if (handles().is(Kind::stream, entry.handle)) handles().destroy<Stream>(Kind::stream, entry.handle, by);
        remove_stream(entry.stream.get());
        entry.stream->close();
    }
}

int find_stream(void* handle, const char* by, std::shared_ptr<Stream>* stream) {
    if (int code = require_context()) return code;
    Context* context = current_context();
    int why = kFine;
    *stream = handles().find<Stream>(Kind::stream, handle == nullptr ? context->default_stream : handle, by, &why);
    if (*stream == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    if ((*stream)->context.get() != context) {
        return reject(ACL_ERROR_RT_STREAM_CONTEXT,
                      "%s: stream %d belongs to another context (device %d) than this "
                      "thread's current one (device %d)",
                      by, (*stream)->id, (*stream)->device, context->device);
    }
    return 0;
}

int check_stream(void* handle, const char* by) {
    std::shared_ptr<Stream> stream;
    return find_stream(handle, by, &stream);
}

bool device_busy(int device) {
    for (const auto& stream : streams_of(nullptr, device)) {
        if (!stream->idle()) return true;
    }
    return false;
}

int launch(void* handle, Task task) {
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, task.name.c_str(), &stream)) return code;
    if (int failed = stream->context->failed.load(std::memory_order_relaxed)) {
        return reject(failed, "%s: the context stopped after a failure (STOP_ON_FAILURE)", task.name.c_str());
    }
    if (int code = take_async_fault(task.name)) {
        task.run = [code] { throw DeviceFault{code, "injected fault"}; };
        task.again = nullptr;
    } else if (noop_kernels.load(std::memory_order_relaxed) && task.name.compare(0, 5, "aclnn") == 0) {
        return 0;
    }
    int taken = 0;
    if (stream->diverted.load(std::memory_order_acquire) && divert(stream, task, &taken)) return taken;
    if (!task.run) task.run = task.again();
    stream->push(std::move(task));
    return 0;
}

int wait(void* handle) { return synchronize_stream(handle, -1, "waiting for a stream"); }

// -- the functions behind aclrt*Stream -------------------------------------------------------------------------------

int create_stream(void** handle, uint32_t priority, uint32_t flags, const char* by) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: stream is NULL", by);
    if (priority > 7) return reject(ACL_ERROR_INVALID_PARAM, "%s: priority is 0 (highest) to 7, got %u", by, priority);
    if ((flags & ~ACL_STREAM_ALL_FLAGS) != 0) {
        return reject(ACL_ERROR_INVALID_PARAM, "%s: unknown flags 0x%x", by, flags);
    }
    if (int code = require_context()) return code;
    int most = chip_profile().max_streams;
    if (handles().live_count(Kind::stream) >= static_cast<uint64_t>(most)) {
        return reject(ACL_ERROR_RT_NO_STREAM_RESOURCE, "%s: at most %d streams on this chip", by, most);
    }
    std::shared_ptr<Context> context = handles().find<Context>(Kind::context, current_context()->handle, by);
    if (context == nullptr) return finish(ACL_ERROR_RT_CONTEXT_NULL);
    *handle = add_stream(context, priority, flags, by, false);
    return *handle == nullptr ? finish(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL) : 0;
}

int destroy_stream(void* handle, bool force, const char* by) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: stream is NULL", by);
    int code = require_context();
    if (code != 0 && code != ACL_ERROR_RT_LOST_HEARTBEAT) return code;
    std::shared_ptr<Stream> stream;
    if (handles().is(Kind::stream, handle)) stream = handles().find<Stream>(Kind::stream, handle, by);
    if (stream == nullptr) {
        handles().destroy<Stream>(Kind::stream, handle, by);  // for the diagnosis
        return finish(ACL_ERROR_RT_INVALID_HANDLE);
    }
    if (stream->context.get() != current_context()) {
        return reject(ACL_ERROR_RT_STREAM_CONTEXT,
                      "%s: stream %d belongs to another context than this thread's current "
                      "one",
                      by, stream->id);
    }
    if (handle == stream->context->default_stream) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: a default stream goes with its context", by);
    }
    if (int captured = refuse_captured(*stream, by)) return captured;
    forget_capture(*stream);
    if (handles().destroy<Stream>(Kind::stream, handle, by) == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    if (force) stream->abandon(ACL_ERROR_RT_STREAM_ABORT);
    stream->close();
    remove_stream(stream.get());
    return code;
}

int synchronize_stream(void* handle, int timeout, const char* by) {
    std::shared_ptr<Stream> stream;
    if (timeout < -1) return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: timeout is -1 or more, got %d", by, timeout);
    if (int code = find_stream(handle, by, &stream)) return code;
    if (int code = refuse_captured(*stream, by)) return code;
    uint64_t number = stream->last();
    if (int code = stream->wait_for(number, timeout, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)) {
        return reject(code, "%s: stream %d %s", by, stream->id,
                      code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ? "did not finish in time" : "was abandoned");
    }
    if (int code = stream->take_failure(number)) return code;
    if (int code = stream->context->failed.load()) return reject(code, "%s: the context stopped after a failure", by);
    return 0;
}

int synchronize_device(int timeout, const char* by) {
    if (timeout < -1) return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: timeout is -1 or more, got %d", by, timeout);
    if (int code = require_context()) return code;
    if (int code = refuse_captured_device(current_context()->device, by)) return code;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::max(timeout, 0));
    int first = 0;
    for (const auto& stream : streams_of(nullptr, current_context()->device)) {
        uint64_t number = stream->last();
        int left = -1;
        if (timeout >= 0) {
            auto rest = deadline - std::chrono::steady_clock::now();
            left = std::max(0, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(rest).count()));
        }
        if (int code = stream->wait_for(number, left, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)) {
            return reject(code, "%s: stream %d %s", by, stream->id,
                          code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ? "did not finish in time" : "was abandoned");
        }
        int code = stream->take_failure(number);
        if (code == 0) code = stream->context->failed.load();
        if (first == 0) first = code;
    }
    return finish(first);
}

int query_stream(void* handle, int* status) {
    if (status == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtStreamQuery: status is NULL");
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, "aclrtStreamQuery", &stream)) return code;
    if (int code = refuse_captured(*stream, "aclrtStreamQuery")) return code;
    *status = stream->idle() ? 0 : 1;
    return 0;
}

int stream_id(void* handle, int32_t* id) {
    if (id == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtStreamGetId: streamId is NULL");
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, "aclrtStreamGetId", &stream)) return code;
    *id = stream->id;
    return 0;
}

int set_failure_mode(void* handle, uint64_t mode) {
    const char* by = "aclrtSetStreamFailureMode";
    if (mode > 1)
        return reject(ACL_ERROR_INVALID_PARAM, "%s: mode is 0 (continue) or 1 (stop), got %llu", by,
                      static_cast<unsigned long long>(mode));
    if (handle == nullptr && !chip_profile().default_stream_failure_mode) {
        return reject(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: a NULL stream is not supported on this chip", by);
    }
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    int never = -1;
    if (!stream->failure_mode.compare_exchange_strong(never, static_cast<int>(mode))) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: the mode of stream %d was set already", by, stream->id);
    }
    return 0;
}

int overflow_switch(void* handle, uint32_t* flag, bool set) {
    const char* by = set ? "aclrtSetStreamOverflowSwitch" : "aclrtGetStreamOverflowSwitch";
    if (flag == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: flag is NULL", by);
    if (set && *flag > 1) return reject(ACL_ERROR_INVALID_PARAM, "%s: flag is 0 or 1, got %u", by, *flag);
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, by, &stream)) return code;
    if (set) stream->overflow_switch.store(*flag);
    else *flag = stream->overflow_switch.load();
    return 0;
}

int abort_stream(void* handle) {
    std::shared_ptr<Stream> stream;
    if (int code = find_stream(handle, "aclrtStreamAbort", &stream)) return code;
    if (int code = refuse_captured(*stream, "aclrtStreamAbort")) return code;
    stream->abandon(ACL_ERROR_RT_STREAM_ABORT);
    return 0;
}

int abort_device(int device) {
    if (int code = require_init("aclrtDeviceTaskAbort")) return code;
    if (int code = check_device(device, "aclrtDeviceTaskAbort")) return code;
    for (const auto& stream : streams_of(nullptr, device)) stream->abandon(ACL_ERROR_RT_DEVICE_TASK_ABORT);
    return 0;
}

}  // namespace emu
