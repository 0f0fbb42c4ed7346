// Which level of instructions kernels use, and what fits the caches: see cpu.h and caches.h.
#include "cpu.h"
#include "caches.h"
#include "tiles.h"

#include <cstdlib>
#include <unistd.h>
#if MT_HAS_LEVELS
#include <cpuid.h>
#endif

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

// A size in bytes by its number in sysconf(), within reason.
int64_t cache_size(int name, int64_t least, int64_t most, int64_t usual) {
    const int64_t found = name < 0 ? 0 : (int64_t)sysconf(name);
    return found < least || found > most ? usual : found;
}
Caches find_caches() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
    const int first = _SC_LEVEL1_DCACHE_SIZE, second = _SC_LEVEL2_CACHE_SIZE;
#else
    const int first = -1, second = -1;
#endif
    return {cache_size(first, 8 << 10, 1 << 20, 32 << 10), cache_size(second, 128 << 10, 64 << 20, 512 << 10)};
}

}  // namespace

const Caches caches = find_caches();
Level level_of_cpu() {
    static const Level level = chosen();
    return level;
}
const Level cpu_level = level_of_cpu();
const bool cpu_has_bf16 = finds_bf16();

}  // namespace mt

using namespace mt;

static PyObject* cpu_level_name(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cpu_level", nargs, 0);
        return PyUnicode_FromString(NAMES[cpu_level]);
    });
}

static PyObject* cpu_products(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cpu_products", nargs, 0);
        return Py_BuildValue("(OO)", cpu_has_bf16 ? Py_True : Py_False, has_tiles() ? Py_True : Py_False);
    });
}

static PyObject* cpu_caches(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cpu_caches", nargs, 0);
        return Py_BuildValue("(LL)", (long long)caches.first, (long long)caches.second);
    });
}

// Linux does not list it among a processor's flags.
static PyObject* cpu_avx10(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("cpu_avx10", nargs, 0);
        unsigned version = 0;
#if MT_HAS_LEVELS
        unsigned a, b, c, d;
        const bool has = found() == AVX512 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (d >> 19 & 1);
        if (has && __get_cpuid_count(0x24, 0, &a, &b, &c, &d)) version = b & 0xff;
#endif
        return PyLong_FromUnsignedLong(version);
    });
}

PyMethodDef cpu_methods[] = {
    MT_METHOD("cpu_level", cpu_level_name, "The level of instructions that kernels use."),
    MT_METHOD("cpu_products", cpu_products, "Whether kernels use the CPU's products of bfloat16, and those of tiles."),
    MT_METHOD("cpu_caches", cpu_caches, "Bytes of the caches that blocks are made to fit."),
    MT_METHOD("cpu_avx10", cpu_avx10, "The version of AVX10 that the CPU has; 0 for none."),
    {nullptr, nullptr, 0, nullptr}};
