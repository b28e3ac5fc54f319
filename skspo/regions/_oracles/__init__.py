"""How regions find decisions where that takes more than a formula: HiGHS, Clarabel, enumeration; and checks of it."""
