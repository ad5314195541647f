// SPDX-License-Identifier: Apache-2.0
// The one process-wide table of names: well-known bricks, and names interned by users. Capped; ids are never reused, so
// they may be kept in static storage and recorded from any profiler.
// Thread rule: every function may be called from any thread; intern() takes a lock and may allocate (cold by contract).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ring_names.hpp"
#include "plumb/bricks.hpp"

namespace plumb::record {

struct NameEntry {
    std::uint16_t id;
    Category category;
    std::string name;
};

/// A longer name keeps its head, and at its end a number made of all of it: two names with one head are two.
/// REQUIRES: `longest` is more than 17.
std::string shortened(std::string_view name, std::size_t longest);
/// The id of a name or alias; a new one on first use. The same name keeps the category it was first given.
/// Name{} (0) when the registry is full or the name is empty: scopes of it are recorded as "unnamed".
Name intern_name(std::string_view name, Category category);
/// Names refused because they were empty or the registry was full.
std::uint64_t refused_names();
/// Every entry with an id of at least `first_id`, in order of id.
std::vector<NameEntry> names_from(std::uint16_t first_id);
/// One past the largest id in use; grows only. A cheap question for the drain.
std::uint16_t names_end();
/// From now on each new name is kept there too, those interned before at once, until forget_names_in(). What has no room is left out:
/// only the drain writes it then.
void keep_names_in(base::RingNames& place);
void forget_names_in(base::RingNames& place);
/// Names below `end` are in the recording: where there are no others, the place starts over.
void names_written(base::RingNames& place, std::uint16_t end);
/// Around a fork: the child must not inherit a lock that another thread held.
void lock_names();
void unlock_names();

} // namespace plumb::record
