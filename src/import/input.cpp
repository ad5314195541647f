// SPDX-License-Identifier: Apache-2.0
#include "import/input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>
#include <zlib.h>

namespace plumb::imported {
namespace {

constexpr std::size_t packed_block = std::size_t{256} << 10;
constexpr int gzip_or_zlib = 15 + 32; // as inflateInit2() wants it

Error size_error(const std::string& path, std::uint64_t max_size) {
    return {ErrorCode::out_of_memory,
            path + " holds more than " + std::to_string(max_size) + " bytes: raise --max-size if that is right"};
}

Error file_error(const std::string& path, int number) {
    const ErrorCode code = number == ENOENT                      ? ErrorCode::not_found
                           : number == EACCES || number == EPERM ? ErrorCode::permission
                                                                 : ErrorCode::failed;
    return {code, "cannot read " + path + ": " + std::generic_category().message(number)};
}

} // namespace

Error stopped_error(const std::string& path) {
    return {ErrorCode::failed, path + ": the import was interrupted and nothing of it is kept; start again"};
}

struct Input::State {
    State(std::string name, int descriptor, InputLimits bounds)
        : path(std::move(name)), file(descriptor), limits(bounds) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        end_unpacking();
        ::close(file);
    }

    void end_unpacking() {
        if (unpacking) {
            ::inflateEnd(&stream);
            unpacking = false;
        }
    }

    Result<std::size_t> read_file(char* to, std::size_t size) {
        std::size_t done = 0;
        while (done < size) {
            const ssize_t got = ::read(file, to + done, size - done);
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got < 0) {
                return file_error(path, errno);
            }
            if (got == 0) {
                break;
            }
            done += static_cast<std::size_t>(got);
            consumed += static_cast<std::uint64_t>(got);
            if (limits.bytes != nullptr) {
                limits.bytes->fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
            }
        }
        return done;
    }

    Status begin_unpacking() {
        end_unpacking();
        stream = {};
        if (::inflateInit2(&stream, gzip_or_zlib) != Z_OK) {
            return Error{ErrorCode::out_of_memory, "cannot unpack " + path + ": zlib has no memory"};
        }
        unpacking = true;
        return {};
    }

    Result<std::size_t> unpack(char* to, std::size_t size) {
        std::size_t done = 0;
        while (done < size && !ended) {
            if (stream.avail_in == 0) {
                const Result<std::size_t> got = read_file(block.data(), block.size());
                if (!got) {
                    return got;
                }
                stream.next_in = reinterpret_cast<Bytef*>(block.data());
                stream.avail_in = static_cast<uInt>(*got);
                if (*got == 0) {
                    ended = true;
                    cut = cut || inside;
                    break;
                }
            }
            inside = true;
            stream.next_out = reinterpret_cast<Bytef*>(to + done);
            stream.avail_out = static_cast<uInt>(std::min(size - done, packed_block));
            const uInt room = stream.avail_out;
            const int status = ::inflate(&stream, Z_NO_FLUSH);
            done += room - stream.avail_out;
            if (status == Z_STREAM_END) {
                inside = false; // another member may follow
                if (::inflateReset(&stream) != Z_OK) {
                    ended = true;
                }
            } else if (status != Z_OK && status != Z_BUF_ERROR) {
                ended = true;
                cut = true;
            }
        }
        return done;
    }

    std::string path;
    int file;
    InputLimits limits;
    std::uint64_t given = 0;    // bytes handed out
    std::uint64_t consumed = 0; // bytes of the file
    bool is_packed = false;
    bool unpacking = false;
    bool inside = false; // a member of the gzip file
    bool ended = false;
    bool cut = false;
    z_stream stream{};
    std::vector<char> block;
};

Input::Input(std::unique_ptr<State> state) : state_(std::move(state)) {}
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

Result<Input> Input::open(const std::string& path, const InputLimits& limits) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe would wait for a writer
    if (file < 0) {
        return file_error(path, errno);
    }
    auto state = std::make_unique<State>(path, file, limits);
    struct stat about {};
    if (::fstat(file, &about) != 0) {
        return file_error(path, errno);
    }
    if (!S_ISREG(about.st_mode)) {
        return Error{ErrorCode::invalid_argument, path + " is no file: name the trace itself"};
    }
    if (static_cast<std::uint64_t>(about.st_size) > limits.max_size) {
        return size_error(path, limits.max_size);
    }
    unsigned char magic[2] = {};
    state->is_packed = ::pread(file, magic, sizeof magic, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    Input input(std::move(state));
    const Status begun = input.rewind();
    if (!begun.ok()) {
        return begun.error();
    }
    return input;
}

Status Input::rewind() {
    State& s = *state_;
    if (::lseek(s.file, 0, SEEK_SET) != 0) {
        return file_error(s.path, errno);
    }
    s.given = 0;
    s.consumed = 0;
    s.inside = s.ended = s.cut = false;
    if (!s.is_packed) {
        return {};
    }
    s.block.resize(packed_block);
    return s.begin_unpacking();
}

Result<std::size_t> Input::read(char* to, std::size_t size) {
    State& s = *state_;
    if (s.limits.stop != nullptr && s.limits.stop->load(std::memory_order_relaxed)) {
        return stopped_error(s.path);
    }
    Result<std::size_t> got = s.is_packed ? s.unpack(to, size) : s.read_file(to, size);
    if (!got) {
        return got;
    }
    s.given += *got;
    if (s.given > s.limits.max_size) {
        return size_error(s.path, s.limits.max_size);
    }
    if (s.is_packed && s.given > s.limits.free_size && s.given / s.limits.most_ratio > s.consumed) {
        return Error{ErrorCode::corrupt, s.path + " unpacks to more than " + std::to_string(s.limits.most_ratio) +
                                             " times its size: no trace does; unpack it yourself if it is one"};
    }
    return got;
}

bool Input::packed() const { return state_->is_packed; }
bool Input::cut() const { return state_->cut; }

} // namespace plumb::imported
