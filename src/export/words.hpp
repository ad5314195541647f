// SPDX-License-Identifier: Apache-2.0
// The words that every format writes for names, phases, categories and kinds. Built once per export; read-only after.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_writer.hpp"
#include "export/sample_feed.hpp"

namespace plumb::exporting {

[[nodiscard]] std::string_view kind_word(resolve::SampleKind kind) noexcept;

[[nodiscard]] inline std::string_view kind_word(const resolve::Submission& submission) noexcept {
    return submission.graph ? "launch" : "submit";
}

[[nodiscard]] std::string_view kind_word(resolve::RecordedKind kind) noexcept;
/// What a transfer is called: the brick of such a copy.
[[nodiscard]] Name name_of(TransferDirection direction) noexcept;

/// Keys of the captured graphs by the track that holds samples of them.
using GraphTracks = std::unordered_map<std::uint32_t, std::uint64_t>;
[[nodiscard]] GraphTracks graph_tracks(const std::vector<recording::TrackInfo>& tracks);

/// Marks of a sample or submission, as words.
struct MarkWord {
    bool set;
    std::string_view word;
};
using Marks = std::array<MarkWord, 6>;
[[nodiscard]] Marks marks_of(const resolve::Sample& sample) noexcept;
[[nodiscard]] Marks marks_of(const resolve::Submission& submission) noexcept;
[[nodiscard]] Marks marks_of(const resolve::RecordedNode& node) noexcept;

/// Names by id: those of the recording, the well-known bricks, and "name 1234" for an id that nobody explains.
class NameWords {
  public:
    explicit NameWords(const std::vector<recording::NameInfo>& names);
    struct Entry {
        std::string name;
        Category category = Category::other;
    };
    [[nodiscard]] Entry entry(std::uint16_t id) const;

  private:
    std::vector<Entry> entries_; // by id; empty name: unknown
};

/// Formatted once per id: what a format writes for a name.
class NameText {
  public:
    using Format = std::string (*)(const NameWords::Entry&);
    NameText(const NameWords& names, Format format) : names_(names), format_(format) {}
    [[nodiscard]] const std::string& operator()(std::uint16_t id) {
        if (id >= texts_.size()) {
            texts_.resize(std::size_t{id} + 1);
        }
        std::string& text = texts_[id];
        if (text.empty()) {
            text = format_(names_.entry(id));
        }
        return text;
    }

  private:
    const NameWords& names_;
    Format format_;
    std::vector<std::string> texts_;
};

/// Of slices that a trace does not hold.
[[nodiscard]] std::string left_out_note(std::uint64_t slices);

/// A list of {"key": …, "value": …}.
void put_pairs(base::JsonWriter& json, std::string_view name,
               const std::vector<std::pair<std::string, std::string>>& pairs);

} // namespace plumb::exporting
