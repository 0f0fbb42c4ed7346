// The emulator's own C functions, for tests and tools. None of them counts as a vendor call.
#include <algorithm>
#include <cstring>
#include <set>

#include "callbacks.h"
#include "codes.h"
#include "contexts.h"
#include "copies.h"
#include "handles.h"
#include "memory.h"
#include "state.h"
#include "streams.h"

namespace {

// Writes lines, separated by newlines and cut at `bytes`; answers how many lines there are.
uint64_t give(const std::vector<std::string>& lines, char* buffer, size_t bytes) {
    if (buffer != nullptr && bytes > 0) {
        std::string text;
        for (const std::string& line : lines) text += text.empty() ? line : "\n" + line;
        size_t length = std::min(text.size(), bytes - 1);
        memcpy(buffer, text.data(), length);
        buffer[length] = '\0';
    }
    return lines.size();
}

std::vector<std::string> all_leaks() {
    std::vector<std::string> lines = emu::kept_leaks();
    std::set<std::string> known(lines.begin(), lines.end());  // found at a tear-down and still there
    std::vector<std::string> live = emu::handles().leaks();
    for (std::string& line : emu::memory_leaks()) live.push_back(std::move(line));
    for (std::string& line : live) {
        if (known.insert(line).second) lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace

extern "C" {

// "function:n:code[:async]" and more of them after semicolons; n counts calls from now on, from 1.
EMU_API int ascendEmulatorSetFault(const char* spec) {
    std::string problem;
    if (spec != nullptr && emu::add_faults(spec, &problem)) return 0;
    return emu::reject(ACL_ERROR_INVALID_PARAM, "ascendEmulatorSetFault: %s",
                       spec == nullptr ? "NULL" : problem.c_str());
}

EMU_API void ascendEmulatorClearFaults() { emu::clear_faults(); }

EMU_API uint64_t ascendEmulatorCallCount() { return emu::call_count(); }
EMU_API uint64_t ascendEmulatorFunctionCalls(const char* function) { return emu::function_calls(function); }
EMU_API uint64_t ascendEmulatorKernelRuns(const char* function) { return emu::kernel_runs(function); }
EMU_API uint64_t ascendEmulatorTotalKernelRuns() { return emu::total_kernel_runs(); }
EMU_API uint64_t ascendEmulatorBytesToHost() { return emu::bytes_to_host(); }
EMU_API void ascendEmulatorResetCounters() { emu::reset_counters(); }

EMU_API uint64_t ascendEmulatorViolations(char* buffer, size_t bytes) { return give(emu::violations(), buffer, bytes); }
EMU_API void ascendEmulatorClearViolations() { emu::clear_violations(); }

// Live handles and allocations, and what was found leaked when a device was reset or everything finalised.
EMU_API uint64_t ascendEmulatorLeaks(char* buffer, size_t bytes) { return give(all_leaks(), buffer, bytes); }
EMU_API void ascendEmulatorClearLeaks() { emu::clear_leaks(); }
EMU_API uint64_t ascendEmulatorLiveHandles() { return emu::handles().live_count(); }
EMU_API uint64_t ascendEmulatorLiveBytes(int device) { return emu::live_bytes(device); }

EMU_API int ascendEmulatorLoseDevice(int device) {
    if (int code = emu::check_device(device, "ascendEmulatorLoseDevice")) return code;
    emu::lose_device(device, true);
    return 0;
}

EMU_API int ascendEmulatorRestoreDevice(int device) {
    if (int code = emu::check_device(device, "ascendEmulatorRestoreDevice")) return code;
    emu::lose_device(device, false);
    return 0;
}

// Every task of the stream starts this much later.
EMU_API int ascendEmulatorSlowStream(void* stream, uint32_t micros) {
    std::shared_ptr<emu::Stream> found;
    if (int code = emu::find_stream(stream, "ascendEmulatorSlowStream", &found)) return code;
    found->slow.store(micros);
    return 0;
}

EMU_API int64_t ascendEmulatorQueueDepth(void* stream) {
    std::shared_ptr<emu::Stream> found;
    if (emu::find_stream(stream, "ascendEmulatorQueueDepth", &found) != 0) return -1;
    return static_cast<int64_t>(found->depth());
}

EMU_API void ascendEmulatorSetDelaySeed(uint64_t seed) { emu::delay_seed.store(seed); }
EMU_API void ascendEmulatorSetNoop(bool noop) { emu::set_noop(noop); }

// The settings of the environment, by their names in lower case: "chip", "devices", "memory", ... Only while nothing is
// initialised.
EMU_API int ascendEmulatorConfigure(const char* key, const char* value) {
    if (key == nullptr || value == nullptr) {
        return emu::reject(ACL_ERROR_INVALID_PARAM, "ascendEmulatorConfigure: key or value is NULL");
    }
    if (emu::initialised()) {
        return emu::reject(ACL_ERROR_REPEAT_INITIALIZE,
                           "ascendEmulatorConfigure(%s): only before aclInit, after "
                           "aclFinalize or after ascendEmulatorReset",
                           key);
    }
    std::string problem;
    if (emu::configure(key, value, &problem)) return 0;
    return emu::reject(ACL_ERROR_INVALID_PARAM, "ascendEmulatorConfigure: %s", problem.c_str());
}

// As if the process had just started; settings are read from the environment again. No other thread may be in a call.
EMU_API void ascendEmulatorReset() {
    emu::forget_contexts();
    emu::forget_callbacks();
    emu::forget_virtual_memory();
    emu::handles().clear();
    emu::forget_memory();
    emu::reload_settings();
    emu::reset_counters();
    emu::clear_violations();
    emu::clear_leaks();
}

// Bytes of device memory as they are, live or not, without waiting for any stream. 0 when they are device memory.
EMU_API int ascendEmulatorDumpMemory(uint64_t address, uint64_t bytes, void* out) {
    if (emu::inspect(address, bytes, static_cast<unsigned char*>(out))) return 0;
    return emu::reject(ACL_ERROR_INVALID_PARAM, "ascendEmulatorDumpMemory: 0x%llx is not device memory",
                       static_cast<unsigned long long>(address));
}

}  // extern "C"
