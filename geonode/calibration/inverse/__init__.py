"""Concentration from spectrum: the space of the standards, the curve in it, distances and the sets they make."""
