"""Random number generators defined in Python: PRNGImpl, arrays of their keys, and functions of jax.random on these.

philox2x32, philox4x32 and threefry4x32 are the block functions of Random123, with jax's use of keys and counters.
"""
import functools
import inspect
import math
from typing import Any, Callable, NamedTuple

import numpy as np

from capibara import _core, _dtypes
from capibara.jax import _api, lax, numpy as jnp, tree_util


class PRNGImpl(NamedTuple):
    """A generator: the shape of a key's uint32 words, and functions of the words of one key."""

    key_shape: tuple
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

    def __init__(self, impl):
        self._impl = impl

    def __repr__(self):
        return f"PRNGSpec({self._impl.name!r})"

    def __eq__(self, other):
        return isinstance(other, PRNGSpec) and self._impl == other._impl

    def __hash__(self):
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


def define_prng_impl(*, key_shape, seed, split, random_bits, fold_in, name="<unnamed>", tag="?"):
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


@tree_util.register_pytree_node_class
class KeyArray:
    """An array of keys of a generator defined in Python: a tree with one leaf, the words of the keys [*shape, *key_shape]."""

    __hash__ = None  # type: ignore[assignment]

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

    def astype(self, dtype, *_args, **_kwargs):
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


def call(function, args, kwargs):
    """A call of jax.random for keys defined here; NotImplemented if no argument belongs to them."""
    name = function.__name__
    if name not in ("key", "PRNGKey", "key_dtype", "wrap_key_data") and not any(map(_is_keys, (*args, *kwargs.values()))):
        return NotImplemented
    try:
        given = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return NotImplemented
    given.apply_defaults()
    values = given.arguments
    if name in ("key", "PRNGKey", "key_dtype", "wrap_key_data"):
        impl = _generator(values.get("impl")) or _generator(values.get("dtype"))
        if impl is None:
            return NotImplemented
        if name == "key_dtype":
            return GeneratorKeyType(impl)
        value = next(iter(values.values()))
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
    from capibara.jax import random

    def draw(stand_in):
        given.arguments[places[0]] = stand_in
        return function(*given.args, **given.kwargs)
    program, types = _api.make_jaxpr(draw, return_shape=True)(_core_shape(random.key_dtype("threefry2x32")))
    leaves, tree = tree_util.tree_flatten(types)
    results = _evaluate(name, key._impl, program, [key._base_array])
    results = [KeyArray(key._impl, value) if _is_key_type(leaf) else value for value, leaf in zip(results, leaves)]
    return tree_util.tree_unflatten(tree, results)


def _core_shape(dtype):
    from capibara._types import ShapeDtypeStruct
    return ShapeDtypeStruct((), dtype)


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
    from capibara.jax import random
    return call(getattr(random, name), (key, *args), {})


def _gamma(keys, a, log_space):
    """Gamma variates, one per element of `a`, from keys whose shape is a prefix of a's; their derivative is that of the quantile."""
    def draw(a):
        each = _for_each(lambda words: _random("split", KeyArray(keys._impl, words), math.prod(a.shape[keys.ndim:]))._base_array, keys.ndim)
        words = each(keys._base_array).reshape(-1, *keys._impl.key_shape)
        return lax.map(lambda one: _gamma_of(KeyArray(keys._impl, one[0]), one[1], log_space), (words, a.ravel())).reshape(a.shape)
    from capibara.jax import custom_jvp
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

_PARITY = np.uint32(0x1BD11BDA)
_ROTATIONS_2 = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROTATIONS_4 = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _rotated(words, distance):
    return (words << np.uint32(distance)) | (words >> np.uint32(32 - distance))


def threefry2x32_block(k0, k1, x0, x1):
    """Threefry-2x32 with 20 rounds: two words from a key of two words and a counter of two."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for distance in _ROTATIONS_2[group % 2]:
            x0 = x0 + x1
            x1 = _rotated(x1, distance) ^ x0
        x0, x1 = x0 + keys[(group + 1) % 3], x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def threefry4x32_block(k0, k1, k2, k3, x0, x1, x2, x3):
    """Threefry-4x32 with 20 rounds."""
    keys = (k0, k1, k2, k3, k0 ^ k1 ^ k2 ^ k3 ^ _PARITY)
    x = [x0 + k0, x1 + k1, x2 + k2, x3 + k3]
    for number in range(20):
        pairs = ((0, 1), (2, 3)) if number % 2 == 0 else ((0, 3), (2, 1))
        for (a, b), distance in zip(pairs, _ROTATIONS_4[number % 8]):
            x[a] = x[a] + x[b]
            x[b] = _rotated(x[b], distance) ^ x[a]
        if number % 4 == 3:
            group = number // 4 + 1
            x = [word + keys[(group + i) % 5] for i, word in enumerate(x)]
            x[3] = x[3] + np.uint32(group)
    return tuple(x)


def philox2x32_block(key, x0, x1):
    """Philox-2x32 with 10 rounds: two words from a key of one word and a counter of two."""
    for number in range(10):
        key = key + np.uint32(0x9E3779B9) if number else key
        multiplier = jnp.full_like(x0, np.uint32(0xD256D193))
        x0, x1 = lax.mulhi(multiplier, x0) ^ key ^ x1, multiplier * x0
    return x0, x1


def philox4x32_block(k0, k1, *counter):
    """Philox-4x32 with 10 rounds: four words from a key of two words and a counter of four."""
    x0, x1, x2, x3 = counter
    for number in range(10):
        if number:
            k0, k1 = k0 + np.uint32(0x9E3779B9), k1 + np.uint32(0xBB67AE85)
        first, second = jnp.full_like(x0, np.uint32(0xD2511F53)), jnp.full_like(x2, np.uint32(0xCD9E8D57))
        x0, x1, x2, x3 = lax.mulhi(second, x2) ^ x1 ^ k0, second * x2, lax.mulhi(first, x0) ^ x3 ^ k1, first * x0
    return x0, x1, x2, x3


class _Block:
    """A block function as a primitive of jax: `bind` on words, which broadcast; `name` is that of jax's primitive."""

    multiple_results = True

    def __init__(self, name, function):
        self.name, self._count = name, len(inspect.signature(function).parameters)
        self._function = _api.jit(function)

    def bind(self, *words):
        words = [jnp.asarray(word) for word in words]
        if any(word.dtype != np.uint32 for word in words):
            raise TypeError(f"Arguments to {self.name} must have uint32 type, got {[str(word.dtype) for word in words]}")
        return list(self._function(*jnp.broadcast_arrays(*words)))

    def __repr__(self):
        return self.name


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


threefry2x32_p = _Block("threefry2x32", threefry2x32_block)
threefry4x32_p = _Block("threefry4x32", threefry4x32_block)
philox2x32_p = _Block("philox2x32", philox2x32_block)
philox4x32_p = _Block("philox4x32", philox4x32_block)
philox2x32_prng_impl = _counter_based("philox2x32", "phx2", philox2x32_p, 1, 2)
philox4x32_prng_impl = _counter_based("philox4x32", "phx4", philox4x32_p, 2, 4)
threefry4x32_prng_impl = _counter_based("threefry4x32", "fry4", threefry4x32_p, 4, 4)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The words of an array replaced by Threefry-2x32 blocks: its first half holds the first words of counters, the rest the second."""
    key = [jnp.asarray(word) for word in keypair]
    count = jnp.asarray(count)
    if any(word.dtype != np.uint32 for word in (*key, count)):
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {[str(word.dtype) for word in (*key, count)]}")
    flat = count.ravel()
    odd = flat.size % 2
    flat = jnp.concatenate([flat, jnp.zeros(odd, np.uint32)]) if odd else flat
    first, second = jnp.split(flat, 2)
    out = jnp.concatenate(threefry2x32_p.bind(*key, first, second))
    return out[:flat.size - odd].reshape(count.shape)
