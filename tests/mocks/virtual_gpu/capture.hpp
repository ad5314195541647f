// SPDX-License-Identifier: Apache-2.0
// Stream capture, by the driver's rules. Under the Gpu's lock.
#pragma once

#include "virtual_gpu/call.hpp"

namespace plumb::vgpu {

/// A capture that uses of this context's legacy stream would disturb.
std::shared_ptr<CaptureObject> implicit_capture(Context context);
/// cuStreamWaitEvent where the stream or the event is in a capture.
CuResult capture_wait(Call& call, const std::shared_ptr<StreamObject>& stream, EventObject& event, unsigned flags);

} // namespace plumb::vgpu
