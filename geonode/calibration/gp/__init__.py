"""The forward model: processes over concentration, Gaussian and neural, behind one interface."""
