// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/graph_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace plumb::cudagraph {

namespace {

constexpr std::int64_t one_second = 1'000'000'000;

Figure figure(double value, const char* otherwise) {
    return std::isnan(value) ? Figure{std::nullopt, otherwise} : Figure{value, ""};
}

bool same_site(const recording::GraphSite& a, const recording::GraphSite& b) {
    return a.name == b.name && a.layer_plus_one == b.layer_plus_one && a.occurrence == b.occurrence &&
           a.nodes == b.nodes && a.leaf == b.leaf && a.lap == b.lap;
}

std::string words_of(const recording::GraphNodeChange& change) {
    return change.kernel + ": " + std::to_string(change.before) + " before, " + std::to_string(change.after) + " now";
}

} // namespace

void GraphAccount::update(const Change& how, bool& flag, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (number != any_capture && number != capture_) {
        return;
    }
    how(info_);
    flag = true;
    if (dropped_) {
        info_.twin_bytes = recording::GraphInfo::unknown; // of a twin that was being built when its graph went
    }
}

/// The caller holds the lock.
void GraphAccount::begin_capture() {
    ++capture_;
    changed_ = true;
    dropped_ = false;
    same_graph_ = false;
    ++info_.captures;
    info_.track = 0;
    info_.nodes.clear();
    info_.unattributed.clear();
    info_.node_changes.clear();
    info_.sites.clear();
    info_.sites_told_by.clear();
    info_.content.reset();
    info_.twin.clear();
    info_.twin_reason.clear();
    info_.every = 0;
    for (double* const figure :
         {&info_.twin_build_ns, &info_.twin_bytes, &info_.site_cost_ns, &info_.site_cost_error_ns, &info_.tick_ns,
          &info_.plain_span_ns, &info_.closure_raw, &info_.closure}) {
        *figure = recording::GraphInfo::unknown;
    }
}

/// The caller holds the lock. Against the capture before, where somebody looked into that one.
void GraphAccount::compare(const GraphShape& shape) {
    if (kernels_of_ != 0 && kernels_of_ + 1 == capture_) {
        ++info_.node_checks;
        info_.node_changes = compare_kernels(kernels_, shape.kernels);
    }
    kernels_ = shape.kernels;
    kernels_of_ = capture_;
    info_.nodes = shape.nodes_by_type;
    changed_ = true;
}

std::uint64_t GraphAccount::captured() {
    const std::lock_guard lock(mutex_);
    begin_capture();
    return capture_;
}

std::uint64_t GraphAccount::captured(const GraphShape& shape, CapturedScopes scopes) {
    const std::lock_guard lock(mutex_);
    const bool same_so_far = same_graph_;
    const std::uint32_t track = info_.track;
    const std::vector<recording::GraphSite> before = std::move(info_.sites);
    begin_capture();
    compare(shape);
    same_graph_ = same_so_far && info_.node_changes.empty() &&
                  std::equal(scopes.sites.begin(), scopes.sites.end(), before.begin(), before.end(), same_site);
    info_.track = same_graph_ ? track : 0;
    info_.unattributed = std::move(scopes.unattributed);
    info_.sites = std::move(scopes.sites);
    info_.content = std::move(scopes.content);
    info_.sites_told_by = std::move(scopes.told_by);
    return capture_;
}

void GraphAccount::look_into(const GraphShape& shape) {
    const std::lock_guard lock(mutex_);
    if (kernels_of_ != capture_) {
        compare(shape);
    }
}

TrackChoice GraphAccount::choose_track(std::uint64_t number, const std::string& source, const std::string& clock,
                                       const std::function<std::uint32_t()>& make) {
    const std::lock_guard lock(mutex_);
    if (number != capture_) {
        return {}; // that graph was replaced before its first sample was read
    }
    const auto fits = [&](const AccountTrack& track) {
        return track.source == source && track.clock == clock;
    };
    TrackChoice choice;
    if (same_graph_ && !tracks_.empty() && fits(tracks_.back())) {
        choice.id = tracks_.back().id;
    } else if (tracks_.size() < most_tracks) {
        choice = TrackChoice{make(), true};
        tracks_.push_back(AccountTrack{choice.id, source, clock});
    } else {
        const auto older = std::find_if(tracks_.rbegin(), tracks_.rend(), fits);
        choice.id = older != tracks_.rend() ? older->id : 0;
        mixed_ = choice.id != 0;
    }
    same_graph_ = same_graph_ || choice.is_new;
    info_.track = choice.id;
    changed_ = true;
    return choice;
}

void GraphAccount::dropped() {
    const std::lock_guard lock(mutex_);
    dropped_ = true;
    changed_ = true;
    info_.twin_bytes = recording::GraphInfo::unknown;
}

void GraphAccount::count_eager(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    std::vector<recording::NamedCount>& steps = info_.eager_steps;
    const auto place_of = [&steps](const std::string& name) {
        return std::find_if(steps.begin(), steps.end(), [&name](const auto& known) { return known.first == name; });
    };
    auto known = place_of(reason);
    if (known == steps.end()) {
        const std::string name = steps.size() < most_reasons ? reason : "other reasons";
        known = place_of(name);
        known = known != steps.end() ? known : steps.emplace(known, name, 0);
    }
    ++known->second;
    measured_ = true;
}

void GraphAccount::count_invalidation() {
    const std::lock_guard lock(mutex_);
    ++invalidations_;
}

void GraphAccount::found_stale(std::vector<std::string> texts) {
    const std::lock_guard lock(mutex_);
    stale_inputs_ = std::move(texts);
    changed_ = true;
}

void GraphAccount::probed(const std::string& why_not) {
    const std::lock_guard lock(mutex_);
    not_probed_ = why_not;
}

std::uint64_t GraphAccount::twin_bytes() const {
    const std::lock_guard lock(mutex_);
    return info_.twin_bytes > 0 ? static_cast<std::uint64_t>(info_.twin_bytes) : 0; // NaN is not > 0
}

CudaGraphRow GraphAccount::row() const {
    const std::lock_guard lock(mutex_);
    CudaGraphRow row;
    row.key = info_.key;
    row.captures = info_.captures;
    row.instantiations = info_.instantiations;
    row.updates = info_.updates;
    row.uploads = info_.uploads;
    row.replays = replays();
    row.evictions = info_.evictions;
    row.invalidations = invalidations_;
    row.eager_steps = info_.eager_steps;
    std::sort(row.eager_steps.begin(), row.eager_steps.end());
    row.rows_used = info_.rows_used;
    row.rows_padded = info_.rows_padded;
    row.nodes = info_.nodes;
    for (const recording::GraphNodeChange& change : info_.node_changes) {
        row.node_changes.push_back(words_of(change));
    }
    row.baked_in = info_.baked_in;
    row.stale_inputs = stale_inputs_;
    row.capture_ns = figure(info_.capture_ns, "never captured");
    row.instantiate_ns = figure(info_.instantiate_ns, "never instantiated");
    row.upload_ns = figure(info_.upload_ns, "never uploaded");
    row.launch_ns = figure(launch_ns(row.replays), "never replayed");
    row.bytes = figure(info_.bytes, "never captured");
    row.not_probed = not_probed_;
    return row;
}

bool GraphAccount::hand_over(recording::GraphInfo& to, std::int64_t now_ns, bool all) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t counted = replays();
    const bool moved = measured_ || counted != replays_handed_over_;
    const bool due = all || !handed_over_ || now_ns - handed_over_ns_ >= one_second;
    if (!changed_ && !(moved && due)) {
        return false;
    }
    changed_ = false;
    measured_ = false;
    handed_over_ = true;
    handed_over_ns_ = now_ns;
    replays_handed_over_ = counted;
    to = info_;
    to.replays = counted;
    to.instrumented = instrumented.load(std::memory_order_relaxed);
    to.unread = unread.load(std::memory_order_relaxed);
    to.launch_ns = launch_ns(counted);
    for (const std::string& stale : stale_inputs_) {
        to.baked_in.push_back("stale in replay: " + stale); // the recording has one list
    }
    if (mixed_) {
        to.twin_reason += std::string(to.twin_reason.empty() ? "" : "; ") + "changed in more than " +
                          std::to_string(most_tracks) + " captures: samples of the last ones are not told apart";
    }
    return true;
}

std::shared_ptr<GraphAccount> GraphLedger::account(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    if (const auto known = recorded_.find(key); known != recorded_.end()) {
        return known->second;
    }
    if (recorded_.size() < most_) {
        return recorded_.emplace(key, std::make_shared<GraphAccount>(key, true)).first->second;
    }
    if (others_.size() >= sweep_at_) {
        for (auto at = others_.begin(); at != others_.end();) {
            at = at->second.expired() ? others_.erase(at) : std::next(at);
        }
        sweep_at_ = std::max<std::size_t>(2 * others_.size(), 1024);
    }
    std::weak_ptr<GraphAccount>& other = others_[key];
    std::shared_ptr<GraphAccount> account = other.lock();
    if (account == nullptr) {
        account = std::make_shared<GraphAccount>(key, false);
        other = account;
    }
    return account;
}

void GraphLedger::collect(std::vector<recording::GraphInfo>& out, std::int64_t now_ns, bool all) {
    std::vector<std::shared_ptr<GraphAccount>> accounts;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [key, account] : recorded_) {
            accounts.push_back(account);
        }
    }
    for (const std::shared_ptr<GraphAccount>& account : accounts) {
        recording::GraphInfo info;
        if (account->hand_over(info, now_ns, all)) {
            out.push_back(std::move(info));
        }
    }
}

} // namespace plumb::cudagraph
