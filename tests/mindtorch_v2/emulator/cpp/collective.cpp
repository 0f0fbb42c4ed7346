// Two ranks, as users write them: a thread and a device each, or a process each ("processes" on the command line). Each
// sums what both have, multiplies weights in the matrix unit's own format, and reduces a product in one function.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_matmul_all_reduce.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "harness.h"
#include "hccl/hccl.h"

namespace {

constexpr uint32_t kRanks = 2;

void work(uint32_t rank, int device, const HcclRootInfo& root) {
    CHECK(aclrtSetDevice(device));
    HcclComm comm = nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::strcpy(config.hcclCommName, "both");
    CHECK(HcclCommInitRootInfoConfig(kRanks, &root, rank, &config, &comm));
    char name[COMM_NAME_MAX_LENGTH];
    CHECK(HcclGetCommName(comm, name));
    EXPECT(std::string(name) == "both");
    {
        Stream stream;
        Tensor mine({3}, ACL_FLOAT, {1.0 + rank, 2.0, 3.0 * rank}), sum({3}, ACL_FLOAT);
        CHECK(HcclAllReduce(mine.memory, sum.memory, 3, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
        stream.wait();
        EXPECT((sum.values() == std::vector<double>{3, 4, 3}));

        aclmdlRI model = nullptr;  // a collective in a model: every run takes its turn anew
        CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
        CHECK(HcclAllReduce(sum.memory, sum.memory, 3, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
        CHECK(aclmdlRICaptureEnd(stream, &model));
        CHECK(aclmdlRIExecuteAsync(model, stream));
        CHECK(HcclAllReduce(mine.memory, mine.memory, 3, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
        CHECK(aclmdlRIExecuteAsync(model, stream));
        stream.wait();
        EXPECT((mine.values() == std::vector<double>{3, 4, 3}));
        EXPECT((sum.values() == std::vector<double>{12, 16, 12}));
        CHECK(aclmdlRIDestroy(model));

        std::vector<double> ones(2 * 16, 1), halves(16 * 16, 0.5);
        Tensor x({2, 16}, ACL_FLOAT16, ones), w({16, 16}, ACL_FLOAT16, halves), y({2, 16}, ACL_FLOAT16);
        uint64_t size = 0;
        aclOpExecutor* executor = nullptr;
        CHECK(aclnnMatmulAllReduceGetWorkspaceSize(x.handle, w.handle, nullptr, name, "sum", 0, 1, y.handle, &size, &executor));
        CHECK(launch(aclnnMatmulAllReduce, size, executor));
        EXPECT(y.values() == std::vector<double>(32, 16));

        int64_t* shape = nullptr;
        uint64_t rank_of_shape = 0;
        int format = 0;
        CHECK(aclnnNpuFormatCastCalculateSizeAndFormat(w.handle, ACL_FORMAT_FRACTAL_NZ, ACL_FLOAT16, &shape, &rank_of_shape, &format));
        EXPECT(rank_of_shape == 4 && shape[0] == 1 && shape[3] == 16 && format == ACL_FORMAT_FRACTAL_NZ);
        delete[] shape;
        CHECK(aclnnTransMatmulWeightGetWorkspaceSize(w.handle, &size, &executor));
        CHECK(launch(aclnnTransMatmulWeight, size, executor));
        CHECK(aclnnMatmulWeightNzGetWorkspaceSize(x.handle, w.handle, y.handle, 0, &size, &executor));
        CHECK(launch(aclnnMatmulWeightNz, size, executor));
        EXPECT(y.values() == std::vector<double>(32, 8));
        CHECK(HcclBarrier(comm, stream));
        stream.wait();
    }
    CHECK(HcclCommDestroy(comm));
}

int threads() {
    CHECK(aclInit(nullptr));
    HcclRootInfo root;
    CHECK(HcclGetRootInfo(&root));
    std::thread other([&] { work(1, 1, root); });
    work(0, 0, root);
    other.join();
    CHECK(aclFinalize());
    return 0;
}

int processes() {
    int pipe_ends[2];
    EXPECT(pipe(pipe_ends) == 0);
    HcclRootInfo root;
    pid_t child = fork();
    CHECK(aclInit(nullptr));
    if (child != 0) {
        CHECK(aclrtSetDevice(0));
        CHECK(HcclGetRootInfo(&root));
        EXPECT(write(pipe_ends[1], &root, sizeof root) == sizeof root);
    } else {
        EXPECT(read(pipe_ends[0], &root, sizeof root) == sizeof root);
    }
    work(child == 0 ? 1 : 0, 0, root);
    CHECK(aclFinalize());
    if (child == 0) _exit(0);
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

}  // namespace

int main(int count, char** arguments) {
    int code = count > 1 && std::string(arguments[1]) == "processes" ? processes() : threads();
    if (code == 0) std::printf("= collective\n");
    return code;
}
