"""Jitted functions, loops and branches that use mutable values above arrays: their states become arguments and results."""
import functools

from capibara import _core, _lifting
from capibara._lifting import Lift, NotLifted, State, is_hi, is_mutable, lift_on_demand, type_of
from capibara._wrapping import copy_attributes

_jit = []  # jax.jit, which imports this module


def set_jit(jit):
    """Sets the function that compiles others."""
    _jit.append(jit)


def _lift_calls():
    _core.set_lifting_hook(_call_jitted)
    for name in ("lower", "trace"):
        setattr(_core.JitFunction, name, _stage_method(getattr(_core.JitFunction, name)))


_lifting.first_mutable.append(_lift_calls)

class _Slot:
    """The place of a mutable argument, which is passed as its arrays."""

    def __init__(self, number):
        self.number = number


_core.register_node(_Slot, lambda slot: ((), slot.number), lambda number, _: _Slot(number))


class _Known:
    """What is known of a jitted function: the mutable values that it uses from outside, and its functions of their states."""

    def __init__(self, jitted):
        self.owner, self.values, self.functions = id(jitted), [], {}


def _known(jitted):
    known = vars(jitted).get("_lifted")
    if known is None or known.owner != id(jitted):  # attributes are copied to wrappers
        known = jitted._lifted = _Known(jitted)
    return known


def uses_mutable(args, kwargs):
    """True if one of the arguments is a mutable value."""
    return any(map(is_mutable, _core.tree_leaves((args, kwargs), is_hi)))


def _call_jitted(jitted, args, kwargs):
    """A call of a jitted function once the program has mutable values."""
    if _lifting.in_derivative():
        return jitted.__wrapped__(*args, **kwargs)  # so that rules for cotangents run where the values can be updated
    captured = _known(jitted).values
    if not captured and not uses_mutable(args, kwargs):
        try:
            result = jitted._call_without_lifting(*args, **kwargs)
            _lifting.forget()
            return result
        except NotLifted as found:
            captured = [found.value]

    def call(lift):
        places, pure = _jit_parts(jitted, lift, args, kwargs)
        states = places.read()
        result, after = pure._call_without_lifting(states, *places.args, **places.kwargs)
        places.write(after)
        return places.fill(result)
    lift = Lift("jit", captured)
    try:
        return lift.run(call)
    finally:
        _known(jitted).values = lift.values


def _stage_method(method):
    """A method of jitted functions that returns a stage, for functions that use mutable values."""
    @functools.wraps(method)
    def staged(jitted, *args, **kwargs):
        captured = _known(jitted).values
        if not captured and not uses_mutable(args, kwargs):
            try:
                return method(jitted, *args, **kwargs)
            except NotLifted as found:
                captured = [found.value]

        def call(lift):
            places, pure = _jit_parts(jitted, lift, args, kwargs)
            return _Stage(method(pure, places.read(), *places.args, **places.kwargs), lift)
        return Lift("jit", captured).run(call)
    return staged


class _Stage:
    """A stage of a jitted function that uses mutable values: what is not defined here is that of the stage of its arrays."""

    def __init__(self, stage, lift):
        self._stage, self._lift = stage, lift

    def __getattr__(self, name):
        return getattr(self._stage, name)

    def lower(self, *args, **kwargs):
        """The lowered function."""
        return _Stage(self._stage.lower(*args, **kwargs), self._lift)

    def compile(self, *args, **kwargs):
        """The compiled function."""
        return _Stage(self._stage.compile(*args, **kwargs), self._lift)

    def __call__(self, *args, **kwargs):
        places = _Call(self._lift, args, kwargs)
        result, after = self._stage(places.read(), *places.args, **places.kwargs)
        places.write(after)
        return places.fill(result)


class _Call(Lift):
    """The captured values of a jitted function followed by the mutable arguments of one call, and its other arguments."""

    def __init__(self, lift, args, kwargs):
        super().__init__("jit", lift.values, lift)
        leaves, tree = _core.tree_flatten((args, kwargs), is_hi)
        for number, leaf in enumerate(leaves):
            if is_hi(leaf) and type_of(leaf).has_qdd:
                place = next((i for i, value in enumerate(self.values) if value is leaf), len(self.values))
                if place == len(self.values):
                    self.values.append(leaf)
                leaves[number] = _Slot(place)
        self.args, self.kwargs = tree.unflatten(leaves)

    def fill(self, result):
        leaves, tree = _core.tree_flatten(result, lambda one: isinstance(one, _Slot) or is_hi(one))
        return tree.unflatten([self.values[leaf.number] if isinstance(leaf, _Slot) else leaf for leaf in leaves])


def _jit_parts(jitted, lift, args, kwargs):
    """The arguments of one call, and the jitted function of states and arguments that returns the result and the final states."""
    call = _Call(lift, args, kwargs)
    known = _known(jitted).functions
    key = tuple(map(id, call.values[:len(lift.values)]))
    if key in known:
        return call, known[key][0]
    fun, captured = jitted.__wrapped__, list(lift.values)

    def pure(states, *args, **kwargs):
        inner = Lift("jit", captured + [object() for _ in states[len(captured):]])
        with inner.inside(states) as frame:
            replicas = [frame.replicas[id(value)] for value in inner.values]
            taken = _Call(inner, (), {})
            taken.values = replicas
            result = fun(*taken.fill(args), **taken.fill(kwargs))
            leaves, tree = _core.tree_flatten(result, is_hi)
            for number, leaf in enumerate(leaves):
                for place, replica in enumerate(replicas):
                    if leaf is replica or leaf is inner.values[place]:
                        leaves[number] = _Slot(place)
            return tree.unflatten(leaves), inner.final(frame, states)
    pure.__name__ = "fun"
    copy_attributes(fun, pure)
    options = {name: value for name, value in (getattr(jitted, "_options", None) or {}).items() if name != "inline"}
    static = options.pop("static_argnums", None) or []
    options.pop("donate_argnums", None)
    for name in ("in_shardings", "out_shardings"):
        if options.pop(name, None) is not None:
            raise NotImplementedError(f"jit: {name} cannot be given for a function that uses mutable values above arrays")
    pure = _jit[0](pure, static_argnums=[n + 1 for n in static] or None, **options)
    known[key] = pure, captured
    return call, pure


def _check_same(before, after):
    for old, new in zip(before, after):
        if old.qdd != new.qdd:
            raise TypeError(f"type-changing mutations not allowed in the body of a loop: the state of a mutable value was {old.qdd} before "
                            f"and is {new.qdd} after an iteration; set it to a value of the same types")


def _split(lift, states):
    """(positions of values that are carried, positions of those that are only written)."""
    writers = [i for i, state in enumerate(states) if getattr(state.kind, "is_writer", False)]
    return [i for i in range(len(states)) if i not in writers], writers


def scan(run, f, init, xs):
    """run(f, init, xs) for a scan, whose body may use mutable values."""
    def call(lift):
        states = lift.read()
        carried, writers = _split(lift, states)

        def body(carry, x):
            carry, given = carry
            now = list(states)
            for i, state in zip(carried, given):
                now[i] = state
            with lift.inside(now) as frame:
                carry, y = f(carry, x)
                after = lift.final(frame, now, always=True)
            _check_same([states[i] for i in carried], [after[i] for i in carried])
            return (carry, [_typed(after[i], states[i]) for i in carried]), (y, [after[i] for i in writers])
        (carry, after), (ys, written) = run(body, (init, [states[i] for i in carried]), xs)
        results = [None] * len(states)
        for places, values in ((carried, after), (writers, written)):
            for i, state in zip(places, values):
                results[i] = state
        lift.write(_with_structure(results, states, lift))
        return carry, ys
    return lift_on_demand("scan", lambda: run(f, init, xs), call)


def _typed(after, before):
    """A state with the tree structure of the one before, as carries need."""
    return State(before.kind, before.qdd, after.arrays, before.structure)


def _with_structure(results, states, lift):
    """Carried states with the structures in which they are written."""
    for i, state in enumerate(results):
        if state is not None and state.structure is None:
            results[i] = State(state.kind, state.qdd, state.arrays, _core.tree_structure(list(state.arrays)))
    return results


def while_loop(run, cond_fun, body_fun, init):
    """run(cond_fun, body_fun, init) for a loop whose functions may use mutable values."""
    def call(lift):
        states = lift.read()

        def condition(carry):
            with lift.inside(carry[1]):
                return cond_fun(carry[0])

        def body(carry):
            with lift.inside(carry[1]) as frame:
                value = body_fun(carry[0])
                after = lift.final(frame, carry[1], always=True)
            if _split(lift, states)[1]:
                raise NotImplementedError("while_loop: values that are only written to, such as logs, need a loop with a known trip count; "
                                          "use scan")
            _check_same(states, after)
            return value, [_typed(new, old) for new, old in zip(after, states)]
        value, after = run(condition, body, (init, states))
        lift.write(_with_structure(after, states, lift))
        return value
    return lift_on_demand("while_loop", lambda: run(cond_fun, body_fun, init), call)


def branches(run, functions, operands):
    """run(functions, operands) for a conditional whose branches may use mutable values."""
    def call(lift):
        states = lift.read()

        def with_states(fun):
            def branch(*args):
                with lift.inside(states) as frame:
                    result = fun(*args)
                    return result, lift.final(frame, states, always=True)
            return functools.wraps(fun)(branch) if hasattr(fun, "__name__") else branch
        result, after = run([with_states(fun) for fun in functions], operands)
        lift.write(after)
        return result
    return lift_on_demand("cond", lambda: run(functions, operands), call)


def jvp_of_mutable(jvp, fun, primals, tangents, has_aux):
    """jvp for mutable arguments, whose tangents are mutable values of the same kind."""
    values, tree = _core.tree_flatten(tuple(primals), is_hi)
    directions, other = _core.tree_flatten(tuple(tangents), is_hi)
    if len(values) != len(directions):
        raise TypeError(f"jvp: primals and tangents must have the same tree structure, got {tree} and {other}")
    places = [i for i, value in enumerate(values) if is_mutable(value)]
    rest = [i for i in range(len(values)) if i not in places]
    if [i for i, value in enumerate(directions) if is_mutable(value)] != places:
        raise TypeError("jvp: the tangent of a mutable argument is a mutable value of the same class, and other arguments have none")
    lift, tangent_lift = Lift("derivative", [values[i] for i in places]), Lift("derivative", [directions[i] for i in places])
    states, tangent_states = lift.read(), tangent_lift.read()

    def pure(states, arrays):
        with lift.inside(states) as frame:
            full = list(values)
            for i, array in zip(rest, arrays):
                full[i] = array
            result = fun(*tree.unflatten(full))
            result, aux = result if has_aux else (result, None)
            return (result, lift.final(frame, states, always=True)), aux
    (result, after), (tangent, tangent_after), aux = jvp(
        pure, (states, [values[i] for i in rest]), (_like(states, tangent_states), [directions[i] for i in rest]), True)
    lift.write(after)
    tangent_lift.write([State(new.kind, old.qdd, new.arrays, new.structure) for new, old in zip(tangent_after, tangent_states)])
    return (result, tangent, aux) if has_aux else (result, tangent)


def _like(states, tangents):
    return [State(state.kind, state.qdd, tangent.arrays, state.structure) for state, tangent in zip(states, tangents)]
