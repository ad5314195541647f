// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/os.hpp"
#include "metrics/metrics.hpp"
#include "metrics/server.hpp"
#include "metrics/totals.hpp"

namespace plumb::metrics {
namespace {

using namespace std::chrono_literals;

constexpr auto file_interval = 5s; // node_exporter looks every 15 s or so

/// Totals, and the last copy of their figures for whoever reads them: neither side waits for more than that copy.
class Published final {
  public:
    void publish(const Figures& figures) {
        const std::lock_guard<std::mutex> lock(mutex_);
        figures_ = figures;
        changed_ = true;
    }
    /// On one thread.
    const std::string& text() {
        bool changed = false;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (changed_) {
                read_ = figures_;
            }
            changed = std::exchange(changed_, false);
        }
        if (changed) {
            text_ = text_of(read_);
        }
        return text_;
    }
    void before_fork() noexcept { mutex_.lock(); }
    void after_fork() noexcept { mutex_.unlock(); }

  private:
    std::mutex mutex_; // guards these two
    Figures figures_;
    bool changed_ = true;
    Figures read_; // the reader's own
    std::string text_;
};

/// What all exporters have: the totals, which the writing thread brings up to date.
class Following : public Exporter {
  public:
    explicit Following(const MetricsOptions& options) : totals_(*options.metadata, options.redact) {}
    void saw(const recording::TrackInfo& track) override { totals_.add(track); }
    void saw(const recording::NameInfo& name) override { totals_.add(name); }
    void saw(const recording::ClockPair& pair) override { totals_.add(pair); }
    void saw(const recording::RecordBatch& batch) override { publish(batch); }
    void saw(const recording::Counters& counters) override { publish(counters); }
    void saw(const recording::GraphInfo& row) override { publish(row); }
    void described(std::string_view key, std::string_view value) override {
        totals_.describe(key, value);
        published_.publish(totals_.figures());
    }

  protected:
    Published published_;

  private:
    template <class What>
    void publish(const What& what) {
        totals_.add(what);
        published_.publish(totals_.figures());
    }

    Totals totals_;
};

class OverHttp final : public Following {
  public:
    OverHttp(const MetricsOptions& options, base::Socket listener)
        : Following(options), server_(std::move(listener), [this] { return published_.text(); }),
          thread_(base::start_quiet_thread([this] {
              base::set_thread_name("plumb-metrics");
              server_.serve();
          })) {}
    ~OverHttp() override {
        server_.stop();
        thread_.join();
    }
    void before_fork() noexcept override {
        server_.before_fork();
        published_.before_fork();
    }
    void after_fork(bool in_child) noexcept override {
        published_.after_fork();
        server_.after_fork(in_child);
    }

  private:
    Server server_;
    std::thread thread_;
};

/// Under another name until it is whole: who reads it never sees a part.
class IntoFile final : public Following {
  public:
    explicit IntoFile(const MetricsOptions& options)
        : Following(options), path_(options.target), diagnose_(options.diagnose),
          thread_(base::start_quiet_thread([this] { run(); })) {}
    ~IntoFile() override {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }
    void before_fork() noexcept override {
        mutex_.lock();
        published_.before_fork();
    }
    void after_fork(bool) noexcept override {
        published_.after_fork();
        mutex_.unlock();
    }

  private:
    void run() {
        base::set_thread_name("plumb-metrics");
        std::unique_lock<std::mutex> lock(mutex_);
        for (bool last = false; !last;) {
            last = wake_.wait_for(lock, file_interval, [&] { return stopping_; });
            lock.unlock();
            write();
            lock.lock();
        }
    }
    void write() {
        const std::string part = path_ + "." + std::to_string(base::process_id()) + ".part";
        const std::string& text = published_.text();
        std::FILE* const file = std::fopen(part.c_str(), "we");
        bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
        good = (file == nullptr || std::fclose(file) == 0) && good;
        good = good && std::rename(part.c_str(), path_.c_str()) == 0;
        if (!good) {
            (void)std::remove(part.c_str());
        }
        if (!good && !failing_) {
            diagnose_("metrics cannot be written to " + path_ +
                      "; see that its folder is there, has room, and may be written to");
        }
        failing_ = !good;
    }

    const std::string path_;
    const std::function<void(const std::string&)> diagnose_;
    bool failing_ = false; // the thread's own
    std::mutex mutex_;     // guards stopping_
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace

Result<std::unique_ptr<Exporter>> start(const MetricsOptions& options) {
    try {
        if (options.target.find('/') != std::string::npos) {
            return std::unique_ptr<Exporter>(std::make_unique<IntoFile>(options));
        }
        Result<base::Endpoint> endpoint = base::parse_endpoint(options.target);
        if (!endpoint) {
            return endpoint.error();
        }
        const bool any_port = endpoint->port == 0;
        Result<base::Socket> listener = base::listen_on(*endpoint);
        if (!listener) {
            return listener.error();
        }
        std::unique_ptr<Exporter> made = std::make_unique<OverHttp>(options, *std::move(listener));
        if (any_port) {
            options.diagnose("metrics are at http://" + base::text_of(*endpoint) + "/metrics");
        }
        return made;
    } catch (const std::system_error&) {
        return Error{ErrorCode::out_of_memory, "no thread can be started for metrics; raise the limit of threads"};
    }
}

} // namespace plumb::metrics
