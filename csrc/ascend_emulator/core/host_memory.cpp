// Pinned host memory: made by the runtime or registered with it.
#include <cstdlib>
#include <cstring>

#include "arena.h"
#include "codes.h"
#include "contexts.h"
#include "streams.h"

namespace emu {

int host_malloc(void** out, size_t bytes, const char* by) {
    if (out == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: hostPtr is NULL", by);
    if (bytes == 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: size is 0", by);
    if (int code = require_context()) return code;
    void* pointer = nullptr;
    if (posix_memalign(&pointer, kAlign, round_up(bytes, kAlign)) != 0) {
        return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host has no %llu bytes", by, number(bytes));
    }
    memset(pointer, kFreshByte, bytes);
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    all.pinned[reinterpret_cast<uint64_t>(pointer)] = Pinned{bytes, false, by, current_call()};
    *out = pointer;
    return 0;
}

namespace {

int forget_pinned(void* pointer, bool registered, const char* by) {
    if (pointer == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: the pointer is NULL", by);
    int lost = require_context();
    if (lost != 0 && lost != ACL_ERROR_RT_LOST_HEARTBEAT) return lost;
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    Memory& all = memory();
    uint64_t bytes = 0;
    std::string what;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        auto found = all.pinned.find(address);
        if (found != all.pinned.end() && found->second.registered == registered) bytes = found->second.bytes;
        else what = tell_locked(all, address);
    }
    if (bytes == 0) {
        violation("bad-free", "%s(%p): not memory of %s, but %s", by, pointer,
                  registered ? "aclrtHostRegister" : "aclrtMallocHost", what.c_str());
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not memory of %s, but %s", by, pointer,
                      registered ? "aclrtHostRegister" : "aclrtMallocHost", what.c_str());
    }
    std::string user = task_that_needs(address, bytes);
    if (!user.empty()) violation("free-while-queued", "%s(%p), which %s still needs", by, pointer, user.c_str());
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.pinned.erase(address) == 0) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p was freed by another thread", by, pointer);
    }
    if (!registered) free(pointer);
    return lost;
}

}  // namespace

int host_free(void* pointer) { return forget_pinned(pointer, false, "aclrtFreeHost"); }
int host_unregister(void* pointer) { return forget_pinned(pointer, true, "aclrtHostUnregister"); }

int host_register(void* pointer, uint64_t bytes, int type, void** out) {
    if (pointer == nullptr || out == nullptr || bytes == 0) {
        return reject(ACL_ERROR_INVALID_PARAM,
                      "aclrtHostRegister: ptr and devPtr must not be NULL, size must not be 0");
    }
    if (type != 0) return reject(ACL_ERROR_INVALID_PARAM, "aclrtHostRegister: no register type %d", type);
    if (int code = require_context()) return code;
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    if (on_device(address))
        return reject(ACL_ERROR_RT_PARAM_INVALID, "aclrtHostRegister: %p is device memory", pointer);
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto next = all.pinned.lower_bound(address);
    bool overlaps = next != all.pinned.end() && next->first - address < bytes;
    if (next != all.pinned.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes) overlaps = true;
    if (overlaps) return reject(ACL_ERROR_RT_PARAM_INVALID, "aclrtHostRegister: %p is pinned already", pointer);
    all.pinned[address] = Pinned{bytes, true, "aclrtHostRegister", current_call()};
    *out = pointer;
    return 0;
}

}  // namespace emu
