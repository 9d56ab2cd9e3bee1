"""Tests of artefacts: kernels as plain data."""
