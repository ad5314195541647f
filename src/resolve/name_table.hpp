// SPDX-License-Identifier: Apache-2.0
// Names and categories by id: those of the recording first, the well-known bricks where it names none. Constant once
// built; may then be shared between threads.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumb/bricks.hpp"
#include "recording/recording.hpp"

namespace plumb::resolve {

class NameTable {
  public:
    explicit NameTable(const std::vector<recording::NameInfo>& names);

    /// Null for an id that neither the recording nor this library knows.
    [[nodiscard]] const recording::NameInfo* find(std::uint16_t id) const noexcept;
    /// The name, or "name 1234" for an id that nobody named.
    [[nodiscard]] std::string text(std::uint16_t id) const;
    [[nodiscard]] Category category(std::uint16_t id) const noexcept;

  private:
    std::unordered_map<std::uint16_t, recording::NameInfo> names_;
};

} // namespace plumb::resolve
