"""Checks packages in an empty Debian system without a compiler: ./run release --check.

The system is made by debootstrap in build/packages/root and entered by chroot, which need the rights of root. Each check prints what it
measured; one that fails ends the program. The times are those of docs/packages.md.
"""
import atexit
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

import wheels
from wheels import OUTPUT, ROOT, fail, run, say

SUITE = "bookworm"
FIRST_RESULT = """
import time; started = time.perf_counter()
import capibara.jax as jax, capibara.jax.numpy as jnp
imported = time.perf_counter()
x = jnp.arange(6.0).reshape(2, 3)
value = jax.jit(jax.grad(lambda x: (jnp.sin(x) ** 2).sum()))(x)
import numpy
assert numpy.abs(numpy.asarray(value) - numpy.sin(2 * numpy.arange(6.0).reshape(2, 3))).max() < 1e-6, value
print(f"{imported - started:.3f} {time.perf_counter() - imported:.3f}")
"""
LINEAR_ALGEBRA = """
import numpy, capibara.jax.numpy as jnp
a = numpy.array([[4.0, 2.0], [2.0, 3.0]], numpy.float32)
assert numpy.abs(numpy.asarray(jnp.linalg.cholesky(a)) - numpy.linalg.cholesky(a)).max() < 1e-6
assert numpy.abs(numpy.asarray(jnp.linalg.eigvalsh(a)) - numpy.linalg.eigvalsh(a)).max() < 1e-5
"""


def make_root():
    """An empty system with Python and pip, and without a compiler."""
    root = OUTPUT / "root"
    if not (root / "done").exists():
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            fail("the checks in an empty system need the rights of root, and debootstrap (Debian package debootstrap)")
        shutil.rmtree(root, ignore_errors=True)
        say(f"making an empty Debian {SUITE} in {root.relative_to(ROOT)}")
        run("debootstrap", "--variant=minbase", "--include=python3-venv", SUITE, root, capture_output=True)
        (root / "done").touch()
    # Programs ask /proc where they are. Mounted by each run, so that the end of another one does not take it away.
    run("mount", "-t", "proc", "proc", root / "proc")
    atexit.register(subprocess.run, ["umount", str(root / "proc")])
    for compiler in ("cc", "gcc", "g++", "clang", "ld", "as"):
        if (root / "usr/bin" / compiler).exists():
            fail(f"the empty system has a compiler or linker, /usr/bin/{compiler}")
    return root


def inside(root, *words, user=None, check=True, folder="/", **variables):
    """Runs a program in the system; (its output, seconds)."""
    place = ["chroot", *([f"--userspec={user}"] if user else []), str(root), "/usr/bin/env", "-i", f"-C{folder}", "PATH=/usr/bin:/bin",
             *(f"{name}={value}" for name, value in variables.items()), *words]
    started = time.perf_counter()
    done = subprocess.run(place, text=True, capture_output=True)
    if check and done.returncode != 0:
        fail(f"in the empty system, `{' '.join(words)[:120]}` failed with status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr, time.perf_counter() - started


def tree(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def processor_seconds(root, python, code, repeats=5):
    """The median of a program's processor time, which does not depend on what else the machine does."""
    taken = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        inside(root, python, "-c", code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def demo_start(root, program, folder):
    """Seconds until `capibara demo` prints the loss of its first step, as another user."""
    place = ["chroot", "--userspec=65534:65534", str(root), "/usr/bin/env", "-i", f"-C{folder}", "PATH=/usr/bin:/bin", program, "demo"]
    started = time.perf_counter()
    child = subprocess.Popen(place, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seen = []
    try:
        for line in child.stdout:
            seen.append(line)
            if "loss" in line and any(character.isdigit() for character in line.split("loss", 1)[1]):
                return time.perf_counter() - started
        fail(f"capibara demo ended before a step:\n{''.join(seen)[-2000:]}")
    finally:
        child.terminate()
        child.wait()


def check_wheel(root, wheel, packages):
    """Installs a wheel in a virtual environment of the system, uses it and removes it; `packages`: a folder with numpy and ml_dtypes."""
    say(f"checking {wheel.name} in an empty system")
    shutil.rmtree(root / "srv/env", ignore_errors=True)
    shutil.rmtree(root / "srv/wheels", ignore_errors=True)
    shutil.copytree(packages, root / "srv/wheels")
    shutil.copy(wheel, root / "srv/wheels")
    inside(root, "python3", "-m", "venv", "/srv/env")
    python, offline = "/srv/env/bin/python", ["--no-index", "--find-links=/srv/wheels", "--quiet"]
    inside(root, python, "-m", "pip", "install", *offline, "numpy", "ml_dtypes")
    before = tree(root / "srv/env")
    _, installed = inside(root, python, "-m", "pip", "install", *offline, f"/srv/wheels/{wheel.name}")
    print(f"pip install, numpy and ml_dtypes there already: {installed:.1f} s")
    cold, first = inside(root, python, "-c", FIRST_RESULT)
    print(f"first program after the installation: {first:.2f} s; import and first jit: {cold.strip()} s")
    warm = sorted(inside(root, python, "-c", FIRST_RESULT)[0].strip() for _ in range(5))[2]
    empty, jax = processor_seconds(root, python, "pass"), processor_seconds(root, python, "import capibara.jax")
    print(f"import capibara.jax: {1000 * (jax - empty):.0f} ms of processor time more than python alone")
    print(f"import and first jit, median of 5: {warm} s")
    inside(root, python, "-c", LINEAR_ALGEBRA)
    # Another user, whose home does not exist and who cannot write where capibara is installed.
    inside(root, python, "-c", FIRST_RESULT, user="65534:65534", HOME="/nonexistent")
    inside(root, "/srv/env/bin/capibara", "doctor", user="65534:65534", HOME="/nonexistent")
    answer, _ = inside(root, "/srv/env/bin/capibara", "--version")
    if answer.split() != ["capibara", wheels.version()]:
        fail(f"capibara --version: expected capibara {wheels.version()}, got {answer!r}")
    work = root / "srv/work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    work.chmod(0o777)
    print(f"capibara demo, until its first step: {demo_start(root, '/srv/env/bin/capibara', '/srv/work'):.1f} s")
    inside(root, python, "-m", "pip", "uninstall", "--yes", "--quiet", "capibara")
    left = sorted(name for name in tree(root / "srv/env") - before if "__pycache__" not in name)
    if left:
        fail(f"uninstalling leaves {len(left)} files, for example {left[:5]}")
    print("pip uninstall: nothing is left")


def check_debian(root, package):
    """Installs the Debian package, uses its program and removes it."""
    say(f"checking {package.name} in an empty system")
    shutil.copy(package, root / "srv" / package.name)
    before = tree(root / "usr")
    _, installed = inside(root, "/usr/bin/apt-get", "install", "--yes", "--no-install-recommends", f"/srv/{package.name}",
                          DEBIAN_FRONTEND="noninteractive", PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    print(f"apt-get install: {installed:.1f} s")
    answer, _ = inside(root, "capibara", "--version")
    if answer.split() != ["capibara", wheels.version()]:
        fail(f"capibara --version: expected capibara {wheels.version()}, got {answer!r}")
    inside(root, "capibara", "doctor", user="65534:65534", HOME="/nonexistent")
    work = root / "srv/work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    work.chmod(0o777)
    print(f"capibara demo, until its first step: {demo_start(root, '/usr/bin/capibara', '/srv/work'):.1f} s")
    inside(root, "/usr/bin/dpkg", "--purge", "capibara", PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    left = sorted(name for name in tree(root / "usr") - before if "capibara" in name)
    if left:
        fail(f"dpkg --purge leaves {left[:5]}")
    print("dpkg --purge: nothing is left")


def check_project(package):
    """Builds and runs the project of examples/cmake_project, and its program by pkg-config, against the unpacked Debian package."""
    folder = OUTPUT / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    run("dpkg-deb", "-x", package, folder)
    prefix = folder / "usr"
    run("cmake", "-S", ROOT / "examples/cmake_project", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", capture_output=True)
    run("cmake", "--build", folder / "build", capture_output=True)
    print(f"find_package, capibara_add_program: {run(folder / 'build/fit_line', capture_output=True).splitlines()[-1]}")
    run(folder / "build/decay", capture_output=True)
    flags = run("pkg-config", "--cflags", "--libs", "capibara", capture_output=True,
                env=os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()
    run("c++", ROOT / "examples/cmake_project/fit_line.cpp", "-o", folder / "fit_line", *flags, capture_output=True)
    print("pkg-config: " + run(folder / "fit_line", capture_output=True,
                               env=os.environ | {"LD_LIBRARY_PATH": str(prefix / "lib")}).splitlines()[-1])


def main():
    if sys.argv[1:] != ["--check"]:
        sys.exit("usage: ./run release --check")
    own = next(OUTPUT.glob(f"capibara-{wheels.version()}-cp311-*.whl"), None)
    package = next(OUTPUT.glob("capibara_*.deb"), None)
    if own is None or package is None:
        fail("the packages are missing; `./run wheel` and `./run package` make them")
    packages = OUTPUT / "needed"
    if not packages.exists():
        run(wheels.VENV / "bin" / "python", "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--python-version", "3.11",
            "--dest", packages, "numpy", "ml_dtypes")
    root = make_root()
    check_wheel(root, own, packages)
    check_project(package)
    check_debian(root, package)
    say("all checks passed")


if __name__ == "__main__":
    main()
