"""Writes src/models/serving/unicode_classes.inc: the ranges of Unicode's letters and numbers, as this Python's unicodedata has them."""
import pathlib
import sys
import unicodedata

TARGET = pathlib.Path(__file__).resolve().parents[2] / "src" / "models" / "serving" / "unicode_classes.inc"


def ranges(initial):
    """The ranges [first, last] of code points whose category begins with a letter."""
    found = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] != initial:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, initial):
    lines, line = [], " "
    for first, last in ranges(initial):
        item = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(item) > 118:
            lines.append(line)
            line = " "
        line += item
    return f"constexpr CodeRange {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


if __name__ == "__main__":
    TARGET.write_text(f"// Made by tools/python/make_unicode_classes.py from Unicode {unicodedata.unidata_version}.\n"
                      + table("letters", "L") + table("numbers", "N"))
