"""The learned posterior of a concentration in numpy alone: cells, probabilities, sets and verdict of an unknown."""
