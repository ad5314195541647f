// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/interrupt.hpp"

namespace plumb::cli {

FdBuffer::FdBuffer(int descriptor, bool until_interrupted)
    : descriptor_(descriptor), until_interrupted_(until_interrupted) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FdBuffer::~FdBuffer() { drain(); }

bool FdBuffer::write_all(const char* text, std::size_t size) {
    while (error_ == 0 && size > 0) {
        if (until_interrupted_ && interrupted().load()) {
            error_ = ECANCELED;
            break;
        }
        const ssize_t written = ::write(descriptor_, text, size);
        if (written < 0) {
            error_ = errno == EINTR ? 0 : errno;
            continue;
        }
        text += written;
        size -= static_cast<std::size_t>(written);
        written_.fetch_add(static_cast<std::uint64_t>(written), std::memory_order_relaxed);
    }
    return error_ == 0;
}

bool FdBuffer::drain() {
    const bool done = write_all(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return done;
}

FdBuffer::int_type FdBuffer::overflow(int_type character) {
    if (!drain()) {
        return traits_type::eof();
    }
    if (!traits_type::eq_int_type(character, traits_type::eof())) {
        *pptr() = traits_type::to_char_type(character);
        pbump(1);
    }
    return traits_type::not_eof(character);
}

std::streamsize FdBuffer::xsputn(const char* text, std::streamsize size) {
    if (size > epptr() - pptr()) {
        if (!drain()) {
            return 0;
        }
        if (size >= epptr() - pptr()) {
            return write_all(text, static_cast<std::size_t>(size)) ? size : 0;
        }
    }
    std::memcpy(pptr(), text, static_cast<std::size_t>(size));
    pbump(static_cast<int>(size));
    return size;
}

int FdBuffer::sync() { return drain() ? 0 : -1; }

namespace {

bool same_file(const struct stat& status, const std::string& path) {
    struct stat other {};
    return ::stat(path.c_str(), &other) == 0 && status.st_dev == other.st_dev && status.st_ino == other.st_ino;
}

/// What a name leads to, through its links.
struct OutputPlace {
    std::string path;
    bool opened = false; // a link of /proc: it leads to what a process has open, whatever name that has
    int descriptor = -1; // of ours, where it is
};

Result<OutputPlace> place_of(const std::string& path) {
    constexpr int most_links = 40; // as the kernel has it
    OutputPlace place{path};
    for (int links = 0; links < most_links; ++links) {
        struct stat status {};
        if (::lstat(place.path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) {
            return place;
        }
        const std::filesystem::path link(place.path);
        std::error_code refused;
        const auto folder = std::filesystem::canonical(link.has_parent_path() ? link.parent_path() : ".", refused);
        const auto target = refused ? std::filesystem::path() : std::filesystem::read_symlink(link, refused);
        if (refused) {
            return Error{ErrorCode::permission, write_error(path, refused.value())};
        }
        if (folder.string().starts_with("/proc/")) {
            place.opened = true;
            const std::string number = link.filename().string();
            const bool counts =
                !number.empty() && number.size() < 8 && number.find_first_not_of("0123456789") == std::string::npos;
            if (counts && folder == "/proc/" + std::to_string(::getpid()) + "/fd") {
                place.descriptor = std::stoi(number);
            }
            return place;
        }
        place.path = (folder / target).string();
    }
    return Error{ErrorCode::invalid_argument, write_error(path, ELOOP)};
}

/// A file that no other process writes, beside `path`, which says its name.
int open_part(std::string& path) {
    constexpr int most_left_behind = 1000; // by killed processes of our number
    const std::string name = path + ".part-" + std::to_string(::getpid());
    for (int number = 0; number < most_left_behind; ++number) {
        path = number == 0 ? name : name + '-' + std::to_string(number);
        const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

} // namespace

OutputFile::OutputFile(std::string path, std::string part, int descriptor)
    : path_(std::move(path)), part_(std::move(part)), descriptor_(descriptor), buffer_(descriptor, !part_.empty()),
      stream_(&buffer_) {}

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path, const std::vector<std::string>& inputs) {
    if (path == "-") {
        std::cout.flush();
        return std::unique_ptr<OutputFile>(new OutputFile("standard output", {}, STDOUT_FILENO));
    }
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    for (const std::string& input : inputs) {
        if (exists && same_file(status, input)) {
            return Error{ErrorCode::invalid_argument,
                         "the output " + path + " is the recording itself; choose another name"};
        }
    }
    if (exists && S_ISDIR(status.st_mode)) {
        return Error{ErrorCode::invalid_argument, path + " is a folder; name a file in it"};
    }
    Result<OutputPlace> place = place_of(path);
    if (!place) {
        return place.error();
    }
    std::string part;
    int descriptor = -1;
    if (place->descriptor >= 0) { // opened again it would be written from its begin
        descriptor = ::fcntl(place->descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    } else if (place->opened || (exists && !S_ISREG(status.st_mode))) { // renaming cannot replace it
        descriptor = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    } else {
        part = place->path;
        descriptor = open_part(part);
    }
    if (descriptor < 0) {
        return Error{ErrorCode::permission, write_error(path, errno)};
    }
    if (!part.empty()) {
        catch_interrupts(); // else what is half written stays behind
    }
    std::unique_ptr<OutputFile> made(new OutputFile(path, part, descriptor));
    made->target_ = std::move(place->path);
    return made;
}

OutputFile::~OutputFile() {
    stream_.flush();
    if (descriptor_ > STDERR_FILENO) {
        ::close(descriptor_);
    }
    if (!part_.empty()) {
        ::unlink(part_.c_str());
    }
}

bool OutputFile::reader_left() const { return buffer_.error() == EPIPE; }

Error OutputFile::error_or(const Error& otherwise) const {
    if (buffer_.error() == ECANCELED) {
        return Error{ErrorCode::failed, "interrupted; " + path_ + " was not written"};
    }
    return buffer_.error() == 0 ? otherwise : Error{ErrorCode::no_space, write_error(path_, buffer_.error())};
}

Status OutputFile::commit() {
    stream_.flush();
    if (buffer_.error() != 0) {
        return error_or({});
    }
    // A file system may refuse data as late as here.
    if (descriptor_ > STDERR_FILENO && ::close(std::exchange(descriptor_, -1)) != 0) {
        return Error{ErrorCode::no_space, write_error(path_, errno)};
    }
    if (!part_.empty() && ::rename(part_.c_str(), target_.c_str()) != 0) {
        return Error{ErrorCode::permission, write_error(path_, errno)};
    }
    part_.clear();
    return {};
}

std::string write_error(const std::string& where, int error_number) {
    const std::string what = "cannot write to " + where + ": " + std::strerror(error_number);
    if (error_number == ENOSPC || error_number == EDQUOT) {
        return what + "; free space there or write to another place";
    }
    if (error_number == EFBIG) {
        return what + "; raise the limit on the size of files (ulimit -f)";
    }
    return what + "; choose a place you can write to";
}

Result<std::string> make_scratch_folder(const char* name) {
    const char* set = std::getenv("TMPDIR");
    const std::string place = set == nullptr || *set == '\0' ? "/tmp" : set;
    std::string made = place + '/' + name + "-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) {
        return Error{ErrorCode::failed, "cannot make a folder in " + place + ": " + std::strerror(errno) +
                                            "; set TMPDIR to one that can be written"};
    }
    return made;
}

std::string terminal_text(std::string text, std::string_view kept) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte == 0xC2 && at + 1 < text.size() && (static_cast<unsigned char>(text[at + 1]) & 0xE0) == 0x80) { // C1
            text.replace(at, 2, "?");
        } else if ((byte < 0x20 || byte == 0x7F) && kept.find(text[at]) == std::string_view::npos) {
            text[at] = '?';
        }
    }
    return text;
}

std::string json_text(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int say_error(const std::string& sentence, bool json, std::string_view kept) {
    if (json) {
        std::cout << "{\"error\": " << json_text(sentence) << "}\n";
    } else {
        std::cout.flush();
        std::cerr << "error: " << terminal_text(sentence, kept) << '\n';
    }
    return exit_bad_input;
}

bool stdout_has_color() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
           (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

std::size_t stdout_columns() {
    constexpr std::size_t without_terminal = 100;
    struct winsize size {};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : without_terminal;
}

} // namespace plumb::cli
