"""How exact numbers are.  Of numbers of order one, smaller differences are errors of rounding or of a solver."""

#: sums of some thousand doubles, which have 16 digits
ROUNDING = 1e-12

#: linear programs of HiGHS, which is asked for 1e-10: multipliers, constraints, and integers of a vertex
HIGHS = 1e-9

#: any solver, one in a user's function included, which is asked for a gap and a tolerance of at most that
SOLVER = 1e-6
