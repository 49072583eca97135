"""Plans from Python: memory, step times, batch sizes and bottlenecks of training on a TPU slice, all modelled by the core."""
from capibara import _core, _notebook, _tracebacks
from capibara.core.tpu._figures import PlannedBatch, with_figures
from capibara.core.tpu._models import planned
from capibara.gradient_checkpointing import enable_gradient_checkpointing
from capibara.model import as_model

DEFAULTS = {"flash": True}  # set by configure_tpu: attention by a fused kernel, or with its scores in memory


def _request(operation, model, tpu, sequence_length, batch_size, **more):
    return {"model": planned(model, operation), "tpu": tpu, "sequence_length": sequence_length, "batch_size": batch_size,
            **DEFAULTS, **more}


def estimate_step(model, tpu=None, sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Modelled time of one training step: seconds by kind, tokens per second, fraction of the peak.

    The default `tpu` is v4-8, the default `batch_size` one sequence per device; `assumed` lists these and what was inferred of the model.
    """
    request = _request("estimate_step", model, tpu, sequence_length, batch_size, mesh=mesh, remat=remat)
    return _notebook.Report(_core.tpu.estimate_step(request))


def analyze_bottlenecks(model, tpu=None, sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Shares of compute, memory and communication in a modelled step, and changes with their modelled gains.

    The defaults are those of estimate_step.
    """
    request = _request("analyze_bottlenecks", model, tpu, sequence_length, batch_size, mesh=mesh, remat=remat)
    return with_figures(_core.tpu.analyze_bottlenecks(request), "compute_bound", "memory_bound", "communication_bound")


class MemoryOptimizer:
    """Estimates the memory of training, and makes models recompute activations to reduce it.

    `strategy` is none, normal (keep matmuls) or aggressive (keep layer inputs). `gradient_checkpointing` recomputes whole layers whatever
    the strategy, `enable_rematerialization=False` nothing; `activation_checkpointing_layers` layers share one kept input.
    """

    def __init__(self, strategy="normal", enable_rematerialization=True, gradient_checkpointing=False, activation_checkpointing_layers=1):
        self._native = _core.tpu.MemoryOptimizer(strategy, bool(enable_rematerialization), bool(gradient_checkpointing),
                                                 activation_checkpointing_layers)
        self.strategy, self.layers, self.remat = strategy, activation_checkpointing_layers, self._native.remat

    def estimate_memory(self, model, batch_size, sequence_length, tpu=None, mesh=None):
        """Modelled HBM of one device in GB and GiB, by buffer; `assumed` lists what was inferred of the model or assumed."""
        request = _request("MemoryOptimizer.estimate_memory", model, tpu, sequence_length, batch_size, mesh=mesh)
        return with_figures(self._native.estimate_memory(request), "total_gb")

    def optimize(self, model):
        """The model with activations recomputed according to the strategy, in groups of `activation_checkpointing_layers` layers.

        Strategy none recomputes nothing and returns the model unchanged. Takes the same models as enable_gradient_checkpointing.
        """
        if self.remat == "none":
            if not (isinstance(model, (list, tuple)) and model and all(callable(layer) for layer in model)):
                as_model(model, operation="MemoryOptimizer.optimize")
            return model
        return enable_gradient_checkpointing(model, self.layers, "minimal" if self.remat == "minimal" else "nothing_saveable")


def find_optimal_batch_size(model, sequence_length, target_utilization=0.9, available_memory_gb=None, tpu=None, tpu_version="v6e"):
    """The smallest power of two as global batch size that reaches this share of the best modelled tokens per second and fits.

    The slice is `tpu`, or the one of `tpu_version` whose chips have `available_memory_gb` in total, or four of its chips. The result is an
    int whose `tpu` and `assumed` state what it was modelled for; it prints as modelled.
    """
    return PlannedBatch(*_core.tpu.find_optimal_batch_size(
        planned(model, "find_optimal_batch_size"), sequence_length, target_utilization, available_memory_gb, tpu, tpu_version, **DEFAULTS))


def diagnose_performance(model, dataloader=None, target_tflops=None, tpu=None, sequence_length=2048, batch_size=None):
    """Why training misses its target: modelled steps, the measured time of `dataloader`'s first batches, and remedies.

    The default `tpu` is v6e-64; `assumed` lists this and what was inferred of the model.
    """
    request = _request("diagnose_performance", model, tpu, sequence_length, batch_size)
    if dataloader is not None and not hasattr(dataloader, "__iter__"):
        raise TypeError(f"diagnose_performance: dataloader is an iterable of batches, got {dataloader!r}")
    batches, end = iter(() if dataloader is None else dataloader), object()
    load = None if dataloader is None else lambda: next(batches, end) is not end
    return with_figures(_core.tpu.diagnose_performance(request, target_tflops, load), "tflops")


_tracebacks.guard(__name__)
