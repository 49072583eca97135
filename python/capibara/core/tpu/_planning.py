"""Plans from Python: memory, step times, batch sizes and bottlenecks of training on a TPU slice, all modelled."""
import math
import time

from capibara import _core, _tracebacks
from capibara.core.tpu._errors import TPUError
from capibara.core.tpu._figures import Figure
from capibara.core.tpu._models import describe, request_of, require_numbers
from capibara.gradient_checkpointing import enable_gradient_checkpointing
from capibara.model import as_model

_STRATEGIES = {"none": "none", "normal": "minimal", "aggressive": "full"}
DEFAULTS = {"flash": True}  # configure_tpu sets it: attention by a kernel, or with its scores in memory


_REMATS = ("none", "minimal", "qkv", "full", "offload")


def _slice(operation, tpu):
    if not isinstance(tpu, str):
        raise TypeError(f"{operation}: expected the name of a slice, such as 'v4-8' (argument 'tpu'), got {tpu!r}")
    try:
        return _core.tpu.slice(tpu)
    except ValueError as error:
        raise TPUError(f"{operation}: {str(error).removeprefix('tpu: ')} (argument 'tpu'), got {tpu!r}") from None


def _request(operation, model, tpu, sequence_length, batch_size, mesh=None, remat="full", **more):
    found = _slice(operation, tpu)
    if mesh is not None and not isinstance(mesh, str):
        raise TypeError(f"{operation}: expected a text such as 'fsdp=16,tensor=4' (argument 'mesh'), got {mesh!r}")
    if remat not in _REMATS:
        raise TPUError(f"{operation}: expected one of {', '.join(_REMATS)} (argument 'remat'), got {remat!r}")
    request = {"model": model if isinstance(model, str) else request_of(model), "tpu": tpu, "sequence": sequence_length, "remat": remat,
               "batch_per_device": batch_size / found["devices"], **DEFAULTS, **more}
    if mesh is None:  # a group of devices shares a sequence where there are fewer sequences than devices
        share = math.ceil(found["devices"] / batch_size / found["slices"])
        tensor = next((size for size in (1, 2, 4, 8, 16, 32, 64) if size >= share), 64)
        if tensor > 1:
            mesh = f"fsdp={found['devices'] // found['slices'] // tensor},tensor={tensor},dcn_data={found['slices']}"
    return request | ({"mesh": mesh} if mesh else {})


def _sizes(operation, model):
    sizes = describe(model, operation)
    return model if isinstance(model, str) else sizes


class _Assumed:
    """What a plan assumed, collected while its arguments are completed."""

    def __init__(self, operation, model, tpu, default_tpu, batch_size):
        self.operation, self.sizes = operation, _sizes(operation, model)
        self.texts = list(self.sizes.get("assumptions", ())) if isinstance(self.sizes, dict) else []
        self.tpu = tpu or default_tpu
        if tpu is None:
            self.texts.append(f"slice {default_tpu}: none was given")
        self.batch = batch_size
        if batch_size is None:
            self.batch = _slice(operation, self.tpu)["devices"]
            self.texts.append(f"a batch of {self.batch} sequences, one on each device: none was given")

    def request(self, sequence_length, mesh=None, remat="full"):
        """What the planner is asked."""
        return _request(self.operation, self.sizes, self.tpu, sequence_length, self.batch, mesh, remat)

    def of(self, made):
        """The answer with what it is of and what was assumed for it."""
        return made | {"tpu": self.tpu, "batch_size": self.batch, "assumed": self.texts}

    def origin(self, sequence_length):
        text = f"modelled for {self.tpu} with {self.batch} sequences of {sequence_length}"
        return text + (f"; assumed: {'; '.join(self.texts)}" if self.texts else "")


def estimate_step(model, tpu=None, sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Modelled time of one training step: seconds by kind, tokens per second, share of the peak.

    Without `tpu` of v4-8, without `batch_size` with one sequence on each device; `assumed` says so, and what was inferred of the model.
    """
    require_numbers("estimate_step", sequence_length=sequence_length, batch_size=batch_size)
    plan = _Assumed("estimate_step", model, tpu, "v4-8", batch_size)
    return plan.of(_core.tpu.plan_step(plan.request(sequence_length, mesh, remat)))


def analyze_bottlenecks(model, tpu=None, sequence_length=2048, batch_size=None, mesh=None, remat="full"):
    """Shares of compute, memory and communication in a modelled step, and changes with the gain that the model predicts.

    What is not given is assumed as in estimate_step.
    """
    require_numbers("analyze_bottlenecks", sequence_length=sequence_length, batch_size=batch_size)
    plan = _Assumed("analyze_bottlenecks", model, tpu, "v4-8", batch_size)
    request = plan.request(sequence_length, mesh, remat)
    step, origin = _core.tpu.plan_step(request), plan.origin(sequence_length)
    return plan.of({"origin": "modelled", "compute_bound": Figure(step["compute_share"], origin),
                    "memory_bound": Figure(step["memory_share"], origin),
                    "communication_bound": Figure(step["communication_share"], origin), "bound": step["bound"],
                    "recommendations": [text for text, _ in _core.tpu.recommend(request)]})


class MemoryOptimizer:
    """How much memory training takes, and models that recompute activations to take less.

    `strategy` is none, normal (keep matmuls) or aggressive (keep layer inputs); `gradient_checkpointing` recomputes whole layers whatever
    the strategy, `enable_rematerialization=False` nothing, and `activation_checkpointing_layers` layers share one kept input.
    """

    def __init__(self, strategy="normal", enable_rematerialization=True, gradient_checkpointing=False, activation_checkpointing_layers=1):
        if not isinstance(strategy, str) or strategy not in _STRATEGIES:
            raise TPUError(f"MemoryOptimizer: strategy is one of {', '.join(_STRATEGIES)}, got {strategy!r}")
        if not isinstance(activation_checkpointing_layers, int) or activation_checkpointing_layers < 1:
            raise TPUError("MemoryOptimizer: activation_checkpointing_layers is a number of layers, at least 1, got "
                           f"{activation_checkpointing_layers!r}")
        self.strategy, self.layers = strategy, activation_checkpointing_layers
        self.remat = "full" if gradient_checkpointing else _STRATEGIES[strategy] if enable_rematerialization else "none"

    def estimate_memory(self, model, batch_size, sequence_length, tpu=None, mesh=None):
        """Modelled HBM of one device in GB and GiB, by buffer; `assumed` has what was inferred of the model and assumed."""
        require_numbers("MemoryOptimizer.estimate_memory", batch_size=batch_size, sequence_length=sequence_length)
        plan = _Assumed("MemoryOptimizer.estimate_memory", model, tpu, "v4-8", batch_size)
        found = _core.tpu.plan_memory(plan.request(sequence_length, mesh, self.remat))
        if self.remat == "full" and self.layers > 1:  # one input for each group of layers, one group of layers recomputed at once
            saved = dict(found["buffers"]).get("saved activations", 0)
            less = saved * (1 - 1 / self.layers)
            found["buffers"] = [(name, size - less if name == "saved activations" else size) for name, size in found["buffers"]]
            each = less / describe(model, "MemoryOptimizer.estimate_memory")["layers"]
            lowered = {"first layer": each, "last layer": less, "loss": less, "backward, last layer": less, "backward, first layer": each}
            found["timeline"] = [(name, size - lowered.get(name, 0)) for name, size in found["timeline"]]
            found["total_gib"] -= less
            found["fits"] = found["total_gib"] <= found["limit_gib"]
        total = Figure(found["total_gib"] * 2**30 / 1e9, plan.origin(sequence_length))
        return plan.of(found | {"total_gb": total, "remat": self.remat})

    def optimize(self, model):
        """The model with its activations recomputed as the strategy says, in groups of `activation_checkpointing_layers` layers.

        Strategy none recomputes nothing: the model comes back as it is. Models are those of enable_gradient_checkpointing.
        """
        if self.remat == "none":
            if not (isinstance(model, (list, tuple)) and model and all(callable(layer) for layer in model)):
                as_model(model, operation="MemoryOptimizer.optimize")
            return model
        return enable_gradient_checkpointing(model, self.layers, "minimal" if self.remat == "minimal" else "nothing_saveable")


class PlannedBatch(int):
    """A number of sequences with what it was modelled for: `origin`, `tpu` and `assumed`."""

    def __new__(cls, value, origin, tpu, assumed):
        made = super().__new__(cls, value)
        made.origin, made.tpu, made.assumed = origin, tpu, assumed
        return made

    def __format__(self, spec):
        return int.__format__(int(self), spec) + f" (modelled for {self.tpu})"

    def __str__(self):
        return format(self)

    def __repr__(self):
        return f"{int(self)} ({self.origin})"

    def __reduce__(self):
        return PlannedBatch, (int(self), self.origin, self.tpu, self.assumed)


def find_optimal_batch_size(model, sequence_length, target_utilization=0.9, available_memory_gb=None, tpu=None, tpu_version="v6e"):
    """The smallest global batch, by powers of two, that reaches this share of the best modelled tokens per second and fits.

    The slice is `tpu`, or the one of `tpu_version` whose chips have `available_memory_gb` together, or four of its chips. The answer is an
    int whose `tpu` and `assumed` say what it was modelled for; its text says that it is modelled.
    """
    require_numbers("find_optimal_batch_size", sequence_length=sequence_length)
    sizes = _sizes("find_optimal_batch_size", model)
    texts = list(sizes.get("assumptions", ())) if isinstance(sizes, dict) else []
    if not isinstance(target_utilization, (int, float)) or not 0 < target_utilization <= 1:
        raise TPUError(f"find_optimal_batch_size: target_utilization is above 0 and at most 1, got {target_utilization!r}")
    if tpu is None:
        try:
            chip = _core.tpu.chip(tpu_version)
        except (ValueError, TypeError):
            raise TPUError("find_optimal_batch_size: expected a version such as 'v4', 'v5e', 'v5p' or 'v6e' (argument 'tpu_version'), got "
                           f"{tpu_version!r}") from None
        memory = 4 * chip["hbm_gb"] if available_memory_gb is None else available_memory_gb
        if not isinstance(memory, (int, float)) or not chip["hbm_gb"] / 2 < memory < 1e9:
            raise TPUError(f"find_optimal_batch_size: available_memory_gb is that of whole chips, {chip['hbm_gb']:g} for each "
                           f"{chip['name']}, got {available_memory_gb!r}")
        count = round(memory / chip["hbm_gb"])
        tpu = _core.tpu.slice_of(chip["name"], count, "")["topology"]
        texts.append(f"slice {tpu}: " + ("no memory was given" if available_memory_gb is None else f"{count} chips have that memory"))
    _slice("find_optimal_batch_size", tpu)
    best = []
    for remat in ("none", "minimal", "full"):
        for power in range(16):
            request = _request("find_optimal_batch_size", sizes, tpu, sequence_length, 2**power, remat=remat)
            try:
                if _core.tpu.plan_memory(request)["fits"]:
                    best.append((_core.tpu.plan_step(request)["tokens_per_second"], 2**power))
            except ValueError:
                continue  # the model does not split over so few sequences
    if not best:
        raise TPUError(f"find_optimal_batch_size: no batch of sequences of {sequence_length} fits on {tpu}; a larger slice is needed")
    fastest = max(speed for speed, _ in best)
    chosen = min(batch for speed, batch in best if speed >= target_utilization * fastest)
    origin = f"modelled for {tpu} with sequences of {sequence_length}" + (f"; assumed: {'; '.join(texts)}" if texts else "")
    return PlannedBatch(chosen, origin, tpu, texts)


def diagnose_performance(model, dataloader=None, target_tflops=None, tpu=None, sequence_length=2048, batch_size=None):
    """What keeps training from its target: modelled steps, the measured time of `dataloader`'s first batches, and what would help.

    Without `tpu` of v6e-64; `assumed` says so, and what was inferred of the model.
    """
    require_numbers("diagnose_performance", sequence_length=sequence_length, batch_size=batch_size, target_tflops=target_tflops)
    if dataloader is not None and not hasattr(dataloader, "__iter__"):
        raise TypeError(f"diagnose_performance: dataloader is an iterable of batches, got {dataloader!r}")
    plan = _Assumed("diagnose_performance", model, tpu, "v6e-64", batch_size)
    tpu = plan.tpu
    request = plan.request(sequence_length)
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
    return plan.of({"origin": "modelled", "tflops": Figure(tflops, plan.origin(sequence_length)), "target_tflops": target_tflops,
                    "issues": issues})


_tracebacks.guard(__name__)
