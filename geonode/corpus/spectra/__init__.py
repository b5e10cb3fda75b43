"""Spectra: amounts of species → optical density or emission along a wavelength axis from 0 to 1. One file a kind."""
