// SPDX-License-Identifier: Apache-2.0
#include "recording/writer.hpp"

#include <time.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "recording/check_codec.hpp"
#include "recording/chunk_bounds.hpp"
#include "recording/descriptions.hpp"
#include "recording/format.hpp"
#include "recording/graph_codec.hpp"
#include "recording/graph_content_codec.hpp"
#include "recording/kernel_codec.hpp"
#include "recording/metadata_codec.hpp"
#include "recording/observer.hpp"
#include "recording/record_codec.hpp"
#include "recording/retention.hpp"
#include "recording/tile_codec.hpp"

namespace plumb::recording {
namespace {

/// Rows of more graph keys than this are written in full each time, and a bounded recording forgets them.
constexpr std::size_t most_graphs_known = 16384;
/// Entries that a shorter file would not hold may take a quarter of a bounded recording, and so much in any case.
constexpr std::uint64_t least_stale_bytes = std::uint64_t{1} << 16;
constexpr std::uint64_t stale_share = 4;
/// Samples of off-CPU time: so many, in this share of max_size=, or in so many bytes where there is no such bound.
constexpr std::uint64_t most_off_cpu_samples = 4096;
constexpr std::uint64_t least_off_cpu_samples = 4;
constexpr std::uint64_t off_cpu_share = 8;
constexpr std::uint64_t most_off_cpu_bytes = std::uint64_t{1} << 22;
/// A chunk holds records of up to this long before it was written.
constexpr std::int64_t chunk_span_ns = 1'000'000'000;
/// Source texts of kernels, which no limit removes, may take this share of max_size=.
constexpr std::uint64_t source_share = 8;
constexpr std::uint64_t content_share = 8;
/// Records of one append, before they are packed, likewise.
constexpr std::uint64_t append_share = 8;

std::int64_t monotonic_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

template <class T>
void append_entries(Bytes& to, ChunkHeader header, const std::vector<T>& entries) {
    Bytes payload;
    std::uint32_t count = 0;
    const auto flush = [&] {
        if (count != 0) {
            header.count = count;
            append_chunk(to, header, payload);
        }
        payload.clear();
        count = 0;
    };
    Bytes one;
    for (const T& entry : entries) {
        one.clear();
        append_entry(entry, one);
        if (payload.size() + one.size() > max_chunk_payload / 2) {
            flush();
        }
        payload.insert(payload.end(), one.begin(), one.end());
        ++count;
    }
    flush();
}

} // namespace

struct Writer::State {
    WriterOptions options;
    Metadata metadata;
    std::unique_ptr<Store> store;
    BoundsTracker bounds;
    RecordEncoder encoder;
    CheckEncoder check_encoder;
    Retention retention;
    Bytes buffer;
    std::uint64_t records = 0; // in the recording, plus those removed again
    std::uint64_t checks = 0;  // likewise
    bool closed = false;
    std::int64_t last_records_ns = 0; // when records or checks came last: keep= counts from there

    // Only for a bounded recording, which is rewritten now and then.
    std::vector<TrackInfo> tracks;
    std::vector<NameInfo> names;
    std::vector<ClockPair> clock_pairs;
    std::vector<OffCpuSample> off_cpu;
    Descriptions descriptions;
    std::vector<Counters> counters;
    std::vector<KernelInfo> kernels;
    std::uint64_t source_bytes = 0; // of these

    std::vector<StoredGraph> graphs; // the last row of each key, with its lists
    std::unordered_map<std::uint64_t, std::size_t> graph_places;
    TileMap tiles; // of the last generation
    std::uint64_t tile_generation = 0;
    std::uint64_t stale_bytes = 0;
    std::uint64_t contents = 0;      // ContentEntries written so far
    std::uint64_t content_bytes = 0; // of those that the last rows refer to

    State(WriterOptions given, const Metadata& facts)
        : options(std::move(given)), metadata(facts), encoder(options.compress), check_encoder(options.compress),
          retention(options.max_bytes, options.keep_ns) {
        for (auto& [key, value] : metadata.identity) { // its command line may have any length
            value = bounded(std::move(value));
        }
    }

    [[nodiscard]] std::int64_t now() const { return options.now_ns ? options.now_ns() : monotonic_ns(); }
    [[nodiscard]] ChunkHeader header(ChunkType type, std::uint32_t count) const {
        ChunkHeader made;
        made.type = type;
        made.count = count;
        made.records_before = records;
        made.written_ns = now();
        return made;
    }
    [[nodiscard]] static Error closed_error() {
        return {ErrorCode::invalid_argument, "this recording is closed: create another writer"};
    }

    /// Passes `written` on; what was written is told to the observer.
    template <class T>
    Status tell(Status written, const T& what) const {
        if (options.observer != nullptr && written.ok()) {
            options.observer->saw(what);
        }
        return written;
    }
    [[nodiscard]] Bytes head() const;
    [[nodiscard]] bool too_stale() const;
    Status make_room(std::uint64_t more);
    Status append_buffer();
    Status add_payload(ChunkType type, const Bytes& payload);
    template <class T>
    Status add(ChunkType type, const T& entry);
    template <class T>
    Status add_kept(ChunkType type, const T& entry, std::vector<T>& kept);
    template <class T>
    void thin(std::vector<T>& kept, std::size_t most);
    Status add_off_cpu(const OffCpuSample& sample);
    Status add_graph(const GraphInfo& given);
    Status add_content(StoredGraph& entry, StoredGraph* before);
    Status add_kernel(const KernelInfo& given);
    Status append(const RecordBatch& batch);
    Status add_checks(const TensorCheck* from, std::size_t count);
    Status add_tiles(std::uint64_t generation, const TileTotals* from, std::size_t count);
    void append_tiles(std::uint64_t generation, const TileTotals* from, std::size_t count, Bytes& to) const;
    Status write_chunks(std::vector<Retention::Chunk> chunks);
    Retention::Chunk encode_checks(const Bytes& entries, std::uint32_t count, std::uint64_t first);
    Retention::Chunk encode_chunk(const RecordBatch& piece, std::uint64_t records_before);
    Status shorten();
    Status shorten_to(double share);
};

Bytes Writer::State::head() const {
    Bytes bytes;
    Preamble preamble;
    preamble.recording_id[0] = metadata.recording_id[0];
    preamble.recording_id[1] = metadata.recording_id[1];
    append_preamble(bytes, preamble);
    Bytes payload;
    encode(metadata, payload);
    ChunkHeader first = header(ChunkType::metadata, 1);
    first.records_before = 0;
    append_chunk(bytes, first, payload);
    return bytes;
}

bool Writer::State::too_stale() const { return stale_bytes > std::max(least_stale_bytes, store->size() / stale_share); }

/// Before `more` bytes are added.
Status Writer::State::make_room(std::uint64_t more) {
    const bool due = retention.bounded() && (too_stale() || retention.due(store->size(), more, last_records_ns));
    return due ? shorten() : Status();
}

Status Writer::State::append_buffer() {
    Status made = make_room(buffer.size());
    return made ? store->append(buffer) : made;
}

Status Writer::State::add_payload(ChunkType type, const Bytes& payload) {
    if (closed) {
        return closed_error();
    }
    if (payload.size() > max_chunk_payload) {
        return Error{ErrorCode::invalid_argument,
                     "an entry of more than 2 MiB does not fit into a recording: shorten it"};
    }
    buffer.clear();
    append_chunk(buffer, header(type, 1), payload);
    return append_buffer();
}

template <class T>
Status Writer::State::add(ChunkType type, const T& entry) {
    Bytes payload;
    append_entry(entry, payload);
    return add_payload(type, payload);
}

template <class T>
Status Writer::State::add_kept(ChunkType type, const T& entry, std::vector<T>& kept) {
    Status added = add(type, entry);
    if (added && retention.bounded()) {
        kept.push_back(entry);
    }
    return added;
}

/// `kept` ends with what was added last.
template <class T>
void Writer::State::thin(std::vector<T>& kept, std::size_t most) {
    const std::size_t before = kept.size();
    thin_out(kept, most);
    stale_bytes += (before - kept.size()) * buffer.size();
}

Status Writer::State::add_off_cpu(const OffCpuSample& sample) {
    Status added = add_kept(ChunkType::off_cpu, sample, off_cpu);
    if (!added) {
        return added;
    }
    const std::uint64_t share = options.max_bytes != 0 ? options.max_bytes / off_cpu_share : most_off_cpu_bytes;
    thin(off_cpu, std::clamp(share / buffer.size(), least_off_cpu_samples, most_off_cpu_samples));
    return added;
}

Status Writer::State::add_graph(const GraphInfo& given) {
    StoredGraph entry{bounded(given), false};
    const auto place = graph_places.find(entry.row.key);
    const bool known = place != graph_places.end();
    entry.lists_kept = known && same_lists(graphs[place->second].row, entry.row);
    if (Status added = add_content(entry, known ? &graphs[place->second] : nullptr); !added) {
        return added;
    }
    if (!known &&
        graphs.size() < most_graphs_known) { // before its row: should the file be shortened now, its nodes stay
        graph_places.emplace(entry.row.key, graphs.size());
        graphs.push_back(entry);
    }
    if (Status added = add(ChunkType::graphs, entry); !added) {
        return added;
    }
    if (known) {
        stale_bytes += buffer.size();
        entry.lists_kept = false;
        graphs[place->second] = std::move(entry);
    }
    return {};
}

/// Once for each capture. A bounded recording has little room for it, and one of too many keys forgets what it has.
Status Writer::State::add_content(StoredGraph& entry, StoredGraph* before) {
    if (entry.row.content != nullptr && !is_bounded(*entry.row.content)) {
        entry.row.content = std::make_shared<const GraphContent>(bounded(*entry.row.content));
    }
    if (before != nullptr && same_content(before->row.content, entry.row.content)) {
        entry.content = before->content;
        return {};
    }
    if (before != nullptr && before->content != 0) {
        content_bytes -= encoded_size(*before->row.content);
        before->content = 0; // whatever becomes of the row
    }
    entry.content = 0;
    if (entry.row.content == nullptr || (before == nullptr && graphs.size() >= most_graphs_known)) {
        return {};
    }
    const std::uint64_t size = encoded_size(*entry.row.content);
    if (options.max_bytes != 0 && content_bytes + size > options.max_bytes / content_share) {
        return {};
    }
    const ContentEntry content{entry.row.key, contents + 1, entry.row.content};
    if (Status added = add(ChunkType::graph_nodes, content); !added) {
        return added;
    }
    entry.content = ++contents;
    content_bytes += size;
    if (before != nullptr) {
        stale_bytes += buffer.size();
        before->content = entry.content;
        before->row.content = entry.row.content;
    }
    return {};
}

Status Writer::State::add_kernel(const KernelInfo& given) {
    KernelInfo kernel = bounded(given);
    if (options.max_bytes != 0 && source_bytes + kernel.source.size() > options.max_bytes / source_share) {
        kernel.source.clear();
    }
    Status added = add_kept(ChunkType::kernels, kernel, kernels);
    source_bytes += added.ok() ? kernel.source.size() : 0;
    return added;
}

Retention::Chunk Writer::State::encode_chunk(const RecordBatch& piece, std::uint64_t records_before) {
    const std::size_t start = buffer.size();
    buffer.resize(start + chunk_header_size);
    encoder.encode(piece.records, piece.count, buffer);
    const std::size_t columns_end = buffer.size();
    bounds.append(piece, columns_end - start - chunk_header_size, buffer);
    ChunkHeader made = header(ChunkType::records, static_cast<std::uint32_t>(piece.count));
    made.codec = Codec::columns;
    made.track = piece.track;
    made.first_sequence = piece.first_sequence;
    made.records_before = records_before;
    made.bounds_size = static_cast<std::uint32_t>(buffer.size() - columns_end);
    const std::byte* payload = buffer.data() + start + chunk_header_size;
    made.payload_size = static_cast<std::uint32_t>(buffer.size() - start - chunk_header_size);
    made.payload_checksum = checksum(payload, made.payload_size);
    store_chunk_header(buffer.data() + start, made);

    Retention::Chunk chunk;
    chunk.place = {start, buffer.size() - start};
    chunk.track = piece.track;
    chunk.first_sequence = piece.first_sequence;
    chunk.count = made.count;
    chunk.written_ns = made.written_ns;
    if (retention.bounded()) {
        chunk.work = Retention::work_of(piece.records, piece.count);
    }
    return chunk;
}

Status Writer::State::append(const RecordBatch& batch) {
    if (closed) {
        return closed_error();
    }
    if (batch.count == 0) {
        return {};
    }
    buffer.clear();
    std::vector<Retention::Chunk> chunks;
    for (std::size_t done = 0; done < batch.count;) {
        RecordBatch piece = batch;
        piece.count = std::min(batch.count - done, max_chunk_records);
        piece.first_sequence = batch.first_sequence + done;
        piece.records = batch.records + done;
        chunks.push_back(encode_chunk(piece, records + done));
        done += piece.count;
    }
    Status written = write_chunks(std::move(chunks));
    records += written.ok() ? batch.count : 0;
    return written;
}

/// The buffer holds them, one behind the other.
Status Writer::State::write_chunks(std::vector<Retention::Chunk> chunks) {
    last_records_ns = chunks.back().written_ns;
    if (Status written = append_buffer(); !written) {
        return written;
    }
    const std::uint64_t offset = store->size() - buffer.size();
    if (retention.bounded()) {
        for (Retention::Chunk& chunk : chunks) {
            chunk.place.offset += offset;
            retention.add(std::move(chunk));
        }
    }
    return {};
}

Retention::Chunk Writer::State::encode_checks(const Bytes& entries, std::uint32_t count, std::uint64_t first) {
    Bytes payload;
    ChunkHeader made = header(ChunkType::checks, count);
    made.codec = check_encoder.pack(entries, payload);
    made.first_sequence = first;
    const std::size_t start = buffer.size();
    append_chunk(buffer, made, payload);
    Retention::Chunk chunk;
    chunk.place = {start, buffer.size() - start};
    chunk.checks = true;
    chunk.first_sequence = first;
    chunk.count = count;
    chunk.written_ns = made.written_ns;
    return chunk;
}

Status Writer::State::add_checks(const TensorCheck* from, std::size_t count) {
    if (closed) {
        return closed_error();
    }
    if (count == 0) {
        return {};
    }
    buffer.clear();
    std::vector<Retention::Chunk> chunks;
    Bytes entries;
    std::uint64_t first = checks;
    for (std::size_t i = 0; i < count; ++i) {
        append_entry(bounded(from[i]), entries);
        const std::uint64_t next = checks + i + 1;
        if (i + 1 == count || entries.size() >= most_check_bytes) {
            chunks.push_back(encode_checks(entries, static_cast<std::uint32_t>(next - first), first));
            entries.clear();
            first = next;
        }
    }
    Status written = write_chunks(std::move(chunks));
    checks += written.ok() ? count : 0;
    return written;
}

void Writer::State::append_tiles(std::uint64_t generation, const TileTotals* from, std::size_t count, Bytes& to) const {
    std::size_t done = 0;
    do { // at least one chunk: that of a new generation may hold nothing
        const std::size_t n = std::min(count - done, most_tiles_of_chunk);
        Bytes payload;
        encode_tiles(from + done, n, payload);
        ChunkHeader made = header(ChunkType::tiles, static_cast<std::uint32_t>(n));
        made.first_sequence = generation;
        append_chunk(to, made, payload);
        done += n;
    } while (done < count);
}

Status Writer::State::add_tiles(std::uint64_t generation, const TileTotals* from, std::size_t count) {
    if (closed) {
        return closed_error();
    }
    if (count == 0 && generation == tile_generation) {
        return {};
    }
    buffer.clear();
    append_tiles(generation, from, count, buffer);
    if (Status written = append_buffer(); !written) {
        return written;
    }
    const bool reset = generation != tile_generation;
    tile_generation = generation;
    if (!retention.bounded()) {
        return {};
    }
    if (reset) {
        tiles.clear();
    }
    stale_bytes += buffer.size(); // nearly all of it takes the place of an entry before
    for (std::size_t i = 0; i < count; ++i) {
        (void)tiles.set(from[i]);
    }
    return {};
}

Status Writer::State::shorten() {
    Status done = shorten_to(0.5);
    // Less to copy needs less room beside the old file.
    if (!done && done.error().code == ErrorCode::no_space) {
        done = shorten_to(0.125);
    }
    return done;
}

Status Writer::State::shorten_to(double share) {
    Bytes bytes = head();
    append_entries(bytes, header(ChunkType::names, 0), names);
    append_entries(bytes, header(ChunkType::clock_pairs, 0), clock_pairs);
    append_entries(bytes, header(ChunkType::off_cpu, 0), off_cpu);
    append_entries(bytes, header(ChunkType::descriptions, 0), descriptions.all());
    std::vector<ContentEntry> nodes_of_graphs;
    for (const StoredGraph& entry : graphs) {
        if (entry.content != 0) {
            nodes_of_graphs.push_back({entry.row.key, entry.content, entry.row.content});
        }
    }
    append_entries(bytes, header(ChunkType::graph_nodes, 0), nodes_of_graphs);
    append_entries(bytes, header(ChunkType::graphs, 0), graphs);
    append_entries(bytes, header(ChunkType::kernels, 0), kernels);
    if (tile_generation != 0) {
        const std::vector<TileTotals> kept = tiles.sorted();
        append_tiles(tile_generation, kept.data(), kept.size(), bytes);
    }
    // What is not records counts, but leaves them a quarter of the share.
    const auto whole = static_cast<std::uint64_t>(static_cast<double>(options.max_bytes) * share);
    const std::size_t n =
        retention.removable(std::max(whole - std::min<std::uint64_t>(whole, bytes.size()), whole / 4), last_records_ns);
    Retention::Outcome outcome = retention.after_removing(n);
    std::vector<TrackInfo> tracks_left;
    std::copy_if(tracks.begin(), tracks.end(), std::back_inserter(tracks_left),
                 [&](const TrackInfo& track) { return outcome.forgotten.count(track.id) == 0; });
    append_entries(bytes, header(ChunkType::tracks, 0), tracks_left);
    for (Counters& last : counters) {
        last.records_removed = outcome.records();
    }
    append_entries(bytes, header(ChunkType::counters, 0), counters);
    std::vector<Removal> removals;
    for (const auto& [track, removal] : outcome.removals) {
        removals.push_back(removal);
    }
    append_entries(bytes, header(ChunkType::removed, 0), removals);
    if (outcome.checks_removed != 0) {
        ChunkHeader made = header(ChunkType::checks, 0);
        made.first_sequence = outcome.checks_removed;
        append_chunk(bytes, made, {});
    }
    for (const auto& [track, work] : outcome.carried) {
        std::vector<Record> carried;
        for (const auto& [key, record] : work) {
            carried.push_back(record);
        }
        if (carried.empty() || carried.size() > max_chunk_records) {
            continue;
        }
        ChunkHeader made = header(ChunkType::carried, static_cast<std::uint32_t>(carried.size()));
        made.codec = Codec::columns;
        made.track = track;
        made.first_sequence = outcome.removals[track].until_sequence - carried.size();
        Bytes payload;
        encoder.encode(carried.data(), carried.size(), payload);
        append_chunk(bytes, made, payload);
    }
    Status replaced = store->replace(bytes, retention.kept_after(n));
    if (replaced) {
        retention.removed(n, std::move(outcome), bytes.size());
        tracks = std::move(tracks_left);
        stale_bytes = 0;
        const auto young = std::find_if(off_cpu.begin(), off_cpu.end(), [this](const OffCpuSample& sample) {
            return sample.monotonic_ns >= retention.oldest_ns() - chunk_span_ns;
        });
        off_cpu.erase(off_cpu.begin(), young); // with the next shortening
    }
    return replaced;
}

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Writer::~Writer() {
    if (!state_->closed) {
        (void)close().ok();
    }
}

Result<std::unique_ptr<Writer>> Writer::create(WriterOptions options, const Metadata& metadata) {
    auto state = std::make_unique<State>(std::move(options), metadata);
    const Bytes head = state->head();
    if (head.size() > max_chunk_payload) {
        return Error{ErrorCode::invalid_argument,
                     "the description of this run exceeds 2 MiB: shorten its command line and notes"};
    }
    if (state->options.path.empty()) {
        state->store = make_memory_store();
        if (Status written = state->store->append(head); !written) {
            return written.error();
        }
    } else {
        Result<std::unique_ptr<Store>> store = create_file_store(state->options.path, head, state->options.write);
        if (!store) {
            return store.error();
        }
        state->store = std::move(*store);
    }
    return std::unique_ptr<Writer>(new Writer(std::move(state)));
}

Status Writer::append(const RecordBatch& batch) { return state_->tell(state_->append(batch), batch); }

std::uint64_t Writer::most_at_once() const {
    const std::uint64_t bytes = state_->options.max_bytes;
    return bytes != 0 ? std::max<std::uint64_t>(bytes / append_share / sizeof(Record), 1)
                      : std::numeric_limits<std::uint64_t>::max();
}

Status Writer::add_track(const TrackInfo& given) {
    TrackInfo track = given;
    track.name = bounded(std::move(track.name));
    track.clock_name = bounded(std::move(track.clock_name));
    track.device_name = bounded(std::move(track.device_name));
    return state_->tell(state_->add_kept(ChunkType::tracks, track, state_->tracks), track);
}
Status Writer::add_name(const NameInfo& name) {
    return state_->tell(state_->add_kept(ChunkType::names, name, state_->names), name);
}
Status Writer::add_clock_pair(const ClockPair& pair) {
    Status added = state_->add_kept(ChunkType::clock_pairs, pair, state_->clock_pairs);
    state_->thin(state_->clock_pairs, most_clock_pairs);
    return state_->tell(std::move(added), pair);
}

Status Writer::add_off_cpu(const OffCpuSample& sample) { return state_->add_off_cpu(sample); }

void Writer::end_track(std::uint32_t track) {
    state_->bounds.end_track(track);
    if (state_->retention.bounded()) {
        state_->retention.end_track(track);
    }
}

Status Writer::set_counters(const Counters& counters) {
    if (Status made = state_->make_room(0); !made) { // which would change the totals
        return made;
    }
    Counters totals = counters;
    totals.records = state_->records;
    totals.records_removed = state_->retention.records_removed();
    totals.checks = state_->checks;
    Status added = state_->add(ChunkType::counters, totals);
    if (added) {
        state_->stale_bytes += state_->buffer.size(); // the ones before
        state_->counters.assign(1, totals);
    }
    return state_->tell(added, totals);
}

Status Writer::add_graph(const GraphInfo& row) { return state_->tell(state_->add_graph(row), row); }

Status Writer::add_kernel(const KernelInfo& kernel) { return state_->add_kernel(kernel); }

Status Writer::add_checks(const TensorCheck* checks, std::size_t count) { return state_->add_checks(checks, count); }

Status Writer::add_tiles(std::uint64_t generation, const TileTotals* tiles, std::size_t count) {
    return state_->add_tiles(generation, tiles, count);
}

Status Writer::describe(std::string_view key, std::string_view value) {
    const Description description{bounded(std::string(key)), bounded(std::string(value))};
    Status added = state_->add(ChunkType::descriptions, description);
    if (!added) {
        return added;
    }
    if (state_->options.observer != nullptr) {
        state_->options.observer->described(description.first, description.second);
    }
    if (state_->retention.bounded() && !state_->descriptions.set(description)) {
        state_->stale_bytes += state_->buffer.size();
    }
    return added;
}

Status Writer::close() {
    if (state_->closed) {
        return {};
    }
    Bytes end;
    append_chunk(end, state_->header(ChunkType::closed, 0), {});
    Status written = state_->store->append(end);
    state_->closed = true;
    if (!state_->options.path.empty()) {
        state_->store->forget();
    }
    return written;
}

void Writer::forget() noexcept {
    state_->closed = true;
    state_->store->forget();
}

const std::string& Writer::path() const { return state_->options.path; }
std::uint64_t Writer::size() const { return state_->store->size(); }
std::shared_ptr<const Bytes> Writer::snapshot() const { return std::make_shared<const Bytes>(state_->store->bytes()); }
std::uint64_t Writer::records_removed() const { return state_->retention.records_removed(); }

} // namespace plumb::recording
