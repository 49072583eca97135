"""Results that depend on an argument, as overloads: a row writes them as a Python conditional expression.

    tuple[Array, Array] if returned else Array              a flag
    tuple[Array, ...] if full or cov else Array             one of several flags
    Array if mode == 'r' else QRResult                      one value of a text
    tuple[Array, ...] if x is None else Array               arguments that are left out together
    Array if len(arys) == 1 else list[Array]                the number of arguments
    Array if isinstance(operand, ArrayLike) else tuple      the type of an argument

The usual case comes first: checkers use it alone when a function is passed to vmap or jit.
"""
import ast
import inspect
import re

KINDS = inspect.Parameter


def cases(parameters, result):
    """[(parameters, result)]: one for each overload; a single entry for a plain result."""
    tree = ast.parse(result, mode="eval").body
    if not isinstance(tree, ast.IfExp):
        return [(parameters, result)]
    then, other, test = ast.unparse(tree.body), ast.unparse(tree.orelse), tree.test
    if isinstance(test, (ast.Name, ast.BoolOp)):
        names = [test.id] if isinstance(test, ast.Name) else [value.id for value in test.values]
        return _flags(parameters, names, then, other)
    if isinstance(test, ast.Call):
        return _type(parameters, test.args[0].id, ast.unparse(test.args[1]), then, other)
    if isinstance(test.left, ast.Call):
        return _count(parameters, test.left.args[0].id, then, other)
    if isinstance(test.ops[0], ast.Is):
        return _absent(parameters, test.left.id, then, other)
    return _value(parameters, test.left.id, ast.unparse(test.comparators[0]), then, other)


def _with(parameters, types):
    """The same parameters, some with another type."""
    return [p.replace(annotation=types[p.name]) if p.name in types else p for p in parameters]


def _required(parameters, name, kind):
    """One parameter made required: keyword-only if parameters before it may be left out."""
    at = next(i for i, p in enumerate(parameters) if p.name == name)
    by_name = any(p.default is not p.empty for p in parameters[:at])
    chosen = list(parameters)
    chosen[at] = parameters[at].replace(annotation=kind, default=KINDS.empty)
    if by_name:
        chosen[at:] = [p.replace(kind=KINDS.KEYWORD_ONLY) if p.kind is KINDS.POSITIONAL_OR_KEYWORD else p for p in chosen[at:]]
    return chosen


def _flags(parameters, names, then, other):
    default = next(p.default for p in parameters if p.name == names[0])
    usual, unusual = (then, other) if default else (other, then)
    given = [(_required(parameters, name, f"Literal[{not default}]"), unusual) for name in names]
    return [(_with(parameters, dict.fromkeys(names, f"Literal[{default}]")), usual), *given, (parameters, f"{usual} | {unusual}")]


def _value(parameters, name, value, then, other):
    """The row lists the values: `mode: Literal['reduced', 'r'] = 'reduced'`."""
    allowed = next(p.annotation for p in parameters if p.name == name)
    rest = [text for text in re.findall(r"'[^']*'", allowed) if text != value]
    usual = (_with(parameters, {name: f"Literal[{', '.join(rest)}]"}), other)
    return [usual, (_required(parameters, name, f"Literal[{value}]"), then), (_with(parameters, {name: "str"}), f"{other} | {then}")]


def _absent(parameters, name, then, other):
    at = next(i for i, p in enumerate(parameters) if p.name == name)
    together = {p.name for p in parameters[at:] if p.kind is parameters[at].kind}
    given = [p.replace(annotation=p.annotation.removesuffix(" | None"), default=KINDS.empty) if p.name in together else p
             for p in parameters]
    return [(given, other), (_with(parameters, dict.fromkeys(together, "None")), then)]


def _count(parameters, name, then, other):
    kind = next(p.annotation for p in parameters if p.name == name)
    one, two = (KINDS(own, KINDS.POSITIONAL_ONLY, annotation=kind) for own in ("first", "second"))
    return [([one], then), ([one, two, *parameters], other)]


def _type(parameters, name, kind, then, other):
    rest = next(p.annotation for p in parameters if p.name == name).removeprefix(f"{kind} | ")
    return [(_with(parameters, {name: kind}), then), (_with(parameters, {name: rest}), other)]
