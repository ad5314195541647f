// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <vector>

#include "asking/beside.hpp"
#include "base/dynamic_library.hpp"

namespace plumb::asking {

Result<void*> open_beside(const std::string& file, const std::string& symbol, const std::string& advice) {
    std::vector<std::string> places;
    Dl_info own{};
    if (dladdr(reinterpret_cast<const void*>(&open_beside), &own) != 0 && own.dli_fname != nullptr) {
        const std::string self = own.dli_fname;
        if (const std::size_t slash = self.rfind('/'); slash != std::string::npos) {
            places.push_back(self.substr(0, slash + 1) + file);
        }
    }
    places.push_back(file);
    const Result<base::DynamicLibrary> library = base::DynamicLibrary::open(places, advice);
    if (!library.ok()) {
        return library.error();
    }
    const Result<void*> found = library->symbol(symbol);
    return found.ok() ? *found : Result<void*>(Error{ErrorCode::unavailable, found.error().message});
}

} // namespace plumb::asking
