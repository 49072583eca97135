"""The model protocol: one kind of object for everything that is trained, sharded, planned, checkpointed or quantized.

    class Line:
        def init(self, key):
            return {"w": jax.random.normal(key, (3, 1)), "b": jnp.zeros(1)}

        def apply(self, params, x):
            return x @ params["w"] + params["b"]

        def loss(self, params, x, y):
            return jnp.mean((self.apply(params, x) - y) ** 2)

    trainer = training.Trainer(training.TrainerConfig(steps=100), Line())
    trainer.train(batches)  # of (x, y)
"""
import copy
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from capibara import _core, _notebook, _tracebacks
from capibara import jax as _jax

_native = _core.training
_SIZES = ("layers", "width", "heads", "key_heads", "head_size", "hidden", "vocabulary", "experts", "experts_per_token", "gated", "tied",
          "parameters")
_LAYERS = ("layer_count", "start", "run_layer", "finish")
_ACCEPTED = ("a LanguageModel, a compiled named model, a flax or equinox module, a function with a tree of params, a tree of arrays, or an "
             "object with apply or loss and with params or init")


class Model:
    """A model in the form that every part of capibara takes; created by as_model.

    `params` is a tree of arrays or None, `init(key)` makes one, `apply(params, *inputs)` and `loss(params, *batch)` compute. `layers` is
    the number of layers in sequence, 0 if unknown; `logical_axes` and `sizes` are stated or inferred (their field `inferred`).
    """

    def __init__(self, name: str, source: object, native: "_native.AnyModel | None" = None, **parts: object) -> None:
        self.name, self.source, self._native, self._parts = name, source, native, parts
        self.params = parts.get("params")
        self._structure = self._names = None

    # ---- parameters and their names ------------------------------------------------------------------------------------------------

    @property
    def init(self) -> Callable[[object], object]:
        """A function from a key to random parameters, or to the given ones."""
        if self._native is not None:
            return self._native.init
        if self._parts.get("init") is not None:
            return self._parts["init"]
        if self.params is None:
            raise TypeError(f"{self.name}: the model has neither params nor init; as_model(model, params) takes a tree of arrays")
        return lambda key: self.params

    def types(self) -> dict[str, "_jax.ShapeDtypeStruct"]:
        """The shape and dtype of each parameter, by name."""
        if self._native is not None:
            return {name: _jax.ShapeDtypeStruct(shape, dtype) for name, (shape, dtype) in self._native.types().items()}
        return dict(zip(self.names(), _jax.tree_util.tree_leaves(self._tree())))

    def _tree(self):
        if self.params is None:
            self.params_like = getattr(self, "params_like", None) or _jax.eval_shape(self._parts["init"], _jax.random.key(0))
            return self.params_like
        return self.params

    def names(self) -> list[str]:
        """The names of the leaves of params in order: their keys joined by dots."""
        if self._native is not None:
            return list(self._native.types())
        if self._names is None:
            leaves, self._structure = _jax.tree_util.tree_flatten_with_path(self._tree())
            self._names = [_jax.tree_util.keystr(path, simple=True, separator=".") or "parameters" for path, _ in leaves]
            for (_, leaf), name in zip(leaves, self._names):
                if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
                    raise TypeError(f"as_model: parameters are arrays (argument 'params'), {name!r} of the model {self.name!r} is "
                                    f"{leaf!r}; keep settings out of params")
            if len(set(self._names)) < len(self._names):
                twice = next(name for name in self._names if self._names.count(name) > 1)
                raise ValueError(f"as_model: two parameters of the model {self.name!r} have the name {twice!r} (argument 'params')")
        return self._names

    def by_name(self, params: object) -> "dict[str, _jax.Array]":
        """Converts a tree of parameters to a dict by name."""
        if self._native is not None:
            return params
        leaves, structure = _jax.tree_util.tree_flatten(params)
        names = self.names()
        if structure != self._structure:
            raise ValueError(f"{self.name}: expected params of the structure {self._structure} (argument 'params'), got {structure}")
        return dict(zip(names, leaves))

    def tree(self, named: "Mapping[str, object]") -> object:
        """Converts a dict by name to a tree of parameters."""
        if self._native is not None:
            return named
        names = self.names()
        absent = [name for name in names if name not in named]
        if absent:
            raise ValueError(f"{self.name}: expected the parameters {', '.join(names)} (argument 'named'), got {', '.join(named)}")
        return _jax.tree_util.tree_unflatten(self._structure, [named[name] for name in names])

    def with_params(self, params: object) -> "Model":
        """The same model with other parameters: a tree like the given one, or a dict by name if the model has none."""
        other = copy.copy(self)
        other.params = params
        if self._native is None:
            other._parts = {**self._parts, "params": params}
            other._names = other._structure = None
        return other

    # ---- what it computes ----------------------------------------------------------------------------------------------------------

    @property
    def has_loss(self) -> bool:
        """True if the model can be trained."""
        return self._native.has_loss if self._native is not None else self._parts.get("loss") is not None

    @property
    def has_apply(self) -> bool:
        """True if the model can be applied."""
        return self._native.has_apply if self._native is not None else self._parts.get("apply") is not None

    def apply(self, params: object, *inputs: object) -> "_jax.Array":
        """The output of the model for its inputs."""
        return self._call("apply", params, inputs)

    def loss(self, params: object, *batch: object) -> "_jax.Array":
        """The scalar that training minimizes."""
        return self._call("loss", params, batch)

    __call__ = apply

    def _call(self, what, params, batch):
        if self._native is not None:
            return getattr(self._native, what)(params, list(batch))
        function = self._parts.get(what)
        if function is None:
            raise TypeError(f"{self.name}: the model has no {what}; as_model(model, {what}=...) takes a function of params and a batch")
        return function(params, *batch)

    # ---- queries by other parts of capibara --------------------------------------------------------------------------------------------

    @property
    def layers(self) -> int:
        """The number of layers that gradient checkpointing and pipeline stages may split the model into; 0: unknown."""
        if self._native is not None:
            return self._native.layer_count
        made = self._parts.get("layers")
        return made["count"] if made else 0

    def logical_axes(self) -> dict[str, object]:
        """{'of': names of the dimensions of each parameter, 'inferred': bool, 'assumptions': texts}."""
        if self._native is not None:
            return self._native.logical_axes()
        stated = self._parts.get("logical_axes")
        if stated is not None:
            return {"of": dict(stated), "inferred": False, "assumptions": []}
        return _native.infer_logical_axes(self.types())

    def sizes(self) -> dict[str, object]:
        """The sizes that plans use, stated or inferred, as 'inferred' and 'assumptions' show."""
        if self._native is not None:
            return self._native.sizes()
        stated = self._parts.get("sizes")
        if stated is not None:
            return {**dict.fromkeys(_SIZES, 0), "gated": False, "tied": False,
                    "parameters": sum(int(np.prod(leaf.shape)) for leaf in self.types().values()), **stated, "inferred": False,
                    "assumptions": []}
        return _native.infer_sizes(self.types())

    def native(self, batches: "Batches | None" = None) -> "_native.AnyModel":
        """The core's model: it calls Python only while a program is traced."""
        if self._native is not None:
            return self._native
        batches = batches or Batches()
        parts = {"name": self.name, "types": self.types()}
        if self.params is not None:
            parts["parameters"] = self.by_name(self.params)
        if self._parts.get("init") is not None:
            parts["init"] = lambda key: self.by_name(self._parts["init"](key))
        for what in ("apply", "loss", "evaluate"):
            function = self._parts.get(what)
            if function is not None:
                parts[what] = lambda named, arrays, function=function: function(self.tree(named), *batches.arguments(arrays))
        if self._parts.get("layers"):
            parts["layers"] = self._native_layers(self._parts["layers"], batches)
        if self._parts.get("logical_axes") is not None:
            parts["logical_axes"] = {name: [axis or "" for axis in axes] for name, axes in self._parts["logical_axes"].items()}
        if self._parts.get("sizes") is not None:
            parts["sizes"] = self._parts["sizes"]
        return _native.AnyModel.of_parts(parts)

    def _native_layers(self, layers, batches):
        carried = Batches()  # the structure of the value carried from layer to layer

        def start(named, arrays):
            return carried.flat(layers["start"](self.tree(named), *batches.arguments(arrays)), "the carry of a layer")

        def run(named, layer, carry):
            return carried.flat(layers["run"](self.tree(named), layer, carried.tree(carry)), "the carry of a layer")

        def finish(named, carry, arrays):
            return layers["finish"](self.tree(named), carried.tree(carry), *batches.arguments(arrays))
        made = {"count": layers["count"], "prefixes": list(layers["prefixes"]), "start": start, "run": run, "finish": finish}
        if layers["output"] is not None:
            made["output"] = lambda named, carry: layers["output"](self.tree(named), carried.tree(carry))
        return made

    def __repr__(self) -> str:
        return f"Model({self.name})"

    def _repr_html_(self) -> "str | None":
        """The parameters as a table; None, which means the text, where the model has none yet."""
        if self._native is None and self.params is None:
            return None
        return _notebook.parameters(self)


# Models are pytree nodes with the parameters as leaves, so that checkpointers, jit and device_put accept them.
_jax.tree_util.register_pytree_node(Model, lambda model: ((model.params,), model), lambda model, params: model.with_params(params[0]))


class Batches:
    """Converts trees of arrays of one structure to lists of arrays and back."""

    def __init__(self) -> None:
        self.structure = None

    def flat(self, tree: object, what: str = "a batch") -> list[object]:
        """The arrays of a tree; raises ValueError if its structure differs from the first tree's."""
        leaves, structure = _jax.tree_util.tree_flatten(tree)
        if self.structure is None:
            self.structure = structure
        if structure != self.structure:
            raise ValueError(f"{what} has the structure {structure}, the first one had {self.structure}")
        return leaves

    def tree(self, arrays: Sequence[object]) -> object:
        """The tree of these arrays."""
        if self.structure is None:
            return tuple(arrays)
        return _jax.tree_util.tree_unflatten(self.structure, list(arrays))

    def arguments(self, arrays: Sequence[object]) -> tuple[object, ...]:
        """The arguments of a loss after its parameters: the elements of a tuple or list, otherwise the batch itself."""
        tree = self.tree(arrays)
        return tuple(tree) if isinstance(tree, (tuple, list)) else (tree,)


def as_model(model: object, params: object = None, *, loss: Callable[..., object] | None = None, apply: Callable[..., object] | None = None,
             logical_axes: Mapping[str, Sequence[str]] | None = None, sizes: Mapping[str, object] | None = None,
             operation: str = "as_model", **named: object) -> Model:
    """Converts any supported model to a Model; a TypeError for others names what was expected and what was passed.

    model: a LanguageModel, a compiled named model (`batch=`, `output=` and `loss=` name its keys), a flax.linen module with `params`, a
    flax.nnx or equinox module, a loss function with a tree of `params`, a tree of arrays, or an object with apply or loss and with params
    or init. For flax.linen, `loss(params, *batch)`; for nnx and equinox, `loss(module, *batch)`. Errors begin with `operation`.

    An object may have `layer_count`, `start(params, *batch)`, `run_layer(params, layer, carry)` and `finish(params, carry, *batch)`, and
    then `layer_prefix(layer)` and `output(params, carry)`; also `logical_axes`, `sizes` and `evaluate(params, *batch)`.
    """
    given = {"loss": loss, "apply": apply, "logical_axes": logical_axes, "sizes": sizes}
    given = {name: value for name, value in given.items() if value is not None}
    _require_parts(operation, given, isinstance(model, _compiled_types()))
    made = _made(model, params, given, operation, named)
    if made is None:
        raise TypeError(f"{operation}: expected {_ACCEPTED} (argument 'model'), got {_shown(model)}; capibara.as_model says what an object "
                        "needs")
    return made


def _require_parts(operation, given, compiled):
    """Raises TypeError for a part that is not part of a model; the loss of a compiled named model may be the name of an output."""
    for name, value in given.items():
        if name in ("loss", "apply"):
            if not callable(value) and not (compiled and isinstance(value, str)):
                raise TypeError(f"{operation}: expected a function of params and a batch (argument {name!r}), got {value!r}")
        elif not isinstance(value, Mapping):
            held = "the names of the dimensions of each parameter" if name == "logical_axes" else "sizes by name"
            raise TypeError(f"{operation}: expected a dict of {held} (argument {name!r}), got {value!r}")
        elif name == "sizes" and not set(value) <= set(_SIZES):
            raise ValueError(f"{operation}: expected sizes of {', '.join(_SIZES)} (argument 'sizes'), got "
                             f"{next(key for key in value if key not in _SIZES)!r}")


def _shown(model):
    text = repr(model)
    kind = f"{type(model).__module__}.{type(model).__qualname__}".removeprefix("builtins.")
    return f"{kind} {text if len(text) < 60 else text[:57] + '...'}"


def _made(model, params, given, operation, named):
    if not isinstance(model, _compiled_types()) and named:
        raise TypeError(f"{operation}: unexpected argument {next(iter(named))!r}; it is for compiled named models, got {_shown(model)}")
    if isinstance(model, Model):
        if params is None and not given:
            return model
        if model._native is not None:
            return model if not given and params is None else _native_with(model, params, given, operation)
        return Model(model.name, model.source, **{**model._parts, **given, **({} if params is None else {"params": params})})
    if isinstance(model, _native.LanguageModel):
        if given:
            raise TypeError(f"{operation}: a LanguageModel has its own {next(iter(given))} (argument {next(iter(given))!r})")
        made = Model("LanguageModel", model, _native.AnyModel.of_language_model(model))
        return made if params is None else made.with_params(params)
    if isinstance(model, _compiled_types()):
        return _of_compiled(model, params, given, named)
    kind = _library_of(model)
    if kind is not None:
        return {"linen": _of_linen, "nnx": _of_nnx, "equinox": _of_equinox}[kind](model, params, given, operation)
    if isinstance(model, Mapping) and {"apply", "loss"} & set(model) and callable(model.get("loss", model.get("apply"))):
        return _of_dict(model, params, given, operation)
    if isinstance(model, type):
        raise TypeError(f"{operation}: expected a model (argument 'model'), got the class {model.__name__}; make one of it first")
    if not isinstance(model, Mapping) and (callable(getattr(model, "apply", None)) or callable(getattr(model, "loss", None))):
        return _of_object(model, params, given, operation)
    if params is not None and callable(model):
        return Model(getattr(model, "__name__", "function"), model, **{"params": params, "loss": model, **given})
    if params is None and _is_tree(model):
        return Model("tree of arrays", model, params=model, **given)
    return None


def _native_with(model, params, given, operation):
    if given:
        raise TypeError(f"{operation}: {model.name} has its own {next(iter(given))} (argument {next(iter(given))!r})")
    return model.with_params(params)


def _is_tree(model):
    if callable(model) and not isinstance(model, (dict, list, tuple)):
        return False
    try:
        leaves = _jax.tree_util.tree_leaves(model)
    except TypeError:
        return False
    return bool(leaves) and all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves)


def _compiled_types():
    found = sys.modules.get("capibara.mithril._compile")
    return (_core.models.CompiledModel, *((found.Compiled,) if found else ()))


def _of_compiled(model, params, given, named):
    compiled = getattr(model, "_compiled", model)
    unknown = sorted(set(named) - {"batch", "output"})
    if unknown:
        raise TypeError(f"as_model: unknown argument {unknown[0]!r} of a compiled named model; there are batch, output and loss")
    loss = given.get("loss", "final_cost")
    loss_of = (lambda outputs, batch: loss(outputs, *batch)) if callable(loss) else None
    made = _native.AnyModel.of_compiled(compiled, list(named.get("batch", ())), named.get("output", ""),
                                        "final_cost" if callable(loss) else loss, loss_of, dict(params or {}))
    return Model("named model", model, made, params=params)


def _library_of(model):
    for base in type(model).__mro__:
        if base.__name__ == "Module":
            for kind, start in (("linen", "flax.linen"), ("nnx", "flax.nnx"), ("equinox", "equinox")):
                if base.__module__.startswith(start):
                    return kind
    return None


def _require_our_jax(operation, library):
    if sys.modules.get("jax") is not _jax and getattr(sys.modules.get("jax"), "__name__", "") != "capibara.jax":
        raise TypeError(f"{operation}: this {library} module computes with jax (argument 'model'); run the program by python -m capibara, "
                        "or call capibara.jax.install() before it is imported")


def _of_linen(module, params, given, operation):
    _require_our_jax(operation, "flax")
    if params is None:
        raise TypeError(f"{operation}: a flax module needs its parameters (argument 'params'): as_model(module, module.init(key, inputs))")
    rest = {}
    if isinstance(params, Mapping) and "params" in params:  # the result of init: other collections stay unchanged
        rest = {name: value for name, value in params.items() if name != "params"}
        params = params["params"]
    parts = {"params": params, "apply": lambda p, *inputs: module.apply({"params": p, **rest}, *inputs)}
    return Model(type(module).__name__, module, **{**parts, **given})


def _of_nnx(module, params, given, operation):
    _require_our_jax(operation, "flax")
    nnx = sys.modules["flax.nnx"]
    graph, own, rest = nnx.split(module, nnx.Param, ...)
    whole = lambda p: nnx.merge(graph, p, rest)  # noqa: E731
    return _of_module(type(module).__name__, module, own if params is None else params, given, whole)


def _of_equinox(module, params, given, operation):
    _require_our_jax(operation, "equinox")
    equinox = sys.modules["equinox"]
    own, rest = equinox.partition(module, equinox.is_inexact_array)
    return _of_module(type(module).__name__, module, own if params is None else params, given, lambda p: equinox.combine(p, rest))


def _of_module(name, module, params, given, whole):
    parts = {"params": params, "apply": lambda p, *inputs: whole(p)(*inputs), "whole": whole}
    for what in ("apply", "loss"):
        if what in given:
            parts[what] = lambda p, *batch, function=given[what]: function(whole(p), *batch)
    return Model(name, module, **{**given, **parts})


def _of_dict(model, params, given, operation):
    known = {"params", "init", "apply", "loss", "evaluate", "logical_axes", "sizes"}
    unknown = sorted(set(model) - known)
    if unknown:
        raise TypeError(f"{operation}: unknown key {unknown[0]!r} of the model (argument 'model'); there are {', '.join(sorted(known))}")
    parts = {**model, **given, **({} if params is None else {"params": params})}
    _require_parameters("model", parts, operation)
    return Model("model", model, **parts)


def _of_object(model, params, given, operation):
    own = ((name, getattr(model, name, None)) for name in ("params", "init", "apply", "loss", "evaluate"))
    parts = {name: part for name, part in own if part is not None}
    for name in ("init", "apply", "loss", "evaluate"):
        if name in parts and not callable(parts[name]):
            raise TypeError(f"{operation}: {type(model).__name__}.{name} must be a function of params and a batch (argument 'model'), got "
                            f"{parts[name]!r}")
    for name in ("logical_axes", "sizes"):
        stated = getattr(model, name, None)
        if stated is not None:
            parts[name] = stated() if callable(stated) else stated
    parts.update(given)
    if params is not None:
        parts["params"] = params
    name = type(model).__name__
    _require_parameters(name, parts, operation)
    has = [what for what in _LAYERS if getattr(model, what, None) is not None]
    if has:
        missing = [what for what in _LAYERS if what not in has]
        if missing:
            raise TypeError(f"{operation}: {name} has {has[0]} and no {missing[0]} (argument 'model'); layers need {', '.join(_LAYERS)}")
        count = model.layer_count() if callable(model.layer_count) else model.layer_count
        prefix = getattr(model, "layer_prefix", None)
        parts["layers"] = {"count": count, "start": model.start, "run": model.run_layer, "finish": model.finish,
                           "output": getattr(model, "output", None), "prefixes": [prefix(i) for i in range(count)] if prefix else []}
    return Model(name, model, **parts)


def _require_parameters(name, parts, operation):
    if parts.get("params") is None and parts.get("init") is None:
        raise TypeError(f"{operation}: {name} has neither params nor init(key) (argument 'model'); as_model(model, params) takes a tree of "
                        "arrays")


__all__ = ["Model", "as_model"]
_tracebacks.guard(__name__)
