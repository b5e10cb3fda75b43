"""`python -m geonode.bench`: throughput, GPU activity and the distance to the limit, correctness first.

How it measures is written in docs/benchmarks/method.md. The parent process never touches the device: every measurement
runs in a worker of its own (`worker`), peers in theirs (`peers`), and the parent samples the device's counters.

To add a case, call `geonode.bench.case.register` in a module of your own and name it: ``--import my_cases``.
"""

SCHEMA_VERSION = 1  # also in geonode.schema.SCHEMAS
