"""How regions find decisions where that takes more than a formula.

``level_sets`` and ``user`` serve the regions in the files of the same names, ``flows`` serves ``graphs``.  ``highs``
solves linear and mixed-integer programs with ``highs_linear`` and ``highs_integer``, ``clarabel`` cone programs with
``clarabel_cones``.
"""
