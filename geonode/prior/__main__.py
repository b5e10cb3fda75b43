"""`python -m geonode.prior`: `geonode pretrain` where its script is not on the path, as under torchrun or srun."""

import sys

from geonode.cli import app

app(["pretrain", *sys.argv[1:]], prog_name="python -m geonode.prior")
