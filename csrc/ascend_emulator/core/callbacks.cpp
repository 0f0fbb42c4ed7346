// Callbacks: the posts between streams and the threads that process them.
#include "callbacks.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "capture.h"
#include "codes.h"
#include "state.h"
#include "streams.h"

namespace emu {

namespace {

struct Post {
    void (*function)(void*);
    void* data;
    std::atomic<bool> done{false};
};

// What one subscribed thread has to do.
struct Box {
    std::deque<std::shared_ptr<Post>> posts;
    int streams = 0;  // subscribed with it
};

struct Office {
    std::mutex lock;
    std::condition_variable arrived, finished;
    std::map<const Stream*, uint64_t> readers;
    std::map<uint64_t, Box> boxes;
};

Office& office(Reports which) {
    static Office* all = new Office[2];
    return all[which == Reports::callbacks ? 0 : 1];
}

std::atomic<void (*)(void*)> exception_callback{nullptr};

bool has_reader(Office& in, const Stream* stream) {
    std::lock_guard<std::mutex> guard(in.lock);
    return in.readers.count(stream) != 0;
}

// On the stream's worker: hands the function over and, when blocking, waits for it.
void post(Office& in, Stream* stream, void (*function)(void*), void* data, bool block) {
    auto letter = std::make_shared<Post>();
    letter->function = function;
    letter->data = data;
    std::unique_lock<std::mutex> guard(in.lock);
    auto reader = in.readers.find(stream);
    if (reader == in.readers.end()) {
        throw DeviceFault{ACL_ERROR_STREAM_NOT_SUBSCRIBE, "the stream was unsubscribed before its callback could run"};
    }
    in.boxes[reader->second].posts.push_back(letter);
    in.arrived.notify_all();
    // Short waits: whoever abandons the stream has no way to wake us.
    while (block && !letter->done.load() && !stream->abandoned.load()) {
        in.finished.wait_for(guard, std::chrono::milliseconds(2));
    }
}

}  // namespace

int subscribe(Reports which, uint64_t thread, void* stream, const char* by) {
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    Office& in = office(which);
    std::lock_guard<std::mutex> guard(in.lock);
    if (in.readers.count(where.get()) != 0) {
        return reject(ACL_ERROR_REPEAT_SUBSCRIBE, "%s: stream %d is subscribed already", by, where->id);
    }
    in.readers[where.get()] = thread;
    in.boxes[thread].streams++;
    return 0;
}

int unsubscribe(Reports which, uint64_t thread, void* stream, const char* by) {
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    Office& in = office(which);
    std::lock_guard<std::mutex> guard(in.lock);
    auto reader = in.readers.find(where.get());
    if (reader == in.readers.end() || reader->second != thread) {
        return reject(ACL_ERROR_STREAM_NOT_SUBSCRIBE, "%s: thread %llu is not subscribed to stream %d", by,
                      static_cast<unsigned long long>(thread), where->id);
    }
    in.readers.erase(reader);
    auto box = in.boxes.find(thread);
    if (--box->second.streams == 0 && box->second.posts.empty()) in.boxes.erase(box);
    in.arrived.notify_all();
    return 0;
}

int process(Reports which, int timeout, const char* by) {
    if (timeout < -1) return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: timeout is -1 or more, got %d", by, timeout);
    Office& in = office(which);
    uint64_t me = static_cast<uint64_t>(pthread_self());
    std::shared_ptr<Post> letter;
    {
        std::unique_lock<std::mutex> guard(in.lock);
        if (in.boxes.count(me) == 0) {
            return reject(ACL_ERROR_THREAD_NOT_SUBSCRIBE, "%s: this thread is subscribed to no stream", by);
        }
        auto ready = [&in, me] {
            auto box = in.boxes.find(me);
            return box == in.boxes.end() || !box->second.posts.empty();
        };
        if (timeout < 0) {
            in.arrived.wait(guard, ready);
        } else if (!in.arrived.wait_for(guard, std::chrono::milliseconds(timeout), ready)) {
            return reject(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, "%s: nothing came within %d ms", by, timeout);
        }
        auto box = in.boxes.find(me);
        if (box == in.boxes.end()) {
            return reject(ACL_ERROR_THREAD_NOT_SUBSCRIBE, "%s: this thread was unsubscribed while it waited", by);
        }
        letter = box->second.posts.front();
        box->second.posts.pop_front();
        if (box->second.streams == 0 && box->second.posts.empty()) in.boxes.erase(box);
    }
    {
        CallbackScope scope;
        letter->function(letter->data);
    }
    std::lock_guard<std::mutex> guard(in.lock);
    letter->done.store(true);
    in.finished.notify_all();
    return 0;
}

int launch_callback(void (*function)(void*), void* data, int block, void* stream) {
    const char* by = "aclrtLaunchCallback";
    if (function == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: fn is NULL", by);
    if (block != 0 && block != 1) return reject(ACL_ERROR_INVALID_PARAM, "%s: no block type %d", by, block);
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    Office& in = office(Reports::callbacks);
    if (!has_reader(in, where.get())) {
        return reject(ACL_ERROR_RT_STREAM_NO_CB_REG, "%s: no thread has called aclrtSubscribeReport for stream %d", by,
                      where->id);
    }
    if (int code = refuse_captured(*where, by)) return code;  // its reader is the stream's, not a model's
    Task task;
    task.name = by;
    Stream* worker = where.get();  // a stream outlives its tasks
    task.run = [&in, worker, function, data, block] { post(in, worker, function, data, block == 1); };
    return launch(stream, std::move(task));
}

int launch_host_function(void* stream, void (*function)(void*), void* data) {
    const char* by = "aclrtLaunchHostFunc";
    if (function == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: fn is NULL", by);
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    if (has_reader(office(Reports::callbacks), where.get())) {
        violation("mixed-callbacks", "%s on a stream that is subscribed with aclrtSubscribeReport", by);
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: stream %d is subscribed with aclrtSubscribeReport", by,
                      where->id);
    }
    Task task;
    task.name = by;
    Stream* worker = is_captured(*where) ? nullptr : where.get();  // a model outlives the stream
    task.run = [worker, function, data] {
        Office& in = office(Reports::host_functions);
        if (worker != nullptr && has_reader(in, worker)) {
            post(in, worker, function, data, true);
            return;
        }
        CallbackScope scope;
        function(data);
    };
    return launch(stream, std::move(task));
}

int set_exception_callback(void (*function)(void*)) {
    exception_callback.store(function);
    return 0;
}

void call_exception_callback(const ExceptionInfo& info) {
    if (void (*function)(void*) = exception_callback.load()) {
        ExceptionInfo copy = info;
        CallbackScope scope;
        function(&copy);
    }
}

void forget_callbacks() {
    exception_callback.store(nullptr);
    for (Reports which : {Reports::callbacks, Reports::host_functions}) {
        Office& in = office(which);
        std::lock_guard<std::mutex> guard(in.lock);
        in.readers.clear();
        in.boxes.clear();
    }
}

}  // namespace emu
