// Collectives inside kernels: ranks exchange rows of numbers.
#pragma once

#include <cstring>

#include "../core/contexts.h"
#include "../core/streams.h"
#include "../hccl/communicator.h"
#include "optional.h"

namespace emu {

using Values = std::vector<double>;

// The communicator a function names, of the device that is set; refused where there is none.
inline std::shared_ptr<Communicator> plan_group(const Plan& p, const char* name = "group") {
    if (!p.has(name)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null", name);
    const std::string& group = p.string(name);
    p.require(!group.empty() && group.size() < 128, "%s must have 1 to 127 characters", name);
    p.require(require_context() == 0, "no device is set on this thread");
    auto c = communicator_named(group, current_context()->device);
    p.require(c != nullptr, "%s is \"%s\": this device has no communicator of that name", name, group.c_str());
    return c;
}

// On a stream's worker. Holds its turn among the collectives of this rank while it lives.
class Group {
public:
    explicit Group(const Run& r, const char* name = "group") : by_(r.function->name), of_(communicator_named(r.string(name), worker_device())) {
        if (of_ == nullptr) fault("%s: the communicator \"%s\" was destroyed", by_, r.string(name).c_str());
        turn_ = std::make_unique<Communicator::Turn>(of_, kCollectives);
        turn_->await(by_);
        for (const char* c = by_; *c; ++c) what_.kind = what_.kind * 31 + uint32_t(*c);
        what_.kind |= 1u << 31;
    }
    uint32_t rank() const { return of_->rank; }
    uint32_t size() const { return of_->size; }

    template <class T>
    std::vector<std::vector<T>> gather(const std::vector<T>& mine) {
        return all_to_all(std::vector<std::vector<T>>(size(), mine), std::vector<size_t>(size(), mine.size()));
    }
    // Piece r to rank r; counts[r] numbers come from it.
    template <class T>
    std::vector<std::vector<T>> all_to_all(const std::vector<std::vector<T>>& pieces, const std::vector<size_t>& counts) {
        std::vector<Bytes> out;
        std::vector<uint64_t> expected;
        for (const auto& piece : pieces) {
            const auto* from = reinterpret_cast<const unsigned char*>(piece.data());
            out.emplace_back(from, from + piece.size() * sizeof(T));
        }
        for (size_t n : counts) expected.push_back(n * sizeof(T));
        std::vector<std::vector<T>> got;
        for (const Bytes& bytes : exchange_all(*of_, out, expected, what_, by_)) {
            got.emplace_back(bytes.size() / sizeof(T));
            if (!bytes.empty()) std::memcpy(got.back().data(), bytes.data(), bytes.size());
        }
        return got;
    }
    Values sum(const Values& mine) {
        Values total(mine.size(), 0);
        for (const Values& part : gather(mine))
            for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
        return total;
    }

private:
    const char* by_;
    std::shared_ptr<Communicator> of_;
    std::unique_ptr<Communicator::Turn> turn_;
    Statement what_;
};

}  // namespace emu
