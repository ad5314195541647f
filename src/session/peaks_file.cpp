// SPDX-License-Identifier: Apache-2.0
#include "session/peaks_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json_writer.hpp"
#include "base/os.hpp"
#include "base/peak_fields.hpp"
#include "plumb/selftest.hpp"
#include "session/flat_json.hpp"

namespace plumb::session {
namespace {

namespace fs = std::filesystem;

constexpr char schema[] = "plumb.peaks/1";
constexpr std::size_t most_bytes = 256 << 10;
constexpr std::size_t most_places = 256;

const Error not_ours{ErrorCode::corrupt, "the file of peaks is damaged; run `plumb selftest --peaks` to write it anew"};
const Error not_here{ErrorCode::not_found,
                     "no peaks were measured on this machine; run `plumb selftest --peaks` on it"};

Error refused(const std::string& folder) {
    return {ErrorCode::permission,
            "peaks cannot be kept in " + folder + "; set XDG_CACHE_HOME to a folder that can be written"};
}

/// FNV-1a: only tells machines that share a home folder apart; the file itself says whose it is.
std::string file_name(const Machine& machine) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char sign : machine.host + '\n' + machine.cpu + '\n' + std::to_string(machine.cpus)) {
        hash = (hash ^ static_cast<unsigned char>(sign)) * 0x100000001b3U;
    }
    char digits[17];
    for (int i = 0; i < 16; ++i) {
        digits[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    }
    return "peaks-" + std::string(digits, 16) + ".json";
}

void put(base::JsonWriter& json, const Peaks& peaks) {
    json.begin_object();
    json.field("place", peaks.place);
    json.field("name", peaks.name);
    json.field("uuid", peaks.uuid);
    json.field("measured_unix_s", peaks.measured_unix_s);
    for (const PeakField& field : peak_fields) {
        const Figure& figure = peaks.*field.figure;
        json.key(field.name);
        if (figure.value) {
            json.value(*figure.value);
        } else {
            json.begin_object();
            json.field("absent", figure.reason);
            json.end();
        }
    }
    json.end();
}

/// A peak is a positive number or {"absent": "why"}.
Figure take_figure(FlatJson& json) {
    if (json.take('{')) {
        const bool absent = json.key() == "absent";
        Figure figure{std::nullopt, json.text()};
        json.expect('}');
        return absent ? figure : Figure{std::nullopt, "unreadable"};
    }
    const double value = json.number();
    return value > 0 ? Figure{value, {}} : Figure{std::nullopt, "the file of peaks holds no positive number"};
}

void take_member(FlatJson& json, Peaks& peaks) {
    const std::string name = json.key();
    for (std::string Peaks::*text : {&Peaks::place, &Peaks::name, &Peaks::uuid}) {
        const char* key = text == &Peaks::place ? "place" : text == &Peaks::name ? "name" : "uuid";
        if (name == key) {
            peaks.*text = json.text();
            return;
        }
    }
    if (name == "measured_unix_s") {
        const double when = json.number();
        peaks.measured_unix_s = when >= 0 && when < 1e12 ? static_cast<std::int64_t>(when) : 0;
        return;
    }
    const Figure figure = take_figure(json); // of a later version: skipped
    for (const PeakField& field : peak_fields) {
        if (name == field.name) {
            peaks.*field.figure = figure;
        }
    }
}

Peaks take_peaks(FlatJson& json) {
    Peaks peaks;
    for (const PeakField& field : peak_fields) {
        (peaks.*field.figure).reason = "not measured; run `plumb selftest --peaks` again";
    }
    json.expect('{');
    for (bool first = true; json.more(first, '}');) {
        take_member(json, peaks);
    }
    return peaks;
}

Machine take_machine(FlatJson& json) {
    Machine machine;
    json.expect('{');
    for (bool first = true; json.more(first, '}');) {
        const std::string name = json.key();
        if (name == "cpus") {
            const double cpus = json.number();
            machine.cpus = cpus >= 0 && cpus < 1e9 ? static_cast<unsigned>(cpus) : 0;
        } else {
            (name == "host" ? machine.host : machine.cpu) = json.text();
        }
    }
    return machine;
}

} // namespace

Machine this_machine() { return {base::host_name(), base::cpu_model(), base::usable_cpus()}; }

std::string peaks_json(const Machine& machine, const std::vector<Peaks>& peaks) {
    std::string out;
    base::JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", schema);
    json.key("machine");
    json.begin_object();
    json.field("host", machine.host);
    json.field("cpu", machine.cpu);
    json.field("cpus", machine.cpus);
    json.end();
    json.key("peaks");
    json.begin_array();
    for (const Peaks& place : peaks) {
        put(json, place);
    }
    json.finish();
    return out + "\n";
}

Result<std::vector<Peaks>> parse_peaks(std::string_view text, const Machine& machine) {
    FlatJson json(text);
    json.expect('{');
    if (json.key() != "schema" || json.text() != schema) {
        return not_ours;
    }
    json.expect(',');
    if (json.key() != "machine") {
        return not_ours;
    }
    const Machine of = take_machine(json);
    json.expect(',');
    if (!json.good() || json.key() != "peaks") {
        return not_ours;
    }
    std::vector<Peaks> peaks;
    json.expect('[');
    for (bool first = true; json.more(first, ']') && peaks.size() < most_places;) {
        peaks.push_back(take_peaks(json));
    }
    json.expect('}');
    if (!json.at_end()) {
        return not_ours;
    }
    if (of.host != machine.host || of.cpu != machine.cpu || of.cpus != machine.cpus) {
        return not_here;
    }
    return peaks;
}

Result<std::string> peaks_folder() {
    std::string folder;
    if (const char* cache = base::environment("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
        folder = cache;
    } else if (const char* home = base::environment("HOME"); home != nullptr && *home == '/') {
        folder = std::string(home) + "/.cache";
    }
    if (folder.empty()) {
        return Error{ErrorCode::permission, "there is no folder to keep peaks in; set XDG_CACHE_HOME"};
    }
    return folder + "/plumb";
}

Result<std::string> file_to_write(const std::string& folder, const Machine& machine) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || access(folder.c_str(), W_OK | X_OK) != 0) {
        return refused(folder);
    }
    return folder + "/" + file_name(machine);
}

Result<std::string> write_peaks(const std::string& folder, const Machine& machine, const std::vector<Peaks>& peaks) {
    const Result<std::string> path = file_to_write(folder, machine);
    if (!path) {
        return path;
    }
    std::string temporary = *path + ".XXXXXX";
    const int file = mkstemp(temporary.data()); // mode 0600
    if (file < 0) {
        return refused(folder);
    }
    const std::string text = peaks_json(machine, peaks);
    const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    // A crash must not leave an empty file under the real name.
    const bool kept = written && fsync(file) == 0;
    close(file);
    if (!kept || std::rename(temporary.c_str(), path->c_str()) != 0) {
        unlink(temporary.c_str());
        return refused(folder);
    }
    return path;
}

Result<std::vector<Peaks>> read_peaks(const std::string& folder, const Machine& machine) {
    const std::string path = folder + "/" + file_name(machine);
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
        return not_here; // nothing, or a pipe that would be waited for
    }
    std::ifstream file(path, std::ios::binary);
    std::string text(most_bytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text.size() > most_bytes ? Result<std::vector<Peaks>>(not_ours) : parse_peaks(text, machine);
}

} // namespace plumb::session

namespace plumb {

Result<std::string> peaks_file() {
    const Result<std::string> folder = session::peaks_folder();
    return folder ? session::file_to_write(*folder, session::this_machine()) : folder;
}

Result<std::string> store_peaks(const std::vector<Peaks>& peaks) {
    const Result<std::string> folder = session::peaks_folder();
    return folder ? session::write_peaks(*folder, session::this_machine(), peaks) : folder;
}

Result<std::vector<Peaks>> stored_peaks() {
    const Result<std::string> folder = session::peaks_folder();
    if (!folder) {
        return folder.error();
    }
    return session::read_peaks(*folder, session::this_machine());
}

} // namespace plumb
