// Padding: constant, reflected, replicated, circular, and the gradients of the latter three.
#include <algorithm>

#include "moving.h"

using namespace emu;

namespace {

enum Kind { kReflect, kReplicate, kCircular };

// Padding is listed from the last axis: left, right, top, bottom, ..
struct Pads {
    Dims before, after;
    Pads(const std::vector<int64_t>& list, int rank) {
        before.n = after.n = rank;
        for (size_t k = 0; 2 * k + 1 < list.size() && int(k) < rank; ++k) {
            before[rank - 1 - int(k)] = list[2 * k];
            after[rank - 1 - int(k)] = list[2 * k + 1];
        }
    }
    Dims padded(const Dims& dims) const {
        Dims out = dims;
        for (int d = 0; d < dims.n; ++d) out[d] += before[d] + after[d];
        return out;
    }
};

int64_t source_of(int64_t at, int64_t size, Kind kind) {
    if (kind == kReplicate) return std::clamp<int64_t>(at, 0, size - 1);
    if (kind == kCircular) return (at % size + size) % size;
    return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

// The number of padded axes is part of the function's name.
void plan_pad(Plan& p, Kind kind, int axes, const Tensor& self, const char* padded, const char* other) {
    const auto& list = p.ints("padding");
    p.require(int(list.size()) == 2 * axes, "padding has %zu entries, expected %d", list.size(), 2 * axes);
    Pads pads(list, self.rank());
    for (int d = self.rank() - axes; d < self.rank(); ++d) {
        int64_t most = std::max(pads.before[d], pads.after[d]);
        int64_t limit = kind == kReflect ? self.dims[d] - 1 : kind == kCircular ? self.dims[d] : most;
        p.require(most <= limit, "padding %lld is too large for axis %d of size %lld", static_cast<long long>(most), d,
                  static_cast<long long>(self.dims[d]));
        p.require(self.dims[d] > 0, "self has shape %s: axis %d is empty", text(self.dims).c_str(), d);
    }
    Dims want = pads.padded(self.dims);
    for (int d = self.rank() - axes; d < self.rank(); ++d)
        p.require(want[d] >= 1, "padding leaves size %lld along axis %d", static_cast<long long>(want[d]), d);
    p.shape(padded, want);
    p.require(p.tensor(padded).dtype == self.dtype, "%s has dtype %s, expected that of self, %s", padded,
              dtype_name(p.tensor(padded).dtype), dtype_name(self.dtype));
    if (other != nullptr) p.shape(other, self.dims);
}

// Which element of self lies under a place of the padded tensor.
auto under(const Tensor& self, const Pads& pads, Kind kind) {
    return [&self, &pads, kind](Dims place) {
        for (int d = 0; d < place.n; ++d) place[d] = source_of(place[d] - pads.before[d], self.dims[d], kind);
        return position(self.dims, place);
    };
}

void run_pad(Run& r, Kind kind) {
    const Tensor& self = r.tensor("self");
    Pads pads(r.ints("padding"), self.rank());
    copy_from(r, self, r.tensor("out"), under(self, pads, kind));
}

void run_pad_backward(Run& r, Kind kind) {
    const Tensor& self = r.tensor("self");
    Pads pads(r.ints("padding"), self.rank());
    add_back(r, r.tensor("gradOutput"), r.tensor("gradInput"), under(self, pads, kind));
}

}  // namespace

#define PADDING(name, kind, axes)                                                                  \
    ACLNN(name, PLAN { plan_pad(p, kind, axes, p.tensor("self"), "out", nullptr); },               \
          RUN { run_pad(r, kind); }, NARROW)
#define PADDING_BACKWARD(name, kind, axes)                                                         \
    ACLNN(name, PLAN { plan_pad(p, kind, axes, p.tensor("self"), "gradOutput", "gradInput"); },    \
          RUN { run_pad_backward(r, kind); })

PADDING(aclnnReflectionPad1d, kReflect, 1)
PADDING(aclnnReflectionPad2d, kReflect, 2)
PADDING(aclnnReflectionPad3d, kReflect, 3)
PADDING(aclnnReplicationPad1d, kReplicate, 1)
PADDING(aclnnReplicationPad2d, kReplicate, 2)
PADDING(aclnnReplicationPad3d, kReplicate, 3)
PADDING(aclnnCircularPad2d, kCircular, 2)
PADDING(aclnnCircularPad3d, kCircular, 3)
PADDING_BACKWARD(aclnnReflectionPad1dBackward, kReflect, 1)
PADDING_BACKWARD(aclnnReflectionPad2dBackward, kReflect, 2)
PADDING_BACKWARD(aclnnReflectionPad3dBackward, kReflect, 3)
PADDING_BACKWARD(aclnnReplicationPad1dBackward, kReplicate, 1)
PADDING_BACKWARD(aclnnReplicationPad2dBackward, kReplicate, 2)
PADDING_BACKWARD(aclnnReplicationPad3dBackward, kReplicate, 3)
PADDING_BACKWARD(aclnnCircularPad2dBackward, kCircular, 2)
PADDING_BACKWARD(aclnnCircularPad3dBackward, kCircular, 3)

// Negative pads cut off.
ACLNN(aclnnConstantPadNd,
      PLAN {
          const Tensor& self = p.tensor("self");
          size_t n = p.ints("pad").size();
          p.require(n % 2 == 0 && int(n) <= 2 * self.rank(), "pad has %zu entries, expected an even number up to %d", n,
                    2 * self.rank());
          Dims want = Pads(p.ints("pad"), self.rank()).padded(self.dims);
          for (int64_t size : want) p.require(size >= 0, "pad leaves shape %s", text(want).c_str());
          p.shape("out", want);
      },
      RUN {
          const Tensor& self = r.tensor("self");
          Pads pads(r.ints("pad"), self.rank());
          copy_from(
              r, self, r.tensor("out"),
              [&](Dims place) {
                  for (int d = 0; d < place.n; ++d) {
                      place[d] -= pads.before[d];
                      if (place[d] < 0 || place[d] >= self.dims[d]) return kNowhere;
                  }
                  return position(self.dims, place);
              },
              &r.scalar("value"));
      },
      NARROW)
