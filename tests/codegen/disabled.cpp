// SPDX-License-Identifier: Apache-2.0
// Compiled with PLUMB_DISABLE: both functions must come out alike, instruction for instruction.
#include <plumb/op.hpp>
#include <plumb/record.hpp>
#include <plumb/request.hpp>
#include <plumb/tile.hpp>

void operation(float* x) noexcept;
int next_size() noexcept;

extern "C" void with_macros(plumb::Recorder& prof, plumb::Queue queue, plumb::Context context, float* x, int layers) {
    (void)prof;
    (void)queue;
    (void)context;
    PLUMB_STEP(prof, queue, plumb::Phase::decode, plumb::tokens(next_size()), plumb::kv_length(layers));
    PLUMB_CONTEXT(prof, context);
    PLUMB_REQUEST(prof, next_size(), plumb::RequestPhase::end, plumb::tokens(next_size()));
    PLUMB_STEP_REQUEST(prof, next_size());
    PLUMB_STEP_KERNELS(prof, next_size(), next_size());
    for (int layer = 0; layer < layers; ++layer) {
        PLUMB_LAYER(prof, layer);
        {
            PLUMB_BRICK(prof, queue, plumb::Brick::qkv_projection, plumb::bytes(next_size()),
                        plumb::flops(2.0 * layer));
            operation(x);
        }
        PLUMB_LAP(prof, queue, plumb::Brick::rope_embedding);
        operation(x + 1);
        PLUMB_LAP(prof, queue, plumb::Brick::attention, plumb::bytes_per_kv(next_size()));
        {
            PLUMB_TILE(prof, plumb::TileLevel::midi, layer, next_size(), plumb::bytes(next_size()));
            operation(x + 2);
        }
        PLUMB_LAP_END(prof, queue);
        PLUMB_OP(prof, queue, "mine", plumb::in(plumb::tensor(x, plumb::DType::f32, {1})),
                 plumb::out(plumb::tensor(x, plumb::DType::f32, {1})), plumb::bytes(next_size())) {
            operation(x + 3);
        }
    }
}

extern "C" void without_macros(plumb::Recorder& prof, plumb::Queue queue, plumb::Context context, float* x,
                               int layers) {
    (void)prof;
    (void)queue;
    (void)context;
    for (int layer = 0; layer < layers; ++layer) {
        operation(x);
        operation(x + 1);
        operation(x + 2);
        operation(x + 3);
    }
}
