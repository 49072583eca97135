"""Finds calls whose result depends on the order in which a compiler evaluates their arguments.

C++ leaves that order open: g++ for x86_64 goes from right to left, g++ for aarch64 and clang from left to right. A call
such as `f(lax::sin(x), lax::cos(x))` therefore traces its equations in another order on another machine. This reports

- calls, constructors in parentheses and binary operators of which two or more operands trace equations;
- calls where one argument changes or moves from a variable that another one reads.

Braced lists, `&&`, `||`, `<<`, `=` and the operand left of a `.` are ordered by the language. Tracing functions are found by
following calls from `capibara::bind` and `ProgramBuilder::add_equation` back to their callers, over all files given.
Operators on values of a template's parameter type are not followed. They occur in src/lax/math, whose functions compute with
numbers, vectors and arrays alike: their expansion need not match jaxpr text of jax, and has the same value in any order.

    tools/check/evaluation_order.py [--build build/release] [--jobs N] [FILE...]

Files named on the command line are read alone, in seconds: functions that they call but do not define are then assumed to
trace if they return arrays.

Needs libclang (Debian: python3-clang-19, for the system's own python3).
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import sys
from pathlib import Path

import clang.cindex as libclang
from clang.cindex import CursorKind as Kind

ROOT = Path(__file__).resolve().parents[2]
ROOTS = {"capibara::bind", "capibara::bind1", "capibara::Trace::bind", "capibara::ProgramBuilder::add_equation"}
FOLDERS = r"(src/(?!backends/|core/runtime/|io/(?:files|http)/)|python/src/).*\.cpp$"  # code that traces; backends only evaluate
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.CONVERSION_FUNCTION, Kind.FUNCTION_TEMPLATE}
ORDERED_OPERATORS = {"&&", "||", ",", "<<", ">>", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "[]", "->", "()"}
CHANGING = {Kind.UNARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR}
CHANGES = {"++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
REFERENCES = {libclang.TypeKind.LVALUEREFERENCE, libclang.TypeKind.RVALUEREFERENCE}
# A value of these types returned by a std::function or a virtual function is assumed to be traced.
TRACED = re.compile(r"\b(Array|Arrays|Atom|Var|Batched|Tree)\b")


def full_name(cursor):
    names = []
    while cursor is not None and cursor.kind != Kind.TRANSLATION_UNIT:
        if cursor.spelling and not cursor.spelling.startswith("("):
            names.append(cursor.spelling)
        cursor = cursor.semantic_parent
    return "::".join(reversed(names))


def place(cursor):
    location = cursor.location
    return f"{location.file}:{location.line}:{location.column}"


def identity(cursor):
    """One key per function: lambdas by source location, templates without their arguments."""
    if cursor.spelling == "operator()":
        parent = cursor.semantic_parent
        if parent is not None and (not parent.spelling or parent.spelling.startswith("(lambda")):
            return "lambda " + place(parent)
    template = libclang.conf.lib.clang_getSpecializedCursorTemplate(cursor)
    if template is not None and template.kind in FUNCTIONS:
        cursor = template
    return cursor.get_usr()


def path_of(cursor):
    """The variable, or the member of one, that an expression names: (key, name, member...); None for anything else."""
    while cursor is not None and cursor.kind in (Kind.UNEXPOSED_EXPR, Kind.PAREN_EXPR):
        children = list(cursor.get_children())
        cursor = children[0] if len(children) == 1 else None
    if cursor is None:
        return None
    target = cursor.referenced
    if cursor.kind == Kind.DECL_REF_EXPR and target is not None and target.kind in (Kind.VAR_DECL, Kind.PARM_DECL):
        return target.get_usr() or place(target), target.spelling
    if cursor.kind == Kind.MEMBER_REF_EXPR and target is not None:
        base = next(cursor.get_children(), None)
        path = ("this", "this") if base is None else path_of(base)
        return path + (target.spelling,) if path and target.kind == Kind.FIELD_DECL else path
    if cursor.kind == Kind.ARRAY_SUBSCRIPT_EXPR or cursor.kind == Kind.CALL_EXPR and cursor.spelling == "operator[]":
        return path_of(next(cursor.get_children(), None))
    return None


def paths_changed_by(call):
    """What a call to our own code may change: the object of a non-const method, and arguments taken by reference."""
    target = call.referenced
    if target is None or target.kind not in (Kind.FUNCTION_DECL, Kind.CXX_METHOD) or not full_name(target).startswith("capibara::"):
        return set()
    changed = set()
    if target.kind == Kind.CXX_METHOD and not target.is_static_method() and not target.is_const_method():
        callee = next(call.get_children(), None)
        if callee is not None and callee.kind == Kind.MEMBER_REF_EXPR:
            changed.add(path_of(callee))
    if not libclang.conf.lib.clang_getSpecializedCursorTemplate(target):
        for parameter, argument in zip(target.get_arguments(), call.get_arguments()):
            if parameter.type.kind == libclang.TypeKind.LVALUEREFERENCE and not parameter.type.get_pointee().is_const_qualified():
                changed.add(path_of(argument))
    return changed - {None}


def changing_operator(cursor, children):
    """The operator of an assignment or of an increment."""
    tokens = [token.spelling for token in cursor.get_tokens()]
    if cursor.kind == Kind.UNARY_OPERATOR:
        return next((token for token in (tokens[:1] + tokens[-1:]) if token in CHANGES), "")
    start = children[0].extent.end.offset
    return next((token.spelling for token in cursor.get_tokens() if token.extent.start.offset >= start and token.spelling != ")"), "")


class File:
    """The facts from one translation unit: the call graph, and the calls whose operands have to be checked."""

    def __init__(self, path, arguments, text=None):
        self.calls = {}  # function -> set of functions called
        self.names = {}  # function -> full name
        self.defined = set()
        self.returns_arrays = set()
        self.sites = []  # (place, text, [what each operand calls], [names changed and read])
        self.texts = {}
        unsaved = [(str(path), text)] if text is not None else None
        unit = libclang.Index.create().parse(str(path), args=arguments, unsaved_files=unsaved)
        self.errors = [str(d) for d in unit.diagnostics if d.severity >= libclang.Diagnostic.Error]
        self.headers = text is not None
        self.main = str(path)
        self.known = {}
        for child in unit.cursor.get_children():
            if self.is_asked(child):
                self.walk(child, None)

    def is_asked(self, cursor):
        """Headers are read once, in a unit that includes them all; other units contribute only their main file."""
        file = cursor.location.file
        if file is None:
            return False
        asked = self.known.get(file.name)
        if asked is None:
            if self.headers:
                asked = os.path.realpath(file.name).startswith(str(ROOT) + os.sep) and file.name != self.main
            else:
                asked = file.name == self.main
            self.known[file.name] = asked
        return asked

    def text(self, cursor):
        start, end = cursor.extent.start, cursor.extent.end
        if start.file is None:
            return ""
        name = start.file.name
        if name not in self.texts:
            self.texts[name] = Path(name).read_bytes() if os.path.exists(name) else b""
        return self.texts[name][start.offset:end.offset].decode(errors="replace")

    def walk(self, cursor, function):
        """Visits the tree below a cursor; returns the functions that its evaluation calls, and the names it changes and reads.

        Variables and their members are paths: ("x",), ("x", "member").
        """
        kind = cursor.kind
        outer = function
        if kind in FUNCTIONS:
            if not cursor.is_definition():
                return set(), set(), set()
            function = identity(cursor)
            self.names[function] = full_name(cursor)
            self.defined.add(function)
        elif kind == Kind.LAMBDA_EXPR:
            function = "lambda " + place(cursor)
            self.names[function] = function
        children = list(cursor.get_children())
        below = [self.walk(child, function) for child in children]
        if kind in FUNCTIONS:
            return set(), set(), set()
        called, changed, read = (set().union(*(part[i] for part in below)) for i in range(3))
        if kind == Kind.LAMBDA_EXPR:
            # Its body is evaluated where it is called; passed to a function, it counts as called there.
            return {"handed " + function}, changed, read
        if kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR):
            path = path_of(cursor)
            if path:
                read = {path}
        elif kind in CHANGING and children and changing_operator(cursor, children) in CHANGES:
            changed = changed | {path_of(children[0])} - {None}
        elif kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self.judge(cursor, below, self.operator_between(cursor, children))
        elif kind == Kind.CALL_EXPR:
            self.judge_call(cursor, children, below)
            callee = self.callee(cursor)
            if callee:
                called.add(callee)
                if outer:
                    self.calls.setdefault(outer, set()).add(callee)
                if self.names.get(callee) == "std::move":
                    path = path_of(next(cursor.get_arguments(), None))
                    changed = changed | ({path} if path else read)
            changed = changed | paths_changed_by(cursor)
            target = cursor.referenced
            if target is None or target.kind != Kind.CONSTRUCTOR:
                called = {name.removeprefix("handed ") for name in called}
                if outer:
                    self.calls.setdefault(outer, set()).update(name for name in called if name.startswith("lambda "))
        return called, changed, read

    def callee(self, call):
        """The function that a call calls; `?name` if that is known only when a template is instantiated."""
        target = call.referenced
        if target is not None and target.kind in FUNCTIONS:
            key = identity(target)
            if key not in self.names:
                self.names[key] = full_name(target)
            opaque = self.names[key] == "std::function::operator()" or target.is_virtual_method()
            arrays = TRACED.search(call.type.spelling)
            if opaque and arrays:
                return "!opaque"
            if arrays and target.kind != Kind.CONSTRUCTOR and not target.semantic_parent.kind == Kind.CLASS_DECL:
                self.returns_arrays.add(key)
            return key
        if target is not None and target.kind in (Kind.VAR_DECL, Kind.PARM_DECL, Kind.FIELD_DECL):  # a function pointer
            return "!opaque" if TRACED.search(call.type.spelling) else None
        child = next(call.get_children(), None)
        if not call.spelling and (child is None or not re.match(r"\s*[(<]", self.text(call)[len(self.text(child)):])):
            return None  # an operator on values of a template's parameter type
        name = call.spelling or child.spelling
        return "?" + name if name else None

    def operator_between(self, cursor, children):
        end, start = children[0].extent.end.offset, children[1].extent.start.offset
        for token in cursor.get_tokens():
            if end <= token.extent.start.offset < start and token.spelling not in ("(", ")"):
                return token.spelling
        return ""

    def judge_call(self, call, children, below):
        parts = {child.hash: part for child, part in zip(children, below)}
        target, name = call.referenced, call.spelling or ""
        arguments = list(call.get_arguments())
        parameters = list(target.get_arguments()) if target is not None and target.kind in FUNCTIONS else []
        parameters = [None] * (len(arguments) - len(parameters)) + parameters  # the object of an operator comes first
        operands = []
        for argument, parameter in zip(arguments, parameters):
            if argument.hash not in parts:
                continue
            called, changed, read = parts[argument.hash]
            if parameter is not None and parameter.type.kind in REFERENCES and path_of(argument):
                changed, read = set(), set()  # a variable passed by reference is read in the function, after all operands
            operands.append((called, changed, read))
        operator = name[8:].strip() if re.match(r"operator[^\w\s]", name) else ""
        if operator == "()":
            operands = operands[1:]  # the function itself comes first
            operator = ""
        elif not operator and (not name or target is not None and target.kind == Kind.CONSTRUCTOR):
            if self.text(call).endswith("}"):
                return
        self.judge(call, operands, operator)

    def judge(self, cursor, operands, operator):
        if len(operands) < 2 or operator in ORDERED_OPERATORS:
            return
        clash = set()
        for i, (_, changed, _) in enumerate(operands):
            for j, (_, _, read) in enumerate(operands):
                if i != j:
                    clash |= {".".join(max(one, other, key=len)[1:]) for one in changed for other in read
                              if one[:len(other)] == other[:len(one)]}
        if clash or sum(1 for called, _, _ in operands if called) >= 2:
            calls = [sorted(called) for called, _, _ in operands]
            self.sites.append((place(cursor), " ".join(self.text(cursor).split())[:160], calls, sorted(clash)))


def arguments_of(entry):
    kept, words = [], entry.get("arguments") or shlex.split(entry["command"])
    words = iter(words)
    for word in words:
        if word in ("-I", "-isystem", "-D", "-include"):
            value = next(words)
            if word != "-include":
                kept += [word, value]
        elif word.startswith(("-I", "-D", "-std", "-fno-rtti")):
            kept.append(word)
    return kept + ["-w", "-ferror-limit=0"]


def headers_unit(arguments):
    """A unit that includes every header, compiled like one of the others."""
    headers = [path for folder in ("include", "src") for path in sorted((ROOT / folder).rglob("*.h"))]
    kept = [path for path in headers if not re.search(r"/src/(backends/(cpu|cuda|lapack|pjrt)|core/runtime|io/(files|http))/", str(path))]
    text = "".join(f'#include "{path}"\n' for path in kept)
    return ROOT / "headers.cpp", arguments, text


def read(job):
    file = File(*job)
    return file.calls, file.names, file.sites, file.errors, file.returns_arrays - file.defined


def traces(calls, names, assumed=frozenset()):
    """Every function from which a root can be reached."""
    callers = {}
    for caller, called in calls.items():
        for name in called:
            callers.setdefault(name, set()).add(caller)
    found = {key for key, name in names.items() if name in ROOTS} | {"!opaque"} | assumed
    pending = list(found)
    while pending:
        key = pending.pop()
        # A call in a template is known by its function's name only.
        by_name = "?" + names.get(key, "").rsplit("::", 1)[-1]
        for caller in callers.get(key, set()) | callers.get(by_name, set()):
            if caller not in found:
                found.add(caller)
                pending.append(caller)
    return found


def units(options):
    """The files to read: those requested, or all that trace, each with the arguments of its target.

    A target compiles its sources in batches, so sources have no entries of their own.
    """
    commands = json.loads((ROOT / options.build / "compile_commands.json").read_text())
    arguments = {}
    for entry in commands:
        target = re.search(r"CMakeFiles/(\w+)\.dir/", entry["command"])
        arguments.setdefault(target[1] if target else "", arguments_of(entry))
    core = arguments["capibara_core"]
    if options.files:
        return [(Path(file).resolve(), core) for file in options.files]
    traced = [path for folder in ("src", "python/src") for path in sorted((ROOT / folder).rglob("*.cpp"))
              if re.match(FOLDERS, os.path.relpath(path, ROOT))]
    python = arguments.get("capibara_python", core)
    return [(path, python if "/python/src/" in str(path) else core) for path in traced] + [headers_unit(core)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="where compile_commands.json is")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--explain", action="store_true", help="say what each operand calls")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    jobs = units(options)
    calls, names, sites, errors, assumed = {}, {}, {}, [], set()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for file_calls, file_names, file_sites, file_errors, undefined in pool.map(read, jobs):
            errors += file_errors
            names.update(file_names)
            for caller, called in file_calls.items():
                calls.setdefault(caller, set()).update(called)
            for site in file_sites:
                sites[site[:2]] = site
            if options.files:
                assumed |= undefined
    tracing = traces(calls, names, {key for key in assumed if names[key].startswith("capibara::")})
    tracing |= {"?" + names[key].rsplit("::", 1)[-1] for key in tracing if key in names}
    found = 0
    for where, text, operands, moved in sorted(sites.values(), key=lambda site: (site[0].split(":")[0], int(site[0].split(":")[1]))):
        reasons = [[key for key in called if key in tracing] for called in operands]
        if sum(1 for reason in reasons if reason) < 2 and not moved:
            continue
        found += 1
        print(f"{os.path.relpath(where, ROOT)}: {text}" + (f"  [changes and reads {', '.join(moved)}]" if moved else ""))
        if options.explain:
            for reason in reasons:
                print("    " + ", ".join(names.get(key, key) for key in reason))
    for error in errors[:20]:
        print("clang:", error, file=sys.stderr)
    print(f"{found} calls depend on the order of their operands, in {len(jobs)} files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
