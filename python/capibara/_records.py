"""Record classes, compared and printed by their fields. Used instead of dataclasses, which are slow to import."""


class Record:
    """The fields are those of `__slots__`."""

    __slots__ = ()
    __hash__ = None

    def _fields(self):
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other):
        return self._fields() == other._fields() if type(other) is type(self) else NotImplemented

    def __repr__(self):
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({fields})"


class FrozenRecord:
    """The fields are those of `__match_args__`, set by the constructor and immutable afterwards."""

    def __init__(self, *values):
        self.__dict__.update(zip(self.__match_args__, values))

    def _values(self):
        return tuple(getattr(self, name) for name in self.__match_args__)

    def __setattr__(self, name, value):
        import dataclasses
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name):
        import dataclasses
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other):
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash(self._values())

    def __repr__(self):
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__match_args__)})"
