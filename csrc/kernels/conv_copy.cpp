// Copies of planes with room around them: see conv.h.
#include "conv.h"

namespace mt {
namespace {

// The places that lie inside. second: the plane that fills the upper halves of pairs, or null.
template <class T, class E>
MT_INLINE void copy_inside(const T* from, const T* second, E* to, const Padded& v, int64_t first, int64_t last) {
    constexpr bool PAIRS = std::is_same<T, uint16_t>::value && sizeof(E) == 4;
    const T* other = second ? second : from;
    const uint32_t mask = second ? ~0u : 0u;
    for (int64_t z = std::max<int64_t>(0, v.low.d); z < std::min(v.size.d, v.low.d + v.in.d); ++z)
        for (int64_t y = std::max(first, v.low.h); y < std::min(std::min(v.size.h, last), v.low.h + v.in.h); ++y) {
            const int64_t row = ((z - v.low.d) * v.in.h + y - v.low.h) * v.in.w;
            const T *a = from + row, *b = other + row;
            auto value = [&](int64_t i) __attribute__((always_inline)) -> E {
                if constexpr (PAIRS) return uint32_t(a[i]) | ((uint32_t(b[i]) << 16) & mask);
                else if constexpr (std::is_same<T, E>::value) return a[i];
                else return convert<E>(a[i]);
            };
            E* line = to + v.at(z, y, 0);
            // Column c of remainder s is the row's element c * split + s - low.
            auto begin_of = [&](int64_t s) {
                return std::min(v.columns, s >= v.low.w ? 0 : ceil_div(v.low.w - s, v.split));
            };
            auto end_of = [&](int64_t s) {
                const int64_t end = v.in.w + v.low.w > s ? ceil_div(v.in.w + v.low.w - s, v.split) : 0;
                return std::max(begin_of(s), std::min(end, v.columns));
            };
            if (v.split == 1) {
                const int64_t c = begin_of(0), n = end_of(0) - c, e = c - v.low.w;
                if constexpr (std::is_same<T, E>::value)
                    copy_bytes(reinterpret_cast<char*>(line + c), reinterpret_cast<const char*>(a + e),
                               n * (int64_t)sizeof(E));
                else
#pragma GCC ivdep
                    for (int64_t i = 0; i < n; ++i) line[c + i] = value(e + i);
            } else if (v.split == 2) {
                // Elements of even and of odd places of the row: they belong to one remainder each.
                const int64_t s = v.low.w % 2, c0 = begin_of(s), c1 = begin_of(1 - s);
                E *even = line + s * v.part() + c0, *odd = line + (1 - s) * v.part() + c1;
                const int64_t n0 = end_of(s) - c0, n1 = end_of(1 - s) - c1, n = std::min(n0, n1);
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) {
                    even[i] = value(2 * i);
                    odd[i] = value(2 * i + 1);
                }
                for (int64_t i = n; i < n0; ++i) even[i] = value(2 * i);
                for (int64_t i = n; i < n1; ++i) odd[i] = value(2 * i + 1);
            } else {
                for (int64_t s = 0; s < v.split; ++s)
                    for (int64_t c = begin_of(s), end = end_of(s); c < end; ++c)
                        line[s * v.part() + c] = value(c * v.split + s - v.low.w);
            }
        }
}

template <class T, class E>
void copy_at_level(const T* from, const T* second, E* to, const Padded& v, int64_t first, int64_t last) {
    at_level(MT_BODY { copy_inside<T, E>(from, second, to, v, first, last); });
}

}  // namespace

template <class E>
void copy_plane(const Planes& from, int64_t image, int64_t group, int64_t plane, E* to, const Padded& v, int64_t first,
                int64_t last) {
    const int64_t size = v.in.size();
    auto of = [&](auto t, int64_t channel) {
        return reinterpret_cast<const decltype(t)*>(from.at(image, group, channel, size));
    };
    if constexpr (std::is_same<E, uint16_t>::value) {
        copy_at_level<uint16_t, E>(of(E(), plane), nullptr, to, v, first, last);
    } else if (from.pairs) {
        const bool two = 2 * plane + 1 < from.channels;
        copy_at_level<uint16_t, uint32_t>(of(uint16_t(), 2 * plane), two ? of(uint16_t(), 2 * plane + 1) : nullptr,
                                          reinterpret_cast<uint32_t*>(to), v, first, last);
    } else if (from.code == BF16) {
        copy_at_level<BFloat16, E>(of(BFloat16(), plane), nullptr, to, v, first, last);
    } else if (from.code == F16) {
        copy_at_level<Half, E>(of(Half(), plane), nullptr, to, v, first, last);
    } else {
        copy_at_level<E, E>(of(E(), plane), nullptr, to, v, first, last);
    }
}

template void copy_plane(const Planes&, int64_t, int64_t, int64_t, float*, const Padded&, int64_t, int64_t);
template void copy_plane(const Planes&, int64_t, int64_t, int64_t, double*, const Padded&, int64_t, int64_t);
template void copy_plane(const Planes&, int64_t, int64_t, int64_t, uint16_t*, const Padded&, int64_t, int64_t);

}  // namespace mt
