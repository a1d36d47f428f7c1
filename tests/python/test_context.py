# SPDX-License-Identifier: Apache-2.0
"""Tests probe(), contexts, devices and reports."""
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import cleave


def test_probe_is_the_commands_report(tmp_path):
    report = cleave.probe(reproducible=True)
    assert report["schema"] == "cleave.probe/1"
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(report))
    again = cleave.probe(simulate=path, reproducible=True)
    assert [d["id"] for d in again["devices"]] == [d["id"] for d in report["devices"]]
    assert again["mode"] == report["mode"]
    with pytest.raises(cleave.FileError, match="no_such_file") as caught:
        cleave.probe(simulate=tmp_path / "no_such_file")
    assert isinstance(caught.value, OSError)


def test_probe_tells_what_it_does_and_stops():
    helper = os.path.join(os.environ["CLEAVE_TEST_BINARY"], "bin", "cleave-probe-helper")
    seen = []
    cleave.probe(isolate=True, helper=helper, progress=seen.append)
    assert all(isinstance(line, str) for line in seen)


def test_devices_have_facts_and_memory(device_context):
    for device in device_context.devices:
        facts = device.facts
        assert facts["id"] == device.id and device.label
        device.open()
        memory = device.memory()
        assert memory.budget_bytes > 0 and memory.free_bytes <= memory.budget_bytes
    assert device_context.mode in ("cpu", "gpu", "hybrid") and device_context.reason
    assert device_context.devices[0].label in repr(device_context)
    assert "Mode" in device_context.describe()


def test_memory_is_kept_and_given_back(device_context, sequence):
    square = cleave.Kernel("__kernel void same(__global const int *in, __global int *out)"
                           "{ out[get_global_id(0)] = in[get_global_id(0)]; }", "same")
    with cleave.Context(devices=None, memory=300_000_000) as context:
        context.devices[0].open()
        assert context.devices[0].memory().budget_bytes == 300_000_000
        cleave.map(square, np.arange(1 << 20, dtype=np.int32), cleave.Out(np.int32),
                   context=context)
        used = [d.memory() for d in context.devices]
        # how much memory is in use at the same time depends on the sizes of chunks, and these depend on the times
        # measured
        assert sum(m.peak_bytes for m in used) >= 64 << 10
        assert all(m.peak_bytes <= m.budget_bytes for m in used)
        for device in context.devices:
            device.trim()
            assert device.memory().cached_bytes == 0


def test_the_block_says_which_context(reference, context):
    outside = cleave.default_context()
    with cleave.Context(mode="reference") as inner:
        assert cleave.default_context() is inner and cleave.devices() == []
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cleave.default_context()))
        thread.start()
        thread.join()
        assert seen == [outside]  # another thread has its own context
    assert cleave.default_context() is outside
    with pytest.raises(cleave.ArgumentError, match="closed"):
        inner.probe()
    assert repr(inner) == "<cleave.Context closed>"
    inner.close()


def test_close_waits_for_a_call(sequence):
    context, started = cleave.Context(), threading.Event()
    answer = []

    def call():
        answer.append(cleave.paco(*sequence[:3], context=context,
                                  progress=lambda done, total: started.set()))

    thread = threading.Thread(target=call)
    thread.start()
    started.wait(60)
    context.close()
    thread.join()
    assert len(answer) == 1 and np.isfinite(answer[0].snr).any()


def test_a_context_does_not_survive_a_fork(reference):
    pid = os.fork()
    if pid == 0:
        try:
            reference.probe()
            code = 1
        except cleave.ArgumentError as error:
            code = 0 if "fork" in error.message else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_reports_tell_who_did_what(device_context, sequence):
    report = cleave.Report()
    assert report.shares == [] and report.seconds == 0
    cleave.paco(*sequence[:3], context=device_context, report=report)
    labels = {device.label for device in device_context.devices}
    assert report.seconds > 0 and sum(share.units for share in report.shares) > 0
    assert {s.device for s in report.shares} <= labels | {"host (reference)"}
    as_dict = report.to_dict()
    assert as_dict["schema"] == "cleave.report/1"
    assert "units" in repr(report) or labels & set(repr(report).split(":")) or report.shares


def test_traces_are_written(tmp_path, sequence, device_context):
    with cleave.Context(trace=True) as context:
        cleave.paco(*sequence[:3], context=context)
        context.write_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_program_that_forgets_everything_ends_well(tmp_path):
    script = tmp_path / "forget.py"
    script.write_text("import cleave, numpy as np\n"
                      "context = cleave.Context()\n"
                      "report = cleave.Report()\n"
                      "print(cleave.link(np.zeros((1, 3)), 1.0))\n"
                      "cleave.devices()\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0]\n", "")


def test_what_is_given_wins_over_the_environment(monkeypatch):
    """mode="auto" overrides CLEAVE_MODE. Formerly it counted as not given."""
    monkeypatch.setenv("CLEAVE_MODE", "fast")
    with pytest.raises(cleave.ArgumentError, match='CLEAVE_MODE is "fast"'):
        cleave.Context()
    with cleave.Context(mode="auto") as context:
        assert context.mode != "auto"
    monkeypatch.setenv("CLEAVE_MODE", "reference")
    with cleave.Context() as context:
        assert context.mode == "reference"
    assert cleave.probe(mode="auto")["mode"]["forced_by"] is None
    assert cleave.probe()["mode"]["forced_by"] == "CLEAVE_MODE"
    monkeypatch.setenv("CLEAVE_SCHED", "no such")
    cleave.Context(mode="reference", schedule="adaptive").close()
    monkeypatch.setenv("CLEAVE_MEM_LIMIT", "plenty")
    cleave.Context(mode="reference", schedule="adaptive", memory=0.5).close()
    with pytest.raises(cleave.ArgumentError, match='CLEAVE_MEM_LIMIT is "plenty"'):
        cleave.Context(mode="reference", schedule="adaptive")
