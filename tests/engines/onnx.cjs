// SPDX-License-Identifier: Apache-2.0
// A program over onnxruntime-node, which knows nothing of us: node onnx.cjs MODEL PROMPT STEPS THREADS
// Prints the tokens and the sum of each token's logits. Modules are found from the current folder.
const { createRequire } = require("module");
const ort = createRequire(process.cwd() + "/")("onnxruntime-node");

const [model, prompt, steps, threads] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const layers = 4, heads = 8, size = 64, vocabulary = 4096;

async function main() {
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: threads, interOpNumThreads: 1 });
    let cache = {};
    for (let layer = 0; layer < layers; ++layer) {
        for (const part of ["key", "value"]) {
            cache[`past_key_values.${layer}.${part}`] = new ort.Tensor("float32", new Float32Array(0), [1, heads, 0, size]);
        }
    }
    let ids = Array.from({ length: prompt }, (_, i) => (i * 7 + 3) % vocabulary);
    const tokens = [], sums = [];
    let length = 0;
    for (let step = 0; step <= steps; ++step) {
        length += ids.length;
        const made = await session.run({
            input_ids: new ort.Tensor("int64", BigInt64Array.from(ids.map(BigInt)), [1, ids.length]),
            attention_mask: new ort.Tensor("int64", new BigInt64Array(length).fill(1n), [1, length]),
            seqlens_k: new ort.Tensor("int32", Int32Array.of(length - 1), [1]),
            total_sequence_length: new ort.Tensor("int32", Int32Array.of(length), []),
            ...cache,
        });
        const logits = made.logits.data.subarray(-vocabulary);
        const next = logits.reduce((best, value, i) => (value > logits[best] ? i : best), 0);
        tokens.push(next);
        sums.push(logits.reduce((sum, value) => sum + value, 0));
        ids = [next];
        cache = Object.fromEntries(Object.entries(made).filter(([name]) => name !== "logits")
            .map(([name, tensor]) => [name.replace("present", "past_key_values"), tensor]));
    }
    console.log(JSON.stringify({ tokens, sums }));
}
main();
