// SPDX-License-Identifier: Apache-2.0
// A Node.js application over node-llama-cpp that knows nothing of a profiler. Run in a folder that has the package:
//   node app.mjs MODEL PROMPT_TOKENS STEPS THREADS    prints {"tokens":[...]}
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [model, prompt, steps, threads] = process.argv.slice(2);
const here = createRequire(process.cwd() + "/");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(here.resolve("node-llama-cpp")));

const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.error});
const loaded = await llama.loadModel({modelPath: model, gpuLayers: 0});
const context = await loaded.createContext({contextSize: Number(prompt) + Number(steps) + 64, threads: Number(threads)});
const sequence = context.getSequence();
const tokens = [];
const read = Array.from({length: Number(prompt)}, (_, i) => 3 + i % 250);
for await (const token of sequence.evaluate(read, {temperature: 0, yieldEogToken: true})) {
    if (tokens.push(token) >= Number(steps)) {
        break;
    }
}
console.log(JSON.stringify({tokens}));
await llama.dispose();
