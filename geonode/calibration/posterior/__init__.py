"""Concentration from spectrum as a posterior learned on simulated unknowns: p(c | spectrum, standards)."""
