"""Numbers that carry their origin and print it."""
from capibara import _notebook


class Figure(float):
    """A float with its origin: "modelled ...", "compiled ..." or "measured ..."; modelled ones print with "(modelled)" at the end."""

    def __new__(cls, value, origin):
        made = super().__new__(cls, value)
        made.origin = origin
        return made

    def __format__(self, spec):
        return format(float(self), spec) + (" (modelled)" if self.origin.startswith("modelled") else "")

    def __str__(self):
        return format(self)

    def __repr__(self):
        return f"{float(self)!r} ({self.origin})"

    def __reduce__(self):
        return Figure, (float(self), self.origin)


class Absent:
    """A missing figure with the reason: it prints as "-", is falsy, and is not a number."""

    def __init__(self, reason):
        self.reason = reason

    def __format__(self, spec):
        return "-"

    def __str__(self):
        return "-"

    def __repr__(self):
        return f"absent ({self.reason})"

    def __bool__(self):
        return False

    def __float__(self):
        raise TypeError(f"this figure is absent: {self.reason}")


class PlannedBatch(int):
    """A number of sequences with its modelling inputs: `origin`, `tpu` and `assumed`."""

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


def with_figures(answer, *names):
    """Replaces (value, origin) by a Figure, and (None, reason) by an Absent, in an answer of the core."""
    figures = {}
    for name in names:
        value, origin = answer[name]
        figures[name] = Absent(origin) if value is None else Figure(value, origin)
    return _notebook.Report({**answer, **figures})
