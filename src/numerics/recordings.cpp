// SPDX-License-Identifier: Apache-2.0
// The file-level functions of numerics.hpp: recordings as sources of checks.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "numerics/diverge.hpp"
#include "numerics/health.hpp"
#include "plumb/numerics.hpp"
#include "recording/reader.hpp"

namespace plumb {
namespace {

class RecordedChecks final : public numerics::CheckSource {
  public:
    explicit RecordedChecks(recording::Reader& reader) : reader_(reader) {}

    Status for_each_check(const std::function<bool(recording::TensorCheck&&)>& take) override {
        return reader_.for_each_check(take);
    }
    [[nodiscard]] std::string name_of(std::uint16_t id) const override {
        const auto found = std::find_if(reader_.names().begin(), reader_.names().end(),
                                        [id](const recording::NameInfo& name) { return name.id == id; });
        return found == reader_.names().end() ? std::string() : found->name;
    }

  private:
    recording::Reader& reader_;
};

std::string in_file(const std::string& path, const std::string& sentence) { return path + ": " + sentence; }

void add_notes(const recording::Reader& reader, const std::string& path, std::vector<std::string>& notes) {
    for (const std::string& note : reader.notes()) {
        notes.push_back(in_file(path, note));
    }
    for (const auto& [reason, count] : reader.counters().drops) {
        if (count != 0 && reason.find("check") != std::string::npos) {
            notes.push_back(in_file(path, std::to_string(count) + " lost: " + reason));
        }
    }
}

/// The last value; empty: none.
std::string description(const recording::Reader& reader, const std::string& of) {
    std::string last;
    for (const auto& [name, value] : reader.descriptions()) {
        last = name == of ? value : last;
    }
    return last;
}

/// What the session said of the tensors it looked at: with tensors=nonfinite they leave no check. Empty: none.
std::string looked_at(const recording::Reader& reader) {
    std::string last = description(reader, "checked");
    return last.rfind("0 ", 0) == 0 ? std::string() : last;
}

/// How many tensors with NaN or Inf the session counted; absent: it did not say, as when it was killed.
std::optional<std::uint64_t> counted_nonfinite(const recording::Reader& reader) {
    const std::string text = description(reader, "nonfinite");
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error == std::errc::result_out_of_range) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    return error == std::errc() && end == text.data() + text.size() ? std::optional(count) : std::nullopt;
}

void add_counts(const recording::Reader& reader, HealthReport& report, bool of_twin) {
    if (const std::optional<std::uint64_t> counted = counted_nonfinite(reader)) {
        numerics::add_count(report, *counted, of_twin);
    } else if (description(reader, "checked").rfind("tensors are ", 0) == 0) {
        report.notes.push_back(
            std::string("the ") + (of_twin ? "twin" : "run") +
            " has not ended, or was killed: how many tensors it looked at is not known; those with NaN or Inf that "
            "reached the recording are listed");
    }
}

} // namespace

Result<DivergeReport> diverge_recordings(const std::string& path_a, const std::string& path_b,
                                         const DivergeOptions& options) {
    Result<recording::Reader> a = recording::Reader::open(path_a);
    if (!a.ok()) {
        return a.error();
    }
    Result<recording::Reader> b = recording::Reader::open(path_b);
    if (!b.ok()) {
        return b.error();
    }
    RecordedChecks checks_a(*a);
    RecordedChecks checks_b(*b);
    Result<DivergeReport> report = numerics::diverge(checks_a, checks_b, options);
    if (report.ok()) {
        report->path_a = path_a;
        report->path_b = path_b;
        add_notes(*a, path_a, report->notes);
        add_notes(*b, path_b, report->notes);
    }
    return report;
}

Result<HealthReport> health_recording(const std::string& path, const std::string& twin_path) {
    Result<recording::Reader> run = recording::Reader::open(path);
    if (!run.ok()) {
        return run.error();
    }
    RecordedChecks checks(*run);
    if (twin_path.empty()) {
        Result<HealthReport> report = numerics::health(checks, nullptr, looked_at(*run));
        if (report.ok()) {
            report->path = path;
            add_counts(*run, *report, false);
            add_notes(*run, path, report->notes);
        }
        return report;
    }
    Result<recording::Reader> twin = recording::Reader::open(twin_path);
    if (!twin.ok()) {
        return twin.error();
    }
    RecordedChecks twin_checks(*twin);
    Result<HealthReport> report = numerics::health(checks, &twin_checks, looked_at(*run));
    if (report.ok()) {
        report->path = path;
        report->twin = twin_path;
        add_counts(*run, *report, false);
        add_counts(*twin, *report, true);
        add_notes(*run, path, report->notes);
        add_notes(*twin, twin_path, report->notes);
    }
    return report;
}

} // namespace plumb
