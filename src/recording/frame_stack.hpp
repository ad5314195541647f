// SPDX-License-Identifier: Apache-2.0
// The open steps, layers and contexts of one track, innermost last. Ends may be missing (dropped, damaged): an end
// closes its own begin and everything opened inside it. Owned by one reader or writer of that track; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb::recording {

enum class FrameKind : std::uint8_t { step, layer, context };

/// `T` is what the owner wants to know about the innermost frame.
template <class T>
class FrameStack {
  public:
    static constexpr std::size_t max_depth = 64;

    struct Frame {
        FrameKind kind;
        std::uint64_t begin;
        T value;
    };

    /// False when the stack was full: the outermost frame is forgotten, most likely its end was lost.
    bool push(FrameKind kind, std::uint64_t begin, const T& value) {
        const bool fits = frames_.size() < max_depth;
        if (!fits) {
            frames_.erase(frames_.begin());
        }
        frames_.push_back({kind, begin, value});
        return fits;
    }

    /// The innermost frame of that kind with that begin, with all inside it; false if there is none.
    bool pop(FrameKind kind, std::uint64_t begin, T* popped = nullptr) {
        return pop_where([=](const Frame& frame) { return frame.kind == kind && frame.begin == begin; }, popped);
    }

    /// The innermost frame of that kind, whatever its begin.
    bool pop_innermost(FrameKind kind, T* popped = nullptr) {
        return pop_where([=](const Frame& frame) { return frame.kind == kind; }, popped);
    }

    [[nodiscard]] const T* innermost() const noexcept { return frames_.empty() ? nullptr : &frames_.back().value; }

    [[nodiscard]] T* innermost_of(FrameKind kind) noexcept {
        const Frame* found = frame_of(kind);
        return found != nullptr ? &frames_[static_cast<std::size_t>(found - frames_.data())].value : nullptr;
    }

    [[nodiscard]] const Frame* frame_of(FrameKind kind) const noexcept {
        for (std::size_t i = frames_.size(); i > 0; --i) {
            if (frames_[i - 1].kind == kind) {
                return &frames_[i - 1];
            }
        }
        return nullptr;
    }

    [[nodiscard]] const std::vector<Frame>& frames() const noexcept { return frames_; } // the outermost first
    [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

  private:
    template <class Predicate>
    bool pop_where(Predicate matches, T* popped) {
        for (std::size_t i = frames_.size(); i > 0; --i) {
            if (!matches(frames_[i - 1])) {
                continue;
            }
            if (popped != nullptr) {
                *popped = frames_[i - 1].value;
            }
            frames_.erase(frames_.begin() + static_cast<std::ptrdiff_t>(i - 1), frames_.end());
            return true;
        }
        return false;
    }

    std::vector<Frame> frames_;
};

} // namespace plumb::recording
