// SPDX-License-Identifier: Apache-2.0
// Systems that count no such times for us.
#include "base/kernel_times.hpp"

namespace plumb::base {

KernelFile::KernelFile(const char*) noexcept : descriptor_(-1) {}
KernelFile::~KernelFile() = default;
bool KernelFile::read(char*, std::uint64_t) const noexcept { return false; }

ThreadTimesReader::ThreadTimesReader(std::uint64_t) noexcept : times_(""), scheduling_("") {}
void ThreadTimesReader::read(ThreadTimes&, bool) const noexcept {}

ProcessTimesReader::ProcessTimesReader() noexcept : machine_("") {}
ProcessTimes ProcessTimesReader::read() const noexcept { return {}; }

} // namespace plumb::base
