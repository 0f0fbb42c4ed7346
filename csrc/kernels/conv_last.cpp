// Convolution of each channel by itself (depthwise) where the channels of a place lie side by side (channels last), and
// its gradients. float32, float64, and bfloat16 with sums in float32; of one to three dimensions.
// Invariant: operands are dense, [image][depth][height][width][channel]; weights [channel][kernel place]. Taps outside the
// planes are left out. Each sum runs in an order that depends on the shapes alone.
//
//   depthwise_last(x.., weight.., bias|None.., out.., images, channels, in, out, kernel, stride, padding, dilation)
//   depthwise_input_last(grad.., weight.., None, 0, 0, dx.., the same)
//   depthwise_weight_last(grad.., x.., None, 0, 0, dweight.., the same)
#include "cpu.h"
#include "lanes.h"
#include "vectors.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

// Pairs along one dimension: for each place that is written, the taps that reach it and the places that they read.
struct Reach {
    std::vector<size_t> begin;
    std::vector<int64_t> tap, from;
    std::vector<int64_t> steps;  // from one place to the next in what is read, if this one and the next three have the
                                 // same taps; or 0
    // Once the pairs are known.
    void find_steps(size_t count) {
        for (size_t i = 0; i + 1 < begin.size(); ++i) {
            const size_t taps = begin[i + 1] - begin[i];
            int64_t step = 0;
            bool same = i + count < begin.size() && taps > 0;
            for (size_t q = 1; q < count && same; ++q) {
                same = begin[i + q + 1] - begin[i + q] == taps;
                for (size_t e = 0; e < taps && same; ++e) {
                    const int64_t apart = from[begin[i + q] + e] - from[begin[i + q - 1] + e];
                    if (q == 1 && e == 0) step = apart;
                    same = apart == step && tap[begin[i + q] + e] == tap[begin[i] + e];
                }
            }
            steps.push_back(same && step > 0 ? step : 0);
        }
    }
    // Of the places of the result.
    void forward(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
        for (int64_t o = 0; o < out; ++o) {
            begin.push_back(tap.size());
            for (int64_t k = 0; k < kernel; ++k) {
                const int64_t at = o * stride + k * dilation - padding;
                if (at >= 0 && at < in) tap.push_back(k), from.push_back(at);
            }
        }
        begin.push_back(tap.size());
    }
    // Of the places of the input: which results they went into.
    void backward(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
        for (int64_t i = 0; i < in; ++i) {
            begin.push_back(tap.size());
            for (int64_t k = 0; k < kernel; ++k) {
                const int64_t at = i + padding - k * dilation;
                if (at >= 0 && at % stride == 0 && at / stride < out) tap.push_back(k), from.push_back(at / stride);
            }
        }
        begin.push_back(tap.size());
    }
};

struct Call {
    int64_t images, channels;
    Window v;
    Reach z, y, x;
    Call(PyObject* const* args, bool back) : images(parse_count(args[0])), channels(parse_count(args[1])), v(args + 2) {
        for (int d = 0; d < 3; ++d) {
            Reach& r = d == 0 ? z : d == 1 ? y : x;
            const auto of = [d](const Triple& t) { return d == 0 ? t.d : d == 1 ? t.h : t.w; };
            if (back) r.backward(of(v.in), of(v.out), of(v.kernel), of(v.stride), of(v.padding), of(v.dilation));
            else r.forward(of(v.in), of(v.out), of(v.kernel), of(v.stride), of(v.padding), of(v.dilation));
        }
        x.find_steps(4);
    }
    int64_t numel(const Triple& size) const { return checked_numel({images, channels, size.size()}); }
};

// N vectors of channels in A, from what is stored: A itself, or bfloat16. Two of bfloat16 are read at once: those with even
// numbers are the first one, those with odd numbers the second one; weights and bias are put in that order before.
template <class A, int N, class T> MT_INLINE void channels_at(const T* from, typename Vec<A, 64>::t* v) {
    if constexpr (std::is_same<A, T>::value) {
#pragma GCC unroll 2
        for (int i = 0; i < N; ++i)
            v[i] = *reinterpret_cast<const typename Vec<A, 64>::loose*>(from + i * Vec<A, 64>::LANES);
    } else if constexpr (N == 2) {
        typedef uint32_t Bits __attribute__((vector_size(64), aligned(2), may_alias));
        const typename Vec<uint32_t, 64>::t bits = *reinterpret_cast<const Bits*>(from);
        v[0] = (typename Vec<A, 64>::t)(bits << 16);
        v[1] = (typename Vec<A, 64>::t)(bits & 0xffff0000u);
    } else {
        const typename Vec<uint16_t, 32>::t bits = *reinterpret_cast<const typename Vec<uint16_t, 32>::loose*>(from);
        v[0] = (typename Vec<A, 64>::t)(__builtin_convertvector(bits, Vec<uint32_t, 64>::t) << 16);
    }
}
// The upper halves are the rounded ones.
MT_INLINE Vec<uint32_t, 64>::t rounded(Vec<float, 64>::t v) {
    using U = Vec<uint32_t, 64>::t;
    const U u = (U)v, r = u + 0x7fffu + ((u >> 16) & 1u);
    return (u & 0x7fffffffu) > 0x7f800000u ? U{} + 0x7fc00000u : r;
}
template <class A, int N, class T> MT_INLINE void put_channels(T* to, const typename Vec<A, 64>::t* v) {
    if constexpr (std::is_same<A, T>::value) {
#pragma GCC unroll 2
        for (int i = 0; i < N; ++i) *reinterpret_cast<typename Vec<A, 64>::loose*>(to + i * Vec<A, 64>::LANES) = v[i];
    } else if constexpr (N == 2) {
        typedef uint32_t Bits __attribute__((vector_size(64), aligned(2), may_alias));
        *reinterpret_cast<Bits*>(to) = (rounded(v[0]) >> 16) | (rounded(v[1]) & 0xffff0000u);
    } else {
        *reinterpret_cast<typename Vec<uint16_t, 32>::loose*>(to) =
            __builtin_convertvector(rounded(v[0]) >> 16, Vec<uint16_t, 32>::t);
    }
}
// Where weights of channel c are kept, of n: those that are summed in pairs of vectors of bfloat16 are sorted so.
template <class A, class T> MT_INLINE int64_t kept_at(int64_t c, int64_t n) {
    constexpr int64_t LANES = Vec<A, 64>::LANES;
    if (std::is_same<A, T>::value || c >= n / (2 * LANES) * (2 * LANES)) return c;
    return c / (2 * LANES) * (2 * LANES) + c % 2 * LANES + c % (2 * LANES) / 2;
}

// N vectors of channels of one place.
template <class A, int N, class T>
MT_INLINE void sum_place(const Call& c, const Triple& from, const T* image, const A* weight, const A* bias, int64_t i,
                         int64_t j, int64_t k, T* to) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int LANES = Vec<A, 64>::LANES;
    V sum[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[v] = bias ? V(*reinterpret_cast<const L*>(bias + v * LANES)) : V{};
    for (size_t a = c.z.begin[(size_t)i]; a < c.z.begin[(size_t)i + 1]; ++a)
        for (size_t b = c.y.begin[(size_t)j]; b < c.y.begin[(size_t)j + 1]; ++b) {
            const T* row = image + (c.z.from[a] * from.h + c.y.from[b]) * from.w * c.channels;
            const A* w = weight + (c.z.tap[a] * c.v.kernel.h + c.y.tap[b]) * c.v.kernel.w * c.channels;
            for (size_t e = c.x.begin[(size_t)k]; e < c.x.begin[(size_t)k + 1]; ++e) {
                const T* at = row + c.x.from[e] * c.channels;
                const A* by = w + c.x.tap[e] * c.channels;
                V x[N];
                channels_at<A, N>(at, x);
#pragma GCC unroll 4
                for (int v = 0; v < N; ++v) sum[v] += x[v] * V(*reinterpret_cast<const L*>(by + v * LANES));
            }
        }
    put_channels<A, N>(to, sum);
}
// N vectors of channels of P places side by side, which the same taps reach; what they read is `step` places apart.
template <class A, int P, int N, class T>
MT_INLINE void sum_places(const Call& c, const Triple& from, const T* image, const A* weight, const A* bias, int64_t i,
                          int64_t j, int64_t k, int64_t step, T* to) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int LANES = Vec<A, 64>::LANES;
    V sum[P][N];
#pragma GCC unroll 4
    for (int q = 0; q < P; ++q)
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) sum[q][v] = bias ? V(*reinterpret_cast<const L*>(bias + v * LANES)) : V{};
    const int64_t apart = step * c.channels;
    for (size_t a = c.z.begin[(size_t)i]; a < c.z.begin[(size_t)i + 1]; ++a)
        for (size_t b = c.y.begin[(size_t)j]; b < c.y.begin[(size_t)j + 1]; ++b) {
            const T* row = image + (c.z.from[a] * from.h + c.y.from[b]) * from.w * c.channels;
            const A* w = weight + (c.z.tap[a] * c.v.kernel.h + c.y.tap[b]) * c.v.kernel.w * c.channels;
            for (size_t e = c.x.begin[(size_t)k]; e < c.x.begin[(size_t)k + 1]; ++e) {
                const T* at = row + c.x.from[e] * c.channels;
                const A* by = w + c.x.tap[e] * c.channels;
                V tap[N];
#pragma GCC unroll 2
                for (int v = 0; v < N; ++v) tap[v] = *reinterpret_cast<const L*>(by + v * LANES);
#pragma GCC unroll 4
                for (int q = 0; q < P; ++q) {
                    V x[N];
                    channels_at<A, N>(at + q * apart, x);
#pragma GCC unroll 2
                    for (int v = 0; v < N; ++v) sum[q][v] += tap[v] * x[v];
                }
            }
        }
#pragma GCC unroll 4
    for (int q = 0; q < P; ++q) put_channels<A, N>(to + q * c.channels, sum[q]);
}
constexpr int64_t SEVERAL = 4;  // places that are summed together

// The same of two vectors where K taps of a row read places side by side: what is read once serves every place that it
// belongs to. Taps go on by `turn` from one to the next.
template <class A, int P, int K, class T>
MT_INLINE void slide_places(const Call& c, const Triple& from, const T* image, const A* weight, const A* bias,
                            int64_t i, int64_t j, int64_t first, int64_t tap, int64_t turn, T* to) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int LANES = Vec<A, 64>::LANES, N = 2;
    V sum[P][N];
#pragma GCC unroll 4
    for (int q = 0; q < P; ++q)
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) sum[q][v] = bias ? V(*reinterpret_cast<const L*>(bias + v * LANES)) : V{};
    for (size_t a = c.z.begin[(size_t)i]; a < c.z.begin[(size_t)i + 1]; ++a)
        for (size_t b = c.y.begin[(size_t)j]; b < c.y.begin[(size_t)j + 1]; ++b) {
            const T* row = image + ((c.z.from[a] * from.h + c.y.from[b]) * from.w + first) * c.channels;
            const A* w = weight + ((c.z.tap[a] * c.v.kernel.h + c.y.tap[b]) * c.v.kernel.w + tap) * c.channels;
            V taps[K][N];
#pragma GCC unroll 8
            for (int e = 0; e < K; ++e)
#pragma GCC unroll 2
                for (int v = 0; v < N; ++v)
                    taps[e][v] = *reinterpret_cast<const L*>(w + e * turn * c.channels + v * LANES);
#pragma GCC unroll 16
            for (int u = 0; u < P + K - 1; ++u) {
                V x[N];
                channels_at<A, N>(row + u * c.channels, x);
#pragma GCC unroll 4
                for (int q = 0; q < P; ++q)
                    if (u - q >= 0 && u - q < K)
#pragma GCC unroll 2
                        for (int v = 0; v < N; ++v) sum[q][v] += taps[u - q][v] * x[v];
            }
        }
#pragma GCC unroll 4
    for (int q = 0; q < P; ++q) put_channels<A, N>(to + q * c.channels, sum[q]);
}
// Whether the places from k on, which are one apart, were summed so.
template <class A, class T>
MT_INLINE bool slides(const Call& c, const Triple& from, const T* image, const A* weight, const A* bias, int64_t i,
                      int64_t j, int64_t k, T* to) {
    const size_t b = c.x.begin[(size_t)k], e = c.x.begin[(size_t)k + 1];
    if (e - b != 3 && e - b != 5 && e - b != 7) return false;
    // Taps that rise or fall by one beside places that rise by one.
    const int64_t turn = c.x.from[b + 1] - c.x.from[b];
    if ((turn != 1 && turn != -1) || c.x.tap[b + 1] != c.x.tap[b] + 1) return false;
    const size_t at = turn == 1 ? b : e - 1;
    const int64_t first = c.x.from[at], tap = c.x.tap[at];
    if (e - b == 3) slide_places<A, SEVERAL, 3>(c, from, image, weight, bias, i, j, first, tap, turn, to);
    else if (e - b == 5) slide_places<A, SEVERAL, 5>(c, from, image, weight, bias, i, j, first, tap, turn, to);
    else slide_places<A, SEVERAL, 7>(c, from, image, weight, bias, i, j, first, tap, turn, to);
    return true;
}

// N vectors of channels of a row of places.
template <class A, int N, class T>
MT_INLINE void sum_line(const Call& c, const Triple& from, const T* image, const A* weight, const A* bias, int64_t i,
                        int64_t j, int64_t wide, T* row) {
    for (int64_t k = 0; k < wide;) {
        const int64_t step = c.x.steps[(size_t)k];
        if constexpr (N == 2 && sizeof(A) == 4)
            if (step == 1 && slides<A>(c, from, image, weight, bias, i, j, k, row + k * c.channels)) {
                k += SEVERAL;
                continue;
            }
        if (step > 0) {
            sum_places<A, SEVERAL, N>(c, from, image, weight, bias, i, j, k, step, row + k * c.channels);
            k += SEVERAL;
        } else {
            sum_place<A, N>(c, from, image, weight, bias, i, j, k, row + k * c.channels);
            ++k;
        }
    }
}

// One channel of one place.
template <class A, class T>
MT_INLINE void sum_one(const Call& c, const Triple& from, const T* image, const A* weight, const A* bias, int64_t i,
                       int64_t j, int64_t k, T* to) {
    A sum = bias ? *bias : A(0);
    for (size_t a = c.z.begin[(size_t)i]; a < c.z.begin[(size_t)i + 1]; ++a)
        for (size_t b = c.y.begin[(size_t)j]; b < c.y.begin[(size_t)j + 1]; ++b)
            for (size_t e = c.x.begin[(size_t)k]; e < c.x.begin[(size_t)k + 1]; ++e) {
                const int64_t at = (c.z.from[a] * from.h + c.y.from[b]) * from.w + c.x.from[e];
                const int64_t tap = (c.z.tap[a] * c.v.kernel.h + c.y.tap[b]) * c.v.kernel.w + c.x.tap[e];
                sum += convert<A>(image[at * c.channels]) * weight[tap * c.channels];
            }
    *to = convert<T>(sum);
}

// Weights by kernel place: [kernel place][channel].
template <class A, class T> void turn(const T* weight, int64_t channels, int64_t taps, A* turned) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t k = 0; k < taps; ++k)
            turned[k * channels + kept_at<A, T>(c, channels)] = convert<A>(weight[c * taps + k]);
}

// to = sums over the taps that reach each place, for planes of the sizes `from` and `size`.
template <class A, class T> void sum_all(const Call& c, const Triple& from, const Triple& size, const T* x,
                                         const T* weight, const T* given, T* to) {
    constexpr int64_t LANES = Vec<A, 64>::LANES;
    const int64_t n = c.channels, rows = checked_numel({c.images, size.d, size.h});
    const Scratch turned(checked_mul(checked_add(c.v.kernel.size(), 1), n), sizeof(A));
    turn(weight, n, c.v.kernel.size(), turned.as<A>());
    const A* w = turned.as<A>();
    A* const wide = turned.as<A>() + c.v.kernel.size() * n;
    for (int64_t l = 0; l < n && given; ++l) wide[kept_at<A, T>(l, n)] = convert<A>(given[l]);
    const A* bias = given ? wide : nullptr;
    const int64_t work = saturated_mul(saturated_mul(n, size.w), c.v.kernel.size());
    parallel_for(rows, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, work / 4)), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t t = begin; t < end; ++t) {
                const int64_t j = t % size.h, i = t / size.h % size.d, image = t / size.h / size.d;
                const T* planes = x + image * from.size() * n;
                T* row = to + t * size.w * n;
                int64_t l = 0;
                const auto at = [&](int64_t step) { return bias ? bias + step : nullptr; };
                for (; l + 2 * LANES <= n; l += 2 * LANES)
                    sum_line<A, 2>(c, from, planes + l, w + l, at(l), i, j, size.w, row + l);
                for (; l + LANES <= n; l += LANES)
                    sum_line<A, 1>(c, from, planes + l, w + l, at(l), i, j, size.w, row + l);
                for (; l < n; ++l)
                    for (int64_t k = 0; k < size.w; ++k)
                        sum_one<A>(c, from, planes + l, w + l, at(l), i, j, k, row + k * n + l);
            }
        });
    });
}

// The sums of one row of results for every tap: part[tap][channel] += gradient * x.
template <class A, class T> MT_INLINE void weigh_row(const Call& c, const T* grad, const T* image, int64_t i, int64_t j,
                                                     A* part) {
    const int64_t n = c.channels;
    for (size_t a = c.z.begin[(size_t)i]; a < c.z.begin[(size_t)i + 1]; ++a)
        for (size_t b = c.y.begin[(size_t)j]; b < c.y.begin[(size_t)j + 1]; ++b) {
            const T* row = image + (c.z.from[a] * c.v.in.h + c.y.from[b]) * c.v.in.w * n;
            A* sums = part + (c.z.tap[a] * c.v.kernel.h + c.y.tap[b]) * c.v.kernel.w * n;
            for (int64_t k = 0; k < c.v.out.w; ++k)
                for (size_t e = c.x.begin[(size_t)k]; e < c.x.begin[(size_t)k + 1]; ++e) {
                    const T *at = row + c.x.from[e] * n, *g = grad + k * n;
                    A* to = sums + c.x.tap[e] * n;
#pragma GCC ivdep
                    for (int64_t l = 0; l < n; ++l) to[l] += convert<A>(g[l]) * convert<A>(at[l]);
                }
        }
}

template <class A, class T> void weight_all(const Call& c, const T* grad, const T* x, T* out) {
    const int64_t n = c.channels, taps = c.v.kernel.size(), rows = checked_numel({c.images, c.v.out.d, c.v.out.h});
    // Blocks of rows whose sums are joined in order.
    const int64_t each = std::max<int64_t>(8, ceil_div(rows, 64)), blocks = ceil_div(rows, each);
    const Scratch room(checked_numel({blocks, taps, n}), sizeof(A));
    const int64_t work = saturated_mul(saturated_mul(each * c.v.out.w, n), taps);
    parallel_for(blocks, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, work / 4)), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t t = begin; t < end; ++t) {
                A* part = room.as<A>() + t * taps * n;
                std::fill_n(part, taps * n, A(0));
                for (int64_t r = t * each; r < std::min(rows, (t + 1) * each); ++r) {
                    const int64_t j = r % c.v.out.h, i = r / c.v.out.h % c.v.out.d, image = r / c.v.out.h / c.v.out.d;
                    weigh_row(c, grad + r * c.v.out.w * n, x + image * c.v.in.size() * n, i, j, part);
                }
            }
        });
    });
    for (int64_t l = 0; l < n; ++l)
        for (int64_t k = 0; k < taps; ++k) {
            double sum = 0;
            for (int64_t t = 0; t < blocks; ++t) sum += (double)room.as<A>()[(t * taps + k) * n + l];
            out[l * taps + k] = convert<T>((A)sum);
        }
}

enum class Kind { FORWARD, INPUT, WEIGHT };

template <Kind KIND> PyObject* depthwise(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args(name, nargs, 20);
        const Call c(args + 12, KIND == Kind::INPUT);
        const int64_t in = c.numel(c.v.in), out = c.numel(c.v.out);
        const int64_t weight = checked_mul(c.channels, c.v.kernel.size());
        const Dense a = parse_dense(args, KIND == Kind::FORWARD ? in : out);
        const Dense b = parse_dense(args + 3, KIND == Kind::WEIGHT ? in : weight);
        const bool biased = args[6] != Py_None;
        if (biased && KIND != Kind::FORWARD) fail(PyExc_ValueError, "%s: a gradient with a bias", name);
        const Dense bias = biased ? parse_dense(args + 6, c.channels) : Dense{nullptr, a.code};
        const Dense o = parse_dense(args + 9, KIND == Kind::FORWARD ? out : KIND == Kind::INPUT ? in : weight);
        if (a.code != b.code || a.code != o.code || a.code != bias.code)
            fail(PyExc_ValueError, "%s: operands of two dtypes", name);
        auto run = [&](auto a_, auto t) {
            using A = decltype(a_);
            using T = decltype(t);
            GilRelease unlocked(saturated_mul(out, c.v.kernel.size()));
            if (KIND == Kind::FORWARD)
                sum_all<A, T>(c, c.v.in, c.v.out, a.as<const T>(), b.as<const T>(), bias.as<const T>(), o.as<T>());
            else if (KIND == Kind::INPUT)
                sum_all<A, T>(c, c.v.out, c.v.in, a.as<const T>(), b.as<const T>(), nullptr, o.as<T>());
            else weight_all<A, T>(c, a.as<const T>(), b.as<const T>(), o.as<T>());
        };
        if (a.code == F32) run(float(), float());
        else if (a.code == F64) run(double(), double());
        else if (a.code == BF16) run(float(), BFloat16());
        else fail_dtype(name, a.code);
        Py_RETURN_NONE;
    });
}

PyObject* depthwise_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return depthwise<Kind::FORWARD>("depthwise_last", args, nargs);
}
PyObject* depthwise_input_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return depthwise<Kind::INPUT>("depthwise_input_last", args, nargs);
}
PyObject* depthwise_weight_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return depthwise<Kind::WEIGHT>("depthwise_weight_last", args, nargs);
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef conv_last_methods[];  // no other file needs to know
PyMethodDef conv_last_methods[] = {
    MT_METHOD("depthwise_last", depthwise_last, "Convolution of each channel, channels last."),
    MT_METHOD("depthwise_input_last", depthwise_input_last, "The gradient of its input."),
    MT_METHOD("depthwise_weight_last", depthwise_weight_last, "The gradient of its weights."),
    {nullptr, nullptr, 0, nullptr}};
