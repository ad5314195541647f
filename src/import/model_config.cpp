// SPDX-License-Identifier: Apache-2.0
#include "import/model_config.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace plumb::imported {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20; // real ones have some thousand
constexpr std::uint64_t most_layers = 65534;

/// Without an end to recursion: the text of a config is no deeper.
constexpr int most_levels = 64;

bool is_deeper(std::string_view text) {
    int level = 0;
    for (const char c : text) {
        level += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        if (level > most_levels) {
            return true;
        }
    }
    return false;
}

std::optional<std::uint64_t> layers_in(const nlohmann::json& config) {
    for (const char* key : {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}) {
        if (const auto found = config.find(key); found != config.end() && found->is_number_unsigned()) {
            return found->get<std::uint64_t>();
        }
    }
    return std::nullopt;
}

} // namespace

Result<std::uint32_t> layers_of_config(const std::string& path) {
    const auto refuse = [&path](const std::string& why) {
        return Error{ErrorCode::corrupt,
                     path + " " + why + ": --config takes a model's config.json, --layers the number itself"};
    };
    std::ifstream file(path, std::ios::binary);
    std::string text(most_bytes + 1, '\0');
    if (!file || (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && file.bad())) {
        return refuse("cannot be read");
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes || is_deeper(text)) {
        return refuse("is too large for a config");
    }
    const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
    if (!config.is_object()) {
        return refuse("is no JSON object");
    }
    std::optional<std::uint64_t> layers = layers_in(config);
    for (const char* part : {"text_config", "llm_config", "language_config"}) {
        if (const auto found = config.find(part); !layers && found != config.end() && found->is_object()) {
            layers = layers_in(*found);
        }
    }
    if (!layers || *layers == 0 || *layers > most_layers) {
        return refuse("does not say how many layers the model has (num_hidden_layers)");
    }
    return static_cast<std::uint32_t>(*layers);
}

} // namespace plumb::imported
