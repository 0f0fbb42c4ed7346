// What the core's files share about calls: sequence numbers, the thread's last error, refusals in a forked child,
// injected asynchronous faults; and the settings that change while the emulator runs.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core.h"

namespace emu {

// -- calls (faults.cpp) ----------------------------------------------------------------------------------------------
// The sequence number of the vendor call this thread is in.
EMU_API uint64_t current_call();
EMU_API uint64_t call_count();
EMU_API uint64_t function_calls(const char* function);
EMU_API uint64_t kernel_runs(const char* function);
EMU_API uint64_t total_kernel_runs();
void reset_counters();

// For functions that release something: counts the call; `*fault` gets the code an injected fault asks for, to be
// returned after releasing. A nonzero result means nothing may be touched at all: return it.
EMU_API int enter_release(const char* function, int* fault);

// Whether this process is a forked child of one that had used the device: its stream workers do not exist here.
EMU_API bool forked();
void watch_forks();
void note_initialised(bool initialised);

// "aclnnAdd:1:561000;*:17:207001;aclnnMul:2:507015:async". False and a message when it cannot be read.
bool add_faults(const char* spec, std::string* problem);
void clear_faults();
// The code of an asynchronous fault that `enter(function)` armed on this thread, once; 0 when there is none.
int take_async_fault(const std::string& function);

// While a client's callback runs on this thread most calls are forbidden.
struct CallbackScope {
    CallbackScope();
    ~CallbackScope();
};

// -- messages (messages.cpp) -----------------------------------------------------------------------------------------
EMU_API const char* recent_message();  // aclGetRecentErrMsg
EMU_API int finish(int code);          // remembers a failure as this thread's last error; answers the code
EMU_API int last_error(bool clear);
EMU_API int reject(int code, const char* format, ...) EMU_PRINTF(2, 3);  // say + finish
std::vector<std::string> violations();
void clear_violations();
void keep_leaks(std::vector<std::string> lines);  // found when something was torn down
std::vector<std::string> kept_leaks();
void clear_leaks();

// -- settings (settings.cpp) -----------------------------------------------------------------------------------------
struct ChipProfile {
    const char* name;  // the facts' name
    const char* soc;   // aclrtGetSocName
    int64_t ai_cores;
    int64_t vector_cores;
    int64_t l2_bytes;
    int max_streams;
    uint64_t max_events;
    bool extra_pad;  // aclrtMalloc adds 32 bytes beyond rounding
    bool inf_nan;
    bool bf16;
    bool jit_compile;
    bool default_stream_failure_mode;  // aclrtSetStreamFailureMode takes a null stream
};
EMU_API const ChipProfile& chip_profile();
EMU_API const std::string& cann_version();  // "8.5.0"
EMU_API const std::vector<int>& visible_devices();
bool report_leaks();
bool lenient();  // what lies behind an allocation may be touched

extern std::atomic<uint64_t> delay_seed;
extern std::atomic<bool> noop_kernels;
bool configure(const char* key, const char* value, std::string* problem);
void set_noop(bool noop);  // while nothing is being launched
void reload_settings();

}  // namespace emu
