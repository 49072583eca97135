"""One row of the benchmark suite: its inputs, one program per library, its limit and its targets."""

from dataclasses import dataclass, field
from typing import Callable, Optional

LIBRARIES = ("capibara", "jax", "torch", "mlx", "numpy", "scipy", "numba", "faiss")


@dataclass
class Row:
    """A program that every library runs on the same inputs.

    Each program is made by a function of its library's module and takes the inputs as that library's arrays. `program`
    is written once on jax's interface: capibara and jax both run it, compiled as one function. If `state` is true the
    first argument is the state of a training loop: the program returns (state, rest), and the next call starts from it.
    """

    name: str
    what: str  # one line: shapes and element types
    inputs: Callable  # (numpy random Generator) -> tuple of trees of numpy arrays
    program: Callable  # (jax) -> function of the inputs
    torch: Optional[Callable] = None
    mlx: Optional[Callable] = None
    numpy: Optional[Callable] = None
    scipy: Optional[Callable] = None
    numba: Optional[Callable] = None
    faiss: Optional[Callable] = None
    threads: int = 2
    wide: bool = False  # 64-bit types are enabled
    state: bool = False
    eager: bool = False  # the program is called without jit
    blocking: bool = True  # every call is awaited; otherwise only the last one of a repetition
    limit: Optional[tuple] = None  # (kind of limit, amount): ("f32", floating point operations), ("copy", bytes), ...
    least: dict = field(default_factory=dict)  # targets: {"jax": 1.2, "limit": 0.88, "memory": 0.1}
    tolerance: float = 1e-4  # largest difference from float64, as a share of the largest value
    checked: Callable = None  # outputs -> the outputs to compare; all of them by default
    truth: Optional[Callable] = None  # (numpy) -> function in float64; by default jax runs `program` in float64
    widen: bool = True  # jax computes the truth with 64-bit inputs and types; False: with the row's own types
    unlike: tuple = ()  # peers whose results may differ: other random numbers
    exact: bool = False  # must equal the truth bit for bit
    memory: bool = False  # temporaries of capibara and jax are counted; `least` may limit the share of jax's
    compared: bool = True  # False where there is nothing to compare: dispatch
    torch_compile: bool = False  # also run through torch.compile, as the peer "torch.compile"
    mlx_compile: bool = False  # and through mlx.core.compile, as the peer "mlx.compile"

    def maker(self, library):
        if library in ("capibara", "jax", "jax.plugin"):
            return self.program
        if library == "torch.compile":
            return self.torch if self.torch_compile else None
        if library == "mlx.compile":
            return self.mlx if self.mlx_compile else None
        return getattr(self, library)


@dataclass
class ProcessRow:
    """A figure measured once in each of several fresh processes: a first call, the memory of a step, an import.

    `measure` gets the name of the library and its module (None if the import itself is measured) and returns the figure.
    """

    name: str
    what: str
    measure: Callable  # (library name) -> number
    libraries: tuple
    unit: str = "ms"
    threads: int = 2
    least: dict = field(default_factory=dict)
    disk_cache: bool = False  # capibara's object-code cache: off unless it is being measured
    repeat: int = 3

    limit = None
