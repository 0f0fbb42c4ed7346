// The slow half of the handle registry: making, destroying, and telling what is wrong with a handle.
#include "handles.h"

#include "state.h"

namespace emu {

const char* kind_name(Kind kind) {
    switch (kind) {
        case Kind::context: return "aclrtContext";
        case Kind::stream: return "aclrtStream";
        case Kind::event: return "aclrtEvent";
        case Kind::stream_config: return "aclrtStreamConfigHandle";
        case Kind::data_buffer: return "aclDataBuffer";
        case Kind::physical_memory: return "aclrtDrvMemHandle";
        case Kind::model: return "aclmdlRI";
        case Kind::task_group: return "aclrtTaskGrp";
        case Kind::tensor: return "aclTensor";
        case Kind::scalar: return "aclScalar";
        case Kind::int_array: return "aclIntArray";
        case Kind::float_array: return "aclFloatArray";
        case Kind::bool_array: return "aclBoolArray";
        case Kind::tensor_list: return "aclTensorList";
        case Kind::scalar_list: return "aclScalarList";
        case Kind::executor: return "aclOpExecutor";
        case Kind::other: return "object";
        case Kind::none:
        case Kind::count: break;
    }
    return "nothing";
}

Handles& handles() {
    // Never destroyed: stream workers may look handles up while the process ends.
    static Handles* all = new Handles;
    return *all;
}

void* Handles::create(Kind kind, const char* by, std::shared_ptr<void> object, bool own) {
    uint32_t index;
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (free_.size() > kLate) {
            index = free_.front();
            free_.pop_front();
        } else {
            index = used_++;
            if (index >= kChunk * kChunks) {
                used_--;
                say("%s: the emulator holds at most %u handles", by, kChunk * kChunks - 1);
                return nullptr;
            }
            std::atomic<Slot*>& chunk = chunks_[index / kChunk];
            if (chunk.load(std::memory_order_relaxed) == nullptr) {
                chunk.store(new Slot[kChunk], std::memory_order_release);
            }
        }
    }
    Slot* slot = at(index);
    Hold hold(*slot);
    slot->kind = kind;
    slot->live = true;
    slot->own = own;
    slot->generation = (slot->generation + 1) % kGenerations;
    slot->made_by = by;
    slot->made_at = current_call();
    slot->destroyed_by = nullptr;
    slot->object = std::move(object);
    if (!own) live_[static_cast<int>(kind)].fetch_add(1, std::memory_order_relaxed);
    return pack(kind, slot->generation, index);
}

std::shared_ptr<void> Handles::take(Kind kind, const void* handle, const char* by, int* why) {
    uint64_t value = bits(handle);
    if ((value >> 56) == kTag && kind_of(value) == kind) {
        if (Slot* slot = at(slot_of(value))) {
            std::shared_ptr<void> object;
            bool taken = false;
            {
                Hold hold(*slot);
                if (slot->live && slot->generation == generation_of(value)) {
                    object.swap(slot->object);
                    slot->live = false;
                    slot->destroyed_by = by;
                    slot->destroyed_at = current_call();
                    if (!slot->own) live_[static_cast<int>(kind)].fetch_sub(1, std::memory_order_relaxed);
                    taken = true;
                }
            }
            if (taken) {
                std::lock_guard<std::mutex> guard(lock_);
                free_.push_back(slot_of(value));
                if (why != nullptr) *why = kFine;
                return object;
            }
        }
    }
    int reason = reject(kind, handle, by, true);
    if (why != nullptr) *why = reason;
    return nullptr;
}

int Handles::reject(Kind kind, const void* handle, const char* by, bool destroying) {
    if (handle == nullptr) return kNull;
    uint64_t value = bits(handle);
    Slot* slot = looks_like(handle) ? at(slot_of(value)) : nullptr;
    if (slot == nullptr || kind_of(value) == Kind::none || kind_of(value) >= Kind::count) {
        say("%s: %p is no %s this library made", by, handle, kind_name(kind));
        violation("unknown-handle", "%s got %p, which is no %s this library made", by, handle, kind_name(kind));
        return kUnknown;
    }
    std::string story = describe(handle);
    if (kind_of(value) != kind) {
        say("%s: expected %s, got %s", by, kind_name(kind), story.c_str());
        violation("wrong-handle-type", "%s expected %s, got %s", by, kind_name(kind), story.c_str());
        return kWrongKind;
    }
    say("%s: %s", by, story.c_str());
    if (destroying) {
        violation("double-destroy", "%s destroys again %s", by, story.c_str());
    } else {
        violation("use-after-destroy", "%s uses %s", by, story.c_str());
    }
    return kDestroyed;
}

bool Handles::is(Kind kind, const void* handle) {
    uint64_t value = bits(handle);
    if ((value >> 56) != kTag || kind_of(value) != kind) return false;
    Slot* slot = at(slot_of(value));
    if (slot == nullptr) return false;
    Hold hold(*slot);
    return slot->live && slot->generation == generation_of(value);
}

std::string Handles::describe(const void* handle) {
    uint64_t value = bits(handle);
    Slot* slot = looks_like(handle) ? at(slot_of(value)) : nullptr;
    char text[256];
    if (slot == nullptr) {
        snprintf(text, sizeof text, "%p", handle);
        return text;
    }
    Hold hold(*slot);
    const char* name = kind_name(kind_of(value));
    if (slot->generation != generation_of(value)) {
        snprintf(text, sizeof text, "%s %p (destroyed long ago; its slot is in use again)", name, handle);
    } else if (slot->live) {
        snprintf(text, sizeof text, "%s %p (made by %s, call %llu)", name, handle, slot->made_by,
                 static_cast<unsigned long long>(slot->made_at));
    } else {
        snprintf(text, sizeof text, "%s %p (made by %s, call %llu; destroyed by %s, call %llu)", name, handle,
                 slot->made_by, static_cast<unsigned long long>(slot->made_at), slot->destroyed_by,
                 static_cast<unsigned long long>(slot->destroyed_at));
    }
    return text;
}

uint64_t Handles::live_count() const {
    uint64_t sum = 0;
    for (const std::atomic<uint64_t>& live : live_) sum += live.load(std::memory_order_relaxed);
    return sum;
}

std::vector<std::string> Handles::leaks() {
    std::vector<void*> live;
    {
        std::lock_guard<std::mutex> guard(lock_);
        for (uint32_t index = 1; index < used_; index++) {
            Slot* slot = at(index);
            Hold hold(*slot);
            if (slot->live && !slot->own) live.push_back(pack(slot->kind, slot->generation, index));
        }
    }
    std::vector<std::string> lines;
    for (void* handle : live) lines.push_back(describe(handle));
    return lines;
}

void Handles::clear() {
    std::vector<std::shared_ptr<void>> dropped;  // destroyed outside the locks: objects may hold other handles
    std::lock_guard<std::mutex> guard(lock_);
    for (uint32_t index = 1; index < used_; index++) {
        Slot* slot = at(index);
        Hold hold(*slot);
        if (!slot->live) continue;
        slot->live = false;
        slot->destroyed_by = "ascendEmulatorReset";
        slot->destroyed_at = current_call();
        if (!slot->own) live_[static_cast<int>(slot->kind)].fetch_sub(1, std::memory_order_relaxed);
        dropped.push_back(std::move(slot->object));
        free_.push_back(index);
    }
}

}  // namespace emu
