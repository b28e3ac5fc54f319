"""The experiments of Liu and Grigas, one command each: ``python -m skspo.experiments --help``.

``studies`` defines the comparisons, ``runner`` runs and resumes trials, and ``report`` makes tables and figures.
"""

from .report import write_report
from .runner import run_study
from .studies import STUDIES, Study

__all__ = ["STUDIES", "Study", "run_study", "write_report"]
