// SPDX-License-Identifier: Apache-2.0
#include "resolve/track_resolver.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "plumb/backend.hpp"

namespace plumb::resolve {
namespace {

constexpr double not_given = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_announced = 16;                          // collectives that are open at once on one thread
constexpr double most_work = 1e21;                                  // bytes, flops or elements of one scope
constexpr std::uint64_t longest_polled_ns = std::uint64_t{1} << 53; // of a task: 104 days

} // namespace

void TrackResolver::records_are_missing() {
    missing_ = true;
    may_be_cut_ = 0;
    quality_ = 0;
    lead_.reset();
    cause_.reset();
    waited_.reset();
    submitted_.reset();
    announced_.clear();
    duration_.forget();
}

void TrackResolver::consume(const Record* records, std::size_t count, std::uint64_t sequence, ResolvedBuffers& out) {
    for (std::size_t i = 0; i < count; ++i) {
        const Record& record = records[i];
        const bool wanted = sequence + i >= track_->cut;
        switch (kind_of(record)) {
        case RecordKind::scope:
            scope(record, wanted, out);
            break;
        case RecordKind::span:
            span(record, wanted, out);
            break;
        case RecordKind::long_value:
            duration_.announce(record.first);
            continue;
        case RecordKind::step_begin:
            step_begin(record);
            break;
        case RecordKind::step_end:
            frame_end(record, FrameKind::step, wanted, out);
            break;
        case RecordKind::layer_begin:
            layer_begin(record);
            break;
        case RecordKind::layer_end:
            frame_end(record, FrameKind::layer, wanted, out);
            break;
        case RecordKind::context:
            context(record);
            break;
        case RecordKind::work:
            work(record);
            break;
        case RecordKind::cpu_time:
            cpu_time(record, wanted, out);
            break;
        default:
            other(record, wanted, sequence + i, out);
            break;
        }
        duration_.forget();
    }
}

void TrackResolver::other(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out) {
    switch (kind_of(record)) {
    case RecordKind::label:
        if (wanted) {
            out.labels.push_back({id_of(record), record.first});
        }
        break;
    case RecordKind::context_end:
        if (!frames_.pop_innermost(FrameKind::context)) {
            incomplete(Loss::end_without_begin);
        }
        refresh();
        break;
    case RecordKind::mark:
        mark(record);
        break;
    case RecordKind::device_submit:
        announce_submission(record);
        break;
    case RecordKind::device_scope: // its time arrives on the queue's own track
    case RecordKind::graph_launch:
        submission(record, wanted, sequence, out);
        break;
    case RecordKind::span_quality:
        quality_ = static_cast<std::uint8_t>(id_of(record));
        break;
    case RecordKind::span_lead:
        lead_ = Lead{record.first, payload_of(record)};
        break;
    case RecordKind::barrier_wait:
        waited_ = record.first;
        break;
    case RecordKind::collective:
        announce_collective(record);
        break;
    case RecordKind::cause:
        cause_ = Cause{static_cast<std::uint32_t>(payload_of(record)), record.first};
        break;
    case RecordKind::kernel_code:
    case RecordKind::kernel_extent:
    case RecordKind::transfer_part:
    case RecordKind::task_part:
        if (!nodes_.part(record, sequence)) {
            losses_->count(Loss::unknown_kind);
        }
        break;
    case RecordKind::kernel:
    case RecordKind::transfer:
    case RecordKind::task:
        node(record, wanted, sequence, out);
        break;
    case RecordKind::dependency:
        dependency(record, wanted, sequence, out);
        break;
    case RecordKind::request_part:
        if (!requests_.part(record, sequence)) {
            losses_->count(Loss::unknown_kind);
        }
        break;
    case RecordKind::request:
        request(record, wanted, sequence, out);
        break;
    case RecordKind::step_value: // read by the first pass
    case RecordKind::origin:     // only places a span's begin
        break;
    default:
        losses_->count(Loss::unknown_kind);
        break;
    }
}

void TrackResolver::announce_submission(const Record& record) {
    const std::optional<std::uint64_t> duration = duration_.take(record);
    submitted_.reset();
    if (duration && track_->line != nullptr && track_->line->contains(record.first, *duration)) {
        submitted_ = Submitted{record.first, *duration};
    }
}

void TrackResolver::submission(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out) {
    const std::optional<Submitted> when = submitted_;
    submitted_.reset();
    if (kind_of(record) == RecordKind::device_scope) {
        (void)take_announced(id_of(record)); // it stands again before the scope, on the queue's track
    }
    if (!wanted) {
        return;
    }
    Submission made;
    made.graph = kind_of(record) == RecordKind::graph_launch;
    (made.graph ? made.flags : made.name) = id_of(record);
    made.key = made.graph ? record.first : 0;
    made.queue = static_cast<std::uint32_t>(payload_of(record));
    made.track = track_->info.id;
    made.warmup = now_.warmup;
    made.left_out = now_.left_out;
    made.phase = now_.phase;
    made.layer = now_.layer;
    made.step = now_.step;
    made.position = out.samples.size();
    if (when) {
        made.timed = true;
        made.begin_ns = track_->line->to_ns(when->begin);
        made.duration_ns = track_->line->to_ns(when->begin + when->duration) - made.begin_ns;
    }
    launches_->submitted(made, sequence);
    out.submissions.push_back(made);
}

void TrackResolver::announce_collective(const Record& record) {
    const auto name = static_cast<std::uint16_t>(payload_of(record));
    std::erase_if(announced_, [name](const auto& one) { return one.first == name; });
    if (announced_.size() == most_announced) {
        announced_.erase(announced_.begin());
    }
    announced_.emplace_back(name, CollectiveMark{0, record.first, id_of(record)});
}

std::optional<CollectiveMark> TrackResolver::take_announced(std::uint16_t name) {
    const auto found =
        std::find_if(announced_.begin(), announced_.end(), [name](const auto& one) { return one.first == name; });
    if (found == announced_.end()) {
        return std::nullopt;
    }
    const CollectiveMark mark = found->second;
    announced_.erase(found);
    return mark;
}

void TrackResolver::mark_collective(const std::optional<CollectiveMark>& mark, ResolvedBuffers& out) {
    if (mark) {
        out.collectives.push_back(*mark);
        out.collectives.back().sample = out.samples.size() - 1;
    }
}

void TrackResolver::link(Sample& scope, const std::optional<Cause>& cause, ResolvedBuffers& out) const {
    if (const std::optional<Launch> launch = launches_->of(scope, cause)) {
        scope.launch = static_cast<std::uint32_t>(out.launches.size());
        out.launches.push_back(*launch);
    }
}

void TrackResolver::node(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out) {
    RecordedNode made;
    const RecordKind kind = kind_of(record);
    if (!nodes_.complete(record, sequence, made)) {
        if (wanted) {
            incomplete(Loss::node_incomplete);
        }
    }
    made.timed = (record.second & flag_moment) == 0 && kind != RecordKind::task;
    std::uint64_t duration = 0;
    Record when = record;
    if (!made.timed) {
        when.second &= ~payload_mask;
    }
    if (!interval(when, wanted, duration) || !wanted) {
        return;
    }
    if (made.polled_ns > longest_polled_ns) {
        unresolved(Loss::duration_impossible, wanted);
        return;
    }
    made.kind = kind == RecordKind::kernel     ? RecordedKind::kernel
                : kind == RecordKind::transfer ? RecordedKind::transfer
                                               : RecordedKind::task;
    made.name = kind == RecordKind::transfer ? std::uint16_t{0} : id_of(record);
    made.key = {track_->info.id, sequence};
    made.warmup = now_.warmup;
    made.left_out = now_.left_out;
    made.phase = now_.phase;
    made.layer = now_.layer;
    made.step = now_.step;
    made.position = out.samples.size();
    made.begin_ns = track_->line->to_ns(record.first);
    made.duration_ns = track_->line->to_ns(record.first + duration) - made.begin_ns;
    if (kind == RecordKind::kernel) {
        add_work(made, record.second);
    }
    out.nodes.push_back(made);
}

void TrackResolver::dependency(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out) {
    if (id_of(record) == 0) {
        (void)nodes_.part(record, sequence);
        return;
    }
    std::optional<NodeDependency> found = nodes_.dependency(record, sequence);
    if (!wanted) {
        return;
    }
    if (!found) {
        incomplete(Loss::node_incomplete);
        return;
    }
    found->step = now_.step;
    out.dependencies.push_back(*found);
}

void TrackResolver::request(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out) {
    RequestEvent made;
    std::uint64_t ticks = 0;
    bool placed = requests_.complete(record, sequence, made, ticks);
    if (placed && made.mark == RequestMark::in_step) {
        const auto* step = frames_.frame_of(FrameKind::step);
        placed = step != nullptr;
        ticks = placed ? step->begin : 0;
        made.step = placed ? step->value.step : no_step;
    }
    if (!wanted) {
        return;
    }
    if (!placed || track_->line == nullptr || !track_->line->contains(ticks)) {
        incomplete(Loss::request_incomplete);
        return;
    }
    made.time_ns = track_->line->to_ns(ticks);
    out.requests.push_back(made);
}

void TrackResolver::unresolved(Loss reason, bool wanted) {
    if (wanted) {
        losses_->count(reason);
    }
}

bool TrackResolver::interval(const Record& record, bool wanted, std::uint64_t& duration) {
    const std::optional<std::uint64_t> given = duration_.take(record);
    const TickConversion* line = track_->line;
    if (line == nullptr) {
        unresolved(track_->described ? Loss::clock_not_fitted : Loss::track_unknown, wanted);
        return false;
    }
    if (!given) {
        unresolved(Loss::long_duration_missing, wanted);
        return false;
    }
    duration = *given;
    if (line->contains(record.first, duration)) [[likely]] {
        return true;
    }
    const Loss reason = line->contains(record.first) ? Loss::duration_impossible : Loss::stamp_outside;
    unresolved(line->jumped().empty() ? reason : Loss::clock_jumped, wanted);
    return false;
}

void TrackResolver::place(Sample& sample, const Surroundings& around) const {
    sample.phase = around.phase;
    sample.track = track_->info.id;
    sample.layer = around.layer;
    sample.step = around.step;
    sample.warmup = around.warmup;
    sample.left_out = around.left_out;
}

inline Sample& TrackResolver::append(ResolvedBuffers& out, SampleKind kind, std::uint64_t begin,
                                     std::uint64_t duration) const {
    Sample& sample = out.samples.emplace_back(blank_);
    sample.kind = kind;
    // Both ends by the same line, so that intervals that share a tick share a nanosecond.
    sample.begin_ns = track_->line->to_ns(begin);
    sample.duration_ns = track_->line->to_ns(begin + duration) - sample.begin_ns;
    sample.self_ns = sample.duration_ns;
    return sample;
}

template <class Worked>
void TrackResolver::add_work(Worked& to, std::uint64_t bits) const {
    const WorkValues* given = work_.find(to.name);
    if ((bits & flag_work) == 0 || given == nullptr) {
        return;
    }
    const auto of = [given](WorkQuantity quantity) {
        return given->value[static_cast<std::size_t>(quantity)];
    };
    to.bytes = of(WorkQuantity::bytes);
    to.flops = of(WorkQuantity::flops);
    to.elements = of(WorkQuantity::elements);
    const double per_kv = of(WorkQuantity::bytes_per_kv);
    if (!std::isnan(per_kv)) {
        to.bytes = (std::isnan(to.bytes) ? 0 : to.bytes) + per_kv * now_.kv_length;
    }
}

void TrackResolver::add_lead(Sample& to, std::uint64_t begin, const Lead& lead) const {
    const auto delay = [&](std::uint64_t ticks) {
        return ticks <= begin && track_->line->contains(begin - ticks, ticks)
                   ? static_cast<double>(to.begin_ns - track_->line->to_ns(begin - ticks))
                   : not_given;
    };
    to.queue_delay_ns = lead.queued != no_ticks ? delay(lead.queued) : not_given;
    to.submit_delay_ns = lead.submitted != payload_mask ? delay(lead.submitted) : not_given;
}

[[gnu::always_inline]] inline Sample* TrackResolver::add_scope(const Record& record, std::uint64_t duration,
                                                               const Nesting::Outcome& nest, bool wanted,
                                                               ResolvedBuffers& out) {
    if (!wanted) {
        return nullptr;
    }
    if (nest.overlaps) [[unlikely]] {
        losses_->count(Loss::overlap_without_nesting);
    }
    if (nest.children > duration) [[unlikely]] {
        losses_->count(Loss::children_exceed);
        return nullptr;
    }
    const SampleKind kind = (record.second & flag_lap) != 0 ? SampleKind::lap : SampleKind::scope;
    Sample& sample = append(out, kind, record.first, duration);
    sample.name = id_of(record);
    sample.leaf = nest.leaf;
    if (nest.children != 0) {
        sample.self_ns = std::min(sample.duration_ns, track_->line->length_ns(duration - nest.children));
    }
    if ((record.second & flag_work) != 0) {
        add_work(sample, record.second);
    }
    return &sample;
}

void TrackResolver::scope(const Record& record, bool wanted, ResolvedBuffers& out) {
    const std::uint64_t duration = payload_of(record);
    const bool plain = duration != payload_mask && track_->line != nullptr && quality_ == 0 && !lead_ && !waited_ &&
                       !queue_ && !missing_ && announced_.empty() && track_->line->contains(record.first, duration);
    if (!plain) [[unlikely]] {
        special_scope(record, wanted, out);
        return;
    }
    add_scope(record, duration, nesting_.close(record.first, duration), wanted, out);
}

void TrackResolver::special_scope(const Record& record, bool wanted, ResolvedBuffers& out) {
    const std::uint8_t quality = std::exchange(quality_, std::uint8_t{0});
    const std::optional<Lead> lead = std::exchange(lead_, std::nullopt);
    const std::optional<std::uint64_t> waited = std::exchange(waited_, std::nullopt);
    const std::optional<Cause> cause = queue_ ? std::exchange(cause_, std::nullopt) : std::nullopt;
    const std::optional<CollectiveMark> mark = take_announced(id_of(record));
    std::uint64_t duration = 0;
    if (!interval(record, wanted, duration)) {
        return;
    }
    if (missing_) {
        nesting_.records_missing_until(record.first + duration);
        missing_ = false;
    }
    // What overlaps holds nothing: commands of a queue that runs out of order stand beside each other.
    const Nesting::Outcome nest =
        (quality & span_may_overlap) != 0 ? Nesting::Outcome{} : nesting_.close(record.first, duration);
    Sample* sample = add_scope(record, duration, nest, wanted, out);
    if (sample == nullptr) {
        return;
    }
    sample->flags = quality;
    mark_collective(mark, out);
    if (lead) {
        add_lead(*sample, record.first, *lead);
    }
    if (waited && *waited <= duration) {
        sample->barrier_wait_ns = static_cast<double>(track_->line->length_ns(*waited));
    }
    if (queue_) {
        link(*sample, cause, out);
    }
}

void TrackResolver::span(const Record& record, bool wanted, ResolvedBuffers& out) {
    const std::optional<CollectiveMark> mark = take_announced(id_of(record));
    std::uint64_t duration = 0;
    if (!interval(record, wanted, duration) || !wanted) {
        return;
    }
    Sample& sample = append(out, SampleKind::span, record.first, duration);
    sample.name = id_of(record);
    // A span stands outside the nesting, so it has no children; but one that encloses scopes is no leaf either.
    sample.leaf = !nesting_.has_scope_within(record.first, record.first + duration);
    mark_collective(mark, out);
    add_work(sample, record.second);
}

TrackResolver::Surroundings TrackResolver::surroundings_of_step(std::uint64_t id) const {
    Surroundings around;
    around.step = id;
    StepFacts step;
    if (!steps_->facts_of(id, step)) {
        return around;
    }
    around.phase = step.phase;
    around.warmup = step.warmup;
    around.left_out = step.left_out;
    if (step.has_kv_length) {
        around.kv_length = static_cast<double>(step.kv_length);
    }
    return around;
}

void TrackResolver::push(FrameKind kind, std::uint64_t begin, const Surroundings& around) {
    if (!frames_.push(kind, begin, around)) {
        losses_->count(Loss::nested_too_deep);
    }
    refresh();
}

void TrackResolver::refresh() {
    const Surroundings* innermost = frames_.innermost();
    now_ = innermost != nullptr ? *innermost : Surroundings{};
    place(blank_, now_);
}

void TrackResolver::step_begin(const Record& record) {
    push(FrameKind::step, record.first, surroundings_of_step(payload_of(record)));
}

void TrackResolver::layer_begin(const Record& record) {
    Surroundings around = now_;
    around.layer = id_of(record);
    push(FrameKind::layer, record.first, around);
}

void TrackResolver::context(const Record& record) {
    Surroundings around;
    if (record.first != 0) {
        around = surroundings_of_step(record.first - 1);
    }
    if (id_of(record) != 0) {
        around.layer = id_of(record) - 1u;
    }
    push(FrameKind::context, 0, around);
}

void TrackResolver::frame_end(const Record& record, FrameKind kind, bool wanted, ResolvedBuffers& out) {
    Surroundings around;
    std::uint64_t duration = 0;
    const bool timed = interval(record, wanted, duration);
    const bool known = frames_.pop(kind, record.first, &around);
    refresh();
    if (!known) {
        if (kind == FrameKind::layer) { // steps were counted by the first pass
            incomplete(Loss::end_without_begin);
        }
        return;
    }
    if (!timed || !wanted) {
        return;
    }
    const SampleKind sample_kind = kind == FrameKind::step ? SampleKind::step : SampleKind::layer;
    Sample& sample = append(out, sample_kind, record.first, duration);
    place(sample, around);
    sample.leaf = false;
}

void TrackResolver::mark(const Record& record) {
    const auto which = static_cast<Mark>(id_of(record));
    if (which == Mark::cut_step) {
        (void)frames_.pop_innermost(FrameKind::step);
    } else if (which == Mark::cut_layer) {
        (void)frames_.pop_innermost(FrameKind::layer);
    }
    refresh();
}

void TrackResolver::work(const Record& record) {
    const std::uint64_t quantity = payload_of(record);
    const double value = std::bit_cast<double>(record.first);
    if (quantity >= work_quantities) {
        losses_->count(Loss::unknown_kind);
        return;
    }
    // NaN takes a value back: the next scopes of that name have none.
    const bool usable = std::isnan(value) || (value >= 0 && value <= most_work);
    if (!usable) {
        losses_->count(Loss::bad_value);
    }
    if (!work_.set(id_of(record), static_cast<WorkQuantity>(quantity), usable ? value : not_given)) {
        losses_->count(Loss::work_not_kept);
    }
}

void TrackResolver::cpu_time(const Record& record, bool wanted, ResolvedBuffers& out) {
    const TickConversion* line = track_->line;
    if (!wanted || line == nullptr || !line->contains(record.first)) {
        return;
    }
    const auto cpu_ns = static_cast<std::int64_t>(record.second & cpu_time_mask);
    out.cpu_stamps.push_back({line->to_ns(record.first), cpu_ns, out.samples.size()});
}

} // namespace plumb::resolve
