"""Models that recompute activations in the backward pass instead of keeping them."""
from capibara import _core
from capibara import jax as _jax
from capibara.model import Model, as_model

_POLICIES = {"everything": "everything_saveable", "nothing_saveable": "nothing_saveable", "minimal": "dots_with_no_batch_dims_saveable",
             "offload": "offload_dot_with_no_batch_dims"}
_NAME = "enable_gradient_checkpointing"


def enable_gradient_checkpointing(model: object, checkpoint_every_n_layers: int = 1,
                                  checkpoint_policy: str = "nothing_saveable") -> object:
    """The model with groups of layers whose values are recomputed in the backward pass.

    A model is a LanguageModel; an object with layer_count, start, run_layer and finish as described at as_model, for which a Model is
    returned; or a list of layers applied in order, for which a function is. Others are refused: as one group they would save nothing.
    Policies: 'everything' keeps all values, 'nothing_saveable' none, 'minimal' those of matmuls without batch dimensions;
    'offload' keeps these in the host's memory, which on CPU devices is the same.
    """
    if not isinstance(checkpoint_policy, str) or checkpoint_policy not in _POLICIES:
        raise ValueError(f"{_NAME}: checkpoint_policy is one of {', '.join(_POLICIES)}, got {checkpoint_policy!r}")
    if isinstance(checkpoint_every_n_layers, bool) or not isinstance(checkpoint_every_n_layers, int):
        raise TypeError(f"{_NAME}: checkpoint_every_n_layers is a number of layers, got {checkpoint_every_n_layers!r}")
    if checkpoint_every_n_layers < 1:
        raise ValueError(f"{_NAME}: checkpoint_every_n_layers is at least 1, got {checkpoint_every_n_layers}")
    if hasattr(model, "with_checkpointing"):
        return model.with_checkpointing(checkpoint_every_n_layers, checkpoint_policy)
    if isinstance(model, (list, tuple)) and model and all(callable(layer) for layer in model):
        policy = _policy(checkpoint_policy)
        groups = [model[i:i + checkpoint_every_n_layers] for i in range(0, len(model), checkpoint_every_n_layers)]
        return _chain([_jax.checkpoint(_chain(group), policy=policy) for group in groups])
    if callable(model) and not isinstance(model, Model) and not hasattr(model, "apply") and not hasattr(model, "loss"):
        raise TypeError(f"{_NAME}: expected a model with layers (argument 'model'), got the function "
                        f"{getattr(model, '__name__', model)!s}; as one group it would save nothing. Give a list of layers, or an object "
                        "with layer_count, start, run_layer and finish")
    made = as_model(model, operation=_NAME)
    if isinstance(made.source, _core.training.LanguageModel):
        return Model(made.name, made.source.with_checkpointing(checkpoint_every_n_layers, checkpoint_policy),
                     made._native.with_checkpointing(checkpoint_every_n_layers, checkpoint_policy), params=made.params)
    layers = made._parts.get("layers")
    if not layers:
        raise TypeError(f"{_NAME}: {made.name} has no layers (argument 'model'), and as one group it would save nothing; an object needs "
                        "layer_count, start, run_layer and finish")
    policy = _policy(checkpoint_policy)

    def run(params, carry):
        for first in range(0, layers["count"], checkpoint_every_n_layers):
            group = range(first, min(first + checkpoint_every_n_layers, layers["count"]))
            # Parameters are captured, so a group's operands are only those that its layers read.
            carry = _jax.checkpoint(lambda value, group=group: _run_group(layers["run"], params, value, group), policy=policy)(carry)
        return carry

    parts = {**made._parts, "loss": lambda params, *batch: layers["finish"](params, run(params, layers["start"](params, *batch)), *batch)}
    if layers["output"] is not None:
        parts["apply"] = lambda params, *inputs: layers["output"](params, run(params, layers["start"](params, *inputs)))
    return Model(made.name, made.source, **parts)


def _policy(name):
    policy = getattr(_jax.checkpoint_policies, _POLICIES[name])
    return policy("device", "pinned_host") if name == "offload" else policy


def _run_group(run, params, carry, group):
    for layer in group:
        carry = run(params, layer, carry)
    return carry


def _chain(layers):
    def apply(x):
        for layer in layers:
            x = layer(x)
        return x
    return apply
