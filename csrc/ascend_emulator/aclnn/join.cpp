// Joining tensors and splitting them.
#include <algorithm>

#include "moving.h"

using namespace emu;

namespace {

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
        p.require(axis >= 0 && axis < t.rank(), "dim is %lld, expected [0, %d)", static_cast<long long>(axis),
                  t.rank());
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

}  // namespace

ACLNN(aclnnCat, PLAN { plan_cat(p); }, RUN { run_cat(r); }, NARROW)
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
