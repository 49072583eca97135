"""Prints the documentation site's page of classes: the public members of those that users work with, as the public headers declare them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Subject: classes, each with its header.
CLASSES = {
    "Arrays": {"Array": "array.h", "IndexUpdate": "indexing.h"},
    "Jitted functions and their stages": {"Jitted": "jit.h", "Traced": "jit.h", "Lowered": "jit.h", "Compiled": "jit.h"},
    "Programs": {"Program": "program.h", "ProgramFunction": "exported.h", "Exported": "exported.h"},
    "Training": {"AnyModel": "model.h", "Trainer": "training/trainer.h", "Generator": "training/generate.h",
                 "Tokenizer": "training/data.h", "TokenFile": "training/data.h", "Loader": "training/data.h",
                 "BatchLoader": "training/batches.h"},
    "Files and operation": {"Checkpointer": "checkpoint.h", "SafetensorsFile": "safetensors.h", "Monitor": "monitor.h"},
}


def body_of(text, name):
    """The comment above a class, and the text between its braces."""
    start = re.search(rf"^class {name}\b[^;{{]*\{{\n", text, re.MULTILINE)
    end = text.index("\n};", start.end())
    above = re.search(r"((?:^//.*\n)*)(?:^template.*\n)?\Z", text[:start.start()], re.MULTILINE)[1]
    return re.sub(r"^// ?", "", above, flags=re.MULTILINE).strip(), text[start.end():end + 1]


def public_part(body):
    kept, shown = [], False
    for line in body.splitlines():
        access = re.fullmatch(r" (public|private|protected):", line)
        shown = access[1] == "public" if access else shown
        if shown and not access:
            kept.append(line[2:] if line.startswith("  ") else line)
    return kept


def without_initialisers(text):
    """A constructor's declaration without anything after its parameters."""
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == ":" and depth == 0 and text[at - 1:at + 2] == " : ":
            return text[:at].rstrip()
    return text


def declarations(lines):
    """Members without their bodies; comments and empty lines between them are kept."""
    found, at = [], 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or line.lstrip().startswith("//"):
            found.append(line)
            at += 1
            continue
        text, depth = [], 0
        while True:  # one member: to a semicolon outside of braces, or to the end of its body
            text.append(lines[at])
            code = re.sub(r'"[^"]*"|//.*', "", lines[at])
            depth += code.count("{") - code.count("}")
            at += 1
            ended = depth == 0 and re.search(r"(;|\})\s*(//.*)?$", text[-1])
            if ended or at == len(lines):
                break
        whole = "\n".join(text)
        remark = re.search(r" +//.*$", text[-1])
        if re.match(r"struct \w+ \{", whole):
            found += text
            continue
        if re.search(r"\) (?:const )?(?:noexcept )?(?:: .*)?\{|\)\n? +: ", whole) and not whole.rstrip().endswith("= default;"):
            head = re.split(r"(?<=\)) (?:const )?\{|(?<=const) \{", whole, maxsplit=1)[0]
            const_follows = re.search(r"\) const \{", whole[len(head) - 6:len(head) + 10]) and not head.endswith("const")
            constant = " const" if const_follows else ""
            whole = without_initialisers(" ".join(head.split())) + constant + ";" + (remark[0] if remark and len(text) == 1 else "")
            found.append(whole)
        else:
            found += text
    return found


def of_users(lines):
    """Removes members that only the library calls: copies and handles to internals, with the comments above them."""
    hidden = re.compile(r"explicit \w+\(std::shared_ptr<const |= delete;|= default;$|^struct State;|ArrayBody|parameter_types|^friend ")
    kept = []
    for line in lines:
        if not hidden.search(line):
            kept.append(line)
            continue
        while kept and re.match(r"//|template <[^()]*>$", kept[-1]):
            kept.pop()
    return re.sub(r"\n{2,}", "\n\n", "\n".join(kept)).strip()


def page():
    lines = ["# Classes of C++", "",
             "What the public headers declare. Functions and options are in [the reference by header](cpp.md).", ""]
    for subject, classes in CLASSES.items():
        lines += [f"## {subject}", ""]
        for name, header in classes.items():
            above, body = body_of((ROOT / "include" / "capibara" / header).read_text(), name)
            lines += [f"### {name}", "", f"`<capibara/{header}>`. {' '.join(above.split())}".strip(), "", "```c++",
                      of_users(declarations(public_part(body))), "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
