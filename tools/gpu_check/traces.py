# SPDX-License-Identifier: Apache-2.0
"""Traces of the PyTorch profiler, of small models with random weights: what `plumb import` is tried on.

usage: traces.py qwen2|mixtral|gemma eager|graph|compile FOLDER     writes FOLDER/MODEL-WAY.json.gz"""

import gzip
import pathlib
import sys
import tempfile

import torch
import transformers
from torch.profiler import ProfilerActivity, profile, record_function

MOST_BYTES = 4 << 20
SMALL = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 1024, "head_dim": 64}
CONFIGS = {"qwen2": transformers.Qwen2Config, "mixtral": transformers.MixtralConfig, "gemma": transformers.GemmaConfig}


def main(name, way, folder):
    torch.manual_seed(1)
    config = CONFIGS[name](**SMALL)
    model = transformers.AutoModelForCausalLM.from_config(config).to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(0, 1024, (1, 16), device="cuda")

    def forward():
        with torch.no_grad():
            return model(tokens, use_cache=False).logits

    step = torch.compile(forward) if way == "compile" else forward
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=way == "eager",
                 with_modules=True) as traced:
        if way == "graph":
            graph = torch.cuda.CUDAGraph()
            with record_function("capture"), torch.cuda.graph(graph):
                step()
            step = graph.replay
        for _ in range(4):
            with record_function("step"):
                step()
                torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as scratch:
        plain = pathlib.Path(scratch) / "trace.json"
        traced.export_chrome_trace(str(plain))
        text = plain.read_bytes()
    out = pathlib.Path(folder) / f"{name}-{way}.json.gz"
    out.write_bytes(gzip.compress(text, 9))
    print(f"{out.name}: {out.stat().st_size} bytes, graph node ids: {'yes' if b'graph node id' in text else 'no'}")
    return 0 if out.stat().st_size <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
