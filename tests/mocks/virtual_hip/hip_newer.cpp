// SPDX-License-Identifier: Apache-2.0
// What libamdhip64 has gained since 5.2.
#include "virtual_hip/control.hpp"

extern "C" {
PLUMB_VGPU_API plumb::vgpu::CuResult hipStreamGetDevice(plumb::vgpu::Stream stream, int* device);
PLUMB_VGPU_API plumb::vgpu::CuResult hipStreamGetId(plumb::vgpu::Stream stream, unsigned long long* id);
PLUMB_VGPU_API plumb::vgpu::CuResult hipEventRecordWithFlags();

plumb::vgpu::CuResult hipStreamGetDevice(plumb::vgpu::Stream stream, int* device) {
    return plumb::vhip::device_of_stream(stream, device);
}
plumb::vgpu::CuResult hipStreamGetId(plumb::vgpu::Stream stream, unsigned long long* id) {
    return plumb::vhip::id_of_stream(stream, id);
}
// Only looked for.
plumb::vgpu::CuResult hipEventRecordWithFlags() { return plumb::vgpu::CuResult::not_supported; }
}
