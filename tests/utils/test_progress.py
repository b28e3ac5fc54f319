"""Progress: one line in a terminal, whole lines in a log, nothing by default; times by a fake clock."""

import io
import subprocess
import sys
import threading

import numpy as np
import pytest

import skspo as sk
from skspo._utils import progress
from skspo._utils.progress import Activity, Screen, clock, silent
from skspo.datasets import make_cost_sensitive_classification

X, C = make_cost_sensitive_classification(40, 3, 4, degree=2, noise=0.5, random_state=0)


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and what a person sees on it."""

    def isatty(self):
        return True

    def seen(self):
        lines, line = [], ""
        for character in self.getvalue():
            if character == "\n":
                lines.append(line.rstrip())
                line, at = "", 0
            elif character == "\r":
                at = 0
            else:
                line = line[:at] + character + line[at + 1 :]
                at += 1
        return [*lines, line.rstrip()]


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def time(monkeypatch):
    """A fake clock, and a screen of its own."""
    now = Clock()
    monkeypatch.setattr(progress, "perf_counter", now)
    monkeypatch.setattr(progress, "_screen", Screen())
    return now


@pytest.fixture
def log(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(progress, "error_stream", lambda: stream)
    return stream


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(progress, "error_stream", lambda: stream)
    monkeypatch.setenv("COLUMNS", "60")
    return stream


def work(time, verbose=1, steps=4, seconds=10.0):
    with Activity("search", verbose, steps, "fits") as search:
        for k in range(steps):
            fit = Activity("solver", verbose)
            for i in range(3):
                time.now += seconds / 3
                fit.update(f"iteration {i + 1}")
            fit.finish(f"gap {k}")
            search.advance()
            search.update(f"candidate {k + 1}")
        search.finish("candidate 2 is best")


def test_a_log_has_whole_lines_and_the_result_last(time, log):
    work(time)
    lines = log.getvalue().split("\n")
    assert lines[-1] == "" and "\r" not in log.getvalue()
    assert lines[0] == "[0:03] search: 0 of 4 fits | solver: iteration 1"
    assert "[0:13, 0:40 left] search: 1 of 4 fits, candidate 1 | solver: iteration 1" in lines  # 13.3 s, ten a fit
    assert lines[-2] == "[0:40] search: candidate 2 is best"
    assert not any("gap" in line for line in lines)


def test_a_log_has_at_most_one_line_per_second_and_fewer_later(time, log):
    activity = Activity("fit", 1)
    for _ in range(10_000):  # 100 seconds
        time.now += 0.01
        activity.update("running")
    assert 90 <= log.getvalue().count("\n") <= 101
    log.truncate(0)
    for _ in range(3600):
        time.now += 10.0
        activity.update("running")
    assert log.getvalue().count("\n") <= 620  # ten hours


def test_a_short_computation_has_one_line(time, log):
    work(time, seconds=0.1)
    assert log.getvalue() == "[0:00] search: candidate 2 is best\n"


def test_a_terminal_has_one_line_that_is_overwritten(time, terminal):
    work(time)
    assert terminal.seen() == ["[0:40] search: candidate 2 is best", ""]
    parts = terminal.getvalue().split("\r")
    assert len(parts) > 10 and all(len(part.rstrip("\n")) <= 59 for part in parts)
    assert parts[-2] == "[0:40, 0:13 left] search: 3 of 4 fits, candidate 3 | solver"


def test_a_shorter_line_leaves_nothing_behind(time, terminal):
    activity = Activity("a", 1)
    for text in ("a long text that is shown first", "short", "x" * 200):
        time.now += 1.0
        activity.update(text)
        assert terminal.seen()[-1] == f"[0:0{round(time.now - 100)}] a: {text}"[:59]


def test_verbose_two_states_every_result(time, log):
    work(time, verbose=2)
    lines = log.getvalue().splitlines()
    assert "[0:10] search: 0 of 4 fits | solver: gap 0" in lines
    assert "[0:40] search: 3 of 4 fits, candidate 3 | solver: gap 3" in lines


def test_nothing_by_default(time, terminal):
    work(time, verbose=0)
    sk.SPOPlusRegressor(sk.Simplex()).fit(X, C)
    assert terminal.getvalue() == ""


def test_an_inner_activity_alone(time, log):
    """The outer one is quiet, for example a stack whose member is verbose."""
    with Activity("outer", 0, 3):
        inner = Activity("inner", 1)
        time.now += 5.0
        inner.update("running", left=7.0)
        inner.finish("done")
    assert log.getvalue() == "[0:05, 0:07 left] inner: running\n[0:05] inner: done\n"


def test_what_is_left_of_a_part_is_not_what_is_left_of_the_whole(time, log):
    with Activity("search", 1, 10, "fits"):
        inner = Activity("solver", 1)
        time.now += 5.0
        inner.update("running", left=7.0)
    assert log.getvalue() == "[0:05] search: 0 of 10 fits | solver: running\n"


def test_an_error_message_begins_on_its_own_line(time, terminal):
    with pytest.raises(KeyError), Activity("fit", 1) as activity:
        time.now += 1.0
        activity.update("running")
        raise KeyError
    assert terminal.seen() == [""]
    assert Activity("next", 1).outer is None


def test_threads_and_workers_write_whole_lines(time, terminal):
    def run():
        activity = Activity("thread", 1)
        time.now += 2.0
        activity.update("running")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert terminal.getvalue() == "[0:02] thread: running\n"
    silent(run)()
    assert terminal.getvalue() == "[0:02] thread: running\n"


def test_without_a_console(time, monkeypatch):
    monkeypatch.setattr(progress, "error_stream", lambda: None)
    work(time)


def test_clock():
    assert [clock(s) for s in (0.4, 59.6, 61, 3599, 3600, 36061)] == [
        "0:00",
        "1:00",
        "1:01",
        "59:59",
        "1:00:00",
        "10:01:01",
    ]


# -- estimators --------------------------------------------------------------------------------------------------------


class Ticking:
    """A clock that advances with every look at it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.3
        return self.now


@pytest.fixture
def ticking(monkeypatch, log):
    monkeypatch.setattr(progress, "perf_counter", Ticking())
    monkeypatch.setattr(progress, "_screen", Screen())
    return log


def last(stream):
    return stream.getvalue().splitlines()[-1].split("] ", 1)[1]


def test_a_fit(ticking):
    model = sk.SPOPlusRegressor(sk.Simplex(), solver="bundle", alpha=0.1, verbose=1).fit(X, C)
    assert last(ticking) == (
        f"bundle: converged, {model.n_iter_} iterations, objective {model.objective_:.6g}, bound "
        f"{model.lower_bound_:.6g}, gap {model.duality_gap_:.1e}"
    )
    assert sum("bundle: iteration " in line and ", gap " in line for line in ticking.getvalue().splitlines()) >= 2


def test_cross_validation(ticking):
    model = sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=4, cv=3, verbose=1).fit(X, C)
    assert last(ticking).startswith(f"SPOPlusRegressorCV: alpha {model.alpha_:.3g}, number ")
    lines = [line for line in ticking.getvalue().splitlines() if "fold 2 of 3 | alpha " in line]
    assert any(
        " of 13 fits | fold 2 of 3 | alpha " in line and ", 3 of 4 | " in line and "gap" in line for line in lines
    )
    assert any("left] SPOPlusRegressorCV" in line for line in lines)
    assert ticking.getvalue().count("is best") == 1


def test_cross_validation_in_several_processes():
    """Workers print nothing, so that lines are whole."""
    code = (
        "import skspo as sk; from skspo.datasets import make_cost_sensitive_classification as make\n"
        "X, C = make(40, 3, 4, degree=2, noise=0.5, random_state=0)\n"
        "sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=4, cv=2, n_jobs=2, verbose=1).fit(X, C)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert done.stdout == "" and all(line.startswith("[") and "SPOPlusRegressorCV: " in line for line in lines)
    assert "is best with a mean held-out score of" in lines[-1] and "\r" not in done.stderr


@pytest.mark.filterwarnings("ignore:The line-search solver stopped early")
def test_path_descent_and_network(ticking):
    sk.spo_plus_path(X, C, sk.Simplex(), n_alphas=3, verbose=1)
    assert last(ticking).startswith("spo_plus_path: 3 alphas, largest gap ")
    sk.SPORegressorCV(sk.Simplex(), n_alphas=3, cv=2, max_iter=2, random_state=0, verbose=1).fit(X, C)
    assert "is chosen, with a mean held-out SPO loss of" in last(ticking)
    assert "steps, penalty | SPOPlusRegressorCV: " in ticking.getvalue()
    with pytest.warns(match="still improving"):
        sk.SPOMLPRegressor(sk.Simplex(), max_iter=2, random_state=0, verbose=1).fit(X, C)
    assert last(ticking).startswith("SPOMLPRegressor: 2 epochs, training loss ")


def test_what_is_left_of_a_fit_is_estimated_by_its_gap(monkeypatch):
    """A gap that falls by a factor of ten per second needs four seconds from 1e-2 to 1e-6."""
    from skspo._training.run import Run
    from skspo.solvers import base

    now = Clock()
    monkeypatch.setattr(base.time, "perf_counter", now)
    reports = base.Progress("solver", None, Run(), 1, tol=1e-6)
    assert reports._left(now(), 1.0) is None and reports._left(now(), 0.5) is None
    now.now += 1.0
    reports.first = (now() - 2.0, 1.0)
    assert reports._left(now(), 1e-2) == pytest.approx(4.0)
    assert reports._left(now(), 1e-7) == 0.0
    assert reports._left(now(), np.inf) is None
