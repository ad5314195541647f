// SPDX-License-Identifier: Apache-2.0
#include "cli/model_words.hpp"

#include <algorithm>
#include <vector>

#include "decoder/model_maker/shapes.hpp"

namespace plumb::cli {

using decoder::Type;

CLI::Validator shape_word() {
    std::vector<std::string> out;
    for (const decoder::Shape& shape : decoder::shapes()) {
        out.emplace_back(shape.name);
    }
    return CLI::IsMember(out);
}

CLI::Validator type_word() {
    std::vector<std::string> out;
    for (const Type type : decoder::all_types) {
        out.emplace_back(decoder::layout_of(type).word);
    }
    return CLI::IsMember(out);
}

Type type_of(const std::string& word) {
    return *std::find_if(decoder::all_types.begin(), decoder::all_types.end(),
                         [&](Type type) { return decoder::layout_of(type).word == word; });
}

} // namespace plumb::cli
