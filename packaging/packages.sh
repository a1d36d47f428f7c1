# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Lists the system packages of Debian and Ubuntu by purpose, and installs missing ones. quickstart.sh, bundle.sh and
# .ci/run source this file.

# Packages that every build needs.
packages_needed=(gcc libc6-dev cmake ninja-build pkg-config ocl-icd-opencl-dev opencl-c-headers
    libjansson-dev libsodium-dev libutf8proc-dev)
# Without one of these packages, Cleave lacks a feature. PoCL is a driver that works on every machine: it makes the CPU
# an OpenCL device.
packages_useful=(pocl-opencl-icd libhwloc-dev libclblast-dev libclfft-dev libcfitsio-dev zlib1g-dev
    libtiff-dev libpng-dev libblosc-dev libzstd-dev libkissfft-dev libopenblas-dev liblapacke-dev)
# Tests: cmocka, other OpenCL platforms, oracles, what localedef reads, compilers for the consumer projects.
packages_test=(libcmocka-dev mesa-opencl-icd oclgrind clinfo libfftw3-dev locales g++ make mandoc
    patchelf python3 python3-venv ca-certificates)
# Continuous integration: a second compiler, sanitizers, checkers, and the tools that make a bundle.
packages_ci=(abigail-tools git clang libclang-rt-dev clang-format clang-tidy lld llvm shellcheck codespell zsh file
    openmpi-bin libopenmpi-dev mpich libmpich-dev iproute2 python3-distributed
    python3-numpy)
packages_bundle=(libclblast1 libclfft2 patchelf file)
# Tools that make, check and install Debian packages.
packages_deb=(dpkg-dev file)
packages_deb_test=(debootstrap lintian)
# Tools that build the documentation's site.
packages_docs=(doxygen furo python3 python3-breathe python3-myst-parser python3-numpy python3-sphinx)

packages_missing()
{
    local name
    for name in "$@"; do
        # the headers and library of another loader work as well, and may conflict with this package
        if [ "$name" = ocl-icd-opencl-dev ] && [ -e /usr/include/CL/cl.h ] &&
            compgen -G '/usr/lib*/*/libOpenCL.so' > /dev/null; then
            continue
        fi
        dpkg-query -W -f='${db:Status-Status}\n' "$name" 2> /dev/null | grep -x installed > /dev/null ||
            echo "$name"
    done
}

# packages_on_offer NAME...: prints those of the packages that can be installed. apt-cache reads its lists anew in each
# call, which takes half a second, so one call asks for all of them.
packages_on_offer()
{
    LC_ALL=C apt-cache policy "$@" 2> /dev/null |
        awk '/^[^ ].*:$/ { name = substr($0, 1, length($0) - 1) } /^  Candidate: [^(]/ { print name }'
}

# Prints the command with which this user runs a program as root: env for root, sudo, or nothing if there is no way.
packages_root()
{
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [ -t 0 ]; }; then
        echo sudo
    fi
}

packages_apt()
{
    local root=$1
    shift
    "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
        -o Acquire::Retries=3 "$@" > "$packages_log" 2>&1
}

# packages_install needed|useful NAME...: installs missing packages, and names those that cannot be installed. For
# `needed`, that is a failure.
packages_install()
{
    local weight=$1 root missing=() offered absent=()
    shift
    if ! command -v apt-get > /dev/null; then
        [ "$weight" = useful ] || echo "No apt-get here: install what these Debian packages hold: $*"
        return 0
    fi
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    root=$(packages_root)
    if [ -z "$root" ]; then
        echo "Missing, and this user may not install packages. As root:"
        echo "  apt-get install --no-install-recommends ${missing[*]}"
        [ "$weight" = useful ]
        return
    fi
    packages_log=$(mktemp)
    if [ -z "${packages_updated:-}" ]; then
        echo "apt-get update"
        packages_apt "$root" update || cat "$packages_log"
        packages_updated=1
    fi
    offered=$(packages_on_offer "${missing[@]}")
    mapfile -t absent < <(printf '%s\n' "${missing[@]}" | grep -vxF "$offered")
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -xF "$offered")
    if [ ${#missing[@]} -gt 0 ]; then
        echo "apt-get install ${missing[*]}"
        if ! packages_apt "$root" install -y --no-install-recommends "${missing[@]}"; then
            tail -n 20 "$packages_log"
            echo "These packages could not be installed: ${missing[*]}"
            rm -f "$packages_log"
            return 1
        fi
    fi
    rm -f "$packages_log"
    if [ ${#absent[@]} -gt 0 ]; then
        echo "Not on offer on this system: ${absent[*]}"
        [ "$weight" = useful ]
        return
    fi
}
