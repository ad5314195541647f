// SPDX-License-Identifier: Apache-2.0
// Writes the recording that the tests of the command line read: two threads, every kind of scope, a name that tries to
// break out of every format. The clock is injected, so that every duration is known: each reading is 100 ns later.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <plumb/plumb.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

class SteppingClock final : public plumb::HostClock {
  public:
    std::uint64_t now_ticks() const noexcept override { return static_cast<std::uint64_t>(now_ns()); }
    std::int64_t now_ns() const noexcept override { return 100 * now_.fetch_add(1, std::memory_order_relaxed); }

  private:
    mutable std::atomic<std::int64_t> now_{10'000'000};
};

struct Names {
    plumb::Name hostile, block;
};

void layer(plumb::Profiler& prof, const Names& names, int index) {
    PLUMB_LAYER(prof, index);
    PLUMB_BRICK(prof, plumb::host, names.block);
    { PLUMB_BRICK(prof, plumb::host, plumb::Brick::rms_norm, plumb::bytes(4096)); }
    PLUMB_LAP(prof, plumb::host, plumb::Brick::rope_embedding);
    PLUMB_LAP(prof, plumb::host, plumb::Brick::attention, plumb::bytes_per_kv(64));
    PLUMB_LAP_END(prof, plumb::host);
    { PLUMB_BRICK(prof, plumb::host, plumb::Brick::up_projection, plumb::bytes(1 << 20), plumb::flops(1 << 21)); }
    for (int col = 0; col < 2; ++col) {
        PLUMB_TILE(prof, plumb::TileLevel::macro, index, col, plumb::flops(4096), plumb::Brick::up_projection,
                   plumb::bytes(2048));
    }
}

void step(plumb::Profiler& prof, const Names& names, plumb::Phase phase, int tokens, int kv) {
    PLUMB_STEP(prof, plumb::host, phase, plumb::tokens(tokens), plumb::sequences(1), plumb::kv_length(kv));
    for (int index = 0; index < 3; ++index) {
        layer(prof, names, index);
    }
    { PLUMB_BRICK(prof, plumb::host, names.hostile); }
    PLUMB_BRICK(prof, plumb::host, plumb::Brick::lm_head, plumb::bytes(1 << 22));
}

/// Spans that overlap each other, so that a trace needs several lanes for them.
void spans(plumb::Profiler& prof) {
    plumb::Token first = prof.begin(plumb::Brick::copy_h2d, plumb::bytes(100));
    plumb::Token second = prof.begin(plumb::Brick::copy_d2h);
    prof.end(first);
    prof.end(second);
}

/// More spans at a time than a trace has lanes for.
void crowd(plumb::Profiler& prof) {
    std::vector<plumb::Token> tokens;
    for (int index = 0; index < 300; ++index) {
        tokens.push_back(prof.begin(plumb::Brick::copy_h2d));
    }
    for (plumb::Token& token : tokens) {
        prof.end(token);
    }
}

/// Recorded one by one: kernels with and without a time or a hash, transfers with and without buffers, a task.
void nodes(plumb::Profiler& prof) {
    constexpr char code[] = "the code of a kernel";
    const plumb::Result<std::uint64_t> known =
        prof.register_kernel(code, sizeof code, {"gemm", "kernels/gemm.cu", "void gemm();"});
    const plumb::Name gemm = prof.intern("gemm");
    PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1));
    PLUMB_LAYER(prof, 1);
    PLUMB_BRICK(prof, plumb::host, plumb::Brick::up_projection);
    const plumb::Timestamp begin = prof.now(), end = prof.now();
    const plumb::NodeHandle there =
        prof.record_transfer(16, 32, 4096, plumb::TransferDirection::host_to_device, plumb::timed(begin, end));
    const plumb::NodeHandle kernel =
        prof.record_kernel(gemm, known ? *known : 0, {64, 2}, {256}, 4096, plumb::timed(end, prof.now()),
                           plumb::bytes(4096), plumb::flops(8192), plumb::elements(64));
    const plumb::NodeHandle told = prof.record_kernel(gemm, 0, {64}, {256}, 0);
    prof.record_transfer({}, 32, 512, plumb::TransferDirection::device_to_host);
    prof.record_task(5, 2, 900);
    prof.add_dependency(there, kernel);
    prof.add_dependency(kernel, told);
}

/// Names that try to end the script they stand in, to run, to turn the direction of a line, or to be too long for it.
void hostile(plumb::Profiler& prof) {
    const std::string words[] = {"</script><script>document.title='broken out'</script>",
                                 "<!-- <script>",
                                 "<img src=x onerror=document.title='broken_out'>",
                                 "right\xe2\x80\xaeot tfel\xe2\x81\xa6",
                                 "line\xe2\x80\xa8paragraph\xe2\x80\xa9",
                                 "bell\x07 escape\x1b[31m",
                                 std::string(10'000, 'n')};
    for (const std::string& word : words) {
        prof.describe("hostile", word);
        const plumb::Name name = prof.intern(word);
        PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1));
        PLUMB_LAYER(prof, 1);
        PLUMB_BRICK(prof, plumb::host, name);
    }
}

void short_steps(plumb::Profiler& prof, int count) {
    for (int index = 0; index < count; ++index) {
        if (index % 1000 == 0) {
            (void)prof.flush(); // no ring is full
        }
        PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1));
        PLUMB_BRICK(prof, plumb::host, plumb::Brick::attention);
    }
}

/// The second one waits for the prefill of the first, and its first token for a decode step of it.
void requests(plumb::Profiler& prof) {
    const auto serve = [&](std::vector<int> batch, plumb::Phase phase) {
        PLUMB_STEP(prof, plumb::host, phase, plumb::tokens(batch.size()));
        for (const int id : batch) {
            PLUMB_STEP_REQUEST(prof, id);
        }
        PLUMB_BRICK(prof, plumb::host, plumb::Brick::attention);
    };
    for (const int id : {1, 2}) {
        PLUMB_REQUEST(
            prof, id, plumb::RequestPhase::queue,
            plumb::trace_parent(id == 1 ? "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" : nullptr));
    }
    for (const int id : {1, 2}) {
        PLUMB_REQUEST(prof, id, plumb::RequestPhase::prefill);
        serve({id}, plumb::Phase::prefill);
        PLUMB_REQUEST(prof, id, plumb::RequestPhase::decode);
        for (int token = 0; token < 30; ++token) {
            serve(token % 5 == 4 ? std::vector<int>{3 - id} : std::vector<int>{id}, plumb::Phase::decode);
        }
    }
    for (const int id : {1, 2}) {
        PLUMB_REQUEST(prof, id, plumb::RequestPhase::end, plumb::tokens(25));
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr,
                     "usage: make_recording FILE [tiles|nodes|crowd|hostile|requests|long|loose|warm|killed]\n");
        return 2;
    }
    const auto is = [&](const char* word) {
        return argc == 3 && std::strcmp(argv[2], word) == 0;
    };
    const SteppingClock clock;
    plumb::Config config;
    config.on = true;
    config.out = argv[1];
    config.clock = &clock;
    config.tiles = is("tiles") ? 64 : 0;
    plumb::Profiler prof(config);
    const Names names{prof.intern("a\"},{\n\t\x01<b>,;|\xff"), prof.intern("block")};
    prof.describe("model", "a model made for tests");
    prof.describe("layers", "3");
    if (is("loose")) { // no step at all
        PLUMB_BRICK(prof, plumb::host, plumb::Brick::attention);
    } else if (is("warm")) { // no step that counts
        short_steps(prof, 3);
    } else {
        step(prof, names, plumb::Phase::prefill, 16, 16);
    }
    for (int index = 0; !is("loose") && !is("warm") && index < 128; ++index) {
        step(prof, names, plumb::Phase::decode, 1, 17 + index);
    }
    std::thread([&prof] { spans(prof); }).join();
    if (is("nodes")) {
        nodes(prof);
    }
    if (is("crowd")) {
        crowd(prof);
    }
    if (is("hostile")) {
        hostile(prof);
    }
    if (is("requests")) {
        requests(prof);
    }
    if (is("long")) {
        short_steps(prof, 100'000);
    }
    if (is("killed")) {
        std::raise(SIGKILL);
    }
    prof.record(names.block, 1234);
    const plumb::Status closed = prof.close();
    if (!closed) {
        std::fprintf(stderr, "%s\n", closed.error().message.c_str());
        return 1;
    }
    return 0;
}
