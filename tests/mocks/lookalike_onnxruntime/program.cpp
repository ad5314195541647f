// SPDX-License-Identifier: Apache-2.0
// A program over onnxruntime's functions, which knows nothing of us. Prints what its runs gave, and how often its options were changed by
// others.
//
// usage: program decode STEPS [options|entries|adapter|own] | threads COUNT STEPS | binding STEPS | async STEPS | pixels STEPS | sessions STEPS |
//                session_profile STEPS | fails STEPS | terminate | fork STEPS | kill STEPS | loaded LIBRARY STEPS | nulls | none
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "lookalike_onnxruntime/places.hpp"

namespace {

enum class At : std::size_t {
#define LOOKALIKE_ORT_AT(name, place, result, parameters) name = place,
    LOOKALIKE_ORT(LOOKALIKE_ORT_AT)
#undef LOOKALIKE_ORT_AT
};

void* const* table = nullptr;

struct Calls {
#define LOOKALIKE_ORT_CALL(name, place, result, parameters) \
    result(*name) parameters = reinterpret_cast<result(*) parameters>(table[place]);
    LOOKALIKE_ORT(LOOKALIKE_ORT_CALL)
#undef LOOKALIKE_ORT_CALL
};
const Calls* calls = nullptr;

void must(Refusal refusal) {
    if (refusal != nullptr) {
        std::printf("refused: %s\n", calls->GetErrorMessage(refusal));
        std::exit(3);
    }
}

OrtValue* tensor(std::vector<std::int64_t> sizes, double value) {
    OrtValue* made = nullptr;
    must(calls->CreateTensorAsOrtValue(nullptr, sizes.data(), sizes.size(), 7, &made));
    void* data = nullptr;
    must(calls->GetTensorMutableData(made, &data));
    *static_cast<double*>(data) = value;
    return made;
}

OrtSession* session(const OrtSessionOptions* options = nullptr) {
    OrtEnv* env = nullptr;
    must(calls->CreateEnv(2, "test", &env));
    OrtSession* made = nullptr;
    must(calls->CreateSession(env, "model.onnx", options, &made));
    return made;
}

/// One run: `length` positions are new, `total` are known then.
Refusal run(OrtSession* its, const OrtRunOptions* options, std::int64_t length, std::int64_t total, double& result,
            const char* input = "input_ids") {
    const char* const names[] = {input, "attention_mask"};
    OrtValue* const inputs[] = {tensor({1, length}, static_cast<double>(length)),
                                tensor({1, total}, static_cast<double>(total))};
    const char* const output_names[] = {"logits"};
    OrtValue* output = nullptr;
    Refusal refusal = calls->Run(its, options, names, inputs, 2, output_names, 1, &output);
    if (refusal == nullptr) {
        void* data = nullptr;
        must(calls->GetTensorMutableData(output, &data));
        result += *static_cast<double*>(data);
        calls->ReleaseValue(output);
    }
    calls->ReleaseValue(inputs[0]);
    calls->ReleaseValue(inputs[1]);
    return refusal;
}

/// A prompt of seven tokens and so many of one.
double decode(OrtSession* its, const OrtRunOptions* options, int steps) {
    double sum = 0;
    for (int i = 0; i <= steps; ++i) {
        must(run(its, options, i == 0 ? 7 : 1, 7 + i, sum));
    }
    return sum;
}

OrtRunOptions* new_options() {
    OrtRunOptions* made = nullptr;
    must(calls->CreateRunOptions(&made));
    return made;
}

void decode_with(const std::string& what, int steps) {
    OrtRunOptions* options = what.empty() ? nullptr : new_options();
    int changes = 0;
    if (what == "entries") {
        must(calls->RunOptionsSetRunTag(options, "a tag"));
        must(calls->RunOptionsSetRunLogVerbosityLevel(options, 4));
        must(calls->AddRunConfigEntry(options, "gpu_graph_id", "12"));
        changes = 3;
    } else if (what == "adapter") {
        must(calls->RunOptionsAddActiveLoraAdapter(options, nullptr));
        changes = 1;
    } else if (what == "own") {
        must(calls->RunOptionsEnableProfiling(options, "own_profile"));
        changes = 1;
    }
    std::printf("sum %.1f\n", decode(session(), options, steps));
    if (options != nullptr) {
        std::printf("changed by others: %d\n", lookalike_ort_changes(options) - changes);
        calls->ReleaseRunOptions(options);
    }
}

void in_threads(int count, int steps) {
    OrtSession* const shared = session();
    OrtRunOptions* const options = new_options();
    std::vector<double> sums(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    std::barrier together(count);
    for (double& sum : sums) {
        threads.emplace_back([&sum, &together, shared, options, steps] {
            together.arrive_and_wait();
            sum = decode(shared, options, steps);
            together.arrive_and_wait();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const double sum : sums) {
        std::printf("sum %.1f\n", sum);
    }
    std::printf("changed by others: %d\n", lookalike_ort_changes(options));
}

void asynchronously(int steps) {
    std::mutex mutex;
    std::condition_variable changed;
    int done = 0;
    struct Wait {
        std::mutex& mutex;
        std::condition_variable& changed;
        int& done;
    } wait{mutex, changed, done};
    OrtSession* const its = session();
    const char* const names[] = {"input_ids"};
    OrtValue* const inputs[] = {tensor({1, 1}, 1)};
    const char* const output_names[] = {"logits"};
    for (int i = 0; i < steps; ++i) {
        OrtValue* output = nullptr;
        must(calls->RunAsync(
            its, nullptr, names, inputs, 1, output_names, 1, &output,
            [](void* user, OrtValue**, std::size_t, Refusal) {
                auto& told = *static_cast<Wait*>(user);
                const std::lock_guard lock(told.mutex);
                ++told.done;
                told.changed.notify_one();
            },
            &wait));
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done == i + 1; });
    }
    std::printf("done %d\n", done);
}

void terminate_while_it_runs() {
    OrtSession* const its = session();
    OrtRunOptions* const options = new_options();
    std::atomic<bool> asked{false};
    std::thread other([&] {
        while (!asked.load()) {
        }
        must(calls->RunOptionsSetTerminate(options));
    });
    double sum = 0;
    Refusal refusal = nullptr;
    int runs = 0;
    for (; refusal == nullptr; ++runs) {
        if (runs == 20) {
            asked.store(true);
        }
        refusal = run(its, options, 1, 8, sum);
    }
    std::printf("ended: %s\n", calls->GetErrorMessage(refusal));
    calls->ReleaseStatus(refusal);
    other.join();
    must(calls->RunOptionsUnsetTerminate(options));
    must(run(its, options, 1, 8, sum));
    std::printf("goes on\n");
}

void fork_and_run(int steps) {
    OrtSession* const its = session();
    std::printf("parent %.1f\n", decode(its, nullptr, steps));
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        std::printf("child %.1f\n", decode(its, nullptr, steps));
        std::fflush(stdout);
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child ended with %d\nparent %.1f\n", WEXITSTATUS(status), decode(its, nullptr, steps));
}

void fail_and_go_on(int steps) {
    OrtEnv* env = nullptr;
    OrtSession* broken = nullptr;
    must(calls->CreateEnv(2, "test", &env));
    Refusal refusal = calls->CreateSession(env, "broken", nullptr, &broken);
    std::printf("%s\n", calls->GetErrorMessage(refusal));
    calls->ReleaseStatus(refusal);
    OrtSession* const its = session();
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
        refusal = run(its, nullptr, 1, 8, sum, i % 2 == 0 ? "input_ids" : "other");
        if (refusal != nullptr) {
            calls->ReleaseStatus(refusal);
        }
    }
    std::printf("sum %.1f\n", sum);
}

/// Runs that onnxruntime refuses before it looks at anything.
void run_without_inputs() {
    OrtSession* const its = session();
    const char* const names[] = {"input_ids", nullptr};
    OrtValue* const inputs[] = {nullptr, tensor({1, 1}, 1)};
    for (int i = 0; i < 2; ++i) {
        const char* const output_names[] = {"logits"};
        OrtValue* output = nullptr;
        Refusal refusal = calls->Run(its, nullptr, names + i, inputs + i, 1, output_names, 1, &output);
        std::printf("%s\n", refusal != nullptr ? calls->GetErrorMessage(refusal) : "it ran");
        calls->ReleaseStatus(refusal);
    }
}

bool prepare(const LookalikeBase* base) {
    table = base != nullptr ? base->get_api(LOOKALIKE_ORT_MINOR) : nullptr;
    calls = table != nullptr ? new Calls : nullptr;
    std::printf("%s\n", base != nullptr ? base->version() : "no base");
    return calls != nullptr;
}

} // namespace

int main(int count, char** words) {
    const std::string mode = count > 1 ? words[1] : "";
    const auto number = [&](int at) {
        return count > at ? std::atoi(words[at]) : 0;
    };
    if (mode == "loaded") {
        void* const library = dlopen(words[2], RTLD_NOW);
        const auto get = reinterpret_cast<const LookalikeBase* (*)()>(
            library != nullptr ? dlsym(library, "OrtGetApiBase") : nullptr);
        if (get == nullptr || !prepare(get())) {
            return 2;
        }
        std::printf("sum %.1f\n", decode(session(), nullptr, number(3)));
        return 0;
    }
    if (!prepare(OrtGetApiBase())) {
        return 2;
    }
    if (mode == "decode") {
        decode_with(count > 3 ? words[3] : "", number(2));
    } else if (mode == "threads") {
        in_threads(number(2), number(3));
    } else if (mode == "binding") {
        OrtSession* const its = session();
        for (int i = 0; i < number(2); ++i) {
            must(calls->RunWithBinding(its, nullptr, nullptr));
        }
    } else if (mode == "async") {
        asynchronously(number(2));
    } else if (mode == "pixels") {
        OrtSession* const its = session();
        double sum = 0;
        for (int i = 0; i < number(2); ++i) {
            must(run(its, nullptr, 3, 3, sum, "pixels"));
        }
        std::printf("sum %.1f\n", sum);
    } else if (mode == "sessions") { // each may lie where the one before lay
        double sum = 0;
        for (int i = 0; i < number(2); ++i) {
            OrtSession* const its = session();
            sum += decode(its, nullptr, 2);
            calls->ReleaseSession(its);
        }
        std::printf("sum %.1f\n", sum);
    } else if (mode == "session_profile") {
        OrtSessionOptions* options = nullptr;
        must(calls->CreateSessionOptions(&options));
        must(calls->EnableProfiling(options, "own_profile"));
        std::printf("sum %.1f\n", decode(session(options), nullptr, number(2)));
    } else if (mode == "fails") {
        fail_and_go_on(number(2));
    } else if (mode == "nulls") {
        run_without_inputs();
    } else if (mode == "terminate") {
        terminate_while_it_runs();
    } else if (mode == "fork") {
        fork_and_run(number(2));
    } else if (mode == "kill") {
        std::printf("sum %.1f\n", decode(session(), nullptr, number(2)));
        std::fflush(stdout);
        kill(getpid(), SIGKILL);
    }
    return 3;
}
