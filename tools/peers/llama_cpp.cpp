// SPDX-License-Identifier: Apache-2.0
// What llama.cpp makes of a model file; linked with its shared libraries, whose folder also holds its kernels.
// usage: llama_cpp tokens FOLDER vocabulary.gguf texts.json       one JSON object a line: text, tokens
//        llama_cpp logits FOLDER model.gguf 1,2,3                 one JSON array: logits of the last position
//        llama_cpp speed FOLDER model.gguf STEPS THREADS          tokens a second of decode steps, by the median step
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
    void operator()(llama_context* context) const { llama_free(context); }
};
using Model = std::unique_ptr<llama_model, Free>;
using Context = std::unique_ptr<llama_context, Free>;

Model load(const std::string& file, bool vocabulary_only) {
    llama_model_params parameters = llama_model_default_params();
    parameters.vocab_only = vocabulary_only;
    Model model(llama_model_load_from_file(file.c_str(), parameters));
    if (!model) {
        throw std::runtime_error("llama.cpp does not load " + file);
    }
    return model;
}

/// Nothing of the model's state is rounded to less than a float.
Context make_context(llama_model* model, int threads) {
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = 512;
    parameters.n_threads = parameters.n_threads_batch = threads;
    parameters.type_k = parameters.type_v = GGML_TYPE_F32;
    parameters.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    Context context(llama_init_from_model(model, parameters));
    if (!context) {
        throw std::runtime_error("llama.cpp makes no context");
    }
    return context;
}

void decode(llama_context* context, std::vector<llama_token> tokens) {
    if (llama_decode(context, llama_batch_get_one(tokens.data(), static_cast<std::int32_t>(tokens.size()))) != 0) {
        throw std::runtime_error("llama.cpp does not decode");
    }
}

void print_tokens(const std::string& file, const std::string& texts) {
    const Model model = load(file, true);
    std::ifstream in(texts);
    for (const nlohmann::json& element : nlohmann::json::parse(in)) {
        const auto text = element.get<std::string>();
        std::vector<llama_token> tokens(text.size() + 16);
        const int count = llama_tokenize(llama_model_get_vocab(model.get()), text.data(), static_cast<int>(text.size()),
                                         tokens.data(), static_cast<int>(tokens.size()), false, true);
        tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
        std::cout << nlohmann::json{{"text", text}, {"tokens", tokens}}.dump() << '\n';
    }
}

void print_logits(const std::string& file, const std::string& list) {
    std::vector<llama_token> tokens;
    std::istringstream in(list);
    for (std::string token; std::getline(in, token, ',');) {
        tokens.push_back(std::stoi(token));
    }
    const Model model = load(file, false);
    const Context context = make_context(model.get(), 1);
    decode(context.get(), tokens);
    const float* logits = llama_get_logits_ith(context.get(), -1);
    const int count = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    std::cout << nlohmann::json(std::vector<float>(logits, logits + count)).dump() << '\n';
}

void print_speed(const std::string& file, int steps, int threads) {
    const Model model = load(file, false);
    const Context context = make_context(model.get(), threads);
    std::vector<double> seconds;
    for (int step = 0; step < steps; ++step) {
        const auto begin = std::chrono::steady_clock::now();
        decode(context.get(), {1 + step});
        llama_synchronize(context.get());
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(seconds.begin(), seconds.end());
    std::cout << 1 / seconds.at(seconds.size() / 2) << '\n';
}

} // namespace

int main(int count, char** arguments) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    const std::vector<std::string> words(arguments + 1, arguments + count);
    try {
        if (words.size() > 1) {
            ggml_backend_load_all_from_path(words[1].c_str());
        }
        if (words.size() == 4 && words[0] == "tokens") {
            print_tokens(words[2], words[3]);
        } else if (words.size() == 4 && words[0] == "logits") {
            print_logits(words[2], words[3]);
        } else if (words.size() == 5 && words[0] == "speed") {
            print_speed(words[2], std::stoi(words[3]), std::stoi(words[4]));
        } else {
            throw std::runtime_error("usage: llama_cpp tokens|logits|speed FOLDER FILE …");
        }
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
