// Writing rows: a slice of the tensor for each row of indices, replaced or combined with what is there.
#include <algorithm>

#include "combining.h"
#include "moving.h"

using namespace emu;

namespace {

void plan_scatter_nd(Plan& p, const char* data) {
    p.shape("updates", plan_rows(p, p.tensor(data), "indices"));
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
            for (int d = 0; d < depth; ++d)
                at = at * data.dims[d] + checked_index(rows[size_t(k * depth + d)], data.dims[d]);
            std::copy_n(updates.begin() + k * slice, slice, x.begin() + at * slice);
        }
        r.write(out, x);
    });
}

// var[indices] = var[indices] (combined with) updates, along the first axis. Locking is a matter of order, and updates
// come in order here.
void plan_rows_update(Plan& p) {
    const Tensor& var = p.tensor("varRef");
    p.shape("updates", replaced(var.dims, 0, p.tensor("indices").dims));
    p.same_dtype("varRef", "updates");
}

void run_rows_update(Run& r, int64_t how) {
    const Tensor& var = r.tensor("varRef");
    auto picks = r.read<int64_t>(r.tensor("indices"));
    Lines lines(var.dims, 0);
    by_real_or_integer(category(var.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(var);
        auto updates = r.read<T>(r.tensor("updates"));
        for (size_t k = 0; k < picks.size(); ++k) {
            int64_t row = checked_index(picks[k], lines.length);
            for (int64_t i = 0; i < lines.inner; ++i) {
                T& old = x[size_t(row * lines.inner + i)];
                old = combined(how, old, updates[k * size_t(lines.inner) + size_t(i)]);
            }
        }
        r.write(var, x);
    });
}

}  // namespace

ACLNN(aclnnScatterNd,
      PLAN {
          plan_scatter_nd(p, "data");
          p.same_shape("data", "out");
          p.same_dtype("data", "out");
      },
      RUN { run_scatter_nd(r, r.tensor("data"), r.tensor("out")); })
ACLNN(aclnnScatterNdUpdate, PLAN { plan_scatter_nd(p, "varRef"); },
      RUN { run_scatter_nd(r, r.tensor("varRef"), r.tensor("varRef")); }, NARROW)

// data[i, .., indices[i] + k, ..] = updates[i, .., k, ..] along an axis, i from 0; an index of two columns gives i too.
ACLNN(aclnnInplaceScatterUpdate,
      PLAN {
          const Tensor& data = p.tensor("data");
          const Tensor& updates = p.tensor("updates");
          const Tensor& indices = p.tensor("indices");
          p.same_dtype("data", "updates");
          p.require(data.rank() == updates.rank(), "updates has %d dimensions, data has %d", updates.rank(),
                    data.rank());
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
      },
      NARROW)

ACLNN(aclnnTfScatterAdd, PLAN { plan_rows_update(p); }, RUN { run_rows_update(r, kAdd); })
ACLNN(aclnnScatterMul, PLAN { plan_rows_update(p); }, RUN { run_rows_update(r, kMultiply); })
ACLNN(aclnnScatterDiv, PLAN { plan_rows_update(p); }, RUN { run_rows_update(r, kDivide); })
ACLNN(aclnnScatterMax, PLAN { plan_rows_update(p); }, RUN { run_rows_update(r, kMax); })
ACLNN(aclnnScatterMin, PLAN { plan_rows_update(p); }, RUN { run_rows_update(r, kMin); })
