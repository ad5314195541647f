// SPDX-License-Identifier: Apache-2.0
// Leads the slots of one family of functions to hooks of ours, and keeps what each hook calls behind it. A process may hold several
// copies of such functions (two versions of one library), and a slot cannot say whose it is: each copy has hooks of its own.
// Thread rule: one call at a time for each family.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "attach/slots.hpp"

namespace plumb::attach {

struct SlotFamily {
    std::span<const char* const> symbols;
    const char* whose; // in sentences: "the engine's"
    /// Where slots of that symbol lead, for callers of that copy.
    std::function<void*(std::size_t copy, std::size_t symbol)> hook;
    /// What that hook calls; null at first. Written before a slot leads to the hook. No function of the loader is called here.
    std::function<void*&(std::size_t copy, std::size_t symbol)> original;
};

inline constexpr std::size_t no_copy = static_cast<std::size_t>(-1);

/// A library with slots of a family.
struct Caller {
    std::size_t copy = no_copy; // whose functions it calls; no_copy: its slots stay as they are
    std::vector<void*> found;   // each symbol, as this library finds it; null: stays as it is
};

/// `callers` has one entry for each library. What other tools put into a slot is called as before, behind the hook, and a sentence says
/// so; another one says if the system refused.
void wire(const SlotFamily& family, std::span<const Pinned> libraries, std::span<const Caller> callers);

/// Lets one thread at a time look at what was loaded. Kept for good.
class LookLock {
  public:
    LookLock();
    /// Owns nothing in a forked child whose parent was looking, on a thread that the child does not have: no look is whole there any more.
    [[nodiscard]] std::unique_lock<std::mutex> take();

  private:
    static void in_child();

    std::mutex mutex_;
    bool abandoned_ = false;
    LookLock* next_ = nullptr;
};

/// The function that a caller would have reached if ours had not been in its way.
[[nodiscard]] void* original_for(const char* symbol, const void* caller);

} // namespace plumb::attach
