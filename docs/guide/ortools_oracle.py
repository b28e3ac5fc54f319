"""OR-tools as an oracle, in a separate process that never loads HiGHS.

Imported, this file has the oracle; run as a script, it is the process that the oracle talks to.
"""

import os
import pickle
import subprocess
import sys
import threading
import traceback
from contextlib import suppress

import numpy as np

# [worker]
WEIGHTS, CAPACITY, EXCLUSIVE = [3, 4, 5, 9, 2, 6], 14, [(0, 1), (2, 4)]


def solve(C):
    """Best projects for each row of costs: within a capacity, and not both of any exclusive pair."""
    from ortools.sat.python import cp_model

    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    w = [model.new_bool_var(f"w{j}") for j in range(C.shape[1])]
    model.add(sum(weight * x for weight, x in zip(WEIGHTS, w, strict=True)) <= CAPACITY)
    for i, j in EXCLUSIVE:
        model.add_at_most_one(w[i], w[j])
    solver.parameters.num_workers = 1
    W = np.zeros(C.shape)
    for c, decision in zip(C, W, strict=True):
        # CP-SAT needs integers; 40 bits are far more accurate than the 1e-6 that is required of an oracle.
        whole = np.rint(c / (np.abs(c).max() or 1.0) * 2**40).astype(int).tolist()
        model.minimize(sum(k * x for k, x in zip(whole, w, strict=True)))
        if solver.solve(model) != cp_model.OPTIMAL:
            raise RuntimeError(f"CP-SAT found no optimal decision: {solver.status_name()}.")
        decision[:] = [solver.value(x) for x in w]
    return W


def serve():
    """Read arrays of costs from the standard input and write decisions to the standard output, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a solver must not be mixed with the decisions
    while True:
        try:
            C = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = solve(C)
        except Exception:
            answer = traceback.format_exc()
        pickle.dump(answer, answers)
        answers.flush()


# [end of worker]


# [oracle]
class ProcessOracle:
    """Oracle that runs a script, which reads arrays of costs and writes arrays of decisions, or the text of an error.

    Parameters
    ----------
    script : str
        Path of the script, which is started at the first call and stays.
    """

    def __init__(self, script):
        self.script = script
        self._worker, self._lock = None, threading.Lock()

    def __call__(self, C):
        with self._lock:
            if self._worker is None or self._worker.poll() is not None:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                # -P: modules are not looked for beside the script, where a json.py would replace that of Python
                self._worker = subprocess.Popen([sys.executable, "-P", self.script], **pipes)
            try:
                pickle.dump(np.asarray(C), self._worker.stdin)
                self._worker.stdin.flush()
                answer = pickle.load(self._worker.stdout)
            except (EOFError, OSError) as error:
                raise RuntimeError(f"{self.script} ended with exit code {self._end()}.") from error
            except BaseException:  # an interrupt: the pending answer would be read by the next call
                self._worker.kill()
                self._end()
                raise
        if isinstance(answer, str):
            raise RuntimeError(f"{self.script} failed:\n{answer}")
        return answer

    def close(self):
        """End the process; the next call starts another one."""
        if self._worker is not None:
            self._end()

    def _end(self):
        worker, self._worker = self._worker, None
        with suppress(OSError):  # of an input that cannot be written any more
            worker.communicate()  # closes its input
        worker.stdin.close()
        return worker.wait()

    def __getstate__(self):
        return {"script": self.script}  # a copy, for example in a parallel job, starts its own process

    def __setstate__(self, state):
        self.__init__(**state)


oracle = ProcessOracle(os.path.abspath(__file__))
# [end of oracle]

if __name__ == "__main__":
    serve()
