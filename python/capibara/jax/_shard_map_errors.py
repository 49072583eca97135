"""Error messages for mismatched specifications of shard_map, in jax's words."""
import inspect
import math

from capibara.jax import tree_util


def other_sharding(spec, own):
    return (f"in_specs passed to shard_map: {spec} does not match the specs of the input: {own.sharding.spec} for arg: {own}. "
            "`in_specs` is an optional argument so you can omit specifying it and shard_map will infer the in_specs from the "
            "arguments. If you want to reshard "
            "your inputs, you can use `jax.reshard` on the arguments and then pass those args to shard_map.")


def _name(function):
    return getattr(function, "__name__", repr(function))


def _applied(function):
    return f"shard_map applied to the function '{_name(function)}' was given"


def _mesh_text(mesh):
    return f"The mesh given has shape {tuple(mesh.axis_sizes)} with corresponding axis names {tuple(mesh.axis_names)}."


def _type_text(array):
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _argument(function, args, leaf):
    """(name of a leaf of the arguments, parameter that it is bound to)."""
    try:
        bound = inspect.signature(function).bind(*args).arguments
        parameters = []
        for name, value in bound.items():
            is_rest = inspect.signature(function).parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            parameters += [name] * (len(value) if is_rest else 1)
    except (TypeError, ValueError):
        parameters = [None] * len(args)
    for i, (argument, parameter) in enumerate(zip(args, parameters)):
        for path, _ in tree_util.tree_flatten_with_path(argument)[0]:
            if leaf == 0:
                bound = f", where args[{i}] is bound to {_name(function)}'s parameter '{parameter}'" if parameter else ""
                return f"args[{i}]{tree_util.keystr(path)}", bound
            leaf -= 1
    return "argument", ""


def no_specs(word):
    return (f"shard_map {word} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but it was `None`.\n"
            f"Instead of `{word}=None`, did you mean `{word}=P()`, where `P = jax.sharding.PartitionSpec`?")


def nothing_to_infer(operation, mesh, manual):
    kinds = ", ".join(str(mesh.type_of(name)) for name in manual)
    if operation == "smap":
        return f"in_axes was not specified when axis_name={frozenset(manual)} was of type {kinds}"
    return ("shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, but it was `None` when "
            f"axis_names={frozenset(manual)} are of type {kinds}")


def not_a_spec(word, spec):
    return (f"shard_map {word} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but:\n\n  {word} is {spec!r} of type "
            f"{type(spec).__name__}, \n\nCheck the {word} values passed to shard_map.")


def foreign_axis(word, name, manual):
    return (f"shard_map {word} argument must refer to an axis marked as manual ({frozenset(manual)}), but:\n\n  {word} refers to "
            f"{name!r}\n\nCheck the {word} values passed to shard_map.")


def count_of_specs(function, specs, args):
    return ("shard_map in_specs specification must be a tree prefix of the positional arguments passed to the function: there are "
            f"{len(specs)} specifications for {len(args)} arguments of '{_name(function)}'")


def long_argument(function, args, leaf, array, spec):
    shown, bound = _argument(function, args, leaf)
    hint = ("" if array.ndim else "\n\nFor scalar values (rank 0), consider using an in_specs entry of `P()`, where "
            "`P = jax.sharding.PartitionSpec`.")
    return (f"{_applied(function)} an in_specs entry which is too long to be compatible with the corresponding input value from the "
            f"function:\n\nin_specs is {spec} which has length {len(spec)}, but the passed {shown}{bound}, has shape {_type_text(array)}, "
            f"which has rank {array.ndim} (and {array.ndim} < {len(spec)})\n\nEntries in in_specs must be of length no greater than the "
            "number of axes in the corresponding input value.\n\nEither revise the spec to be shorter, or modify "
            f"'{_name(function)}' so that its inputs have sufficient rank.{hint}")


def other_mesh(own, mesh, text):
    return (f"Mesh shape of the input {own.shape_tuple} does not match the mesh shape passed to shard_map  {mesh.shape_tuple} for shape "
            f"{text}")


NO_DEVICES = ("Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` to the mesh argument.")


def uneven_argument(function, mesh, args, leaf, array, spec, dim, axes):
    shown, bound = _argument(function, args, leaf)
    parts, size = math.prod(mesh.shape[name] for name in axes), array.shape[dim]
    named = f"axis '{axes[0]}' (of size {parts})" if len(axes) == 1 else f"axes {tuple(axes)} (of total size {parts})"
    return (f"{_applied(function)} argument arrays with axis sizes that are not evenly divisible by the corresponding mesh axis "
            f"sizes:\n\n{_mesh_text(mesh)}\n\nthe passed {shown} of shape {_type_text(array)}{bound}, corresponds to in_specs of value "
            f"{spec}, which maps array axis {dim} (of size {size}) to mesh {named}, but {parts} does not evenly divide {size}\n\nArray "
            "arguments' axis sizes must be evenly divisible by the mesh axis or axes indicated by the corresponding elements of the "
            "argument's in_specs entry. Consider checking that in_specs are correct, and if so consider changing the mesh axis sizes or "
            f"else padding the input and adapting '{_name(function)}' appropriately.")


def long_result(function, spec, shape, text):
    hint = ("\n\nFor scalar values (rank 0), consider using an out_specs entry of `P()`, where `P = jax.sharding.PartitionSpec`. In "
            "particular, for rank 0 outputs which are not constant over the mesh, add at least one (singleton) axis to them so that they "
            "can be concatenated using out_specs.") if not shape else ""
    return (f"{_applied(function)} an out_specs entry which is too long to be compatible with the corresponding output value from the "
            f"function:\n\nout_specs is {spec} which has length {len(spec)}, but {_name(function)}(*args) has shape {text}, which has rank "
            f"{len(shape)} (and {len(shape)} < {len(spec)})\n\nEntries in out_specs must be of length no greater than the number of axes "
            f"in the corresponding output value.\n\nEither revise the spec to be shorter, or modify '{_name(function)}' so that its "
            f"outputs have sufficient rank.{hint}")


def varying_results(function, mesh, found):
    lines = []
    for spec, named, own in found:
        more = ",".join(name for name in own if name not in named)
        lines.append(f"out_specs is {spec} which implies that the corresponding output value is only varying across mesh axes "
                     f"{{{','.join(named)}}} and not {{{more}}}, but it was inferred to be possibly varying over {{{','.join(own)}}}")
    listed = lines[0] if len(lines) == 1 else "\n\n".join(f"* {line}" for line in lines)
    return (f"{_applied(function)} out_specs which require replication which can't be statically inferred given the mesh:\n\n"
            f"{_mesh_text(mesh)}\n\n{listed}\n\nCheck if these output values are meant to be replicated over those mesh axes. If not, "
            "consider revising the corresponding out_specs entries. If so, consider disabling the check by passing the check_vma=False "
            "argument to `jax.shard_map`.")
