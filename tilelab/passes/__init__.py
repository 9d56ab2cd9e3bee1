"""Passes from tile IR to thread IR, each a pure function, each recorded in the trace."""
