// SPDX-License-Identifier: Apache-2.0
// Texts once, by number. Owned by one trace; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace plumb::imported {

class Names {
  public:
    /// Longer texts are cut there.
    static constexpr std::size_t longest = 4096;

    Names() = default;
    Names(Names&&) noexcept = default; // texts keep their addresses
    Names& operator=(Names&&) noexcept = default;

    std::uint32_t intern(std::string_view text) {
        text = text.substr(0, longest);
        const auto found = ids_.find(text);
        if (found != ids_.end()) {
            return found->second;
        }
        const auto id = static_cast<std::uint32_t>(texts_.size());
        ids_.emplace(texts_.emplace_back(text), id);
        return id;
    }
    [[nodiscard]] const std::string& operator[](std::uint32_t id) const { return texts_[id]; }
    [[nodiscard]] std::size_t size() const { return texts_.size(); }

  private:
    std::deque<std::string> texts_; // they stay where they are
    std::unordered_map<std::string_view, std::uint32_t> ids_;
};

} // namespace plumb::imported
