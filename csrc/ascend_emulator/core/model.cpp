// Models: what a capture has kept, run again.
//
// Each captured stream but the first has a stream of the model's own; the first one's tasks go to the stream of the run.
// Records and waits are made anew for every run, so that branches without an event between them stay unordered.
#include <cstdio>

#include "capture.h"
#include "codes.h"
#include "events.h"
#include "handles.h"
#include "state.h"

namespace emu {

namespace {

// One run of a model. It does not hold the model: a model waits for its helpers when it goes, and they hold this.
struct Execution {
    std::vector<std::shared_ptr<Mark>> marks;
    std::shared_ptr<Mark> before;  // the end of the run before this one
    std::shared_ptr<Mark> end = std::make_shared<Mark>();
    std::mutex lock;
    int code = 0;  // the first failure of a helper
    std::string text;

    void fail(const std::string& name, const DeviceFault& fault) {
        std::lock_guard<std::mutex> guard(lock);
        if (code != 0) return;
        code = fault.code;
        text = name + ": " + fault.text;
    }
    void finish_run() {
        end->pass();
        std::lock_guard<std::mutex> guard(lock);
        if (code != 0) throw DeviceFault{code, text};
    }
};

Task task_of(const Node& node, const std::shared_ptr<Execution>& run) {
    std::shared_ptr<const Task> now = node.slot->now();
    Task task;
    task.name = now->name;
    task.ranges = now->ranges;
    if (now->again) task.run = now->again();
    else task.run = [slot = node.slot] { slot->now()->run(); };  // as it is when the stream comes to it
    if (node.branch == 0) return task;
    task.run = [name = task.name, body = std::move(task.run), run] {
        try {
            body();
        } catch (const DeviceFault& fault) { run->fail(name, fault); }
    };
    return task;
}

void push_node(Stream& to, const Node& node, const std::shared_ptr<Execution>& run) {
    if (node.kind == Node::task) {
        to.push(task_of(node, run));
        return;
    }
    std::shared_ptr<Mark> mark = run->marks[node.mark];
    Task task;
    if (node.kind == Node::record) {
        task.name = "aclrtRecordEvent";
        task.run = [mark] { mark->pass(); };
        to.push(std::move(task), [mark] { mark->pass(); });
        return;
    }
    task.name = "aclrtStreamWaitEvent";
    Stream* waiting = &to;  // a stream outlives its tasks
    task.run = [mark, waiting] { mark->wait(waiting->abandoned); };
    to.push(std::move(task));
}

int find_model(void* handle, const char* by, std::shared_ptr<Model>* model) {
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: modelRI is NULL", by);
    if (int code = require_context()) return code;
    *model = handles().find<Model>(Kind::model, handle, by);
    if (*model == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    std::lock_guard<std::mutex> guard((*model)->lock);
    if ((*model)->capturing) return reject(ACL_ERROR_RT_MODEL_CAPTURED, "%s: the model is being captured", by);
    if ((*model)->context.get() != current_context()) {
        return reject(ACL_ERROR_RT_STREAM_CONTEXT, "%s: the model was captured in another context", by);
    }
    return 0;
}

void start(Model& model, Stream& to, int fault, const char* by) {
    std::lock_guard<std::mutex> guard(model.lock);  // two runs at once do not mix
    while (model.helpers.size() + 1 < model.branches) model.helpers.push_back(add_hidden_stream(model.context));
    auto run = std::make_shared<Execution>();
    run->before = std::move(model.ended);
    model.ended = run->end;
    for (size_t i = 0; i < model.marks; i++) run->marks.push_back(std::make_shared<Mark>());
    Task task;
    task.name = by;
    Stream* waiting = &to;
    task.run = [run, waiting, fault] {
        if (run->before != nullptr) run->before->wait(waiting->abandoned);
        run->before = nullptr;
        if (fault != 0) throw DeviceFault{fault, "injected fault"};
    };
    to.push(std::move(task));
    for (const Node& node : model.nodes) {
        push_node(node.branch == 0 ? to : *model.helpers[node.branch - 1], node, run);
    }
    task = Task();
    task.name = by;
    task.run = [run] { run->finish_run(); };
    to.push(std::move(task), [run] { run->end->pass(); });
}

}  // namespace

Model::~Model() {
    if (runner != nullptr) helpers.push_back(runner);
    for (const auto& helper : helpers) drop_hidden_stream(helper);
}

int execute_model(void* handle, void* stream) {
    const char* by = "aclmdlRIExecuteAsync";
    std::shared_ptr<Model> model;
    std::shared_ptr<Stream> where;
    if (int code = find_stream(stream, by, &where)) return code;
    if (int code = find_model(handle, by, &model)) return code;
    if (int code = refuse_captured(*where, by)) return code;
    if (int failed = where->context->failed.load()) {
        return reject(failed, "%s: the context stopped after a failure (STOP_ON_FAILURE)", by);
    }
    start(*model, *where, take_async_fault(by), by);
    return 0;
}

int execute_model_now(void* handle, int timeout) {
    const char* by = "aclmdlRIExecute";
    if (timeout < -1 || timeout == 0) {
        return reject(ACL_ERROR_INVALID_PARAM, "%s: timeout is -1 or more than 0, got %d", by, timeout);
    }
    std::shared_ptr<Model> model;
    if (int code = find_model(handle, by, &model)) return code;
    if (int code = refuse_unsafe(by)) return code;
    std::shared_ptr<Stream> runner;
    {
        std::lock_guard<std::mutex> guard(model->lock);
        if (model->runner == nullptr) model->runner = add_hidden_stream(model->context);
        runner = model->runner;
    }
    start(*model, *runner, take_async_fault(by), by);
    uint64_t number = runner->last();
    if (int code = runner->wait_for(number, timeout, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)) {
        return reject(code, "%s: the model %s", by,
                      code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ? "did not finish in time" : "was abandoned");
    }
    return runner->take_failure(number);
}

int destroy_model(void* handle) {
    const char* by = "aclmdlRIDestroy";
    if (handle == nullptr) return reject(ACL_ERROR_INVALID_PARAM, "%s: modelRI is NULL", by);
    std::shared_ptr<Model> model;
    if (handles().is(Kind::model, handle)) model = handles().find<Model>(Kind::model, handle, by);
    if (model != nullptr) {
        std::lock_guard<std::mutex> guard(model->lock);
        if (model->capturing) return reject(ACL_ERROR_RT_MODEL_CAPTURED, "%s: the model is being captured", by);
        if (model->ended != nullptr && !model->ended->is_passed()) {
            violation("busy-model", "%s: the model is still running", by);
            return reject(ACL_ERROR_RT_PARAM_INVALID, "%s: the model is still running; synchronise first", by);
        }
    }
    if (handles().destroy<Model>(Kind::model, handle, by) == nullptr) return finish(ACL_ERROR_RT_INVALID_HANDLE);
    for (void* group : model->groups) handles().destroy<void>(Kind::task_group, group, by);
    return 0;
}

int print_model(void* handle) {
    const char* by = "aclmdlRIDebugPrint";
    std::shared_ptr<Model> model;
    if (int code = find_model(handle, by, &model)) return code;
    std::printf("model: %zu streams, %zu nodes\n", model->branches, model->nodes.size());
    for (size_t i = 0; i < model->nodes.size(); i++) {
        const Node& node = model->nodes[i];
        std::printf("  %zu: stream %zu: ", i, node.branch);
        if (node.kind == Node::task) std::printf("%s\n", node.slot->now()->name.c_str());
        else std::printf("%s %zu\n", node.kind == Node::record ? "record" : "wait for", node.mark);
    }
    std::fflush(stdout);
    return 0;
}

}  // namespace emu
