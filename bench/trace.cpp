// SPDX-License-Identifier: Apache-2.0
// What writing a trace costs by itself: samples that lie in memory, by CPU time of one thread, into the Perfetto format and into
// Chrome's JSON in turns. Bytes a slice, as they are and after zstd.
#include <zstd.h>

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <random>
#include <streambuf>
#include <string>
#include <vector>

#include "export/export.hpp"
#include "export/planted_source_testing.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;
using plumb::Brick;
using plumb::Name;
using plumb::exporting::PlantedSource;
using plumb::resolve::SampleKind;

constexpr std::uint64_t steps = 2000;
constexpr std::uint32_t layers = 24;

double cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Takes what is written; keeps it only where somebody wants to see it.
class Sink final : public std::streambuf {
  public:
    explicit Sink(std::string* kept) : kept_(kept) {}
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  protected:
    std::streamsize xsputn(const char* text, std::streamsize size) override {
        bytes_ += static_cast<std::size_t>(size);
        if (kept_ != nullptr) {
            kept_->append(text, static_cast<std::size_t>(size));
        }
        return size;
    }
    int_type overflow(int_type character) override {
        ++bytes_;
        return character;
    }

  private:
    std::string* kept_;
    std::size_t bytes_ = 0;
};

/// Decode steps of a model as a thread has them: layers of ten bricks, of which the projections state their bytes.
PlantedSource host_run() {
    PlantedSource source;
    std::mt19937 random(1); // NOLINT(cert-msc51-cpp): the same each time
    std::int64_t now = 0;
    const auto brick = [&](Name name, std::uint64_t step, std::int64_t layer, double bytes, std::int64_t length) {
        auto& sample = source.add(SampleKind::scope, name.id, now, length + static_cast<std::int64_t>(random() % 4096));
        sample.step = step;
        sample.phase = plumb::Phase::decode;
        if (layer >= 0) {
            sample.layer = static_cast<std::uint32_t>(layer);
        }
        sample.bytes = bytes;
        now += sample.duration_ns + static_cast<std::int64_t>(random() % 256);
    };
    const double none = std::numeric_limits<double>::quiet_NaN();
    for (std::uint64_t step = 0; step < steps; ++step) {
        const std::int64_t begin = now;
        for (std::uint32_t layer = 0; layer < layers; ++layer) {
            const std::int64_t layer_begin = now;
            brick(Brick::rms_norm, step, layer, none, 900);
            brick(Brick::qkv_projection, step, layer, 2064384, 70000);
            brick(Brick::rope_embedding, step, layer, none, 1500);
            brick(Brick::kv_append, step, layer, none, 700);
            brick(Brick::attention, step, layer, none, 28000);
            brick(Brick::output_projection, step, layer, 1605632, 56000);
            brick(Brick::residual_add, step, layer, none, 600);
            brick(Brick::gate_up_projection, step, layer, 17432576, 580000);
            brick(Brick::activation, step, layer, none, 4000);
            brick(Brick::down_projection, step, layer, 8716288, 280000);
            auto& frame = source.add(SampleKind::layer, 0, layer_begin, now - layer_begin);
            frame.step = step;
            frame.layer = layer;
            frame.leaf = false;
        }
        brick(Brick::lm_head, step, -1, 272269312, 10000000);
        auto& whole = source.add(SampleKind::step, 0, begin, now - begin);
        whole.step = step;
        whole.leaf = false;
        now += 20000;
    }
    return source;
}

/// The same work on a queue, each scope with the launch that began it.
PlantedSource device_run() {
    PlantedSource source;
    source.add_track(2, plumb::recording::TrackKind::device_queue, "stream 7");
    const PlantedSource host = host_run();
    for (const auto& sample : host.samples) {
        if (sample.kind == SampleKind::scope) {
            source.samples.push_back(sample);
            source.samples.back().track = 2;
        }
    }
    return source;
}

struct Written {
    double ns = 0;
    std::size_t bytes = 0;
};

Written write(const PlantedSource& source, const char* format, std::string* kept = nullptr) {
    Sink sink(kept);
    std::ostream out(&sink);
    const double begin = cpu_ns();
    const plumb::Status status = plumb::exporting::write_as(format, source, out);
    Written done{cpu_ns() - begin, sink.bytes()};
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
        std::exit(2);
    }
    return done;
}

void run(const std::string& name, const PlantedSource& source, Board& board) {
    const auto slices = static_cast<double>(source.samples.size());
    std::vector<double> perfetto, json, ratio;
    for (int round = 0; round < 9; ++round) {
        const double mine = write(source, "perfetto").ns, peer = write(source, "chrome_trace").ns;
        perfetto.push_back(slices / mine * 1e3);
        json.push_back(slices / peer * 1e3);
        ratio.push_back(peer / mine);
    }
    board.put(name + ".perfetto", spread_of(perfetto));
    board.put(name + ".json", spread_of(json));
    board.put(name + ".ratio", spread_of(ratio));
    std::string kept;
    kept.reserve(static_cast<std::size_t>(slices) * 64);
    board.put(name + ".bytes", static_cast<double>(write(source, "perfetto", &kept).bytes) / slices);
    std::string packed(ZSTD_compressBound(kept.size()), '\0');
    const std::size_t size = ZSTD_compress(packed.data(), packed.size(), kept.data(), kept.size(), 3);
    board.put(name + ".zstd", static_cast<double>(size) / slices);
    board.put(name + ".json_bytes", static_cast<double>(write(source, "chrome_trace").bytes) / slices);
}

} // namespace

int main(int argc, char** argv) {
    const Options options =
        parse_options(argc, argv, "What writing a trace costs by itself, by CPU time of one thread.");
    Board board(options);
    run("host", host_run(), board);
    run("device", device_run(), board);
    for (const std::string name : {"host", "device"}) {
        const auto figure = [&](const char* key, int digits) {
            return text(get(board.figures(), name + key).median, digits);
        };
        board.table(fmt::format("{}: {} slices from memory", name, name == "host" ? "a thread's" : "a queue's"),
                    {"median", "range"});
        board.row("Perfetto, million slices/s per core",
                  {figure(".perfetto", 1), range(get(board.figures(), name + ".perfetto"), 1)}, name + ".perfetto",
                  Target{Bound::at_least, 15});
        board.row("JSON, million slices/s per core",
                  {figure(".json", 1), range(get(board.figures(), name + ".json"), 1)});
        board.row("Perfetto over JSON", {figure(".ratio", 2), range(get(board.figures(), name + ".ratio"), 2)});
        board.row("bytes a slice", {figure(".bytes", 1), ""}, name + ".bytes", Target{Bound::at_most, 40});
        board.row("bytes a slice after zstd -3", {figure(".zstd", 1), ""}, name + ".zstd", Target{Bound::at_most, 9});
        board.row("JSON, bytes a slice", {figure(".json_bytes", 1), ""});
        board.end_table();
    }
    return board.finish();
}
