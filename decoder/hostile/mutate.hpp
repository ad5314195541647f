// SPDX-License-Identifier: Apache-2.0
// Damage to model files: by somebody who knows the format (numbers that fit or do not, other architectures, tensors,
// tokenizers), by one who lies about counts, lengths, types and offsets, and by none at all: bits and pieces.
// Pure functions of the parts and the random numbers.
#pragma once

#include "decoder/hostile/parts.hpp"
#include "decoder/hostile/random.hpp"

namespace plumb::decoder::hostile {

/// One change of what the file says of itself; what is written after it is a GGUF file in good order.
void rewrite(Parts& parts, Random& random);
/// One number that says how much follows, of what, or where, is another one.
void lie(Written& file, Random& random);
/// Bits, bytes, pieces cut out, doubled or moved, the end cut off; mostly before the tensors' data.
void damage(Written& file, Random& random);

/// One to six of all these.
[[nodiscard]] Bytes mutant(const Parts& seed, Random& random);

/// The same file with scored pieces for a tokenizer, instead of the byte pairs that it has.
void use_scored_pieces(Parts& parts);

} // namespace plumb::decoder::hostile
