"""Placeholders for names of jax that capibara does not have: a test that uses one fails, importing one fails nothing."""
import collections
import contextlib
import sys
import types
import typing


class MissingFeature(NotImplementedError):
    """A test used something that capibara does not have."""


class InternalCounter(NotImplementedError):
    """A test counts events inside XLA's pipeline, which have no counterpart here."""


asked_for = collections.Counter()  # names that were requested
_importing = [0]


@contextlib.contextmanager
def importing():
    """While a test file is imported, absent names may be called, iterated and compared."""
    _importing[0] += 1
    try:
        yield
    finally:
        _importing[0] -= 1


def is_importing():
    return bool(_importing[0])


def refuse(name):
    raise MissingFeature(f"capibara lacks {name}")


def _private(name):
    return name.startswith("__") and name.endswith("__")


class Absent:
    """A value or function that does not exist."""

    def __init__(self, path):
        vars(self).update(_path=path, __name__=path.rpartition(".")[2].strip("()"), __qualname__=path)

    def __getattr__(self, name):
        if _private(name):
            raise AttributeError(name)
        return absent(f"{self._path}.{name}")

    def __call__(self, *args, **kwargs):
        if self._path.endswith(("cache_clear", "clear_cache", "clear_caches")):
            return None  # there is no cache to clear
        if not is_importing():
            refuse(self._path)
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], Absent):
            return args[0]  # a decorator
        return absent(self._path + "()")

    def __iter__(self):
        return iter(()) if is_importing() else refuse(self._path)

    def __getitem__(self, key):
        return absent(self._path + "[]") if is_importing() else refuse(self._path)

    def __bool__(self):
        return False if is_importing() else refuse(self._path)

    def __eq__(self, other):
        return isinstance(other, Absent) and other._path == self._path

    def __hash__(self):
        return hash(self._path)

    def __repr__(self):
        return f"<absent {self._path}>"

    __mro_entries__ = lambda self, bases: (object,)  # noqa: E731
    __or__ = __ror__ = lambda self, other: typing.Any  # noqa: E731
    __enter__ = __array__ = lambda self, *args, **kwargs: refuse(self._path)  # noqa: E731
    __exit__ = lambda self, *args: False  # noqa: E731


class _AbsentType(type):
    """A class that does not exist: tests may derive from it and name it in annotations."""

    def __getattr__(cls, name):
        if _private(name):
            raise AttributeError(name)
        return absent(f"{cls._path}.{name}")

    def __call__(cls, *args, **kwargs):
        if "_path" not in vars(cls):  # derived by a test
            return super().__call__(*args, **kwargs)
        return absent(cls._path + "()") if is_importing() else refuse(cls._path)

    __iter__ = lambda cls: refuse(cls._path)  # noqa: E731
    __or__ = __ror__ = lambda cls, other: typing.Any  # noqa: E731
    __getitem__ = lambda cls, key: cls  # noqa: E731


def absent(path):
    """The placeholder of a name: a class if the name looks like one."""
    path = path.removeprefix("capibara.")
    asked_for[path] += 1
    name = path.rpartition(".")[2]
    if not name[:1].isupper() or name.isupper() or name.endswith("()"):
        return Absent(path)
    for suffixes, base in ((("Error", "Exception"), Exception), (("Warning",), Warning)):
        if name.endswith(suffixes):
            return type(name, (base,), {"_path": path})
    if name.endswith("TestCase") and "jax._src.test_util" in sys.modules:
        return sys.modules["jax._src.test_util"].JaxTestCase
    return _AbsentType(name, (), {"_path": path})


class AbsentModule(types.ModuleType):
    """A module of jax that does not exist here; `find` imports submodules that do."""

    def __init__(self, name, find):
        super().__init__(name)
        vars(self).update(__path__=[], _find=find)
        asked_for["module " + name] += 1

    def __getattr__(self, name):
        if _private(name):
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        found = self._find(path)
        return absent(path) if found is None else found
