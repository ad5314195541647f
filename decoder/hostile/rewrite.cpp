// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "decoder/hostile/mutate.hpp"

namespace plumb::decoder::hostile {
namespace {

using gguf::ValueType;

constexpr std::uint64_t largest_tensor = std::uint64_t{1} << 21; // bytes: many files fit into a second

constexpr std::uint64_t whole_numbers[] = {0,
                                           1,
                                           2,
                                           3,
                                           4,
                                           5,
                                           6,
                                           7,
                                           8,
                                           12,
                                           14,
                                           16,
                                           20,
                                           31,
                                           32,
                                           33,
                                           48,
                                           64,
                                           80,
                                           127,
                                           128,
                                           129,
                                           255,
                                           256,
                                           257,
                                           512,
                                           1024,
                                           4096,
                                           4097,
                                           65535,
                                           65536,
                                           65537,
                                           1U << 20,
                                           (1U << 20) + 1,
                                           0x7fffffff,
                                           0x80000000,
                                           1000,
                                           100000,
                                           1000000,
                                           0xffffffff,
                                           1ULL << 32,
                                           1ULL << 40,
                                           (1ULL << 40) + 1,
                                           0x7fffffffffffffff,
                                           1ULL << 63,
                                           10000,
                                           300,
                                           2048,
                                           32768,
                                           131072,
                                           0xfffffffe,
                                           0xffffffffffffffff - 1,
                                           0xffffffffffffffff,
                                           1ULL << 62};

constexpr double fractions[] = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                0.5,
                                1e-45,
                                1e-38,
                                1e-20,
                                1e-6,
                                1e-3,
                                2.0,
                                10.0,
                                1e4,
                                1e6,
                                1e12,
                                1.1e12,
                                3e38,
                                1e300,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::denorm_min()};

constexpr const char* architectures[] = {"llama",  "qwen2",  "qwen3", "qwen3moe", "gemma",
                                         "gemma2", "gemma3", "phi3",  "mixtral",  "qwen2moe",
                                         "mamba",  "gpt2",   "",      "llama ",   "LLaMA\n"};

/// Keys that are used or refused, and what a file might say there.
constexpr const char* known_keys[] = {"attention.sliding_window",
                                      "attention.sliding_window_pattern",
                                      "attention.key_length",
                                      "attention.value_length",
                                      "attention.head_count_kv",
                                      "attention.scale",
                                      "attn_logit_softcapping",
                                      "logit_scale",
                                      "expert_count",
                                      "expert_used_count",
                                      "expert_feed_forward_length",
                                      "expert_weights_norm",
                                      "expert_weights_scale",
                                      "expert_gating_func",
                                      "expert_shared_count",
                                      "rope.dimension_count",
                                      "rope.freq_base",
                                      "rope.scaling.type",
                                      "rope.scaling.factor",
                                      "rope.scale_linear",
                                      "rope.scaling.original_context_length",
                                      "rope.scaling.attn_factor",
                                      "rope.scaling.yarn_ext_factor",
                                      "rope.scaling.yarn_attn_factor",
                                      "rope.scaling.yarn_beta_fast",
                                      "rope.scaling.yarn_beta_slow"};

constexpr const char* odd_texts[] = {"",       "linear",   "yarn",         "none",       "longrope",    "gpt2",
                                     "llama",  "bert",     "default",      "llama-bpe",  "qwen2",       "gpt-2",
                                     "tekken", "\xff\xfe", "\xc0\x80",     "a b",        " ",           "\x1b[31m\n",
                                     "<0x41>", "<0xZZ>",   "\xf0\x9f\x98", "<|im_end|>", "\xe2\x96\x81"};

template <class T>
std::string raw(T value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
}

/// A number as the type stores it; what does not fit is cut.
std::string number_of(ValueType type, std::uint64_t whole, double fraction) {
    if (type == ValueType::f32) {
        return raw(static_cast<float>(fraction));
    }
    if (type == ValueType::f64) {
        return raw(fraction);
    }
    return raw(whole).substr(0, gguf::value_size(type));
}

bool is_number(const EntryPart& entry) { return entry.type != ValueType::string && entry.type != ValueType::array; }

std::uint64_t number_in(const std::string& value) {
    std::uint64_t out = 0;
    std::memcpy(&out, value.data(), std::min(sizeof out, value.size()));
    return out;
}

EntryPart* find(Parts& parts, const std::string& key) {
    const auto at = std::find_if(parts.entries.begin(), parts.entries.end(),
                                 [&](const EntryPart& entry) { return entry.key == key; });
    return at == parts.entries.end() ? nullptr : &*at;
}

std::string architecture_of(Parts& parts) {
    const EntryPart* entry = find(parts, "general.architecture");
    return entry != nullptr ? entry->value : "llama";
}

void resize(TensorPart& tensor) { tensor.bytes = bytes_of(tensor, largest_tensor); }

std::string odd_text(Random& random) {
    std::string text = random.of(odd_texts);
    if (random.one_in(20)) {
        text.assign(random.below(20000), static_cast<char>('a' + random.below(26)));
    }
    return text;
}

void change_number(Parts& parts, Random& random) {
    std::vector<EntryPart*> numbers;
    for (EntryPart& entry : parts.entries) {
        if (is_number(entry)) {
            numbers.push_back(&entry);
        }
    }
    if (numbers.empty()) {
        return;
    }
    EntryPart& entry = *random.of(numbers);
    constexpr ValueType types[] = {ValueType::u8,  ValueType::i8,  ValueType::u16,    ValueType::i16,
                                   ValueType::u32, ValueType::i32, ValueType::u64,    ValueType::i64,
                                   ValueType::f32, ValueType::f64, ValueType::boolean};
    const std::uint64_t was = number_in(entry.value);
    if (random.one_in(4)) {
        entry.type = random.of(types);
    }
    const std::uint64_t nearby[] = {was + 1, was - 1, was * 2, was / 2};
    entry.value =
        number_of(entry.type, random.one_in(2) ? random.of(nearby) : random.of(whole_numbers), random.of(fractions));
}

/// Wherever the file says this number, in keys and sizes, it says another one: it stays whole, and becomes a strange model.
void change_number_everywhere(Parts& parts, Random& random) {
    std::vector<std::uint64_t> sizes;
    for (const TensorPart& tensor : parts.tensors) {
        sizes.insert(sizes.end(), tensor.size.begin(), tensor.size.end());
    }
    if (sizes.empty()) {
        return;
    }
    const std::uint64_t was = random.of(sizes);
    const std::uint64_t choices[] = {1,  2,   3,   5,   7,   8,   16,  32,      33,      64,
                                     96, 128, 255, 256, 257, 512, 700, was + 1, was - 1, was * 2};
    const std::uint64_t value = random.of(choices);
    for (EntryPart& entry : parts.entries) {
        if (is_number(entry) && entry.type != ValueType::f32 && number_in(entry.value) == was) {
            entry.value = number_of(entry.type, value, 0);
        }
    }
    for (TensorPart& tensor : parts.tensors) {
        std::replace(tensor.size.begin(), tensor.size.end(), was, value);
        resize(tensor);
    }
}

void change_entries(Parts& parts, Random& random) {
    if (parts.entries.empty()) {
        return;
    }
    EntryPart& entry = parts.entries[random.below(parts.entries.size())];
    switch (random.below(5)) {
    case 0:
        parts.entries.erase(parts.entries.begin() + (&entry - parts.entries.data()));
        break;
    case 1:
        parts.entries.push_back(EntryPart(entry));
        break;
    case 2:
        std::swap(entry.key, parts.entries[random.below(parts.entries.size())].key);
        break;
    case 3:
        entry.key = random.one_in(3) ? odd_text(random) : entry.key + "x";
        break;
    default:
        std::swap(entry, parts.entries[random.below(parts.entries.size())]);
        break;
    }
}

void change_architecture(Parts& parts, Random& random) {
    const std::string was = architecture_of(parts);
    const std::string name = random.of(architectures);
    if (EntryPart* entry = find(parts, "general.architecture")) {
        entry->value = name;
    }
    if (random.one_in(8)) {
        return;
    }
    for (EntryPart& entry : parts.entries) {
        if (entry.key.starts_with(was + ".")) {
            entry.key = name + entry.key.substr(was.size());
        }
    }
}

void add_key(Parts& parts, Random& random) {
    const std::string key = architecture_of(parts) + "." + random.of(known_keys);
    EntryPart made{key, ValueType::u32, {}, ValueType::u32, {}};
    if (key.ends_with(".type")) {
        made.type = ValueType::string;
    } else if (random.one_in(3)) {
        made.type = ValueType::f32;
    } else if (random.one_in(6)) {
        made.type = ValueType::boolean;
    }
    made.value = made.type == ValueType::string ? odd_text(random)
                                                : number_of(made.type, random.of(whole_numbers), random.of(fractions));
    if (EntryPart* entry = find(parts, key)) {
        *entry = made;
    } else {
        parts.entries.push_back(made);
    }
}

void change_alignment(Parts& parts, Random& random) {
    constexpr std::uint32_t alignments[] = {0, 1, 4, 8, 16, 32, 64, 4096, 1U << 20, 1U << 21, 24, 0xffffffff};
    const std::uint32_t alignment = random.one_in(3) ? random.of(alignments) : 8U << random.below(8);
    if (EntryPart* entry = find(parts, "general.alignment")) {
        *entry = {entry->key, ValueType::u32, raw(alignment), ValueType::u32, {}};
    }
    if (alignment >= 8 && alignment <= 4096 && (alignment & (alignment - 1)) == 0) {
        parts.alignment = alignment;
    }
}

void change_tensor_type(TensorPart& tensor, Random& random) {
    constexpr std::uint32_t types[] = {0,  1,  2,  8,  12, 14, 30, 3,  6,  7,         10,
                                       13, 15, 24, 28, 34, 39, 4,  31, 99, 0xffffffff};
    tensor.type = types[random.below(random.one_in(2) ? 7 : std::size(types))];
    if (!random.one_in(6)) {
        resize(tensor);
    }
}

void change_tensor_size(TensorPart& tensor, Random& random) {
    if (tensor.size.empty()) {
        return;
    }
    std::uint64_t& size = tensor.size[random.below(tensor.size.size())];
    switch (random.below(6)) {
    case 0:
        std::swap(size, tensor.size.front());
        break;
    case 1:
        tensor.size.push_back(random.one_in(2) ? 1 : 2);
        break;
    case 2:
        tensor.size.pop_back();
        break;
    case 3:
        size = random.of(whole_numbers);
        break;
    case 4:
        size += random.one_in(2) ? 1 : 32;
        break;
    default:
        size /= 2;
        break;
    }
    if (!random.one_in(4)) {
        resize(tensor);
    }
}

void change_tensors(Parts& parts, Random& random) {
    if (parts.tensors.empty()) {
        return;
    }
    TensorPart& tensor = parts.tensors[random.below(parts.tensors.size())];
    TensorPart& other = parts.tensors[random.below(parts.tensors.size())];
    switch (random.below(9)) {
    case 0:
    case 1:
        return change_tensor_type(tensor, random);
    case 2:
    case 3:
        return change_tensor_size(tensor, random);
    case 4:
        parts.tensors.erase(parts.tensors.begin() + (&tensor - parts.tensors.data()));
        break;
    case 5:
        parts.tensors.push_back(TensorPart(tensor));
        if (!random.one_in(3)) {
            parts.tensors.back().name += random.one_in(2) ? ".bias" : "x";
        }
        break;
    case 6:
        std::swap(tensor.name, other.name);
        break;
    case 7:
        std::swap(tensor, other); // another order
        break;
    default:
        if (tensor.name.ends_with(".weight")) {
            tensor.name.replace(tensor.name.size() - 6, 6, "bias");
        } else {
            tensor.name = odd_text(random);
        }
        break;
    }
}

/// All matrices of another type: whole files of every type come of each seed.
void change_all_types(Parts& parts, Random& random) {
    constexpr std::uint32_t types[] = {0, 1, 2, 8, 12, 14, 30};
    const std::uint32_t type = random.of(types);
    for (TensorPart& tensor : parts.tensors) {
        if (tensor.size.size() > 1) {
            tensor.type = type;
            resize(tensor);
        }
    }
}

void change_element(EntryPart& array, Random& random) {
    std::string& element = array.elements[random.below(array.elements.size())];
    if (array.element == ValueType::string) {
        element = random.one_in(3) ? odd_text(random) : array.elements[random.below(array.elements.size())];
    } else {
        element = number_of(array.element, random.of(whole_numbers), random.of(fractions));
    }
}

void change_array(EntryPart& array, Random& random) {
    auto& elements = array.elements;
    if (elements.empty()) {
        elements.push_back(array.element == ValueType::string ? odd_text(random) : number_of(array.element, 1, 1));
        return;
    }
    const std::size_t at = random.below(elements.size());
    switch (random.below(7)) {
    case 0:
        elements.resize(at);
        break;
    case 1:
        elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
        break;
    case 2:
        elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), std::string(elements[at]));
        break;
    case 3:
        elements.clear();
        break;
    default:
        for (std::size_t i = 1 + random.below(random.one_in(3) ? 200 : 4); i > 0; --i) {
            change_element(array, random);
        }
        break;
    }
}

void change_tokenizer(Parts& parts, Random& random) {
    std::vector<EntryPart*> of_tokenizer;
    for (EntryPart& entry : parts.entries) {
        if (entry.key.starts_with("tokenizer.")) {
            of_tokenizer.push_back(&entry);
        }
    }
    if (of_tokenizer.empty()) {
        return;
    }
    EntryPart& entry = *random.of(of_tokenizer);
    if (random.one_in(12)) {
        return use_scored_pieces(parts);
    }
    if (random.one_in(8)) {
        std::swap(entry.key, random.of(of_tokenizer)->key);
    } else if (entry.type == ValueType::array) {
        change_array(entry, random);
    } else if (entry.type == ValueType::string) {
        entry.value = odd_text(random);
    } else {
        entry.value = number_of(entry.type, random.of(whole_numbers), random.of(fractions));
    }
}

void drop(Parts& parts, const std::string& key) {
    std::erase_if(parts.entries, [&](const EntryPart& entry) { return entry.key == key; });
}

} // namespace

void use_scored_pieces(Parts& parts) {
    EntryPart* tokens = find(parts, "tokenizer.ggml.tokens");
    EntryPart* model = find(parts, "tokenizer.ggml.model");
    EntryPart* types = find(parts, "tokenizer.ggml.token_type");
    if (tokens == nullptr || model == nullptr || types == nullptr || tokens->type != ValueType::array) {
        return;
    }
    model->value = "llama";
    EntryPart scores{"tokenizer.ggml.scores", ValueType::array, {}, ValueType::f32, {}};
    constexpr char digits[] = "0123456789ABCDEF";
    for (std::size_t i = 0; i < tokens->elements.size(); ++i) {
        if (i < 256) {
            tokens->elements[i] = std::string("<0x") + digits[i / 16] + digits[i % 16] + ">";
        } else if (i > 256) {
            tokens->elements[i] =
                std::string(1 + i % 3, static_cast<char>('a' + i % 26)) + (i % 5 == 0 ? "\xe2\x96\x81" : "");
        }
        if (i < types->elements.size()) {
            types->elements[i] = raw(i < 256 ? 6 : i == 256 ? 3 : 1);
        }
        scores.elements.push_back(raw(-static_cast<float>(i)));
    }
    drop(parts, "tokenizer.ggml.merges");
    drop(parts, "tokenizer.ggml.scores");
    parts.entries.push_back(std::move(scores));
}

void rewrite(Parts& parts, Random& random) {
    using Change = void (*)(Parts&, Random&);
    constexpr Change changes[] = {change_number,   change_number,  change_number_everywhere, change_number_everywhere,
                                  change_entries,  add_key,        change_architecture,      change_alignment,
                                  change_tensors,  change_tensors, change_all_types,         change_tokenizer,
                                  change_tokenizer};
    random.of(changes)(parts, random);
}

} // namespace plumb::decoder::hostile
