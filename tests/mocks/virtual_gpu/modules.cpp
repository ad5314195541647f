// SPDX-License-Identifier: Apache-2.0
// Modules: the entries of PTX text with their parameters; any other image has every function one asks for.
#include <cctype>
#include <cstring>

#include "virtual_gpu/call.hpp"

namespace plumb::vgpu {

namespace {

std::size_t type_bytes(std::string_view type) {
    if (type.size() < 2) {
        return 0;
    }
    const std::string_view bits = type.substr(1);
    if (bits == "8") {
        return 1;
    }
    if (bits == "16") {
        return 2;
    }
    if (bits == "32") {
        return 4;
    }
    return bits == "64" ? 8 : 0;
}

// ".param .align 8 .b8 name[24]": the bytes of one parameter; 0 if it is none.
std::size_t param_bytes(std::string_view text) {
    std::size_t bytes = 0;
    for (std::size_t at = text.find('.'); at != std::string_view::npos; at = text.find('.', at + 1)) {
        std::size_t end = at + 1;
        while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) {
            ++end;
        }
        const std::size_t size = type_bytes(text.substr(at + 1, end - at - 1));
        if (size != 0) {
            bytes = size;
        }
    }
    const std::size_t bracket = text.find('[');
    if (bracket != std::string_view::npos) {
        bytes *= std::strtoul(std::string(text.substr(bracket + 1)).c_str(), nullptr, 10);
    }
    return bytes;
}

bool is_ptx(std::string_view text) { return text.find(".version") != std::string_view::npos; }

void read_entries(std::string_view text, ModuleObject& module) {
    constexpr std::string_view word = ".entry";
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const std::size_t name_begin = text.find_first_not_of(" \t\n", at + word.size());
        const std::size_t name_end = text.find_first_of(" \t\n({", name_begin);
        if (name_end == std::string_view::npos) {
            return;
        }
        std::vector<std::size_t> sizes;
        const std::size_t open = text.find_first_of("({", name_begin);
        if (open != std::string_view::npos && text[open] == '(') {
            const std::string_view list = text.substr(open + 1, text.find(')', open) - open - 1);
            for (std::size_t from = 0; from < list.size();) {
                const std::size_t comma = std::min(list.find(',', from), list.size());
                const std::size_t bytes = param_bytes(list.substr(from, comma - from));
                if (bytes != 0) {
                    sizes.push_back(bytes);
                }
                from = comma + 1;
            }
        }
        module.entries[std::string(text.substr(name_begin, name_end - name_begin))] = sizes;
    }
}

CuResult load(Call& call, Module* module, const void* image) {
    if (image == nullptr) {
        return CuResult::invalid_value;
    }
    const auto context = current_context();
    if (!context_of(context)) {
        return CuResult::context_is_destroyed;
    }
    call.load(context);
    auto object = std::make_shared<ModuleObject>();
    object->context = context;
    const std::string_view text(static_cast<const char*>(image)); // a binary image ends, as text, at its first zero
    object->from_ptx = is_ptx(text);
    if (object->from_ptx) {
        read_entries(text, *object);
    }
    if (object->from_ptx && object->entries.empty()) {
        return CuResult::invalid_ptx;
    }
    *module = gpu().modules.give(object);
    return call.done();
}

CuResult param_info(Call& call, const std::shared_ptr<FunctionObject>& function, std::size_t index, std::size_t* offset,
                    std::size_t* bytes) {
    if (!function) {
        return CuResult::invalid_handle;
    }
    const auto sizes = param_bytes_of(*function);
    if (index >= sizes.size()) {
        return CuResult::invalid_value;
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i <= index; ++i) {
        const std::size_t align = std::min<std::size_t>(sizes[i] == 0 ? 1 : sizes[i], 8);
        at = (at + align - 1) / align * align;
        if (i < index) {
            at += sizes[i];
        }
    }
    *offset = at;
    if (bytes != nullptr) {
        *bytes = sizes[index];
    }
    return call.done();
}

} // namespace

std::vector<std::size_t> param_bytes_of(const FunctionObject& function) {
    const auto model = gpu().kernels.find(function.name);
    if (model != gpu().kernels.end() && !model->second.param_bytes.empty()) {
        return model->second.param_bytes;
    }
    return function.ptx_param_bytes;
}

extern "C" {

CuResult vgpu_module_load_data(Module* module, const void* image) {
    PLUMB_VGPU_ENTER(module_load_data);
    return load(call, module, image);
}

CuResult vgpu_module_load_data_ex(Module* module, const void* image, unsigned, int*, void**) {
    PLUMB_VGPU_ENTER(module_load_data_ex);
    return load(call, module, image);
}

CuResult vgpu_module_unload(Module module) {
    PLUMB_VGPU_ENTER(module_unload);
    const auto object = gpu().modules.find(module);
    if (!object) {
        return CuResult::invalid_handle;
    }
    call.synchronise(busy_until(object->context));
    for (const auto& [name, function] : object->functions) {
        gpu().functions.take(function);
    }
    gpu().modules.take(module);
    return call.done();
}

CuResult vgpu_module_get_function(Function* function, Module module, const char* name) {
    PLUMB_VGPU_ENTER(module_get_function);
    const auto object = gpu().modules.find(module);
    if (!object || name == nullptr) {
        return CuResult::invalid_handle;
    }
    const auto known = object->functions.find(name);
    if (known != object->functions.end()) {
        *function = known->second;
        return call.done();
    }
    const auto entry = object->entries.find(name);
    if (object->from_ptx && entry == object->entries.end()) {
        return CuResult::not_found;
    }
    auto made = std::make_shared<FunctionObject>();
    made->name = name;
    made->module = module;
    made->from_ptx = object->from_ptx;
    made->context = object->context;
    made->device = context_of(object->context)->device;
    if (object->from_ptx) {
        made->ptx_param_bytes = entry->second;
    }
    made->handle = gpu().functions.give(made);
    object->functions[name] = made->handle;
    *function = made->handle;
    return call.done();
}

CuResult vgpu_func_get_name(const char** name, Function function) {
    PLUMB_VGPU_ENTER(func_get_name);
    const auto object = gpu().functions.find(function);
    if (!object) {
        return CuResult::invalid_handle;
    }
    *name = intern(object->name);
    return call.done();
}

CuResult vgpu_kernel_get_name(const char** name, Kernel kernel) {
    PLUMB_VGPU_ENTER(kernel_get_name);
    const auto object = gpu().functions.find(reinterpret_cast<Function>(kernel));
    if (!object) {
        return CuResult::invalid_handle;
    }
    *name = intern(object->name);
    return call.done();
}

CuResult vgpu_func_get_param_info(Function function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    PLUMB_VGPU_ENTER(func_get_param_info);
    return param_info(call, gpu().functions.find(function), index, offset, bytes);
}

CuResult vgpu_kernel_get_param_info(Kernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    PLUMB_VGPU_ENTER(kernel_get_param_info);
    return param_info(call, gpu().functions.find(reinterpret_cast<Function>(kernel)), index, offset, bytes);
}

} // extern "C"

} // namespace plumb::vgpu
