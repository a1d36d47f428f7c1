# SPDX-License-Identifier: Apache-2.0
"""Compiles an OpenCL program for GPUs by their vendors' compilers, without a GPU, and reads the resources of its
kernels.

Compilers(tools).compile(target, source, options, work) returns {kernel: Made}, or the error message as a str.
"""
import collections
import os
import re
import subprocess

# registers: per work-item (Intel: per thread); spilled: registers on AMD, bytes on other GPUs; private: bytes of
# private memory per work-item; local: bytes of local memory that the kernel declares; limit: the most waves for which
# there are registers (Intel: work-items per thread); code: lines of machine code, or None
Made = collections.namedtuple("Made", "registers spilled private local limit code")

# waves per SIMD, registers per lane of a SIMD, granule of their allocation, SIMDs that share a local memory, bytes of
# that memory, lanes of a wave
AMD = {
    "gfx906": (10, 256, 4, 4, 65536, 64),
    "gfx90a": (8, 512, 8, 4, 65536, 64),
    "gfx1030": (16, 1024, 8, 4, 131072, 32),
    "gfx1100": (16, 1536, 24, 4, 131072, 32),
}
AMD_GROUPS = {64: 40, 32: 64}  # most work-groups: per compute unit (waves of 64), per two units (waves of 32)
# warps and blocks per multiprocessor, bytes of its shared memory, bytes that the driver reserves per block
NVIDIA = {
    "sm_70": (64, 32, 98304, 0),
    "sm_86": (48, 16, 102400, 1024),
    "sm_90": (64, 32, 233472, 1024),
}
# threads per slice or subslice, bytes of its local memory
INTEL = {"acm-g10": (128, 131072), "tgllp": (112, 65536)}
SPIRV = "spirv"
TARGETS = list(AMD) + list(NVIDIA) + list(INTEL) + [SPIRV]
WITHOUT_DOUBLES = ("acm-g10", "tgllp", SPIRV)


class Compilers:
    def __init__(self, tools):
        self.usr = os.path.join(tools, "root/usr")
        self.lib = os.path.join(self.usr, "lib/x86_64-linux-gnu")
        self.nvidia = os.path.join(tools, "nvidia")
        self.clang = [os.path.join(self.usr, "lib/llvm-19/bin/clang"), "-x", "cl", "-O3", "-Xclang",
                      "-finclude-default-header", "-Wno-everything"]
        libraries = "%s:%s/lib/llvm-19/lib" % (self.lib, self.usr)
        self.env = dict(os.environ, LD_LIBRARY_PATH=libraries, OCL_ICD_VENDORS="/nonexistent")
        self.env.pop("OPENCL_LAYERS", None)
        self.ptx = None  # PTX of the last program, which all NVIDIA targets share

    def run(self, command):
        return subprocess.run(command, env=self.env, capture_output=True, text=True,
                              errors="replace", timeout=600)

    def compile(self, target, source, options, work):
        if target in AMD:
            return self.amd(target, source, options, work)
        if target in NVIDIA:
            return self.nvidia_made(target, source, options, work)
        if target in INTEL:
            return self.intel(target, source, options, work)
        return self.spirv(source, options, work)

    def amd(self, cpu, source, options, work):
        out = work + ".s"
        done = self.run(self.clang + options + [
            "-target", "amdgcn-amd-amdhsa", "-mcpu=" + cpu, "-mcode-object-version=4",
            "--rocm-device-lib-path=%s/amdgcn/bitcode" % self.lib, "-S", "-o", out, source])
        if done.returncode:
            return why(done)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        os.remove(out)
        waves, per_lane, granule = AMD[cpu][:3]
        found = {}
        for block in text.split("amdhsa.kernels:")[1].split("\n  - ")[1:]:
            name = re.search(r"\n    \.name: +(\w+)", block)
            if not name:
                continue
            registers = max(number(block, r"\.vgpr_count"), 1)
            granules = -(-registers // granule) * granule
            found[name[1]] = Made(registers, number(block, r"\.vgpr_spill_count"),
                                  number(block, r"\.private_segment_fixed_size"),
                                  number(block, r"\.group_segment_fixed_size"),
                                  min(waves, per_lane // granules), body_of(text, name[1]))
        return found

    def nvidia_made(self, arch, source, options, work):
        ptx = work + ".ptx"
        if self.ptx != ptx:
            done = self.run(self.clang + options + [
                "-target", "nvptx64-nvidia-nvcl", "-march=sm_70", "-Xclang", "-mlink-builtin-bitcode",
                "-Xclang", self.usr + "/lib/clc/nvptx64--nvidiacl.bc", "-S", "-o", ptx, source])
            if done.returncode:
                return why(done)
            self.ptx = ptx
        cubin = "%s.%s.cubin" % (work, arch)
        done = self.run([self.nvidia + "/ptxas", "-v", "-arch=" + arch, ptx, "-o", cubin])
        if done.returncode:
            return why(done)
        code = self.run([self.nvidia + "/nvdisasm", "-c", cubin]).stdout
        os.remove(cubin)
        found, name, stack, spilled = {}, None, 0, 0
        for line in done.stderr.splitlines():
            if match := re.search(r"entry function '(\w+)'", line):
                name = match[1]
            if match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line):
                stack, spilled = int(match[1]), int(match[2])
            if (match := re.search(r"Used (\d+) registers", line)) and name:
                registers = int(match[1])
                shared = re.search(r"(\d+) bytes smem", line)
                found[name] = Made(registers, spilled, stack, int(shared[1]) if shared else 0,
                                   65536 // (-(-registers // 8) * 8 * 32), section_of(code, name))
        return found

    def ocloc(self, device, source, options, out, more):
        return self.run([self.usr + "/bin/ocloc", "compile", "-file", source, "-device", device,
                         "-options", " ".join(options), "-output_no_suffix", "-output",
                         os.path.basename(out), "-out_dir", os.path.dirname(out)] + more)

    def intel(self, device, source, options, work):
        out = "%s.%s" % (work, device)
        done = self.ocloc(device, source, options, out,
                          ["-internal_options", "-cl-intel-allow-zebin"])
        if done.returncode or not os.path.exists(out):
            return why(done)
        facts = self.run(["readelf", "-p", ".ze_info", out]).stdout.split("kernels_misc_info")[0]
        os.remove(out)
        found = {}
        for block in re.split(r"- name: +", facts)[1:]:
            name = re.match(r"\w+", block)[0]
            if name.startswith("Intel_Symbol_Table"):
                continue
            width = max(number(block, "simd_size"), 1)
            memory = block.split("per_thread_memory_buffers")
            parts = re.split(r"- type: ", memory[1])[1:] if len(memory) > 1 else []
            size = {use: sum(number(p, "size") for p in parts if use in p)
                    for use in ("private_space", "single_space", "spill_fill_space")}
            private = size["private_space"] + size["single_space"] // width
            found[name] = Made(number(block, "grf_count"), size["spill_fill_space"], private,
                               number(block, "slm_size"), width, None)
        return found

    def spirv(self, source, options, work):
        out = work + ".v"
        done = self.ocloc("acm-g10", source, options, out, ["-spv_only"])
        made = [out + ending for ending in ("", ".spv") if os.path.exists(out + ending)]
        if not made:
            return why(done)
        valid = self.run([self.usr + "/bin/spirv-val", "--target-env", "spv1.4", made[0]])
        os.remove(made[0])
        return why(valid) if valid.returncode else {"": Made(0, 0, 0, 0, 1, None)}


def number(text, key):
    return sum(int(n) for n in re.findall(key + r": +(\d+)", text))


def why(done):
    lines = (done.stdout + done.stderr).splitlines()
    bad = [line for line in lines if re.search(r"error|fatal|undefined|unresolved", line, re.I)]
    return (bad or lines or ["exit code %d" % done.returncode])[0][:200]


def body_of(assembly, kernel):
    """Returns the lines of a kernel in an AMD assembly listing."""
    start = assembly.find("\n%s:" % kernel)
    end = assembly.find("s_endpgm\n.Lfunc_end", start)
    if end < 0:
        end = assembly.find(".Lfunc_end", start)
    return assembly[start:end].splitlines()


def section_of(code, kernel):
    """Returns the lines of a kernel in the output of nvdisasm."""
    start = code.find("\n.text.%s:" % kernel)
    end = code.find("\n\t.section", start)
    return code[start:end if end > 0 else None].splitlines()


def occupancy(target, group, local, limit):
    """Returns the occupancy, 0 to 1: the share of a compute unit's waves that fit its registers, local memory and limit
    of work-groups."""
    if target in AMD:
        waves, _, _, simds, pool, lanes = AMD[target]
        each = -(-group // lanes)
        most = AMD_GROUPS[lanes]
        groups = min(most, limit * simds // each, pool // local if local else most)
        return groups * each / (waves * simds)
    if target in NVIDIA:
        warps, most, pool, kept = NVIDIA[target]
        each = -(-group // 32)
        groups = min(most, warps // each, limit // each, pool // (local + kept) if local else most)
        return groups * each / warps
    if target in INTEL:
        threads, pool = INTEL[target]
        each = -(-group // max(limit, 8))
        reserved = max(1024, 1 << (local - 1).bit_length()) if local else 0
        return min(threads // each, pool // reserved if reserved else threads) * each / threads
    return 1
