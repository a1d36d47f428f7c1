# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Prepares the OpenCL platforms of a test run in a private vendors folder: PoCL and Mesa's rusticl from the system and,
# on request, Intel's CPU runtime and the Khronos loader from PyPI. quickstart.sh and .ci/run source this file.
#
#   FOLDER/vendors/{pocl,rusticl,intel}.icd
#   FOLDER/vendors/only/{pocl,mesa,intel}/  each of them alone
#   FOLDER/intel/lib/       links to Intel's libraries
#   FOLDER/khronos/         the Khronos loader alone
#   FOLDER/cache/           compiled kernels of drivers and Cleave

intel_release=2026.2.0

# Copies the system's .icd file whose library has this name; fails when there is none.
platforms_copy_icd()
{
    local out=$1 library=$2 icd
    for icd in /etc/OpenCL/vendors/*.icd; do
        if [ -e "$icd" ] && grep -q "$library" "$icd"; then
            cp "$icd" "$out"
            return 0
        fi
    done
    return 1
}

platforms_intel_wanted()
{
    [ "$(uname -m)" = x86_64 ] && { [ "${CI:-}" = true ] || [ "${CLEAVE_TEST_INTEL:-}" = 1 ]; }
}

# Intel's packages have a libOpenCL.so.1 of their own beside the driver. A loader that searches this folder would use it
# instead of the system's, so the folder with links to the driver leaves it out.
platforms_intel()
{
    local folder=$1 environment=$1/intel/environment lib=$1/intel/lib file name
    if [ ! -e "$folder/intel/ready-$intel_release" ]; then
        echo "Intel's CPU runtime $intel_release into $environment (800 MB)"
        rm -rf "$folder/intel" "$folder/khronos"
        python3 -m venv "$environment" || return 1
        "$environment/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir \
            "intel-opencl-rt==$intel_release" "intel-cmplr-lib-rt==$intel_release" || return 1
        mkdir -p "$lib" "$folder/khronos"
        for file in "$environment"/lib/*; do
            name=${file##*/}
            case $name in
            libOpenCL.so* | python*) ;;
            *) ln -s "$file" "$lib/$name" ;;
            esac
        done
        platforms_khronos "$environment/lib" "$folder/khronos" || return 1
        touch "$folder/intel/ready-$intel_release"
    fi
    echo "$lib/libintelocl.so" > "$folder/vendors/intel.icd"
}

# The Khronos loader needs four small libraries of Intel's compiler, which it finds in its own folder.
platforms_khronos()
{
    local from=$1 to=$2 name
    for name in libsvml.so libirng.so libimf.so libintlc.so.5; do
        ln -s "$from/$name" "$to/$name"
    done
    cp "$from/libOpenCL.so.1" "$to/libOpenCL.so.1"
    patchelf --set-rpath "\$ORIGIN" "$to/libOpenCL.so.1"
}

# platforms_ready FOLDER: makes the vendors folder and exports what tests read. With CI=true, a missing platform is a
# failure.
platforms_ready()
{
    local folder=$1 found=() name
    mkdir -p "$folder/vendors" "$folder/cache"
    chmod 700 "$folder/cache"
    rm -f "$folder"/vendors/*.icd
    platforms_copy_icd "$folder/vendors/pocl.icd" libpocl && found+=(pocl)
    platforms_copy_icd "$folder/vendors/rusticl.icd" libRusticlOpenCL && found+=(mesa)
    if platforms_intel_wanted && platforms_intel "$folder"; then
        found+=(intel)
        export CLEAVE_TEST_KHRONOS=$folder/khronos/libOpenCL.so.1
    fi
    command -v oclgrind > /dev/null && found+=(oclgrind)
    if [ "${CI:-}" = true ]; then
        for name in pocl mesa intel oclgrind; do
            case " ${found[*]} " in
            *" $name "*) ;;
            *) echo "CI promises the platform $name, and it is not here" && return 1 ;;
            esac
        done
    fi
    platforms_export "$folder"
    echo "OpenCL platforms for the tests: ${found[*]:-none}${CLEAVE_TEST_KHRONOS:+, Khronos loader}"
}

# Makes a folder of its own for each driver of the folder, for tests that need one driver only.
platforms_alone()
{
    local icd name
    rm -rf "$1/only"
    for icd in "$1"/*.icd; do
        name=$(basename "$icd" .icd)
        [ "$name" != rusticl ] || name=mesa
        [ ! -e "$icd" ] || { mkdir -p "$1/only/$name" && cp "$icd" "$1/only/$name/"; }
    done
}

platforms_export()
{
    local promised=''
    [ -e "$1/vendors/pocl.icd" ] && promised=pocl
    [ -e "$1/vendors/rusticl.icd" ] && promised=${promised:+$promised,}mesa
    [ -e "$1/vendors/intel.icd" ] && promised=${promised:+$promised,}intel
    platforms_alone "$1/vendors"
    export CLEAVE_TEST_ICDS=$1/vendors OCL_ICD_VENDORS=$1/vendors RUSTICL_ENABLE=llvmpipe
    export CLEAVE_TEST_PLATFORMS=$promised
    export CLEAVE_CACHE_DIR=$1/cache/cleave XDG_CACHE_HOME=$1/cache
    export POCL_CACHE_DIR=$1/cache/pocl MESA_SHADER_CACHE_DIR=$1/cache/mesa
    mkdir -p "$CLEAVE_CACHE_DIR" "$POCL_CACHE_DIR" "$MESA_SHADER_CACHE_DIR"
    unset OCL_ICD_FILENAMES OPENCL_VENDOR_PATH OPENCL_LAYERS CLEAVE_DEVICE CLEAVE_MODE CLEAVE_LOG
}
