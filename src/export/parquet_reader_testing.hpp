// SPDX-License-Identifier: Apache-2.0
// A small reader of Parquet for tests, which shares no line with the writer: Thrift's compact protocol as a tree, and PLAIN, RLE,
// RLE_DICTIONARY and DELTA_BINARY_PACKED of any bit width. Everything that does not fit throws. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include <zstd.h>

namespace plumb::exporting::parquet_testing {

class ByteReader {
  public:
    ByteReader(const std::string& bytes, std::size_t at, std::size_t end) : bytes_(bytes), at_(at), end_(end) {
        need(at <= end && end <= bytes.size(), "a range outside of the file");
    }
    static void need(bool good, const char* what) {
        if (!good) {
            throw std::runtime_error(what);
        }
    }
    std::uint8_t byte() {
        need(at_ < end_, "bytes are missing");
        return static_cast<std::uint8_t>(bytes_[at_++]);
    }
    std::uint64_t low_bytes(unsigned count) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < count; ++i) {
            value |= std::uint64_t{byte()} << (8 * i);
        }
        return value;
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            need(shift < 70, "a varint without an end");
            const std::uint8_t next = byte();
            value |= std::uint64_t{next & 0x7FU} << shift;
            if (next < 0x80) {
                return value;
            }
        }
    }
    std::int64_t zigzag() {
        const std::uint64_t value = varint();
        return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
    }
    std::string text(std::size_t size) {
        need(size <= end_ - at_, "a text beyond its page");
        at_ += size;
        return bytes_.substr(at_ - size, size);
    }
    /// Values of `width` bits each, packed from the lowest bit of the first byte.
    std::vector<std::uint64_t> packed(std::size_t count, unsigned width) {
        std::vector<std::uint64_t> values(count);
        const std::string bits = text(count * width / 8);
        std::size_t at = 0; // bits read
        for (std::uint64_t& value : values) {
            for (unsigned had = 0; had < width;) {
                const unsigned from = at % 8;
                const unsigned take = std::min(8 - from, width - had);
                const std::uint64_t part = static_cast<unsigned char>(bits[at / 8]) >> from & ((1U << take) - 1);
                value |= part << had;
                had += take;
                at += take;
            }
        }
        return values;
    }
    [[nodiscard]] std::size_t at() const { return at_; }
    [[nodiscard]] bool done() const { return at_ == end_; }

  private:
    const std::string& bytes_;
    std::size_t at_, end_;
};

/// A struct, list or value of Thrift.
struct Node {
    std::map<int, Node> fields;
    std::vector<Node> list;
    std::int64_t number = 0;
    std::string text;

    [[nodiscard]] bool has(int id) const { return fields.count(id) != 0; }
    [[nodiscard]] const Node& operator[](int id) const { return fields.at(id); }
};

inline Node read_thrift(ByteReader& from, unsigned type = 12) {
    Node node;
    switch (type) {
    case 1:
    case 2:
        node.number = type == 1 ? 1 : 0;
        break;
    case 4:
    case 5:
    case 6:
        node.number = from.zigzag();
        break;
    case 8:
        node.text = from.text(from.varint());
        break;
    case 9: {
        const std::uint8_t head = from.byte();
        const std::uint64_t count = head >> 4 == 15 ? from.varint() : head >> 4;
        for (std::uint64_t i = 0; i < count; ++i) {
            node.list.push_back(read_thrift(from, head & 15));
        }
        break;
    }
    case 12:
        for (int id = 0; const std::uint8_t head = from.byte();) {
            id = head >> 4 == 0 ? static_cast<int>(from.zigzag()) : id + (head >> 4);
            node.fields[id] = read_thrift(from, head & 15);
        }
        break;
    default:
        throw std::runtime_error("a type that Parquet does not use");
    }
    return node;
}

/// A file, read whole. Cells are text; "null" where there is none.
class ParquetFile {
  public:
    std::map<std::string, std::vector<std::string>> columns;
    std::map<std::string, std::string> facts;                   // key-value metadata
    std::vector<std::int64_t> groups;                           // rows of each
    std::map<std::string, std::vector<std::int64_t>> encodings; // of the data pages, by column
    Node footer;

    /// `only`: of the others no values are kept.
    explicit ParquetFile(const std::string& bytes, std::string only = {}) : bytes_(bytes), only_(std::move(only)) {
        ByteReader::need(bytes.size() >= 12 && bytes.substr(0, 4) == "PAR1" && bytes.substr(bytes.size() - 4) == "PAR1",
                         "no file of Parquet");
        const std::size_t length = ByteReader(bytes, bytes.size() - 8, bytes.size() - 4).low_bytes(4);
        ByteReader from(bytes, bytes.size() - 8 - length, bytes.size() - 8);
        footer = read_thrift(from);
        ByteReader::need(from.done(), "bytes behind the footer");
        for (const Node& pair : footer[5].list) {
            facts[pair[1].text] = pair[2].text;
        }
        std::size_t expected = 4;
        for (const Node& group : footer[4].list) {
            groups.push_back(group[3].number);
            ByteReader::need(group[1].list.size() + 1 == footer[2].list.size(), "columns are missing");
            for (std::size_t i = 0; i < group[1].list.size(); ++i) {
                expected = read_chunk(group[1].list[i][3], footer[2].list[i + 1], expected);
            }
        }
        ByteReader::need(expected == bytes.size() - 8 - length, "bytes between the columns and the footer");
    }

  private:
    struct Page {
        Node head;
        std::string body;
        std::size_t end;
    };
    Page read_page(std::size_t at) const {
        ByteReader from(bytes_, at, bytes_.size());
        Page page{read_thrift(from), {}, 0};
        const std::string packed = from.text(static_cast<std::size_t>(page.head[3].number));
        page.end = from.at();
        page.body.resize(static_cast<std::size_t>(page.head[2].number));
        ByteReader::need(ZSTD_decompress(page.body.data(), page.body.size(), packed.data(), packed.size()) ==
                             page.body.size(),
                         "a page that does not unpack");
        return page;
    }

    static std::string cell(ByteReader& from, std::int64_t type) {
        if (type == 6) {
            return from.text(from.low_bytes(4));
        }
        ByteReader::need(type == 2 || type == 5, "a type that we do not write");
        const std::uint64_t bits = from.low_bytes(8);
        if (type == 2) {
            return std::to_string(static_cast<std::int64_t>(bits));
        }
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", value);
        return text;
    }

    /// The hybrid of runs and packed values.
    static std::vector<std::uint64_t> hybrid(ByteReader& from, std::size_t count, unsigned width) {
        std::vector<std::uint64_t> values;
        while (values.size() < count) {
            const std::uint64_t head = from.varint();
            if ((head & 1) == 0) {
                values.insert(values.end(), head >> 1, from.low_bytes((width + 7) / 8));
            } else {
                const std::vector<std::uint64_t> some = from.packed((head >> 1) * 8, width);
                values.insert(values.end(), some.begin(), some.end());
            }
        }
        values.resize(count);
        return values;
    }

    static std::vector<std::string> deltas(ByteReader& from) {
        const std::size_t block = from.varint();
        const std::size_t pieces = from.varint();
        const std::size_t count = from.varint();
        std::uint64_t value = static_cast<std::uint64_t>(from.zigzag());
        ByteReader::need(block % 128 == 0 && block / pieces % 32 == 0, "blocks of a forbidden size");
        std::vector<std::string> cells;
        if (count > 0) {
            cells.push_back(std::to_string(static_cast<std::int64_t>(value)));
        }
        while (cells.size() < count) {
            const auto least = static_cast<std::uint64_t>(from.zigzag());
            const std::string widths = from.text(pieces);
            for (std::size_t i = 0; i < pieces && cells.size() < count; ++i) {
                for (const std::uint64_t above : from.packed(block / pieces, static_cast<unsigned char>(widths[i]))) {
                    value += least + above;
                    if (cells.size() < count) {
                        cells.push_back(std::to_string(static_cast<std::int64_t>(value)));
                    }
                }
            }
        }
        return cells;
    }

    static std::vector<std::string> values(ByteReader& from, std::int64_t encoding, std::int64_t type,
                                           std::size_t count, const std::vector<std::string>& dictionary) {
        std::vector<std::string> cells;
        if (encoding == 5) {
            cells = deltas(from);
            ByteReader::need(cells.size() == count, "another number of differences");
        } else if (encoding == 8) {
            const unsigned width = from.byte();
            for (const std::uint64_t index : hybrid(from, count, width)) {
                cells.push_back(dictionary.at(index));
            }
        } else if (type == 0) {
            for (const std::uint64_t bit : from.packed((count + 7) / 8 * 8, 1)) {
                cells.push_back(bit != 0 ? "true" : "false");
            }
            cells.resize(count);
        } else {
            ByteReader::need(encoding == 0, "an encoding that we do not write");
            for (std::size_t i = 0; i < count; ++i) {
                cells.push_back(cell(from, type));
            }
        }
        return cells;
    }

    /// The end of the chunk in the file.
    std::size_t read_chunk(const Node& chunk, const Node& schema, std::size_t expected) {
        ByteReader::need(chunk[3].list.at(0).text == schema[4].text, "a column in another's place");
        std::vector<std::string> dictionary;
        std::size_t at = expected;
        if (chunk.has(11)) {
            ByteReader::need(chunk[11].number == static_cast<std::int64_t>(at), "a dictionary in another place");
            const Page page = read_page(at);
            ByteReader from(page.body, 0, page.body.size());
            while (!from.done()) {
                dictionary.push_back(cell(from, chunk[1].number));
            }
            ByteReader::need(page.head[7][1].number == static_cast<std::int64_t>(dictionary.size()),
                             "a dictionary of another size");
            at = page.end;
        }
        ByteReader::need(chunk[9].number == static_cast<std::int64_t>(at), "a page in another place");
        const Page page = read_page(at);
        ByteReader::need(page.end - expected == static_cast<std::size_t>(chunk[7].number), "a chunk of another size");
        if (!only_.empty() && only_ != schema[4].text) {
            return page.end;
        }
        const Node& head = page.head[5];
        const auto rows = static_cast<std::size_t>(head[1].number);
        ByteReader from(page.body, 0, page.body.size());
        std::vector<std::uint64_t> present(rows, 1);
        if (schema[3].number == 1) {
            const std::size_t length = from.low_bytes(4);
            ByteReader levels(page.body, from.at(), from.at() + length);
            present = hybrid(levels, rows, 1);
            ByteReader::need(levels.done(), "bytes behind the levels");
            (void)from.text(length);
        }
        std::size_t count = 0;
        for (const std::uint64_t level : present) {
            count += level;
        }
        const std::vector<std::string> there = values(from, head[2].number, chunk[1].number, count, dictionary);
        ByteReader::need(from.done(), "bytes behind a page");
        ByteReader::need(chunk[12][3].number == static_cast<std::int64_t>(rows - count), "another number of nulls");
        std::vector<std::string>& cells = columns[schema[4].text];
        for (std::size_t i = 0, next = 0; i < rows; ++i) {
            cells.push_back(present[i] != 0 ? there[next++] : "null");
        }
        encodings[schema[4].text].push_back(head[2].number);
        return page.end;
    }

    const std::string& bytes_;
    std::string only_;
};

} // namespace plumb::exporting::parquet_testing
