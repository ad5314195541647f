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

} // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names, const std::string& advice) {
    std::string reasons;
    for (const std::string& name : names) {
        // An embedded zero or an empty name would make dlopen open something else: the program itself.
        if (name.empty() || name.find('\0') != std::string::npos)
            return Error{ErrorCode::invalid_argument,
                         "a library name must not be empty or hold a zero byte; name a file"};
        if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
            return DynamicLibrary(handle, name);
        if (!reasons.empty())
            reasons += "; ";
        reasons += last_error();
    }
    if (names.empty())
        return Error{ErrorCode::invalid_argument, "no library name was given; name at least one file"};
    return Error{ErrorCode::unavailable, names.front() + " cannot be opened (" + reasons + "); " + advice};
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    return *this;
}

DynamicLibrary::~DynamicLibrary() {
    if (handle_ != nullptr)
        dlclose(handle_);
}

Result<void*> DynamicLibrary::symbol(const std::string& name) const {
    if (void* address = handle_ != nullptr ? dlsym(handle_, name.c_str()) : nullptr)
        return address;
    return Error{ErrorCode::unsupported, name_ + " has no " + name + "; install a newer version of it"};
}

const DynamicLibrary& keep_for_good(DynamicLibrary library) {
    static std::mutex mutex;
    static auto& kept = *new std::deque<DynamicLibrary>;
    const std::lock_guard<std::mutex> lock(mutex);
    return kept.emplace_back(std::move(library));
}

} // namespace plumb::base
