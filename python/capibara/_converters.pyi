"""Types of functions looked up by the class of their argument."""
from collections.abc import Callable
from typing import Any

class RulesByClass(dict[type[Any], Callable[[Any], Any]]):
    """{class: function of its objects}, with a default function for other classes."""

    def __init__(self, otherwise: Callable[[Any], Any]) -> None: ...

value_converters: RulesByClass

def convert_value(value: Any) -> Any: ...
