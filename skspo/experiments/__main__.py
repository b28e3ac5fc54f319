"""Command line: ``python -m skspo.experiments portfolio --quick``."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from .report import write_report
from .runner import run_study
from .studies import STUDIES


def main(arguments: list[str] | None = None) -> int:
    """Run studies and write their tables and figures."""
    parser = argparse.ArgumentParser(prog="python -m skspo.experiments", description="The paper's experiments.")
    parser.add_argument("study", choices=[*STUDIES, "all"])
    parser.add_argument("--quick", action="store_true", help="few settings and five trials: about two minutes")
    parser.add_argument("--trials", type=int, help="trials of every setting (default: 50, quick: 5)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", default="experiments", help="folder of the results (default: experiments)")
    parser.add_argument("--resume", action=argparse.BooleanOptionalAction, default=True, help="continue an earlier run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--optimizer", choices=["exact", "adam"], default="exact", help="how linear models are trained")
    parser.add_argument("--models", choices=["linear", "network"], help="only these, where a study has both")
    parser.add_argument("--figures", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args(arguments)
    with _stoppable():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    options = {name: getattr(args, name) for name in ("jobs", "seed", "quick", "resume", "optimizer")}
    trials = args.trials if args.trials is not None else 5 if args.quick else 50
    for name in STUDIES if args.study == "all" else [args.study]:
        study = STUDIES[name]
        conditions = [c for c in study.conditions(args.quick) if args.models in (None, c.get("model", args.models))]
        try:
            file = run_study(study, args.out, trials=trials, conditions=conditions, **options)
            written = write_report(study, file, figures=args.figures)
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2 if isinstance(error, ValueError) else 1
        except KeyboardInterrupt as stop:
            print(f"\nStopped. The same command goes on from {Path(args.out) / name}.", file=sys.stderr)
            return 128 + (signal.SIGTERM if isinstance(stop, _Terminated) else signal.SIGINT)
        print(*[file, *written], sep="\n")
    return 0


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which by default ends the process without stopping its workers."""


@contextmanager
def _stoppable() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
