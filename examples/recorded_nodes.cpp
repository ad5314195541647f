// SPDX-License-Identifier: Apache-2.0
// The sample of docs/reference/path.md, made to run: kernels, a transfer and a task recorded one by one, and the path of their step.
#include <plumb/answer.hpp>
#include <plumb/plumb.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace {

plumb::Profiler prof(plumb::Config::from_env());

const std::string ptx = ".visible .entry gemm() { ret; }";
const std::string source_text = "__global__ void gemm() {}";

int decode_step() {
    const plumb::Queue q = plumb::host;
    const plumb::Name gemm_name = prof.intern("gemm");
    const plumb::Name sampler_name = prof.intern("sampler");
    const std::vector<std::byte> device_buffer(64), host_buffer(64);
    constexpr double w = 4096, f = 8192;
    constexpr std::uint64_t polls = 3, yields = 1, nanoseconds = 500;
    // clang-format off
    // [nodes]
    const auto hash = prof.register_kernel(ptx.data(), ptx.size(), {"gemm", "kernels/gemm.cu", source_text}); // once
    prof.push_step(q, plumb::Phase::decode, plumb::tokens(1));
    prof.push_layer(0);
    prof.push_scope(q, plumb::Brick::qkv_projection);
    const plumb::NodeHandle gemm =
        prof.record_kernel(gemm_name, *hash, {64, 1, 1}, {256}, 4096, plumb::bytes(w), plumb::flops(f));
    prof.pop_scope();
    const plumb::NodeHandle copy = prof.record_transfer(device_buffer.data(), host_buffer.data(), host_buffer.size(),
                                                        plumb::TransferDirection::device_to_host);
    prof.add_dependency(gemm, copy);
    prof.record_task(sampler_name, polls, yields, nanoseconds);
    prof.pop_scope(); // the layer
    prof.pop_scope(); // the step
    // [/nodes]
    // clang-format on
    return gemm.recorded() && copy.recorded() ? 0 : 1;
}

} // namespace

int main() {
    if (decode_step() != 0 || !prof.close().ok()) {
        std::puts("nothing was recorded: PLUMB=on,warmup=0,out=nodes.plumb example_recorded_nodes");
        return 1;
    }
    const auto path = plumb::ask("path", {prof.path()});
    std::remove(prof.path().c_str());
    std::fputs(path.ok() ? path->text().c_str() : path.error().message.c_str(), stdout);
    return 0;
}
