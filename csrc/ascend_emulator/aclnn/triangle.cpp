// Triangles and diagonals of matrices.
#include <algorithm>

#include "moving.h"

using namespace emu;

namespace {

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
    // A diagonal beyond the matrix is as good as the one next to it, and can be counted with.
    const int n = self.rank();
    int64_t diagonal = std::max(std::min(r.integer("diagonal"), self.dims[n - 1]), -self.dims[n - 2]);
    copy_from(r, self, r.output(), [&](const Dims& place) {
        int64_t above = place[place.n - 1] - place[place.n - 2] - diagonal;
        return (lower ? above <= 0 : above >= 0) ? position(self.dims, place) : kNowhere;
    });
}

// A vector on a diagonal of a square matrix.
void plan_on_diagonal(Plan& p) {
    int64_t side = p.tensor("self").numel() + std::abs(p.integer("diagonal"));
    p.shape("out", {side, side});
}

void plan_diag(Plan& p) {
    const Dims& self = p.tensor("self").dims;
    if (self.n == 1) return plan_on_diagonal(p);
    int64_t k = p.integer("diagonal");
    int64_t length = k >= 0 ? std::min(self[0], self[1] - k) : std::min(self[0] + k, self[1]);
    p.require(length >= 0, "diagonal is %lld, outside of self %s", static_cast<long long>(k), text(self).c_str());
    p.shape("out", {length});
}

void run_diag(Run& r, bool onto) {
    const Tensor& self = r.tensor("self");
    int64_t k = r.integer("diagonal"), down = std::max<int64_t>(-k, 0), right = std::max<int64_t>(k, 0);
    copy_from(r, self, r.tensor("out"), [&](const Dims& place) {
        if (!onto) return (place[0] + down) * self.dims[1] + place[0] + right;
        return place[1] - place[0] == k ? place[0] - down : kNowhere;
    });
}

}  // namespace

ACLNN(aclnnTril, PLAN { plan_triangle(p); }, RUN { run_triangle(r, true); })
ACLNN(aclnnTriu, PLAN { plan_triangle(p); }, RUN { run_triangle(r, false); })
ACLNN(aclnnInplaceTril, PLAN { plan_triangle(p); }, RUN { run_triangle(r, true); })
ACLNN(aclnnInplaceTriu, PLAN { plan_triangle(p); }, RUN { run_triangle(r, false); })
ACLNN(aclnnDiag, PLAN { plan_diag(p); }, RUN { run_diag(r, r.tensor("self").rank() == 1); })
ACLNN(aclnnDiagFlat, PLAN { plan_on_diagonal(p); }, RUN { run_diag(r, true); })
// The main diagonal; `wrap` goes on below in a tall matrix, a blank row between. A diagonal is the elements whose indices are
// all equal: of a vector, which the facts admit without a word on it, every element.
ACLNN(aclnnInplaceFillDiagonal,
      PLAN {
          int rank = p.tensor("selfRef").rank();
          p.require(rank == 1 || rank == 2, "selfRef has %d dimensions, expected 1 or 2", rank);
          int from = p.scalar("fillValue").dtype, to = p.tensor("selfRef").dtype;
          p.require(castable(from, to) || (to == ACL_BOOL && is_integer(from)), "fillValue has dtype %s, selfRef %s",
                    dtype_name(from), dtype_name(to));
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          bool vector = self.rank() == 1;
          int64_t columns = vector ? 0 : self.dims[1];
          int64_t end = vector || r.flag("wrap") ? self.numel() : std::min(self.numel(), columns * columns);
          by_category(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self);
              for (int64_t at = 0; at < end; at += columns + 1) x[size_t(at)] = r.scalar("fillValue").as<T>();
              r.write(self, x);
          });
      })
