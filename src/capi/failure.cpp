// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <pthread.h>

#include "capi/handles.hpp"

namespace plumb::capi {
namespace {

// No thread-local variable: each call would have to ask where it lies, as libplumb.so may be loaded late.
pthread_key_t sentence_key() noexcept {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        (void)pthread_key_create(&made, [](void* sentence) { delete static_cast<std::string*>(sentence); });
        return made;
    }();
    return key;
}

/// Of the calling thread; null before its first failure.
std::string* last_sentence() noexcept { return static_cast<std::string*>(pthread_getspecific(sentence_key())); }

constexpr std::size_t most_of_a_struct = 4096; // a struct_size beyond it was never set

std::string text_of_size(std::uint32_t given, std::size_t ours, const char* type) {
    return std::string("struct_size of a ") + type + " is " + std::to_string(given) + ", it must be " +
           std::to_string(ours) + ": set it to sizeof(" + type + ")";
}

std::uint32_t size_in(const void* given) noexcept {
    std::uint32_t size = 0;
    std::memcpy(&size, given, sizeof size); // the first member of every struct
    return size;
}

bool wrong_size(std::uint32_t given, std::size_t ours, const char* type) noexcept {
    (void)guarded([&] { return fail(ErrorCode::invalid_argument, text_of_size(given, ours, type)); });
    return false;
}

} // namespace

plumb_code fail(ErrorCode code, std::string_view sentence) noexcept {
    std::string* last = last_sentence();
    if (last == nullptr) {
        last = new (std::nothrow) std::string;
        (void)pthread_setspecific(sentence_key(), last);
    }
    try {
        if (last != nullptr) {
            *last = sentence;
        }
    } catch (const std::bad_alloc&) {
        last->clear();
    }
    return code_of(code);
}

plumb_code missing(const char* what) noexcept {
    return guarded([&] { return fail(ErrorCode::invalid_argument, std::string(what) + " is NULL: give one"); });
}

plumb_code no_profiler() noexcept {
    return fail(ErrorCode::invalid_argument, "the profiler is NULL: give what plumb_open() made");
}

bool fits_ours(const void* given, std::size_t ours, const char* type) noexcept {
    if (given == nullptr) {
        (void)missing(type);
        return false;
    }
    const std::uint32_t size = size_in(given);
    if (size < ours || size > most_of_a_struct) {
        return wrong_size(size, ours, type);
    }
    const auto* bytes = static_cast<const unsigned char*>(given);
    for (std::size_t i = ours; i < size; ++i) {
        if (bytes[i] != 0) {
            (void)guarded([&]() -> plumb_code {
                return fail(ErrorCode::unsupported,
                            std::string("a ") + type +
                                " of a newer plumb.h sets what this library does not know: set it "
                                "to 0, or load a newer libplumb.so");
            });
            return false;
        }
    }
    return true;
}

bool has_room(const void* out, std::size_t ours, const char* type) noexcept {
    if (out == nullptr) {
        (void)missing(type);
        return false;
    }
    const std::uint32_t size = size_in(out);
    return size < ours || size > most_of_a_struct ? wrong_size(size, ours, type) : true;
}

} // namespace plumb::capi

const char* plumb_last_error(void) {
    const std::string* sentence = plumb::capi::last_sentence();
    return sentence != nullptr ? sentence->c_str() : "";
}
