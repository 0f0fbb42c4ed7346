// Activation functions with parameters, and their backward functions: range kernels for float32 and float64.
// Invariant: numbers[k] of the parameters are what the row's arguments say, in the order the launcher gives them.
#include "math_core.h"
#include "pointwise_range.h"

namespace mt {
namespace {

template <class Op, class T> MT_INLINE void range_v(char* out, const char* a, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    const Op op(p);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = op.run(x[i]);
}
template <class Op, class T> MT_INLINE void range_gx(char* out, const char* a, const char* b, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T *g = reinterpret_cast<const T*>(a), *x = reinterpret_cast<const T*>(b);
    const Op op(p);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = op.run(g[i], x[i]);
}

// Where x is NaN results are those of PyTorch's vector loops.
template <class T> MT_INLINE T at_least(T x, T low) { return x < low ? low : x; }
template <class T> MT_INLINE T at_most(T x, T high) { return x > high ? high : x; }

template <class T> struct LeakyRelu {
    const T slope;
    explicit LeakyRelu(const Params& p) : slope(T(p.numbers[0])) {}
    MT_INLINE T run(T x) const { return x > T(0) ? x : x * slope; }
    MT_INLINE T run(T g, T x) const { return x > T(0) ? g : g * slope; }
};
template <class T> struct Elu {
    const T scale, input_scale, below;
    explicit Elu(const Params& p)
        : scale(T(p.numbers[1])), input_scale(T(p.numbers[2])), below(T(p.numbers[0]) * T(p.numbers[1])) {}
    MT_INLINE T run(T x) const {
        const T low = expm1_v(x * input_scale) * below, high = x * scale;
        return x > T(0) ? high : low;
    }
    MT_INLINE T run(T g, T x) const {
        const T low = g * input_scale * below * exp_v(x * input_scale), high = g * scale;
        return x > T(0) ? high : low;
    }
};
template <class T> struct EluOfResult {
    const T scale, input_scale, below;
    explicit EluOfResult(const Params& p)
        : scale(T(p.numbers[1])), input_scale(T(p.numbers[2])), below(T(p.numbers[0]) * T(p.numbers[1])) {}
    MT_INLINE T run(T g, T y) const {
        const T low = g * input_scale * (y + below), high = g * scale;
        return y > T(0) ? high : low;
    }
};
template <class T> struct Softplus {
    const T beta, threshold;
    explicit Softplus(const Params& p) : beta(T(p.numbers[0])), threshold(T(p.numbers[1])) {}
    MT_INLINE T run(T x) const {
        const T scaled = x * beta;
        const T r = softplus_v(scaled) / beta;
        return scaled > threshold ? x : r;
    }
    MT_INLINE T run(T g, T x) const {
        const T scaled = x * beta;
        const T r = g * softplus_slope_v(scaled);
        return scaled > threshold ? g : r;
    }
};
template <class T> struct LogSigmoid {
    explicit LogSigmoid(const Params&) {}
    MT_INLINE T run(T x) const { return -softplus_v(-x); }
    MT_INLINE T run(T g, T x) const { return g * softplus_slope_v(-x); }
};
template <class T> struct Mish {
    explicit Mish(const Params&) {}
    MT_INLINE T run(T x) const { return x * tanh_v(softplus_v(x)); }
    MT_INLINE T run(T g, T x) const {
        const T t = tanh_v(softplus_v(x)), s = softplus_slope_v(x);
        return g * (t + x * s * (T(1) - t * t));
    }
};
template <class T> struct Hardsigmoid {
    explicit Hardsigmoid(const Params&) {}
    MT_INLINE T run(T x) const { return at_most(at_least(x + T(3), T(0)), T(6)) / T(6); }
    MT_INLINE T run(T g, T x) const { return (x > T(-3)) & (x < T(3)) ? g * T(1.0 / 6) : T(0); }
};
template <class T> struct Hardswish {
    explicit Hardswish(const Params&) {}
    MT_INLINE T run(T x) const { return x * at_most(at_least(x + T(3), T(0)), T(6)) / T(6); }
    MT_INLINE T run(T g, T x) const {
        const T middle = g * (x / T(3) + T(0.5)), r = x >= T(3) ? g : middle;
        return x <= T(-3) ? T(0) : r;
    }
};
template <class T> struct Hardtanh {
    const T low, high;
    explicit Hardtanh(const Params& p) : low(T(p.numbers[0])), high(T(p.numbers[1])) {}
    MT_INLINE T run(T g, T x) const { return (x > low) & (x < high) ? g : T(0); }
};
template <class T> struct Hardshrink {
    const T lambda;
    explicit Hardshrink(const Params& p) : lambda(T(p.numbers[0])) {}
    MT_INLINE T run(T g, T x) const { return (x < -lambda) | (x > lambda) ? g : T(0); }
    MT_INLINE T run(T x) const { return (x >= -lambda) & (x <= lambda) ? T(0) : x; }
};
template <class T> struct Softshrink {
    const T lambda;
    explicit Softshrink(const Params& p) : lambda(T(p.numbers[0])) {}
    MT_INLINE T run(T x) const {
        const T inner = x < -lambda ? x + lambda : x * T(0);  // NaN stays
        return x > lambda ? x - lambda : inner;
    }
};

template <class T> struct Threshold {
    const T least, value;
    explicit Threshold(const Params& p) : least(T(p.numbers[0])), value(T(p.numbers[1])) {}
    MT_INLINE T run(T x) const { return x <= least ? value : x; }
};
template <class T> struct NanToNum {
    const T nan, high, low;
    explicit NanToNum(const Params& p) : nan(T(p.numbers[0])), high(T(p.numbers[1])), low(T(p.numbers[2])) {}
    MT_INLINE T run(T x) const {
        constexpr T inf = std::numeric_limits<T>::infinity();
        const T end = x == inf ? high : x == -inf ? low : x;
        return x != x ? nan : end;
    }
};
// Losses of two values: a square near, a line far.
template <class T> struct SmoothL1 {
    const T beta;
    explicit SmoothL1(const Params& p) : beta(T(p.numbers[0])) {}
    MT_INLINE T run(T a, T b) const {
        const T z = std::fabs(a - b), near = T(0.5) * z * z / beta;
        return z < beta ? near : z - T(0.5) * beta;
    }
};
template <class T> struct Huber {
    const T delta;
    explicit Huber(const Params& p) : delta(T(p.numbers[0])) {}
    MT_INLINE T run(T a, T b) const {
        const T z = std::fabs(a - b), near = T(0.5) * z * z;
        return z <= delta ? near : delta * (z - T(0.5) * delta);
    }
};

// Binary cross entropy of a probability, or of its logit, and a target. Logarithms are no smaller than -100, as in PyTorch.
template <class T> struct Entropy {
    explicit Entropy(const Params&) {}
    MT_INLINE T run(T x, T t) const {
        const T yes = log_v(x), no = log1p_v(-x), least = T(-100);
        return (no < least ? least : no) * (t - T(1)) - (yes < least ? least : yes) * t;
    }
};
template <class T> struct EntropyOfLogits {
    explicit EntropyOfLogits(const Params&) {}
    MT_INLINE T run(T x, T t) const { return (T(1) - t) * x - ((x > T(0) ? T(0) : x) - softplus_tail(std::fabs(x))); }
};

template <template <class> class Op> void forward(int op) {
    kernels.unary[op][N_F32] = {leveled<range_v<Op<float>, float>>(), F32};
    kernels.unary[op][N_F64] = {leveled<range_v<Op<double>, double>>(), F64};
}
template <template <class> class Op> void backward(int op) {
    kernels.binary[op - BINARY_BEGIN][N_F32] = {leveled<range_gx<Op<float>, float>>(), nullptr, nullptr, F32};
    kernels.binary[op - BINARY_BEGIN][N_F64] = {leveled<range_gx<Op<double>, double>>(), nullptr, nullptr, F64};
}
template <template <class> class Op> void both(int op, int back) {
    forward<Op>(op);
    backward<Op>(back);
}

}  // namespace

void register_activations() {
    both<LeakyRelu>(OP_LEAKY_RELU, OP_LEAKY_RELU_BACKWARD);
    both<Elu>(OP_ELU, OP_ELU_BACKWARD);
    backward<EluOfResult>(OP_ELU_BACKWARD_OF_RESULT);
    both<Softplus>(OP_SOFTPLUS, OP_SOFTPLUS_BACKWARD);
    both<LogSigmoid>(OP_LOG_SIGMOID, OP_LOG_SIGMOID_BACKWARD);
    both<Mish>(OP_MISH, OP_MISH_BACKWARD);
    both<Hardsigmoid>(OP_HARDSIGMOID, OP_HARDSIGMOID_BACKWARD);
    both<Hardswish>(OP_HARDSWISH, OP_HARDSWISH_BACKWARD);
    backward<Hardtanh>(OP_HARDTANH_BACKWARD);
    both<Hardshrink>(OP_HARDSHRINK, OP_SHRINK_BACKWARD);
    forward<Softshrink>(OP_SOFTSHRINK);
    forward<Threshold>(OP_THRESHOLD);
    forward<NanToNum>(OP_NAN_TO_NUM);
    backward<SmoothL1>(OP_SMOOTH_L1);
    backward<Huber>(OP_HUBER);
    backward<Entropy>(OP_ENTROPY);
    backward<EntropyOfLogits>(OP_ENTROPY_OF_LOGITS);
}

}  // namespace mt
