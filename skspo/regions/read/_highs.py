"""Model files and the objects of highspy."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ._model import Model, Rows

if TYPE_CHECKING:
    import highspy

SUFFIXES = (".mps", ".lp")

#: sections of files that HiGHS rejects without a reason, or reads as something else
MPS_SECTIONS = {
    "SOS": "special ordered sets",
    "SOS1": "special ordered sets",
    "SOS2": "special ordered sets",
    "INDICATORS": "indicator constraints",
    "QCMATRIX": "quadratic constraints",
    "GENCONS": "general constraints",
    "PWLOBJ": "a piecewise-linear objective",
    "LAZYCONS": "lazy constraints",
    "USERCUTS": "user cuts",
}
LP_SECTIONS = {
    r"sos[12]?\b": "special ordered sets",
    r"general\s+constraints?\b|gencons\b": "general constraints",
    r"pwlobj\b": "a piecewise-linear objective",
    r"lazy\s+constraints\b": "lazy constraints",
    r"user\s+cuts\b": "user cuts",
}


def read_file(path: str | os.PathLike[str]) -> Model:
    """Read an .mps or .lp file with HiGHS."""
    import highspy

    path = Path(path)
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix.lower() not in SUFFIXES:
        raise ValueError(f"read_region: a model file is called *.mps, *.lp, *.mps.gz or *.lp.gz, got {str(path)!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"read_region: there is no file {str(path)!r}.")
    _check_sections(path, plain.suffix.lower())
    highs = highspy.Highs()
    with tempfile.TemporaryDirectory() as folder:
        log, unpacked = Path(folder, "log"), Path(folder, plain.name)
        if plain != path:
            with gzip.open(path) as packed, unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file)
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("log_file", str(log))
        status = highs.readModel(str(path if plain == path else unpacked))
        highs.setOptionValue("log_file", "")  # closes it
        said = log.read_text(errors="replace").splitlines() if log.exists() else []
    complaints = " ".join(line.strip() for line in said if line.startswith(("ERROR", "WARNING")))
    if status == highspy.HighsStatus.kError:
        raise ValueError(f"read_region: HiGHS cannot read {str(path)!r}: {complaints or 'it gives no reason.'}")
    if complaints:
        warnings.warn(f"read_region: HiGHS read {str(path)!r} and said: {complaints}", stacklevel=3)
    return _read(highs, f"{str(path)!r}")


def _check_sections(path: Path, suffix: str) -> None:
    """Raise an error if the file has a section that cannot be represented."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            found = _mps_section(line) if suffix == ".mps" else _lp_section(line)
            if found:
                raise ValueError(
                    f"read_region: {str(path)!r} has {found} (line {number}), which cannot be represented. "
                    "Use linear constraints and integer variables instead."
                )


def _mps_section(line: str) -> str | None:
    # Only names of sections start in the first column.
    return MPS_SECTIONS.get(line.split()[0].upper()) if line[:1].strip() else None


def _lp_section(line: str) -> str | None:
    text = line.partition("\\")[0].strip().lower()  # a backslash starts a comment
    if "->" in text:
        return "indicator constraints"
    return next((what for pattern, what in LP_SECTIONS.items() if re.fullmatch(pattern, text)), None)


def read_highs(source: Any) -> Model:
    """Read a ``highspy.Highs``."""
    import highspy

    if not isinstance(source, highspy.Highs):
        raise TypeError(f"read_region: of highspy, source must be a highspy.Highs, got {type(source).__name__}.")
    return _read(source, "the HiGHS model")


def _read(highs: highspy.Highs, what: str) -> Model:
    import highspy

    lp = highs.getLp()
    d = lp.num_col_
    if d == 0:
        raise ValueError(f"read_region: {what} has no variables.")
    names = [name or f"column {j}" for j, name in enumerate(lp.col_names_)] if any(lp.col_names_) else None
    if highs.getModel().hessian_.dim_:
        raise ValueError(f"read_region: {what} has a quadratic objective, which cannot be represented.")
    if getattr(highs, "getNumLinearObjectives", int)():  # old versions have only one
        raise ValueError(f"read_region: {what} has several objectives, which cannot be represented.")
    kinds = highspy.HighsVarType
    types = list(lp.integrality_) or [kinds.kContinuous] * d
    for j, kind in enumerate(types):
        if kind in (kinds.kSemiContinuous, kinds.kSemiInteger):
            raise ValueError(
                f"read_region: {what} has the semi-continuous variable {names[j] if names else j}, which cannot be "
                "represented. Use a binary variable that switches it on."
            )
    matrix = lp.a_matrix_
    parts = (np.asarray(matrix.value_), np.asarray(matrix.index_), np.asarray(matrix.start_))
    columns = matrix.format_ == highspy.MatrixFormat.kColwise
    A = (sp.csc_array if columns else sp.csr_array)(parts, shape=(lp.num_row_, d))
    bounds = (lp.row_lower_, lp.row_upper_, lp.col_lower_, lp.col_upper_)
    rows = Rows(sp.csr_array(A), *(np.array(bound, dtype=np.float64) for bound in bounds))
    sense = "max" if lp.sense_ == highspy.ObjSense.kMaximize else "min"
    integers = np.array([kind != kinds.kContinuous for kind in types])
    return Model(rows.region(integers, sense, names), np.array(lp.col_cost_, dtype=np.float64))
