"""What one row of the benchmark suite is: its inputs, one program per library, its limit and what it should reach."""

from dataclasses import dataclass, field
from typing import Callable, Optional

LIBRARIES = ("capibara", "jax", "torch", "mlx", "numpy", "scipy", "numba", "faiss")


@dataclass
class Row:
    """A program that every library runs on the same inputs.

    Each program is made by a function of its library's module and takes the inputs as that library's arrays. `program`
    is written once on jax's interface: capibara and jax both run it, compiled as one function. Where `state` is true the
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
    wide: bool = False  # 64-bit types are on
    state: bool = False
    eager: bool = False  # the program is called as it is, without jit
    blocking: bool = True  # each call is waited for; otherwise the last call of a repetition only
    limit: Optional[tuple] = None  # (kind of limit, amount): ("f32", floating point operations), ("copy", bytes), ...
    least: dict = field(default_factory=dict)  # what it should reach: {"jax": 1.2, "limit": 0.88, "memory": 0.1}
    tolerance: float = 1e-4  # largest difference from float64, as a share of the largest value
    checked: Callable = None  # outputs -> those compared; all of them by default
    truth: Optional[Callable] = None  # (numpy) -> function in float64; by default jax runs `program` in float64
    widen: bool = True  # the truth of jax has inputs and types of 64 bits; False: of the row's own types
    unlike: tuple = ()  # peers whose results may differ: other random numbers
    exact: bool = False  # equal to the truth bit by bit
    memory: bool = False  # the temporaries of capibara and jax are counted; `least` may ask for a share of jax's at most
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
    """Something measured once in each of several fresh processes: a first call, the memory of a step, an import.

    `measure` gets the name of the library and its module (None where the import itself is measured) and returns the figure.
    """

    name: str
    what: str
    measure: Callable  # (library name) -> number
    libraries: tuple
    unit: str = "ms"
    threads: int = 2
    least: dict = field(default_factory=dict)
    disk_cache: bool = False  # capibara's cache of object code: off unless it is what is measured
    repeat: int = 3

    limit = None
