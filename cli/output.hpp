// SPDX-License-Identifier: Apache-2.0
// Where a command's words go: a stream buffer over a file descriptor that remembers why a write failed, files that appear
// only when complete, and one way to say an error. Used by main's thread; FdBuffer::written() from any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1; // a gate failed, or runs diverge
inline constexpr int exit_bad_input = 2;
inline constexpr int exit_undecided = 3; // not comparable, or what would decide was not measured

/// Does not own the descriptor.
class FdBuffer final : public std::streambuf {
  public:
    /// `until_interrupted`: once Ctrl-C was caught, writing fails with ECANCELED.
    explicit FdBuffer(int descriptor, bool until_interrupted = false);
    ~FdBuffer() override;
    /// errno of the first write that failed; 0: none did. Nothing is written after it.
    [[nodiscard]] int error() const noexcept { return error_; }
    [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }

  protected:
    int_type overflow(int_type character) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

  private:
    bool write_all(const char* text, std::size_t size);
    bool drain();

    int descriptor_;
    bool until_interrupted_;
    int error_ = 0;
    std::atomic<std::uint64_t> written_{0}; // relaxed: only shown as progress
    std::array<char, 16384> buffer_;
};

/// A file that is there whole or not at all; "-" is standard output. A device, a pipe and what a process has open are written as
/// they are. A link stays, and what it leads to is written.
class OutputFile {
  public:
    /// None of `inputs` may be the same file.
    static Result<std::unique_ptr<OutputFile>> open(const std::string& path, const std::vector<std::string>& inputs);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Removes what was written unless it was committed.
    ~OutputFile();

    [[nodiscard]] std::ostream& stream() { return stream_; }
    [[nodiscard]] std::uint64_t written() const { return buffer_.written(); }
    /// The write error with its reason, or `otherwise`. A reader that went away is no error (see reader_left()).
    [[nodiscard]] Error error_or(const Error& otherwise) const;
    [[nodiscard]] bool reader_left() const;
    /// Puts the finished file in its place.
    Status commit();

  private:
    OutputFile(std::string path, std::string part, int descriptor);

    std::string path_;
    std::string target_; // where its links lead
    std::string part_;   // the name until it is complete; empty: written in place
    int descriptor_;
    FdBuffer buffer_;
    std::ostream stream_;
};

/// "cannot write to out.json: No space left on device; …"
[[nodiscard]] std::string write_error(const std::string& where, int error_number);

/// Says the error, as {"error": …} on standard output when `json`, else on standard error. Returns exit_bad_input.
/// `kept`: control characters that stay.
int say_error(const std::string& sentence, bool json, std::string_view kept = {});

/// `text` with a stand-in for every control character (C0, DEL, C1): a name in a file must not command the terminal.
[[nodiscard]] std::string terminal_text(std::string text, std::string_view kept = {});

/// A new folder for what is needed for a while, below TMPDIR.
[[nodiscard]] Result<std::string> make_scratch_folder(const char* name);

/// `text` as a JSON string.
[[nodiscard]] std::string json_text(const std::string& text);

[[nodiscard]] bool stdout_has_color();
[[nodiscard]] std::size_t stdout_columns();

} // namespace plumb::cli
