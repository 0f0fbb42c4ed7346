// Products of float16 and bfloat16: as they lie, or widened as they are packed. See matmul.cpp.
// Invariant: sums are float32's, and a result is rounded once.
#include "gemm.h"
#include "halves_dots.h"
#include "lanes.h"
#include "matmul.h"
#include "tiles.h"

#include <algorithm>

namespace mt {

// Two-byte floats, widened as they are packed; sums in float, of one product of a batch at a time.
void multiply_halves(const ProductCall& call, double beta) {
    const float alpha = (float)as_double(call.alpha);
    const GilRelease unlocked(GIL_THRESHOLD + 1);
    auto source = [](const Operand& op, int64_t i) {
        return Source{op.data + i * op.stride[0] * op.itemsize, op.code, op.stride[1], op.stride[2]};
    };
    auto one = [&](const Operand& op, int64_t i) {
        Operand at = op;
        at.data += i * op.stride[0] * op.itemsize;
        return at;
    };
    constexpr int64_t WORK = 1 << 18;
    const int64_t work = saturated_mul(saturated_mul(call.m, call.n), call.k);
    const int64_t grain = call.batch < 2 * num_threads() ? call.batch : std::max<int64_t>(1, WORK / work);
    // A row that is added to all others, as a layer's bias is.
    const bool row = beta == 1 && call.batch == 1 && call.c->stride[1] == 0 && call.out.stride[2] == 1 && call.m > 1;
    const Scratch bias(row ? call.n : 0, sizeof(float));
    if (row)
        cast_strided(bias.as<char>(), sizeof(float), F32, call.c->data, call.c->stride[2] * call.c->itemsize,
                     call.c->code, call.n);
    parallel_for(call.batch, grain, [&](int64_t begin, int64_t end) {
        const Tiles once(call.out.code == BF16 && end - begin > 1);
        for (int64_t i = begin; i < end; ++i) {
            if (beta == 0 || row) {  // results are rounded where they are made
                const bool turned = call.out.stride[2] != 1 && call.out.stride[1] == 1;
                const int64_t m = turned ? call.n : call.m, n = turned ? call.m : call.n;
                const Scratch room(in_one_block(call.out.code, call.k) ? 0 : checked_mul(m, n), sizeof(float));
                Sink<float> to{room.as<float>(), n, 1, nullptr, 0, 0, alpha, 0.0f};
                to.narrow = one(call.out, i).data, to.code = call.out.code;
                to.nrs = call.out.stride[turned ? 2 : 1], to.ncs = call.out.stride[turned ? 1 : 2];
                if (row) to.added = bias.as<float>(), to.acs = 1;
                const Source a = source(call.a, i), b = source(call.b, i);
                if (turned)
                    gemm_packed<float>({b.data, b.code, b.cs, b.rs}, {a.data, a.code, a.cs, a.rs}, m, n, call.k, to);
                else gemm_packed<float>(a, b, m, n, call.k, to);
                continue;
            }
            const Widened c(one(*call.c, i), 1, call.m, call.n, F32, true);
            float* to = c.self.as<float>();
            gemm_packed<float>(source(call.a, i), source(call.b, i), call.m, call.n, call.k,
                               {to, call.n, 1, to, call.n, 1, alpha, (float)beta});
            c.write_to(one(call.out, i));
        }
    });
}

// Products that are read as they lie, one after the other.
bool multiply_halves_in_place(const ProductCall& call, double beta) {
    if (call.out.code != F16 && call.out.code != BF16) return false;
    auto source = [](const Operand& op, int64_t i) {
        return Source{op.data + i * op.stride[0] * op.itemsize, op.code, op.stride[1], op.stride[2]};
    };
    const float alpha = (float)as_double(call.alpha);
    auto product = [&](int64_t i) {
        return HalfProduct{source(call.a, i),
                           source(call.b, i),
                           source(*call.c, i),
                           source(call.out, i),
                           call.m,
                           call.n,
                           call.k,
                           alpha,
                           (float)beta};
    };
    if (!has_half_dots(product(0))) return false;
    const int64_t work = std::max<int64_t>(1, saturated_mul(saturated_mul(call.m, call.n), call.k));
    const GilRelease unlocked(saturated_mul(call.batch, work) / 8);
    constexpr int64_t WORK = 1 << 18;
    const int64_t grain = call.batch < 2 * num_threads() ? call.batch : std::max<int64_t>(1, WORK / work);
    parallel_for(call.batch, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) multiply_half_dots(product(i));
    });
    return true;
}

}  // namespace mt
