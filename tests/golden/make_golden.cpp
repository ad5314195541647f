// SPDX-License-Identifier: Apache-2.0
// Makes the golden recordings of the present format version in a folder. Run once for each version, then never again for
// that version: the committed files are what readers of all later versions must understand. A version that gains types
// gains files; those it has stay as they are. But for v1_bounds those of chunks of records are of writers before bounds.
#include <cstdio>
#include <string>

#include "golden_content.hpp"
#include "recording/format.hpp"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: plumb_make_golden FOLDER\n");
        return 2;
    }
    const std::string base = std::string(argv[1]) + "/v" + std::to_string(plumb::recording::format_version);
    const struct {
        const char* suffix;
        bool compress;
        std::uint64_t max_bytes;
    } files[] = {
        {"_bounds.plumb", false, 0}, {".plumb", false, 0}, {"_zstd.plumb", true, 0}, {"_bounded.plumb", false, 5000}};
    for (const auto& file : files) {
        const plumb::Status status = plumb::golden::write(base + file.suffix, file.compress, file.max_bytes);
        if (!status) {
            std::fprintf(stderr, "%s\n", status.error().message.c_str());
            return 1;
        }
    }
    for (const plumb::Status& status :
         {plumb::golden::write_graphs(base + "_graphs.plumb"),
          plumb::golden::write_graph_nodes(base + "_graph_nodes.plumb"),
          plumb::golden::write_nodes(base + "_nodes.plumb"),
          plumb::golden::write_launches(base + "_launches.plumb", false),
          plumb::golden::write_launches(base + "_causes.plumb", true),
          plumb::golden::write_checks(base + "_checks.plumb", false),
          plumb::golden::write_checks(base + "_checks_zstd.plumb", true),
          plumb::golden::write_tiles(base + "_tiles.plumb"), plumb::golden::write_requests(base + "_requests.plumb")}) {
        if (!status) {
            std::fprintf(stderr, "%s\n", status.error().message.c_str());
            return 1;
        }
    }
    return 0;
}
