"""Reads and writes the recordings of this folder: NAME.tar.xz holds the one file NAME.

    python3 tests/data/recordings.py              lists them
    python3 tests/data/recordings.py NAME...      prints them

What holds the same text has the same bytes (for one version of liblzma): an archive has no time and no owner.
"""
import io
import lzma
import pathlib
import sys
import tarfile

FOLDER = pathlib.Path(__file__).resolve().parent
SUFFIX = ".tar.xz"


def path(name):
    """The archive of a recording."""
    return FOLDER / f"{name}{SUFFIX}"


def names():
    return sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}"))


def output(name):
    """Where a script that records writes to: the file that the command line names, or the archive."""
    return pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else path(name)


def read(file):
    """The text of a recording by its name, or of a file by its path."""
    file = pathlib.Path(file)
    if file.name == str(file) and not file.name.endswith(SUFFIX):
        file = path(file.name)
    if not file.name.endswith(SUFFIX):
        return file.read_text(encoding="utf-8")
    with tarfile.open(file, "r:xz") as archive:
        return archive.extractfile(file.name.removesuffix(SUFFIX)).read().decode()


def write(file, text):
    """Writes a text into a file, or into the archive of one."""
    file = pathlib.Path(file)
    if not file.name.endswith(SUFFIX):
        file.write_text(text, encoding="utf-8")
        return
    entry, content, packed = tarfile.TarInfo(file.name.removesuffix(SUFFIX)), text.encode(), io.BytesIO()
    entry.size = len(content)
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(content))
    file.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main():
    for name in sys.argv[1:]:
        sys.stdout.write(read(name))
    for name in names() if len(sys.argv) == 1 else ():
        print(f"{path(name).stat().st_size:>7} bytes {read(name).count(chr(10)):>6} lines  {name}")


if __name__ == "__main__":
    main()
