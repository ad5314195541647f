// SPDX-License-Identifier: Apache-2.0
#include "page/schema.hpp"

#include <algorithm>

namespace plumb::page {
namespace {

using base::JsonWriter;
using Kind = Form::Kind;

/// Every named object inside `form`, in the order of first use.
void collect(const Form& form, std::vector<const Form*>& found) {
    for (const Form& item : form.items) {
        collect(item, found);
    }
    if (form.kind != Kind::object) {
        return;
    }
    if (!form.name.empty()) {
        if (std::any_of(found.begin(), found.end(), [&](const Form* known) { return known->name == form.name; })) {
            return;
        }
        found.push_back(&form);
    }
    for (const FormField& field : form.fields) {
        collect(field.form, found);
    }
}

std::string key_of(const std::string& name) {
    std::string key = name;
    std::replace(key.begin(), key.end(), ' ', '_');
    return key;
}

void put_words(JsonWriter& json, const std::vector<const char*>& words) {
    json.key("enum");
    json.begin_array();
    for (const char* word : words) {
        json.value(word);
    }
    json.end();
}

void put_reference(JsonWriter& json, const std::string& name) { json.field("$ref", "#/$defs/" + key_of(name)); }

void put_limits(JsonWriter& json, const Limits& limits) {
    for (const auto& [name, limit] : {std::pair{"exclusiveMinimum", limits.above}, std::pair{"minimum", limits.least},
                                      std::pair{"maximum", limits.most}}) {
        if (limit) {
            json.field(name, *limit);
        }
    }
    if (*limits.pattern != '\0') {
        json.field("pattern", limits.pattern);
    }
}

bool is_limited_figure(const Form& form) { return form.kind == Kind::figure && form.limits.above.has_value(); }

void put_object(JsonWriter& json, const Form& form);

void put_form(JsonWriter& json, const Form& form);

void put_any_of(JsonWriter& json, const std::vector<Form>& forms) {
    json.key("anyOf");
    json.begin_array();
    for (const Form& form : forms) {
        put_form(json, form);
    }
    json.end();
}

/// A number within limits, or why there is none.
void put_figure(JsonWriter& json, const Limits& limits) {
    Form number = form_of<double>(), absent;
    number.limits = limits;
    FormFields fields(absent);
    fields("absent", std::string(), "");
    put_any_of(json, {number, absent});
}

/// The members of a schema of one value.
void put_value(JsonWriter& json, const Form& form) {
    switch (form.kind) {
    case Kind::text:
        json.field("type", "string");
        break;
    case Kind::integer:
        json.field("type", "integer");
        break;
    case Kind::number:
        json.field("type", "number");
        break;
    case Kind::boolean:
        if (form.limits.least) { // never false
            json.key("enum");
            json.begin_array();
            json.value(true);
            json.end();
            return;
        }
        json.field("type", "boolean");
        break;
    case Kind::figure:
        is_limited_figure(form) ? put_figure(json, form.limits) : put_reference(json, "figure");
        return;
    case Kind::word:
        put_words(json, form.words);
        break;
    case Kind::document:
        json.field("type", "object");
        break;
    case Kind::map:
        json.field("type", "object");
        json.key("required");
        json.begin_array();
        json.end();
        json.key("properties");
        json.begin_object();
        json.end();
        json.key("additionalProperties");
        put_form(json, form_of<std::string>());
        break;
    case Kind::array:
        json.field("type", "array");
        json.key("items");
        put_form(json, form.items.front());
        break;
    case Kind::object:
        form.name.empty() ? put_object(json, form) : put_reference(json, form.name);
        break;
    case Kind::choice:
        put_any_of(json, form.items);
        break;
    }
    put_limits(json, form.limits);
}

void put_form(JsonWriter& json, const Form& form) {
    json.begin_object();
    if (form.or_null) {
        json.key("anyOf");
        json.begin_array();
        json.begin_object();
        json.field("type", "null");
        json.end();
        json.begin_object();
        put_value(json, form);
        json.end();
        json.end();
    } else {
        put_value(json, form);
    }
    json.end();
}

/// The members of a schema of an object that the caller began.
void put_object(JsonWriter& json, const Form& form) {
    json.field("type", "object");
    json.key("required");
    json.begin_array();
    if (!form.schema.empty()) {
        json.value("schema");
    }
    for (const FormField& field : form.fields) {
        if (!field.optional) {
            json.value(field.name);
        }
    }
    json.end();
    json.key("properties");
    json.begin_object();
    if (!form.schema.empty()) {
        json.key("schema");
        json.begin_object();
        put_words(json, {form.schema.c_str()});
        json.end();
    }
    for (const FormField& field : form.fields) {
        json.key(field.name);
        put_form(json, field.form);
    }
    json.end();
    json.field("additionalProperties", false);
}

std::string type_text(const Form& form);

std::string joined(const std::vector<Form>& forms, const char* between) {
    std::string out;
    for (const Form& form : forms) {
        out += (out.empty() ? "" : between) + type_text(form);
    }
    return out;
}

std::string type_text(const Form& form) {
    switch (form.kind) {
    case Kind::text:
        return "string";
    case Kind::integer:
        return "integer";
    case Kind::number:
        return "number";
    case Kind::boolean:
        return "boolean";
    case Kind::figure:
        return "figure";
    case Kind::word: {
        std::string words;
        for (const char* word : form.words) {
            words += (words.empty() ? "`" : ", `") + std::string(word) + "`";
        }
        return words;
    }
    case Kind::map:
        return "object of strings";
    case Kind::array:
        return "array of " + type_text(form.items.front());
    case Kind::document:
        return "document";
    case Kind::choice:
        return joined(form.items, " or ");
    case Kind::object:
        break;
    }
    if (!form.name.empty()) {
        return form.name;
    }
    std::string fields;
    for (const FormField& field : form.fields) {
        fields += (fields.empty() ? "{`" : ", `") + field.name + "`";
    }
    return fields + "}";
}

void append_rows(std::string& out, const Form& form, const std::string& prefix) {
    for (const FormField& field : form.fields) {
        const bool group = field.form.kind == Kind::object && field.form.name.empty();
        const std::string name = prefix + "`" + field.name + "`";
        out += "| " + name + " | " + (group ? "object" : type_text(field.form)) +
               (field.form.or_null ? " or null" : "") + " | " + field.sentence +
               (field.optional ? (field.sentence.empty() ? "optional" : "; optional") : "") + " |\n";
        if (group) {
            append_rows(out, field.form, name + ".");
        }
    }
}

void append_table(std::string& out, const Form& form) {
    out += "| field | type | meaning |\n|---|---|---|\n";
    if (!form.schema.empty()) {
        out += "| `schema` | string | `" + form.schema + "` |\n";
    }
    append_rows(out, form, "");
}

} // namespace

Form::Form() = default;
Form::Form(const Form&) = default;
Form::Form(Form&&) noexcept = default;
Form& Form::operator=(const Form&) = default;
Form& Form::operator=(Form&&) noexcept = default;
Form::~Form() = default;

Form array_of(Form&& item) {
    Form form;
    form.kind = Kind::array;
    form.items.push_back(std::move(item));
    return form;
}

Form choice_of_forms(std::vector<Form>&& forms) {
    Form form;
    form.kind = Kind::choice;
    form.items = std::move(forms);
    return form;
}

void FormFields::type(const char* name, const char* sentence) {
    object_.name = name;
    object_.sentence = sentence;
}

void FormFields::add(const char* name, const char* sentence, bool optional, Form&& form) {
    object_.fields.push_back({name, sentence, optional, std::move(form)});
}

void FormFields::add_word(const char* name, const char* sentence, Words words) {
    Form form;
    form.kind = Kind::word;
    form.words.assign(words.begin(), words.end());
    add(name, sentence, false, std::move(form));
}

void FormFields::map(const char* name, const std::vector<std::pair<std::string, std::string>>&, const char* sentence) {
    Form form;
    form.kind = Kind::map;
    add(name, sentence, false, std::move(form));
}

void FormFields::limit(const Limits& limits) {
    Form& form = object_.fields.back().form;
    (form.items.empty() ? form : form.items.front()).limits = limits;
}

void FormFields::last_is_optional() { object_.fields.back().optional = true; }

std::string json_schema(const std::string& schema, const Form& document) {
    std::vector<const Form*> named;
    collect(document, named);
    std::string out;
    JsonWriter json(out, 2);
    json.begin_object();
    json.field("$schema", "https://json-schema.org/draft/2020-12/schema");
    json.field("title", schema);
    json.field("$ref", "#/$defs/root");
    json.key("$defs");
    json.begin_object();
    json.key("figure");
    json.begin_object();
    put_figure(json, {});
    json.end();
    for (const Form* form : named) {
        if (form != &document) {
            json.key(key_of(form->name));
            json.begin_object();
            put_object(json, *form);
            json.end();
        }
    }
    json.key("root");
    json.begin_object();
    document.kind == Kind::choice ? put_value(json, document) : put_object(json, document);
    json.finish();
    out += '\n';
    return out;
}

std::string reference(const std::string& schema, const Form& document) {
    std::vector<const Form*> named;
    collect(document, named);
    std::string out = "## `" + schema + "`\n\n";
    if (document.kind == Kind::choice) {
        out += "One of: " + joined(document.items, ", ") + ".\n";
    } else {
        out += document.sentence + "\n\n";
        append_table(out, document);
    }
    for (const Form* form : named) {
        if (form != &document) {
            out += "\n### " + form->name + "\n\n" + (form->sentence.empty() ? "" : form->sentence + "\n\n");
            append_table(out, *form);
        }
    }
    return out;
}

} // namespace plumb::page
