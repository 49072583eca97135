"""Types of functions by the class of their argument."""
from collections.abc import Callable
from typing import Any

class RulesByClass(dict[type[Any], Callable[[Any], Any]]):
    """{class: function of its objects}, with one function for all classes that have none of their own."""

    def __init__(self, otherwise: Callable[[Any], Any]) -> None: ...

value_converters: RulesByClass

def convert_value(value: Any) -> Any: ...
