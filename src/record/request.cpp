// SPDX-License-Identifier: Apache-2.0
// Marks of requests: a group of records each, written whole or not at all.
#include "plumb/request.hpp"

#include "base/layout.hpp"
#include "record/recorder_access.hpp"

namespace plumb {
inline namespace v1 {
namespace {

/// What a W3C traceparent header says; all 0 where it says nothing.
struct TraceParent {
    std::uint64_t high = 0, low = 0, span = 0, flags = 0;
};

/// Exactly so many lower-case hexadecimal digits, as the standard has them.
bool read_hex(const char*& at, unsigned digits, std::uint64_t& value) noexcept {
    value = 0;
    for (unsigned i = 0; i < digits; ++i, ++at) { // ends at the zero behind a text that is too short
        const bool decimal = *at >= '0' && *at <= '9';
        if (!decimal && (*at < 'a' || *at > 'f')) {
            return false;
        }
        value = value << 4 | static_cast<std::uint64_t>(decimal ? *at - '0' : *at - 'a' + 10);
    }
    return true;
}

bool read_dash(const char*& at) noexcept { return *at == '-' && *++at != '\0'; }

/// Of a later version only what version 00 has is read, and "-" may follow.
TraceParent read_trace_parent(const char* at) noexcept {
    TraceParent read;
    std::uint64_t version = 0;
    const bool formed = read_hex(at, 2, version) && read_dash(at) && read_hex(at, 16, read.high) &&
                        read_hex(at, 16, read.low) && read_dash(at) && read_hex(at, 16, read.span) && read_dash(at) &&
                        read_hex(at, 2, read.flags) && (*at == '\0' || (version != 0 && *at == '-'));
    const bool valid = formed && version != 0xff && (read.high | read.low) != 0 && read.span != 0;
    return valid ? read : TraceParent{};
}

} // namespace

namespace detail {

void put_request(Recorder& recorder, std::uint64_t id, RequestMark mark, const RequestTags& tags) noexcept {
    ThreadRecorder* pen = recorder.thread();
    if (pen == nullptr) {
        return;
    }
    const std::uint64_t bits = pack(RecordKind::request, static_cast<std::uint16_t>(mark));
    if (mark == RequestMark::in_step) {
        if (!pen->push(id, bits)) {
            pen->drop(Drop::ring_full);
        }
        return;
    }
    if (!pen->has_room(6)) { // parts alone would be taken for those of the next request
        pen->drop(Drop::ring_full);
        return;
    }
    const auto part = [pen](RequestPart which, std::uint64_t value, std::uint64_t payload = 0) {
        pen->push(value, pack(RecordKind::request_part, static_cast<std::uint16_t>(which), payload));
    };
    part(RequestPart::ticks, recorder.stamp());
    if (tags.tokens != tokens_not_said) {
        part(RequestPart::tokens, tags.tokens);
    }
    if (tags.trace_parent != nullptr && !RecorderAccess::stamps(recorder).hide_traces) {
        const TraceParent trace = read_trace_parent(tags.trace_parent);
        part(RequestPart::trace_high, trace.high, trace.flags);
        part(RequestPart::trace_low, trace.low);
        part(RequestPart::parent_span, trace.span);
    }
    pen->push(id, bits);
}

} // namespace detail
} // namespace v1
} // namespace plumb
