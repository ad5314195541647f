// SPDX-License-Identifier: Apache-2.0
// Live metrics of a run (metrics=): running totals of what is recorded, as Prometheus reads them, over HTTP or in a file. This is the
// seam between libplumb, which asks for them, and libplumb-metrics, which has them: libplumb.so opens that when the key is set; elsewhere it
// is linked in. Both are of one build, so what crosses is plain C++.
// An Exporter is owned by the run that it follows, and outlives its writer. Threads: see recording::RecordingObserver; the rest one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/result.hpp"
#include "recording/observer.hpp"

namespace plumb::metrics {

struct MetricsOptions {
    std::string target; // "127.0.0.1:9464": where to listen; else the path of a file
    bool redact = false;
    const recording::Metadata* metadata = nullptr;    // read while it is made
    std::function<void(const std::string&)> diagnose; // one sentence for the user; from any thread
};

class Exporter : public recording::RecordingObserver {
  public:
    /// Around a fork. In the child everything of it is closed and nothing freed: its thread is the parent's.
    virtual void before_fork() noexcept = 0;
    virtual void after_fork(bool in_child) noexcept = 0;
};

/// Errors: invalid_argument, already_exists (the port is taken), permission, unavailable (no such address here; libplumb-metrics is not there,
/// or of another version), out_of_memory (no thread).
Result<std::unique_ptr<Exporter>> start(const MetricsOptions& options);

struct Table {
    const char* version; // first, whatever the version: a table of another one is not looked into
    Result<std::unique_ptr<Exporter>> (*start)(const MetricsOptions& options);
};

} // namespace plumb::metrics

/// What libplumb-metrics exports.
extern "C" PLUMB_API const plumb::metrics::Table* plumb_metrics_table() noexcept;
