"""Vector quantization of weights: vectors stored and multiplied as codebook indices, as far as the measured accuracy allows."""
import math
import os
import statistics
import time
import warnings

import numpy as np
from numpy.typing import ArrayLike

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _tracebacks
from capibara._errors import TPUError
from capibara.core.tpu._figures import Absent, Figure
from capibara.core.tpu._quantization import QuantizedWeight, on_codes, quantized_model
from capibara.model import as_model

_NOTHING = Absent("nothing was quantized")
# Of a speed measurement: least number of rounds, of timings of each model in one, and seconds of it; least seconds of a timing, so short
# as to pass between interruptions; share of the median within which its interval ends it, and the seconds after which it ends anyway.
_LEAST_ROUNDS, _LEAST_TIMINGS, _ROUND_SECONDS, _LEAST_SECONDS, _PRECISION, _MOST_SECONDS = 9, 4, 0.2, 2e-4, 0.015, 6.0
_METRICS = ("euclidean", "cosine", "dot_product")


class TPUv6VQIntegration:
    """Codebooks for weights. TPUs have no units for this: the nearest code is found by a matmul and a minimum, on every device.

    `quantization_bits` is the precision of the codebook's entries: 16 keeps them as bfloat16, 8 and 4 round them to integers with one
    scale for each vector. `enable_hardware_acceleration` compiles the search with jit, and False runs it operation by operation.
    """

    def __init__(self, quantization_bits: int = 8, vector_length: int = 8, codebook_size: int = 256,
                 enable_hardware_acceleration: bool = True, distance_metric: str = "euclidean") -> None:
        if quantization_bits not in (4, 8, 16):
            raise TPUError(f"TPUv6VQIntegration: quantization_bits is 4, 8 or 16, got {quantization_bits}")
        if vector_length < 1 or codebook_size < 2:
            raise TPUError(f"TPUv6VQIntegration: needs vector_length >= 1 and codebook_size >= 2, got {vector_length} and {codebook_size}")
        if distance_metric not in _METRICS:
            raise TPUError(f"TPUv6VQIntegration: distance_metric is one of {', '.join(_METRICS)}, got {distance_metric!r}")
        if codebook_size > 65536:
            raise TPUError(f"TPUv6VQIntegration: codes have two bytes at most, codebook_size is up to 65536, got {codebook_size}")
        self.bits, self.length, self.size, self.metric = quantization_bits, vector_length, codebook_size, distance_metric
        self.codebook = None
        self._nearest = jax.jit(self._search) if enable_hardware_acceleration else self._search
        self._metrics = None

    def _search(self, vectors, codebook):
        scores = vectors @ codebook.T
        if self.metric == "euclidean":
            scores = 2 * scores - jnp.sum(codebook * codebook, 1)
        elif self.metric == "cosine":
            scores = scores / jnp.maximum(jnp.linalg.norm(codebook, axis=1), 1e-12)
        return jnp.argmax(scores, 1)

    def encode(self, vectors: ArrayLike) -> jax.Array:
        """The index of the nearest code for each vector [count, vector_length]."""
        if self.codebook is None:
            raise TPUError("encode: there is no codebook yet; call train_codebook or load_codebook")
        return self._nearest(jnp.asarray(vectors, jnp.float32), self.codebook)

    def train_codebook(self, training_data: ArrayLike, num_iterations: int = 20, batch_size: int = 1024, seed: int = 0) -> jax.Array:
        """Learns the codebook by k-means over mini-batches and returns it, [codebook_size, vector_length]."""
        vectors = np.asarray(training_data, np.float32).reshape(-1, self.length)
        if len(vectors) < 1:
            raise TPUError("train_codebook: training_data is empty")
        draw = np.random.default_rng(seed)
        codes = vectors[draw.choice(len(vectors), self.size, replace=len(vectors) < self.size)].copy()
        counts = np.ones(self.size, np.float32)
        for _ in range(num_iterations):
            batch = vectors[draw.integers(0, len(vectors), min(batch_size, len(vectors)))]
            nearest = np.asarray(self._nearest(jnp.asarray(batch), jnp.asarray(codes)))
            sums, hits = np.zeros_like(codes), np.bincount(nearest, minlength=self.size).astype(np.float32)
            np.add.at(sums, nearest, batch)
            counts += hits
            codes += np.where(hits[:, None] > 0, (sums - hits[:, None] * codes) / counts[:, None], 0)
        self.codebook = jnp.asarray(self._rounded(codes))
        return self.codebook

    def _rounded(self, codes):
        if self.bits == 16:
            return np.asarray(jnp.asarray(codes).astype(jnp.bfloat16).astype(jnp.float32))
        limit = 2**(self.bits - 1) - 1
        scale = np.maximum(np.abs(codes).max(1, keepdims=True), 1e-30) / limit
        return np.round(codes / scale) * scale

    def save_codebook(self, path: str | os.PathLike[str]) -> None:
        """Writes the codebook as an .npy array, whatever the path's suffix: nothing in it can be executed. Creates the folder."""
        if self.codebook is None:
            raise TPUError("save_codebook: there is no codebook yet")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "wb") as file:
            np.save(file, np.asarray(self.codebook), allow_pickle=False)

    def load_codebook(self, path: str | os.PathLike[str]) -> jax.Array:
        """Reads a file of save_codebook; a pickle is refused, not executed."""
        with open(path, "rb") as file:
            head = file.read(6)
            if head != b"\x93NUMPY":
                raise TPUError(f"load_codebook: {path} is no .npy array; pickles are not executed, write it again with save_codebook")
            file.seek(0)
            codes = np.load(file, allow_pickle=False)
        if codes.shape != (self.size, self.length):
            raise TPUError(f"load_codebook: expected an array of {(self.size, self.length)}, got {codes.shape}")
        self.codebook = jnp.asarray(codes, jnp.float32)
        return self.codebook

    def quantize_model(self, model: object, calibration_data: object = None, target_accuracy_retention: float = 0.98,
                       num_calibration_batches: int = 100) -> object:
        """A model whose matrices are stored and multiplied as codes, as far as the accuracy allows.

        `model` is any model for as_model with params and apply: {"params": tree, "apply": function of parameters and a batch}, an object,
        a module. A dict returns a dict, anything else a Model; their functions take QuantizedWeight in params and are compiled. Vectors
        are adjacent inputs of one output, so matrices [inputs, outputs] whose inputs are a multiple of vector_length fit. Retention is
        1 - |y - y'| / |y| over the calibration batches. Layers revert to their original weights, worst first, until the target is met; if
        no quantized layer remains, a warning and get_metrics()["reason"] explain it.
        """
        made_of = as_model(model, operation="quantize_model")
        if made_of.params is None or not made_of.has_apply:
            raise TypeError(f"quantize_model: {made_of.name} needs params and apply (argument 'model'), and has no "
                            f"{'params' if made_of.params is None else 'apply'}; as_model(model, params, apply=...) takes them")
        if calibration_data is not None and not hasattr(calibration_data, "__iter__"):
            raise TypeError(f"quantize_model: calibration_data is an iterable of batches, got {calibration_data!r}")
        parameters, apply = made_of.params, made_of.apply
        leaves, tree = jax.tree_util.tree_flatten(parameters)
        batches = [] if calibration_data is None else [batch for batch, _ in zip(calibration_data, range(num_calibration_batches))]
        if not batches:
            raise TPUError("quantize_model: needs calibration_data: the accuracy is measured, not assumed")
        fits = [i for i, leaf in enumerate(leaves) if np.ndim(leaf) == 2 and np.size(leaf) and np.shape(leaf)[0] % self.length == 0]
        for i in fits:
            if not np.isfinite(np.asarray(leaves[i], np.float32)).all():
                raise TPUError(f"quantize_model: expected finite values, parameter {made_of.names()[i]!r} has others (argument 'model')")
        if self.codebook is None:
            if not fits:
                raise TPUError(f"quantize_model: no matrix has a multiple of vector_length={self.length} inputs")
            self.train_codebook(np.concatenate([np.ravel(np.asarray(leaves[i]).T) for i in fits]))
        coded = {i: self._coded(leaves[i]) for i in fits}
        lost = {i: float(np.linalg.norm(coded[i].array() - leaves[i]) / max(np.linalg.norm(leaves[i]), 1e-30)) for i in fits}
        order = sorted(fits, key=lost.get)
        own = on_codes(apply, [leaf.dtype for leaf in leaves])
        expected = [np.asarray(apply(parameters, batch)) for batch in batches]
        retention, used = 1.0, []
        for count in range(len(order), -1, -1):
            used = order[:count]
            made = tree.unflatten([coded[i] if i in used else leaf for i, leaf in enumerate(leaves)])
            got = [np.asarray(own(made, batch)) for batch in batches]
            size = max(sum(float(np.linalg.norm(b)) for b in expected), 1e-30)
            error = sum(float(np.linalg.norm(a - b)) for a, b in zip(got, expected)) / size
            retention = max(0.0, 1 - error)
            if retention >= target_accuracy_retention:
                break
        self._metrics = {"compression_ratio": _NOTHING, "inference_speedup": _NOTHING, "accuracy_retention": retention,
                         "layers_quantized": len(used), "layers_left": len(fits) - len(used)}
        if used:
            self._metrics["compression_ratio"] = Figure(_bytes(leaves) / _bytes(made), "measured: bytes of the parameters in memory")
            self._metrics["inference_speedup"] = _speedup(jax.jit(apply), parameters, own, made, batches[0])
        else:
            reason = self._why_nothing(leaves, fits, order, tree, coded, expected, batches, own, target_accuracy_retention)
            self._metrics["reason"] = reason
            warnings.warn(f"quantize_model: nothing was quantized: {reason}", stacklevel=2)
        result = quantized_model(made_of, made)
        if not isinstance(model, dict):
            return result
        return {**model, "params": made, **{what: getattr(result, what) for what in ("apply", "loss") if what in model}}

    def _why_nothing(self, leaves, fits, order, tree, coded, expected, batches, apply, target):
        if not fits:
            return f"no matrix has a multiple of vector_length={self.length} inputs"
        best = tree.unflatten([coded[i] if i == order[0] else leaf for i, leaf in enumerate(leaves)])
        size = max(sum(float(np.linalg.norm(b)) for b in expected), 1e-30)
        kept = max(0.0, 1 - sum(float(np.linalg.norm(np.asarray(apply(best, x)) - y)) for x, y in zip(batches, expected)) / size)
        return (f"even the matrix that loses least alone keeps {kept:.2%} of the accuracy, target_accuracy_retention is {target:.2%}; "
                f"vectors shorter than {self.length}, more codes than {self.size} or a lower target help")

    def _coded(self, leaf):
        inputs, outputs = np.shape(leaf)
        codes = np.asarray(self.encode(np.asarray(leaf, np.float32).T.reshape(-1, self.length)))
        codes = jnp.asarray(codes.reshape(outputs, inputs // self.length, 1), jnp.uint8 if self.size <= 256 else jnp.uint16)
        return QuantizedWeight(codes, jnp.ones((outputs, 1), jnp.float32), self.codebook[None, None], inputs)

    def get_metrics(self) -> dict[str, object]:
        """Retention, layers, compression of the bytes in memory and speed of the last quantize_model.

        A codebook counts toward the bytes of every matrix that uses one. The speed is the median over rounds in which both models run
        alternately, `spread` its quartiles; both figures are absent if nothing was quantized.
        """
        if self._metrics is None:
            raise TPUError("get_metrics: call quantize_model first")
        return dict(self._metrics)


def _bytes(tree):
    return sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(tree))


def _speedup(whole, params, coded, codes, batch):
    """The speedup of coded(codes, batch) over whole(params, batch).

    Other work on the machine only adds time: each round takes the shortest of many timings of both, in alternating order, and rounds
    follow until the median of their ratios is known well enough.
    """
    calls = (lambda: jax.block_until_ready(whole(params, batch)), lambda: jax.block_until_ready(coded(codes, batch)))

    def seconds(call, repeats):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats
    for call in calls * 3:  # compilation, and the caches
        call()
    repeats = [max(1, math.ceil(_LEAST_SECONDS / max(min(seconds(call, 1) for _ in range(5)), 1e-7))) for call in calls]
    ratios, start = [], time.perf_counter()
    while True:
        timings, begin = ([], []), time.perf_counter()
        while len(timings[0]) < _LEAST_TIMINGS or time.perf_counter() - begin < _ROUND_SECONDS:
            for which in (0, 1) if len(timings[0]) % 2 == 0 else (1, 0):
                timings[which].append(seconds(calls[which], repeats[which]))
        ratios.append(min(timings[0]) / min(timings[1]))
        if len(ratios) < _LEAST_ROUNDS:
            continue
        low, middle, high = statistics.quantiles(ratios, n=4)
        # 1.57 quartile ranges / sqrt(n): the half width of the 95 % interval of a median.
        if 1.57 * (high - low) / math.sqrt(len(ratios)) < _PRECISION * middle or time.perf_counter() - start > _MOST_SECONDS:
            break
    figure = Figure(middle, f"measured: median of {len(ratios)} rounds, quartiles {low:.2f} and {high:.2f}")
    figure.spread = (low, high)
    return figure


_tracebacks.guard(__name__)
