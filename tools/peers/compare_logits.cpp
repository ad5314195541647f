// SPDX-License-Identifier: Apache-2.0
// Logits of the decoder after a prompt against those of another program. Exit status 1 where they are further apart than LIMIT
// (relative, L2).
// usage: plumb_compare_logits model.gguf 1,2,3 reference.json LIMIT
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "decoder/decoder.hpp"
#include "plumb/plumb.hpp"

using namespace plumb;
using namespace plumb::decoder;

namespace {

int fail(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    return 2;
}

} // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        return fail("usage: plumb_compare_logits model.gguf 1,2,3 reference.json LIMIT");
    }
    std::vector<std::int32_t> tokens;
    std::istringstream list(arguments[2]);
    for (std::string token; std::getline(list, token, ',');) {
        tokens.push_back(std::stoi(token));
    }
    std::ifstream file(arguments[3]);
    const auto expected = nlohmann::json::parse(file, nullptr, false);
    Options options;
    options.widen_bf16 = true;
    auto decoder = Decoder::load(arguments[1], options);
    if (!decoder) {
        return fail(decoder.error().message);
    }
    Profiler off(*Config::parse("off"));
    if (Status status = decoder->prefill(tokens, off); !status) {
        return fail(status.error().message);
    }
    const auto logits = decoder->logits();
    if (!expected.is_array() || expected.size() != logits.size()) {
        return fail("the reference has no array of as many logits");
    }
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const auto other = expected[i].get<double>();
        difference += (static_cast<double>(logits[i]) - other) * (static_cast<double>(logits[i]) - other);
        norm += other * other;
    }
    const double relative = std::sqrt(difference / norm);
    std::printf("%.1e", relative);
    return relative <= std::stod(arguments[4]) ? 0 : 1;
}
