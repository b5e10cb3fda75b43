"""Designs: where the standards of a calibration lie. One file a kind."""
