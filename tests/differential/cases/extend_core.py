"""jax.extend.core beyond programs: tokens, effects, traces, equations made by hand, questions about the tracing state."""

import importlib
import types

from makers import *

X = np.array([0.5, -1.0, 2.0], np.float32)


def core(jax):
    return importlib.import_module(f"{jax.__name__}.extend.core")


def managed(manager, f):
    with manager as value:
        return f(value)


def seen(jax, transform, question):
    """What a question about the tracing state answers inside a transformed function."""
    answers = []

    def f(x):
        answers.append(question(core(jax)))
        return x * 2

    transform(f)
    return answers[:1]


def states(jax, question):
    """The answers to a question outside and inside of the transforms."""
    x = jax.numpy.asarray(X)
    return [question(core(jax)), [seen(jax, lambda f, t=t: t(f), question) for t in (
        lambda f: jax.jit(f)(x), lambda f: jax.make_jaxpr(f)(x), lambda f: jax.eval_shape(f, x), lambda f: jax.vmap(f)(x),
        lambda f: jax.vmap(f, axis_name="i")(x), lambda f: jax.vmap(jax.vmap(f, axis_name="i"), axis_name="j")(x[None]),
        lambda f: jax.vmap(jax.jit(f), axis_name="k")(x), lambda f: jax.jit(jax.vmap(f))(x), lambda f: jax.jvp(f, (x,), (x,)),
        lambda f: jax.grad(lambda v: f(v).sum())(x), lambda f: jax.lax.scan(lambda c, v: (c, f(v)), 0.0, x),
        lambda f: jax.checkpoint(f)(x))]]


# --- tokens ----------------------------------------------------------------------------------------------------------

TOKENS = [
    check("lax.create_token, extend.core.Token: a token", lambda jax: (lambda t: [type(t).__name__, isinstance(t, core(jax).Token), t.block_until_ready(), len(jax.tree.leaves(t))])(jax.lax.create_token())),
    check("extend.core.AbstractToken: of a token", lambda jax: (lambda a: [type(a).__name__, repr(a), a.str_short(), a.to_tangent_aval() is a, isinstance(a, core(jax).AbstractToken)])(jax.typeof(jax.lax.create_token()))),
    check("extend.core.AbstractToken: equality", lambda jax: [core(jax).AbstractToken() == core(jax).AbstractToken(), (lambda a: a == a)(core(jax).AbstractToken())]),
    check("lax.create_token: in a program", lambda jax: str(jax.make_jaxpr(lambda: jax.lax.create_token())())),
    check("lax.create_token, lax.after_all: in a program", lambda jax: str(jax.make_jaxpr(lambda x: (jax.lax.after_all(jax.lax.create_token(x), jax.lax.create_token(x)), x))(1.0))),
    check("lax.create_token: types of a program", lambda jax: [repr(a) for a in jax.make_jaxpr(lambda x: (jax.lax.create_token(x), x))(1.0).out_avals]),
    check("lax.after_all: tokens", lambda jax: (lambda t: [type(jax.lax.after_all(t, t)).__name__, type(jax.lax.after_all()).__name__])(jax.lax.create_token())),
    check("lax.after_all: a number", lambda jax: jax.lax.after_all(1)),
    check("lax.create_token: through jit", lambda jax: type(jax.jit(lambda t: t)(jax.lax.create_token())).__name__),
    check("lax.create_token: made in jit", lambda jax: [type(v).__name__ for v in jax.jit(lambda x: (jax.lax.create_token(x), x))(1.0)]),
    check("lax.create_token: beside a gradient", lambda jax: jax.grad(lambda x, t: x * 2)(1.0, jax.lax.create_token())),
    check("lax.create_token: arithmetic is refused", lambda jax: jax.lax.create_token() + 1),
    check("extend.core.Token: around an array", lambda jax: (lambda t: [t.block_until_ready(), t._buf])(core(jax).Token(jax.numpy.ones(2)))),
    check("extend.core.Token: without an array", lambda jax: core(jax).Token()),
]

# --- effects ---------------------------------------------------------------------------------------------------------


def effects(jax, f, *args):
    closed = jax.make_jaxpr(f)(*args)
    both = [closed.effects, closed.eqns[0].effects]
    return [[type(e).__name__, sorted(type(v).__name__ for v in e), sorted(map(str, e)), [isinstance(v, core(jax).Effect) for v in e]] for e in both]


def io(jax, ordered):
    return lambda x: importlib.import_module(f"{jax.__name__}.experimental").io_callback(lambda v: None, None, x, ordered=ordered)


EFFECTS = [
    check("debug.DebugEffect, extend.core.Effect: of a callback", lambda jax: effects(jax, lambda x: jax.debug.callback(lambda v: None, x), 1.0)),
    check("debug.OrderedDebugEffect, extend.core.Effect: of an ordered callback", lambda jax: effects(jax, lambda x: jax.debug.callback(lambda v: None, x, ordered=True), 1.0)),
    check("debug.DebugEffect: of a print", lambda jax: effects(jax, lambda x: jax.debug.print("{}", x), 1.0)),
    check("debug.OrderedDebugEffect: inside a jit", lambda jax: sorted(map(str, jax.make_jaxpr(jax.jit(lambda x: jax.debug.print("{}", x, ordered=True)))(1.0).effects))),
    check("extend.core.Effect: of input and output", lambda jax: [effects(jax, io(jax, o), 1.0) for o in (False, True)]),
    check("extend.core.Effect, extend.core.Effects, extend.core.no_effects: none", lambda jax: (lambda e: [e == core(jax).no_effects, len(e)])(jax.make_jaxpr(lambda x: x + 1)(1.0).effects)),
    check("extend.core.no_effects: empty and fixed", lambda jax: [type(core(jax).no_effects).__name__, len(core(jax).no_effects)]),
    check("debug.DebugEffect, debug.OrderedDebugEffect, extend.core.Effect: classes", lambda jax: [str(jax.debug.DebugEffect()), str(jax.debug.OrderedDebugEffect()), [issubclass(c, core(jax).Effect) for c in (jax.debug.DebugEffect, jax.debug.OrderedDebugEffect)],
                                                                                                   issubclass(jax.debug.DebugEffect, jax.debug.OrderedDebugEffect), jax.debug.DebugEffect() == jax.debug.DebugEffect(), core(jax).Effect.__bases__]),
    check("extend.core.Effects: a type of sets", lambda jax: [core(jax).Effects.__origin__.__name__, [a.__name__ for a in core(jax).Effects.__args__], isinstance(core(jax).no_effects, core(jax).Effects.__origin__)]),
]

# --- programs made by hand -------------------------------------------------------------------------------------------


def made(jax, *, wrong=False):
    """sin(x) - y + 2, from variables and equations; a wrong one gives its result another shape."""
    c, lax = core(jax), jax.lax
    aval = jax.typeof(jax.numpy.ones(3))
    new = c.gensym()
    x, y, s, p = (new(aval) for _ in range(4))
    out = new(jax.typeof(jax.numpy.ones(4)) if wrong else aval)
    two = c.Literal(np.float32(2.0), jax.typeof(jax.numpy.float32(2.0)))
    eqns = [c.new_jaxpr_eqn([x], [s], lax.sin_p, {"accuracy": None}, c.no_effects),
            c.new_jaxpr_eqn([s, y], [p], lax.sub_p, {}, c.no_effects),
            c.new_jaxpr_eqn([p, two], [out], lax.add_p, {}, c.no_effects)]
    info = c.DebugInfo("by hand", "made", ("x", "y"), ("result",))
    return c.Jaxpr([], [x, y], [out], eqns, debug_info=info)


def rewritten(jax):
    """A traced program whose sines are made cosines."""
    closed = jax.make_jaxpr(lambda x: jax.lax.sin(x) * jax.lax.sin(x * 2.0))(X)
    eqns = [e.replace(primitive=jax.lax.cos_p) if e.primitive == jax.lax.sin_p else e for e in closed.jaxpr.eqns]
    return core(jax).jaxpr_as_fun(core(jax).ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts))


BY_HAND = [
    check("extend.core.new_jaxpr_eqn, extend.core.gensym, extend.core.Jaxpr: printed", lambda jax: str(made(jax))),
    check("extend.core.new_jaxpr_eqn, extend.core.gensym, extend.core.jaxpr_as_fun: run", lambda jax: core(jax).jaxpr_as_fun(core(jax).ClosedJaxpr(made(jax), []))(X, X + 1)),
    check("extend.core.new_jaxpr_eqn: under jit, grad and vmap", lambda jax: (lambda f: [jax.jit(f)(X, X), jax.grad(lambda x: f(x, X)[0].sum())(jax.numpy.asarray(X)), jax.vmap(f)(np.stack([X, X + 1]), np.stack([X, X]))])(
        core(jax).jaxpr_as_fun(core(jax).ClosedJaxpr(made(jax), [])))),
    check("extend.core.new_jaxpr_eqn: parts", lambda jax: (lambda v, w: (lambda e: [type(e).__name__, isinstance(e, core(jax).JaxprEqn), e.primitive.name, e.params, e.invars[0] is v, e.outvars[0] is w, len(e.effects)])(
        core(jax).new_jaxpr_eqn([v], [w], jax.lax.sin_p, {"accuracy": None}, core(jax).no_effects)))(*(core(jax).Var(jax.typeof(jax.numpy.ones(2))) for _ in range(2)))),
    check("extend.core.new_jaxpr_eqn: replaced", lambda jax: rewritten(jax)(X)),
    check("extend.core.new_jaxpr_eqn: an operand that is no variable, with checks", lambda jax: managed(jax.enable_checks(True), lambda _: core(jax).new_jaxpr_eqn([3.0], [], jax.lax.sin_p, {}, core(jax).no_effects))),
    check("extend.core.new_jaxpr_eqn: an operand that is no variable, without checks", lambda jax: core(jax).new_jaxpr_eqn([3.0], [], jax.lax.sin_p, {}, core(jax).no_effects).invars),
    check("extend.core.gensym, extend.core.Var: variables differ", lambda jax: (lambda a, v, w: [v == v, v == w, len({v, w, v}), str(v.aval), isinstance(v, core(jax).Var)])(
        jax.typeof(jax.numpy.ones((2, 3))), core(jax).gensym()(jax.typeof(jax.numpy.ones((2, 3)))), core(jax).Var(jax.typeof(jax.numpy.ones((2, 3)))))),
    check("extend.core.jaxprs_in_params, extend.core.subjaxprs: of a loop and a branch", lambda jax: (lambda closed: [[len(list(core(jax).jaxprs_in_params(e.params))) for e in closed.eqns], [str(j) for j in core(jax).subjaxprs(closed.jaxpr)]])(
        jax.make_jaxpr(lambda x: jax.lax.cond(x[0] > 0, lambda v: v * 2.0, lambda v: -v, x))(X))),
    check("extend.core.jaxprs_in_params: closed, open, in a tuple, and none", lambda jax: (lambda c: [[type(j).__name__ for j in core(jax).jaxprs_in_params(p)] for p in ({"a": c}, {"a": c.jaxpr}, {"a": (c, c.jaxpr, 3)}, {"a": [c]}, {})])(
        jax.make_jaxpr(lambda x: x + 1)(1.0))),
    check("extend.core.subjaxprs: none", lambda jax: list(core(jax).subjaxprs(jax.make_jaxpr(lambda x: x + 1)(1.0).jaxpr))),
    check("extend.core.DebugInfo: fields and names", lambda jax: (lambda d: [d._fields, d.func_name, d.func_filename, d.func_lineno, d.replace_func_name("g").func_src_info, d.safe_arg_names(2), d.safe_result_paths(1)])(
        core(jax).DebugInfo("jit", "f at file.py:3", ("x", "y['a']"), ("result",)))),
    check("extend.core.DebugInfo: unknown names", lambda jax: [core(jax).DebugInfo("jit", "f", None, None).safe_arg_names(2), core(jax).DebugInfo("jit", "f", None, None).filter_arg_names([True])]),
    check("extend.core.DebugInfo: another number of names", lambda jax: core(jax).DebugInfo("jit", "f", ("x",), None).safe_arg_names(2)),
    check("extend.core.DebugInfo: paths resolved", lambda jax: (lambda d: [d.result_paths, d.resolve_result_paths().result_paths])(core(jax).DebugInfo("jit", "f", None, lambda: ["result[0]"]).resolve_result_paths())),
    check("extend.core.DebugInfo: arguments filtered", lambda jax: core(jax).DebugInfo("jit", "f", ("x", "y", "z"), None).filter_arg_names([True, False, True])),
]

# --- the tracing state -----------------------------------------------------------------------------------------------


def switched(jax, transform):
    """What is traced while the current trace is put aside, and while it is put back."""
    found = []

    def f(x):
        c = core(jax)
        with c.take_current_trace() as trace:
            aside = jax.lax.sin(1.0)
            found.append(isinstance(aside, jax.core.Tracer))
            found.append(c.find_top_trace(()) == trace)
            with c.set_current_trace(trace):
                found.append(isinstance(jax.lax.sin(1.0), jax.core.Tracer))
                found.append(c.find_top_trace((x,)) == trace)
        found.append(c.find_top_trace(()) == trace)
        return x + aside

    return [transform(f), found]


def opaque(jax):
    state = core(jax).get_opaque_trace_state()
    inside = []
    jax.jit(lambda x: (inside.extend([core(jax).get_opaque_trace_state() == state, core(jax).get_opaque_trace_state() == core(jax).get_opaque_trace_state()]), x)[1])(1.0)
    jax.vmap(lambda x: (inside.append(core(jax).get_opaque_trace_state() == state), x)[1])(X)
    return [state == core(jax).get_opaque_trace_state(), state == 3, inside]


VALUES = [1, 2.0, True, 1j, np.float32(1), np.ones(2), np.ones(2, np.int8), None, "text", [1], (1,), {}, object]

STATE = [
    check("extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE: under the transforms", lambda jax: states(jax, lambda c: c.unsafe_am_i_under_a_jit_DO_NOT_USE())),
    check("extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE: under the transforms", lambda jax: states(jax, lambda c: c.unsafe_am_i_under_a_vmap_DO_NOT_USE())),
    check("extend.core.unsafe_get_axis_names_DO_NOT_USE: under the transforms", lambda jax: states(jax, lambda c: c.unsafe_get_axis_names_DO_NOT_USE())),
    check("extend.core.nonempty_axis_env_DO_NOT_USE: under the transforms", lambda jax: states(jax, lambda c: c.nonempty_axis_env_DO_NOT_USE())),
    check("extend.core.take_current_trace, extend.core.set_current_trace, extend.core.find_top_trace: in jit", lambda jax: switched(jax, lambda f: jax.jit(f)(2.0))),
    check("extend.core.take_current_trace, extend.core.set_current_trace, extend.core.find_top_trace: in vmap", lambda jax: switched(jax, lambda f: jax.vmap(f)(X))),
    check("extend.core.take_current_trace, extend.core.set_current_trace: in no transform", lambda jax: switched(jax, lambda f: f(2.0))),
    check("extend.core.set_current_trace: put back after an error", lambda jax: after_error(jax)),
    check("extend.core.get_opaque_trace_state: inside and outside", lambda jax: opaque(jax)),
    check("extend.core.TraceTag: equality", lambda jax: [core(jax).TraceTag() == core(jax).TraceTag(), hash(core(jax).TraceTag()) == hash(core(jax).TraceTag()), core(jax).TraceTag() == 3]),
    check("extend.core.valid_jaxtype: values", lambda jax: [core(jax).valid_jaxtype(v) for v in VALUES] + [core(jax).valid_jaxtype(v) for v in (jax.numpy.ones(2), jax.random.key(0), jax.lax.create_token())]),
    check("extend.core.array_types: members", lambda jax: [t in core(jax).array_types for t in (np.ndarray, np.float32, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4, float, int, list, jax.Array, str, np.str_, np.datetime64)]),
    check("extend.core.primal_dtype_to_tangent_dtype: kinds", lambda jax: [str(core(jax).primal_dtype_to_tangent_dtype(np.dtype(d))) for d in ("float32", "float16", "int32", "bool", "complex64", "uint8", ml_dtypes.bfloat16)]),
    check("extend.core.primal_dtype_to_tangent_dtype: keys", lambda jax: str(core(jax).primal_dtype_to_tangent_dtype(jax.random.key(0).dtype))),
    check("extend.core.concrete_or_error: values", lambda jax: [core(jax).concrete_or_error(int, 3.7), core(jax).concrete_or_error(None, X), core(jax).concrete_or_error(float, jax.numpy.float32(2))]),
    check("extend.core.concrete_or_error: traced", lambda jax: jax.jit(lambda x: core(jax).concrete_or_error(int, x, "a size is needed"))(3)),
    check("extend.core.concrete_or_error: what it says", lambda jax: said(lambda: jax.jit(lambda x: core(jax).concrete_or_error(int, x, "a size is needed"))(3))),
    check("extend.core.concrete_or_error: force fails", lambda jax: core(jax).concrete_or_error(int, "text")),
    check("extend.core.JaxprTypeError: an unsound program", lambda jax: core(jax).check_jaxpr(made(jax, wrong=True))),
    check("extend.core.JaxprTypeError: what it is", lambda jax: [core(jax).JaxprTypeError is jax.errors.JaxprTypeError, issubclass(core(jax).JaxprTypeError, TypeError), core(jax).JaxprTypeError("text").args]),
    check("extend.core.InconclusiveDimensionOperation: what it is", lambda jax: [core(jax).InconclusiveDimensionOperation is jax.errors.InconclusiveDimensionOperation, issubclass(core(jax).InconclusiveDimensionOperation, (TypeError, ValueError)), str(core(jax).InconclusiveDimensionOperation("text"))[:4]]),
    check("extend.core.InconclusiveDimensionOperation: caught as an exception", lambda jax: raised(core(jax).InconclusiveDimensionOperation)),
]


def after_error(jax):
    found = []

    def f(x):
        try:
            with core(jax).take_current_trace():
                raise KeyError
        except KeyError:
            found.append(isinstance(jax.lax.sin(1.0), jax.core.Tracer))
        return x

    return [jax.jit(f)(1.0), found]


def said(f):
    try:
        f()
    except Exception as error:
        return "a size is needed" in str(error)


def raised(kind):
    try:
        raise kind("here")
    except Exception as error:
        return type(error).__name__


CASES = TOKENS + EFFECTS + BY_HAND + STATE
