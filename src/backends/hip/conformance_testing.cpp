// SPDX-License-Identifier: Apache-2.0
#include "backends/hip/driver.hpp"
#include "conformance/virtual_subject.hpp"
#include "mocks/virtual_hip/control.hpp"
#include "mocks/virtual_hip/hip.hpp"

namespace plumb::conformance {

std::unique_ptr<Subject> hip_subject();
// A stand-in for an engine on HIP. What may fail leaves out what the cuda subject leaves out; this HIP has no call that says
// which device a stream belongs to.
std::unique_ptr<Subject> hip_subject() {
    static backends::cuda::Module module = nullptr;
    return std::make_unique<VirtualSubject>(VirtualSubject::Engine{
        (vhip::reset(), *backends::hip::driver()),
        [] {
            backends::cuda::Stream stream = nullptr;
            static_cast<void>(hipStreamCreateWithFlags(&stream, backends::cuda::stream_non_blocking));
            static_cast<void>(hipModuleLoadData(&module, "any function one asks for"));
            return stream;
        },
        [] {},
        [](const char* name) {
            backends::cuda::Function function = nullptr;
            static_cast<void>(hipModuleGetFunction(&function, module, name));
            return function;
        },
        [](backends::cuda::Function function, backends::cuda::Stream stream) {
            static_cast<void>(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
        },
        {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime", "cuStreamIsCapturing",
         "cuStreamCreate"}});
}

} // namespace plumb::conformance
