"""Small programs for corner cases of jax's interface, each run on jax and on capibara.jax, with the same results."""
import collections.abc
import functools
import importlib
import weakref

import numpy as np
import pytest

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def module(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


def numbers(jax, tree):
    return jax.tree.map(lambda x: np.asarray(x).tolist(), tree)


def refusal(function, *words):
    """The built-in class of an error, and which of the words are in its text."""
    try:
        function()
    except Exception as error:
        kind = next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
        return kind, [word in str(error) for word in words]
    return "nothing was raised"


# ---- calls of functions inside of programs


def call(jax, primitive, fun, *args):
    wrap_init = module(jax, "extend.linear_util").wrap_init
    info = importlib.import_module("jax._src.api_util").debug_info("test", fun, args, {}) if jax.__name__ == "jax" else None
    return primitive.bind(*args, subfuns=(wrap_init(lambda *xs: [fun(*xs)], debug_info=info),))[0]


def call_primitives(jax):
    primitives = module(jax, "extend.core.primitives")
    return primitives.call_p, primitives.closed_call_p


@program
def calls_are_equations_of_programs(jax):
    jnp = module(jax, "numpy")
    return [str(jax.make_jaxpr(lambda x: call(jax, p, lambda y: jnp.sin(y) * x, x * 2))(1.)) for p in call_primitives(jax)]


@program
def calls_are_differentiated_batched_and_compiled(jax):
    jnp, results = module(jax, "numpy"), []
    x = np.linspace(0.1, 1, 3, dtype=np.float32)
    for p in call_primitives(jax):
        f = lambda x: call(jax, p, lambda y: jnp.sin(y) * x, x * 2)  # noqa: B023
        for transformed in (jax.grad(f), jax.grad(jax.grad(jax.jit(f))), lambda x: jax.jvp(jax.jit(f), (x,), (x,)), jax.linearize(jax.jit(f), 0.3)[1]):
            results.append(numbers(jax, jax.jit(jax.vmap(transformed))(x)))
    return [np.round(np.asarray(r), 4).tolist() for r in results]


@program
def a_call_outside_of_programs_is_a_call(jax):
    return [float(call(jax, p, lambda y: y * 2 if y > 0 else y, 1.5)) for p in call_primitives(jax)]


@program
def equations_bind_again(jax):
    jnp, eval_jaxpr = module(jax, "numpy"), module(jax, "core").eval_jaxpr
    closed = jax.make_jaxpr(lambda x: jax.jit(jnp.square)(x) + call(jax, call_primitives(jax)[0], jnp.negative, x))(1.)
    names = [sorted(set(eqn.primitive.get_bind_params(eqn.params)) & {"subfuns", "jaxpr"}) for eqn in closed.eqns]
    return names, numbers(jax, eval_jaxpr(closed.jaxpr, closed.consts, 2.))


# ---- functions returned by differentiation


@program
def linear_functions_cross_jit(jax):
    jnp = module(jax, "numpy")
    pull = jax.jit(lambda x: jax.vjp(jnp.sin, x)[1])(1.)
    push = jax.jit(lambda x: jax.linearize(jnp.sin, x)[1])(1.)
    transposed = jax.jit(lambda c: jax.linear_transpose(lambda x: c * x, 1.))(3.)
    return [numbers(jax, jax.jit(lambda f, x: f(x))(f, 2.)) for f in (pull, push, transposed)]


@program
def integers_have_transposes(jax):
    return numbers(jax, jax.linear_transpose(lambda x: 2 * x, 1)(3)), refusal(
        lambda: jax.linear_transpose(lambda x: 2. * x, 1), "linear_transpose only supports")


@program
def an_integer_output_may_be_its_cotangent(jax):
    jnp = module(jax, "numpy")
    return numbers(jax, jax.vjp(lambda x: (x * 2, jnp.arange(2)), 1.)[1]((3., jnp.arange(2))))


@program
def float0_is_numpys(jax):
    gradient = jax.grad(lambda x: x + 0., allow_int=True)(1)
    return isinstance(gradient, np.ndarray), bool(gradient == np.zeros((), gradient.dtype)), gradient.dtype.names


@program
def a_vjp_takes_one_argument(jax):
    def twice(x):
        return x, x
    return refusal(lambda: jax.vjp(twice, 1.)[1](1., 1.), "applied to twice", "called with 2 arguments")


# ---- vmap


@program
def unmapped_arguments_need_not_be_arrays(jax):
    jnp = module(jax, "numpy")
    return numbers(jax, jax.vmap(lambda f, n, x: f(x) * n, in_axes=(None, None, 0))(lambda x: x + 1, 3, jnp.arange(3)))


@program
def axes_of_different_sizes_are_named(jax):
    jnp = module(jax, "numpy")
    return [refusal(lambda: jax.vmap(lambda x, y, z: x)(jnp.ones(3), [jnp.ones(4), jnp.ones(4)], z=jnp.ones(4)),
                    "most axes (3 of them) had size 4, e.g. axis 0 of argument y[0] of type float32[4];",
                    "one axis had size 3: axis 0 of argument x of type float32[3]"),
            refusal(lambda: jax.vmap(lambda x: x, axis_size=2)(jnp.ones(8)), "the `axis_size` argument was 2;"),
            refusal(lambda: jax.vmap(lambda x: x)({}), "got empty *args=({},) and **kwargs={}"),
            refusal(lambda: jax.vmap(lambda x: x, in_axes=None)(jnp.ones(3)), "at least one non-None value in in_axes"),
            refusal(lambda: jax.vmap(lambda x: x, out_axes=None)(jnp.ones(3)), "at vmap out_axes"),
            refusal(lambda: jax.vmap(lambda x: x, out_axes=None, axis_name="i")(jnp.ones(3)), "(axis_name=i) but out_axes is None"),
            refusal(lambda: jax.vmap(lambda x: x, out_axes=(jnp.ones(2),))(jnp.ones(3)), "vmap out_axes must be an int, None, or")]


# ---- arrays


@program
def arrays_have_weak_references_and_no_hash(jax):
    x = module(jax, "numpy").ones(3)
    reference = weakref.ref(x)
    alive = reference() is x
    is_hashable = isinstance(x, collections.abc.Hashable)
    del x
    return alive, is_hashable, reference() is None


@program
def conversions_of_traced_arrays_look_at_the_shape_first(jax):
    jnp = module(jax, "numpy")
    return [refusal(lambda: jax.jit(f)(x), text) for f, x, text in (
        (int, jnp.arange(3), "Only scalar arrays can be converted to Python scalars"),
        (bool, jnp.arange(0), "The truth value of an empty array is ambiguous"),
        (hex, jnp.ones(()), "Only integer scalar arrays can be converted to a scalar index"),
        (bool, jnp.ones(()), "Attempted boolean conversion"))]


@program
def the_namespace_tells_what_jitted_functions_can_do(jax):
    info = module(jax, "numpy").__array_namespace_info__()
    return info.capabilities(), None in info.devices(), info.default_device()


@program
def masked_arrays_are_refused(jax):
    return refusal(lambda: jax.device_put(np.ma.array([1, 2], mask=[True, False])), "numpy masked arrays are not supported")


@program
def device_get_leaves_keys_and_tracers(jax):
    key = jax.random.key(0)
    traced = jax.make_jaxpr(lambda x: jax.device_get(x) + 1)(1.)
    return str(jax.device_get(key).dtype), len(traced.eqns)


# ---- jit and its stages


@program
def jit_shows_its_function(jax):
    def f(x: int) -> int:
        """Says what it does."""
        return x
    f.attribute = 4
    jitted = jax.jit(f)
    return (repr(jitted) == f"<PjitFunction of {f!r}>", jitted.__doc__, jitted.__annotations__ == f.__annotations__, jitted.attribute,
            [transform(f).attribute for transform in (jax.vmap, jax.grad, jax.jacfwd, jax.checkpoint)])


@program
def arguments_that_are_no_arrays_are_named(jax):
    def f(x, y):
        return x
    return [refusal(lambda: jax.jit(f)(1, {"a": [1, "b"]}), "as an abstract array", "<class 'str'>", "at path y['a'][1]"),
            refusal(lambda: jax.jit(lambda x: (x, f))(1.), "returned a value of type <class 'function'> at output component [1]"),
            refusal(lambda: jax.eval_shape(lambda x: {"a": f}, 1.), "at output component ['a']", "is not a valid JAX type")]


@program
def compiled_functions_check_their_arguments(jax):
    jnp = module(jax, "numpy")
    compiled = jax.jit(lambda x: x + 4).lower(1.).compile()
    return [refusal(lambda: compiled(jnp.ones(3)), "Argument 'x' compiled with float32[] and called with float32[3]"),
            refusal(lambda: jax.vmap(compiled)(jnp.ones(3)), "Cannot apply JAX transformations to a function lowered and compiled", "BatchTracer"),
            str(compiled.in_avals), compiled.donate_argnums]


@program
def results_may_be_types(jax):
    jnp = module(jax, "numpy")
    struct = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    shapes = jax.eval_shape(lambda x: {"given": struct, "computed": jax.jit(lambda y: y + x)(struct)}, jnp.ones(3))
    return {name: (shape.shape, shape.dtype.name) for name, shape in shapes.items()}


@program
def what_cannot_be_transformed_is_said(jax):
    def generator(x):
        yield x
    return [refusal(lambda: jax.jit(3), "Expected a callable value"), refusal(lambda: jax.vmap(generator), "got a generator function"),
            refusal(lambda: jax.jit(staticmethod(generator)), "staticmethod arguments are not supported")]


@program
def names_of_callables_need_not_be_strings(jax):
    class Named:
        __name__ = 7

        def __call__(self, x):
            return x + 1
    return numbers(jax, jax.vmap(Named())(np.arange(2)))


@program
def initializers_can_be_wrapped(jax):
    return functools.wraps(module(jax, "nn").initializers.lecun_normal())(lambda: None).__name__


# ---- where equations come from


@program
def scopes_show_the_transformations(jax):
    def f(x):
        with jax.named_scope("bar"):
            with jax.named_scope("baz"):
                return x * 2
    outer = jax.named_scope("foo")
    jitted = jax.named_scope("foo")(jax.jit(jax.named_scope("bar")(lambda x: x + 1)))
    x = np.ones(3, np.float32)
    programs = [jax.make_jaxpr(outer(f))(x), jax.make_jaxpr(outer(jax.vmap(f)))(x), jax.make_jaxpr(outer(lambda x: jax.jvp(f, (x,), (x,))))(x),
                jax.make_jaxpr(outer(jax.vmap(lambda x: jax.jvp(f, (x,), (x,)))))(x)]
    inner = jax.make_jaxpr(jitted)(x)
    return [str(p.eqns[0].source_info.name_stack) for p in (*programs, inner, inner.eqns[0].params["jaxpr"])]


@program
def leaks_are_errors(jax):
    kept = []

    def keep(x):
        kept.append(x)
        return x
    jax.jit(keep)(1.)

    def hold_again():
        with jax.checking_leaks():
            jax.jit(lambda x: kept.append(x))(2.)
    return [refusal(lambda: kept[0] + 1, "unexpected tracer", "float32[]"), refusal(lambda: jax.jit(lambda x: kept[0])(1.), "Encountered an unexpected tracer"),
            refusal(hold_again, "Leaked trace")[1]]


@program
def equations_that_nobody_needs_are_removed(jax):
    jnp, pe = module(jax, "numpy"), module(jax, "interpreters.partial_eval")
    jaxpr = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1., 2.).jaxpr
    pruned, used = pe.dce_jaxpr(jaxpr, [True, False])
    return used, [eqn.primitive.name for eqn in pruned.eqns], len(pruned.invars)


@program
def what_nobody_needs_goes_from_loops_branches_and_calls_as_far_as_in_jax(jax):
    jnp, lax, pe = module(jax, "numpy"), module(jax, "lax"), module(jax, "interpreters.partial_eval")
    xs = np.arange(3, dtype=np.float32)
    pair = jax.jit(lambda x, y: (jnp.sin(x), jnp.cos(y)))
    functions = [
        lambda x, y: lax.scan(lambda c, z: ((jnp.sin(c[0]), jnp.cos(c[1]) * c[0]), z + y), (x, y), xs),
        lambda x, y: lax.while_loop(lambda s: s[2] < 3, lambda s: (jnp.sin(s[0]), jnp.cos(s[1]), s[2] + 1), (x, y, 0)),
        lambda x, y: lax.cond(x > 0, lambda x, y: (x, jnp.sin(y)), lambda x, y: (jnp.cos(x), x * y), x, y),
        lambda x, y: (pair(*pair(x, y)), pair(y, x)),
        lambda x, y: jax.checkpoint(lambda x, y: (x * y, jnp.sin(x)))(x, y),
        lambda x, y: lax.optimization_barrier((jnp.sin(x), jnp.cos(y))),
        lambda x, y: lax.scan(lambda c, _: (pair(*c), None), (x, y), length=2)[0],
    ]
    results = []
    for function in functions:
        jaxpr = jax.make_jaxpr(function)(1., 2.).jaxpr
        for i in range(len(jaxpr.outvars)):
            pruned, used = pe.dce_jaxpr(jaxpr, [k == i for k in range(len(jaxpr.outvars))])
            results.append((str(pruned), used))
    return results


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_as_jax_does(name):
    real = pytest.importorskip("jax")
    import capibara.jax
    assert PROGRAMS[name](capibara.jax) == PROGRAMS[name](real)


def test_linear_util_transforms_wrapped_functions():
    from capibara.jax.extend import linear_util as lu

    @lu.transformation_with_aux
    def scaled(factor, x):
        y = yield (factor * x,), {}
        yield y + 1, "aux"

    fun, aux = scaled(lu.wrap_init(lambda x: x * 10), 2)
    with pytest.raises(lu.StoreException):
        aux()
    assert fun.call_wrapped(3) == 61 and aux() == "aux"
    assert lu.merge_linear_aux(aux, lambda: lu.Store().val) == (True, "aux")


def test_listeners_hear_events():
    from capibara.jax import monitoring
    heard = []
    monitoring.register_event_duration_secs_listener(lambda *event, **more: heard.append((event, more)))
    monitoring.record_event_duration_secs("load", 2.0, size=3)
    monitoring.clear_event_listeners()
    monitoring.record_event_duration_secs("load", 4.0)
    assert heard == [(("load", 2.0), {"size": 3})]


def test_values_of_registered_classes_become_arrays():
    import capibara.jax as jax
    from capibara.jax.core import get_aval, pytype_aval_mappings
    from capibara.jax.interpreters import xla

    class Box:
        def __init__(self, value):
            self.value = value

    xla.canonicalize_dtype_handlers[Box] = lambda box: box.value
    pytype_aval_mappings[Box] = lambda box: get_aval(box.value)
    assert float(jax.jit(lambda x: x * 2)(Box(3.0))) == 6.0
    assert str(get_aval(Box(3.0))) == "~float32[]"


def test_a_script_has_an_absolute_file(tmp_path):
    import os
    import subprocess
    import sys
    import capibara
    path = os.path.dirname(os.path.dirname(os.path.abspath(capibara.__file__)))
    (tmp_path / "script.py").write_text("import os; print(os.path.isabs(__file__))")
    done = subprocess.run([sys.executable, "-m", "capibara", "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.stdout.strip() == "True", done.stderr


def test_a_module_runs_as_python_runs_it(tmp_path):
    import os
    import subprocess
    import sys
    import capibara
    path = os.path.dirname(os.path.dirname(os.path.abspath(capibara.__file__)))
    (tmp_path / "module.py").write_text("import sys, jax\nif __name__ == '__main__':\n    print(jax.__name__, sys.argv[1:], sys.path[0])")

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "capibara", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": path})
    assert run("-m", "module", "a", "-b").stdout.strip() == f"capibara.jax ['a', '-b'] {os.path.realpath(tmp_path)}"
    assert run("-m").returncode == 2


def test_code_runs_as_python_runs_it(tmp_path):
    import os
    import subprocess
    import sys
    import capibara
    path = os.path.dirname(os.path.dirname(os.path.abspath(capibara.__file__)))

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "capibara", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": path})
    code = ("import sys, jax, mithril as ml, mithril.models\n"
            "print(jax.__name__, ml.__name__, mithril.models.Linear.__name__, sys.argv, __name__)")
    assert run("-c", code, "a").stdout.strip() == "capibara.jax capibara.mithril Linear ['-c', 'a'] __main__"
    failed = run("-c", "def f():\n    return 1 / 0\nf()")
    assert failed.returncode == 1 and failed.stderr.splitlines()[1].startswith('  File "<string>", line 3')
    assert run("-c", "import sys; sys.exit(3)").returncode == 3
    for words, says in (["-c"], "-c expects code"), (["-x"], "there is no option -x"), (["nowhere.py"], "nowhere.py': there is none"):
        done = run(*words)
        assert done.returncode == 2 and says in done.stderr
