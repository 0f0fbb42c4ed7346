// Device memory: arenas, allocations, and the checks every access passes.
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "codes.h"
#include "contexts.h"
#include "state.h"
#include "streams.h"

namespace emu {

namespace {

constexpr uint64_t kAlign = 64;
constexpr uint64_t kGuard = 192;  // between neighbours; keeps addresses 64-byte aligned and usually no more than that
constexpr uint64_t kPage = 4096;
constexpr uint64_t kQuarantine = 64 << 20;
constexpr size_t kHistory = 4096;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

struct Allocation {
    uint64_t bytes = 0;  // as asked for: what a kernel may touch
    uint64_t room = 0;   // with the documented padding: what the device counts
    uint64_t slot = 0;   // with the guard
    unsigned char* body = nullptr;
    int device = -1;
    const char* by = "";
    uint64_t call = 0;
    bool mapped = false;  // a window on physical memory: not to be freed by aclrtFree
};

struct Freed {
    uint64_t bytes;
    const char* made_by;
    uint64_t made_at;
    const char* by;
    uint64_t call;
};

// One device's memory. Offsets are the same in the face and in the body.
struct Arena {
    unsigned char* face = nullptr;
    unsigned char* body = nullptr;
    uint64_t span = 0;      // of addresses: larger than the capacity, so that freed addresses can rest
    uint64_t capacity = 0;
    uint64_t used = 0;
    uint64_t epoch = 0;
    std::map<uint64_t, uint64_t> gaps;  // offset -> bytes
    std::deque<std::pair<uint64_t, uint64_t>> resting;
    uint64_t resting_bytes = 0;
    uint64_t cursor = 0;

    bool open() const { return face != nullptr; }

    bool carve(uint64_t bytes, uint64_t* offset) {
        auto fits = [bytes](const std::pair<const uint64_t, uint64_t>& gap) { return gap.second >= bytes; };
        auto gap = std::find_if(gaps.lower_bound(cursor), gaps.end(), fits);
        if (gap == gaps.end()) gap = std::find_if(gaps.begin(), gaps.end(), fits);
        if (gap == gaps.end()) return false;
        *offset = gap->first;
        uint64_t left = gap->second - bytes;
        gaps.erase(gap);
        if (left > 0) gaps[*offset + bytes] = left;
        cursor = *offset + bytes;
        return true;
    }

    void join(uint64_t offset, uint64_t bytes) {
        // Whole pages go back to the system: memory that was freed costs nothing.
        uint64_t first = round_up(offset, kPage);
        uint64_t last = (offset + bytes) / kPage * kPage;
        if (last > first + 16 * kPage) madvise(body + first, last - first, MADV_DONTNEED);
        auto next = gaps.lower_bound(offset);
        if (next != gaps.end() && next->first == offset + bytes) {
            bytes += next->second;
            next = gaps.erase(next);
        }
        if (next != gaps.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == offset) {
                before->second += bytes;
                return;
            }
        }
        gaps[offset] = bytes;
    }

    void rest(uint64_t offset, uint64_t bytes) {
        resting.emplace_back(offset, bytes);
        resting_bytes += bytes;
        while (resting_bytes > kQuarantine && resting.size() > 1) wake();
    }

    void wake() {
        join(resting.front().first, resting.front().second);
        resting_bytes -= resting.front().second;
        resting.pop_front();
    }
};

struct Pinned {
    uint64_t bytes;
    bool registered;  // by aclrtHostRegister: not ours to release
    const char* by;
    uint64_t call;
};

struct Reserved {
    uint64_t bytes;
    unsigned char* body;
};

struct Memory {
    std::mutex lock;
    uint64_t epochs = 0;
    std::vector<Arena> arenas;
    std::map<uint64_t, Allocation> live;  // by address
    std::map<uint64_t, Freed> freed;      // the last ones
    std::deque<uint64_t> freed_order;
    std::map<uint64_t, Pinned> pinned;
    std::map<uint64_t, Reserved> reserved;

    Arena* arena_of(uint64_t address, int* device = nullptr) {
        for (size_t i = 0; i < arenas.size(); i++) {
            uint64_t face = reinterpret_cast<uint64_t>(arenas[i].face);
            if (arenas[i].open() && address >= face && address - face < arenas[i].span) {
                if (device != nullptr) *device = static_cast<int>(i);
                return &arenas[i];
            }
        }
        return nullptr;
    }

    bool is_reserved(uint64_t address) {
        auto after = reserved.upper_bound(address);
        if (after == reserved.begin()) return false;
        auto range = std::prev(after);
        return address - range->first < range->second.bytes;
    }

    // How many bytes from the address on are live and lie together in the body. Windows on physical memory may follow
    // each other; allocations never do.
    uint64_t reachable(std::map<uint64_t, Allocation>::iterator found, uint64_t address) {
        uint64_t end = found->first + found->second.bytes;
        for (auto next = std::next(found); next != live.end() && found->second.mapped && next->second.mapped &&
                                           next->first == end && next->second.body == found->second.body + (end - found->first);
             ++next) {
            end += next->second.bytes;
        }
        return address < end ? end - address : 0;
    }

    std::map<uint64_t, Allocation>::iterator at_or_before(uint64_t address) {
        auto after = live.upper_bound(address);
        return after == live.begin() ? live.end() : std::prev(after);
    }

    void note_freed(uint64_t address, const Allocation& old, const char* by) {
        freed[address] = Freed{old.bytes, old.by, old.call, by, current_call()};
        freed_order.push_back(address);
        if (freed_order.size() > kHistory) {
            freed.erase(freed_order.front());
            freed_order.pop_front();
        }
    }
};

Memory& memory() {
    static Memory* all = new Memory;
    return *all;
}

unsigned long long number(uint64_t value) { return static_cast<unsigned long long>(value); }

std::string words(const char* format, ...) EMU_PRINTF(1, 2);
std::string words(const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string text = format_text(format, args);
    va_end(args);
    return text;
}

std::string tell_locked(Memory& all, uint64_t address) {
    auto found = all.at_or_before(address);
    if (found != all.live.end() && address - found->first < found->second.room) {
        const Allocation& it = found->second;
        return words("byte %llu of the %llu bytes at 0x%llx (%s, call %llu)", number(address - found->first),
                     number(it.bytes), number(found->first), it.by, number(it.call));
    }
    auto after = all.freed.upper_bound(address);
    if (after != all.freed.begin()) {
        auto old = std::prev(after);
        if (address - old->first < std::max<uint64_t>(old->second.bytes, 1)) {
            const Freed& it = old->second;
            return words("byte %llu of %llu bytes at 0x%llx freed by %s (call %llu; made by %s, call %llu)",
                         number(address - old->first), number(it.bytes), number(old->first), it.by, number(it.call),
                         it.made_by, number(it.made_at));
        }
    }
    if (found != all.live.end() && address - found->first < found->second.slot) {
        return words("%llu bytes past the end of the %llu bytes at 0x%llx (%s, call %llu)",
                     number(address - found->first - found->second.bytes), number(found->second.bytes),
                     number(found->first), found->second.by, number(found->second.call));
    }
    int device = 0;
    if (all.arena_of(address, &device) != nullptr) return words("unallocated memory of device %d", device);
    if (all.is_reserved(address)) return "a reserved address with no memory mapped to it";
    auto host = all.pinned.upper_bound(address);
    if (host != all.pinned.begin() && address - std::prev(host)->first < std::prev(host)->second.bytes) {
        return words("pinned host memory (%s, call %llu)", std::prev(host)->second.by,
                     number(std::prev(host)->second.call));
    }
    return "host memory";
}

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

void open_arena(int device, uint64_t capacity) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.arenas.size() <= static_cast<size_t>(device)) all.arenas.resize(static_cast<size_t>(device) + 1);
    Arena& arena = all.arenas[static_cast<size_t>(device)];
    if (arena.open()) return;
    // Small blocks pay for their guards, and freed ones rest: addresses are cheap, so there are plenty.
    arena.span = round_up(8 * capacity + (64 << 20), kPage);
    void* face = mmap(nullptr, arena.span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* body = mmap(nullptr, arena.span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (face == MAP_FAILED || body == MAP_FAILED) {
        fprintf(stderr, "ascend emulator: cannot map %llu bytes for device %d\n", number(arena.span), device);
        abort();
    }
    madvise(body, arena.span, MADV_DONTFORK);
    arena.face = static_cast<unsigned char*>(face);
    arena.body = static_cast<unsigned char*>(body);
    arena.capacity = capacity;
    arena.epoch = ++all.epochs;
    arena.gaps.clear();
    arena.gaps[kGuard] = arena.span - kGuard;
    arena.cursor = 0;
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
        violation(again ? "double-free" : "bad-free", "%s(%p): not the start of a live allocation of aclrtMalloc, but %s",
                  by, pointer, wrong.c_str());
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

unsigned char* reach(uint64_t address, uint64_t bytes, const char* what) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto found = all.at_or_before(address);
    if (found != all.live.end()) {
        const Allocation& it = found->second;
        uint64_t offset = address - found->first;
        uint64_t there = all.reachable(found, address);
        if (there > 0 && bytes <= there) return it.body + offset;
        if (there > 0) {
            throw DeviceFault{ACL_ERROR_RT_AICORE_EXCEPTION,
                              words("%s: %llu bytes at 0x%llx end %llu bytes past the end of the %llu bytes at 0x%llx "
                                    "(%s, call %llu)", what, number(bytes), number(address),
                                    number(bytes - there), number(it.bytes), number(found->first), it.by,
                                    number(it.call))};
        }
    }
    throw DeviceFault{ACL_ERROR_RT_AICORE_EXCEPTION,
                      words("%s: %llu bytes at 0x%llx are not in a live allocation: %s", what, number(bytes),
                            number(address), tell_locked(all, address).c_str())};
}

bool live(uint64_t address, uint64_t bytes) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto found = all.at_or_before(address);
    if (found == all.live.end()) return false;
    uint64_t there = all.reachable(found, address);
    return there > 0 && bytes <= there;
}

bool on_device(uint64_t address) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    return all.arena_of(address) != nullptr || all.is_reserved(address);
}

Where classify(const void* pointer) {
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    Where where;
    auto found = all.at_or_before(address);
    if (found != all.live.end() && address - found->first < found->second.bytes) {
        where.place = Place::device;
        where.device = found->second.device;
        where.begin = found->first;
        where.bytes = found->second.bytes;
        where.page = found->second.bytes >= (2 << 20) ? 2 << 20 : kPage;
        return where;
    }
    if (all.arena_of(address, &where.device) != nullptr || all.is_reserved(address)) {
        where.place = Place::device;
        return where;
    }
    auto host = all.pinned.upper_bound(address);
    if (host != all.pinned.begin()) {
        host = std::prev(host);
        if (address - host->first < host->second.bytes) {
            where.place = Place::pinned;
            where.begin = host->first;
            where.bytes = host->second.bytes;
            where.page = kPage;
        }
    }
    return where;
}

std::string tell(uint64_t address) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    return tell_locked(all, address);
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
    bool hbm = settings().chip == Chip::k910B || settings().chip == Chip::k910A;
    bool asked_hbm = attribute == 1 || attribute == 4 || attribute == 5;
    bool asked_ddr = attribute == 0 || attribute == 2 || attribute == 3;
    bool present = attribute == 12 || attribute == 13 || (hbm ? asked_hbm : asked_ddr);
    *total = present ? arena.capacity : 0;
    *free = present ? arena.capacity - arena.used : 0;
    return 0;
}

// -- pinned host memory ----------------------------------------------------------------------------------------------

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
        return reject(ACL_ERROR_INVALID_PARAM, "aclrtHostRegister: ptr and devPtr must not be NULL, size must not be 0");
    }
    if (type != 0) return reject(ACL_ERROR_INVALID_PARAM, "aclrtHostRegister: no register type %d", type);
    if (int code = require_context()) return code;
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    if (on_device(address)) return reject(ACL_ERROR_RT_PARAM_INVALID, "aclrtHostRegister: %p is device memory", pointer);
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

bool inspect(uint64_t address, uint64_t bytes, unsigned char* out) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto found = all.at_or_before(address);
    if (found != all.live.end() && address - found->first <= found->second.room &&
        bytes <= found->second.room - (address - found->first)) {
        memcpy(out, found->second.body + (address - found->first), bytes);
        return true;
    }
    Arena* arena = all.arena_of(address);
    if (arena == nullptr) return false;
    uint64_t offset = address - reinterpret_cast<uint64_t>(arena->face);
    if (bytes > arena->span - offset) return false;
    memcpy(out, arena->body + offset, bytes);
    return true;
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
