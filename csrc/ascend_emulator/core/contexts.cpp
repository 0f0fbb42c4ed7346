// Initialisation, devices, contexts: who may use what from which thread.
#include "contexts.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "codes.h"
#include "handles.h"
#include "memory.h"
#include "state.h"
#include "streams.h"

namespace emu {

namespace {

constexpr int kMostDevices = 16;

struct Device {
    uint64_t users = 0;  // aclrtSetDevice minus aclrtResetDevice
    std::shared_ptr<Context> primary;
    std::vector<std::shared_ptr<Context>> explicit_ones;
    std::set<int> peers;
};

struct World {
    std::mutex lock;
    uint64_t inits = 0;
    Device devices[kMostDevices];
    std::map<int, int64_t> options;
    std::atomic<bool> ready{false};
    std::atomic<bool> lost[kMostDevices] = {};
};

World& world() {
    static World* all = new World;
    return *all;
}

thread_local std::shared_ptr<Context> current;

std::shared_ptr<Context> make_context(int device, bool primary, const char* by) {
    auto context = std::make_shared<Context>();
    context->device = device;
    context->primary = primary;
    context->handle = handles().create(Kind::context, by, context, primary);
    context->default_stream = make_default_stream(context);
    return context;
}

// Ends a context: its streams, then itself. The world's lock is not held: streams finish their work first.
void end_context(const std::shared_ptr<Context>& context, const char* by) {
    close_streams(context.get(), by);
    context->destroyed_by = by;
    context->alive.store(false);
    if (handles().is(Kind::context, context->handle)) handles().destroy<Context>(Kind::context, context->handle, by);
}

// Everything of one device goes: contexts, streams, memory.
void end_device(int device, const char* by) {
    std::vector<std::shared_ptr<Context>> contexts;
    {
        World& all = world();
        std::lock_guard<std::mutex> guard(all.lock);
        Device& it = all.devices[device];
        contexts.swap(it.explicit_ones);
        if (it.primary != nullptr) contexts.push_back(std::move(it.primary));
        it.primary.reset();
        it.users = 0;
        it.peers.clear();
    }
    for (const auto& context : contexts) {
        if (!context->primary) keep_leaks({handles().describe(context->handle)});  // its owner should have destroyed it
        end_context(context, by);
    }
    close_arena(device);
}

void report(const std::vector<std::string>& leaks) {
    if (!report_leaks()) return;
    fprintf(stderr, "ascend emulator: %zu leak%s at aclFinalize\n", leaks.size(), leaks.size() == 1 ? "" : "s");
    for (const std::string& line : leaks) fprintf(stderr, "ascend emulator: leak: %s\n", line.c_str());
}

}  // namespace

bool initialised() { return world().ready.load(); }

int require_init(const char* by) {
    if (initialised()) return 0;
    return reject(ACL_ERROR_UNINITIALIZE, "%s: aclInit has not been called", by);
}

Context* current_context() { return current.get(); }

bool device_lost(int device) { return world().lost[device].load(std::memory_order_relaxed); }

int require_context() {
    if (forked()) return reject(ACL_ERROR_RT_INTERNAL_ERROR, "the device cannot be used in a forked process");
    Context* context = current.get();
    if (context == nullptr || !context->alive.load(std::memory_order_acquire)) {
        if (int code = require_init("a call that needs a context")) return code;
        if (context != nullptr) {
            return reject(ACL_ERROR_RT_CONTEXT_NULL,
                          "this thread's current context was destroyed by %s; call "
                          "aclrtSetDevice or aclrtSetCurrentContext",
                          context->destroyed_by);
        }
        return reject(ACL_ERROR_RT_CONTEXT_NULL,
                      "this thread has no current context; call aclrtSetDevice or "
                      "aclrtSetCurrentContext on it");
    }
    if (device_lost(context->device)) {
        return reject(ACL_ERROR_RT_LOST_HEARTBEAT, "device %d is lost (no heartbeat)", context->device);
    }
    return 0;
}

int check_device(int device, const char* by) {
    int count = device_count();
    if (device >= 0 && device < count) return 0;
    return reject(ACL_ERROR_RT_INVALID_DEVICEID, "%s: no device %d; %d device%s visible", by, device, count,
                  count == 1 ? " is" : "s are");
}

int device_count() { return static_cast<int>(visible_devices().size()); }

// -- initialisation --------------------------------------------------------------------------------------------------

int initialise(const char* config) {
    World& all = world();
    if (config != nullptr && *config != '\0') {
        FILE* file = fopen(config, "r");
        if (file == nullptr) return reject(ACL_ERROR_INVALID_FILE, "aclInit: cannot read %s", config);
        int byte = fgetc(file);
        while (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') byte = fgetc(file);
        fclose(file);
        if (byte != '{') return reject(ACL_ERROR_INVALID_FILE, "aclInit: %s holds no JSON object", config);
    }
    watch_forks();
    quiet_at_exit();
    std::lock_guard<std::mutex> guard(all.lock);
    all.inits++;
    all.ready.store(true);
    note_initialised(true);
    if (all.inits > 1) {
        return reject(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: called %llu times; this is only counted",
                      static_cast<unsigned long long>(all.inits));
    }
    return 0;
}

void initialise_operators() {
    watch_forks();
    quiet_at_exit();
    std::lock_guard<std::mutex> guard(world().lock);
    world().ready.store(true);
    note_initialised(true);
}

int finalise(const char* by) {
    World& all = world();
    {
        std::lock_guard<std::mutex> guard(all.lock);
        if (all.inits == 0) return reject(ACL_ERROR_REPEAT_FINALIZE, "%s: nothing is initialised", by);
        all.inits = 0;
    }
    // Work in flight holds what it needs; only what is left after it is a leak.
    for (const auto& stream : streams_of(nullptr, -1)) stream->wait_for(stream->last(), 10000, 0);
    std::vector<std::string> before = kept_leaks();
    std::vector<std::string> leaks = handles().leaks();
    for (std::string& line : memory_leaks()) leaks.push_back(std::move(line));
    for (int device = 0; device < kMostDevices; device++) {
        {
            std::lock_guard<std::mutex> guard(all.lock);
            if (all.devices[device].users > 0) {
                leaks.push_back("device " + std::to_string(device) + " set and never reset");
            }
        }
        end_device(device, by);
    }
    clear_leaks();  // what closing found is in the list already
    leaks.insert(leaks.begin(), before.begin(), before.end());
    keep_leaks(leaks);
    report(leaks);
    all.ready.store(false);
    note_initialised(false);
    return 0;
}

int finalise_reference(uint64_t* count) {
    World& all = world();
    uint64_t left;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        if (all.inits == 0) return reject(ACL_ERROR_REPEAT_FINALIZE, "aclFinalizeReference: nothing is initialised");
        left = all.inits - 1;
        if (left > 0) all.inits = left;
    }
    if (count != nullptr) *count = left;
    return left > 0 ? 0 : finalise("aclFinalizeReference");
}

// -- devices ---------------------------------------------------------------------------------------------------------

int set_device(int device) {
    if (int code = require_init("aclrtSetDevice")) return code;
    if (int code = check_device(device, "aclrtSetDevice")) return code;
    if (device_lost(device)) {
        return reject(ACL_ERROR_RT_LOST_HEARTBEAT, "aclrtSetDevice: device %d is lost (no heartbeat)", device);
    }
    World& all = world();
    std::lock_guard<std::mutex> guard(all.lock);
    Device& it = all.devices[device];
    if (it.primary == nullptr) {
        if (int code = open_arena(device, settings().memory, "aclrtSetDevice")) return code;
        it.primary = make_context(device, true, "aclrtSetDevice");
    }
    it.users++;
    current = it.primary;
    return 0;
}

int reset_device(int device, bool force) {
    const char* by = force ? "aclrtResetDeviceForce" : "aclrtResetDevice";
    if (int code = require_init(by)) return code;
    if (int code = check_device(device, by)) return code;
    World& all = world();
    {
        std::lock_guard<std::mutex> guard(all.lock);
        Device& it = all.devices[device];
        if (it.users == 0) { return reject(ACL_ERROR_RT_CONTEXT_NULL, "%s: device %d is not set", by, device); }
        it.users--;
        if (it.users > 0 && !force) return 0;
    }
    end_device(device, by);
    if (current != nullptr && current->device == device) current.reset();
    return 0;
}

int get_device(int* device) {
    if (device == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtGetDevice: deviceId is NULL");
    if (current == nullptr || !current->alive.load()) {
        return reject(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetDevice: this thread has set no device");
    }
    *device = current->device;
    return 0;
}

int primary_state(int device, uint32_t* flags, int32_t* active) {
    if (int code = check_device(device, "aclrtGetPrimaryCtxState")) return code;
    World& all = world();
    std::lock_guard<std::mutex> guard(all.lock);
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = all.devices[device].primary != nullptr ? 1 : 0;
    return 0;
}

void lose_device(int device, bool lost) {
    world().lost[device].store(lost);
    if (!lost) return;
    for (const auto& stream : streams_of(nullptr, device)) stream->abandon(ACL_ERROR_RT_LOST_HEARTBEAT);
}

// -- contexts --------------------------------------------------------------------------------------------------------

int create_context(void** context, int device) {
    if (context == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtCreateContext: context is NULL");
    if (int code = require_init("aclrtCreateContext")) return code;
    if (int code = check_device(device, "aclrtCreateContext")) return code;
    if (device_lost(device)) {
        return reject(ACL_ERROR_RT_LOST_HEARTBEAT, "aclrtCreateContext: device %d is lost (no heartbeat)", device);
    }
    World& all = world();
    std::lock_guard<std::mutex> guard(all.lock);
    if (int code = open_arena(device, settings().memory, "aclrtCreateContext")) return code;
    std::shared_ptr<Context> made = make_context(device, false, "aclrtCreateContext");
    all.devices[device].explicit_ones.push_back(made);
    *context = made->handle;
    current = made;
    return 0;
}

int destroy_context(void* context) {
    if (context == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtDestroyContext: context is NULL");
    std::shared_ptr<Context> found;
    if (handles().is(Kind::context, context))
        found = handles().find<Context>(Kind::context, context, "aclrtDestroyContext");
    if (found == nullptr) {
        handles().destroy<Context>(Kind::context, context, "aclrtDestroyContext");  // for the diagnosis
        return finish(ACL_ERROR_RT_INVALID_HANDLE);
    }
    if (found->primary) {
        return reject(ACL_ERROR_RT_PARAM_INVALID,
                      "aclrtDestroyContext: the default context of device %d goes with "
                      "aclrtResetDevice, not by aclrtDestroyContext",
                      found->device);
    }
    World& all = world();
    bool last;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        Device& it = all.devices[found->device];
        auto& list = it.explicit_ones;
        list.erase(std::remove(list.begin(), list.end(), found), list.end());
        last = it.users == 0 && list.empty();
    }
    end_context(found, "aclrtDestroyContext");
    if (current == found) current.reset();
    if (last) close_arena(found->device);
    return 0;
}

int set_current_context(void* context) {
    if (context == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtSetCurrentContext: context is NULL");
    auto found = handles().find<Context>(Kind::context, context, "aclrtSetCurrentContext");
    if (found == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    current = found;
    return 0;
}

int get_current_context(void** context) {
    if (context == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtGetCurrentContext: context is NULL");
    if (int code = require_context()) return code;
    *context = current->handle;
    return 0;
}

int get_option(bool of_context, int option, int64_t* value) {
    const char* by = of_context ? "aclrtCtxGetSysParamOpt" : "aclrtGetSysParamOpt";
    if (value == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: value is NULL", by);
    if (option < 0 || option > 3) return reject(ACL_ERROR_INVALID_PARAM, "%s: no option %d", by, option);
    if (!of_context) {
        World& all = world();
        std::lock_guard<std::mutex> guard(all.lock);
        auto found = all.options.find(option);
        *value = found == all.options.end() ? 0 : found->second;
        return 0;
    }
    if (int code = require_context()) return code;
    std::lock_guard<std::mutex> guard(current->lock);
    auto found = current->options.find(option);
    if (found == current->options.end()) {
        return reject(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "%s: option %d is not set in this context", by, option);
    }
    *value = found->second;
    return 0;
}

int set_option(bool of_context, int option, int64_t value) {
    const char* by = of_context ? "aclrtCtxSetSysParamOpt" : "aclrtSetSysParamOpt";
    if (option < 0 || option > 3) return reject(ACL_ERROR_INVALID_PARAM, "%s: no option %d", by, option);
    int64_t most = option == 0 ? 3 : 1;
    if (value < 0 || value > most) {
        return reject(ACL_ERROR_INVALID_PARAM, "%s: option %d takes 0 to %lld, got %lld", by, option,
                      static_cast<long long>(most), static_cast<long long>(value));
    }
    if (!of_context) {
        World& all = world();
        std::lock_guard<std::mutex> guard(all.lock);
        all.options[option] = value;
        return 0;
    }
    if (int code = require_context()) return code;
    std::lock_guard<std::mutex> guard(current->lock);
    current->options[option] = value;
    return 0;
}

// -- peers -----------------------------------------------------------------------------------------------------------

int can_access_peer(int32_t* answer, int device, int peer) {
    const char* by = "aclrtDeviceCanAccessPeer";
    if (answer == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: canAccessPeer is NULL", by);
    if (int code = check_device(device, by)) return code;
    if (int code = check_device(peer, by)) return code;
    *answer = device != peer ? 1 : 0;
    return 0;
}

int enable_peer(int peer, uint32_t flags, bool enable) {
    const char* by = enable ? "aclrtDeviceEnablePeerAccess" : "aclrtDeviceDisablePeerAccess";
    if (int code = require_context()) return code;
    if (int code = check_device(peer, by)) return code;
    if (flags != 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: flags must be 0, got %u", by, flags);
    if (peer == current->device) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: device %d is the current device", by, peer);
    }
    World& all = world();
    std::lock_guard<std::mutex> guard(all.lock);
    std::set<int>& peers = all.devices[current->device].peers;
    if (enable) peers.insert(peer);
    else peers.erase(peer);
    return 0;
}

int peer_status(int device, int peer, int32_t* status) {
    const char* by = "aclrtDevicePeerAccessStatus";
    if (status == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: status is NULL", by);
    if (int code = check_device(device, by)) return code;
    if (int code = check_device(peer, by)) return code;
    *status = peer_enabled(device, peer) ? 1 : 0;
    return 0;
}

bool peer_enabled(int device, int peer) {
    World& all = world();
    std::lock_guard<std::mutex> guard(all.lock);
    return all.devices[device].peers.count(peer) != 0;
}

void forget_contexts() {
    World& all = world();
    for (int device = 0; device < kMostDevices; device++) {
        all.lost[device].store(false);
        end_device(device, "ascendEmulatorReset");
    }
    current.reset();
    std::lock_guard<std::mutex> guard(all.lock);
    all.inits = 0;
    all.ready.store(false);
    all.options.clear();
    note_initialised(false);
}

}  // namespace emu
