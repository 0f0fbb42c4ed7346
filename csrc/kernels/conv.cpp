// Convolution and its gradients, of one to three dimensions, strided, dilated, in groups: float32, float64, and planes of
// float16 and bfloat16, whose sums are float32's.
// Invariant: what a kernel reads of the planes is a copy with zeros around it (conv.h). Each sum runs in an order that
// depends on the shapes alone.
//
// Every case is one form: sums over k of weight[row][k] * copy[offset[k] + place], for all places of a grid that lie
// side by side in the copy. Strides are made so by sorting the copy's rows and columns by their remainder; the gradient
// of the input, whose places at a distance of one stride see the same taps, is one such form for each remainder. Where a
// group has several rows the sums are products of panels (conv_panels.cpp); where it has one or few, each row is summed
// by itself (conv_rows.cpp); where it has one plane, rows are read as they lie if the CPU has masks (conv_planes.cpp). bfloat16 planes of several rows are copied as pairs, for the CPU's own products of them.
//
// Operands are dense: storage, offset, code; all of one dtype. Triples are tuples of three ints (depth, height, width).
//   conv(x.., weight.., bias.., out.., images, groups, channels, results, in, out, kernel, stride, padding, dilation)
//       channels and results: of one group; bias None: no bias
//   conv_input(grad.., weight.., None, 0, 0, dx.., the same)        the gradient of x; a transposed convolution
//   conv_weight(grad.., x.., None, 0, 0, dweight.., the same)
// They return False, with nothing written, for shapes whose copies would be out of proportion.
#include "conv.h"
#include "lanes.h"
#include "winograd.h"

namespace mt {
namespace {

constexpr int64_t COPY_BYTES = 1 << 24;  // of images that are copied at a time, unless one is larger

// ---------------------------------------------------------------- calls

struct Call {
    int64_t images, groups, channels, results;
    Window v;
    explicit Call(PyObject* const* args)
        : images(parse_count(args[0])), groups(parse_count(args[1])), channels(parse_count(args[2])),
          results(parse_count(args[3])), v(args + 4) {
        if (groups < 1 || v.kernel.size() < 1) fail(PyExc_ValueError, "a convolution without groups or kernel");
    }
    int64_t in_numel() const { return checked_numel({images, groups, channels, v.in.size()}); }
    int64_t out_numel() const { return checked_numel({images, groups, results, v.out.size()}); }
    int64_t weight_numel() const { return checked_numel({groups, results, channels, v.kernel.size()}); }
    bool empty() const { return in_numel() == 0 || out_numel() == 0 || weight_numel() == 0; }
};

// Whether a copied plane is in proportion to what is read and written.
bool in_proportion(const Padded& p, const Triple& a, const Triple& b, const Triple& kernel) {
    const int64_t copied =
        saturated_mul(saturated_mul(p.size.d, saturated_mul(p.split_h, p.lines)), saturated_mul(p.split, p.columns));
    const int64_t given = saturated_add(a.size(), saturated_mul(b.size(), kernel.size()));
    return copied <= saturated_mul(4, given);
}

// Calls f(first image, number of images, their copies) for as many images at a time as fit. E: what a copy is made of.
template <class E, class F> void with_copies(const Planes& x, int64_t images, const Padded& p, F&& f) {
    const int64_t planes = checked_mul(x.groups, x.copied()), image = checked_mul(planes, p.plane());
    const int64_t step =
        std::max<int64_t>(1, std::min(images, COPY_BYTES / int64_t(sizeof(E)) / std::max<int64_t>(1, image)));
    const Scratch room(checked_add(checked_mul(step, image), SLACK), sizeof(E));
    E* copy = room.as<E>();
    std::fill(copy + step * image, copy + step * image + SLACK, E(0));
    for (int64_t first = 0; first < images; first += step) {
        const int64_t count = std::min(step, images - first);
        parallel_for(count * planes, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, p.plane())),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                             E* to = copy + i * p.plane();
                             // What is around the planes stays as it is for the next images.
                             if (first == 0) std::fill(to, to + p.plane(), E(0));
                             copy_plane(x, first + i / planes, i % planes / x.copied(), i % x.copied(), to, p, 0,
                                        p.size.h);
                         }
                     });
        f(first, count, (const E*)copy);
    }
}

// Which rows of taps conv_rows.cpp reads once for several rows of places.
bool shares(int64_t high, int64_t step) {
    return step == 1 ? high == 3 || high == 5 || high == 7 : step == 2 && (high == 3 || high == 5);
}

// The form of a plain convolution, but for `grid.n`, `copy`, `out` and `bias`, and its weights. pairs: of channels.
template <class A> Form<A> plain_form(const Call& c, const Padded& p, bool pairs, Weights<A>* weights) {
    const Window& v = c.v;
    const int64_t planes = pairs ? ceil_div(c.channels, 2) : c.channels, taps = v.kernel.size();
    Form<A> f{};
    f.grid = {0, v.out.d, v.out.h, v.out.w};
    f.from = {c.groups * planes * p.plane(), v.stride.d * p.slice(), p.columns, 1};
    f.to = {c.groups * c.results * v.out.size(), v.out.h * v.out.w, v.out.w, 1};
    f.groups = c.groups, f.rows = c.results, f.pairs = pairs;
    f.group_from = planes * p.plane(), f.row_to = v.out.size();
    f.reach = (v.kernel.h - 1) * v.dilation.h + 1;
    f.offset.reserve((size_t)(planes * taps));
    for (int64_t m = 0; m < planes; ++m)
        for (int64_t a = 0; a < v.kernel.d; ++a)
            for (int64_t b = 0; b < v.kernel.h; ++b)
                for (int64_t e = 0; e < v.kernel.w; ++e)
                    f.offset.push_back(m * p.plane() + p.at(a * v.dilation.d, b * v.dilation.h, e * v.dilation.w));
    if (std::is_same<A, float>::value && v.dilation.h == 1 && !pairs && shares(v.kernel.h, v.stride.h)) {
        f.shared.high = v.kernel.h, f.shared.step = v.stride.h;
        for (int64_t m = 0; m < planes; ++m)
            for (int64_t a = 0; a < v.kernel.d; ++a)
                f.shared.base.push_back(m * p.plane() + a * v.dilation.d * p.slice());
        for (int64_t i = 0; i < 3 * v.stride.h + v.kernel.h; ++i) f.shared.row.push_back(p.at(0, i, 0));
        for (int64_t e = 0; e < v.kernel.w; ++e) f.shared.column.push_back(p.at(0, 0, e * v.dilation.w));
    }
    if (!weights) return f;
    weights->taps = pairs ? taps : 0;
    weights->group = c.results * c.channels * taps, weights->row = c.channels * taps;
    for (int64_t m = 0; m < planes; ++m)
        for (int64_t t = 0; t < taps; ++t) {
            weights->place.push_back((pairs ? 2 * m : m) * taps + t);
            if (pairs) weights->second.push_back(2 * m + 1 < c.channels ? (2 * m + 1) * taps + t : -1);
        }
    return f;
}

// Whether all of it was computed by Winograd's algorithm: 3 x 3 places, one apart. `back`: the gradient of the input, which
// is the same with weights turned around.
template <class A> bool by_winograd(const Call& c, const A* x, const A* weight, const A* bias, A* out, bool back) {
    const Window& v = c.v;
    if (v.in.d != 1 || v.out.d != 1 || v.kernel.d != 1 || v.kernel.h != 3 || v.kernel.w != 3 || v.stride.h != 1 ||
        v.stride.w != 1 || v.dilation.h != 1 || v.dilation.w != 1 || v.padding.d != 0 || v.padding.h > 2 ||
        v.padding.w > 2)
        return false;
    const Triple &from = back ? v.out : v.in, &to = back ? v.in : v.out;
    const int64_t k = back ? c.results : c.channels, rows = back ? c.channels : c.results;
    const int64_t taps = 9, weights = c.results * c.channels * taps;
    for (int64_t g = 0; g < c.groups; ++g) {
        const Winograd<A> part{c.images,
                               k,
                               rows,
                               from.h,
                               from.w,
                               to.h,
                               to.w,
                               back ? 2 - v.padding.h : v.padding.h,
                               back ? 2 - v.padding.w : v.padding.w,
                               x + g * k * from.size(),
                               c.groups * k * from.size(),
                               weight + g * weights,
                               back ? taps : c.channels * taps,
                               back ? c.channels * taps : taps,
                               back,
                               bias ? bias + g * rows : nullptr,
                               out + g * rows * to.size(),
                               c.groups * rows * to.size()};
        if (!part.worthwhile() || !part.run()) return false;
    }
    return true;
}

// Whether bfloat16 planes are multiplied in pairs, where each group has so many rows and planes.
bool in_pairs(int code, int64_t rows, int64_t planes, int64_t taps) {
    return code == BF16 && pair_engine(1) && planes > 1 && !by_rows(rows, planes * taps);
}

// What is read in A: as it is, or widened.
template <class A> class Wide {
public:
    Wide(const Dense& given, int64_t numel, bool wanted)
        : room_(wanted && given.data && given.code != CodeOf<A>::value ? numel : 0, sizeof(A)),
          data_(given.code == CodeOf<A>::value ? given.as<const A>() : nullptr) {
        if (!wanted || !given.data || data_) return;
        cast_block(room_.template as<char>(), CodeOf<A>::value, given.data, given.code, numel);
        data_ = room_.template as<A>();
    }
    const A* get() const { return data_; }

private:
    Scratch room_;
    const A* data_;
};

// Whether it was a product of matrices for each image: kernels of one place that see every place, of planes that are large.
template <class A>
bool by_product(const Call& c, const Dense& x, const Dense& weight, const A* bias, const Dense& out) {
    constexpr int64_t LARGE = 128;
    const Window& v = c.v;
    const int64_t places = v.in.size();
    if (v.kernel.size() != 1 || v.stride.size() != 1 || v.padding.d + v.padding.h + v.padding.w != 0) return false;
    if (v.out.d != v.in.d || v.out.h != v.in.h || v.out.w != v.in.w || c.results <= FEW_ROWS) return false;
    if (places < LARGE && c.images > 1) return false;
    const bool narrow = out.code != CodeOf<A>::value;
    const int64_t all = checked_mul(c.images, c.groups), size = ITEMSIZE[x.code];
    const Scratch room(narrow && !in_one_block(x.code, c.channels) ? checked_mul(c.results, places) : 0, sizeof(A));
    const auto one = [&](int64_t i, A* sums) {
        const int64_t g = i % c.groups;
        const A* added = bias ? bias + g * c.results : nullptr;
        Sink<A> to{narrow ? sums : out.as<A>() + i * c.results * places,
                   places,
                   1,
                   added,
                   1,
                   0,
                   A(1),
                   A(added && !narrow ? 1 : 0)};
        if constexpr (std::is_same<A, float>::value)
            if (narrow) {
                to.narrow = out.data + i * c.results * places * size, to.code = out.code, to.nrs = places, to.ncs = 1;
                to.added = added, to.ars = 1;
            }
        gemm_packed<A>({weight.data + g * c.results * c.channels * size, weight.code, c.channels, 1},
                       {x.data + i * c.channels * places * size, x.code, places, 1}, c.results, places, c.channels, to);
    };
    // Many images are handed out to the threads; of few, each is.
    if (all < 2 * num_threads() || num_threads() == 1) {
        for (int64_t i = 0; i < all; ++i) one(i, room.as<A>());
        return true;
    }
    parallel_for(all, 1, [&](int64_t begin, int64_t end) {
        const Scratch mine(narrow && !in_one_block(x.code, c.channels) ? checked_mul(c.results, places) : 0, sizeof(A));
        for (int64_t i = begin; i < end; ++i) one(i, mine.as<A>());
    });
    return true;
}

template <class A>
void forward(const Call& c, const Padded& p, const Dense& x, const Dense& weight, const A* bias, const Dense& out) {
    const int64_t taps = c.v.kernel.size();
    if (by_product(c, x, weight, bias, out)) return;
    const Planes planes{x.data, x.code, c.groups, c.channels, in_pairs(x.code, c.results, c.channels, taps)};
    const Wide<A> wide(weight, c.weight_numel(), !planes.pairs);
    if (x.code == CodeOf<A>::value && by_winograd(c, x.as<const A>(), wide.get(), bias, out.as<A>(), false)) return;
    if constexpr (std::is_same<A, float>::value)
        if (c.channels == 1 && planes_forward({c.images, c.groups, c.results, c.v, wide.get(), bias}, x, out)) return;
    Weights<A> w{wide.get(), weight.as<const uint16_t>(), 0, 0, {}, {}};
    Form<A> f = plain_form<A>(c, p, planes.pairs, &w);
    f.bias = bias, f.code = out.code, f.out = out.data;
    if (by_rows(f.rows, c.channels * taps)) return sum_rows<A>({f}, {w}, planes, c.images, p);
    with_copies<A>(planes, c.images, p, [&](int64_t first, int64_t count, const A* copy) {
        f.grid.n = count, f.copy = copy, f.out = out.data + first * f.to.n * ITEMSIZE[f.code];
        sum_panels(f, w);
    });
}

template <class A>
void weight_sums(const Call& c, const Padded& p, const Dense& grad, const Dense& x, A* out) {
    const Planes given{grad.data, grad.code, c.groups, c.results, false}, planes{x.data, x.code, c.groups, c.channels};
    if constexpr (std::is_same<A, float>::value)
        if (c.channels == 1 && planes_weight({c.images, c.groups, c.results, c.v, nullptr, nullptr}, grad, x, out))
            return;
    Form<A> f = plain_form<A>(c, p, false, nullptr);
    if (by_rows(f.rows, f.k())) {
        f.grid.n = 1;
        return weight_rows(f, given, planes, c.images, p, out);
    }
    std::fill(out, out + c.weight_numel(), A(0));
    auto run = [&](auto e) {
        using E = decltype(e);
        with_copies<E>(planes, c.images, p, [&](int64_t first, int64_t count, const E* copy) {
            f.grid.n = count;
            Planes part = given;
            part.data += first * f.to.n * ITEMSIZE[grad.code];
            weight_panels<A, E>(f, copy, part, out);
        });
    };
    if constexpr (std::is_same<A, float>::value)
        if (grad.code == BF16 && pair_engine(1)) return run(uint16_t());
    run(A());
}

template <class A>
void weight_gradient(const Call& c, const Padded& p, const Dense& grad, const Dense& x, const Dense& out) {
    if (out.code == CodeOf<A>::value) return weight_sums(c, p, grad, x, out.as<A>());
    const Scratch sums(c.weight_numel(), sizeof(A));
    weight_sums(c, p, grad, x, sums.as<A>());
    cast_block(out.data, out.code, sums.as<char>(), CodeOf<A>::value, c.weight_numel());
}

// The taps that reach the input places with these remainders: into the form and its weights.
template <class A>
void input_remainder(const Call& c, const Padded& p, const Triple& at, Form<A>& f, Weights<A>& w) {
    const Window& v = c.v;
    const Taps z(at.d, v.kernel.d, v.stride.d, v.padding.d, v.dilation.d, p.low.d);
    const Taps y(at.h, v.kernel.h, v.stride.h, v.padding.h, v.dilation.h, p.low.h);
    const Taps x(at.w, v.kernel.w, v.stride.w, v.padding.w, v.dilation.w, p.low.w);
    const int64_t taps = v.kernel.size(), planes = f.pairs ? ceil_div(c.results, 2) : c.results;
    for (int64_t m = 0; m < planes; ++m)
        for (size_t i = 0; i < z.tap.size(); ++i)
            for (size_t j = 0; j < y.tap.size(); ++j)
                for (size_t l = 0; l < x.tap.size(); ++l) {
                    f.offset.push_back(m * p.plane() + p.at(z.shift[i], y.shift[j], x.shift[l]));
                    const int64_t tap = (z.tap[i] * v.kernel.h + y.tap[j]) * v.kernel.w + x.tap[l];
                    const int64_t o = f.pairs ? 2 * m : m;
                    w.place.push_back(o * c.channels * taps + tap);
                    if (f.pairs) w.second.push_back(o + 1 < c.results ? (o + 1) * c.channels * taps + tap : -1);
                }
    for (const int64_t shift : y.shift) f.reach = std::max(f.reach, shift + 1);
    bool steady = std::is_same<A, float>::value && !f.pairs && shares((int64_t)y.tap.size(), 1) && !x.tap.empty() &&
                  !z.tap.empty();
    for (size_t j = 1; j < y.shift.size(); ++j) steady &= y.shift[j] == y.shift[j - 1] - 1;
    if (!steady) return;
    f.shared.high = (int64_t)y.tap.size(), f.shared.flipped = true;
    for (int64_t m = 0; m < planes; ++m)
        for (const int64_t shift : z.shift) f.shared.base.push_back(m * p.plane() + shift * p.slice());
    for (int64_t i = 0; i < 3 + f.shared.high; ++i) f.shared.row.push_back((y.shift.back() + i) * p.columns);
    f.shared.column = x.shift;
}

// One form for each remainder of the strides.
template <class A>
void input_forms(const Call& c, const Padded& p, const Form<A>& like, const A* wide, const uint16_t* narrow,
                 std::vector<Form<A>>& forms, std::vector<Weights<A>>& weights) {
    const Window& v = c.v;
    for (int64_t z = 0; z < std::min(v.stride.d, v.in.d); ++z)
        for (int64_t y = 0; y < std::min(v.stride.h, v.in.h); ++y)
            for (int64_t x = 0; x < std::min(v.stride.w, v.in.w); ++x) {
                Form<A> f = like;
                Weights<A> w{wide, narrow, c.results * c.channels * v.kernel.size(), v.kernel.size(), {}, {}};
                f.grid = {1, ceil_div(v.in.d - z, v.stride.d), ceil_div(v.in.h - y, v.stride.h),
                          ceil_div(v.in.w - x, v.stride.w)};
                f.out = like.at((z * v.in.h + y) * v.in.w + x);
                input_remainder(c, p, {z, y, x}, f, w);
                forms.push_back(std::move(f));
                weights.push_back(std::move(w));
            }
}

template <class A>
void input_gradient(const Call& c, const Padded& p, const Dense& grad, const Dense& weight, const A* bias,
                    const Dense& out) {
    const Window& v = c.v;
    const int64_t taps = v.kernel.size();
    const bool few = by_rows(c.channels, c.results * taps);
    const Planes planes{grad.data, grad.code, c.groups, c.results, in_pairs(grad.code, c.channels, c.results, taps)};
    const Wide<A> wide(weight, c.weight_numel(), !planes.pairs);
    if (grad.code == CodeOf<A>::value && by_winograd(c, grad.as<const A>(), wide.get(), bias, out.as<A>(), true))
        return;
    if constexpr (std::is_same<A, float>::value)
        if (c.channels == 1 && planes_input({c.images, c.groups, c.results, c.v, wide.get(), bias}, grad, out)) return;
    Form<A> f{};
    f.from = {c.groups * planes.copied() * p.plane(), p.slice(), p.columns, 1};
    f.to = {c.groups * c.channels * v.in.size(), v.stride.d * v.in.h * v.in.w, v.stride.h * v.in.w, v.stride.w};
    f.groups = c.groups, f.rows = c.channels, f.gradient = true, f.pairs = planes.pairs;
    f.group_from = planes.copied() * p.plane(), f.row_to = v.in.size();
    f.bias = bias, f.code = out.code, f.out = out.data;
    std::vector<Form<A>> forms, empty;
    std::vector<Weights<A>> weights;
    input_forms(c, p, f, wide.get(), weight.as<const uint16_t>(), forms, weights);
    if (few) return sum_rows(forms, weights, planes, c.images, p);
    for (const Form<A>& each : forms)  // places that no window reaches
        if (each.offset.empty()) empty.push_back(each);
    if (!empty.empty()) sum_rows(empty, std::vector<Weights<A>>(empty.size()), planes, c.images, p);
    with_copies<A>(planes, c.images, p, [&](int64_t first, int64_t count, const A* copy) {
        for (size_t i = 0; i < forms.size(); ++i) {
            Form<A> part = forms[i];
            if (part.offset.empty()) continue;
            part.grid.n = count, part.copy = copy, part.out = part.at(first * f.to.n);
            sum_panels(part, weights[i]);
        }
    });
}

enum class Kind { FORWARD, INPUT, WEIGHT };

template <Kind KIND> PyObject* convolve(const char* name, PyObject* const* args, Py_ssize_t nargs) {
    expect_args(name, nargs, 22);
    const Call c(args + 12);
    const int64_t in = c.in_numel(), out = c.out_numel(), weight = c.weight_numel();
    const Dense a = parse_dense(args, KIND == Kind::FORWARD ? in : out);
    const Dense b = parse_dense(args + 3, KIND == Kind::WEIGHT ? in : weight);
    const bool biased = args[6] != Py_None;
    const int64_t rows = checked_mul(c.groups, KIND == Kind::INPUT ? c.channels : c.results);
    const Dense bias = biased ? parse_dense(args + 6, rows) : Dense{nullptr, a.code};
    const Dense o = parse_dense(args + 9, KIND == Kind::FORWARD ? out : KIND == Kind::INPUT ? in : weight);
    if (a.code != b.code || a.code != o.code || a.code != bias.code)
        fail(PyExc_ValueError, "%s: operands of two dtypes", name);
    if (a.code != F32 && a.code != F64 && a.code != F16 && a.code != BF16) fail_dtype(name, a.code);
    if (KIND == Kind::WEIGHT && biased) fail(PyExc_ValueError, "%s: a gradient with a bias", name);
    if (c.empty()) Py_RETURN_FALSE;
    const Padded p = KIND == Kind::INPUT ? padded_gradient(c.v) : padded_input(c.v);
    if (!in_proportion(p, c.v.in, c.v.out, c.v.kernel)) Py_RETURN_FALSE;
    auto run = [&](auto t) {
        using A = decltype(t);
        GilRelease unlocked(saturated_mul(out, c.channels * c.v.kernel.size()));
        const Wide<A> added(bias, rows, biased);
        if (KIND == Kind::FORWARD) forward<A>(c, p, a, b, added.get(), o);
        else if (KIND == Kind::INPUT) input_gradient<A>(c, p, a, b, added.get(), o);
        else weight_gradient<A>(c, p, a, b, o);
    };
    if (a.code != F64) run(float());
    else run(double());
    Py_RETURN_TRUE;
}

PyObject* conv(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return convolve<Kind::FORWARD>("conv", args, nargs); });
}
PyObject* conv_input(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return convolve<Kind::INPUT>("conv_input", args, nargs); });
}
PyObject* conv_weight(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* { return convolve<Kind::WEIGHT>("conv_weight", args, nargs); });
}

// plane_sums(x.., out.., images, channels, places): the sum of each channel
PyObject* plane_sums(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("plane_sums", nargs, 9);
        const int64_t images = parse_count(args[6]), channels = parse_count(args[7]), places = parse_count(args[8]);
        const int64_t numel = checked_numel({images, channels, places});
        const Dense x = parse_dense(args, numel), o = parse_dense(args + 3, channels);
        if (x.code != o.code) fail(PyExc_ValueError, "plane_sums: operands of two dtypes");
        if (x.code != F32 && x.code != F64) fail_dtype("plane_sums", x.code);
        auto run = [&](auto t) {
            using A = decltype(t);
            GilRelease unlocked(numel);
            const int64_t each = numel / std::max<int64_t>(1, channels);
            parallel_for(channels, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each)),
                         [&](int64_t begin, int64_t end) {
                             for (int64_t c = begin; c < end; ++c) {
                                 A total = 0;
                                 at_level(MT_BODY {
                                     for (int64_t n = 0; n < images; ++n) {
                                         const A* plane = x.as<A>() + (n * channels + c) * places;
                                         total += sum_of<A>(places, MT_EACH(i) { return plane[i]; });
                                     }
                                 });
                                 o.as<A>()[c] = total;
                             }
                         });
        };
        if (x.code == F32) run(float());
        else run(double());
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef conv_methods[];  // no other file needs to know
PyMethodDef conv_methods[] = {MT_METHOD("conv", conv, "Convolution."),
                              MT_METHOD("conv_input", conv_input, "Convolution: the gradient of its input."),
                              MT_METHOD("conv_weight", conv_weight, "Convolution: the gradient of its weights."),
                              MT_METHOD("plane_sums", plane_sums, "The sum of each channel."),
                              {nullptr, nullptr, 0, nullptr}};
