// SPDX-License-Identifier: Apache-2.0
// Which experts each token goes to, on the cpu. Pure functions on the routing's memory; any thread. What they are given
// may be anything: a row without a number in it chooses the first experts.
#pragma once

#include "decoder/kernels/backend.hpp"

namespace plumb::decoder::cpu {

/// Fills `chosen` and `weight` from one row of logits for each token. Of equal logits the first is chosen.
void route(const Block& logits, const Routing& routing) noexcept;

/// Fills `slot` and `offsets` for `rows` tokens: the choices sorted by expert, those of one expert in the tokens' order.
void order_by_expert(const Routing& routing, std::size_t rows) noexcept;

} // namespace plumb::decoder::cpu
