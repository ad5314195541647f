// SPDX-License-Identifier: Apache-2.0
// The compact protocol of Thrift, in which Parquet writes its headers and footer: the part that those need. Source: apache/thrift,
// thrift-compact-protocol.md. Appends to a string of the caller; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::exporting::parquet {

void append_varint(std::string& out, std::uint64_t value);

/// Numbers near 0 of either sign as small ones.
constexpr std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

/// Structs of Thrift. Fields of a struct in the order of their ids.
class CompactWriter {
  public:
    explicit CompactWriter(std::string& out) : out_(out) {}

    void truth(int id, bool value);
    void int32(int id, std::int32_t value);
    void int64(int id, std::int64_t value);
    void text(int id, std::string_view value);
    void begin_struct(int id);
    /// Of the struct, or of an element that is one.
    void end();

    void begin_structs(int id, std::size_t count);
    void begin_element();
    void int32s(int id, std::initializer_list<std::int32_t> values);
    void texts(int id, std::initializer_list<std::string_view> values);

  private:
    void field(int id, unsigned type);
    void list(int id, std::size_t count, unsigned type);

    std::string& out_;
    std::vector<int> last_ids_{0}; // of the structs that are open
};

} // namespace plumb::exporting::parquet
