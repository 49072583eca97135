"""Writes the imported top-level modules to $WATCHED_MODULES when the interpreter ends."""

import atexit
import os
import sys


def write_modules():
    names = sorted({name.partition(".")[0] for name in sys.modules})
    with open(os.environ["WATCHED_MODULES"], "w") as file:
        file.write("\n".join(names))


if os.environ.get("WATCHED_MODULES"):
    atexit.register(write_modules)
