// What the parts of the emulator share: calls and their faults, messages, device memory, streams, settings.
//
// One library, libascend_emulator.so, holds all state; the libraries with the vendor's names are thin exports over it, so
// a process that loads several of them sees one device.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#define EMU_API __attribute__((visibility("default")))
#define EMU_PRINTF(f, a) __attribute__((format(printf, f, a)))

namespace emu {

// -- calls ---------------------------------------------------------------------------------------------------------
// Every exported vendor function begins with `enter`: it counts the call and answers the code an injected fault asks
// for, 0 otherwise. A function that returns a pointer returns null then; a destroy destroys and returns the code.
// `quiet` functions (aclGetRecentErrMsg) are not counted.
EMU_API int enter(const char* function);

// -- messages ------------------------------------------------------------------------------------------------------
// Appends to what aclGetRecentErrMsg will tell this thread.
EMU_API void say(const char* format, ...) EMU_PRINTF(1, 2);

// A broken rule of the C contract that hardware would answer with undefined behaviour. Recorded (tests read the list),
// printed to stderr, and fatal when the setting `violations` says abort.
EMU_API void violation(const char* kind, const char* format, ...) EMU_PRINTF(2, 3);

std::string format_text(const char* format, va_list args);

// -- device memory -------------------------------------------------------------------------------------------------
// A kernel that touches what it may not, meets an illegal index, ...: the stream's next synchronisation reports `code`.
struct DeviceFault {
    int code;  // 507015 for AI core exceptions
    std::string text;
};

struct Range {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    bool written = false;
};

// The emulator's own mapping of device memory. Throws DeviceFault when a byte of it is not in one live allocation.
// Called by kernels on stream workers.
EMU_API unsigned char* reach(uint64_t address, uint64_t bytes, const char* what);

// Whether the bytes lie in one live allocation of any device; and whether the address is device memory at all.
EMU_API bool live(uint64_t address, uint64_t bytes);
EMU_API bool on_device(uint64_t address);

// -- streams -------------------------------------------------------------------------------------------------------
struct Task {
    std::string name;           // shown in diagnostics: "aclnnAdd", "aclrtMemcpyAsync"
    std::vector<Range> ranges;  // memory it needs until it has run; aclrtFree of such memory is a violation
    std::function<void()> run;  // on the stream's worker; may throw DeviceFault
    // For a task whose `run` serves one run only (its turn in a collective): makes one, whenever it is queued.
    std::function<std::function<void()>()> again = nullptr;
};

// 0, or 107002 when this thread has no current context (with a message).
EMU_API int require_context();

// Appends to a stream (null: the default stream of the current context). 0 or an aclError; `run` is called later.
EMU_API int launch(void* stream, Task task);

// Waits for everything on a stream; answers the stream's pending asynchronous error, once.
EMU_API int wait(void* stream);

// -- settings ------------------------------------------------------------------------------------------------------
enum class Chip { k910B, k910A, k310P, k310B, k950 };

struct Settings {
    Chip chip = Chip::k910B;
    int devices = 1;
    uint64_t memory = 0;      // bytes per device
    uint64_t delay_seed = 0;  // 0: no delays
    bool noop = false;        // kernels are accepted and not run: for measuring a client's own cost
    bool abort = false;       // a violation ends the process
};

EMU_API const Settings& settings();
const char* chip_name(Chip chip);  // the name used by the facts: "910B"

// -- counters ------------------------------------------------------------------------------------------------------
// How often each aclnn kernel has run; tests prove with it what ran on the device.
EMU_API void count_kernel(const char* function);

}  // namespace emu
