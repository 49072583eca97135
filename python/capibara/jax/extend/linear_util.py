"""jax.extend.linear_util: functions wrapped for tracing, and functions that transform them."""
import functools

from capibara import _core
from capibara._modules import explain_missing


class StoreException(Exception):
    """A store was read before it was set, or set twice."""


class Store:
    """One value that a transformation stores for its caller."""

    def __init__(self):
        self._values = []

    def store(self, value):
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(value)

    def reset(self):
        self._values.clear()

    @property
    def val(self):
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def __bool__(self):
        return bool(self._values)


class WrappedFun:
    """A function with bound keyword parameters, a stack of transformations, and debug information."""

    def __init__(self, f, params=None, debug_info=None, transforms=(), stores=()):
        self.f, self.params, self.debug_info = f, params or {}, debug_info
        self.transforms, self.stores = transforms, stores

    @property
    def __name__(self):
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, transform, static_args, store=None):
        """The function inside one more transformation: transform(function, *static_args, *args, **kwargs)."""
        stores = self.stores if store is None else (*self.stores, store)
        return WrappedFun(self.f, self.params, self.debug_info, ((transform, static_args), *self.transforms), stores)

    def call_wrapped(self, *args, **kwargs):
        function = functools.partial(self.f, **self.params) if self.params else self.f
        for transform, static_args in reversed(self.transforms):
            function = functools.partial(transform, function, *static_args)
        return function(*args, **kwargs)

    __call__ = call_wrapped

    def _parts(self):
        return self.f, self.transforms, tuple(sorted(self.params.items()))

    def __eq__(self, other):
        return isinstance(other, WrappedFun) and self._parts() == other._parts()

    def __hash__(self):
        return hash(self._parts())


def wrap_init(f, params=None, *, debug_info=None):
    """Wraps a function for tracing."""
    return WrappedFun(f, params, debug_info)


def transformation2(gen, *rest):
    """gen(function, *static_args, *args, **kwargs) as a function of (wrapped function, *static_args)."""
    if not rest:
        return functools.partial(transformation2, gen)
    fun, *static_args = rest
    return fun.wrap(gen, tuple(static_args))


def transformation_with_aux2(gen, *rest):
    """The same for gen(function, store, *static_args, *args, **kwargs): also returns a reader of the store."""
    if not rest:
        return functools.partial(transformation_with_aux2, gen)
    fun, *static_args = rest
    store = Store()
    return fun.wrap(gen, (store, *static_args), store), lambda: store.val


def _run_generator(gen, function, *args, **kwargs):
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    return steps.send(function(*inner_args, **inner_kwargs))


def transformation(gen, *rest):
    """A generator that yields the function's (args, kwargs), is sent its result and yields its own."""
    if not rest:
        return functools.partial(transformation, gen)
    return transformation2(functools.partial(_run_generator, gen), *rest)


def transformation_with_aux(gen, *rest):
    """The same for a generator that yields (result, value to store)."""
    if not rest:
        return functools.partial(transformation_with_aux, gen)

    def run(function, store, *args, **kwargs):
        result, value = _run_generator(gen, function, *args, **kwargs)
        store.store(value)
        return result

    return transformation_with_aux2(run, *rest)


def merge_linear_aux(aux1, aux2):
    """Reads the one of two stores that was set: (True, value of the first) or (False, value of the second)."""
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both stores occupied")


def cache(call, *, explain=None, maxsize=2048):
    """call(wrapped function, *args), evaluated once for equal functions and arguments under the same configuration."""
    known = functools.lru_cache(maxsize=maxsize)(lambda fun, args, settings: (call(fun, *args), [store.val for store in fun.stores]))

    @functools.wraps(call)
    def memoized(fun, *args):
        before = known.cache_info().misses
        result, stored = known(fun, args, tuple(_core.config_values().items()))
        if known.cache_info().misses == before:  # hit: set the stores of this function object, too
            for store, value in zip(fun.stores, stored):
                store.reset()
                store.store(value)
        elif explain is not None:
            explain(fun, before > 0, memoized, args)
        return result

    memoized.cache_clear = known.cache_clear
    memoized.cache_info = known.cache_info
    return memoized


explain_missing(__name__)
