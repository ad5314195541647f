// SPDX-License-Identifier: Apache-2.0
#include "recording/reader.hpp"

#include <algorithm>
#include <map>
#include <system_error>

#include "base/os.hpp"
#include "recording/check_codec.hpp"
#include "recording/decode_ahead.hpp"
#include "recording/format.hpp"
#include "recording/index.hpp"
#include "recording/place_selection.hpp"
#include "recording/record_codec.hpp"
#include "recording/ring_merge.hpp"

namespace plumb::recording {

struct Reader::State {
    std::string path;
    ByteSource source;
    Index index;
    RingMerge ring;
    RecordDecoder decoder;
    CheckDecoder check_decoder;
    ReadAhead ahead = ReadAhead::never; // memory belongs to a live run, and so do its cores
    bool losses_noted = false;
    bool check_losses_noted = false;

    State(std::string name, ByteSource from) : path(std::move(name)), source(std::move(from)) {}

    void note(std::string text) { index.notes.push_back(std::move(text)); }
    void note_end();
    bool decode(const RecordPlace& place, Record* to);
    [[nodiscard]] bool reads_ahead() const {
        return ahead == ReadAhead::always || (ahead == ReadAhead::when_it_pays && DecodeAhead::pays(index.places));
    }
    [[nodiscard]] std::unique_ptr<DecodeAhead> decode_ahead(const std::vector<RecordPlace>& places);
    void load_carried(SelectedPlaces& selected);
    /// `part` null: every place.
    Status for_each_batch(const SelectedPlaces* part, const std::function<bool(const RecordBatch&)>& take);
};

void Reader::State::note_end() {
    if (index.being_written) {
        note("the recording is still being written: later records are missing");
    } else if (ring.found) {
        if (ring.records != 0) {
            note(std::to_string(ring.records) + " records come from the ring of a process that had not written them: "
                                                "plumb recover puts them into the recording for good");
        }
    } else if (!index.closed && !index.recovered) {
        note(
            index.metadata.ring_path.empty()
                ? "the process ended without closing the recording, and its rings lay in its own memory: its last records are lost"
                : "the process ended without closing the recording, and its ring is gone: its last records may be missing");
    }
}

bool Reader::State::decode(const RecordPlace& place, Record* to) { return read_records(source, decoder, place, to); }

/// Null where this thread decodes by itself. Two threads: where nothing but decoding takes time, as in a first pass, one
/// would leave a core idle.
std::unique_ptr<DecodeAhead> Reader::State::decode_ahead(const std::vector<RecordPlace>& places) {
    if (ahead != ReadAhead::always && (ahead == ReadAhead::never || !DecodeAhead::pays(places))) {
        return nullptr;
    }
    const auto other = std::make_shared<std::pair<ByteSource, RecordDecoder>>(source, RecordDecoder());
    try {
        return std::make_unique<DecodeAhead>(
            places,
            std::vector<DecodeAhead::Decode>{[this](const RecordPlace& place, Record* to) { return decode(place, to); },
                                             [other](const RecordPlace& place, Record* to) {
                                                 return read_records(other->first, other->second, place, to);
                                             }});
    } catch (const std::system_error&) { // no more threads for this process: it goes without
        return nullptr;
    }
}

namespace {

/// Threads that a program gave no names all have that of the program.
void tell_threads_apart(std::vector<TrackInfo>& tracks) {
    std::map<std::string, std::size_t> of_name;
    for (const TrackInfo& track : tracks) {
        of_name[track.name] += track.kind == TrackKind::host_thread ? 1 : 0;
    }
    for (TrackInfo& track : tracks) {
        if (track.kind == TrackKind::host_thread && of_name[track.name] > 1) {
            track.name += " (" + std::to_string(track.id) + ")";
        }
    }
}

} // namespace

Reader::Reader(std::shared_ptr<State> state) : state_(std::move(state)), facts_(state_, &state_->index) {
    tell_threads_apart(facts_->tracks);
    facts_->tiles = state_->index.tile_map.sorted();
    facts_->records = facts_->unindexed_records = state_->ring.records;
    for (const RecordPlace& place : state_->index.places) {
        facts_->records += place.count - place.skip;
        facts_->unindexed_records += place.bounds_size == 0 ? place.count - place.skip : 0;
    }
}

bool Reader::reads_ahead() const { return state_->reads_ahead(); }

Result<Reader> Reader::open(const std::string& path, ReadOptions options) {
    std::uint64_t size = 0;
    Result<FileHandle> file = open_to_read(path, size);
    if (!file) {
        return file.error();
    }
    auto state = std::make_shared<State>(path, ByteSource(std::move(*file), size));
    state->ahead = options.ahead;
    Result<Index> index = read_index(state->source, path);
    if (!index) {
        return index.error();
    }
    state->index = std::move(*index);
    state->index.being_written = may_run(writer_of(state->index.metadata)) && is_locked(state->source.file());
    if (!state->index.being_written && options.merge_ring) {
        state->ring = merge_ring(state->index);
    }
    if (state->index.being_written || options.merge_ring) {
        state->note_end();
    }
    return Reader(std::move(state));
}

Result<Reader> Reader::from_bytes(std::shared_ptr<const Bytes> bytes) {
    auto state = std::make_shared<State>("this recording", ByteSource(std::move(bytes)));
    Result<Index> index = read_index(state->source, state->path);
    if (!index) {
        return index.error();
    }
    state->index = std::move(*index);
    return Reader(std::move(state));
}

void Reader::State::load_carried(SelectedPlaces& selected) {
    selected.carried.resize(selected.places.size());
    for (std::size_t i = 0; i < selected.places.size(); ++i) {
        const RecordPlace& place = selected.places[i];
        const std::uint64_t offset = place.offset + place.payload_size - place.bounds_size;
        const std::byte* const bounds = selected.begins_anew[i] ? source.view(offset, place.bounds_size) : nullptr;
        if (bounds != nullptr) {
            selected.carried[i] = read_carried(bounds, place.bounds_size);
        }
    }
}

Status Reader::for_each_batch(const std::function<bool(const RecordBatch&)>& take) {
    return state_->for_each_batch(nullptr, take);
}

std::optional<Reader::Batches> Reader::batches_of(const StepRanges& steps, std::uint64_t first_decode_steps) {
    std::vector<std::uint32_t> continued;
    for (const RingRemainder& ring : state_->ring.rings) {
        continued.push_back(ring.track);
    }
    std::optional<SelectedPlaces> selected = select_places(state_->index.places, steps, first_decode_steps, continued);
    if (!selected) {
        return std::nullopt;
    }
    state_->load_carried(*selected);
    return [state = state_, part = std::make_shared<const SelectedPlaces>(std::move(*selected))](
               const std::function<bool(const RecordBatch&)>& take) {
        return state->for_each_batch(part.get(), take);
    };
}

Status Reader::State::for_each_batch(const SelectedPlaces* part, const std::function<bool(const RecordBatch&)>& take) {
    const std::vector<RecordPlace>& places = part != nullptr ? part->places : index.places;
    std::uint64_t unreadable = 0;
    const auto give = [&](const RecordPlace& place, bool readable, const Record* records) {
        if (!readable) {
            unreadable += place.count - place.skip;
            return true;
        }
        const auto number = static_cast<std::size_t>(&place - places.data());
        bool begins_anew = part != nullptr && part->begins_anew[number];
        if (begins_anew && !part->carried[number].empty()) {
            const std::vector<Record>& carried = part->carried[number];
            begins_anew = false;
            if (!take({place.track, place.first_sequence - carried.size(), carried.data(), carried.size(), true})) {
                return false;
            }
        }
        return take({place.track, place.first_sequence + place.skip, records + place.skip, place.count - place.skip,
                     begins_anew});
    };
    if (const auto ahead_of_us = decode_ahead(places)) {
        while (const DecodeAhead::Chunk* chunk = ahead_of_us->next()) {
            if (!give(*chunk->place, chunk->readable, chunk->records)) {
                return {};
            }
        }
    } else {
        std::vector<Record> records;
        for (const RecordPlace& place : places) {
            records.resize(std::max<std::size_t>(records.size(), place.count));
            const bool readable = decode(place, records.data());
            if (!give(place, readable, records.data())) {
                return {};
            }
        }
    }
    for (const RingRemainder& rest : ring.rings) {
        if (!take({rest.track, rest.first_sequence, rest.records.data(), rest.records.size()})) {
            return {};
        }
    }
    if (unreadable != 0 && !losses_noted) {
        note(std::to_string(unreadable) + " records could not be decoded and are lost");
    }
    losses_noted = true;
    return {};
}

Status Reader::for_each_check(const std::function<bool(TensorCheck&&)>& take) {
    State& state = *state_;
    std::uint64_t unreadable = 0;
    for (const CheckChunk& place : state.index.check_places) {
        const std::byte* payload = state.source.view(place.offset, place.payload_size);
        CheckDecoder::Outcome outcome;
        if (payload != nullptr && checksum(payload, place.payload_size) == place.checksum) {
            outcome =
                state.check_decoder.decode(place.codec, payload, place.payload_size, place.count, place.skip, take);
        }
        if (outcome.stopped) {
            return {};
        }
        unreadable += place.count - place.skip - outcome.read;
    }
    if (unreadable != 0 && !state.check_losses_noted) {
        state.note(std::to_string(unreadable) + " checks of tensors could not be decoded and are lost");
    }
    state.check_losses_noted = true;
    return {};
}

std::uint64_t Reader::checks_count() const { return state_->index.checks; }

} // namespace plumb::recording
