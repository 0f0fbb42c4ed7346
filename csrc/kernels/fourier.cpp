// Fourier transforms. Lengths without a prime factor above 7: Stockham's passes of radix 4, then those of radix 3, 5 and 7,
// and one of radix 2 where the power of two is odd. Other lengths: Bluestein's convolution around a power of two, by two such
// transforms.
//
// Invariant: a transform reads its whole input before it writes; each is computed by one thread in the same order,
// whatever the number of threads. Real and imaginary parts lie apart while passes run: every loop is one of plain vectors.
// A long row is transformed by itself; several short rows, and neighbours of an inner dimension, side by side in the lanes
// of vectors.
#include "cpu.h"
#include "transpose.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using namespace mt;

extern PyMethodDef fourier_methods[];  // no other file needs to know

namespace {

enum Mode : int { COMPLEX = 0, TO_HALF = 1, FROM_HALF = 2, TO_WHOLE = 3 };

// exp(-2 pi i t / n) for 0 <= t < n, by angles of at most an eighth of the circle.
Complex<double> root(int64_t t, int64_t n) {
    constexpr double TAU = 6.283185307179586476925286766559;
    const int64_t eighth = 8 * t / n;
    int64_t rest = 8 * t - eighth * n;  // of n, within the eighth
    if (eighth & 1) rest = n - rest;
    const double angle = TAU / 8 * ((double)rest / (double)n), c = std::cos(angle), s = std::sin(angle);
    switch (eighth) {
        case 0: return {c, -s};
        case 1: return {s, -c};
        case 2: return {-s, -c};
        case 3: return {-c, -s};
        case 4: return {-c, s};
        case 5: return {-s, c};
        case 6: return {s, c};
        default: return {c, s};
    }
}

// LANES transforms go side by side: for every k LANES real parts, then LANES imaginary ones.
template <class A> constexpr int64_t LANES = 64 / (int64_t)sizeof(A);

// What a length needs: the factors of every pass, and those that make a transform of reals of a shorter complex one. A long
// transform is one of columns and one of rows, with factors between; both have at least as many as there are lanes.
template <class A> struct Plan {
    static constexpr int64_t LONG = sizeof(A) == 4 ? 512 : 16384;
    int64_t n, columns = 0, rows = 0;  // of a long transform
    std::vector<int64_t> radices;      // of the passes, but for the last one of radix 2
    std::vector<A> re, im;  // pass after pass: radix - 1 times m factors, where m is that part of what is left
    std::vector<A> real_re, real_im;  // exp(-2 pi i k / 2n), k <= n
    std::vector<A> twist_re, twist_im;
    std::shared_ptr<const Plan> ring;         // of another length: of the power of two that the convolution goes around
    std::vector<A> chirp_re, chirp_im;        // exp(-pi i k * k / n), k < n
    std::vector<A> spectrum_re, spectrum_im;  // of its conjugate around the ring, divided by the ring's length
    // Elements that passes need room for.
    int64_t room() const { return ring ? ring->n : n; }
    explicit Plan(int64_t length) : n(length) {
        int64_t left = n;
        for (const int64_t radix : {4, 3, 5, 7})
            for (; left % radix == 0; left /= radix) {
                radices.push_back(radix);
                for (int64_t j = 1; j < radix; ++j)
                    for (int64_t p = 0; p < left / radix; ++p) push(re, im, root(j * p, left));
            }
        for (int64_t k = 0; k <= n; ++k) push(real_re, real_im, root(k, 2 * n));
        if (left > 2) {
            go_round();
            return;
        }
        if (n < LONG || !is_power()) return;
        for (rows = 1; rows * rows < n;) rows *= 2;
        columns = n / rows;
        for (int64_t k = 0; k < rows; ++k)
            for (int64_t c = 0; c < columns; ++c) push(twist_re, twist_im, root(k * c, n));
    }
    // Longer rows go one by one; but where the first passes leave short runs to odd ones, lanes are better filled.
    int64_t most_together() const { return ring ? 256 : is_power() || n % 256 == 0 ? 256 : 4096; }
    bool is_power() const { return (n & (n - 1)) == 0; }
    void go_round();
    static void push(std::vector<A>& re, std::vector<A>& im, Complex<double> w) {
        re.push_back((A)w.re);
        im.push_back((A)w.im);
    }
};

// Plans are kept, the longest and the many of them are not.
template <class A> std::shared_ptr<const Plan<A>> plan_of(int64_t n) {
    constexpr int64_t LONGEST = (int64_t)1 << 20;
    static std::mutex lock;
    static auto* plans = new std::map<int64_t, std::shared_ptr<const Plan<A>>>;  // lives as long as the process
    {
        const std::lock_guard<std::mutex> held(lock);
        const auto found = plans->find(n);
        if (found != plans->end()) return found->second;
    }
    auto made = std::make_shared<const Plan<A>>(n);  // which may ask for others
    if (n > LONGEST) return made;
    const std::lock_guard<std::mutex> held(lock);
    return plans->emplace(n, made).first->second;
}

// One butterfly: four parts and three factors.
template <class A> struct Four {
    A r0, i0, r1, i1, r2, i2, r3, i3;
    MT_INLINE Four(A ar, A ai, A br, A bi, A cr, A ci, A dr, A di) {
        const A sr = ar + cr, si = ai + ci, tr = ar - cr, ti = ai - ci;
        const A ur = br + dr, ui = bi + di, vr = br - dr, vi = bi - di;
        r0 = sr + ur, i0 = si + ui, r2 = sr - ur, i2 = si - ui;
        r1 = tr + vi, i1 = ti - vr, r3 = tr - vi, i3 = ti + vr;
    }
};

// Parts of x, m * s apart, to y: for p < m and q < s, y[q + s * (4p + j)] of x[q + s * (p + m * j)].
template <class A>
MT_INLINE void radix4(const A* MT_RESTRICT xr, const A* MT_RESTRICT xi, A* MT_RESTRICT yr, A* MT_RESTRICT yi, int64_t m,
                      int64_t s, const A* MT_RESTRICT wr, const A* MT_RESTRICT wi) {
    const int64_t part = m * s;
    if (m == 1) {
        for (int64_t q = 0; q < s; ++q) {
            const Four<A> f(xr[q], xi[q], xr[q + s], xi[q + s], xr[q + 2 * s], xi[q + 2 * s], xr[q + 3 * s],
                            xi[q + 3 * s]);
            yr[q] = f.r0, yi[q] = f.i0, yr[q + s] = f.r1, yi[q + s] = f.i1;
            yr[q + 2 * s] = f.r2, yi[q + 2 * s] = f.i2, yr[q + 3 * s] = f.r3, yi[q + 3 * s] = f.i3;
        }
        return;
    }
    if (s == 1) {
        for (int64_t p = 0; p < m; ++p) {
            const Four<A> f(xr[p], xi[p], xr[p + m], xi[p + m], xr[p + 2 * m], xi[p + 2 * m], xr[p + 3 * m],
                            xi[p + 3 * m]);
            yr[4 * p] = f.r0;
            yr[4 * p + 1] = f.r1 * wr[p] - f.i1 * wi[p];
            yr[4 * p + 2] = f.r2 * wr[m + p] - f.i2 * wi[m + p];
            yr[4 * p + 3] = f.r3 * wr[2 * m + p] - f.i3 * wi[2 * m + p];
            yi[4 * p] = f.i0;
            yi[4 * p + 1] = f.r1 * wi[p] + f.i1 * wr[p];
            yi[4 * p + 2] = f.r2 * wi[m + p] + f.i2 * wr[m + p];
            yi[4 * p + 3] = f.r3 * wi[2 * m + p] + f.i3 * wr[2 * m + p];
        }
        return;
    }
    const auto rows = [&](int64_t p, int64_t count) __attribute__((always_inline)) {
        const A w1r = wr[p], w1i = wi[p], w2r = wr[m + p], w2i = wi[m + p], w3r = wr[2 * m + p], w3i = wi[2 * m + p];
        const A *ar = xr + p * s, *ai = xi + p * s;
        A *br = yr + 4 * p * s, *bi = yi + 4 * p * s;
#pragma GCC ivdep
        for (int64_t q = 0; q < count; ++q) {
            const Four<A> f(ar[q], ai[q], ar[q + part], ai[q + part], ar[q + 2 * part], ai[q + 2 * part],
                            ar[q + 3 * part], ai[q + 3 * part]);
            br[q] = f.r0;
            bi[q] = f.i0;
            br[q + count] = f.r1 * w1r - f.i1 * w1i;
            bi[q + count] = f.r1 * w1i + f.i1 * w1r;
            br[q + 2 * count] = f.r2 * w2r - f.i2 * w2i;
            bi[q + 2 * count] = f.r2 * w2i + f.i2 * w2r;
            br[q + 3 * count] = f.r3 * w3r - f.i3 * w3i;
            bi[q + 3 * count] = f.r3 * w3i + f.i3 * w3r;
        }
    };
    // Loops of a length that the compiler knows have no ends to care for.
    if (s == 4)
        for (int64_t p = 0; p < m; ++p) rows(p, 4);
    else if (s == 16)
        for (int64_t p = 0; p < m; ++p) rows(p, 16);
    else
        for (int64_t p = 0; p < m; ++p) rows(p, s);
}

// A pass of an odd radix over numbers that lie `unit` apart, in runs of `run`: y[q + s * (R * p + j)] of x[q + s * (p + m * k)].
template <class A> struct OddPass {
    const A *xr, *xi;
    A *yr, *yi;
    int64_t m, s, unit, run;
    const A *wr, *wi;
    A sign;  // 1, or -1 on the way back
};
template <int R, class A> MT_INLINE void odd_runs(const OddPass<A>& t, int64_t run) {
    constexpr int H = (R - 1) / 2;
    A cosine[R], sine[R];
    for (int k = 0; k < R; ++k) {
        const Complex<double> w = root(k, R);
        cosine[k] = (A)w.re;
        sine[k] = -t.sign * (A)w.im;
    }
    const int64_t part = t.unit * t.s * t.m, apart = t.unit * t.s, step = t.unit * (t.unit == 1 ? run : 1);
    for (int64_t p = 0; p < t.m; ++p)
        for (int64_t at = 0; at < apart; at += step) {
            const A *MT_RESTRICT xr = t.xr + apart * p + at, *MT_RESTRICT xi = t.xi + apart * p + at;
            A *MT_RESTRICT yr = t.yr + apart * R * p + at, *MT_RESTRICT yi = t.yi + apart * R * p + at;
            A wr[R] = {}, wi[R] = {};
            for (int j = 1; j < R; ++j) wr[j] = t.wr[(j - 1) * t.m + p], wi[j] = t.sign * t.wi[(j - 1) * t.m + p];
#pragma GCC ivdep
            for (int64_t l = 0; l < run; ++l) {
                A ar[H], ai[H], br[H], bi[H], sr = xr[l], si = xi[l];
#pragma GCC unroll 4
                for (int k = 0; k < H; ++k) {
                    const int64_t near = (k + 1) * part + l, far = (R - 1 - k) * part + l;
                    ar[k] = xr[near] + xr[far], ai[k] = xi[near] + xi[far];
                    br[k] = xr[near] - xr[far], bi[k] = xi[near] - xi[far];
                    sr += ar[k], si += ai[k];
                }
#pragma GCC unroll 4
                for (int j = 1; j <= H; ++j) {
                    A er = xr[l], ei = xi[l], fr = 0, fi = 0;
#pragma GCC unroll 4
                    for (int k = 0; k < H; ++k) {
                        const A c = cosine[j * (k + 1) % R], d = sine[j * (k + 1) % R];
                        er += ar[k] * c, ei += ai[k] * c;
                        fr += br[k] * d, fi += bi[k] * d;
                    }
                    const A ur = er + fi, ui = ei - fr, vr = er - fi, vi = ei + fr;
                    const int64_t near = j * apart + l, far = (R - j) * apart + l;
                    yr[near] = ur * wr[j] - ui * wi[j], yi[near] = ur * wi[j] + ui * wr[j];
                    yr[far] = vr * wr[R - j] - vi * wi[R - j], yi[far] = vr * wi[R - j] + vi * wr[R - j];
                }
                yr[l] = sr, yi[l] = si;
            }
        }
}
template <int R, class A> MT_NOINLINE void odd_radix(const OddPass<A>& pass) {
    at_level(MT_BODY {
        if (pass.run == LANES<A>) odd_runs<R>(pass, LANES<A>);
        else odd_runs<R>(pass, pass.run);
    });
}
template <class A> MT_NOINLINE void odd_pass(int64_t radix, const OddPass<A>& pass) {
    if (radix == 3) odd_radix<3>(pass);
    else if (radix == 5) odd_radix<5>(pass);
    else odd_radix<7>(pass);
}

template <bool FORWARD, class A>
MT_INLINE void wide4(const A* MT_RESTRICT x, A* MT_RESTRICT y, int64_t m, int64_t s, const A* wr, const A* wi) {
    constexpr int64_t L = LANES<A>, K = 2 * L;
    const int64_t part = K * s * m, apart = K * s;
    for (int64_t p = 0; p < m; ++p) {
        const A sign = FORWARD ? (A)1 : (A)-1;
        const A w1r = wr[p], w2r = wr[m + p], w3r = wr[2 * m + p];
        const A w1i = sign * wi[p], w2i = sign * wi[m + p], w3i = sign * wi[2 * m + p];
        for (int64_t q = 0; q < s; ++q) {
            const A* a = x + K * (q + s * p);
            A *b0 = y + K * (q + 4 * s * p), *b1 = b0 + apart, *b2 = b1 + apart, *b3 = b2 + apart;
#pragma GCC ivdep
            for (int64_t l = 0; l < L; ++l) {
                const Four<A> f(a[l], a[L + l], a[part + l], a[part + L + l], a[2 * part + l], a[2 * part + L + l],
                                a[3 * part + l], a[3 * part + L + l]);
                const A r1 = FORWARD ? f.r1 : f.r3, i1 = FORWARD ? f.i1 : f.i3;
                const A r3 = FORWARD ? f.r3 : f.r1, i3 = FORWARD ? f.i3 : f.i1;
                b0[l] = f.r0;
                b0[L + l] = f.i0;
                b1[l] = r1 * w1r - i1 * w1i;
                b1[L + l] = r1 * w1i + i1 * w1r;
                b2[l] = f.r2 * w2r - f.i2 * w2i;
                b2[L + l] = f.r2 * w2i + f.i2 * w2r;
                b3[l] = r3 * w3r - i3 * w3i;
                b3[L + l] = r3 * w3i + i3 * w3r;
            }
        }
    }
}

// The transforms of x, in the one of the two that is returned.
template <bool FORWARD, class A> MT_INLINE A* wide_transform(const Plan<A>& plan, A* x, A* y) {
    constexpr int64_t K = 2 * LANES<A>;
    const A *wr = plan.re.data(), *wi = plan.im.data();
    int64_t left = plan.n, s = 1;
    for (const int64_t radix : plan.radices) {
        const int64_t m = left /= radix;
        if (radix == 4) {
            wide4<FORWARD>(x, y, m, s, wr, wi);
        } else {
            constexpr int64_t L = LANES<A>;
            odd_pass<A>(radix, {x, x + L, y, y + L, m, s, K, L, wr, wi, FORWARD ? (A)1 : (A)-1});
        }
        s *= radix;
        wr += (radix - 1) * m;
        wi += (radix - 1) * m;
        std::swap(x, y);
    }
    if (left != 2) return x;
    const A* MT_RESTRICT from = x;
    A* MT_RESTRICT to = y;
    const int64_t half = K * s;
    for (int64_t i = 0; i < half; ++i) {
        to[i] = from[i] + from[half + i];
        to[half + i] = from[i] - from[half + i];
    }
    return y;
}

// Memory for a row while passes run: two of either part, and what a block of columns or of rows needs.
template <class A> struct Room {
    Scratch memory;
    A *xr, *xi, *yr, *yi, *block, *other;
    std::shared_ptr<const Plan<A>> columns, rows;
    explicit Room(const Plan<A>& plan)
        : Room(plan.room(), plan.ring ? plan.ring->rows : plan.rows, plan.ring ? plan.ring->columns : plan.columns) {}

private:
    Room(int64_t n, int64_t high, int64_t wide)
        : memory(checked_add(checked_mul(n, 4), checked_mul(high, 4 * LANES<A>)), sizeof(A)) {
        xr = memory.as<A>();
        xi = xr + n;
        yr = xi + n;
        yi = yr + n;
        block = yi + n;
        other = block + 2 * LANES<A> * high;
        if (high == 0) return;
        rows = plan_of<A>(high);
        columns = plan_of<A>(wide);
    }
};

// A long row as a matrix: transforms of its columns, twisted, are transposed and lie ready for those of its rows.
template <class A> MT_INLINE void long_transform(const Plan<A>& plan, Room<A>& room) {
    constexpr int64_t L = LANES<A>, K = 2 * L;
    const int64_t rows = plan.rows, columns = plan.columns;
    const A *xr = room.xr, *xi = room.xi;
    A* ready = std::min(room.yr, room.yi);  // both lie in one run
    for (int64_t c = 0; c < columns; c += L) {
        for (int64_t k = 0; k < rows; ++k)
            for (int64_t l = 0; l < L; ++l) {
                room.block[K * k + l] = xr[k * columns + c + l];
                room.block[K * k + L + l] = xi[k * columns + c + l];
            }
        A* MT_RESTRICT z = wide_transform<true>(*room.rows, room.block, room.other);
        const A *MT_RESTRICT wr = plan.twist_re.data() + c, *MT_RESTRICT wi = plan.twist_im.data() + c;
        for (int64_t k = 0; k < rows; ++k)
            for (int64_t l = 0; l < L; ++l) {
                const A re = z[K * k + l], im = z[K * k + L + l];
                z[K * k + l] = re * wr[k * columns + l] - im * wi[k * columns + l];
                z[K * k + L + l] = re * wi[k * columns + l] + im * wr[k * columns + l];
            }
        for (int64_t k = 0; k < rows; k += L)
            for (int64_t part = 0; part < K; part += L)
                transpose_rows<A>(reinterpret_cast<char*>(ready + K * (k / L * columns + c) + part), K * sizeof(A),
                                  reinterpret_cast<const char*>(z + K * k + part), K * sizeof(A), L, L);
    }
    for (int64_t k = 0; k < rows; k += L) {
        const A* MT_RESTRICT z = wide_transform<true>(*room.columns, ready + K * (k / L * columns), room.block);
        A *MT_RESTRICT re = room.xr + k, *MT_RESTRICT im = room.xi + k;
        for (int64_t c = 0; c < columns; ++c)
            for (int64_t l = 0; l < L; ++l) {
                re[c * rows + l] = z[K * c + l];
                im[c * rows + l] = z[K * c + L + l];
            }
    }
}

template <class A> MT_INLINE void transform_row(const Plan<A>& plan, Room<A>& room) {
    if (plan.rows != 0) return long_transform(plan, room);
    const A *wr = plan.re.data(), *wi = plan.im.data();
    int64_t left = plan.n, s = 1;
    for (const int64_t radix : plan.radices) {
        const int64_t m = left /= radix;
        if (radix == 4) radix4(room.xr, room.xi, room.yr, room.yi, m, s, wr, wi);
        else odd_pass<A>(radix, {room.xr, room.xi, room.yr, room.yi, m, s, 1, s, wr, wi, (A)1});
        s *= radix;
        wr += (radix - 1) * m;
        wi += (radix - 1) * m;
        std::swap(room.xr, room.yr);
        std::swap(room.xi, room.yi);
    }
    if (left != 2) return;
    for (int part = 0; part < 2; ++part) {
        const A* MT_RESTRICT x = part ? room.xi : room.xr;
        A* MT_RESTRICT y = part ? room.yi : room.yr;
        for (int64_t q = 0; q < s; ++q) {
            y[q] = x[q] + x[q + s];
            y[q + s] = x[q] - x[q + s];
        }
    }
    std::swap(room.xr, room.yr);
    std::swap(room.xi, room.yi);
}

// Complex numbers times factors.
template <class A>
MT_INLINE void multiply(A* MT_RESTRICT re, A* MT_RESTRICT im, const A* MT_RESTRICT wr, const A* MT_RESTRICT wi,
                        int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        const A r = re[k] * wr[k] - im[k] * wi[k], i = re[k] * wi[k] + im[k] * wr[k];
        re[k] = r, im[k] = i;
    }
}

// The transform of what lies in xr and xi, which is where it is afterwards. Compiled once for all that call it.
template <class A> MT_NOINLINE void transform(const Plan<A>& plan, Room<A>& room) {
    if (!plan.ring) {
        at_level(MT_BODY { transform_row(plan, room); });
        return;
    }
    const int64_t n = plan.n, all = plan.ring->n;
    at_level(MT_BODY { multiply(room.xr, room.xi, plan.chirp_re.data(), plan.chirp_im.data(), n); });
    std::fill(room.xr + n, room.xr + all, (A)0);
    std::fill(room.xi + n, room.xi + all, (A)0);
    transform(*plan.ring, room);
    at_level(MT_BODY { multiply(room.xr, room.xi, plan.spectrum_re.data(), plan.spectrum_im.data(), all); });
    std::swap(room.xr, room.xi);
    transform(*plan.ring, room);
    std::swap(room.xr, room.xi);
    at_level(MT_BODY { multiply(room.xr, room.xi, plan.chirp_re.data(), plan.chirp_im.data(), n); });
}

// What the convolution needs, worked out in double.
template <class A> void Plan<A>::go_round() {
    int64_t all = 1;
    while (all < 2 * n - 1) all *= 2;
    ring = plan_of<A>(all);
    const auto wide = plan_of<double>(all);
    Room<double> room(*wide);
    std::fill_n(room.xr, all, 0.0);
    std::fill_n(room.xi, all, 0.0);
    int64_t square = 0;  // of k, modulo 2 n
    for (int64_t k = 0; k < n; ++k) {
        const Complex<double> w = root(square, 2 * n);
        push(chirp_re, chirp_im, w);
        for (const int64_t at : {k, (all - k) % all}) room.xr[at] = w.re, room.xi[at] = -w.im;
        square = (square + 2 * k + 1) % (2 * n);
    }
    transform(*wide, room);
    for (int64_t k = 0; k < all; ++k)
        push(spectrum_re, spectrum_im, {room.xr[k] / (double)all, room.xi[k] / (double)all});
}

// The same of what lies side by side in lanes, in the one of the two that is returned; both have room for the ring.
template <class A>
MT_INLINE void multiply_lanes(A* MT_RESTRICT x, const A* MT_RESTRICT wr, const A* MT_RESTRICT wi, int64_t n, A before,
                              A after) {
    constexpr int64_t L = LANES<A>, K = 2 * L;
    for (int64_t k = 0; k < n; ++k, x += K)
        for (int64_t l = 0; l < L; ++l) {
            const A re = x[l], im = x[L + l] * before;
            x[l] = re * wr[k] - im * wi[k];
            x[L + l] = (re * wi[k] + im * wr[k]) * after;
        }
}
template <class A> A* transform_lanes(const Plan<A>& plan, bool forward, A* x, A* y);
template <class A> A* round_the_ring(const Plan<A>& plan, bool forward, A* x, A* y) {
    constexpr int64_t K = 2 * LANES<A>;
    const A sign = forward ? (A)1 : (A)-1;  // the way back is that of conjugates, conjugated
    const int64_t n = plan.n, all = plan.ring->n;
    std::fill(x + K * n, x + K * all, (A)0);
    const auto times = [](A* z, const std::vector<A>& re, const std::vector<A>& im, int64_t count, A before, A after) {
        at_level(MT_BODY { multiply_lanes(z, re.data(), im.data(), count, before, after); });
    };
    times(x, plan.chirp_re, plan.chirp_im, n, sign, (A)1);
    A* z = transform_lanes(*plan.ring, true, x, y);
    times(z, plan.spectrum_re, plan.spectrum_im, all, (A)1, (A)1);
    z = transform_lanes(*plan.ring, false, z, z == x ? y : x);
    times(z, plan.chirp_re, plan.chirp_im, n, (A)1, sign);
    return z;
}
template <class A> MT_NOINLINE A* transform_lanes(const Plan<A>& plan, bool forward, A* x, A* y) {
    if (plan.ring) return round_the_ring(plan, forward, x, y);
    A* z = x;
    at_level(MT_BODY { z = forward ? wide_transform<true>(plan, x, y) : wide_transform<false>(plan, x, y); });
    return z;
}

template <class A>
MT_INLINE void take(const A* MT_RESTRICT from, int64_t count, A* MT_RESTRICT re, A* MT_RESTRICT im) {
    for (int64_t k = 0; k < count; ++k) {
        re[k] = from[2 * k];
        im[k] = from[2 * k + 1];
    }
}
template <class A>
MT_INLINE void give(A* MT_RESTRICT to, int64_t count, const A* MT_RESTRICT re, const A* MT_RESTRICT im, A scale) {
    for (int64_t k = 0; k < count; ++k) {
        to[2 * k] = re[k] * scale;
        to[2 * k + 1] = im[k] * scale;
    }
}

struct Call {
    const char* in;
    char* out;
    int64_t outer, n, inner;
    bool forward;
    double scale;
};

// ---------------------------------------------------------------- one row

// The way back is the way there with the parts exchanged.
template <class A> void complex_row(const Plan<A>& plan, const Call& c, int64_t row, Room<A>& room) {
    const A* in = reinterpret_cast<const A*>(c.in) + 2 * row * c.n;
    A* out = reinterpret_cast<A*>(c.out) + 2 * row * c.n;
    A *&re = c.forward ? room.xr : room.xi, *&im = c.forward ? room.xi : room.xr;
    at_level(MT_BODY {
        take(in, c.n, re, im);
        transform(plan, room);
        give(out, c.n, re, im, (A)c.scale);
    });
}

// n reals are n / 2 complex numbers; their transform holds that of the even and of the odd ones. `plan` is of n / 2.
template <class A> void real_row(const Plan<A>& plan, const Call& c, int64_t row, int64_t width, Room<A>& room) {
    const int64_t h = plan.n;
    const A* in = reinterpret_cast<const A*>(c.in) + row * c.n;
    A* MT_RESTRICT out = reinterpret_cast<A*>(c.out) + 2 * row * width;
    const A scale = (A)(c.scale / 2);
    at_level(MT_BODY {
        take(in, h, room.xr, room.xi);
        transform(plan, room);
        const A *MT_RESTRICT zr = room.xr, *MT_RESTRICT zi = room.xi;
        const A *MT_RESTRICT wr = plan.real_re.data(), *MT_RESTRICT wi = plan.real_im.data();
        out[0] = (zr[0] + zi[0]) * (A)c.scale;
        out[1] = 0;
        out[2 * h] = (zr[0] - zi[0]) * (A)c.scale;
        out[2 * h + 1] = 0;
        for (int64_t k = 1; k < h; ++k) {
            const A er = zr[k] + zr[h - k], ei = zi[k] - zi[h - k];
            const A dr = zi[k] + zi[h - k], di = zr[h - k] - zr[k];
            out[2 * k] = (er + (dr * wr[k] - di * wi[k])) * scale;
            out[2 * k + 1] = (ei + (dr * wi[k] + di * wr[k])) * scale;
        }
    });
}

// From n / 2 + 1 complex numbers, whose ends are taken as real, back to n reals.
template <class A> void real_back(const Plan<A>& plan, const Call& c, int64_t row, Room<A>& room) {
    const int64_t h = plan.n;
    const A* MT_RESTRICT in = reinterpret_cast<const A*>(c.in) + 2 * row * (h + 1);
    A* out = reinterpret_cast<A*>(c.out) + row * c.n;
    at_level(MT_BODY {
        const A *MT_RESTRICT wr = plan.real_re.data(), *MT_RESTRICT wi = plan.real_im.data();
        A *MT_RESTRICT zr = room.xr, *MT_RESTRICT zi = room.xi;
        zr[0] = in[0] + in[2 * h];
        zi[0] = in[0] - in[2 * h];
        for (int64_t k = 1; k < h; ++k) {
            const A xr = in[2 * k], xi = in[2 * k + 1], yr = in[2 * (h - k)], yi = in[2 * (h - k) + 1];
            const A er = xr + yr, ei = xi - yi, dr = xr - yr, di = xi + yi;
            // i * d * conj(w)
            const A pr = dr * wr[k] + di * wi[k], pi = di * wr[k] - dr * wi[k];
            zr[k] = er - pi;
            zi[k] = ei + pr;
        }
        std::swap(room.xr, room.xi);
        transform(plan, room);
        give(out, h, room.xi, room.xr, (A)c.scale);
    });
}

// ---------------------------------------------------------------- several at a time

// Z of n / 2 to X of n reals, and back: see real_row and real_back.
template <class A> MT_INLINE void wide_to_half(const Plan<A>& plan, const A* MT_RESTRICT z, A* MT_RESTRICT x) {
    constexpr int64_t L = LANES<A>, K = 2 * L;
    const int64_t h = plan.n;
    for (int64_t l = 0; l < L; ++l) {
        x[l] = z[l] + z[L + l];
        x[K * h + l] = z[l] - z[L + l];
        x[L + l] = x[K * h + L + l] = 0;
    }
    for (int64_t k = 1; k < h; ++k) {
        const A *a = z + K * k, *b = z + K * (h - k);
        A* to = x + K * k;
        const A wr = plan.real_re[(size_t)k] / 2, wi = plan.real_im[(size_t)k] / 2;
        for (int64_t l = 0; l < L; ++l) {
            const A er = a[l] + b[l], ei = a[L + l] - b[L + l], dr = a[L + l] + b[L + l], di = b[l] - a[l];
            to[l] = er / 2 + (dr * wr - di * wi);
            to[L + l] = ei / 2 + (dr * wi + di * wr);
        }
    }
}
template <class A> MT_INLINE void wide_from_half(const Plan<A>& plan, const A* MT_RESTRICT x, A* MT_RESTRICT z) {
    constexpr int64_t L = LANES<A>, K = 2 * L;
    const int64_t h = plan.n;
    for (int64_t l = 0; l < L; ++l) {
        z[l] = x[l] + x[K * h + l];
        z[L + l] = x[l] - x[K * h + l];
    }
    for (int64_t k = 1; k < h; ++k) {
        const A *a = x + K * k, *b = x + K * (h - k);
        A* to = z + K * k;
        const A wr = plan.real_re[(size_t)k], wi = plan.real_im[(size_t)k];
        for (int64_t l = 0; l < L; ++l) {
            const A er = a[l] + b[l], ei = a[L + l] - b[L + l], dr = a[l] - b[l], di = a[L + l] + b[L + l];
            to[l] = er - (di * wr - dr * wi);
            to[L + l] = ei + (dr * wr + di * wi);
        }
    }
}

template <class A> MT_INLINE void scale_all(A* x, int64_t n, A scale) {
    if (scale != 1)
        for (int64_t i = 0; i < n; ++i) x[i] *= scale;
}

// `count` rows of `wide` and `narrow` numbers that lie one behind the other: transposed into lanes and back.
template <class A> void rows_block(const Plan<A>& plan, const Call& c, Mode mode, int64_t row, int64_t count,
                                   int64_t to, A* x, A* y) {
    constexpr int64_t L = LANES<A>, SIZE = sizeof(A);
    const int64_t given = mode == COMPLEX ? 2 * c.n : mode == FROM_HALF ? c.n + 2 : c.n;
    const int64_t wanted = mode == COMPLEX ? 2 * c.n : mode == FROM_HALF ? c.n : c.n + 2;
    const char* in = c.in + row * given * SIZE;
    char* out = c.out + row * to * SIZE;
    at_level(MT_BODY {
        transpose_rows<A>(reinterpret_cast<char*>(x), L * SIZE, in, given * SIZE, count, given);
        A* z = x;
        if (mode == FROM_HALF) {
            wide_from_half(plan, x, y);
            z = transform_lanes(plan, false, y, x);
        } else {
            z = transform_lanes(plan, c.forward, x, y);
        }
        if (mode == TO_HALF || mode == TO_WHOLE) {
            A* other = z == x ? y : x;
            wide_to_half(plan, z, other);
            z = other;
        }
        scale_all(z, wanted * L, (A)c.scale);
        transpose_rows<A>(out, to * SIZE, reinterpret_cast<const char*>(z), L * SIZE, wanted, count);
    });
}

// Neighbours of an inner dimension.
template <class A> void inner_block(const Plan<A>& plan, const Call& c, int64_t row, int64_t from, int64_t each, A* x,
                                    A* y) {
    constexpr int64_t L = LANES<A>, K = 2 * L;
    const A* in = reinterpret_cast<const A*>(c.in) + 2 * (row * c.n * c.inner + from);
    A* out = reinterpret_cast<A*>(c.out) + 2 * (row * c.n * c.inner + from);
    at_level(MT_BODY {
        const auto all = [&](int64_t width) __attribute__((always_inline)) {
            for (int64_t k = 0; k < c.n; ++k) take(in + 2 * k * c.inner, width, x + K * k, x + K * k + L);
            const A* z = transform_lanes(plan, c.forward, x, y);
            for (int64_t k = 0; k < c.n; ++k) give(out + 2 * k * c.inner, width, z + K * k, z + K * k + L, (A)c.scale);
        };
        if (each == L) all(L);
        else all(each);
    });
}

// ---------------------------------------------------------------- the whole

// The other half of the frequencies of reals.
template <class A> void mirror(const Call& c, int64_t row) {
    A* out = reinterpret_cast<A*>(c.out) + 2 * row * c.n;
    for (int64_t k = 1; k < c.n / 2; ++k) {
        out[2 * (c.n - k)] = out[2 * k];
        out[2 * (c.n - k) + 1] = -out[2 * k + 1];
    }
}

template <class A> void run(const Call& c, Mode mode) {
    constexpr int64_t L = LANES<A>;
    const auto plan = plan_of<A>(mode == COMPLEX ? c.n : c.n / 2);
    const bool inner = c.inner > 1;
    // Rows go together where there are enough of them and the caches hold them; memory is not read beyond its end.
    const bool together = inner || (c.outer >= L && plan->n <= plan->most_together());
    const int64_t each = together ? L : 1, blocks = inner ? ceil_div(c.inner, L) : 1;
    const int64_t width = mode == TO_WHOLE ? 2 * c.n : mode == TO_HALF ? c.n + 2 : mode == COMPLEX ? 2 * c.n : c.n;
    const int64_t jobs = inner ? checked_mul(c.outer, blocks) : ceil_div(c.outer, each);
    const int64_t grain = std::max<int64_t>(1, GRAIN / 8 / std::max<int64_t>(1, saturated_mul(c.n, each)));
    parallel_for(jobs, grain, [&](int64_t begin, int64_t end) {
        if (!together) {
            Room<A> room(*plan);
            for (int64_t i = begin; i < end; ++i) {
                if (mode == COMPLEX) complex_row(*plan, c, i, room);
                else if (mode == FROM_HALF) real_back(*plan, c, i, room);
                else real_row(*plan, c, i, width / 2, room);
                if (mode == TO_WHOLE) mirror<A>(c, i);
            }
            return;
        }
        const int64_t size = checked_mul(plan->room() + 1, 2 * L);
        const Scratch memory(checked_mul(size, 2), sizeof(A));
        A *x = memory.as<A>(), *y = x + size;
        for (int64_t i = begin; i < end; ++i) {
            if (inner) {
                const int64_t from = i % blocks * L;
                inner_block(*plan, c, i / blocks, from, std::min(L, c.inner - from), x, y);
                continue;
            }
            const int64_t row = i * L, count = std::min(L, c.outer - row);
            rows_block(*plan, c, mode, row, count, width, x, y);
            for (int64_t r = row; mode == TO_WHOLE && r < row + count; ++r) mirror<A>(c, r);
        }
    });
}

// fourier(mode, code, in, offset, out, offset, outer, n, inner, forward, scale): dense operands [outer][n][inner]; the code is
// that of the parts. Of TO_HALF the input is real and of FROM_HALF the output, and the other has n / 2 + 1 of the n; of
// TO_WHOLE the input is real. Modes other than COMPLEX: inner is 1 and n even.
PyObject* fourier(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("fourier", nargs, 11);
        const int64_t kind = as_int(args[0]), outer = as_int(args[6]), n = as_int(args[7]), inner = as_int(args[8]);
        const int code = as_code(args[1]);
        if (kind < COMPLEX || kind > TO_WHOLE || (code != F32 && code != F64))
            fail(PyExc_ValueError, "fourier() has no such mode or dtype");
        const Mode mode = (Mode)kind;
        if (outer < 0 || inner < 0 || n < 1 || n > (int64_t)1 << 40 || (mode != COMPLEX && (inner != 1 || n % 2 != 0)))
            fail(PyExc_ValueError, "fourier() has no transform of this length");
        const int64_t many = checked_mul(outer, inner), half = checked_mul(checked_mul(many, n / 2 + 1), 2);
        const int64_t reals = checked_mul(many, n), whole = checked_mul(reals, 2);
        const int64_t sizes[2] = {mode == COMPLEX     ? whole
                                  : mode == FROM_HALF ? half
                                                      : reals,
                                  mode == TO_HALF     ? half
                                  : mode == FROM_HALF ? reals
                                                      : whole};
        Call call{nullptr, nullptr, outer, n, inner, as_bool(args[9]), as_double(args[10])};
        for (int k = 0; k < 2; ++k) {
            const StorageObject* storage = as_storage(args[2 + 2 * k]);
            const int64_t offset = checked_mul(as_int(args[3 + 2 * k]), ITEMSIZE[code]);
            const int64_t end = checked_add(offset, checked_mul(sizes[k], ITEMSIZE[code]));
            if (offset < 0 || end > storage->nbytes) fail(PyExc_RuntimeError, "fourier(): operand outside its storage");
            if (k == 0) call.in = storage->ptr + offset;
            else call.out = storage->ptr + offset;
        }
        if (many == 0) Py_RETURN_NONE;
        {
            GilRelease unlocked(saturated_mul(reals, 4));
            if (code == F32) run<float>(call, mode);
            else run<double>(call, mode);
        }
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef fourier_methods[] = {MT_METHOD("fourier", fourier, "Fourier transforms of dense rows."),
                                 {nullptr, nullptr, 0, nullptr}};
