// SPDX-License-Identifier: Apache-2.0
// From rows to the columns of a Parquet file. Each value of a row goes into the buffer of its column at once: rows kept whole would be
// read from memory once for every column. Owned by one export; one thread. Memory: a row group, touched as it fills.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "export/parquet_file.hpp"

namespace plumb::exporting::parquet {

/// A function says the columns of a table once, of one row, to whom it is given:
///     to.integer("begin", Given::always, row.begin);
///     to.text("phase", Given::always, row.phase, phase_of_code);
/// to Schema, of any row, for the names and types; then to Values, of each row. One column is called "begin": rows are put in its order.
class RowGroup {
  public:
    static constexpr std::size_t most_rows = std::size_t{1} << 20;

    /// The end of a row whose values were given.
    void end_row() {
        const std::int64_t begin = buffers_[begin_].integers[buffers_[begin_].same ? 0 : rows_];
        if (begin >= latest_) {
            latest_ = begin;
        } else {
            late_.push_back(static_cast<std::uint32_t>(rows_));
        }
        ++rows_;
    }
    [[nodiscard]] bool full() const { return rows_ == most_rows; }
    [[nodiscard]] bool empty() const { return rows_ == 0; }

    /// Writes the rows, and forgets them. Of two that begin together the one that was given first comes first.
    void put(ParquetWriter& file);

    [[nodiscard]] std::vector<ParquetColumn> columns() const;
    [[nodiscard]] std::size_t begin_column() const { return begin_; }

  private:
    friend class Schema;
    friend class Values;

    struct Buffer { // one of the arrays is there
        ParquetColumn column;
        bool same = true; // all rows have the value of row 0, and the others are not filled in
        TextOfCode text_of;
        std::unique_ptr<std::uint8_t[]> truths;
        std::unique_ptr<std::int64_t[]> integers;
        std::unique_ptr<double[]> reals;
        std::unique_ptr<std::uint32_t[]> codes;
    };
    [[nodiscard]] std::vector<std::uint32_t> order() const;
    void add_column(const char* name, ColumnType type, Given given, TextOfCode text_of = {});

    std::vector<Buffer> buffers_;
    std::size_t begin_ = 0; // index of the column
    std::size_t rows_ = 0;
    std::int64_t latest_ = no_integer; // begin of those that came in order
    std::vector<std::uint32_t> late_;  // rows: the others
};

class Schema {
  public:
    explicit Schema(RowGroup& group) : group_(group) {}
    void truth(const char* name, Given given, std::uint8_t) { group_.add_column(name, ColumnType::truth, given); }
    void integer(const char* name, Given given, std::int64_t) { group_.add_column(name, ColumnType::integer, given); }
    void real(const char* name, Given given, double) { group_.add_column(name, ColumnType::real, given); }
    void text(const char* name, Given given, std::uint32_t, TextOfCode text_of) {
        group_.add_column(name, ColumnType::text, given, std::move(text_of));
    }

  private:
    RowGroup& group_;
};

class Values {
  public:
    explicit Values(RowGroup& group) : at_(group.buffers_.data()), row_(group.rows_) {}
    void truth(const char*, Given, std::uint8_t value) { put(value, at_->truths.get()); }
    void integer(const char*, Given, std::int64_t value) { put(value, at_->integers.get()); }
    void real(const char*, Given, double value) { put(value, at_->reals.get()); }
    template <class TextOf>
    void text(const char*, Given, std::uint32_t code, const TextOf&) {
        put(code, at_->codes.get());
    }

  private:
    template <class T>
    void put(T value, T* values) {
        RowGroup::Buffer& buffer = *at_++;
        if (buffer.same && row_ != 0) {
            if (std::memcmp(&value, values, sizeof value) == 0) { // of a real number, which may be none, the bits
                return;
            }
            std::fill(values + 1, values + row_, values[0]);
            buffer.same = false;
        }
        values[row_] = value;
    }

    RowGroup::Buffer* at_;
    std::size_t row_;
};

} // namespace plumb::exporting::parquet
