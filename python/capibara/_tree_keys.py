"""The keys on the path from a pytree's root to a leaf."""
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    key: Any

    def __str__(self):
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self):
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    key: int

    def __hash__(self):  # different from that of a SequenceKey
        return hash((FlattenedIndexKey, self.key))

    def __str__(self):
        return f"[<flat index {self.key}>]"
