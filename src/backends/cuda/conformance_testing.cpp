// SPDX-License-Identifier: Apache-2.0
#include "conformance/virtual_subject.hpp"

namespace plumb::conformance {
namespace {

using namespace backends::cuda;

Module module_of_all = nullptr;

Stream open_engine() {
    vgpu::reset();
    const Driver& calls = *driver();
    backends::cuda::Context context = nullptr;
    Stream stream = nullptr;
    static_cast<void>(calls.init(0));
    static_cast<void>(calls.primary_ctx_retain(&context, 0));
    static_cast<void>(calls.ctx_push_current(context));
    static_cast<void>(calls.stream_create(&stream, stream_non_blocking));
    static_cast<void>(calls.module_load_data(&module_of_all, "any function one asks for"));
    return stream;
}

void close_engine() {
    backends::cuda::Context popped = nullptr;
    static_cast<void>(driver()->ctx_pop_current(&popped));
}

Function kernel_of(const char* name) {
    Function function = nullptr;
    static_cast<void>(driver()->module_get_function(&function, module_of_all, name));
    return function;
}

void launch(Function function, Stream stream) {
    static_cast<void>(driver()->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
}

} // namespace

std::unique_ptr<Subject> cuda_subject();
// The failing calls leave out what gives things back (its failure leaks by nature), and what is asked only to know more.
std::unique_ptr<Subject> cuda_subject() {
    return std::make_unique<VirtualSubject>(
        VirtualSubject::Engine{*driver(),
                               open_engine,
                               close_engine,
                               kernel_of,
                               launch,
                               {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime",
                                "cuStreamIsCapturing", "cuStreamCreateWithPriority", "cuStreamGetCtx"}});
}

} // namespace plumb::conformance
