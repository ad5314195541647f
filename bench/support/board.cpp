// SPDX-License-Identifier: Apache-2.0
#include "support/board.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <thread>

namespace bench {
namespace {

std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    std::string line;
    while (std::getline(info, line)) {
        if (line.rfind("model name", 0) == 0) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown cpu";
}

std::string load_average() {
    double load[1] = {0};
    return getloadavg(load, 1) == 1 ? fmt::format("{:.1f}", load[0]) : "unknown";
}

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

/// Characters, not bytes, of UTF-8.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

[[noreturn]] void refuse(const std::string& sentence) {
    fmt::print(stderr, "{}\n", sentence);
    std::exit(2);
}

} // namespace

std::string Options::value(const std::string& key, const std::string& otherwise) const {
    for (const auto& [known, given] : values) {
        if (known == key) {
            return given;
        }
    }
    return otherwise;
}

Options parse_options(int argc, char** argv, const std::string& what,
                      const std::vector<std::pair<std::string, std::string>>& keys) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto known = std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.first == word; });
        if (word == "--help" || word == "-h") {
            fmt::print(
                "{}\n\n  --json FILE   write the figures as flat JSON\n  --check       exit 1 when a target is missed\n",
                what);
            for (const auto& [key, meaning] : keys) {
                fmt::print("  {} {}\n", key, meaning);
            }
            std::exit(0);
        } else if (word == "--check") {
            options.check = true;
        } else if ((word == "--json" || known != keys.end()) && i + 1 < argc) {
            ++i;
            if (word == "--json") {
                options.json = argv[i];
            } else {
                options.values.emplace_back(word, argv[i]);
            }
        } else {
            refuse(fmt::format("\"{}\" is no option, or its value is missing; --help lists them", word));
        }
    }
    return options;
}

Board::Board(Options options) : options_(std::move(options)) {
    fmt::print("{} · {} cpus · {} · load {} when this began\n", cpu_model(), std::thread::hardware_concurrency(),
               compiler, load_average());
}

void Board::merge(const std::string& prefix, const Figures& figures) {
    for (const auto& [key, value] : figures) {
        figures_[prefix + key] = value;
    }
}

void Board::say(const std::string& line) const {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

void Board::table(const std::string& title, const std::vector<std::string>& columns) {
    title_ = title;
    rows_.clear();
    std::vector<std::string> head = {""};
    head.insert(head.end(), columns.begin(), columns.end());
    head.insert(head.end(), {"target", ""});
    rows_.push_back(std::move(head));
}

void Board::row(const std::string& label, const std::vector<std::string>& cells, const std::string& judged,
                std::optional<Target> target) {
    std::vector<std::string> line = {label};
    line.insert(line.end(), cells.begin(), cells.end());
    line.resize(rows_.front().size() - 2);
    if (target) {
        const double value = get(figures_, judged).median;
        const bool met = target->bound == Bound::at_most ? value <= target->limit : value >= target->limit;
        line.push_back(fmt::format("{} {:g}", target->bound == Bound::at_most ? "<=" : ">=", target->limit));
        line.push_back(met ? "PASS" : "MISS");
        ++judged_;
        if (!met) {
            misses_.push_back(fmt::format("{} = {}, target {}", judged, text(value, 3), line[line.size() - 2]));
        }
    }
    rows_.push_back(std::move(line));
}

void Board::end_table() {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& line : rows_) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], width_of(line[i]));
        }
    }
    fmt::print("\n{}\n", title_);
    for (const auto& line : rows_) {
        std::string out;
        for (std::size_t i = 0; i < line.size(); ++i) {
            out += i == 0 ? fmt::format("  {:<{}}", line[i], widths[i]) : fmt::format("  {:>{}}", line[i], widths[i]);
        }
        fmt::print("{}\n", out.substr(0, out.find_last_not_of(' ') + 1));
    }
    std::fflush(stdout);
}

int Board::finish() {
    fmt::print("\n{} of {} targets met\n", judged_ - static_cast<int>(misses_.size()), judged_);
    for (const std::string& miss : misses_) {
        fmt::print("MISS {}\n", miss);
    }
    figures_["targets"] = judged_;
    figures_["misses"] = static_cast<double>(misses_.size());
    if (!options_.json.empty() && !write_json(options_.json, figures_)) {
        return 2;
    }
    return options_.check && !misses_.empty() ? 1 : 0;
}

std::string text(double value, int digits) {
    return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : std::string("n/a");
}

std::string range(const Spread& spread, int digits) {
    return text(spread.low, digits) + ".." + text(spread.high, digits);
}

} // namespace bench
