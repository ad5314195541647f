// SPDX-License-Identifier: Apache-2.0
#include "export/export.hpp"
#include "export/window.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <ostream>
#include <streambuf>
#include <string>

#include "base/hex.hpp"
#include "plumb/results.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/step_table.hpp"

namespace plumb {

namespace exporting {

Result<const Format*> format_of(std::string_view name) {
    std::string known;
    for (const Format* each : formats()) {
        if (name == each->name) {
            return each;
        }
        known += (known.empty() ? "" : ", ") + std::string(each->name);
    }
    return Error{ErrorCode::not_found, "there is no format \"" + std::string(name) + "\"; there are " + known};
}

namespace {

/// A part of a path as Hive writes it: "rank=3"; its word for what is missing is read as missing by everybody.
std::string hive_folder(const char* key, std::string_view value) {
    std::string folder = std::string(key) + '=';
    if (value.empty()) {
        return folder + "__HIVE_DEFAULT_PARTITION__";
    }
    for (const char character : value) {
        const bool plain = (std::isalnum(static_cast<unsigned char>(character)) != 0) ||
                           std::string_view("-_.").find(character) != std::string_view::npos;
        if (plain) {
            folder += character;
        } else {
            folder += '%';
            folder += "0123456789ABCDEF"[static_cast<unsigned char>(character) >> 4];
            folder += "0123456789ABCDEF"[static_cast<unsigned char>(character) & 15];
        }
    }
    return folder;
}

/// "layer 9", "steps 500 to 599", "steps from 500 on".
std::string words_of(const std::string& what, const std::pair<std::uint64_t, std::uint64_t>& range) {
    const auto& [first, last] = range;
    return first == last ? what + " " + std::to_string(first)
           : last >= std::numeric_limits<std::uint64_t>::max() - 1
               ? what + "s from " + std::to_string(first) + " on"
               : what + "s " + std::to_string(first) + " to " + std::to_string(last);
}

/// What is written waits here until something of the window was given: one that holds nothing leaves nothing behind.
class HeldBack final : public std::streambuf {
  public:
    HeldBack(std::streambuf& out, const InWindow& given) : out_(out), given_(given) {}

  private:
    bool pass_on() {
        const auto length = static_cast<std::streamsize>(held_.size());
        const bool good = out_.sputn(held_.data(), length) == length;
        held_.clear();
        return good;
    }
    std::streamsize xsputn(const char* text, std::streamsize length) override {
        if (given_.found == 0) {
            held_.append(text, static_cast<std::size_t>(length));
            return length;
        }
        return pass_on() ? out_.sputn(text, length) : 0;
    }
    int_type overflow(int_type character) override {
        const char one = traits_type::to_char_type(character);
        return xsputn(&one, 1) == 1 ? traits_type::not_eof(character) : traits_type::eof();
    }
    int sync() override { return given_.found == 0 ? 0 : pass_on() ? out_.pubsync() : -1; }

    std::streambuf& out_;
    const InWindow& given_;
    std::string held_;
};

/// Which bound is to blame that a window held nothing, and what there is.
Error nothing_in(const recording::RecordedRun& run, const ExportWindow& window, const InWindow& given) {
    if (given.least_layer <= given.most_layer) {
        return {ErrorCode::not_found, "nothing lies in " + words_of("layer", *window.layers) +
                                          "; the layers there are " + std::to_string(given.least_layer) + " to " +
                                          std::to_string(given.most_layer)};
    }
    resolve::TrackTable tracks(*run.facts, {});
    resolve::Losses losses;
    const auto in_window = [&window](const resolve::ResolvedStep& step) {
        return window.steps->first <= step.id && step.id <= window.steps->second;
    };
    if (const auto first = resolve::scan_steps(run, tracks, 0, losses);
        first.ok() && !first->steps.empty() && window.steps &&
        std::none_of(first->steps.all().begin(), first->steps.all().end(), in_window)) {
        const auto [least, most] = std::minmax_element(first->steps.all().begin(), first->steps.all().end(),
                                                       [](const auto& a, const auto& b) { return a.id < b.id; });
        return {ErrorCode::not_found, "nothing lies in " + words_of("step", *window.steps) +
                                          "; the steps of this recording are " + std::to_string(least->id) + " to " +
                                          std::to_string(most->id)};
    }
    return {ErrorCode::not_found, "nothing of this recording lies in the window"};
}

} // namespace

Status write_as(std::string_view format, const SampleFeed& source, std::ostream& out) {
    const Result<const Format*> found = format_of(format);
    if (!found) {
        return found.error();
    }
    if ((*found)->write == nullptr) {
        return Error{ErrorCode::invalid_argument,
                     std::string(format) + " is several files: name the folder that they go into"};
    }
    return (*found)->write(source, out);
}

Status write_table(std::string_view format, std::string_view table, const SampleFeed& source, std::ostream& out) {
    const Result<const Format*> found = format_of(format);
    if (!found) {
        return found.error();
    }
    for (const FormatTable& each : (*found)->tables) {
        if (table == each.name) {
            return each.write(source, out);
        }
    }
    return Error{ErrorCode::not_found, std::string(format) + " has no table \"" + std::string(table) + '"'};
}

std::string recording_word(const recording::Metadata& run) {
    return base::hex_digits(run.recording_id[0]) + base::hex_digits(run.recording_id[1]);
}

std::optional<std::int64_t> rank_number(const recording::Metadata& run) {
    std::int64_t rank = 0;
    const char* const end = run.rank.data() + run.rank.size();
    const auto [at, error] = std::from_chars(run.rank.data(), end, rank);
    return error == std::errc() && at == end ? std::optional(rank) : std::nullopt;
}

std::vector<ExportFile> files_of(const Format& format, const recording::Metadata& run) {
    const std::optional<std::int64_t> rank = rank_number(run);
    std::vector<ExportFile> files;
    for (const FormatTable& table : format.tables) {
        files.push_back({table.name, std::string(table.name) + '/' + hive_folder("host", run.host) + '/' +
                                         hive_folder("rank", rank ? std::to_string(*rank) : "") + '/' +
                                         recording_word(run) + '.' + format.name});
    }
    return files;
}

} // namespace exporting

const std::vector<ExportFormat>& known_formats() {
    static const std::vector<ExportFormat> all = [] {
        std::vector<ExportFormat> made;
        for (const exporting::Format* format : exporting::formats()) {
            made.push_back({format->name, format->meaning, format->write == nullptr});
        }
        return made;
    }();
    return all;
}

Status export_recording(const std::string& recording, std::string_view format, std::ostream& out) {
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    return run.ok() ? exporting::write_as(format, exporting::samples_of(*run), out) : run.error();
}

Result<std::vector<ExportFile>> export_files(const std::string& recording, std::string_view format) {
    const Result<const exporting::Format*> found = exporting::format_of(format);
    if (!found) {
        return found.error();
    }
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    if (!run) {
        return run.error();
    }
    return exporting::files_of(**found, run->facts->metadata);
}

Status export_table(const std::string& recording, std::string_view format, std::string_view table, std::ostream& out) {
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    return run.ok() ? exporting::write_table(format, table, exporting::samples_of(*run), out) : run.error();
}

Result<std::vector<std::string>> export_recording(const std::string& recording, std::string_view format,
                                                  std::ostream& out, const ExportWindow& window) {
    const Result<const exporting::Format*> wanted = exporting::format_of(format);
    if (!wanted.ok()) {
        return wanted.error();
    }
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    if (!run.ok()) {
        return run.error();
    }
    Result<exporting::WindowedFeed> part = exporting::window_of(*run, window, (*wanted)->most_slices);
    if (!part.ok()) {
        return part.error();
    }
    part->feed.tell = [&notes = part->notes](std::string sentence) {
        notes.push_back(std::move(sentence));
    };
    if (part->given == nullptr) {
        const Status written = exporting::write_as(format, part->feed, out);
        return written.ok() ? Result<std::vector<std::string>>(std::move(part->notes)) : written.error();
    }
    exporting::HeldBack held(*out.rdbuf(), *part->given);
    std::ostream stream(&held);
    stream.setstate(out.rdstate());
    const Status written = exporting::write_as(format, part->feed, stream); // flushes
    if (!written.ok()) {
        return written.error();
    }
    if (part->given->found == 0) {
        return exporting::nothing_in(*run, window, *part->given);
    }
    return std::move(part->notes);
}

} // namespace plumb
