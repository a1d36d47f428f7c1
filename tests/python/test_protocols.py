# SPDX-License-Identifier: Apache-2.0
"""Tests the package's objects with NumPy, pickle, copy and `with`."""
import copy
import gc
import pickle

import numpy as np
import pytest

import cleave

GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
SCALE = cleave.Kernel("__kernel void scale(__global const float *in, __global float *out)"
                      "{ out[get_global_id(0)] = BY * in[get_global_id(0)]; }", "scale", {"BY": 3})


def test_numpy_takes_an_array_that_is_there(context):
    there = cleave.array(GRID, context=context)
    assert np.array_equal(np.asarray(there), GRID) and np.asarray(there).dtype == np.float32
    assert np.array(there, dtype=np.float64).dtype == np.float64
    assert np.array_equal(np.from_dlpack(there), GRID)
    assert np.array_equal(there.__array__(copy=False), GRID)
    with pytest.raises(ValueError, match="without a copy"):
        there.__array__(np.float64, copy=False)
    mine = np.array(there)
    mine[:] = 0
    assert np.array_equal(there.numpy(), GRID)
    for both in (GRID + there, there + GRID):
        assert isinstance(both, cleave.Array) and np.array_equal(both, 2 * GRID)
    assert isinstance(np.sin(there), cleave.Array) and np.allclose(np.sin(there), np.sin(GRID))


def test_what_is_added_to_numpys_array_is_in_it(context):
    there, mine = cleave.array(GRID, context=context), np.ones_like(GRID)
    same = mine
    mine += there
    mine -= 2 * there[0]
    np.maximum(mine, there, out=mine)
    assert mine is same and np.array_equal(same, np.maximum(GRID + 1 - 2 * GRID[0], GRID))
    assert isinstance(np.add(there, 1.0), cleave.Array) and np.array_equal(np.add(there, GRID), 2 * GRID)
    assert np.array_equal(np.add.reduce(there), GRID.sum(0))
    for got in (np.float32(2) - there, GRID @ there.T, GRID < there + 1, GRID == there):
        assert isinstance(got, cleave.Array)
    assert (GRID < there + 1).min().item() == 1 and np.array_equal(GRID @ there.T, GRID @ GRID.T)
    assert np.add(GRID, 2, out=there) is there and np.array_equal(there, GRID + 2)
    with pytest.raises(cleave.ShapeError):
        np.add(GRID, GRID, out=there[0])


def test_an_array_is_changed_in_place(side):
    there, mine = cleave.array(GRID + 1, context=side), GRID + 1
    same, own = there, there.copy()
    for change in ("a += 2", "a -= b", "a *= a", "a /= 3", "a //= 2", "a %= 7", "a **= 2", "a += r"):
        here = {"a": there, "b": own, "r": GRID[0]}
        wanted = {"a": mine, "b": GRID + 1, "r": GRID[0]}
        exec(change, here), exec(change, wanted)  # pylint: disable=exec-used
        assert here["a"] is there, change
        np.testing.assert_allclose(same, mine, rtol=1e-5, err_msg=change)
    with pytest.raises(cleave.ShapeError):
        there += np.ones((2, 3, 4))
    assert same.shape == (3, 4)


def test_divisions_leave_what_numpys_leave(side):
    a = np.float32([7, -7, 6, 1, -1, 0.3, 0, 5e6, 1e-10, -1e-10, np.inf, np.nan])
    for divisor in (3, -3, 0.1, 0.3, 1, 7, np.inf, -np.inf, 0):
        d = np.float32(divisor)
        with np.errstate(all="ignore"):
            want, rest, back = a // d, a % d, d // a
        there = cleave.array(a, context=side)
        assert np.array_equal(there // divisor, want, equal_nan=True), divisor
        assert np.array_equal(divisor // there, back, equal_nan=True), divisor
        for got, wanted in zip((*divmod(there, divisor), *divmod(divisor, there)),
                               (want, rest, back, d % a)):
            assert np.array_equal(got, wanted, equal_nan=True), divisor
        np.testing.assert_allclose(there % divisor, rest, rtol=1e-6, err_msg=str(divisor))
    there = cleave.array(GRID + 1, context=side)
    for got, want in ((5 % there, 5 % (GRID + 1)), (GRID % there, GRID % (GRID + 1)),
                      (there ** True, GRID + 1)):
        assert isinstance(got, cleave.Array) and np.array_equal(got, want)


def test_numpys_reductions_stay_on_the_device(context):
    there = cleave.array(GRID, context=context)
    for function in (np.sum, np.mean, np.var, np.std, np.min, np.max, np.argmin, np.argmax):
        for axis in (None, 0, -1):
            got = function(there, axis=axis)
            assert isinstance(got, cleave.Array)
            np.testing.assert_allclose(got, function(GRID, axis=axis), rtol=1e-6)
    assert there.sum(axis=-1, keepdims=True).shape == (3, 1)
    assert np.array_equal(there - there.max(0, keepdims=True), GRID - GRID.max(0, keepdims=True))
    assert there.mean(keepdims=True).shape == (1, 1)
    assert there.sum(dtype=np.float64).dtype == np.float64 and there.sum(dtype=np.float64).item() == 66
    rows = np.empty(3, np.float32)
    assert there.sum(axis=1, out=rows) is rows and np.array_equal(rows, GRID.sum(1))
    np.testing.assert_allclose(np.std(there, ddof=1), np.std(GRID, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(there.var(axis=0, ddof=2), GRID.var(axis=0, ddof=2), rtol=1e-6)


def test_comparisons_are_by_element(context):
    there = cleave.array(GRID, context=context)
    assert np.array_equal((there == 5).numpy(), (GRID == 5).astype(np.float32))
    assert np.array_equal((there != GRID[0]).numpy(), (GRID != GRID[0]).astype(np.float32))
    assert bool((there == there).min()) and not bool((there != there).max())
    with pytest.raises(ValueError, match="12 elements are neither true nor false"):
        bool(there)
    with pytest.raises(TypeError, match="unhashable"):
        hash(there)


def test_elements_come_to_the_host(context):
    there = cleave.array(GRID, context=context)
    assert there[1, 2] == 6 and np.array_equal(there[:, -1], GRID[:, -1])
    assert [row.tolist() for row in there] == there.tolist() == GRID.tolist()
    assert len(there) == 3 and 5 in there.tolist()[1]
    total = there.sum()
    assert total.item() == float(total) == int(total) == 66
    with pytest.raises(ValueError, match="exactly 1 element, but the array has 12"):
        there.item()
    with pytest.raises(IndexError):
        there[7]


def test_one_extent_of_a_shape_is_what_remains(context):
    there = cleave.array(GRID, context=context)
    for asked, found in (((-1,), (12,)), ((2, -1), (2, 6)), (((-1, 3),), (4, 3)), (([12],), (12,))):
        assert there.reshape(*asked).shape == found
        there.shape = asked[0] if len(asked) == 1 else asked
        assert there.shape == found
    assert np.array_equal(there, GRID.reshape(-1))
    assert there.reshape(np.array([2, -1])).shape == cleave.empty(np.array([2, 6]), context=context).shape
    for wrong in ((5, -1), (-1, -1), "a", (0, -1), 2.5, np.array([2.0, 6])):
        with pytest.raises(cleave.ShapeError):
            there.reshape(wrong)
    assert there.shape == (12,)


def test_new_contents_are_checked(context):
    there = cleave.array(GRID, context=context)
    for wrong in (np.ones(5), "abc", 1j, None):
        with pytest.raises(cleave.ShapeError):
            there.write(wrong)
    assert np.array_equal(there, GRID)
    assert np.array_equal(there.write(GRID[0]), np.broadcast_to(GRID[0], (3, 4)))


def test_copies_are_arrays_of_their_own(context):
    there = cleave.array(GRID, context=context)
    others = [copy.copy(there), copy.deepcopy(there), pickle.loads(pickle.dumps(there))]
    assert others[0].context is others[1].context is context
    there.write(0)
    del there
    gc.collect()  # a copy of the pointer alone would now point to freed memory
    for other in others:
        assert np.array_equal(other, GRID)


def test_what_numpy_users_write_without_thinking(context):
    there = cleave.array(GRID, context=context)
    made = {"T": (there.T, GRID.T), "transpose": (there.reshape(1, 3, 4).transpose(2, 0, 1),
                                                  GRID.reshape(1, 3, 4).transpose(2, 0, 1)),
            "np": (np.transpose(cleave.array(GRID, context=context)), GRID.T),
            "copy": (there.reshape(3, 4).copy(), GRID), "float32": (there.astype("f4"), GRID),
            "+": (+there, GRID), "//": (there // 5, GRID // 5), "5 //": (5 // (there + 1), 5 // (GRID + 1)),
            "2 **": (2 ** there, 2 ** GRID), "array **": (GRID ** there, GRID ** GRID)}
    for name, (got, want) in made.items():
        assert isinstance(got, cleave.Array) and got is not there and got.context is context, name
        np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=name)
    assert there.astype(np.float32, copy=False) is there
    doubles = there.astype(float)
    assert isinstance(doubles, cleave.Array) and doubles.dtype == np.float64 and np.array_equal(doubles, GRID)
    with pytest.raises(ValueError, match="axes"):
        there.transpose(0)


def test_kernels_can_be_pickled(device_context):
    again = pickle.loads(pickle.dumps(SCALE))
    assert again(GRID[0], cleave.Out(), context=device_context).tolist() == [0, 3, 6, 9]
    assert copy.deepcopy(SCALE).digest == SCALE.digest


def test_what_holds_pointers_is_not_copied(reference):
    things = [reference, cleave.Report(), cleave.BlobStream((8, 8), np.uint8, context=reference),
              *cleave.devices()[:1]]
    for thing in things:
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"{type(thing).__name__}: it belongs to this process"):
                way(thing)
    assert cleave.matmul(GRID, GRID.T, context=reference)[0, 0] == 14


def test_everything_shows_what_it_is(reference):
    assert repr(cleave.Out(np.int32, 3)) == "<cleave.Out int32 [3]>"
    assert repr(cleave.Shared(GRID)) == "<cleave.Shared float32 [3, 4]>"
    assert repr(cleave.Local(64)) == "<cleave.Local 64 bytes>"
    assert repr(SCALE) == "<cleave.Kernel scale>" and repr(cleave.COUNT) == "cleave.COUNT"
    assert repr(cleave.empty(3, context=reference)).startswith("<cleave.Array [3] on the ")


#: What NumPy writes, and arguments that Cleave's own functions do not have.
WRITES = {
    "out and where": lambda a, w: np.sqrt(abs(a), out=a, where=a > 0),
    "two outs": lambda a, w: np.modf(w(GRID / 3), out=(a, w(GRID))),
    "add.at": lambda a, w: np.add.at(a, ([0, 0, 2], [1, 1, 3]), 1),
    "copyto": lambda a, w: np.copyto(a, w(GRID), where=a > 0),
    "putmask": lambda a, w: np.putmask(a, a > 0, 0),
    "fill_diagonal": lambda a, w: np.fill_diagonal(a, 7),
    "stack with out": lambda a, w: np.stack([w(GRID[0])] * 3, out=a),
    "outer with out": lambda a, w: np.outer(w(GRID[1, :3]), w(GRID[2]), out=a),
    "sum with where": lambda a, w: np.sum(a, axis=0, where=a > 0, initial=3),
    "mean with where": lambda a, w: np.mean(a, where=a > 0),
    "diff with prepend": lambda a, w: np.diff(a, prepend=0),
    "trace of other axes": lambda a, w: np.trace(a[None], axis1=1, axis2=2),
    "like another shape": lambda a, w: np.ones_like(a, shape=(2,)),
    "reshape": lambda a, w: a.reshape(-1).__setitem__(3, 99),
    "reshape of a view": lambda a, w: a[:, 1:].reshape(-1).__setitem__(3, 99),
    "ravel": lambda a, w: a.ravel().__setitem__(slice(2, None, 3), 99),
    "flatten": lambda a, w: a.flatten().__setitem__(3, 99),
    "order": lambda a, w: np.stack([a.reshape(2, 6, order="F").ravel(), a.flatten("F")]),
    "swapaxes": lambda a, w: a.swapaxes(0, 1).__setitem__(2, 4),
    "fill": lambda a, w: a[::2].fill(3),
    "sort": lambda a, w: a.T.sort(),
    "in": lambda a, w: np.asarray([3 in a, 99 in a]),
    "item": lambda a, w: np.asarray([a.item(5), a.item(1, 2), a.itemsize]),
    "real": lambda a, w: setattr(a, "real", w(GRID)),
    "mean of float16": lambda a, w: w(np.full(70000, 1.5, np.float16)).mean(),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_numpy_writes_is_written(side, name):
    made = []
    for wrap in (lambda x: cleave.array(x, context=side), np.array):
        a = wrap(GRID - 5)
        made.append((a, WRITES[name](a, wrap)))
    for got, want in zip(*made):
        want = want[0] if isinstance(want, tuple) else want
        got = got[0] if isinstance(got, tuple) else got
        assert (got is None) == (want is None)
        if want is not None:
            assert np.shape(got) == np.shape(want)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)


def test_what_does_not_fit_is_refused(side):
    """As in NumPy, a float becomes no integer and a complex number no real one unless astype() says so."""
    whole, real = cleave.array(np.arange(12).reshape(3, 4), context=side), cleave.array(GRID, context=side)
    short = cleave.array([1, 2], dtype="u1", context=side)
    for wrong in (lambda: whole.__iadd__(real), lambda: whole.__itruediv__(2), lambda: real.__iadd__(real * 1j),
                  lambda: short.__iadd__(cleave.array([1, 2], dtype="i1", context=side)),
                  lambda: np.multiply(real, 2, out=whole), lambda: np.add(real, 1, out=np.zeros((3, 4), int))):
        with pytest.raises(TypeError, match="fit into"):
            wrong()
    assert np.array_equal(whole, np.arange(12).reshape(3, 4)) and np.array_equal(real, GRID)
    real += real.astype("float64")
    whole -= whole.astype("int8")
    assert real.dtype == np.float32 and np.array_equal(real, 2 * GRID) and not whole.any()
    np.multiply(whole + 1, 2.7, out=whole, casting="unsafe")
    assert np.array_equal(whole, np.full((3, 4), 2))
