// SPDX-License-Identifier: Apache-2.0
#include "support/json_schema.hpp"

#include <regex.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "support/text_of_file.hpp"

namespace plumb::support {

namespace {

bool matches(const std::string& text, const std::string& pattern) {
    regex_t compiled; // std::regex does not compile without warnings everywhere
    if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
        return false;
    }
    const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

/// The part of JSON Schema that tests/schema uses. Empty: valid; else where and why not.
class SchemaCheck {
  public:
    explicit SchemaCheck(const json& schema) : root_(schema) {}
    [[nodiscard]] std::string problem(const json& value) const { return check(root_, value, "$"); }

  private:
    [[nodiscard]] static bool has_type(const json& value, const std::string& type) {
        return type == "integer"   ? value.is_number_integer()
               : type == "number"  ? value.is_number()
               : type == "string"  ? value.is_string()
               : type == "boolean" ? value.is_boolean()
               : type == "array"   ? value.is_array()
               : type == "null"    ? value.is_null()
                                   : type == "object" && value.is_object();
    }

    [[nodiscard]] std::string check(const json& schema, const json& value, const std::string& where) const {
        if (schema.contains("$ref")) {
            const auto target = schema["$ref"].get<std::string>().substr(1);
            return check(root_.at(json::json_pointer(target)), value, where);
        }
        if (schema.contains("anyOf")) {
            for (const json& option : schema["anyOf"]) {
                if (check(option, value, where).empty()) {
                    return {};
                }
            }
            return where + " is none of the allowed forms: " + value.dump();
        }
        if (schema.contains("enum") &&
            std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
            return where + " is not one of " + schema["enum"].dump();
        }
        if (schema.contains("type") && !has_type(value, schema["type"])) {
            return where + " is no " + schema["type"].get<std::string>();
        }
        if (value.is_object() && !schema.contains("properties")) {
            return {}; // any object
        }
        return value.is_object()  ? check_object(schema, value, where)
               : value.is_array() ? check_array(schema, value, where)
                                  : check_bounds(schema, value, where);
    }

    [[nodiscard]] static std::string check_bounds(const json& schema, const json& value, const std::string& where) {
        const bool number = value.is_number();
        if ((number && schema.contains("minimum") && value < schema["minimum"]) ||
            (number && schema.contains("maximum") && value > schema["maximum"]) ||
            (number && schema.contains("exclusiveMinimum") && value <= schema["exclusiveMinimum"])) {
            return where + " is out of bounds: " + value.dump();
        }
        if (value.is_string() && schema.contains("pattern") &&
            !matches(value.get<std::string>(), schema["pattern"].get<std::string>())) {
            return where + " does not match " + schema["pattern"].dump() + ": " + value.dump();
        }
        return {};
    }

    [[nodiscard]] std::string check_array(const json& schema, const json& value, const std::string& where) const {
        for (std::size_t index = 0; index < value.size(); ++index) {
            if (std::string found = check(schema.at("items"), value[index], where + "[" + std::to_string(index) + "]");
                !found.empty()) {
                return found;
            }
        }
        return {};
    }

    [[nodiscard]] std::string check_object(const json& schema, const json& value, const std::string& where) const {
        for (const json& name : schema.at("required")) {
            if (!value.contains(name.get<std::string>())) {
                return where + " lacks " + name.get<std::string>();
            }
        }
        for (const auto& [name, member] : value.items()) {
            const bool named = schema.at("properties").contains(name);
            if (!named && !schema.at("additionalProperties").is_object()) {
                return where + "." + name + " is not in the schema";
            }
            const json& rule = named ? schema["properties"][name] : schema["additionalProperties"];
            if (std::string found = check(rule, member, where + "." + name); !found.empty()) {
                return found;
            }
        }
        return {};
    }

    const json& root_;
};

void collect_keys(const json& value, std::set<std::string>& keys) {
    for (const auto& [name, member] : value.items()) {
        if (value.is_object()) {
            keys.insert(name);
        }
        if (member.is_structured()) {
            collect_keys(member, keys);
        }
    }
}

} // namespace

json parsed(const std::string& text) { return json::parse(text); }

std::string schema_problems(const std::string& root, const std::string& schema_file,
                            const std::vector<json>& documents) {
    const json schema = json::parse(text_of_file(root + "/tests/schema/" + schema_file));
    const std::string page = text_of_file(root + "/docs/reference/report_schema.md");
    std::string problems;
    std::set<std::string> keys;
    for (const json& document : documents) {
        if (const std::string problem = SchemaCheck(schema).problem(document); !problem.empty()) {
            problems += problem + "\n";
        }
        collect_keys(document, keys);
    }
    for (const std::string& key : keys) {
        if (page.find("`" + key + "`") == std::string::npos) {
            problems += key + " is not in docs/reference/report_schema.md\n";
        }
    }
    return problems;
}

} // namespace plumb::support
