// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/config.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

#include "decoder/gguf/text.hpp"

namespace plumb::decoder {
namespace {

constexpr std::uint64_t largest_dimension = 1U << 20;

/// Reads the keys "<architecture>.<key>"; remembers the first error.
class Keys {
  public:
    Keys(const gguf::File& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

    std::size_t whole(std::string_view key, std::optional<std::uint64_t> fallback, std::uint64_t largest) {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        if (!value && fallback)
            return static_cast<std::size_t>(*fallback);
        const auto number = value ? value->as_unsigned() : std::nullopt;
        if (!number || *number == 0 || *number > largest) {
            fail(key, value, "a whole number from 1 to " + std::to_string(largest));
            return 1;
        }
        return static_cast<std::size_t>(*number);
    }

    double positive(std::string_view key, std::optional<double> fallback) {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        if (!value && fallback)
            return *fallback;
        const auto number = value ? value->as_number() : std::nullopt;
        if (!number || *number <= 0 || *number > 1e12) {
            fail(key, value, "a positive number");
            return 1;
        }
        return *number;
    }

    [[nodiscard]] std::string_view text(std::string_view key) const {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        return value ? value->as_string().value_or("") : "";
    }

    [[nodiscard]] Error error(ErrorCode code, const std::string& what) const {
        return {code, file_.path() + ": " + what};
    }
    [[nodiscard]] const std::optional<Error>& first_error() const { return error_; }

  private:
    void fail(std::string_view key, const gguf::Value* value, const std::string& wanted) {
        if (error_)
            return;
        error_ = error(ErrorCode::corrupt, "metadata '" + prefix_ + std::string(key) + "' is " +
                                               (value ? "not " : "missing, and must be ") + wanted +
                                               "; convert the model again");
    }

    const gguf::File& file_;
    std::string prefix_;
    std::optional<Error> error_;
};

std::string model_name(const gguf::File& file) {
    const gguf::Value* name = file.contents().find("general.name");
    if (name && name->as_string() && !name->as_string()->empty())
        return gguf::printable(*name->as_string());
    return gguf::printable(std::filesystem::path(file.path()).stem().string());
}

std::optional<Error> unsupported_feature(const gguf::File& file, const Keys& keys, const std::string& architecture) {
    if (file.contents().find(architecture + ".expert_count"))
        return keys.error(
            ErrorCode::unsupported,
            "is a mixture of experts, and only dense models are decoded; use a dense llama or qwen2 model");
    const std::string_view scaling = keys.text("rope.scaling.type");
    if (!scaling.empty() && scaling != "none" && scaling != "linear")
        return keys.error(ErrorCode::unsupported, "uses rope scaling '" + gguf::printable(scaling) +
                                                      "', and only 'linear' is decoded; use a model without it");
    return std::nullopt;
}

} // namespace

Result<ModelConfig> read_config(const gguf::File& file) {
    const gguf::Value* value = file.contents().find("general.architecture");
    const auto architecture = value ? value->as_string() : std::nullopt;
    if (!architecture)
        return Error{ErrorCode::corrupt,
                     file.path() + ": the metadata 'general.architecture' is missing; convert the model again"};
    ModelConfig config;
    config.architecture = *architecture;
    Keys keys(file, config.architecture);
    if (config.architecture != "llama" && config.architecture != "qwen2")
        return keys.error(ErrorCode::unsupported, "has the architecture '" + gguf::printable(*architecture) +
                                                      "', and only llama and qwen2 are decoded; use a model of these");
    if (const auto error = unsupported_feature(file, keys, config.architecture))
        return *error;
    config.name = model_name(file);
    config.layers = keys.whole("block_count", {}, 4096);
    config.hidden = keys.whole("embedding_length", {}, largest_dimension);
    config.feed_forward = keys.whole("feed_forward_length", {}, largest_dimension);
    config.heads = keys.whole("attention.head_count", {}, 4096);
    config.kv_heads = keys.whole("attention.head_count_kv", config.heads, 4096);
    const std::size_t usual = std::max<std::size_t>(1, config.hidden / config.heads);
    config.head_size = keys.whole("attention.key_length", usual, 65536);
    const std::size_t value_size = keys.whole("attention.value_length", config.head_size, 65536);
    config.context = keys.whole("context_length", {}, std::uint64_t{1} << 40);
    config.rope_size = keys.whole("rope.dimension_count", config.head_size, 65536);
    config.rope_base = keys.positive("rope.freq_base", 10000);
    config.rope_scale = keys.text("rope.scaling.type") == "linear" ? keys.positive("rope.scaling.factor", 1) : 1;
    config.epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon", {}));
    config.rope_halves = config.architecture == "qwen2";
    if (keys.first_error())
        return *keys.first_error();
    if (config.heads % config.kv_heads != 0)
        return keys.error(ErrorCode::corrupt, "has " + std::to_string(config.heads) + " heads for " +
                                                  std::to_string(config.kv_heads) +
                                                  " key heads, which does not divide; convert the model again");
    if (value_size != config.head_size)
        return keys.error(ErrorCode::unsupported, "has keys and values of different sizes; use a llama or qwen2 model");
    if (config.rope_size > config.head_size || config.rope_size % 2 != 0)
        return keys.error(ErrorCode::corrupt, "turns " + std::to_string(config.rope_size) + " of " +
                                                  std::to_string(config.head_size) +
                                                  " values of a head, which cannot be; convert the model again");
    return config;
}

} // namespace plumb::decoder
