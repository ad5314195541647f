// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/rows.hpp"

namespace plumb::cudagraph {

namespace {
constexpr std::int64_t one_second = 1'000'000'000;
}

std::shared_ptr<Row> RowTable::row(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    const auto known = rows_.find(key);
    if (known != rows_.end()) {
        return known->second;
    }
    if (rows_.size() >= most_) {
        return nullptr;
    }
    return rows_.emplace(key, std::make_shared<Row>(key)).first->second;
}

void RowTable::collect(std::vector<recording::GraphInfo>& out, std::int64_t now_ns, bool all) {
    std::vector<std::shared_ptr<Row>> rows;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [key, row] : rows_) {
            rows.push_back(row);
        }
    }
    for (const std::shared_ptr<Row>& row : rows) {
        const std::uint64_t replays = row->replays.load(std::memory_order_relaxed);
        const std::lock_guard lock(row->mutex);
        const bool counted = row->measured || replays != row->replays_handed_over;
        const bool due = all || now_ns - row->handed_over_ns >= one_second;
        if (!row->changed && !(counted && due)) {
            continue;
        }
        row->changed = false;
        row->measured = false;
        row->handed_over_ns = now_ns;
        row->replays_handed_over = replays;
        recording::GraphInfo info = row->info;
        info.replays += replays;
        info.instrumented += row->instrumented.load(std::memory_order_relaxed);
        info.unread += row->unread.load(std::memory_order_relaxed);
        if (replays != 0) {
            info.launch_ns = static_cast<double>(row->launch_ns.load(std::memory_order_relaxed));
        }
        out.push_back(std::move(info));
    }
}

} // namespace plumb::cudagraph
