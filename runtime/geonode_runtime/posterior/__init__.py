"""The learned posterior of a concentration, in numpy alone: from an unknown to cells, probabilities, sets and verdict."""
