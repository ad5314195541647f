// SPDX-License-Identifier: Apache-2.0
// A Parquet file, written front to back: row groups, column by column, and the footer. One data page and at most one dictionary per
// column and group, zstd. Owned by one export; one thread. Memory: a column of a row group, three times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/column.hpp"
#include "export/parquet_encoding.hpp"
#include "export/parquet_thrift.hpp"
#include "export/text_sink.hpp"

struct ZSTD_CCtx_s;

namespace plumb::exporting::parquet {

enum class ColumnType : std::uint8_t { truth, integer, real, text };

struct ParquetColumn {
    const char* name;
    ColumnType type;
    bool optional = false;
};

using KeyValues = std::vector<std::pair<std::string, std::string>>;

class Numbers;

class ParquetWriter {
  public:
    ParquetWriter(TextSink& sink, std::vector<ParquetColumn> columns);
    ~ParquetWriter();
    ParquetWriter(const ParquetWriter&) = delete;
    ParquetWriter& operator=(const ParquetWriter&) = delete;

    /// Then each column once, in order, by the call for its type: with a value for every row, or with one that all rows have. The
    /// values are written over.
    void begin_group(std::size_t rows);
    void truths(std::span<std::uint8_t> values);
    void integers(std::span<std::int64_t> values);
    void reals(std::span<double> values);
    /// `text_of` is asked once per code.
    void texts(std::span<std::uint32_t> codes, const TextOfCode& text_of);

    /// The footer. `sorted_by`: index of the column by which the rows of each group are in order.
    void finish(std::size_t sorted_by, const KeyValues& facts);

    /// False: memory ran out for a column, and the file is none.
    [[nodiscard]] bool good() const noexcept { return good_; }

  private:
    struct Statistics {
        std::int64_t missing = 0;
        std::string least, most; // PLAIN; empty: not told
    };
    struct Chunk {
        Encoding encoding = Encoding::plain;
        std::int64_t begin = 0;     // in the file
        std::int64_t data_page = 0; // in the file, as the other
        std::int64_t plain_bytes = 0, bytes = 0;
        Statistics statistics;

        /// How many of those rows have a value.
        [[nodiscard]] std::size_t there(std::size_t rows) const {
            return rows - static_cast<std::size_t>(statistics.missing);
        }
    };
    struct Group {
        std::size_t rows = 0;
        std::vector<Chunk> chunks;
    };
    struct Page {         // used again and again: fresh memory costs more than what is written into it
        std::string body; // before compression
        std::unique_ptr<char[]> room;
        std::size_t room_size = 0, packed_size = 0;
        [[nodiscard]] std::string_view packed() const { return {room.get(), packed_size}; }
    };

    [[nodiscard]] const ParquetColumn& column() const { return columns_[groups_.back().chunks.size()]; }
    [[nodiscard]] std::size_t rows() const { return groups_.back().rows; }
    /// Levels of the rows, where the column is optional; those that are there go on, or the one that all rows have.
    template <class T, class Missing>
    std::span<const T> present(std::span<T> values, std::string& body, Statistics& statistics, Missing missing);
    enum class Finds : std::uint8_t { all, neighbours };
    void pack(Page& page, Finds finds = Finds::all);
    void put_page(const Page& page, Chunk& chunk, std::size_t values, Encoding encoding, bool dictionary);
    /// The entries lie in the page's body.
    void put_dictionary(Page& page, std::size_t entries, Chunk& chunk);
    void put_data(const Page& page, Encoding encoding, Chunk& chunk);
    enum class Form : std::uint8_t { plain, bytes, bits }; // of integers: as they are, or differences by their width
    void pack(Page& page, std::string_view levels, std::span<const std::int64_t> values, std::size_t count, Form form);
    [[nodiscard]] Form best_form(std::span<const std::int64_t> values);
    void append(std::string_view bytes);
    void put_schema(CompactWriter& to) const;
    void put_chunk(CompactWriter& to, const ParquetColumn& column, const Chunk& chunk, std::size_t rows) const;

    TextSink& sink_;
    std::vector<ParquetColumn> columns_;
    struct Free {
        void operator()(ZSTD_CCtx_s* zstd) const;
    };
    std::unique_ptr<ZSTD_CCtx_s, Free> zstd_;
    std::vector<Group> groups_;
    std::int64_t at_ = 0; // bytes written
    bool good_ = true;
    Page page_, other_;
    std::string levels_bytes_;
    std::unique_ptr<Numbers> numbers_;
    std::vector<std::uint8_t> levels_;
    std::vector<std::uint32_t> indices_;
};

} // namespace plumb::exporting::parquet
