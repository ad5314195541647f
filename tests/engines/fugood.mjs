// SPDX-License-Identifier: Apache-2.0
// The same over @fugood/llama.node, which holds llama.cpp within one library. It speaks text, not tokens:
//   node fugood.mjs MODEL PROMPT_TOKENS STEPS THREADS    prints {"tokens":["text"]}
import {createRequire} from "node:module";

const [model, prompt, steps, threads] = process.argv.slice(2);
const {loadModel} = createRequire(process.cwd() + "/")("@fugood/llama.node");

const context = await loadModel({model, n_ctx: Number(prompt) * 8 + Number(steps) + 64, n_threads: Number(threads), n_gpu_layers: 0, use_mmap: true});
const text = Array.from({length: Number(prompt)}, (_, i) => String.fromCharCode(97 + i % 26)).join("");
const done = await context.completion({prompt: text, n_predict: Number(steps), temperature: 0, top_k: 1, seed: 1, ignore_eos: true}, () => {});
console.log(JSON.stringify({tokens: [done.text]}));
await context.release();
