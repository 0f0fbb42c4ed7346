// What the machine can do at most: multiply-adds of float32 a second, and bytes a second at several sizes.
//
//     limits THREADS        prints a line `name value` for each
//
// Built for the CPU it runs on (-march=native), apart from the package, so that no kernel of it is its own measure.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

// The best of several rounds, all threads at once: `work` is given its thread's number.
double best(int threads, int rounds, const std::function<void(int)>& work) {
    double found = 1e30;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::thread> others;
        auto start = Clock::now();
        for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
        work(0);
        for (auto& other : others) other.join();
        found = std::min(found, seconds(start));
    }
    return found;
}

// Vectors of 16 in twelve independent chains: enough to hide the latency of a multiply-add everywhere.
typedef float Vector __attribute__((vector_size(64)));
constexpr int CHAINS = 12;

void multiply_add(long steps, float* out) {
    Vector sums[CHAINS], factor, term;
    for (int i = 0; i < 16; ++i) factor[i] = 0.999f, term[i] = 1e-3f * float(i);
    for (auto& sum : sums) sum = term;
    for (long step = 0; step < steps; ++step)
        for (auto& sum : sums) sum = sum * factor + term;
    Vector all = sums[0];
    for (int i = 1; i < CHAINS; ++i) all += sums[i];
    std::memcpy(out, &all, sizeof all);
}

double flops(int threads) {
    constexpr long steps = 4'000'000;
    std::vector<float> out(size_t(threads) * 64);
    double time = best(threads, 7, [&](int i) { multiply_add(steps, &out[size_t(i) * 64]); });
    return double(threads) * double(steps) * CHAINS * 16 * 2 / time;
}

// Bytes read and written a second, where each thread copies its own share of `bytes`.
double copy_rate(int threads, size_t bytes) {
    size_t share = bytes / size_t(threads);
    std::vector<char> from(bytes, 1), to(bytes, 2);
    long repeats = std::max<long>(1, long(400'000'000 / bytes));
    double time = best(threads, 7, [&](int i) {
        for (long k = 0; k < repeats; ++k) std::memcpy(&to[size_t(i) * share], &from[size_t(i) * share], share);
    });
    return 2.0 * double(share) * threads * double(repeats) / time;
}

}  // namespace

int main(int count, char** arguments) {
    int threads = count > 1 ? std::max(1, std::min(1024, std::atoi(arguments[1]))) : 1;
    std::printf("gflops_float32 %.1f\n", flops(threads) / 1e9);
    for (size_t bytes : {size_t(1) << 18, size_t(1) << 22, size_t(40'000'000), size_t(1) << 28})
        std::printf("copy_gbytes_%zu %.1f\n", bytes, copy_rate(threads, bytes) / 1e9);
}
