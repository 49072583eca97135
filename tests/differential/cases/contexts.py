"""Settings and what they do: no_tracing, enable_checks, softmax_custom_jvp, the flags of random keys, and the environment."""

import io
import contextlib
import warnings

from makers import *

X = np.array([0.5, -1.0, 2.0], np.float32)


def within(manager, f):
    with manager:
        return f()


def names(jaxpr):
    """The primitives of a program, in their order."""
    return [e.primitive.name for e in jaxpr.eqns]


def warned(f):
    """A result and the warnings on the way: their classes and first words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = f()
    return [out, [[w.category.__name__, str(w.message).split()[0]] for w in caught]]


# --- tracing ---------------------------------------------------------------------------------------------------------


def known(jax):
    """A function that was traced before, called where tracing is refused."""
    f = jax.jit(lambda x: x * 3 + 1)
    first = f(X)
    return within(jax.no_tracing(True), lambda: [first, f(X)])


def forbidden(f):
    return check("no_tracing: refuses", lambda jax: within(jax.no_tracing(), lambda: f(jax, jax.lax)))


TRACING = [
    forbidden(lambda jax, lax: jax.jit(lambda x: x * 3 + 1)(X)),
    forbidden(lambda jax, lax: jax.make_jaxpr(lambda x: lax.sin(x))(X)),
    forbidden(lambda jax, lax: jax.eval_shape(lambda x: lax.sin(x), X)),
    forbidden(lambda jax, lax: lax.scan(lambda c, x: (c, x), 0.0, X)),
    forbidden(lambda jax, lax: lax.while_loop(lambda x: lax.lt(x, 3), lambda x: lax.add(x, 1), 0)),
    forbidden(lambda jax, lax: lax.cond(True, lambda x: lax.neg(x), lambda x: x, X)),
    forbidden(lambda jax, lax: jax.checkpoint(lambda x: lax.sin(x))(X)),
    forbidden(lambda jax, lax: jax.jit(lambda x: x).lower(X)),
    check("no_tracing: a function that is known", lambda jax: known(jax)),
    check("no_tracing: without jit", lambda jax: (jax.lax.sin(X), within(jax.no_tracing(True), lambda: jax.lax.sin(X)))),
    check("no_tracing: over again afterwards", lambda jax: [within(jax.no_tracing(True), lambda: jax.config.jax_no_tracing), jax.config.jax_no_tracing, jax.jit(lambda x: x - 1)(X)]),
    check("no_tracing: switched off inside", lambda jax: within(jax.no_tracing(True), lambda: within(jax.no_tracing(False), lambda: jax.jit(lambda x: x - 1)(X)))),
    check("enable_checks: a program run with a wrong argument", lambda jax: within(jax.enable_checks(True), lambda: jax.core.eval_jaxpr(jax.make_jaxpr(lambda x: x)(X).jaxpr, [], np.float32(1)))),
    check("enable_checks: off, a program run with a wrong argument", lambda jax: jax.core.eval_jaxpr(jax.make_jaxpr(lambda x: x)(X).jaxpr, [], np.float32(1))),
    check("enable_checks: a program run", lambda jax: within(jax.enable_checks(), lambda: jax.core.eval_jaxpr(jax.make_jaxpr(lambda x: jax.lax.sin(x))(X).jaxpr, [], X))),
    check("enable_checks: sound functions", lambda jax: within(jax.enable_checks(True), lambda: [jax.config.jax_enable_checks, jax.jit(jax.grad(lambda x: jax.numpy.sin(x).sum()))(X), jax.lax.scan(lambda c, x: (c + x, c), 0.0, X)])),
    check("enable_checks: the setting of the process", lambda jax: updated(jax, "jax_enable_checks", True)),
]


def updated(jax, name, value):
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        return [getattr(jax.config, name), before]
    finally:
        jax.config.update(name, before)


# --- softmax ---------------------------------------------------------------------------------------------------------


def softmax(jax, on, f):
    return within(jax.softmax_custom_jvp(on), lambda: f(jax.nn.softmax))


SOFTMAX = [check("softmax_custom_jvp: values and derivatives", lambda jax, o=on: softmax(jax, o, lambda f: [f(X), jax.jacobian(f)(jax.numpy.asarray(X)), jax.hessian(lambda x: f(x)[1])(jax.numpy.asarray(X)), f(X, where=np.array([True, False, True]))])) for on in (True, False)]
SOFTMAX += [
    check("softmax_custom_jvp: whether the program has a rule", lambda jax: [softmax(jax, on, lambda f: "custom_jvp_call" in names(jax.make_jaxpr(f)(X))) for on in (True, False)]),
    check("softmax_custom_jvp: not by default", lambda jax: [jax.config.jax_softmax_custom_jvp, names(jax.make_jaxpr(jax.nn.softmax)(X))]),
    check("softmax_custom_jvp: gradient at infinity", lambda jax: [softmax(jax, on, lambda f: jax.grad(lambda x: f(x)[0])(np.array([-np.inf, 0.0, 1.0], np.float32))) for on in (True, False)]),
    check("softmax_custom_jvp: jit sees the setting", lambda jax: (lambda g: [softmax(jax, on, lambda f: g(X)) for on in (True, False, True)] + [g._cache_size()])(jax.jit(lambda x: jax.nn.softmax(x)))),
]

# --- random keys -----------------------------------------------------------------------------------------------------


def typed(jax, f):
    return within(jax.enable_custom_prng(True), lambda: f(jax.random))


KEYS = [
    check("enable_custom_prng: PRNGKey gives typed keys", lambda jax: typed(jax, lambda r: [r.PRNGKey(3), str(r.PRNGKey(3).dtype), r.split(r.PRNGKey(3))])),
    check("enable_custom_prng: raw keys become typed", lambda jax: (lambda raw: warned(lambda: typed(jax, lambda r: [r.split(raw), r.fold_in(raw, 2), r.uniform(raw), r.key_data(raw)])))(jax.random.PRNGKey(1))),
    check("enable_custom_prng: draws are the same", lambda jax: [typed(jax, lambda r: r.normal(r.PRNGKey(0), (3,))), jax.random.normal(jax.random.PRNGKey(0), (3,))]),
    check("enable_custom_prng: clone", lambda jax: (lambda raw: typed(jax, lambda r: r.clone(raw)))(jax.random.PRNGKey(1))),
    check("enable_custom_prng: off", lambda jax: [jax.config.jax_enable_custom_prng, str(jax.random.PRNGKey(3).dtype), jax.random.split(jax.random.PRNGKey(3)).shape]),
    check("enable_custom_prng: jit sees the setting", lambda jax: (lambda f: [str(f(1).dtype), typed(jax, lambda r: str(f(1).dtype))])(jax.jit(lambda s: jax.random.PRNGKey(s)))),
]
KEYS += [check("legacy_prng_key: a raw key", lambda jax, m=mode, f=function: (lambda raw: warned(lambda: within(jax.legacy_prng_key(m), lambda: f(jax.random, raw))))(jax.random.PRNGKey(1)))
         for mode in ("allow", "warn", "error") for function in (
             lambda r, k: r.uniform(k, (2,)), lambda r, k: r.split(k), lambda r, k: r.fold_in(k, 1), lambda r, k: r.key_data(k), lambda r, k: r.PRNGKey(2), lambda r, k: r.clone(k),
             lambda r, k: r.wrap_key_data(k), lambda r, k: str(r.key_impl(k)), lambda r, k: r.normal(r.key(0)))]
KEYS += [
    check("legacy_prng_key: without a value", lambda jax: jax.legacy_prng_key()),
    check("legacy_prng_key: an unknown value", lambda jax: jax.legacy_prng_key("perhaps")),
    check("legacy_prng_key: as a setting", lambda jax: [str(v) for v in updated(jax, "jax_legacy_prng_key", "error")]),
    check("legacy_prng_key: an unknown setting", lambda jax: jax.config.update("jax_legacy_prng_key", "perhaps")),
]

# --- the environment -------------------------------------------------------------------------------------------------

SHARED = ("jax:", "numpy:", "python:", "device info:", "process_count:")  # "platform:" names the kernel that runs


def printed(f):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        returned = f()
    return stream.getvalue(), returned


ENVIRONMENT = [
    check("print_environment_info: returned", lambda jax: [line for line in jax.print_environment_info(return_string=True).splitlines() if line.startswith(SHARED)]),
    check("print_environment_info: printed", lambda jax: (lambda out, returned: [returned, [line for line in out.splitlines() if line.startswith(SHARED)]])(*printed(lambda: jax.print_environment_info()))),
]

CASES = TRACING + SOFTMAX + KEYS + ENVIRONMENT
