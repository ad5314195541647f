// SPDX-License-Identifier: Apache-2.0
// Scopes of one queue that lie between two stamps of its device; where one lap ends and the next begins they share one.
// What every asynchronous backend has alike: slots, tokens, borders and bounds; taking and reading stamps is the
// backend's. Owned by a queue timer. Thread rule: any thread, lock-free. All memory is taken at creation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backends/token_pool.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends {

/// The stamps of a queue. `Stamper` has a copyable type Stamp and, none of which may throw:
///   Status take(Stamp&)        asks the device for a stamp, now
///   void drop(Stamp&)          a stamp that nobody needs any more; what it holds may stay in it for the next take()
///   void ended(const Stamp&)   a scope has ended with this stamp, and others may collect it already
/// The stamper outlives the scopes.
template <class Stamper>
class StampedScopes {
    using Stamp = typename Stamper::Stamp;
    /// A stamp that one scope begins or ends with, or where one lap ends and the next begins.
    struct Border {
        Stamp stamp{};
        std::atomic<std::uint32_t> uses{0};
    };
    struct BorderRef {
        Border* border = nullptr;
        DeviceToken token;
    };
    struct Scope {
        BorderRef begin;
        BorderRef end;
    };
    using Scopes = TokenPool<Scope>;
    using Borders = TokenPool<Border>;
    struct Free {
        void operator()(void* memory) const { ::operator delete(memory, std::align_val_t{64}); }
    };

  public:
    static constexpr std::uint32_t most_in_flight = (1u << 23) - 1; // twice as many borders still fit a token

    static Result<std::unique_ptr<StampedScopes>> create(Stamper& stamper, std::uint32_t max_in_flight) {
        if (max_in_flight == 0 || max_in_flight > most_in_flight) {
            return Error{ErrorCode::invalid_argument, "max_in_flight is " + std::to_string(max_in_flight) +
                                                          "; give a number from 1 to " +
                                                          std::to_string(most_in_flight)};
        }
        const std::size_t bytes = Scopes::bytes(max_in_flight) + Borders::bytes(2 * max_in_flight);
        void* memory = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
        if (memory == nullptr) {
            return Error{ErrorCode::out_of_memory, "there is no memory for " + std::to_string(max_in_flight) +
                                                       " scopes in flight; lower max_in_flight"};
        }
        return std::unique_ptr<StampedScopes>(new StampedScopes(stamper, memory, max_in_flight));
    }

    /// Hands out the stamps of `count` borders once, so that their first take() finds what it needs.
    template <class Prepare>
    Status prepare(std::uint32_t count, Prepare prepare) {
        std::vector<BorderRef> borders;
        Status status;
        while (status && borders.size() < count) {
            BorderRef ref;
            ref.border = borders_.acquire(ref.token);
            if (ref.border == nullptr) {
                break;
            }
            borders.push_back(ref);
            status = prepare(ref.border->stamp);
        }
        for (const BorderRef& ref : borders) {
            borders_.release(ref.token);
        }
        return status;
    }

    Result<DeviceToken> begin() noexcept {
        DeviceToken token;
        Scope* scope = scopes_.acquire(token); // first: where the bound is met, nothing is asked of the device
        if (scope == nullptr) {
            return too_many();
        }
        const Result<BorderRef> border = new_border();
        if (!border) {
            scopes_.release(token);
            return border.error();
        }
        return open(token, *scope, *border);
    }

    Status end(DeviceToken token) noexcept {
        const Result<BorderRef> border = end_at_border(token, 1);
        return border ? Status() : Status(border.error());
    }

    /// Ends one scope and begins the next with one stamp; either may be one that is not timed (token_not_timed). When
    /// this fails both are given up.
    Result<DeviceToken> lap(DeviceToken ended, bool next_timed) noexcept {
        if (ended.value == token_not_timed) {
            return next_timed ? begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
        }
        const Result<BorderRef> border = end_at_border(ended, next_timed ? 2 : 1);
        if (!border) {
            cancel(ended);
            return border.error();
        }
        if (!next_timed) {
            return DeviceToken{token_not_timed};
        }
        DeviceToken token;
        Scope* scope = scopes_.acquire(token);
        if (scope == nullptr) {
            give_back(*border);
            cancel(ended);
            return too_many();
        }
        return open(token, *scope, *border);
    }

    /// A scope that has ended already: `stamp` holds both its times. It is the scopes' now, unless this fails.
    Result<DeviceToken> adopt(const Stamp& stamp) noexcept {
        DeviceToken token;
        Scope* scope = scopes_.acquire(token);
        if (scope == nullptr) {
            return too_many();
        }
        scope->begin.border = borders_.acquire(scope->begin.token);
        if (scope->begin.border == nullptr) {
            scopes_.release(token);
            return too_many();
        }
        scope->begin.border->stamp = stamp;
        scope->begin.border->uses.store(2, std::memory_order_relaxed); // nobody else knows it yet
        scope->end = scope->begin;
        scopes_.put(token, TokenState::ended);
        return token;
    }

    /// `read(const Stamp& begin, const Stamp& end)` gives the span; while it answers pending the token stays valid.
    template <class Read>
    Result<DeviceSpan> collect(DeviceToken token, Read read) noexcept {
        TokenState found;
        Scope* scope = scopes_.take(token, TokenState::ended, found);
        if (scope == nullptr && found == TokenState::open) {
            return Error{ErrorCode::pending, "this scope is still open; collect it after its end"};
        }
        if (scope == nullptr) {
            return not_in_flight(TokenState::unknown);
        }
        Result<DeviceSpan> span = read(scope->begin.border->stamp, scope->end.border->stamp);
        if (!span && span.error().code == ErrorCode::pending) {
            scopes_.put(token, TokenState::ended);
        } else {
            free_scope(token, *scope);
        }
        return span;
    }

    void cancel(DeviceToken token) noexcept {
        TokenState found;
        Scope* scope = scopes_.take(token, TokenState::open, found);
        if (scope == nullptr) {
            scope = scopes_.take(token, TokenState::ended, found);
        }
        if (scope != nullptr) {
            free_scope(token, *scope);
        }
    }

    /// `look(const Stamp&)` sees the stamp that an ended scope ends with, while nobody can drop it; it must be short.
    template <class Look>
    Status look_at_end(DeviceToken token, Look look) noexcept {
        TokenState found;
        Scope* scope = scopes_.take(token, TokenState::ended, found);
        if (scope == nullptr) {
            return found == TokenState::open
                       ? Error{ErrorCode::invalid_argument, "this scope is still open; end it before waiting"}
                       : not_in_flight(TokenState::unknown);
        }
        look(std::as_const(scope->end.border->stamp));
        scopes_.put(token, TokenState::ended);
        return {};
    }

    /// Drops the stamps of every scope in flight: before the stamper goes. No other call may run.
    void drop_all() noexcept {
        scopes_.for_each_in_flight([this](Scope& scope) {
            give_back(std::exchange(scope.begin, {}));
            give_back(std::exchange(scope.end, {}));
        });
    }

    [[nodiscard]] std::size_t in_flight() const noexcept { return scopes_.in_flight(); }

  private:
    StampedScopes(Stamper& stamper, void* memory, std::uint32_t max_in_flight)
        : stamper_(stamper), memory_(memory), scopes_(memory, max_in_flight),
          borders_(static_cast<char*>(memory) + Scopes::bytes(max_in_flight), 2 * max_in_flight) {}

    static Error too_many() {
        return {ErrorCode::out_of_memory, "too many scopes are in flight on this queue; collect or cancel some first"};
    }
    static Error not_in_flight(TokenState found) {
        if (found == TokenState::ended) {
            return {ErrorCode::not_found, "this scope was ended before; end each token once"};
        }
        return {ErrorCode::not_found, "this token is not in flight here; use a token of this timer's begin(), once"};
    }

    Result<BorderRef> new_border() noexcept {
        BorderRef ref;
        ref.border = borders_.acquire(ref.token);
        if (ref.border == nullptr) {
            return too_many();
        }
        if (const Status taken = stamper_.take(ref.border->stamp); !taken) {
            borders_.release(ref.token);
            return taken.error();
        }
        ref.border->uses.store(1, std::memory_order_relaxed); // nobody else knows it yet
        return ref;
    }

    void give_back(BorderRef ref) noexcept {
        // Acquire and release: the last user drops what the others have finished with.
        if (ref.border != nullptr && ref.border->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            stamper_.drop(ref.border->stamp);
            borders_.release(ref.token);
        }
    }

    void free_scope(DeviceToken token, Scope& scope) noexcept {
        give_back(std::exchange(scope.begin, {}));
        give_back(std::exchange(scope.end, {}));
        scopes_.release(token);
    }

    DeviceToken open(DeviceToken token, Scope& scope, BorderRef border) noexcept {
        scope.begin = border;
        scope.end = {};
        scopes_.put(token, TokenState::open);
        return token;
    }

    // A scope whose end fails stays open: the caller may cancel it.
    Result<BorderRef> end_at_border(DeviceToken token, std::uint32_t uses) noexcept {
        TokenState found;
        Scope* scope = scopes_.take(token, TokenState::open, found);
        if (scope == nullptr) {
            return not_in_flight(found);
        }
        const Result<BorderRef> border = new_border();
        if (!border) {
            scopes_.put(token, TokenState::open);
            return border.error();
        }
        border->border->uses.store(uses, std::memory_order_relaxed); // before anybody else can know it
        const Stamp stamp = border->border->stamp;
        scope->end = *border;
        scopes_.put(token, TokenState::ended);
        stamper_.ended(stamp);
        return border;
    }

    Stamper& stamper_;
    std::unique_ptr<void, Free> memory_;
    Scopes scopes_;
    Borders borders_;
};

} // namespace plumb::backends
