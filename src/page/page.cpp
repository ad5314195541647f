// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include "page/options.hpp"

#include <array>
#include <cmath>
#include <iterator>

namespace plumb::page {
namespace {

struct Escape {
    std::string_view begin, end;
};

constexpr std::string_view off = "\x1b[0m";
constexpr std::array<const char*, shades> backgrounds = {"\x1b[48;5;21m",  "\x1b[48;5;27m",  "\x1b[48;5;33m",
                                                         "\x1b[48;5;67m",  "\x1b[48;5;240m", "\x1b[48;5;136m",
                                                         "\x1b[48;5;172m", "\x1b[48;5;202m", "\x1b[48;5;196m"};
constexpr std::string_view marks = "_,.-=+o#@";
static_assert(marks.size() == shades);

Escape escape_of(Tone tone, bool color) {
    if (!color || tone == Tone::plain) {
        return {};
    }
    return {tone == Tone::heading ? "\x1b[1m" : tone == Tone::faint ? "\x1b[2m" : "\x1b[33m", off};
}

void append_span(std::string& out, const Span& span, bool color) {
    if (span.tone == Tone::shade) {
        if (color) {
            out += backgrounds[span.heat];
            out += ' ';
            out += off;
        } else {
            out += marks[span.heat];
        }
        return;
    }
    if (span.text.empty()) {
        return;
    }
    const Escape escape = escape_of(span.tone, color);
    out += escape.begin;
    out += printable(span.text, span.text.size());
    out += escape.end;
}

void append(std::string& out, const Line& line, bool color) {
    for (const Span& span : line) {
        append_span(out, span, color);
    }
    out += '\n';
}

void append(std::string& out, const TableBlock& block, bool color) {
    const Escape escape = escape_of(block.heading, color);
    block.table.append_to(out, escape.begin, escape.end);
}

void append(std::string& out, const Verbatim& block, bool) { out += block.text; }

} // namespace

std::string listed(Words words) {
    std::string all;
    for (const char* word : words) {
        if (*word != '\0') {
            all += (all.empty() ? "" : word == words.back() ? " or " : ", ") + std::string(word);
        }
    }
    return all;
}

std::string figure_text(const Figure& figure, double unit, int decimals) {
    if (!figure.value) {
        return std::string(not_available);
    }
    const double value = *figure.value / unit;
    return value < 0 ? "-" + fixed(-value, decimals) : fixed(value, decimals);
}

std::string signed_figure_text(const Figure& figure, double unit, int decimals) {
    return (figure.value && *figure.value > 0 ? "+" : "") + figure_text(figure, unit, decimals);
}

void Page::marked(std::string_view word, std::string_view sentence, Tone tone) {
    line(Line{Span(std::string(word), tone), Span(printable(sentence, sentence_columns))});
}

void Page::notes(const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) {
        note(sentence);
    }
}

void Page::append(Page page) {
    blocks_.insert(blocks_.end(), std::make_move_iterator(page.blocks_.begin()),
                   std::make_move_iterator(page.blocks_.end()));
}

void Page::table(TextTable table, Tone heading) { blocks_.emplace_back(TableBlock{std::move(table), heading}); }

std::string Page::figure(std::string_view what, const Figure& figure, double unit, int decimals) {
    reason(what, figure);
    return figure_text(figure, unit, decimals);
}

void Page::reason(std::string_view what, const Figure& figure) {
    if (!figure.value) {
        reasons_.try_emplace(figure.reason, what);
    }
}

void Page::reasons() {
    for (const auto& [reason, what] : reasons_) {
        line("n/a  " + what + ": " + printable(reason, sentence_columns), Tone::faint);
    }
    reasons_.clear();
}

std::string text_of(const Page& page, bool color) {
    std::string out;
    for (const Page::Block& block : page.blocks()) {
        std::visit([&](const auto& part) { append(out, part, color); }, block);
    }
    return out;
}

} // namespace plumb::page
