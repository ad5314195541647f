// SPDX-License-Identifier: Apache-2.0
// A decode step without meaning but of real sizes: layers of norms, matrix-vector products and cache reads, enqueued with
// the scopes an engine would have. Owned by one section; one thread.
#pragma once

#include "plumb/record.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {

struct Shape {
    const char* name;
    unsigned layers, hidden, kv, ffn, vocabulary, context;
};

/// The models of the section `decode`; tiny ones have one.
inline constexpr Shape shapes[] = {
    {"0.5b, 24 layers", 24, 896, 128, 4864, 151'936, 2048},
    {"8b, 32 layers", 32, 4096, 1024, 14'336, 128'256, 2048},
};
inline constexpr Shape tiny_shapes[] = {{"tiny, 4 layers", 4, 64, 64, 128, 256, 64}};

class DecodeModel {
  public:
    /// Takes what memory the weights need, or a quarter of what is free: layers then share weights.
    DecodeModel(Gpu& gpu, const Shape& shape);
    /// One step; while `stream` is captured, into its graph. Without a profiler: no scope.
    void enqueue(plumb::Recorder* profiler, plumb::Queue queue, Stream stream);
    /// Of each kernel of that step, in their order.
    [[nodiscard]] const std::vector<plumb::Brick>& bricks() const { return bricks_; }
    [[nodiscard]] double bytes_per_step() const { return bytes_; }
    [[nodiscard]] double weight_bytes() const { return static_cast<double>(pool_bytes_); }

  private:
    void norm(Stream stream);
    void gemv(Stream stream, unsigned rows, unsigned columns);
    void read_cache(Stream stream);
    DevicePointer take(std::size_t bytes);

    Gpu& gpu_;
    Shape shape_;
    std::size_t pool_bytes_ = 0, next_ = 0;
    OwnedMemory pool_, x_, y_;
    double bytes_ = 0; // of the step that was enqueued last
    std::vector<plumb::Brick> bricks_;
};

} // namespace gpu_check
