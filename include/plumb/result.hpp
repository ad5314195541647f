// SPDX-License-Identifier: Apache-2.0
// Result<T> and Status: a value, or one sentence that says what went wrong and what to do.
// Owned by the caller; plain values, safe to move between threads. Never throws; reading the value of an error aborts
// in the standard library's own way (std::optional::value), so test first.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace plumb {

enum class ErrorCode {
    invalid_argument, // the caller's words are wrong
    not_found,        // a file, key or name that does not exist
    already_exists,   // would overwrite, or somebody else is writing
    unavailable,      // a driver, device or service is missing here
    unsupported,      // it is there but cannot do this
    corrupt,          // data that cannot be what it claims to be
    no_space,         // disk or memory file system is full
    permission,       // not allowed
    pending,          // not known yet; ask later
    out_of_memory,    // a bound of ours or of the system was hit
    failed,           // anything else, named in the message
};

struct Error {
    ErrorCode code = ErrorCode::failed;
    std::string message; // one sentence, says what to do
};

/// A value of type T or an Error.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T held) : value_(std::in_place, std::move(held)) {} // NOLINT: implicit by design
    Result(Error error) : error_(std::move(error)) {}          // NOLINT: implicit by design

    [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return ok(); }

    [[nodiscard]] T& value() & { return value_.value(); }
    [[nodiscard]] const T& value() const& { return value_.value(); }
    [[nodiscard]] T&& value() && { return std::move(value_).value(); }
    [[nodiscard]] T& operator*() & { return value(); }
    [[nodiscard]] const T& operator*() const& { return value(); }
    [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
    [[nodiscard]] T* operator->() { return &value(); }
    [[nodiscard]] const T* operator->() const { return &value(); }

    /// Of a value: an empty sentence.
    [[nodiscard]] const Error& error() const { return error_; }

  private:
    std::optional<T> value_;
    Error error_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), ok_(false) {} // NOLINT: implicit by design

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    explicit operator bool() const noexcept { return ok_; }
    [[nodiscard]] const Error& error() const { return error_; }

  private:
    Error error_;
    bool ok_ = true;
};

/// Success, or an Error.
using Status = Result<void>;

} // namespace plumb
