// Steps of optimisers over lists of tensors: one pass over all that a step reads and writes. Invariant: nothing is written
// before every block was found inside its storage and no two of them overlap that are not both only read.
//
//   fused_adam(code, lists, blocks, step_code, lr, beta1, beta2, weight_decay, eps, decoupled, maximize, grad_scale)
//   fused_sgd(code, lists, blocks, lr, weight_decay, momentum, dampening, nesterov, first, maximize, grad_scale)
//   fused_adagrad(code, lists, blocks, step_code, lr, lr_decay, weight_decay, eps, maximize, grad_scale)
//
// blocks: for each parameter [elements, storage, offset, storage, offset, ...], flat, one block in each of the `lists`
// lists: parameters, gradients, then the state. A block is memory without gaps; blocks of a parameter have one layout, so
// that elements belong together as they lie. With a step_code two more follow: a float and None, the number of this step;
// or storage and offset of a count, of the dtype step_code, to which one is added first.
// grad_scale: None, or what gradients are divided by, in place.
// They return False, and have done nothing, where blocks overlap.
#include "cpu.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

constexpr int MOST = 5;          // blocks of a parameter
constexpr int64_t PIECE = 4096;  // elements that are unscaled before they are used, while they are in the cache
constexpr int GRADS = 1;         // the list of gradients

struct Item {
    int64_t begin, numel;  // where its elements are counted from
    double step;
    char* data[MOST];
};

struct Count {
    char* at;
    double value;
};

struct Span {
    const char *begin, *end;
    bool written;
};

class Blocks {
public:
    std::vector<Item> items;
    int64_t total = 0;
    int code, lists;

    // args: code, lists, blocks, and the dtype of step counts where there are such.
    Blocks(const char* name, PyObject* const* args, int least, int most, bool grads_written, bool steps)
        : steps_(steps) {
        PyObject* list = args[2];
        code = as_code(args[0]);
        if (code != F32 && code != F64 && code != F16 && code != BF16) fail_dtype(name, code);
        if (steps) step_code_ = as_code(args[3]);
        if (steps && step_code_ != F32 && step_code_ != F64) fail_dtype(name, step_code_);
        const int64_t n = as_int(args[1]);
        if (n < least || n > most) fail(PyExc_ValueError, "%s: %lld lists", name, (long long)n);
        lists = (int)n;
        const Py_ssize_t width = 1 + 2 * lists + (steps ? 2 : 0);
        if (!PyList_Check(list) || PyList_GET_SIZE(list) % width)
            fail(PyExc_TypeError, "%s: %zd items for each parameter", name, width);
        items.reserve((size_t)(PyList_GET_SIZE(list) / width));
        spans_.reserve((size_t)PyList_GET_SIZE(list));
        for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list); at += width) parse(name, list, at, grads_written);
    }

    bool overlap() {
        std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
        const char *any = nullptr, *written = nullptr;  // how far blocks before this one reach
        for (const Span& s : spans_) {
            if (s.begin < written || (s.written && s.begin < any)) return true;
            any = std::max(any, s.end);
            if (s.written) written = std::max(written, s.end);
        }
        return false;
    }

    // Counts that were read are one further; after everything was checked.
    void count() const {
        for (const Count& c : counts_) {
            if (step_code_ == F32) *reinterpret_cast<float*>(c.at) = (float)c.value;
            else *reinterpret_cast<double*>(c.at) = c.value;
        }
    }

    // f(item, first element, last) over all elements, side by side.
    template <class F> void each(F&& f) const {
        const GilRelease unlocked(saturated_mul(total, 4));
        parallel_for(total, GRAIN / 4, [&](int64_t begin, int64_t end) {
            size_t i = size_t(std::upper_bound(items.begin(), items.end(), begin,
                                               [](int64_t at, const Item& item) { return at < item.begin; }) -
                              items.begin()) -
                       1;
            while (begin < end) {
                const Item& item = items[i++];
                const int64_t stop = std::min(end, item.begin + item.numel);
                for (int64_t at = begin; at < stop; at += PIECE)
                    f(item, at - item.begin, std::min(stop, at + PIECE) - item.begin);
                begin = std::max(begin, stop);
            }
        });
    }

private:
    std::vector<Span> spans_;
    std::vector<Count> counts_;
    int step_code_ = F32;
    const bool steps_;

    // A number that is one: asking anything else would run Python, which may change the list or free a storage.
    static int64_t integer(const char* name, PyObject* o) {
        if (!PyLong_CheckExact(o)) fail(PyExc_TypeError, "%s: expected an int, got %s", name, Py_TYPE(o)->tp_name);
        return as_int(o);
    }

    char* inside(const char* name, PyObject* list, Py_ssize_t at, int64_t numel, int itemsize, bool written) {
        const StorageObject* storage = as_storage(PyList_GET_ITEM(list, at));
        const int64_t offset = integer(name, PyList_GET_ITEM(list, at + 1)), start = checked_mul(offset, itemsize);
        const int64_t bytes = (int64_t)checked_bytes(numel, itemsize);
        if (offset < 0 || checked_add(start, bytes) > storage->nbytes)
            fail(PyExc_RuntimeError, "%s: %lld elements from %lld are outside a storage of %zd bytes", name,
                 (long long)numel, (long long)offset, storage->nbytes);
        char* begin = storage->ptr + start;
        if (bytes) spans_.push_back({begin, begin + bytes, written});
        return begin;
    }

    void parse(const char* name, PyObject* list, Py_ssize_t at, bool grads_written) {
        Item item;
        item.numel = integer(name, PyList_GET_ITEM(list, at++));
        item.begin = total;
        item.step = 0;
        if (item.numel < 0) fail(PyExc_ValueError, "%s: %lld elements", name, (long long)item.numel);
        total = checked_add(total, item.numel);
        for (int k = 0; k < lists; ++k, at += 2)
            item.data[k] = inside(name, list, at, item.numel, ITEMSIZE[code], k != GRADS || grads_written);
        if (steps_) item.step = step(name, list, at);
        if (item.numel) items.push_back(item);
    }

    double step(const char* name, PyObject* list, Py_ssize_t at) {
        PyObject* given = PyList_GET_ITEM(list, at);
        if (PyFloat_CheckExact(given)) return PyFloat_AS_DOUBLE(given);
        char* place = inside(name, list, at, 1, ITEMSIZE[step_code_], true);
        const double next = step_code_ == F32 ? (double)(*reinterpret_cast<const float*>(place) + 1.0f)
                                              : *reinterpret_cast<const double*>(place) + 1.0;
        counts_.push_back({place, next});
        return next;
    }
};

template <class T> using compute = typename std::conditional<std::is_same<T, double>::value, double, float>::type;

template <class F> void with_type(int code, F&& f) {
    if (code == F32) f(float());
    else if (code == F64) f(double());
    else if (code == F16) f(Half());
    else f(BFloat16());
}

template <class T> MT_INLINE void unscale(T* g, int64_t n, compute<T> scale) {
    for (int64_t i = 0; i < n; ++i) g[i] = convert<T>(widen(g[i]) / scale);
}

// Numbers of four bytes and more are bound by memory, and no faster by wider vectors than AVX2's.
template <class T, auto Body, class... A> MT_INLINE void run_range(A... a) {
#if MT_HAS_LEVELS
    if constexpr (sizeof(T) >= 4) {
        if (cpu_level >= AVX2) return Leveled<Body>::avx2(a...);
        return Leveled<Body>::baseline(a...);
    }
#endif
    run_leveled<Body>(a...);
}

// Gradients as the user scaled them: the true ones are written back, as PyTorch does.
struct Scale {
    bool on;
    double value;
    explicit Scale(PyObject* o) : on(o != Py_None), value(on ? as_double(o) : 1.0) {}
    template <class T> void apply(T* g, int64_t n) const {
        if (on) run_range<T, unscale<T>>(g, n, (compute<T>)value);
    }
};

// How the penalty on weights enters.
enum Decay { NONE, GRADIENT, WEIGHT };

template <class F> void with_decay(double weight_decay, bool decoupled, F&& f) {
    if (weight_decay == 0) f(std::integral_constant<int, NONE>());
    else if (decoupled) f(std::integral_constant<int, WEIGHT>());
    else f(std::integral_constant<int, GRADIENT>());
}

// ---------------------------------------------------------------- Adam

template <class A> struct AdamNumbers {
    A sign, decay, keep, beta2, weight1, weight2, root, eps, size;
};

template <class T, int DECAY, bool AMSGRAD>
MT_INLINE void adam_range(T* MT_RESTRICT p, const T* MT_RESTRICT grad, T* MT_RESTRICT m, T* MT_RESTRICT v,
                          T* MT_RESTRICT largest, int64_t n, const AdamNumbers<compute<T>> c) {
    using A = compute<T>;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        A g = widen(grad[i]) * c.sign, x = widen(p[i]);
        if (DECAY == GRADIENT) g += x * c.decay;
        if (DECAY == WEIGHT) x *= c.keep;
        const A first = widen(m[i]), average = first + c.weight1 * (g - first);
        const A square = widen(v[i]) * c.beta2 + c.weight2 * g * g;
        m[i] = convert<T>(average);
        v[i] = convert<T>(square);
        A under = square;
        if (AMSGRAD) {
            const A old = widen(largest[i]);
            // A NaN stays one, in either.
            under = old != old ? old : (square > old || square != square ? square : old);
            largest[i] = convert<T>(under);
        }
        p[i] = convert<T>(x - c.size * (average / (std::sqrt(under) * c.root + c.eps)));
    }
}

PyObject* fused_adam(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("fused_adam", nargs, 12);
        const double lr = as_double(args[4]), beta1 = as_double(args[5]), beta2 = as_double(args[6]);
        const double decay = as_double(args[7]), eps = as_double(args[8]);
        const bool decoupled = as_bool(args[9]), maximize = as_bool(args[10]);
        const Scale scale(args[11]);
        Blocks blocks("fused_adam", args, 4, 5, scale.on, true);
        if (blocks.overlap()) Py_RETURN_FALSE;
        blocks.count();
        with_type(blocks.code, [&](auto zero) {
            using T = decltype(zero);
            using A = compute<T>;
            with_decay(decay, decoupled, [&](auto how) {
                blocks.each([&](const Item& item, int64_t begin, int64_t end) {
                    AdamNumbers<A> c;
                    c.sign = maximize ? A(-1) : A(1);
                    c.decay = (A)decay;
                    c.keep = (A)(1 - lr * decay);
                    c.beta2 = (A)beta2;
                    c.weight1 = (A)(1 - beta1);
                    c.weight2 = (A)(1 - beta2);
                    c.root = (A)(1 / std::sqrt(1 - std::pow(beta2, item.step)));
                    c.eps = (A)eps;
                    c.size = (A)(lr / (1 - std::pow(beta1, item.step)));
                    T* at[MOST] = {};
                    for (int k = 0; k < blocks.lists; ++k) at[k] = reinterpret_cast<T*>(item.data[k]) + begin;
                    scale.apply(at[GRADS], end - begin);
                    constexpr int DECAY = decltype(how)::value;
                    if (blocks.lists == 5)
                        run_range<T, adam_range<T, DECAY, true>>(at[0], at[1], at[2], at[3], at[4], end - begin, c);
                    else run_range<T, adam_range<T, DECAY, false>>(at[0], at[1], at[2], at[3], nullptr, end - begin, c);
                });
            });
        });
        Py_RETURN_TRUE;
    });
}

// ---------------------------------------------------------------- stochastic gradient descent

template <class A> struct SgdNumbers {
    A sign, decay, momentum, weight, lr;
};
enum Momentum { PLAIN, FIRST, LATER };

template <class T, int DECAY, int MOMENTUM, bool NESTEROV>
MT_INLINE void sgd_range(T* MT_RESTRICT p, const T* MT_RESTRICT grad, T* MT_RESTRICT buffer, int64_t n,
                         const SgdNumbers<compute<T>> c) {
    using A = compute<T>;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        A g = widen(grad[i]) * c.sign;
        const A x = widen(p[i]);
        if (DECAY != NONE) g += x * c.decay;
        if (MOMENTUM != PLAIN) {
            const A b = MOMENTUM == FIRST ? g : widen(buffer[i]) * c.momentum + g * c.weight;
            buffer[i] = convert<T>(b);
            g = NESTEROV ? g + b * c.momentum : b;
        }
        p[i] = convert<T>(x - c.lr * g);
    }
}

PyObject* fused_sgd(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("fused_sgd", nargs, 11);
        const double lr = as_double(args[3]), decay = as_double(args[4]), momentum = as_double(args[5]);
        const double dampening = as_double(args[6]);
        const bool nesterov = as_bool(args[7]), first = as_bool(args[8]), maximize = as_bool(args[9]);
        const Scale scale(args[10]);
        Blocks blocks("fused_sgd", args, 2, 3, scale.on, false);
        if (blocks.overlap()) Py_RETURN_FALSE;
        const int kind = blocks.lists == 2 ? PLAIN : first ? FIRST : LATER;
        with_type(blocks.code, [&](auto zero) {
            using T = decltype(zero);
            using A = compute<T>;
            const SgdNumbers<A> c{maximize ? A(-1) : A(1), (A)decay, (A)momentum, (A)(1 - dampening), (A)lr};
            with_decay(decay, false, [&](auto how) {
                constexpr int DECAY = decltype(how)::value;
                blocks.each([&](const Item& item, int64_t begin, int64_t end) {
                    T *p = reinterpret_cast<T*>(item.data[0]) + begin, *g = reinterpret_cast<T*>(item.data[1]) + begin;
                    T* b = kind == PLAIN ? nullptr : reinterpret_cast<T*>(item.data[2]) + begin;
                    const int64_t n = end - begin;
                    scale.apply(g, n);
                    if (kind == PLAIN) run_range<T, sgd_range<T, DECAY, PLAIN, false>>(p, g, b, n, c);
                    else if (kind == FIRST && nesterov) run_range<T, sgd_range<T, DECAY, FIRST, true>>(p, g, b, n, c);
                    else if (kind == FIRST) run_range<T, sgd_range<T, DECAY, FIRST, false>>(p, g, b, n, c);
                    else if (nesterov) run_range<T, sgd_range<T, DECAY, LATER, true>>(p, g, b, n, c);
                    else run_range<T, sgd_range<T, DECAY, LATER, false>>(p, g, b, n, c);
                });
            });
        });
        Py_RETURN_TRUE;
    });
}

// ---------------------------------------------------------------- Adagrad

template <class A> struct AdagradNumbers {
    A sign, decay, eps, lr;
};

template <class T, int DECAY>
MT_INLINE void adagrad_range(T* MT_RESTRICT p, const T* MT_RESTRICT grad, T* MT_RESTRICT sum, int64_t n,
                             const AdagradNumbers<compute<T>> c) {
    using A = compute<T>;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        A g = widen(grad[i]) * c.sign;
        const A x = widen(p[i]);
        if (DECAY != NONE) g += x * c.decay;
        const A total = widen(sum[i]) + g * g;
        sum[i] = convert<T>(total);
        p[i] = convert<T>(x - c.lr * (g / (std::sqrt(total) + c.eps)));
    }
}

PyObject* fused_adagrad(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("fused_adagrad", nargs, 10);
        const double lr = as_double(args[4]), lr_decay = as_double(args[5]), decay = as_double(args[6]);
        const double eps = as_double(args[7]);
        const bool maximize = as_bool(args[8]);
        const Scale scale(args[9]);
        Blocks blocks("fused_adagrad", args, 3, 3, scale.on, true);
        if (blocks.overlap()) Py_RETURN_FALSE;
        blocks.count();
        with_type(blocks.code, [&](auto zero) {
            using T = decltype(zero);
            using A = compute<T>;
            with_decay(decay, false, [&](auto how) {
                constexpr int DECAY = decltype(how)::value;
                blocks.each([&](const Item& item, int64_t begin, int64_t end) {
                    const AdagradNumbers<A> c{maximize ? A(-1) : A(1), (A)decay, (A)eps,
                                              (A)(lr / (1 + (item.step - 1) * lr_decay))};
                    T *p = reinterpret_cast<T*>(item.data[0]) + begin, *g = reinterpret_cast<T*>(item.data[1]) + begin;
                    scale.apply(g, end - begin);
                    run_range<T, adagrad_range<T, DECAY>>(p, g, reinterpret_cast<T*>(item.data[2]) + begin, end - begin,
                                                          c);
                });
            });
        });
        Py_RETURN_TRUE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;

PyMethodDef optimizer_methods[] = {
    MT_METHOD("fused_adam", fused_adam, "fused_adam(code, lists, blocks, lr, ...): a step of Adam over lists."),
    MT_METHOD("fused_sgd", fused_sgd, "fused_sgd(code, lists, blocks, lr, ...): a step of SGD over lists."),
    MT_METHOD("fused_adagrad", fused_adagrad, "fused_adagrad(code, lists, blocks, lr, ...): a step of Adagrad."),
    {nullptr, nullptr, 0, nullptr},
};
