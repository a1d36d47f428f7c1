# SPDX-License-Identifier: Apache-2.0
"""Turns texts into vectors with encoders (BERT, RoBERTa and related families) from a folder of sentence-transformers,
splits texts into tokens, and fine-tunes encoders step by step."""
from __future__ import annotations

import contextlib
import ctypes
import os
import reprlib
import threading
import warnings
from typing import Any, Iterator, Mapping, NamedTuple, Sequence, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address
from ._check import described, file_path, given, real, text, whole
from ._context import Context, chosen
from ._library import InThisProcess, check, lib, take_word
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, ArgumentTypeError

_NOBODY = _abi.Progress()
OPTIMIZERS = {"adamw": 0, "sgd": 1, 0: 0, 1: 1}


def open_tokenizer(folder: Any, max_length: int) -> int:
    options = described("tokenizer", _abi.TokenizerOptions, max_length=max_length)
    made = ctypes.c_void_p()
    check(lib.clv_tokenizer_open(os.fsencode(file_path("folder", folder)), ctypes.byref(options),
                                 ctypes.byref(made)))
    return made.value or 0


def texts_of(what: str, texts: Any) -> list[str]:
    """Returns the texts of an iterable as a list; raises ArgumentTypeError if an element is no str."""
    if isinstance(texts, (str, bytes)):
        raise ArgumentTypeError(f"{what}: got one {type(texts).__name__}, but a list of texts is expected")
    try:
        found = list(texts)
    except TypeError:
        raise ArgumentTypeError(f"{what}: got {given(texts)}, but a list of texts is expected") from None
    for i, one in enumerate(found):
        if not isinstance(one, str):
            raise ArgumentTypeError(f"{what}: text {i}: got {given(one)}, but a str is expected")
    return found


def encoded(what: str, texts: list[str]) -> list[bytes]:
    """Returns texts as UTF-8. ArgumentError names a text that has one half of a surrogate pair."""
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        at = texts.index(error.object)
        raise ArgumentError(f"{what}: text {at}: character {error.start}: half of a surrogate pair, "
                            "which is not valid Unicode") from None


def _tokens(tokenizer: int, texts: list[str],
            threads: int) -> tuple[NDArray[np.int32], NDArray[np.uintp], int]:
    """Returns (ids, offsets, number of texts that were cut): text i has ids[offsets[i]:offsets[i + 1]]."""
    raw = encoded("texts", texts)
    pointers = (ctypes.c_char_p * max(len(raw), 1))(*raw)
    lengths = (ctypes.c_size_t * max(len(raw), 1))(*(len(text) for text in raw))
    options = _abi.TokenizeOptions(size=ctypes.sizeof(_abi.TokenizeOptions), threads=threads)
    rows = _abi.TokenRows()
    try:
        check(lib.clv_tokenize(tokenizer, pointers, lengths, len(raw), ctypes.byref(options),
                               ctypes.byref(rows)))
        ids: NDArray[np.int32] = np.zeros(0, np.int32)
        offsets: NDArray[np.uintp] = np.zeros(1, np.uintp)
        if rows.tokens:
            ids = np.ctypeslib.as_array(rows.ids, (rows.tokens,)).astype(np.int32)
        if raw:
            offsets = np.ctypeslib.as_array(rows.offsets, (len(raw) + 1,)).astype(np.uintp)
        cut = int(rows.truncated)
    finally:
        lib.clv_token_rows_clear(ctypes.byref(rows))
    return ids, offsets, cut


def _int32(what: str, values: Any) -> NDArray[np.int32]:
    """Returns numbers as an int32 array; raises ArgumentError if int32 cannot hold one of them."""
    found = np.asarray(values)
    with np.errstate(invalid="ignore"):
        made = np.ascontiguousarray(found, np.int32) if found.dtype.kind in "iufb" else None
    if made is None or (made != found).any():
        raise ArgumentTypeError(f"trainer: {what}: got {reprlib.repr(found.tolist())}, but whole numbers of 32 bits "
                                "are expected")
    return made


_Self = TypeVar("_Self", bound="_Folder")


class _Folder(InThisProcess):
    """A model folder: its tokenizer, and its weights, which are opened at their first use. Threads take turns, because
    the library accepts one call at a time for an encoder or a trainer."""

    def __init__(self, folder: Any, max_length: int, threads: int):
        self._tokenizer = self._model = 0
        self._turn, self._busy = threading.RLock(), False
        self.folder = file_path("folder", folder)
        self.threads = whole("threads", threads, 0, 1 << 16)
        self._tokenizer = open_tokenizer(folder, max_length)

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        """Keeps other threads from calling the library for this folder during the block. A call from the progress
        function of a running call raises ArgumentError, because it would wait for itself."""
        with self._turn:
            if self._busy:
                raise ArgumentError(f"{type(self).__name__}: called by the progress function of its own "
                                    "call, which has not ended")
            self._busy = True
            try:
                yield
            finally:
                self._busy = False

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Returns the token numbers of each text, [CLS] and [SEP] included: the same as Hugging Face's."""
        texts = texts_of("texts", texts)
        with self._turn:
            self._check_open()
            ids, offsets, _ = _tokens(self._tokenizer, texts, self.threads)
        return np.split(ids, offsets[1:-1].astype(np.intp)) if len(offsets) > 1 else []

    def _check_open(self) -> None:
        if not self._tokenizer:
            raise ArgumentError(f"{type(self).__name__}: it is closed")

    def _weights(self) -> int:
        self._check_open()
        if not self._model:
            made = ctypes.c_void_p()
            check(lib.clv_model_open(os.fsencode(self.folder), ctypes.byref(made)))
            self._model = made.value or 0
        return self._model

    @property
    def width(self) -> int:
        """The number of elements of a vector."""
        with self._turn:
            return int(lib.clv_model_get_config(self._weights()).contents.output)

    def close(self) -> None:
        """Waits for calls of other threads and frees the model; a second close() does nothing."""
        with self._call():
            self._end()

    def __enter__(self: _Self) -> _Self:
        self._check_open()
        return self

    def __exit__(self, *_unused: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cleave.{type(self).__name__} {self.folder}{'' if self._tokenizer else ', closed'}>"

    def _end(self) -> None:
        if self._model:
            lib.clv_model_close(self._model)
        if self._tokenizer:
            lib.clv_tokenizer_close(self._tokenizer)
        self._model = self._tokenizer = 0

    def __del__(self) -> None:
        if hasattr(self, "_turn"):
            self.close()


def tokenize(folder: str | os.PathLike[str], texts: Sequence[str], *, max_length: int = 0,
             threads: int = 0) -> list[NDArray[np.int32]]:
    """Returns the token numbers of texts, by the tokenizer of a model folder; no device is needed.

    Raises FileError, FormatError, ArgumentError.
    """
    return _Folder(folder, max_length, threads).tokenize(texts)


class Encoding(_Folder):
    """A model folder with an encoder, which turns texts into vectors on the context's devices."""

    def __init__(self, folder: Any, max_length: int, batch_tokens: int, half: bool, threads: int,
                 context: Context | None):
        self._encoder = 0
        super().__init__(folder, max_length, threads)
        self.context = chosen(context)
        config, made = self._config(), ctypes.c_void_p()
        options = described("encoder", _abi.EncoderOptions, batch_tokens=batch_tokens, half=half)
        with self.context.held() as handle:
            check(lib.clv_encoder_open(handle, config, lib.clv_model_get_weights(self._model),
                                       ctypes.byref(options), ctypes.byref(made)))
            self.context.acquire()
        self._encoder = made.value or 0

    def _config(self) -> Any:
        """Opens the weights, and returns the configuration of the encoder."""
        return lib.clv_model_get_config(self._weights())

    def _vectors(self, what: str, texts: list[str], report: Report | None,
                 progress: Progress) -> NDArray[np.float32]:
        """Returns the vectors of texts; the caller must be inside a _call() block."""
        if not self._encoder:
            raise ArgumentError(f"{type(self).__name__}: it is closed")
        self.context.check_process()
        ids, offsets, cut = _tokens(self._tokenizer, texts, self.threads)
        count = len(offsets) - 1
        if cut:
            warnings.warn(f"{what}: {cut} of {count} texts were cut at the model's limit of tokens (max_length)",
                          stacklevel=4)
        out = np.empty((count, self.width), np.float32)
        if count:
            with Watch(progress, what) as watch:
                lib.clv_encoder_watch(self._encoder, watch.function, None)
                try:
                    status = lib.clv_encode(self._encoder, address(ids), address(offsets), count,
                                            address(out), report_handle(report))
                    watch.done(status)
                finally:
                    lib.clv_encoder_watch(self._encoder, _NOBODY, None)
        return out

    def _end(self) -> None:
        if self._encoder:
            if self.context.ours:
                lib.clv_encoder_close(self._encoder)
            self._encoder = 0
            self.context.release()
        super()._end()


class TrainResult(NamedTuple):
    """The result of a step: the mean loss, the length of the gradient, the number of texts (or pairs) in the loss, and
    how many of them were predicted correctly."""
    loss: float
    gradient_length: float
    counted: int
    right: int


class Trainer(_Folder):
    """Fine-tunes a model folder. The task is "classes" (a layer predicts the class, see `head`) or "pairs" (texts 2i
    and 2i + 1 belong together). The options are those of clv_trainer_options in include/cleave/train.h: classes=3,
    head="pooler", decay=0.01, frozen_layers=4, optimizer="sgd", seed=1, ..."""

    def __init__(self, folder: str | os.PathLike[str], task: str = "classes", *, max_length: int = 0,
                 threads: int = 0, context: Context | None = None, **options: Any):
        self._trainer = 0
        super().__init__(folder, max_length, threads)
        self.context = chosen(context)
        known = {name for name, _ in _abi.TrainerOptions._fields_} - {"size", "task"}
        if set(options) - known:
            raise ArgumentError(f"trainer: there is no option {sorted(set(options) - known)[0]!r}")
        if "optimizer" in options:
            options["optimizer"] = choice("optimizer", options["optimizer"], OPTIMIZERS)
        if "head" in options:
            options["head"] = choice("head", options["head"], {"linear": 0, "pooler": 1})
        settings = described("trainer", _abi.TrainerOptions,
                             task=choice("task", task, {"classes": 0, "pairs": 1}), **options)
        self._classes = 0 if settings.task else int(settings.classes)
        made = ctypes.c_void_p()
        with self.context.held() as handle:
            check(lib.clv_trainer_open(handle, self._weights(), ctypes.byref(settings),
                                       ctypes.byref(made)))
            self.context.acquire()
        self._trainer = made.value or 0

    @property
    def steps(self) -> int:
        """The number of steps so far, including the steps before the state that restore() read."""
        with self._turn:
            return int(lib.clv_trainer_steps(self._open()))

    @property
    def device(self) -> str:
        """Where the trainer computes: the label of a device, or "host"."""
        with self._turn:
            return take_word(lib.clv_trainer_device(self._open()))

    @property
    def checked(self) -> tuple[int, int]:
        """The number of steps that were compared with plain C, and the number of these steps that were repeated."""
        repeated = ctypes.c_uint64()
        with self._turn:
            return int(lib.clv_trainer_checked(self._open(), ctypes.byref(repeated))), repeated.value

    def _open(self) -> int:
        if not self._trainer:
            raise ArgumentError("Trainer: it is closed")
        self.context.check_process()
        return self._trainer

    def _check_scores(self, scores: Any, texts: int, rate: float | None) -> None:
        wanted = (texts, self._classes) if self._classes else (texts // 2, texts // 2)
        if not isinstance(scores, np.ndarray) or scores.dtype != np.float32 or scores.shape != wanted or \
                not scores.flags.c_contiguous or not scores.flags.writeable:
            raise ArgumentError(f"trainer: scores is {given(scores)}, but a writeable float32 array of shape {wanted} "
                                "without gaps is expected")
        if rate is not None:
            raise ArgumentError(f"trainer: scores are of an evaluation, which has no rate, but rate is {rate}")

    def run_rows(self, rows: Sequence[NDArray[Any]], labels: Any, rate: float | None = None,
                 scores: NDArray[np.float32] | None = None) -> TrainResult:
        """Runs step() or, without a rate, evaluate() on rows as tokenize() gives them. Without a rate, `scores` is
        filled in if you pass it: float32 [texts, classes], or [texts / 2, texts / 2] for pairs."""
        marks = None if labels is None else _int32("labels", labels)
        if marks is not None and marks.shape != (len(rows),):
            raise ArgumentError(f"trainer: there are {len(rows)} texts, but the labels have the shape {marks.shape}")
        rate = None if rate is None else real("trainer: rate", rate)
        if scores is not None:
            self._check_scores(scores, len(rows), rate)
        offsets = np.zeros(len(rows) + 1, np.uintp)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = _int32("rows", np.concatenate([*rows, np.zeros(1, np.int32)]))
        found = _abi.TrainResult()
        with self._turn:
            head = (self._open(), address(ids), address(offsets), len(rows), address(marks))
            if scores is not None:
                check(lib.clv_trainer_scores(*head, address(scores), ctypes.byref(found)))
            elif rate is None:
                check(lib.clv_trainer_evaluate(*head, ctypes.byref(found)))
            else:
                check(lib.clv_trainer_step(*head, rate, ctypes.byref(found)))
        return TrainResult(*(getattr(found, name) for name in TrainResult._fields))

    def step(self, texts: Sequence[str], labels: Any = None, *, rate: float) -> TrainResult:
        """Takes one step of learning on these texts."""
        return self.run_rows(self.tokenize(texts), labels, rate)

    def evaluate(self, texts: Sequence[str], labels: Any = None) -> TrainResult:
        """Returns the loss and the number of correct predictions on these texts; the weights do not change."""
        return self.run_rows(self.tokenize(texts), labels)

    def _to_file(self, function: Any, path: str | os.PathLike[str],
                 metadata: Mapping[str, str] | None) -> None:
        if not isinstance(metadata or {}, Mapping):
            raise ArgumentTypeError(f"metadata is {given(metadata)}, but it must be a mapping of texts")
        words = [text("metadata", word).encode() for pair in (metadata or {}).items()
                 for word in pair]
        pairs = (ctypes.c_char_p * (len(words) + 1))(*words, None)
        with self._turn:
            check(function(self._open(), os.fsencode(file_path("path", path)), pairs))

    def write(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """Writes the weights as safetensors, which other tools can read; `metadata` goes into the file's header."""
        self._to_file(lib.clv_trainer_write, path, metadata)

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """Writes the weights and the state of the optimizer, from which restore() continues."""
        self._to_file(lib.clv_trainer_save, path, metadata)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Reads the state that save() wrote; the next step continues from it."""
        with self._turn:
            check(lib.clv_trainer_restore(self._open(), os.fsencode(file_path("path", path))))

    def _end(self) -> None:
        if self._trainer:
            if self.context.ours:
                lib.clv_trainer_close(self._trainer)
            self._trainer = 0
            self.context.release()
        super()._end()
