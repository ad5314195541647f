// SPDX-License-Identifier: Apache-2.0
#include "analysis/row_origin.hpp"

namespace plumb::analysis {

RowOrigin origin_of(const Row& row) { return {row.source, row.device, row.basis}; }

std::string words_apart(const RowOrigin& own, const std::set<RowOrigin>& all) {
    bool of_source = false;
    bool of_place = false;
    bool of_basis = false;
    for (const RowOrigin& other : all) {
        const bool alike = other.source == own.source;
        of_source = of_source || !alike;
        of_place = of_place || (alike && other.device != own.device);
        of_basis = of_basis || (alike && other.device == own.device && other.basis != own.basis);
    }
    std::string words;
    const auto add = [&words](bool told, const std::string& word) {
        if (told) {
            words += (words.empty() ? "" : ", ") + word;
        }
    };
    add(of_source, own.source);
    add(of_place, own.device ? "device" : "host");
    add(of_basis, own.basis == RowBasis::replays       ? "replays"
                  : own.basis == RowBasis::timed_steps ? "some steps"
                                                       : "every step");
    return words;
}

} // namespace plumb::analysis
