// SPDX-License-Identifier: Apache-2.0
// Every answer by its name, over the registry.
#include <algorithm>

#include "answers/answer.hpp"
#include "answers/commands.hpp"
#include "answers/reading.hpp"

namespace plumb::answers {
namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : ", ") + word;
    }
    return out;
}

Status check_files(const AnswerInfo& info, std::size_t count) {
    std::size_t least = 0;
    bool several = false;
    for (const AnswerFile& file : info.files) {
        least += file.required ? 1 : 0;
        several = several || file.several;
    }
    if (count >= least && (several || count <= info.files.size())) {
        return {};
    }
    return Error{ErrorCode::invalid_argument, info.name + " takes " + (several ? "at least " : "") +
                                                  std::to_string(several ? least : info.files.size()) +
                                                  " recording(s), not " + std::to_string(count)};
}

Result<const Entry*> entry_for_question(std::string_view name, const OptionValues& options) {
    std::vector<std::string> known;
    for (const Entry* entry : entries()) {
        if (entry->info.name == name) {
            const Status fit = check_options(entry->info, options);
            return fit.ok() ? Result<const Entry*>(entry) : fit.error();
        }
        known.push_back(entry->info.name);
    }
    return Error{ErrorCode::not_found, "there is no answer \"" + std::string(name) + "\"; there are " + joined(known)};
}

Result<Answer> released(Result<AnswerPointer> made) {
    return made.ok() ? Result<Answer>(Answer(made->release())) : made.error();
}

} // namespace

Status check_options(const AnswerInfo& info, const OptionValues& values) {
    for (const auto& [name, text] : values) {
        const auto known = std::find_if(info.options.begin(), info.options.end(),
                                        [name = name](const AnswerOption& option) { return option.name == name; });
        if (known == info.options.end()) {
            std::vector<std::string> names;
            for (const AnswerOption& option : info.options) {
                names.push_back(option.name);
            }
            return Error{ErrorCode::invalid_argument, info.name + " has no option \"" + name + "\"; it has " +
                                                          (names.empty() ? "none" : joined(names))};
        }
        for (const auto& [other, ignored] : values) {
            if (std::find(known->excludes.begin(), known->excludes.end(), other) != known->excludes.end()) {
                return Error{ErrorCode::invalid_argument, info.name + " takes " + name + " or " + other + ", not both"};
            }
        }
    }
    return {};
}

const std::vector<AnswerInfo>& known_answers() {
    static const std::vector<AnswerInfo> all = [] {
        std::vector<AnswerInfo> made;
        for (const Entry* entry : entries()) {
            made.push_back(entry->info);
        }
        return made;
    }();
    return all;
}

Result<Answer> ask(std::string_view name, const std::vector<std::string>& files, const OptionValues& options) {
    const Result<const Entry*> found = entry_for_question(name, options);
    if (!found.ok()) {
        return found.error();
    }
    const Entry& entry = **found;
    if (const Status fit = check_files(entry.info, files.size()); !fit.ok()) {
        return fit.error();
    }
    return released(entry.ask != nullptr ? entry.ask(files, options)
                                         : read_one<AnswerPointer>(files.front(), [&](Reading& reading) {
                                               return entry.begin(reading, options);
                                           }));
}

Result<Answer> ask_of_run(std::string_view name, const recording::RecordedRun& run, const resolve::Cut& cut,
                          const OptionValues& options) {
    const Result<const Entry*> found = entry_for_question(name, options);
    if (!found.ok()) {
        return found.error();
    }
    const Entry& entry = **found;
    if (entry.begin == nullptr) {
        return Error{ErrorCode::unsupported, entry.info.name +
                                                 " reads a recording in a way of its own: flush() the run, "
                                                 "then ask plumb::ask() with its path()"};
    }
    return released(read_run<AnswerPointer>(
        run, [&](Reading& reading) { return entry.begin(reading, options); }, cut));
}

const std::vector<Document>& documents() {
    static const std::vector<Document> all = [] {
        std::vector<Document> made;
        for (const Entry* entry : entries()) {
            made.insert(made.end(), entry->documents.begin(), entry->documents.end());
        }
        for (const std::vector<Document>& others : {documents_of_commands(), documents_of_exports()}) {
            made.insert(made.end(), others.begin(), others.end());
        }
        return made;
    }();
    return all;
}

Result<std::string> json_schema(std::string_view schema) {
    std::vector<std::string> known;
    for (const Document& document : documents()) {
        known.emplace_back(document.schema);
        if (schema == document.schema) {
            return page::json_schema(document.schema, document.form());
        }
    }
    return Error{ErrorCode::not_found,
                 "there is no schema \"" + std::string(schema) + "\"; there are " + joined(known)};
}

std::string json_reference() {
    std::string out = "# Field by field\n\nMade by `plumb help --reference`; a test compares the two.\n";
    for (const Document& document : documents()) {
        out += "\n" + page::reference(document.schema, document.form());
    }
    return out;
}

} // namespace plumb::answers
