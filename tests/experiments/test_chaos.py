"""Long runs that are interrupted, killed, or run out of disk space: no data are lost, no files are left, same results.

``SKSPO_CHAOS=50 pytest tests/experiments/test_chaos.py -s`` interrupts fifty times instead of a few, and prints
what it did.
"""

import contextlib
import copy
import errno
import importlib.util
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from chaos_study import PAPER, STUDY
from same import assert_same
from sklearn.base import clone

import skspo as sk
from skspo.datasets import make_portfolio
from skspo.experiments import STUDIES, run_study, write_report
from skspo.experiments.__main__ import main
from skspo.experiments.runner import write_atomically

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and /proc as on Linux")

CHAOS = int(os.environ.get("SKSPO_CHAOS", "0"))
CHAOS_ONLY = pytest.mark.skipif(not CHAOS, reason="set SKSPO_CHAOS to the number of interruptions")
HERE = Path(__file__).parent
P, R = make_portfolio(16, 2, 3, degree=2, random_state=0)
TRIALS = 20 if CHAOS else 10


# -- a study -----------------------------------------------------------------------------------------------------------


def command(out, jobs=1):
    """``python -m skspo.experiments``, with the toy among the studies."""
    arguments = ["toy", "--trials", str(TRIALS), "--jobs", str(jobs), "--out", str(out), "--no-figures"]
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import chaos_study as c; sys.exit(c.run({arguments!r}))"
    return [sys.executable, "-c", code]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The expected files."""
    out = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STUDIES, "toy", STUDY)
        assert main(["toy", "--trials", str(TRIALS), "--out", str(out), "--no-figures"]) == 0
    return {name: (out / "toy" / name).read_bytes() for name in ("trials.csv", "summary.csv", "summary.md")}


def processes_of(session):
    """Living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, number = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            if int(number) == session and state != "Z":
                found.append(int(folder.name))
    return found


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """Background processes of a shell ignore SIGINT, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def complete_lines(file):
    return set(file.read_bytes().split(b"\n")[:-1]) if file.exists() else set()


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened for a long time"
        time.sleep(0.005)


def disturb(out, rng, number, *, jobs, to_group, when_asleep=False):
    """Start the run, send a signal at a random time, and check what is left; return the output of the process."""
    file, scratch = out / "toy" / "trials.csv", out / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    kept, before = complete_lines(file), len(complete_lines(file))
    environment = os.environ | {"TMPDIR": str(scratch), "OPENBLAS_NUM_THREADS": "1"}
    if str(scratch).isascii():  # joblib takes no others; it uses /dev/shm then
        environment["JOBLIB_TEMP_FOLDER"] = str(scratch)
    process = subprocess.Popen(command(out, jobs), env=environment, start_new_session=True, stderr=subprocess.PIPE)
    try:
        if when_asleep:  # at a random time, possibly during imports
            time.sleep(rng.uniform(0.0, 5.0))
        else:
            more = int(rng.integers(1, 2 * TRIALS))
            wait_until(lambda: process.poll() is not None or len(complete_lines(file)) >= before + more)
            time.sleep(rng.uniform(0.0, 0.03))
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if to_group else os.kill)(process.pid, number)
        _, said = process.communicate(timeout=60)
        began = len(complete_lines(file)) > before
        # Workers whose parent was killed end by themselves; those that never got work wait for some minutes.
        if number != signal.SIGKILL or began:
            wait_until(lambda: not processes_of(process.pid), 30.0)
            assert not list(scratch.iterdir())
        assert kept - {b""} <= complete_lines(file), "a finished trial was lost"
        if number != signal.SIGKILL and (out / "toy").exists():
            assert not list((out / "toy").glob("*.new"))
    finally:
        for left in processes_of(process.pid):
            os.kill(left, signal.SIGKILL)
        process.wait()
        for leftover in scratch.rglob("*"):
            if leftover.is_file():
                leftover.unlink()
    return process.returncode, said.decode()


def finish(out, undisturbed, jobs=1):
    done = subprocess.run(command(out, jobs), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (out / "toy").iterdir()} == {"manifest.json", *undisturbed}
    for name, content in undisturbed.items():
        assert (out / "toy" / name).read_bytes() == content, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "number", "to_group"),
    [
        (1, signal.SIGINT, False),
        (2, signal.SIGTERM, False),
        pytest.param(2, signal.SIGINT, True, marks=CHAOS_ONLY),
        pytest.param(2, signal.SIGKILL, False, marks=CHAOS_ONLY),
    ],
    ids=["SIGINT", "SIGTERM, two workers", "SIGINT to all, two workers", "SIGKILL, two workers"],
)
def test_interrupted_experiment(tmp_path, undisturbed, jobs, number, to_group):
    """One signal each; then the rest of the run in this process, which saves process starts."""
    rng = np.random.default_rng(number)
    code, said = disturb(tmp_path, rng, number, jobs=jobs, to_group=to_group)
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == 128 + number, said
        assert said.rstrip().endswith(f"Stopped. The same command goes on from {tmp_path / 'toy'}.")
        assert "Traceback" not in said
    assert run_study(STUDY, tmp_path, trials=TRIALS, verbose=0).read_bytes() == undisturbed["trials.csv"]


@CHAOS_ONLY
def test_experiment_interrupted_many_times(tmp_path, undisturbed):
    """Random signals, times and workers until the study is complete; repeated until there were enough interruptions."""
    rng = np.random.default_rng(CHAOS)
    counts, codes, finished, start = {}, {}, 0, time.monotonic()
    out = tmp_path / "0"
    for k in range(CHAOS):
        number = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL][k % 3]
        jobs, to_group, when_asleep = int(rng.integers(1, 3)), bool(rng.integers(2)), bool(rng.random() < 0.4)
        code, said = disturb(out, rng, number, jobs=jobs, to_group=to_group, when_asleep=when_asleep)
        # During imports no handler is installed yet; a run may also have ended already.
        assert code in (0, -number, 128 + number), said
        counts[number.name] = counts.get(number.name, 0) + 1
        codes[code] = codes.get(code, 0) + 1
        if code == 0 or len(complete_lines(out / "toy" / "trials.csv")) > 0.9 * 4 * TRIALS:
            finish(out, undisturbed, jobs)
            finished, out = finished + 1, tmp_path / str(finished + 1)
    finish(out, undisturbed)
    print(
        f"\n{CHAOS} interruptions {counts}, return codes {codes}, {finished + 1} studies finished, all the same, "
        f"{time.monotonic() - start:.0f} s"
    )


@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_do_not_stop_a_resumed_run(tmp_path, seed):
    """Files cut at any point, and perhaps padded, as after a system crash, and an unfinished new file."""
    rng = np.random.default_rng(seed)
    file = run_study(PAPER, tmp_path, trials=5, verbose=0)
    whole = file.read_bytes()
    header = whole.index(b"\n") + 1
    for k in range(12):
        place = int(rng.integers(header, len(whole)))
        damaged = [
            whole[:place],
            whole[:place] + b"\x00" * int(rng.integers(1, 300)),
            whole[:place] + b"\xff\x00?," + whole[place + 4 :],
        ][k % 3]
        file.write_bytes(damaged)
        (file.parent / "trials.csv.new").write_bytes(whole[:place])
        assert run_study(PAPER, tmp_path, trials=5, verbose=0).read_bytes() == whole
        assert {path.name for path in file.parent.iterdir()} == {"trials.csv", "manifest.json"}


def test_trials_of_another_layout_are_kept(tmp_path, capsys, monkeypatch):
    file = run_study(PAPER, tmp_path, trials=2, verbose=0)
    before = file.read_bytes()
    other = PAPER._replace(conditions=lambda quick: [{"degree": 1, "noise": 0.5}])
    monkeypatch.setitem(STUDIES, "toy", other)
    assert main(["toy", "--out", str(tmp_path), "--trials", "2"]) == 2
    assert "--no-resume to discard it" in capsys.readouterr().err
    assert file.read_bytes() == before


# -- fits that are interrupted -----------------------------------------------------------------------------------------


def chunks():
    return iter([(P[:8], R[:8]), (P[8:], R[8:])])


def lazy():
    da = pytest.importorskip("dask.array")
    return da.from_array(P, chunks=(8, -1)), da.from_array(R, chunks=(8, -1))


TOP = sk.TopK(1)
FITS = {
    "interior point": (sk.SPOPlusRegressor(TOP), lambda model: model.fit(P, R)),
    "bundle": (sk.SPOPlusRegressor(TOP, solver="bundle", tol=0.1), lambda model: model.fit(P, R)),
    "warm start": (sk.SPOPlusRegressor(TOP, warm_start=True), lambda model: model.fit(P, R)),
    "chunks": (sk.SPOPlusRegressor(TOP, tol=0.1), lambda model: model.fit_chunks(chunks)),
    "dask": (sk.SPOPlusRegressor(TOP, tol=0.1), lambda model: model.fit(*lazy())),
    "stream": (sk.SPOPlusRegressor(TOP, random_state=0), lambda model: model.partial_fit(P, R)),
    "cross-validation": (sk.SPOPlusRegressorCV(TOP, n_alphas=2, cv=2, tol=0.1), lambda model: model.fit(P, R)),
    "spo": (sk.SPORegressor(TOP, n_restarts=0, max_iter=1, random_state=0), lambda model: model.fit(P, R)),
    "two stages": (sk.TwoStageRegressor(region=TOP), lambda model: model.fit(P, R)),
    "network": (
        sk.SPOMLPRegressor(TOP, hidden_layer_sizes=(2,), max_iter=2, random_state=0),
        lambda model: model.fit(P, R),
    ),
    "network stream": (
        sk.SPOMLPRegressor(TOP, hidden_layer_sizes=(2,), random_state=0),
        lambda model: model.partial_fit(P, R),
    ),
}


class InterruptAt:
    """Ctrl-C just before the n-th line of skspo's code in this thread; counts lines otherwise.

    The module that changes the handler of SIGINT is left out: between the change of a setting and the beginning of the
    block that it is for, an interrupt would not be undone, as with every context manager.
    """

    def __init__(self, line=None):
        self.line, self.count = line, 0
        self.root, self.left_out = str(Path(sk.__file__).parent), str(Path(sk.__file__).parent / "_utils/limits.py")

    def _trace(self, frame, event, arg):
        name = frame.f_code.co_filename
        return self._lines if name.startswith(self.root) and name != self.left_out else None

    def _lines(self, frame, event, arg):
        if event == "line":
            self.count += 1
            if self.count == self.line:
                raise KeyboardInterrupt
        return self._lines

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exc):
        sys.settrace(self.before)


def without_times(model):
    model = copy.deepcopy(model)
    if hasattr(model, "history_"):
        model.history_.pop("time")
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_interrupted_fit_leaves_the_model_as_it_was(name):
    """At its last lines, where the attributes are stored, and at others; with and without an earlier fit."""
    model, fit = FITS[name]
    rng = np.random.default_rng(0)
    unfitted = clone(model)
    earlier = clone(model).fit(P[::-1][:12], R[:12]) if "stream" not in name else clone(model).partial_fit(P[4:], R[4:])
    with pytest.MonkeyPatch.context() as patch:
        if name == "dask":
            patch.setattr(pytest.importorskip("dask").base, "get_scheduler", synchronous)
        fit(clone(model))  # modules that are imported on first use are not to be counted
        for start in (unfitted, earlier):
            complete = copy.deepcopy(start)
            with InterruptAt() as counter:
                fit(complete)
            few, many = (4, 2) if not CHAOS else (60, CHAOS)
            lines = {max(counter.count - k, 1) for k in range(few)} | set(rng.integers(1, counter.count, size=many))
            outcomes = set()
            for line in sorted(lines):
                interrupted = copy.deepcopy(start)
                with pytest.raises(KeyboardInterrupt), InterruptAt(line):
                    fit(interrupted)
                done = not same(interrupted, start)
                outcomes.add(done)
                assert_same(without_times(interrupted), without_times(complete if done else start), f"{name}, {line}")
                if not done:  # and a second fit gives the result of a first one
                    assert_same(without_times(fit(interrupted)), without_times(complete), f"{name}, {line}, again")
            assert False in outcomes


def same(one, other):
    try:
        assert_same(without_times(one), without_times(other))
    except AssertionError:
        return False
    return True


def synchronous(*args, **kwargs):
    """Dask's scheduler without threads, so that lines can be counted."""
    from dask.local import get_sync

    return get_sync


CALLS = []  # of the oracle below


def interrupts(costs):
    """Presses Ctrl-C when it is called for the fourth time."""
    CALLS.append(len(costs))
    if len(CALLS) == 4:
        signal.raise_signal(signal.SIGINT)
    return np.eye(costs.shape[1])[costs.argmin(axis=1)]


@pytest.mark.parametrize("how", ["fit", "chunks", "dask threads", "dask cluster"])
def test_real_interrupt(how, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = set(os.listdir("/proc/self/fd"))
    CALLS.clear()
    with contextlib.ExitStack() as stack:
        if how.startswith("dask"):
            dask = pytest.importorskip("dask")
            stack.enter_context(dask.config.set({"scheduler": "threads"} if how == "dask threads" else {}))
        if how == "dask cluster":
            distributed = pytest.importorskip("distributed")
            cluster = distributed.LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
            )
            client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        model = sk.SPOPlusRegressor(sk.OracleRegion(interrupts, 3), solver="bundle", tol=1e-3)
        with pytest.raises(KeyboardInterrupt):
            model.fit_chunks(chunks) if how == "chunks" else model.fit(*((P, R) if how == "fit" else lazy()))
            pytest.fail(f"no interrupt in {len(CALLS)} calls")
        assert vars(model).keys() == model.get_params(deep=False).keys()
        if how == "dask cluster":
            wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)), 20.0)
        # The second try is not interrupted.
        model.fit_chunks(chunks) if how == "chunks" else model.fit(*((P, R) if how == "fit" else lazy()))
        assert model.duality_gap_ <= 1e-3
    if how in ("fit", "chunks"):
        assert not list(tmp_path.iterdir())
        assert set(os.listdir("/proc/self/fd")) <= files


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_fit_of_chunks_leaves_no_files(tmp_path, number):
    """In the middle of a pass, when the decisions are in the temporary file."""
    pid = os.fork()
    if pid == 0:
        import tempfile

        tempfile.tempdir, passes = str(tmp_path), []

        def read():
            passes.append(None)
            if len(passes) == 7:
                signal.raise_signal(number)
            return chunks()

        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sk.SPOPlusRegressor(TOP, tol=0.0).fit_chunks(read)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == number  # it was ended by the signal, so it was running
    assert not list(tmp_path.iterdir())


@CHAOS_ONLY
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_dask_script_interrupted_many_times(tmp_path, number):
    """A script with two worker processes ends, and its workers end with it."""
    pytest.importorskip("distributed")
    code = (
        "import dask.array as da, sys, skspo as sk\n"
        "from distributed import Client, LocalCluster\n"
        "from skspo.datasets import make_portfolio\n"
        "if __name__ == '__main__':\n"
        "    X, C = (da.from_array(a, chunks=(100, -1)) for a in make_portfolio(400, 3, 4, random_state=0))\n"
        "    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)\n"
        "    with LocalCluster(**options) as cluster:\n"
        "        with Client(cluster):\n"
        "            print('ready', flush=True)\n"
        "            while True: sk.SPOPlusRegressor(sk.Simplex()).fit(X, C)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    rng = np.random.default_rng(number)
    for _ in range(max(CHAOS // 10, 1)):
        process = subprocess.Popen(
            [sys.executable, str(script)],
            cwd=tmp_path,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0.0, 4.0))
            process.send_signal(number)
            process.wait(60)
            wait_until(lambda session=process.pid: not processes_of(session), 60.0)
        finally:
            for left in processes_of(process.pid):
                os.kill(left, signal.SIGKILL)
            process.wait()
            process.stdout.close()


# -- disk full ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def no_file_larger_than(n):
    """Writes beyond a number of bytes fail, after a part of them was written, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of sixteen pages."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no permission to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_trials_when_files_cannot_grow(tmp_path):
    whole = run_study(PAPER, tmp_path / "whole", trials=40, verbose=0).read_bytes()
    for limit in (700, 1000, 1333):
        out = tmp_path / str(limit)
        with (
            no_file_larger_than(limit),
            pytest.raises(OSError, match="could not be written and is as it was") as caught,
        ):
            run_study(PAPER, out, trials=40, verbose=0)
        assert caught.value.errno == errno.EFBIG
        assert caught.value.filename == str(out / "toy" / "trials.csv")
        kept = (out / "toy" / "trials.csv").read_bytes()
        assert kept.endswith(b"\n") and limit - 100 < len(kept) <= limit  # whole trials, and no half of one
        assert set(kept.splitlines()) < set(whole.splitlines())
        assert run_study(PAPER, out, trials=40, verbose=0).read_bytes() == whole


def test_trials_on_a_full_disk(small_disk, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(STUDIES, "toy", PAPER)
    arguments = ["toy", "--trials", "60", "--out", str(small_disk), "--no-figures"]
    assert main([*arguments[:-2], str(tmp_path / "whole"), arguments[-1]]) == 0
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (64 - 12) * 1024)  # three pages are left
    capsys.readouterr()
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said and "trials.csv" in said
    kept = (small_disk / "toy" / "trials.csv").read_bytes()
    assert kept.endswith(b"\n") and kept.count(b"\n") > 5
    assert main(arguments) == 1  # still full: another attempt loses nothing
    assert set(kept.splitlines()) <= set((small_disk / "toy" / "trials.csv").read_bytes().splitlines())
    filler.unlink()
    assert main(arguments) == 0
    for name in ("trials.csv", "summary.csv", "summary.md"):
        assert (small_disk / "toy" / name).read_bytes() == (tmp_path / "whole" / "toy" / name).read_bytes()
    assert not list(small_disk.rglob("*.new"))


def test_summaries_and_figures_when_files_cannot_grow(tmp_path):
    pytest.importorskip("matplotlib")
    file = run_study(PAPER, tmp_path, trials=5, verbose=0)
    before = {path: path.read_bytes() for path in write_report(PAPER, file)}
    assert len(before) == 4
    for limit in (10, 5000):
        with no_file_larger_than(limit), pytest.raises(OSError, match="could not be written and is as it was"):
            write_report(PAPER, file)
        assert {path: path.read_bytes() for path in before} == before
        assert not list(tmp_path.rglob("*.new"))


def test_files_are_replaced_atomically(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_atomically(file, "old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def interrupted(descriptor):
        raise KeyboardInterrupt

    for fsync, error in ((full, OSError), (interrupted, KeyboardInterrupt)):
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(error):
            write_atomically(file, "new")
        assert os.listdir(tmp_path) == ["file"] and file.read_text() == "old"
    monkeypatch.undo()
    write_atomically(file, "new")
    assert file.read_text() == "new"


def test_benchmark_tables_when_files_cannot_grow(tmp_path):
    source = HERE.parents[1] / "benchmarks" / "results.py"
    spec = importlib.util.spec_from_file_location("results", source)
    results = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))  # it limits threads for itself
        patch.setitem(sys.modules, "results", results)
        spec.loader.exec_module(results)
    file = tmp_path / "README.md"
    file.write_text("# Figures\n<!-- a:begin -->\n1\n<!-- a:end -->\nbelow\n")
    before = file.read_text()
    with no_file_larger_than(20), pytest.raises(OSError, match="as it was"):
        results.write_section(str(file), "a", "2")
    assert file.read_text() == before and os.listdir(tmp_path) == ["README.md"]
    results.write_section(str(file), "a", "2")
    assert file.read_text() == before.replace("\n1\n", "\n2\n")


def test_decisions_of_chunks_when_files_cannot_grow(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = sk.SPOPlusRegressor(TOP, tol=0.1)
    earlier = without_times(model.fit(P, R))
    expected = rf"16 rows, do not fit into {tmp_path}.*TMPDIR"
    with no_file_larger_than(30), pytest.raises(OSError, match=expected) as caught:
        model.fit_chunks(chunks)
    assert caught.value.errno == errno.EFBIG
    assert_same(without_times(model), earlier)
    assert not list(tmp_path.iterdir())
    assert model.fit_chunks(chunks).duality_gap_ <= 0.1


def test_decisions_of_chunks_on_a_full_disk(small_disk, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    X, C = np.tile(P, (1000, 1)), np.tile(R, (1000, 1)) * np.linspace(1.0, 2.0, 16000)[:, None]
    radius = sk.Ellipsoid(radius=0.5)  # eight bytes for each decision: 384 kB
    with pytest.raises(OSError, match=r"No space left on device.*24 bytes for each of 16000 rows") as caught:
        sk.SPOPlusRegressor(radius).fit_chunks(sk.ChunkedData.from_arrays(X, C, chunk_rows=1000))
    assert caught.value.errno == errno.ENOSPC
    assert not list(small_disk.iterdir()) and os.statvfs(small_disk).f_bavail == 16
