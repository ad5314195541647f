// SPDX-License-Identifier: Apache-2.0
#include "answers/report/report.hpp"

#include <algorithm>
#include <string_view>

#include "answers/reading.hpp"

namespace plumb {

const answers::Entry& report_answer();

namespace {

using answers::Pending;
using answers::Reading;

Pending<Report> asked_of(Reading& reading, const ReportOptions& options) {
    if (!options.recording_warmup) {
        reading.warm_up(options.warmup_steps);
    }
    analysis::ReportReader& reader = reading.report();
    return [&reader, number = reader.ask(options)] {
        return reader.take(number);
    };
}

Result<Pending<Report>> begin(Reading& reading, const ReportQuestion& question) {
    ReportOptions options;
    options.phase = question.phase;
    options.recording_warmup = !question.warmup;
    options.warmup_steps = question.warmup.value_or(options.warmup_steps);
    options.brick_layers = question.layers;
    return asked_of(reading, options);
}

std::string_view cut_off(std::string_view& rest, char at) {
    const std::string_view word = rest.substr(0, rest.find(at));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    return word;
}

/// The report, then those that --with names, each with options of its own: "wall,layers:metric=mean".
Result<std::vector<answers::Asked>> questions_of(std::string_view names, const OptionValues& values) {
    std::vector<answers::Asked> wanted = {{&report_answer(), values}};
    while (!names.empty()) {
        std::string_view options = cut_off(names, ',');
        const std::string_view name = cut_off(options, ':');
        const answers::Entry* found = nullptr;
        std::string known;
        for (const answers::Entry* entry : answers::entries()) {
            if (entry->begin != nullptr) {
                found = entry->info.name == name ? entry : found;
                known += (known.empty() ? "" : ", ") + entry->info.name;
            }
        }
        if (found == nullptr) {
            return Error{ErrorCode::invalid_argument,
                         "--with takes answers about one recording, such as wall,layers: " + known + "; not \"" +
                             std::string(name) + "\""};
        }
        OptionValues own;
        while (!options.empty()) {
            std::string_view value = cut_off(options, ':');
            const std::string option(cut_off(value, '='));
            own.emplace_back(option, value);
        }
        if (const Status fit = answers::check_options(found->info, own); !fit) {
            return fit.error();
        }
        answers::Asked question{found, values};
        question.values.insert(question.values.end(), own.begin(), own.end());
        if (std::find(wanted.begin(), wanted.end(), question) == wanted.end()) {
            wanted.push_back(std::move(question));
        }
    }
    return wanted;
}

/// The report alone, or with others from the same reading.
Result<Pending<answers::AnswerPointer>> begin_all(Reading& reading, const OptionValues& values) {
    OptionValues own = values;
    const auto with = std::find_if(own.begin(), own.end(), [](const auto& value) { return value.first == "with"; });
    if (with == own.end()) {
        return answers::begin_answer<ReportQuestion, Report, begin>(reading, own);
    }
    const std::string names = with->second;
    own.erase(with);
    const Result<std::vector<answers::Asked>> questions = questions_of(names, own);
    return questions.ok() ? answers::begin_together(reading, *questions)
                          : Result<Pending<answers::AnswerPointer>>(questions.error());
}

} // namespace

Result<Report> read_report(const std::string& path, const ReportOptions& options) {
    return answers::read_one<Report>(
        path, [&](Reading& reading) -> Result<Pending<Report>> { return asked_of(reading, options); });
}

const answers::Entry& report_answer() {
    static const answers::Entry entry = [] {
        answers::Entry made = answers::joining_entry<ReportQuestion, Report, begin>(
            "report", "Show where the time of a recorded run went, brick by brick");
        made.begin = begin_all;
        made.documents.push_back(answers::together_document());
        made.info.schemas.emplace_back(made.documents.back().schema);
        made.info.json = "As JSON (schema plumb.report/2; with --with plumb.answers/1)";
        return made;
    }();
    return entry;
}

} // namespace plumb
