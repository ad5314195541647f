// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/api.hpp"

#include <algorithm>
#include <optional>

namespace plumb::attach::ggml {
namespace {

template <class Function>
Function find_function(const Pinned& library, const char* symbol) {
    return reinterpret_cast<Function>(find_symbol(library, symbol));
}

struct InitParameters { // ggml_init_params, passed by value
    std::size_t size;
    void* memory;
    bool no_alloc;
};

/// Makes one product of two tensors and looks where its operands are noted. Nothing is computed.
std::optional<std::size_t> find_sources(const Pinned& library) {
    const auto init = find_function<ggml_context* (*)(InitParameters)>(library, "ggml_init");
    const auto make =
        find_function<Tensor* (*)(ggml_context*, int, std::int64_t, std::int64_t)>(library, "ggml_new_tensor_2d");
    const auto multiply = find_function<Tensor* (*)(ggml_context*, Tensor*, Tensor*)>(library, "ggml_mul_mat");
    const auto overhead = find_function<std::size_t (*)()>(library, "ggml_tensor_overhead");
    const auto release = find_function<void (*)(ggml_context*)>(library, "ggml_free");
    if (init == nullptr || make == nullptr || multiply == nullptr || overhead == nullptr || release == nullptr) {
        return std::nullopt;
    }
    ggml_context* context = init({std::size_t{1} << 16, nullptr, true});
    if (context == nullptr) {
        return std::nullopt;
    }
    constexpr int f32 = 0;
    Tensor* a = make(context, f32, 32, 4);
    Tensor* b = make(context, f32, 32, 2);
    Tensor* product = multiply(context, a, b);
    std::optional<std::size_t> found;
    for (std::size_t at = 0; at + 4 * sizeof(void*) <= overhead(); at += sizeof(void*)) {
        const auto* operands = reinterpret_cast<Tensor* const*>(reinterpret_cast<const char*>(product) + at);
        if (operands[0] == a && operands[1] == b && operands[2] == nullptr && operands[3] == nullptr) {
            found = at;
            break;
        }
    }
    release(context);
    return found;
}

} // namespace

Result<GgmlApi> GgmlApi::find(const Pinned& library) {
    GgmlApi api;
#define PLUMB_GGML_FIND(result, name, parameters)                                                     \
    api.name = find_function<result(*) parameters>(library, "ggml_" #name);                           \
    if (api.name == nullptr) {                                                                        \
        return Error{ErrorCode::unsupported, "the ggml of this process has no function ggml_" #name}; \
    }
    PLUMB_GGML_FUNCTIONS(PLUMB_GGML_FIND)
#undef PLUMB_GGML_FIND
    const std::optional<std::size_t> sources_at = find_sources(library);
    if (!sources_at) {
        return Error{ErrorCode::unsupported,
                     "the operands of a tensor of this process's ggml were not found where older "
                     "and newer releases have them"};
    }
    api.sources_at = *sources_at;
    return api;
}

bool takes_batch(const Pinned& library) { return find_symbol(library, "ggml_backend_load_all") != nullptr; }

std::string version_of(const Pinned& library) {
    std::string text = "ggml";
    const auto version = find_function<const char* (*)()>(library, "ggml_version");
    const auto commit = find_function<const char* (*)()>(library, "ggml_commit");
    if (version != nullptr) {
        text += std::string(" ") + version();
        if (commit != nullptr) {
            text += std::string(" (") + commit() + ")";
        }
    }
    return text;
}

Llama Llama::find(const Pinned& library) {
    Llama found;
    found.get_model = find_function<decltype(found.get_model)>(library, "llama_get_model");
    found.model_desc = find_function<decltype(found.model_desc)>(library, "llama_model_desc");
    found.model_meta_val_str = find_function<decltype(found.model_meta_val_str)>(library, "llama_model_meta_val_str");
    found.model_n_layer = find_function<decltype(found.model_n_layer)>(library, "llama_model_n_layer");
    found.n_threads = find_function<decltype(found.n_threads)>(library, "llama_n_threads");
    found.get_memory = find_function<decltype(found.get_memory)>(library, "llama_get_memory");
    found.memory_seq_pos_max = find_function<decltype(found.memory_seq_pos_max)>(library, "llama_memory_seq_pos_max");
    return found;
}

std::string Llama::model(const llama_context* context) const {
    char text[256] = "";
    if (get_model == nullptr || model_desc == nullptr || model_desc(get_model(context), text, sizeof text) <= 0) {
        return {};
    }
    const std::string described = text; // "qwen2 1B Q8_0"
    if (model_meta_val_str == nullptr ||
        model_meta_val_str(get_model(context), "general.name", text, sizeof text) <= 0) {
        return described;
    }
    std::string type = described.substr(described.rfind(' ') + 1);
    std::transform(type.begin(), type.end(), type.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
    });
    return std::string(text) + ' ' + type;
}

std::int32_t Llama::layers(const llama_context* context) const {
    return get_model != nullptr && model_n_layer != nullptr ? model_n_layer(get_model(context)) : 0;
}

std::int32_t Llama::threads(llama_context* context) const { return n_threads != nullptr ? n_threads(context) : 0; }

std::uint64_t Llama::cached(llama_context* context, std::int32_t sequence) const {
    void* const memory = get_memory != nullptr && memory_seq_pos_max != nullptr ? get_memory(context) : nullptr;
    // -1: nothing is cached
    return memory != nullptr ? static_cast<std::uint64_t>(memory_seq_pos_max(memory, sequence) + 1) : 0;
}

} // namespace plumb::attach::ggml
