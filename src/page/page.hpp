// SPDX-License-Identifier: Apache-2.0
// An answer as people read it: lines in tones, tables, notes, and at the foot the reasons of what is n/a. Built once from an answer,
// then rendered: as text, in colour or not, or as Markdown. A plain value; no thread rule.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "page/text_table.hpp"
#include "plumb/answer.hpp"
#include "plumb/figure.hpp"

namespace plumb::page {

/// "n/a", the cell of a figure that is absent.
inline constexpr std::string_view not_available = "n/a";
/// How much of a sentence is shown at most.
inline constexpr std::size_t sentence_columns = 1000;

/// What a time in nanoseconds is divided by.
inline constexpr double ns_per_us = 1e3;
inline constexpr double ns_per_ms = 1e6;

/// cold to hot: below, like and above what a map compares with; where there is no colour each has a mark.
enum class Tone : std::uint8_t { plain, heading, faint, warning, shade };
inline constexpr std::size_t shades = 9; // the middle one is "alike"

struct Span {
    Span(std::string words, Tone how = Tone::plain) : text(std::move(words)), tone(how) {} // NOLINT: a span of text
    Span(const char* words, Tone how = Tone::plain) : text(words), tone(how) {}            // NOLINT: a span of text
    std::string text;
    Tone tone;
    std::uint8_t heat = 0; // of a shade, below `shades`
};

using Line = std::vector<Span>;
/// Text that stands as it is, its newlines included: a graph for another program.
struct Verbatim {
    std::string text;
};
struct TableBlock {
    TextTable table;
    Tone heading;
};

/// The number in `unit`s with so many decimals, a minus sign where it is below 0; n/a where it is absent.
[[nodiscard]] std::string figure_text(const Figure& figure, double unit, int decimals);
/// The same, with a plus sign where it is above 0.
[[nodiscard]] std::string signed_figure_text(const Figure& figure, double unit, int decimals);

class Page {
  public:
    using Block = std::variant<Line, TableBlock, Verbatim>;

    void line(Line spans) { blocks_.emplace_back(std::move(spans)); }
    void line(std::string text, Tone tone = Tone::plain) { line(Line{Span(std::move(text), tone)}); }
    void blank() { line(Line{}); }
    /// "ODD  decode layer 3 …": a word in `tone`, then a sentence, safe on a terminal.
    void marked(std::string_view word, std::string_view sentence, Tone tone = Tone::warning);
    void note(std::string_view sentence) { marked("note  ", sentence, Tone::plain); }
    void notes(const std::vector<std::string>& sentences);
    void table(TextTable table, Tone heading = Tone::heading);
    void append(Page page);
    void verbatim(std::string text) { blocks_.emplace_back(Verbatim{std::move(text)}); }

    /// The cell of a figure; where it is absent its reason is kept for reasons(), each once, with the first `what`.
    std::string figure(std::string_view what, const Figure& figure, double unit, int decimals);
    /// Keeps the reason of an absent figure that has no cell of its own.
    void reason(std::string_view what, const Figure& figure);
    /// Lines "n/a  what: why" for all that was absent since the last call, by reason.
    void reasons();

    [[nodiscard]] const std::vector<Block>& blocks() const noexcept { return blocks_; }

  private:
    std::vector<Block> blocks_;
    std::map<std::string, std::string> reasons_; // to the first that has it
};

[[nodiscard]] std::string text_of(const Page& page, bool color);
[[nodiscard]] std::string markdown_of(const Page& page);
/// Text in Markdown: a name in a recording must not open a tag, a link or a cell.
[[nodiscard]] std::string markdown_text(std::string_view text);

} // namespace plumb::page
