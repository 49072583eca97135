"""compile: compiles a named model for a backend."""
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from capibara import _core
from capibara._core.models import CompiledModel, TrainModel

if TYPE_CHECKING:
    from capibara.jax import Array
    from capibara.mithril._backend import JaxBackend
    from capibara.mithril.models import Model


def compile(model: "Model | TrainModel", backend: "JaxBackend", *, shapes: Mapping[str, Sequence[object]] | None = None, jit: bool = True,
            constant_keys: Mapping[str, object] | None = None, data_keys: Iterable[str] | None = None,
            discard_keys: Iterable[str] | None = None, trainable_keys: Iterable[str] | None = None, inference: bool = False,
            verbose: bool = False, file_path: str | Path | None = None, safe_names: bool = True, safe_shapes: bool = True) -> "Compiled":
    """Compiles a model for a backend; `shapes` and `constant_keys` are dictionaries, the other keys sets of names.

    `file_path` is a file for the operations as text, `verbose` prints the summary. `inference` omits gradients.
    """
    if isinstance(model, TrainModel):
        model = model.model()
    options = {
        "shapes": dict(shapes or {}), "constant_keys": dict(constant_keys or {}), "data_keys": data_keys or (),
        "discard_keys": discard_keys or (), "trainable_keys": trainable_keys or (), "inference": inference,
        "safe_names": safe_names, "safe_shapes": safe_shapes, "file_path": str(file_path or ""),
    }
    with backend._scope():
        compiled = _core.models.compile_model(model, backend.dtype, bool(jit or backend.jit), backend._precision_name,
                                              list(backend.device_mesh or ()), options)
    compiled = Compiled(compiled, backend)
    if verbose:
        compiled.summary()
    return compiled


class Compiled:
    """A compiled model, to evaluate, differentiate and inspect."""

    def __init__(self, compiled: CompiledModel, backend: "JaxBackend") -> None:
        self._compiled = compiled
        self.backend = backend

    @overload
    def evaluate(self, params: "Mapping[str, object] | None" = None, data: "Mapping[str, object] | None" = None,
                 output_gradients: Literal[False] = False) -> "dict[str, Array]": ...

    @overload
    def evaluate(self, params: "Mapping[str, object] | None" = None, data: "Mapping[str, object] | None" = None, *,
                 output_gradients: "Literal[True] | Mapping[str, object]") -> "tuple[dict[str, Array], dict[str, Array]]": ...

    def evaluate(self, params: "Mapping[str, object] | None" = None, data: "Mapping[str, object] | None" = None,
                 output_gradients: "bool | Mapping[str, object]" = False) -> "dict[str, Array] | tuple[dict[str, Array], dict[str, Array]]":
        """The outputs by name; with `output_gradients` (True, or a dictionary by output) also the gradients of the parameters."""
        with self.backend._scope():
            return self._compiled._evaluate(params or {}, data or {}, output_gradients)

    def randomize_params(self, seed: int | None = None) -> "dict[str, Array]":
        """Normal numbers for every parameter of known shape; on a backend with a mesh, split as in propose_shardings."""
        with self.backend._scope():
            params = self._compiled._randomize_params(self.backend._next_seed() if seed is None else seed)
        if self.backend.device_mesh:
            proposed = self.propose_shardings()
            params = {key: self.backend._place(value, self._split(proposed.get(key, ()))) for key, value in params.items()}
        return params

    def _split(self, axes):
        """For each axis of the mesh the dimension that it splits, or None."""
        return tuple(axes.index(axis) if axis in axes else None for axis in range(len(self.backend.device_mesh)))

    def propose_shardings(self) -> dict[str, tuple[int | None, ...]]:
        """For each key the axis of the mesh that splits each dimension, or None; batches by the first axis, weights by the last."""
        return {key: tuple(None if axis < 0 else axis for axis in axes) for key, axes in self._compiled.propose_shardings().items()}

    def summary(self) -> str:
        """Prints and returns the table of operations, shapes and numbers of parameters."""
        text = self._compiled._summary()
        print(text, end="")
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __repr__(self) -> str:
        return f"Compiled({', '.join(self.input_keys)} -> {', '.join(self.output_keys)})"


def compiled_text(compiled: "Compiled") -> str:
    """The operations of a compiled model, one line each."""
    return compiled.text()


__all__ = ["Compiled", "CompiledModel", "compile", "compiled_text"]
