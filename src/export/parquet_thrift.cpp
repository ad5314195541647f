// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_thrift.hpp"

namespace plumb::exporting::parquet {

namespace {
enum CompactType : unsigned { t_true = 1, t_false = 2, t_i32 = 5, t_i64 = 6, t_binary = 8, t_list = 9, t_struct = 12 };
}

void append_varint(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<char>(value | 0x80));
        value >>= 7;
    }
    out.push_back(static_cast<char>(value));
}

void CompactWriter::field(int id, unsigned type) {
    const int step = id - last_ids_.back(); // 1 to 15: of the structs of Parquet no two neighbours are further apart
    out_.push_back(static_cast<char>(static_cast<unsigned>(step) << 4 | type));
    last_ids_.back() = id;
}

void CompactWriter::list(int id, std::size_t count, unsigned type) {
    field(id, t_list);
    if (count < 15) {
        out_.push_back(static_cast<char>(count << 4 | type));
    } else {
        out_.push_back(static_cast<char>(0xF0 | type));
        append_varint(out_, count);
    }
}

void CompactWriter::truth(int id, bool value) { field(id, value ? t_true : t_false); }

void CompactWriter::int32(int id, std::int32_t value) {
    field(id, t_i32);
    append_varint(out_, zigzag(value));
}

void CompactWriter::int64(int id, std::int64_t value) {
    field(id, t_i64);
    append_varint(out_, zigzag(value));
}

void CompactWriter::text(int id, std::string_view value) {
    field(id, t_binary);
    append_varint(out_, value.size());
    out_.append(value);
}

void CompactWriter::begin_struct(int id) {
    field(id, t_struct);
    last_ids_.push_back(0);
}

void CompactWriter::end() {
    out_.push_back('\0');
    last_ids_.pop_back();
}

void CompactWriter::begin_structs(int id, std::size_t count) { list(id, count, t_struct); }

void CompactWriter::begin_element() { last_ids_.push_back(0); }

void CompactWriter::int32s(int id, std::initializer_list<std::int32_t> values) {
    list(id, values.size(), t_i32);
    for (const std::int32_t value : values) {
        append_varint(out_, zigzag(value));
    }
}

void CompactWriter::texts(int id, std::initializer_list<std::string_view> values) {
    list(id, values.size(), t_binary);
    for (const std::string_view value : values) {
        append_varint(out_, value.size());
        out_.append(value);
    }
}

} // namespace plumb::exporting::parquet
