// SPDX-License-Identifier: Apache-2.0
#include "resolve/name_table.hpp"

namespace plumb::resolve {

NameTable::NameTable(const std::vector<recording::NameInfo>& names) {
    for (const recording::NameInfo& name : names) {
        names_.emplace(name.id, name);
    }
#define PLUMB_ADD_WELL_KNOWN(name, id, category, aliases) \
    names_.emplace(std::uint16_t{id}, recording::NameInfo{id, Category::category, #name});
    PLUMB_WELL_KNOWN_BRICKS(PLUMB_ADD_WELL_KNOWN)
#undef PLUMB_ADD_WELL_KNOWN
}

const recording::NameInfo* NameTable::find(std::uint16_t id) const noexcept {
    const auto found = names_.find(id);
    return found == names_.end() ? nullptr : &found->second;
}

std::string NameTable::text(std::uint16_t id) const {
    const recording::NameInfo* info = find(id);
    return info != nullptr ? info->name : "name " + std::to_string(id);
}

Category NameTable::category(std::uint16_t id) const noexcept {
    const recording::NameInfo* info = find(id);
    return info != nullptr ? info->category : Category::other;
}

} // namespace plumb::resolve
