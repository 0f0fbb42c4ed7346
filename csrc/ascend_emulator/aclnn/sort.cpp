// Sorting, the greatest k, medians, membership and search in sorted sequences.
#include "moving.h"
#include "sorting.h"

using namespace emu;

namespace {

// For each line along `dim`: values and places of those `pick(line)` names, written where a shorter line of that many
// fits. Either output may be left out.
template <class F>
void write_picked(Run& r, const char* values, const char* places, F pick) {
    const Tensor& self = r.tensor("self");
    Dims dims = self.rank() == 0 ? Dims{1} : self.dims;
    int64_t axis = wrap(r.integer("dim"), dims.n);
    by_real_or_integer(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = read_ordered<T>(r, self);
        Lines lines(dims, axis);
        std::vector<T> y;
        std::vector<int64_t> where;
        int64_t count = -1;
        std::vector<T> line(static_cast<size_t>(lines.length));
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t i = 0; i < lines.inner; ++i) {
                for (int64_t k = 0; k < lines.length; ++k) line[size_t(k)] = x[size_t(lines.at(o, k, i))];
                std::vector<int64_t> picked = pick(line);
                if (count < 0) {
                    count = int64_t(picked.size());
                    y.resize(size_t(lines.outer * count * lines.inner));
                    where.resize(y.size());
                }
                for (int64_t k = 0; k < count; ++k) {
                    size_t to = size_t((o * count + k) * lines.inner + i);
                    where[to] = picked[size_t(k)];
                    y[to] = line[size_t(picked[size_t(k)])];
                }
            }
        if (values) write_ordered(r, r.tensor(values), y);
        if (places) r.write(r.tensor(places), where);
    });
}

// The k-th place in ascending order, k from 1.
template <class T>
std::vector<int64_t> kth(const std::vector<T>& line, int64_t k) {
    return {order_of(line, false)[size_t(k - 1)]};
}

// The lower median: NaN if there is one, or of the others when they are left out.
template <class T>
int64_t median_at(const std::vector<T>& line, bool skip_nan) {
    int64_t nans = std::count_if(line.begin(), line.end(), [](T v) { return is_nan(v); });
    int64_t size = int64_t(line.size()), numbers = size - nans;
    auto order = order_of(line, false);
    if (nans > 0 && (!skip_nan || numbers == 0)) return order[size_t(numbers)];  // the first NaN
    return order[size_t((numbers - 1) / 2)];
}

void plan_picked(Plan& p, const char* keep, int64_t least) {
    auto axes = plan_axis(p, "self", "dim", keep, "valuesOut");
    const Dims& dims = p.tensor("self").dims;
    p.require(dims.n == 0 || dims[axes[0]] >= least, "self has shape %s: axis %d is empty", text(dims).c_str(),
              axes[0]);
    p.shape("indicesOut", p.tensor("valuesOut").dims);
    p.same_dtype("self", "valuesOut");
    p.workspace = uint64_t(p.tensor("self").numel()) * 12 + 512;
}

void run_median(Run& r, bool skip_nan) {
    write_picked(r, "valuesOut", "indicesOut",
                 [=](const auto& line) { return std::vector<int64_t>{median_at(line, skip_nan)}; });
}

void plan_median_of_all(Plan& p, const char* out) {
    plan_one_element(p, out);
    p.same_dtype("self", out);
    p.require(p.tensor("self").numel() > 0 || is_real(p.tensor("self").dtype), "self is empty: it has no median");
    p.workspace = uint64_t(p.tensor("self").numel()) * 12 + 512;
}

void run_median_of_all(Run& r, const char* out, bool skip_nan) {
    by_real_or_integer(category(r.tensor("self").dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(r.tensor("self"));
        T y = x.empty() ? T(std::numeric_limits<double>::quiet_NaN()) : x[size_t(median_at(x, skip_nan))];
        r.write(r.tensor(out), std::vector<T>{y});
    });
}

// -- membership and search -------------------------------------------------------------------------------------------
void run_is_in(Run& r, const Tensor& elements, const Scalar& test) {
    int dtype = promote_scalar(elements.dtype, test.dtype);
    bool invert = r.flag("invert");
    by_category(category(dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(elements);
        std::vector<int64_t> y(x.size());
        for (size_t i = 0; i < x.size(); ++i) y[i] = (x[i] == test.as<T>()) != invert;
        r.write(r.tensor("out"), y);
    });
}

void plan_search(Plan& p) {
    bool narrow = p.flag("outInt32");
    int want = narrow ? int(ACL_INT32) : int(ACL_INT64), got = p.tensor("out").dtype;
    p.require(got == want, "out has dtype %s, expected %s", dtype_name(got), dtype_name(want));
}

void plan_sorter(Plan& p) {
    if (p.has("sorter")) p.same_shape("sortedSequence", "sorter");
}

// The first place whose value is not below v, or, from the right, is above it. NaN is above everything.
template <class T>
int64_t bound(const T* sequence, const int64_t* sorter, int64_t length, T v, bool right) {
    int64_t low = 0, high = length;
    while (low < high) {
        int64_t middle = (low + high) / 2, at = middle;
        if (sorter) {
            at = sorter[middle];
            checked_index(at, length, "sorter");
        }
        T x = sequence[at];
        bool before = right ? !above(x, v) : above(v, x);
        if (before) low = middle + 1;
        else high = middle;
    }
    return low;
}

template <class T>
void write_search(Run& r, const Tensor& sequence, const Tensor* order, const std::vector<T>& values, int64_t rows) {
    auto x = r.read<T>(sequence);
    bool right = r.flag("right");
    std::vector<int64_t> sorter;
    if (order) sorter = r.read<int64_t>(*order);
    int64_t length = rows > 0 ? sequence.numel() / rows : 0;
    int64_t each = rows > 0 ? int64_t(values.size()) / rows : 0;
    std::vector<int64_t> y(values.size());
    for (int64_t i = 0; i < int64_t(values.size()); ++i) {
        int64_t start = rows > 1 ? i / each * length : 0;
        y[size_t(i)] = bound(x.data() + start, sorter.empty() ? nullptr : sorter.data() + start, length,
                             values[size_t(i)], right);
    }
    r.write(r.tensor("out"), y);
}

const Tensor* sorter_of(const Run& r) { return r.has("sorter") ? &r.tensor("sorter") : nullptr; }

int64_t rows_of(const Tensor& sequence) {
    return sequence.rank() <= 1 ? 1 : sequence.dims.back() == 0 ? 0 : sequence.numel() / sequence.dims.back();
}

}  // namespace

ACLNN(aclnnSort,
      PLAN {
          p.axis("dim", p.tensor("self").rank());
          p.same_shape("self", "valuesOut");
          p.same_shape("self", "indicesOut");
          p.same_dtype("self", "valuesOut");
          p.workspace = uint64_t(p.tensor("self").numel()) * 12 + 512;
      },
      RUN {
          bool descending = r.flag("descending");
          write_picked(r, "valuesOut", "indicesOut", [=](const auto& line) { return order_of(line, descending); });
      })
// Companions of the values are carried along.
ACLNN(aclnnSortWithIndex,
      PLAN {
          p.axis("axis", p.tensor("x").rank());
          for (const char* name : {"index", "valuesOut", "indicesOut"}) p.same_shape("x", name);
          p.same_dtype("x", "valuesOut");
          p.same_dtype("index", "indicesOut");
      },
      RUN {
          const Tensor& tensor = r.tensor("x");
          auto companions = r.read<int64_t>(r.tensor("index")), carried = companions;
          Lines lines(tensor.dims, wrap(r.integer("axis"), std::max(tensor.rank(), 1)));
          by_real_or_integer(category(tensor.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(tensor), y = x;
              std::vector<T> line(static_cast<size_t>(lines.length));
              for (int64_t o = 0; o < lines.outer; ++o)
                  for (int64_t i = 0; i < lines.inner; ++i) {
                      for (int64_t k = 0; k < lines.length; ++k) line[size_t(k)] = x[size_t(lines.at(o, k, i))];
                      auto order = order_of(line, r.flag("descending"));
                      for (int64_t k = 0; k < lines.length; ++k) {
                          y[size_t(lines.at(o, k, i))] = line[size_t(order[size_t(k)])];
                          carried[size_t(lines.at(o, k, i))] = companions[size_t(lines.at(o, order[size_t(k)], i))];
                      }
                  }
              r.write(r.tensor("valuesOut"), y);
          });
          r.write(r.tensor("indicesOut"), carried);
      })
ACLNN(aclnnArgsort,
      PLAN {
          p.axis("dim", p.tensor("self").rank());
          p.same_shape("self", "out");
          p.workspace = uint64_t(p.tensor("self").numel()) * 12 + 512;
      },
      RUN {
          bool descending = r.flag("descending");
          write_picked(r, nullptr, "out", [=](const auto& line) { return order_of(line, descending); });
      })
ACLNN(aclnnTopk,
      PLAN {
          const Tensor& self = p.tensor("self");
          int64_t axis = p.axis("dim", self.rank()), k = p.integer("k"), size = self.dims[int(axis)];
          p.require(k >= 0 && k <= size, "k is %lld, expected [0, %lld]", static_cast<long long>(k),
                    static_cast<long long>(size));
          p.require(p.flag("sorted"), "sorted is false, only true is supported");
          p.shape("valuesOut", resized(self.dims, axis, k));
          p.shape("indicesOut", resized(self.dims, axis, k));
          p.same_dtype("self", "valuesOut");
          p.workspace = uint64_t(self.numel()) * 12 + 512;
      },
      RUN {
          bool largest = r.flag("largest");
          size_t k = size_t(r.integer("k"));
          write_picked(r, "valuesOut", "indicesOut", [=](const auto& line) {
              auto order = order_of(line, largest);
              order.resize(k);
              return order;
          });
      })
ACLNN(aclnnKthvalue,
      PLAN {
          plan_picked(p, "keepdim", 0);
          const Dims& dims = p.tensor("self").dims;
          int64_t k = p.integer("k"), size = dims[int(p.axis("dim", dims.n))];
          p.require(k >= 1 && k <= size, "k is %lld, expected [1, %lld]", static_cast<long long>(k),
                    static_cast<long long>(size));
      },
      RUN {
          int64_t k = r.integer("k");
          write_picked(r, "valuesOut", "indicesOut", [=](const auto& line) { return kth(line, k); });
      })
ACLNN(aclnnMedianDim, PLAN { plan_picked(p, "keepDim", 1); }, RUN { run_median(r, false); })
ACLNN(aclnnNanMedianDim, PLAN { plan_picked(p, "keepDim", 1); }, RUN { run_median(r, true); })
ACLNN(aclnnMedian, PLAN { plan_median_of_all(p, "valuesOut"); }, RUN { run_median_of_all(r, "valuesOut", false); })
ACLNN(aclnnNanMedian, PLAN { plan_median_of_all(p, "out"); }, RUN { run_median_of_all(r, "out", true); })

// assumeUnique is a hint about speed.
ACLNN(aclnnIsInTensorScalar,
      PLAN {
          p.same_shape("element", "out");
          p.require(promote_scalar(p.tensor("element").dtype, p.scalar("testElement").dtype) != ACL_DT_UNDEFINED,
                    "the dtypes of element and testElement do not promote");
      },
      RUN { run_is_in(r, r.tensor("element"), r.scalar("testElement")); })
ACLNN(aclnnIsInScalarTensor,
      PLAN {
          p.require(promote_scalar(p.tensor("testElements").dtype, p.scalar("element").dtype) != ACL_DT_UNDEFINED,
                    "the dtypes of element and testElements do not promote");
      },
      RUN {
          const Tensor& among = r.tensor("testElements");
          int dtype = promote_scalar(among.dtype, r.scalar("element").dtype);
          bool found = false;
          by_category(category(dtype), [&](auto zero) {
              using T = decltype(zero);
              T wanted = r.scalar("element").as<T>();
              for (T x : r.read<T>(among)) found |= x == wanted;
          });
          r.write(r.tensor("out"), std::vector<int64_t>{found != r.flag("invert")});
      })

ACLNN(aclnnSearchSorted,
      PLAN {
          const Tensor& sequence = p.tensor("sortedSequence");
          const Tensor& self = p.tensor("self");
          plan_search(p);
          plan_sorter(p);
          p.same_shape("self", "out");
          p.same_dtype("sortedSequence", "self");
          if (sequence.rank() <= 1) return;
          p.require(sequence.rank() == self.rank(), "sortedSequence has %d dimensions, self has %d", sequence.rank(),
                    self.rank());
          for (int d = 0; d + 1 < self.rank(); ++d)
              p.require(sequence.dims[d] == self.dims[d], "sortedSequence %s and self %s differ before the last axis",
                        text(sequence.dims).c_str(), text(self.dims).c_str());
      },
      RUN {
          const Tensor& sequence = r.tensor("sortedSequence");
          by_real_or_integer(category(sequence.dtype), [&](auto zero) {
              auto values = r.read<decltype(zero)>(r.tensor("self"));
              write_search(r, sequence, sorter_of(r), values, rows_of(sequence));
          });
      })
ACLNN(aclnnSearchSorteds,
      PLAN {
          plan_search(p);
          plan_sorter(p);
          plan_one_element(p, "out");
      },
      RUN {
          const Tensor& sequence = r.tensor("sortedSequence");
          by_real_or_integer(category(promote_scalar(sequence.dtype, r.scalar("self").dtype)), [&](auto zero) {
              using T = decltype(zero);
              write_search(r, sequence, sorter_of(r), std::vector<T>{r.scalar("self").as<T>()}, 1);
          });
      })
ACLNN(aclnnBucketize,
      PLAN {
          plan_search(p);
          p.same_shape("self", "out");
      },
      RUN {
          const Tensor& sequence = r.tensor("boundaries");
          bool real = is_real(sequence.dtype) || is_real(r.tensor("self").dtype);
          by_real_or_integer(real ? Category::Real : Category::Integer, [&](auto zero) {
              write_search(r, sequence, nullptr, r.read<decltype(zero)>(r.tensor("self")), 1);
          });
      })
