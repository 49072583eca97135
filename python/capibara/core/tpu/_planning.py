"""Plans from Python: memory, step times, batch sizes and bottlenecks of training on a TPU slice, all modelled."""
import math
import time

from capibara import _core, _tracebacks
from capibara.core.tpu._errors import TPUError
from capibara.core.tpu._models import describe
from capibara.gradient_checkpointing import enable_gradient_checkpointing

_STRATEGIES = {"none": "none", "normal": "minimal", "aggressive": "full"}
DEFAULTS = {"flash": True}  # configure_tpu sets it: attention by a kernel, or with its scores in memory


def _request(model, tpu, sequence_length, batch_size, mesh=None, remat="full", **more):
    found = _core.tpu.slice(tpu)
    sizes = describe(model) if not isinstance(model, str) else model
    request = {"model": sizes, "tpu": tpu, "sequence": sequence_length, "remat": remat,
               "batch_per_device": batch_size / found["devices"], **DEFAULTS, **more}
    if mesh is None:  # a group of devices shares a sequence where there are fewer sequences than devices
        share = math.ceil(found["devices"] / batch_size / found["slices"])
        tensor = next((size for size in (1, 2, 4, 8, 16, 32, 64) if size >= share), 64)
        if tensor > 1:
            mesh = f"fsdp={found['devices'] // found['slices'] // tensor},tensor={tensor},dcn_data={found['slices']}"
    return request | ({"mesh": mesh} if mesh else {})


def estimate_step(model, tpu="v4-8", sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Modelled time of one training step: seconds by kind, tokens per second, share of the peak."""
    return _core.tpu.plan_step(_request(model, tpu, sequence_length, batch_size or _core.tpu.slice(tpu)["devices"], mesh, remat))


def analyze_bottlenecks(model, tpu="v4-8", sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Shares of compute, memory and communication in a modelled step, and changes with the gain that the model predicts."""
    request = _request(model, tpu, sequence_length, batch_size or _core.tpu.slice(tpu)["devices"], mesh, remat)
    step = _core.tpu.plan_step(request)
    return {"origin": "modelled", "compute_bound": step["compute_share"], "memory_bound": step["memory_share"],
            "communication_bound": step["communication_share"], "bound": step["bound"],
            "recommendations": [text for text, _ in _core.tpu.recommend(request)]}


class MemoryOptimizer:
    """How much memory training takes, and models that recompute activations to take less.

    `strategy` is none, normal (keep matmuls) or aggressive (keep layer inputs); `gradient_checkpointing` recomputes whole layers whatever
    the strategy, `enable_rematerialization=False` nothing, and `activation_checkpointing_layers` layers share one kept input.
    """

    def __init__(self, strategy="normal", enable_rematerialization=True, gradient_checkpointing=False, activation_checkpointing_layers=1):
        if strategy not in _STRATEGIES:
            raise TPUError(f"MemoryOptimizer: strategy is one of {', '.join(_STRATEGIES)}, got {strategy!r}")
        if activation_checkpointing_layers < 1:
            raise TPUError(f"MemoryOptimizer: activation_checkpointing_layers is at least 1, got {activation_checkpointing_layers}")
        self.strategy, self.layers = strategy, activation_checkpointing_layers
        self.remat = "full" if gradient_checkpointing else _STRATEGIES[strategy] if enable_rematerialization else "none"

    def estimate_memory(self, model, batch_size, sequence_length, tpu="v4-8", mesh=None):
        """Modelled HBM of one device in GB and GiB, by buffer."""
        found = _core.tpu.plan_memory(_request(model, tpu, sequence_length, batch_size, mesh, self.remat))
        if self.remat == "full" and self.layers > 1:  # one input for each group of layers, one group of layers recomputed at once
            saved = dict(found["buffers"]).get("saved activations", 0)
            found["total_gib"] -= saved * (1 - 1 / self.layers)
            found["fits"] = found["total_gib"] <= found["limit_gib"]
        return found | {"total_gb": found["total_gib"] * 2**30 / 1e9, "remat": self.remat}

    def optimize(self, model):
        """The model with its activations recomputed as the strategy says; a model without remat comes back as it is."""
        if self.remat == "none":
            return model
        return enable_gradient_checkpointing(model, self.layers, "minimal" if self.remat == "minimal" else "nothing_saveable")


def find_optimal_batch_size(model, sequence_length, target_utilization=0.9, available_memory_gb=None, tpu=None, tpu_version="v6e"):
    """The smallest global batch, by powers of two, that reaches this share of the best modelled tokens per second and fits.

    The slice is `tpu`, or the one of `tpu_version` whose chips have `available_memory_gb` together.
    """
    if not 0 < target_utilization <= 1:
        raise TPUError(f"find_optimal_batch_size: target_utilization is above 0 and at most 1, got {target_utilization}")
    if tpu is None:
        chip = _core.tpu.chip(tpu_version)
        memory = 4 * chip["hbm_gb"] if available_memory_gb is None else available_memory_gb
        if not chip["hbm_gb"] / 2 < memory < 1e9:
            raise TPUError(f"find_optimal_batch_size: available_memory_gb is that of whole chips, {chip['hbm_gb']:g} for each "
                           f"{chip['name']}, got {available_memory_gb}")
        count = round(memory / chip["hbm_gb"])
        tpu = _core.tpu.slice_of(chip["name"], count, "")["topology"]
    best = []
    for remat in ("none", "minimal", "full"):
        for power in range(16):
            request = _request(model, tpu, sequence_length, 2**power, remat=remat)
            try:
                if _core.tpu.plan_memory(request)["fits"]:
                    best.append((_core.tpu.plan_step(request)["tokens_per_second"], 2**power))
            except ValueError:
                continue  # the model does not split over so few sequences
    if not best:
        raise TPUError(f"find_optimal_batch_size: no batch of sequences of {sequence_length} fits on {tpu}; a larger slice is needed")
    fastest = max(speed for speed, _ in best)
    return min(batch for speed, batch in best if speed >= target_utilization * fastest)


def diagnose_performance(model, dataloader=None, target_tflops=None, tpu="v6e-64", sequence_length=2048, batch_size=None):
    """What keeps training from its target: modelled steps, the measured time of `dataloader`'s first batches, and what would help."""
    batch_size = batch_size or _core.tpu.slice(tpu)["devices"]
    request = _request(model, tpu, sequence_length, batch_size)
    step, issues = _core.tpu.plan_step(request), []
    if dataloader is not None:
        start, count = time.perf_counter(), 0
        for count, _ in enumerate(dataloader, 1):
            if count >= 8:
                break
        seconds = (time.perf_counter() - start) / max(count, 1)
        if seconds > step["seconds"]:
            issues.append({"problem": "data loading",
                           "impact": f"{seconds:.3g} s for a batch (measured here) against a step of {step['seconds']:.3g} s (modelled)",
                           "solution": "load batches in other processes and prefetch them"})
    memory = _core.tpu.plan_memory(request)
    if not memory["fits"]:
        issues.append({"problem": "out of memory", "impact": f"{memory['total_gib']:.1f} of {memory['limit_gib']:.1f} GiB (modelled)",
                       "solution": "a smaller batch, remat full or offload, or more chips"})
    chips = _core.tpu.slice(tpu)["chips"]
    tflops = step["tflops_per_chip"] * chips
    if target_tflops and tflops < target_tflops:
        issues.append({"problem": f"{step['bound']} bound", "impact": f"{tflops:.0f} of {target_tflops:g} TFLOP/s (modelled)",
                       "solution": next((text for text, _ in _core.tpu.recommend(request)), "no single change of this plan is faster")})
    return {"origin": "modelled", "tflops": tflops, "target_tflops": target_tflops, "issues": issues}


_tracebacks.guard(__name__)
