"""Pytrees whose leaves are chosen by their paths, and what is said of trees that do not match."""
import collections
import dataclasses
import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
from jax import tree_util

Pair = collections.namedtuple("Pair", "a b")
Other = collections.namedtuple("Other", "a b")


class Box:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Box({self.value})"


tree_util.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))


@tree_util.register_dataclass
@dataclasses.dataclass
class WithStaticArray:
    x: object = dataclasses.field(metadata={"static": True})


@dataclasses.dataclass
class Fields:
    x: int
    y: int


def show(function):
    try:
        print(function())
    except Exception as error:
        print([kind.__name__ for kind in (TypeError, ValueError) if isinstance(error, kind)], error)


deep = ((1, 2), [3, {4: 4, 5: 5}])
two_levels = dict(is_leaf=lambda path, _: len(path) >= 2, is_leaf_takes_path=True)
show(lambda: [(tree_util.keystr(path), leaf) for path, leaf in tree_util.tree_flatten_with_path(deep, **two_levels)[0]])
show(lambda: [(tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(deep, **two_levels)])
show(lambda: jax.tree.map_with_path(lambda path, x, y: (len(path), x, y), deep, deep, **two_levels))

for tree, other in [([1, 2], [7]), ((1,), (7, 8)), ({"a": 1}, {"b": 1}), (Pair(1, 2), (1, 2)), (Pair(1, 2), Other(1, 2)), (Box(1), (1,)), ([[1]], [7]),
                    (collections.OrderedDict(a=1), {"a": 1})]:
    show(lambda: tree_util.tree_structure(tree).flatten_up_to(other))
    show(lambda: jax.tree.map(lambda x, y: x, tree, other))
show(lambda: jax.tree.map(lambda x, y: x, {"a": 1}, {"a": 1, "b": 2}))
show(lambda: jax.tree.broadcast((1, 2), (1, 2, 3)))

nested = tree_util.Partial(functools.partial(print, 1), 2)
show(lambda: (nested.args, nested.func == functools.partial, len(jax.tree.leaves(nested))))
show(lambda: jax.tree.structure({"a": 1, "b": [2]}).walk(lambda children, data: (children, data), lambda leaf: -leaf, [1, 2]))
show(lambda: tree_util.register_dataclass(Fields, data_fields=["x"]))
show(lambda: tree_util.register_dataclass(Fields, data_fields=["x"], meta_fields=[]))
show(lambda: tree_util.register_dataclass(Fields, data_fields=["x", "y"], meta_fields=["x"]))
show(lambda: jax.tree.structure(WithStaticArray(jnp.arange(3))) == jax.tree.structure(WithStaticArray(jnp.arange(3))))

traces = []
flat, unravel = jax.flatten_util.ravel_pytree((jnp.array([1, 2]), jnp.array([[3]])))
other = jax.flatten_util.ravel_pytree((jnp.array([5, 6]), jnp.array([[7]])))
run = jax.jit(lambda flat, unravel: (traces.append(1), unravel(flat + 1))[1], static_argnums=1)
print(run(flat, unravel), run(*other), len(traces), jax.tree.map(lambda x: str(x.dtype), unravel(flat > 1)))
