# The output of ./run: messages, failures, times, and the live progress line of a build.
# shellcheck shell=bash

say() { printf '== %s\n' "$*"; }

fail() {
  printf 'run: %s\n' "$*" >&2
  exit 1
}

interrupted() {
  trap - INT TERM
  clear_line
  printf 'run: stopped\n' >&2
  exit 130
}

is_terminal() { [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; }

clear_line() { if is_terminal; then printf '\r\033[K'; fi; }

# 75 -> 1m15s
duration() {
  local seconds=$1
  if [ "$seconds" -ge 60 ]; then printf '%dm%02ds' $((seconds / 60)) $((seconds % 60)); else printf '%ds' "$seconds"; fi
}

# Reads a build's output: everything to the log, steps to the screen with the time left.
# Ninja's lines start with @finished/total@, those of make with [ 45%].
show_progress() {
  local log=$1 label=$2 started=$SECONDS shown=-1 line done_steps total percent left width step elapsed
  width=$(tput cols 2>/dev/null || echo 80)
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    if [[ $line =~ ^@([0-9]+)/([0-9]+)@\ (.*)$ ]]; then
      done_steps=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} step=${BASH_REMATCH[3]}
    elif [[ $line =~ ^\[\ *([0-9]+)%\]\ (.*)$ ]]; then
      done_steps=${BASH_REMATCH[1]} total=100 step=${BASH_REMATCH[2]}
    else
      continue
    fi
    [ "$total" -gt 0 ] || continue
    percent=$((100 * done_steps / total))
    elapsed=$((SECONDS - started))
    left=
    [ "$done_steps" -gt 0 ] && left="$(duration $((elapsed * (total - done_steps) / done_steps))) left"
    if is_terminal; then
      printf '\r\033[K%.*s' $((width - 1)) "   $label [$done_steps/$total] $percent%  $left  ${step##*/}"
    elif [ $((percent / 10)) -gt "$shown" ]; then
      shown=$((percent / 10))
      printf '   %s [%s/%s] %s%%  %s\n' "$label" "$done_steps" "$total" "$percent" "$left"
    fi
  done
  clear_line
}
