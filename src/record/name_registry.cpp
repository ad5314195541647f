// SPDX-License-Identifier: Apache-2.0
#include "record/name_registry.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/hex.hpp"
#include "plumb/node.hpp"
#include "plumb/record.hpp"

namespace plumb::record {
namespace {

constexpr std::size_t longest_name = 256;

struct NameRegistry {
    std::mutex mutex;
    std::unordered_map<std::string, std::uint16_t> by_name; // aliases too
    std::vector<NameEntry> entries;                         // in order of id
    std::vector<base::RingNames*> places;
    std::atomic<std::uint16_t> end{first_interned_id};
    std::atomic<std::uint64_t> refused{0};

    NameRegistry() {
#define PLUMB_ADD_WELL_KNOWN(name, id, category, aliases) add_well_known(#name, id, Category::category, aliases);
        PLUMB_WELL_KNOWN_BRICKS(PLUMB_ADD_WELL_KNOWN)
#undef PLUMB_ADD_WELL_KNOWN
    }

    void add_well_known(const char* name, std::uint16_t id, Category category, std::string_view aliases) {
        entries.push_back({id, category, name});
        by_name.emplace(name, id);
        while (!aliases.empty()) {
            const std::size_t space = aliases.find(' ');
            by_name.emplace(std::string(aliases.substr(0, space)), id);
            aliases = space == std::string_view::npos ? std::string_view{} : aliases.substr(space + 1);
        }
    }
};

// Never destroyed: threads may intern during static destruction.
NameRegistry& name_registry() {
    static NameRegistry* instance = new NameRegistry;
    return *instance;
}

/// REQUIRES: the registry's lock.
void keep(const NameEntry& entry, base::RingNames& place) {
    const std::uint32_t used = place.used.load(std::memory_order_relaxed);
    const base::RingName head{entry.id, static_cast<std::uint16_t>(entry.category),
                              static_cast<std::uint16_t>(entry.name.size())};
    if (place.bytes - used < sizeof head + entry.name.size()) {
        return;
    }
    std::memcpy(place.text() + used, &head, sizeof head);
    std::memcpy(place.text() + used + sizeof head, entry.name.data(), entry.name.size());
    // Release: the process may die here, and whoever reads this finds what lies below.
    place.used.store(used + static_cast<std::uint32_t>(sizeof head + entry.name.size()), std::memory_order_release);
}

} // namespace

std::string shortened(std::string_view name, std::size_t longest) {
    if (name.size() <= longest) {
        return std::string(name);
    }
    return std::string(name.substr(0, longest - 17)) + '~' + base::hex_digits(code_hash(name.data(), name.size()));
}

Name intern_name(std::string_view name, Category category) {
    NameRegistry& r = name_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    const std::string key = shortened(name, longest_name);
    if (const auto found = r.by_name.find(key); found != r.by_name.end()) {
        return Name(found->second);
    }
    const std::uint16_t id = r.end.load(std::memory_order_relaxed);
    if (key.empty() || id >= name_capacity) {
        r.refused.fetch_add(1, std::memory_order_relaxed);
        return Name{};
    }
    r.entries.push_back({id, category, key});
    for (base::RingNames* place : r.places) {
        keep(r.entries.back(), *place);
    }
    r.by_name.emplace(key, id);
    // Release: whoever sees the new end finds the entry behind it (under the lock).
    r.end.store(static_cast<std::uint16_t>(id + 1), std::memory_order_release);
    return Name(id);
}

std::uint64_t refused_names() { return name_registry().refused.load(std::memory_order_relaxed); }

std::vector<NameEntry> names_from(std::uint16_t first_id) {
    NameRegistry& r = name_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    std::vector<NameEntry> result;
    for (const NameEntry& entry : r.entries) {
        if (entry.id >= first_id) {
            result.push_back(entry);
        }
    }
    return result;
}

std::uint16_t names_end() { return name_registry().end.load(std::memory_order_acquire); }

void keep_names_in(base::RingNames& place) {
    NameRegistry& r = name_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    for (const NameEntry& entry : r.entries) {
        if (entry.id >= first_interned_id) {
            keep(entry, place);
        }
    }
    r.places.push_back(&place);
}

void forget_names_in(base::RingNames& place) {
    NameRegistry& r = name_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    r.places.erase(std::remove(r.places.begin(), r.places.end(), &place), r.places.end());
}

void names_written(base::RingNames& place, std::uint16_t end) {
    NameRegistry& r = name_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    if (r.end.load(std::memory_order_relaxed) == end) {
        place.used.store(0, std::memory_order_release);
    }
}

void lock_names() { name_registry().mutex.lock(); }
void unlock_names() { name_registry().mutex.unlock(); }

} // namespace plumb::record

namespace plumb {
inline namespace v1 {
namespace detail {

// A refused name is remembered too: the lock is taken once for each place.
Name intern_site(std::atomic<std::uint32_t>& id_plus_one, const char* text) noexcept {
    const Name name = record::intern_name(text, Category::other);
    id_plus_one.store(std::uint32_t{name.id} + 1, std::memory_order_relaxed);
    return name;
}

} // namespace detail
} // namespace v1
} // namespace plumb
