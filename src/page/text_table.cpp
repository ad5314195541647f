// SPDX-License-Identifier: Apache-2.0
#include "page/text_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

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

struct CodePoints {
    char32_t first, last;
};

// Of EastAsianWidth.txt (Unicode 14) what is W or F, and whole blocks where only single symbols between are narrow.
constexpr CodePoints of_two_columns[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x23F0, 0x23F0},
    {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x267F},
    {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},
    {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},
    {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27B0, 0x27B0},   {0x27BF, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},
    {0x2E80, 0x303E},   {0x3041, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E},
    {0x1F191, 0x1F19A}, {0x1F200, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7F0}, {0x1F90C, 0x1F9FF},
    {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
};
// Marks on the character before, and what is not seen. Marks of rarer scripts are not here: a line with them is shorter than planned.
constexpr CodePoints of_no_column[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x0610, 0x061A},   {0x064B, 0x065F}, {0x0670, 0x0670},
    {0x06D6, 0x06DC}, {0x093C, 0x093C}, {0x0941, 0x0948},   {0x094D, 0x094D},   {0x0951, 0x0957}, {0x0E31, 0x0E31},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1160, 0x11FF},   {0x1AB0, 0x1ACE},   {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x202A, 0x202E}, {0x2060, 0x206F}, {0x20D0, 0x20F0},   {0x302A, 0x302D},   {0x3099, 0x309A}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0001, 0xE007F}, {0xE0100, 0xE01EF},
};

bool lies_in(std::span<const CodePoints> ranges, char32_t point) noexcept {
    const auto found = std::partition_point(ranges.begin(), ranges.end(),
                                            [point](const CodePoints& range) { return range.last < point; });
    return found != ranges.end() && found->first <= point;
}

/// Of one well-formed sequence.
std::size_t columns_of_sequence(std::string_view sequence) noexcept {
    if (sequence.size() < 2) {
        return 1;
    }
    auto point = static_cast<char32_t>(static_cast<unsigned char>(sequence[0]) & (0x7FU >> sequence.size()));
    for (const char byte : sequence.substr(1)) {
        point = (point << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
    }
    return lies_in(of_no_column, point) ? 0 : lies_in(of_two_columns, point) ? 2 : 1;
}

} // namespace

std::string printable(std::string_view text, std::size_t columns) {
    std::string out;
    std::size_t wide = 0, cut = 0; // what stays, in bytes, where the mark must follow
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = base::utf8_sequence(text, at);
        const std::string_view sequence = text.substr(at, std::max<std::size_t>(length, 1));
        const std::string_view shown = length == 0 || is_control(sequence) ? base::replacement_character : sequence;
        wide += columns_of_sequence(shown);
        if (wide > columns) {
            return out.substr(0, cut).append(columns > 0 ? cut_mark : "");
        }
        out += shown;
        cut = wide < columns ? out.size() : cut;
        at += sequence.size();
    }
    return out;
}

std::size_t columns_of(std::string_view text) noexcept {
    std::size_t columns = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view sequence = text.substr(at, std::max<std::size_t>(base::utf8_sequence(text, at), 1));
        columns += columns_of_sequence(sequence);
        at += sequence.size();
    }
    return columns;
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
