// SPDX-License-Identifier: Apache-2.0
#include "session/rank_identity.hpp"

#include <charconv>

#include "base/os.hpp"

namespace plumb::session {
namespace {

constexpr std::uint64_t most_ranks = 1'000'000;
constexpr std::size_t longest_group = 32;

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool all = failed == std::errc{} && end == text.data() + text.size() && value <= most_ranks;
    return all ? std::optional(value) : std::nullopt;
}

/// "3/8", an index below a size.
bool read_place(std::string_view text, std::uint64_t& index, std::uint64_t& size) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return false;
    }
    index = number_of(text.substr(0, slash)).value_or(most_ranks);
    size = number_of(text.substr(slash + 1)).value_or(0);
    return index < size;
}

bool add_part(RankIdentity& to, std::string_view part) {
    std::uint64_t index = 0;
    std::uint64_t size = 0;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
        const bool place = read_place(part, index, size);
        const auto rank = place ? std::optional(index) : number_of(part);
        to.rank = rank ? std::to_string(*rank) : "";
        to.world = place ? size : 0;
        return rank.has_value();
    }
    if (!read_place(part.substr(equals + 1), index, size) || equals == 0 || equals > longest_group) {
        return false;
    }
    to.groups.push_back(
        {std::string(part.substr(0, equals)), static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(size), {}});
    return true;
}

const char* variable(const char* name) {
    const char* value = base::environment(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

// LOCAL_RANK alone: a launcher on one machine.
constexpr const char* launchers[][2] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
    {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

} // namespace

std::optional<RankIdentity> parse_rank(std::string_view spec) {
    RankIdentity found;
    for (;;) {
        const std::size_t plus = spec.find('+');
        if (!add_part(found, spec.substr(0, plus))) {
            return std::nullopt;
        }
        if (plus == std::string_view::npos) {
            return found;
        }
        spec = spec.substr(plus + 1);
    }
}

RankIdentity rank_identity(std::string_view spec) {
    RankIdentity found;
    for (const auto& [rank, world] : launchers) {
        if (const char* value = variable(rank); value != nullptr) {
            found.rank = value;
            const char* size = variable(world);
            found.world = size != nullptr ? number_of(size).value_or(0) : 0;
            break;
        }
    }
    if (const auto said = spec.empty() ? std::nullopt : parse_rank(spec)) {
        found.rank = said->rank.empty() ? found.rank : said->rank;
        found.world = said->world == 0 ? found.world : said->world;
        found.groups = said->groups;
    }
    return found;
}

} // namespace plumb::session
