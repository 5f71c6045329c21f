# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by scripts/run and scripts/test: installs what the build needs from the distribution's packages (Debian 12
# and 13, Ubuntu 24.04) and leaves a release build in build/release. Done again, it costs a second.
set -euo pipefail

project_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$project_root"

say() { printf '%s\n' "posiscope: $*" >&2; }
stop() {
    say "$*"
    exit 1
}

# Caches of ccache, fontconfig and Qt need a home that can be written to.
if [ -z "${HOME:-}" ] || [ ! -d "$HOME" ] || [ ! -w "$HOME" ]; then
    mkdir -p "$project_root/build/home"
    export HOME="$project_root/build/home"
fi
# Qt needs a UTF-8 locale; a bare system has only "C".
if [ "$(locale charmap 2>/dev/null || true)" != UTF-8 ]; then
    export LC_ALL=C.UTF-8
fi

needed_packages=(
    g++ cmake ninja-build
    qt6-base-dev qt6-svg-dev libqcustomplot-dev
    libeigen3-dev nlohmann-json3-dev libcli11-dev
    zlib1g-dev libsnappy-dev libcurl4-openssl-dev
    fonts-dejavu-core
)
# Taken where the distribution has them: without LibTorch everything but forward passes works, without the Wayland
# plugin the window goes through X11.
wished_packages=(libtorch-dev libopenblas0-pthread qt6-wayland)

# The packages among the arguments that are not installed, one a line.
missing_packages() {
    local installed package
    installed=" $(dpkg-query -W -f='${db:Status-Status}=${binary:Package} ' "$@" 2>/dev/null || true)"
    for package in "$@"; do
        case "$installed" in
            *" installed=$package "* | *" installed=$package:"*) ;;
            *) echo "$package" ;;
        esac
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif command -v sudo >/dev/null; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        stop "packages must be installed, which needs root: run this as root or install sudo"
    fi
}

packages_changed=no

install_packages() {
    local missing wished package
    # Wishes that this distribution could not grant last time are not asked for again.
    local refused_file=build/packages-not-available
    local refused=" $(tr '\n' ' ' 2>/dev/null <"$refused_file" || true)"
    missing=$(missing_packages "${needed_packages[@]}")
    wished=""
    for package in $(missing_packages "${wished_packages[@]}"); do
        case "$refused" in
            *" $package "*) ;;
            *) wished+="$package " ;;
        esac
    done
    [ -n "$missing$wished" ] || return 0

    if ! command -v apt-get >/dev/null; then
        say "no apt-get here; the build needs what these Debian packages hold:" \
            "${needed_packages[*]} ${wished_packages[*]}"
        return 0
    fi
    say "installing packages, which takes a minute or two: $(echo $missing $wished)"
    local quiet=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    # One broken extra source must not stop the rest; what is really missing shows below.
    as_root apt-get "${quiet[@]}" update || say "apt-get update reported a problem; going on"

    mkdir -p build
    : >"$refused_file"
    local granted=""
    for package in $wished; do
        if [ -n "$(apt-cache search --names-only "^$package\$" 2>/dev/null)" ]; then
            granted+="$package "
        else
            echo "$package" >>"$refused_file"
            say "$package is not among this distribution's packages; going on without it"
        fi
    done
    # shellcheck disable=SC2086 # package names, split on purpose
    if [ -n "$missing$granted" ] &&
        ! as_root apt-get "${quiet[@]}" install -y --no-install-recommends $missing $granted \
            </dev/null >build/packages.log 2>&1; then
        tail -n 20 build/packages.log >&2
        stop "the packages could not be installed (see above); on Ubuntu the component 'universe' must be enabled"
    fi
    packages_changed=yes
}

# Jobs that run at once: one a core, but no more than memory allows (the largest files take 1.5 GB each).
build_jobs() {
    local cores gigabytes jobs
    cores=$(nproc)
    gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || echo 0)
    jobs=$((gigabytes * 2 / 3))
    [ "$jobs" -ge 1 ] || jobs=1
    [ "$jobs" -le "$cores" ] || jobs=$cores
    echo "$jobs"
}

build_release() {
    local folder=build/release
    # A folder that was moved or copied from elsewhere: CMake refuses its cache.
    if [ -f $folder/CMakeCache.txt ] &&
        ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$project_root" $folder/CMakeCache.txt; then
        say "build/release was made for another folder; starting it anew"
        rm -rf $folder
    fi
    # A compiler that is newer than this project may warn of more; only continuous integration stops at that.
    local warnings=OFF
    [ -z "${CI:-}" ] || warnings=ON
    # Ninja sees changed files itself; what it cannot see is a new library or another search path.
    if [ ! -f $folder/build.ninja ] || [ $packages_changed = yes ] || [ -n "${CMAKE_PREFIX_PATH:-}" ]; then
        mkdir -p $folder
        if ! cmake --preset release -DPOSISCOPE_WARNINGS_AS_ERRORS=$warnings >$folder/configure.log 2>&1; then
            cat $folder/configure.log >&2
            stop "the build could not be configured (see above)"
        fi
        grep -E '^-- Engine:|LibTorch was not found' $folder/configure.log >&2 || true
    fi
    cmake --build --preset release -j "$(build_jobs)" >&2 || stop "the build failed (see above)"
}

install_packages
build_release
