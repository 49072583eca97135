"""Runs a test file statement by statement: names that cannot be imported are absent, and tests that do not need them run."""
import ast
import importlib
import sys
import unittest

import absent
import infrastructure
import modules

errors = []  # (line, name, text) of statements that failed


def _stored_names(statement):
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    names = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.alias):
            names.append((node.asname or node.name).split(".")[0])
    return names


def _is_harmless(statement):
    """True if a statement cannot fail, or must not be nested in another."""
    return (isinstance(statement, ast.Pass) or isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            or isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            or isinstance(statement, ast.FunctionDef) and not statement.decorator_list)


def _guarded(statements, in_class=False):
    """The statements, each in a `try` that calls `_failed_` for the names it would have bound."""
    result = []
    for statement in statements:
        if _is_harmless(statement):
            result.append(statement)
            continue
        parts = [statement]
        if isinstance(statement, ast.ImportFrom):  # one name at a time
            parts = [ast.copy_location(ast.ImportFrom(statement.module, [name], statement.level), statement) for name in statement.names]
        elif isinstance(statement, ast.ClassDef):
            statement.body = _guarded(statement.body, True)
        for part in parts:
            is_test = in_class and isinstance(part, ast.FunctionDef)
            lines = [f"{name} = _failed_({name!r}, _error_, {part.lineno}, {is_test})" for name in _stored_names(part)]
            lines = lines or [f"_failed_(None, _error_, {part.lineno}, False)"]
            guard = ast.parse("try:\n  pass\nexcept Exception as _error_:\n  " + "\n  ".join(lines)).body[0]
            guard.body = [part]
            for node in ast.walk(ast.Module(guard.handlers, [])):
                if hasattr(node, "lineno"):
                    node.lineno = node.end_lineno = part.lineno
                    node.col_offset = node.end_col_offset = 0
            result.append(ast.fix_missing_locations(ast.copy_location(guard, part)))
    return result


def _failed(name, error, line, is_test):
    """The placeholder of a name that a statement could not define."""
    if isinstance(error, unittest.SkipTest):
        raise error
    text = f"{type(error).__name__}: {str(error)[:200]}"
    errors.append((line, name, text))
    if is_test and name.startswith("test"):
        def test(self):
            raise absent.MissingFeature(f"test was not defined, line {line}: {text}")
        test.__name__ = name
        return test
    return absent.absent(f"<line {line}: {text}>.{name}")


def run(path, namespace):
    """Defines the tests of a file in a namespace."""
    infrastructure.install()
    with absent.importing():
        for name in ("core", "extend.core", "experimental", "scipy.stats", "interpreters.ad"):
            importlib.import_module("capibara.jax." + name)
        modules.permit_absent_names()
        with open(path) as file:
            tree = ast.parse(file.read(), path)
        tree.body = _guarded(tree.body)
        namespace.update(__file__=path, _failed_=_failed)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))
        exec(compile(tree, path, "exec"), namespace)
