#include "objects.h"

#include <charconv>

namespace emu {

Dims contiguous_strides(const Dims& dims) {
    Dims out;
    out.n = dims.n;
    int64_t step = 1;
    for (int i = dims.n - 1; i >= 0; --i) {
        out[i] = step;
        step *= dims[i] > 0 ? dims[i] : 1;
    }
    return out;
}

std::string text(const Dims& dims) {
    char buffer[kMaxRank * 22 + 3];  // twenty characters and two between them for each
    char* at = buffer;
    *at++ = '(';
    for (int i = 0; i < dims.n; ++i) {
        if (i) *at++ = ',', *at++ = ' ';
        at = std::to_chars(at, buffer + sizeof buffer, dims[i]).ptr;
    }
    if (dims.n == 1) *at++ = ',';
    *at++ = ')';
    return std::string(buffer, at);
}

bool Tensor::contiguous() const {
    if (numel() <= 1) return true;
    int64_t step = 1;
    for (int i = dims.n - 1; i >= 0; --i) {
        if (dims[i] == 1) continue;
        if (strides[i] != step) return false;
        step *= dims[i];
    }
    return true;
}

bool Tensor::span(int64_t* low, int64_t* high) const {
    *low = *high = offset;
    if (blocked.n != 0) {
        *high += block_dims(blocked, block_width(format, dtype)).product() - 1;
        return *high >= *low;
    }
    for (int i = 0; i < dims.n; ++i) {
        if (dims[i] == 0) return false;
        int64_t reach = strides[i] * (dims[i] - 1);
        (reach < 0 ? *low : *high) += reach;
    }
    return true;
}

Range Tensor::range(bool written) const {
    int64_t low, high;
    if (!span(&low, &high)) return {};
    if (is_half_byte(dtype)) return {data + uint64_t(low / 2), uint64_t(high / 2 - low / 2 + 1), written};
    int64_t item = int64_t(size_of(dtype));
    return {data + uint64_t(low * item), uint64_t((high - low + 1) * item), written};
}

bool is_blocked(int format) {
    return format == ACL_FORMAT_FRACTAL_NZ ||
           (format >= ACL_FORMAT_FRACTAL_NZ_C0_16 && format <= ACL_FORMAT_FRACTAL_NZ_C0_8);
}

int64_t block_width(int format, int dtype) {
    switch (format) {
        case ACL_FORMAT_FRACTAL_NZ_C0_16: return 16;
        case ACL_FORMAT_FRACTAL_NZ_C0_32: return 32;
        case ACL_FORMAT_FRACTAL_NZ_C0_2: return 2;
        case ACL_FORMAT_FRACTAL_NZ_C0_4: return 4;
        case ACL_FORMAT_FRACTAL_NZ_C0_8: return 8;
        default: return is_half_byte(dtype) ? 64 : 32 / int64_t(size_of(dtype) > 0 ? size_of(dtype) : 1);
    }
}

Dims block_dims(const Dims& dims, int64_t width) {
    Dims out = dims;
    out.n = dims.n - 2;
    out.push((dims[dims.n - 1] + width - 1) / width);
    out.push((dims[dims.n - 2] + 15) / 16);
    out.push(16);
    out.push(width);
    return out;
}

void unblock(Tensor& t) {
    if (!is_blocked(t.format) || t.dims.n < 2) return;
    int64_t width = block_width(t.format, t.dtype);
    int n = t.dims.n;
    if (n >= 4 && t.dims == t.storage && t.dims[n - 1] == width && t.dims[n - 2] == 16) {
        Dims whole = t.dims;
        whole.n = n - 2;
        whole[n - 4] = t.dims[n - 3] * 16;
        whole[n - 3] = t.dims[n - 4] * width;
        t.dims = t.blocked = whole;
        t.strides = contiguous_strides(whole);
        return;
    }
    t.blocked = t.dims;
    bool turned = t.strides[n - 2] == 1 && t.strides[n - 1] == t.dims[n - 2] && t.dims[n - 1] > 1;
    if (turned) std::swap(t.blocked[n - 1], t.blocked[n - 2]);
}

}  // namespace emu
