// SPDX-License-Identifier: Apache-2.0
// What rocmProfileData writes (.rpd): operations hang on the rows of the calls that began them, all of a graph's on one.
#include <unordered_map>
#include <vector>

#include "import/formats.hpp"
#include "import/sqlite_file.hpp"

namespace plumb::imported {
namespace {

constexpr std::size_t batch = 2048; // stays in the cache

using Row = SqliteFile::Row;

bool holds(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

struct Call {
    std::uint64_t process = 0;
    std::array<std::uint32_t, 3> grid{};
    std::uint64_t bytes = no_id;
};

class RpdReader {
  public:
    RpdReader(SqliteFile& file, TraceBuilder& to) : file_(file), to_(to) {}

    Status read() {
        to_.facts.tool = "rpd";
        file_.each("rocpd_metadata", {"tag", "value"}, [this](const Row& row) {
            if (row.text(0) == "schema_version") {
                to_.facts.version = row.text(1);
            }
        });
        file_.each("rocpd_string", {"id", "string"},
                   [this](const Row& row) { strings_.emplace(row.number(0), row.text(1).substr(0, Names::longest)); });
        calls();
        file_.each("rocpd_kernelapi", {"api_ptr_id", "gridX", "gridY", "gridZ"}, [this](const Row& row) {
            const auto found = calls_.find(row.number(0));
            for (int i = 0; found != calls_.end() && i < 3; ++i) {
                found->second.grid[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(row.number(1 + i));
            }
        });
        file_.each("rocpd_copyapi", {"api_ptr_id", "size"}, [this](const Row& row) {
            const auto found = calls_.find(row.number(0));
            if (found != calls_.end()) {
                found->second.bytes = static_cast<std::uint64_t>(row.number(1));
            }
        });
        file_.each("rocpd_api_ops", {"op_id", "api_id"},
                   [this](const Row& row) { call_of_.emplace(row.number(0), row.number(1)); });
        file_.each("rocpd_op", {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"},
                   [this](const Row& row) { device_op(row); });
        flush();
        to_.facts.cut = file_.damaged();
        return file_.status();
    }

  private:
    [[nodiscard]] std::string_view text(std::int64_t id) const {
        const auto found = strings_.find(id);
        return found == strings_.end() ? std::string_view() : found->second;
    }

    void calls() {
        file_.each("rocpd_api", {"id", "pid", "tid", "start", "end", "apiName_id", "args_id"}, [this](const Row& row) {
            const auto process = static_cast<std::uint64_t>(row.number(1));
            calls_.emplace(row.number(0), Call{process, {}, no_id});
            RawHostOp& raw = host_.emplace_back();
            const std::string_view name = text(row.number(5));
            const bool marker = name == "UserMarker"; // a range of roctx: what it says are the arguments
            raw.op.kind = marker ? HostOpKind::annotation : HostOpKind::api;
            raw.op.start_ns = row.number(3);
            raw.op.end_ns = row.number(4);
            raw.op.correlation = static_cast<std::uint64_t>(row.number(0));
            raw.op.name = to_.intern(marker ? text(row.number(6)) : name);
            raw.thread = static_cast<std::uint64_t>(row.number(2));
            raw.process = process;
            if (host_.size() == batch) {
                flush();
            }
        });
    }

    void device_op(const Row& row) {
        const std::string_view type = text(row.number(6));
        const std::string_view what = text(row.number(5));
        if (holds(type, "Marker") || holds(type, "Barrier")) {
            return; // no work
        }
        if (row.is_null(3) || row.is_null(4)) {
            to_.count(Anomaly::no_time);
            return;
        }
        RawDeviceOp& raw = ops_.emplace_back();
        DeviceOp& op = raw.op;
        if (holds(type, "Copy") || holds(type, "copy")) {
            op.kind = DeviceOpKind::memcpy;
            op.name = to_.intern("Memcpy " + std::string(what.empty() ? type : what));
        } else if (holds(type, "Fill")) {
            op.kind = DeviceOpKind::memset;
            op.name = to_.intern("Memset");
        } else {
            op.name = to_.intern(what.empty() ? type : what);
        }
        op.start_ns = row.number(3);
        op.end_ns = row.number(4);
        raw.device = static_cast<std::uint64_t>(row.number(1));
        raw.stream = static_cast<std::uint64_t>(row.number(2));
        const auto link = call_of_.find(row.number(0));
        const auto call = link == call_of_.end() ? calls_.end() : calls_.find(link->second);
        if (link != call_of_.end()) {
            op.correlation = static_cast<std::uint64_t>(link->second);
        }
        if (call != calls_.end()) {
            last_process_ = call->second.process;
            op.grid = call->second.grid;
            op.bytes = call->second.bytes;
        }
        raw.process = last_process_;
        if (ops_.size() == batch) {
            flush();
        }
    }

    void flush() { to_.add(ops_, host_); }

    SqliteFile& file_;
    TraceBuilder& to_;
    std::unordered_map<std::int64_t, std::string> strings_;
    std::unordered_map<std::int64_t, Call> calls_;
    std::unordered_map<std::int64_t, std::int64_t> call_of_; // by operation
    std::vector<RawDeviceOp> ops_;
    std::vector<RawHostOp> host_;
    std::uint64_t last_process_ = 0; // an operation without a call belongs to the process of the one before
};

} // namespace

Status read_rpd(SqliteFile& file, TraceBuilder& to) { return RpdReader(file, to).read(); }

} // namespace plumb::imported
