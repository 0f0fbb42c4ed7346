// Communicators: ranks that are devices of this process or of others on this machine.
//
// Ranks share one anonymous piece of memory (memfd): rings of bytes, one from each rank to each. It has no name in any
// file system, so nothing stays behind whoever is killed when. Another process finds it through /proc while the process
// that made it lives. Every collective is a set of transfers through the rings; each begins with a statement of what the
// sender believes is going on, so that ranks that disagree are told instead of exchanging nonsense.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../core/core.h"

namespace emu {

constexpr uint32_t kMaxRanks = 64;

// What all ranks of a collective must agree on.
struct Statement {
    uint32_t kind = 0;  // the function
    uint32_t dtype = 0;
    uint32_t op = 0;
    uint32_t root = 0;
    uint64_t count = 0;  // where all ranks give the same
    uint64_t bytes = 0;  // of this transfer
};

struct Transfer {
    uint32_t peer;
    unsigned char* data;
    Statement what;
};

struct Segment;

class EMU_API Communicator {
public:
    Communicator(std::shared_ptr<Segment> segment, uint32_t rank, int device, std::string name);
    ~Communicator();

    // Sends and receives all of it at once, each ring in order; throws DeviceFault when a rank disagrees, is gone, or does
    // not come in time. `channel` 0 is for collectives, 1 for single messages.
    void exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives, int channel,
                  const char* by);

    // What shares a line (the collectives; the messages to one rank, or from it) runs in the order it was queued, whatever
    // its streams. A turn that is dropped passes.
    class EMU_API Turn {
    public:
        Turn(std::shared_ptr<Communicator> of, int line);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        void await(const char* by);

    private:
        std::shared_ptr<Communicator> of_;
        int line_;
        uint64_t number_;
    };

    void leave();
    int async_error() const { return error_.load(); }
    std::atomic<bool> suspended{false};

    const uint32_t rank, size;
    const int device;
    const std::string name;
    const std::shared_ptr<Segment> segment;

private:
    [[noreturn]] void fail(int code, const std::string& text);
    void check_failure(const char* by);
    // Why nothing more will come from that rank or be taken by it; empty while it lives.
    std::string lost(uint32_t peer);

    std::mutex lock_;
    std::condition_variable turn_;
    struct Line {
        uint64_t next = 0, done = 0;
        std::set<uint64_t> passed;
    };
    std::map<int, Line> lines_;
    std::atomic<int> error_{0};
};

// Lines of Communicator::Turn.
constexpr int kCollectives = 0;
inline int line_to(uint32_t peer) { return 1 + 2 * int(peer); }
inline int line_from(uint32_t peer) { return 2 + 2 * int(peer); }

// -- joining -----------------------------------------------------------------------------------------------------------
// 0 or an HcclResult, with a message.
EMU_API int make_root(char* text, size_t bytes);
EMU_API int join_root(const char* text, uint32_t ranks, uint32_t rank, const char* name, void** handle, const char* by);
EMU_API int join_all(const std::vector<int>& devices, void** handles, const char* by);
EMU_API int join_part(void* parent, const std::vector<uint32_t>& ranks, uint64_t id, uint32_t rank, const char* name,
                      void** handle, const char* by);
EMU_API std::shared_ptr<Communicator> communicator(void* handle, const char* by);
EMU_API int leave(void* handle, const char* by);
// The communicator of that name in which the device is a rank; null with a message.
std::shared_ptr<Communicator> communicator_named(const std::string& name, int device);

// -- collectives on plain memory, called on a stream's worker ------------------------------------------------------------
using Bytes = std::vector<unsigned char>;
enum class Reduction : uint32_t { sum, product, largest, smallest };  // the vendor's numbers
// In the order of ranks, rounded once.
EMU_API Bytes reduced(const std::vector<Bytes>& all, int dtype, Reduction op);
// Every rank tells every other what it believes; a disagreement is a fault.
EMU_API void agree(Communicator& c, Statement what, const char* by);
// What every rank gave, by rank.
EMU_API std::vector<Bytes> gather_all(Communicator& c, const Bytes& mine, Statement what, const char* by);
// Piece r goes to rank r; `expected[r]` bytes come from it.
EMU_API std::vector<Bytes> exchange_all(Communicator& c, const std::vector<Bytes>& pieces,
                                        const std::vector<uint64_t>& expected, Statement what, const char* by);

}  // namespace emu
