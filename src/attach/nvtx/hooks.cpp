// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/hooks.hpp"

#include <array>
#include <cstring>
#include <cwchar>
#include <dlfcn.h>
#include <filesystem>
#include <list>
#include <memory>
#include <new>
#include <pthread.h>
#include <string>

#include "attach/attachment.hpp"
#include "attach/nvtx/event_text.hpp"
#include "attach/nvtx/outcome.hpp"
#include "attach/nvtx/thread_ranges.hpp"
#include "base/layout.hpp"
#include "base/os.hpp"
#include "base/ring_source.hpp"

namespace plumb::attach::nvtx {
namespace {

/// What one thread knows: its open ranges, and what texts at some addresses were when it looked last.
struct RangeThread {
    struct Recent {
        const char* address;
        const KnownRange* known;
    };
    static constexpr std::size_t most_recent = 256;

    explicit RangeThread(Recorder& its) noexcept : recorder(its), ranges(its) {}

    Recorder& recorder;
    ThreadRanges ranges;
    Recent recent[most_recent] = {};
    KnownRange place; // of a text that is not kept
};

/// Whether a driver of GPUs is in this process.
bool device_met() {
    for (const char* driver :
         {"libcuda.so.1", "libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"}) {
        if (void* const found = dlopen(driver, RTLD_LAZY | RTLD_NOLOAD); found != nullptr) {
            dlclose(found);
            return true;
        }
    }
    return false;
}

/// Never destroyed: threads may be in here until the process has ended.
struct Process {
    explicit Process(imported::RangeRules rules) : texts(std::move(rules), device_met) {}

    Texts texts;
    OpenStarts starts;
    std::mutex mutex; // of all below
    std::list<std::unique_ptr<RangeThread>> threads;
    RangeCounts ended; // of threads that have ended
};

std::atomic<Process*> process{nullptr}; // release, acquire: who finds it finds it complete
__thread RangeThread* thread_state PLUMB_TLS_MODEL = nullptr;
__thread bool thread_ended PLUMB_TLS_MODEL = false;

void add(RangeCounts& to, const RangeCounts& more) {
    to.ranges += more.ranges;
    to.never_ended += more.never_ended;
    to.never_begun += more.never_begun;
}

void forget_thread(void* state) {
    thread_state = nullptr;
    thread_ended = true;
    Process* const all = process.load(std::memory_order_acquire);
    if (all == nullptr) { // a forked child
        return;
    }
    const std::lock_guard lock(all->mutex);
    add(all->ended, static_cast<RangeThread*>(state)->ranges.counts());
    all->threads.remove_if([state](const auto& known) { return known.get() == state; });
}

/// What was seen and what was not, into the recording.
void tell_counts() {
    Process& all = *process.load(std::memory_order_acquire);
    RangeCounts ranges;
    {
        const std::lock_guard lock(all.mutex);
        ranges = all.ended;
        for (const auto& thread : all.threads) {
            add(ranges, thread->ranges.counts());
        }
    }
    tell_outcome(ranges, all.starts.counts(), all.texts.counts(), device_met());
}

/// The first range of the process: from here on there is a recording.
void meet() {
    static const bool met = [] {
        at_close(tell_counts);
        tell("engine", "NVTX ranges\tNVTX_INJECTION64_PATH");
        profiler().describe("engine", "a program with NVTX ranges, not built for this profiler");
        return true;
    }();
    (void)met;
}

PLUMB_NOINLINE RangeThread* make_thread_state() noexcept {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        pthread_key_create(&made, forget_thread);
        return made;
    }();
    Process* const all = process.load(std::memory_order_acquire);
    if (thread_ended || all == nullptr) {
        return nullptr;
    }
    try {
        Profiler& recorder = profiler();
        meet();
        auto made = std::make_unique<RangeThread>(recorder);
        RangeThread* const state = made.get();
        const std::lock_guard lock(all->mutex);
        all->threads.push_back(std::move(made));
        pthread_setspecific(key, state);
        if (detail::ThreadRecorder* pen = recorder.enabled() ? recorder.thread() : nullptr;
            pen != nullptr && pen->ring->head.load(std::memory_order_relaxed) == 0) {
            // Before the drain sees a record of this thread. One that has recorded in another way keeps its source.
            base::set_source(*pen->ring, base::RingSource::nvtx);
        }
        return thread_state = state;
    } catch (const std::exception&) { // no memory
        return nullptr;
    }
}

/// Null: this thread cannot record.
PLUMB_ALWAYS_INLINE RangeThread* state_of_thread() noexcept {
    RangeThread* const state = thread_state;
    return PLUMB_LIKELY(state != nullptr) ? state : make_thread_state();
}

Process& all_of_process() noexcept { return *process.load(std::memory_order_relaxed); }

// --- Texts ---

PLUMB_NOINLINE const KnownRange& look_up(RangeThread& state, std::uint32_t domain, const char* text,
                                         std::uint32_t category) noexcept {
    Texts& texts = all_of_process().texts;
    if (text == nullptr) {
        return texts.unnamed();
    }
    const KnownRange& known = texts.find(domain, {text, strnlen(text, longest_text)}, false, category, state.place);
    // Found by its address as long as the same text lies there. What counts up in a text is not in the one that is kept.
    if (&known != &state.place && std::strcmp(known.text, text) == 0) {
        state.recent[reinterpret_cast<std::uintptr_t>(text) / 8 % RangeThread::most_recent] = {text, &known};
    }
    return known;
}

PLUMB_ALWAYS_INLINE const KnownRange& known_text(RangeThread& state, std::uint32_t domain, const char* text,
                                                 std::uint32_t category) noexcept {
    const RangeThread::Recent& recent =
        state.recent[reinterpret_cast<std::uintptr_t>(text) / 8 % RangeThread::most_recent];
    if (PLUMB_LIKELY(recent.address == text && text != nullptr && recent.known->domain == domain &&
                     std::strcmp(recent.known->text, text) == 0)) {
        return *recent.known;
    }
    return look_up(state, domain, text, category);
}

PLUMB_NOINLINE const KnownRange& wide_text(RangeThread& state, std::uint32_t domain,
                                           const Attributes& attributes) noexcept {
    std::string place;
    return all_of_process().texts.find(domain, plain_text(&attributes, all_of_process().texts, place), false,
                                       attributes.category, state.place);
}

PLUMB_ALWAYS_INLINE const KnownRange& text_of(RangeThread& state, std::uint32_t domain,
                                              const Attributes* attributes) noexcept {
    if (PLUMB_UNLIKELY(attributes == nullptr || attributes->size < sizeof(Attributes))) {
        return all_of_process().texts.unnamed();
    }
    const auto type = static_cast<MessageType>(attributes->message_type);
    if (type == MessageType::registered) {
        const KnownRange* known =
            all_of_process().texts.registered(reinterpret_cast<std::uintptr_t>(attributes->message.registered));
        return known != nullptr ? *known : all_of_process().texts.unnamed();
    }
    if (type == MessageType::ascii) {
        return known_text(state, domain, attributes->message.ascii, attributes->category);
    }
    return type == MessageType::wide ? wide_text(state, domain, *attributes) : all_of_process().texts.unnamed();
}

// --- What every function does, whatever its domain and text ---

PLUMB_ALWAYS_INLINE int push(std::uint32_t domain, const Attributes* attributes) noexcept {
    RangeThread* const state = state_of_thread();
    return state != nullptr && state->recorder.enabled()
               ? state->ranges.push(domain, text_of(*state, domain, attributes), attributes)
               : no_level;
}

PLUMB_ALWAYS_INLINE int pop(std::uint32_t domain) noexcept {
    RangeThread* const state = state_of_thread();
    return state != nullptr ? state->ranges.pop(domain) : no_level;
}

std::uint64_t start(std::uint32_t domain, const Attributes* attributes) noexcept {
    RangeThread* const state = state_of_thread();
    if (state == nullptr || !state->recorder.enabled()) {
        return 0;
    }
    const KnownRange& known = text_of(*state, domain, attributes);
    if (known.kind == RangeKind::hidden) {
        return 0;
    }
    Work work = known.work;
    (void)add_payload(known.payload, payload_of(attributes), work);
    return all_of_process().starts.start(state->recorder, known.name(), work);
}

void end(std::uint64_t number) noexcept {
    RangeThread* const state = number != 0 ? state_of_thread() : nullptr; // 0: not recorded
    if (state != nullptr && state->recorder.enabled()) {
        all_of_process().starts.end(state->recorder, number);
    }
}

/// A moment: a brick of no length, whose name is apart from those of ranges.
void mark(std::uint32_t domain, const Attributes* attributes) noexcept {
    RangeThread* const state = state_of_thread();
    if (state == nullptr || !state->recorder.enabled()) {
        return;
    }
    const Timestamp now = state->recorder.now();
    std::string place;
    const std::string_view text = plain_text(attributes, all_of_process().texts, place);
    const std::uint32_t category = attributes != nullptr ? attributes->category : 0;
    const KnownRange& known = all_of_process().texts.find(domain, text, true, category, state->place);
    if (known.kind != RangeKind::hidden) {
        state->recorder.record_span(known.name(), now, now);
    }
}

// --- The functions ---

std::uint32_t number_of(const void* domain) noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(domain);
    return number <= Texts::most_domains ? static_cast<std::uint32_t>(number) : Texts::most_domains;
}

template <class Number>
const void* handle_of(Number number) noexcept {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number)); // never looked behind
}

Attributes with(MessageType type, const void* text) noexcept {
    Attributes made{};
    made.size = sizeof made;
    made.message_type = static_cast<std::int32_t>(type);
    made.message.registered = text; // of one size, whatever it leads to
    return made;
}
Attributes with(const char* text) noexcept { return with(MessageType::ascii, text); }
Attributes with(const wchar_t* text) noexcept { return with(MessageType::wide, text); }

void mark_ex(const Attributes* attributes) { mark(0, attributes); }
template <class Char>
void mark_text(const Char* text) {
    const Attributes attributes = with(text);
    mark(0, &attributes);
}
std::uint64_t range_start_ex(const Attributes* attributes) { return start(0, attributes); }
template <class Char>
std::uint64_t range_start_text(const Char* text) {
    const Attributes attributes = with(text);
    return start(0, &attributes);
}
int range_push_ex(const Attributes* attributes) { return push(0, attributes); }
int range_push_a(const char* text) {
    RangeThread* const state = state_of_thread();
    return state != nullptr && state->recorder.enabled()
               ? state->ranges.push(0, known_text(*state, 0, text, 0), nullptr)
               : no_level;
}
int range_push_w(const wchar_t* text) {
    const Attributes attributes = with(text);
    return push(0, &attributes);
}
int range_pop() { return pop(0); }

void domain_mark_ex(const void* domain, const Attributes* attributes) { mark(number_of(domain), attributes); }
std::uint64_t domain_start_ex(const void* domain, const Attributes* attributes) {
    return start(number_of(domain), attributes);
}
void domain_end(const void*, std::uint64_t number) { end(number); }
int domain_push_ex(const void* domain, const Attributes* attributes) { return push(number_of(domain), attributes); }
int domain_pop(const void* domain) { return pop(number_of(domain)); }

template <class Char>
void domain_name_category(const void* domain, std::uint32_t category, const Char* name) {
    std::string place;
    if (Process* const all = process.load(std::memory_order_acquire); all != nullptr) {
        const Attributes attributes = with(name);
        all->texts.name_category(number_of(domain), category, plain_text(&attributes, all->texts, place));
    }
}
template <class Char>
void name_category(std::uint32_t category, const Char* name) {
    domain_name_category(nullptr, category, name);
}
template <class Char>
const void* register_string(const void* domain, const Char* text) {
    std::string place;
    Process* const all = process.load(std::memory_order_acquire);
    const Attributes attributes = with(text);
    return all != nullptr
               ? handle_of(all->texts.register_string(number_of(domain), plain_text(&attributes, all->texts, place)))
               : nullptr;
}
template <class Char>
const void* create_domain(const Char* name) {
    std::string place;
    Process* const all = process.load(std::memory_order_acquire);
    const Attributes attributes = with(name);
    return all != nullptr ? handle_of(all->texts.domain(plain_text(&attributes, all->texts, place))) : nullptr;
}

/// One function of a table.
struct TableEntry {
    std::uint32_t place;
    Function function;
};
template <class Place, class Result, class... Parameters>
TableEntry entry(Place place, Result (*function)(Parameters...)) {
    return {static_cast<std::uint32_t>(place), reinterpret_cast<Function>(function)};
}

template <std::size_t Size>
void hand_over(const Callbacks& callbacks, std::uint32_t module, const std::array<TableEntry, Size>& entries) {
    Function** table = nullptr;
    std::uint32_t size = 0;
    if (callbacks.get_module_function_table(module, &table, &size) == 0 || table == nullptr) {
        return;
    }
    for (const TableEntry& one : entries) {
        if (one.place < size && table[one.place] != nullptr) {
            *table[one.place] = one.function;
        }
    }
}

void hand_over_all(const Callbacks& callbacks) {
    hand_over(callbacks, core_module,
              std::array{entry(Core::mark_ex, mark_ex), entry(Core::mark_a, mark_text<char>),
                         entry(Core::mark_w, mark_text<wchar_t>), entry(Core::range_start_ex, range_start_ex),
                         entry(Core::range_start_a, range_start_text<char>),
                         entry(Core::range_start_w, range_start_text<wchar_t>), entry(Core::range_end, end),
                         entry(Core::range_push_ex, range_push_ex), entry(Core::range_push_a, range_push_a),
                         entry(Core::range_push_w, range_push_w), entry(Core::range_pop, range_pop),
                         entry(Core::name_category_a, name_category<char>),
                         entry(Core::name_category_w, name_category<wchar_t>)});
    hand_over(
        callbacks, domain_module,
        std::array{entry(Domain::mark_ex, domain_mark_ex), entry(Domain::range_start_ex, domain_start_ex),
                   entry(Domain::range_end, domain_end), entry(Domain::range_push_ex, domain_push_ex),
                   entry(Domain::range_pop, domain_pop), entry(Domain::name_category_a, domain_name_category<char>),
                   entry(Domain::name_category_w, domain_name_category<wchar_t>),
                   entry(Domain::register_string_a, register_string<char>),
                   entry(Domain::register_string_w, register_string<wchar_t>),
                   entry(Domain::create_a, create_domain<char>), entry(Domain::create_w, create_domain<wchar_t>)});
}

/// A forked child records nothing, and must not wait for a lock that another thread of its parent held.
void abandon_in_child() {
    process.store(nullptr, std::memory_order_release);
    thread_state = nullptr;
    thread_ended = true;
}

/// Of the installation that this library belongs to; empty: those built in.
std::string installed_rules() {
    Dl_info own{};
    if (dladdr(reinterpret_cast<const void*>(&installed_rules), &own) == 0 || own.dli_fname == nullptr) {
        return {};
    }
    const std::filesystem::path folder = std::filesystem::path(own.dli_fname).parent_path();
    const std::string beside = imported::installed_rules(folder.parent_path(), "nvtx.rules");
    return !beside.empty() ? beside : imported::installed_rules(folder.parent_path().parent_path(), "nvtx.rules");
}

/// Once a process.
bool prepare() {
    std::vector<std::string> files;
    if (const char* users = base::environment("PLUMB_NVTX_RULES"); users != nullptr && *users != '\0') {
        files.emplace_back(users);
    }
    Result<imported::RangeRules> rules = imported::RangeRules::load(files, installed_rules());
    if (!rules.ok()) {
        say(rules.error().message + "; NVTX ranges are not recorded");
        return false;
    }
    process.store(new Process(std::move(*rules)), std::memory_order_release);
    pthread_atfork(nullptr, nullptr, abandon_in_child);
    return true;
}

} // namespace

bool open_door(ExportTable get) {
    if (!wanted() || get == nullptr) {
        return false;
    }
    static const bool prepared = prepare();
    const auto* callbacks = prepared ? static_cast<const Callbacks*>(get(callbacks_table)) : nullptr;
    if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) {
        return false;
    }
    hand_over_all(*callbacks);
    return true;
}

} // namespace plumb::attach::nvtx
