// To small integers: rounding, bounds, groups of rows, and scales found from the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernel.h"

namespace emu {

struct ByteRange {
    double low, high;
};

inline ByteRange range_of(int dtype) {
    switch (dtype) {
        case ACL_UINT8: return {0, 255};
        case ACL_INT32: return {-2147483648.0, 2147483647.0};
        case ACL_INT4: return {-8, 7};
        default: return {-128, 127};
    }
}

inline double rounded(double x, const std::string& mode = "rint") {
    if (mode == "floor") return std::floor(x);
    if (mode == "ceil") return std::ceil(x);
    if (mode == "trunc") return std::trunc(x);
    return std::nearbyint(x);  // half to even
}

inline std::vector<double> within(std::vector<double> x, int dtype, const std::string& mode = "rint") {
    if (is_narrow_float(dtype)) return x;  // writing rounds, and stops at the largest
    ByteRange range = range_of(dtype);
    for (double& v : x) v = std::fmin(std::fmax(rounded(v, mode), range.low), range.high);
    return x;
}

// A scale of the matrix unit holds a float in its lower half.
inline std::vector<double> read_scale(const Run& r, const Tensor& t) {
    if (t.dtype != ACL_UINT64 && t.dtype != ACL_INT64) return r.read<double>(t);
    std::vector<double> out;
    for (int64_t bits : r.read<int64_t>(t)) {
        uint32_t low = uint32_t(bits);
        float value;
        std::memcpy(&value, &low, 4);
        out.push_back(value);
    }
    return out;
}

// Eight 4-bit integers in each INT32 of the innermost dimension, the first in its lowest bits. One stride leads to all of
// them, so they lie side by side.
inline Tensor half_bytes(Tensor t) {
    if (t.dtype != ACL_INT32 || t.rank() == 0) return t;
    int inner = t.rank() - 1;
    if (t.rank() > 1 && t.strides[inner] != 1 && t.strides[inner - 1] == 1) --inner;
    if (t.dims[inner] > 1 && t.strides[inner] != 1)
        refuse(ACLNN_ERR_PARAM_INVALID, "INT32 that holds INT4 is dense along dimension %d, stride %lld", inner, static_cast<long long>(t.strides[inner]));
    for (int i = 0; i < t.rank(); ++i)
        if (i != inner) t.strides[i] *= 8;
    t.dims[inner] *= 8, t.offset *= 8;
    if (t.blocked.n != 0) t.blocked[t.blocked.n - 1] *= 8;
    t.dtype = ACL_INT4;
    return t;
}

// The value that the largest element of a block is brought to.
inline double top_of(int dtype) { return is_narrow_float(dtype) ? narrow_largest(dtype) : range_of(dtype).high; }

// The same where an attribute may say another.
inline double block_top(const Call& c) {
    double stated = 0;
    for (int i = 0; i < c.function->count; ++i)
        if (std::strcmp(c.function->parameters[i].name, "dstTypeMax") == 0) stated = c.real("dstTypeMax");
    return stated > 0 ? stated : top_of(half_bytes(c.tensor("yOut")).dtype);
}

// Numbers of eight bits or fewer in the shape of another tensor; eight integers of four bits may stand in an INT32.
inline void need_small(const Plan& p, const char* x, const char* y) {
    Tensor t = half_bytes(p.tensor(y));
    p.require(t.dtype == ACL_INT8 || is_narrow(t.dtype), "%s has dtype %s, expected a number of eight bits or fewer, or INT32 that holds eight of four", y, dtype_name(t.dtype));
    p.require(t.dims == p.tensor(x).dims, "%s holds %s numbers, %s has shape %s", y, text(t.dims).c_str(), x, text(p.tensor(x).dims).c_str());
}

// Results are bytes, or of a type whose kernel says NARROW.
inline void need_bytes(const Plan& p, const char* name) {
    int dtype = p.tensor(name).dtype;
    p.require(dtype == ACL_INT8 || is_narrow(dtype), "%s has dtype %s beside scales, expected a number of eight bits or fewer", name, dtype_name(dtype));
}

// An attribute repeats the dtype of a result.
inline void need_stated(const Plan& p, const char* attribute, const char* name) {
    p.require(p.integer(attribute) == p.tensor(name).dtype, "%s is %lld, %s has dtype %s", attribute, static_cast<long long>(p.integer(attribute)), name,
              dtype_name(p.tensor(name).dtype));
}

// The group of each row, where `ends` says at which row each group ends; rows behind the last end have none (-1).
inline std::vector<int64_t> groups_of(const std::vector<int64_t>& ends, int64_t rows) {
    std::vector<int64_t> out;
    size_t group = 0;
    for (int64_t i = 0; i < rows; ++i) {
        while (group < ends.size() && i >= ends[group]) ++group;
        out.push_back(group < ends.size() ? int64_t(group) : -1);
    }
    return out;
}

inline Dims without_last(const Dims& dims) {
    Dims out = dims;
    --out.n;
    return out;
}

struct Stretched {
    std::vector<double> values, scales, offsets;
};

// Rows of `length` over the range of a type, whose largest number is `top`; with offsets the whole of a row's range is used,
// otherwise it is symmetric. Rows without elements, `rows` of them, have zeros for scales.
inline Stretched stretched(std::vector<double> x, int64_t length, int64_t rows, int dtype, double top, bool shifts) {
    if (x.empty()) return {x, std::vector<double>(size_t(rows)), std::vector<double>(size_t(rows))};
    std::vector<double> scales, offsets;
    ByteRange range = range_of(dtype);
    for (size_t row = 0; row < x.size(); row += size_t(length)) {
        double low = INFINITY, high = -INFINITY;
        for (size_t k = row; k < row + size_t(length); ++k) low = std::fmin(low, x[k]), high = std::fmax(high, x[k]);
        double largest = std::fmax(std::fabs(low), std::fabs(high));
        double scale = shifts ? (high - low) / (range.high - range.low) : largest / top;
        double offset = shifts ? range.high - (scale > 0 ? high / scale : 0) : 0;
        for (size_t k = row; k < row + size_t(length); ++k) x[k] = (scale > 0 ? x[k] / scale : 0) + offset;
        scales.push_back(scale);
        offsets.push_back(offset);
    }
    return {within(std::move(x), dtype), scales, offsets};
}

// Writes such rows, and one scale for each.
inline void write_dynamic(const Run& r, std::vector<double> x, int64_t length, const char* y, const char* scale_name,
                   const char* offset_name = nullptr) {
    Tensor out = half_bytes(r.tensor(y));
    Stretched rows = stretched(std::move(x), length, r.tensor(scale_name).numel(), out.dtype, top_of(out.dtype), offset_name != nullptr);
    r.write(out, rows.values);
    r.write(r.tensor(scale_name), rows.scales);
    if (offset_name) r.write(r.tensor(offset_name), rows.offsets);
}

// Factors of the columns: one row of them for all rows, or one for each group of rows.
inline void smooth(const Run& r, std::vector<double>& x, int64_t length, const char* name, const char* groups) {
    if (!r.has(name) || x.empty()) return;
    auto factors = r.read<double>(r.tensor(name));
    std::vector<int64_t> of(x.size() / size_t(length));
    if (groups && r.has(groups)) of = groups_of(r.read<int64_t>(r.tensor(groups)), int64_t(of.size()));
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t group = of[i / size_t(length)];
        if (group >= 0) x[i] *= factors[size_t(group * length) + i % size_t(length)];
    }
}

}  // namespace emu
