// Device memory: giving it out and taking it back.
#include "memory.h"

#include <algorithm>
#include <cstring>

#include "arena.h"
#include "codes.h"
#include "contexts.h"
#include "streams.h"

namespace emu {

Memory& memory() {
    static Memory* all = new Memory;  // stream workers may reach memory while the process ends
    return *all;
}

namespace {

int refuse_room(const Arena& arena, int device, uint64_t asked, const char* by) {
    return reject(ACL_ERROR_RT_MEMORY_ALLOCATION,
                  "%s: out of memory on device %d: asked %llu bytes, %llu of %llu bytes are in use", by, device,
                  number(asked), number(arena.used), number(arena.capacity));
}

// Room in an arena for `room` counted bytes. The lock is held.
int carve(Memory& all, int device, uint64_t room, uint64_t asked, const char* by, uint64_t* offset, uint64_t* slot) {
    Arena& arena = all.arenas[static_cast<size_t>(device)];
    if (room > arena.capacity - arena.used) return refuse_room(arena, device, asked, by);
    *slot = round_up(room, kAlign) + kGuard;
    while (!arena.carve(*slot, offset)) {
        if (arena.resting.empty()) {
            return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: device %d has no %llu bytes in one piece", by, device,
                          number(asked));
        }
        arena.wake();
    }
    arena.used += room;
    return 0;
}

}  // namespace

namespace {

constexpr uint64_t kSmallestSpan = 16 << 20;

// Addresses for both faces, or neither.
bool map_faces(Arena& arena, uint64_t span) {
    void* face = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (face == MAP_FAILED) return false;
    void* body = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (body == MAP_FAILED) {
        munmap(face, span);
        return false;
    }
    arena.span = span;
    arena.face = static_cast<unsigned char*>(face);
    arena.body = static_cast<unsigned char*>(body);
    return true;
}

}  // namespace

int open_arena(int device, uint64_t capacity, const char* by) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.arenas.size() <= static_cast<size_t>(device)) all.arenas.resize(static_cast<size_t>(device) + 1);
    Arena& arena = all.arenas[static_cast<size_t>(device)];
    if (arena.open()) return 0;
    // Small blocks pay for their guards, and freed ones rest: addresses are cheap, so there are plenty. Where they are
    // not (ulimit -v), the first span that fits is halved once more: the rest of the process needs addresses too.
    uint64_t span = capacity <= (uint64_t{1} << 46) ? round_up(8 * capacity + (64 << 20), kPage) : 0;
    bool cramped = false;
    while (span >= kSmallestSpan && !map_faces(arena, span)) {
        cramped = true;
        span = round_up(span / 2, kPage);
    }
    if (arena.open() && cramped && span / 2 >= kSmallestSpan) {
        munmap(arena.face, arena.span);
        munmap(arena.body, arena.span);
        arena = Arena{};
        map_faces(arena, round_up(span / 2, kPage));
    }
    if (!arena.open()) {
        return reject(ACL_ERROR_RT_MEMORY_ALLOCATION,
                      "%s: the process may not map the addresses of device %d's memory of %llu bytes: raise its limit "
                      "(ulimit -v) or lower ASCEND_EMULATOR_MEMORY",
                      by, device, number(capacity));
    }
    madvise(arena.body, arena.span, MADV_DONTFORK);
    madvise(arena.body, arena.span, MADV_DONTDUMP);
    arena.capacity = std::min(capacity, arena.span / 2);
    arena.epoch = ++all.epochs;
    arena.gaps.clear();
    arena.gaps[kGuard] = arena.span - kGuard;
    arena.cursor = 0;
    return 0;
}

void close_arena(int device) {
    Memory& all = memory();
    std::vector<std::string> leaks;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        if (all.arenas.size() <= static_cast<size_t>(device)) return;
        Arena& arena = all.arenas[static_cast<size_t>(device)];
        if (!arena.open()) return;
        for (auto it = all.live.begin(); it != all.live.end();) {
            if (it->second.device != device) {
                ++it;
                continue;
            }
            leaks.push_back(words("%llu bytes at 0x%llx on device %d (%s, call %llu)", number(it->second.bytes),
                                  number(it->first), device, it->second.by, number(it->second.call)));
            all.note_freed(it->first, it->second, "device reset");
            it = all.live.erase(it);
        }
        munmap(arena.face, arena.span);
        munmap(arena.body, arena.span);
        arena = Arena{};
    }
    keep_leaks(std::move(leaks));
}

int device_malloc(void** out, size_t bytes, bool extra_pad, const char* by) {
    if (out == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: devPtr is NULL", by);
    if (bytes == 0) return reject(ACL_ERROR_INVALID_PARAM, "%s: size is 0", by);
    if (int code = require_context()) return code;
    int device = current_context()->device;
    if (bytes > (uint64_t{1} << 46)) {
        return reject(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: out of memory on device %d: asked %llu bytes", by, device,
                      number(bytes));
    }
    Allocation made;
    made.bytes = bytes;
    made.room = round_up(bytes, 32) + (extra_pad ? 32 : 0);
    if (lenient()) {
        // Behind an allocation there is memory on a device, too: padding, and twice the size for descriptors that say
        // INT64 of data of 4 bytes.
        made.room = round_up(2 * bytes, 32) + 64;
        made.bytes = made.room;
    }
    made.device = device;
    made.by = by;
    made.call = current_call();
    uint64_t address;
    Memory& all = memory();
    {
        std::lock_guard<std::mutex> guard(all.lock);
        uint64_t offset = 0;
        if (int code = carve(all, device, made.room, bytes, by, &offset, &made.slot)) return code;
        Arena& arena = all.arenas[static_cast<size_t>(device)];
        made.body = arena.body + offset;
        address = reinterpret_cast<uint64_t>(arena.face) + offset;
    }
    memset(made.body, kFreshByte, made.room);  // not under the lock: nobody reaches it before it is in the map
    {
        std::lock_guard<std::mutex> guard(all.lock);
        auto old = all.freed.lower_bound(address);  // what was here before is no longer worth telling
        while (old != all.freed.end() && old->first < address + made.slot) old = all.freed.erase(old);
        all.live[address] = made;
    }
    *out = reinterpret_cast<void*>(address);
    return 0;
}

int device_free(void* pointer, const char* by) {
    if (pointer == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: devPtr is NULL", by);
    // A lost device's memory is given back all the same: only the code tells.
    int lost = require_context();
    if (lost != 0 && lost != ACL_ERROR_RT_LOST_HEARTBEAT) return lost;
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    Memory& all = memory();
    uint64_t bytes = 0;
    std::string wrong;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        auto found = all.live.find(address);
        if (found == all.live.end() || found->second.mapped) {
            wrong = tell_locked(all, address);
        } else {
            bytes = found->second.bytes;
        }
    }
    if (bytes == 0) {
        bool again = wrong.find("freed by") != std::string::npos;
        violation(again ? "double-free" : "bad-free",
                  "%s(%p): not the start of a live allocation of aclrtMalloc, but %s", by, pointer, wrong.c_str());
        return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not the start of a live allocation of aclrtMalloc, but %s",
                      by, pointer, wrong.c_str());
    }
    std::string user = task_that_needs(address, bytes);
    if (!user.empty()) {
        violation("free-while-queued", "%s(%p), %llu bytes, which %s still needs", by, pointer, number(bytes),
                  user.c_str());
    }
    Allocation old;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        auto found = all.live.find(address);
        if (found == all.live.end()) {
            return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: %p was freed by another thread", by, pointer);
        }
        old = found->second;
        all.live.erase(found);
        all.note_freed(address, old, by);
    }
    memset(old.body, kFreedByte, old.room);
    std::lock_guard<std::mutex> guard(all.lock);
    Arena& arena = all.arenas[static_cast<size_t>(old.device)];
    arena.used -= old.room;
    arena.rest(static_cast<uint64_t>(old.body - arena.body), old.slot);
    return lost;
}

int memory_info(int attribute, size_t* free, size_t* total) {
    if (free == nullptr || total == nullptr) {
        return reject(ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo: %s is NULL", free == nullptr ? "free" : "total");
    }
    if (int code = require_context()) return code;
    if (attribute < 0 || attribute > 17) {
        return reject(ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo: no attribute %d", attribute);
    }
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    const Arena& arena = all.arenas[static_cast<size_t>(current_context()->device)];
    // Only the training chips have HBM and only the others have DDR; the kinds of pages share one pool.
    bool hbm = settings().chip != Chip::k310P && settings().chip != Chip::k310B;
    bool asked_hbm = attribute == 1 || attribute == 4 || attribute == 5;
    bool asked_ddr = attribute == 0 || attribute == 2 || attribute == 3;
    bool present = attribute == 12 || attribute == 13 || (hbm ? asked_hbm : asked_ddr);
    *total = present ? arena.capacity : 0;
    *free = present ? arena.capacity - arena.used : 0;
    return 0;
}

// -- for tests and tear-down -----------------------------------------------------------------------------------------

uint64_t live_bytes(int device) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    uint64_t sum = 0;
    for (const auto& entry : all.live) {
        if (device < 0 || entry.second.device == device) sum += entry.second.bytes;
    }
    return sum;
}

std::vector<std::string> memory_leaks() {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    std::vector<std::string> lines;
    for (const auto& entry : all.live) {
        lines.push_back(words("%llu bytes at 0x%llx on device %d (%s, call %llu)", number(entry.second.bytes),
                              number(entry.first), entry.second.device, entry.second.by, number(entry.second.call)));
    }
    for (const auto& entry : all.pinned) {
        lines.push_back(words("%llu bytes of host memory at 0x%llx (%s, call %llu)", number(entry.second.bytes),
                              number(entry.first), entry.second.by, number(entry.second.call)));
    }
    return lines;
}

void forget_memory() {
    Memory& all = memory();
    size_t arenas;
    {
        std::lock_guard<std::mutex> guard(all.lock);
        arenas = all.arenas.size();
    }
    for (size_t device = 0; device < arenas; device++) close_arena(static_cast<int>(device));
    std::lock_guard<std::mutex> guard(all.lock);
    for (const auto& entry : all.pinned) {
        if (!entry.second.registered) free(reinterpret_cast<void*>(entry.first));
    }
    for (const auto& entry : all.reserved) {
        munmap(reinterpret_cast<void*>(entry.first), entry.second.bytes);
        munmap(entry.second.body, entry.second.bytes);
    }
    all.pinned.clear();
    all.reserved.clear();
    all.live.clear();
    all.freed.clear();
    all.freed_order.clear();
}

// -- for vmm.cpp -----------------------------------------------------------------------------------------------------

int charge(int device, uint64_t bytes, const char* by, uint64_t* epoch) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    if (static_cast<size_t>(device) >= all.arenas.size() || !all.arenas[static_cast<size_t>(device)].open()) {
        return reject(ACL_ERROR_RT_CONTEXT_NULL, "%s: device %d is not set", by, device);
    }
    Arena& arena = all.arenas[static_cast<size_t>(device)];
    if (bytes > arena.capacity - arena.used) return refuse_room(arena, device, bytes, by);
    arena.used += bytes;
    *epoch = arena.epoch;
    return 0;
}

void discharge(int device, uint64_t bytes, uint64_t epoch) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    if (static_cast<size_t>(device) >= all.arenas.size()) return;
    Arena& arena = all.arenas[static_cast<size_t>(device)];
    if (arena.open() && arena.epoch == epoch) arena.used -= bytes;
}

void note_reserved(uint64_t begin, uint64_t bytes, unsigned char* body) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    all.reserved[begin] = Reserved{bytes, body};
}

bool find_reserved(uint64_t address, uint64_t* begin, uint64_t* bytes, unsigned char** body) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    if (!all.is_reserved(address)) return false;
    auto range = std::prev(all.reserved.upper_bound(address));
    *begin = range->first;
    *bytes = range->second.bytes;
    *body = range->second.body;
    return true;
}

void forget_reserved(uint64_t begin) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    all.reserved.erase(begin);
}

bool note_window(uint64_t address, uint64_t bytes, unsigned char* body, int device, const char* by) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto next = all.live.lower_bound(address);
    if (next != all.live.end() && next->first < address + bytes) return false;
    if (next != all.live.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes) return false;
    Allocation made;
    made.bytes = made.room = made.slot = bytes;
    made.body = body;
    made.device = device;
    made.by = by;
    made.call = current_call();
    made.mapped = true;
    all.live[address] = made;
    return true;
}

uint64_t forget_window(uint64_t address, const char* by) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto found = all.live.find(address);
    if (found == all.live.end() || !found->second.mapped) return 0;
    uint64_t bytes = found->second.bytes;
    all.note_freed(address, found->second, by);
    all.live.erase(found);
    return bytes;
}

}  // namespace emu
