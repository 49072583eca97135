"""Values above arrays: their types, and how transforms carry the mutable ones.

A value whose class is registered stands for the arrays that its type lowers it to. Values without state are pytrees of these arrays. A
mutable value keeps its identity: a transform that traces a function replaces it, inside, by a replica made of traced arrays, returns
the replica's final arrays with the function's results, and updates the original with them.
"""
import contextlib
import threading

from capibara import _core
from capibara._wrapping import copy_attributes

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


class Hidden:
    """A value as a part of a tree's structure."""

    def __init__(self, value):
        self.value = value


_core.register_node(Hidden, lambda hidden: ((), _Identity(hidden.value)), lambda data, _: Hidden(data.value))


def hide(tree, kind):
    """A tree whose leaves of a class are part of its structure."""
    leaves, structure = _core.tree_flatten(tree)
    return structure.unflatten([Hidden(leaf) if isinstance(leaf, kind) else leaf for leaf in leaves])


def shown(tree):
    """The inverse of hide()."""
    leaves, structure = _core.tree_flatten(tree, lambda one: isinstance(one, Hidden))
    return structure.unflatten([leaf.value if isinstance(leaf, Hidden) else leaf for leaf in leaves])


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
        super().__init__(type(value).__name__)
        self.value, self.passed = value, []

    def refusal(self):
        """The error for users, where no transform can lift the value."""
        return NotImplementedError(f"{type(self.value).__name__}: the mutable value is used in a function whose tracing cannot carry it, "
                                   "such as one inside a loop's derivative; read it before, and pass its contents as arrays")


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
    if not Registrations.mutable:
        Registrations.mutable = True
        for function in first_mutable:
            function()
    if _core.is_tracing():
        _thread.created[id(value)] = value, _core.trace_state()
    elif not _thread.frames:
        _thread.created.clear()
    return value


first_mutable = []  # functions that are called once, when the program makes its first mutable value


def forget():
    """Outside of all traced functions: forgets the mutable values that were made in them."""
    if _thread.created and not _thread.frames and not _core.is_tracing():
        _thread.created.clear()


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


class State:
    """The arrays of a mutable value with its type and state: a pytree of the arrays."""

    def __init__(self, kind, qdd, arrays, structure=None):
        self.kind, self.qdd, self.arrays, self.structure = kind, qdd, arrays, structure


_core.register_node(State, lambda state: (tuple(state.arrays), (state.kind, state.qdd, state.structure)),
                    lambda data, arrays: State(data[0], data[1], arrays, data[2]))


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
            states.append(State(kind, qdd, list(kind.read_loval_in(qdd, value))))
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
            for key in [key for key, (_, state) in _thread.created.items() if state == frame.state]:
                del _thread.created[key]

    def final(self, frame, states, always=False):
        """The replicas' states at the end of the function; None for those that were not written, unless always."""
        results = []
        for value, before in zip(self.values, states):
            replica = frame.replicas[id(value)]
            qdd = replica.cur_qdd()
            flat = before.kind.read_loval_out(qdd, replica)
            arrays = list(flat.vals)
            same = qdd == before.qdd and len(arrays) == len(before.arrays) and all(a is b for a, b in zip(arrays, before.arrays))
            results.append(None if same and not always else State(before.kind, qdd, arrays, flat.tree))
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
        """call(self), again for each mutable value that is found."""
        while True:
            try:
                return call(self)
            except NotLifted as found:
                if self in found.passed:
                    raise
                if any(found.value is value for value in self.values):
                    raise found.refusal() from None
                self.values.append(found.value)


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


def in_derivative():
    """True while a function with lifted values is differentiated."""
    return any(frame.kind == "derivative" for frame in _thread.frames)


def in_checkpoint():
    """True while the function of a checkpoint is traced."""
    return _thread.in_checkpoint


def differentiated(mode, fun, has_aux, transform):
    """The results of a derivative: transform(fun, has_aux) returns a pair or, with has_aux, a triple that ends with fun's second result."""
    if not types:
        return transform(fun, has_aux)

    def of_pure(inside, outside):
        def pure(*args, **kwargs):
            result, states = inside(fun, *args, **kwargs)
            return (result[0], (result[1], states)) if has_aux else (result, (None, states))
        pure.__name__ = "fun"  # for functions without a name
        copy_attributes(fun, pure)
        first, second, (aux, states) = transform(pure, True)
        outside(states)
        return (first, second, aux) if has_aux else (first, second)
    with _settings(mode=mode):
        return lifted("derivative", lambda: transform(fun, has_aux), of_pure)


def checkpointed(fun, transform):
    """transform(fun), a function whose intermediate values are recomputed."""
    if not types:
        return transform(fun)

    def of_pure(inside, outside):
        def pure(*args, **kwargs):
            return inside(fun, *args, **kwargs)
        pure.__name__ = "fun"
        copy_attributes(fun, pure)
        result, states = transform(pure)
        outside(states)
        return result
    with _settings(in_checkpoint=True):
        return lifted("checkpoint", lambda: transform(fun), of_pure)


def lift_on_demand(kind, direct, call):
    """direct(), or call(lift) where that meets mutable values from outside."""
    if not Registrations.mutable:
        return direct()
    try:
        return direct()
    except NotLifted as found:
        first = found.value
    return Lift(kind, [first]).run(call)


def lifted(kind, direct, of_pure):
    """The results of a transform of a function that may use mutable values.

    direct() is the transform without any. of_pure(inside, outside) is the transform of a function with one more result: the function
    calls inside(fun, *args, **kwargs), which returns fun's result and the states; outside(states) takes them from the transform's result.
    """
    def without():
        result = direct()
        forget()
        return result

    def call(lift):
        states = lift.read()

        def inside(fun, *args, **kwargs):
            with lift.inside(states) as frame:
                result = fun(*args, **kwargs)
                return result, lift.final(frame, states)
        return of_pure(inside, lift.write)
    return lift_on_demand(kind, without, call)
