// SPDX-License-Identifier: Apache-2.0
// A stream that only counts the bytes it is given, at no cost of its own. One thread.
#pragma once

#include <streambuf>

namespace bench {

class Counting : public std::streambuf {
  public:
    double bytes = 0;

  private:
    std::streamsize xsputn(const char*, std::streamsize size) override {
        bytes += static_cast<double>(size);
        return size;
    }
    int overflow(int c) override {
        bytes += 1;
        return c;
    }
};

} // namespace bench
