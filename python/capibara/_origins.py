"""What errors call the arguments of a traced function."""
import inspect

from capibara import _core


def argument_name(function, numbered, number):
    """The name of one leaf of a call's arguments: x, params['w'], rest[0][1]. `numbered` is the pair (args, kwargs) with
    numbers for leaves."""
    args, kwargs = numbered
    for name, value in _roots(function, args, kwargs):
        for path, leaf in _core.tree_flatten_with_path(value)[0]:
            if leaf == number:
                return name + "".join(map(str, path))
    return f"number {number}"


def _roots(function, args, kwargs):
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
