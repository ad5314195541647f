// SPDX-License-Identifier: Apache-2.0
// Mutants of planned traces: whatever a file holds, the answer is a recording or one sentence, in bounded time and memory.
// PLUMB_IMPORT_MUTANTS=10000 takes more of each format; PLUMB_IMPORT_SEED others.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/child.hpp"
#include "import/folder_testing.hpp"
#include "import/import.hpp"
#include "import/planted_trace_testing.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/resolve.hpp"
#include "support/sanitizers.hpp"

namespace plumb::imported {
namespace {

namespace fs = std::filesystem;

constexpr double most_seconds = 2;
constexpr std::uint64_t free_memory = std::uint64_t{64} << 20;
constexpr std::uint64_t in_one_child = 250;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::string number(std::mt19937_64& random) {
    static constexpr const char* odd[] = {"0",
                                          "-1",
                                          "1e308",
                                          "1e-308",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "18446744073709551616",
                                          "1e99999",
                                          "0.000",
                                          "-0.5",
                                          "null",
                                          "1E+15"};
    const std::size_t which = random() % (std::size(odd) + 2);
    return which < std::size(odd) ? odd[which] : std::to_string(random());
}

/// One to eight changes: of bytes, of what JSON and SQLite are made of, and of numbers, which both have everywhere. Of half of all
/// mutants everything keeps its place, as a database needs it.
void mutate(std::string& text, std::mt19937_64& random) {
    const std::uint64_t kinds = random() % 2 == 0 ? 4 : 9;
    for (std::uint64_t changes = 1 + random() % 8; changes > 0 && !text.empty(); --changes) {
        const std::size_t at = random() % text.size();
        switch (random() % kinds) {
        case 0:
            text[at] = static_cast<char>(random());
            break;
        case 1:
            text[at] = "\"\\{}[],:0-9e."[random() % 13];
            break;
        case 2: {
            const std::uint64_t value = random() % 2 == 0 ? ~std::uint64_t{0} >> (random() % 64) : random() % 5;
            for (std::size_t i = 0, bytes = std::size_t{1} << (random() % 4); i < bytes && at + i < text.size(); ++i) {
                text[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i))); // as SQLite has them
            }
            break;
        }
        case 3: {
            const std::size_t from = random() % text.size();
            const std::size_t size = std::min({text.size() - at, text.size() - from, std::size_t{random() % 64}});
            text.replace(at, size, text.substr(from, size));
            break;
        }
        case 4:
            text.erase(at, random() % 64);
            break;
        case 5:
            text.insert(at, text.substr(random() % text.size(), random() % 200));
            break;
        case 6:
            text.resize(random() % 4 == 0 ? at : text.size());
            break;
        case 7:
            text.insert(at, number(random));
            break;
        default: {
            const std::size_t digits = std::min(text.find_first_of("0123456789", at), text.size());
            text.replace(digits, std::min(text.find_first_not_of("0123456789.", digits), text.size()) - digits,
                         number(random));
            break;
        }
        }
    }
}

std::uint64_t operations_in(const std::string& recording, std::string& problem) {
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    if (!run) {
        problem = run.error().message;
        return 0;
    }
    if (!run->facts->notes.empty()) {
        problem = run->facts->notes.front();
    }
    resolve::ResolveOptions options;
    options.warmup_steps = run->facts->metadata.warmup_steps;
    std::uint64_t operations = 0;
    const auto resolved = resolve::resolve(
        *run, options, [](const auto&, const auto&) {},
        [&operations](const resolve::ResolvedBatch& batch) {
            for (const resolve::Sample& sample : batch.samples) {
                operations += sample.kind == resolve::SampleKind::scope ? 1 : 0;
            }
        });
    if (!resolved) {
        problem = resolved.error().message;
    }
    return operations;
}

/// What is wrong with the answer; empty: nothing.
std::string problem_of(const Result<std::vector<ImportedRun>>& made) {
    std::string problem;
    if (!made) {
        const std::string& sentence = made.error().message;
        return sentence.empty() || sentence.find('\n') != sentence.npos ? "no sentence: " + sentence : "";
    }
    for (const ImportedRun& run : *made) {
        const std::uint64_t operations = operations_in(run.recording, problem);
        if (problem.empty() && operations != run.operations) {
            problem = std::to_string(run.operations) + " operations became " + std::to_string(operations);
        }
        fs::remove(run.recording);
    }
    return problem;
}

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What a child tells, also of a mutant that ended it.
struct Told {
    std::uint64_t mutant = 0;
    std::uint64_t recordings = 0, sentences = 0;
    double slowest = 0; // seconds of CPU time
    char problem[400] = {};
};

class ImportMutants : public testing::TestWithParam<const char*> {
  protected:
    ImportMutants() {
        void* memory = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        told_ = new (memory) Told;
    }
    ~ImportMutants() override { ::munmap(told_, sizeof(Told)); }

    void SetUp() override {
        PlannedRun replays;
        replays.steps = 2;
        replays.side_stream = true;
        PlannedRun eager;
        eager.graph = false;
        eager.annotated = true;
        eager.steps = 2;
        PlannedRun several = replays;
        several.processes = 2;
        several.moe_layers = 2;
        for (const PlannedRun& run : {replays, eager, several}) {
            add_seed(plan(run));
        }
    }

    void add_seed(const PlannedTrace& planned) {
        const std::string format = GetParam();
        const std::string path = folder_ / ("seed-" + std::to_string(seeds_.size()));
        if (format == "kineto") {
            KinetoForm form;
            form.pretty = seeds_.size() % 2 == 0;
            form.text_numbers = form.wrapped = seeds_.size() == 1;
            save(path, as_kineto(planned, form));
        } else if (format == "rocprofv3") {
            save(path, as_rocprofv3(planned));
        } else if (format == "nsys") {
            save_nsys(planned, path);
        } else {
            save_rpd(planned, path);
        }
        seeds_.push_back(content_of(path));
        if (seeds_.size() == 1) {
            save_packed(path, seeds_.front());
            seeds_.push_back(content_of(path));
        }
        largest_ = std::max(largest_, seeds_.back().size());
    }

    /// The same mutant for the same number, whatever came before it.
    void import_mutant(std::uint64_t which) {
        std::mt19937_64 random(setting("PLUMB_IMPORT_SEED", 17) * 1'000'003 + which);
        std::string mutant = seeds_[which % seeds_.size()];
        mutate(mutant, random);
        save(folder_ / "trace", mutant);
        ImportOptions options;
        options.out = folder_ / "run.plumb";
        const double begin = cpu_seconds();
        const Result<std::vector<ImportedRun>> made = import_traces({folder_ / "trace"}, options);
        told_->slowest = std::max(told_->slowest, cpu_seconds() - begin);
        (made ? told_->recordings : told_->sentences) += 1;
        std::snprintf(told_->problem, sizeof told_->problem, "%s", problem_of(made).c_str());
    }

    /// A mutant that ends the process ends a child.
    core_test::ChildEnd import_mutants(std::uint64_t end, std::uint64_t& peak) {
        const pid_t child = core_test::start_child([this, end] {
            for (; told_->mutant < end; ++told_->mutant) {
                import_mutant(told_->mutant);
                if (told_->problem[0] != 0) {
                    return 1;
                }
            }
            return 0;
        });
        int status = 0;
        rusage usage{};
        while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
        }
        peak = std::max(peak, static_cast<std::uint64_t>(usage.ru_maxrss) << 10);
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    }

    TraceFolder folder_;
    std::vector<std::string> seeds_;
    std::size_t largest_ = 0;
    Told* told_;
};

TEST_P(ImportMutants, give_a_recording_or_one_sentence) {
    const std::uint64_t mutants = setting("PLUMB_IMPORT_MUTANTS", 400);
    std::uint64_t peak = 0;
    for (std::uint64_t done = 0; done < mutants; done = told_->mutant) {
        const core_test::ChildEnd end = import_mutants(std::min(done + in_one_child, mutants), peak);
        ASSERT_EQ(end.signal, 0) << "mutant " << told_->mutant;
        ASSERT_EQ(end.code, 0) << "mutant " << told_->mutant << ": " << told_->problem;
    }
    std::printf("%llu recordings, %llu sentences, slowest %.3f s, peak %llu MiB\n",
                static_cast<unsigned long long>(told_->recordings), static_cast<unsigned long long>(told_->sentences),
                told_->slowest, static_cast<unsigned long long>(peak >> 20));
    EXPECT_GT(told_->recordings, 0U);
    if (!sanitized) { // a sanitizer takes several times as much of both
        EXPECT_LE(told_->slowest, most_seconds);
        EXPECT_LE(peak, free_memory + 4 * largest_);
    }
}

INSTANTIATE_TEST_SUITE_P(Import, ImportMutants, testing::Values("kineto", "rocprofv3", "nsys", "rpd"),
                         [](const auto& of) { return std::string(of.param); });

} // namespace
} // namespace plumb::imported
