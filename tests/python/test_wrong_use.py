# SPDX-License-Identifier: Apache-2.0
"""Tests wrong uses of every function: each raises one exception that names the argument, its value and what is
accepted, and no input is changed or ignored silently."""
import os
import subprocess
import sys

import numpy as np
import pytest

import cleave

SQUARE = cleave.Kernel("""
#define UNUSED(x) (x)
__kernel __attribute__((vec_type_hint(float))) void square( // (in, by)
    __global const float *restrict in, float by, /* int */ __global float *out, uint count)
{
    const size_t i = get_global_id(0);
    if (i < count) out[i] = by * in[i] * in[i];
}
__kernel void points(__global const float2 *p, __global const struct odd *q, unsigned char c,
                     __global unsigned int *out) { }""", "square")
X = np.arange(12, dtype=np.float32).reshape(3, 4)
OUT, COUNT = cleave.Out(), cleave.COUNT
PSF = np.exp(-(np.mgrid[-5:6, :11][0]**2 + (np.mgrid[:11, -5:6][1])**2) / 4.5)
CUBE, ANGLES = np.random.default_rng(0).random((6, 20, 20), np.float32), np.arange(6) * 5.0
MOVIE = np.random.default_rng(1).random((2, 32, 32), np.float32)


def read_only():
    out = np.empty((3, 3), np.float32)
    out.flags.writeable = False
    return out


CASES = {
    "matmul out list": (lambda: cleave.matmul(X, X.T, out=[[0]]), "out is list .*, but it must be an array"),
    "matmul out read": (lambda: cleave.matmul(X, X.T, out=read_only()), "read-only .* writeable"),
    "matmul alpha": (lambda: cleave.matmul(X, X.T, alpha="2"), "alpha is '2', but it must be a number"),
    "matmul inf": (lambda: cleave.matmul(X, X.T, alpha=1e300), r"alpha is 1e\+300, which is too large"),
    "matmul rows": (lambda: cleave.matmul([[1, 2], [3]], X), "matmul: a: setting an array element"),
    "context": (lambda: cleave.matmul(X, X.T, context="cpu"), "context is 'cpu', but it must be a cleave.Context"),
    "compute NUL": (lambda: cleave.compute("x\0+1", x=X), "position 1 has a NUL"),
    "compute ASCII": (lambda: cleave.compute("x \u00d7 2", x=X), "found a character that is not printable"),
    "compute complex": (lambda: cleave.compute("x * k", x=X, k=np.complex64(1j)), "got complex64"),
    "compute object": (lambda: cleave.compute("x + y", x=X, y="b"), "^y: got <U1, but real numbers are expected"),
    "linear object": (lambda: cleave.linear_step(X, [None] * 3, X[0]), "^y: got object, but real numbers"),
    "compute int": (lambda: cleave.compute("x * k", x=X, k=10**400), "compute: k is 1000.*, but it must be a number"),
    "compute float": (lambda: cleave.compute("x * k", x=X, k=1e300), r"k is 1e\+300, which is too large"),
    "compute out": (lambda: cleave.compute("x", x=X, out=3), "out is 3, but it must be an array"),
    "reduce axis": (lambda: cleave.reduce(X, "sum", "0"), "axis is '0', but it must be an integer"),
    "reduce axes": (lambda: cleave.reduce(X, "sum", (0, 1)), r"axis is tuple \(0, 1\)"),
    "product": (lambda: cleave.product(X, X), r"shapes \(3, 4\) and \(3, 4\) do not fit"),
    "quantize": (lambda: cleave.quantize_embeddings([1, 2], "int8"), r"give ranges \[2, 2\], calibration_embeddings"),
    "rate": (lambda: cleave.linear_train(X, X[:, 0], X[0].copy(), rate="1", steps=1), "rate is '1'"),
    "weights": (lambda: cleave.linear_train(X, X[:, 0], np.ma.array(X[0]), rate=1, steps=1),
                "w: got masked float32, but a dense, writeable float32 array is expected"),
    "weights type": (lambda: cleave.linear_train(X, X[:, 0], np.zeros(4), rate=1, steps=1), "got float64"),
    "gaussian": (lambda: cleave.gaussian_2d("1", 2), "sigma is '1', but it must be a number"),
    "radius": (lambda: cleave.gaussian_2d(1, 2.5), "radius is 2.5, but it must be an integer"),
    "key": (lambda: cleave.monte_carlo_pi(5, key=3), "key is 3, but it must be two"),
    "key word": (lambda: cleave.monte_carlo_pi(5, key=(1.5, 2)), "key is 1.5, but it must be an integer"),
    "constant": (lambda: cleave.convolve_2d(X, X, constant="1"), "constant is '1', but it must be a number"),
    "empty": (lambda: cleave.empty(2.5), "empty: got shape 2.5, but whole numbers"),
    "paco wraps": (lambda: cleave.paco(CUBE, ANGLES, PSF, radius=2**33 + 4), "radius is 8589934596"),
    "paco below 0": (lambda: cleave.paco(CUBE, ANGLES, PSF, radius=-1),
                     r"radius is -1, but it must be .*0 to 2\^32 - 1"),
    "paco text": (lambda: cleave.paco(CUBE, ANGLES, PSF, radius="4"), "radius is '4', but it must be an integer"),
    "paco fwhm": (lambda: cleave.paco(CUBE, ANGLES, PSF, fwhm="4"), "fwhm is '4', but it must be a number"),
    "paco threshold": (lambda: cleave.paco(CUBE, ANGLES, PSF, threshold="5"), "threshold is '5'"),
    "paco center": (lambda: cleave.paco(CUBE, ANGLES, PSF, center=5), r"center is 5, but it must be \(column, row\)"),
    "paco flag": (lambda: cleave.paco(CUBE, ANGLES, PSF, reverse_angles="no"), "is 'no', but it must be True or False"),
    "progress": (lambda: cleave.paco(CUBE, ANGLES, PSF, progress="bar"), "progress is 'bar', but it must be a bool"),
    "report": (lambda: cleave.paco(CUBE, ANGLES, PSF, report="r"), "report: got 'r', but a cleave.Report is expected"),
    "movie": (lambda: cleave.blobs("movie.tif"), "got <U9, but numbers .* are expected"),
    "sigma": (lambda: cleave.blobs(MOVIE, min_sigma="1"), "min_sigma is '1', but it must be a number"),
    "num_sigma": (lambda: cleave.blobs(MOVIE, num_sigma=2**32 + 3), "num_sigma is 4294967299"),
    "border": (lambda: cleave.blobs(MOVIE, exclude_border=None), "exclude_border is None, but it must be an integer"),
    "stream shape": (lambda: cleave.BlobStream((5, 5, 5), np.uint8), r"\(height, width\) is expected"),
    "stream sides": (lambda: cleave.BlobStream((-5, 5), np.uint8), r"the shape is \(-5, 5\), but extents must"),
    "stream capacity": (lambda: cleave.BlobStream((5, 5), np.uint8, capacity=-1), "capacity is -1"),
    "link range": (lambda: cleave.link([[0, 1, 1]], None), "search_range is None, but it must be a number"),
    "link wraps": (lambda: cleave.link([[0, 1, 1]], 3, memory=2**70), "memory is 118.*, but it must be 0"),
    "link complex": (lambda: cleave.link([[0, 1j, 1]], 3), "got complex128, but real numbers are expected"),
    "link text": (lambda: cleave.link({"frame": [0], "y": ["b"], "x": [1]}, 3), "spots: y: got .*, but real numbers"),
    "specfit": (lambda: cleave.specfit([], "library"), "is 'library', but it must be a cleave.SpectraLibrary"),
    "library": (lambda: cleave.SpectraLibrary("abc", np.zeros((1, 4))), "is 'a', but each must be a cleave.SpectraArm"),
    "library path": (lambda: cleave.SpectraLibrary.load(None), "folder is None, but it must be a path"),
    "path NUL": (lambda: cleave.Encoder("a\0b"), "NUL character"),
    "model path": (lambda: cleave.tokenize(None, ["a"]), "folder is None, but it must be a path"),
    "no model": (lambda: cleave.Encoder("/no/such"), "/no/such: there is no such model folder"),
    "mode": (lambda: cleave.Context(mode=3), "mode is 3, but it must be a text"),
    "devices": (lambda: cleave.Context(devices=["cpu"]), "devices is list .*, but it must be a text"),
    "memory": (lambda: cleave.Context(memory="1GB"), "memory is '1GB', but it must be a number"),
    "memory wraps": (lambda: cleave.Context(memory=2**70), "memory is 118.*, but it must be 0 to"),
    "batch": (lambda: cleave.Context(batch="1"), "batch is '1', but it must be an integer"),
    "timeout": (lambda: cleave.probe(timeout=-5), "timeout is -5, but it must be 0 or more"),
    "logger": (lambda: cleave.log_to("name"), "log_to: got 'name', but a logging.Logger"),
    "map float64": (lambda: SQUARE(X[0].astype(float), 2, OUT, COUNT), r"float \*restrict in`, which needs "
                    "float32, but got float64"),
    "map int": (lambda: SQUARE(X[0].astype(np.int32), 2, OUT, COUNT), "needs float32, but got int32"),
    "map out": (lambda: SQUARE(X[0], 2, cleave.Out(np.float64), COUNT), "argument 2: .* got float64"),
    "map number": (lambda: SQUARE(X[0], np.int32(2), OUT, COUNT), "`float by`, but got int32 "),
    "map array": (lambda: SQUARE(X[0], X[0], OUT, COUNT), "`float by`, but got an array of float32"),
    "map pointer": (lambda: SQUARE(1, 2, OUT, COUNT, items=3), "argument 0: the kernel has .*, but got 1"),
    "map list": (lambda: SQUARE([[1], [1, 2]], 2, OUT, COUNT), "argument 0: setting an array"),
    "map masked": (lambda: SQUARE(np.ma.masked_less(X[0], 2), 2, OUT, COUNT), "a masked array is not supported"),
    "map items": (lambda: SQUARE(1, 2, OUT, COUNT, items=3.5), "items is 3.5|`__global"),
    "map grid": (lambda: SQUARE(X[0], 2, OUT, COUNT, grid=(2.5,)), r"grid: got shape \(2.5,\)"),
    "map reference": (lambda: SQUARE(X[0], 2, OUT, COUNT, reference="x"), "is 'x', but it must be a function"),
    "map flops": (lambda: SQUARE(X[0], 2, OUT, COUNT, flops="many"), "flops is 'many', but it must be a number"),
    "Out": (lambda: cleave.Out(np.float32, (-1, -1)), "extents must be at least 1"),
    "Out float": (lambda: cleave.Out(np.float32, 2.5), "got shape 2.5, but whole numbers"),
    "Local": (lambda: cleave.Local("a"), "bytes is 'a', but it must be an integer"),
    "Kernel": (lambda: cleave.Kernel(b"a", "a"), "source is b'a', but it must be a text"),
    "Kernel NUL": (lambda: cleave.Kernel("a\0b", "a"), "NUL character"),
    "define": (lambda: cleave.Kernel("", "a", {"A": 2**80}), r"define A is 12.* must be -2\^63 to 2\^63 - 1"),
    "texts": (lambda: cleave.finetune("/no", ["a", float("nan")], [0, 1], "/no/out"), "text 1: got nan, but a str"),
    "surrogate": (lambda: cleave._encoder.encoded("texts", ["a", "b\ud800"]), "text 1: character 1: half"),
    "paco zero": (lambda: cleave.paco(CUBE, ANGLES, PSF, radius=0), "paco: radius is 0, but it must be more than 0"),
    "sigma zero": (lambda: cleave.blobs(MOVIE, min_sigma=0.0), "min_sigma is 0.0, but it must be more than 0"),
    "sigmas zero": (lambda: cleave.BlobStream((8, 8), np.uint8, num_sigma=0), "num_sigma is 0"),
    "epochs": (lambda: cleave.finetune("/no", ["a"], [0], "/no/out", epochs=1.5), "epochs is 1.5, but it must be an"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_exception_says_all(name):
    call, why = CASES[name]
    with cleave.Context(mode="reference"), pytest.raises(cleave.Error, match=why):
        call()


def test_a_wrong_type_is_pythons_type_error_too():
    with pytest.raises(TypeError, match="must be an integer"):
        cleave.reduce(X, "sum", 0.5)
    with pytest.raises(ValueError, match="must be an integer"):
        cleave.reduce(X, "sum", 0.5)


def test_kernels_get_the_types_that_they_have(device_context):
    got = SQUARE([1, 2.5, 3], 2, OUT, COUNT, context=device_context)  # an int in place of a float
    assert got.tolist() == [2, 12.5, 18]
    counted = cleave.Kernel("""__kernel void add(__global const ulong *in, long more, uchar less,
        __global ulong *out) { out[get_global_id(0)] = in[get_global_id(0)] + more - less; }""", "add")
    got = counted([1, 2], 2**40, 3, cleave.Out(np.uint64), context=device_context)
    assert got.tolist() == [2**40 - 2, 2**40 - 1]
    with pytest.raises(cleave.ArgumentError, match="`uchar less`, but got 300"):
        counted([1, 2], 2**40, 300, cleave.Out(np.uint64), context=device_context)
    with pytest.raises(cleave.ShapeError, match="needs uint64, but got float64"):
        counted([1.5], 0, 0, cleave.Out(np.uint64), context=device_context)


def test_signatures_are_read_where_they_are_plain():
    found = cleave._signature.parameters(SQUARE.source, "points")
    assert [(one.pointer, one.element) for one in found] == [
        (True, "f4"), (True, ""), (False, "u1"), (True, "u4")]
    assert [one.element for one in SQUARE.parameters] == ["f4", "f4", "f4", "u4"]
    for source in ("__kernel void f(ARGUMENTS)\n", "MAKE(f, float)", "__kernel void f(__global T *t)",
                   "__kernel void f(float x\n#ifdef A\n, int y\n#endif\n)"):
        assert not any(one.element for one in cleave._signature.parameters(source, "f"))


def test_masked_pixels_are_masks_everywhere(reference):
    masked = np.ma.masked_greater(MOVIE, 0.5)
    want = cleave.blobs(np.where(MOVIE > 0.5, np.nan, MOVIE), table="array", context=reference)
    got = cleave.blobs(masked, table="array", context=reference)
    assert np.array_equal(got, want)
    assert len(cleave.blobs(np.ma.masked_less(MOVIE, 2), context=reference)) == 0
    with pytest.raises(cleave.ArgumentError, match="x nan, but positions must be finite"):
        cleave.link(np.ma.masked_equal([[0.0, 5, 1]], 1), 3)


def test_a_missing_pandas_is_told_before_the_work(monkeypatch, reference):
    monkeypatch.setitem(sys.modules, "pandas", None)
    def worked(*_at):
        pytest.fail("blobs began")
    with pytest.raises(ImportError, match="pandas"):
        cleave.blobs(MOVIE, table="pandas", context=reference, progress=worked)
    assert isinstance(cleave.blobs(MOVIE, context=reference), np.ndarray)


def test_a_closed_context_is_not_entered():
    context = cleave.Context(mode="reference")
    context.close()
    for use in (context.__enter__, lambda: cleave.matmul(X, X.T, context=context), context.probe):
        with pytest.raises(cleave.ArgumentError, match="it is closed"):
            use()
    assert cleave.default_context() is not context


def test_after_a_fork():
    """A child may make a context of its own; the parent's context is refused in the child."""
    done = subprocess.run([sys.executable, "-c", """if True:
        import os, numpy as np, cleave
        x = np.ones((2, 2), np.float32)
        with cleave.Context(mode="reference") as context:
            there = cleave.array(x)
            cleave.matmul(x, x)
            child = os.fork()
            if not child:
                for use in (lambda: cleave.matmul(x, x), lambda: there + 1, there.numpy):
                    try:
                        use()
                    except cleave.ArgumentError as error:
                        assert "made before a fork" in str(error), error
                    else:
                        os._exit(3)
                with cleave.Context(mode="reference"):
                    os._exit(0 if cleave.matmul(x, x)[0, 0] == 2 else 4)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert (there + 1).numpy()[0, 0] == 2
            print("child", status)"""], capture_output=True, text=True, check=False,
                          env=os.environ)
    assert done.stdout == "child 0\n", done.stdout + done.stderr
