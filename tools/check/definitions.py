"""Functions that a header of one room declares and another room defines, found in the text of src/."""

import re

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
                     re.DOTALL | re.MULTILINE)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*$")
CLASS = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct)\s+(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)\s*)?(\w+)", re.DOTALL)
CALLED = re.compile(r"([A-Za-z_~][\w:~]*|operator\s*\S{1,3})\s*$")
NO_FUNCTION = re.compile(r"^(using|typedef|static_assert|extern\s+template|friend)\b")


def scan(text):
    """(kind, namespace, name) of functions declared and defined, and classes defined, outside of classes and functions."""
    text = SKIPPED.sub(" ", text)
    spaces, start, depth, is_value = [], 0, 0, False
    for at, letter in enumerate(text):
        if letter not in "{};" or (depth and letter == ";"):
            continue
        head = text[start:at].strip()
        if depth:
            depth += {"{": 1, "}": -1}[letter]
            if depth == 0 and not is_value:
                start = at + 1
        elif letter == "{" and (space := NAMESPACE.match(head)):
            spaces.append(space[1] or "(own)")
            start = at + 1
        elif letter == "}":
            spaces.pop()
            start = at + 1
        elif letter == "{":
            depth, is_value = 1, head.endswith("=") or head.count("(") > head.count(")")  # initializer of a variable or a parameter
            if is_value:
                continue
            if found := CLASS.match(head):
                yield "class", "::".join(spaces), found[1]
            elif name := function_name(head):
                yield "defined", "::".join(spaces), name
        else:
            start = at + 1
            if name := function_name(head):
                yield "declared", "::".join(spaces), name


def function_name(head):
    """The name that a declaration declares, if it is a function."""
    if NO_FUNCTION.match(head) or "(" not in head:
        return None
    head = without_template(head)
    before = head[:head.index("(")]
    name = CALLED.search(before)
    if not name or "=" in before.replace("operator", "") or not before[:name.start()].strip():
        return None
    return name[1]


def without_template(head):
    """A declaration without its template parameter list."""
    if not head.startswith("template"):
        return head
    depth = 0
    for at, letter in enumerate(head):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == ">" and depth == 0:
            return head[at + 1:].strip()
    return head


def defined_elsewhere(texts):
    """Complaints about {file of src: text}; src/assembly may define functions that lower rooms declare: that is its purpose."""
    declared, classes, defined = {}, {}, {}
    for name, text in texts.items():
        room = name.split("/")[1]
        for kind, space, what in scan(text):
            if "(own)" in space:
                continue
            full = f"{space}::{what}"
            if kind == "class" and name.endswith(".h"):
                classes.setdefault(full, set()).add(room)
            elif kind == "declared":
                declared.setdefault(full, []).append((name, room))
            elif kind == "defined":
                defined.setdefault(full, {})[room] = name
    found = []
    for full, headers in declared.items():
        rooms = defined.get(full, {})
        for header, room in headers:
            if rooms and room not in rooms and "assembly" not in rooms:
                found.append(f"{header}: declares {full.split('::')[-1]}, which {next(iter(rooms.values()))} defines")
    for full, rooms in defined.items():
        owners = classes.get(full.rpartition("::")[0])
        found += [f"{name}: defines {full}, whose class is in {', '.join(sorted(owners))}" for room, name in rooms.items()
                  if owners and room not in owners and room != "assembly"]
    return sorted(found)
