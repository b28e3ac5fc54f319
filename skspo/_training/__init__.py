"""The training problem: inputs, design, objective, certificate, and access to the rows."""
