"""Numbers that say where they come from."""


class Figure(float):
    """A float with its origin: "modelled ...", "compiled ..." or "measured ..."."""

    def __new__(cls, value, origin):
        made = super().__new__(cls, value)
        made.origin = origin
        return made

    def __repr__(self):
        return f"{float(self)!r} ({self.origin})"
