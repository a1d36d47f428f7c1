#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that farm.py fails if a kernel spills, has an array in private memory, or misses its bar.

    test_farm.py TOOLS

The test writes a record of a small kernel in four forms: unchanged, which has to pass; with more live values than there
are registers; with an array whose index is not known at compile time; and with a work-group that is too large. farm.py
has to report each fault on each target where the compiler shows it. It also has to fail for a line of exceptions.txt
that no finding needs. The bars are checked against made-up rows. TOOLS is the folder that tools.sh made.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import bars
import compilers
import farm
import loops
import paths

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = "gfx906,gfx1030,sm_86,acm-g10"
GROUP = 64
GOOD = """__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
clv_self_test(__global float *x, int n)
{
    const int i = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum = fma(x[k], x[i], sum);
    x[i] = sum;
}
"""
# 300 values that are live during a loop: more than any target has registers (Intel's compiler puts them into memory)
LIVE = GOOD.replace("float sum = 0.0f;", """float sum = 0.0f, v[300];
    _Pragma("unroll") for (int k = 0; k < 300; ++k) v[k] = x[k * n];
    for (int t = 0; t < n; ++t) {
        const float by = x[t];
        _Pragma("unroll") for (int k = 0; k < 300; ++k) v[k] = fma(v[k], by, v[(k + 1) % 300]);
    }
    _Pragma("unroll") for (int k = 0; k < 300; ++k) sum += v[k];""")
INDEXED = GOOD.replace("float sum = 0.0f;", """float sum = 0.0f, v[48];
    for (int k = 0; k < 48; ++k) v[k] = x[k * n];
    for (int k = 0; k < n; ++k) v[(int)x[k]] += x[i], sum += v[(int)x[k + 1]];""")

# A block of a loop that only some iterations execute, and one that all execute.
SELDOM = GOOD.replace("sum = fma(x[k], x[i], sum);", """{
        sum = fma(x[k], x[i], sum);
        if (sum > x[n]) {
            float y = sum;
            _Pragma("unroll") for (int j = 0; j < 40; ++j) y += x[n + j];
            x[n + k] = y;
        }
    }""")
ALWAYS = SELDOM.replace("if (sum > x[n])", "")


def run(tools, folder, source, exceptions="", group=GROUP):
    """Records one program, runs farm.py on it, and returns the exit code and the output."""
    for card in set(farm.CARD_OF[t] for t in TARGETS.split(",")):
        place = folder / "work" / card
        place.mkdir(parents=True, exist_ok=True)
        (place / "self.cl").write_text(source)
        (place / "self.opt").write_text("-cl-std=CL1.2")
        (place / "launches.1").write_text("self clv_self_test 4096 %d,1,1 0\n" % group)
    (folder / "exceptions.txt").write_text(exceptions)
    done = subprocess.run([sys.executable, HERE / "farm.py", "--tools", tools, "--build", folder, "--work",
                           folder / "work", "--targets", TARGETS, "--recorded", "--exceptions",
                           folder / "exceptions.txt"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def expect(what, got, code, *parts):
    status, text = got
    missing = [p for p in parts if p not in text]
    if status != code or missing:
        sys.exit("%s: exit code %d, expected %d; not said: %s\n%s" % (what, status, code, missing, text))
    print("%s: as expected" % what)


def row(kernel, target, fma, slots):
    return farm.Row(kernel, "", target, 0, 0, 0, 0, GROUP, 100, slots, {"fma": fma}, [], {}, None)


def check_bars():
    """Tests the bars with made-up rows: all kernels at their bars, one below its bar, and one missing."""
    good = [row(kernel, target, least, 100) for kernel, targets, least, _ in bars.SHARES for target in targets]
    first = "products (clv_gemm_tile) on %s: " % good[0].target
    shares = [text for text in bars.missed(good) if "of the peak" in text]
    low = bars.missed([good[0]._replace(slots=102)] + good[1:])
    gone = bars.missed(good[1:])
    if shares or first + "59 % of the peak, at least 60 %" not in low or first + "no such kernel" not in gone:
        sys.exit("bars: %s, %s, %s" % (shares, low, gone))
    lost = "PACO's projection (clv_paco_project_group) on gfx1030: "
    if lost + "no such kernel" not in gone or lost + "the loops to count were not found" not in bars.missed(
            good + [row("clv_paco_project_group", "gfx1030", 1, 1)]):
        sys.exit("bars: a kernel that is not there, or whose loops are not found, is not told")
    far = "normal equations of spectra (clv_spectra_gram_group) on sm_86: 6.6 times"
    for slots, distance in ((64, None), (1700, far)):
        gram = row("clv_spectra_gram_group", "sm_86", 0, 0)._replace(
            variant="NPOLY=10", inner=[[0, 0, {}], [1, slots, {"fma": 64}]])
        told = [text for text in bars.missed([gram]) if "roofline" in text]
        if len(told) != (distance is not None) or (distance and not told[0].startswith(distance)):
            sys.exit("bars: a hot loop of %d slots: %s" % (slots, told))
    print("bars: as expected")


def check_essence():
    """Tests that programs which differ only in comments are the same to the cache, and that others are not."""
    told = '/* first\n */\n#line 7 "x.cl"\n' + GOOD.replace("{", "{ // then", 1)
    if farm.essence(told) != farm.essence(GOOD):
        sys.exit("essence: a comment was kept: " + farm.essence(told))
    if farm.essence(GOOD) == farm.essence(GOOD.replace("0.0f", "1.0f")):
        sys.exit("essence: different programs are the same")
    print("essence: as expected")


def check_recorder(folder):
    """Tests that records are used again only if neither the program nor the layer that made them has changed."""
    build, seen = folder / "build", set()
    for part in "bin/gpu_operations", "lib/libcard_layer.so":
        (build / part).parent.mkdir(parents=True)
        (build / part).write_text("first")
    seen.add(farm.recorder_of(build))
    for part in "bin/gpu_operations", "lib/libcard_layer.so":
        (build / part).write_text("second")
        seen.add(farm.recorder_of(build))
    if len(seen) != 3 or farm.recorder_of(build) not in seen or farm.recorder_at(build) is not None:
        sys.exit("recorder: %s" % seen)
    print("recorder: as expected")


def check_paths(tools, folder):
    """Tests that a block which is seldom executed is not counted, and that no other block is left out."""
    compiler, file = compilers.Compilers(tools), folder / "paths.cl"
    for target in "gfx906", "gfx1030", "sm_86":
        counted = {}
        for name, source in ("good", GOOD), ("seldom", SELDOM), ("always", ALWAYS):
            file.write_text(source)
            made = compiler.compile(target, str(file), ["-cl-std=CL1.2"], str(folder / name))
            counted[name] = paths.usual(made["clv_self_test"].code, target in compilers.NVIDIA)
        few, many = counted["seldom"], counted["always"]
        if few["fma"] < 1 or few["store"] or few["float"] > 10 or many["float"] < 40:
            sys.exit("paths: %s: %s" % (target, counted))
    print("paths: as expected")


def main():
    check_bars()
    check_essence()
    tools = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_recorder(folder)
        check_paths(tools, folder)
        expect("a good kernel", run(tools, folder, GOOD), 0)
        found = ["finding: clv_self_test %s: " % t for t in TARGETS.split(",")]
        expect("a kernel that spills", run(tools, folder, LIVE), 1,
               *[f + kind for f, kind in zip(found, ("spill", "spill", "spill", "private"))])
        # not on Intel, whose compiler can index registers
        expect("an array in memory", run(tools, folder, INDEXED), 1, *[f + "private" for f in found[:3]])
        expect("an array in memory, allowed on two targets",
               run(tools, folder, INDEXED, "clv_self_test gfx906,gfx1030 private=400 on purpose\n"), 1,
               found[2] + "private")
        expect("an exception that nothing needs",
               run(tools, folder, GOOD, "clv_self_test sm_86 spill=4 on purpose\n"), 1, "no longer needed for sm_86")
        expect("a work-group that is too large", run(tools, folder, GOOD.replace("64, 1, 1", "512, 1, 1"), group=512),
               1, *[f + "group 512" for f in found])


if __name__ == "__main__":
    main()
