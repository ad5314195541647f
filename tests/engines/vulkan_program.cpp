// SPDX-License-Identifier: Apache-2.0
// A Vulkan program that knows of no profiler, on whatever driver there is. Each of its submissions holds a dispatch under the debug label
// "attention", one under "gate" inside of "ffn", and one without a label. Prints how long submit to wait took, all together; 77: there is
// no device. Words: once|again, how its command buffers are used. Others are of command buffers that are used once: abandoned and
// handed, 20 dispatches without a label, behind a command buffer that is given up or handed to another thread with a label open; labels,
// 4,200 labels of different names.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "attach/vulkan/abi.hpp"
#include "backends/vulkan/driver.hpp"
#include "backends/vulkan/real_engine_testing.hpp"

using namespace plumb::backends::vulkan;

namespace {

/// An instance with labels.
VkResult create_instance(const InstanceCreateInfo* info, const void* allocator, Instance* instance) {
    const char* const labels = "VK_EXT_debug_utils";
    InstanceCreateInfo with_labels = *info;
    with_labels.extension_count = 1;
    with_labels.extensions = &labels;
    const auto create = reinterpret_cast<decltype(&create_instance)>((*loader())(nullptr, "vkCreateInstance"));
    return create(&with_labels, allocator, instance);
}

AnyCall find_call(Instance instance, const char* name) {
    return std::strcmp(name, "vkCreateInstance") == 0 ? reinterpret_cast<AnyCall>(&create_instance)
                                                      : (*loader())(instance, name);
}

} // namespace

int main(int count, char** words) {
    const std::string word = count > 1 ? words[1] : "";
    const bool once = word != "again";
    std::string why = "there is no Vulkan loader";
    const std::unique_ptr<RealEngine> engine = loader().ok() ? RealEngine::create(why, find_call) : nullptr;
    if (engine == nullptr) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 77;
    }
    const plumb::VulkanHandles handles = engine->handles();
    const auto begin_label = reinterpret_cast<void (*)(CommandBuffer, const plumb::attach::vulkan::DebugLabel*)>(
        (*loader())(handles.instance, "vkCmdBeginDebugUtilsLabelEXT"));
    const auto end_label =
        reinterpret_cast<void (*)(CommandBuffer)>((*loader())(handles.instance, "vkCmdEndDebugUtilsLabelEXT"));
    const auto begin = [begin_label](CommandBuffer commands, const char* name) {
        const plumb::attach::vulkan::DebugLabel label{1000128002, nullptr, name, {}};
        if (begin_label != nullptr) {
            begin_label(commands, &label);
        }
    };
    const auto end = [end_label](CommandBuffer commands) {
        if (end_label != nullptr) {
            end_label(commands);
        }
    };
    const bool unlabelled = word == "abandoned" || word == "handed";
    if (unlabelled) {
        const CommandBuffer other = engine->new_commands();
        engine->begin(other, true);
        begin(other, "given up");
        engine->dispatch(other);
        if (word == "abandoned") {
            const auto find = reinterpret_cast<AnyCall (*)(VkDevice_T*, const char*)>(
                (*loader())(handles.instance, "vkGetDeviceProcAddr"));
            reinterpret_cast<VkResult (*)(CommandBuffer, std::uint32_t)>(find(handles.device, "vkResetCommandBuffer"))(
                other, 0);
        } else {
            std::thread([&] {
                end(other);
                engine->end(other);
                (void)engine->submit_and_wait(other);
            }).join();
        }
    }
    for (int i = 0; word == "labels" && i < 42; ++i) {
        const CommandBuffer labels = engine->new_commands();
        engine->begin(labels, true);
        for (int k = 0; k < 100; ++k) {
            begin(labels, ("label " + std::to_string(100 * i + k)).c_str());
            end(labels);
        }
        engine->end(labels);
        (void)engine->submit_and_wait(labels);
    }
    engine->set_rounds(60'000);
    const CommandBuffer commands = engine->new_commands();
    const auto record = [&] {
        engine->begin(commands, once);
        if (unlabelled) {
            engine->dispatch(commands);
            engine->end(commands);
            return;
        }
        begin(commands, "attention");
        engine->dispatch(commands);
        end(commands);
        engine->barrier(commands);
        begin(commands, "ffn");
        begin(commands, "gate");
        engine->dispatch(commands, 2);
        end(commands);
        end(commands);
        engine->barrier(commands);
        engine->dispatch(commands, 3);
        engine->end(commands);
    };
    std::chrono::nanoseconds took{0};
    for (int i = 0; i < (word == "labels" ? 0 : 20); ++i) {
        if (once || i == 0) {
            record();
        }
        const auto started = std::chrono::steady_clock::now();
        if (!engine->submit_and_wait(commands)) {
            std::fputs("the driver refused a submission\n", stderr);
            return 1;
        }
        took += std::chrono::steady_clock::now() - started;
    }
    std::printf("%lld\n", static_cast<long long>(took.count()));
    return 0;
}
