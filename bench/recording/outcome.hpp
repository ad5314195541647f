// SPDX-License-Identifier: Apache-2.0
// A benchmark that cannot go on says why in one sentence and exits with 2. One thread.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "plumb/result.hpp"

namespace bench {

[[noreturn]] inline void stop(const std::string& sentence) {
    fmt::print(stderr, "{}\n", sentence);
    std::exit(2);
}

template <class T>
T need(plumb::Result<T> result) {
    if (!result.ok()) {
        stop(result.error().message);
    }
    return std::move(result).value();
}

inline void need(const plumb::Status& status) {
    if (!status.ok()) {
        stop(status.error().message);
    }
}

} // namespace bench
