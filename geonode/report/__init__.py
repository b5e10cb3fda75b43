"""The report as one HTML page that needs nothing else: no network, no library, readable on a phone."""
