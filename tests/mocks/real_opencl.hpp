// SPDX-License-Identifier: Apache-2.0
// What tests on the machine's own OpenCL driver need to know of sanitizers. Test-only; included by one source of an
// executable.
#pragma once

// PoCL and its compiler keep what they made until the process ends, which is not ours to report.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libpocl\nleak:libLLVM\nleak:libclang\n"; }
