"""The commands of the `geonode` program, one module each, with `register(app)`."""
