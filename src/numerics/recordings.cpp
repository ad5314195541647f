// SPDX-License-Identifier: Apache-2.0
// The file-level functions of numerics.hpp: recordings as sources of checks.
#include <algorithm>

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

/// What the session said of the tensors it looked at: with check=nonfinite they leave no check. Empty: none.
std::string looked_at(const recording::Reader& reader) {
    for (const auto& [name, value] : reader.descriptions()) {
        if (name == "checked" && value.rfind("0 ", 0) != 0) {
            return value;
        }
    }
    return {};
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
        add_notes(*run, path, report->notes);
        add_notes(*twin, twin_path, report->notes);
    }
    return report;
}

} // namespace plumb
