// SPDX-License-Identifier: Apache-2.0
// The smallest export there can be: the duration of each sample, one a line.
#include <ostream>

#include "export/export.hpp"

namespace plumb::exporting {
namespace {

Status write(const SampleFeed& source, std::ostream& out) {
    Status read = source.for_each_batch([&out](const resolve::ResolvedBatch& batch) {
        for (const resolve::Sample& sample : batch.samples) {
            out << sample.duration_ns << '\n';
        }
        return out.good();
    });
    return out.good() ? read : Status(Error{ErrorCode::failed, "the output took no more data"});
}

} // namespace

const Format& durations_format() {
    static const Format format{"durations", "The duration of each sample in nanoseconds, one a line", write};
    return format;
}

} // namespace plumb::exporting
