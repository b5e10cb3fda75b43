"""Whether kernels run in Triton's interpreter, decided once, when they are first imported.

Triton decorates a function for its interpreter or for a device at that moment, and cannot change its mind later.
"""

import os

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
