// SPDX-License-Identifier: Apache-2.0
#include "support/models.hpp"

#include <cstdio>
#include <filesystem>

#include "decoder/gguf/reader.hpp"
#include "decoder/model_maker/maker.hpp"

namespace bench {

plumb::Result<std::string> model_file(const std::string& folder, const std::string& shape, const std::string& type) {
    using namespace plumb::decoder;
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    const std::string path = folder + "/" + shape + "-" + type + ".gguf";
    if (gguf::File::open(path).ok()) {
        return path;
    }
    const Shape* known = find_shape(shape);
    if (known == nullptr) {
        return plumb::Error{plumb::ErrorCode::not_found,
                            "there is no shape \"" + shape + "\"; plumb model make lists them"};
    }
    std::fprintf(stderr, "making %s (once)\n", path.c_str());
    MakeOptions options;
    for (const Type one : all_types) {
        if (layout_of(one).word == type) {
            options.type = one;
        }
    }
    options.replace = true;
    if (plumb::Status made = make_model(*known, path, options); !made.ok()) {
        return made.error();
    }
    return path;
}

} // namespace bench
