// SPDX-License-Identifier: Apache-2.0
// A stream that only counts what it is given. One thread.
#pragma once

#include <algorithm>
#include <streambuf>

namespace bench {

class Counting : public std::streambuf {
  public:
    double bytes = 0;
    double lines = 0;

  private:
    std::streamsize xsputn(const char* text, std::streamsize size) override {
        bytes += static_cast<double>(size);
        lines += static_cast<double>(std::count(text, text + size, '\n'));
        return size;
    }
    int overflow(int c) override {
        bytes += 1;
        lines += c == '\n' ? 1 : 0;
        return c;
    }
};

} // namespace bench
