// Connectionist temporal classification: the recursion over time in logarithms, and its gradient.
// Invariant: every label is compared with the number of classes where it is read. The gradient is that of the scores in
// front of log_softmax, as PyTorch defines it. Sequences are independent: each is computed by one thread.
//
// log_probs and grad: (steps, batch, classes), targets: int64, all dense: storage, offset. `starts`, `inputs`, `lengths`:
// for each sequence where its labels begin, how many steps and how many labels it has. alpha: (batch, steps, 2 longest + 1).
//   ctc(log_probs(2), targets(2), labels, code, sizes, starts, inputs, lengths, blank, alpha(2), nll(2)) -> bool
//   ctc_backward(grad_out(2), log_probs(2), targets(2), labels, code, sizes, starts, inputs, lengths, blank, alpha(2),
//                nll(2), zero_infinity, grad(2)) -> bool
//       sizes: (steps, batch, classes, longest); `labels` is the number of targets. False: a label is no class
#include "linear.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

using namespace mt;

extern PyMethodDef ctc_methods[];  // no other file needs to know

namespace {

template <class T> constexpr T NONE = -std::numeric_limits<T>::infinity();

struct Ctc {
    const char* log_probs;
    const int64_t* targets;
    int64_t labels, steps, batch, classes, longest, blank;
    int code;
    std::vector<int64_t> starts, inputs, lengths;
    int64_t states() const { return 2 * longest + 1; }
    int64_t alphas() const { return checked_mul(checked_mul(batch, steps), states()); }

    static std::vector<int64_t> numbers(PyObject* o, int64_t count) {
        if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != count) fail(PyExc_ValueError, "ctc: one number a sequence");
        std::vector<int64_t> out;
        for (int64_t i = 0; i < count; ++i) out.push_back(as_int(PyTuple_GET_ITEM(o, i)));
        return out;
    }
    // From log_probs on.
    explicit Ctc(PyObject* const* args) {
        labels = as_int(args[4]);
        code = as_code(args[5]);
        const std::vector<int64_t> sizes = numbers(args[6], 4);
        steps = sizes[0], batch = sizes[1], classes = sizes[2], longest = sizes[3];
        blank = as_int(args[10]);
        if ((code != F32 && code != F64) || labels < 0 || steps < 0 || batch < 0 || classes < 1 || longest < 0 ||
            longest > std::numeric_limits<int32_t>::max() || blank < 0 || blank >= classes)
            fail(PyExc_ValueError, "ctc: sizes of scores are expected");
        starts = numbers(args[7], batch);
        inputs = numbers(args[8], batch);
        lengths = numbers(args[9], batch);
        for (int64_t b = 0; b < batch; ++b)
            if (inputs[b] < 0 || inputs[b] > steps || lengths[b] < 0 || lengths[b] > longest || starts[b] < 0 ||
                checked_add(starts[b], lengths[b]) > labels)
                fail(PyExc_ValueError, "ctc: lengths outside of the sequences");
        log_probs = parse_memory(args, scores(), ITEMSIZE[code]);
        targets = reinterpret_cast<const int64_t*>(parse_memory(args + 2, labels, 8));
    }
    int64_t scores() const { return checked_mul(checked_mul(steps, batch), classes); }

    // The labels of one sequence with blanks around and between them; false if one is no class.
    bool path(int64_t b, std::vector<int64_t>& out) const {
        out.assign((size_t)(2 * lengths[b] + 1), blank);
        for (int64_t i = 0; i < lengths[b]; ++i) {
            const int64_t label = targets[starts[b] + i];
            if (label < 0 || label >= classes) return false;
            out[(size_t)(2 * i + 1)] = label;
        }
        return true;
    }
    // Whether state s may be reached from two before it.
    bool skips(const std::vector<int64_t>& way, int64_t s) const {
        return s > 1 && way[(size_t)s] != blank && way[(size_t)s] != way[(size_t)(s - 2)];
    }
};

template <class T> T log_sum(T a, T b, T c) {
    const T most = std::max(a, std::max(b, c));
    if (most == NONE<T>) return most;
    return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

template <class T> bool forward(const Ctc& p, int64_t b, T* alpha, T* nll) {
    std::vector<int64_t> way;
    if (!p.path(b, way)) return false;
    const int64_t states = (int64_t)way.size(), end = p.inputs[b], row = p.states();
    if (end == 0) {
        nll[b] = p.lengths[b] == 0 ? T(0) : -NONE<T>;
        return true;
    }
    const auto lp = [&](int64_t t, int64_t s) {
        return reinterpret_cast<const T*>(p.log_probs)[(t * p.batch + b) * p.classes + way[(size_t)s]];
    };
    alpha += b * p.steps * row;
    std::fill(alpha, alpha + end * row, NONE<T>);
    for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) alpha[s] = lp(0, s);
    for (int64_t t = 1; t < end; ++t) {
        const T* before = alpha + (t - 1) * row;
        for (int64_t s = 0; s < states; ++s)
            alpha[t * row + s] =
                log_sum(before[s], s > 0 ? before[s - 1] : NONE<T>, p.skips(way, s) ? before[s - 2] : NONE<T>) +
                lp(t, s);
    }
    const T* last = alpha + (end - 1) * row;
    nll[b] = -log_sum(last[states - 1], states > 1 ? last[states - 2] : NONE<T>, NONE<T>);
    return true;
}

template <class T> bool backward(const Ctc& p, int64_t b, const T* alpha, T nll, T by, bool zero_infinity, T* grad) {
    std::vector<int64_t> way;
    if (!p.path(b, way)) return false;
    const int64_t states = (int64_t)way.size(), row = p.states(), classes = p.classes;
    const int64_t end = zero_infinity && nll == -NONE<T> ? 0 : p.inputs[b];
    alpha += b * p.steps * row;
    std::vector<T> beta((size_t)states), later((size_t)states);
    for (int64_t t = p.steps - 1; t >= 0; --t) {
        T* out = grad + (t * p.batch + b) * classes;
        if (t >= end) {
            std::fill(out, out + classes, T(0));
            continue;
        }
        const T* lp = reinterpret_cast<const T*>(p.log_probs) + (t * p.batch + b) * classes;
        std::fill(out, out + classes, NONE<T>);
        std::swap(beta, later);
        for (int64_t s = states - 1; s >= 0; --s) {
            T sum = s >= states - 2 ? T(0) : NONE<T>;
            if (t < end - 1)
                sum = log_sum(later[(size_t)s], s + 1 < states ? later[(size_t)(s + 1)] : NONE<T>,
                              s + 2 < states && p.skips(way, s + 2) ? later[(size_t)(s + 2)] : NONE<T>);
            beta[(size_t)s] = sum + lp[way[(size_t)s]];
            T& all = out[way[(size_t)s]];
            all = log_sum(all, alpha[t * row + s] + beta[(size_t)s], NONE<T>);
        }
        for (int64_t c = 0; c < classes; ++c) out[c] = (std::exp(lp[c]) - std::exp(out[c] + nll - lp[c])) * by;
    }
    return true;
}

// f(b) for each sequence, in the threads; whether it was true of all.
template <class F> bool each(const Ctc& p, F&& f) {
    std::atomic<bool> fine{true};
    const int64_t cost = std::max<int64_t>(1, saturated_mul(p.steps, saturated_add(16 * p.states(), p.classes)));
    GilRelease unlocked(saturated_mul(p.batch, cost));
    parallel_for(p.batch, std::max<int64_t>(1, GRAIN / cost), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
            if (!f(b)) fine = false;
    });
    return fine;
}

PyObject* ctc(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("ctc", nargs, 15);
        const Ctc p(args);
        char* alpha = parse_memory(args + 11, p.alphas(), ITEMSIZE[p.code]);
        char* nll = parse_memory(args + 13, p.batch, ITEMSIZE[p.code]);
        const auto run = [&](auto type) {
            using T = decltype(type);
            return each(
                p, [&](int64_t b) { return forward(p, b, reinterpret_cast<T*>(alpha), reinterpret_cast<T*>(nll)); });
        };
        return PyBool_FromLong(p.code == F32 ? run(float()) : run(double()));
    });
}

PyObject* ctc_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("ctc_backward", nargs, 20);
        const Ctc p(args + 2);
        const int item = ITEMSIZE[p.code];
        const char* by = parse_memory(args, p.batch, item);
        const char *alpha = parse_memory(args + 13, p.alphas(), item), *nll = parse_memory(args + 15, p.batch, item);
        const bool zero_infinity = as_bool(args[17]);
        char* grad = parse_memory(args + 18, p.scores(), item);
        const auto run = [&](auto type) {
            using T = decltype(type);
            return each(p, [&](int64_t b) {
                return backward(p, b, reinterpret_cast<const T*>(alpha), reinterpret_cast<const T*>(nll)[b],
                                reinterpret_cast<const T*>(by)[b], zero_infinity, reinterpret_cast<T*>(grad));
            });
        };
        return PyBool_FromLong(p.code == F32 ? run(float()) : run(double()));
    });
}

}  // namespace

PyMethodDef ctc_methods[] = {
    MT_METHOD("ctc", ctc, "Negative log-likelihoods of sequences; False where a label is no class."),
    MT_METHOD("ctc_backward", ctc_backward, "Gradients of the scores."),
    {nullptr, nullptr, 0, nullptr}};
