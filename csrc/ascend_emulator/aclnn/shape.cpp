// Shape by copying: concatenation, splitting, permuting, repeating, slicing, triangles and diagonals.
#include <algorithm>

#include "moving.h"

using namespace emu;

namespace {

// -- joining and splitting -------------------------------------------------------------------------------------------
// A 1-dimensional tensor without elements joins anything, as in PyTorch.
bool skipped(const Tensor& t) { return t.rank() == 1 && t.numel() == 0; }

void plan_cat(Plan& p) {
    const auto& tensors = p.tensors("tensors");
    p.require(!tensors.empty(), "tensors is empty");
    const Tensor* first = &tensors[0];
    int dtype = first->dtype;
    for (const Tensor& t : tensors) {
        if (skipped(*first) && !skipped(t)) first = &t;
        dtype = promote(dtype, t.dtype);
        p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of tensors do not promote");
    }
    int64_t axis = p.axis("dim", first->rank()), total = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& t = tensors[i];
        if (skipped(t)) continue;
        p.require(t.rank() == first->rank(), "tensors[%zu] has %d dimensions, expected %d", i, t.rank(), first->rank());
        for (int d = 0; d < t.rank(); ++d)
            p.require(d == axis || t.dims[d] == first->dims[d], "tensors[%zu] has shape %s, which does not match %s", i,
                      text(t.dims).c_str(), text(first->dims).c_str());
        total += t.dims[int(axis)];
    }
    p.shape("out", resized(first->dims, axis, total));
    p.casts(dtype, "out");
}

void run_cat(Run& r) {
    const Tensor& out = r.tensor("out");
    Lines to(out.dims, wrap(r.integer("dim"), out.rank()));
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> y(size_t(out.numel()));
        int64_t start = 0;
        for (const Tensor& t : r.tensors("tensors")) {
            if (skipped(t)) continue;
            auto x = r.read<T>(t);
            int64_t part = t.dims[int(wrap(r.integer("dim"), out.rank()))] * to.inner;
            for (int64_t o = 0; o < to.outer; ++o)
                std::copy_n(x.begin() + o * part, part, y.begin() + to.at(o, start, 0));
            start += part / std::max<int64_t>(to.inner, 1);
        }
        r.write(out, y);
    });
}

void run_stack(Run& r) {
    const Tensor& out = r.tensor("out");
    Lines to(out.dims, wrap(r.integer("dim"), out.rank()));
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> y(size_t(out.numel()));
        int64_t k = 0;
        for (const Tensor& t : r.tensors("tensors")) {
            auto x = r.read<T>(t);
            for (int64_t o = 0; o < to.outer; ++o)
                std::copy_n(x.begin() + o * to.inner, to.inner, y.begin() + to.at(o, k, 0));
            ++k;
        }
        r.write(out, y);
    });
}

// Chunks of each tensor along an axis, padded with zeros, flattened behind that axis and joined there.
int64_t chunk_width(const Dims& dims, int64_t axis, int64_t chunks) {
    int64_t behind = 1;
    for (int d = int(axis) + 1; d < dims.n; ++d) behind *= dims[d];
    return (dims[int(axis)] + chunks - 1) / chunks * behind;
}

void plan_chunk_cat(Plan& p) {
    const auto& tensors = p.tensors("tensors");
    int64_t chunks = p.integer("numChunks"), axis = p.integer("dim");
    p.require(!tensors.empty(), "tensors is empty");
    p.require(chunks >= 1, "numChunks is %lld, expected at least 1", static_cast<long long>(chunks));
    int64_t width = 0;
    for (const Tensor& t : tensors) {
        p.require(axis >= 0 && axis < t.rank(), "dim is %lld, expected [0, %d)", static_cast<long long>(axis), t.rank());
        p.require(t.dtype == tensors[0].dtype, "tensors have different dtypes");
        for (int d = 0; d < axis; ++d)
            p.require(t.dims[d] == tensors[0].dims[d], "tensors have different sizes before axis %lld",
                      static_cast<long long>(axis));
        width += chunk_width(t.dims, axis, chunks);
    }
    Dims want;
    for (int d = 0; d < axis; ++d) want.push(tensors[0].dims[d]);
    want.push(chunks);
    want.push(width);
    p.shape("out", want);
}

void run_chunk_cat(Run& r) {
    const Tensor& out = r.tensor("out");
    int64_t axis = r.integer("dim"), chunks = r.integer("numChunks"), width = out.dims.back();
    std::vector<double> y(size_t(out.numel()));
    int64_t start = 0;
    for (const Tensor& t : r.tensors("tensors")) {
        auto x = r.read<double>(t);
        Lines lines(t.dims, axis);
        int64_t part = chunk_width(t.dims, axis, chunks), own = lines.length * lines.inner;
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t k = 0; k < own; ++k)
                y[size_t((o * chunks + k / part) * width + start + k % part)] = x[size_t(o * own + k)];
        start += part;
    }
    r.write(out, y);
}

void plan_split(Plan& p, const std::vector<int64_t>& sizes) {
    const Tensor& self = p.tensor("self");
    int64_t axis = p.axis("dim", self.rank());
    const auto& outs = p.tensors("out");
    p.require(outs.size() == sizes.size(), "out has %zu tensors, expected %zu", outs.size(), sizes.size());
    for (size_t i = 0; i < outs.size(); ++i) {
        Dims want = resized(self.dims, axis, sizes[i]);
        p.require(outs[i].dims == want, "out[%zu] has shape %s, expected %s", i, text(outs[i].dims).c_str(),
                  text(want).c_str());
        p.require(outs[i].dtype == self.dtype, "out[%zu] has dtype %s, expected that of self, %s", i,
                  dtype_name(outs[i].dtype), dtype_name(self.dtype));
    }
}

void run_split(Run& r) {
    const Tensor& self = r.tensor("self");
    int axis = int(wrap(r.integer("dim"), self.rank()));
    int64_t start = 0;
    for (const Tensor& out : r.tensors("out")) {
        copy_from(r, self, out, [&](Dims place) {
            place[axis] += start;
            return position(self.dims, place);
        });
        start += out.dims[axis];
    }
}

std::vector<int64_t> equal_parts(const Plan& p) {
    const Tensor& self = p.tensor("self");
    int64_t left = self.dims[int(p.axis("dim", self.rank()))], part = p.integer("splitSections");
    p.require(part > 0 || left == 0, "splitSections is %lld, expected a positive size", static_cast<long long>(part));
    std::vector<int64_t> sizes;
    if (left == 0) sizes.push_back(0);
    for (; left > 0; left -= part) sizes.push_back(std::min(left, part));
    return sizes;
}

// -- slices ----------------------------------------------------------------------------------------------------------
struct Cut {
    int64_t start = 0, step = 1, count = 0;
};

// As Python cuts a sequence.
Cut cut_of(int64_t size, int64_t start, int64_t end, int64_t step) {
    auto clamp = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    int64_t from = clamp(start), to = clamp(end);
    return {from, step, to > from ? (to - from + step - 1) / step : 0};
}

void require_step(const Plan& p, int64_t step) {
    p.require(step > 0, "step is %lld, expected a positive number", static_cast<long long>(step));
}

void write_cuts(Run& r, const std::vector<Cut>& cuts) {
    const Tensor& self = r.tensor("self");
    copy_from(r, self, r.tensor("out"), [&](Dims place) {
        for (int d = 0; d < place.n; ++d) place[d] = cuts[size_t(d)].start + place[d] * cuts[size_t(d)].step;
        return position(self.dims, place);
    });
}

std::vector<Cut> slice_cuts(const Call& c) {
    const Dims& dims = c.tensor("self").dims;
    std::vector<Cut> cuts;
    for (int64_t size : dims) cuts.push_back({0, 1, size});
    int axis = int(wrap(c.integer("dim"), dims.n));
    cuts[size_t(axis)] = cut_of(dims[axis], c.integer("start"), c.integer("end"), c.integer("step"));
    return cuts;
}

std::vector<Cut> slices_cuts(const Call& c) {
    const Dims& dims = c.tensor("self").dims;
    std::vector<Cut> cuts;
    for (int64_t size : dims) cuts.push_back({0, 1, size});
    for (size_t k = 0; k < c.ints("axes").size(); ++k) {
        int axis = int(wrap(c.ints("axes")[k], dims.n));
        cuts[size_t(axis)] = cut_of(dims[axis], c.ints("starts")[k], c.ints("ends")[k], c.ints("steps")[k]);
    }
    return cuts;
}

Dims counts(const std::vector<Cut>& cuts) {
    Dims out;
    for (const Cut& cut : cuts) out.push(cut.count);
    return out;
}

// -- triangles and diagonals -----------------------------------------------------------------------------------------
void plan_triangle(Plan& p) {
    const Tensor& self = p.input();
    p.require(self.rank() >= 2, "self has %d dimensions, expected at least 2", self.rank());
    p.require(p.output().dims == self.dims, "out has shape %s, expected %s", text(p.output().dims).c_str(),
              text(self.dims).c_str());
    p.require(p.output().dtype == self.dtype, "out has dtype %s, expected that of self, %s",
              dtype_name(p.output().dtype), dtype_name(self.dtype));
}

void run_triangle(Run& r, bool lower) {
    const Tensor& self = r.input();
    int64_t diagonal = r.integer("diagonal");
    copy_from(r, self, r.output(), [&](const Dims& place) {
        int64_t above = place[place.n - 1] - place[place.n - 2] - diagonal;
        return (lower ? above <= 0 : above >= 0) ? position(self.dims, place) : kNowhere;
    });
}

void plan_diag(Plan& p) {
    const Dims& self = p.tensor("self").dims;
    int64_t k = p.integer("diagonal");
    if (self.n == 1) {
        int64_t side = self[0] + std::abs(k);
        p.shape("out", {side, side});
    } else {
        int64_t length = k >= 0 ? std::min(self[0], self[1] - k) : std::min(self[0] + k, self[1]);
        p.require(length >= 0, "diagonal is %lld, outside of self %s", static_cast<long long>(k), text(self).c_str());
        p.shape("out", {length});
    }
}

void run_diag(Run& r) {
    const Tensor& self = r.tensor("self");
    int64_t k = r.integer("diagonal"), down = std::max<int64_t>(-k, 0), right = std::max<int64_t>(k, 0);
    copy_from(r, self, r.tensor("out"), [&](const Dims& place) {
        if (self.rank() == 2) return (place[0] + down) * self.dims[1] + place[0] + right;
        return place[1] - place[0] == k ? place[0] - down : kNowhere;
    });
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

ACLNN(aclnnCat, PLAN { plan_cat(p); }, RUN { run_cat(r); })
ACLNN(aclnnChunkCat, PLAN { plan_chunk_cat(p); }, RUN { run_chunk_cat(r); })
ACLNN(aclnnStack,
      PLAN {
          const auto& tensors = p.tensors("tensors");
          p.require(!tensors.empty(), "tensors is empty");
          const Dims& dims = tensors[0].dims;
          int dtype = tensors[0].dtype;
          for (const Tensor& t : tensors) {
              p.require(t.dims == dims, "tensors have shapes %s and %s", text(dims).c_str(), text(t.dims).c_str());
              dtype = promote(dtype, t.dtype);
              p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of tensors do not promote");
          }
          int64_t axis = p.axis("dim", dims.n + 1);
          Dims want;
          for (int d = 0; d <= dims.n; ++d) want.push(d == axis ? int64_t(tensors.size()) : dims[d < axis ? d : d - 1]);
          p.shape("out", want);
          p.casts(dtype, "out");
      },
      RUN { run_stack(r); })
ACLNN(aclnnSplitTensor, PLAN { plan_split(p, equal_parts(p)); }, RUN { run_split(r); })
ACLNN(aclnnSplitWithSize,
      PLAN {
          const Tensor& self = p.tensor("self");
          int64_t size = self.dims[int(p.axis("dim", self.rank()))], sum = 0;
          for (int64_t part : p.ints("splitSize")) {
              p.require(part >= 0, "splitSize has a negative entry");
              sum += part;
          }
          p.require(sum == size, "splitSize sums to %lld, expected %lld", static_cast<long long>(sum),
                    static_cast<long long>(size));
          plan_split(p, p.ints("splitSize"));
      },
      RUN { run_split(r); })

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
      })
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
      RUN { run_repeat(r); })
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

ACLNN(aclnnTril, PLAN { plan_triangle(p); }, RUN { run_triangle(r, true); })
ACLNN(aclnnTriu, PLAN { plan_triangle(p); }, RUN { run_triangle(r, false); })
ACLNN(aclnnInplaceTril, PLAN { plan_triangle(p); }, RUN { run_triangle(r, true); })
ACLNN(aclnnInplaceTriu, PLAN { plan_triangle(p); }, RUN { run_triangle(r, false); })
ACLNN(aclnnDiag, PLAN { plan_diag(p); }, RUN { run_diag(r); })
// The main diagonal; `wrap` goes on below in a tall matrix, a blank row between.
ACLNN(aclnnInplaceFillDiagonal,
      PLAN {
          p.require(p.tensor("selfRef").rank() == 2, "selfRef has %d dimensions, expected 2", p.tensor("selfRef").rank());
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          int64_t columns = self.dims[1];
          int64_t end = r.flag("wrap") ? self.numel() : std::min(self.numel(), columns * columns);
          by_category(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self);
              for (int64_t at = 0; at < end; at += columns + 1) x[size_t(at)] = r.scalar("fillValue").as<T>();
              r.write(self, x);
          });
      })
