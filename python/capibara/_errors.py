"""The classes of errors: those jax users catch, all under JAXError."""
from capibara import _tracebacks


class JAXError(Exception):
    """The base of every error the library raises."""

    def get_traceback(self):
        """The frames of the user's program, as text, without those of the library."""
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
    """Axes of a mesh split the operands of an operation in a way that does not tell how its result is split."""


class KeyReuseError(JAXTypeError):
    pass


class NonConcreteBooleanIndexError(JAXIndexError):
    pass


class JaxRuntimeError(JAXError, RuntimeError):
    pass


class DistributedError(JaxRuntimeError):
    """A process of the job died, does not come to a collective, or calls another one."""


class CheckpointError(JaxRuntimeError):
    """A checkpoint that cannot be written or read: no such step, a full disk, a folder that may not be written."""


class CorruptCheckpointError(CheckpointError):
    """Files that do not hold what was saved; names the array, the file and the chunk."""


class JaxprTypeError(JAXError, TypeError):
    pass


class InconclusiveDimensionOperation(JAXError):
    pass


class TypePromotionError(JAXError, ValueError):
    pass


class InternalError(JAXError, RuntimeError):
    """A defect of capibara, not of the user's program."""


# What the core raises where jax raises a plain built-in error: caught by both names.
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
    """A configuration that no TPU has, a flag that its compiler does not know, or a request that needs one that is not here."""
