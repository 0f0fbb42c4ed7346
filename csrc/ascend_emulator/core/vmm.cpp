// Virtual memory management: reserved addresses, physical memory, and windows that map one to the other.
//
// Physical memory is a memory file. A reserved range has a body beside its unreadable face, and mapping places the file
// into the body at the same offset: windows that follow each other are one range for a kernel, and physical memory
// mapped twice is seen twice.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "codes.h"
#include "contexts.h"
#include "handles.h"
#include "arena.h"
#include "state.h"
#include "streams.h"

namespace emu {

namespace {

struct Physical {
    int file = -1;
    int device = 0;
    uint64_t bytes = 0;
    uint64_t epoch = 0;

    ~Physical() {
        if (file >= 0) close(file);
        discharge(device, bytes, epoch);
    }
};

struct Windows {
    std::mutex lock;
    std::map<uint64_t, std::shared_ptr<Physical>> all;  // what each window shows: keeps it while the handle may be gone
};

Windows& windows() {
    static Windows* all = new Windows;
    return *all;
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

int reserve_address(void** out, size_t bytes, size_t alignment, void* expected, uint64_t flags) {
    const char* by = "aclrtReserveMemAddress";
    if (out == nullptr || bytes == 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: virPtr is NULL or size is 0", by);
    if (alignment != 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: alignment must be 0", by);
    if (expected != nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: expectPtr must be NULL", by);
    if (flags > 1) return reject(ACL_ERROR_INVALID_PARAM, "%s: flags must be 0 or 1, got %llu", by, number(flags));
    if (int code = require_context()) return code;
    uint64_t span = (bytes + kPhysicalGranularity - 1) / kPhysicalGranularity * kPhysicalGranularity;
    void* face = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (face == MAP_FAILED) return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no %llu addresses", by, number(bytes));
    void* body = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (body == MAP_FAILED) {
        munmap(face, span);
        return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no %llu addresses", by, number(bytes));
    }
    note_reserved(address_of(face), span, static_cast<unsigned char*>(body));
    *out = face;
    return 0;
}

int release_address(void* pointer) {
    const char* by = "aclrtReleaseMemAddress";
    if (pointer == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: virPtr is NULL", by);
    uint64_t begin = 0, bytes = 0;
    unsigned char* body = nullptr;
    if (!find_reserved(address_of(pointer), &begin, &bytes, &body) || begin != address_of(pointer)) {
        violation("bad-free", "%s(%p): no address of aclrtReserveMemAddress", by, pointer);
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is no address of aclrtReserveMemAddress", by, pointer);
    }
    Windows& in = windows();
    std::lock_guard<std::mutex> guard(in.lock);
    auto window = in.all.lower_bound(begin);
    if (window != in.all.end() && window->first < begin + bytes) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: memory is still mapped at 0x%llx", by, number(window->first));
    }
    forget_reserved(begin);
    munmap(pointer, bytes);
    munmap(body, bytes);
    return 0;
}

int malloc_physical(void** handle, size_t bytes, int device, uint64_t flags) {
    const char* by = "aclrtMallocPhysical";
    if (handle == nullptr || bytes == 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: handle is NULL or size is 0", by);
    if (flags != 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: flags must be 0, got %llu", by, number(flags));
    if (bytes % kPhysicalGranularity != 0) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: size must be a multiple of %llu, got %llu", by,
                      number(kPhysicalGranularity), number(bytes));
    }
    if (int code = require_context()) return code;
    if (int code = check_device(device, by)) return code;
    uint64_t epoch = 0;
    if (int code = charge(device, bytes, by, &epoch)) return code;
    auto physical = std::make_shared<Physical>();
    physical->device = device;
    physical->bytes = bytes;
    physical->epoch = epoch;
    physical->file = memfd_create("ascend_emulator", MFD_CLOEXEC);
    void* body = MAP_FAILED;
    if (physical->file >= 0 && ftruncate(physical->file, static_cast<off_t>(bytes)) == 0) {
        body = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->file, 0);
    }
    if (body == MAP_FAILED)
        return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host has no %llu bytes", by, number(bytes));
    memset(body, kFreshByte, bytes);
    munmap(body, bytes);
    *handle = handles().create(Kind::physical_memory, by, physical);
    return 0;
}

int free_physical(void* handle) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "aclrtFreePhysical: handle is NULL");
    auto physical = handles().destroy<Physical>(Kind::physical_memory, handle, "aclrtFreePhysical");
    return physical == nullptr ? finish(ACL_ERROR_RT_INVALID_HANDLE) : 0;
}

int map_memory(void* pointer, size_t bytes, size_t offset, void* handle, uint64_t flags) {
    const char* by = "aclrtMapMem";
    if (pointer == nullptr || bytes == 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: virPtr is NULL or size is 0", by);
    if (offset != 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: offset must be 0, got %llu", by, number(offset));
    if (flags != 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: flags must be 0, got %llu", by, number(flags));
    if (int code = require_context()) return code;
    auto physical = handles().find<Physical>(Kind::physical_memory, handle, by);
    if (physical == nullptr) return finish(handle == nullptr ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_INVALID_HANDLE);
    if (bytes != physical->bytes) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: size %llu is not the %llu of the physical memory", by,
                      number(bytes), number(physical->bytes));
    }
    uint64_t address = address_of(pointer), begin = 0, span = 0;
    unsigned char* body = nullptr;
    if (!find_reserved(address, &begin, &span, &body) || bytes > span - (address - begin) ||
        (address - begin) % kPhysicalGranularity != 0) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p, %llu bytes, is not a granule of one reserved range", by,
                      pointer, number(bytes));
    }
    Windows& in = windows();
    std::lock_guard<std::mutex> guard(in.lock);
    unsigned char* place = body + (address - begin);
    if (!note_window(address, bytes, place, physical->device, by)) {
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: memory is mapped at %p already", by, pointer);
    }
    void* mapped = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, 0);
    if (mapped == MAP_FAILED) {
        forget_window(address, by);
        return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot map %llu bytes", by, number(bytes));
    }
    in.all[address] = physical;
    return 0;
}

int unmap_memory(void* pointer) {
    const char* by = "aclrtUnmapMem";
    if (pointer == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: virPtr is NULL", by);
    Windows& in = windows();
    uint64_t address = address_of(pointer), begin = 0, span = 0;
    unsigned char* body = nullptr;
    {
        std::lock_guard<std::mutex> guard(in.lock);
        auto window = in.all.find(address);
        if (window == in.all.end() || !find_reserved(address, &begin, &span, &body)) {
            violation("bad-free", "%s(%p): no memory is mapped there", by, pointer);
            return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: no memory is mapped at %p", by, pointer);
        }
        span = window->second->bytes;
    }
    std::string user = task_that_needs(address, span);
    if (!user.empty()) violation("free-while-queued", "%s(%p), which %s still needs", by, pointer, user.c_str());
    std::shared_ptr<Physical> physical;  // let go of after the lock
    std::lock_guard<std::mutex> guard(in.lock);
    auto window = in.all.find(address);
    if (window == in.all.end()) return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: no memory is mapped at %p", by, pointer);
    physical = window->second;
    in.all.erase(window);
    forget_window(address, by);
    mmap(body + (address - begin), span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return 0;
}

void forget_virtual_memory() {
    Windows& in = windows();
    std::lock_guard<std::mutex> guard(in.lock);
    in.all.clear();
}

}  // namespace emu
