// SPDX-License-Identifier: Apache-2.0
// One CUDA device: its primary context, a stream, the decoder's kernels and its memory. Memory of somebody else is copied
// once and found again by its address. Owned by the backend; one thread at a time, within enter() and leave(). The first
// error of an operation is kept: what follows it does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/kernels/cuda/arguments.hpp"
#include "decoder/kernels/cuda/driver.hpp"
#include "decoder/kernels/cuda/stamps.hpp"

namespace plumb::decoder::cuda {

enum class CudaKernel : std::uint8_t {
#define PLUMB_DECODER_CUDA_KERNEL(name, arguments, threads) name,
    PLUMB_CUDA_PLAIN_KERNELS(PLUMB_DECODER_CUDA_KERNEL)
#undef PLUMB_DECODER_CUDA_KERNEL
        plain_count,
};
/// One of each for every Type.
enum class TypedKernel : std::uint8_t { embed, gemv_1, gemv_4, tile, count };

/// The kernels as a module for the driver: machine code for some devices, and PTX for later ones. Empty: built without nvcc.
[[nodiscard]] std::string_view kernels_image();

/// REQUIRES that it fits, as sizes of a model do.
[[nodiscard]] inline std::uint32_t narrow(std::size_t value) { return static_cast<std::uint32_t>(value); }

struct Grid {
    std::size_t x = 1, y = 1, z = 1;
};

class CudaDevice {
  public:
    /// Errors: unavailable (no driver, no device, no kernels), not_found, failed (the driver refuses the kernels).
    static Result<std::unique_ptr<CudaDevice>> open(const CudaDriver& calls, std::string_view image, std::size_t index);
    ~CudaDevice();
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    void enter() noexcept;
    void leave() noexcept;

    /// From now on a kernel may be launched while the one before it ends; it waits for it itself (kernels.cu).
    /// Errors: unsupported.
    [[nodiscard]] Status launch_programmatically();

    /// Zeroed memory that lives as long as the device, aligned to 256 bytes. Errors: out_of_memory.
    [[nodiscard]] Result<std::uint64_t> allocate(std::size_t bytes);
    /// Where the copy of somebody's memory lies; 0: there is none yet.
    [[nodiscard]] std::uint64_t copy_of(const void* data) const noexcept;
    /// Copies it; `key` is what copy_of() finds it by. Waits. Errors: out_of_memory, failed.
    [[nodiscard]] Result<std::uint64_t> adopt(const void* key, const void* data, std::size_t bytes);

    /// Memory that copy_of(key) finds, to be filled. Errors: out_of_memory.
    [[nodiscard]] Result<std::uint64_t> place(const void* key, std::size_t bytes);

    void write(std::uint64_t to, const void* from, std::size_t bytes) noexcept;
    /// Waits for all before it.
    void read(void* to, std::uint64_t from, std::size_t bytes) noexcept;
    void wait() noexcept;

    template <class Arguments>
    void run(CudaKernel kernel, const Grid& grid, unsigned threads, std::size_t shared_bytes,
             const Arguments& arguments) noexcept {
        launch(plain_[static_cast<std::size_t>(kernel)], grid, threads, shared_bytes, &arguments);
    }
    template <class Arguments>
    void run(TypedKernel kernel, Type type, const Grid& grid, unsigned threads, std::size_t shared_bytes,
             const Arguments& arguments) noexcept {
        launch(typed_[static_cast<std::size_t>(type)][static_cast<std::size_t>(kernel)], grid, threads, shared_bytes,
               &arguments);
    }

    /// From now on every launch is given a slot for its times. Errors: out_of_memory.
    [[nodiscard]] Status stamp_launches();
    [[nodiscard]] StampSlots& stamps() noexcept { return stamps_; }
    /// Empties the slots that were used, behind what was launched before.
    void clear_stamps() noexcept;
    /// The slots used since; waits.
    [[nodiscard]] std::vector<StampSlot> read_stamps() noexcept;

    void fail(Error error) noexcept; // kept, unless there was one before
    [[nodiscard]] const Status& status() const noexcept { return status_; }
    [[nodiscard]] CUstream_st* stream() const noexcept { return stream_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] unsigned processors() const noexcept { return processors_; }

  private:
    explicit CudaDevice(const CudaDriver& calls) : calls_(calls) {}
    Status choose(std::size_t index);
    Status load(std::string_view image);
    void launch(CUfunc_st* function, const Grid& grid, unsigned threads, std::size_t shared_bytes,
                const void* arguments) noexcept;
    [[nodiscard]] Error error_of(int result, const char* call) const;
    void check(int result, const char* call) noexcept;

    const CudaDriver& calls_;
    int device_ = -1;
    CUctx_st* context_ = nullptr;
    CUstream_st* stream_ = nullptr;
    CUmod_st* module_ = nullptr;
    std::vector<CUfunc_st*> plain_;
    std::vector<std::vector<CUfunc_st*>> typed_; // [type][kernel]
    std::vector<std::uint64_t> allocations_;
    std::map<const void*, std::uint64_t> copies_;
    std::string name_;
    unsigned processors_ = 1;
    bool programmatic_ = false;
    StampSlots stamps_;
    std::size_t stamped_ = 0; // slots that may hold something
    Status status_;
};

} // namespace plumb::decoder::cuda
