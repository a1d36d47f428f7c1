#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs that GPUs would get by their vendors' compilers, and checks the machine code without a GPU.

    farm.py --tools FOLDER --build FOLDER [--work FOLDER] [--targets a,b] [--table FILE] [--document FILE]
            [--exceptions FILE] [--recorded]

gpu_operations runs every operation on PoCL, which a layer makes look like a card of tests/cards/cards.json; the layer
records each program with its options, and each launch. Every program is then compiled for the targets that are mapped
to that card. A second run takes the records and the machine code of the first if nothing has changed that determines
them. A finding is: a program that does not compile, registers that spill, private arrays in memory, an occupancy below
25 %, a work-group of more than 256 work-items, or more than 32 KiB of local memory. Findings that exceptions.txt allows
are listed. The exit code is 1 after any other finding, if no finding needs a line of exceptions.txt any more, or if a
kernel misses its bar (bars.py). tools.sh downloads the compilers. OCL_ICD_VENDORS has to name a folder that contains
only PoCL.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import bars
import compilers
import loops
import paths

HERE = pathlib.Path(__file__).resolve().parent
EXCEPTIONS = HERE / "exceptions.txt"
# The card whose recorded programs are compiled for each target.
CARD_OF = {"gfx906": "vega", "gfx90a": "rx-6700xt", "gfx1030": "rx-6700xt", "gfx1100": "rx-6700xt",
           "sm_70": "rtx-3060", "sm_86": "rtx-3060", "sm_90": "h100", "acm-g10": "arc-a770",
           "tgllp": "iris-xe", compilers.SPIRV: "arc-a770"}
# The largest launches that are executed, and the operations: some compare results before they choose a kernel, and some
# do not end without most of their results.
EXECUTED = (("0", ["paco", "blobs", "volumes"]),
            ("1024", ["products", "attention", "encoders", "trainers", "decoders", "convolutions", "eigenvalues",
                      "arrays", "searches"]),
            ("1e6", ["specfit", "templates"]))
# The file in a folder of records that holds recorder_of().
RECORDER = "recorder"
LEAST_OCCUPANCY, MOST_GROUP, MOST_LOCAL = 25, 256, 32768
# The table of the first measurement, and its kernels of which a variant spilled, had private memory or an occupancy
# below 25 %, each with the kernel that has taken its place.
FIRST = HERE.parents[1] / "bench/results/2026-11-23-gpu-kernels.tsv"
FOLLOWED = {"gemm_tile": "gemm_tile", "attention": "attention_tile", "attention_back_kv": "attention_back_kv_tile",
            "attention_back_q": "attention_back_q_tile", "paco_project": "paco_project_group",
            "paco_solve_group": "paco_solve_group", "paco_solve_rows": "paco_solve_rows", "blob_tile": "blob_sweep",
            "spectra_gram": "spectra_gram_group", "spectra_around": "spectra_around_group",
            "spectra_along": "spectra_along_group", "spectra_solve": "spectra_solve_group",
            "spectra_step": "spectra_step_group", "spectra_taps": "spectra_taps_group",
            "spectra_total": "spectra_total_group"}
COMPARISON = """\
The next table compares the kernels that were worst when they were first compiled for GPUs, on 23 November
2026 ([all figures of that day](../bench/results/2026-11-23-gpu-kernels.tsv)), with those that have taken their place.
Each side is the worst variant: occupancy, `s` and `p`. The last line counts the variants of all kernels."""
COMPARED = ("gfx906", "gfx1030", "sm_86", "acm-g10")
# The targets that are the columns of each table of the document.
SHOWN = (("gfx906", "gfx90a", "gfx1030", "gfx1100"), ("sm_70", "sm_86", "sm_90"), ("acm-g10", "tgllp", "spirv"))

Row = collections.namedtuple(
    "Row", "kernel variant target registers spilled private local group occupancy slots mix inner usual failure")
Finding = collections.namedtuple("Finding", "kernel variant target kind value")


# ---- recording ----------------------------------------------------------------------

def empty(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()


def collect(build, card, folder, cache, most, operations):
    """Records the programs and launches of some operations on a card in a folder."""
    env = dict(os.environ, OPENCL_LAYERS=str(build / "lib/libcard_layer.so"),
               CLEAVE_CARD="%s#%s" % (HERE.parent / "cards/cards.json", card), CLEAVE_CARD_RECORD=str(folder),
               CLEAVE_CARD_RUN_UP_TO=most, CLEAVE_CACHE_DIR=cache)
    done = subprocess.run([build / "bin/gpu_operations"] + operations, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s: gpu_operations failed: %s%s" % (card, done.stdout, done.stderr))


def recorder_of(build):
    """Returns a digest of all that determines what is recorded."""
    files = [build / "bin/gpu_operations", HERE.parent / "cards/cards.json"]
    files += [f for f in (build / "lib").glob("*.so*") if not f.is_symlink()]
    digest = hashlib.sha256(repr(EXECUTED).encode())
    for file in sorted(files):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def recorder_at(folder):
    """Returns the digest of what made the records in a folder; None: the folder has no complete records."""
    file = folder / RECORDER
    return file.read_text() if file.exists() else None


def start_recording(collectors, build, work, cards, caches):
    """Starts to record cards, one after the other, because PoCL then finds most programs of a card in its cache."""
    started = {card: [] for card in cards}
    for card in cards:
        empty(work / card)
        cache = os.path.join(caches, card)
        os.mkdir(cache, 0o700)
        started[card] += [collectors.submit(collect, build, card, work / card, cache, most, operations)
                          for most, operations in EXECUTED]
    return started


def launches_of(folder):
    """Returns {(program, kernel): (largest work-group, most bytes of local memory)} of the launches in a folder."""
    found = {}
    for file in folder.glob("launches.*"):
        for line in file.read_text().splitlines():
            program, kernel, _, local, argument = line.split()[:5]
            items = 1
            for side in local.split(","):
                items *= max(int(side), 1)
            group, most = found.get((program, kernel), (0, 0))
            found[program, kernel] = (max(group, items), max(most, int(argument)))
    return found


def options_at(file):
    """Returns the recorded options of a program. Where PoCL emulated matrix units, which it does not have, a card uses
    its own: ocloc knows them, but does not define the macro of their extension."""
    return file.read_text().replace("-DMATRIX_EMULATED=1", "-DMATRIX_EMULATED=0 "
                                    "-Dcl_intel_subgroup_matrix_multiply_accumulate=1")


def variant_of(options):
    return " ".join(re.findall(r"-D(\w+=\S+)", options))


# ---- compiling ---------------------------------------------------------------------------------

def essence(text):
    """Returns a program without comments, #line directives and empty space, which do not change its machine code."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^#line [^\n]*", " ", text, flags=re.DOTALL | re.MULTILINE)
    return "\n".join(line.strip() for line in text.split("\n") if line.strip())


def compile_one(tools, source, options, targets, kept):
    """Returns {target: {kernel: [fields of Made, slots, mix, inner loops, usual mix]} or error message}; results are
    cached in the folder `kept`."""
    made, text = {}, essence(source.read_text())
    version = (pathlib.Path(tools) / "complete").read_text()
    code = "".join((HERE / name).read_text() for name in ("compilers.py", "loops.py", "paths.py"))
    compiler = compilers.Compilers(tools)
    with tempfile.TemporaryDirectory() as work:
        for target in targets:
            key = hashlib.sha256("\0".join([text, options, target, version, code]).encode()).hexdigest()
            file = kept / (key + ".json")
            if file.exists():
                made[target] = json.loads(file.read_text())
                continue
            got = compiler.compile(target, str(source), options.split(), os.path.join(work, "k"))
            if not isinstance(got, str):
                got = {kernel: described(kernel, m, target) for kernel, m in got.items()}
            part = kept / ("%s.%d" % (key, os.getpid()))
            part.write_text(json.dumps(got))
            part.rename(file)
            made[target] = got
    return made


def described(kernel, made, target):
    slots, mix, inner, usual = 0, {}, [], {}
    if made.code:
        nvidia = target in compilers.NVIDIA
        found = loops.loops_of(made.code, nvidia)
        hot = loops.hottest(found, nvidia)
        slots, mix = loops.slots(hot.mix, nvidia), dict(hot.mix)
        inner = [[l.depth, loops.slots(l.mix, nvidia), dict(l.mix)] for l in found]
        if kernel in bars.USUAL:
            usual = dict(paths.usual(made.code, nvidia))
            usual["slots"] = loops.slots(collections.Counter(usual), nvidia)
    return [made.registers, made.spilled, made.private, made.local, made.limit, slots, mix, inner, usual]


def rows_of(made, program, variant, launches):
    for target, kernels in made.items():
        if isinstance(kernels, str):
            yield Row("?", variant, target, 0, 0, 0, 0, 0, 0, 0, {}, [], {}, kernels)
            continue
        if target == compilers.SPIRV:  # a valid module has no figures
            for name in sorted(n for p, n in launches if p == program):
                yield Row(name, variant, target, 0, 0, 0, 0, 0, 100, 0, {}, [], {}, None)
            continue
        for kernel, (registers, spilled, private, local, limit, slots, mix, inner, usual) in kernels.items():
            if (program, kernel) not in launches:
                continue  # no operation launches this kernel with these options
            group, argument = launches[program, kernel]
            occupied = compilers.occupancy(target, group, local + argument, limit)
            yield Row(kernel, variant, target, registers, spilled, private, local + argument, group,
                      round(100 * occupied), slots, mix, inner, usual, None)


# ---- judging -----------------------------------------------------------------------------------

def findings_of(row):
    values = {"failure": 1 if row.failure else 0, "spill": row.spilled, "private": row.private,
              "group": row.group if row.group > MOST_GROUP else 0,
              "local": row.local if row.local > MOST_LOCAL else 0}
    if not row.failure and row.occupancy < LEAST_OCCUPANCY:
        values["occupancy"] = row.occupancy
    return [Finding(row.kernel, row.variant, row.target, kind, value)
            for kind, value in values.items() if value]


class Exception_:
    """A line of exceptions.txt: the kernel, the targets, kind=limit and the reason."""

    def __init__(self, line, number):
        parts = line.split(None, 3)
        if len(parts) != 4 or "=" not in parts[2]:
            sys.exit("exceptions.txt:%d: expected KERNEL TARGET[,TARGET...] KIND=LIMIT REASON" % number)
        self.text, self.kernel, self.targets = line, parts[0], parts[1].split(",")
        self.kind, limit = parts[2].split("=")
        self.limit, self.used = int(limit), set()

    def allows(self, f):
        """Tells whether the line allows the finding `f`, whose value may be at most the limit (occupancy: at least),
        and counts the line as needed for its target."""
        within = f.value >= self.limit if f.kind == "occupancy" else f.value <= self.limit
        if (f.kernel, f.kind) == (self.kernel, self.kind) and f.target in self.targets and within:
            self.used.add(f.target)
            return True
        return False


def read_exceptions(file):
    lines = file.read_text().splitlines()
    return [Exception_(line, n) for n, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")]


def judge(rows, targets, exceptions):
    allowed = read_exceptions(exceptions)
    bad = [f for row in rows for f in findings_of(row) if not any([e.allows(f) for e in allowed])]
    for f in bad:
        print("finding: %s %s: %s %s (%s)" % (f.kernel, f.target, f.kind, f.value, f.variant))
    for row in rows:
        if row.failure:
            print("  %s: %s" % (row.target, row.failure))
    stale = [(e, t) for e in allowed for t in e.targets if t in targets and t not in e.used]
    for e, target in stale:
        print("exceptions.txt: no longer needed for %s: %s" % (target, e.text))
    missed = bars.missed(rows) if exceptions == EXCEPTIONS else []
    for text in missed:
        print("bar: " + text)
    return not bad and not stale and not missed


# ---- tables ------------------------------------------------------------------------------------

def share(row, kind):
    return round(100 * row.mix.get(kind, 0) / row.slots) if row.slots else 0


def write_table(rows, file):
    head = ("kernel target registers spilled private local group occupancy_% hot_slots fma_% load_% "
            "local_% private_% integer_% variant").split()
    lines = ["\t".join(head)]
    for r in sorted(rows, key=lambda r: (r.kernel, r.variant, r.target)):
        lines.append("\t".join(str(x) for x in (
            r.kernel, r.target, r.registers, r.spilled, r.private, r.local, r.group, r.occupancy,
            r.slots, share(r, "fma") + share(r, "half"), share(r, "load"), share(r, "local"),
            share(r, "private"), share(r, "integer"), r.variant)))
    file.write_text("\n".join(lines) + "\n")


def cell(rows):
    """Returns the cell of a table: the worst figures of a kernel's variants on a target."""
    if not rows:
        return ""
    if rows[0].target == compilers.SPIRV:
        return "valid"
    spilled, private = max(r.spilled for r in rows), max(r.private for r in rows)
    best = max((share(r, "fma") for r in rows), default=0)
    text = "%dr %d %%" % (max(r.registers for r in rows), min(r.occupancy for r in rows))
    if best:
        text += " f%d" % best
    return text + (" s%d" % spilled if spilled else "") + (" p%d" % private if private else "")


def first_rows():
    """Returns the rows of the first measurement."""
    head, *lines = (line.split("\t") for line in FIRST.read_text().splitlines())
    for line in lines:
        of = dict(zip(head, line))
        number = {name: int(of[name]) for name in ("registers", "spilled", "private", "local", "group")}
        yield Row(of["kernel"], of["variant"], of["target"], **number, occupancy=int(of["occupancy_%"]), slots=0,
                  mix={}, inner=[], usual={}, failure=None)


def worst(rows):
    """Returns the occupancy, the spills and the private memory of a kernel's worst variants on a target."""
    spilled, private = max(r.spilled for r in rows), max(r.private for r in rows)
    return "%d %%%s%s" % (min(r.occupancy for r in rows), " s%d" % spilled if spilled else "",
                          " p%d" % private if private else "")


def in_memory(rows):
    return "%d of %d" % (sum(1 for r in rows if r.spilled or r.private), len(rows))


def compared(rows):
    """Returns the table that compares the first measurement with `rows`."""
    shown = [t for t in COMPARED if any(r.target == t for r in rows)]
    first = list(first_rows())
    lines = ["| kernel | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for old, new in FOLLOWED.items():
        cells = []
        for target in shown:
            before = [r for r in first if (r.kernel, r.target) == ("clv_" + old, target)]
            now = [r for r in rows if (r.kernel, r.target) == ("clv_" + new, target)]
            cells.append(" → ".join(worst(part) for part in (before, now) if part))
        lines.append("| %s | %s |" % (new, " | ".join(cells)))
    lines.append("| all: variants with `s` or `p` | %s |" % " | ".join(
        " → ".join(in_memory([r for r in part if r.target == target]) for part in (first, rows)) for target in shown))
    return lines


def write_document(rows, file):
    by = collections.defaultdict(list)
    for r in rows:
        by[r.kernel, r.target].append(r)
    text = [(HERE / "document.md").read_text().rstrip("\n"), "", *bars.table(rows), "", COMPARISON, "", *compared(rows)]
    for shown in SHOWN:
        shown = [t for t in shown if any(r.target == t for r in rows)]
        if not shown:
            continue
        text += ["", "| kernel | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
        for kernel in sorted({r.kernel for r in rows}):
            text.append("| %s | %s |" % (kernel.removeprefix("clv_"),
                                         " | ".join(cell(by[kernel, t]) for t in shown)))
    file.write_text("\n".join(text) + "\n")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", required=True, type=os.path.abspath, help="what tools.sh made")
    parser.add_argument("--build", required=True, type=pathlib.Path, help="a build with tests")
    parser.add_argument("--work", type=pathlib.Path, help="keeps what was compiled (default: TOOLS/work)")
    parser.add_argument("--targets", default=",".join(compilers.TARGETS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", type=pathlib.Path, help="writes every row as TSV")
    parser.add_argument("--document", type=pathlib.Path, help="writes the summary for docs/")
    parser.add_argument("--exceptions", type=pathlib.Path, default=EXCEPTIONS, help="findings that are allowed")
    parser.add_argument("--recorded", action="store_true",
                        help="take the programs recorded last time, whatever has changed since")
    return parser.parse_args()


def main():
    a = arguments()
    targets = a.targets.split(",")
    unknown = [t for t in targets if t not in CARD_OF]
    if unknown:
        sys.exit("unknown target %s (use %s)" % (unknown[0], ", ".join(CARD_OF)))
    work = a.work or pathlib.Path(a.tools) / "work"
    kept = work / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    rows = []
    spawned = multiprocessing.get_context("spawn")  # a fork would copy locks that the recording threads hold
    with tempfile.TemporaryDirectory() as caches, \
            concurrent.futures.ProcessPoolExecutor(a.jobs, spawned) as pool, \
            concurrent.futures.ThreadPoolExecutor(a.jobs) as collectors:
        cards = sorted({CARD_OF[t] for t in targets})
        recorder = None if a.recorded else recorder_of(a.build.resolve())
        new = [card for card in cards if not a.recorded and recorder_at(work / card) != recorder]
        recording = start_recording(collectors, a.build.resolve(), work, new, caches)
        waiting = []
        for card in cards:
            for part in recording.get(card, []):
                part.result()
            if card in recording:
                (work / card / RECORDER).write_text(recorder)
            launches = launches_of(work / card)
            mine = [t for t in targets if CARD_OF[t] == card]
            for source in sorted((work / card).glob("*.cl")):
                if "clv_" not in source.read_text():
                    continue  # a kernel of CLBlast, not of Cleave
                options = options_at(source.with_suffix(".opt"))
                future = pool.submit(compile_one, a.tools, source, options, mine, kept)
                waiting.append((future, source.stem, variant_of(options), launches))
        for future, program, variant, launches in waiting:
            rows += rows_of(future.result(), program, variant, launches)
    if a.table:
        write_table(rows, a.table)
    if a.document:
        write_document(rows, a.document)
    kernels = {r.kernel for r in rows}
    print("%d programs, %d kernels, %d rows on %s" % (len(waiting), len(kernels), len(rows), a.targets))
    return 0 if judge(rows, targets, a.exceptions) else 1


if __name__ == "__main__":
    sys.exit(main())
