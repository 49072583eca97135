"""Convolutions: dense, strided, pointwise, depthwise; pooling; and their gradients."""

import numpy

from .elementwise import gradient, torch_gradient
from .row import Row

AHEAD = {"jax": 1.0, "torch": 1.0}


def convolution(stride, padding, groups=1):
    def program(jax):
        return lambda x, w: jax.lax.conv_general_dilated(
            x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW"),
            feature_group_count=groups)

    def torch_program(torch):
        return lambda x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding, groups=groups)

    def mlx_program(mx):
        # MLX convolves only channels-last arrays; transposing the inputs is part of the program.
        return lambda x, w: mx.conv2d(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), stride=stride, padding=padding,
                                      groups=groups).transpose(0, 3, 1, 2)
    return program, torch_program, mlx_program


def pair(name, what, image, weights, stride=1, padding=1, groups=1, least=None, backward=None):
    batch, _, height, width = image
    out, depth, rows, columns = weights
    result = (batch, out, (height + 2 * padding - rows) // stride + 1, (width + 2 * padding - columns) // stride + 1)
    operations = 2 * int(numpy.prod(result)) * depth * rows * columns

    def inputs(*shapes):
        return lambda random: tuple(random.standard_normal(shape).astype(numpy.float32) for shape in shapes)

    program, torch_program, mlx_program = convolution(stride, padding, groups)
    limit = ("f32", operations) if groups == 1 else ("copy", 4 * int(numpy.prod(image) + numpy.prod(result)))
    back = ("f32", 2 * operations) if groups == 1 else None
    return [
        Row(name, what, inputs(image, weights), program, torch=torch_program, mlx=mlx_program, limit=limit, least=least or AHEAD,
            tolerance=1e-5),
        Row(f"{name} backward", f"gradients of {what}", inputs(image, weights, result), gradient(program),
            torch=torch_gradient(torch_program), limit=back, least=backward or AHEAD, tolerance=1e-5),
    ]


def max_pooling():
    """Windows of 3x3 with stride 2, channels first."""
    image, result = (8, 64, 112, 112), (8, 64, 56, 56)

    def inputs(*shapes):
        return lambda random: tuple(random.standard_normal(shape).astype(numpy.float32) for shape in shapes)

    def program(jax):
        return lambda x: jax.lax.reduce_window(x, -jax.numpy.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])

    def torch_program(torch):
        return lambda x: torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1)

    what = "(8,64,112,112), 3x3 stride 2 f32"
    moved = 4 * int(numpy.prod(image) + numpy.prod(result))
    return [
        Row("max pooling", what, inputs(image), program, torch=torch_program, limit=("copy", moved), least=AHEAD, tolerance=0),
        Row("max pooling backward", f"gradient of {what}", inputs(image, result), gradient(program), torch=torch_gradient(torch_program),
            least=AHEAD, tolerance=1e-6),
    ]


def rows():
    dense = dict(AHEAD, limit=0.70)
    found = pair("conv 3x3", "(8,64,56,56), 64 filters f32", (8, 64, 56, 56), (64, 64, 3, 3), least=dense, backward=dense)
    found += pair("conv 3x3 stride 2", "(8,64,56,56), 128 filters f32", (8, 64, 56, 56), (128, 64, 3, 3), stride=2, least=dense,
                  backward=dense)
    found += pair("conv 1x1", "(8,256,28,28), 128 filters f32", (8, 256, 28, 28), (128, 256, 1, 1), padding=0, least=dense,
                  backward=dense)
    found += pair("conv depthwise", "(8,128,56,56), 3x3 f32", (8, 128, 56, 56), (128, 1, 3, 3), groups=128)
    found += pair("conv 7x7 stride 2", "(4,3,224,224), 64 filters f32", (4, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3)
    found += max_pooling()
    return found
