// SPDX-License-Identifier: Apache-2.0
// Records and checks of all shapes, and rings made byte by byte, for tests and fuzzers. Plain functions; no thread rule.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording::testing {

/// A decode loop as a thread records it: steps, layers, scopes with noise, work, CPU time. Deterministic.
std::vector<Record> decode_stream(std::size_t steps, std::uint32_t seed = 1);
/// Any bits at all, with a bias to the odd ones.
std::vector<Record> wild_records(std::size_t count, std::mt19937_64& random);
bool same(const Record& a, const Record& b);

/// Checks of all element types, roles, levels and numbers of buckets, in the order of a run; a few hold odd values.
std::vector<TensorCheck> many_checks(std::size_t count);

/// What each field of Metadata can hold, filled in.
Metadata full_metadata();

/// A ring file as a process leaves it.
struct TestRing {
    std::uint32_t track = 1;
    detail::RingState state = detail::RingState::live;
    std::uint64_t tail = 0;
    std::vector<Record> records; // [tail, head)
    std::string thread_name = "worker";
    std::uint64_t os_thread = 4242;
    std::uint64_t drops[drop_reasons] = {};
};
/// Where the first of them lies, in version 2.
inline constexpr std::size_t rings_at = 2 * detail::ring_page;
Bytes ring_bytes(const Metadata& metadata, std::uint64_t capacity, const std::vector<TestRing>& rings,
                 const std::vector<NameInfo>& names = {});
/// The same as version 1 wrote it, which kept no names.
Bytes ring_bytes_of_version_1(const Metadata& metadata, std::uint64_t capacity, const std::vector<TestRing>& rings);

} // namespace plumb::recording::testing
