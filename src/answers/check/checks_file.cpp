// SPDX-License-Identifier: Apache-2.0
#include "answers/check/checks_file.hpp"

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace plumb {
namespace {

using nlohmann::json;

constexpr std::streamsize largest_file = 1 << 20;
constexpr const char* known = "schema, phase, expect, coverage, drops, pending, node_check, cv";

/// Each takes the value of its key; an empty sentence where it is right.
using Taker = std::function<std::string(const json&, Invariants&)>;

std::string take_phase(const json& value, Invariants& into) {
    const auto phase = value.is_string() ? page::value_of<Phase>(value.get<std::string>()) : std::nullopt;
    if (!phase || *phase == Phase::none) {
        return "phase is \"decode\", \"prefill\" or \"mixed\"";
    }
    into.phase = *phase;
    return {};
}

std::string take_expect(const json& value, Invariants& into) {
    if (!value.is_array()) {
        return "expect is a list such as [\"lm_head=1/step\"]";
    }
    for (const json& words : value) {
        if (!words.is_string()) {
            return "expect is a list such as [\"lm_head=1/step\"]";
        }
        const Result<ExpectedCalls> expected = parse_expected_calls(words.get<std::string>());
        if (!expected) {
            return expected.error().message;
        }
        into.calls.push_back(*expected);
    }
    return {};
}

Taker count_into(const char* name, std::optional<std::uint64_t> Invariants::*member) {
    return [=](const json& value, Invariants& into) -> std::string {
        if (!value.is_number_unsigned()) {
            return std::string(name) + " is a whole number from 0 on";
        }
        into.*member = value.get<std::uint64_t>();
        return {};
    };
}

Taker number_into(const char* name, std::optional<double> Invariants::*member) {
    return [=](const json& value, Invariants& into) -> std::string {
        if (!value.is_number()) {
            return std::string(name) + " is a number";
        }
        into.*member = value.get<double>();
        return {};
    };
}

std::string take_node_check(const json& value, Invariants& into) {
    if (!value.is_boolean()) {
        return "node_check is true or false";
    }
    into.node_check = value.get<bool>();
    return {};
}

std::string take_schema(const json& value, Invariants&) {
    return value == "plumb.checks/1" ? "" : "schema is \"plumb.checks/1\"";
}

const std::map<std::string, Taker>& takers() {
    static const std::map<std::string, Taker> all{
        {"schema", take_schema},
        {"phase", take_phase},
        {"expect", take_expect},
        {"coverage", number_into("coverage", &Invariants::coverage)},
        {"drops", count_into("drops", &Invariants::drops)},
        {"pending", count_into("pending", &Invariants::pending)},
        {"node_check", take_node_check},
        {"cv", number_into("cv", &Invariants::variation)},
    };
    return all;
}

Error wrong(const std::string& path, const std::string& what) {
    return Error{ErrorCode::invalid_argument, path + ": " + what};
}

} // namespace

Result<Invariants> read_checks_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        return Error{ErrorCode::not_found, "cannot read the checks of " + path + "; name a file of checks with --file"};
    }
    std::string text(static_cast<std::size_t>(largest_file), '\0');
    in.read(text.data(), largest_file);
    if (in.gcount() == largest_file) {
        return wrong(path, "a file of checks is smaller than 1 MiB");
    }
    text.resize(static_cast<std::size_t>(in.gcount()));
    // A stack of open brackets would cost one call each in whoever walks the value.
    const auto shallow = [](int depth, json::parse_event_t, json&) {
        return depth <= 8;
    };
    const json file = json::parse(text, shallow, false);
    if (file.is_discarded() || !file.is_object()) {
        return wrong(path, "this is no JSON object; docs/reference/checks.md shows one");
    }
    if (!file.contains("schema")) {
        return wrong(path, "it lacks \"schema\": \"plumb.checks/1\"");
    }
    Invariants invariants;
    for (const auto& [key, value] : file.items()) {
        const auto taker = takers().find(key);
        if (taker == takers().end()) {
            return wrong(path, "there is no check \"" + key + "\"; known are " + known);
        }
        if (const std::string problem = taker->second(value, invariants); !problem.empty()) {
            return wrong(path, problem);
        }
    }
    return invariants;
}

} // namespace plumb
