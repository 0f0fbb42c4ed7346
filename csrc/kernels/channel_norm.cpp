// Batch norm and group norm of planes: images, their channels, and the places of a channel side by side; or images,
// their places, and the channels of a place side by side (channels last).
// Invariant: statistics are taken plane by plane (moments.h), or over blocks of rows that depend on the shape alone, and
// joined in order, in double; so results do not depend on the number of threads. Everything is float32 or everything
// float64; x and out may be float16 or bfloat16 beside float32.
//
// An operand is 3 arguments: storage, offset, code; dense. None: not given, or not wanted.
//   channel_norm(x.., out.., weight|None.., bias|None.., mean.., var.., rstd|None.., images, channels, places, groups,
//                last, eps, given)
//       groups 0: statistics of each channel over all images; else of each group of channels of each image.
//       last: the channels of a place lie side by side. given: mean and var are read instead of written, and there is no rstd
//   running_update(running.., seen.., count, momentum, factor)
//       running = running * (1 - momentum) + seen * factor * momentum
//   channel_norm_backward(grad.., x.., mean.., rstd.., weight|None.., dx|None.., dweight|None.., dbias|None.., images,
//                         channels, places, groups, last, fixed)      fixed: mean and rstd do not depend on x
#include "cpu.h"
#include "halves.h"
#include "moments.h"
#include "windows.h"

namespace mt {
namespace {

struct Planes {
    int64_t images, channels, places, groups;
    bool last;
    explicit Planes(PyObject* const* args)
        : images(parse_count(args[0])), channels(parse_count(args[1])), places(parse_count(args[2])),
          groups(parse_count(args[3])), last(as_bool(args[4])) {
        if (groups && channels % groups)
            fail(PyExc_ValueError, "%lld channels in %lld groups", (long long)channels, (long long)groups);
    }
    int64_t count() const { return checked_mul(images, channels); }
    int64_t numel() const { return checked_mul(count(), places); }
    int64_t sets() const { return groups ? checked_mul(images, groups) : channels; }  // of statistics
    int64_t channel_of(int64_t plane) const { return plane % channels; }
    int64_t set_of(int64_t plane) const { return groups ? plane / (channels / groups) : plane % channels; }
    double size() const { return double(groups ? channels / groups : images) * double(places); }
    int64_t grain(int64_t cost) const { return lane_grain(places, cost); }
    int64_t set_of(int64_t image, int64_t channel) const {
        return groups ? image * groups + channel / (channels / groups) : channel;
    }
};

Dense parse_optional(PyObject* const* args, int64_t numel, int code) {
    if (args[0] == Py_None) return {nullptr, code};
    const Dense d = parse_dense(args, numel);
    if (d.code != code) fail(PyExc_ValueError, "channel_norm: operands of two dtypes");
    return d;
}

// Between n elements of memory and numbers to compute with.
template <class T> MT_INLINE void widen_block(acc_t<T>* to, const T* from, int64_t n) {
    cast_block(reinterpret_cast<char*>(to), CodeOf<acc_t<T>>::value, reinterpret_cast<const char*>(from),
               CodeOf<T>::value, n);
}
template <class T> MT_INLINE void narrow_block(T* to, const acc_t<T>* from, int64_t n) {
    cast_block(reinterpret_cast<char*>(to), CodeOf<T>::value, reinterpret_cast<const char*>(from),
               CodeOf<acc_t<T>>::value, n);
}

#if MT_HAS_LEVELS
template <class T> MT_AVX512 MT_NOINLINE void widen_halves16(float* to, const T* from, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(to + i, (__m512)halves16(from + i));
    if (i < n) _mm512_mask_storeu_ps(to + i, (__mmask16)((1u << (n - i)) - 1), (__m512)halves16(from + i, n - i));
}
#endif

// n elements to numbers to compute with, in loops of at_level.
template <class T> MT_INLINE void gather_block(acc_t<T>* to, const T* from, int64_t n) {
    if constexpr (std::is_same<acc_t<T>, T>::value) {
        for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    } else {
#if MT_HAS_LEVELS
        if (cpu_level >= AVX512) return widen_halves16(to, from, n);
#endif
        widen_block(to, from, n);
    }
}

// The same where planes are small: those of a set are put side by side first.
constexpr int64_t SMALL = 512;
template <class T, class A = acc_t<T>>
void find_moments_together(const Planes& p, const T* x, A* mean, A* var, A* rstd, double eps) {
    const int64_t pieces = p.groups ? 1 : p.images, each = p.groups ? p.channels / p.groups : 1;
    const int64_t length = p.places * each, step = p.channels * p.places;
    parallel_for(p.sets(), lane_grain(std::max<int64_t>(1, length * pieces), 1), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            A batch[BATCH];
            for (int64_t s = begin; s < end; ++s) {
                Moments all;
                int64_t filled = 0;
                for (int64_t i = 0; i < pieces; ++i)
                    for (int64_t k = 0; k < length;) {
                        const int64_t n = std::min(BATCH - filled, length - k);
                        gather_block(batch + filled, x + s * length + i * step + k, n);
                        filled += n, k += n;
                        if (filled < BATCH) continue;
                        add_batch(all, batch, filled);
                        filled = 0;
                    }
                if (filled > 0) add_batch(all, batch, filled);
                mean[s] = (A)all.mean;
                var[s] = (A)(all.m2 / all.n);
                if (rstd) rstd[s] = (A)(1.0 / std::sqrt(all.m2 / all.n + eps));
            }
        });
    });
}

template <class T, class A = acc_t<T>>
void find_moments(const Planes& p, const T* x, A* mean, A* var, A* rstd, double eps) {
    if (p.places < SMALL) return find_moments_together(p, x, mean, var, rstd, eps);
    const Scratch room(p.count(), sizeof(Moments));
    Moments* of = room.as<Moments>();
    parallel_for(p.count(), p.grain(1), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t i = begin; i < end; ++i) {
                of[i] = Moments();
                if constexpr (std::is_same<A, T>::value) {
                    add_row(of[i], x + i * p.places, p.places);
                } else {
                    A batch[BATCH];
                    for (int64_t k = 0; k < p.places; k += BATCH) {
                        const int64_t n = std::min(BATCH, p.places - k);
#if MT_HAS_LEVELS
                        if (cpu_level >= AVX512) widen_halves16(batch, x + i * p.places + k, n);
                        else
#endif
                            widen_block(batch, x + i * p.places + k, n);
                        add_batch(of[i], batch, n);
                    }
                }
            }
        });
    });
    // The first plane of a set takes the others in.
    for (int64_t i = 0; i < p.count(); ++i) {
        const int64_t first = p.groups ? i / (p.channels / p.groups) * (p.channels / p.groups) : i % p.channels;
        if (first != i) of[first].merge(of[i].n, of[i].mean, of[i].m2);
    }
    for (int64_t s = 0; s < p.sets(); ++s) {
        const Moments& m = of[p.groups ? s * (p.channels / p.groups) : s];
        mean[s] = (A)m.mean;
        var[s] = (A)(m.m2 / m.n);
        if (rstd) rstd[s] = (A)(1.0 / std::sqrt(m.m2 / m.n + eps));
    }
}

constexpr int64_t TOGETHER = 1024;  // elements that are widened at a time

#if MT_HAS_LEVELS
// A plane of two-byte floats, without a detour through memory.
template <class T>
MT_AVX512 MT_NOINLINE void normalize_halves(const T* from, T* to, int64_t n, float middle, float scale, float add) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                            narrowed16<T>((halves16(from + i) - middle) * scale + add));
    if (i < n)
        _mm256_mask_storeu_epi16(to + i, (__mmask16)((1u << (n - i)) - 1),
                                 narrowed16<T>((halves16(from + i, n - i) - middle) * scale + add));
}
#endif

template <class T, class A = acc_t<T>>
void normalize(const Planes& p, const T* x, T* out, const A* weight, const A* bias, const A* mean, const A* var,
               double eps) {
    parallel_for(p.count(), p.grain(1), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t c = p.channel_of(i), s = p.set_of(i);
                const A middle = mean[s], add = bias ? bias[c] : A(0);
                const A scale = (A)(1.0 / std::sqrt((double)var[s] + eps) * (weight ? (double)weight[c] : 1.0));
                const T* from = x + i * p.places;
                T* to = out + i * p.places;
                if constexpr (std::is_same<A, T>::value) {
#pragma GCC ivdep
                    for (int64_t k = 0; k < p.places; ++k) to[k] = (from[k] - middle) * scale + add;
                } else {
#if MT_HAS_LEVELS
                    if (cpu_level >= AVX512) {
                        normalize_halves(from, to, p.places, middle, scale, add);
                        continue;
                    }
#endif
                    A row[TOGETHER];
                    for (int64_t k = 0; k < p.places; k += TOGETHER) {
                        const int64_t n = std::min(TOGETHER, p.places - k);
                        widen_block(row, from + k, n);
                        for (int64_t j = 0; j < n; ++j) row[j] = (row[j] - middle) * scale + add;
                        narrow_block(to + k, row, n);
                    }
                }
            }
        });
    });
}

// ---------------------------------------------------------------- channels last

// Rows of channels side by side: statistics grow across rows, many channels at a time. Blocks of rows, and strips of
// channels, go to threads.
constexpr int64_t STRIP = 128, ROWS = 64;  // rows that are summed in their own precision
constexpr int64_t BLOCK = 1024;            // rows of a block, and more where there would be very many

struct Blocks {
    int64_t rows, each;  // blocks of an image
    explicit Blocks(const Planes& p)
        : rows(std::max(BLOCK, ceil_div(ceil_div(p.places, 64), ROWS) * ROWS)), each(ceil_div(p.places, rows)) {}
};

// f(block, its first row, number of rows, first channel, channels): block and row counted over all images.
template <class F> void for_strips(const Planes& p, F&& f) {
    const Blocks b(p);
    const int64_t strips = ceil_div(p.channels, STRIP);
    const int64_t work = saturated_mul(std::min(b.rows, p.places), std::min(STRIP, p.channels));
    parallel_for(checked_numel({p.images, b.each, strips}), lane_grain(work, 2), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t t = begin; t < end; ++t) {
                const int64_t s = t % strips * STRIP, block = t / strips, row = block % b.each * b.rows;
                f(block, block / b.each * p.places + row, std::min(b.rows, p.places - row), s,
                  std::min(STRIP, p.channels - s));
            }
        });
    });
}
// f(where a row begins, its image)
template <class F> void for_each_row(const Planes& p, F&& f) {
    parallel_for(p.images * p.places, lane_grain(p.channels, 1), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t r = begin; r < end; ++r) f(r * p.channels, r / p.places);
        });
    });
}

template <class A>
MT_INLINE void strip_moments(const A* x, int64_t rows, int64_t channels, int64_t w, Moments* of) {
    A middle[STRIP], plain[STRIP], square[STRIP];
    for (int64_t r = 0; r < rows; r += ROWS) {
        const int64_t n = std::min(ROWS, rows - r);
        const A* from = x + r * channels;
        for (int64_t c = 0; c < w; ++c) middle[c] = plain[c] = square[c] = 0;
        // Four rows at a time: sums are read and written once for all of them.
        int64_t k = 0;
        for (; k + 4 <= n; k += 4) {
            const A* at = from + k * channels;
            for (int64_t c = 0; c < w; ++c)
                middle[c] += (at[c] + at[c + channels]) + (at[c + 2 * channels] + at[c + 3 * channels]);
        }
        for (; k < n; ++k)
            for (int64_t c = 0; c < w; ++c) middle[c] += from[k * channels + c];
        for (int64_t c = 0; c < w; ++c) middle[c] /= (A)n;
        for (k = 0; k + 4 <= n; k += 4) {
            const A* at = from + k * channels;
            for (int64_t c = 0; c < w; ++c) {
                const A m = middle[c], d0 = at[c] - m, d1 = at[c + channels] - m;
                const A d2 = at[c + 2 * channels] - m, d3 = at[c + 3 * channels] - m;
                plain[c] += (d0 + d1) + (d2 + d3);
                square[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
            }
        }
        for (; k < n; ++k)
            for (int64_t c = 0; c < w; ++c) {
                const A d = from[k * channels + c] - middle[c];
                plain[c] += d;
                square[c] += d * d;
            }
        for (int64_t c = 0; c < w; ++c) {
            const double rest = (double)plain[c] / (double)n;
            of[c].merge((double)n, (double)middle[c] + rest, (double)square[c] - rest * rest * (double)n);
        }
    }
}

// The moments of the sets from those of their parts, in two passes: joined one by one, each would cost divisions.
template <class A>
void join_parts(const Planes& p, int64_t blocks, const Moments* of, A* mean, A* var, A* rstd, double eps) {
    const int64_t each = p.groups ? p.channels / p.groups : 1, across = p.channels / each;
    const Scratch joined(p.sets(), sizeof(Moments));
    Moments* const set = joined.as<Moments>();
    std::fill_n(set, p.sets(), Moments());
    auto for_parts = [&](auto f) {
        for (int64_t t = 0; t < p.images * blocks; ++t)
            for (int64_t g = 0; g < across; ++g)
                for (int64_t c = g * each; c < (g + 1) * each; ++c)
                    f(set[(p.groups ? t / blocks * p.groups : 0) + g], of[t * p.channels + c]);
    };
    for_parts([](Moments& to, const Moments& m) { to.n += m.n, to.mean += m.n * m.mean; });
    for (int64_t s = 0; s < p.sets(); ++s) set[s].mean /= set[s].n;
    for_parts([](Moments& to, const Moments& m) {
        const double apart = m.mean - to.mean;
        to.m2 += m.m2 + m.n * apart * apart;
    });
    for (int64_t s = 0; s < p.sets(); ++s) {
        const double v = set[s].m2 / set[s].n;
        mean[s] = (A)set[s].mean;
        var[s] = (A)v;
        if (rstd) rstd[s] = (A)(1.0 / std::sqrt(v + eps));
    }
}

template <class T, class A = acc_t<T>>
void find_last_moments(const Planes& p, const T* x, A* mean, A* var, A* rstd, double eps) {
    const Blocks b(p);
    const Scratch room(checked_numel({p.images, b.each, p.channels}), sizeof(Moments));
    Moments* of = room.as<Moments>();
    for_strips(p,
               [&](int64_t block, int64_t row, int64_t rows, int64_t first, int64_t w) __attribute__((always_inline)) {
                   Moments* to = of + block * p.channels + first;
                   std::fill_n(to, w, Moments());
                   const T* from = x + row * p.channels + first;
                   if constexpr (std::is_same<A, T>::value) {
                       strip_moments(from, rows, p.channels, w, to);
                   } else {
                       A tile[ROWS * STRIP];
                       for (int64_t r = 0; r < rows; r += ROWS) {
                           const int64_t n = std::min(ROWS, rows - r);
                           for (int64_t k = 0; k < n; ++k) gather_block(tile + k * w, from + (r + k) * p.channels, w);
                           strip_moments<A>(tile, n, w, w, to);
                       }
                   }
               });
    join_parts(p, b.each, of, mean, var, rstd, eps);
}
template <class T, class A = acc_t<T>>
void normalize_last(const Planes& p, const T* x, T* out, const A* weight, const A* bias, const A* mean, const A* var,
                    double eps) {
    const int64_t n = p.channels, all = p.groups ? p.count() : n;
    const Scratch room(checked_mul(all, 3), sizeof(A));
    A *scale = room.as<A>(), *add = scale + all, *middle = add + all;
    const int64_t each = p.groups ? n / p.groups : 1;  // channels of a set, one after the other
    for (int64_t s = 0; s < all / each; ++s) {
        const double inverse = 1.0 / std::sqrt((double)var[s] + eps);
        for (int64_t i = s * each, c = i % n; i < (s + 1) * each; ++i, ++c) {
            scale[i] = (A)(inverse * (weight ? (double)weight[c] : 1.0));
            add[i] = bias ? bias[c] : A(0);
            middle[i] = mean[s];
        }
    }
    auto apply = [&](const A* from, A* to, int64_t row) __attribute__((always_inline)) {
        const int64_t first = p.groups ? row / p.places * n : 0;
        const A *m = middle + first, *f = scale + first, *d = add + first;
#pragma GCC ivdep
        for (int64_t c = 0; c < n; ++c) to[c] = (from[c] - m[c]) * f[c] + d[c];
    };
    parallel_for(p.images * p.places, lane_grain(n, 1), [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same<A, T>::value) {
            at_level(MT_BODY {
                for (int64_t r = begin; r < end; ++r) apply(x + r * n, out + r * n, r);
            });
        } else {
            const int64_t most = std::max<int64_t>(1, TOGETHER / n);
            const Row<A> tile(most * n);
            at_level(MT_BODY {
                for (int64_t r = begin; r < end; r += most) {
                    const int64_t rows = std::min(most, end - r);
                    widen_block(tile.get(), x + r * n, rows * n);
                    for (int64_t k = 0; k < rows; ++k) apply(tile.get() + k * n, tile.get() + k * n, r + k);
                    narrow_block(out + r * n, tile.get(), rows * n);
                }
            });
        }
    });
}

PyObject* channel_norm(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("channel_norm", nargs, 28);
        const Planes p(args + 21);
        const double eps = as_double(args[26]);
        const bool given = as_bool(args[27]);
        const Dense x = parse_dense(args, p.numel());
        const bool half = x.code == F16 || x.code == BF16;
        const int code = half ? (int)F32 : x.code;
        const Dense out = parse_optional(args + 3, p.numel(), x.code);
        const Dense weight = parse_optional(args + 6, p.channels, code),
                    bias = parse_optional(args + 9, p.channels, code);
        const Dense mean = parse_optional(args + 12, p.sets(), code), var = parse_optional(args + 15, p.sets(), code);
        const Dense rstd = parse_optional(args + 18, p.sets(), code);
        if (!out.data || !mean.data || !var.data) fail(PyExc_TypeError, "channel_norm: a result is missing");
        if (p.numel() == 0) Py_RETURN_NONE;
        dispatch_float(x.code, "channel_norm", [&](auto t) {
            using T = decltype(t);
            using A = acc_t<T>;
            GilRelease unlocked(p.numel());
            if (!given && !p.last) find_moments(p, x.as<const T>(), mean.as<A>(), var.as<A>(), rstd.as<A>(), eps);
            if (!given && p.last) find_last_moments(p, x.as<const T>(), mean.as<A>(), var.as<A>(), rstd.as<A>(), eps);
            const A *w = weight.as<const A>(), *b = bias.as<const A>(), *m = mean.as<const A>(), *v = var.as<const A>();
            if (p.last) normalize_last(p, x.as<const T>(), out.as<T>(), w, b, m, v, eps);
            else normalize(p, x.as<const T>(), out.as<T>(), w, b, m, v, eps);
        });
        Py_RETURN_NONE;
    });
}

PyObject* running_update(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("running_update", nargs, 9);
        const int64_t count = parse_count(args[6]);
        const double momentum = as_double(args[7]), factor = as_double(args[8]);
        const Dense running = parse_dense(args, count);
        const Dense seen = parse_optional(args + 3, count, running.code);
        if (!seen.data) fail(PyExc_TypeError, "running_update: an operand is missing");
        if (running.code != F32 && running.code != F64) fail_dtype("running_update", running.code);
        auto run = [&](auto t) {
            using A = decltype(t);
            A* to = running.as<A>();
            const A* from = seen.as<const A>();
            const A keep = A(1 - momentum), take = A(momentum), by = A(factor);
            for (int64_t i = 0; i < count; ++i) to[i] = to[i] * keep + from[i] * by * take;
        };
        if (running.code == F32) run(float());
        else run(double());
        Py_RETURN_NONE;
    });
}

// ---------------------------------------------------------------- gradients

// At most BATCH elements as numbers to compute with: where they lie, or widened.
template <class T, class A = acc_t<T>> struct Wide {
    static constexpr bool SAME = std::is_same<A, T>::value;
    alignas(64) A room[SAME ? 1 : BATCH];
    MT_INLINE const A* of(const T* from, int64_t n) {
        if constexpr (SAME) {
            return from;
        } else {
            gather_block(room, from, n);
            return room;
        }
    }
    // Where n results are written, and the way from there to memory.
    MT_INLINE A* before(T* to) {
        if constexpr (SAME) return to;
        else return room;
    }
    MT_INLINE void give(T* to, int64_t n) const {
        if constexpr (!SAME) narrow_block(to, room, n);
    }
};

// Of one plane: the sums of the gradient, and of the gradient times the distance from the mean.
struct Sums {
    double plain, scaled;
};

template <class T, class A = acc_t<T>> MT_INLINE Sums sums_of(const T* g, const T* x, A mean, int64_t n) {
    Sums all{0, 0};
    Wide<T> near, far;
    for (int64_t i = 0; i < n; i += BATCH) {
        const int64_t count = std::min(BATCH, n - i);
        const A *gs = near.of(g + i, count), *xs = far.of(x + i, count);
        A first, second;
        two_sums_of<A>(
            count, MT_EACH(k) { return gs[k]; },
            [&](int64_t k, A v) __attribute__((always_inline)) { return v * (xs[k] - mean); }, first, second);
        all.plain += (double)first;
        all.scaled += (double)second;
    }
    return all;
}

template <class T, class A = acc_t<T>> struct Backward {
    const Planes& p;
    const T *g, *x;
    const A *mean, *rstd, *weight;
    T* dx;
    A *dweight, *dbias;
    bool fixed;

    double weight_of(int64_t channel) const { return weight ? (double)weight[channel] : 1.0; }

    void run() const {
        const bool whole = dx && !fixed;
        const Scratch room(p.count() + (whole ? p.sets() : 0), sizeof(Sums));
        Sums* of = room.as<Sums>();
        Sums* total = of + p.count();  // of each set, weighed
        if (whole || dweight || dbias) {
            parallel_for(p.count(), p.grain(1), [&](int64_t begin, int64_t end) {
                at_level(MT_BODY {
                    for (int64_t i = begin; i < end; ++i)
                        of[i] = sums_of(g + i * p.places, x + i * p.places, mean[p.set_of(i)], p.places);
                });
            });
            parameters(of);
        }
        if (whole) weigh(of, total);
        if (dx) input(total);
    }

    // Sums of each block of rows and channel.
    void last_sums(Sums* of) const {
        const int64_t n = p.channels;
        for_strips(
            p, [&](int64_t block, int64_t row, int64_t rows, int64_t first, int64_t w) __attribute__((always_inline)) {
                Sums* to = of + block * n + first;
                std::fill_n(to, w, Sums{0, 0});
                A middle[STRIP];
                Wide<T> near, far;
                for (int64_t c = 0; c < w; ++c) middle[c] = mean[p.set_of(row / p.places, first + c)];
                for (int64_t r = 0; r < rows; r += ROWS) {
                    A plain[STRIP] = {}, scaled[STRIP] = {};
                    for (int64_t k = r; k < std::min(r + ROWS, rows); ++k) {
                        const int64_t at = (row + k) * n + first;
                        const A *gs = near.of(g + at, w), *xs = far.of(x + at, w);
                        for (int64_t c = 0; c < w; ++c) {
                            plain[c] += gs[c];
                            scaled[c] += gs[c] * (xs[c] - middle[c]);
                        }
                    }
                    for (int64_t c = 0; c < w; ++c) {
                        to[c].plain += (double)plain[c];
                        to[c].scaled += (double)scaled[c];
                    }
                }
            });
    }

    void run_last() const {
        const Blocks b(p);
        const int64_t n = p.channels, all = p.groups ? p.count() : n;
        const Scratch room(checked_add(checked_numel({p.images, b.each, n}), checked_add(p.count(), p.sets())),
                           sizeof(Sums));
        Sums *of = room.as<Sums>(), *total = of + p.count(), *parts = total + p.sets();
        last_sums(parts);
        std::fill_n(of, p.count() + p.sets(), Sums{0, 0});
        for (int64_t t = 0; t < p.images * b.each; ++t)
            for (int64_t c = 0; c < n; ++c) {
                Sums& to = of[t / b.each * n + c];
                to.plain += parts[t * n + c].plain;
                to.scaled += parts[t * n + c].scaled;
            }
        parameters(of);
        if (!dx) return;
        weigh(of, total);
        const Scratch factors(checked_mul(all, 4), sizeof(A));
        A *a = factors.as<A>(), *by = a + all, *add = by + all, *middle = add + all;
        for (int64_t i = 0; i < all; ++i) {
            const int64_t s = p.set_of(i / n, i % n);
            const double r = (double)rstd[s];
            a[i] = (A)(r * weight_of(i % n));
            by[i] = fixed ? A(0) : (A)(-r * r * r * total[s].scaled / p.size());
            add[i] = fixed ? A(0) : (A)(-r * total[s].plain / p.size());
            middle[i] = mean[s];
        }
        for_each_row(p, [&](int64_t row, int64_t image) __attribute__((always_inline)) {
            Wide<T> near, far;
            for (int64_t i = 0; i < n; i += BATCH) {
                const int64_t at = row + i, first = (p.groups ? image * n : 0) + i, count = std::min(BATCH, n - i);
                const A *u = a + first, *v = by + first, *d = add + first, *m = middle + first;
                const A* gs = near.of(g + at, count);
                A* to = near.before(dx + at);
                if (fixed) {
#pragma GCC ivdep
                    for (int64_t c = 0; c < count; ++c) to[c] = u[c] * gs[c];
                } else {
                    const A* xs = far.of(x + at, count);
#pragma GCC ivdep
                    for (int64_t c = 0; c < count; ++c) to[c] = u[c] * gs[c] + ((xs[c] - m[c]) * v[c] + d[c]);
                }
                near.give(dx + at, count);
            }
        });
    }

    // The sums of each set, each plane's times its weight.
    void weigh(const Sums* of, Sums* total) const {
        std::fill(total, total + p.sets(), Sums{0, 0});
        for (int64_t i = 0; i < p.count(); ++i) {
            Sums& t = total[p.set_of(i)];
            t.plain += of[i].plain * weight_of(p.channel_of(i));
            t.scaled += of[i].scaled * weight_of(p.channel_of(i));
        }
    }

    void parameters(const Sums* of) const {
        for (int64_t c = 0; c < p.channels; ++c) {
            double plain = 0, scaled = 0;
            for (int64_t n = 0; n < p.images; ++n) {
                const int64_t i = n * p.channels + c;
                plain += of[i].plain;
                scaled += of[i].scaled * (double)rstd[p.set_of(i)];
            }
            if (dweight) dweight[c] = (A)scaled;
            if (dbias) dbias[c] = (A)plain;
        }
    }

    // dx = a * g + b * (x - mean) + c
    void input(const Sums* total) const {
        parallel_for(p.count(), p.grain(1), [&](int64_t begin, int64_t end) {
            at_level(MT_BODY {
                Wide<T> near, far;
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t s = p.set_of(i);
                    const double r = (double)rstd[s];
                    const A a = (A)(r * weight_of(p.channel_of(i))), middle = mean[s];
                    const A b = fixed ? A(0) : (A)(-r * r * r * total[s].scaled / p.size());
                    const A c = fixed ? A(0) : (A)(-r * total[s].plain / p.size());
                    for (int64_t at = i * p.places, left = p.places; left > 0; at += BATCH, left -= BATCH) {
                        const int64_t count = std::min(BATCH, left);
                        const A* gs = near.of(g + at, count);
                        A* to = near.before(dx + at);
                        if (fixed) {
#pragma GCC ivdep
                            for (int64_t k = 0; k < count; ++k) to[k] = a * gs[k];
                        } else {
                            const A* xs = far.of(x + at, count);
#pragma GCC ivdep
                            for (int64_t k = 0; k < count; ++k) to[k] = a * gs[k] + ((xs[k] - middle) * b + c);
                        }
                        near.give(dx + at, count);
                    }
                }
            });
        });
    }
};

PyObject* channel_norm_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("channel_norm_backward", nargs, 30);
        const Planes p(args + 24);
        const bool fixed = as_bool(args[29]);
        const Dense g = parse_dense(args, p.numel()), x = parse_optional(args + 3, p.numel(), g.code);
        const int code = g.code == F16 || g.code == BF16 ? (int)F32 : g.code;
        const Dense mean = parse_optional(args + 6, p.sets(), code), rstd = parse_optional(args + 9, p.sets(), code);
        const Dense weight = parse_optional(args + 12, p.channels, code);
        const Dense dx = parse_optional(args + 15, p.numel(), g.code);
        const Dense dweight = parse_optional(args + 18, p.channels, code);
        const Dense dbias = parse_optional(args + 21, p.channels, code);
        if (!x.data || !mean.data || !rstd.data) fail(PyExc_TypeError, "channel_norm_backward: an operand is missing");
        if (p.numel() == 0) fail(PyExc_ValueError, "channel_norm_backward: of no elements");
        dispatch_float(g.code, "channel_norm_backward", [&](auto t) {
            using T = decltype(t);
            using A = acc_t<T>;
            GilRelease unlocked(p.numel());
            const Backward<T> job{p,
                                  g.as<const T>(),
                                  x.as<const T>(),
                                  mean.as<const A>(),
                                  rstd.as<const A>(),
                                  weight.as<const A>(),
                                  dx.as<T>(),
                                  dweight.as<A>(),
                                  dbias.as<A>(),
                                  fixed};
            if (p.last) job.run_last();
            else job.run();
        });
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef channel_norm_methods[];  // no other file needs to know
PyMethodDef channel_norm_methods[] = {
    MT_METHOD("channel_norm", channel_norm, "Batch and group norm."),
    MT_METHOD("running_update", running_update, "Running statistics of batch norm."),
    MT_METHOD("channel_norm_backward", channel_norm_backward, "Batch and group norm: the gradients."),
    {nullptr, nullptr, 0, nullptr}};
