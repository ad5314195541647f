// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/failures.hpp"

namespace plumb::vgpu {

namespace {

void add_rule(FailureRule rule) {
    const std::lock_guard lock(gpu().mutex);
    gpu().rules.push_back(std::move(rule));
}

FailureRule rule_of(FailureRule::Action action, std::string_view call, std::uint64_t nth, std::uint64_t times) {
    FailureRule rule;
    rule.action = action;
    rule.symbol = std::string(call);
    rule.first = nth;
    rule.times = times;
    return rule;
}

} // namespace

RuleOutcome apply_rules(const char* symbol) {
    RuleOutcome outcome;
    for (FailureRule& rule : gpu().rules) {
        if (rule.symbol != symbol && rule.symbol != "*") {
            continue;
        }
        const std::uint64_t number = ++rule.seen;
        if (number < rule.first || number - rule.first >= rule.times) {
            continue;
        }
        switch (rule.action) {
        case FailureRule::Action::fail:
            outcome.error = rule.error;
            break;
        case FailureRule::Action::slow:
            outcome.slow_ns += rule.slow_ns;
            break;
        case FailureRule::Action::hold:
            outcome.hold = rule.hold;
            break;
        case FailureRule::Action::lose:
            outcome.error = rule.error;
            outcome.loses = true;
            break;
        }
    }
    return outcome;
}

void stay_in(HoldState& hold) {
    std::unique_lock lock(hold.mutex);
    hold.inside = true;
    hold.changed.notify_all();
    hold.changed.wait(lock, [&hold] { return hold.released; });
}

void fail(std::string_view call, CuResult error, std::uint64_t nth, std::uint64_t times) {
    FailureRule rule = rule_of(FailureRule::Action::fail, call, nth, times);
    rule.error = error;
    add_rule(std::move(rule));
}

void slow(std::string_view call, std::int64_t ns, std::uint64_t nth, std::uint64_t times) {
    FailureRule rule = rule_of(FailureRule::Action::slow, call, nth, times);
    rule.slow_ns = ns;
    add_rule(std::move(rule));
}

void lose_device(CuResult error) {
    const std::lock_guard lock(gpu().mutex);
    settle();
    gpu().lost = error;
}

void lose_device_at(std::string_view call, CuResult error, std::uint64_t nth) {
    FailureRule rule = rule_of(FailureRule::Action::lose, call, nth, 1);
    rule.error = error;
    add_rule(std::move(rule));
}

void clear_failures() {
    const std::lock_guard lock(gpu().mutex);
    gpu().rules.clear();
}

bool all_failures_struck() {
    const std::lock_guard lock(gpu().mutex);
    for (const FailureRule& rule : gpu().rules) {
        if (rule.action != FailureRule::Action::hold && rule.seen < rule.first) {
            return false;
        }
    }
    return true;
}

Hold::Hold(std::string_view call, std::uint64_t nth) : state_(std::make_shared<HoldState>()) {
    FailureRule rule = rule_of(FailureRule::Action::hold, call, nth, 1);
    rule.hold = state_;
    add_rule(std::move(rule));
}

Hold::~Hold() {
    release();
    const std::lock_guard lock(gpu().mutex);
    std::erase_if(gpu().rules, [this](const FailureRule& rule) { return rule.hold == state_; });
}

void Hold::wait_until_inside() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->inside; });
}

void Hold::release() {
    const std::lock_guard lock(state_->mutex);
    state_->released = true;
    state_->changed.notify_all();
}

} // namespace plumb::vgpu
