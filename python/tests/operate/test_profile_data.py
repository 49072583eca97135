"""jax.profiler.ProfileData reads files as jax's own reader does: files from jax, random ones, and broken ones."""

import json
import gzip
import random
import struct

import jax as peer
import pytest

from capibara import _core
from capibara.jax.profiler import ProfileData

THEIRS = peer.profiler.ProfileData


def tree(data):
    """Everything that a reader shows of a profile."""
    return [(plane.name, list(plane.stats),
             [(line.name, [(event.name, event.start_ns, event.duration_ns, event.end_ns, list(event.stats)) for event in line.events])
              for line in plane.lines]) for plane in data.planes]


@pytest.fixture(scope="module")
def jax_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jax")
    function = peer.jit(lambda x: (x @ x).sum())
    x = peer.numpy.ones((64, 64))
    function(x)
    with peer.profiler.trace(str(folder), create_perfetto_trace=True):
        for i in range(3):
            with peer.profiler.StepTraceAnnotation("train", step_num=i):
                function(x).block_until_ready()
            with peer.profiler.TraceAnnotation("hello", number=1, text="two", real=2.5):
                pass
    return next(folder.glob("plugins/profile/*/*.xplane.pb"))


def test_a_file_of_jax_reads_the_same(jax_file):
    expected = tree(THEIRS.from_file(str(jax_file)))
    assert len(expected) >= 2 and any(lines for _, _, lines in expected)
    assert tree(ProfileData.from_file(jax_file)) == expected
    assert tree(ProfileData.from_serialized_xspace(jax_file.read_bytes())) == expected
    assert tree(ProfileData(jax_file.read_bytes())) == expected
    assert ProfileData.from_file(jax_file).find_plane_with_name("/host:CPU").name == "/host:CPU"
    assert ProfileData.from_file(jax_file).find_plane_with_name("nowhere") is None


def test_parts_outlive_the_data(jax_file):
    plane = ProfileData.from_file(jax_file).find_plane_with_name("/host:CPU")
    line = next(iter(plane.lines))
    del plane
    event = next(iter(line.events))
    del line
    assert event.end_ns == event.start_ns + event.duration_ns


def test_the_trace_of_a_file_of_jax_has_the_events_of_its_own_trace(jax_file):
    def rows(text):
        events = [event for event in json.loads(text)["traceEvents"] if event.get("ph") == "X"]
        first = min(event["ts"] for event in events)  # the origin of time is unspecified
        return sorted((event["name"], round(event["ts"] - first, 3), round(event["dur"], 3)) for event in events)
    expected = rows(gzip.decompress(next(jax_file.parent.glob("*.trace.json.gz")).read_bytes()))
    got = rows(_core.trace_json(jax_file.read_bytes()))
    assert [name for name, *_ in got] == [name for name, *_ in expected]
    for (name, start, duration), (_, their_start, their_duration) in zip(got, expected):
        assert duration == pytest.approx(their_duration, abs=0.002) and start == pytest.approx(their_start, abs=0.002), name


# ---- random messages


def varint(value):
    value %= 2**64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def random_space(draw):
    integer = lambda: draw.choice([0, 1, -1, 7, 999, 1000, 1001, -1500, 2**40, draw.randrange(2**62)])  # noqa: E731
    small = lambda: draw.randrange(6)  # noqa: E731
    text = lambda: draw.choice([b"", b"a", "name ü".encode(), b"x" * 200])  # noqa: E731

    def stat():
        value = draw.choice([lambda: b"", lambda: field(2, draw.choice([0.0, -2.5, 1e300])), lambda: field(3, abs(integer())),
                             lambda: field(4, integer()), lambda: field(5, text()), lambda: field(6, text()), lambda: field(7, small())])()
        return field(1, small()) + value

    def event():
        parts = [field(1, small()), field(2, integer()), field(3, integer())] + [field(4, stat()) for _ in range(small())]
        if draw.random() < 0.2:
            parts.append(field(5, 3))
        draw.shuffle(parts)
        return b"".join(parts)

    def line():
        parts = [field(1, small()), field(2, text()), field(3, integer()), field(9, integer()), field(11, text())]
        parts += [field(4, event()) for _ in range(small())] + [field(draw.randrange(20, 99), draw.choice([3, b"unknown", 2.0]))]
        draw.shuffle(parts)
        return b"".join(parts)

    def entry(value):
        return field(1, small()) + field(2, value)

    def plane():
        parts = [field(1, small()), field(2, text())] + [field(3, line()) for _ in range(small())]
        parts += [field(4, entry(field(1, small()) + field(2, text()) + field(4, text()) + field(5, stat()))) for _ in range(small())]
        parts += [field(5, entry(field(1, small()) + field(2, text()))) for _ in range(small())]
        parts += [field(6, stat()) for _ in range(small())]
        draw.shuffle(parts)
        return b"".join(parts)

    return b"".join(field(1, plane()) for _ in range(1 + small())) + field(2, text()) + field(4, text())


def outcome(reader, data):
    try:
        return tree(reader(data))
    except (RuntimeError, UnicodeDecodeError) as error:
        return type(error).__name__


def test_random_messages_read_the_same():
    draw = random.Random(1)
    for _ in range(200):
        data = random_space(draw)
        assert tree(ProfileData(data)) == tree(THEIRS(data)), data


def test_damaged_messages_are_refused_or_read_as_jax_does(jax_file, capfd):
    draw, whole = random.Random(2), jax_file.read_bytes()
    refused = 0
    for i in range(600):
        data = bytearray(random_space(draw) if i % 2 else whole)
        for _ in range(draw.randrange(1, 4)):
            what = draw.randrange(3)
            at = draw.randrange(len(data))
            if what == 0:
                data[at] ^= 1 << draw.randrange(8)
            elif what == 1:
                del data[at:at + draw.randrange(1, 9)]
            else:
                data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 9)))
            if not data:
                data = bytearray(b"\0")
        expected = outcome(THEIRS, bytes(data))
        got = outcome(ProfileData, bytes(data))
        if expected != "UnicodeDecodeError":  # bytes that are not valid text are returned as bytes here
            assert got == expected, bytes(data)
        refused += expected == "RuntimeError"
    assert refused > 100


# ---- text


TEXT = r'''
# a comment
planes { id: 3 name: "a\"\303\274\x41" lines: { timestamp_ns: 5 events { metadata_id: 1 offset_ps: 1500 duration_ps: -2000;
   stats { metadata_id: 9 ref_value: 9 } stats { metadata_id: 9 double_value: 2.5e1 },
   stats < metadata_id: 9 uint64_value: 18446744073709551615 >
   stats { metadata_id: 9 str_value: "one " 'two' } stats { metadata_id: 9 int64_value: -0x10 } } }
  event_metadata { key: 1 value { id: 1 name: "n" } }
  stat_metadata { key: 9 value { id: 9 name: "stat" } } }
errors: "e" hostnames: "h"
'''


def test_text_reads_as_jax_reads_it():
    ours = ProfileData.text_proto_to_serialized_xspace(TEXT)
    assert tree(ProfileData(ours)) == tree(THEIRS(ours)) == tree(THEIRS.from_text_proto(TEXT)) == tree(ProfileData.from_text_proto(TEXT))
    for wrong, what in (("planes { nam: 'a' }", "did you mean 'name'"), ("planes {", "no end"), ("planes { id: x }", "id is a value"),
                        ("planes 3", "expected '{'"), ("\nplanes { id: 99999999999999999999 }", "line 2"), ("}", "no field"),
                        ("@", "unexpected")):
        with pytest.raises(ValueError, match=what):
            ProfileData.from_text_proto(wrong)


def test_files_that_cannot_be_read_are_errors(tmp_path):
    for reader in (THEIRS, ProfileData):
        with pytest.raises(Exception, match="NOT_FOUND.*No such file"):
            reader.from_file(str(tmp_path / "nowhere"))
        with pytest.raises(RuntimeError, match="Failed to parse XSpace"):
            reader.from_serialized_xspace(b"\xff\xff\xff")
        with pytest.raises(TypeError):
            reader("text")
