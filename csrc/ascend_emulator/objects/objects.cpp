#include "objects.h"

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
    std::string out = "(";
    for (int i = 0; i < dims.n; ++i) out += (i ? ", " : "") + std::to_string(dims[i]);
    return out + (dims.n == 1 ? ",)" : ")");
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
    int64_t item = int64_t(size_of(dtype));
    return {data + uint64_t(low * item), uint64_t((high - low + 1) * item), written};
}

}  // namespace emu
