// A small pool of sleeping threads for parallel_for, and the per-thread dispatch word. Invariant: nobody spins; a
// caller that finds the pool busy does its work alone, so a call never waits for another call's threads.
#include "common.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace mt {
namespace {

int usable_cpus() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
#endif
    const unsigned n = std::thread::hardware_concurrency();
    return n ? int(n) : 1;
}

int default_threads() {
    for (const char* name : {"MINDTORCH_NUM_THREADS", "OMP_NUM_THREADS"}) {
        const char* text = std::getenv(name);
        const int n = text ? std::atoi(text) : 0;
        if (n > 0) return n;
    }
    return usable_cpus();
}

std::atomic<int> thread_count{0};  // 0: not asked yet
thread_local bool inside_pool = false;

struct Task {
    void (*fn)(void*, int64_t, int64_t);
    void* ctx;
    int64_t n, chunk;
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error;  // written once, by the thread that turned `failed`

    void work() noexcept {
        for (;;) {
            const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
            if (begin >= n || failed.load(std::memory_order_relaxed)) return;
            try {
                fn(ctx, begin, begin + chunk < n ? begin + chunk : n);
            } catch (...) {
                if (!failed.exchange(true)) error = std::current_exception();
            }
        }
    }
};

class Pool {
public:
    // Runs the task with up to `helpers` pool threads beside the caller; false when the pool serves somebody else.
    bool run(Task& task, int helpers) {
        std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
        if (!busy.owns_lock()) return false;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while (int(threads_) < helpers && start_thread()) {}
            if (threads_ == 0) return false;
            task_ = &task;
            wanted_ = helpers < threads_ ? helpers : threads_;
        }
        wake_.notify_all();
        inside_pool = true;  // a nested parallel_for must not wait for the pool it runs in
        task.work();
        inside_pool = false;
        std::unique_lock<std::mutex> lock(mutex_);
        wanted_ = 0;  // who has not woken yet need not join any more
        done_.wait(lock, [&] { return active_ == 0; });
        task_ = nullptr;
        return true;
    }

private:
    bool start_thread() {
        try {
            std::thread([this] { loop(); }).detach();
        } catch (...) {
            return false;  // out of threads: the caller works alone
        }
        ++threads_;
        return true;
    }
    void loop() {
        inside_pool = true;
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return wanted_ > 0; });
            --wanted_;
            ++active_;
            Task* task = task_;
            lock.unlock();
            task->work();
            lock.lock();
            if (--active_ == 0) done_.notify_one();
        }
    }

    std::mutex busy_, mutex_;
    std::condition_variable wake_, done_;
    Task* task_ = nullptr;
    int threads_ = 0, wanted_ = 0, active_ = 0;
};

// Never destroyed: its threads sleep on it until the process ends. A forked child has no threads and gets a new pool.
std::atomic<Pool*> pool{nullptr};

Pool& the_pool() {
    Pool* p = pool.load(std::memory_order_acquire);
    if (p) return *p;
    static std::mutex making;
    std::lock_guard<std::mutex> lock(making);
    p = pool.load(std::memory_order_acquire);
    if (!p) {
        static bool registered = false;
        if (!registered) {
            pthread_atfork([] { making.lock(); }, [] { making.unlock(); },
                           [] {
                               pool.store(nullptr);
                               inside_pool = false;
                               making.unlock();
                           });
            registered = true;
        }
        p = new Pool();
        pool.store(p, std::memory_order_release);
    }
    return *p;
}

}  // namespace

int num_threads() noexcept {
    int n = thread_count.load(std::memory_order_relaxed);
    if (MT_UNLIKELY(n == 0)) {
        n = default_threads();
        thread_count.store(n, std::memory_order_relaxed);
    }
    return n;
}

void parallel_run(int64_t n, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    const int threads = num_threads();
    int64_t parts = (n + grain - 1) / grain;
    if (parts > 1 && threads > 1 && !inside_pool) {
        // Several chunks per thread: when one of the cores is taken by somebody else the others do its share.
        if (parts > int64_t(threads) * 8) parts = int64_t(threads) * 8;
        int64_t chunk = (n + parts - 1) / parts;
        if (chunk > 64) chunk = (chunk + 63) / 64 * 64;  // neighbours do not write the same cache line
        Task task;
        task.fn = fn;
        task.ctx = ctx;
        task.n = n;
        task.chunk = chunk;
        const int64_t useful = parts < threads ? parts : threads;
        if (the_pool().run(task, int(useful) - 1)) {
            if (task.failed) std::rethrow_exception(task.error);
            return;
        }
    }
    fn(ctx, 0, n);
}

static thread_local int64_t thread_word = 0;

int64_t dispatch_word() { return thread_word; }

}  // namespace mt

using namespace mt;

static PyObject* tls_get(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    if (MT_UNLIKELY(nargs != 0)) {
        PyErr_SetString(PyExc_TypeError, "tls_get() takes no arguments");
        return nullptr;
    }
    return PyLong_FromLongLong(thread_word);
}

static PyObject* tls_set(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("tls_set", nargs, 1);
        thread_word = as_int(args[0]);
        Py_RETURN_NONE;
    });
}

static PyObject* get_num_threads(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("get_num_threads", nargs, 0);
        return PyLong_FromLong(num_threads());
    });
}

static PyObject* set_num_threads(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("set_num_threads", nargs, 1);
        const int64_t n = as_int(args[0]);
        if (n > INT32_MAX || n < INT32_MIN) fail(PyExc_ValueError, "Overflow when unpacking long");
        if (n < 1) fail(PyExc_RuntimeError, "set_num_threads expects a positive integer");
        thread_count.store(int(n < 1024 ? n : 1024), std::memory_order_relaxed);
        Py_RETURN_NONE;
    });
}

// Whether this thread takes denormal numbers for zeros, in operands and results; false where it cannot be said.
static PyObject* set_flush_denormal(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("set_flush_denormal", nargs, 1);
        const bool on = as_int(args[0]) != 0;
#if defined(__SSE2__)
        constexpr unsigned flush = 0x8000u | 0x0040u;  // results, operands
        _mm_setcsr(on ? _mm_getcsr() | flush : _mm_getcsr() & ~flush);
        Py_RETURN_TRUE;
#elif defined(__aarch64__)
        uint64_t word;
        asm volatile("mrs %0, fpcr" : "=r"(word));
        word = on ? word | (1ull << 24) : word & ~(1ull << 24);
        asm volatile("msr fpcr, %0" : : "r"(word));
        Py_RETURN_TRUE;
#else
        (void)on;
        Py_RETURN_FALSE;
#endif
    });
}

PyMethodDef threads_methods[] = {
    MT_METHOD("tls_get", tls_get, "This thread's dispatch word."),
    MT_METHOD("tls_set", tls_set, "Set this thread's dispatch word."),
    MT_METHOD("get_num_threads", get_num_threads, "Threads a kernel may use."),
    MT_METHOD("set_num_threads", set_num_threads, "Limit the threads a kernel may use."),
    MT_METHOD("set_flush_denormal", set_flush_denormal, "Take denormal numbers for zeros in this thread."),
    {nullptr, nullptr, 0, nullptr}};
