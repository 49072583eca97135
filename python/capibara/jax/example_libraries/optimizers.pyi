"""Types of jax.example_libraries.optimizers: first-order methods as three functions: init, update and get_params."""
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from capibara._core import Array, PyTreeDef
from capibara._stub_types import PyTree
from capibara.jax.typing import ArrayLike

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Schedule: TypeAlias = Callable[[Any], ArrayLike]

class Optimizer(NamedTuple):
    """init_fn(params) -> state; update_fn(step, gradients, state) -> state; params_fn(state) -> params."""

    init_fn: Callable[[PyTree], OptimizerState]
    update_fn: Callable[[Any, PyTree, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], PyTree]

class OptimizerState:
    """The state of all parameters in one flat list: those of the first, of the second, and so on."""

    packed_state: Any
    tree_def: PyTreeDef
    subtree_defs: tuple[PyTreeDef, ...]
    def __init__(self, packed_state: Any, tree_def: PyTreeDef, subtree_defs: tuple[PyTreeDef, ...]) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

class JoinPoint:
    """Marks where the tree of parameters ends and the state of one of them begins."""

    subtree: PyTree
    def __init__(self, subtree: PyTree) -> None: ...
    def __iter__(self) -> Iterator[PyTree]: ...

def optimizer(opt_maker: Callable[_P, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]]) -> Callable[_P, Optimizer]:
    """Lifts a method for one array, (init, update, get_params), to pytrees of arrays."""
def sgd(step_size: float | _Schedule) -> Optimizer: ...
def momentum(step_size: float | _Schedule, mass: float) -> Optimizer: ...
def nesterov(step_size: float | _Schedule, mass: float) -> Optimizer: ...
def adagrad(step_size: float | _Schedule, momentum: float = 0.9) -> Optimizer: ...
def rmsprop(step_size: float | _Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Optimizer: ...
def rmsprop_momentum(step_size: float | _Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Optimizer: ...
def adam(step_size: float | _Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer: ...
def adamax(step_size: float | _Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer: ...
def sm3(step_size: float | _Schedule, momentum: float = 0.9) -> Optimizer: ...
def constant(step_size: ArrayLike) -> _Schedule: ...
def exponential_decay(step_size: ArrayLike, decay_steps: float, decay_rate: float) -> _Schedule: ...
def inverse_time_decay(step_size: ArrayLike, decay_steps: float, decay_rate: float, staircase: bool = False) -> _Schedule: ...
def polynomial_decay(step_size: ArrayLike, decay_steps: float, final_step_size: float, power: float = 1.0) -> _Schedule: ...
def piecewise_constant(boundaries: Sequence[float] | ArrayLike, values: Sequence[float] | ArrayLike) -> _Schedule: ...
def make_schedule(scalar_or_schedule: ArrayLike | _Schedule) -> _Schedule:
    """A function of the step: the given one, or a constant."""
def l2_norm(tree: PyTree) -> Array:
    """The Euclidean norm over all leaves."""
def clip_grads(grad_tree: _T, max_norm: ArrayLike) -> _T:
    """Gradients scaled down to a maximum norm."""
def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """A pytree like the parameters, with a JoinPoint holding the state of each: for saving."""
def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """The inverse of unpack_optimizer_state."""
