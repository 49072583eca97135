# The other architecture: libraries to compile its suites against, unpacked into build/sysroot-*, and how to run them.
# shellcheck shell=bash

# Whole Debian packages: LLVM's CMake files require every file that they name, needed here or not.
FOREIGN_PACKAGES=(
  libc6 libgcc-s1 libstdc++6 zlib1g zlib1g-dev libzstd1 libzstd-dev libgtest-dev
  llvm-19-dev llvm-19 llvm-19-tools llvm-19-linker-tools libllvm19
  libopenblas0-pthread libopenblas-pthread-dev libgfortran5
  libcurl4-openssl-dev libcurl4
  # dependencies of libcurl
  libbrotli1 libgssapi-krb5-2 libidn2-0 libldap-2.5-0 libnghttp2-14 libpsl5 librtmp1 libssh2-1 libssl3
  libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1 libsasl2-2 libunistring2
  libgnutls30 libnettle8 libhogweed6 libgmp10 libp11-kit0 libtasn1-6 libffi8
)

foreign_machine() { if [ "$(uname -m)" = x86_64 ]; then echo aarch64; else echo x86_64; fi; }

# Debian's name of an architecture: aarch64 -> arm64
foreign_architecture() { if [ "$(foreign_machine)" = aarch64 ]; then echo arm64; else echo amd64; fi; }

# libgfortran opens libquadmath where long double is narrower than 128 bits.
[ "$(foreign_machine)" = aarch64 ] || FOREIGN_PACKAGES+=(libquadmath0)

foreign_root() { echo "$ROOT/build/sysroot-$(foreign_machine)"; }

foreign_emulator() { echo "qemu-$(foreign_machine) -cpu max -L $(foreign_root)"; }

# Downloads and unpacks the packages once. apt works in folders of its own, so the system's lists and packages are not
# changed; it needs neither root nor a foreign architecture in dpkg.
need_foreign_root() {
  local root work log stamp architecture apt
  root=$(foreign_root) architecture=$(foreign_architecture) log=build/logs/sysroot.log
  stamp=$root/.packages
  [ -e "$stamp" ] && [ "$(cat "$stamp")" = "${FOREIGN_PACKAGES[*]}" ] && return
  say "unpacking the libraries for $architecture into ${root#"$ROOT"/} (110 MB to download)"
  confirm || exit 2
  rm -rf "$root"
  work=$root/.apt
  mkdir -p build/logs "$work/lists/partial" "$work/cache/archives/partial" "$work/packages"
  : >"$work/status"
  apt=(apt-get -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=
    -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache")
  { "${apt[@]}" update && (cd "$work/packages" && "${apt[@]}" download "${FOREIGN_PACKAGES[@]}"); } >"$log" 2>&1 ||
    { tail -n 15 "$log"; fail "downloading packages for $architecture failed, see $log"; }
  local package
  for package in "$work"/packages/*.deb; do
    dpkg-deb -x "$package" "$root" >>"$log" 2>&1 || fail "unpacking $package failed, see $log"
  done
  # Links to absolute paths refer to this folder, not to the host system.
  local link
  while IFS= read -r -d '' link; do
    ln -sfn "$root$(readlink "$link")" "$link"
  done < <(find "$root" -path "$work" -prune -o -lname '/*' -print0)
  # So do paths in LLVM's CMake files; the only library given by path is Z3, which our code never uses.
  sed -i 's|;/usr/lib/[^;"]*/libz3.so||g' "$root"/usr/lib/llvm-19/lib/cmake/llvm/LLVMExports.cmake
  rm -rf "$work"
  echo "${FOREIGN_PACKAGES[*]}" >"$stamp"
}

check_evaluation_order() {
  say "calls whose meaning depends on the order of their arguments"
  mkdir -p build/logs
  cmake --preset release >build/logs/order.log 2>&1 || { tail -n 20 build/logs/order.log; return 1; }
  /usr/bin/python3 tools/check/evaluation_order.py --jobs "$(job_count)"
}
