"""jax.profiler: names and signatures as in jax, traces and their files, and memory profiles."""

import gzip
import inspect
import json
import threading
import time

import jax as peer
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import profiler


def traces(folder):
    return sorted((folder / "plugins" / "profile").glob("*/*.xplane.pb"))


def events(path, line=None):
    """[(plane, line, name, start, duration, stats)] of a file, as jax's own reader returns it."""
    return [(plane.name, row.name, event.name, event.start_ns, event.duration_ns, dict(event.stats))
            for plane in peer.profiler.ProfileData.from_file(str(path)).planes for row in plane.lines for event in row.events
            if line is None or row.name == line]


def test_every_name_of_jax_is_there_with_its_parameters():
    names = [name for name in dir(peer.profiler) if not name.startswith("_")]
    assert len(names) == 15
    for name in names:
        theirs, ours = getattr(peer.profiler, name), getattr(profiler, name)
        assert inspect.isclass(theirs) == inspect.isclass(ours), name
        if inspect.isclass(theirs):
            # jaxlib stores the types of its iterators there once they are used.
            missing = [member for member in dir(theirs) if not member.startswith("_") and not hasattr(ours, member)
                       and not inspect.isclass(getattr(theirs, member))
                       and not hasattr(ours() if name == "ProfileOptions" else ours, member)]
            assert missing in ([], ["from_raw_cpp_ptr"]), name  # a pointer to an object of XLA
            continue
        expected = [(p.name, p.kind, p.default) for p in inspect.signature(theirs).parameters.values()]
        got = [(p.name, p.kind, p.default) for p in inspect.signature(ours).parameters.values()]
        if name == "annotate_function":  # also a decorator with arguments
            got[0] = (*got[0][:2], inspect.Parameter.empty)
        assert got == expected, name


def test_options_begin_as_those_of_jax():
    theirs, ours = peer.profiler.ProfileOptions(), profiler.ProfileOptions()
    for name in dir(theirs):
        if not name.startswith("_"):
            assert getattr(ours, name) == getattr(theirs, name), name


def test_a_trace_holds_steps_spans_and_their_values(tmp_path):
    step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    x = jnp.ones((64, 64))
    step(x)
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        for i in range(3):
            with profiler.StepTraceAnnotation("train", step_num=i + 7):
                with profiler.TraceAnnotation("load", batch=i) as annotation:
                    annotation.set_metadata(rows=64)
                step(x).block_until_ready()
    path, = traces(tmp_path)
    all_events = events(path)
    steps = [(start, duration, stats) for plane, _, name, start, duration, stats in all_events if plane == "/host:CPU" and name == "train"]
    assert [stats["step_num"] for _, _, stats in steps] == [7, 8, 9]
    loads = [(start, duration, stats) for _, _, name, start, duration, stats in all_events if name == "load"]
    assert [(stats["batch"], stats["rows"]) for _, _, stats in loads] == [("0", "64"), ("1", "64"), ("2", "64")]
    for (outer, length, _), (inner, inner_length, stats) in zip(steps, loads):
        assert outer <= inner and inner + inner_length <= outer + length
    assert [stats["group_id"] for _, _, stats in loads] == [7, 8, 9]
    device = [name for plane, line, name, *_ in all_events if plane.startswith("/device:") and line == "Steps"]
    assert device == ["7", "8", "9"]
    assert any(line == "XLA Ops" for plane, line, *_ in all_events if plane.startswith("/device:"))

    shown = json.loads(gzip.decompress((path.parent / "perfetto_trace.json.gz").read_bytes()))
    assert sum(event.get("name") == "load" and event["ph"] == "X" for event in shown["traceEvents"]) == 3
    beside, = path.parent.glob("*.trace.json.gz")
    assert json.loads(gzip.decompress(beside.read_bytes()))["traceEvents"] == shown["traceEvents"]


def test_threads_have_lines_of_their_own(tmp_path):
    def work():
        with profiler.TraceAnnotation("elsewhere"):
            time.sleep(0.001)

    with profiler.trace(tmp_path):
        worker = threading.Thread(target=work)
        with profiler.TraceAnnotation("here"):
            worker.start()
            worker.join()
    host = [plane for plane in profiler.ProfileData.from_file(traces(tmp_path)[0]).planes if plane.name == "/host:CPU"]
    lines = [{event.name for event in line.events} for line in host[0].lines]
    assert [line for line in lines if "here" in line] != [line for line in lines if "elsewhere" in line]
    assert sum("elsewhere" in line for line in lines) == 1


def test_one_trace_at_a_time(tmp_path):
    for module, folder in ((peer.profiler, tmp_path / "theirs"), (profiler, tmp_path / "ours")):
        said = []
        for call in (module.stop_trace, lambda: module.start_trace(folder), lambda: module.start_trace(folder), module.stop_trace):
            try:
                call()
                said.append(None)
            except RuntimeError as error:
                said.append(str(error))
        assert said == ["No profile started", None, "Profile has already been started. Only one profile may be run at a time.", None]


def test_an_exception_ends_the_trace_and_its_spans(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with profiler.trace(tmp_path), profiler.TraceAnnotation("broken"):
            1 / 0
    assert not profiler.TraceAnnotation.is_enabled()
    assert [name for _, _, name, *_ in events(traces(tmp_path)[0]) if name == "broken"] == ["broken"]


def test_annotations_outside_of_a_trace_do_nothing():
    @profiler.annotate_function
    def plain(x):
        return x + 1

    @profiler.annotate_function(name="named")
    def decorated(x):
        return x + 2

    with profiler.TraceAnnotation("nobody") as annotation:
        annotation.set_metadata(a=1)
        assert plain(1) == 2 and decorated(1) == 3


def test_options_say_what_is_recorded_and_where(tmp_path):
    options = profiler.ProfileOptions()
    options.session_id = "chosen"
    with profiler.trace(tmp_path, profiler_options=options):
        json.dumps([1])
    names = [name for _, _, name, *_ in events(traces(tmp_path)[0])]
    assert traces(tmp_path)[0].parent.name == "chosen"
    assert any(name.startswith("$__init__.py") and name.endswith(" dumps") for name in names)
    options.session_id, options.host_tracer_level, options.python_tracer_level = "silent", 0, 0
    with profiler.trace(tmp_path, profiler_options=options), profiler.TraceAnnotation("unseen"):
        pass
    assert all(name != "unseen" for _, _, name, *_ in events(traces(tmp_path)[1]))
    with pytest.raises(TypeError, match="ProfileOptions"):
        profiler.start_trace(tmp_path, profiler_options={})


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    profiler.start_trace(tmp_path / "file")
    with pytest.raises(RuntimeError, match="cannot make the folder"):
        profiler.stop_trace()
    assert not profiler.TraceAnnotation.is_enabled()


# ---- memory


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def message(data):
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def samples(compressed):
    """[(kind, device, function names, [allocations, bytes])] of a pprof profile, and the types of its values."""
    profile = message(gzip.decompress(compressed))
    texts = [text.decode() for text in profile[6]]
    functions = {message(f)[1][0]: texts[message(f)[2][0]] for f in profile.get(5, [])}
    locations = {message(entry)[1][0]: [functions[message(line)[1][0]] for line in message(entry)[4]] for entry in profile.get(4, [])}
    found = []
    for sample in map(message, profile.get(2, [])):
        labels = {texts[message(label)[1][0]]: texts[message(label)[2][0]] for label in sample.get(3, []) if 2 in message(label)}
        names = [name for chunk in sample.get(1, []) for place in packed(chunk) for name in locations[place]]
        found.append((labels.get("kind"), labels.get("device"), names, [v for chunk in sample[2] for v in packed(chunk)]))
    return found, [tuple(texts[message(kind)[field][0]] for field in (1, 2)) for kind in profile[1]]


def test_device_memory_profile_counts_live_arrays_as_jax_does(tmp_path):
    def grown(module, numpy):
        def of_buffers():
            found, types = samples(module.profiler.device_memory_profile())
            values = [value for kind, device, _, value in found if kind == "buffer" and device and device.lower().endswith("0")]
            return types, sum(count for count, _ in values), sum(size for _, size in values)
        before = of_buffers()
        held = [numpy.ones((33, 77)) + i for i in range(3)] + [numpy.arange(1000)]
        after = of_buffers()
        del held
        return before[0], after[1] - before[1], after[2] - before[2]

    import jax.numpy as peer_numpy
    assert grown(jax, jnp) == grown(peer, peer_numpy)
    held = jnp.zeros((33, 77), jnp.bfloat16)
    found, _ = samples(profiler.device_memory_profile())
    assert ("buffer", "cpu:0", ["bfloat16[33,77]"], [1, held.nbytes]) in found
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert samples((tmp_path / "memory.prof").read_bytes())[0]
    with pytest.raises(Exception, match="nowhere"):
        profiler.device_memory_profile("nowhere")


def test_device_memory_in_use_and_at_its_peak():
    before = jax.device_memory_allocated()
    held = jnp.zeros((512, 1024))
    held.block_until_ready()
    assert jax.device_memory_allocated() - before >= held.nbytes
    assert jax.device_memory_peak() >= jax.device_memory_allocated()


def test_small_arrays_are_memory_in_use_too():
    before = jax.device_memory_allocated()
    held = [jnp.full(1000, float(number)) for number in range(64)]
    jax.block_until_ready(held)
    in_use = jax.device_memory_allocated()
    assert in_use - before >= sum(array.nbytes for array in held)
    del held
    assert jax.device_memory_allocated() <= in_use - 64 * 4000 and jax.device_memory_peak() >= in_use
