// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_file.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <zstd.h>

#include "base/utf8.hpp"

namespace plumb::exporting::parquet {

namespace {

constexpr std::string_view magic = "PAR1";
constexpr int zstd_level = 1; // 3 takes four times as long for 1 % less
// Integers that are noise take 4 % less with this than with the level's own table, which finds matches by chance.
constexpr int neighbours_hash_log = 8;
constexpr std::int32_t codec_zstd = 6;
constexpr std::int32_t data_page = 0;
constexpr std::int32_t dictionary_page = 2;

// Of parquet.thrift, by ColumnType: BOOLEAN, INT64, DOUBLE, BYTE_ARRAY.
constexpr std::int32_t physical_types[] = {0, 2, 5, 6};

} // namespace

/// Distinct numbers, as long as they are few: open addressing over their bits.
class Numbers {
  public:
    static constexpr std::size_t most = 65536;

    /// Forgets those of before. False: there are too many.
    bool index(std::span<const double> values, std::vector<std::uint32_t>& indices) {
        all.clear();
        slots_.assign(least_slots, 0);
        indices.resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::uint32_t& slot = slot_of(values[i]);
            if (slot == 0) {
                if (all.size() == most) {
                    return false;
                }
                all.push_back(values[i]);
                slot = static_cast<std::uint32_t>(all.size());
            }
            indices[i] = slot - 1;
            if (2 * all.size() > slots_.size()) {
                grow();
            }
        }
        return true;
    }

    std::vector<double> all;

  private:
    static constexpr std::size_t least_slots = 1024; // a power of two

    std::uint32_t& slot_of(double value) {
        const auto bits = std::bit_cast<std::uint64_t>(value);
        std::size_t at = bits * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(slots_.size()));
        while (slots_[at] != 0 && std::bit_cast<std::uint64_t>(all[slots_[at] - 1]) != bits) {
            at = (at + 1) % slots_.size();
        }
        return slots_[at];
    }
    void grow() {
        slots_.assign(4 * slots_.size(), 0);
        for (std::size_t i = 0; i < all.size(); ++i) {
            slot_of(all[i]) = static_cast<std::uint32_t>(i + 1);
        }
    }

    std::vector<std::uint32_t> slots_; // index + 1
};

void ParquetWriter::Free::operator()(ZSTD_CCtx_s* zstd) const { ZSTD_freeCCtx(zstd); }

ParquetWriter::ParquetWriter(TextSink& sink, std::vector<ParquetColumn> columns)
    : sink_(sink), columns_(std::move(columns)), zstd_(ZSTD_createCCtx()), good_(zstd_ != nullptr),
      numbers_(std::make_unique<Numbers>()) {
    append(magic);
}

ParquetWriter::~ParquetWriter() = default;

void ParquetWriter::append(std::string_view bytes) {
    sink_.append(bytes);
    at_ += static_cast<std::int64_t>(bytes.size());
}

void ParquetWriter::begin_group(std::size_t rows) { groups_.push_back({rows, {}}); }

template <class T, class Missing>
std::span<const T> ParquetWriter::present(std::span<T> values, std::string& body, Statistics& statistics,
                                          Missing missing) {
    if (!column().optional) {
        return values;
    }
    levels_.resize(values.size());
    std::size_t there = 0;
    for (std::size_t i = 0; i < values.size(); ++i) { // without a branch: what is missing is as good as random
        levels_[i] = missing(values[i]) ? 0 : 1;
        values[there] = values[i];
        there += levels_[i];
    }
    statistics.missing = static_cast<std::int64_t>(values.size() < rows() ? (1 - there) * rows() : rows() - there);
    append_levels(body, levels_, rows());
    return values.first(there);
}

void ParquetWriter::pack(Page& page, Finds finds) {
    if (const std::size_t bound = ZSTD_compressBound(page.body.size()); bound > page.room_size) {
        page.room = std::make_unique_for_overwrite<char[]>(bound);
        page.room_size = bound;
    }
    const auto set = [this](ZSTD_cParameter parameter, int value) {
        good_ = good_ && ZSTD_isError(ZSTD_CCtx_setParameter(zstd_.get(), parameter, value)) == 0;
    };
    set(ZSTD_c_compressionLevel, zstd_level);
    set(ZSTD_c_hashLog, finds == Finds::neighbours ? neighbours_hash_log : 0);
    const std::size_t packed =
        !good_ ? 0 : ZSTD_compress2(zstd_.get(), page.room.get(), page.room_size, page.body.data(), page.body.size());
    good_ = good_ && ZSTD_isError(packed) == 0;
    page.packed_size = good_ ? packed : 0;
}

void ParquetWriter::put_page(const Page& page, Chunk& chunk, std::size_t values, Encoding encoding, bool dictionary) {
    std::string head;
    CompactWriter to(head);
    to.int32(1, dictionary ? dictionary_page : data_page);
    to.int32(2, static_cast<std::int32_t>(page.body.size()));
    to.int32(3, static_cast<std::int32_t>(page.packed_size));
    to.begin_struct(dictionary ? 7 : 5);
    to.int32(1, static_cast<std::int32_t>(values));
    to.int32(2, static_cast<std::int32_t>(encoding));
    if (!dictionary) {
        to.int32(3, static_cast<std::int32_t>(Encoding::rle)); // definition levels
        to.int32(4, static_cast<std::int32_t>(Encoding::rle)); // repetition levels, of which there are none
    }
    to.end();
    to.end();
    chunk.plain_bytes += static_cast<std::int64_t>(head.size() + page.body.size());
    chunk.bytes += static_cast<std::int64_t>(head.size() + page.packed_size);
    append(head);
    append(page.packed());
}

void ParquetWriter::put_dictionary(Page& page, std::size_t entries, Chunk& chunk) {
    pack(page);
    chunk.begin = at_;
    put_page(page, chunk, entries, Encoding::plain, true);
}

void ParquetWriter::put_data(const Page& page, Encoding encoding, Chunk& chunk) {
    chunk.encoding = encoding;
    chunk.data_page = at_;
    if (encoding != Encoding::rle_dictionary) {
        chunk.begin = at_;
    }
    put_page(page, chunk, rows(), encoding, false);
    groups_.back().chunks.push_back(std::move(chunk));
}

void ParquetWriter::truths(std::span<std::uint8_t> values) {
    Chunk chunk;
    page_.body.clear();
    const std::span<const std::uint8_t> there =
        present(values, page_.body, chunk.statistics, [](std::uint8_t value) { return value == no_truth; });
    append_bits(page_.body, there, chunk.there(rows()));
    pack(page_);
    put_data(page_, Encoding::plain, chunk);
}

void ParquetWriter::pack(Page& page, std::string_view levels, std::span<const std::int64_t> values, std::size_t count,
                         Form form) {
    page.body = levels;
    switch (form) {
    case Form::plain:
        append_plain(page.body, values);
        pack(page, Finds::neighbours);
        return;
    case Form::bytes:
        append_deltas(page.body, values, count, Width::bytes);
        break;
    case Form::bits:
        append_deltas(page.body, values, count, Width::bits);
        break;
    }
    pack(page);
}

/// Differences in bytes, in which is found what comes again. Where all is noise, what takes least of some in the middle: bits, or the
/// values as they are, for a difference holds the noise of two.
ParquetWriter::Form ParquetWriter::best_form(std::span<const std::int64_t> values) {
    constexpr std::size_t some = 2048;
    const std::size_t count = std::min(some, values.size());
    const std::span<const std::int64_t> middle = values.subspan((values.size() - count) / 2, count);
    pack(page_, {}, middle, count, Form::bytes);
    Form best = Form::bytes;
    std::size_t least = page_.packed_size;
    if (least > count) {
        for (const Form form : {Form::bits, Form::plain}) {
            pack(page_, {}, middle, count, form);
            if (page_.packed_size < least) {
                least = page_.packed_size;
                best = form;
            }
        }
    }
    return best;
}

void ParquetWriter::integers(std::span<std::int64_t> values) {
    Chunk chunk;
    levels_bytes_.clear();
    const std::span<const std::int64_t> there =
        present(values, levels_bytes_, chunk.statistics, [](std::int64_t value) { return value == no_integer; });
    if (!there.empty()) {
        std::int64_t least = there[0], most = there[0];
        for (const std::int64_t value : there) {
            least = std::min(least, value);
            most = std::max(most, value);
        }
        append_plain(chunk.statistics.least, std::span(&least, 1));
        append_plain(chunk.statistics.most, std::span(&most, 1));
    }
    const std::size_t count = chunk.there(rows());
    const Form form = there.size() == count ? best_form(there) : Form::bytes;
    pack(page_, levels_bytes_, there, count, form);
    put_data(page_, form == Form::plain ? Encoding::plain : Encoding::delta_binary_packed, chunk);
}

void ParquetWriter::reals(std::span<double> values) {
    Chunk chunk;
    page_.body.clear();
    const std::span<const double> there =
        present(values, page_.body, chunk.statistics, [](double value) { return std::isnan(value); });
    Encoding encoding = Encoding::plain;
    if (numbers_->index(there, indices_)) {
        encoding = Encoding::rle_dictionary;
        other_.body.clear();
        append_plain(other_.body, numbers_->all);
        put_dictionary(other_, numbers_->all.size(), chunk);
        append_indices(page_.body, indices_, chunk.there(rows()), numbers_->all.size());
    } else { // too many: then there is one for each row
        append_plain(page_.body, there);
    }
    pack(page_);
    put_data(page_, encoding, chunk);
}

void ParquetWriter::texts(std::span<std::uint32_t> codes, const TextOfCode& text_of) {
    Chunk chunk;
    page_.body.clear();
    other_.body.clear(); // the dictionary
    const std::span<const std::uint32_t> there =
        present(codes, page_.body, chunk.statistics, [](std::uint32_t code) { return code == no_text; });
    std::vector<std::uint32_t> index_of;          // by code, + 1
    std::map<std::string, std::uint32_t> indices; // by text: several codes may stand for one
    indices_.resize(there.size());
    for (std::size_t i = 0; i < there.size(); ++i) {
        if (i != 0 && there[i] == there[i - 1]) {
            indices_[i] = indices_[i - 1];
            continue;
        }
        if (there[i] >= index_of.size()) {
            index_of.resize(std::size_t{there[i]} + 1);
        }
        std::uint32_t& index = index_of[there[i]];
        if (index == 0) {
            const auto [at, fresh] =
                indices.emplace(base::valid_utf8(text_of(there[i])), static_cast<std::uint32_t>(indices.size() + 1));
            index = at->second;
            if (fresh) {
                append_plain(other_.body, at->first);
            }
        }
        indices_[i] = index - 1;
    }
    if (!indices.empty()) {
        chunk.statistics.least = indices.begin()->first;
        chunk.statistics.most = indices.rbegin()->first;
    }
    put_dictionary(other_, indices.size(), chunk);
    append_indices(page_.body, indices_, chunk.there(rows()), indices.size());
    pack(page_);
    put_data(page_, Encoding::rle_dictionary, chunk);
}

void ParquetWriter::put_schema(CompactWriter& to) const {
    to.begin_structs(2, columns_.size() + 1);
    to.begin_element();
    to.text(4, "plumb");
    to.int32(5, static_cast<std::int32_t>(columns_.size()));
    to.end();
    for (const ParquetColumn& column : columns_) {
        to.begin_element();
        to.int32(1, physical_types[static_cast<std::size_t>(column.type)]);
        to.int32(3, column.optional ? 1 : 0);
        to.text(4, column.name);
        if (column.type == ColumnType::text) {
            to.int32(6, 0); // UTF8, for readers from before logical types
            to.begin_struct(10);
            to.begin_struct(1); // STRING
            to.end();
            to.end();
        }
        to.end();
    }
}

void ParquetWriter::put_chunk(CompactWriter& to, const ParquetColumn& column, const Chunk& chunk,
                              std::size_t rows) const {
    const bool dictionary = chunk.encoding == Encoding::rle_dictionary;
    const auto encoding = static_cast<std::int32_t>(chunk.encoding);
    const auto rle = static_cast<std::int32_t>(Encoding::rle);
    to.begin_element();
    to.int64(2, chunk.begin);
    to.begin_struct(3);
    to.int32(1, physical_types[static_cast<std::size_t>(column.type)]);
    dictionary ? to.int32s(2, {static_cast<std::int32_t>(Encoding::plain), rle, encoding})
               : to.int32s(2, {rle, encoding});
    to.texts(3, {column.name});
    to.int32(4, codec_zstd);
    to.int64(5, static_cast<std::int64_t>(rows));
    to.int64(6, chunk.plain_bytes);
    to.int64(7, chunk.bytes);
    to.int64(9, chunk.data_page);
    if (dictionary) {
        to.int64(11, chunk.begin);
    }
    to.begin_struct(12);
    to.int64(3, chunk.statistics.missing);
    if (!chunk.statistics.most.empty()) {
        to.text(5, chunk.statistics.most);
        to.text(6, chunk.statistics.least);
    }
    to.end();
    to.end();
    to.end();
}

void ParquetWriter::finish(std::size_t sorted_by, const KeyValues& facts) {
    std::size_t rows = 0;
    for (const Group& group : groups_) {
        rows += group.rows;
    }
    std::string footer;
    CompactWriter to(footer);
    to.int32(1, 2);
    put_schema(to);
    to.int64(3, static_cast<std::int64_t>(rows));
    to.begin_structs(4, groups_.size());
    for (const Group& group : groups_) {
        std::int64_t plain = 0;
        std::int64_t bytes = 0;
        to.begin_element();
        to.begin_structs(1, group.chunks.size());
        for (std::size_t i = 0; i < group.chunks.size(); ++i) {
            put_chunk(to, columns_[i], group.chunks[i], group.rows);
            plain += group.chunks[i].plain_bytes;
            bytes += group.chunks[i].bytes;
        }
        to.int64(2, plain);
        to.int64(3, static_cast<std::int64_t>(group.rows));
        to.begin_structs(4, 1);
        to.begin_element();
        to.int32(1, static_cast<std::int32_t>(sorted_by));
        to.truth(2, false); // ascending
        to.truth(3, false); // missing ones last: there are none
        to.end();
        to.int64(5, group.chunks.front().begin);
        to.int64(6, bytes);
        to.end();
    }
    to.begin_structs(5, facts.size());
    for (const auto& [key, value] : facts) {
        to.begin_element();
        to.text(1, key);
        to.text(2, value);
        to.end();
    }
    to.text(6, "plumb version " PLUMB_BUILD_VERSION);
    to.begin_structs(7, columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) { // the order of the type: what least and most mean
        to.begin_element();
        to.begin_struct(1);
        to.end();
        to.end();
    }
    to.end();
    append(footer);
    std::string length;
    append_low_bytes(length, footer.size(), 4);
    append(length);
    append(magic);
}

} // namespace plumb::exporting::parquet
