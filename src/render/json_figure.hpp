// SPDX-License-Identifier: Apache-2.0
// How every output in JSON writes a figure: the number, or {"absent": why}. Pure function.
#pragma once

#include <string_view>

#include "base/json_writer.hpp"
#include "plumb/results.hpp"

namespace plumb::render {

inline void put_figure(base::JsonWriter& json, std::string_view name, const Figure& figure) {
    json.key(name);
    if (figure.value) {
        json.value(*figure.value);
        return;
    }
    json.begin_object();
    json.field("absent", figure.reason);
    json.end();
}

} // namespace plumb::render
