// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_rows.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string_view>

namespace plumb::exporting::parquet {

namespace {

/// Puts the rows of a column in order, in memory that serves one column after the other.
class Order {
  public:
    /// Empty: as they are.
    Order(std::span<const std::uint32_t> rows, std::size_t count)
        : rows_(rows), count_(count), room_(std::make_unique_for_overwrite<std::int64_t[]>(rows.size())) {}

    /// In that order; one, where all have it. Until the next call.
    template <class T>
    std::span<T> operator()(T* values, bool same) const {
        static_assert(sizeof(T) <= sizeof(std::int64_t));
        if (same || rows_.empty()) {
            return {values, same ? 1 : count_};
        }
        T* const to = new (room_.get()) T[count_];
        for (std::size_t i = 0; i < count_; ++i) {
            to[i] = values[rows_[i]];
        }
        return {to, count_};
    }

  private:
    std::span<const std::uint32_t> rows_;
    std::size_t count_;
    std::unique_ptr<std::int64_t[]> room_;
};

} // namespace

void RowGroup::add_column(const char* name, ColumnType type, Given given, TextOfCode text_of) {
    if (std::string_view(name) == "begin") {
        begin_ = buffers_.size();
    }
    Buffer& buffer = buffers_.emplace_back();
    buffer.column = {name, type, given == Given::sometimes};
    buffer.text_of = std::move(text_of);
    switch (type) {
    case ColumnType::truth:
        buffer.truths = std::make_unique_for_overwrite<std::uint8_t[]>(most_rows);
        break;
    case ColumnType::integer:
        buffer.integers = std::make_unique_for_overwrite<std::int64_t[]>(most_rows);
        break;
    case ColumnType::real:
        buffer.reals = std::make_unique_for_overwrite<double[]>(most_rows);
        break;
    case ColumnType::text:
        buffer.codes = std::make_unique_for_overwrite<std::uint32_t[]>(most_rows);
        break;
    }
}

std::vector<ParquetColumn> RowGroup::columns() const {
    std::vector<ParquetColumn> columns;
    for (const Buffer& buffer : buffers_) {
        columns.push_back(buffer.column);
    }
    return columns;
}

/// Of the rows by their begins. A late row began before what came in order behind it, so of two alike the earlier one stays first.
std::vector<std::uint32_t> RowGroup::order() const {
    const std::int64_t* const begins = buffers_[begin_].integers.get();
    std::vector<std::uint32_t> sorted = late_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return begins[a] < begins[b]; });
    std::vector<std::uint32_t> all(rows_);
    std::uint32_t* to = all.data();
    std::size_t skipped = 0, next = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
        if (skipped < late_.size() && late_[skipped] == row) {
            ++skipped;
            continue;
        }
        while (next < sorted.size() && begins[sorted[next]] < begins[row]) {
            *to++ = sorted[next++];
        }
        *to++ = row;
    }
    std::copy(sorted.begin() + static_cast<std::ptrdiff_t>(next), sorted.end(), to);
    return all;
}

void RowGroup::put(ParquetWriter& file) {
    const std::vector<std::uint32_t> rows = late_.empty() ? std::vector<std::uint32_t>() : order();
    const Order in_order(rows, rows_);
    file.begin_group(rows_);
    for (Buffer& buffer : buffers_) {
        switch (buffer.column.type) {
        case ColumnType::truth:
            file.truths(in_order(buffer.truths.get(), buffer.same));
            break;
        case ColumnType::integer:
            file.integers(in_order(buffer.integers.get(), buffer.same));
            break;
        case ColumnType::real:
            file.reals(in_order(buffer.reals.get(), buffer.same));
            break;
        case ColumnType::text:
            file.texts(in_order(buffer.codes.get(), buffer.same), buffer.text_of);
            break;
        }
        buffer.same = true;
    }
    rows_ = 0;
    latest_ = no_integer;
    late_.clear();
}

} // namespace plumb::exporting::parquet
