// Windows, shuffles and repetitions: im2col, unfold's gradient, repeat_interleave, one-hot, TensorFlow's strided slice.
#include <algorithm>

#include "moving.h"

using namespace emu;

namespace {

// -- im2col ----------------------------------------------------------------------------------------------------------
// (N, C, H, W) to (N, C * kh * kw, L), the batch optional in both.
struct Windows {
    int64_t batch = 1, channels, size[2], kernel[2], dilation[2], padding[2], stride[2], count[2];

    Windows(const Call& c, const Dims& image) {
        int at = image.n - 3;
        if (at == 1) batch = image[0];
        channels = image[at];
        for (int k = 0; k < 2; ++k) {
            size[k] = image[at + 1 + k];
            kernel[k] = pair(c, "kernelSize", k);
            dilation[k] = pair(c, "dilation", k);
            padding[k] = pair(c, "padding", k);
            stride[k] = pair(c, "stride", k);
            count[k] = (size[k] + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1) / stride[k] + 1;
        }
    }
    Dims columns(bool batched) const {
        Dims out;
        if (batched) out.push(batch);
        out.push(channels * kernel[0] * kernel[1]);
        out.push(count[0] * count[1]);
        return out;
    }
    // The pixel of a place of the columns.
    int64_t pixel(const Dims& place) const {
        int64_t n = place.n == 3 ? place[0] : 0, row = place[place.n - 2], window = place[place.n - 1];
        int64_t k[2] = {row / kernel[1] % kernel[0], row % kernel[1]};
        int64_t w[2] = {window / count[1], window % count[1]};
        int64_t at[2];
        for (int d = 0; d < 2; ++d) {
            at[d] = w[d] * stride[d] - padding[d] + k[d] * dilation[d];
            if (at[d] < 0 || at[d] >= size[d]) return kNowhere;
        }
        return ((n * channels + row / (kernel[0] * kernel[1])) * size[0] + at[0]) * size[1] + at[1];
    }
    static int64_t pair(const Call& c, const char* name, int k) {
        const auto& list = c.ints(name);
        return list.size() == 1 ? list[0] : list[size_t(k)];
    }
};

void require_windows(const Plan& p, const Dims& image) {
    for (const char* name : {"kernelSize", "dilation", "padding", "stride"}) {
        const auto& list = p.ints(name);
        p.require(list.size() == 1 || list.size() == 2, "%s has %zu entries, expected 1 or 2", name, list.size());
        int64_t least = name[0] == 'p' ? 0 : 1;
        for (int64_t v : list)
            p.require(v >= least, "%s is %lld, expected at least %lld", name, static_cast<long long>(v),
                      static_cast<long long>(least));
    }
    Windows w(p, image);
    for (int k = 0; k < 2; ++k)
        p.require(w.size[k] + 2 * w.padding[k] >= w.dilation[k] * (w.kernel[k] - 1) + 1,
                  "the kernel does not fit into the padded image %s", text(image).c_str());
}

// -- repetition ------------------------------------------------------------------------------------------------------
void require_output_size(const Plan& p, int64_t got) {
    p.require(p.integer("outputSize") == got, "outputSize is %lld, out has %lld",
              static_cast<long long>(p.integer("outputSize")), static_cast<long long>(got));
}

// How often each slice of `length` comes; one entry speaks for all.
std::vector<int64_t> repeats_of(const Run& r, int64_t length, int64_t size) {
    auto repeats = r.read<int64_t>(r.tensor("repeats"));
    if (repeats.size() == 1) repeats.assign(size_t(length), repeats[0]);
    int64_t total = 0;
    for (int64_t n : repeats) {
        if (n < 0) fault("repeats has the negative entry %lld", static_cast<long long>(n));
        total += n;
    }
    if (total != size)
        fault("repeats sums to %lld, out has %lld", static_cast<long long>(total), static_cast<long long>(size));
    return repeats;
}

void require_repeats(const Plan& p, int64_t length) {
    int64_t n = p.tensor("repeats").numel();
    p.require(n == 1 || n == length, "repeats has %lld elements, expected 1 or %lld", static_cast<long long>(n),
              static_cast<long long>(length));
}

// Slices along an axis, each as often as said.
void write_repeated(Run& r, const Dims& dims, int64_t axis, const std::vector<int64_t>& repeats) {
    const Tensor& self = r.tensor("self");
    Lines lines(dims, axis);
    by_category(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(self);
        std::vector<T> y;
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t k = 0; k < lines.length; ++k)
                for (int64_t n = 0; n < repeats[size_t(k)]; ++n) {
                    auto from = x.begin() + lines.at(o, k, 0);
                    y.insert(y.end(), from, from + lines.inner);
                }
        r.write(r.tensor("out"), y);
    });
}

Dims flat(const Tensor& t) { return {t.numel()}; }

void plan_repeat_flat(Plan& p) {
    p.same_dtype("self", "out");
    require_output_size(p, p.tensor("out").numel());
}

int64_t plan_repeat_along(Plan& p) {
    const Tensor& self = p.tensor("self");
    int64_t axis = p.axis("dim", self.rank());
    p.same_dtype("self", "out");
    p.shape("out", resized(self.dims, axis, p.integer("outputSize")));
    return axis;
}

// -- TensorFlow's strided slice --------------------------------------------------------------------------------------
// The sparse specification, made dense: a cut per axis of self, and the shape of the result.
struct StridedSlice {
    std::vector<Cut> cuts;
    Dims shape;                  // of the result
    std::vector<int> axis;       // of self, for each axis of the result; -1: a new one

    StridedSlice(const Call& c, const Dims& dims) {
        const auto &begin = c.ints("begin"), &end = c.ints("end"), &strides = c.ints("strides");
        auto set = [&](const char* mask, size_t k) { return (c.integer(mask) >> k & 1) != 0; };
        size_t n = begin.size(), real = 0;
        bool ellipsis = false;
        for (size_t k = 0; k < n; ++k) {
            if (set("ellipsisMask", k)) ellipsis = true;
            else if (!set("newAxisMask", k)) ++real;
        }
        int rest = dims.n - int(real), d = 0;
        if (rest < 0) {
            fits = false;
            return;
        }
        auto keep = [&](int count) {
            for (int i = 0; i < count; ++i, ++d) {
                cuts.push_back({0, 1, dims[d]});
                shape.push(dims[d]);
                axis.push_back(d);
            }
        };
        for (size_t k = 0; k < n; ++k) {
            if (set("ellipsisMask", k)) {
                keep(rest);
            } else if (set("newAxisMask", k)) {
                shape.push(1);
                axis.push_back(-1);
            } else {
                int64_t size = dims[d], step = strides[k], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
                if (set("shrinkAxisMask", k)) {
                    int64_t at = begin[k] < 0 ? begin[k] + size : begin[k];
                    fits = fits && at >= 0 && at < size;
                    cuts.push_back({at, 1, 1});
                } else {
                    auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
                    int64_t from = set("beginMask", k) ? (step > 0 ? low : high) : clamp(begin[k]);
                    int64_t to = set("endMask", k) ? (step > 0 ? high : low) : clamp(end[k]);
                    int64_t count = std::max<int64_t>(0, (to - from + step - (step > 0 ? 1 : -1)) / step);
                    cuts.push_back({from, step, count});
                    shape.push(count);
                    axis.push_back(d);
                }
                ++d;
            }
        }
        if (!ellipsis) keep(dims.n - d);
    }
    bool fits = true;
};

}  // namespace

ACLNN(aclnnIm2col,
      PLAN {
          const Tensor& self = p.tensor("self");
          require_windows(p, self.dims);
          p.shape("out", Windows(p, self.dims).columns(self.rank() == 4));
          p.same_dtype("self", "out");
      },
      RUN {
          const Tensor& self = r.tensor("self");
          Windows windows(r, self.dims);
          copy_from(r, self, r.tensor("out"), [&](const Dims& place) { return windows.pixel(place); });
      })
// Overlapping columns are added up.
ACLNN(aclnnIm2colBackward,
      PLAN {
          const Tensor& out = p.tensor("out");
          const auto& size = p.ints("inputSize");
          p.require(out.rank() == 3 || out.rank() == 4, "out has %d dimensions, expected 3 or 4", out.rank());
          p.require(size.size() == 2 && out.dims[out.rank() - 2] == size[0] && out.dims.back() == size[1],
                    "out has shape %s, whose last sizes must be inputSize", text(out.dims).c_str());
          require_windows(p, out.dims);
          p.shape("gradOutput", Windows(p, out.dims).columns(out.rank() == 4));
          p.same_dtype("gradOutput", "out");
      },
      RUN {
          const Tensor& out = r.tensor("out");
          Windows windows(r, out.dims);
          add_back(r, r.tensor("gradOutput"), out, [&](const Dims& place) { return windows.pixel(place); });
      })
// unfold puts windows of `size` elements, `step` apart, into a new last axis.
ACLNN(aclnnUnfoldGrad,
      PLAN {
          Dims input(p.ints("inputSizes").data(), p.ints("inputSizes").size());
          int64_t axis = p.axis("dim", input.n), size = p.integer("size"), step = p.integer("step");
          p.require(step > 0, "step is %lld, expected a positive number", static_cast<long long>(step));
          p.require(size > 0 && size <= input[int(axis)], "size is %lld, expected [1, %lld]",
                    static_cast<long long>(size), static_cast<long long>(input[int(axis)]));
          Dims want = resized(input, axis, (input[int(axis)] - size) / step + 1);
          want.push(size);
          p.shape("gradOut", want);
          p.shape("gradIn", input);
      },
      RUN {
          const Tensor& in = r.tensor("gradIn");
          int axis = int(wrap(r.integer("dim"), in.rank()));
          add_back(r, r.tensor("gradOut"), in, [&](Dims place) {
              place[axis] = place[axis] * r.integer("step") + place[place.n - 1];
              --place.n;
              return position(in.dims, place);
          });
      })
ACLNN(aclnnChannelShuffle,
      PLAN {
          const Tensor& self = p.tensor("self");
          int64_t groups = p.integer("groups");
          p.require(groups > 0 && self.dims[1] % groups == 0, "groups is %lld, which does not divide %lld channels",
                    static_cast<long long>(groups), static_cast<long long>(self.dims[1]));
          p.same_shape("self", "out");
          p.same_dtype("self", "out");
      },
      RUN {
          const Tensor& self = r.tensor("self");
          int64_t groups = r.integer("groups"), each = self.dims[1] / groups;
          copy_from(r, self, r.tensor("out"), [&](Dims place) {
              place[1] = place[1] % groups * each + place[1] / groups;
              return position(self.dims, place);
          });
      })

ACLNN(aclnnRepeatInterleave,
      PLAN {
          plan_repeat_flat(p);
          require_repeats(p, p.tensor("self").numel());
      },
      RUN {
          Dims dims = flat(r.tensor("self"));
          write_repeated(r, dims, 0, repeats_of(r, dims[0], r.tensor("out").numel()));
      })
ACLNN(aclnnRepeatInterleaveInt,
      PLAN {
          plan_repeat_flat(p);
          int64_t n = p.integer("repeats"), want = n * p.tensor("self").numel();
          p.require(n >= 0, "repeats is %lld, expected a number not below 0", static_cast<long long>(n));
          p.shape("out", {want});
      },
      RUN {
          Dims dims = flat(r.tensor("self"));
          write_repeated(r, dims, 0, std::vector<int64_t>(size_t(dims[0]), r.integer("repeats")));
      })
ACLNN(aclnnRepeatInterleaveIntWithDim,
      PLAN {
          int axis = int(plan_repeat_along(p));
          int64_t n = p.integer("repeats"), size = p.tensor("self").dims[axis];
          p.require(n >= 0, "repeats is %lld, expected a number not below 0", static_cast<long long>(n));
          require_output_size(p, n * size);
      },
      RUN {
          const Tensor& self = r.tensor("self");
          int64_t axis = wrap(r.integer("dim"), self.rank());
          write_repeated(r, self.dims, axis, std::vector<int64_t>(size_t(self.dims[int(axis)]), r.integer("repeats")));
      })
ACLNN(aclnnRepeatInterleaveWithDim,
      PLAN {
          int axis = int(plan_repeat_along(p));
          require_repeats(p, p.tensor("self").dims[axis]);
      },
      RUN {
          const Tensor& self = r.tensor("self");
          int axis = int(wrap(r.integer("dim"), self.rank()));
          write_repeated(r, self.dims, axis, repeats_of(r, self.dims[axis], r.tensor("out").dims[axis]));
      })
// The places themselves, each as often as said.
ACLNN(aclnnRepeatInterleaveTensor,
      PLAN {
          p.same_dtype("repeats", "out");
          require_output_size(p, p.tensor("out").numel());
      },
      RUN {
          const Tensor& out = r.tensor("out");
          int64_t length = r.tensor("repeats").numel();
          std::vector<int64_t> y;
          auto repeats = repeats_of(r, length, out.numel());
          for (int64_t k = 0; k < length; ++k) y.insert(y.end(), size_t(repeats[size_t(k)]), k);
          r.write(out, y);
      })
ACLNN(aclnnRepeatInterleaveGrad,
      PLAN {
          const Tensor& grad = p.tensor("yGrad");
          const Tensor& out = p.tensor("out");
          int64_t axis = p.axis("axis", grad.rank());
          p.require(out.rank() == grad.rank(), "out has %d dimensions, expected %d", out.rank(), grad.rank());
          p.require(grad.rank() > 0, "yGrad has no dimensions");
          p.shape("out", resized(grad.dims, axis, out.dims[int(axis)]));
          require_repeats(p, out.dims[int(axis)]);
      },
      RUN {
          const Tensor& grad = r.tensor("yGrad");
          const Tensor& out = r.tensor("out");
          int axis = int(wrap(r.integer("axis"), grad.rank()));
          auto repeats = repeats_of(r, out.dims[axis], grad.dims[axis]);
          std::vector<int64_t> owner;
          for (size_t k = 0; k < repeats.size(); ++k) owner.insert(owner.end(), size_t(repeats[k]), int64_t(k));
          add_back(r, grad, out, [&](Dims place) {
              place[axis] = owner[size_t(place[axis])];
              return position(out.dims, place);
          });
      })

// onValue and offValue are tensors of one element. A class out of range gives offValue everywhere.
ACLNN(aclnnOneHot,
      PLAN {
          const Tensor& self = p.tensor("self");
          int64_t classes = p.integer("numClasses"), axis = p.integer("axis");
          p.require(classes >= 0, "numClasses is %lld, expected a number not below 0", static_cast<long long>(classes));
          p.require(axis >= -1 && axis <= self.rank(), "axis is %lld, expected [-1, %d]", static_cast<long long>(axis),
                    self.rank());
          for (const char* name : {"onValue", "offValue"}) {
              p.require(p.tensor(name).numel() == 1, "%s has %lld elements, expected 1", name,
                        static_cast<long long>(p.tensor(name).numel()));
              p.same_dtype(name, "out");
          }
          Dims want;
          int at = axis < 0 ? self.rank() : int(axis);
          for (int d = 0; d <= self.rank(); ++d) want.push(d == at ? classes : self.dims[d < at ? d : d - 1]);
          p.shape("out", want);
      },
      RUN {
          const Tensor& self = r.tensor("self");
          const Tensor& out = r.tensor("out");
          int at = r.integer("axis") < 0 ? self.rank() : int(r.integer("axis"));
          auto which = r.read<int64_t>(self);
          by_real_or_integer(category(out.dtype), [&](auto zero) {
              using T = decltype(zero);
              T on = r.read<T>(r.tensor("onValue"))[0], off = r.read<T>(r.tensor("offValue"))[0];
              std::vector<T> y(size_t(out.numel()));
              each_place(out.dims, [&](int64_t i, const Dims& place) {
                  Dims from;
                  for (int d = 0; d < place.n; ++d)
                      if (d != at) from.push(place[d]);
                  y[size_t(i)] = which[size_t(position(self.dims, from))] == place[at] ? on : off;
              });
              r.write(out, y);
          });
      })

ACLNN(aclnnStridedSlice,
      PLAN {
          const Dims& self = p.tensor("self").dims;
          size_t n = p.ints("begin").size();
          p.require(p.ints("end").size() == n && p.ints("strides").size() == n,
                    "begin, end and strides must have equally many entries");
          for (int64_t step : p.ints("strides")) p.require(step != 0, "strides has an entry 0");
          int64_t ellipsis = p.integer("ellipsisMask");
          p.require((ellipsis & (ellipsis - 1)) == 0, "ellipsisMask has more than one bit");
          StridedSlice slice(p, self);
          p.require(slice.fits, "the slice does not fit self %s", text(self).c_str());
          p.shape("out", slice.shape);
          p.same_dtype("self", "out");
      },
      RUN {
          const Tensor& self = r.tensor("self");
          StridedSlice slice(r, self.dims);
          copy_from(r, self, r.tensor("out"), [&](const Dims& place) {
              Dims at;
              for (const Cut& cut : slice.cuts) at.push(cut.start);
              for (int d = 0; d < place.n; ++d) {
                  int axis = slice.axis[size_t(d)];
                  if (axis >= 0) at[axis] += place[d] * slice.cuts[size_t(axis)].step;
              }
              return position(self.dims, at);
          });
      },
      NARROW)
