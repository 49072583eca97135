"""Figures of a run as small JSON that is readable line by line: one line for each row, nine digits for each number."""

import json


def short(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: short(held) for key, held in value.items()}
    return [short(held) for held in value] if isinstance(value, (list, tuple)) else value


def text_of(figures):
    """The text of an object; the objects of a list in it are on separate lines."""
    parts = []
    for key, value in short(figures).items():
        many = isinstance(value, list) and value and isinstance(value[0], dict)
        parts.append(f"{json.dumps(key)}: " + ("[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if many else json.dumps(value)))
    return "{" + ",\n".join(parts) + "}\n"
