// How often values occur: counts, histograms, the commonest, the distinct ones, membership. What sorts and masks of whole
// tensors would do in many calls.
//
// Invariant: a value that another thread writes meanwhile may be counted or not; it never leads outside of a table.
#include "halves.h"
#include "search.h"

#include <vector>

using namespace mt;

extern PyMethodDef counting_methods[];  // no other file needs to know

namespace {

template <class T> T* memory(const Ref& r) {
    return reinterpret_cast<T*>(reinterpret_cast<StorageObject*>(r.get())->ptr);
}

// The least and the largest of n > 0 ints.
template <class T> void bounds(const T* x, int64_t n, int64_t* least, int64_t* most) {
    T low = x[0], high = x[0];
    at_level(MT_BODY {
        T a = low, b = high;
        for (int64_t i = 0; i < n; ++i) {
            a = x[i] < a ? x[i] : a;
            b = x[i] > b ? x[i] : b;
        }
        low = a;
        high = b;
    });
    *least = (int64_t)low;
    *most = (int64_t)high;
}

// Adds how often each of `size` values from `least` on occurs. Neighbours count in tables of their own where those are
// small: adding to one place twice in a row would wait for the first.
template <class T> void count_values(const T* x, int64_t n, int64_t least, int64_t size, int64_t* counts) {
    constexpr int TABLES = 4;
    std::vector<int64_t> more(size <= 4096 ? (size_t)size * (TABLES - 1) : 0);
    int64_t* table[TABLES] = {counts, counts, counts, counts};
    for (int k = 1; k < TABLES && !more.empty(); ++k) table[k] = more.data() + (k - 1) * size;
    const auto add = [&](int64_t* to, T value) {
        const uint64_t at = (uint64_t)(int64_t)value - (uint64_t)least;
        if (MT_LIKELY(at < (uint64_t)size)) ++to[at];
    };
    int64_t i = 0;
    for (; i + TABLES <= n; i += TABLES)
        for (int k = 0; k < TABLES; ++k) add(table[k], x[i + k]);
    for (; i < n; ++i) add(counts, x[i]);
    for (size_t k = 0; k < more.size(); ++k) counts[k % (size_t)size] += more[k];
}

// bincount(x(4), n, minlength): (storage of int64 counts, how many), or None when the elements are none to be counted
PyObject* bincount(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("bincount", nargs, 6);
        const Shape shape = run_of(as_int(args[4]));
        const int64_t fewest = as_int(args[5]);
        if (fewest < 0) fail(PyExc_ValueError, "bincount() expects sizes that are not negative");
        Operand x;
        parse_operand(args, shape, x);
        require_dense("bincount", shape, x);
        if (!is_int_code(x.code) || shape.numel == 0) Py_RETURN_NONE;
        int64_t least = 0, most = 0, size = 0;
        Ref made;
        const bool served = with_type(x.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            bounds(x.as<T>(), shape.numel, &least, &most);
            if (least < 0 || most >= (int64_t)1 << 40) return;
            size = std::max(fewest, most + 1);
            made.reset(storage_new(size, 8));
            int64_t* counts = memory<int64_t>(made);
            GilRelease gil(shape.numel);
            std::fill(counts, counts + size, (int64_t)0);
            count_values(x.as<T>(), shape.numel, 0, size, counts);
        });
        if (!served || made.get() == nullptr) Py_RETURN_NONE;
        return Py_BuildValue("(OL)", made.get(), (long long)size);
    });
}

// histc(x(4), n, out(4), bins, low, high): elements outside of low and high, and NaN, are not counted
PyObject* histc(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("histc", nargs, 12);
        const Shape shape = run_of(as_int(args[4])), bins = run_of(as_int(args[9]));
        Operand x, out;
        parse_operand(args, shape, x);
        parse_operand(args + 5, bins, out);
        require_dense("histc", shape, x);
        require_dense("histc", bins, out);
        const double from = as_double(args[10]), to = as_double(args[11]);
        if (bins.numel < 1 || !(from < to)) fail(PyExc_ValueError, "histc() expects bins between two bounds");
        if (x.code != out.code || (x.code != F32 && x.code != F64)) Py_RETURN_FALSE;
        with_type(x.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            constexpr int64_t SOME = 512;
            const T low = (T)from, high = (T)to, count = (T)bins.numel, width = high - low;
            const T* data = x.as<T>();
            const int64_t n = bins.numel;
            std::vector<int64_t> counts((size_t)n + 1);  // what is not counted goes to the last
            GilRelease gil(shape.numel * 2);
            int64_t place[SOME];
            for (int64_t begin = 0; begin < shape.numel; begin += SOME) {
                const int64_t some = std::min(SOME, shape.numel - begin);
                at_level(MT_BODY {
                    for (int64_t i = 0; i < some; ++i) {
                        const T v = data[begin + i];
                        const bool in = (v >= low) & (v <= high);
                        // Of finite numbers the quotient is at most the number of bins.
                        const int64_t at = (int64_t)((in ? v - low : (T)0) * count / width);
                        place[i] = in ? (at < n ? at : n - 1) : n;
                    }
                });
                for (int64_t i = 0; i < some; ++i)
                    ++counts[(size_t)std::min<uint64_t>((uint64_t)place[i], (uint64_t)n)];
            }
            for (int64_t i = 0; i < n; ++i) out.as<T>()[i] = (T)counts[(size_t)i];
        });
        Py_RETURN_TRUE;
    });
}

// The commonest of n elements, the smallest of several; NaN where there is nothing else. `sorted`: room for n.
template <class T> T commonest(const T* row, int64_t n, T* sorted) {
    if constexpr (std::is_integral<T>::value) {
        constexpr int64_t SIZE = 512;
        int64_t least, most;
        bounds(row, n, &least, &most);
        const uint64_t span = (uint64_t)most - (uint64_t)least;
        if (span < (uint64_t)std::min(SIZE, 4 * n)) {
            int64_t counts[SIZE] = {};
            for (int64_t i = 0; i < n; ++i)
                ++counts[std::min<uint64_t>((uint64_t)(int64_t)row[i] - (uint64_t)least, span)];
            return (T)(least + (std::max_element(counts, counts + span + 1) - counts));
        }
    }
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        sorted[count] = row[i];
        count += !is_nan(sorted[count]);
    }
    if (count == 0) return row[0];
    std::sort(sorted, sorted + count);
    T best = sorted[0];
    int64_t longest = 0;
    for (int64_t i = 0; i < count;) {
        int64_t end = i + 1;
        while (end < count && sorted[end] == sorted[i]) ++end;
        if (end - i > longest) longest = end - i, best = sorted[i];
        i = end;
    }
    return best;
}

// The place of the last element of this value.
template <class T> int64_t last_place(const T* row, int64_t n, T value) {
    int64_t at = is_nan(value) ? 0 : n - 1;
    while (at > 0 && row[at] != value) --at;
    return at;
}

// mode(x(4), shape, values(4), places(4)): of each row; whether the dtype is served
PyObject* mode(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("mode", nargs, 13);
        Shape shape;
        Operand x, values, places;
        parse_shape(args[4], shape);
        if (shape.ndim != 2 || shape.dim[1] < 1) fail(PyExc_ValueError, "mode() expects rows with elements");
        parse_operand(args, shape, x);
        const Shape rows = run_of(shape.dim[0]);
        parse_operand(args + 5, rows, values);
        parse_operand(args + 9, rows, places);
        require_dense("mode", shape, x);
        require_dense("mode", rows, values);
        require_dense("mode", rows, places);
        if (values.code != x.code || places.code != I64) Py_RETURN_FALSE;
        const int64_t n = shape.dim[1];
        bool served = false;
        {
            GilRelease gil(saturated_mul(shape.numel, 8));
            served = with_type(x.code, [&](auto* type) {
                using T = std::remove_pointer_t<decltype(type)>;
                parallel_for(rows.numel, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
                    const Scratch sorted(n, sizeof(T));
                    for (int64_t r = begin; r < end; ++r) {
                        const T* row = x.as<T>() + r * n;
                        const int64_t at = last_place(row, n, commonest(row, n, sorted.as<T>()));
                        values.as<T>()[r] = row[at];
                        places.as<int64_t>()[r] = at;
                    }
                });
            });
        }
        return PyBool_FromLong(served);
    });
}

// ---------------------------------------------------------------- distinct values

struct Distinct {
    Ref values, inverse, counts;
    int64_t found = 0;
    bool want_inverse = false, want_counts = false, served = false;

    template <class T> void room(int64_t n) {
        values.reset(storage_new(found, sizeof(T)));
        inverse.reset(storage_new(want_inverse ? n : 0, 8));
        counts.reset(storage_new(want_counts ? found : 0, 8));
        served = true;
    }
    PyObject* answer() const {
        if (!served) Py_RETURN_NONE;
        return Py_BuildValue("(OLOO)", values.get(), (long long)found, inverse.get(), counts.get());
    }
};

// Ints that lie close together: by a table of how often each occurs.
template <class T> void unique_by_table(const T* x, int64_t n, int64_t least, int64_t size, Distinct& d) {
    std::vector<int64_t> table((size_t)size);
    count_values(x, n, least, size, table.data());
    for (int64_t count : table) d.found += count != 0;
    d.room<T>(n);
    T* value = memory<T>(d.values);
    int64_t* counts = memory<int64_t>(d.counts);
    int64_t run = 0;
    for (int64_t k = 0; k < size; ++k) {
        if (table[(size_t)k] == 0) continue;
        value[run] = (T)(least + k);
        if (d.want_counts) counts[run] = table[(size_t)k];
        table[(size_t)k] = run++;
    }
    if (!d.want_inverse) return;
    int64_t* inverse = memory<int64_t>(d.inverse);
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t at = (uint64_t)(int64_t)x[i] - (uint64_t)least;
        inverse[i] = at < (uint64_t)size ? table[at] : 0;
    }
}

template <class T> void unique_by_sort(const T* x, int64_t n, Distinct& d) {
    std::vector<std::pair<T, int64_t>> sorted((size_t)n);
    for (int64_t i = 0; i < n; ++i) sorted[(size_t)i] = {x[i], i};
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return before(a.first, b.first); });
    const auto begins = [&](int64_t i) { return i == 0 || sorted[(size_t)i].first != sorted[(size_t)i - 1].first; };
    for (int64_t i = 0; i < n; ++i) d.found += begins(i);
    d.room<T>(n);
    T* value = memory<T>(d.values);
    int64_t *inverse = memory<int64_t>(d.inverse), *counts = memory<int64_t>(d.counts);
    int64_t run = -1;
    for (int64_t i = 0; i < n; ++i) {
        if (begins(i)) {
            value[++run] = sorted[(size_t)i].first;
            if (d.want_counts) counts[run] = 0;
        }
        if (d.want_counts) ++counts[run];
        if (d.want_inverse) inverse[sorted[(size_t)i].second] = run;
    }
}

// unique(x(4), n, inverse, counts, few): (storage of values, how many, storage of inverse, storage of counts), where the
// last two are empty unless wanted; None for other dtypes, and for more than `few` elements that need a sort
PyObject* unique(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("unique", nargs, 8);
        const Shape shape = run_of(as_int(args[4]));
        Operand x;
        parse_operand(args, shape, x);
        require_dense("unique", shape, x);
        const int64_t n = shape.numel, few = as_int(args[7]);
        Distinct d;
        d.want_inverse = as_bool(args[5]);
        d.want_counts = as_bool(args[6]);
        with_type(x.code == BOOL ? (int)U8 : x.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            if constexpr (std::is_integral<T>::value) {
                int64_t least = 0, most = -1;
                if (n > 0) bounds(x.as<T>(), n, &least, &most);
                const uint64_t span = (uint64_t)most - (uint64_t)least;
                if (n > 0 && span < (uint64_t)std::max<int64_t>(256, 2 * std::min<int64_t>(n, (int64_t)1 << 40)))
                    return unique_by_table(x.as<T>(), n, least, (int64_t)span + 1, d);
            }
            if (n <= few) unique_by_sort(x.as<T>(), n, d);
        });
        return d.answer();
    });
}

#if MT_HAS_LEVELS
// The first elements of runs of n > 0 elements of four or eight bytes, and where they stand, unless first is null. What is
// written lies in front of what is read, so whole vectors are stored.
template <class T> MT_AVX512 MT_NOINLINE int64_t runs_avx512(const T* data, int64_t n, T* value, int64_t* first) {
    constexpr int LANES = 64 / sizeof(T);
    value[0] = data[0];
    if (first) first[0] = 0;
    int64_t found = 1, i = 1;
    for (; i + LANES <= n; i += LANES) {
        const __m512i here = _mm512_loadu_si512(data + i), before = _mm512_loadu_si512(data + i - 1);
        unsigned begins;
        if constexpr (std::is_same<T, float>::value)
            begins = _mm512_cmp_ps_mask((__m512)here, (__m512)before, _CMP_NEQ_UQ);
        else if constexpr (std::is_same<T, double>::value)
            begins = _mm512_cmp_pd_mask((__m512d)here, (__m512d)before, _CMP_NEQ_UQ);
        else if constexpr (sizeof(T) == 4) begins = _mm512_cmpneq_epi32_mask(here, before);
        else begins = _mm512_cmpneq_epi64_mask(here, before);
        if constexpr (sizeof(T) == 4)
            _mm512_storeu_si512(value + found, _mm512_maskz_compress_epi32((__mmask16)begins, here));
        else _mm512_storeu_si512(value + found, _mm512_maskz_compress_epi64((__mmask8)begins, here));
        int64_t at = found;
        for (int j = 0; first && j < LANES; j += 8) {
            const __m512i places =
                _mm512_add_epi64(_mm512_set1_epi64(i + j), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
            const unsigned part = begins >> j & 0xff;
            _mm512_storeu_si512(first + at, _mm512_maskz_compress_epi64((__mmask8)part, places));
            at += __builtin_popcount(part);
        }
        found += __builtin_popcount(begins);
    }
    for (; i < n; ++i)
        if (data[i] != data[i - 1]) {
            value[found] = data[i];
            if (first) first[found] = i;
            ++found;
        }
    return found;
}
template <class T> constexpr bool BY_VECTORS = std::is_arithmetic<T>::value && sizeof(T) >= 4;
#endif

// Runs of equal neighbours. Each element is read once: the number of runs is that of the memory they are written to.
template <bool INVERSE, bool COUNTS, class T> void find_runs(const T* data, int64_t n, Distinct& d) {
    const Scratch values(n, sizeof(T)), starts(COUNTS ? n : 0, 8);
    T* value = values.as<T>();
    int64_t *first = starts.as<int64_t>(), *inverse = memory<int64_t>(d.inverse);
    int64_t found = 0, i = 0;
#if MT_HAS_LEVELS
    if constexpr (!INVERSE && BY_VECTORS<T>)
        if (cpu_level == AVX512 && n > 0) found = runs_avx512<T>(data, n, value, COUNTS ? first : nullptr), i = n;
#endif
    T last{};
    for (; i < n; ++i) {
        const T here = data[i];
        // Written in any case, kept where a run begins: no branch that cannot be foreseen.
        value[found] = here;
        if (COUNTS) first[found] = i;
        found += (i == 0) | (here != last);
        last = here;
        if (INVERSE) inverse[i] = found - 1;
    }
    d.found = found;
    d.values.reset(storage_new(found, sizeof(T)));
    d.counts.reset(storage_new(COUNTS ? found : 0, 8));
    d.served = true;
    if (found > 0) std::memcpy(memory<T>(d.values), value, checked_bytes(found, sizeof(T)));
    for (int64_t k = 0; COUNTS && k < found; ++k)
        memory<int64_t>(d.counts)[k] = (k + 1 < found ? first[k + 1] : n) - first[k];
}

// unique_consecutive(x(4), n, inverse, counts): as `unique`, of runs of equal elements as they stand
PyObject* unique_consecutive(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("unique_consecutive", nargs, 7);
        const Shape shape = run_of(as_int(args[4]));
        Operand x;
        parse_operand(args, shape, x);
        require_dense("unique_consecutive", shape, x);
        const bool inverse = as_bool(args[5]), counts = as_bool(args[6]);
        Distinct d;
        d.inverse.reset(storage_new(inverse ? shape.numel : 0, 8));
        with_type(x.code == BOOL ? (int)U8 : x.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            const T* data = x.as<T>();
            if (inverse && counts) find_runs<true, true>(data, shape.numel, d);
            else if (inverse) find_runs<true, false>(data, shape.numel, d);
            else if (counts) find_runs<false, true>(data, shape.numel, d);
            else find_runs<false, false>(data, shape.numel, d);
        });
        return d.answer();
    });
}

// ---------------------------------------------------------------- membership

// Whether each of n elements is one of `wanted`, which are sorted and none of which is NaN.
template <class T> void members(const T* x, int64_t n, const std::vector<T>& wanted, bool no, uint8_t* out) {
    const int64_t count = (int64_t)wanted.size();
    if constexpr (std::is_integral<T>::value) {
        const uint64_t span = count ? (uint64_t)(int64_t)wanted.back() - (uint64_t)(int64_t)wanted.front() : 0;
        if (count > 2 && span < ((uint64_t)1 << 20)) {
            std::vector<uint8_t> table((size_t)span + 2, no);
            const uint64_t least = (uint64_t)(int64_t)wanted.front();
            for (T v : wanted) table[(uint64_t)(int64_t)v - least] = !no;
            parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    out[i] = table[std::min((uint64_t)(int64_t)x[i] - least, span + 1)];
            });
            return;
        }
    }
    parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
        const T* row = wanted.data();
        if (count <= 16) {
            at_level(MT_BODY {
                for (int64_t i = begin; i < end; ++i) out[i] = no;
                for (int64_t k = 0; k < count; ++k)
                    for (int64_t i = begin; i < end; ++i) out[i] = x[i] == row[k] ? !no : out[i];
            });
            return;
        }
        const auto is_at = [&](int64_t at, T value) { return at < count && row[at] == value; };
        int64_t i = begin;
        for (; i + SEARCHES <= end; i += SEARCHES) {
            int64_t found[SEARCHES];
            T given[SEARCHES];
            std::copy(x + i, x + i + SEARCHES, given);
            places_of<false>(row, count, given, found);
            for (int j = 0; j < SEARCHES; ++j) out[i + j] = is_at(found[j], given[j]) != no;
        }
        for (; i < end; ++i) {
            const T given = x[i];
            out[i] = is_at(place_of(row, count, given, false), given) != no;
        }
    });
}

// isin(x(4), n, tests(4), count, out(4), invert): whether the dtype is served
PyObject* isin(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("isin", nargs, 15);
        const Shape shape = run_of(as_int(args[4])), count = run_of(as_int(args[9]));
        Operand x, tests, out;
        parse_operand(args, shape, x);
        parse_operand(args + 5, count, tests);
        parse_operand(args + 10, shape, out);
        require_dense("isin", shape, x);
        require_dense("isin", count, tests);
        require_dense("isin", shape, out);
        const bool no = as_bool(args[14]);
        if (x.code != tests.code || out.code != BOOL) Py_RETURN_FALSE;
        bool served = false;
        {
            GilRelease gil(saturated_mul(saturated_add(shape.numel, count.numel), 4));
            served = with_type(x.code, [&](auto* type) {
                using T = std::remove_pointer_t<decltype(type)>;
                std::vector<T> wanted;
                wanted.reserve((size_t)count.numel);
                for (int64_t i = 0; i < count.numel; ++i) {
                    const T v = tests.as<T>()[i];
                    if (!is_nan(v)) wanted.push_back(v);
                }
                std::sort(wanted.begin(), wanted.end());
                wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
                members(x.as<T>(), shape.numel, wanted, no, out.as<uint8_t>());
            });
        }
        return PyBool_FromLong(served);
    });
}

}  // namespace

PyMethodDef counting_methods[] = {
    MT_METHOD("bincount", bincount, "How often each int occurs; None for what is not counted here."),
    MT_METHOD("histc", histc, "How many elements fall into each of equal bins; False for dtypes that are not served."),
    MT_METHOD("mode", mode, "The commonest of each row and its place; False for dtypes that are not served."),
    MT_METHOD("unique", unique, "Distinct values in order, the run of each element, the lengths of the runs."),
    MT_METHOD("unique_consecutive", unique_consecutive, "The same of neighbours that are equal."),
    MT_METHOD("isin", isin, "Which elements are among others; False for dtypes that are not served."),
    {nullptr, nullptr, 0, nullptr}};
