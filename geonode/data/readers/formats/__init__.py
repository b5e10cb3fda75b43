"""The readers, one file a format. A file put here is found without being listed anywhere."""
