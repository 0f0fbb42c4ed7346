// Writing by index: scatter along an axis, add, copy and fill by index, advanced assignment, slices assigned to.
#include <algorithm>

#include "advanced_index.h"
#include "combining.h"
#include "moving.h"

using namespace emu;

namespace {

// -- along one axis, an index for each element -----------------------------------------------------------------------
Dims at_least_1d(const Dims& dims) { return dims.n == 0 ? Dims{1} : dims; }

void plan_scatter(Plan& p, const char* self, const char* src, const char* out, int64_t reductions) {
    Dims shape = at_least_1d(p.tensor(self).dims), index = at_least_1d(p.tensor("index").dims);
    int64_t axis = p.axis("dim", shape.n);
    if (out != nullptr) {
        p.same_shape(self, out);
        p.same_dtype(self, out);
    }
    if (src != nullptr) p.same_dtype(self, src);
    if (reductions > 0) {
        int64_t how = p.integer("reduce");
        p.require(how >= 0 && how < reductions, "reduce is %lld, expected [0, %lld)", static_cast<long long>(how),
                  static_cast<long long>(reductions));
        p.require(how < kMax || !is_complex(p.tensor(self).dtype), "reduce is %lld, which complex numbers have not",
                  static_cast<long long>(how));
    }
    if (index.product() == 0) return;
    p.require(index.n == shape.n, "index has %d dimensions, %s has %d", index.n, self, shape.n);
    Dims source = src != nullptr ? at_least_1d(p.tensor(src).dims) : index;
    p.require(source.n == shape.n, "%s has %d dimensions, %s has %d", src, source.n, self, shape.n);
    for (int d = 0; d < shape.n; ++d) {
        p.require(index[d] <= source[d], "index has shape %s, which exceeds %s %s along axis %d", text(index).c_str(),
                  src, text(source).c_str(), d);
        p.require(d == axis || index[d] <= shape[d], "index has shape %s, which exceeds %s %s along axis %d",
                  text(index).c_str(), self, text(shape).c_str(), d);
    }
}

template <class T>
T quotient(T sum, int64_t count) {
    if constexpr (std::is_same_v<T, int64_t>) {
        int64_t q = sum / count;
        return sum % count != 0 && sum < 0 ? q - 1 : q;  // rounds down, as PyTorch
    } else {
        return sum / double(count);
    }
}

// `src` names a tensor, or a scalar when `value` is given.
void run_scatter(Run& r, const Tensor& self, const char* src, const char* value, const Tensor& out, int64_t how,
                 bool include_self = true) {
    const Tensor& index = r.tensor("index");
    Dims shape = at_least_1d(self.dims), places = at_least_1d(index.dims);
    int axis = int(wrap(r.integer("dim"), shape.n));
    auto picks = r.read<int64_t>(index);
    by_category(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(self);
        std::vector<T> given = src ? r.read<T>(r.tensor(src)) : std::vector<T>{r.scalar(value).as<T>()};
        Dims from = src ? at_least_1d(r.tensor(src).dims) : Dims{};
        std::vector<int64_t> count(x.size(), include_self ? 1 : 0);
        each_place(places, [&](int64_t i, const Dims& place) {
            Dims at = place;
            at[axis] = checked_index(picks[size_t(i)], shape[axis]);
            size_t to = size_t(position(shape, at));
            T v = given[size_t(position(from, place))];
            x[to] = count[to]++ == 0 ? v : combined(how, x[to], v);
        });
        if (how == kMean)
            for (size_t i = 0; i < x.size(); ++i)
                if (count[i] > 1) x[i] = quotient(x[i], count[i]);
        r.write(out, x);
    });
}

// -- along one axis, an index for each slice -------------------------------------------------------------------------
void plan_slices(Plan& p, const char* self, const char* source, const char* out) {
    const Tensor& x = p.tensor(self);
    const Tensor& index = p.tensor("index");
    p.require(index.rank() <= 1, "index has %d dimensions, expected 0 or 1", index.rank());
    int64_t axis = p.axis("dim", x.rank());
    if (out != nullptr) p.same_shape(self, out);
    if (source == nullptr) return;
    Dims want = x.rank() == 0 ? p.tensor(source).dims : resized(x.dims, axis, index.numel());
    p.shape(source, want);
}

// f(old, i, k): the new value of an element, from element k of source, or from its own place when there is none.
template <class F>
void run_slices(Run& r, const Tensor& self, const std::vector<int64_t>& picks, const char* source, const Tensor& out,
                F f) {
    Dims shape = at_least_1d(self.dims);
    Lines lines(shape, wrap(r.integer("dim"), shape.n));
    for (int64_t pick : picks) checked_index(pick, lines.length);
    by_category(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(self);
        std::vector<T> given = source ? r.read<T>(r.tensor(source)) : std::vector<T>(x.size());
        int64_t count = int64_t(picks.size());
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t k = 0; k < count; ++k)
                for (int64_t i = 0; i < lines.inner; ++i) {
                    T& old = x[size_t(lines.at(o, picks[size_t(k)], i))];
                    old = f(old, source ? given[size_t((o * count + k) * lines.inner + i)] : T{});
                }
        r.write(out, x);
    });
}

void run_index_add(Run& r) {
    const Scalar& alpha = r.scalar("alpha");
    run_slices(r, r.tensor("self"), r.read<int64_t>(r.tensor("index")), "source", r.tensor("out"),
               [&](auto old, auto v) { return old + alpha.as<decltype(old)>() * v; });
}

void run_index_copy(Run& r, const Tensor& out) {
    run_slices(r, r.tensor("selfRef"), r.read<int64_t>(r.tensor("index")), "source", out,
               [](auto, auto v) { return v; });
}

void run_index_fill(Run& r, const Tensor& self, const std::vector<int64_t>& picks, const Tensor& out) {
    const Scalar& value = r.scalar("value");
    run_slices(r, self, picks, nullptr, out, [&](auto old, auto) { return value.as<decltype(old)>(); });
}

// Indices on the host are checked before the launch; negative ones count from the end.
void plan_host_index(Plan& p, const char* self) {
    Dims shape = at_least_1d(p.tensor(self).dims);
    int64_t size = shape[int(p.axis("dim", shape.n))];
    for (int64_t i : p.ints("index"))
        p.require(i >= -size && i < size, "index %lld is out of range [-%lld, %lld)", static_cast<long long>(i),
                  static_cast<long long>(size), static_cast<long long>(size));
}

std::vector<int64_t> host_index(const Run& r, const Tensor& self) {
    Dims shape = at_least_1d(self.dims);
    int64_t size = shape[int(wrap(r.integer("dim"), shape.n))];
    std::vector<int64_t> picks = r.ints("index");
    for (int64_t& i : picks) i = i < 0 ? i + size : i;
    return picks;
}

// -- slices ----------------------------------------------------------------------------------------------------------
// What begin, end and strides select along each axis; axes left out are whole.
std::vector<Cut> cuts_of(const Call& call, const Dims& dims) {
    const auto& axes = call.ints("axesOptional");
    std::vector<Cut> cuts = whole(dims);
    for (size_t k = 0; k < call.ints("begin").size(); ++k) {
        int axis = axes.empty() ? int(k) : int(wrap(axes[k], dims.n));
        cuts[size_t(axis)] = cut_of(dims[axis], call.ints("begin")[k], call.ints("end")[k], call.ints("strides")[k]);
    }
    return cuts;
}

void plan_slice_assign(Plan& p) {
    const Tensor& var = p.tensor("varRef");
    const auto &begin = p.ints("begin"), &strides = p.ints("strides"), &axes = p.ints("axesOptional");
    p.same_dtype("varRef", "inputValue");
    p.require(begin.size() == p.ints("end").size() && begin.size() == strides.size() && int(begin.size()) <= var.rank(),
              "begin, end and strides have %zu, %zu and %zu entries, expected as many each, at most %d", begin.size(),
              p.ints("end").size(), strides.size(), var.rank());
    p.require(axes.empty() || axes.size() == begin.size(), "axesOptional has %zu entries, begin has %zu", axes.size(),
              begin.size());
    for (int64_t axis : axes) p.axis(axis, var.rank(), "axesOptional");
    for (size_t k = 0; k < strides.size(); ++k) {
        int axis = axes.empty() ? int(k) : int(wrap(axes[k], var.rank()));
        p.require(strides[k] > 0, "strides[%zu] is %lld, expected a positive number", k,
                  static_cast<long long>(strides[k]));
        p.require(axis != var.rank() - 1 || strides[k] == 1, "the stride of the last axis is %lld, expected 1",
                  static_cast<long long>(strides[k]));
    }
    p.shape("inputValue", counts(cuts_of(p, var.dims)));
}

void run_slice_assign(Run& r) {
    const Tensor& var = r.tensor("varRef");
    const Tensor& value = r.tensor("inputValue");
    auto cuts = cuts_of(r, var.dims);
    by_category(category(var.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(var);
        auto v = r.read<T>(value);
        each_place(value.dims, [&](int64_t i, const Dims& place) {
            x[size_t(position(var.dims, cuts, place))] = v[size_t(i)];
        });
        r.write(var, x);
    });
}

}  // namespace

ACLNN(aclnnScatterAdd, PLAN { plan_scatter(p, "self", "src", "out", 0); },
      RUN { run_scatter(r, r.tensor("self"), "src", nullptr, r.tensor("out"), kAdd); })
ACLNN(aclnnScatter, PLAN { plan_scatter(p, "self", "src", "out", 3); },
      RUN { run_scatter(r, r.tensor("self"), "src", nullptr, r.tensor("out"), r.integer("reduce")); })
ACLNN(aclnnScatterValue, PLAN { plan_scatter(p, "self", nullptr, "out", 3); },
      RUN { run_scatter(r, r.tensor("self"), nullptr, "value", r.tensor("out"), r.integer("reduce")); })
ACLNN(aclnnInplaceScatter, PLAN { plan_scatter(p, "selfRef", "src", nullptr, 3); },
      RUN { run_scatter(r, r.tensor("selfRef"), "src", nullptr, r.tensor("selfRef"), r.integer("reduce")); })
ACLNN(aclnnInplaceScatterValue, PLAN { plan_scatter(p, "selfRef", nullptr, nullptr, 3); },
      RUN { run_scatter(r, r.tensor("selfRef"), nullptr, "value", r.tensor("selfRef"), r.integer("reduce")); })
ACLNN(aclnnScatterReduce, PLAN { plan_scatter(p, "self", "src", "out", 6); },
      RUN {
          run_scatter(r, r.tensor("self"), "src", nullptr, r.tensor("out"), r.integer("reduce"), r.flag("includeSelf"));
      })
ACLNN(aclnnInplaceScatterReduce, PLAN { plan_scatter(p, "selfRef", "src", nullptr, 6); },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          run_scatter(r, self, "src", nullptr, self, r.integer("reduce"), r.flag("includeSelf"));
      })

ACLNN(aclnnIndexAdd, PLAN { plan_slices(p, "self", "source", "out"); }, RUN { run_index_add(r); })
// mode chooses between speed and precision; both give the same sum here.
ACLNN(aclnnIndexAddV2,
      PLAN {
          plan_slices(p, "self", "source", "out");
          int64_t mode = p.integer("mode");
          p.require(mode == 0 || mode == 1, "mode is %lld, expected 0 or 1", static_cast<long long>(mode));
      },
      RUN { run_index_add(r); })
ACLNN(aclnnIndexCopy, PLAN { plan_slices(p, "selfRef", "source", "outRef"); },
      RUN { run_index_copy(r, r.tensor("outRef")); })
ACLNN(aclnnInplaceIndexCopy, PLAN { plan_slices(p, "selfRef", "source", nullptr); },
      RUN { run_index_copy(r, r.tensor("selfRef")); })
ACLNN(aclnnIndexFill, PLAN { plan_slices(p, "self", nullptr, "out"); },
      RUN { run_index_fill(r, r.tensor("self"), r.read<int64_t>(r.tensor("index")), r.tensor("out")); })
ACLNN(aclnnInplaceIndexFill, PLAN { plan_slices(p, "selfRef", nullptr, nullptr); },
      RUN { run_index_fill(r, r.tensor("selfRef"), r.read<int64_t>(r.tensor("index")), r.tensor("selfRef")); })
ACLNN(aclnnIndexFillTensor,
      PLAN {
          plan_host_index(p, "self");
          p.same_shape("self", "out");
      },
      RUN { run_index_fill(r, r.tensor("self"), host_index(r, r.tensor("self")), r.tensor("out")); })
ACLNN(aclnnInplaceIndexFillTensor, PLAN { plan_host_index(p, "selfRef"); },
      RUN { run_index_fill(r, r.tensor("selfRef"), host_index(r, r.tensor("selfRef")), r.tensor("selfRef")); })

// self[index, index, ..] = values. Bounds are checked whatever `unsafe` says.
ACLNN(aclnnIndexPutImpl,
      PLAN {
          AdvancedIndex index(p.tensor("selfRef"), p.tensors("indices"));
          index.require_broadcast(p, "values");
          p.workspace = 16 * 1024;
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          const Tensor& values = r.tensor("values");
          AdvancedIndex index(self, r.tensors("indices"));
          Dims shape = index.resolve(r), both;
          if (!broadcast(shape, values.dims, &both) || both != shape)
              fault("values of shape %s do not broadcast to %s", text(values.dims).c_str(), text(shape).c_str());
          bool accumulate = r.flag("accumulate");
          by_real_or_integer(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self);
              auto v = r.read<T>(values, shape);
              each_place(shape, [&](int64_t i, const Dims& place) {
                  T& old = x[size_t(index.source(place))];
                  old = accumulate ? T(old + v[size_t(i)]) : v[size_t(i)];
              });
              r.write(self, x);
          });
      })

ACLNN(aclnnInplacePut,
      PLAN {
          p.require(p.tensor("source").numel() == p.tensor("index").numel(), "source has %lld elements, index has %lld",
                    static_cast<long long>(p.tensor("source").numel()),
                    static_cast<long long>(p.tensor("index").numel()));
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          auto picks = r.read<int64_t>(r.tensor("index"));
          by_category(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self);
              auto v = r.read<T>(r.tensor("source"));
              for (size_t i = 0; i < picks.size(); ++i) {
                  T& old = x[size_t(wrapped_index(picks[i], self.numel()))];
                  old = r.flag("accumulate") ? T(old + v[i]) : v[i];
              }
              r.write(self, x);
          });
      })
ACLNN(aclnnInplaceMaskedScatter,
      PLAN {
          const Dims& self = p.tensor("selfRef").dims;
          Dims both;
          p.require(broadcast(self, p.tensor("mask").dims, &both) && both == self,
                    "mask has shape %s, which does not broadcast to %s", text(p.tensor("mask").dims).c_str(),
                    text(self).c_str());
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          auto mask = r.read<int64_t>(r.tensor("mask"), self.dims);
          by_real_or_integer(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self);
              auto source = r.read<T>(r.tensor("source"));
              size_t next = 0;
              for (size_t i = 0; i < x.size(); ++i) {
                  if (!mask[i]) continue;
                  if (next == source.size()) fault("mask has more than %zu true elements, as many as source has", next);
                  x[i] = source[next++];
              }
              r.write(self, x);
          });
      })

ACLNN(aclnnStridedSliceAssignV2, PLAN { plan_slice_assign(p); }, RUN { run_slice_assign(r); })
