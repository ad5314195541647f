// SPDX-License-Identifier: Apache-2.0
// What the macros cost while off, and how they find their thread: read from the generated code.
#include <plumb/op.hpp>
#include <plumb/record.hpp>
#include <plumb/tile.hpp>

void operation(float* x) noexcept;

extern "C" void one_brick(plumb::Recorder& prof, float* x) {
    PLUMB_BRICK(prof, plumb::host, plumb::Brick::rms_norm);
    operation(x);
}

extern "C" void one_brick_with_work(plumb::Recorder& prof, float* x, int n) {
    PLUMB_BRICK(prof, plumb::host, plumb::Brick::rms_norm, plumb::bytes(4 * n), plumb::flops(2.0 * n));
    operation(x);
}

extern "C" void one_brick_by_text(plumb::Recorder& prof, float* x) {
    PLUMB_BRICK(prof, plumb::host, "dequantise");
    operation(x);
}

extern "C" void one_lap(plumb::Recorder& prof, float* x) {
    PLUMB_LAP(prof, plumb::host, plumb::Brick::rms_norm);
    operation(x);
}

extern "C" void one_tile(plumb::Recorder& prof, float* x, int row) {
    PLUMB_TILE(prof, plumb::TileLevel::midi, row, 0);
    operation(x);
}

extern "C" void one_tile_with_work(plumb::Recorder& prof, float* x, int row, int col) {
    PLUMB_TILE(prof, plumb::TileLevel::micro, row, col, plumb::Brick::lm_head, plumb::bytes(4 * row),
               plumb::flops(2.0 * col));
    operation(x);
}

extern "C" void one_op(plumb::Recorder& prof, float* x, int n) {
    PLUMB_OP(prof, plumb::host, plumb::Brick::rms_norm, plumb::bytes(4 * n),
             plumb::in(plumb::tensor(x, plumb::DType::f32, {1, 8})),
             plumb::out(plumb::tensor(x, plumb::DType::f32, {1, 8}))) {
        operation(x);
    }
}

extern "C" void one_layer(plumb::Recorder& prof, float* x, int layer) {
    PLUMB_LAYER(prof, layer);
    operation(x);
}

extern "C" void one_label(plumb::Recorder& prof, unsigned long ns) { prof.record(plumb::Brick::rms_norm, ns); }

extern "C" void one_token(plumb::Recorder& prof, plumb::Token& token) { prof.end(token); }
