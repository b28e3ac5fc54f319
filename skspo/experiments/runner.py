"""Run the trials of a study, in several processes and resumably.

With every finished trial ``trials.csv`` is replaced by a new file, which is sorted, so that it does not depend on the
order in which trials finished.  Lines that are damaged are dropped when a run is resumed; their trials are then
repeated with the same seeds.

Workers end with the run: an exception stops them, and they watch whether the process that runs the study still exists.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import sys
import threading
import time
import zlib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import current_process
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from .._utils.limits import count_workers
from .._utils.progress import Activity
from .studies import Condition, Study

PACKAGES = ("skspo", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "highspy")


def key_of(condition: Condition) -> str:
    """Name of a setting, the same in every run."""
    return json.dumps(condition, sort_keys=True)


def seed_of(seed: int, study: str, condition: Condition, trial: int) -> np.random.SeedSequence:
    """Seed of a trial; it does not depend on the order of trials or on the process."""
    return np.random.SeedSequence([seed, zlib.crc32(study.encode()), zlib.crc32(key_of(condition).encode()), trial])


def run_study(
    study: Study,
    out: str | os.PathLike[str],
    *,
    trials: int = 50,
    jobs: int = 1,
    seed: int = 0,
    quick: bool = False,
    resume: bool = True,
    optimizer: str = "exact",
    conditions: list[Condition] | None = None,
    verbose: int = 1,
) -> Path:
    """Run what is missing of a study and return its ``trials.csv``.

    Parameters
    ----------
    study : Study
    out : path
        A folder; the study gets one of its own inside.
    trials : int
        Trials of every setting.
    jobs : int
        Processes.
    seed : int
    quick : bool
        Few settings.
    resume : bool
        Keep the trials of an earlier run with the same settings; otherwise they are removed.
    optimizer : {"exact", "adam"}
        How linear models are trained.
    conditions : list of dict, optional
        Settings in place of the study's own.
    verbose : int
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    folder = Path(out) / study.name
    folder.mkdir(parents=True, exist_ok=True)
    file, manifest_file = folder / "trials.csv", folder / "manifest.json"
    settings = {"study": study.name, "seed": seed, "quick": quick, "optimizer": optimizer}
    if resume and manifest_file.exists():
        before = json.loads(manifest_file.read_text())["settings"]
        if before != settings:
            raise ValueError(
                f"{folder} has trials of other settings, {before}, not of {settings}. Use another --out, or "
                "--no-resume to discard them."
            )
    elif file.exists():
        file.unlink()
    write_atomically(manifest_file, json.dumps(_manifest(settings, trials), indent=2) + "\n")
    conditions = study.conditions(quick) if conditions is None else conditions
    names = sorted({name for condition in conditions for name in condition})
    columns = [*names, "trial", "method", "value"]

    def cells(condition: Condition, trial: int) -> tuple[str, ...]:
        values = (json.dumps(condition[name]).strip('"') if name in condition else "" for name in names)
        return *values, str(trial)

    done, todo = _read(file, columns), []
    for trial in range(trials):
        for condition in conditions:
            rows = done.get(cells(condition, trial), [])
            if [row[-2] for row in rows] != study.methods(condition):
                done.pop(cells(condition, trial), None)
                todo.append((condition, trial))
    _rewrite(file, columns, done)
    activity = Activity(study.name, verbose, len(todo), "trials")
    runs = Parallel(n_jobs=count_workers(jobs, len(todo)), return_as="generator_unordered")(
        delayed(_one)(study, condition, trial, seed, optimizer, os.getpid()) for condition, trial in todo
    )
    try:
        with activity:
            for condition, trial, values in runs:
                fixed = cells(condition, trial)
                done[fixed] = [[*fixed, method, repr(value)] for method, value in values.items()]
                _rewrite(file, columns, done)
                activity.advance()
                activity.update("")
            activity.finish(f"{len(todo)} trials, {file}")
    finally:
        runs.close()  # stops workers that are still running
    return file


def write_atomically(file: Path, content: str | bytes) -> None:
    """Replace a file by a complete new one, or leave it as it was."""
    new = file.with_name(file.name + ".new")
    try:
        with new.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(new, file)
    except BaseException as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        if isinstance(error, OSError):
            why = f"{error.strerror}, so it could not be written and is as it was"
            raise OSError(error.errno, why, str(file)) from error
        raise


def _one(
    study: Study, condition: Condition, trial: int, seed: int, optimizer: str, runner: int
) -> tuple[Condition, int, dict[str, float]]:
    if os.getpid() != runner and current_process().name.startswith("LokyProcess"):
        _end_with(runner)
    # One thread per trial: trials run in parallel.
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        return condition, trial, study.trial(condition, seed_of(seed, study.name, condition, trial), optimizer)


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent has ended: a parent that was killed cannot stop its workers."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="skspo-watch", daemon=True).start()


def _read(file: Path, columns: list[str]) -> dict[tuple[str, ...], list[list[str]]]:
    """Rows of each trial, by its setting and number; damaged ones are left out, so that the trial is repeated."""
    text = file.read_text(errors="replace") if file.exists() else ""
    rows = list(csv.reader(text[: text.rfind("\n") + 1].splitlines()))
    if rows and rows[0] != columns:
        raise ValueError(
            f"{file} has the columns {rows[0]}, not {columns}: it is of another version or study. Use another --out, "
            "or --no-resume to discard it."
        )
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for row in rows[1:]:
        with suppress(ValueError, IndexError):
            float(row[-1])
            if len(row) == len(columns) and row[-3].isdecimal():
                found.setdefault(tuple(row[:-2]), []).append(row)
    return found


def _rewrite(file: Path, columns: list[str], done: dict[tuple[str, ...], list[list[str]]]) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for task in sorted(done, key=lambda task: (task[:-1], int(task[-1]))):
        writer.writerows(done[task])
    write_atomically(file, stream.getvalue())


def _manifest(settings: dict[str, object], trials: int) -> dict[str, object]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "settings": settings,
        "trials": trials,
        "command": " ".join(["python -m skspo.experiments", *sys.argv[1:]]),
        "python": platform.python_version(),
        "processor": platform.machine(),
        "versions": versions,
    }
