// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/driver.hpp"

#include <utility>

#include "base/dynamic_library.hpp"

namespace plumb::backends::metal {
namespace {

using base::Need;

Result<const base::DynamicLibrary*> open(const char* path) {
    Result<base::DynamicLibrary> opened =
        base::DynamicLibrary::open({path}, "Metal is part of macOS and iOS: measure there, or choose another backend");
    return opened ? Result<const base::DynamicLibrary*>(&base::keep_for_good(std::move(*opened))) : opened.error();
}

Result<MetalDriver> load() {
    const auto metal_opened = open("/System/Library/Frameworks/Metal.framework/Metal");
    const auto objc_opened = metal_opened ? open("/usr/lib/libobjc.A.dylib") : metal_opened;
    const auto system_opened = objc_opened ? open("/usr/lib/libSystem.B.dylib") : objc_opened;
    if (!system_opened) {
        return system_opened.error();
    }
    const base::DynamicLibrary &metal = **metal_opened, &objc = **objc_opened, &system = **system_opened;
    MetalDriver driver;
    const char* missing = nullptr;
    const auto find = [&missing](const base::DynamicLibrary& library, const char* name, Need need) -> void* {
        const Result<void*> found = library.symbol(name);
        if (!found && need == Need::required && missing == nullptr) {
            missing = name;
        }
        return found ? *found : nullptr;
    };
#define PLUMB_METAL_FIND(member, symbol, library, need, result, parameters) \
    driver.member = reinterpret_cast<decltype(driver.member)>(find(library, #symbol, Need::need));
    PLUMB_METAL_CALLS(PLUMB_METAL_FIND)
#undef PLUMB_METAL_FIND
    driver.stack_block = find(system, "_NSConcreteStackBlock", Need::required);
    if (missing != nullptr) {
        return Error{ErrorCode::unavailable, std::string("this system has no ") + missing +
                                                 "; Metal is timed on macOS 10.15, iOS 14 and later"};
    }
    driver.register_words();
    return driver;
}

} // namespace

void MetalDriver::register_words() {
#define PLUMB_METAL_REGISTER(member, text) words.member = register_selector(text);
    PLUMB_METAL_MESSAGES(PLUMB_METAL_REGISTER)
#undef PLUMB_METAL_REGISTER
}

const Result<MetalDriver>& driver() {
    static const Result<MetalDriver>& only = *new Result<MetalDriver>(load());
    return only;
}

Held::Held(Held&& other) noexcept : driver_(other.driver_), object_(std::exchange(other.object_, nullptr)) {}

Held& Held::operator=(Held&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(object_, other.object_);
    return *this;
}

Held::~Held() {
    if (object_ != nullptr) {
        driver_->ask(object_, driver_->words.release);
    }
}

Held Held::retained(const MetalDriver& driver, Id object) {
    if (object != nullptr) {
        driver.ask(object, driver.words.retain);
    }
    return {driver, object};
}

Result<std::vector<Held>> devices_of(const MetalDriver& driver) {
    const AutoreleasePool pool(driver);
    std::vector<Held> devices;
    if (driver.copy_all_devices != nullptr) {
        const Held all(driver, driver.copy_all_devices());
        const std::uint64_t count = driver.ask(all.get(), driver.words.count);
        for (std::uint64_t i = 0; i < count; ++i) {
            devices.push_back(Held::retained(driver, driver.object(all.get(), driver.words.object_at, i)));
        }
    } else if (const Id only = driver.default_device(); only != nullptr) {
        devices.emplace_back(driver, only);
    }
    if (devices.empty()) {
        return Error{ErrorCode::unavailable, "this system has Metal but lists no device; run where a GPU is "
                                             "visible (a virtual machine may hide it)"};
    }
    return devices;
}

std::string text_of(const MetalDriver& driver, Id string) {
    const char* text = static_cast<const char*>(driver.object(string, driver.words.utf8));
    return text != nullptr ? text : "";
}

std::string clock_name_of(const MetalDriver& driver, Id device) {
    const Result<std::vector<Held>> devices = devices_of(driver);
    for (std::size_t i = 0; devices && i < devices->size(); ++i) {
        if ((*devices)[i].get() == device) {
            return "metal:" + std::to_string(i);
        }
    }
    return "metal:id-" + std::to_string(driver.ask(device, driver.words.registry_id));
}

} // namespace plumb::backends::metal
