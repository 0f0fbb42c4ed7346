// Calls: counted, and failed on request. The path of a call without faults takes no lock.
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "codes.h"
#include "state.h"

namespace emu {

namespace {

struct Counter {
    std::string name;
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> kernels{0};
};

struct Fault {
    std::string function;  // or "*"
    uint64_t left;         // calls until it strikes
    int code;
    bool async;
};

// Counters by name, with a table in front keyed by the literal's address: a call costs one probe and one comparison.
struct Calls {
    static constexpr size_t kProbes = 1 << 14;
    struct Entry {
        std::atomic<const char*> literal{nullptr};
        std::atomic<Counter*> counter{nullptr};
    };
    Entry table[kProbes];
    std::mutex lock;  // guards what follows
    std::map<std::string, std::unique_ptr<Counter>> by_name;
    std::vector<Fault> faults;
    std::atomic<bool> any_faults{false};
    std::atomic<uint64_t> sequence{0};
    std::atomic<uint64_t> kernels{0};
    std::atomic<bool> initialised{false};
    std::atomic<bool> forked{false};
};

Calls& calls() {
    static Calls* all = new Calls;
    return *all;
}

struct ThreadCall {
    uint64_t sequence = 0;
    int callbacks = 0;
    int async_code = 0;
    const char* async_function = nullptr;
};

thread_local ThreadCall this_call;

Counter& counter(const char* function) {
    Calls& all = calls();
    size_t probe = (reinterpret_cast<uintptr_t>(function) * 0x9e3779b97f4a7c15ull) >> 50;
    Calls::Entry& entry = all.table[probe];
    if (entry.literal.load(std::memory_order_acquire) == function) {
        Counter* found = entry.counter.load(std::memory_order_relaxed);
        if (strcmp(found->name.c_str(), function) == 0) return *found;
    }
    std::lock_guard<std::mutex> guard(all.lock);
    std::unique_ptr<Counter>& named = all.by_name[function];
    if (named == nullptr) {
        named.reset(new Counter);
        named->name = function;
    }
    if (entry.literal.load(std::memory_order_relaxed) == nullptr) {  // first come stays: an entry never changes
        entry.counter.store(named.get(), std::memory_order_relaxed);
        entry.literal.store(function, std::memory_order_release);
    }
    return *named;
}

int struck(const char* function) {
    Calls& all = calls();
    std::lock_guard<std::mutex> guard(all.lock);
    int code = 0;
    for (size_t i = 0; i < all.faults.size();) {
        Fault& fault = all.faults[i];
        if ((fault.function != "*" && fault.function != function) || --fault.left != 0) {
            i++;
            continue;
        }
        if (fault.async) {
            this_call.async_code = fault.code;
            this_call.async_function = function;
        } else {
            code = fault.code;
        }
        all.faults.erase(all.faults.begin() + static_cast<std::ptrdiff_t>(i));
    }
    all.any_faults.store(!all.faults.empty(), std::memory_order_relaxed);
    if (code != 0)
        say("%s: injected fault %d (call %llu)", function, code, static_cast<unsigned long long>(this_call.sequence));
    return code;
}

// What a callback may still call: everything that neither allocates, frees, waits nor launches.
bool allowed_in_callback(const char* function) {
    static const char* const forbidden[] = {"Malloc",  "Free",  "Synchronize", "Memcpy",          "Memset", "Launch",
                                            "Destroy", "Reset", "Process",     "StreamWaitEvent", "Abort"};
    if (strncmp(function, "aclnn", 5) == 0) return strstr(function, "GetWorkspaceSize") != nullptr;
    if (strncmp(function, "aclrt", 5) != 0) return true;  // objects of the host
    for (const char* word : forbidden) {
        if (strstr(function, word) != nullptr) return false;
    }
    return true;
}

int count(const char* function) {
    Calls& all = calls();
    if (all.forked.load(std::memory_order_relaxed)) {
        return reject(ACL_ERROR_RT_INTERNAL_ERROR,
                      "%s: this process was forked from one that had initialised the device; the device cannot be used "
                      "here. Start processes by spawning, or initialise after forking",
                      function);
    }
    settings();  // reads ASCEND_EMULATOR_FAULT at the very first call
    this_call.sequence = all.sequence.fetch_add(1, std::memory_order_relaxed) + 1;
    this_call.async_code = 0;
    counter(function).calls.fetch_add(1, std::memory_order_relaxed);
    if (this_call.callbacks > 0 && !allowed_in_callback(function)) {
        violation("call-in-callback",
                  "%s was called from a callback; callbacks must not allocate, free, wait or launch", function);
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: not allowed inside a callback", function);
    }
    return 0;
}

bool read_fault(const std::string& text, Fault* fault, std::string* problem) {
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t colon; (colon = text.find(':', from)) != std::string::npos; from = colon + 1) {
        parts.push_back(text.substr(from, colon - from));
    }
    parts.push_back(text.substr(from));
    char* end = nullptr;
    *problem = "\"" + text + "\" is no fault; expected function:n:code or function:n:code:async, n from 1";
    if (parts.size() < 3 || parts.size() > 4 || parts[0].empty()) return false;
    fault->function = parts[0];
    fault->left = strtoull(parts[1].c_str(), &end, 10);
    if (*end != '\0' || fault->left == 0) return false;
    fault->code = static_cast<int>(strtol(parts[2].c_str(), &end, 10));
    if (*end != '\0' || fault->code == 0) return false;
    fault->async = parts.size() == 4 && parts[3] == "async";
    if (parts.size() == 4 && parts[3] != "async" && parts[3] != "call") return false;
    problem->clear();
    return true;
}

}  // namespace

int enter(const char* function) {
    if (int code = count(function)) return code;
    if (!calls().any_faults.load(std::memory_order_relaxed)) return 0;
    return finish(struck(function));
}

int enter_release(const char* function, int* fault) {
    *fault = 0;
    if (int code = count(function)) return code;
    if (calls().any_faults.load(std::memory_order_relaxed)) *fault = finish(struck(function));
    return 0;
}

uint64_t current_call() { return this_call.sequence; }
uint64_t call_count() { return calls().sequence.load(std::memory_order_relaxed); }
uint64_t function_calls(const char* function) { return counter(function).calls.load(std::memory_order_relaxed); }
uint64_t kernel_runs(const char* function) { return counter(function).kernels.load(std::memory_order_relaxed); }
uint64_t total_kernel_runs() { return calls().kernels.load(std::memory_order_relaxed); }

void count_kernel(const char* function) {
    counter(function).kernels.fetch_add(1, std::memory_order_relaxed);
    calls().kernels.fetch_add(1, std::memory_order_relaxed);
}

void reset_counters() {
    Calls& all = calls();
    std::lock_guard<std::mutex> guard(all.lock);
    for (auto& entry : all.by_name) {
        entry.second->calls.store(0, std::memory_order_relaxed);
        entry.second->kernels.store(0, std::memory_order_relaxed);
    }
    all.sequence.store(0, std::memory_order_relaxed);
    all.kernels.store(0, std::memory_order_relaxed);
}

bool forked() { return calls().forked.load(std::memory_order_relaxed); }

void note_initialised(bool initialised) { calls().initialised.store(initialised, std::memory_order_relaxed); }

void watch_forks() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
        Calls& all = calls();
        if (all.initialised.load(std::memory_order_relaxed)) all.forked.store(true, std::memory_order_relaxed);
    });
    if (registered != 0) say("aclInit: forks cannot be watched (pthread_atfork answered %d)", registered);
}

bool add_faults(const char* spec, std::string* problem) {
    std::vector<Fault> faults;
    std::string text = spec;
    size_t from = 0;
    while (from <= text.size()) {
        size_t end = std::min(text.find(';', from), text.size());
        std::string one = text.substr(from, end - from);
        from = end + 1;
        if (one.empty()) continue;
        Fault fault{};
        if (!read_fault(one, &fault, problem)) return false;
        faults.push_back(fault);
    }
    Calls& all = calls();
    std::lock_guard<std::mutex> guard(all.lock);
    all.faults.insert(all.faults.end(), faults.begin(), faults.end());
    all.any_faults.store(!all.faults.empty(), std::memory_order_relaxed);
    return true;
}

void clear_faults() {
    Calls& all = calls();
    std::lock_guard<std::mutex> guard(all.lock);
    all.faults.clear();
    all.any_faults.store(false, std::memory_order_relaxed);
}

int take_async_fault(const std::string& function) {
    if (this_call.async_code == 0 || this_call.async_function != function) return 0;
    int code = this_call.async_code;
    this_call.async_code = 0;
    return code;
}

CallbackScope::CallbackScope() { this_call.callbacks++; }
CallbackScope::~CallbackScope() { this_call.callbacks--; }

}  // namespace emu
