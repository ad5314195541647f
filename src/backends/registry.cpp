// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.hpp"

namespace plumb {

std::vector<Backend*> all_backends() {
    const std::span<Backend* const> all = registered_backends();
    return {all.begin(), all.end()};
}

Result<Backend*> find_backend(const std::string& name) {
    std::string known;
    for (Backend* backend : registered_backends()) {
        if (name == backend->name()) {
            return backend;
        }
        known += known.empty() ? "" : ", ";
        known += backend->name();
    }
    return Error{ErrorCode::not_found, "there is no backend \"" + name + "\" in this build; choose one of: " + known};
}

} // namespace plumb
