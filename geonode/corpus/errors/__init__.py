"""Errors: what measured spectra differ from the truth by. One file a kind; an assay has some of them."""
