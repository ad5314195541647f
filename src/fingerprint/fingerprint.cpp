// SPDX-License-Identifier: Apache-2.0
#include "plumb/fingerprint.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <utility>

#include "fingerprint/block_team.hpp"
#include "fingerprint/definition.hpp"
#include "fingerprint/fingerprint_with.hpp"
#include "fingerprint/search.hpp"

namespace plumb {
namespace fingerprint {

const char* complaint(const Tensor& tensor) noexcept {
    if (tensor.rank > max_rank) {
        return "The tensor has more than 8 dimensions: join some of them.";
    }
    if (static_cast<std::size_t>(tensor.dtype) >= dtype_count) {
        return "The tensor's dtype is none of f32, f64, f16, bf16, i8 and i32: give one of these.";
    }
    const std::size_t* const end = tensor.shape + tensor.rank;
    if (tensor.rank == 0 || std::find(tensor.shape, end, std::size_t{0}) != end) {
        return nullptr; // nothing is read
    }
    std::size_t bytes = size_of(tensor.dtype);
    for (unsigned i = 0; i < tensor.rank; ++i) {
        if (__builtin_mul_overflow(bytes, tensor.shape[i], &bytes) || bytes > PTRDIFF_MAX) {
            return "The tensor's shape has more elements than memory could hold: correct the shape.";
        }
    }
    return tensor.data == nullptr ? "The tensor's data is null: pass the address of element 0." : nullptr;
}

namespace {

void add(const BlockSums& block, Fingerprint& to) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < partial_sums; ++i) {
        sum += block.sums[i];
        squares += block.squares[i];
    }
    to.sum += sum;
    to.sum_of_squares += squares;
    for (std::size_t i = 0; i < to.sketch.size(); ++i) {
        to.sketch[i] += block.sketch[i];
    }
    to.hash += block.hash;
    to.nans += block.nans;
    to.positive_infs += block.positive_infs;
    to.negative_infs += block.negative_infs;
}

double magnitude(const BlockSums& block) { return std::max(-block.min, block.max); }

/// What the walk over blocks, in order, remembers beside the sums.
struct Places {
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    double magnitude = -1;
    std::size_t largest = 0, nonfinite = ~std::size_t{0}; // blocks
};

void note(const BlockSums& block, std::size_t b, Places& places) {
    places.min = std::min(places.min, block.min);
    places.max = std::max(places.max, block.max);
    if (magnitude(block) > places.magnitude) {
        places.magnitude = magnitude(block);
        places.largest = b;
    }
    if (places.nonfinite == ~std::size_t{0} && block.nans + block.positive_infs + block.negative_infs != 0) {
        places.nonfinite = b;
    }
}

/// Turns blocks into elements: only the two blocks in question are read again.
void locate(const Places& places, const Blocks& blocks, const Tensor& tensor, std::uint64_t first_index,
            const Kernels& kernels, Fingerprint& made) {
    const auto search = [&](std::size_t b, const Pattern& pattern) {
        return first_index +
               find_first(blocks.elements(), tensor.dtype, blocks.begin(b), blocks.begin(b + 1), pattern, kernels);
    };
    if (places.nonfinite != ~std::size_t{0}) {
        made.first_nonfinite = search(places.nonfinite, nonfinite_pattern(tensor.dtype));
    }
    if (places.magnitude >= 0) {
        made.min = places.min + 0.0; // a zero has one sign
        made.max = places.max + 0.0;
        made.largest = search(places.largest, magnitude_pattern(tensor.dtype, places.magnitude));
    }
}

} // namespace

Status fingerprint_into(Fingerprint& made, const Kernels& kernels, const Tensor& tensor,
                        const FingerprintOptions& options) {
    if (const char* wrong = complaint(tensor)) {
        return Error{ErrorCode::invalid_argument, wrong};
    }
    if (options.buckets != 32 && options.buckets != 64 && options.buckets != 128 && options.buckets != 256) {
        return Error{ErrorCode::invalid_argument, "A fingerprint has 32, 64, 128 or 256 buckets: choose one of these."};
    }
    try {
        const PlainArithmetic arithmetic;
        const Blocks blocks(tensor, options.first_index, options.buckets / lanes_of_row, kernels);
        std::vector<double> sketch = std::move(made.sketch);
        made = Fingerprint();
        made.count = tensor.count();
        made.sketch = std::move(sketch);
        made.sketch.assign(options.buckets, 0.0);
        Places places;
        in_order(blocks, options.threads, [&](const BlockSums& block, std::size_t b) {
            add(block, made);
            note(block, b, places);
        });
        locate(places, blocks, tensor, options.first_index, kernels, made);
        return {};
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory, "There is no memory for the fingerprint: use fewer threads or buckets."};
    }
}

Result<Fingerprint> fingerprint_with(const Kernels& kernels, const Tensor& tensor, const FingerprintOptions& options) {
    Fingerprint made;
    if (Status status = fingerprint_into(made, kernels, tensor, options); !status.ok()) {
        return status.error();
    }
    return made;
}

double largest_with(const Kernels& kernels, const Tensor& tensor) noexcept {
    constexpr std::size_t piece = 1024;
    alignas(64) std::byte buffer[piece * sizeof(double)];
    const Elements elements(tensor);
    const auto largest_of = kernels.largest[static_cast<std::size_t>(tensor.dtype)];
    const std::size_t most = std::max(piece, elements.run());
    std::uint64_t largest = 0; // the order of bits: NaN beyond infinity, denormals told from zero in any mode
    for (std::size_t i = 0; i < elements.count();) {
        // A long line is looked at where it lies, short ones are gathered.
        const std::size_t left = elements.run() - i % elements.run();
        const std::size_t n = std::min(elements.count() - i, most > piece ? left : piece);
        largest = std::max(largest, std::bit_cast<std::uint64_t>(largest_of(elements.read(i, n, buffer), n)));
        i += n;
    }
    return std::bit_cast<double>(largest);
}

} // namespace fingerprint

Result<Fingerprint> fingerprint_of(const Tensor& tensor, const FingerprintOptions& options) {
    return fingerprint::fingerprint_with(fingerprint::best_kernels(), tensor, options);
}

double largest_magnitude(const Tensor& tensor) noexcept {
    if (fingerprint::complaint(tensor) != nullptr) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    return fingerprint::largest_with(fingerprint::best_kernels(), tensor);
}

std::uint64_t first_nonfinite(const Tensor& tensor) noexcept {
    if (fingerprint::complaint(tensor) != nullptr) {
        return 0; // what cannot be read is not finite
    }
    if (!fingerprint::has_nonfinite(tensor.dtype)) {
        return no_index;
    }
    const fingerprint::Elements elements(tensor);
    const std::size_t found =
        fingerprint::find_first(elements, tensor.dtype, 0, elements.count(),
                                fingerprint::nonfinite_pattern(tensor.dtype), fingerprint::best_kernels());
    return found == elements.count() ? no_index : found;
}

} // namespace plumb
