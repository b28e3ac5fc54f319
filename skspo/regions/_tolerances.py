"""How exact numbers are.  Of numbers of order one, smaller differences are errors of rounding or of a solver."""

#: sums of some thousand doubles, which have 16 digits
ROUNDING = 1e-12

#: singular values and eigenvalues relative to the largest one: those of graphs and sums are not that small
RANK = 1e-10

#: what solvers compute exactly, which are asked for 1e-10: multipliers, constraints, and integers of a vertex
EXACT = 1e-9

#: constraints at a decision that a linear or mixed-integer program returned
FEASIBLE = 1e-8

#: what proves that a solver's decision is right: the difference between its cost and the bound, relative to its usual
#: cost, and its distance from a convex set
PROVED = 1e-7

#: any solver, one in a user's function included, which is asked for a gap and a tolerance of at most that
SOLVER = 1e-6

#: a cost or a coefficient is much larger than another one above this ratio: a gap of EXACT, relative to the larger one,
#: is SOLVER of the smaller one
JUMP = 1e3

#: costs below this share of the largest one are rounding errors: sums of a few thousand numbers
NOISE = 1e-13
