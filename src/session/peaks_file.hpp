// SPDX-License-Identifier: Apache-2.0
// The file that keeps what `plumb selftest --peaks` measured, for the runs of the same machine: JSON, one file per machine
// in $XDG_CACHE_HOME/plumb or ~/.cache/plumb, replaced as a whole. It names its machine, so that one that came along with
// a copied home folder is not believed. Reading takes hostile input. Plain functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"
#include "plumb/roofline.hpp"

namespace plumb::session {

/// What peaks belong to: they change with any of it.
struct Machine {
    std::string host;
    std::string cpu;
    unsigned cpus = 0; // that this process may use
};
[[nodiscard]] Machine this_machine();

[[nodiscard]] std::string peaks_json(const Machine& machine, const std::vector<Peaks>& peaks);
/// Error corrupt: not such a file. Error not_found: of another machine.
[[nodiscard]] Result<std::vector<Peaks>> parse_peaks(std::string_view json, const Machine& machine);

/// Error permission without a usable home or cache folder.
[[nodiscard]] Result<std::string> peaks_folder();
/// The file for this machine in the folder, which is made; written by write_peaks(). Error permission where it cannot be.
[[nodiscard]] Result<std::string> file_to_write(const std::string& folder, const Machine& machine);
/// Returns the file.
[[nodiscard]] Result<std::string> write_peaks(const std::string& folder, const Machine& machine,
                                              const std::vector<Peaks>& peaks);
[[nodiscard]] Result<std::vector<Peaks>> read_peaks(const std::string& folder, const Machine& machine);

} // namespace plumb::session
