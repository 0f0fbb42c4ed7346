// unary, binary and ternary: how operands of any dtype and layout reach the range kernels. Invariant: every element is
// loaded before the element at the same place is stored, so the output may be one of the inputs.
#include "pointwise.h"
#include "pointwise_loop.h"
#include "pointwise_repeat.h"

namespace mt {

KernelTables kernels;
// pointwise_half.cpp; no other file needs to know
UnaryFn half_unary(int64_t op, int code);
BinaryKernel half_kernel(int64_t op, int code);
TernaryFn half_ternary(int64_t op, int code);
BinaryFn half_lerp(int code);
UnaryFn half_clamp(int code);
UnaryFn half_power(double exponent, int code);
void register_wide();  // pointwise_wide.cpp, after all others

namespace {

const char* const UNARY_NAMES[] = {
#define MT_NAME(name, ...) #name,
    MT_UNARY_OPS(MT_NAME)};
const char* const BINARY_NAMES[] = {MT_BINARY_OPS(MT_NAME) "ADD", "TRUNC_DIV", "TRUNC_DIV"};
const char* const TERNARY_NAMES[] = {MT_TERNARY_OPS(MT_NAME)};
#undef MT_NAME

struct Registered {
    Registered() {
        register_unary_float();
        register_binary_float();
        register_special();
        register_activations();
        register_integer();
        register_complex();
        register_wide();
    }
} registered;

// Work (elements times cost) below which no thread is woken; above, each gets at least GRAIN of it.
constexpr int64_t PARALLEL_MIN = 65536;
MT_INLINE int64_t grain_of(int64_t numel, int cost) {
    return saturated_mul(numel, cost) < PARALLEL_MIN ? numel : GRAIN / cost;
}

// Roughly, the time of an element in units of an addition's.
// clang-format off: a table
MT_INLINE int cost_of(int op, Native native) {
    bool heavy = false;
    switch (op) {
#define MT_CASE(name, ...) case OP_##name:
        MT_UNARY_EXPRESSION_PAIRS(MT_CASE) MT_SPECIAL_UNARY_OPS(MT_CASE) MT_SPECIAL_BINARY_OPS(MT_CASE)
#undef MT_CASE
        case OP_EXP: case OP_LOG: case OP_SIN: case OP_COS: case OP_TAN: case OP_TANH:
        case OP_SIGMOID: case OP_GELU: case OP_GELU_TANH: case OP_SILU: case OP_ERF: case OP_LGAMMA:
        case OP_DIGAMMA: case OP_ERFINV: case OP_SINC: case OP_ANGLE: case OP_POW: case OP_ATAN2: case OP_HYPOT:
        case OP_FMOD: case OP_REMAINDER: case OP_FLOOR_DIV: case OP_GCD: case OP_LCM: case OP_XLOGY: case OP_GELU_BACKWARD:
        case OP_GELU_TANH_BACKWARD: case OP_SILU_BACKWARD: case OP_ELU: case OP_SOFTPLUS: case OP_LOG_SIGMOID:
        case OP_MISH: case OP_ELU_BACKWARD: case OP_SOFTPLUS_BACKWARD: case OP_LOG_SIGMOID_BACKWARD:
        case OP_MISH_BACKWARD:
            heavy = true;
            break;
        default: break;
    }
    return heavy ? (native == N_F32 ? 4 : 16) : 1;
}
// clang-format on

// How one call is computed: the dtype each input block has, the kernel, and the dtype it writes.
template <int N> struct Plan {
    int ccode;
    int cost;
    int target[N];
    int result;
    bool exact;                 // blocks hold ccode itself, not a wider type that stands for it
    bool round_numbers;         // a Python number is rounded to ccode first, as PyTorch does except in * and / and lerp
    bool wide_scalars = false;  // the kernel takes one value as float32, whatever the operand is
    UnaryFn fn1 = nullptr;
    BinaryKernel fn2;
    TernaryFn fn3 = nullptr;
    Params params;
};

template <int N>
MT_INLINE void call(Plan<N>& plan, char* out, const char* const* in, const bool* scalar, int64_t n) {
    if constexpr (N == 1) {
        plan.fn1(out, in[0], n, plan.params);
    } else if constexpr (N == 2) {
        const BinaryFn fn = scalar[1] ? plan.fn2.vs : scalar[0] ? plan.fn2.sv : plan.fn2.vv;
        const int one = scalar[1] ? 1 : 0;
        if (MT_UNLIKELY(plan.wide_scalars && scalar[one] && plan.target[one] != F32)) {
            float wide;
            cast_block(reinterpret_cast<char*>(&wide), F32, in[one], plan.target[one], 1);
            const char* given = reinterpret_cast<const char*>(&wide);
            fn(out, one ? in[0] : given, one ? given : in[1], n, plan.params);
        } else {
            fn(out, in[0], in[1], n, plan.params);
        }
    } else {
        plan.fn3(out, in[0], in[1], in[2], n, plan.params);
    }
}
// Whether the kernel takes this operand as one value, given that no other one is scalar.
template <int N> MT_INLINE bool takes_scalar(const Plan<N>& plan, int k) {
    if constexpr (N == 2) return (k == 0 ? plan.fn2.sv : plan.fn2.vs) != nullptr;
    else return (void)plan, (void)k, false;
}

// ---------------------------------------------------------------- the general way

struct Source {
    int code, itemsize, target;
    int via;       // intermediate dtype of the cast, or -1
    bool convert;  // code differs from target
};

template <int N> class Worker {
public:
    Worker(Plan<N>& plan, const Loop<N + 1>& loop, const Source* sources, int ocode)
        : plan_(plan), loop_(loop), sources_(sources), ocode_(ocode), osize_(ITEMSIZE[ocode]),
          // A result in the native type stands for one in ccode: it wraps or rounds there first.
          via_(!plan.exact && plan.result == NATIVE_CODE[native_of(plan.ccode)] && ocode != plan.ccode),
          as_is_(ocode == plan.result && !via_) {}

    // Can rows of any length go to the kernel as they are?
    bool direct() const {
        bool ok = as_is_ && loop_.step[0][0] == osize_;
        int scalars = 0;
        for (int k = 0; k < N; ++k) {
            const bool one = loop_.step[k + 1][0] == 0 && takes_scalar(plan_, k);
            ok &= !sources_[k].convert && (one || loop_.step[k + 1][0] == sources_[k].itemsize);
            scalars += one;
        }
        return ok && scalars <= 1;
    }
    // n1 rows of n0 elements, at most BLOCK together.
    void tile(char* const* ptr, int64_t n0, int64_t n1) {
        if (n1 > 1 && n0 >= 32 && rows_pay(n0)) tile_by_rows(ptr, n0, n1);
        else tile_at_once(ptr, n0, n1);
    }

private:
    // Whether the output and some input can be used where they lie if the kernel is called row by row. Calling it once
    // for the tile would need them in one piece.
    bool rows_pay(int64_t n0) const {
        if (!as_is_ || loop_.step[0][0] != osize_ || loop_.step[0][1] == n0 * osize_) return false;
        for (int k = 0; k < N; ++k)
            if (!sources_[k].convert && loop_.step[k + 1][0] == sources_[k].itemsize) return true;
        return N == 1;
    }
    void tile_by_rows(char* const* ptr, int64_t n0, int64_t n1) {
        const char* in[N];
        int64_t step[N];
        bool scalar[N];
        for (int k = 0; k < N; ++k) {
            const int64_t s0 = loop_.step[k + 1][0], s1 = loop_.step[k + 1][1];
            scalar[k] = false;
            if (!sources_[k].convert && s0 == sources_[k].itemsize) {
                in[k] = ptr[k + 1];
                step[k] = s1;
            } else {
                in[k] = load(k, ptr[k + 1], n0, n1, s0, s1);
                step[k] = n0 * ITEMSIZE[sources_[k].target];
            }
        }
        for (int64_t j = 0; j < n1; ++j) {
            const char* at[N];
            for (int k = 0; k < N; ++k) at[k] = in[k] + j * step[k];
            call(plan_, ptr[0] + j * loop_.step[0][1], at, scalar, n0);
        }
    }
    void tile_at_once(char* const* ptr, int64_t n0, int64_t n1) {
        const int64_t n = n0 * n1;
        const char* in[N];
        bool scalar[N];
        bool taken = false;
        for (int k = 0; k < N; ++k) {
            const int64_t s0 = loop_.step[k + 1][0], s1 = n1 > 1 ? loop_.step[k + 1][1] : 0;
            scalar[k] = s0 == 0 && s1 == 0;
            in[k] = load(k, ptr[k + 1], scalar[k] ? 1 : n0, scalar[k] ? 1 : n1, s0, s1);
            if (scalar[k] && !taken && takes_scalar(plan_, k)) {
                taken = true;
            } else if (scalar[k]) {
                char* full = in[k] == native_[k] ? raw_[k] : native_[k];
                if (expanded_[k] < n) gather_tile(full, in[k], 0, 0, n, 1, ITEMSIZE[sources_[k].target]);
                if (stays(k)) expanded_[k] = n;
                in[k] = full;
                scalar[k] = false;
            }
        }
        const int64_t d0 = loop_.step[0][0], d1 = loop_.step[0][1];
        if (as_is_ && d0 == osize_ && (n1 == 1 || d1 == n0 * osize_)) {
            call(plan_, ptr[0], in, scalar, n);
            return;
        }
        char* block = native_[N];
        call(plan_, block, in, scalar, n);
        if (via_) {
            cast_block(raw_[N], plan_.ccode, block, plan_.result, n);
            cast_block(block, ocode_, raw_[N], plan_.ccode, n);
        } else if (!as_is_) {
            const bool dense = d0 == osize_ && (n1 == 1 || d1 == n0 * osize_);
            cast_block(dense ? ptr[0] : raw_[N], ocode_, block, plan_.result, n);
            if (dense) return;
            block = raw_[N];
        }
        scatter_tile(ptr[0], d0, d1, block, n0, n1, osize_);
    }
    // Whether an operand is one value for the whole loop, and its block is written by nobody else.
    bool stays(int k) const {
        bool one = !sources_[k].convert;
        for (int d = 0; d < loop_.ndim; ++d) one &= loop_.step[k + 1][d] == 0;
        return one;
    }
    const char* load(int k, const char* src, int64_t n0, int64_t n1, int64_t s0, int64_t s1) {
        const Source& s = sources_[k];
        const int64_t n = n0 * n1;
        const bool dense = n == 1 || (s0 == s.itemsize && (n1 == 1 || s1 == n0 * s.itemsize));
        if (!s.convert) {
            if (dense) return src;
            gather_tile(native_[k], src, s0, s1, n0, n1, s.itemsize);
            return native_[k];
        }
        if (!dense) {
            gather_tile(raw_[k], src, s0, s1, n0, n1, s.itemsize);
            src = raw_[k];
        }
        if (s.via < 0) {
            cast_block(native_[k], s.target, src, s.code, n);
        } else {
            alignas(64) char between[BLOCK * 16];
            cast_block(between, s.via, src, s.code, n);
            cast_block(native_[k], s.target, between, s.via, n);
        }
        return native_[k];
    }

    Plan<N>& plan_;
    const Loop<N + 1>& loop_;
    const Source* sources_;
    const int ocode_, osize_;
    const bool via_, as_is_;
    // Not a multiple of a page apart: a load would wait for a store to the same place of another block.
    static constexpr int64_t ROOM = BLOCK * 16 + 5 * 64;
    alignas(64) char native_[N + 1][ROOM];
    alignas(64) char raw_[N + 1][ROOM];
    int64_t expanded_[N] = {};  // elements of a value that stays, written out in native_
};

// Elements of a row that are gathered at a time. Few where each lies in a line of the cache of its own: then the next ones
// are on their way while these are computed.
template <int N> int64_t row_block(const Loop<N + 1>& loop, const Source* sources) {
    constexpr int64_t LINE = 64, NEAR = 512, FAR = 128;
    int64_t block = BLOCK;
    for (int k = 0; k < N; ++k) {
        const int64_t step = std::abs(loop.step[k + 1][0]);
        if (step > sources[k].itemsize) block = std::min(block, step < LINE ? NEAR : FAR);
    }
    return block;
}

template <int N> void run_general(Plan<N>& plan, const Loop<N + 1>& loop, const Source* sources, int ocode) {
    for (int k = 0; k < N; ++k)
        if (const int64_t own = loop.ndim > 1 ? repeated<N>(loop, k + 1, sources[k].itemsize) : 0) {
            const Scratch copy(own, sources[k].itemsize);
            run_general<N>(plan, over_copy<N>(loop, k + 1, sources[k].itemsize, sources[k].code, copy.as()), sources,
                           ocode);
            return;
        }
    const int64_t grain = grain_of(loop.numel, plan.cost);
    if (wants_tiles(loop)) {
        run_tiles(loop, grain, [&](char* const* ptr, int64_t n0, int64_t n1) {
            Worker<N>(plan, loop, sources, ocode).tile(ptr, n0, n1);
        });
        return;
    }
    if (Worker<N>(plan, loop, sources, ocode).direct()) {
        bool scalar[N];
        for (int k = 0; k < N; ++k) scalar[k] = loop.step[k + 1][0] == 0;
        run_rows(loop, grain, [&](char* const* ptr, int64_t n) {
            const char* in[N];
            for (int k = 0; k < N; ++k) in[k] = ptr[k + 1];
            call(plan, ptr[0], in, scalar, n);
        });
        return;
    }
    const int64_t step = row_block<N>(loop, sources);
    run_rows(loop, grain, [&](char* const* ptr, int64_t n) {
        Worker<N> worker(plan, loop, sources, ocode);
        char* at[N + 1];
        for (int64_t i = 0; i < n; i += step) {
            for (int k = 0; k <= N; ++k) at[k] = ptr[k] + i * loop.step[k][0];
            worker.tile(at, n - i < step ? n - i : step, 1);
        }
    });
}

// ---------------------------------------------------------------- operands

MT_INLINE bool row_major(PyObject* strides, const Shape& shape) {
    if (MT_UNLIKELY(!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != shape.ndim)) return false;
    int64_t expected = 1;
    for (int i = shape.ndim - 1; i >= 0; --i) {
        const int64_t d = shape.dim[i];
        if (d == 1) continue;
        if (as_int(PyTuple_GET_ITEM(strides, i)) != expected) return false;
        expected *= d;
    }
    return true;
}
MT_INLINE bool all_zero(PyObject* strides, const Shape& shape) {
    if (MT_UNLIKELY(!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != shape.ndim)) return false;
    for (int i = 0; i < shape.ndim; ++i)
        if (shape.dim[i] != 1 && as_int(PyTuple_GET_ITEM(strides, i)) != 0) return false;
    return true;
}

void number_operand(PyObject* o, int ccode, int target, bool round, char* dst) {
    if (round && ccode != target) {
        alignas(16) char narrow[16];
        number_into(o, ccode, narrow);
        cast_block(dst, target, narrow, ccode, 1);
    } else {
        number_into(o, target, dst);
    }
}

template <int N>
PyObject* run(Plan<N>& plan, PyObject* const* in, PyObject* const* out_args, PyObject* shape_arg) {
    Shape shape;
    parse_shape(shape_arg, shape);
    const int ocode = as_code(out_args[3]);
    alignas(16) char numbers[N][16];
    // A kernel that wants arrays gets a number written out, when the array is small.
    constexpr int64_t EXPAND = 64;
    alignas(16) char expanded[N][EXPAND * 16];
    const char* ptr[N];
    bool scalar[N];
    int scalars = 0;
    // The flat way: dtypes fit, and every operand is row-major or one value.
    bool flat = plan.exact && shape.numel != 0 && ocode == plan.result && row_major(out_args[2], shape);
    PyObject* known = out_args[2];
    for (int k = 0; k < N; ++k) {
        PyObject* const* arg = in + 4 * k;
        if (MT_LIKELY(is_storage(arg[0]))) {
            if (!flat) continue;
            const StorageObject* storage = reinterpret_cast<StorageObject*>(arg[0]);
            flat = as_int(arg[3]) == plan.target[k];
            if (MT_LIKELY(arg[2] == known || (flat && row_major(arg[2], shape)))) {
                scalar[k] = false;
            } else {
                flat = flat && all_zero(arg[2], shape);
                scalar[k] = true;
            }
            if (!flat) continue;
            const int64_t offset = as_int(arg[1]), size = ITEMSIZE[plan.target[k]];
            // Left to the general way when in doubt: it has the message.
            flat = offset >= 0 && offset <= storage->nbytes / size &&
                   (scalar[k] ? 1 : shape.numel) <= storage->nbytes / size - offset;
            if (MT_UNLIKELY(!flat)) continue;
            ptr[k] = storage->ptr + offset * size;
        } else {
            number_operand(arg[0], plan.ccode, plan.target[k], plan.round_numbers, numbers[k]);
            ptr[k] = numbers[k];
            scalar[k] = true;
        }
        if (scalar[k]) {
            if (scalars == 0 && takes_scalar(plan, k)) {
                ++scalars;
            } else if (flat && shape.numel <= EXPAND) {
                gather_tile(expanded[k], ptr[k], 0, 0, shape.numel, 1, ITEMSIZE[plan.target[k]]);
                ptr[k] = expanded[k];
                scalar[k] = false;
            } else {
                flat = false;
            }
        }
    }
    if (MT_LIKELY(flat)) {
        const int osize = ITEMSIZE[ocode];
        Ref result;
        char* target;
        if (out_args[0] == Py_None) {
            PyObject* fresh = storage_new(shape.numel, osize);
            result.reset(fresh);
            target = reinterpret_cast<StorageObject*>(fresh)->ptr;
        } else {
            const StorageObject* storage = as_storage(out_args[0]);
            const int64_t offset = as_int(out_args[1]), room = storage->nbytes / osize;
            if (MT_UNLIKELY(offset < 0 || offset > room || shape.numel > room - offset)) goto general;
            target = storage->ptr + offset * osize;
            Py_INCREF(out_args[0]);
            result.reset(out_args[0]);
        }
        if (MT_LIKELY(shape.numel * plan.cost < PARALLEL_MIN)) {
            GilRelease unlocked(shape.numel * plan.cost);
            call(plan, target, ptr, scalar, shape.numel);
        } else {
            GilRelease unlocked(shape.numel * plan.cost);
            parallel_for(shape.numel, GRAIN / plan.cost, [&](int64_t begin, int64_t end) {
                const char* at[N];
                for (int k = 0; k < N; ++k) at[k] = scalar[k] ? ptr[k] : ptr[k] + begin * ITEMSIZE[plan.target[k]];
                call(plan, target + begin * osize, at, scalar, end - begin);
            });
        }
        if (MT_UNLIKELY(plan.params.zero_division)) fail(PyExc_RuntimeError, "ZeroDivisionError");
        return result.release();
    }
general:
    Operand operand;
    Ref result(parse_output(out_args, shape, operand));
    Loop<N + 1> loop;
    loop_begin(loop, shape);
    loop_operand(loop, 0, operand.data, shape, operand.stride, operand.itemsize);
    Source sources[N];
    for (int k = 0; k < N; ++k) {
        PyObject* const* arg = in + 4 * k;
        Source& s = sources[k];
        s.target = plan.target[k];
        if (is_storage(arg[0])) {
            parse_operand(arg, shape, operand);
            s.code = operand.code;
            loop_operand(loop, k + 1, operand.data, shape, operand.stride, operand.itemsize);
        } else {
            s.code = s.target;
            loop_scalar(loop, k + 1, numbers[k]);
        }
        s.itemsize = ITEMSIZE[s.code];
        s.convert = s.code != s.target;
        // A block of a wider type stands for ccode: what comes from elsewhere wraps or rounds there first.
        s.via = !plan.exact && is_storage(arg[0]) && s.code != plan.ccode ? plan.ccode : -1;
        s.convert |= s.via >= 0;
    }
    if (shape.numel) {
        loop_finish(loop);
        GilRelease unlocked(saturated_mul(shape.numel, plan.cost));
        run_general(plan, loop, sources, ocode);
    }
    if (plan.params.zero_division) fail(PyExc_RuntimeError, "ZeroDivisionError");
    return result.release();
}

MT_INLINE int block_code(int ccode) { return ccode == BOOL ? (int)BOOL : NATIVE_CODE[native_of(ccode)]; }

template <class T>
MT_CLONES void where_range(char* out, const char* cond, const char* a, const char* b, int64_t n, Params&) {
    T* o = reinterpret_cast<T*>(out);
    const uint8_t* c = reinterpret_cast<const uint8_t*>(cond);
    const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        const T u = x[i], v = y[i];  // both are read, so that the choice is a blend and not a branch
        o[i] = c[i] ? u : v;
    }
}
void where_16(char* out, const char* cond, const char* a, const char* b, int64_t n, Params&) {
    for (int64_t i = 0; i < n; ++i) std::memmove(out + 16 * i, (cond[i] ? a : b) + 16 * i, 16);
}

// clamp between two numbers, which the parameters hold. NaN wins at every step.
template <class T> MT_CLONES void clamp_range(char* out, const char* a, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    T bound[2];
    std::memcpy(bound, p.alpha, sizeof bound);
    T lo = bound[0], hi = bound[1];
    if (lo != lo) hi = lo;
    if (hi != hi) lo = hi;
    const bool none = lo != lo;  // then every element is
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        const T v = x[i], m = v <= lo ? lo : v, r = m >= hi ? hi : m;
        o[i] = none ? lo : r;
    }
}

// lerp by one weight, which the parameters hold.
template <class T> MT_CLONES void lerp_range(char* out, const char* a, const char* b, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
    const T w = p.get<T>();
    if (std::fabs(w) < T(0.5)) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = x[i] + w * (y[i] - x[i]);
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = y[i] - (y[i] - x[i]) * (T(1) - w);
    }
}

// The smallest (side 0) or largest number of a dtype that kernels compute in.
void last_number(int code, int side, char* to) {
    dispatch_all(code, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_floating_point<T>::value || std::is_integral<T>::value) {
            using L = std::numeric_limits<T>;
            const T v = L::has_infinity ? (side ? L::infinity() : (T)-L::infinity()) : side ? L::max() : L::lowest();
            std::memcpy(to, &v, sizeof v);
        }
    });
}

UnaryFn clamp_kernel(int ccode, bool half) {
    if (half) return half_clamp(ccode);
    switch (native_of(ccode)) {
        case N_U8: return clamp_range<uint8_t>;
        case N_I8: return clamp_range<int8_t>;
        case N_I16: return clamp_range<int16_t>;
        case N_I32: return clamp_range<int32_t>;
        case N_I64: return clamp_range<int64_t>;
        case N_U64: return clamp_range<uint64_t>;
        case N_F32: return clamp_range<float>;
        case N_F64: return clamp_range<double>;
        default: return nullptr;
    }
}

// Whether alpha is the number 1 (the int 1 in nearly every call).
MT_INLINE bool is_one(PyObject* alpha) {
    if (MT_LIKELY(PyLong_CheckExact(alpha))) {
        int overflow;
        return PyLong_AsLongLongAndOverflow(alpha, &overflow) == 1;
    }
    return PyFloat_CheckExact(alpha) && PyFloat_AS_DOUBLE(alpha) == 1.0;
}

// On bool, arithmetic is logic; so that results stay 0 and 1.
// clang-format off: a table
int bool_op(int op) {
    switch (op) {
        case OP_ADD: case OP_MAXIMUM: case OP_FMAX: case OP_BITWISE_OR: return OP_LOGICAL_OR;
        case OP_MUL: case OP_MINIMUM: case OP_FMIN: case OP_BITWISE_AND: return OP_LOGICAL_AND;
        case OP_BITWISE_XOR: return OP_LOGICAL_XOR;
        case OP_BITWISE_NOT: return OP_LOGICAL_NOT;
        default: return op;
    }
}
// clang-format on

}  // namespace

const char* op_name(int op) {
    static thread_local char lower[32];
    const char* name = op < NUM_UNARY       ? UNARY_NAMES[op]
                       : op < TERNARY_BEGIN ? BINARY_NAMES[op - BINARY_BEGIN]
                                            : TERNARY_NAMES[op - TERNARY_BEGIN];
    int i = 0;
    for (; name[i] && i < 31; ++i) lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? char(name[i] - 'A' + 'a') : name[i];
    lower[i] = 0;
    return lower;
}

}  // namespace mt

using namespace mt;

// The numbers behind an activation function's other arguments.
MT_INLINE void parse_numbers(const char* name, PyObject* const* args, Py_ssize_t nargs, Py_ssize_t least, Params& p) {
    if (MT_LIKELY(nargs == least)) return;
    expect_args(name, nargs, least + 3);
    for (int k = 0; k < 3; ++k) p.numbers[k] = as_double(args[least + k]);
}

static PyObject* unary(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        if (MT_UNLIKELY(nargs != 14)) expect_args("unary", nargs, 11);
        int64_t op = as_int(args[0]);
        if (MT_UNLIKELY((uint64_t)op >= (uint64_t)NUM_UNARY))
            fail(PyExc_ValueError, "%lld is no unary operator", (long long)op);
        Plan<1> plan;
        parse_numbers("unary", args, nargs, 11, plan.params);
        plan.ccode = as_code(args[10]);
        if (plan.ccode == BOOL) op = bool_op((int)op);
        const UnaryKernel& kernel = kernels.unary[op][native_of(plan.ccode)];
        if (MT_UNLIKELY(!kernel.fn)) fail_dtype(op_name((int)op), plan.ccode);
        plan.cost = cost_of((int)op, native_of(plan.ccode));
        plan.fn1 = kernel.fn;
        plan.result = kernel.result;
        plan.target[0] = block_code(plan.ccode);
        plan.exact = plan.target[0] == plan.ccode;
        plan.round_numbers = true;
        if ((plan.ccode == F16 || plan.ccode == BF16) && as_int(args[4]) == plan.ccode &&
            as_int(args[8]) == plan.ccode) {
            if (const UnaryFn direct = half_unary(op, plan.ccode)) {
                plan.fn1 = direct;
                plan.result = plan.target[0] = plan.ccode;
                plan.exact = true;
            }
        }
        return run(plan, args + 1, args + 5, args[9]);
    });
}

// Where tensors have the two-byte dtype that is computed in, and the operator a loop of its own for it. A number stands
// as float32 beside them.
static void choose_half(Plan<2>& plan, int64_t op, PyObject* const* args) {
    const bool given[2] = {is_storage(args[1]), is_storage(args[5])};
    if ((given[0] && as_int(args[4]) != plan.ccode) || (given[1] && as_int(args[8]) != plan.ccode)) return;
    const BinaryKernel direct = half_kernel(op, plan.ccode);
    if (!direct.vv || (!given[1] && !direct.vs) || (!given[0] && (!direct.sv || !given[1]))) return;
    plan.fn2 = direct;
    // A number is a float32, which only the kernel for one value takes: the other operand is written out.
    if (!given[0]) plan.fn2.vs = nullptr;
    if (!given[1]) plan.fn2.sv = nullptr;
    plan.wide_scalars = true;
    plan.result = plan.ccode;
    plan.target[0] = given[0] ? plan.ccode : F32;
    plan.target[1] = given[1] ? plan.ccode : F32;
    plan.exact = true;
}

// Whether operands of an operator, four arguments each, are tensors of one dtype.
static bool all_of(int code, std::initializer_list<PyObject* const*> operands) {
    bool fine = true;
    for (PyObject* const* operand : operands) fine = fine && is_storage(operand[0]) && as_int(operand[3]) == code;
    return fine;
}
static bool is_half(int code) { return code == F16 || code == BF16; }

// A power of two-byte floats with an exponent that needs no logarithm; nullptr where it is none.
static UnaryFn plain_power(int64_t op, int code, PyObject* const* args) {
    if (op != OP_POW || !is_half(code) || !all_of(code, {args + 1}) || as_int(args[12]) != code) return nullptr;
    if (PyFloat_CheckExact(args[5])) return half_power(PyFloat_AS_DOUBLE(args[5]), code);
    return PyLong_CheckExact(args[5]) ? half_power(PyLong_AsDouble(args[5]), code) : nullptr;
}

static PyObject* binary(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        if (MT_UNLIKELY(nargs != 19)) expect_args("binary", nargs, 16);
        int64_t op = as_int(args[0]);
        if (MT_UNLIKELY(op < BINARY_BEGIN || op >= OP_ADD_ALPHA))
            fail(PyExc_ValueError, "%lld is no binary operator", (long long)op);
        Plan<2> plan;
        parse_numbers("binary", args, nargs, 16, plan.params);
        plan.ccode = as_code(args[14]);
        const Native native = native_of(plan.ccode);
        plan.round_numbers = op != OP_MUL && op != OP_DIV && op != OP_FLOOR_DIV && op != OP_TRUNC_DIV;
        if (MT_UNLIKELY(plan.ccode == BOOL)) op = bool_op((int)op);
        if (MT_UNLIKELY(!is_one(args[15]))) {
            if (op == OP_ADD || op == OP_SUB || (op == OP_LOGICAL_OR && plan.ccode == BOOL)) {
                number_operand(args[15], plan.ccode, NATIVE_CODE[native], true, plan.params.alpha);
                if (op == OP_SUB) {
                    Params negated;
                    kernels.unary[OP_NEG][native].fn(negated.alpha, plan.params.alpha, 1, negated);
                    std::memcpy(plan.params.alpha, negated.alpha, sizeof negated.alpha);
                }
                op = OP_ADD_ALPHA;
            } else if (op == OP_THRESHOLD_BACKWARD) {
                number_into(args[15], NATIVE_CODE[native], plan.params.alpha);
            } else {
                fail(PyExc_ValueError, "alpha has no meaning for %s", op_name((int)op));
            }
        } else if (op == OP_THRESHOLD_BACKWARD) {
            number_into(args[15], NATIVE_CODE[native], plan.params.alpha);
        } else if (op == OP_TRUNC_DIV && (plan.ccode == F16 || plan.ccode == BF16) && is_storage(args[5])) {
            op = plan.ccode == F16 ? OP_TRUNC_DIV_HALF : OP_TRUNC_DIV_BFLOAT16;
        }
        if (const UnaryFn power = plain_power(op, plan.ccode, args)) {
            Plan<1> one;
            one.ccode = one.result = one.target[0] = plan.ccode;
            one.cost = 1;
            one.fn1 = power;
            one.exact = one.round_numbers = true;
            return run(one, args + 1, args + 9, args[13]);
        }
        plan.fn2 = kernels.binary[op - BINARY_BEGIN][native];
        if (MT_UNLIKELY(!plan.fn2.vv)) fail_dtype(op_name((int)op), plan.ccode);
        plan.cost = cost_of((int)op, native);
        plan.result = plan.fn2.result;
        plan.target[0] = plan.target[1] = block_code(plan.ccode);
        plan.exact = plan.target[0] == plan.ccode;
        if ((plan.ccode == F16 || plan.ccode == BF16) && as_int(args[12]) == plan.ccode) choose_half(plan, op, args);
        return run(plan, args + 1, args + 9, args[13]);
    });
}

// clamp with numbers; nullptr: not of this kind. A bound that is not given is the last number there is on its side.
static PyObject* clamp_by_numbers(PyObject* const* args, int ccode) {
    if (is_storage(args[5]) || is_storage(args[9]) || args[5] == args[9] || ccode == BOOL) return nullptr;
    const bool half = is_half(ccode) && all_of(ccode, {args + 1}) && as_int(args[16]) == ccode;
    const int block = block_code(ccode);
    Plan<1> plan;
    plan.cost = 1;
    plan.ccode = ccode;
    plan.fn1 = clamp_kernel(ccode, half);
    if (!plan.fn1) return nullptr;
    plan.result = plan.target[0] = half ? ccode : block;
    plan.exact = plan.target[0] == ccode;
    plan.round_numbers = true;
    const int size = ITEMSIZE[block];
    for (int side = 0; side < 2; ++side) {
        PyObject* bound = args[side ? 9 : 5];
        alignas(16) char value[16];
        if (bound == Py_None) last_number(block, side, value);
        else number_operand(bound, ccode, block, true, value);
        std::memcpy(plan.params.alpha + side * size, value, (size_t)size);
    }
    return run(plan, args + 1, args + 13, args[17]);
}

// clamp with one bound: the same as maximum or minimum, which also let NaN win.
static PyObject* clamp_one_side(PyObject* const* args, int ccode) {
    if (args[5] == args[9]) fail(PyExc_ValueError, "clamp: at least one of lo and hi must not be None");
    Plan<2> plan;
    const int half = args[5] == Py_None ? OP_MINIMUM : OP_MAXIMUM;
    plan.cost = 1;
    plan.ccode = ccode;
    plan.fn2 = kernels.binary[half - BINARY_BEGIN][native_of(ccode)];
    if (!plan.fn2.vv) fail_dtype(op_name(OP_CLAMP), ccode);
    plan.result = plan.fn2.result;
    plan.target[0] = plan.target[1] = block_code(ccode);
    plan.exact = plan.target[0] == ccode;
    plan.round_numbers = true;
    PyObject* const* bound = args + (args[5] == Py_None ? 9 : 5);
    PyObject* const in[8] = {args[1], args[2], args[3], args[4], bound[0], bound[1], bound[2], bound[3]};
    return run(plan, in, args + 13, args[17]);
}

static PyObject* ternary(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("ternary", nargs, 20);
        const int64_t op = as_int(args[0]);
        if (MT_UNLIKELY(op < TERNARY_BEGIN || op >= TERNARY_END))
            fail(PyExc_ValueError, "%lld is no ternary operator", (long long)op);
        const int ccode = as_code(args[18]);
        const Native native = native_of(ccode);
        if (op == OP_CLAMP) {
            if (PyObject* done = clamp_by_numbers(args, ccode)) return done;
            if (args[5] == Py_None || args[9] == Py_None) return clamp_one_side(args, ccode);
        }
        const bool half = is_half(ccode) && all_of(ccode, {args + 1, args + 5}) && as_int(args[16]) == ccode;
        if (op == OP_LERP && !is_storage(args[9]) && (half || ccode == F32 || ccode == F64)) {
            Plan<2> plan;
            plan.cost = 1;
            plan.ccode = ccode;
            plan.fn2.vv = half ? half_lerp(ccode) : ccode == F32 ? lerp_range<float> : lerp_range<double>;
            plan.result = plan.target[0] = plan.target[1] = plan.fn2.result = ccode;
            plan.exact = true;
            plan.round_numbers = false;
            number_into(args[9], NATIVE_CODE[native], plan.params.alpha);
            return run(plan, args + 1, args + 13, args[17]);
        }
        Plan<3> plan;
        plan.cost = 1;
        plan.ccode = ccode;
        plan.round_numbers = op != OP_LERP;
        if (op == OP_WHERE) {
            plan.target[0] = BOOL;
            plan.target[1] = plan.target[2] = plan.result = ccode;
            plan.exact = true;
            switch (ITEMSIZE[ccode]) {
                case 1: plan.fn3 = where_range<uint8_t>; break;
                case 2: plan.fn3 = where_range<uint16_t>; break;
                case 4: plan.fn3 = where_range<uint32_t>; break;
                case 8: plan.fn3 = where_range<uint64_t>; break;
                default: plan.fn3 = where_16;
            }
        } else {
            const TernaryKernel& kernel = kernels.ternary[op - TERNARY_BEGIN][native];
            if (MT_UNLIKELY(!kernel.fn)) fail_dtype(op_name((int)op), ccode);
            plan.fn3 = kernel.fn;
            plan.result = kernel.result;
            plan.target[0] = plan.target[1] = plan.target[2] = block_code(ccode);
            plan.exact = plan.target[0] == ccode;
            if (op == OP_ADDCMUL || op == OP_ADDCDIV) number_into(args[19], NATIVE_CODE[native], plan.params.alpha);
            const TernaryFn direct = half && all_of(ccode, {args + 9}) ? half_ternary(op, ccode) : nullptr;
            if (direct) {
                plan.fn3 = direct;
                plan.result = plan.target[0] = plan.target[1] = plan.target[2] = ccode;
                plan.exact = true;
            }
        }
        return run(plan, args + 1, args + 13, args[17]);
    });
}

PyMethodDef pointwise_methods[] = {
    MT_METHOD("unary", unary,
              "unary(op, a, aoff, astride, acode, out, ooff, ostride, ocode, shape, ccode, [3 numbers])"),
    MT_METHOD("binary", binary,
              "binary(op, a, aoff, astride, acode, b, boff, bstride, bcode, out, ooff, ostride, ocode, shape, ccode, "
              "alpha, [3 numbers])"),
    MT_METHOD("ternary", ternary, "ternary(op, a.., b.., c.., out, ooff, ostride, ocode, shape, ccode, alpha)"),
    {nullptr, nullptr, 0, nullptr}};

// clang-format off: a table
const IntConstant pointwise_constants[] = {
#define MT_CONSTANT(name, ...) {#name, OP_##name},
    MT_UNARY_OPS(MT_CONSTANT) MT_BINARY_OPS(MT_CONSTANT) MT_TERNARY_OPS(MT_CONSTANT)
#undef MT_CONSTANT
    {nullptr, 0}};
// clang-format on
