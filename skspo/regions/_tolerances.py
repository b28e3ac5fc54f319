"""How exact numbers are.  Of numbers of order one, smaller differences are errors of rounding or of a solver."""

#: sums of some thousand doubles, which have 16 digits
ROUNDING = 1e-12

#: singular values and eigenvalues relative to the largest one: those of graphs and sums are not that small
RANK = 1e-10

#: linear programs of HiGHS, which is asked for 1e-10: multipliers, constraints, and integers of a vertex
HIGHS = 1e-9

#: constraints at a decision that a linear or mixed-integer program returned
FEASIBLE = 1e-8

#: difference between the cost of a decision of a solver and its bound, relative to its usual cost
PROVED = 1e-7

#: any solver, one in a user's function included, which is asked for a gap and a tolerance of at most that
SOLVER = 1e-6
