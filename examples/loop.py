# SPDX-License-Identifier: Apache-2.0
"""The sample of docs/guide/engines.md in Python, run where the package plumb was built."""
import array

# [pyloop]
import plumb

weights = array.array("f", [0.001]) * (64 * 64)
up = plumb.brick("up_projection", bytes=4 * len(weights), flops=2 * len(weights))

def forward(state):
    for index in range(4):
        with plumb.layer(index), up:
            state = [sum(a * b for a, b in zip(weights[row * 64:row * 64 + 64], state)) for row in range(64)]
    return state

with plumb.profiler():  # from PLUMB, as everywhere
    state = [1.0] * 64
    for position in range(32):
        with plumb.step("decode", tokens=1, kv_length=position + 1):
            state = forward(state)
# [/pyloop]
print(state[0])
