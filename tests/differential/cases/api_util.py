"""jax.api_util, the types for annotations, and small names of trees, stages and policies."""

import collections
import dataclasses
import importlib
import typing

from makers import *

X = np.array([0.5, -1.0, 2.0], np.float32)
M = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [-0.5, 1.0, 3.0]], np.float32)


def util(jax):
    return importlib.import_module(f"{jax.__name__}.api_util")


def wrapped(jax, f, *args, **kwargs):
    return importlib.import_module(f"{jax.__name__}.extend.linear_util").wrap_init(f, debug_info=util(jax).debug_info("test", f, args, kwargs))


def example(x, y, *rest, k=1, **more):
    return {"a": x}


def flattened(jax, f, tree, kind):
    leaves, structure = jax.tree.flatten(tree)
    flat, out = getattr(util(jax), kind)(wrapped(jax, f), structure)
    return [flat.call_wrapped(*leaves), str(out())]


def partial(jax, chosen, args):
    f, values = util(jax).argnums_partial(wrapped(jax, lambda x, y, z: x + 10 * y + 100 * z), chosen, args)
    return [values, f.call_wrapped(*[v + 1 for v in values])]


API = [
    check("api_util.shaped_abstractify: values", lambda jax: [str(util(jax).shaped_abstractify(v)) for v in (1, 2.5, True, np.ones((2, 3)), np.int8(1), jax.numpy.ones(2, "bfloat16"), jax.ShapeDtypeStruct((2,), "int8"))]),
    check("api_util.shaped_abstractify: weak types", lambda jax: [util(jax).shaped_abstractify(v).weak_type for v in (1, 2.5, np.float32(1), jax.numpy.ones(2))]),
    check("api_util.shaped_abstractify: a text", lambda jax: util(jax).shaped_abstractify("a")),
    check("api_util.safe_map: lists", lambda jax: util(jax).safe_map(lambda a, b: a + b, [1, 2], (3, 4))), check("api_util.safe_map: of other lengths", lambda jax: util(jax).safe_map(lambda a, b: a, [1], [2, 3])),
    check("api_util.flatten_axes: prefixes", lambda jax: [util(jax).flatten_axes("in_axes", jax.tree.structure((1, {"a": 2, "b": 3})), axes) for axes in (0, (0, None), (1, {"a": 0, "b": None}), None)]),
    check("api_util.flatten_axes: no prefix", lambda jax: util(jax).flatten_axes("in_axes", jax.tree.structure((1, 2)), (0, None, 1))),
    check("api_util.flatten_fun: of both kinds of arguments", lambda jax: flattened(jax, lambda x, *, k: {"s": x[0] + k, "t": (x[1],)}, (([1.0, 2.0],), {"k": 3.0}), "flatten_fun")),
    check("api_util.flatten_fun_nokwargs: of positions", lambda jax: flattened(jax, lambda x, y: (x, [y["b"]]), (1.0, {"b": 2.0}), "flatten_fun_nokwargs")),
    check("api_util.argnums_partial: chosen arguments", lambda jax: [partial(jax, n, (1, 2, 3)) for n in (0, (1,), (0, 2), -1, (2, 0))]),
    check("api_util.argnums_partial: an unhashable rest", lambda jax: util(jax).argnums_partial(wrapped(jax, lambda x, y: x), 0, (1, [2]))), check("api_util.argnums_partial: out of range", lambda jax: partial(jax, 5, (1, 2, 3))),
    check("api_util.donation_vector: leaves", lambda jax: [util(jax).donation_vector((1,), ("k",), jax.tree.structure(((1, (2, 3)), {"k": 4, "j": 5}))), util(jax).donation_vector((0,), (), jax.tree.structure((1, (2, 3))), kws=False)]),
    check("api_util.rebase_donate_argnums: beside static ones", lambda jax: [util(jax).rebase_donate_argnums(d, s) for d, s in (((3, 4), (0, 1)), ((0, 2), (1,)), ((), (1,)), ((2, 1), ()))]),
    check("api_util.rebase_donate_argnums: both", lambda jax: util(jax).rebase_donate_argnums((1,), (1,))),
    check("api_util.debug_info, extend.core.DebugInfo: of a function", lambda jax: (lambda d: [type(d).__name__, d.traced_for, d.func_name, d.func_filename.rpartition("/")[2], d.func_lineno, d.arg_names])(
        util(jax).debug_info("jit", example, (1, {"b": 2, "a": [3, 4]}, 5, 6), {"k": 7, "z": (8,)}))),
    check("api_util.debug_info: static arguments", lambda jax: util(jax).debug_info("jit", example, (1, 2), {"k": 7}, static_argnums=(0,), static_argnames=("k",)).arg_names),
    check("api_util.debug_info: arguments that do not fit", lambda jax: [util(jax).debug_info("jit", example, (), {}).arg_names, util(jax).debug_info("jit", lambda x: x, (1, 2), {"k": 3}).arg_names]),
]

# --- types for annotations -------------------------------------------------------------------------------------------

VALUES = [1, 2.0, True, 1j, np.float32(1), np.int8(1), np.ones(2), np.bool_(True), None, "text", [1], (1,), {}, object]


def names(annotation):
    """The parts of a union or of a generic type, as text."""
    parts = typing.get_args(annotation)
    return sorted(part.__name__.rpartition(".")[2] if isinstance(part, type) and not typing.get_args(part) else " ".join(names(part)) or str(part).rpartition(".")[2] for part in parts)


TYPES = [
    check("typing.ArrayLike: isinstance", lambda jax: [isinstance(v, jax.typing.ArrayLike) for v in VALUES] + [isinstance(v, jax.typing.ArrayLike) for v in (jax.numpy.ones(2), jax.random.key(0), jax.numpy.float32)]),
    check("typing.ArrayLike: parts", lambda jax: names(jax.typing.ArrayLike)),
    check("typing.DTypeLike: parts", lambda jax: names(jax.typing.DTypeLike)),
    check("typing.DTypeLike: isinstance", lambda jax: isinstance("float32", jax.typing.DTypeLike)),
    check("lax.DotDimensionNumbers: parts", lambda jax: [typing.get_origin(jax.lax.DotDimensionNumbers).__name__, names(jax.lax.DotDimensionNumbers)]),
    check("lax.ConvGeneralDilatedDimensionNumbers: parts", lambda jax: names(jax.lax.ConvGeneralDilatedDimensionNumbers)),
    check("lax.ConvGeneralDilatedDimensionNumbers: each is taken", lambda jax: [jax.lax.conv_general_dilated(np.ones((1, 2, 4, 4), np.float32), np.ones((3, 2, 2, 2), np.float32), (1, 1), "VALID", dimension_numbers=d)
        for d in (None, ("NCHW", "OIHW", "NCHW"), jax.lax.conv_dimension_numbers((1, 2, 4, 4), (3, 2, 2, 2), ("NCHW", "OIHW", "NCHW")))]),
    check("lax.PrecisionLike: each is taken", lambda jax: [jax.lax.dot(M, M, precision=p) for p in (None, "high", jax.lax.Precision.HIGHEST, ("high", "highest"), (jax.lax.Precision.HIGH, jax.lax.Precision.DEFAULT))]),
    check("lax.PrecisionLike: one that is no such", lambda jax: jax.lax.dot(M, M, precision="perhaps")),
    check("lax.DotDimensionNumbers: taken", lambda jax: jax.lax.dot_general(M, M, (([1], [0]), ([], [])))),
    check("stages.CompilerOptions: parts", lambda jax: [typing.get_origin(jax.stages.CompilerOptions).__name__, names(jax.stages.CompilerOptions)]),
    check("stages.CompilerOptions: none of them", lambda jax: jax.jit(lambda x: x + 1).lower(X).compile(compiler_options={})(X)),
    check("tree_util.KeyEntry, tree_util.KeyPath: parts", lambda jax: [type(jax.tree_util.KeyEntry).__name__, jax.tree_util.KeyEntry.__name__, typing.get_origin(jax.tree_util.KeyPath).__name__, typing.get_args(jax.tree_util.KeyPath)[0] is jax.tree_util.KeyEntry, len(typing.get_args(jax.tree_util.KeyPath))]),
    check("tree_util.KeyPath: of a leaf", lambda jax: [isinstance(path, typing.get_origin(jax.tree_util.KeyPath)) for path, _ in jax.tree_util.tree_leaves_with_path({"a": [1, (2,)]})]),
]

# --- trees -----------------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "left right")


def levels(jax, name, value):
    children, data = getattr(jax.tree_util, name)(value)
    if name.endswith("keys"):
        return [[(str(key), child) for key, child in children], data]
    return [list(children), data]


def with_static(jax):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Operation:
        x: object
        kind: str = jax.tree.static(default="add", metadata={"note": 1})
        scale: int = jax.tree.static(default=2)

    leaves, structure = jax.tree.flatten(Operation(X, "mul"))
    field = dataclasses.fields(Operation)[1]
    back = jax.tree.unflatten(structure, leaves)
    calls = []
    jitted = jax.jit(lambda o: (calls.append(o.kind), o.x * o.scale)[1])
    outs = [jitted(Operation(X)), jitted(Operation(X + 1)), jitted(Operation(X, "mul", 3))]
    return [len(leaves), back.kind, back.scale, dict(field.metadata), field.default, outs, calls]


NESTED = [{"b": [1, 2], "a": {"c": 3}}, [1, (2, 3)], (1, None), Pair(1, [2]), collections.OrderedDict(b=1, a=2), None, collections.defaultdict(list, x=[1])]
TREES = [check("tree_util.flatten_one_level: a container", lambda jax, v=value: levels(jax, "flatten_one_level", v)) for value in NESTED[:4]]
TREES += [check("tree_util.flatten_one_level_with_keys: a container", lambda jax, v=value: levels(jax, "flatten_one_level_with_keys", v)) for value in NESTED[:3]]
TREES += [check("tree_util.flatten_one_level: children", lambda jax: [list(jax.tree_util.flatten_one_level(v)[0]) for v in NESTED])]
TREES += [
    check("tree_util.flatten_one_level: a leaf", lambda jax: jax.tree_util.flatten_one_level(3)), check("tree_util.flatten_one_level_with_keys: a leaf", lambda jax: jax.tree_util.flatten_one_level_with_keys(X)),
    check("tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys: a registered class", lambda jax: registered(jax)),
    check("tree.static: fields of a dataclass", lambda jax: with_static(jax)), check("tree.static: an unknown option", lambda jax: jax.tree.static(strange=1)),
]


def registered(jax):
    class Box:
        def __init__(self, inside, label):
            self.inside, self.label = inside, label

    jax.tree_util.register_pytree_with_keys(Box, lambda b: (((jax.tree_util.GetAttrKey("inside"), b.inside),), b.label), lambda label, kids: Box(*kids, label),
                                            lambda b: ((b.inside,), b.label))
    return [levels(jax, n, Box([1, 2], "here")) for n in ("flatten_one_level", "flatten_one_level_with_keys")]


# --- checkpoint policies ---------------------------------------------------------------------------------------------


def named(jax, x, name):
    return importlib.import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name(x, name)


def network(jax):
    lax = jax.lax
    return lambda x: named(jax, lax.sin(lax.dot(M, named(jax, lax.cos(lax.dot(M, x)), "inner"))), "outer").sum()


def again(jax, policy):
    """The gradient under a policy, and how often operations stand in its program."""
    f = jax.grad(jax.checkpoint(network(jax), policy=policy))
    counts = collections.Counter()

    def count(jaxpr):
        for equation in jaxpr.eqns:
            counts[equation.primitive.name] += 1
            for value in equation.params.values():
                for part in value if isinstance(value, tuple) else (value,):
                    if hasattr(part, "eqns"):
                        count(getattr(part, "jaxpr", part))

    count(jax.make_jaxpr(f)(X).jaxpr)
    return [f(X), counts["dot_general"], counts["sin"] + counts["cos"]]


def asked(jax, policy):
    """What a policy says of operations, asked as checkpoint does."""
    vector, matrix, batched = (jax.typeof(jax.numpy.ones(s)) for s in ((3,), (3, 3), (2, 3, 3)))
    answers = [policy(jax.lax.sin_p, vector, accuracy=None)]
    answers += [policy(jax.lax.dot_general_p, matrix, matrix, dimension_numbers=(((1,), (0,)), ((), ())), precision=None, preferred_element_type=None, out_sharding=None)]
    answers += [policy(jax.lax.dot_general_p, batched, batched, dimension_numbers=(((2,), (1,)), ((0,), (0,))), precision=None, preferred_element_type=None, out_sharding=None)]
    return [a if isinstance(a, bool) else type(a).__name__ for a in answers]


OFFLOAD = dict(offload_src="device", offload_dst="pinned_host")
BOTH = {
    "dots or names": lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("inner")),
    "names": lambda p: p.save_from_both_policies(p.save_only_these_names("inner"), p.save_only_these_names("outer")),
    "nothing": lambda p: p.save_from_both_policies(p.nothing_saveable, p.nothing_saveable),
    "everything": lambda p: p.save_from_both_policies(p.nothing_saveable, p.everything_saveable),
}
POLICIES = [check(f"checkpoint_policies.save_from_both_policies: {label}", lambda jax, m=make: again(jax, m(jax.checkpoint_policies))) for label, make in BOTH.items()]
POLICIES += [
    check("checkpoint_policies.save_from_both_policies: asked", lambda jax: [asked(jax, m(jax.checkpoint_policies)) for m in (lambda p: p.save_from_both_policies(p.dots_saveable, p.nothing_saveable),
        lambda p: p.save_from_both_policies(p.dots_with_no_batch_dims_saveable, p.nothing_saveable), lambda p: p.save_from_both_policies(p.nothing_saveable, p.everything_saveable))]),
    check("checkpoint_policies.save_from_both_policies: of functions", lambda jax: [again(jax, jax.checkpoint_policies.save_from_both_policies(lambda p, *_, **__: p.name == kept, jax.checkpoint_policies.nothing_saveable)) for kept in ("cos", "dot_general")]),
    check("checkpoint_policies.save_from_both_policies: answers that are no booleans", lambda jax: asked(jax, jax.checkpoint_policies.save_from_both_policies(lambda *_, **__: 1, jax.checkpoint_policies.nothing_saveable))),
    check("checkpoint_policies.offload_dot_with_no_batch_dims: asked", lambda jax: asked(jax, jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"))),
    check("checkpoint_policies.save_and_offload_only_these_names: asked", lambda jax: asked(jax, jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=["inner"], names_which_can_be_offloaded=["outer"], **OFFLOAD))),
    check("checkpoint_policies.save_and_offload_only_these_names: a name in both", lambda jax: jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=["inner"], names_which_can_be_offloaded=["inner"], **OFFLOAD)),
    check("checkpoint_policies.offload_dot_with_no_batch_dims: gradient", lambda jax: jax.grad(jax.checkpoint(network(jax), policy=jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")))(X)),
    check("checkpoint_policies.save_and_offload_only_these_names: gradient", lambda jax: jax.grad(jax.checkpoint(network(jax), policy=jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["inner"], names_which_can_be_offloaded=["outer"], **OFFLOAD)))(X)),
]

CASES = API + TYPES + TREES + POLICIES
