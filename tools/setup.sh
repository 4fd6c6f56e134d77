# Sourced by the scripts beside it: what a fresh machine needs before anything can be built.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
venv=${CIWRAP_VENV:-$PWD/.venv}
logs=$PWD/build/logs
mkdir -p "$logs"

# stage NAME COMMAND...: one line with the seconds it took; the log only when it fails, which ends
# the script.
stage() {
    try "$@"
    if [ "$failed" -ne 0 ]; then exit 1; fi
}

# check NAME COMMAND...: the same, but the script goes on; end_of_checks fails at its end.
failed_checks=()
check() {
    try "$@"
    if [ "$failed" -ne 0 ]; then failed_checks+=("$1"); fi
}

end_of_checks() {
    if [ ${#failed_checks[@]} -ne 0 ]; then
        printf 'failed: %s\n' "${failed_checks[@]}" >&2
        exit 1
    fi
}

# beside NAME COMMAND...: a check that runs beside those that follow, until join_beside. For work
# that the machine has room for while pip or a type checker keeps one core busy.
beside() {
    beside_name=$1
    set -m # a process group of its own, so that it can be ended as a whole
    (
        set +e
        try "$@" >"$logs/beside.txt" 2>&1
        exit "$failed"
    ) &
    beside_pid=$!
    set +m
    trap 'kill -- -"$beside_pid" 2>/dev/null' EXIT
}

join_beside() {
    wait "$beside_pid" || failed_checks+=("$beside_name")
    trap - EXIT
    cat "$logs/beside.txt"
}

# Sets `failed` instead of returning a status: called in a condition, bash would ignore set -e in
# everything that the stage runs.
try() {
    local name=$1 started=$SECONDS
    shift
    local log=$logs/${name//[^a-zA-Z0-9]/-}.log
    [ ! -t 1 ] || printf '  ..     %-36s\r' "$name"
    set +e
    (
        set -e
        "$@"
    ) >"$log" 2>&1
    failed=$?
    set -e
    if [ "$failed" -ne 0 ]; then
        printf '  FAILED %-36s %4d s\n\n' "$name" $((SECONDS - started))
        tail -n 60 "$log"
        printf '\n%s failed with status %d; the whole log is in %s\n' "$name" "$failed" "$log" >&2
    else
        printf '  ok     %-36s %4d s\n' "$name" $((SECONDS - started))
    fi
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

python_is_usable() {
    "${PYTHON:-python3}" - <<'PYTHON' 2>/dev/null
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (sys.version_info >= (3, 10) and os.path.exists(header)))
PYTHON
}

has_header() { echo "#include <$1>" | "${CXX:-c++}" -xc++ -std=c++20 -fsyntax-only - 2>/dev/null; }

# system_packages test|demo: compiler, Python headers, liburing and, for test, GoogleTest, and the
# Fortran compiler and pkg-config of those who record (without them their tests are skipped).
system_packages() {
    local wanted=()
    command -v "${CXX:-c++}" >/dev/null || wanted+=(g++)
    python_is_usable || wanted+=(python3 python3-venv python3-dev)
    command -v git >/dev/null || wanted+=(git)
    has_header liburing.h || wanted+=(liburing-dev)
    if [ "$1" = test ]; then
        has_header gtest/gtest.h || wanted+=(libgtest-dev)
        command -v gfortran >/dev/null || wanted+=(gfortran)
        command -v pkg-config >/dev/null || wanted+=(pkgconf)
    fi
    if [ ${#wanted[@]} -gt 0 ] && command -v apt-get >/dev/null && as_root true 2>/dev/null; then
        as_root apt-get update -qq || true
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${wanted[@]}"
    fi
    command -v "${CXX:-c++}" >/dev/null ||
        { echo "no C++ compiler: install g++ 12 or newer, or set CXX"; return 1; }
    python_is_usable ||
        { echo "no Python >= 3.10 with venv and headers: install one, or set PYTHON"; return 1; }
    [ "$1" = demo ] || has_header gtest/gtest.h ||
        { echo "no GoogleTest: install libgtest-dev"; return 1; }
    has_header liburing.h || echo "no liburing (liburing-dev): only the pread engine is built"
}

# build_tools: a virtual environment with what compiling takes; again only when pyproject.toml has
# changed.
build_tools() {
    [ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
    export PATH=$venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
    local stamp tools=('scikit-build-core>=0.11' 'pybind11>=3')
    stamp=$(stamp_of build)
    if [ -f "$stamp" ]; then return; fi
    cmake_is_usable || tools+=(cmake)
    command -v ninja >/dev/null || tools+=(ninja)
    "$venv/bin/python" -m pip install --quiet --no-compile "${tools[@]}"
    touch "$stamp"
}

# private_venv EXTRAS: build tools and dependencies; again only when pyproject.toml has changed.
private_venv() {
    local extras=$1 stamp
    build_tools
    stamp=$(stamp_of "$extras")
    if [ -f "$stamp" ]; then return; fi
    "$venv/bin/python" tools/list-dependencies "$extras" >"$venv/requirements.txt"
    "$venv/bin/python" -m pip install --quiet --no-compile --requirement "$venv/requirements.txt"
    touch "$stamp"
}

stamp_of() { echo "$venv/.ciwrap-$1-$(sha256sum <pyproject.toml | cut -c1-16)"; }

cmake_is_usable() {
    local version
    version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')
    [ -n "$version" ] && [ "$(printf '%s\n3.24\n' "$version" | sort -V | head -n 1)" = 3.24 ]
}

# install_package [-D...]: builds the wheel as it is shipped and installs it. Build isolation is
# off so that an unchanged tree is not compiled again.
install_package() {
    local settings=()
    for define in "$@"; do
        settings+=("--config-settings=cmake.define.$define")
    done
    "$venv/bin/python" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall \
        "${settings[@]}" .
}
