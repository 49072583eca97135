"""Random number generators defined in Python: PRNGImpl, arrays of their keys, and functions of jax.random on these.

philox2x32, philox4x32 and threefry4x32 are such generators, with jax's use of keys and counters.
"""
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from capibara import _core, _dtypes
from capibara._types import ShapeDtypeStruct
from capibara.jax import _api, lax, numpy as jnp, random, tree_util
from capibara.jax._random_blocks import philox2x32_p, philox4x32_p, threefry4x32_p
from capibara.jax.custom_derivatives import custom_jvp


class PRNGImpl(NamedTuple):
    """A generator: the shape of a key's uint32 words, and functions of the words of one key."""

    key_shape: tuple[int, ...]
    seed: Callable  # of an integer: words
    split: Callable  # of words, shape: words [*shape, *key_shape]
    random_bits: Callable  # of words, width in bits, shape: unsigned integers
    fold_in: Callable  # of words, an integer: words
    name: str = "<unnamed>"
    tag: str = "?"

    def __hash__(self) -> int:
        return hash(self.tag)

    def __str__(self) -> str:
        return self.tag


class PRNGSpec:
    """What jax.random.key_impl returns for a generator without a registered name; taken as `impl` by functions of jax.random."""

    def __init__(self, impl: PRNGImpl):
        self._impl = impl

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PRNGSpec) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


class GeneratorKeyType(_dtypes.KeyType):
    """The dtype of keys of a generator defined in Python."""

    def __init__(self, impl):
        self.name = f"key<{impl.tag}>"
        self._impl = impl
        self.itemsize = 4 * math.prod(impl.key_shape)

    def __eq__(self, other):
        return isinstance(other, GeneratorKeyType) and self._impl == other._impl

    def __hash__(self):
        return hash(("GeneratorKeyType", self.name))


def define_prng_impl(*, key_shape: Sequence[int], seed: Callable[[Any], Any], split: Callable[[Any, tuple[int, ...]], Any],
                     random_bits: Callable[[Any, int, tuple[int, ...]], Any], fold_in: Callable[[Any, Any], Any],
                     name: str = "<unnamed>", tag: str = "?") -> PRNGSpec:
    """A generator for jax.random, from functions of the uint32 words of one key: `impl` of jax.random.key and wrap_key_data.

    seed(integer), split(words, shape), random_bits(words, bit_width, shape) and fold_in(words, integer).
    """
    return PRNGSpec(PRNGImpl(tuple(key_shape), seed, split, random_bits, fold_in, name, tag))


prngs = {}  # generators by the name that `impl` takes


def register_prng(impl):
    """Makes a generator known by its name."""
    if impl.name in prngs or impl.name in BUILT_IN:
        raise ValueError(f"PRNG with name {impl.name} already registered: {impl}")
    prngs[impl.name] = impl


BUILT_IN = ("threefry2x32", "rbg", "unsafe_rbg")


def _refuse(operation):
    def refused(self, other):
        dtype = other.dtype if hasattr(other, "dtype") else jnp.result_type(other)
        raise TypeError(f"{operation} does not accept dtypes {self.dtype}, {dtype}.")
    return refused


@tree_util.register_pytree_node_class
class KeyArray:
    """An array of keys of a generator defined in Python: a tree with one leaf, the words of the keys [*shape, *key_shape]."""

    __hash__ = None  # type: ignore[assignment]
    __add__ = __radd__ = _refuse("add")
    __sub__ = __rsub__ = _refuse("sub")
    __mul__ = __rmul__ = _refuse("mul")
    __truediv__ = __rtruediv__ = _refuse("div")
    __mod__ = __rmod__ = _refuse("rem")
    __pow__ = __rpow__ = _refuse("pow")
    __xor__ = __rxor__ = _refuse("xor")

    def __init__(self, impl, words):
        self._impl, self._base_array = impl, words

    def tree_flatten(self):
        return (self._base_array,), self._impl

    @classmethod
    def tree_unflatten(cls, impl, children):
        return cls(impl, *children)

    @property
    def dtype(self):
        return GeneratorKeyType(self._impl)

    @property
    def shape(self):
        return self._base_array.shape[:self.ndim]

    @property
    def ndim(self):
        return self._base_array.ndim - len(self._impl.key_shape)

    size = property(lambda self: math.prod(self.shape))
    T = property(lambda self: self.transpose())
    sharding = property(lambda self: self._base_array.sharding)

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        return self._moved(lambda words: words[index])

    def __repr__(self):
        if isinstance(self._base_array, _core.Tracer):
            return f"<keys of {self._impl.name} {self.dtype}{list(self.shape)} over {self._base_array!r}>"
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{np.asarray(self._base_array)}"

    def __eq__(self, other):
        if not isinstance(other, KeyArray) or other._impl != self._impl:
            return NotImplemented
        axes = tuple(range(-len(self._impl.key_shape), 0))
        return (self._base_array == other._base_array).all(axis=axes)

    def __array__(self, *_args, **_kwargs):
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) if you wish to "
                        "extract the underlying integer array.")

    def _moved(self, function):
        """The keys moved by a function of arrays: applied to each word."""
        words = self._base_array.reshape(*self.shape, -1)
        words = _api.vmap(function, in_axes=-1, out_axes=-1)(words)
        return KeyArray(self._impl, words.reshape(*words.shape[:-1], *self._impl.key_shape))

    def reshape(self, *shape):
        return self._moved(lambda words: words.reshape(*shape))

    def transpose(self, *axes):
        return self._moved(lambda words: words.transpose(*axes))

    def squeeze(self, axis=None):
        return self._moved(lambda words: jnp.squeeze(words, axis))

    def flatten(self):
        return self.reshape(-1)

    ravel = flatten

    def astype(self, dtype):
        if dtype == self.dtype:
            return self
        raise TypeError(f"Cannot convert keys of type {self.dtype} to {dtype}; jax.random.key_data returns their words")

    def block_until_ready(self):
        self._base_array.block_until_ready()
        return self


def wrap(impl, words):
    """Keys from their words."""
    words, count = jnp.asarray(words), len(impl.key_shape)
    if words.ndim < count or words.shape[words.ndim - count:] != tuple(impl.key_shape):
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.shape to end with {impl.key_shape}; got "
                        f"shape={words.shape} for impl={impl}")
    if words.dtype != np.uint32:
        raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype={words.dtype}")
    return KeyArray(impl, words)


def seeded(impl, seed):
    """The key of an integer; keys for an array of integers."""
    seeds = jnp.asarray(np.int64(seed) if isinstance(seed, int) else seed)
    if not jnp.issubdtype(seeds.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    return wrap(impl, _for_each(impl.seed, seeds.ndim)(seeds))


def _for_each(function, *ranks):
    """A function of single elements, applied to arrays of equal rank, or of rank 0, by vmap."""
    rank = max(ranks)
    if any(own not in (0, rank) for own in ranks):
        raise TypeError(f"keys and data must have the same rank, got {ranks}")
    for _ in range(rank):
        function = _api.vmap(function, in_axes=tuple(0 if own else None for own in ranks))
    return function


def _generator(given):
    """The generator that an argument `impl` or `dtype` names, None for those of the library."""
    if isinstance(given, PRNGSpec):
        return given._impl
    if isinstance(given, PRNGImpl):
        return given
    if isinstance(given, GeneratorKeyType):
        return given._impl
    if isinstance(given, str) and given not in BUILT_IN:
        if given not in prngs:
            names = ", ".join(f'"{name}"' for name in (*BUILT_IN, *prngs))
            raise ValueError(f'unrecognized PRNG implementation "{given}". Did you mean one of: {names}?')
        return prngs[given]
    return None


def _is_keys(value):
    return isinstance(value, KeyArray)


_MISSING = object()


def _check_is_key(function, args, kwargs):
    """Raises jax's error for a first argument that cannot be a key, with a hint."""
    if next(iter(function.__signature__.parameters), None) not in ("key", "keys"):
        return
    given = args[0] if args else kwargs.get("key", kwargs.get("keys", _MISSING))
    if given is _MISSING or hasattr(given, "shape"):
        return
    is_number = isinstance(given, (bool, int, float, complex))
    raise TypeError((f"JAX encountered invalid PRNG key data: expected a key, got {given!r}" if is_number else
                     f"unexpected PRNG key type {type(given)}") + f" (first argument of {function.__name__}).\n"
                    "Hint: make a key of a number by jax.random.key(number), and new keys of it by jax.random.split.")


def call(function, args, kwargs):
    """A call of jax.random for keys defined here; NotImplemented if no argument belongs to them."""
    name = function.__name__
    if name not in ("key", "PRNGKey", "key_dtype", "wrap_key_data") and not any(map(_is_keys, (*args, *kwargs.values()))):
        _check_is_key(function, args, kwargs)
        return NotImplemented
    try:
        given = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return NotImplemented
    given.apply_defaults()
    values = given.arguments
    if name in ("key", "PRNGKey", "key_dtype", "wrap_key_data"):
        specs = {parameter: values[parameter] for parameter in ("impl", "impl_spec", "dtype") if values.get(parameter) is not None}
        if len(specs) != 1:
            return NotImplemented
        parameter, spec = next(iter(specs.items()))
        value = next(iter(values.values()))
        impl = _generator(spec)
        if impl is None:
            known = spec if isinstance(spec, str) and parameter == "dtype" else getattr(spec, "name", None)
            if known in BUILT_IN:  # by another form of its name
                return function(known) if name == "key_dtype" else function(value, impl=known)
            if parameter != "dtype" and not isinstance(spec, str):
                raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
            return NotImplemented
        if name == "key_dtype":
            return GeneratorKeyType(impl)
        if name == "wrap_key_data":
            return wrap(impl, value)
        if np.ndim(value):
            raise TypeError(f"{name} accepts a scalar, but was given an array of shape {np.shape(value)} != (). Use jax.vmap for batching")
        keys = seeded(impl, value)
        return keys._base_array if name == "PRNGKey" else keys
    key = next(value for value in values.values() if _is_keys(value))
    impl = key._impl
    if name == "key_impl":
        return impl.name if prngs.get(impl.name) == impl else PRNGSpec(impl)
    if name == "key_data":
        return key._base_array
    if name == "clone":
        return KeyArray(impl, key._base_array)
    if key.ndim:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {key.shape} != (). Use jax.vmap for batching.")
    if name == "split":
        shape = values["num"]
        shape = (int(shape),) if hasattr(shape, "__index__") else tuple(map(int, shape))
        return wrap(impl, impl.split(key._base_array, shape))
    if name == "fold_in":
        data = jnp.asarray(np.uint32(values["data"]) if isinstance(values["data"], int) else values["data"])
        if data.ndim:
            raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {data.shape} != (). Use jax.vmap for batching.")
        return wrap(impl, impl.fold_in(key._base_array, data))
    return _drawn(function, name, given, key)


def _drawn(function, name, given, key):
    """A draw as the library makes it from a key of its own, with the generator's bits: its program, evaluated on words."""
    places = [place for place, value in given.arguments.items() if value is key]
    if len(places) != 1 or sum(map(_is_keys, given.arguments.values())) != 1:
        raise TypeError(f"{name}: expected one key, got {sum(map(_is_keys, given.arguments.values()))}")

    def draw(stand_in):
        given.arguments[places[0]] = stand_in
        return function(*given.args, **given.kwargs)
    program, types = _api.make_jaxpr(draw, return_shape=True)(ShapeDtypeStruct((), random.key_dtype("threefry2x32")))
    leaves, tree = tree_util.tree_flatten(types)
    results = _evaluate(name, key._impl, program, [key._base_array])
    results = [KeyArray(key._impl, value) if _is_key_type(leaf) else value for value, leaf in zip(results, leaves)]
    return tree_util.tree_unflatten(tree, results)


def _is_key_type(value):
    return isinstance(getattr(value, "dtype", None), _dtypes.KeyType)


def _evaluate(name, impl, closed, arguments):
    """The outputs of a program in which keys are words of this generator."""
    jaxpr, known = closed.jaxpr, {}

    def read(atom):
        return atom.val if hasattr(atom, "val") else known[atom]
    for variable, value in zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *arguments), strict=True):
        known[variable] = value
    for equation in jaxpr.eqns:
        values = [read(atom) for atom in equation.invars]
        for variable, value in zip(equation.outvars, _apply(name, impl, equation, values), strict=True):
            known[variable] = value
    return [read(atom) for atom in jaxpr.outvars]


def _apply(name, impl, equation, values):
    primitive, params = equation.primitive.name, equation.params
    run = functools.partial(_evaluate, name, impl)
    keyed = [_is_key_type(getattr(atom, "aval", None)) for atom in (*equation.invars, *equation.outvars)]
    if primitive in ("jit", "pjit"):
        return run(params["jaxpr"], values)
    if not any(keyed):
        out = equation.primitive.bind(*values, **params)
        return out if isinstance(out, (list, tuple)) else [out]
    rank = len(equation.invars[0].aval.shape)
    if primitive == "random_bits":
        return [_for_each(lambda words: impl.random_bits(words, params["bit_width"], params["shape"]), rank)(values[0])]
    if primitive == "random_split":
        return [_for_each(lambda words: impl.split(words, params["shape"]), rank)(values[0])]
    if primitive == "random_fold_in":
        return [_for_each(impl.fold_in, rank, np.ndim(values[1]))(*values)]
    if primitive == "random_gamma":
        return [_gamma(KeyArray(impl, values[0]), values[1], params["log_space"])]
    if primitive == "while":
        split = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        held, moved, begin = values[:split[0]], values[split[0]:split[1]], values[split[1]:]
        return list(lax.while_loop(lambda carry: run(params["cond_jaxpr"], [*held, *carry])[0],
                                   lambda carry: tuple(run(params["body_jaxpr"], [*moved, *carry])), tuple(begin)))
    if primitive == "scan":
        split = params["num_consts"], params["num_consts"] + params["num_carry"]
        held, begin, xs = values[:split[0]], values[split[0]:split[1]], values[split[1]:]

        def step(carry, x):
            out = run(params["jaxpr"], [*held, *carry, *x])
            return tuple(out[:params["num_carry"]]), tuple(out[params["num_carry"]:])
        carry, ys = lax.scan(step, tuple(begin), tuple(xs), params["length"], params["reverse"])
        return [*carry, *ys]
    if primitive == "cond":
        branches = [lambda *given, branch=branch: tuple(run(branch, given)) for branch in params["branches"]]
        return list(lax.switch(values[0], branches, *values[1:]))
    if primitive.startswith("random_") or any(hasattr(value, "eqns") for value in params.values()) or not all(keyed):
        raise NotImplementedError(f"{name}: the operation {primitive} takes keys of the library's generators, got those of {impl.name}; "
                                  f"use a key with one of impl={BUILT_IN}")
    count = len(impl.key_shape)
    flat = [value.reshape(*value.shape[:value.ndim - count], -1) for value in values]
    moved = _api.vmap(lambda *words: equation.primitive.bind(*words, **params), in_axes=-1, out_axes=-1)(*flat)
    return [value.reshape(*value.shape[:-1], *impl.key_shape) for value in (moved if isinstance(moved, (list, tuple)) else [moved])]


def _random(name, key, *args):
    """A function of jax.random on a key defined here."""
    return call(getattr(random, name), (key, *args), {})


def _gamma(keys, a, log_space):
    """Gamma variates, one per element of `a`, from keys whose shape is a prefix of a's; their derivative is that of the quantile."""
    def draw(a):
        each = _for_each(lambda words: _random("split", KeyArray(keys._impl, words), math.prod(a.shape[keys.ndim:]))._base_array, keys.ndim)
        words = each(keys._base_array).reshape(-1, *keys._impl.key_shape)
        return lax.map(lambda one: _gamma_of(KeyArray(keys._impl, one[0]), one[1], log_space), (words, a.ravel())).reshape(a.shape)
    drawn = custom_jvp(draw)

    @drawn.defjvp
    def jvp(primals, tangents):
        (a,), (tangent,) = primals, tangents
        sample = drawn(a)
        value = jnp.exp(sample) if log_space else sample
        slope = lax.random_gamma_grad(a, value)
        return sample, tangent * (slope / value if log_space else slope)
    return drawn(a)


def _gamma_of(key, a, log_space):
    """One variate by Marsaglia and Tsang's rejection; below 1, `a` is raised by 1 and the result scaled by a uniform number's power."""
    one, dtype = jnp.ones((), a.dtype), a.dtype
    large = a >= 1
    d = jnp.where(large, a, a + one) - one / 3
    c = one / 3 / jnp.sqrt(d)

    def propose(state):
        key, at_x, at_u = _random("split", state[0], 3)

        def normal(inner):
            key, at = _random("split", inner[0])
            x = _random("normal", at, (), dtype)
            return key, x, one + x * c
        _, x, v = lax.while_loop(lambda inner: inner[2] <= 0, normal, (at_x, 0 * one, -one))
        return key, x * x, v * v * v, _random("uniform", at_u, (), dtype)

    def rejected(state):
        _, square, v, u = state
        return (u >= one - jnp.asarray(0.0331, dtype) * square * square) & (jnp.log(u) >= square / 2 + d * (one - v + jnp.log(v)))
    key, at = _random("split", key)
    _, _, v, _ = lax.while_loop(rejected, propose, (key, 0 * one, one, 2 * one))
    if log_space:
        power = -_random("exponential", at, (), dtype)
        return jnp.log(d) + jnp.log(v) + jnp.where(large | (power == 0), 0, power / a)
    return d * v * jnp.where(large, 1, (1 - _random("uniform", at, (), dtype)) ** (one / a))


# ---- counter-based generators -------------------------------------------------------------------------------------------

def _positions(shape):
    """The row-major position of each element as two words, the high one first."""
    if math.prod(shape) < 2**32:
        low = lax.iota(np.uint32, math.prod(shape)).reshape(shape)
        return jnp.zeros_like(low), low
    raise NotImplementedError(f"random bits of shape {shape}: arrays of 2**32 elements and more need keys of the library's generators")


def _counter_based(name, tag, block, key_words, counter_words):
    """A generator from a block function of the words of a key and of a counter."""
    zero = np.uint32(0)
    pad = (zero,) * (counter_words - 2)
    chained = name == "threefry4x32"  # seeds are keys there, counters elsewhere; wide integers use all words

    def halves(seed):
        if seed.shape:
            raise TypeError(f"PRNG key seed must be a scalar; got {seed!r}.")
        wide = seed.dtype.itemsize == 8
        high = lax.shift_right_logical(seed, jnp.asarray(32, seed.dtype)).astype(np.uint32) if wide else jnp.uint32(0)
        return high, (seed & jnp.asarray(0xFFFFFFFF, seed.dtype)).astype(np.uint32) if wide else seed.astype(np.uint32)

    def seed(value):
        high, low = halves(value)
        words = (high, low, zero, zero) + (zero,) * 4 if chained else (zero,) * key_words + (high, low) + pad
        return jnp.stack(block.bind(*words)[:key_words])

    def split(words, shape):
        return jnp.stack(block.bind(*words, *pad, *_positions(tuple(shape)))[:key_words], axis=-1)

    def fold_in(words, data):
        return jnp.stack(block.bind(*words, *pad, zero, jnp.asarray(data).astype(np.uint32))[:key_words])

    def random_bits(words, bit_width, shape):
        if bit_width not in (8, 16, 32, 64):
            raise TypeError("requires 8-, 16-, 32- or 64-bit field width.")
        out = block.bind(*words, *_positions(tuple(shape)), *pad)
        if bit_width == 64:
            high, low = (out[0] ^ out[2], out[1] ^ out[3]) if chained else out[:2]
            return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        return functools.reduce(lambda a, b: a ^ b, out).astype(f"uint{bit_width}")
    impl = PRNGImpl((key_words,), seed, split, random_bits, fold_in, name, tag)
    register_prng(impl)
    return impl


philox2x32_prng_impl = _counter_based("philox2x32", "phx2", philox2x32_p, 1, 2)
philox4x32_prng_impl = _counter_based("philox4x32", "phx4", philox4x32_p, 2, 4)
threefry4x32_prng_impl = _counter_based("threefry4x32", "fry4", threefry4x32_p, 4, 4)
