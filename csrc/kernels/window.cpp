// Windows that slide over planes: columns of convolutions, pooling.
// Invariant: every operand is dense and is compared with the size of its storage before a pointer is made; a plane has
// three dimensions (lower ranks have leading ones), and each plane is written by one thread only.
//
// An operand is 3 arguments: storage, offset, code. Triples are tuples of three ints (depth, height, width).
//   im2col(x.., columns.., images, channels, in, out, kernel, stride, padding, dilation)
//       columns[image][channel][kernel place][out place]; zero where the window leaves the plane
//   col2im(columns.., x.., the same)            adds the columns into x, which is overwritten
//   pool_max(x.., out.., places.., planes, in, out, starts, ends, dilation)
//   pool_line(x.., out.., rows, in, out, kernel, stride, padding, dilation)    the largest of each window of a row, alone
//   pool_mean(x.., out.., planes, in, out, starts, ends, counts, divisor)        divisor 0: the product of the counts
//   pool_mean_backward(grad.., dx.., the same)
//       starts, ends, counts: one tuple with the values of all out depths, then heights, then widths
#include "cpu.h"
#include "lanes.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

// The out places [low, high) whose window place `at` (already minus the padding) lies inside the plane.
MT_INLINE void inside(int64_t at, int64_t stride, int64_t in, int64_t out, int64_t& low, int64_t& high) {
    low = at >= 0 ? 0 : std::min(out, (-at + stride - 1) / stride);
    high = at >= in ? 0 : std::min(out, (in - 1 - at) / stride + 1);
    high = std::max(low, high);
}

// One channel's plane to its columns, or its columns added to the plane.
template <class T, bool BACK> void plane_columns(T* plane, T* columns, const Window& v) {
    for (int64_t a = 0; a < v.kernel.d; ++a)
        for (int64_t b = 0; b < v.kernel.h; ++b)
            for (int64_t c = 0; c < v.kernel.w; ++c) {
                const int64_t z0 = a * v.dilation.d - v.padding.d, y0 = b * v.dilation.h - v.padding.h;
                const int64_t x0 = c * v.dilation.w - v.padding.w;
                int64_t low, high;
                inside(x0, v.stride.w, v.in.w, v.out.w, low, high);
                for (int64_t i = 0; i < v.out.d; ++i) {
                    const int64_t z = z0 + i * v.stride.d;
                    for (int64_t j = 0; j < v.out.h; ++j, columns += v.out.w) {
                        const int64_t y = y0 + j * v.stride.h;
                        if (z < 0 || z >= v.in.d || y < 0 || y >= v.in.h) {
                            if constexpr (!BACK) std::fill(columns, columns + v.out.w, T{});
                            continue;
                        }
                        T* row = plane + (z * v.in.h + y) * v.in.w + x0;
                        if constexpr (BACK) {
                            for (int64_t k = low; k < high; ++k) {
                                T& place = row[k * v.stride.w];
                                if constexpr (IsComplex<T>::value) {
                                    place.re += columns[k].re;
                                    place.im += columns[k].im;
                                } else {
                                    place = (T)(place + columns[k]);
                                }
                            }
                        } else {
                            std::fill(columns, columns + low, T{});
                            if (v.stride.w == 1) std::copy(row + low, row + high, columns + low);
                            else
                                for (int64_t k = low; k < high; ++k) columns[k] = row[k * v.stride.w];
                            std::fill(columns + high, columns + v.out.w, T{});
                        }
                    }
                }
            }
}

int64_t planes_each(int64_t work) { return std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, work)); }

template <bool BACK> PyObject* columns_of(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    expect_args(name, nargs, 14);
    const int64_t planes = checked_mul(parse_count(args[6]), parse_count(args[7]));
    const Window v(args + 8);
    const int64_t column = checked_mul(v.kernel.size(), v.out.size());
    const Dense x = parse_dense(args + (BACK ? 3 : 0), checked_mul(planes, v.in.size()));
    const Dense columns = parse_dense(args + (BACK ? 0 : 3), checked_mul(planes, column));
    if (x.code != columns.code) fail(PyExc_ValueError, "%s: operands of two dtypes", name);
    dispatch_columns(x.code, name, [&](auto t) {
        using T = decltype(t);
        GilRelease unlocked(planes * column);
        parallel_for(planes, planes_each(column), [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p) {
                T* plane = x.as<T>() + p * v.in.size();
                if (BACK) std::fill(plane, plane + v.in.size(), T{});
                plane_columns<T, BACK>(plane, columns.as<T>() + p * column, v);
            }
        });
    });
    Py_RETURN_NONE;
}

PyObject* im2col(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return columns_of<false>("im2col", args, nargs); });
}
PyObject* col2im(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return columns_of<true>("col2im", args, nargs); });
}

// ---------------------------------------------------------------- pooling

// The most elements that a window has along the width.
int64_t most_taps(const Ranges& r, int64_t step) {
    int64_t most = 0;
    for (size_t k = (size_t)(r.out.d + r.out.h); k < r.start.size(); ++k)
        most = std::max(most, ceil_div(std::max<int64_t>(0, r.end[k] - r.start[k]), step));
    return most;
}

// One tap of a row of windows. Selects instead of branches, which random data would make unpredictable.
template <class T>
MT_CLONES void max_tap(const T* row, int64_t base, int64_t offset, const int64_t* first, const int64_t* last, T* out,
                       int64_t* places, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        const int64_t c = first[k] + offset;
        if (c >= last[k]) continue;
        const T candidate = row[c];
        const bool wins = (candidate > out[k]) | (candidate != candidate);
        out[k] = wins ? candidate : out[k];
        places[k] = wins ? base + c : places[k];
    }
}

// A wide window's row by itself.
template <class T>
MT_INLINE void max_wide(const T* row, int64_t base, int64_t first, int64_t last, T& out, int64_t& place) {
    T best = out;
    int64_t at = -1;
    for (int64_t c = first; c < last; ++c)
        if (MT_UNLIKELY(!(row[c] <= best))) {
            if (best != best && row[c] == row[c]) continue;  // NaN stays, until the next one
            best = row[c];
            at = c;
        }
    if (at < 0) return;
    out = best;
    place = base + at;
}

// A row of results at a time: tap by tap, so that neighbouring windows are worked on together.
template <class T>
void max_plane(const T* x, T* out, int64_t* places, const Ranges& r, const Triple& step, int64_t taps) {
    const int64_t* h0 = r.start.data() + r.out.d;
    const int64_t* h1 = r.end.data() + r.out.d;
    const int64_t* w0 = h0 + r.out.h;
    const int64_t* w1 = h1 + r.out.h;
    // From the lowest number on; a window that only meets padding keeps it.
    T lowest;
    if constexpr (std::is_floating_point<T>::value) lowest = -std::numeric_limits<T>::infinity();
    else lowest = std::numeric_limits<T>::lowest();
    for (int64_t i = 0; i < r.out.d; ++i)
        for (int64_t j = 0; j < r.out.h; ++j, out += r.out.w, places += r.out.w) {
            const int64_t z0 = r.start[(size_t)i], z1 = r.end[(size_t)i];
            for (int64_t k = 0; k < r.out.w; ++k) {
                out[k] = lowest;
                places[k] = (z0 * r.in.h + h0[j]) * r.in.w + w0[k];
            }
            for (int64_t z = z0; z < z1; z += step.d)
                for (int64_t y = h0[j]; y < h1[j]; y += step.h) {
                    const int64_t base = (z * r.in.h + y) * r.in.w;
                    if (taps >= 6 && step.w == 1) {
                        for (int64_t k = 0; k < r.out.w; ++k) max_wide(x + base, base, w0[k], w1[k], out[k], places[k]);
                        continue;
                    }
                    for (int64_t t = 0; t < taps; ++t)
                        max_tap(x + base, base, t * step.w, w0, w1, out, places, r.out.w);
                }
        }
}

// Windows of one size along the width, a stride apart: all of `taps` elements, `first` the place of the first one's first.
struct Even {
    int64_t stride = 1, first = 0, columns = 0;
    int64_t width = 0;        // of whole vectors: results beyond the last one are worked on and left out
    int64_t offset[16] = {};  // of each tap in a sorted row
    bool found = false;
    Even(const Ranges& r, int64_t step, int64_t taps) {
        const size_t w = (size_t)(r.out.d + r.out.h), n = (size_t)r.out.w;
        constexpr int64_t MOST = std::numeric_limits<int32_t>::max();
        if (n < 8 || taps < 1 || taps > 16 || step > 64 || r.in.size() > MOST) return;
        stride = r.start[w + n - 1] - r.start[w + n - 2];
        if (stride < 1 || stride > (taps < 6 ? 8 : 2)) return;
        first = r.start[w + n - 1] - (int64_t)(n - 1) * stride;
        width = (r.out.w + 15) / 16 * 16;
        columns = width + (taps - 1) * step / stride + 1;
        for (int64_t t = 0; t < taps; ++t) offset[t] = t * step % stride * columns + t * step / stride;
        found = first <= 0 && first > -64;
        // Windows were cut at the borders of the plane.
        for (size_t k = 0; k < n && found; ++k) {
            const int64_t at = first + (int64_t)k * stride, start = at < 0 ? at + ceil_div(-at, step) * step : at;
            found = r.start[w + k] == start && r.end[w + k] == std::min(at + (taps - 1) * step + 1, r.in.w);
        }
    }
};
// The places of rows sorted by their remainder by the stride, `columns` of each and the lowest number outside of the plane:
// windows side by side read places side by side.
template <class T> MT_INLINE void sort_rows(const T* x, T* sorted, const Ranges& r, const Even& v, T lowest) {
    for (int64_t y = 0; y < r.in.d * r.in.h; ++y, x += r.in.w)
        for (int64_t s = 0; s < v.stride; ++s, sorted += v.columns) {
            const T* from = x + v.first + s;
            const int64_t before = std::min(v.columns, v.first + s < 0 ? ceil_div(-v.first - s, v.stride) : 0);
            const int64_t room = r.in.w - v.first - s;
            const int64_t end = std::max(before, std::min(v.columns, room > 0 ? ceil_div(room, v.stride) : 0));
            for (int64_t c = 0; c < before; ++c) sorted[c] = lowest;
            if (v.stride == 1)
                for (int64_t c = before; c < end; ++c) sorted[c] = from[c];
            else if (v.stride == 2)
                for (int64_t c = before; c < end; ++c) sorted[c] = from[2 * c];
            else
                for (int64_t c = before; c < end; ++c) sorted[c] = from[c * v.stride];
            for (int64_t c = end; c < v.columns; ++c) sorted[c] = lowest;
        }
}
// One row of windows; at: where each best one's window would begin if it were the first tap, or NOWHERE.
template <class T, class I>
MT_INLINE void max_even_row(const T* sorted, const Ranges& r, const Triple& step, int64_t taps, const Even& v, size_t i,
                            size_t j, T* out, I* at, T lowest, I nowhere) {
    const int64_t n = v.width;
    for (int64_t k = 0; k < n; ++k) out[k] = lowest, at[k] = nowhere;
    for (int64_t z = r.start[i]; z < r.end[i]; z += step.d)
        for (int64_t y = r.start[j]; y < r.end[j]; y += step.h) {
            const T* row = sorted + (z * r.in.h + y) * v.stride * v.columns;
            for (int64_t t = 0; t < taps; ++t) {
                const T* from = row + v.offset[t];
                const I place = (I)((z * r.in.h + y) * r.in.w + v.first + t * step.w);
#pragma GCC ivdep
                for (int64_t k = 0; k < n; ++k) {
                    const bool wins = (from[k] > out[k]) | (from[k] != from[k]);
                    out[k] = wins ? from[k] : out[k];
                    at[k] = wins ? place : at[k];
                }
            }
        }
}
template <class T>
void max_even(const T* x, T* out, int64_t* places, const Ranges& r, const Triple& step, int64_t taps, const Even& v,
              T* sorted) {
    using I = typename std::conditional<sizeof(T) == 8, int64_t, int32_t>::type;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    constexpr I nowhere = std::numeric_limits<I>::min();
    const size_t h = (size_t)r.out.d, w = h + (size_t)r.out.h;
    const Row<I> at(v.width);
    const Row<T> best(v.width);
    at_level(MT_BODY {
        sort_rows(x, sorted, r, v, lowest);
        for (size_t i = 0; i < h; ++i)
            for (size_t j = h; j < w; ++j, out += r.out.w, places += r.out.w) {
                max_even_row<T, I>(sorted, r, step, taps, v, i, j, best.get(), at.get(), lowest, nowhere);
                for (int64_t k = 0; k < r.out.w; ++k) out[k] = best.get()[k];
                const int64_t none = (r.start[i] * r.in.h + r.start[j]) * r.in.w;
                for (int64_t k = 0; k < r.out.w; ++k)
                    places[k] = at.get()[k] == nowhere ? none + r.start[w + (size_t)k] : at.get()[k] + k * v.stride;
            }
    });
}

PyObject* pool_max(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pool_max", nargs, 15);
        const int64_t planes = parse_count(args[9]);
        const Ranges r(args[10], args[11], args[12], args[13]);
        const Triple given = parse_triple(args[14], 1);
        // A step beyond every plane is as good as FAR.
        const Triple step{std::min(given.d, FAR), std::min(given.h, FAR), std::min(given.w, FAR)};
        const Dense x = parse_dense(args, checked_mul(planes, r.in.size()));
        const Dense o = parse_dense(args + 3, checked_mul(planes, r.out.size()));
        const Dense places = parse_dense(args + 6, checked_mul(planes, r.out.size()));
        if (x.code != o.code || places.code != I64) fail(PyExc_ValueError, "pool_max: wrong dtype of a result");
        dispatch_columns(x.code, "max_pool", [&](auto t) {
            using T = decltype(t);
            if constexpr (IsComplex<T>::value) {
                fail_dtype("max_pool", x.code);
            } else {
                GilRelease unlocked(planes * r.in.size());
                const int64_t taps = most_taps(r, step.w);
                const Even even(r, step.w, taps);
                parallel_for(planes, planes_each(saturated_add(r.in.size(), saturated_mul(4, r.out.size()))),
                             [&](int64_t begin, int64_t end) {
                                 const int64_t sorted = even.found ? r.in.d * r.in.h * even.stride * even.columns : 0;
                                 const Scratch room(sorted, sizeof(T));
                                 for (int64_t p = begin; p < end; ++p) {
                                     const T* from = x.as<const T>() + p * r.in.size();
                                     T* to = o.as<T>() + p * r.out.size();
                                     int64_t* at = places.as<int64_t>() + p * r.out.size();
                                     if constexpr (std::is_floating_point<T>::value)
                                         if (even.found) {
                                             max_even(from, to, at, r, step, taps, even, room.as<T>());
                                             continue;
                                         }
                                     max_plane(from, to, at, r, step, taps);
                                 }
                             });
            }
        });
        Py_RETURN_NONE;
    });
}

template <class T>
MT_INLINE void sum_tap(const T* row, int64_t offset, const int64_t* first, const int64_t* last, T* out, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        const int64_t c = first[k] + offset;
        if (c < last[k]) out[k] = (T)(out[k] + row[c]);
    }
}

constexpr int64_t WIDE = 5;  // elements of a window's row from which it is summed by itself
constexpr int64_t FEW = 32;  // elements of a row of windows that are not worth more than to be added one by one

// The rows [y0, y1) of the planes [z0, z1), added up: `sums` has a plane's width.
template <class T>
MT_INLINE void add_rows(const T* x, T* sums, const Triple& in, int64_t z0, int64_t z1, int64_t y0, int64_t y1) {
    std::fill_n(sums, in.w, T{});
    for (int64_t z = z0; z < z1; ++z)
        for (int64_t y = y0; y < y1; ++y) {
            const T* row = x + (z * in.h + y) * in.w;
#pragma GCC ivdep
            for (int64_t c = 0; c < in.w; ++c) sums[c] = (T)(sums[c] + row[c]);
        }
}

template <class T>
void sum_few(const T* x, T* out, const Ranges& r, size_t i, size_t j, const int64_t* first, const int64_t* last) {
    for (int64_t k = 0; k < r.out.w; ++k) {
        T sum{};
        for (int64_t z = r.start[i]; z < r.end[i]; ++z)
            for (int64_t y = r.start[j]; y < r.end[j]; ++y) {
                const T* row = x + (z * r.in.h + y) * r.in.w;
                for (int64_t c = first[k]; c < last[k]; ++c) sum = (T)(sum + row[c]);
            }
        out[k] = sum;
    }
}

// A row of windows: first all their rows are added up, then the elements of each.
template <class T>
void sum_windows(const T* x, T* out, const Ranges& r, size_t i, size_t j, const int64_t* first, const int64_t* last,
                 int64_t taps, T* sums) {
    at_level(MT_BODY {
        const int64_t z0 = r.start[i], z1 = r.end[i], y0 = r.start[j], y1 = r.end[j];
        const bool one_row = z1 - z0 == 1 && y1 - y0 == 1;
        if (r.out.w == 1 && first[0] == 0 && last[0] == r.in.w && y0 == 0 && y1 == r.in.h && z0 < z1) {
            // A window that spans its planes is a single run.
            const T* run = x + z0 * r.in.h * r.in.w;
            out[0] = sum_of<T>((z1 - z0) * r.in.h * r.in.w, MT_EACH(c) { return run[c]; });
        } else {
            if (!one_row) add_rows(x, sums, r.in, z0, z1, y0, y1);
            const T* row = one_row ? x + (z0 * r.in.h + y0) * r.in.w : sums;
            if (taps < WIDE) {
                std::fill_n(out, r.out.w, T{});
                for (int64_t t = 0; t < taps; ++t) sum_tap(row, t, first, last, out, r.out.w);
            } else {
                for (int64_t k = 0; k < r.out.w; ++k)
                    out[k] = sum_of<T>(last[k] - first[k], MT_EACH(c) { return row[first[k] + c]; });
            }
        }
    });
}

template <class T>
void mean_rows(const T* x, T* out, const Ranges& r, const std::vector<int64_t>& count, int64_t divisor, int64_t taps,
               T* sums) {
    const size_t h = (size_t)r.out.d, w = h + (size_t)r.out.h;
    for (size_t i = 0; i < h; ++i)
        for (size_t j = h; j < w; ++j, out += r.out.w) {
            const int64_t *first = r.start.data() + w, *last = r.end.data() + w;
            if (r.out.w * taps <= FEW) sum_few(x, out, r, i, j, first, last);
            else sum_windows(x, out, r, i, j, first, last, taps, sums);
            for (int64_t k = 0; k < r.out.w; ++k)
                out[k] =
                    mean_of_sum(out[k], divisor ? divisor : window_count(count[i], count[j], count[w + (size_t)k]));
        }
}

// Each result's gradient to every element of its window; x was filled with zeros.
template <class T>
void share_plane(T* x, const T* out, const Ranges& r, const std::vector<int64_t>& count, int64_t divisor) {
    const size_t h = (size_t)r.out.d, w = h + (size_t)r.out.h;
    for (size_t i = 0; i < h; ++i)
        for (size_t j = h; j < w; ++j)
            for (size_t k = w; k < r.start.size(); ++k, ++out) {
                const T share = mean_of_sum(*out, divisor ? divisor : window_count(count[i], count[j], count[k]));
                for (int64_t z = r.start[i]; z < r.end[i]; ++z)
                    for (int64_t y = r.start[j]; y < r.end[j]; ++y) {
                        T* row = x + (z * r.in.h + y) * r.in.w;
                        for (int64_t c = r.start[k]; c < r.end[k]; ++c) row[c] = (T)(row[c] + share);
                    }
            }
}

template <bool BACK> PyObject* mean_of(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    expect_args(name, nargs, 13);
    const int64_t planes = parse_count(args[6]);
    const Ranges r(args[7], args[8], args[9], args[10]);
    const std::vector<int64_t> count = parse_list(args[11], (int64_t)r.start.size());
    const int64_t divisor = as_int(args[12]);
    const Dense x = parse_dense(args + (BACK ? 3 : 0), checked_mul(planes, r.in.size()));
    const Dense o = parse_dense(args + (BACK ? 0 : 3), checked_mul(planes, r.out.size()));
    if (x.code != o.code) fail(PyExc_ValueError, "%s: operands of two dtypes", name);
    auto run = [&](auto t) {
        using T = decltype(t);
        GilRelease unlocked(planes * r.in.size());
        const int64_t taps = most_taps(r, 1);
        parallel_for(planes, planes_each(saturated_add(r.in.size(), saturated_mul(4, r.out.size()))),
                     [&](int64_t begin, int64_t end) {
                         const Scratch sums(BACK ? 1 : r.in.w, sizeof(T));
                         for (int64_t p = begin; p < end; ++p) {
                             T* plane = x.as<T>() + p * r.in.size();
                             T* result = o.as<T>() + p * r.out.size();
                             if (BACK) {
                                 std::fill(plane, plane + r.in.size(), T{});
                                 share_plane(plane, result, r, count, divisor);
                             } else {
                                 mean_rows(plane, result, r, count, divisor, taps, sums.as<T>());
                             }
                         }
                     });
    };
    if (x.code == F32) run(float());
    else if (x.code == F64) run(double());
    else if (x.code == I64) run(int64_t());
    else fail_dtype(name, x.code);
    Py_RETURN_NONE;
}

PyObject* pool_mean(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return mean_of<false>("avg_pool", args, nargs); });
}
PyObject* pool_mean_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return mean_of<true>("avg_pool_backward", args, nargs); });
}

// ---------------------------------------------------------------- the largest of a window, along rows

// A row with as much of the smallest number around it as windows reach, its places sorted by their remainder by the
// stride, `columns` of each: so windows side by side read places side by side.
struct Line {
    int64_t in, out, kernel, stride, padding, dilation, columns;
    Line(PyObject* const* args)
        : in(parse_count(args[0])), out(parse_count(args[1])), kernel(parse_count(args[2])), stride(as_int(args[3])),
          padding(parse_count(args[4])), dilation(as_int(args[5])), columns(0) {
        if (kernel < 1 || stride < 1 || dilation < 1) fail(PyExc_ValueError, "pool_line: windows without elements");
        const int64_t reach = checked_mul(kernel - 1, dilation);
        columns = checked_add(checked_add(out, reach / stride), 1);
        checked_add(checked_mul(columns, stride), checked_add(in, padding));
    }
    int64_t at(int64_t place) const { return place % stride * columns + place / stride; }
};
template <class T> MT_INLINE void pool_row(const Line& v, const T* row, T* sorted, T* out) {
    std::fill(sorted, sorted + v.columns * v.stride, -std::numeric_limits<T>::infinity());
    for (int64_t s = 0; s < v.stride; ++s) {
        // Places s + c * stride of the padded row.
        T* to = sorted + s * v.columns;
        const int64_t first = v.padding > s ? ceil_div(v.padding - s, v.stride) : 0;
        const int64_t end = std::min(v.columns, v.in + v.padding > s ? ceil_div(v.in + v.padding - s, v.stride) : 0);
        const T* from = row + s - v.padding;
        if (v.stride == 1)
            for (int64_t c = first; c < end; ++c) to[c] = from[c];
        else if (v.stride == 2)
            for (int64_t c = first; c < end; ++c) to[c] = from[2 * c];
        else
            for (int64_t c = first; c < end; ++c) to[c] = from[c * v.stride];
    }
    for (int64_t i = 0; i < v.out; ++i) out[i] = sorted[i];
    for (int64_t k = 1; k < v.kernel; ++k) {
        const T* from = sorted + v.at(k * v.dilation);
#pragma GCC ivdep
        for (int64_t i = 0; i < v.out; ++i) out[i] = (from[i] > out[i]) | (from[i] != from[i]) ? from[i] : out[i];
    }
}
PyObject* pool_line(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pool_line", nargs, 13);
        const int64_t rows = parse_count(args[6]);
        const Line v(args + 7);
        const Dense x = parse_dense(args, checked_mul(rows, v.in)), o = parse_dense(args + 3, checked_mul(rows, v.out));
        if (x.code != o.code) fail(PyExc_ValueError, "pool_line: operands of two dtypes");
        auto run = [&](auto t) {
            using T = decltype(t);
            GilRelease unlocked(saturated_mul(rows, saturated_mul(v.out, v.kernel)));
            parallel_for(rows, planes_each(v.in + v.out * v.kernel / 4), [&](int64_t begin, int64_t end) {
                const Scratch room(v.columns * v.stride, sizeof(T));
                at_level(MT_BODY {
                    for (int64_t r = begin; r < end; ++r)
                        pool_row(v, x.as<const T>() + r * v.in, room.as<T>(), o.as<T>() + r * v.out);
                });
            });
        };
        if (x.code == F32) run(float());
        else if (x.code == F64) run(double());
        else fail_dtype("pool_line", x.code);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
PyMethodDef window_methods[] = {
    MT_METHOD("im2col", im2col, "Planes to columns of their windows."),
    MT_METHOD("col2im", col2im, "Columns of windows added into planes."),
    MT_METHOD("pool_max", pool_max, "The largest element of each window, and its place."),
    MT_METHOD("pool_line", pool_line, "The largest element of each window of a row."),
    MT_METHOD("pool_mean", pool_mean, "The mean of each window."),
    MT_METHOD("pool_mean_backward", pool_mean_backward, "Each mean's gradient shared out over its window."),
    {nullptr, nullptr, 0, nullptr}};
