// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace gpu_check {

Spread spread_of(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    const auto at = [&samples](double share) {
        return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
    };
    return {samples.size(), at(0.5), at(0.1), at(0.9), samples.front(), samples.back()};
}

double quantile_of(std::vector<double> samples, double share) {
    const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size()))) - 1;
    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(at), samples.end());
    return samples[at];
}

bool ResultFile::append(Json line) const {
    Json whole;
    whole["record"] = line["record"];
    whole["section"] = section_;
    whole.update(line);
    const std::string text = whole.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) {
        return false;
    }
    const bool whole_line = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    return close(file) == 0 && whole_line;
}

void ResultFile::figure(const std::string& name, double value, const char* unit, const Json& at) const {
    if (!std::isfinite(value)) {
        absent(name, "it came out as no number", at);
        return;
    }
    append({{"record", "figure"}, {"name", name}, {"at", at}, {"unit", unit}, {"value", value}});
}

void ResultFile::figure(const std::string& name, const Spread& spread, const char* unit, const Json& at) const {
    append({{"record", "figure"},
            {"name", name},
            {"at", at},
            {"unit", unit},
            {"value", spread.median},
            {"samples", spread.count},
            {"p10", spread.p10},
            {"p90", spread.p90},
            {"min", spread.min},
            {"max", spread.max}});
}

void ResultFile::text(const std::string& name, const std::string& value) const {
    append({{"record", "text"}, {"name", name}, {"value", value}});
}

void ResultFile::absent(const std::string& name, const std::string& reason, const Json& at) const {
    append({{"record", "absent"}, {"name", name}, {"at", at}, {"reason", reason}});
}

void ResultFile::note(const std::string& sentence) const { append({{"record", "note"}, {"sentence", sentence}}); }

} // namespace gpu_check
