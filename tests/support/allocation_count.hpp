// SPDX-License-Identifier: Apache-2.0
// Counts what operator new has handed out and not got back, in the whole executable it is linked into. In a file of its own,
// so that the compiler does not mix our operators with the standard ones.
// Thread rule: exact while one thread allocates.
#pragma once

#include <cstddef>

namespace plumb {

/// Bytes held now; the peak is measured from here on.
std::size_t start_peak();
/// Most bytes held at once since start_peak().
std::size_t peak();
/// How often operator new and operator delete were called.
std::size_t allocator_calls();

} // namespace plumb
