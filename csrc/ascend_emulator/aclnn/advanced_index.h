// Indexing by a list of tensors, one entry per leading axis, as PyTorch's self[i, :, j].
//
// An entry that is a 1-dimensional tensor of 0 elements, or an empty place of the list, leaves its axis alone. A BOOL
// entry covers as many axes as it has and stands for the places where it is true. The indexed axes are replaced by the
// broadcast shape of the entries: where they stand when they are neighbours, in front otherwise.
#pragma once

#include "moving.h"

namespace emu {

class AdvancedIndex {
  public:
    AdvancedIndex(const Tensor& self, const std::vector<Tensor>& entries) : self_(self.dims) {
        int axis = 0;
        for (const Tensor& entry : entries) {
            bool none = entry.dtype == ACL_DT_UNDEFINED || (entry.rank() == 1 && entry.numel() == 0);
            int covers = !none && entry.dtype == ACL_BOOL ? entry.rank() : 1;
            if (!none) entries_.push_back({&entry, axis, covers});
            axis += covers;
        }
        axes_ = axis;
        if (entries_.empty()) return;
        first_ = entries_.front().axis;
        int next = first_;
        for (const Entry& e : entries_) {
            if (e.axis != next) adjacent_ = false;
            next = e.axis + e.covers;
            covered_ += e.covers;
            data_dependent_ = data_dependent_ || e.tensor->dtype == ACL_BOOL;
        }
        if (!adjacent_) first_ = 0;
    }

    // Checks the entries and the shape they give; where masks decide about it, the broadcast part is checked later.
    void require_shape(const Plan& p, const char* name) {
        require_entries(p);
        Dims got = p.tensor(name).dims;
        if (data_dependent_) {
            int want = int(self_.n - covered_ + shape_rank());
            p.require(got.n == want, "%s has %d dimensions, expected %d", name, got.n, want);
            return;
        }
        p.shape(name, result(broadcast_shape(p)));
    }

    // The same for values that broadcast to the indexed part.
    void require_broadcast(const Plan& p, const char* name) {
        require_entries(p);
        if (data_dependent_) return;
        Dims want = result(broadcast_shape(p)), both;
        const Dims& got = p.tensor(name).dims;
        p.require(broadcast(want, got, &both) && both == want, "%s has shape %s, which does not broadcast to %s", name,
                  text(got).c_str(), text(want).c_str());
    }

    // Reads the entries; the shape of the result.
    Dims resolve(const Run& r) {
        read_entries(r);
        return result(shape_);
    }

    // Where an element of the result is found in self.
    int64_t source(const Dims& place) const {
        Dims at;
        int64_t pick = 0;
        for (int d = 0; d < shape_.n; ++d) pick = pick * shape_[d] + place[first_ + d];
        int next = 0;
        for (int d = 0; d < self_.n; ++d) {
            if (!picks_.empty() && !picks_[size_t(d)].empty()) {
                at.push(picks_[size_t(d)][size_t(pick)]);
                continue;
            }
            if (next == first_) next += shape_.n;
            at.push(place[next++]);
        }
        return position(self_, at);
    }

  private:
    struct Entry {
        const Tensor* tensor;
        int axis, covers;
    };

    void require_entries(const Plan& p) const {
        p.require(axes_ <= self_.n, "indices cover %d axes, self has %d", axes_, self_.n);
        for (const Entry& e : entries_)
            if (e.tensor->dtype == ACL_BOOL)
                for (int d = 0; d < e.covers; ++d)
                    p.require(e.tensor->dims[d] == self_[e.axis + d],
                              "a mask of shape %s does not fit self %s from axis %d", text(e.tensor->dims).c_str(),
                              text(self_).c_str(), e.axis);
    }

    int shape_rank() const {
        int rank = 0;
        for (const Entry& e : entries_) rank = std::max(rank, e.tensor->dtype == ACL_BOOL ? 1 : e.tensor->rank());
        return rank;
    }

    Dims broadcast_shape(const Plan& p) const {
        Dims shape;
        for (const Entry& e : entries_) shape = broadcast_all(p, {&shape, &e.tensor->dims});
        return shape;
    }

    Dims result(const Dims& shape) const {
        if (entries_.empty()) return self_;
        std::vector<bool> gone(size_t(self_.n), false);
        for (const Entry& e : entries_)
            for (int d = 0; d < e.covers; ++d) gone[size_t(e.axis + d)] = true;
        Dims out;
        for (int d = 0; d < self_.n; ++d) {
            if (out.n == first_)
                for (int64_t size : shape) out.push(size);
            if (!gone[size_t(d)]) out.push(self_[d]);
        }
        return out;
    }

    void read_entries(const Run& r) {
        std::vector<std::vector<int64_t>> read(static_cast<size_t>(self_.n));
        std::vector<Dims> shapes(static_cast<size_t>(self_.n));
        for (const Entry& e : entries_) {
            auto x = r.read<int64_t>(*e.tensor);
            if (e.tensor->dtype == ACL_BOOL) {
                each_place(e.tensor->dims, [&](int64_t i, const Dims& place) {
                    if (x[size_t(i)])
                        for (int d = 0; d < e.covers; ++d) read[size_t(e.axis + d)].push_back(place[d]);
                });
                for (int d = 0; d < e.covers; ++d) shapes[size_t(e.axis + d)] = {int64_t(read[size_t(e.axis)].size())};
            } else {
                for (int64_t& pick : x) pick = wrapped_index(pick, self_[e.axis]);
                read[size_t(e.axis)] = std::move(x);
                shapes[size_t(e.axis)] = e.tensor->dims;
            }
        }
        for (const Entry& e : entries_) {
            Dims both;
            if (!broadcast(shape_, shapes[size_t(e.axis)], &both))
                fault("indices of shape %s and %s do not broadcast", text(shape_).c_str(),
                      text(shapes[size_t(e.axis)]).c_str());
            shape_ = both;
        }
        picks_.assign(static_cast<size_t>(self_.n), {});
        for (const Entry& e : entries_)
            for (int a = e.axis; a < e.axis + e.covers; ++a) {
                const Dims& own = shapes[size_t(a)];
                auto& spread = picks_[size_t(a)];
                each_place(shape_, [&](int64_t, const Dims& place) {
                    Dims at;
                    for (int d = 0; d < own.n; ++d) at.push(own[d] == 1 ? 0 : place[shape_.n - own.n + d]);
                    spread.push_back(read[size_t(a)][size_t(position(own, at))]);
                });
            }
    }

    Dims self_, shape_;
    std::vector<Entry> entries_;
    std::vector<std::vector<int64_t>> picks_;  // by axis: the index at each place of the broadcast shape
    int axes_ = 0, first_ = 0, covered_ = 0;
    bool adjacent_ = true, data_dependent_ = false;
};

}  // namespace emu
