"""What an assay can tell apart, what its results are worth, and which standard to measure next."""
