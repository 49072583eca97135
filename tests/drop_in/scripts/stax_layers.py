"""The layers of stax: shapes, parameters and outputs of each, and networks made of them."""

import jax
import numpy as np
from jax import random
from jax.example_libraries import stax
from jax.example_libraries.stax import (
    AvgPool, BatchNorm, Conv, Conv1DTranspose, ConvTranspose, Dense, Dropout, FanInConcat, FanInSum, FanOut, Flatten, Identity,
    LogSoftmax, MaxPool, Relu, SumPool, Tanh, parallel, serial, shape_dependent)


def show(name, layer, shape):
    init, apply = layer
    out, params = init(random.PRNGKey(3), shape)
    outputs = apply(params, random.normal(random.PRNGKey(1), shape), rng=random.PRNGKey(2))
    print(name, tuple(map(int, out)))
    for leaf in [*jax.tree.leaves(params), *jax.tree.leaves(outputs)]:
        print("   ", leaf.shape, round(float(np.asarray(leaf, np.float64).sum()), 3))


show("dense", Dense(4), (2, 3))
show("convolution", Conv(4, (3, 3), (2, 2), padding="SAME"), (2, 8, 8, 3))
show("transposed", ConvTranspose(4, (3, 3), (2, 2)), (2, 4, 4, 3))
show("transposed in one dimension", Conv1DTranspose(4, (3,), (2,)), (2, 4, 3))
show("norm", BatchNorm(), (2, 4, 4, 3))
show("greatest", MaxPool((2, 2), (2, 2)), (2, 4, 4, 3))
show("mean", AvgPool((3, 3), padding="SAME"), (2, 4, 4, 3))
show("sum", SumPool((2, 2)), (2, 4, 4, 3))
show("network", serial(Dense(4), Relu, FanOut(2), parallel(Dense(3), serial(Dense(3), Tanh)), FanInSum, LogSoftmax), (2, 5))
show("joined", serial(FanOut(2), parallel(Identity, Dense(3)), FanInConcat()), (2, 5))
show("dropout", serial(Flatten, Dropout(0.7)), (2, 3, 3))
show("by shape", shape_dependent(lambda shape: Dense(shape[-1])), (2, 3))
for name in "Elu LeakyRelu Selu Gelu Softplus Sigmoid Softmax Exp".split():
    show(name, getattr(stax, name), (2, 3))
