// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_codec.hpp"

#include <algorithm>

#include "base/hex.hpp"

namespace plumb::recording {
namespace {

// Field numbers, append-only.
enum KernelField : std::uint16_t {
    field_hash = 1,
    field_name = 2,
    field_file = 3,
    field_source = 4,
    field_source_bytes = 5,
    field_code_bytes = 6,
    field_code_checksum = 7,
};

std::string who(const KernelInfo& kernel) {
    const std::string name = kernel.name.empty() ? "unnamed" : kernel.name;
    return kernel.file.empty() ? name : name + " (" + kernel.file + ")";
}

} // namespace

KernelInfo bounded(KernelInfo kernel) {
    kernel.name.resize(std::min(kernel.name.size(), most_kernel_name));
    kernel.file.resize(std::min(kernel.file.size(), most_kernel_file));
    if (kernel.source.size() > most_kernel_source) {
        kernel.source.clear();
    }
    return kernel;
}

void encode(const KernelInfo& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(field_hash, from.code_hash);
    fields.text(field_name, from.name);
    if (!from.file.empty()) {
        fields.text(field_file, from.file);
    }
    if (!from.source.empty()) {
        fields.text(field_source, from.source);
    }
    fields.number(field_source_bytes, from.source_bytes);
    fields.number(field_code_bytes, from.code_bytes);
    fields.number(field_code_checksum, from.code_checksum);
}

bool decode(const std::byte* data, std::size_t size, KernelInfo& to) {
    FieldReader reader(data, size);
    bool named = false;
    for (Field field; reader.next(field);) {
        switch (field.number) {
        case field_hash:
            to.code_hash = field.as_number();
            named = field.content.size() == sizeof to.code_hash;
            break;
        case field_name:
            to.name = field.content.substr(0, most_kernel_name);
            break;
        case field_file:
            to.file = field.content.substr(0, most_kernel_file);
            break;
        case field_source:
            to.source = field.content.substr(0, most_kernel_source);
            break;
        case field_source_bytes:
            to.source_bytes = field.as_number();
            break;
        case field_code_bytes:
            to.code_bytes = field.as_number();
            break;
        case field_code_checksum:
            to.code_checksum = field.as_number();
            break;
        default:
            break;
        }
    }
    return named && reader.intact();
}

bool collide(const KernelInfo& a, const KernelInfo& b) {
    if (a.code_hash != b.code_hash) {
        return false;
    }
    if (a.code_bytes != b.code_bytes || a.code_checksum != b.code_checksum) {
        return true;
    }
    // A module has one code and several kernels; one of them has one source.
    return a.name == b.name && (a.file != b.file || a.source_bytes != b.source_bytes ||
                                (!a.source.empty() && !b.source.empty() && a.source != b.source));
}

std::string collision_text(const KernelInfo& a, const KernelInfo& b) {
    return "code hash " + base::hex_digits(a.code_hash) + " stands for " + who(a) + " and for " + who(b) +
           ", which differ: which of them ran under it cannot be told";
}

} // namespace plumb::recording
