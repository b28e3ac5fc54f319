"""A clock that advances with the work, and small problems, for tests of ``time_limit``."""

from skspo import ShortestPath
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path


class Clock:
    """A replacement for the clock of ``skspo``."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr("skspo._utils.limits.perf_counter", lambda: self.now)

    def count(self, monkeypatch, where, name, seconds=1.0):
        """Let every call of a function take ``seconds``."""
        original = getattr(where, name)

        def counted(*args, **kwargs):
            self.now += seconds
            return original(*args, **kwargs)

        monkeypatch.setattr(where, name, counted)


CLASSES = make_cost_sensitive_classification(60, 3, 5, degree=2, noise=0.5, random_state=0)
PATHS = make_shortest_path(60, 3, (3, 3), degree=6, noise=0.5, random_state=0)
ASSETS = make_portfolio(60, 3, 5, degree=4, noise=0.5, random_state=0)
GRID = ShortestPath.grid(3, 3)
