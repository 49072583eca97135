"""Plans from Python: memory, step times, batch sizes and bottlenecks of training on a TPU slice, all modelled by the core."""
from capibara import _core, _tracebacks
from capibara.core.tpu._figures import PlannedBatch, with_figures
from capibara.core.tpu._models import planned
from capibara.gradient_checkpointing import enable_gradient_checkpointing
from capibara.model import as_model

DEFAULTS = {"flash": True}  # configure_tpu sets it: attention by a kernel, or with its scores in memory


def _request(operation, model, tpu, sequence_length, batch_size, **more):
    return {"model": planned(model, operation), "tpu": tpu, "sequence_length": sequence_length, "batch_size": batch_size,
            **DEFAULTS, **more}


def estimate_step(model, tpu=None, sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Modelled time of one training step: seconds by kind, tokens per second, share of the peak.

    Without `tpu` of v4-8, without `batch_size` with one sequence on each device; `assumed` says so, and what was inferred of the model.
    """
    return _core.tpu.estimate_step(_request("estimate_step", model, tpu, sequence_length, batch_size, mesh=mesh, remat=remat))


def analyze_bottlenecks(model, tpu=None, sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Shares of compute, memory and communication in a modelled step, and changes with the gain that the model predicts.

    What is not given is assumed as in estimate_step.
    """
    request = _request("analyze_bottlenecks", model, tpu, sequence_length, batch_size, mesh=mesh, remat=remat)
    return with_figures(_core.tpu.analyze_bottlenecks(request), "compute_bound", "memory_bound", "communication_bound")


class MemoryOptimizer:
    """How much memory training takes, and models that recompute activations to take less.

    `strategy` is none, normal (keep matmuls) or aggressive (keep layer inputs); `gradient_checkpointing` recomputes whole layers whatever
    the strategy, `enable_rematerialization=False` nothing, and `activation_checkpointing_layers` layers share one kept input.
    """

    def __init__(self, strategy="normal", enable_rematerialization=True, gradient_checkpointing=False, activation_checkpointing_layers=1):
        self._native = _core.tpu.MemoryOptimizer(strategy, bool(enable_rematerialization), bool(gradient_checkpointing),
                                                 activation_checkpointing_layers)
        self.strategy, self.layers, self.remat = strategy, activation_checkpointing_layers, self._native.remat

    def estimate_memory(self, model, batch_size, sequence_length, tpu=None, mesh=None):
        """Modelled HBM of one device in GB and GiB, by buffer; `assumed` has what was inferred of the model and assumed."""
        request = _request("MemoryOptimizer.estimate_memory", model, tpu, sequence_length, batch_size, mesh=mesh)
        return with_figures(self._native.estimate_memory(request), "total_gb")

    def optimize(self, model):
        """The model with its activations recomputed as the strategy says, in groups of `activation_checkpointing_layers` layers.

        Strategy none recomputes nothing: the model comes back as it is. Models are those of enable_gradient_checkpointing.
        """
        if self.remat == "none":
            if not (isinstance(model, (list, tuple)) and model and all(callable(layer) for layer in model)):
                as_model(model, operation="MemoryOptimizer.optimize")
            return model
        return enable_gradient_checkpointing(model, self.layers, "minimal" if self.remat == "minimal" else "nothing_saveable")


def find_optimal_batch_size(model, sequence_length, target_utilization=0.9, available_memory_gb=None, tpu=None, tpu_version="v6e"):
    """The smallest global batch, by powers of two, that reaches this share of the best modelled tokens per second and fits.

    The slice is `tpu`, or the one of `tpu_version` whose chips have `available_memory_gb` together, or four of its chips. The answer is an
    int whose `tpu` and `assumed` say what it was modelled for; its text says that it is modelled.
    """
    return PlannedBatch(*_core.tpu.find_optimal_batch_size(
        planned(model, "find_optimal_batch_size"), sequence_length, target_utilization, available_memory_gb, tpu, tpu_version, **DEFAULTS))


def diagnose_performance(model, dataloader=None, target_tflops=None, tpu=None, sequence_length=2048, batch_size=None):
    """What keeps training from its target: modelled steps, the measured time of `dataloader`'s first batches, and what would help.

    Without `tpu` of v6e-64; `assumed` says so, and what was inferred of the model.
    """
    request = _request("diagnose_performance", model, tpu, sequence_length, batch_size)
    if dataloader is not None and not hasattr(dataloader, "__iter__"):
        raise TypeError(f"diagnose_performance: dataloader is an iterable of batches, got {dataloader!r}")
    batches, end = iter(() if dataloader is None else dataloader), object()
    load = None if dataloader is None else lambda: next(batches, end) is not end
    return with_figures(_core.tpu.diagnose_performance(request, target_tflops, load), "tflops")


_tracebacks.guard(__name__)
