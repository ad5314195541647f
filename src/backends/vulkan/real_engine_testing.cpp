// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/real_engine_testing.hpp"

#include <cstring>
#include <vector>

#include "backends/vulkan/own_device.hpp"

#if __has_include(<vulkan/vulkan_core.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace plumb::backends::vulkan {
namespace {

/// SPIR-V by hand: for (i = 0; i < buffer[0]; ++i) buffer[1] = buffer[1] * 1664525 + 1013904223;
std::vector<std::uint32_t> counting_shader() {
    enum : std::uint32_t {
        Void = 1,
        Function,
        Word,
        Bool,
        Block,
        BlockPointer,
        Buffer,
        WordPointer,
        Zero,
        One,
        Factor,
        Summand,
        Main,
        Entry,
        RoundsAt,
        Rounds,
        ValueAt,
        Header,
        Index,
        Condition,
        Less,
        Body,
        Value,
        Product,
        Sum,
        Continue,
        Next,
        Merge,
        Bound
    };
    std::vector<std::uint32_t> words = {0x07230203, 0x00010000, 0, Bound, 0};
    const auto op = [&](std::uint32_t code, std::initializer_list<std::uint32_t> operands) {
        words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | code);
        words.insert(words.end(), operands);
    };
    op(17, {1});                      // OpCapability Shader
    op(14, {0, 1});                   // OpMemoryModel Logical GLSL450
    op(15, {5, Main, 0x6e69616d, 0}); // OpEntryPoint GLCompute "main"
    op(16, {Main, 17, 1, 1, 1});      // OpExecutionMode LocalSize
    op(71, {Block, 3});               // OpDecorate BufferBlock
    op(72, {Block, 0, 35, 0});        // OpMemberDecorate Offset
    op(72, {Block, 1, 35, 4});
    op(71, {Buffer, 34, 0}); // DescriptorSet
    op(71, {Buffer, 33, 0}); // Binding
    op(19, {Void});
    op(33, {Function, Void});
    op(21, {Word, 32, 0});
    op(20, {Bool});
    op(30, {Block, Word, Word});
    op(32, {BlockPointer, 2, Block}); // storage class Uniform
    op(59, {BlockPointer, Buffer, 2});
    op(32, {WordPointer, 2, Word});
    op(43, {Word, Zero, 0});
    op(43, {Word, One, 1});
    op(43, {Word, Factor, 1664525});
    op(43, {Word, Summand, 1013904223});
    op(54, {Void, Main, 0, Function});
    op(248, {Entry});
    op(65, {WordPointer, RoundsAt, Buffer, Zero});
    op(61, {Word, Rounds, RoundsAt});
    op(65, {WordPointer, ValueAt, Buffer, One});
    op(249, {Header});
    op(248, {Header});
    op(245, {Word, Index, Zero, Entry, Next, Continue}); // OpPhi
    op(246, {Merge, Continue, 0});                       // OpLoopMerge
    op(249, {Condition});
    op(248, {Condition});
    op(176, {Bool, Less, Index, Rounds});
    op(250, {Less, Body, Merge});
    op(248, {Body});
    op(61, {Word, Value, ValueAt});
    op(132, {Word, Product, Value, Factor});
    op(128, {Word, Sum, Product, Summand});
    op(62, {ValueAt, Sum});
    op(249, {Continue});
    op(248, {Continue});
    op(128, {Word, Next, Index, One});
    op(249, {Header});
    op(248, {Merge});
    op(253, {});
    op(56, {});
    return words;
}

// The formatter never settles on where these backslashes stand.
// clang-format off
#define PLUMB_ENGINE_CALLS(X) \
    X(vkCreateBuffer) \
    X(vkDestroyBuffer) \
    X(vkGetBufferMemoryRequirements) \
    X(vkAllocateMemory) \
    X(vkFreeMemory) \
    X(vkBindBufferMemory) X(vkMapMemory) X(vkCreateShaderModule) X(vkDestroyShaderModule) \
        X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) X(vkCreatePipelineLayout) \
            X(vkDestroyPipelineLayout) X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkCreateDescriptorPool) \
                X(vkDestroyDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) \
                    X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) \
                        X(vkEndCommandBuffer) X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdDispatch) \
                            X(vkCmdPipelineBarrier) X(vkQueueSubmit) X(vkCreateFence) X(vkDestroyFence) \
                                X(vkWaitForFences) X(vkResetFences) X(vkDeviceWaitIdle)
// clang-format on

class Engine final : public RealEngine {
  public:
    bool open(std::string& why, FindCall find) {
        const Result<FindCall> loaded = find != nullptr ? Result<FindCall>(find) : loader();
        Result<std::unique_ptr<OwnDevice>> made = loaded ? OwnDevice::create(*loaded, 0) : loaded.error();
        if (!made) {
            why = made.error().message;
            return false;
        }
        own_ = std::move(*made);
        device_ = own_->handles().device;
        const Result<InstanceCalls> calls = InstanceCalls::load(*loaded, own_->handles().instance);
#define PLUMB_ENGINE_FIND(name) \
    name##_ = reinterpret_cast<PFN_##name>(calls->get_device_proc_addr(own_->handles().device, #name));
        PLUMB_ENGINE_CALLS(PLUMB_ENGINE_FIND)
        make_buffer();
        make_pipeline();
        VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                     VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, own_->handles().queue_family};
        check(vkCreateCommandPool_(device_, &pool, nullptr, &pool_));
        VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
        check(vkCreateFence_(device_, &fence, nullptr, &fence_));
        why = ok_ ? "" : "the driver refused the test's shader";
        return ok_;
    }

    ~Engine() override {
        if (device_ == nullptr) {
            return;
        }
        vkDeviceWaitIdle_(device_);
        vkDestroyFence_(device_, fence_, nullptr);
        vkDestroyCommandPool_(device_, pool_, nullptr);
        vkDestroyPipeline_(device_, pipeline_, nullptr);
        vkDestroyPipelineLayout_(device_, layout_, nullptr);
        vkDestroyDescriptorPool_(device_, sets_, nullptr);
        vkDestroyDescriptorSetLayout_(device_, set_layout_, nullptr);
        vkDestroyShaderModule_(device_, shader_, nullptr);
        vkDestroyBuffer_(device_, buffer_, nullptr);
        vkFreeMemory_(device_, memory_, nullptr);
    }

    VulkanHandles handles() const override { return own_->handles(); }

    VkCommandBuffer new_commands() override {
        VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
        VkCommandBuffer commands = nullptr;
        check(vkAllocateCommandBuffers_(device_, &info, &commands));
        return commands;
    }
    void begin(VkCommandBuffer commands, bool once) override {
        VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
        info.flags = once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0;
        check(vkBeginCommandBuffer_(commands, &info));
        vkCmdBindPipeline_(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
        vkCmdBindDescriptorSets_(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
    }
    void set_rounds(std::uint32_t rounds) override { std::memcpy(mapped_, &rounds, sizeof rounds); }
    void dispatch(VkCommandBuffer commands, std::uint32_t groups) override { vkCmdDispatch_(commands, groups, 1, 1); }
    void barrier(VkCommandBuffer commands) override {
        VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                               VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
        vkCmdPipelineBarrier_(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                              1, &memory, 0, nullptr, 0, nullptr);
    }
    void end(VkCommandBuffer commands) override { check(vkEndCommandBuffer_(commands)); }
    bool submit_and_wait(VkCommandBuffer commands) override {
        VkSubmitInfo info{};
        info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
        info.commandBufferCount = 1;
        info.pCommandBuffers = &commands;
        check(vkQueueSubmit_(own_->handles().queue, 1, &info, fence_));
        check(vkWaitForFences_(device_, 1, &fence_, VK_TRUE, UINT64_MAX));
        check(vkResetFences_(device_, 1, &fence_));
        return ok_;
    }

  private:
    void check(::VkResult result) { ok_ = ok_ && result == VK_SUCCESS; }

    void make_buffer() {
        VkBufferCreateInfo info{};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.size = 64;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        check(vkCreateBuffer_(device_, &info, nullptr, &buffer_));
        VkMemoryRequirements needs{};
        vkGetBufferMemoryRequirements_(device_, buffer_, &needs);
        // Which memory the host sees is asked of the driver in an engine; here the first that the mapping accepts.
        for (std::uint32_t type = 0; type < 32; ++type) {
            if ((needs.memoryTypeBits >> type & 1) == 0) {
                continue;
            }
            VkMemoryAllocateInfo wanted{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, type};
            if (vkAllocateMemory_(device_, &wanted, nullptr, &memory_) != VK_SUCCESS) {
                continue;
            }
            if (vkMapMemory_(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped_) == VK_SUCCESS) {
                break;
            }
            vkFreeMemory_(device_, memory_, nullptr);
            memory_ = VK_NULL_HANDLE;
        }
        check(mapped_ != nullptr ? vkBindBufferMemory_(device_, buffer_, memory_, 0) : VK_ERROR_MEMORY_MAP_FAILED);
    }

    void make_pipeline() {
        const std::vector<std::uint32_t> words = counting_shader();
        VkShaderModuleCreateInfo module{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, 4 * words.size(),
                                        words.data()};
        check(vkCreateShaderModule_(device_, &module, nullptr, &shader_));
        VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                                             nullptr};
        VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, 1,
                                            &binding};
        check(vkCreateDescriptorSetLayout_(device_, &set, nullptr, &set_layout_));
        VkPipelineLayoutCreateInfo layout{};
        layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
        layout.setLayoutCount = 1;
        layout.pSetLayouts = &set_layout_;
        check(vkCreatePipelineLayout_(device_, &layout, nullptr, &layout_));
        VkComputePipelineCreateInfo pipeline{};
        pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
        pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
        pipeline.stage.module = shader_;
        pipeline.stage.pName = "main";
        pipeline.layout = layout_;
        check(vkCreateComputePipelines_(device_, VK_NULL_HANDLE, 1, &pipeline, nullptr, &pipeline_));
        VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
        VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, 1, 1, &size};
        check(vkCreateDescriptorPool_(device_, &pool, nullptr, &sets_));
        VkDescriptorSetAllocateInfo wanted{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, sets_, 1,
                                           &set_layout_};
        check(vkAllocateDescriptorSets_(device_, &wanted, &set_));
        VkDescriptorBufferInfo whole{buffer_, 0, VK_WHOLE_SIZE};
        VkWriteDescriptorSet write{};
        write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        write.dstSet = set_;
        write.descriptorCount = 1;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = &whole;
        vkUpdateDescriptorSets_(device_, 1, &write, 0, nullptr);
    }

#define PLUMB_ENGINE_MEMBER(name) PFN_##name name##_ = nullptr;
    PLUMB_ENGINE_CALLS(PLUMB_ENGINE_MEMBER)
    std::unique_ptr<OwnDevice> own_;
    VkDevice device_ = nullptr;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    void* mapped_ = nullptr;
    VkShaderModule shader_ = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkDescriptorPool sets_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    ::VkCommandPool pool_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
    bool ok_ = true;
};

} // namespace

std::unique_ptr<RealEngine> RealEngine::create(std::string& why, FindCall find) {
    auto engine = std::make_unique<Engine>();
    return engine->open(why, find) ? std::unique_ptr<RealEngine>(std::move(engine)) : nullptr;
}

} // namespace plumb::backends::vulkan

#else

namespace plumb::backends::vulkan {

std::unique_ptr<RealEngine> RealEngine::create(std::string& why, FindCall find) {
    why = "no Vulkan header was installed when this test was built (libvulkan-dev)";
    return nullptr;
}

} // namespace plumb::backends::vulkan

#endif
