// SPDX-License-Identifier: Apache-2.0
// Tokens of the decoder's tokenizer against those of another program. Exit status 1 where one differs.
// usage: plumb_compare_tokens vocabulary.gguf reference.jsonl
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "decoder/tokenizer/tokenizer.hpp"

using namespace plumb::decoder;

namespace {

int fail(const std::string& sentence) {
    std::cerr << sentence << '\n';
    return 2;
}

} // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        return fail("usage: plumb_compare_tokens vocabulary.gguf reference.jsonl");
    }
    std::ifstream file(arguments[1], std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const auto contents = gguf::parse(std::as_bytes(std::span(bytes)), arguments[1]);
    if (!contents) {
        return fail(contents.error().message);
    }
    auto tokenizer = Tokenizer::make(*contents);
    if (!tokenizer) {
        return fail(tokenizer.error().message);
    }
    std::size_t texts = 0, differ = 0;
    std::ifstream reference(arguments[2]);
    for (std::string line; std::getline(reference, line); ++texts) {
        const auto one = nlohmann::json::parse(line);
        const auto expected = one["tokens"].get<std::vector<std::int32_t>>();
        const auto tokens = tokenizer->encode(one["text"].get<std::string>(), {false, true});
        if (tokens.ok() && *tokens == expected) {
            continue;
        }
        if (++differ <= 3) {
            std::cout << "  " << one["text"].dump(-1, ' ', true) << "\n    expected " << one["tokens"].dump()
                      << "\n    actual   " << (tokens.ok() ? nlohmann::json(*tokens).dump() : tokens.error().message)
                      << '\n';
        }
    }
    std::cout << texts << " texts, " << differ << " differ\n";
    return texts == 0 || differ != 0 ? 1 : 0;
}
