// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/texts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>

#include <xxhash.h>

#include "base/layout.hpp"
#include "record/name_registry.hpp"

namespace plumb::attach::nvtx {
namespace {

constexpr std::uint32_t handle_of_others = Texts::most_texts - 1;

std::uint64_t hash_of(std::uint32_t domain, std::string_view key, bool is_mark) noexcept {
    return XXH3_64bits_withSeed(key.data(), key.size(), std::uint64_t{domain} << 1 | (is_mark ? 1 : 0));
}

Category category_named(std::string_view name) {
    for (int i = 0; i <= static_cast<int>(Category::transfer); ++i) {
        if (const auto category = static_cast<Category>(i); name == category_word(category)) {
            return category;
        }
    }
    return Category::other;
}

/// Bits of a scope's record.
std::uint64_t bits_of(Name name, const Work& work) {
    return pack(RecordKind::scope, name.id) | (std::isnan(work.flops) ? 0 : flag_work);
}

} // namespace

Texts::Texts(imported::RangeRules rules, bool (*device_met)())
    : table_(new std::atomic<const KnownRange*>[places] {}),
      registered_(new std::atomic<const KnownRange*>[most_texts] {}), device_met_(device_met),
      rules_(std::move(rules)) {
    other_.bits = bits_of(record::intern_name("other", Category::other), other_.work);
    unnamed_.bits = bits_of(record::intern_name("unnamed range", Category::other), unnamed_.work);
    registered_[handle_of_others].store(&other_, std::memory_order_release);
}

Texts::~Texts() {
    for (std::uint32_t i = 0; i < places; ++i) {
        if (const KnownRange* known = table_[i].load(std::memory_order_relaxed); known != nullptr) {
            delete[] known->text;
            delete known;
        }
    }
}

std::uint32_t Texts::domain(std::string_view name) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        const std::string known(name.substr(0, longest_text));
        if (known.empty()) {
            return 0;
        }
        if (domains_.size() + 1 >= most_domains) {
            const auto found = domains_.find(known);
            return found != domains_.end() ? found->second : most_domains;
        }
        return domains_.try_emplace(known, static_cast<std::uint32_t>(domains_.size() + 1)).first->second;
    } catch (const std::exception&) { // no memory
        return most_domains;
    }
}

void Texts::name_category(std::uint32_t domain, std::uint32_t category, std::string_view name) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        if (categories_.size() < most_categories) {
            categories_[std::uint64_t{domain} << 32 | category] = category_named(name);
        }
    } catch (const std::exception&) { // no memory: it is called "other"
        return;
    }
}

const KnownRange* Texts::look_up(std::uint64_t hash, std::uint32_t domain, std::string_view key,
                                 bool is_mark) const noexcept {
    for (std::uint64_t at = hash;; ++at) { // half of the places are free: a search ends soon
        // Acquire: who finds it finds it complete.
        const KnownRange* known = table_[at % places].load(std::memory_order_acquire);
        if (known == nullptr) {
            return nullptr;
        }
        if (known->domain == domain && known->is_mark == is_mark && known->length == key.size() &&
            std::memcmp(known->text, key.data(), key.size()) == 0) {
            return known;
        }
    }
}

const KnownRange& Texts::find(std::uint32_t domain, std::string_view text, bool is_mark, std::uint32_t category,
                              KnownRange& place) noexcept {
    try {
        if (text.empty()) {
            return unnamed_;
        }
        std::string shortened;
        const std::string_view key = rules_.key(text.substr(0, longest_text), shortened);
        const std::uint64_t hash = hash_of(domain, key, is_mark);
        const KnownRange* known = look_up(hash, domain, key, is_mark);
        return known != nullptr ? *known : settle(hash, domain, key, is_mark, category, place);
    } catch (const std::exception&) { // no memory
        return unnamed_;
    }
}

const KnownRange& Texts::settle(std::uint64_t hash, std::uint32_t domain, std::string_view key, bool is_mark,
                                std::uint32_t category, KnownRange& place) {
    const std::lock_guard lock(mutex_);
    if (const KnownRange* known = look_up(hash, domain, key, is_mark); known != nullptr) {
        return *known; // another thread was first
    }
    const bool kept = counts_.kept < most_texts && text_bytes_ + key.size() <= most_text_bytes;
    std::unique_ptr<KnownRange> made = kept ? std::make_unique<KnownRange>() : nullptr;
    KnownRange& known = kept ? *made : place;
    known.domain = domain;
    known.is_mark = is_mark;
    describe(known, key, category);
    if (!kept) {
        ++counts_.anew;
        return known;
    }
    auto text = std::make_unique<char[]>(key.size() + 1);
    std::copy(key.begin(), key.end(), text.get());
    known.length = static_cast<std::uint32_t>(key.size());
    known.text = text.release(); // the destructor frees both
    ++counts_.kept;
    text_bytes_ += key.size();
    keep(*made.release(), hash);
    return known;
}

void Texts::keep(const KnownRange& known, std::uint64_t hash) {
    std::uint64_t at = hash;
    while (table_[at % places].load(std::memory_order_relaxed) != nullptr) { // stores happen under the lock
        ++at;
    }
    // Release: who finds it finds it complete.
    table_[at % places].store(&known, std::memory_order_release);
}

Name Texts::name_of(const imported::RangeLabel& label, const KnownRange& known, std::uint32_t category) {
    const bool room = label.by_rule || counts_.own < most_own_names;
    const auto of = categories_.find(std::uint64_t{known.domain} << 32 | category);
    const Name name = !room ? Name{}
                            : record::intern_name(known.is_mark ? "mark " + label.name : label.name,
                                                  of != categories_.end() ? of->second : Category::other);
    if (name == Name{}) { // also where the names of this process are used up
        ++counts_.other;
        return other_.name();
    }
    counts_.own += !label.by_rule;
    return name;
}

void Texts::describe(KnownRange& known, std::string_view key, std::uint32_t category) {
    std::string_view domain = known.domain == most_domains ? "other" : "";
    for (const auto& [name, number] : domains_) {
        if (number == known.domain) {
            domain = name;
        }
    }
    const imported::RangeLabel label = rules_.label(domain, key);
    known.kind = label.kind;
    known.payload = label.payload;
    known.phase = label.phase;
    known.step = label.step;
    known.layer = label.layer ? static_cast<std::int32_t>(*label.layer) : no_layer;
    known.work = make_work();
    const bool is_work = label.payload == RangePayload::bytes || label.payload == RangePayload::flops ||
                         label.payload == RangePayload::elements;
    if ((is_work || !std::isnan(label.flops)) && !device_met_()) {
        known.work.flops = label.flops;
    } else if (is_work) {
        known.payload = RangePayload::none;
    }
    known.bits = bits_of(name_of(label, known, category), known.work);
}

std::uint32_t Texts::register_string(std::uint32_t domain, std::string_view text) noexcept {
    KnownRange place;
    const KnownRange& known = find(domain, text, false, 0, place);
    if (&known == &place) { // not kept
        return handle_of_others;
    }
    const std::lock_guard lock(mutex_);
    if (known.handle == 0 && handles_ + 1 < handle_of_others) {
        known.handle = ++handles_;
        registered_[known.handle].store(&known, std::memory_order_release);
    }
    return known.handle != 0 ? known.handle : handle_of_others;
}

TextCounts Texts::counts() const {
    const std::lock_guard lock(mutex_);
    TextCounts counts = counts_;
    counts.given_up = rules_.given_up();
    return counts;
}

} // namespace plumb::attach::nvtx
