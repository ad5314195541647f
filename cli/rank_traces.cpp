// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_traces.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <streambuf>

#include "cli/output.hpp"
#include "plumb/results.hpp"

namespace plumb::cli {
namespace {

/// Counts what is written, and keeps nothing.
class CountingBuffer final : public std::streambuf {
  public:
    [[nodiscard]] std::uint64_t count() const { return count_; }

  protected:
    int_type overflow(int_type character) override {
        ++count_;
        return traits_type::not_eof(character);
    }
    std::streamsize xsputn(const char*, std::streamsize size) override {
        count_ += static_cast<std::uint64_t>(size);
        return size;
    }

  private:
    std::uint64_t count_ = 0;
};

constexpr std::size_t tar_block = 512;
constexpr std::uint64_t largest_in_tar = std::uint64_t{8} << 30;

/// The header of a file in a TAR (POSIX ustar).
std::array<char, tar_block> tar_header(const std::string& name, std::uint64_t size) {
    std::array<char, tar_block> block{};
    const auto put = [&block](std::size_t at, std::size_t digits, std::uint64_t value) {
        for (; digits-- > 0; value /= 8) {
            block[at + digits] = static_cast<char>('0' + value % 8);
        }
    };
    name.copy(block.data(), 99);
    put(100, 7, 0600);
    put(108, 7, 0);
    put(116, 7, 0);
    put(124, 11, size);
    put(136, 11, 0);
    block[156] = '0';
    std::memcpy(block.data() + 257, "ustar\00000", 8);
    std::memset(block.data() + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : block) {
        sum += static_cast<unsigned char>(c);
    }
    put(148, 6, sum);
    block[154] = '\0';
    return block;
}

void pad_block(std::ostream& out, std::uint64_t size) {
    static constexpr std::array<char, tar_block> zeros{};
    out.write(zeros.data(), static_cast<std::streamsize>((tar_block - size % tar_block) % tar_block));
}

struct RankTrace {
    std::string recording, name, machine;
    double begin_ns = 0; // of its trace, on the ranks' clock
};

std::vector<RankTrace> traces_of(const Answer& ranks) {
    std::vector<RankTrace> traces;
    const nlohmann::json said = nlohmann::json::parse(ranks.json(), nullptr, false);
    for (const nlohmann::json& row : said.is_object() ? said["ranks"] : nlohmann::json::array()) {
        if (row["offset_ns"].is_number()) {
            const std::string rank = std::to_string(row["rank"].get<std::uint64_t>());
            const std::string host = row["host"].get<std::string>();
            traces.push_back(
                {row["file"].get<std::string>(), "rank" + rank + ".json",
                 host.empty() ? "rank " + rank : host + ", rank " + rank,
                 static_cast<double>(row["origin_ns"].get<std::int64_t>()) + row["offset_ns"].get<double>()});
        }
    }
    return traces;
}

std::string manifest_of(const std::vector<RankTrace>& traces) {
    double first = std::numeric_limits<double>::infinity();
    for (const RankTrace& trace : traces) {
        first = std::min(first, trace.begin_ns);
    }
    nlohmann::json files = nlohmann::json::array();
    for (const RankTrace& trace : traces) {
        files.push_back({{"path", trace.name},
                         {"machine", {{"name", trace.machine}}},
                         {"clocks", {{"offset_ns", std::llround(trace.begin_ns - first)}}}});
    }
    return nlohmann::json{{"perfetto_manifest", {{"version", 1}, {"files", files}}}}.dump(1);
}

Status put_trace(const RankTrace& trace, std::ostream& out) {
    CountingBuffer counter;
    std::ostream counted(&counter);
    if (Status status = export_recording(trace.recording, "chrome_trace", counted); !status.ok()) {
        return status;
    }
    counted.flush();
    if (counter.count() >= largest_in_tar) {
        return Error{ErrorCode::invalid_argument,
                     trace.recording + " makes a trace of more than 8 GiB, which no TAR of traces holds: "
                                       "record fewer steps, or use plumb trace"};
    }
    out.write(tar_header(trace.name, counter.count()).data(), tar_block);
    const Status written = export_recording(trace.recording, "chrome_trace", out);
    pad_block(out, counter.count());
    return written;
}

} // namespace

Status write_rank_traces(const std::string& output, const std::vector<std::string>& inputs, const Answer& ranks) {
    const std::vector<RankTrace> traces = traces_of(ranks);
    if (traces.empty()) {
        return Error{ErrorCode::invalid_argument, "no rank's clock is known, so their traces cannot be put on one"};
    }
    Result<std::unique_ptr<OutputFile>> opened = OutputFile::open(output, inputs);
    if (!opened) {
        return opened.error();
    }
    OutputFile& file = **opened;
    std::ostream& out = file.stream();
    const std::string manifest = manifest_of(traces);
    out.write(tar_header("perfetto_manifest.json", manifest.size()).data(), tar_block);
    out << manifest;
    pad_block(out, manifest.size());
    Status status;
    for (std::size_t i = 0; i < traces.size() && status.ok(); ++i) {
        status = put_trace(traces[i], out);
    }
    static constexpr std::array<char, 2 * tar_block> end{};
    out.write(end.data(), end.size());
    status = status.ok() ? file.commit() : status;
    return status.ok() || file.reader_left() ? Status{} : Status{file.error_or(status.error())};
}

} // namespace plumb::cli
