// SPDX-License-Identifier: Apache-2.0
// Products of many rows by cuBLASLt, for weights of F32, BF16 and F16. A plan is made for each shape beforehand; what
// has none, because the library refuses it, is left to the tiles of kernels.hpp. Inputs are floats, and none is rounded
// to 16 bits: for 16-bit weights they go in as pieces that add up to them (split_kernels.hpp). Owned by the backend,
// within its device's life; one thread at a time, within enter() and leave() of the device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cuda/cublaslt.hpp"
#include "decoder/kernels/cuda/device.hpp"

namespace plumb::decoder::cuda {

struct LtEnd {
    const CublasLt* calls = nullptr;
    void operator()(LtDesc* desc) const noexcept { calls->desc_destroy(desc); }
    void operator()(LtLayout* layout) const noexcept { calls->layout_destroy(layout); }
    void operator()(LtPreference* preference) const noexcept { calls->preference_destroy(preference); }
};
template <class T>
using OwnedByUs = std::unique_ptr<T, LtEnd>;

class LibraryProducts {
  public:
    /// Null where the library does not start on this device.
    static std::unique_ptr<LibraryProducts> make(CudaDevice& device, const CublasLt& calls);
    ~LibraryProducts();
    LibraryProducts(const LibraryProducts&) = delete;
    LibraryProducts& operator=(const LibraryProducts&) = delete;

    [[nodiscard]] static bool knows(Type type) noexcept {
        return type == Type::f32 || type == Type::bf16 || type == Type::f16;
    }
    /// REQUIRES a known type. A shape that the library refuses is no error. Errors: out_of_memory.
    [[nodiscard]] Status prepare(const Weight& weight, std::size_t rows);
    /// Computes those parts that it has a plan for, and takes them out of `args`. REQUIRES no offsets.
    void take(ProductArgs& args, Type type) noexcept;

    /// "cuBLASLt 13.0.2".
    [[nodiscard]] std::string name() const;

  private:
    struct Key {
        Type type;
        std::size_t outputs, cols, rows;
        bool operator==(const Key&) const = default;
    };
    struct Plan {
        Key key;
        OwnedByUs<LtLayout> weights, in, out;
        LtChoice choice;
        bool refused = true;
    };
    /// Device memory that grows; what it was before lives on, since a graph may refer to it.
    struct Scratch {
        std::uint64_t address = 0;
        std::size_t bytes = 0;
    };

    LibraryProducts(CudaDevice& device, const CublasLt& calls) : device_(device), calls_(calls) {}
    [[nodiscard]] bool start();
    [[nodiscard]] OwnedByUs<LtDesc> make_desc(int compute) const;
    [[nodiscard]] OwnedByUs<LtLayout> make_layout(int type, std::size_t rows, std::size_t cols) const;
    [[nodiscard]] Plan make_plan(const Key& key) const;
    [[nodiscard]] Plan* find(const Key& key) noexcept;
    [[nodiscard]] Status grow(Scratch& scratch, std::size_t bytes);
    void split(const ProductArgs& args, Type type, std::size_t cols) noexcept;
    [[nodiscard]] bool multiply(Plan& plan, const ProductArgs& args, const ProductPart& part, Type type) noexcept;

    CudaDevice& device_;
    const CublasLt& calls_;
    LtHandle* handle_ = nullptr;
    OwnedByUs<LtDesc> floats_{nullptr, {&calls_}}, halves_{nullptr, {&calls_}};
    OwnedByUs<LtPreference> preference_{nullptr, {&calls_}};
    std::vector<Plan> plans_; // some for each shape of a layer
    Scratch workspace_, pieces_, scales_;
};

} // namespace plumb::decoder::cuda
