// SPDX-License-Identifier: Apache-2.0
#include "import/json_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace plumb::imported {
namespace {

constexpr std::size_t block_size = std::size_t{4} << 20;
constexpr std::size_t most_depth = 6; // of members that are looked at
constexpr std::size_t longest_key = 256;
constexpr unsigned most_looks = 16;
static_assert(block_size >= 2 * longest_element);

enum Class : std::uint8_t { other, quote, opens, closes };

constexpr std::array<std::uint8_t, 256> outside_classes = [] {
    std::array<std::uint8_t, 256> made{};
    made['"'] = quote;
    made['{'] = made['['] = opens;
    made['}'] = made[']'] = closes;
    return made;
}();

// In a string: what ends it, what escapes, and a line break, which no string may hold.
constexpr std::array<bool, 256> inside_stops = [] {
    std::array<bool, 256> made{};
    made['"'] = made['\\'] = made['\n'] = true;
    return made;
}();

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

class Walker {
  public:
    Walker(Input& input, const JsonVisitor& visitor) : input_(input), visitor_(visitor) {}

    Result<JsonDamage> walk() {
        const Status status = refill();
        if (status.ok()) {
            if (text().starts_with("\xEF\xBB\xBF")) {
                at_ += 3;
            }
            value(0);
        }
        if (!status_.ok()) {
            return status_.error();
        }
        damage_.cut = damage_.cut || input_.cut();
        return damage_;
    }

  private:
    [[nodiscard]] std::string_view text() const { return *block_; }

    /// Keeps what lies from at_ on, and reads more behind it.
    Status refill() {
        auto next = std::make_shared<std::string>();
        const std::size_t kept = block_->size() - at_;
        next->resize(kept + block_size);
        std::copy(block_->begin() + static_cast<std::ptrdiff_t>(at_), block_->end(), next->begin());
        const Result<std::size_t> got = input_.read(next->data() + kept, block_size);
        if (!got) {
            status_ = got.error();
            next->resize(kept);
            ended_ = true;
        } else {
            next->resize(kept + *got);
            ended_ = *got < block_size;
        }
        block_ = std::move(next);
        at_ = 0;
        looks_ = 0;
        return status_;
    }

    /// The character at hand, or 0 at the end of everything.
    char peek() {
        while (at_ == block_->size()) {
            if (ended_ || !refill().ok()) {
                return 0;
            }
        }
        return (*block_)[at_];
    }

    char peek_word() {
        char c = peek();
        while (c != 0 && (is_space(c) || c == ',' || c == ':')) {
            ++at_;
            c = peek();
        }
        return c;
    }

    /// Jumps over a value, whatever its length. False at the end of the text.
    bool skip_value() {
        std::size_t depth = 0;
        for (char c = peek_word(); c != 0; c = peek()) {
            if (c == '"') {
                if (!skip_string()) {
                    return false;
                }
            } else if (c == '{' || c == '[') {
                ++depth;
                ++at_;
            } else if (c == '}' || c == ']') {
                if (depth == 0) {
                    return true; // of whoever asked
                }
                --depth;
                ++at_;
            } else if (depth == 0 && (c == ',' || is_space(c))) {
                return true;
            } else {
                ++at_;
                continue;
            }
            if (depth == 0) {
                return true;
            }
        }
        return depth == 0;
    }

    bool skip_string() {
        ++at_;
        for (char c = peek(); c != 0 || at_ < block_->size(); c = peek()) {
            ++at_;
            if (c == '"') {
                return true;
            }
            if (c == '\\') {
                if (peek() == 0) {
                    return false;
                }
                ++at_;
            }
        }
        return false;
    }

    bool key(std::string& to) {
        ++at_;
        to.clear();
        for (char c = peek(); c != 0; c = peek()) {
            ++at_;
            if (c == '"') {
                return true;
            }
            if (to.size() < longest_key) {
                to.push_back(c);
            }
            if (c == '\\' && peek() != 0) {
                ++at_;
            }
        }
        return false;
    }

    /// False where nothing can follow.
    bool value(std::size_t depth) {
        const char opens = peek_word();
        if (opens == 0) {
            damage_.cut = true;
            return false;
        }
        const bool nests = opens == '{' || opens == '[';
        Take take = visitor_.choose(path_, opens);
        if (take == Take::elements && opens != '[') {
            take = Take::inside;
        }
        if (take == Take::inside && (!nests || depth == most_depth)) {
            take = Take::skip;
        }
        switch (take) {
        case Take::elements:
            return elements();
        case Take::inside:
            return opens == '{' ? members(depth) : items(depth);
        case Take::text:
            return whole();
        case Take::skip:
            break;
        }
        if (!skip_value()) {
            damage_.cut = true;
            return false;
        }
        return true;
    }

    bool members(std::size_t depth) {
        ++at_;
        while (true) {
            const char c = peek_word();
            if (c == '}') {
                ++at_;
                return true;
            }
            std::string name;
            if (c != '"' || !key(name)) {
                damage_.cut = damage_.cut || c == 0;
                damage_.elements += c != 0 ? 1 : 0;
                return false;
            }
            path_.push_back(std::move(name));
            const bool goes_on = value(depth + 1);
            path_.pop_back();
            if (!goes_on) {
                return false;
            }
        }
    }

    bool items(std::size_t depth) {
        ++at_;
        while (true) {
            const char c = peek_word();
            if (c == ']') {
                ++at_;
                return true;
            }
            if (c == '}' || !value(depth + 1)) {
                return false;
            }
        }
    }

    bool whole() {
        const char opens = peek();
        if (opens != '{' && opens != '[' && opens != '"') {
            need(longest_key);
            const std::size_t from = at_;
            std::size_t end = from;
            while (end < block_->size() && !is_space((*block_)[end]) && (*block_)[end] != ',' &&
                   (*block_)[end] != '}' && (*block_)[end] != ']') {
                ++end;
            }
            visitor_.value(path_, text().substr(from, end - from));
            at_ = end;
            return true;
        }
        need(longest_element);
        std::size_t end = text().npos;
        std::size_t broken = end;
        if (opens == '"') {
            end = at_ + 1;
            while (end < block_->size() && (*block_)[end] != '"') {
                end += (*block_)[end] == '\\' ? 2 : 1;
            }
            end = end < block_->size() ? end + 1 : text().npos;
        } else {
            end = end_of_element(text(), at_, broken);
        }
        if (end != text().npos) {
            visitor_.value(path_, text().substr(at_, end - at_));
            at_ = end;
            return true;
        }
        return skip_value();
    }

    /// As many bytes from at_ on as there are, up to `size`.
    void need(std::size_t size) {
        if (block_->size() - at_ < size && !ended_) {
            (void)refill();
        }
    }

    bool elements() {
        ++at_;
        JsonElements some;
        bool open = true;
        while (open) {
            skip_between();
            if (at_ == block_->size()) {
                if (ended_) {
                    damage_.cut = true;
                    break;
                }
                if (!hand_over(some) || !refill().ok()) {
                    return false;
                }
                continue;
            }
            if ((*block_)[at_] == '{') {
                open = element(some);
            } else if ((*block_)[at_] == ']') {
                ++at_;
                return hand_over(some);
            } else {
                // No object: nothing that a trace knows.
                damage_.elements += 1;
                open = resume(some, at_ + 1);
            }
        }
        hand_over(some);
        return false;
    }

    void skip_between() {
        while (at_ < block_->size() && (is_space((*block_)[at_]) || (*block_)[at_] == ',')) {
            ++at_;
        }
    }

    /// One element that opens at at_. False where none follows.
    bool element(JsonElements& some) {
        std::size_t broken = text().npos;
        const std::size_t end = end_of_element(text(), at_, broken);
        if (end != text().npos) {
            some.texts.push_back(text().substr(at_, end - at_));
            if (first_) {
                first_key_ = first_key(some.texts.back());
                first_ = false;
            }
            at_ = end;
            return true;
        }
        if (broken != text().npos) {
            damage_.elements += 1;
            return resume(some, may_look_inside(broken) ? at_ + 1 : broken);
        }
        if (ended_) {
            damage_.cut = true;
            // What is unfinished may still hold whole ones, where a quote is missing.
            return resume(some, at_ + 1);
        }
        return hand_over(some) && refill().ok();
    }

    /// What is too long may be one that lacks a bracket, with whole ones behind it. Text that does so all along costs as many looks
    /// a block as this, no more.
    bool may_look_inside(std::size_t broken) { return broken - at_ == longest_element && looks_++ < most_looks; }

    /// Goes on with the next thing that looks like an event.
    bool resume(JsonElements& some, std::size_t from) {
        while (true) {
            const std::size_t found = next_like(text(), from, first_key_);
            if (found != text().npos) {
                at_ = found;
                return true;
            }
            // Its first characters may stand at the end of this block.
            const std::size_t last = block_->size() - std::min(block_->size(), longest_key + 32);
            at_ = std::max(from, last);
            if (ended_) {
                at_ = block_->size();
                return true;
            }
            if (!hand_over(some) || !refill().ok()) {
                return false;
            }
            from = 0;
        }
    }

    bool hand_over(JsonElements& some) {
        if (some.texts.empty()) {
            return true;
        }
        some.block = block_;
        return visitor_.elements(path_, std::exchange(some, {}));
    }

    Input& input_;
    const JsonVisitor& visitor_;
    JsonPath path_;
    std::shared_ptr<std::string> block_ = std::make_shared<std::string>();
    std::size_t at_ = 0;
    std::string first_key_ = "\"ph\""; // of the elements
    bool first_ = true;
    unsigned looks_ = 0; // within this block
    bool ended_ = false;
    Status status_;
    JsonDamage damage_;
};

} // namespace

std::size_t end_of_element(std::string_view text, std::size_t at, std::size_t& broken) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(text.data());
    const unsigned char* const start = begin + at;
    const unsigned char* const last = begin + std::min(text.size(), at + longest_element);
    const unsigned char* p = start;
    std::size_t depth = 0;
    while (p < last) {
        const std::uint8_t kind = outside_classes[*p];
        ++p;
        if (kind == other) {
            continue;
        }
        if (kind == opens) {
            if (++depth > deepest_element) {
                broken = static_cast<std::size_t>(p - begin);
                return text.npos;
            }
        } else if (kind == closes) {
            if (--depth == 0) {
                return static_cast<std::size_t>(p - begin);
            }
        } else {
            while (true) {
                while (p < last && !inside_stops[*p]) {
                    ++p;
                }
                if (p >= last) {
                    break;
                }
                const unsigned char c = *p++;
                if (c == '"') {
                    break;
                }
                if (c == '\n') {
                    broken = static_cast<std::size_t>(p - begin);
                    return text.npos;
                }
                ++p; // what is escaped
            }
        }
    }
    if (last < begin + text.size()) {
        broken = static_cast<std::size_t>(last - begin);
    }
    return text.npos;
}

std::string_view first_key(std::string_view object) {
    std::size_t at = 1;
    while (at < object.size() && is_space(object[at])) {
        ++at;
    }
    const std::size_t end = at < object.size() && object[at] == '"' ? object.find('"', at + 1) : object.npos;
    return end < at + longest_key ? object.substr(at, end + 1 - at) : "\"ph\"";
}

std::size_t next_like(std::string_view text, std::size_t at, std::string_view key) {
    while ((at = text.find('{', at)) != text.npos) {
        std::size_t inside = at + 1;
        while (inside < text.size() && inside < at + 32 && is_space(text[inside])) {
            ++inside;
        }
        if (text.compare(inside, key.size(), key) == 0) {
            return at;
        }
        ++at;
    }
    return text.npos;
}

Result<JsonDamage> walk_json(Input& input, const JsonVisitor& visitor) { return Walker(input, visitor).walk(); }

} // namespace plumb::imported
