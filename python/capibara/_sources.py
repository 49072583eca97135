"""Source information of equations: the scopes they were traced in, and the line of the user's program."""


class NameStack:
    """Names of scopes, outermost first; transformations wrap the scope that they transform: vmap(layer)/bias."""

    __slots__ = ("_text",)

    def __init__(self, text=""):
        self._text = text

    @property
    def stack(self):
        return tuple(self._text.split("/")) if self._text else ()

    def extend(self, name):
        return NameStack(f"{self._text}/{name}" if self._text else name)

    def __add__(self, other):
        return self.extend(str(other)) if other.stack else self

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"NameStack(stack={self.stack})"

    def __bool__(self):
        return bool(self._text)

    def __eq__(self, other):
        return isinstance(other, NameStack) and self._text == other._text

    def __hash__(self):
        return hash(self._text)


class SourceInfo:
    """The scopes and the line of an equation; as text, 'file:line (scopes)'."""

    __slots__ = ("name_stack", "file_name", "line")

    def __init__(self, scope="", file_name="", line=0):
        self.name_stack, self.file_name, self.line = NameStack(scope), file_name, line

    def replace(self, *, name_stack):
        return SourceInfo(str(name_stack), self.file_name, self.line)

    def __str__(self):
        if not self.file_name:
            return str(self.name_stack)
        place = f"{self.file_name}:{self.line}"
        return f"{place} ({self.name_stack})" if self.name_stack else place

    def __repr__(self):
        return f"SourceInfo({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, SourceInfo) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))
