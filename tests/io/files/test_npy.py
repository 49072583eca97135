"""NumPy's files read and written by C++ programs: numpy writes the first and reads the second; damaged ones are refused."""

import io
import os
import random
import struct
import subprocess
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

PROGRAM = Path(os.environ["CAPIBARA_BUILD"]) / "tests" / "npy_program"


def copied(source, target, *more):
    done = subprocess.run([PROGRAM, source, target, *more], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1) and not done.stderr, (done.returncode, done.stderr)
    return done.stdout


def there_and_back(folder, array, *more):
    """An array written by numpy, copied by the program, and read by numpy; and what the program printed."""
    np.save(folder / "x64_first.npy", array)
    printed = copied(folder / "x64_first.npy", folder / "second.npy", *more)
    assert not printed.startswith("ValueError"), printed
    return np.load(folder / "second.npy"), printed.strip()


@pytest.mark.parametrize("name", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                                  "float64", "complex64", "complex128"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3), (2, 3, 4)])
def test_every_type_order_and_layout_keeps_its_values(tmp_path, name, order, shape):
    rng = np.random.default_rng(len(name))
    whole = rng.integers(0, 2 if name == "bool" else 100, shape)
    array = np.asarray(whole + 1j if "complex" in name else whole).astype(name)
    for laid_out in (array, np.asarray(array, order="F")):
        second, printed = there_and_back(tmp_path, laid_out.astype(np.dtype(name).newbyteorder(order)))
        assert printed == f"{name}[{','.join(map(str, shape))}]"
        assert second.dtype == np.dtype(name) and second.shape == shape
        np.testing.assert_array_equal(second, array)


def test_types_of_64_bits_are_narrowed_without_x64(tmp_path):
    np.save(tmp_path / "a.npy", np.array([1.5, 2.5]))
    assert copied(tmp_path / "a.npy", tmp_path / "b.npy") == "float32[2]\n"
    assert np.load(tmp_path / "b.npy").tolist() == [1.5, 2.5]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_are_named_by_the_reader(tmp_path, name):
    array = np.array([0.5, -2.0, 0.0], getattr(ml_dtypes, name))
    second, printed = there_and_back(tmp_path, array, name)
    assert printed == f"{name}[3]"
    assert second.tobytes() == array.tobytes()
    refusal = copied(tmp_path / "x64_first.npy", tmp_path / "c.npy")
    assert "bytes without a type" in refusal and "pass the type" in refusal
    assert "float32 has 4" in copied(tmp_path / "x64_first.npy", tmp_path / "c.npy", "float32")


@pytest.mark.parametrize("array, words", [
    (np.zeros(2, [("x", "<i4"), ("y", "<f4")]), ["structured elements are not supported: [('x', '<i4'), ('y', '<f4')]", "Hint"]),
    (np.array(["a", "bc"]), ["'<U2' (text)"]),
    (np.array([b"a"]), ["'|S1' (text)"]),
    (np.array(["2026-01-01"], "datetime64[D]"), ["(times)"]),
    (np.array([{}]), ["'|O' (Python objects)"]),
    (np.zeros(2, np.longdouble), ["'<f16'", "are not supported"]),
], ids=["record", "text", "bytes", "time", "object", "longdouble"])
def test_types_that_arrays_cannot_have_are_named(tmp_path, array, words):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    refusal = copied(tmp_path / "a.npy", tmp_path / "b.npy")
    assert refusal.startswith(f"ValueError: load_npy: {tmp_path / 'a.npy'}: ") and all(word in refusal for word in words), refusal
    assert not (tmp_path / "b.npy").exists()


def npy(header, elements=b"", version=1):
    text = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + elements


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize("content, words", [
    (b"", "is not a .npy file"),
    (b"PK\x03\x04 and more", "is not a .npy file"),
    (npy(GOOD, bytes(7)), "expected 8 bytes of elements, got 7"),
    (npy(GOOD, bytes(8), version=4), "version 4"),
    (npy(GOOD, bytes(8))[:30], "the header ends too early"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(20), "the header ends too early"),
    (npy(GOOD.replace("(2,)", "(999999999999999999, 9)")), "the array is too large"),
    (npy(GOOD.replace("(2,)", "(9999999999999999999,)")), "a dimension is too large"),
    (npy(GOOD.replace("(2,)", "(100000000,)"), bytes(8)), "expected 400000000 bytes of elements, got 8"),
    (npy(GOOD.replace("(2,)", "(-2,)"), bytes(8)), "expected a size of a dimension"),
    (npy(GOOD.replace("'shape': (2,), ", "")), "expected 'shape'"),
    (npy(GOOD.replace("descr", "dtype"), bytes(8)), "unknown key 'dtype'"),
    (npy(GOOD.replace("False", "Falsch"), bytes(8)), "the header is damaged"),
    (npy(GOOD.replace("False", "0"), bytes(8)), "expected True or False"),
    (npy(GOOD + " x", bytes(8)), "expected the end"),
], ids=range(15))
def test_damaged_files_are_refused(tmp_path, content, words):
    (tmp_path / "a.npy").write_bytes(content)
    refusal = copied(tmp_path / "a.npy", tmp_path / "b.npy")
    assert refusal.startswith("ValueError: load_npy: ") and words in refusal, refusal


def test_headers_of_later_versions_and_python_2_are_read(tmp_path):
    for version in (2, 3):
        (tmp_path / "a.npy").write_bytes(npy(GOOD.replace("(2,)", "(2L,)"), np.array([1, 2], "<f4").tobytes(), version))
        assert copied(tmp_path / "a.npy", tmp_path / "b.npy") == "float32[2]\n"
        assert np.load(tmp_path / "b.npy").tolist() == [1, 2]


ARRAYS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "text": np.frombuffer(b"abcabcabd" * 9000, np.uint8),
          "empty": np.zeros((0, 2), np.int32),
          "noise": np.random.default_rng(0).integers(0, 255, 70_000, np.uint8), "a/b": np.int32(7), "naïve": np.ones(3, bool)}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_keep_every_array(tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    printed = copied(tmp_path / "a.npz", tmp_path / "b.npz")
    assert "x float32[2,3]\n" in printed and "empty int32[0,2]\n" in printed
    with np.load(tmp_path / "b.npz") as second:
        assert set(second.files) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert second[name].dtype == array.dtype
            np.testing.assert_array_equal(second[name], array)
    with zipfile.ZipFile(tmp_path / "b.npz") as archive:
        assert archive.testzip() is None
    again = copied(tmp_path / "b.npz", tmp_path / "c.npz")
    assert again == printed and (tmp_path / "b.npz").read_bytes() == (tmp_path / "c.npz").read_bytes()


@pytest.mark.parametrize("level", range(10))
def test_every_level_of_compression_is_inflated(tmp_path, level):
    draw = random.Random(level)
    array = np.array([draw.choice((0, 1, 2, draw.randrange(256))) for _ in range(40_000)], np.uint8)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive, io.BytesIO() as file:
        np.save(file, array)
        archive.writestr("array.npy", file.getvalue())
    assert copied(tmp_path / "a.npz", tmp_path / "b.npz") == "array uint8[40000]\n"
    np.testing.assert_array_equal(np.load(tmp_path / "b.npz")["array"], array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_no_flipped_byte_goes_unnoticed_and_no_cut_off_file_is_read(tmp_path, save):
    save(tmp_path / "a.npz", x=np.arange(500, dtype=np.float32))
    whole, draw = (tmp_path / "a.npz").read_bytes(), random.Random(0)
    for length in [0, 1, 21, 22, *(draw.randrange(len(whole)) for _ in range(20))]:
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        assert copied(tmp_path / "cut.npz", tmp_path / "b.npz").startswith("ValueError: load_npz: "), length
    for at in [draw.randrange(len(whole)) for _ in range(60)]:
        (tmp_path / "bad.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1:])
        printed = copied(tmp_path / "bad.npz", tmp_path / "b.npz")
        if not printed.startswith("ValueError: load_npz: "):  # a date, a version or a name: not the array
            np.testing.assert_array_equal(np.load(tmp_path / "b.npz")[printed.split(" float32")[0]], np.arange(500))


def test_archives_that_are_not_of_arrays_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "hello")
    assert "'notes.txt' is not a .npy file" in copied(path, tmp_path / "b.npz").replace(": is not", " is not")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", npy(GOOD, bytes(8)))
    assert "compressed by method 14" in copied(path, tmp_path / "b.npz")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy(GOOD, bytes(4)))
    assert "'x.npy': expected 8 bytes of elements, got 4" in copied(path, tmp_path / "b.npz")


def test_an_archive_that_claims_more_than_it_has_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(1000, np.float32))
    content = path.read_bytes()
    entry = content.rindex(b"PK\x01\x02")
    for size, words in [(4129, "has 4128 bytes, expected 4129"), (5000, "expected 5000"), (4000, "more than the stated 4000"),
                        (2**31, "cannot have 2147483648")]:
        path.write_bytes(content[:entry + 24] + struct.pack("<I", size) + content[entry + 28:])
        assert words in copied(path, tmp_path / "b.npz")
