// Mean and squared distances from it, in one pass over memory. Invariant: moments are taken over batches that depend on
// the length only and merged in order in double.
#pragma once
#include "lanes.h"

#include <algorithm>

#pragma GCC visibility push(hidden)
namespace mt {

constexpr int64_t BATCH = 4096;  // elements over which moments are taken before they are merged

struct Moments {
    double n = 0, mean = 0, m2 = 0;  // m2: sum of squared distances from the mean

    // Chan's rule: the moments of the union of two sets.
    MT_INLINE void merge(double count, double other_mean, double other_m2) {
        if (n == 0) {
            n = count, mean = other_mean, m2 = other_m2;
            return;
        }
        const double sum = n + count, delta = other_mean - mean;
        m2 += other_m2 + delta * delta * (n * count / sum);
        mean += delta * (count / sum);
        n = sum;
    }
    double variance(double correction) const {
        const double freedom = n - correction;
        return m2 / (freedom > 0 ? freedom : 0.0);
    }
};

// Two passes over data in cache; what rounding the mean loses is put back by the first-order term.
template <class A> MT_INLINE void add_batch(Moments& all, const A* x, int64_t n) {
    const A mean = sum_of<A>(n, MT_EACH(i) { return x[i]; }) / (A)n;
    A first, second;
    two_sums_of<A>(
        n, MT_EACH(i) { return x[i] - mean; }, [](int64_t, A d) __attribute__((always_inline)) { return d * d; }, first,
        second);
    const double rest = (double)first / (double)n;
    all.merge((double)n, (double)mean + rest, (double)second - rest * rest * (double)n);
}
template <class A> MT_INLINE void add_row(Moments& all, const A* x, int64_t n) {
    for (int64_t i = 0; i < n; i += BATCH) add_batch(all, x + i, std::min(BATCH, n - i));
}

}  // namespace mt
#pragma GCC visibility pop
