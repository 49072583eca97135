"""Builds the packages of the C++ library, for Debian and as a tarball, into build/packages.

Called by ./run package: the library as libcapibara.so, its modules, headers, CMake and pkg-config files, and the command line with a
manual page and completions, which `capibara help` prints.
"""
import gzip
import json
import os
import shutil
import subprocess
import sys

import wheels
from wheels import OUTPUT, ROOT, run, say

BUILD = ROOT / "build" / "package"
DEBIAN_LIMIT = 45_000_000
MAINTAINER = "The authors of capibara <capibara@example.org>"  # as in cmake/install.cmake


def copyright_text():
    """What /usr/share/doc/capibara/copyright says, in Debian's form: capibara's licence, and that of LLVM, which is inside."""
    return """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: capibara

Files: *
Copyright: The authors of capibara
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/capibara/libcapibara_cpu.so
Copyright: The authors of capibara, and the LLVM contributors
License: Apache-2.0 with LLVM exception
 The code generator of LLVM is linked into this file. On Debian systems, the
 full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0. As an exception, if, as a result of
 your compiling your source code, portions of this Software are embedded into
 an Object form of such source code, you may redistribute such embedded
 portions in such Object form without complying with the conditions of
 Sections 4(a), 4(b) and 4(d) of the License.
"""


def write_pages(program):
    folder = BUILD / "generated" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    version = wheels.version()
    date = run("git", "show", "-s", "--format=%cd", "--date=rfc", cwd=ROOT, capture_output=True).strip()
    changes = (f"capibara ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz in this folder says what is new.\n\n"
               f" -- {MAINTAINER}  {date}\n")
    for name, content in (("capibara.1.gz", run(program, "help", "--man", capture_output=True)), ("changelog.gz", changes),
                          ("CHANGELOG.md.gz", (ROOT / "CHANGELOG.md").read_text())):
        with open(folder / name, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(content.encode())
    (folder / "completion").write_text(run(program, "help", "--completion", capture_output=True))
    (folder / "copyright").write_text(copyright_text())
    llvm = wheels.debian_version(["llvm-19-dev", "llvm-18-dev", "llvm-20-dev"])[1]
    (folder / "capibara.cdx.json").write_text(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {"type": "library", "name": "capibara", "version": version, "licenses": [{"expression": "Apache-2.0"}]}},
        "components": [{"type": "library", "name": "llvm", "version": llvm,
                        "licenses": [{"expression": "Apache-2.0 WITH LLVM-exception"}]}],
    }, indent=1) + "\n")


def build():
    """The two packages, as paths."""
    log = ROOT / "build" / "logs" / "package.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as output:
        def step(*words):
            done = subprocess.run([str(word) for word in words], stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
            if done.returncode != 0:
                wheels.fail(f"`{' '.join(map(str, words[:3]))} ...` failed, see {log.relative_to(ROOT)}\n"
                            f"{''.join(open(log).readlines()[-20:])}")
        say("building the library for packages")
        step("cmake", "--preset", "shared", "-B", BUILD, "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_INSTALL_PREFIX=/usr", "-DCAPIBARA_CUDA=OFF",
             "-DCAPIBARA_PACKAGE=ON", f"-DCMAKE_CXX_COMPILER={shutil.which('c++')}")
        step("cmake", "--build", BUILD, "--parallel", os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count())))
        if not (BUILD / "lib" / "libcapibara_cpu.so").exists():
            wheels.fail("libcapibara_cpu.so was not built: LLVM is needed (llvm-19-dev)")
        write_pages(BUILD / "capibara")
        for old in [*OUTPUT.glob("capibara_*.deb"), *OUTPUT.glob("capibara-*.tar.gz")]:
            old.unlink()
        for kind in ("DEB", "TGZ"):
            step("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", kind, "-B", OUTPUT)
        shutil.rmtree(OUTPUT / "_CPack_Packages", ignore_errors=True)
    return next(OUTPUT.glob("capibara_*.deb")), next(OUTPUT.glob("capibara-*.tar.gz"))


def judge(package):
    """Raises where lintian reports an error."""
    size = package.stat().st_size
    if size > DEBIAN_LIMIT:
        wheels.fail(f"{package.name} has {size / 1e6:.1f} MB, expected at most {DEBIAN_LIMIT / 1e6:.0f}")
    if not shutil.which("lintian"):
        wheels.fail("lintian is missing (Debian package lintian)")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", str(package)], text=True, capture_output=True)
    errors = [line for line in done.stdout.splitlines() if line.startswith("E:")]
    warnings = [line for line in done.stdout.splitlines() if line.startswith("W:")]
    if errors or done.returncode != 0:
        wheels.fail(f"lintian {package.name}: expected no errors, got {len(errors)}\n" + "\n".join(errors) + done.stderr)
    say(f"{package.relative_to(ROOT)}: {size / 1e6:.1f} MB; lintian: 0 errors, {len(warnings)} warnings")
    print("\n".join(warnings))


def main():
    if len(sys.argv) > 1:
        sys.exit("usage: ./run package")
    package, tarball = build()
    judge(package)
    say(f"{tarball.relative_to(ROOT)}: {tarball.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
