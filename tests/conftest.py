"""Hypothesis profiles: the same examples in every run, without a time limit per example.

``HYPOTHESIS_PROFILE=explore pytest`` generates new examples instead; so does ``HYPOTHESIS_PROFILE=nightly``, with
thousands of problems of ``test_adversarial.py`` and ``test_certificate.py``.
"""

import os
import signal
from pathlib import Path

import numpy  # noqa: F401  (loads the library whose threads are limited below)
import pytest
import scipy.linalg  # noqa: F401
from hypothesis import settings
from threadpoolctl import threadpool_limits

from skspo._utils.errors import forget_warnings
from skspo.regions import listed

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=100, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# With python -O, pytest executes the assertions of test modules, and with this also those of the modules they share.
HERE = Path(__file__).parent
pytest.register_assert_rewrite(*(path.stem for path in HERE.rglob("*.py") if not path.stem.startswith("test_")))

# Interpreters that tests start do not import modules from the current directory.
os.environ["PYTHONSAFEPATH"] = "1"

# With "nohup ... &" the process is started with SIGINT ignored, which the processes of the tests would inherit.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The matrices of the tests are tiny: several BLAS threads would make the tests slower.
threadpool_limits(1)


@pytest.fixture(autouse=True)
def _warnings_of_other_tests():
    """Warnings that are given once are given again in each test."""
    forget_warnings()


@pytest.fixture
def unlisted(monkeypatch):
    """Regions of integers are not listed, however few decisions they have: HiGHS solves their programs."""
    monkeypatch.setattr(listed, "MOST_POINTS", 0)
