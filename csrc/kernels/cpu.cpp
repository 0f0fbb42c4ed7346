// Which level of instructions kernels use: see cpu.h.
#include "cpu.h"

#include <cstdlib>

namespace mt {
namespace {

constexpr const char* NAMES[] = {"baseline", "avx2", "avx512"};

Level found() {
#if MT_HAS_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return AVX512;
    if (__builtin_cpu_supports("x86-64-v3")) return AVX2;
#endif
    return BASELINE;
}

// A name that is none of them asks for nothing.
Level chosen() {
    const Level most = found();
    const char* wanted = std::getenv("MINDTORCH_CPU");
    for (int level = BASELINE; wanted && level < most; ++level)
        if (std::strcmp(wanted, NAMES[level]) == 0) return Level(level);
    return most;
}

bool finds_bf16() {
#if MT_HAS_LEVELS && __GNUC__ >= 10
    const char* wanted = std::getenv("MINDTORCH_CPU");
    for (const char* name : NAMES)
        if (wanted && std::strcmp(wanted, name) == 0) return false;
    return found() == AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

}  // namespace

const Level cpu_level = chosen();
const bool cpu_has_bf16 = finds_bf16();

}  // namespace mt

using namespace mt;

static PyObject* cpu_level_name(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cpu_level", nargs, 0);
        return PyUnicode_FromString(NAMES[cpu_level]);
    });
}

PyMethodDef cpu_methods[] = {MT_METHOD("cpu_level", cpu_level_name, "The level of instructions that kernels use."),
                             {nullptr, nullptr, 0, nullptr}};
