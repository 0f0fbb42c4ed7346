// Random numbers whose distribution is given element by element: gamma, Poisson, binomial.
// Invariant: as many numbers are drawn from the state as PyTorch draws, in its order, and the arithmetic has its widths,
// so that a seed gives its samples.
//
//   random_given(kind, state, a.., b.., out.., shape)   kinds below; computed in float64 if out is, in float32 if not
//   random_places(weights(2), code, rows, n, drawn(2), samples, out(2)) -> int
//       where numbers below 1 fall among the cumulated weights of their row. Operands are row-major: storage, offset;
//       weights are float or double, numbers double, places int64. Whether a weight is negative or no number (1) or
//       infinite (2), or a row has none (3): then nothing is written.
#include "linear.h"
#include "random.h"

namespace mt {
namespace {

enum Kind : int { GAMMA = 0, POISSON, BINOMIAL };

// Marsaglia and Tsang (2000). Constants are single precision whatever T is.
template <class T> T sample_gamma(State& s, T alpha) {
    double scale = 1.0;
    if (alpha < 1.0f) {
        if (alpha == 0.0f) return 0;
        scale = std::pow(1 - unit<double>(s), (double)(1.0f / alpha));
        alpha += 1.0f;
    }
    const double d = alpha - 1.0f / 3.0f, c = 1.0f / std::sqrt(9.0f * d);
    for (;;) {
        double x, y;
        do {
            x = next_normal(s);
            y = 1.0f + c * x;
        } while (y <= 0);
        const double v = y * y * y, u = 1 - unit<double>(s), xx = x * x;
        if (u < 1.0f - 0.0331f * xx * xx || std::log(u) < 0.5f * xx + d * (1.0f - v + std::log(v)))
            return (T)(scale * d * v);
    }
}

// Multiplication of uniform numbers for small rates, Hörmann's transformed rejection (1993) for others.
double sample_poisson(State& s, double rate) {
    if (!(rate >= 0)) fail(PyExc_RuntimeError, "invalid Poisson rate, expected rate to be non-negative");
    if (rate == 0) return 0;
    if (rate < 10) {
        const double end = std::exp(-rate);
        double count = 0, product = unit<double>(s);
        while (product > end) {
            count += 1;
            product *= unit<double>(s);
        }
        return count;
    }
    const double root = std::sqrt(rate), log_rate = std::log(rate);
    const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = unit<double>(s) - 0.5, v = unit<double>(s), us = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= accepted) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
            -rate + k * log_rate - std::lgamma(k + 1))
            return k;
    }
}

// What Stirling's formula leaves out of log(k!).
double stirling_tail(double k) {
    static const double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                   0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                   0.00925546218271273, 0.00833056343336287};
    if (k < 10) return small[(size_t)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// The waiting times between successes are geometric.
template <class T> T binomial_by_waiting(State& s, T count, T prob) {
    const double log_other = std::log1p(-prob);
    double waited = 0;
    for (T found = 0;; found += 1) {
        waited += std::ceil(std::log(unit<double>(s)) / log_other);
        if (waited > count) return found;
    }
}

template <class T> T binomial_by_rejection(State& s, T count, T prob) {
    const double spread = std::sqrt(count * prob * (1 - prob));
    const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * prob, c = count * prob + 0.5;
    const double accepted = 0.92 - 4.2 / b, odds = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * spread;
    const double m = std::floor((count + 1) * prob);
    for (;;) {
        const double u = unit<double>(s) - 0.5, v = unit<double>(s), us = 0.5 - std::fabs(u);
        const T k = (T)std::floor((2 * a / us + b) * u + c);
        if (k < 0 || k > count) continue;
        if (us >= 0.07 && v <= accepted) return k;
        const double bound = (m + 0.5) * std::log((m + 1) / (odds * (count - m + 1))) +
                             (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                             (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                             stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
        if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

template <class T> T sample_binomial(State& s, T count, T prob) {
    if (count <= 0 || prob <= 0) return 0;
    if (prob >= 1) return count;
    if (std::isnan(prob) || std::isnan(count)) return std::numeric_limits<T>::quiet_NaN();
    const T rare = prob <= (T)0.5 ? prob : (T)(1.0 - prob);
    const T found = count * rare >= 10 ? binomial_by_rejection(s, count, rare) : binomial_by_waiting(s, count, rare);
    return prob <= (T)0.5 ? found : count - found;
}

template <class T> T sample(int kind, State& s, T a, T b) {
    switch (kind) {
        // The smallest normal number also stands for what is no number.
        case GAMMA: return std::max(std::numeric_limits<T>::min(), sample_gamma(s, a));
        case POISSON: return (T)sample_poisson(s, (double)a);
        default: return sample_binomial(s, a, b);
    }
}

}  // namespace

// The GIL is kept all the time: it is what protects a state that several threads use.
PyObject* random_given(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("random_given", nargs, 15);
        const int kind = (int)as_int(args[0]);
        State& s = as_state(args[1]);
        Shape shape;
        Operand a, b, o;
        parse_shape(args[14], shape);
        parse_operand(args + 2, shape, a);
        parse_operand(args + 6, shape, b);
        parse_operand(args + 10, shape, o);
        if (kind < GAMMA || kind > BINOMIAL) fail(PyExc_RuntimeError, "random_given: no kind %d", kind);
        if (o.code != F16 && o.code != BF16 && o.code != F32 && o.code != F64) {
            static const char* const names[] = {"gamma", "poisson_cpu", "binomial_cpu"};
            fail_dtype(names[kind - GAMMA], o.code);
        }
        const int code = o.code == F64 ? F64 : F32;  // what the numbers are computed in
        int64_t dense[MAXD];
        dense_like(shape, o, dense);
        const int64_t n = std::max<int64_t>(shape.numel, 1);
        Scratch first(n, ITEMSIZE[code]), second(n, ITEMSIZE[code]);
        copy_tensor(shape, first.as<char>(), dense, code, a.data, a.stride, a.code);
        copy_tensor(shape, second.as<char>(), dense, code, b.data, b.stride, b.code);
        const auto draw = [&](auto t) {
            using T = decltype(t);
            T *x = first.as<T>(), *y = second.as<T>();
            for (int64_t i = 0; i < shape.numel; ++i) x[i] = sample<T>(kind, s, x[i], y[i]);
        };
        if (code == F64) draw(double());
        else draw(float());
        copy_tensor(shape, o.data, o.stride, o.code, first.as<char>(), dense, code);
        Py_RETURN_NONE;
    });
}

namespace {

enum Fault : int { NONE = 0, NEGATIVE, INFINITE, EMPTY };

template <class T> Fault fault_of(const T* weights, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows * n; ++i) {
        if (!(weights[i] >= 0)) return NEGATIVE;
        if (std::isinf(weights[i])) return INFINITE;
    }
    for (int64_t r = 0; r < rows; ++r) {
        T sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += weights[r * n + i];
        if (!(sum > 0)) return EMPTY;
    }
    return NONE;
}

template <class T>
void find_places(const T* weights, int64_t rows, int64_t n, const double* drawn, int64_t samples, int64_t* out) {
    Scratch room(n, sizeof(T));
    T* cumulated = room.as<T>();
    for (int64_t r = 0; r < rows; ++r) {
        T sum = 0;
        for (int64_t i = 0; i < n; ++i) cumulated[i] = sum += weights[r * n + i];
        for (int64_t i = 0; i < n; ++i) cumulated[i] /= sum;
        cumulated[n - 1] = 1;
        for (int64_t i = r * samples; i < (r + 1) * samples; ++i)
            out[i] = std::lower_bound(cumulated, cumulated + n - 1, drawn[i],
                                      [](T weight, double number) { return (double)weight < number; }) -
                     cumulated;
    }
}

}  // namespace

PyObject* random_places(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("random_places", nargs, 10);
        const int code = as_code(args[2]);
        if (code != F32 && code != F64) fail_dtype("random_places", code);
        const int64_t rows = as_int(args[3]), n = as_int(args[4]), samples = as_int(args[7]);
        if (rows < 0 || n < 0 || samples < 0) fail(PyExc_ValueError, "random_places() expects sizes");
        const char* weights = parse_memory(args, checked_mul(rows, n), ITEMSIZE[code]);
        const char* drawn = parse_memory(args + 5, checked_mul(rows, samples), sizeof(double));
        char* out = parse_memory(args + 8, checked_mul(rows, samples), sizeof(int64_t));
        const auto run = [&](auto type) -> Fault {
            using T = decltype(type);
            const T* given = reinterpret_cast<const T*>(weights);
            const Fault fault = fault_of(given, rows, n);
            if (fault == NONE && rows > 0)
                find_places(given, rows, n, reinterpret_cast<const double*>(drawn), samples,
                            reinterpret_cast<int64_t*>(out));
            return fault;
        };
        return PyLong_FromLong(code == F64 ? run(double()) : run(float()));
    });
}

}  // namespace mt
