// Streams: a queue in order and one worker thread each.
//
// A task that fails leaves its error in the stream; the next synchronisation that covers it answers it, once. What is
// queued behind it runs on, unless the context stops on failure.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "contexts.h"
#include "core.h"

namespace emu {

struct Work {
    Task task;
    uint64_t number = 0;
    uint64_t call = 0;              // the sequence number of the call that queued it
    std::function<void()> dropped;  // instead of run, when the task is discarded
};

struct Failure {
    int code = 0;
    uint64_t number = 0;
    std::string text;
    uint64_t more = 0;  // failures after the first
};

struct Diversion;  // capture.cpp

class Stream {
public:
    Stream(std::shared_ptr<Context> context, int id, uint32_t priority, uint32_t flags);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Appends; answers the task's number, counted from 1. `number` has it before the task can run.
    uint64_t push(Task task, std::function<void()> dropped = nullptr, std::atomic<uint64_t>* number = nullptr);
    // Until everything up to `number` has run: 0, STREAM_ABORT or the given timeout code. Milliseconds; -1: no limit.
    int wait_for(uint64_t number, int timeout, int timeout_code);
    uint64_t last();
    bool idle();
    size_t depth();
    // Takes the failure of a task up to `number`, says it, answers its code; 0 when there is none.
    int take_failure(uint64_t number);
    // Discards what is queued; waits for what runs (milliseconds; -1: no limit). Waiters get `code`.
    void abandon(int code, int limit = -1);
    void close();  // waits for what is queued, ends the worker
    std::string needs(uint64_t begin, uint64_t bytes);

    const std::shared_ptr<Context> context;
    const int id;
    const int device;
    const uint32_t priority;
    const uint32_t flags;
    std::atomic<int> failure_mode{-1};  // -1: never set
    std::atomic<uint32_t> overflow_switch{0};
    std::atomic<uint32_t> slow{0};       // microseconds before each task: for tests
    std::atomic<bool> abandoned{false};  // a task that waits must give up
    bool is_default = false;
    // Where launches go instead of the queue, while the stream is captured or updates a task group (capture.cpp).
    std::atomic<bool> diverted{false};
    std::shared_ptr<Diversion> diversion;

private:
    void loop();
    void run();
    void fail(int code, const std::string& text);
    std::string label(const Work& work) const;
    void pause(uint64_t number);

    std::mutex lock_;  // guards what follows
    std::condition_variable wake_, done_;
    std::deque<Work> queue_;
    Work running_;
    bool busy_ = false;
    bool stop_ = false;
    bool closed_ = false;
    uint64_t submitted_ = 0;
    uint64_t completed_ = 0;
    uint64_t aborts_ = 0;
    int abort_code_ = 0;
    Failure failure_;
    std::thread worker_;
};

// The stream of a handle, or the default stream for null; checks the current context, the device and the handle.
int find_stream(void* handle, const char* by, std::shared_ptr<Stream>* stream);

EMU_API int check_stream(void* handle, const char* by);
EMU_API bool device_busy(int device);

EMU_API int create_stream(void** handle, uint32_t priority, uint32_t flags, const char* by);
EMU_API int destroy_stream(void* handle, bool force, const char* by);
EMU_API int synchronize_stream(void* handle, int timeout, const char* by);
EMU_API int synchronize_device(int timeout, const char* by);
EMU_API int query_stream(void* handle, int* status);
EMU_API int stream_id(void* handle, int32_t* id);
EMU_API int set_failure_mode(void* handle, uint64_t mode);
EMU_API int overflow_switch(void* handle, uint32_t* flag, bool set);
EMU_API int abort_stream(void* handle);
EMU_API int abort_device(int device);

// "aclnnAdd (task 3 of stream 2)", when a queued or running task needs a byte of the range; else empty.
std::string task_that_needs(uint64_t begin, uint64_t bytes);

// The device of the stream whose worker this thread is; -1 for every other thread.
int worker_device();
// Whether the stream whose worker this thread is gives up its work: a task that waits must ask.
bool worker_abandoned();

// Streams of one context, or of one device when the context is null.
std::vector<std::shared_ptr<Stream>> streams_of(const Context* context, int device);
void* make_default_stream(const std::shared_ptr<Context>& context);
void close_streams(const Context* context, const char* by);
// A stream that no client has a handle of.
std::shared_ptr<Stream> add_hidden_stream(const std::shared_ptr<Context>& context);
void drop_hidden_stream(const std::shared_ptr<Stream>& stream);
// When the process ends, what is queued is discarded and what runs may finish: kernels must not outlive their tables.
void quiet_at_exit();

// The client's function for failed tasks (callbacks.cpp).
struct ExceptionInfo {
    uint32_t task, stream, thread, device, code;
};
void call_exception_callback(const ExceptionInfo& info);

}  // namespace emu
