// SPDX-License-Identifier: Apache-2.0
// Damaged model files of every family and type, loaded and, where they still can be, run: described, their tokenizer asked,
// a prompt fed, a token decoded. Whatever is in them: no signal, at most 2 s of CPU time each, memory within bounds.
// The same files in every run. PLUMB_HOSTILE_FILES=100000 tries more, PLUMB_HOSTILE_SEED others, PLUMB_HOSTILE_FIRST
// begins elsewhere: with PLUMB_HOSTILE_FILES=1 it repeats one.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "decoder/gguf/describe.hpp"
#include "decoder/hostile/mutate.hpp"
#include "decoder/test_support.hpp"
#include "decoder/tokenizer/tokenizer.hpp"
#include "support/sanitizers.hpp"
#include "support/text_of_file.hpp"

namespace plumb::decoder::hostile {
namespace {

constexpr std::uint64_t most_seconds = sanitized ? 40 : 2; // of CPU time, whatever else the machine does
constexpr std::uint64_t free_memory = std::uint64_t{64} << 20;
constexpr std::uint64_t memory_per_byte = 4;
constexpr unsigned hung_after = 120; // seconds in which a file that waits for something is found

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

/// What a child tells: in memory that outlives it.
struct Tally {
    std::uint64_t file; // that it is at
    std::uint64_t unreadable, refused, ran, texts, fenced;
    std::uint64_t slowest_ns, slowest_file;
    std::uint64_t largest_growth; // of its address space, bytes
    char complaint[600];          // of a file that was neither refused in one sentence nor ran
};

struct Seed {
    std::string shape;
    Type type;
};

std::vector<Seed> seeds() {
    std::vector<Seed> out;
    for (const Shape& shape : shapes()) {
        if (shape.name.starts_with("test")) {
            for (const Type type : all_types) {
                if (shape.hidden % layout_of(type).block == 0 && shape.feed_forward % layout_of(type).block == 0) {
                    out.push_back({std::string(shape.name), type});
                }
            }
        }
    }
    return out;
}

Bytes read_all(const std::string& path) {
    const std::string text = support::text_of_file(path);
    const auto raw = std::as_bytes(std::span(text));
    return {raw.begin(), raw.end()};
}

/// A file that is nowhere but in memory.
class MemoryFile {
  public:
    MemoryFile() : descriptor_(memfd_create("mutant.gguf", MFD_CLOEXEC)) {}
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { close(descriptor_); }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
    [[nodiscard]] bool write(const Bytes& bytes) const {
        return ftruncate(descriptor_, 0) == 0 &&
               pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    }

  private:
    int descriptor_;
};

/// Room for the next mapping of so many bytes, with a page behind it that nobody may read: else a read past the end of a
/// file meets whatever was mapped before, and goes unnoticed.
class Fence {
  public:
    explicit Fence(std::size_t bytes) : room_((bytes + page - 1) / page * page) {
        void* all = mmap(nullptr, room_ + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) {
            return;
        }
        fence_ = static_cast<std::byte*>(all) + room_;
        if (room_ != 0) {
            munmap(all, room_);
        }
    }
    Fence(const Fence&) = delete;
    Fence& operator=(const Fence&) = delete;
    ~Fence() {
        if (fence_ != nullptr) {
            munmap(fence_, page);
        }
    }
    [[nodiscard]] bool behind(const gguf::FileMap& map) const { return map.bytes().data() + room_ == fence_; }

  private:
    static constexpr std::size_t page = 4096;
    std::size_t room_;
    std::byte* fence_ = nullptr;
};

/// Of this process, as the kernel tells; 0 where it does not.
std::uint64_t status_bytes(const char* field) {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(field)) {
            return std::strtoull(line.c_str() + std::strlen(field), nullptr, 10) << 10;
        }
    }
    return 0;
}

std::uint64_t cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// From here on so much CPU time, and some wall time; then a signal ends the process.
void limit_time() {
    itimerval limit{};
    limit.it_value.tv_sec = static_cast<time_t>(most_seconds);
    setitimer(ITIMER_PROF, &limit, nullptr);
    alarm(hung_after);
}

void complain(Tally& tally, const std::string& what) {
    if (tally.complaint[0] == '\0') {
        std::snprintf(tally.complaint, sizeof tally.complaint, "%s", what.c_str());
    }
}

/// An error is one sentence that fits a terminal and cannot command it.
void check(Tally& tally, const Error& error) {
    const std::string& sentence = error.message;
    const bool plain =
        std::none_of(sentence.begin(), sentence.end(), [](char c) { return static_cast<unsigned char>(c) < 32; });
    if (sentence.empty() || sentence.size() > 500 || !plain) {
        complain(tally, "no plain sentence: " + sentence);
    }
}

void ask_tokenizer(const gguf::Contents& contents, Tally& tally) {
    Result<Tokenizer> tokenizer = Tokenizer::make(contents);
    if (!tokenizer) {
        return check(tally, tokenizer.error());
    }
    const Result<std::vector<std::int32_t>> tokens =
        tokenizer->encode("Wie geht's, <|endoftext|> \xe4\xb8\x96\xff 123  a?");
    if (!tokens) {
        return check(tally, tokens.error());
    }
    for (const std::int32_t token : *tokens) {
        if (token < 0 || static_cast<std::size_t>(token) >= tokenizer->vocabulary().tokens.size()) {
            complain(tally, "a token that does not exist: " + std::to_string(token));
        }
    }
    (void)tokenizer->decode(*tokens);
    (void)tokenizer->piece(0x7fffffff);
    ++tally.texts;
}

/// One token decoded after a prompt, by what the decoder says it can do.
void run(Decoder& decoder, std::size_t batch, std::uint64_t file, Tally& tally) {
    OffRecorder off;
    for (std::size_t sequence = 0; sequence < batch; ++sequence) {
        if (const Status fed = decoder.prefill(decoder.random_prompt(5, file), off, {}, sequence); !fed) {
            return check(tally, fed.error());
        }
    }
    const Result<std::size_t> done = decoder.decode(1, off);
    if (!done) {
        return check(tally, done.error());
    }
    const std::int32_t token = decoder.tokens().back();
    if (token < 0 || static_cast<std::size_t>(token) >= decoder.vocabulary()) {
        complain(tally, "a token that does not exist was sampled: " + std::to_string(token));
    }
    ++tally.ran;
}

void try_file(const std::string& path, std::uint64_t file, Tally& tally) {
    std::error_code ignored;
    const std::uint64_t bytes = std::filesystem::file_size(path, ignored);
    const Fence behind_first(bytes);
    const Result<gguf::File> opened = gguf::File::open(path);
    if (!opened) {
        ++tally.unreadable;
        return check(tally, opened.error());
    }
    if (gguf::describe_text(opened->contents(), path).empty() ||
        gguf::describe_json(opened->contents(), path).empty()) {
        complain(tally, "no description");
    }
    tally.fenced += behind_first.behind(opened->map()) ? 1 : 0;
    ask_tokenizer(opened->contents(), tally);
    Options options;
    options.threads = 1;
    options.context = 8;
    options.chunk = 4;
    options.batch = 1 + file % 2;
    options.sampling.temperature = file % 3 == 0 ? 1.0F : 0.0F;
    const Fence behind_second(bytes);
    Result<Decoder> decoder = Decoder::load(path, options);
    if (!decoder) {
        ++tally.refused;
        return check(tally, decoder.error());
    }
    run(*decoder, options.batch, file, tally);
}

class HostileModels : public testing::Test {
  protected:
    void SetUp() override {
        void* memory = mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        tally_ = new (memory) Tally{};
    }
    ~HostileModels() override { munmap(tally_, sizeof(Tally)); }

    /// In the child: every count-th of the files first … end.
    void try_files(const Parts& seed, std::uint64_t first, std::uint64_t end, std::uint64_t step) {
        const MemoryFile place; // a disk would take most of the time
        const std::uint64_t random_seed = setting("PLUMB_HOSTILE_SEED", 20260101);
        Parts pieces = seed;
        use_scored_pieces(pieces);
        std::uint64_t largest = 0;
        std::uint64_t before = 0;
        for (std::uint64_t file = first; file < end && tally_->complaint[0] == '\0'; file += step) {
            tally_->file = file;
            Random random(random_seed, file);
            {
                const Bytes bytes = mutant(random.one_in(4) ? pieces : seed, random);
                if (!place.write(bytes)) {
                    complain(*tally_, "there is no memory for the file");
                }
                largest = std::max<std::uint64_t>(largest, bytes.size());
            }
            limit_time();
            const std::uint64_t begin = cpu_ns();
            try_file(place.path(), file, *tally_);
            const std::uint64_t ns = cpu_ns() - begin;
            if (ns > tally_->slowest_ns) {
                tally_->slowest_ns = ns, tally_->slowest_file = file;
            }
            if (before == 0) { // libraries are there from the first file on
                before = status_bytes("VmSize:");
            }
            const std::uint64_t peak = status_bytes("VmPeak:");
            const std::uint64_t growth = peak > before ? peak - before : 0;
            tally_->largest_growth = std::max(tally_->largest_growth, growth);
            if (!sanitized && growth > free_memory + memory_per_byte * largest) {
                complain(*tally_, "took " + std::to_string(growth >> 20) + " MiB");
            }
        }
    }

    TestFolder folder_;
    Tally* tally_ = nullptr;
};

std::string how_it_ended(int status) {
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status) == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
    }
    const int signal = WTERMSIG(status);
    return signal == SIGPROF   ? "more than " + std::to_string(most_seconds) + " s of CPU time"
           : signal == SIGALRM ? "it hung"
                               : "signal " + std::to_string(signal);
}

TEST_F(HostileModels, damaged_files_of_every_family_and_type_are_refused_in_a_sentence_or_run) {
    const std::uint64_t first = setting("PLUMB_HOSTILE_FIRST", 0);
    const std::uint64_t files = setting("PLUMB_HOSTILE_FILES", 1500);
    const std::vector<Seed> list = seeds();
    ASSERT_GT(list.size(), 60U);
    for (std::uint64_t s = 0; s < list.size() && !HasFailure(); ++s) {
        const std::uint64_t start = first + (s + list.size() - first % list.size()) % list.size();
        if (start >= first + files) {
            continue;
        }
        const Bytes bytes = read_all(make_test_model(folder_, list[s].shape, list[s].type));
        const Result<gguf::Contents> contents = gguf::parse(bytes, "seed");
        ASSERT_TRUE(contents.ok()) << contents.error().message;
        const std::uint64_t ran_before = tally_->ran;
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            try_files(take_apart(*contents), start, first + files, list.size());
            _exit(0);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        EXPECT_EQ(how_it_ended(status), "") << "file " << tally_->file << " of " << list[s].shape;
        EXPECT_STREQ(tally_->complaint, "") << "file " << tally_->file << " of " << list[s].shape;
        if (files >= 100 * list.size()) { // of fewer none may run by chance
            EXPECT_GT(tally_->ran, ran_before) << list[s].shape << " " << layout_of(list[s].type).word;
        }
        std::filesystem::remove(
            folder_.file(list[s].shape + "-" + std::string(layout_of(list[s].type).word) + ".gguf"));
    }
    std::printf("%" PRIu64 " files of %zu seeds: %" PRIu64 " unreadable, %" PRIu64 " refused, %" PRIu64 " ran; %" PRIu64
                " texts cut, %" PRIu64 " fenced; at most %.1f ms of CPU time (file %" PRIu64 "), %" PRIu64 " MiB\n",
                files, list.size(), tally_->unreadable, tally_->refused, tally_->ran, tally_->texts, tally_->fenced,
                static_cast<double>(tally_->slowest_ns) / 1e6, tally_->slowest_file, tally_->largest_growth >> 20);
    if (files < 1000) {
        return;
    }
    // Files that all fail at the first byte test nothing, nor do files that are hardly damaged.
    EXPECT_GT(tally_->unreadable, files / 10);
    EXPECT_GT(tally_->refused, files / 10);
    EXPECT_GT(tally_->ran, files / 10);
    EXPECT_GT(tally_->texts, files / 10);
    EXPECT_GT(tally_->fenced, (files - tally_->unreadable) / 2) << "reads past the end would go unnoticed";
}

TEST_F(HostileModels, a_file_taken_apart_and_put_together_is_the_same) {
    const Bytes bytes = read_all(make_test_model(folder_, "test-qwen3moe", Type::q6_k));
    const Result<gguf::Contents> contents = gguf::parse(bytes, "m.gguf");
    ASSERT_TRUE(contents.ok());
    const Written again = put_together(take_apart(*contents));
    EXPECT_EQ(again.bytes, bytes);
    EXPECT_EQ(again.header, contents->data_offset);
    EXPECT_GT(again.places.size(), 500U) << "lengths, counts, types and offsets";
}

TEST_F(HostileModels, a_file_with_scored_pieces_is_whole) {
    const Bytes bytes = read_all(make_test_model(folder_, "test", Type::f32));
    Parts parts = take_apart(*gguf::parse(bytes, "m.gguf"));
    use_scored_pieces(parts);
    const MemoryFile file;
    ASSERT_TRUE(file.write(put_together(parts).bytes));
    try_file(file.path(), 0, *tally_);
    EXPECT_EQ(tally_->texts, 1U);
    EXPECT_EQ(tally_->ran, 1U);
    EXPECT_STREQ(tally_->complaint, "");
}

} // namespace
} // namespace plumb::decoder::hostile
