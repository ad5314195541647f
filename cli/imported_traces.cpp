// SPDX-License-Identifier: Apache-2.0
#include "cli/imported_traces.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "import/import.hpp"

namespace plumb::cli {
namespace {

bool is_recording(const std::string& path) {
    constexpr char magic[] = {'P', 'L', 'U', 'M', 'B', '\r', '\n', 0x1a};
    char first[sizeof magic] = {};
    std::ifstream file(path, std::ios::binary);
    return file.read(first, sizeof first) && std::memcmp(first, magic, sizeof magic) == 0;
}

} // namespace

ImportedTraces::~ImportedTraces() {
    std::error_code ignored;
    if (!folder_.empty()) {
        std::filesystem::remove_all(folder_, ignored);
    }
}

Result<std::vector<std::string>> ImportedTraces::recordings_of(const std::vector<std::string>& paths) {
    std::vector<std::string> recordings;
    for (const std::string& path : paths) {
        if (is_recording(path)) {
            recordings.push_back(path);
            continue;
        }
        if (folder_.empty()) {
            Result<std::string> made = make_scratch_folder("plumb-trace");
            if (!made) {
                return made.error();
            }
            folder_ = *std::move(made);
        }
        imported::ImportOptions options;
        options.out = folder_ + "/" + std::to_string(traces_++) + ".plumb";
        options.evidence = {"annotation"}; // operations keep their own names
        catch_interrupts();
        options.stop = &interrupted(); // else an interrupt left the folder behind
        const auto made = imported::import_traces({path}, options);
        if (!made) {
            return made.error();
        }
        for (const imported::ImportedRun& run : *made) {
            recordings.push_back(run.recording);
        }
    }
    return recordings;
}

} // namespace plumb::cli
