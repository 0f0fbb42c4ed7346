// Caching allocator for CPU tensors: 64-byte aligned blocks in size classes, reused instead of faulted in again.
// Invariant: a block is in exactly one place, with its owner or in the free list of its class, and the bytes that wait
// in the free lists above SMALL_LIMIT never exceed the limit (MINDTORCH_CPU_CACHE_MB, 1024 by default).
#include "common.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace mt {
namespace {

// PyTorch's words, and its type: programs that catch it look for "can't allocate memory".
[[noreturn]] void fail_memory(size_t nbytes) {
    fail(PyExc_RuntimeError,
         "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
         "allocate %zu bytes. Error code 12 (Cannot allocate memory)",
         nbytes);
}

constexpr size_t ALIGN = 64;
constexpr size_t HUGE_PAGE = size_t(2) << 20;  // from here on blocks are mapped on their own, in whole huge pages
// From here on blocks begin on a page. Where a result lies a little further into its page than an operand, the processor takes
// each load for one of what was just stored.
constexpr size_t PAGED = size_t(32) << 10, PAGE = 4096;
constexpr size_t SLAB = size_t(256) << 10;  // small blocks are cut from slabs of this size
constexpr size_t MAX_BLOCK = size_t(1) << 46;
// Classes: multiples of 64 up to SMALL_LIMIT, then four steps per doubling.
constexpr int LINEAR = int(SMALL_LIMIT / ALIGN);
constexpr int CLASSES = LINEAR + 1 + 4 * 40;

// Under AddressSanitizer a waiting block, what an owner did not ask for, and the gaps between small blocks are forbidden.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t GAP = ALIGN;
void forbid(const void* p, size_t n) { __asan_poison_memory_region(p, n); }
void allow(const void* p, size_t n) { __asan_unpoison_memory_region(p, n); }
#else
constexpr size_t GAP = 0;
MT_INLINE void forbid(const void*, size_t) {}
MT_INLINE void allow(const void*, size_t) {}
#endif
MT_INLINE char* handed_out(void* block, size_t nbytes, size_t capacity) {
    char* p = static_cast<char*>(block);
    allow(p, capacity);
    forbid(p + nbytes, capacity - nbytes);
    return p;
}

// Lives in the first bytes of a waiting block, so that keeping one never needs memory.
struct FreeBlock {
    FreeBlock* next;
};

struct SizeClass {
    int index;
    size_t size;
};

SizeClass class_of(size_t n) {
    if (n <= SMALL_LIMIT) {
        const size_t k = (n + ALIGN - 1) / ALIGN;
        return {int(k), k * ALIGN};
    }
    const int exponent = 63 - __builtin_clzll((unsigned long long)(n - 1));  // 2^exponent < n <= 2^(exponent + 1)
    const size_t step = size_t(1) << (exponent - 2);
    const size_t quarter = (n - 1 - (size_t(1) << exponent)) / step;
    size_t size = (size_t(1) << exponent) + (quarter + 1) * step;
    // The classes between 2 and 8 MiB are finer than a huge page: what is rounded up belongs to the class of its size,
    // which is where the block will wait when it is given back.
    if (size >= HUGE_PAGE && size % HUGE_PAGE) return class_of((size / HUGE_PAGE + 1) * HUGE_PAGE);
    return {LINEAR + 1 + (exponent - 10) * 4 + int(quarter), size};
}

char* map_block(size_t size) {
    if (size < HUGE_PAGE) return static_cast<char*>(std::aligned_alloc(size < PAGED ? ALIGN : PAGE, size));
    // Over-allocate and trim, so that the block begins on a huge page.
    const size_t whole = size + HUGE_PAGE;
    void* p = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    char* raw = static_cast<char*>(p);
    char* begin = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    char* end = begin + size;
    if (begin != raw) munmap(raw, size_t(begin - raw));
    if (raw + whole != end) munmap(end, size_t(raw + whole - end));
#ifdef MADV_HUGEPAGE
    madvise(begin, size, MADV_HUGEPAGE);
#endif
    return begin;
}

void unmap_block(char* p, size_t size) {
    if (size < HUGE_PAGE) std::free(p);
    else munmap(p, size);
}

struct FreeList {
    FreeBlock* head;
    size_t size;         // of every block in it
    uint64_t last_used;  // tick of the last hit or return: the oldest list gives way first
};

struct Cache {
    std::mutex mutex;
    FreeList lists[CLASSES] = {};
    uint64_t tick = 0;
    size_t cached = 0, limit = 0, live = 0, peak = 0, hits = 0, misses = 0;

    Cache() {
        const char* text = std::getenv("MINDTORCH_CPU_CACHE_MB");
        char* end = nullptr;
        const unsigned long long mb = text ? std::strtoull(text, &end, 10) : 1024;
        limit = size_t(text && (end == text || *end) ? 1024 : mb) << 20;
        // A fork must not copy a locked mutex into the child.
        pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                       [] { instance().mutex.unlock(); });
    }
    // Never destroyed: storages may be freed while the process shuts down.
    static Cache& instance() {
        static Cache* cache = new Cache();
        return *cache;
    }
};

// A chain of blocks of possibly different classes, to be unmapped after the lock is gone.
struct Doomed {
    FreeBlock* head = nullptr;
    void add(FreeBlock* block, size_t size) {
        allow(block, size);
        reinterpret_cast<size_t*>(block)[1] = size;
        block->next = head;
        head = block;
    }
    ~Doomed() {
        while (head) {
            FreeBlock* next = head->next;
            unmap_block(reinterpret_cast<char*>(head), reinterpret_cast<size_t*>(head)[1]);
            head = next;
        }
    }
};

// Takes blocks out of the lists, the longest unused list first, until at most `keep` bytes wait. The lock is held.
void shrink(Cache& c, size_t keep, Doomed& doomed) {
    while (c.cached > keep) {
        FreeList* oldest = nullptr;
        for (FreeList& list : c.lists)
            if (list.head && (!oldest || list.last_used < oldest->last_used)) oldest = &list;
        while (oldest->head && c.cached > keep) {
            FreeBlock* block = oldest->head;
            allow(block, sizeof *block);
            oldest->head = block->next;
            c.cached -= oldest->size;
            doomed.add(block, oldest->size);
        }
    }
}

void empty_large() {
    Doomed doomed;
    Cache& c = Cache::instance();
    std::lock_guard<std::mutex> lock(c.mutex);
    shrink(c, 0, doomed);
}

// Small blocks: made and freed with the GIL held, so the GIL is their lock where there is one. They are cut from slabs
// and stay with the process: their lists are never larger than the largest number of small tensors alive at once.
struct SmallBlocks {
    FreeBlock* head[LINEAR + 1];
    char *bump, *bump_end;
    size_t live, reserved;
};
SmallBlocks small;

#ifdef Py_GIL_DISABLED
std::mutex small_mutex;
#define MT_LOCK_SMALL std::lock_guard<std::mutex> small_lock(small_mutex)
#else
#define MT_LOCK_SMALL
#endif

MT_NOINLINE char* small_from_slab(size_t size) {
    if (size_t(small.bump_end - small.bump) < size + GAP) {
        char* slab = static_cast<char*>(std::aligned_alloc(ALIGN, SLAB));
        if (!slab) fail_memory(size);
        small.bump = slab;
        small.bump_end = slab + SLAB;
        small.reserved += SLAB;
    }
    char* p = small.bump;
    small.bump += size + GAP;
    forbid(p + size, GAP);
    return p;
}

}  // namespace

char* small_alloc(size_t nbytes, size_t* capacity) {
    MT_LOCK_SMALL;
    const size_t k = (nbytes + ALIGN - 1) / ALIGN;
    *capacity = k * ALIGN;
    FreeBlock* block = small.head[k];
    if (MT_LIKELY(block != nullptr)) {
        allow(block, sizeof *block);
        small.head[k] = block->next;
        small.live += k * ALIGN;
        return handed_out(block, nbytes, k * ALIGN);
    }
    char* p = small_from_slab(k * ALIGN);
    small.live += k * ALIGN;
    return handed_out(p, nbytes, k * ALIGN);
}

void small_free(char* ptr, size_t capacity) noexcept {
    MT_LOCK_SMALL;
    FreeBlock* block = reinterpret_cast<FreeBlock*>(ptr);
    const size_t k = capacity / ALIGN;
    allow(ptr, capacity);
    block->next = small.head[k];
    forbid(ptr, capacity);
    small.head[k] = block;
    small.live -= capacity;
}

void expect_room_for(size_t nbytes) {
    static const size_t memory = size_t(std::max(sysconf(_SC_PHYS_PAGES), 1L)) * size_t(sysconf(_SC_PAGESIZE));
    if (nbytes > memory) fail_memory(nbytes);
}

void expect_time_for(int64_t numel) {
    constexpr int64_t A_DAY = int64_t(1) << 47;  // at 1.6 elements per nanosecond
    if (numel > A_DAY)
        fail(PyExc_RuntimeError, "%lld elements are more than can be read in a day: the work is not begun",
             (long long)numel);
}

char* block_alloc(size_t nbytes, size_t* capacity) {
    *capacity = 0;
    if (nbytes == 0) return nullptr;
    if (nbytes > MAX_BLOCK) fail_memory(nbytes);
    const SizeClass cls = class_of(nbytes);
    Cache& c = Cache::instance();
    {
        std::lock_guard<std::mutex> lock(c.mutex);
        FreeList& list = c.lists[cls.index];
        if (FreeBlock* block = list.head) {
            allow(block, sizeof *block);
            list.head = block->next;
            list.last_used = ++c.tick;
            c.cached -= cls.size;
            c.live += cls.size;
            if (c.live > c.peak) c.peak = c.live;
            ++c.hits;
            *capacity = cls.size;
            return handed_out(block, nbytes, cls.size);
        }
        ++c.misses;
    }
    char* p = map_block(cls.size);
    if (!p) {
        empty_large();  // what waits in the cache may be what is missing
        p = map_block(cls.size);
        if (!p) fail_memory(nbytes);
    }
    std::lock_guard<std::mutex> lock(c.mutex);
    c.live += cls.size;
    if (c.live > c.peak) c.peak = c.live;
    *capacity = cls.size;
    return handed_out(p, nbytes, cls.size);
}

void block_free(char* ptr, size_t capacity) noexcept {
    if (!ptr) return;
    Doomed doomed;  // unmaps after the lock below is released
    Cache& c = Cache::instance();
    std::lock_guard<std::mutex> lock(c.mutex);
    c.live -= capacity;
    FreeBlock* block = reinterpret_cast<FreeBlock*>(ptr);
    if (capacity > c.limit) {
        doomed.add(block, capacity);
        return;
    }
    FreeList& list = c.lists[class_of(capacity).index];
    list.size = capacity;
    list.last_used = ++c.tick;
    if (c.cached + capacity > c.limit) shrink(c, c.limit - capacity, doomed);
    allow(ptr, capacity);
    block->next = list.head;
    forbid(ptr, capacity);
    list.head = block;
    c.cached += capacity;
}

}  // namespace mt

using namespace mt;

static PyObject* empty_cache(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("empty_cache", nargs, 0);
        empty_large();
        Py_RETURN_NONE;
    });
}

static PyObject* memory_stats(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("memory_stats", nargs, 0);
        Cache& c = Cache::instance();
        std::unique_lock<std::mutex> lock(c.mutex);
        const size_t live = c.live, peak = c.peak, cached = c.cached, limit = c.limit, hits = c.hits, misses = c.misses;
        lock.unlock();
        return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "allocated_bytes", Py_ssize_t(live + small.live),
                             "large_peak_bytes", Py_ssize_t(peak), "cached_bytes", Py_ssize_t(cached),
                             "cache_limit_bytes", Py_ssize_t(limit), "small_reserved_bytes", Py_ssize_t(small.reserved),
                             "hits", Py_ssize_t(hits), "misses", Py_ssize_t(misses));
    });
}

PyMethodDef allocator_methods[] = {
    MT_METHOD("empty_cache", empty_cache, "Give the memory that waits for reuse back to the system."),
    MT_METHOD("memory_stats", memory_stats, "Counters of the CPU allocator, in bytes and calls."),
    {nullptr, nullptr, 0, nullptr}};
