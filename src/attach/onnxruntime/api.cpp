// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/api.hpp"

#include <charconv>
#include <string_view>

namespace plumb::attach::onnxruntime {

OrtApi OrtApi::read(void* const* table, unsigned minor) {
    OrtApi made;
#define PLUMB_ORT_READ(name, place, since, result, parameters)            \
    if (minor >= (since)) {                                               \
        made.name = reinterpret_cast<result(*) parameters>(table[place]); \
    }
    PLUMB_ORT_FUNCTIONS(PLUMB_ORT_READ)
#undef PLUMB_ORT_READ
    return made;
}

unsigned minor_of(const char* version) {
    std::string_view text = version != nullptr ? version : "";
    unsigned minor = 0;
    if (!text.starts_with("1.")) {
        return 0;
    }
    text.remove_prefix(2);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minor);
    return error == std::errc() && (end == text.data() + text.size() || *end == '.') ? minor : 0;
}

} // namespace plumb::attach::onnxruntime
