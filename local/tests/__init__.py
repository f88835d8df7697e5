"""Tests of this package: plain unittest, run by the Python that has the SAM CLI."""
