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

class DecodeModel {
  public:
    /// Takes what memory the weights need, or a quarter of what is free: layers then share weights.
    DecodeModel(Gpu& gpu, const Shape& shape);
    /// One step; while `stream` is captured, into its graph.
    void enqueue(plumb::Recorder& profiler, plumb::Queue queue, Stream stream);
    [[nodiscard]] double bytes_per_step() const { return bytes_; }
    [[nodiscard]] double weight_bytes() const { return static_cast<double>(pool_bytes_); }
    [[nodiscard]] unsigned kernels() const { return kernels_; }

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
    unsigned kernels_ = 0;
};

} // namespace gpu_check
