"""Reads and writes the recordings of this folder: NAME.tar.xz holds the file NAME, or the files of the folder NAME.

    python3 tests/data/recordings.py                        lists them
    python3 tests/data/recordings.py NAME...                prints them
    python3 tests/data/recordings.py --pack FOLDER          writes FOLDER.tar.xz next to a folder
    python3 tests/data/recordings.py --unpack FILE FOLDER   writes the files of an archive into a folder

Archives of the same text have the same bytes (for one version of liblzma): they store no times and no owners.
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
    """The output path of a recording script: the file or folder named on the command line, or the archive."""
    return pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else path(name)


def _archive(file):
    """The archive for a name or a path; None for a plain file."""
    file = pathlib.Path(file)
    if file.name.endswith(SUFFIX):
        return file
    return path(file.name) if file.name == str(file) else None


def members(file):
    """{name: bytes} of the files in an archive, given the recording's name or path."""
    with tarfile.open(_archive(file), "r:xz") as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}


def read(file):
    """The text of a recording given by name, or of a file given by path."""
    if _archive(file) is None:
        return pathlib.Path(file).read_text(encoding="utf-8")
    (content,) = members(file).values()
    return content.decode()


def texts(name):
    """{file name: text} of a recording of several files."""
    return {pathlib.PurePath(file).name: content.decode() for file, content in members(name).items()}


def unpack(file, folder):
    """Writes the files of an archive into a folder; returns the path of the recording in it."""
    for name, content in members(file).items():
        (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
        (pathlib.Path(folder) / name).write_bytes(content)
    return pathlib.Path(folder) / _archive(file).name.removesuffix(SUFFIX)


def pack(file, contents):
    """Writes {name: bytes} as an archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    pathlib.Path(file).write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def write(file, text):
    """Writes a text, or {file name: text}, as an archive, a plain file or into a folder."""
    file = pathlib.Path(file)
    name = file.name.removesuffix(SUFFIX)
    if file.name.endswith(SUFFIX):
        pack(file, {f"{name}/{key}": value.encode() for key, value in text.items()} if isinstance(text, dict) else {name: text.encode()})
    elif isinstance(text, dict):
        file.mkdir(exist_ok=True)
        for key, value in text.items():
            (file / key).write_text(value, encoding="utf-8")
    else:
        file.write_text(text, encoding="utf-8")


def main(words):
    if words[:1] == ["--pack"]:
        folder = pathlib.Path(words[1])
        if not folder.is_dir():
            raise SystemExit(f"recordings.py --pack: expected a folder, got {folder}; scripts that record write one file themselves")
        files = [file for file in folder.rglob("*") if file.is_file()]
        if not files:
            raise SystemExit(f"recordings.py --pack: expected files in {folder}, there are none")
        pack(folder.with_name(folder.name + SUFFIX), {str(file.relative_to(folder.parent)): file.read_bytes() for file in files})
    elif words[:1] == ["--unpack"]:
        unpack(words[1], words[2])
    else:
        for name in words:
            sys.stdout.write("".join(content.decode() for content in members(name).values()))
    for name in names() if not words else ():
        contents = members(name).values()
        lines = sum(content.count(b"\n") for content in contents)
        print(f"{path(name).stat().st_size:>7} bytes {lines:>6} lines {len(contents):>3} files  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
