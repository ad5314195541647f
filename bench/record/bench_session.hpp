// SPDX-License-Identifier: Apache-2.0
// One recording of `bench record`, its file, and the threads that record into it. One thread.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include "backends/cpu/core_workers.hpp"
#include "record/subject.hpp"
#include "support/figures.hpp"
#include "support/temporary_folder.hpp"
#include "support/ticks.hpp"

namespace bench {

/// What all measurements of a part share.
struct Bench {
    const Subject& subject;
    Figures& figures;
    TickRate rate;
    TemporaryFolder folder;
    plumb::backends::cpu::Workers workers{2};
    unsigned rounds = 15;
    unsigned files = 0;
    plumb::detail::Record* scratch[2] = {nullptr, nullptr};
};

/// Opens a recording under the default configuration; closes and removes it at the end.
class BenchSession {
  public:
    explicit BenchSession(Bench& bench)
        : bench_(bench), path_(bench.folder.file("run" + std::to_string(bench.files++) + ".plumb")) {
        if (const char* why = bench.subject.open(path_.c_str()); why != nullptr) {
            std::fprintf(stderr, "%s\n", why);
        } else {
            ok_ = true;
        }
    }
    ~BenchSession() {
        if (ok_) {
            (void)bench_.subject.close();
        }
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    BenchSession(const BenchSession&) = delete;
    BenchSession& operator=(const BenchSession&) = delete;

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] double file_bytes() const {
        std::error_code missing;
        const auto size = std::filesystem::file_size(path_, missing);
        return missing ? 0 : static_cast<double>(size);
    }

  private:
    Bench& bench_;
    std::string path_;
    bool ok_ = false;
};

/// The loops in bursts, interleaved, with 1 and 2 threads; and 2 threads while the drain works all the time.
[[nodiscard]] bool measure_bursts(Bench& bench);
[[nodiscard]] bool measure_device_scope(Bench& bench);
[[nodiscard]] bool measure_busy_drain(Bench& bench);
/// Percentiles of single scopes; what a scope adds to a real body.
[[nodiscard]] bool measure_single_scopes(Bench& bench);
[[nodiscard]] bool measure_body(Bench& bench);
/// As fast as it goes for seconds; bytes in memory and on disk.
[[nodiscard]] bool measure_sustained(Bench& bench);
[[nodiscard]] bool measure_bytes(Bench& bench);

} // namespace bench
