// The Storage type, and the reading of operands from Python arguments. Invariant: `ptr` is 64-byte aligned unless the
// memory is foreign, and does not change while a buffer of the storage is alive.
#include "common.h"

#include <sys/mman.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace mt {

// ---------------------------------------------------------------- errors

void fail(PyObject* type, const char* format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    std::vsnprintf(text, sizeof text, format, list);
    va_end(list);
    throw Error{type, text};
}

void fail_sizes(const int64_t* size, int n) {
    std::string text = "Storage size calculation overflowed with sizes=[";
    for (int i = 0; i < n; ++i) text += (i ? ", " : "") + std::to_string(size[i]);
    throw Error{PyExc_RuntimeError, text + "]"};
}

void fail_set() { throw Error{nullptr, std::string()}; }

// PyTorch's words where a storage is asked for: the number as its allocator sees it.
[[noreturn]] static void fail_negative(int64_t nbytes) {
    fail(PyExc_RuntimeError,
         "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called with "
         "negative number: %llu",
         (unsigned long long)nbytes);
}

void fail_dtype(const char* op, int code) {
    fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", op, CODE_NAME[code]);
}

PyObject* report(const std::exception_ptr& e) noexcept {
    try {
        std::rethrow_exception(e);
    } catch (const Error& error) {
        if (error.type) PyErr_SetString(error.type, error.message.c_str());
        else if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a native call failed without an error");
    } catch (const std::bad_alloc&) { PyErr_NoMemory(); } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) { PyErr_SetString(PyExc_SystemError, "an unknown native error"); }
    return nullptr;
}

// ---------------------------------------------------------------- arguments

int64_t as_int_slow(PyObject* o) {
    const long long v = PyLong_CheckExact(o) ? PyLong_AsLongLong(o) : [&]() -> long long {
        Ref index(PyNumber_Index(o));
        if (!index.get()) fail_set();
        return PyLong_AsLongLong(index.get());
    }();
    if (MT_UNLIKELY(v == -1 && PyErr_Occurred())) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) fail(PyExc_ValueError, "Overflow when unpacking long long");
        fail_set();
    }
    return v;
}

double as_double(PyObject* o) {
    if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
    const double v = PyFloat_AsDouble(o);
    if (MT_UNLIKELY(v == -1.0 && PyErr_Occurred())) fail_set();
    return v;
}

void parse_ints(PyObject* tuple, int ndim, int64_t* out) {
    if (MT_UNLIKELY(!PyTuple_Check(tuple)))
        fail(PyExc_TypeError, "expected a tuple of ints, got %s", Py_TYPE(tuple)->tp_name);
    if (MT_UNLIKELY(PyTuple_GET_SIZE(tuple) != ndim))
        fail(PyExc_ValueError, "expected a tuple of %d ints, got %zd", ndim, PyTuple_GET_SIZE(tuple));
    for (int i = 0; i < ndim; ++i) out[i] = as_int(PyTuple_GET_ITEM(tuple, i));
}

void parse_shape(PyObject* tuple, Shape& shape) {
    if (MT_UNLIKELY(!PyTuple_Check(tuple)))
        fail(PyExc_TypeError, "expected a tuple of ints, got %s", Py_TYPE(tuple)->tp_name);
    const Py_ssize_t ndim = PyTuple_GET_SIZE(tuple);
    if (MT_UNLIKELY(ndim > MAXD)) fail(PyExc_RuntimeError, "tensors have at most %d dimensions, got %zd", MAXD, ndim);
    shape.ndim = int(ndim);
    for (Py_ssize_t i = 0; i < ndim; ++i) {
        const int64_t d = as_int(PyTuple_GET_ITEM(tuple, i));
        if (MT_UNLIKELY(d < 0)) {
            std::string sizes;
            for (Py_ssize_t k = 0; k < ndim; ++k)
                sizes += (k ? ", " : "") + std::to_string(as_int(PyTuple_GET_ITEM(tuple, k)));
            throw Error{PyExc_RuntimeError,
                        "Trying to create tensor with negative dimension " + std::to_string(d) + ": [" + sizes + "]"};
        }
        shape.dim[i] = d;
    }
    shape.numel = checked_numel(shape.dim, shape.ndim);
}

void fail_reach(int64_t low, int64_t high, const Operand& op) {
    if (op.storage->nbytes == 0)
        fail(PyExc_RuntimeError, "The tensor has a non-zero number of elements, but its data is not allocated yet.");
    fail(PyExc_RuntimeError, "The tensor has elements %lld..%lld of %d bytes, out of bounds for storage of size %zd",
         (long long)low, (long long)high, op.itemsize, op.storage->nbytes);
}

// Throws unless all elements lie in [0, nbytes). Strides may be negative.
static void check_bounds(const Shape& shape, const Operand& op, int64_t offset) {
    if (shape.numel == 0) return;
    int64_t low = offset, high = offset;
    bool overflow = false;
    for (int i = 0; i < shape.ndim; ++i) {
        int64_t reach;
        overflow |= __builtin_mul_overflow(op.stride[i], shape.dim[i] - 1, &reach);
        overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    if (MT_UNLIKELY(overflow || low < 0 || high >= op.storage->nbytes / op.itemsize)) fail_reach(low, high, op);
}

void parse_operand(PyObject* const* args, const Shape& shape, Operand& op) {
    op.storage = as_storage(args[0]);
    const int64_t offset = as_int(args[1]);
    parse_ints(args[2], shape.ndim, op.stride);
    op.code = as_code(args[3]);
    op.itemsize = ITEMSIZE[op.code];
    check_bounds(shape, op, offset);
    op.data = op.storage->ptr + (MT_LIKELY(shape.numel) ? offset * op.itemsize : 0);  // unchecked where nothing is read
}

PyObject* parse_output(PyObject* const* args, const Shape& shape, Operand& op, int64_t numel) {
    if (args[0] != Py_None) {
        parse_operand(args, shape, op);
        Py_INCREF(args[0]);
        return args[0];
    }
    const int64_t count = numel < 0 ? shape.numel : numel, itemsize = ITEMSIZE[as_code(args[3])];
    int64_t nbytes;
    if (MT_UNLIKELY(__builtin_mul_overflow(count, itemsize, &nbytes))) fail_sizes(shape.dim, shape.ndim);
    Ref storage(storage_new(count, itemsize));
    PyObject* with[4] = {storage.get(), args[1], args[2], args[3]};
    parse_operand(with, shape, op);
    return storage.release();
}

bool is_contiguous(const Shape& shape, const Operand& op) {
    int64_t expected = 1;
    for (int i = shape.ndim - 1; i >= 0; --i) {
        if (shape.dim[i] == 1) continue;
        if (op.stride[i] != expected) return shape.numel == 0;
        expected *= shape.dim[i];
    }
    return true;
}

// ---------------------------------------------------------------- the type

namespace {

// Freed objects wait here: making a small storage then needs no malloc. The GIL is the lock where there is one.
#ifdef Py_GIL_DISABLED
constexpr int KEEP = 0;
#else
constexpr int KEEP = 1024;
#endif
StorageObject* free_objects[KEEP + 1];
int free_count = 0;

StorageObject* new_object() {
    StorageObject* s;
    if (MT_LIKELY(free_count > 0)) {
        s = free_objects[--free_count];
        PyObject_Init(reinterpret_cast<PyObject*>(s), &StorageType);
    } else {
        s = PyObject_New(StorageObject, &StorageType);
        if (!s) fail_set();
    }
    s->ptr = nullptr;
    s->nbytes = 0;
    s->capacity = 0;
    s->owner = nullptr;
    s->weakrefs = nullptr;
    s->exports = 0;
    s->fixed = false;
    return s;
}

MT_INLINE char* data_alloc(size_t nbytes, size_t* capacity) {
    if (nbytes - 1 < SMALL_LIMIT) return small_alloc(nbytes, capacity);
    return block_alloc(nbytes, capacity);
}

MT_INLINE void data_free(char* ptr, size_t capacity) noexcept {
    if (!ptr) return;
    if (capacity <= SMALL_LIMIT) small_free(ptr, capacity);
    else block_free(ptr, capacity);
}

// The storage as Python sees it, if it was asked for; it outlives every other holder. It stands where another type has
// its weak references: whoever wants to know when the memory goes refers to the Python object.
MT_INLINE PyObject*& wrapper_of(StorageObject* s) { return s->weakrefs; }

// Nobody but the Python object made for it is left: from now on that one holds the memory, unless it goes as well.
void hand_over(StorageObject* s) {
    PyObject* self = reinterpret_cast<PyObject*>(s);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* wrapper = wrapper_of(s);
    wrapper_of(s) = nullptr;
    Py_SET_REFCNT(self, 1);  // alive again
    PyObject* done = PyObject_CallMethod(wrapper, "_own", "O", self);
    if (done) Py_DECREF(done);
    else PyErr_WriteUnraisable(wrapper);
    Py_DECREF(wrapper);
    Py_DECREF(self);
    PyErr_Restore(type, value, trace);
}

// While somebody watches, every block that a storage gets or gives back is noted. Nothing of this is looked at on the way
// of a call: a watched storage is of a type whose destructor is another, and never waits in `free_objects`, which sends
// the making of the next one the long way round.
struct Note {
    int64_t time;  // CLOCK_MONOTONIC, in nanoseconds
    char* ptr;
    int64_t nbytes;  // negative when it is given back
    int64_t thread;
};
bool watched = false;
std::mutex notes_mutex;
std::vector<Note>& notes() {
    static auto* list = new std::vector<Note>();
    return *list;
}

void note(char* ptr, int64_t nbytes) noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::lock_guard<std::mutex> lock(notes_mutex);
    try {
        notes().push_back({int64_t(now.tv_sec) * 1000000000 + now.tv_nsec, ptr, nbytes, (int64_t)syscall(SYS_gettid)});
    } catch (const std::bad_alloc&) {
        // What cannot be noted is missing from the report; memory is still given and taken.
    }
}

struct Retired {
    char* ptr;
    size_t capacity;
};
std::vector<Retired>& retired() {
    static auto* blocks = new std::vector<Retired>();  // never destroyed, like the allocator
    return *blocks;
}

void storage_dealloc(PyObject* self) {
    StorageObject* s = reinterpret_cast<StorageObject*>(self);
    if (MT_UNLIKELY(wrapper_of(s) != nullptr)) return hand_over(s);
    if (MT_UNLIKELY(s->owner != nullptr)) {
        if (is_storage(s->owner)) --reinterpret_cast<StorageObject*>(s->owner)->exports;
        Py_CLEAR(s->owner);
    } else {
        data_free(s->ptr, s->capacity);
    }
    if (MT_LIKELY(free_count < KEEP)) free_objects[free_count++] = s;
    else PyObject_Free(s);
}

// The same while memory is watched: notes the block, and keeps no object.
void storage_dealloc_watched(PyObject* self) {
    StorageObject* s = reinterpret_cast<StorageObject*>(self);
    if (wrapper_of(s) != nullptr) return hand_over(s);
    if (s->owner != nullptr) {
        if (is_storage(s->owner)) --reinterpret_cast<StorageObject*>(s->owner)->exports;
        Py_CLEAR(s->owner);
    } else if (s->ptr) {
        note(s->ptr, -int64_t(s->nbytes));
        data_free(s->ptr, s->capacity);
    }
    PyObject_Free(s);
}

int64_t parse_nbytes(PyObject* o) {
    const int64_t nbytes = as_int(o);
    if (MT_UNLIKELY(nbytes < 0)) fail_negative(nbytes);
    return nbytes;
}

PyObject* storage_tp_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    return guard([&]() -> PyObject* {
        if (kwargs && PyDict_GET_SIZE(kwargs)) fail(PyExc_TypeError, "Storage() takes no keyword arguments");
        expect_args("Storage", PyTuple_GET_SIZE(args), 1);
        return storage_new(parse_nbytes(PyTuple_GET_ITEM(args, 0)), 1);
    });
}

// Storage(n) without a tuple in between.
PyObject* storage_vectorcall(PyObject*, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    return guard([&]() -> PyObject* {
        if (kwnames && PyTuple_GET_SIZE(kwnames)) fail(PyExc_TypeError, "Storage() takes no keyword arguments");
        expect_args("Storage", PyVectorcall_NARGS(nargsf), 1);
        return storage_new(parse_nbytes(args[0]), 1);
    });
}

PyObject* storage_wrap(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.wrap", nargs, 3);
        void* address = PyLong_AsVoidPtr(args[0]);
        if (!address && PyErr_Occurred()) fail_set();
        const int64_t nbytes = parse_nbytes(args[1]);
        if (!address && nbytes) fail(PyExc_ValueError, "cannot wrap %lld bytes at address 0", (long long)nbytes);
        StorageObject* s = new_object();
        s->ptr = static_cast<char*>(address);
        s->nbytes = nbytes;
        Py_INCREF(args[2]);
        s->owner = args[2];
        if (is_storage(args[2])) ++reinterpret_cast<StorageObject*>(args[2])->exports;  // a part of another storage
        return reinterpret_cast<PyObject*>(s);
    });
}

PyObject* storage_part(PyObject* self, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.part", nargs, 0);
        StorageObject *whole = reinterpret_cast<StorageObject*>(self), *s = new_object();
        s->ptr = whole->ptr;
        s->nbytes = whole->nbytes;
        Py_INCREF(self);
        s->owner = self;
        ++whole->exports;
        return reinterpret_cast<PyObject*>(s);
    });
}

bool is_resizable(const StorageObject* s) { return s->owner == nullptr && !s->fixed && s->exports == 0; }

PyObject* storage_resize(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.resize", nargs, 1);
        StorageObject* s = reinterpret_cast<StorageObject*>(self);
        const int64_t nbytes = parse_nbytes(args[0]);
        if (!is_resizable(s)) fail(PyExc_RuntimeError, "Trying to resize storage that is not resizable");
        if (nbytes == s->nbytes) Py_RETURN_NONE;
        const bool alone = running_calls == 1;  // this one
        if (!alone) retired().reserve(retired().size() + 1);
        size_t capacity;
        char* ptr = data_alloc((size_t)nbytes, &capacity);
        const size_t common = (size_t)(nbytes < s->nbytes ? nbytes : s->nbytes);
        if (common) std::memcpy(ptr, s->ptr, common);
        if (MT_UNLIKELY(watched)) {
            if (ptr) note(ptr, nbytes);
            if (s->ptr) note(s->ptr, -int64_t(s->nbytes));
        }
        if (alone) {
            data_free(s->ptr, s->capacity);
        } else if (s->ptr) {
            retired().push_back({s->ptr, s->capacity});
            memory_retired = true;
        }
        s->ptr = ptr;
        s->capacity = capacity;
        s->nbytes = nbytes;
        Py_RETURN_NONE;
    });
}

// The other way to move memory: what `other` holds comes here, and what was here goes there. Answers whether somebody
// may still use the old memory under this storage's name (a buffer, a part, a kernel of another thread).
PyObject* storage_exchange(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.exchange", nargs, 1);
        StorageObject *s = reinterpret_cast<StorageObject*>(self), *other = as_storage(args[0]);
        if (other->nbytes != s->nbytes) fail(PyExc_RuntimeError, "Storage.exchange: sizes differ");
        if (other->exports || other->fixed) fail(PyExc_RuntimeError, "Storage.exchange: the other storage is in use");
        std::swap(s->ptr, other->ptr);
        std::swap(s->capacity, other->capacity);
        std::swap(s->owner, other->owner);
        return PyBool_FromLong(s->exports || s->fixed || running_calls > 1);
    });
}

// Memory that several storages read and none may write: a block with one holder for each storage, in a capsule that
// stands where a storage of foreign memory has its owner. Whoever is to write takes a copy first, or the block itself
// if nobody else is left.
constexpr char SHARED[] = "mindtorch_v2._native.shared";

struct SharedBlock {
    char* ptr;
    size_t capacity;
    int64_t nbytes;
};

bool is_shared(const StorageObject* s) { return s->owner && PyCapsule_IsValid(s->owner, SHARED); }

SharedBlock* shared_block(PyObject* capsule) {
    return static_cast<SharedBlock*>(PyCapsule_GetPointer(capsule, SHARED));
}

void free_shared(PyObject* capsule) {
    SharedBlock* block = shared_block(capsule);
    if (block->ptr) {
        if (MT_UNLIKELY(watched)) note(block->ptr, -block->nbytes);
        bool kept = false;
        if (running_calls > 0) {  // a kernel of another thread may still read it
            try {
                retired().push_back({block->ptr, block->capacity});
                kept = memory_retired = true;
            } catch (const std::bad_alloc&) {
                kept = true;  // lost rather than freed under a kernel
            }
        }
        if (!kept) data_free(block->ptr, block->capacity);
    }
    delete block;
}

PyObject* storage_lazy_clone(PyObject* self, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.lazy_clone", nargs, 0);
        StorageObject* s = reinterpret_cast<StorageObject*>(self);
        if (!is_shared(s)) {
            if (!is_resizable(s)) Py_RETURN_NONE;
            auto block = std::make_unique<SharedBlock>(SharedBlock{s->ptr, s->capacity, s->nbytes});
            PyObject* capsule = PyCapsule_New(block.get(), SHARED, free_shared);
            if (!capsule) fail_set();
            block.release();
            s->owner = capsule;
            s->capacity = 0;
        }
        StorageObject* clone = new_object();
        clone->ptr = s->ptr;
        clone->nbytes = s->nbytes;
        clone->owner = Py_NewRef(s->owner);
        return reinterpret_cast<PyObject*>(clone);
    });
}

// Gives a storage bytes of its own where lazy clones share them; whether they did.
bool materialize(StorageObject* s) {
    if (!is_shared(s)) return false;
    SharedBlock* block = shared_block(s->owner);
    if (Py_REFCNT(s->owner) == 1) {
        s->capacity = block->capacity;
        block->ptr = nullptr;
    } else {
        size_t capacity;
        char* ptr = data_alloc((size_t)s->nbytes, &capacity);
        if (s->nbytes) std::memcpy(ptr, s->ptr, (size_t)s->nbytes);
        if (MT_UNLIKELY(watched) && ptr) note(ptr, s->nbytes);
        s->ptr = ptr;
        s->capacity = capacity;
    }
    Py_CLEAR(s->owner);
    return true;
}

PyObject* storage_materialize(PyObject* self, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.materialize", nargs, 0);
        return PyBool_FromLong(materialize(reinterpret_cast<StorageObject*>(self)));
    });
}

PyObject* storage_fix(PyObject* self, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("Storage.fix", nargs, 0);
        StorageObject* s = reinterpret_cast<StorageObject*>(self);
        materialize(s);
        s->fixed = true;
        Py_RETURN_NONE;
    });
}

PyObject* get_shared(PyObject* self, void*) {
    return PyBool_FromLong(is_shared(reinterpret_cast<StorageObject*>(self)));
}

int storage_getbuffer(PyObject* self, Py_buffer* view, int flags) {
    StorageObject* s = reinterpret_cast<StorageObject*>(self);
    static char empty;  // consumers expect an address even when there is nothing at it
    if (PyBuffer_FillInfo(view, self, s->ptr ? s->ptr : &empty, s->nbytes, 0, flags) < 0) return -1;
    ++s->exports;
    return 0;
}

void storage_releasebuffer(PyObject* self, Py_buffer*) { --reinterpret_cast<StorageObject*>(self)->exports; }

PyObject* storage_repr(PyObject* self) {
    StorageObject* s = reinterpret_cast<StorageObject*>(self);
    return PyUnicode_FromFormat("<Storage of %zd bytes at %p%s>", s->nbytes, s->ptr, s->owner ? ", foreign" : "");
}

PyObject* get_ptr(PyObject* self, void*) {
    return PyLong_FromUnsignedLongLong((unsigned long long)(uintptr_t)reinterpret_cast<StorageObject*>(self)->ptr);
}
PyObject* get_nbytes(PyObject* self, void*) {
    return PyLong_FromSsize_t(reinterpret_cast<StorageObject*>(self)->nbytes);
}
PyObject* get_resizable(PyObject* self, void*) {
    return PyBool_FromLong(is_resizable(reinterpret_cast<StorageObject*>(self)));
}
PyObject* get_wrapper(PyObject* self, void*) {
    PyObject* wrapper = wrapper_of(reinterpret_cast<StorageObject*>(self));
    return Py_NewRef(wrapper ? wrapper : Py_None);
}
int set_wrapper(PyObject* self, PyObject* value, void*) {
    PyObject*& wrapper = wrapper_of(reinterpret_cast<StorageObject*>(self));
    Py_XSETREF(wrapper, value && value != Py_None ? Py_NewRef(value) : nullptr);
    return 0;
}
PyObject* get_owner(PyObject* self, void*) {
    PyObject* owner = reinterpret_cast<StorageObject*>(self)->owner;
    if (!owner) owner = Py_None;
    Py_INCREF(owner);
    return owner;
}

PyGetSetDef storage_getset[] = {
    {"ptr", get_ptr, nullptr, "Address of the first byte, 0 when empty.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Size in bytes.", nullptr},
    {"resizable", get_resizable, nullptr,
     "Whether the memory may move: it is the allocator's own, and nobody else was given its address.", nullptr},
    {"shared", get_shared, nullptr, "Whether others read the same memory: materialize() before writing.", nullptr},
    {"owner", get_owner, nullptr, "The object that keeps foreign memory alive, or None.", nullptr},
    {"wrapper", get_wrapper, set_wrapper, "The storage as Python sees it, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef storage_type_methods[] = {
    {"wrap", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(storage_wrap)), METH_FASTCALL | METH_STATIC,
     "wrap(address, nbytes, owner): foreign memory, kept alive by owner."},
    MT_METHOD("exchange", storage_exchange,
              "exchange(other): take the memory of a storage of the same size, and give it this one's."),
    MT_METHOD("lazy_clone", storage_lazy_clone,
              "lazy_clone(): a storage of the same bytes, which are copied by the first that is to write; None if the "
              "memory is not the allocator's own, or its address was given away."),
    MT_METHOD("materialize", storage_materialize,
              "materialize(): bytes of this storage's own where lazy clones share them; whether they did."),
    MT_METHOD("fix", storage_fix, "fix(): the memory stays where it is from now on, as long as the storage lives."),
    MT_METHOD("part", storage_part,
              "part(): a storage over all of this one's memory, which stays where it is meanwhile."),
    MT_METHOD("resize", storage_resize, "resize(nbytes): change the size in place, keeping the common prefix."),
    {nullptr, nullptr, 0, nullptr}};

PyBufferProcs storage_buffer = {storage_getbuffer, storage_releasebuffer};

PyTypeObject make_type() {
    PyTypeObject t{};
    t.ob_base = PyVarObject{PyObject_HEAD_INIT(nullptr) 0};
    t.tp_name = "mindtorch_v2._native.Storage";
    t.tp_basicsize = sizeof(StorageObject);
    t.tp_dealloc = storage_dealloc;
    t.tp_repr = storage_repr;
    t.tp_as_buffer = &storage_buffer;
    t.tp_flags = Py_TPFLAGS_DEFAULT;
    t.tp_doc = "Storage(nbytes): uninitialised CPU memory, 64-byte aligned.";
    t.tp_methods = storage_type_methods;
    t.tp_getset = storage_getset;
    t.tp_new = storage_tp_new;
    t.tp_vectorcall = storage_vectorcall;
    return t;
}

}  // namespace

PyTypeObject StorageType = make_type();

int running_calls = 0;
bool memory_retired = false;

void free_retired() noexcept {
    for (const Retired& block : retired()) data_free(block.ptr, block.capacity);
    retired().clear();
    memory_retired = false;
}

namespace {

MT_INLINE PyObject* with_memory(StorageObject* s, size_t nbytes) {
    if (MT_LIKELY(nbytes - 1 < SMALL_LIMIT)) {
        s->ptr = small_alloc(nbytes, &s->capacity);
    } else if (nbytes) {
        Ref holder(reinterpret_cast<PyObject*>(s));  // an allocation that fails must not leak the object
        s->ptr = block_alloc(nbytes, &s->capacity);
        holder.release();
    }
    s->nbytes = (Py_ssize_t)nbytes;
    return reinterpret_cast<PyObject*>(s);
}

MT_NOINLINE PyObject* storage_fresh(size_t nbytes) {
    PyObject* made = with_memory(new_object(), nbytes);
    if (watched && nbytes) note(reinterpret_cast<StorageObject*>(made)->ptr, int64_t(nbytes));
    return made;
}

}  // namespace

PyObject* storage_new(int64_t count, int64_t itemsize) {
    const size_t nbytes = checked_bytes(count, itemsize);
    if (MT_UNLIKELY(free_count <= 0)) return storage_fresh(nbytes);
    return with_memory(new_object(), nbytes);
}

}  // namespace mt

using namespace mt;

static PyObject* alloc_instance(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("alloc_instance", nargs, 2);
        if (!PyType_Check(args[0]) || !PyType_Check(args[1]))
            fail(PyExc_TypeError, "alloc_instance() expects two types");
        PyTypeObject* base = reinterpret_cast<PyTypeObject*>(args[0]);
        PyTypeObject* cls = reinterpret_cast<PyTypeObject*>(args[1]);
        if (MT_UNLIKELY(cls != base && !PyType_IsSubtype(cls, base)))
            fail(PyExc_TypeError, "%s is not a subtype of %s", cls->tp_name, base->tp_name);
        static PyObject* empty = PyTuple_New(0);
        return base->tp_new(cls, empty, nullptr);
    });
}

// A class that only its subclasses may be called of. Memory is still made by `alloc_instance`, which calls no `__init__`.
static PyTypeObject* abstract_type = nullptr;

static int init_of_subclass(PyObject* self, PyObject*, PyObject*) {
    if (Py_TYPE(self) != abstract_type) return 0;
    PyErr_SetString(PyExc_RuntimeError, "Cannot directly construct TensorBase; subclass it and then construct that");
    return -1;
}

static PyObject* make_abstract(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("make_abstract", nargs, 1);
        if (!PyType_Check(args[0])) fail(PyExc_TypeError, "make_abstract() expects a type");
        abstract_type = reinterpret_cast<PyTypeObject*>(args[0]);
        abstract_type->tp_init = init_of_subclass;
        Py_RETURN_NONE;
    });
}

// The collector need not walk what cannot be garbage while it is reachable from a result: the nodes of a graph are a
// large, purely acyclic part of the heap, and walking them at every full collection makes long chains quadratic.
static PyObject* untrack(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    for (Py_ssize_t i = 0; i < nargs; ++i)
        if (PyObject_IS_GC(args[i])) PyObject_GC_UnTrack(args[i]);
    Py_RETURN_NONE;
}

static PyObject* track(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    for (Py_ssize_t i = 0; i < nargs; ++i)
        if (PyObject_IS_GC(args[i]) && !PyObject_GC_IsTracked(args[i])) PyObject_GC_Track(args[i]);
    Py_RETURN_NONE;
}

static PyObject* object_at(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("object_at", nargs, 1);
        void* address = PyLong_AsVoidPtr(args[0]);
        if (!address) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "object_at(): there is no object at address 0");
            fail_set();
        }
        return Py_NewRef(static_cast<PyObject*>(address));
    });
}

static PyObject* map_shared(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("map_shared", nargs, 2);
        const int64_t fd = as_int(args[0]), nbytes = as_int(args[1]);
        void* p = mmap(nullptr, (size_t)nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
        if (p == MAP_FAILED) {
            PyErr_SetFromErrno(PyExc_OSError);
            fail_set();
        }
        return PyLong_FromVoidPtr(p);
    });
}

static PyObject* unmap(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("unmap", nargs, 2);
        void* p = PyLong_AsVoidPtr(args[0]);
        if (!p && PyErr_Occurred()) fail_set();
        munmap(p, (size_t)as_int(args[1]));
        Py_RETURN_NONE;
    });
}

// A counter in memory that several processes see.
static PyObject* add_at(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("add_at", nargs, 2);
        int64_t* p = static_cast<int64_t*>(PyLong_AsVoidPtr(args[0]));
        if (!p && PyErr_Occurred()) fail_set();
        const int64_t more = as_int(args[1]);
        return PyLong_FromLongLong(__atomic_add_fetch(p, more, __ATOMIC_SEQ_CST));
    });
}

static PyObject* watch_memory(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("watch_memory", nargs, 1);
        const bool on = as_bool(args[0]);
        std::vector<Note> seen;
        {
            std::lock_guard<std::mutex> lock(notes_mutex);
            seen.swap(notes());
        }
        if (on) {
            while (free_count > 0) PyObject_Free(free_objects[--free_count]);
        }
        StorageType.tp_dealloc = on ? storage_dealloc_watched : storage_dealloc;
        watched = on;
        Ref list(PyList_New((Py_ssize_t)seen.size()));
        if (!list.get()) fail_set();
        for (size_t i = 0; i < seen.size(); ++i) {
            PyObject* item =
                Py_BuildValue("(LKLL)", (long long)seen[i].time, (unsigned long long)(uintptr_t)seen[i].ptr,
                              (long long)seen[i].nbytes, (long long)seen[i].thread);
            if (!item) fail_set();
            PyList_SET_ITEM(list.get(), (Py_ssize_t)i, item);
        }
        return list.release();
    });
}

PyMethodDef storage_methods[] = {
    MT_METHOD("add_at", add_at, "add_at(address, n): add to a 64-bit counter, whole for all processes; its new value."),
    MT_METHOD("map_shared", map_shared,
              "map_shared(fd, nbytes): map a descriptor's memory for all who have it; its address."),
    MT_METHOD("unmap", unmap, "unmap(address, nbytes): give a mapping back."),
    MT_METHOD("make_abstract", make_abstract,
              "make_abstract(cls): let the class of tensors' fields be made by its subclasses only."),
    MT_METHOD("alloc_instance", alloc_instance,
              "alloc_instance(base, cls): base.__new__(cls) without looking anything up."),
    MT_METHOD("object_at", object_at,
              "object_at(address): the object whose id() this is; the caller knows that it is alive."),
    MT_METHOD("track", track, "track(*objects): show objects to the cyclic garbage collector again."),
    MT_METHOD("untrack", untrack, "untrack(*objects): hide objects from the cyclic garbage collector."),
    MT_METHOD(
        "watch_memory", watch_memory,
        "watch_memory(on): note blocks of storages from now on, or no more; gives what was noted so far as tuples "
        "of time (CLOCK_MONOTONIC, ns), address, bytes (negative when given back) and thread."),
    {nullptr, nullptr, 0, nullptr}};
