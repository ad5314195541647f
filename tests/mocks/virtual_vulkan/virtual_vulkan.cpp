// SPDX-License-Identifier: Apache-2.0
#include "mocks/virtual_vulkan/virtual_vulkan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "mocks/virtual_world.hpp"

namespace {

enum class Kind { dispatch, barrier, reset, stamp };
struct Command {
    Kind kind;
    std::int64_t ns = 0;    // of a dispatch
    std::uint64_t pool = 0; // of the others
    std::uint32_t first = 0, count = 0;
    std::uint32_t stage = 0;
};

} // namespace

struct VkCommandBuffer_T {
    std::vector<Command> commands;
    bool open = false;
};

namespace plumb::vvk {
namespace {

struct Effect {
    std::int64_t at = 0;
    bool available = false;
    std::uint64_t value = 0;
};
struct Query {
    bool defined = false;
    bool available = true;
    std::uint64_t value = 0xdeadbeef;
    std::deque<Effect> coming;
};
struct Pool {
    std::vector<Query> queries;
    std::int64_t used_until = 0;
};

struct World : mocks::VirtualWorld<> {
    Settings settings;
    std::int64_t processor_ns = 0; // where the command processor is
    std::int64_t ends_ns = 0;      // of everything executed so far
    std::int64_t idle_ns = 0;
    bool dispatched = false;
    unsigned violations = 0;
    std::uint64_t next = 1;
    std::map<std::uint64_t, Pool> pools;
    std::map<std::uint64_t, std::int64_t> fences; // signalled at
    std::map<std::uint64_t, std::vector<std::unique_ptr<VkCommandBuffer_T>>> command_pools;
    std::vector<std::unique_ptr<VkCommandBuffer_T>> engines;
    VkResult answer = VkResult::success; // of the call that fails
};

World& world() {
    static World& only = *new World;
    return only;
}

std::uint64_t mask() {
    const unsigned bits = world().settings.valid_bits;
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::uint64_t ticks(std::int64_t ns) {
    const Settings& s = world().settings;
    return s.offset_ticks +
           static_cast<std::uint64_t>(std::llround(static_cast<double>(ns) * (1 + s.drift_ppm * 1e-6) / s.period_ns));
}

/// What every call does first: time goes on, and it may fail.
VkResult enter(const char* call) {
    World& w = world();
    w.now += std::strcmp(call, "vkQueueSubmit") == 0 ? w.settings.submit_ns : w.settings.call_ns;
    return w.fails(call) ? w.answer : VkResult::success;
}

void effect(Query& query, Effect next) {
    // Operations on one query are ordered.
    next.at = std::max(next.at, query.coming.empty() ? next.at : query.coming.back().at);
    query.coming.push_back(next);
}

void settle(Query& query) {
    while (!query.coming.empty() && query.coming.front().at <= world().now) {
        query.defined = true;
        query.available = query.coming.front().available;
        query.value = query.coming.front().value;
        query.coming.pop_front();
    }
}

void run_query(const Command& command) {
    World& w = world();
    const auto pool = w.pools.find(command.pool);
    if (pool == w.pools.end() || command.first + command.count > pool->second.queries.size()) {
        ++w.violations;
        return;
    }
    const std::int64_t at = command.kind == Kind::stamp && command.stage != stage_top_of_pipe
                                ? std::max(w.processor_ns, w.ends_ns)
                                : w.processor_ns;
    for (std::uint32_t i = 0; i < command.count; ++i) {
        Query& query = pool->second.queries[command.first + i];
        const bool ready = query.coming.empty() ? query.defined && !query.available : !query.coming.back().available;
        w.violations += command.kind == Kind::stamp && !ready ? 1 : 0;
        effect(query, command.kind == Kind::stamp ? Effect{at, true, ticks(at) & mask()} : Effect{at, false, 0});
    }
    pool->second.used_until = std::max(pool->second.used_until, at);
}

void run(const VkCommandBuffer_T& buffer) {
    World& w = world();
    w.violations += buffer.open ? 1 : 0;
    w.processor_ns = std::max(w.processor_ns, w.now);
    for (const Command& command : buffer.commands) {
        if (command.kind == Kind::dispatch) {
            w.idle_ns += w.dispatched ? std::max<std::int64_t>(w.processor_ns - w.ends_ns, 0) : 0;
            w.dispatched = true;
            w.ends_ns = std::max(w.ends_ns, w.processor_ns + command.ns);
        } else if (command.kind == Kind::barrier) {
            w.processor_ns = std::max(w.processor_ns, w.ends_ns);
        } else {
            run_query(command);
        }
    }
}

std::int64_t done_ns() { return std::max(world().processor_ns, world().ends_ns); }

#define VVK_ENTER(name)                                                        \
    const std::lock_guard lock(world().mutex);                                 \
    if (const VkResult entered = enter(#name); entered != VkResult::success) { \
        return entered;                                                        \
    }

VkResult vkCreateInstance(const InstanceCreateInfo*, const void*, Instance* instance) {
    VVK_ENTER(vkCreateInstance)
    *instance = handles().instance;
    return VkResult::success;
}
void vkDestroyInstance(Instance, const void*) {}

VkResult vkEnumeratePhysicalDevices(Instance, std::uint32_t* count, PhysicalDevice* devices) {
    VVK_ENTER(vkEnumeratePhysicalDevices)
    *count = 1;
    if (devices != nullptr) {
        *devices = handles().physical_device;
    }
    return VkResult::success;
}

void vkGetPhysicalDeviceProperties(PhysicalDevice, PhysicalDeviceProperties* properties) {
    *properties = {};
    properties->api_version = 1u << 22 | 3u << 12;
    std::strcpy(properties->name, "virtual Vulkan device");
    properties->timestamp_period = static_cast<float>(world().settings.period_ns);
}

void vkGetPhysicalDeviceQueueFamilyProperties(PhysicalDevice, std::uint32_t* count, QueueFamilyProperties* families) {
    *count = 1;
    if (families != nullptr) {
        families->flags = world().settings.queue_flags;
        families->count = 1;
        families->timestamp_valid_bits = world().settings.valid_bits;
    }
}

VkResult vkEnumerateDeviceExtensionProperties(PhysicalDevice, const char*, std::uint32_t* count,
                                              ExtensionProperties* extensions) {
    VVK_ENTER(vkEnumerateDeviceExtensionProperties)
    *count = world().settings.calibrated ? 1 : 0;
    if (extensions != nullptr && *count != 0) {
        std::strcpy(extensions->name, "VK_EXT_calibrated_timestamps");
    }
    return VkResult::success;
}

VkResult vkCreateDevice(PhysicalDevice, const DeviceCreateInfo*, const void*, LogicalDevice* device) {
    VVK_ENTER(vkCreateDevice)
    *device = handles().device;
    return VkResult::success;
}
void vkDestroyDevice(LogicalDevice, const void*) {}

void vkGetDeviceQueue(LogicalDevice, std::uint32_t, std::uint32_t, NativeQueue* queue) { *queue = handles().queue; }

VkResult vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(PhysicalDevice, std::uint32_t* count, TimeDomain* domains) {
    VVK_ENTER(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)
    *count = 1;
    if (domains != nullptr) {
        *domains = TimeDomain::device;
    }
    return VkResult::success;
}

VkResult vkGetCalibratedTimestampsEXT(LogicalDevice, std::uint32_t count, const CalibratedTimestampInfo*,
                                      std::uint64_t* stamps, std::uint64_t* deviation) {
    VVK_ENTER(vkGetCalibratedTimestampsEXT)
    stamps[0] = ticks(world().now) & mask();
    world().violations += count != 1 ? 1 : 0; // its one domain was asked for
    world().now += world().settings.call_ns;
    *deviation = static_cast<std::uint64_t>(world().settings.call_ns);
    return VkResult::success;
}

VkResult vkQueueSubmit(NativeQueue, std::uint32_t count, const SubmitInfo* submits, Fence fence) {
    VVK_ENTER(vkQueueSubmit)
    for (std::uint32_t i = 0; i < count; ++i) {
        for (std::uint32_t j = 0; j < submits[i].command_count; ++j) {
            run(*submits[i].commands[j]);
        }
    }
    if (fence != 0) {
        world().fences[fence] = std::max(done_ns(), world().now);
    }
    return VkResult::success;
}

VkResult vkQueueWaitIdle(NativeQueue) {
    VVK_ENTER(vkQueueWaitIdle)
    ++world().waits;
    world().reach(done_ns());
    return VkResult::success;
}

VkResult vkCreateFence(LogicalDevice, const FenceCreateInfo*, const void*, Fence* fence) {
    VVK_ENTER(vkCreateFence)
    *fence = world().next++;
    world().fences[*fence] = INT64_MAX;
    return VkResult::success;
}
void vkDestroyFence(LogicalDevice, Fence fence, const void*) {
    const std::lock_guard lock(world().mutex);
    world().fences.erase(fence);
}

VkResult vkWaitForFences(LogicalDevice, std::uint32_t, const Fence* fences, std::uint32_t, std::uint64_t timeout) {
    VVK_ENTER(vkWaitForFences)
    world().waits += timeout != 0 ? 1 : 0;
    return world().fences[fences[0]] <= world().now ? VkResult::success : VkResult::timeout;
}

VkResult vkCreateQueryPool(LogicalDevice, const QueryPoolCreateInfo* info, const void*, QueryPool* pool) {
    VVK_ENTER(vkCreateQueryPool)
    *pool = world().next++;
    world().pools[*pool].queries.resize(info->count);
    return VkResult::success;
}
void vkDestroyQueryPool(LogicalDevice, QueryPool pool, const void*) {
    const std::lock_guard lock(world().mutex);
    World& w = world();
    w.violations += w.pools.count(pool) == 0 || w.pools[pool].used_until > w.now ? 1 : 0;
    w.pools.erase(pool);
}

VkResult vkGetQueryPoolResults(LogicalDevice, QueryPool pool, std::uint32_t first, std::uint32_t count, std::size_t,
                               void* to, std::uint64_t stride, std::uint32_t) {
    VVK_ENTER(vkGetQueryPoolResults)
    const auto found = world().pools.find(pool);
    if (found == world().pools.end() || first + count > found->second.queries.size()) {
        ++world().violations;
        return VkResult::unknown;
    }
    VkResult result = VkResult::success;
    for (std::uint32_t i = 0; i < count; ++i) {
        Query& query = found->second.queries[first + i];
        settle(query);
        world().violations += query.defined ? 0 : 1;
        const std::uint64_t words[2] = {query.value, query.available ? 1u : 0u};
        std::memcpy(static_cast<char*>(to) + i * stride, words, sizeof words);
        result = query.available ? result : VkResult::not_ready;
    }
    return result;
}

void vkResetQueryPool(LogicalDevice, QueryPool pool, std::uint32_t first, std::uint32_t count) {
    const std::lock_guard lock(world().mutex);
    for (std::uint32_t i = 0; i < count; ++i) {
        Query& query = world().pools[pool].queries.at(first + i);
        settle(query);
        world().violations += query.coming.empty() ? 0 : 1; // a command that writes it is pending
        query.defined = true;
        query.available = false;
    }
}

VkResult vkCreateCommandPool(LogicalDevice, const CommandPoolCreateInfo*, const void*, CommandPool* pool) {
    VVK_ENTER(vkCreateCommandPool)
    *pool = world().next++;
    world().command_pools[*pool];
    return VkResult::success;
}
void vkDestroyCommandPool(LogicalDevice, CommandPool pool, const void*) {
    const std::lock_guard lock(world().mutex);
    world().command_pools.erase(pool);
}

VkResult vkAllocateCommandBuffers(LogicalDevice, const CommandBufferAllocateInfo* info, CommandBuffer* buffers) {
    VVK_ENTER(vkAllocateCommandBuffers)
    auto& list = world().command_pools[info->pool];
    for (std::uint32_t i = 0; i < info->count; ++i) {
        list.push_back(std::make_unique<VkCommandBuffer_T>());
        buffers[i] = list.back().get();
    }
    return VkResult::success;
}

VkResult vkBeginCommandBuffer(CommandBuffer buffer, const CommandBufferBeginInfo*) {
    VVK_ENTER(vkBeginCommandBuffer)
    buffer->commands.clear();
    buffer->open = true;
    return VkResult::success;
}
VkResult vkEndCommandBuffer(CommandBuffer buffer) {
    VVK_ENTER(vkEndCommandBuffer)
    buffer->open = false;
    return VkResult::success;
}

void add(CommandBuffer buffer, const Command& command) {
    const std::lock_guard lock(world().mutex);
    world().violations += buffer->open ? 0 : 1;
    buffer->commands.push_back(command);
}
void vkCmdResetQueryPool(CommandBuffer buffer, QueryPool pool, std::uint32_t first, std::uint32_t count) {
    add(buffer, {Kind::reset, 0, pool, first, count, 0});
}
void vkCmdWriteTimestamp(CommandBuffer buffer, std::uint32_t stage, QueryPool pool, std::uint32_t query) {
    add(buffer, {Kind::stamp, 0, pool, query, 1, stage});
}

AnyCall vkGetDeviceProcAddr(LogicalDevice, const char* name);

struct Entry {
    const char* name;
    AnyCall call;
};
#define VVK_ENTRY(name) \
    Entry { #name, reinterpret_cast<AnyCall>(name) }

const Entry entries[] = {VVK_ENTRY(vkCreateInstance),
                         VVK_ENTRY(vkDestroyInstance),
                         VVK_ENTRY(vkEnumeratePhysicalDevices),
                         VVK_ENTRY(vkGetPhysicalDeviceProperties),
                         VVK_ENTRY(vkGetPhysicalDeviceQueueFamilyProperties),
                         VVK_ENTRY(vkEnumerateDeviceExtensionProperties),
                         VVK_ENTRY(vkCreateDevice),
                         VVK_ENTRY(vkGetDeviceProcAddr),
                         VVK_ENTRY(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT),
                         VVK_ENTRY(vkDestroyDevice),
                         VVK_ENTRY(vkGetDeviceQueue),
                         VVK_ENTRY(vkQueueSubmit),
                         VVK_ENTRY(vkQueueWaitIdle),
                         VVK_ENTRY(vkCreateFence),
                         VVK_ENTRY(vkDestroyFence),
                         VVK_ENTRY(vkWaitForFences),
                         VVK_ENTRY(vkCreateQueryPool),
                         VVK_ENTRY(vkDestroyQueryPool),
                         VVK_ENTRY(vkGetQueryPoolResults),
                         VVK_ENTRY(vkResetQueryPool),
                         VVK_ENTRY(vkCreateCommandPool),
                         VVK_ENTRY(vkDestroyCommandPool),
                         VVK_ENTRY(vkAllocateCommandBuffers),
                         VVK_ENTRY(vkBeginCommandBuffer),
                         VVK_ENTRY(vkEndCommandBuffer),
                         VVK_ENTRY(vkCmdResetQueryPool),
                         VVK_ENTRY(vkCmdWriteTimestamp),
                         VVK_ENTRY(vkGetCalibratedTimestampsEXT)};

AnyCall find(const char* name) {
    const Settings& s = world().settings;
    if (std::strcmp(name, s.missing) == 0 ||
        (!s.calibrated && std::strcmp(name, "vkGetCalibratedTimestampsEXT") == 0) ||
        (!s.host_reset && std::strcmp(name, "vkResetQueryPool") == 0)) {
        return nullptr;
    }
    const auto found = std::find_if(std::begin(entries), std::end(entries),
                                    [&](const Entry& entry) { return std::strcmp(entry.name, name) == 0; });
    return found != std::end(entries) ? found->call : nullptr;
}

AnyCall vkGetDeviceProcAddr(LogicalDevice, const char* name) { return find(name); }

} // namespace

void reset(const Settings& settings) {
    World& w = world();
    const std::lock_guard lock(w.mutex);
    w.settings = settings;
    w.now = 5'000'000;
    w.processor_ns = w.ends_ns = w.idle_ns = 0;
    w.dispatched = false;
    w.violations = 0;
    w.forget_failures_and_waits();
    w.pools.clear();
    w.fences.clear();
    w.command_pools.clear();
    w.engines.clear();
}

AnyCall get_instance_proc_addr(Instance, const char* name) { return find(name); }

VulkanHandles handles() {
    static int things[4];
    VulkanHandles handles;
    handles.instance = reinterpret_cast<Instance>(&things[0]);
    handles.physical_device = reinterpret_cast<PhysicalDevice>(&things[1]);
    handles.device = reinterpret_cast<LogicalDevice>(&things[2]);
    handles.queue = reinterpret_cast<NativeQueue>(&things[3]);
    handles.get_instance_proc_addr = get_instance_proc_addr;
    return handles;
}

const HostClock& host_clock() {
    static const mocks::VirtualHostClock<now_ns> clock;
    return clock;
}

std::int64_t now_ns() { return World::of(world(), &World::now); }
void pass(std::int64_t ns) { world().pass(ns); }

void catch_up() {
    const std::lock_guard lock(world().mutex);
    world().reach(done_ns());
}

std::uint64_t ticks_at(std::int64_t ns) { return ticks(ns); }

void fail(const std::string& call, unsigned use, VkResult result) {
    World& w = world();
    const std::lock_guard lock(w.mutex);
    w.failure.plan(call, use);
    w.answer = result;
}

bool has_failed() { return world().has_failed(); }

std::size_t alive() {
    World& w = world();
    const std::lock_guard lock(w.mutex);
    std::size_t count = w.pools.size() + w.fences.size() + w.command_pools.size();
    for (const auto& [pool, buffers] : w.command_pools) {
        count += buffers.size();
    }
    return count;
}

std::size_t waits() { return World::of(world(), &World::waits); }
unsigned violations() { return world().violations; }
std::int64_t idle_ns() { return world().idle_ns; }

CommandBuffer new_commands() {
    const std::lock_guard lock(world().mutex);
    world().engines.push_back(std::make_unique<VkCommandBuffer_T>());
    return world().engines.back().get();
}

void begin(CommandBuffer commands) {
    commands->commands.clear();
    commands->open = true;
}
void dispatch(CommandBuffer commands, std::int64_t ns) { add(commands, {Kind::dispatch, ns, 0, 0, 0, 0}); }
void barrier(CommandBuffer commands) { add(commands, {Kind::barrier, 0, 0, 0, 0, 0}); }
void end(CommandBuffer commands) { commands->open = false; }

void submit(CommandBuffer commands) {
    const std::lock_guard lock(world().mutex);
    world().now += world().settings.submit_ns;
    run(*commands);
}

std::size_t recorded(CommandBuffer commands, const std::string& kind) {
    const Kind wanted = kind == "reset" ? Kind::reset : Kind::stamp;
    return static_cast<std::size_t>(std::count_if(commands->commands.begin(), commands->commands.end(),
                                                  [&](const Command& command) { return command.kind == wanted; }));
}

} // namespace plumb::vvk
