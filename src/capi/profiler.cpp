// SPDX-License-Identifier: Apache-2.0
// The cold half of plumb.h: the profiler itself, names, tensors, answers.
#include "plumb/profiler.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "capi/handles.hpp"
#include "plumb/answer.hpp"
#include "plumb/tensor.hpp"

using namespace plumb::capi;
using plumb::ErrorCode;

namespace {

// The C values are those of the C++ headers.
#define PLUMB_SAME_BRICK(name, id, category, aliases) static_assert(plumb_brick_##name == id);
PLUMB_WELL_KNOWN_BRICKS(PLUMB_SAME_BRICK)
#undef PLUMB_SAME_BRICK
static_assert(plumb_category_other == static_cast<int>(plumb::Category::other));
static_assert(plumb_category_transfer == static_cast<int>(plumb::Category::transfer));
static_assert(plumb_phase_none == static_cast<int>(plumb::Phase::none));
static_assert(plumb_phase_mixed == static_cast<int>(plumb::Phase::mixed));
static_assert(plumb_dtype_f32 == static_cast<int>(plumb::DType::f32));
static_assert(plumb_dtype_i32 == static_cast<int>(plumb::DType::i32) && plumb_dtype_i32 + 1 == plumb::dtype_count);
static_assert(plumb_outcome_pass == static_cast<int>(plumb::Outcome::pass));
static_assert(plumb_outcome_unknown == static_cast<int>(plumb::Outcome::unknown));
static_assert(plumb_invalid_argument == code_of(ErrorCode::invalid_argument));
static_assert(plumb_failed == code_of(ErrorCode::failed));

/// A copy that plumb_free() frees.
plumb_code hand_over(const std::string& text, char** out) {
    auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) {
        throw std::bad_alloc();
    }
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *out = copy;
    return plumb_ok;
}

plumb_code invalid(const char* sentence) noexcept { return fail(ErrorCode::invalid_argument, sentence); }

/// Why a tensor cannot be looked at; null: it can.
const char* wrong_in(const plumb_tensor& tensor) noexcept {
    constexpr std::uint32_t known_flags = plumb_tensor_input | plumb_tensor_logits | plumb_tensor_at_position;
    return tensor.data == nullptr ? "the data of a plumb_tensor is NULL: give the address of its element 0"
           : tensor.rank == 0 || tensor.rank > plumb::max_rank
               ? "the rank of a plumb_tensor is none of 1 to 8: give the number of its dimensions"
           : tensor.dtype < plumb_dtype_f32 || tensor.dtype > plumb_dtype_i32
               ? "the dtype of a plumb_tensor is none of plumb_dtype_…: give one of them"
           : (tensor.flags & ~known_flags) != 0
               ? "the flags of a plumb_tensor have a bit that this library does not know: give plumb_tensor_… alone"
               : nullptr;
}

plumb::Tensor tensor_of(const plumb_tensor& given) noexcept {
    plumb::Tensor tensor;
    tensor.data = given.data;
    tensor.dtype = static_cast<plumb::DType>(given.dtype);
    tensor.rank = static_cast<std::uint8_t>(given.rank);
    std::ptrdiff_t stride = 1;
    for (unsigned i = tensor.rank; i-- > 0;) {
        tensor.shape[i] = given.shape[i];
        tensor.strides[i] = given.strides != nullptr ? static_cast<std::ptrdiff_t>(given.strides[i]) : stride;
        stride *= static_cast<std::ptrdiff_t>(given.shape[i]);
    }
    return tensor;
}

/// Null: all `count` texts are there.
const char* missing_text(const char* const* texts, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        if (texts == nullptr || texts[i] == nullptr) {
            return "a file or an option of a plumb_question is NULL: give as many texts as its counts say";
        }
    }
    return nullptr;
}

} // namespace

plumb_code plumb_open(const char* spec, plumb_profiler** profiler) {
    if (profiler == nullptr) {
        return missing("the place for the profiler");
    }
    *profiler = nullptr;
    return guarded([&]() -> plumb_code {
        const plumb::Result<plumb::Config> config =
            spec == nullptr ? plumb::Config::from_env() : plumb::Config::parse(spec);
        if (!config.ok()) {
            return fail(config.error());
        }
        std::unique_ptr<plumb_profiler> made(new plumb_profiler{plumb::Profiler(config)});
        if (const plumb::Status status = made->profiler.status(); !status.ok()) {
            return fail(status.error());
        }
        *profiler = made.release();
        return plumb_ok;
    });
}

plumb_code plumb_close(plumb_profiler* profiler) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    return guarded([&]() -> plumb_code {
        const std::unique_ptr<plumb_profiler> given(profiler);
        return code_of(given->profiler.close());
    });
}

int plumb_enabled(const plumb_profiler* profiler) {
    return profiler != nullptr && profiler->profiler.enabled() ? 1 : 0;
}

plumb_code plumb_enable(plumb_profiler* profiler) {
    return profiler == nullptr ? no_profiler() : guarded([&] { return code_of(profiler->profiler.enable()); });
}

plumb_code plumb_disable(plumb_profiler* profiler) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    return guarded([&]() -> plumb_code {
        profiler->profiler.disable();
        return plumb_ok;
    });
}

plumb_code plumb_describe(plumb_profiler* profiler, const char* key, const char* value) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (key == nullptr || value == nullptr) {
        return missing(key == nullptr ? "the key" : "the value");
    }
    return guarded([&]() -> plumb_code {
        profiler->profiler.describe(key, value);
        return plumb_ok;
    });
}

plumb_code plumb_flush(plumb_profiler* profiler, double timeout_seconds) {
    return profiler == nullptr ? no_profiler()
                               : guarded([&] { return code_of(profiler->profiler.flush(timeout_seconds)); });
}

plumb_code plumb_path(plumb_profiler* profiler, char** path) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (path == nullptr) {
        return missing("the place for the path");
    }
    *path = nullptr;
    return guarded([&] { return hand_over(profiler->profiler.path(), path); });
}

plumb_code plumb_intern(plumb_profiler* profiler, const char* text, int category, plumb_name* name) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (name == nullptr) {
        return missing("the place for the name");
    }
    *name = 0;
    if (text == nullptr || *text == '\0') {
        return invalid("a name is empty: give its text");
    }
    if (category < plumb_category_other || category > plumb_category_transfer) {
        return invalid("the category of a name is none of plumb_category_…: give one of them");
    }
    return guarded([&]() -> plumb_code {
        *name = profiler->profiler.intern(text, static_cast<plumb::Category>(category)).id;
        return *name != 0
                   ? plumb_ok
                   : fail(ErrorCode::out_of_memory, "there are 16,384 names already: intern a name once, and none "
                                                    "that holds a number or an address");
    });
}

plumb_code plumb_record_tensor(plumb_profiler* profiler, const plumb_queue* queue, plumb_name name,
                               const plumb_tensor* tensor) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits_queue(queue) || !fits(tensor, "plumb_tensor")) {
        return plumb_invalid_argument;
    }
    if (const char* wrong = wrong_in(*tensor); wrong != nullptr) {
        return invalid(wrong);
    }
    if ((profiler->profiler.mode() & plumb::detail::mode_tensors) == 0) {
        return plumb_ok;
    }
    return guarded([&]() -> plumb_code {
        plumb::detail::TensorTags tags;
        if ((tensor->flags & plumb_tensor_at_position) != 0) {
            tags.position = tensor->position;
        }
        tags.sequence = tensor->sequence;
        tags.logits = (tensor->flags & plumb_tensor_logits) != 0;
        plumb::detail::take_tensor(profiler->profiler, queue_of(queue), plumb::Name(name),
                                   (tensor->flags & plumb_tensor_input) != 0 ? plumb::detail::TensorRole::input
                                                                             : plumb::detail::TensorRole::output,
                                   tensor_of(*tensor), tags);
        return plumb_ok;
    });
}

plumb_code plumb_snapshot(plumb_profiler* profiler, char** json) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (json == nullptr) {
        return missing("the place for the JSON");
    }
    *json = nullptr;
    return guarded([&]() -> plumb_code {
        const plumb::Result<plumb::Report> report = profiler->profiler.snapshot();
        return report.ok() ? hand_over(plumb::render_json(*report), json) : fail(report.error());
    });
}

plumb_code plumb_ask(const plumb_question* question, char** json, int* outcome) {
    if (json == nullptr) {
        return missing("the place for the JSON");
    }
    *json = nullptr;
    if (!fits(question, "plumb_question")) {
        return plumb_invalid_argument;
    }
    if (question->answer == nullptr) {
        return missing("the answer of a plumb_question");
    }
    const std::size_t texts = std::size_t{2} * question->option_count;
    for (const char* wrong :
         {missing_text(question->files, question->file_count), missing_text(question->options, texts)}) {
        if (wrong != nullptr) {
            return invalid(wrong);
        }
    }
    return guarded([&]() -> plumb_code {
        const std::vector<std::string> files(question->files, question->files + question->file_count);
        plumb::OptionValues options;
        for (std::size_t i = 0; i < texts; i += 2) {
            options.emplace_back(question->options[i], question->options[i + 1]);
        }
        const plumb::Result<plumb::Answer> found = plumb::ask(question->answer, files, options);
        if (!found.ok()) {
            return fail(found.error());
        }
        if (outcome != nullptr) {
            *outcome = static_cast<int>(found->outcome());
        }
        return hand_over(found->json(), json);
    });
}

void plumb_free(char* text) { std::free(text); }
