// What lies at an address: the check every access of a kernel or a copy passes, and the words for what it found.
#include <cstring>

#include "arena.h"
#include "codes.h"
#include "contexts.h"
#include "streams.h"

namespace emu {

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

namespace {

// The bytes and their device, or a fault. An access of no bytes touches nothing and is always fine.
std::pair<unsigned char*, int> find_bytes(uint64_t address, uint64_t bytes, const char* what) {
    Memory& all = memory();
    std::lock_guard<std::mutex> guard(all.lock);
    auto found = all.at_or_before(address);
    if (found != all.live.end()) {
        const Allocation& it = found->second;
        uint64_t there = all.reachable(found, address);
        if (there > 0 && bytes <= there) return {it.body + (address - found->first), it.device};
        if (there > 0) {
            throw DeviceFault{ACL_ERROR_RT_AICORE_EXCEPTION,
                              words("%s: %llu bytes at 0x%llx end %llu bytes past the end of the %llu bytes at 0x%llx "
                                    "(%s, call %llu)",
                                    what, number(bytes), number(address), number(bytes - there), number(it.bytes),
                                    number(found->first), it.by, number(it.call))};
        }
    }
    if (bytes == 0) return {nullptr, -1};
    throw DeviceFault{ACL_ERROR_RT_AICORE_EXCEPTION,
                      words("%s: %llu bytes at 0x%llx are not in a live allocation: %s", what, number(bytes),
                            number(address), tell_locked(all, address).c_str())};
}

}  // namespace

unsigned char* reach(uint64_t address, uint64_t bytes, const char* what) {
    auto [body, device] = find_bytes(address, bytes, what);
    int here = worker_device();
    if (here >= 0 && device >= 0 && here != device && !peer_enabled(here, device)) {
        throw DeviceFault{ACL_ERROR_RT_AICORE_EXCEPTION,
                          words("%s: 0x%llx is memory of device %d and the stream is of device %d; call "
                                "aclrtDeviceEnablePeerAccess first",
                                what, number(address), device, here)};
    }
    return body;
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

}  // namespace emu
