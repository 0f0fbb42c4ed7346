// The bookkeeping behind memory.h: arenas, allocations, what was freed, what is pinned or reserved. Private to the files
// of memory; everything in it is guarded by the one lock.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "state.h"

namespace emu {

constexpr uint64_t kAlign = 64;
constexpr uint64_t kGuard = 192;  // between neighbours; keeps addresses 64-byte aligned and usually no more than that
constexpr uint64_t kPage = 4096;
constexpr uint64_t kQuarantine = 64 << 20;
constexpr size_t kHistory = 4096;

inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

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
    uint64_t span = 0;  // of addresses: larger than the capacity, so that freed addresses can rest
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
        for (auto next = std::next(found);
             next != live.end() && found->second.mapped && next->second.mapped && next->first == end &&
             next->second.body == found->second.body + (end - found->first);
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

Memory& memory();

inline unsigned long long number(uint64_t value) { return static_cast<unsigned long long>(value); }
std::string words(const char* format, ...) EMU_PRINTF(1, 2);
std::string tell_locked(Memory& all, uint64_t address);  // the lock is held

}  // namespace emu
