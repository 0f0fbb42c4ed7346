#include "communicator.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "../core/codes.h"
#include "../core/contexts.h"
#include "../core/dtype.h"
#include "../core/state.h"
#include "../core/streams.h"

namespace emu {

namespace {

using Clock = std::chrono::steady_clock;

// HcclResult
constexpr int kPara = 1, kTimeout = 9, kConnect = 11, kSyscall = 8, kRemote = 21, kNotFound = 6;
constexpr uint64_t kMagic = 0x4c43434855534d45;  // "EMUSHCCL"
constexpr uint64_t kRing = 1 << 16;
constexpr int kChannels = 2;
constexpr uint32_t kParts = 64;

enum State : int32_t { kAbsent = 0, kJoined = 1, kLeft = 2 };

struct Member {
    std::atomic<int32_t> state, pid, device;
};

struct Part {  // a communicator of some ranks: where its memory is
    std::atomic<int32_t> ready;
    std::atomic<uint64_t> id;
    char root[96];
};

struct Head {
    std::atomic<uint64_t> magic;
    std::atomic<uint32_t> ranks, joined;
    std::atomic<int32_t> failed;  // a rank found a disagreement: an HcclResult
    std::atomic<int32_t> told;    // `why` is written
    char why[256];
    Member members[kMaxRanks];
    std::atomic<uint32_t> parts_used;
    Part parts[kParts];
};

struct Ring {
    std::atomic<uint64_t> written, read;
    unsigned char data[kRing];
};

double seconds_of(const char* variable, double otherwise) {
    const char* text = std::getenv(variable);
    double value = text != nullptr ? std::atof(text) : 0;
    return value > 0 ? value : otherwise;
}

bool process_gone(int pid) {
    if (kill(pid, 0) != 0 && errno == ESRCH) return true;
    char path[64], line[512];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE* file = std::fopen(path, "r");
    if (file == nullptr) return true;
    size_t n = std::fread(line, 1, sizeof line - 1, file);
    std::fclose(file);
    line[n] = 0;
    const char* close = std::strrchr(line, ')');
    return close != nullptr && close[1] == ' ' && (close[2] == 'Z' || close[2] == 'X');
}

// Short sleeps that grow: ranks of a small machine need the processor more than this one needs to know at once.
struct Patience {
    int rounds = 0;
    void wait() {
        if (++rounds < 16) return std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(rounds < 200 ? 50 : 1000));
    }
};

}  // namespace

// -- the shared memory -----------------------------------------------------------------------------------------------------
struct Segment {
    int fd;
    bool owner;
    Head* head = nullptr;
    Ring* rings = nullptr;
    size_t bytes = 0;

    Segment(int descriptor, bool owns) : fd(descriptor), owner(owns) {}
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;
    ~Segment() {
        if (head != nullptr) munmap(head, bytes);
        if (fd >= 0) close(fd);
    }

    static size_t size_for(uint32_t ranks) {
        size_t page = 4096, front = (sizeof(Head) + page - 1) / page * page;
        return front + size_t(ranks) * ranks * kChannels * sizeof(Ring);
    }
    bool map(uint32_t ranks) {
        bytes = size_for(ranks);
        struct stat now;
        if (fstat(fd, &now) != 0) return false;
        if (size_t(now.st_size) < bytes && ftruncate(fd, off_t(bytes)) != 0) return false;
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) return false;
        head = static_cast<Head*>(at);
        rings = reinterpret_cast<Ring*>(static_cast<char*>(at) +
                                        (bytes - size_t(ranks) * ranks * kChannels * sizeof(Ring)));
        head->magic.store(kMagic);
        return true;
    }
    Ring& ring(uint32_t from, uint32_t to, int channel) {
        return rings[(size_t(from) * head->ranks.load() + to) * kChannels + size_t(channel)];
    }
    void declare_failure(int code, const std::string& text) {
        int32_t none = 0;
        if (!head->failed.compare_exchange_strong(none, code)) return;
        std::snprintf(head->why, sizeof head->why, "%s", text.c_str());
        head->told.store(1);
    }
};

namespace {

// -- who is there ------------------------------------------------------------------------------------------------------
struct Registry {
    std::mutex lock;
    uint64_t next = 1;
    std::map<uint64_t, std::shared_ptr<Communicator>> live;
    std::map<uint64_t, std::string> destroyed;
    std::map<std::string, std::shared_ptr<Segment>> roots;  // made here, not joined by everybody yet
};

Registry& registry() {
    static Registry* all = new Registry();  // streams may still use it when the process ends
    return *all;
}

// Values no pointer has, as of every other handle.
constexpr uint64_t kHandleBase = 0xCC1000000000000ull;

void* handle_of(uint64_t id) { return reinterpret_cast<void*>(kHandleBase + id); }

int refused(int code, const char* by, const std::string& text) {
    say("%s: %s", by, text.c_str());
    return code;
}

std::string root_text(int pid, int fd, uint64_t token) {
    char text[96];
    std::snprintf(text, sizeof text, "emulated_%d_%d_%016llx", pid, fd, static_cast<unsigned long long>(token));
    return text;
}

std::shared_ptr<Segment> new_segment(std::string* root) {
    int fd = int(syscall(SYS_memfd_create, "ascend_emulator_hccl", 1u /* MFD_CLOEXEC */));
    if (fd < 0) return nullptr;
    auto segment = std::make_shared<Segment>(fd, true);
    if (ftruncate(fd, off_t(sizeof(Head))) != 0) return nullptr;
    static std::random_device random;
    *root = root_text(int(getpid()), fd, uint64_t(random()) << 32 | random());
    return segment;
}

std::shared_ptr<Segment> open_root(const std::string& root) {
    int pid = 0, fd = 0;
    unsigned long long token = 0;
    if (std::sscanf(root.c_str(), "emulated_%d_%d_%llx", &pid, &fd, &token) != 3) return nullptr;
    {
        Registry& all = registry();
        std::lock_guard<std::mutex> hold(all.lock);
        auto made = all.roots.find(root);
        if (made != all.roots.end()) {
            int mine = fcntl(made->second->fd, F_DUPFD_CLOEXEC, 0);
            return mine < 0 ? nullptr : std::make_shared<Segment>(mine, false);
        }
    }
    if (pid == int(getpid())) return nullptr;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    int mine = open(path, O_RDWR | O_CLOEXEC);
    return mine < 0 ? nullptr : std::make_shared<Segment>(mine, false);
}

void* keep(std::shared_ptr<Communicator> made) {
    Registry& all = registry();
    std::lock_guard<std::mutex> hold(all.lock);
    uint64_t id = all.next++;
    all.live[id] = std::move(made);
    return handle_of(id);
}

// Takes a rank's place; refuses one that is taken, another number of ranks, a device that has a rank already.
int take_place(Segment& s, uint32_t ranks, uint32_t rank, int device, const char* by) {
    uint32_t none = 0;
    if (!s.head->ranks.compare_exchange_strong(none, ranks) && none != ranks)
        return refused(kPara, by, "nRanks is " + std::to_string(ranks) + ", another rank said " + std::to_string(none));
    int pid = int(getpid());
    for (uint32_t i = 0; i < ranks; ++i) {
        Member& other = s.head->members[i];
        if (other.state.load() == kJoined && other.pid.load() == pid && other.device.load() == device && i != rank)
            return refused(kPara, by,
                           "device " + std::to_string(device) + " is rank " + std::to_string(i) + " already");
    }
    Member& mine = s.head->members[rank];
    int32_t free = 0;
    if (!mine.pid.compare_exchange_strong(free, pid))
        return refused(kPara, by, "rank " + std::to_string(rank) + " is taken by process " + std::to_string(free));
    mine.device.store(device);
    mine.state.store(kJoined);
    s.head->joined.fetch_add(1);
    return 0;
}

int await_everybody(Segment& s, uint32_t ranks, uint32_t rank, const char* by) {
    auto limit = Clock::now() + std::chrono::duration<double>(seconds_of("HCCL_CONNECT_TIMEOUT", 120));
    Patience patience;
    for (int round = 0; s.head->joined.load() < ranks; ++round) {
        if (Clock::now() > limit)
            return refused(kTimeout, by,
                           "only " + std::to_string(s.head->joined.load()) + " of " + std::to_string(ranks) +
                               " ranks came within HCCL_CONNECT_TIMEOUT");
        if (round % 64 == 63)
            for (uint32_t i = 0; i < ranks; ++i)
                if (int pid = s.head->members[i].pid.load(); i != rank && pid != 0 && process_gone(pid))
                    return refused(kRemote, by, "the process of rank " + std::to_string(i) + " is gone");
        patience.wait();
    }
    return 0;
}

void forget_root(const std::string& root) {
    Registry& all = registry();
    std::lock_guard<std::mutex> hold(all.lock);
    all.roots.erase(root);
}

int current_device(const char* by, int* device) {
    if (require_context()) return refused(15, by, "no device is set on this thread");
    *device = current_context()->device;
    return 0;
}

int join(const std::string& root, uint32_t ranks, uint32_t rank, const char* name, void** handle, const char* by) {
    int device = 0;
    if (int code = current_device(by, &device)) return code;
    auto segment = open_root(root);
    if (!segment) return refused(kConnect, by, "rootInfo is not one of HcclGetRootInfo, or its process is gone");
    if (!segment->map(ranks)) return refused(kSyscall, by, "the shared memory could not be mapped");
    if (int code = take_place(*segment, ranks, rank, device, by)) return code;
    if (int code = await_everybody(*segment, ranks, rank, by)) {
        segment->head->members[rank].state.store(kLeft);
        return code;
    }
    forget_root(root);
    std::string known = name != nullptr && name[0] != 0 ? name : root;
    *handle = keep(std::make_shared<Communicator>(segment, rank, device, known));
    return 0;
}

bool acceptable(uint32_t ranks, uint32_t rank, const char* by, int* code) {
    *code = 0;
    if (ranks == 0 || ranks > kMaxRanks)
        *code =
            refused(kPara, by, "nRanks is " + std::to_string(ranks) + ", expected 1 to " + std::to_string(kMaxRanks));
    else if (rank >= ranks)
        *code = refused(kPara, by, "rank is " + std::to_string(rank) + " of " + std::to_string(ranks));
    return *code == 0;
}

}  // namespace

int make_root(char* text, size_t bytes) {
    std::string root;
    auto segment = new_segment(&root);
    if (!segment) return refused(kSyscall, "HcclGetRootInfo", "no shared memory");
    Registry& all = registry();
    std::lock_guard<std::mutex> hold(all.lock);
    all.roots[root] = segment;
    std::memset(text, 0, bytes);
    std::memcpy(text, root.data(), root.size());
    return 0;
}

int join_root(const char* text, uint32_t ranks, uint32_t rank, const char* name, void** handle, const char* by) {
    int code;
    if (!acceptable(ranks, rank, by, &code)) return code;
    return join(std::string(text, strnlen(text, 95)), ranks, rank, name, handle, by);
}

int join_all(const std::vector<int>& devices, void** handles, const char* by) {
    int code;
    uint32_t ranks = uint32_t(devices.size());
    if (!acceptable(ranks, 0, by, &code)) return code;
    for (int device : devices)
        if (check_device(device, by)) return refused(kPara, by, "there is no device " + std::to_string(device));
    std::string root;
    auto segment = new_segment(&root);
    if (!segment || !segment->map(ranks)) return refused(kSyscall, by, "no shared memory");
    for (uint32_t i = 0; i < ranks; ++i)
        if ((code = take_place(*segment, ranks, i, devices[i], by))) return code;
    for (uint32_t i = 0; i < ranks; ++i)
        handles[i] = keep(std::make_shared<Communicator>(segment, i, devices[i], root));
    return 0;
}

int join_part(void* parent, const std::vector<uint32_t>& ranks, uint64_t id, uint32_t rank, const char* name,
              void** handle, const char* by) {
    auto whole = communicator(parent, by);
    if (!whole) return kPara;
    int code;
    if (!acceptable(uint32_t(ranks.size()), rank, by, &code)) return code;
    for (uint32_t r : ranks)
        if (r >= whole->size)
            return refused(kPara, by, "rankIds holds " + std::to_string(r) + " of " + std::to_string(whole->size));
    if (ranks[rank] != whole->rank) return refused(kPara, by, "rankIds[subCommRankId] is not this rank");
    Head* head = whole->segment->head;
    std::string root;
    if (rank == 0) {
        auto segment = new_segment(&root);
        if (!segment) return refused(kSyscall, by, "no shared memory");
        {
            Registry& all = registry();
            std::lock_guard<std::mutex> hold(all.lock);
            all.roots[root] = segment;
        }
        uint32_t slot = head->parts_used.fetch_add(1);
        if (slot >= kParts) return refused(kNotFound, by, "too many parts of one communicator");
        head->parts[slot].id.store(id);
        std::snprintf(head->parts[slot].root, sizeof head->parts[slot].root, "%s", root.c_str());
        head->parts[slot].ready.store(1);
    } else {
        auto limit = Clock::now() + std::chrono::duration<double>(seconds_of("HCCL_CONNECT_TIMEOUT", 120));
        Patience patience;
        while (root.empty()) {
            for (uint32_t i = 0; i < std::min(head->parts_used.load(), kParts); ++i)
                if (head->parts[i].ready.load() == 1 && head->parts[i].id.load() == id) root = head->parts[i].root;
            if (Clock::now() > limit)
                return refused(kTimeout, by, "rank 0 of the part did not come within HCCL_CONNECT_TIMEOUT");
            patience.wait();
        }
    }
    return join(root, uint32_t(ranks.size()), rank, name, handle, by);
}

std::shared_ptr<Communicator> communicator(void* handle, const char* by) {
    Registry& all = registry();
    std::lock_guard<std::mutex> hold(all.lock);
    uint64_t id = reinterpret_cast<uint64_t>(handle) - kHandleBase;
    auto found = all.live.find(id);
    if (found != all.live.end()) return found->second;
    auto gone = all.destroyed.find(id);
    std::string text =
        gone != all.destroyed.end() ? "the communicator was destroyed by " + gone->second : "not a communicator";
    say("%s: comm: %s", by, text.c_str());
    violation("handle", "%s: comm: %s", by, text.c_str());
    return nullptr;
}

int leave(void* handle, const char* by) {
    auto c = communicator(handle, by);
    if (!c) return kPara;
    Registry& all = registry();
    {
        std::lock_guard<std::mutex> hold(all.lock);
        uint64_t id = reinterpret_cast<uint64_t>(handle) - kHandleBase;
        all.live.erase(id);
        all.destroyed[id] = by;
    }
    c->leave();
    return 0;
}

std::shared_ptr<Communicator> communicator_named(const std::string& name, int device) {
    Registry& all = registry();
    std::lock_guard<std::mutex> hold(all.lock);
    for (const auto& [id, c] : all.live)
        if (c->name == name && c->device == device) return c;
    return nullptr;
}

// -- one rank --------------------------------------------------------------------------------------------------------------
Communicator::Communicator(std::shared_ptr<Segment> shared, uint32_t my_rank, int my_device, std::string my_name)
    : rank(my_rank), size(shared->head->ranks.load()), device(my_device), name(std::move(my_name)),
      segment(std::move(shared)) {}

Communicator::~Communicator() { leave(); }

void Communicator::leave() { segment->head->members[rank].state.store(kLeft); }

Communicator::Turn::Turn(std::shared_ptr<Communicator> of, int line) : of_(std::move(of)), line_(line) {
    std::lock_guard<std::mutex> hold(of_->lock_);
    number_ = of_->lines_[line_].next++;
}

Communicator::Turn::~Turn() {
    std::lock_guard<std::mutex> hold(of_->lock_);
    Line& line = of_->lines_[line_];
    line.passed.insert(number_);
    while (line.passed.erase(line.done) != 0) ++line.done;
    of_->turn_.notify_all();
}

void Communicator::Turn::await(const char* by) {
    std::unique_lock<std::mutex> hold(of_->lock_);
    while (of_->lines_[line_].done != number_) {
        of_->turn_.wait_for(hold, std::chrono::milliseconds(20));
        if (worker_abandoned())
            throw DeviceFault{ACL_ERROR_RT_STREAM_ABORT, std::string(by) + ": the stream was abandoned"};
    }
}

void Communicator::fail(int code, const std::string& text) {
    error_.store(code);
    throw DeviceFault{507018, text};  // an exception of the unit that runs communication
}

void Communicator::check_failure(const char* by) {
    Head* head = segment->head;
    if (int code = head->failed.load()) {
        Patience patience;
        while (head->told.load() == 0 && patience.rounds < 400) patience.wait();
        fail(code, std::string(by) + ": " + head->why);
    }
}

std::string Communicator::lost(uint32_t peer) {
    Member& m = segment->head->members[peer];
    if (m.state.load() == kLeft) return "rank " + std::to_string(peer) + " has destroyed its communicator";
    int pid = m.pid.load();
    if (pid != int(getpid()) && process_gone(pid)) return "the process of rank " + std::to_string(peer) + " is gone";
    return "";
}

namespace {

// One direction of one ring: the statement, then the bytes.
struct Progress {
    Ring* ring;
    const Transfer* transfer;
    uint64_t done = 0;  // of statement and bytes together
    Statement seen;

    uint64_t total() const { return sizeof(Statement) + transfer->what.bytes; }

    // f(place in the ring, own bytes, count) for what can move now; the number of bytes moved.
    template <class F>
    uint64_t move(uint64_t room, uint64_t at, unsigned char* statement, F f) {
        uint64_t moved = 0;
        while (room > 0 && done < total()) {
            unsigned char* own;
            uint64_t left;
            if (done < sizeof(Statement)) own = statement + done, left = sizeof(Statement) - done;
            else own = transfer->data + (done - sizeof(Statement)), left = total() - done;
            uint64_t n = std::min({left, room, kRing - at % kRing});
            f(ring->data + at % kRing, own, n);
            done += n, at += n, room -= n, moved += n;
            if (done == sizeof(Statement)) break;  // look at the statement first
        }
        return moved;
    }
    bool send() {
        uint64_t written = ring->written.load(), room = kRing - (written - ring->read.load());
        Statement copy = transfer->what;
        uint64_t n = move(room, written, reinterpret_cast<unsigned char*>(&copy),
                          [](unsigned char* at, const unsigned char* own, uint64_t k) { std::memcpy(at, own, k); });
        ring->written.store(written + n);
        return n > 0;
    }
    bool receive() {
        uint64_t read = ring->read.load(), there = ring->written.load() - read;
        uint64_t n = move(there, read, reinterpret_cast<unsigned char*>(&seen),
                          [](const unsigned char* at, unsigned char* own, uint64_t k) { std::memcpy(own, at, k); });
        ring->read.store(read + n);
        return n > 0;
    }
};

std::string described(const Statement& s) {
    char text[160];
    std::snprintf(text, sizeof text, "function %u, dataType %u, op %u, root %u, count %llu, %llu bytes", s.kind,
                  s.dtype, s.op, s.root, static_cast<unsigned long long>(s.count),
                  static_cast<unsigned long long>(s.bytes));
    return text;
}

bool same(const Statement& a, const Statement& b) {
    return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.root == b.root && a.count == b.count &&
           a.bytes == b.bytes;
}

}  // namespace

void Communicator::exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives, int channel,
                            const char* by) {
    check_failure(by);
    std::vector<Progress> out, in;
    for (const Transfer& t : sends) out.push_back({&segment->ring(rank, t.peer, channel), &t, 0, {}});
    for (const Transfer& t : receives) in.push_back({&segment->ring(t.peer, rank, channel), &t, 0, {}});
    auto limit = Clock::now() + std::chrono::duration<double>(seconds_of("HCCL_EXEC_TIMEOUT", 1836));
    Patience patience;
    std::string without;  // a rank that is needed and gone; what it wrote before may still lie in its ring
    for (int idle = 0;;) {
        bool moved = false, finished = true;
        for (std::vector<Progress>* side : {&out, &in})
            for (size_t i = 0; i < side->size(); ++i) {
                Progress& p = (*side)[i];
                if (p.done == p.total()) continue;
                finished = false;
                bool first = true;  // one ring takes its transfers in order
                for (size_t k = 0; k < i && first; ++k)
                    first = (*side)[k].ring != p.ring || (*side)[k].done == (*side)[k].total();
                if (!first) continue;
                bool before = p.done < sizeof(Statement);
                moved |= side == &out ? p.send() : p.receive();
                if (side == &in && before && p.done >= sizeof(Statement) && !same(p.seen, p.transfer->what)) {
                    std::string text = "rank " + std::to_string(p.transfer->peer) + " calls " + described(p.seen) +
                                       ", rank " + std::to_string(rank) + " calls " + described(p.transfer->what);
                    segment->declare_failure(kPara, text);
                    fail(kPara, std::string(by) + ": " + text);
                }
            }
        if (finished) return;
        if (moved) {
            idle = 0, patience.rounds = 0, without.clear();
            continue;
        }
        if (!without.empty()) fail(kRemote, std::string(by) + ": " + without);
        if (worker_abandoned())
            throw DeviceFault{ACL_ERROR_RT_STREAM_ABORT, std::string(by) + ": the stream was abandoned"};
        if (++idle % 64 == 0) {
            check_failure(by);
            for (std::vector<Progress>* side : {&out, &in})
                for (Progress& p : *side)
                    if (without.empty() && p.done != p.total()) without = lost(p.transfer->peer);
        }
        if (Clock::now() > limit)
            fail(kTimeout, std::string(by) + ": other ranks did not come within HCCL_EXEC_TIMEOUT");
        patience.wait();
    }
}

namespace {

template <class T>
T combined(T a, T b, Reduction op) {
    switch (op) {
        case Reduction::product: return a * b;
        case Reduction::largest: return a > b || a != a ? a : b;
        case Reduction::smallest: return a < b || a != a ? a : b;
        default: return a + b;
    }
}

}  // namespace

Bytes reduced(const std::vector<Bytes>& all, int dtype, Reduction op) {
    Bytes out(all[0].size());
    size_t item = size_of(dtype);
    auto each = [&](auto zero) {
        using T = decltype(zero);
        for (size_t at = 0; at < out.size(); at += item) {
            T sum = load<T>(all[0].data() + at, dtype);
            for (size_t r = 1; r < all.size(); ++r) sum = combined<T>(sum, load<T>(all[r].data() + at, dtype), op);
            store<T>(out.data() + at, dtype, sum);
        }
    };
    if (category(dtype) == Category::Integer) each(int64_t{});
    else each(double{});
    return out;
}

// -- collectives -----------------------------------------------------------------------------------------------------------
std::vector<Bytes> exchange_all(Communicator& c, const std::vector<Bytes>& pieces,
                                const std::vector<uint64_t>& expected, Statement what, const char* by) {
    std::vector<Bytes> got(c.size);
    std::vector<Transfer> sends, receives;
    for (uint32_t i = 0; i < c.size; ++i) {
        if (i == c.rank) {
            got[i] = pieces[i];
            continue;
        }
        got[i].resize(size_t(expected[i]));
        Statement out = what, in = what;
        out.bytes = pieces[i].size(), in.bytes = expected[i];
        sends.push_back({i, const_cast<unsigned char*>(pieces[i].data()), out});
        receives.push_back({i, got[i].data(), in});
    }
    c.exchange(sends, receives, 0, by);
    return got;
}

void agree(Communicator& c, Statement what, const char* by) { gather_all(c, {}, what, by); }

std::vector<Bytes> gather_all(Communicator& c, const Bytes& mine, Statement what, const char* by) {
    return exchange_all(c, std::vector<Bytes>(c.size, mine), std::vector<uint64_t>(c.size, mine.size()), what, by);
}

}  // namespace emu
