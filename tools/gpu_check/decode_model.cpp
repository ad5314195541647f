// SPDX-License-Identifier: Apache-2.0
#include "decode_model.hpp"

#include <algorithm>

namespace gpu_check {
namespace {

using plumb::Brick;

std::size_t row_bytes(unsigned columns) { return std::size_t{columns} * 2; }

std::size_t wanted_bytes(const Shape& shape) {
    const std::size_t attention = (std::size_t{shape.hidden} * 2 + 2 * shape.kv) * row_bytes(shape.hidden);
    const std::size_t ffn = 3 * std::size_t{shape.ffn} * row_bytes(shape.hidden);
    const std::size_t cache = std::size_t{2} * shape.context * row_bytes(shape.kv);
    return shape.layers * (attention + ffn + cache) + shape.vocabulary * row_bytes(shape.hidden);
}

} // namespace

DecodeModel::DecodeModel(Gpu& gpu, const Shape& shape) : gpu_(gpu), shape_(shape), pool_(gpu), x_(gpu), y_(gpu) {
    std::size_t free_bytes = 0, total_bytes = 0;
    gpu.must(gpu.d.mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    const std::size_t largest = shape.vocabulary * row_bytes(shape.hidden);
    pool_bytes_ = std::max(largest, std::min(wanted_bytes(shape), free_bytes / 4)) / 4096 * 4096 + 4096;
    const std::size_t vector = 4 * std::size_t{std::max({shape.hidden, 2 * shape.ffn, shape.vocabulary})};
    pool_ = allocate(gpu, pool_bytes_);
    x_ = allocate(gpu, vector);
    y_ = allocate(gpu, vector);
    const auto blocks = static_cast<unsigned>(gpu.multiprocessors) * 8;
    const Function fill = gpu.kernel("check_fill");
    gpu.launch(gpu.stream, fill, blocks, 256, static_cast<DevicePointer>(pool_), std::uint64_t{pool_bytes_ / 4}, 7U);
    gpu.launch(gpu.stream, fill, blocks, 256, static_cast<DevicePointer>(x_), std::uint64_t{vector / 4}, 8U);
    gpu.wait();
}

DevicePointer DecodeModel::take(std::size_t bytes) {
    if (next_ + bytes > pool_bytes_) {
        next_ = 0;
    }
    const DevicePointer taken = pool_ + next_;
    next_ += (bytes + 255) / 256 * 256;
    bytes_ += static_cast<double>(bytes);
    return taken;
}

void DecodeModel::norm(Stream stream) {
    gpu_.launch(stream, gpu_.kernel("check_norm"), 1, 256, static_cast<DevicePointer>(x_),
                static_cast<DevicePointer>(y_), shape_.hidden);
}

void DecodeModel::gemv(Stream stream, unsigned rows, unsigned columns) {
    const DevicePointer weights = take(rows * row_bytes(columns));
    gpu_.launch(stream, gpu_.kernel("check_gemv"), (rows + 3) / 4, 128, weights, static_cast<DevicePointer>(x_),
                static_cast<DevicePointer>(y_), rows, columns / 8);
}

void DecodeModel::read_cache(Stream stream) {
    const std::size_t bytes = std::size_t{2} * shape_.context * row_bytes(shape_.kv);
    const DevicePointer cache = take(bytes);
    gpu_.launch(stream, gpu_.kernel("check_read"), static_cast<unsigned>(gpu_.multiprocessors), 256, cache,
                std::uint64_t{bytes / 16}, static_cast<DevicePointer>(y_));
}

void DecodeModel::enqueue(plumb::Recorder* profiler, plumb::Queue queue, Stream stream) {
    next_ = 0;
    bytes_ = 0;
    bricks_.clear();
    const auto scoped = [&](Brick brick, const auto& kernel) {
        bricks_.push_back(brick);
        if (profiler == nullptr) {
            kernel();
            return;
        }
        PLUMB_BRICK(*profiler, queue, brick);
        kernel();
    };
    const auto normed = [&](Brick brick) {
        scoped(brick, [&] { norm(stream); });
    };
    const auto product = [&](Brick brick, unsigned rows, unsigned columns) {
        scoped(brick, [&] { gemv(stream, rows, columns); });
    };
    const auto layer = [&] {
        normed(Brick::rms_norm);
        product(Brick::qkv_projection, shape_.hidden + 2 * shape_.kv, shape_.hidden);
        normed(Brick::rope_embedding);
        scoped(Brick::attention, [&] { read_cache(stream); });
        product(Brick::output_projection, shape_.hidden, shape_.hidden);
        normed(Brick::rms_norm);
        product(Brick::gate_up_projection, 2 * shape_.ffn, shape_.hidden);
        product(Brick::down_projection, shape_.hidden, shape_.ffn);
    };
    normed(Brick::embedding);
    for (unsigned index = 0; index < shape_.layers; ++index) {
        if (profiler == nullptr) {
            layer();
            continue;
        }
        PLUMB_LAYER(*profiler, index);
        layer();
    }
    normed(Brick::rms_norm);
    product(Brick::lm_head, shape_.vocabulary, shape_.hidden);
    normed(Brick::sampling);
}

} // namespace gpu_check
