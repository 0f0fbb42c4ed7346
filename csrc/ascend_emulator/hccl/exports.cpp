// libhccl.so: communicators and collectives. Each collective is queued on its stream; what goes wrong there appears at the
// stream's next synchronisation and in HcclGetCommAsyncError.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "../core/contexts.h"
#include "../core/dtype.h"
#include "../core/state.h"
#include "../include/hccl/hccl_types.h"
#include "communicator.h"

using namespace emu;

namespace {

enum Function : uint32_t {
    kAllReduce = 1,
    kBroadcast,
    kReduce,
    kReduceScatter,
    kAllGather,
    kScatter,
    kAlltoAll,
    kMessage,
    kBarrier,
};

HcclResult refused(HcclResult code, const char* by, const char* what) {
    say("%s: %s", by, what);
    return code;
}

int acl_dtype(HcclDataType type) {
    switch (type) {
        case HCCL_DATA_TYPE_INT8: return ACL_INT8;
        case HCCL_DATA_TYPE_INT16: return ACL_INT16;
        case HCCL_DATA_TYPE_INT32: return ACL_INT32;
        case HCCL_DATA_TYPE_FP16: return ACL_FLOAT16;
        case HCCL_DATA_TYPE_FP32: return ACL_FLOAT;
        case HCCL_DATA_TYPE_INT64: return ACL_INT64;
        case HCCL_DATA_TYPE_UINT64: return ACL_UINT64;
        case HCCL_DATA_TYPE_UINT8: return ACL_UINT8;
        case HCCL_DATA_TYPE_UINT16: return ACL_UINT16;
        case HCCL_DATA_TYPE_UINT32: return ACL_UINT32;
        case HCCL_DATA_TYPE_FP64: return ACL_DOUBLE;
        case HCCL_DATA_TYPE_BFP16: return ACL_BF16;
        case HCCL_DATA_TYPE_HIF8: return ACL_HIFLOAT8;
        case HCCL_DATA_TYPE_FP8E4M3: return ACL_FLOAT8_E4M3FN;
        case HCCL_DATA_TYPE_FP8E5M2: return ACL_FLOAT8_E5M2;
        case HCCL_DATA_TYPE_FP8E8M0: return ACL_FLOAT8_E8M0;
        default: return ACL_DT_UNDEFINED;
    }
}

// The checks every collective begins with; `c` is set when all is well.
struct Entry {
    const char* by;
    std::shared_ptr<Communicator> c;
    int dtype = ACL_DT_UNDEFINED;
    uint64_t item = 1;
    std::vector<Range> ranges;
    int code = HCCL_SUCCESS;  // an injected fault is any number

    Entry(const char* function, HcclComm comm, HcclDataType type) : by(function) { code = checked(comm, type); }
    int checked(HcclComm comm, HcclDataType type) {
        if (int injected = enter(by)) return injected;
        if (comm == nullptr) return refused(HCCL_E_PTR, by, "comm must not be null");
        dtype = acl_dtype(type);
        if (dtype == ACL_DT_UNDEFINED) return refused(HCCL_E_NOT_SUPPORT, by, "dataType is none of the types it knows");
        item = size_of(dtype);
        if (require_context()) return refused(HCCL_E_RUNTIME, by, "no device is set on this thread");
        c = communicator(comm, by);
        if (!c) return HCCL_E_PARA;
        if (c->suspended.load()) return refused(HCCL_E_SUSPENDING, by, "the communicator is suspended");
        if (c->device != current_context()->device)
            return refused(HCCL_E_PARA, by, "the communicator belongs to another device than the one that is set");
        return HCCL_SUCCESS;
    }
    void fail(int why) { code = why; }
    bool failed() const { return code != HCCL_SUCCESS; }

    // A buffer of `count` elements; null is fine where there are none.
    uint64_t buffer(const void* pointer, uint64_t count, const char* name, bool written) {
        uint64_t address = reinterpret_cast<uint64_t>(pointer), bytes = 0;
        if (failed()) return address;
        if (__builtin_mul_overflow(count, item, &bytes) || bytes > uint64_t(INT64_MAX)) {
            fail(refused(HCCL_E_PARA, by, "count is too large"));
        } else if (bytes > 0 && pointer == nullptr) {
            say("%s: %s must not be null", by, name);
            fail(HCCL_E_PTR);
        } else if (bytes > 0 && !on_device(address)) {
            violation("host-pointer", "%s: %s is not device memory", by, name);
            fail(HCCL_E_PARA);
        } else if (bytes > 0) {
            if (!live(address, bytes))
                violation("memory", "%s: %s is not %llu bytes of live device memory", by, name,
                          static_cast<unsigned long long>(bytes));
            ranges.push_back({address, bytes, written});
        }
        return address;
    }
    void root(uint32_t rank, const char* name) {
        if (!failed() && rank >= c->size) {
            say("%s: %s is %u, there are %u ranks", by, name, rank, c->size);
            fail(HCCL_E_PARA);
        }
    }
    void reduces(HcclReduceOp op) {
        if (failed()) return;
        bool known = dtype == ACL_INT8 || dtype == ACL_INT16 || dtype == ACL_INT32 || dtype == ACL_INT64 ||
                     dtype == ACL_FLOAT16 || dtype == ACL_FLOAT || dtype == ACL_BF16;
        if (op < HCCL_REDUCE_SUM || op > HCCL_REDUCE_MIN)
            fail(refused(HCCL_E_PARA, by, "op is none of sum, prod, max, min"));
        else if (!known) fail(refused(HCCL_E_NOT_SUPPORT, by, "dataType cannot be reduced"));
        else if (op == HCCL_REDUCE_PROD && (dtype == ACL_INT16 || dtype == ACL_BF16))
            fail(refused(HCCL_E_NOT_SUPPORT, by, "INT16 and BFP16 have no product"));
    }
    HcclResult queue(aclrtStream stream, const std::vector<int>& lines, std::function<void(Communicator&)> body) {
        if (failed()) return HcclResult(code);
        Task task;
        task.name = by;
        task.ranges = std::move(ranges);
        // Turns are taken when the task is queued, for each run of it.
        task.again = [c = c, by = by, lines, body = std::move(body)]() -> std::function<void()> {
            std::vector<std::shared_ptr<Communicator::Turn>> turns;
            for (int line : lines) turns.push_back(std::make_shared<Communicator::Turn>(c, line));
            return [c, by, turns = std::move(turns), body]() mutable {
                auto mine = std::move(turns);  // passed on when this is over
                for (auto& turn : mine) turn->await(by);
                body(*c);
            };
        };
        if (int launched = launch(stream, std::move(task))) {
            say("%s: the stream answered %d", by, launched);
            return HCCL_E_RUNTIME;
        }
        return HCCL_SUCCESS;
    }
};

Bytes read_bytes(uint64_t address, uint64_t bytes, const char* by) {
    if (bytes == 0) return {};
    const unsigned char* from = reach(address, bytes, by);
    return Bytes(from, from + bytes);
}

void write_bytes(uint64_t address, const Bytes& bytes, const char* by) {
    if (!bytes.empty()) std::memcpy(reach(address, bytes.size(), by), bytes.data(), bytes.size());
}

Statement statement(Function kind, int dtype, uint64_t count, uint32_t op = 0, uint32_t root = 0) {
    Statement s;
    s.kind = kind, s.dtype = uint32_t(dtype), s.op = op, s.root = root, s.count = count;
    return s;
}

std::vector<uint64_t> numbers(const void* from, uint32_t count) {
    const uint64_t* values = static_cast<const uint64_t*>(from);
    return std::vector<uint64_t>(values, values + count);
}

// Pieces of one buffer, counted in elements.
struct Layout {
    std::vector<uint64_t> counts, places;
    bool fits = true;

    Layout(std::vector<uint64_t> n, std::vector<uint64_t> at) : counts(std::move(n)), places(std::move(at)) {}
    uint64_t end() {
        uint64_t last = 0;
        for (size_t i = 0; i < counts.size(); ++i) {
            uint64_t stop;
            if (__builtin_add_overflow(counts[i], places[i], &stop)) fits = false;
            else if (counts[i] > 0 && stop > last) last = stop;
        }
        return last;
    }
    std::vector<uint64_t> bytes(uint64_t item) const {
        std::vector<uint64_t> out;
        for (uint64_t n : counts) out.push_back(n * item);
        return out;
    }
};

Layout even(uint32_t ranks, uint64_t count) {
    std::vector<uint64_t> places;
    for (uint32_t i = 0; i < ranks; ++i) places.push_back(i * count);
    return Layout(std::vector<uint64_t>(ranks, count), places);
}

std::vector<Bytes> pieces_of(uint64_t address, const Layout& layout, uint64_t item, const char* by) {
    std::vector<Bytes> out;
    for (size_t i = 0; i < layout.counts.size(); ++i)
        out.push_back(read_bytes(address + layout.places[i] * item, layout.counts[i] * item, by));
    return out;
}

void place(uint64_t address, const Layout& layout, const std::vector<Bytes>& pieces, uint64_t item, const char* by) {
    for (size_t i = 0; i < pieces.size(); ++i) write_bytes(address + layout.places[i] * item, pieces[i], by);
}

bool too_many(Entry& e, uint64_t count) {
    uint64_t all;
    if (e.failed() || !__builtin_mul_overflow(count, uint64_t(e.c->size) * e.item, &all)) return e.failed();
    e.fail(refused(HCCL_E_PARA, e.by, "count is too large"));
    return true;
}

HcclResult all_to_all(Entry& e, const void* send, Layout out, const void* receive, Layout in, HcclComm,
                      aclrtStream stream) {
    uint64_t last_out = out.end(), last_in = in.end();
    if (!out.fits || !in.fits) return refused(HCCL_E_PARA, e.by, "counts and displacements are too large");
    uint64_t from = e.buffer(send, last_out, "sendBuf", false), to = e.buffer(receive, last_in, "recvBuf", true);
    if (!e.failed() && from == to && last_out > 0) return refused(HCCL_E_PARA, e.by, "sendBuf and recvBuf must differ");
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, dtype = e.dtype](Communicator& c) {
        place(to, in,
              exchange_all(c, pieces_of(from, out, item, by), in.bytes(item), statement(kAlltoAll, dtype, 0), by), item,
              by);
    });
}

HcclResult reduce_scatter(Entry& e, void* send, const Layout& given, void* receive, uint64_t count, HcclReduceOp op,
                          aclrtStream stream) {
    Layout layout = given;
    uint64_t last = layout.end();
    if (!layout.fits) return refused(HCCL_E_PARA, e.by, "counts and displacements are too large");
    e.reduces(op);
    uint64_t from = e.buffer(send, last, "sendBuf", false), to = e.buffer(receive, count, "recvBuf", true);
    if (!e.failed() && layout.counts[e.c->rank] != count)
        return refused(HCCL_E_PARA, e.by, "recvCount is not this rank's count");
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, dtype = e.dtype](Communicator& c) {
        auto got = exchange_all(c, pieces_of(from, layout, item, by), std::vector<uint64_t>(c.size, count * item),
                                statement(kReduceScatter, dtype, 0, op), by);
        write_bytes(to, reduced(got, dtype, Reduction(op)), by);
    });
}

HcclResult all_gather(Entry& e, void* send, uint64_t count, void* receive, const Layout& given, aclrtStream stream) {
    Layout layout = given;
    uint64_t last = layout.end();
    if (!layout.fits) return refused(HCCL_E_PARA, e.by, "counts and displacements are too large");
    uint64_t from = e.buffer(send, count, "sendBuf", false), to = e.buffer(receive, last, "recvBuf", true);
    if (!e.failed() && layout.counts[e.c->rank] != count)
        return refused(HCCL_E_PARA, e.by, "sendCount is not this rank's count");
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, dtype = e.dtype](Communicator& c) {
        Bytes mine = read_bytes(from, count * item, by);
        auto got =
            exchange_all(c, std::vector<Bytes>(c.size, mine), layout.bytes(item), statement(kAllGather, dtype, 0), by);
        place(to, layout, got, item, by);
    });
}

HcclResult messages(Entry& e, const std::vector<HcclSendRecvItem>& items, aclrtStream stream) {
    struct Message {
        bool out;
        uint64_t address, bytes;
        uint32_t peer, dtype;
    };
    std::vector<Message> all;
    std::vector<int> lines;
    for (const HcclSendRecvItem& item : items) {
        if (e.failed()) return HcclResult(e.code);
        e.dtype = acl_dtype(item.dataType);
        if (e.dtype == ACL_DT_UNDEFINED)
            return refused(HCCL_E_NOT_SUPPORT, e.by, "dataType is none of the types it knows");
        e.item = size_of(e.dtype);
        bool out = item.sendRecvType == HCCL_SEND;
        if (!out && item.sendRecvType != HCCL_RECV)
            return refused(HCCL_E_PARA, e.by, "sendRecvType is neither send nor receive");
        e.root(item.remoteRank, "remoteRank");
        if (!e.failed() && item.remoteRank == e.c->rank && items.size() == 1)
            return refused(HCCL_E_PARA, e.by, "a rank does not send to itself");
        uint64_t address = e.buffer(item.buf, item.count, "buf", !out);
        all.push_back({out, address, item.count * e.item, item.remoteRank, uint32_t(e.dtype)});
        lines.push_back(out ? line_to(item.remoteRank) : line_from(item.remoteRank));
    }
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return e.queue(stream, lines, [all, by = e.by](Communicator& c) {
        std::vector<Bytes> data;
        std::vector<Transfer> out, in;
        for (const Message& m : all)
            data.push_back(m.out ? read_bytes(m.address, m.bytes, by) : Bytes(size_t(m.bytes)));
        for (size_t i = 0; i < all.size(); ++i) {
            Statement what = statement(kMessage, int(all[i].dtype), 0);
            what.bytes = all[i].bytes;
            (all[i].out ? out : in).push_back({all[i].peer, data[i].data(), what});
        }
        c.exchange(out, in, 1, by);
        for (size_t i = 0; i < all.size(); ++i)
            if (!all[i].out) write_bytes(all[i].address, data[i], by);
    });
}

std::atomic<int32_t> deterministic{0};

const char* config_name(const HcclCommConfig* config, const char* by, HcclResult* code) {
    *code = HCCL_SUCCESS;
    if (config == nullptr) return nullptr;
    uint32_t magic;
    std::memcpy(&magic, config->reserved + 8, 4);
    if (magic != HCCL_COMM_CONFIG_MAGIC_WORD)
        *code = refused(HCCL_E_PARA, by, "config was not initialised by HcclCommConfigInit");
    if (memchr(config->hcclCommName, 0, COMM_NAME_MAX_LENGTH) == nullptr)
        *code = refused(HCCL_E_PARA, by, "hcclCommName does not end");
    return config->hcclCommName;
}

}  // namespace

#define BEGIN(pointer) \
    if (int injected = enter(__func__)) return HcclResult(injected); \
    if ((pointer) == nullptr) return refused(HCCL_E_PTR, __func__, #pointer " must not be null")

extern "C" {

EMU_API HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
    BEGIN(rootInfo);
    return HcclResult(make_root(rootInfo->internal, sizeof rootInfo->internal));
}

EMU_API HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                              const HcclCommConfig* config, HcclComm* comm) {
    BEGIN(rootInfo);
    if (comm == nullptr || config == nullptr) return refused(HCCL_E_PTR, __func__, "config and comm must not be null");
    HcclResult code;
    const char* name = config_name(config, __func__, &code);
    if (code != HCCL_SUCCESS) return code;
    return HcclResult(join_root(rootInfo->internal, nRanks, rank, name, comm, __func__));
}

EMU_API HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm) {
    BEGIN(rootInfo);
    if (comm == nullptr) return refused(HCCL_E_PTR, __func__, "comm must not be null");
    return HcclResult(join_root(rootInfo->internal, nRanks, rank, nullptr, comm, __func__));
}

EMU_API HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t, HcclComm*) {
    BEGIN(clusterInfo);
    return refused(HCCL_E_NOT_SUPPORT, __func__,
                   "the emulator has no rank tables; use HcclGetRootInfo and HcclCommInitRootInfo");
}

EMU_API HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t, HcclCommConfig*, HcclComm*) {
    BEGIN(clusterInfo);
    return refused(HCCL_E_NOT_SUPPORT, __func__,
                   "the emulator has no rank tables; use HcclGetRootInfo and HcclCommInitRootInfoConfig");
}

EMU_API HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
    BEGIN(devices);
    if (comms == nullptr) return refused(HCCL_E_PTR, __func__, "comms must not be null");
    if (int code = require_init(__func__)) return code ? HCCL_E_RUNTIME : HCCL_SUCCESS;
    return HcclResult(join_all(std::vector<int>(devices, devices + ndev), comms, __func__));
}

EMU_API HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t subCommId,
                                           uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm) {
    BEGIN(comm);
    if (subComm == nullptr) return refused(HCCL_E_PTR, __func__, "subComm must not be null");
    if (rankIds == nullptr) {  // a rank that takes no part
        *subComm = nullptr;
        return rankNum == 0 ? HCCL_SUCCESS : refused(HCCL_E_PTR, __func__, "rankIds must not be null");
    }
    HcclResult code;
    const char* name = config_name(config, __func__, &code);
    if (code != HCCL_SUCCESS) return code;
    return HcclResult(join_part(*comm, std::vector<uint32_t>(rankIds, rankIds + rankNum), subCommId, subCommRankId,
                                name, subComm, __func__));
}

EMU_API HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                                 HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    e.reduces(op);
    uint64_t from = e.buffer(sendBuf, count, "sendBuf", false), to = e.buffer(recvBuf, count, "recvBuf", true);
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, type = e.dtype](Communicator& c) {
        auto got = gather_all(c, read_bytes(from, count * item, by), statement(kAllReduce, type, count, op), by);
        write_bytes(to, reduced(got, type, Reduction(op)), by);
    });
}

EMU_API HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                                 aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    e.root(root, "root");
    uint64_t at = e.buffer(buf, count, "buf", true);
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, type = e.dtype](Communicator& c) {
        Statement what = statement(kBroadcast, type, count, 0, root);
        agree(c, what, by);
        bool mine = c.rank == root;
        std::vector<Bytes> pieces(c.size);
        if (mine) pieces.assign(c.size, read_bytes(at, count * item, by));
        std::vector<uint64_t> expected(c.size, 0);
        expected[root] = count * item;
        auto got = exchange_all(c, pieces, expected, what, by);
        if (!mine) write_bytes(at, got[root], by);
    });
}

EMU_API HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                              uint32_t root, HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    e.reduces(op);
    e.root(root, "root");
    uint64_t from = e.buffer(sendBuf, count, "sendBuf", false), to = 0;
    if (!e.failed() && e.c->rank == root) to = e.buffer(recvBuf, count, "recvBuf", true);
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, type = e.dtype](Communicator& c) {
        Statement what = statement(kReduce, type, count, op, root);
        agree(c, what, by);
        std::vector<Bytes> pieces(c.size);
        pieces[root] = read_bytes(from, count * item, by);
        auto got = exchange_all(c, pieces, std::vector<uint64_t>(c.size, c.rank == root ? count * item : 0), what, by);
        if (c.rank == root) write_bytes(to, reduced(got, type, Reduction(op)), by);
    });
}

EMU_API HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                                     HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    if (too_many(e, recvCount)) return HcclResult(e.code);
    return reduce_scatter(e, sendBuf, even(e.c->size, recvCount), recvBuf, recvCount, op, stream);
}

EMU_API HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                                      uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                      aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    if (e.failed()) return HcclResult(e.code);
    if (sendCounts == nullptr || sendDispls == nullptr)
        return refused(HCCL_E_PTR, e.by, "sendCounts and sendDispls must not be null");
    return reduce_scatter(e, sendBuf, Layout(numbers(sendCounts, e.c->size), numbers(sendDispls, e.c->size)), recvBuf,
                          recvCount, op, stream);
}

EMU_API HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                                 aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    if (too_many(e, sendCount)) return HcclResult(e.code);
    return all_gather(e, sendBuf, sendCount, recvBuf, even(e.c->size, sendCount), stream);
}

EMU_API HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                                  const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    if (e.failed()) return HcclResult(e.code);
    if (recvCounts == nullptr || recvDispls == nullptr)
        return refused(HCCL_E_PTR, e.by, "recvCounts and recvDispls must not be null");
    return all_gather(e, sendBuf, sendCount, recvBuf,
                      Layout(numbers(recvCounts, e.c->size), numbers(recvDispls, e.c->size)), stream);
}

EMU_API HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                               HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    if (too_many(e, recvCount)) return HcclResult(e.code);
    e.root(root, "root");
    uint64_t from = 0, to = e.buffer(recvBuf, recvCount, "recvBuf", true);
    if (!e.failed() && e.c->rank == root) from = e.buffer(sendBuf, recvCount * e.c->size, "sendBuf", false);
    return e.queue(stream, {kCollectives}, [=, by = e.by, item = e.item, type = e.dtype](Communicator& c) {
        Statement what = statement(kScatter, type, recvCount, 0, root);
        agree(c, what, by);
        std::vector<Bytes> pieces(c.size);
        if (c.rank == root) pieces = pieces_of(from, even(c.size, recvCount), item, by);
        std::vector<uint64_t> expected(c.size, 0);
        expected[root] = recvCount * item;
        write_bytes(to, exchange_all(c, pieces, expected, what, by)[root], by);
    });
}

EMU_API HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                            aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    return messages(e, {{HCCL_SEND, sendBuf, count, dataType, destRank}}, stream);
}

EMU_API HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                            aclrtStream stream) {
    Entry e(__func__, comm, dataType);
    return messages(e, {{HCCL_RECV, recvBuf, count, dataType, srcRank}}, stream);
}

EMU_API HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                                     aclrtStream stream) {
    Entry e(__func__, comm, HCCL_DATA_TYPE_INT8);
    if (e.failed()) return HcclResult(e.code);
    if (sendRecvInfo == nullptr) return refused(HCCL_E_PTR, e.by, "sendRecvInfo must not be null");
    if (itemNum == 0) return refused(HCCL_E_PARA, e.by, "itemNum must not be 0");
    return messages(e, std::vector<HcclSendRecvItem>(sendRecvInfo, sendRecvInfo + itemNum), stream);
}

EMU_API HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                                uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, sendType);
    if (e.failed()) return HcclResult(e.code);
    if (sendCount != recvCount || sendType != recvType)
        return refused(HCCL_E_PARA, e.by, "counts and types of both sides must be the same");
    if (too_many(e, sendCount)) return HcclResult(e.code);
    return all_to_all(e, sendBuf, even(e.c->size, sendCount), recvBuf, even(e.c->size, recvCount), comm, stream);
}

EMU_API HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                                 HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                                 const void* rdispls, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, sendType);
    if (e.failed()) return HcclResult(e.code);
    if (sendType != recvType) return refused(HCCL_E_PARA, e.by, "the types of both sides must be the same");
    for (const void* list : {sendCounts, sdispls, recvCounts, rdispls})
        if (list == nullptr) return refused(HCCL_E_PTR, e.by, "counts and displacements must not be null");
    uint32_t n = e.c->size;
    return all_to_all(e, sendBuf, Layout(numbers(sendCounts, n), numbers(sdispls, n)), recvBuf,
                      Layout(numbers(recvCounts, n), numbers(rdispls, n)), comm, stream);
}

EMU_API HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                                  const void* recvBuf, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, sendType);
    if (e.failed()) return HcclResult(e.code);
    if (sendType != recvType) return refused(HCCL_E_PARA, e.by, "the types of both sides must be the same");
    if (sendCountMatrix == nullptr) return refused(HCCL_E_PTR, e.by, "sendCountMatrix must not be null");
    uint32_t n = e.c->size, me = e.c->rank;
    auto matrix = numbers(sendCountMatrix, n * n);
    std::vector<uint64_t> out, in, from, to;
    uint64_t a = 0, b = 0;
    for (uint32_t i = 0; i < n; ++i) {
        out.push_back(matrix[me * n + i]), from.push_back(a), a += out.back();
        in.push_back(matrix[i * n + me]), to.push_back(b), b += in.back();
    }
    return all_to_all(e, sendBuf, Layout(out, from), recvBuf, Layout(in, to), comm, stream);
}

EMU_API HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
    Entry e(__func__, comm, HCCL_DATA_TYPE_INT8);
    return e.queue(stream, {kCollectives}, [by = e.by](Communicator& c) { agree(c, statement(kBarrier, 0, 0), by); });
}

EMU_API HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
    BEGIN(comm);
    if (rankSize == nullptr) return refused(HCCL_E_PTR, __func__, "rankSize must not be null");
    auto c = communicator(comm, __func__);
    if (!c) return HCCL_E_PARA;
    *rankSize = c->size;
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
    BEGIN(comm);
    if (rank == nullptr) return refused(HCCL_E_PTR, __func__, "rank must not be null");
    auto c = communicator(comm, __func__);
    if (!c) return HCCL_E_PARA;
    *rank = c->rank;
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclGetCommName(HcclComm comm, char* commName) {
    BEGIN(comm);
    if (commName == nullptr) return refused(HCCL_E_PTR, __func__, "commName must not be null");
    auto c = communicator(comm, __func__);
    if (!c) return HCCL_E_PARA;
    std::memset(commName, 0, COMM_NAME_MAX_LENGTH);
    std::memcpy(commName, c->name.data(), std::min<size_t>(c->name.size(), COMM_NAME_MAX_LENGTH - 1));
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
    BEGIN(comm);
    if (asyncError == nullptr) return refused(HCCL_E_PTR, __func__, "asyncError must not be null");
    auto c = communicator(comm, __func__);
    if (!c) return HCCL_E_PARA;
    *asyncError = HcclResult(c->async_error());
    return HCCL_SUCCESS;
}

EMU_API const char* HcclGetErrorString(HcclResult code) {
    static const char* const texts[] = {
        "no error",
        "parameter error",
        "empty pointer",
        "memory error",
        "internal error",
        "not support feature",
        "not found specific resource",
        "resource unavailable",
        "call system interface error",
        "timeout",
        "open file fail",
        "tcp connect fail",
        "roce connect fail",
        "tcp transfer fail",
        "roce transfer fail",
        "call runtime api fail",
        "call driver api fail",
        "call profiling api fail",
        "call cce api fail",
        "call network api fail",
        "operation repeat",
        "error cqe",
        "communicator is suspending",
    };
    return code >= 0 && size_t(code) < std::size(texts) ? texts[code] : "unknow error";
}

EMU_API uint32_t HcclGetCommConfigCapability(void) { return 2; }  // buffer size and determinism

EMU_API HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
    if (int injected = enter(__func__)) return HcclResult(injected);
    if (config != HCCL_DETERMINISTIC) return refused(HCCL_E_PARA, __func__, "config is none it knows");
    if (configValue.value < 0 || configValue.value > 2)
        return refused(HCCL_E_PARA, __func__, "deterministic is 0, 1 or 2");
    deterministic.store(configValue.value);
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
    BEGIN(configValue);
    if (config != HCCL_DETERMINISTIC) return refused(HCCL_E_PARA, __func__, "config is none it knows");
    configValue->value = deterministic.load();
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclCommSuspend(HcclComm comm) {
    BEGIN(comm);
    auto c = communicator(comm, __func__);
    if (!c) return HCCL_E_PARA;
    c->suspended.store(true);
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclCommResume(HcclComm comm) {
    BEGIN(comm);
    auto c = communicator(comm, __func__);
    if (!c) return HCCL_E_PARA;
    c->suspended.store(false);
    return HCCL_SUCCESS;
}

EMU_API HcclResult HcclCommDestroy(HcclComm comm) {
    int fault = 0;
    if (int code = enter_release(__func__, &fault)) return HcclResult(code);
    if (comm == nullptr) return refused(HCCL_E_PTR, __func__, "comm must not be null");
    int code = leave(comm, __func__);
    return HcclResult(code ? code : fault);
}

}  // extern "C"
