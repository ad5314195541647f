// SPDX-License-Identifier: Apache-2.0
// A shared library opened at run time: the only way this project reaches a vendor's driver.
// Owned by its holder, who keeps it as long as any symbol of it is used; safe to use from any thread once opened.
#pragma once

#include <string>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::base {

class DynamicLibrary {
  public:
    /// Opens the first of `names` that is there. `advice` ends the sentence of the error when none is:
    /// "install the NVIDIA driver". The error is `unavailable`.
    static Result<DynamicLibrary> open(const std::vector<std::string>& names, const std::string& advice);

    DynamicLibrary(DynamicLibrary&& other) noexcept;
    DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
    DynamicLibrary(const DynamicLibrary&) = delete;
    DynamicLibrary& operator=(const DynamicLibrary&) = delete;
    ~DynamicLibrary();

    /// The address of a symbol; never null. The error `unsupported` names symbol and library.
    Result<void*> symbol(const std::string& name) const;

    template <class Function>
    Result<Function*> function(const std::string& name) const {
        Result<void*> address = symbol(name);
        if (!address) {
            return address.error();
        }
        return reinterpret_cast<Function*>(*address);
    }

    /// The name it was opened by.
    const std::string& name() const { return name_; }

  private:
    DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

    void* handle_ = nullptr;
    std::string name_;
};

/// Whether a library is of use without a symbol: the word of the tables of calls.
enum class Need { required, optional };

/// For libraries whose threads may run until the process ends: it is never closed.
const DynamicLibrary& keep_for_good(DynamicLibrary library);

} // namespace plumb::base
