// What kernels ask of their arguments, and how they reach memory.
#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <stdexcept>

#include "kernel.h"

namespace emu {

void refuse(int code, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string message = format_text(format, args);
    va_end(args);
    throw Refusal{code, message};
}

void fault(const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::string message = format_text(format, args);
    va_end(args);
    throw DeviceFault{ACL_ERROR_RT_AICORE_EXCEPTION, message};
}

// -- arguments -------------------------------------------------------------------------------------------------------
namespace {

const Value& found(const Call& call, const char* name, bool needed) {
    for (int i = 0; i < call.function->count; ++i) {
        const char* known = call.function->parameters[i].name;
        // Most names differ in their first letter: a call of strcmp costs more than the look at it.
        if (known[0] == name[0] && std::strcmp(known, name) == 0) {
            const Value& v = call.values[size_t(i)];
            if (needed && !v.given) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null; this call needs it", name);
            return v;
        }
    }
    throw std::logic_error(std::string("no parameter is called ") + name);
}

}  // namespace

const Value& Call::at(const char* name) const { return found(*this, name, false); }
bool Call::has(const char* name) const { return found(*this, name, false).given; }
const Tensor& Call::tensor(const char* name) const { return found(*this, name, true).tensor; }
const std::vector<Tensor>& Call::tensors(const char* name) const { return found(*this, name, true).tensors; }
const Scalar& Call::scalar(const char* name) const { return found(*this, name, true).scalar; }
const std::vector<Scalar>& Call::scalars(const char* name) const { return found(*this, name, true).scalars; }
const std::vector<int64_t>& Call::ints(const char* name) const { return found(*this, name, false).ints; }
const std::vector<double>& Call::floats(const char* name) const { return found(*this, name, false).floats; }
int64_t Call::integer(const char* name) const { return found(*this, name, true).integer; }
double Call::real(const char* name) const { return found(*this, name, true).real; }
bool Call::flag(const char* name) const { return found(*this, name, true).integer != 0; }
int Call::dtype(const char* name) const { return int(found(*this, name, true).integer); }
const std::string& Call::string(const char* name) const { return found(*this, name, false).string; }

const Tensor& Call::input(int wanted) const {
    int seen = 0;
    for (int i = 0; i < function->count; ++i) {
        const Parameter& p = function->parameters[i];
        if (p.role != Role::tensor || (p.output && !p.in_place)) continue;
        if (seen++ == wanted) {
            if (!values[size_t(i)].given) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null; this call needs it", p.name);
            return values[size_t(i)].tensor;
        }
    }
    throw std::logic_error("no such input");
}

const Tensor& Call::output(int wanted) const {
    int seen = 0;
    for (int i = 0; i < function->count; ++i) {
        const Parameter& p = function->parameters[i];
        if (p.role != Role::tensor || !p.output) continue;
        if (seen++ == wanted) {
            if (!values[size_t(i)].given) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null; this call needs it", p.name);
            return values[size_t(i)].tensor;
        }
    }
    throw std::logic_error("no such output");
}

// -- phase 1 ---------------------------------------------------------------------------------------------------------
void Plan::require(bool holds, const char* format, ...) const {
    if (holds) return;
    va_list args;
    va_start(args, format);
    std::string message = format_text(format, args);
    va_end(args);
    throw Refusal{ACLNN_ERR_PARAM_INVALID, message};
}

void Plan::same_shape(const char* a, const char* b) const { shape(b, tensor(a).dims); }

void Plan::shape(const char* name, const Dims& want) const {
    const Dims& got = tensor(name).dims;
    require(got == want, "%s has shape %s, expected %s", name, text(got).c_str(), text(want).c_str());
}

void Plan::same_dtype(const char* a, const char* b) const {
    require(tensor(a).dtype == tensor(b).dtype, "%s has dtype %s and %s has %s; they must be the same", a,
            dtype_name(tensor(a).dtype), b, dtype_name(tensor(b).dtype));
}

int64_t Plan::axis(int64_t given, int rank, const char* name) const {
    int r = rank == 0 ? 1 : rank;
    require(given >= -r && given < r, "%s is %lld, expected [%d, %d)", name, static_cast<long long>(given), -r, r);
    return wrap(given, r);
}

int64_t Plan::axis(const char* name, int rank) const { return axis(integer(name), rank, name); }

std::vector<int> Plan::axes(const char* name, int rank) const {
    std::vector<int> out;
    for (int64_t given : ints(name)) out.push_back(int(axis(given, rank, name)));
    if (out.empty())
        for (int i = 0; i < rank; ++i) out.push_back(i);
    std::sort(out.begin(), out.end());
    require(std::adjacent_find(out.begin(), out.end()) == out.end(), "%s names an axis twice", name);
    return out;
}

void Plan::casts(int from, const char* to) const {
    int into = tensor(to).dtype;
    require(castable(from, into), "a result of dtype %s cannot be cast to %s, the dtype of %s", dtype_name(from),
            dtype_name(into), to);
}

// -- phase 2 ---------------------------------------------------------------------------------------------------------
namespace {

// f(index, element offset from data) for each element in row-major order.
template <class F>
void walk(const Dims& dims, const Dims& strides, int64_t offset, F f) {
    int64_t total = dims.product();
    if (total == 0) return;
    int last = dims.n - 1;
    if (last < 0) {
        f(int64_t{0}, offset);
        return;
    }
    Dims place;
    place.n = dims.n;
    for (int64_t i = 0; i < total;) {
        int64_t at = offset;
        for (int64_t k = 0; k < dims[last]; ++k, ++i, at += strides[last]) f(i, at);
        int d = last - 1;
        for (; d >= 0; --d) {
            offset += strides[d];
            if (++place[d] < dims[d]) break;
            offset -= strides[d] * dims[d];
            place[d] = 0;
        }
        if (d < 0) break;
    }
}

// The elements a tensor's view is taken of, from the first to the last of them; its owner's elements of four bits are
// taken apart, its blocks put together.
struct Memory {
    unsigned char* bytes = nullptr;
    int64_t low = 0;  // the place, counted in elements from `data`, that `bytes` begins with
    int dtype;
    bool halves;
    int64_t width = 0, rows = 1, columns = 1, matrix = 1;  // of blocks

    Memory(const Tensor& t, const char* what) : dtype(t.dtype), halves(is_half_byte(t.dtype)) {
        int64_t high;
        if (!t.span(&low, &high)) return;
        Range range = t.range(false);
        bytes = reach(range.begin, range.bytes, what);
        if (halves) low -= low % 2;
        if (t.blocked.n == 0) return;
        width = block_width(t.format, t.dtype);
        rows = t.blocked[t.blocked.n - 2], columns = t.blocked[t.blocked.n - 1];
        matrix = block_dims(Dims{rows, columns}, width).product();
    }

    // Place of the element of the view that would stand at `at` if the matrices were whole.
    int64_t place(int64_t at) const {
        if (width == 0) return at - low;
        int64_t inside = at % (rows * columns);
        return at / (rows * columns) * matrix + block_place(inside / columns, inside % columns, rows, width);
    }
    template <class T>
    T get(int64_t at) const {
        int64_t i = place(at);
        if (halves) return convert<T>(narrow_value(dtype, uint8_t(bytes[i / 2] >> (i % 2 * 4) & 15)));
        return load<T>(bytes + size_t(i) * size_of(dtype), dtype);
    }
    template <class T>
    void put(int64_t at, T x) const {
        int64_t i = place(at);
        if (!halves) return store<T>(bytes + size_t(i) * size_of(dtype), dtype, x);
        int shift = int(i % 2 * 4);
        bytes[i / 2] = uint8_t((bytes[i / 2] & ~(15 << shift)) | narrow_code(dtype, convert<double>(x)) << shift);
    }
};

}  // namespace

template <class T>
std::vector<T> Run::read(const Tensor& t) const {
    return read<T>(t, t.dims);
}

template <class T>
std::vector<T> Run::read(const Tensor& t, const Dims& to) const {
    std::vector<T> out(size_t(to.product()));
    if (out.empty()) return out;
    Dims strides;
    strides.n = to.n;
    int lead = to.n - t.dims.n;
    for (int i = 0; i < to.n; ++i) strides[i] = i < lead || t.dims[i - lead] == 1 ? 0 : t.strides[i - lead];
    Memory memory(t, "an input");
    if (memory.halves || memory.width != 0) {
        walk(to, strides, memory.width ? 0 : t.offset,
             [&](int64_t i, int64_t at) { out[size_t(i)] = memory.get<T>(at); });
        return out;
    }
    unsigned char* p = memory.bytes;
    size_t item = size_of(t.dtype);
    int dtype = t.dtype;
    walk(to, strides, t.offset - memory.low,
         [&](int64_t i, int64_t at) { out[size_t(i)] = load<T>(p + size_t(at) * item, dtype); });
    return out;
}

template <class T>
void Run::write(const Tensor& t, const std::vector<T>& values) const {
    if (int64_t(values.size()) < t.numel()) throw std::logic_error("a kernel wrote too few elements");
    Memory memory(t, "an output");
    if (memory.bytes == nullptr) return;
    if (memory.width != 0) {  // what is beyond the edge of the matrices is zero
        Range range = t.range(true);
        std::memset(memory.bytes, 0, range.bytes);
    }
    walk(t.dims, t.strides, memory.width ? 0 : t.offset,
         [&](int64_t i, int64_t at) { memory.put<T>(at, values[size_t(i)]); });
}

template std::vector<double> Run::read(const Tensor&) const;
template std::vector<int64_t> Run::read(const Tensor&) const;
template std::vector<Complex> Run::read(const Tensor&) const;
template std::vector<double> Run::read(const Tensor&, const Dims&) const;
template std::vector<int64_t> Run::read(const Tensor&, const Dims&) const;
template std::vector<Complex> Run::read(const Tensor&, const Dims&) const;
template void Run::write(const Tensor&, const std::vector<double>&) const;
template void Run::write(const Tensor&, const std::vector<int64_t>&) const;
template void Run::write(const Tensor&, const std::vector<Complex>&) const;

void Run::resize(const char* name, const Dims& dims) {
    for (int i = 0; i < function->count; ++i)
        if (std::strcmp(function->parameters[i].name, name) == 0) {
            resized.emplace_back(i, dims);
            values[size_t(i)].tensor.dims = dims;
            values[size_t(i)].tensor.strides = contiguous_strides(dims);
            return;
        }
    throw std::logic_error(std::string("no parameter is called ") + name);
}

// -- shapes ----------------------------------------------------------------------------------------------------------
bool broadcast(const Dims& a, const Dims& b, Dims* out) {
    Dims result;
    result.n = std::max(a.n, b.n);
    for (int i = 1; i <= result.n; ++i) {
        int64_t x = i <= a.n ? a[a.n - i] : 1, y = i <= b.n ? b[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        result[result.n - i] = x == 1 ? y : x;
    }
    *out = result;
    return true;
}

Dims broadcast_all(const Plan& p, std::initializer_list<const Dims*> shapes) {
    Dims out;
    for (const Dims* shape : shapes) {
        Dims next;
        p.require(broadcast(out, *shape, &next), "shapes %s and %s do not broadcast", text(out).c_str(),
                  text(*shape).c_str());
        out = next;
    }
    return out;
}

int64_t wrap(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

Dims reduced(const Dims& dims, const std::vector<int>& axes, bool keep) {
    Dims out;
    for (int i = 0; i < dims.n; ++i) {
        bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
        if (!gone) out.push(dims[i]);
        else if (keep) out.push(1);
    }
    return out;
}

}  // namespace emu
