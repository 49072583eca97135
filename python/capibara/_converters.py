"""Functions looked up by the class of their argument: converters of other libraries' objects to arrays and their types."""


class RulesByClass(dict):
    """{class: function of its objects}, with a default function for other classes."""

    def __init__(self, otherwise):
        self._otherwise = otherwise

    def __missing__(self, kind):
        return self._otherwise


def _as_numpy(value):
    import numpy as np
    return np.asarray(value)


value_converters = RulesByClass(_as_numpy)  # {class: function from its objects to arrays or array-likes}


def convert_value(value):
    """Converts an object with the converter of its class or of a base; None if there is none."""
    for kind in type(value).__mro__:
        if kind in value_converters:
            converted = value_converters[kind](value)
            return None if converted is value else converted
    return None
