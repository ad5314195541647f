// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_name.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace plumb::imported {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }

/// 250 mangled bytes may stand for 400 MB: each reference repeats what came before it. n of them, spread over types within types,
/// repeat a name at most 3^(n/3) times, and an expanded pack its pattern once for each element.
bool demangles_to_little(std::string_view name) {
    constexpr double most = 1 << 20;
    double size = static_cast<double>(name.size());
    for (std::size_t i = 0; i + 1 < name.size(); ++i) {
        if (name[i] == 'D' && name[i + 1] == 'p') {
            size *= static_cast<double>(name.size());
        }
        if (name[i] != 'S' && name[i] != 'T') {
            continue;
        }
        std::size_t end = i + 1;
        while (end < name.size() && (digit(name[end]) || upper(name[end]))) {
            ++end;
        }
        if (end < name.size() && name[end] == '_') {
            size *= std::cbrt(3.0);
        }
    }
    return size <= most;
}

/// "_ZN5aiter12topk_softmaxI…" -> "aiter::topk_softmax".
std::string identifiers_of(std::string_view mangled) {
    std::string found;
    mangled.remove_prefix(2);
    while (!mangled.empty() && (mangled.front() == 'N' || mangled.front() == 'L' || mangled.front() == 'K')) {
        mangled.remove_prefix(1);
    }
    while (!mangled.empty() && digit(mangled.front())) {
        std::size_t length = 0;
        while (!mangled.empty() && digit(mangled.front())) {
            length = std::min(length * 10 + static_cast<std::size_t>(mangled.front() - '0'), longest_kernel_name);
            mangled.remove_prefix(1);
        }
        const std::string_view identifier = mangled.substr(0, length);
        mangled.remove_prefix(identifier.size());
        if (!identifier.starts_with("_GLOBAL__N_")) {
            found += (found.empty() ? "" : "::");
            found += identifier;
        }
    }
    return found;
}

/// Without anything in <>, () and [], also where a name was cut inside of one.
std::string without_groups(std::string_view text) {
    std::string left;
    std::string open;
    for (const char c : text) {
        if (c == '<' || c == '(' || c == '[') {
            open.push_back(c);
        } else if (c == '>' && !open.empty()) {
            if (open.back() == '<') { // in "(8 > 0)" it closes nothing
                open.pop_back();
            }
        } else if ((c == ')' || c == ']') && !open.empty()) {
            const std::size_t at = open.rfind(c == ')' ? '(' : '[');
            open.resize(at == std::string::npos ? open.size() : at);
        } else if (open.empty()) {
            left.push_back(c);
        }
    }
    return left;
}

} // namespace

std::string readable_kernel_name(std::string_view name) {
    if (name.starts_with("_Z") && name.size() <= longest_kernel_name && name.find('\0') == name.npos &&
        demangles_to_little(name)) {
        int status = 0;
        const std::unique_ptr<char, decltype(&std::free)> text(
            abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
        if (text != nullptr && status == 0) {
            return std::string(std::string_view(text.get()).substr(0, longest_kernel_name));
        }
    }
    return std::string(name.substr(0, longest_kernel_name));
}

std::string base_kernel_name(std::string_view readable) {
    if (readable.starts_with("_Z")) {
        return identifiers_of(readable);
    }
    std::string base = without_groups(readable);
    for (const std::string_view end : {" const", " "}) {
        while (base.ends_with(end)) {
            base.resize(base.size() - end.size());
        }
    }
    base.erase(0, base.rfind(' ') + 1);
    for (std::size_t at = 0; (at = base.find("::::", at)) != std::string::npos;) { // of (anonymous namespace)
        base.erase(at, 2);
    }
    return base.starts_with("::") ? base.substr(2) : base;
}

} // namespace plumb::imported
