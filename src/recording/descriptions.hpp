// SPDX-License-Identifier: Apache-2.0
// What was said of a run, by key: keys in the order they came in, the last value of each. A plain value; no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recording/metadata_codec.hpp"

namespace plumb::recording {

class Descriptions {
  public:
    /// False: the key was there, and has a new value.
    bool set(Description given) {
        const auto [place, fresh] = places_.try_emplace(given.first, all_.size());
        if (fresh) {
            all_.push_back(std::move(given));
        } else {
            all_[place->second].second = std::move(given.second);
        }
        return fresh;
    }
    [[nodiscard]] const std::vector<Description>& all() const noexcept { return all_; }

  private:
    std::vector<Description> all_;
    std::unordered_map<std::string, std::size_t> places_;
};

} // namespace plumb::recording
