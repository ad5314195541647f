// SPDX-License-Identifier: Apache-2.0
// One rank of an engine that does nothing but all-reduce, under Open MPI. Its clock is CLOCK_MONOTONIC with a planted offset and drift, so
// that `plumb ranks` must find both; the truth is the processor's counter, which all ranks of a machine share:
//     engine RECORDING COLLECTIVES SLOW_RANK SLOW_US
// RECORDING "-": where PLUMB says, by this machine's clock. Else writes RECORDING.truth: two lines "moment of the planted clock, counter".
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mpi.h>
#include <plumb/plumb.hpp>
#include <string>

namespace {

class PlantedClock final : public plumb::HostClock {
  public:
    explicit PlantedClock(int rank) : ahead_(rank * 1'234'567'891LL), gains_(rank * 7e-6), begin_(monotonic()) {}
    std::uint64_t now_ticks() const noexcept override { return static_cast<std::uint64_t>(now_ns()); }
    std::int64_t now_ns() const noexcept override {
        const std::int64_t now = monotonic();
        return now + ahead_ + static_cast<std::int64_t>(gains_ * static_cast<double>(now - begin_));
    }
    static std::int64_t monotonic() {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
    }

  private:
    std::int64_t ahead_;
    double gains_;
    std::int64_t begin_;
};

void spin(std::int64_t ns) {
    for (const std::int64_t until = PlantedClock::monotonic() + ns; PlantedClock::monotonic() < until;) {
    }
}

void write_truth(FILE* file, const PlantedClock& clock) {
    std::int64_t best = INT64_MAX, moment = 0;
    std::uint64_t counter = 0;
    for (int i = 0; i < 1000; ++i) { // the narrowest bracket
        const std::int64_t before = clock.now_ns();
        const std::uint64_t ticks = __builtin_ia32_rdtsc();
        const std::int64_t after = clock.now_ns();
        if (after - before < best) {
            best = after - before;
            moment = before + best / 2;
            counter = ticks;
        }
    }
    std::fprintf(file, "%lld %llu\n", static_cast<long long>(moment), static_cast<unsigned long long>(counter));
}

} // namespace

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count != 5) {
        std::fprintf(stderr, "engine RECORDING COLLECTIVES SLOW_RANK SLOW_US\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const PlantedClock clock(rank);
    const std::string recording = std::string(arguments[1]) + std::to_string(rank) + ".plumb";
    plumb::Config config = plumb::Config::from_env().value();
    if (std::string(arguments[1]) != "-") {
        config.on = true;
        config.out = recording;
        config.clock = &clock;
    }
    FILE* truth = std::fopen(std::string(arguments[1]) != "-" ? (recording + ".truth").c_str() : "/dev/null", "w");
    bool good = truth != nullptr;
    {
        plumb::Profiler prof(config);
        good = good && prof.status().ok();
        const plumb::Name all = prof.intern("world", plumb::Category::collective);
        const int collectives = std::atoi(arguments[2]);
        const bool slow = rank == std::atoi(arguments[3]);
        float sent = 1, received = 0;
        for (int i = 0; i < 100; ++i) { // connections are made and caches warm
            MPI_Allreduce(&sent, &received, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
        if (good) {
            write_truth(truth, clock);
        }
        for (int i = 0; i < collectives; ++i) {
            PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1));
            {
                PLUMB_BRICK(prof, plumb::host, plumb::Brick::attention);
                // In blocks of 8: a rank that is late in every collective cannot be told from a clock that is behind.
                spin(200'000 + (slow && i / 8 % 2 == 1 ? 1000LL * std::atoi(arguments[4]) : 0));
            }
            PLUMB_BRICK(prof, plumb::host, plumb::Brick::all_reduce, plumb::group(all), plumb::sequence(i));
            MPI_Allreduce(&sent, &received, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
        if (good) {
            write_truth(truth, clock);
        }
    }
    good = truth != nullptr && std::fclose(truth) == 0 && good;
    MPI_Finalize();
    return good ? 0 : 1;
}
