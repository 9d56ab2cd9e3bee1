"""Tests of the front end and of the public language."""
