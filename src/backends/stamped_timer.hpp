// SPDX-License-Identifier: Apache-2.0
// A queue timer over StampedScopes: what is the same for every queue whose scopes lie between two stamps of its device and
// are sampled by step. Backends add how a stamp is taken, read and placed. Owned by its maker; any thread.
#pragma once

#include <memory>
#include <utility>

#include "backends/stamped_scopes.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends {

template <class Stamper>
class StampedTimer : public QueueTimer {
  public:
    Result<DeviceToken> begin() noexcept override { return scopes_->begin(); }
    Status end(DeviceToken token) noexcept final { return scopes_->end(token); }
    Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept final {
        return label.timed ? begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
    }
    Status end_labelled(DeviceToken token, const Work*) noexcept final {
        return token.value == token_not_timed ? Status() : end(token);
    }
    Result<DeviceToken> lap(DeviceToken ended, const Work*, const ScopeLabel& next) noexcept final {
        return scopes_->lap(ended, next.timed);
    }
    bool sampled_by_step() const noexcept final { return true; }
    void cancel(DeviceToken token) noexcept final { scopes_->cancel(token); }
    bool immediate() const noexcept final { return immediate_; }
    bool clock_is_host() const noexcept final { return false; }
    std::size_t in_flight() const noexcept final { return scopes_->in_flight(); }

  protected:
    explicit StampedTimer(bool immediate) : immediate_(immediate) {}

    /// Before anything that a stamp refers to goes.
    void drop_scopes() noexcept {
        if (scopes_ != nullptr) {
            scopes_->drop_all();
            scopes_.reset();
        }
    }
    Status make_scopes(Stamper& stamper, std::uint32_t max_in_flight) {
        auto made = StampedScopes<Stamper>::create(stamper, max_in_flight);
        if (!made) {
            return made.error();
        }
        scopes_ = std::move(*made);
        return {};
    }

    std::unique_ptr<StampedScopes<Stamper>> scopes_;

  private:
    bool immediate_;
};

} // namespace plumb::backends
