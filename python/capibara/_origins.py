"""The names that errors give to arguments and results of a traced function."""
from capibara import _core


def argument_name(function, numbered, number):
    """The name of one leaf of a call's arguments: x, params['w'], rest[0][1]. `numbered` is (args, kwargs) with each leaf
    replaced by its index."""
    args, kwargs = numbered
    for name, value in _roots(function, args, kwargs):
        for path, leaf in _core.tree_flatten_with_path(value)[0]:
            if leaf == number:
                return name + "".join(map(str, path))
    return f"number {number}"


def _roots(function, args, kwargs):
    import inspect  # slow to import
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (ValueError, TypeError):
        return [(f"args[{i}]", value) for i, value in enumerate(args)] + [(f"kwargs[{k!r}]", v) for k, v in kwargs.items()]
    roots = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            roots += [(f"{name}[{i}]", item) for i, item in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            roots += [(f"{name}[{key!r}]", item) for key, item in value.items()]
        else:
            roots.append((name, value))
    return roots


_TWICE_FOR_VMAP = "when tracing {} for vmap the mutable array reference of type {} appeared at both {} and {}."


def refuse_repeated_ref(function, args, kwargs, what=_TWICE_FOR_VMAP):
    """Raises an error for a mutable array that is two of a call's arguments; `what` has places for the function, the type and two names."""
    leaves, structure = _core.tree_flatten((args, kwargs))
    first = {}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, _core.Ref) and first.setdefault(id(leaf), i) != i:
            numbered = structure.unflatten(list(range(len(leaves))))
            names = [argument_name(function, numbered, number) for number in (first[id(leaf)], i)]
            raise ValueError("only one reference to a mutable array may be passed as an argument to a function, but " +
                             what.format(function_in_words(function), ref_in_words(leaf), *names))


def ref_in_words(ref):
    """The type of a mutable array: Ref{float32[3]}."""
    return str(ref.aval).lstrip("~")


def function_in_words(function):
    """A function's name, and the line of its definition where it has one."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", repr(function))
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def inconsistent_sizes(function, numbered, found, axis_size):
    """vmap's error message for inconsistent axis sizes; `found` holds (leaf, axis, size, type) of every mapped leaf."""
    groups = {}
    for leaf, axis, size, kind in found:
        groups.setdefault(size, []).append(f"axis {axis} of {_argument_in_words(function, numbered, leaf)} of type {kind}")
    lines = [] if axis_size is None else [f"  * the `axis_size` argument was {axis_size}"]
    groups = sorted(groups.items(), key=lambda group: -len(group[1]))
    for position, (size, places) in enumerate(groups):
        if len(places) == 1:
            lines.append(f"  * one axis had size {size}: {places[0]}")
        else:
            lines.append(f"  * {'most' if position == 0 else 'some'} axes ({len(places)} of them) had size {size}, e.g. {places[0]}")
    return "vmap got inconsistent sizes for array axes to be mapped:\n" + ";\n".join(lines)


def _argument_in_words(function, numbered, leaf):
    args, kwargs = numbered
    for name, value in kwargs.items():
        for path, number in _core.tree_flatten_with_path(value)[0]:
            if number == leaf:
                return f"kwargs[{name!r}]" + "".join(map(str, path))
    return f"argument {argument_name(function, (args, kwargs), leaf)}"


def not_a_prefix(name, prefix, full):
    """The error message for a specification that is not a prefix of its tree."""
    from capibara._tree_errors import prefix_errors
    errors = prefix_errors(prefix, full, lambda x: x is None)
    text = f"{name} specification must be a tree prefix of the corresponding value; "
    if not errors:
        return f"{text}got specification {prefix!r} for value tree {_core.tree_structure(full)}"
    return f"{text}\n  Mismatch details ({len(errors)} found):\n  " + "\n  ".join(str(error(name)) for error in errors)


def result_place(numbered, number, name="component "):
    """The position of a leaf in a result, in words; empty if the leaf is the result itself."""
    for path, leaf in _core.tree_flatten_with_path(numbered)[0]:
        if leaf == number and path:
            return f" at output {name}{''.join(map(str, path))}"
    return ""
