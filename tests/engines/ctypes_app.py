# SPDX-License-Identifier: Apache-2.0
"""The driver again, as Python's llama bindings do it: ctypes, so that no slot lies between the caller and libllama.

usage: ctypes_app.py LIBRARIES MODEL PROMPT_TOKENS STEPS THREADS    prints {"tokens":[...]}"""

import ctypes as c
import json
import pathlib
import sys

LOG = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)


class ModelParams(c.Structure):
    _fields_ = [("room", c.c_ubyte * 512)]


class ContextParams(c.Structure):
    _fields_ = [("n_ctx", c.c_uint32), ("room", c.c_ubyte * 508)]


class Batch(c.Structure):
    _fields_ = [("n_tokens", c.c_int32)] + [(name, c.c_void_p)
                                            for name in ("token", "embd", "pos", "n_seq_id", "seq_id", "logits")]


def main(libraries, model_path, prompt, steps, threads):
    folder = pathlib.Path(libraries)

    def library(stem):
        return c.CDLL(str(next(iter([*folder.glob(f"{stem}.so"), *folder.glob(f"{stem}.v*.so")]))))

    llama, ggml = library("libllama"), library("libggml")

    def of_llama(name, result, *arguments):
        found = getattr(llama, name)
        found.restype, found.argtypes = result, arguments
        return found

    quiet = LOG(lambda level, text, data: None)
    of_llama("llama_log_set", None, LOG, c.c_void_p)(quiet, None)
    ggml.ggml_backend_load_all_from_path(libraries.encode())
    llama.llama_backend_init()
    model = of_llama("llama_model_load_from_file", c.c_void_p, c.c_char_p, ModelParams)(
        model_path.encode(), of_llama("llama_model_default_params", ModelParams)())
    params = of_llama("llama_context_default_params", ContextParams)()
    params.n_ctx = prompt + steps + 8
    context = of_llama("llama_init_from_model", c.c_void_p, c.c_void_p, ContextParams)(model, params)
    of_llama("llama_set_n_threads", None, c.c_void_p, c.c_int32, c.c_int32)(context, threads, threads)
    sampler = of_llama("llama_sampler_init_dist", c.c_void_p, c.c_uint32)(1)
    sample = of_llama("llama_sampler_sample", c.c_int32, c.c_void_p, c.c_void_p, c.c_int32)
    batch_of = of_llama("llama_batch_get_one", Batch, c.c_void_p, c.c_int32)
    decode = of_llama("llama_decode", c.c_int32, c.c_void_p, Batch)
    tokens = []
    fresh = [3 + i % 250 for i in range(prompt)]
    for _ in range(steps + 1):
        buffer = (c.c_int32 * len(fresh))(*fresh)
        if decode(context, batch_of(c.addressof(buffer), len(fresh))) != 0:
            sys.exit(3)
        fresh = [sample(sampler, context, -1)]
        tokens += fresh
    print(json.dumps({"tokens": tokens[1:]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
