# Configures and builds one preset with a progress line; on failure shows the errors and names the log.
# shellcheck shell=bash

preset_names() { sed -n 's/.*"configurePreset": "\([a-z-]*\)".*/\1/p' CMakePresets.json | sort -u | xargs; }

known_preset() { [[ " $(preset_names) " == *" $1 "* ]]; }

have_source() { compgen -G "$1" >/dev/null; }

# All cores, but at least 1.5 GB of memory per compiler.
job_count() {
  if [ -n "$JOBS" ]; then echo "$JOBS"; return; fi
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# build_preset PRESET [TARGET...]: status 1 when it fails, after saying why.
build_preset() {
  local preset=$1 log status started=$SECONDS
  shift
  log=build/logs/build-$preset.log
  mkdir -p build/logs
  : >"$log"
  exec 9>build/.lock
  flock -n 9 || { say "another ./run is building here; waiting for it"; flock 9; }
  say "building $preset"
  # Without a GPU, tests can only show that the CUDA kernels compile: once, without optimisation.
  local kernels=(-UCAPIBARA_CUDA_ARCHITECTURES -UCAPIBARA_CUDA_OPTIMIZED)
  if [ -n "${TESTING:-}" ] && [ ! -e /dev/nvidiactl ]; then
    kernels=(-DCAPIBARA_CUDA_ARCHITECTURES=90a-real -DCAPIBARA_CUDA_OPTIMIZED=OFF)
  fi
  if ! cmake --preset "$preset" "${kernels[@]}" >>"$log" 2>&1 9>&-; then
    tail -n 20 "$log"
    echo "run: configuring $preset failed, see $log" >&2
    exec 9>&-
    return 1
  fi
  # Which optional parts were found is printed once.
  sed -n 's/^-- capibara: /   /p' "$log"
  local command=(cmake --build "build/$preset" --parallel "$(job_count)")
  [ $# -eq 0 ] || command+=(--target "$@")
  if [ -n "${KEEP_GOING:-}" ]; then command+=(-- -k 0); fi
  NINJA_STATUS='@%f/%t@ ' "${command[@]}" 2>&1 9>&- | show_progress "$log" "$preset"
  status=${PIPESTATUS[0]}
  exec 9>&-
  if [ "$status" != 0 ]; then
    grep -E -A 12 '(^FAILED:|error:|\*\*\*)' "$log" | head -n 40
    echo "run: building $preset failed, see $log" >&2
    return 1
  fi
  say "built $preset in $(duration $((SECONDS - started)))"
}
