# SPDX-License-Identifier: Apache-2.0
from .. import Tensor, cuda
from .modules.module import Module


class Parameter(Tensor):
    pass


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((out_features, in_features))
        if bias:
            self.bias = Parameter((out_features,))

    def forward(self, input):
        if self.weight.device.type == "cuda":
            cuda.launch(cuda.GEMM, *self.weight.shape)
        return Tensor((*input.shape[:-1], self.out_features), input.dtype, self.weight.device)


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.embedding_dim = embedding_dim
        self.weight = Parameter((num_embeddings, embedding_dim))

    def forward(self, input):
        if self.weight.device.type == "cuda":
            cuda.launch(cuda.EMBEDDING, *input.shape)
        return Tensor((*input.shape, self.embedding_dim), self.weight.dtype, self.weight.device)


class LayerNorm(Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = Parameter((width,)), Parameter((width,))

    def forward(self, input):
        if self.weight.device.type == "cuda":
            cuda.launch(cuda.NORM, *input.shape)
        return input


class ModuleList(Module):
    def __init__(self, modules):
        super().__init__()
        for number, module in enumerate(modules):
            self._modules[str(number)] = module

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, number):
        return self._modules[str(number)]
