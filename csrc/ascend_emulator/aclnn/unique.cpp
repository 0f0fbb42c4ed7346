// Distinct values: of a whole tensor, of neighbours, of slices. Sizes of outputs depend on the data.
#include "sorting.h"

using namespace emu;

namespace {

// Which slices are equal: groups in the order they are given out, the group of each slice, and their sizes.
struct Groups {
    std::vector<int64_t> first, inverse, counts;

    // `places` lists all slices with equal ones side by side.
    template <class Same>
    Groups(const std::vector<int64_t>& places, Same same) : inverse(places.size()) {
        for (size_t k = 0; k < places.size(); ++k) {
            if (k == 0 || !same(places[k - 1], places[k])) {
                first.push_back(places[k]);
                counts.push_back(0);
            }
            ++counts.back();
            inverse[size_t(places[k])] = int64_t(first.size()) - 1;
        }
    }
};

constexpr int64_t kFlatten = 1000;  // the `dim` of UniqueConsecutive that means none

void plan_values(Plan& p, std::initializer_list<const char*> flat) {
    const Tensor& self = p.tensor("self");
    p.same_dtype("self", "valueOut");
    for (const char* name : flat)
        p.require(p.tensor(name).numel() == self.numel(), "%s has %lld elements, expected those of self, %lld", name,
                  static_cast<long long>(p.tensor(name).numel()), static_cast<long long>(self.numel()));
    p.workspace = uint64_t(self.numel()) * 24 + 512;
}

// Inverse and counts exist when asked for; otherwise their tensors are left alone.
void write_groups(Run& r, const Groups& groups, bool inverse, bool counts) {
    if (inverse) r.write(r.tensor("inverseOut"), groups.inverse);
    if (counts) {
        r.resize("countsOut", {int64_t(groups.counts.size())});
        r.write(r.tensor("countsOut"), groups.counts);
    }
}

// Always in ascending order, which an unsorted result may have too.
void run_unique(Run& r, bool inverse, bool counts) {
    by_real_or_integer(category(r.tensor("self").dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = read_ordered<T>(r, r.tensor("self"));
        Groups groups(order_of(x, false), [&](int64_t a, int64_t b) { return x[size_t(a)] == x[size_t(b)]; });
        std::vector<T> y;
        for (int64_t k : groups.first) y.push_back(x[size_t(k)]);
        r.resize("valueOut", {int64_t(y.size())});
        write_ordered(r, r.tensor("valueOut"), y);
        write_groups(r, groups, inverse, counts);
    });
}

// Slices along an axis; only neighbours when `consecutive`.
void run_unique_slices(Run& r, const Dims& dims, int64_t axis, bool consecutive, bool inverse, bool counts) {
    Lines lines(dims, axis);
    by_category(category(r.tensor("self").dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = read_ordered<T>(r, r.tensor("self"));
        std::vector<std::vector<T>> slices(static_cast<size_t>(lines.length));
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t k = 0; k < lines.length; ++k)
                for (int64_t i = 0; i < lines.inner; ++i) slices[size_t(k)].push_back(x[size_t(lines.at(o, k, i))]);
        std::vector<int64_t> places(slices.size());
        std::iota(places.begin(), places.end(), 0);
        if constexpr (!std::is_same_v<T, Complex>) {
            if (!consecutive)
                std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
                    const auto &s = slices[size_t(a)], &t = slices[size_t(b)];
                    return std::lexicographical_compare(s.begin(), s.end(), t.begin(), t.end(),
                                                        [](T u, T v) { return above(v, u); });
                });
        }
        Groups groups(places, [&](int64_t a, int64_t b) { return slices[size_t(a)] == slices[size_t(b)]; });
        int64_t count = int64_t(groups.first.size());
        Dims shape = dims;
        shape[int(axis)] = count;
        std::vector<T> y;
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t k : groups.first) {
                auto from = slices[size_t(k)].begin() + o * lines.inner;
                y.insert(y.end(), from, from + lines.inner);
            }
        check_room(r, "valueOut", shape.product());
        if (counts) check_room(r, "countsOut", count);
        r.resize("valueOut", shape);
        write_ordered(r, r.tensor("valueOut"), y);
        write_groups(r, groups, inverse, counts);
    });
}

}  // namespace

ACLNN(aclnnUnique,
      PLAN {
          plan_values(p, {"valueOut"});
          if (p.flag("returnInverse")) p.same_shape("self", "inverseOut");
      },
      RUN { run_unique(r, r.flag("returnInverse"), false); }, DYNAMIC)
ACLNN(aclnnUnique2,
      PLAN {
          plan_values(p, {"valueOut"});
          if (p.flag("returnInverse")) p.same_shape("self", "inverseOut");
          if (p.flag("returnCounts")) plan_values(p, {"countsOut"});
      },
      RUN { run_unique(r, r.flag("returnInverse"), r.flag("returnCounts")); }, DYNAMIC)
ACLNN(aclnnUniqueConsecutive,
      PLAN {
          const Tensor& self = p.tensor("self");
          p.same_dtype("inverseOut", "countsOut");
          int64_t dim = p.integer("dim");
          if (dim == kFlatten) {
              plan_values(p, {"valueOut"});
              if (p.flag("returnInverse")) p.same_shape("self", "inverseOut");
              if (p.flag("returnCounts")) plan_values(p, {"countsOut"});
              return;
          }
          plan_values(p, {});
          Dims size{self.rank() == 0 ? 1 : self.dims[int(p.axis("dim", self.rank()))]};
          p.same_shape("self", "valueOut");
          if (p.flag("returnInverse")) p.shape("inverseOut", size);
          if (p.flag("returnCounts")) p.shape("countsOut", size);
      },
      RUN {
          const Tensor& self = r.tensor("self");
          bool flat = r.integer("dim") == kFlatten || self.rank() == 0;
          run_unique_slices(r, flat ? Dims{self.numel()} : self.dims, flat ? 0 : wrap(r.integer("dim"), self.rank()),
                            true, r.flag("returnInverse"), r.flag("returnCounts"));
      },
      DYNAMIC)
ACLNN(aclnnUniqueDim,
      PLAN {
          const Tensor& self = p.tensor("self");
          plan_values(p, {});
          Dims size{self.dims[int(p.axis("dim", self.rank()))]};
          // Room for all slices, or for as many as the caller knows there are.
          int axis = int(p.axis("dim", self.rank()));
          Dims largest = p.tensor("valueOut").dims, counts = p.tensor("countsOut").dims;
          if (largest.n == self.rank() && largest[axis] <= size[0]) largest[axis] = size[0];
          p.require(largest == self.dims, "valueOut has shape %s, self has %s", text(largest).c_str(),
                    text(self.dims).c_str());
          if (p.flag("returnInverse")) p.shape("inverseOut", size);
          p.require(counts.n == 1 && counts[0] <= size[0], "countsOut has shape %s, expected at most %s",
                    text(counts).c_str(), text(size).c_str());
      },
      RUN {
          const Tensor& self = r.tensor("self");
          run_unique_slices(r, self.dims, wrap(r.integer("dim"), self.rank()), false, r.flag("returnInverse"), true);
      },
      DYNAMIC)
