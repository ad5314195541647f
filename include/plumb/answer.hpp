// SPDX-License-Identifier: Apache-2.0
// Every answer by its name: ask("wall", {"run.plumb"}, {{"phase", "decode"}}) gives text, JSON and a verdict. known_answers() lists what can
// be asked and how; the command line, the schemas and the reference are made from that list.
// libplumb.so opens libplumb-analysis.so when the first of these functions is called. Where it is not there, or a static program does
// not link plumb::analysis, they give the error unavailable; those without an error give what is empty.
// Values are owned by the caller. Thread rule: every function from any thread, none from a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/outcome.hpp"
#include "plumb/result.hpp"

namespace plumb {

struct TextOptions {
    bool color = false;
    std::size_t width = 100;
};

/// One option of an answer. On the command line it is --name.
struct AnswerOption {
    enum class Kind : std::uint8_t { flag, count, number, text };
    std::string name, meaning;
    Kind kind = Kind::flag;
    std::string value;                // a word for what it takes, such as FILE; empty: its kind says it
    std::vector<std::string> choices; // the words it takes; empty: any
    std::string initial;              // its value where it is not given; empty: none
    bool repeated = false;            // may be given several times
    bool several = false;             // takes several values at once
    std::uint64_t most = 0;           // of a count; 0: no limit
    std::vector<std::string> excludes;
    bool json = false; // a flag: the answer is read with Answer::json()
};

struct AnswerFile {
    std::string name, meaning;
    bool required = true;
    bool several = false;
};

struct AnswerInfo {
    std::string name, summary;
    std::vector<AnswerFile> files;
    std::vector<AnswerOption> options;
    std::string json;     // what --json says of itself; empty: an option does
    std::string markdown; // what --markdown says of itself; empty: there is none
    std::vector<std::string> schemas;
};

/// In the order in which help lists them.
PLUMB_API const std::vector<AnswerInfo>& known_answers();

/// The JSON Schema of a document, such as "plumb.wall/2". Error not_found names those there are.
PLUMB_API Result<std::string> json_schema(std::string_view schema);
/// The reference of all documents, in Markdown.
PLUMB_API std::string json_reference();

/// Values of options, by name; a flag has the value "". A name may stand several times where its option is repeated.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

namespace answers {
class AnswerData; // src/answers
}

/// What was found.
class PLUMB_API Answer {
  public:
    explicit Answer(const answers::AnswerData* data) noexcept : data_(data) {} // takes it over
    Answer(Answer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    Answer& operator=(Answer&& other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }
    ~Answer();

    [[nodiscard]] std::string text(const TextOptions& options = {}) const;
    [[nodiscard]] std::string markdown() const;
    [[nodiscard]] std::string json() const;
    /// pass where the answer judges nothing.
    [[nodiscard]] Outcome outcome() const noexcept;

  private:
    const answers::AnswerData* data_;
};

/// Errors: not_found for an unknown name (the sentence lists the known ones), invalid_argument for options and files that do not
/// fit, and what reading the files gives.
PLUMB_API Result<Answer> ask(std::string_view name, const std::vector<std::string>& files,
                             const OptionValues& options = {});

} // namespace plumb
