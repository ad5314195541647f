// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/config.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>

#include "decoder/gguf/text.hpp"

namespace plumb::decoder {
namespace {

constexpr std::uint64_t largest_dimension = 1U << 20;
constexpr std::uint64_t largest_experts = 4096;

/// What the name of an architecture stands for; all else is in the file.
struct Family {
    enum class Mixture : std::uint8_t { never, possible, always };
    std::string_view name;
    bool rope_halves;
    bool qk_norm;
    bool scaled_embedding; // by the root of its width
    Activation activation;
    Mixture mixture;
};

constexpr std::array<Family, 5> families{{
    {"llama", false, false, false, Activation::silu, Family::Mixture::possible},
    {"qwen2", true, false, false, Activation::silu, Family::Mixture::never},
    {"qwen3", true, true, false, Activation::silu, Family::Mixture::never},
    {"qwen3moe", true, true, false, Activation::silu, Family::Mixture::always},
    {"gemma", true, false, true, Activation::gelu, Family::Mixture::never},
}};

/// Keys that change what a model computes, in a way that is not done here: better refused than wrong.
constexpr std::array<std::string_view, 13> foreign_keys{
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "attention.scale",
    "attention.temperature_scale",
    "attention.sliding_window_pattern",
    "attention.clamp_kqv",
    "attention.kv_lora_rank",
    "residual_scale",
    "logit_scale",
    "embedding_scale",
    "expert_shared_count",
    "expert_group_count",
    "rope.dimension_sections",
};

constexpr std::uint64_t softmax_gating = 1;

/// Reads the keys "<architecture>.<key>"; remembers the first error.
class Keys {
  public:
    Keys(const gguf::File& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

    std::size_t whole(std::string_view key, std::optional<std::uint64_t> fallback, std::uint64_t largest) {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        if (!value && fallback) {
            return static_cast<std::size_t>(*fallback);
        }
        const auto number = value ? value->as_unsigned() : std::nullopt;
        if (!number || *number == 0 || *number > largest) {
            fail(key, value, "a whole number from 1 to " + std::to_string(largest));
            return 1;
        }
        return static_cast<std::size_t>(*number);
    }

    /// 0 where the key is not there.
    std::size_t count(std::string_view key, std::uint64_t largest) {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        const auto number = value ? value->as_unsigned() : std::optional<std::uint64_t>(0);
        if (!number || *number > largest) {
            fail(key, value, "a whole number up to " + std::to_string(largest));
            return 0;
        }
        return static_cast<std::size_t>(*number);
    }

    double positive(std::string_view key, std::optional<double> fallback) {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        if (!value && fallback) {
            return *fallback;
        }
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

    [[nodiscard]] bool has(std::string_view key) const {
        return file_.contents().find(prefix_ + std::string(key)) != nullptr;
    }
    [[nodiscard]] std::optional<bool> truth(std::string_view key) const {
        const gguf::Value* value = file_.contents().find(prefix_ + std::string(key));
        return value ? value->as_bool() : std::nullopt;
    }

    [[nodiscard]] Error error(ErrorCode code, const std::string& what) const {
        return {code, file_.path() + ": " + what};
    }
    [[nodiscard]] const std::optional<Error>& first_error() const { return error_; }

  private:
    void fail(std::string_view key, const gguf::Value* value, const std::string& wanted) {
        if (error_) {
            return;
        }
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
    if (name && name->as_string() && !name->as_string()->empty()) {
        return gguf::printable(*name->as_string());
    }
    return gguf::printable(std::filesystem::path(file.path()).stem().string());
}

const Family* find_family(std::string_view name) {
    for (const Family& family : families) {
        if (family.name == name) {
            return &family;
        }
    }
    return nullptr;
}

std::string family_names() {
    std::string out;
    for (std::size_t i = 0; i < families.size(); ++i) {
        out += std::string(i == 0 ? "" : i + 1 == families.size() ? " and " : ", ") + std::string(families[i].name);
    }
    return out;
}

std::optional<Error> unsupported_feature(const Keys& keys, const Family& family) {
    for (const std::string_view key : foreign_keys) {
        if (keys.has(key)) {
            return keys.error(ErrorCode::unsupported,
                              "asks for '" + std::string(key) + "', which is not decoded here; use a model without it");
        }
    }
    if (family.mixture == Family::Mixture::never && keys.has("expert_count")) {
        return keys.error(ErrorCode::unsupported, "is a mixture of experts of the architecture '" +
                                                      std::string(family.name) +
                                                      "', and only those of llama and qwen3moe are decoded; use one");
    }
    const std::string_view scaling = keys.text("rope.scaling.type");
    if (!scaling.empty() && scaling != "none" && scaling != "linear" && scaling != "yarn") {
        return keys.error(ErrorCode::unsupported, "uses rope scaling '" + gguf::printable(scaling) +
                                                      "', and only 'linear' and 'yarn' are decoded; use a model of "
                                                      "these");
    }
    return std::nullopt;
}

RopeScaling read_rope_scaling(Keys& keys, const ModelConfig& config) {
    RopeScaling out;
    const std::string_view kind = keys.text("rope.scaling.type");
    // Older files give the factor alone, and mean a linear one.
    const std::string_view factor =
        keys.has("rope.scaling.factor") || !keys.has("rope.scale_linear") ? "rope.scaling.factor" : "rope.scale_linear";
    if (kind == "none" || !keys.has(factor)) {
        return out;
    }
    out.kind = kind == "yarn" ? RopeScaling::Kind::yarn : RopeScaling::Kind::linear;
    out.factor = keys.positive(factor, {});
    if (out.kind == RopeScaling::Kind::linear) {
        return out;
    }
    out.original_context = keys.positive("rope.scaling.original_context_length", static_cast<double>(config.context));
    out.extrapolation = keys.positive("rope.scaling.yarn_ext_factor", 1);
    out.magnitude = keys.positive("rope.scaling.attn_factor", 1) * keys.positive("rope.scaling.yarn_attn_factor", 1);
    out.beta_fast = keys.positive("rope.scaling.yarn_beta_fast", 32);
    out.beta_slow = keys.positive("rope.scaling.yarn_beta_slow", 1);
    return out;
}

Experts read_experts(Keys& keys, const Family& family, std::size_t feed_forward) {
    Experts out;
    const bool must = family.mixture == Family::Mixture::always;
    out.count = must ? keys.whole("expert_count", {}, largest_experts) : keys.count("expert_count", largest_experts);
    if (out.count == 0) {
        return out;
    }
    out.used = keys.whole("expert_used_count", {}, out.count);
    out.feed_forward = keys.whole("expert_feed_forward_length", feed_forward, largest_dimension);
    out.normalise = keys.truth("expert_weights_norm").value_or(true);
    out.scale = static_cast<float>(keys.positive("expert_weights_scale", 1));
    return out;
}

/// What single keys cannot say: that they do not fit each other.
std::optional<Error> misfit(const Keys& keys, const ModelConfig& config, std::size_t value_size) {
    if (config.heads % config.kv_heads != 0) {
        return keys.error(ErrorCode::corrupt, "has " + std::to_string(config.heads) + " heads for " +
                                                  std::to_string(config.kv_heads) +
                                                  " key heads, which does not divide; convert the model again");
    }
    if (value_size != config.head_size) {
        return keys.error(ErrorCode::unsupported, "has keys and values of different sizes; use a llama or qwen model");
    }
    if (config.rope_size > config.head_size || config.rope_size % 2 != 0) {
        return keys.error(ErrorCode::corrupt, "turns " + std::to_string(config.rope_size) + " of " +
                                                  std::to_string(config.head_size) +
                                                  " values of a head, which cannot be; convert the model again");
    }
    return std::nullopt;
}

} // namespace

Result<ModelConfig> read_config(const gguf::File& file) {
    const gguf::Value* value = file.contents().find("general.architecture");
    const auto architecture = value ? value->as_string() : std::nullopt;
    if (!architecture) {
        return Error{ErrorCode::corrupt,
                     file.path() + ": the metadata 'general.architecture' is missing; convert the model again"};
    }
    ModelConfig config;
    config.architecture = *architecture;
    Keys keys(file, config.architecture);
    const Family* family = find_family(*architecture);
    if (!family) {
        return keys.error(ErrorCode::unsupported, "has the architecture '" + gguf::printable(*architecture) +
                                                      "', and only " + family_names() +
                                                      " are decoded; use a model of these");
    }
    if (const auto error = unsupported_feature(keys, *family)) {
        return *error;
    }
    config.name = model_name(file);
    config.layers = keys.whole("block_count", {}, 4096);
    config.hidden = keys.whole("embedding_length", {}, largest_dimension);
    config.heads = keys.whole("attention.head_count", {}, 4096);
    config.kv_heads = keys.whole("attention.head_count_kv", config.heads, 4096);
    const std::size_t usual = std::max<std::size_t>(1, config.hidden / config.heads);
    config.head_size = keys.whole("attention.key_length", usual, 65536);
    const std::size_t value_size = keys.whole("attention.value_length", config.head_size, 65536);
    config.context = keys.whole("context_length", {}, std::uint64_t{1} << 40);
    config.window = keys.count("attention.sliding_window", std::uint64_t{1} << 40);
    config.rope_size = keys.whole("rope.dimension_count", config.head_size, 65536);
    config.rope_base = keys.positive("rope.freq_base", 10000);
    config.rope_scaling = read_rope_scaling(keys, config);
    config.epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon", {}));
    config.rope_halves = family->rope_halves;
    config.qk_norm = family->qk_norm;
    config.activation = family->activation;
    if (family->scaled_embedding) {
        config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
    }
    // Some converters write it for mixtures too, some do not.
    const bool mixture = family->mixture == Family::Mixture::always;
    config.feed_forward =
        keys.whole("feed_forward_length", mixture ? std::optional<std::uint64_t>(1) : std::nullopt, largest_dimension);
    config.experts = read_experts(keys, *family, config.feed_forward);
    if (config.experts.count != 0 && keys.has("expert_gating_func") &&
        keys.count("expert_gating_func", 255) != softmax_gating) {
        return keys.error(ErrorCode::unsupported,
                          "chooses its experts otherwise than by a softmax; use a mixtral or qwen3moe model");
    }
    if (keys.first_error()) {
        return *keys.first_error();
    }
    if (const auto error = misfit(keys, config, value_size)) {
        return *error;
    }
    return config;
}

} // namespace plumb::decoder
