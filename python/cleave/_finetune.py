# SPDX-License-Identifier: Apache-2.0
"""Trains a model on examples: does what `cleave finetune` does, from Python. The order of the examples and the rates,
and therefore the bytes of the result, are the same as the command's."""
from __future__ import annotations

import hashlib
import json
import math
import os
from typing import Any, Callable, NamedTuple, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from ._context import Context
from ._check import file_path, given as given_as, real, whole
from ._encoder import OPTIMIZERS, Trainer, TrainResult, texts_of
from ._probe import choice
from ._watch import Progress, Watch
from .errors import ArgumentError, ArgumentTypeError, CancelledError, FileError, FormatError

_STATE, _WEIGHTS, _MASK = "checkpoint.safetensors", "model.safetensors", (1 << 64) - 1
_COPIED = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json",
           "sentence_bert_config.json", "config_sentence_transformers.json", "modules.json")
Label = Union[str, int]


class FinetuneResult(NamedTuple):
    """The result of finetune(): the losses of the steps of this run (after step `resumed_at`), the results on
    the validation examples after each epoch, the names of the classes by number, the device, and the
    confusion matrix after the last epoch. The matrix is uint64 [classes, classes]: rows are the labels,
    and columns are the predictions. It is None without validation examples, and for pairs."""
    losses: NDArray[np.float64]
    validation: list[TrainResult]
    classes: list[str]
    resumed_at: int
    device: str
    confusion: NDArray[np.uint64] | None = None

    @property
    def macro_f1(self) -> float | None:
        """The mean F1 score of the classes that occur as a label or as a prediction."""
        if self.confusion is None:
            return None
        both = self.confusion.sum(0) + self.confusion.sum(1)
        return float(np.mean(2 * self.confusion.diagonal()[both > 0] / both[both > 0]))


class _Examples:
    """The examples as rows of tokens: one row and a label per example, or two rows per example for pairs."""

    def __init__(self, trainer: Trainer, texts: Sequence[str], others: Sequence[str] | None,
                 labels: NDArray[Any] | None):
        self.count, self.labels = len(texts), labels
        self.sides = [trainer.tokenize(side) for side in (texts, others) if side is not None]

    def batch(self, which: NDArray[Any]) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
        rows = [side[i] for i in which for side in self.sides]
        return rows, None if self.labels is None else self.labels[which]

    def fingerprint(self) -> str:
        made = hashlib.sha256()
        for side in self.sides:
            made.update(np.array([len(row) for row in side], np.uint64).tobytes())
            made.update(np.concatenate(side).tobytes())
        if self.labels is not None:
            made.update(self.labels.tobytes())
        return made.hexdigest()[:16]


class _Plan(NamedTuple):
    examples: int
    epochs: int
    batch: int
    rate: float
    warmup: float
    schedule: str
    seed: int

    @property
    def each(self) -> int:
        return -(-self.examples // self.batch)

    @property
    def steps(self) -> int:
        return self.each * self.epochs

    def order(self, epoch: int) -> NDArray[np.intp]:
        """Returns the order of the examples in an epoch. It depends on the seed and the epoch alone (SplitMix64), so
        that a run can be resumed at any step."""
        order = list(range(self.examples))
        state = (self.seed * 0xD1342543DE82EF95 + epoch) & _MASK
        for i in range(self.examples, 1, -1):
            state = (state + 0x9E3779B97F4A7C15) & _MASK
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
            other = (z ^ (z >> 31)) % i
            order[i - 1], order[other] = order[other], order[i - 1]
        return np.array(order, np.intp)

    def rate_of(self, step: int) -> float:
        """Returns the learning rate of a step: it rises linearly, then falls linearly or stays constant."""
        total, rise = float(self.steps), self.warmup * self.steps
        if step + 1 <= rise:
            return self.rate * (step + 1) / rise
        if self.schedule == "constant" or step <= rise:
            return self.rate
        return self.rate * (total - step) / (total - rise)


def _names(labels: Any) -> list[Label]:
    if isinstance(labels, (str, bytes)):
        raise ArgumentError("finetune: labels: got one text, but a list is expected")
    found: list[Label] = [one.item() if isinstance(one, np.generic) else one for one in labels]
    kinds = {type(one) for one in found}
    if not (kinds <= {str} or kinds <= {int}):
        raise ArgumentError("finetune: labels must be all str or all int")
    return found


def _classes(labels: list[Label]) -> dict[Label, int]:
    """Returns a number for each class: str labels are sorted by their bytes, int labels by value, so that the numbers
    do not depend on the order of the texts."""
    names = sorted(set(labels), key=lambda one: one.encode() if isinstance(one, str) else one)
    if len(names) < 2:
        raise FormatError(f"finetune: every text has the label {names[0]!r}, but two labels are needed"
                          if names else "finetune: there is no text")
    return {name: i for i, name in enumerate(names)}


def _numbers(labels: list[Label], classes: dict[Label, int]) -> NDArray[np.int32]:
    for label in labels:
        if label not in classes:
            raise FormatError(f"finetune: validation: the label {label!r} is not in the training data")
    return np.array([classes[label] for label in labels], np.int32)


def _write_folder(source: str, target: str, classes: list[str], trainer: Trainer) -> None:
    """Writes a model folder with the files of `source` and the new weights, which are written last. Every file is
    complete or absent."""
    def put(name: str, data: bytes) -> None:
        path = os.path.join(target, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".part", "wb") as file:
            file.write(data)
        os.replace(path + ".part", path)

    names = list(_COPIED)
    modules = os.path.join(source, "modules.json")
    if os.path.exists(modules):
        with open(modules, encoding="utf-8") as file:
            for module in json.load(file):
                path = module.get("path") or ""
                if path and not os.path.isabs(path) and ".." not in path:
                    names.append(os.path.join(path, "config.json"))
    for name in names:
        if os.path.exists(os.path.join(source, name)):
            with open(os.path.join(source, name), "rb") as raw:
                put(name, raw.read())
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    for kind in "torch_dtype", "dtype":
        if kind in config:
            config[kind] = "float32"
    if classes:
        config.pop("num_labels", None)
        config["architectures"] = ["BertForSequenceClassification"]
        config["problem_type"] = "single_label_classification"
        config["id2label"] = {str(i): name for i, name in enumerate(classes)}
        config["label2id"] = {name: i for i, name in enumerate(classes)}
    put("config.json", json.dumps(config, indent=2, ensure_ascii=False).encode())
    trainer.write(os.path.join(target, _WEIGHTS), {"format": "pt"})


def _check_output(folder: str, output: str, state: str, resume: bool) -> None:
    if os.path.exists(output):
        if not os.path.isdir(output):
            raise ArgumentError(f"finetune: {output} is not a folder")
        if os.path.samefile(folder, output):
            raise ArgumentError(f"finetune: {output} is the folder of the model that is trained")
        for name in _COPIED:
            there, here = (os.path.exists(os.path.join(path, name)) for path in (output, folder))
            if there and not here:
                raise ArgumentError(f"finetune: {output} has a file {name}, which the trained "
                                    "model does not have and which would change how it works; "
                                    "give another folder, or remove the file")
        if not os.access(output, os.W_OK | os.X_OK):
            raise FileError(f"finetune: cannot write to the folder {output}")
    there = os.path.exists(state)
    if there and not resume:
        raise ArgumentError(f"finetune: {state} exists from a run that did not finish; "
                            "resume=True continues it, or remove the file to start again")
    if resume and not there:
        raise ArgumentError(f"finetune: resume: there is no {state}")


def _metadata(path: str) -> dict[str, str]:
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= os.path.getsize(path):
            raise FormatError(f"{path} is not the state of a run")
        try:
            return json.loads(file.read(length)).get("__metadata__") or {}
        except ValueError:
            raise FormatError(f"{path} is not the state of a run") from None


def _evaluate(trainer: Trainer, examples: _Examples, batch: int, watch: Watch,
              confusion: NDArray[np.uint64] | None) -> TrainResult | None:
    loss, counted, right = 0.0, 0, 0
    if confusion is not None:
        confusion[:] = 0
    for first in range(0, examples.count, batch):
        rows, labels = examples.batch(np.arange(first, min(first + batch, examples.count)))
        scores = None if confusion is None else np.empty((len(rows), len(confusion)), np.float32)
        found = trainer.run_rows(rows, labels, scores=scores)
        if confusion is not None and scores is not None:
            np.add.at(confusion, (np.asarray(labels), scores.argmax(1)), 1)
        loss += found.loss * found.counted
        counted, right = counted + found.counted, right + found.right
        if watch.signals:
            return None
    return TrainResult(loss / max(counted, 1), 0.0, counted, right)


def _learn(plan: _Plan, trainer: Trainer, examples: _Examples, validation: _Examples | None,
           save: Callable[[], None], save_every: int, watch: Watch, losses: list[float],
           confusion: NDArray[np.uint64] | None) -> list[TrainResult]:
    found: list[TrainResult] = []
    order: NDArray[np.intp] = np.zeros(0, np.intp)
    epoch = -1

    def test() -> None:
        tested = None
        if validation and not watch.signals:
            tested = _evaluate(trainer, validation, plan.batch, watch, confusion)
        if tested:
            found.append(tested)

    if trainer.steps and trainer.steps % plan.each == 0:
        test()  # an earlier run may have ended between the epoch's last step and its test
    while trainer.steps < plan.steps:
        step = trainer.steps
        if step // plan.each != epoch:
            epoch = step // plan.each
            order = plan.order(epoch)
        first = step % plan.each * plan.batch
        rows, labels = examples.batch(order[first:first + plan.batch])
        result = trainer.run_rows(rows, labels, plan.rate_of(step))
        if not math.isfinite(result.loss):
            raise ArgumentError(f"finetune: step {step + 1}: the loss has become {result.loss:g}, so "
                                "the training has diverged; nothing is written. A lower rate or clip may help")
        losses.append(result.loss)
        ended, last = trainer.steps % plan.each == 0, trainer.steps == plan.steps
        due = ended or (save_every and trainer.steps % save_every == 0)
        saved = due and not (last and validation is None)
        if saved:  # before the test, because a test may fail
            save()
        if ended:
            test()
        if watch.called(trainer.steps, plan.steps):
            if not saved:
                save()
            break
    return found


def finetune(folder: str | os.PathLike[str], texts: Sequence[str], targets: Sequence[Label],
             output: str | os.PathLike[str], *, task: str = "classes", epochs: int = 3,
             batch_size: int = 16, rate: float = 5e-5, warmup: float = 0.1,
             schedule: str = "linear", optimizer: str = "adamw", momentum: float = 0.0,
             decay: float = 0.01, clip: float = 1.0, scale: float = 20.0, freeze: int = 0,
             seed: int = 0, validation: tuple[Sequence[str], Sequence[Label]] | None = None,
             save_every: int = 0, resume: bool = False, max_length: int = 0, threads: int = 0, block_tokens: int = 0,
             context: Context | None = None, progress: Progress = None) -> FinetuneResult:
    """Trains all weights of an encoder on the context's first device that works. The model goes to the folder `output`,
    which Encoder, `cleave embed` and PyTorch can read. The same seed, device and data give the same bytes, which are
    those of the command `cleave finetune`.

    Parameters
    ----------
    folder      a model folder, as for Encoder
    texts       the texts to learn from
    targets     task "classes": the class of each text, str or int. The model becomes a BertForSequenceClassification,
                which Classifier and transformers read with the same results; the names of the classes are in id2label
                of config.json. Task "pairs": the text that belongs to each text; the targets of the other texts in
                the batch count as texts that do not belong to it
    output      folder for the model; an interrupted run leaves its state there, checkpoint.safetensors
    epochs      how many times all examples are learnt from
    batch_size  number of examples in a step
    rate, warmup, schedule   the highest learning rate, the share of the steps in which it rises, and "linear" (it then
                falls to 0) or "constant"
    optimizer   "adamw" or "sgd"
    momentum    momentum of "sgd"
    decay       weight decay
    clip        gradients whose length exceeds `clip` are scaled to that length; 0: never
    scale       factor by which the cosines of pairs are multiplied in the loss
    freeze      number of first layers that do not learn; the embeddings do not learn either. 0: everything learns. All
                layers can be frozen only for classes
    seed        determines the order of the examples and the initial weights of new layers
    validation  (texts, targets) to test with after every epoch
    save_every  number of steps between two states on disk; 0: at the end of each epoch
    resume      continue from the state in `output`, with the same arguments; the result has the same bytes
    block_tokens  least number of tokens of a block. A batch of at least 2 * block_tokens is cut into blocks, which
                equal devices share; 0: 4096
    progress    called with (steps done, all steps); if it cancels, and at Ctrl-C, the state is saved

    Raises ArgumentError, FormatError (labels, or the state of another run), FileError, DeviceMemoryError,
    CancelledError, DeviceError.
    """
    source, target = file_path("finetune: folder", folder), file_path("finetune: output", output)
    state = os.path.join(target, _STATE)
    pairs = choice("task", task, {"classes": 0, "pairs": 1}) == 1
    choice("schedule", schedule, {"linear": 0, "constant": 1})
    epochs = whole("finetune: epochs", epochs, 1, 1 << 20)
    batch_size = whole("finetune: batch_size", batch_size, 1 + pairs, 1 << 16)
    seed = whole("finetune: seed", seed, 0, _MASK)
    save_every = whole("finetune: save_every", save_every)
    freeze = whole("finetune: freeze", freeze)
    rate, warmup = real("finetune: rate", rate), real("finetune: warmup", warmup)
    if not 0 < rate <= 1e3 or not 0 <= warmup < 1:
        raise ArgumentError(f"finetune: rate is {rate} and warmup {warmup}, but rate must be above 0 and at most "
                            "1000, and warmup 0 or more and below 1")
    _check_output(source, target, state, resume)
    learnt = texts_of("finetune: texts", texts)
    sets = [(learnt, targets)]
    if validation is not None:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise ArgumentTypeError(f"finetune: validation is {given_as(validation)}, but it must be (texts, targets)")
        sets.append((texts_of("finetune: validation", validation[0]), validation[1]))
    for given, belonging in sets:
        if not hasattr(belonging, "__len__"):
            raise ArgumentTypeError(f"finetune: targets is {given_as(belonging)}, but it must be a list")
        if len(given) != len(belonging):
            raise ArgumentError(f"finetune: there are {len(given)} texts, but {len(belonging)} targets")
    if len(learnt) < 1 + pairs:
        raise FormatError(f"finetune: got {len(learnt)} texts, but at least {1 + pairs} are needed")
    classes = {} if pairs else _classes(_names(targets))
    options: dict[str, Any] = {} if pairs else {"classes": len(classes)}
    trainer = Trainer(source, task, max_length=max_length, threads=threads, context=context,
                      optimizer=choice("optimizer", optimizer, OPTIMIZERS),
                      momentum=momentum, decay=decay, clip=clip, scale=scale, frozen_layers=freeze, seed=seed,
                      block_tokens=whole("finetune: block_tokens", block_tokens),
                      head="pooler", **options)

    def tokens(given: list[str], belonging: Any) -> _Examples:
        return _Examples(trainer, given, texts_of("finetune: targets", belonging) if pairs else None,
                         None if pairs else _numbers(_names(belonging), classes))
    try:
        examples, *others = [tokens(*one) for one in sets]
        plan = _Plan(len(learnt), epochs, batch_size, float(rate), float(warmup), schedule, seed)
        run = f"data {examples.fingerprint()} {plan._replace(examples=0)}"
        if resume:
            found = _metadata(state).get("cleave.run", "")
            if found != run:
                raise FormatError(f"{state} belongs to another run: its options are \"{found}\", "
                                  f"those of this run are \"{run}\"")
            trainer.restore(state)
        os.makedirs(target, exist_ok=True)
        resumed = trainer.steps
        losses: list[float] = []
        confusion = None
        if others and classes:
            confusion = np.zeros((len(classes), len(classes)), np.uint64)
        with Watch(progress, "finetune") as watch:
            scores = _learn(plan, trainer, examples, others[0] if others else None,
                            lambda: trainer.save(state, {"cleave.run": run}), save_every, watch,
                            losses, confusion)
            if watch.failure or trainer.steps < plan.steps:
                watch.done(0)  # raises what the progress function raised, or the interrupt
                if not watch.signals:
                    raise CancelledError(f"finetune: cancelled after step {trainer.steps} of "
                                         f"{plan.steps}; resume=True continues from {state}")
        names = [str(name) for name in classes]
        try:
            _write_folder(source, target, names, trainer)
        except BaseException:
            trainer.save(state, {"cleave.run": run})  # resume=True writes the model
            raise
        if os.path.exists(state):
            os.remove(state)
        return FinetuneResult(np.array(losses), scores, names, resumed, trainer.device, confusion)
    finally:
        trainer.close()
