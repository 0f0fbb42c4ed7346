// Initialisation, devices and contexts.
//
// A device has one default context, shared by every thread that sets the device and counted, and any number of explicit
// ones. Which context is current is a thread's own business; a context that was destroyed is current for nobody.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core.h"

namespace emu {

struct Context {
    int device = 0;  // index among the visible devices
    bool primary = false;
    void* handle = nullptr;
    const char* destroyed_by = "";
    std::atomic<bool> alive{true};
    std::atomic<int> failed{0};      // STOP_ON_FAILURE: the code after which nothing runs in this context any more
    void* default_stream = nullptr;  // its handle
    std::mutex lock;                 // guards what follows
    std::map<int, int64_t> options;
};

// The current context of this thread, when `require_context` was content.
EMU_API Context* current_context();
// For functions that work without one: 100001 before aclInit.
EMU_API int require_init(const char* by);
EMU_API int check_device(int device, const char* by);  // 107001 with a message
EMU_API bool device_lost(int device);

EMU_API int initialise(const char* config);
// aclnnInit alone is enough for aclrtSetDevice.
EMU_API void initialise_operators();
EMU_API int finalise(const char* by);
EMU_API int finalise_reference(uint64_t* count);

EMU_API int set_device(int device);
EMU_API int reset_device(int device, bool force);
EMU_API int get_device(int* device);
EMU_API int device_count();
EMU_API int primary_state(int device, uint32_t* flags, int32_t* active);

EMU_API int create_context(void** context, int device);
EMU_API int destroy_context(void* context);
EMU_API int set_current_context(void* context);
EMU_API int get_current_context(void** context);
EMU_API int get_option(bool of_context, int option, int64_t* value);
EMU_API int set_option(bool of_context, int option, int64_t value);

EMU_API int can_access_peer(int32_t* answer, int device, int peer);
EMU_API int enable_peer(int peer, uint32_t flags, bool enable);
EMU_API int peer_status(int device, int peer, int32_t* status);
bool peer_enabled(int device, int peer);

void lose_device(int device, bool lost);
bool initialised();
void forget_contexts();

}  // namespace emu
