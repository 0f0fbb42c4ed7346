// Writing by index: scatter along an axis, add, copy and fill by index, advanced assignment, slices assigned to.
#include <algorithm>

#include "advanced_index.h"
#include "moving.h"

using namespace emu;

namespace {

enum Reduce { kReplace, kAdd, kMultiply, kMax, kMin, kMean };

template <class T>
T combined(int64_t how, T old, T value) {
    switch (how) {
        case kAdd: case kMean: return old + value;
        case kMultiply: return old * value;
        default: break;
    }
    if constexpr (!std::is_same_v<T, Complex>) {
        if (how == kMax) return old != old || old > value ? old : value;
        if (how == kMin) return old != old || old < value ? old : value;
    }
    return value;
}

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

// -- rows of coordinates ---------------------------------------------------------------------------------------------
void plan_scatter_nd(Plan& p, const char* data) {
    const Tensor& x = p.tensor(data);
    const Tensor& indices = p.tensor("indices");
    p.require(indices.rank() >= 1 && indices.dims.back() <= x.rank(),
              "indices has shape %s: its last size must be at most the rank of %s, %d", text(indices.dims).c_str(),
              data, x.rank());
    Dims want;
    for (int d = 0; d + 1 < indices.rank(); ++d) want.push(indices.dims[d]);
    for (int d = int(indices.dims.back()); d < x.rank(); ++d) want.push(x.dims[d]);
    p.shape("updates", want);
    p.same_dtype(data, "updates");
}

void run_scatter_nd(Run& r, const Tensor& data, const Tensor& out) {
    const Tensor& indices = r.tensor("indices");
    auto rows = r.read<int64_t>(indices);
    int64_t depth = indices.dims.back(), slice = 1;
    for (int d = int(depth); d < data.rank(); ++d) slice *= data.dims[d];
    by_category(category(data.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(data);
        auto updates = r.read<T>(r.tensor("updates"));
        int64_t count = slice == 0 ? 0 : int64_t(updates.size()) / slice;
        for (int64_t k = 0; k < count; ++k) {
            int64_t at = 0;
            for (int d = 0; d < depth; ++d) at = at * data.dims[d] + checked_index(rows[size_t(k * depth + d)], data.dims[d]);
            std::copy_n(updates.begin() + k * slice, slice, x.begin() + at * slice);
        }
        r.write(out, x);
    });
}

// -- slices ----------------------------------------------------------------------------------------------------------
struct Cut {
    int64_t start = 0, step = 1, count = 0;
};

// What begin, end and strides select along each axis; axes left out are whole.
std::vector<Cut> cuts_of(const Call& call, const Dims& dims) {
    const auto &begin = call.ints("begin"), &end = call.ints("end"), &strides = call.ints("strides");
    const auto& axes = call.ints("axesOptional");
    std::vector<Cut> cuts;
    for (int64_t size : dims) cuts.push_back({0, 1, size});
    for (size_t k = 0; k < begin.size(); ++k) {
        int axis = axes.empty() ? int(k) : int(wrap(axes[k], dims.n));
        int64_t size = dims[axis];
        auto clamp = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
        int64_t from = clamp(begin[k]), to = clamp(end[k]);
        cuts[size_t(axis)] = {from, strides[k], to > from ? (to - from + strides[k] - 1) / strides[k] : 0};
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
    Dims want;
    for (const Cut& cut : cuts_of(p, var.dims)) want.push(cut.count);
    p.shape("inputValue", want);
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
            Dims at = place;
            for (int d = 0; d < at.n; ++d) at[d] = cuts[size_t(d)].start + place[d] * cuts[size_t(d)].step;
            x[size_t(position(var.dims, at))] = v[size_t(i)];
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

ACLNN(aclnnScatterNd,
      PLAN {
          plan_scatter_nd(p, "data");
          p.same_shape("data", "out");
          p.same_dtype("data", "out");
      },
      RUN { run_scatter_nd(r, r.tensor("data"), r.tensor("out")); })
ACLNN(aclnnScatterNdUpdate, PLAN { plan_scatter_nd(p, "varRef"); },
      RUN { run_scatter_nd(r, r.tensor("varRef"), r.tensor("varRef")); })

// data[i, .., indices[i] + k, ..] = updates[i, .., k, ..] along an axis, i from 0; an index of two columns gives i too.
ACLNN(aclnnInplaceScatterUpdate,
      PLAN {
          const Tensor& data = p.tensor("data");
          const Tensor& updates = p.tensor("updates");
          const Tensor& indices = p.tensor("indices");
          p.same_dtype("data", "updates");
          p.require(data.rank() == updates.rank(), "updates has %d dimensions, data has %d", updates.rank(), data.rank());
          int64_t axis = p.axis("axis", data.rank());
          p.require(axis != 0, "axis is 0, which is the batch");
          p.require(indices.rank() < 2 || indices.dims[1] == 2, "indices has shape %s, expected two columns",
                    text(indices.dims).c_str());
          int64_t rows = indices.rank() == 0 ? 1 : indices.dims[0];
          p.require(rows == updates.dims[0], "indices has %lld rows, updates has %lld", static_cast<long long>(rows),
                    static_cast<long long>(updates.dims[0]));
          for (int d = 0; d < data.rank(); ++d)
              p.require(d == 0 || d == axis ? updates.dims[d] <= data.dims[d] : updates.dims[d] == data.dims[d],
                        "updates has shape %s, which does not fit data %s along axis %d", text(updates.dims).c_str(),
                        text(data.dims).c_str(), d);
      },
      RUN {
          const Tensor& data = r.tensor("data");
          const Tensor& updates = r.tensor("updates");
          bool pairs = r.tensor("indices").rank() == 2;
          int axis = int(wrap(r.integer("axis"), data.rank()));
          auto rows = r.read<int64_t>(r.tensor("indices"));
          by_real_or_integer(category(data.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(data);
              auto v = r.read<T>(updates);
              each_place(updates.dims, [&](int64_t i, const Dims& place) {
                  Dims at = place;
                  size_t k = size_t(place[0]);
                  if (pairs) at[0] = checked_index(rows[2 * k], data.dims[0]);
                  at[axis] = checked_index(rows[pairs ? 2 * k + 1 : k] + place[axis], data.dims[axis]);
                  x[size_t(position(data.dims, at))] = v[size_t(i)];
              });
              r.write(data, x);
          });
      })

ACLNN(aclnnStridedSliceAssignV2, PLAN { plan_slice_assign(p); }, RUN { run_slice_assign(r); })
