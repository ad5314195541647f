// SPDX-License-Identifier: Apache-2.0
#include "resolve/request_reader.hpp"

namespace plumb::resolve {
namespace {

constexpr unsigned bit_of(RequestPart part) { return 1u << static_cast<unsigned>(part); }
constexpr unsigned whole_trace =
    bit_of(RequestPart::trace_high) | bit_of(RequestPart::trace_low) | bit_of(RequestPart::parent_span);

} // namespace

bool RequestReader::part(const Record& record, std::uint64_t sequence) {
    if (sequence != next_) {
        have_ = 0;
    }
    if (have_ == 0) {
        parts_ = {};
    }
    next_ = sequence + 1;
    const auto part = static_cast<RequestPart>(id_of(record));
    switch (part) {
    case RequestPart::ticks:
        ticks_ = record.first;
        break;
    case RequestPart::tokens:
        parts_.has_tokens = true;
        parts_.tokens = record.first;
        break;
    case RequestPart::trace_high:
        parts_.trace.high = record.first;
        parts_.trace.flags = static_cast<std::uint8_t>(payload_of(record));
        break;
    case RequestPart::trace_low:
        parts_.trace.low = record.first;
        break;
    case RequestPart::parent_span:
        parts_.trace.parent_span = record.first;
        break;
    default:
        return false;
    }
    have_ |= bit_of(part);
    return true;
}

bool RequestReader::complete(const Record& record, std::uint64_t sequence, RequestEvent& event, std::uint64_t& ticks) {
    const unsigned have = next_ == sequence ? have_ : 0;
    have_ = 0;
    if (id_of(record) > static_cast<std::uint16_t>(RequestMark::end)) {
        return false;
    }
    event = have != 0 ? parts_ : RequestEvent{};
    event.id = record.first;
    event.mark = static_cast<RequestMark>(id_of(record));
    if (event.mark == RequestMark::in_step) {
        return have == 0;
    }
    ticks = ticks_;
    event.trace_given = (have & whole_trace) == whole_trace;
    return (have & bit_of(RequestPart::ticks)) != 0 && ((have & whole_trace) == 0 || event.trace_given);
}

} // namespace plumb::resolve
