// Graph capture: launches on a stream are kept instead of run, and run again as often as the client asks.
//
// A capture begins on one stream; a stream that waits for an event of it joins. Whatever the client may not do meanwhile
// is refused by name and makes the capture invalid: no model is made of half of what was meant.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core.h"
#include "streams.h"

namespace emu {

struct Mark;     // events.h
struct Capture;  // capture.cpp

// How much of each captured stream something comes after: place of the stream in the model -> tasks.
using Clock = std::map<size_t, uint64_t>;

// A record on a captured stream.
struct Passage {
    std::weak_ptr<Capture> capture;
    size_t mark = 0;  // its number in the model
    Clock after;
};

// A captured task. An update puts another one in its place.
struct Slot {
    std::mutex lock;
    std::shared_ptr<const Task> task;

    std::shared_ptr<const Task> now() {
        std::lock_guard<std::mutex> guard(lock);
        return task;
    }
};

struct Node {
    enum Kind { task, record, wait } kind;
    size_t branch;               // place of the stream in the model: 0 is where the capture began
    std::shared_ptr<Slot> slot;  // of a task
    size_t mark = 0;             // of a record or a wait
};

struct Model {
    explicit Model(std::shared_ptr<Context> owner) : context(std::move(owner)) {}
    ~Model();

    const std::shared_ptr<Context> context;
    std::mutex lock;  // guards what follows, but for `nodes`, which never change once the capture has ended
    bool capturing = true;
    std::vector<Node> nodes;
    size_t branches = 1;
    size_t marks = 0;
    std::vector<std::shared_ptr<Stream>> helpers;  // run the branches but the first
    std::shared_ptr<Stream> runner;                // of aclmdlRIExecute
    std::shared_ptr<Mark> ended;                   // of the latest run
    std::vector<void*> groups;                     // handles, which go with the model
};

enum class CaptureMode : int { global, of_thread, relaxed };
enum class CaptureStatus : int { none, active, invalidated };

// -- what streams, events and copies ask -----------------------------------------------------------------------------
// Whether the task was taken instead of queued; `code` is then the answer of the launch.
bool divert(const std::shared_ptr<Stream>& stream, Task& task, int* code);
// A call that a captured stream does not allow: 107027, and the capture is invalid. 0 for every other stream.
int refuse_captured(Stream& stream, const char* by);
int refuse_captured_device(int device, const char* by);
// A call that works at once, beside every stream: 107030 where the mode of a capture forbids it.
int refuse_unsafe(const char* by);
bool is_captured(const Stream& stream);  // captured, not updating
// A record on a captured stream; null and a code when it is refused.
std::shared_ptr<Passage> capture_record(Stream& stream, int* code);
// A wait of `stream` for a record that was (`passage`) or was not (null) captured. True when that was all.
bool capture_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Passage>& passage, int* code);
// A captured record is nothing to ask or wait for: 107028.
int refuse_passage(const std::shared_ptr<Passage>& passage, const char* by);
void forget_capture(Stream& stream);  // its context goes

// -- the functions behind aclmdlRI* ----------------------------------------------------------------------------------
EMU_API int begin_capture(void* stream, int mode);
EMU_API int capture_info(void* stream, int* status, void** model);
EMU_API int end_capture(void* stream, void** model);
EMU_API int exchange_mode(int* mode);
EMU_API int begin_group(void* stream);
EMU_API int end_group(void* stream, void** group);
EMU_API int begin_update(void* stream, void* group);
EMU_API int end_update(void* stream);
EMU_API int execute_model(void* model, void* stream);
EMU_API int execute_model_now(void* model, int timeout);
EMU_API int destroy_model(void* model);
EMU_API int print_model(void* model);

}  // namespace emu
