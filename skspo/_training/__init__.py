"""The training problem: inputs, design, objective, certificate, and where the rows live."""
