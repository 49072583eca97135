"""Methods of compiled functions: shardings, layouts and text."""
import os
import types
from collections.abc import Sequence

from capibara import _core
from capibara._errors import ShardingTypeError
from capibara._origins import argument_name
from capibara._types import ShapeDtypeStruct
from capibara.jax._devices import local_devices
from capibara.jax._module_view import Module
from capibara.jax._sharding import Format, Layout, SingleDeviceSharding, sharding_from
from capibara.jax.tree_util import keystr, tree_flatten_with_path


def _shardings(tree, placements):
    return tree.unflatten([SingleDeviceSharding(local_devices()[0]) if one is None else sharding_from(one) for one in placements])


def _input_shardings(self):
    return _shardings(self.in_tree, self._input_placements)


def _output_shardings(self):
    return _shardings(self.out_tree, self._output_placements or [None] * self.out_tree.num_leaves)


def _formats(shardings, trees):
    """Adds layouts to shardings: all arrays are row-major."""
    leaves, tree = _core.tree_flatten(shardings)
    layouts = (Layout(tuple(range(len(info.shape)))) for info in _core.tree_leaves(trees))
    return tree.unflatten([Format(layout, sharding) for layout, sharding in zip(layouts, leaves)])


def refuse_placements(function, numbered, found):
    """Raises for arguments, (number, array, required placement), whose shardings differ from those compiled for."""
    texts = []
    for number, array, placement in found:
        required = sharding_from(placement)
        if not array.sharding.is_equivalent_to(required, array.ndim):
            texts.append(f"Argument {argument_name(function, numbered, number)} with shape {_core.type_of(array).str_short()}:\n"
                         f"  Passed sharding: {array.sharding}\n  Required sharding: {required}")
    if texts:
        raise ValueError("Computation was compiled for input shardings that disagree with the shardings of arguments passed to it. Here "
                         f"are the {len(texts)} mismatches:\n" + "\n".join(texts))


def _compiled_out_info(self):
    """Types of the results, with their placement."""
    leaves, tree = _core.tree_flatten(_out_info(self))
    shardings = _core.tree_leaves(self.output_shardings)
    return tree.unflatten([ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=Format(Layout(tuple(range(len(leaf.shape)))), sharding),
                                            weak_type=leaf.weak_type) for leaf, sharding in zip(leaves, shardings)])


_out_info = _core.Compiled.out_info.__get__

_NAMES_IN_XLA = {"psum": "all-reduce", "pmax": "all-reduce", "pmin": "all-reduce", "psum_scatter": "reduce-scatter",
                 "reduce_scatter": "reduce-scatter", "ppermute": "collective-permute"}


def _compiled_text(self):
    """The compiled program as text; for arguments split over devices, also the collectives of the partitioned program."""
    text = _compiled_program(self)
    if not any(placement is not None and len(placement.devices) > 1 for placement in self._input_placements):
        return text
    try:
        exchanges = self._inserted_collectives()
    except (NotImplementedError, RuntimeError, ShardingTypeError, TypeError, ValueError):  # it is not partitioned
        return text
    lines = [f"  {_NAMES_IN_XLA.get(name, name.replace('_', '-'))} over {', '.join(axes)}: {count} bytes, {times} times, {cause}\n"
             for name, axes, count, times, _, cause in exchanges]
    return f"{text}\ndivided among devices:\n{''.join(lines) or '  nothing is exchanged' + chr(10)}"


_compiled_program = _core.Compiled.as_text


def _leaf_names(tree, roots):
    """The names of leaves in C headers: args[0]['w'] if `roots` has a name for each element of the tree, otherwise result['y']."""
    paths = [path for path, _ in tree_flatten_with_path(tree.unflatten(range(tree.num_leaves)))[0]]
    if isinstance(roots, str):
        return [roots + keystr(path) for path in paths]
    return [roots[path[0].idx] + keystr(path[1:]) for path in paths]


def _write_object(self, object_path: str | os.PathLike, header_path: str | os.PathLike, *, targets: str | Sequence[str] = "native",
                  name: str | None = None, weights: str | os.PathLike | None = None) -> None:
    """Writes the program as an object file with one C function, and the header that declares it; docs/objects.md describes both.

    `targets`: one or several of native, x86-64-v3, x86-64-v4 and aarch64; with several levels the function selects the highest that the
    processor supports. `name`: of the C function, by default that of the Python function. `weights`: a file for constants of at least
    256 bytes, to which the C function then takes a pointer; without it they are in the object.
    """
    names = [targets] if isinstance(targets, str) else list(targets)
    if not all(isinstance(one, str) for one in names):
        raise TypeError(f"write_object: expected a target or a sequence of them (argument 'targets'), got {targets!r}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"write_object: expected a str (argument 'name'), got {type(name).__name__}")
    self._write_object(os.fspath(object_path), os.fspath(header_path), "" if weights is None else os.fspath(weights), names, name or "",
                       _leaf_names(self.in_tree, ("args", "kwargs")), _leaf_names(self.out_tree, "result"))


def _compiler_ir(self, dialect=None):
    """The program passed to the compiler; its text is as_text(dialect)."""
    return Module(self.as_text(dialect))


def complete():
    """Adds methods to the classes of stages."""
    compiled = _core.Compiled
    _core.Lowered.compiler_ir = _compiler_ir
    compiled.as_text = _compiled_text
    compiled.input_shardings = property(_input_shardings, doc="How the arguments are placed that it was compiled for.")
    compiled.output_shardings = property(_output_shardings, doc="How its results are placed.")
    compiled.input_formats = property(lambda self: _formats(self.input_shardings, self.args_info),
                                      doc="Layouts of arguments, and placement.")
    compiled.output_formats = property(lambda self: _formats(self.output_shardings, _out_info(self)),
                                       doc="Layouts of results, and placement.")
    compiled.out_info = property(_compiled_out_info, doc="Types of the results, with how they are placed.")
    compiled.write_object = _write_object
    compiled.runtime_executable = lambda self: self
    # Libraries read this private attribute of jax: constants passed in addition to the arguments, of which there are none.
    compiled._params = property(lambda self: types.SimpleNamespace(const_args=[]))
    compiled._executable = property(lambda self: types.SimpleNamespace(in_avals=_core.tree_leaves(self.in_avals)))
    _core.Lowered._lowering = property(lambda self: types.SimpleNamespace(const_args=[]))
