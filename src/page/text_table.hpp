// SPDX-License-Identifier: Apache-2.0
// A table of aligned cells, and the number formats of the reports. A table belongs to the function that fills it; the
// rest are pure functions. No thread rule.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::page {

/// Text that is safe on a terminal: control characters and broken UTF-8 become visible stand-ins, so that a name in a
/// recording cannot move the cursor or forge a line. At most `columns` wide, the cut marked.
[[nodiscard]] std::string printable(std::string_view text, std::size_t columns);

/// How many columns printable text takes: two for each wide character of East Asia and each emoji, none for a mark on another.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// 12,345,678
[[nodiscard]] std::string grouped(std::uint64_t count);

/// `value` with that many decimals; "<0.1" for what is above 0 and would print as 0.
[[nodiscard]] std::string fixed(double value, int decimals);

/// The least decimals that show `largest` with `digits` significant digits, within [least, most].
[[nodiscard]] int decimals_for(double largest, int digits, int least, int most) noexcept;

class TextTable {
  public:
    enum class Align { left, right };

    TextTable() = default;
    /// Columns of words, then of numbers, then of words.
    TextTable(std::initializer_list<const char*> left, std::initializer_list<const char*> right,
              std::initializer_list<const char*> last = {});
    void add_column(std::string heading, Align align);
    /// Cells beyond the columns are ignored; missing ones are empty.
    void add_row(std::vector<std::string> cells);
    [[nodiscard]] std::size_t rows() const { return rows_.size(); }
    [[nodiscard]] const std::vector<std::vector<std::string>>& cells() const { return rows_; }
    [[nodiscard]] std::size_t columns() const { return columns_.size(); }
    [[nodiscard]] const std::string& heading(std::size_t column) const { return columns_[column].heading; }
    [[nodiscard]] bool is_right(std::size_t column) const { return columns_[column].align == Align::right; }
    /// Lines with a newline each; `emphasis` and `plain` (may be empty) surround the heading.
    void append_to(std::string& out, std::string_view emphasis, std::string_view plain) const;

  private:
    struct Column {
        std::string heading;
        Align align;
    };
    void append_line(std::string& out, const std::vector<std::string>& cells,
                     const std::vector<std::size_t>& widths) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace plumb::page
