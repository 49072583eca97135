"""Language models, their data and their training, run by capibara's core.

    model = training.LanguageModel(vocabulary=256, width=128, layers=["attention+mlp", "mamba", "attention+moe"])
    trainer = training.Trainer(training.TrainerConfig(steps=200), model, folder="run")
    trainer.train("book.txt")
"""
import dataclasses
import inspect
import itertools
import json
import math
import operator
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from capibara import _core
from capibara import jax as _jax
from capibara._arguments import require_flag, require_number, require_path
from capibara._modules import explain_missing as _explain_missing
from capibara._weights import convert_weights as convert_weights
from capibara._weights import load_weights as load_weights  # noqa: F401
from capibara._weights import require_parameters as _require_parameters
from capibara._weights import save_weights as save_weights  # noqa: F401
from capibara.core.tpu._models import assumed as _assumed
from capibara.core.tpu._models import describe as _describe
from capibara.core.tpu._quantization import quantize_activations as quantize_activations  # noqa: F401
from capibara.core.tpu._quantization import quantize_model as quantize_model  # noqa: F401
from capibara.data_loading import DataLoader as DataLoader  # noqa: F401
from capibara.gradient_checkpointing import enable_gradient_checkpointing as enable_gradient_checkpointing
from capibara.model import Batches as _Batches
from capibara.model import as_model as _as_model

_native = _core.training
_DEFAULTS = json.loads(_native.default_config())
_MODEL_FIELDS = ("vocabulary", "width", "layers", "heads", "key_heads", "hidden", "experts", "experts_per_token", "state", "taps",
                 "expand", "norm", "positions", "activation", "bias", "tied", "max_length", "rope_base", "norm_epsilon",
                 "load_weight", "checkpoint_every_n_layers", "checkpoint_policy")

Tokenizer = _native.Tokenizer
PublishedTokenizer = _native.PublishedTokenizer
TokenFile = _native.TokenFile
load_pretrained = _native.load_pretrained
bigram_bits_per_byte = _native.bigram_bits_per_byte
write_tokens = _native.write_tokens


def LanguageModel(**fields: object) -> "_native.LanguageModel":
    """A language model of mixed layers; the fields are those of LanguageModelConfig in C++.

    `layers` names the layers in order, each a mixer and what follows it: 'attention', 'mamba+mlp', 'attention+moe'.
    """
    unknown = sorted(set(fields) - set(_MODEL_FIELDS))
    if unknown:
        raise TypeError(f"LanguageModel: unknown field {unknown[0]!r}; there are: {', '.join(_MODEL_FIELDS)}")
    if "heads" in fields:
        fields.setdefault("key_heads", fields["heads"])
    return _native.LanguageModel.from_json(json.dumps({**_DEFAULTS, **fields}))


class Loader(_native.Loader):
    """Batches int32 [batch, length + 1] of a TokenFile, each determined by its number; `num_workers` threads prefetch them.

    Windows are taken from the tokens `first` to `last` (-1: all), reshuffled in each pass. `next` is the number of the first batch.
    """

    def __init__(self, tokens: TokenFile, batch: int = 8, length: int = 128, first: int = 0, last: int = -1, seed: int = 0, next: int = 0,
                 num_workers: int = 1) -> None:
        if not isinstance(tokens, TokenFile):
            raise TypeError(f"Loader: expected a TokenFile (argument 'tokens'), got {tokens!r}")
        numbers = {"batch": batch, "length": length, "first": first, "last": last, "seed": seed, "next": next, "num_workers": num_workers}
        for name, value in numbers.items():
            require_number("Loader", name, value, least=0 if name == "seed" else None)
        super().__init__(tokens, *map(int, numbers.values()))


def _require_mesh_shape(operation, shape):
    if not isinstance(shape, (tuple, list)) or not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in shape):
        raise ValueError(f"{operation}: mesh_shape is a tuple of positive sizes, such as (8, 8), got {shape!r}")


class Generator(_native.Generator):
    """Generates tokens with a KV cache of at most `capacity` tokens, including the prompt."""

    def __init__(self, model: "_native.LanguageModel", params: object, capacity: int = 1024) -> None:
        if not isinstance(model, _native.LanguageModel):
            raise TypeError(f"Generator: expected a LanguageModel (argument 'model'), got {model!r}")
        _require_parameters("Generator", params)
        super().__init__(model, params, int(require_number("Generator", "capacity", capacity, least=2)))

    def generate(self, prompt: Sequence[int], max_new_tokens: int = 100, temperature: float = 0.0, top_k: int = 0, seed: int = 0,
                 stop: Sequence[int] = ()) -> list[int]:
        """The tokens that follow the prompt, until one of `stop`; greedy if the temperature is 0."""
        lists = {}
        for name, tokens in (("prompt", prompt), ("stop", stop)):
            try:
                lists[name] = [operator.index(token) for token in tokens]
            except TypeError:
                raise TypeError(f"generate: expected a sequence of tokens (argument {name!r}), got {tokens!r}") from None
        for name, value in (("max_new_tokens", max_new_tokens), ("temperature", temperature), ("top_k", top_k), ("seed", seed)):
            require_number("generate", name, value, least=0, whole=name != "temperature")
        return super().generate(lists["prompt"], int(max_new_tokens), temperature, int(top_k), int(seed), lists["stop"])


@dataclasses.dataclass
class TrainerConfig:
    """Training options. Trainer takes any object with some of these fields; missing ones have these defaults."""
    steps: int = 400
    batch: int = 16
    length: int = 128
    accumulate: int = 1
    optimizer: str = "adamw"
    learning_rate: float = 3e-3
    warmup: int = 20
    weight_decay: float = 0.1
    max_norm: float = 1.0
    checkpoint_every: int = 100
    keep: int = 2
    spike_factor: float = 3.0
    max_bad_steps: int = 10
    seed: int = 0
    gradient_checkpointing: bool = False
    held_out: float = 0.05
    mesh: str | dict[str, int] = ""
    num_workers: int = 1


class Trainer:
    """Trains a model: one compiled step, bad steps skipped, checkpoints in `folder`, exact resumption.

    The model is a LanguageModel or any other model with a loss that as_model takes. The config's `mesh` names axes and their sizes, as
    "data=2,fsdp=4" or {"data": 2, "fsdp": 4}: data and fsdp split batches, fsdp every parameter too, tensor heads, hidden units and the
    vocabulary, expert experts, sequence positions (ring attention), stages layers (a pipeline). mesh_shape=(4, 2) is data=4,tensor=2, and
    mesh_shape=(8,) data=8. An axis that has no effect on the model is refused. A named model that was compiled for a mesh of its
    backend trains on that mesh: (n,) is fsdp=n, (n, m) data=n,tensor=m.

    With use_bf16 everything between the float32 parameters and the loss is bfloat16, including the floating
    arrays of a batch. enable_xla_optimizations=False compiles as with jax_disable_most_optimizations.
    """

    def __init__(self, config: object, model: object, mesh_shape: Sequence[int] | None = None, use_bf16: bool = False,
                 enable_xla_optimizations: bool = True, *, folder: str | Path | None = None) -> None:
        fields = self._settings(config)
        for name, value in (("use_bf16", use_bf16), ("enable_xla_optimizations", enable_xla_optimizations)):
            require_flag("Trainer", name, value)
        if folder is not None:
            require_path("Trainer", "folder", folder)
        made = _as_model(model, operation="Trainer")
        if not made.has_loss:
            raise TypeError(f"Trainer: {made.name} has no loss (argument 'model'); as_model(model, loss=...) takes a function of params "
                            "and a batch")
        if fields.pop("gradient_checkpointing"):
            made = enable_gradient_checkpointing(made)
        self.held_out = fields.pop("held_out")
        if not isinstance(self.held_out, (int, float)) or not 0 <= self.held_out <= 0.5:
            raise ValueError(f"Trainer: held_out is a share between 0 and 0.5, got {self.held_out!r}")
        self._made, self.folder, self._fields = made, folder, fields
        self.model = made.source if isinstance(made.source, _native.LanguageModel) else model
        self._tokens_only = isinstance(made.source, _native.LanguageModel)
        self.use_bf16, self.enable_xla_optimizations = use_bf16, enable_xla_optimizations
        fields["mesh"] = self._mesh(mesh_shape, fields["mesh"], model)
        self.losses = []
        self._make()

    def _settings(self, config):
        if isinstance(config, (dict, str, int, float, type)) or config is None:
            raise TypeError(f"Trainer: config is an object with fields, such as TrainerConfig(steps=200), got {config!r}")
        if isinstance(config, _native.LanguageModel) or any(callable(getattr(config, name, None)) for name in ("apply", "loss")):
            raise TypeError(f"Trainer: config comes before the model: Trainer(config, model), got {type(config).__name__} first")
        return {field.name: getattr(config, field.name, field.default) for field in dataclasses.fields(TrainerConfig)}

    def _mesh(self, mesh_shape, named, model):
        """The mesh as text, in the form that C++ parses."""
        if isinstance(named, dict):
            named = ",".join(f"{name}={size}" for name, size in named.items())
        if not isinstance(named, str):
            raise TypeError(f"TrainerConfig: mesh is a text such as 'data=2,fsdp=4', or a dict of such axes, got {named!r}")
        shape = getattr(getattr(model, "backend", None), "device_mesh", None)
        if mesh_shape is None and not named and shape:
            named = {1: "fsdp={}", 2: "data={},tensor={}"}.get(len(shape), "").format(*shape)
        if mesh_shape is None:
            return _native.parse_mesh(named)
        _require_mesh_shape("Trainer", mesh_shape)
        if named:
            raise ValueError(f"Trainer: mesh_shape {tuple(mesh_shape)} and the config's mesh {named!r} are two meshes; give one")
        if len(mesh_shape) > 2:
            raise ValueError(f"Trainer: mesh_shape has the axes data and tensor, got {tuple(mesh_shape)}; the config's mesh names others, "
                             "as 'data=2,fsdp=2,tensor=2'")
        if math.prod(mesh_shape) not in (1, len(_jax.devices())):
            raise ValueError(f"Trainer: mesh_shape {tuple(mesh_shape)} needs {math.prod(mesh_shape)} devices, "
                             f"this process has {len(_jax.devices())}")
        return _native.parse_mesh(",".join(f"{name}={size}" for name, size in zip(("data", "tensor"), mesh_shape)))

    def _make(self):
        settings = {**_DEFAULTS, **self._fields, "compute": "bfloat16" if self.use_bf16 else "float32"}
        checkpoints = str(Path(self.folder) / "checkpoints") if self.folder else ""
        self._batches = _Batches()
        self._trainer = _native.NativeTrainer(self._made.native(self._batches), json.dumps(settings), checkpoints)

    @property
    def params(self) -> object:
        """A copy of the parameters, in the tree of the model; for a LanguageModel a dict by name."""
        return self._made.tree(self._trainer.parameters)

    @params.setter
    def params(self, params: object) -> None:
        self._trainer.set_parameters(self._made.by_name(params))

    @property
    def steps_done(self) -> int:
        """The number of completed steps, including those before a resumption."""
        return self._trainer.steps_done

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self._trainer.learning_rate

    def step(self, *batch: object) -> dict[str, float]:
        """One step on a batch, the arguments of the model's loss: a dict of step, loss, norm, skipped and seconds.

        For a LanguageModel, tokens [accumulate * batch, length + 1]. With accumulate the first dimension of each array is split into that
        many batches. A non-finite loss or a spike skips the update; after max_bad_steps of them FloatingPointError names the layer.
        """
        arrays = self._arrays(batch, "step")
        if self.enable_xla_optimizations or _jax.config.jax_disable_most_optimizations:
            return self._trainer.step(arrays)  # every config update would make the step retrace
        _jax.config.update("jax_disable_most_optimizations", True)
        try:
            return self._trainer.step(arrays)
        finally:
            _jax.config.update("jax_disable_most_optimizations", False)

    def evaluate(self, *batch: object) -> float:
        """The model's evaluate on held-out data, or else its loss; for a LanguageModel the mean cross entropy in nats."""
        return self._trainer.evaluate(self._arrays(batch, "evaluate"))

    def _arrays(self, batch, operation):
        self._require_fit(batch, operation)
        arrays = self._batches.flat(tuple(batch), f"Trainer.{operation}: the batch")
        for array in arrays:
            if not hasattr(array, "shape") and not isinstance(array, (bool, int, float, complex)):
                raise TypeError(f"Trainer.{operation}: a batch is of arrays (argument 'batch'), got {array!r} in it")
        return arrays

    def _require_fit(self, batch, operation):
        """Raises TypeError if the loss does not take this many arguments."""
        loss = self._made._parts.get("loss")
        if self._batches.structure is not None or loss is None:
            return
        try:
            signature = inspect.signature(loss)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(None, *batch)
        except TypeError as error:
            raise TypeError(f"Trainer.{operation}: the loss of {self._made.name} takes {signature} (argument 'batch'), got a batch of "
                            f"{len(batch)}: {error}") from None

    def gradient(self, *batch: object) -> object:
        """The gradient of the loss of a batch with respect to the parameters, with their tree and placement."""
        return self._made.tree(self._trainer.gradient(self._arrays(batch, "gradient")))

    @property
    def mesh(self) -> str:
        """The axes of the mesh and their devices, as "data=2,fsdp=4"; empty for one device."""
        return self._fields["mesh"]

    def sharding_table(self) -> str:
        """A line for each parameter: its shape, specification, bytes on a device, and the reason; empty for one device."""
        made = self._trainer.sharding()
        return made[0] if made else ""

    def device_bytes(self, gradients: object = None) -> dict[str, dict[str, int]]:
        """Bytes on one device, `planned` from the placements and `held` by the existing arrays: of parameters, of the optimizer's
        state, and of `gradients`, which are held if they are passed."""
        if gradients is not None:
            expected, got = _jax.tree.structure(self.params), _jax.tree.structure(gradients)
            if got != expected:
                raise ValueError(f"Trainer.device_bytes: expected gradients of the structure {expected} (argument 'gradients'), got {got}")
            gradients = self._made.by_name(gradients)
        return self._trainer.device_bytes(gradients)

    def save(self) -> None:
        """Writes a checkpoint of this step atomically."""
        self._trainer.save()

    def resume(self) -> bool:
        """Restores the newest complete checkpoint of the folder; False if there is none."""
        return self._trainer.resume()

    def train(self, train_data: object, num_steps: int | None = None, batch_size_per_chip: int | None = None,
              on_step: Callable[[dict[str, float]], object] | None = None) -> list[float]:
        """Trains until num_steps steps are done, from the newest checkpoint if there is one; returns the losses of this call's steps.

        For a LanguageModel, train_data is a file or folder of text, which may be in Cloud Storage: gs://BUCKET/NAME. For any model it may
        be batches: an iterable, or a function from a step's number to its batch. A tuple or list holds the loss's arguments after params,
        an array or a dict is its only argument. After a resumption an iterable is advanced past the batches of the completed steps; if it
        ends early, training ends too. Ctrl-C saves before it raises KeyboardInterrupt.
        """
        text = isinstance(train_data, (str, Path))
        if text and not self._tokens_only:
            raise TypeError(f"Trainer.train: {self._made.name} does not take text (argument 'train_data'), got {str(train_data)!r}; give "
                            "batches of arrays")
        if not text and not callable(train_data) and not hasattr(train_data, "__iter__"):
            raise TypeError("Trainer.train: expected a path, an iterable of batches, or a function from a number to a batch (argument "
                            f"'train_data'), got {train_data!r}")
        if batch_size_per_chip and not self._tokens_only:
            raise TypeError(f"Trainer.train: batches of {self._made.name} have the sizes that they come with (argument "
                            f"'batch_size_per_chip'), got {batch_size_per_chip}")
        for name, value in (("num_steps", num_steps), ("batch_size_per_chip", batch_size_per_chip)):
            if value is not None:
                require_number("Trainer.train", name, value, least=1)
        if on_step is not None and not callable(on_step):
            raise TypeError(f"Trainer.train: expected a function of the report of a step (argument 'on_step'), got {on_step!r}")
        if isinstance(train_data, Path) or text and "://" not in train_data:
            if not Path(train_data).exists():
                raise ValueError("Trainer.train: expected a file or folder of text (argument 'train_data'), there is no "
                                 f"{str(train_data)!r}")
        changes = {"steps": num_steps, "batch": batch_size_per_chip and batch_size_per_chip * self._chips()}
        changes = {name: value for name, value in changes.items() if value is not None and value != self._fields[name]}
        if changes:
            if self.steps_done:
                raise ValueError(f"Trainer.train: {', '.join(changes)} cannot change after the first step")
            self._fields.update(changes)
            self._make()
        resumed = bool(self.folder) and not self.steps_done and self.resume()
        if not text:
            return self._train(self._numbered(train_data, resumed), on_step)
        with tempfile.TemporaryDirectory() as temporary:
            return self._train(self._windows(self._tokens(str(train_data), Path(self.folder or temporary))), on_step)

    def _numbered(self, batches, resumed):
        if hasattr(batches, "__iter__"):
            again = iter(batches)  # restartable iterables, and new iterators after a resumption, are advanced to the next step
            made = itertools.islice(again, self.steps_done if resumed or again is not batches else 0, None)
        else:
            made = (batches(number) for number in itertools.count(self.steps_done))
        for batch in made:
            yield tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)

    def _chips(self):
        return math.prod(int(size) for name, size in self._axes() if name in ("data", "fsdp"))

    def _axes(self):
        return [word.split("=") for word in self._fields["mesh"].split(",") if word]

    def _tokens(self, train_data, folder):
        folder.mkdir(parents=True, exist_ok=True)
        path, vocabulary = folder / "tokenizer.txt", self.model.shapes()["embedding"][0]
        if (folder / "run.lock").exists() or ((folder / "tokens.bin").exists() and not path.exists()):
            raise ValueError(f"Trainer.train: {folder} holds files that no Trainer has written (argument 'folder'); name another folder")
        if path.exists():
            self.tokenizer = Tokenizer.load(str(path))
        else:
            self.tokenizer = Tokenizer.train(_native.read_texts(train_data), vocabulary)
            self.tokenizer.save(str(path))
        width = write_tokens(train_data, self.tokenizer, str(folder / "tokens.bin"))
        return TokenFile(str(folder / "tokens.bin"), width)

    def _windows(self, tokens):
        batch = self._fields["accumulate"] * self._fields["batch"]
        last = len(tokens) - int(self.held_out * len(tokens))
        loader = Loader(tokens, batch, self._fields["length"], 0, last, self._fields["seed"], self.steps_done, self._fields["num_workers"])
        while True:
            yield (loader.next(),)

    def _train(self, batches, on_step):
        losses = []
        try:
            while self.steps_done < self._fields["steps"]:
                batch = next(batches, None)
                if batch is None:
                    if self.folder and losses:
                        self.save()
                    break
                report = self.step(*batch)
                losses.append(report["loss"])
                if on_step:
                    on_step(report)
                if self.folder and (self.steps_done % self._fields["checkpoint_every"] == 0 or self.steps_done == self._fields["steps"]):
                    self.save()
        except KeyboardInterrupt:
            self._save_at_interruption()
            raise
        finally:
            self.losses += losses
        return losses

    def _save_at_interruption(self):
        if self.folder:
            self.save()
            said = f"saved in {Path(self.folder) / 'checkpoints'}; the same call continues from there"
        else:
            said = "nothing is saved, since the trainer has no folder"
        print(f"\nTrainer: stopped after step {self.steps_done}; {said}", file=sys.stderr, flush=True)

    def sample(self, prompt: str, max_new_tokens: int = 100, temperature: float = 0.8, top_k: int = 40, seed: int = 0,
               weights: str = "float32") -> str:
        """The text that the model generates after a prompt, as str; invalid UTF-8 is replaced.

        `weights` is their storage format during generation: float32, bfloat16, int8, int4 or vq.
        """
        if not self._tokens_only:
            raise TypeError(f"Trainer.sample: {self._made.name} writes no text; only a LanguageModel does (argument 'model' of Trainer)")
        if not hasattr(self, "tokenizer"):
            raise ValueError("Trainer.sample: there is no tokenizer before train() has read text")
        if not isinstance(prompt, (str, bytes)):
            raise TypeError(f"Trainer.sample: expected a str (argument 'prompt'), got {prompt!r}")
        if not isinstance(weights, str) or weights not in ("float32", "bfloat16", "int8", "int4", "vq"):
            raise ValueError("Trainer.sample: expected 'float32', 'bfloat16', 'int8', 'int4' or 'vq' (argument 'weights'), "
                             f"got {weights!r}")
        for name, value in (("max_new_tokens", max_new_tokens), ("temperature", temperature), ("top_k", top_k), ("seed", seed)):
            require_number("Trainer.sample", name, value, least=0, whole=name != "temperature")
        prompt = self.tokenizer.encode(prompt)
        generator = Generator(self.model, convert_weights(self.params, weights), len(prompt) + max_new_tokens)
        return self.tokenizer.decode(generator.generate(prompt, max_new_tokens, temperature, top_k, seed)).decode(errors="replace")


class TPUTrainer(Trainer):
    """Trainer with bfloat16 by default, and the name and arguments of the TPU toolbox.

    With a TPUConfig, training is planned for the slice that it names: mesh_shape is of that slice, training runs on the devices present,
    and `train` prints the planner's model of the slice, on which nothing has run. Its compute_dtype, batch_size_per_chip and memory
    fields are used too: use_bf16=None follows it, and an argument that contradicts it is refused.
    """

    def __init__(self, config: object, model: object, mesh_shape: Sequence[int] | None = None,
                 use_bf16: bool | None = None, enable_xla_optimizations: bool = True, *, folder: str | Path | None = None) -> None:
        self.tpu = getattr(config, "slice_name", None)
        if self.tpu is not None:
            mesh_shape = self._mesh_of_slice(config, mesh_shape)
            use_bf16 = self._computes_in_bfloat16(config, use_bf16)
        super().__init__(config, model, mesh_shape, use_bf16 is None or use_bf16, enable_xla_optimizations, folder=folder)

    def _settings(self, config):
        fields = super()._settings(config)
        if self.tpu is not None:
            fields["batch"] = config.batch_size_per_chip * len(_jax.devices())
            fields["gradient_checkpointing"] = config.remat_policy() == "full"
        return fields

    def _mesh_of_slice(self, config, mesh_shape):
        if mesh_shape is None:
            mesh_shape = config.mesh_shape
        else:
            _require_mesh_shape("TPUTrainer", mesh_shape)
        chips = _core.tpu.slice(self.tpu)["devices"]
        if mesh_shape is not None and math.prod(mesh_shape) != chips:
            raise ValueError(f"TPUTrainer: mesh_shape {tuple(mesh_shape)} is for {math.prod(mesh_shape)} devices, {self.tpu} has {chips}")
        return (len(_jax.devices()),)

    @staticmethod
    def _computes_in_bfloat16(config, use_bf16):
        if config.param_dtype != "float32":
            raise ValueError(f"TPUTrainer: parameters are float32 here, the configuration's param_dtype is {config.param_dtype}")
        if config.compute_dtype not in ("bfloat16", "float32"):
            raise ValueError(f"TPUTrainer: computes in bfloat16 or float32, the configuration's compute_dtype is {config.compute_dtype}")
        own = config.compute_dtype == "bfloat16"
        if use_bf16 is not None and bool(use_bf16) != own:
            raise ValueError(f"TPUTrainer: use_bf16={use_bf16} contradicts the configuration's compute_dtype {config.compute_dtype}")
        return own

    def train(self, train_data: object, num_steps: int | None = None, batch_size_per_chip: int | None = None,
              on_step: Callable[[dict[str, float]], object] | None = None) -> list[float]:
        """Like Trainer.train, but first prints the plan for the TPU that the configuration names."""
        if self.tpu is not None:
            print(self.plan(batch_size_per_chip), flush=True)
        return super().train(train_data, num_steps, batch_size_per_chip, on_step)

    def plan(self, batch_size_per_chip: int | None = None) -> str:
        """The modelled figures of training this model on the TPU of the configuration, and the assumptions, in a few lines."""
        if self.tpu is None:
            raise ValueError("TPUTrainer.plan: the configuration names no TPU; give a TPUConfig")
        sizes = _describe(self._made, "TPUTrainer.plan")
        if batch_size_per_chip is None:
            batch = max(self._fields["batch"] // len(_jax.devices()), 1)
        else:
            batch = int(require_number("TPUTrainer.plan", "batch_size_per_chip", batch_size_per_chip, least=1))
        request = {"model": sizes, "tpu": self.tpu, "sequence": self._fields["length"], "batch_per_device": batch}
        memory, step = _core.tpu.plan_memory(request), _core.tpu.plan_step(request)
        here = _jax.devices()
        return (f"modelled for {self.tpu}, {batch} sequences of {self._fields['length']} on a chip, every layer as attention and MLP: "
                f"{step['seconds']:.4g} s a step, {step['tokens_per_second']:.0f} tokens/s, "
                f"{memory['total_gib']:.3f} of {memory['limit_gib']} GiB on a device\n"
                f"{_assumed(sizes)}"
                f"nothing runs on a TPU: training runs here, on {len(here)} {here[0].platform} device{'s' if len(here) > 1 else ''}")


_explain_missing(__name__)
