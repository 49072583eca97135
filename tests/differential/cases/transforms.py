"""Transforms, control flow, custom rules, trees, configuration and the errors of tracing, as whole expressions."""

import collections
import functools

from makers import *

X = np.array([0.5, -1.0, 2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def scalar(jax):
    return lambda x: (jax.numpy.sin(x) * x).sum()


def vector(jax):
    return lambda x: jax.numpy.stack([x[0] * x[1], jax.numpy.exp(x[2]), x[0] + x[2] ** 2])


def raised(f):
    """The class and the first words of what f raises."""
    try:
        f()
    except Exception as error:
        return type(error).__name__
    return "nothing"


# --- derivatives -----------------------------------------------------------------------------------------------------

DERIVATIVES = [
    check("grad: of a sum", lambda jax: jax.grad(scalar(jax))(X)),
    check("grad: thrice", lambda jax: jax.grad(jax.grad(jax.grad(lambda x: x**4)))(2.0)),
    check("grad: argnums", lambda jax: jax.grad(lambda x, y, z: x * y + z, argnums=(2, 0))(1.0, 2.0, 3.0)),
    check("grad: negative argnums", lambda jax: jax.grad(lambda x, y: x * y, argnums=-1)(2.0, 3.0)),
    check("grad: has_aux", lambda jax: jax.grad(lambda x: (x**2, {"twice": 2 * x}), has_aux=True)(3.0)),
    check("grad: a dict", lambda jax: jax.grad(lambda p: (p["w"] ** 2).sum() + p["b"])({"w": X, "b": 1.0})),
    check("grad: keyword arguments", lambda jax: jax.grad(lambda x, *, k: k * x**2)(3.0, k=2.0)),
    check("grad: holomorphic", lambda jax: jax.grad(lambda z: z**3, holomorphic=True)(1.0 + 2.0j)),
    check("grad: allow_int", lambda jax: str(jax.grad(lambda n: 2.0 * n, allow_int=True)(3).dtype)),
    check("grad: of complex input", lambda jax: jax.grad(lambda z: jax.numpy.abs(z) ** 2)(1.0 + 2.0j)),
    check("grad: of a vector", lambda jax: jax.grad(lambda x: x * 2)(X)),
    check("grad: of an integer argument", lambda jax: jax.grad(lambda n: n * 2.0)(3)),
    check("grad: of an integer result", lambda jax: jax.grad(lambda x: jax.numpy.int32(x))(3.0)),
    check("grad: of a complex result", lambda jax: jax.grad(lambda x: x * 1j)(3.0)),
    check("grad: of a tuple result", lambda jax: jax.grad(lambda x: (x, x))(3.0)),
    check("grad: holomorphic of a float", lambda jax: jax.grad(lambda x: x, holomorphic=True)(3.0)),
    check("grad: argnums out of range", lambda jax: jax.grad(lambda x: x, argnums=1)(3.0)),
    check("grad: of a constant", lambda jax: jax.grad(lambda x: 2.0)(3.0)),
    check("grad: of None parts", lambda jax: jax.grad(lambda p: p[0] ** 2)((3.0, None))),
    check("grad: of a string argument", lambda jax: jax.grad(lambda s: 1.0)("a")),
    check("grad: abs at zero, max at a tie", lambda jax: [jax.grad(abs)(0.0), jax.grad(jax.numpy.maximum, (0, 1))(1.0, 1.0)]),
    check("grad: sqrt at zero", lambda jax: jax.grad(jax.numpy.sqrt)(0.0)),
    check("grad: through where", lambda jax: jax.grad(lambda x: jax.numpy.where(x > 0, jax.numpy.log(x), 0.0))(0.0)),
    check("grad: bfloat16", lambda jax: jax.grad(lambda x: (x**2).sum())(jax.numpy.ones(3, "bfloat16"))),
    check("grad: not callable", lambda jax: jax.grad(3)(1.0)),
    check("value_and_grad: plain", lambda jax: jax.value_and_grad(scalar(jax))(X)),
    check("value_and_grad: has_aux and argnums", lambda jax: jax.value_and_grad(lambda x, y: (x * y, [x + y]), (0, 1), has_aux=True)(2.0, 3.0)),
    check("value_and_grad: aux missing", lambda jax: jax.value_and_grad(lambda x: x, has_aux=True)(2.0)),
    check("jvp: two arguments", lambda jax: jax.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.5))),
    check("jvp: trees", lambda jax: jax.jvp(lambda p: {"s": p["a"] * p["b"]}, ({"a": 2.0, "b": X},), ({"a": 1.0, "b": X},))),
    check("jvp: has_aux", lambda jax: jax.jvp(lambda x: (x**2, jax.numpy.sin(x)), (3.0,), (1.0,), has_aux=True)),
    check("jvp: a wrong tangent", lambda jax: jax.jvp(lambda x: x, (3.0,), (X,))),
    check("jvp: a wrong tangent type", lambda jax: jax.jvp(lambda x: x, (3.0,), (1,))),
    check("jvp: lists", lambda jax: jax.jvp(lambda x: x, [3.0], (1.0,))),
    check("jvp: counts differ", lambda jax: jax.jvp(lambda x, y: x, (3.0, 2.0), (1.0,))),
    check("vjp: pulled back", lambda jax: jax.vjp(vector(jax), X)[1](X)),
    check("vjp: two arguments", lambda jax: jax.vjp(lambda x, y: (x * y, x + y), 2.0, 3.0)[1]((1.0, 0.5))),
    check("vjp: has_aux", lambda jax: [jax.vjp(lambda x: (x**2, [jax.numpy.sin(x)]), 3.0, has_aux=True)[i] for i in (0, 2)]),
    check("vjp: a wrong cotangent", lambda jax: jax.vjp(lambda x: x, 3.0)[1](X)),
    check("vjp: a wrong cotangent tree", lambda jax: jax.vjp(lambda x: x, 3.0)[1]((1.0, 2.0))),
    check("jacfwd: of a vector", lambda jax: jax.jacfwd(vector(jax))(X)),
    check("jacrev: of a vector", lambda jax: jax.jacrev(vector(jax))(X)),
    check("jacobian: of a tree", lambda jax: jax.jacobian(lambda p: {"o": p["a"] * p["b"]})({"a": X, "b": 2.0})),
    check("jacrev: has_aux and argnums", lambda jax: jax.jacrev(lambda x, y: (x * y, 1.0), (0, 1), has_aux=True)(X, 2.0)),
    check("jacfwd: has_aux", lambda jax: jax.jacfwd(lambda x: (x * x, x + 1), has_aux=True)(X)),
    check("jacfwd: of integers", lambda jax: jax.jacfwd(lambda x: x)(3)),
    check("hessian: of a sum", lambda jax: jax.hessian(scalar(jax))(X)),
    check("hessian: of two", lambda jax: jax.hessian(lambda x, y: x**2 * y, (0, 1))(2.0, 3.0)),
    check("linearize: then applied", lambda jax: (lambda out: [out[0], out[1](np.ones(3, np.float32))])(jax.linearize(vector(jax), X))),
    check("linearize: wrong tangent", lambda jax: jax.linearize(vector(jax), X)[1](np.ones(4, np.float32))),
    check("linear_transpose: of a product", lambda jax: jax.linear_transpose(lambda x: M @ x, X)(np.ones(2, np.float32))),
    check("linear_transpose: of a sine", lambda jax: jax.linear_transpose(jax.numpy.sin, X)(X)),
    check("checkpoint: same gradient", lambda jax: jax.grad(jax.checkpoint(scalar(jax)))(X)),
    check("remat: with a policy", lambda jax: jax.grad(jax.remat(lambda x: (M @ jax.numpy.sin(x)).sum(), policy=jax.checkpoint_policies.dots_saveable))(X)),
    check("checkpoint: static argument", lambda jax: jax.checkpoint(lambda x, flag: x * 2 if flag else x, static_argnums=(1,))(X, True)),
    check("checkpoint: a traced branch", lambda jax: jax.checkpoint(lambda x: x if x > 0 else -x)(1.0)),
    check("fwd_and_bwd: parts", lambda jax: (lambda fb: fb[1](fb[0](X)[1], X))(jax.fwd_and_bwd(vector(jax), argnums=0))),
    check("lax.stop_gradient: no slope", lambda jax: jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)),
    check("closure_convert: hoists", lambda jax: (lambda f, consts: f(2.0, *consts))(*jax.closure_convert(lambda x: x * X, 2.0))),
]

POLICIES = [check(f"checkpoint_policies.{name}: gradient", lambda jax, n=name: jax.grad(jax.checkpoint(
    lambda x: jax.numpy.sin(M @ jax.numpy.cos(x)).sum(), policy=getattr(jax.checkpoint_policies, n)))(X))
    for name in ("everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots", "dots_with_no_batch_dims_saveable",
                 "checkpoint_dots_with_no_batch_dims")]

POLICIES += [check(f"checkpoint_policies.{name}: names", lambda jax, n=name: jax.grad(jax.checkpoint(
    lambda x: jax.numpy.sin(__import__(jax.__name__ + ".ad_checkpoint", fromlist=["x"]).checkpoint_name(jax.numpy.sin(x), "a")).sum(),
    policy=getattr(jax.checkpoint_policies, n)("a")))(X))
    for name in ("save_only_these_names", "save_any_names_but_these", "save_anything_except_these_names")]

# --- maps ------------------------------------------------------------------------------------------------------------

MAPS = [
    check("vmap: one argument", lambda jax: jax.vmap(lambda x: x.sum())(M)),
    check("vmap: in_axes", lambda jax: jax.vmap(lambda x, y: x * y, in_axes=(1, 0))(M, X)),
    check("vmap: None", lambda jax: jax.vmap(lambda x, y: x * y, in_axes=(0, None))(M, X)),
    check("vmap: out_axes", lambda jax: jax.vmap(lambda x: x * 2, out_axes=1)(M)),
    check("vmap: out_axes None", lambda jax: jax.vmap(lambda x: (x * 2, jax.numpy.ones(2)), out_axes=(0, None))(M)),
    check("vmap: out_axes None refused", lambda jax: jax.vmap(lambda x: x, out_axes=None)(M)),
    check("vmap: a tree", lambda jax: jax.vmap(lambda p: p["a"] + p["b"], in_axes=({"a": 0, "b": None},))({"a": X, "b": 1.0})),
    check("vmap: keyword arguments", lambda jax: jax.vmap(lambda x, *, y: x + y)(X, y=X)),
    check("vmap: twice", lambda jax: jax.vmap(jax.vmap(lambda x, y: x * y, (None, 0)), (0, None))(X, X)),
    check("vmap: axis_name", lambda jax: jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(X)),
    check("vmap: axis_index", lambda jax: jax.vmap(lambda x: jax.lax.axis_index("i"), axis_name="i")(X)),
    check("vmap: axis_size", lambda jax: jax.vmap(lambda: jax.numpy.ones(2), axis_size=3)()),
    check("vmap: sizes differ", lambda jax: jax.vmap(lambda x, y: x)(X, M)),
    check("vmap: nothing to map", lambda jax: jax.vmap(lambda x: x, in_axes=None)(X)),
    check("vmap: a scalar", lambda jax: jax.vmap(lambda x: x)(3.0)),
    check("vmap: in_axes of a wrong length", lambda jax: jax.vmap(lambda x, y: x, in_axes=(0,))(X, X)),
    check("vmap: in_axes as a string", lambda jax: jax.vmap(lambda x: x, in_axes="0")(X)),
    check("vmap: unknown axis name", lambda jax: jax.lax.psum(X, "nowhere")),
    check("vmap: of a branch", lambda jax: jax.vmap(lambda x: jax.lax.cond(x > 0, lambda v: v, lambda v: -2 * v, x))(X)),
    check("vmap: of a while loop", lambda jax: jax.vmap(lambda x: jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, x))(np.array([1.0, 3.0, 20.0], np.float32))),
    check("vmap: of a Python branch", lambda jax: jax.vmap(lambda x: x if x > 0 else -x)(X)),
    check("vmap: of grad of jit", lambda jax: jax.vmap(jax.grad(jax.jit(lambda x: jax.numpy.sin(x) ** 2)))(X)),
    check("custom_batching.custom_vmap: own rule", lambda jax: custom_vmap(jax)(jax.numpy.asarray(M), X)),
    check("custom_batching.sequential_vmap: same values", lambda jax: jax.vmap(jax.custom_batching.sequential_vmap(lambda x: x * 2))(X)),
    check("named_call: same value", lambda jax: jax.named_call(lambda x: x * 2, name="double")(X)),
]


def custom_vmap(jax):
    @jax.custom_batching.custom_vmap
    def f(x, y):
        return x + y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        return x - y, True

    return jax.vmap(f, (0, None))


# --- jit -------------------------------------------------------------------------------------------------------------


def traces(jax, function, *calls, **options):
    """Results of calls of a jitted function, and how often it was traced."""
    count = []
    jitted = jax.jit(lambda *args, **kwargs: (count.append(1), function(*args, **kwargs))[1], **options)
    return [[jitted(*args, **kwargs) for args, kwargs in calls], len(count)]


JIT = [
    check("jit: twice one shape", lambda jax: traces(jax, lambda x: x * 2, ((X,), {}), ((X + 1,), {}))),
    check("jit: two shapes and types", lambda jax: traces(jax, lambda x: x * 2, ((X,), {}), ((X[:2],), {}), ((3,), {}), ((3.0,), {}), ((4,), {}))),
    check("jit: weak types trace again", lambda jax: traces(jax, lambda x: x * 2, ((jax.numpy.float32(1),), {}), ((1.0,), {}))),
    check("jit: static_argnums", lambda jax: traces(jax, lambda x, n: x * n, ((X, 2), {}), ((X, 3), {}), ((X, 2), {}), static_argnums=1)),
    check("jit: static_argnames", lambda jax: jax.jit(lambda x, mode: x * 2 if mode == "train" else x, static_argnames="mode")(X, mode="train")),
    check("jit: static and unhashable", lambda jax: jax.jit(lambda x, n: x, static_argnums=1)(X, [1])),
    check("jit: keyword arguments", lambda jax: jax.jit(lambda x, *, k: x * k)(X, k=3)),
    check("jit: trees", lambda jax: jax.jit(lambda p: {"out": (p["a"], [p["b"], None])})({"b": 1, "a": X})),
    check("jit: returns Python numbers", lambda jax: jax.jit(lambda: (1, 2.5, True, 1j))()),
    check("jit: returns a string", lambda jax: jax.jit(lambda: "text")()),
    check("jit: takes a string", lambda jax: jax.jit(lambda s: 1)("text")),
    check("jit: takes an object", lambda jax: jax.jit(lambda s: 1)(object())),
    check("jit: a Python branch", lambda jax: jax.jit(lambda x: x if x > 0 else -x)(1.0)),
    check("jit: float of a tracer", lambda jax: jax.jit(lambda x: float(x))(1.0)),
    check("jit: int of a tracer", lambda jax: jax.jit(lambda x: int(x))(1)),
    check("jit: range of a tracer", lambda jax: jax.jit(lambda x: list(range(x)))(3)),
    check("jit: NumPy of a tracer", lambda jax: jax.jit(lambda x: np.asarray(x))(X)),
    check("jit: hash of a tracer", lambda jax: jax.jit(lambda x: hash(x))(X)),
    check("jit: len and shape", lambda jax: jax.jit(lambda x: x * len(x) + x.shape[0] + x.ndim)(X)),
    check("jit: shapes from values", lambda jax: jax.jit(lambda n: jax.numpy.zeros(n))(3)),
    check("jit: a leaked tracer", lambda jax: leak(jax)),
    check("jit: donated", lambda jax: (lambda x: [jax.jit(lambda v: v + 1, donate_argnums=0)(x), x.is_deleted()])(jax.numpy.ones(3))),
    check("jit: nested", lambda jax: jax.jit(lambda x: jax.jit(lambda y: y * 2)(x) + 1)(X)),
    check("jit: as a decorator with options", lambda jax: functools.partial(jax.jit, static_argnums=0)(lambda n, x: x * n)(3, X)),
    check("jit: a method", lambda jax: type("C", (), {"f": jax.jit(lambda self, x: x * 2, static_argnums=0)})().f(X)),
    check("jit: wraps", lambda jax: [jax.jit(double).__name__, jax.jit(double).__doc__, jax.jit(double).__wrapped__ is double]),
    check("jit: eval_shape", lambda jax: jax.jit(double).eval_shape(X)),
    check("jit: _cache_size, clear_cache", lambda jax: (lambda f: [f(X), f._cache_size(), f.clear_cache(), f._cache_size()])(jax.jit(lambda x: x + 1))),
    check("jit: of a non-function", lambda jax: jax.jit(3)),
    check("jit: too few arguments", lambda jax: jax.jit(lambda x, y: x)(X)),
    check("jit: a negative static_argnums", lambda jax: jax.jit(lambda x, n: x * n, static_argnums=-1)(X, 2)),
    check("jit: inline", lambda jax: str(jax.make_jaxpr(lambda x: jax.jit(double, inline=True)(x))(X))),
    check("jit: captured arrays", lambda jax: (lambda c: jax.jit(lambda x: x + c)(X))(jax.numpy.ones(3))),
    check("stages.Lowered: out_info", lambda jax: jax.jit(lambda x: {"a": x * 2}).lower(X).out_info),
    check("stages.Compiled: called", lambda jax: jax.jit(double).lower(X).compile()(X)),
    check("stages.Compiled: another shape", lambda jax: jax.jit(double).lower(X).compile()(M)),
    check("stages.Traced: jaxpr", lambda jax: str(jax.jit(double).trace(X).jaxpr)),
    check("disable_jit: Python branch", lambda jax: disabled(jax)),
    check("ensure_compile_time_eval: inside jit", lambda jax: jax.jit(lambda x: constant(jax, x))(X)),
    check("eval_shape: a tree", lambda jax: jax.eval_shape(lambda x: {"s": x.sum(), "x": x.astype("int8")}, X)),
    check("eval_shape: structs", lambda jax: jax.eval_shape(lambda x, y: x @ y, jax.ShapeDtypeStruct((2, 3), "float32"), jax.ShapeDtypeStruct((3,), "bfloat16"))),
    check("eval_shape: shapes that do not fit", lambda jax: jax.eval_shape(lambda x, y: x + y, jax.ShapeDtypeStruct((2,), "float32"), jax.ShapeDtypeStruct((3,), "float32"))),
    check("ShapeDtypeStruct: text and equality", lambda jax: [repr(jax.ShapeDtypeStruct((2, 3), "float32")), jax.ShapeDtypeStruct((2,), "int8") == jax.ShapeDtypeStruct((2,), np.int8)]),
    check("block_until_ready: a tree", lambda jax: jax.block_until_ready({"a": jax.numpy.ones(2), "b": 3})),
    check("device_put: a tree", lambda jax: jax.device_put({"a": X, "b": 2})),
    check("device_get: a tree", lambda jax: jax.device_get({"a": jax.numpy.ones(2), "b": 2})),
    check("typeof: arrays and numbers", lambda jax: [str(jax.typeof(v)) for v in (X, 2, jax.numpy.ones((2, 3), "bfloat16"))]),
    check("clear_caches: returns nothing", lambda jax: jax.clear_caches()),
    check("make_jaxpr: return_shape", lambda jax: (lambda out: [str(out[0]), out[1]])(jax.make_jaxpr(lambda x: (x, x.sum()), return_shape=True)(X))),
    check("make_jaxpr: static_argnums", lambda jax: str(jax.make_jaxpr(lambda x, n: x * n, static_argnums=1)(X, 3))),
    check("pure_callback: of NumPy", lambda jax: jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((3,), "float32"), x))(X)),
    check("pure_callback: under vmap", lambda jax: jax.vmap(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential"))(X)),
    check("pure_callback: grad is refused", lambda jax: jax.grad(lambda x: jax.pure_callback(lambda v: np.asarray(v), jax.ShapeDtypeStruct((), "float32"), x))(1.0)),
    check("debug.callback: is called", lambda jax: called(jax)),
]


def double(x):
    """Twice."""
    return x * 2


def leak(jax):
    kept = []
    jax.jit(lambda x: kept.append(x))(1.0)
    return kept[0] + 1


def disabled(jax):
    with jax.disable_jit():
        return jax.jit(lambda x: x if x > 0 else -x)(-1.0)


def constant(jax, x):
    with jax.ensure_compile_time_eval():
        return x * 2 if jax.numpy.ones(3).sum() > 2 else x


def called(jax):
    seen = []
    jax.jit(lambda x: (jax.debug.callback(lambda v: seen.append(float(v)), x.sum()), x)[1])(X)
    jax.effects_barrier()
    return seen


PROGRAMS = [check(f"make_jaxpr: {label}", lambda jax, f=function: str(jax.make_jaxpr(lambda x, m: f(jax, x, m))(X, M))) for label, function in {
    "sums and products": lambda jax, x, m: (m @ x) * 2 + 1,
    "sin under grad": lambda jax, x, m: jax.grad(lambda v: jax.lax.reduce_sum(jax.lax.sin(v), axes=(0,)))(x),
    "scan": lambda jax, x, m: jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, x),
    "cond": lambda jax, x, m: jax.lax.cond(x[0] > 0, lambda v: v, lambda v: -v, x),
    "while": lambda jax, x, m: jax.lax.while_loop(lambda v: v[0] < 3, lambda v: v + 1, x),
    "vmap of a product": lambda jax, x, m: jax.vmap(lambda row: jax.lax.dot(row, x))(m),
    "an inner jit": lambda jax, x, m: jax.jit(double)(x) + jax.jit(double)(x),
    "reductions": lambda jax, x, m: (jax.lax.reduce_max(m, axes=(0,)), jax.lax.argmax(x, 0, np.int32)),
    "slices": lambda jax, x, m: (m[0], m[:, 1:], m[::-1]),
    "conversion": lambda jax, x, m: jax.lax.convert_element_type(m, np.int32),
    "unused and dropped": lambda jax, x, m: jax.lax.sort_key_val(x, x)[0],
    "remat": lambda jax, x, m: jax.checkpoint(lambda v: jax.lax.sin(v))(x),
    "custom_jvp": lambda jax, x, m: own_jvp(jax)(x, 2.0),
}.items()]

# --- control flow ----------------------------------------------------------------------------------------------------

CONTROL = [
    check("lax.scan: sums", lambda jax: jax.lax.scan(lambda c, x: (c + x, c * x), 0.0, X)),
    check("lax.scan: reverse", lambda jax: jax.lax.scan(lambda c, x: (c + x, c), 0.0, X, reverse=True)),
    check("lax.scan: length", lambda jax: jax.lax.scan(lambda c, _: (c * 2, c), 1, None, length=4)),
    check("lax.scan: trees", lambda jax: jax.lax.scan(lambda c, x: ({"n": c["n"] + 1, "s": c["s"] + x[0]}, (x[1], None)), {"n": 0, "s": 0.0}, (X, X))),
    check("lax.scan: unroll", lambda jax: [jax.lax.scan(lambda c, x: (c + x, c), 0.0, X, unroll=u) for u in (2, True)]),
    check("lax.scan: its gradient", lambda jax: jax.grad(lambda x: jax.lax.scan(lambda c, v: (c * v, c), 1.0, x)[0])(X)),
    check("lax.scan: jvp", lambda jax: jax.jvp(lambda x: jax.lax.scan(lambda c, v: (c * v, c), 1.0, x)[1], (X,), (X,))),
    check("lax.scan: vmap", lambda jax: jax.vmap(lambda x: jax.lax.scan(lambda c, v: (c + v, c), 0.0, x))(M)),
    check("lax.scan: weak carry", lambda jax: jax.lax.scan(lambda c, x: (c + x, None), 0, np.arange(3, dtype=np.int32))),
    check("lax.scan: empty", lambda jax: jax.lax.scan(lambda c, x: (c + x, x * 2), 1.0, X[:0])),
    check("lax.scan: carry changes its type", lambda jax: jax.lax.scan(lambda c, x: (c.astype("int32"), x), jax.numpy.float32(0), X)),
    check("lax.scan: carry changes its tree", lambda jax: jax.lax.scan(lambda c, x: ((c, c), x), 0.0, X)),
    check("lax.scan: lengths differ", lambda jax: jax.lax.scan(lambda c, x: (c, x), 0.0, (X, M))),
    check("lax.scan: length disagrees", lambda jax: jax.lax.scan(lambda c, x: (c, x), 0.0, X, length=2)),
    check("lax.scan: no length", lambda jax: jax.lax.scan(lambda c, x: (c, x), 0.0, None)),
    check("lax.scan: no pair", lambda jax: jax.lax.scan(lambda c, x: c, 0.0, X)),
    check("lax.scan: captures a tracer", lambda jax: jax.grad(lambda a: jax.lax.scan(lambda c, x: (c + a * x, None), 0.0, X)[0])(2.0)),
    check("lax.while_loop: halves", lambda jax: jax.lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (100.0, 0))),
    check("lax.while_loop: jvp", lambda jax: jax.jvp(lambda x: jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, x), (1.5,), (1.0,))),
    check("lax.while_loop: reverse is refused", lambda jax: jax.grad(lambda x: jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, x))(1.5)),
    check("lax.while_loop: a vector condition", lambda jax: jax.lax.while_loop(lambda v: v < 10, lambda v: v * 2, X)),
    check("lax.while_loop: state changes", lambda jax: jax.lax.while_loop(lambda v: v < 10, lambda v: (v, v), 1.0)),
    check("lax.while_loop: a number condition", lambda jax: jax.lax.while_loop(lambda v: 1, lambda v: v, 1.0)),
    check("lax.fori_loop: static bounds", lambda jax: jax.lax.fori_loop(0, 5, lambda i, x: x + i, 0)),
    check("lax.fori_loop: traced bounds", lambda jax: jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, x: x * 2, 1.0))(4)),
    check("lax.fori_loop: its gradient", lambda jax: jax.grad(lambda x: jax.lax.fori_loop(0, 3, lambda i, v: v * x, 1.0))(2.0)),
    check("lax.fori_loop: traced and reversed", lambda jax: jax.jit(jax.grad(lambda x, n: jax.lax.fori_loop(0, n, lambda i, v: v * x, 1.0)))(2.0, 3)),
    check("lax.fori_loop: empty", lambda jax: jax.lax.fori_loop(3, 1, lambda i, x: x + 1, 0.0)),
    check("lax.fori_loop: unroll", lambda jax: jax.lax.fori_loop(0, 4, lambda i, x: x + i, 0, unroll=2)),
    check("lax.fori_loop: float bounds", lambda jax: jax.lax.fori_loop(0.0, 4.0, lambda i, x: x + i, 0.0)),
    check("lax.cond: both branches", lambda jax: [jax.lax.cond(p, lambda x: x + 1, lambda x: x - 1, 3.0) for p in (True, False)]),
    check("lax.cond: no operand", lambda jax: jax.lax.cond(True, lambda: 1, lambda: 2)),
    check("lax.cond: a number as predicate", lambda jax: jax.lax.cond(3, lambda: 1, lambda: 2)),
    check("lax.cond: a vector predicate", lambda jax: jax.lax.cond(X > 0, lambda: 1, lambda: 2)),
    check("lax.cond: types differ", lambda jax: jax.lax.cond(True, lambda x: x, lambda x: x.astype("int32"), jax.numpy.float32(1))),
    check("lax.cond: trees differ", lambda jax: jax.lax.cond(True, lambda x: (x,), lambda x: [x], 1.0)),
    check("lax.cond: weak types join", lambda jax: jax.lax.cond(True, lambda x: x, lambda x: 1.0, jax.numpy.float32(2))),
    check("lax.cond: its gradient", lambda jax: jax.grad(lambda x: jax.lax.cond(x > 0, lambda v: v**2, lambda v: -v, x))(3.0)),
    check("lax.cond: traced predicate", lambda jax: jax.jit(lambda p, x: jax.lax.cond(p, lambda v: v, lambda v: -v, x))(False, X)),
    check("lax.switch: clamps", lambda jax: [jax.lax.switch(i, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], 1.0) for i in (-1, 0, 1, 9)]),
    check("lax.switch: one branch", lambda jax: jax.lax.switch(0, [lambda x: x], 1.0)),
    check("lax.switch: none", lambda jax: jax.lax.switch(0, [], 1.0)),
    check("lax.switch: a float index", lambda jax: jax.lax.switch(0.5, [lambda x: x, lambda x: -x], 1.0)),
    check("lax.switch: vmap of the index", lambda jax: jax.vmap(lambda i: jax.lax.switch(i, [lambda: 1.0, lambda: 2.0]))(np.array([0, 1, 0]))),
    check("lax.map: rows", lambda jax: jax.lax.map(lambda row: row.sum(), M)),
    check("lax.map: batch_size", lambda jax: jax.lax.map(lambda x: x * 2, X, batch_size=2)),
    check("lax.associative_scan: products", lambda jax: jax.lax.associative_scan(jax.numpy.multiply, np.arange(1, 8, dtype=np.float32))),
    check("lax.associative_scan: reverse and axis", lambda jax: jax.lax.associative_scan(jax.numpy.add, M, reverse=True, axis=1)),
    check("lax.associative_scan: trees", lambda jax: jax.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (X, X))),
    check("lax.associative_scan: its gradient", lambda jax: jax.grad(lambda x: (jax.lax.associative_scan(jax.numpy.multiply, x) * X).sum())(X)),
    check("lax.associative_scan: not callable", lambda jax: jax.lax.associative_scan(3, X)),
    check("lax.custom_root: square root", lambda jax: jax.grad(lambda a: jax.lax.custom_root(lambda x: x**2 - a, 1.0, lambda f, x: newton(jax, f, x), lambda g, y: y / g(1.0)))(4.0)),
    check("lax.custom_linear_solve: its gradient", lambda jax: jax.grad(lambda b: (jax.lax.custom_linear_solve(lambda x: 2 * x, b, lambda mv, v: v / 2, symmetric=True) ** 2).sum())(X)),
]


def newton(jax, f, x):
    for _ in range(8):
        x = x - f(x) / jax.grad(f)(x)
    return x


# --- own derivatives -------------------------------------------------------------------------------------------------


def own_jvp(jax, **options):
    @functools.partial(jax.custom_jvp, **options)
    def f(x, y=1.0):
        return x * y

    @f.defjvp
    def rule(primals, tangents):
        x, y = primals
        return f(x, y), 10.0 * tangents[0] + 100.0 * tangents[1]

    return f


def failure(call):
    """The class of what a call raises, as jax has it."""
    try:
        return call()
    except Exception as error:
        return [c.__name__ for c in (ZeroDivisionError, ValueError, TypeError) if isinstance(error, c)]


def donated(jax, options, named):
    """Which arguments of a call are gone after it."""
    given = {name: jax.numpy.ones(4) + i for i, name in enumerate("xyz")}
    result = jax.jit(lambda x, y, *, z: (x + y, x * z), **options)(
        *[given[n] for n in "xy" if n not in named], **{n: given[n] for n in "xyz" if n in named or n == "z"})
    return [result, [value.is_deleted() for value in given.values()]]


def symbolic_jvp(jax, call):
    """What a rule with symbolic zeros makes of a call, and which tangents it was given as symbols."""
    seen = []
    f = jax.custom_jvp(lambda x, y, n: (x * y, jax.numpy.float32(n)))

    def rule(primals, tangents):
        zero = [type(t) is jax.custom_derivatives.SymbolicZero for t in tangents]
        seen.append([[z, str(t.dtype), t.shape] for z, t in zip(zero, tangents) if z])
        x, y, n = primals
        terms = [other * t for other, t, z in zip((y, x), tangents, zero) if not z]
        return f(x, y, n), (sum(terms) * 3, jax.custom_derivatives.SymbolicZero(jax.core.ShapedArray((), jax.numpy.float32)))

    f.defjvp(rule, symbolic_zeros=True)
    return [call(f), seen]


def symbolic_vjp(jax, call):
    """The same for a forward and a backward rule: which arguments are perturbed, which cotangents are symbols."""
    seen = []
    f = jax.custom_vjp(lambda x, y: (x * y, x + y))

    def forward(x, y):
        seen.append([type(x).__name__, x.perturbed, y.perturbed])
        values = jax.custom_derivatives.custom_vjp_primal_tree_values((x, y))
        return f(*values), values

    def backward(saved, g):
        zero = [type(t) is jax.custom_derivatives.SymbolicZero for t in g]
        seen.append([[z, str(t.dtype), t.shape] for z, t in zip(zero, g) if z])
        x, y = saved
        return (y * g[0] * 5 if not zero[0] else x * g[1], jax.custom_derivatives.SymbolicZero(jax.core.ShapedArray((), jax.numpy.float32)) if zero[1] else None)

    f.defvjp(forward, backward, symbolic_zeros=True)
    return [call(f), seen]


def integer_output_vjp(jax):
    f = jax.custom_vjp(lambda x: (x * 2, 3))
    seen = []

    def backward(saved, g):
        seen.extend([str(g[1].dtype), g[1].shape])
        return (g[0] * 7,)

    f.defvjp(lambda x: (f(x), None), backward)
    return [jax.grad(lambda x: f(x)[0])(1.0), seen]


def own_vjp(jax, backward=lambda saved, g: (10.0 * g, 100.0 * g), **options):
    @functools.partial(jax.custom_vjp, **options)
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), backward)
    return f


def nondiff_vjp(jax):
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def f(g, x):
        return g(x)

    f.defvjp(lambda g, x: (g(x), x), lambda g, x, ct: (7.0 * g(ct),))
    return f


CUSTOM = [
    *[check(f"numpy.{name}: a named axis {axis}", lambda jax, name=name, axis=axis: jax.vmap(lambda x: getattr(jax.numpy, name)(x, axis=axis), axis_name="i")(jax.numpy.asarray(M))) for name in ("sum", "max", "min", "mean", "var", "std", "prod", "any", "all", "argmax", "cumsum") for axis in ("i", ("i", 0), (-1, "i"))],
    *[check(f"numpy.{name}: a named axis, keepdims and where", lambda jax, name=name: jax.vmap(lambda x: getattr(jax.numpy, name)(x, axis=("i", 0), keepdims=True, where=x > 0, **({"initial": 0} if name == "max" else {})), axis_name="i")(jax.numpy.asarray(M))) for name in ("sum", "max", "mean", "var")],
    check("numpy.sum: an unbound named axis", lambda jax: jax.numpy.sum(X, axis="i")),
    check("numpy.sum: two named axes", lambda jax: jax.vmap(jax.vmap(lambda x: jax.numpy.sum(x, axis=("j", "i")), axis_name="i"), axis_name="j")(jax.numpy.asarray(M))),
    check("numpy.sum: a named axis of a constant", lambda jax: jax.vmap(lambda x: jax.numpy.sum(jax.numpy.ones(2), axis="i"), axis_name="i")(X)),
    check("numpy.mean: the gradient over a named axis", lambda jax: jax.vmap(jax.grad(lambda x: jax.numpy.mean(x**2, axis=("i", 0))), axis_name="i")(jax.numpy.asarray(M))),
    check("nn.softmax, nn.log_softmax: a named axis", lambda jax: jax.vmap(lambda x: (jax.nn.softmax(x, axis="i"), jax.nn.log_softmax(x, axis=("i", 0))), axis_name="i")(jax.numpy.asarray(M))),
    check("nn.logsumexp: a named axis", lambda jax: jax.jit(jax.vmap(lambda x: jax.nn.logsumexp(x, axis=("i", 0), b=2.0), axis_name="i"))(jax.numpy.asarray(M))),
    *[check(f"lax.{name}: a name and a position", lambda jax, name=name: jax.vmap(lambda x: getattr(jax.lax, name)(x, ("i", 0)), axis_name="i")(jax.numpy.asarray(M))) for name in ("psum", "pmean", "pmax", "pmin")],
    check("lax.psum: an unbound name", lambda jax: jax.vmap(lambda x: jax.lax.psum(x, "j"), axis_name="i")(X)),
    check("vmap: spmd_axis_name", lambda jax: (jax.vmap(lambda x: x * 2, spmd_axis_name="i")(X), jax.jit(jax.vmap(lambda x: jax.lax.psum(x, "k"), axis_name="k", spmd_axis_name=("i", "j")))(X))),
    check("vmap: spmd_axis_name binds nothing", lambda jax: jax.vmap(lambda x: jax.lax.psum(x, "i"), spmd_axis_name="i")(X)),
    *[check(f"jit: donation by {options}", lambda jax, options=options, named=named: donated(jax, options, named)) for options in ({"donate_argnames": "y"}, {"donate_argnums": 1}, {"donate_argnames": ("y", "z")}, {"donate_argnums": 0}, {"donate_argnames": "w"}, {"donate_argnums": 7}, {"donate_argnames": "y", "static_argnames": "y"}) for named in ((), ("y",), ("y", "z"))],
    check("numpy.split, numpy.array_split, numpy.hsplit: no sections", lambda jax: [failure(lambda: getattr(jax.numpy, n)(X, 0)) for n in ("split", "array_split", "hsplit")]),
    check("numpy.einsum: None", lambda jax: jax.numpy.einsum("i,i->", None, X)),
    check("numpy.tril, numpy.triu: a traced diagonal", lambda jax: [failure(lambda: jax.jit(lambda k: getattr(jax.numpy, n)(M, k))(1)) for n in ("tril", "triu")]),
    check("numpy.tri, numpy.eye: a traced diagonal", lambda jax: jax.jit(lambda k: (jax.numpy.tri(3, 4, k), jax.numpy.tri(3, k=k, dtype=int)))(1)),
    *[check(f"nn.initializers.variance_scaling: no {mode} of {shape}", lambda jax, mode=mode, shape=shape: jax.nn.initializers.variance_scaling(1.0, mode, "normal")(jax.random.key(0), shape)) for mode in ("fan_in", "fan_out", "fan_avg") for shape in ((0, 3), (3, 0))],
    check("custom_jvp: grad", lambda jax: jax.grad(own_jvp(jax), (0, 1))(2.0, 3.0)),
    check("custom_jvp: jvp and jit", lambda jax: jax.jit(lambda x: jax.jvp(own_jvp(jax), (x, 2.0), (1.0, 1.0)))(3.0)),
    check("custom_jvp: vmap", lambda jax: jax.vmap(jax.grad(own_jvp(jax)), (0, None))(X, 2.0)),
    check("custom_jvp: default argument", lambda jax: jax.grad(own_jvp(jax))(2.0)),
    check("custom_jvp: no rule", lambda jax: jax.grad(jax.custom_jvp(lambda x: x))(2.0)),
    check("custom_jvp: defjvps", lambda jax: defjvps(jax)),
    check("custom_jvp: nondiff_argnums", lambda jax: nondiff_jvp(jax)),
    check("custom_jvp: a rule of a wrong form", lambda jax: wrong_jvp(jax)),
    check("custom_vjp: grad", lambda jax: jax.grad(own_vjp(jax), (0, 1))(2.0, 3.0)),
    check("custom_vjp: jit and vmap", lambda jax: jax.jit(jax.vmap(jax.grad(own_vjp(jax)), (0, None)))(X, 2.0)),
    check("custom_vjp: None is zero", lambda jax: jax.grad(own_vjp(jax, lambda saved, g: (g, None)), (0, 1))(2.0, 3.0)),
    check("custom_vjp: too few cotangents", lambda jax: jax.grad(own_vjp(jax, lambda saved, g: (g,)))(2.0, 3.0)),
    check("custom_vjp: a wrong shape", lambda jax: jax.grad(own_vjp(jax, lambda saved, g: (X, g)))(2.0, 3.0)),
    check("custom_vjp: no rule", lambda jax: jax.custom_vjp(lambda x: x)(2.0)),
    check("custom_vjp: jvp is refused", lambda jax: jax.jvp(own_vjp(jax), (2.0, 3.0), (1.0, 1.0))),
    check("custom_vjp: nondiff_argnums", lambda jax: jax.grad(lambda x: nondiff_vjp(jax)(jax.numpy.sin, x))(2.0)),
    check("custom_vjp: keyword call", lambda jax: own_vjp(jax)(jax.numpy.float32(2.0), y=jax.numpy.float32(3.0))),
    check("custom_vjp: trees", lambda jax: tree_vjp(jax)),
    check("custom_jvp: symbolic zeros in grad", lambda jax: symbolic_jvp(jax, lambda f: jax.grad(lambda x: f(x, 2.0, 3)[0])(1.5))),
    check("custom_jvp: symbolic zeros in jit", lambda jax: symbolic_jvp(jax, lambda f: jax.jit(jax.grad(lambda x: f(2.0, x, 3)[0]))(1.5))),
    check("custom_jvp: symbolic zeros in vmap", lambda jax: symbolic_jvp(jax, lambda f: jax.vmap(jax.grad(lambda x: f(x, 2.0, 3)[0]))(X))),
    check("custom_jvp: symbolic zeros in grad of vmap", lambda jax: symbolic_jvp(jax, lambda f: jax.grad(lambda x: jax.vmap(lambda y: f(y, 2.0, 3)[0])(x).sum())(X))),
    check("custom_jvp: symbolic zeros in jvp", lambda jax: symbolic_jvp(jax, lambda f: jax.jvp(f, (1.0, 2.0, 3), (1.0, 0.0, numpy.zeros((), jax.dtypes.float0))))),
    check("custom_vjp: symbolic zeros in grad", lambda jax: symbolic_vjp(jax, lambda f: jax.grad(lambda x: f(x, 2.0)[0])(1.5))),
    check("custom_vjp: symbolic zeros of both arguments", lambda jax: symbolic_vjp(jax, lambda f: jax.grad(lambda x, y: f(x, y)[1], (0, 1))(1.5, 2.0))),
    check("custom_vjp: symbolic zeros in jit", lambda jax: symbolic_vjp(jax, lambda f: jax.jit(jax.grad(lambda x: f(2.0, x)[0]))(jax.numpy.float32(1.5)))),
    check("custom_vjp: symbolic zeros in vmap", lambda jax: symbolic_vjp(jax, lambda f: jax.vmap(jax.grad(lambda x: f(x, 2.0)[0]))(X))),
    check("custom_vjp: symbolic zeros in vjp", lambda jax: symbolic_vjp(jax, lambda f: jax.vjp(f, jax.numpy.float32(1.5), jax.numpy.float32(2.0))[1]((jax.numpy.float32(1.0), jax.numpy.float32(1.0))))),
    check("custom_vjp: symbolic zeros without a gradient", lambda jax: symbolic_vjp(jax, lambda f: f(jax.numpy.float32(1.5), jax.numpy.float32(2.0)))),
    check("custom_vjp: symbolic zeros and optimize_remat", lambda jax: jax.custom_vjp(lambda x: x).defvjp(lambda x: (x, None), lambda r, g: (g,), True, True)),
    check("custom_vjp: an integer output", lambda jax: integer_output_vjp(jax)),
    check("custom_derivatives.custom_vjp_primal_tree_values: not a primal", lambda jax: jax.custom_derivatives.custom_vjp_primal_tree_values([1.0])),
    check("custom_gradient: doubles", lambda jax: jax.grad(jax.custom_gradient(lambda x: (x**2, lambda g: (g * 5.0,))))(3.0)),
    check("custom_derivatives.linear_call: transposed", lambda jax: jax.grad(lambda x: jax.custom_derivatives.linear_call(lambda r, v: r * v, lambda r, c: 3 * r * c, 2.0, x))(1.0)),
    check("custom_derivatives.zero_from_primal: an integer", lambda jax: str(jax.custom_derivatives.zero_from_primal(3).dtype)),
]


def defjvps(jax):
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda dx, out, x, y: dx * 5, None)
    return jax.grad(f, (0, 1))(2.0, 3.0)


def nondiff_jvp(jax):
    f = jax.custom_jvp(lambda g, x: g(x), nondiff_argnums=(0,))
    f.defjvp(lambda g, primals, tangents: (g(primals[0]), 9.0 * tangents[0]))
    return jax.grad(lambda x: f(jax.numpy.sin, x))(2.0)


def wrong_jvp(jax):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: primals[0])
    return jax.grad(f)(2.0)


def tree_vjp(jax):
    f = jax.custom_vjp(lambda p: p["a"] * p["b"])
    f.defvjp(lambda p: (p["a"] * p["b"], p), lambda p, g: ({"a": g * p["b"], "b": 2 * g * p["a"]},))
    return jax.grad(f)({"a": 2.0, "b": 3.0})


# --- trees -----------------------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", ["x", "y"])
TREES_HELD = {
    "a tuple": (1, (2, 3)), "a dict": {"b": 2, "a": 1}, "None": None, "a list with None": [1, None, ()], "a named tuple": Point(1, [2]),
    "an ordered dict": collections.OrderedDict([("z", 1), ("a", 2)]), "a leaf": 5, "empty": {}, "a default dict": collections.defaultdict(list, {"b": [1], "a": [2, 3]}),
    "integer keys": {3: 1, 1: 2},
}
TREES = [check(f"tree_util.tree_flatten, tree_util.tree_structure, tree.flatten: {label}", lambda jax, t=value: (lambda out: [out[0], str(out[1]), out[1].num_leaves, out[1].num_nodes])(jax.tree_util.tree_flatten(t)))
         for label, value in TREES_HELD.items()]
TREES += [check(f"tree_util.tree_leaves_with_path, tree_util.keystr, tree_util.tree_flatten_with_path: {label}", lambda jax, t=value: [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(t)])
          for label, value in TREES_HELD.items()]
TREES += [
    case("tree_util.tree_map", lib(lambda jax: lambda x: x * 2), {"a": f32(2), "b": [1, None]}),
    case("tree.map", lib(lambda jax: lambda x, y: x + y), {"a": f32(2), "b": 1}, {"a": f32(2), "b": 5}),
    case("tree.map", lib(lambda jax: lambda x: x), [1, (2, 3)], is_leaf=lib(lambda jax: lambda v: isinstance(v, tuple))),
    case("tree_util.tree_map", lib(lambda jax: lambda x, y: x), {"a": 1}, {"b": 1}),
    case("tree_util.tree_map", lib(lambda jax: lambda x, y: x), (1, 2), (1, 2, 3)),
    case("tree_util.tree_map", lib(lambda jax: lambda x, y: x), [1], (1,)),
    case("tree.leaves", {"b": [1, 2], "a": None}), case("tree_util.tree_leaves", ((), [None])),
    case("tree.reduce", lib(lambda jax: lambda a, b: a + b), {"a": 1, "b": (2, 3)}), case("tree_util.tree_reduce", lib(lambda jax: lambda a, b: a + b), [1, 2], 10),
    case("tree.all", [True, {"a": 1}]), case("tree_util.tree_all", [True, 0]),
    check("tree.structure, tree.unflatten: again", lambda jax: jax.tree.unflatten(jax.tree.structure({"a": (1, 2), "b": None}), [7, 8])),
    check("tree_util.tree_unflatten: too few", lambda jax: jax.tree_util.tree_unflatten(jax.tree_util.tree_structure([1, 2]), [7])),
    check("tree.transpose, tree_util.tree_transpose: lists of dicts", lambda jax: jax.tree.transpose(jax.tree.structure([0, 0]), jax.tree.structure({"a": 0}), [{"a": 1}, {"a": 2}])),
    check("tree.map_with_path, tree_util.tree_map_with_path: paths", lambda jax: jax.tree.map_with_path(lambda path, v: f"{jax.tree_util.keystr(path)}={v}", {"a": [1, 2]})),
    check("tree.leaves_with_path, tree.flatten_with_path: paths", lambda jax: [str(path) for path, _ in jax.tree.leaves_with_path({"a": [1, Point(2, 3)]})]),
    check("tree_util.keystr: simple", lambda jax: jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path({"a": [1]})[0][0], simple=True, separator="/")),
    check("tree.broadcast, tree_util.tree_broadcast: a prefix", lambda jax: jax.tree.broadcast((1, 2), ([0, 0], {"a": 0}))),
    check("tree_util.all_leaves: yes and no", lambda jax: [jax.tree_util.all_leaves([1, 2]), jax.tree_util.all_leaves([1, (2,)])]),
    check("tree_util.treedef_tuple, tree_util.treedef_children: parts", lambda jax: [str(jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([1])])), [str(c) for c in jax.tree_util.treedef_children(jax.tree.structure((1, [2])))]]),
    check("tree_util.treedef_is_leaf: yes and no", lambda jax: [jax.tree_util.treedef_is_leaf(jax.tree.structure(v)) for v in (1, (1,), None)]),
    check("tree_util.PyTreeDef: equality and hash", lambda jax: [jax.tree.structure([1, 2]) == jax.tree.structure([3, 4]), hash(jax.tree.structure([1])) == hash(jax.tree.structure([2])), jax.tree.structure([1]) == jax.tree.structure((1,))]),
    check("tree_util.Partial: through jit", lambda jax: jax.jit(lambda f, x: f(x))(jax.tree_util.Partial(jax.numpy.add, X), 1.0)),
    check("tree_util.Partial: flattened", lambda jax: jax.tree.leaves(jax.tree_util.Partial(max, 1, key=2))),
    check("tree_util.register_pytree_node: a class", lambda jax: registered(jax)),
    check("tree_util.register_pytree_node: twice", lambda jax: [registered(jax), jax.tree_util.register_pytree_node(list, lambda x: (x, None), lambda _, c: c)]),
    check("tree_util.register_pytree_node_class: through grad", lambda jax: registered_class(jax)),
    check("tree_util.register_pytree_with_keys: paths", lambda jax: registered_keys(jax)),
    check("tree_util.register_dataclass: through jit", lambda jax: registered_dataclass(jax)),
    check("tree_util.register_static: no leaves", lambda jax: registered_static(jax)),
    check("tree_util.DictKey, tree_util.SequenceKey, tree_util.GetAttrKey, tree_util.FlattenedIndexKey: texts", lambda jax: [str(jax.tree_util.DictKey("a")), str(jax.tree_util.SequenceKey(1)), str(jax.tree_util.GetAttrKey("b")), str(jax.tree_util.FlattenedIndexKey(2))]),
    check("flatten_util.ravel_pytree: there and back", lambda jax: ravelled(jax, {"a": X, "b": [M, 1.0]})),
    check("flatten_util.ravel_pytree: types meet", lambda jax: ravelled(jax, {"a": np.arange(2, dtype=np.int32), "b": X})),
    check("flatten_util.ravel_pytree: empty", lambda jax: ravelled(jax, {})),
    check("flatten_util.ravel_pytree: gradient", lambda jax: (lambda flat, back: jax.grad(lambda f: (back(f)["a"] ** 2).sum())(flat))(*importlib_of(jax, "flatten_util").ravel_pytree({"a": X, "b": 1.0}))),
]


def importlib_of(jax, name):
    import importlib
    return importlib.import_module(f"{jax.__name__}.{name}")


def ravelled(jax, tree):
    flat, back = importlib_of(jax, "flatten_util").ravel_pytree(tree)
    return [flat, back(flat)]


def registered(jax):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a,), p.b), lambda b, children: Pair(*children, b))
    out = jax.jit(lambda p: jax.tree.map(lambda v: v * 2, p))(Pair(X, "name"))
    return [out.a, out.b, jax.tree.structure(out).num_leaves]


def registered_class(jax):
    @jax.tree_util.register_pytree_node_class
    class Weight:
        def __init__(self, w):
            self.w = w

        def tree_flatten(self):
            return (self.w,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    return jax.grad(lambda p: (p.w**2).sum())(Weight(X)).w


def registered_keys(jax):
    class Named:
        def __init__(self, a):
            self.a = a

    key = jax.tree_util.GetAttrKey("a")
    jax.tree_util.register_pytree_with_keys(Named, lambda n: (((key, n.a),), None), lambda _, c: Named(*c))
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path({"k": Named([1, 2])})]


def registered_dataclass(jax):
    import dataclasses

    @functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str

    out = jax.jit(lambda layer: dataclasses.replace(layer, w=layer.w * 2))(Layer(X, "first"))
    return [out.w, out.name, [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(out)]]


def registered_static(jax):
    @jax.tree_util.register_static
    class Mode(str):
        pass

    return [len(jax.tree.leaves(Mode("a"))), jax.jit(lambda m, x: x * len(m))(Mode("abc"), X)]


# --- configuration and errors ----------------------------------------------------------------------------------------


def with_flag(jax, manager, f):
    with manager:
        return f()


CONFIGURATION = [
    check("enable_x64: inside", lambda jax: with_flag(jax, jax.enable_x64(True), lambda: jax.numpy.arange(3.0) / 3)),
    check("enable_x64: off", lambda jax: [jax.numpy.arange(3).dtype.name, jax.numpy.array(1.0).dtype.name, jax.numpy.asarray(np.arange(3.0)).dtype.name]),
    check("enable_x64: types of x64", lambda jax: [str((jax.numpy.arange(3) + v).dtype) for v in (1.0, 1, 1j, True)], x64=True),
    check("numpy_dtype_promotion: strict", lambda jax: with_flag(jax, jax.numpy_dtype_promotion("strict"), lambda: jax.numpy.arange(3) + jax.numpy.ones(3))),
    check("numpy_dtype_promotion: strict with numbers", lambda jax: with_flag(jax, jax.numpy_dtype_promotion("strict"), lambda: jax.numpy.arange(3) + 1)),
    check("numpy_rank_promotion: raise", lambda jax: with_flag(jax, jax.numpy_rank_promotion("raise"), lambda: jax.numpy.ones((2, 3)) + jax.numpy.ones(3))),
    check("debug_nans: raises", lambda jax: with_flag(jax, jax.debug_nans(True), lambda: jax.numpy.log(-1.0))),
    check("debug_nans: under jit", lambda jax: with_flag(jax, jax.debug_nans(True), lambda: jax.jit(lambda x: jax.numpy.log(x) + 1)(-1.0))),
    check("debug_infs: raises", lambda jax: with_flag(jax, jax.debug_infs(True), lambda: jax.numpy.float32(1) / jax.numpy.float32(0))),
    check("checking_leaks: raises", lambda jax: with_flag(jax, jax.checking_leaks(), lambda: leak(jax))),
    check("default_matmul_precision: accepted", lambda jax: with_flag(jax, jax.default_matmul_precision("float32"), lambda: jax.numpy.asarray(M) @ X)),
    check("default_prng_impl: rbg", lambda jax: with_flag(jax, jax.default_prng_impl("rbg"), lambda: str(jax.random.key(0).dtype))),
    check("threefry_partitionable: off", lambda jax: with_flag(jax, jax.threefry_partitionable(False), lambda: jax.random.normal(jax.random.key(0), (3,)))),
    check("config: update and read", lambda jax: [jax.config.update("jax_enable_x64", False), jax.config.jax_enable_x64, jax.config.read("jax_enable_x64")]),
    check("config: an unknown flag", lambda jax: jax.config.update("jax_no_such_flag", 1)),
    check("config: a wrong value", lambda jax: jax.config.update("jax_numpy_rank_promotion", "sometimes")),
    check("errors: the tree of classes", lambda jax: [[k.__name__ for k in getattr(jax.errors, n).__mro__ if k.__name__ != "_JAXErrorMixin" and k.__name__ != "JAXError"] for n in (
        "ConcretizationTypeError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError", "NonConcreteBooleanIndexError")]),
    check("__version__: as jax", lambda jax: [jax.__version__, jax.__version_info__]),
    check("default_backend: cpu", lambda jax: [jax.default_backend(), jax.device_count(), jax.local_device_count(), jax.process_count(), jax.process_index()]),
    check("devices: text", lambda jax: [d.platform for d in jax.devices()]),
    check("float0: a dtype", lambda jax: str(jax.float0)),
    check("dtypes.issubdtype: keys", lambda jax: [jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key), jax.dtypes.issubdtype(np.float32, np.floating)]),
    check("dtypes.canonicalize_dtype: 64 bits", lambda jax: [str(jax.dtypes.canonicalize_dtype(d)) for d in ("float64", "int64", "complex128", "bfloat16")]),
    check("dtypes.result_type: numbers", lambda jax: [str(jax.dtypes.result_type(*a)) for a in ((1, 2.0), (np.int8(1), 2), ("bfloat16", "float16"))]),
    check("dtypes.TypePromotionError: small floats", lambda jax: jax.numpy.ones(2, "float8_e4m3fn") + jax.numpy.ones(2, "float8_e5m2")),
    check("named_scope: runs", lambda jax: with_flag(jax, jax.named_scope("here"), lambda: jax.numpy.ones(2))),
    check("debug.print: a wrong field", lambda jax: jax.debug.print("{x} {y}", x=1)),
]

CASES = DERIVATIVES + POLICIES + MAPS + JIT + PROGRAMS + CONTROL + CUSTOM + TREES + CONFIGURATION
