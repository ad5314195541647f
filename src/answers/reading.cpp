// SPDX-License-Identifier: Apache-2.0
#include "answers/reading.hpp"

#include "analysis/wall_builder.hpp"

namespace plumb::answers {

analysis::ReportReader& Reading::report() {
    if (report_ == nullptr) {
        report_ = &join<analysis::ReportReader>(facts());
    }
    return *report_;
}

Pending<WallReport> Reading::wall(const WallOptions& options) {
    for (const auto& [asked, pending] : walls_) {
        if (asked == options) {
            return pending;
        }
    }
    analysis::ReportReader& told_by = report_tells_wall_ ? join<analysis::ReportReader>(facts()) : report();
    report_tells_wall_ = true;
    auto& reader = join<analysis::WallReader>(facts(), options, told_by);
    const auto kept = std::make_shared<std::optional<Result<WallReport>>>();
    return walls_
        .emplace_back(options,
                      [&reader, kept] {
                          if (!*kept) {
                              *kept = reader.take();
                          }
                          return **kept;
                      })
        .second;
}

Status Reading::read() {
    if (observers_.empty()) {
        return {};
    }
    resolve::ResolveOptions how;
    how.cut = cut_;
    how.warmup_steps = warmup_steps_.value_or(facts().metadata.warmup_steps);
    std::vector<read::Observer*> observers;
    for (const auto& observer : observers_) {
        observers.push_back(observer.get());
    }
    return read::read(run_, observers, how);
}

namespace {

/// What was found, or why not.
struct OpenPart {
    const Entry* entry = nullptr;
    Result<AnswerPointer> answer;
};

struct Together {
    std::vector<OpenPart> parts;
};

struct NotGiven {
    std::string answer, absent;
};
template <class V>
void describe(V& v, const NotGiven& n) {
    v("answer", n.answer, "");
    v("absent", n.absent, "");
}

std::vector<page::Nested> documents_of(const Together& together) {
    std::vector<page::Nested> documents;
    for (const OpenPart& part : together.parts) {
        if (part.answer.ok()) {
            documents.push_back({(*part.answer)->json()});
        } else {
            std::string absent;
            base::JsonWriter json(absent, 1);
            page::JsonFields fields(json);
            json.begin_object();
            describe(fields, NotGiven{part.entry->info.name, part.answer.error().message});
            json.finish();
            documents.push_back({std::move(absent)});
        }
    }
    return documents;
}

template <class V>
void describe(V& v, const Together& t) {
    v.type("answers", "Several answers from one reading (`plumb report --with`).");
    v("answers", documents_of(t),
      "the documents, each with its own schema; one that cannot be given has `answer`, its name, and `absent`, the reason");
}

constexpr const char* schema_of(const Together&) { return "plumb.answers/1"; }

page::Page page_of(const Together& together, const TextOptions& options) {
    page::Page page;
    for (const OpenPart& part : together.parts) {
        if (part.entry != together.parts.front().entry) {
            page.blank();
            page.line("plumb " + part.entry->info.name, page::Tone::heading);
        }
        if (part.answer.ok()) {
            page.append((*part.answer)->page(options));
        } else {
            page.marked("n/a  ", part.answer.error().message, page::Tone::plain);
        }
    }
    return page;
}

Outcome outcome_of(const Together& together) noexcept {
    Outcome worst = Outcome::pass;
    for (const OpenPart& part : together.parts) {
        worst = worse(worst, part.answer.ok() ? (*part.answer)->outcome() : Outcome::unknown);
    }
    return worst;
}

/// The values that an answer has an option for.
OptionValues values_for(const Entry& entry, const OptionValues& values) {
    OptionValues fitting;
    for (const AnswerOption& option : entry.info.options) {
        for (const auto& value : values) {
            if (value.first == option.name) {
                fitting.push_back(value);
            }
        }
    }
    return fitting;
}

} // namespace

Document together_document() { return document_of<Together>(); }

Result<Pending<AnswerPointer>> begin_together(Reading& reading, const std::vector<Asked>& questions) {
    std::vector<std::pair<const Entry*, Pending<AnswerPointer>>> pending;
    for (const auto& [entry, values] : questions) {
        Result<Pending<AnswerPointer>> begun = entry->begin(reading, values_for(*entry, values));
        if (!begun.ok()) {
            return begun.error();
        }
        pending.emplace_back(entry, *std::move(begun));
    }
    return Pending<AnswerPointer>([pending = std::move(pending)]() -> Result<AnswerPointer> {
        Together together;
        for (const auto& [entry, take] : pending) {
            together.parts.push_back({entry, take()});
        }
        return AnswerPointer(std::make_unique<AnswerOf<Together>>(std::move(together)));
    });
}

} // namespace plumb::answers
