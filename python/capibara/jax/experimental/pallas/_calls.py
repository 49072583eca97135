"""pallas_call: runs a kernel on blocks of its arguments for every grid step, as a loop in an ordinary program."""
import contextvars
import dataclasses
import math

from capibara.jax import core, lax, tree_util
from capibara.jax import numpy as jnp
from capibara.jax.experimental.pallas._blocks import BlockSpec, no_block_spec
from capibara.jax.ref import freeze, new_ref

_step = contextvars.ContextVar("capibara_pallas_step", default=None)


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The cost of a kernel, for schedulers; not used here."""

    flops: int
    transcendentals: int
    bytes_accessed: int


def _current():
    step = _step.get()
    if step is None:
        raise ValueError("program_id and num_programs are known inside of a kernel only")
    return step


def program_id(axis):
    """The index of the grid step along an axis."""
    return _current()[0][axis]


def num_programs(axis):
    """The number of grid steps along an axis."""
    return _current()[1][axis]


def _specs(specs, tree, what):
    """A spec for each leaf, by default the whole array."""
    if specs is None or specs is no_block_spec:
        return [BlockSpec()] * tree.num_leaves
    leaves = tree_util.tree_leaves(specs, is_leaf=lambda x: x is None or isinstance(x, BlockSpec) or x is no_block_spec)
    if len(leaves) != tree.num_leaves:
        raise ValueError(f"pallas_call: {len(leaves)} {what} for {tree.num_leaves} arrays")
    return [leaf if isinstance(leaf, BlockSpec) else BlockSpec() for leaf in leaves]


def _padded(array, spec):
    """Pads an array to whole blocks; the values beyond the end of the array are undefined."""
    sizes = spec.sizes(array.shape)
    if any(by_element for *_, by_element in sizes):
        return array
    pads = [(0, -length % size if size else 0) for length, (size, *_) in zip(array.shape, sizes)]
    return jnp.pad(array, pads) if any(pad for _, pad in pads) else array


def _block(array, spec, shape, step, prefetched):
    sizes = spec.sizes(shape)
    starts = [jnp.asarray(start, "int32") for start in spec.starts(shape, step, prefetched)]
    block = lax.dynamic_slice(array, starts, [size for size, *_ in sizes])
    return block.reshape([size for size, left_out, _ in sizes if not left_out])


def _put(array, block, spec, shape, step, prefetched):
    sizes = spec.sizes(shape)
    starts = [jnp.asarray(start, "int32") for start in spec.starts(shape, step, prefetched)]
    return lax.dynamic_update_slice(array, block.reshape([size for size, *_ in sizes]), starts)


def _scratch(shape):
    return jnp.zeros(shape.shape, shape.dtype)


def pallas_call(kernel, out_shape, *, grid_spec=None, grid=(), in_specs=no_block_spec, out_specs=no_block_spec, scratch_shapes=(),
                input_output_aliases=None, debug=False, interpret=False, name=None, compiler_params=None, cost_estimate=None,
                backend=None, metadata=None, **_):
    """A function of arrays that runs a kernel on refs to their blocks, one grid step after another."""
    if grid_spec is not None:
        grid, in_specs, out_specs, scratch_shapes = grid_spec.grid, grid_spec.in_specs, grid_spec.out_specs, grid_spec.scratch_shapes
    prefetch = getattr(grid_spec, "num_scalar_prefetch", 0)
    grid = (grid,) if isinstance(grid, int) else tuple(size[1] if isinstance(size, tuple) else size for size in grid)
    aliases = dict(input_output_aliases or {})

    def call(*args):
        scalars = [jnp.asarray(value) for value in tree_util.tree_leaves(args[:prefetch])]
        arrays, in_tree = tree_util.tree_flatten(args[prefetch:])
        arrays = [jnp.asarray(array) for array in arrays]
        outs, out_tree = tree_util.tree_flatten(out_shape)
        ins = _specs(in_specs, in_tree, "in_specs")
        out = _specs(out_specs, out_tree, "out_specs")
        scratch, scratch_tree = tree_util.tree_flatten(scratch_shapes)
        shapes = [array.shape for array in arrays]
        padded = [_padded(array, spec) for array, spec in zip(arrays, ins)]
        sources = {target: source - len(scalars) for source, target in aliases.items()}
        results = [_padded(arrays[sources[i]] if i in sources else jnp.zeros(like.shape, like.dtype), spec)
                   for i, (like, spec) in enumerate(zip(outs, out))]

        def run(step, results, scratches):
            blocks = [_block(array, spec, shape, step, scalars) for array, spec, shape in zip(padded, ins, shapes)]
            blocks += [_block(array, spec, like.shape, step, scalars) for array, spec, like in zip(results, out, outs)]
            refs = [new_ref(block) for block in blocks + list(scratches)]
            token = _step.set((step, grid))
            try:
                inputs = tree_util.tree_unflatten(in_tree, refs[:len(ins)])
                outputs = refs[len(ins):len(ins) + len(out)]
                more = tree_util.tree_unflatten(scratch_tree, refs[len(ins) + len(out):])
                kernel(*map(new_ref, scalars), *inputs, *outputs, *(more.values() if isinstance(more, dict) else more))
            finally:
                _step.reset(token)
            last = [freeze(ref) for ref in refs]
            written = last[len(ins):len(ins) + len(out)]
            results = [_put(array, block, spec, like.shape, step, scalars) for array, block, spec, like in zip(results, written, out, outs)]
            return results, last[len(ins) + len(out):]

        scratches = [_scratch(shape) for shape in scratch]
        steps = math.prod(grid)
        if any(isinstance(size, core.Tracer) for size in grid):
            raise NotImplementedError(f"pallas_call: the grid must be known while the function is traced, got {grid}")
        if steps == 1:
            results, _ = run((0,) * len(grid), results, scratches)
        elif steps:
            def body(position, carry):
                step, rest = [], position
                for size in reversed(grid):
                    step.append(rest % size)
                    rest = rest // size
                return run(tuple(reversed(step)), *carry)
            results, _ = lax.fori_loop(0, steps, body, (results, scratches))
        results = [lax.slice(result, [0] * result.ndim, like.shape) for result, like in zip(results, outs)]
        return tree_util.tree_unflatten(out_tree, results)

    call.__name__ = name or getattr(kernel, "__name__", "kernel")
    return call
