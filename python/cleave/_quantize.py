# SPDX-License-Identifier: Apache-2.0
"""Converts vectors to fewer bits, with the arguments and the numbers of sentence_transformers.quantize_embeddings."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import numbers
from ._probe import choice
from .errors import ArgumentError, ShapeError

PRECISIONS = {"float32": 0, "int8": 1, "uint8": 2, "binary": 3, "ubinary": 4}
_FEW = 100  #: with fewer vectors, ranges found from them are unreliable


def _ranges_of(vectors: NDArray[np.float32], precision: str, ranges: Any, calibration: Any) -> NDArray[np.float32]:
    """Returns the smallest and the largest value of each dimension, [2, width]."""
    width = vectors.shape[-1]
    if ranges is not None:
        taken = numbers("quantize_embeddings: ranges", ranges)
        if taken.shape != (2, width):
            raise ShapeError(f"quantize_embeddings: ranges: got shape {taken.shape}, but [2, {width}] is expected")
        return taken
    sample = vectors if calibration is None else numbers("quantize_embeddings: calibration_embeddings", calibration)
    if sample.ndim != 2 or sample.shape[1] != width or len(sample) < (2 if calibration is None else 1):
        raise ArgumentError(f"quantize_embeddings: {precision} needs the least and the largest value of each "
                            f"dimension: give ranges [2, {width}], calibration_embeddings "
                            f"[count, {width}], or more than one vector")
    if calibration is None and len(sample) < _FEW:
        warnings.warn(f"quantize_embeddings: the ranges of {precision} come from {len(sample)} vectors only; "
                      "give ranges or calibration_embeddings", stacklevel=4)
    return np.stack((sample.min(axis=0), sample.max(axis=0)))


def quantize_embeddings(embeddings: Any, precision: str, ranges: Any = None,
                        calibration_embeddings: Any = None) -> NDArray[Any]:
    """Converts vectors [count, width], or one vector [width], to fewer bits, as sentence-transformers' function of the
    same name does.

    precision  "float32"; "uint8": the index of one of 255 equal steps between the dimension's smallest and
               largest values; "int8": the same less 128; "ubinary": bits x > 0, eight per byte, the first one highest;
               "binary": the same less 128, as int8
    ranges     [2, width]: the smallest and largest values. Without them, those of calibration_embeddings [count, width]
               are used, or else those of the vectors themselves, of which there must be more than one

    search(codes=...) accepts "ubinary". Its "int8" is a different format, see search_codes().
    """
    vectors = numbers("quantize_embeddings: embeddings", embeddings)
    choice("quantize_embeddings: precision", precision, PRECISIONS)
    if vectors.ndim not in (1, 2):
        raise ShapeError(f"quantize_embeddings: got shape {vectors.shape}, but [count, width] is expected")
    if precision == "float32":
        return np.array(vectors, np.float32)
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits ^ 0x80).view(np.int8)
    if not vectors.size:
        return np.zeros(vectors.shape, np.dtype(precision))
    least, most = _ranges_of(vectors, precision, ranges, calibration_embeddings)
    step = (most - least) / np.float32(255)
    parts: NDArray[np.float32] = np.clip(np.floor((vectors - least) / np.where(step == 0, np.float32(1), step)), 0, 255)
    return parts.astype(np.uint8) if precision == "uint8" else (parts - 128).astype(np.int8)
