"""The built-in cases; importing this registers them in the order in which they are measured."""

from geonode.bench.cases import geometry, node, training, learned, exported  # noqa: F401, I001
