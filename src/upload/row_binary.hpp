// SPDX-License-Identifier: Apache-2.0
// Rows as ClickHouse's format RowBinary has them, and what the sums of their columns must then be in a database. Given to
// exporting::tables::describe(). Owned by one upload; one thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "export/column.hpp"

namespace plumb::upload {

using exporting::Given;
static_assert(std::endian::native == std::endian::little, "RowBinary is little-endian, and numbers are copied");

/// Of one column, modulo 2^64: integers and truths added up, texts by their length, reals by how many there are.
using Sums = std::vector<std::uint64_t>;

class RowBinary {
  public:
    void begin_row(std::uint64_t upload) {
        column_ = 0;
        append(upload);
    }
    void truth(const char*, Given given, std::uint8_t value) {
        if (put_given(given, value != exporting::no_truth)) {
            rows_ += static_cast<char>(value);
            sums_[column_ - 1] += value;
        }
    }
    void integer(const char*, Given given, std::int64_t value) {
        if (put_given(given, value != exporting::no_integer)) {
            append(value);
            sums_[column_ - 1] += static_cast<std::uint64_t>(value);
        }
    }
    void real(const char*, Given given, double value) {
        if (put_given(given, !std::isnan(value))) {
            append(value);
            ++sums_[column_ - 1];
        }
    }
    template <class TextOf>
    void text(const char*, Given given, std::uint32_t code, const TextOf& text_of) {
        if (put_given(given, code != exporting::no_text)) {
            const Text& text = text_at(code, text_of);
            rows_ += text.encoded;
            sums_[column_ - 1] += text.length;
        }
    }

    /// Of the rows since clear().
    [[nodiscard]] const std::string& rows() const { return rows_; }
    void clear() { rows_.clear(); }
    /// Of all rows.
    [[nodiscard]] const Sums& sums() const { return sums_; }

  private:
    struct Text {
        std::string encoded; // empty: not asked for yet
        std::size_t length = 0;
    };

    /// Whether a value follows.
    bool put_given(Given given, bool there) {
        if (++column_ > sums_.size()) {
            sums_.push_back(0);
            texts_.emplace_back();
        }
        if (given == Given::sometimes) {
            rows_ += there ? '\0' : '\1';
            return there;
        }
        return true;
    }
    template <class T>
    void append(T value) {
        char bytes[sizeof value];
        std::memcpy(bytes, &value, sizeof value);
        rows_.append(bytes, sizeof value);
    }
    template <class TextOf>
    const Text& text_at(std::uint32_t code, const TextOf& text_of) {
        std::vector<Text>& texts = texts_[column_ - 1];
        if (code >= texts.size()) {
            texts.resize(std::size_t{code} + 1);
        }
        Text& text = texts[code];
        if (text.encoded.empty()) {
            const std::string valid = base::valid_utf8(text_of(code));
            text.length = valid.size();
            std::size_t length = valid.size();
            for (; length >= 128; length >>= 7) {
                text.encoded += static_cast<char>(length | 128);
            }
            text.encoded += static_cast<char>(length);
            text.encoded += valid;
        }
        return text;
    }

    std::string rows_;
    std::size_t column_ = 0; // of the row, counted from 1
    Sums sums_;
    std::vector<std::vector<Text>> texts_; // by column and code
};

/// Names of the columns, and the select that gives their sums.
class ColumnNames {
  public:
    void truth(const char* name, Given, std::uint8_t) { add(name, "sum(" + std::string(name) + ')'); }
    void integer(const char* name, Given, std::int64_t) { add(name, "sum(" + std::string(name) + ')'); }
    void real(const char* name, Given, double) { add(name, "count(" + std::string(name) + ')'); }
    template <class TextOf>
    void text(const char* name, Given, std::uint32_t, const TextOf&) {
        add(name, "sum(length(" + std::string(name) + "))");
    }

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const std::string& names() const { return names_; } // "recording, host, …"
    [[nodiscard]] const std::string& sums() const { return sums_; }   // "ifNull(sum(length(recording)), 0), …"

  private:
    void add(const char* name, const std::string& sum) {
        ++size_;
        names_ += (names_.empty() ? "" : ", ") + std::string(name);
        sums_ += (sums_.empty() ? "" : ", ") + ("ifNull(" + sum + ", 0)");
    }
    std::size_t size_ = 0;
    std::string names_, sums_;
};

} // namespace plumb::upload
