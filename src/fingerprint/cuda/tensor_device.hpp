// SPDX-License-Identifier: Apache-2.0
// What fingerprints need of one CUDA context: the kernels, numbers of sites and groups, room for partial results, and
// pinned slots that the device writes. Made at the first use and kept as long as the process: captured graphs go on
// launching kernels that write there, whoever asked for them. Thread rule: any thread; short locks, none around a launch.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "fingerprint/cuda/fingerprint_ptx.hpp"
#include "fingerprint/cuda/kernel_types.hpp"
#include "plumb/fingerprint.hpp"
#include "plumb/result.hpp"

namespace plumb::fingerprint {

/// In graphs and timelines.
inline constexpr const char* kernel_name = "plumb_fingerprint";
inline constexpr const char* tag_kernel_name = "plumb_fingerprint_tag";

/// `count` slots of `words_of_slot(buckets)` words, side by side.
struct SlotBlock {
    std::uint64_t* host = nullptr;
    backends::cuda::DevicePointer device = 0;
    std::uint32_t count = 0;
    std::uint32_t buckets = default_buckets;

    [[nodiscard]] std::uint64_t* slot(std::uint64_t number) const noexcept {
        return host + number % count * words_of_slot(buckets);
    }
};

/// Whose kernels count on each other's end: one stream, or one check of a captured graph.
struct DeviceSite {
    std::uint32_t number = 0;
    std::uint32_t scratch = 0;
    std::uint32_t blocks = 1; // that there is scratch for
};

/// What a slot holds.
struct SlotResult {
    std::uint64_t number = 0;
    std::uint64_t tag = 0;
    Fingerprint fingerprint; // but for its count
    std::uint64_t argmax = no_index;
    double margin = 0;
};
enum class SlotState { empty, complete, torn };
/// Copies the slot where `number` goes. Complete: the result that it holds, whichever that is; torn: the one with
/// result.number is being written there.
SlotState read_slot(const SlotBlock& slots, std::uint64_t number, SlotResult& result);

class TensorDevice {
  public:
    static constexpr std::size_t most_pinned = std::size_t{256} << 20;

    /// Of the stream's context. `image` gives the module; null: this library was built without nvcc, which is the error.
    /// Error unsupported where the driver will not load it.
    static Result<TensorDevice*> of(const backends::cuda::Driver& driver, backends::cuda::Stream stream,
                                    KernelText image);

    TensorDevice(const TensorDevice&) = delete;
    TensorDevice& operator=(const TensorDevice&) = delete;

    [[nodiscard]] const backends::cuda::Driver& driver() const noexcept { return driver_; }
    [[nodiscard]] backends::cuda::Context context() const noexcept { return context_; }

    /// Fewer blocks than wanted where scratch is short, or more where only a larger site is left; error out_of_memory
    /// where sites are short.
    Result<DeviceSite> take_site(std::uint32_t blocks, std::uint32_t buckets);
    Result<std::uint32_t> take_group();
    /// Zeroed. The context must be current where memory is short of it.
    Result<SlotBlock> take_slots(std::uint32_t count, std::uint32_t buckets);
    /// Nothing of the device will write there any more, and no captured graph ever could.
    void return_site(const DeviceSite& site);
    void return_slots(const SlotBlock& slots);

    /// One node or launch.
    [[nodiscard]] backends::cuda::CuResult launch(backends::cuda::Stream stream, const KernelParameters& parameters,
                                                  std::uint32_t blocks) const noexcept;
    [[nodiscard]] backends::cuda::CuResult launch_tag(backends::cuda::Stream stream, std::uint32_t group,
                                                      std::uint64_t tag) const noexcept;
    /// Gone is the context, and with it the memory of every slot; unknown: nobody could say, ask later. Slots are read only
    /// where it is there.
    enum class Presence { there, unknown, gone };
    [[nodiscard]] Presence presence() const noexcept;

  private:
    TensorDevice(const backends::cuda::Driver& driver, backends::cuda::Context context, unsigned long long context_id)
        : driver_(driver), context_(context), context_id_(context_id) {}
    Status load(const char* image);
    Status add_chunk(std::size_t bytes);
    [[nodiscard]] backends::cuda::CuResult launch(backends::cuda::Stream stream, backends::cuda::Function kernel,
                                                  std::uint32_t blocks, std::uint32_t threads,
                                                  void** parameters) const noexcept;
    /// Of those given back, the one that suits best; end where a new one is better, or none is there.
    std::vector<DeviceSite>::iterator free_site(std::uint32_t blocks, bool scratch_left);

    struct Chunk {
        std::uint64_t* host = nullptr;
        backends::cuda::DevicePointer device = 0;
        std::size_t bytes = 0;
        std::size_t used = 0;
    };

    const backends::cuda::Driver& driver_;
    const backends::cuda::Context context_;
    const unsigned long long context_id_; // a handle may be given out anew
    backends::cuda::Module module_ = nullptr;
    backends::cuda::Function kernel_ = nullptr;
    backends::cuda::Function tag_kernel_ = nullptr;

    std::mutex mutex_; // guards what follows
    std::vector<Chunk> chunks_;
    std::size_t pinned_ = 0;
    std::uint32_t sites_ = 0;
    std::uint32_t groups_ = 0;
    std::uint32_t scratch_ = 0;
    std::vector<DeviceSite> free_sites_;
    std::vector<SlotBlock> free_slots_;
};

/// The parameters of a check; error invalid_argument for a tensor that cannot be.
Result<KernelTensor> kernel_tensor_of(const Tensor& tensor, std::uint64_t first_index, bool logits);
/// How many blocks a tensor is worth.
std::uint32_t blocks_for(const KernelTensor& tensor) noexcept;

} // namespace plumb::fingerprint
