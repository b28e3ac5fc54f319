"""Model files and the objects of highspy."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ._model import LinearRows, Model

if TYPE_CHECKING:
    import highspy

SUFFIXES = (".mps", ".lp")

#: bytes that any packed file may unpack to; 64 MB do no harm
UNPACKED = 2**26

#: times its size that a packed file may unpack to: models are packed to a tenth, seldom to a hundredth; zeros to a
#: thousandth
RATIO = 200

#: sections of MPS files that have numbers, and kinds of bounds that do; HiGHS reads what it can of a malformed number
MPS_DATA = ("COLUMNS", "RHS", "RANGES", "BOUNDS")
MPS_HEADERS = (*MPS_DATA, "NAME", "OBJSENSE", "ROWS", "QUADOBJ", "QMATRIX", "QSECTION", "ENDATA")
MPS_BOUNDS = ("UP", "LO", "FX", "LI", "UI", "SC")
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.IGNORECASE | re.ASCII)

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
    highs = highspy.Highs()
    with tempfile.TemporaryDirectory() as folder:
        log, file = Path(folder, "log"), path
        if plain != path:
            file = Path(folder, plain.name)
            _unpack(path, file)
        _check_lines(path, file, plain.suffix.lower())
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("log_file", str(log))
        status = highs.readModel(str(file))
        highs.setOptionValue("log_file", "")  # closes it
        said = log.read_text(errors="replace").splitlines() if log.exists() else []
    complaints = " ".join(line.strip() for line in said if line.startswith(("ERROR", "WARNING")))
    if status == highspy.HighsStatus.kError:
        raise ValueError(f"read_region: HiGHS cannot read {str(path)!r}: {complaints or 'it gives no reason.'}")
    if complaints:
        warnings.warn(f"read_region: HiGHS read {str(path)!r} and said: {complaints}", stacklevel=3)
    return _read(highs, f"{str(path)!r}")


def _unpack(path: Path, to: Path) -> None:
    """Unpack a gzip file, in blocks and up to a limit."""
    most = max(UNPACKED, RATIO * path.stat().st_size)
    try:
        with gzip.open(path) as packed, to.open("wb") as file:
            while block := packed.read(2**20):
                file.write(block)
                if file.tell() > most:
                    raise ValueError(
                        f"read_region: {str(path)!r} unpacks to more than {most // 2**20} MB, which is {RATIO} times "
                        "its size or more. If you trust it, unpack it and read the unpacked file."
                    )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"read_region: {str(path)!r} is not a complete gzip file ({error}). Is it truncated, or not packed?"
        ) from None


def _check_lines(path: Path, file: Path, suffix: str) -> None:
    """Raise an error if the file has a section that cannot be represented, or a number that HiGHS would misread."""
    section = ""
    with file.open("rt", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            found = _mps_section(line) if suffix == ".mps" else _lp_section(line)
            if found:
                raise ValueError(
                    f"read_region: {str(path)!r} has {found} (line {number}), which cannot be represented. "
                    "Use linear constraints and integer variables instead."
                )
            if suffix != ".mps" or line.startswith("*") or not line.strip():
                continue
            words = line.split()
            if line[0].strip() and words[0].upper() in MPS_HEADERS and words[0].upper() != section:
                section = words[0].upper()
                continue
            for place in _number_places(section, words):
                # In the fixed format names may have blanks, and numbers are in certain columns.
                columns = [part for part in (line[24:36].strip(), line[49:61].strip()) if part]
                if not (NUMBER.fullmatch(words[place]) or (columns and all(map(NUMBER.fullmatch, columns)))):
                    raise ValueError(
                        f"read_region: {str(path)!r} has {words[place]!r} in line {number}, field {place + 1} "
                        f"({section}), which is not a number. Write numbers as in 1500, -0.5 or 1e-3."
                    )


def _number_places(section: str, words: list[str]) -> range:
    """Indices of the words of a line of an MPS file that are numbers."""
    if section == "BOUNDS":
        kind = words[0].upper()
        return range(len(words) - 1, len(words)) if kind in MPS_BOUNDS and len(words) >= 3 else range(0)
    if section not in MPS_DATA or "'MARKER'" in words:
        return range(0)
    # name (row number)*; the name of a set of right-hand sides or ranges may be missing
    first = 1 if section != "COLUMNS" and len(words) % 2 == 0 else 2
    return range(first, len(words), 2)


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
    rows = LinearRows(sp.csr_array(A), *(np.array(bound, dtype=np.float64) for bound in bounds))
    sense = "max" if lp.sense_ == highspy.ObjSense.kMaximize else "min"
    integers = np.array([kind != kinds.kContinuous for kind in types])
    return Model(rows.region(integers, sense, names), np.array(lp.col_cost_, dtype=np.float64))
