// SPDX-License-Identifier: Apache-2.0
// The model behind the columns of a record chunk: what the next record probably is, so that only the surprise is stored.
// One instance per chunk and direction; starts afresh in each chunk, so chunks decode alone. Exact for any bits at all.
// docs/reference/plumb_format.md describes the same rules in words: change both, and the format version, together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace plumb::recording {

/// How a kind uses `first` and payload.
enum class RecordClass : std::uint8_t {
    value,   // first is any number
    point,   // first is a moment
    timed,   // first and payload are begin and duration; comes at its end
    apart,   // as timed, but outside the order of its track
    closing, // as timed, and closes the innermost open step or layer
};

constexpr RecordClass class_of(unsigned kind) {
    switch (static_cast<RecordKind>(kind)) {
    case RecordKind::scope:
    case RecordKind::device_submit:
        return RecordClass::timed;
    case RecordKind::span:
        return RecordClass::apart;
    case RecordKind::step_end:
    case RecordKind::layer_end:
        return RecordClass::closing;
    case RecordKind::step_begin:
    case RecordKind::layer_begin:
    case RecordKind::cpu_time:
    case RecordKind::mark:
        return RecordClass::point;
    default:
        return RecordClass::value;
    }
}

constexpr std::uint64_t zigzag(std::uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
constexpr std::uint64_t unzigzag(std::uint64_t code) { return (code >> 1) ^ (0 - (code & 1)); }

/// The same modulo 2^bits: differences wrap, so a code never needs more than `bits` bits.
template <unsigned bits>
constexpr std::uint64_t zigzag_of(std::uint64_t difference) {
    constexpr unsigned spare = 64 - bits;
    const auto sign_extended = static_cast<std::uint64_t>(static_cast<std::int64_t>(difference << spare) >> spare);
    return zigzag(sign_extended) & ((std::uint64_t{1} << bits) - 1);
}
template <unsigned bits>
constexpr std::uint64_t unzigzag_of(std::uint64_t code) {
    return unzigzag(code) & ((std::uint64_t{1} << bits) - 1);
}

/// One record as the columns hold it.
struct CodedRecord {
    std::uint8_t tag; // kind and flags
    std::uint16_t id;
    std::uint64_t payload; // 40 bits
    std::uint64_t first;   // time column or value column, by class
};

class RecordPredictor {
  public:
    explicit RecordPredictor(std::uint64_t base) : last_(base), open_step_(base), open_layer_(base) {}

    CodedRecord encode(const Record& record) {
        CodedRecord coded{static_cast<std::uint8_t>(record.second >> 56), id_of(record), payload_of(record),
                          record.first};
        const unsigned kind = coded.tag >> 2;
        const RecordClass use = class_of(kind);
        Slot& slot = slots_[slot_of(kind, coded.id)];
        if (use == RecordClass::closing) {
            const std::uint64_t end = coded.first + coded.payload;
            coded.first = zigzag(end - last_);
            coded.payload = zigzag_of<40>(coded.payload - (end - opened(kind)));
            last_ = end;
            return coded;
        }
        const std::uint64_t payload = coded.payload;
        if (kind == static_cast<unsigned>(RecordKind::cpu_time)) {
            const std::uint64_t time = record.second & cpu_time_mask;
            split_cpu_time(zigzag_of<56>(time - last_cpu_), coded);
            last_cpu_ = time;
        } else {
            coded.payload = zigzag_of<40>(payload - slot.payload);
            slot.payload = payload;
        }
        if (use == RecordClass::value) {
            std::uint64_t& value = values_[value_slot_of(kind, coded.id, payload)];
            coded.first = zigzag(record.first - value);
            value = record.first;
            return coded;
        }
        const std::uint64_t known = use != RecordClass::point && slot.parent ? record.first + payload : record.first;
        coded.first = zigzag(known - last_);
        advance(kind, use, slot, record.first, payload);
        return coded;
    }

    Record decode(CodedRecord coded) {
        const unsigned kind = coded.tag >> 2;
        const std::uint64_t top = static_cast<std::uint64_t>(coded.tag) << 56;
        if (kind == static_cast<unsigned>(RecordKind::scope)) [[likely]] { // as below, less what cannot be
            Slot& slot = slots_[slot_of(static_cast<unsigned>(RecordKind::scope), coded.id)];
            const std::uint64_t payload = (slot.payload + unzigzag(coded.payload)) & payload_mask;
            slot.payload = payload;
            const std::uint64_t known = last_ + unzigzag(coded.first);
            const std::uint64_t first = slot.parent ? known - payload : known;
            advance(kind, RecordClass::timed, slot, first, payload);
            return {first, top | (static_cast<std::uint64_t>(coded.id) << id_shift) | payload};
        }
        const RecordClass use = class_of(kind);
        Slot& slot = slots_[slot_of(kind, coded.id)];
        if (use == RecordClass::closing) {
            const std::uint64_t end = last_ + unzigzag(coded.first);
            const std::uint64_t duration = (end - opened(kind) + unzigzag(coded.payload)) & payload_mask;
            last_ = end;
            return {end - duration, top | (static_cast<std::uint64_t>(coded.id) << id_shift) | duration};
        }
        Record record{};
        std::uint64_t payload = 0;
        if (kind == static_cast<unsigned>(RecordKind::cpu_time)) {
            last_cpu_ = (last_cpu_ + unzigzag_of<56>(joined_cpu_time(coded))) & cpu_time_mask;
            record.second = top | last_cpu_;
        } else {
            payload = (slot.payload + unzigzag(coded.payload)) & payload_mask;
            slot.payload = payload;
            record.second = top | (static_cast<std::uint64_t>(coded.id) << id_shift) | payload;
        }
        if (use == RecordClass::value) {
            std::uint64_t& value = values_[value_slot_of(kind, coded.id, payload)];
            value += unzigzag(coded.first);
            record.first = value;
            return record;
        }
        const std::uint64_t known = last_ + unzigzag(coded.first);
        record.first = use != RecordClass::point && slot.parent ? known - payload : known;
        advance(kind, use, slot, record.first, payload);
        return record;
    }

  private:
    struct Slot {
        std::uint64_t payload = 0;
        bool parent = false; // the last of this name began before its predecessor ended: code its end, not its begin
    };
    static constexpr std::size_t slots = 1024;

    static constexpr std::size_t slot_of(unsigned kind, std::uint16_t id) {
        const bool numbered = kind == static_cast<unsigned>(RecordKind::layer_begin) ||
                              kind == static_cast<unsigned>(RecordKind::cpu_time);
        return (67 * kind + (numbered ? 0 : id)) % slots;
    }
    static constexpr std::size_t value_slot_of(unsigned kind, std::uint16_t id, std::uint64_t payload) {
        return (67 * kind + id + 251 * static_cast<std::size_t>(payload % 4)) % slots;
    }
    static void split_cpu_time(std::uint64_t code, CodedRecord& coded) {
        coded.id = static_cast<std::uint16_t>(code >> 40);
        coded.payload = code & payload_mask;
    }
    static std::uint64_t joined_cpu_time(const CodedRecord& coded) {
        return (static_cast<std::uint64_t>(coded.id) << 40) | coded.payload;
    }
    std::uint64_t opened(unsigned kind) const {
        return kind == static_cast<unsigned>(RecordKind::step_end) ? open_step_ : open_layer_;
    }
    void advance(unsigned kind, RecordClass use, Slot& slot, std::uint64_t first, std::uint64_t payload) {
        if (use == RecordClass::point) {
            last_ = first;
            if (kind == static_cast<unsigned>(RecordKind::step_begin)) {
                open_step_ = first;
            } else if (kind == static_cast<unsigned>(RecordKind::layer_begin)) {
                open_layer_ = first;
            }
            return;
        }
        if (use == RecordClass::timed) {
            slot.parent = static_cast<std::int64_t>(first - last_) < 0;
            last_ = first + payload;
        }
    }

    std::uint64_t last_; // the latest moment that this track is known to have reached
    std::uint64_t open_step_;
    std::uint64_t open_layer_;
    std::uint64_t last_cpu_ = 0;
    Slot slots_[slots];
    std::uint64_t values_[slots] = {};
};

} // namespace plumb::recording
