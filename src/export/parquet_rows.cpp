// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_rows.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace plumb::exporting::parquet {

namespace {

/// Puts the rows of a column in order.
class Order {
  public:
    /// Empty: as they are.
    Order(std::span<const std::uint32_t> rows, std::size_t count) : rows_(rows), count_(count) {}

    /// In that order; one, where all have it.
    template <class T>
    std::span<const T> operator()(const T* values, bool same, std::vector<T>& room) const {
        if (same || rows_.empty()) {
            return {values, same ? 1 : count_};
        }
        room.resize(count_);
        std::transform(rows_.begin(), rows_.end(), room.begin(), [&](std::uint32_t row) { return values[row]; });
        return room;
    }

  private:
    std::span<const std::uint32_t> rows_;
    std::size_t count_;
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

void RowGroup::put(ParquetWriter& file) {
    const bool moved = !late_.empty();
    if (moved) { // a late row began before what came in order behind it, so that of two alike the earlier one stays first
        const auto before = [begins = buffers_[begin_].integers.get()](std::uint32_t a, std::uint32_t b) {
            return begins[a] < begins[b];
        };
        std::stable_sort(late_.begin(), late_.end(), before);
        std::vector<std::uint32_t> all(rows_);
        std::merge(order_.begin(), order_.end(), late_.begin(), late_.end(), all.begin(), before);
        order_.swap(all);
    }
    const Order in_order(moved ? std::span<const std::uint32_t>(order_) : std::span<const std::uint32_t>(), rows_);
    std::vector<std::uint8_t> truths;
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    std::vector<std::uint32_t> codes;
    file.begin_group(rows_);
    for (Buffer& buffer : buffers_) {
        switch (buffer.column.type) {
        case ColumnType::truth:
            file.truths(in_order(buffer.truths.get(), buffer.same, truths));
            break;
        case ColumnType::integer:
            file.integers(in_order(buffer.integers.get(), buffer.same, integers));
            break;
        case ColumnType::real:
            file.reals(in_order(buffer.reals.get(), buffer.same, reals));
            break;
        case ColumnType::text:
            file.texts(in_order(buffer.codes.get(), buffer.same, codes), buffer.text_of);
            break;
        }
        buffer.same = true;
    }
    rows_ = 0;
    latest_ = no_integer;
    order_.clear();
    late_.clear();
}

} // namespace plumb::exporting::parquet
