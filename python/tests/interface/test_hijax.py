"""Types of users above arrays, boxes and logs: each program gives the same on jax and on capibara."""
import dataclasses
import importlib

import jax
import numpy as np
import pytest

import capibara.jax

PACKAGES = {"jax": jax, "capibara": capibara.jax}


class Library:
    """What a program uses of one of the two."""

    def __init__(self, name):
        prefix = "" if name == "jax" else "capibara."
        self.jax = PACKAGES[name]
        self.jnp = self.jax.numpy
        self.public = importlib.import_module(prefix + "jax.experimental.hijax")
        self.boxes = importlib.import_module(prefix + "jax._src.hijax")
        self.discharge = importlib.import_module(prefix + "jax._src.state.discharge")
        self.state_types = importlib.import_module(prefix + "jax._src.state.types")
        define_pair(self)


def define_pair(lib):
    """A pair of arrays as a value above arrays, and two operations on it with rules of their own."""

    @dataclasses.dataclass(frozen=True)
    class Pair:
        first: object
        second: object

    @dataclasses.dataclass(frozen=True)
    class PairType(lib.public.HiType):
        first: object
        second: object

        def lo_ty(self):
            return [self.first, self.second]

        def lower_val(self, pair):
            return [pair.first, pair.second]

        def raise_val(self, first, second):
            return Pair(first, second)

        def to_tangent_aval(self):
            return PairType(self.first.to_tangent_aval(), self.second.to_tangent_aval())

        def vspace_zero(self):
            return make(self.first.vspace_zero(), self.second.vspace_zero())

        def vspace_add(self, x, y):
            return make(parts(x, 0) + parts(y, 0), parts(x, 1) + parts(y, 1))

        def str_short(self, short_dtypes=False, **_):
            return "PairType"

    lib.public.register_hitype(Pair, lambda pair: PairType(lib.jax.typeof(pair.first), lib.jax.typeof(pair.second)))

    class MakePair(lib.public.HiPrimitive):
        def abstract_eval(self, first, second):
            return PairType(first, second), set()

        def to_lojax(self, first, second):
            return Pair(first, second)

        def jvp(self, primals, tangents):
            return make(*primals), make(*map(lib.public.instantiate_zeros, tangents))

        def transpose(self, cotangent, *_):
            return [parts(cotangent, 0), parts(cotangent, 1)]

    class Part(lib.public.HiPrimitive):
        def abstract_eval(self, pair, *, index):
            return pair.lo_ty()[index], set()

        def to_lojax(self, pair, *, index):
            return (pair.first, pair.second)[index]

        def jvp(self, primals, tangents, *, index):
            return parts(primals[0], index), 10 * parts(tangents[0], index)  # a rule that no derivative of arrays would give

        def transpose(self, cotangent, pair, *, index):
            zeros = lib.jnp.zeros_like(cotangent)
            return [make(cotangent, zeros) if index == 0 else make(zeros, cotangent)]

    make_p, part_p = MakePair("make_pair"), Part("part")

    def make(first, second):
        return make_p.bind(first, second)

    def parts(pair, index):
        return part_p.bind(pair, index=index)

    lib.Pair, lib.PairType, lib.make, lib.part = Pair, PairType, make, parts

    class Power(lib.public.VJPHiPrimitive):
        def __init__(self, kind, power):
            self.in_avals, self.out_aval, self.params = (kind,), kind, {"power": power}
            super().__init__()

        def expand(self, x):
            return lib.jnp.round(x ** self.power)

        def jvp(self, primals, tangents):
            return self(*primals), 3.0 * self.power * tangents[0]

        def vjp_fwd(self, nonzero, x):
            assert nonzero == (True,)
            return self(x), x

        def vjp_bwd(self, x, cotangent, accumulator):
            accumulator.accum(cotangent * self.power * x)
            accumulator.accum(cotangent)

        def batch_dim_rule(self, _, dims):
            return dims[0]

    lib.power = lambda x, power: Power(lib.jax.typeof(x), power)(x)


LIBRARIES = {name: Library(name) for name in PACKAGES}


def as_numpy(tree):
    """Leaves as lists of numpy arrays and texts."""
    if isinstance(tree, dict):
        return [(key, as_numpy(value)) for key, value in sorted(tree.items())]
    if isinstance(tree, (list, tuple)):
        return [as_numpy(one) for one in tree]
    if isinstance(tree, str) or tree is None:
        return tree
    if type(tree).__name__ == "Pair":
        return ["Pair", as_numpy(tree.first), as_numpy(tree.second)]
    return np.asarray(tree)


def same(a, b):
    if isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b), (a, b)
        for one, other in zip(a, b):
            same(one, other)
    elif isinstance(a, tuple):
        assert a[0] == b[0]
        same(a[1], b[1])
    elif isinstance(a, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        narrow = {"float64": "float32", "int64": "int32"}  # jax leaves some results of numbers as Python's numbers
        assert narrow.get(str(a.dtype), str(a.dtype)) == narrow.get(str(b.dtype), str(b.dtype))
    else:
        assert a == b


# Programs: functions of a library that return trees.

def pair_through_jit(lib):
    swap = lib.jax.jit(lambda pair: lib.make(lib.part(pair, 1) + 1, lib.part(pair, 0)))
    return swap(lib.Pair(lib.jnp.arange(3.0), lib.jnp.float32(2)))


def pair_is_one_leaf(lib):
    pair = lib.make(1.0, 2.0)
    leaves, tree = lib.jax.tree.flatten({"a": pair, "b": [pair]})
    return [len(leaves), str(tree), lib.jax.tree.map(lambda one: one.second, [pair, pair])]


def type_of_pair(lib):
    return [lib.jax.typeof(lib.make(lib.jnp.ones(2), 2)).str_short(),
            str(lib.jax.eval_shape(lambda: lib.make(lib.jnp.ones(2), 3)).lo_ty()[0].shape)]


def gradient_by_own_rules(lib):
    def loss(x):
        pair = lib.make(x, x + 1)
        return lib.part(pair, 0) * lib.part(pair, 1)
    x, one = lib.jnp.float32(2), lib.jnp.float32(1)
    compiled = lib.jax.grad(loss)
    if lib.jax is not jax:  # jax does not lower operations above arrays whose arguments are literals
        compiled = lib.jax.jit(compiled)
    return [lib.jax.grad(loss)(x), compiled(x), lib.jax.jvp(loss, (x,), (one,))]


def gradient_of_pair(lib):
    pair = lib.make(2.0, 3.0)
    return lib.jax.grad(lambda pair: lib.part(pair, 0) ** 2 * lib.part(pair, 1))(pair)


def scan_carries_pair(lib):
    def body(pair, x):
        first, second = lib.part(pair, 0), lib.part(pair, 1)
        return lib.make(second, first + x), first
    return lib.jax.lax.scan(body, lib.make(lib.jnp.float32(0), lib.jnp.float32(1)), lib.jnp.arange(4.0))


def while_and_cond_carry_pair(lib):
    start = (0, lib.make(lib.jnp.float32(1), lib.jnp.float32(1)))
    _, pair = lib.jax.lax.while_loop(lambda carry: carry[0] < 4,
                                     lambda carry: (carry[0] + 1, lib.make(lib.part(carry[1], 1), lib.part(carry[1], 0) * 2)), start)
    return lib.jax.lax.cond(lib.part(pair, 0) > 1, lambda p: p, lambda p: lib.make(lib.part(p, 1), lib.part(p, 0)), pair)


def power_rules(lib):
    def cube(x):
        return lib.power(x, 3)
    return [cube(1.5), lib.jax.jit(cube)(1.5), lib.jax.grad(cube)(1.5), lib.jax.jit(lib.jax.grad(cube))(1.5),
            lib.jax.jvp(cube, (1.5,), (1.0,)), lib.jax.vmap(cube)(lib.jnp.arange(3.0)), lib.jax.vjp(cube, 1.5)[1](2.0)]


def gradient_of_mapped_power(lib):
    x = lib.jnp.arange(3.0)
    return [lib.jax.vmap(lib.jax.grad(lambda x: lib.power(x, 2)))(x), lib.jax.jit(lib.jax.vmap(lambda x: lib.power(x, 2)))(x)]


def box_argument(lib):
    traced = []

    @lib.jax.jit
    def add(box, x):
        traced.append(x)
        box.set(box.get() + x)
        return x * 2
    first, second = lib.boxes.Box(1.0), lib.boxes.Box(5.0)
    results = [add(first, 2.0), add(second, 3.0), add(first, 4.0)]
    return [results, first.get(), second.get(), len(traced)]


def box_from_outside(lib):
    box = lib.boxes.Box(1.0)
    inner = lib.jax.jit(lambda x: box.set(box.get() + x))
    outer = lib.jax.jit(lambda x: [inner(x), inner(x)] and box.get())
    return [outer(2.0), outer(3.0), box.get()]


def box_changes_type(lib):
    box = lib.boxes.Box(None)

    @lib.jax.jit
    def grow():
        value = box.get()
        box.set([1.0] if value is None else [one + 1 for one in value] + [0.0])
    results = []
    for _ in range(3):
        grow()
        results.append(list(box.get()))
    box.set(None)
    grow()
    return [results, box.get()]


def box_in_loops(lib):
    box = lib.boxes.Box(lib.jnp.float32(1))

    def double(*_):
        box.set(box.get() * 2)
        return None, box.get()
    _, seen = lib.jax.lax.scan(double, None, None, length=3)
    lib.jax.lax.while_loop(lambda i: i < 2, lambda i: double() and i + 1, 0)
    lib.jax.lax.cond(True, lambda: box.set(box.get() + 1), lambda: None)
    return [seen, box.get()]


def box_and_gradient(lib):
    box = lib.boxes.Box(0.0)

    def f(x):
        y = x * x
        box.set(lib.jax.lax.stop_gradient(y))
        return y
    return [lib.jax.grad(f)(3.0), box.get(), lib.jax.grad(lib.jax.jit(f))(4.0), box.get(), lib.jax.jit(lib.jax.grad(f))(5.0), box.get(),
            lib.jax.value_and_grad(f)(6.0), box.get()]


def box_in_rule_for_cotangents(lib):
    box = lib.boxes.Box(0.0)

    @lib.jax.custom_vjp
    def watch(x):
        return x
    watch.defvjp(lambda x: (x, None), lambda _, cotangent: [box.set(cotangent)] and (cotangent,))
    results = []
    for f in (lambda x: watch(x) * 3, lib.jax.jit(lambda x: watch(x) * 4)):
        results += [lib.jax.grad(f)(1.0), box.get()]
    return results + [lib.jax.jit(lib.jax.grad(lambda x: watch(x) * 5))(1.0), box.get()]


def box_of_tangents(lib):
    box, tangent = lib.boxes.Box(5.0), lib.boxes.Box(1.0)

    def f(box, x):
        box.set(box.get() * x)
        return x
    results = lib.jax.jvp(f, (box, 2.0), (tangent, 1.0))
    return [results, box.get(), tangent.get()]


def box_of_pairs(lib):
    box = lib.boxes.Box([lib.make(1.0, 2.0)])
    lib.jax.jit(lambda: box.set(box.get() * 2))()
    return box.get()


def log_values(lib):
    log = lib.boxes.Log()

    def body(c, x):
        log.append("x", x * c)
        return c + 1, None

    @lib.jax.jit
    def f(x):
        log.append("before", x)
        lib.jax.lax.scan(body, x, lib.jnp.arange(3.0))
        lib.jax.jit(lambda: log.append("inner", x + 1))()
    f(2.0)
    f(3.0)
    return log._dct


def ref_of_pair(lib):
    def f(first):
        ref = lib.jax.new_ref(lib.make(first, 2.0))
        pair = ref[...]
        ref[...] = lib.make(lib.part(pair, 0) + 5, lib.part(pair, 1))
        return lib.jax.freeze(ref)
    return [f(1.0), lib.jax.jit(f)(1.0)]


def ref_in_custom_rule(lib):
    @lib.jax.custom_vjp
    def watch(ref, x):
        return x * 2

    def backward(ref, cotangent):
        ref[...] = cotangent
        return None, cotangent * 3
    watch.defvjp(lambda ref, x: (x * 2, ref), backward)
    ref = lib.jax.new_ref(0.0)
    results = []
    for transform in (lib.jax.grad, lambda f: lib.jax.jit(lib.jax.grad(f))):
        results += [transform(lambda x: watch(ref, x) * x)(4.0), ref[...]]
    return results


def discharged_program(lib):
    def f(a, b, x):
        def body(i, carry):
            a[...] += carry * i
            return carry + 1.0
        y = lib.jax.lax.fori_loop(0, 3, body, x)
        b[1] = y + b[0]
        return y + a[...]
    types = [lib.state_types.AbstractRef(lib.jax.typeof(lib.jnp.zeros(shape))) for shape in ((), (2,))]
    program = lib.jax.make_jaxpr(f)(*types, lib.jnp.float32(0))
    a, b, x = program.jaxpr.invars
    effects = [lib.state_types.ReadEffect(a), lib.state_types.WriteEffect(a), lib.state_types.ReadEffect(b), lib.state_types.WriteEffect(b)]
    named = "yes" if set(effects) == set(program.effects) else "no"
    named += "no" if lib.state_types.WriteEffect(x) in program.effects else "yes"
    of_values = lib.discharge.discharge_state(program)
    results = [lib.jax.core.eval_jaxpr(of_values.jaxpr, of_values.consts, 10.0, lib.jnp.arange(2.0), 1.0)]
    of_b = lib.discharge.discharge_state(program, should_discharge=[False, True, True])
    return results + [named, len(of_values.jaxpr.outvars), len(of_b.jaxpr.outvars), len(of_values.effects)]


def operation_in_program(lib):
    program = lib.jax.make_jaxpr(lambda x: lib.part(lib.make(x, 2.0), 0))(1.0)
    return ["yes" if program.jaxpr.is_high else "no", "yes" if lib.jax.make_jaxpr(lambda x: x + 1)(1.0).jaxpr.is_high else "no",
            "yes" if lib.jax.jit(lambda x: lib.part(lib.make(x, 2.0), 0)).trace(1.0).lojax.jaxpr.is_high else "no"]


def compiled_with_box(lib):
    box = lib.boxes.Box(1.0)
    compiled = lib.jax.jit(lambda box: box.set(box.get() + 1.0)).lower(box).compile()
    compiled(box)
    compiled(box)
    return box.get()


PROGRAMS = [pair_through_jit, pair_is_one_leaf, type_of_pair, gradient_by_own_rules, gradient_of_pair, scan_carries_pair,
            while_and_cond_carry_pair, power_rules, gradient_of_mapped_power, box_argument, box_from_outside, box_changes_type,
            box_in_loops, box_and_gradient, box_in_rule_for_cotangents, box_of_tangents, box_of_pairs, log_values,
            ref_of_pair, ref_in_custom_rule, discharged_program, operation_in_program, compiled_with_box]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_gives_what_jax_gives(program):
    expected, got = (as_numpy(program(LIBRARIES[name])) for name in PACKAGES)
    same(expected, got)


def test_a_transform_that_cannot_carry_a_box_says_so():
    box = LIBRARIES["capibara"].boxes.Box(1.0)
    with pytest.raises(NotImplementedError, match="Box: the mutable value .* cannot carry it.*pass its contents"):
        capibara.jax.jacfwd(lambda x: x * box.get())(1.0)


def test_a_box_that_a_function_makes_does_not_outlive_the_trace():
    lib = LIBRARIES["capibara"]
    from capibara import _lifting
    lib.boxes.Box(0.0)
    for size in range(1, 4):
        lib.jax.jit(lambda x: lib.boxes.Box(x).get() + 1)(lib.jnp.zeros(size))
    assert not _lifting._thread.created and not _lifting._thread.frames


def test_a_box_is_unchanged_when_the_function_raises():
    lib = LIBRARIES["capibara"]
    box = lib.boxes.Box(1.0)

    @lib.jax.jit
    def f():
        box.set(2.0)
        raise ValueError("no")
    with pytest.raises(ValueError, match="no"):
        f()
    assert box.get() == 1.0
    with pytest.raises(TypeError, match="type-changing mutations not allowed"):
        lib.jax.lax.scan(lambda c, _: (c, box.set([c])), 0.0, None, length=2)


def test_wrong_rules_name_the_method():
    lib = LIBRARIES["capibara"]

    class Bare(lib.public.HiType):
        pass

    with pytest.raises(NotImplementedError, match="Bare: this use of the type needs its method 'lo_ty'"):
        Bare().lo_ty()
    with pytest.raises(AttributeError, match="subclass __init__ should set `self.in_avals`"):
        lib.public.VJPHiPrimitive()

    class Wrong(lib.public.HiPrimitive):
        def abstract_eval(self, x):
            return x.update(shape=(3,)), set()

        def to_lojax(self, x):
            return x
    with pytest.raises(TypeError, match="wrong: the operation's result has type float32"):
        lib.jax.jit(Wrong("wrong").bind)(1.0)
