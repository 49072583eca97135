"""Functions by the class of their argument: how a library's own objects become arrays, and which type they have."""


class RulesByClass(dict):
    """{class: function of its objects}, with one function for all classes that have none of their own."""

    def __init__(self, otherwise):
        self._otherwise = otherwise

    def __missing__(self, kind):
        return self._otherwise


def _as_numpy(value):
    import numpy as np
    return np.asarray(value)


value_converters = RulesByClass(_as_numpy)  # {class: function that makes an array, or something like one, of its objects}


def convert_value(value):
    """An object as its class is registered in value_converters; None where it is not."""
    for kind in type(value).__mro__:
        if kind in value_converters:
            converted = value_converters[kind](value)
            return None if converted is value else converted
    return None
