// Planes brought to another size: results are weighted sums of taps, one dimension after the other.
// Invariant: operands are dense, [plane][depth][height][width][channel], and compared with the size of their storage before
// a pointer is made; taps are checked where they are read. A row of results is summed in an order that depends on its taps
// alone, and is written by one thread. Sums of two-byte floats are kept in float.
//
// The width and its channels are one row. Whichever makes the smaller rows comes first: the sum of rows, or the width.
//   resample(x.., out.., planes, channels, in, out, taps, places, weights, backward)
//       out place o of dimension d is the sum over its taps of weight * x[place]; places and weights hold
//       out * taps values per dimension, one dimension after the other. backward: x is the gradient, out what it leads to
#include "cpu.h"
#include "lanes.h"
#include "vectors.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

// Sums over taps along one dimension: of each result, [begin[i], begin[i + 1]) in `at` and `weight`.
template <class A> struct Axis {
    int64_t from, to, most = 0;
    bool even = true;  // every result has `most` taps
    std::vector<size_t> begin;
    std::vector<int64_t> at;
    std::vector<A> weight;
    Axis(const Resampling& v, int d, bool back) {
        const int64_t in[3] = {v.in.d, v.in.h, v.in.w}, out[3] = {v.out.d, v.out.h, v.out.w};
        const int64_t each[3] = {v.number.d, v.number.h, v.number.w};
        from = back ? out[d] : in[d], to = back ? in[d] : out[d];
        if (back) {
            Shown<A> shown(v, d, true);
            begin = std::move(shown.begin), at = std::move(shown.result), weight = std::move(shown.weight);
        } else {
            for (int64_t i = 0; i <= to; ++i) begin.push_back((size_t)(i * each[d]));
            at = v.place[d];
            for (const double w : v.weight[d]) weight.push_back((A)w);
        }
        for (int64_t i = 0; i < to; ++i) most = std::max(most, count(i));
        for (int64_t i = 0; i < to; ++i) even &= count(i) == most;
    }
    int64_t count(int64_t i) const { return (int64_t)(begin[(size_t)i + 1] - begin[(size_t)i]); }
};

// The taps of a width with few channels, tap by tap over all results of a row: neighbouring results are worked on together.
// A tap that a result does not have has the place -1.
template <class A> struct Columns {
    int64_t taps, n;
    bool even;
    std::vector<int32_t> place;
    std::vector<A> weight;
    Columns(const Axis<A>& axis, int64_t channels) : taps(axis.most), n(axis.to * channels), even(axis.even) {
        place.resize((size_t)(taps * n));
        weight.resize((size_t)(taps * n));
        size_t at = 0;
        for (int64_t t = 0; t < taps; ++t)
            for (int64_t k = 0; k < axis.to; ++k) {
                const bool has = t < axis.count(k);
                const size_t tap = axis.begin[(size_t)k] + (size_t)t;
                for (int64_t c = 0; c < channels; ++c, ++at) {
                    place[at] = has ? (int32_t)(axis.at[tap] * channels + c) : -1;
                    weight[at] = has ? axis.weight[tap] : A(0);
                }
            }
    }
};

template <class A> MT_INLINE void sum_columns(const A* row, A* out, const Columns<A>& columns) {
    const int64_t n = columns.n;
    const int32_t* place = columns.place.data();
    const A* weight = columns.weight.data();
    if (columns.even && columns.taps == 1) {
        for (int64_t k = 0; k < n; ++k) out[k] = row[place[k]] * weight[k];
    } else if (columns.even && columns.taps == 2) {
        for (int64_t k = 0; k < n; ++k) out[k] = weight[k] * row[place[k]] + weight[n + k] * row[place[n + k]];
    } else if (columns.even && columns.taps > 0) {
        for (int64_t k = 0; k < n; ++k) out[k] = weight[k] * row[place[k]];
        for (int64_t t = 1; t < columns.taps; ++t) {
            place += n, weight += n;
            for (int64_t k = 0; k < n; ++k) out[k] += weight[k] * row[place[k]];
        }
    } else {
        for (int64_t k = 0; k < n; ++k) out[k] = A(0);
        for (int64_t t = 0; t < columns.taps; ++t, place += n, weight += n)
            for (int64_t k = 0; k < n; ++k) out[k] += place[k] < 0 ? A(0) : weight[k] * row[place[k]];
    }
}

// With many channels: the sum of the taps' channels, as many as a few registers hold.
template <int N, class A>
MT_INLINE void sum_channels(const A* row, A* out, const Axis<A>& axis, int64_t k, int64_t channels, int64_t c) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int LANES = Vec<A, 64>::LANES;
    V sum[N] = {};
    for (size_t t = axis.begin[(size_t)k]; t < axis.begin[(size_t)k + 1]; ++t) {
        const A* from = row + axis.at[t] * channels + c;
        const A w = axis.weight[t];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sum[v] += V(*reinterpret_cast<const L*>(from + v * LANES)) * w;
    }
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) *reinterpret_cast<L*>(out + k * channels + c + v * LANES) = sum[v];
}
template <class A> MT_INLINE void sum_width(const A* row, A* out, const Axis<A>& axis, int64_t channels) {
    constexpr int64_t LANES = Vec<A, 64>::LANES;
    for (int64_t k = 0; k < axis.to; ++k) {
        int64_t c = 0;
        for (; c + 4 * LANES <= channels; c += 4 * LANES) sum_channels<4>(row, out, axis, k, channels, c);
        for (; c + LANES <= channels; c += LANES) sum_channels<1>(row, out, axis, k, channels, c);
        for (; c < channels; ++c) {
            A sum = 0;
            for (size_t t = axis.begin[(size_t)k]; t < axis.begin[(size_t)k + 1]; ++t)
                sum += axis.weight[t] * row[axis.at[t] * channels + c];
            out[k * channels + c] = sum;
        }
    }
}

// Rows added up, each times its weight, four in one pass.
template <class A> class Rows {
public:
    MT_INLINE Rows(A* out, int64_t n, int64_t all) : out_(out), n_(n), many_(all > 1) {}
    MT_INLINE void add(const A* row, A weight) {
        if (count_ == 4) flush();
        row_[count_] = row, weight_[count_] = weight;
        ++count_;
    }
    MT_INLINE bool waits(const A* row) const {
        for (int k = 0; k < count_; ++k)
            if (row_[k] == row) return true;
        return false;
    }
    MT_INLINE void flush() {
        A* MT_RESTRICT out = out_;
        const A *a = row_[0], *b = row_[1], *c = row_[2], *d = row_[3];
        const A p = weight_[0], q = weight_[1], r = weight_[2], s = weight_[3];
        if (fresh_ && !many_ && count_ == 1)
            for (int64_t k = 0; k < n_; ++k) out[k] = p * a[k];
        else {
            if (fresh_ && count_ == 2) {
                for (int64_t k = 0; k < n_; ++k) out[k] = (A(0) + p * a[k]) + q * b[k];
            } else if (fresh_ && count_ == 4) {
                for (int64_t k = 0; k < n_; ++k) out[k] = (((A(0) + p * a[k]) + q * b[k]) + r * c[k]) + s * d[k];
            } else {
                if (fresh_)
                    for (int64_t k = 0; k < n_; ++k) out[k] = A(0);
                if (count_ == 1)
                    for (int64_t k = 0; k < n_; ++k) out[k] += p * a[k];
                else if (count_ == 2)
                    for (int64_t k = 0; k < n_; ++k) out[k] = (out[k] + p * a[k]) + q * b[k];
                else if (count_ == 3)
                    for (int64_t k = 0; k < n_; ++k) out[k] = ((out[k] + p * a[k]) + q * b[k]) + r * c[k];
                else if (count_ == 4)
                    for (int64_t k = 0; k < n_; ++k) out[k] = (((out[k] + p * a[k]) + q * b[k]) + r * c[k]) + s * d[k];
            }
        }
        fresh_ = false;
        count_ = 0;
    }

private:
    A* out_;
    int64_t n_;
    bool many_, fresh_ = true;
    int count_ = 0;
    const A* row_[4] = {};
    A weight_[4] = {};
};

// A: what sums are kept in; elements of other dtypes are converted row by row.
template <class A> class Engine {
public:
    Engine(const Resampling& v, bool back, int64_t channels, const char* x, char* out, int code)
        : depth_(v, 0, back), height_(v, 1, back), width_(v, 2, back), columns_(width_, few(channels) ? channels : 0),
          channels_(channels), x_(x), out_(out), code_(code), size_(ITEMSIZE[code]), wide_(code == CodeOf<A>::value),
          in_row_(width_.from * channels), out_row_(width_.to * channels), rows_(depth_.to * height_.to),
          room_(std::max<int64_t>(1, 2 * depth_.most * height_.most)), longest_(std::max(in_row_, out_row_)),
          sum_first_(rows_ < depth_.from * height_.from) {}

    int64_t rows() const { return rows_; }
    int64_t work() const {
        return saturated_mul(out_row_ + in_row_, saturated_mul(depth_.most, height_.most) + width_.most);
    }
    void run(int64_t begin, int64_t end) const {
        // Rows that are kept; then one to convert from, one to add up in and one to convert to.
        const Scratch scratch(checked_mul(room_ + 3, longest_), sizeof(A));
        A *kept = scratch.template as<A>(), *sum = kept + (room_ + 1) * longest_, *made = sum + longest_;
        std::vector<int64_t> held((size_t)room_, -1);
        int64_t plane = -1;
        for (int64_t r = begin; r < end; ++r) {
            if (r / rows_ != plane) {
                plane = r / rows_;
                std::fill(held.begin(), held.end(), -1);
            }
            char* result = out_ + r * out_row_ * size_;
            A* to = wide_ ? reinterpret_cast<A*>(result) : made;
            at_level(MT_BODY {
                if (sum_first_) {
                    sum_rows(plane, r % rows_, sum, in_row_, kept, held);
                    across(sum, to);
                } else {
                    sum_rows(plane, r % rows_, to, out_row_, kept, held);
                }
            });
            if (!wide_) cast_block(result, code_, reinterpret_cast<const char*>(made), CodeOf<A>::value, out_row_);
        }
    }

private:
    static bool few(int64_t channels) { return channels < 8; }
    MT_INLINE void across(const A* row, A* out) const {
        if (few(channels_)) sum_columns(row, out, columns_);
        else sum_width(row, out, width_, channels_);
    }
    // The sum of a result's rows, each as it is in memory or already brought to its width, and kept while others need it.
    MT_INLINE void sum_rows(int64_t plane, int64_t r, A* to, int64_t n, A* kept, std::vector<int64_t>& held) const {
        const size_t i = (size_t)(r / height_.to), j = (size_t)(r % height_.to);
        Rows<A> rows(to, n, depth_.count((int64_t)i) * height_.count((int64_t)j));
        for (size_t a = depth_.begin[i]; a < depth_.begin[i + 1]; ++a)
            for (size_t b = height_.begin[j]; b < height_.begin[j + 1]; ++b) {
                const int64_t y = depth_.at[a] * height_.from + height_.at[b], slot = y % room_;
                const char* from = x_ + (plane * depth_.from * height_.from + y) * in_row_ * size_;
                const A w = depth_.weight[a] * height_.weight[b];
                A* row = kept + slot * longest_;
                if (sum_first_ && wide_) {
                    rows.add(reinterpret_cast<const A*>(from), w);
                    continue;
                }
                if (held[(size_t)slot] != y) {
                    if (rows.waits(row)) rows.flush();
                    bring(from, row, kept + room_ * longest_);
                    held[(size_t)slot] = y;
                }
                rows.add(row, w);
            }
        rows.flush();
    }
    MT_INLINE void bring(const char* from, A* row, A* converted) const {
        A* to = sum_first_ ? row : converted;
        if (!wide_) cast_block(reinterpret_cast<char*>(to), CodeOf<A>::value, from, code_, in_row_);
        if (!sum_first_) across(wide_ ? reinterpret_cast<const A*>(from) : to, row);
    }

    const Axis<A> depth_, height_, width_;
    const Columns<A> columns_;
    const int64_t channels_;
    const char* x_;
    char* out_;
    const int code_, size_;
    const bool wide_;
    const int64_t in_row_, out_row_, rows_, room_, longest_;
    const bool sum_first_;
};

// ---------------------------------------------------------------- the nearest places: elements are moved

// A row of places of `channels` elements. twice: place k of the result is place k / 2; second: it is place 2 k.
struct Nearest {
    std::vector<int32_t> place;  // of elements where there are few channels, else of places
    bool twice = true, second = true;
};
template <class T>
MT_INLINE void move_row(const T* row, T* out, const Nearest& v, int64_t n, int64_t width, int64_t channels) {
    const int32_t* place = v.place.data();
    if (channels == 1 && v.twice) {
#pragma GCC ivdep
        for (int64_t k = 0; k < n / 2; ++k) out[2 * k] = row[k], out[2 * k + 1] = row[k];
        if (n % 2) out[n - 1] = row[n / 2];
    } else if (channels == 1 && v.second) {
#pragma GCC ivdep
        for (int64_t k = 0; k < n - 1; ++k) out[k] = row[2 * k];
        out[n - 1] = row[2 * (n - 1)];
    } else if (channels < 8) {
#pragma GCC ivdep
        for (int64_t k = 0; k < n; ++k) out[k] = row[place[k]];
    } else {
        const int64_t bytes = channels * (int64_t)sizeof(T);
        for (int64_t k = 0; k < width; ++k)
            copy_bytes(reinterpret_cast<char*>(out + k * channels),
                       reinterpret_cast<const char*>(row + place[k] * channels), bytes);
    }
}

void move_nearest(const Resampling& v, int64_t planes, int64_t channels, const Dense& x, const Dense& o) {
    Nearest width;
    for (int64_t k = 0; k < v.out.w; ++k) {
        const int64_t p = v.place[2][(size_t)k];
        width.twice &= p == k / 2, width.second &= p == 2 * k;
        if (channels < 8)
            for (int64_t c = 0; c < channels; ++c) width.place.push_back((int32_t)(p * channels + c));
        else width.place.push_back((int32_t)p);
    }
    const int64_t rows = v.out.d * v.out.h, n = v.out.w * channels, from = v.in.w * channels;
    GilRelease unlocked(saturated_mul(saturated_mul(planes, rows), n));
    dispatch_size(ITEMSIZE[x.code], [&](auto t) {
        using T = decltype(t);
        parallel_for(saturated_mul(planes, rows), lane_grain(n, 1), [&](int64_t begin, int64_t end) {
            at_level(MT_BODY {
                const T* last = nullptr;
                for (int64_t r = begin; r < end; ++r) {
                    const int64_t plane = r / rows, i = r % rows / v.out.h, j = r % rows % v.out.h;
                    const int64_t y = v.place[0][(size_t)i] * v.in.h + v.place[1][(size_t)j];
                    const T* row = x.as<const T>() + (plane * v.in.d * v.in.h + y) * from;
                    T* out = o.as<T>() + r * n;
                    // The result before it may be the same.
                    if (row == last)
                        copy_bytes(reinterpret_cast<char*>(out), reinterpret_cast<const char*>(out - n),
                                   n * (int64_t)sizeof(T));
                    else move_row(row, out, width, n, v.out.w, channels);
                    last = row;
                }
            });
        });
    });
}

PyObject* resample(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("resample", nargs, 14);
        const int64_t planes = parse_count(args[6]), channels = parse_count(args[7]);
        const Resampling taps(args + 8);
        const bool back = as_bool(args[13]);
        const Dense x = parse_dense(args + (back ? 3 : 0), checked_numel({planes, channels, taps.in.size()}));
        const Dense o = parse_dense(args + (back ? 0 : 3), checked_numel({planes, channels, taps.out.size()}));
        if (x.code != o.code) fail(PyExc_ValueError, "resample: operands of two dtypes");
        if (planes == 0 || channels == 0 || (back ? taps.in : taps.out).size() == 0) Py_RETURN_NONE;
        for (const int64_t w : {taps.in.w, taps.out.w})
            if (saturated_mul(w, channels) > std::numeric_limits<int32_t>::max())
                fail(PyExc_ValueError, "a plane is too wide to be resampled");
        bool copies = !back && taps.number.size() == 1;
        for (int d = 0; d < 3; ++d)
            for (const double w : taps.weight[d]) copies &= w == 1.0;
        if (copies) {
            move_nearest(taps, planes, channels, x, o);
            Py_RETURN_NONE;
        }
        auto run = [&](auto t) {
            const Engine<decltype(t)> engine(taps, back, channels, (back ? o : x).data, (back ? x : o).data, x.code);
            const int64_t all = saturated_mul(planes, engine.rows());
            GilRelease unlocked(saturated_mul(all, engine.work()));
            parallel_for(all, lane_grain(engine.work(), 1),
                         [&](int64_t begin, int64_t end) { engine.run(begin, end); });
        };
        if (x.code == F64) run(double());
        else if (x.code == F32 || x.code == F16 || x.code == BF16) run(float());
        else fail_dtype("resample", x.code);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef resample_methods[];  // no other file needs to know
PyMethodDef resample_methods[] = {
    MT_METHOD("resample", resample, "Weighted sums of taps per dimension, or their transpose."),
    {nullptr, nullptr, 0, nullptr}};
