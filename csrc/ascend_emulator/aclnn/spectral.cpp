// The short-time Fourier transform, and waiting.
#include <chrono>
#include <thread>

#include "kernel.h"
#include "numbers.h"

using namespace emu;

namespace {

int64_t bins(const Call& c) { return c.flag("onesided") ? c.integer("nFft") / 2 + 1 : c.integer("nFft"); }

void plan_stft(Plan& p) {
    const Tensor& self = p.tensor("self");
    int64_t size = p.integer("nFft"), hop = p.integer("hopLength"), window = p.integer("winLength");
    int64_t length = self.dims.back();
    p.require(size > 0 && size <= length, "nFft is %lld, expected [1, %lld]", static_cast<long long>(size),
              static_cast<long long>(length));
    p.require(hop > 0, "hopLength is %lld, expected > 0", static_cast<long long>(hop));
    p.require(window > 0 && window <= size, "winLength is %lld, expected [1, %lld]", static_cast<long long>(window),
              static_cast<long long>(size));
    if (p.has("windowOptional")) p.shape("windowOptional", {window});
    p.require(!(is_complex(self.dtype) && p.flag("onesided")), "a complex self has no onesided result");
    Dims want;
    if (self.rank() == 2) want.push(self.dims[0]);
    want.push(bins(p));
    want.push(1 + (length - size) / hop);
    if (!p.flag("returnComplex")) want.push(2);
    p.shape("out", want);
    p.require(is_complex(p.tensor("out").dtype) == p.flag("returnComplex"), "out has dtype %s with returnComplex %d",
              dtype_name(p.tensor("out").dtype), int(p.flag("returnComplex")));
    p.workspace = uint64_t(want.product()) * 16;
}

void run_stft(Run& r) {
    const Tensor& self = r.tensor("self");
    int64_t size = r.integer("nFft"), hop = r.integer("hopLength"), wide = r.integer("winLength");
    int64_t length = self.dims.back(), samples = self.rank() == 2 ? self.dims[0] : 1;
    int64_t frames = 1 + (length - size) / hop, n = bins(r), left = (size - wide) / 2;
    auto x = r.read<Complex>(self);
    std::vector<Complex> given(size_t(wide), 1), window(size_t(size), 0), roots;
    if (r.has("windowOptional")) given = r.read<Complex>(r.tensor("windowOptional"));
    for (int64_t i = 0; i < wide; ++i) window[size_t(left + i)] = given[size_t(i)];
    for (int64_t i = 0; i < size; ++i) roots.push_back(std::polar(1.0, -2 * kPi * double(i) / double(size)));
    double scale = r.flag("normalized") ? 1 / std::sqrt(double(size)) : 1;
    std::vector<Complex> out;
    for (int64_t s = 0; s < samples; ++s)
        for (int64_t k = 0; k < n; ++k)
            for (int64_t t = 0; t < frames; ++t) {
                Complex sum = 0;
                for (int64_t i = 0; i < size; ++i)
                    sum += x[size_t(s * length + t * hop + i)] * window[size_t(i)] * roots[size_t(k * i % size)];
                out.push_back(sum * scale);
            }
    if (r.flag("returnComplex")) return r.write(r.tensor("out"), out);
    std::vector<double> parts;
    for (Complex c : out) parts.insert(parts.end(), {c.real(), c.imag()});
    r.write(r.tensor("out"), parts);
}

constexpr std::chrono::nanoseconds kCycle(20);  // of the system counter, 50 MHz

}  // namespace

ACLNN(aclStft, plan_stft, run_stft)
ACLNN(aclnnSleep,
      PLAN {
          const Value& v = p.at("cycles");
          p.require(v.tensor.dtype == ACL_DT_UNDEFINED ? v.ints.size() == 1 : v.tensor.numel() == 1,
                    "cycles must hold one number");
          p.require(v.ints.empty() || v.ints[0] >= 0, "cycles must not be negative");
      },
      RUN {
          const Value& v = r.at("cycles");
          std::this_thread::sleep_for(kCycle * (v.ints.empty() ? r.read<int64_t>(v.tensor)[0] : v.ints[0]));
      })
