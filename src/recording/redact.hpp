// SPDX-License-Identifier: Apache-2.0
// Takes out of a run's metadata what may tell where and by whom it was run. Pure; no thread rule.
#pragma once

#include "recording/recording.hpp"

namespace plumb::recording {

/// Host, command line, user and paths become "redacted". The ring's path keeps its file name, which a reader looks up where
/// rings lie, so that a killed run can still be recovered; paths in the comparability key keep theirs. The settings stay as
/// they are: who writes them leaves paths out.
void redact(Metadata& metadata);
/// Of the file its last part stays; the source text goes, since compilers write paths into it.
void redact(KernelInfo& kernel);

} // namespace plumb::recording
