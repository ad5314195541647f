// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/choose.hpp"

#include <charconv>

#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/opencl/opencl_backend.hpp"

namespace plumb::decoder {

Result<std::unique_ptr<ComputeBackend>> make_backend(const std::string& word, const cpu::CpuOptions& cpu,
                                                     Graphs graphs) {
    const std::string name = word.substr(0, word.find(':'));
    if (graphs != Graphs::off && name != "cuda") {
        return Error{ErrorCode::invalid_argument,
                     "only the cuda backend has graphs: leave --graphs out, or say --backend cuda"};
    }
    if (word == "cpu") {
        return cpu::make_backend(cpu);
    }
    std::size_t device = 0;
    bool known = name == "opencl" || name == "cuda";
    if (known && name.size() < word.size()) {
        const char* const end = word.data() + word.size();
        const auto [stop, error] = std::from_chars(word.data() + name.size() + 1, end, device);
        known = error == std::errc() && stop == end;
    }
    if (!known) {
        return Error{ErrorCode::invalid_argument,
                     "--backend knows cpu, cuda, opencl and opencl:1 (its second device); choose one of them"};
    }
    return name == "cuda" ? cuda::make_backend(device, graphs) : opencl::make_backend(device);
}

} // namespace plumb::decoder
