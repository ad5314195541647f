// SPDX-License-Identifier: Apache-2.0
// What an answer is: a name, options and a result that describe themselves, a function that reads recordings and one that makes a
// page. `src/answers/<name>/` holds one answer and defines
//     namespace plumb { const answers::Entry& <name>_answer(); }
// which the generated registry lists; the command line, JSON, schemas, reference, help and completion follow from it.
// An entry is a constant; any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "asking/answer_data.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "page/schema.hpp"
#include "plumb/answer.hpp"

namespace plumb::answers {

/// What was found, as a page. Immutable.
class PagedAnswer : public AnswerData {
  public:
    [[nodiscard]] virtual page::Page page(const TextOptions& options) const = 0;
    [[nodiscard]] std::string text(const TextOptions& options) const final {
        return page::text_of(page(options), options.color);
    }
    [[nodiscard]] std::string markdown() const override { return page::markdown_of(page({})); }
};

/// A document that an answer can be, and its form.
struct Document {
    const char* schema;
    page::Form (*form)();
};

using AnswerPointer = std::unique_ptr<PagedAnswer>;

class Reading; // answers/reading.hpp

/// What an answer says once the reading is over.
template <class R>
using Pending = std::function<Result<R>()>;

/// One of the two functions may be null: `begin` of what one reading of one recording cannot give, `ask` of what it can.
struct Entry {
    AnswerInfo info;
    std::vector<Document> documents;
    Result<AnswerPointer> (*ask)(const std::vector<std::string>& files, const OptionValues& values) = nullptr;
    Result<Pending<AnswerPointer>> (*begin)(Reading& reading, const OptionValues& values) = nullptr;
};

/// In the order in which help lists them (PLUMB_ANSWERS).
[[nodiscard]] const std::vector<const Entry*>& entries();

/// Every document with a schema: of the answers, then of commands that are none.
[[nodiscard]] const std::vector<Document>& documents();

/// What the public functions of these names do (plumb/answer.hpp).
[[nodiscard]] const std::vector<AnswerInfo>& known_answers();
[[nodiscard]] Result<Answer> ask(std::string_view name, const std::vector<std::string>& files,
                                 const OptionValues& options);
[[nodiscard]] Result<std::string> json_schema(std::string_view schema);
[[nodiscard]] std::string json_reference();

/// Error: a value that the answer has no option for, with those that it has; two that exclude each other.
[[nodiscard]] Status check_options(const AnswerInfo& info, const OptionValues& values);

/// The one file of most answers.
[[nodiscard]] inline std::vector<AnswerFile> one_recording() {
    return {{"recording", "Recording (.plumb); of a finished, killed or running process"}};
}

/// What a result needs to be an answer; the functions are found by its type:
///     page::Page page_of(const R&, const TextOptions&);
///     Outcome outcome_of(const R&) noexcept;      // where there is none the answer judges nothing
///     constexpr const char* schema_of(const R&);  // "plumb.wall/2"
///     std::string markdown_of(const R&);          // where there is none the page is the Markdown
template <class R>
class AnswerOf final : public PagedAnswer {
  public:
    explicit AnswerOf(R result, unsigned indent = 1) : result_(std::move(result)), indent_(indent) {}
    [[nodiscard]] page::Page page(const TextOptions& options) const override { return page_of(result_, options); }
    [[nodiscard]] std::string markdown() const override {
        if constexpr (requires { markdown_of(result_); }) {
            return markdown_of(result_);
        } else {
            return page::markdown_of(page({}));
        }
    }
    [[nodiscard]] std::string json() const override { return page::json_of(schema_of(result_), result_, indent_); }
    [[nodiscard]] Outcome outcome() const noexcept override {
        if constexpr (requires { outcome_of(result_); }) {
            return outcome_of(result_);
        } else {
            return Outcome::pass;
        }
    }

  private:
    R result_;
    unsigned indent_;
};

template <class R>
[[nodiscard]] Result<AnswerPointer> answer_of(Result<R> result, unsigned indent = 1) {
    if (!result.ok()) {
        return result.error();
    }
    return AnswerPointer(std::make_unique<AnswerOf<R>>(*std::move(result), indent));
}

template <class R>
[[nodiscard]] Document document_of() {
    return {schema_of(R{}), &page::document_form<R>};
}

template <class Options>
[[nodiscard]] std::vector<AnswerOption> options_of() {
    Options options;
    page::OptionList list;
    describe(list, options);
    return std::move(list.options);
}

template <class Options>
[[nodiscard]] Result<Options> options_from(const OptionValues& values) {
    Options options;
    page::OptionReader reader(values);
    describe(reader, options);
    if (const Status status = reader.status(); !status.ok()) {
        return status.error();
    }
    return options;
}

/// An entry without its functions: options and one kind of result.
template <class Options, class R>
[[nodiscard]] Entry entry_for(const char* name, const char* summary, std::vector<AnswerFile> files = one_recording()) {
    const Document document = document_of<R>();
    return {{name,
             summary,
             std::move(files),
             options_of<Options>(),
             "As JSON (schema " + std::string(document.schema) + ")",
             {},
             {document.schema}},
            {document}};
}

/// What reads its files itself: options and one kind of result, from `read(files, options)`.
template <class Options, class R, Result<R> (*read)(const std::vector<std::string>&, const Options&)>
[[nodiscard]] Entry entry_of(const char* name, const char* summary, std::vector<AnswerFile> files = one_recording()) {
    Entry entry = entry_for<Options, R>(name, summary, std::move(files));
    entry.ask = [](const std::vector<std::string>& paths, const OptionValues& values) -> Result<AnswerPointer> {
        const Result<Options> options = options_from<Options>(values);
        return options.ok() ? answer_of(read(paths, *options)) : Result<AnswerPointer>(options.error());
    };
    return entry;
}

} // namespace plumb::answers
