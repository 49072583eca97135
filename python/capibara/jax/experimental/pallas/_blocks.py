"""The partition of a kernel's arrays into blocks: the shape of a block, and the block that each grid step sees."""
import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any


class MemorySpace(enum.Enum):
    """The memory space of a block; the interpreter has only one."""

    ANY = "any"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


class CompilerParams:
    """Options for kernel compilers: stored, but not used here."""

    def __init__(self, **options):
        self.__dict__.update(options)

    def __repr__(self):
        return f"CompilerParams({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """The number of buffers of a pipelined block."""

    buffer_count: int
    use_lookahead: bool = False


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension split into blocks of this size; the index map counts blocks."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of which the kernel sees this many elements; the index map counts elements."""

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of which the kernel sees one element, dropped from its block."""


squeezed = Squeezed()


class _NoBlockSpec:
    def __repr__(self):
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """The shape of an array's blocks, with None for dropped dimensions, and the index map from grid steps to blocks."""

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = None
    indexing_mode: Any = None
    pipeline_mode: Any = None

    def sizes(self, shape):
        """For each dimension of an array: (block size, whether it is dropped, whether the index map counts elements)."""
        if self.block_shape is None:
            return [(size, False, False) for size in shape]
        if len(self.block_shape) != len(shape):
            raise ValueError(f"pallas_call: the block shape {tuple(self.block_shape)} must have {len(shape)} dimensions, got {shape}")
        result = []
        for block in self.block_shape:
            if isinstance(block, Element) and tuple(block.padding) != (0, 0):
                raise NotImplementedError("pallas_call: Element with padding")
            left_out = block is None or isinstance(block, Squeezed)
            result.append((1 if left_out else getattr(block, "block_size", block), left_out, isinstance(block, Element)))
        return result

    def starts(self, shape, step, prefetched=()):
        """The start of a step's block; the index map takes the prefetched scalars after the step."""
        sizes = self.sizes(shape)
        if self.index_map is None or self.block_shape is None:
            return [0] * len(shape)
        index = self.index_map(*step, *prefetched)
        index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if len(index) != len(shape):
            raise ValueError(f"pallas_call: the index map must give {len(shape)} indices, got {len(index)}")
        return [place if by_element else place * size for place, (size, _, by_element) in zip(index, sizes)]


@dataclasses.dataclass
class GridSpec:
    """The grid of a kernel, and the blocks of its arguments and results."""

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
