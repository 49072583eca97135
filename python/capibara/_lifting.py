"""Values above arrays: their types, and how transforms carry the mutable ones.

A value whose class is registered stands for the arrays that its type lowers it to. Values without state are pytrees of these arrays. A
mutable value keeps its identity: a transform that traces a function replaces it, inside, by a replica made of traced arrays, returns
the replica's final arrays with the function's results, and updates the original with them.
"""
import contextlib
import functools
import threading

from capibara import _core

types = {}  # {class: function from its objects to their types}


class Registrations:
    """Counts how often values above arrays were flattened, so that functions on user's trees can leave them whole."""

    flattened = 0
    mutable = False


class _Identity:
    """A mutable value as the static part of a tree: equal to itself alone."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self):
        return id(self.value)

    def __repr__(self):
        return f"<{type(self.value).__name__} at {id(self.value):#x}>"


def _flatten(value):
    Registrations.flattened += 1
    kind = type_of(value)
    return ((), _Identity(value)) if kind.has_qdd else (tuple(kind.lower_val(value)), kind)


def _unflatten(data, children):
    return data.value if isinstance(data, _Identity) else data.raise_val(*children)


def register(kind, type_of_value):
    """Registers the type of a class's objects."""
    if kind not in types:
        _core.register_node(kind, _flatten, _unflatten)
    types[kind] = type_of_value


def is_hi(value):
    """True for values above arrays."""
    return type(value) in types


def type_of(value):
    """The type of a value above arrays."""
    return types[type(value)](value)


def is_mutable(value):
    return type(value) in types and type_of(value).has_qdd


def whole(function, tree, is_leaf):
    """function(tree, is_leaf), one of the core's functions on trees, with values above arrays as leaves."""
    before = Registrations.flattened
    result = function(tree, is_leaf)
    if Registrations.flattened == before:
        return result
    return function(tree, lambda one: is_hi(one) or is_leaf is not None and is_leaf(one))


class NotLifted(BaseException):
    """Raised inside a function being traced by the first use of a mutable value from outside; transforms catch it and lift the value."""

    def __init__(self, value):
        super().__init__(f"{type(value).__name__}: a mutable value from outside of a traced function is used in a transform that cannot carry it")
        self.value, self.passed = value, []


class _Frame:
    """A function being traced, whose mutable values are replaced."""

    def __init__(self, kind, replicas):
        self.kind, self.replicas, self.state = kind, replicas, _core.trace_state()


class _Thread(threading.local):
    def __init__(self):
        self.frames, self.created = [], {}
        self.mode, self.in_checkpoint = "reverse", False


_thread = _Thread()


def created(value):
    """Records where a mutable value was made."""
    Registrations.mutable = True
    _activate()
    if _core.is_tracing():
        _thread.created[id(value)] = value, _core.trace_state()
    elif not _thread.frames:
        _thread.created.clear()
    return value


@functools.cache
def _activate():
    """From the first mutable value on, jitted functions carry them."""
    _core.set_lifting_hook(_call_jitted)
    for name in ("lower", "trace"):
        setattr(_core.JitFunction, name, _stage_method(getattr(_core.JitFunction, name)))


def local(value):
    """The object that stands for a mutable value in the function being traced: itself, or its replica."""
    state = _core.trace_state()
    frame = _thread.frames[-1] if _thread.frames else None
    if frame is not None and frame.state == state and id(value) in frame.replicas:
        return frame.replicas[id(value)]
    if not _core.is_tracing():
        return value
    _, home = _thread.created.get(id(value), (None, None))
    if home is not None and home == state:
        return value
    raise NotLifted(value)


def current_state(value):
    """The state of a mutable value: what its type depends on."""
    return local(value).cur_qdd()


class _State:
    """The arrays of a mutable value with its type and state: a pytree of the arrays."""

    def __init__(self, kind, qdd, arrays, structure=None):
        self.kind, self.qdd, self.arrays, self.structure = kind, qdd, arrays, structure


_core.register_node(_State, lambda state: (tuple(state.arrays), (state.kind, state.qdd, state.structure)),
                    lambda data, arrays: _State(data[0], data[1], arrays, data[2]))


class FlatTree:
    """The leaves of a pytree, and its structure."""

    def __init__(self, values, tree):
        self.vals, self.tree = tuple(values), tree

    @classmethod
    def flatten(cls, tree):
        return cls(*_core.tree_flatten(tree))

    def unflatten(self):
        return self.tree.unflatten(self.vals)

    def __iter__(self):
        return iter(self.vals)

    def __len__(self):
        return len(self.vals)


class Lift:
    """One call of a transform: the mutable values that the function uses from outside."""

    def __init__(self, kind, values=(), origin=None):
        self.kind, self.values, self.origin = kind, list(values), origin or self

    def _outside(self, value):
        """The object that stands for a value outside of the call; an enclosing transform may have to lift it first."""
        try:
            return local(value)
        except NotLifted as found:
            found.passed.append(self.origin)
            raise

    def read(self):
        """Their states outside, before the call."""
        states = []
        for value in self.values:
            value = self._outside(value)
            kind, qdd = type_of(value), value.cur_qdd()
            states.append(_State(kind, qdd, list(kind.read_loval_in(qdd, value))))
        self.states = states
        return states

    @contextlib.contextmanager
    def inside(self, states):
        """A context inside of the traced function; yields the frame with the replicas, made of the states' arrays."""
        replicas = [state.kind.new_from_loval(state.qdd, *state.arrays) for state in states]
        frame = _Frame(self.kind, {id(value): replica for value, replica in zip(self.values, replicas)})
        for replica in replicas:
            _thread.created[id(replica)] = replica, frame.state
        _thread.frames.append(frame)
        try:
            yield frame
        finally:
            _thread.frames.remove(frame)

    def final(self, frame, states, always=False):
        """The replicas' states at the end of the function; None for those that were not written, unless always."""
        results = []
        for value, before in zip(self.values, states):
            replica = frame.replicas[id(value)]
            qdd = replica.cur_qdd()
            flat = before.kind.read_loval_out(qdd, replica)
            arrays = list(flat.vals)
            same = qdd == before.qdd and len(arrays) == len(before.arrays) and all(a is b for a, b in zip(arrays, before.arrays))
            results.append(None if same and not always else _State(before.kind, qdd, arrays, flat.tree))
        return results

    def write(self, states):
        """Updates the values outside."""
        for value, state, before in zip(self.values, states, self.states):
            if state is None:
                continue
            value = self._outside(value)
            now = state.kind.read_loval_in(value.cur_qdd(), value)
            if len(now) != len(before.arrays) or any(a is not b for a, b in zip(now, before.arrays)):
                continue  # written since, by a rule for cotangents
            state.kind.update_from_loval2(state.qdd, value, FlatTree(state.arrays, state.structure))

    def run(self, call):
        """call(self), again for each further mutable value that is found."""
        while True:
            try:
                return call(self)
            except NotLifted as found:
                if self in found.passed:
                    raise
                if any(found.value is value for value in self.values):
                    raise _refusal(found.value) from None
                self.values.append(found.value)


def _refusal(value):
    return NotImplementedError(f"{type(value).__name__}: the mutable value is used in a function whose tracing cannot carry it, such as one "
                               "inside a loop's derivative; read it before, and pass its contents as arrays")


@contextlib.contextmanager
def _settings(**values):
    """A context in which the thread's settings have other values."""
    before = {name: getattr(_thread, name) for name in values}
    vars(_thread).update(values)
    try:
        yield
    finally:
        vars(_thread).update(before)


def mode():
    """The kind of derivative that is computed: 'forward', 'linearize' or 'reverse'."""
    return _thread.mode


def in_checkpoint():
    """True while the function of a checkpoint is traced."""
    return _thread.in_checkpoint


def differentiated(mode, direct, of_pure):
    """lifted() for a derivative of a mode."""
    if not types:
        return direct()
    with _settings(mode=mode):
        return lifted("derivative", direct, of_pure)


def checkpointed(direct, of_pure):
    """lifted() for a function whose intermediate values are recomputed."""
    if not types:
        return direct()
    with _settings(in_checkpoint=True):
        return lifted("checkpoint", direct, of_pure)


def lifted(kind, direct, of_pure):
    """The results of a transform of a function that may use mutable values.

    direct() is the transform without any. of_pure(inside, outside) is the transform of a function with one more result: the function
    calls inside(fun, *args, **kwargs), which returns fun's result and the states; outside(states) takes them from the transform's result.
    """
    if not Registrations.mutable:
        return direct()
    try:
        return direct()
    except NotLifted as found:
        first = found.value

    def call(lift):
        states = lift.read()

        def inside(fun, *args, **kwargs):
            with lift.inside(states) as frame:
                result = fun(*args, **kwargs)
                return result, lift.final(frame, states)
        return of_pure(inside, lift.write)
    return Lift(kind, [first]).run(call)


# ---- jit

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


def _uses_mutable(args, kwargs):
    return any(map(is_mutable, _core.tree_leaves((args, kwargs), is_hi)))


def _call_jitted(jitted, args, kwargs):
    """A call of a jitted function once the program has mutable values."""
    if any(frame.kind == "derivative" for frame in _thread.frames):
        return jitted.__wrapped__(*args, **kwargs)  # so that rules for cotangents run where the values can be updated
    captured = _known(jitted).values
    if not captured and not _uses_mutable(args, kwargs):
        try:
            return jitted._call_without_lifting(*args, **kwargs)
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
        if not captured and not _uses_mutable(args, kwargs):
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
    from capibara._wrapping import copy_attributes
    pure.__name__ = "fun"
    copy_attributes(fun, pure)
    from capibara.jax._api import jit
    options = {name: value for name, value in (getattr(jitted, "_options", None) or {}).items() if name != "inline"}
    static = options.pop("static_argnums", None) or []
    options.pop("donate_argnums", None)
    for name in ("in_shardings", "out_shardings"):
        if options.pop(name, None) is not None:
            raise NotImplementedError(f"jit: {name} cannot be given to a function that uses mutable values above arrays")
    pure = jit(pure, static_argnums=[n + 1 for n in static] or None, **options)
    known[key] = pure, captured
    return call, pure


# ---- control flow

def _check_same(before, after):
    for old, new in zip(before, after):
        if old.qdd != new.qdd:
            raise TypeError(f"type-changing mutations not allowed in the body of a loop: the state of a mutable value was {old.qdd} before and "
                            f"is {new.qdd} after an iteration; set it to a value of the same types")


def _split(lift, states):
    """(positions of values that are carried, positions of those that are only written)."""
    writers = [i for i, state in enumerate(states) if getattr(state.kind, "is_writer", False)]
    return [i for i in range(len(states)) if i not in writers], writers


def scan(run, f, init, xs):
    """run(f, init, xs) for a scan, whose body may use mutable values."""
    if not Registrations.mutable:
        return run(f, init, xs)
    try:
        return run(f, init, xs)
    except NotLifted as found:
        first = found.value

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
    return Lift("scan", [first]).run(call)


def _typed(after, before):
    """A state with the tree structure of the one before, as carries need."""
    return _State(before.kind, before.qdd, after.arrays, before.structure)


def _with_structure(results, states, lift):
    """Carried states with the structures in which they are written."""
    for i, state in enumerate(results):
        if state is not None and state.structure is None:
            results[i] = _State(state.kind, state.qdd, state.arrays, _core.tree_structure(list(state.arrays)))
    return results


def while_loop(run, cond_fun, body_fun, init):
    """run(cond_fun, body_fun, init) for a loop whose functions may use mutable values."""
    if not Registrations.mutable:
        return run(cond_fun, body_fun, init)
    try:
        return run(cond_fun, body_fun, init)
    except NotLifted as found:
        first = found.value

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
                raise NotImplementedError("while_loop: values that are only written to, such as logs, need a loop whose trip count is known: use scan")
            _check_same(states, after)
            return value, [_typed(new, old) for new, old in zip(after, states)]
        value, after = run(condition, body, (init, states))
        lift.write(_with_structure(after, states, lift))
        return value
    return Lift("while_loop", [first]).run(call)


def branches(run, functions, operands):
    """run(functions, operands) for a conditional whose branches may use mutable values."""
    if not Registrations.mutable:
        return run(functions, operands)
    try:
        return run(functions, operands)
    except NotLifted as found:
        first = found.value

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
    return Lift("cond", [first]).run(call)


# ---- jvp and vmap

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
    tangent_lift.write([_State(new.kind, old.qdd, new.arrays, new.structure) for new, old in zip(tangent_after, tangent_states)])
    return (result, tangent, aux) if has_aux else (result, tangent)


def _like(states, tangents):
    return [_State(state.kind, state.qdd, tangent.arrays, state.structure) for state, tangent in zip(states, tangents)]


def is_spec(axis):
    """True for an entry of in_axes or out_axes that says where the axis is in a value above arrays."""
    return bool(types) and any(kind.__name__ == "MappingSpec" and kind.__module__.endswith("_src.hijax") for kind in type(axis).__mro__)


def has_specs(axes):
    return any(map(is_spec, _core.tree_leaves(axes, lambda axis: axis is None)))


def has_hi(tree):
    """True if a tree has values above arrays."""
    before = Registrations.flattened
    _core.tree_leaves(tree)
    return Registrations.flattened != before


def _axes_of(spec, kind, count, size):
    """One axis for each array of a value above arrays."""
    if not is_spec(spec):
        return [spec] * count
    numbers = _core.tree_leaves(list(vars(spec).values()), lambda axis: axis is None)
    if len(numbers) == count:
        return numbers
    raise NotImplementedError(f"vmap: {type(spec).__name__} must have one axis for each of the {count} arrays of a value of type {kind}, "
                              f"got {numbers} for an axis of size {size}")


def mapped(run, fun, in_axes, out_axes, size, args, kwargs):
    """vmap of values above arrays: run(fun, in_axes, out_axes, size, args, kwargs) maps over arrays."""
    leaves, tree = _core.tree_flatten((args, kwargs), is_hi)
    entries = _entries((in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args), 0), tree, leaves)
    arrays, axes, kinds = [], [], []
    for leaf, axis in zip(leaves, entries):
        if is_hi(leaf) and not is_mutable(leaf):
            kind = type_of(leaf)
            parts = list(kind.lower_val(leaf))
            kinds.append((kind, axis))
            arrays.append(parts)
            axes.append(_axes_of(axis, kind, len(parts), size))
        else:
            kinds.append(None)
            arrays.append(leaf)
            axes.append(axis)
    if size is None:
        size = next(_core.as_array(array).shape[axis] for array, axis in
                    zip(_core.tree_leaves(arrays), _core.tree_leaves(axes, lambda axis: axis is None)) if axis is not None)
    outputs = []

    def call(arrays):
        values = []
        for array, kind in zip(arrays, kinds):
            values.append(array if kind is None else _element(*kind, size).raise_val(*array))
        given, named = tree.unflatten(values)
        results, structure = _core.tree_flatten(fun(*given, **named), is_hi)
        joined, kept, plan = [], [], []
        for result, axis in zip(results, _entries(out_axes, structure, results)):
            kind = type_of(result) if is_hi(result) and not is_mutable(result) else None
            parts = [result] if kind is None else list(kind.lower_val(result))
            places = []
            for part, own in zip(parts, _axes_of(axis, kind, len(parts), size)):
                target = kept if own is None else joined
                places.append((own, len(target)))
                target.append(part)
            plan.append((kind, places, result if is_hi(result) and kind is None else None))
        outputs[:] = [structure, plan]
        return joined, kept
    joined, kept = run(call, (axes,), (0, None), size, (arrays,), {})
    structure, plan = outputs
    moveaxis = _core.library_function("numpy", "moveaxis")
    values = []
    for kind, places, mutable in plan:
        parts = [kept[i] if axis is None else moveaxis(joined[i], 0, axis) if isinstance(axis, int) else joined[i] for axis, i in places]
        values.append(mutable if mutable is not None else parts[0] if kind is None else kind.raise_val(*parts))
    return structure.unflatten(values)


def _element(kind, axis, size):
    """The type of one element of a value mapped over an axis."""
    return kind.dec_rank(size, axis) if is_spec(axis) else kind


def _entries(axes, tree, values):
    """One entry for each value, from a tree of entries that is a prefix."""
    found, structure = _core.tree_flatten(axes, lambda axis: axis is None)
    entries = []
    for entry, part in zip(found, structure.flatten_up_to(tree.unflatten(list(range(len(values))))), strict=True):
        entries += [entry] * len(_core.tree_leaves(part))
    return entries


def as_types(tree):
    """A tree of the types of arrays, with the types of values above arrays instead of these values."""
    if not types:
        return tree
    leaves, structure = _core.tree_flatten(tree, is_hi)
    return structure.unflatten([type_of(leaf) if is_hi(leaf) else leaf for leaf in leaves]) if any(map(is_hi, leaves)) else tree


def shard_mapped(call, f, in_specs, out_specs, args):
    """shard_map of values above arrays: call(f, in_specs, out_specs, args) maps over arrays."""
    leaves, tree = _core.tree_flatten(args, is_hi)
    arrays, specs, kinds = [], [], []
    for leaf, spec in zip(leaves, _entries(in_specs, tree, leaves)):
        kind = type_of(leaf) if is_hi(leaf) else None
        kinds.append(kind)
        arrays.append(leaf if kind is None else list(kind.lower_val(leaf)))
        specs.append(spec if kind is None else _specs_of(spec, kind))
    flat_specs, outputs = [], []

    def on_arrays(arrays):
        values = [array if kind is None else kind.raise_val(*array) for array, kind in zip(arrays, kinds)]
        results, structure = _core.tree_flatten(f(*tree.unflatten(values)), is_hi)
        parts, plan = [], []
        for result, spec in zip(results, _entries(out_specs, structure, results)):
            kind = type_of(result) if is_hi(result) else None
            own = [result] if kind is None else list(kind.lower_val(result))
            plan.append((kind, len(own)))
            parts += own
            specs_of_result = [spec] if kind is None else _specs_of(spec, kind)
            flat_specs.extend(specs_of_result if not outputs else [])
        outputs[:] = [structure, plan]
        return parts
    results = iter(call(on_arrays, (specs,), flat_specs, (arrays,)))
    structure, plan = outputs
    return structure.unflatten([next(results) if kind is None else kind.raise_val(*[next(results) for _ in range(count)]) for kind, count in plan])


def _specs_of(spec, kind):
    """The specs of the arrays of a value above arrays."""
    count = len(kind.lo_ty())
    if not hasattr(spec, "to_lo"):
        return [spec] * count
    specs = list(spec.to_lo())
    if len(specs) != count:
        raise ValueError(f"shard_map: {type(spec).__name__}.to_lo must return {count} specs, one for each array of a value of type {kind}, got {specs}")
    return specs
