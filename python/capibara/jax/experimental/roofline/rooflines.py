"""The rules of jax.experimental.roofline: what one operation computes, moves through memory, and sends to other devices."""
import collections
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import capibara.jax as jax
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import lax
from capibara.jax.experimental.roofline.roofline import RooflineResult, RooflineShape, register_roofline, roofline

_UNARY = """abs acos asin atan cbrt ceil conj cos cosh exp expm1 floor imag integer_pow is_finite log log1p logistic neg not real round
    rsqrt sign sin sinh sqrt square tan bessel_i0e bessel_i1e digamma erf_inv erf erfc lgamma""".split()
_BINARY = "add sub mul div rem and or xor gt lt ge le eq ne min max".split()


def _all_bytes(context):
    return RooflineShape.total_bytes([*context.avals_in, *context.avals_out])


def _unary(context, x, **_):
    return RooflineResult(unfused_flops=x.size, unfused_hbm_bytes=_all_bytes(context))


def _binary(context, left, right, **_):
    # Operands of different ranks are aligned at their first dimensions, as in jax.
    sizes = [max(pair) for pair in itertools.zip_longest(left.shape, right.shape, fillvalue=1)]
    return RooflineResult(unfused_flops=math.prod(sizes), unfused_hbm_bytes=_all_bytes(context))


def _cumulative(each):
    def rule(context, x, *, axis, **_):
        return RooflineResult(unfused_flops=each * x.shape[axis], unfused_hbm_bytes=_all_bytes(context))  # of one line, as in jax
    return rule


def _dot_general(context, left, right, *, dimension_numbers, **_):
    (contracted, _), (batch, _) = dimension_numbers
    shared = math.prod(left.shape[axis] for axis in (*contracted, *batch))
    flops = 2 * left.size * right.size // shared if shared else 0
    moved = 0 if context.pin_lhs_in_vmem else left.bytes + RooflineShape.total_bytes(context.avals_out)
    moved += 0 if context.pin_rhs_in_vmem else right.bytes
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _valid_positions(size, kernel, out, stride, low, dilation, kernel_dilation):
    """The number of pairs of a kernel element and an output element that meet an input element, not padding or the gaps of dilation.

    Output o and kernel element k meet input i where o * stride + k * kernel_dilation - low = i * dilation. The products of o and those
    of i repeat with their least common multiple: for each k, the first solution gives the others.
    """
    step = math.gcd(stride, dilation)
    period = dilation // step  # of the outputs that meet an input
    inverse = pow(stride // step, -1, period) if period > 1 else 0
    count = 0
    for k in range(kernel):
        offset = low - k * kernel_dilation  # o * stride must be offset + i * dilation, for 0 <= i < size
        if offset % step:
            continue
        least = max(0, -(-offset // stride))
        limit = min(out, (offset + (size - 1) * dilation) // stride + 1)
        first = offset // step * inverse % period
        first += -(-max(0, least - first) // period) * period
        count += max(0, -(-(limit - first) // period))
    return count


def _convolution(context, left, right, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, batch_group_count, **_):
    numbers = lax.conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    out = RooflineShape.from_aval(context.avals_out[0])
    multiplications = right.shape[numbers.rhs_spec[1]] * out.shape[numbers.out_spec[1]]
    multiplications = multiplications * left.shape[numbers.lhs_spec[0]] // batch_group_count
    for axis, places in enumerate(zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:])):
        sizes = [part.shape[place] for part, place in zip((left, right, out), places)]
        multiplications *= _valid_positions(*sizes, window_strides[axis], padding[axis][0], lhs_dilation[axis], rhs_dilation[axis])
    return RooflineResult(unfused_flops=2 * multiplications, unfused_hbm_bytes=_all_bytes(context))


def _gather(context, _, indices, *, mode, **__):
    out = RooflineShape.from_aval(context.avals_out[0])
    # To fill, each index is compared with two bounds, and both results are combined over the index and applied to each element.
    filled = getattr(mode, "name", mode).lower() == "fill_or_drop"
    checks = 4 * indices.size + out.size if filled else 0
    return RooflineResult(unfused_flops=checks, unfused_hbm_bytes=2 * out.bytes + indices.bytes)


def _scatter(context, _, indices, updates, *, update_jaxpr=None, update_consts=(), **__):
    if update_jaxpr is None:
        each = 0 if context.primitive.name == "scatter" else 1
    else:
        element, program = jax.ShapeDtypeStruct((), updates.dtype), getattr(update_jaxpr, "jaxpr", update_jaxpr)
        _, one = roofline(lambda *inputs: jax.core.eval_jaxpr(program, update_consts, *inputs))(*(element for _ in program.invars))
        each = one.unfused_flops
    return RooflineResult(unfused_flops=each * updates.size, unfused_hbm_bytes=3 * updates.bytes + indices.bytes)


def _reduce_sum(context, x, *, axes, **_):
    results = RooflineShape.from_aval(context.avals_out[0]).size
    return RooflineResult(unfused_flops=(math.prod(x.shape[axis] for axis in axes) - 1) * results,
                          unfused_hbm_bytes=x.bytes + results * x.dtype.itemsize)


def _select(context, which, *_, **__):
    out = RooflineShape.from_aval(context.avals_out[0])
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=which.bytes + out.bytes)


def _callback(context, *_, **__):
    return RooflineResult(unfused_hbm_bytes=_all_bytes(context))


def _debug_callback(context, *_, **__):
    return RooflineResult(unfused_hbm_bytes=RooflineShape.total_bytes(context.avals_in))


# ---- communication: devices of a mesh axis form a ring


def _over(axes, sent, hops):
    return RooflineResult(ici_bytes=dict.fromkeys(axes, int(sent)), ici_latency=dict.fromkeys(axes, int(hops)))


def _sizes(context, axes):
    """The sizes of mesh axes; None if one device has all data."""
    if context.mesh is None:
        raise ValueError(f"roofline: {context.primitive} over the axes {tuple(axes)} needs the mesh; give roofline(f, mesh=...)")
    sizes = {axis: context.mesh.shape[axis] for axis in axes}
    return sizes if math.prod(sizes.values()) > 1 else None


def _ring(context, axes, each, reduced):
    """Rings over all axes at once, each of which starts with a part of a shard of `each` bytes; longer axes come first."""
    sizes = _sizes(context, axes)
    if sizes is None:
        return _over(axes, 0, 0)
    order = sorted(axes, key=sizes.get, reverse=True)
    shard = (each / math.prod(sizes.values()) if reduced else each) // len(order)
    sent = 0
    for axis in order:
        sent += shard * (sizes[axis] - 1)
        shard *= sizes[axis]
    return _over(order, sent, sizes[order[0]] * len(order))


def _all_gather(context, *_, axis_name, **__):
    return _ring(context, axis_name, RooflineShape.total_bytes(context.avals_in), False)


def _reduce_scatter(context, *_, axis_name, **__):
    return _ring(context, axis_name, RooflineShape.total_bytes(context.avals_in), True)


def _sum_over_devices(context, *_, axes, **__):
    half = _ring(context, axes, RooflineShape.total_bytes(context.avals_in), True)
    return half * 2  # reduce-scatter, then all-gather


def _extreme_over_devices(context, *shapes, axes, **_):
    return _ring(context, axes, sum(shape.dtype.itemsize for shape in shapes), False)  # one number of each operand, as in jax


def _all_to_all(context, *_, axis_name, **__):
    sizes = _sizes(context, axis_name)
    if sizes is None:
        return _over(axis_name, 0, 0)
    # Half of all data crosses the middle of the mesh, whose links are those of its shortest axis, twice where the ring closes.
    shortest = min(sizes.values())
    links = shortest ** (len(axis_name) - 1) * (2 if shortest > 2 else 1)
    data = RooflineShape.total_bytes(context.avals_in) * math.prod(sizes.values())
    return _over(axis_name, data / 2 / links, sum(size / 2 for size in sizes.values()))


def _permute(context, *_, axis_name, perm, **__):
    sizes = _sizes(context, axis_name)
    if sizes is None:
        return _over(axis_name, 0, 0)
    lengths = [sizes[axis] for axis in axis_name]
    links, hops = collections.Counter(), 0
    for source, target in perm:
        starts, ends = (np.unravel_index(number, lengths) for number in (source, target))
        taken = 0
        for axis, (start, end, length) in enumerate(zip(map(int, starts), map(int, ends), lengths)):
            forward, backward = (end - start) % length, (start - end) % length
            step = 1 if forward <= backward else -1
            for hop in range(min(forward, backward)):
                # Other coordinates are those of the source, as in jax.
                ends_of_link = [(*starts[:axis], (start + step * count) % length, *starts[axis + 1:]) for count in (hop, hop + 1)]
                links[frozenset(tuple(map(int, place)) for place in ends_of_link)] += 1
            taken += min(forward, backward)
        hops = max(hops, taken)
    return _over(axis_name, RooflineShape.total_bytes(context.avals_in) * max(links.values(), default=0), hops)


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_UNARY, _unary), **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(("cummax", "cummin", "cumprod", "cumsum"), _cumulative(1)), "cumlogsumexp": _cumulative(2),
    "dot_general": _dot_general, "conv_general_dilated": _convolution, "gather": _gather, "reduce_sum": _reduce_sum, "select_n": _select,
    **dict.fromkeys(("scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub"), _scatter),
    **dict.fromkeys(("pure_callback", "io_callback"), _callback), "debug_callback": _debug_callback,
    "all_gather": _all_gather, "reduce_scatter": _reduce_scatter, "psum_invariant": _sum_over_devices,
    **dict.fromkeys(("pmin", "pmax"), _extreme_over_devices), "all_to_all": _all_to_all, "ppermute": _permute}
for _primitive in _core.catalog():
    if _primitive.name in _RULES:
        register_roofline(_primitive)(_RULES[_primitive.name])

explain_missing(__name__)
