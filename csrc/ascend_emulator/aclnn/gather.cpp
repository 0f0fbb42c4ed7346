// Reading by index: gather, select, advanced indexing, masks that select, and what is not zero.
#include "advanced_index.h"
#include "moving.h"

using namespace emu;

namespace {

// -- along one axis --------------------------------------------------------------------------------------------------
// Every size of the index but the axis within that of self.
void plan_gather(Plan& p) {
    const Tensor& self = p.tensor("self");
    const Tensor& index = p.tensor("index");
    int64_t axis = p.axis("dim", self.rank());
    p.same_shape("index", "out");
    if (index.numel() == 0) return;
    int rank = std::max(self.rank(), 1);
    p.require(std::max(index.rank(), 1) == rank, "index has %d dimensions, expected %d", index.rank(), self.rank());
    for (int d = 0; d < self.rank() && d < index.rank(); ++d)
        p.require(d == axis || index.dims[d] <= self.dims[d], "index has shape %s, which exceeds self %s along axis %d",
                  text(index.dims).c_str(), text(self.dims).c_str(), d);
}

void run_gather(Run& r) {
    const Tensor& self = r.tensor("self");
    auto picks = r.read<int64_t>(r.tensor("index"));
    int axis = int(wrap(r.integer("dim"), std::max(self.rank(), 1)));
    int64_t length = self.rank() == 0 ? 1 : self.dims[axis];
    size_t next = 0;
    copy_from(r, self, r.tensor("out"), [&](Dims place) {
        int64_t pick = checked_index(picks[next++], length);
        if (self.rank() == 0) return pick;
        place[axis] = pick;
        return position(self.dims, place);
    });
}

// -- rows of coordinates ---------------------------------------------------------------------------------------------
void run_gather_nd(Run& r) {
    const Tensor& self = r.tensor("self");
    const Tensor& indices = r.tensor("indices");
    auto rows = r.read<int64_t>(indices);
    int depth = int(indices.dims.back());
    bool negative = r.flag("negativeIndexSupport");
    Dims front;
    for (int d = 0; d + 1 < indices.rank(); ++d) front.push(indices.dims[d]);
    copy_from(r, self, r.tensor("out"), [&](const Dims& place) {
        Dims at;
        int64_t row = position(front, place) * depth;
        for (int d = 0; d < depth; ++d) {
            int64_t given = rows[size_t(row + d)];
            at.push(negative ? wrapped_index(given, self.dims[d]) : checked_index(given, self.dims[d]));
        }
        for (int d = depth; d < self.rank(); ++d) at.push(place[front.n + d - depth]);
        return position(self.dims, at);
    });
}

void run_nonzero(Run& r, bool by_row) {
    const Tensor& self = r.tensor("self");
    auto x = r.read<double>(self);
    std::vector<Dims> found;
    each_place(self.dims, [&](int64_t i, const Dims& place) {
        if (x[size_t(i)] != 0) found.push_back(place);
    });
    int64_t count = int64_t(found.size()), rank = self.rank();
    std::vector<int64_t> y(size_t(count * rank));
    check_room(r, "out", count * rank);
    for (int64_t k = 0; k < count; ++k)
        for (int64_t d = 0; d < rank; ++d) y[size_t(by_row ? k * rank + d : d * count + k)] = found[size_t(k)][int(d)];
    r.resize("out", by_row ? Dims{count, rank} : Dims{rank, count});
    r.write(r.tensor("out"), y);
}

}  // namespace

ACLNN(aclnnIndexSelect,
      PLAN {
          const Tensor& self = p.tensor("self");
          int rank = p.tensor("index").rank();
          p.require(rank <= 1, "index has %d dimensions, expected 0 or 1", rank);
          int64_t axis = p.axis("dim", self.rank());
          // A 0-dimensional index selects one entry; a 0-dimensional self has one.
          int64_t count = p.tensor("index").numel();
          p.require(self.rank() > 0 || count == 1, "self has no dimensions, so index must have one element");
          p.shape("out", self.rank() > 0 ? resized(self.dims, axis, count) : self.dims);
      },
      RUN {
          const Tensor& self = r.tensor("self");
          run_select(r, "self", "index", wrap(r.integer("dim"), std::max(self.rank(), 1)), "out");
      })
ACLNN(aclnnGatherV2, PLAN { plan_select(p, "self", "index", p.axis("dim", p.tensor("self").rank()), "out"); },
      RUN { run_select(r, "self", "index", wrap(r.integer("dim"), r.tensor("self").rank()), "out"); })
ACLNN(aclnnGather, PLAN { plan_gather(p); }, RUN { run_gather(r); })
ACLNN(aclnnGatherNd, PLAN { p.shape("out", plan_rows(p, p.tensor("self"), "indices")); }, RUN { run_gather_nd(r); })
// The first batchDims axes of self and index go together.
ACLNN(aclnnGatherV3,
      PLAN {
          const Tensor& self = p.tensor("self");
          const Tensor& index = p.tensor("index");
          int64_t axis = p.axis("dim", self.rank()), batch = p.integer("batchDims");
          p.require(batch >= 0 && batch <= axis && batch <= index.rank(), "batchDims is %lld, expected [0, %lld]",
                    static_cast<long long>(batch), static_cast<long long>(std::min<int64_t>(axis, index.rank())));
          p.require(p.integer("mode") == 1, "mode is %lld, expected 1", static_cast<long long>(p.integer("mode")));
          Dims rest;
          for (int d = 0; d < index.rank(); ++d) {
              if (d >= batch) rest.push(index.dims[d]);
              else
                  p.require(index.dims[d] == self.dims[d], "index has shape %s; its first %lld sizes must be those of self",
                            text(index.dims).c_str(), static_cast<long long>(batch));
          }
          p.shape("out", replaced(self.dims, axis, rest));
      },
      RUN {
          const Tensor& self = r.tensor("self");
          const Tensor& index = r.tensor("index");
          int axis = int(wrap(r.integer("dim"), self.rank())), batch = int(r.integer("batchDims"));
          int extra = index.rank() - batch;
          auto picks = r.read<int64_t>(index);
          copy_from(r, self, r.tensor("out"), [&](const Dims& place) {
              Dims which, at;
              for (int d = 0; d < batch; ++d) which.push(place[d]);
              for (int d = 0; d < extra; ++d) which.push(place[axis + d]);
              for (int d = 0; d < axis; ++d) at.push(place[d]);
              at.push(checked_index(picks[size_t(position(index.dims, which))], self.dims[axis]));
              for (int d = axis + extra; d < place.n; ++d) at.push(place[d]);
              return position(self.dims, at);
          });
      })
ACLNN(aclnnTake, PLAN { p.same_shape("index", "out"); p.same_dtype("self", "out"); },
      RUN {
          const Tensor& self = r.tensor("self");
          auto picks = r.read<int64_t>(r.tensor("index"));
          size_t next = 0;
          copy_from(r, self, r.tensor("out"), [&](const Dims&) { return checked_index(picks[next++], self.numel()); });
      })

// self[index, index, ..]
ACLNN(aclnnIndex,
      PLAN {
          AdvancedIndex index(p.tensor("self"), p.tensors("indices"));
          index.require_shape(p, "out");
      },
      RUN {
          const Tensor& self = r.tensor("self");
          AdvancedIndex index(self, r.tensors("indices"));
          const Tensor& out = r.tensor("out");
          Dims shape = index.resolve(r);
          if (shape != out.dims)
              fault("the indices give shape %s, out has %s", text(shape).c_str(), text(out.dims).c_str());
          copy_from(r, self, out, [&](const Dims& place) { return index.source(place); });
      })

ACLNN(aclnnMaskedSelect,
      PLAN {
          Dims shape = broadcast_all(p, {&p.tensor("self").dims, &p.tensor("mask").dims});
          p.shape("out", {shape.product()});
          p.same_dtype("self", "out");
          p.workspace = uint64_t(shape.product()) * 8 + 512;
      },
      RUN {
          const Tensor& self = r.tensor("self");
          Dims shape;
          broadcast(self.dims, r.tensor("mask").dims, &shape);
          auto mask = r.read<int64_t>(r.tensor("mask"), shape);
          by_real_or_integer(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self, shape);
              std::vector<T> y;
              for (size_t i = 0; i < x.size(); ++i)
                  if (mask[i]) y.push_back(x[i]);
              r.resize("out", {int64_t(y.size())});
              r.write(r.tensor("out"), y);
          });
      },
      DYNAMIC)
ACLNN(aclnnNonzero,
      PLAN {
          p.shape("out", {p.tensor("self").numel(), p.tensor("self").rank()});
          p.workspace = uint64_t(p.tensor("self").numel()) * 8 + 512;
      },
      RUN { run_nonzero(r, true); }, DYNAMIC)
ACLNN(aclnnNonzeroV2,
      PLAN {
          // As many columns as there may be at most, or as many as the caller knows there are.
          const Dims& out = p.tensor("out").dims;
          p.require(out.n == 2 && out[0] == p.tensor("self").rank() && out[1] <= p.tensor("self").numel(),
                    "out has shape %s, expected (%d, at most %lld)", text(out).c_str(), p.tensor("self").rank(),
                    static_cast<long long>(p.tensor("self").numel()));
          p.workspace = uint64_t(p.tensor("self").numel()) * 8 + 512;
      },
      RUN { run_nonzero(r, false); }, DYNAMIC)
