// What the programs of this folder share: tensors on the device, the two phases of a call, printed results.
//
// A program is PROGRAM(name) { ... }; main runs those that are named on the command line, all of them otherwise.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

inline const char* recent() {
    const char* text = aclGetRecentErrMsg();
    return text ? text : "";
}

#define CHECK(call) \
    do { \
        int code_ = (call); \
        if (code_ != 0) { \
            std::printf("%s:%d: %s answered %d: %s\n", __FILE__, __LINE__, #call, code_, recent()); \
            std::exit(1); \
        } \
    } while (0)
#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1); \
        } \
    } while (0)

// A stream of its own for a program.
struct Stream {
    aclrtStream handle = nullptr;
    Stream() { CHECK(aclrtCreateStream(&handle)); }
    ~Stream() { CHECK(aclrtDestroyStream(handle)); }
    operator aclrtStream() const { return handle; }
    void wait() const { CHECK(aclrtSynchronizeStream(handle)); }
};

struct Tensor {
    std::vector<int64_t> dims;
    aclDataType dtype;
    int64_t count = 1;
    void* memory = nullptr;
    aclTensor* handle = nullptr;

    Tensor(std::vector<int64_t> shape, aclDataType type, const std::vector<double>& values = {})
        : dims(std::move(shape)), dtype(type) {
        for (int64_t d : dims) count *= d;
        std::vector<int64_t> strides(dims.size(), 1);
        for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
        size_t size = bytes();
        CHECK(aclrtMalloc(&memory, size ? size : 1, ACL_MEM_MALLOC_HUGE_FIRST));
        if (!values.empty()) {
            std::vector<char> host(size);
            for (size_t i = 0; i < values.size(); ++i) put(host.data(), i, values[i]);
            CHECK(aclrtMemcpy(memory, size, host.data(), size, ACL_MEMCPY_HOST_TO_DEVICE));
        }
        handle = aclCreateTensor(dims.data(), dims.size(), dtype, strides.data(), 0, ACL_FORMAT_ND, dims.data(),
                                 dims.size(), memory);
        EXPECT(handle != nullptr);
    }
    Tensor(const Tensor&) = delete;
    ~Tensor() {
        if (handle) CHECK(aclDestroyTensor(handle));
        CHECK(aclrtFree(memory));
    }

    size_t bytes() const { return size_t(count) * aclDataTypeSize(dtype); }
    void put(char* at, size_t i, double value) const {
        switch (dtype) {
            case ACL_FLOAT: reinterpret_cast<float*>(at)[i] = float(value); break;
            case ACL_DOUBLE: reinterpret_cast<double*>(at)[i] = value; break;
            case ACL_INT32: reinterpret_cast<int32_t*>(at)[i] = int32_t(value); break;
            case ACL_INT64: reinterpret_cast<int64_t*>(at)[i] = int64_t(value); break;
            case ACL_FLOAT16: reinterpret_cast<uint16_t*>(at)[i] = aclFloatToFloat16(float(value)); break;
            default: reinterpret_cast<int8_t*>(at)[i] = int8_t(value);
        }
    }
    std::vector<double> values() const {
        std::vector<char> host(bytes());
        if (!host.empty()) CHECK(aclrtMemcpy(host.data(), host.size(), memory, host.size(), ACL_MEMCPY_DEVICE_TO_HOST));
        std::vector<double> out;
        for (int64_t i = 0; i < count; ++i) switch (dtype) {
                case ACL_FLOAT: out.push_back(reinterpret_cast<float*>(host.data())[i]); break;
                case ACL_DOUBLE: out.push_back(reinterpret_cast<double*>(host.data())[i]); break;
                case ACL_INT32: out.push_back(reinterpret_cast<int32_t*>(host.data())[i]); break;
                case ACL_INT64: out.push_back(double(reinterpret_cast<int64_t*>(host.data())[i])); break;
                case ACL_FLOAT16: out.push_back(aclFloat16ToFloat(reinterpret_cast<uint16_t*>(host.data())[i])); break;
                default: out.push_back(reinterpret_cast<int8_t*>(host.data())[i]);
            }
        return out;
    }
    // What the test compares: the program, the result, its values.
    void print(const char* name) const {
        std::printf("= %s", name);
        for (double x : values()) std::printf(" %.17g", x);
        std::printf("\n");
    }
};

// The second phase: workspace, launch, wait.
inline int launch(aclnnStatus (*function)(void*, uint64_t, aclOpExecutor*, aclrtStream), uint64_t size,
                  aclOpExecutor* executor) {
    Stream stream;
    void* workspace = nullptr;
    if (size) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    int code = function(workspace, size, executor, stream);
    if (code == 0) code = aclrtSynchronizeStream(stream);
    if (workspace) CHECK(aclrtFree(workspace));
    return code;
}

#define RUN(name, ...) \
    do { \
        uint64_t needed_ = 0; \
        aclOpExecutor* executor_ = nullptr; \
        CHECK(name##GetWorkspaceSize(__VA_ARGS__, &needed_, &executor_)); \
        CHECK(launch(name, needed_, executor_)); \
    } while (0)

using Program = std::pair<const char*, void (*)()>;
inline std::vector<Program>& programs() {
    static std::vector<Program> all;
    return all;
}
struct Registered {
    Registered(const char* name, void (*body)()) { programs().emplace_back(name, body); }
};
#define PROGRAM(name) \
    static void name(); \
    static const Registered registered_##name(#name, name); \
    static void name()

#define MAIN \
    int main(int count, char** names) { \
        CHECK(aclInit(nullptr)); \
        CHECK(aclrtSetDevice(0)); \
        for (const Program& p : programs()) { \
            bool wanted = count == 1; \
            for (int i = 1; i < count; ++i) wanted |= std::strcmp(names[i], p.first) == 0; \
            if (!wanted) continue; \
            std::printf("# %s\n", p.first); \
            p.second(); \
        } \
        CHECK(aclrtResetDevice(0)); \
        CHECK(aclFinalize()); \
        return 0; \
    }
