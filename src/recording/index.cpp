// SPDX-License-Identifier: Apache-2.0
#include "recording/index.hpp"
#include "recording/retention.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "recording/check_codec.hpp"
#include "recording/chunk_scan.hpp"
#include "recording/clock_stretches.hpp"
#include "recording/graph_content_codec.hpp"
#include "recording/kernel_codec.hpp"
#include "recording/retention.hpp"

namespace plumb::recording {
namespace {

// Far more than any run has; they bound what a hostile file can make us hold.
constexpr std::size_t most_tracks = 131072;
constexpr std::size_t most_clocks = 4096;
constexpr std::size_t most_descriptions = 16384;
constexpr std::size_t most_graphs = 65536;
constexpr std::size_t most_kernels = 65536;
constexpr std::size_t most_off_cpu_samples = std::size_t{1} << 17; // three hours of ten a second
constexpr std::size_t most_kernels_of_one_hash = 256;
constexpr std::size_t most_gap_notes = 16;
constexpr std::size_t most_collision_notes = 16;

class IndexBuilder {
  public:
    explicit IndexBuilder(Index& index) : index_(index) {}

    void take(const ChunkHeader& header, const std::byte* payload, std::uint64_t offset) {
        const std::uint64_t own = header.type == ChunkType::records ? header.count : 0;
        if (header.records_before <= std::numeric_limits<std::uint64_t>::max() - own) {
            index_.records_written = std::max(index_.records_written, header.records_before + own);
        }
        index_.closed = false;
        switch (header.type) {
        case ChunkType::metadata:
            malformed_ += take_metadata(header, payload) ? 0 : 1;
            return;
        case ChunkType::tracks:
            entries<TrackInfo>(header, payload, [this](TrackInfo&& track) { add_track(std::move(track)); });
            return;
        case ChunkType::names:
            entries<NameInfo>(header, payload, [this](NameInfo&& name) { add_name(std::move(name)); });
            return;
        case ChunkType::clock_pairs:
            entries<ClockPair>(header, payload, [this](ClockPair&& pair) { index_.clock_pairs.push_back(pair); });
            return;
        case ChunkType::counters:
            entries<Counters>(header, payload, [this](Counters&& counters) { index_.counters = std::move(counters); });
            return;
        case ChunkType::descriptions:
            entries<Description>(header, payload, [this](Description&& entry) { add_description(std::move(entry)); });
            return;
        case ChunkType::removed:
            entries<Removal>(header, payload, [this](Removal&& removal) { removals_[removal.track] = removal; });
            return;
        case ChunkType::records:
        case ChunkType::carried:
            malformed_ += add_records(header, payload, offset + chunk_header_size) ? 0 : 1;
            return;
        case ChunkType::recovered:
            index_.records_recovered += header.count;
            index_.recovered = true;
            return;
        case ChunkType::closed:
            index_.closed = true;
            return;
        case ChunkType::graphs:
            entries<StoredGraph>(header, payload, [this](StoredGraph&& entry) { add_graph(std::move(entry)); });
            return;
        case ChunkType::graph_nodes:
            entries<ContentEntry>(header, payload, [this](ContentEntry&& entry) { add_content(std::move(entry)); });
            return;
        case ChunkType::kernels:
            entries<KernelInfo>(header, payload, [this](KernelInfo&& kernel) { add_kernel(std::move(kernel)); });
            return;
        case ChunkType::checks:
            malformed_ += add_checks(header, payload, offset + chunk_header_size) ? 0 : 1;
            return;
        case ChunkType::off_cpu:
            entries<OffCpuSample>(header, payload, [this](OffCpuSample&& sample) {
                index_.off_cpu.push_back(std::move(sample));
                thin_out(index_.off_cpu, most_off_cpu_samples);
            });
            return;
        case ChunkType::tiles:
            malformed_ += add_tiles(header, payload) ? 0 : 1;
            return;
        }
        ++unknown_;
    }

    void set_preamble_damaged() { preamble_damaged_ = true; }
    [[nodiscard]] bool preamble_is_damaged() const { return preamble_damaged_; }

    /// Of what was taken so far; `size` is how far the scan went. May be called again behind more.
    void finish(const ScanOutcome& part, std::uint64_t size) {
        scan_.damaged_places += part.damaged_places;
        scan_.damaged_bytes += part.damaged_bytes;
        scan_.torn_bytes = part.torn_bytes;
        const ScanOutcome& scan = scan_;
        index_.notes.clear();
        index_.records_removed = 0;
        if (preamble_damaged_) {
            note("the first " + std::to_string(preamble_size) + " bytes are damaged");
        }
        index_.end = size - scan.torn_bytes;
        index_.torn_bytes = scan.torn_bytes;
        for (const auto& [track, removal] : removals_) {
            index_.records_removed +=
                std::min(removal.records, std::numeric_limits<std::uint64_t>::max() - index_.records_removed);
        }
        if (!index_.has_metadata) {
            note("the description of the run is damaged: clocks, host and shapes are unknown");
        }
        if (scan.damaged_places != 0) {
            note(std::to_string(scan.damaged_bytes) + " bytes in " + std::to_string(scan.damaged_places) +
                 (scan.damaged_places == 1 ? " place are damaged and were skipped"
                                           : " places are damaged and were skipped"));
        }
        if (scan.torn_bytes != 0) {
            note("the last " + std::to_string(scan.torn_bytes) +
                 " bytes are an unfinished chunk: the process ended, or the disk filled, while it was written");
        }
        note_clocks();
        note_lost_records();
        note_checks();
        note_if(malformed_, " chunks hold what no writer writes and were skipped");
        note_if(unknown_, " chunks are of kinds that this version does not know and were skipped");
        note_if(listless_, " graph rows refer to an entry that is lost: what those graphs consist of is not known");
        note_if(contentless_.size(),
                " captured graphs have lost the table of their nodes: only their scopes are known");
        note_if(too_many_graphs_, " graph rows beyond the first 65536 keys were left out");
        note_if(too_many_tiles_, " totals of tiles beyond the first 65536 tiles were left out");
        note_if(too_many_kernels_, " kernels beyond the first 65536, or 256 of one code hash, were left out");
        note_collisions();
        note_if(repeated_, " records were there twice; each is used once");
        note_if(index_.records_removed, " older records were removed to keep the recording within max_size= or keep=");
        note_if(index_.records_recovered,
                " records were recovered from the ring of a process that had not written them");
    }

  private:
    template <class T, class Take>
    void entries(const ChunkHeader& header, const std::byte* payload, Take&& take) {
        if (!for_each_entry<T>(payload, header.payload_size, std::forward<Take>(take))) {
            ++malformed_;
        }
    }

    bool take_metadata(const ChunkHeader& header, const std::byte* payload) {
        Metadata metadata;
        if (index_.has_metadata || !decode(payload, header.payload_size, metadata)) {
            return false;
        }
        index_.metadata = std::move(metadata);
        index_.has_metadata = true;
        return true;
    }

    void add_track(TrackInfo&& track) {
        if (index_.tracks.size() < most_tracks && known_tracks_.emplace(track.id, true).second) {
            add_clock(track);
            index_.tracks.push_back(std::move(track));
        }
    }

    /// The metadata is written before any device is met.
    void add_clock(const TrackInfo& track) {
        std::vector<ClockInfo>& clocks = index_.metadata.clocks;
        if (!track.clock_name.empty() && clocks.size() < most_clocks &&
            std::none_of(clocks.begin(), clocks.end(), [&](const ClockInfo& c) { return c.id == track.clock; })) {
            clocks.push_back({track.clock, track.clock_name});
        }
    }

    void add_name(NameInfo&& name) {
        if (known_names_.emplace(name.id, true).second) {
            index_.names.push_back(std::move(name));
        }
    }

    void add_description(Description&& entry) {
        const auto known = known_keys_.find(entry.first);
        if (known != known_keys_.end()) {
            index_.descriptions[known->second].second = std::move(entry.second);
        } else if (index_.descriptions.size() < most_descriptions) {
            known_keys_.emplace(entry.first, index_.descriptions.size());
            index_.descriptions.push_back(std::move(entry));
        }
    }

    /// REQUIRES: a row of this key follows. Until then it is held; the last one of a key stays.
    void add_content(ContentEntry&& entry) {
        if (contents_.size() < most_graphs || contents_.count(entry.key) != 0) {
            contents_[entry.key] = std::move(entry);
        }
    }

    void attach_content(StoredGraph& entry) {
        contentless_.erase(entry.row.key);
        if (entry.content == 0) {
            return;
        }
        const auto found = contents_.find(entry.row.key);
        if (found != contents_.end() && found->second.number == entry.content) {
            entry.row.content = found->second.content;
        } else if (contentless_.size() < most_graphs) {
            contentless_.insert(entry.row.key);
        }
    }

    void add_graph(StoredGraph&& entry) {
        attach_content(entry);
        const auto known = known_graphs_.find(entry.row.key);
        if (known != known_graphs_.end()) {
            GraphInfo& row = index_.graphs[known->second];
            if (entry.lists_kept) {
                take_lists(entry.row, row);
            }
            row = std::move(entry.row);
        } else if (index_.graphs.size() < most_graphs) {
            listless_ += entry.lists_kept ? 1 : 0;
            known_graphs_.emplace(entry.row.key, index_.graphs.size());
            index_.graphs.push_back(std::move(entry.row));
        } else {
            ++too_many_graphs_;
        }
    }

    void add_kernel(KernelInfo&& kernel) {
        std::vector<std::size_t>& same_hash = known_kernels_[kernel.code_hash];
        for (const std::size_t known : same_hash) {
            if (index_.kernels[known].name == kernel.name && !collide(index_.kernels[known], kernel)) {
                return;
            }
        }
        if (index_.kernels.size() >= most_kernels || same_hash.size() >= most_kernels_of_one_hash) {
            ++too_many_kernels_;
            return;
        }
        for (const std::size_t known : same_hash) {
            if (collide(index_.kernels[known], kernel)) {
                if (collisions_.size() < most_collision_notes) {
                    collisions_.push_back(collision_text(index_.kernels[known], kernel));
                }
                break;
            }
        }
        same_hash.push_back(index_.kernels.size());
        index_.kernels.push_back(std::move(kernel));
    }

    void note_collisions() {
        for (const std::string& text : collisions_) {
            note(text);
        }
    }

    bool add_records(const ChunkHeader& header, const std::byte* payload, std::uint64_t offset) {
        if (header.codec != Codec::columns || header.count == 0 || header.count > max_chunk_records ||
            header.first_sequence > std::numeric_limits<std::uint64_t>::max() - header.count) {
            return false;
        }
        const std::uint64_t end = header.first_sequence + header.count;
        const auto [entry, first] = index_.next_sequence.emplace(header.track, header.first_sequence);
        std::uint64_t& next = entry->second;
        const bool carried = header.type == ChunkType::carried;
        present_ += carried ? 0 : header.count;
        std::uint32_t skip = 0;
        if (header.first_sequence < next) {
            const std::uint64_t overlap = std::min<std::uint64_t>(next - header.first_sequence, header.count);
            skip = static_cast<std::uint32_t>(overlap);
            repeated_ += overlap;
        } else if (header.first_sequence > next && !first) {
            note_gap(header.track, header.first_sequence - next);
        }
        if (skip < header.count) {
            index_.places.push_back({offset,
                                     header.payload_checksum,
                                     header.first_sequence,
                                     header.payload_size,
                                     header.track,
                                     header.count,
                                     skip,
                                     header.written_ns,
                                     0,
                                     {}});
            RecordPlace& place = index_.places.back();
            const std::byte* bounds = payload + header.payload_size - std::min(header.bounds_size, header.payload_size);
            if (header.bounds_size <= header.payload_size && read_bounds(bounds, header.bounds_size, place.bounds)) {
                place.bounds_size = header.bounds_size;
            }
            next = end;
        }
        return true;
    }

    bool add_checks(const ChunkHeader& header, const std::byte* payload, std::uint64_t offset) {
        const std::size_t plain = unfolded_size(header.codec, payload, header.payload_size);
        if (header.count > plain / least_check_entry ||
            header.first_sequence > std::numeric_limits<std::uint64_t>::max() - header.count) {
            return false;
        }
        if (header.first_sequence > next_check_) {
            (header.count == 0 ? index_.checks_removed : checks_lost_) += header.first_sequence - next_check_;
            next_check_ = header.first_sequence;
        }
        const std::uint64_t repeated = std::min<std::uint64_t>(next_check_ - header.first_sequence, header.count);
        if (repeated < header.count) {
            index_.check_places.push_back({offset, header.payload_checksum, header.payload_size, header.count,
                                           static_cast<std::uint32_t>(repeated), header.codec});
            index_.checks += header.count - repeated;
            next_check_ = header.first_sequence + header.count;
        }
        return true;
    }

    bool add_tiles(const ChunkHeader& header, const std::byte* payload) {
        if (header.codec != Codec::plain || header.first_sequence < index_.tile_generation) {
            return false;
        }
        if (header.first_sequence != index_.tile_generation) {
            index_.tile_map.clear(); // reset() cleared what came before
            index_.tile_generation = header.first_sequence;
        }
        return decode_tiles(payload, header.payload_size, header.count,
                            [this](const TileTotals& tile) { too_many_tiles_ += index_.tile_map.set(tile) ? 0 : 1; });
    }

    void note_gap(std::uint32_t track, std::uint64_t missing) {
        if (gaps_.size() < most_gap_notes) {
            gaps_.emplace_back(track, missing);
        }
    }

    void note_lost_records() {
        const std::uint64_t accounted = present_ + index_.records_removed;
        if (index_.records_written > accounted) {
            note(std::to_string(index_.records_written - accounted) + " of " + std::to_string(index_.records_written) +
                 " records are lost");
        }
        for (const auto& [track, missing] : gaps_) {
            note(index_.track_name(track) + " misses " + std::to_string(missing) + " records");
        }
    }

    void note_clocks() {
        std::set<std::uint32_t> clocks;
        for (const ClockPair& pair : index_.clock_pairs) {
            clocks.insert(pair.clock);
        }
        for (const std::uint32_t clock : clocks) {
            if (std::string sentence = stretches_of(index_.clock_pairs, clock).jumped; !sentence.empty()) {
                note(std::move(sentence));
            }
        }
    }

    void note_checks() {
        const std::uint64_t end = std::max(next_check_, index_.counters.checks);
        note_if(checks_lost_ + (end - next_check_), " checks of tensors are lost");
        note_if(index_.checks_removed,
                " older checks of tensors were removed to keep the recording within max_size= or keep=");
    }

    void note(std::string text) { index_.notes.push_back(std::move(text)); }
    void note_if(std::uint64_t count, const char* text) {
        if (count != 0) {
            note(std::to_string(count) + text);
        }
    }

    Index& index_;
    ScanOutcome scan_;
    bool preamble_damaged_ = false;
    std::unordered_map<std::uint32_t, bool> known_tracks_;
    std::unordered_map<std::uint16_t, bool> known_names_;
    std::unordered_map<std::string, std::size_t> known_keys_;
    std::unordered_map<std::uint64_t, std::size_t> known_graphs_;
    std::unordered_map<std::uint64_t, ContentEntry> contents_; // by key
    std::unordered_set<std::uint64_t> contentless_;            // keys
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> known_kernels_;
    std::vector<std::string> collisions_;
    std::unordered_map<std::uint32_t, Removal> removals_;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> gaps_;
    std::uint64_t next_check_ = 0;
    std::uint64_t checks_lost_ = 0;
    std::uint64_t present_ = 0;
    std::uint64_t repeated_ = 0;
    std::uint64_t malformed_ = 0;
    std::uint64_t unknown_ = 0;
    std::uint64_t listless_ = 0;
    std::uint64_t too_many_graphs_ = 0;
    std::uint64_t too_many_tiles_ = 0;
    std::uint64_t too_many_kernels_ = 0;
};

Error no_recording(const std::string& path) {
    return {ErrorCode::corrupt, path + " is no plumb recording: name a file that a profiled run wrote"};
}

} // namespace

const TrackInfo* Index::track(std::uint32_t id) const {
    const auto found = std::find_if(tracks.begin(), tracks.end(), [id](const TrackInfo& t) { return t.id == id; });
    return found == tracks.end() ? nullptr : &*found;
}

std::string Index::track_name(std::uint32_t id) const {
    const TrackInfo* known = track(id);
    std::string name = "track " + std::to_string(id);
    return known == nullptr || known->name.empty() ? name : name + " (" + known->name + ")";
}

struct GrowingIndex::State {
    Index index;
    IndexBuilder builder{index};
    bool begun = false;

    Status begin(ByteSource& source, const std::string& path);
};

GrowingIndex::GrowingIndex() : state_(std::make_unique<State>()) {}
GrowingIndex::GrowingIndex(GrowingIndex&&) noexcept = default;
GrowingIndex& GrowingIndex::operator=(GrowingIndex&&) noexcept = default;
GrowingIndex::~GrowingIndex() = default;

Index& GrowingIndex::index() { return state_->index; }

Status GrowingIndex::State::begin(ByteSource& source, const std::string& path) {
    Preamble preamble;
    const std::byte* head = source.view(0, preamble_size);
    const PreambleState state = head == nullptr ? PreambleState::foreign : read_preamble(head, preamble);
    if (state == PreambleState::foreign) {
        // Eight flipped bytes must not cost a whole run: chunks that hold are proof enough.
        const std::byte* first = source.view(preamble_size, chunk_header_size);
        ChunkHeader header;
        if (first == nullptr || !read_chunk_header(first, header)) {
            return no_recording(path);
        }
    }
    if (state == PreambleState::good && preamble.version != format_version) {
        const bool newer = preamble.version > format_version;
        return Error{newer ? ErrorCode::unsupported : ErrorCode::corrupt,
                     path + " has format version " + std::to_string(preamble.version) + ", this program reads " +
                         std::to_string(format_version) + ": " +
                         (newer ? "use a newer plumb" : "no such version was ever made")};
    }
    if (state != PreambleState::good) {
        builder.set_preamble_damaged();
    }
    index.end = preamble_size;
    begun = true;
    return {};
}

Status GrowingIndex::grow(ByteSource& source, const std::string& path) {
    State& state = *state_;
    if (!state.begun) {
        if (Status begun = state.begin(source, path); !begun) {
            return begun;
        }
    }
    const ScanOutcome scan = scan_chunks(
        source,
        [&state](const ChunkHeader& header, const std::byte* payload, std::uint64_t offset) {
            state.builder.take(header, payload, offset);
        },
        state.index.end);
    state.builder.finish(scan, source.size());
    const Index& index = state.index;
    if (state.builder.preamble_is_damaged() && !index.has_metadata && index.next_sequence.empty()) {
        return no_recording(path);
    }
    return {};
}

Result<Index> read_index(ByteSource& source, const std::string& path) {
    GrowingIndex growing;
    if (Status grown = growing.grow(source, path); !grown) {
        return grown.error();
    }
    return std::move(growing.index());
}

bool read_records(ByteSource& source, RecordDecoder& decoder, const RecordPlace& place, Record* to) {
    const std::byte* payload = source.view(place.offset, place.payload_size);
    // Checked again, because a file may have changed since it was opened.
    return payload != nullptr && checksum(payload, place.payload_size) == place.checksum &&
           decoder.decode(payload, place.payload_size, place.count, to);
}

} // namespace plumb::recording
