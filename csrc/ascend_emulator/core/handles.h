// The registry of everything a client holds by handle: streams, events, contexts, tensors, scalars, lists, executors.
//
// A handle is not an address. It packs a slot, the slot's generation and the kind of object, in a value no pointer can
// have, so a handle that was destroyed, is of another kind, or never came from here is always recognised, and using it
// as memory faults. A slot is reused late and remembers which calls made and destroyed its last object: diagnostics
// name them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core.h"

namespace emu {

enum class Kind : uint8_t {
    none,
    context,
    stream,
    event,
    stream_config,
    data_buffer,
    physical_memory,
    model,
    task_group,
    tensor,
    scalar,
    int_array,
    float_array,
    bool_array,
    tensor_list,
    scalar_list,
    executor,
    other,
    count,
};

EMU_API const char* kind_name(Kind kind);  // "aclTensor", "aclrtStream", ...

// Why a handle was refused.
enum Misuse : int { kFine = 0, kNull = 1, kUnknown = 2, kWrongKind = 3, kDestroyed = 4 };

class EMU_API Handles {
public:
    // `by` is the vendor function asking; it must be a literal, it is kept. `own`: the runtime's own object (a default
    // stream), which no client has to destroy and which is no leak.
    void* create(Kind kind, const char* by, std::shared_ptr<void> object, bool own = false);

    // The object, or null. `why` receives a Misuse. A null handle is only answered (callers know what null means);
    // every other misuse is said to this thread's message and recorded as a violation naming the calls.
    template <class T>
    std::shared_ptr<T> find(Kind kind, const void* handle, const char* by, int* why = nullptr) {
        return std::static_pointer_cast<T>(get(kind, handle, by, why));
    }

    // Takes the object out of the registry: the handle is dead from here on. Null as `find`.
    template <class T>
    std::shared_ptr<T> destroy(Kind kind, const void* handle, const char* by, int* why = nullptr) {
        return std::static_pointer_cast<T>(take(kind, handle, by, why));
    }

    // Whether it is a live handle of that kind, without any complaint.
    bool is(Kind kind, const void* handle);
    // Whether the value has the form of a handle at all, live or not.
    static bool looks_like(const void* handle) { return (bits(handle) >> 56) == kTag; }

    // "aclTensor #12 (made by aclCreateTensor, call 83)": for diagnostics about any value.
    std::string describe(const void* handle);

    uint64_t live_count(Kind kind) const { return live_[static_cast<int>(kind)].load(std::memory_order_relaxed); }
    uint64_t live_count() const;       // all kinds a client must destroy
    std::vector<std::string> leaks();  // one line for each of them
    void clear();                      // forgets everything: for tests, when nothing runs

private:
    struct Slot {
        std::atomic_flag busy = ATOMIC_FLAG_INIT;
        Kind kind = Kind::none;  // of the present object, or of the last one
        bool live = false;
        bool own = false;
        uint32_t generation = 0;
        const char* made_by = nullptr;
        const char* destroyed_by = nullptr;
        uint64_t made_at = 0;  // the call's sequence number
        uint64_t destroyed_at = 0;
        std::shared_ptr<void> object;
    };

    struct Hold {  // a slot is held for a few instructions: spinning beats sleeping
        explicit Hold(Slot& slot) : slot_(slot) {
            for (int spins = 0; slot_.busy.test_and_set(std::memory_order_acquire); spins++) {
                if (spins > 64) std::this_thread::yield();  // its holder was interrupted
            }
        }
        ~Hold() { slot_.busy.clear(std::memory_order_release); }
        Slot& slot_;
    };

    static constexpr uint64_t kTag = 0x5a;
    static constexpr uint32_t kChunk = 4096;
    static constexpr uint32_t kChunks = 4096;
    static constexpr uint32_t kGenerations = 1u << 24;
    static constexpr size_t kLate = 256;  // free slots kept back, so that a stale handle's story is still known

    static uint64_t bits(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
    static uint32_t slot_of(uint64_t value) { return static_cast<uint32_t>(value & 0xffffff); }
    static uint32_t generation_of(uint64_t value) { return static_cast<uint32_t>((value >> 24) & 0xffffff); }
    static Kind kind_of(uint64_t value) { return static_cast<Kind>((value >> 48) & 0xff); }
    static void* pack(Kind kind, uint32_t generation, uint32_t slot) {
        return reinterpret_cast<void*>((kTag << 56) | (static_cast<uint64_t>(kind) << 48) |
                                       (static_cast<uint64_t>(generation) << 24) | slot);
    }

    Slot* at(uint32_t index) const {
        Slot* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : chunk + index % kChunk;
    }

    std::shared_ptr<void> get(Kind kind, const void* handle, const char* by, int* why) {
        uint64_t value = bits(handle);
        if ((value >> 56) == kTag && kind_of(value) == kind) {
            if (Slot* slot = at(slot_of(value))) {
                Hold hold(*slot);
                if (slot->live && slot->generation == generation_of(value)) {
                    if (why != nullptr) *why = kFine;
                    return slot->object;
                }
            }
        }
        int reason = reject(kind, handle, by, false);
        if (why != nullptr) *why = reason;
        return nullptr;
    }

    std::shared_ptr<void> take(Kind kind, const void* handle, const char* by, int* why);
    int reject(Kind kind, const void* handle, const char* by, bool destroying);

    std::atomic<Slot*> chunks_[kChunks] = {};
    std::atomic<uint64_t> live_[static_cast<int>(Kind::count)] = {};
    std::mutex lock_;  // guards what follows
    std::deque<uint32_t> free_;
    uint32_t used_ = 1;  // slot 0 is never given out
};

EMU_API Handles& handles();

}  // namespace emu
