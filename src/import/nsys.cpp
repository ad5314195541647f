// SPDX-License-Identifier: Apache-2.0
// What Nsight Systems exports: `nsys export --type sqlite`. Columns differ by the version of the schema.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/decimal.hpp"
#include "import/formats.hpp"
#include "import/sqlite_file.hpp"

namespace plumb::imported {
namespace {

constexpr std::uint64_t thread_mask = 0xffffff; // of a globalTid: the rest names the process
constexpr int pid_shift = 24;
constexpr std::uint64_t pid_mask = 0xffffff; // above it: of which machine
constexpr auto null = static_cast<std::int64_t>(no_id);

using Row = SqliteFile::Row;

/// Texts by the number that rows have for them.
class Strings {
  public:
    explicit Strings(TraceBuilder& to) : to_(to), unknown_(to.intern("unnamed")), first_{unknown_} {}
    void add(std::int64_t id, std::string_view text) {
        const std::uint32_t name = to_.intern(text);
        if (static_cast<std::uint64_t>(id) == first_.size()) {
            first_.push_back(name);
        } else {
            (is_first(id) ? first_[static_cast<std::size_t>(id)] : ids_[id]) = name;
        }
    }
    [[nodiscard]] std::uint32_t of(std::int64_t id) const {
        if (is_first(id)) {
            return first_[static_cast<std::size_t>(id)];
        }
        const auto found = ids_.find(id);
        return found == ids_.end() ? unknown_ : found->second;
    }

  private:
    [[nodiscard]] bool is_first(std::int64_t id) const { return static_cast<std::uint64_t>(id) < first_.size(); }

    TraceBuilder& to_;
    std::uint32_t unknown_;
    std::vector<std::uint32_t> first_; // as they are numbered: 0, 1, 2 …
    std::unordered_map<std::int64_t, std::uint32_t> ids_;
};

/// As the CUDA driver numbers kinds of copies.
const char* copy_name(std::int64_t kind) {
    switch (kind) {
    case 1:
        return "Memcpy HtoD";
    case 2:
        return "Memcpy DtoH";
    case 8:
        return "Memcpy DtoD";
    case 10:
        return "Memcpy PtoP";
    default:
        return "Memcpy";
    }
}

class NsysReader {
  public:
    NsysReader(SqliteFile& file, TraceBuilder& to) : file_(file), to_(to), strings_(to) {}

    Status read() {
        to_.facts.tool = "nsys";
        facts();
        file_.each("StringIds", {"id", "value"}, [this](const Row& row) { strings_.add(row.number(0), row.text(1)); });
        device_ops("CUPTI_ACTIVITY_KIND_KERNEL", DeviceOpKind::kernel);
        device_ops("CUPTI_ACTIVITY_KIND_MEMCPY", DeviceOpKind::memcpy);
        device_ops("CUPTI_ACTIVITY_KIND_MEMSET", DeviceOpKind::memset);
        device_ops("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", DeviceOpKind::graph);
        host_ops();
        annotations();
        to_.facts.cut = file_.damaged();
        return file_.status();
    }

  private:
    void facts() {
        file_.each("META_DATA_EXPORT", {"name", "value"}, [this](const Row& row) {
            if (row.text(0) == "EXPORT_PRODUCT_VERSION") {
                to_.facts.version = row.text(1);
            }
        });
        file_.each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [this](const Row& row) {
            to_.facts.base_realtime_ns = std::clamp<std::int64_t>(row.number(0), 0, std::int64_t{1} << 62);
        });
        file_.each("TARGET_INFO_GPU", {"id", "name"}, [this](const Row& row) {
            to_.facts.devices[static_cast<std::uint32_t>(row.number(0))] = row.text(1);
        });
    }

    void device_ops(const std::string& table, DeviceOpKind kind) {
        const char* name = kind == DeviceOpKind::memcpy        ? "copyKind"
                           : file_.has(table, "demangledName") ? "demangledName"
                                                               : "shortName";
        to_.expect(file_.likely_rows(table));
        std::vector<std::string> columns = {"start",     "end", "deviceId",    "streamId", "correlationId",
                                            "globalPid", name,  "graphNodeId", "contextId"};
        if (kind == DeviceOpKind::graph) {
            columns.emplace_back("graphId");
        }
        file_.each(table, columns, [&](const Row& row) { device_op(row, kind); });
    }

    void device_op(const Row& row, DeviceOpKind kind) {
        if (row.number_or(0, null) == null && row.is_null(0)) {
            to_.count(Anomaly::no_time);
            return;
        }
        DeviceOp op;
        op.kind = kind;
        op.start_ns = row.number(0);
        op.end_ns = row.number_or(1, op.start_ns);
        op.correlation = static_cast<std::uint64_t>(row.number_or(4, null));
        op.name = kind == DeviceOpKind::kernel   ? strings_.of(row.number(6))
                  : kind == DeviceOpKind::memcpy ? named(copy_name(row.number(6)))
                  : kind == DeviceOpKind::memset ? named("Memset")
                                                 : named("graph");
        if (const auto node = static_cast<std::uint64_t>(row.number_or(7, null));
            node != no_id) { // graph above, node below
            op.graph = static_cast<std::uint32_t>(node >> 32);
            op.node = node & 0xffffffff;
        } else if (kind == DeviceOpKind::graph) {
            op.graph = static_cast<std::uint32_t>(row.number(9));
        }
        to_.add(op, static_cast<std::uint64_t>(row.number(2)), static_cast<std::uint64_t>(row.number(3)),
                static_cast<std::uint64_t>(row.number(5)) >> pid_shift & pid_mask,
                static_cast<std::uint64_t>(row.number(8))); // each context numbers its own streams
    }

    void host_ops() {
        file_.each("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"},
                   [this](const Row& row) {
                       host_op(row, HostOpKind::api, strings_.of(row.number(4)),
                               static_cast<std::uint64_t>(row.number_or(3, null)));
                   });
    }

    void annotations() {
        file_.each("NVTX_EVENTS", {"start", "end", "globalTid", "text", "textId"}, [this](const Row& row) {
            if (row.is_null(1)) {
                return; // a mark
            }
            const std::uint32_t name = row.is_text(3) ? to_.intern(row.text(3)) : strings_.of(row.number(4));
            host_op(row, HostOpKind::annotation, name, no_id);
        });
    }

    void host_op(const Row& row, HostOpKind kind, std::uint32_t name, std::uint64_t correlation) {
        HostOp op;
        op.kind = kind;
        op.start_ns = row.number(0);
        op.end_ns = row.number(1);
        op.correlation = correlation;
        op.name = name;
        const auto thread = static_cast<std::uint64_t>(row.number(2));
        to_.add(op, thread & thread_mask, thread >> pid_shift & pid_mask);
    }

    std::uint32_t named(const char* name) {
        const auto [found, is_new] = names_.try_emplace(name, 0);
        if (is_new) {
            found->second = to_.intern(name);
        }
        return found->second;
    }

    SqliteFile& file_;
    TraceBuilder& to_;
    Strings strings_;
    std::unordered_map<std::string_view, std::uint32_t> names_;
};

} // namespace

Status read_nsys(SqliteFile& file, TraceBuilder& to) { return NsysReader(file, to).read(); }

} // namespace plumb::imported
