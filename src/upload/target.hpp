// SPDX-License-Identifier: Apache-2.0
// Where rows go: clickhouse://host:port[,host:port…]/database, a host for each shard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"
#include "upload/http.hpp"

namespace plumb::upload {

struct Target {
    std::vector<HttpServer> shards;
    std::string database;
    /// The one that a Distributed table with the sharding key ifNull(rank, 0) looks for this rank on.
    [[nodiscard]] const HttpServer& shard_of(std::optional<std::int64_t> rank) const {
        return shards[static_cast<std::uint64_t>(rank.value_or(0)) % shards.size()];
    }
};

/// Error invalid_argument: what is wrong with it, and an example.
[[nodiscard]] Result<Target> parse_target(std::string_view url);

} // namespace plumb::upload
