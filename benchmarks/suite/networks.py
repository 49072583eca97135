"""Training steps of multilayer perceptrons: loss, gradients and the update of plain gradient descent."""

import numpy

from .row import Row

RATE = 0.01


def network_inputs(batch, widths):
    def inputs(random):
        layers = [{"w": (random.standard_normal((a, b)) / numpy.sqrt(a)).astype(numpy.float32), "b": numpy.zeros(b, numpy.float32)}
                  for a, b in zip(widths, widths[1:])]
        images = random.standard_normal((batch, widths[0])).astype(numpy.float32)
        return layers, images, random.integers(0, widths[-1], batch).astype(numpy.int32)
    return inputs


def program(jax):
    jnp = jax.numpy

    def loss(layers, images, labels):
        hidden = images
        for layer in layers[:-1]:
            hidden = jax.nn.relu(hidden @ layer["w"] + layer["b"])
        logits = hidden @ layers[-1]["w"] + layers[-1]["b"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()

    def step(layers, images, labels):
        value, gradients = jax.value_and_grad(loss)(layers, images, labels)
        return jax.tree_util.tree_map(lambda p, g: p - RATE * g, layers, gradients), value
    return step


def torch_program(torch):
    relu, cross_entropy = torch.nn.functional.relu, torch.nn.functional.cross_entropy

    def step(layers, images, labels):
        parameters = [value for layer in layers for value in (layer["w"], layer["b"])]
        with torch.enable_grad():
            for value in parameters:
                value.requires_grad_()
            hidden = images
            for layer in layers[:-1]:
                hidden = relu(torch.addmm(layer["b"], hidden, layer["w"]))
            loss = cross_entropy(torch.addmm(layers[-1]["b"], hidden, layers[-1]["w"]), labels.long())
            gradients = torch.autograd.grad(loss, parameters)
        torch._foreach_add_(parameters, gradients, alpha=-RATE)
        return layers, loss.detach()
    return step


def mlx_program(mx):
    def loss(layers, images, labels):
        hidden = images
        for layer in layers[:-1]:
            hidden = mx.maximum(hidden @ layer["w"] + layer["b"], 0)
        logits = hidden @ layers[-1]["w"] + layers[-1]["b"]
        return (mx.logsumexp(logits, axis=1) - mx.take_along_axis(logits, labels[:, None], axis=1)[:, 0]).mean()
    both = mx.value_and_grad(loss)

    def step(layers, images, labels):
        value, gradients = both(layers, images, labels)
        return [{key: layer[key] - RATE * change[key] for key in layer} for layer, change in zip(layers, gradients)], value
    return step


def numpy_program(numpy):
    def step(layers, images, labels):
        kept = [images]
        for layer in layers[:-1]:
            kept.append(numpy.maximum(kept[-1] @ layer["w"] + layer["b"], 0))
        logits = kept[-1] @ layers[-1]["w"] + layers[-1]["b"]
        logits -= logits.max(1, keepdims=True)
        shares = numpy.exp(logits)
        sums = shares.sum(1, keepdims=True)
        rows = numpy.arange(len(labels))
        value = (numpy.log(sums[:, 0]) - logits[rows, labels]).mean()
        change = shares / sums
        change[rows, labels] -= 1
        change /= numpy.float32(len(labels))
        following = []
        for layer, entered in zip(reversed(layers), reversed(kept)):
            following.append({"w": layer["w"] - numpy.float32(RATE) * (entered.T @ change),
                              "b": layer["b"] - numpy.float32(RATE) * change.sum(0)})
            if entered is not images:
                change = (change @ layer["w"].T) * (entered > 0)
        return following[::-1], value
    return step


def network(name, batch, widths, least):
    products = sum(a * b for a, b in zip(widths, widths[1:]))
    operations = 2 * batch * (3 * products - widths[0] * widths[1])  # no gradient with respect to the images
    return Row(name, f"batch {batch}, widths {'-'.join(map(str, widths))} f32, SGD", network_inputs(batch, widths), program,
               torch=torch_program, mlx=mlx_program, numpy=numpy_program, state=True, limit=("f32", operations), least=least,
               tolerance=1e-4)


def rows():
    return [
        network("MLP step b128 784-1024-1024-10", 128, (784, 1024, 1024, 10), {"best": 1.2}),
        network("MLP step b32 64-64-64-10", 32, (64, 64, 64, 10), {"best": 3}),
        network("MLP step b512 784-512-256-10", 512, (784, 512, 256, 10), {"best": 1.0}),
    ]
