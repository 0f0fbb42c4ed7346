// Calls of a vendor's C functions by address, at the cost of a call: ctypes, which finds the addresses, takes a
// microsecond for each. The functions are those of Ascend's object API and its operators (docs/npu.md).
//
// An operator's first phase has any number of arguments that are pointers or integers, and a few floats. On the machines
// the vendor supports (x86-64 and AArch64, Linux) the two kinds are passed in registers of their own, and only integers
// reach the stack, so one call with all integers in order and all floats behind them passes the same as the true one.
//
// Invariant: tensors and lists that `vendor_launch` makes are destroyed by it, handed to its caller or kept for later
// launches, on every path. A list owns its tensors once it exists.
#include "common.h"

#include <array>
#include <string_view>
#include <vector>

#include "vendor_kept.h"

using namespace mt;

extern PyMethodDef vendor_methods[];  // no other file needs to know

namespace {

constexpr size_t kMost = 48;   // integers and pointers, with the two results
constexpr size_t kFloats = 8;  // registers for floats on both machines
constexpr Py_ssize_t kRank = 64;
constexpr size_t kLaunches = 4096;
constexpr size_t kFiles = 256;
constexpr size_t kTexts = 64;
constexpr int32_t kNotRepeatable = 561000;  // the vendor's answer for functions whose executors run once

using Ints = std::array<int64_t, kMost>;
using Floats = std::array<double, kFloats>;

template <size_t> using Int = int64_t;

template <size_t... I> int32_t call_with(void* f, const Ints& a, const Floats& d, std::index_sequence<I...>) {
    using F = int32_t (*)(Int<I>..., double, double, double, double, double, double, double, double);
    return reinterpret_cast<F>(f)(a[I]..., d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
}

using Caller = int32_t (*)(void*, const Ints&, const Floats&);
template <size_t... N> constexpr std::array<Caller, sizeof...(N)> callers(std::index_sequence<N...>) {
    return {
        [](void* f, const Ints& a, const Floats& d) { return call_with(f, a, d, std::make_index_sequence<N>()); }...};
}
constexpr auto kCallers = callers(std::make_index_sequence<kMost + 1>());

// ---------------------------------------------------------------- launches that were made

// The last launches in the order they were made. A failure is reported by a later synchronisation: this is how it is
// told which line of the program made the launch. Holds names and code objects, neither frames nor tensors.
struct Launch {
    PyObject *function = nullptr, *operation = nullptr, *device = nullptr, *stream = nullptr, *code = nullptr;
    int offset = 0;
};

// Whether a file is the package's: asked of every frame between a launch and the program, so answers are kept.
struct File {
    PyObject* name = nullptr;
    bool ours = false;
};

struct Ring {
    Launch launches[kLaunches];
    uint64_t count = 0;
    PyObject* ours = nullptr;  // a tuple of prefixes
    File files[kFiles];

    static Ring& get() {
        static Ring* all = new Ring;  // lives as long as the process: code objects may not be let go of after Python
        return *all;
    }
};

bool begins_as_ours(PyObject* ours, PyObject* file) {
    for (Py_ssize_t i = 0; ours != nullptr && i < PyTuple_GET_SIZE(ours); ++i) {
        if (PyUnicode_Tailmatch(file, PyTuple_GET_ITEM(ours, i), 0, PY_SSIZE_T_MAX, -1) == 1) return true;
    }
    return false;
}

// All code of a file shares the object that is its name.
bool is_ours(Ring& ring, PyObject* file) {
    File& known = ring.files[(reinterpret_cast<uintptr_t>(file) >> 4) % kFiles];
    if (known.name != file) {
        known.ours = begins_as_ours(ring.ours, file);
        Py_INCREF(file);
        Py_XDECREF(std::exchange(known.name, file));
    }
    return known.ours;
}

// The instruction of the user's program that this thread is at: a new reference to its code, or null.
PyObject* program_code(Ring& ring, int* offset) {
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != nullptr) {
        PyCodeObject* code = PyFrame_GetCode(frame);
        if (!is_ours(ring, code->co_filename)) {
#if PY_VERSION_HEX >= 0x030b0000
            *offset = PyFrame_GetLasti(frame);
#else
            PyObject* at = PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_lasti");
            *offset = at == nullptr ? 0 : int(PyLong_AsLong(at));
            Py_XDECREF(at);
            PyErr_Clear();
#endif
            Py_DECREF(frame);
            return reinterpret_cast<PyObject*>(code);
        }
        Py_DECREF(code);
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return nullptr;
}

void record_launch(PyObject* function, PyObject* operation, PyObject* device, PyObject* stream) {
    Ring& ring = Ring::get();
    Launch next{function, operation, device, stream, nullptr, 0};
    next.code = program_code(ring, &next.offset);
    for (PyObject* kept : {function, operation, device, stream}) Py_INCREF(kept);
    Launch old = std::exchange(ring.launches[ring.count++ % kLaunches], next);
    for (PyObject* gone : {old.function, old.operation, old.device, old.stream, old.code}) Py_XDECREF(gone);
}

PyObject* vendor_record(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_record", nargs, 4);
        record_launch(args[0], args[1], args[2], args[3]);
        Py_RETURN_NONE;
    });
}

PyObject* vendor_launches(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        Ring& ring = Ring::get();
        if (nargs == 0) return PyLong_FromUnsignedLongLong(ring.count);
        expect_args("vendor_launches", nargs, 1);
        uint64_t n = PyLong_AsUnsignedLongLong(args[0]);
        if (PyErr_Occurred()) fail_set();
        if (n >= ring.count || ring.count - n > kLaunches) fail(PyExc_IndexError, "no such launch is remembered");
        const Launch& one = ring.launches[n % kLaunches];
        return Py_BuildValue("OOOOOi", one.function, one.operation, one.device, one.stream,
                             one.code == nullptr ? Py_None : one.code, one.offset);
    });
}

PyObject* vendor_ours(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_ours", nargs, 1);
        if (!PyTuple_Check(args[0])) fail(PyExc_TypeError, "vendor_ours() expects a tuple");
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
            if (!PyUnicode_Check(PyTuple_GET_ITEM(args[0], i))) fail(PyExc_TypeError, "a prefix is a str");
        }
        Ring& ring = Ring::get();
        Py_INCREF(args[0]);
        Py_XDECREF(std::exchange(ring.ours, args[0]));
        for (File& known : ring.files) Py_XDECREF(std::exchange(known.name, nullptr));
        Py_RETURN_NONE;
    });
}

// What a thread keeps for its launches, at a third of the cost of threading.local.
PyObject* vendor_thread(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        static PyObject* const key = PyUnicode_InternFromString("mindtorch_v2.vendor_thread");
        PyObject* kept = PyThreadState_GetDict();
        if (kept == nullptr || key == nullptr) fail(PyExc_RuntimeError, "this thread has no state");
        if (nargs == 0) {
            PyObject* found = PyDict_GetItemWithError(kept, key);
            if (found == nullptr && PyErr_Occurred()) fail_set();
            if (found == nullptr) Py_RETURN_NONE;
            Py_INCREF(found);
            return found;
        }
        expect_args("vendor_thread", nargs, 1);
        if (PyDict_SetItem(kept, key, args[0]) != 0) fail_set();
        Py_RETURN_NONE;
    });
}

// ---------------------------------------------------------------- calls

// An address or a handle; None is a null pointer.
int64_t whole(PyObject* value) {
    if (value == Py_None) return 0;
    if (!PyLong_Check(value)) fail(PyExc_TypeError, "an integer or None is required, not %s", Py_TYPE(value)->tp_name);
    int overflow = 0;
    long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (MT_LIKELY(overflow == 0)) return found;
    return int64_t(PyLong_AsUnsignedLongLongMask(value));  // as C would pass it: the callee reads what it declares
}

void* address(PyObject* value) {
    int64_t found = whole(value);
    if (found == 0) fail(PyExc_ValueError, "the address of a function is required");
    return reinterpret_cast<void*>(found);
}

int32_t second_phase(void* function, void* workspace, uint64_t size, void* executor, void* stream) {
    using Run = int32_t (*)(void*, uint64_t, void*, void*);
    int32_t code = 0;
    Py_BEGIN_ALLOW_THREADS;  // it may wait for room in the stream, or for the device
    code = reinterpret_cast<Run>(function)(workspace, size, executor, stream);
    Py_END_ALLOW_THREADS;
    return code;
}

// A vendor function with what calling it takes; held by a capsule.
struct Function {
    void *create, *destroy, *create_list, *destroy_list, *phase1, *phase2, *destroy_executor;
    std::string letters;
    PyObject* name;
    // Null where executors of this function, or of this version of the vendor's libraries, run once.
    void *make_repeatable, *drop_message;
};

constexpr const char* kFunction = "mindtorch_v2.vendor_function";

PyObject* vendor_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_function", nargs, 11);
        if (!PyBytes_Check(args[7]) || !PyUnicode_Check(args[8])) {
            fail(PyExc_TypeError, "vendor_function() expects seven addresses, letters, a name and two addresses");
        }
        std::string letters(PyBytes_AS_STRING(args[7]), size_t(PyBytes_GET_SIZE(args[7])));
        size_t floating = 0;
        for (char letter : letters) {
            if (std::strchr("tlisdf", letter) == nullptr || letter == 0) fail(PyExc_ValueError, "an unknown letter");
            floating += letter == 'd' || letter == 'f';
        }
        if (floating > kFloats || letters.size() - floating + 2 > kMost) fail(PyExc_ValueError, "too many arguments");
        auto* made = new Function{address(args[0]),
                                  address(args[1]),
                                  address(args[2]),
                                  address(args[3]),
                                  address(args[4]),
                                  address(args[5]),
                                  address(args[6]),
                                  letters,
                                  args[8],
                                  reinterpret_cast<void*>(whole(args[9])),
                                  reinterpret_cast<void*>(whole(args[10]))};
        PyObject* capsule = PyCapsule_New(made, kFunction, [](PyObject* self) {
            auto* f = static_cast<Function*>(PyCapsule_GetPointer(self, kFunction));
            Kept::get().forget(f);
            Py_DECREF(f->name);
            delete f;
        });
        if (capsule == nullptr) delete made;
        else Py_INCREF(made->name);
        return capsule;
    });
}

// The tensors and lists of one launch: made for it, which are destroyed with it unless they are given away, or kept.
struct Made {
    const Function& f;
    std::vector<void*> tensors, lists;
    std::array<Described*, kMost> kept;
    size_t count = 0;
    int32_t worst = 0;  // the first code that is not 0 of letting go what was kept before

    explicit Made(const Function& function) : f(function) {}
    ~Made() { destroy(); }

    int32_t destroy() {
        while (count != 0) --kept[--count]->users;
        note(all(f.destroy, tensors));
        note(all(f.destroy_list, lists));
        return worst;
    }

    void note(int32_t code) { worst = worst != 0 ? worst : code; }

    static int32_t all(void* function, std::vector<void*>& handles) {
        int32_t worst = 0;
        for (void* handle : handles) {
            int32_t code = handle == nullptr ? 0 : reinterpret_cast<Release>(function)(handle);
            if (worst == 0) worst = code;
        }
        handles.clear();
        return worst;
    }

    // The places of a list that were left out are not given.
    static PyObject* give(std::vector<void*>& handles) {
        PyObject* list = PyList_New(0);
        if (list == nullptr) fail_set();
        for (void*& handle : handles) {
            if (handle == nullptr) continue;
            PyObject* number = PyLong_FromVoidPtr(handle);
            int bad = number == nullptr ? -1 : PyList_Append(list, number);
            Py_XDECREF(number);
            if (bad != 0) {
                Py_DECREF(list);
                fail_set();
            }
            handle = nullptr;
        }
        handles.clear();
        return list;
    }

    // What is described as before; null where it is not kept.
    void* known(const int64_t* words, size_t n, uint64_t hash, void* create) {
        Kept& all = Kept::get();
        Described* one = all.descriptions.find(hash, [&](const Described& other) {
            return other.create == create && other.words.size() == n &&
                   std::memcmp(other.words.data(), words, n * sizeof *words) == 0;
        });
        if (one == nullptr) return nullptr;
        use(one);
        return one->handle;
    }

    // Keeps a new tensor or list, if there is room for it.
    bool keep(void* handle, const int64_t* words, size_t n, uint64_t hash, bool list, size_t handles) {
        Kept& all = Kept::get();
        Described** place = all.descriptions.room(hash, ~uint64_t(0));
        if (place == nullptr) return false;
        auto* one = new Described{list ? f.create_list : f.create,
                                  list ? f.destroy_list : f.destroy,
                                  handle,
                                  hash,
                                  0,
                                  Words(words, words + n),
                                  handles};
        note(all.put(place, one));
        use(one);
        return true;
    }

    void use(Described* one) {
        one->last = Kept::get().now;
        ++one->users;
        kept[count++] = one;
    }
};

void read_sizes(PyObject* tuple, Words& words) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) words.push_back(whole(PyTuple_GET_ITEM(tuple, i)));
}

bool is_sizes(PyObject* value) { return PyTuple_Check(value) && PyTuple_GET_SIZE(value) <= kRank; }

// The words of (shape, strides or None, dtype, offset, format, bytes of the storage, bytes of an element, address).
void read_tensor(PyObject* given, Words& words) {
    if (given == Py_None) return words.push_back(kAbsent);
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 8) {
        fail(PyExc_TypeError, "a tensor's description has eight parts");
    }
    PyObject* const* part = reinterpret_cast<PyTupleObject*>(given)->ob_item;
    const bool strided = part[1] != Py_None;
    if (!is_sizes(part[0]) || (strided && !is_sizes(part[1]))) {
        fail(PyExc_TypeError, "a tuple of at most %zd sizes is required", kRank);
    }
    const Py_ssize_t rank = PyTuple_GET_SIZE(part[0]);
    if (strided && PyTuple_GET_SIZE(part[1]) != rank) fail(PyExc_ValueError, "a stride for each size is required");
    const int64_t item = whole(part[6]);
    if (item <= 0) fail(PyExc_ValueError, "an element has at least one byte");
    words.push_back(rank | int64_t(strided) << 8);
    words.push_back(int64_t(uint32_t(whole(part[2])) | uint64_t(whole(part[4])) << 32));
    words.push_back(whole(part[3]));
    words.push_back(whole(part[5]) / item);
    words.push_back(whole(part[7]));
    read_sizes(part[0], words);
    if (strided) read_sizes(part[1], words);
}

void read_list(PyObject* given, Words& words) {
    if (given == Py_None) return words.push_back(kAbsent);
    if (!PyList_Check(given)) fail(PyExc_TypeError, "a list of tensors' descriptions is required");
    words.push_back(PyList_GET_SIZE(given));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) read_tensor(PyList_GET_ITEM(given, i), words);
}

// A tensor of its words, which end at `words` afterwards; null when the vendor made none.
void* create_tensor(const int64_t*& words, const Function& f) {
    const int64_t* head = words;
    const int64_t rank = head[0] & 0xff;
    const int64_t *shape = head + kHead, *strides = head[0] >> 8 ? shape + rank : nullptr;
    words = shape + (strides == nullptr ? rank : 2 * rank);
    using Create =
        void* (*)(const int64_t*, uint64_t, int32_t, const int64_t*, int64_t, int32_t, const int64_t*, uint64_t, void*);
    return reinterpret_cast<Create>(f.create)(shape, uint64_t(rank), int32_t(head[1]), strides, head[2],
                                              int32_t(head[1] >> 32), head + 3, 1, reinterpret_cast<void*>(head[4]));
}

// What a launch that Python has to go on with stopped at.
enum Stage : int { kGoOn = -1, kNoTensor = 0, kPhase1 = 1, kWorkspace = 2, kPhase2 = 3, kRelease = 4, kNoList = 5 };

PyObject* stopped(Stage stage, int32_t code, uint64_t size, void* executor, Made& made) {
    PyObject* tensors = Made::give(made.tensors);
    return Py_BuildValue("iiKNNN", int(stage), int(code), static_cast<unsigned long long>(size),
                         PyLong_FromVoidPtr(executor), tensors, Made::give(made.lists));
}

Stage make_tensor(const int64_t* words, Made& made, void*& handle) {
    handle = create_tensor(words, made.f);
    if (handle == nullptr) return kNoTensor;
    made.tensors.push_back(handle);
    return kGoOn;
}

// Its tensors are the launch's own until there is a list of them.
Stage make_list(const int64_t* words, Made& made, void*& handle, size_t& handles) {
    const size_t before = made.tensors.size();
    for (int64_t n = *words++; n != 0; --n) {
        void* one = nullptr;
        if (*words == kAbsent) {
            ++words;
        } else {
            one = create_tensor(words, made.f);
            if (one == nullptr) return kNoTensor;
            ++handles;
        }
        made.tensors.push_back(one);
    }
    using Create = void* (*)(void* const*, uint64_t);
    handle = reinterpret_cast<Create>(made.f.create_list)(made.tensors.data() + before,
                                                          uint64_t(made.tensors.size() - before));
    if (handle == nullptr) return kNoList;
    made.tensors.resize(before);
    made.lists.push_back(handle);
    return kGoOn;
}

// How much of a launch may be kept: its numbers and arrays may be objects that end with it.
enum Keep : int { kNothing = 0, kTensors = 1, kAll = 2 };

struct Launching {
    const Function& f;
    Made made;
    Keep keep;
    Ints ints{};
    Floats floats{};
    size_t used = 0, floating = 0;

    Launching(const Function& function, Keep most) : f(function), made(function), keep(most) {}

    // All arguments before anything is made. Of tensors and lists, where their words begin.
    void read(PyObject* values, Words& words) {
        for (size_t i = 0; i < f.letters.size(); ++i) {
            PyObject* value = PyList_GET_ITEM(values, Py_ssize_t(i));
            switch (f.letters[i]) {
                case 't':
                    ints[used++] = int64_t(words.size());
                    read_tensor(value, words);
                    break;
                case 'l':
                    ints[used++] = int64_t(words.size());
                    read_list(value, words);
                    break;
                case 'i': ints[used++] = whole(value); break;
                case 's': ints[used++] = reinterpret_cast<int64_t>(text(value)); break;
                default: floats[floating++] = real(value, f.letters[i] == 'f');
            }
        }
    }

    // Equal texts have one address as long as there are few; more of them keep no executors.
    const char* text(PyObject* value) {
        if (value == Py_None) return nullptr;
        if (!PyBytes_Check(value)) fail(PyExc_TypeError, "bytes are required");
        if (keep != kAll) return PyBytes_AS_STRING(value);
        static auto* texts = new std::vector<std::unique_ptr<const std::string>>;  // as long as what is kept
        const std::string_view wanted(PyBytes_AS_STRING(value), size_t(PyBytes_GET_SIZE(value)));
        for (const auto& known : *texts)
            if (*known == wanted) return known->c_str();
        if (texts->size() == kTexts) {
            keep = kTensors;
            return PyBytes_AS_STRING(value);
        }
        texts->push_back(std::make_unique<const std::string>(wanted));
        return texts->back()->c_str();
    }

    static double real(PyObject* value, bool narrow) {
        double x = PyFloat_AsDouble(value);
        if (x == -1.0 && PyErr_Occurred()) fail(PyExc_TypeError, "a float is required");
        if (narrow) {  // the lower half of the register
            float half = float(x);
            x = 0;
            std::memcpy(&x, &half, sizeof half);
        }
        return x;
    }

    // Handles in the places of tensors and lists.
    Stage describe(const Words& words) {
        size_t at = 0;
        int64_t* last = nullptr;
        const int64_t* begin = nullptr;
        bool list = false;
        for (char letter : f.letters) {
            if (letter == 'd' || letter == 'f') continue;
            int64_t* place = &ints[at++];
            if (letter != 't' && letter != 'l') continue;
            const int64_t* here = words.data() + *place;
            if (last != nullptr) {
                Stage stage = describe(begin, size_t(here - begin), list, *last);
                if (stage != kGoOn) return stage;
            }
            last = place, begin = here, list = letter == 'l';
        }
        return last == nullptr ? kGoOn : describe(begin, size_t(words.data() + words.size() - begin), list, *last);
    }

    Stage describe(const int64_t* words, size_t n, bool list, int64_t& place) {
        place = 0;
        if (*words == kAbsent) return kGoOn;
        uint64_t hash = 0;
        if (keep != kNothing) {
            hash = mixed(list ? kListSeed : kTensorSeed, words, n);
            void* known = made.known(words, n, hash, list ? f.create_list : f.create);
            place = reinterpret_cast<int64_t>(known);
            if (known != nullptr) return kGoOn;
        }
        void* handle = nullptr;
        size_t handles = 1;
        Stage stage = list ? make_list(words, made, handle, handles) : make_tensor(words, made, handle);
        if (stage != kGoOn) return stage;
        place = reinterpret_cast<int64_t>(handle);
        if (keep == kNothing) return kGoOn;
        if (Kept::get().again(hash) && made.keep(handle, words, n, hash, list, handles)) {
            (list ? made.lists : made.tensors).pop_back();
        } else {
            keep = kTensors;
        }
        return kGoOn;
    }
};

// What tells launches of a function apart.
struct Key {
    std::array<int64_t, kMost + kFloats + 1> words;
    size_t n;
    uint64_t hash;

    Key(const Launching& one, int64_t device) : n(one.used + one.floating + 1) {
        std::memcpy(words.data(), one.ints.data(), one.used * sizeof words[0]);
        std::memcpy(&words[one.used], one.floats.data(), one.floating * sizeof(double));
        words[n - 1] = device;
        hash = mixed(reinterpret_cast<uint64_t>(&one.f), words.data(), n);
    }

    bool is(const Repeated& other, const Function* f) const {
        return other.function == f && other.key.size() == n &&
               std::memcmp(other.key.data(), words.data(), n * sizeof words[0]) == 0;
    }
};

// Keeps the executor of a launch that was made before; null where that cannot be.
Repeated* repeat(Function* f, const Key& key, void* executor, uint64_t size, Made& made) {
    Kept& kept = Kept::get();
    if (!kept.again(key.hash)) return nullptr;
    Repeated** place = kept.executors.room(key.hash, kept.now > Kept::kPatience ? kept.now - Kept::kPatience : 0);
    if (place == nullptr) return nullptr;
    if (const int32_t code = reinterpret_cast<Release>(f->make_repeatable)(executor); code != 0) {
        // The launch goes on as one that is made once, and what the vendor says of this is nobody's error.
        if (code == kNotRepeatable) f->make_repeatable = nullptr;
        if (f->drop_message != nullptr) reinterpret_cast<const char* (*)()>(f->drop_message)();
        return nullptr;
    }
    auto* one = new Repeated{f,
                             executor,
                             f->destroy_executor,
                             size,
                             key.hash,
                             kept.now,
                             Words(key.words.begin(), key.words.begin() + std::ptrdiff_t(key.n)),
                             {made.kept.begin(), made.kept.begin() + std::ptrdiff_t(made.count)}};
    for (Described* held : one->held) ++held->users;
    made.note(kept.put(place, one));
    return one;
}

// Device memory for a second phase. It is let go as soon as that is queued: memory is reused in the stream's order.
struct Workspace {
    PyObject* held = nullptr;
    void* at = nullptr;

    ~Workspace() { Py_XDECREF(held); }

    // False with an exception where there is no memory.
    bool take(PyObject* take, PyObject* device, uint64_t size) {
        static PyObject* const name = PyUnicode_InternFromString("address");
        PyObject* wanted = PyLong_FromUnsignedLongLong(size);
        PyObject* const given[] = {wanted, device};
        if (wanted != nullptr && name != nullptr) held = PyObject_Vectorcall(take, given, 2, nullptr);
        Py_XDECREF(wanted);
        PyObject* found = held == nullptr ? nullptr : PyObject_GetAttr(held, name);
        at = found == nullptr ? nullptr : PyLong_AsVoidPtr(found);
        Py_XDECREF(found);
        return !PyErr_Occurred();
    }
};

// Without memory everything made for the launch goes, and the exception is left.
[[noreturn]] void give_up(Repeated* one, void* executor, Made& made) {
    PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;
    PyErr_Fetch(&kind, &error, &trace);
    if (one != nullptr) Kept::get().ran(one, true);
    else reinterpret_cast<Release>(made.f.destroy_executor)(executor);
    made.destroy();
    PyErr_Restore(kind, error, trace);
    fail_set();
}

PyObject* vendor_launch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_launch", nargs, 7);
        auto* f = static_cast<Function*>(PyCapsule_GetPointer(args[0], kFunction));
        if (f == nullptr) fail_set();
        if (!PyList_Check(args[1])) fail(PyExc_TypeError, "vendor_launch() expects a list of arguments");
        if (PyList_GET_SIZE(args[1]) != Py_ssize_t(f->letters.size())) {
            fail(PyExc_ValueError, "an argument for each letter is required");
        }
        const int64_t device = whole(args[3]);
        void* stream = reinterpret_cast<void*>(whole(args[4]));
        Kept& kept = Kept::get();
        ++kept.now;
        // Where the caller goes on with the launch, it destroys what was made for it.
        Launching now(*f, PyBool_Check(args[5]) ? kNothing : Keep(whole(args[6])));
        thread_local Words words;
        words.clear();
        now.read(args[1], words);
        Made& made = now.made;
        if (Stage stage = now.describe(words); stage != kGoOn) return stopped(stage, 0, 0, nullptr, made);

        const bool repeats = now.keep == kAll && f->make_repeatable != nullptr;
        const Key key(now, device);
        Repeated* one =
            !repeats ? nullptr : kept.executors.find(key.hash, [&](const Repeated& other) { return key.is(other, f); });
        const bool taken = one != nullptr && one->running;  // by another thread
        if (taken) one = nullptr;
        uint64_t size = 0;
        void* executor = nullptr;
        int32_t code = 0;
        if (one != nullptr) {
            one->running = true;
            one->last = kept.now;
            size = one->size;
            executor = one->executor;
        } else {
            now.ints[now.used] = reinterpret_cast<int64_t>(&size);
            now.ints[now.used + 1] = reinterpret_cast<int64_t>(&executor);
            code = kCallers[now.used + 2](f->phase1, now.ints, now.floats);
            if (code != 0) return stopped(kPhase1, code, size, executor, made);
            if (args[5] == Py_False || (size != 0 && args[5] == Py_True)) {
                return stopped(kWorkspace, code, size, executor, made);
            }
            if (repeats && !taken) one = repeat(f, key, executor, size, made);
        }
        Workspace workspace;
        if (size != 0 && !workspace.take(args[5], args[3], size)) give_up(one, executor, made);
        code = second_phase(f->phase2, workspace.at, size, executor, stream);
        record_launch(f->name, args[2], args[3], args[4]);
        if (one != nullptr) made.note(kept.ran(one, code == 0));
        if (code != 0) return stopped(kPhase2, code, size, nullptr, made);
        code = made.destroy();
        if (code != 0) return stopped(kRelease, code, size, nullptr, made);
        Py_RETURN_NONE;
    });
}

PyObject* vendor_kept(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_kept", nargs, 0);
        return PyLong_FromSize_t(Kept::get().handles);
    });
}

PyObject* vendor_forget(PyObject*, PyObject* const*, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_forget", nargs, 0);
        return PyLong_FromLong(Kept::get().forget(nullptr));
    });
}

PyObject* vendor_phase2(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_phase2", nargs, 5);
        void* run = address(args[0]);
        void* workspace = reinterpret_cast<void*>(whole(args[1]));
        auto size = uint64_t(whole(args[2]));
        void* executor = reinterpret_cast<void*>(whole(args[3]));
        void* stream = reinterpret_cast<void*>(whole(args[4]));
        return PyLong_FromLong(second_phase(run, workspace, size, executor, stream));
    });
}

PyObject* vendor_destroy(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_destroy", nargs, 2);
        auto destroy = reinterpret_cast<Release>(address(args[0]));
        if (!PyList_Check(args[1])) fail(PyExc_TypeError, "vendor_destroy() expects an address and a list");
        int32_t worst = 0;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i) {
            PyObject* handle = PyList_GET_ITEM(args[1], i);
            if (handle == Py_None) continue;
            int32_t code = destroy(reinterpret_cast<void*>(whole(handle)));
            if (worst == 0) worst = code;
        }
        return PyLong_FromLong(worst);
    });
}

}  // namespace

PyMethodDef vendor_methods[] = {
    MT_METHOD(
        "vendor_function", vendor_function,
        "vendor_function(create, destroy, create list, destroy list, phase1, phase2, destroy executor, letters, name, "
        "make repeatable, last message): what vendor_launch calls. Letters: t tensors, l lists of tensors, i integers "
        "and pointers, s bytes, d double, f float. Without the last but one nothing is run again."),
    MT_METHOD(
        "vendor_launch", vendor_launch,
        "vendor_launch(function, arguments, operator, device, stream, whole, keep): both phases. `whole` gives memory "
        "for a workspace, as whole(bytes, device).address; or it is True where none is given, False where phase 2 is "
        "the caller's. `keep`: 0 nothing, 1 tensors, 2 executors too: all integers stay what they are. None when all "
        "is done and released, else (where it stopped: 0 making a tensor, 1 phase 1, "
        "2 before phase 2, 3 phase 2, 4 releasing, 5 making a list; the code, bytes of workspace, executor, "
        "tensors and lists that are alive)."),
    MT_METHOD("vendor_kept", vendor_kept,
              "vendor_kept(): how many of the vendor's objects are kept for later launches."),
    MT_METHOD("vendor_forget", vendor_forget,
              "vendor_forget(): lets go of what is kept and not in use; the first code that is not 0."),
    MT_METHOD("vendor_phase2", vendor_phase2, "vendor_phase2(function, workspace, size, executor, stream): the code."),
    MT_METHOD("vendor_destroy", vendor_destroy, "vendor_destroy(function, handles): the first code that is not 0."),
    MT_METHOD("vendor_record", vendor_record, "vendor_record(function, operator, device, stream): remember a launch."),
    MT_METHOD(
        "vendor_launches", vendor_launches,
        "vendor_launches(n): launch n as (function, operator, device, stream, code or None, offset); without n how "
        "many there were."),
    MT_METHOD("vendor_ours", vendor_ours, "vendor_ours(prefixes): how names of files begin that are no program's."),
    MT_METHOD("vendor_thread", vendor_thread,
              "vendor_thread(): what this thread keeps; vendor_thread(value): have it keep that."),
    {nullptr, nullptr, 0, nullptr}};
