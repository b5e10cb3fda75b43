"""Chemistry: concentration → amounts of species. One file a kind; each is a row of `FAMILIES`."""
