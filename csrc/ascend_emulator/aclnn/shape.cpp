// Elements in another order or number: permuting, expanding, repeating, rolling, flipping, slicing.
#include <algorithm>

#include "moving.h"

using namespace emu;

namespace {

// -- slices ----------------------------------------------------------------------------------------------------------
void require_step(const Plan& p, int64_t step) {
    p.require(step > 0, "step is %lld, expected a positive number", static_cast<long long>(step));
}

void write_cuts(Run& r, const std::vector<Cut>& cuts) {
    const Tensor& self = r.tensor("self");
    copy_from(r, self, r.tensor("out"), [&](const Dims& place) { return position(self.dims, cuts, place); });
}

std::vector<Cut> slice_cuts(const Call& c) {
    const Dims& dims = c.tensor("self").dims;
    std::vector<Cut> cuts = whole(dims);
    int axis = int(wrap(c.integer("dim"), dims.n));
    cuts[size_t(axis)] = cut_of(dims[axis], c.integer("start"), c.integer("end"), c.integer("step"));
    return cuts;
}

std::vector<Cut> slices_cuts(const Call& c) {
    const Dims& dims = c.tensor("self").dims;
    std::vector<Cut> cuts = whole(dims);
    for (size_t k = 0; k < c.ints("axes").size(); ++k) {
        int axis = int(wrap(c.ints("axes")[k], dims.n));
        cuts[size_t(axis)] = cut_of(dims[axis], c.ints("starts")[k], c.ints("ends")[k], c.ints("steps")[k]);
    }
    return cuts;
}

// -- order -----------------------------------------------------------------------------------------------------------
Dims permuted(const Dims& dims, const std::vector<int64_t>& order) {
    Dims out;
    for (int64_t axis : order) out.push(dims[int(wrap(axis, dims.n))]);
    return out;
}

void require_permutation(const Plan& p, const char* name, int rank) {
    p.require(int(p.ints(name).size()) == rank, "%s has %zu entries, expected %d", name, p.ints(name).size(), rank);
    p.axes(name, rank);
}

// The position in a tensor of these sizes of what is at `place` after its axes are put in that order.
int64_t before_permuting(const Dims& dims, const std::vector<int64_t>& order, const Dims& place) {
    Dims at = dims;
    for (int d = 0; d < dims.n; ++d) at[int(wrap(order[size_t(d)], dims.n))] = place[d];
    return position(dims, at);
}

Dims coordinates(const Dims& dims, int64_t at) {
    Dims place = dims;
    for (int d = dims.n - 1; d >= 0; --d) {
        place[d] = at % dims[d];
        at /= dims[d];
    }
    return place;
}

Dims repeated(const Call& c) {
    const Dims& self = c.tensor("self").dims;
    const auto& repeats = c.ints("repeats");
    Dims out;
    int lead = int(repeats.size()) - self.n;
    for (int d = 0; d < int(repeats.size()); ++d) out.push(repeats[size_t(d)] * (d < lead ? 1 : self[d - lead]));
    return out;
}

void run_repeat(Run& r) {
    const Tensor& self = r.tensor("self");
    copy_from(r, self, r.tensor("out"), [&](const Dims& place) {
        int lead = place.n - self.rank();
        Dims at;
        for (int d = 0; d < self.rank(); ++d) at.push(place[lead + d] % self.dims[d]);
        return position(self.dims, at);
    });
}

}  // namespace

ACLNN(aclnnPermute,
      PLAN {
          const Dims& self = p.tensor("self").dims;
          require_permutation(p, "dims", self.n);
          p.shape("out", permuted(self, p.ints("dims")));
          p.same_dtype("self", "out");
      },
      RUN {
          const Tensor& self = r.tensor("self");
          copy_from(r, self, r.tensor("out"),
                    [&](const Dims& place) { return before_permuting(self.dims, r.ints("dims"), place); });
      },
      NARROW)
// A transposition and a reshape; transpose_first says in which order.
ACLNN(aclnnConfusionTranspose,
      PLAN {
          const Tensor& x = p.tensor("x");
          Dims shape(p.ints("shape").data(), p.ints("shape").size());
          p.require(shape.product() == x.numel(), "shape %s does not hold the %lld elements of x", text(shape).c_str(),
                    static_cast<long long>(x.numel()));
          p.same_dtype("x", "out");
          if (p.flag("transpose_first")) {
              require_permutation(p, "perm", x.rank());
              p.shape("out", shape);
          } else {
              require_permutation(p, "perm", shape.n);
              p.shape("out", permuted(shape, p.ints("perm")));
          }
      },
      RUN {
          const Tensor& x = r.tensor("x");
          const Tensor& out = r.tensor("out");
          const auto& perm = r.ints("perm");
          Dims shape(r.ints("shape").data(), r.ints("shape").size());
          bool transpose_first = r.flag("transpose_first");
          Dims turned = permuted(x.dims, transpose_first ? perm : std::vector<int64_t>{});
          copy_from(r, x, out, [&](const Dims& place) {
              if (!transpose_first) return before_permuting(shape, perm, place);
              return before_permuting(x.dims, perm, coordinates(turned, position(out.dims, place)));
          });
      })
ACLNN(aclnnExpand,
      PLAN {
          Dims size(p.ints("size").data(), p.ints("size").size()), both;
          const Dims& self = p.tensor("self").dims;
          p.require(broadcast(size, self, &both) && both == size, "self has shape %s, which does not expand to %s",
                    text(self).c_str(), text(size).c_str());
          p.shape("out", size);
      },
      RUN {
          const Tensor& out = r.tensor("out");
          by_category(category(out.dtype), [&](auto zero) {
              r.write(out, r.read<decltype(zero)>(r.tensor("self"), out.dims));
          });
      })
// A view of the elements of x in row-major order.
ACLNN(aclnnAsStrided,
      PLAN {
          const auto &size = p.ints("size"), &stride = p.ints("stride"), &offset = p.ints("storageOffset");
          p.require(size.size() == stride.size(), "size has %zu entries, stride has %zu", size.size(), stride.size());
          p.require(offset.size() == 1 && offset[0] >= 0, "storageOffset must be one number not below 0");
          p.shape("out", Dims(size.data(), size.size()));
          p.same_dtype("x", "out");
          if (p.tensor("out").numel() == 0) return;
          int64_t low = offset[0], high = offset[0];
          for (size_t d = 0; d < size.size(); ++d) (stride[d] < 0 ? low : high) += stride[d] * (size[d] - 1);
          p.require(low >= 0 && high < p.tensor("x").numel(), "the view leaves the %lld elements of x",
                    static_cast<long long>(p.tensor("x").numel()));
      },
      RUN {
          const auto& stride = r.ints("stride");
          copy_from(r, r.tensor("x"), r.tensor("out"), [&](const Dims& place) {
              int64_t at = r.ints("storageOffset")[0];
              for (int d = 0; d < place.n; ++d) at += place[d] * stride[size_t(d)];
              return at;
          });
      },
      NARROW)
// ONNX's flatten: always two dimensions.
ACLNN(aclnnFlatten,
      PLAN {
          const Dims& self = p.tensor("self").dims;
          int64_t axis = p.axis("axis", self.n), front = 1, behind = 1;
          for (int d = 0; d < self.n; ++d) (d < axis ? front : behind) *= self[d];
          p.shape("out", {front, behind});
      },
      RUN {
          const Tensor& out = r.tensor("out");
          copy_from(r, r.tensor("self"), out, [&](const Dims& place) { return position(out.dims, place); });
      })
ACLNN(aclnnRepeat,
      PLAN {
          const auto& repeats = p.ints("repeats");
          p.require(int(repeats.size()) >= p.tensor("self").rank() && repeats.size() <= 8,
                    "repeats has %zu entries, expected [%d, 8]", repeats.size(), p.tensor("self").rank());
          for (int64_t n : repeats) p.require(n >= 0, "repeats has a negative entry");
          auto many = std::count_if(repeats.begin(), repeats.end(), [](int64_t n) { return n != 1; });
          p.require(repeats.empty() || repeats[0] == 1 || many <= 4,
                    "repeats repeats %lld axes, the first among them; at most 4 are supported",
                    static_cast<long long>(many));
          p.shape("out", repeated(p));
      },
      RUN { run_repeat(r); },
      NARROW)
ACLNN(aclnnRoll,
      PLAN {
          const auto &shifts = p.ints("shifts"), &dims = p.ints("dims");
          p.same_shape("x", "out");
          p.same_dtype("x", "out");
          p.require(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
                    "shifts has %zu entries, dims has %zu", shifts.size(), dims.size());
          for (int64_t d : dims) p.axis(d, p.tensor("x").rank(), "dims");
      },
      RUN {
          const Tensor& x = r.tensor("x");
          const auto &shifts = r.ints("shifts"), &dims = r.ints("dims");
          auto back = [](int64_t at, int64_t shift, int64_t size) { return ((at - shift) % size + size) % size; };
          copy_from(r, x, r.tensor("out"), [&](Dims place) {
              // Without dims the tensor is rolled as if it were flat.
              if (dims.empty()) return back(position(x.dims, place), shifts[0], x.numel());
              for (size_t k = 0; k < dims.size() && x.rank() > 0; ++k) {
                  int d = int(wrap(dims[k], x.rank()));
                  place[d] = back(place[d], shifts[k], x.dims[d]);
              }
              return position(x.dims, place);
          });
      })
ACLNN(aclnnFlip,
      PLAN {
          p.same_shape("self", "out");
          if (!p.ints("dims").empty()) p.axes("dims", p.tensor("self").rank());
      },
      RUN {
          const Tensor& self = r.tensor("self");
          copy_from(r, self, r.tensor("out"), [&](Dims place) {
              for (int64_t given : r.ints("dims")) {
                  int d = int(wrap(given, self.rank()));
                  place[d] = self.dims[d] - 1 - place[d];
              }
              return position(self.dims, place);
          });
      })
ACLNN(aclnnSlice,
      PLAN {
          p.axis("dim", p.tensor("self").rank());
          require_step(p, p.integer("step"));
          p.shape("out", counts(slice_cuts(p)));
      },
      RUN { write_cuts(r, slice_cuts(r)); })
ACLNN(aclnnSliceV2,
      PLAN {
          size_t n = p.ints("axes").size();
          p.require(p.ints("starts").size() == n && p.ints("ends").size() == n && p.ints("steps").size() == n,
                    "starts, ends, axes and steps must have equally many entries");
          if (n > 0) p.axes("axes", p.tensor("self").rank());
          for (int64_t step : p.ints("steps")) require_step(p, step);
          p.shape("out", counts(slices_cuts(p)));
          p.same_dtype("self", "out");
      },
      RUN { write_cuts(r, slices_cuts(r)); })
