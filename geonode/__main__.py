"""`python -m geonode`: the `geonode` command where its script is not on the path."""

from geonode.cli import main

main()
