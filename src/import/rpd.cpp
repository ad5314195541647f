// SPDX-License-Identifier: Apache-2.0
// What rocmProfileData writes (.rpd): operations hang on the rows of the calls that began them, all of a graph's on one.
#include <unordered_map>
#include <vector>

#include "import/formats.hpp"
#include "import/sqlite_file.hpp"

namespace plumb::imported {
namespace {

using Row = SqliteFile::Row;

bool holds(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

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
        file_.each("rocpd_api_ops", {"op_id", "api_id"},
                   [this](const Row& row) { call_of_.emplace(row.number(0), row.number(1)); });
        file_.each("rocpd_op", {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"},
                   [this](const Row& row) { device_op(row); });
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
            calls_.emplace(row.number(0), process);
            HostOp op;
            const std::string_view name = text(row.number(5));
            const bool marker = name == "UserMarker"; // a range of roctx: what it says are the arguments
            op.kind = marker ? HostOpKind::annotation : HostOpKind::api;
            op.start_ns = row.number(3);
            op.end_ns = row.number(4);
            op.correlation = static_cast<std::uint64_t>(row.number(0));
            op.name = to_.intern(marker ? text(row.number(6)) : name);
            to_.add(op, static_cast<std::uint64_t>(row.number(2)), process);
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
        DeviceOp op;
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
        const auto link = call_of_.find(row.number(0));
        const auto call = link == call_of_.end() ? calls_.end() : calls_.find(link->second);
        if (link != call_of_.end()) {
            op.correlation = static_cast<std::uint64_t>(link->second);
        }
        if (call != calls_.end()) {
            last_process_ = call->second;
        }
        to_.add(op, static_cast<std::uint64_t>(row.number(1)), static_cast<std::uint64_t>(row.number(2)),
                last_process_);
    }

    SqliteFile& file_;
    TraceBuilder& to_;
    std::unordered_map<std::int64_t, std::string> strings_;
    std::unordered_map<std::int64_t, std::uint64_t> calls_;  // their processes
    std::unordered_map<std::int64_t, std::int64_t> call_of_; // by operation
    std::uint64_t last_process_ = 0; // an operation without a call belongs to the process of the one before
};

} // namespace

Status read_rpd(SqliteFile& file, TraceBuilder& to) { return RpdReader(file, to).read(); }

} // namespace plumb::imported
