// SPDX-License-Identifier: Apache-2.0
#include "attach/turns.hpp"

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <filesystem>

namespace bench::attach {
namespace {

using plumb::Error;
using plumb::ErrorCode;
using plumb::Result;

// Only the first number is known, which is the same in every release; the rest is as the engine filled it.
struct ModelParams {
    char room[512];
};
struct ContextParams {
    std::uint32_t n_ctx;
    char room[508];
};
struct Batch {
    std::int32_t n_tokens;
    void* rest[6];
};

constexpr int prompt = 16;
constexpr int pairs_of_prompt = 64; // then a fresh one, so that the kv cache stays short
constexpr int warm_pairs = 8;

void* open_library(const std::filesystem::path& folder, const std::string& stem) {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
        const std::string name = entry.path().filename();
        if (name == stem + ".so" || (name.starts_with(stem + ".v") && name.ends_with(".so"))) {
            return dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
        }
    }
    return nullptr;
}

template <class Function>
Function* find(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void quiet(int, const char*, void*) {}

class Engine {
  public:
    static Result<Engine> open(const Subject& subject) {
        void* llama = open_library(subject.libraries, "libllama");
        void* ggml = open_library(subject.libraries, "libggml");
        if (llama == nullptr || ggml == nullptr) {
            return Error{ErrorCode::not_found, subject.libraries + " holds no libllama and libggml that can be opened"};
        }
        if (auto* log_set = find<void(void (*)(int, const char*, void*), void*)>(llama, "llama_log_set")) {
            log_set(quiet, nullptr);
        }
        find<void(const char*)>(ggml, "ggml_backend_load_all_from_path")(subject.libraries.c_str());
        find<void()>(llama, "llama_backend_init")();
        void* model = find<void*(const char*, ModelParams)>(llama, "llama_model_load_from_file")(
            subject.model.c_str(), find<ModelParams()>(llama, "llama_model_default_params")());
        if (model == nullptr) {
            return Error{ErrorCode::not_found, subject.model + " is no model that this engine can load"};
        }
        ContextParams params = find<ContextParams()>(llama, "llama_context_default_params")();
        params.n_ctx = 512;
        Engine made;
        made.context_ = find<void*(void*, ContextParams)>(llama, "llama_init_from_model")(model, params);
        if (auto* set_threads = find<void(void*, std::int32_t, std::int32_t)>(llama, "llama_set_n_threads")) {
            set_threads(made.context_, 1, 1);
        }
        made.batch_ = find<Batch(std::int32_t*, std::int32_t)>(llama, "llama_batch_get_one");
        made.decode_ = find<std::int32_t(void*, Batch)>(llama, "llama_decode");
        made.memory_ = find<void*(void*)>(llama, "llama_get_memory");
        made.clear_ = find<void(void*, bool)>(llama, "llama_memory_clear");
        return made;
    }

    bool start_again() {
        clear_(memory_(context_), true);
        std::int32_t tokens[prompt];
        for (int i = 0; i < prompt; ++i) {
            tokens[i] = 3 + i;
        }
        return decode_(context_, batch_(tokens, prompt)) == 0;
    }
    bool step() {
        std::int32_t token = 5;
        return decode_(context_, batch_(&token, 1)) == 0;
    }

  private:
    void* context_ = nullptr;
    Batch (*batch_)(std::int32_t*, std::int32_t) = nullptr;
    std::int32_t (*decode_)(void*, Batch) = nullptr;
    void* (*memory_)(void*) = nullptr;
    void (*clear_)(void*, bool) = nullptr;
};

} // namespace

Result<Pairs> measure(const Subject& subject) {
    Result<Engine> engine = Engine::open(subject);
    if (!engine.ok()) {
        return engine.error();
    }
    void* doors = dlopen(std::getenv("GGML_BACKEND_PATH"), RTLD_NOW | RTLD_NOLOAD);
    auto* lead = doors != nullptr ? find<int(bool)>(doors, "plumb_bench_lead") : nullptr;
    if (lead == nullptr || lead(true) == 0) {
        return Error{ErrorCode::failed, "the attach library leads no slot of this engine"};
    }
    Pairs result;
    for (int pair = -warm_pairs; pair < subject.pairs; ++pair) {
        if ((pair + warm_pairs) % pairs_of_prompt == 0 && !engine->start_again()) {
            return Error{ErrorCode::failed, "the engine did not take a prompt"};
        }
        double ns[2] = {0, 0}; // off, on
        for (int half = 0; half < 2; ++half) {
            const bool on = (half + pair) % 2 != 0; // off on, on off, …: both meet the same drift
            (void)lead(on);
            const double begin = cpu_ns();
            if (!engine->step()) {
                return Error{ErrorCode::failed, "the engine did not take a token"};
            }
            ns[on ? 1 : 0] = cpu_ns() - begin;
        }
        if (pair >= 0) {
            result.off.push_back(ns[0]);
            result.on.push_back(ns[1]);
        }
    }
    return result;
}

} // namespace bench::attach
