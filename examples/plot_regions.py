"""
Regions and losses in pictures
==============================

A prediction only matters through the decision that it leads to.  These pictures show which decision is best as the
costs turn, and what that means for the two losses of the package.
"""

# %%
# Polyhedra: corners
# ------------------
# With two or three decision variables a region can be drawn.  The costs turn once around a circle.  Each arrow is at
# the best decision and points against the costs; its color is the angle of the costs.  On a polyhedron the best
# decision stays at a corner while the costs turn, and then jumps to the next one: most errors of a prediction change
# nothing, and some change everything.
import matplotlib.pyplot as plt

from skspo import Ellipsoid, EntropySimplex, Knapsack, Simplex
from skspo.plotting import LossDisplay, RegionDisplay

RegionDisplay.from_region(Simplex(), n_dim=3)
plt.show()

# %%
# The items of a knapsack are taken or not.  The region is the set of their corners; its convex hull is drawn.
RegionDisplay.from_region(Knapsack([2, 3, 4], capacity=6))
plt.show()

# %%
# Curved regions: every error counts a little
# -------------------------------------------
# On a strongly convex region the best decision moves with the costs.  There the SPO loss is smooth almost everywhere.
RegionDisplay.from_region(EntropySimplex(-0.8), n_dim=3)
plt.show()

# %%
RegionDisplay.from_region(Ellipsoid([[2.0, 1.0], [1.0, 1.0]]), n_dim=2)
plt.show()

# %%
# The two losses
# --------------
# The true costs are (1, 2, 4).  The prediction moves on a line, from (5, 2.5, 1), for which the worst alternative is
# chosen, to (0, 2, 4), for which the best one is.  The SPO loss is the extra cost of the decision: it jumps where the
# decision changes.  The SPO+ loss is convex, is never below it, and leads a descent to the right decision.
display = LossDisplay.from_predictions([1.0, 2.0, 4.0], [5.0, 2.5, 1.0], [0.0, 2.0, 4.0], Simplex())
plt.show()
print(f"largest SPO loss {display.spo.max():.1f}, largest SPO+ loss {display.spo_plus.max():.1f}")

# %%
# On the entropy region both are continuous.
LossDisplay.from_predictions([1.0, 2.0, 4.0], [5.0, 2.5, 1.0], [0.0, 2.0, 4.0], EntropySimplex(-0.8))
plt.show()
