// Tokens to experts and back, as the vendor's own programs do it: a device and a thread for each rank, one communicator
// over which experts are spread and one over which each is cut, the first rank has the expert that sees every token.
// Experts here give back what they get, so that a token comes back times (1 + its weight), from both halves of each.
#include <thread>

#include "aclnnop/aclnn_moe_distribute_combine_v2.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v2.h"
#include "harness.h"
#include "hccl/hccl.h"
#include "hccl/hccl_types.h"

namespace {

constexpr uint32_t EP_WORLD_SIZE = 2, TP_WORLD_SIZE = 2, DEV_NUM = EP_WORLD_SIZE * TP_WORLD_SIZE;
constexpr int64_t BS = 4, H = 8, K = 1, A = BS * EP_WORLD_SIZE, LOCAL = 1;

struct Args {
    uint32_t rankId, epRankId, tpRankId;
    HcclComm ep, tp;
    aclrtStream stream;
    aclrtContext context;
};

int Run(aclnnStatus (*function)(void*, uint64_t, aclOpExecutor*, aclrtStream), uint64_t size, aclOpExecutor* executor,
        aclrtStream stream) {
    void* workspace = nullptr;
    if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(function(workspace, size, executor, stream));
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, 60000));
    if (workspace) CHECK(aclrtFree(workspace));
    return 0;
}

void LaunchOneThread(Args& args) {
    CHECK(aclrtSetCurrentContext(args.context));
    char epName[128] = {0}, tpName[128] = {0};
    CHECK(HcclGetCommName(args.ep, epName));
    CHECK(HcclGetCommName(args.tp, tpName));
    std::vector<double> tokens, weights;
    for (int64_t i = 0; i < BS * H; ++i) tokens.push_back(double(args.rankId * 10 + i / H) + 0.25 * double(i % H));
    for (int64_t i = 0; i < BS; ++i) weights.push_back(0.5 * double(i));
    {
        Tensor x({BS, H}, ACL_FLOAT16, tokens), ids({BS, K}, ACL_INT32, std::vector<double>(BS, 0));
        Tensor scales({BS, K}, ACL_FLOAT, weights), expanded({TP_WORLD_SIZE * A, H}, ACL_FLOAT16);
        Tensor dynamic({TP_WORLD_SIZE * A}, ACL_FLOAT), info({TP_WORLD_SIZE * A * 128}, ACL_INT32);
        Tensor numbers({LOCAL}, ACL_INT64), epCounts({TP_WORLD_SIZE * LOCAL * EP_WORLD_SIZE}, ACL_INT32);
        Tensor tpCounts({TP_WORLD_SIZE}, ACL_INT32), expandScales({A}, ACL_FLOAT), out({BS, H}, ACL_FLOAT16);
        uint64_t size = 0;
        aclOpExecutor* executor = nullptr;
        CHECK(aclnnMoeDistributeDispatchV2GetWorkspaceSize(
            x.handle, ids.handle, nullptr, nullptr, scales.handle, epName, EP_WORLD_SIZE, args.epRankId, 1, tpName,
            TP_WORLD_SIZE, args.tpRankId, 0, 1, 1, 0, BS * EP_WORLD_SIZE, 1, "", expanded.handle, dynamic.handle,
            info.handle, numbers.handle, epCounts.handle, tpCounts.handle, expandScales.handle, &size, &executor));
        Run(aclnnMoeDistributeDispatchV2, size, executor, args.stream);
        EXPECT(numbers.values()[0] == double(A * TP_WORLD_SIZE));
        EXPECT(tpCounts.values()[0] == double(A) && tpCounts.values()[1] == double(A));
        CHECK(aclnnMoeDistributeCombineV2GetWorkspaceSize(
            expanded.handle, ids.handle, info.handle, epCounts.handle, scales.handle, tpCounts.handle, nullptr, nullptr,
            nullptr, nullptr, expandScales.handle, nullptr, epName, EP_WORLD_SIZE, args.epRankId, 1, tpName,
            TP_WORLD_SIZE, args.tpRankId, 0, 1, 1, BS * EP_WORLD_SIZE, 0, 0, 1, "", out.handle, &size, &executor));
        Run(aclnnMoeDistributeCombineV2, size, executor, args.stream);
        auto got = out.values();
        for (int64_t i = 0; i < BS * H; ++i)
            EXPECT(got[size_t(i)] == TP_WORLD_SIZE * tokens[size_t(i)] * (1 + weights[size_t(i / H)]));
    }
    CHECK(HcclCommDestroy(args.ep));
    CHECK(HcclCommDestroy(args.tp));
    CHECK(aclrtDestroyStream(args.stream));
    CHECK(aclrtDestroyContext(args.context));
    CHECK(aclrtResetDevice(int32_t(args.rankId)));
}

}  // namespace

int main() {
    CHECK(aclInit(nullptr));
    uint32_t devices = 0;
    CHECK(aclrtGetDeviceCount(&devices));
    EXPECT(devices >= DEV_NUM);
    std::vector<Args> args(DEV_NUM);
    for (uint32_t rank = 0; rank < DEV_NUM; ++rank) {
        CHECK(aclrtSetDevice(int32_t(rank)));
        CHECK(aclrtCreateContext(&args[rank].context, int32_t(rank)));
        CHECK(aclrtCreateStream(&args[rank].stream));
        args[rank].rankId = rank, args[rank].epRankId = rank / TP_WORLD_SIZE,
        args[rank].tpRankId = rank % TP_WORLD_SIZE;
    }
    for (int32_t t = 0; t < int32_t(TP_WORLD_SIZE); ++t) {
        int32_t members[EP_WORLD_SIZE] = {t, t + int32_t(TP_WORLD_SIZE)};
        HcclComm comms[EP_WORLD_SIZE];
        CHECK(HcclCommInitAll(EP_WORLD_SIZE, members, comms));
        for (uint32_t e = 0; e < EP_WORLD_SIZE; ++e) args[size_t(members[e])].ep = comms[e];
    }
    for (int32_t e = 0; e < int32_t(EP_WORLD_SIZE); ++e) {
        int32_t members[TP_WORLD_SIZE] = {e * int32_t(TP_WORLD_SIZE), e * int32_t(TP_WORLD_SIZE) + 1};
        HcclComm comms[TP_WORLD_SIZE];
        CHECK(HcclCommInitAll(TP_WORLD_SIZE, members, comms));
        for (uint32_t t = 0; t < TP_WORLD_SIZE; ++t) args[size_t(members[t])].tp = comms[t];
    }
    std::vector<std::thread> threads;
    for (Args& one : args) threads.emplace_back(LaunchOneThread, std::ref(one));
    for (std::thread& thread : threads) thread.join();
    CHECK(aclFinalize());
    std::printf("= experts\n");
}
