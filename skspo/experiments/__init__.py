"""The experiments of Liu and Grigas, one command each: ``python -m skspo.experiments --help``.

``studies`` says what is compared, ``runner`` runs trials so that nothing is lost when it is interrupted, and ``report``
turns them into tables and figures.
"""

from .report import write_report
from .runner import run_study
from .studies import STUDIES, Study

__all__ = ["STUDIES", "Study", "run_study", "write_report"]
