// SPDX-License-Identifier: Apache-2.0
#include "cli/write_tables.hpp"

#include <filesystem>
#include <map>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/results.hpp"

namespace plumb::cli {

namespace {

Result<std::uint64_t> write_file(const std::string& recording, const std::string& format, const ExportFile& table,
                                 const std::string& path) {
    std::error_code refused;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), refused);
    if (refused) {
        return Error{ErrorCode::permission, write_error(path, refused.value())};
    }
    Result<std::unique_ptr<OutputFile>> opened = OutputFile::open(path, {recording});
    if (!opened) {
        return opened.error();
    }
    OutputFile& file = **opened;
    Status status;
    {
        const Ticker ticker("writing " + path, [&file] { return file.written(); });
        status = export_table(recording, format, table.table, file.stream());
    }
    if (interrupted().load()) {
        return Error{ErrorCode::failed, "interrupted; files that were complete stay"};
    }
    if (status.ok()) {
        status = file.commit();
    }
    return status.ok() ? Result<std::uint64_t>(file.written()) : file.error_or(status.error());
}

} // namespace

Result<WrittenTables> write_tables(const std::vector<std::string>& recordings, const std::string& format,
                                   const std::string& folder) {
    WrittenTables written;
    std::map<std::string, std::string> paths; // and of which recording
    for (const std::string& recording : recordings) {
        const Result<std::vector<ExportFile>> files = export_files(recording, format);
        if (!files) {
            return files.error();
        }
        for (const ExportFile& table : *files) {
            const std::string path = (std::filesystem::path(folder) / table.path).string();
            const auto [earlier, fresh] = paths.emplace(path, recording);
            if (!fresh) {
                return Error{ErrorCode::invalid_argument,
                             earlier->second + " and " + recording + " are the same recording; name it once"};
            }
            const Result<std::uint64_t> done = write_file(recording, format, table, path);
            if (!done) {
                return done.error();
            }
            written.bytes += *done;
        }
        written.recordings.emplace_back(std::filesystem::path(files->front().path).stem(), recording);
    }
    return written;
}

} // namespace plumb::cli
