// Windows that slide over planes whose channels lie side by side (channels last): pooling.
// Invariant: every operand is dense, [image][depth][height][width][channel], and is compared with the size of its storage
// before a pointer is made. A result is summed in an order that depends on its window alone, and written by one thread.
//
// Loops run along the channels: a window's taps are rows of them. The calls are those of window.cpp with `images,
// channels` for `planes`.
//   pool_max_last, pool_mean_last, pool_mean_backward_last
//   pool_max_backward_last(grad.., places.., dx.., images, channels, in, out)     places as pool_max_last gave them
#include "cpu.h"
#include "lanes.h"
#include "vectors.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

constexpr int64_t CHUNK = 64;  // channels whose sums are kept close

struct Last {
    int64_t images, channels;
    explicit Last(PyObject* const* args) : images(parse_count(args[0])), channels(parse_count(args[1])) {}
    int64_t numel(const Triple& size) const { return checked_numel({images, channels, size.size()}); }
};

// Calls f(image, depth, height, channel, channels) for all rows of results, in chunks of channels; `work` is what one
// channel of one row costs.
template <class F> void for_rows(const Last& v, const Triple& rows, int64_t work, F&& f) {
    const int64_t count = checked_numel({v.images, rows.d, rows.h});
    parallel_for(count, lane_grain(saturated_mul(v.channels, work), 1), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t j = t % rows.h, i = t / rows.h % rows.d, n = t / rows.h / rows.d;
            for (int64_t c = 0; c < v.channels; c += CHUNK) f(n, i, j, c, std::min(CHUNK, v.channels - c));
        }
    });
}

// The same for images that are written as a whole, because windows overlap: f(image, channel, channels).
template <class F> void for_images(const Last& v, int64_t places, F&& f) {
    const int64_t strips = ceil_div(v.channels, CHUNK);
    parallel_for(checked_mul(v.images, strips), lane_grain(saturated_mul(places, CHUNK), 1),
                 [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) {
                         const int64_t c = t % strips * CHUNK;
                         f(t / strips, c, std::min(CHUNK, v.channels - c));
                     }
                 });
}

// Rows of channels to be added up, each times its weight: as many as are collected, then all at once, so that a whole
// chunk's sums stay in registers.
template <class T, bool WEIGHED> class Sum {
public:
    MT_INLINE Sum(T* sums, int64_t n) : sums_(sums), n_(n) {}
    MT_INLINE void add(const T* row, T weight) {
        if (MT_UNLIKELY(count_ == ROOM)) flush();
        row_[count_] = row;
        if (WEIGHED) weight_[count_] = weight;
        ++count_;
    }
    MT_INLINE void flush() {
        constexpr int64_t LANES = Vec<T, 64>::LANES;
        int64_t l = 0;
        if (count_ == 4)
            for (; l + 4 * LANES <= n_; l += 4 * LANES) vectors<4>(l, 4);
        else
            for (; l + 4 * LANES <= n_; l += 4 * LANES) vectors<4>(l, count_);
        for (; l + LANES <= n_; l += LANES) vectors<1>(l, count_);
        for (; l < n_; ++l) {
            T sum = fresh_ ? T(0) : sums_[l];
            for (int k = 0; k < count_; ++k) sum = (T)(sum + (WEIGHED ? (T)(weight_[k] * row_[k][l]) : row_[k][l]));
            sums_[l] = sum;
        }
        fresh_ = false;
        count_ = 0;
    }

private:
    static constexpr int ROOM = 32;
    template <int N> MT_INLINE void vectors(int64_t l, int count) {
        using V = typename Vec<T, 64>::t;
        using L = typename Vec<T, 64>::loose;
        constexpr int LANES = Vec<T, 64>::LANES;
        V sum[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[v] = fresh_ ? V{} : V(*reinterpret_cast<const L*>(sums_ + l + v * LANES));
#pragma GCC unroll 4
        for (int k = 0; k < count; ++k) {
            const T* from = row_[k] + l;
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) {
                const V x = *reinterpret_cast<const L*>(from + v * LANES);
                if (WEIGHED) sum[v] += x * weight_[k];
                else sum[v] += x;
            }
        }
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) *reinterpret_cast<L*>(sums_ + l + v * LANES) = sum[v];
    }

    T* sums_;
    int64_t n_;
    bool fresh_ = true;
    int count_ = 0;
    const T* row_[ROOM];
    T weight_[ROOM];
};

// ---------------------------------------------------------------- pooling

// One tap of all channels; what window.cpp says of ties and NaN holds.
template <class T, class I> MT_INLINE void take_max(const T* x, I place, T* best, I* at, int64_t n) {
#pragma GCC ivdep
    for (int64_t c = 0; c < n; ++c) {
        const bool wins = (x[c] > best[c]) | (x[c] != x[c]);
        best[c] = wins ? x[c] : best[c];
        at[c] = wins ? place : at[c];
    }
}

template <class T, class I>
MT_INLINE void max_window(const T* x, const Ranges& r, const Triple& step, int64_t i, int64_t j, int64_t k,
                          int64_t channels, T lowest, T* out, int64_t* places, int64_t n) {
    const size_t h = (size_t)r.out.d + (size_t)j, w = (size_t)(r.out.d + r.out.h) + (size_t)k;
    const int64_t z0 = r.start[(size_t)i], y0 = r.start[h], x0 = r.start[w];
    T best[CHUNK];
    I at[CHUNK];
    const I first = (I)((z0 * r.in.h + y0) * r.in.w + x0);
    for (int64_t c = 0; c < n; ++c) best[c] = lowest, at[c] = first;
    for (int64_t z = z0; z < r.end[(size_t)i]; z += step.d)
        for (int64_t y = y0; y < r.end[h]; y += step.h)
            for (int64_t e = x0; e < r.end[w]; e += step.w) {
                const int64_t place = (z * r.in.h + y) * r.in.w + e;
                const T* from = x + place * channels;
                if (n == CHUNK) take_max<T, I>(from, (I)place, best, at, CHUNK);
                else take_max<T, I>(from, (I)place, best, at, n);
            }
    for (int64_t c = 0; c < n; ++c) out[c] = best[c];
    for (int64_t c = 0; c < n; ++c) places[c] = (int64_t)at[c];
}

template <class T, class I>
void max_all(const Last& v, const Ranges& r, const Triple& step, const T* x, T* out, int64_t* places) {
    T lowest;
    if constexpr (std::is_floating_point<T>::value) lowest = -std::numeric_limits<T>::infinity();
    else lowest = std::numeric_limits<T>::lowest();
    for_rows(v, r.out, saturated_mul(4, r.out.w), [&](int64_t n, int64_t i, int64_t j, int64_t c, int64_t count) {
        const T* image = x + n * r.in.size() * v.channels + c;
        const int64_t row = ((n * r.out.d + i) * r.out.h + j) * r.out.w;
        at_level(MT_BODY {
            for (int64_t k = 0; k < r.out.w; ++k)
                max_window<T, I>(image, r, step, i, j, k, v.channels, lowest, out + (row + k) * v.channels + c,
                                 places + (row + k) * v.channels + c, count);
        });
    });
}

PyObject* pool_max_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pool_max_last", nargs, 16);
        const Last v(args + 9);
        const Ranges r(args[11], args[12], args[13], args[14]);
        const Triple given = parse_triple(args[15], 1);
        const Triple step{std::min(given.d, FAR), std::min(given.h, FAR), std::min(given.w, FAR)};
        const Dense x = parse_dense(args, v.numel(r.in)), o = parse_dense(args + 3, v.numel(r.out));
        const Dense places = parse_dense(args + 6, v.numel(r.out));
        if (x.code != o.code || places.code != I64) fail(PyExc_ValueError, "pool_max_last: wrong dtype of a result");
        dispatch_columns(x.code, "max_pool", [&](auto t) {
            using T = decltype(t);
            if constexpr (IsComplex<T>::value) {
                fail_dtype("max_pool", x.code);
            } else {
                GilRelease unlocked(v.numel(r.in));
                // Numbers of places are as wide as the elements, where that suffices: both are selected by one mask. An
                // empty window may have any number.
                bool near = r.in.size() <= std::numeric_limits<int32_t>::max() / 4 && sizeof(T) <= 4;
                for (const int64_t s : r.start) near &= s <= r.in.size();
                near &= r.in.d == 1;
                if (near) max_all<T, int32_t>(v, r, step, x.as<T>(), o.as<T>(), places.as<int64_t>());
                else max_all<T, int64_t>(v, r, step, x.as<T>(), o.as<T>(), places.as<int64_t>());
            }
        });
        Py_RETURN_NONE;
    });
}

PyObject* pool_max_backward_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pool_max_backward_last", nargs, 13);
        const Last v(args + 9);
        const Triple in = parse_sizes(args[11]), out = parse_sizes(args[12]);
        const Dense g = parse_dense(args, v.numel(out)), places = parse_dense(args + 3, v.numel(out));
        const Dense dx = parse_dense(args + 6, v.numel(in));
        if (g.code != dx.code || places.code != I64) fail(PyExc_ValueError, "pool_max_backward_last: wrong dtype");
        auto run = [&](auto t) {
            using T = decltype(t);
            GilRelease unlocked(v.numel(in));
            for_images(v, in.size() + 4 * out.size(), [&](int64_t n, int64_t c, int64_t count) {
                T* to = dx.as<T>() + n * in.size() * v.channels + c;
                for (int64_t p = 0; p < in.size(); ++p) std::fill_n(to + p * v.channels, count, T(0));
                const int64_t first = n * out.size() * v.channels + c;
                for (int64_t p = 0; p < out.size(); ++p) {
                    const T* from = g.as<T>() + first + p * v.channels;
                    const int64_t* at = places.as<int64_t>() + first + p * v.channels;
                    for (int64_t e = 0; e < count; ++e) {
                        const int64_t place = read_once(at + e);
                        if (MT_UNLIKELY((uint64_t)place >= (uint64_t)in.size()))
                            fail(PyExc_IndexError, "index %lld is out of bounds for a plane of %lld places",
                                 (long long)place, (long long)in.size());
                        to[place * v.channels + e] += from[e];
                    }
                }
            });
        };
        if (g.code == F32) run(float());
        else if (g.code == F64) run(double());
        else fail_dtype("max_pool_backward", g.code);
        Py_RETURN_NONE;
    });
}

template <class T>
void mean_all(const Last& v, const Ranges& r, const std::vector<int64_t>& count, int64_t divisor, const T* x, T* out) {
    const size_t h = (size_t)r.out.d, w = h + (size_t)r.out.h;
    for_rows(v, r.out, saturated_mul(4, r.out.w), [&](int64_t n, int64_t i, int64_t j, int64_t c, int64_t channels) {
        const T* image = x + n * r.in.size() * v.channels + c;
        T* to = out + ((n * r.out.d + i) * r.out.h + j) * r.out.w * v.channels + c;
        at_level(MT_BODY {
            for (size_t k = w; k < r.start.size(); ++k, to += v.channels) {
                Sum<T, false> sum(to, channels);
                for (int64_t z = r.start[(size_t)i]; z < r.end[(size_t)i]; ++z)
                    for (int64_t y = r.start[h + (size_t)j]; y < r.end[h + (size_t)j]; ++y)
                        for (int64_t e = r.start[k]; e < r.end[k]; ++e)
                            sum.add(image + ((z * r.in.h + y) * r.in.w + e) * v.channels, T(1));
                sum.flush();
                const int64_t by = divisor ? divisor : window_count(count[(size_t)i], count[h + (size_t)j], count[k]);
                for (int64_t q = 0; q < channels; ++q) to[q] = mean_of_sum(to[q], by);
            }
        });
    });
}

// The windows that cover each place of one dimension.
struct Covers {
    std::vector<size_t> begin, window;  // begin: of each place, one more than places
    Covers(const int64_t* start, const int64_t* end, int64_t windows, int64_t places) : begin((size_t)places + 1, 0) {
        for (int64_t k = 0; k < windows; ++k)
            for (int64_t e = start[k]; e < end[k]; ++e) ++begin[(size_t)e + 1];
        for (size_t p = 1; p < begin.size(); ++p) begin[p] += begin[p - 1];
        window.resize(begin.back());
        std::vector<size_t> at(begin.begin(), begin.end() - 1);
        for (int64_t k = 0; k < windows; ++k)
            for (int64_t e = start[k]; e < end[k]; ++e) window[at[(size_t)e]++] = (size_t)k;
    }
};

// Each element gets its share of the gradients of all windows that cover it.
template <class T> void gather_shares(const Last& v, const Ranges& r, const std::vector<int64_t>& count,
                                      int64_t divisor, T* x, const T* out) {
    const size_t h = (size_t)r.out.d, w = h + (size_t)r.out.h;
    const Covers a(r.start.data(), r.end.data(), r.out.d, r.in.d);
    const Covers b(r.start.data() + h, r.end.data() + h, r.out.h, r.in.h);
    const Covers c(r.start.data() + w, r.end.data() + w, r.out.w, r.in.w);
    for_rows(v, r.in, saturated_mul(2, r.in.w), [&](int64_t n, int64_t i, int64_t j, int64_t first, int64_t channels) {
        const T* from = out + n * r.out.size() * v.channels + first;
        T* to = x + ((n * r.in.d + i) * r.in.h + j) * r.in.w * v.channels + first;
        at_level(MT_BODY {
            for (size_t k = 0; k < (size_t)r.in.w; ++k, to += v.channels) {
                Sum<T, true> sum(to, channels);
                for (size_t p = a.begin[(size_t)i]; p < a.begin[(size_t)i + 1]; ++p)
                    for (size_t q = b.begin[(size_t)j]; q < b.begin[(size_t)j + 1]; ++q)
                        for (size_t e = c.begin[k]; e < c.begin[k + 1]; ++e) {
                            const size_t z = a.window[p], y = b.window[q], u = c.window[e];
                            const int64_t by = divisor ? divisor : window_count(count[z], count[h + y], count[w + u]);
                            const int64_t place = ((int64_t)z * r.out.h + (int64_t)y) * r.out.w + (int64_t)u;
                            sum.add(from + place * v.channels, T(1) / (T)by);
                        }
                sum.flush();
            }
        });
    });
}

// The same for integers, whose shares are rounded one by one.
template <class T> void share_all(const Last& v, const Ranges& r, const std::vector<int64_t>& count, int64_t divisor,
                                  T* x, const T* out) {
    const size_t h = (size_t)r.out.d, w = h + (size_t)r.out.h;
    for_images(v, r.in.size() + 4 * r.out.size(), [&](int64_t n, int64_t c, int64_t channels) {
        T* image = x + n * r.in.size() * v.channels + c;
        const T* from = out + n * r.out.size() * v.channels + c;
        at_level(MT_BODY {
            for (int64_t p = 0; p < r.in.size(); ++p) std::fill_n(image + p * v.channels, channels, T(0));
            for (size_t i = 0; i < h; ++i)
                for (size_t j = h; j < w; ++j)
                    for (size_t k = w; k < r.start.size(); ++k, from += v.channels) {
                        const int64_t by = divisor ? divisor : window_count(count[i], count[j], count[k]);
                        T share[CHUNK];
                        for (int64_t q = 0; q < channels; ++q) share[q] = mean_of_sum(from[q], by);
                        for (int64_t z = r.start[i]; z < r.end[i]; ++z)
                            for (int64_t y = r.start[j]; y < r.end[j]; ++y)
                                for (int64_t e = r.start[k]; e < r.end[k]; ++e) {
                                    T* to = image + ((z * r.in.h + y) * r.in.w + e) * v.channels;
                                    for (int64_t q = 0; q < channels; ++q) to[q] = (T)(to[q] + share[q]);
                                }
                    }
        });
    });
}

template <bool BACK> PyObject* mean_of(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    expect_args(name, nargs, 14);
    const Last v(args + 6);
    const Ranges r(args[8], args[9], args[10], args[11]);
    const std::vector<int64_t> count = parse_list(args[12], (int64_t)r.start.size());
    const int64_t divisor = as_int(args[13]);
    const Dense x = parse_dense(args + (BACK ? 3 : 0), v.numel(r.in));
    const Dense o = parse_dense(args + (BACK ? 0 : 3), v.numel(r.out));
    if (x.code != o.code) fail(PyExc_ValueError, "%s: operands of two dtypes", name);
    auto run = [&](auto t) {
        using T = decltype(t);
        GilRelease unlocked(v.numel(r.in));
        if (BACK && std::is_integral<T>::value) share_all(v, r, count, divisor, x.as<T>(), o.as<const T>());
        else if (BACK) gather_shares(v, r, count, divisor, x.as<T>(), o.as<const T>());
        else mean_all(v, r, count, divisor, x.as<const T>(), o.as<T>());
    };
    if (x.code == F32) run(float());
    else if (x.code == F64) run(double());
    else if (x.code == I64) run(int64_t());
    else fail_dtype(name, x.code);
    Py_RETURN_NONE;
}
PyObject* pool_mean_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return mean_of<false>("avg_pool", args, nargs); });
}
PyObject* pool_mean_backward_last(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return mean_of<true>("avg_pool_backward", args, nargs); });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef window_last_methods[];  // no other file needs to know
PyMethodDef window_last_methods[] = {
    MT_METHOD("pool_max_last", pool_max_last, "pool_max, channels last."),
    MT_METHOD("pool_max_backward_last", pool_max_backward_last, "Gradients of maxima to their places, channels last."),
    MT_METHOD("pool_mean_last", pool_mean_last, "pool_mean, channels last."),
    MT_METHOD("pool_mean_backward_last", pool_mean_backward_last, "pool_mean_backward, channels last."),
    {nullptr, nullptr, 0, nullptr}};
