// SPDX-License-Identifier: Apache-2.0
// For tests: a recorder without a session. The test is its drain, and a clock it moves by hand stamps its records, unless
// the machine's is asked for. Thread rule: as Recorder; take() and drops() from one thread.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "record/recorder_access.hpp"
#include "record/ring_set.hpp"

namespace plumb::record {

inline constexpr Name norm = Brick::rms_norm;       // 1
inline constexpr Name attention = Brick::attention; // 9

/// Lets other threads run until `reached()`.
template <class Reached>
void yield_until(Reached reached) {
    while (!reached()) {
        std::this_thread::yield();
    }
}

/// Stands still until moved. One tick is one nanosecond.
class HandClock final : public HostClock {
  public:
    [[nodiscard]] std::uint64_t now_ticks() const noexcept override { return ticks_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return static_cast<std::int64_t>(now_ticks()); }
    [[nodiscard]] std::int64_t thread_cpu_ns() const noexcept override {
        return cpu_ns_.load(std::memory_order_relaxed);
    }

    void advance(std::uint64_t ticks) { ticks_.fetch_add(ticks, std::memory_order_relaxed); }
    void set(std::uint64_t ticks) { ticks_.store(ticks, std::memory_order_relaxed); }
    void set_cpu_ns(std::int64_t ns) { cpu_ns_.store(ns, std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> ticks_{1000};
    std::atomic<std::int64_t> cpu_ns_{0};
};

inline std::string node_time(const Record& record) {
    return " @" + std::to_string(record.first) +
           ((record.second & flag_moment) != 0 ? "" : " +" + std::to_string(payload_of(record)));
}

/// One record in words: "scope 1 @1000 +5 lap work", "work 1 bytes=64", "step_begin phase=2 #0 @1000", …
inline std::string words(const Record& record) {
    const std::string id = std::to_string(id_of(record));
    const std::string first = std::to_string(record.first);
    const std::string payload = std::to_string(payload_of(record));
    const std::string flags =
        std::string((record.second & flag_lap) != 0 ? " lap" : "") + ((record.second & flag_work) != 0 ? " work" : "");
    static const char* const quantities[] = {"bytes", "flops", "elements", "bytes_per_kv"};
    double value = 0;
    std::memcpy(&value, &record.first, sizeof value);
    const auto number = [](double v) {
        return v != v ? "none" : std::to_string(static_cast<long long>(v));
    };
    switch (kind_of(record)) {
    case RecordKind::empty:
        return "empty";
    case RecordKind::scope:
        return "scope " + id + " @" + first + " +" + payload + flags;
    case RecordKind::long_value:
        return "long " + first;
    case RecordKind::step_begin:
        return "step_begin phase=" + id + " #" + payload + " @" + first;
    case RecordKind::step_value:
        return "step_value " + id + "=" + first;
    case RecordKind::step_end:
        return "step_end phase=" + id + " @" + first + " +" + payload;
    case RecordKind::layer_begin:
        return "layer_begin " + id + " @" + first;
    case RecordKind::layer_end:
        return "layer_end " + id + " @" + first + " +" + payload;
    case RecordKind::context:
        return "context step+1=" + first + " layer+1=" + id;
    case RecordKind::context_end:
        return "context_end";
    case RecordKind::work:
        return "work " + id + " " + quantities[payload_of(record) % 4] + "=" + number(value);
    case RecordKind::span:
        return "span " + id + " @" + first + " +" + payload + flags;
    case RecordKind::origin:
        return "origin " + first;
    case RecordKind::label:
        return "label " + id + "=" + first;
    case RecordKind::cpu_time:
        return "cpu_time @" + first + " " + std::to_string(record.second & cpu_time_mask);
    case RecordKind::mark:
        return "mark " + id;
    case RecordKind::device_scope:
        return "device_scope " + id + " token=" + first + " track=" + payload + flags;
    case RecordKind::device_submit:
        return "device_submit @" + first + " +" + payload;
    case RecordKind::graph_launch:
        return "graph_launch key=" + first + " flags=" + id + " track=" + payload;
    case RecordKind::span_quality:
        return "span_quality " + id;
    case RecordKind::cause:
        return "cause " + payload + ":" + first;
    case RecordKind::span_lead:
        return "span_lead queued=" + first + " submitted=" + payload;
    case RecordKind::barrier_wait:
        return "barrier_wait " + first;
    case RecordKind::collective:
        return "collective " + payload + " group=" + id + " number+1=" + first;
    case RecordKind::kernel_code:
        return "kernel_code " + id + " hash=" + first + " shared=" + payload;
    case RecordKind::kernel_extent:
        return std::string(id_of(record) == 0 ? "grid " : "block ") + std::to_string(record.first & 0xffffffff) + "x" +
               std::to_string(record.first >> 32) + "x" + payload;
    case RecordKind::kernel:
        return "kernel " + id + node_time(record) + ((record.second & flag_work) != 0 ? " work" : "");
    case RecordKind::transfer_part:
        return "transfer_part " + id + "=" + first;
    case RecordKind::transfer:
        return "transfer " + id + node_time(record);
    case RecordKind::task_part:
        return "task_part " + id + "=" + first;
    case RecordKind::task:
        return "task " + id + node_time(record);
    case RecordKind::request_part:
        return "request_part " + id + "=" + first + (payload_of(record) != 0 ? " " + payload : "");
    case RecordKind::request:
        return "request " + first + " mark=" + id;
    case RecordKind::dependency:
        return std::string(id_of(record) == 0 ? "from " : "to ") + payload + "#" + first;
    }
    return "unknown kind";
}

using Words = std::vector<std::string>;

struct TestOptions {
    bool machine_clock = false;
    std::uint64_t ring_bytes = 64 * 1024;
    std::string directory; // empty: anonymous memory
    StampOptions stamps{};
    std::uint32_t tiles = 0; // that a thread keeps apart
};

class TestRecorder : public Recorder {
  public:
    explicit TestRecorder(const TestOptions& options = {})
        : rings_(std::make_unique<RingSet>(
              RingOptions{options.ring_bytes, options.directory, "", {0, 0}, options.tiles})) {
        StampOptions stamps = options.stamps;
        stamps.clock = options.machine_clock ? nullptr : &clock;
        stamps.tiles = stamps.tiles || options.tiles != 0;
        RecorderAccess::prepare(*this, stamps);
        RecorderAccess::connect(*this, rings_.get());
        on();
    }

    void on() { RecorderAccess::set_enabled(*this, true); }
    void off() { RecorderAccess::set_enabled(*this, false); }
    [[nodiscard]] RingSet& rings() { return *rings_; }

    /// Every ring's new records by track, and frees rings of ended threads, as the drain does.
    std::map<std::uint32_t, std::vector<Record>> take_tracks() {
        std::map<std::uint32_t, std::vector<Record>> result;
        for (const auto& ring : all_rings()) {
            detail::RingHeader& header = ring->header();
            const auto state = static_cast<detail::RingState>(header.state.load(std::memory_order_acquire));
            const std::uint64_t head = header.head.load(std::memory_order_acquire);
            std::uint64_t tail = header.tail.load(std::memory_order_relaxed);
            if (state == detail::RingState::free) {
                continue;
            }
            for (; tail != head; ++tail) {
                result[header.track].push_back(ring->records()[tail & (ring->capacity() - 1)]);
            }
            header.tail.store(tail, std::memory_order_release);
            if (state == detail::RingState::retired) {
                for (std::size_t i = 0; i < drop_reasons; ++i) {
                    ended_drops_[i] += detail::drops_of(header, i).exchange(0, std::memory_order_relaxed);
                }
                rings_->release(*ring);
            }
        }
        return result;
    }
    /// New records in words, of all tracks in order of track; without CPU-time samples unless asked for.
    Words take(bool cpu_times = false) {
        Words list;
        for (const auto& [track, records] : take_tracks()) {
            for (const Record& record : records) {
                if (cpu_times || kind_of(record) != RecordKind::cpu_time) {
                    list.push_back(words(record));
                }
            }
        }
        return list;
    }
    std::uint64_t drops(Drop reason) {
        const auto index = static_cast<std::size_t>(reason);
        std::uint64_t count = ended_drops_[index];
        for (const auto& ring : all_rings()) {
            count += detail::drops_of(ring->header(), index).load(std::memory_order_relaxed);
        }
        return count;
    }
    std::uint64_t all_drops() {
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < drop_reasons; ++i) {
            count += drops(static_cast<Drop>(i));
        }
        return count;
    }
    std::vector<std::shared_ptr<Ring>> all_rings() {
        std::uint64_t version = ~std::uint64_t{0};
        std::vector<std::shared_ptr<Ring>> list;
        rings_->rings(version, list);
        return list;
    }

    HandClock clock;

  private:
    std::unique_ptr<RingSet> rings_;
    std::uint64_t ended_drops_[drop_reasons] = {};
};

} // namespace plumb::record
