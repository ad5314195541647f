// SPDX-License-Identifier: Apache-2.0
// Runs this program again as a child, with a time limit, and says how it ended. The driver may hang, crash or lose its
// context: none of that reaches the process that watches, which never calls the driver itself.
#pragma once

#include <string>
#include <vector>

namespace gpu_check {

struct Ended {
    enum class How { exited, crashed, timed_out, not_started } how = How::exited;
    int code = 0; // exit status, or the signal
    double seconds = 0;
};

/// `words` follow the program's name. The child and its own children are killed at the limit.
[[nodiscard]] Ended run_child(const std::vector<std::string>& words, double limit_seconds);

/// The same with a pipe: the child writes bytes to the file descriptor progress_fd; each must follow the one before within
/// the limit. `last`: how many came.
inline constexpr int progress_fd = 9;
[[nodiscard]] Ended run_child_with_progress(const std::vector<std::string>& words, double limit_per_byte,
                                            unsigned& bytes);

/// A child that is asked and answers over progress_fd. It is stopped while nothing is asked of it, so that none of its threads
/// works in another one's turn. Killed at the end of its owner's life.
class Partner {
  public:
    explicit Partner(const std::vector<std::string>& words);
    ~Partner();
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;
    /// So many numbers; empty: it has ended.
    [[nodiscard]] std::vector<double> ask(char what, std::size_t numbers);

  private:
    int child_ = -1;
    int socket_ = -1;
};
/// Of the child: false when nobody asks any more.
[[nodiscard]] bool next_question(char& what);
void answer(const std::vector<double>& numbers);

} // namespace gpu_check
