# SPDX-License-Identifier: Apache-2.0
"""A user's program that is checked with `mypy --strict`: it uses every public name correctly.
test_types.py checks it, and runs the parts that need no model and no library of spectra."""
from __future__ import annotations

import logging
import os
from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

import cleave

SQUARE = cleave.Kernel("""
__kernel void square(__global const float *in, float by, __global float *out, uint first,
                     uint count)
{
    const size_t i = get_global_id(0);
    if (i < count) out[i] = by * in[i] * in[i] + 0 * first;
}""", "square", {"N": 3})


def machine() -> str:
    found: Mapping[str, Any] = cleave.probe(mode="cpu", progress=lambda doing: None)
    with cleave.Context(mode="reference", memory=0.5, trace=True) as context:
        made: cleave.Context = cleave.default_context()
        assert made is context and cleave.has("clv_matmul") and cleave.LIBRARY_PATH
    rooms: list[tuple[cleave.MemoryStats, cleave.MemoryRoom]] = [
        (device.memory(), device.room()) for device in cleave.devices()]
    first: cleave.Device | None = next(iter(cleave.devices()), None)
    label = first.label if first is not None else "none"
    cleave.log_to(logging.getLogger("mine"), "warn")
    cleave.log_to(level="none")
    return f"{cleave.__version__} {found['schema']} {label} {len(rooms)}"


def arrays() -> float:
    grid: NDArray[Any] = np.arange(12, dtype=np.float32).reshape(3, 4)
    there: cleave.Array = cleave.array(grid)
    scaled: cleave.Array = (2 * there - there.mean(axis=0)) / there.std(axis=0) + grid
    into: cleave.Array = cleave.empty((3, 4))
    cleave.compute("a + b", out=into, a=there, b=1.0)
    part: cleave.Array = there[1:, ::2].T
    part += 1
    here: NDArray[Any] = cleave.asnumpy(part)
    assert here.shape == (2, 2)
    z: cleave.Normalized = cleave.normalize(there, gram=True)
    w = np.zeros(4, np.float32)
    loss, gradient = cleave.linear_step(grid, grid[:, 1], w)
    losses: NDArray[np.float32] = cleave.linear_train(grid, grid[:, 1], w, rate=0.002, steps=5)
    taps: NDArray[np.float32] = cleave.gaussian_2d(1.0, 1)
    smooth: NDArray[np.float32] = cleave.convolve_2d(grid, taps, edge="mirror")
    values: NDArray[np.float32] = cleave.eigvalsh([[2, 1], [1, 2]])
    general: NDArray[np.complex64] = np.zeros(2, np.complex64)
    try:
        general = cleave.eigvals(np.eye(2))
    except cleave.UnsupportedError:  # this machine has no LAPACK
        pass
    inside: int = cleave.monte_carlo_pi(1000, key=(1, 2), progress=True)
    with cleave.offload("host"):
        plan: cleave.Plan = cleave.explain(cleave.matmul, grid, grid.T)
        product: NDArray[Any] = cleave.matmul(grid, grid.T, alpha=2.0)
    squared = cleave.ElementwiseKernel("float x", "float z", "z = x * x")
    length = cleave.ReductionKernel("float x", "float y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
    assert float(length(there, axis=None)) >= 0
    assert float(cleave.fuse(lambda x: x / 2)(squared(there)).min()) >= 0
    with cleave.asynchronous():
        later: cleave.Array = there + 1
    cleave.synchronize()
    assert later.shape == there.shape
    stats: cleave.ArrayStats = cleave.array_stats()
    total: float = float(cleave.product(scaled, there, transpose_b=True).sum())
    assert cleave.last_plan().side in ("host", "device") and plan.flops > 0 and stats.uploads >= 0
    return total + float(cleave.reduce(smooth, "max")) + len(z) + sum(
        len(one) for one in (gradient, losses, values, general, product)) + inside + float(loss)


def kernels(report: cleave.Report | None = None) -> NDArray[Any]:
    def plain(x: NDArray[Any], by: float, out: NDArray[Any], _first: int, _count: int) -> None:
        out[:] = by * x * x

    y: NDArray[Any] = cleave.map(SQUARE, np.ones(5, np.float32), 2.0, cleave.Out(np.float32),
                               cleave.FIRST, cleave.COUNT, reference=plain, report=report)
    shares: list[cleave.Share] = report.shares if report else []
    assert all(share.units >= 0 for share in shares)
    unused: tuple[cleave.Shared, cleave.Local] = cleave.Shared(y), cleave.Local(64)
    assert len(unused) == 2
    return y


def observations(cube: NDArray[Any], angles: NDArray[Any], psf: NDArray[Any],
                 movie: NDArray[Any]) -> NDArray[np.int64]:
    found: cleave.PacoResult = cleave.paco(cube, angles, psf, fwhm=cleave.psf_fwhm(psf))
    unit: NDArray[np.float32] = cleave.psf_normalize(psf, "peak")
    moved, (right, up) = cleave.psf_recentre(psf)
    star: tuple[float, float] | None = cleave.star_position(cube, 4.0)
    good: NDArray[Any] = cleave.mend(cube, 4.0)[~cleave.frame_quality(cube)["rejected"]]
    weights: NDArray[np.float64] = cleave.frame_weights(cleave.frame_quality(cube), "variance")
    planets: cleave.CompanionResult = cleave.companions(cube, angles, psf, threshold=1e9, weights=weights)
    fluxes: NDArray[np.void] = cleave.characterize(cleave.inject(cube, angles, psf, [], []), angles, psf, [])
    flat: NDArray[np.float32] = cleave.calibrate_snr(planets.snr_raw, star or (0.0, 0.0), 4.0)
    assert len(good) <= len(cube) and len(fluxes) == 0 and right + up < 1 and moved.size == psf.size
    assert flat.shape == planets.snr.shape
    spots = cleave.blobs(movie, threshold_rel=0.3, table="array")
    with cleave.BlobStream((movie.shape[1], movie.shape[2]), np.float32) as stream:
        one: NDArray[np.void] = stream.push(movie[0])
    assert spots.dtype == cleave.SPOT == one.dtype and unit.max() == 1 and found.counts
    deep: NDArray[np.void] = cleave.volumes(movie, threshold_rel=0.3, table="array")
    assert deep.dtype == cleave.VOLUME_SPOT
    still: NDArray[np.float32] = cleave.registered(movie, cleave.stage_drift(movie, memory=5))
    assert still.shape == movie.shape
    particle = cleave.link(spots, search_range=2.0, progress=lambda done, total: True)
    assert len(cleave.branches(spots, particle, 2.0)) <= 2 * len(spots)
    moving: cleave.Tracks = cleave.Tracks(spots, particle, scale=0.1, interval=0.5).filter(min_spots=1)
    curve: NDArray[np.void] = moving.msd(2)
    speed: cleave.Diffusion = moving.subtract_drift(smooth=1).diffusion(exposure=0.0)
    assert len(curve) <= 2 and len(moving.table) == len(moving) and not speed.d < 0
    return particle


def colours(cube: NDArray[Any], angles: NDArray[Any], psf: NDArray[Any]) -> NDArray[np.float64]:
    both = np.stack([cube, cube[::-1]])
    result: cleave.AsdiResult = cleave.asdi(both, angles, psf, spectra=[[1, 2], [2, 1]], threshold=None)
    return result.fluxes


def limits(cube: NDArray[Any], angles: NDArray[Any], psf: NDArray[Any]) -> NDArray[np.void]:
    result: cleave.ContrastResult = cleave.contrast(cube, angles, psf, [8.0], injections=24)
    return result.curve


def stars(folder: str, arm: cleave.SpectraArm, spectra: list[dict[str, Any]]) -> list[str]:
    library: cleave.SpectraLibrary = cleave.SpectraLibrary.load(folder)
    library = cleave.SpectraLibrary([arm], np.zeros((1, 4)))
    maker: cleave.TemplateMaker = cleave.TemplateMaker(np.arange(5000.0, 5200.0, 0.1), 5050, 5150, 0.2, sigma=0.5)
    log_flux: NDArray[np.float32] = maker.log_flux(np.ones((1, maker.points)))
    library = cleave.spectra_library({"green": (maker, log_flux)}, [[5000, 4.5, 0, 0]], starts=10)
    library.save("mine")
    fits = cleave.specfit(spectra, library)
    return [text for bit, text in cleave.WARNINGS.items() if (fits["warnings"] & bit).any()]


def texts(folder: os.PathLike[str], words: list[str], classes: list[int]) -> NDArray[np.float32]:
    ids: list[NDArray[np.int32]] = cleave.tokenize(folder, words)
    encoder: cleave.Encoder = cleave.Encoder(folder, half=True)
    vectors: NDArray[np.float32] = encoder.embed(words, progress=True) + cleave.embed(folder, words)
    trainer = cleave.Trainer(folder, "classes", classes=3)
    alike: cleave.Found = cleave.search(vectors, vectors, 2, similarity="dot")
    hits: list[list[dict[str, int | float]]] = cleave.semantic_search(vectors, vectors, top_k=2)
    codes: NDArray[Any] = cleave.search_codes(vectors, "int8")
    alike = cleave.search(vectors, vectors, 2, codes=codes, rescore=20)
    assert len(alike.rows) == len(alike.scores) == len(hits)
    bits: NDArray[Any] = cleave.quantize_embeddings(vectors, "ubinary")
    assert len(bits) == len(encoder.encode(words, precision="binary"))
    step: cleave.TrainResult = trainer.step(words, classes, rate=1e-5)
    tuned: cleave.FinetuneResult = cleave.finetune(folder, words, classes, "tuned", epochs=1)
    classifier: cleave.Classifier = cleave.Classifier("tuned", threads=1)
    table: NDArray[np.float32] = classifier.probabilities(words)
    best: list[cleave.Class] = classifier.classify(words, progress=True)
    best += cleave.classify("tuned", words)
    cross: cleave.CrossEncoder = cleave.CrossEncoder("cross", activation="sigmoid", max_length=64)
    ranked: list[dict[str, Any]] = cross.rank("query", words, top_k=3, return_documents=True)
    print(cross.predict([("a", "b")]), ranked[0]["score"], cross.classes)
    assert len(ids) == len(words) and step.loss and tuned.classes and len(table) == len(best)
    return vectors


def language(model: cleave.LanguageModel) -> float:
    text = model.generate("a", max_tokens=2, seed=1, stop=["b"])
    said: str = text if isinstance(text, str) else "".join(text)
    answer = model.chat([{"role": "user", "content": said}], max_tokens=1)
    best: NDArray[np.float32] = model.logits(model.tokenize("a"))
    texts: list[str] = model.generate_many(["a", "b"], max_tokens=2, seed=1)
    assert len(texts) == 2
    return float(best.max()) + (len(answer) if isinstance(answer, str) else 0)


def failures() -> list[str]:
    said = []
    try:
        cleave.matmul(np.ones((2, 3)), np.ones((2, 3)))
    except cleave.ArgumentTypeError as error:
        said.append(f"a TypeError: {error.message}")
    except (cleave.ArgumentError, cleave.ShapeError, cleave.FormatError,
            cleave.UnsupportedError) as error:
        said.append(f"{error.status} {error.name} {error.message}{error.detail}")
    except (cleave.HostMemoryError, cleave.DeviceMemoryError, cleave.NoDeviceError,
            cleave.DeviceError, cleave.BuildError, cleave.WrongResultError, cleave.FileError,
            cleave.CancelledError, cleave.BusyError, cleave.InternalError, cleave.LibraryError) as error:
        said.append(error.name)
    except cleave.Error:
        raise
    return said
