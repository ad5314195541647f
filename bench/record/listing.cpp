// SPDX-License-Identifier: Apache-2.0
#include "record/listing.hpp"

#include <cstdio>
#include <memory>

namespace bench {
namespace {

std::string trimmed(std::string line) {
    const std::size_t first = line.find_first_not_of(" \t");
    const std::size_t last = line.find_last_not_of(" \t\n");
    line = first == std::string::npos ? std::string() : line.substr(first, last - first + 1);
    for (char& c : line) {
        c = c == '\t' ? ' ' : c;
    }
    return line;
}

/// "jne 14f0 <function+0x10>" → "jne <+0x10>": the same at every address.
std::string without_addresses(const std::string& line, const std::string& function) {
    const std::size_t open = line.find('<' + function);
    if (open == std::string::npos) {
        return line;
    }
    const std::size_t address = line.find_last_not_of("0123456789abcdef", open - 2);
    return line.substr(0, address + 1) + '<' + line.substr(open + 1 + function.size());
}

} // namespace

std::vector<std::string> listing_of(const std::string& file, const std::string& function) {
    const std::string command =
        "objdump -d --no-show-raw-insn --no-addresses --disassemble=" + function + " '" + file + "' 2>/dev/null";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::vector<std::string> lines;
    char text[512];
    bool inside = false;
    while (pipe != nullptr && std::fgets(text, sizeof text, pipe.get()) != nullptr) {
        const std::string line = trimmed(text);
        if (line == '<' + function + ">:") {
            inside = true;
        } else if (line.empty() || line.find(">:") != std::string::npos) {
            inside = false;
        } else if (inside && line.find("nop") == std::string::npos && line != "xchg %ax,%ax") { // padding
            lines.push_back(without_addresses(line, function));
        }
    }
    return lines;
}

} // namespace bench
