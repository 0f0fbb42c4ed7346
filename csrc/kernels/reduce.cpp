// Reductions over any set of dimensions. Invariant: how elements are grouped into partial results depends on shape and
// strides only, never on the number of threads, so a result is the same on every run.
//
// Two ways through memory: along the reduced dimension when it is the inner one (`row`: one result from a run), across
// it otherwise (`cols`: a run of results grows row by row). Blocks of other dtypes or layouts are gathered and cast
// first. float32 is summed in groups of four and the groups in double.
#include "fold_steps.h"
#include "halves.h"
#include "pointwise.h"
#include "pointwise_loop.h"
#include "vectors.h"

#include <algorithm>

namespace mt {
namespace {

// clang-format off: a table
enum ReduceOp : int {
    OP_SUM = 300, OP_PROD, OP_AMAX, OP_AMIN, OP_ANY, OP_ALL, OP_ARGMAX, OP_ARGMIN, OP_MEAN, OP_NORM1,
    OP_NORM2, OP_NANSUM, REDUCE_END
};
// clang-format on
constexpr int NUM_REDUCE = REDUCE_END - OP_SUM;

constexpr int64_t WIDTH = 512;       // results that grow together in `cols`
constexpr int64_t PART = 65536;      // elements of one partial result when a single result is split
constexpr int64_t SPLIT = 2 * PART;  // from here on it is

// Type-erased kernels of one operator and native type. acc: array of acc_size-byte accumulators.
struct Reducer {
    int acc_size = 0;
    int result = 0;
    bool numbered = false;  // needs to know which element is which: rows cannot be taken several at a time
    void (*init)(char* acc, int64_t n) = nullptr;
    // n elements into one accumulator; `base` is the number of the first one in the reduced dimensions.
    void (*row)(const char* x, int64_t n, char* acc, int64_t base) = nullptr;
    // m runs of n elements, `step` elements apart, each into its accumulator; null: there is no such loop.
    void (*rows)(const char* x, int64_t step, int64_t m, int64_t n, char* acc) = nullptr;
    // rows of w elements, `step` elements apart, into w accumulators.
    void (*cols)(const char* x, int64_t step, int64_t rows, int64_t w, char* acc, int64_t base) = nullptr;
    void (*merge)(char* into, const char* from, int64_t n) = nullptr;  // `from` comes later
    void (*finish)(const char* acc, char* out, int64_t n, int64_t count) = nullptr;
    bool quick = false;  // `rows` is worth calling for short runs
};
Reducer reducers[NUM_REDUCE][NUM_NATIVE];

// ---------------------------------------------------------------- folding

// Elements that are read as they lie where results have another type: two-byte floats, and integers that are summed in
// 64 bits.
template <class T, class S> constexpr bool is_narrow =
    !std::is_same<T, S>::value && (is_small_float<S> || sizeof(S) < sizeof(T));

// An element in the type that it is folded in; RUN integers of two bytes fit into four.
template <class T, class S> MT_INLINE auto loaded(S x) {
    if constexpr (is_small_float<S>) return widen(x);
    else if constexpr (is_narrow<T, S> && sizeof(S) < 4) return (int32_t)widen(x);
    else if constexpr (is_narrow<T, S>) return (int64_t)x;
    else return x;
}

template <class Step>
constexpr bool is_extreme = std::is_same<Step, MaxStep>::value || std::is_same<Step, MinStep>::value;

// n elements, a multiple of L, through partial results that the compiler turns into vector registers (GCC's own vector
// types would be split up for the oldest processor before the function is cloned).
template <class Step, class R, int64_t L, class S> MT_INLINE auto fold_blocks(const S* x, int64_t n) {
    using T = decltype(loaded<R>(S()));
    T part[L];
    for (int64_t j = 0; j < L; ++j) part[j] = Step::template start<T>();
    for (int64_t i = 0; i < n; i += L)
        for (int64_t j = 0; j < L; ++j) part[j] = Step::run(part[j], Step::of(loaded<R>(x[i + j])));
    for (int64_t w = L / 2; w > 0; w /= 2)
        for (int64_t j = 0; j < w; ++j) part[j] = Step::run(part[j], part[j + w]);
    return part[0];
}
template <class Step, class R, class S> MT_INLINE auto fold_run(const S* x, int64_t n) {
    using T = decltype(loaded<R>(S()));
    // At least 32: fewer are unrolled one by one, and stay numbers. Comparisons wait longer for each other.
    constexpr int64_t L = IsComplex<T>::value ? 4 : 32, MANY = is_extreme<Step> && sizeof(T) < 8 ? 256 / sizeof(T) : L;
    T total = Step::template start<T>();
    int64_t i = 0;
    if (MANY > L && n >= 2 * MANY) {
        i = n / MANY * MANY;
        total = fold_blocks<Step, R, MANY>(x, i);
    }
    if (n - i >= L) {
        const int64_t whole = (n - i) / L * L;
        total = Step::run(total, fold_blocks<Step, R, L>(x + i, whole));
        i += whole;
    }
    if constexpr (is_extreme<Step>)
        // An element may be looked at twice.
        if (i < n && n >= L) return Step::run(total, fold_blocks<Step, R, L>(x + n - L, L));
    for (; i < n; ++i) total = Step::run(total, Step::of(loaded<R>(x[i])));
    return total;
}

constexpr int64_t RUN = 1024;  // elements folded in their own precision before they join the wide total

// What the loops of halves.h serve.
template <class Step, class S> constexpr bool sums_halves = is_small_float<S> && Step::SUMS;

// At most RUN two-byte floats.
template <class Step, class S> MT_INLINE float fold_small(const S* x, int64_t n) {
#if MT_HAS_LEVELS
    if constexpr (sums_halves<Step, S>) {
        if (cpu_level >= AVX512) return sum_halves_avx512<Step>(x, n);
        if (cpu_level >= AVX2) return sum_halves_avx2<Step>(x, n);
    }
#endif
    return fold_run<Step, float>(x, n);
}

// S: how elements lie in memory, where that is not T.
template <class T, class S, class E> using Stored = typename std::conditional<is_narrow<T, S>, S, E>::type;

template <class Step, class T, class S> MT_INLINE void fold_row(const char* data, int64_t n, char* acc, int64_t) {
    using E = typename Step::template Element<T>;
    using W = typename Step::template Wide<T>;
    const Stored<T, S, E>* x = reinterpret_cast<const Stored<T, S, E>*>(data);
    W total = *reinterpret_cast<W*>(acc);
    if constexpr (is_small_float<S>) {
        for (int64_t i = 0; i < n; i += RUN)
            total = Step::run(total, (W)fold_small<Step>(x + i, n - i < RUN ? n - i : RUN));
    } else if constexpr (std::is_same<E, W>::value || IsComplex<E>::value) {
        for (int64_t i = 0, run = is_extreme<Step> ? n : RUN; i < n; i += run)  // extremes are not rounded
            total = Step::run(total, widened<W>(fold_run<Step, T>(x + i, n - i < run ? n - i : run)));
    } else {
        // Four elements are joined in their own precision, everything else in the wide one.
        constexpr int64_t L = 16;
        int64_t i = 0;
        if (n >= 4 * L) {
            W part[L];
            for (int64_t j = 0; j < L; ++j) part[j] = Step::template start<W>();
            for (; i + 4 * L <= n; i += 4 * L)
                for (int64_t j = 0; j < L; ++j) {
                    const Stored<T, S, E>* y = x + i + j;
                    const E four = Step::run(Step::run(Step::of(loaded<T>(y[0])), Step::of(loaded<T>(y[L]))),
                                             Step::run(Step::of(loaded<T>(y[2 * L])), Step::of(loaded<T>(y[3 * L]))));
                    part[j] = Step::run(part[j], (W)four);
                }
            for (int64_t w = L / 2; w > 0; w /= 2)
                for (int64_t j = 0; j < w; ++j) part[j] = Step::run(part[j], part[j + w]);
            total = Step::run(total, part[0]);
        }
        if (i < n) total = Step::run(total, (W)fold_run<Step, T>(x + i, n - i));
    }
    *reinterpret_cast<W*>(acc) = total;
}
// At most MOST elements in their own precision, by up to 64 partial results.
constexpr int64_t MOST = 512;
template <class Step, class T, class S> MT_INLINE auto fold_stretch(const S* x, int64_t n) {
    // Comparisons of vectors are split up before the level is known.
    if constexpr (std::is_floating_point<S>::value && !is_extreme<Step> && !std::is_same<Step, NumberStep>::value)
        return fold_dense(
            x, n, Step::template start<S>(),
            [](auto p, auto q) __attribute__((always_inline)) { return Step::run(p, Step::of(q)); },
            [](auto p, auto q) __attribute__((always_inline)) { return Step::run(p, q); });
    else if constexpr (sums_halves<Step, S>) return fold_small<Step>(x, n);
    else return fold_run<Step, T>(x, n);
}
// Short runs cost little more than their elements: everything about one is inlined.
template <class Step, class T, class S>
void fold_rows(const char* data, int64_t step, int64_t m, int64_t n, char* acc) {
    using E = typename Step::template Element<T>;
    using W = typename Step::template Wide<T>;
    const Stored<T, S, E>* x = reinterpret_cast<const Stored<T, S, E>*>(data);
    W* a = reinterpret_cast<W*>(acc);
    at_level(MT_BODY {
        for (int64_t r = 0; r < m; ++r, x += step) {
            // One place where stretches are folded: the code of each step and dtype is long.
            W total = a[r];
            for (int64_t i = 0, k = n < MOST ? n : MOST;;) {
                total = Step::run(total, (W)fold_stretch<Step, T>(x + i, k));
                i += k;
                if (MT_LIKELY(i >= n)) break;
                k = n - i < MOST ? n - i : MOST;
            }
            a[r] = total;
        }
    });
}
template <class Step, class T, class S>
MT_INLINE void fold_cols(const char* data, int64_t step, int64_t rows, int64_t w, char* acc, int64_t) {
    using E = typename Step::template Element<T>;
    using W = typename Step::template Wide<T>;
    using P = const Stored<T, S, E>*;
    P x = reinterpret_cast<P>(data);
    W* a = reinterpret_cast<W*>(acc);
    int64_t r = 0;
#if MT_HAS_LEVELS
    if constexpr (sums_halves<Step, S>)
        for (; cpu_level >= AVX2 && r + 16 <= rows; r += 16, x += 16 * step) {
            if (cpu_level >= AVX512) add_halves_avx512<Step>(x, step, w, a);
            else add_halves_avx2<Step>(x, step, w, a);
        }
#endif
    if constexpr (!std::is_same<E, W>::value && !IsComplex<E>::value)
        for (; r + 8 <= rows; r += 8, x += 8 * step) {
            P x1 = x + step, x2 = x1 + step, x3 = x2 + step, x4 = x3 + step, x5 = x4 + step, x6 = x5 + step,
              x7 = x6 + step;
#pragma GCC ivdep
            for (int64_t j = 0; j < w; ++j) {
                const E left = Step::run(Step::run(Step::of(loaded<T>(x[j])), Step::of(loaded<T>(x1[j]))),
                                         Step::run(Step::of(loaded<T>(x2[j])), Step::of(loaded<T>(x3[j]))));
                const E right = Step::run(Step::run(Step::of(loaded<T>(x4[j])), Step::of(loaded<T>(x5[j]))),
                                          Step::run(Step::of(loaded<T>(x6[j])), Step::of(loaded<T>(x7[j]))));
                a[j] = Step::run(a[j], (W)Step::run(left, right));
            }
        }
    for (; r + 4 <= rows; r += 4, x += 4 * step) {
        P x1 = x + step, x2 = x1 + step, x3 = x2 + step;
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j)
            a[j] = Step::run(a[j],
                             widened<W>(Step::run(Step::run(Step::of(loaded<T>(x[j])), Step::of(loaded<T>(x1[j]))),
                                                  Step::run(Step::of(loaded<T>(x2[j])), Step::of(loaded<T>(x3[j]))))));
    }
    for (; r < rows; ++r, x += step) {
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) a[j] = Step::run(a[j], widened<W>(Step::of(loaded<T>(x[j]))));
    }
}
template <class Step, class T> void fold_init(char* acc, int64_t n) {
    using W = typename Step::template Wide<T>;
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<W*>(acc)[i] = Step::template start<W>();
}
template <class Step, class T> void fold_merge(char* into, const char* from, int64_t n) {
    using W = typename Step::template Wide<T>;
    W* a = reinterpret_cast<W*>(into);
    const W* b = reinterpret_cast<const W*>(from);
    for (int64_t i = 0; i < n; ++i) a[i] = Step::run(a[i], b[i]);
}
template <class Step, class T, bool Mean> void fold_finish(const char* acc, char* out, int64_t n, int64_t count) {
    using W = typename Step::template Wide<T>;
    const W* a = reinterpret_cast<const W*>(acc);
    T* o = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_same<Step, SquareStep>::value) o[i] = (T)std::sqrt(a[i]);
        else if constexpr (!Mean) o[i] = widened<T>(a[i]);
        else if constexpr (IsComplex<T>::value) o[i] = widened<T>(W{a[i].re / count, a[i].im / count});
        else o[i] = widened<T>(a[i] / (W)count);
    }
    (void)count;
}

// ---------------------------------------------------------------- any, all

template <class T> MT_INLINE bool truth(T x) {
    if constexpr (IsComplex<T>::value) return (x.re != 0) | (x.im != 0);
    else return x != T(0);
}
// all(x) is not any(not x): accumulators hold "seen one", All inverts what it looks for and what it answers.
template <bool All, class T> MT_INLINE void any_row(const char* data, int64_t n, char* acc, int64_t) {
    const T* x = reinterpret_cast<const T*>(data);
    for (int64_t i = 0; i < n && !*acc; i += RUN) {
        const int64_t end = n - i < RUN ? n : i + RUN;
        int seen = 0;
        for (int64_t j = i; j < end; ++j) seen |= truth(x[j]) != All;
        *acc = (char)seen;
    }
}
template <bool All, class T>
MT_INLINE void any_cols(const char* data, int64_t step, int64_t rows, int64_t w, char* acc, int64_t) {
    const T* x = reinterpret_cast<const T*>(data);
    uint8_t* a = reinterpret_cast<uint8_t*>(acc);
    for (int64_t r = 0; r < rows; ++r, x += step) {
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) a[j] = (uint8_t)(a[j] | (uint8_t)(truth(x[j]) != All));
    }
}
void any_init(char* acc, int64_t n) { std::memset(acc, 0, (size_t)n); }
void any_merge(char* into, const char* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) into[i] = (char)(into[i] | from[i]);
}
template <bool All> void any_finish(const char* acc, char* out, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; ++i) out[i] = (char)((acc[i] != 0) != All);
}

// ---------------------------------------------------------------- argmax, argmin

// index -1: nothing seen yet
template <class T> struct Best {
    T value;
    int64_t index;
};

template <class Step, class T> MT_INLINE bool beats(T x, T than) {  // strictly: the first of equals wins
    if (than != than) return false;
    if (x != x) return true;
    return std::is_same<Step, MaxStep>::value ? x > than : x < than;
}
// Where the value, which is there, comes first; NaN equals NaN.
template <class T> MT_INLINE int64_t first_of(const T* x, int64_t n, T value) {
    constexpr int64_t STEP = 64;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        int seen = 0;
        for (int64_t j = 0; j < STEP; ++j) seen |= (x[i + j] == value) | ((x[i + j] != x[i + j]) & (value != value));
        if (seen) break;
    }
    while (i < n - 1 && !(x[i] == value || (x[i] != x[i] && value != value))) ++i;
    return i;
}
template <class Step, class T> MT_INLINE void arg_row(const char* data, int64_t n, char* acc, int64_t base) {
    const T* x = reinterpret_cast<const T*>(data);
    Best<T>& best = *reinterpret_cast<Best<T>*>(acc);
    for (int64_t i = 0; i < n; i += RUN) {
        const int64_t m = n - i < RUN ? n - i : RUN;
        const T top = fold_run<Step, T>(x + i, m);
        if (best.index >= 0 && !beats<Step>(top, best.value)) continue;
        best = {top, base + i + first_of(x + i, m, top)};
    }
}
template <class Step, class T>
MT_INLINE void arg_cols(const char* data, int64_t step, int64_t rows, int64_t w, char* acc, int64_t base) {
    const T* x = reinterpret_cast<const T*>(data);
    Best<T>* best = reinterpret_cast<Best<T>*>(acc);
    // Values and numbers apart while the rows go by: arrays of one type vectorise.
    T value[WIDTH];
    int64_t index[WIDTH];
    for (int64_t j = 0; j < w; ++j) {
        const bool fresh = best[j].index < 0;
        value[j] = fresh ? x[j] : best[j].value;
        index[j] = fresh ? base : best[j].index;
    }
    for (int64_t r = 0; r < rows; ++r, x += step) {
#pragma GCC ivdep
        for (int64_t j = 0; j < w; ++j) {
            const T y = x[j], v = value[j];
            const bool better = (std::is_same<Step, MaxStep>::value ? y > v : y < v) | ((y != y) & (v == v));
            value[j] = better ? y : v;
            index[j] = better ? base + r : index[j];
        }
    }
    for (int64_t j = 0; j < w; ++j) best[j] = {value[j], index[j]};
}
template <class T> void arg_init(char* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<Best<T>*>(acc)[i] = {T(), -1};
}
template <class Step, class T> void arg_merge(char* into, const char* from, int64_t n) {
    Best<T>* a = reinterpret_cast<Best<T>*>(into);
    const Best<T>* b = reinterpret_cast<const Best<T>*>(from);
    for (int64_t i = 0; i < n; ++i)
        if (b[i].index >= 0 && (a[i].index < 0 || beats<Step>(b[i].value, a[i].value))) a[i] = b[i];
}
template <class T> void arg_finish(const char* acc, char* out, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<int64_t*>(out)[i] = reinterpret_cast<const Best<T>*>(acc)[i].index;
}

// ---------------------------------------------------------------- the table

template <class Step, class T, bool Mean, class S = T> void enter_fold(Reducer& r) {
    r = {(int)sizeof(typename Step::template Wide<T>),
         CodeOf<T>::value,
         false,
         fold_init<Step, T>,
         leveled<fold_row<Step, T, S>>(),
         nullptr,
         leveled<fold_cols<Step, T, S>>(),
         fold_merge<Step, T>,
         fold_finish<Step, T, Mean>};
    if constexpr (!IsComplex<T>::value) r.rows = fold_rows<Step, T, S>;
    r.quick = std::is_floating_point<S>::value && !is_extreme<Step> && !std::is_same<Step, NumberStep>::value;
}
template <class Step, class T, bool Mean> void enter_fold(int op) {
    enter_fold<Step, T, Mean>(reducers[op - OP_SUM][NativeOf<T>::value]);
}
// Two-byte floats that are read as they lie.
Reducer half_reducers[NUM_REDUCE][2];
template <class S> void enter_half(int which) {
    auto at = [which](int op) -> Reducer& { return half_reducers[op - OP_SUM][which]; };
    enter_fold<SumStep, float, false, S>(at(OP_SUM));
    enter_fold<SumStep, float, true, S>(at(OP_MEAN));
    enter_fold<NumberStep, float, false, S>(at(OP_NANSUM));
    enter_fold<AbsStep, float, false, S>(at(OP_NORM1));
    enter_fold<SquareStep, float, false, S>(at(OP_NORM2));
    enter_fold<MaxStep, float, false, S>(at(OP_AMAX));
    enter_fold<MinStep, float, false, S>(at(OP_AMIN));
}
// Integers that are summed in 64 bits as they lie, by code.
Reducer integer_sums[NUM_CODES];
template <class S> void enter_integer_sum() { enter_fold<SumStep, int64_t, false, S>(integer_sums[CodeOf<S>::value]); }

template <bool All, class T> void enter_any(int op) {
    reducers[op - OP_SUM][NativeOf<T>::value] = {
        1,         BOOL,           false, any_init, leveled<any_row<All, T>>(), nullptr, leveled<any_cols<All, T>>(),
        any_merge, any_finish<All>};
}
template <class Step, class T> void enter_arg(int op) {
    reducers[op - OP_SUM][NativeOf<T>::value] = {(int)sizeof(Best<T>),
                                                 I64,
                                                 true,
                                                 arg_init<T>,
                                                 leveled<arg_row<Step, T>>(),
                                                 nullptr,
                                                 leveled<arg_cols<Step, T>>(),
                                                 arg_merge<Step, T>,
                                                 arg_finish<T>};
}
template <class T> void enter_extremes() {
    enter_fold<MaxStep, T, false>(OP_AMAX);
    enter_fold<MinStep, T, false>(OP_AMIN);
    enter_arg<MaxStep, T>(OP_ARGMAX);
    enter_arg<MinStep, T>(OP_ARGMIN);
}
template <class T> void enter_type() {
    enter_fold<SumStep, T, false>(OP_SUM);
    enter_fold<ProdStep, T, false>(OP_PROD);
    enter_any<false, T>(OP_ANY);
    enter_any<true, T>(OP_ALL);
    if constexpr (std::is_floating_point<T>::value || IsComplex<T>::value) enter_fold<SumStep, T, true>(OP_MEAN);
    if constexpr (std::is_floating_point<T>::value) {
        enter_fold<NumberStep, T, false>(OP_NANSUM);
        enter_fold<AbsStep, T, false>(OP_NORM1);
        enter_fold<SquareStep, T, false>(OP_NORM2);
    }
    if constexpr (!IsComplex<T>::value) enter_extremes<T>();
}
struct Registered {
    Registered() {
        // clang-format off: a table
        enter_type<uint8_t>(); enter_type<int32_t>(); enter_type<int64_t>(); enter_type<uint64_t>();
        enter_type<float>(); enter_type<double>(); enter_type<Complex<float>>(); enter_type<Complex<double>>();
        // clang-format on
        enter_half<Half>(0);
        enter_half<BFloat16>(1);
        enter_extremes<int8_t>();
        enter_extremes<int16_t>();
        // clang-format off: a table
        enter_integer_sum<uint8_t>(); enter_integer_sum<int8_t>(); enter_integer_sum<int16_t>();
        enter_integer_sum<int32_t>(); enter_integer_sum<Bool>();
        // clang-format on
    }
} registered;

// ---------------------------------------------------------------- the walk

struct Job {
    const Reducer* reducer;
    int acode, target, via, ocode;
    bool convert;
    Loop<2> kept;     // operand 0: output, operand 1: input
    Loop<1> reduced;  // the input
    int64_t in_size() const { return ITEMSIZE[acode]; }
    bool small() const { return in_size() <= 4; }
    // Elements that a Loader gathers at a time: as many as its memory holds, but those that it casts BLOCK.
    int64_t room() const { return convert ? BLOCK : std::min<int64_t>(4, 16 / in_size()) * BLOCK; }
};

// Gathers and casts a tile of at most Job::room elements; returns it where it lies when nothing has to be done.
struct Loader {
    const Job& job;
    alignas(64) char raw[BLOCK * 16];
    alignas(64) char ready[BLOCK * 16];
    explicit Loader(const Job& j) : job(j) {}

    const char* load(const char* src, int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
        const int64_t size = job.in_size(), n = n0 * n1;
        const bool dense = s0 == size && (n1 == 1 || s1 == n0 * size);
        if (!job.convert) {
            if (dense) return src;
            gather_tile(ready, src, s0, s1, n0, n1, (int)size);
            return ready;
        }
        if (!dense) {
            gather_tile(raw, src, s0, s1, n0, n1, (int)size);
            src = raw;
        }
        if (job.via < 0) {
            cast_block(ready, job.target, src, job.acode, n);
        } else {
            alignas(64) char between[BLOCK * 16];
            cast_block(between, job.via, src, job.acode, n);
            cast_block(ready, job.target, between, job.via, n);
        }
        return ready;
    }
};

void store(const Job& job, const char* acc, char* out, int64_t step, int64_t n) {
    alignas(64) char block[WIDTH * 16];
    job.reducer->finish(acc, block, n, job.reduced.numel);
    cast_strided(out, step, job.ocode, block, ITEMSIZE[job.reducer->result], job.reducer->result, n);
}

// Elements [begin, end) of the reduced dimensions of the result whose input starts at `in`, into one accumulator.
void reduce_along(const Job& job, Loader& loader, const char* in, int64_t begin, int64_t end, char* acc) {
    const Loop<1>& loop = job.reduced;
    const int64_t dim0 = loop.dim[0], s0 = loop.step[0][0];
    const bool direct = !job.convert && s0 == job.in_size();
    Cursor<1> at(loop, 1, begin / dim0);
    int64_t skip = begin % dim0;
    while (begin < end) {
        const int64_t n = dim0 - skip < end - begin ? dim0 - skip : end - begin;
        const char* src = in + (at.ptr[0] - loop.ptr[0]) + skip * s0;
        if (direct) {
            job.reducer->row(src, n, acc, begin);
        } else {
            for (int64_t i = 0; i < n; i += BLOCK) {
                const int64_t m = n - i < BLOCK ? n - i : BLOCK;
                job.reducer->row(loader.load(src + i * s0, s0, 0, m, 1), m, acc, begin + i);
            }
        }
        begin += n;
        skip = 0;
        at.next();
    }
}

// Whether each result is made of runs of elements as they lie, for which the reducer has a loop.
bool has_plain_rows(const Job& job) {
    return job.reducer->rows && !job.convert && job.reduced.step[0][0] == job.in_size() &&
           job.kept.step[1][0] % job.in_size() == 0;
}
// The runs of m such results, the first one's input at `in`.
void reduce_plain(const Job& job, const char* in, int64_t m, char* acc) {
    const Loop<1>& loop = job.reduced;
    const int64_t runs = loop.numel / loop.dim[0];
    Cursor<1> at(loop, 1, 0);
    for (int64_t k = 0; k < runs; ++k, at.next())
        job.reducer->rows(in + (at.ptr[0] - loop.ptr[0]), job.kept.step[1][0] / job.in_size(), m, loop.dim[0], acc);
}

void reduce_rows(const Job& job) {
    const int64_t results = job.kept.numel, each = job.reduced.numel;
    const int64_t acc_size = job.reducer->acc_size;
    if (each >= SPLIT && results < 8) {
        // Few long results: their parts are computed in parallel and joined in order.
        const int64_t parts = ceil_div(each, PART);
        Scratch scratch(parts, acc_size);
        Cursor<2> at(job.kept, 0, 0);
        for (int64_t r = 0; r < results; ++r, at.next()) {
            job.reducer->init(scratch.as(), parts);
            parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
                Loader loader(job);
                for (int64_t p = begin; p < end; ++p)
                    reduce_along(job, loader, at.ptr[1], p * PART, (p + 1) * PART < each ? (p + 1) * PART : each,
                                 scratch.as() + p * acc_size);
            });
            for (int64_t p = 1; p < parts; ++p) job.reducer->merge(scratch.as(), scratch.as() + p * acc_size, 1);
            store(job, scratch.as(), at.ptr[0], 0, 1);
        }
        return;
    }
    const bool plain = has_plain_rows(job);
    const int64_t total = results * each;
    const int64_t grain = total < SPLIT ? results : ceil_div(GRAIN, each);
    parallel_for(results, grain, [&](int64_t begin, int64_t end) {
        Loader loader(job);
        alignas(16) char acc[WIDTH * 24];
        const int64_t dim0 = job.kept.dim[0], s_in = job.kept.step[1][0], s_out = job.kept.step[0][0];
        Cursor<2> at(job.kept, 1, begin / dim0);
        int64_t skip = begin % dim0;
        while (begin < end) {
            int64_t n = dim0 - skip < end - begin ? dim0 - skip : end - begin;
            begin += n;
            // Results of one row are finished together.
            for (; n > 0; n -= WIDTH, skip += WIDTH) {
                const int64_t m = n < WIDTH ? n : WIDTH;
                job.reducer->init(acc, m);
                if (plain) reduce_plain(job, at.ptr[1] + skip * s_in, m, acc);
                for (int64_t i = 0; i < m && !plain; ++i)
                    reduce_along(job, loader, at.ptr[1] + (skip + i) * s_in, 0, each, acc + i * acc_size);
                store(job, acc, at.ptr[0] + skip * s_out, s_out, m);
            }
            skip = 0;
            at.next();
        }
    });
}

// Narrow rows that lie one after the other are taken several at a time, as one row of `together` times the width.
int64_t reduce_narrow(const Reducer& reducer, const char* src, int64_t w, int64_t rows, char* acc) {
    constexpr int64_t WIDE = 256;
    const int64_t together = WIDE / w, steps = rows / together;
    alignas(16) char wide[WIDE * 24];
    reducer.init(wide, together * w);
    reducer.cols(src, together * w, steps, together * w, wide, 0);
    for (int64_t k = 0; k < together; ++k) reducer.merge(acc, wide + k * w * reducer.acc_size, w);
    return steps * together;
}

// Rows [begin, end) of the reduced dimensions, w neighbouring results, into w accumulators.
void reduce_across(const Job& job, Loader& loader, const char* in, int64_t w, int64_t begin, int64_t end, char* acc) {
    const Loop<1>& loop = job.reduced;
    const int64_t dim0 = loop.dim[0], r0 = loop.step[0][0], k0 = job.kept.step[1][0], size = job.in_size();
    const bool direct = !job.convert && k0 == size && r0 % size == 0;
    const int64_t group = direct ? dim0 : std::max<int64_t>(1, job.room() / w);
    Cursor<1> at(loop, 1, begin / dim0);
    int64_t skip = begin % dim0;
    while (begin < end) {
        const int64_t n = dim0 - skip < end - begin ? dim0 - skip : end - begin;
        const char* src = in + (at.ptr[0] - loop.ptr[0]) + skip * r0;
        for (int64_t i = 0; i < n; i += group) {
            const int64_t rows = n - i < group ? n - i : group;
            if (direct) {
                int64_t done = 0;
                if (w <= 64 && rows >= 1024 && r0 == w * size && !job.reducer->numbered)
                    done = reduce_narrow(*job.reducer, src + i * r0, w, rows, acc);
                job.reducer->cols(src + (i + done) * r0, r0 / size, rows - done, w, acc, begin + i + done);
            } else {
                job.reducer->cols(loader.load(src + i * r0, k0, r0, w, rows), w, rows, w, acc, begin + i);
            }
        }
        begin += n;
        skip = 0;
        at.next();
    }
}

void reduce_cols(const Job& job) {
    const int64_t dim0 = job.kept.dim[0], s_in = job.kept.step[1][0], s_out = job.kept.step[0][0];
    int64_t width = dim0 < WIDTH ? dim0 : WIDTH;
    // Where results do not lie side by side, as many as a block holds all elements of: they are transposed in it.
    if (job.small() && std::abs(s_in) > job.in_size() && job.reduced.step[0][0] == job.in_size()) {
        const int64_t fit = job.room() / job.reduced.dim[0] / 16 * 16;
        width = std::min(width, std::max<int64_t>(16, fit));
    }
    const int64_t strips = ceil_div(dim0, width);
    const int64_t outer = job.kept.numel / dim0, units = outer * strips, rows = job.reduced.numel;
    const int64_t acc_size = job.reducer->acc_size;
    const int64_t total = job.kept.numel * rows;
    // Few strips of many rows: the rows are split, too.
    int64_t part_rows = rows;
    if (units < 8 && total >= SPLIT) part_rows = PART / width > 1 ? PART / width : 1;
    if (part_rows < ceil_div(rows, 64)) part_rows = ceil_div(rows, 64);
    const int64_t parts = ceil_div(rows, part_rows);
    Scratch scratch(parts > 1 ? checked_numel({units, parts, width}) : 0, acc_size);
    auto strip = [&](int64_t unit, int64_t part, Loader& loader, char* local) {
        Cursor<2> at(job.kept, 1, unit / strips);
        const int64_t first = unit % strips * width, w = dim0 - first < width ? dim0 - first : width;
        char* acc = parts > 1 ? scratch.as() + (unit * parts + part) * width * acc_size : local;
        job.reducer->init(acc, w);
        const int64_t end = (part + 1) * part_rows < rows ? (part + 1) * part_rows : rows;
        reduce_across(job, loader, at.ptr[1] + first * s_in, w, part * part_rows, end, acc);
        if (parts == 1) store(job, acc, at.ptr[0] + first * s_out, s_out, w);
    };
    const int64_t grain = total < SPLIT ? units * parts : ceil_div(GRAIN, saturated_mul(width, part_rows));
    parallel_for(units * parts, grain, [&](int64_t begin, int64_t end) {
        Loader loader(job);
        alignas(16) char local[WIDTH * 24];
        for (int64_t i = begin; i < end; ++i) strip(i / parts, i % parts, loader, local);
    });
    if (parts == 1) return;
    for (int64_t unit = 0; unit < units; ++unit) {
        Cursor<2> at(job.kept, 1, unit / strips);
        const int64_t first = unit % strips * width, w = dim0 - first < width ? dim0 - first : width;
        char* acc = scratch.as() + unit * parts * width * acc_size;
        for (int64_t p = 1; p < parts; ++p) job.reducer->merge(acc, acc + p * width * acc_size, w);
        store(job, acc, at.ptr[0] + first * s_out, s_out, w);
    }
}

void run_reduction(const Job& job) {
    if (job.kept.numel == 0) return;
    if (job.reduced.numel == 0) {
        alignas(16) char acc[24];
        job.reducer->init(acc, 1);
        Cursor<2> at(job.kept, 0, 0);
        for (int64_t i = 0; i < job.kept.numel; ++i, at.next()) store(job, acc, at.ptr[0], 0, 1);
        return;
    }
    const int64_t kept_step = std::abs(job.kept.step[1][0]), reduced_step = std::abs(job.reduced.step[0][0]);
    const int64_t dim0 = job.reduced.dim[0], width = job.kept.dim[0];
    // Elements of a run that is worth a loop of its own; shorter ones are transposed, and lie side by side then, which is
    // cheap for small elements.
    const bool plain = has_plain_rows(job);
    const int64_t least = plain && (job.reducer->quick || !job.small()) ? 8 : job.small() ? 96 : 32;
    const bool across = width > 1 && (kept_step < reduced_step || (dim0 < least && width >= 32));
    if (across) reduce_cols(job);
    else reduce_rows(job);
}

// Splits dimensions into kept and reduced ones; the order of the reduced ones matters to argmax only.
void split_dims(Job& job, const Shape& shape, const Operand& a, const Operand& out, bool keep_order) {
    Shape kept, reduced;
    int64_t kept_in[MAXD], kept_out[MAXD], reduced_in[MAXD];
    kept.ndim = reduced.ndim = 0;
    for (int i = 0; i < shape.ndim; ++i) {
        const int64_t d = shape.dim[i];
        if (d == 1) continue;
        if (out.stride[i] != 0) {
            kept_in[kept.ndim] = a.stride[i];
            kept_out[kept.ndim] = out.stride[i];
            kept.dim[kept.ndim++] = d;
        } else {
            reduced_in[reduced.ndim] = a.stride[i];
            reduced.dim[reduced.ndim++] = d;
        }
    }
    kept.numel = checked_numel(kept.dim, kept.ndim);
    reduced.numel = kept.numel ? checked_numel(reduced.dim, reduced.ndim) : 0;
    // Ordered by the input, which is the larger one.
    Loop<2> by_input;
    loop_begin(by_input, kept);
    loop_operand(by_input, 0, a.data, kept, kept_in, a.itemsize);
    loop_operand(by_input, 1, out.data, kept, kept_out, out.itemsize);
    loop_finish(by_input);
    job.kept.ndim = by_input.ndim;
    job.kept.numel = by_input.numel;
    for (int d = 0; d < by_input.ndim; ++d) {
        job.kept.dim[d] = by_input.dim[d];
        job.kept.step[0][d] = by_input.step[1][d];
        job.kept.step[1][d] = by_input.step[0][d];
    }
    job.kept.ptr[0] = out.data;
    job.kept.ptr[1] = a.data;
    loop_begin(job.reduced, reduced);
    loop_operand(job.reduced, 0, a.data, reduced, reduced_in, a.itemsize);
    if (!keep_order) loop_finish(job.reduced);
    else loop_merge(job.reduced);
}

}  // namespace
}  // namespace mt

using namespace mt;

static PyObject* reduce(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        if (nargs != 12) expect_args("reduce", nargs, 11);
        const int64_t op = as_int(args[0]);
        if (op < OP_SUM || op >= REDUCE_END) fail(PyExc_ValueError, "%lld is no reduction", (long long)op);
        Shape shape;
        Operand a, out;
        parse_shape(args[9], shape);
        parse_operand(args + 1, shape, a);
        expect_time_for(shape.numel);
        const int ccode = as_code(args[10]);
        // Narrow integers have no loops of their own but for comparisons.
        const bool extreme = op == OP_AMAX || op == OP_AMIN || op == OP_ARGMAX || op == OP_ARGMIN;
        const Native native = !extreme && (ccode == I8 || ccode == I16) ? N_I32 : native_of(ccode);
        const Reducer& reducer = reducers[op - OP_SUM][native];
        static const char* const NAMES[] = {"sum_cpu",  "prod_cpu", "amax_values_cpu", "amin_values_cpu",
                                            "or_cpu",   "and_cpu",  "argmax_cpu",      "argmin_cpu",
                                            "mean_cpu", "norm_cpu", "norm_cpu",        "nansum_cpu"};
        if (!reducer.init) fail_dtype(NAMES[op - OP_SUM], ccode);
        if (args[5] == Py_None && nargs != 12) fail(PyExc_TypeError, "reduce() needs out_numel when out is None");
        Shape result_shape = shape;  // bounds of the output: reduced dimensions count as one element
        Ref result;
        {
            int64_t ostride[MAXD];
            parse_ints(args[7], shape.ndim, ostride);
            for (int i = 0; i < shape.ndim; ++i)
                if (ostride[i] == 0) result_shape.dim[i] = 1;
            result_shape.numel = checked_numel(result_shape.dim, shape.ndim);
            result.reset(parse_output(args + 5, result_shape, out, nargs == 12 ? as_int(args[11]) : -1));
        }
        if (shape.numel == 0 && result_shape.numel != 0 && extreme)
            fail(PyExc_IndexError, "%s: cannot reduce over zero elements, the operation has no identity",
                 NAMES[op - OP_SUM]);
        Job job;
        job.reducer = &reducer;
        job.acode = a.code;
        job.target = ccode == BOOL ? (int)BOOL : NATIVE_CODE[native];
        if ((a.code == F16 || a.code == BF16) && a.code == ccode) {
            const Reducer& direct = half_reducers[op - OP_SUM][a.code == BF16];
            if (direct.init) {
                job.reducer = &direct;
                job.target = a.code;
            }
        }
        if (op == OP_SUM && ccode == I64 && integer_sums[a.code].init) {
            job.reducer = &integer_sums[a.code];
            job.target = a.code;
        }
        job.via = job.target != a.code && ccode != job.target && a.code != ccode ? ccode : -1;
        job.convert = a.code != job.target || job.via >= 0;
        job.ocode = out.code;
        if (result_shape.numel == 1 && !job.convert && shape.numel > 0 && shape.numel < SPLIT &&
            is_contiguous(shape, a)) {
            // Everything into one result, in one run.
            GilRelease unlocked(shape.numel);
            alignas(16) char acc[24], value[16];
            job.reducer->init(acc, 1);
            job.reducer->row(a.data, shape.numel, acc, 0);
            job.reducer->finish(acc, value, 1, shape.numel);
            cast_block(out.data, out.code, value, job.reducer->result, 1);
            return result.release();
        }
        split_dims(job, shape, a, out, op == OP_ARGMAX || op == OP_ARGMIN);
        GilRelease unlocked(shape.numel);
        run_reduction(job);
        return result.release();
    });
}

PyMethodDef reduce_methods[] = {
    MT_METHOD("reduce", reduce,
              "reduce(op, a, aoff, astride, acode, out, ooff, ostride, ocode, shape, ccode[, out_numel]): ostride is 0 "
              "on reduced dimensions"),
    {nullptr, nullptr, 0, nullptr}};

const IntConstant reduce_constants[] = {
    {"SUM", OP_SUM},     {"PROD", OP_PROD},     {"AMAX", OP_AMAX},     {"AMIN", OP_AMIN}, {"ANY", OP_ANY},
    {"ALL", OP_ALL},     {"ARGMAX", OP_ARGMAX}, {"ARGMIN", OP_ARGMIN}, {"MEAN", OP_MEAN}, {"NORM1", OP_NORM1},
    {"NORM2", OP_NORM2}, {"NANSUM", OP_NANSUM}, {nullptr, 0}};
