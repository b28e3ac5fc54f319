"""Hypothesis profiles: the same examples in every run, none thrown away for being slow on a busy machine.

``HYPOTHESIS_PROFILE=explore pytest`` looks for new examples instead.
"""

import os

from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
