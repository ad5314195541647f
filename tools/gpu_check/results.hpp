// SPDX-License-Identifier: Apache-2.0
// The result file: JSON lines (docs/internals/gpu.md has the schema), each appended in one write, so that a killed run keeps what it
// has and several processes of one run may write. Owned by its process; one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gpu_check {

using Json = nlohmann::ordered_json;

inline constexpr const char* schema = "plumb.gpu_check/1";

/// Median and spread of samples.
struct Spread {
    std::size_t count = 0;
    double median = 0, p10 = 0, p90 = 0, min = 0, max = 0;
};
/// REQUIRES: not empty.
[[nodiscard]] Spread spread_of(std::vector<double> samples);
/// `share` of the samples are no larger. REQUIRES: not empty.
[[nodiscard]] double quantile_of(std::vector<double> samples, double share);

class ResultFile {
  public:
    /// `section` is written into each line.
    ResultFile(std::string path, std::string section) : path_(std::move(path)), section_(std::move(section)) {}

    /// Appends one line; false when the file cannot be written.
    bool append(Json line) const;
    /// A number that was measured; `at`: what it depends on, {"nodes": 100}.
    void figure(const std::string& name, double value, const char* unit, const Json& at = Json::object()) const;
    void figure(const std::string& name, const Spread& spread, const char* unit, const Json& at = Json::object()) const;
    void text(const std::string& name, const std::string& value) const;
    /// A number that could not be had, with the reason.
    void absent(const std::string& name, const std::string& reason, const Json& at = Json::object()) const;
    void note(const std::string& sentence) const;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::string& section() const { return section_; }

  private:
    std::string path_;
    std::string section_;
};

} // namespace gpu_check
