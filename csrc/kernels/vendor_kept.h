// What launches leave to later ones: tensors and lists as the vendor has them, and executors that may run again.
//
// A tensor's description is its words: rank and whether strides follow, dtype and format, offset, elements of the storage,
// address; sizes; strides. A list's words are its length and the words of its tensors. Equal words are the same thing to
// the vendor, so that a step of training, whose memory comes from a caching allocator, describes nothing twice; and where
// a whole launch is the same, the executor of its first phase is run again instead of making another.
//
// A thing is kept when it is met for the second time: what never recurs pushes nothing out.
//
// Invariant: what is held by an executor, or used by a launch, stays. An executor runs for one launch at a time. All of
// this is touched with the GIL held only.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "common.h"

namespace mt {

constexpr int64_t kAbsent = -1;
constexpr size_t kHead = 5;  // words of a tensor before its sizes
constexpr uint64_t kTensorSeed = 0xa076'1d64'78bd'642f, kListSeed = 0xe703'7ed1'a0b4'28db;
using Words = std::vector<int64_t>;

inline uint64_t mixed(uint64_t h, const int64_t* words, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        h = (h ^ uint64_t(words[i])) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return h;
}

using Release = int32_t (*)(void*);

struct Described {
    void *create, *destroy, *handle;
    uint64_t hash, last;
    Words words;
    size_t handles;  // of the vendor's objects: a list's tensors are its own
    uint32_t users = 0;

    bool idle() const { return users == 0; }
    int32_t release() { return reinterpret_cast<Release>(destroy)(handle); }
};

struct Repeated {
    const void* function;
    void *executor, *drop;
    uint64_t size, hash, last;  // bytes of workspace
    Words key;
    std::vector<Described*> held;
    bool running = true, forgotten = false;

    bool idle() const { return !running; }
    int32_t release() {
        for (Described* one : held) --one->users;
        return reinterpret_cast<Release>(drop)(executor);
    }
};

// By hash, at one of four places.
template <class T, size_t N> struct Places {
    static_assert((N & (N - 1)) == 0);
    std::array<T*, N> at{};

    template <class Same> T* find(uint64_t hash, Same same) const {
        for (size_t way = 0; way < 4; ++way) {
            T* one = at[(hash + way) & (N - 1)];
            if (one != nullptr && one->hash == hash && same(*one)) return one;
        }
        return nullptr;
    }

    // A place that is free, or whose thing nobody has used since `since`; null where there is none.
    T** room(uint64_t hash, uint64_t since) {
        T** best = nullptr;
        for (size_t way = 0; way < 4; ++way) {
            T** place = &at[(hash + way) & (N - 1)];
            if (*place == nullptr) return place;
            if ((*place)->idle() && (*place)->last < since && (best == nullptr || (*place)->last < (*best)->last))
                best = place;
        }
        return best;
    }
};

struct Kept {
    static constexpr size_t kWays = 8;
    static constexpr uint64_t kPatience = 4096;  // launches after which an executor may make room for another
    Places<Described, 8192> descriptions;
    Places<Repeated, 2048> executors;
    std::array<uint64_t, 8192> seen{};  // hashes of what was met
    uint64_t now = 0;
    size_t handles = 0;

    static Kept& get() {
        static Kept* all = new Kept;  // lives as long as the process, as the vendor's objects may
        return *all;
    }

    // The first code that is not 0, of letting go what stood there.
    template <class T> int32_t clear(T** place) {
        T* old = std::exchange(*place, nullptr);
        if (old == nullptr) return 0;
        handles -= count_of(*old);
        std::unique_ptr<T> gone(old);
        return old->release();
    }

    static size_t count_of(const Described& one) { return one.handles; }
    static size_t count_of(const Repeated&) { return 1; }

    template <class T> int32_t put(T** place, T* made) {
        int32_t code = clear(place);
        *place = made;
        handles += count_of(*made);
        return code;
    }

    // Whether something of this hash was met before; from now on it was. A set of places holds the latest few: with one
    // place, two things of one step that share it would forget each other in every step, and neither would be kept.
    bool again(uint64_t hash) {
        uint64_t* set = &seen[hash % (seen.size() / kWays) * kWays];
        for (size_t way = 0; way < kWays; ++way)
            if (set[way] == hash) return true;
        std::copy_backward(set, set + kWays - 1, set + kWays);
        set[0] = hash;
        return false;
    }

    Repeated** place_of(Repeated* one) {
        for (size_t way = 0; way < 4; ++way) {
            Repeated** place = &executors.at[(one->hash + way) & (executors.at.size() - 1)];
            if (*place == one) return place;
        }
        return nullptr;
    }

    // Ends what is not running of one function, or of all; a running one is ended by its launch.
    int32_t forget(const void* function) {
        int32_t worst = 0;
        auto note = [&](int32_t code) { worst = worst != 0 ? worst : code; };
        for (Repeated*& one : executors.at) {
            if (one == nullptr || (function != nullptr && one->function != function)) continue;
            if (one->running) one->forgotten = true;
            else note(clear(&one));
        }
        if (function != nullptr) return worst;
        for (Described*& one : descriptions.at)
            if (one != nullptr && one->idle()) note(clear(&one));
        seen.fill(0);
        return worst;
    }

    // A launch has run its executor.
    int32_t ran(Repeated* one, bool again) {
        one->running = false;
        return again && !one->forgotten ? 0 : clear(place_of(one));
    }
};

}  // namespace mt
