// SPDX-License-Identifier: Apache-2.0
#include "plumb/profiler.hpp"

#include <algorithm>
#include <chrono>

#include "record/name_registry.hpp"
#include "session/session.hpp"

namespace plumb {

namespace {

Error other_layout(std::uint32_t layout_of_program) {
    return {ErrorCode::unsupported, "this program was compiled with headers of plumb whose layout is " +
                                        std::to_string(layout_of_program) + ", the library's is " +
                                        std::to_string(layout_version) +
                                        ": nothing is recorded; compile it again with the library's own headers"};
}

std::chrono::milliseconds milliseconds_of(double seconds) {
    constexpr double longest = 1e6; // beyond that a count of milliseconds and a deadline would overflow
    return std::chrono::milliseconds(static_cast<std::int64_t>((seconds > 0 ? std::min(seconds, longest) : 0) * 1e3));
}

} // namespace

Profiler::Profiler(Result<Config> config, std::uint32_t layout_of_program)
    : session_(new Session(*this, config.ok() ? *config : Config{})) {
    // What is compiled into the program writes records by itself: it must agree with us about every byte.
    if (layout_of_program != layout_version) {
        session_->fail(other_layout(layout_of_program));
    } else if (!config.ok()) {
        session_->fail(config.error());
    } else if (config->on) {
        (void)session_->enable();
    }
}

Profiler::~Profiler() { delete session_; }

const Config& Profiler::config() const noexcept { return session_->config(); }
Status Profiler::status() const { return session_->status(); }
std::string Profiler::path() const { return session_->path(); }
Status Profiler::enable() { return session_->enable(); }
void Profiler::disable() { session_->disable(); }

Name Profiler::intern(std::string_view name, Category category) { return record::intern_name(name, category); }

void Profiler::describe(const std::string& key, const std::string& value) { session_->describe(key, value); }

Result<std::uint64_t> Profiler::register_kernel(const void* code, std::size_t size, const KernelSource& kernel) {
    return session_->register_kernel(code, size, kernel);
}

void Profiler::note(const std::string& text) { session_->note(text); }

Queue Profiler::add_queue(QueueTimer& timer, const std::string& name) { return session_->add_queue(timer, name); }

Result<GraphProbe> Profiler::graph_captured(std::uint64_t key, CUgraph_st* graph) {
    return session_->graph_captured(key, graph);
}
Result<HipGraphProbe> Profiler::hip_graph_captured(std::uint64_t key, void* graph) {
    return session_->hip_graph_captured(key, graph);
}
void Profiler::graph_evicted(std::uint64_t key) { session_->graph_evicted(key); }

Status Profiler::graphs_evicted_all(double timeout_seconds) {
    return session_->graphs_evicted_all(milliseconds_of(timeout_seconds));
}

Status Profiler::flush(double timeout_seconds) { return session_->flush(milliseconds_of(timeout_seconds)); }
Result<Report> Profiler::snapshot(const ReportOptions& options) { return session_->snapshot(options); }
Result<Answer> Profiler::ask(std::string_view name, const OptionValues& options) {
    return session_->ask(name, options);
}
void Profiler::reset() { session_->reset(); }
Status Profiler::close() { return session_->close(); }

std::vector<LabelTotal> Profiler::labels() {
    Result<Report> report = session_->snapshot({});
    return report.ok() ? std::move(report->labels) : std::vector<LabelTotal>{};
}

} // namespace plumb
