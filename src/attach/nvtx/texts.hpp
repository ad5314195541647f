// SPDX-License-Identifier: Apache-2.0
// What the texts of ranges mean: settled once a text, and found again by the text. Bounded: what comes beyond is settled each time, and
// names that no rule knows are one brick, "other".
// Thread rule: any thread. find() takes no lock for a text that is known; else it allocates, and takes one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "import/rules/range_rules.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::nvtx {

using imported::RangeKind;
using imported::RangePayload;

inline constexpr std::size_t longest_text = 4096; // what comes behind is not looked at
inline constexpr std::int32_t no_layer = -1;

/// One text of one domain, and what a range of that name is. Never changes, and lives as long as its Texts.
struct KnownRange {
    const char* text = ""; // as it came, ends with a zero
    std::uint32_t length = 0;
    std::uint32_t domain = 0;
    bool is_mark = false;
    RangeKind kind = RangeKind::brick;
    RangePayload payload = RangePayload::none;
    Phase phase = Phase::none;
    std::int32_t layer = no_layer;
    std::uint64_t bits = 0; // of the record of a scope: kind, name, and whether work is known
    Work work = make_work();
    detail::StepValues step;
    mutable std::uint32_t handle = 0; // as a registered string, under the lock of Texts; 0: it is none

    [[nodiscard]] Name name() const noexcept { return Name(static_cast<std::uint16_t>(bits >> detail::id_shift)); }
};

/// How texts came out.
struct TextCounts {
    std::uint64_t kept = 0;     // texts that were settled once
    std::uint64_t anew = 0;     // times that a text was settled which there was no room for
    std::uint64_t own = 0;      // names that no rule knew, each a brick
    std::uint64_t other = 0;    // times that a name was one too many, and became "other"
    std::uint64_t given_up = 0; // rules that took too many steps
};

class Texts {
  public:
    static constexpr std::uint32_t most_texts = 1 << 16;
    static constexpr std::size_t most_text_bytes = std::size_t{16} << 20;
    static constexpr std::uint32_t most_own_names = 4096;
    static constexpr std::uint32_t most_domains = 1024;
    static constexpr std::size_t most_categories = 4096;

    /// `device_met`: whether the process may hand work to a device by now. A range is time of the host, so the work in it says
    /// nothing of a rate there, and is left out. Called under our lock.
    Texts(imported::RangeRules rules, bool (*device_met)());
    /// REQUIRES: nobody holds what find() gave. In a process that is recorded there is always somebody.
    ~Texts();
    Texts(const Texts&) = delete;
    Texts& operator=(const Texts&) = delete;

    /// The domain of that name, from 1; 0 is the default one. Those beyond the bound share one.
    [[nodiscard]] std::uint32_t domain(std::string_view name) noexcept;
    /// A number that the program uses for a category of its ranges in that domain.
    void name_category(std::uint32_t domain, std::uint32_t category, std::string_view name) noexcept;

    /// `place` is filled, and given back, where the text cannot be kept: it must live as long as what it is used for.
    [[nodiscard]] const KnownRange& find(std::uint32_t domain, std::string_view text, bool is_mark,
                                         std::uint32_t category, KnownRange& place) noexcept;
    /// For a range that has no name.
    [[nodiscard]] const KnownRange& unnamed() const noexcept { return unnamed_; }

    /// A number, from 1, by which the text is found at once. Those beyond the bound share one.
    [[nodiscard]] std::uint32_t register_string(std::uint32_t domain, std::string_view text) noexcept;
    /// Null: no text has that number.
    [[nodiscard]] const KnownRange* registered(std::uint64_t handle) const noexcept {
        // Acquire: who finds it finds it complete.
        return handle < most_texts ? registered_[handle].load(std::memory_order_acquire) : nullptr;
    }

    [[nodiscard]] TextCounts counts() const;

  private:
    static constexpr std::uint32_t places = 2 * most_texts;

    [[nodiscard]] const KnownRange* look_up(std::uint64_t hash, std::uint32_t domain, std::string_view key,
                                            bool is_mark) const noexcept;
    const KnownRange& settle(std::uint64_t hash, std::uint32_t domain, std::string_view key, bool is_mark,
                             std::uint32_t category, KnownRange& place);
    void describe(KnownRange& known, std::string_view key, std::uint32_t category);
    [[nodiscard]] Name name_of(const imported::RangeLabel& label, const KnownRange& known, std::uint32_t category);
    void keep(const KnownRange& known, std::uint64_t hash);

    std::unique_ptr<std::atomic<const KnownRange*>[]> table_;      // by hash; null: free
    std::unique_ptr<std::atomic<const KnownRange*>[]> registered_; // by handle

    bool (*device_met_)();
    mutable std::mutex mutex_; // of all below
    imported::RangeRules rules_;
    std::unordered_map<std::string, std::uint32_t> domains_;
    std::unordered_map<std::uint64_t, Category> categories_; // by domain and number
    std::uint32_t handles_ = 0;
    std::size_t text_bytes_ = 0;
    TextCounts counts_;
    KnownRange other_, unnamed_;
};

} // namespace plumb::attach::nvtx
