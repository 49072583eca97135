# Finds what a verb needs on this system, lists what is missing, and installs it after asking.
# shellcheck shell=bash

VENV_PYTHON=build/venv/bin/python
BENCH_PYTHON=build/bench-venv/bin/python

version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# The name of a g++ of version 12 or later; empty if there is none. c++ comes first because CMake picks it too:
# ccache shares nothing between two names of one compiler.
find_compiler() {
  local name
  for name in "${CXX:-}" c++ g++ g++-14 g++-13 g++-12; do
    [ -n "$name" ] && command -v "$name" >/dev/null || continue
    case $name in *clang*) echo "$name"; return ;; esac
    if version_at_least "$("$name" -dumpfullversion 2>/dev/null || echo 0)" 12; then echo "$name"; return; fi
  done
}

exists() { local file; for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }

system_name() {
  local name=unknown
  [ -r /etc/os-release ] && name=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
  echo "$name"
}

# Adds the Debian package of each missing thing in a group to MISSING, and missing Python packages to MISSING_PYTHON.
look_for() {
  case $1 in
    compiler)
      [ -n "$(find_compiler)" ] || MISSING+=(g++)
      { command -v cmake >/dev/null && version_at_least "$(cmake --version | sed -n '1s/[^0-9.]//gp')" 3.22; } || MISSING+=(cmake)
      ;;
    make)
      command -v make >/dev/null || MISSING+=(make)
      ;;
    ninja)
      command -v ninja >/dev/null || MISSING+=(ninja-build)
      command -v ccache >/dev/null || MISSING+=(ccache)
      ;;
    libraries)
      exists /usr/lib/*/libopenblas.so /usr/lib/libopenblas.so /usr/lib64/libopenblas.so /usr/local/lib/libopenblas.so || MISSING+=(libopenblas-dev)
      exists /usr/lib/llvm-{18,19,20,21}/include/llvm/Config/llvm-config.h || MISSING+=(llvm-19-dev)
      exists /usr/include/*/curl/curl.h /usr/include/curl/curl.h /usr/local/include/curl/curl.h || MISSING+=(libcurl4-openssl-dev)
      exists /usr/include/zstd.h /usr/local/include/zstd.h || MISSING+=(libzstd-dev)
      exists /usr/include/gtest/gtest.h /usr/local/include/gtest/gtest.h || MISSING+=(libgtest-dev)
      exists /usr/include/*/mpi/mpi.h /usr/include/mpi.h /usr/local/include/mpi.h || MISSING+=(libopenmpi-dev)
      command -v mpirun >/dev/null || MISSING+=(openmpi-bin)
      ;;
    clang)
      command -v clang++ >/dev/null || MISSING+=(clang)
      ;;
    emulator)  # runs AVX2 code in tests on other machines
      [ "$(uname -m)" = x86_64 ] && return
      command -v qemu-x86_64 >/dev/null || MISSING+=(qemu-user)
      command -v x86_64-linux-gnu-gcc >/dev/null || MISSING+=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross)
      ;;
    foreign)  # builds and runs the suites of the other architecture
      command -v "qemu-$(foreign_machine)" >/dev/null || MISSING+=(qemu-user)
      command -v "$(foreign_machine)-linux-gnu-g++" >/dev/null || MISSING+=("g++-$(foreign_machine | tr _ -)-linux-gnu")
      ;;
    order)  # libclang, for Debian's own python3
      /usr/bin/python3 -c 'import clang.cindex' 2>/dev/null || MISSING+=(python3-clang-19)
      ;;
    python)
      command -v python3 >/dev/null || MISSING+=(python3)
      ;;
    peers)
      if [ ! -x $BENCH_PYTHON ] || [ -n "$(missing_packages $BENCH_PYTHON benchmarks/requirements.txt)" ]; then MISSING_PEERS=1; fi
      ;;
    packages)
      if [ -x $VENV_PYTHON ]; then
        [ -n "$(missing_packages $VENV_PYTHON tools/run/requirements.txt)" ] && MISSING_PYTHON=1
      else
        MISSING_PYTHON=1
        python3 -c 'import venv, ensurepip' 2>/dev/null || MISSING+=(python3-venv)
      fi
      python3 -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null || MISSING+=(python3-dev)
      ;;
  esac
}

# missing_packages PYTHON FILE: the lines of a file of requirements that an environment does not satisfy.
missing_packages() {
  "$1" - "$2" <<'PYTHON'
import importlib.metadata as metadata
import sys
for line in open(sys.argv[1]):
    requirement = line.split("#")[0].strip()
    if not requirement:
        continue
    name, _, version = requirement.partition("==")
    try:
        found = metadata.version(name.partition("[")[0]).partition("+")[0]
    except metadata.PackageNotFoundError:
        found = None
    if found is None or (version and found != version):
        print(requirement)
PYTHON
}

confirm() {
  [ "$YES" = 1 ] && return 0
  if [ ! -t 0 ]; then
    echo "run: not asked, because this is no terminal; add --yes to install" >&2
    return 1
  fi
  local answer
  read -r -p "Install now? [y/N] " answer
  [[ $answer =~ ^[Yy] ]]
}

# need GROUP...: returns when everything in the groups is installed, or exits with status 2.
need() {
  [ "$(uname -s)" = Linux ] || { echo "run: $(uname -s) is not supported; Linux is (tested on Debian 12)" >&2; exit 2; }
  local group command
  MISSING=() MISSING_PYTHON=0 MISSING_PEERS=0
  for group in "$@"; do look_for "$group"; done
  if [ ${#MISSING[@]} -eq 0 ] && [ $MISSING_PYTHON = 0 ] && [ $MISSING_PEERS = 0 ]; then
    use_compiler
    return
  fi

  say "missing on this system ($(system_name)):"
  command="apt-get install -y --no-install-recommends ${MISSING[*]}"
  [ ${#MISSING[@]} -eq 0 ] || printf '   system packages: %s\n' "${MISSING[*]}"
  [ $MISSING_PYTHON = 0 ] || printf '   Python packages, into build/venv: %s\n' "$(sed 's/#.*//' tools/run/requirements.txt | xargs)"
  [ $MISSING_PEERS = 0 ] || printf '   peers of the benchmarks, into build/bench-venv: %s\n' "$(sed 's/#.*//' benchmarks/requirements.txt | xargs)"

  if [ ${#MISSING[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || { echo "run: no apt-get here; install the counterparts of these Debian packages and start again" >&2; exit 2; }
    case $(system_name) in
      'debian 12') ;;
      debian* | ubuntu*) say "$(system_name) is not tested; trying the packages of Debian 12" ;;
      *) echo "run: $(system_name) is not supported for installing; these are Debian package names" >&2; exit 2 ;;
    esac
    if [ "$(id -u)" != 0 ]; then
      echo "run: installing needs root; run this, then start again:" >&2
      echo "  sudo $command" >&2
      exit 2
    fi
  fi
  confirm || { [ ${#MISSING[@]} -eq 0 ] || echo "  $command" >&2; exit 2; }

  mkdir -p build/logs
  if [ ${#MISSING[@]} -gt 0 ]; then
    say "$command"
    { apt-get update && DEBIAN_FRONTEND=noninteractive $command; } >build/logs/install.log 2>&1 ||
      { tail -n 15 build/logs/install.log; fail "installing failed, see build/logs/install.log"; }
  fi
  [ $MISSING_PYTHON = 0 ] || install_packages
  [ $MISSING_PEERS = 0 ] || install_peers
  MISSING=()
  for group in "$@"; do look_for "$group"; done
  [ ${#MISSING[@]} -eq 0 ] || { echo "run: still missing after installing: ${MISSING[*]} (too old a system?)" >&2; exit 2; }
  use_compiler
}

# venv_beside NAME FILE PACKAGE...: installs programs that tests start besides the library in their own environment;
# without them those tests are skipped. FILE, a pattern below it, exists once it is complete.
venv_beside() {
  local folder=build/venv-$1 log=build/logs/venv-$1.log file=$2
  shift 2
  compgen -G "$folder/$file" >/dev/null && return 0
  say "$* into $folder"
  mkdir -p build/logs
  { python3 -m venv "$folder" && "$folder/bin/pip" install --no-compile "$@"; } >"$log" 2>&1 ||
    say "$folder is not complete, see $log; tests that need it are skipped"
}

# Installs programs for the suites with these names. xprof belongs to the suite profile (half a minute of processor time, 0.4 GB); the
# TPU compiler exists for x86_64 and is installed only if requested by name.
install_beside() {
  local names=" $* "
  [[ $names == *" quick "* ]] || venv_beside operate bin/gcp-storage-emulator selenium pyte gcp-storage-emulator
  [ $# -gt 0 ] && [[ $names != *" full "* && $names != *" profile "* ]] ||
    venv_beside xprof 'lib/python3*/site-packages/xprof' xprof==2.24.2 grpcio numpy ml_dtypes
  [[ $names != *" tpu "* || $(uname -m) != x86_64 ]] ||
    venv_beside tpu 'lib/python3*/site-packages/libtpu/libtpu.so' libtpu==0.0.51
}

install_packages() {
  say "Python packages into build/venv"
  { [ -x $VENV_PYTHON ] || python3 -m venv build/venv; } >build/logs/packages.log 2>&1 &&
    $VENV_PYTHON -m pip install --no-compile --disable-pip-version-check -r tools/run/requirements.txt >>build/logs/packages.log 2>&1 ||
    { tail -n 15 build/logs/packages.log; fail "installing Python packages failed, see build/logs/packages.log"; }
}

# A peer that cannot be installed is left out: the suite runs with the others and names it.
install_peers() {
  say "peers of the benchmarks into build/bench-venv"
  local log=build/logs/peers.log line
  { [ -x $BENCH_PYTHON ] || python3 -m venv build/bench-venv; } >"$log" 2>&1 || { tail -n 15 "$log"; fail "no build/bench-venv, see $log"; }
  while read -r line; do
    $BENCH_PYTHON -m pip install --no-compile "$line" >>"$log" 2>&1 </dev/null || say "$line could not be installed, see $log"
  done < <(missing_packages $BENCH_PYTHON benchmarks/requirements.txt)
}

use_compiler() {
  local compiler
  compiler=$(find_compiler)
  [ -z "$compiler" ] || export CXX=$compiler
}
