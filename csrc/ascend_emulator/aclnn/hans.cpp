// Floats compressed without loss: exponents by how often they occur, the rest as it is.
//
// The facts have the parameters only. By the functions' public descriptions `pdf` counts the 256 values of the eight bits
// behind the sign, `mantissa` takes all other bits, `fixed` the compressed exponents, and `var` those that find no room
// there. How the vendor lays the compressed bits out is not described: here they are codes of Huffman, made from `pdf`,
// which both functions are given. What one function wrote the other reads back bit by bit; the vendor's own streams are
// not read. `reshuff` asks for the pieces of several cores one behind the other, which the single piece here is.
#include <algorithm>
#include <array>
#include <cstring>
#include <queue>

#include "kernel.h"

using namespace emu;

namespace {

using Counts = std::array<int64_t, 256>;
constexpr int kSymbols = 256, kExponent = 8;

struct Bytes {
    unsigned char* at = nullptr;
    size_t count = 0;
};

Bytes bytes_of(const Tensor& t, bool written, const char* what) {
    if (t.numel() == 0) return {};
    Range range = t.range(written);
    return {reach(range.begin, range.bytes, what), range.bytes};
}

int width_of(const Tensor& t) { return int(size_of(t.dtype)); }

// -- elements as exponent and rest -----------------------------------------------------------------------------------
struct Parts {
    int shift;  // bits below the exponent
    explicit Parts(int width) : shift(8 * width - 1 - kExponent) {}
    int exponent(uint32_t bits) const { return int(bits >> shift & 255); }
    uint32_t rest(uint32_t bits) const { return (bits >> (shift + kExponent)) << shift | (bits & ((1u << shift) - 1)); }
    uint32_t whole(int exponent, uint32_t rest) const {
        return (rest >> shift) << (shift + kExponent) | uint32_t(exponent) << shift | (rest & ((1u << shift) - 1));
    }
};

uint32_t load_bits(const unsigned char* at, int width) {
    uint32_t bits = 0;
    std::memcpy(&bits, at, size_t(width));
    return bits;
}

// -- codes -----------------------------------------------------------------------------------------------------------
struct Code {
    int length = 0;
    uint64_t bits = 0;
};

// Every value gets a code, those that never occurred too: counts may come from other data.
std::array<int, kSymbols> lengths_of(const Counts& counts) {
    struct Node {
        int64_t weight;
        int number;
        bool operator>(const Node& o) const { return weight != o.weight ? weight > o.weight : number > o.number; }
    };
    std::priority_queue<Node, std::vector<Node>, std::greater<>> open;
    std::vector<int> parent(2 * kSymbols - 1, -1);
    for (int i = 0; i < kSymbols; ++i) open.push({counts[size_t(i)] + 1, i});
    for (int next = kSymbols; next < 2 * kSymbols - 1; ++next) {
        Node a = open.top();
        open.pop();
        Node b = open.top();
        open.pop();
        parent[size_t(a.number)] = parent[size_t(b.number)] = next;
        open.push({a.weight + b.weight, next});
    }
    std::array<int, kSymbols> lengths{};
    for (int i = 0; i < kSymbols; ++i)
        for (int at = i; parent[size_t(at)] >= 0; at = parent[size_t(at)]) ++lengths[size_t(i)];
    return lengths;
}

struct Codes {
    std::array<Code, kSymbols> of;
    std::vector<int> order;  // values by code

    explicit Codes(const Counts& counts) {
        auto lengths = lengths_of(counts);
        for (int i = 0; i < kSymbols; ++i) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return lengths[size_t(a)] < lengths[size_t(b)]; });
        uint64_t bits = 0;
        int length = 0;
        for (int value : order) {
            bits <<= lengths[size_t(value)] - length;
            length = lengths[size_t(value)];
            of[size_t(value)] = {length, bits++};
        }
    }
};

// Two blocks of memory as one string of bits.
struct Stream {
    Bytes first, second;
    size_t at = 0;

    bool full() const { return at / 8 >= first.count + second.count; }
    unsigned char& byte() { return at / 8 < first.count ? first.at[at / 8] : second.at[at / 8 - first.count]; }
    void put(bool bit) {
        if (bit) byte() = uint8_t(byte() | 1 << at % 8);
        ++at;
    }
    bool get() {
        bool bit = byte() >> at % 8 & 1;
        ++at;
        return bit;
    }
};

// -- functions -------------------------------------------------------------------------------------------------------
void plan_parts(const Plan& p, const char* whole, const char* mantissa, const char* fixed, const char* var, const char* pdf) {
    const Tensor& t = p.tensor(whole);
    p.require(t.dtype == ACL_FLOAT || t.dtype == ACL_FLOAT16 || t.dtype == ACL_BF16, "%s has dtype %s; accepted: FLOAT FLOAT16 BF16", whole, dtype_name(t.dtype));
    for (const char* name : {whole, mantissa, fixed, var}) p.require(p.tensor(name).contiguous(), "%s must be contiguous", name);
    int64_t needed = t.numel() * (width_of(t) - 1), room = p.tensor(mantissa).numel() * width_of(p.tensor(mantissa));
    p.require(room >= needed, "%s has %lld bytes, %s needs %lld", mantissa, static_cast<long long>(room), whole, static_cast<long long>(needed));
    const Tensor& counts = p.tensor(pdf);
    p.require(counts.dtype == ACL_INT32 && counts.numel() == kSymbols, "%s has dtype %s and shape %s, expected 256 of INT32", pdf, dtype_name(counts.dtype),
              text(counts.dims).c_str());
}

Counts read_counts(const Run& r, const char* pdf) {
    auto values = r.read<int64_t>(r.tensor(pdf));
    Counts counts;
    for (int i = 0; i < kSymbols; ++i) {
        if (values[size_t(i)] < 0) fault("%s: %s counts %lld", r.function->name, pdf, static_cast<long long>(values[size_t(i)]));
        counts[size_t(i)] = values[size_t(i)];
    }
    return counts;
}

void run_encode(Run& r) {
    const Tensor& t = r.tensor("inputTensor");
    int width = width_of(t);
    Parts parts(width);
    Bytes from = bytes_of(t, false, "inputTensor"), rest = bytes_of(r.tensor("mantissaOut"), true, "mantissaOut");
    Counts counts{};
    if (r.flag("statistic")) {
        for (size_t i = 0; i < from.count; i += size_t(width)) ++counts[size_t(parts.exponent(load_bits(from.at + i, width)))];
        r.write(r.tensor("pdfRef"), std::vector<int64_t>(counts.begin(), counts.end()));
    } else {
        counts = read_counts(r, "pdfRef");
    }
    Codes codes(counts);
    Stream out{bytes_of(r.tensor("fixedOut"), true, "fixedOut"), bytes_of(r.tensor("varOut"), true, "varOut")};
    for (const Bytes& b : {rest, out.first, out.second})
        if (b.count) std::memset(b.at, 0, b.count);
    for (size_t i = 0; i < from.count / size_t(width); ++i) {
        uint32_t bits = load_bits(from.at + i * size_t(width), width), low = parts.rest(bits);
        std::memcpy(rest.at + i * size_t(width - 1), &low, size_t(width - 1));
        const Code& code = codes.of[size_t(parts.exponent(bits))];
        for (int k = code.length - 1; k >= 0; --k) {
            if (out.full()) fault("%s: fixedOut and varOut have no room for the compressed exponents", r.function->name);
            out.put(code.bits >> k & 1);
        }
    }
}

void run_decode(Run& r) {
    const Tensor& t = r.tensor("out");
    int width = width_of(t);
    Parts parts(width);
    Bytes to = bytes_of(t, true, "out"), rest = bytes_of(r.tensor("mantissa"), false, "mantissa");
    Codes codes(read_counts(r, "pdf"));
    Stream in{bytes_of(r.tensor("fixed"), false, "fixed"), bytes_of(r.tensor("var"), false, "var")};
    for (size_t i = 0; i < to.count / size_t(width); ++i) {
        // Codes of one length follow each other: the first that is as long and not smaller is the one.
        Code code;
        size_t place = 0;
        while (true) {
            if (in.full()) fault("%s: fixed and var end before the last element", r.function->name);
            code.bits = code.bits << 1 | uint64_t(in.get());
            ++code.length;
            while (place < codes.order.size() && codes.of[size_t(codes.order[place])].length < code.length) ++place;
            size_t at = place;
            while (at < codes.order.size() && codes.of[size_t(codes.order[at])].length == code.length && codes.of[size_t(codes.order[at])].bits != code.bits) ++at;
            if (at < codes.order.size() && codes.of[size_t(codes.order[at])].length == code.length) {
                place = at;
                break;
            }
        }
        uint32_t bits = parts.whole(codes.order[place], load_bits(rest.at + i * size_t(width - 1), width - 1));
        std::memcpy(to.at + i * size_t(width), &bits, size_t(width));
    }
}

}  // namespace

ACLNN(aclnnHansEncode, PLAN { plan_parts(p, "inputTensor", "mantissaOut", "fixedOut", "varOut", "pdfRef"); }, run_encode)
ACLNN(aclnnHansDecode, PLAN { plan_parts(p, "out", "mantissa", "fixed", "var", "pdf"); }, run_decode)
