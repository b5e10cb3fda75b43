"""Why a spectrum lies off the curve of the standards, in numpy alone: where, by how much, and what explains it best."""
