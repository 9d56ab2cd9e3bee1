"""Random tile programs, run on the simulator and compared with numpy.

A generator draws statements of the language; each has a Python text and a meaning in numpy, both
written from the language's rules. `choices.py` holds draws and shrinking, `scalars.py`, `tiles.py`
and `whole.py` the statements, `draw_*.py` the families of programs, `program.py` the verdict.
"""
