// SPDX-License-Identifier: Apache-2.0
#include "mocks/virtual_metal.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "mocks/virtual_world.hpp"

namespace plumb::vmetal {
namespace {

using namespace backends::metal;

enum class Word : std::size_t {
#define PLUMB_VMETAL_WORD(member, text) member,
    PLUMB_METAL_MESSAGES(PLUMB_VMETAL_WORD)
#undef PLUMB_VMETAL_WORD
};
constexpr const char* texts[] = {
#define PLUMB_VMETAL_TEXT(member, text) text,
    PLUMB_METAL_MESSAGES(PLUMB_VMETAL_TEXT)
#undef PLUMB_VMETAL_TEXT
};

// --- Objects ---

struct Object {
    std::size_t references = 1; // the program's
    std::size_t holds = 0;      // the system's
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object() = default;
};
struct Text final : Object {
    const char* text;
    explicit Text(const char* words) : text(words) {}
};
struct Array final : Object {
    std::vector<Object*> items;
};
struct Data final : Object {
    std::vector<std::uint64_t> values;
};
struct Event final : Object {};
struct Queue final : Object {
    std::size_t most = 64;
    std::size_t unfinished = 0;
    std::int64_t busy_until = 0;
    bool after_marker = true;
};
struct Description final : Object {
    std::uint64_t count = 0, storage = 99;
    Object* set = nullptr;
};
struct Samples final : Object {
    std::vector<std::uint64_t> values;
};
struct Attachment final : Object {
    Samples* samples = nullptr;
    std::uint64_t first = 0, last = 0;
};
struct Pass final : Object {
    bool is_render = false;
    Attachment attachment;
};
struct Sampling {
    Samples* samples;
    std::uint64_t index;
    std::int64_t at; // nanoseconds of work before it
};
struct CommandBuffer final : Object {
    Queue* queue = nullptr;
    std::uint64_t status = 0;
    std::int64_t work = 0, started = 0, ended = 0;
    bool signals = false, waits = false, ends_badly = false, handled = false;
    std::vector<ObjcBlock*> handlers;
    std::vector<Sampling> samplings;
};
struct Encoder final : Object {
    CommandBuffer* buffer = nullptr;
};

struct World : mocks::VirtualWorld<std::recursive_mutex> {
    Config config;
    Object device, samples_class;
    Text name{"virtual GPU"}, set_name{"timestamp"}, other_name{"statistics"};
    Object timestamp_set, other_set;
    std::vector<CommandBuffer*> running;
    bool finishing = false;
    std::size_t references = 0, blocks = 0, samples_made = 0, samples_alive = 0;

    std::uint64_t ticks(std::int64_t host) const {
        return config.zero + static_cast<std::uint64_t>(static_cast<double>(host) * config.ticks_per_ns);
    }
};

World& world() {
    static World& only = *new World;
    return only;
}
using Lock = World::Lock;

std::uint64_t answer(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
template <class T>
T& as(std::uint64_t value) {
    return *static_cast<T*>(reinterpret_cast<Object*>(value));
}
template <class T>
T& as(Id object) {
    return *static_cast<T*>(static_cast<Object*>(object));
}

// The caller holds the lock in what follows.

template <class T>
T* make() {
    ++world().references;
    return new T;
}

void drop_block(ObjcBlock* block) {
    block->layout->dispose(block);
    delete block;
    --world().blocks;
}

void drop_samplings(CommandBuffer& buffer);

void destroy_when_unused(Object* object) {
    if (object->references != 0 || object->holds != 0) {
        return;
    }
    if (auto* buffer = dynamic_cast<CommandBuffer*>(object)) {
        for (ObjcBlock* block : buffer->handlers) {
            drop_block(block);
        }
        buffer->queue->unfinished -= buffer->status < status_completed ? 1 : 0;
        drop_samplings(*buffer);
        --buffer->queue->holds;
        destroy_when_unused(buffer->queue);
    } else if (auto* encoder = dynamic_cast<Encoder*>(object)) {
        --encoder->buffer->holds;
        destroy_when_unused(encoder->buffer);
    } else if (auto* pass = dynamic_cast<Pass*>(object)) {
        if (pass->attachment.samples != nullptr) {
            --pass->attachment.samples->holds;
            destroy_when_unused(pass->attachment.samples);
        }
    } else if (dynamic_cast<Samples*>(object) != nullptr) {
        --world().samples_alive;
    }
    delete object;
}

void drop_samplings(CommandBuffer& buffer) {
    for (const Sampling& sampling : buffer.samplings) {
        --sampling.samples->holds;
        destroy_when_unused(sampling.samples);
    }
    buffer.samplings.clear();
}

void give_up(Object* object) {
    --object->references;
    --world().references;
    destroy_when_unused(object);
}

thread_local std::vector<Object*> autoreleased;

void* push_pool() { return reinterpret_cast<void*>(autoreleased.size() + 1); }
void pop_pool(void* pool) {
    const Lock lock(world().mutex);
    while (autoreleased.size() >= reinterpret_cast<std::size_t>(pool)) {
        Object* last = autoreleased.back();
        autoreleased.pop_back();
        give_up(last);
    }
}

// --- Time ---

void write_samples(CommandBuffer& buffer) {
    const World& w = world();
    for (const Sampling& sampling : buffer.samplings) {
        if (!w.config.lost_samples) {
            sampling.samples->values[sampling.index] =
                w.config.sample == 1 ? w.ticks(buffer.started + sampling.at) : w.config.sample;
        }
    }
}

void finish(CommandBuffer* buffer) {
    std::vector<ObjcBlock*> handlers;
    {
        const Lock lock(world().mutex);
        write_samples(*buffer);
        buffer->status = buffer->ends_badly ? status_error : world().config.ending;
        --buffer->queue->unfinished;
        handlers.swap(buffer->handlers);
    }
    for (ObjcBlock* block : handlers) {
        block->invoke(block, static_cast<Object*>(buffer));
    }
    const Lock lock(world().mutex);
    for (ObjcBlock* block : handlers) {
        drop_block(block);
    }
    drop_samplings(*buffer);
    buffer->handled = true;
    --buffer->holds;
    destroy_when_unused(buffer);
}

// Handlers run in the order of the commits, on one thread at a time: whoever finds another at it leaves the rest to that one.
void finish_what_has_ended() {
    for (bool began = false;; began = true) {
        CommandBuffer* next = nullptr;
        {
            const Lock lock(world().mutex);
            World& w = world();
            if (!began && std::exchange(w.finishing, true)) {
                return;
            }
            const auto first = std::find_if(w.running.begin(), w.running.end(),
                                            [&](const CommandBuffer* buffer) { return buffer->ended <= w.now; });
            if (first == w.running.end()) {
                w.finishing = false;
                return;
            }
            next = *first;
            w.running.erase(first);
        }
        finish(next);
    }
}

// A marker waits for all before it and holds back all after it; another empty command buffer runs beside whatever runs.
void start(CommandBuffer& buffer) {
    World& w = world();
    Queue& queue = *buffer.queue;
    const std::int64_t ready = w.now + w.config.start_ns;
    w.now += w.config.call_ns;
    const bool is_marker = buffer.signals && buffer.waits;
    std::int64_t free = queue.busy_until;
    if (!is_marker && !queue.after_marker) {
        free -= buffer.work == 0 ? free : w.config.overlap_ns;
    }
    buffer.started = std::max(ready, free);
    buffer.ended = buffer.started + (buffer.work == 0 ? w.config.marker_ns : buffer.work);
    queue.busy_until = std::max(queue.busy_until, buffer.ended);
    queue.after_marker = is_marker;
    buffer.status = status_committed;
    ++buffer.holds;
    w.running.push_back(&buffer);
}

void wait_until(std::int64_t moment) {
    {
        const Lock lock(world().mutex);
        world().wait_for(moment);
    }
    finish_what_has_ended();
}

// --- Messages ---

CommandBuffer* new_command_buffer(Queue& queue) {
    if (queue.unfinished >= queue.most) {
        std::int64_t first = world().now;
        for (const CommandBuffer* buffer : world().running) {
            first = std::max(first, buffer->ended);
        }
        wait_until(first);
    }
    world().now += world().config.call_ns;
    auto* buffer = make<CommandBuffer>();
    buffer->queue = &queue;
    ++queue.holds;
    ++queue.unfinished;
    return buffer;
}

std::uint64_t autorelease(Object* object) {
    autoreleased.push_back(object);
    return answer(object);
}

void add_handler(CommandBuffer& buffer, const ObjcBlock& given) {
    auto* block = new ObjcBlock(given);
    block->layout->copy(block, &given);
    buffer.handlers.push_back(block);
    ++world().blocks;
}

Samples* new_samples(const Description& description) {
    World& w = world();
    if (w.samples_alive >= w.config.most_samples || description.count > w.config.samples_each ||
        description.count == 0 || description.storage != storage_shared || description.set != &w.timestamp_set) {
        return nullptr;
    }
    ++w.samples_alive;
    ++w.samples_made;
    auto* samples = make<Samples>();
    samples->values.assign(description.count, 0);
    return samples;
}

std::uint64_t counter_sets() {
    World& w = world();
    auto* sets = make<Array>();
    sets->items.push_back(&w.other_set);
    if (w.config.timestamp_set) {
        sets->items.push_back(&w.timestamp_set);
    }
    return autorelease(sets);
}

std::uint64_t resolve_range(const Samples& samples, std::uint64_t first, std::uint64_t count) {
    if (first + count > samples.values.size()) {
        return 0;
    }
    auto* data = make<Data>();
    const auto from = samples.values.begin() + static_cast<std::ptrdiff_t>(first);
    data->values.assign(from, from + static_cast<std::ptrdiff_t>(count));
    return autorelease(data);
}

void set_samples_of(Attachment& attachment, Samples* samples) {
    if (samples != nullptr) {
        ++samples->holds;
    }
    if (Samples* before = std::exchange(attachment.samples, samples); before != nullptr) {
        --before->holds;
        destroy_when_unused(before);
    }
}

void sample(CommandBuffer& buffer, Samples& samples, std::uint64_t index) {
    ++samples.holds;
    buffer.samplings.push_back({&samples, index, buffer.work});
}

std::uint64_t name_of(const Object* object) {
    World& w = world();
    return answer(object == &w.device ? &w.name : object == &w.timestamp_set ? &w.set_name : &w.other_name);
}

bool has_finished(const CommandBuffer& buffer) {
    const Lock lock(world().mutex);
    return buffer.handled;
}

std::uint64_t send(Id receiver, Selector words, std::uint64_t first, std::uint64_t second, std::uint64_t third);

std::uint64_t respond(Object* object, Word word, std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    World& w = world();
    switch (word) {
    case Word::retain:
        ++object->references;
        ++w.references;
        return answer(object);
    case Word::release:
        give_up(object);
        return 0;
    case Word::alloc:
        return answer(static_cast<Object*>(make<Description>()));
    case Word::init:
        return answer(object);
    case Word::responds_to:
        return dynamic_cast<Attachment*>(object) != nullptr; // a render pass names other stages
    case Word::count:
        return as<Array>(object).items.size();
    case Word::object_at:
        return answer(as<Array>(object).items.at(first));
    case Word::name:
        return name_of(object);
    case Word::utf8:
        return answer(as<Text>(object).text);
    case Word::bytes:
        return answer(as<Data>(object).values.data());
    case Word::length:
        return as<Data>(object).values.size() * sizeof(std::uint64_t);
    case Word::registry_id:
        return 4711;
    case Word::device:
        return answer(&w.device);
    case Word::new_queue:
        return answer(make_queue(first));
    case Word::new_event:
        return answer(static_cast<Object*>(make<Event>()));
    case Word::command_buffer:
        return autorelease(new_command_buffer(as<Queue>(object)));
    case Word::signal_event:
        as<CommandBuffer>(object).signals = true;
        return 0;
    case Word::wait_for_event:
        as<CommandBuffer>(object).waits = as<CommandBuffer>(object).signals;
        return 0;
    case Word::add_completed:
        add_handler(as<CommandBuffer>(object), *reinterpret_cast<const ObjcBlock*>(first));
        return 0;
    case Word::commit:
        start(as<CommandBuffer>(object));
        return 0;
    case Word::status:
        return as<CommandBuffer>(object).status;
    case Word::counter_sets:
        return counter_sets();
    case Word::supports_sampling:
        return first == at_stage_boundary      ? w.config.stage_sampling
               : first == at_dispatch_boundary ? w.config.dispatch_sampling
                                               : 0;
    case Word::new_samples:
        return answer(static_cast<Object*>(new_samples(as<Description>(first))));
    case Word::set_counter_set:
        as<Description>(object).set = &as<Object>(first);
        return 0;
    case Word::set_storage:
        as<Description>(object).storage = first;
        return 0;
    case Word::set_sample_count:
        as<Description>(object).count = first;
        return 0;
    case Word::resolve:
        return resolve_range(as<Samples>(object), first, second);
    case Word::sample_timestamps:
        w.now += 200;
        *reinterpret_cast<std::uint64_t*>(first) = static_cast<std::uint64_t>(w.now) * 3 / 125; // in a unit of its own
        *reinterpret_cast<std::uint64_t*>(second) = w.ticks(w.now);
        w.now += 200;
        return 0;
    case Word::attachments:
        return answer(object);
    case Word::attachment_at:
        // A render pass has attachments, too, but of another class.
        return as<Pass>(object).is_render ? answer(&w.other_set)
                                          : answer(static_cast<Object*>(&as<Pass>(object).attachment));
    case Word::set_samples:
        set_samples_of(as<Attachment>(object), first != 0 ? &as<Samples>(first) : nullptr);
        return 0;
    case Word::set_first_sample:
        as<Attachment>(object).first = first;
        return 0;
    case Word::set_last_sample:
        as<Attachment>(object).last = first;
        return 0;
    case Word::sample_now:
        static_cast<void>(third);
        sample(*as<Encoder>(object).buffer, as<Samples>(first), second);
        return 0;
    default:
        return 0;
    }
}

std::uint64_t send(Id receiver, Selector words, std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    if (receiver == nullptr) {
        return 0;
    }
    const auto word = static_cast<Word>(static_cast<const char* const*>(words) - texts);
    if (word == Word::wait_completed) {
        const auto& buffer = as<CommandBuffer>(receiver);
        wait_until(buffer.ended);
        while (!has_finished(buffer)) { // another thread is at it
            std::this_thread::yield();
        }
        return 0;
    }
    std::uint64_t result = 0;
    {
        const Lock lock(world().mutex);
        const bool fails = world().fails(texts[static_cast<std::size_t>(word)]);
        if (fails && word == Word::commit) {
            as<CommandBuffer>(receiver).ends_badly = true;
        } else if (fails) {
            return word == Word::status ? status_error : 0;
        }
        result = respond(static_cast<Object*>(receiver), word, first, second, third);
    }
    if (word == Word::commit) {
        finish_what_has_ended();
    }
    return result;
}

double send_double(Id receiver, Selector words) {
    const Lock lock(world().mutex);
    const World& w = world();
    const auto word = static_cast<Word>(static_cast<const char* const*>(words) - texts);
    const auto& buffer = as<CommandBuffer>(receiver);
    if (world().fails(texts[static_cast<std::size_t>(word)]) || w.config.zero_times ||
        buffer.status < status_completed) {
        return 0.0;
    }
    const bool of_end = (word == Word::gpu_end) != w.config.reversed_times;
    return static_cast<double>((of_end ? buffer.ended : buffer.started) - w.config.asleep_ns) * 1e-9;
}

Id get_class(const char* name) {
    return std::strcmp(name, "MTLCounterSampleBufferDescriptor") == 0 ? &world().samples_class : nullptr;
}

Selector register_selector(const char* words) {
    for (const char* const& text : texts) {
        if (std::strcmp(text, words) == 0) {
            return const_cast<const char**>(&text);
        }
    }
    return nullptr;
}

Id copy_all_devices() {
    const Lock lock(world().mutex);
    auto* all = make<Array>();
    if (!world().fails("MTLCopyAllDevices")) {
        all->items.push_back(&world().device);
    }
    return static_cast<Object*>(all);
}

Id default_device() { return nullptr; }

std::uint64_t uptime_ns(std::int32_t clock) {
    const std::int64_t now = now_ns();
    const Lock lock(world().mutex);
    if (clock != clock_uptime_raw || world().fails("clock_gettime_nsec_np")) {
        return 0;
    }
    return static_cast<std::uint64_t>(now - world().config.asleep_ns);
}

MetalDriver table() {
    MetalDriver calls;
#define PLUMB_VMETAL_ENTRY(member, symbol, library, need, result, parameters) calls.member = member;
    PLUMB_METAL_CALLS(PLUMB_VMETAL_ENTRY)
#undef PLUMB_VMETAL_ENTRY
    static int stack_block;
    calls.stack_block = &stack_block;
    calls.register_words();
    return calls;
}

} // namespace

void reset(const Config& config) {
    const Lock lock(world().mutex);
    world().config = config;
    world().forget_failures_and_waits();
    world().samples_made = 0;
}

Config& config() { return world().config; }

const MetalDriver& driver() {
    static const MetalDriver calls = table();
    return calls;
}

const HostClock& host_clock() {
    static const mocks::VirtualHostClock<now_ns> clock;
    return clock;
}

Id make_queue(std::size_t most_command_buffers) {
    const Lock lock(world().mutex);
    auto* queue = make<Queue>();
    queue->most = most_command_buffers;
    return static_cast<Object*>(queue);
}

Id make_command_buffer(Id queue) {
    const Lock lock(world().mutex);
    return static_cast<Object*>(new_command_buffer(as<Queue>(queue)));
}

Id make_compute_pass() {
    const Lock lock(world().mutex);
    return static_cast<Object*>(make<Pass>());
}

Id make_render_pass() {
    const Id pass = make_compute_pass();
    as<Pass>(pass).is_render = true;
    return pass;
}

Id make_encoder(Id command_buffer) {
    const Lock lock(world().mutex);
    auto* encoder = make<Encoder>();
    encoder->buffer = &as<CommandBuffer>(command_buffer);
    ++encoder->buffer->holds;
    return static_cast<Object*>(encoder);
}

void release(Id object) {
    const Lock lock(world().mutex);
    give_up(&as<Object>(object));
}

void encode(Id command_buffer, std::int64_t ns) {
    const Lock lock(world().mutex);
    as<CommandBuffer>(command_buffer).work += ns;
}

void encode_pass(Id command_buffer, Id pass, std::int64_t ns) {
    const Lock lock(world().mutex);
    const Attachment& attachment = as<Pass>(pass).attachment;
    auto& buffer = as<CommandBuffer>(command_buffer);
    if (attachment.samples != nullptr) {
        sample(buffer, *attachment.samples, attachment.first);
    }
    buffer.work += ns;
    if (attachment.samples != nullptr) {
        sample(buffer, *attachment.samples, attachment.last);
    }
}

void dispatch(Id encoder, std::int64_t ns) {
    const Lock lock(world().mutex);
    as<Encoder>(encoder).buffer->work += ns;
}

void commit(Id command_buffer) { driver().ask(command_buffer, driver().words.commit); }

void run(Id queue, std::int64_t ns) {
    const Id buffer = make_command_buffer(queue);
    encode(buffer, ns);
    {
        const Lock lock(world().mutex);
        start(as<CommandBuffer>(buffer));
    }
    release(buffer);
    finish_what_has_ended();
}

void pass(std::int64_t ns) {
    world().pass(ns);
    finish_what_has_ended();
}

void settle() {
    {
        const Lock lock(world().mutex);
        for (const CommandBuffer* buffer : world().running) {
            world().reach(buffer->ended);
        }
    }
    finish_what_has_ended();
}

std::int64_t now_ns() {
    const std::int64_t now = world().pass(20); // reading a clock takes time
    finish_what_has_ended();
    return now;
}

void fail(const std::string& call, unsigned use) { world().plan_failure(call, use); }
bool has_failed() { return world().has_failed(); }

std::size_t references() { return World::of(world(), &World::references); }
std::size_t samples_made() { return World::of(world(), &World::samples_made); }
std::size_t samples_alive() { return World::of(world(), &World::samples_alive); }
std::size_t waits() { return World::of(world(), &World::waits); }
std::size_t blocks() { return World::of(world(), &World::blocks); }

} // namespace plumb::vmetal
