// Collectives of the Gloo library behind a C interface, for `torch.distributed` to call by ctypes.
//
// Invariant: no exception leaves a function: 0 is success, otherwise the caller's buffer has the reason. Sizes are those
// that the caller gives; memory belongs to the caller and is used only while a call runs.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Milliseconds = std::chrono::milliseconds;

// The caller's store. `get` writes at most `room` bytes and returns how many there are, or -1 if it fails.
using SetFn = int (*)(const char* key, const char* data, int64_t size);
using GetFn = int64_t (*)(const char* key, char* data, int64_t room, int64_t timeout_ms);

class CallerStore : public gloo::rendezvous::Store {
public:
    CallerStore(SetFn set, GetFn get, Milliseconds timeout) : set_(set), get_(get), timeout_(timeout) {}

    void set(const std::string& key, const std::vector<char>& data) override {
        if (set_(key.c_str(), data.data(), static_cast<int64_t>(data.size())) != 0)
            throw std::runtime_error("the store does not take " + key);
    }

    std::vector<char> get(const std::string& key) override {
        std::vector<char> found(1 << 16);
        const int64_t size = get_(key.c_str(), found.data(), static_cast<int64_t>(found.size()), timeout_.count());
        if (size < 0 || size > static_cast<int64_t>(found.size())) throw std::runtime_error("the store has no " + key);
        found.resize(static_cast<size_t>(size));
        return found;
    }

    void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }

    void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
        char byte;
        for (const std::string& key : keys)
            if (get_(key.c_str(), &byte, 0, timeout.count()) < 0) throw std::runtime_error("Wait timeout for " + key);
    }

private:
    SetFn set_;
    GetFn get_;
    Milliseconds timeout_;
};

struct Engine {
    std::shared_ptr<gloo::rendezvous::Context> context;
};

template <typename Body>
int guarded(char* why, int64_t room, Body body) {
    try {
        body();
        return 0;
    } catch (const std::exception& error) {
        if (room > 0) std::snprintf(why, static_cast<size_t>(room), "%s", error.what());
    } catch (...) {
        if (room > 0) std::snprintf(why, static_cast<size_t>(room), "an unknown failure");
    }
    return 1;
}

size_t checked(int64_t size) {
    if (size < 0) throw std::invalid_argument("a negative size");
    return static_cast<size_t>(size);
}

enum Reduction { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };

using Combine = void (*)(void*, const void*, const void*, size_t);

template <typename T, typename Op>
void combine(void* out, const void* a, const void* b, size_t n) {
    T* result = static_cast<T*>(out);
    const T *first = static_cast<const T*>(a), *second = static_cast<const T*>(b);
    for (size_t i = 0; i < n; i++) result[i] = Op::apply(first[i], second[i]);
}

// Integers wrap: the library is compiled with -fwrapv. A NaN wins, as in PyTorch.
struct Sum {
    template <typename T> static T apply(T a, T b) { return static_cast<T>(a + b); }
};
struct Product {
    template <typename T> static T apply(T a, T b) { return static_cast<T>(a * b); }
};
struct Min {
    template <typename T> static T apply(T a, T b) { return a != a ? a : (b != b || b < a ? b : a); }
};
struct Max {
    template <typename T> static T apply(T a, T b) { return a != a ? a : (b != b || a < b ? b : a); }
};
struct And {
    template <typename T> static T apply(T a, T b) { return static_cast<T>(a & b); }
};
struct Or {
    template <typename T> static T apply(T a, T b) { return static_cast<T>(a | b); }
};
struct Xor {
    template <typename T> static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};

template <typename T>
Combine arithmetic(int kind) {
    switch (kind) {
        case kSum: return combine<T, Sum>;
        case kProduct: return combine<T, Product>;
        case kMin: return combine<T, Min>;
        case kMax: return combine<T, Max>;
        default: throw std::invalid_argument("an unknown reduction");
    }
}

template <typename T>
Combine integral(int kind) {
    switch (kind) {
        case kAnd: return combine<T, And>;
        case kOr: return combine<T, Or>;
        case kXor: return combine<T, Xor>;
        default: return arithmetic<T>(kind);
    }
}

// The element types by number, with the caller's `DTYPES`.
template <typename Options>
void describe(Options& options, int dtype, int kind, void* data, int64_t count, void* out) {
    const size_t n = checked(count);
    const auto use = [&](auto* none, Combine fn) {
        using T = std::remove_pointer_t<decltype(none)>;
        options.setInput(static_cast<T*>(data), n);
        options.setOutput(static_cast<T*>(out), n);
        options.setReduceFunction(fn);
    };
    switch (dtype) {
        case 0: return use(static_cast<float*>(nullptr), arithmetic<float>(kind));
        case 1: return use(static_cast<double*>(nullptr), arithmetic<double>(kind));
        case 2: return use(static_cast<int32_t*>(nullptr), integral<int32_t>(kind));
        case 3: return use(static_cast<int64_t*>(nullptr), integral<int64_t>(kind));
        case 4: return use(static_cast<int8_t*>(nullptr), integral<int8_t>(kind));
        case 5: return use(static_cast<uint8_t*>(nullptr), integral<uint8_t>(kind));
        default: throw std::invalid_argument("an unknown dtype");
    }
}

template <typename Options>
Options prepared(Engine* engine, uint32_t tag, int64_t timeout_ms) {
    Options options(engine->context);
    options.setTag(tag);
    options.setTimeout(Milliseconds(timeout_ms));
    return options;
}

}  // namespace

EXPORT Engine* mt_gloo_open(int rank, int size, const char* host, SetFn set, GetFn get, int64_t timeout_ms, char* why,
                            int64_t room) {
    Engine* made = nullptr;
    guarded(why, room, [&] {
        auto engine = std::make_unique<Engine>();
        gloo::transport::tcp::attr attr;
        attr.hostname = host;
        auto device = gloo::transport::tcp::CreateDevice(attr);
        CallerStore store(set, get, Milliseconds(timeout_ms));
        engine->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
        engine->context->setTimeout(Milliseconds(timeout_ms));
        engine->context->connectFullMesh(store, device);
        made = engine.release();
    });
    return made;
}

// Ends what runs in other threads with an error; the engine stays until `mt_gloo_free`.
EXPORT int mt_gloo_close(Engine* engine, char* why, int64_t room) {
    return guarded(why, room, [&] { engine->context->closeConnections(); });
}

EXPORT void mt_gloo_free(Engine* engine) { delete engine; }

EXPORT int mt_gloo_allreduce(Engine* engine, void* data, int64_t count, int dtype, int kind, uint32_t tag,
                             int64_t timeout_ms, char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::AllreduceOptions>(engine, tag, timeout_ms);
        describe(options, dtype, kind, data, count, data);
        gloo::allreduce(options);
    });
}

EXPORT int mt_gloo_reduce(Engine* engine, void* data, void* out, int64_t count, int dtype, int kind, int root,
                          uint32_t tag, int64_t timeout_ms, char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::ReduceOptions>(engine, tag, timeout_ms);
        describe(options, dtype, kind, data, count, out);
        options.setRoot(root);
        gloo::reduce(options);
    });
}

EXPORT int mt_gloo_broadcast(Engine* engine, char* data, int64_t bytes, int root, uint32_t tag, int64_t timeout_ms,
                             char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::BroadcastOptions>(engine, tag, timeout_ms);
        options.setOutput(data, checked(bytes));
        options.setRoot(root);
        gloo::broadcast(options);
    });
}

// `out` has as many blocks as there are ranks.
EXPORT int mt_gloo_allgather(Engine* engine, char* data, char* out, int64_t bytes, uint32_t tag, int64_t timeout_ms,
                             char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::AllgatherOptions>(engine, tag, timeout_ms);
        options.setInput(data, checked(bytes));
        options.setOutput(out, checked(bytes) * static_cast<size_t>(engine->context->size));
        gloo::allgather(options);
    });
}

// `out` is null but on the root, where it has as many blocks as there are ranks.
EXPORT int mt_gloo_gather(Engine* engine, char* data, char* out, int64_t bytes, int root, uint32_t tag,
                          int64_t timeout_ms, char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::GatherOptions>(engine, tag, timeout_ms);
        options.setInput(data, checked(bytes));
        if (out != nullptr) options.setOutput(out, checked(bytes) * static_cast<size_t>(engine->context->size));
        options.setRoot(root);
        gloo::gather(options);
    });
}

// `parts` is null but on the root.
EXPORT int mt_gloo_scatter(Engine* engine, char* const* parts, char* out, int64_t bytes, int root, uint32_t tag,
                           int64_t timeout_ms, char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::ScatterOptions>(engine, tag, timeout_ms);
        if (parts != nullptr)
            options.setInputs(std::vector<char*>(parts, parts + engine->context->size), checked(bytes));
        options.setOutput(out, checked(bytes));
        options.setRoot(root);
        gloo::scatter(options);
    });
}

// `sending` and `receiving` have a size for each rank.
EXPORT int mt_gloo_exchange(Engine* engine, char* data, const int64_t* sending, char* out, const int64_t* receiving,
                            uint32_t tag, int64_t timeout_ms, char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::AlltoallvOptions>(engine, tag, timeout_ms);
        const int size = engine->context->size;
        for (int i = 0; i < size; i++) checked(sending[i]), checked(receiving[i]);
        options.setInput(data, std::vector<int64_t>(sending, sending + size));
        options.setOutput(out, std::vector<int64_t>(receiving, receiving + size));
        gloo::alltoallv(options);
    });
}

EXPORT int mt_gloo_barrier(Engine* engine, uint32_t tag, int64_t timeout_ms, char* why, int64_t room) {
    return guarded(why, room, [&] {
        auto options = prepared<gloo::BarrierOptions>(engine, tag, timeout_ms);
        gloo::barrier(options);
    });
}
