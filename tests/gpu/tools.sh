#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the compilers of GPUs into a folder and installs nothing:
#
#   tools.sh FOLDER
#
# For AMD, and as front end for NVIDIA: Debian's clang 19 with rocm-device-libs and libclc. For NVIDIA: ptxas and
# nvdisasm from the PyPI package triton. For Intel: ocloc from Debian's intel-opencl-icd. For SPIR-V: spirv-tools.
# It downloads 0.8 GB, and the folder takes 0.7 GB.
set -euo pipefail
mkdir -p "$1"
cd "$1"
clang=1:19.1.7-3~deb12u1
packages=("clang-19=$clang" "libclang-cpp19=$clang" "libllvm19=$clang" "libclang-common-19-dev=$clang"
    "libclc-19=$clang" rocm-device-libs=5.2.3-2 intel-opencl-icd=22.43.24595.41-1
    libigc1=1.0.12504.6-1+deb12u1 libigdfcl1=1.0.12504.6-1+deb12u1 libigdgmm12=22.3.3+ds1-1
    libopencl-clang14=14.0.0-4 libllvmspirvlib14=14.0.0-7 spirv-tools=2023.1-2)
wanted=$(printf '%s\n' "${packages[@]}" triton==3.9.0 | sha256sum | cut -d' ' -f1)
if [ -e complete ] && [ "$(cat complete)" = "$wanted" ]; then
    exit 0
fi
rm -rf debs root nvidia
mkdir -p debs root nvidia
(cd debs && apt-get download -qq "${packages[@]%%=*}")
for deb in debs/*.deb; do
    dpkg -x "$deb" root
done
"${PYTHON:-python3}" -m pip download --quiet --no-deps --only-binary=:all: -d wheels triton==3.9.0
"${PYTHON:-python3}" - <<'END'
import glob, os, zipfile
with zipfile.ZipFile(glob.glob("wheels/triton-3.9.0-*.whl")[0]) as wheel:
    for name in ("ptxas", "nvdisasm"):
        with open("nvidia/" + name, "wb") as file:
            file.write(wheel.read("triton/backends/nvidia/bin/" + name))
        os.chmod("nvidia/" + name, 0o755)
END
rm -rf debs wheels
lib=root/usr/lib/x86_64-linux-gnu
ln -sf libiga64.so.1 $lib/libiga64.so # ocloc disasm asks for this name
# ROCm 5.2.3 does not know gfx11, of which only this constant is missing.
cat > isa.ll <<'END'
target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = linkonce_odr hidden local_unnamed_addr addrspace(4) constant i32 11000, align 4
END
LD_LIBRARY_PATH=$PWD/$lib root/usr/lib/llvm-19/bin/clang -target amdgcn-amd-amdhsa -nogpulib -x ir \
    -emit-llvm -c -o $lib/amdgcn/bitcode/oclc_isa_version_1100.bc isa.ll
echo "$wanted" > complete
