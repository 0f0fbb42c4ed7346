// Events: marks in a stream that others wait for.
//
// A record captures the stream's progress at that moment; a later record replaces it for those who ask later and changes
// nothing for those who already wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core.h"

namespace emu {

class Stream;
struct Passage;  // capture.h

// One record: passed when the stream has come to it.
struct Mark {
    std::mutex lock;
    std::condition_variable passed_cv;
    bool passed = false;
    uint64_t nanos = 0;
    std::weak_ptr<Stream> stream;
    std::atomic<uint64_t> number{0};    // of the task in its stream
    std::shared_ptr<Passage> captured;  // null: recorded on the device

    void pass();
    bool is_passed();
    // False when `give_up` became true first.
    bool wait(const std::atomic<bool>& give_up);
};

EMU_API int create_event(void** handle, uint32_t flags, bool extended, const char* by);
EMU_API int destroy_event(void* handle);
EMU_API int record_event(void* handle, void* stream);
EMU_API int reset_event(void* handle, void* stream);
EMU_API int stream_wait_event(void* stream, void* handle);
EMU_API int query_event(void* handle, bool* complete, const char* by, bool plain_only);
EMU_API int query_event_waits(void* handle, bool* complete);
EMU_API int synchronize_event(void* handle, int timeout, const char* by);
EMU_API int event_elapsed(float* ms, void* start, void* end);
EMU_API int event_timestamp(void* handle, uint64_t* micros);
EMU_API int event_id(void* handle, uint32_t* id);

}  // namespace emu
