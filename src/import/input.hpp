// SPDX-License-Identifier: Apache-2.0
// The bytes of a trace file, unpacked where it is gzip, within limits. Owned by one reader; one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plumb/result.hpp"

namespace plumb::imported {

struct InputLimits {
    std::uint64_t max_size = std::uint64_t{64} << 30; // of the file unpacked
    std::uint64_t most_ratio = 1000;                  // of unpacked to packed bytes, beyond free_size
    std::uint64_t free_size = std::uint64_t{64} << 20;
    const std::atomic<bool>* stop = nullptr;     // set: reading ends with an error
    std::atomic<std::uint64_t>* bytes = nullptr; // read so far are added here
};

/// What somebody gets who asked to stop.
Error stopped_error(const std::string& path);

class Input {
  public:
    /// Errors: not_found, permission; invalid_argument for a folder or pipe; out_of_memory beyond max_size.
    static Result<Input> open(const std::string& path, const InputLimits& limits = {});
    Input(Input&&) noexcept;
    Input& operator=(Input&&) noexcept;
    ~Input();

    /// Fills `to`; less than `size` only at the end. Errors: out_of_memory beyond the limits; failed where the disk fails.
    Result<std::size_t> read(char* to, std::size_t size);
    /// From the begin again.
    Status rewind();

    [[nodiscard]] bool packed() const;
    /// The packed bytes end, or are damaged, before the text does: what came out so far is what there is.
    [[nodiscard]] bool cut() const;

  private:
    struct State;
    explicit Input(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace plumb::imported
