# SPDX-License-Identifier: Apache-2.0
"""A small decoder of the llama family with random weights, as anybody would write it: it knows nothing of profilers. Prints the tokens
and a hash of the logits' bits.

usage: decoder.py [layers=N] [width=N] [steps=N]"""

import hashlib
import sys

import torch
from torch import nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class RotaryEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, width, 2) / width))

    def forward(self, x, start_pos):
        angles = torch.arange(start_pos, start_pos + x.shape[1])[:, None] * self.frequencies
        cos, sin = angles.cos()[None, :, None], angles.sin()[None, :, None]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.rotary_emb = RotaryEmbedding(width // heads)
        self.cache = None

    def forward(self, x, start_pos):
        batch, tokens, width = x.shape
        split = (batch, tokens, self.heads, width // self.heads)
        q = self.rotary_emb(self.q_proj(x).view(split), start_pos)
        k = self.rotary_emb(self.k_proj(x).view(split), start_pos)
        v = self.v_proj(x).view(split)
        if start_pos:
            k, v = torch.cat((self.cache[0], k), 1), torch.cat((self.cache[1], v), 1)
        self.cache = k, v
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(2, 3) / split[-1] ** 0.5
        if tokens > 1:
            scores = scores + torch.full((tokens, tokens), float("-inf")).triu(1)
        return self.o_proj((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down_proj = nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)
        self.self_attn, self.mlp = Attention(width, heads), MLP(width)

    def forward(self, x, start_pos):
        x = x + self.self_attn(self.input_layernorm(x), start_pos)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self, width, layers, vocabulary):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(DecoderLayer(width, 4) for _ in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, input_ids, start_pos):
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, start_pos)
        return self.norm(x)


class CausalLM(nn.Module):
    def __init__(self, width, layers, vocabulary):
        super().__init__()
        self.model = Model(width, layers, vocabulary)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, input_ids, start_pos=0):
        return self.lm_head(self.model(input_ids, start_pos)[:, -1])


def main():
    sizes = {"layers": 3, "width": 128, "steps": 12, "prompt": 7, "vocabulary": 512}
    sizes.update((key, int(value)) for key, value in (word.split("=") for word in sys.argv[1:]))
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = CausalLM(sizes["width"], sizes["layers"], sizes["vocabulary"]).eval()
    tokens, bits = list(range(1, 1 + sizes["prompt"])), hashlib.sha256()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens]))
        for step in range(sizes["steps"]):
            bits.update(logits.numpy().tobytes())
            tokens.append(int(logits.argmax()))
            logits = model(torch.tensor([tokens[-1:]]), start_pos=len(tokens) - 1)
    print(*tokens, bits.hexdigest())


main()
