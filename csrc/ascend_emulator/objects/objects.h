// What the handles of libnnopbase stand for. Host objects only: device memory is never touched here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../core/acl.h"
#include "../core/dtype.h"
#include "../core/handles.h"

namespace emu {

constexpr int kMaxRank = 25;  // the object API's own limit; operators accept 8

// A short list of sizes or strides without allocation.
struct Dims {
    int n = 0;
    std::array<int64_t, kMaxRank> v;  // zeros in a list that was made empty

    Dims() : v{} {}
    Dims(std::initializer_list<int64_t> list) : v{} {
        for (int64_t x : list) push(x);
    }
    Dims(const int64_t* from, uint64_t count) : n(int(count)) {
        for (int i = 0; i < n; ++i) v[i] = from[i];
    }
    // A tensor has four of these, a call several tensors, and few have more than four dimensions.
    Dims(const Dims& other) : n(other.n) {
        for (int i = 0; i < n; ++i) v[i] = other.v[i];
    }
    Dims& operator=(const Dims& other) {
        n = other.n;
        for (int i = 0; i < n; ++i) v[i] = other.v[i];
        return *this;
    }

    int size() const { return n; }
    int64_t& operator[](int i) { return v[i]; }
    int64_t operator[](int i) const { return v[i]; }
    int64_t back() const { return v[n - 1]; }
    void push(int64_t x) {
        if (n < kMaxRank) v[n++] = x;
    }
    const int64_t* begin() const { return v.data(); }
    const int64_t* end() const { return v.data() + n; }
    int64_t* begin() { return v.data(); }
    int64_t* end() { return v.data() + n; }
    bool operator==(const Dims& other) const {
        if (n != other.n) return false;
        for (int i = 0; i < n; ++i)
            if (v[i] != other.v[i]) return false;
        return true;
    }
    bool operator!=(const Dims& other) const { return !(*this == other); }
    int64_t product() const {
        int64_t total = 1;
        for (int i = 0; i < n; ++i) total *= v[i];
        return total;
    }
};

EMU_API Dims contiguous_strides(const Dims& dims);
std::string text(const Dims& dims);  // quick: most are made for a message that nobody sees

struct Tensor {
    Dims dims, strides, storage;
    int64_t offset = 0;
    int dtype = ACL_DT_UNDEFINED;
    int format = ACL_FORMAT_UNDEFINED;
    uint64_t data = 0;
    void* handle = nullptr;
    Dims blocked;  // of a tensor in FRACTAL_NZ, the matrices its blocks hold; otherwise without dimensions

    int rank() const { return dims.n; }
    int64_t numel() const { return dims.product(); }
    // Sizes of 1 do not count, nor does a tensor of at most one element: as the vendor tests it.
    bool contiguous() const;
    // First and last element from `data`, counted in elements; false when the tensor is empty.
    bool span(int64_t* low, int64_t* high) const;
    Range range(bool written) const;
};

// -- FRACTAL_NZ: blocks of 16 rows and 32 bytes, a column of blocks after the other -------------------------------------
EMU_API bool is_blocked(int format);
// Elements of a block's row.
EMU_API int64_t block_width(int format, int dtype);
// (..., rows, columns) -> (..., columns / width, rows / 16, 16, width), rounded up.
EMU_API Dims block_dims(const Dims& dims, int64_t width);
// Where element (row, column) of one matrix stands; `rows` is how many it has.
inline int64_t block_place(int64_t row, int64_t column, int64_t rows, int64_t width) {
    return (column / width * ((rows + 15) / 16) + row / 16) * 16 * width + row % 16 * width + column % width;
}
// The tensor as the matrices its blocks hold, whether its view says their sizes or those of the blocks.
void unblock(Tensor& t);

struct Scalar {
    int dtype = ACL_DT_UNDEFINED;
    unsigned char bytes[16] = {};

    template <class T>
    T as() const {
        return load<T>(bytes, dtype);
    }
};

template <class T>
struct Array {
    std::vector<T> values;
};

struct List {  // of tensors or of scalars; owns them
    std::vector<void*> handles;
};

}  // namespace emu
