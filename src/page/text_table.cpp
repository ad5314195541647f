// SPDX-License-Identifier: Apache-2.0
#include "page/text_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/json_writer.hpp"
#include "base/utf8.hpp"

namespace plumb::page {

namespace {

constexpr std::string_view gap = "   ";
constexpr std::string_view cut_mark = "\xE2\x80\xA6"; // …

// C0, DEL and the C1 block (U+0080..U+009F, which some terminals obey too).
bool is_control(std::string_view sequence) noexcept {
    const auto lead = static_cast<unsigned char>(sequence[0]);
    return lead < 0x20 || lead == 0x7F || (lead == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0);
}

} // namespace

std::string printable(std::string_view text, std::size_t columns) {
    std::vector<std::string_view> shown;
    std::size_t at = 0;
    while (at < text.size() && shown.size() <= columns) {
        const std::size_t length = base::utf8_sequence(text, at);
        const std::string_view sequence = text.substr(at, std::max<std::size_t>(length, 1));
        shown.push_back(length == 0 || is_control(sequence) ? base::replacement_character : sequence);
        at += sequence.size();
    }
    if (shown.size() > columns) {
        shown.resize(columns);
        if (columns > 0) {
            shown.back() = cut_mark;
        }
    }
    std::string out;
    for (const std::string_view part : shown) {
        out += part;
    }
    return out;
}

std::size_t columns_of(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; // every byte but those that continue a sequence
    }));
}

std::string grouped(std::uint64_t count) {
    std::string digits;
    base::append_integer(digits, count);
    for (std::size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

std::string fixed(double value, int decimals) {
    std::array<char, 400> digits; // the largest double has 309 digits before the point
    const double magnitude = std::fabs(value);
    const double smallest = std::pow(10.0, -decimals);
    if (magnitude > 0 && magnitude < smallest / 2) {
        const auto written =
            std::to_chars(digits.data(), digits.data() + digits.size(), smallest, std::chars_format::fixed, decimals);
        return (value < 0 ? ">-" : "<") + std::string(digits.data(), written.ptr);
    }
    const auto written =
        std::to_chars(digits.data(), digits.data() + digits.size(), value + 0.0, std::chars_format::fixed, decimals);
    return {digits.data(), written.ptr};
}

int decimals_for(double largest, int digits, int least, int most) noexcept {
    if (!(largest > 0) || !std::isfinite(largest)) {
        return least;
    }
    const int before_point = static_cast<int>(std::floor(std::log10(largest))) + 1;
    return std::clamp(digits - before_point, least, most);
}

TextTable::TextTable(std::initializer_list<const char*> left, std::initializer_list<const char*> right,
                     std::initializer_list<const char*> last) {
    for (const auto& [headings, align] : {std::pair(left, Align::left), {right, Align::right}, {last, Align::left}}) {
        for (const char* heading : headings) {
            add_column(heading, align);
        }
    }
}

void TextTable::add_column(std::string heading, Align align) { columns_.push_back({std::move(heading), align}); }

void TextTable::add_row(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

void TextTable::append_line(std::string& out, const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
    std::string line;
    for (std::size_t index = 0; index < columns_.size(); ++index) {
        if (index != 0) {
            line += gap;
        }
        const std::string padding(widths[index] - columns_of(cells[index]), ' ');
        line += columns_[index].align == Align::left ? cells[index] + padding : padding + cells[index];
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1);
}

void TextTable::append_to(std::string& out, std::string_view emphasis, std::string_view plain) const {
    std::vector<std::string> headings;
    std::vector<std::size_t> widths;
    for (std::size_t index = 0; index < columns_.size(); ++index) {
        std::size_t width = columns_of(columns_[index].heading);
        for (const auto& row : rows_) {
            width = std::max(width, columns_of(row[index]));
        }
        widths.push_back(width);
        headings.push_back(columns_[index].heading);
    }
    out += emphasis;
    append_line(out, headings, widths);
    out += plain;
    out += '\n';
    for (const auto& row : rows_) {
        append_line(out, row, widths);
        out += '\n';
    }
}

} // namespace plumb::page
