// SPDX-License-Identifier: Apache-2.0
#include "base/dynamic_library.hpp"

#include <dlfcn.h>

#include <deque>
#include <mutex>
#include <utility>

namespace plumb::base {
namespace {

// dlerror() texts may span lines; an error of ours is one sentence.
std::string last_error() {
    const char* text = dlerror();
    std::string line = text != nullptr ? text : "no reason given";
    return line.substr(0, line.find('\n'));
}

/// What dlerror() of glibc says of a name that is nowhere; the name once is enough then.
bool is_absence(const std::string& reason, const std::string& name) {
    return reason == name + ": cannot open shared object file: No such file or directory";
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : between) + part;
    }
    return text;
}

} // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names, const std::string& advice) {
    std::vector<std::string> absent;
    std::vector<std::string> reasons; // of those that are there
    for (const std::string& name : names) {
        // An embedded zero or an empty name would make dlopen open something else: the program itself.
        if (name.empty() || name.find('\0') != std::string::npos) {
            return Error{ErrorCode::invalid_argument,
                         "a library name must not be empty or hold a zero byte; name a file"};
        }
        if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            return DynamicLibrary(handle, name);
        }
        std::string reason = last_error();
        is_absence(reason, name) ? absent.push_back(name) : reasons.push_back(std::move(reason));
    }
    if (names.empty()) {
        return Error{ErrorCode::invalid_argument, "no library name was given; name at least one file"};
    }
    if (!absent.empty()) {
        reasons.push_back("there is no " + joined(absent, ", no "));
    }
    return Error{ErrorCode::unavailable,
                 names.front() + " cannot be opened (" + joined(reasons, ", ") + "); " + advice};
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    return *this;
}

DynamicLibrary::~DynamicLibrary() {
    if (handle_ != nullptr) {
        dlclose(handle_);
    }
}

Result<void*> DynamicLibrary::symbol(const std::string& name) const {
    if (void* address = handle_ != nullptr ? dlsym(handle_, name.c_str()) : nullptr) {
        return address;
    }
    return Error{ErrorCode::unsupported, name_ + " has no " + name + "; install a newer version of it"};
}

const DynamicLibrary& keep_for_good(DynamicLibrary library) {
    static std::mutex mutex;
    static auto& kept = *new std::deque<DynamicLibrary>;
    const std::lock_guard<std::mutex> lock(mutex);
    return kept.emplace_back(std::move(library));
}

} // namespace plumb::base
