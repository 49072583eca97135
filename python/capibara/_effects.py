"""Side effects of equations, and tokens, which order them."""


class Effect:
    """A generic side effect."""


class DebugEffect(Effect):
    """A callback that only observes values."""

    __str__ = lambda self: "Debug"  # noqa: E731


class OrderedDebugEffect(Effect):
    """A callback that only observes values, in program order."""

    __str__ = lambda self: "OrderedDebug"  # noqa: E731


class IOEffect(Effect):
    """A callback with effects outside the program."""

    __str__ = lambda self: "IO"  # noqa: E731


class OrderedIOEffect(Effect):
    """A callback with effects outside the program, in program order."""

    __str__ = lambda self: "OrderedIO"  # noqa: E731


class RefEffect(Effect):
    """An effect on a mutable array: the variable of a program, the number of an argument, or None if it is not known which."""

    def __init__(self, input=None):
        self.input = input

    def __eq__(self, other):
        return type(self) is type(other) and self.input == other.input

    def __hash__(self):
        return hash((type(self), self.input))

    def __repr__(self):
        return f"{type(self).__name__}({'' if self.input is None else self.input})"

    def __str__(self):
        return self.name if self.input is None else f"{self.name}<{self.input}>"


class ReadEffect(RefEffect):
    """A mutable array is read."""

    name = "Read"


class WriteEffect(RefEffect):
    """A mutable array is written."""

    name = "Write"


class AccumEffect(RefEffect):
    """A mutable array is added to."""

    name = "Accum"


class NamedAxisEffect(Effect):
    """A named axis is used."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, NamedAxisEffect) and self.name == other.name

    def __hash__(self):
        return hash(("NamedAxisEffect", self.name))

    def __repr__(self):
        return f"NamedAxis({self.name})"


class EffectTypeSet:
    """Kinds of effects that a transform allows inside of functions."""

    def __init__(self):
        self._types = set()

    def add_type(self, kind):
        """Allows a kind of effect."""
        self._types.add(kind)

    def contains(self, effect):
        """True if the effect is allowed."""
        return isinstance(effect, tuple(self._types))

    def filter_not_in(self, effects):
        """The effects that are not allowed."""
        return [effect for effect in effects if not self.contains(effect)]


control_flow_allowed_effects, custom_derivatives_allowed_effects = EffectTypeSet(), EffectTypeSet()

# One object of each kind, keyed by the name that the core uses.
KINDS = {str(effect): effect for effect in (DebugEffect(), OrderedDebugEffect(), IOEffect(), OrderedIOEffect(), ReadEffect(), WriteEffect())}


class AbstractToken:
    """The type of tokens."""

    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        return "Tok"

    def to_tangent_aval(self):
        return self

    to_ct_aval = to_tangent_aval

    def __repr__(self):
        return "AbstractToken()"


abstract_token = AbstractToken()


class Token:
    """A value that only orders side effects; wraps the array that carries it."""

    def __init__(self, buf):
        self._buf = buf

    def block_until_ready(self):
        self._buf.block_until_ready()
