// SPDX-License-Identifier: Apache-2.0
// What a description says of a document without any data: its JSON Schema, and the tables of the reference. Plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "page/describe.hpp"

namespace plumb::page {

struct FormField;

/// The form of a value. Made and moved out of line: it is made for every field of every document.
struct Form {
    Form();
    Form(const Form&);
    Form(Form&&) noexcept;
    Form& operator=(const Form&);
    Form& operator=(Form&&) noexcept;
    ~Form();

    enum class Kind { text, integer, number, boolean, figure, word, object, map, array, document, choice };
    Kind kind = Kind::text;
    bool or_null = false;           // in an array: a value that is not there
    std::vector<const char*> words; // of a word
    Limits limits;                  // of a number or text
    std::string name, sentence;     // of an object
    std::string schema;             // of an object that is a document: what its first field says
    std::vector<FormField> fields;  // of an object
    std::vector<Form> items;        // of an array: one; of a choice: each
};

struct FormField {
    std::string name, sentence;
    bool optional = false; // written only where there is something to say
    Form form;
};

template <class T>
[[nodiscard]] Form form_of();
[[nodiscard]] Form array_of(Form&& item);

/// Collects the fields of an object.
class FormFields {
  public:
    explicit FormFields(Form& object) : object_(object) { object.kind = Form::Kind::object; }

    void type(const char* name, const char* sentence);
    template <class T>
    void operator()(const char* name, [[maybe_unused]] const T& value, const char* sentence) {
        if constexpr (is_limited<T>) {
            (*this)(name, value.value, sentence);
            limit(value.limits);
        } else if constexpr (std::same_as<T, Word>) {
            add_word(name, sentence, value.words);
        } else if constexpr (is_optional<T>) {
            add(name, sentence, true, form_of<typename T::value_type>());
        } else {
            add(name, sentence, false, form_of<T>());
        }
    }
    template <class T>
    void operator()(const char* name, const T& value, const char* sentence, bool) {
        (*this)(name, value, sentence);
        last_is_optional();
    }
    template <class T>
    void or_null(const char* name, const std::optional<T>&, const char* sentence) {
        add(name, sentence, false, form_of<std::optional<T>>());
    }
    template <class Fields>
    void group(const char* name, const char* sentence, bool, Fields&& fields) {
        group(name, sentence, fields);
        last_is_optional();
    }
    template <class Fields>
    void group(const char* name, const char* sentence, Fields&& fields) {
        Form form;
        FormFields inner(form);
        fields(inner);
        add(name, sentence, false, std::move(form));
    }
    template <class B>
    void pairs(const char* name, const char* first, const char* second, const std::vector<std::pair<std::string, B>>&,
               const char* sentence) {
        Form item;
        FormFields inner(item);
        inner.add(first, "", false, form_of<std::string>());
        inner.add(second, "", false, form_of<B>());
        add(name, sentence, false, array_of(std::move(item)));
    }
    void map(const char* name, const std::vector<std::pair<std::string, std::string>>&, const char* sentence);

  private:
    void add(const char* name, const char* sentence, bool optional, Form&& form);
    void add_word(const char* name, const char* sentence, Words words);
    void limit(const Limits& limits);
    void last_is_optional();

    Form& object_;
};

template <class T>
Form form_of() {
    Form form;
    if constexpr (std::same_as<T, Figure>) {
        form.kind = Form::Kind::figure;
    } else if constexpr (std::same_as<T, Nested>) {
        form.kind = Form::Kind::document;
    } else if constexpr (is_optional<T>) {
        form = form_of<typename T::value_type>();
        form.or_null = true;
    } else if constexpr (is_vector<T>) {
        form = array_of(form_of<typename T::value_type>());
    } else if constexpr (Worded<T>) {
        form.kind = Form::Kind::word;
        form.words = all_words_of<T>();
    } else if constexpr (std::same_as<T, bool>) {
        form.kind = Form::Kind::boolean;
    } else if constexpr (std::integral<T>) {
        form.kind = Form::Kind::integer;
        if constexpr (std::unsigned_integral<T>) {
            form.limits.least = 0;
        }
    } else if constexpr (std::floating_point<T>) {
        form.kind = Form::Kind::number;
    } else if constexpr (Text<T>) {
        form.kind = Form::Kind::text;
    } else {
        FormFields fields(form);
        describe(fields, T{});
    }
    return form;
}

/// The form of a T; of one that has schema_of(), as a document.
template <class T>
[[nodiscard]] Form document_form() {
    Form form = form_of<T>();
    if constexpr (requires { schema_of(T{}); }) {
        form.schema = schema_of(T{});
    }
    return form;
}

/// What is one of several objects.
[[nodiscard]] Form choice_of_forms(std::vector<Form>&& forms);
template <class... T>
[[nodiscard]] Form choice_of() {
    std::vector<Form> forms;
    (forms.push_back(document_form<T>()), ...);
    return choice_of_forms(std::move(forms));
}

/// JSON Schema (draft 2020-12) of a document.
[[nodiscard]] std::string json_schema(const std::string& schema, const Form& document);
/// Its tables in Markdown: the document, then every named object once.
[[nodiscard]] std::string reference(const std::string& schema, const Form& document);

} // namespace plumb::page
