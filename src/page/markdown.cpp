// SPDX-License-Identifier: Apache-2.0
// A page for the comment of a pull request: tables as tables, maps and graphs in a block of code, all else as paragraphs.
#include "page/page.hpp"

#include <algorithm>

namespace plumb::page {
namespace {

class Markdown {
  public:
    void add(const Line& line) {
        const bool map =
            std::any_of(line.begin(), line.end(), [](const Span& span) { return span.tone == Tone::shade; });
        if (map) {
            open_code();
            Page one;
            one.line(line);
            out_ += text_of(one, false);
            return;
        }
        close_code();
        if (line.empty()) {
            out_ += '\n';
            return;
        }
        out_ += line.front().tone == Tone::heading ? "### " : "";
        for (const Span& span : line) {
            const std::string text = markdown_text(span.text);
            out_ += span.tone == Tone::warning && !text.empty() ? "**" + text + "**" : text;
        }
        out_ += line.front().tone == Tone::heading ? "\n\n" : "  \n";
    }
    void add(const TableBlock& block) {
        close_code();
        const TextTable& table = block.table;
        out_ += "\n|";
        for (std::size_t i = 0; i < table.columns(); ++i) {
            out_ += " " + markdown_text(table.heading(i)) + " |";
        }
        out_ += "\n|";
        for (std::size_t i = 0; i < table.columns(); ++i) {
            out_ += table.is_right(i) ? "--:|" : "---|";
        }
        for (const std::vector<std::string>& row : table.cells()) {
            out_ += "\n|";
            for (const std::string& cell : row) {
                out_ += " " + markdown_text(cell) + " |";
            }
        }
        out_ += "\n\n";
    }
    void add(const Verbatim& block) {
        open_code();
        out_ += block.text;
        close_code();
    }
    std::string take() {
        close_code();
        return std::move(out_);
    }

  private:
    void open_code() {
        out_ += code_ ? "" : "\n```\n";
        code_ = true;
    }
    void close_code() {
        out_ += code_ ? "```\n\n" : "";
        code_ = false;
    }

    std::string out_;
    bool code_ = false;
};

} // namespace

std::string markdown_text(std::string_view text) {
    std::string out;
    for (const char c : printable(text, sentence_columns)) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (std::string_view("|`*_[]\\~@#").find(c) != std::string_view::npos) {
            out += std::string("\\") + c;
        } else {
            out += c;
        }
    }
    return out;
}

std::string markdown_of(const Page& page) {
    Markdown markdown;
    for (const Page::Block& block : page.blocks()) {
        std::visit([&](const auto& part) { markdown.add(part); }, block);
    }
    return markdown.take();
}

} // namespace plumb::page
