# SPDX-License-Identifier: Apache-2.0
"""Tests the caller's own kernels over items."""
import gc

import numpy as np
import pytest

import cleave

SCALE = cleave.Kernel("""
__kernel void scale(__global const float *in, float factor, __global const float *shift,
                    __global float *out, __global uint *place, uint first, uint count)
{
    const size_t item = get_global_id(0);
    if (item >= count) return;
    for (uint i = 0; i < WIDTH; ++i)
        out[item * WIDTH + i] = in[item * WIDTH + i] * factor + shift[i];
    place[item] = first + item;
}""", "scale", {"WIDTH": 3})


def scale(x, shift, **options):
    return cleave.map(SCALE, x, 2.5, cleave.Shared(shift), cleave.Out(np.float32, 3),
                      cleave.Out(np.uint32), cleave.FIRST, cleave.COUNT, **options)


def scale_plain(x, factor, shift, out, place, first, count):
    assert len(x) == count == len(out) and out.flags.writeable
    out[:] = x * factor + shift
    place[:] = first + np.arange(count)


@pytest.mark.parametrize("items", [1, 63, 64, 65, 1000, 100003])
def test_every_item_is_done_once(device_context, items):
    x = np.random.default_rng(items).standard_normal((items, 3)).astype(np.float32)
    out, place = scale(x, np.float32([1, 2, 3]), context=device_context)
    np.testing.assert_allclose(out, x * np.float32(2.5) + np.float32([1, 2, 3]), rtol=1e-6,
                               atol=1e-6)
    assert np.array_equal(place, np.arange(items))


def test_every_device_gives_the_same(device_context):
    x = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    want = x * np.float32(2.5) + np.float32([1, 2, 3])
    worked = 0
    for place in range(len(cleave.probe()["devices"])):
        try:
            context = cleave.Context(devices=str(place), batch=128)
            out, order = scale(x, np.float32([1, 2, 3]), context=context)
        except cleave.NoDeviceError:
            continue
        np.testing.assert_array_equal(out, want)
        assert np.array_equal(order, np.arange(1000))
        context.close()
        worked += 1
    assert worked >= 1


def test_chunks_and_sub_devices_do_not_show(device_context):
    x = np.random.default_rng(1).standard_normal((5000, 3)).astype(np.float32)
    want, _ = scale(x, np.float32([1, 2, 3]), context=device_context)
    for options in ({"batch": 7}, {"sub_devices": 2, "batch": 100}, {"schedule": "dynamic"}):
        report = cleave.Report()
        context = cleave.Context(**options)
        got, place = scale(x, np.float32([1, 2, 3]), context=context, report=report)
        context.close()
        assert np.array_equal(got, want) and np.array_equal(place, np.arange(5000))
        assert sum(share.units for share in report.shares) == 5000


def test_the_reference_takes_over(reference):
    x = np.ones((10, 3), np.float32)
    out, place = scale(x, np.float32([1, 2, 3]), reference=scale_plain, context=reference)
    assert (out == [3.5, 4.5, 5.5]).all() and place.tolist() == list(range(10))
    with pytest.raises(cleave.NoDeviceError, match="no plain C path"):
        scale(x, np.float32([1, 2, 3]), context=reference)


def test_the_reference_gets_what_the_kernel_gets(reference):
    seen = []

    def plain(x, factor, shift, out, place, first, count):
        seen.append((type(factor), float(factor), shift.tolist(), x.dtype, out.dtype, first, count))
        out[:], place[:] = x, 7
    cleave.map(SCALE, np.ones((10, 3), ">f4"), np.float32(1.5), cleave.Shared([1.0, 2.0, 3.0]),
               cleave.Out(np.float32, 3), cleave.Out(np.uint32), cleave.FIRST, cleave.COUNT,
               reference=plain, context=reference)
    assert sum(one[-1] for one in seen) == 10
    seen.sort(key=lambda one: one[5])  # threads share the items
    assert seen[0][:-1] == (np.float32, 1.5, [1, 2, 3], np.dtype("=f4"), np.float32, 0)


def test_what_the_reference_raises_reaches_the_caller(reference):
    def broken(*_arguments):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        scale(np.ones((10, 3), np.float32), np.float32([1, 2, 3]), reference=broken,
              context=reference)


def test_types_of_arguments(device_context):
    kernel = cleave.Kernel("""
        __kernel void types(__global const uchar *a, __global const short *b, int c, ulong d, char e,
                            __local float *room, __global long *out)
        {
            room[get_local_id(0)] = a[get_global_id(0)];
            out[get_global_id(0)] = (long)room[get_local_id(0)] + b[get_global_id(0)] + c + (long)d + e;
        }""", "types")
    a, b = np.arange(100, dtype=np.uint8), np.arange(100, dtype=np.int16) * -300
    got = cleave.map(kernel, a, b.astype(">i2"), -7, np.uint64(2**40), np.int8(-3),
                     cleave.Local(4 * 64), cleave.Out(np.int64), context=device_context)
    assert got.tolist() == [int(i) + int(j) - 7 + 2**40 - 3 for i, j in zip(a, b)]


def test_numpys_numbers_keep_their_type(device_context):
    kernel = cleave.Kernel("""
        __kernel void add(__global const int *in, ulong much, short less, __global long *out)
        {
            out[get_global_id(0)] = in[get_global_id(0)] + (long)much + less;
        }""", "add")
    x = np.arange(5, dtype=np.int32)
    got = kernel(x, np.array(2**40, np.uint64), np.int16(-3), cleave.Out(np.int64),
                 context=device_context)
    assert got.tolist() == [2**40 - 3 + i for i in range(5)]
    with pytest.raises(cleave.ArgumentError):  # a double is not accepted for a short
        kernel(x, np.uint64(1), np.float64(1), cleave.Out(np.int64), context=device_context)


def test_a_grid_has_many_work_items_for_one_item(device_context):
    kernel = cleave.Kernel("""
        __kernel void turn(__global const int *in, __global int *out)
        {
            const size_t x = get_global_id(0), y = get_global_id(1), item = get_global_id(2);
            out[(item * WIDTH + x) * HEIGHT + y] = in[(item * HEIGHT + y) * WIDTH + x];
        }""", "turn", {"WIDTH": 12, "HEIGHT": 5})
    images = np.arange(9 * 60, dtype=np.int32).reshape(9, 5, 12)
    got = kernel(images[:, :, :], cleave.Out(np.int32, (12, 5)), grid=(12, 5),
                 context=device_context)
    assert np.array_equal(got, images.transpose(0, 2, 1))
    listed = kernel(list(images), cleave.Out(np.int32, (12, 5)), grid=(12, 5), local=(6, 5, 1),
                    context=device_context)
    assert np.array_equal(listed, got)


def test_inputs_stay_as_they_are(device_context):
    x = np.ones((100, 6), np.float32)[:, ::2]  # the array is not dense
    x.flags.writeable = False
    out, _ = scale(x, np.float32([1, 2, 3]), context=device_context)
    assert (out == [3.5, 4.5, 5.5]).all() and (x == 1).all()


def test_bytes_in_another_order_are_turned(device_context):
    x = np.arange(300, dtype=">f4").reshape(100, 3)
    out, _ = scale(x, np.array([1, 2, 3], ">f4"), context=device_context)
    assert np.array_equal(out, 2.5 * x + [1, 2, 3])
    out = cleave.map(SCALE, x, 2.5, cleave.Shared(np.float32([1, 2, 3])), cleave.Out(">f4", 3),
                     cleave.Out(">u4"), cleave.FIRST, cleave.COUNT, context=device_context)[0]
    assert np.array_equal(out, 2.5 * x + [1, 2, 3])


def test_a_kernel_that_does_not_compile(device_context):
    kernel = cleave.Kernel("__kernel void bad(__global int *out) { out[0] = nonsense; }", "bad",
                           file="mine.cl")
    with pytest.raises(cleave.BuildError, match="mine.cl") as caught:
        cleave.map(kernel, cleave.Out(np.int32), items=3, context=device_context)
    assert "nonsense" in caught.value.detail
    with pytest.raises(cleave.ArgumentError, match="has no kernel other"):
        cleave.map(cleave.Kernel(SCALE.source, "other", {"WIDTH": 1}), cleave.Out(), items=3,
                   context=device_context)
    with pytest.raises(cleave.ArgumentError, match="got 2 arguments, expected 7"):
        cleave.map(SCALE, np.ones(3, np.float32), cleave.Out(), context=device_context)


def test_two_kernels_are_never_mistaken_for_each_other(device_context):
    for n in range(3):  # the first kernel is garbage before the second one is made
        kernel = cleave.Kernel(f"__kernel void n(__global int *out) {{ out[get_global_id(0)] = {n}; }}",
                               "n")
        assert (kernel(cleave.Out(np.int32), items=5, context=device_context) == n).all()
        del kernel
        gc.collect()


def test_kernels_come_from_files(device_context, tmp_path):
    (tmp_path / "five.cl").write_text("__kernel void five(__global int *out)"
                                      "{ out[get_global_id(0)] = FIVE; }")
    kernel = cleave.Kernel.from_file(tmp_path / "five.cl", "five", {"FIVE": 5})
    assert kernel(cleave.Out(np.int32), items=4, context=device_context).tolist() == [5] * 4
    assert kernel.file == "five.cl"


def test_wrong_use_says_what_is_wrong(device_context):
    x = np.ones((4, 3), np.float32)
    cases = [
        ((SCALE, x), {}, "no Out among"),
        ((SCALE, cleave.Out()), {}, "pass items="),
        ((SCALE, x, np.ones(5), cleave.Out()), {}, "has 5 items, but 4 are expected"),
        ((SCALE, x, 2**31, cleave.Out()), {}, "does not fit an int"),
        ((SCALE, x, True, cleave.Out()), {}, "pass np.int32"),
        ((SCALE, x, np.complex64(1), cleave.Out()), {}, "complex64 cannot be a kernel argument"),
        ((SCALE, x, "text", cleave.Out()), {}, "an array of numbers is expected"),
        ((SCALE, x, cleave.Out()), {"local": (64,)}, "must include COUNT"),
        ((SCALE, x, cleave.Out()), {"local": (1, 1)}, "a positive extent for each dimension"),
        ((SCALE, x, cleave.Out()), {"grid": (10,), "local": (4, 1)}, "not a multiple"),
        ((SCALE, x, cleave.Out()), {"grid": (1, 1, 1)}, "at most two"),
        (("text", x), {}, "a cleave.Kernel is expected"),
    ]
    for arguments, options, why in cases:
        with pytest.raises(ValueError, match=why):
            cleave.map(*arguments, **options, context=device_context)
    with pytest.raises(cleave.ShapeError, match="plain elements"):
        cleave.Out(object)
    for value, why in ((1.5, "an integer"), (2**63, "must be -2\\^63 to 2\\^63 - 1")):
        with pytest.raises(cleave.ArgumentError, match=why):
            cleave.Kernel("", "k", {"A": value})
    with pytest.raises(cleave.ArgumentError, match="bytes is -4, but it must be 1"):
        cleave.Local(-4)
    with pytest.raises(cleave.ShapeError, match="got object, but an array of numbers"):
        cleave.Shared([object()])


def test_nothing_to_do_is_done():
    out, place = scale(np.empty((0, 3), np.float32), np.float32([1, 2, 3]))
    assert out.shape == (0, 3) and place.shape == (0,)
