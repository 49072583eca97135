"""The error classes that jax users catch, all derived from JAXError."""
from capibara import _tracebacks


class JAXError(Exception):
    """The base class of every error that the library raises."""

    def get_traceback(self):
        """The user's frames of the traceback as text, without those of the library."""
        import traceback
        frames = [(frame, line) for frame, line in traceback.walk_tb(self.__traceback__) if not _tracebacks.is_internal(frame)]
        return "".join(traceback.StackSummary.extract(iter(frames)).format())


class JAXTypeError(JAXError, TypeError):
    pass


class JAXIndexError(JAXError, IndexError):
    pass


class ConcretizationTypeError(JAXTypeError):
    pass


class TracerBoolConversionError(ConcretizationTypeError):
    pass


class TracerArrayConversionError(JAXTypeError):
    pass


class TracerIntegerConversionError(JAXTypeError):
    pass


class UnexpectedTracerError(JAXTypeError):
    pass


class ShardingTypeError(JAXError):
    """The mesh axes that split an operation's operands do not determine how its result is split."""


class KeyReuseError(JAXTypeError):
    pass


class NonConcreteBooleanIndexError(JAXIndexError):
    pass


class JaxRuntimeError(JAXError, RuntimeError):
    pass


class DistributedError(JaxRuntimeError):
    """A process of the job died, did not reach a collective, or called a different one."""


class CheckpointError(JaxRuntimeError):
    """A checkpoint cannot be written or read: no such step, a full disk, a folder without write permission."""


class CorruptCheckpointError(CheckpointError):
    """Files whose contents differ from what was saved; names the array, the file and the chunk."""


class JaxprTypeError(JAXError, TypeError):
    pass


class InconclusiveDimensionOperation(JAXError):
    pass


class TypePromotionError(JAXError, ValueError):
    pass


class InternalError(JAXError, RuntimeError):
    """A bug in capibara, not in the user's program."""


# Raised by the core where jax raises a plain built-in error; can be caught as either class.
class LibraryTypeError(JAXError, TypeError):
    pass


class LibraryValueError(JAXError, ValueError):
    pass


class LibraryOverflowError(JAXError, OverflowError):
    pass


class LibraryZeroDivisionError(JAXError, ZeroDivisionError):
    pass


class LibraryIndexError(JAXError, IndexError):
    pass


class LibraryNameError(JAXError, NameError):
    pass


class LibraryFloatingPointError(JAXError, FloatingPointError):
    pass


class LibraryNotImplementedError(JAXError, NotImplementedError):
    pass


for _class in (LibraryTypeError, LibraryValueError, LibraryOverflowError, LibraryZeroDivisionError, LibraryIndexError,
               LibraryNameError, LibraryFloatingPointError,
               LibraryNotImplementedError):
    _class.__name__ = _class.__qualname__ = _class.__name__.removeprefix("Library")
    _class.__module__ = "capibara.jax.errors"


class TPUError(ValueError):
    """A configuration that no TPU has, a flag unknown to its compiler, or a request that needs a TPU that is not present."""
