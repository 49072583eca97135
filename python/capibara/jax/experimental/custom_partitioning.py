"""jax.experimental.custom_partitioning: functions with user-defined partitioning over devices."""
from __future__ import annotations

import inspect
from typing import Any, Callable

from capibara import _core, _tracebacks
from capibara._errors import UnexpectedTracerError
from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct
from capibara.jax import tree_util
from capibara.jax._api import eval_shape
from capibara.jax._mesh import PartitionSpec, current_mesh
from capibara.jax._sharding import NamedSharding, Sharding, sharding_from
from capibara.jax._sharding_rules import BATCHING, ArrayMapping, CompoundFactor, Factors, SdyShardingRule, str_to_sdy_sharding_rule

__all__ = ["ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]


class custom_partitioning:
    """A function with its own partitioning rule.

    `f.def_partition(partition, sharding_rule="i j, j k -> i k")`: the rule says which dimensions correspond, and
    `partition(mesh, arg_shapes, result_shape)` returns (mesh, function on one device's shards, shardings of the result, shardings of the
    arguments). If a program is not partitioned, the function runs unchanged.
    """

    def __init__(self, fun: Callable, static_argnums: tuple[int, ...] = ()) -> None:
        self.fun = fun
        self.static_argnums = static_argnums
        self.partition: Callable | None = None
        self.propagate_user_sharding: Callable | None = None
        self.infer_sharding_from_operands: Callable | None = None
        self.decode_shardings = True
        self.sharding_rule: Any = None

    def __getattr__(self, name: str) -> Any:
        if name == "fun":
            raise AttributeError(name)
        return getattr(self.fun, name)

    def def_partition(self, partition: Callable, infer_sharding_from_operands: Callable | None = None,
                      propagate_user_sharding: Callable | None = None, decode_shardings: bool = True, sharding_rule: Any = None, *,
                      reduction_factors: tuple[str, ...] = (), need_replication_factors: tuple[str, ...] = (),
                      permutation_factors: tuple[str, ...] = (), **factor_sizes: int) -> Callable:
        """Sets how the function is partitioned; returns `partition`."""
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        kinds = {"reduction_factors": reduction_factors, "need_replication_factors": need_replication_factors,
                 "permutation_factors": permutation_factors}
        if sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, SdyShardingRule):
            unknown = {**factor_sizes, **{kind: names for kind, names in kinds.items() if names}}
            if unknown:
                raise ValueError(f"Unknown keyword arguments: {unknown}")
            self.sharding_rule = sharding_rule
        else:
            self.sharding_rule = str_to_sdy_sharding_rule(sharding_rule, **kinds, **factor_sizes)
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError("keyword arguments could not be resolved to positions")
        args = bound.args
        static = set(self.static_argnums)
        static_args = tuple(args[i] for i in self.static_argnums)
        if any(isinstance(leaf, _core.Tracer) for leaf in tree_util.tree_leaves(static_args)):
            raise UnexpectedTracerError("Found a JAX Tracer object passed as an argument to a custom_partitioning function in a position "
                                        "indicated as static by static_argnums. ")
        if self.sharding_rule is None and (self.propagate_user_sharding is not None or self.infer_sharding_from_operands is not None):
            raise NotImplementedError("Shardy is used, but sharding propagation callbacks instead of sharding_rule are provided. Need to "
                                      "provide sharding_rule to migrate to Shardy.")
        if self.partition is None:
            raise ValueError(f"custom_partitioning: {getattr(self.fun, '__name__', self.fun)} has no partition; set it by def_partition")
        return _Call(self, args, static, static_args).run()


class _Call:
    """One call of a custom_partitioning function."""

    def __init__(self, function: custom_partitioning, args: tuple, static: set[int], static_args: tuple) -> None:
        self.function, self.args, self.static, self.static_args = function, args, static, static_args
        dynamic = tuple(value for i, value in enumerate(args) if i not in static)
        leaves, self.in_tree = _core.tree_flatten(dynamic)
        self.leaves = [_core.as_array(leaf) for leaf in leaves]
        self.out_tree: Any = None

    def run(self) -> Any:
        shapes = eval_shape(lambda *values: self._whole(values), *self.in_tree.unflatten(self.leaves))
        out_leaves, self.out_tree = _core.tree_flatten(shapes)
        self.in_types = [_core.type_of(leaf) for leaf in self.leaves]
        self.out_types = out_leaves
        factors = Factors(self._rule(), [tuple(one.shape) for one in self.in_types], [tuple(one.shape) for one in self.out_types])

        def on_leaves(parts: list) -> list:
            return _core.tree_leaves(self._whole(self.in_tree.unflatten(parts)))

        name = getattr(self.function.fun, "__name__", "fn")
        results = _core.custom_partitioning(on_leaves, name, self.leaves, factors.sizes, factors.uses, factors.operands, factors.results,
                                            self._divided)
        return self.out_tree.unflatten(results)

    def _whole(self, values: Any) -> Any:
        values = iter(values)
        return self.function.fun(*[value if i in self.static else next(values) for i, value in enumerate(self.args)])

    def _rule(self) -> SdyShardingRule | None:
        rule = self.function.sharding_rule
        if not callable(rule):
            return rule
        answer = rule(*self.static_args, current_mesh(), self.in_types, self.out_types)
        words: dict = {}
        if isinstance(answer, (list, tuple)) and len(answer) == 2:
            answer, words = answer
        if isinstance(answer, str):
            return str_to_sdy_sharding_rule(answer, **words)
        if not isinstance(answer, SdyShardingRule):
            raise ValueError("sharding_rule callable must produce either an SdyShardingRule object or an Einsum-like notation string.")
        return answer

    def _divided(self, devices: Any, operands: list, results: list) -> tuple:
        """(the function for each device's shards, axes of arguments, axes of results)."""
        mesh = sharding_from(devices).mesh

        def shapes(types: list, specs: list) -> list:
            return [ShapeDtypeStruct(tuple(one.shape), one.dtype, sharding=NamedSharding(mesh, _spec(axes, len(one.shape))))
                    for one, axes in zip(types, specs)]

        answer = self.function.partition(*self.static_args, mesh, self.in_tree.unflatten(shapes(self.in_types, operands)),
                                         self.out_tree.unflatten(shapes(self.out_types, results)))
        if not isinstance(answer, tuple) or len(answer) != 4:
            raise TypeError("custom_partitioning: partition must return (mesh, function on parts, shardings of results, shardings of "
                            f"arguments), got {answer!r}")
        _, local, result_shardings, arg_shardings = answer

        def on_parts(parts: list) -> list:
            return _core.tree_leaves(local(*self.in_tree.unflatten(parts)))

        return on_parts, _axes_of(self.in_tree, arg_shardings), _axes_of(self.out_tree, result_shardings)


def _spec(axes: list, rank: int) -> PartitionSpec:
    entries = [None if not names else names[0] if len(names) == 1 else tuple(names) for names in axes]
    return PartitionSpec(*entries, *(None,) * (rank - len(entries)))


def _axes_of(tree: Any, shardings: Any) -> list:
    rows = []
    for sharding in tree.flatten_up_to(shardings):
        if not isinstance(sharding, Sharding):
            raise ValueError("Custom Partitioning rules must return Sharding.")
        spec = sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()
        rows.append([[entry] if isinstance(entry, str) else list(entry or ()) for entry in spec])
    return rows


explain_missing(__name__)
_tracebacks.guard(__name__)
